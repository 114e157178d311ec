"""The attacked server: the defaults of `serve_http`, except the number of connections.

`python -m benchmarks.servers.attacked --connections 1100`; the first line that it prints is its
port. SIGTERM ends it properly.
"""

from __future__ import annotations

import argparse
import signal
from functools import partial
from typing import Any

import trio

from sansmcp import JSONObject, ToolsListChanged
from sansmcp_io.trio import HTTPLimits, HTTPServer, ServerCall, serve_http

from .._descriptors import raise_limit
from .echo_stdio import INFO


async def handle(call: ServerCall) -> JSONObject:
    """`echo` a text, return one of a `size`, `flood` the client, or publish a change to all."""
    arguments: JSONObject = call.params.get("arguments") or {}
    text = ""
    match call.params.get("name"):
        case "echo":
            text = str(arguments["text"])
        case "size":
            text = "x" * int(arguments["size"])
        case "flood":
            while call.progress(len(text), message="x" * 1000):
                text += "x"
                await trio.lowlevel.checkpoint()
        case _:
            call.server.publish(ToolsListChanged())
    return {"content": [{"type": "text", "text": text}]}


async def serve(connections: int) -> None:
    """Serve until SIGTERM."""
    async with trio.open_nursery() as nursery:
        serve = partial(
            serve_http,
            handle,
            port=0,
            info=INFO,
            capabilities={"tools": {"listChanged": True}},
            limits=HTTPLimits(connections=connections),
        )
        started: Any = await nursery.start(serve)
        server: HTTPServer = started
        print(server.port, flush=True)
        with trio.open_signal_receiver(signal.SIGTERM) as signals:
            async for _ in signals:
                server.close()
                break


def main() -> None:
    """Serve with as many descriptors as the connections need."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, required=True)
    connections: int = parser.parse_args().connections
    raise_limit(connections + 100)
    trio.run(serve, connections)


if __name__ == "__main__":
    main()
