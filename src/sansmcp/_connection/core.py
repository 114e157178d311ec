"""The core that all parts of a connection share: clock, events, output, state and ending."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from .._rules.conversation import Conversation, Peer
from .._rules.messages import (
    judge_capabilities,
    null_member,
)
from .._rules.sending import Breach, mistyped_member, null_members
from .._rules.state_tables import (
    STATES,
    Phase,
    State,
    StateTrigger,
)
from .._spec.errors import LocalProtocolError
from .._spec.methods import Dialect, OptionalMembers
from .._spec.modern_methods import MODERN_REVISION
from .._spec.registry import Registry
from .._spec.tasks import of_server, with_tasks
from .._wire.codec import BoundedDecoder, Codec
from .._wire.setting_checks import (
    check_clock,
    check_function,
    check_kind,
    check_object,
    names_in,
)
from .._wire.values import (
    JSONObject,
    JSONValue,
    RequestId,
    RequestKey,
    Side,
)
from .config import Config, config_of
from .events import (
    CancelCause,
    CloseCause,
    Event,
    EventQueue,
    FailureReason,
    LimitReached,
    ProtocolViolation,
)
from .handles import IncomingRequest, OutgoingRequest, Route
from .tasks.settings import Tasks
from .timers import Timed, Timers
from .transport import Transport

if TYPE_CHECKING:
    from .payloads import Payloads


class MethodPart:
    """A part that answers some methods itself, or acts when the application answers them.

    `PARTS_BY_METHOD` in `machine` lists the methods. The default of each step does nothing.
    """

    __slots__ = ()

    def take(self, request: IncomingRequest) -> bool:
        """Answer or refuse a request; return False to deliver it to the application instead."""
        return False

    def prepare_result(self, request: IncomingRequest, result: JSONObject) -> JSONObject:
        """The application's result as it is sent: without null members that count as absent."""
        return result

    def check_result(self, request: IncomingRequest, result: JSONObject) -> None:
        """Raise `LocalProtocolError` if the application's result breaks a rule of this part."""

    def accepted(self, request: IncomingRequest, result: JSONObject) -> None:
        """React to a request that is being answered with this result of the application."""

    def not_accepted(self, request: IncomingRequest) -> None:
        """React to a request that is being answered with an error, or was cancelled."""

    def reports_cancelled(
        self,
        request: IncomingRequest,
        cause: CancelCause,
        reason: str | None,
        meta: JSONObject | None,
    ) -> bool:
        """Whether this part has reported the cancellation with its own event."""
        return False


class Parts(Protocol):
    """The methods that the core calls on all parts of a connection together."""

    def clock_started(self) -> None:
        """React to the first time that the caller has given."""
        ...

    def fail_unsent(self) -> None:
        """End each request in `Core.unsent_calls`."""
        ...

    def end_parts(self, cause: CancelCause) -> None:
        """End every open request, listing, ping and subscription with its ending event."""
        ...

    def part_for(self, method: str) -> MethodPart | None:
        """The part that answers a method, or acts when the application answers it; else None."""
        ...


class Core:
    """The state that all parts of a connection share: clock, events, output and conversation.

    Verbs check first, then commit: a verb that raises has changed nothing.

    Attributes:
        side: The side that this connection plays; `other` is the side of the peer.
        config: Limits and policies of the application.
        registry: The methods and capabilities of the specification and of the extensions.
        codec: The JSON codec. `decoder` adds the limits on depth and on digits of integers.
        unlimited: A message of at most this many bytes cannot break a limit of `decoder`.
        checks_shape: Whether the members of params and results are checked.
        payloads: The object that judges params and results in full; None: they are not.
        info: The JSON of this side's `Implementation` object.
        capabilities: The capabilities of this side, for all revisions.
        revisions: The revisions that this side speaks, oldest first; `legacy_revisions` are those
            with a handshake, `modern_revisions` those without.
        peer: What is known of the other side.
        conversation: The state that a handshake or `server/discover` has agreed on.
        modern: On a server, the conversation of modern requests; else None.
        state: Which directions of the connection still work.
        events: The events that the application has not taken yet, oldest first.
        output: The encoded messages that the transport has not taken yet, each with its route.
        unsent: The size of `output`, in bytes.
        newline: The bytes that end each message in `output`.
        now: The largest time that the caller has given, in seconds; None before the first.
        at: The Unix time of the message that is being received, in seconds; None where the caller
            gave none.
        timers: The deadlines of all parts.
        requests: The open requests of the peer, by key. `IncomingRequests` maintains the table.
        transport: The object that handles the steps in which transports differ.
        parts: All parts together: the machine. It sets this as soon as it has made the parts, each
            of which needs the core before.
        wake: The application's callback for news (see `ClientConnection`), or None.
        waking: Whether `wake` is running.
        needs_settle: Whether a verb has to call `settle` at its end.
        known_output: Whether output was waiting when `settle` last looked; `known_events` and
            `known_deadline` are the same for events and for the earliest deadline.
        overflowing: Whether the output has gone over its hard limit; the verb ends the connection.
        refused: Whether a message larger than the hard limit was dropped during this verb.
        is_shared: Whether many clients share the connection. Request ids and progress tokens are
            then valid on their route only, and no state outlasts a request.
        last_breach: The last reported breach that was not tolerated.
        unsent_calls: Requests of this side that could not be sent, each with reason and text. They
            end when the verb is done. None before the first.
    """

    __slots__ = (
        "at",
        "capabilities",
        "checks_shape",
        "codec",
        "config",
        "conversation",
        "decoder",
        "events",
        "info",
        "is_shared",
        "known_deadline",
        "known_events",
        "known_output",
        "last_breach",
        "legacy_revisions",
        "modern",
        "modern_revisions",
        "needs_settle",
        "newline",
        "now",
        "other",
        "output",
        "overflowing",
        "parts",
        "payloads",
        "peer",
        "refused",
        "registry",
        "requests",
        "revisions",
        "side",
        "state",
        "timers",
        "transport",
        "unlimited",
        "unsent",
        "unsent_calls",
        "wake",
        "waking",
    )

    parts: Parts  # set by the machine

    def __init__(
        self,
        side: Side,
        transport: Transport,
        *,
        info: JSONObject,
        capabilities: JSONObject | None,
        revisions: Sequence[str],
        config: Config | None,
        wake: Callable[[], None] | None,
        newline: bytes,
        timers: Timers | None,
        tasks: Tasks | None = None,
    ) -> None:
        config = config_of(config)
        check_object("info", info)
        check_object("capabilities", capabilities, optional=True)
        check_function("wake", wake, optional=True)
        check_kind("tasks", tasks, Tasks, optional=True)
        registry = config.registry
        if tasks is not None:
            registry = with_tasks(registry)
            if side is Side.SERVER:
                capabilities = of_server(capabilities or {})
        self.registry: Registry = registry
        dialects = registry.dialects
        spoken = names_in("revisions", revisions)
        if not spoken or not all(revision in dialects for revision in spoken):
            raise ValueError(
                f"revisions must be some of {', '.join(dialects)}, not {list(spoken)!r}"
            )
        for member in ("name", "version"):
            if not isinstance(info.get(member), str):
                raise ValueError(f"info needs the member {member!r}, a string")
        self.transport: Transport = transport
        transport.core = self
        self.side: Side = side
        self.other: Side = side.other
        self.config: Config = config
        self.codec: Codec = config.codec
        self.decoder: BoundedDecoder = BoundedDecoder(
            config.codec, config.max_json_depth, config.max_integer_digits
        )
        self.unlimited: int = self.decoder.unlimited
        self.checks_shape: bool = config.check != "none"
        self.payloads: Payloads | None = None
        if config.check == "full":
            from .payloads import PAYLOADS  # the tables of all schemas: few programs need them

            self.payloads = PAYLOADS
        # Info and capabilities never change: encode them once, and keep no dict of the caller.
        self.info: bytes = self.encode(info)
        capabilities = registry.without_nulls(capabilities or {})
        self.capabilities: Any = self.codec.decode(self.encode(capabilities))
        self.revisions: tuple[str, ...] = tuple(sorted(spoken))
        self.peer: Peer = Peer()
        for breach in judge_capabilities(registry, None, capabilities):
            raise breach.error()
        gates = registry.open_gates(capabilities)
        self.legacy_revisions: tuple[str, ...] = tuple(
            name for name in self.revisions if not dialects[name].is_modern
        )
        self.modern_revisions: tuple[str, ...] = self.revisions[len(self.legacy_revisions) :]
        newest = (self.legacy_revisions or self.revisions)[-1]
        self.conversation: Conversation = Conversation(dialects[newest])
        self.conversation.gates[side] = gates
        self.modern: Conversation | None = None
        if self.modern_revisions and side is Side.SERVER:
            # A server that speaks both has both conversations, side by side.
            self.modern = Conversation(dialects[MODERN_REVISION], Phase.OPERATING)
            self.modern.gates[side] = gates
            # Each modern request carries its client's capabilities and is judged by them.
            self.modern.gates[side.other] = registry.every_gate
            if not self.legacy_revisions:
                self.conversation = self.modern
        self.state: State = State.OPEN
        self.events: EventQueue[Event] = EventQueue()
        self.output: list[tuple[bytes, Route | None]] = []
        self.unsent: int = 0
        self.newline: bytes = newline
        self.now: float | None = None
        self.at: float | None = None
        self.timers: Timers = Timers() if timers is None else timers
        self.wake: Callable[[], None] | None = wake
        self.waking: bool = False
        self.overflowing: bool = False
        self.refused: bool = False
        self.needs_settle: bool = wake is not None
        self.known_output: bool = False
        self.known_events: bool = False
        self.known_deadline: float | None = None
        self.is_shared: bool = False
        self.last_breach: Breach | None = None

        self.unsent_calls: list[tuple[OutgoingRequest, FailureReason, str]] | None = None
        self.requests: dict[RequestKey, IncomingRequest] = {}

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Copy all slots but `wake`: it belongs to the application of the original."""
        state = {name: getattr(self, name) for name in self.__slots__}
        state["wake"] = None
        return None, state

    # ----------------------------------------------------------------- time, and the end of a verb

    def tell(self, now: float) -> None:
        """Set the clock to the caller's time in seconds; an earlier time changes nothing."""
        if self.now is None:
            check_clock("now", now)
            if now == now:  # NaN is no time
                self.now = now
                self.parts.clock_started()
        elif now > self.now:
            self.now = now

    def run_timer(self, expire: Callable[[Any], None], subject: Timed) -> None:
        """Call `expire` for a deadline that has passed, between two steps of the transport."""
        self.transport.before_timer()
        expire(subject)
        self.transport.after_timer()

    def settle(self) -> bool:
        """Finish a verb: end what has overflowed or failed, then call `wake` if there is news.

        Returns:
            Whether every message of the verb was queued.
        """
        sent = self.transport.settle()
        if self.unsent_calls:
            self.parts.fail_unsent()
            self.needs_settle = self.wake is not None
        overflowed, refused = self.overflowing, self.refused
        if refused:
            self.refused = False
            self.needs_settle = self.wake is not None
        if overflowed:
            self.end_overflow()
        if self.wake is not None and not self.waking:
            while self._has_news():
                self.waking = True
                try:
                    self.wake()
                finally:
                    self.waking = False
        return self.transport.delivered() and sent and not (overflowed or refused)

    def _has_news(self) -> bool:
        """Whether output, an event or an earlier deadline has appeared since the last look."""
        deadline, earliest = self.known_deadline, self.timers.earliest()
        output, events = self.known_output, self.known_events
        self.known_output = bool(self.output)  # the methods that take output reset it
        self.known_events = bool(self.events)
        self.known_deadline = earliest
        return (
            self.known_output > output
            or self.known_events > events
            or (earliest is not None and (deadline is None or earliest < deadline))
        )

    # ---------------------------------------------------------------- checks before a verb commits

    def check_open(self, what: str) -> None:
        """Raise unless the connection may send; the error names `what`."""
        if self.state is not State.OPEN:
            self.refuse_to_send(what)

    def refuse_to_send(self, what: str) -> NoReturn:
        """Raise `LocalProtocolError`: `what` cannot be sent in this state."""
        raise LocalProtocolError("OWN-021", f"cannot send {what} while {self.state.name}")

    def check_belongs(self, request: IncomingRequest | None) -> None:
        """Raise if an open request belongs to another connection."""
        if request is not None and request.open and self.requests.get(request._key) is not request:
            raise LocalProtocolError("OWN-022", f"{request!r} belongs to another connection")

    def check_size(self, message: bytes, what: str) -> None:
        """Raise if a message of the application is larger than `Config.max_unsent_bytes`."""
        if len(message) > self.config.max_unsent_bytes:
            raise self.too_large(message, what)

    def too_large(self, message: bytes, what: str) -> LocalProtocolError:
        """The error for a message that is larger than `Config.max_unsent_bytes`."""
        size, limit = len(message), self.config.max_unsent_bytes
        text = f"{what} has {size} bytes; the limit of Config.max_unsent_bytes is {limit}"
        return LocalProtocolError("OWN-044", text)

    def is_refused(self, message: bytes, what: str) -> bool:
        """Whether a message is larger than `Config.max_unsent_bytes`; report it if so.

        Such a message can never be sent, even if the peer reads all output before it.
        """
        size, limit = len(message), self.config.max_unsent_bytes
        if size <= limit:
            return False
        text = (
            f"{what} has {size} bytes; the limit of Config.max_unsent_bytes is {limit}; "
            "it was not sent"
        )
        self.events.append(LimitReached(rule="OWN-044", text=text))
        self.refused = self.needs_settle = True
        return True

    # ------------------------------------------------------------------------------------ encoding

    def encode(self, value: JSONValue) -> bytes:
        """The JSON of a value; raises `LocalProtocolError` if it cannot be encoded."""
        try:
            return self.codec.encode(value)
        except (ValueError, TypeError, RecursionError) as error:
            raise self._no_json_form(error) from None

    def encode_object(self, value: JSONObject, meta: JSONObject | None) -> bytes:
        """The JSON of an object with `meta` merged into its `_meta`, without copying the object."""
        if not isinstance(value, dict):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LocalProtocolError("OWN-014", f"a JSON object is needed, not {value!r:.40}")
        own: Any = value.get("_meta")
        if own is None and not meta:
            try:
                return self.codec.encode(value)
            except (ValueError, TypeError, RecursionError) as error:
                raise self._no_json_form(error) from None
        for part in (own, meta):
            if part is not None and not isinstance(part, dict):
                raise LocalProtocolError("OWN-014", "_meta must be an object")
        if not meta:
            return self.encode(value)
        if "_meta" in value:
            return self.encode({**value, "_meta": {**(own or {}), **meta}})
        body = self.encode(value)
        separator = b"," if value else b""
        return b'%b%b"_meta":%b}' % (body[:-1], separator, self.encode(meta))

    def encode_id(self, id: RequestId) -> bytes:
        """The JSON of a request id."""
        return b"%d" % id if type(id) is int else self.encode(id)

    def method_bytes(self, method: str) -> bytes:
        """The JSON of a method name; raises `LocalProtocolError` if it is no string."""
        if not isinstance(method, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LocalProtocolError("OWN-014", f"a method is a string, not {method!r}")
        return self.encode(method)

    def capabilities_in(self, revision: str) -> bytes:
        """The JSON of this side's capabilities that exist in a revision."""
        return self.encode(self.registry.capabilities_in(revision, self.capabilities))

    @staticmethod
    def _no_json_form(error: Exception) -> LocalProtocolError:
        return LocalProtocolError("OWN-024", f"no JSON form: {error}")

    def revision_of(self, request: IncomingRequest | OutgoingRequest) -> str:
        """The revision whose rules hold for the params and the result of a request."""
        return MODERN_REVISION if request._is_modern else self.conversation.dialect.revision

    # ------------------------------------------------------------------------------------- reports

    def report(
        self,
        breach: Breach,
        *,
        excerpt: bytes | None = None,
        request: IncomingRequest | OutgoingRequest | None = None,
        code: int | None = None,
    ) -> None:
        """Report a breach of a rule by the peer."""
        if not breach.tolerated:
            self.last_breach = breach
        self.events.append(
            ProtocolViolation(
                rule=breach.rule,
                text=breach.text,
                tolerated=breach.tolerated,
                excerpt=excerpt,
                request=request,
                code=code,
            )
        )

    def excerpt(self, data: bytes | bytearray, *, over: int | None = None) -> bytes:
        """The start of a bad message, for an event.

        Args:
            data: The message, or its start.
            over: The least size of the message in bytes, where only the start was kept.
        """
        return self.transport.excerpt(data, over)

    def drop_invalid(
        self,
        optional: OptionalMembers,
        members: JSONObject,
        request: OutgoingRequest | None = None,
    ) -> None:
        """Remove and report optional members that are null or have the wrong type.

        For messages that cannot be refused (notifications, some results): their other members are
        still used.
        """
        self.drop_nulls(optional, members, request)
        while (odd := mistyped_member(optional, members)) is not None:
            del members[odd]
            breach = Breach("OWN-014", f"{odd} has the wrong type", tolerated=True)
            self.report(breach, request=request)

    def drop_nulls(
        self,
        optional: OptionalMembers,
        members: JSONObject,
        request: OutgoingRequest | None = None,
    ) -> None:
        """Remove and report optional members that are null."""
        for name in null_members(optional, members):
            del members[name]
            self.report(null_member(name), request=request)

    def accept_capabilities(self, revision: str, capabilities: JSONObject) -> JSONObject:
        """The peer's capabilities without null members; report each breach in them."""
        for breach in judge_capabilities(self.registry, revision, capabilities):
            self.report(breach)
        return self.registry.without_nulls(capabilities)

    def dialect_of_unreadable(self) -> Dialect:
        """The revision whose forms an error response to an unreadable message follows.

        The agreed revision, or else the newest that this side speaks.
        """
        conversation = self.conversation
        if conversation.agreed:
            return conversation.dialect
        return self.registry.dialects[self.revisions[-1]]

    # --------------------------------------------------- the end of requests and of the connection

    def fail_later(self, call: OutgoingRequest, reason: FailureReason, text: str) -> None:
        """Remember that a request of this side could not be sent; it ends when the verb is done."""
        if self.unsent_calls is None:
            self.unsent_calls = []
        self.unsent_calls.append((call, reason, text))
        self.needs_settle = True

    def end(self, trigger: StateTrigger, cause: CloseCause, cancel: CancelCause) -> None:
        """End the connection: each open request gets its ending, then the last event follows."""
        if self.state is State.CLOSED or self.transport.keeps_open(cause):
            return
        self.state = STATES[self.state, trigger]
        self.end_parts(cancel)
        self.transport.closed(cause)

    def end_parts(self, cause: CancelCause) -> None:
        """End all that is open in the parts."""
        self.parts.end_parts(cause)

    def end_overflow(self) -> None:
        """End the connection because the peer does not read and the output is over its limit."""
        self.overflowing = False
        self.transport.overflow_begins()
        self.needs_settle = self.wake is not None
        self.events.append(
            ProtocolViolation(
                rule="OWN-012",
                text=f"the peer does not read: {self.unsent} bytes wait, and the limit is "
                f"{self.config.max_unsent_bytes}",
                fatal=True,
            )
        )
        self.end(StateTrigger.CLOSE, CloseCause.OVERFLOW, CancelCause.FAILED)
        self.transport.overflow_ended()
