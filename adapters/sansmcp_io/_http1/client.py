"""One HTTP/1.1 connection of a client without sockets: exchanges in, bytes out, and the reverse."""

from __future__ import annotations

from typing import Any, Final, Protocol, final

import h11

from .heads import check_lines, sentence_without_quotes

_NO_RESPONSE: Final = "the server has closed the connection without a response"
MAX_HEAD_BYTES: Final = 65_536
"""The bytes that the head of a response may have: some servers set large cookies."""
# Stand-ins for the requests, which h11 does not write: to read a response, h11 needs only the
# method. Writing requests with h11 would cost more than reading responses, mostly for checks of
# headers, and the headers of an exchange are valid. h11 is not given the end of a request either:
# each response is read by a new h11 object.
_ASKED: Final = {
    method: h11.Request(method=method, target="/", headers=[("host", "x")])
    for method in ("GET", "POST", "DELETE")
}


class Exchange(Protocol):
    """What is sent and received: such as a `sansmcp.http.ClientExchange`."""

    @property
    def method(self) -> str:
        """`GET`, `POST` or `DELETE`."""
        ...

    @property
    def target(self) -> str:
        """Path and query, as in a request line."""
        ...

    @property
    def authority(self) -> str:
        """The value of `Host`."""
        ...

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """The headers to send, beside `Host` and `Content-Length`."""
        ...

    @property
    def body(self) -> bytes:
        """The body of a POST."""
        ...

    def receive_head(
        self, status: int, headers: list[tuple[bytes, bytes]], *, now: float, at: float
    ) -> None:
        """Take the head of the response."""
        ...

    def receive_data(self, data: bytes, *, now: float) -> None:
        """Take the next bytes of the body."""
        ...

    def receive_end(self, *, now: float) -> None:
        """Take the end of a complete response."""
        ...

    def receive_failure(self, text: str, *, now: float, kept: bool) -> None:
        """Take the news that there is no complete response."""
        ...


def _written(exchange: Exchange) -> bytes:
    """A whole request. Source: RFC 9112, sections 3, 5 and 6.2."""
    body = exchange.body
    lines = [
        f"{exchange.method} {exchange.target} HTTP/1.1\r\nhost: {exchange.authority}".encode(
            "ascii"
        )
    ]
    lines += [b"%b: %b" % field for field in exchange.headers]
    if exchange.method == "POST":
        lines.append(b"content-length: %d" % len(body))
    head = b"\r\n".join(lines)
    check_lines(head, len(lines))  # a line end in a field would be another request
    return head + b"\r\n\r\n" + body


def _new_h11() -> h11.Connection:
    return h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)


@final
class HTTPClientConnection:
    """Sends exchanges, one after the other, as long as the server keeps the connection open.

    `send` an exchange, write what it returns, and hand over what is read until `done`. Whatever
    happens, the exchange is told. Nothing here waits.
    """

    def __init__(self) -> None:
        self._h11 = _new_h11()
        self._exchange: Exchange | None = None
        self._has_head = False
        self._is_silent = True  # nothing of the response has come
        self._was_used = False  # an exchange has ended on it

    @property
    def done(self) -> bool:
        """Whether the exchange needs nothing more of this connection."""
        return self._exchange is None

    @property
    def has_head(self) -> bool:
        """Whether the head of the response has come."""
        return self._has_head

    @property
    def reusable(self) -> bool:
        """Whether another exchange may be sent: not if something has come that would answer it."""
        return self._exchange is None and self._h11.our_state is h11.IDLE

    def send(self, exchange: Exchange) -> bytes:
        """Begin an exchange on a reusable connection, and return the bytes of the request."""
        self._exchange = exchange
        self._has_head = False
        self._is_silent = True
        self._h11.send(_ASKED[exchange.method])
        return _written(exchange)

    def receive(self, data: bytes, *, now: float, at: float) -> None:
        """Handle received bytes, cut anywhere; `b""` is the end. Never raises for their content.

        Args:
            data: The bytes.
            now: The clock of the endpoint, in seconds.
            at: The time in Unix seconds, for dates in the head.
        """
        exchange = self._exchange
        if exchange is None:
            return
        if data:
            self._is_silent = False
        try:
            self._h11.receive_data(data)
            while self._exchange is not None and self._next(exchange, now, at):
                pass
        except h11.RemoteProtocolError as error:
            # The text of h11 on a cut stream would not help the user.
            if data:
                text = f"no valid HTTP response: {sentence_without_quotes(error)}"
            elif self._has_head:
                text = "the server has closed the connection within its response"
            else:
                text = _NO_RESPONSE
            self.fail(text, now=now)

    def fail(self, text: str, *, now: float) -> None:
        """The connection has broken: tell the exchange, if there is one still.

        Args:
            text: The reason, as a sentence without secrets.
            now: The clock of the endpoint, in seconds.
        """
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.receive_failure(text, now=now, kept=self._was_used and self._is_silent)

    def _next(self, exchange: Exchange, now: float, at: float) -> bool:
        """Tell the exchange of the next event; whether there may be more."""
        event: Any = self._h11.next_event()
        if event is h11.NEED_DATA or event is h11.PAUSED:
            return False
        # `isinstance` would cost ten times as much.
        if type(event) is h11.Response:
            self._has_head = True
            exchange.receive_head(event.status_code, list(event.headers), now=now, at=at)
        elif type(event) is h11.Data:
            exchange.receive_data(bytes(event.data), now=now)
        elif type(event) is h11.EndOfMessage:
            self._exchange = None
            self._was_used = True
            # It is another state if the server closes the connection.
            if self._h11.their_state is h11.DONE and not self._h11.trailing_data[0]:
                self._h11 = _new_h11()
            exchange.receive_end(now=now)
        elif type(event) is h11.ConnectionClosed:
            self.fail(_NO_RESPONSE, now=now)
        return True  # also after 1xx, which says nothing
