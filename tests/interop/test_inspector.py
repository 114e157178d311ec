"""npm's inspector in its command-line mode, on version 2 of the TypeScript SDK, as a client."""

import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from sansmcp import Side
from sansmcp_io._demo_server import TOOL_NAMES
from tests.interop.peers import ROOT, inspector
from tests.interop.reviewed import accusations, assert_accused, assert_reported

DEMO = ("-m", "sansmcp_io", "serve-demo")
FEATURES = ("-m", "tests.interop.hand_driven_server")


def inspect(home: Path, server: tuple[str, ...], *options: str) -> tuple[int, Any]:
    """The exit status, and the result or the error as the inspector prints it."""
    command = [*inspector().command, "--cli", sys.executable, *server, *options]
    done = subprocess.run(
        [*command, "--quiet", "--format", "json"],
        cwd=ROOT,
        env={**os.environ, "HOME": str(home)},  # it keeps settings there
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    return done.returncode, json.loads(done.stderr if done.returncode else done.stdout)


def inspect_features(folder: Path, *options: str, reports: Collection[str] = ()) -> tuple[int, Any]:
    """The same for the server that offers everything, which had `reports` to make about it."""
    file = folder / "reports"
    outcome = inspect(folder, (*FEATURES, str(file)), *options)
    assert_reported("inspector", file.read_text().split(), reports)
    assert_accused("inspector", Side.CLIENT, accusations(file))
    return outcome


def test_it_lists_all_tools_of_the_demo(tmp_path: Path) -> None:
    """Our cursors lead it through all pages."""
    status, printed = inspect(tmp_path, DEMO, "--method", "tools/list")
    assert status == 0
    assert [tool["name"] for tool in printed["result"]["tools"]] == TOOL_NAMES


def test_it_calls_a_tool_that_asks_for_its_roots(tmp_path: Path) -> None:
    """It answers our question in the midst of its own."""
    options = ("--method", "tools/call", "--tool-name", "ask")
    status, printed = inspect(tmp_path, DEMO, *options)
    assert status == 0
    assert printed["result"]["content"] == [{"type": "text", "text": "roots: "}]


def test_it_probes_for_the_newest_era_first(tmp_path: Path) -> None:
    """Our refusal must be one that leads it back to the handshake."""
    options = ("--protocol-era", "auto", "--method", "tools/call", "--tool-name", "change")
    status, printed = inspect_features(tmp_path, *options, reports={"LIFE-005"})
    assert status == 0
    assert printed["result"]["content"] == [{"type": "text", "text": "changed"}]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ("--method", "resources/list"),
            {"resources": [{"uri": f"test://notes/{n}", "name": str(n)} for n in (1, 2, 3)]},
        ),
        (
            ("--method", "resources/templates/list"),
            {"resourceTemplates": [{"name": "greeting", "uriTemplate": "test://greetings/{name}"}]},
        ),
        (
            ("--method", "resources/read", "--uri", "test://greetings/Ada"),
            {
                "contents": [
                    {
                        "uri": "test://greetings/Ada",
                        "mimeType": "text/plain",
                        "text": "Hello, Ada!",
                    }
                ]
            },
        ),
        (
            ("--method", "prompts/get", "--prompt-name", "greet", "--prompt-args", "name=Ada"),
            {
                "messages": [
                    {"role": "user", "content": {"type": "text", "text": "Please greet Ada."}}
                ]
            },
        ),
        (("--method", "logging/setLevel", "--log-level", "error"), {}),
    ],
    ids=["resources", "templates", "resource", "prompt", "level"],
)
def test_it_uses_what_a_server_of_ours_offers(
    options: tuple[str, ...], expected: object, tmp_path: Path
) -> None:
    """What it prints is what our server sent."""
    assert inspect_features(tmp_path, *options) == (0, {"result": expected})


def test_it_shows_our_errors(tmp_path: Path) -> None:
    """An error of ours is one to it, and no broken connection."""
    options = ("--method", "resources/read", "--uri", "test://missing")
    status, printed = inspect_features(tmp_path, *options)
    assert status != 0
    assert printed["error"]["message"] == "no resource test://missing"
