"""Server processes that misbehave, and what is left of any process, as the system tells it."""

import os
import sys
from pathlib import Path

from sansmcp import JSONObject

ROOT = Path(__file__).parent.parent.parent


def bad(*arguments: str) -> list[str]:
    """The command of one of the `bad_servers`."""
    return [sys.executable, str(ROOT / "tests/support/bad_servers.py"), *arguments]


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


def has_children() -> bool:
    """Whether this process has any, be they only not waited for."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def descriptors() -> int:
    """How many descriptors this process has open."""
    return len(os.listdir("/proc/self/fd"))
