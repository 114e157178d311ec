"""A connection on an input and an output of asyncio: moves bytes, and keeps time.

It needs no tasks: the loop calls it when there is something to read or room to write, and when a
deadline has come. Plain handlers run at once, and their answers are written together, as far as
that needs no waiting. A method that is called from outside calls `wake`; all that was queued in one
turn of the loop is then handled together.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import time
from collections import deque
from typing import Any, Final

from sansmcp import ClientConnection, IncomingRequest, ServerConnection, State

from .._async.stream_dispatcher import StreamDispatcher
from .._common.anomalies import LOGGER
from .._common.bounds import FLUSH_SECONDS, FLUSH_SECONDS_AT_EOF, UNSENT_BYTES, take_output
from .._common.descriptors import Data
from .._common.trace import Trace
from .._options.checks import SessionOptions
from ._ends import Reads, Writes
from ._loop import AsyncioLoop
from ._tasks import Tasks


class StreamSession(StreamDispatcher):
    """Moves bytes between a connection and its input and output, and keeps time. Runs once.

    Attributes:
        around: Cancelled if a trace or a log handler of the application fails.
    """

    def __init__(
        self,
        connection: ClientConnection | ServerConnection,
        input: Reads,
        output: Writes,
        options: SessionOptions,
        *,
        drain: float,
        trace: Trace | None,
    ) -> None:
        super().__init__(connection, options, AsyncioLoop(), trace=trace)
        self._loop: Final = asyncio.get_running_loop()
        self._input: Final[Reads] = input
        self._output: Final[Writes] = output
        self._drain: Final = drain
        self._tasks = Tasks(self._fail)
        # Handlers do not get the context of the task that calls `wake`.
        self._context: Final = contextvars.copy_context()
        self.around: Final[list[Any]] = []
        self._failure: BaseException | None = None
        self._exit: BaseException | None = None  # to be raised after all output was written
        self._over = asyncio.Event()  # closed, or failed
        self._flushed = asyncio.Event()
        self._all_served = asyncio.Event()  # set when nothing waits for room any more
        self._flush_seconds = FLUSH_SECONDS
        self._patient_until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._alarm = math.inf  # the time of the timer
        self._taken: deque[Data] = deque()  # out of the core, and not yet written
        self._waits_for_output = False
        self._is_turning = False
        self._is_woken = False  # a turn will come
        self._has_stopped = False
        self._writes_the_rest = False

    async def run(self) -> None:
        """Move bytes, keep time and serve until the connection has ended and was flushed."""
        try:
            self._input.start(self._received)
            self._guard_turn()
            await self._over.wait()
            if self._failure is None:
                await self._while_peer_reads(self._flushed)
            failure = self._failure or self._exit
            if failure is not None:
                raise failure
        except BaseException:
            # Before the requests end by it: a task that is cancelled raises no other exception.
            for guard in self.around:
                guard.cancel()
            raise
        finally:
            # After any end, no caller may wait for ever.
            self._has_stopped = True
            self._input.stop()
            if self._timer is not None:
                self._timer.cancel()
            self._tasks.cancel()
            self.connection.close(now=self.clock())
            self._dispatch_endings()
            self._room.look()
            try:
                if isinstance(self.connection, ServerConnection):
                    await self._write_the_rest()
            finally:
                self._output.stop()
                await self._tasks.end()

    def finish(self) -> None:
        """End the connection from this side."""
        self.connection.close(now=self.clock())
        self.wake()  # an exception of the application in that turn ends `run`

    def _end_program(self, request: IncomingRequest, failure: BaseException) -> None:
        if self._exit is None:
            self._exit = failure
        for guard in self.around:  # as in `run`, before the requests are lost
            guard.cancel()
        self.finish()

    def wake(self) -> None:
        """Handle output, events and deadline soon, once for many calls into the core.

        This takes the place of the core's own `wake`, which would cost each message a little.
        """
        if not self._is_turning and not self._is_woken and not self._has_stopped:
            self._turn_soon()

    def _turn_soon(self) -> None:
        self._is_woken = True
        self._loop.call_soon(self._guard_turn, context=self._context)

    def _connection_closed(self) -> None:
        self._over.set()

    def _fail(self, failure: BaseException) -> None:
        """End the session; `run` raises this exception."""
        if self._failure is None:
            self._failure = failure
        for event in (self._over, self._flushed, self._all_served):
            event.set()

    # ---------------------------------------------------------------------------- turning

    def _guard_turn(self) -> None:
        self._is_woken = False
        try:
            self._turn()
        except BaseException as error:
            self._fail(error)

    def _turn(self) -> None:
        """Handle all events, and write output as far as that needs no waiting."""
        if self._has_stopped or self._failure is not None:
            if self._writes_the_rest:
                self._write_now()
                if not (self._taken or self.connection.unsent_bytes):
                    self._flushed.set()
            return
        connection = self.connection
        self._is_turning = True
        try:
            self._dispatch()
            if connection.unsent_bytes or self._taken:
                self._write_now()
            if self._held_back and connection.unsent_bytes <= UNSENT_BYTES:
                self._begin_held_back()
                self._turn_soon()  # others first
        finally:
            self._is_turning = False
        if self._room.is_awaited:
            self._room.look()
        elif not self._held_back:
            self._all_served.set()
        if connection.state is State.CLOSED and not (self._taken or connection.unsent_bytes):
            self._flushed.set()
        deadline = connection.next_timeout()
        if deadline is not None and deadline < self._alarm:
            if self._timer is not None:
                self._timer.cancel()
            self._alarm = deadline
            self._timer = self._loop.call_at(deadline, self._ring, context=self._context)

    def _ring(self) -> None:
        now, self._alarm = max(self.clock(), self._alarm), math.inf
        self._timer = None
        self.connection.handle_timeout(now)
        self._guard_turn()

    # ---------------------------------------------------------------------------- reading

    def _received(self, data: bytes) -> None:
        try:
            if not data:
                self._input_ended()
                return
            if self._trace is not None:
                self._trace.received(data)
            self.connection.receive_data(data, at=time.time(), now=self.clock())
            self._turn()
        except BaseException as error:
            self._fail(error)

    def _input_ended(self) -> None:
        # It is ended below: the core would also count the time in which answers wait for room.
        self.connection.receive_eof(
            drain=math.inf if self._drain else 0.0, at=time.time(), now=self.clock()
        )
        if self._drain:
            self._flush_seconds = FLUSH_SECONDS_AT_EOF
            self._tasks.start_soon(self._finish_what_was_read)
        self._turn()

    async def _finish_what_was_read(self) -> None:
        await self._until_all_served()
        await asyncio.sleep(self._drain)  # the time for requests that were read
        await self._until_all_served()
        self._end_tasks()
        self.connection.close(now=self.clock())
        self.wake()

    # ---------------------------------------------------------------------------- writing

    def _write_now(self) -> None:
        """Write output as far as that needs no waiting, and the rest when there is room."""
        if self._waits_for_output:
            return
        connection, taken, output = self.connection, self._taken, self._output
        try:
            while taken or connection.unsent_bytes:
                if not taken:
                    self._take_output()
                self._written(output.send(taken[0]))
        except BlockingIOError:
            self._waits_for_output = True
            output.send_later(taken[0], self._output_moved)
        except OSError as error:
            self._writing_failed(error)

    def _take_output(self) -> None:
        self._taken.extend(take_output(self.connection, self._trace))

    def _written(self, sent: int) -> None:
        """Note how much of the oldest buffer was written."""
        data = self._taken[0]
        if sent < len(data):
            self._taken[0] = memoryview(data)[sent:]
        else:
            self._taken.popleft()

    def _output_moved(self, sent: int, error: OSError | None) -> None:
        self._waits_for_output = False
        if error is not None:
            self._writing_failed(error)
        else:
            self._patient_until = self.clock() + self._flush_seconds
            self._written(sent)
        self._guard_turn()

    def _writing_failed(self, error: OSError) -> None:
        """End the output: a part of a line may have been written, and nothing can follow it."""
        self._taken.clear()
        self.connection.send_failed(now=self.clock())
        if isinstance(self.connection, ServerConnection):
            # A client may still get responses; a server that cannot write is of no use.
            self.connection.close(now=self.clock())
        LOGGER.info("writing has failed: %s", error)
        self._turn_soon()

    async def _write_the_rest(self) -> None:
        """Write the output of `close`, after all else has stopped; also if `run` is cancelled."""
        self._flushed = asyncio.Event()
        self._writes_the_rest = True
        try:
            self._guard_turn()
            if not self._flushed.is_set():
                await self.loop.wait_until(self.clock() + FLUSH_SECONDS, self._flushed.wait)
        finally:
            self._writes_the_rest = False

    async def _until_room(self) -> None:
        """Wait until output may be added."""
        if self.connection.unsent_bytes > UNSENT_BYTES:
            self._write_now()
        if self._room.is_short:
            self.wake()
            await self._room.wait()

    async def _until_all_served(self) -> None:
        """Wait until no request that was read waits for room, as long as the peer reads."""
        self._all_served = asyncio.Event()
        self.wake()
        if self._held_back or self._room.is_awaited:
            await self._while_peer_reads(self._all_served)

    async def _while_peer_reads(self, event: asyncio.Event) -> None:
        """Wait for an event, as long as the peer goes on reading, however slowly."""
        self._patient_until = self.clock() + self._flush_seconds
        until = 0.0
        while not event.is_set() and until < self._patient_until:
            until = self._patient_until  # moves on with each byte that is written
            await self.loop.wait_until(until, event.wait)
