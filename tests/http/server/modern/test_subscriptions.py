"""Subscriptions of 2026-07-28 over HTTP: streams that stay open, and clients that do not read."""

from typing import Any

import pytest

from sansmcp import (
    CancelCause,
    Config,
    JSONObject,
    LimitReached,
    ListenerAdded,
    ListenerRemoved,
    RequestAnswered,
    RequestCancelled,
    ResourceUpdated,
    ToolsListChanged,
)
from sansmcp.http import ServerEndpoint
from tests.support.http.server_endpoint import (
    JSON,
    answer,
    asked,
    connect,
    drain,
    modern_tool_call,
    more,
    new_endpoint,
    of,
    post_modern,
    take,
)
from tests.support.modern import (
    FILE,
    LISTEN,
    SUBSCRIPTION,
    WHOLE_FILTER,
    acknowledged,
    envelope,
    listen,
    modern,
)

# ------------------------------------------------------------------------------- subscriptions


def listening(endpoint: ServerEndpoint, id: int = 9, filter: JSONObject = WHOLE_FILTER) -> Any:
    exchange = post_modern(endpoint, listen(id, filter))
    return exchange, answer(exchange)


def test_a_subscription_is_a_stream_that_stays_open() -> None:
    """SUBS-018: the acknowledgement comes first, then changes, then the result and the end."""
    endpoint = new_endpoint()
    exchange, response = listening(endpoint)
    assert response.messages == [acknowledged(9, WHOLE_FILTER)]
    assert not response.ended
    (event,) = of(ListenerAdded, drain(endpoint))
    assert endpoint.listeners == (event.listener,)

    assert endpoint.publish(ToolsListChanged())
    assert endpoint.publish(ResourceUpdated(FILE))
    assert not endpoint.publish(ResourceUpdated("file:///other"))
    response = more(exchange, response)
    assert [one["method"] for one in response.messages] == [
        "notifications/tools/list_changed",
        "notifications/resources/updated",
    ]

    assert endpoint.end_listener(event.listener)
    assert not endpoint.end_listener(event.listener)
    response = more(exchange, response)
    (last,) = response.messages
    assert last["result"]["_meta"][SUBSCRIPTION] == 9
    assert response.ended
    assert drain(endpoint) == []


def test_the_end_of_the_stream_is_the_end_of_a_subscription() -> None:
    """After the client has closed the stream, no table may keep the subscription."""
    endpoint = new_endpoint()
    exchange, _ = listening(endpoint)
    (added,) = of(ListenerAdded, drain(endpoint))
    exchange.receive_disconnect()

    (event,) = of(ListenerRemoved, drain(endpoint))
    assert event.listener is added.listener
    assert event.cause is CancelCause.PEER
    assert not endpoint.publish(ToolsListChanged())
    assert endpoint.listeners == ()


def test_a_subscription_needs_a_client_that_takes_streams() -> None:
    """A subscription can only be answered with a stream."""
    endpoint = new_endpoint()
    response = answer(post_modern(endpoint, listen(9, {}), {"accept": JSON}))

    assert (response.status, response.json["id"]) == (406, 9)
    for id in (True, None, 1.5, [9]):  # which are none: an error must not repeat them
        response = answer(post_modern(endpoint, listen(id, {}), {"accept": JSON}))
        assert (response.status, "id" in response.json) == (406, False)
    assert endpoint.listeners == ()


def test_the_application_may_acknowledge() -> None:
    """With `Config.manual` the application must be asked before the acknowledgement."""
    endpoint = new_endpoint(config=Config(manual=frozenset({LISTEN})))
    exchange = post_modern(endpoint, listen(9, WHOLE_FILTER))
    request = asked(endpoint)
    assert take(exchange) is None
    assert endpoint.publish(ToolsListChanged())

    listener = endpoint.acknowledge(request, {"toolsListChanged": True})
    assert listener is not None
    messages = answer(exchange).messages
    assert messages[0] == acknowledged(9, {"toolsListChanged": True})
    assert messages[1]["method"] == "notifications/tools/list_changed"


def test_changes_wait_each_once_for_a_listener_that_does_not_read() -> None:
    """A slow client must get each change once, and not delay the others."""
    endpoint = new_endpoint(config=Config(soft_unsent_bytes=150, max_held_changes=2))
    slow, _ = listening(endpoint, 1)
    quick, before = listening(endpoint, 2)
    for _ in range(5):
        assert endpoint.publish(ToolsListChanged())
        assert endpoint.publish(ResourceUpdated(FILE))
        before = more(quick, before)
        assert len(before.messages) == 2

    response = more(slow, before)
    methods = [one["method"] for one in response.messages]
    assert methods.count("notifications/tools/list_changed") <= 2
    last = more(slow, response)
    assert {one["method"] for one in (*response.messages, *last.messages)} == {
        "notifications/tools/list_changed",
        "notifications/resources/updated",
    }


@pytest.mark.parametrize("is_closing", [False, True])
def test_changes_that_wait_come_before_the_end(is_closing: bool) -> None:
    """`publish` has reported them as sent, so they must precede the result."""
    endpoint = new_endpoint(config=Config(soft_unsent_bytes=1))
    exchange, before = listening(endpoint, 1)
    assert endpoint.publish(ToolsListChanged())
    assert endpoint.publish(ResourceUpdated(FILE))
    if is_closing:
        endpoint.close()
    else:
        endpoint.end_listener(endpoint.listeners[0])

    first, second, last = more(exchange, before).messages
    assert first["method"] == "notifications/tools/list_changed"
    assert second["method"] == "notifications/resources/updated"
    assert last["id"] == 1


def test_held_changes_have_a_limit() -> None:
    """A change over the limit must be refused and reported."""
    uris = [f"file:///{number}" for number in range(9)]
    endpoint = new_endpoint(config=Config(soft_unsent_bytes=1, max_held_changes=2))
    exchange, before = listening(endpoint, 1, {"resourceSubscriptions": uris})
    drain(endpoint)
    told = [endpoint.publish(ResourceUpdated(uri)) for uri in uris]

    assert told == [True, True, True, *[False] * 6]
    assert {event.rule for event in of(LimitReached, drain(endpoint))} == {"OWN-010"}
    found = 0
    for _ in range(5):
        before = more(exchange, before)
        found += len(before.messages)
    assert found == 3


def test_one_client_cannot_have_all_subscriptions() -> None:
    """There must be a limit for each client, and a larger one for all."""
    endpoint = new_endpoint(config=Config(max_subscriptions=3))
    uris = [f"file:///{number}" for number in range(3)]
    too_many = post_modern(endpoint, listen(1, {"resourceSubscriptions": uris}))
    assert answer(too_many).status == 503
    for number in range(10):
        mine = [f"file:///{number}/{name}" for name in "ab"]
        listening(endpoint, number, {"resourceSubscriptions": mine})
    refused = answer(post_modern(endpoint, listen(11, WHOLE_FILTER)))
    assert (refused.status, refused.json["id"]) == (503, 11)
    assert len(endpoint.listeners) == 10
    assert [event.rule for event in of(LimitReached, drain(endpoint))] == ["OWN-009"] * 2


def test_a_listener_gone_while_changes_wait_is_forgotten() -> None:
    """Waiting changes must be dropped with their subscription."""
    endpoint = new_endpoint(config=Config(soft_unsent_bytes=1))
    exchange, _ = listening(endpoint)
    endpoint.publish(ToolsListChanged())
    endpoint.publish(ResourceUpdated(FILE))
    exchange.receive_disconnect()

    assert endpoint.ready() == []
    assert not endpoint.publish(ToolsListChanged())


def test_a_client_that_never_reads_is_given_up_alone() -> None:
    """The hard limit must end this client's request, and no other."""
    endpoint = new_endpoint(config=Config(soft_unsent_bytes=100_000, max_unsent_bytes=1000))
    stuck = post_modern(endpoint, modern(1, "tools/call", {"name": "t"}, envelope(progressToken=1)))
    request = asked(endpoint)
    for number in range(100):
        if not endpoint.send_progress(request, number):
            break

    assert not request.open
    (event,) = of(RequestCancelled, drain(endpoint))
    assert event.cause is CancelCause.FAILED
    response = answer(stuck)
    assert (response.body, response.ended) == (b"", True)
    assert answer(post_modern(endpoint, modern(1, "server/discover"))).status == 200


def test_answers_of_the_core_are_reported() -> None:
    """Automatic responses must be reported as on a connection."""
    endpoint = new_endpoint()
    post_modern(endpoint, modern(1, "server/discover"))

    (event,) = drain(endpoint)
    assert isinstance(event, RequestAnswered)
    assert event.request.method == "server/discover"


def test_log_messages_need_a_wish() -> None:
    """LOG: without a level in `_meta` no log messages may be sent."""
    endpoint = new_endpoint()
    post_modern(endpoint, modern_tool_call())

    assert not endpoint.send_log("emergency", "x", request=asked(endpoint))


def test_subscriptions_of_one_client_are_those_of_its_principal() -> None:
    """Modern requests belong to no session, so only the principal tells clients apart."""
    endpoint = new_endpoint()
    for id, principal in ((1, "me"), (2, "you"), (3, "me")):
        post_modern(endpoint, listen(id, WHOLE_FILTER), principal=principal)
    first, second, third = endpoint.listeners
    assert endpoint.listeners_of(first.request.peer) == (first, third)
    assert endpoint.listeners_of(second.request.peer) == (second,)
    connect(endpoint, principal="me")
    assert endpoint.listeners_of(endpoint.sessions[0].peer) == ()
