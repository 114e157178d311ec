"""Starts the programs in `docs/examples/stacks` in the way that the pages tell readers."""

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
"""A line that a server logs for each request, or for each that was answered with an error."""


def program(name: str, *arguments: str | Path) -> list[str]:
    """The command that runs one of the examples, where warnings are errors."""
    return [sys.executable, "-W", "error", str(STACKS / f"{name}.py"), *map(str, arguments)]


@contextmanager
def serving(name: str, *arguments: str | Path) -> Generator[str]:
    """Run an example on a free port until the block is left, and give its URL."""
    with started(program(name, *arguments)) as (url, _):
        yield url


@contextmanager
def waiting(name: str) -> Generator[tuple[str, IO[bytes]]]:
    """Run an example whose handler waits, and give its URL and its output.

    The output tells how the handler ended.
    """
    command = [sys.executable, "-W", "error", "-m", "tests.support.programs.waiting_stack", name]
    with started(command) as served:
        yield served


@contextmanager
def started(command: list[str]) -> Generator[tuple[str, IO[bytes]]]:
    """Run a server, and give its URL and its standard output.

    The port, which is free, is the last argument of the command.
    """
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
                    process.wait(0.05)  # it has ended; its error output is shown below
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
