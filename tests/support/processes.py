"""Starts misbehaving servers, and finds what processes have left, as the system tells it."""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from sansmcp import JSONObject

ROOT = Path(__file__).parent.parent.parent


def bad(*arguments: str) -> list[str]:
    """The command of one of the `bad_servers`."""
    return [sys.executable, str(ROOT / "tests/support/programs/bad_servers.py"), *arguments]


def call_bad(text: str = "") -> tuple[str, JSONObject]:
    """A request that each of them knows."""
    return "tools/call", {"name": "echo", "arguments": {"text": text}}


def is_running(pid: int) -> bool:
    """Whether it can still do something: an orphan that has ended waits for init to notice."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


_began_at = 0
"""When the test that runs has begun, in ticks since the system was started."""


def begin_to_count() -> None:
    """A test begins: what an earlier one has left is not its fault."""
    global _began_at
    _began_at = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def has_children() -> bool:
    """Whether a process that this test has started is left, be it only not waited for."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):  # it has ended meanwhile
                # proc_pid_stat(5): the fields after the name, of which the first is the third.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parent, started_at = int(fields[1]), int(fields[19])
                if parent == os.getpid() and started_at > _began_at:
                    return True
    return False


def descriptors() -> set[tuple[int, str]]:
    """The descriptors that this process has open, by their numbers and what they stand for.

    A test compares sets, not numbers of descriptors: another test may have left some open, which
    may be closed at any time.
    """
    found: set[tuple[int, str]] = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that of the directory itself
            found.add((int(number), os.readlink(f"/proc/self/fd/{number}")))
    return found
