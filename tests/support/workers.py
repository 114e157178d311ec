"""Worker processes of a cluster, and clients that call them in turn, request by request."""

import asyncio
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import wraps
from typing import Any, Final

import httpx2

from sansmcp import JSONObject
from sansmcp_io.asyncio import Client, connect_http
from tests.support.processes import ROOT

SECONDS: Final = 20
INFO: Final[JSONObject] = {"name": "client", "version": "1"}
MODULE: Final = "tests.support.programs.cluster_worker"


class Place:
    """Where workers serve."""

    def __init__(self, port: int) -> None:
        self.port: int = port

    @property
    def url(self) -> str:
        """The URL of the endpoint."""
        return f"http://127.0.0.1:{self.port}/mcp"


def free_place() -> Place:
    """A port that is free."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return Place(listener.getsockname()[1])


class Worker(Place):
    """A worker process."""

    def __init__(self, url: str, *options: str, how: str = "asgi") -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
            super().__init__(listener.getsockname()[1])
            command = [sys.executable, "-m", MODULE, how, str(listener.fileno()), url, *options]
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                pass_fds=[listener.fileno()],
                stderr=subprocess.PIPE,
                text=True,
            )

    def wait(self) -> None:
        """Wait until it serves."""
        until = time.monotonic() + SECONDS
        while True:
            try:
                httpx2.get(f"{self.url}/up", timeout=SECONDS, trust_env=False)
            except httpx2.TransportError:
                if time.monotonic() > until or self.process.poll() is not None:
                    raise
                time.sleep(0.02)  # nothing says when it listens
            else:
                return

    def kill(self) -> None:
        """Kill it at once."""
        self.process.kill()

    def pause(self) -> None:
        """Let it do nothing."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        os.kill(self.process.pid, signal.SIGCONT)

    def stop(self) -> None:
        """Tell it to end in order."""
        self.process.terminate()

    def ended(self) -> str:
        """Wait for its end, and return what it has written to standard error."""
        return self.process.communicate(timeout=SECONDS)[1]


@contextmanager
def running_workers(
    url: str, number: int, *options: str, how: str = "asgi"
) -> Generator[list[Worker], None, None]:
    """So many workers, as long as the block runs."""
    workers = [Worker(url, *options, how=how) for _ in range(number)]
    try:
        for worker in workers:
            worker.wait()
        yield workers
    finally:
        for worker in workers:
            if worker.process.poll() is None:
                worker.go_on()
                worker.kill()
            if worker.process.stderr is not None and not worker.process.stderr.closed:
                worker.process.communicate(timeout=SECONDS)


class InTurn(httpx2.AsyncHTTPTransport):
    """Sends each request to the next worker: a load balancer without stickiness."""

    def __init__(self, workers: list[Worker], start: int = 0) -> None:
        super().__init__()
        self.workers = workers
        self._turns = itertools.count(start)
        self.pinned: Worker | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request."""
        worker = self.pinned or self.workers[next(self._turns) % len(self.workers)]
        for _ in self.workers:
            request.url = request.url.copy_with(port=worker.port)
            with suppress(httpx2.ConnectError):  # as a load balancer does, it asks the next one
                return await super().handle_async_request(request)
            worker = self.workers[next(self._turns) % len(self.workers)]
        raise httpx2.ConnectError("no worker listens")


@asynccontextmanager
async def client_of(transport: InTurn, **options: Any) -> AsyncGenerator[Client, None]:
    """A client whose requests go to one worker after the other."""
    async with (
        httpx2.AsyncClient(transport=transport, timeout=None) as http,
        connect_http("http://127.0.0.1:1/mcp", info=INFO, http=http, **options) as client,
    ):
        yield client


async def tool(client: Client, name: str, **arguments: Any) -> str:
    """Call a tool, and return its text."""
    on_progress = arguments.pop("on_progress", None)
    result: Any = await client.request(
        "tools/call", {"name": name, "arguments": arguments}, on_progress=on_progress
    )
    found: str = result["content"][0]["text"]
    return found


def named(session: str | None = None, **more: str) -> dict[str, str]:
    """The headers of a request by hand, of 2025-11-25."""
    headers = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        **more,
    }
    if session is not None:
        headers |= {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
    return headers


async def initialized(http: httpx2.AsyncClient, worker: Place, **headers: str) -> str:
    """Open a session at a worker, by hand, and return its id."""
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
    """Run an async test, which ends in a minute at most."""

    @wraps(test)
    def run(**fixtures: Any) -> None:
        async def limited() -> None:
            async with asyncio.timeout(60):
                await test(**fixtures)

        asyncio.run(limited())

    return run
