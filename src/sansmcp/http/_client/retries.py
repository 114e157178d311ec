"""What exchanges are made for: a lane has one exchange after another until it is over.

A message that is redirected, refused for want of a token, or whose answer breaks off and is taken
up again stays one lane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._headers import Headers
from .._sse import OverlongEvent, ServerSentEvent
from .events import Asked
from .exchange import ClientExchange, ExchangePurpose
from .headers import event_id_value
from .response_head import Head
from .urls import URL

if TYPE_CHECKING:
    from .endpoint import ClientEndpoint

JSON: Final = "application/json"
SSE: Final = "text/event-stream"

_WAIT: Final = 1.0
"""Seconds before a stream is taken up again, where the server names no time."""
_SHORTEST_WAIT: Final = 0.1
"""A server that names no time at all, and ends each stream at once, would be asked without end."""
_LONGEST_WAIT: Final = 30.0
_LASTING: Final = 10.0
"""Seconds after which a stream that has brought nothing was of use all the same.

Proxies cut streams that are idle, and to take one up again so seldom costs nothing."""
_DOUBLINGS: Final = 20
_TRY_AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})


class Lane:
    """The way of one message, or of one stream that the client has asked for.

    Attributes:
        attempts: How often in a row its stream was taken up in vain: that has failed, or the stream
            has ended before it brought a message or the id of one.
        challenged: How often in a row the server wanted authorization.
        endpoint: Whose it is.
        exchange: The one that is under way; None: there is none now.
        last_event_id: Where its stream can be taken up again; `""`: nowhere.
        opened_at: When its stream was opened last; None where there was no clock.
        over: It has no use for anything that still comes.
        redirects: How often in a row the server has sent it elsewhere.
        repeated: It was sent again, since the connection was closed as it was sent.
        retry_ms: How long the server wants a client to wait before.
        url: Where it goes; None: where all go.
    """

    __slots__ = (
        "_deadline",
        "attempts",
        "challenged",
        "endpoint",
        "exchange",
        "last_event_id",
        "opened_at",
        "over",
        "redirects",
        "repeated",
        "retry_ms",
        "url",
    )

    def __init__(self, endpoint: ClientEndpoint) -> None:
        self.endpoint: ClientEndpoint = endpoint
        self.exchange: ClientExchange | None = None
        self.url: URL | None = None
        self.over: bool = False
        self.redirects: int = 0
        self.repeated: bool = False
        self.challenged: int = 0
        self.attempts: int = 0
        self.last_event_id: str = ""
        self.opened_at: float | None = None
        self.retry_ms: int | None = None
        self._deadline: float | None = None

    @property
    def request(self) -> Asked | None:
        """What the application has asked for by it."""
        return None

    @property
    def awaited(self) -> bool:
        """Whether a request, be it the library's own, waits for what it brings."""
        return False

    @property
    def may_repeat(self) -> bool:
        """Whether its exchange may be made once more, although the server may have had it.

        GET and DELETE are idempotent. A repetition that fails is not repeated (RFC 9110, 9.2.2).
        """
        return not self.repeated

    # -------------------------------------------------------------------------------- sending

    def send(self) -> None:
        """Make the next exchange of this lane."""
        self._get(ExchangePurpose.RESUME if self.last_event_id else ExchangePurpose.GET)

    def fields(self, exchange: ClientExchange) -> Headers:
        """The fields of an exchange, beside those that all have."""
        fields: Headers = ((b"accept", b"text/event-stream"),)
        id = event_id_value(self.last_event_id)
        return fields if id is None else (*fields, (b"last-event-id", id))

    def _get(self, purpose: ExchangePurpose) -> None:
        url = self.url or self.endpoint._url
        self.endpoint._enqueue(ClientExchange(self, "GET", url, purpose))

    def later(self, text: str, wait: float | None = None) -> None:
        """Take up the stream when it is time, unless that has failed too often.

        Args:
            text: What happened.
            wait: Seconds that the server has asked for.
        """
        if self.attempts > self.endpoint._config.max_reconnects:
            self.lost(f"{text}; {self.attempts} attempts to take up the stream have failed")
            return
        base = _WAIT if self.retry_ms is None else max(self.retry_ms / 1000, _SHORTEST_WAIT)
        seconds = base
        if self.attempts > 1:
            doubled = base * 2.0 ** min(self.attempts - 1, _DOUBLINGS)
            seconds = max(base, min(_LONGEST_WAIT, doubled))
        self.endpoint._wait(self, max(seconds, wait or 0.0))

    # ------------------------------------------------------------------------------ receiving

    def head(self, exchange: ClientExchange, head: Head) -> None:
        """A head came that is the lane's own business."""

    def whole(self, head: Head, body: bytes) -> None:
        """A body that is read as a whole is complete."""

    def event(self, exchange: ClientExchange, item: ServerSentEvent | OverlongEvent) -> None:
        """An event of the stream."""

    def broken(self, exchange: ClientExchange, text: str) -> None:
        """An exchange is over before it has brought what it was for."""

    def unreadable(self, head: Head, text: str) -> None:
        """A body came in a form that nobody reads."""
        self.give_up(head.status, text)

    def give_up(self, status: int, text: str) -> None:
        """The server does not do it: it wants something that it is not given."""

    def lost(self, text: str) -> None:
        """The stream cannot be taken up again."""

    def kept(self) -> None:
        """It waits for what the application has to show."""

    def authorized(self) -> None:
        """That is there."""
        self.send()

    # --------------------------------------------------------------------------------- ending

    def drop(self) -> None:
        """It is over, whatever still comes."""
        self.over = True
        self.endpoint._timers.drop(self)
        self.endpoint._kept.pop(self, None)
        if self.exchange is not None:
            self.exchange._abort()

    def advanced(self) -> None:
        """Its stream has brought something: it was not taken up in vain."""
        self.attempts = 0

    def ended(self, text: str) -> None:
        """A stream that was open has ended: take it up again when it is time."""
        now = self.endpoint._connection.core.now
        if now is not None and self.opened_at is not None and now >= self.opened_at + _LASTING:
            self.attempts = 0
        self.later(text)

    def _opens_stream(self, exchange: ClientExchange, head: Head, text: str) -> bool:
        """Whether a GET has opened a stream; if it may do so later, that is arranged for."""
        if head.status == 200 and head.media_type == SSE:
            self.redirects = self.challenged = 0
            self.attempts += 1  # in vain, unless it brings something
            self.opened_at = self.endpoint._connection.core.now
            exchange._read_stream(self.last_event_id)
            return True
        if head.status in _TRY_AGAIN:
            self.attempts += 1
            self.later(text, self.endpoint._retry_after(head))
            return True
        return False


class Farewell(Lane):
    """The end of a session, which the server is told of. Nothing depends on it."""

    __slots__ = ("_session",)

    def __init__(self, endpoint: ClientEndpoint, session: bytes) -> None:
        super().__init__(endpoint)
        self._session = session

    def send(self) -> None:
        url = self.url or self.endpoint._url
        self.endpoint._enqueue(ClientExchange(self, "DELETE", url, ExchangePurpose.DELETE))

    def fields(self, exchange: ClientExchange) -> Headers:
        return ((b"mcp-session-id", self._session),)

    def broken(self, exchange: ClientExchange, text: str) -> None:
        self.over = True
