"""trio and asyncio under the same names, so that one test runs on each of them."""

import asyncio
import gc
import inspect
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from functools import wraps
from typing import Any, Final, ParamSpec, Protocol, TypeVar

import pytest
import sniffio
import trio
import uvloop

Params = ParamSpec("Params")
Returned = TypeVar("Returned")


def _new_eager_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_task_factory(vars(asyncio)["eager_task_factory"])
    return loop


ASYNCIO: Final[dict[str, Callable[[], asyncio.AbstractEventLoop]]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
    # From Python 3.12 on, a task can take its first step before it is awaited.
    **({"eager": _new_eager_loop} if hasattr(asyncio, "eager_task_factory") else {}),
}
"""For each event loop on which tests of asyncio run, the function that makes it."""
LOOPS: Final = ("trio", *ASYNCIO)
STANDARD_LOOPS: Final = ("trio", "asyncio")
"""The loops for tests that take long and depend little on the loop."""
BROKEN: Final = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)
"""The exceptions that a stream raises when its peer is gone."""


def on_each_loop(
    seconds: float = 120, *, loops: Iterable[str] = LOOPS
) -> Callable[[Callable[Params, Awaitable[None]]], Callable[..., None]]:
    """Make a synchronous test of an async one, run on each loop.

    Args:
        seconds: The time after which the test fails.
        loops: The names of the loops.
    """

    def decorate(test: Callable[Params, Awaitable[None]]) -> Callable[..., None]:
        @pytest.mark.parametrize("loop", loops)
        @wraps(test)
        def run(*args: Any, loop: str, **kwargs: Any) -> None:
            if loop == "trio":
                trio.run(_bounded, test, args, kwargs, seconds)
            else:
                with asyncio.Runner(debug=True, loop_factory=ASYNCIO[loop]) as runner:
                    runner.run(_watched(test, args, kwargs, seconds))
                gc.collect()  # coroutines that were never awaited cause their warning now

        signature = inspect.signature(test)
        extra = inspect.Parameter("loop", inspect.Parameter.KEYWORD_ONLY)
        parameters = [*signature.parameters.values(), extra]
        vars(run)["__signature__"] = signature.replace(parameters=parameters)
        test_on_each: Callable[..., None] = run
        return test_on_each

    return decorate


async def _bounded(test: Any, args: Any, kwargs: Any, seconds: float) -> None:
    with trio.fail_after(seconds):
        await test(*args, **kwargs)


async def _watched(test: Any, args: Any, kwargs: Any, seconds: float) -> None:
    """Run a test on asyncio, and check that it leaves no tasks, transports or complaints."""
    loop = asyncio.get_running_loop()
    loop.slow_callback_duration = seconds  # a slow machine is no fault
    complaints: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda loop, context: complaints.append(context))
    async with asyncio.timeout(seconds):
        await test(*args, **kwargs)
        for _ in range(5):
            await asyncio.sleep(0)  # transports are closed in a later step of the loop
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert complaints == [], complaints


def is_trio() -> bool:
    return sniffio.current_async_library() == "trio"


# ----------------------------------------------------------------------------- time and tasks


class Event(Protocol):
    def set(self) -> object: ...
    def is_set(self) -> bool: ...
    async def wait(self) -> object: ...


def new_event() -> Event:
    return trio.Event() if is_trio() else asyncio.Event()


async def sleep(seconds: float) -> None:
    await (trio.sleep(seconds) if is_trio() else asyncio.sleep(seconds))


async def sleep_forever() -> None:
    await new_event().wait()


async def checkpoint() -> None:
    """Let other tasks run."""
    await (trio.lowlevel.checkpoint() if is_trio() else asyncio.sleep(0))


@asynccontextmanager
async def move_on_after(seconds: float) -> AsyncGenerator[None, None]:
    """Leave the block after this number of seconds."""
    if is_trio():
        with trio.move_on_after(seconds):
            yield
    else:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                yield


def shielded() -> AbstractContextManager[object]:
    """A block that continues when the nursery around it is cancelled."""
    return trio.CancelScope(shield=True) if is_trio() else nullcontext()


async def in_thread(function: Callable[[], Returned]) -> Returned:
    if is_trio():
        return await trio.to_thread.run_sync(function)
    return await asyncio.to_thread(function)


# ------------------------------------------------------------------------------------------ tasks


class Nursery(Protocol):
    """A group of tasks, which the block waits for."""

    def start_soon(self, function: Callable[..., Any], *args: Any) -> None: ...
    async def start(self, function: Callable[..., Any]) -> Any:
        """Start a function that has an argument `started`, and wait until it calls `started`."""
        ...

    def cancel(self) -> None: ...


class _TrioNursery:
    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery

    def start_soon(self, function: Callable[..., Any], *args: Any) -> None:
        self._nursery.start_soon(function, *args)

    async def start(self, function: Callable[..., Any]) -> Any:
        async def begin(*, task_status: trio.TaskStatus[Any]) -> None:
            await function(started=task_status.started)

        return await self._nursery.start(begin)

    def cancel(self) -> None:
        self._nursery.cancel_scope.cancel()


class _TaskGroup:
    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._tasks: list[asyncio.Task[Any]] = []

    def start_soon(self, function: Callable[..., Any], *args: Any) -> None:
        self._tasks.append(self._group.create_task(function(*args)))

    async def start(self, function: Callable[..., Any]) -> Any:
        begun = asyncio.get_running_loop().create_future()

        def started(value: Any = None) -> None:
            begun.set_result(value)

        self._tasks.append(self._group.create_task(function(started=started)))
        return await begun

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()


@asynccontextmanager
async def open_nursery() -> AsyncGenerator[Nursery, None]:
    if is_trio():
        async with trio.open_nursery() as nursery:
            yield _TrioNursery(nursery)
    else:
        async with asyncio.TaskGroup() as group:
            yield _TaskGroup(group)


# ---------------------------------------------------------------------------------------- streams


class Stream(Protocol):
    """A byte stream to a peer."""

    async def send_all(self, data: bytes) -> None: ...
    async def receive_some(self, max_bytes: int = 65_536) -> bytes:
        """Read some bytes; `b""` means the end of the stream."""
        ...

    async def aclose(self) -> None: ...


class _AsyncioStream:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def send_all(self, data: bytes) -> None:
        if self.writer.is_closing():
            raise ConnectionResetError  # uvloop raises RuntimeError, others log a warning
        self.writer.write(data)
        await self.writer.drain()

    async def receive_some(self, max_bytes: int = 65_536) -> bytes:
        return await self._reader.read(max_bytes)

    async def aclose(self) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()


@asynccontextmanager
async def open_stream(port: int, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Stream, None]:
    """Open a connection to a server on this machine."""
    host = None if tls is None else "localhost"
    stream: Any
    if is_trio():
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        if tls is not None:
            stream = trio.SSLStream(stream, tls, server_hostname=host, https_compatible=True)
        async with stream:
            yield stream
    else:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=tls, server_hostname=host
        )
        stream = _AsyncioStream(reader, writer)
        try:
            yield stream
        finally:
            await stream.aclose()


def address_of(stream: Any) -> str:
    """The address and the port of this end."""
    if isinstance(stream, _AsyncioStream):
        host, port = stream.writer.get_extra_info("sockname")
    else:
        host, port = stream.socket.getsockname()
    return f"{host}:{port}"


@asynccontextmanager
async def listening(serve: Callable[[Stream], Awaitable[None]]) -> AsyncGenerator[int, None]:
    """Serve each connection with `serve` until the block is left, and give the port."""
    if is_trio():

        async def accept_on_trio(stream: Any) -> None:
            await serve(stream)

        async with trio.open_nursery() as nursery:
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            nursery.start_soon(trio.serve_listeners, accept_on_trio, listeners)
            yield listeners[0].socket.getsockname()[1]
            nursery.cancel_scope.cancel()
        return
    serving: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            await serve(_AsyncioStream(reader, writer))
        except asyncio.CancelledError:
            pass  # the block has been left
        finally:
            serving.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        while serving:
            for task in serving:
                task.cancel()
            await asyncio.wait(list(serving))
