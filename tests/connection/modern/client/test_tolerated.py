"""Breaches of a server of 2026-07-28 that a client reports and tolerates.

Rules: JSON-020, MRTR-007, SUBS-004, SUBS-007, SUBS-014, SUBS-017.
"""

from typing import Any

import pytest

from sansmcp import (
    ClientConnection,
    Event,
    InputRequired,
    JSONObject,
    ListingEnd,
    ListingEnded,
    LocalProtocolError,
    NotificationReceived,
    ProtocolViolation,
    ResponseReceived,
    SubscriptionAcknowledged,
    SubscriptionEnd,
    SubscriptionEnded,
)
from tests.support.modern import (
    CLIENT,
    FILE,
    LEVEL,
    ROOTS,
    SUBSCRIPTION,
    acknowledged,
    complete,
    in_question,
    input_required,
    modern_client,
)
from tests.support.wire import note, of, only, receive, result, sent

TOOLS: JSONObject = {"toolsListChanged": True}
URIS: JSONObject = {"resourceSubscriptions": [FILE]}


def tolerated(events: list[Event]) -> list[str]:
    """The rules that were reported while the exchange went on."""
    violations = of(ProtocolViolation, events)
    assert all(violation.tolerated for violation in violations)
    return [violation.rule for violation in violations]


def listening(notifications: JSONObject) -> ClientConnection:
    """A client that has sent `subscriptions/listen` with id 2."""
    client = modern_client()
    client.listen(notifications)
    sent(client)
    return client


# --------------------------------------------------------------------------------------- results


def test_result_without_its_type_is_complete() -> None:
    """The server may use the form of an older revision."""
    client = modern_client()
    client.send_request("tools/call", {"name": "t"})
    events = receive(client, result(2, {"content": []}))
    assert tolerated(events) == ["JSON-020"]
    (done,) = of(ResponseReceived, events)
    assert done.result == {"content": []}


def test_page_without_its_type_is_a_page() -> None:
    """Requests of the library itself must be judged in the same way."""
    client = modern_client()
    client.send_paginated("tools/list")
    sent(client)
    events = receive(client, result(2, {"tools": []}))
    assert tolerated(events) == ["JSON-020"]
    (ended,) = of(ListingEnded, events)
    assert ended.reason is ListingEnd.COMPLETE


@pytest.mark.parametrize("alien", [{"id": "r1"}, {"jsonrpc": "2.0"}, {"id": 1, "jsonrpc": "2.0"}])
def test_question_in_an_envelope_is_a_question(alien: JSONObject) -> None:
    """One official example has an envelope around a question."""
    client = modern_client()
    client.send_request("tools/call", {"name": "t"})
    sent(client)
    events = receive(client, input_required(2, {"r": {**ROOTS, **alien}}))
    assert tolerated(events) == ["MRTR-007"]
    (asked,) = of(InputRequired, events)
    client.provide_input(asked.request, {"r": {"roots": []}})
    (again,) = sent(client)
    assert again["params"]["inputResponses"] == {"r": {"roots": []}}


# --------------------------------------------------------------------------------- subscriptions


@pytest.mark.parametrize(
    ("asked", "honoured", "rules"),
    [
        (TOOLS, TOOLS, []),
        (TOOLS, {}, []),
        (TOOLS, {"promptsListChanged": False}, []),
        (TOOLS, {"x/y": True}, []),
        (TOOLS, {"promptsListChanged": True}, ["SUBS-007"]),
        (URIS, {"resourceSubscriptions": []}, []),
        (URIS, {"resourceSubscriptions": [FILE, "file:///b"]}, ["SUBS-007"]),
        (TOOLS, URIS, ["SUBS-007"]),
    ],
)
def test_more_is_honoured_than_was_asked_for(
    asked: JSONObject, honoured: JSONObject, rules: list[str]
) -> None:
    """The subscription must stand, and each change outside of the filter be reported."""
    client = listening(asked)
    events = receive(client, acknowledged(2, honoured))
    assert tolerated(events) == rules
    (event,) = of(SubscriptionAcknowledged, events)
    assert event.subscription.acknowledged == honoured


@pytest.mark.parametrize(
    ("meta", "rules"),
    [
        ({"_meta": {SUBSCRIPTION: 2}}, []),
        ({"_meta": {SUBSCRIPTION: 3}}, ["SUBS-014"]),
        ({"_meta": {SUBSCRIPTION: "2"}}, ["SUBS-014"]),
        ({"_meta": {SUBSCRIPTION: None}}, ["SUBS-014"]),
        ({"_meta": {}}, ["SUBS-014"]),
        ({"_meta": 5}, ["OWN-014", "SUBS-014"]),
        ({}, ["SUBS-014"]),
    ],
)
def test_end_names_its_subscription(meta: JSONObject, rules: list[str]) -> None:
    """The response tells by its id which subscription has ended, without the tag."""
    client = listening(TOOLS)
    receive(client, acknowledged(2, TOOLS))
    events = receive(client, result(2, {"resultType": "complete", **meta}))
    assert tolerated(events) == rules
    (ended,) = of(SubscriptionEnded, events)
    assert ended.reason is SubscriptionEnd.ENDED


def test_end_before_the_acknowledgement() -> None:
    """A subscription can end before its acknowledgement."""
    client = listening(TOOLS)
    answer = {"resultType": "complete", "_meta": {SUBSCRIPTION: 2}}
    events = receive(client, result(2, answer))
    assert tolerated(events) == ["SUBS-004"]
    (ended,) = of(SubscriptionEnded, events)
    assert ended.reason is SubscriptionEnd.ENDED


@pytest.mark.parametrize("meta", [{SUBSCRIPTION: 2}, {}, None])
def test_log_message_is_of_no_subscription(meta: Any) -> None:
    """A log message with a tag must be delivered as a log message."""
    client = listening(TOOLS)
    receive(client, acknowledged(2, TOOLS))
    params = {"level": "info", "data": 1} | ({} if meta is None else {"_meta": meta})
    events = receive(client, note("notifications/message", params))
    assert tolerated(events) == (["SUBS-017"] if meta else [])
    (told,) = of(NotificationReceived, events)
    assert told.subscription is None


# ---------------------------------------------------------------------- what each round says anew


def test_next_round_may_say_other_things_of_itself() -> None:
    """A trace context may differ in each round, and the other members must stay."""
    client = modern_client()
    meta = {"traceparent": "00-1", "x/y": 1}
    call = in_question(client, {"r": ROOTS}, "s", meta=meta, log_level="info")
    client.provide_input(
        call, {"r": {"roots": []}}, meta={"traceparent": "00-2"}, log_level="debug"
    )
    (message,) = sent(client)
    said = message["params"].pop("_meta")
    assert (said["traceparent"], said["x/y"], said[LEVEL]) == ("00-2", 1, "debug")
    assert CLIENT in said
    assert message["params"] == {
        "name": "t",
        "arguments": {"a": 1},
        "inputResponses": {"r": {"roots": []}},
        "requestState": "s",
    }


def test_next_round_keeps_what_an_earlier_one_said() -> None:
    """Members that were given in the second round must be sent in the third."""
    client = modern_client()
    call = in_question(client, {"r": ROOTS}, meta={"x/y": 1})
    call = client.provide_input(call, {"r": {"roots": []}}, meta={"x/z": 2}, log_level="error")
    sent(client)
    receive(client, input_required(3, None, "s"))
    (message,) = sent(client)
    said = message["params"]["_meta"]
    assert (said["x/y"], said["x/z"], said[LEVEL]) == (1, 2, "error")
    only(ResponseReceived, receive(client, complete(4, {"content": []})))


def test_progress_token_of_the_callers_own() -> None:
    """A token of a later round must follow the same rules as the first."""
    client = modern_client()
    call = in_question(client, {"r": ROOTS})
    again = client.provide_input(call, {"r": {"roots": []}}, meta={"progressToken": "mine"})
    assert again.progress_token == "mine"
    (message,) = sent(client)
    assert message["params"]["_meta"]["progressToken"] == "mine"
    other = in_question(client, {"r": ROOTS})
    with pytest.raises(LocalProtocolError, match="PROG-002"):
        client.provide_input(other, {"r": {"roots": []}}, meta={"progressToken": "mine"})


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"meta": [1]}, "OWN-014"),
        ({"meta": {CLIENT: {}}}, "OWN-025"),
        ({"meta": [1], "log_level": "info"}, "OWN-014"),
        ({"log_level": "loud"}, "LOG-010"),
    ],
)
def test_what_may_not_be_said(options: Any, rule: str) -> None:
    """A refused member must change nothing, so that the questions can still be answered."""
    client = modern_client()
    call = in_question(client, {"r": ROOTS})
    with pytest.raises(LocalProtocolError, match=rule):
        client.provide_input(call, {"r": {"roots": []}}, **options)
    assert sent(client) == []
    client.provide_input(call, {"r": {"roots": []}})
    assert len(sent(client)) == 1
