"""Where results, warnings and errors of a command go: results to stdout, the rest to stderr."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Generator, Iterable
from typing import Final, TextIO

from sansmcp import JSONValue

from ._blocks import Block
from ._errors import Failure, OutputFailed, Status
from ._printing import Label, Printer, Progress, make_printer


def prepare_streams() -> None:
    """Let no character be one that a stream cannot take: it is written as an escape instead."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def give_up(stream: TextIO) -> None:
    """Keep the interpreter from writing at its end what could not be written before."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


class Output:
    """The two streams of a command.

    Args:
        as_json: Write results and failures as JSON, one document in all.
        show_progress: Whether to show progress; None: where standard error is a terminal.
    """

    def __init__(self, *, as_json: bool = False, show_progress: bool | None = None) -> None:
        self._as_json: Final = as_json
        self._out: Final[Printer] = make_printer(sys.stdout)
        self._err: Final[Printer] = make_printer(sys.stderr)
        self._show_progress = sys.stderr.isatty() if show_progress is None else show_progress

    def result(self, document: JSONValue, blocks: Iterable[Block]) -> None:
        """Show a result, in the form that was asked for.

        Raises:
            OutputFailed: Standard output does not take it.
        """
        try:
            if self._as_json:
                self._document(document)
            else:
                for block in blocks:
                    self._out.show(block)
        except OSError as error:
            give_up(sys.stdout)
            raise OutputFailed(error) from None

    def failure(self, failure: Failure) -> None:
        """Show why there is no result: to people always, to programs if they asked for JSON."""
        self.line(Label.ERROR, failure.text)
        for text in failure.details:
            self.line(Label.DETAIL, text)
        for text in failure.hints:
            self.line(Label.HINT, text)
        if self._as_json:
            try:
                self._document(failure.document())
            except OSError as error:
                give_up(sys.stdout)
                raise OutputFailed(error) from None

    def undeliverable(self, failed: OutputFailed) -> int:
        """Say so where that is news, and return the exit status."""
        if isinstance(failed.error, BrokenPipeError):  # whoever has read enough knows
            return Status.BROKEN_PIPE
        self.line(Label.ERROR, f"the result cannot be written: {failed.error.strerror}")
        return Status.PROTOCOL

    def line(self, label: Label, text: str) -> None:
        """Write a line to standard error. That nobody reads it changes nothing."""
        try:
            self._err.line(label, text)
        except OSError:
            give_up(sys.stderr)

    @contextlib.contextmanager
    def progress(self) -> Generator[Progress, None, None]:
        """Show progress while this is open, if it is to be shown at all."""
        shown: Progress = self._err.progress() if self._show_progress else NoProgress()
        try:
            yield shown
        finally:
            shown.close()

    @staticmethod
    def _document(document: JSONValue) -> None:
        # ASCII only: nothing in it can do anything to a terminal.
        print(json.dumps(document, indent=2), flush=True)


class NoProgress:
    """Progress that nobody wants to see."""

    def show(self, progress: float, total: float | None, message: str | None) -> None:
        """Show nothing."""

    def close(self) -> None:
        """There is nothing to take away."""
