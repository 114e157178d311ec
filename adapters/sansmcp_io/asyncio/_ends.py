"""The two ends of a byte stream on asyncio: input is handed on, and output is written.

The loop watches their descriptors. A descriptor that it cannot watch, such as that of a regular
file or of a terminal, is read or written in threads: one call in each, so that a thread that is
left behind moves no other data.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from .._common.anomalies import LOGGER
from .._common.descriptors import Data, Sink, Source


class Reads(Protocol):
    """The end that a connection reads from."""

    def start(self, receive: Callable[[bytes], object]) -> None:
        """Begin to read: call `receive` with each piece of data, and once with `b""` at the end."""
        ...

    def stop(self) -> None:
        """Stop calling `receive`."""
        ...


class Writes(Protocol):
    """The end that a connection writes to."""

    def send(self, data: Data) -> int:
        """Write without waiting, and return the bytes written; `BlockingIOError` if none can be."""
        ...

    def send_later(self, data: Data, moved: Callable[[int, OSError | None], object]) -> None:
        """Wait for room, then call `moved` with the number of bytes that were written."""
        ...

    def stop(self) -> None:
        """Stop calling `moved`."""
        ...


class _End:
    """The base class of `StdioInput` and `StdioOutput`."""

    def __init__(self) -> None:
        self._loop: Final = asyncio.get_running_loop()
        self._is_in_thread = False
        self._is_closed = False

    def _in_thread(
        self, function: Callable[[], Any], done: Callable[[Any, OSError | None], None]
    ) -> None:
        """Call a function in a thread, and then `done` with its outcome in this one."""
        self._is_in_thread = True

        def back(outcome: Any, error: OSError | None) -> None:
            self._is_in_thread = False
            if not self._is_closed:
                done(outcome, error)

        def run() -> None:
            outcome, failure = None, None
            try:
                outcome = function()
            except OSError as error:
                failure = error
            with suppress(RuntimeError):  # the loop has been closed
                self._loop.call_soon_threadsafe(back, outcome, failure)

        threading.Thread(target=run, daemon=True).start()


class StdioInput(_End):
    """Reads from a source, and hands each piece of data to a callback.

    Attributes:
        source: The source, which belongs to this object.
    """

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source: Final = source
        self._receive: Callable[[bytes], object] | None = None

    def fileno(self) -> int:
        """The descriptor of the source."""
        return self.source.fd

    def start(self, receive: Callable[[bytes], object]) -> None:
        """Begin to read: call `receive` with each piece of data, and once with `b""` at the end."""
        self._receive = receive
        if self.source.pollable:
            try:
                self._loop.add_reader(self.source.fd, self._read)
            except (OSError, NotImplementedError):  # a regular file, or a loop without descriptors
                self.source.pollable = False
        if not self.source.pollable:
            self._in_thread(self.source.read, self._has_read)

    def end(self) -> None:
        """Report the end of the data, once."""
        receive = self._receive
        if receive is not None:
            self.stop()
            receive(b"")

    def stop(self) -> None:
        """Stop calling `receive`."""
        if self._receive is not None:
            self._receive = None
            if self.source.pollable:
                self._loop.remove_reader(self.source.fd)

    def close(self) -> None:
        """Close the source, unless a thread still reads from it."""
        self.stop()
        if not self._is_closed:
            self._is_closed = True
            if not self._is_in_thread:
                self.source.close()

    def _read(self) -> None:
        """Read the available data, and hand it to the callback."""
        try:
            data = self.source.read()
        except BlockingIOError:  # another process has read the data
            return
        except OSError as error:
            LOGGER.info("reading has failed: %s", error)
            data = b""
        if not data:
            self.end()
        elif self._receive is not None:
            self._receive(data)

    def _has_read(self, data: bytes | None, error: OSError | None) -> None:
        if error is not None:
            LOGGER.info("reading has failed: %s", error)
        receive = self._receive
        if receive is None:
            return
        if data:
            receive(data)
            if self._receive is not None:
                self._in_thread(self.source.read, self._has_read)
        else:
            self.end()


class StdioOutput(_End):
    """Writes to a sink, which belongs to this object."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self._sink: Final = sink
        self._moved: Callable[[int, OSError | None], object] | None = None

    def send(self, data: Data) -> int:
        """Write as much as goes without waiting, and return how much that is.

        Raises:
            BlockingIOError: There is no room now, or it is not known.
            OSError: Writing has failed.
        """
        if not self._sink.pollable:
            raise BlockingIOError
        return self._sink.write(data)

    def send_later(self, data: Data, moved: Callable[[int, OSError | None], object]) -> None:
        """Wait for room, then call `moved` with the number of bytes that were written."""
        self._moved = moved
        if self._sink.pollable:
            self._loop.add_writer(self._sink.fd, self._has_room)
        else:
            self._in_thread(lambda: self._sink.write_waiting(data), self._has_written)

    def _has_room(self) -> None:
        self._loop.remove_writer(self._sink.fd)
        self._has_written(0, None)

    def _has_written(self, sent: int | None, error: OSError | None) -> None:
        moved, self._moved = self._moved, None
        if moved is not None:
            moved(sent or 0, error)

    def stop(self) -> None:
        """Stop calling `moved`."""
        if self._moved is not None:
            self._moved = None
            if self._sink.pollable:
                self._loop.remove_writer(self._sink.fd)

    def close(self) -> None:
        """Close the sink, unless a thread still writes to it."""
        self.stop()
        if not self._is_closed:
            self._is_closed = True
            if not self._is_in_thread:
                self._sink.close()
