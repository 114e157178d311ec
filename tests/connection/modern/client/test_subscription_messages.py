"""Invalid acknowledgements and changes of subscriptions, as a client judges them.

`test_subscriptions` has the usual course. Rules: SUBS-001 to SUBS-010.
"""

from typing import Any

import pytest

from sansmcp import (
    ClientConnection,
    Config,
    JSONObject,
    LocalProtocolError,
    MessageIgnored,
    NotificationReceived,
    ProtocolViolation,
    SubscriptionAcknowledged,
    SubscriptionEnd,
    SubscriptionEnded,
)
from tests.support.modern import (
    FILE,
    MODERN,
    SUBSCRIPTION,
    TOOLS,
    WHOLE_FILTER,
    acknowledged,
    cancelled,
    changed,
    discovered,
    modern_client,
    subscribed,
)
from tests.support.wire import (
    CLIENT_INFO,
    broken,
    drain,
    note,
    of,
    only,
    receive,
    result,
    sent,
    wire,
)

# --------------------------------------------------------------------------------- notifications


@pytest.mark.parametrize(
    "what", ["tools/list_changed", "prompts/list_changed", "resources/list_changed"]
)
def test_each_kind_of_change_is_told_with_its_subscription(what: str) -> None:
    """The application needs the kind and the subscription to know what to read again."""
    client = modern_client()
    subscription = subscribed(client, WHOLE_FILTER)
    told = only(NotificationReceived, receive(client, changed(2, what)))
    assert (told.method, told.subscription) == (f"notifications/{what}", subscription)
    updated = changed(2, "resources/updated", uri=FILE)
    told = only(NotificationReceived, receive(client, updated))
    assert (told.params["uri"], told.subscription) == (FILE, subscription)


def test_update_of_a_part_of_what_was_asked_for_is_told() -> None:
    """Only the server knows the parts of a resource (SUBS-003)."""
    client = modern_client()
    subscribed(client, {"resourceSubscriptions": ["file:///a/"]})
    updated = changed(2, "resources/updated", uri="file:///a/b")
    only(NotificationReceived, receive(client, updated))


@pytest.mark.parametrize("notifications", [{}, {"resourceSubscriptions": []}, WHOLE_FILTER])
def test_what_was_not_asked_for_is_reported(notifications: JSONObject) -> None:
    """An empty list in the filter must mean the same as a missing member (SUBS-002)."""
    client = modern_client()
    subscribed(client, notifications)
    events = receive(client, changed(2, "resources/updated", uri=FILE))
    asked = notifications is WHOLE_FILTER
    assert broken(events) == ([] if asked else ["SUBS-002"])
    assert len(of(NotificationReceived, events)) == 1


@pytest.mark.parametrize("tag", ["2", 3, "other", -2])
def test_tag_of_another_subscription_is_ignored(tag: object) -> None:
    """The tag is the id of the request, with its type (SUBS-009)."""
    client = modern_client()
    client.listen(TOOLS)
    for message in (changed(tag), acknowledged(tag, TOOLS)):
        ignored = only(MessageIgnored, receive(client, message))
        assert (ignored.rule, ignored.id) == ("SUBS-010", tag)


@pytest.mark.parametrize("tag", [None, True, 1.5, [2], {"id": 2}])
def test_tag_that_is_no_id_is_no_tag(tag: object) -> None:
    """A change with an invalid tag is delivered without a subscription, and an acknowledgement
    is ignored."""
    client = modern_client()
    subscription = subscribed(client)
    other = client.listen(TOOLS)
    violation, told = receive(client, changed(tag))
    assert broken([violation]) == ["SUBS-009"]
    assert isinstance(told, NotificationReceived)
    assert told.subscription is None
    assert broken(receive(client, acknowledged(tag, TOOLS))) == ["SUBS-009"]
    assert (subscription.open, other.acknowledged) == (True, None)


@pytest.mark.parametrize(
    ("meta", "rules"), [(None, ["OWN-015"]), (5, ["OWN-014"]), ([], ["OWN-014"]), ({}, [])]
)
def test_meta_may_be_anything(meta: object, rules: list[str]) -> None:
    """No value of `_meta` may stop the reading."""
    client = modern_client()
    subscribed(client)
    message = note("notifications/tools/list_changed", {"_meta": meta})
    assert broken(receive(client, message)) == [*rules, "SUBS-009"]


def test_id_that_is_a_float_is_the_same_id() -> None:
    """Some languages have only floats, so 1.0 must be the id 1."""
    client = modern_client()
    subscription = client.listen(TOOLS)
    receive(client, acknowledged(2.0, TOOLS))
    told = only(NotificationReceived, receive(client, changed(2.0)))
    assert told.subscription is subscription
    ended = only(SubscriptionEnded, receive(client, cancelled(2.0)))
    assert ended.reason is SubscriptionEnd.ENDED


# -------------------------------------------------------------------------------- acknowledgement


@pytest.mark.parametrize("check", ["shape", "none"])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": 5},
        {"notifications": None},
        {"notifications": {"toolsListChanged": 5}},
        {"notifications": {"resourceSubscriptions": [5]}},
    ],
)
def test_misshapen_acknowledgement_is_none(check: Any, params: JSONObject) -> None:
    """Whether shapes are checked or not, receiving must go on, and the handle have an object."""
    client = modern_client(config=Config(check=check))
    subscription = client.listen(TOOLS)
    params = {**params, "_meta": {SUBSCRIPTION: 2}}
    events = receive(client, note("notifications/subscriptions/acknowledged", params))
    assert broken(events) == ["OWN-014"]
    assert subscription.acknowledged is None
    only(SubscriptionAcknowledged, receive(client, acknowledged(2, TOOLS)))


def test_deep_acknowledgement_does_not_stop_the_reading() -> None:
    """A message that could be decoded must be handled with little stack left."""
    depths = range(900, 1010)
    for depth in depths:
        client = modern_client(config=Config(max_json_depth=10_000))
        client.listen(TOOLS)
        deep = b"[" * depth + b"]" * depth
        tag = b'"_meta":{"%b":2}' % SUBSCRIPTION.encode()
        method = b'"method":"notifications/subscriptions/acknowledged"'
        client.receive_data(
            b'{"jsonrpc":"2.0",%b,"params":{%b,"notifications":{"x":%b}}}\n' % (method, tag, deep)
        )
        (event,) = drain(client)
        assert isinstance(event, SubscriptionAcknowledged | ProtocolViolation)


def test_what_is_honoured_belongs_to_nobody_else() -> None:
    """A change to the event's dict must not change the handle, and the other way round."""
    client = modern_client()
    asked: JSONObject = {"toolsListChanged": True, "resourceSubscriptions": [FILE]}
    subscription = client.listen(asked)
    asked["resourceSubscriptions"].append("file:///b")
    assert sent(client)[0]["params"]["notifications"]["resourceSubscriptions"] == [FILE]
    assert subscription.asked["resourceSubscriptions"] == [FILE]
    event = only(SubscriptionAcknowledged, receive(client, acknowledged(2, TOOLS)))
    event.notifications.clear()
    assert subscription.acknowledged == TOOLS


def test_less_than_was_asked_for_is_for_the_application_to_see() -> None:
    """The application must learn which changes it will not get (SUBS-008)."""
    client = modern_client()
    subscription = client.listen(WHOLE_FILTER)
    receive(client, acknowledged(2, {}))
    assert (subscription.asked, subscription.acknowledged) == (WHOLE_FILTER, {})


# ---------------------------------------------------------------------------------------- asking


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"timeout": 0, "now": 1}, "OWN-023"),
        ({"timeout": 5}, "OWN-023"),
        ({"meta": [1]}, "OWN-014"),
        ({"meta": {"x": {1, 2}}}, "OWN-024"),
    ],
)
def test_what_cannot_be_asked_is_not_sent(options: Any, rule: str) -> None:
    """A verb that raises must leave no handle."""
    client = modern_client()
    with pytest.raises(LocalProtocolError, match=rule):
        client.listen(TOOLS, **options)
    assert sent(client) == []
    client.listen(TOOLS)
    assert sent(client)[0]["id"] == 2


def test_limit_and_end_of_the_connection_forbid_it() -> None:
    """The checks must be those of every request."""
    client = modern_client(config=Config(max_requests=1))
    subscribed(client)
    with pytest.raises(LocalProtocolError, match="OWN-005"):
        client.listen(TOOLS)
    client.close()
    with pytest.raises(LocalProtocolError, match="OWN-021"):
        client.listen(TOOLS)
    assert sent(client) == []


def test_extensions_of_the_filter_go_through() -> None:
    """Unknown members of a filter must be sent unchanged."""
    client = modern_client()
    client.listen({**TOOLS, "com.example/changed": {"deep": [1]}})
    (message,) = sent(client)
    assert message["params"]["notifications"]["com.example/changed"] == {"deep": [1]}


def test_asking_wakes_whoever_writes() -> None:
    """The writer must be woken for the request, and the reader for the server's messages."""
    woken: list[None] = []
    client = ClientConnection(
        info=CLIENT_INFO, revisions=(MODERN,), wake=lambda: woken.append(None)
    )
    client.start()
    sent(client)
    receive(client, result(1, discovered()))
    woken.clear()
    client.listen(TOOLS)
    assert len(woken) == 1
    sent(client)
    client.receive_data(wire(acknowledged(2, TOOLS)))
    assert len(woken) == 2
