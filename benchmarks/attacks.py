"""A server over HTTP under attack: the memory that it uses, and its responses meanwhile.

Each attack has a fresh server process and a process that attacks. Beside them an honest client
makes one call after the other, each on a connection of its own, and measures their time; the memory
is that of the process as the system reports it.
"""

from __future__ import annotations

import re
import select
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import attrs

from ._http_client import tool_call
from ._measure import ROOT, Effort, Rounds, Row

_MIB: Final = 1024 * 1024
_PAUSE: Final = 0.02
_SECONDS: Final = 60.0
_CALL: Final = tool_call("echo", text="hello")


@attrs.frozen(kw_only=True)
class Plan:
    """One attack, at full strength and in a short form.

    Attributes:
        hold: Seconds to go on for, once it is at full strength; it may end before.
        bound: The most memory that the server may use in addition, in MiB.
    """

    attack: str
    title: str
    what: str
    full: int
    quick: int
    hold: float
    bound: float


PLANS: Final = (
    Plan(
        attack="heads",
        title="slow heads",
        what="connections",
        full=1_000,
        quick=10,
        hold=15,
        bound=16,
    ),
    Plan(
        attack="announced",
        title="bodies of 100 MB, announced",
        what="connections",
        full=100,
        quick=2,
        hold=30,
        bound=16,
    ),
    Plan(
        attack="chunked",
        title="bodies of 100 MB, chunked",
        what="connections",
        full=100,
        quick=2,
        hold=60,
        bound=320,
    ),
    Plan(
        attack="stalled",
        title="bodies of 16 MB that stop at 15",
        what="connections",
        full=100,
        quick=2,
        hold=80,
        bound=320,
    ),
    Plan(
        attack="sessions",
        title="idle sessions",
        what="sessions",
        full=10_000,
        quick=20,
        hold=2,
        bound=64,
    ),
    Plan(
        attack="streams",
        title="open GET streams",
        what="sessions with a stream",
        full=1_000,
        quick=10,
        hold=5,
        bound=24,
    ),
    Plan(
        attack="unread",
        title="answers of 300 kB that nobody reads",
        what="connections",
        full=1_000,
        quick=5,
        hold=45,
        bound=400,
    ),
    Plan(
        attack="flood",
        title="progress that nobody reads",
        what="connections",
        full=20,
        quick=2,
        hold=45,
        bound=320,
    ),
    Plan(
        attack="storm",
        title="a reconnect storm",
        what="clients, five times each",
        full=1_000,
        quick=10,
        hold=60,
        bound=24,
    ),
)


class Watched:
    """The server's process, and the measurements of an honest client."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.latencies: list[float] = []
        self.failed = 0
        self._process = process
        self.port = port

    def resident(self, field: str = "VmRSS") -> float:
        """The memory of the process, in MiB; `VmHWM` is its maximum."""
        status = Path(f"/proc/{self._process.pid}/status").read_text("ascii")
        found = re.search(rf"{field}:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024 / _MIB

    def call(self) -> None:
        """One honest call on a connection of its own."""
        start = time.perf_counter()
        try:
            with socket.create_connection(("127.0.0.1", self.port), _SECONDS) as connection:
                connection.sendall(_CALL)
                answered = connection.recv(65_536).startswith(b"HTTP/1.1 200")
        except OSError:
            answered = False
        if answered:
            self.latencies.append(time.perf_counter() - start)
        else:
            self.failed += 1

    def call_for(self, seconds: float, until: IO[bytes] | None = None) -> bool:
        """Call from time to time. Returns whether `until` had output before the end."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            self.call()
            if until is None:
                time.sleep(_PAUSE)  # between two honest calls
            elif select.select([until], [], [], _PAUSE)[0]:
                return True
        return False


@contextmanager
def _python(*command: str, ends_by: signal.Signals) -> Generator[Any, None, None]:
    """A process of ours, which ends by itself when it is told to."""
    with subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as process:
        try:
            yield process
            process.send_signal(ends_by)
            process.wait(_SECONDS)
        finally:
            process.kill()


def _attack(plan: Plan, number: int) -> Row:
    """The row of one attack."""
    settle = 0.3 if number < plan.full else 3.0
    server = _python(
        "benchmarks.servers.attacked", "--connections", str(number + 100), ends_by=signal.SIGTERM
    )
    with server as process:
        watched = Watched(process, int(process.stdout.readline()))
        watched.call_for(settle / 2)
        before = watched.resident()
        normal = statistics.median(watched.latencies)
        watched.latencies.clear()
        said = _raid(watched, plan, number)
        latencies = sorted(watched.latencies)
        failed = f", {watched.failed} FAILED" if watched.failed else ""
        peak = watched.resident("VmHWM")
        watched.call_for(settle)
        after = watched.resident()
    slowest = latencies[-1] * 1e3
    spread = (
        f"{before:.0f}, {peak:.0f}, {after:.0f} MiB before, at most, after; "
        f"{len(latencies)} honest calls answered{failed}, median "
        f"{statistics.median(latencies) * 1e3:.1f} ms (else {normal * 1e3:.1f}), "
        f"slowest {slowest:.0f} ms; {said}"
    )
    return Row(
        name=f"attack: {plan.title}",
        codec="json",
        direction=f"{number:,} {plan.what}",
        value=peak - before,
        unit="MiB",
        bound=plan.bound,
        spread=spread,
    )


def _raid(watched: Watched, plan: Plan, number: int) -> str:
    """Run the attack to its end; returns the last output of the attacker."""
    command: Sequence[str] = (
        "benchmarks.attackers",
        plan.attack,
        f"--port={watched.port}",
        f"--number={number}",
    )
    with _python(*command, ends_by=signal.SIGTERM) as attacker:
        if not watched.call_for(_SECONDS * 2, attacker.stdout):
            raise TimeoutError(f"{plan.title}: the attack never came to its full strength")
        said = attacker.stdout.readline()
        if said == b"ready\n":
            if not watched.call_for(plan.hold if number == plan.full else 0.5, attacker.stdout):
                attacker.stdin.close()
                watched.call_for(_SECONDS, attacker.stdout)
            said = attacker.stdout.readline()
        return str(said, "ascii").strip() or "all let go"


def rows(effort: Effort, kept: Rounds) -> list[Row]:
    """One for each attack."""
    return [_attack(plan, effort.pick(plan.full, plan.quick)) for plan in PLANS]
