"""The blocking client over HTTP, with servers that misbehave or do not run."""

import logging
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

from sansmcp import LEGACY_REVISIONS, JSONObject
from sansmcp_io.blocking import (
    Client,
    ConnectionLost,
    HTTPClientLimits,
    InvalidAnswer,
    PeerError,
    RequestRefused,
    RequestTimeout,
    connect_http,
)
from tests.support.http.in_thread import Reply, hostile, served
from tests.support.http.scripted import Asked, scripted
from tests.support.http.tools import handle
from tests.support.processes import descriptors

INFO: JSONObject = {"name": "test-client", "version": "1.0"}
LEGACY = LEGACY_REVISIONS[-1:]
QUICK = HTTPClientLimits(connect=2.0, head=2.0)
SECONDS = 30
IPV4 = socket.AF_INET
FAILURES = (ConnectionError, TimeoutError, InvalidAnswer, PeerError)


@contextmanager
def talking(url: str, **settings: Any) -> Generator[Client, None, None]:
    """A client of 2025-11-25 that is connected to this server."""
    settings = {"info": INFO, "revisions": LEGACY, **settings}
    with connect_http(url, **settings) as client:
        yield client


def said(client: Client) -> str:
    """The text of a tool result."""
    result: Any = client.request("tools/call", {"name": "any", "arguments": {}})
    text: str = result["content"][0]["text"]
    return text


def on_port(port: int) -> str:
    return f"http://127.0.0.1:{port}/mcp"


# ------------------------------------------------------------------------------- while it opens


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n%b\r\n"


def until_it_leaves(connection: socket.socket) -> None:
    while connection.recv(65_536):
        pass


def silence(connection: socket.socket, request: bytes) -> None:
    until_it_leaves(connection)


def silence_after_head(connection: socket.socket, request: bytes) -> None:
    connection.sendall(HEAD % (b"application/json", b"content-length: 10\r\n"))
    until_it_leaves(connection)


def half_a_chunk(connection: socket.socket, request: bytes) -> None:
    connection.sendall(HEAD % (b"application/json", b"transfer-encoding: chunked\r\n") + b"ff\r\n{")


def endless_event(connection: socket.socket, request: bytes) -> None:
    connection.sendall(HEAD % (b"text/event-stream", b"connection: close\r\n") + b"data: ")
    while True:
        connection.sendall(b"x" * 65_536)


def comments_only(connection: socket.socket, request: bytes) -> None:
    connection.sendall(HEAD % (b"text/event-stream", b"connection: close\r\n"))
    while True:
        connection.sendall(b": still here\n\n")
        time.sleep(0.05)  # as a server does that keeps a stream alive


def no_http(connection: socket.socket, request: bytes) -> None:
    connection.sendall(b"220 mail.example ESMTP\r\n")


def nothing(connection: socket.socket, request: bytes) -> None:
    """Closes the connection without a response."""


def reset(connection: socket.socket, request: bytes) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize(
    "reply",
    [
        silence,
        silence_after_head,
        half_a_chunk,
        endless_event,
        comments_only,
        no_http,
        nothing,
        reset,
    ],
)
def test_a_bad_server_keeps_nobody_waiting(reply: Reply) -> None:
    """Whatever a server does, opening must end in time with an error."""
    with (
        hostile(reply) as port,
        pytest.raises(FAILURES),
        connect_http(on_port(port), info=INFO, start_timeout=1.0, probe_timeout=0.5, limits=QUICK),
    ):
        pass


def test_nobody_listens() -> None:
    """A refused connection is the most usual fault, and its error must say so."""
    with (
        pytest.raises(ConnectionLost, match="connection has failed"),
        connect_http(on_port(1), info=INFO),
    ):
        pass


def test_a_name_that_cannot_be_looked_up_is_said_to_be_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mistyped host or a missing network must be told apart from a server that is down."""

    def look_up(*about: Any, **options: Any) -> NoReturn:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with (
        pytest.raises(ConnectionLost, match="Name or service not known"),
        connect_http("http://two.example/mcp", info=INFO, proxies="ignore"),
    ):
        pass


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_token_does_not_go_to_another_origin(status: int) -> None:
    """A redirect to another server must not hand the token to it."""
    asked: list[bytes] = []

    def other(connection: socket.socket, request: bytes) -> None:
        asked.append(request)

    with hostile(other) as elsewhere:

        def redirect(asked: Asked) -> None:
            assert asked.headers["authorization"] == "Bearer secret-token"
            asked.reply(status, b"", {"location": on_port(elsewhere)})

        headers = [("Authorization", "Bearer secret-token")]
        with (
            scripted(redirect) as url,
            pytest.raises(FAILURES) as caught,
            connect_http(url, info=INFO, headers=headers, start_timeout=2.0),
        ):
            pass
    assert asked == []
    assert "secret-token" not in str(caught.value)


def test_ctrl_c_while_it_opens_leaves_nothing() -> None:
    """Users press Ctrl-C when a server does not answer: no thread and no socket may be left."""

    def interrupt(connection: socket.socket, request: bytes) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        until_it_leaves(connection)
        has_left.set()

    has_left = threading.Event()
    before = descriptors()
    with hostile(interrupt) as port:
        with pytest.raises(KeyboardInterrupt), connect_http(on_port(port), info=INFO):
            pass
        assert has_left.wait(SECONDS)
    assert descriptors() <= before


# ------------------------------------------------------------------------------------ addresses


UNKNOWN = 12345
"""A family of addresses that this machine has no way to."""


def resolving(monkeypatch: pytest.MonkeyPatch, *found: tuple[int, int]) -> None:
    """Let every host name resolve to these addresses: families and ports."""

    def look_up(*about: Any, **options: Any) -> list[tuple[Any, ...]]:
        return [(family, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for family, port in found]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@contextmanager
def deaf() -> Generator[int, None, None]:
    """A port that neither accepts nor refuses connections: its queue is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port: int = listener.getsockname()[1]
        waiting: list[socket.socket] = []
        for _ in range(4):
            waiting.append(socket.socket())
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(("127.0.0.1", port))
        yield port
        for one in waiting:
            one.close()


def test_an_address_that_refuses_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers often have an IPv4 and an IPv6 address of which only one works."""
    with served(handle, hosts=["two.example"]) as server:
        resolving(monkeypatch, (UNKNOWN, 1), (IPV4, 1), (IPV4, server.port))
        with connect_http("http://two.example/mcp", info=INFO, proxies="ignore") as client:
            assert list(client.items("tools/list")) == []


def test_an_address_that_is_silent_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address whose packets get lost must not use up the time: the next one is tried long before
    the limit.
    """
    with served(handle, hosts=["two.example"]) as server, deaf() as port:
        resolving(monkeypatch, (IPV4, port), (IPV4, server.port))
        with connect_http("http://two.example/mcp", info=INFO, proxies="ignore") as client:
            assert list(client.items("tools/list")) == []


def test_addresses_that_cannot_even_be_tried_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error must name addresses of a family that this machine cannot reach."""
    resolving(monkeypatch, (UNKNOWN, 1), (UNKNOWN, 2))
    with (
        pytest.raises(ConnectionLost, match="connection has failed"),
        connect_http("http://two.example/mcp", info=INFO, proxies="ignore"),
    ):
        pass


def test_a_second_address_that_cannot_be_tried_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second address that cannot be tried must not hide that the first one is silent."""
    with deaf() as port:
        resolving(monkeypatch, (IPV4, port), (UNKNOWN, 1))
        with (
            pytest.raises(ConnectionLost, match="connection has failed"),
            connect_http("http://two.example/mcp", info=INFO, proxies="ignore"),
        ):
            pass


def test_a_connection_that_does_not_come_about_is_given_up() -> None:
    """A connection attempt must end long before the time limit for the opening."""
    limits = HTTPClientLimits(connect=0.2)
    with (
        deaf() as port,
        pytest.raises(ConnectionLost, match=r"not open within 0\.2 s"),
        connect_http(on_port(port), info=INFO, limits=limits),
    ):
        pass


def test_a_connection_that_opens_for_nobody_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller may have gone while the connection opens. It would stay open until the garbage
    collector comes.
    """
    connect, opened = socket.create_connection, list[socket.socket]()

    def open_slowly(*about: Any, **options: Any) -> socket.socket:
        opened.append(connect(*about, **options))
        time.sleep(0.3)  # longer than the caller waits
        return opened[-1]

    monkeypatch.setattr(socket, "create_connection", open_slowly)
    with (
        served(handle) as server,
        pytest.raises(RequestTimeout),
        connect_http(on_port(server.port), info=INFO, start_timeout=0.1),
    ):
        pass
    assert opened
    assert [one.fileno() for one in opened] == [-1] * len(opened)


# ------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("status", [413, 429, 500])
def test_a_refusal_says_its_status_and_when_to_come_back(status: int) -> None:
    """A large request may be refused before it was read, with its connection closed; the error must
    still have the status.
    """

    def answer(asked: Asked) -> None:
        if not asked.open_session():
            if asked.message["params"]["name"] == "refuse":
                asked.reply(status, b"", {"retry-after": "7"})
            else:
                asked.result({"content": []})

    class Impatient(Asked):
        def parse_request(self) -> bool:
            is_good = super().parse_request()
            if is_good and int(self.headers.get("content-length", 0)) > 1_000_000:
                self.reply(status, b"", {"retry-after": "7", "connection": "close"})
                self.rfile.read(int(self.headers["content-length"]))  # and throws it away
                self.close_connection = True
                return False
            return is_good

    large = "x" * 20_000_000
    with scripted(answer, Impatient) as url, talking(url) as client:
        for text in ("", large):
            params: JSONObject = {"name": "refuse", "arguments": {"text": text}}
            with pytest.raises(RequestRefused) as caught:
                client.request("tools/call", params)
            assert (caught.value.status, caught.value.retry_after) == (status, 7.0)
            result = client.request("tools/call", {"name": "serve", "arguments": {}})
            assert result["content"] == []


def test_a_server_that_hangs_up_while_it_is_written_to_loses_the_request() -> None:
    """If the server closes the connection during the write without a response, the request must end
    as lost.
    """

    def answer(asked: Asked) -> None:
        if not asked.open_session():
            asked.result({"content": []})

    class Leaving(Asked):
        def parse_request(self) -> bool:
            is_good = super().parse_request()
            if is_good and int(self.headers.get("content-length", 0)) > 1_000_000:
                self.connection.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
                os.close(self.connection.detach())
                self.close_connection = True
                return False
            return is_good

    with scripted(answer, Leaving) as url, talking(url) as client:
        large: JSONObject = {"text": "x" * 20_000_000}
        with pytest.raises(ConnectionLost):
            client.request("tools/call", {"name": "any", "arguments": large})
        assert client.request("tools/call", {"name": "any", "arguments": {}})["content"] == []


def test_what_nobody_waits_for_is_logged_when_it_is_refused_or_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No caller waits for a notification or the GET stream, so their failures must be logged."""

    def answer(asked: Asked) -> None:
        method = asked.message.get("method")
        if asked.command == "GET":
            asked.reply(403)
        elif method == "notifications/refuse":
            asked.reply(400)
        elif method == "notifications/hang":
            is_over.wait(SECONDS)
            asked.reply(202)
        elif not asked.open_session():
            asked.result({"content": []})

    is_over = threading.Event()
    limits = HTTPClientLimits(head=0.2)
    with (
        caplog.at_level(logging.INFO, "sansmcp"),
        scripted(answer) as url,
        talking(url, limits=limits) as client,
    ):
        client.notify("notifications/hang")
        client.notify("notifications/refuse")
        until = time.monotonic() + SECONDS
        said: set[str] = set()
        while len(said) < 3 and time.monotonic() < until:
            client.poll(0.05)
            said = {record.message for record in caplog.records}
        is_over.set()
    assert said >= {
        "the server has refused a message: HTTP 400",
        "a message was lost with its connection",
        "the server answered GET with status 403",
    }


# ----------------------------------------------------------------------------------------- ends


def test_a_server_that_has_gone_is_found_when_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    """Its address must be looked up again, and the end of the block must not wait meanwhile."""

    def answer(asked: Asked) -> None:
        asked.close_connection = True
        if not asked.open_session("s"):
            asked.result({"content": []})

    with talking_with(answer) as (client, stop, start):
        assert client.request("tools/call", {"name": "a", "arguments": {}})["content"] == []
        stop()
        with pytest.raises(ConnectionLost):
            client.request("tools/call", {"name": "a", "arguments": {}})
        client.notify("notifications/lost")
        start()
        assert client.request("tools/call", {"name": "a", "arguments": {}})["content"] == []
        stop()
        client.notify("notifications/lost")


@contextmanager
def talking_with(
    answer: Callable[[Asked], None],
) -> Generator[tuple[Client, Callable[[], None], Callable[[], None]], None, None]:
    """A conversation with a server that can be stopped and started again at the same port."""
    serving: Any = None

    def start() -> None:
        nonlocal serving
        serving = scripted(answer, port=port)
        serving.__enter__()

    def stop() -> None:
        nonlocal serving
        running, serving = serving, None
        running.__exit__(None, None, None)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    start()
    try:
        with talking(on_port(port)) as client:
            yield client, stop, start
    finally:
        if serving is not None:
            stop()


def test_a_connection_that_the_server_has_closed_is_not_used() -> None:
    """Servers close idle connections at any time; a call on such a connection would be lost."""
    connections: set[Any] = set()

    def answer(asked: Asked) -> None:
        connections.add(asked.client_address)
        asked.close_connection = True  # and says nothing of it
        if not asked.open_session():
            asked.result({"content": []})

    with scripted(answer) as url, talking(url, get_stream=False) as client:
        for _ in range(3):
            assert not client.poll(0.1)  # nothing but the end of a connection comes
            client.request("tools/call", {"name": "any", "arguments": {}})
    assert len(connections) >= 3


def test_a_stream_that_is_silent_for_too_long_is_lost() -> None:
    """A server that vanished without closing its connection would be waited for until the timeout
    of the call.
    """

    def answer(asked: Asked) -> None:
        if not asked.open_session():
            asked.stream(": begun")
            is_over.wait(SECONDS)

    is_over = threading.Event()
    limits = HTTPClientLimits(silence=0.2)
    with scripted(answer) as url, talking(url, limits=limits) as client:
        with pytest.raises(ConnectionLost, match="silent for too long"):
            client.request("tools/call", {"name": "any", "arguments": {}})
        is_over.set()


def test_a_session_that_is_lost_is_opened_anew() -> None:
    """Requests that were open in a lost session fail, and later ones must wait for the new
    session."""
    sessions = iter("abc")
    valid: list[str] = []

    def answer(asked: Asked) -> None:
        if asked.message.get("method") == "initialize":
            if valid:
                may_open.wait(SECONDS)
            valid[:] = [next(sessions)]
            assert asked.open_session(valid[0])
        elif asked.headers.get("mcp-session-id") != valid[0] or valid[0] == "forgotten":
            asked.reply(404)
        elif not asked.open_session():
            asked.result({"content": [{"type": "text", "text": valid[0]}]})

    may_open = threading.Event()
    params: JSONObject = {"name": "any", "arguments": {}}
    with scripted(answer) as url, talking(url, get_stream=False) as client:
        assert said(client) == "a"
        valid[0] = "forgotten"
        client.notify("notifications/custom")
        with pytest.raises(RequestTimeout, match="the session was lost, and is not open again yet"):
            client.request("tools/call", params, timeout=0.2)
        with pytest.raises(RequestTimeout, match="the session was lost, and is not open again yet"):
            client.ping(timeout=0.1)
        with pytest.raises(ConnectionLost, match="is not open again yet"):
            client.notify("notifications/custom")
        may_open.set()
        assert said(client) == "b"


def test_whoever_waits_for_a_session_learns_that_there_is_none() -> None:
    """A thread that waits for a session must learn that none could be opened."""

    def answer(asked: Asked) -> None:
        if len(seen) < 3:
            seen.append(asked.command)
            if not asked.open_session("s"):
                asked.result({"content": []})
        else:
            asked.reply(404)

    seen: list[str] = []
    params: JSONObject = {"name": "any", "arguments": {}}
    with scripted(answer) as url, talking(url, get_stream=False) as client:
        client.request("tools/call", params)
        with pytest.raises(RequestRefused, match="no new session could be opened"):
            client.request("tools/call", params)
        for _ in range(2):
            with pytest.raises(RequestRefused, match="no new one could be opened"):
                client.request("tools/call", params)
        with pytest.raises(ConnectionLost, match="session was lost"):
            client.notify("notifications/custom")


def test_the_end_waits_for_a_server_for_a_moment_only() -> None:
    """DELETE of the session is a courtesy: a server that does not answer it must not delay
    Ctrl-C."""

    def answer(asked: Asked) -> None:
        if asked.command == "DELETE":
            os.kill(os.getpid(), signal.SIGINT)
            is_over.wait(SECONDS)
        if not asked.open_session("s"):
            asked.result({"content": []})

    is_over = threading.Event()
    before = descriptors()
    with scripted(answer) as url:
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt), talking(url, get_stream=False):
            pass
        assert 0.5 < time.monotonic() - start < 20
        is_over.set()
    assert len(descriptors() - before) <= 1  # the one whose response still comes


def test_the_end_of_the_block_ends_the_calls_of_all_threads() -> None:
    """No thread may go on waiting for a server that does not answer."""
    told: list[type[BaseException]] = []

    def answer(asked: Asked) -> None:
        if not asked.open_session():
            has_come.release()
            is_over.wait(SECONDS)

    def call(client: Client) -> None:
        try:
            client.request("tools/call", {"name": "any", "arguments": {}})
        except ConnectionLost as error:
            told.append(type(error))

    has_come, is_over = threading.Semaphore(0), threading.Event()
    with scripted(answer) as url:
        with talking(url) as client:
            threads = [threading.Thread(target=call, args=(client,)) for _ in range(3)]
            for thread in threads:
                thread.start()
            for _ in threads:
                assert has_come.acquire(timeout=SECONDS)
        for thread in threads:
            thread.join(SECONDS)
        is_over.set()
    assert told == [ConnectionLost] * 3
