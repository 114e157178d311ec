"""Each seeded fault of 2026-07-28 is reported against the right side, and nothing else is.

The rules bind one side each, so that a fault names its sides. Unless a fault says otherwise, the
server has answered `server/discover` before it.
"""

import attrs
import pytest

from sansmcp import JSONObject, Side
from tests.support.modern import (
    CACHE,
    CAPABILITIES,
    FILE,
    FORM,
    ROOTS,
    SAMPLE,
    SUBSCRIPTION,
    URL,
    VERSION,
    WHOLE_FILTER,
    acknowledged,
    complete,
    discovered,
    envelope,
    input_required,
    listen,
    modern,
)
from tests.support.watching import C, S, Step, accused, observe, opening
from tests.support.wire import call, error, note, result

DISCOVERY: tuple[Step, ...] = (
    (C, modern("probe", "server/discover")),
    (S, result("probe", discovered())),
)
TOOLS: JSONObject = {"toolsListChanged": True}
CHANGED = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"
TEXT: JSONObject = {"content": []}
STATE = "opaque"
EXTENDED: JSONObject = {"extensions": {"com.example/more": {}}}


def lacking(*names: str, **changed: object) -> JSONObject:
    """An envelope without these members."""
    return envelope(**{**changed, **dict.fromkeys(names)})


def use(id: object, meta: JSONObject | None = None, **params: object) -> Step:
    """A call of a tool."""
    return C, modern(id, "tools/call", {"name": "t", **params}, meta)


def used(id: object, **more: object) -> Step:
    """The result of that call."""
    return S, complete(id, {**TEXT, **more})


def listing(id: object, *missing: str, **changed: object) -> Step:
    """A cacheable result without these members."""
    value: JSONObject = {"tools": [], **CACHE, **changed}
    return S, complete(id, {name: value[name] for name in value if name not in missing})


def refused(id: object, code: int, data: object = None) -> Step:
    return S, error(id, code, "no", data)


def asking(id: object, questions: object = None, state: object = None, **more: object) -> Step:
    """A result with questions, a state, or both."""
    answer = input_required(id, questions, state)
    answer["result"].update(more)
    return S, answer


def again(id: object, responses: object = None, state: object = None, **params: object) -> Step:
    """A call of the tool with answers, a state, or both."""
    given = {"inputResponses": responses, "requestState": state}
    return use(
        id, None, **{name: value for name, value in given.items() if value is not None}, **params
    )


def question(method: str, **params: object) -> JSONObject:
    return {"q": {"method": method, "params": params}}


def listening(id: object, filter: JSONObject | None = None) -> list[Step]:
    """An acknowledged subscription."""
    asked = TOOLS if filter is None else filter
    return [(C, listen(id, asked)), (S, acknowledged(id, asked))]


def told(method: str, tag: object, **params: object) -> Step:
    """A notification of a subscription."""
    return S, note(method, {**params, "_meta": {SUBSCRIPTION: tag}})


def ended(id: object, tag: object) -> Step:
    """The result of a subscription."""
    return S, result(id, {"resultType": "complete", "_meta": {SUBSCRIPTION: tag}})


def cancel(side: Side, id: object) -> Step:
    return side, note("notifications/cancelled", {"requestId": id})


def progress(token: object, value: object, side: Side = S) -> Step:
    return side, note("notifications/progress", {"progressToken": token, "progress": value})


def with_token(token: object, capabilities: JSONObject | None = None) -> JSONObject:
    return envelope(capabilities, progressToken=token)


def log(level: str, meta: JSONObject | None = None) -> Step:
    params: JSONObject = {"level": level, "data": 1}
    return S, note("notifications/message", params if meta is None else {**params, "_meta": meta})


ACCEPT: JSONObject = {"action": "accept"}
ANSWERED: JSONObject = {"q": ACCEPT}
QUESTION: JSONObject = {"q": FORM}


@attrs.frozen
class Fault:
    """A fault, and similar conversations in which no side is at fault."""

    guilty: Side
    rule: str
    steps: list[Step]
    innocents: list[list[Step]]
    before: tuple[Step, ...] = DISCOVERY


FAULTS: dict[str, Fault] = {
    # ------------------------------------------------------------------------------ envelopes
    "a request without an envelope": Fault(
        C,
        "META-009",
        [(C, call(1, "tools/list"))],
        [[(C, modern(1, "tools/list"))], [(C, call(1, "ping"))]],
    ),
    "a request without capabilities": Fault(
        C,
        "META-009",
        [use(1, lacking(CAPABILITIES)), refused(1, -32602)],
        [[use(1, envelope({})), used(1)], [use(1, envelope(info=None)), used(1)]],
    ),
    "a request with a version that is no string": Fault(
        C,
        "META-009",
        [use(1, envelope(version=20260728))],
        [[use(1, {**envelope(), "other": 5})]],
    ),
    "a request with an info that is no object": Fault(
        C, "META-009", [use(1, envelope(info="me"))], [[use(1, envelope(info=None))]]
    ),
    "a request with an info without a version": Fault(
        C, "META-009", [use(1, envelope(info={"name": "me"}))], [[use(1)]]
    ),
    "a discovery without an envelope": Fault(
        C,
        "META-009",
        [(C, call(1, "server/discover")), refused(1, -32602)],
        [[(C, modern(1, "server/discover")), (S, result(1, discovered()))]],
        before=(),
    ),
    "a wish for an unknown level": Fault(
        C,
        "LOG-002",
        [use(1, envelope(level="loud")), refused(1, -32602)],
        [[use(1, envelope(level="debug"))]],
    ),
    "a request without capabilities that is served": Fault(
        S,
        "META-010",
        [used(1)],
        [[refused(1, -32602)], [refused(1, -32603)]],
        before=(*DISCOVERY, use(1, lacking(CAPABILITIES))),
    ),
    "a request with an unknown level that is served": Fault(
        S,
        "LOG-010",
        [used(1)],
        [[refused(1, -32602)]],
        before=(*DISCOVERY, use(1, envelope(level="loud"))),
    ),
    # ------------------------------------------------------------------------------- requests
    "a method of the other era": Fault(
        C,
        "OWN-020",
        [(C, modern(1, "ping")), (C, modern(2, "tasks/list"))],
        [
            [(C, modern(1, "x/unknown"))],
            [(C, modern(1, "resources/subscribe", {"uri": FILE}, envelope(EXTENDED)))],
        ],
    ),
    "params without a member": Fault(
        C, "OWN-014", [(C, modern(1, "tools/call"))], [[use(1)], [(C, modern(1, "x/y"))]]
    ),
    "a subscription to nothing named": Fault(
        C, "OWN-014", [(C, modern(1, "subscriptions/listen"))], [[(C, listen(1, {}))]]
    ),
    "a filter with a member of another type": Fault(
        C,
        "OWN-014",
        [
            (C, listen(1, {"resourceSubscriptions": [5]})),
            (S, acknowledged(1, {"toolsListChanged": True})),
            told(CHANGED, 1),
        ],
        [[(C, listen(1, {"resourceSubscriptions": [], "x": 5}))]],
    ),
    "a cursor that is null": Fault(
        C,
        "OWN-015",
        [(C, modern(1, "tools/list", {"cursor": None}))],
        [[(C, modern(1, "tools/list", {"cursor": ""}))]],
    ),
    "a request of the other version of JSON-RPC": Fault(
        C, "JSON-001", [(C, {**modern(1, "tools/call"), "jsonrpc": "1.0"})], [[use(1)]]
    ),
    "an id in use": Fault(
        C,
        "ID-002",
        [use(1), use(1), used(1), used(1)],
        [
            [use(1), used(1), use(1), used(1)],
            [use(1), refused(1, -32603), use(1)],
            [use(1), asking(1, state=STATE), use(1)],
            [use(1), use("1")],
        ],
    ),
    "the id of a request that was cancelled": Fault(
        C, "ID-002", [use(1), cancel(C, 1), use(1)], [[use(1), cancel(C, 1), used(1), use(1)]]
    ),
    "the id of an open subscription": Fault(
        C,
        "ID-002",
        [*listening(1), use(1), told(CHANGED, 1), cancel(S, 1)],
        [
            [*listening(1), ended(1, 1), use(1)],
            [*listening(1), cancel(S, 1), use(1), used(1)],
        ],
    ),
    "a batch": Fault(
        C,
        "BATCH-008",
        [(C, [use(1)[1], use(2)[1]])],
        [[use(1), use(2)]],
    ),
    "a notification of the other era": Fault(
        C,
        "OWN-020",
        [(C, note("notifications/roots/list_changed"))],
        [[(C, note("notifications/x"))]],
    ),
    "progress from the client": Fault(
        C, "PROG-014", [progress("t", 1, C)], [[use(1, with_token("t")), progress("t", 1)]]
    ),
    "a token in use": Fault(
        C,
        "PROG-002",
        [use(1, with_token("t")), use(2, with_token("t"))],
        [
            [use(1, with_token("t")), used(1), use(2, with_token("t"))],
            [use(1, with_token("t")), cancel(C, 1), use(2, with_token("t"))],
            [use(1, with_token("t")), use(2, {**with_token("t"), VERSION: "2031-01-01"})],
        ],
    ),
    "a cancellation of nothing": Fault(
        C,
        "CANC-003",
        [cancel(C, 1)],
        [[use(1), cancel(C, 1)], [use(1), used(1), cancel(C, 1)]],
    ),
    "a cancellation without an id": Fault(
        C, "CANC-007", [(C, note("notifications/cancelled"))], [[use(0), cancel(C, 0)]]
    ),
    "a cancellation after the answer was read": Fault(
        C,
        "CANC-003",
        [use(1), asking(1, state=STATE), again(2, state=STATE), cancel(C, 1)],
        [
            [use(1), asking(1, state=STATE), cancel(C, 1)],
            [use(1), asking(1, state=STATE), again(2, state=STATE), cancel(C, 2)],
            [
                use(1),
                use(3),
                asking(1, state=STATE),
                used(3),
                again(2, state=STATE),
                cancel(C, 3),
            ],
        ],
    ),
    "an answer of the client": Fault(
        C,
        "STATE-007",
        [(C, result(1, {"roots": []}))],
        [[(C, modern(1, "tools/list"))]],
        before=(*DISCOVERY, (S, call(1, "roots/list"))),
    ),
    # -------------------------------------------------------------------------------- retries
    "a retry without one of the answers": Fault(
        C,
        "MRTR-019",
        [use(1), asking(1, {"q": FORM, "r": ROOTS}, STATE), again(2, ANSWERED, STATE)],
        [
            [
                *(use(1), asking(1, {"q": FORM, "r": ROOTS}, STATE)),
                again(2, {"q": ACCEPT, "r": {"roots": []}}, STATE),
            ],
            [
                *(use(1), asking(1, QUESTION, STATE), use(2), asking(2, {"r": ROOTS}, STATE)),
                *(again(3, {"r": {"roots": []}}, STATE), again(4, ANSWERED, STATE)),
            ],
            [use(1), again(2, ANSWERED)],  # unasked, or asked by a server before this one
        ],
    ),
    "a retry without any answer": Fault(
        C,
        "MRTR-019",
        [use(1), asking(1, QUESTION, STATE), again(2, state=STATE)],
        [[use(1), asking(1, {}, STATE), again(2, state=STATE)]],
    ),
    "an answer with an envelope": Fault(
        C,
        "MRTR-020",
        [again(2, {"q": {"jsonrpc": "2.0", "id": 1, "result": ACCEPT}}, STATE)],
        [[again(2, ANSWERED, STATE)]],
        before=(*DISCOVERY, use(1), asking(1, QUESTION, STATE)),
    ),
    "an answer with a result type": Fault(
        C,
        "MRTR-020",
        [again(2, {"q": {**ACCEPT, "resultType": "complete"}})],
        [[again(2, {"q": {**ACCEPT, "other": "complete"}})]],
        before=(*DISCOVERY, use(1), asking(1, QUESTION)),
    ),
    "an answer that is no object": Fault(
        C, "MRTR-020", [again(1, {"q": "accept"})], [[again(1, ANSWERED)]]
    ),
    "a state that is no string": Fault(
        C, "MRTR-020", [again(1, state={"a": 1})], [[again(1, state="{}")]]
    ),
    "an answer without a member": Fault(
        C,
        "MRTR-020",
        [again(2, {"q": {"roots": []}}, STATE)],
        [
            [again(2, {"q": {"action": "decline"}}, STATE)],
            [use(3), asking(3, {"q": ROOTS}, STATE), again(2, {"q": {"roots": []}}, STATE)],
        ],
        before=(*DISCOVERY, use(1), asking(1, QUESTION, STATE)),
    ),
    "a retry with the id of its request": Fault(
        C,
        "MRTR-025",
        [again(1, ANSWERED, STATE)],
        [
            [again(2, ANSWERED, STATE), asking(2, QUESTION, "two"), again(1, ANSWERED, "two")],
            [use(1), used(1), again(3, ANSWERED, STATE)],
        ],
        before=(*DISCOVERY, use(1), asking(1, QUESTION, STATE)),
    ),
    "a state used for another request": Fault(
        C,
        "MRTR-026",
        [(C, modern(2, "prompts/get", {"name": "t", "requestState": STATE}))],
        [
            [again(2, ANSWERED, STATE)],
            [(C, modern(2, "resources/read", {"uri": FILE, "requestState": "another"}))],
        ],
        before=(*DISCOVERY, use(1), asking(1, QUESTION, STATE)),
    ),
    "an extension without a prefix": Fault(
        C,
        "EXT-001",
        [use(1, envelope({"extensions": {"more": {}}})), used(1)],
        [[use(1, envelope(EXTENDED)), used(1)]],
    ),
    "an extension of the server without a prefix": Fault(
        S,
        "EXT-001",
        [(S, result(1, discovered({"extensions": {"more": {}}})))],
        [[(S, result(1, discovered(EXTENDED)))]],
        before=(*DISCOVERY, (C, modern(1, "server/discover"))),
    ),
    # -------------------------------------------------------------------------------- results
    "a result without its type": Fault(
        S,
        "JSON-020",
        [use(1), (S, result(1, TEXT))],
        [[use(1), used(1)]],
    ),
    "a result of an unknown type": Fault(
        S,
        "JSON-022",
        [use(1), (S, result(1, {**TEXT, "resultType": "novel"}))],
        [[use(1, envelope(EXTENDED)), (S, result(1, {"resultType": "novel"}))]],
    ),
    "a result whose type is no string": Fault(
        S,
        "JSON-022",
        [use(1, envelope(EXTENDED)), (S, result(1, {**TEXT, "resultType": 1}))],
        [[use(1, envelope(EXTENDED)), used(1)]],
    ),
    "a result without a member": Fault(
        S,
        "OWN-014",
        [use(1), (S, complete(1, {}))],
        [[use(1), used(1)], [(C, modern(1, "x/y")), (S, complete(1, {}))]],
    ),
    "a next cursor that is null": Fault(
        S,
        "OWN-015",
        [(C, modern(1, "tools/list")), listing(1, nextCursor=None)],
        [[(C, modern(1, "tools/list")), listing(1, nextCursor="")]],
    ),
    "a result without caching hints": Fault(
        S,
        "CACHE-001",
        [
            *((C, modern(1, "tools/list")), listing(1, "ttlMs")),
            *((C, modern(2, "tools/list")), listing(2, "cacheScope")),
        ],
        [[(C, modern(1, "tools/list")), listing(1)], [use(1), used(1)]],
    ),
    "a result that is fresh for less than nothing": Fault(
        S,
        "CACHE-002",
        [
            *((C, modern(1, "tools/list")), listing(1, ttlMs=-1)),
            *((C, modern(2, "tools/list")), listing(2, ttlMs="5")),
            *((C, modern(3, "tools/list")), listing(3, ttlMs=1.5)),
        ],
        [[(C, modern(1, "tools/list")), listing(1, ttlMs=5.0)]],
    ),
    "a result for an unknown audience": Fault(
        S,
        "CACHE-003",
        [(C, modern(1, "tools/list")), listing(1, cacheScope="all")],
        [[(C, modern(1, "tools/list")), listing(1, cacheScope="public")]],
    ),
    "questions that may be kept": Fault(
        S,
        "CACHE-004",
        [use(1), asking(1, QUESTION, ttlMs=5)],
        [[use(1), asking(1, QUESTION)], [use(1), used(1, **CACHE)]],
    ),
    # ------------------------------------------------------------------------------ questions
    "questions about a list": Fault(
        S,
        "MRTR-003",
        [(C, modern(1, "tools/list")), asking(1, QUESTION)],
        [
            [(C, modern(1, "prompts/get", {"name": "p"})), asking(1, QUESTION)],
            [(C, modern(1, "resources/read", {"uri": FILE})), asking(1, QUESTION)],
            [(C, modern(1, "x/y")), asking(1, QUESTION)],
        ],
    ),
    "a question about nothing": Fault(
        S, "MRTR-004", [use(1), asking(1)], [[use(1), asking(1, state="")]]
    ),
    "questions that are a list": Fault(
        S, "OWN-014", [use(1), asking(1, [FORM])], [[use(1), asking(1, {"0": FORM})]]
    ),
    "a question that nobody can be asked": Fault(
        S,
        "MRTR-006",
        [use(1), asking(1, question("ping"))],
        [[use(1), asking(1, {"q": SAMPLE})]],
    ),
    "a question with an envelope": Fault(
        S,
        "MRTR-007",
        [use(1), asking(1, {"q": {"jsonrpc": "2.0", "id": 1, **ROOTS}})],
        [[use(1), asking(1, {"q": ROOTS})]],
    ),
    "a question that is no object": Fault(
        S, "MRTR-007", [use(1), asking(1, {"q": "roots/list"})], [[use(1), asking(1, {"q": ROOTS})]]
    ),
    "a question that was not declared": Fault(
        S,
        "MRTR-008",
        [
            use(1, envelope({"roots": {}, "elicitation": {}})),
            used(1),
            use(2, envelope({"roots": {}})),  # what an earlier request declared does not count
            asking(2, QUESTION),
        ],
        [
            [use(1, envelope({"elicitation": {}})), asking(1, QUESTION)],
            [use(1, envelope({})), use(2), asking(2, QUESTION)],
        ],
    ),
    "a question in a mode that was not declared": Fault(
        S,
        "MRTR-008",
        [use(1, envelope({"elicitation": {}})), asking(1, {"q": URL})],
        [[use(1, envelope({"elicitation": {"url": {}}})), asking(1, {"q": URL})]],
    ),
    "a question in an unknown mode": Fault(
        S,
        "ELIC-005",
        [use(1), asking(1, question("elicitation/create", mode="voice"))],
        [[use(1), asking(1, {"q": URL})]],
    ),
    "a question without a member": Fault(
        S,
        "OWN-014",
        [use(1), asking(1, question("sampling/createMessage", messages=[]))],
        [[use(1), asking(1, {"q": SAMPLE})]],
    ),
    # --------------------------------------------------------------------------------- errors
    "a code that is reserved": Fault(
        S,
        "ERR-006",
        [use(1), refused(1, -32042)],
        [[use(1), refused(1, -32020)], [use(1), refused(1, -32100)], [use(1), refused(1, -1)]],
    ),
    "a code of the other era": Fault(
        S, "ERR-008", [use(1), refused(1, -32002)], [[use(1), refused(1, -32602)]]
    ),
    "a list of missing capabilities": Fault(
        S,
        "CAP-007",
        [use(1), refused(1, -32021, {"requiredCapabilities": ["sampling"]})],
        [[use(1), refused(1, -32021, {"requiredCapabilities": {"sampling": {}}})]],
        before=(),
    ),
    "missing capabilities without a name": Fault(
        S, "CAP-007", [use(1), refused(1, -32021)], [[use(1), refused(1, -32603)]]
    ),
    "a version that is refused without another": Fault(
        S,
        "VER-008",
        [use(1), refused(1, -32022, {"requested": "2026-07-28"})],
        [
            [use(1), refused(1, -32022, {"requested": "2026-07-28", "supported": ["2031-01-01"]})],
            [use(1), refused(1, -32022)],  # an older server, which may mean anything by that
            [use(1), refused(1, -32603, {"supported": 5})],
        ],
        before=(),
    ),
    # ---------------------------------------------------------------------------- the server's
    "a request of the server": Fault(
        S,
        "STATE-006",
        [(S, call(1, "roots/list")), (S, call(2, "ping")), (S, call(3, "x/y"))],
        [[use(1), asking(1, {"q": ROOTS})]],
    ),
    "a batch of the server": Fault(
        S,
        "BATCH-008",
        [use(1), use(2), (S, [used(1)[1], used(2)[1]])],
        [[use(1), use(2), used(2), used(1)]],
    ),
    "a change that names no subscription": Fault(
        S, "SUBS-009", [*listening(1), (S, note(CHANGED))], [[*listening(1), told(CHANGED, 1)]]
    ),
    "a notification of the other era by the server": Fault(
        S,
        "OWN-020",
        [(S, note("notifications/elicitation/complete", {"elicitationId": "e"}))],
        [
            [(S, note("notifications/x"))],
            [
                use(1, envelope(EXTENDED)),
                (S, note("notifications/elicitation/complete", {"elicitationId": "e"})),
            ],
        ],
    ),
    "a cancellation by the server": Fault(
        S, "CANC-019", [use(1), cancel(S, 1)], [[*listening(1), cancel(S, 1)]]
    ),
    "a cancellation of nothing by the server": Fault(
        S,
        "CANC-019",
        [cancel(S, 1)],
        [[*listening(1), ended(1, 1), cancel(S, 1)], [*listening(1), cancel(S, 1), cancel(S, 1)]],
    ),
    "a cancellation by the server that names nothing": Fault(
        S,
        "CANC-007",
        [(S, note("notifications/cancelled"))],
        [[*listening(0), cancel(S, 0)]],
    ),
    # ------------------------------------------------------------------------------- progress
    "progress of nothing": Fault(
        S, "PROG-006", [use(1), progress(1, 1)], [[use(1, with_token(1)), progress(1, 1)]]
    ),
    "progress that goes back": Fault(
        S,
        "PROG-003",
        [use(1, with_token(1)), progress(1, 2), progress(1, 1)],
        [
            [use(1, with_token(1)), progress(1, 1), progress(1, 2)],
            [
                *(use(1, with_token(1)), progress(1, 2), asking(1, state=STATE)),
                *(use(2, with_token(1), requestState=STATE), progress(1, 1)),
            ],
        ],
    ),
    "progress after the answer": Fault(
        S,
        "PROG-010",
        [use(1, with_token(1)), used(1), progress(1, 1)],
        [
            [use(1, with_token(1)), cancel(C, 1), progress(1, 1)],
            [
                *(use(1, with_token(1, EXTENDED)), (S, result(1, {"resultType": "novel"}))),
                progress(1, 1),
            ],
        ],
    ),
    "progress of a subscription": Fault(
        S,
        "SUBS-017",
        [
            (C, modern(1, "subscriptions/listen", {"notifications": TOOLS}, with_token("t"))),
            progress("t", 1),
        ],
        [[*listening(1), use(2, with_token("t")), progress("t", 1)]],
    ),
    # ------------------------------------------------------------------------------------ logs
    "a log message that nobody wants": Fault(
        S,
        "LOG-007",
        [use(1), log("emergency")],
        [[use(1, envelope(level="emergency")), log("emergency")]],
    ),
    "a log message below the level": Fault(
        S,
        "LOG-007",
        [use(1, envelope(level="error")), log("warning")],
        [
            [use(1, envelope(level="error")), log("error"), log("critical")],
            [use(1, envelope(level="error")), use(2, envelope(level="debug")), log("debug")],
            [use(1, envelope(level="error")), cancel(C, 1), log("error")],
        ],
    ),
    "a log message after the answer": Fault(
        S,
        "LOG-007",
        [use(1, envelope(level="debug")), used(1), log("error")],
        [
            [use(1, envelope(level="debug")), log("error"), used(1)],
            [
                *(use(1, envelope(level="debug")), refused(1, -1)),
                *(use(2, envelope(level="info")), log("info")),
            ],
        ],
    ),
    "a log message after an error": Fault(
        S,
        "LOG-007",
        [use(1, envelope(level="debug")), refused(1, -32603), log("error")],
        [[use(1, envelope(level="debug")), log("error"), refused(1, -32603)]],
    ),
    "a log message of an unknown level": Fault(
        S,
        "LOG-002",
        [use(1, envelope(level="debug")), log("loud")],
        [[use(1, envelope(level="debug")), log("debug")]],
    ),
    "a log message without data": Fault(
        S,
        "OWN-014",
        [use(1, envelope(level="debug")), (S, note("notifications/message", {"level": "info"}))],
        [[use(1, envelope(level="debug")), log("info")]],
    ),
    "a log message for a subscription": Fault(
        S,
        "SUBS-017",
        [*listening(1), use(2, envelope(level="debug")), log("info", {SUBSCRIPTION: 1})],
        [[*listening(1), use(2, envelope(level="debug")), log("info", {"other": 1})]],
    ),
    # --------------------------------------------------------------------------- subscriptions
    "a kind of change that was not asked for": Fault(
        S,
        "SUBS-002",
        [*listening(1), told("notifications/prompts/list_changed", 1)],
        [[*listening(1), *listening(2, {"promptsListChanged": True})]],
    ),
    "a kind of change that was asked for and not granted": Fault(
        S,
        "SUBS-002",
        [
            *((C, listen(1, WHOLE_FILTER)), (S, acknowledged(1, {"promptsListChanged": True}))),
            told(CHANGED, 1),
        ],
        [
            [
                *((C, listen(1, WHOLE_FILTER)), (S, acknowledged(1, TOOLS))),
                told(CHANGED, 1),
            ],
        ],
    ),
    "an update that was not asked for": Fault(
        S,
        "SUBS-002",
        [*listening(1, {"resourceSubscriptions": []}), told(UPDATED, 1, uri=FILE)],
        [  # which may be a part of what was asked for
            [*listening(1, {"resourceSubscriptions": [FILE]}), told(UPDATED, 1, uri=FILE + "/b")],
        ],
    ),
    "an update of a resource that was asked for and not granted": Fault(
        S,
        "SUBS-003",
        [
            (C, listen(1, {"resourceSubscriptions": [FILE, "file:///b"]})),
            (S, acknowledged(1, {"resourceSubscriptions": ["file:///b"]})),
            told(UPDATED, 1, uri=FILE),
        ],
        [
            [
                (C, listen(1, {"resourceSubscriptions": [FILE, "file:///b"]})),
                (S, acknowledged(1, {"resourceSubscriptions": ["file:///b", FILE]})),
                told(UPDATED, 1, uri=FILE),
                told(UPDATED, 1, uri=FILE + "/part"),
                told(UPDATED, 1, uri="file:///b/part"),
            ],
            [  # the client has cancelled it, and what its server sends may cross
                (C, listen(1, {"resourceSubscriptions": [FILE]})),
                (S, acknowledged(1, {"resourceSubscriptions": [FILE]})),
                cancel(C, 1),
                told(UPDATED, 1, uri="file:///b"),
            ],
        ],
    ),
    "a second acknowledgement": Fault(
        S,
        "SUBS-004",
        [*listening(1), (S, acknowledged(1, TOOLS))],
        [[*listening(1), *listening(2)]],
    ),
    "an end before the acknowledgement": Fault(
        S,
        "SUBS-004",
        [(C, listen(1, TOOLS)), ended(1, 1)],
        [
            [(C, listen(1, TOOLS)), refused(1, -32603)],
            [(C, listen(1, TOOLS)), cancel(S, 1), ended(1, 1)],
        ],
    ),
    "a change before the acknowledgement": Fault(
        S,
        "SUBS-005",
        [(C, listen(1, TOOLS)), told(CHANGED, 1)],
        [[*listening(2), (C, listen(1, TOOLS)), told(CHANGED, 2), (S, acknowledged(1, TOOLS))]],
    ),
    "an acknowledgement of too much": Fault(
        S,
        "SUBS-007",
        [
            *((C, listen(1, TOOLS)), (S, acknowledged(1, {**TOOLS, "promptsListChanged": True}))),
            (C, listen(2, {"resourceSubscriptions": [FILE]})),
            (S, acknowledged(2, {"resourceSubscriptions": [FILE, "file:///b"]})),
        ],
        [
            [(C, listen(1, TOOLS)), (S, acknowledged(1, {}))],
            [
                (C, listen(1, {"resourceSubscriptions": ["file:///b", FILE]})),
                (S, acknowledged(1, {"resourceSubscriptions": [FILE]})),
            ],
        ],
    ),
    "an acknowledgement without a filter": Fault(
        S,
        "OWN-014",
        [
            (C, listen(1, TOOLS)),
            (S, note("notifications/subscriptions/acknowledged", {"_meta": {SUBSCRIPTION: 1}})),
            told(CHANGED, 1),
        ],
        [listening(1)],
    ),
    "an acknowledgement with a member of another type": Fault(
        S,
        "OWN-014",
        [(C, listen(1, TOOLS)), (S, acknowledged(1, {"toolsListChanged": "yes"}))],
        [listening(1)],
    ),
    "an acknowledgement without a tag": Fault(
        S,
        "SUBS-009",
        [
            (C, listen(1, TOOLS)),
            (S, note("notifications/subscriptions/acknowledged", {"notifications": TOOLS})),
        ],
        [listening(1)],
    ),
    "a change for nobody": Fault(
        S,
        "SUBS-009",
        [*listening(1), told(CHANGED, "1")],
        [[*listening("1"), told(CHANGED, "1")]],
    ),
    "a change with a tag that is none": Fault(
        S, "SUBS-009", [*listening(1), told(CHANGED, [1])], [[*listening(1), told(CHANGED, 1.0)]]
    ),
    "a change for another request": Fault(
        S, "SUBS-009", [use(1), told(CHANGED, 1)], [[*listening(1), told(CHANGED, 1)]]
    ),
    "a change after the end": Fault(
        S,
        "SUBS-009",
        [*listening(1), ended(1, 1), told(CHANGED, 1)],
        [[*listening(1), told(CHANGED, 1), ended(1, 1)]],
    ),
    "a change after the end by cancellation": Fault(
        S,
        "SUBS-009",
        [*listening(1), cancel(S, 1), told(CHANGED, 1)],
        [[*listening(1), told(CHANGED, 1), cancel(S, 1)]],
    ),
    "an update without a URI": Fault(
        S,
        "OWN-014",
        [*listening(1, {"resourceSubscriptions": [FILE]}), told(UPDATED, 1)],
        [[*listening(1, {"resourceSubscriptions": [FILE]}), told(UPDATED, 1, uri=FILE)]],
    ),
    "a change after the cancellation was read": Fault(
        S,
        "SUBS-012",
        [*listening(1), cancel(C, 1), use(2), used(2), told(CHANGED, 1)],
        [
            [*listening(1), cancel(C, 1), told(CHANGED, 1)],
            [*listening(1), use(2), cancel(C, 1), used(2), told(CHANGED, 1), ended(1, 1)],
        ],
    ),
    "an end after a cancellation that may have been refused": Fault(
        C,
        "BATCH-008",
        [*listening(1), (C, [cancel(C, 1)[1], use(2)[1]]), use(3), used(3), ended(1, 1)],
        [[*listening(1), cancel(C, 1), use(3), ended(1, 1), used(3)]],
    ),
    "an end after the cancellation was read": Fault(
        S,
        "SUBS-012",
        [*listening(1), cancel(C, 1), use(2), used(2), ended(1, 1)],
        [[*listening(1), cancel(C, 1), ended(1, 1)]],
    ),
    "an error after the cancellation was read": Fault(
        S,
        "SUBS-012",
        [*listening(1), cancel(C, 1), cancel(C, 1), use(2), used(2), refused(1, -32603)],
        [[*listening(1), cancel(C, 1), use(2), refused(1, -32603), used(2)]],
    ),
    "an end that does not name its subscription": Fault(
        S,
        "SUBS-014",
        [*listening(1), ended(1, 2), *listening(3), (S, complete(3))],
        [[*listening(1), ended(1, 1.0)]],
    ),
}


def found(fault: Fault, steps: list[Step]) -> list[tuple[Side, str]]:
    """The accused sides for these messages after those."""
    before = len(accused(observe(*fault.before)))
    return accused(observe(*fault.before, *steps))[before:]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_laid_to_the_side_and_the_rule_that_it_breaks(name: str) -> None:
    """Debugging with the observer depends on the right side and rule."""
    fault = FAULTS[name]

    assert set(found(fault, fault.steps)) == {(fault.guilty, fault.rule)}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_close_to_a_fault_is_not_taken_for_it(name: str) -> None:
    """A race, an extension or a similar member must not be reported as the fault."""
    fault = FAULTS[name]

    for innocent in fault.innocents:
        assert found(fault, innocent) == [], innocent


@pytest.mark.parametrize("name", FAULTS)
def test_a_handshake_in_the_middle_takes_no_fault_away_that_it_does_not_excuse(name: str) -> None:
    """A server of both eras serves both at once, so a handshake must not hide or add faults."""
    fault = FAULTS[name]
    before = (*fault.before, *opening())
    known = len(accused(observe(*before)))

    for innocent in fault.innocents:
        assert accused(observe(*before, *innocent))[known:] == [], innocent
