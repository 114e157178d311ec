"""What a side says of its own capabilities, revision by revision."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sansmcp import LEGACY_REVISIONS, ClientConnection, JSONObject
from sansmcp.testing import Pair

CLIENT: JSONObject = {
    "roots": {"listChanged": True},
    "sampling": {"tools": {}},
    "elicitation": {"form": {}, "url": {}},
    "tasks": {"list": {}, "requests": {"sampling": {"createMessage": {}}}},
    "experimental": {"tools": {"tasks": 1}},
}
EXPECTED: dict[str, JSONObject] = {
    "2024-11-05": {"roots": {"listChanged": True}, "sampling": {}},
    "2025-03-26": {"roots": {"listChanged": True}, "sampling": {}},
    "2025-06-18": {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}},
    "2025-11-25": {name: value for name, value in CLIENT.items() if name != "experimental"},
}


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
def test_a_client_declares_only_what_the_offered_revision_has(revision: str) -> None:
    """A server that is told of a later feature uses it, and would then be accused of it."""
    client = ClientConnection(
        info={"name": "c", "version": "1"}, capabilities=CLIENT, revisions=[revision]
    )
    client.start()
    params: Any = json.loads(client.data_to_send())["params"]

    extension = {"experimental": CLIENT["experimental"]}
    assert params["capabilities"] == {**EXPECTED[revision], **extension}


def test_a_server_declares_only_what_the_agreed_revision_has() -> None:
    """`completions` came in 2025-03-26; a client of 2024-11-05 has never heard of it."""
    pair = Pair(revision="2024-11-05")

    assert "completions" not in pair.client.peer.capabilities
    assert "tools" in pair.client.peer.capabilities
