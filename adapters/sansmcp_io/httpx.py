"""Exchanges of `sansmcp.http.ClientEndpoint` as requests of httpx2, and its failures as sentences.

`connect_http(url, http=client)` of each adapter is what most programs use. This is for those that
move the exchanges of an endpoint themselves.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Generator
from typing import Final, TypeVar

from sansmcp import Subscription
from sansmcp.http import ClientExchange, ExchangePurpose

from ._common.errors import without_extra

try:
    import httpx2
except ModuleNotFoundError as _error:
    raise without_extra("httpx", _error, package="httpx2") from None

__all__ = ["build_request", "failure_text"]

CONNECTION: Final = "httpx2"
"""What traces call each connection: which one carries a request is the client's business."""
_IDLE_SECONDS: Final = 60.0
"""After so long a server may close a connection at any moment, in the midst of the next request."""
POOL_SECONDS: Final = 0.5
"""After so long without a connection of the client's pool it is looked what is in the way."""
POOL_IS_FULL: Final = (
    "the connection pool of the httpx2 client has no room beside open streams: "
    "give it a larger max_connections"
)


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
    error: BaseException, *, has_head: bool = False, connect: float | None = None
) -> str:
    """A failure and its remedy, in one sentence without text of the peer.

    Args:
        error: The exception of the client.
        has_head: The head of the response had come.
        connect: Seconds that opening a connection might take.
    """
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the server's certificate is not valid: {cause.verify_message}"
    match error:
        case httpx2.ConnectTimeout():
            seconds = "time" if connect is None else f"{connect:g} s"
            return f"the connection has failed: not open within {seconds}"
        case httpx2.PoolTimeout():
            return POOL_IS_FULL
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
            return f"the connection has failed: {causes[-1]}"
        case httpx2.HTTPError():
            return f"httpx2 cannot make this request: {type(error).__name__}"
        case _:
            return f"the httpx2 client has failed: {type(error).__name__}"


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
    """Whether an error is a failure of the connection, and not of the application."""
    return isinstance(error, httpx2.HTTPError | ssl.SSLError)  # httpx2 does not wrap all TLS errors


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


def is_beside(exchange: ClientExchange) -> bool:
    """Whether an exchange is the stream for messages without a request, which requests displace."""
    beside = exchange.purpose in (ExchangePurpose.GET, ExchangePurpose.RESUME)
    return beside and not exchange.awaited


def lasts(exchange: ClientExchange) -> bool:
    """Whether an exchange is a stream without a natural end."""
    return is_beside(exchange) or isinstance(exchange.request, Subscription)


def _causes(error: BaseException) -> Generator[BaseException, None, None]:
    """An error and its causes."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        several: tuple[BaseException, ...] = getattr(cause, "exceptions", ())  # of a group
        cause = several[0] if several else cause.__cause__ or cause.__context__
