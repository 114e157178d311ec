"""`connect` and `serve` on asyncio with streams that the application has opened."""

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeAlias

import pytest

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, JSONObject
from sansmcp_io.asyncio import (
    ConnectionLost,
    Handler,
    RequestTimeout,
    Server,
    ServerCall,
    connect,
    serve,
)
from tests.support.adapters.on_asyncio import on_asyncio
from tests.support.http.certificates import certificate
from tests.support.modern import listen, modern

__all__ = ["certificate"]  # a fixture

INFO: JSONObject = {"name": "test", "version": "1.0"}
LEGACY = LEGACY_REVISIONS[-1]
TOOLS: JSONObject = {"tools": {}}
CHANGING: JSONObject = {"tools": {"listChanged": True}}
CALL: JSONObject = {"name": "large"}
Stream: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def pair() -> AsyncGenerator[tuple[Stream, Stream], None]:
    """Both ends of a connection."""
    ours, theirs = socket.socketpair()
    streams = (
        await asyncio.open_unix_connection(sock=ours),
        await asyncio.open_unix_connection(sock=theirs),
    )
    try:
        yield streams
    finally:
        for _, writer in streams:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()


def echo(call: ServerCall) -> JSONObject:
    text: str = call.params["arguments"]["text"]
    return {"content": [{"type": "text", "text": text}]}


async def hang(call: ServerCall) -> JSONObject:
    call.progress(1)
    await asyncio.Event().wait()
    return {}


def serving(
    stream: Stream, handler: Handler = echo, capabilities: JSONObject = TOOLS, **options: Any
) -> asyncio.Task[None]:
    return asyncio.create_task(
        serve(*stream, handler, info=INFO, capabilities=capabilities, **options)
    )


def large(call: ServerCall) -> JSONObject:
    return {"content": [{"type": "text", "text": "x" * 5_000_000}]}


def asked(text: str = "") -> tuple[str, JSONObject]:
    return "tools/call", {"name": "echo", "arguments": {"text": text}}


@on_asyncio
async def test_both_sides_talk_and_leave_the_stream_to_its_owner() -> None:
    """The owner of a stream may use it after the conversation, and closes it."""
    ready: list[Server] = []
    async with pair() as (ours, theirs):
        limits = [writer.transport.get_write_buffer_limits() for _, writer in (ours, theirs)]
        task = serving(theirs, on_ready=ready.append)
        async with connect(*ours, info=INFO) as client:
            result = await client.request(*asked("hi"))
            assert result["content"] == [{"type": "text", "text": "hi"}]
        await task  # it has seen the end
        assert len(ready) == 1
        assert not ours[1].is_closing()
        assert not theirs[1].is_closing()
        again = [writer.transport.get_write_buffer_limits() for _, writer in (ours, theirs)]
        assert again == limits
        theirs[1].write(b"and one thing more")
        theirs[1].write_eof()
        assert await ours[0].read() == b"and one thing more"


@on_asyncio
async def test_large_messages_pass_in_pieces() -> None:
    """Unsent output must stay in the core, where it is bounded, and not in the buffer of the
    stream.
    """
    text = "x" * 10 * 1024 * 1024
    async with pair() as (ours, theirs):
        task = serving(theirs)
        most = 0

        async def watch() -> None:
            nonlocal most
            while True:
                sizes = [each[1].transport.get_write_buffer_size() for each in (ours, theirs)]
                most = max(most, *sizes)
                await asyncio.sleep(0)

        watching = asyncio.create_task(watch())
        async with connect(*ours, info=INFO) as client:
            result = await client.request(*asked(text))
            assert result["content"][0]["text"] == text
        await task
        watching.cancel()
        await asyncio.wait([watching])
    assert 0 < most <= 262_144


@on_asyncio
async def test_tls_has_no_half_of_a_stream(certificate: str) -> None:
    """TLS cannot close one direction alone, so the stream is left to its owner to close."""
    inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inside.load_cert_chain(certificate)
    outside = ssl.create_default_context(cafile=certificate)
    ended = asyncio.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve(reader, writer, echo, info=INFO, capabilities={"tools": {}})
        writer.close()
        ended.set()

    async with await asyncio.start_server(accept, "127.0.0.1", 0, ssl=inside) as server:
        port = server.sockets[0].getsockname()[1]
        stream = await asyncio.open_connection("localhost", port, ssl=outside)
        async with connect(*stream, info=INFO) as client:
            text = "x" * 1_000_000
            assert (await client.request(*asked(text)))["content"][0]["text"] == text
        stream[1].close()
        await stream[1].wait_closed()
        await ended.wait()


@on_asyncio
async def test_server_that_goes_leaves_no_caller_waiting() -> None:
    """Waiting calls must fail at once when the server goes, and so must later calls."""
    async with pair() as (ours, theirs):
        task = serving(theirs, hang, drain=0.01)

        def leave(progress: float, total: float | None, message: str | None) -> None:
            theirs[1].transport.abort()

        async with connect(*ours, info=INFO) as client:
            for _ in range(2):
                with pytest.raises(ConnectionLost):
                    await client.request(*asked(), on_progress=leave)
        await task


@on_asyncio
async def test_cancelled_server_ends_subscriptions_with_a_result() -> None:
    """Case c280: it wrote nothing any more, so the result stayed in its queue."""
    async with pair() as (ours, theirs):
        task = serving(theirs, capabilities=CHANGING)
        async with (
            connect(*ours, info=INFO, revisions=MODERN_REVISIONS) as client,
            client.listen({"toolsListChanged": True}) as changes,
        ):
            task.cancel()
            assert await anext(changes, None) is None
            with pytest.raises(asyncio.CancelledError):
                await task


@on_asyncio
async def test_cancelled_server_does_not_wait_for_a_peer_that_does_not_read() -> None:
    """Neighbour of case c280: writing the result is bounded in time."""
    ours, theirs = socket.socketpair()
    with ours:
        reader, writer = await asyncio.open_unix_connection(sock=theirs)
        task = serving((reader, writer), large, capabilities=CHANGING)
        for message in (listen(1, {"toolsListChanged": True}), modern(2, "tools/call", CALL)):
            ours.sendall(json.dumps(message).encode() + b"\n")
        while not writer.transport.get_write_buffer_size():
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


@on_asyncio
async def test_reader_that_has_failed_ends_the_connection() -> None:
    """The error of the reader must be the cause that callers see."""
    async with pair() as (ours, theirs):
        task = serving(theirs, hang, drain=0.01)

        def fail(progress: float, total: float | None, message: str | None) -> None:
            ours[0].set_exception(ZeroDivisionError())

        async with connect(*ours, info=INFO) as client:
            with pytest.raises(ConnectionLost):
                await client.request(*asked(), on_progress=fail)
        await task


@on_asyncio
async def test_peer_that_does_not_read_is_not_waited_for() -> None:
    """The end must not wait for a peer that does not read, nor for one that disconnects in the
    middle of a message.
    """
    for goes in (False, True):
        async with pair() as (ours, (reader, writer)):

            async def answer(
                reader: asyncio.StreamReader = reader, writer: asyncio.StreamWriter = writer
            ) -> None:
                request = json.loads(await reader.readline())
                capabilities: JSONObject = {"tools": {}}
                result: JSONObject = {
                    "protocolVersion": LEGACY,
                    "capabilities": capabilities,
                    "serverInfo": INFO,
                }
                message: JSONObject = {"jsonrpc": "2.0", "id": request["id"], "result": result}
                writer.write(json.dumps(message).encode() + b"\n")

            peer = asyncio.create_task(answer())
            async with connect(*ours, info=INFO, revisions=[LEGACY]) as client:
                await peer
                seconds = 30 if goes else 0.2
                asking = asyncio.create_task(
                    client.request(*asked("x" * 5_000_000), timeout=seconds)
                )
                while not ours[1].transport.get_write_buffer_size():
                    await asyncio.sleep(0)
                if goes:
                    writer.transport.abort()
                with pytest.raises(ConnectionLost if goes else RequestTimeout):
                    await asking


@on_asyncio
async def test_cancelled_server_cancels_its_handlers() -> None:
    """A cancelled server must leave no task behind."""
    ended: list[str] = []

    async def stay(call: ServerCall) -> JSONObject:
        try:
            return await hang(call)
        finally:
            ended.append(call.method)

    async with pair() as (ours, theirs):
        task = serving(theirs, stay)

        def stop(progress: float, total: float | None, message: str | None) -> None:
            task.cancel()

        async with connect(*ours, info=INFO) as client:
            asking = asyncio.create_task(client.request(*asked(), on_progress=stop))
            await asyncio.wait([task])
            assert task.cancelled()
            assert ended == ["tools/call"]
            asking.cancel()
            await asyncio.wait([asking])


@on_asyncio
async def test_handlers_have_a_context_of_their_own() -> None:
    """A context variable that one handler sets must not be visible to the next, async or not."""
    caller: ContextVar[str] = ContextVar("caller", default="nobody")

    def plain(call: ServerCall) -> JSONObject:
        before = caller.get()
        caller.set("plain")
        return {"content": [{"type": "text", "text": before}]}

    async def later(call: ServerCall) -> JSONObject:
        before = caller.get()
        caller.set("async")
        await asyncio.sleep(0)
        return {"content": [{"type": "text", "text": f"{before} {caller.get()}"}]}

    def both(call: ServerCall) -> JSONObject | Awaitable[JSONObject]:
        if call.params["arguments"]["text"] == "plain":
            return plain(call)
        caller.set("of its own")
        return later(call)

    seen: list[str] = []
    async with pair() as (ours, theirs):
        task = serving(theirs, both)
        async with connect(*ours, info=INFO) as client:
            for text in ("plain", "async", "plain"):
                caller.set("of the client")
                result = await client.request(*asked(text))
                seen.append(result["content"][0]["text"])
        await task
    assert seen == ["nobody", "of its own async", "nobody"]
