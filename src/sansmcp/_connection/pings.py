"""Pings of the application, and keep-alive pings, which detect a peer that is gone."""

from __future__ import annotations

from typing import Any

import attrs

from .._rules.state_tables import Phase, State, StateTrigger
from .._spec.errors import LocalProtocolError
from .._spec.modern_methods import MODERN_REVISION
from .._wire.values import JSONObject
from .core import Core, MethodPart
from .events import (
    CancelCause,
    CloseCause,
    FailureReason,
    PingEnded,
    ProtocolViolation,
    RequestFailed,
)
from .handles import IncomingRequest, OutgoingRequest, Ping, Purpose
from .incoming import IncomingRequests
from .outgoing import Outcome, OutgoingRequests
from .timers import Timed


@attrs.define(eq=False, repr=False)
class KeepAlive:
    """The deadline of the next keep-alive ping, and how many pings in a row have failed.

    Attributes:
        interval: Seconds of silence of the peer before a ping.
        timeout: Seconds to wait for the response.
        failed: The number of pings in a row without a response.
    """

    interval: float
    timeout: float
    failed: int = 0
    _deadline: float | None = attrs.field(default=None, init=False)


class Pings(MethodPart):
    """Sends pings of the application and of keep-alive, and answers pings of the peer.

    Attributes:
        heard_at: The time of the peer's last message; None before one, or without a clock.
        keep_alive: The state of keep-alive; None without `Config.ping_interval`.
    """

    __slots__ = ("_core", "_incoming", "_outgoing", "heard_at", "keep_alive")

    def __init__(self, core: Core, outgoing: OutgoingRequests, incoming: IncomingRequests) -> None:
        self._core = core
        self._outgoing = outgoing
        self._incoming = incoming
        interval = self._core.config.ping_interval
        self.keep_alive: KeepAlive | None = (
            None
            if interval is None
            else KeepAlive(interval, self._core.config.ping_timeout or interval)
        )
        self.heard_at: float | None = None

    # ---------------------------------------------------- pings of the application and of the peer

    def send(
        self, meta: JSONObject | None, timeout: float | None, data: Any, now: float | None
    ) -> Ping:
        """Send a ping of the application; it ends in one `PingEnded`."""
        self._core.check_open("ping")
        if self._core.conversation.dialect.is_modern:
            raise LocalProtocolError("OWN-020", f"revision {MODERN_REVISION} has no ping")
        self._outgoing.check_ping()
        self._outgoing.check_room()
        if timeout is not None:
            self._outgoing.check_timeouts(timeout, None, now)
        body = self._core.encode_object({}, meta) if meta else b""
        if now is not None:
            self._core.tell(now)
        ping = Ping(self._core.now)
        ping.data = data
        ping._call = self._outgoing.send_own("ping", body, Purpose.PING, self, ping, timeout)
        if self._core.needs_settle:
            self._core.settle()
        return ping

    def take(self, request: IncomingRequest) -> bool:
        """Answer a ping of the peer, unless the application does (`Config.manual`).

        Keeps PING-001.
        """
        if "ping" in self._core.config.manual:
            return False
        self._incoming.answer_automatically(request, b"{}")
        return True

    def ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        """Take the ending of a ping of the application or of keep-alive."""
        if call._purpose is Purpose.PING:
            ping = call._subject
            assert isinstance(ping, Ping)
            failure = outcome.reason if isinstance(outcome, RequestFailed) else None
            seconds = None
            if failure is None and self._core.now is not None and ping._sent_at is not None:
                seconds = self._core.now - ping._sent_at
            text = outcome.text if isinstance(outcome, RequestFailed) else ""
            self._core.events.append(
                PingEnded(ping=ping, failure=failure, seconds=seconds, text=text)
            )
        else:
            self._keep_alive_ended(outcome)

    # ---------------------------------------------------------------------------------- keep-alive

    def start_keep_alive(self) -> None:
        """Arm the keep-alive timer from now, if the handshake is done and there is a clock."""
        keep_alive = self.keep_alive
        if (
            keep_alive is not None
            and self._core.now is not None
            and keep_alive._deadline is None
            and not self._core.conversation.dialect.is_modern
            and self._core.state is State.OPEN
        ):
            self._core.timers.arm(self, keep_alive, self._core.now + keep_alive.interval)

    def stop_keep_alive(self) -> None:
        """Drop the keep-alive timer: no ping can be sent any more."""
        if self.keep_alive is not None:
            self._core.timers.drop(self.keep_alive)

    def clock_started(self) -> None:
        """Start keep-alive if the handshake was done before the caller gave a time."""
        if self._core.conversation.phase is Phase.OPERATING:
            self.start_keep_alive()

    def end(self, cause: CancelCause) -> None:
        """Stop keep-alive: the connection ends."""
        self.stop_keep_alive()

    def _keep_alive_ended(self, outcome: Outcome) -> None:
        """Count a failed keep-alive ping, and end the connection if there are too many."""
        keep_alive = self.keep_alive
        assert keep_alive is not None
        if not isinstance(outcome, RequestFailed):
            keep_alive.failed = 0
        elif outcome.reason is FailureReason.LOST and self._core.state is not State.OPEN:
            return  # the connection ends for another cause
        else:
            keep_alive.failed += 1
            if keep_alive.failed >= self._core.config.max_failed_pings:
                self._core.events.append(
                    ProtocolViolation(
                        rule="OWN-016",
                        text=f"{keep_alive.failed} pings in a row were not answered",
                        fatal=True,
                    )
                )
                self._core.end(StateTrigger.CLOSE, CloseCause.UNRESPONSIVE, CancelCause.FAILED)
                return
        self.start_keep_alive()

    def _timer_fired(self, subject: Timed) -> None:
        self._core.run_timer(self._expire, subject)

    def _expire(self, subject: Timed) -> None:
        """Send a keep-alive ping if the peer was silent for the interval; else wait on."""
        assert isinstance(subject, KeepAlive)
        now = self._core.now or 0.0
        if self.heard_at is not None and self.heard_at + subject.interval > now:
            self._core.timers.arm(self, subject, self.heard_at + subject.interval)
        else:
            self._outgoing.send_own("ping", b"", Purpose.KEEP_ALIVE, self, subject, subject.timeout)
