"""A reverse proxy that changes only the Host header, and records all exchanges.

Each connection of a client has its own connection to the server. Bytes are passed on as they
arrive, in the same pieces, and not faster than the other side reads them.
"""

from __future__ import annotations

import contextlib
import ssl
import time
from collections import deque
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import attrs
import trio

from sansmcp import Side

from ..._common.errors import AuthorizationError
from .http_passing import (
    Body,
    Credentials,
    End,
    NotHTTP,
    RequestHead,
    Requests,
    ResponseHead,
    Responses,
)
from .http_recording import HTTPRecorder

if TYPE_CHECKING:
    from ...trio._tokens import TokenSource

_READ_BYTES: Final = 65_536
_CONNECT_SECONDS: Final = 30.0
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


@attrs.frozen
class UpstreamServer:
    """The address and TLS settings of the server behind the proxy.

    Attributes:
        authority: The value of the Host header.
        tls: The settings by which the server is verified; None: plain HTTP.
    """

    host: str
    port: int
    authority: str
    tls: ssl.SSLContext | None

    @classmethod
    def of(cls, url: str) -> UpstreamServer:
        """Return the server of a URL that was checked before."""
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        return cls(
            parts.hostname or "",
            parts.port or (443 if secure else 80),
            parts.netloc,
            ssl.create_default_context() if secure else None,
        )

    async def connect(self) -> trio.abc.Stream:
        """Open a connection to the server.

        Raises:
            OSError: The connection failed; the text says why.
        """
        with trio.move_on_after(_CONNECT_SECONDS):
            stream: trio.abc.Stream = await trio.open_tcp_stream(self.host, self.port)
            if self.tls is None:
                return stream
            secured = trio.SSLStream(
                stream, self.tls, server_hostname=self.host, https_compatible=True
            )
            try:
                await secured.do_handshake()
            except trio.BrokenResourceError as error:
                await trio.aclose_forcefully(stream)
                raise OSError(str(error.__cause__ or error)) from None
            except BaseException:
                await trio.aclose_forcefully(stream)
                raise
            return secured
        raise OSError(f"it did not answer within {_CONNECT_SECONDS:g} s")


class ReverseProxy:
    """Passes bytes between clients and the server, and records the exchanges.

    Args:
        upstream: The server.
        recorder: Gets all bytes before they are passed on.
        warn: Called with a sentence on each failure of the proxy itself.
        loopback: Accept only requests to a loopback name. A web page may make its own name lead to
            this address, and the server, which gets another Host header, would not notice.

    Attributes:
        ending: Whether the proxy closes all connections itself.
        tokens: Gives the credentials of requests; None: those of the client are passed on.
    """

    def __init__(
        self,
        upstream: UpstreamServer,
        recorder: HTTPRecorder,
        warn: Callable[[str], object],
        *,
        loopback: bool,
    ) -> None:
        self._upstream = upstream
        self._recorder: HTTPRecorder | None = recorder
        self._warn = warn
        self._loopback = loopback
        self.ending = False
        self.tokens: TokenSource | None = None
        self._start = time.monotonic()

    def clock(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    async def serve(self, client: trio.abc.Stream) -> None:
        """Serve one connection of a client until the client or the server closes it."""
        connection = _ProxiedConnection(self, client)
        try:
            await connection.run()
        finally:
            connection.close()
            await trio.aclose_forcefully(client)

    def refusal(self, head: RequestHead) -> str | None:
        """The reason why a request is refused; None: it is not.

        A page of another site can send requests here, and must not use the token of the user.
        """
        if self._loopback and head.host not in _LOOPBACK:
            return f"Host is {head.host[:80]!r}, which is no loopback name"
        for origin in _origins_of(head) if self.tokens is not None else ():
            if not _is_local(origin):
                return f"Origin is {origin[:80]!r}: with --auth, only pages of this machine may ask"
        return None

    async def connect(self) -> trio.abc.Stream:
        """Open a connection to the server, as `UpstreamServer.connect`."""
        return await self._upstream.connect()

    def warn(self, text: str) -> None:
        """Report a failure of the proxy itself."""
        self._warn(text)

    def for_server(self, head: RequestHead, credentials: Credentials | None) -> bytes:
        """The bytes of a head as the server gets them."""
        return head.for_host(self._upstream.authority, credentials)

    async def credentials(self, head: RequestHead) -> Credentials | None:
        """The headers with which a request is authorized; None: those that it has.

        Raises:
            AuthorizationError: There is no token.
        """
        if self.tokens is None:
            return None
        if head.method == "OPTIONS":  # a browser asks whether a page may send a request
            return []
        scheme = "http" if self._upstream.tls is None else "https"
        url = f"{scheme}://{self._upstream.authority}{head.target}"
        return await self.tokens.headers(head.method, url)

    @contextlib.contextmanager
    def recording(self) -> Generator[HTTPRecorder | None]:
        """The recorder, for a block. A failure in the block ends the recording, nothing else."""
        try:
            yield self._recorder
        except NotHTTP:
            raise
        except Exception as error:  # such as MemoryError
            self._recorder = None
            self._warn(f"nothing more is seen, shown or kept from here on: {error!r}")

    def close(self) -> list[str]:
        """End the recording, and return the lines of the summary."""
        found: list[str] = []
        with self.recording() as recorder:
            if recorder is not None:
                found = list(recorder.close(self.clock()))
        return found


class _ProxiedConnection:
    """One connection of a client, and its connection to the server."""

    def __init__(self, proxy: ReverseProxy, client: trio.abc.Stream) -> None:
        self._proxy = proxy
        self._client = client
        self._server: trio.abc.Stream | None = None
        self._requests = Requests()
        self._responses: Responses | None = Responses()
        self._latest = 0  # the exchange whose request is being read
        self._waiting: deque[int] = deque()  # exchanges whose response is not complete
        self._client_ended = False
        self._is_sending = False
        self._credentials: Credentials | None = None  # of the request whose head has come

    async def run(self) -> None:
        """Pass bytes on until the client or the server has closed its connection."""
        async with trio.open_nursery() as nursery:
            await self._to_server(nursery)
            if self._is_idle:
                nursery.cancel_scope.cancel()

    @property
    def _is_idle(self) -> bool:
        """Whether all exchanges are complete. A client that has sent EOF may wait for responses."""
        return not self._waiting and not self._is_sending

    def close(self) -> None:
        """Record the exchanges that were broken off."""
        if self._proxy.ending:
            return
        by = Side.CLIENT if self._client_ended else Side.SERVER
        for exchange in self._waiting:
            with self._proxy.recording() as recorder:
                if recorder is not None:
                    recorder.broken_off(exchange, by, self._proxy.clock())
        self._waiting.clear()
        self._responses = None  # later bytes belong to no recorded exchange

    # ---------------------------------------------------------------------- to the server

    async def _to_server(self, nursery: trio.Nursery) -> None:
        while data := await _read(self._client):
            passing = bytearray()
            refused: tuple[int, str] | None = None
            try:
                for part in self._requests.feed(data):
                    if isinstance(part, RequestHead):
                        refused = await self._open(part, nursery)
                        if refused is not None:
                            break
                    # All parts are recorded before any is sent: the response may come at once.
                    passing += self._see_request(part)
            except NotHTTP as error:
                refused = 400, f"this is no request of HTTP/1.1: {error}"
            if passing and self._server is not None:
                with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    await self._server.send_all(passing)  # fails if the server has responded early
            if refused is not None:
                await self._refuse(*refused)
                return
        self._client_ended = True
        await self._end_input()

    async def _open(self, head: RequestHead, nursery: trio.Nursery) -> tuple[int, str] | None:
        """Open the connection for a request. Returns a status and a text if that is refused."""
        if (reason := self._proxy.refusal(head)) is not None:
            return 403, reason
        if self._server is None:
            try:
                self._server = await self._proxy.connect()
            except OSError as error:
                return 502, f"the server cannot be reached: {error}"
            nursery.start_soon(self._to_client, self._server, nursery.cancel_scope)
        try:
            self._credentials = await self._proxy.credentials(head)
        except AuthorizationError as error:
            return 502, f"there is no token for the server: {error}"
        return None

    def _see_request(self, part: RequestHead | Body | End) -> bytes:
        """Record a part of a request, and return its bytes for the server."""
        with self._proxy.recording() as recorder:
            if recorder is not None:
                self._record_request(recorder, part)
        match part:
            case RequestHead():
                if self._responses is not None:
                    self._responses.expect(part)
                return self._proxy.for_server(part, self._credentials)
            case Body():
                return part.raw
            case End():
                return b""

    def _record_request(self, recorder: HTTPRecorder, part: RequestHead | Body | End) -> None:
        now = self._proxy.clock()
        match part:
            case RequestHead():
                self._latest = recorder.began(part.method, part.target, part.headers, now)
                self._waiting.append(self._latest)
            case Body() if self._latest in self._waiting:
                recorder.sent(self._latest, Side.CLIENT, part.data, now)
            case End() if self._latest in self._waiting:
                recorder.complete(self._latest, Side.CLIENT, now)
            case _:
                pass  # the response was complete before the request

    async def _end_input(self) -> None:
        """Pass the end of the client's bytes on to the server."""
        server = self._server
        if isinstance(server, trio.SocketStream):
            with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await server.send_eof()
        else:  # TLS has no half-closed connections: open exchanges get no response
            self.close()

    async def _refuse(self, status: int, text: str) -> None:
        self._proxy.warn(f"a request was answered with {status}: {text}")
        body = f"sansmcp tap: {text}\n".encode()
        reasons = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway"}
        head = (
            f"HTTP/1.1 {status} {reasons[status]}\r\ncontent-type: text/plain; charset=utf-8\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await self._client.send_all(head.encode() + body)

    # ---------------------------------------------------------------------- to the client

    async def _to_client(self, server: trio.abc.Stream, scope: trio.CancelScope) -> None:
        try:
            while data := await _read(server):
                self._is_sending = True
                self._see_response(data)
                await self._client.send_all(data)
                self._is_sending = False
                if self._client_ended and self._is_idle:
                    break
            self._see_response(b"")  # a body may last as long as its connection
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._client_ended = True
        finally:
            await trio.aclose_forcefully(server)
        scope.cancel()

    def _see_response(self, data: bytes) -> None:
        if self._responses is None:
            return
        try:
            with self._proxy.recording() as recorder:
                if recorder is None:
                    return
                for part in self._responses.feed(data):
                    self._record_response(recorder, part)
        except NotHTTP:
            self._responses = None

    def _record_response(self, recorder: HTTPRecorder, part: ResponseHead | Body | End) -> None:
        now = self._proxy.clock()
        exchange = self._waiting[0]
        match part:
            case ResponseHead():
                recorder.answered(exchange, part.status, part.headers, now)
            case Body():
                recorder.sent(exchange, Side.SERVER, part.data, now)
            case End():
                self._waiting.popleft()
                recorder.complete(exchange, Side.SERVER, now)


def _origins_of(head: RequestHead) -> list[str]:
    return [value for name, value in head.headers if name == "origin"]


def _is_local(origin: str) -> bool:
    """Whether an origin is a page that this machine serves."""
    try:
        host = urlsplit(origin).hostname
    except ValueError:
        return False
    return host in ("localhost", "127.0.0.1", "::1")


async def _read(stream: trio.abc.Stream) -> bytes:
    """Read the next bytes; `b""` at the end, or after a failure."""
    try:
        return bytes(await stream.receive_some(_READ_BYTES))
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return b""
