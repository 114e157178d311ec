"""One connection on one trio stream: the tasks that move its bytes, tell it the time, and serve.

Calls into the core are synchronous and happen in trio's thread, so there is no lock. The clock has
a task of its own, because a write that blocks must stop neither reading nor timeouts.
"""

from __future__ import annotations

import inspect
import math
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, assert_never

import trio

from sansmcp import (
    ClientConnection,
    ConnectionClosed,
    ConnectionFailed,
    ErrorReceived,
    ErrorWithoutIdReceived,
    Event,
    IncomingRequest,
    JSONObject,
    JSONValue,
    LimitReached,
    ListingEnded,
    LocalProtocolError,
    MessageIgnored,
    NotificationReceived,
    PageReceived,
    PingEnded,
    ProgressReceived,
    ProtocolViolation,
    Ready,
    RequestAnswered,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    State,
)

from ._anomalies import LOGGER, AnomalyLog
from ._call import CallBase, ServerCallBase, answer, answer_failure
from ._errors import ConnectionLost
from ._outcomes import check_listing, result_of, start_error
from ._trace import Trace

FLUSH_SECONDS: Final = 1.0
"""How long the end of a connection waits for a peer that is slow to read the last output."""

_BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)

Item = TypeVar("Item")
ProgressHandler: TypeAlias = Callable[[float, float | None, str | None], object]
NotificationHandler: TypeAlias = Callable[[str, JSONObject], object]


class ByteStream(Protocol):
    """What the adapter asks of a stream; every `trio.abc.Stream` has it."""

    async def receive_some(self) -> bytes | bytearray:
        """The next bytes, as many as there are; `b""` is the end."""
        ...

    async def send_all(self, data: bytes) -> None:
        """Write all of it."""
        ...


class Bell:
    """Wakes whoever waits; given to the core as `wake`."""

    def __init__(self) -> None:
        self.next = trio.Event()

    def ring(self) -> None:
        """Wake everyone who waits for `next`."""
        self.next.set()
        self.next = trio.Event()


class Mailbox(Generic[Item]):
    """What the dispatching task leaves for one caller that waits."""

    def __init__(self, on_progress: ProgressHandler | None = None) -> None:
        self.on_progress = on_progress
        self._items: deque[Item] = deque()
        self._arrived = trio.Event()

    def put(self, item: Item) -> None:
        """Leave an item and wake the caller."""
        self._items.append(item)
        self._arrived.set()

    async def take(self) -> Item:
        """The oldest item, as soon as there is one."""
        await self._arrived.wait()
        item = self._items.popleft()
        if not self._items:
            self._arrived = trio.Event()
        return item


class Call(CallBase):
    """A request of the peer that a handler works on."""

    def __init__(self, session: Session, request: IncomingRequest) -> None:
        super().__init__(session.connection, request, session.context, trio.current_time)
        self._session = session

    async def request(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
        on_progress: ProgressHandler | None = None,
    ) -> JSONObject:
        """Ask the peer something on behalf of this call; as `Client.request`."""
        return await self._session.request(
            method, params, meta, timeout, max_timeout, on_progress, self._request
        )


class ServerCall(Call, ServerCallBase):
    """A client's request that a handler of a server works on."""


Result: TypeAlias = JSONObject | Awaitable[JSONObject]


class Session:
    """What clients and servers share. It runs once."""

    def __init__(
        self,
        connection: ClientConnection | ServerConnection,
        stream: ByteStream,
        bell: Bell,
        *,
        handle: Callable[[IncomingRequest], Result],
        on_notification: NotificationHandler | None,
        context: Any,
        request_timeout: float,
        drain: float,
        trace: Trace | None,
    ) -> None:
        self.connection: Final = connection
        self.context: Final = context
        self._handle = handle
        self._stream = stream
        self._bell = bell
        self._on_notification = on_notification
        self._request_timeout = request_timeout
        self._drain = drain
        self._trace = trace
        self._anomalies = AnomalyLog()
        self._closed = trio.Event()
        self._flushed = trio.Event()
        self._stopped = trio.Event()
        self._scope = trio.CancelScope()
        self._tasks: trio.Nursery

    # --------------------------------------------------------------------------- running

    async def run(self) -> None:
        """Move bytes, keep time and serve until the connection has ended and was flushed."""
        try:
            with self._scope:
                async with trio.open_nursery() as self._tasks:
                    self._tasks.start_soon(self._read)
                    self._tasks.start_soon(self._write)
                    self._tasks.start_soon(self._keep_time)
                    await self._closed.wait()
                    with trio.move_on_after(FLUSH_SECONDS):
                        await self._flushed.wait()
                    self._tasks.cancel_scope.cancel()
        finally:
            self._stopped.set()

    async def finish(self) -> None:
        """End the connection from this side, and return when its tasks have ended."""
        self.connection.close(now=trio.current_time())
        self._dispatch()
        await self._stopped.wait()

    def shield(self) -> None:
        """Let the tasks go on while those around them are cancelled; only `finish` ends them."""
        self._scope.shield = True

    async def _read(self) -> None:
        connection = self.connection
        while data := await self._receive():
            if self._trace is not None:
                self._trace.received(data)
            connection.receive_data(data, now=trio.current_time())
            self._dispatch()
        connection.receive_eof(drain=self._drain, now=trio.current_time())
        self._dispatch()

    async def _receive(self) -> bytes | bytearray:
        try:
            return await self._stream.receive_some()
        except _BROKEN as error:
            LOGGER.info("reading has failed: %s", error)
            return b""

    async def _write(self) -> None:
        connection = self.connection
        while True:
            rung = self._bell.next  # taken before looking: what comes meanwhile rings it
            if data := connection.data_to_send():
                await self._send(data)
            elif connection.state is State.CLOSED:
                self._flushed.set()
                return
            else:
                await rung.wait()

    async def _send(self, data: bytes) -> None:
        if self._trace is not None:
            self._trace.sent(data)
        try:
            await self._stream.send_all(data)
        except BaseException as error:
            # Part of a line may be out: nothing can follow it.
            self.connection.send_failed(now=trio.current_time())
            if not isinstance(error, _BROKEN):
                raise
            LOGGER.info("writing has failed: %s", error)

    async def _keep_time(self) -> None:
        connection = self.connection
        while True:
            rung = self._bell.next
            connection.handle_timeout(trio.current_time())
            self._dispatch()
            deadline = connection.next_timeout()
            with trio.move_on_at(math.inf if deadline is None else deadline):
                await rung.wait()

    # ----------------------------------------------------------------------- dispatching

    def _dispatch(self) -> None:
        while (event := self.connection.next_event()) is not None:
            if self._trace is not None:
                self._trace.happened(event)
            self._handle_event(event)

    def _handle_event(self, event: Event) -> None:
        match event:
            case RequestReceived():
                self._serve(event.request)
            case RequestCancelled():
                if isinstance(event.request.data, trio.CancelScope):
                    event.request.data.cancel()
            case NotificationReceived():
                self._notified(event)
            case ResponseReceived() | ErrorReceived() | RequestFailed():
                event.request.data.put(event)
            case ProgressReceived():
                self._progressed(event)
            case PageReceived() | ListingEnded():
                event.listing.data.put(event)
            case Ready():
                if event.start is not None:
                    event.start.data.put(event)
            case ConnectionFailed():
                event.start.data.put(event)
            case ConnectionClosed():
                self._closed.set()
            case RequestAnswered() | PingEnded():
                pass
            case ProtocolViolation() | MessageIgnored() | LimitReached() | ErrorWithoutIdReceived():
                self._anomalies.note(event, trio.current_time())
            case _:
                assert_never(event)

    def _serve(self, request: IncomingRequest) -> None:
        """Run a plain function here and now; give an async one its own task and cancel scope."""
        if not request.open:
            return  # its cancellation came in the same breath
        try:
            result = self._handle(request)
        except Exception as error:
            answer_failure(self.connection, request, error, trio.current_time())
            return
        if inspect.isawaitable(result):
            scope = request.data = trio.CancelScope()
            self._tasks.start_soon(self._serve_async, request, result, scope)
        else:
            answer(self.connection, request, result, trio.current_time())

    async def _serve_async(
        self, request: IncomingRequest, awaitable: Awaitable[JSONObject], scope: trio.CancelScope
    ) -> None:
        with scope:
            try:
                result = await awaitable
            except Exception as error:
                answer_failure(self.connection, request, error, trio.current_time())
            else:
                answer(self.connection, request, result, trio.current_time())

    def _notified(self, event: NotificationReceived) -> None:
        if self._on_notification is None:
            return
        with _logged("the handler of notifications"):
            outcome = self._on_notification(event.method, event.params)
            if inspect.isawaitable(outcome):
                self._tasks.start_soon(self._notify_async, outcome)

    async def _notify_async(self, awaitable: Awaitable[object]) -> None:
        with _logged("the handler of notifications"):
            await awaitable

    def _progressed(self, event: ProgressReceived) -> None:
        on_progress: ProgressHandler | None = event.request.data.on_progress
        if on_progress is not None:
            with _logged("the handler of progress"):
                on_progress(event.progress, event.total, event.message)

    # ---------------------------------------------------------------------------- asking

    async def start(self, timeout: float) -> None:
        """Open the conversation of a client, or raise why that cannot be done."""
        assert isinstance(self.connection, ClientConnection)
        mailbox = Mailbox[Ready | ConnectionFailed]()
        self.connection.start(timeout=_limit(timeout), data=mailbox, now=trio.current_time())
        event = await mailbox.take()
        if isinstance(event, ConnectionFailed):
            raise start_error(event)

    async def request(
        self,
        method: str,
        params: JSONObject | None,
        meta: JSONObject | None,
        timeout: float | None,
        max_timeout: float | None,
        on_progress: ProgressHandler | None,
        serving: IncomingRequest | None,
    ) -> JSONObject:
        """Ask, wait, and cancel the request if the wait is cancelled."""
        self._check_open(method)
        mailbox = Mailbox[ResponseReceived | ErrorReceived | RequestFailed](on_progress)
        call = self.connection.send_request(
            method,
            params,
            meta=meta,
            progress=on_progress is not None,
            timeout=_limit(self._request_timeout if timeout is None else timeout),
            max_timeout=None if max_timeout is None else _limit(max_timeout),
            request=serving,
            data=mailbox,
            now=trio.current_time(),
        )
        try:
            outcome = await mailbox.take()
        except BaseException:
            with suppress(LocalProtocolError):  # a request for a task is ended by tasks/cancel
                self.connection.cancel(call, now=trio.current_time())
            raise
        return result_of(outcome)

    async def items(
        self, method: str, params: JSONObject | None, timeout: float | None
    ) -> AsyncGenerator[JSONValue, None]:
        """Iterate over a listing; leaving the loop early cancels the rest of it."""
        self._check_open(method)
        mailbox = Mailbox[PageReceived | ListingEnded]()
        listing = self.connection.send_paginated(
            method,
            params,
            timeout=_limit(self._request_timeout if timeout is None else timeout),
            data=mailbox,
            now=trio.current_time(),
        )
        try:
            while isinstance(event := await mailbox.take(), PageReceived):
                for item in event.items:
                    yield item
            check_listing(event)
        finally:
            self.connection.cancel(listing)  # without the time: this may run after trio has ended

    def notify(self, method: str, params: JSONObject | None, meta: JSONObject | None) -> None:
        """Send a notification, some time soon."""
        self._check_open(method)
        self.connection.send_notification(method, params, meta=meta, now=trio.current_time())

    def _check_open(self, method: str) -> None:
        if self.connection.state is not State.OPEN:
            raise ConnectionLost(f"{method} was not sent: the connection has ended")


@contextmanager
def _logged(what: str) -> Generator[None, None, None]:
    """Keep what a callback raises from ending the connection."""
    try:
        yield
    except Exception as error:
        LOGGER.error("%s failed", what, exc_info=error)


def _limit(seconds: float) -> float | None:
    """The core's form of a timeout: `math.inf` means none."""
    return None if seconds == math.inf else seconds
