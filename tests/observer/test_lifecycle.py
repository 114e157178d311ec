"""The observer follows handshakes: early messages, unknown revisions, and unseen messages.

No side may be accused of what could have been said before the observation, in text that could not
be read, or in a revision that is not judged.
"""

from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    BlindCause,
    BlindSpot,
    Config,
    HandshakeSeen,
    JSONObject,
    Observation,
    Observer,
    Side,
)
from sansmcp.testing import CLIENT_CAPABILITIES, SERVER_CAPABILITIES
from tests.support.watching import (
    NEWEST,
    C,
    S,
    Step,
    accused,
    agreement,
    observe,
    opening,
    taken,
)
from tests.support.wire import (
    CLIENT_INFO,
    INITIALIZED,
    SERVER_INFO,
    call,
    error,
    initialize,
    note,
    result,
    wire,
)

INIT: Step = (C, initialize("init", NEWEST, CLIENT_CAPABILITIES))
AGREED: Step = (S, result("init", agreement()))
DONE: Step = (C, INITIALIZED)
LIST: Step = (C, call(1, "tools/list"))
ROOTS: Step = (S, call(1, "roots/list"))
CHANGED: Step = (S, note("notifications/tools/list_changed"))
ROOTS_CHANGED: Step = (C, note("notifications/roots/list_changed"))
LOG: Step = (S, note("notifications/message", {"level": "info", "data": 1}))


def ping(side: Side, id: object = 1, **meta: Any) -> Step:
    return side, call(id, "ping", {"_meta": meta} if meta else {})


def blind(events: list[Observation]) -> list[tuple[BlindCause, Side | None]]:
    return [(event.cause, event.side) for event in events if isinstance(event, BlindSpot)]


TOO_EARLY: dict[str, tuple[list[Step], list[tuple[Side, str]]]] = {
    "a request before the handshake": ([LIST], [(C, "LIFE-005")]),
    "a request before the answer": ([INIT, LIST], [(C, "LIFE-005")]),
    "a request before initialized": ([INIT, AGREED, LIST], [(C, "LIFE-004")]),
    "a notification before the handshake": ([ROOTS_CHANGED], [(C, "LIFE-001")]),
    "a notification before the answer": ([INIT, ROOTS_CHANGED], [(C, "LIFE-001")]),
    "a notification before initialized": ([INIT, AGREED, ROOTS_CHANGED], [(C, "LIFE-004")]),
    "initialized before the handshake": ([DONE], [(C, "LIFE-004")]),
    "initialized before the answer": ([INIT, DONE, AGREED, LIST, ROOTS], [(C, "LIFE-004")]),
    "a second initialize in flight": ([INIT, (C, initialize(2, NEWEST))], [(C, "LIFE-001")]),
    "a second initialize once agreed": (
        [INIT, AGREED, (C, initialize(2, NEWEST))],
        [(C, "LIFE-001")],
    ),
    "a server request before the handshake": ([ROOTS], [(S, "LIFE-006")]),
    "a server request before initialized": ([INIT, AGREED, ROOTS], [(S, "LIFE-006")]),
    "a change before the handshake": ([CHANGED], [(S, "LIFE-001")]),
    "a change before the answer": ([INIT, CHANGED], [(S, "LIFE-001")]),
    "an undeclared change before initialized": (
        [INIT, (S, result("init", agreement(server={}))), CHANGED],
        [(S, "CAP-002")],
    ),
    "initialize from the server": ([(S, initialize(1, NEWEST))], [(S, "LIFE-006")]),
    "initialize in a batch": ([(C, [INIT[1]])], [(C, "BATCH-003")]),
    "initialize without members": ([(C, call(1, "initialize", {}))], [(C, "LIFE-002")]),
    "an answer to initialize without members": (
        [INIT, (S, result("init", {"protocolVersion": NEWEST}))],
        [(S, "LIFE-003")],
    ),
    "a cancellation of initialize": (
        [INIT, (C, note("notifications/cancelled", {"requestId": "init"}))],
        [(C, "CANC-004")],
    ),
    "an id of the time before the handshake": (
        [ping(C, "init"), (S, result("init", {})), INIT],
        [(C, "ID-001")],
    ),
}


@pytest.mark.parametrize("name", TOO_EARLY)
def test_what_comes_too_early_is_found(name: str) -> None:
    """Most servers that fail do so in the handshake."""
    steps, guilty = TOO_EARLY[name]

    assert accused(observe(*steps)) == guilty


EARLY_ENOUGH: dict[str, list[Step]] = {
    "pings at any time": [
        *(ping(C, 11), ping(S, 11), INIT, ping(C, 12), ping(S, 12)),
        *(AGREED, ping(C, 13), ping(S, 13), DONE, LIST, ROOTS),
    ],
    "a log message before the answer": [LOG, INIT, LOG, AGREED, LOG, DONE],
    "cancellations of pings": [
        ping(C, 1),
        INIT,
        (C, note("notifications/cancelled", {"requestId": 1})),
        AGREED,
        DONE,
    ],
    "a request that crosses the answer to initialize": [INIT, AGREED, DONE, ROOTS, LIST],
    "a second try after a refusal": [
        INIT,
        (S, error("init", -32602)),
        (C, initialize(2, "2024-11-05")),
        (S, result(2, agreement("2024-11-05"))),
        DONE,
        LIST,
    ],
    "a change that crosses initialized": [INIT, AGREED, CHANGED, DONE],
    "a notification of its own that crosses initialized": [INIT, AGREED, (S, note("x/y")), DONE],
    "everything in a row": [INIT, AGREED, DONE, LIST, ROOTS, CHANGED, ROOTS_CHANGED],
}


@pytest.mark.parametrize("name", EARLY_ENOUGH)
def test_what_is_early_enough_is_not_accused(name: str) -> None:
    """A side that has waited for a message which was seen has waited long enough."""
    assert accused(observe(*EARLY_ENOUGH[name])) == []


@pytest.mark.parametrize(
    "message",
    [
        call(1, "prompts/list"),
        note("notifications/tasks/status", {"taskId": "t"}),
        [call(1, "ping")],
        note("notifications/cancelled"),
    ],
)
def test_what_was_agreed_on_is_held_against_those_only_who_have_read_it(message: object) -> None:
    """A client that goes on too early may not have read the server's capabilities: it may be
    accused of being early, but not of using undeclared ones."""
    before = [
        (C, initialize("init", "2024-11-05")),
        (S, result("init", agreement("2024-11-05", {}))),
    ]
    rules = {rule for _, rule in accused(observe(*before, (C, message)))}

    assert rules <= {"LIFE-004"}


def test_a_client_that_has_read_the_agreement_is_held_to_it() -> None:
    """A response to a later request shows that the agreement was read, even without
    `initialized`."""
    seen = [INIT, (S, result("init", agreement(server={}))), ping(S), (C, result(1, {})), LIST]

    assert accused(observe(*seen)) == [(C, "CAP-002")]


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
def test_the_handshake_is_told_of(revision: str) -> None:
    """The agreed revision is the first fact that a watcher needs."""
    observer = Observer()
    steps = opening(revision)
    for side, message in steps[:2]:
        observer.receive_data(side, wire(message), now=5.0)
    [seen] = [event for event in taken(observer) if isinstance(event, HandshakeSeen)]

    assert seen == HandshakeSeen(
        revision=revision,
        client_info=CLIENT_INFO,
        server_info=SERVER_INFO,
        client_capabilities=CLIENT_CAPABILITIES,
        server_capabilities=SERVER_CAPABILITIES,
        number=2,
        time=5.0,
    )
    assert observer.revision == revision


def test_no_revision_is_claimed_before_one_is_agreed() -> None:
    """The requested revision is no agreement."""
    observer = Observer()
    observer.receive_message(*INIT)

    assert observer.revision is None


# --------------------------------------------------------------------------- unknown agreements

STRANGE: dict[str, JSONObject] = {
    "a revision of the future": agreement("2031-01-01"),
    "the modern revision": agreement("2026-07-28"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_nobody_is_judged_by_rules_of_an_unknown_revision(name: str) -> None:
    """An unknown revision may allow what this library would forbid."""
    seen = [
        *(INIT, (S, result("init", STRANGE[name])), DONE),
        *(ping(C), ping(C), (S, [call(9, "x")]), CHANGED, (S, call(4, "tools/list"))),
        (C, note("notifications/cancelled", {"requestId": "?"})),
        (C, note("notifications/cancelled")),
        (S, note("notifications/message", {"level": "whisper"})),
        (S, note("notifications/progress", {"progressToken": [], "progress": 1})),
        ping(C, 5, progressToken="t"),
        (S, result(5, {"task": {}})),
        (S, note("notifications/progress", {"progressToken": "t", "progress": 1})),
    ]
    events = observe(*seen)

    assert accused(events) == []
    assert blind(events) == [(BlindCause.ERA, None)]


def test_an_invalid_answer_to_initialize_ends_the_judgement() -> None:
    """Whether the client accepts the result is unknown."""
    seen = [INIT, (S, {"jsonrpc": "2.0", "id": "init"}), LIST, ROOTS, CHANGED]

    assert accused(observe(*seen)) == [(S, "JSON-005")]


def test_a_client_that_declares_nothing_readable_ends_the_judgement() -> None:
    """The requests that the server may send are then unknown."""
    steps: list[Step] = [(C, initialize("init", NEWEST, [])), AGREED, DONE, ROOTS, LIST]
    events = observe(*steps)

    assert accused(events) == [(C, "LIFE-002")]
    assert blind(events) == [(BlindCause.ERA, None)]


def test_a_second_handshake_that_succeeds_ends_the_judgement() -> None:
    """The peers may use either of the two."""
    again = (C, initialize(2, NEWEST, {}))
    seen = [INIT, AGREED, DONE, again, (S, result(2, agreement(server={}))), LIST, ROOTS]

    assert accused(observe(*seen)) == [(C, "LIFE-001")]


def test_requests_of_one_id_may_be_answered_in_any_order() -> None:
    """Which of two handshakes with one id was refused is unknown."""
    again = (C, initialize("init", NEWEST))
    seen = [INIT, again, (S, error("init", -32600)), (S, result("init", agreement())), LIST]

    assert {side for side, _ in accused(observe(*seen))} == {C}


# ------------------------------------------------------------------------- from the middle on

LATE: dict[str, list[Step]] = {
    "answers to what was not seen": [(S, result(4, {"tools": []})), (C, error(5, -32601))],
    "two answers": [ping(C), (S, result(1, {})), (S, result(1, {}))],
    "answers of another type": [ping(C), (S, result("1", {}))],
    "answers with odd ids": [(S, result(None, {}))],
    "requests without a handshake": [LIST, ROOTS, CHANGED, ROOTS_CHANGED],
    "ids that come again": [ping(C), (S, result(1, {})), ping(C)],
    "cancellations": [(C, note("notifications/cancelled", {"requestId": 3}))],
    "cancellations of nothing": [(S, note("notifications/cancelled"))],
    "progress of what was not seen": [
        (S, note("notifications/progress", {"progressToken": 1, "progress": 1})),
    ],
    "progress of one token for two": [
        ping(C, 1, progressToken=1),
        (S, note("notifications/progress", {"progressToken": 1, "progress": 3})),
        (S, note("notifications/progress", {"progressToken": 1, "progress": 2})),
        (S, result(1, {})),
        (S, note("notifications/progress", {"progressToken": 1, "progress": 1})),
    ],
    "batches": [(C, [ping(C)[1]]), (S, [])],
    "the end of initialize": [AGREED, DONE, LIST, ROOTS, CHANGED],
    "initialized": [DONE, LIST, ROOTS, CHANGED],
    "a handshake": [*opening(), LIST, ROOTS, CHANGED],
    "a second handshake": [INIT, (S, error("init", -32600)), LIST, ROOTS, CHANGED],
    "a second handshake in flight": [INIT, LIST, ROOTS, CHANGED, ROOTS_CHANGED],
    "a second handshake that succeeds": [INIT, AGREED, LIST, ROOTS, CHANGED],
    "pieces of lines": [(C, b'"2.0"}\n'), (S, b"ound\n"), LIST],
    "errors without an id": [(S, {"jsonrpc": "2.0", "error": {"code": -32700, "message": "?"}})],
    "updates and logs": [
        (S, note("notifications/resources/updated", {"uri": "a:"})),
        (C, call(1, "logging/setLevel", {"level": "error"})),
        (S, result(1, {})),
        LOG,
    ],
}


@pytest.mark.parametrize("name", LATE)
def test_from_the_middle_nobody_is_accused_of_what_may_have_come_before(name: str) -> None:
    """A debugger is often attached after the trouble has begun."""
    events = observe(*LATE[name], from_start=False)

    assert accused(events) == []
    assert blind(events)[0] == (BlindCause.MIDDLE, None)


MIDDLE: dict[str, tuple[Step, tuple[Side, str]]] = {
    "text": ((S, b"oops\n"), (S, "STDIO-002")),
    "no object": ((C, 5), (C, "JSON-001")),
    "no version": ((S, {"id": 1, "method": "ping"}), (S, "JSON-001")),
    "a bad token": (ping(C, 1, progressToken=None), (C, "PROG-001")),
    "an unknown level": (
        (S, note("notifications/message", {"level": "?", "data": 1})),
        (S, "LOG-002"),
    ),
    "initialize in a batch": ((C, [INIT[1]]), (C, "BATCH-003")),
}


@pytest.mark.parametrize("name", MIDDLE)
def test_from_the_middle_faults_that_stand_for_themselves_are_found(name: str) -> None:
    """No earlier message could make such messages right."""
    step, guilty = MIDDLE[name]
    first: list[Step] = [(side, note("notifications/x")) for side in Side]

    assert accused(observe(*first, step, from_start=False)) == [guilty]


def test_from_the_middle_a_handshake_that_is_seen_is_kept_to() -> None:
    """From an observed handshake on, the agreement is known."""
    steps = [*opening(server={}), LIST, ping(S), ping(S)]

    assert accused(observe(*steps, from_start=False)) == [(C, "CAP-002"), (S, "ID-001")]


def test_from_the_middle_a_token_in_use_is_found() -> None:
    """Both requests were seen, and no response."""
    steps = [ping(C, 1, progressToken="t"), ping(C, 2, progressToken="t")]

    assert accused(observe(*steps, from_start=False)) == [(C, "PROG-002")]


# ------------------------------------------------------------------------ what cannot be read

HUGE = b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"n":1e999}}\n'
BROKEN = b'{"jsonrpc":"2.0","id":5,"method":"ping",}\n'


DEEP = b"[" * 300 + b"]" * 300 + b"\n"
LONG = b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"n":"%b"}}\n' % (b"x" * 5_000)


@pytest.mark.parametrize("unread", [HUGE, BROKEN, DEEP, LONG])
def test_what_cannot_be_read_may_have_been_any_message(unread: bytes) -> None:
    """Another parser may have read a request in it, which is then answered and cancelled."""
    seen = [
        *opening(),
        (C, unread),
        (S, note("notifications/progress", {"progressToken": 5, "progress": 1})),
        (C, note("notifications/cancelled", {"requestId": 5})),
        (S, result(5, {})),
        (S, note("notifications/resources/updated", {"uri": "a:"})),
    ]
    events = observe(*seen, config=Config(max_message_bytes=4_000))

    assert accused(events) == ([(C, "STDIO-003")] if unread is BROKEN else [])
    assert blind(events) == [(BlindCause.UNREADABLE, C)]


def test_a_number_that_is_too_large_for_us_is_nobodys_fault() -> None:
    """The number is valid JSON, and only this library cannot hold it."""
    assert accused(observe(*opening(), (S, HUGE))) == []
    assert accused(observe(*opening(), (S, BROKEN))) == [(S, "STDIO-002")]


@pytest.mark.parametrize("hidden", range(3))
def test_a_handshake_that_could_not_be_read_is_not_held_against_anyone(hidden: int) -> None:
    """The two sides may have understood each other."""
    steps = opening()
    steps[hidden] = (steps[hidden][0], HUGE)

    assert accused(observe(*steps, LIST, ROOTS, CHANGED, (C, call(2, "ping")))) == []


def test_an_answer_that_could_not_be_read_may_have_ended_its_request() -> None:
    """The token of an answered request is free again."""
    steps = [*opening(), ping(C, 1, progressToken="t"), (S, HUGE), ping(C, 2, progressToken="t")]

    assert accused(observe(*steps)) == []
    assert accused(observe(*steps[:4], *steps[5:])) == [(C, "PROG-002")]


def test_plain_text_hides_no_message() -> None:
    """No parser reads a request in a banner, so responses without a request must still be
    reported."""
    events = observe(*opening(), (C, b"hello\n"), (S, result(5, {})))

    assert accused(events) == [(C, "STDIO-003"), (S, "JSON-004")]
    assert blind(events) == []


def test_a_request_with_an_odd_id_may_be_answered_in_any_way() -> None:
    """Some servers echo an invalid id, others send null."""
    events = observe(*opening(), (C, call(1.5, "ping")), (S, result(1.5, {})), (S, result(2, {})))

    assert accused(events) == [(C, "JSON-002")]


# ------------------------------------------------------- what was asked for before it was allowed

URI = {"uri": "file:///a"}
UPDATED: Step = (S, note("notifications/resources/updated", URI))


@pytest.mark.parametrize("done_first", [True, False])
def test_a_server_may_serve_what_came_too_early(done_first: bool) -> None:
    """The client alone is at fault, and its subscription or level must count."""
    task = {"name": "t", "task": {}, "_meta": {"progressToken": 5}}
    status = {"taskId": "x", "status": "working", "createdAt": "", "lastUpdatedAt": "", "ttl": None}
    early: list[Step] = [
        (C, call(1, "tools/call", task)),
        (C, call(2, "resources/subscribe", URI)),
        (C, call(3, "logging/setLevel", {"level": "error"})),
    ]
    later: list[Step] = [
        (S, result(1, {"task": status})),
        (S, result(2, {})),
        (S, result(3, {})),
        (S, note("notifications/progress", {"progressToken": 5, "progress": 1})),
        UPDATED,
        LOG,
    ]
    opened = [AGREED, DONE] if done_first else [DONE, AGREED]
    blamed = accused(observe(INIT, *early, *opened, *later))
    assert {side for side, _ in blamed} == {C}


def test_a_subscription_that_came_back_is_another_one() -> None:
    """A late response to an earlier `unsubscribe` must not end a new subscription."""
    ends = [(C, call(id, "resources/unsubscribe", URI)) for id in (2, 3)]
    events = observe(
        *opening(),
        (C, call(1, "resources/subscribe", URI)),
        (S, result(1, {})),
        *ends,
        (S, result(2, {})),
        (C, call(4, "resources/subscribe", URI)),
        (S, result(4, {})),
        (S, result(3, {})),
        UPDATED,
    )
    assert accused(events) == []


def test_a_subscription_that_was_refused_once_may_be_held_by_another_request() -> None:
    """Of two requests for one resource the server may refuse either."""
    events = observe(
        *opening(),
        (C, call(1, "resources/subscribe", URI)),
        (C, call(2, "resources/subscribe", URI)),
        (S, error(1, -32603)),
        UPDATED,
        (S, error(2, -32603)),
        UPDATED,
    )
    assert accused(events) == [(S, "RES-008")]
