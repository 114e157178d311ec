"""The members of params and results: their JSON types, and null for an optional one.

`check="shape"` checks every member whose type the registry knows. An optional member that is null
counts as absent: it is reported if the peer sends it, and left out if our own caller gives it,
since objects that are dumped from models have it.
"""

from collections import OrderedDict
from typing import Any, Final

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    CancelCause,
    Config,
    FailureReason,
    InputRequired,
    JSONObject,
    ListingEnd,
    ListingEnded,
    LocalProtocolError,
    NotificationReceived,
    ProgressReceived,
    ProtocolViolation,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    SubscriptionAcknowledged,
)
from tests.support.modern import (
    CLIENT,
    FORM,
    LEVEL,
    MODERN,
    SAMPLE,
    TOOLS,
    acknowledged,
    envelope,
    in_question,
    input_required,
    listen,
    modern,
    modern_client,
    modern_server,
    requested,
)
from tests.support.watching import C, S, accused, observe, opening
from tests.support.wire import (
    asked,
    assert_usable,
    broken,
    call,
    initialize,
    new_server,
    note,
    of,
    only,
    ready_client,
    ready_server,
    receive,
    refusals,
    result,
    sent,
)

ALL: Final = (*LEGACY_REVISIONS, MODERN)
NEWEST: Final = LEGACY_REVISIONS[-1]
PARAMS: Final[dict[str, JSONObject]] = {
    "tools/call": {"name": "t"},
    "prompts/get": {"name": "p"},
    "completion/complete": {"ref": {}, "argument": {}},
}
"""What the requests of these tests must have."""
RESULTS: Final[dict[str, JSONObject]] = {
    "tools/call": {"content": []},
    "tools/list": {"tools": []},
    "prompts/get": {"messages": []},
    "prompts/list": {"prompts": []},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
    "ping": {},
}
TASKS: Final[JSONObject] = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
LISTINGS: Final = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
QUESTIONS: Final[dict[str, JSONObject]] = {
    "sampling/createMessage": {"messages": [], "maxTokens": 1},
    "elicitation/create": dict(FORM["params"]),
    "roots/list": {},
}
ANSWERS: Final[dict[str, JSONObject]] = {
    "sampling/createMessage": {"content": {}, "model": "m", "role": "user"},
    "elicitation/create": {"action": "accept"},
    "roots/list": {"roots": []},
}
WRONG_PARAMS: Final[list[tuple[str, str, str, Any, str]]] = [
    *((revision, method, "cursor", 5, "PAGE-008") for revision in ALL for method in LISTINGS),
    *((revision, "tools/call", "arguments", [], "TOOL-026") for revision in ALL[:3]),
    *((revision, "tools/call", "arguments", "{}", "OWN-014") for revision in ALL[3:]),
    *((revision, "prompts/get", "arguments", [1], "OWN-014") for revision in ALL),
    *((revision, "completion/complete", "context", "c", "OWN-014") for revision in ALL[2:]),
    *((revision, "tools/call", "_meta", [], "OWN-014") for revision in ALL[:4]),
    (NEWEST, "tools/call", "task", True, "OWN-014"),
    (MODERN, "tools/call", "inputResponses", [], "MRTR-027"),
    (MODERN, "prompts/get", "requestState", 5, "MRTR-027"),
]
WRONG_RESULTS: Final[list[tuple[str, str, str, Any]]] = [
    *((revision, method, "nextCursor", 5) for revision in ALL for method in LISTINGS),
    *((revision, "tools/call", "isError", "false") for revision in ALL),
    *((revision, "tools/call", "_meta", []) for revision in ALL),
    *((revision, "tools/call", "structuredContent", []) for revision in ALL[2:4]),
    *((revision, "prompts/get", "description", {}) for revision in ALL),
    *((revision, "ping", "_meta", []) for revision in ALL[:4]),
]
WRONG_QUESTIONS: Final[list[tuple[str, str, str, Any]]] = [
    *((revision, "sampling/createMessage", "temperature", True) for revision in ALL[:4]),
    *((revision, "sampling/createMessage", "systemPrompt", 5) for revision in ALL[:4]),
    *((revision, "sampling/createMessage", "stopSequences", "x") for revision in ALL[:4]),
    (NEWEST, "elicitation/create", "task", []),
    *((revision, "roots/list", "_meta", 5) for revision in ALL[:4]),
]
WRONG_ANSWERS: Final[list[tuple[str, str, str, Any]]] = [
    *((revision, "sampling/createMessage", "stopReason", 5) for revision in ALL[:4]),
    *((revision, "elicitation/create", "content", []) for revision in ALL[2:4]),
]


def request(revision: str, id: object, method: str, params: JSONObject) -> JSONObject:
    """A request as a client of this revision sends it."""
    return modern(id, method, params) if revision == MODERN else call(id, method, params)


def server_of(revision: str, config: Config | None = None) -> Any:
    if revision == MODERN:
        return modern_server(config=config)
    return ready_server(revision, config=config)


def client_of(revision: str, config: Config | None = None) -> Any:
    return (
        modern_client(config=config)
        if revision == MODERN
        else ready_client(revision, config=config)
    )


# ------------------------------------------------------------------------------------- types


@pytest.mark.parametrize(("revision", "method", "member", "value", "rule"), WRONG_PARAMS)
def test_params_of_the_wrong_type_are_refused_by_the_core(
    revision: str, method: str, member: str, value: object, rule: str
) -> None:
    """The handler would fail, and the client get -32603 without the reason."""
    server = server_of(revision)
    params = {**PARAMS.get(method, {}), member: value}
    events = receive(server, request(revision, 7, method, params))
    (violation,) = of(ProtocolViolation, events)
    assert (violation.rule, violation.code) == (rule, -32602)
    assert member in violation.text
    assert of(RequestReceived, events) == []
    (refused,) = sent(server)
    assert refusals([refused]) == [(7, -32602)]
    assert member in refused["error"]["message"]
    good = requested(server, request(revision, 8, method, PARAMS.get(method, {})))
    assert good.open


@pytest.mark.parametrize(("revision", "method", "member", "value", "rule"), WRONG_PARAMS)
def test_params_of_the_wrong_type_are_not_sent(
    revision: str, method: str, member: str, value: object, rule: str
) -> None:
    """The mistake of the caller must raise in the verb, and not come back from the peer."""
    client = client_of(revision)
    with pytest.raises(LocalProtocolError) as raised:
        client.send_request(method, {**PARAMS.get(method, {}), member: value})
    assert raised.value.rule == ("MRTR-020" if rule == "MRTR-027" else "OWN-014")
    assert sent(client) == []


@pytest.mark.parametrize(("revision", "method", "member", "value", "rule"), WRONG_PARAMS)
def test_the_observer_accuses_the_client_of_params_of_the_wrong_type(
    revision: str, method: str, member: str, value: object, rule: str
) -> None:
    """An observer must judge a message as its receiver does."""
    params = {**PARAMS.get(method, {}), member: value}
    before = [] if revision == MODERN else opening(revision)
    expected = "MRTR-020" if rule == "MRTR-027" else "OWN-014"
    events = observe(*before, (C, request(revision, 7, method, params)))
    assert set(accused(events)) == {(C, expected)}


@pytest.mark.parametrize(
    ("revision", "method", "member", "value"),
    [row[:4] for row in WRONG_PARAMS if row[2] in ("cursor", "arguments")],
)
def test_without_checks_params_arrive_as_they_came(
    revision: str, method: str, member: str, value: object
) -> None:
    """`check="none"` is for applications that check params themselves."""
    server = server_of(revision, Config(check="none"))
    params = {**PARAMS.get(method, {}), member: value}
    handle = requested(server, request(revision, 7, method, params))
    assert handle.params[member] == value


def test_without_checks_a_cursor_is_a_string_all_the_same() -> None:
    """A listing has to send cursors back, which must be strings."""
    client = client_of(LEGACY_REVISIONS[-1], Config(check="none"))
    with pytest.raises(LocalProtocolError, match="a cursor is a string, not 5"):
        client.send_paginated("tools/list", {"cursor": 5})
    assert sent(client) == []


@pytest.mark.parametrize(("revision", "method", "member", "value"), WRONG_RESULTS)
def test_a_result_of_the_wrong_type_ends_the_request_as_invalid(
    revision: str, method: str, member: str, value: object
) -> None:
    """The caller would fail later, far from the cause."""
    client = client_of(revision)
    handle = client.send_request(method, PARAMS.get(method))
    (message,) = sent(client)
    given = {**RESULTS[method], member: value}
    if revision == MODERN:
        given["resultType"] = "complete"
    violation, failed = receive(client, result(message["id"], given))
    assert isinstance(violation, ProtocolViolation)
    assert violation.rule == "OWN-014"
    assert member in violation.text
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (handle, FailureReason.INVALID_ANSWER)


@pytest.mark.parametrize(("revision", "method", "member", "value"), WRONG_RESULTS)
def test_a_result_of_the_wrong_type_is_not_sent(
    revision: str, method: str, member: str, value: object
) -> None:
    """The request must stay open for a valid result."""
    config = Config(manual={"ping"})
    server = server_of(revision, config)
    handle = requested(server, request(revision, 7, method, PARAMS.get(method, {})))
    with pytest.raises(LocalProtocolError) as raised:
        server.send_result(handle, {**RESULTS[method], member: value})
    assert raised.value.rule == "OWN-014"
    assert sent(server) == []
    assert server.send_result(handle, RESULTS[method])


@pytest.mark.parametrize(("revision", "method", "member", "value"), WRONG_RESULTS)
def test_the_observer_accuses_the_server_of_a_result_of_the_wrong_type(
    revision: str, method: str, member: str, value: object
) -> None:
    """An observer must judge a message as its receiver does."""
    answer = result(7, {**RESULTS[method], member: value})
    before = opening(revision)
    if revision == MODERN:
        before = []
        answer["result"] |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    asking = request(revision, 7, method, PARAMS.get(method, {}))
    assert accused(observe(*before, (C, asking), (S, answer))) == [(S, "OWN-014")]


@pytest.mark.parametrize(("revision", "method", "member", "value"), WRONG_QUESTIONS)
def test_what_a_server_asks_is_judged_in_the_same_way(
    revision: str, method: str, member: str, value: object
) -> None:
    """Requests of a server must be judged like those of a client."""
    params = {**QUESTIONS[method], member: value}
    client = ready_client(revision)
    assert broken(receive(client, call(7, method, params))) == ["OWN-014"]
    assert refusals(sent(client)) == [(7, -32602)]
    server = ready_server(revision)
    with pytest.raises(LocalProtocolError, match="OWN-014"):
        server.send_request(method, params)
    assert_usable(server)


@pytest.mark.parametrize(("revision", "method", "member", "value"), WRONG_ANSWERS)
def test_what_a_client_answers_is_judged_in_the_same_way(
    revision: str, method: str, member: str, value: object
) -> None:
    """Results of a client must be judged like those of a server."""
    server = ready_server(revision)
    server.send_request(method, QUESTIONS[method])
    (message,) = sent(server)
    events = receive(server, result(message["id"], {**ANSWERS[method], member: value}))
    assert broken(events) == ["OWN-014"]
    assert [event.reason for event in of(RequestFailed, events)] == [FailureReason.INVALID_ANSWER]


def test_a_bool_is_no_number_and_a_number_no_bool() -> None:
    """In Python they are equal, and in JSON they are not."""
    server = ready_server(NEWEST)
    handle = asked(server, call(1, "tools/call", {"name": "t"}))
    with pytest.raises(LocalProtocolError, match="isError"):
        server.send_result(handle, {"content": [], "isError": 1})
    assert server.send_result(handle, {"content": [], "isError": True})


def test_a_subclass_of_a_json_type_is_of_that_type() -> None:
    """A caller may give objects of its framework."""
    client = ready_client(NEWEST)
    client.send_request("tools/call", {"name": "t", "arguments": OrderedDict(a=1)})
    (message,) = sent(client)
    assert message["params"] == {"name": "t", "arguments": {"a": 1}}


def test_answers_to_a_question_of_an_unknown_method_are_not_judged() -> None:
    """The members of the answer are unknown, and the question was the server's fault."""
    asking = modern(1, "tools/call", {"name": "t"})
    again = modern(2, "tools/call", {"name": "t", "inputResponses": {"q": {"x": None}}})
    answer = input_required(1, {"q": {"method": "x/unknown"}})
    assert accused(observe((C, asking), (S, answer), (C, again))) == [(S, "MRTR-006")]


def test_members_of_other_revisions_are_nobody_elses_business() -> None:
    """An older revision knows neither tasks nor structured content, so they may have any value."""
    server = ready_server("2025-03-26")
    handle = asked(server, call(1, "tools/call", {"name": "t", "task": None, "x": None}))
    assert handle.params == {"name": "t", "task": None, "x": None}
    assert server.send_result(handle, {"content": [], "structuredContent": None})
    assert sent(server) == [result(1, {"content": [], "structuredContent": None})]


def test_structured_content_may_be_null_where_it_may_be_anything() -> None:
    """In 2026-07-28 null is a valid value of it."""
    server = modern_server()
    handle = requested(server, modern(1, "tools/call", {"name": "t"}))
    assert server.send_result(handle, {"content": [], "structuredContent": None})
    (message,) = sent(server)
    assert message["result"]["structuredContent"] is None


def test_a_task_in_the_place_of_a_result_is_judged_as_a_task() -> None:
    """Members such as `statusMessage` belong to the task, and not to the result."""
    client = ready_client(NEWEST, server=TASKS)
    base = {"taskId": "t", "status": "working", "createdAt": "", "lastUpdatedAt": "", "ttl": None}
    for member, is_good in (("soon", True), (5, False)):
        client.send_request("tools/call", {"name": "t", "task": {}})
        (message,) = sent(client)
        given = {"task": {**base, "statusMessage": member}}
        events = receive(client, result(message["id"], given))
        assert bool(of(ResponseReceived, events)) is is_good
        assert broken(events) == ([] if is_good else ["OWN-014"])


def test_null_in_a_task_counts_as_absent_wherever_it_comes_from() -> None:
    """A null member of the task inside the result must be treated like others."""
    time = "2026-01-01T00:00:00Z"
    base = {
        "taskId": "t",
        "status": "working",
        "createdAt": time,
        "lastUpdatedAt": time,
        "ttl": None,
    }
    odd = {"task": {**base, "statusMessage": None, "pollInterval": None}, "_meta": None}
    for check in ("shape", "none"):
        config = Config(check=check)
        server = ready_server(NEWEST, capabilities=TASKS, config=config)
        handle = asked(server, call(1, "tools/call", {"name": "t", "task": {}}))
        assert server.send_result(handle, odd)
        (answer,) = sent(server)
        assert answer["result"] == {"task": base}
        client = ready_client(NEWEST, server=TASKS, config=config)
        client.send_request("tools/call", {"name": "t", "task": {}})
        (message,) = sent(client)
        events = receive(client, result(message["id"], odd))
        assert broken(events) == ["OWN-015"] * 3
        (event,) = of(ResponseReceived, events)
        assert event.result == {"task": base}
    asking = call(1, "tools/call", {"name": "t", "task": {}})
    seen = observe(*opening(NEWEST, server=TASKS), (C, asking), (S, result(1, odd)))
    assert accused(seen) == [(S, "OWN-015")] * 3


# ------------------------------------------------------------------------- notifications


@pytest.mark.parametrize("revision", ALL[1:])
@pytest.mark.parametrize(("member", "value"), [("total", "3"), ("message", 5), ("_meta", [])])
def test_progress_keeps_what_is_good_of_it(revision: str, member: str, value: object) -> None:
    """A notification cannot be refused, so a wrong optional member must be left out and
    reported."""
    client = client_of(revision)
    handle = client.send_request("tools/call", {"name": "t"}, progress=True)
    sent(client)
    params = {"progressToken": handle.progress_token, "progress": 1, member: value}
    violation, event = receive(client, note("notifications/progress", params))
    assert isinstance(violation, ProtocolViolation)
    assert (violation.rule, violation.tolerated, violation.request) == ("OWN-014", True, handle)
    assert member in violation.text
    assert isinstance(event, ProgressReceived)
    assert (event.progress, event.total, event.message) == (1, None, None)


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
def test_a_cancellation_counts_whatever_its_reason_is(revision: str) -> None:
    """A wrong reason must not keep the request running."""
    server = ready_server(revision)
    for id, reason, rule in ((1, 5, "OWN-014"), (2, None, "OWN-015")):
        handle = asked(server, call(id, "tools/call", {"name": "t"}))
        events = receive(
            server, note("notifications/cancelled", {"requestId": id, "reason": reason})
        )
        violation, event = events
        assert isinstance(violation, ProtocolViolation)
        assert (violation.rule, violation.tolerated) == (rule, True)
        assert isinstance(event, RequestCancelled)
        assert (event.request, event.cause, event.reason) == (handle, CancelCause.PEER, None)


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize(("value", "rule"), [(5, "OWN-014"), (None, "OWN-015")])
def test_a_log_message_loses_a_logger_that_is_none(revision: str, value: object, rule: str) -> None:
    """A wrong `logger` must not lose the log message."""
    client = client_of(revision)
    params = {"level": "info", "data": None, "logger": value}
    events = receive(client, note("notifications/message", params))
    assert broken(events) == [rule]
    assert all(event.tolerated for event in of(ProtocolViolation, events))
    (event,) = of(NotificationReceived, events)
    assert event.params == {"level": "info", "data": None}


@pytest.mark.parametrize("revision", ALL)
def test_without_checks_a_notification_arrives_as_it_came(revision: str) -> None:
    """With `check="none"` only the members that the core reads must have their types."""
    client = client_of(revision, Config(check="none"))
    params = {"level": "info", "data": None, "logger": 5}
    (event,) = receive(client, note("notifications/message", params))
    assert isinstance(event, NotificationReceived)
    assert event.params == params
    events = receive(client, note("notifications/message", {**params, "logger": None}))
    assert broken(events) == ["OWN-015"]
    handle = client.send_request("tools/call", {"name": "t"}, progress=True)
    sent(client)
    progress = {"progressToken": handle.progress_token, "progress": 1, "total": "3"}
    events = receive(client, note("notifications/progress", progress))
    assert broken(events) == ["OWN-014"]
    assert only(ProgressReceived, events[1:]).total is None


@pytest.mark.parametrize(("value", "rule"), [("3", "OWN-014"), (None, "OWN-015")])
def test_the_observer_reports_odd_members_of_notifications(value: object, rule: str) -> None:
    """The observer reports the same members as a client or a server does."""
    asking = call(1, "tools/call", {"name": "t", "_meta": {"progressToken": 1}})
    progress = {"progressToken": 1, "progress": 1, "total": value}
    log = {"level": "info", "data": 1, "logger": None if value is None else 5}
    reason = {"requestId": 1, "reason": None if value is None else 5}
    events = observe(
        *opening(NEWEST),
        (C, asking),
        (S, note("notifications/progress", progress)),
        (S, note("notifications/message", log)),
        (C, note("notifications/cancelled", reason)),
        (C, note("notifications/roots/list_changed", {"_meta": None if value is None else 5})),
    )
    assert accused(events) == [(S, rule), (S, rule), (C, rule), (C, rule)]


# --------------------------------------------------------------------------- null, received


NULL_PARAMS: Final = [
    *((revision, method, "cursor") for revision in ALL for method in LISTINGS),
    *(
        (revision, method, "arguments")
        for revision in ALL
        for method in ("tools/call", "prompts/get")
    ),
    *((revision, "tools/call", "_meta") for revision in ALL[:4]),
    *((revision, "x/unknown", "_meta") for revision in ALL[:4]),
    (NEWEST, "tools/call", "task"),
    *((MODERN, "tools/call", name) for name in ("inputResponses", "requestState")),
]
NULL_RESULTS: Final = [
    *((revision, method, "nextCursor") for revision in ALL for method in LISTINGS),
    *((revision, "tools/call", name) for revision in ALL for name in ("isError", "_meta")),
    *((revision, "tools/call", "structuredContent") for revision in ALL[2:4]),
    *((revision, "x/unknown", "_meta") for revision in ALL),
]


@pytest.mark.parametrize("check", ["shape", "none"])
@pytest.mark.parametrize(("revision", "method", "member"), NULL_PARAMS)
def test_null_in_params_counts_as_absent_and_is_reported(
    revision: str, method: str, member: str, check: Any
) -> None:
    """Clients that dump models write null for each missing member."""
    server = server_of(revision, Config(check=check, unknown_methods="deliver"))
    params = PARAMS.get(method, {})
    events = receive(server, request(revision, 1, method, {**params, member: None}))
    (violation,) = of(ProtocolViolation, events)
    assert (violation.rule, violation.tolerated) == ("OWN-015", True)
    assert violation.text == f"{member} is null"
    (event,) = of(RequestReceived, events)
    assert violation.request is event.request
    assert member not in event.request.params
    if member == "task":  # a task cannot be cancelled in this way, and this is none
        events = receive(server, note("notifications/cancelled", {"requestId": 1}))
        assert only(RequestCancelled, events).request is event.request


@pytest.mark.parametrize(("revision", "method", "member"), NULL_PARAMS)
def test_the_observer_reports_null_in_params(revision: str, method: str, member: str) -> None:
    """The rest must be judged as if the member were absent."""
    params = {**PARAMS.get(method, {}), member: None}
    before = [] if revision == MODERN else opening(revision)
    asking = request(revision, 1, method, params)
    after = [] if revision == MODERN else [(C, note("notifications/cancelled", {"requestId": 1}))]
    assert accused(observe(*before, (C, asking), *after)) == [(C, "OWN-015")]


def test_the_observer_does_not_judge_null_before_a_revision_is_agreed() -> None:
    """Before an agreement only the members of `initialize` are known."""
    first = initialize("i", NEWEST)
    first["params"]["_meta"] = None
    events = observe((C, call(0, "ping", {"_meta": None})), (C, first))
    assert accused(events) == [(C, "OWN-015")]


@pytest.mark.parametrize("check", ["shape", "none"])
@pytest.mark.parametrize(("revision", "method", "member"), NULL_RESULTS)
def test_null_in_a_result_counts_as_absent_and_is_reported(
    revision: str, method: str, member: str, check: Any
) -> None:
    """Servers that dump models write null for each missing member."""
    client = client_of(revision, Config(check=check))
    handle = client.send_request(method, PARAMS.get(method))
    (message,) = sent(client)
    given = RESULTS.get(method, {})
    if revision == MODERN:
        given = {**given, "resultType": "complete"}
    events = receive(client, result(message["id"], {**given, member: None}))
    first = of(ProtocolViolation, events)[0]
    assert (first.rule, first.tolerated, first.request) == ("OWN-015", True, handle)
    assert first.text == f"{member} is null"
    (answer,) = of(ResponseReceived, events)
    assert answer.result == {name: value for name, value in given.items() if name != member}


@pytest.mark.parametrize(("revision", "method", "member"), NULL_RESULTS)
def test_the_observer_reports_null_in_a_result(revision: str, method: str, member: str) -> None:
    """The rest must be judged as if the member were absent."""
    if method == "x/unknown" and revision != MODERN:
        return  # what an unknown method answers is not judged
    answer = result(1, {**RESULTS.get(method, {}), member: None})
    before = opening(revision)
    if revision == MODERN:
        before = []
        more = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        answer["result"] = {**more, **answer["result"]}
    asking = request(revision, 1, method, PARAMS.get(method, {}))
    found = accused(observe(*before, (C, asking), (S, answer)))
    assert found[:1] == [(S, "OWN-015")]


def test_a_null_cursor_ends_a_listing_of_2026_07_28() -> None:
    """Neighbour of case c063."""
    client = modern_client()
    listing = client.send_paginated("tools/list")
    (message,) = sent(client)
    page: JSONObject = {"tools": [], "nextCursor": None, "resultType": "complete"}
    events = receive(client, result(message["id"], page))
    assert broken(events) == ["OWN-015"]
    (ended,) = of(ListingEnded, events)
    assert (ended.listing, ended.reason) == (listing, ListingEnd.COMPLETE)


def test_null_in_an_envelope_counts_as_absent_and_is_reported_each_time() -> None:
    """A second request with an equal envelope must be reported too, although it is cached."""
    server = modern_server()
    for id in (1, 2):
        meta = {**envelope(), CLIENT: None, LEVEL: None}
        events = receive(server, modern(id, "tools/list", meta=meta))
        assert [event.text for event in of(ProtocolViolation, events)] == [
            f"{CLIENT} is null",
            f"{LEVEL} is null",
        ]
        (event,) = of(RequestReceived, events)
        assert event.request.peer.info is None
        assert CLIENT not in event.request.meta
    meta = {**envelope(), CLIENT: None, LEVEL: None}
    asking = modern(3, "tools/list", meta=meta)
    assert accused(observe((C, asking))) == [(C, "OWN-015"), (C, "OWN-015")]


def test_null_in_questions_counts_as_absent_and_is_reported() -> None:
    """The application must get questions without the null members."""
    client = modern_client()
    client.send_request("tools/call", {"name": "t"})
    (message,) = sent(client)
    questions = {
        "f": {**FORM, "params": {**FORM["params"], "mode": None}},
        "r": {"method": "roots/list", "params": None},
        "s": {**SAMPLE, "params": {**SAMPLE["params"], "tools": None, "systemPrompt": None}},
    }
    answer = input_required(message["id"], questions)
    answer["result"] |= {"requestState": None, "_meta": None}
    events = receive(client, answer)
    assert broken(events) == ["OWN-015"] * 6
    (event,) = of(InputRequired, events)
    assert event.questions == {"f": FORM, "r": {"method": "roots/list"}, "s": SAMPLE}
    asking = modern(9, "tools/call", {"name": "t"})
    assert accused(observe((C, asking), (S, {**answer, "id": 9}))) == [(S, "OWN-015")] * 6


def test_null_in_a_filter_counts_as_absent_and_is_reported() -> None:
    """Client, server and observer must read such a filter alike."""
    server, client = modern_server(), modern_client()
    wish = {**TOOLS, "promptsListChanged": None, "resourceSubscriptions": None}
    assert broken(receive(server, listen(1, wish))) == ["OWN-015"] * 2
    (first,) = sent(server)
    assert first["params"]["notifications"] == TOOLS
    client.listen(TOOLS)
    (message,) = sent(client)
    events = receive(client, acknowledged(message["id"], wish))
    assert broken(events) == ["OWN-015"] * 2
    (event,) = of(SubscriptionAcknowledged, events)
    assert event.notifications == TOOLS
    seen = observe((C, listen(1, wish)), (S, acknowledged(1, wish)))
    assert accused(seen) == [(C, "OWN-015")] * 2 + [(S, "OWN-015")] * 2


def test_null_in_initialize_does_not_keep_a_client_out() -> None:
    """The `_meta` of `initialize` may be dumped from a model too."""
    server = new_server(revisions=LEGACY_REVISIONS)
    message = initialize(1, NEWEST)
    message["params"]["_meta"] = None
    assert broken(receive(server, message)) == ["OWN-015"]
    (answer,) = sent(server)
    assert answer["result"]["protocolVersion"] == NEWEST


# ------------------------------------------------------------------------------- null, given


@pytest.mark.parametrize(("revision", "method", "member"), NULL_PARAMS)
def test_null_in_params_is_left_out(revision: str, method: str, member: str) -> None:
    """With a null task the peer would create one, and of two `_meta` it may read either."""
    for more in ({}, {"meta": {"a/b": 1}}, {"progress": True}):
        client = client_of(revision)
        params = {**PARAMS.get(method, {}), member: None}
        given = dict(params)
        handle = client.send_request(method, given, **more)
        assert given == params  # it is the caller's
        data = client.data_to_send()
        assert data.count(b'"_meta"') == (1 if more or revision == MODERN else 0)
        assert b"null" not in data
        assert client.cancel(handle)


@pytest.mark.parametrize("revision", ALL)
def test_null_in_the_params_of_a_listing_is_left_out(revision: str) -> None:
    """The request of a page must be like any other."""
    client = client_of(revision)
    client.send_paginated("tools/list", {"cursor": None, "_meta": None}, meta={"a/b": 1})
    data = client.data_to_send()
    assert data.count(b'"_meta"') == 1
    assert b"null" not in data


@pytest.mark.parametrize("is_meta", [False, True])
@pytest.mark.parametrize(("revision", "method", "member"), NULL_RESULTS)
def test_null_in_a_result_is_left_out(
    revision: str, method: str, member: str, is_meta: bool
) -> None:
    """A null cursor is invalid by the official schema."""
    server = server_of(revision, Config(unknown_methods="deliver"))
    handle = requested(server, request(revision, 1, method, PARAMS.get(method, {})))
    given = {**RESULTS.get(method, {}), member: None}
    copy = dict(given)
    assert server.send_result(handle, given, meta={"a/b": 1} if is_meta else None)
    assert given == copy
    (data,) = server.messages_to_send()
    assert b"null" not in data
    assert data.count(b'"_meta"') == (1 if is_meta or revision == MODERN else 0)


def test_null_caching_hints_are_those_of_the_settings() -> None:
    """A null hint must be replaced by the default of the settings."""
    server = modern_server()
    handle = requested(server, modern(1, "tools/list"))
    assert server.send_result(handle, {"tools": [], "ttlMs": None, "cacheScope": None})
    (message,) = sent(server)
    assert (message["result"]["ttlMs"], message["result"]["cacheScope"]) == (0, "private")


def test_null_in_notifications_is_left_out() -> None:
    """Null members must be left out as in requests."""
    client = ready_client(NEWEST)
    client.send_notification("notifications/roots/list_changed", {"_meta": None})
    client.send_notification("x/unknown", {"_meta": None, "x": None}, meta={"a/b": 1})
    assert [message.get("params") for message in sent(client)] == [
        {},
        {"x": None, "_meta": {"a/b": 1}},
    ]


class _Array:
    """An array that compares member by member, and raises when its truth is tested."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth of an array is ambiguous")


@pytest.mark.parametrize("check", ["shape", "none"])
def test_a_value_that_cannot_be_compared_is_refused_like_others(check: Any) -> None:
    """Such a value has no JSON form, and must not be compared with null."""
    array: Any = _Array()
    config = Config(check=check, unknown_methods="deliver")
    client, server = ready_client(NEWEST, config=config), ready_server(NEWEST, config=config)
    handle = asked(server, call(1, "tools/call", {"name": "t"}))
    unknown = asked(server, call(2, "x/y"))
    verbs: list[tuple[Any, ...]] = [
        (client.send_request, "tools/call", {"name": "t", "x": array, "_meta": None}),
        (client.send_request, "x/y", {"a": array}),
        (client.send_notification, "x/y", {"a": array}),
        (client.send_paginated, "tools/list", {"a": array}),
        (server.send_log, "error", array),
        (server.send_result, handle, {"content": [], "x": array, "isError": None}),
        (server.send_result, unknown, {"x": array}),
        (server.require_input, handle, {"r": {"method": "roots/list", "params": {"x": array}}}),
    ]
    for verb, *arguments in verbs:
        with pytest.raises(LocalProtocolError, match="OWN-024"):
            verb(*arguments)
    assert sent(client) == sent(server) == []


def test_null_in_questions_and_answers_is_left_out() -> None:
    """In both eras: in questions of results, and in requests of the server."""
    question = {**SAMPLE, "params": {**SAMPLE["params"], "tools": None, "_meta": None}}
    questions = {"s": question, "r": {"method": "roots/list", "params": None}}
    server = modern_server()
    handle = requested(server, modern(1, "tools/call", {"name": "t"}))
    assert server.require_input(handle, questions)
    (message,) = sent(server)
    assert message["result"]["inputRequests"] == {"s": SAMPLE, "r": {"method": "roots/list"}}
    server = ready_server(NEWEST)
    handle = asked(server, call(1, "tools/call", {"name": "t"}))
    assert server.require_input(handle, questions)
    first, second = sent(server)
    assert first["params"] == SAMPLE["params"]
    assert "params" not in second
    client = modern_client()
    pending = in_question(client, {"f": FORM})
    client.provide_input(pending, {"f": {"action": "decline", "content": None}})
    (message,) = sent(client)
    assert message["params"]["inputResponses"] == {"f": {"action": "decline"}}


def test_answers_of_the_wrong_type_are_not_sent() -> None:
    """The server would refuse the whole request."""
    client = modern_client()
    pending = in_question(client, {"f": FORM})
    with pytest.raises(LocalProtocolError, match="content"):
        client.provide_input(pending, {"f": {"action": "accept", "content": []}})
    assert sent(client) == []


def test_null_in_a_filter_is_left_out() -> None:
    """A null member of a filter means that the caller did not ask for it."""
    client = modern_client()
    client.listen({**TOOLS, "resourceSubscriptions": None})
    (message,) = sent(client)
    assert message["params"]["notifications"] == TOOLS
    server = modern_server(config=Config(manual={"subscriptions/listen"}))
    handle = requested(server, listen(1, TOOLS))
    assert server.acknowledge(handle, {**TOOLS, "promptsListChanged": None})
    (message,) = sent(server)
    assert message["params"]["notifications"] == TOOLS


# ------------------------------------------------------------------------------ pagination


def test_cursors_are_strings_and_reach_the_handler_untouched() -> None:
    """Case c272: a server took 5 for no cursor and served its first page again."""
    server = modern_server()
    tool = {"name": "a", "inputSchema": {"type": "object"}}
    hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    first = requested(server, modern(1, "tools/list"))
    assert server.send_result(first, {"tools": [tool], "nextCursor": "k1", **hints})
    (page,) = sent(server)
    assert page["result"]["nextCursor"] == "k1"
    assert broken(receive(server, modern(2, "tools/list", {"cursor": 5}))) == ["PAGE-008"]
    assert refusals(sent(server)) == [(2, -32602)]
    empty = requested(server, modern(3, "tools/list", {"cursor": ""}))
    assert empty.params["cursor"] == ""
    assert server.send_error(empty, -32602, "Invalid cursor")
    assert refusals(sent(server)) == [(3, -32602)]
    last = requested(server, modern(4, "tools/list", {"cursor": "k1"}))
    assert last.params["cursor"] == "k1"
    assert server.send_result(last, {"tools": [tool], **hints, "nextCursor": None})
    (page,) = sent(server)
    assert "nextCursor" not in page["result"]
