"""The trio client over HTTP, with servers that break streams off or redirect to other hosts."""

import itertools
import json
import re
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from typing import Any, TypeAlias

import attrs
import pytest
import trio
from trio.testing import MockClock

from sansmcp import LEGACY_REVISIONS, Config, JSONObject
from sansmcp.http import ClientHTTPEvent, StreamUnavailable
from sansmcp_io.trio import Client, ConnectionLost, RequestRefused, RequestTimeout, connect_http
from tests.support.adapters.on_trio import on_trio
from tests.support.processes import descriptors

LEGACY = LEGACY_REVISIONS[-1]
TOKEN = b"secret-token"
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n")


@attrs.frozen
class Asked:
    """A request that a client has sent."""

    verb: str
    message: Any
    last_event_id: str | None


Reply: TypeAlias = Callable[[Asked], bytes]
KEPT = pytest.mark.parametrize("kept", [True, False], ids=["kept", "closed"])


def response(status: int, fields: bytes = b"", body: bytes = b"") -> bytes:
    head = b"HTTP/1.1 %d x\r\n%bcontent-length: %d\r\n\r\n" % (status, fields, len(body))
    return head + body


def answered(message: JSONObject, fields: bytes = b"") -> bytes:
    body = json.dumps(message).encode()
    return response(200, b"content-type: application/json\r\n" + fields, body)


def streamed(*events: bytes, kept: bool = True) -> bytes:
    """A stream that ends at once; with `kept`, its connection stays open."""
    body = b"".join(events)
    if kept:
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    how = b"transfer-encoding: chunked" if kept else b"connection: close"
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n%b\r\n\r\n%b" % (how, body)


def opening(asked: Asked) -> bytes | None:
    """The responses of a good server until the session is open."""
    if asked.verb == "DELETE":
        return response(200)
    if asked.verb == "POST" and asked.message["method"] == "initialize":
        result: JSONObject = {
            "protocolVersion": LEGACY,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "hostile", "version": "1"},
        }
        answer = {"jsonrpc": "2.0", "id": asked.message["id"], "result": result}
        return answered(answer, b"mcp-session-id: s\r\n")
    if asked.verb == "POST" and "id" not in asked.message:
        return response(202)
    return None


@attrs.define
class Server:
    """A server that answers as it is told to.

    Attributes:
        port: Where it is.
        open: Connections that are open.
        most: How many there were at a time.
        asked: What has come.
    """

    port: int
    reply: Reply
    open: int = 0
    most: int = 0
    asked: list[Asked] = attrs.field(factory=list[Asked])

    def count(self, verb: str) -> int:
        return sum(one.verb == verb for one in self.asked)

    async def serve(self, stream: trio.SocketStream) -> None:
        self.open += 1
        self.most = max(self.most, self.open)
        data = b""
        with suppress(trio.BrokenResourceError):  # the client has gone
            while True:
                while (parsed := _parsed(data)) is None:
                    if not (more := await stream.receive_some()):
                        self.open -= 1
                        return
                    data += more
                asked, data = parsed
                self.asked.append(asked)
                answer = self.reply(asked)
                await stream.send_all(answer)
                if b"connection: close" in answer:
                    await stream.send_eof()
        self.open -= 1


def _parsed(data: bytes) -> tuple[Asked, bytes] | None:
    """The first request, if it is complete, and the bytes behind it."""
    head, end, rest = data.partition(b"\r\n\r\n")
    length = _LENGTH.search(head + b"\r\n")
    size = int(length[1]) if length else 0
    if not end or len(rest) < size:
        return None
    last = re.search(rb"\r\nlast-event-id: ([^\r]+)", head)
    message = json.loads(rest[:size]) if size else None
    verb = head.split(b" ", 1)[0].decode()
    return Asked(verb, message, last[1].decode() if last else None), rest[size:]


@asynccontextmanager
async def serving(reply: Reply) -> AsyncGenerator[Server]:
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server = Server(listeners[0].socket.getsockname()[1], reply)
        nursery.start_soon(trio.serve_listeners, server.serve, listeners)
        yield server
        nursery.cancel_scope.cancel()


class Events:
    """A trace that keeps the events, and signals when a certain one has come."""

    def __init__(self) -> None:
        self.unavailable: list[StreamUnavailable] = []
        self.came = trio.Event()

    def sent(self, connection: str, data: bytes) -> None:
        """Ignore the bytes."""

    def received(self, connection: str, data: bytes) -> None:
        """Ignore the bytes."""

    def happened(self, event: ClientHTTPEvent) -> None:
        if isinstance(event, StreamUnavailable):
            self.unavailable.append(event)
            self.came.set()


def connecting(
    port: int, path: str = "/mcp", **settings: Any
) -> AbstractAsyncContextManager[Client]:
    settings = {"revisions": LEGACY_REVISIONS, "hint": LEGACY, **settings}
    return connect_http(
        f"http://127.0.0.1:{port}{path}",
        info={"name": "test-client", "version": "1.0"},
        headers=[("Authorization", f"Bearer {TOKEN.decode()}")],
        **settings,
    )


@contextmanager
def nothing_piles_up() -> Generator[None, None, None]:
    """Fail if the block leaves more descriptors or tasks than a few connections have."""
    descriptors_before, tasks_before = descriptors(), tasks()
    yield
    assert len(descriptors() - descriptors_before) <= 10
    assert tasks() - tasks_before <= 10


def tasks() -> int:
    return trio.lowlevel.current_statistics().tasks_living


TIMES = 250


def clock() -> MockClock:
    """A clock that jumps over the pauses of a client, but not before the input of its sockets."""
    return MockClock(autojump_threshold=0.005)


def event(id: int, message: JSONObject | None = None) -> bytes:
    data = json.dumps(message).encode() if message is not None else b""
    return b"id: %d\nretry: 0\ndata: %b\n\n" % (id, data)


def breaking(verb: str, kept: bool, times: int = TIMES) -> Reply:
    """A server that breaks off a stream this number of times: that of a call or that of a GET.

    Then the call is answered, or the GET refused.
    """
    numbers = itertools.count(1)
    ids: list[Any] = []

    def reply(asked: Asked) -> bytes:
        if (answer := opening(asked)) is not None:
            return answer
        if asked.verb == "POST":
            ids.append(asked.message["id"])
            if verb == "GET":
                return answered({"jsonrpc": "2.0", "id": ids[-1], "result": {"content": []}})
        number = next(numbers)
        if number <= times:
            assert asked.last_event_id == (str(number - 1) if number > 1 else None)
            return streamed(event(number), kept=kept)
        if verb == "GET":
            return response(400)
        result: JSONObject = {"jsonrpc": "2.0", "id": ids[0], "result": {"content": []}}
        return streamed(event(number, result), kept=kept)

    return reply


# --------------------------------------------------------------------------- streams that break off


@KEPT
@on_trio(seconds=10 * TIMES, clock=clock)
async def test_a_call_survives_hundreds_of_reconnects(kept: bool) -> None:
    """Each attempt opens the stream and so counts as a success: the call is made once, ends with
    its response, and leaves neither tasks nor connections.
    """
    async with (
        serving(breaking("POST", kept)) as server,
        connecting(server.port, get_stream=False) as client,
    ):
        with nothing_piles_up():
            answer = await client.request("tools/call", {"name": "x"}, timeout=TIMES)
        assert answer == {"content": []}
        assert server.count("GET") == TIMES
        assert server.count("POST") == 3  # with the two that have opened the session
        assert server.most <= 3


@KEPT
@on_trio(seconds=10 * TIMES, clock=clock)
async def test_the_stream_of_a_session_survives_hundreds_of_reconnects(kept: bool) -> None:
    """A refusal must end the attempts with one event, and calls must work meanwhile and
    afterwards."""
    trace = Events()
    async with (
        serving(breaking("GET", kept)) as server,
        connecting(server.port, trace=trace) as client,
    ):
        with nothing_piles_up():
            while not trace.unavailable:
                assert await client.request("tools/call", {"name": "x"}) == {"content": []}
                with trio.move_on_after(1):
                    await trace.came.wait()
        assert [one.status for one in trace.unavailable] == [400]
        # Refused with the id of the last event, it was tried once more without.
        assert server.count("GET") == TIMES + 2
        assert server.most <= 4
        assert await client.request("tools/call", {"name": "x"}) == {"content": []}
    assert server.count("GET") == TIMES + 2


@on_trio(seconds=60, clock=clock)
async def test_a_stream_that_breaks_for_ever_keeps_nobody_for_ever() -> None:
    """The timeout of a call must run on while its stream is resumed, and end the attempts."""
    async with (
        serving(breaking("POST", kept=True, times=10**9)) as server,
        connecting(server.port, get_stream=False) as client,
    ):
        with pytest.raises(RequestTimeout):
            await client.request("tools/call", {"name": "x"}, timeout=3)
        assert server.count("GET") > 20
        count = server.count("GET")
        while server.count("POST") < 4:  # the last one cancels the call
            await trio.lowlevel.checkpoint()
        assert server.count("GET") <= count + 1


@on_trio()
async def test_a_stream_that_cannot_be_taken_up_is_lost() -> None:
    """After `max_reconnects` failures in a row the caller must get an error with the last
    failure."""

    def reply(asked: Asked) -> bytes:
        if (answer := opening(asked)) is not None:
            return answer
        if asked.verb == "POST":
            return streamed(b"id: 1\nretry: 1\ndata: \n\n")
        return response(503)

    config = Config(max_reconnects=3)
    async with (
        serving(reply) as server,
        connecting(server.port, get_stream=False, config=config) as client,
    ):
        with pytest.raises(ConnectionLost, match="3 attempts"):
            await client.request("tools/call", {"name": "x"})
        assert server.count("GET") == 3


# --------------------------------------------------------------------------------- other origins


@pytest.mark.parametrize("form", ["http://127.0.0.1:%d/messages", "//127.0.0.1:%d/messages"])
@on_trio()
async def test_an_endpoint_of_another_origin_is_not_used(form: str) -> None:
    """The other server would get the token and all messages."""

    def reply(asked: Asked) -> bytes:
        if asked.verb == "POST":
            return response(405)
        return streamed(b"event: endpoint\ndata: " + (form % other.port).encode() + b"\n\n")

    async with serving(lambda asked: response(500)) as other, serving(reply) as server:
        with pytest.raises(RequestRefused, match="another origin") as caught:
            async with connecting(server.port, "/sse"):
                pass
    assert server.count("GET") == 1
    assert other.asked == []
    assert TOKEN.decode() not in str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@on_trio()
async def test_a_stream_is_not_opened_at_another_origin(status: int) -> None:
    """A redirected GET must not carry the token and the session id to another origin."""

    def reply(asked: Asked) -> bytes:
        if (answer := opening(asked)) is not None:
            return answer
        if asked.verb == "GET":
            place = b"location: http://127.0.0.1:%d/mcp\r\n" % other.port
            return response(status, place)
        return answered({"jsonrpc": "2.0", "id": asked.message["id"], "result": {"content": []}})

    trace = Events()
    async with (
        serving(lambda asked: response(500)) as other,
        serving(reply) as server,
        connecting(server.port, trace=trace) as client,
    ):
        await trace.came.wait()
        await client.request("tools/call", {"name": "x"})
    assert [one.status for one in trace.unavailable] == [status]
    assert server.count("GET") == 1
    assert other.asked == []
