"""`connect_http` on loops over an httpx2 client: the tasks of that client, and ours."""

import asyncio
import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, JSONObject, ResourceUpdated
from sansmcp.http import Sessions
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
ROOTS: JSONObject = {"capabilities": {"roots": {}}}
UNRESOLVED = r"the connection has failed: .*(Name|name|resolution|address)"
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
    """The caller uses the client for other requests and for the next conversation."""
    async with serving(handle) as server, httpx2.AsyncClient() as http:
        for _ in range(2):
            url = f"http://127.0.0.1:{server.port}/mcp"
            async with connect_http(url, info=INFO, http=http, revisions=revisions) as client:
                assert await echo(client) == "a"
        assert not http.is_closed
        assert not server.sessions


@on_loops
async def test_hooks_auth_and_headers_of_the_client_count() -> None:
    """A program that signs its requests does so in its httpx2 client, so that client's hooks and
    auth must be used.
    """

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
    """A hook belongs to the caller's program: its exception must not end the conversation."""

    async def on_request(request: httpx2.Request) -> None:
        if b"tools/call" in request.content:
            raise OSError("the keychain is locked")

    http = httpx2.AsyncClient(event_hooks={"request": [on_request]})
    async with serving(handle) as server, connecting(server.port, http) as client:
        with pytest.raises(ConnectionLost, match="the httpx2 client has failed: OSError") as caught:
            await echo(client)
        assert str(caught.value.__cause__) == "the keychain is locked"
        assert await client.request("tools/list") == {"tools": []} | await client.request(
            "tools/list"
        )
    assert "the httpx2 client has failed" in caplog.messages


@on_loops
async def test_hook_that_raises_for_a_status_is_found_by_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """`HTTPStatusError` is an exception of httpx2, and still one that a hook has raised: without a
    cause and a traceback, nobody finds out which hook it was.
    """

    async def on_response(response: httpx2.Response) -> None:
        response.raise_for_status()

    async def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(418)

    http = httpx2.AsyncClient(
        transport=httpx2.MockTransport(answer), event_hooks={"response": [on_response]}
    )
    with pytest.raises(ConnectionLost, match="HTTPStatusError") as caught:
        async with connecting(80, http):
            pass
    assert isinstance(caught.value.__cause__, httpx2.HTTPStatusError)
    traceback = next(one.exc_text or "" for one in caplog.records if one.exc_info)
    assert "in on_response" in traceback


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@on_loops
async def test_redirects_are_judged_by_the_endpoint(status: int) -> None:
    """A client that follows redirects by itself must not carry a token to another origin."""

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
    """A test of a program must not need a server."""

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
    """A test of an application needs no socket, no port and no second process."""

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
    """A trace gets the bytes in the form of HTTP/1.1, whatever version is spoken; a trace that
    fails is harmless.
    """

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
    """Its response must be closed, so that the server sees the cancellation."""
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
    """A client of httpx2 times out after 5 s of silence, but a stream may be silent for an hour."""
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
    """The library's own limit for a silent GET stream must hold as it does on sockets."""

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
    """With a pool of one connection the GET stream must be closed for a call, or the call would
    hang.
    """
    http = httpx2.AsyncClient(limits=ONE_CONNECTION)
    async with serving(handle) as server, connecting(server.port, http, revisions=LEGACY) as client:
        while not caplog.messages:  # the stream opens at some time between two calls
            assert await echo(client) == "a"
            await loops.sleep(0.01)
        for _ in range(3):
            assert await echo(client) == "a"
    (text,) = caplog.messages
    assert "max_connections" in text


@on_loops
async def test_call_behind_a_subscription_that_has_the_only_connection_says_so() -> None:
    """The caller asked for both, so the error must say that a larger pool is needed."""
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
    """Calls beyond the size of the pool must wait for a connection."""
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


@on_loops
async def test_stream_of_another_session_gives_way_too() -> None:
    """Sessions share the connections of their client, so they have to make room for each other."""
    async with serving(handle) as server, httpx2.AsyncClient(limits=ONE_CONNECTION) as http:
        url = f"http://127.0.0.1:{server.port}/mcp"
        settings: Any = {"info": INFO, "http": http, "revisions": LEGACY}
        async with connect_http(url, **settings) as one:
            assert await echo(one) == "a"
            async with connect_http(url, **settings) as other:
                for client in (one, other, one):
                    assert await echo(client) == "a"


async def answer_roots(request: Any) -> JSONObject:
    return {"roots": []}


@on_loops
async def test_stream_that_can_be_resumed_gives_way_to_the_response_it_waits_for() -> None:
    """The call holds the one connection, and ends only when the server has that response."""
    http = httpx2.AsyncClient(limits=ONE_CONNECTION)
    async with (
        serving(handle) as server,
        connecting(
            server.port, http, revisions=LEGACY, on_request=answer_roots, get_stream=False, **ROOTS
        ) as client,
    ):
        roots: Any = await client.request("tools/call", {"name": "roots", "arguments": {}})
        assert roots["content"][0]["text"] == "[[], []]"


@on_loops
async def test_calls_that_all_wait_for_responses_of_the_client_do_not_hang() -> None:
    """One of them ends, and says why; that makes room for the others, now and from then on."""

    async def call() -> None:
        try:
            await client.request("tools/call", {"name": "roots", "arguments": {}})
            ended.append("")
        except ConnectionLost as error:
            ended.append(str(error))

    async def answer_later(request: Any) -> JSONObject:
        asked.append(request)
        if len(asked) == n_calls:
            all_asked.set()
        await all_asked.wait()
        return {"roots": []}

    n_calls = 3
    asked: list[Any] = []
    ended: list[str] = []
    all_asked = loops.new_event()
    http = httpx2.AsyncClient(limits=httpx2.Limits(max_connections=n_calls))
    async with (
        serving(handle, sessions=Sessions(new_id=iter("ab").__next__, event_log=None)) as server,
        connecting(
            server.port, http, revisions=LEGACY, on_request=answer_later, get_stream=False, **ROOTS
        ) as client,
    ):
        for _ in range(2):
            async with loops.open_nursery() as nursery:
                for _ in range(n_calls):
                    nursery.start_soon(call)
    assert len(ended) == 2 * n_calls
    (text,) = filter(None, ended)
    assert "give it a larger max_connections" in text


# -------------------------------------------------------------------------- the way to the server


@ERAS
@on_loops
async def test_http_2_carries_streams_and_calls_on_one_connection(
    revisions: tuple[str, ...],
) -> None:
    """The cancellation of one call must not end the others on the connection."""
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
    """Requests must go through the proxy of the client, and its credentials to the proxy alone."""
    with proxying(credentials="ann:pw") as proxy:
        http = httpx2.AsyncClient(proxy=proxy.url.replace("//", "//ann:pw@"))
        async with serving(handle, hosts=[HOST]) as server, http:
            url = f"http://{HOST}:{server.port}/mcp"
            async with connect_http(url, info=INFO, http=http) as client:
                assert await echo(client) == "a"
        assert proxy.asked[0] == f"POST {url}"


@on_loops
async def test_proxy_that_refuses_is_said_to_be_the_cause() -> None:
    """The error must blame the proxy and not the server, and must not repeat the text of the
    proxy."""
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
    """Requests must go through the proxy, in plain text and in a tunnel, also without a client of
    the caller.
    """
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
    """A proxy of an unsupported kind must be refused in one sentence before a connection is
    opened."""
    monkeypatch.setenv("all_proxy", proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(ValueError, match="the environment names a"):
        async with connect_http(f"http://{HOST}/mcp", info=INFO):
            pass


@on_loops
async def test_proxy_of_the_environment_can_be_refused_and_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program must be able to keep its requests away from the proxy of the environment."""
    monkeypatch.setenv("all_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    url = f"http://{HOST}:1/mcp"
    with pytest.raises(ValueError, match="names a proxy for this URL"):
        async with connect_http(url, info=INFO, proxies="refuse"):
            pass
    with pytest.raises(ConnectionLost, match=UNRESOLVED):
        async with connect_http(url, info=INFO, proxies="ignore"):
            pass


@on_loops
async def test_proxy_that_is_down_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its user looks for the fault at the server; NO_PROXY may have a port."""
    monkeypatch.setenv("all_proxy", "http://ann:pw@127.0.0.1:1")
    monkeypatch.setenv("no_proxy", f"{HOST}:81, [fe80::1]:81")
    text = r"the connection to the proxy 127\.0\.0\.1:1 has failed: \[Errno"
    for host, port, match in (
        (HOST, 80, text),
        (HOST, 81, UNRESOLVED),
        ("[fe80::1]", 82, text),
        ("[fe80::1]", 81, r"the connection has failed"),
    ):
        with pytest.raises(ConnectionLost, match=match) as caught:
            async with connect_http(f"http://{host}:{port}/mcp", info=INFO):
                pass
        assert "pw" not in str(caught.value)


@on_loops
async def test_new_connection_of_any_kind_is_told_from_a_kept_one(tmp_path: Path) -> None:
    """A request is sent again only if its connection may have been closed before."""
    asked: list[bytes] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:  # it is closed
                return
            with connection:
                asked.append(connection.recv(65_536))

    path = str(tmp_path / "socket")
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(path)
        listener.listen()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        http = httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=path))
        with pytest.raises(ConnectionLost) as caught:
            async with connecting(80, http, revisions=LEGACY):
                pass
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(30)
    assert "carried earlier requests" not in str(caught.value)
    assert len(asked) == 1


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_proxy_of_the_environment_without_httpx2_names_the_extra(loop: str) -> None:
    """Without httpx2 a proxy cannot be used, so the error must name the extra to install."""
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
    """A client certificate that is set on the caller's httpx2 client must be used."""
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
    """A refused connection is the most usual fault, and its error must say so."""
    with pytest.raises(ConnectionLost, match=r"the connection has failed: \[Errno"):
        async with connecting(1):
            pass


@pytest.mark.parametrize("reply", [b"220 mail.example ESMTP\r\n\r\n", b""])
@on_loops
async def test_server_that_is_none(reply: bytes) -> None:
    """The error must not repeat what a server that speaks no HTTP has written."""

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
    """A refusal must have the status and the time of `Retry-After`, as on sockets."""

    async def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(429, headers={"retry-after": "7"})

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    with pytest.raises(RequestRefused) as caught:
        async with connecting(80, http):
            pass
    assert (caught.value.status, caught.value.retry_after) == (429, 7.0)


@on_loops
async def test_client_that_is_closed_or_has_tls_beside_it_is_refused() -> None:
    """An unusable client must be refused at once, and not with the first request."""
    closed = httpx2.AsyncClient()
    await closed.aclose()
    async with httpx2.AsyncClient() as http:
        for settings in ({"http": closed}, {"http": http, "tls": ssl.create_default_context()}):
            options: Any = settings
            with pytest.raises(ValueError, match=r"is not closed|give the httpx2 client verify="):
                async with connect_http("https://127.0.0.1:1/mcp", info=INFO, **options):
                    pass
