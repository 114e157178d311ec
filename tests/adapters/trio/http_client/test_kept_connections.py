"""The connections that the trio client keeps for the next exchange, and those that it closes."""

import json

import pytest
import trio

from sansmcp import MODERN_REVISIONS
from sansmcp_io.trio import ConnectionLost, HTTPClientLimits, InvalidAnswer, RequestRefused
from tests.support.adapters.on_trio import on_trio
from tests.support.http.keep_alive_server import (
    OK,
    Request,
    answered,
    call,
    client_of,
    keeping,
    response,
)
from tests.support.modern import complete
from tests.support.wire import note, result


@on_trio()
async def test_what_comes_after_a_response_is_not_taken_for_the_next() -> None:
    """Bytes behind a response would be read as the response to the next request."""

    async def answer(stream: trio.SocketStream, request: Request) -> bytes | None:
        if request.name != "first":
            return None
        id = request.message["id"]
        return answered(request) + response(200, result(id + 1, {"content": [], "x": "junk"}))

    async with keeping(answer) as port, client_of(port) as client:
        assert await call(client, "first") == OK
        assert await call(client, "second") == OK


@on_trio()
async def test_a_request_that_was_answered_before_its_end_is_the_last_on_its_connection() -> None:
    """The server would read the next request as the rest of this body."""
    async with keeping() as port, client_of(port) as client:
        with pytest.raises(RequestRefused) as caught:
            await call(client, "x" * 30_000_000)
        assert caught.value.status == 413
        assert await call(client, "second", timeout=5.0) == OK


@on_trio()
async def test_subscriptions_take_no_place_of_requests() -> None:
    """Subscriptions last, so counting them would leave no connection for requests."""

    async def acknowledge(stream: trio.SocketStream, request: Request) -> bytes | None:
        id = request.message.get("id")
        if request.method == "tools/call":
            return response(200, complete(id, OK))
        if request.method != "subscriptions/listen":
            return None
        meta = {"io.modelcontextprotocol/subscriptionId": id}
        params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
        said = note("notifications/subscriptions/acknowledged", params)
        await stream.send_all(b"HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\n\r\n")
        await stream.send_all(b"data: %b\n\n" % json.dumps(said).encode())
        return b""

    limits = HTTPClientLimits(requests=1)
    async with (
        keeping(acknowledge) as port,
        client_of(port, revisions=MODERN_REVISIONS, limits=limits) as client,
        client.listen({"toolsListChanged": True}),
    ):
        assert (await call(client, "any", timeout=5.0))["content"] == []


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\nx y: t0ken" + b"y" * 10_000 + b"\r\n\r\n",
        b"t0ken" * 1000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: t0ken\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nt0ken\r\n",
    ],
)
@on_trio()
async def test_what_is_no_response_is_not_repeated(said: bytes) -> None:
    """Invalid output of a server may be long, and may echo secrets of the client."""

    async def answer(stream: trio.SocketStream, request: Request) -> bytes | None:
        return said if request.method == "tools/call" else None

    headers = [("Authorization", "Bearer t0ken")]
    async with keeping(answer) as port, client_of(port, headers=headers) as client:
        with pytest.raises((ConnectionLost, InvalidAnswer)) as caught:
            await call(client, "any")
    assert "t0ken" not in str(caught.value)
    assert len(str(caught.value)) < 200
