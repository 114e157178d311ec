"""A server with one tool, `echo`, at `/mcp`: JSON answers, both eras, sessions if asked for.

`python -m benchmarks.servers.echo_http --adapter trio --port 8000`
"""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, Config

from .echo_stdio import CAPABILITIES, CODECS, HANDLERS, INFO


def _serve_on_trio(serve: Callable[[Any], Any]) -> None:
    import trio

    from sansmcp_io.trio import serve_http

    trio.run(serve, serve_http)


def _serve_on_asyncio(serve: Callable[[Any], Any]) -> None:
    import asyncio

    from sansmcp_io.asyncio import serve_http

    asyncio.run(serve(serve_http))


# An adapter is imported only when it is asked for: it needs its own extra.
ADAPTERS: Final[dict[str, Callable[[Callable[[Any], Any]], None]]] = {
    "trio": _serve_on_trio,
    "asyncio": _serve_on_asyncio,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adapter", choices=ADAPTERS, default="trio")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--codec", choices=CODECS, default="json")
    parser.add_argument("--handler", choices=HANDLERS, default="plain")
    parser.add_argument("--sessions", action="store_true")
    parser.add_argument("--redis", help="URL of the Redis of a cluster")
    options = parser.parse_args(arguments)
    cluster = None
    if options.redis is not None:
        from sansmcp_io.redis import Cluster

        cluster = Cluster(options.redis)
    config = Config(codec=CODECS[options.codec]())

    async def serve(serve_http: Callable[..., Awaitable[None]]) -> None:
        await serve_http(
            HANDLERS[options.handler],
            port=options.port,
            info=INFO,
            capabilities=CAPABILITIES,
            revisions=(*LEGACY_REVISIONS, *MODERN_REVISIONS),
            sessions=options.sessions,
            cluster=cluster,
            config=config,
        )

    ADAPTERS[options.adapter](serve)


if __name__ == "__main__":
    main()
