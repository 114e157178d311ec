"""Each subscription of a client ends once, and only by messages that may end it.

Rules: SUBS-010 to SUBS-016, CANC-017 to CANC-020, ID-004.
"""

from collections.abc import Callable

import pytest

from sansmcp import (
    ClientConnection,
    CloseCause,
    ConnectionClosed,
    Event,
    JSONObject,
    Listing,
    MessageIgnored,
    NotificationReceived,
    OutgoingRequest,
    ResponseReceived,
    SubscriptionEnd,
    SubscriptionEnded,
)
from tests.support.modern import (
    TOOLS,
    acknowledged,
    cancelled,
    changed,
    complete,
    input_required,
    modern_client,
    subscribed,
)
from tests.support.wire import (
    broken,
    drain,
    error,
    of,
    only,
    receive,
    result,
    sent,
)


def ending(events: list[Event]) -> SubscriptionEnded:
    (ended,) = of(SubscriptionEnded, events)
    assert not ended.subscription.open
    return ended


@pytest.mark.parametrize("is_acknowledged", [False, True])
@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (complete(2), SubscriptionEnd.ENDED),
        (result(2, {}), SubscriptionEnd.ENDED),
        (cancelled(2), SubscriptionEnd.ENDED),
        (cancelled(2, reason="shutdown"), SubscriptionEnd.ENDED),
        (error(2, -32601, "no"), SubscriptionEnd.ERROR),
        (result(2, {"resultType": "other"}), SubscriptionEnd.INVALID_ANSWER),
        (input_required(2, None, "s"), SubscriptionEnd.INVALID_ANSWER),
        ({"jsonrpc": "2.0", "id": 2}, SubscriptionEnd.INVALID_ANSWER),
    ],
)
def test_whatever_the_server_says_ends_it_once(
    message: JSONObject, reason: SubscriptionEnd, is_acknowledged: bool
) -> None:
    """c041, c260: before and after the acknowledgement there must be one ending."""
    client = modern_client()
    client.listen(TOOLS, timeout=5, now=0)
    if is_acknowledged:
        receive(client, acknowledged(2, TOOLS))
    sent(client)
    assert ending(receive(client, message)).reason is reason
    assert client.next_timeout() is None
    # The server may say it in more than one way, and go on talking for a moment.
    late = [complete(2), cancelled(2), changed(2), acknowledged(2, TOOLS)]
    for straggler in late:
        only(MessageIgnored, receive(client, straggler))
    assert sent(client) == []


@pytest.mark.parametrize("is_acknowledged", [False, True])
def test_our_cancellation_ends_it_once(is_acknowledged: bool) -> None:
    """The server sends no response, or its own end crosses the cancellation (SUBS-011)."""
    client = modern_client()
    subscription = client.listen(TOOLS, timeout=5, now=0)
    if is_acknowledged:
        receive(client, acknowledged(2, TOOLS))
    sent(client)
    assert client.cancel(subscription, reason="bye", meta={"x": 1})
    assert sent(client) == [cancelled(2, reason="bye", _meta={"x": 1})]
    assert ending(drain(client)).reason is SubscriptionEnd.CANCELLED
    assert client.next_timeout() is None
    for message in (acknowledged(2, TOOLS), changed(2), complete(2), cancelled(2)):
        only(MessageIgnored, receive(client, message))
    assert client.cancel(subscription) is False
    assert sent(client) == []


def test_silence_before_the_acknowledgement_ends_it() -> None:
    """The server must get a cancellation, so that it sends no changes (TIME-003)."""
    client = modern_client()
    client.listen(TOOLS, timeout=5, now=0)
    sent(client)
    receive(client, changed(2), now=4)  # which is no acknowledgement
    client.handle_timeout(5)
    assert ending(drain(client)).reason is SubscriptionEnd.TIMED_OUT
    assert sent(client) == [cancelled(2, reason="timed out")]
    only(MessageIgnored, receive(client, acknowledged(2, TOOLS)))


@pytest.mark.parametrize("is_acknowledged", [False, True])
@pytest.mark.parametrize("how", ["close", "receive_eof"])
def test_end_of_the_connection_ends_all_of_them(how: str, is_acknowledged: bool) -> None:
    """c264: each subscription must be made again on the next connection (SUBS-016)."""
    client = modern_client()
    subscriptions = [client.listen(TOOLS) for _ in range(3)]
    sent(client)
    if is_acknowledged:
        receive(client, *(acknowledged(id, TOOLS) for id in (2, 3, 4)))
    getattr(client, how)()
    *ended, closed = drain(client)
    assert [event.subscription for event in of(SubscriptionEnded, ended)] == subscriptions
    assert {event.reason for event in of(SubscriptionEnded, ended)} == {SubscriptionEnd.LOST}
    assert isinstance(closed, ConnectionClosed)
    assert sent(client) == []


def test_subscription_outlives_a_failure_to_send() -> None:
    """Changes must be delivered until the stream of the server ends."""
    client = modern_client()
    first = subscribed(client)
    lost = client.listen(TOOLS)
    client.send_failed()
    assert ending(drain(client)).subscription is lost
    assert only(NotificationReceived, receive(client, changed(2))).subscription is first
    client.receive_eof()
    ended, closed = drain(client)
    assert ending([ended]).reason is SubscriptionEnd.LOST
    assert isinstance(closed, ConnectionClosed)
    assert closed.cause is CloseCause.SEND_FAILED


def test_each_ends_by_itself() -> None:
    """The other subscription must go on under its id (ID-004, SUBS-010)."""
    client = modern_client()
    first, second = subscribed(client), subscribed(client)
    asked = client.send_request("tools/list")
    assert ending(receive(client, cancelled(2))).subscription is first
    assert only(NotificationReceived, receive(client, changed(3))).subscription is second
    assert only(ResponseReceived, receive(client, complete(4, {"tools": []}))).request is asked
    ids = {client.send_request("tools/list").id for _ in range(3)}
    assert ids == {5, 6, 7}
    assert ending(receive(client, complete(3))).subscription is second


# ----------------------------------------------------------------- cancellations of anything else


ASKED: list[Callable[[ClientConnection], OutgoingRequest | Listing]] = [
    lambda client: client.send_request("tools/call", {"name": "t"}),
    lambda client: client.send_request("x/extension"),
    lambda client: client.send_paginated("tools/list"),
]


@pytest.mark.parametrize("ask", ASKED)
def test_server_cannot_cancel_what_it_was_asked(
    ask: Callable[[ClientConnection], OutgoingRequest | Listing],
) -> None:
    """c040: a request of the client must end by its response only (CANC-019)."""
    client = modern_client()
    handle = ask(client)
    assert broken(receive(client, cancelled(2, reason="no"))) == ["CANC-019"]
    assert handle.open
    assert of(MessageIgnored, receive(client, complete(2, {"tools": [], "content": []}))) == []
    assert not handle.open


@pytest.mark.parametrize("id", [7, "2", True, None, [2], 1.5])
def test_cancellation_of_nothing_is_ignored(id: object) -> None:
    """CANC-013: the cancellation may have crossed the end of its request."""
    client = modern_client()
    subscription = subscribed(client)
    events = receive(client, cancelled(id))
    assert [type(event) for event in events] == [MessageIgnored]
    assert subscription.open
