"""The rules of stdio that do not depend on a loop, for servers and for those who start them.

For a server: which descriptors it speaks on, and where everything else that writes goes. For a
client: what a server process inherits, and how it and all that it started are ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from subprocess import DEVNULL, PIPE
from typing import Any, Final, Literal, TypeAlias

from ._common.anomalies import LOGGER
from ._common.descriptors import Sink, Source
from ._common.stderr import LOOK_AGAIN_SECONDS

DEFAULT_TERMINATE_AFTER: Final = 2.0
"""Seconds that a server has to end after its input was closed; then it gets SIGTERM."""
DEFAULT_KILL_AFTER: Final = 2.0
"""Seconds that a server has to end after SIGTERM; then it gets SIGKILL."""

StderrMode: TypeAlias = Literal["inherit", "capture", "ignore"]
"""What happens to a server's standard error: `inherit` writes it to that of this process, `capture`
keeps its end for errors (and hands each line to a callback, if there is one), `ignore` drops it."""

SAFE_VARIABLES: Final = frozenset(
    {
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
        # Windows, where names have no case and programs fail without most of these
        "APPDATA",
        "COMSPEC",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "NUMBER_OF_PROCESSORS",
        "OS",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "PROGRAMDATA",
        "PROGRAMFILES",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "USERNAME",
        "USERPROFILE",
        "WINDIR",
    }
)
"""The variables that a server process inherits, besides those whose names begin with `LC_`."""

HAS_PROCESS_GROUPS: Final = hasattr(os, "killpg")


def server_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a server process: what is safe to inherit, and `env`.

    A server is often a program of others. It must not learn the tokens and keys that happen
    to be in the environment of the client, unless they are given to it.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if (name.upper() in SAFE_VARIABLES or name.startswith("LC_"))
        and not value.startswith("()")  # a function of a shell: code, not a setting
    }
    return {**inherited, **(env or {})}


def process_options(
    *,
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
    stderr: StderrMode,
) -> dict[str, Any]:
    """The keyword arguments of `subprocess.Popen` for a server process.

    It becomes the leader of a session, and so of a process group, of its own: the group can be
    ended as a whole, and Ctrl-C in a terminal reaches the client only, which ends its servers in
    order. No shell is involved.
    """
    return {
        "stdin": PIPE,
        "stdout": PIPE,
        "stderr": {"inherit": None, "capture": PIPE, "ignore": DEVNULL}[stderr],
        "env": server_environment(env),
        "cwd": cwd,
        **({"start_new_session": True} if HAS_PROCESS_GROUPS else {}),
    }


def signal_group(pid: int, number: int) -> bool:
    """Send a signal to the process group that a server leads or has led.

    Returns:
        Whether there is a process left in it. The number of a group is not reused while there is.
    """
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # the group of others by now, or (on macOS) only zombies
        return False
    return True


def group_is_alive(pid: int) -> bool:
    """Whether a process is left in the group."""
    return signal_group(pid, 0)


_TERMINATE: Final = signal.SIGTERM
_KILL: Final[int] = getattr(signal, "SIGKILL", signal.SIGTERM)


class ProcessEnd:
    """Ends a server process, and the processes that it has started and left behind.

    It never waits. Its methods are generators that yield how long to wait, and send the next signal
    when they are resumed.

    Args:
        pid: The process.
        kill: Kills the process where there are no process groups.
        terminate_after: Seconds that the server has to end after its input was closed.
        kill_after: Seconds that it has to end after SIGTERM.

    Attributes:
        ended_by: `end of input`, or the last signal that was needed: `terminate` or `kill`.
    """

    def __init__(
        self,
        pid: int,
        kill: Callable[[], object],
        *,
        terminate_after: float,
        kill_after: float,
    ) -> None:
        self.ended_by: str = "end of input"
        self._pid: Final = pid
        self._kill: Final = kill
        self._terminate_after: Final = terminate_after
        self._kill_after: Final = kill_after
        self._has_group: bool = HAS_PROCESS_GROUPS

    def end_process(self) -> Generator[float, None, None]:
        """Yield the seconds to wait for the end of the process, with a signal after each wait.

        Close its input first, and wait without a limit after the last signal.

        Keeps STDIO-013, STDIO-014.
        """
        for name, number, seconds in (
            ("terminate", _TERMINATE, self._terminate_after),
            ("kill", _KILL, self._kill_after),
        ):
            yield seconds
            self.ended_by = name
            LOGGER.warning("the server does not end by itself: %s", name)
            if HAS_PROCESS_GROUPS:
                signal_group(self._pid, number)
            else:
                self._kill()

    def process_ended(self) -> None:
        """Note the end of the process: its number is free, unless its group has other members."""
        self._has_group = self._has_group and group_is_alive(self._pid)

    def end_group(self, now: Callable[[], float]) -> Generator[float, None, None]:
        """End the rest of its process group, and yield the seconds to sleep before each look.

        Args:
            now: Tells the time, in seconds.
        """
        if self._has_group and signal_group(self._pid, _TERMINATE):
            until = now() + min(self._kill_after, DEFAULT_KILL_AFTER)
            while group_is_alive(self._pid):
                if now() >= until:
                    signal_group(self._pid, _KILL)
                    break
                yield LOOK_AGAIN_SECONDS  # no system tells when a group has ended
        self._has_group = False


def _empty_input() -> int:
    """A descriptor that is at its end for everyone, even where the null device is missing."""
    reading, writing = os.pipe()
    os.close(writing)
    return reading


def _put_in_place(descriptor: int, number: int) -> None:
    """Move a descriptor to this number, for child processes as well."""
    os.dup2(descriptor, number)
    os.close(descriptor)


@contextmanager
def taken_standard_streams() -> Generator[tuple[Source, Sink], None, None]:
    """Take standard input and output away from everyone else, and give them back in the end.

    Inside, descriptor 0 is empty and descriptor 1 is standard error, also for child processes and
    for code that is not Python: one stray `print` would break the conversation. The caller closes
    the two ends.

    Keeps STDIO-002.

    Raises:
        RuntimeError: Standard input or output is closed.
    """
    # A descriptor that was closed when Python started may be any other file by now.
    if sys.__stdin__ is None or sys.__stdout__ is None:
        raise RuntimeError("standard input and standard output must be open")
    kept_input, kept_output = os.dup(0), os.dup(1)
    try:
        source, sink = Source(0), Sink(1)
        _put_in_place(_empty_input(), 0)
        _put_in_place(os.open(os.devnull, os.O_WRONLY) if sys.__stderr__ is None else os.dup(2), 1)
        # `sys.stdout` would keep lines back; standard error shows them as they come.
        with contextlib.redirect_stdout(sys.stderr):
            yield source, sink
    finally:
        with contextlib.suppress(OSError, ValueError):  # no process reads it, or it was closed
            if sys.stdout is not None:
                sys.stdout.flush()  # printed past the redirection: it goes where the rest went
        os.dup2(kept_input, 0)
        os.dup2(kept_output, 1)
        os.close(kept_input)
        os.close(kept_output)
