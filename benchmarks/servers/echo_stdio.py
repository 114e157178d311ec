"""A server with one tool, `echo`, whose argument `text` comes back as one text content.

`python -m benchmarks.servers.echo_stdio --adapter trio --codec json --handler plain`
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, Final

from sansmcp import Codec, Config, ErrorCode, JSONObject, MsgspecCodec, StandardCodec
from sansmcp_io import McpError

INFO: Final[JSONObject] = {"name": "echo", "version": "1.0"}
CAPABILITIES: Final[JSONObject] = {"tools": {}}
TOOLS: Final[JSONObject] = {
    "tools": [
        {
            "name": "echo",
            "inputSchema": {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
            },
        }
    ]
}
CODECS: Final[dict[str, Callable[[], Codec]]] = {"json": StandardCodec, "msgspec": MsgspecCodec}


def echo(call: Any) -> JSONObject:
    """Serve one request; `call` is the `ServerCall` of any adapter."""
    if call.method != "tools/call":
        return TOOLS  # tools/list is the only other method that was declared
    params = call.params
    if params["name"] != "echo":
        raise McpError(ErrorCode.INVALID_PARAMS, "the only tool is echo")
    return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}


async def echo_async(call: Any) -> JSONObject:
    """The same in a task of its own."""
    return echo(call)


HANDLERS: Final[dict[str, Callable[[Any], Any]]] = {"plain": echo, "async": echo_async}


def _serve_on_trio(handler: Callable[[Any], Any], config: Config) -> None:
    import functools

    import trio

    from sansmcp_io.trio import serve_stdio

    trio.run(
        functools.partial(serve_stdio, handler, info=INFO, capabilities=CAPABILITIES, config=config)
    )


def _serve_on_asyncio(handler: Callable[[Any], Any], config: Config) -> None:
    import asyncio

    from sansmcp_io.asyncio import serve_stdio

    asyncio.run(serve_stdio(handler, info=INFO, capabilities=CAPABILITIES, config=config))


# An adapter is imported only when it is asked for: it needs its own extra.
ADAPTERS: Final[dict[str, Callable[[Callable[[Any], Any], Config], None]]] = {
    "asyncio": _serve_on_asyncio,
    "trio": _serve_on_trio,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve standard input and output until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adapter", choices=ADAPTERS, default="trio")
    parser.add_argument("--codec", choices=CODECS, default="json")
    parser.add_argument("--handler", choices=HANDLERS, default="plain")
    options = parser.parse_args(arguments)
    ADAPTERS[options.adapter](HANDLERS[options.handler], Config(codec=CODECS[options.codec]()))


if __name__ == "__main__":
    main()
