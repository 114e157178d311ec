"""The programs in `docs/examples/stacks`, started as a reader would start them."""

import re
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

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
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with subprocess.Popen(
        program(name, *arguments, str(port)), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        try:
            while process.poll() is None and not _listens(port):
                pass  # each look takes a system call or two, and a start less than a second
            yield f"http://127.0.0.1:{port}/mcp"
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
