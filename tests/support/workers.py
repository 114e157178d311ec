"""Starts the worker processes of a cluster, and clients that call each worker in turn."""

import asyncio
import itertools
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import wraps
from typing import Any, Final

import httpx2

from sansmcp import JSONObject
from sansmcp_io.asyncio import Client, connect_http
from tests.support.processes import ROOT

SECONDS: Final = 60
INFO: Final[JSONObject] = {"name": "client", "version": "1"}
MODULE: Final = "tests.support.programs.cluster_worker"


class Place:
    """The address at which a worker serves."""

    def __init__(self, port: int) -> None:
        self.port: int = port

    @property
    def url(self) -> str:
        """The URL of the endpoint."""
        return f"http://127.0.0.1:{self.port}/mcp"


def free_place() -> Place:
    """An address with a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return Place(listener.getsockname()[1])


class Worker(Place):
    """A worker process."""

    def __init__(self, url: str, *options: str, how: str = "asgi") -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
            super().__init__(listener.getsockname()[1])
            command = [sys.executable, "-m", MODULE, how, str(listener.fileno()), url, *options]
            self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the worker
            self.process = subprocess.Popen(
                command, cwd=ROOT, pass_fds=[listener.fileno()], stderr=self._log
            )

    def wait(self) -> None:
        """Wait until the worker serves."""
        until = time.monotonic() + SECONDS
        while True:
            try:
                httpx2.get(f"{self.url}/up", timeout=SECONDS, trust_env=False)
            except httpx2.TransportError:
                if time.monotonic() > until or self.process.poll() is not None:
                    raise
                time.sleep(0.02)  # no message tells when it listens
            else:
                return

    def kill(self) -> None:
        """Kill the process."""
        self.process.kill()

    def pause(self) -> None:
        """Stop the process until `go_on`."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let a paused process run again."""
        os.kill(self.process.pid, signal.SIGCONT)

    def stop(self) -> None:
        """Ask the process to end in an orderly way."""
        self.process.terminate()

    def ended(self) -> str:
        """Wait for its end, and return what it has written to standard error."""
        self.process.wait(timeout=SECONDS)
        self._log.seek(0)
        return self._log.read().decode()

    def close(self) -> None:
        """Kill the process if it still runs, and close its log."""
        if self.process.poll() is None:
            self.go_on()
            self.kill()
        self.process.wait(timeout=SECONDS)
        self._log.close()


@contextmanager
def running_workers(
    url: str, number: int, *options: str, how: str = "asgi"
) -> Generator[list[Worker], None, None]:
    """Run this number of workers until the block is left."""
    workers = [Worker(url, *options, how=how) for _ in range(number)]
    try:
        for worker in workers:
            worker.wait()
        yield workers
    finally:
        for worker in workers:
            worker.close()


class InTurn(httpx2.AsyncHTTPTransport):
    """Sends each request to the next worker, as a load balancer without sticky sessions does."""

    def __init__(self, workers: list[Worker], start: int = 0) -> None:
        super().__init__()
        self.workers = workers
        self._turns = itertools.count(start)
        self.pinned: Worker | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request to the next worker that listens."""
        worker = self.pinned or self.workers[next(self._turns) % len(self.workers)]
        for _ in self.workers:
            request.url = request.url.copy_with(port=worker.port)
            with suppress(httpx2.ConnectError):  # like a load balancer, it tries the next one
                return await super().handle_async_request(request)
            worker = self.workers[next(self._turns) % len(self.workers)]
        raise httpx2.ConnectError("no worker listens")


@asynccontextmanager
async def client_of(transport: InTurn, **options: Any) -> AsyncGenerator[Client, None]:
    """A client that sends each request to the next worker."""
    async with (
        httpx2.AsyncClient(transport=transport, timeout=None) as http,
        connect_http("http://127.0.0.1:1/mcp", info=INFO, http=http, **options) as client,
    ):
        yield client


async def tool(client: Client, name: str, **arguments: Any) -> str:
    """Call a tool, and return the text of its result."""
    on_progress = arguments.pop("on_progress", None)
    result: Any = await client.request(
        "tools/call", {"name": name, "arguments": arguments}, on_progress=on_progress
    )
    found: str = result["content"][0]["text"]
    return found


def named(session: str | None = None, **more: str) -> dict[str, str]:
    """The headers of a request of 2025-11-25 that a test writes by hand."""
    headers = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        **more,
    }
    if session is not None:
        headers |= {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
    return headers


async def initialized(http: httpx2.AsyncClient, worker: Place, **headers: str) -> str:
    """Open a session at a worker with requests written by hand, and return its id."""
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO}
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening}
    response = await http.post(worker.url, json=message, headers=named(**headers))
    assert response.status_code == 200, response.text
    session = response.headers["mcp-session-id"]
    message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    response = await http.post(worker.url, json=message, headers=named(session, **headers))
    assert response.status_code == 202, response.text
    return str(session)


def bounded(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Make a synchronous test of an async one that fails after two minutes."""

    @wraps(test)
    def run(**fixtures: Any) -> None:
        async def limited() -> None:
            async with asyncio.timeout(120):
                await test(**fixtures)

        asyncio.run(limited())

    return run
