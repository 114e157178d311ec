"""The page on the command line shows what the command does."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import BIN, SECONDS

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = (DOCS / "howto" / "command-line.md").read_text("utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```$", PAGE, re.M | re.S)
EXAMPLES = [
    tuple(example.split("\n", 1))
    for block in BLOCKS
    for example in re.split(r"^\$ ", block, flags=re.M)[1:]
]


def run(command: str) -> str:
    """The output of a shell, with both streams in one."""
    done = subprocess.run(
        command,
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=SECONDS,
        cwd=DOCS / "examples",  # where the servers of the examples are
        env={
            **os.environ,
            "PATH": f"{BIN.parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "80",
        },
    )
    return done.stdout


@pytest.mark.parametrize(("command", "output"), EXAMPLES, ids=lambda text: text[:40])
def test_example_shows_what_the_command_prints(command: str, output: str) -> None:
    """People compare their screen with the page."""
    assert run(command) == output


def test_every_kind_of_failure_is_in_the_page() -> None:
    """Programs rely on that table."""
    package = Path(__file__).parent.parent.parent / "adapters" / "sansmcp_io" / "cli"
    sources = "".join(path.read_text("utf-8") for path in package.rglob("*.py"))
    kinds = set(re.findall(r"kind ?= ?\"([a-z-]+)\"", sources))

    assert len(kinds) >= 10
    assert kinds == set(re.findall(r"^\| `([a-z][a-z-]+)` \|", PAGE, re.M))
