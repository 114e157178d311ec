"""The protocol machine: it makes the parts of a connection and gives each message to its part."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from .._rules.messages import BATCHED_INITIALIZE, NO_OBJECT, judge_batch, judge_unknown_object
from .._rules.sending import Breach
from .._rules.state_tables import STATES, State, StateTrigger
from .._spec.errors import ErrorCode
from .._wire.codec import refusal
from .._wire.framing import BOM, BOM_NOTE, HEAD_BYTES, TAIL_BYTES, OverlongEnd
from .._wire.outline import OutlineKind, read_head, read_tail
from .._wire.setting_checks import check_clock, check_wait
from .._wire.values import JSONObject, JSONValue, id_key
from .core import Core, MethodPart
from .events import CancelCause, CloseCause, MessageIgnored
from .handles import (
    Batch,
    IncomingRequest,
    Listing,
    OutgoingRequest,
    Ping,
    Route,
    Start,
    Subscription,
)
from .incoming import IncomingRequests
from .incoming_responses import IncomingResponses
from .input_required.client import InputRequiredClient
from .input_required.server import InputRequiredServer
from .intake import Intake
from .listings import Listings
from .modern_messages import ModernMessages
from .notifications import Notifications
from .opening.discovery import ClientDiscovery, ServerDiscovery
from .opening.handshake import ClientHandshake, ServerHandshake
from .outgoing import OutgoingRequests, RequestOwner
from .pings import Pings
from .subscriptions.changes import Change
from .subscriptions.client import ClientSubscriptions
from .subscriptions.server import ChangePublisher, Listeners, ResourceSubscriptions
from .tasks.board import TaskBoard
from .tasks.follower import TaskFollower
from .tasks.owner import TaskOwner
from .tasks.subscriptions import TaskSubscriptions
from .timers import Timed

if TYPE_CHECKING:
    from .caching.cache import CacheIdentity
    from .handles import Listener

_OPEN = State.OPEN


class DrainTimer:
    """The deadline for open requests of the peer after the peer has ended its stream."""

    __slots__ = ("_deadline",)

    def __init__(self) -> None:
        self._deadline: float | None = None


PARTS_BY_METHOD: Final[Mapping[str, str]] = {
    "ping": "pings",
    "initialize": "handshake",
    "server/discover": "discovery",
    "logging/setLevel": "notifications",
    "resources/subscribe": "resource_subscriptions",
    "resources/unsubscribe": "resource_subscriptions",
    "subscriptions/listen": "listeners",
    "tasks/get": "tasks",
    "tasks/result": "tasks",
    "tasks/list": "tasks",
    "tasks/cancel": "tasks",
    "tasks/update": "tasks",
}
"""By method: the part of the machine that answers it, or acts when the application answers it."""


TASK_PARTS: Final = frozenset(method for method, part in PARTS_BY_METHOD.items() if part == "tasks")
"""The methods that the library answers by itself where it has the tasks."""


class EndingPart(Protocol):
    """A part that ends something when the connection ends."""

    def end(self, cause: CancelCause) -> None:
        """End all that is open in this part, each with its ending event."""
        ...


class Machine:
    """The parts of one end of a conversation, and the dispatch of messages to them.

    `ClientMachine` and `ServerMachine` add the parts of one side. The verbs of the public
    connections call the parts; HTTP endpoints use the parts directly.

    Attributes:
        core: The clock, events, output and state that all parts share.
        messages: Writes what each modern message carries.
        outgoing: Requests of this side.
        incoming: Requests of the peer.
        intake: Judges each new request of the peer.
        responses: Responses and progress for requests of this side.
        notifications: Notifications in both directions.
        pings: Pings and keep-alive.
        listings: Paginated requests of this side.
        follower: Tasks of the peer that this side follows; None: tasks are not turned on.
        held: On a server, published changes that wait until the transport takes output.
        held_tasks: On a server with tasks, their notifications that wait like that; else None.
        task_subscriptions: On a server with tasks, the subscriptions to them; else None.
        tasks: The tasks of the peer on this side; None: the application has them, if there are any.
    """

    __slots__ = (
        "_drain",
        "_in_end_order",
        "_listeners",
        "_overlong_kind",
        "_publisher",
        "core",
        "follower",
        "held",
        "held_tasks",
        "incoming",
        "intake",
        "listings",
        "messages",
        "notifications",
        "outgoing",
        "pings",
        "responses",
        "task_subscriptions",
        "tasks",
    )

    def __init__(self, core: Core, board: TaskBoard | None = None) -> None:
        self.core: Core = core
        messages = ModernMessages(core, tasks=board is not None)
        self.messages: ModernMessages = messages
        outgoing = OutgoingRequests(core, messages)
        self.outgoing: OutgoingRequests = outgoing
        incoming = IncomingRequests(core, messages, outgoing)
        self.incoming: IncomingRequests = incoming
        responses = IncomingResponses(core, messages, outgoing)
        self.responses: IncomingResponses = responses
        self.pings: Pings = Pings(core, outgoing, incoming)
        self.listings: Listings = Listings(core, messages, outgoing, incoming)
        self.intake: Intake = Intake(core, outgoing, incoming)
        self.notifications: Notifications = Notifications(
            core, responses, self.listings, incoming, self.intake
        )
        self.held: dict[Change, tuple[bytes, bytes]] = {}
        self.held_tasks: dict[tuple[Listener, str], bytes] | None = None
        self._publisher: ChangePublisher | None = None
        self._listeners: Listeners | None = None
        # The parts that end something when the connection ends, in this order.
        self._in_end_order: tuple[EndingPart, ...] = (incoming, self.pings, outgoing, self.listings)
        self.tasks: TaskOwner | None = None
        self.task_subscriptions: TaskSubscriptions | None = None
        self.follower: TaskFollower | None = None
        if board is not None:
            self.tasks = TaskOwner(core, messages, outgoing, incoming, board)
            incoming.task_owner = self.tasks
            self.follower = TaskFollower(core, messages, outgoing, board.settings)
            responses.follower = self.follower
            self._in_end_order = (*self._in_end_order, self.tasks)
        core.parts = self
        self._drain = DrainTimer()
        # The kind of a message over the limit whose first bytes have no id; else None.
        self._overlong_kind: OutlineKind | None = None

    # -------------------------------------------------------------------------- from the transport

    def receive_message(
        self,
        message: bytes | bytearray | str,
        *,
        at: float | None = None,
        now: float | None = None,
    ) -> None:
        """Take one whole encoded message, for transports that keep messages apart."""
        if now is not None:
            self.core.tell(now)
        if at is not None and at.__class__ is not float:
            check_clock("at", at)
        self.core.at = at
        if isinstance(message, str):
            # Lone surrogates have no UTF-8 form: the decoder refuses these bytes.
            message = message.encode("utf-8", "surrogatepass")
        if len(message) > self.core.config.max_message_bytes:
            if message.startswith(BOM):
                self.note(BOM_NOTE)
            end = OverlongEnd(bytes(message[-TAIL_BYTES:]), len(message))
            self.receive_overlong(bytes(message[:HEAD_BYTES]), end)
        else:
            self.receive_whole(message)
        if self.core.needs_settle:
            self.core.settle()

    def receive_eof(
        self, *, drain: float = 0.0, at: float | None = None, now: float | None = None
    ) -> None:
        """End the input: the peer has ended its stream (see `Connection.receive_eof`)."""
        check_wait("drain", drain)
        if now is not None:
            self.core.tell(now)
        if at is not None and at.__class__ is not float:
            check_clock("at", at)
        self.core.at = at
        if self._listeners is not None:
            self._listeners.end_listeners(CancelCause.EOF)
        if (
            self.core.state is _OPEN
            and drain > 0
            and self.incoming.requests
            and self.core.now is not None
        ):
            self.core.state = STATES[self.core.state, StateTrigger.EOF_WITH_DRAIN]
            self.pings.stop_keep_alive()
            self.core.timers.arm(self, self._drain, self.core.now + drain)
            self.outgoing.lose(list(self.outgoing.calls.values()))
            self.listings.lose_idle()
        elif self.core.state is not State.DRAINING:
            cause = (
                CloseCause.SEND_FAILED if self.core.state is State.SEND_CLOSED else CloseCause.EOF
            )
            self.core.end(StateTrigger.EOF, cause, CancelCause.EOF)
        if self.core.needs_settle:
            self.core.settle()

    def send_failed(self, *, now: float | None = None) -> None:
        """End the output: writing to the peer has failed (see `Connection.send_failed`)."""
        if now is not None:
            self.core.tell(now)
        self.core.output.clear()
        self.core.unsent = 0
        if self.core.state is State.DRAINING:
            self.core.end(StateTrigger.SEND_FAILED, CloseCause.EOF, CancelCause.SEND_FAILED)
        elif self.core.state is _OPEN:
            self.core.state = STATES[self.core.state, StateTrigger.SEND_FAILED]
            self.held.clear()
            self.pings.stop_keep_alive()
            for request in list(self.incoming.requests.values()):
                self.incoming.cancel(request, CancelCause.SEND_FAILED)
            for task_id in list(self.incoming.tasks):  # their ends can no longer be sent
                self.incoming.finish_task(task_id)
            handed_over = self.outgoing.handed_over
            self.outgoing.lose(
                [
                    call
                    for call in self.outgoing.calls.values()
                    if call._order > handed_over or call.task_id is not None  # cannot be polled
                ]
            )
            self.listings.lose_idle()
        if self.core.needs_settle:
            self.core.settle()

    def handle_timeout(self, now: float) -> None:
        """Handle all deadlines up to `now`; without one, do nothing."""
        self.core.tell(now)
        if self.core.now is None:
            return  # the only time so far was NaN
        self.core.timers.fire(self.core.now)
        if self.core.needs_settle:
            self.core.settle()

    # ------------------------------------------------------------------------ from the application

    def cancel(
        self,
        call: OutgoingRequest | Listing | Ping | Start | Subscription,
        reason: str | None,
        meta: JSONObject | None,
        now: float | None,
    ) -> bool:
        """Cancel an open request, listing, ping or subscription; return whether it was open."""
        if not call.open:
            return False
        if isinstance(call, Listing) and self.listings.cancel_idle(call, now):
            return True
        inner = call if isinstance(call, OutgoingRequest) else call._call
        assert inner is not None  # an open handle has a request
        self.outgoing.cancel(inner, reason, meta, now)
        return True

    def close(self, *, now: float | None = None) -> None:
        """End the connection from this side. Output queued before may still be written."""
        if now is not None:
            self.core.tell(now)
        if self.core.state is _OPEN:
            if self._listeners is not None:
                self._listeners.complete()
            self.core.overflowing = False  # a result without room was dropped; the end goes on
        self.core.end(StateTrigger.CLOSE, CloseCause.CLOSED, CancelCause.CLOSED)
        if self.core.needs_settle:
            self.core.settle()

    # ------------------------------------------------------------------------------- to the caller

    def take_output(self) -> list[tuple[bytes, Route | None]]:
        """Take all queued output, each message with its route."""
        core = self.core
        output, core.output = core.output, []
        core.unsent = 0
        core.known_output = False
        self.outgoing.handed_over = self.outgoing.sent
        if self._publisher is not None and self.held:
            self._publisher.release_held()
            core.settle()
        if self.task_subscriptions is not None and self.held_tasks:
            self.task_subscriptions.release_held()
            core.settle()
        return output

    @property
    def open_requests(self) -> tuple[IncomingRequest, ...]:
        """The requests of the peer that still wait for a response from this side, oldest first."""
        waiting = self.incoming.open
        if self.tasks is not None:
            waiting = tuple(one for one in waiting if one._method not in TASK_PARTS)
        return waiting if self._listeners is None else self._listeners.without_acknowledged(waiting)

    # ------------------------------------------------------------------------ dispatch of messages

    def receive_whole(self, data: bytes | bytearray, route: Route | None = None) -> None:
        """Handle one message without framing; a byte order mark before it is noted (OWN-017)."""
        if data.startswith(BOM):
            self.note(BOM_NOTE)
            data = data[len(BOM) :]
        self.receive(data, route)

    def receive(self, data: bytes | bytearray, route: Route | None = None) -> None:
        """Decode one JSON text of the peer, and give the message to its part.

        For speed a request goes to its part from here, as `receive_object` would give it.
        """
        if self.core.state is not _OPEN and self.core.state is not State.SEND_CLOSED:
            return
        self.pings.heard_at = self.core.now
        self.core.events.message_came(len(data))
        try:
            if len(data) <= self.core.unlimited:
                value = self.core.codec.decode(data)
            else:
                value = self.core.decoder.decode(data)
        except (ValueError, RecursionError) as raised:
            error = refusal(raised)
            breach = Breach(error.rule, str(error), ErrorCode.PARSE_ERROR)
            self.incoming.refuse_unreadable(breach, route, excerpt=self.core.excerpt(data))
            return
        if type(value) is dict:
            method: Any = value.get("method")
            if type(method) is str and "id" in value and self.core.state is _OPEN:
                self.intake.receive_request(value, method, route, None)
            else:
                self.receive_object(value, route, None, data)
        elif type(value) is list:
            self.receive_batch(value, route, data)
        else:
            self.incoming.refuse_unreadable(NO_OBJECT, route, excerpt=self.core.excerpt(data))

    def receive_object(
        self,
        message: JSONObject,
        route: Route | None,
        batch: Batch | None,
        data: bytes | bytearray,
    ) -> None:
        """Give a JSON object to the part for its kind: request, notification or response."""
        method: Any = message.get("method")
        if type(method) is str:
            if "id" not in message:
                self.notifications.receive_notification(message, method)
            elif self.core.state is _OPEN:
                self.intake.receive_request(message, method, route, batch)
            else:
                self.core.events.append(
                    MessageIgnored(
                        rule="OWN-021",
                        text="a request came that cannot be answered, since sending has failed",
                        method=method,
                        id=message["id"],
                    )
                )
        elif "method" not in message and ("result" in message or "error" in message):
            self.responses.receive_response(message)
        else:
            self._receive_other(message, route, batch, data)

    def _receive_other(
        self,
        message: JSONObject,
        route: Route | None,
        batch: Batch | None,
        data: bytes | bytearray,
    ) -> None:
        """Handle an object that is no request, no notification and no response."""
        raw: Any = message.get("id")
        if "method" not in message and self._is_own_request_id(raw):
            self.responses.receive_response(
                message
            )  # an invalid response to a request of this side
            return
        self.incoming.refuse_unreadable(
            judge_unknown_object(message),
            route,
            excerpt=self.core.excerpt(data),
            raw_id=raw,
            batch=batch,
        )

    def _is_own_request_id(self, raw: object) -> bool:
        return (
            isinstance(raw, int | str) and not isinstance(raw, bool) and raw in self.outgoing.calls
        )

    def receive_batch(
        self, values: list[Any], route: Route | None, data: bytes | bytearray
    ) -> None:
        """Handle each message of a batch (2025-03-26).

        Keeps BATCH-002.
        """
        excerpt = self.core.excerpt(data)
        dialect = self.core.dialect_of_unreadable()
        breach = self.core.transport.judge_batch(values) if dialect.has_batches else None
        breach = breach or judge_batch(dialect, values)
        if breach is not None:
            self.incoming.refuse_unreadable(breach, route, excerpt=excerpt)
            return
        if len(values) > self.core.config.max_batch:
            text = f"a batch has {len(values)} messages; the limit is {self.core.config.max_batch}"
            self.incoming.refuse_unreadable(Breach("OWN-006", text), route, excerpt=excerpt)
            return
        batch = Batch()
        for value in values:
            if self.core.state is State.CLOSED:
                return  # an earlier message of the batch has ended the connection
            message: JSONValue = value
            if type(message) is not dict:
                self.incoming.refuse_unreadable(NO_OBJECT, route, excerpt=excerpt, batch=batch)
            elif message.get("method") == "initialize" and "id" in message:
                self.incoming.refuse_unreadable(
                    BATCHED_INITIALIZE,
                    route,
                    raw_id=message["id"],
                    batch=batch,
                )
            else:
                self.receive_object(message, route, batch, data)
        batch.complete = True
        self.incoming.flush_batch(batch, route)

    @property
    def listens(self) -> bool:
        """Whether messages of the peer are still handled."""
        return self.core.state is _OPEN or self.core.state is State.SEND_CLOSED

    def note(self, text: str) -> None:
        """Report bytes around a message that are tolerated, such as a blank line (OWN-017)."""
        if self.listens:
            self.core.report(Breach("OWN-017", text, tolerated=True))

    # --------------------------------------------------------------------- messages over the limit

    def receive_overlong(self, head: bytes, end: OverlongEnd | None = None) -> None:
        """Report a message over the limit, and end the request that it answers (OWN-001).

        Args:
            head: The first bytes of the message. They may hold its id.
            end: The last bytes, if the message has come as a whole: many peers write the id last.
        """
        self._overlong_kind = None
        if self.core.state is not _OPEN and self.core.state is not State.SEND_CLOSED:
            return
        limit = self.core.config.max_message_bytes
        size = f"more than {limit}" if end is None else str(end.size)
        kind, id = read_head(head)
        if end is not None and id is None and kind is not OutlineKind.UNKNOWN:
            id = read_tail(end.tail)
        call = self.responses.answered_by(id_key(id)) if kind is OutlineKind.ANSWER else None
        if call is not None:
            text = self.responses.overlong_text(call, size)
            self.responses.conclude_overlong(call, text)
            return
        text = f"a message has {size} bytes; the limit of Config.max_message_bytes is {limit}"
        if id is None and kind is not OutlineKind.CALL and (waiting := len(self.outgoing.calls)):
            which = "the one open request" if waiting == 1 else f"one of {waiting} open requests"
            text += f"; it may be the response to {which}; that request then gets no response"
        breach = Breach("OWN-001", text)
        excerpt = self.core.excerpt(head, over=limit)
        if end is None and id is None:
            self._overlong_kind = kind
        if self._overlong_kind is not None and kind is not OutlineKind.UNKNOWN:
            self.core.report(breach, excerpt=excerpt, code=breach.code)
        elif kind is OutlineKind.ANSWER:
            self.core.report(breach, excerpt=excerpt)
        else:
            self.incoming.refuse_unreadable(breach, None, excerpt=excerpt, raw_id=id)

    def overlong_ended(self, end: OverlongEnd) -> bool:
        """Handle the last bytes of a message that `receive_overlong` has reported.

        Returns:
            Whether the message may be the response to an open request of this side, and which
            request is unknown.
        """
        kind, self._overlong_kind = self._overlong_kind, None
        if kind is None:
            return False
        id = read_tail(end.tail) if kind is not OutlineKind.UNKNOWN else None
        if kind is OutlineKind.CALL:
            limit = self.core.config.max_message_bytes
            text = (
                f"a message has {end.size} bytes; the limit of Config.max_message_bytes is {limit}"
            )
            self.incoming.answer_unreadable(Breach("OWN-001", text), None, raw_id=id)
        elif (call := self.responses.answered_by(id_key(id))) is not None:
            self.responses.conclude_overlong(
                call, self.responses.overlong_text(call, str(end.size)), is_told=True
            )
        return kind is not OutlineKind.CALL and id is None

    # ---------------------------------------------------------------------- for all parts together

    def clock_started(self) -> None:
        """Start keep-alive: the caller has given the first time."""
        self.pings.clock_started()

    def fail_unsent(self) -> None:
        """End the requests of this side that could not be sent."""
        self.outgoing.fail_unsent()

    def part_for(self, method: str) -> MethodPart | None:
        """The part that answers a method, or acts when the application answers it; else None."""
        name = PARTS_BY_METHOD.get(method)
        return None if name is None else getattr(self, name)

    def end_parts(self, cause: CancelCause) -> None:
        """End all that is open in each part."""
        self.core.timers.drop(self._drain)
        for part in self._in_end_order:
            part.end(cause)

    def _timer_fired(self, subject: Timed) -> None:
        self.core.run_timer(self._expire, subject)

    def _expire(self, subject: Timed) -> None:
        """End the connection: the time for responses after the peer's end of stream is over."""
        self.core.end(StateTrigger.DRAINED, CloseCause.EOF, CancelCause.EOF)


class ClientMachine(Machine):
    """The parts of a client, with the part for its cache if it has one.

    Attributes:
        input_required: The next rounds of requests that the server answers with questions.
        subscriptions: Subscriptions of this client in the modern revision.
        handshake: `initialize`, in the legacy revisions.
        discovery: `start`, and `server/discover`.
    """

    __slots__ = ("discovery", "handshake", "input_required", "subscriptions")

    def __init__(
        self,
        core: Core,
        requires: Iterable[str],
        cache: CacheIdentity | None = None,
        board: TaskBoard | None = None,
    ) -> None:
        super().__init__(core, board)
        messages, outgoing = self.messages, self.outgoing
        self.input_required: InputRequiredClient = InputRequiredClient(core, messages, outgoing)
        self.subscriptions: ClientSubscriptions = ClientSubscriptions(
            core, messages, outgoing, self.incoming
        )
        self.handshake: ClientHandshake = ClientHandshake(core, outgoing, self.pings, requires)
        self.discovery: ClientDiscovery = ClientDiscovery(
            core, messages, outgoing, self.pings, self.handshake
        )
        self.responses.input_required = self.input_required
        self.responses.discovery = self.discovery
        self.notifications.subscriptions = self.subscriptions
        self.notifications.cancellations = self.subscriptions
        if cache is not None:
            from .caching.cached_responses import CachedResponses  # few programs have a cache

            cached = CachedResponses(core, cache)
            outgoing.cached = self.listings.cached = self.subscriptions.cached = cached
        if self.follower is not None:
            self.follower.input_required = self.input_required
            self.subscriptions.follower = self.follower

    def take_over(self, other: ClientMachine, calls: Collection[OutgoingRequest]) -> None:
        """Continue requests of another machine; they keep their ids, and no id is used again."""
        owners: dict[RequestOwner, RequestOwner] = {
            other.outgoing: self.outgoing,
            other.pings: self.pings,
            other.listings: self.listings,
        }
        for call in calls:
            call._owner = owners[call._owner]
            if isinstance(call._subject, Listing):
                self.listings.take_over(other.listings, call._subject)
        self.outgoing.take_over(other.outgoing, calls)


class ServerMachine(Machine):
    """The parts of a server.

    Attributes:
        input_required: Questions to the client before a response.
        handshake: The response to `initialize`.
        discovery: The response to `server/discover`.
        resource_subscriptions: Subscriptions of a legacy client to resources.
        listeners: Subscriptions of modern clients.
        publisher: Changes that the application publishes.
    """

    __slots__ = (
        "discovery",
        "handshake",
        "input_required",
        "listeners",
        "publisher",
        "resource_subscriptions",
    )

    def __init__(
        self, core: Core, instructions: str | None, board: TaskBoard | None = None
    ) -> None:
        super().__init__(core, board)
        incoming = self.incoming
        self.input_required: InputRequiredServer = InputRequiredServer(
            core, self.messages, self.outgoing, incoming, self.intake
        )
        self.handshake: ServerHandshake = ServerHandshake(core, incoming, self.pings, instructions)
        self.discovery: ServerDiscovery = ServerDiscovery(
            core, self.messages, incoming, instructions
        )
        resources = ResourceSubscriptions(core, incoming)
        self.resource_subscriptions: ResourceSubscriptions = resources
        self.listeners: Listeners = Listeners(core, self.messages, incoming, resources)
        self.publisher: ChangePublisher = ChangePublisher(core, resources, self.listeners)
        self._listeners, self._publisher = self.listeners, self.publisher
        if self.tasks is not None:
            subscriptions = TaskSubscriptions(core, self.tasks, self.listeners)
            self.task_subscriptions: TaskSubscriptions | None = subscriptions
            self.listeners.tasks = subscriptions
            self.held_tasks: dict[tuple[Listener, str], bytes] | None = subscriptions.held
            self._in_end_order = (subscriptions, *self._in_end_order)
        self._in_end_order = (resources, self.publisher, *self._in_end_order)
        self.held: dict[Change, tuple[bytes, bytes]] = self.publisher.held
        self.notifications.handshake = self.handshake
