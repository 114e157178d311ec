"""The server's end of conversations over HTTP, where every request may have a way of its own.

A session has a connection of its own. All that needs none, modern requests above all, goes through
one connection for many clients: a connection for each of these would cost more than all the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..._connection.config import Config
from ..._connection.core import Core
from ..._connection.events import CancelCause, CloseCause, FailureReason, NotificationReceived
from ..._connection.handles import Batch, IncomingRequest, OutgoingRequest
from ..._connection.machine import ServerMachine
from ..._connection.transport import Transport
from ..._rules.conversation import Peer
from ..._rules.messages import judge_posted_batch
from ..._rules.sending import Breach
from ..._rules.state_tables import StateTrigger
from ..._spec.errors import ErrorCode
from ..._wire.values import JSONObject, JSONValue, RequestId, Side, table_key
from .events import MessageUndelivered, SessionEnd
from .statuses import error_status, refusal_status
from .streams import Stream

if TYPE_CHECKING:
    from .endpoint import ServerEndpoint
    from .exchange import ServerExchange
    from .sessions import Session

_NO_STREAM: Final = "no stream of the client is open on which {} could be sent"


class RoutedConnection(Transport):
    """What connections of sessions and shared ones have in common: each message has a route.

    It is the transport of its machine: the machine says what happens to a request, and this decides
    what that means for the exchange that the request came on.

    Attributes:
        endpoint: The endpoint that it belongs to.
        machine: The parts of the connection.
        sender: The exchange of what is no request, while that is received.
    """

    __slots__ = ("_asking", "_undelivered", "endpoint", "machine", "sender")

    core: Core  # which sets it

    def __init__(
        self,
        endpoint: ServerEndpoint,
        *,
        info: JSONObject,
        capabilities: JSONObject | None,
        instructions: str | None,
        revisions: Sequence[str],
        config: Config,
    ) -> None:
        self.endpoint: ServerEndpoint = endpoint
        core = Core(
            Side.SERVER,
            self,
            info=info,
            capabilities=capabilities,
            revisions=revisions,
            config=config,
            wake=None,
            newline=b"",
            timers=endpoint._timers,
        )
        events: Any = endpoint._events  # of all connections, and with some that only it has
        core.events = events
        self.machine: ServerMachine = ServerMachine(core, instructions)
        self.sender: ServerExchange | None = None
        self._asking: OutgoingRequest | None = None  # which is being queued
        self._undelivered = False

    # -------------------------------------------------------------------------------- output

    def _lost(self, route: Any) -> None:
        """Nobody will read a message that was for this route.

        Keeps OWN-032.
        """
        self._undelivered = self.core.needs_settle = True
        is_answer = route.closing and not route.over
        if self._asking is None:
            self.endpoint._events.append(
                MessageUndelivered(session=self.core.peer.session, is_answer=is_answer)
            )
        if is_answer:
            route.finish()

    def _finish_without(self, route: Any) -> None:
        """A message would never fit: where it was the last one of its exchange, that ends."""
        if route.closing and not route.over:
            route.finish(503, route.request_id)

    def settle(self) -> bool:
        """Nothing is left to be done but what the core does."""
        self.core.needs_settle = False
        return True

    def delivered(self) -> bool:
        """Whether all that the verb queued has found a reader, or waits for one."""
        delivered, self._undelivered = not self._undelivered, False
        return delivered

    def before_send(self, call: OutgoingRequest) -> None:
        """A request is about to be queued: whether it finds a reader is seen by then."""
        self._asking, self._undelivered = call, False

    def after_send(self, call: OutgoingRequest) -> None:
        """A request was queued. Without a reader it ends when the verb is done."""
        self._asking = None
        if self._undelivered:
            self._undelivered = False
            self.lose(call)

    def lose(self, call: OutgoingRequest) -> None:
        """End a request that no client will read, when the verb is done."""
        reason = FailureReason.NO_STREAM
        self.core.fail_later(call, reason, _NO_STREAM.format(call._method))

    @property
    def asking(self) -> OutgoingRequest | None:
        """The request of the server that is being queued."""
        return self._asking

    def send_log(
        self,
        level: str,
        data: JSONValue,
        logger: str | None,
        meta: JSONObject | None,
        request: IncomingRequest | None,
    ) -> bool:
        """Send a log message to the client; return whether it was queued."""
        return self.machine.notifications.send_log(level, data, logger, meta, request, None)

    # ------------------------------------------------------------------------------ answering

    def request_answered(self, request: IncomingRequest) -> None:
        """What follows on the route of a request is its answer."""
        self.endpoint._held.bytes -= request._held_bytes
        if request._batch is None:
            route: Any = request._route
            route.closing = True
            route.request_id = request._id

    def batch_answered(self, batch: Batch, route: Any) -> None:
        """What follows on the route of a batch is its answer."""
        route.closing = True

    def answer_replaced(self, request: IncomingRequest) -> None:
        """An error goes out instead of an answer: it has a status of its own."""
        if request._batch is None:
            route: Any = request._route
            route.status = error_status(ErrorCode.INTERNAL_ERROR, request._is_modern)

    def request_cancelled(self, request: IncomingRequest, cause: CancelCause) -> None:
        """End the exchange of a cancelled request, with 503 where this server closes."""
        route: Any = request._route
        if not route.closing or route.over:
            return
        if cause is CancelCause.PEER or self._is_left():
            route.finish()
        else:  # one id, or for a batch none, since no single request is meant
            route.finish(503, request._id if request._batch is None else None)

    def _is_left(self) -> bool:
        """Whether the client itself has ended the conversation that its requests belong to."""
        return False

    # ------------------------------------------------------------------------------- refusing

    def request_refused(self, request: IncomingRequest, code: int) -> None:
        """The status of an error of the library."""
        if request._batch is None:
            route: Any = request._route
            route.status = refusal_status(code, request._is_modern)

    def duplicate_refused(self, raw: RequestId, route: Any, batch: Batch | None) -> None:
        """Answer the POST of a duplicate without the id, which would answer the first request."""
        if batch is None:
            text = f"the id {raw!r} is in use"[:300]
            body = self.machine.incoming.error_bytes(ErrorCode.INVALID_REQUEST, text)
            route.refuse(400, b'{"jsonrpc":"2.0","error":%b}' % body)

    def answers_unreadable(
        self, breach: Breach, route: Any, raw_id: Any, batch: Batch | None
    ) -> bool:
        """Answer the POST of what is no message, with the id if that could be read."""
        if batch is not None:
            return False
        key = table_key(raw_id)
        is_named = key is not None and key not in self.core.requests
        id = b'"id":%b,' % self.core.encode(raw_id) if is_named else b""
        body = self.machine.incoming.error_bytes(breach.code, breach.text)
        route.refuse(400, b'{"jsonrpc":"2.0",%b"error":%b}' % (id, body))
        return True

    def judge_batch(self, values: list[Any]) -> Breach | None:
        """A batch that is POSTed holds requests and notifications, or responses (BATCH-004)."""
        return judge_posted_batch(values)

    # -------------------------------------------------------------------------- notifications

    def deliver_notification(self, method: str, params: JSONObject) -> None:
        """Report a notification with the context of the exchange that brought it."""
        assert self.sender is not None
        self.core.events.append(
            NotificationReceived(
                method=method,
                params=params,
                peer=self._peer_of(self.sender),
                context=self.sender.context,
            )
        )

    def _peer_of(self, _exchange: ServerExchange) -> Peer:
        return self.core.peer

    # ---------------------------------------------------------------------------------- time

    def before_timer(self) -> None:
        """A timer of the connection is about to fire."""
        self.core.now = self.endpoint._now


class SessionConnection(RoutedConnection):
    """The connection of one session; each of its requests is the route of its own stream.

    Attributes:
        session: The session.
    """

    __slots__ = ("_overflowed", "_overflowing", "session")

    session: Session  # which sets it

    def __init__(self, endpoint: ServerEndpoint, **settings: Any) -> None:
        super().__init__(endpoint, **settings)
        self._overflowed: Any = None  # the route of what was too much
        self._overflowing: list[Stream] = []  # while everything ends because of it
        # What the server says of itself is the same in all sessions: kept once, it is a third less
        # for each of them.
        core, whole = self.core, endpoint._whole_connection.core
        core.info, core.capabilities = whole.info, whole.capabilities
        core.decoder = whole.decoder
        core.conversation.gates[core.side] = whole.conversation.gates[core.side]

    # -------------------------------------------------------------------------------- output

    def queue(self, message: bytes, route: Any) -> None:
        """Write a message to the stream of its request, or to the standalone stream."""
        core = self.core
        where = self.session._standalone if route is None else route
        if core.unsent + len(message) > core.config.max_unsent_bytes:
            if core.is_refused(message, "a message"):
                self._finish_without(where)
            else:
                core.overflowing = core.needs_settle = True
                self._overflowed = where
        elif not where.deliver(message):
            self._lost(where)

    def is_congested(self, route: Any) -> bool:
        """Whether output that may be dropped is to be dropped, on this stream."""
        where = self.session._standalone if route is None else route
        return super().is_congested(route) or not where.takes()

    def holds_changes(self) -> bool:
        """Changes wait for a stream that is open, and for room."""
        return super().is_congested(None) or self.session._standalone.connected is None

    def answer_replaced(self, request: IncomingRequest) -> None:
        """There is no session without the answer to `initialize`."""
        if request._method == "initialize":
            self.core.overflowing = self.core.needs_settle = True
        super().answer_replaced(request)

    def before_send(self, call: OutgoingRequest) -> None:
        """A request that belongs to none of the client goes to the standalone stream."""
        if call._route is None:
            call._route = self.session._standalone  # by which the endpoint finds this connection
        super().before_send(call)

    def cancellation(self, call: OutgoingRequest, message: bytes | None) -> bytes | None:
        """A cancellation goes where it can still arrive."""
        route: Any = call._route
        if route.over or not route.takes():
            call._route = self.session._standalone
        return message

    def taken(self, size: int) -> None:
        """So many bytes were taken off an exchange."""
        self.core.unsent -= size
        self.release_changes()

    def waits(self, size: int) -> None:
        """So many bytes wait to be taken off an exchange."""
        self.core.unsent += size

    def release_changes(self) -> None:
        """What waits for a stream, or for room on it, follows as soon as there is some."""
        publisher = self.machine.publisher
        if publisher.held and not self.holds_changes():
            publisher.release_held()
            if self.core.needs_settle:
                self.core.settle()

    def overflow_begins(self) -> None:
        """Drop what nobody reads, before the endings: what these say is to be sent."""
        routes: list[Any] = [request._route for request in self.core.requests.values()]
        routes += [*self.session._standalone.listening, self._overflowed]
        self._overflowing = [route for route in routes if isinstance(route, Stream)]
        self.machine.publisher.held.clear()
        for stream in self._overflowing:
            if stream.exchange is not None:
                stream.exchange._drop()

    def overflow_ended(self) -> None:
        """Finish the streams whose own answer was too much."""
        streams, self._overflowing = self._overflowing, []
        for stream in streams:
            if not stream.over:
                stream.finish(503, stream.request_id)

    # --------------------------------------------------------------------- opening and ending

    def _is_left(self) -> bool:
        return self.session._end is SessionEnd.DELETED

    def server_agreed(self, request: IncomingRequest) -> None:
        """The session begins with the answer to `initialize`."""
        self.session._table.started(self.session, request)

    def subscribed(self, uri: str) -> None:
        """File the session under a resource that its client is subscribed to."""
        self.session._table.file(uri, self)

    def unsubscribed(self, uris: Collection[str]) -> None:
        """Take the session out of the files of these resources."""
        for uri in uris:
            self.session._table.unfile(uri, self)

    def closed(self, cause: CloseCause) -> None:
        """The session is over; its own event says so."""
        self.session._table.over(self.session)

    def end_all(self) -> None:
        """End everything that is open in the session."""
        self.core.now = self.endpoint._now
        self.core.end(StateTrigger.CLOSE, CloseCause.CLOSED, CancelCause.CLOSED)

    # ------------------------------------------------------------------- clients of 2024-11-05

    def duplicate_refused(self, raw: RequestId, route: Any, batch: Batch | None) -> None:
        """A client of 2024-11-05 hears nothing by its POST."""
        if not self.session._is_old:
            super().duplicate_refused(raw, route, batch)

    def answers_unreadable(
        self, breach: Breach, route: Any, raw_id: Any, batch: Batch | None
    ) -> bool:
        """A client of 2024-11-05 is answered on its stream."""
        return not self.session._is_old and super().answers_unreadable(breach, route, raw_id, batch)
