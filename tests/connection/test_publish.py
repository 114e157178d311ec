"""`publish` sends a change to the client if the client wants it."""

import itertools
from typing import cast

import pytest

from sansmcp import (
    Change,
    Config,
    IncomingRequest,
    LimitReached,
    LocalProtocolError,
    NotificationReceived,
    PromptsListChanged,
    RequestCancelled,
    RequestReceived,
    ResourcesListChanged,
    ResourceUpdated,
    ServerConnection,
    ToolsListChanged,
)
from sansmcp.testing import Pair
from tests.support.wire import (
    asked,
    call,
    new_server,
    note,
    of,
    ready_client,
    ready_server,
    receive,
    refusals,
    sent,
)

REVISION = "2025-11-25"
FILE = "file:///a"
LISTS: list[tuple[Change, str]] = [
    (ToolsListChanged(), "tools"),
    (PromptsListChanged(), "prompts"),
    (ResourcesListChanged(), "resources"),
]


_ids = itertools.count()


def subscription(server: ServerConnection, uri: str = FILE) -> IncomingRequest:
    return asked(server, call(f"+{next(_ids)}", "resources/subscribe", {"uri": uri}))


def subscribed(server: ServerConnection, *uris: str) -> ServerConnection:
    for uri in uris:
        assert server.send_result(subscription(server, uri), {})
    sent(server)
    return server


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
    """Changes of the exact URI must be sent from the result of `subscribe` to that of
    `unsubscribe`."""
    server = ready_server(REVISION)
    assert server.publish(ResourceUpdated(FILE)) is False
    request = subscription(server)
    assert server.publish(ResourceUpdated(FILE)) is False
    assert not server.subscriptions
    assert ready_client(REVISION).subscriptions == ()  # nobody subscribes to a client
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
    """Clients subscribe twice, and unsubscribe without a subscription."""
    server = subscribed(ready_server(REVISION), FILE)
    again = asked(server, call(2, "resources/subscribe", {"uri": FILE}))
    server.send_result(again, {})
    assert server.subscriptions == (FILE,)
    other = asked(server, call(3, "resources/unsubscribe", {"uri": "file:///other"}))

    assert server.send_result(other, {})


@pytest.mark.parametrize("how", ["refused", "cancelled"])
def test_a_subscription_that_came_to_nothing_does_not_count(how: str) -> None:
    """A refused or cancelled subscription must not use up room."""
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


@pytest.mark.parametrize("how", ["refused", "cancelled", "answered", "too many"])
def test_room_is_given_back_once(how: str) -> None:
    """Room that is freed twice would raise the limit a little each time."""
    server = ready_server(REVISION, config=Config(max_subscriptions=2))
    request = subscription(server)
    if how == "refused":
        server.send_error(request, -32002, "no such resource")
    elif how == "cancelled":
        receive(server, note("notifications/cancelled", {"requestId": request.id}))
    elif how == "answered":
        server.send_result(request, {})
        gone = asked(server, call("gone", "resources/unsubscribe", {"uri": FILE}))
        server.send_result(gone, {})
    else:
        subscription(server, "file:///b")
        receive(server, call("over", "resources/subscribe", {"uri": "file:///c"}))
        server.send_result(request, {})
    if how != "too many":
        subscribed(server, "file:///1", "file:///2")
    sent(server)
    receive(server, call("last", "resources/subscribe", {"uri": "file:///last"}))
    assert refusals(sent(server)) == [("last", -32603)]


def test_one_subscription_too_many_is_refused_and_reported() -> None:
    """Subscriptions without a response yet must count towards the limit."""
    server = subscribed(ready_server(REVISION, config=Config(max_subscriptions=2)), FILE)
    subscription(server, "file:///b")
    events = receive(server, call(9, "resources/subscribe", {"uri": "file:///c"}))

    assert [event.rule for event in of(LimitReached, events)] == ["OWN-009"]
    assert of(RequestReceived, events) == []
    (refusal,) = sent(server)
    assert refusal["error"]["code"] == -32603
    assert "2 subscriptions" in refusal["error"]["data"]["reason"]


def test_a_very_long_uri_is_not_subscribed_to() -> None:
    """A thousand URIs of a megabyte each would take a gigabyte."""
    server = ready_server(REVISION)
    receive(server, call(9, "resources/subscribe", {"uri": "file:///" + "x" * 100_000}))

    assert refusals(sent(server)) == [(9, -32603)]


def test_a_full_table_takes_a_subscription_that_it_holds_already() -> None:
    """The table does not grow by an entry that it holds already."""
    server = subscribed(ready_server(REVISION, config=Config(max_subscriptions=1)), FILE)

    assert server.send_result(subscription(server), {})


def test_without_the_check_of_shapes_a_subscription_to_nothing_is_none() -> None:
    """A change cannot match a value that is no URI."""
    server = ready_server(REVISION, config=Config(check="none"))
    for method in ("subscribe", "unsubscribe"):
        request = asked(server, call(method, f"resources/{method}", {"uri": 5}))
        assert server.send_result(request, {})

    assert server.subscriptions == ()


def test_subscriptions_need_the_capability() -> None:
    """Without the capability `subscribe` must be refused."""
    server = ready_server(REVISION, capabilities={"resources": {}})
    receive(server, call(1, "resources/subscribe", {"uri": FILE}))

    assert refusals(sent(server)) == [(1, -32601)]
    assert server.publish(ResourceUpdated(FILE)) is False


def test_nothing_is_published_before_the_handshake_or_after_the_end() -> None:
    """The application must not have to know the state."""
    assert new_server().publish(ToolsListChanged()) is False

    server = subscribed(ready_server(REVISION), FILE)
    server.receive_eof()
    assert server.publish(ToolsListChanged()) is False
    assert server.publish(ResourceUpdated(FILE)) is False
    assert server.subscriptions == ()


def test_what_is_no_uri_is_not_published() -> None:
    """The verb must raise and change nothing, not even the clock."""
    server = subscribed(ready_server(REVISION), FILE)
    for change in (
        ResourceUpdated(cast(str, b"x"), FILE),
        ResourceUpdated(FILE, cast(str, [FILE])),
    ):
        with pytest.raises(LocalProtocolError, match="OWN-014"):
            server.publish(change, now=1)
    with pytest.raises(LocalProtocolError, match="OWN-023"):
        server.send_request("roots/list", timeout=1)  # it was told no time
    assert sent(server) == []


def test_what_is_no_change_is_told_so() -> None:
    """A string, as older SDKs use it, must raise an error that says what to pass."""
    server = ready_server(REVISION)
    with pytest.raises(TypeError, match="a change is one of ToolsListChanged"):
        server.publish("tools")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # on purpose
