"""Single requests to servers that are not trusted yet: their bounds, and where they may go."""

import gzip
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import attrs
import httpx2
import pytest

from sansmcp import JSONObject
from sansmcp.auth import AddressRules, HTTPRequest, Reach
from sansmcp_io._async.httpx_one_shot import HTTPXOneShotSender
from sansmcp_io._async.one_shot import ClientOneShotSender, H11OneShotSender
from sansmcp_io._common.one_shot import NoResponse, OneShotResponse
from sansmcp_io._options.clients import HTTPClientOptions
from sansmcp_io.asyncio import _client_stream, _loop
from sansmcp_io.blocking import _one_shot
from sansmcp_io.oauth import OAuth
from sansmcp_io.trio import _http_client
from sansmcp_io.trio import _loop as _trio_loop
from sansmcp_io.wsgi._one_shot import SocketOneShotSender
from tests.support.adapters import loops
from tests.support.adapters.loops import STANDARD_LOOPS, on_each_loop
from tests.support.http.certificates import certificate as certificate
from tests.support.http.proxy import proxying

INFO: JSONObject = {"name": "test", "version": "1"}
LOOPBACK = AddressRules(Reach.LOOPBACK)
PUBLIC = AddressRules(Reach.PUBLIC)
WAYS = pytest.mark.parametrize("way", ["h11", "httpx2", "threads", "sockets"])
on_loops = on_each_loop(loops=STANDARD_LOOPS)
"""For each way and loop; the ways without a loop are tried within each."""


@attrs.define
class Listener:
    """A server that answers each connection with bytes, however it was asked."""

    port: int
    heads: list[bytes] = attrs.field(factory=list[bytes])


@contextmanager
def answering(
    answer: Callable[[socket.socket], None], tls: ssl.SSLContext | None = None
) -> Generator[Listener, None, None]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        listener = Listener(server.getsockname()[1])

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                    with connection:
                        if tls is not None:
                            connection = tls.wrap_socket(connection, server_side=True)
                        listener.heads.append(_received(connection))
                        answer(connection)
                        connection.close()
                except OSError:
                    if server.fileno() < 0:
                        return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener
        with socket.socket() as last:  # wakes the thread, which then finds the server closed
            server_port = listener.port
            server.close()
            last.settimeout(1)
            last.connect_ex(("127.0.0.1", server_port))


def _received(connection: socket.socket) -> bytes:
    """A whole request, or what there is of it."""
    data = b""
    while part := connection.recv(65_536):
        data += part
        head, blank, body = data.partition(b"\r\n\r\n")
        if blank and (not head.startswith(b"POST") or body):
            break
    return data


def said(*parts: bytes, pause: float = 0.0) -> Callable[[socket.socket], None]:
    def say(connection: socket.socket) -> None:
        for part in parts:
            connection.sendall(part)
            time.sleep(pause)  # the server is slow: that is what is tried

    return say


def wanted(port: int, **settings: Any) -> HTTPRequest:
    settings = {
        "method": "GET",
        "url": f"http://127.0.0.1:{port}/path?a=b",
        "headers": (("Accept", "application/json"),),
        "max_body_bytes": 1000,
        "timeout": 20.0,
        "addresses": LOOPBACK,
        **settings,
    }
    return HTTPRequest(**settings)


async def send(
    way: str, request: HTTPRequest, tls: ssl.SSLContext | None = None
) -> OneShotResponse:
    """Make a request in one of the ways."""
    if way == "sockets":
        in_thread = SocketOneShotSender(tls)
        return await loops.in_thread(lambda: in_thread.send(request))
    if way == "threads":
        options = HTTPClientOptions[Any](url=request.url, info=INFO, tls=tls)
        return await loops.in_thread(lambda: _one_shot.OneShotSender(options).send(request))
    if way == "httpx2":
        loop: Any = _trio_loop.TrioLoop() if loops.is_trio() else _loop.AsyncioLoop()
        async with httpx2.AsyncClient(
            headers={"x-secret": "s", "authorization": "Bearer x"},
            cookies={"c": "secret"},
            auth=("user", "secret"),
            verify=tls or True,
        ) as client:
            return await HTTPXOneShotSender(loop, client).send(request)
    if loops.is_trio():
        connect, broken = _http_client.connect, _http_client.BROKEN
        return await H11OneShotSender(_trio_loop.TrioLoop(), connect, broken, tls).send(request)
    streams = _client_stream.ClientStreams()
    try:
        sender = H11OneShotSender(_loop.AsyncioLoop(), streams.connect, (OSError,), tls)
        return await sender.send(request)
    finally:
        await streams.close()


GOOD = b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 2\r\n\r\nok"


@WAYS
@on_loops
async def test_a_response_comes_as_it_is(way: str) -> None:
    """Status, fields and body; what the client of the application adds is not sent."""
    with answering(said(GOOD)) as server:
        request = wanted(server.port, method="POST", body=b"x=1")
        response = await send(way, request)
        assert (response.status, response.body) == (200, b"ok")
        assert (b"content-type", b"a/b") in response.headers
        head = server.heads[0].lower()
        assert head.startswith(b"post /path?a=b http/1.1\r\n")
        assert b"\r\nhost: 127.0.0.1:%d\r\n" % server.port in head
        assert b"secret" not in head
        assert b"authorization" not in head
        assert head.endswith(b"\r\n\r\nx=1")


@WAYS
@on_loops
async def test_a_redirect_is_not_followed(way: str) -> None:
    """Whoever asked judges where it leads."""
    location = b"http://127.0.0.1:1/inwards"
    moved = b"HTTP/1.1 302 Found\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % location
    with answering(said(moved)) as server:
        response = await send(way, wanted(server.port))
    assert response.status == 302
    assert dict(response.headers)[b"location"] == location


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (said(b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * 2000), "longer than 1000 bytes"),
        (
            said(
                b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"a" * 10_000)
            ),
            "encoded",
        ),
        (said(b""), "without a response"),
        (said(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"), "closed the connection"),
        (said(b"220 smtp.example\r\n\r\n"), "no valid HTTP response"),
    ],
    ids=["too long", "encoded", "nothing", "broken off", "no HTTP"],
)
@WAYS
@on_loops
async def test_a_response_that_cannot_be_used_is_a_failure(
    way: str, answer: Callable[[socket.socket], None], text: str
) -> None:
    """The reason is a sentence."""
    with answering(answer) as server, pytest.raises(NoResponse, match=text):
        await send(way, wanted(server.port))


@WAYS
@on_loops
async def test_a_slow_server_has_its_time_and_no_more(way: str) -> None:
    """One byte after the other would last for ever."""
    drip = said(*[b"%c" % byte for byte in GOOD] * 100, pause=0.05)
    with answering(drip) as server, pytest.raises(NoResponse, match=r"within 0\.3 s"):
        await send(way, wanted(server.port, timeout=0.3))


@pytest.mark.parametrize(
    "parts",
    [
        (b"HTTP/1.1 200 OK\r\nX: ", *[b"a"] * 2000),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", *[b"a"] * 900),
    ],
    ids=["head", "body"],
)
def test_a_slow_server_keeps_no_thread(parts: tuple[bytes, ...]) -> None:
    """The thread that has made the request ends, too, and its connection is closed."""
    before = set(threading.enumerate())
    with answering(said(*parts, pause=0.05)) as server:
        options = HTTPClientOptions[Any](url="http://127.0.0.1/", info=INFO)
        with pytest.raises(NoResponse, match=r"within 0\.5 s"):
            _one_shot.OneShotSender(options).send(wanted(server.port, timeout=0.5))
        for thread in set(threading.enumerate()) - before:
            if thread.name == "sansmcp call":
                thread.join(20)
                assert not thread.is_alive()


@pytest.mark.parametrize("way", ["httpx2", "threads"])
@pytest.mark.parametrize("named", ["by the application", "by the environment", "ignored", "not"])
@on_loops
async def test_a_proxy_of_the_client_may_have_any_address(
    way: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application has chosen it; what it connects to is its business.

    A connection to what nobody has named a proxy is one to a server, however it is spelt.
    """
    with answering(said(GOOD)) as server, proxying() as proxy:
        settings: dict[str, Any] = {"trust_env": named != "not"}
        auth = None
        if named == "by the environment":
            monkeypatch.setenv("ALL_PROXY", proxy.url.removeprefix("http://"))
        else:
            settings["proxy"] = proxy.url
            monkeypatch.setenv("HTTPS_PROXY", "http://[")  # it cannot be read
            monkeypatch.delenv("ALL_PROXY", raising=False)
        if named == "by the application":
            auth = OAuth(proxies=["http://elsewhere:1", proxy.url.upper()])
        request = wanted(0, url=f"http://no-such-host.invalid:{server.port}/", addresses=PUBLIC)
        kind: Any = httpx2.Client if way == "threads" else httpx2.AsyncClient
        client: Any = kind(**settings)
        given = HTTPClientOptions[Any](url=request.url, info=INFO, http=client, auth=auth)
        try:
            if named.startswith("by"):
                assert (await send_as_client(way, given, request)).body == b"ok"
            else:
                hint = rf"is not public.*; if 127\.0\.0\.1:{proxy.port} is a proxy .*OAuth\(proxies"
                with pytest.raises(NoResponse, match=hint):
                    await send_as_client(way, given, request)
        finally:
            if way == "threads":
                client.close()
            else:
                await client.aclose()
        assert len(proxy.asked) == named.startswith("by")


def test_proxies_are_several() -> None:
    """A string would be read as one URL for each letter."""
    with pytest.raises(ValueError, match="proxies must be a list of URLs"):
        OAuth(proxies="http://proxy:3128")
    assert "secret" not in repr(OAuth(proxies=["http://user:secret@proxy:3128"]))


async def send_as_client(
    way: str, options: HTTPClientOptions[Any], request: HTTPRequest
) -> OneShotResponse:
    """Make a request in the way that a client of MCP with these options does."""
    if way == "threads":
        sender = _one_shot.OneShotSender(options)
        return await loops.in_thread(lambda: sender.send(request))
    loop: Any = _trio_loop.TrioLoop() if loops.is_trio() else _loop.AsyncioLoop()
    direct = H11OneShotSender(loop, _http_client.connect, (OSError,), None)
    return await ClientOneShotSender(loop, options, direct).send(request)


@pytest.mark.parametrize("way", ["h11", "threads"])
@on_loops
async def test_a_proxy_that_is_refused_is_refused_for_every_server(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment may name a proxy for the authorization server alone."""
    with proxying() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        request = wanted(0, url="http://as.example/token")
        options = HTTPClientOptions[Any](url="http://127.0.0.1/", info=INFO, proxies="refuse")
        with pytest.raises(NoResponse, match="names a proxy for this URL"):
            await send_as_client(way, options, request)
        assert proxy.asked == []


@WAYS
@on_loops
async def test_no_connection_is_a_failure(way: str) -> None:
    """The server is down, or its name unknown."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(NoResponse, match="the connection has failed"):
            await send(way, wanted(port))
    url = "http://no-such-host.invalid/"
    with pytest.raises(NoResponse, match=r"unknown|the connection has failed"):
        await send(way, wanted(0, url=url))


@WAYS
@on_loops
async def test_an_address_that_is_not_allowed_is_not_connected_to(way: str) -> None:
    """A server that is reached from everywhere must not send its clients inwards."""
    with answering(said(GOOD)) as server:
        with pytest.raises(NoResponse, match=r"127\.0\.0\.1 .* is not public"):
            await send(way, wanted(server.port, addresses=PUBLIC))
        assert server.heads == []


@pytest.mark.parametrize(
    ("scheme", "address", "says"),
    [
        ("https", "127.0.0.1", r"allow_addresses={Reach\.LOOPBACK}"),
        ("https", "10.0.0.9", r"allow_addresses={Reach\.PRIVATE}"),
        ("https", "0.0.0.0", "not that of one machine$"),
        ("http", "10.0.0.9", "not loopback, which plain http is for$"),
    ],
)
@WAYS
@on_loops
async def test_a_refusal_says_what_would_allow_it(
    way: str, scheme: str, address: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One kind of addresses, and not all: link-local has the secrets of a machine in a cloud."""
    real = socket.getaddrinfo

    def look_up(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        return real(address if name == "here.example" else host, port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(NoResponse, match=says):
        await send(way, wanted(0, url=f"{scheme}://here.example:1/", addresses=PUBLIC))


@pytest.mark.parametrize("name", ["rebound.example", "REBOUND.example"])
@pytest.mark.parametrize("way", ["httpx2", "threads"])
@on_loops
async def test_a_name_that_means_another_address_a_moment_later_changes_nothing(
    way: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to the second lookup leads inwards (DNS rebinding).

    httpx2 writes the second name in lower case, unlike the URL: it is no proxy for that.
    """
    real, lookups = socket.getaddrinfo, 0

    def look_up(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal lookups
        if (host.decode() if isinstance(host, bytes) else host or "").lower() != name.lower():
            return real(host, port, *args, **kwargs)
        lookups += 1
        return real("8.8.8.8" if lookups == 1 else "127.0.0.1", port, *args, **kwargs)

    with answering(said(GOOD)) as server:
        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        url = f"https://{name}:{server.port}/"
        with pytest.raises(NoResponse, match=r"127\.0\.0\.1 .* is not public"):
            await send(way, wanted(server.port, url=url, addresses=PUBLIC))
        assert lookups >= 2
        assert server.heads in ([], [b""])  # a connection, and nothing on it


@pytest.mark.parametrize("way", ["h11", "threads", "sockets"])
@on_loops
async def test_the_lookup_of_a_name_is_part_of_the_time(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot be interrupted, so no one waits for it longer than that."""
    real, is_over = socket.getaddrinfo, threading.Event()

    def look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host == "slow.example":
            is_over.wait(20)
        return real("127.0.0.1", *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    try:
        with pytest.raises(NoResponse, match=r"within 0\.2 s"):
            await send(way, wanted(0, url="http://slow.example:1/", timeout=0.2))
    finally:
        is_over.set()


def test_a_time_that_is_over_at_once_is_a_failure() -> None:
    """Not an exception that a server would not expect."""
    with pytest.raises(NoResponse, match="within 1e-09 s"):
        SocketOneShotSender().send(wanted(1, timeout=1e-9))


@WAYS
@on_loops
async def test_a_certificate_that_no_one_knows_is_not_accepted(way: str, certificate: str) -> None:
    """Without settings of TLS, the certificates of the system count."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with answering(said(GOOD), context) as server:
        with pytest.raises(NoResponse, match="certificate is not valid"):
            await send(way, wanted(0, url=f"https://localhost:{server.port}/"))
        assert server.heads == []


@WAYS
@on_loops
async def test_tls_verifies_the_name_and_not_the_address(way: str, certificate: str) -> None:
    """The connection goes to an address, and the certificate is for the name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    trusting = ssl.create_default_context(cafile=certificate)
    with answering(said(GOOD), context) as server:
        url = f"https://localhost:{server.port}/"
        assert (await send(way, wanted(0, url=url), trusting)).body == b"ok"
        url = f"https://127.0.0.1:{server.port}/"
        with pytest.raises(NoResponse, match="certificate is not valid"):
            await send(way, wanted(0, url=url), trusting)
