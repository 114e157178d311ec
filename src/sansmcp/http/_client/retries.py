"""When a stream that has ended is resumed, and where.

Source: MCP 2025-11-25, basic/transports, Resumability and Redelivery.
"""

from __future__ import annotations

from typing import Final, Protocol

import attrs

from ..._connection.timers import Timed
from .core import ClientEndpointCore

_WAIT: Final = 1.0
"""Seconds before a stream is resumed, where the server names no time."""
_SHORTEST_WAIT: Final = 0.1
"""Seconds to wait at least: a server may end each stream at once and name no time."""
_LONGEST_WAIT: Final = 30.0
"""Seconds that the doubling of waits leads to at most."""
_LASTING: Final = 10.0
"""Seconds after which a stream without any message has not failed.

Proxies cut streams that are idle, and to resume one so seldom costs nothing."""
_DOUBLINGS: Final = 20


class Retried(Protocol):
    """A message or a stream whose response can be resumed."""

    def send(self) -> None:
        """Put the next exchange in line."""
        ...

    def lost(self, text: str) -> None:
        """End because the stream cannot be resumed."""
        ...

    def _timer_fired(self, subject: Timed) -> None:
        """Send again: the time to wait is over."""
        ...


@attrs.define(eq=False, repr=False)
class StreamRetries:
    """When a stream is resumed, and where.

    Attributes:
        attempts: The number of attempts in a row that were in vain: the request failed, or the
            stream ended before it brought a message or the id of an event.
        last_event_id: The event after which the stream can be resumed; `""`: nowhere.
        retry_ms: Milliseconds that the server wants a client to wait; None: it has not said.
    """

    _core: ClientEndpointCore
    attempts: int = 0
    last_event_id: str = ""
    retry_ms: int | None = None
    _deadline: float | None = None
    _opened_at: float | None = None  # None without a clock, too

    def opened(self) -> None:
        """Note that a GET has opened the stream, in vain unless it brings something."""
        self.attempts += 1
        self._opened_at = self._core.now

    def advanced(self) -> None:
        """Note that the stream has brought something: the attempt was not in vain."""
        self.attempts = 0

    def reached(self, event_id: str) -> None:
        """Note the id of the last event."""
        if event_id != self.last_event_id:
            self.advanced()
            self.last_event_id = event_id

    def failed(self, owner: Retried, text: str, wait: float | None = None) -> None:
        """Count an attempt that has opened no stream, and make the next one later.

        Args:
            owner: The message or the stream that sends again.
            text: What happened.
            wait: Seconds that the server has asked for.
        """
        self.attempts += 1
        self.later(owner, text, wait)

    def after_end(self, owner: Retried, text: str) -> None:
        """Resume a stream that was open and has ended, after the time to wait."""
        now, opened_at = self._core.now, self._opened_at
        if now is not None and opened_at is not None and now >= opened_at + _LASTING:
            self.attempts = 0
        self.later(owner, text)

    def later(self, owner: Retried, text: str, wait: float | None = None) -> None:
        """Resume a stream after the time to wait, or end it after too many attempts in vain.

        Keeps SSE-020, and OWN-041: after `Config.max_reconnects` attempts in a row that were in
        vain, the owner is lost.

        Args:
            owner: The message or the stream that sends again.
            text: What happened.
            wait: Seconds that the server has asked for.
        """
        core = self._core
        if self.attempts >= core.config.max_reconnects:
            owner.lost(f"{text}; {self.attempts} attempts to take up the stream have failed")
            return
        base = _WAIT if self.retry_ms is None else max(self.retry_ms / 1000, _SHORTEST_WAIT)
        seconds = base
        if self.attempts > 1:
            doubled = base * 2.0 ** min(self.attempts - 1, _DOUBLINGS)
            seconds = max(base, min(_LONGEST_WAIT, doubled))
        now = core.now
        if now is None:
            owner.send()
        else:
            core.timers.arm(owner, self, now + max(seconds, wait or 0.0))

    def stop(self) -> None:
        """Resume the stream no more."""
        self._core.timers.drop(self)
