"""The observer on stateless requests, beside a handshake or alone, and on unknown revisions.

The era is found for each message by itself. No side is accused of what one of the eras allows, or
by rules of an era that it has not shown to speak.
"""

from typing import Any

import pytest

from sansmcp import (
    BlindCause,
    BlindSpot,
    CancellationMatched,
    Config,
    DiscoverySeen,
    JSONObject,
    Observation,
    Observer,
    RequestUnanswered,
    Side,
)
from tests.support.modern import (
    CACHE,
    CAPABILITIES,
    FORM,
    SUBSCRIPTION,
    VERSION,
    acknowledged,
    complete,
    discovered,
    envelope,
    input_required,
    listen,
    modern,
)
from tests.support.watching import C, S, Step, accused, observe, opening, taken
from tests.support.wire import SERVER_INFO, call, error, note, result, wire

TOOLS: JSONObject = {"toolsListChanged": True}
TEXT: JSONObject = {"content": []}
PROBE: Step = (C, modern("probe", "server/discover"))
FOUND: Step = (S, result("probe", discovered()))
LIST: Step = (C, call(1, "tools/list"))
CHANGED: Step = (S, note("notifications/tools/list_changed"))
FUTURE = "2031-01-01"


def use(id: object, meta: JSONObject | None = None, **params: object) -> Step:
    return C, modern(id, "tools/call", {"name": "t", **params}, meta)


def used(id: object) -> Step:
    return S, complete(id, TEXT)


def log(level: str = "info") -> Step:
    return S, note("notifications/message", {"level": level, "data": 1})


def told(tag: object, method: str = "notifications/tools/list_changed") -> Step:
    return S, note(method, {"_meta": {SUBSCRIPTION: tag}})


def cancel(side: Side, id: object) -> Step:
    return side, note("notifications/cancelled", {"requestId": id})


def blind(events: list[Observation]) -> list[tuple[BlindCause, Side | None]]:
    return [(event.cause, event.side) for event in events if isinstance(event, BlindSpot)]


# ------------------------------------------------------------------------- what is told of it


def test_a_discovery_is_told_of() -> None:
    """The revisions of a server are the first fact that a watcher needs."""
    versions = ["2026-07-28", 5, "2025-11-25"]
    answer = {**discovered(capabilities={"tools": {}}), "supportedVersions": versions}
    [seen] = [e for e in observe(PROBE, (S, result("probe", answer))) if _is_discovery(e)]

    assert seen == DiscoverySeen(
        revisions=("2026-07-28", "2025-11-25"),
        server_info=SERVER_INFO,
        server_capabilities={"tools": {}},
        number=2,
        time=None,
    )


def _is_discovery(event: Observation) -> bool:
    return isinstance(event, DiscoverySeen)


@pytest.mark.parametrize(
    "meta", [None, [], {"io.modelcontextprotocol/serverInfo": "me"}], ids=["none", "list", "text"]
)
def test_a_server_need_not_say_who_it_is(meta: object) -> None:
    """Server info is optional."""
    answer = {**discovered(), "_meta": meta}
    [seen] = [e for e in observe(PROBE, (S, result("probe", answer))) if _is_discovery(e)]

    assert isinstance(seen, DiscoverySeen)
    assert seen.server_info is None


@pytest.mark.parametrize(
    "answer", [{}, {"supportedVersions": 5, "capabilities": {}}, {"supportedVersions": []}]
)
def test_a_discovery_that_says_nothing_is_none(answer: JSONObject) -> None:
    """An event with a part of the facts would be taken for complete."""
    assert not any(map(_is_discovery, observe(PROBE, (S, result("probe", answer)))))


def test_no_revision_is_agreed_on_where_each_request_has_its_own() -> None:
    """`revision` must be that of a handshake only."""
    observer = Observer()
    for side, message in (PROBE, FOUND, use(1), used(1)):
        observer.receive_data(side, wire(message))

    assert observer.revision is None


def test_the_end_of_a_subscription_by_the_server_is_told_of() -> None:
    """A subscription is the one request of the client that a server may cancel."""
    listening: list[Step] = [(C, listen(1, TOOLS)), (S, acknowledged(1, TOOLS))]
    reason = (S, note("notifications/cancelled", {"requestId": 1, "reason": "over"}))
    events = observe(*listening, reason, (S, note("notifications/cancelled", {"requestId": 1})))
    matched = [event for event in events if isinstance(event, CancellationMatched)]
    [unanswered] = [event for event in events if isinstance(event, RequestUnanswered)]

    assert [(event.side, event.id, event.reason) for event in matched] == [
        (S, 1, "over"),
        (S, 1, None),
    ]
    assert unanswered.cancelled


# ------------------------------------------------------------------------- both eras together

QUIET = opening(server={})

TOGETHER: dict[str, list[Step]] = {
    "a handshake in the middle": [PROBE, FOUND, use(1), *opening(), used(1), LIST, CHANGED],
    "modern requests after a handshake": [*opening(), PROBE, FOUND, use(1), LIST, used(1)],
    "modern requests within a handshake": [
        opening()[0],
        PROBE,
        FOUND,
        opening()[1],
        (C, listen(2, TOOLS)),
        (S, acknowledged(2, TOOLS)),
        (C, note("x/told")),
        (S, note("x/told")),
        opening()[2],
    ],
    "a probe that is refused": [PROBE, (S, error("probe", -32601)), *opening(), LIST],
    "a probe that is answered late": [PROBE, opening()[0], FOUND, *opening()[1:], LIST],
    "a probe that crosses the handshake": [
        *(PROBE, opening()[0], (S, error("probe", -32600))),
        *(*opening()[1:], LIST, CHANGED),
    ],
    "the id of a probe again": [
        (C, modern("init", "server/discover")),
        (S, error("init", -32601)),
        *opening(),
        LIST,
    ],
    "notifications of extensions at first": [
        (S, note("x/told")),
        (C, note("x/told")),
        PROBE,
        FOUND,
    ],
    "a log message at first": [log(), *opening()],
    "a ping before the handshake": [PROBE, (S, call(1, "ping")), (C, result(1, {})), *opening()],
    "a ping of the client beside modern requests": [PROBE, FOUND, (C, call(1, "ping"))],
    "a handshake that says its version in two ways": [
        (C, {**opening()[0][1], "params": {**opening()[0][1]["params"], "_meta": envelope()}}),
        *opening()[1:],
        LIST,
    ],
    "a log message that a modern request wants": [
        *QUIET,
        use(2, envelope(level="info")),
        log(),
        used(2),
    ],
    "a log message that the handshake permits": [*opening(), PROBE, FOUND, log("debug")],
    "a change for a listener, which the handshake has none of": [
        *QUIET,
        (C, listen(2, TOOLS)),
        (S, acknowledged(2, TOOLS)),
        told(2),
    ],
    "an error without an id": [
        *opening("2025-06-18"),
        *(PROBE, FOUND),
        (S, {"jsonrpc": "2.0", "error": {"code": -32700, "message": "?"}}),
    ],
    "a cancellation that may name a request of either side": [
        *(*opening(), (C, listen(5, TOOLS)), (S, acknowledged(5, TOOLS)), (S, call(5, "ping"))),
        *(cancel(S, 5), told(5), (C, result(5, {})), use(6), used(6), cancel(S, 5), told(5)),
    ],
    "the id of one era in the other": [
        *(*opening(), use(1), used(1), (C, call(1, "tools/list")), (S, result(1, {"tools": []}))),
        *(use(1), used(1)),
    ],
}


@pytest.mark.parametrize("name", TOGETHER)
def test_both_eras_may_pass_side_by_side(name: str) -> None:
    """A server of both eras serves both at any time, and most clients probe before the
    handshake."""
    assert accused(observe(*TOGETHER[name])) == []


MIXED_FAULTS: dict[str, tuple[list[Step], tuple[Side, str]]] = {
    "a change that the handshake does not permit": (
        [PROBE, FOUND, *QUIET, CHANGED],
        (S, "CAP-002"),
    ),
    "a change before the handshake is done": (
        [PROBE, FOUND, opening()[0], CHANGED],
        (S, "LIFE-001"),
    ),
    "a log message that neither permits": ([*QUIET, PROBE, FOUND, use(1), log()], (S, "CAP-002")),
    "a request of a server that may be of either era": (
        [PROBE, (S, call(1, "roots/list"))],
        (S, "STATE-006"),
    ),
    "a request of an older server": (
        [PROBE, (S, error("probe", -32601)), (S, call(1, "roots/list"))],
        (S, "LIFE-006"),
    ),
    "a request after a probe that was refused": (
        [PROBE, (S, error("probe", -32601)), LIST],
        (C, "LIFE-005"),
    ),
    "a cancellation of a request of the handshake by the server": (
        [*opening(), PROBE, FOUND, LIST, cancel(S, 1)],
        (S, "CANC-001"),
    ),
    "a cancellation of nothing by the server": (
        [*opening(), PROBE, FOUND, cancel(S, 9)],
        (S, "CANC-001"),
    ),
    "a cancellation of nothing by the client": ([*opening(), PROBE, cancel(C, 9)], (C, "CANC-001")),
    "a batch of modern requests": ([*opening("2025-03-26"), (C, [use(5)[1]])], (C, "BATCH-008")),
    "a result without its type": (
        [*opening(), PROBE, FOUND, use(1), (S, result(1, TEXT))],
        (S, "JSON-020"),
    ),
    "a tag of a request of the handshake": ([*opening(), PROBE, LIST, told(1)], (S, "SUBS-009")),
}


@pytest.mark.parametrize("name", MIXED_FAULTS)
def test_what_neither_era_allows_is_found_beside_the_other(name: str) -> None:
    """A conversation with both eras must still be judged."""
    steps, guilty = MIXED_FAULTS[name]

    assert accused(observe(*steps)) == [guilty]


def test_an_answer_after_a_handshake_began_is_none_to_a_modern_server() -> None:
    """The client may have fallen back to the legacy era, in which it answers pings at any time."""
    steps = [PROBE, FOUND, (S, call(1, "ping")), opening()[0], (C, result(1, {}))]

    assert accused(observe(*steps)) == [(S, "STATE-006")]


def test_a_handshake_may_serve_what_has_no_good_envelope() -> None:
    """To a legacy server an invalid `_meta` means nothing."""
    odd = use(1, envelope(**{CAPABILITIES: None}))

    assert accused(observe(*opening(), PROBE, FOUND, odd, used(1))) == [(C, "META-009")]


# --------------------------------------------------------------- servers that are no modern ones

OLDER: dict[str, list[Step]] = {
    "no result types": [use(1), (S, result(1, TEXT)), use(2), (S, result(2, {}))],
    "a result type of its own": [use(1), (S, result(1, {"resultType": "table"}))],
    "an old code": [use(1), (S, error(1, -32002))],
    "codes of its own": [
        *(use(1), (S, error(1, -32050)), use(2), (S, error(2, -32021, "no", 5))),
    ],
    "a log message": [use(1), log()],
    "a ping": [use(1), (S, call(1, "ping"))],
    "a discovery of other revisions": [
        PROBE,
        (S, result("probe", {"supportedVersions": ["2025-11-25"], "capabilities": {}})),
    ],
    "a subscription that is answered": [(C, listen(1, TOOLS)), (S, result(1, {}))],
    "a bad envelope": [use(1, envelope(**{CAPABILITIES: None})), (S, result(1, TEXT))],
    "a batch": [use(1), use(2), (S, [result(1, TEXT), result(2, TEXT)])],
}


@pytest.mark.parametrize("name", OLDER)
def test_a_server_that_does_not_show_that_it_speaks_it_is_not_held_to_it(name: str) -> None:
    """Legacy servers ignore `_meta`, and answer as they always have."""
    assert [rule for side, rule in accused(observe(*OLDER[name])) if side is S] == []


@pytest.mark.parametrize(
    "shown",
    [
        [PROBE, FOUND],
        [PROBE, (S, result("probe", {"supportedVersions": ["2026-07-28"], "capabilities": {}}))],
        [use(1), used(1)],
        [use(1), (S, input_required(1, state=""))],
        [(C, listen(1, TOOLS)), (S, acknowledged(1, TOOLS))],
    ],
)
def test_a_server_that_has_shown_it_is_held_to_it(shown: list[Step]) -> None:
    """A discovery, a result with its type, or an acknowledgement shows the modern era."""
    before = accused(observe(*shown))
    after = accused(observe(*shown, use(9), (S, result(9, TEXT))))

    assert after == [*before, (S, "JSON-020")]


# ------------------------------------------------------------------------- unknown revisions


def other(id: object, method: str = "tools/call", **meta: Any) -> Step:
    """A request of an unknown revision."""
    return C, modern(id, method, {"name": "t"}, envelope(version=FUTURE, **meta))


UNKNOWN: dict[str, list[Step]] = {
    "its requests": [PROBE, FOUND, other(1), other(2, "ping"), other(3, "x/y")],
    "its results": [PROBE, FOUND, other(1), (S, result(1, {"resultType": "x"}))],
    "ids that come again": [other(1), other(1)],
    "bare requests beside it": [other(1), LIST],
    "requests of the server": [PROBE, FOUND, other(1), (S, call(1, "x/y"))],
    "notifications": [PROBE, FOUND, other(1), CHANGED, log(), told(7), told([])],
    "logs that are tagged": [
        *(PROBE, FOUND, other(1)),
        (S, note("notifications/message", {"level": "?", "_meta": {SUBSCRIPTION: 1}})),
    ],
    "its subscriptions": [
        *(PROBE, FOUND, other(1, "subscriptions/listen"), told(1), (S, acknowledged(1, {}))),
        *(cancel(S, 1), told(1)),
    ],
    "cancellations": [other(1), (S, result(1, {})), cancel(C, 9), cancel(S, 9)],
    "progress": [
        other(1, progressToken="t"),
        *[(S, note("notifications/progress", {"progressToken": "t", "progress": 1}))] * 2,
        (S, note("notifications/progress", {"progressToken": "u", "progress": 1})),
    ],
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_nobody_is_judged_by_rules_of_an_unknown_revision(name: str) -> None:
    """An unknown revision may allow what this one forbids."""
    events = observe(*UNKNOWN[name])

    assert accused(events) == []
    assert blind(events) == [(BlindCause.ERA, None)]


def test_a_revision_that_was_refused_is_not_spoken() -> None:
    """After the refusal there is one era again, whose breaches must be found."""
    unsupported = error(1, -32022, "no", {"supported": ["2026-07-28"], "requested": FUTURE})
    steps = [other(1), (S, unsupported), PROBE, FOUND, CHANGED]

    assert accused(observe(*steps)) == [(S, "SUBS-009")]


def test_an_envelope_that_is_nested_too_deep_to_be_read_says_nothing() -> None:
    """Messages that come decoded may be nested to any depth, which must not raise."""
    deep: Any = {}
    for _ in range(100_000):
        deep = {"x": deep}
    observer = Observer()
    for id in (1, 2):
        observer.receive_message(C, use(id, envelope(deep))[1])
    events = taken(observer)
    # Python takes such a thing apart in a recursion of its own: do it by hand.
    while deep:
        deep = deep.pop("x")

    assert accused(events) == []
    assert blind(events) == [(BlindCause.ERA, None)]


# ------------------------------------------------------------------- from the middle, and limits

LATE: dict[str, list[Step]] = {
    "changes of a subscription": [PROBE, FOUND, told(1), told("x")],
    "cancellations by the server": [PROBE, FOUND, cancel(S, 1), cancel(S, "x")],
    "requests of the server": [PROBE, FOUND, (S, call(1, "roots/list"))],
    "bare requests and notifications": [PROBE, FOUND, LIST, CHANGED, log("debug")],
    "retries": [
        *(PROBE, FOUND, use(1), (S, input_required(1, {"q": FORM}, "one"))),
        use(2, requestState="two", inputResponses={"q": {"action": "accept"}}),
    ],
    "an id that comes again": [PROBE, FOUND, use(1), used(1), use(1), used(1)],
    "a second answer": [use(1), used(1), used(1)],
    "batches of the server": [PROBE, FOUND, (S, [note("x/y")])],
}


@pytest.mark.parametrize("name", LATE)
def test_from_the_middle_nobody_is_accused_of_what_may_have_come_before(name: str) -> None:
    """A subscription or a handshake may be older than the observation."""
    assert accused(observe(*LATE[name], from_start=False)) == []


MIDDLE: dict[str, tuple[list[Step], tuple[Side, str]]] = {
    "a bad envelope": ([use(1, envelope(**{CAPABILITIES: None}))], (C, "META-009")),
    "a method of the other era": ([(C, modern(1, "ping"))], (C, "OWN-020")),
    "a result without its type": ([PROBE, FOUND, use(1), (S, result(1, TEXT))], (S, "JSON-020")),
    "a question that was not declared": (
        [use(1, envelope({})), (S, input_required(1, {"q": FORM}))],
        (S, "MRTR-008"),
    ),
    "a change before the acknowledgement": ([(C, listen(1, TOOLS)), told(1)], (S, "SUBS-005")),
    "an id in use": ([use(1), use(1)], (C, "ID-002")),
}


@pytest.mark.parametrize("name", MIDDLE)
def test_from_the_middle_a_request_is_judged_by_what_it_says_itself(name: str) -> None:
    """No earlier message could make such a request right."""
    steps, guilty = MIDDLE[name]
    first: list[Step] = [(side, note("notifications/x")) for side in Side]

    assert accused(observe(*first, *steps, from_start=False)) == [guilty]


HUGE = b'{"n":1e999}\n'


def test_what_could_not_be_read_may_have_been_what_is_missed() -> None:
    """An unreadable line may have been a response, an acknowledgement, a request or questions."""
    server = [PROBE, FOUND, use(1), (C, listen(2, TOOLS)), (S, HUGE)]
    answers: list[Step] = [
        (C, modern(1, "tools/list")),
        told(2),
        (S, result(2, {"resultType": "complete", "_meta": {SUBSCRIPTION: 2}})),
        use(3, requestState="of a round that was not read"),
    ]
    client: list[Step] = [PROBE, FOUND, (C, HUGE), log(), told(8), cancel(S, 9)]

    assert accused(observe(*server, *answers)) == []
    assert accused(observe(*client)) == []


SMALL = Config(max_requests=5, max_used_ids=5, max_late_answers=5)


def test_questions_that_were_forgotten_may_be_answered() -> None:
    """After questions were forgotten, any state may belong to them."""
    steps = [PROBE, FOUND]
    for n in range(1, 8):
        steps += [use(n), (S, input_required(n, {"q": FORM}, f"state {n}"))]
    stolen = use(20, name="other", requestState="state 7")
    events = observe(*steps, stolen, config=SMALL)

    assert accused(events) == []
    assert blind(events) == [(BlindCause.FORGOTTEN, C)] * 2
    assert accused(observe(*steps, stolen)) == [(C, "MRTR-026")]


def test_a_state_may_be_that_of_an_earlier_conversation() -> None:
    """The server may have been restarted while the user was answering."""
    steps = [PROBE, FOUND, use(1), (S, input_required(1, {"q": FORM}, "new"))]
    answers: JSONObject = {"q": {"action": "decline"}}
    for again in (
        use(2, inputResponses=answers, requestState="old"),
        use(2, inputResponses=answers),
    ):
        assert accused(observe(*steps, again)) == []


def test_a_subscription_that_was_forgotten_may_be_told_of_and_ended() -> None:
    """After too many requests, a forgotten subscription may still be open."""
    steps: list[Step] = [PROBE, FOUND, (C, listen(1, TOOLS)), (S, acknowledged(1, TOOLS))]
    steps += [use(n) for n in range(2, 9)]

    assert accused(observe(*steps, told(1), cancel(S, 1), config=SMALL)) == []


def test_an_id_in_use_twice_leaves_open_which_of_the_two_is_meant() -> None:
    """The second request is a breach; later messages for either are none."""
    both: list[Step] = [(C, listen(1, TOOLS)), use(1)]
    for followed in (
        [told(1), (S, acknowledged(1, TOOLS)), cancel(S, 1)],
        [(C, listen(5, TOOLS)), cancel(C, 5), use(1), used(1), (S, acknowledged(5, TOOLS))],
        [(S, result(1, {})), (S, error(1, -32050))],
    ):
        assert set(accused(observe(PROBE, FOUND, *both, *followed))) == {(C, "ID-002")}


def test_an_id_in_use_twice_may_be_that_of_the_subscription_which_the_server_ends() -> None:
    """The server may mean the subscription, so its cancellation is no breach."""
    twice: list[Step] = [(C, listen(1, TOOLS)), (S, acknowledged(1, TOOLS)), (C, call(1, "a/b"))]
    for followed in ([used(1), cancel(S, 1)], [cancel(S, 1), used(1)], [cancel(S, 1)]):
        found = accused(observe(PROBE, FOUND, *twice, *followed))
        assert {side for side, _ in found} == {C}


def test_whoever_answers_an_id_in_use_twice_may_mean_the_one_that_has_to_be_refused() -> None:
    """The error may be the one that is due, whichever request it answers."""
    broken = use(1, envelope() | {VERSION: None})
    for first, second in ((use(1), broken), (broken, use(1))):
        for answer in ((S, error(1, -32602)), used(1)):
            found = accused(observe(PROBE, FOUND, first, second, answer))
            assert set(found) == {(C, "ID-002"), (C, "META-009")}


def test_a_lost_request_leaves_its_id_free() -> None:
    """A client that has read the end of the stream no longer waits for a response."""
    observer = Observer()
    observer.receive_message(C, use(1)[1])
    observer.receive_eof(S)
    observer.receive_message(C, use(1)[1])

    assert accused(taken(observer)) == []


def test_without_shapes_the_rest_is_judged_all_the_same() -> None:
    """Without the check of shapes, forbidden questions must still be reported."""
    config = Config(check="none")
    steps = [PROBE, FOUND, use(1), (S, input_required(1, {"q": FORM}))]
    retry = use(2, inputResponses={"q": {}})
    odd: list[Step] = [
        (C, modern(3, "tools/list")),
        (S, complete(3, {"tools": 5, **CACHE})),
        (C, modern(4, "subscriptions/listen", {"notifications": 5})),
        (S, note("notifications/subscriptions/acknowledged", {"_meta": {SUBSCRIPTION: 4}})),
        told(4),
    ]

    assert accused(observe(*steps, retry, *odd, config=config)) == []
    assert accused(observe(*steps, retry)) == [(C, "MRTR-020")]


def test_envelopes_are_compared_by_type() -> None:
    """In Python 0 and false are equal; in the protocol only one of them declares a capability."""
    declared = envelope({"elicitation": {"form": 0, "url": {}}})
    denied = envelope({"elicitation": {"form": False, "url": {}}})
    ask = {"q": FORM}
    odd = (C, "OWN-047")

    assert accused(observe(use(1, declared), (S, input_required(1, ask)))) == [odd]
    assert accused(
        observe(use(1, declared), use(2, denied), (S, input_required(2, ask)), used(1))
    ) == [odd, odd, (S, "MRTR-008")]
    assert VERSION in declared
