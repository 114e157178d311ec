"""Starts servers that misbehave, and finds the processes and descriptors that a test left open."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sansmcp import JSONObject

ROOT = Path(__file__).parent.parent.parent


def bad(*arguments: str) -> list[str]:
    """The command of one of the servers in `bad_servers`."""
    return [sys.executable, str(ROOT / "tests/support/programs/bad_servers.py"), *arguments]


def call_bad(text: str = "") -> tuple[str, JSONObject]:
    """A request that each of these servers answers."""
    return "tools/call", {"name": "echo", "arguments": {"text": text}}


def is_running(pid: int) -> bool:
    """Whether a process still runs. An orphan that has ended, and waits for init, does not run."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


_began_at = 0
"""The time at which the current test began, in ticks since the system was started."""


def begin_to_count() -> None:
    """Note the time at which a test begins, so that processes of earlier tests are not counted."""
    global _began_at
    _began_at = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def has_children() -> bool:
    """Whether a process that this test started still exists, also one that has ended unwaited."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):  # it has ended in the meantime
                # proc_pid_stat(5): the first field after the name is number 3.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parent, started_at = int(fields[1]), int(fields[19])
                if parent == os.getpid() and started_at > _began_at:
                    return True
    return False


def descriptors() -> set[tuple[int, str]]:
    """The descriptors that this process has open: their numbers, and what they refer to.

    A test compares these sets, and not the numbers of descriptors, since descriptors of an earlier
    test may be closed at any time.
    """
    found: set[tuple[int, str]] = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the descriptor of the directory itself
            found.add((int(number), os.readlink(f"/proc/self/fd/{number}")))
    return found


@pytest.fixture(scope="package", autouse=True)
def unmeasured_children() -> Iterator[None]:
    """Measure no coverage in the processes that the tests of a folder start.

    A folder imports this fixture in its `conftest` if it tests programs of other projects, or
    examples: the tests of the adapters run the same branches. With measuring, a process takes half
    as long again.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START"):
            patch.delenv(name, raising=False)
        yield
