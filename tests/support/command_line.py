"""Runs the command `sansmcp` as a user does, and returns its output and its exit status."""

import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.forks import run_forked

BIN = Path(sys.executable).parent / "sansmcp"
PROGRAMS = Path(__file__).parent / "programs"
DEMO = [sys.executable, "-m", "sansmcp_io", "serve-demo"]
MCP = [sys.executable, str(PROGRAMS.parents[1] / "peers" / "mcp_server.py")]
SECONDS = 60

WITHOUT_RICH = (
    sys.executable,
    "-c",
    "import sys; sys.modules['rich'] = None\n"
    "from sansmcp_io.cli import main; sys.exit(main(sys.argv[1:]))",
)

Done = subprocess.CompletedProcess[str]


def sansmcp(*arguments: str | Path, stdin: str = "", **env: str) -> Done:
    """Run the command with pipes, as in a script.

    With variables of its own, which may be for the interpreter, it is started as a shell does;
    otherwise it is forked, which takes half the time.
    """
    if not env:
        forked = run_forked("sansmcp_io", arguments, stdin=stdin.encode(), seconds=SECONDS)
        out, error = forked.stdout.decode(), forked.stderr.decode()
        return Done(forked.args, forked.returncode, out, error)
    return subprocess.run(
        [BIN, *arguments],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        env={**os.environ, **env},
    )


def scripted(**script: object) -> list[str]:
    """The command of a server that does what its script says. See `scripted_server.py`."""
    return [sys.executable, str(PROGRAMS / "scripted_server.py"), json.dumps(script)]


def modern(capabilities: object, **discovered: object) -> dict[str, Any]:
    """The result of `server/discover` for a scripted server of revision 2026-07-28."""
    return {
        "server/discover": {
            "supportedVersions": ["2026-07-28"],
            "capabilities": capabilities,
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1"}},
            **discovered,
        }
    }


def document(done: Done) -> Any:
    """The JSON document on standard output, which holds nothing else."""
    return json.loads(done.stdout)


def hear_signals() -> None:
    """Give a child process the default handlers of signals, which it might not inherit.

    A shell ignores SIGINT and SIGQUIT in processes that it starts in the background, and `nohup`
    ignores SIGHUP.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def without_a_size(environment: Mapping[str, str]) -> dict[str, str]:
    """A copy of an environment without the variables that tell the size of the terminal.

    Rich uses these variables before it asks the terminal. A shell may pass them on, and so does
    every process that has loaded GNU readline, such as those in which pytest runs the tests.
    """
    return {name: environment[name] for name in environment if name not in ("COLUMNS", "LINES")}


class Terminal:
    """A terminal for a process, with what the process writes to it and a way to press keys."""

    def __init__(self, *command: str | Path, columns: int = 100) -> None:
        self._own, other = os.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.written = ""
        self.process = subprocess.Popen(
            command,
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
            preexec_fn=self._take,
            env={**without_a_size(os.environ), "TERM": "xterm-256color", "NO_COLOR": ""},
        )
        os.close(other)

    @staticmethod
    def _take() -> None:
        """Make the terminal the controlling one, so that Ctrl-C sends a signal to all processes."""
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        hear_signals()

    def read_until(self, pattern: str) -> None:
        """Read until the shown text matches the pattern, and fail if the process ends before."""
        while re.search(pattern, plain(self.written)) is None:
            data = self._read()
            assert data, f"it ended without {pattern!r}: {plain(self.written)}"

    def press(self, keys: bytes) -> None:
        """Press keys; keys such as Ctrl-C send their signals, as if a user had pressed them."""
        os.write(self._own, keys)

    def finish(self) -> tuple[int, str]:
        """Return the exit status and everything that was written, without escape sequences."""
        while self._read():
            pass
        os.close(self._own)
        return self.process.wait(SECONDS), plain(self.written)

    def _read(self) -> bytes:
        try:
            data = os.read(self._own, 65536)
        except OSError:  # Linux raises this when the other end is closed
            return b""
        self.written += data.decode("utf-8", "replace")
        return data


def plain(text: str) -> str:
    """A text for a terminal without its escape sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r\n", "\n")
