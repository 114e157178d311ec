"""The blocking `connect_http` over an httpx2 client of the caller, and over its own client."""

import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import httpx2
import pytest
import trio

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, JSONObject, ResourceUpdated
from sansmcp.http import Sessions
from sansmcp_io.blocking import (
    Client,
    ConnectionLost,
    HTTPClientLimits,
    RequestRefused,
    RequestTimeout,
    connect_http,
)
from sansmcp_io.wsgi import App, ServerCall
from tests.adapters.everywhere.shims import called
from tests.support.http.certificates import certificate
from tests.support.http.in_thread import Served, served
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
SECONDS = 30


@contextmanager
def connecting(
    server: Served, http: httpx2.Client | None = None, **settings: Any
) -> Generator[Client, None, None]:
    with (
        http or httpx2.Client() as opened,
        connect_http(server.url, info=INFO, http=opened, **settings) as client,
    ):
        yield client


def echo(client: Client) -> str:
    result: Any = client.request("tools/call", ECHO)
    text: str = result["content"][0]["text"]
    return text


@ERAS
def test_client_of_the_caller_stays_open(revisions: tuple[str, ...]) -> None:
    """The caller uses the client for other requests and for the next conversation."""
    with served(handle) as server, httpx2.Client() as http:
        for _ in range(2):
            with connect_http(server.url, info=INFO, http=http, revisions=revisions) as client:
                assert echo(client) == "a"
        assert not http.is_closed
        assert server.tell(lambda found: len(found.sessions)) == 0


def test_mock_transport_refuses() -> None:
    """A refusal by a mock transport must reach the caller, and what its hooks raise must be
    logged."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(429, headers={"retry-after": "7"})

    with (
        httpx2.Client(transport=httpx2.MockTransport(answer)) as http,
        pytest.raises(RequestRefused) as caught,
        connect_http("http://any/mcp", info=INFO, http=http),
    ):
        pass
    assert (caught.value.status, caught.value.retry_after) == (429, 7.0)


@pytest.mark.parametrize("failure", [OSError("the keychain is locked"), SystemExit(3)])
def test_hook_that_fails_ends_the_call_and_is_logged(
    failure: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """A hook belongs to the caller's program: its exception must not end the conversation."""

    def on_request(request: httpx2.Request) -> None:
        if b"tools/call" in request.content:
            raise failure

    http = httpx2.Client(event_hooks={"request": [on_request]})
    with served(handle) as server, connecting(server, http) as client:
        with pytest.raises(ConnectionLost, match=type(failure).__name__) as caught:
            echo(client)
        assert caught.value.__cause__ is failure
        assert list(client.items("tools/list")) == []
    assert "the httpx2 client has failed" in caplog.messages


@ERAS
def test_wsgi_transport_reaches_an_application_in_this_process(revisions: tuple[str, ...]) -> None:
    """A test of an application needs no socket, no port and no second process."""

    def answer(call: ServerCall) -> JSONObject:
        if call.method == "tools/call":
            return {"content": [{"type": "text", "text": "a"}]}
        return {"tools": []}

    app = App(answer, info=INFO, capabilities={"tools": {}}, hosts=["testserver"], path="/mcp")
    with (
        closing(app),
        httpx2.Client(transport=httpx2.WSGITransport(app)) as http,
        connect_http("http://testserver/mcp", info=INFO, http=http, revisions=revisions) as client,
    ):
        assert echo(client) == "a"
        assert list(client.items("tools/list")) == []


# ------------------------------------------------------------------------- cancellation and time


@ERAS
def test_call_that_takes_too_long_is_cancelled(revisions: tuple[str, ...]) -> None:
    """The connection of a cancelled call must be closed before a response comes, or the server
    works on.
    """
    begun, ended = threading.Event(), threading.Event()

    async def serve(call: Any) -> Any:
        if call.method != "tools/call" or call.params["name"] != "hang":
            return await handle(call)
        begun.set()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    with (
        served(serve) as server,
        connect_http(server.url, info=INFO, revisions=revisions, get_stream=False) as client,
    ):
        cancelled = 0
        while cancelled < 3:
            begun.clear()
            ended.clear()
            assert echo(client) == "a"
            with pytest.raises(RequestTimeout):
                client.request("tools/call", {"name": "hang", "arguments": {}}, timeout=0.2)
            if begun.is_set():  # a busy machine may take longer to begin
                assert ended.wait(SECONDS)
                cancelled += 1


def test_cancelled_call_ends_no_exchange_of_another_session() -> None:
    """They share a client, and nothing tells which of its idle connections is used next."""
    together: list[Any] = []
    both, go_on, begun = trio.Event(), trio.Event(), threading.Event()

    async def serve(call: Any) -> Any:
        if call.method == "tools/call" and call.params["name"] == "both":
            together.append(call)
            if len(together) == 2:
                both.set()
            await both.wait()
        elif call.method == "tools/call" and call.params["name"] == "long":
            begun.set()
            await go_on.wait()
        else:
            return await handle(call)
        return {"content": []}

    def request(client: Client, name: str, **settings: Any) -> None:
        ended.append(client.request("tools/call", {"name": name, "arguments": {}}, **settings))

    ended: list[Any] = []
    settings: Any = {"info": INFO, "revisions": LEGACY, "get_stream": False}
    with (
        served(serve) as server,
        httpx2.Client() as http,
        connect_http(server.url, http=http, **settings) as one,
        connect_http(server.url, http=http, **settings) as other,
    ):
        assert echo(one) == "a"
        threads = [threading.Thread(target=request, args=(other, "both")) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:  # from then on, two connections are idle
            thread.join(SECONDS)
        long = threading.Thread(target=request, args=(other, "long"))
        long.start()
        assert begun.wait(SECONDS)
        with pytest.raises(RequestTimeout):
            request(one, "long", timeout=0.2)
        server.tell(lambda _: go_on.set())
        long.join(SECONDS)
    assert len(ended) == 3


def test_calls_that_are_given_up_keep_no_more_threads_than_may_run() -> None:
    """A transport that cannot be interrupted keeps its thread until it returns."""
    go_on = threading.Event()

    def answer(request: httpx2.Request) -> httpx2.Response:
        message = json.loads(request.content)
        if message["method"] == "tools/call":
            go_on.wait(SECONDS)
        result: JSONObject = {"resultType": "complete", "content": []}
        if message["method"] == "server/discover":
            result |= {
                "supportedVersions": list(MODERN),
                "capabilities": {"tools": {}},
                "serverInfo": INFO,
                "ttlMs": 1,
                "cacheScope": "private",
            }
        return httpx2.Response(200, json={"jsonrpc": "2.0", "id": message["id"], "result": result})

    limits = HTTPClientLimits(requests=2)
    with (
        httpx2.Client(transport=httpx2.MockTransport(answer)) as http,
        connect_http("http://any/mcp", info=INFO, http=http, limits=limits) as client,
    ):
        for _ in range(5):
            with pytest.raises(RequestTimeout):
                client.request("tools/call", ECHO, timeout=0.05)
        names = [thread.name for thread in threading.enumerate()]
        assert names.count("sansmcp HTTP") <= limits.requests
        go_on.set()
        assert client.request("tools/call", ECHO)["content"] == []


def test_silent_stream_outlives_the_timeouts_of_the_client() -> None:
    """A client of httpx2 times out after 5 s of silence, but a stream may be silent for an hour."""
    with (
        served(handle, keep_alive=3600) as server,
        connecting(server, httpx2.Client(timeout=0.1)) as client,
        client.listen({"resourceSubscriptions": [URI]}) as changes,
    ):
        client.request("tools/call", {"name": "slow", "arguments": {"seconds": 0.3}})
        server.tell(lambda found: found.publish(ResourceUpdated(URI)))
        change = changes.take(SECONDS)
        assert change is not None
        assert change[0] == "notifications/resources/updated"


def test_server_that_sends_without_end_waits_for_whoever_reads() -> None:
    """Between calls no thread reads, so a server that sends without end must be held back instead
    of filling the memory.
    """
    size = 1_000_000

    async def flood(call: Any) -> JSONObject:
        if call.method == "tools/call":
            for number in range(20):
                call.log("error", "x" * size)
                sent.append(number)
                await trio.sleep(0.01)
        return {"content": [], "tools": []}

    sent: list[int] = []
    heard: list[int] = []

    def note(method: str, params: JSONObject) -> None:
        heard.append(len(str(params)))

    with served(flood) as server, connecting(server, revisions=LEGACY, on_notification=note) as one:
        one.request("tools/call", ECHO)
    assert len(heard) == 20
    assert min(heard) > size


# ------------------------------------------------------------------------------------- the pool


def test_stream_gives_way_where_the_pool_has_one_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With a pool of one connection the GET stream must be closed for a call, or the call would
    hang.
    """
    http = httpx2.Client(limits=ONE_CONNECTION)
    with served(handle) as server, connecting(server, http, revisions=LEGACY) as client:
        while not caplog.messages:  # the stream opens at some time between two calls
            assert echo(client) == "a"
            time.sleep(0.01)  # the only connection is free so long, and the stream can take it
        for _ in range(3):
            assert echo(client) == "a"
    (text,) = caplog.messages
    assert "max_connections" in text


def test_call_behind_a_subscription_that_has_the_only_connection_says_so() -> None:
    """The caller asked for both, so the error must say that a larger pool is needed."""
    http = httpx2.Client(limits=ONE_CONNECTION)
    with (
        served(handle) as server,
        connecting(server, http, revisions=MODERN) as client,
        client.listen({"resourceSubscriptions": [URI]}),
        pytest.raises(ConnectionLost, match="give it a larger max_connections"),
    ):
        echo(client)


def test_calls_wait_for_each_other_where_the_pool_is_small() -> None:
    """Calls beyond the size of the pool must wait for a connection."""
    http = httpx2.Client(limits=ONE_CONNECTION)
    slow: JSONObject = {
        "name": "slow",
        "arguments": {"seconds": 0.6},
    }  # longer than a pool is asked
    said: list[str] = []
    with served(handle) as server, connecting(server, http, revisions=MODERN) as client:
        threads = [
            threading.Thread(target=partial(client.request, "tools/call", slow)),
            threading.Thread(target=lambda: said.append(echo(client))),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
    assert said == ["a"]


def test_stream_of_another_session_gives_way_too() -> None:
    """Sessions share the connections of their client; nobody reads the stream of the other."""
    with served(handle) as server, httpx2.Client(limits=ONE_CONNECTION) as http:
        settings: Any = {"info": INFO, "http": http, "revisions": LEGACY}
        with connect_http(server.url, **settings) as one:
            assert echo(one) == "a"
            with connect_http(server.url, **settings) as other:
                for client in (one, other, one):
                    assert echo(client) == "a"


def answer_roots(request: Any) -> JSONObject:
    return {"roots": []}


def test_stream_that_can_be_resumed_gives_way_to_the_response_it_waits_for() -> None:
    """The call holds the one connection, and ends only when the server has that response."""
    http = httpx2.Client(limits=ONE_CONNECTION)
    settings: Any = {"revisions": LEGACY, "get_stream": False, **ROOTS}
    with (
        served(handle) as server,
        connecting(server, http, on_request=answer_roots, **settings) as client,
    ):
        roots: Any = client.request("tools/call", {"name": "roots", "arguments": {}})
        assert roots["content"][0]["text"] == "[[], []]"


def test_calls_that_all_wait_for_responses_of_the_client_do_not_hang() -> None:
    """One of them ends, and says why; that makes room for the others, now and from then on."""
    n_calls = 3
    ended: list[str] = []
    all_asked = threading.Barrier(n_calls)

    def call() -> None:
        try:
            client.request("tools/call", {"name": "roots", "arguments": {}})
            ended.append("")
        except ConnectionLost as error:
            ended.append(str(error))

    def answer(request: Any) -> JSONObject:
        if len(ended) < n_calls:
            all_asked.wait(SECONDS)
        return {"roots": []}

    http = httpx2.Client(limits=httpx2.Limits(max_connections=n_calls))
    settings: Any = {"revisions": LEGACY, "get_stream": False, "on_request": answer, **ROOTS}
    sessions = Sessions(new_id=iter("ab").__next__, event_log=None)
    with (
        served(handle, sessions=sessions) as server,
        connecting(server, http, **settings) as client,
    ):
        for _ in range(2):
            threads = [threading.Thread(target=call) for _ in range(n_calls)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(SECONDS)
    assert len(ended) == 2 * n_calls
    (text,) = filter(None, ended)
    assert "give it a larger max_connections" in text


# -------------------------------------------------------------------------- the way to the server


def test_http_2_is_refused() -> None:
    """One thread of httpx2 reads for all there, so that calls would wait for each other."""
    with (
        serving_http2() as url,
        httpx2.Client(http1=False, http2=True) as http,
        pytest.raises(ConnectionLost, match="give the httpx2 client http2=False"),
        connect_http(url, info=INFO, http=http),
    ):
        pass


def test_proxy_that_refuses_is_said_to_be_the_cause() -> None:
    """The error must blame the proxy and not the server, and must not repeat the text of the
    proxy."""
    with (
        proxying(credentials="ann:pw") as proxy,
        httpx2.Client(proxy=proxy.url) as http,
        pytest.raises(ConnectionLost, match="refused the connection with status 407") as caught,
        connect_http(f"https://{HOST}/mcp", info=INFO, http=http),
    ):
        pass
    assert "secret" not in str(caught.value)


def test_proxy_of_the_environment_is_used(
    monkeypatch: pytest.MonkeyPatch, certificate: str
) -> None:
    """Calls go through the proxy, in plain text and in a tunnel, and can be cancelled there."""
    inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inside.load_cert_chain(certificate)
    outside = ssl.create_default_context(cafile=certificate)
    outside.check_hostname = False
    monkeypatch.delenv("no_proxy", raising=False)
    looked_up: list[object] = []
    look_up: Any = socket.getaddrinfo

    def spied(host: object, *more: Any, **named: Any) -> Any:
        looked_up.append(host)
        return look_up(host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", spied)
    slow: JSONObject = {"name": "slow", "arguments": {"seconds": 60}}
    for tls in (None, inside):
        with proxying() as proxy, served(handle, hosts=[HOST], tls=tls) as server:
            monkeypatch.setenv("all_proxy", proxy.url)
            scheme = "http" if tls is None else "https"
            url = f"{scheme}://{HOST}:{server.port}/mcp"
            with connect_http(url, info=INFO, tls=None if tls is None else outside) as client:
                for _ in range(2):
                    assert echo(client) == "a"
                    with pytest.raises(RequestTimeout):
                        client.request("tools/call", slow, timeout=0.2)
            where = f"POST {url}" if tls is None else f"CONNECT {HOST}:{server.port}"
            assert proxy.asked[0] == where
    assert HOST not in looked_up  # its name may be known to the proxy alone


def test_proxy_that_is_down_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its user looks for the fault at the server."""
    monkeypatch.setenv("all_proxy", "http://ann:pw@127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    with (
        pytest.raises(ConnectionLost, match=r"to the proxy 127\.0\.0\.1:1 has failed: \[Errno"),
        connect_http(f"http://{HOST}/mcp", info=INFO),
    ):
        pass


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "gopher://127.0.0.1:1"])
def test_proxy_of_a_kind_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    """A proxy of an unsupported kind must be refused in one sentence before a connection is
    opened."""
    monkeypatch.setenv("all_proxy", proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    with (
        pytest.raises(ValueError, match="the environment names a"),
        connect_http(f"http://{HOST}/mcp", info=INFO),
    ):
        pass


def test_certificates_of_both_sides_are_checked(certificate: str) -> None:
    """A client certificate that is set on the caller's httpx2 client must be used."""
    inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inside.load_cert_chain(certificate)
    inside.load_verify_locations(certificate)
    inside.verify_mode = ssl.CERT_REQUIRED
    known = ssl.create_default_context(cafile=certificate)
    known.load_cert_chain(certificate)
    with served(handle, tls=inside) as server:
        url = f"https://localhost:{server.port}/mcp"
        with (
            httpx2.Client(verify=known) as http,
            connect_http(url, info=INFO, http=http) as client,
        ):
            assert echo(client) == "a"
        for context in (ssl.create_default_context(cafile=certificate), None):
            with (
                httpx2.Client(verify=context or ssl.create_default_context()) as http,
                pytest.raises(ConnectionLost, match=r"connection has failed|not valid: self"),
                connect_http(url, info=INFO, http=http),
            ):
                pass


def test_without_httpx2_the_extra_is_named() -> None:
    """Without httpx2 the blocking client has no HTTP, so the error must name the extra to
    install."""
    program = f"""
import sys
sys.modules["httpx2"] = None
from sansmcp_io.blocking import connect_http
with connect_http("http://127.0.0.1:1/mcp", info={INFO!r}):
    pass
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stderr.endswith("needs httpx2: pip install 'sansmcp[httpx]'\n")


@ERAS
def test_threads_share_a_client_of_the_caller(revisions: tuple[str, ...]) -> None:
    """A call that one thread gives up must not end the calls of other threads."""
    limits = HTTPClientLimits(requests=4)
    answers: dict[int, list[str]] = {number: [] for number in range(8)}
    slow: JSONObject = {"name": "slow", "arguments": {"seconds": 0.3}}
    with (
        served(handle) as server,
        connecting(server, limits=limits, revisions=revisions) as client,
    ):

        def work(number: int) -> None:
            for _ in range(10):
                answers[number].append(echo(client))
                if number == 0:
                    with pytest.raises(RequestTimeout):
                        client.request("tools/call", slow, timeout=0.05)

        threads = [threading.Thread(target=work, args=(number,)) for number in answers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
    assert answers == {number: ["a"] * 10 for number in answers}


def test_call_is_interrupted_within_a_proxy_of_the_callers_client() -> None:
    """Ctrl-C must interrupt a call between its steps, whatever transport the client uses."""
    told: list[str] = []

    def interrupt() -> None:
        told.append("progress")
        raise KeyboardInterrupt

    with proxying() as proxy, served(handle, hosts=[HOST]) as server:
        url = f"http://{HOST}:{server.port}/mcp"
        with (
            httpx2.Client(proxy=proxy.url) as http,
            connect_http(url, info=INFO, http=http) as client,
        ):
            with pytest.raises(KeyboardInterrupt):
                client.request(
                    "tools/call",
                    {"name": "progress", "arguments": {}},
                    on_progress=partial(called, interrupt),
                )
            assert echo(client) == "a"
    assert told == ["progress"]
