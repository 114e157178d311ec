"""Two workers, each a process of uvicorn, that serve the same sessions by way of one Redis.

To run it: install redis-server, and pip install 'sansmcp[redis,httpx]' uvicorn
"""

import asyncio
import itertools
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from sansmcp import JSONObject
from sansmcp_io.asgi import App, ServerCall
from sansmcp_io.asyncio import Client, connect_http
from sansmcp_io.redis import Cluster

INFO: JSONObject = {"name": "demo", "version": "1.0"}


# -- app
async def handle(call: ServerCall) -> JSONObject:
    if call.method == "tools/list":
        return {"tools": [{"name": "whoami", "inputSchema": {"type": "object"}}]}
    return {"content": [{"type": "text", "text": f"process {os.getpid()}"}]}


app = App(
    handle,
    info=INFO,
    capabilities={"tools": {}},
    path="/mcp",
    cluster=Cluster(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0"), lease=2.0),
)


# -- balancer
class InTurn(httpx2.AsyncHTTPTransport):
    """Sends each request to the next worker: a load balancer without sticky sessions."""

    def __init__(self, ports: list[int]) -> None:
        super().__init__()
        self.turns = itertools.cycle(ports)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.url = request.url.copy_with(port=next(self.turns))
        return await super().handle_async_request(request)


# -- client
async def whoami(client: Client) -> str:
    result: Any = await client.request("tools/call", {"name": "whoami"})
    return str(result["content"][0]["text"])


async def ask(ports: list[int]) -> None:
    async with httpx2.AsyncClient(transport=InTurn(ports)) as http:
        url = "http://127.0.0.1/mcp"
        async with connect_http(url, info=INFO, http=http, revisions=["2025-11-25"]) as client:
            print("in a session:", len({await whoami(client) for _ in range(6)}), "process")
        async with connect_http(url, info=INFO, http=http) as client:
            print("without:", len({await whoami(client) for _ in range(6)}), "processes")


# -- run
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def wait_for(port: int) -> None:
    while True:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return


@contextmanager
def running(port: int, *command: str, **environment: str) -> Generator[int, None, None]:
    """Run a program until the end of the block; the block begins when it listens."""
    here = Path(__file__).parent
    with subprocess.Popen(command, cwd=here, env=os.environ | environment) as process:
        try:
            wait_for(port)
            yield port
        finally:
            process.terminate()


def redis_server(port: int) -> list[str]:
    return ["redis-server", "--port", str(port), "--save", "", "--logfile", "/dev/null"]


def uvicorn(port: int) -> list[str]:
    options = ["--port", str(port), "--log-level", "warning", "--timeout-graceful-shutdown", "2"]
    return [sys.executable, "-m", "uvicorn", "workers:app", *options]


def main() -> None:
    with ExitStack() as programs:
        store, *ports = (free_port() for _ in range(3))
        programs.enter_context(running(store, *redis_server(store)))
        url = f"redis://127.0.0.1:{store}/0"
        for port in ports:
            programs.enter_context(running(port, *uvicorn(port), REDIS_URL=url))
        asyncio.run(ask(ports))


if __name__ == "__main__":
    main()
