"""Subscriptions of a client in 2026-07-28.

Rules: SUBS-001 to SUBS-015, CANC-017 to CANC-020, ID-004.
"""

from typing import Any

import pytest

from sansmcp import (
    ClientConnection,
    Event,
    JSONObject,
    LocalProtocolError,
    MessageIgnored,
    NotificationReceived,
    ProtocolViolation,
    SubscriptionAcknowledged,
    SubscriptionEnd,
    SubscriptionEnded,
)
from sansmcp.testing import drain, plain
from tests.support.modern import (
    LISTEN,
    MODERN,
    ROOTS,
    SUBSCRIPTION,
    TOOLS,
    VERSION,
    WHOLE_FILTER,
    acknowledged,
    changed,
    complete,
    discovered,
    modern_client,
    subscribed,
)
from tests.support.wire import (
    error,
    new_client,
    note,
    of,
    only,
    ready_client,
    receive,
    result,
    sent,
)


def ending(events: list[Event]) -> SubscriptionEnded:
    (ended,) = of(SubscriptionEnded, events)
    return ended


def test_subscription_from_its_beginning_to_its_end() -> None:
    """A subscription is one request, whose response is its end."""
    client = modern_client()
    subscription = client.listen(WHOLE_FILTER, meta={"x": 1}, data="mine")
    (message,) = sent(client)
    assert (message["method"], message["id"]) == (LISTEN, 2)
    assert message["params"]["notifications"] == WHOLE_FILTER
    assert message["params"]["_meta"][VERSION] == MODERN
    assert message["params"]["_meta"]["x"] == 1
    assert (subscription.asked, subscription.data) == (WHOLE_FILTER, "mine")
    assert subscription.acknowledged is None

    honoured = {"toolsListChanged": True}
    taken = only(SubscriptionAcknowledged, receive(client, acknowledged(2, honoured)))
    assert taken.notifications == subscription.acknowledged == honoured
    told = only(NotificationReceived, receive(client, changed(2)))
    assert told.subscription is subscription
    assert plain([told])[0].count("<Subscription open") == 1

    ended = ending(receive(client, complete(2)))
    assert (ended.subscription, ended.reason) == (subscription, SubscriptionEnd.ENDED)
    assert not subscription.open
    assert repr(subscription) == "<Subscription open=False acknowledged=True>"


def test_a_subscription_tells_which_notifications_it_grants() -> None:
    """Adapters drop changes that were not granted, and must not need a table of filters."""
    tools, prompts = "notifications/tools/list_changed", "notifications/prompts/list_changed"
    client = modern_client()
    subscription = client.listen(WHOLE_FILTER)
    assert not subscription.grants(tools)

    receive(client, acknowledged(2, {"toolsListChanged": True, "promptsListChanged": False}))
    assert subscription.grants(tools)
    assert not subscription.grants(prompts)
    assert not subscription.grants("notifications/resources/updated")
    assert not subscription.grants("notifications/message")


def test_several_are_told_apart_by_their_ids() -> None:
    """All subscriptions share one channel."""
    client = modern_client()
    first, second = subscribed(client), subscribed(client)
    events = receive(client, changed(3), changed(2))
    assert [event.subscription for event in of(NotificationReceived, events)] == [second, first]
    client.send_request("tools/list")
    assert sent(client)[0]["id"] == 4  # theirs stay in use


@pytest.mark.parametrize("cancelled_first", [False, True])
def test_server_may_end_it_in_two_ways_at_once(cancelled_first: bool) -> None:
    """Two pages of the specification demand a result and a cancellation."""
    client = modern_client()
    subscribed(client)
    done = result(2, {"resultType": "complete", "_meta": {SUBSCRIPTION: 2}})
    both = [done, note("notifications/cancelled", {"requestId": 2})]
    events = receive(client, *(reversed(both) if cancelled_first else both))
    assert ending(events).reason is SubscriptionEnd.ENDED
    assert len(of(MessageIgnored, events)) == 1
    assert len(events) == 2


def test_client_ends_it_by_cancelling() -> None:
    """A change that crosses the cancellation must not be reported as a fault."""
    client = modern_client()
    subscription = subscribed(client)
    assert client.cancel(subscription)
    (message,) = sent(client)
    assert message["method"] == "notifications/cancelled"
    assert message["params"] == {"requestId": 2}
    assert ending(drain(client)).reason is SubscriptionEnd.CANCELLED
    only(MessageIgnored, receive(client, changed(2)))
    assert not client.cancel(subscription)


def test_refusal_is_an_ending() -> None:
    """The ending must have the server's error."""
    client = modern_client()
    client.listen(TOOLS)
    ended = ending(receive(client, error(2, -32601, "no")))
    assert (ended.reason, ended.code, ended.message) == (SubscriptionEnd.ERROR, -32601, "no")


def test_timeout_is_for_the_acknowledgement_only() -> None:
    """After the acknowledgement, silence is normal."""
    client = modern_client()
    client.listen(TOOLS, timeout=5, now=0)
    client.handle_timeout(5)
    assert ending(drain(client)).reason is SubscriptionEnd.TIMED_OUT
    sent(client)
    client.listen(TOOLS, timeout=5)
    sent(client)
    receive(client, acknowledged(3, TOOLS))
    assert client.next_timeout() is None


@pytest.mark.parametrize(("answer", "reason"), [(result(2, {"resultType": "x"}), "INVALID_ANSWER")])
def test_invalid_answer_is_an_ending(answer: JSONObject, reason: str) -> None:
    """The subscription has ended, and later messages do not revive it."""
    client = modern_client()
    subscribed(client)
    assert ending(receive(client, answer)).reason is SubscriptionEnd[reason]


def test_end_of_the_connection_is_its_end() -> None:
    """A subscription must end with its connection, and be made again on the next one."""
    client = modern_client()
    subscribed(client)
    client.receive_eof()
    assert ending(drain(client)).reason is SubscriptionEnd.LOST


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        (note("notifications/tools/list_changed"), "SUBS-009"),
        (note("notifications/tools/list_changed", {"_meta": {SUBSCRIPTION: True}}), "SUBS-009"),
        (changed(2, "prompts/list_changed"), "SUBS-002"),
    ],
)
def test_changes_that_were_not_ordered_are_reported_and_told(
    message: JSONObject, rule: str
) -> None:
    """A change outside of the filter is harmless, so it must be delivered too."""
    client = modern_client()
    subscribed(client)
    events = receive(client, message)
    (violation,) = of(ProtocolViolation, events)
    assert (violation.rule, violation.tolerated) == (rule, True)
    assert len(of(NotificationReceived, events)) == 1


def test_change_before_the_acknowledgement_is_reported_and_told() -> None:
    """The acknowledgement must come first, but the change is still useful."""
    client = modern_client()
    client.listen(TOOLS)
    events = receive(client, changed(2))
    assert [event.rule for event in of(ProtocolViolation, events)] == ["SUBS-005"]
    assert len(of(NotificationReceived, events)) == 1


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        (acknowledged(2, TOOLS), "SUBS-004"),
        (acknowledged(None, TOOLS), "SUBS-009"),
    ],
)
def test_acknowledgements_that_say_nothing(message: JSONObject, rule: str) -> None:
    """A second acknowledgement, and one without a known subscription, must be ignored."""
    client = modern_client()
    subscribed(client)
    (violation,) = receive(client, message)
    assert isinstance(violation, ProtocolViolation)
    assert violation.rule == rule


def test_what_is_for_nobody_is_ignored() -> None:
    """The message may belong to an earlier subscription."""
    client = modern_client()
    client.send_request("tools/list")
    for id in (2, 7):
        assert only(MessageIgnored, receive(client, changed(id))).rule == "SUBS-010"


def test_server_cancels_nothing_else() -> None:
    """Only the client may cancel its other requests."""
    client = modern_client()
    call = client.send_request("tools/list")
    (violation,) = receive(client, note("notifications/cancelled", {"requestId": 2}))
    assert isinstance(violation, ProtocolViolation)
    assert violation.rule == "CANC-019"
    assert call.open
    only(MessageIgnored, receive(client, note("notifications/cancelled", {"requestId": 9})))
    only(MessageIgnored, receive(client, note("notifications/cancelled", {})))


@pytest.mark.parametrize(
    "notifications",
    [{"toolsListChanged": 1}, {"resourceSubscriptions": "a"}, {"resourceSubscriptions": [1]}, 5],
)
def test_filter_has_to_be_one(notifications: Any) -> None:
    """An invalid filter must not be sent, since the server would refuse it."""
    client = modern_client()
    with pytest.raises(LocalProtocolError, match="OWN-014"):
        client.listen(notifications)
    assert sent(client) == []


def test_there_are_none_after_a_handshake() -> None:
    """Subscriptions do not exist in a legacy conversation, nor before the opening."""
    with pytest.raises(LocalProtocolError, match="OWN-020"):
        ready_client("2025-11-25").listen(TOOLS)
    with pytest.raises(LocalProtocolError):
        new_client(revisions=(MODERN,)).listen(TOOLS)


def test_verbs_wake_who_writes() -> None:
    """An adapter that sleeps must be woken for each message to write."""
    woken: list[int] = []
    client = ClientConnection(
        info={"name": "client", "version": "1"},
        capabilities={"roots": {}},
        revisions=(MODERN,),
        wake=lambda: woken.append(1),
    )
    client.start()
    receive(client, result(sent(client)[0]["id"], discovered()))
    before = len(woken)
    client.listen(TOOLS)
    assert len(woken) == before + 1
    sent(client)
    call = client.send_request("tools/call", {"name": "t"})
    sent(client)
    questions = {"resultType": "input_required", "inputRequests": {"r": ROOTS}}
    receive(client, result(call.id, questions))
    before = len(woken)
    client.provide_input(call, {"r": {"roots": []}})
    assert len(woken) == before + 1
