"""Parses passing HTTP/1.1: the beginning, end and content of requests and responses.

The bytes stay unchanged. Each message is read by a parser of its own,
which answers nothing.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import attrs
import h11

from .http_texts import Pairs

_MOST_HEAD_BYTES: Final = 1024 * 1024
_HEAD_END: Final = re.compile(rb"\n\r?\n")
_HOST: Final = re.compile(rb"(?im)^host:[^\r\n]*")
_CREDENTIALS: Final = re.compile(rb"(?im)^(?:authorization|dpop):[^\n]*\n")

Credentials: TypeAlias = list[tuple[str, str]]
"""The headers that authorize a request."""


class NotHTTP(Exception):
    """Raised for bytes that are not valid HTTP/1.1. The text says why."""


@attrs.frozen
class RequestHead:
    """A request begins. `raw` are its bytes; `host` is the host that it names."""

    raw: bytes
    method: str
    target: str
    headers: Pairs

    @property
    def host(self) -> str:
        """The name or address in the Host header, without the port."""
        value = dict(self.headers).get("host", "")
        return re.sub(r":\d*$", "", value).lower()

    def for_host(self, authority: str, credentials: Credentials | None = None) -> bytes:
        """The same bytes, but for another host.

        Args:
            authority: The host and the port.
            credentials: Headers in place of those that authorize the request; None: those stay.
        """
        host = b"Host: " + authority.encode()
        raw = self.raw
        if credentials is not None:
            raw = _CREDENTIALS.sub(b"", raw)
            host += b"".join(f"\r\n{name}: {value}".encode() for name, value in credentials)
        return _HOST.sub(lambda _: host, raw, count=1)


@attrs.frozen
class ResponseHead:
    """The final response to the oldest request that has none begins."""

    status: int
    headers: Pairs


@attrs.frozen
class Body:
    """A piece of a body: the bytes that were sent for it, and what they stand for."""

    raw: bytes
    data: bytes


@attrs.frozen
class End:
    """The message is complete."""


class Requests:
    """Cuts the bytes of a client into requests. All bytes are returned, in order."""

    def __init__(self) -> None:
        self._raw = bytearray()
        self._body: h11.Connection | None = None

    def feed(self, data: bytes) -> Iterator[RequestHead | Body | End]:
        """Return the parts of requests that these bytes complete.

        Raises:
            NotHTTP: The bytes are no valid requests. No later bytes can be parsed.
        """
        self._raw += data
        while self._raw:
            parts = self._read_head() if self._body is None else self._read_body(self._body)
            found = list(parts)
            if not found:
                return
            yield from found

    def _read_head(self) -> Iterator[RequestHead | End]:
        end = _HEAD_END.search(self._raw)
        if end is None:
            if len(self._raw) > _MOST_HEAD_BYTES:
                raise NotHTTP("its head has no end")
            return
        raw = bytes(self._raw[: end.end()])
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=_MOST_HEAD_BYTES)
        try:
            parser.receive_data(raw)
            head = parser.next_event()
            if not isinstance(head, h11.Request):
                raise NotHTTP("its head cannot be read")
            method = head.method.decode("ascii")
            target = head.target.decode("ascii")
            if method == "CONNECT":
                raise NotHTTP("it asks for a tunnel")
            yield RequestHead(raw, method, target, _pairs(head.headers))
            del self._raw[: len(raw)]
            if isinstance(parser.next_event(), h11.EndOfMessage):
                yield End()
            else:
                self._body = parser
        except h11.RemoteProtocolError as error:
            raise NotHTTP(str(error)) from None

    def _read_body(self, parser: h11.Connection) -> Iterator[Body | End]:
        raw = bytes(self._raw)
        data = b""
        try:
            parser.receive_data(raw)
            while isinstance(event := parser.next_event(), h11.Data):
                data += bytes(event.data)
        except h11.RemoteProtocolError as error:
            raise NotHTTP(str(error)) from None
        is_complete = isinstance(event, h11.EndOfMessage)
        rest = parser.trailing_data[0] if is_complete else b""
        self._raw = bytearray(rest)
        yield Body(raw[: len(raw) - len(rest)], data)
        if is_complete:
            self._body = None
            yield End()


class Responses:
    """Parses the bytes of a server as responses to the requests."""

    def __init__(self) -> None:
        self._waiting: deque[h11.Connection] = deque()

    def expect(self, head: RequestHead) -> None:
        """Expect a response to a request, whose method decides whether the response has a body."""
        parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MOST_HEAD_BYTES)
        parser.send(h11.Request(method=head.method, target="/", headers=[("host", "x")]))
        parser.send(h11.EndOfMessage())
        self._waiting.append(parser)

    def feed(self, data: bytes) -> Iterator[ResponseHead | Body | End]:
        """Return the parts of responses that these bytes complete; `b""` is the end of the stream.

        Raises:
            NotHTTP: The bytes are no valid responses. No later bytes can be parsed.
        """
        while self._waiting:
            parser = self._waiting[0]
            try:
                parser.receive_data(data)
                while (event := parser.next_event()) is not h11.NEED_DATA:
                    if isinstance(event, h11.Response):
                        yield ResponseHead(event.status_code, _pairs(event.headers))
                    elif isinstance(event, h11.Data):
                        yield Body(b"", bytes(event.data))
                    elif not isinstance(event, h11.InformationalResponse):
                        break
            except h11.RemoteProtocolError as error:
                raise NotHTTP(str(error)) from None
            if not isinstance(event, h11.EndOfMessage):
                if event is not h11.NEED_DATA:
                    raise NotHTTP("it changes to another protocol")
                return
            self._waiting.popleft()
            yield End()
            data = parser.trailing_data[0]
            if not data:
                return


def _pairs(headers: Iterable[tuple[bytes, bytes]]) -> Pairs:
    return tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in headers)
