"""The ground that an endpoint stands on: clock, events, errors, and who has something to send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._connection.config import Config
from ..._connection.events import EventQueue, ProtocolViolation
from ..._connection.timers import Timed, Timers
from ..._rules.sending import Breach
from ..._spec.errors import ErrorCode
from ..._wire.codec import BoundedDecoder
from ..._wire.setting_checks import check_clock
from ..._wire.values import MISSING, JSONObject, JSONValue, Missing, RequestId
from .._sse import encode_comment
from .exchange import ServerExchange
from .held_memory import Held
from .output import Output
from .sessions import Session


class Ground:
    """What is shared by all exchanges and machines of an endpoint."""

    __slots__ = (
        "__weakref__",
        "_at",
        "_closing",
        "_config",
        "_decoder",
        "_events",
        "_held",
        "_keep_alive_seconds",
        "_now",
        "_ready",
        "_timers",
        "_told_deadline",
        "_told_events",
        "_told_ready",
        "_wake",
        "_waking",
    )

    def __init__(
        self, config: Config, keep_alive: float | None, wake: Callable[[], None] | None
    ) -> None:
        self._config = config
        self._decoder = BoundedDecoder(
            config.codec, config.max_json_depth, config.max_integer_digits
        )
        self._events: EventQueue[Any] = EventQueue()
        self._held = Held(config.max_held_bytes)
        self._timers = Timers()
        self._ready: dict[Output, None] = {}
        self._now: float | None = None
        self._at: float | None = None  # of the body that is being received, in Unix seconds
        self._keep_alive_seconds = keep_alive
        self._closing = False  # nobody is served any more
        self._wake = wake
        self._waking = False
        self._told_ready = False
        self._told_events = False
        self._told_deadline: float | None = None

    # -------------------------------------------------------------------------- time and wake

    def _tell(self, now: float) -> None:
        if self._now is None:
            check_clock("now", now)
        if now == now and (self._now is None or now > self._now):  # NaN is no time
            self._now = now

    def _keep_alive(self, exchange: ServerExchange) -> None:
        # Keeps SSE-038.
        if self._keep_alive_seconds is not None and self._now is not None:
            self._timers.arm(self, exchange, self._now + self._keep_alive_seconds)

    def _timer_fired(self, subject: Timed) -> None:
        if isinstance(subject, Session):
            subject._table.expire(subject)
            return
        assert isinstance(subject, ServerExchange)
        seconds, now = self._keep_alive_seconds, self._now
        assert seconds is not None
        assert now is not None
        written = now if subject._written_at is None else subject._written_at
        if written + seconds > now:
            self._timers.arm(self, subject, written + seconds)
            return
        if not subject._pieces:  # else the client does not read: more would not help
            subject._write(encode_comment())
        self._timers.arm(self, subject, now + seconds)

    def _settle(self) -> None:
        """The last act of every call: run `wake` if there is news."""
        if self._wake is None or self._waking:
            return
        while self._has_news():
            self._waking = True
            try:
                self._wake()
            finally:
                self._waking = False

    def _has_news(self) -> bool:
        deadline, earliest = self._told_deadline, self._timers.earliest()
        ready, events = self._told_ready, self._told_events
        self._told_ready = bool(self._ready)
        self._told_events = bool(self._events)
        self._told_deadline = earliest
        return (
            self._told_ready > ready
            or self._told_events > events
            or (earliest is not None and (deadline is None or earliest < deadline))
        )

    # -------------------------------------------------------------------------------- errors

    def _report(self, breach: Breach, excerpt: bytes | None = None) -> None:
        self._events.append(
            ProtocolViolation(
                rule=breach.rule,
                text=breach.text,
                tolerated=breach.tolerated,
                excerpt=excerpt,
                code=breach.code,
            )
        )

    def _error_body(
        self,
        text: str,
        code: int = ErrorCode.INVALID_REQUEST,
        id: RequestId | None = None,
        data: JSONValue | Missing = MISSING,
    ) -> bytes:
        """A JSON-RPC error; without an id where none could be read, in every revision."""
        error: JSONObject = {"code": code, "message": text[:300]}
        if data is not MISSING:
            error["data"] = data
        message: JSONObject = {"jsonrpc": "2.0", "error": error}
        if id is not None:
            message["id"] = id
        return self._config.codec.encode(message)
