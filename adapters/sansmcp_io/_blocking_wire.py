"""The bytes of one connection on two descriptors, and its clock, moved by the threads that wait.

There is no thread of our own. Of the threads that wait for something one reads: it polls the
descriptors, takes what came to the core, and rings the bells of those whose mailboxes have got
something. The others sleep until their bell rings. Whoever stops waiting, for whatever reason,
or goes off to run a function of the application, rings one of those that sleep, which then reads.
Output is written by the thread that has it, as far as it goes without waiting; the thread that
reads waits for the rest to go.

One lock guards all of it. It is free while a thread polls, sleeps or runs functions of the
application, so that none of these keeps another thread from anything.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

from sansmcp import ClientConnection, ServerConnection, State

from ._anomalies import LOGGER
from ._blocking_lock import Guarded
from ._blocking_mailbox import Bell, Mailbox
from ._descriptors import Sink, Source
from ._surface import FLUSH_SECONDS, FLUSH_SECONDS_AT_EOF, UNSENT_BYTES
from ._trace import Trace

_PIECE_BYTES: Final = getattr(select, "PIPE_BUF", 512)
"""What a pipe takes without waiting, once it is ready, though it cannot be told not to wait."""
_JOINED_BYTES: Final = 262_144
"""Output up to this is written as one buffer; of more, each message is, which copies nothing."""
_LONGEST_SECONDS: Final = 86_400.0
"""The longest that is slept at once: systems have limits of their own."""

Ready = list[tuple[int, int]]


class Watched(Protocol):
    """What else is watched while a thread reads: the process at the other end."""

    @property
    def descriptors(self) -> dict[int, Callable[[], bool]]:
        """What to call when one is ready; it returns whether to watch it on."""
        ...

    @property
    def alarm(self) -> float:
        """When the input has ended, if nothing came until then; `math.inf`: nobody knows."""
        ...

    def look(self) -> None:
        """Look after what no descriptor tells; called after each poll."""
        ...

    def heard(self) -> None:
        """Something came."""
        ...


class Wire(Guarded):
    """Moves bytes between a connection and two descriptors, and tells it the time."""

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
        super().__init__()
        self.connection: Final = connection
        self._source = source
        self._sink = sink
        self._drain = drain
        self._trace = trace
        self._watched = watched
        self._late: deque[Any] = deque()  # to be cancelled when the lock can be had
        self._is_released = False
        self._parked: dict[Bell, None] = {}
        self._is_read = False  # some thread polls
        self._alarm = math.inf  # until when it does
        self._taken: deque[bytes | memoryview] = deque()  # out of the core, and not yet written
        self._is_crowded = False  # somebody waits for room in the output
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

    def cancel_soon(self, handle: Any) -> None:
        """Cancel something that is left. The collector of garbage may call this at any point."""
        self._late.append(handle)
        if not self._is_mine:
            with self:
                self.turn()

    # -------------------------------------------------------------------- what sessions do

    def _dispatch(self) -> None:
        """Handle all events."""
        raise NotImplementedError  # the session's

    def _next_job(self) -> Callable[[], None] | None:
        """A function of the application that is to be called, if there is one now."""
        raise NotImplementedError  # the session's

    # ---------------------------------------------------------------------------- waiting

    def wait(
        self,
        is_done: Callable[[], object],
        until: float = math.inf,
        mailbox: Mailbox[Any] | None = None,
    ) -> bool:
        """Wait for something, and do meanwhile what is to be done.

        Args:
            is_done: Whether it has come; asked with the lock held.
            until: When to give up.
            mailbox: Whose bell rings when it may have come.

        Returns:
            Whether it has come.
        """
        try:
            while not is_done():
                if (job := self._next_job()) is not None:
                    self._pass_on()
                    job()
                elif time.monotonic() >= until:
                    return False
                elif self._is_read:
                    self._park(until, mailbox)
                else:
                    self._read(until)
            return True
        finally:
            self._pass_on()

    def ring(self, mailbox: Mailbox[Any]) -> None:
        """Wake the thread that waits for this, if it sleeps."""
        bell = mailbox.bell
        if bell is not None and bell in self._parked:
            del self._parked[bell]
            bell.ring()

    def ring_all(self) -> None:
        """Wake all that sleep: each sees for itself whether it is concerned."""
        for bell in self._parked:
            bell.ring()
        self._parked.clear()

    def _pass_on(self) -> None:
        """This thread will not read: let another one do it."""
        if not self._is_read:
            self._ring_some(1)

    def _ring_some(self, number: int) -> None:
        """Wake as many of those that sleep, the longest sleepers first."""
        for bell in list(self._parked)[:number]:
            del self._parked[bell]
            bell.ring()

    def _park(self, until: float, mailbox: Mailbox[Any] | None) -> None:
        """Sleep until the bell rings."""
        bell = Bell()
        self._parked[bell] = None
        if mailbox is not None:
            mailbox.bell = bell
        try:
            seconds = min(until - time.monotonic(), _LONGEST_SECONDS)
            self._without_lock(bell.wait, max(seconds, 0.0))
        finally:
            self._parked.pop(bell, None)
            if mailbox is not None:
                mailbox.bell = None

    def look(self) -> None:
        """Take what has come, unless another thread does so anyway. Does not wait."""
        if not self._is_read and not self._is_released:
            self._read(-math.inf)
            self._pass_on()

    def _read(self, until: float) -> None:
        """Poll once, and move what can be moved."""
        deadline = self.connection.next_timeout()
        alarm = until if deadline is None else min(until, deadline)
        if self._watched is not None:
            alarm = min(alarm, self._watched.alarm)
        self._want_output(bool(self._taken or self.connection.unsent_bytes))
        self._alarm = alarm
        self._is_read = True
        try:
            seconds = max(min(alarm - time.monotonic(), _LONGEST_SECONDS), 0.0)
            ready: Ready = self._without_lock(self._poll.poll, math.ceil(seconds * 1000))
        finally:
            self._is_read = False
        try:
            self._move(ready)
        except BaseException:
            self._break_down()
            raise

    def _move(self, ready: Ready) -> None:
        connection, watched = self.connection, self._watched
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
        connection.handle_timeout(time.monotonic())
        self.turn()

    def _receive(self) -> None:
        try:
            data = self._source.read()
        except BlockingIOError:  # somebody else took it
            return
        except OSError as error:
            LOGGER.info("reading has failed: %s", error)
            data = b""
        if not data:
            self._end_input()
            return
        if self._trace is not None:
            self._trace.received(data)
        self.connection.receive_data(data, now=time.monotonic())

    def _end_input(self) -> None:
        self._has_input = False
        self._poll.unregister(self._source.fd)
        self.connection.receive_eof(drain=self._drain, now=time.monotonic())

    # ---------------------------------------------------------------------------- turning

    def turn(self) -> None:
        """A verb was called, or something came: have events, output and deadlines seen to."""
        try:
            self._turn()
        except BaseException:
            self._break_down()
            raise

    def _break_down(self) -> None:
        """Something of the application, a trace or a log, has failed where nothing may.

        What it was told of may be lost: nobody may wait for it.
        """
        self._trace = None
        self.connection.close(now=time.monotonic())
        self._dispatch()
        self.ring_all()

    def _turn(self) -> None:
        while self._late:
            self.connection.cancel(self._late.popleft(), now=time.monotonic())
        self._dispatch()
        if self._is_released:
            return
        self._write()
        if self._is_read:
            deadline = self.connection.next_timeout()
            if self._taken and not self._waits_for_output:
                self._wake_reader()
            elif deadline is not None and deadline < self._alarm:
                self._alarm = deadline
                self._wake_reader()
        if self.connection.state is State.CLOSED:
            self.ring_all()
            self._wake_reader()

    def _wake_reader(self) -> None:
        """Have the thread that polls look at the world again."""
        if self._is_read:
            with contextlib.suppress(BlockingIOError):  # it is awake already
                os.write(self._wakes, b"\0")

    # ---------------------------------------------------------------------------- writing

    @property
    def has_room(self) -> bool:
        """Whether output may be added that can wait as well."""
        return self.connection.unsent_bytes <= UNSENT_BYTES

    def wait_for_room(self, until: float) -> bool:
        """Wait until output may be added, or the connection has ended."""
        return self.wait(self._may_go_on, until)

    def _may_go_on(self) -> bool:
        if self.has_room or self.connection.state is State.CLOSED:
            return True
        self._is_crowded = True  # each time: another thread may have taken the room
        return False

    def _want_output(self, wants: bool) -> None:
        if wants and not self._waits_for_output:
            self._poll.register(self._sink.fd, select.POLLOUT)
        elif self._waits_for_output and not wants:
            self._poll.unregister(self._sink.fd)
        self._waits_for_output = wants

    def _write(self, *, is_ready: bool = False) -> None:
        """Write what goes without waiting."""
        connection, taken, sink = self.connection, self._taken, self._sink
        try:
            while taken or connection.unsent_bytes:
                if not taken:
                    self._take_output()
                data = taken[0]
                if not sink.pollable:  # it would wait: only a piece goes, and only if it is ready
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
        if self._is_crowded and self.has_room:
            self._is_crowded = False
            self.ring_all()
            self._wake_reader()

    def _take_output(self) -> None:
        connection = self.connection
        if connection.unsent_bytes <= _JOINED_BYTES:
            buffers = [connection.data_to_send()]
        else:
            buffers = connection.buffers_to_send()
        if self._trace is not None:
            for data in buffers:
                self._trace.sent(data)
        self._taken.extend(buffers)

    def _writing_failed(self, error: OSError) -> None:
        """Part of a line may be out: nothing can follow it."""
        self._taken.clear()
        self.connection.send_failed(now=time.monotonic())
        if isinstance(self.connection, ServerConnection):
            # Answers to a client may still come; a server that cannot speak is of no use.
            self.connection.close(now=time.monotonic())
        LOGGER.info("writing has failed: %s", error)
        self._dispatch()

    # ----------------------------------------------------------------------------- ending

    def finish(self) -> None:
        """End the connection from this side, and write what is left while the peer reads.

        When this returns, no thread uses the descriptors any more, nor ever will.
        """
        self.connection.close(now=time.monotonic())
        self.turn()
        self.wait(lambda: not self._is_read)
        seconds = FLUSH_SECONDS if self._has_input else FLUSH_SECONDS_AT_EOF
        while self._taken or self.connection.unsent_bytes:
            if not self._output_poll.poll(seconds * 1000):
                break
            self._write(is_ready=True)
        self._is_released = True
        os.close(self._waker)
        os.close(self._wakes)
