"""One HTTP request to any origin, and its whole response, with bounds on size and time.

Authorization needs such requests: for metadata, registration and tokens, at servers that the MCP
server has named. So each address is checked before something is sent to it, and no redirect is
followed: whoever asked judges the response.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeAlias, final
from urllib.parse import urlsplit

import attrs

if TYPE_CHECKING:
    from sansmcp.auth import HTTPRequest

Fields: TypeAlias = tuple[tuple[bytes, bytes], ...]

_PORTS: Final = {"http": 80, "https": 443}


@final
@attrs.frozen
class OneShotResponse:
    """A whole response.

    Attributes:
        status: The HTTP status.
        headers: Names and values, in their order.
        body: The body, unchanged.
    """

    status: int
    headers: Fields
    body: bytes = attrs.field(repr=False)


@final
class NoResponse(Exception):
    """A request has no response that can be used. The text is one sentence without secrets."""


@final
class OneShotExchange:
    """A request, and the response as far as it has come.

    Its methods `receive_*` are those of a `sansmcp.http.ClientExchange`, so that
    `HTTPClientConnection` can send either.

    Attributes:
        method: The method.
        body: The body to send.
        scheme: `http` or `https`.
        host: The host to connect to.
        port: The port to connect to.
        authority: The value of `Host`.
        target: Path and query, as in a request line.
        headers: The other headers to send.
        over: Whether nothing more is expected.
    """

    def __init__(self, request: HTTPRequest) -> None:
        parts = urlsplit(request.url)
        self.method: Final = request.method
        self.body: Final = request.body
        self.scheme: Final = parts.scheme
        self.host: Final = parts.hostname or ""
        self.port: Final = parts.port or _PORTS[parts.scheme]
        self.authority: Final = parts.netloc
        self.target: Final = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.headers: Final[Fields] = tuple(
            (name.lower().encode("ascii"), value.encode("latin-1"))
            for name, value in (*request.headers, ("accept-encoding", "identity"))
        )
        self.over: bool = False
        self._limit: Final = request.max_body_bytes
        self._status: int | None = None
        self._fields: Fields = ()
        self._parts: list[bytes] = []
        self._size = 0
        self._failure: str | None = None

    def response(self) -> OneShotResponse:
        """Return the response, once nothing more is expected.

        Raises:
            NoResponse: The request has failed, or the response cannot be used.
        """
        if self._failure is not None:
            raise NoResponse(self._failure)
        assert self._status is not None
        return OneShotResponse(self._status, self._fields, b"".join(self._parts))

    def receive_head(
        self,
        status: int,
        headers: Iterable[tuple[bytes, bytes]],
        *,
        now: float | None = None,
        at: float | None = None,
    ) -> None:
        """Take the head of the response."""
        self._status = status
        self._fields = tuple((name.lower(), value) for name, value in headers)
        coding = dict(self._fields).get(b"content-encoding", b"identity")
        if coding.strip().lower() != b"identity":
            self.receive_failure("the body is encoded, which was not asked for")

    def receive_data(self, data: bytes, *, now: float | None = None) -> None:
        """Take the next bytes of the body."""
        self._size += len(data)
        if self._size > self._limit:
            self._parts.clear()
            self.receive_failure(f"the body is longer than {self._limit} bytes")
        elif not self.over:
            self._parts.append(data)

    def receive_end(self, *, now: float | None = None) -> None:
        """Take the end of a complete response."""
        self.over = True

    def receive_failure(self, text: str, *, now: float | None = None, kept: bool = False) -> None:
        """Take the news that there is no response that can be used. The first text counts."""
        if not self.over:
            self.over = True
            self._failure = text


def texts_of(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """The headers of a response as texts."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]


def addresses_of(host: str, port: int) -> list[str]:
    """The IP addresses of a host. Blocks for a lookup of its name.

    Raises:
        NoResponse: The name is unknown.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise NoResponse(f"the host {host} is unknown") from None
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def allowed_addresses(request: HTTPRequest, host: str, addresses: list[str]) -> list[str]:
    """The addresses of the host to which the request may go. Keeps AUTH-343.

    Raises:
        NoResponse: None of them is allowed.
    """
    allowed = [address for address in addresses if request.allows_address(address)]
    if not allowed:
        raise NoResponse(refusal(request, host, addresses[0]))
    return allowed


def refusal(request: HTTPRequest, host: str, address: str) -> str:
    """The reason why an address is not connected to, and what to do."""
    from sansmcp.auth import Reach, reach_of_address

    text, reach = f"the address {address} of the host {host} is not ", reach_of_address(address)
    if reach is None:
        return f"{text}that of one machine"
    if reach is not Reach.LOOPBACK and urlsplit(request.url).scheme == "http":
        return f"{text}loopback, which plain http is for"
    return (
        f"{text}public: if the server is one of yours, say "
        f"AuthorizationConfig(allow_addresses={{Reach.{reach.name}}})"
    )


def too_slow(seconds: float) -> str:
    """The reason of a failure after this time."""
    return f"no complete response came within {seconds:g} s"
