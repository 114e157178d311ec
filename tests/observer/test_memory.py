"""The memory of an observer is bounded, and a message that it has forgotten accuses nobody."""

import re
from collections.abc import Callable

import pytest

from sansmcp import (
    BlindCause,
    BlindSpot,
    Config,
    JSONObject,
    MessageSeen,
    Observer,
    RequestUnanswered,
    Side,
    ViolationSeen,
)
from sansmcp.testing import canonical
from tests.support.modern import (
    FORM,
    SUBSCRIPTION,
    acknowledged,
    complete,
    envelope,
    input_required,
    listen,
    modern,
)
from tests.support.tasks import STAMP
from tests.support.watching import NEWEST, C, S, Step, accused, observe, opening, taken
from tests.support.wire import call, error, initialize, note, result, wire

SMALL = Config(
    max_requests=5, max_used_ids=5, max_late_answers=5, max_subscriptions=5, max_message_bytes=600
)


def ask(id: object, token: object = None) -> JSONObject:
    meta: JSONObject = {} if token is None else {"_meta": {"progressToken": token}}
    return call(id, "ping", meta)


def task(n: int) -> list[Step]:
    times = {"createdAt": STAMP, "lastUpdatedAt": STAMP}
    task = {"taskId": f"t{n}", "status": "working", "ttl": 1, **times}
    params = {"name": "x", "task": {}, "_meta": {"progressToken": n}}
    return [(C, call(n, "tools/call", params)), (S, result(n, {"task": task}))]


def cancel(id: object) -> JSONObject:
    return note("notifications/cancelled", {"requestId": id})


ENDLESS: dict[str, Callable[[int], list[Step]]] = {
    "requests without answers": lambda n: [(C, ask(n)), (S, ask(n))],
    "requests with answers": lambda n: [(C, ask(n)), (S, result(n, {}))],
    "requests that are cancelled": lambda n: [(S, ask(n)), (S, cancel(n))],
    "ids far apart": lambda n: [(C, ask(n * 7)), (S, result(n * 7, {}))],
    "names as ids": lambda n: [(C, ask(f"name {n}")), (S, result(f"name {n}", {}))],
    "long names as ids": lambda n: [(C, ask(f"{n:300}")), (S, result(f"{n:300}", {}))],
    "tokens": lambda n: [(C, ask(n, f"token {n}")), (S, result(n, {}))],
    "tasks": task,
    "subscriptions": lambda n: [
        (C, call(n, "resources/subscribe", {"uri": f"a:{n}"})),
        (S, result(n, {})),
    ],
    "levels": lambda n: [(C, call(n, "logging/setLevel", {"level": "info"}))],
    "bad messages": lambda n: [(C, {"jsonrpc": "2.0", "id": n}), (S, error(n, -32600))],
    "bad answers": lambda n: [(C, ask(n)), (S, result(n, 5))],
    "answers to nobody": lambda n: [(C, result(n, {})), (S, error(f"{n}", 1))],
    "modern requests": lambda n: [(C, modern(n * 3, "server/discover")), (S, result(n * 3, {}))],
    "modern requests without answers": lambda n: [(C, modern(n, "tools/call", {"name": "t"}))],
    "modern requests of one id": lambda n: [
        (C, modern(1, "tools/call", {"name": f"tool {n}"})),
        (S, complete(1, {"content": []})),
    ],
    "requests of an unknown revision": lambda n: [
        (C, modern(n, "x/y", {}, envelope(version="2031-01-01"))),
        (S, result(n, {})),
    ],
    "rounds of questions": lambda n: [
        (C, modern(n, "tools/call", {"name": f"tool {n}"})),
        (S, input_required(n, {f"question {n}": FORM}, f"state {n}")),
    ],
    "rounds of one state": lambda n: [
        (C, modern(n, "tools/call", {"name": "t"})),
        (S, input_required(n, {}, "state")),
    ],
    "wishes for logs": lambda n: [(C, modern(n, "x/y", {}, envelope(level="info")))],
    "listeners": lambda n: [
        (C, listen(n, {"resourceSubscriptions": [f"a:{n}"]})),
        (S, acknowledged(n, {})),
    ],
    "listeners with resources": lambda n: [
        (C, listen(n, {"resourceSubscriptions": [f"a:{n}", f"b:{n}"]})),
        (S, acknowledged(n, {"resourceSubscriptions": [f"b:{n}"]})),
    ],
    "listeners that are cancelled": lambda n: [
        (C, listen(n, {"resourceSubscriptions": [f"a:{n}"]})),
        (C, cancel(n)),
    ],
    "listeners that end": lambda n: [
        (C, listen(n, {"resourceSubscriptions": [f"a:{n}"]})),
        (S, acknowledged(n, {"resourceSubscriptions": [f"a:{n}"]})),
        (S, complete(n, {"_meta": {SUBSCRIPTION: n}})),
    ],
    "listeners that are ended": lambda n: [
        (C, listen(n, {"resourceSubscriptions": [f"a:{n}"]})),
        (S, note("notifications/cancelled", {"requestId": n})),
    ],
    "handshakes": lambda n: [(C, initialize(n, NEWEST)), (S, error(n, -32600))],
    "text": lambda n: [(C, b"{%d\n" % n), (S, b"text %d\n" % n)],
    "long lines": lambda n: [(C, b"x" * 700), (S, b'"' + b"y" * 700 + b"\n")],
}


@pytest.mark.parametrize("name", ENDLESS)
def test_memory_does_not_grow_without_end(name: str) -> None:
    """A proxy runs for weeks."""
    observer = Observer(config=SMALL)
    for side, message in opening():
        observer.receive_data(side, wire(message))
    sizes: list[int] = []
    for n in range(1, 161):
        for side, message in ENDLESS[name](n):
            observer.receive_data(side, wire(message))
        taken(observer)
        if n in (40, 160):
            sizes.append(len(canonical(observer)))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # a tuple

    assert sizes[1] <= sizes[0] + 5


def forgotten(events: list[object]) -> list[Side | None]:
    return [
        event.side
        for event in events
        if isinstance(event, BlindSpot) and event.cause is BlindCause.FORGOTTEN
    ]


REQUEST = "the oldest request was forgotten"
FINISHED = "the oldest finished request was forgotten"
ID = "the oldest id was forgotten"
TOKEN = "the oldest progress token was forgotten"
URIS = "the resources of the oldest subscription were forgotten"
FORGETS: dict[str, list[tuple[Side, str]]] = {
    "requests without answers": [(C, REQUEST), (S, REQUEST)],
    "requests with answers": [(C, FINISHED)],
    "requests that are cancelled": [(S, FINISHED)],
    "ids far apart": [(C, FINISHED), (C, ID)],
    "tokens": [(C, FINISHED), (C, TOKEN), (C, "a used token was forgotten")],
    "tasks": [
        (C, FINISHED),
        (C, TOKEN),
        (C, "a task was not remembered"),
        (S, "the oldest task was forgotten"),
    ],
    "subscriptions": [(C, FINISHED), (C, "a subscription was not remembered")],
    "rounds of questions": [(C, FINISHED), (C, "the oldest questions were forgotten")],
    "listeners with resources": [(C, URIS), (C, REQUEST)],
    "listeners that are cancelled": [(C, FINISHED)],
    "listeners that end": [(C, FINISHED)],
    "listeners that are ended": [(C, FINISHED)],
}


@pytest.mark.parametrize("name", FORGETS)
def test_what_is_forgotten_is_told_once(name: str) -> None:
    """Without the report, silence would look like a conversation without faults; a report of
    each would hide others."""
    steps = opening()
    for n in range(1, 40):
        steps += ENDLESS[name](n)
    told = [
        (event.side, re.split("[:,]", event.text)[0])
        for event in observe(*steps, config=SMALL)
        if isinstance(event, BlindSpot)
    ]

    assert told == FORGETS[name]


@pytest.mark.parametrize("name", ["requests without answers", "ids far apart", "tasks", "tokens"])
def test_what_was_forgotten_is_not_held_against_anyone(name: str) -> None:
    """A response, a cancellation or progress may belong to a forgotten request."""
    steps = opening()
    for n in range(1, 40):
        steps += ENDLESS[name](n)
    before = observe(*steps, config=SMALL)
    for id in (1, 7):
        steps += [
            (C, cancel(id)),
            (S, note("notifications/progress", {"progressToken": id, "progress": 1})),
        ]
    if name == "requests without answers":
        steps += [(S, result(1, {}))]
    events = observe(*steps, config=SMALL)

    assert accused(before) == []
    assert {rule for _, rule in accused(events)} <= {"PROG-006"}
    assert ("PROG-006" in {rule for _, rule in accused(events)}) == (
        name != "tasks" and name != "tokens"
    )


def updated(id: int, uri: str) -> Step:
    return S, note("notifications/resources/updated", {"uri": uri, "_meta": {SUBSCRIPTION: id}})


def subscribed(id: int, *uris: str) -> list[Step]:
    filter: JSONObject = {"resourceSubscriptions": list(uris)}
    return [(C, listen(id, filter)), (S, acknowledged(id, filter))]


def test_resources_that_were_forgotten_are_not_held_against_anyone() -> None:
    """The oldest subscription is forgotten, and known ones must be judged as before."""
    first, second = subscribed(1, "a:1", "a:2", "a:3"), subscribed(2, "b:1", "b:2")
    told = [updated(1, "x:1"), updated(2, "x:2")]
    known = observe(*first, *second, *told, config=SMALL)
    assert accused(known) == [(S, "SUBS-003"), (S, "SUBS-003")]
    assert forgotten(list(known)) == []

    more = observe(*first, *second, *subscribed(3, "c:1"), *told, updated(3, "x:3"), config=SMALL)
    assert accused(more) == [(S, "SUBS-003"), (S, "SUBS-003")]
    assert [event.text for event in more if isinstance(event, ViolationSeen)] == [
        "an update of 'x:2', which was not granted",
        "an update of 'x:3', which was not granted",
    ]
    assert forgotten(list(more)) == [C]


def test_more_resources_than_are_remembered() -> None:
    """Of a filter over the limit, updates of resources are not judged, but its kinds are."""
    filter: JSONObject = {"resourceSubscriptions": [f"a:{n}" for n in range(6)]}
    steps: list[Step] = [(C, listen(1, filter)), (S, acknowledged(1, filter)), updated(1, "x:1")]
    changed = note("notifications/tools/list_changed", {"_meta": {SUBSCRIPTION: 1}})
    events = observe(*steps, (S, changed), config=SMALL)
    assert accused(events) == [(S, "SUBS-002")]
    assert forgotten(list(events)) == [C]


def test_resources_that_were_asked_for_are_known_without_the_acknowledgement() -> None:
    """An unreadable line may have been the acknowledgement, which grants no more than was
    requested."""
    filter: JSONObject = {"resourceSubscriptions": ["a:1"]}
    steps: list[Step] = [(S, b"{\n"), (C, listen(1, filter)), updated(1, "a:1/part")]
    lost = observe(*steps, config=SMALL)
    events = observe(*steps, updated(1, "b:1"), config=SMALL)
    assert [rule for _, rule in accused(lost)] == ["STDIO-002"]
    assert [rule for _, rule in accused(events)] == ["STDIO-002", "SUBS-003"]


def test_a_granted_null_and_an_update_without_a_uri_are_not_judged_by_resource() -> None:
    """null counts as absent, and without the check of shapes a missing URI is not judged."""
    config = Config(check="none")
    steps = subscribed(1, "a:1")
    odd = note("notifications/resources/updated", {"uri": 5, "_meta": {SUBSCRIPTION: 1}})
    assert accused(observe(*steps, (S, odd), config=config)) == []
    null = acknowledged(2, {"toolsListChanged": True, "resourceSubscriptions": None})
    filter: JSONObject = {"toolsListChanged": True, "resourceSubscriptions": ["a:1"]}
    events = observe((C, listen(2, filter)), (S, null), updated(2, "a:1"), config=config)
    assert accused(events) == [(S, "OWN-015"), (S, "SUBS-002")]


def test_a_handshake_that_was_forgotten_is_not_judged() -> None:
    """After so many pings the response to `initialize` can no longer be matched."""
    steps: list[Step] = [(C, initialize("init", NEWEST))]
    steps += [(C, ask(n)) for n in range(8)]
    steps += [(S, opening()[1][1]), (C, call(100, "tools/list")), (S, call(1, "roots/list"))]
    events = observe(*steps, config=SMALL)

    assert accused(events) == []
    assert forgotten(list(events)) == [C]


def test_ids_that_were_forgotten_may_be_answered() -> None:
    """Whether there was such a request is no longer known."""
    steps = opening()
    for n in range(1, 40):
        steps += ENDLESS["ids far apart"](n)
    events = observe(*steps, (S, result(1_000_000, {})), (C, cancel(3)), config=SMALL)

    assert accused(events) == []
    assert forgotten(list(events)) == [C, C]


def test_so_many_subscriptions_may_hold_any() -> None:
    """A subscription that was not remembered may be the one that a change belongs to."""
    steps = opening()
    for n in range(1, 8):
        steps += ENDLESS["subscriptions"](n)
    for n in range(1, 8):
        steps += [
            (C, call(n + 10, "resources/unsubscribe", {"uri": f"a:{n}"})),
            (S, result(n + 10, {})),
        ]
    updated = (S, note("notifications/resources/updated", {"uri": "a:"}))

    assert accused(observe(*steps, updated, config=SMALL)) == []
    assert accused(observe(*steps, updated)) == [(S, "RES-008")]


def test_a_subscription_that_was_not_remembered_may_be_refused() -> None:
    """The refusal must not end remembered subscriptions."""
    steps = opening()
    for n in range(1, 7):
        steps += [(C, call(n, "resources/subscribe", {"uri": f"a:{n}"})), (S, error(n, -32603))]
    assert accused(observe(*steps, config=SMALL)) == []
    steps = opening() + [(C, call(n, "resources/subscribe", {"uri": f"a:{n}"})) for n in range(7)]
    steps += [(S, error(n, -32603)) for n in range(7)]
    updated = (S, note("notifications/resources/updated", {"uri": "a:"}))

    assert accused(observe(*steps, updated, config=SMALL)) == []


def test_so_many_bad_messages_may_be_answered() -> None:
    """Each invalid message could be answered with an error with its id."""
    steps = opening() + [(C, {"jsonrpc": "2.0", "id": n}) for n in range(100, 108)]
    events = observe(*steps, (S, error(100, -32600)), config=SMALL)

    assert {rule for _, rule in accused(events)} == {"ERR-001"}


def test_events_are_all_that_grows_until_they_are_taken() -> None:
    """No observation may be dropped: the caller takes events when it can."""
    observer = Observer(config=SMALL)
    for n in range(100):
        observer.receive_message(C, ask(n))
    observer.close()
    events = taken(observer)

    assert sum(isinstance(event, MessageSeen) for event in events) == 100
    assert sum(isinstance(event, RequestUnanswered) for event in events) == 5
