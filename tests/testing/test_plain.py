"""Comparable forms distinguish what differs, and nothing else."""

import copy
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from sansmcp import (
    MODERN_REVISIONS,
    Config,
    Event,
    LocalProtocolError,
    MsgspecCodec,
    NotificationReceived,
    PageReceived,
    ResponseReceived,
    State,
)
from sansmcp.testing import Pair, canonical, plain

CALL = {"name": "echo"}
MODERN = MODERN_REVISIONS[-1]


def told(**params: Any) -> list[str]:
    return plain([NotificationReceived(method="m", params=params)])


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (1, 1.0), (1, "1"), (0, False), (None, "None"), ([1], [True])]
)
def test_values_that_python_takes_for_equal_differ(one: object, other: object) -> None:
    """`1 == True` in Python, and a mix-up of ids would go unseen."""
    assert told(x=one) != told(x=other)


def test_the_order_of_members_does_not_count() -> None:
    """JSON objects have no order, and two codecs may give different ones."""
    assert told(a=1, b={"c": 1, "d": 2}) == told(b={"d": 2, "c": 1}, a=1)


def test_texts_are_as_expected() -> None:
    """A failed test shows these texts, so they must be readable."""
    pair = Pair()
    call = pair.client.send_request("tools/call", CALL, progress=True)
    pair.client.send_paginated("tools/list")
    pair.client.ping()
    pair.deliver()
    ready = plain(
        [PageReceived(listing=pair.client.send_paginated("tools/list"), items=[], result={})]
    )

    assert plain(pair.client_events) == [
        "PingEnded(ping=<Ping over>, failure=None, seconds=0.0, text='')"
    ]
    assert plain(pair.server_events) == [
        "RequestReceived(request=<IncomingRequest tools/call id=2 open token=2 "
        "params={'_meta': {'progressToken': 2}, 'name': 'echo'}>)",
        "RequestReceived(request=<IncomingRequest tools/list id=3 open token=None params={}>)",
        "RequestAnswered(request=<IncomingRequest ping id=4 over token=None params={}>, code=None)",
    ]
    assert ready == [
        "PageReceived(listing=<Listing tools/list open pages=0 items=0 stale=False>, items=[], "
        "result={}, cached=None)"
    ]
    assert plain([ResponseReceived(request=call, result={})]) == [
        "ResponseReceived(request=<OutgoingRequest tools/call id=2 open token=2>, result={}, "
        "cached=None)"
    ]


def test_subscriptions_have_texts_too() -> None:
    """The requested and the granted filter must be in the text."""
    pair = Pair(revision=MODERN)
    subscription = pair.client.listen({"toolsListChanged": True}, data=1)
    pair.deliver()

    assert plain(pair.client_events) == [
        "SubscriptionAcknowledged(subscription=<Subscription open "
        "asked={'toolsListChanged': True} acknowledged={'toolsListChanged': True}>, "
        "notifications={'toolsListChanged': True})"
    ]
    [*_, added] = plain(pair.server_events)
    assert added == "ListenerAdded(listener=<Listener open honoured={'toolsListChanged': True}>)"
    pair.client.cancel(subscription)
    assert plain(pair.client_events)[-1].startswith(
        "SubscriptionEnded(subscription=<Subscription over"
    )


def test_the_handshake_has_a_form_too() -> None:
    """`Ready` has an object for the peer, which needs a form."""
    pair = Pair(connected=False)
    pair.connect()

    [ready] = plain(pair.client_events)

    assert ready.startswith("Ready(revision='2025-11-25', peer=<Peer capabilities={'completions'")
    assert ready.endswith("start=<Start over>)")
    assert "0x" not in ready


SCENARIO = """
from sansmcp.testing import Pair, plain
pair = Pair()
for name in "abc":
    pair.client.send_request("tools/call", {"name": name, "arguments": {name: 1, "z": 2}})
pair.server.send_request("roots/list", progress=True)
pair.deliver()
pair.client.close()
print(plain(pair.client_events), plain(pair.server_events), pair.transcript)
"""


def test_events_and_bytes_are_the_same_whatever_the_hash_seed() -> None:
    """Invariant 2: iterating over a set would make each run different."""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCENARIO],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert len(outputs) == 1
    assert b"tools/call" in outputs.pop()


# ------------------------------------------------------------------------------------ canonical


def test_a_copy_has_the_same_form() -> None:
    """Otherwise the explorer would never recognise a state."""
    pair = Pair(client_config=Config(codec=MsgspecCodec()))
    call = pair.client.send_request("tools/call", CALL, progress=True, timeout=4)
    pair.client.send_paginated("tools/list")
    pair.deliver()
    pair.server.send_request("roots/list", id="name")
    pair.client.cancel(call)
    group = (pair, call, [1, {"a": bytearray(b"x")}, {1, "a"}, deque([State.OPEN]), (1, 2.0)])

    assert canonical(*copy.deepcopy(group)) == canonical(*group)
    assert hash(canonical(*group)) == hash(canonical(*group))


CHANGES: list[Callable[[Pair], object]] = [
    lambda pair: pair.client.send_request("tools/call", CALL),
    lambda pair: pair.server.send_log("error", "x"),
    lambda pair: pair.to_client.put(b"x"),
    lambda pair: pair.deliver(),
    lambda pair: pair.client.receive_data(b"{"),
    lambda pair: pair.server.send_progress(pair.server.open_requests[0], 1),
    lambda pair: pair.server.next_event(),
    lambda pair: pair.advance(0.5),
    lambda pair: pair.client.close(),
]


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_of_state_changes_the_form(change: Callable[[Pair], object]) -> None:
    """Different states with one form would leave paths unexplored."""
    pair = Pair()
    pair.client.send_request("tools/call", CALL, progress=True)
    pair.deliver()
    pair.client.ping()
    before = canonical(pair)

    change(pair)

    assert canonical(pair) != before


def test_a_call_that_raises_changes_no_form() -> None:
    """Invariant 7 is checked by this form, so the form must not change by itself."""
    pair = Pair()
    before = canonical(pair)
    with pytest.raises(LocalProtocolError):
        pair.client.send_request("tools/call", {})

    assert canonical(pair) == before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0, State.OPEN),
        ([1, [2]], [[1], 2]),
        ([1], (1,)),
        ({"a": 1}, ["a", 1]),
        (b"x", bytearray(b"x")),
        ({1}, {"1"}),
        (frozenset({1}), {1}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),  # a table's order is what events come in
    ],
)
def test_values_of_other_types_have_other_forms(one: object, other: object) -> None:
    """Python treats some of them as equal."""
    assert canonical(one) != canonical(other)


def test_it_counts_which_places_hold_the_same_object() -> None:
    """One handle in two tables is one request; two equal handles are two."""
    shared: list[int] = []

    assert canonical([shared, shared]) != canonical([shared, list(shared)])


def test_the_callers_own_things_do_not_count() -> None:
    """`wake` and `data` belong to the caller, and are no state of the connection."""
    one, other = Pair(), Pair()
    for pair, data in ((one, object()), (other, None)):
        pair.client.send_request("tools/call", CALL, data=data)
    other.client._core.wake = print

    assert canonical(one) == canonical(other)


def test_data_of_subscriptions_does_not_count() -> None:
    """`data` of a subscription belongs to the caller, as that of every handle."""
    one, other = Pair(revision=MODERN), Pair(revision=MODERN)
    for pair, data in ((one, object()), (other, None)):
        pair.client.listen({"toolsListChanged": True}, data=data)
        pair.deliver()
        [listener] = pair.server.listeners
        listener.data = data
        pair.clear_events()

    assert canonical(one) == canonical(other)


@attrs.frozen
class _Noted:
    data: int


def test_data_counts_where_it_is_no_handles() -> None:
    """Errors and wires have a member `data` which is state."""
    assert canonical(_Noted(1)) != canonical(_Noted(2))


def test_plain_takes_any_iterable_of_events() -> None:
    """A generator of events must work like a list."""
    events: list[Event] = [NotificationReceived(method="m", params={})]

    assert plain(iter(events)) == plain(events)
    (told,) = plain(events)
    assert told.startswith("NotificationReceived(method='m', params={}, ")
