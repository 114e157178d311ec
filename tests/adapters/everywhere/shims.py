"""The clients of all adapters under the same names. See the docstring of the package."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final, Protocol

import httpx2
import trio

import sansmcp_io.asyncio
import sansmcp_io.blocking
import sansmcp_io.trio
from sansmcp import JSONObject, Peer
from tests.adapters.everywhere.server import Blocking, OnAsyncio, OnTrio, Waiting, step
from tests.support.forks import Forked, forked_command
from tests.support.processes import ROOT

INFO: Final = {"name": "tests", "version": "1.0"}
SERVER: Final = "tests.adapters.everywhere.server"
SECONDS: Final = 60
"""After this, a test has hung."""
Body = Callable[[], Coroutine[Any, Any, None]]
RequestHandler = Callable[[Waiting, Any], Awaitable[JSONObject]]


class Changes(Protocol):
    """The changes of a subscription."""

    @property
    def notifications(self) -> JSONObject: ...
    async def next(self) -> tuple[str, JSONObject] | None: ...


class Client(Protocol):
    """The methods of a client that the tests use."""

    @property
    def peer(self) -> Peer: ...
    async def request(self, method: str, params: Any = None, **options: Any) -> JSONObject: ...
    async def items(self, method: str) -> list[Any]: ...
    async def ping(self) -> float: ...
    async def call_and_cancel(self, method: str, params: JSONObject) -> None:
        """Call, and cancel the call at the first progress as callers of this adapter do."""
        ...

    async def until_told(self, told: list[Any]) -> None:
        """Wait for a notification without making a request."""
        ...

    def listen(self, notifications: JSONObject) -> AbstractAsyncContextManager[Changes]: ...


class Shim(Protocol):
    """One adapter."""

    name: str
    transport: str
    serving: str
    """The adapter of the server that it is tried with, over the same transport."""

    def run(self, body: Body) -> None:
        """Run a test."""
        ...

    def connect(
        self, command: list[str], *, on_request: RequestHandler | None = None, **options: Any
    ) -> AbstractAsyncContextManager[Client]:
        """Open a client on a process."""
        ...

    async def at_once(self, *bodies: Body) -> None:
        """Run several functions concurrently, and raise what one of them raises."""
        ...


def called(
    function: Callable[[], object], progress: float, total: float | None, message: str | None
) -> None:
    """A function with a handler of progress that calls it."""
    function()


def server(adapter: str, transport: str = "stdio") -> list[str]:
    return [sys.executable, "-m", SERVER, adapter, transport]


def forked(adapter: str, transport: str) -> list[str]:
    """The same server, forked by a process that has imported what it needs."""
    if transport == "http":  # see `listening`
        return server(adapter, transport)
    return forked_command(SERVER, adapter, transport)


@contextmanager
def listening(command: list[str]) -> Generator[str, None, None]:
    """The URL of a server: of a new process, or of a server that runs already."""
    if command[0].startswith("http://"):
        yield command[0]
        return
    our_out, their_out = os.pipe()
    streams = [os.open(os.devnull, os.O_RDONLY), their_out, os.dup(2)]
    _, _, module, *arguments = command
    process = Forked(module, arguments, streams, cwd=ROOT)
    with os.fdopen(our_out) as stdout:
        try:
            yield f"http://127.0.0.1:{int(stdout.readline())}/mcp"
        finally:
            process.kill()


# ------------------------------------------------------------------------------------------ trio


class TrioChanges:
    def __init__(self, changes: sansmcp_io.trio.Changes) -> None:
        self._changes = changes

    @property
    def notifications(self) -> JSONObject:
        return self._changes.notifications

    async def next(self) -> tuple[str, JSONObject] | None:
        return await anext(self._changes, None)


class TrioClient:
    def __init__(self, client: sansmcp_io.trio.Client) -> None:
        self._client = client

    @property
    def peer(self) -> Peer:
        return self._client.peer

    async def request(self, method: str, params: Any = None, **options: Any) -> JSONObject:
        return await self._client.request(method, params, **options)

    async def items(self, method: str) -> list[Any]:
        return [item async for item in self._client.items(method)]

    async def ping(self) -> float:
        return await self._client.ping()

    async def call_and_cancel(self, method: str, params: JSONObject) -> None:
        with trio.CancelScope() as scope:
            await self._client.request(method, params, on_progress=partial(called, scope.cancel))
        assert scope.cancelled_caught

    async def until_told(self, told: list[Any]) -> None:
        while not told:
            await trio.sleep(0.01)

    @asynccontextmanager
    async def listen(self, notifications: JSONObject) -> AsyncGenerator[TrioChanges, None]:
        async with self._client.listen(notifications) as changes:
            yield TrioChanges(changes)


class TrioShim:
    name = serving = "trio"
    transport = "stdio"

    def run(self, body: Body) -> None:
        async def bounded() -> None:
            with trio.fail_after(SECONDS):
                await body()

        trio.run(bounded)

    @asynccontextmanager
    async def connect(
        self, command: list[str], *, on_request: RequestHandler | None = None, **options: Any
    ) -> AsyncGenerator[TrioClient, None]:
        handler = None if on_request is None else partial(on_request, OnTrio())
        async with sansmcp_io.trio.connect_stdio(
            command, info=INFO, cwd=ROOT, on_request=handler, **options
        ) as client:
            yield TrioClient(client)

    async def at_once(self, *bodies: Body) -> None:
        async with trio.open_nursery() as nursery:
            for body in bodies:
                nursery.start_soon(body)


class TrioHTTPShim(TrioShim):
    transport = "http"

    @asynccontextmanager
    async def connect(
        self, command: list[str], *, on_request: RequestHandler | None = None, **options: Any
    ) -> AsyncGenerator[TrioClient, None]:
        handler = None if on_request is None else partial(on_request, OnTrio())
        with listening(command) as url:
            async with sansmcp_io.trio.connect_http(
                url, info=INFO, on_request=handler, **options
            ) as client:
                yield TrioClient(client)


class TrioHTTPXShim(TrioHTTPShim):
    """A client of httpx2 carries the exchanges."""

    @asynccontextmanager
    async def connect(self, command: list[str], **options: Any) -> AsyncGenerator[TrioClient, None]:
        async with (
            httpx2.AsyncClient() as http,
            super().connect(command, http=http, **options) as client,
        ):
            yield client


# --------------------------------------------------------------------------------------- asyncio


class AsyncioClient(TrioClient):
    """The same client class on asyncio, where waiting and giving up are written differently."""

    async def call_and_cancel(self, method: str, params: JSONObject) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            await self._client.request(method, params, on_progress=partial(called, task.cancel))
        except asyncio.CancelledError:
            assert task.uncancel() == 0
        else:
            raise AssertionError("nothing was cancelled")

    async def until_told(self, told: list[Any]) -> None:
        while not told:
            await asyncio.sleep(0.01)  # nothing else tells of it


class AsyncioShim:
    name = serving = "asyncio"
    transport = "stdio"

    def run(self, body: Body) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(SECONDS):
                await body()

        asyncio.run(bounded(), debug=True)

    @asynccontextmanager
    async def connect(
        self, command: list[str], *, on_request: RequestHandler | None = None, **options: Any
    ) -> AsyncGenerator[AsyncioClient, None]:
        handler = None if on_request is None else partial(on_request, OnAsyncio())
        async with sansmcp_io.asyncio.connect_stdio(
            command, info=INFO, cwd=ROOT, on_request=handler, **options
        ) as client:
            yield AsyncioClient(client)

    async def at_once(self, *bodies: Body) -> None:
        async with asyncio.TaskGroup() as group:
            for body in bodies:
                group.create_task(body())


class AsyncioHTTPShim(AsyncioShim):
    transport = "http"

    @asynccontextmanager
    async def connect(
        self, command: list[str], *, on_request: RequestHandler | None = None, **options: Any
    ) -> AsyncGenerator[AsyncioClient, None]:
        handler = None if on_request is None else partial(on_request, OnAsyncio())
        with listening(command) as url:
            async with sansmcp_io.asyncio.connect_http(
                url, info=INFO, on_request=handler, **options
            ) as client:
                yield AsyncioClient(client)


class AsyncioHTTPXShim(AsyncioHTTPShim):
    """A client of httpx2 carries the exchanges."""

    @asynccontextmanager
    async def connect(
        self, command: list[str], **options: Any
    ) -> AsyncGenerator[AsyncioClient, None]:
        async with (
            httpx2.AsyncClient() as http,
            super().connect(command, http=http, **options) as client,
        ):
            yield client


# -------------------------------------------------------------------------------------- blocking


class BlockingChanges:
    def __init__(self, changes: sansmcp_io.blocking.Changes) -> None:
        self._changes = changes

    @property
    def notifications(self) -> JSONObject:
        return self._changes.notifications

    async def next(self) -> tuple[str, JSONObject] | None:
        return next(self._changes, None)


class BlockingClient:
    def __init__(self, client: sansmcp_io.blocking.Client) -> None:
        self._client = client

    @property
    def peer(self) -> Peer:
        return self._client.peer

    async def request(self, method: str, params: Any = None, **options: Any) -> JSONObject:
        return self._client.request(method, params, **options)

    async def items(self, method: str) -> list[Any]:
        return list(self._client.items(method))

    async def ping(self) -> float:
        return self._client.ping()

    async def call_and_cancel(self, method: str, params: JSONObject) -> None:
        """Call, and cancel by Ctrl-C: the signal reaches this process at an arbitrary point."""
        try:
            self._client.request(
                method,
                params,
                on_progress=partial(called, partial(os.kill, os.getpid(), signal.SIGINT)),
            )
        except KeyboardInterrupt:
            return
        raise AssertionError("nothing was interrupted")

    async def until_told(self, told: list[Any]) -> None:
        while not told:
            assert self._client.poll(SECONDS)

    @asynccontextmanager
    async def listen(self, notifications: JSONObject) -> AsyncGenerator[BlockingChanges, None]:
        with self._client.listen(notifications) as changes:
            yield BlockingChanges(changes)


class BlockingShim:
    name = serving = "blocking"
    transport = "stdio"

    def run(self, body: Body) -> None:
        step(body())

    @asynccontextmanager
    async def connect(
        self, command: list[str], *, on_request: RequestHandler | None = None, **options: Any
    ) -> AsyncGenerator[BlockingClient, None]:
        handler = None if on_request is None else partial(answered, on_request)
        with sansmcp_io.blocking.connect_stdio(
            command, info=INFO, cwd=ROOT, on_request=handler, **options
        ) as client:
            yield BlockingClient(client)

    async def at_once(self, *bodies: Body) -> None:
        failures: list[BaseException] = []

        def run(body: Body) -> None:
            try:
                step(body())
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=(body,), daemon=True) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
            assert not thread.is_alive(), "a thread waits for ever"
        if failures:
            raise failures[0]


class BlockingHTTPShim(BlockingShim):
    transport = "http"
    serving = "trio"

    @asynccontextmanager
    async def connect(
        self, command: list[str], *, on_request: RequestHandler | None = None, **options: Any
    ) -> AsyncGenerator[BlockingClient, None]:
        handler = None if on_request is None else partial(answered, on_request)
        with (
            listening(command) as url,
            sansmcp_io.blocking.connect_http(
                url, info=INFO, on_request=handler, **options
            ) as client,
        ):
            yield BlockingClient(client)


class BlockingHTTPXShim(BlockingHTTPShim):
    """One httpx2 client that all threads share carries the exchanges."""

    @asynccontextmanager
    async def connect(
        self, command: list[str], **options: Any
    ) -> AsyncGenerator[BlockingClient, None]:
        # A call on a connection that httpx2 has kept could not be cancelled before its response.
        limits = httpx2.Limits(max_keepalive_connections=0)
        with httpx2.Client(limits=limits) as http:
            async with super().connect(command, http=http, **options) as client:
                yield client


def answered(on_request: RequestHandler, call: Any) -> JSONObject:
    """Run a handler that never suspends."""
    answer: JSONObject = step(coroutine(on_request(Blocking(), call)))
    return answer


async def coroutine(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


SHIMS: Final[dict[str, Shim]] = {
    "trio": TrioShim(),
    "asyncio": AsyncioShim(),
    "blocking": BlockingShim(),
    "trio over HTTP": TrioHTTPShim(),
    "asyncio over HTTP": AsyncioHTTPShim(),
    "blocking over HTTP": BlockingHTTPShim(),
    "trio over httpx2": TrioHTTPXShim(),
    "asyncio over httpx2": AsyncioHTTPXShim(),
    "blocking over httpx2": BlockingHTTPXShim(),
}
