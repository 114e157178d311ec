"""npm's inspector in its command-line mode, on version 2 of the TypeScript SDK, as a client."""

from pathlib import Path
from typing import Any

import pytest

from sansmcp_io._demo.server import TOOL_NAMES
from tests.interop.npm.inspector import inspect
from tests.interop.reviewed import assert_told

DEMO = ("-m", "sansmcp_io", "serve-demo")
FEATURES = ("-m", "tests.interop.hand_driven_server")


def inspect_features(folder: Path, era: str, *options: str) -> tuple[int, Any]:
    """The same for the server with all features; asserts that it reported no breach."""
    file = folder / "reports"
    outcome = inspect(folder, (*FEATURES, str(file)), "--protocol-era", era, *options)
    assert_told("inspector", file)
    return outcome


def test_it_lists_all_tools_of_the_demo(tmp_path: Path) -> None:
    """Our cursors must lead it through all pages."""
    status, printed = inspect(tmp_path, DEMO, "--method", "tools/list")
    assert status == 0
    assert [tool["name"] for tool in printed["result"]["tools"]] == TOOL_NAMES


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_it_calls_a_tool_that_asks_for_its_roots(era: str, tmp_path: Path) -> None:
    """It must answer our question during its own call, with an empty list of roots."""
    options = ("--protocol-era", era, "--method", "tools/call", "--tool-name", "ask")
    status, printed = inspect(tmp_path, DEMO, *options)
    assert status == 0
    (content,) = printed["result"]["content"]
    assert content["text"].endswith("roots: ")


@pytest.mark.parametrize("era", ["legacy", "modern"])
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
    ],
    ids=["resources", "templates", "resource", "prompt"],
)
def test_it_uses_what_a_server_of_ours_offers(
    options: tuple[str, ...], expected: dict[str, Any], era: str, tmp_path: Path
) -> None:
    """Its output must be our server's result, except members that the newest revision adds."""
    status, printed = inspect_features(tmp_path, era, *options)
    assert status == 0
    added = {"_meta", "ttlMs", "cacheScope"} if era == "modern" else set[str]()
    assert {key: one for key, one in printed["result"].items() if key not in added} == expected


def test_it_sets_the_level_of_log_messages(tmp_path: Path) -> None:
    """Legacy revisions have a request for it, the newest one has not."""
    options = ("--method", "logging/setLevel", "--log-level", "error")
    assert inspect_features(tmp_path, "legacy", *options) == (0, {"result": {}})


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_it_shows_our_errors(era: str, tmp_path: Path) -> None:
    """Our error must reach it as an error, and not as a broken connection."""
    options = ("--method", "resources/read", "--uri", "test://missing")
    status, printed = inspect_features(tmp_path, era, *options)
    assert status != 0
    assert printed["error"]["message"] == "no resource test://missing"
