"""Runs the command `sansmcp` as a user does: a process, its output, its exit status."""

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
    """Run it with pipes, as in a script."""
    return subprocess.run(
        [BIN, *arguments],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        env={**os.environ, **env},
    )


def scripted(**script: object) -> list[str]:
    """The command of a server that does what its script says; see `scripted_server.py`."""
    return [sys.executable, str(PROGRAMS / "scripted_server.py"), json.dumps(script)]


def modern(capabilities: object, **discovered: object) -> dict[str, Any]:
    """What a scripted server of revision 2026-07-28 answers to `server/discover`."""
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
    """The one JSON document on standard output."""
    return json.loads(done.stdout)


def hear_signals() -> None:
    """Give a child the default dispositions, which it would not inherit from every caller.

    A shell ignores SIGINT and SIGQUIT in what it starts in the background, `nohup` ignores SIGHUP.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def without_a_size(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment that leaves it to the terminal how large it is.

    Rich believes these variables first. A shell may hand them on, and so does every process that
    has loaded GNU readline: the processes among which pytest distributes the tests have them.
    """
    return {name: environment[name] for name in environment if name not in ("COLUMNS", "LINES")}


class Terminal:
    """A terminal that a process writes to, and whose keys may be pressed."""

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
        """The terminal becomes the controlling one, so that Ctrl-C is a signal to all."""
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        hear_signals()

    def read_until(self, pattern: str) -> None:
        """Read until what is shown matches; the end of the process fails it."""
        while re.search(pattern, plain(self.written)) is None:
            data = self._read()
            assert data, f"it ended without {pattern!r}: {plain(self.written)}"

    def press(self, keys: bytes) -> None:
        """The signals arrive as if a user had typed them."""
        os.write(self._own, keys)

    def finish(self) -> tuple[int, str]:
        """The exit status, and all that was written but for what moves and colours it."""
        while self._read():
            pass
        os.close(self._own)
        return self.process.wait(SECONDS), plain(self.written)

    def _read(self) -> bytes:
        try:
            data = os.read(self._own, 65536)
        except OSError:  # how Linux says that the other end is closed
            return b""
        self.written += data.decode("utf-8", "replace")
        return data


def plain(text: str) -> str:
    """What a terminal was sent, without the sequences that only it understands."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r\n", "\n")
