"""The ground that every layer of the machine stands on: clock, events, output, ending."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .._rules.conversation import Conversation, Peer
from .._rules.messages import judge_capabilities
from .._rules.sending import Breach
from .._rules.state_tables import STATES, Phase, State, StateTrigger
from .._spec.errors import LocalProtocolError
from .._spec.methods import Dialect
from .._spec.modern_methods import MODERN_REVISION
from .._wire.codec import BoundedDecoder
from .._wire.framing import excerpt_of
from .._wire.setting_checks import check_clock, check_function, check_object, names_in
from .._wire.values import JSONObject, JSONValue, RequestId, RequestKey, Side
from .config import Config, config_of
from .events import (
    CancelCause,
    CloseCause,
    ConnectionClosed,
    Event,
    EventQueue,
    LimitReached,
    ProtocolViolation,
)
from .handles import IncomingRequest, OutgoingRequest, Route
from .timers import Timers


class Core:
    """State and primitives. Verbs check first, then commit: what raises has changed nothing.

    Every layer has slots: with this many attributes an instance dictionary would be large and,
    on CPython, out of reach of the shortcuts for attributes and methods.
    """

    __slots__ = (
        "__weakref__",
        "_at",
        "_capabilities",
        "_codec",
        "_config",
        "_conversation",
        "_decoder",
        "_events",
        "_handed_over",
        "_incoming",
        "_info",
        "_legacy_revisions",
        "_modern",
        "_modern_revisions",
        "_newline",
        "_now",
        "_other",
        "_output",
        "_overflowing",
        "_peer",
        "_refused",
        "_registry",
        "_restless",
        "_revisions",
        "_shape",
        "_side",
        "_state",
        "_timers",
        "_told_deadline",
        "_told_events",
        "_told_output",
        "_unlimited",
        "_unsent",
        "_wake",
        "_waking",
    )

    def __init__(
        self,
        side: Side,
        *,
        info: JSONObject,
        capabilities: JSONObject | None,
        revisions: Sequence[str],
        config: Config | None,
        wake: Callable[[], None] | None,
        newline: bytes,
        timers: Timers | None,
    ) -> None:
        config = config_of(config)
        check_object("info", info)
        check_object("capabilities", capabilities, optional=True)
        check_function("wake", wake, optional=True)
        self._registry = registry = config.registry
        dialects = registry.dialects
        spoken = names_in("revisions", revisions)
        if not spoken or not all(revision in dialects for revision in spoken):
            raise ValueError(
                f"revisions must be some of {', '.join(dialects)}, not {list(spoken)!r}"
            )
        for member in ("name", "version"):
            if not isinstance(info.get(member), str):
                raise ValueError(f"info needs the member {member!r}, a string")
        self._side = side
        self._other = side.other
        self._config = config
        self._codec = config.codec
        self._decoder = BoundedDecoder(
            config.codec, config.max_json_depth, config.max_integer_digits
        )
        self._unlimited = self._decoder.unlimited
        self._shape = config.check == "shape"
        # What we say of ourselves never changes; the caller's dicts are not kept.
        self._info = self._encode(info)
        capabilities = registry.without_nulls(capabilities or {})
        self._capabilities: Any = self._codec.decode(self._encode(capabilities))
        self._revisions = tuple(sorted(spoken))
        self._peer = Peer()
        for breach in judge_capabilities(registry, None, capabilities):
            raise breach.error()
        gates = registry.open_gates(capabilities)
        self._legacy_revisions = tuple(
            name for name in self._revisions if not dialects[name].is_modern
        )
        self._modern_revisions = self._revisions[len(self._legacy_revisions) :]
        newest = (self._legacy_revisions or self._revisions)[-1]
        self._conversation = Conversation(dialects[newest])
        self._conversation.gates[side] = gates
        self._modern: Conversation | None = None
        if self._modern_revisions and side is Side.SERVER:
            # A server that speaks both has both conversations, side by side.
            self._modern = Conversation(dialects[MODERN_REVISION], Phase.OPERATING)
            self._modern.gates[side] = gates
            # What clients declare stands in their requests, and is judged with each of them.
            self._modern.gates[side.other] = registry.every_gate
            if not self._legacy_revisions:
                self._conversation = self._modern
        self._state = State.OPEN
        self._events: EventQueue[Event] = EventQueue()
        self._output: list[tuple[bytes, Route | None]] = []
        self._unsent = 0
        self._incoming: dict[RequestKey, IncomingRequest] = {}  # what the peer has asked
        self._handed_over = 0
        self._newline = newline
        self._now: float | None = None
        self._at: float | None = None  # of what is being received, in Unix seconds
        self._timers = Timers() if timers is None else timers
        self._wake = wake
        self._waking = False
        self._overflowing = False
        self._refused = False  # a message that would never fit was not queued
        self._restless = wake is not None
        self._told_output = False
        self._told_events = False
        self._told_deadline: float | None = None

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """All state is plain data, except the caller's `wake`, which copies do without."""
        names = [name for cls in type(self).__mro__ for name in cls.__dict__.get("__slots__", ())]
        state = {name: getattr(self, name) for name in names if name != "__weakref__"}
        state["_wake"] = None
        return None, state

    # ---------------------------------------------------------------------------------- time

    def _tell(self, now: float) -> None:
        if self._now is None:
            check_clock("now", now)
            if now == now:  # NaN is no time
                self._now = now
                self._clock_started()
        elif now > self._now:
            self._now = now

    def _clock_started(self) -> None:
        """The caller has told the time for the first time."""

    # ---------------------------------------------------------------------------------- wake

    def _settle(self) -> bool:
        """The last act of a verb: end what has overflowed, then run `wake` if there is news.

        Returns:
            Whether everything that the verb wanted to send was queued.
        """
        overflowed, refused = self._overflowing, self._refused
        if refused:
            self._refused = False
            self._restless = self._wake is not None
        if overflowed:
            self._end_overflow()
        if self._wake is not None and not self._waking:
            while self._has_news():
                self._waking = True
                try:
                    self._wake()
                finally:
                    self._waking = False
        return not (overflowed or refused)

    def _has_news(self) -> bool:
        """Whether output, an event or an earlier deadline appeared where none was."""
        deadline, earliest = self._told_deadline, self._timers.earliest()
        output, events = self._told_output, self._told_events
        self._told_output = bool(self._output)  # taking output or events makes these False again
        self._told_events = bool(self._events)
        self._told_deadline = earliest
        return (
            self._told_output > output
            or self._told_events > events
            or (earliest is not None and (deadline is None or earliest < deadline))
        )

    # -------------------------------------------------------------------------------- output

    def _encode(self, value: JSONValue) -> bytes:
        try:
            return self._codec.encode(value)
        except (ValueError, TypeError, RecursionError) as error:
            raise self._no_json_form(error) from None

    def _method_bytes(self, method: str) -> bytes:
        if not isinstance(method, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LocalProtocolError("OWN-014", f"a method is a string, not {method!r}")
        return self._encode(method)

    def _dialect_of_unreadable(self) -> Dialect:
        """Whose forms decide on what cannot be read: the agreed revision, or else the newest."""
        conversation = self._conversation
        if conversation.agreed:
            return conversation.dialect
        return self._registry.dialects[self._revisions[-1]]

    def _capabilities_in(self, revision: str) -> bytes:
        """Our own capabilities, as far as this revision has them."""
        return self._encode(self._registry.capabilities_in(revision, self._capabilities))

    def _encode_id(self, id: RequestId) -> bytes:
        return b"%d" % id if type(id) is int else self._encode(id)

    @staticmethod
    def _no_json_form(error: Exception) -> LocalProtocolError:
        return LocalProtocolError("OWN-024", f"no JSON form: {error}")

    def _encode_object(self, value: JSONObject, meta: JSONObject | None) -> bytes:
        """The JSON of an object with `meta` merged into its `_meta`, without copying the object."""
        if not isinstance(value, dict):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LocalProtocolError("OWN-014", f"a JSON object is needed, not {value!r:.40}")
        own: Any = value.get("_meta")
        if own is None and not meta:
            try:
                return self._codec.encode(value)
            except (ValueError, TypeError, RecursionError) as error:
                raise self._no_json_form(error) from None
        for part in (own, meta):
            if part is not None and not isinstance(part, dict):
                raise LocalProtocolError("OWN-014", "_meta must be an object")
        if not meta:
            return self._encode(value)
        if "_meta" in value:
            return self._encode({**value, "_meta": {**(own or {}), **meta}})
        body = self._encode(value)
        separator = b"," if value else b""
        return b'%b%b"_meta":%b}' % (body[:-1], separator, self._encode(meta))

    def _queue(self, message: bytes, route: Route | None) -> None:
        """Put one encoded message (newline included) in line.

        Over the hard limit it is dropped and only a mark is set: the connection ends when the verb
        or the message that caused it is done, so that nothing ends in the midst of something else.
        A message that is over the limit by itself is dropped alone.
        """
        unsent = self._unsent + len(message)
        if unsent > self._config.max_unsent_bytes:
            if not self._is_refused(message, "a message"):
                self._overflowing = self._restless = True
            return
        self._unsent = unsent
        self._output.append((message, route))

    def _is_refused(self, message: bytes, what: str) -> bool:
        """Whether a message would never fit, however much the peer reads: then it is reported."""
        size, limit = len(message), self._config.max_unsent_bytes
        if size <= limit:
            return False
        text = (
            f"{what} has {size} bytes; the limit of Config.max_unsent_bytes is {limit}; "
            "it was not sent"
        )
        self._events.append(LimitReached(rule="OWN-044", text=text))
        self._refused = self._restless = True
        return True

    def _check_size(self, message: bytes, what: str) -> None:
        """Raise for a message of the caller that would never fit."""
        if len(message) > self._config.max_unsent_bytes:
            raise self._too_large(message, what)

    def _too_large(self, message: bytes, what: str) -> LocalProtocolError:
        """What is raised for a message of the caller that would never fit."""
        size, limit = len(message), self._config.max_unsent_bytes
        text = f"{what} has {size} bytes; the limit of Config.max_unsent_bytes is {limit}"
        return LocalProtocolError("OWN-044", text)

    def _end_overflow(self) -> None:
        self._overflowing = False
        self._restless = self._wake is not None
        self._events.append(
            ProtocolViolation(
                rule="OWN-012",
                text=f"the peer does not read: {self._unsent} bytes wait, and the limit is "
                f"{self._config.max_unsent_bytes}",
                fatal=True,
            )
        )
        self._end(StateTrigger.CLOSE, CloseCause.OVERFLOW, CancelCause.FAILED)

    def _choked(self, route: Route | None) -> bool:
        """Whether output that may be dropped is to be dropped, on this way to the peer."""
        return self._unsent > self._config.soft_unsent_bytes

    # -------------------------------------------------------------------------------- events

    def _declared(self, revision: str, capabilities: JSONObject) -> JSONObject:
        """The peer's capabilities as they count; what is odd about them is reported."""
        for breach in judge_capabilities(self._registry, revision, capabilities):
            self._report(breach)
        return self._registry.without_nulls(capabilities)

    def _report(
        self,
        breach: Breach,
        *,
        excerpt: bytes | None = None,
        request: IncomingRequest | OutgoingRequest | None = None,
        code: int | None = None,
    ) -> None:
        self._events.append(
            ProtocolViolation(
                rule=breach.rule,
                text=breach.text,
                tolerated=breach.tolerated,
                excerpt=excerpt,
                request=request,
                code=code,
            )
        )

    def _excerpt(self, data: bytes | bytearray, *, over: int | None = None) -> bytes:
        """The start of a bad message, as events show it."""
        return excerpt_of(data, over=over)

    # -------------------------------------------------------------------------------- ending

    def _check_ours(self, request: IncomingRequest | None) -> None:
        """What goes out about a request goes where it came from."""
        if request is not None and request.open and self._incoming.get(request._key) is not request:
            raise LocalProtocolError("OWN-022", f"{request!r} belongs to another connection")

    def _may_send(self, what: str) -> None:
        if self._state is not State.OPEN:
            self._refuse_to_send(what)

    def _refuse_to_send(self, what: str) -> NoReturn:
        raise LocalProtocolError("OWN-021", f"cannot send {what} while {self._state.name}")

    def _end(self, trigger: StateTrigger, cause: CloseCause, cancel: CancelCause) -> None:
        """Everything is over: each request gets its ending, then the connection its last event."""
        if self._state is State.CLOSED:
            return
        self._state = STATES[self._state, trigger]
        self._end_requests(cancel)
        self._closed(cause)

    def _closed(self, cause: CloseCause) -> None:
        """All that was open has had its ending."""
        self._events.append(ConnectionClosed(cause=cause))

    def _end_requests(self, cause: CancelCause) -> None:
        """Each layer ends the requests that it knows."""
