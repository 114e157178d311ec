"""Responses of one HTTP/1.1 connection, from their parts to bytes."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Final

import h11

from sansmcp.http import ServerEndpoint, ServerExchange

from .._common.http_server import Headers, Response
from .heads import REASONS, check_lines

_last: tuple[int, bytes] = (0, b"")


def http_date() -> bytes:
    """The header `Date` of a server with a clock (RFC 9110, 6.6.1), made once a second."""
    global _last
    second, text = _last
    now = int(time.time())
    if now != second:
        text = formatdate(now, usegmt=True).encode()
        _last = now, text
    return text


_CLOSE: Final = (b"connection", b"close")
_BUSY: Final = 503
RETRY_AFTER: Final = (b"retry-after", b"5")
"""Tells a client that is refused because there are too many when to retry."""


def busy_response(endpoint: ServerEndpoint) -> bytes:
    """The response to a connection above the limit, whose request is not read."""
    text = "there are too many connections: try again later"
    status, headers, body = endpoint.refusal(_BUSY, text)
    fields = b"".join(b"%b: %b\r\n" % field for field in (*headers, RETRY_AFTER, _CLOSE))
    return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (status, REASONS[status], fields, body)


class Sending:
    """The output queue of a connection."""

    __slots__ = ("_closes", "_h11", "_is_head", "_out")

    _h11: h11.Connection

    def __init__(self) -> None:
        self._is_head = False  # the method is HEAD: no response has a body
        self._closes = False  # after the response, or when nothing is under way
        self._out: list[bytes] = []

    def _respond(self, response: Response, *, closes: bool) -> None:
        """Send a response that belongs to no exchange."""
        status, headers, body = response
        if status == _BUSY:
            headers += (RETRY_AFTER,)
        self._send_head(status, headers, closes)
        if body and not self._is_head:
            self._send(h11.Data(data=body))
        self._send(h11.EndOfMessage())

    def _send_response(self, exchange: ServerExchange) -> None:
        """Send the whole response of an ended exchange, without h11: headers have its length."""
        response = exchange.response()
        assert response is not None
        status, headers, body = response
        lines = [b"HTTP/1.1 %d %b\r\n" % (status, REASONS.get(status, b""))]
        lines += [b"%b: %b\r\n" % field for field in headers]
        lines.append(b"date: %b\r\n" % http_date())
        head = b"".join(lines)
        check_lines(head, len(lines))  # a line end in a field would be another response
        self._out.append(b"%b\r\n%b" % (head, body))

    def _send_head(self, status: int, headers: Headers, closes: bool) -> None:
        fields = [*headers, (b"date", http_date())]
        if closes or self._closes:
            self._closes = True
            fields.append(_CLOSE)
        reason = REASONS.get(status, b"")
        self._send(h11.Response(status_code=status, headers=fields, reason=reason))

    def _send(self, event: h11.Event) -> None:
        data = self._h11.send(event)
        if data:
            self._out.append(data)

    def _joined(self) -> bytes:
        """Take all that waits."""
        out = self._out
        if not out:
            return b""
        self._out = []
        return out[0] if len(out) == 1 else b"".join(out)
