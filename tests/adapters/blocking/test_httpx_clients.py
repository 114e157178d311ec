"""`connect_http` without a loop over a client of httpx2 of the caller's, and over our own."""

import ssl
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import httpx2
import pytest
import trio

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, JSONObject, ResourceUpdated
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
    """It is used for other things, too, and for the next conversation."""
    with served(handle) as server, httpx2.Client() as http:
        for _ in range(2):
            with connect_http(server.url, info=INFO, http=http, revisions=revisions) as client:
                assert echo(client) == "a"
        assert not http.is_closed
        assert server.tell(lambda found: len(found.sessions)) == 0


def test_mock_transport_refuses() -> None:
    """A test of a program needs no server; what its hooks raise is logged and told."""

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
    """It is a part of the caller's program, and no reason to end the conversation."""

    def on_request(request: httpx2.Request) -> None:
        if b"tools/call" in request.content:
            raise failure

    http = httpx2.Client(event_hooks={"request": [on_request]})
    with served(handle) as server, connecting(server, http) as client:
        with pytest.raises(ConnectionLost, match=type(failure).__name__):
            echo(client)
        assert list(client.items("tools/list")) == []
    assert "the httpx2 client has failed" in caplog.messages


@ERAS
def test_wsgi_transport_reaches_an_application_in_this_process(revisions: tuple[str, ...]) -> None:
    """No socket, no port, no second process."""

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
    """Its connection was kept, and is closed before there is a response, or the server works on."""
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
        connecting(server, revisions=revisions, get_stream=False) as client,
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


def test_silent_stream_outlives_the_timeouts_of_the_client() -> None:
    """A client of httpx2 gives up after 5 s of silence, and a stream may be silent for an hour."""
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
    """Between calls nothing is read: what is not must not fill the memory."""
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
    """A call must go on: what belongs to no request is not worth a client that hangs."""
    http = httpx2.Client(limits=ONE_CONNECTION)
    with served(handle) as server, connecting(server, http, revisions=LEGACY) as client:
        for _ in range(3):
            assert echo(client) == "a"
    assert sum("max_connections" in text for text in caplog.messages) == 1


def test_call_behind_a_subscription_that_has_the_only_connection_says_so() -> None:
    """The caller asked for both, and can have both with a larger pool."""
    http = httpx2.Client(limits=ONE_CONNECTION)
    with (
        served(handle) as server,
        connecting(server, http, revisions=MODERN) as client,
        client.listen({"resourceSubscriptions": [URI]}),
        pytest.raises(ConnectionLost, match="give it a larger max_connections"),
    ):
        echo(client)


def test_calls_wait_for_each_other_where_the_pool_is_small() -> None:
    """That is what a pool is for."""
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


# -------------------------------------------------------------------------- the way to the server


@ERAS
def test_http_2_carries_calls_on_one_connection(
    revisions: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """Where one thread reads for all, a stream beside calls would keep them waiting."""
    with (
        serving_http2() as url,
        httpx2.Client(http1=False, http2=True, limits=ONE_CONNECTION) as http,
        connect_http(url, info=INFO, http=http, revisions=revisions) as client,
    ):
        for _ in range(3):
            assert echo(client) == "a"
    assert any("HTTP/2" in text for text in caplog.messages) == (revisions == LEGACY)


def test_proxy_that_refuses_is_said_to_be_the_cause() -> None:
    """And not the server, which was never asked; its own words are not repeated."""
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
    """In the clear and as a tunnel, with calls that are cancelled."""
    inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inside.load_cert_chain(certificate)
    outside = ssl.create_default_context(cafile=certificate)
    outside.check_hostname = False
    monkeypatch.delenv("no_proxy", raising=False)
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


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "gopher://127.0.0.1:1"])
def test_proxy_of_a_kind_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    """One sentence, before anything is opened."""
    monkeypatch.setenv("all_proxy", proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    with (
        pytest.raises(ValueError, match="the environment names a"),
        connect_http(f"http://{HOST}/mcp", info=INFO),
    ):
        pass


def test_certificates_of_both_sides_are_checked(certificate: str) -> None:
    """A client certificate is a matter of the client."""
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
    """The library keeps no sockets of its own there."""
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
    """And calls of one that are given up end those of no other."""
    limits = HTTPClientLimits(requests=4)
    answers: dict[int, list[str]] = {number: [] for number in range(8)}
    slow: JSONObject = {"name": "slow", "arguments": {"seconds": 60}}
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
    """Ctrl-C comes between the steps, whatever the way to the server is."""
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
