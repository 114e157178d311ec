"""A client over HTTP that makes small calls one after the other, and prints seconds for each.

`python -m benchmarks.clients.http_calls --client trio --revision 2026-07-28 --requests 1000 URL`
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from sansmcp import LEGACY_REVISIONS

from .. import _traffic

_INFO: Final = {"name": "benchmark", "version": "1.0"}
_WARMING: Final = 50
Ask = Callable[[], Coroutine[Any, Any, str]]


async def _measured(ask: Ask, requests: int) -> float:
    """Processor time of this process for each request, after a warm-up."""
    for _ in range(max(_WARMING, requests // 10)):
        assert await ask() == _traffic.PARAMS["arguments"]["text"]
    before = time.process_time()
    for _ in range(requests):
        await ask()
    return (time.process_time() - before) / requests


async def _ours(connect_http: Any, url: str, revision: str, requests: int) -> float:
    async with connect_http(url, info=_INFO, revisions=[revision]) as client:

        async def ask() -> str:
            result: Any = await client.request(_traffic.METHOD, _traffic.PARAMS)
            text: str = result["content"][0]["text"]
            return text

        return await _measured(ask, requests)


def _on_trio(url: str, revision: str, requests: int) -> float:
    import trio

    from sansmcp_io.trio import connect_http

    return trio.run(_ours, connect_http, url, revision, requests)


def _on_asyncio(url: str, revision: str, requests: int) -> float:
    import asyncio

    from sansmcp_io.asyncio import connect_http

    return asyncio.run(_ours(connect_http, url, revision, requests))


def _on_trio_by_httpx(url: str, revision: str, requests: int) -> float:
    import trio

    from sansmcp_io.trio import connect_http

    return trio.run(_by_httpx, connect_http, url, revision, requests)


def _on_asyncio_by_httpx(url: str, revision: str, requests: int) -> float:
    import asyncio

    from sansmcp_io.asyncio import connect_http

    return asyncio.run(_by_httpx(connect_http, url, revision, requests))


async def _by_httpx(connect_http: Any, url: str, revision: str, requests: int) -> float:
    import httpx2

    async with httpx2.AsyncClient() as http:
        connect = partial(connect_http, http=http)
        return await _ours(connect, url, revision, requests)


def _on_threads(url: str, revision: str, requests: int) -> float:
    from sansmcp_io.blocking import connect_http

    with connect_http(url, info=_INFO, revisions=[revision]) as client:

        async def ask() -> str:
            result: Any = client.request(_traffic.METHOD, _traffic.PARAMS)
            text: str = result["content"][0]["text"]
            return text

        measuring = _measured(ask, requests)  # which waits for nothing else
        try:
            measuring.send(None)
        except StopIteration as end:
            return float(end.value)
        raise AssertionError


def _mcp(url: str, revision: str, requests: int) -> float:
    import anyio
    from mcp.client.client import Client

    async def main() -> float:
        mode = "legacy" if revision in LEGACY_REVISIONS else revision
        async with Client(url, mode=mode) as client:

            async def ask() -> str:
                result: Any = await client.call_tool("echo", _traffic.PARAMS["arguments"])
                text: str = result.content[0].text
                return text

            return await _measured(ask, requests)

    return anyio.run(main)


# A client is imported only when it is asked for.
CLIENTS: Final[dict[str, Callable[[str, str, int], float]]] = {
    "trio": _on_trio,
    "asyncio": _on_asyncio,
    "trio, httpx2": _on_trio_by_httpx,
    "asyncio, httpx2": _on_asyncio_by_httpx,
    "threads, httpx2": _on_threads,
    "mcp": _mcp,
}


def main() -> None:
    """Make the calls that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", choices=CLIENTS, default="trio")
    parser.add_argument("--revision", required=True)
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("url")
    options = parser.parse_args()
    print(CLIENTS[options.client](options.url, options.revision, options.requests))


if __name__ == "__main__":
    main()
