"""`sansmcp tap`: passes bytes between a client and a server process, and judges them."""

from __future__ import annotations

import contextlib
import io
import queue
import signal
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from threading import Thread
from typing import Final, cast

from sansmcp import Side

from ..._common.descriptors import has_data
from ...stdio import HAS_PROCESS_GROUPS, signal_group
from .._diagnosis import not_started
from .._output.output import Output
from . import captures
from .files import CaptureFile, Notes, open_files
from .pumps import Ended, Exited, Pump, Read, TapEvent, TapEventQueue, standard_streams
from .recording import Recorder

NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126
"""The exit statuses of shells for a missing program, and for a program that cannot be started."""

_SIGNALS: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_SILENCE: Final = 0.5
"""Seconds without output after the end of the server, after which its output counts as ended."""


def tap(
    command: Sequence[str],
    *,
    trace: str | None = None,
    quiet: bool = False,
    jsonl: str | None = None,
) -> int:
    """Run the server between standard input and output, and return its exit status.

    If a signal has ended the server, the same signal ends this process.

    Args:
        command: Starts the server.
        trace: The file for trace and summary; None: standard error.
        quiet: Show no trace, only the summary.
        jsonl: The file for the capture; None: no capture.

    Raises:
        UsageError: A file cannot be opened, or is used for other output. Nothing was started.
    """
    for_trace, for_capture = open_files(trace, jsonl)
    notes = Notes(trace, for_trace)
    capture = None
    if jsonl is not None and for_capture is not None:
        capture = CaptureFile(
            jsonl, for_capture, notes, captures.header(datetime.now(UTC), command)
        )
    returncode = _Tap(notes, capture, quiet=quiet).run(command)
    if returncode < 0:
        _end_by(-returncode)
    return returncode if returncode >= 0 else 128 - returncode


def _end_by(number: int) -> None:
    """End by a signal, as the server did, so that the parent of this process sees the same."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # not on every system

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the server has crashed, not this process
    with contextlib.suppress(OSError, ValueError):  # some signals cannot be given an action
        signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(OSError, ValueError):
        signal.raise_signal(number)


class _Tap:
    """One run of the tap: the server process, a thread for each direction, and the recorder."""

    def __init__(self, notes: Notes, capture: CaptureFile | None, *, quiet: bool) -> None:
        self._notes = notes
        self._capture = capture
        self._recorder: Recorder | None = Recorder(
            None if quiet else notes.show, None if capture is None else capture.write
        )
        self._events = TapEventQueue()
        self._start = time.monotonic()
        self._child: subprocess.Popen[bytes] | None = None
        self._signals: list[int] = []
        self._was_signalled = False

    def run(self, command: Sequence[str]) -> int:
        """Run the server, and return the return code of its process."""
        for name in _SIGNALS:
            number = getattr(signal, name, None)
            # A signal that this process was started to ignore is ignored by the server, too.
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._pass_on)
        try:
            # The server is in a process group of its own: Ctrl-C in a terminal is a signal for
            # this process only, which passes it on, so that the server gets each signal once.
            self._child = child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                close_fds=False,  # the server inherits what this process has inherited
                process_group=0 if HAS_PROCESS_GROUPS else None,
            )
        except (OSError, ValueError) as error:
            return self._not_started(command, error)
        for number in self._signals:
            self._send(child, number)
        return self._pass_bytes(child)

    def _not_started(self, command: Sequence[str], error: OSError | ValueError) -> int:
        failed = error if isinstance(error, OSError) else OSError(str(error))
        status = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
        Output().failure(not_started(failed, command))
        return status

    def _pass_on(self, number: int, _frame: object) -> None:
        self._was_signalled = True
        if self._child is None:
            self._signals.append(number)
        else:
            self._send(self._child, number)

    @staticmethod
    def _send(child: subprocess.Popen[bytes], number: int) -> None:
        if child.returncode is not None:  # its number may belong to another process now
            return
        if HAS_PROCESS_GROUPS:
            signal_group(child.pid, number)
        else:
            child.terminate()

    # ------------------------------------------------------------------------ while it runs

    def _pass_bytes(self, child: subprocess.Popen[bytes]) -> int:
        own_input, own_output = standard_streams()
        child_input, child_output = cast(io.FileIO, child.stdin), cast(io.FileIO, child.stdout)
        to_server = Pump(Side.CLIENT, own_input, child_input, self._events, self._clock)
        to_client = Pump(Side.SERVER, child_output, own_output, self._events, self._clock)
        waiting = Thread(target=self._wait_for, args=(child,), daemon=True)
        for thread in (to_server, to_client, waiting):
            thread.start()
        returncode = self._watch(to_client, child_output)
        self._finish()
        return returncode

    def _clock(self) -> float:
        return time.monotonic() - self._start

    def _wait_for(self, child: subprocess.Popen[bytes]) -> None:
        self._events.add(Exited(child.wait(), self._clock()))

    def _watch(self, to_client: Pump, child_output: io.FileIO) -> int:
        """Record events until the server has ended and all of its output was passed on."""
        events = self._events
        returncode: int | None = None
        output_ended = False
        while returncode is None or not output_ended:
            try:
                event = events.take(None if returncode is None else _SILENCE)
            except queue.Empty:
                if returncode is not None and self._is_over(to_client, child_output):
                    break
                continue
            match event:
                case Ended(side=Side.SERVER):
                    output_ended = True
                case Exited():
                    returncode = event.returncode
                case _:
                    pass
            self._record(event)
            events.done(event)
        assert returncode is not None
        return returncode

    def _record(self, event: TapEvent) -> None:
        """Record an event. A failure ends the recording, not the conversation."""
        recorder = self._recorder
        if recorder is None:
            return
        try:
            match event:
                case Read():
                    recorder.sent(event.side, event.data, event.time)
                case Ended(by_itself=True):
                    recorder.ended(event.side, event.time)
                case Ended():
                    recorder.refused(event.side, event.time)
                case Exited():
                    recorder.exited(event.returncode, event.time)
        except Exception as error:  # such as MemoryError
            self._recorder = None
            self._notes.warn(f"nothing more is seen, shown or kept from here on: {error!r}")

    def _is_over(self, to_client: Pump, child_output: io.FileIO) -> bool:
        """Whether to end although the output of the server is still open.

        The server has ended, and no output came for a while. Either the client does not read: then
        it gets more time, unless a signal has arrived. Or a process that the server has started
        and left behind holds its output open.
        """
        if to_client.is_busy:
            return self._was_signalled
        with contextlib.suppress(ValueError):  # the file was closed meanwhile
            return not has_data(child_output)
        return False

    def _finish(self) -> None:
        if self._recorder is not None:
            try:
                self._notes.summary(list(self._recorder.close(self._clock())))
            except Exception as error:  # as above: the server's exit status is what counts
                self._notes.warn(f"there is no summary: {error!r}")
        if self._capture is not None:
            self._capture.close()
        self._notes.close()
