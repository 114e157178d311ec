"""A connection on a trio stream: moves bytes, and keeps time.

There are three tasks. One reads, handles what came (plain handlers run at once) and
writes what can be written without waiting. One writes the rest, and what other tasks have queued,
as much at once as there is. The clock has one of its own, because a write that blocks must stop
neither reading nor timeouts. Waking a task costs more than a small message, so each is woken only
for a reason.
"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Final, cast

import trio

from sansmcp import ClientConnection, IncomingRequest, ServerConnection, State

from .._async.stream_dispatcher import StreamDispatcher
from .._common.anomalies import LOGGER
from .._common.bounds import FLUSH_SECONDS, FLUSH_SECONDS_AT_EOF, UNSENT_BYTES, take_output
from .._common.trace import Trace
from .._options.checks import SessionOptions
from ._loop import Sleeper, TrioLoop, unwrapped
from ._streams import Buffer, ByteStream, NoWaitStream

BROKEN: Final = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)


class StreamSession(StreamDispatcher):
    """Moves bytes between a connection and a stream, and keeps time. Runs once."""

    def __init__(
        self,
        connection: ClientConnection | ServerConnection,
        stream: ByteStream,
        options: SessionOptions,
        *,
        drain: float,
        trace: Trace | None,
    ) -> None:
        super().__init__(connection, options, TrioLoop(), trace=trace)
        self._stream = stream
        self._no_wait: NoWaitStream | None = (
            cast(NoWaitStream, stream) if hasattr(stream, "send_now") else None
        )
        self._drain = drain
        self._tasks: trio.Nursery
        self._scope = trio.CancelScope()
        self.around: Final[list[trio.CancelScope]] = []  # cancelled if a task of the session fails
        self._exit: BaseException | None = None  # to be raised after all output was written
        self._closed = trio.Event()
        self._flushed = trio.Event()
        self._flush_seconds = FLUSH_SECONDS
        self._patience = trio.CancelScope()
        self._all_served = trio.Event()  # set when nothing waits for room any more
        self._stopped = trio.Event()
        self._writer = Sleeper()
        self._clock = Sleeper()
        self._alarm = math.inf  # when the clock wakes by itself
        self._is_writing = False  # the writer waits for the stream
        self._taken: deque[Buffer] = deque()  # out of the core, and not yet written

    async def run(self) -> None:
        """Move bytes, keep time and serve until the connection has ended and was flushed."""
        try:
            with self._scope:
                async with unwrapped(), trio.open_nursery() as self._tasks:
                    self._tasks.start_soon(self._read)
                    self._tasks.start_soon(self._write)
                    self._tasks.start_soon(self._keep_time)
                    await self._closed.wait()
                    await self._while_peer_reads(self._flushed)
                    if self._exit is not None:
                        raise self._exit
                    self._tasks.cancel_scope.cancel()
        except BaseException:
            # Before the requests end by it: a task that is cancelled raises no other exception.
            for scope in self.around:
                scope.cancel()
            raise
        finally:
            # After any end, no caller may wait for ever.
            self.connection.close(now=trio.current_time())
            self._dispatch_endings()
            self._room.look()
            try:
                if isinstance(self.connection, ServerConnection):
                    await self._write_the_rest()
            finally:
                self._stopped.set()

    async def finish(self) -> None:
        """End the connection from this side, and return when its tasks have ended."""
        self.connection.close(now=trio.current_time())
        self.wake()  # an exception of the application in that turn ends the tasks of the session
        await self._stopped.wait()

    def _end_program(self, request: IncomingRequest, failure: BaseException) -> None:
        if self._exit is None:
            self._exit = failure
        for scope in self.around:  # as in `run`, before the requests are lost
            scope.cancel()
        self.connection.close(now=trio.current_time())
        self.wake()

    def shield(self) -> None:
        """Shield the tasks from cancellation of the tasks around them. Only `finish` ends them."""
        self._scope.shield = True

    def wake(self) -> None:
        """Handle output, events and deadline soon, after a call into the core outside of a turn.

        This takes the place of the core's own `wake`, which would cost each message a little.
        """
        if self._is_writing:
            self._clock.wake()  # events and deadlines do not wait for the stream
        else:
            self._writer.wake()

    def _connection_closed(self) -> None:
        self._closed.set()
        self._writer.wake()

    # ---------------------------------------------------------------------------- turning

    def _turn(self) -> None:
        """Handle all events, write output as far as that needs no waiting, and wake the writer."""
        self._dispatch()
        connection = self.connection
        if connection.unsent_bytes:
            self._write_now()
        deadline = connection.next_timeout()
        if deadline is not None and deadline < self._alarm:
            self._alarm = deadline
            self._clock.wake()

    async def _keep_time(self) -> None:
        connection = self.connection
        while True:
            self._alarm = -math.inf  # a clock that is awake needs no wake-up
            connection.handle_timeout(trio.current_time())
            self._turn()
            deadline = connection.next_timeout()
            self._alarm = math.inf if deadline is None else deadline
            with trio.move_on_at(self._alarm):
                await self._clock.sleep()

    # ---------------------------------------------------------------------------- reading

    async def _read(self) -> None:
        connection = self.connection
        while data := await self._receive():
            if self._trace is not None:
                self._trace.received(data)
            connection.receive_data(data, at=time.time(), now=trio.current_time())
            self._turn()
        # It is ended below: the core would also count the time in which answers wait for room.
        connection.receive_eof(
            drain=math.inf if self._drain else 0.0, at=time.time(), now=trio.current_time()
        )
        self._turn()
        if self._drain:
            self._flush_seconds = FLUSH_SECONDS_AT_EOF
            await self._until_all_served()
            await trio.sleep(self._drain)  # the time for requests that were read
            await self._until_all_served()
            self._end_tasks()
            connection.close(now=trio.current_time())
            self._turn()

    async def _receive(self) -> bytes | bytearray:
        try:
            return await self._stream.receive_some()
        except BROKEN as error:
            LOGGER.info("reading has failed: %s", error)
            return b""

    # ---------------------------------------------------------------------------- writing

    @trio.lowlevel.enable_ki_protection  # Ctrl-C must not come between write and note
    def _write_now(self) -> None:
        """Write in the current task as far as that needs no waiting. The writer writes the rest."""
        stream = self._no_wait
        taken = self._taken
        if stream is None or self._is_writing or taken:
            self._writer.wake()
            return
        self._take_output()
        try:
            while taken:
                data = taken[0]
                sent = stream.send_now(data)
                if sent < len(data):
                    taken[0] = memoryview(data)[sent:]
                    self._writer.wake()
                    return
                taken.popleft()
        except OSError as error:
            self._writing_failed(error)

    @trio.lowlevel.enable_ki_protection
    def _take_output(self) -> None:
        self._taken.extend(take_output(self.connection, self._trace))

    async def _write(self) -> None:
        connection = self.connection
        while True:
            self._turn()
            is_holding_back = self._begin_held_back()
            if self._room.is_awaited:
                self._room.look()
            elif not is_holding_back:
                self._all_served.set()
            if self._taken:
                await self._write_waiting()
            elif connection.unsent_bytes:
                self._take_output()
            elif is_holding_back:
                self._extend_patience()
                await trio.lowlevel.checkpoint()
            elif connection.state is State.CLOSED:
                self._flushed.set()
                return
            else:
                await self._writer.sleep()

    @trio.lowlevel.enable_ki_protection
    async def _write_waiting(self) -> None:
        """Write the oldest buffer, or a part of it, however long that takes."""
        data = self._taken[0]
        self._is_writing = True
        try:
            if self._no_wait is None:
                await self._stream.send_all(cast(bytes, data))
                sent = len(data)
            else:
                sent = await self._no_wait.send_some(data)
        except BaseException as error:
            # Without `send_some`, it is not known how much was written before the cancellation.
            if self._no_wait is None or not isinstance(error, trio.Cancelled):
                self._writing_failed(error)
            if not isinstance(error, BROKEN):
                raise
            return
        finally:
            self._is_writing = False
        self._extend_patience()
        if sent < len(data):
            self._taken[0] = memoryview(data)[sent:]
        else:
            self._taken.popleft()

    async def _write_the_rest(self) -> None:
        """Write the output of `close`, after the writer has ended; also if `run` is cancelled."""
        with trio.move_on_after(FLUSH_SECONDS) as scope:
            scope.shield = True
            while self._taken or self.connection.unsent_bytes:
                if not self._taken:
                    self._take_output()
                await self._write_waiting()

    async def _until_room(self) -> None:
        """Wait until output may be added; if that takes time, the writer is awake meanwhile."""
        if self.connection.unsent_bytes > UNSENT_BYTES:
            self._write_now()
        if self._room.is_short:
            await self._room.wait()

    async def _until_all_served(self) -> None:
        """Wait until no request that was read waits for room, as long as the peer reads."""
        self._all_served = trio.Event()
        self._writer.wake()
        if self._begin_held_back() or self._room.is_awaited:
            await self._while_peer_reads(self._all_served)

    async def _while_peer_reads(self, event: trio.Event) -> None:
        """Wait for an event, as long as the peer goes on reading, however slowly."""
        with trio.CancelScope() as self._patience:
            self._extend_patience()
            await event.wait()

    def _extend_patience(self) -> None:
        """Move the deadline of `_while_peer_reads`, since the peer has read some output."""
        self._patience.deadline = trio.current_time() + self._flush_seconds

    def _writing_failed(self, error: BaseException) -> None:
        """End the output: a part of a line may have been written, and nothing can follow it."""
        self._taken.clear()
        self.connection.send_failed(now=trio.current_time())
        if isinstance(self.connection, ServerConnection):
            # A client may still get responses; a server that cannot write is of no use.
            self.connection.close(now=trio.current_time())
        if isinstance(error, BROKEN):
            LOGGER.info("writing has failed: %s", error)
        self._writer.wake()
