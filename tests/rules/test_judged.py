"""The judge of all tests reports every message that is not valid in its era."""

from collections.abc import Iterator
from typing import Any

import pytest

from sansmcp import LEGACY_REVISIONS, ServerConnection, ToolsListChanged
from tests.support.judges.connection import judging
from tests.support.judges.schema import Transcript
from tests.support.modern import BOTH, envelope, modern, modern_server, requested
from tests.support.wire import (
    INITIALIZED,
    call,
    initialize,
    note,
    ready_server,
    receive,
    result,
    sent,
)

# The fixture that judges all tests would judge what is broken here on purpose.
pytestmark = pytest.mark.unjudged("each test judges for itself")

every_legacy_revision = pytest.mark.parametrize("revision", LEGACY_REVISIONS)
BROKEN: dict[str, Any] = {"tools": [{"name": 5}]}  # the library looks no deeper than at the list
LISTED: dict[str, Any] = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}


@pytest.fixture(autouse=True)
def judge() -> Iterator[None]:
    with judging():
        yield


def both(revision: str) -> ServerConnection:
    server = modern_server(revisions=BOTH)
    receive(server, initialize("hello", revision), INITIALIZED)
    sent(server)
    return server


def test_an_invalid_result_is_noticed_in_the_era_of_its_request() -> None:
    """A result must be judged by the era of its request, whatever other requests are open."""
    server = both("2025-11-25")
    for message in (call(0, "tools/list"), modern(1, "tools/list")):
        server.send_result(requested(server, message), BROKEN)
        with pytest.raises(AssertionError, match="ListToolsResult"):
            sent(server)
    server.send_result(requested(server, call(2, "tools/list")), LISTED)
    server.send_result(requested(server, modern(3, "tools/list")), LISTED)
    old, new = sent(server)
    assert "resultType" not in old["result"]
    assert new["result"]["resultType"] == "complete"


@every_legacy_revision
def test_a_modern_result_is_judged_as_one_beside_a_handshake(revision: str) -> None:
    """Questions are valid in the modern era only."""
    server = both(revision)
    request = requested(server, modern(1, "tools/call", {"name": "t"}))
    server.require_input(request, {"r": {"method": "roots/list"}}, state="s")
    (answer,) = sent(server)
    assert answer["result"]["resultType"] == "input_required"


def test_a_legacy_server_is_not_judged_by_an_envelope() -> None:
    """For a legacy server, the members of an envelope are plain `_meta`."""
    server = ready_server("2025-11-25")
    server.send_result(requested(server, modern(1, "tools/list")), LISTED)
    assert sent(server) == [result(1, LISTED)]


def test_notifications_are_judged_in_the_era_of_what_they_belong_to() -> None:
    """2024-11-05 has no acknowledgement, and the modern era no server that cancels calls."""
    server = both("2024-11-05")
    receive(
        server, modern(1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    )
    meta = envelope(progressToken="t", level="debug")
    request = requested(server, modern(2, "tools/call", {"name": "t"}, meta))
    server.send_progress(request, 1, total=2, message="half")
    server.send_log("error", "x", request=request)
    server.publish(ToolsListChanged())
    server.end_listener(server.listeners[0])
    methods = [message.get("method") for message in sent(server)]
    assert methods == [
        "notifications/subscriptions/acknowledged",
        "notifications/progress",
        "notifications/message",
        "notifications/tools/list_changed",
        "notifications/tools/list_changed",
        None,
        "notifications/cancelled",
    ]


def test_an_invalid_notification_is_noticed_beside_modern_requests() -> None:
    """It belongs to no modern request, so the handshake decides."""
    server = modern_server(capabilities={"tasks": {}, "tools": {}}, revisions=BOTH)
    receive(server, initialize("hello", "2025-11-25"), INITIALIZED)
    requested(server, modern(1, "tools/list"))
    sent(server)
    time = "2025-11-25T10:30:00Z"
    task = {"taskId": "t", "ttl": None, "createdAt": time, "lastUpdatedAt": time}
    server.send_notification("notifications/tasks/status", {**task, "status": "working"})
    sent(server)
    server.send_notification("notifications/tasks/status", {**task, "status": "bogus"})
    with pytest.raises(AssertionError, match="TaskStatusNotification"):
        sent(server)


def test_an_error_is_judged_by_the_version_that_was_asked_for() -> None:
    """-32022 has prescribed data in the modern era, whatever a handshake has agreed on."""
    server = both("2025-11-25")
    receive(server, modern(1, "tools/list", meta=envelope(version="2099-01-01")))
    (answer,) = sent(server)
    assert answer["error"]["code"] == -32022
    transcript = Transcript("2025-11-25")
    transcript.record("client", modern(1, "tools/list", meta=envelope(version="2099-01-01")))
    del answer["error"]["data"]["supported"]
    transcript.record("server", answer)
    assert any("supported" in text for text in transcript.problems("server"))


def test_requests_of_a_server_are_judged_at_the_agreed_revision() -> None:
    """A modern server sends none, and a server of both eras only after a handshake."""
    server = both("2024-11-05")
    server.send_request("roots/list")
    assert [message["method"] for message in sent(server)] == ["roots/list"]
    agreed = Transcript("2025-11-25", BOTH)
    agreed.record("server", call(1, "roots/list"))
    assert agreed.problems("server") == []
    modern_only = Transcript("2026-07-28", ("2026-07-28",))
    modern_only.record("server", call(1, "roots/list"))
    assert modern_only.problems("server")


def test_what_answers_nothing_is_noticed() -> None:
    """A response to a cancelled or unknown request is a fault of the library."""
    transcript = Transcript("2026-07-28")
    transcript.record("client", note("notifications/cancelled", {"requestId": 1}))
    transcript.record("server", result(1, {"resultType": "complete"}))
    assert any("answers no open request" in text for text in transcript.problems("server"))
