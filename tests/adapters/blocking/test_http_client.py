"""The blocking client over HTTP, on real sockets, with servers that behave."""

import json
import logging
import os
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import pytest
import trio

from sansmcp import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    ErrorCode,
    JSONObject,
    ResourceUpdated,
)
from sansmcp.http import AuthorizationRequired
from sansmcp_io.blocking import (
    Call,
    Client,
    ConnectionLost,
    HTTPClientLimits,
    McpError,
    OnUnauthorized,
    PeerError,
    RequestRefused,
    RequestTimeout,
    connect_http,
)
from sansmcp_io.trio import Unauthorized
from tests.adapters.everywhere.shims import called
from tests.support.http.certificates import certificate as certificate
from tests.support.http.in_thread import Served, served
from tests.support.http.tools import URI, handle, text

INFO: JSONObject = {"name": "test-client", "version": "1.0"}
CAPABILITIES: JSONObject = {"elicitation": {"form": {}}, "roots": {}}
LEGACY = LEGACY_REVISIONS[-1:]
ERAS = pytest.mark.parametrize("revisions", [MODERN_REVISIONS, LEGACY], ids=["modern", "legacy"])
SECONDS = 30


def answer(call: Call) -> JSONObject:
    """A user who agrees to everything and has one root."""
    if call.method == "roots/list":
        return {"roots": [{"uri": "file:///a"}]}
    return {"action": "accept", "content": {}}


def connecting(server: Served, **settings: Any) -> AbstractContextManager[Client]:
    settings = {"info": INFO, "capabilities": CAPABILITIES, "on_request": answer, **settings}
    return connect_http(server.url, **settings)


def ask(client: Client, tool: str, **arguments: object) -> str:
    params: JSONObject = {"name": tool, "arguments": arguments}
    result: Any = client.request("tools/call", params)
    said: str = result["content"][0]["text"]
    return said


class Watching:
    """A trace that keeps what it gets."""

    def __init__(self) -> None:
        self.connections: list[str] = []
        self.sent_data: list[bytes] = []
        self.received_data: list[bytes] = []
        self.events: list[str] = []

    def sent(self, connection: str, data: bytes) -> None:
        self.connections.append(connection)
        self.sent_data.append(data)

    def received(self, connection: str, data: bytes) -> None:
        assert connection in self.connections
        self.received_data.append(data)

    def happened(self, event: object) -> None:
        self.events.append(type(event).__name__)


# ------------------------------------------------------------------------------- conversations


@ERAS
def test_one_surface_for_both_eras(revisions: tuple[str, ...]) -> None:
    """Code that works on stdio must work over HTTP: responses, errors, progress, and questions of
    the server.
    """
    told: list[float] = []
    with served(handle) as server, connecting(server, revisions=revisions) as client:
        assert client.peer.revision == revisions[-1]
        assert ask(client, "echo", text="a") == "a"
        assert ask(client, "ask") == '{"q": {"action": "accept", "content": {}}}'
        with pytest.raises(PeerError) as caught:
            ask(client, "fail")
        assert (caught.value.code, caught.value.data) == (-32001, {"why": "none"})
        params: JSONObject = {"name": "progress", "arguments": {}}
        client.request(
            "tools/call", params, on_progress=lambda value, total, message: told.append(value)
        )
        assert list(client.items("tools/list")) == []
    assert told == [1, 2]


def test_server_asks_within_a_call_of_a_session() -> None:
    """The question comes on the stream of the call, and its answer is sent in an exchange of its
    own.
    """
    with served(handle) as server, connecting(server, revisions=LEGACY) as client:
        assert json.loads(ask(client, "roots")) == [[{"uri": "file:///a"}], []]


def test_what_belongs_to_no_request_comes_in_a_session() -> None:
    """Messages outside of requests must arrive on the GET stream when a thread polls."""
    heard: list[str] = []

    def note(method: str, params: JSONObject) -> None:
        heard.append(method)

    with served(handle) as server:
        with connecting(server, revisions=LEGACY, on_notification=note) as client:
            client.request("resources/subscribe", {"uri": URI})
            assert server.tell(lambda found: len(found.sessions)) == 1
            server.tell(lambda found: found.publish(ResourceUpdated(URI)))
            assert client.poll(SECONDS)
            assert heard == ["notifications/resources/updated"]
            assert not client.poll()
        assert server.tell(lambda found: len(found.sessions)) == 0  # it said good-bye


def test_subscriptions_tell_of_changes() -> None:
    """In 2026-07-28 a subscription is a request that stays open, and its changes must reach the
    caller.
    """
    with (
        served(handle) as server,
        connecting(server) as client,
        client.listen({"resourceSubscriptions": [URI]}) as changes,
    ):
        server.tell(lambda found: found.publish(ResourceUpdated(URI)))
        change = changes.take(SECONDS)
        assert change is not None
        assert (change[0], change[1]["uri"]) == ("notifications/resources/updated", URI)
        with pytest.raises(TimeoutError):
            changes.take(0.01)


def test_an_answer_whose_stream_breaks_off_is_taken_up_again() -> None:
    """A server may end the stream before its response, and the client must resume it."""

    async def leave(call: Any) -> JSONObject:
        assert call.close_stream(retry_ms=10)
        await trio.sleep(0.05)  # longer than the client stays away
        return text("worth the way")

    watching = Watching()
    with (
        served(leave, answers="sse") as server,
        connecting(server, revisions=LEGACY, trace=watching, get_stream=False) as client,
    ):
        assert ask(client, "any") == "worth the way"
    assert sum(b"last-event-id: " in data for data in watching.sent_data) == 1


def test_what_a_handler_raises_is_told_to_the_caller() -> None:
    """The caller gets an `McpError` unchanged, as on stdio."""

    def refuse(call: Call) -> JSONObject:
        raise McpError(ErrorCode.INVALID_PARAMS, "not now")

    with served(handle) as server, connecting(server, on_request=refuse) as client:
        with pytest.raises(McpError, match="not now"):
            ask(client, "ask")
        assert ask(client, "echo", text="on") == "on"


def test_threads_end_with_the_block() -> None:
    """A program that counts its threads, or forks, must find no thread of the library after the
    block.
    """
    with served(handle) as server:
        code = f"""
import sys, threading
from sansmcp_io.blocking import connect_http
with connect_http({server.url!r}, info={INFO}, revisions={LEGACY}) as client:
    list(client.items("tools/list"))
    print({{thread.name for thread in threading.enumerate()}})
print(threading.active_count(), "asyncio" in sys.modules)
"""
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stderr == ""
    during, after = run.stdout.splitlines()
    assert eval(during) == {"MainThread", "sansmcp HTTP"}
    assert after == "1 False"


# --------------------------------------------------------------------------------- cancellation


def hanging(ended: threading.Event) -> Callable[[Any], Any]:
    """A handler that hangs in tools/call, and signals its cancellation."""

    async def hang(call: Any) -> JSONObject:
        call.progress(1)
        try:
            await trio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    return hang


@ERAS
def test_a_call_that_takes_too_long_is_cancelled(revisions: tuple[str, ...]) -> None:
    """The cancellation must be sent although no thread reads or writes after the call."""
    ended = threading.Event()
    with (
        served(hanging(ended)) as server,
        connecting(server, revisions=revisions, get_stream=False) as client,
    ):
        with pytest.raises(RequestTimeout):
            ask_briefly(client)
        assert ended.wait(SECONDS)


@ERAS
def test_a_page_that_takes_too_long_is_cancelled(revisions: tuple[str, ...]) -> None:
    """The request of a page must be cancelled before the loop over the listing ends."""
    ended = threading.Event()

    async def hang(call: Any) -> JSONObject:
        try:
            await trio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    with (
        served(hang) as server,
        connecting(server, revisions=revisions, get_stream=False) as client,
    ):
        with pytest.raises(RequestTimeout):
            next(iter(client.items("tools/list", timeout=0.2)))
        assert ended.wait(SECONDS)


def ask_briefly(client: Client) -> None:
    client.request("tools/call", {"name": "any", "arguments": {}}, timeout=0.2)


@ERAS
def test_ctrl_c_cancels_a_call_and_leaves_the_client(revisions: tuple[str, ...]) -> None:
    """Ctrl-C must cancel the call on the server, and the next call must work."""
    ended = threading.Event()
    interrupt = partial(called, partial(os.kill, os.getpid(), signal.SIGINT))

    async def serve(call: Any) -> Any:
        if call.method == "tools/call" and call.params["name"] == "hang":
            return await hanging(ended)(call)
        return await handle(call)

    with served(serve) as server, connecting(server, revisions=revisions) as client:
        for _ in range(3):
            ended.clear()
            params: JSONObject = {"name": "hang", "arguments": {}}
            with pytest.raises(KeyboardInterrupt):
                client.request("tools/call", params, on_progress=interrupt)
            assert ended.wait(SECONDS)
            assert ask(client, "echo", text="on") == "on"


# ---------------------------------------------------------------------------------- connections


@ERAS
def test_calls_after_each_other_share_a_connection(revisions: tuple[str, ...]) -> None:
    """Opening a connection takes longer than a call."""
    watching = Watching()
    with (
        served(handle) as server,
        connecting(server, revisions=revisions, trace=watching, get_stream=False) as client,
    ):
        for number in range(20):
            assert ask(client, "echo", text=number) == str(number)
            client.notify("notifications/custom")
    assert len(watching.sent_data) >= 40
    assert len(set(watching.connections)) <= 4  # one, unless the server takes its time


def test_notifications_are_sent_before_the_end() -> None:
    """Notifications that wait for the session to open must be sent before the block ends."""
    watching = Watching()
    with (
        served(handle) as server,
        connecting(server, revisions=LEGACY, trace=watching, get_stream=False) as client,
    ):
        for _ in range(50):
            client.notify("notifications/custom")
    assert sum(b"notifications/custom" in data for data in watching.sent_data) == 50
    assert len(set(watching.connections)) <= 10


def test_large_messages_arrive_whole() -> None:
    """Messages larger than any buffer on the way must arrive complete in both directions."""
    said = "x" * 3_000_000
    with served(handle) as server, connecting(server) as client:
        assert ask(client, "echo", text=said) == said


def test_tls_is_spoken_and_certificates_are_checked(certificate: str) -> None:
    """A server with an untrusted certificate must be refused."""
    inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inside.load_cert_chain(certificate)
    outside = ssl.create_default_context(cafile=certificate)
    said = "x" * 1_000_000
    with served(handle, tls=inside) as server:
        url = f"https://localhost:{server.port}/mcp"
        watching = Watching()
        with connect_http(url, info=INFO, tls=outside, trace=watching) as client:
            for _ in range(3):
                assert ask(client, "echo", text=said) == said
        assert len(set(watching.connections)) == 1
        assert watching.sent_data[0].startswith(b"POST /mcp")
        for wrong in (url, f"https://127.0.0.1:{server.port}/mcp"):
            context = None if wrong == url else outside
            with (
                pytest.raises(ConnectionLost, match="certificate"),
                connect_http(wrong, info=INFO, tls=context),
            ):
                pass


def test_tls_with_a_server_that_has_none() -> None:
    """An https URL of a plain HTTP server is a usual mistake, and must end in a clear error."""
    with (
        served(handle) as server,
        pytest.raises(ConnectionLost, match="connection has failed"),
        connect_http(f"https://localhost:{server.port}/mcp", info=INFO),
    ):
        pass


# --------------------------------------------------------------------------------------- threads


@ERAS
def test_each_thread_has_its_own_answers(revisions: tuple[str, ...]) -> None:
    """Requests over the limit must wait for a free connection, and get their own responses."""
    limits = HTTPClientLimits(requests=4)
    answers: dict[int, list[str]] = {number: [] for number in range(12)}
    with (
        served(handle) as server,
        connecting(server, limits=limits, revisions=revisions) as client,
    ):

        def work(number: int) -> None:
            for _ in range(20):
                answers[number].append(ask(client, "echo", text=number))

        threads = [threading.Thread(target=work, args=(number,)) for number in answers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
    assert answers == {number: [str(number)] * 20 for number in answers}


def test_a_request_whose_turn_does_not_come_is_given_up_in_time() -> None:
    """A request that waits for a connection must end at its timeout."""
    has_begun, ended = threading.Event(), threading.Event()
    told: list[type[BaseException]] = []
    limits = HTTPClientLimits(requests=1)

    with served(hanging(ended)) as server, connecting(server, limits=limits) as client:

        def hang() -> None:
            params: JSONObject = {"name": "hang", "arguments": {}}
            try:
                client.request("tools/call", params, on_progress=partial(called, has_begun.set))
            except ConnectionLost as error:
                told.append(type(error))

        thread = threading.Thread(target=hang)
        thread.start()
        assert has_begun.wait(SECONDS)
        with pytest.raises(RequestTimeout):
            ask_briefly(client)
    thread.join(SECONDS)
    assert told == [ConnectionLost]  # the end of the block is the end of all its calls
    assert ended.wait(SECONDS)


def test_one_thread_waits_for_changes_while_others_ask() -> None:
    """The thread that reads dispatches the messages of all threads."""
    told: list[str] = []
    with served(handle) as server, connecting(server) as client:

        def watch() -> None:
            with client.listen({"resourceSubscriptions": [URI]}) as changes:
                is_watching.set()
                for method, _ in changes:
                    told.append(method)
                    if len(told) == 3:
                        break

        is_watching = threading.Event()
        thread = threading.Thread(target=watch)
        thread.start()
        assert is_watching.wait(SECONDS)
        while thread.is_alive():
            ask(client, "publish")
        thread.join(SECONDS)
    assert told == ["notifications/resources/updated"] * 3


# ------------------------------------------------------------------------------------ who it is


def knows(*tokens: str) -> Callable[[Mapping[str, str]], str]:
    def check(headers: Mapping[str, str]) -> str:
        token = headers.get("authorization", "")
        if token not in tokens:
            raise Unauthorized('Bearer realm="r", scope="a b"')
        return token

    return check


def test_a_client_that_is_not_known_can_show_something_else() -> None:
    """The client must be asked for credentials until the server accepts them, and then repeat the
    request.
    """
    tokens = iter(["wrong", "right"])
    seen: list[dict[str, str]] = []

    def show(refused: AuthorizationRequired) -> list[tuple[str, str]]:
        seen.extend(challenge.parameters for challenge in refused.challenges)
        return [("Authorization", next(tokens))]

    with (
        served(handle, authenticate=knows("right")) as server,
        connecting(server, on_unauthorized=show) as client,
    ):
        assert ask(client, "who") == f"right None {INFO}"
    assert seen == [{"realm": "r", "scope": "a b"}] * 2


def show_nothing(refused: AuthorizationRequired) -> None:
    """Supplies no token."""


def fail_to_show(refused: AuthorizationRequired) -> None:
    raise OSError("the keychain is locked")


@pytest.mark.parametrize("show", [None, show_nothing, fail_to_show])
def test_a_client_that_shows_nothing_is_refused(show: OnUnauthorized | None) -> None:
    """The exception must name the credentials that the server asks for."""
    with (
        served(handle, authenticate=knows()) as server,
        pytest.raises(RequestRefused) as caught,
        connecting(server, on_unauthorized=show),
    ):
        pass
    assert caught.value.status == 401
    assert caught.value.challenges[0].parameters == {"realm": "r", "scope": "a b"}


def test_a_token_that_has_expired_is_replaced_once_for_all_threads() -> None:
    """When the requests of all threads are refused, only one of them may ask for a new token."""
    valid = {"old"}
    asked: list[int] = []

    def check(headers: Mapping[str, str]) -> str:
        token = headers.get("authorization", "")
        if token not in valid:
            raise Unauthorized("Bearer")
        return token

    def show(refused: AuthorizationRequired) -> list[tuple[str, str]]:
        asked.append(refused.status)
        return [("Authorization", "new")]

    with (
        served(handle, authenticate=check) as server,
        connecting(server, headers=[("Authorization", "old")], on_unauthorized=show) as client,
    ):
        assert ask(client, "who").startswith("old")
        valid.clear()
        valid.add("new")
        said: list[str] = []
        threads = [
            threading.Thread(target=lambda: said.append(ask(client, "who"))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
        assert [word.partition(" ")[0] for word in said] == ["new"] * 4
        assert asked == [401] * len(asked)
        assert 1 <= len(asked) <= 4  # late refusals are answered with what is known


def test_ctrl_c_while_the_user_is_asked_for_a_token_ends_the_call() -> None:
    """A user who has no token at hand must be able to interrupt the call and retry later."""
    answers = iter([KeyboardInterrupt, "right"])
    valid = {"right"}

    def show(refused: AuthorizationRequired) -> list[tuple[str, str]]:
        said = next(answers)
        if said is KeyboardInterrupt:
            signal.raise_signal(signal.SIGINT)
        return [("Authorization", str(said))]

    def check(headers: Mapping[str, str]) -> str:
        if headers.get("authorization") not in valid:
            raise Unauthorized("Bearer")
        return "ann"

    with (
        served(handle, authenticate=check) as server,
        connecting(server, headers=[("Authorization", "right")], on_unauthorized=show) as client,
    ):
        valid.clear()
        with pytest.raises(KeyboardInterrupt):
            ask(client, "who")
        valid.add("right")
        assert ask(client, "who").startswith("ann")


# ------------------------------------------------------------------------------------- settings


def test_async_handlers_are_refused_at_once() -> None:
    """A coroutine that an async handler returns would never be run."""

    async def show(refused: AuthorizationRequired) -> None: ...

    with (
        pytest.raises(TypeError, match="async"),
        connect_http("http://127.0.0.1:1/mcp", info=INFO, on_unauthorized=show),
    ):
        pass


def test_all_that_happens_can_be_watched() -> None:
    """A trace gets the bytes of each connection and all events; a trace that fails is logged."""
    watching = Watching()
    with served(handle) as server, connecting(server, trace=watching) as client:
        ask(client, "echo", text="a")
    assert watching.sent_data[0].startswith(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:")
    assert watching.received_data[0].startswith(b"HTTP/1.1 200 ")
    assert watching.events[:2] == ["Ready", "ResponseReceived"]
    assert watching.events[-1] == "ConnectionClosed"


def test_a_trace_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A failing trace must not end the conversation."""

    class Failing(Watching):
        def received(self, connection: str, data: bytes) -> None:
            raise ValueError

    with (
        served(handle) as server,
        caplog.at_level(logging.ERROR, "sansmcp"),
        connecting(server, trace=Failing()) as client,
    ):
        assert ask(client, "echo", text="a") == "a"
    assert {record.message for record in caplog.records} == {"the trace failed"}
