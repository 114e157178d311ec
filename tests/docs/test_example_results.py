"""The server on the page about results answers everything that it declares."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS
from tests.support.command_line import Done, document, sansmcp

PROGRAM = Path(__file__).parent.parent.parent / "docs" / "examples" / "results.py"
SERVER = ("--", sys.executable, PROGRAM, "serve")
REVISIONS = (*LEGACY_REVISIONS, *MODERN_REVISIONS)


def asked(method: str, params: Any, revision: str = "2026-07-28") -> Done:
    line = ["request", method, json.dumps(params), "--json", "--revision", revision]
    return sansmcp(*line, *SERVER)


@pytest.mark.parametrize("revision", REVISIONS)
def test_inspect_finds_nothing_wrong(revision: str) -> None:
    """A reader would look for a fault in the example."""
    done = sansmcp("inspect", "--json", "--revision", revision, *SERVER)
    found = document(done)

    assert (done.returncode, done.stderr) == (0, "")
    assert [tool["name"] for tool in found["tools"]] == ["forecast"]
    assert found["tools"][0]["outputSchema"]["type"] == "object"
    errors = found["errors"]
    assert {name: error["code"] for name, error in errors.items()} == {
        "resources/templates/list": -32601  # which no capability promises
    }


@pytest.mark.parametrize("revision", [LEGACY_REVISIONS[-1], *MODERN_REVISIONS])
def test_listed_things_can_be_had(revision: str) -> None:
    """A server that lists an item which it does not have teaches a mistake."""
    found = document(sansmcp("inspect", "--json", "--revision", revision, *SERVER))
    for resource in found["resources"]:
        result = document(asked("resources/read", {"uri": resource["uri"]}, revision))
        assert result["contents"][0]["uri"] == resource["uri"]
    (prompt,) = found["prompts"]
    params = {"name": prompt["name"], "arguments": {"city": "Lima"}}
    (message,) = document(asked("prompts/get", params, revision))["messages"]
    assert "Lima" in message["content"]["text"]


def test_result_is_what_the_output_schema_says() -> None:
    """The page says that structured content matches the schema."""
    schema = document(sansmcp("inspect", "--json", *SERVER))["tools"][0]["outputSchema"]
    value = document(asked("tools/call", {"name": "forecast", "arguments": {"city": "Lima"}}))[
        "structuredContent"
    ]

    assert value.keys() == schema["properties"].keys() == set(schema["required"])
    assert isinstance(value["city"], str)
    assert isinstance(value["degrees"], float)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({}, "forecast needs the argument city, a string"),
        ({"arguments": {}}, "forecast needs the argument city, a string"),
        ({"arguments": {"city": 5}}, "forecast needs the argument city, a string"),
        ({"arguments": {"city": "Atlantis"}}, "there is no forecast for 'Atlantis', only for "),
    ],
)
def test_wrong_argument_is_a_result_that_the_model_reads(params: Any, text: str) -> None:
    """It was a KeyError in the handler, and `internal error` for the caller."""
    result = document(asked("tools/call", {"name": "forecast", **params}))

    assert result["isError"] is True
    assert result["content"][0]["text"].startswith(text)


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/call", {"name": "x"}, -32602),
        ("resources/read", {"uri": "weather://x/now"}, -32602),
        ("prompts/get", {"name": "travel"}, -32602),
        ("resources/templates/list", {}, -32601),
    ],
)
def test_what_there_is_not_is_an_error(method: str, params: Any, code: int) -> None:
    """-32601 is for an unknown method, -32602 for an unknown item."""
    assert document(asked(method, params))["error"]["code"] == code
