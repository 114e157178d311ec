"""What all parts of an endpoint share: clock, events, output that is ready, memory, settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import attrs

from ..._connection.config import Config
from ..._connection.events import EventQueue, LimitReached, ProtocolViolation
from ..._connection.timers import Timers
from ..._rules.sending import Breach
from ..._spec.errors import ErrorCode
from ..._wire.codec import BoundedDecoder
from ..._wire.setting_checks import check_clock
from ..._wire.values import MISSING, JSONObject, JSONValue, Missing, Record, RequestId
from .bodies import HeldMemory
from .modern_headers import ToolSchema
from .sessions import OldPaths, Sessions

VERSION_FIELD: Final = b"mcp-protocol-version"
SESSION_FIELD: Final = b"mcp-session-id"
ASSUMED: Final = b"2025-03-26"
"""The revision of a request that does not name one: the last revision without a header for it."""


@attrs.frozen(kw_only=True)
class Service(Record):
    """What an endpoint serves, as it was set up: this never changes.

    Attributes:
        revisions: The revisions that are served, oldest first.
        legacy_revisions: Those with sessions and a handshake.
        modern_revisions: Those from 2026-07-28 on.
        sessions: How sessions are kept; None: there are none.
        streams: Whether there are streams that outlast a request.
        answers: Whether a response is a stream only where it has to be, or wherever it can be.
        tool_schema: Gives the `inputSchema` of a tool; None: `Mcp-Param-*` headers are not checked.
        old_paths: Where clients of 2024-11-05 are served; None: nowhere.
        asks_tool_schema: Whether the application is asked for schemas of tools by an event.

    Raises:
        ValueError: Some of these contradict each other.
    """

    revisions: tuple[str, ...]
    legacy_revisions: tuple[str, ...]
    modern_revisions: tuple[str, ...]
    sessions: Sessions | None = None
    streams: bool = True
    answers: Literal["auto", "sse"] = "auto"
    tool_schema: ToolSchema | None = None
    old_paths: OldPaths | None = None
    asks_tool_schema: bool = False

    def __attrs_post_init__(self) -> None:
        """Sessions need a legacy revision, and paths of 2024-11-05 need sessions and streams."""
        if self.sessions is not None and not self.legacy_revisions:
            raise ValueError(f"revisions {', '.join(self.revisions)} have no sessions")
        if self.old_paths is not None and (self.sessions is None or not self.streams):
            raise ValueError("old_paths need sessions, and streams")


class ServerEndpointCore:
    """What all parts of an endpoint share: clock, events, output that is ready, and memory.

    Attributes:
        at: The time in Unix seconds of the body that is being received; None where it was not told.
        closing: Whether the endpoint was closed: nothing is served any more.
        config: Limits and policies.
        decoder: Decodes bodies within these limits.
        events: What the application has not taken yet, oldest first, of all transports.
        held: How much memory requests hold.
        keep_alive: Seconds of silence on a stream after which a comment goes out; None: never.
        now: The largest time that was told, in seconds; None before any.
        ready: The exchanges that have had new output since the caller last asked.
        timers: The deadlines of all transports and exchanges.
        told_events: Whether `wake` has told of events; taking the last one makes it False again.
        told_ready: Whether `wake` has told of output; asking which exchanges have any does so too.
        wake: Called when output, an event or an earlier deadline appears where none was; or None.
    """

    __slots__ = (
        "_told_deadline",
        "_waking",
        "at",
        "closing",
        "config",
        "decoder",
        "events",
        "held",
        "keep_alive",
        "now",
        "ready",
        "timers",
        "told_events",
        "told_ready",
        "wake",
    )

    def __init__(
        self,
        config: Config,
        *,
        keep_alive: float | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        self.config: Config = config
        self.decoder: BoundedDecoder = BoundedDecoder(
            config.codec, config.max_json_depth, config.max_integer_digits
        )
        self.events: EventQueue[Any] = EventQueue()  # of all transports, and some of endpoints
        self.held: HeldMemory = HeldMemory(config.max_held_bytes)
        self.timers: Timers = Timers()
        self.ready: dict[Any, None] = {}
        self.now: float | None = None
        self.at: float | None = None
        self.keep_alive: float | None = keep_alive
        self.closing: bool = False
        self.wake: Callable[[], None] | None = wake
        self._waking = False
        self.told_ready: bool = False
        self.told_events: bool = False
        self._told_deadline: float | None = None

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """All state is plain data, except the caller's `wake`, which copies do without."""
        state = {name: getattr(self, name) for name in self.__slots__}
        state["wake"] = None
        return None, state

    # -------------------------------------------------------------------------- time and wake

    def tell(self, now: float) -> None:
        """Take the time of the caller; a smaller one than before changes nothing."""
        if self.now is None:
            check_clock("now", now)
        if now == now and (self.now is None or now > self.now):  # NaN is no time
            self.now = now

    def settle(self) -> None:
        """Run `wake` if there is news: the last act of every call."""
        if self.wake is None or self._waking:
            return
        while self._has_news():
            self._waking = True
            try:
                self.wake()
            finally:
                self._waking = False

    def _has_news(self) -> bool:
        """Whether output, an event or an earlier deadline appeared where none was."""
        deadline, earliest = self._told_deadline, self.timers.earliest()
        ready, events = self.told_ready, self.told_events
        self.told_ready = bool(self.ready)
        self.told_events = bool(self.events)
        self._told_deadline = earliest
        return (
            self.told_ready > ready
            or self.told_events > events
            or (earliest is not None and (deadline is None or earliest < deadline))
        )

    # -------------------------------------------------------------------------------- errors

    def report(self, breach: Breach, excerpt: bytes | None = None) -> None:
        """Report a breach of a rule by a client."""
        self.events.append(
            ProtocolViolation(
                rule=breach.rule,
                text=breach.text,
                tolerated=breach.tolerated,
                excerpt=excerpt,
                code=breach.code,
            )
        )

    def limit_reached(self, rule: str, text: str) -> None:
        """Report that a limit was reached."""
        self.events.append(LimitReached(rule=rule, text=text))

    def error_body(
        self,
        text: str,
        code: int = ErrorCode.INVALID_REQUEST,
        id: RequestId | None = None,
        data: JSONValue | Missing = MISSING,
    ) -> bytes:
        """The JSON of an error response; without an id where none could be read.

        Keeps JSON-011.
        """
        error: JSONObject = {"code": code, "message": text[:300]}
        if data is not MISSING:
            error["data"] = data
        message: JSONObject = {"jsonrpc": "2.0", "error": error}
        if id is not None:
            message["id"] = id
        return self.config.codec.encode(message)
