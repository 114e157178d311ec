"""Many hostile clients without sockets: the memory and time that each may cost is bounded.

The endpoint and all its connections are in this process and behave as behind sockets; memory is
counted by `tracemalloc`, and time is a number.
"""

import gc
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from sansmcp import JSONObject, ToolsListChanged
from sansmcp.http import MemoryEventLog, ServerEndpoint
from sansmcp_io.h11 import ConnectionState, HTTPConnection
from tests.support.http.h11_client import head, posted, posted_modern
from tests.support.http.server_endpoint import (
    LEGACY,
    POST,
    asked,
    body_of,
    drain,
    modern_tool_call,
    new_endpoint,
    sessions,
)
from tests.support.machines.tracing import without_tracing
from tests.support.wire import INITIALIZED, initialize

KIB = 1024
MIB = 1024 * 1024

pytestmark = pytest.mark.unjudged("there is too much of it")


class Client:
    """A connection, and the requests that a client sends on it."""

    def __init__(self, endpoint: ServerEndpoint, now: float = 0.0) -> None:
        self.endpoint = endpoint
        self.connection = HTTPConnection(endpoint, now=now)

    def send(self, wire: bytes, now: float = 0.0) -> None:
        self.connection.receive_data(wire, now=now)

    def read(self, now: float = 0.0) -> bytes:
        return self.connection.data_to_send(now=now)

    def open_session(self) -> dict[str, str]:
        """Do the handshake; returns the headers of all further requests."""
        self.send(posted(initialize(0, LEGACY)))
        begin, _, rest = self.read().partition(b"mcp-session-id: ")
        assert begin.startswith(b"HTTP/1.1 200 OK")
        fields = {
            "mcp-session-id": rest.partition(b"\r\n")[0].decode(),
            "mcp-protocol-version": LEGACY,
        }
        self.send(posted(INITIALIZED, fields))
        assert self.read().startswith(b"HTTP/1.1 202")
        drain(self.endpoint)
        return fields

    def open_stream(self, fields: dict[str, str]) -> None:
        self.send(head("GET", "/mcp", {**fields, "accept": "text/event-stream"}))
        assert self.read().startswith(b"HTTP/1.1 200 OK")

    def leave(self) -> None:
        self.connection.receive_eof(now=0.0)


def is_served(endpoint: ServerEndpoint) -> bool:
    """Whether another client is served."""
    client = Client(endpoint)
    client.send(posted_modern(modern_tool_call()))
    endpoint.send_result(asked(endpoint), {"content": []})
    return client.read().startswith(b"HTTP/1.1 200 OK")


def traced(make: Callable[[], Any]) -> tuple[Any, int, int]:
    """The result of `make`, the bytes that it holds, and the most that it held meanwhile."""
    gc.collect()
    tracemalloc.start()
    try:
        made = make()
        _, peak = tracemalloc.get_traced_memory()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return made, after, peak


# ------------------------------------------------------------------------------- heads and bodies


def test_a_thousand_slow_heads_cost_little_and_are_given_up() -> None:
    """A head that never ends must neither hold much memory nor stay open."""
    endpoint = new_endpoint()
    wire = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx: " + b"x" * 160

    def crawl() -> list[Client]:
        clients = [Client(endpoint) for _ in range(1000)]
        for at in range(0, len(wire), 10):
            for client in clients:
                client.send(wire[at : at + 10], now=at / 100)
        return clients

    clients, held, _ = traced(crawl)
    assert held / 1000 < 8 * KIB
    assert is_served(endpoint)
    for client in clients:
        client.connection.handle_timeout(10.0)
        assert client.read(10.0).startswith(b"HTTP/1.1 408")
        assert client.connection.state is ConnectionState.LINGERING


def test_a_hundred_megabytes_are_refused_at_the_head() -> None:
    """A body whose length is over the limit must be refused without keeping one byte of it."""
    endpoint = new_endpoint()

    def pour() -> Client:
        client = Client(endpoint)
        client.send(head("POST", "/mcp", {**POST, "content-length": "100000000"}))
        assert client.read().startswith(b"HTTP/1.1 413")
        for _ in range(1000):
            client.send(b" " * 100_000)
        return client

    client, _, peak = traced(pour)
    assert client.connection.state is ConnectionState.LINGERING
    assert peak < MIB
    assert is_served(endpoint)


def test_a_hundred_megabytes_in_chunks_are_refused_at_the_limit() -> None:
    """A body without a length must be kept up to the limit for a message, and no further."""
    endpoint = new_endpoint()
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"

    def pour() -> list[bytes]:
        client = Client(endpoint)
        client.send(head("POST", "/mcp", {**POST, "transfer-encoding": "chunked"}))
        answers: list[bytes] = []
        for _ in range(100_000_000 // 0x10000):
            client.send(chunk)
            answers.append(client.read())
        return answers

    answers, held, peak = traced(pour)
    (said,) = [number for number, answer in enumerate(answers) if answer]
    assert said == 16 * MIB // 0x10000  # the first chunk over it
    assert answers[said].startswith(b"HTTP/1.1 413")
    assert peak < 19 * MIB  # a buffer that grows has an eighth to spare
    assert held < MIB
    drain(endpoint)
    assert is_served(endpoint)


# ---------------------------------------------------------------------------- sessions and streams


def test_ten_thousand_idle_sessions_are_cheap_and_the_next_is_refused() -> None:
    """Abandoned sessions must take little memory, and leave room for clients without sessions."""
    endpoint = new_endpoint()
    first, second = body_of(initialize(0, LEGACY)), body_of(INITIALIZED)

    def say(body: bytes, fields: dict[str, str]) -> Any:
        exchange = endpoint.exchange("POST", "/mcp", {**POST, **fields}.items())
        exchange.receive_data(body)
        exchange.receive_end()
        response = exchange.response()
        assert response is not None
        return response

    def open_sessions(number: int) -> None:
        for _ in range(number):
            _, headers, _ = say(first, {})
            id = dict(headers)[b"mcp-session-id"].decode()
            say(second, {"mcp-session-id": id, "mcp-protocol-version": LEGACY})
            drain(endpoint)

    with without_tracing():
        open_sessions(9_000)
    _, held, _ = traced(lambda: open_sessions(1_000))  # tracing takes most of the time
    assert len(endpoint.sessions) == 10_000
    assert held / 1_000 < 6 * KIB
    assert say(first, {})[0] == 503
    drain(endpoint)
    assert is_served(endpoint)


def test_a_thousand_open_streams_are_cheap_and_all_of_them_hear() -> None:
    """Most clients keep a stream open on which nothing happens."""
    endpoint = new_endpoint()

    def listen(number: int) -> list[Client]:
        clients: list[Client] = []
        for _ in range(number):
            client = Client(endpoint)
            client.open_stream(client.open_session())
            clients.append(client)
        return clients

    with without_tracing():
        clients = listen(800)
    more, held, _ = traced(lambda: listen(200))
    clients += more
    endpoint.ready()
    assert held / 200 < 24 * KIB
    assert is_served(endpoint)
    endpoint.publish(ToolsListChanged())
    exchanges = {client.connection.exchange for client in clients}
    assert exchanges == set(endpoint.ready())
    assert sum(b"list_changed" in client.read() for client in clients) == 1000


def test_who_comes_back_again_and_again_leaves_nothing() -> None:
    """After each failure of the network all clients reconnect at once."""
    log = partial(MemoryEventLog, max_events=20)  # or it would have room for a long time
    endpoint = new_endpoint(sessions=sessions(event_log=log))
    clients = [Client(endpoint) for _ in range(20)]
    fields = [client.open_session() for client in clients]

    def come_back(times: int) -> None:
        for _ in range(times):
            for index, client in enumerate(clients):
                client.leave()
                clients[index] = Client(endpoint)
                clients[index].open_stream(fields[index])
            endpoint.ready()
            drain(endpoint)

    with without_tracing():
        come_back(40)
        _, once, _ = traced(lambda: come_back(20))
        _, often, _ = traced(lambda: come_back(60))
    assert often < once + 40 * 20 * KIB / 8  # an eighth of a KiB each time
    assert is_served(endpoint)


# ---------------------------------------------------------------------------------- deaf clients


def test_who_never_reads_is_told_so_much_and_no_more() -> None:
    """A handler that reports to a client that never reads must not fill the memory, and must be
    told.
    """
    endpoint = new_endpoint()
    message = modern_tool_call()
    message["params"]["_meta"]["progressToken"] = 1
    client = Client(endpoint)
    client.send(posted_modern(message))
    request = asked(endpoint)

    def tell() -> int:
        said = 0
        while endpoint.send_progress(request, said, message="x" * 100_000):
            said += 1
        assert not endpoint.send_progress(request, said, message="x")
        return said

    said, held, _ = traced(tell)
    assert said == pytest.approx(16 * MIB / 100_000, abs=2)
    assert held < 17 * MIB
    assert client.connection.held_bytes == pytest.approx(held, rel=0.1)
    result: JSONObject = {"content": []}
    assert endpoint.send_result(request, result)  # the answer is more than news
    client.leave()
    assert client.connection.held_bytes == 0
    drain(endpoint)
    assert is_served(endpoint)
