"""The page "What is wrong with this server" shows what the commands print."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sansmcp_io.cli import main
from tests.support.command_line import BIN, SECONDS

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = (DOCS / "howto" / "whats-wrong.md").read_text("utf-8")
EXAMPLES = [
    tuple(example.split("\n", 1))
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.M | re.S)
    for example in re.split(r"^\$ ", block, flags=re.M)[1:]
]
CAPTURE = re.findall(
    r"^```(?:json|text)\n(.*?)^```$", (DOCS / "capture.md").read_text("utf-8"), re.M | re.S
)


def timeless(text: str) -> str:
    """The text without times and other values that differ between runs."""
    return re.sub(r"\d+\.\d{3,6}", "0.000", text)


def test_examples_show_what_the_commands_print(tmp_path: Path) -> None:
    """They run one after the other, since one reads the output of another."""
    shutil.copy(DOCS / "examples" / "careless_server.py", tmp_path)
    assert len(EXAMPLES) > 5
    for command, output in EXAMPLES:
        done = subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=SECONDS,
            env={**os.environ, "PATH": f"{BIN.parent}{os.pathsep}{os.environ['PATH']}"},
        )
        assert timeless(done.stdout) == timeless(output), command


@pytest.mark.parametrize(
    ("text", "rule"),
    list(zip(CAPTURE, ("STDIO-002", "HTTP-011", "STDIO-002"), strict=True)),
    ids=["capture", "http", "marked"],
)
def test_formats_are_shown_as_they_are_read(
    tmp_path: Path, text: str, rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other programs are written by that page."""
    path = tmp_path / "talk"
    path.write_text(text, "utf-8")

    assert main(["lint", "--json", str(path)]) in (0, 1)
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert any(one["kind"] == "violation" and one["rule"] == rule for one in found)
