"""The Twisted client of the examples, which cancels its only request after half a second.

Usage: python -m tests.support.programs.twisted_cancelling_client DIRECTORY URL

DIRECTORY is the one with the example.
"""

import sys
from importlib import import_module
from typing import Any

from twisted.internet import task, threads
from twisted.internet.defer import ensureDeferred


async def talk(reactor: Any, url: str) -> None:
    client: Any = import_module("twisted_client").MCPClient(reactor, url)
    print(await client.start(), flush=True)
    ended = client.request("tools/list")
    task.deferLater(reactor, 0.5, client.mcp.cancel, client.mcp.pending_requests[0])
    try:
        await ended
    except ConnectionError as error:
        print(type(error).__name__, flush=True)
    await threads.deferToThread(sys.stdin.read)  # wait until the test has seen the effect
    client.mcp.close()


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    task.react(lambda *arguments: ensureDeferred(talk(*arguments)), sys.argv[2:])
