"""The ground that an endpoint of a client stands on: clock, events, and what is to be done."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Any, Final

from ..._connection.config import Config
from ..._connection.events import EventQueue
from ..._connection.timers import Timed, Timers
from ..._rules.sending import Breach
from ..._rules.state_tables import State
from ..._wire.framing import EXCERPT_BYTES, excerpt_of
from .._headers import Headers
from .._sse import OverlongEvent, ServerSentEvent
from .connection import PostConnection
from .events import AuthorizationRequired
from .exchange import ClientExchange
from .post import Post
from .response_head import Head
from .retries import Lane
from .retry_after import retry_after
from .urls import URL

_SHOWN_OF_SECRETS: Final = 3
_SPARE: Final = 8
_LINGER: Final = 5.0
"""Seconds in which an exchange may end by itself when all that counts has come; a connection that
does is of further use."""
_SECRET_FIELDS: Final = frozenset(
    {b"authorization", b"cookie", b"proxy-authorization", b"x-api-key"}
)
"""What shows a server who asks."""


_TRAILING: Final = 2.0
"""Seconds in which the stream of a request that was given up is read on."""
_MOST_TRAILING: Final = 8
"""So many of them. With one more, the oldest is closed."""


class Ground:
    """Exchanges that wait, and those that are under way."""

    __slots__ = (
        "__weakref__",
        "_aborted",
        "_barrier",
        "_config",
        "_connection",
        "_events",
        "_headers",
        "_kept",
        "_listening",
        "_live",
        "_post_url",
        "_secrets",
        "_session",
        "_timers",
        "_told_deadline",
        "_told_events",
        "_told_work",
        "_trailing",
        "_url",
        "_version",
        "_waiting",
        "_wake",
        "_waking",
    )

    _connection: PostConnection

    def __init__(
        self, url: URL, headers: Headers, config: Config, wake: Callable[[], None] | None
    ) -> None:
        self._url = url
        self._post_url: URL | None = None  # of HTTP+SSE, where the server speaks that
        self._config = config
        self._timers = Timers()
        self._events: EventQueue[Any] = EventQueue()
        self._session: bytes | None = None
        self._waiting: OrderedDict[ClientExchange, None] = OrderedDict()
        self._live: dict[ClientExchange, None] = {}
        self._trailing: dict[ClientExchange, None] = {}  # streams of requests that were given up
        self._aborted: list[ClientExchange] = []
        self._kept: dict[Lane, AuthorizationRequired] = {}  # until it is known who asks
        self._listening: Lane | None = None  # the stream for what belongs to no request
        # The message before whose answer nothing else is sent: `notifications/initialized`.
        self._barrier: Post | None = None
        self._version = 0  # of the caller's fields
        self._set_headers(headers)
        self._wake = wake
        self._waking = False
        self._told_work = False
        self._told_events = False
        self._told_deadline: float | None = None

    def _set_headers(self, headers: Headers) -> None:
        self._headers = (*headers, (b"accept-encoding", b"identity"))
        secrets = [value for name, value in headers if name in _SECRET_FIELDS]
        secrets += [value.rpartition(b" ")[2] for value in secrets]
        self._secrets = tuple(secret for secret in secrets if secret)

    # -------------------------------------------------------------------------- time and wake

    def _tell(self, now: float) -> None:
        self._connection.core.tell(now)

    def _wait(self, lane: Lane, seconds: float) -> None:
        """Let a lane send again after so many seconds; at once where there is no clock."""
        now = self._connection.core.now
        if now is None:
            lane.send()
        else:
            self._timers.arm(self, lane, now + seconds)

    def _linger(self, exchange: ClientExchange) -> None:
        """Close an exchange that nobody waits for, unless it ends by itself before."""
        now = self._connection.core.now
        if now is not None and not exchange.over:
            self._timers.arm(self, exchange, now + _LINGER)

    def _trail(self, exchange: ClientExchange) -> None:
        """Read the stream of a request that was given up a little longer, in a legacy session.

        Some servers and gateways send the next notifications on it. Nobody waits for its end, so
        only a few are kept, and each for a short time.
        """
        now = self._connection.core.now
        if now is None or self._connection.core.state is not State.OPEN:
            exchange._abort()
            return
        if len(self._trailing) == _MOST_TRAILING:
            next(iter(self._trailing))._abort()
        self._trailing[exchange] = None
        self._timers.arm(self, exchange, now + _TRAILING)

    def _timer_fired(self, subject: Timed) -> None:
        if isinstance(subject, Lane):
            subject.send()
        else:
            assert isinstance(subject, ClientExchange)
            subject._expire()

    def _settle(self) -> None:
        """The last act of every call: end what has overflowed, then run `wake` if there is news."""
        if self._connection.core.needs_settle:
            self._connection.core.settle()
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
        work, events = self._told_work, self._told_events
        self._told_work = bool(self._aborted) or self._has_work()
        self._told_events = bool(self._events)
        self._told_deadline = earliest
        return (
            self._told_work > work
            or self._told_events > events
            or (earliest is not None and (deadline is None or earliest < deadline))
        )

    # ------------------------------------------------------------------------------ exchanges

    def _enqueue(self, exchange: ClientExchange) -> None:
        """An exchange is to be given out; it is the one of its lane."""
        lane = exchange._lane
        lane.exchange = exchange
        self._connection.core.unsent += len(exchange.body)
        self._waiting[exchange] = None
        if lane is self._barrier:
            self._waiting.move_to_end(exchange, last=False)

    def _has_work(self) -> bool:
        """Whether there is an exchange that may be given out now; it is the first that waits."""
        waiting = self._waiting
        return (
            bool(waiting)
            and (self._barrier is None or next(iter(waiting))._lane is self._barrier)
            # Each request has one, and so may as many messages that are none, and a few streams.
            and len(self._live) < 2 * self._config.max_requests + _SPARE
        )

    def _forget(self, exchange: ClientExchange) -> None:
        """An exchange is over."""
        self._timers.drop(exchange)
        self._trailing.pop(exchange, None)
        if exchange._given_out:
            self._live.pop(exchange, None)
        else:
            del self._waiting[exchange]
            self._connection.core.unsent -= len(exchange.body)
        if exchange._lane.exchange is exchange:
            exchange._lane.exchange = None

    def _passed(self, post: Post) -> None:
        """The server has, or will never have, a message: what waited for that goes on."""
        if self._barrier is post:
            self._barrier = None

    def _drop_all(self, but: Collection[Lane] = ()) -> None:
        """Nothing that is under way, or was about to be, is of use any more, but for these."""
        self._barrier = None
        for exchange in [*self._live, *self._waiting]:
            if exchange._lane not in but:
                exchange._lane.drop()
                exchange._abort()
        lanes = [*self._kept] if self._listening is None else [*self._kept, self._listening]
        self._listening = None
        for lane in lanes:
            lane.drop()

    # ------------------------------------------------------------------------------ receiving

    def _receive_event(self, item: ServerSentEvent | OverlongEvent, *, standalone: bool) -> None:
        """An event of any stream; those of another type than `message` mean nothing here."""
        connection = self._connection
        if isinstance(item, OverlongEvent):
            connection.machine.receive_overlong(item.excerpt)
        elif item.type == "message" and item.data:
            connection.receive_event(item.data, standalone=standalone)

    def _retry_after(self, head: Head) -> float | None:
        fields = head.fields
        return retry_after(fields.get("retry-after"), fields.get("date"), head.at)

    def _report(self, breach: Breach, **about: Any) -> None:
        self._connection.core.report(breach, **about)

    def _excerpt(self, data: bytes | bytearray, *, over: int | None = None) -> bytes:
        """The start of what the server has said, without what the caller keeps secret."""
        return excerpt_of(data, over=over, start=self._shown(data))

    def _shown(self, data: bytes | bytearray) -> bytes:
        secrets = self._secrets if self._session is None else (*self._secrets, self._session)
        start = bytes(data[: EXCERPT_BYTES + max(map(len, secrets), default=0)])
        for secret in secrets:
            start = start.replace(secret, b"***")
        start = start[:EXCERPT_BYTES]
        for secret in secrets:
            # What is cut off in the midst of a secret still shows the start of it.
            for size in range(min(len(secret) - 1, len(start)), _SHOWN_OF_SECRETS, -1):
                if start.endswith(secret[:size]):
                    return start[:-size]
        return start
