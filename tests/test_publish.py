"""Published changes: to whom they go, and what happens to them when nobody reads."""

import itertools
from typing import Any

import pytest

from sansmcp import (
    Change,
    Config,
    IncomingRequest,
    LimitReached,
    NotificationReceived,
    PromptsListChanged,
    RequestCancelled,
    RequestReceived,
    ResourcesListChanged,
    ResourceUpdated,
    ServerConnection,
    ToolsListChanged,
)
from sansmcp.testing import Pair, drain
from tests.support.wire import (
    asked,
    call,
    new_server,
    note,
    of,
    ready_server,
    receive,
    refusals,
    result,
    sent,
)

REVISION = "2025-11-25"
FILE = "file:///a"
LISTS: list[tuple[Change, str]] = [
    (ToolsListChanged(), "tools"),
    (PromptsListChanged(), "prompts"),
    (ResourcesListChanged(), "resources"),
]
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
    """The URIs told, None for a change of a list."""
    return [message.get("params", {}).get("uri") for message in sent(server)]


@pytest.mark.parametrize(("change", "area"), LISTS)
def test_a_changed_list_is_told_where_it_was_declared(change: Change, area: str) -> None:
    """A client may take an undeclared notification for a fault."""
    pair = Pair()
    assert pair.server.publish(change, now=1)
    assert pair.deliver_one(NotificationReceived) == NotificationReceived(
        method=f"notifications/{area}/list_changed", params={}
    )

    quiet = ready_server(REVISION, capabilities={area: {"listChanged": False}})
    assert quiet.publish(change) is False
    assert sent(quiet) == []


def test_a_resource_is_told_while_it_is_subscribed_to() -> None:
    """From the answer to `subscribe` until the answer to `unsubscribe`, by exact URI."""
    server = ready_server(REVISION)
    assert server.publish(ResourceUpdated(FILE)) is False
    request = subscription(server)
    assert server.publish(ResourceUpdated(FILE)) is False
    assert not server.subscriptions
    server.send_result(request, {})
    assert server.subscriptions == (FILE,)
    assert server.publish(ResourceUpdated(FILE))
    assert server.publish(ResourceUpdated(FILE + "/b")) is False
    assert server.publish(ResourceUpdated(FILE + "/b", subscribed=FILE))
    assert sent(server)[1:] == [
        note("notifications/resources/updated", {"uri": FILE}),
        note("notifications/resources/updated", {"uri": FILE + "/b"}),
    ]

    request = asked(server, call(2, "resources/unsubscribe", {"uri": FILE}))
    assert server.publish(ResourceUpdated(FILE))
    server.send_result(request, {})
    assert server.publish(ResourceUpdated(FILE)) is False


def test_subscribing_twice_is_one_subscription_and_unsubscribing_needs_none() -> None:
    """Clients do both."""
    server = subscribed(ready_server(REVISION), FILE)
    again = asked(server, call(2, "resources/subscribe", {"uri": FILE}))
    server.send_result(again, {})
    assert server.subscriptions == (FILE,)
    other = asked(server, call(3, "resources/unsubscribe", {"uri": "file:///other"}))

    assert server.send_result(other, {})


@pytest.mark.parametrize("how", ["refused", "cancelled"])
def test_a_subscription_that_came_to_nothing_does_not_count(how: str) -> None:
    """Nor does it use up room."""
    server = ready_server(REVISION, config=Config(max_subscriptions=1))
    for _ in range(2):
        request = subscription(server)
        if how == "refused":
            server.send_error(request, -32002, "no such resource")
        else:
            params = {"requestId": request.id}
            assert of(RequestCancelled, receive(server, note("notifications/cancelled", params)))

    assert server.subscriptions == ()
    assert subscribed(server, "file:///b").subscriptions == ("file:///b",)


def test_one_subscription_too_many_is_refused_and_reported() -> None:
    """Those on their way count, or the limit would be none."""
    server = subscribed(ready_server(REVISION, config=Config(max_subscriptions=2)), FILE)
    subscription(server, "file:///b")
    events = receive(server, call(9, "resources/subscribe", {"uri": "file:///c"}))

    assert [event.rule for event in of(LimitReached, events)] == ["OWN-009"]
    assert of(RequestReceived, events) == []
    (refusal,) = sent(server)
    assert refusal["error"]["code"] == -32603
    assert "2 subscriptions" in refusal["error"]["data"]["reason"]


def test_without_the_check_of_shapes_a_subscription_to_nothing_is_none() -> None:
    """What is no URI cannot be told of."""
    server = ready_server(REVISION, config=Config(check="none"))
    for method in ("subscribe", "unsubscribe"):
        request = asked(server, call(method, f"resources/{method}", {"uri": 5}))
        assert server.send_result(request, {})

    assert server.subscriptions == ()


def test_subscriptions_need_the_capability() -> None:
    """Without it nobody can be subscribed."""
    server = ready_server(REVISION, capabilities={"resources": {}})
    receive(server, call(1, "resources/subscribe", {"uri": FILE}))

    assert refusals(sent(server)) == [(1, -32601)]
    assert server.publish(ResourceUpdated(FILE)) is False


def test_nothing_is_published_before_the_handshake_or_after_the_end() -> None:
    """The application need not know the state."""
    assert new_server().publish(ToolsListChanged()) is False

    server = subscribed(ready_server(REVISION), FILE)
    server.receive_eof()
    assert server.publish(ToolsListChanged()) is False
    assert server.publish(ResourceUpdated(FILE)) is False
    assert server.subscriptions == ()


# ------------------------------------------------------------------------- a client that is slow


def choked_server(*uris: str, config: Config = TIGHT) -> ServerConnection:
    """A server whose output is over the soft limit."""
    server = subscribed(ready_server(REVISION, config=config), *uris)
    server.send_notification("notifications/x", {"text": "x" * 200})
    return server


def test_changes_wait_while_output_is_not_taken_and_come_once_each() -> None:
    """A hundred changes of one resource are one notification to a client that was not reading."""
    server = choked_server(FILE)
    for _ in range(100):
        assert server.publish(ResourceUpdated(FILE))
        assert server.publish(ToolsListChanged())
    assert len(sent(server)) == 1

    assert updates(server) == [FILE, None]
    assert sent(server) == []


def test_what_goes_over_the_bound_is_refused_and_reported() -> None:
    """Not silently lost, and not kept without end."""
    server = choked_server()
    assert server.publish(ToolsListChanged())
    assert server.publish(PromptsListChanged())
    assert server.publish(ResourcesListChanged()) is False
    assert server.publish(ToolsListChanged())

    assert [event.rule for event in of(LimitReached, drain(server))] == ["OWN-010"]


def test_what_is_no_longer_wanted_when_output_drains_is_not_sent() -> None:
    """The client has unsubscribed, or the connection is over."""
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
    """Each of the three frees the way."""
    server = choked_server()
    server.publish(ToolsListChanged())
    assert getattr(server, take)()
    assert getattr(server, take)()

    assert not getattr(server, take)()


def test_progress_and_logs_are_dropped_meanwhile() -> None:
    """They are worth nothing later."""
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
