"""A server as a child process, without a loop: started without a shell, always waited for."""

from __future__ import annotations

import contextlib
import math
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from .._common.anomalies import LOGGER
from .._common.descriptors import READ_BYTES, Sink, Source
from .._common.stderr import (
    LAST_WORDS_SECONDS,
    LOOK_AGAIN_SECONDS,
    STDERR_SECONDS,
    StderrLines,
    StderrTail,
)
from .._options.clients import StdioClientOptions
from ._interrupts import interruptible

_MOST_SAID_BYTES: Final = 1_048_576
"""The bytes of standard error that may wait for `on_stderr`. Of more, the oldest are dropped."""
_LOOK_AGAIN_IN_A_CALL_SECONDS: Final = 0.25
"""Seconds between two tests whether the process has ended, on systems without pidfd."""


class Child:
    """A running server process. The thread that reads its output watches it.

    Attributes:
        on_lines: Takes a function that calls `on_stderr`, to be called later.

    Raises:
        OSError: The process could not be started.
    """

    def __init__(self, options: StdioClientOptions[Any]) -> None:
        keywords = options.of_process()
        self.process: Final = subprocess.Popen(options.command, bufsize=0, **keywords)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.sink: Final = Sink(self.process.stdin.fileno())
        self.process.stdin.close()
        self.source: Final = Source(self.process.stdout.fileno())
        self.process.stdout.close()
        self.stderr: Final = StderrTail()
        self.end: Final = options.end_of(self.process)
        self.on_lines: Callable[[Callable[[], object]], object] = _nobody_calls
        self._lines = None if options.on_stderr is None else StderrLines(options.on_stderr)
        self._said = bytearray()  # and not handed on
        self._saying = threading.Lock()  # around that
        self._has_dropped = False
        self._ending: int | None = None
        self._alarm = math.inf
        self.descriptors: Final[dict[int, Callable[[], bool]]] = {}
        with contextlib.suppress(AttributeError, OSError):  # not every system has it
            self._ending = os.pidfd_open(self.process.pid)
            self.descriptors[self._ending] = self._see_end
        if self.process.stderr is not None:
            os.set_blocking(self.process.stderr.fileno(), False)
            self.descriptors[self.process.stderr.fileno()] = self._take_stderr

    # ------------------------------------------------------------------- while it is read

    @property
    def alarm(self) -> float:
        """When its output counts as ended, if nothing comes until then.

        Processes that it has started may hold the other end open, but do not answer in its place.
        """
        if self._ending is None and self._alarm == math.inf:
            return time.monotonic() + _LOOK_AGAIN_IN_A_CALL_SECONDS
        return self._alarm

    def look(self) -> None:
        """Test whether the process has ended, if no descriptor reports that."""
        if self._ending is None and self._alarm == math.inf:
            self._see_end()

    def heard(self) -> None:
        """Data has come. If the process has ended, there may be more."""
        if self._alarm != math.inf:
            self._alarm = time.monotonic() + LAST_WORDS_SECONDS

    def _see_end(self) -> bool:
        status = self.process.poll()
        if status is None:
            return True
        self.stderr.exit_status = status
        self.end.process_ended()
        self._alarm = time.monotonic() + LAST_WORDS_SECONDS
        return False

    def _take_stderr(self) -> bool:
        assert self.process.stderr is not None
        try:
            data = os.read(self.process.stderr.fileno(), READ_BYTES)
        except BlockingIOError:
            return True
        except OSError as error:
            LOGGER.info("reading standard error has failed: %s", error)
            data = b""
        self.stderr.add(data)
        if self._lines is not None and data:
            self._keep(data)
        return bool(data)

    def _keep(self, data: bytes) -> None:
        """Keep data of standard error until the handler can be called."""
        with self._saying:
            is_awaited = bool(self._said)
            self._said += data
            excess = len(self._said) - _MOST_SAID_BYTES
            if excess > 0:
                del self._said[:excess]
        if not is_awaited:
            self.on_lines(self._hand_on)
        if excess > 0 and not self._has_dropped:
            self._has_dropped = True
            LOGGER.warning("standard error comes faster than it is handled: some is dropped")

    def _hand_on(self) -> None:
        with self._saying:
            said = bytes(self._said)
            self._said.clear()
        if self._lines is not None:
            self._lines.add(said)

    # ---------------------------------------------------------------------------- its end

    def stop(self) -> None:
        """Close the server's input and wait for its end; signals end it after some time.

        Keeps STDIO-013, STDIO-014.
        """
        self.on_lines = _nobody_calls
        poll = select.poll()
        for descriptor in (self.source.fd, *self.descriptors):
            poll.register(descriptor, select.POLLIN)
        self.sink.close()
        self._end_process(poll)
        self.stderr.exit_status = self.process.returncode
        for seconds in self.end.end_group(time.monotonic):
            time.sleep(seconds)  # nothing tells when the last process of a group has ended
        if self.process.stderr is not None:
            # A process that has left the group may hold the other end open for ever.
            self._until(poll, lambda: self._stderr_fd not in self.descriptors, STDERR_SECONDS)
        self._close()
        interruptible(self._hand_on_the_rest)  # last, since the callback may take long or raise

    def leave_to_parent(self) -> None:
        """Leave the server to the parent, in a process made by `os.fork`."""
        self.sink.close()
        self._close()
        self.process.returncode = 0  # prevents a ResourceWarning

    def _close(self) -> None:
        if self.process.stderr is not None:
            self.process.stderr.close()
        self.source.close()
        if self._ending is not None:
            os.close(self._ending)

    def _hand_on_the_rest(self) -> None:
        self._hand_on()
        if self._lines is not None:
            self._lines.end()

    @property
    def _stderr_fd(self) -> int:
        return -1 if self.process.stderr is None else self.process.stderr.fileno()

    def _end_process(self, poll: select.poll) -> None:
        for seconds in self.end.end_process():
            if self._until(poll, self._has_ended, seconds):
                return
        self._until(poll, self._has_ended, math.inf)

    def _has_ended(self) -> bool:
        return self.process.poll() is not None

    def _until(self, poll: select.poll, is_done: Callable[[], bool], seconds: float) -> bool:
        """Wait for a condition, and meanwhile read the pipes, so that they do not fill up."""
        until = time.monotonic() + seconds
        while not is_done():
            left = until - time.monotonic()
            if left <= 0:
                return False
            longest = 60.0 if self._ending is not None else LOOK_AGAIN_SECONDS
            for descriptor, _ in poll.poll(math.ceil(min(left, longest) * 1000)):
                if descriptor == self.source.fd:
                    goes_on = self._discard_output()
                else:
                    goes_on = self.descriptors[descriptor]()
                    if not goes_on:
                        del self.descriptors[descriptor]
                if not goes_on:
                    poll.unregister(descriptor)
        return True

    def _discard_output(self) -> bool:
        try:
            return bool(self.source.read())
        except BlockingIOError:
            return True
        except OSError:
            return False


def _nobody_calls(function: Callable[[], object]) -> None:
    """Call nothing: data that is kept is handed on later."""
