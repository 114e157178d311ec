"""The streams of a command: results go to stdout, warnings and errors to stderr."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import select
import sys
from collections.abc import Callable, Generator, Iterable
from typing import Final, TextIO, cast

from sansmcp import JSONValue

from .._errors import Failure, OutputFailed, Status
from .printing import Block, Label, Printer, Progress, make_printer

_PATIENCE: Final = 1.0
"""Seconds that a reader has who is to be told that a signal has ended the command."""


class Interrupted(OSError):
    """A signal ended a write that blocked, or that would."""

    # Without EINTR, which would only have the write tried again.


class _ClosedStream(io.TextIOBase):
    """Stands for a stream that was closed when the command started."""

    def __init__(self, *, complains: bool) -> None:
        super().__init__()
        self._complains = complains

    def write(self, text: str) -> int:
        """Raise if the stream counts as closed; otherwise, drop the text."""
        if self._complains:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return len(text)


def prepare_streams() -> None:
    """Make sure that there are three streams, and that they take any character.

    A character that a stream cannot take is written as an escape. A result that cannot be written
    is a failure; messages that cannot be written are not.
    """
    sys.stdin = sys.stdin or io.TextIOWrapper(io.BytesIO())
    sys.stdout = sys.stdout or cast(TextIO, _ClosedStream(complains=True))
    sys.stderr = sys.stderr or cast(TextIO, _ClosedStream(complains=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def drop_output(stream: TextIO) -> None:
    """Drop output that could not be written, so that the interpreter does not write it at exit."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def _is_full(stream: TextIO, seconds: float = 0) -> bool:
    """Whether a write to a stream would block for that time. False if that is not known."""
    if not hasattr(select, "poll") or isinstance(stream, _ClosedStream):
        return False
    poller = select.poll()
    poller.register(stream.fileno(), select.POLLOUT)
    return not poller.poll(seconds * 1000)


class Output:
    """The two streams of a command.

    Args:
        as_json: Write results and failures as JSON, one document in all.
        as_lines: There may be any number of documents, each in a line of its own.
        show_progress: Whether to show progress; None: where standard error is a terminal.

    Attributes:
        as_json: Whether results and failures are written as JSON.
    """

    def __init__(
        self, *, as_json: bool = False, as_lines: bool = False, show_progress: bool | None = None
    ) -> None:
        self.as_json: Final = as_json
        self._indent: Final = None if as_lines else 2
        self._out: Final[Printer] = make_printer(sys.stdout)
        self._err: Final[Printer] = make_printer(sys.stderr)
        self._show_progress = sys.stderr.isatty() if show_progress is None else show_progress
        self._writing_to: TextIO | None = None
        self._was_interrupted = False

    def interrupt(self) -> None:
        """End a write that blocks, which may never be read. For signal handlers.

        Raises:
            Interrupted: Into that write. The stream is given up then.
        """
        self._was_interrupted = True
        stream = self._writing_to
        if stream is not None and _is_full(stream):
            self._writing_to = None
            raise Interrupted("a signal came before it was written")

    def _write(self, stream: TextIO, write: Callable[[], None]) -> None:
        try:
            if self._was_interrupted and _is_full(stream, _PATIENCE):
                raise Interrupted("the output is not read")
            try:
                self._writing_to = stream
                write()
            finally:
                self._writing_to = None
        except OSError:
            drop_output(stream)
            raise

    def result(self, document: JSONValue, blocks: Iterable[Block]) -> None:
        """Show a result, in the requested form.

        Raises:
            OutputFailed: Standard output does not take it.
        """

        def write() -> None:
            if self.as_json:
                self._document(document)
            else:
                for block in blocks:
                    self._out.show(block)

        self._to_stdout(write)

    def block(self, block: Block) -> None:
        """Show a part of a result as soon as it is there, unless the result is to be JSON.

        Raises:
            OutputFailed: Standard output does not take it.
        """
        if not self.as_json:
            self._to_stdout(lambda: self._out.show(block))

    def finding(self, document: JSONValue, text: str) -> None:
        """Show one of many results as a line, in the requested form.

        Raises:
            OutputFailed: Standard output does not take it.
        """
        self._to_stdout(
            lambda: self._document(document) if self.as_json else print(text, flush=True)
        )

    def _to_stdout(self, write: Callable[[], None]) -> None:
        try:
            self._write(sys.stdout, write)
        except OSError as error:
            raise OutputFailed(error) from None

    def failure(self, failure: Failure, document: JSONValue = None) -> None:
        """Show why there is no result: always as text, and as JSON if that was requested.

        Args:
            failure: The failure.
            document: The JSON in place of that of the failure.

        Raises:
            OutputFailed: Standard output does not take it.
        """
        self.line(Label.ERROR, failure.text)
        for text in failure.details:
            self.line(Label.DETAIL, text)
        for text in failure.hints:
            self.line(Label.HINT, text)
        if self.as_json:
            self._to_stdout(lambda: self._document(document or failure.document()))

    def undeliverable(self, failed: OutputFailed) -> int:
        """Report that a result could not be written, and return the exit status."""
        if isinstance(failed.error, BrokenPipeError):  # the reader has read enough, and knows
            return Status.BROKEN_PIPE
        self.line(Label.ERROR, f"the result cannot be written: {failed.error.strerror}")
        return Status.PROTOCOL

    def line(self, label: Label, text: str) -> None:
        """Write a line to standard error, and ignore a failure."""
        self._to_stderr(lambda: self._err.line(label, text))

    def _to_stderr(self, write: Callable[[], None]) -> None:
        with contextlib.suppress(OSError):
            self._write(sys.stderr, write)

    @contextlib.contextmanager
    def progress(self) -> Generator[Progress, None, None]:
        """Show progress for the time of a block, unless progress is not wanted."""
        if not self._show_progress:
            yield NoProgress()
            return
        shown = self._err.progress()
        try:
            yield _GuardedProgress(shown, self._to_stderr)
        finally:
            self._to_stderr(shown.close)

    def _document(self, document: JSONValue) -> None:
        # ASCII only: nothing in it can do anything to a terminal.
        print(json.dumps(document, indent=self._indent), flush=True)


class _GuardedProgress:
    """Shows progress. A failure to show progress is ignored."""

    def __init__(self, shown: Progress, write: Callable[[Callable[[], None]], None]) -> None:
        self._shown = shown
        self._write = write

    def show(self, progress: float, total: float | None, message: str | None) -> None:
        """Show how far the request has come."""
        self._write(lambda: self._shown.show(progress, total, message))

    def close(self) -> None:
        """Remove progress from the screen."""
        self._write(self._shown.close)


class NoProgress:
    """Progress that is not shown."""

    def show(self, progress: float, total: float | None, message: str | None) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Do nothing: no progress is shown."""
