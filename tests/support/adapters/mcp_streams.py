"""Lets the client of the official package use a byte stream, for which it has no transport."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
import trio
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage

from sansmcp_io.trio import HalfCloseableByteStream


@asynccontextmanager
async def over_stream(stream: HalfCloseableByteStream) -> AsyncGenerator[TransportStreams]:
    """A transport for `mcp.Client` that sends one message per line."""
    to_client, read = anyio.create_memory_object_stream[SessionMessage | Exception](100)
    write, from_client = anyio.create_memory_object_stream[SessionMessage](100)

    async def receive() -> None:
        rest = b""
        while data := await stream.receive_some():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                await to_client.send(SessionMessage(message))

    async def send() -> None:
        async for each in from_client:
            text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
            await stream.send_all(text.encode() + b"\n")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        nursery.start_soon(send)
        yield read, write
        nursery.cancel_scope.cancel()
