"""Pings: those the application asks for, and those that find out whether the peer still lives."""

from __future__ import annotations

from typing import Any

import attrs

from .._rules.state_tables import State, StateTrigger
from .._spec.errors import LocalProtocolError
from .._spec.modern_methods import MODERN_REVISION
from .._wire.values import JSONObject
from .events import (
    CancelCause,
    CloseCause,
    FailureReason,
    PingEnded,
    ProtocolViolation,
    RequestFailed,
)
from .handles import OutgoingRequest, Ping, Purpose
from .outcomes import Outcomes
from .outgoing import Outcome
from .timers import Timed


@attrs.define(eq=False)
class KeepAlive:
    """When to ping next, and how many pings in a row failed."""

    interval: float
    timeout: float
    failed: int = 0
    _deadline: float | None = attrs.field(default=None, init=False)


class Pinging(Outcomes):
    """`ping()` and keep-alive."""

    __slots__ = (
        "_heard_at",
        "_keep_alive",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        interval = self._config.ping_interval
        self._keep_alive = (
            None if interval is None else KeepAlive(interval, self._config.ping_timeout or interval)
        )
        self._heard_at: float | None = None

    def ping(
        self,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> Ping:
        """Ping the peer; ends in one `PingEnded`. Allowed before the handshake is done, too.

        Args:
            meta: The request's `params._meta`.
            timeout: Seconds to wait for the answer.
            data: Anything; it becomes `Ping.data`.
            now: The caller's clock in seconds. Needed with a timeout, if never told before.

        Raises:
            LocalProtocolError: The connection is not open, the revision has no ping, or there
                is no clock.

        Source: MCP 2025-11-25, basic/utilities/ping.
        """
        self._may_send("ping")
        if self._conversation.dialect.is_modern:
            raise LocalProtocolError("OWN-020", f"revision {MODERN_REVISION} has no ping")
        self._check_ping()
        self._check_room()
        if timeout is not None:
            self._check_timeouts(timeout, None, now)
        body = self._encode_object({}, meta) if meta else b""
        if now is not None:
            self._tell(now)
        ping = Ping(self._now)
        ping.data = data
        ping._call = self._send_own("ping", body, Purpose.PING, ping, timeout)
        if self._restless:
            self._settle()
        return ping

    def _ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        if call._purpose is Purpose.PING:
            ping = call._owner
            assert isinstance(ping, Ping)
            failure = outcome.reason if isinstance(outcome, RequestFailed) else None
            seconds = None
            if failure is None and self._now is not None and ping._sent_at is not None:
                seconds = self._now - ping._sent_at
            text = outcome.text if isinstance(outcome, RequestFailed) else ""
            self._events.append(PingEnded(ping=ping, failure=failure, seconds=seconds, text=text))
        elif call._purpose is Purpose.KEEP_ALIVE:
            self._keep_alive_ended(outcome)
        else:
            super()._ended(call, outcome)

    def _start_keep_alive(self) -> None:
        """The handshake is done (or the clock has started since): silence counts from here."""
        keep_alive = self._keep_alive
        if (
            keep_alive is not None
            and self._now is not None
            and keep_alive._deadline is None
            and not self._conversation.dialect.is_modern
            and self._state is State.OPEN
        ):
            self._timers.arm(self, keep_alive, self._now + keep_alive.interval)

    def _timer_fired(self, subject: Timed) -> None:
        if not isinstance(subject, KeepAlive):
            super()._timer_fired(subject)
            return
        now = self._now or 0.0
        if self._heard_at is not None and self._heard_at + subject.interval > now:
            self._timers.arm(self, subject, self._heard_at + subject.interval)
        else:
            self._send_own("ping", b"", Purpose.KEEP_ALIVE, subject, subject.timeout)

    def _keep_alive_ended(self, outcome: Outcome) -> None:
        keep_alive = self._keep_alive
        assert keep_alive is not None
        if not isinstance(outcome, RequestFailed):
            keep_alive.failed = 0
        elif outcome.reason is FailureReason.LOST and self._state is not State.OPEN:
            return  # the connection is ending: that is not the ping's doing
        else:
            keep_alive.failed += 1
            if keep_alive.failed >= self._config.max_failed_pings:
                self._events.append(
                    ProtocolViolation(
                        rule="OWN-016",
                        text=f"{keep_alive.failed} pings in a row were not answered",
                        fatal=True,
                    )
                )
                self._end(StateTrigger.CLOSE, CloseCause.UNRESPONSIVE, CancelCause.FAILED)
                return
        self._start_keep_alive()

    def _end_requests(self, cause: CancelCause) -> None:
        if self._keep_alive is not None:
            self._timers.drop(self._keep_alive)
        super()._end_requests(cause)
