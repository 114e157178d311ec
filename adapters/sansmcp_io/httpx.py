"""Exchanges of `sansmcp.http.ClientEndpoint` as requests of httpx2, and its failures as sentences.

`connect_http(url, http=client)` of each adapter is what most programs use. This is for those that
move the exchanges of an endpoint themselves.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies

from sansmcp.http import ClientExchange

from ._common.errors import without_extra
from ._common.one_shot import NoResponse, OneShotExchange, refusal
from ._common.shared_pool import POOL_IS_FULL, POOL_SECONDS, PoolIsFull

try:
    import httpx2
except ModuleNotFoundError as _error:
    raise without_extra("httpx", _error, package="httpx2") from None

if TYPE_CHECKING:
    from sansmcp.auth import HTTPRequest

__all__ = ["build_request", "failure_text"]

CONNECTION: Final = "httpx2"
"""What traces call each connection: which one carries a request is the client's business."""
_PROXY_PORTS: Final = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
_IDLE_SECONDS: Final = 60.0
"""After so long a server may close a connection at any moment, in the midst of the next request."""


def build_request(
    client: httpx2.Client | httpx2.AsyncClient,
    exchange: ClientExchange,
    *,
    connect: float | None = None,
    trace: Callable[..., object] | None = None,
) -> httpx2.Request:
    """The httpx2 request of an exchange, with the headers that the client adds to each request.

    Send it with `client.send(request, stream=True, follow_redirects=False)`: it is the endpoint
    that judges redirects. Beside opening a connection nothing has a timeout, since a stream may be
    silent for long: the deadlines of the endpoint hold.

    Args:
        client: The client that is to send it.
        exchange: The exchange to send.
        connect: Seconds that opening a connection may take.
        trace: The extension `trace` of httpx2.
    """
    # A compressed body would be no smaller in a stream of small events, and larger in memory.
    headers = [*exchange.headers, (b"accept-encoding", b"identity")]
    return client.build_request(
        exchange.method,
        exchange.url,
        headers=headers,
        content=exchange.body if exchange.method == "POST" else None,
        timeout=httpx2.Timeout(None, connect=connect, pool=POOL_SECONDS),
        extensions=None if trace is None else {"trace": trace},
    )


def failure_text(
    error: BaseException,
    *,
    has_head: bool = False,
    connect: float | None = None,
    proxy: str | None = None,
) -> str:
    """A failure and its remedy, in one sentence without text of the peer.

    Args:
        error: The exception of the client.
        has_head: The head of the response had come.
        connect: Seconds that opening a connection might take.
        proxy: Host and port of the proxy that the client has tried to reach; None: the server.
    """
    connection = "connection" if proxy is None else f"connection to the proxy {proxy}"
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the server's certificate is not valid: {cause.verify_message}"
    match error:
        case httpx2.ConnectTimeout():
            seconds = "time" if connect is None else f"{connect:g} s"
            return f"the {connection} has failed: not open within {seconds}"
        case httpx2.PoolTimeout() | PoolIsFull():
            return POOL_IS_FULL
        case HTTP2Refused():
            return (
                "without a loop there is no HTTP/2, since one thread would read for all: "
                "give the httpx2 client http2=False"
            )
        case httpx2.ProxyError():
            status = str(error)[:3]
            said = f" with status {status}" if status.isdigit() else ""
            return (
                f"the proxy has refused the connection{said}: check the address of the proxy, and "
                "whether it wants to know who asks"
            )
        case httpx2.RemoteProtocolError() | httpx2.ReadError() if has_head:
            return "the server has closed the connection in the midst of its response"
        case httpx2.RemoteProtocolError() if str(error).startswith("Server disconnected"):
            return "the server has closed the connection without a response"
        case httpx2.RemoteProtocolError():
            return "no valid HTTP response"
        case httpx2.DecodingError():
            return "the body of the response is not in the encoding that its head names"
        case httpx2.NetworkError() | ssl.SSLError():
            return f"the {connection} has failed: {causes[-1]}"
        case httpx2.TransportError() | httpx2.TooManyRedirects():
            return f"httpx2 cannot make this request: {type(error).__name__}"
        case _:
            return f"the httpx2 client has failed: {type(error).__name__}"


class AddressCheck:
    """Follows the trace of one request, and finds a connection to an address that is not allowed.

    What is traced is the connection itself, before anything is written to it: a name that means
    another address a moment later changes nothing. A proxy, and an application in this process,
    connect by themselves.

    Args:
        request: The request, which knows the addresses that it may go to.
        exchange: The same request, which knows its host and port.
        proxies: The host and port of each proxy that the client may use. What is connected to
            otherwise counts as the server, however its host is spelt.
    """

    def __init__(
        self, request: HTTPRequest, exchange: OneShotExchange, proxies: frozenset[tuple[str, int]]
    ) -> None:
        self._request = request
        self._host = exchange.host
        # To name a proxy as a server does not make it one.
        self._proxies = proxies - {(exchange.host, exchange.port)}
        self._way = (exchange.host, exchange.port)

    def refused(self, name: str, info: dict[str, Any]) -> NoResponse | None:
        """Return why a connection that has just been opened is not to be used."""
        _, action, phase = name.rsplit(".", 2)
        if action == "connect_tcp" and phase == "started":
            self._way = (info["host"].lower(), info["port"])
        elif action == "connect_tcp" and phase == "complete" and self._way not in self._proxies:
            address = str(info["return_value"].get_extra_info("server_addr")[0])
            if not self._request.allows_address(address):
                return NoResponse(refusal(self._request, self._host, address) + self._hint())
        return None

    def _hint(self) -> str:
        """What to do if the connection was one to a proxy, which nobody has told of."""
        host, port = self._way
        if host == self._host.lower():
            return ""
        return f"; if {host}:{port} is a proxy of the httpx2 client, name it in OAuth(proxies=...)"


def proxies_of(
    client: httpx2.Client | httpx2.AsyncClient, named: Iterable[str]
) -> frozenset[tuple[str, int]]:
    """The host and port of each proxy that a client may use, as far as is known.

    That are the ones that the application names, and those of the environment where the client
    looks there; httpx2 tells no others in public. A proxy that is not found is taken for the server
    that is asked: its address has to be allowed then.

    Args:
        client: The client.
        named: URLs of proxies.
    """
    urls = list(named)
    if client.trust_env:
        known = getproxies()
        urls += [known[scheme] for scheme in ("http", "https", "all") if scheme in known]
    return frozenset(filter(None, map(_way_to_proxy, urls)))


def _way_to_proxy(url: str) -> tuple[str, int] | None:
    """Host and port of a proxy; None: the URL is none, and httpx2 passes it over or raises."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port
    except ValueError:
        return None
    return parts.hostname or "", port or _PROXY_PORTS.get(parts.scheme, 0)


def build_one_shot(
    exchange: OneShotExchange, url: str, seconds: float, trace: Callable[..., object]
) -> httpx2.Request:
    """The httpx2 request of a single request, without headers, cookies and `auth=` of a client.

    Those are for the servers of the application, and not for those that a server has named.
    """
    headers: list[tuple[bytes, bytes]] = [
        (b"host", exchange.authority.encode("ascii")),
        *exchange.headers,
    ]
    return httpx2.Request(
        exchange.method,
        url,
        headers=headers,
        content=exchange.body if exchange.method == "POST" else None,
        extensions={"timeout": httpx2.Timeout(seconds).as_dict(), "trace": trace},
    )


ClientT = TypeVar("ClientT", httpx2.Client, httpx2.AsyncClient)


def new_client(kind: type[ClientT], tls: ssl.SSLContext, proxy: str | None) -> ClientT:
    """A client of our own, whose pool has no bound: `HTTPClientLimits` has one.

    Raises:
        ValueError: There is no way through such a proxy.
    """
    limits = httpx2.Limits(max_connections=None, keepalive_expiry=_IDLE_SECONDS)
    try:
        return kind(verify=tls, proxy=proxy, trust_env=False, limits=limits)
    except ImportError:
        if proxy is None or not proxy.lower().startswith("socks"):
            raise
        text = "the environment names a SOCKS proxy, which needs: pip install 'httpx2[socks]'"
        raise ValueError(text) from None
    except (ValueError, httpx2.InvalidURL):
        text = "the environment names a proxy that is no URL of http, https or socks5"
        raise ValueError(text) from None


def tls_for(url: str, tls: ssl.SSLContext | None) -> ssl.SSLContext:
    """The TLS settings for a URL; for plain HTTP, settings that are not used."""
    if tls is not None:
        return tls
    if url.lower().startswith("https:"):
        return ssl.create_default_context()  # slow: all root certificates are read
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def is_known(error: BaseException) -> bool:
    """Whether an error is a failure of the connection or the response, and not of a hook."""
    # httpx2 does not wrap all TLS errors. `HTTPStatusError` comes from hooks only.
    return isinstance(
        error,
        httpx2.TransportError
        | httpx2.DecodingError
        | httpx2.TooManyRedirects
        | ssl.SSLError
        | PoolIsFull
        | HTTP2Refused,
    )


def was_kept(error: BaseException) -> bool:
    """Whether a connection that was kept may have been closed as the request was sent."""
    return isinstance(error, httpx2.NetworkError | httpx2.RemoteProtocolError)


def head_text(first_line: str, headers: httpx2.Headers) -> bytes:
    """A head in the form of HTTP/1.1, for traces."""
    lines = [b"%b: %b\r\n" % (name.lower(), value) for name, value in headers.raw]
    return b"%b\r\n%b\r\n" % (first_line.encode("ascii"), b"".join(lines))


def request_text(request: httpx2.Request) -> bytes:
    """A request, for traces."""
    target = request.url.raw_path.decode("ascii")
    return head_text(f"{request.method} {target} HTTP/1.1", request.headers) + request.content


def response_text(response: httpx2.Response) -> bytes:
    """The head of a response, for traces."""
    line = f"HTTP/1.1 {response.status_code} {response.reason_phrase}"
    return head_text(line, response.headers)


class HTTP2Refused(Exception):
    """The request would go over HTTP/2, on whose connections threads wait for each other."""


class ConnectionNotes:
    """What the trace of httpx2 tells of the connection of one request.

    Attributes:
        is_new: Whether a connection was opened for the request.
        proxy: Host and port of the proxy that is being connected to; None: no proxy is.
    """

    def __init__(self, exchange: ClientExchange) -> None:
        self.is_new: bool = False
        self.proxy: str | None = None
        self._url: Final = exchange.url

    def note(self, name: str, info: Mapping[str, Any]) -> None:
        """Note an event, such as `connection.connect_tcp.started`, of the client or its proxy."""
        _, action, phase = name.rsplit(".", 2)
        if action in ("connect_tcp", "connect_unix_socket") and phase == "started":
            self.is_new = True
            if action == "connect_tcp":
                url = httpx2.URL(self._url)
                port = url.port or {"http": 80, "https": 443}[url.scheme]
                host, at = info["host"], info["port"]
                self.proxy = None if (host, at) == (url.raw_host.decode(), port) else f"{host}:{at}"
        elif phase == "complete":
            self.proxy = None


def _causes(error: BaseException) -> Generator[BaseException, None, None]:
    """An error and its causes."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        several: tuple[BaseException, ...] = getattr(cause, "exceptions", ())  # of a group
        cause = several[0] if several else cause.__cause__ or cause.__context__
