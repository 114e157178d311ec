"""Changes, logs and progress are merged or dropped while nobody takes the output."""

import itertools
from typing import Any

import pytest

from sansmcp import (
    Config,
    IncomingRequest,
    LimitReached,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerConnection,
    ToolsListChanged,
)
from sansmcp.testing import drain
from tests.support.wire import (
    asked,
    call,
    of,
    ready_server,
    result,
    sent,
)

REVISION = "2025-11-25"
FILE = "file:///a"
TIGHT = Config(soft_unsent_bytes=100, max_held_changes=2)

_ids = itertools.count()


def subscription(server: ServerConnection, uri: str = FILE) -> IncomingRequest:
    return asked(server, call(f"+{next(_ids)}", "resources/subscribe", {"uri": uri}))


def subscribed(server: ServerConnection, *uris: str) -> ServerConnection:
    for uri in uris:
        assert server.send_result(subscription(server, uri), {})
    sent(server)
    return server


def updates(server: ServerConnection) -> list[Any]:
    """The URIs of the notifications, None for a change of a list."""
    return [message.get("params", {}).get("uri") for message in sent(server)]


def choked_server(*uris: str, config: Config = TIGHT) -> ServerConnection:
    """A server whose output is over the soft limit."""
    server = subscribed(ready_server(REVISION, config=config), *uris)
    server.send_notification("notifications/x", {"text": "x" * 200})
    return server


def test_changes_wait_while_output_is_not_taken_and_come_once_each() -> None:
    """A client that was not reading must get a hundred changes of one resource as one
    notification."""
    server = choked_server(FILE)
    for _ in range(100):
        assert server.publish(ResourceUpdated(FILE))
        assert server.publish(ToolsListChanged())
    assert len(sent(server)) == 1

    assert updates(server) == [FILE, None]
    assert sent(server) == []


def test_what_goes_over_the_bound_is_refused_and_reported() -> None:
    """Changes over the limit must neither be lost without a report nor kept without end."""
    server = choked_server()
    assert server.publish(ToolsListChanged())
    assert server.publish(PromptsListChanged())
    assert server.publish(ResourcesListChanged()) is False
    assert server.publish(ToolsListChanged())

    assert [event.rule for event in of(LimitReached, drain(server))] == ["OWN-010"]


def test_what_is_no_longer_wanted_when_output_drains_is_not_sent() -> None:
    """A client that has unsubscribed, or whose connection has ended, must get no change."""
    server = choked_server(FILE)
    server.publish(ResourceUpdated(FILE))
    server.publish(ToolsListChanged())
    server.send_result(asked(server, call(2, "resources/unsubscribe", {"uri": FILE})), {})
    sent(server)
    assert [message["method"] for message in sent(server)] == ["notifications/tools/list_changed"]

    server = choked_server(FILE)
    server.publish(ResourceUpdated(FILE))
    server.close()
    sent(server)
    assert sent(server) == []


@pytest.mark.parametrize("take", ["data_to_send", "buffers_to_send", "messages_to_send"])
def test_held_changes_follow_whatever_way_output_is_taken(take: str) -> None:
    """Each of the three methods that take output must release held changes."""
    server = choked_server()
    server.publish(ToolsListChanged())
    assert getattr(server, take)()
    assert getattr(server, take)()

    assert not getattr(server, take)()


def test_progress_and_logs_are_dropped_meanwhile() -> None:
    """Progress and logs are useless after the response."""
    server = ready_server(REVISION, config=TIGHT)
    meta = {"progressToken": 1}
    request = asked(server, call(1, "tools/call", {"name": "x", "_meta": meta}))
    server.send_notification("notifications/x", {"text": "x" * 200})
    assert server.send_progress(request, 1) is False
    assert server.send_log("info", "text") is False
    assert len(sent(server)) == 1

    assert server.send_progress(request, 1)
    assert server.send_result(request, {"content": []})
    assert sent(server)[-1] == result(1, {"content": []})
