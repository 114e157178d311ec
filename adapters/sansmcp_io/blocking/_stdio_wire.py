"""Moves the bytes of a connection on two descriptors, and keeps its time, in waiting threads."""

from __future__ import annotations

import contextlib
import math
import os
import select
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from sansmcp import ClientConnection, Event, ServerConnection

from .._common.anomalies import LOGGER
from .._common.bounds import FLUSH_SECONDS, FLUSH_SECONDS_AT_EOF, take_output
from .._common.descriptors import Sink, Source
from .._common.trace import Trace
from ._waiting import WaitingThreads

_PIECE_BYTES: Final = getattr(select, "PIPE_BUF", 512)
"""The bytes that a ready pipe takes without waiting, even in blocking mode."""
Ready = list[tuple[int, int]]


class Watched(Protocol):
    """The process at the other end, which is watched while a thread reads."""

    @property
    def descriptors(self) -> dict[int, Callable[[], bool]]:
        """The functions to call for ready descriptors. The result: whether to go on watching."""
        ...

    @property
    def alarm(self) -> float:
        """When the input counts as ended, if nothing comes until then; `math.inf`: not known."""
        ...

    def look(self) -> None:
        """Test for events that no descriptor reports. Called after each poll."""
        ...

    def heard(self) -> None:
        """Note that data has arrived."""
        ...


class StdioWire(WaitingThreads):
    """Moves bytes between a connection and two descriptors, and keeps time.

    It is mixed into a session, whose own `__init__` runs first.
    """

    def __init__(
        self,
        connection: ClientConnection | ServerConnection,
        source: Source,
        sink: Sink,
        *,
        drain: float,
        trace: Trace | None,
        watched: Watched | None = None,
    ) -> None:
        if not hasattr(select, "poll"):
            raise NotImplementedError("sansmcp_io.blocking needs a system that can poll pipes")
        self.connection: Final = connection
        self._source = source
        self._sink = sink
        self._drain = drain
        self._drained_at = math.inf  # when the connection ends, after the end of input
        self._trace = trace
        self._watched = watched
        self._taken: deque[bytes | memoryview] = deque()  # out of the core, and not yet written
        self._waits_for_output = False  # the poll does
        self._waker, self._wakes = os.pipe()
        os.set_blocking(self._waker, False)
        os.set_blocking(self._wakes, False)
        self._output_poll = select.poll()
        self._output_poll.register(sink.fd, select.POLLOUT)
        self._poll = select.poll()
        self._poll.register(source.fd, select.POLLIN)
        self._poll.register(self._waker, select.POLLIN)
        self._has_input = True
        for descriptor in () if watched is None else watched.descriptors:
            self._poll.register(descriptor, select.POLLIN)

    # ---------------------------------------------------------------------------- reading

    @property
    def _wire_deadline(self) -> float:
        return math.inf if self._watched is None else self._watched.alarm

    def _prepare_select(self) -> None:
        self._want_output(bool(self._taken or self.connection.unsent_bytes))

    def _select(self, seconds: float) -> Ready:
        return self._poll.poll(math.ceil(seconds * 1000))

    def _handle_ready(self, ready: Ready) -> None:
        watched = self._watched
        has_come = False
        for descriptor, _ in ready:
            if descriptor == self._source.fd:
                has_come = True
                self._receive()
            elif descriptor == self._waker:
                os.read(self._waker, 4096)
            elif descriptor == self._sink.fd:
                self._write(is_ready=True)
            elif watched is not None and not watched.descriptors[descriptor]():
                self._poll.unregister(descriptor)
                del watched.descriptors[descriptor]
        if watched is not None:
            watched.look()
            if has_come:
                watched.heard()
            elif self._has_input and time.monotonic() >= watched.alarm:
                self._end_input()

    def _receive(self) -> None:
        try:
            data = self._source.read()
        except BlockingIOError:  # another process has read the data
            return
        except OSError as error:
            LOGGER.info("reading has failed: %s", error)
            data = b""
        if not data:
            self._end_input()
            return
        if self._trace is not None:
            self._trace.received(data)
        self.connection.receive_data(data, at=time.time(), now=time.monotonic())

    def _end_input(self) -> None:
        self._has_input = False
        self._poll.unregister(self._source.fd)
        now = time.monotonic()
        self._drained_at = now + self._drain
        self.connection.receive_eof(drain=self._drain, at=time.time(), now=now)

    def _next_event(self) -> Event | None:
        event = self.connection.next_event()
        if event is not None and self._trace is not None:
            self._trace.happened(event)
        return event

    def _stop_tracing(self) -> None:
        self._trace = None

    @property
    def _needs_reader(self) -> bool:
        return bool(self._taken) and not self._waits_for_output

    def _wake_select(self) -> None:
        with contextlib.suppress(BlockingIOError):  # the pipe is full, so the thread is awake
            os.write(self._wakes, b"\0")

    # ---------------------------------------------------------------------------- writing

    def _write_output(self) -> None:
        self._write()

    def _want_output(self, wants: bool) -> None:
        if wants and not self._waits_for_output:
            self._poll.register(self._sink.fd, select.POLLOUT)
        elif self._waits_for_output and not wants:
            self._poll.unregister(self._sink.fd)
        self._waits_for_output = wants

    def _write(self, *, is_ready: bool = False) -> None:
        """Write output as far as that needs no waiting."""
        connection, taken, sink = self.connection, self._taken, self._sink
        try:
            while taken or connection.unsent_bytes:
                if not taken:
                    self._take_output()
                data = taken[0]
                if not sink.pollable:  # a write might block: write one piece, if the pipe is ready
                    if not is_ready and not self._output_poll.poll(0):
                        return
                    is_ready = False
                    data = memoryview(data)[:_PIECE_BYTES]
                sent = sink.write(data)
                if sent < len(taken[0]):
                    taken[0] = memoryview(taken[0])[sent:]
                else:
                    taken.popleft()
        except BlockingIOError:
            pass
        except OSError as error:
            self._writing_failed(error)
        self._look_for_room()

    def _take_output(self) -> None:
        self._taken.extend(take_output(self.connection, self._trace))

    def _writing_failed(self, error: OSError) -> None:
        """End the output: a part of a line may have been written, and nothing can follow it."""
        self._taken.clear()
        self.connection.send_failed(now=time.monotonic())
        if isinstance(self.connection, ServerConnection):
            # A client may still get responses; a server that cannot write is of no use.
            self.connection.close(now=time.monotonic())
        LOGGER.info("writing has failed: %s", error)
        self._dispatch()

    # ----------------------------------------------------------------------------- ending

    def _finish(self) -> None:
        """End the connection from this side, and write the rest while the peer reads."""
        try:
            self.connection.close(now=time.monotonic())
            self.turn()
        finally:
            self.wait(lambda: not self._is_read)
            self._write_the_rest()

    def _close(self) -> None:
        os.close(self._waker)
        os.close(self._wakes)

    def _write_the_rest(self) -> None:
        seconds = FLUSH_SECONDS if self._has_input else FLUSH_SECONDS_AT_EOF
        until = math.inf
        if isinstance(self.connection, ClientConnection):
            # No caller waits for the last output to a server that reads only now and then.
            until = time.monotonic() + FLUSH_SECONDS_AT_EOF
        while (self._taken or self.connection.unsent_bytes) and time.monotonic() < until:
            if not self._output_poll.poll(seconds * 1000):
                break
            self._write(is_ready=True)
