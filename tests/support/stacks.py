"""Starts the programs in `docs/examples/stacks` as a reader would."""

import re
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parent.parent.parent
STACKS = ROOT / "docs" / "examples" / "stacks"
ACCESS_LOG = re.compile(r" /(mcp)?( HTTP/1\.1\"?)? ")
"""What servers write of each request, or of those that are answered with an error."""


def program(name: str, *arguments: str | Path) -> list[str]:
    """The command that runs one of the examples, with warnings that are errors."""
    return [sys.executable, "-W", "error", str(STACKS / f"{name}.py"), *map(str, arguments)]


@contextmanager
def serving(name: str, *arguments: str | Path) -> Generator[str]:
    """An example that serves on the port that it is given, until it is stopped; gives its URL."""
    with started(program(name, *arguments)) as (url, _):
        yield url


@contextmanager
def waiting(name: str) -> Generator[tuple[str, IO[bytes]]]:
    """An example whose handler waits; gives its URL, and the output, which tells of its end."""
    command = [sys.executable, "-W", "error", "-m", "tests.support.programs.waiting_stack", name]
    with started(command) as served:
        yield served


@contextmanager
def started(command: list[str]) -> Generator[tuple[str, IO[bytes]]]:
    """A server on the port that is its last argument; gives its URL and its standard output."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with subprocess.Popen(
        [*command, str(port)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            while not _listens(port):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.05)  # it has ended: what it has said is told below
                    break
            yield f"http://127.0.0.1:{port}/mcp", process.stdout
        finally:
            process.terminate()
            complaints = [line.decode() for line in process.stderr]
    assert not [line for line in complaints if not ACCESS_LOG.search(line)], complaints


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except ConnectionRefusedError:
        return False
    return True
