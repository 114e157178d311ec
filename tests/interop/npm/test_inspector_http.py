"""npm's inspector in its command-line mode, as a client over HTTP."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from sansmcp_io._demo.server import TOOL_NAMES
from tests.interop.peers import ROOT, inspector

SERVER = (sys.executable, "-m", "sansmcp_io", "serve-demo", "--http", "0")


@pytest.fixture(scope="module")
def url() -> Generator[str, None, None]:
    """The URL that the demo server prints."""
    with subprocess.Popen(SERVER, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        try:
            yield line.removeprefix("serving ").strip()
        finally:
            process.terminate()
    assert process.returncode == 0


def inspect(home: Path, url: str, *options: str) -> Any:
    command = [*inspector().command, "--cli", url, "--transport", "http", *options]
    done = subprocess.run(
        [*command, "--quiet", "--format", "json"],
        cwd=ROOT,
        env={**os.environ, "HOME": str(home)},  # it keeps settings there
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["result"]


@pytest.mark.parametrize("era", ["legacy", "auto", "modern"])
def test_it_lists_all_tools_over_http(tmp_path: Path, url: str, era: str) -> None:
    """The listing must work with and without a session."""
    result = inspect(tmp_path, url, "--protocol-era", era, "--method", "tools/list")

    assert [tool["name"] for tool in result["tools"]] == TOOL_NAMES


def test_it_calls_a_tool_over_http(tmp_path: Path, url: str) -> None:
    """Progress and the response must come on one stream."""
    options = ("--method", "tools/call", "--tool-name", "progress")
    result = inspect(tmp_path, url, *options)

    assert result["content"] == [{"type": "text", "text": "3 steps"}]
