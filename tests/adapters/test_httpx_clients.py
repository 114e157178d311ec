"""`connect_http` of loops over a client of httpx2: what is its business, and what is not."""

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, JSONObject, ResourceUpdated
from sansmcp_io.asgi import App
from sansmcp_io.asyncio import connect_http as connect_on_asyncio
from sansmcp_io.trio import (
    Client,
    ConnectionLost,
    HTTPClientLimits,
    InvalidAnswer,
    PeerError,
    RequestRefused,
    RequestTimeout,
    Unauthorized,
)
from tests.support.adapters import loops
from tests.support.adapters.loops import STANDARD_LOOPS, on_each_loop
from tests.support.http.certificates import certificate
from tests.support.http.on_loops import connect_http, serving
from tests.support.http.proxy import proxying
from tests.support.http.tools import URI, handle
from tests.support.programs.http2_app import serving_http2

__all__ = ["certificate"]  # a fixture

INFO: JSONObject = {"name": "test-client", "version": "1.0"}
MODERN, LEGACY = MODERN_REVISIONS[-1:], LEGACY_REVISIONS[-1:]
ERAS = pytest.mark.parametrize("revisions", [MODERN, LEGACY], ids=["modern", "legacy"])
ECHO: JSONObject = {"name": "echo", "arguments": {"text": "a"}}
HOST = "two.example"
ONE_CONNECTION = httpx2.Limits(max_connections=1)
on_loops = on_each_loop(loops=STANDARD_LOOPS)


@asynccontextmanager
async def connecting(
    port: int, http: httpx2.AsyncClient | None = None, **settings: Any
) -> AsyncGenerator[Client, None]:
    url = f"http://127.0.0.1:{port}/mcp"
    async with (
        http or httpx2.AsyncClient() as opened,
        connect_http(url, info=INFO, http=opened, **settings) as client,
    ):
        yield client


async def echo(client: Client) -> str:
    result: Any = await client.request("tools/call", ECHO)
    text: str = result["content"][0]["text"]
    return text


# ------------------------------------------------------------------------------------ the client


@ERAS
@on_loops
async def test_client_of_the_caller_stays_open(revisions: tuple[str, ...]) -> None:
    """It is used for other things, too, and for the next conversation."""
    async with serving(handle) as server, httpx2.AsyncClient() as http:
        for _ in range(2):
            url = f"http://127.0.0.1:{server.port}/mcp"
            async with connect_http(url, info=INFO, http=http, revisions=revisions) as client:
                assert await echo(client) == "a"
        assert not http.is_closed
        assert not server.sessions


@on_loops
async def test_hooks_auth_and_headers_of_the_client_count() -> None:
    """A program that signs its requests has one place where it does so."""

    def knows(headers: Any) -> str:
        if headers.get("authorization") != "Basic YW5uOm5vbmU=":
            raise Unauthorized("Basic")
        return str(headers["x-key"])

    async def on_request(request: httpx2.Request) -> None:
        seen.append(request.method)

    seen: list[str] = []
    http = httpx2.AsyncClient(
        auth=("ann", "none"), headers={"x-key": "k"}, event_hooks={"request": [on_request]}
    )
    async with serving(handle, authenticate=knows) as server, connecting(server.port, http) as one:
        result: Any = await one.request("tools/call", {"name": "who", "arguments": {}})
    assert result["content"][0]["text"].startswith("k ")
    assert set(seen) == {"POST"}


@on_loops
async def test_hook_that_fails_ends_the_call_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is a part of the caller's program, and no reason to end the conversation."""

    async def on_request(request: httpx2.Request) -> None:
        if b"tools/call" in request.content:
            raise OSError("the keychain is locked")

    http = httpx2.AsyncClient(event_hooks={"request": [on_request]})
    async with serving(handle) as server, connecting(server.port, http) as client:
        with pytest.raises(ConnectionLost, match="the httpx2 client has failed: OSError"):
            await echo(client)
        assert await client.request("tools/list") == {"tools": []} | await client.request(
            "tools/list"
        )
    assert "the httpx2 client has failed" in caplog.messages


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@on_loops
async def test_redirects_are_judged_by_the_endpoint(status: int) -> None:
    """Whatever the client would do: a token never gets to another origin."""

    async def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.host)
        return httpx2.Response(status, headers={"location": "http://other.example/mcp"})

    asked: list[str] = []
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer), follow_redirects=True)
    with pytest.raises((ConnectionError, PeerError, InvalidAnswer)):
        async with connecting(80, http, headers={"authorization": "Bearer secret"}):
            pass
    assert set(asked) == {"127.0.0.1"}


@on_loops
async def test_mock_transport_answers() -> None:
    """A test of a program needs no server."""

    async def answer(request: httpx2.Request) -> httpx2.Response:
        message = json.loads(request.content)
        result: JSONObject = {
            "resultType": "complete",
            "supportedVersions": list(MODERN),
            "capabilities": {},
            "serverInfo": INFO,
            "ttlMs": 1,
            "cacheScope": "private",
        }
        return httpx2.Response(200, json={"jsonrpc": "2.0", "id": message["id"], "result": result})

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    async with connecting(80, http, revisions=MODERN) as client:
        assert client.peer.revision == MODERN[-1]


def new_app(**settings: Any) -> App:
    return App(
        handle, info=INFO, capabilities={"tools": {}}, hosts=["testserver"], path="/mcp", **settings
    )


@ERAS
def test_asgi_transport_reaches_an_application_in_this_process(revisions: tuple[str, ...]) -> None:
    """No socket, no port, no second process."""

    async def main() -> None:
        app = new_app(answers="auto")
        async with (
            app.lifespan(),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http,
            connect_on_asyncio(
                "http://testserver/mcp",
                info=INFO,
                http=http,
                revisions=revisions,
                get_stream=False,
            ) as client,
        ):
            assert await echo(client) == "a"

    asyncio.run(main())


@on_loops
async def test_what_is_sent_and_received_can_be_watched() -> None:
    """The bytes are those of HTTP/1.1, whatever is spoken; a trace that fails harms nothing."""

    class Trace:
        def sent(self, connection: str, data: bytes) -> None:
            told.append((connection, data))

        def received(self, connection: str, data: bytes) -> None:
            told.append((connection, data))
            raise ValueError

        def happened(self, event: object) -> None: ...

    told: list[tuple[str, bytes]] = []
    async with serving(handle) as server, connecting(server.port, trace=Trace()) as client:
        await echo(client)
    assert {connection for connection, _ in told} == {"httpx2"}
    assert told[0][1].startswith(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:")
    assert told[1][1].startswith(b"HTTP/1.1 200 OK\r\n")


# ------------------------------------------------------------------------ streams and cancellation


@ERAS
@on_loops
async def test_cancelled_caller_cancels_its_request(revisions: tuple[str, ...]) -> None:
    """Its response is closed, which the server sees."""
    begun, ended = loops.new_event(), loops.new_event()

    async def hang(call: Any) -> JSONObject:
        begun.set()
        try:
            await loops.sleep_forever()
        finally:
            ended.set()
        return {}

    async with serving(hang) as server, connecting(server.port, revisions=revisions) as client:

        async def call() -> None:
            await echo(client)

        async with loops.open_nursery() as nursery:
            nursery.start_soon(call)
            await begun.wait()
            nursery.cancel()
        await ended.wait()
        with pytest.raises(RequestTimeout):
            await client.request("tools/list", timeout=0.2)


@on_loops
async def test_silent_stream_outlives_the_timeouts_of_the_client() -> None:
    """A client of httpx2 gives up after 5 s of silence, and a stream may be silent for an hour."""
    http = httpx2.AsyncClient(timeout=0.1)
    async with (
        serving(handle, keep_alive=3600) as server,
        connecting(server.port, http) as client,
        client.listen({"resourceSubscriptions": [URI]}) as changes,
    ):
        result: Any = await client.request(
            "tools/call", {"name": "slow", "arguments": {"seconds": 0.3}}
        )
        assert result["content"][0]["text"] == "slept"
        server.publish(ResourceUpdated(URI))
        assert (await anext(changes))[0] == "notifications/resources/updated"


@on_loops
async def test_silence_is_bounded_by_the_limits_of_ours() -> None:
    """As on sockets: nothing comes on the stream for what belongs to no request."""

    async def serve(stream: loops.Stream) -> None:
        asked.append(await stream.receive_some())
        await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        await loops.sleep_forever()

    asked: list[bytes] = []
    limits = HTTPClientLimits(silence=0.2)
    async with loops.listening(serve) as port:
        with pytest.raises(ConnectionLost, match="silent for too long"):
            async with connecting(port, limits=limits, revisions=LEGACY):
                pass


# ------------------------------------------------------------------------------------- the pool


@on_loops
async def test_stream_gives_way_where_the_pool_has_one_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A call must go on: what belongs to no request is not worth a client that hangs."""
    http = httpx2.AsyncClient(limits=ONE_CONNECTION)
    async with serving(handle) as server, connecting(server.port, http, revisions=LEGACY) as client:
        for _ in range(3):
            assert await echo(client) == "a"
    assert sum("max_connections" in text for text in caplog.messages) == 1


@on_loops
async def test_call_behind_a_subscription_that_has_the_only_connection_says_so() -> None:
    """The caller asked for both, and can have both with a larger pool."""
    http = httpx2.AsyncClient(limits=ONE_CONNECTION)
    async with (
        serving(handle) as server,
        connecting(server.port, http, revisions=MODERN) as client,
        client.listen({"resourceSubscriptions": [URI]}),
    ):
        with pytest.raises(ConnectionLost, match="give it a larger max_connections"):
            await echo(client)


@on_loops
async def test_calls_wait_for_each_other_where_the_pool_is_small() -> None:
    """That is what a pool is for."""
    http = httpx2.AsyncClient(limits=ONE_CONNECTION)
    slow: JSONObject = {
        "name": "slow",
        "arguments": {"seconds": 0.6},
    }  # longer than a pool is asked
    async with (
        serving(handle) as server,
        connecting(server.port, http, revisions=MODERN) as client,
        loops.open_nursery() as nursery,
    ):
        for _ in range(2):
            nursery.start_soon(client.request, "tools/call", slow)
            nursery.start_soon(echo, client)


# -------------------------------------------------------------------------- the way to the server


@ERAS
@on_loops
async def test_http_2_carries_streams_and_calls_on_one_connection(
    revisions: tuple[str, ...],
) -> None:
    """And what is cancelled there ends nothing else."""
    slow: JSONObject = {"name": "slow", "arguments": {"seconds": 60}}
    with serving_http2() as url:
        http = httpx2.AsyncClient(http1=False, http2=True, limits=ONE_CONNECTION)
        async with http, connect_http(url, info=INFO, http=http, revisions=revisions) as client:
            for _ in range(2):
                assert await echo(client) == "a"
                with pytest.raises(RequestTimeout):
                    await client.request("tools/call", slow, timeout=0.2)


@on_loops
async def test_proxy_of_the_client_is_gone_through() -> None:
    """With credentials that only the proxy gets to see."""
    with proxying(credentials="ann:pw") as proxy:
        http = httpx2.AsyncClient(proxy=proxy.url.replace("//", "//ann:pw@"))
        async with serving(handle, hosts=[HOST]) as server, http:
            url = f"http://{HOST}:{server.port}/mcp"
            async with connect_http(url, info=INFO, http=http) as client:
                assert await echo(client) == "a"
        assert proxy.asked[0] == f"POST {url}"


@on_loops
async def test_proxy_that_refuses_is_said_to_be_the_cause() -> None:
    """And not the server, which was never asked; its own words are not repeated."""
    with proxying(credentials="ann:pw") as proxy:
        http = httpx2.AsyncClient(proxy=proxy.url, verify=ssl.create_default_context())
        async with http:
            with pytest.raises(ConnectionLost, match="refused the connection with status 407") as e:
                async with connect_http(f"https://{HOST}/mcp", info=INFO, http=http):
                    pass
    assert "secret" not in str(e.value)


@on_loops
async def test_proxy_of_the_environment_is_used(
    monkeypatch: pytest.MonkeyPatch, certificate: str
) -> None:
    """In the clear and as a tunnel; a client that was not asked for one is made for it."""
    inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inside.load_cert_chain(certificate)
    outside = ssl.create_default_context(cafile=certificate)
    outside.check_hostname = False
    monkeypatch.delenv("no_proxy", raising=False)
    for tls in (None, inside):
        with proxying() as proxy:
            monkeypatch.setenv("all_proxy", proxy.url.removeprefix("http://"))
            scheme = "http" if tls is None else "https"
            async with serving(handle, hosts=[HOST], tls=tls) as server:
                url = f"{scheme}://{HOST}:{server.port}/mcp"
                async with connect_http(
                    url, info=INFO, tls=None if tls is None else outside
                ) as client:
                    assert await echo(client) == "a"
            where = f"POST {url}" if tls is None else f"CONNECT {HOST}:{server.port}"
            assert proxy.asked[0] == where


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "gopher://127.0.0.1:1"])
@on_loops
async def test_proxy_of_a_kind_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    """One sentence, before anything is opened."""
    monkeypatch.setenv("all_proxy", proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(ValueError, match="the environment names a"):
        async with connect_http(f"http://{HOST}/mcp", info=INFO):
            pass


@on_loops
async def test_proxy_of_the_environment_can_be_refused_and_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program may not want its requests to be seen."""
    monkeypatch.setenv("all_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    url = f"http://{HOST}:1/mcp"
    with pytest.raises(ValueError, match="names a proxy for this URL"):
        async with connect_http(url, info=INFO, proxies="refuse"):
            pass
    with pytest.raises(ConnectionLost, match=r"Name|name|resolution|address"):
        async with connect_http(url, info=INFO, proxies="ignore"):
            pass


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_proxy_of_the_environment_without_httpx2_names_the_extra(loop: str) -> None:
    """The lean default knows no way through one."""
    program = f"""
import sys
sys.modules["httpx2"] = None
from sansmcp_io.{loop} import connect_http
import {loop}
async def main():
    async with connect_http("http://two.example/mcp", info={INFO!r}):
        pass
{loop}.run(main{"()" if loop == "asyncio" else ""})
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"all_proxy": "http://127.0.0.1:1"},
        capture_output=True,
        text=True,
    )
    assert run.stderr.endswith("needs httpx2: pip install 'sansmcp[httpx]'\n")


@on_loops
async def test_certificates_of_both_sides_are_checked(certificate: str) -> None:
    """A client certificate is a matter of the client."""
    inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inside.load_cert_chain(certificate)
    inside.load_verify_locations(certificate)
    inside.verify_mode = ssl.CERT_REQUIRED
    known = ssl.create_default_context(cafile=certificate)
    known.load_cert_chain(certificate)
    unknown = ssl.create_default_context(cafile=certificate)
    async with serving(handle, tls=inside) as server:
        url = f"https://localhost:{server.port}/mcp"
        async with (
            httpx2.AsyncClient(verify=known) as http,
            connect_http(url, info=INFO, http=http) as client,
        ):
            assert await echo(client) == "a"
        for context, text in (
            (unknown, "connection"),
            (ssl.create_default_context(), "the server's certificate is not valid: self"),
        ):
            async with httpx2.AsyncClient(verify=context) as http:
                with pytest.raises(ConnectionLost, match=text):
                    async with connect_http(url, info=INFO, http=http):
                        pass


@on_loops
async def test_nobody_listens() -> None:
    """The most usual fault of all says what it is."""
    with pytest.raises(ConnectionLost, match=r"the connection has failed: \[Errno"):
        async with connecting(1):
            pass


@pytest.mark.parametrize("reply", [b"220 mail.example ESMTP\r\n\r\n", b""])
@on_loops
async def test_server_that_is_none(reply: bytes) -> None:
    """What it wrote is not repeated: it may be anything."""

    async def serve(stream: loops.Stream) -> None:
        while not (await stream.receive_some()).endswith(b"}"):
            pass
        await stream.send_all(reply)
        await stream.aclose()

    text = "no valid HTTP response" if reply else "without a response"
    async with loops.listening(serve) as port:
        with pytest.raises(ConnectionLost, match=text) as caught:
            async with connecting(port):
                pass
    assert "mail.example" not in str(caught.value)


@on_loops
async def test_refusal_is_as_on_sockets() -> None:
    """Its status, and when to come back."""

    async def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(429, headers={"retry-after": "7"})

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    with pytest.raises(RequestRefused) as caught:
        async with connecting(80, http):
            pass
    assert (caught.value.status, caught.value.retry_after) == (429, 7.0)


@on_loops
async def test_client_that_is_closed_or_has_tls_beside_it_is_refused() -> None:
    """At once, and not with the first request."""
    closed = httpx2.AsyncClient()
    await closed.aclose()
    async with httpx2.AsyncClient() as http:
        for settings in ({"http": closed}, {"http": http, "tls": ssl.create_default_context()}):
            options: Any = settings
            with pytest.raises(ValueError, match=r"is not closed|give the httpx2 client verify="):
                async with connect_http("https://127.0.0.1:1/mcp", info=INFO, **options):
                    pass
