"""The two ends of a stream as descriptors, which are read and written without blocking.

The blocking mode of a descriptor belongs to the open file, which other processes share, and often
standard error too. Changing it would break their writes, so it is never changed here.

- A pipe is opened once more through `/proc`, which gives an open file of our own that may be
  non-blocking while the inherited one stays as it was. This is what makes large messages fast:
  a pipe in blocking mode takes no more than `PIPE_BUF` (4 KiB) without risk of blocking, and each
  piece would have to be waited for.
- A socket is told with each call not to wait.
- A pipe that cannot be opened again (another system, another user's) is read when it is ready,
  which never blocks as long as no other process reads from it, and written by a thread.
- Regular files and terminals are written by a thread; a regular file is read by one, too, since
  it cannot be waited for.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import stat
import sys
from collections.abc import Callable
from typing import Any, Final, TypeAlias

Data: TypeAlias = bytes | bytearray | memoryview

READ_BYTES: Final = 65_536
"""How many bytes one read asks for at first: as many as a pipe of the usual size holds."""
LARGE_BYTES: Final = 262_144
"""How many bytes one read asks for when there are more, and the size of pipes from then on.

A smaller size needs more turns, and a larger one does not fit into the processor's cache: both
were measured to be slower.
"""

_NO_WAIT: Final[int] = getattr(socket, "MSG_DONTWAIT", 0)


def has_data(stream: object) -> bool:
    """Whether there is data to read, which the end is not. False where the system cannot tell."""
    fileno: Callable[[], int] | None = getattr(stream, "fileno", None)
    if fileno is None or not hasattr(select, "poll"):
        return False
    poller = select.poll()
    poller.register(fileno(), select.POLLIN)
    return any(events & select.POLLIN for _, events in poller.poll(0))


def wait_for_room(descriptor: int) -> None:
    """Wait until something can be written, or writing fails. The descriptor may be any number."""
    if hasattr(select, "poll"):
        poller = select.poll()
        poller.register(descriptor, select.POLLOUT)
        poller.poll()
    else:
        select.select([], [descriptor], [])


class _End:
    """The base class of `Source` and `Sink`.

    Attributes:
        fd: The descriptor, which belongs to this object.
        pollable: Whether it can be waited for, and then moves data without blocking. If not, a
            thread moves the data.
    """

    fd: int
    _move: Callable[..., Any]

    def __init__(self, descriptor: int, flags: int) -> None:
        self._is_large = False
        self._socket: socket.socket | None = None
        self.pollable = True
        mode = os.fstat(descriptor).st_mode
        self.is_pipe: Final = stat.S_ISFIFO(mode)
        if stat.S_ISSOCK(mode) and _NO_WAIT:
            self._socket = socket.socket(fileno=os.dup(descriptor))
            self.fd: int = self._socket.fileno()
            return
        if self.is_pipe and sys.platform == "linux":
            with contextlib.suppress(OSError):
                path = f"/proc/self/fd/{descriptor}"
                self.fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
                return
        self.fd = os.dup(descriptor)
        self._cannot_be_told_not_to_wait()

    def _cannot_be_told_not_to_wait(self) -> None:
        """Called for a descriptor that is neither a reopened pipe nor a socket."""

    def _expect_large_messages(self) -> None:
        """Give a pipe room for more, so that a large message needs fewer turns of both sides.

        Other processes notice nothing but fewer waits. The system may refuse it.
        """
        self._is_large = True
        if self.is_pipe and sys.platform == "linux":
            import fcntl  # not on every system

            with contextlib.suppress(OSError):
                fcntl.fcntl(self.fd, fcntl.F_SETPIPE_SZ, LARGE_BYTES)

    def close(self) -> None:
        """Close the descriptor. The original descriptor stays open."""
        if self._socket is not None:
            self._socket.close()
        else:
            os.close(self.fd)


class Source(_End):
    """The end that bytes are read from."""

    def __init__(self, descriptor: int) -> None:
        self._bytes = READ_BYTES
        super().__init__(descriptor, os.O_RDONLY)

    def read(self) -> bytes:
        """Read the available bytes; `b""` is the end.

        Raises:
            BlockingIOError: Nothing is there now.
            OSError: Reading has failed.
        """
        if self._socket is None:
            data = os.read(self.fd, self._bytes)
        else:
            data = self._socket.recv(self._bytes, _NO_WAIT)
        if len(data) >= READ_BYTES:
            if not self._is_large:
                self._expect_large_messages()
            self._bytes = LARGE_BYTES
        else:  # a large buffer costs more than a small message
            self._bytes = READ_BYTES
        return data


class Sink(_End):
    """The end that bytes are written to."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, os.O_WRONLY)

    def _cannot_be_told_not_to_wait(self) -> None:
        self.pollable = False

    def write(self, data: Data) -> int:
        """Write some of `data`, and return the number of bytes written.

        Raises:
            BlockingIOError: There is no room now.
            OSError: Writing has failed.
        """
        if len(data) > READ_BYTES and not self._is_large:
            self._expect_large_messages()
        if self._socket is not None:
            return self._socket.send(data, _NO_WAIT)
        return os.write(self.fd, data)

    def write_waiting(self, data: Data) -> int:
        """Write some of `data` as `write`, but wait for room. For threads."""
        while True:
            try:
                return self.write(data)
            except BlockingIOError:  # inherited in non-blocking mode: left so, and waited for
                wait_for_room(self.fd)
