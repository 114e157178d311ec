"""`Config(check="full")`: both sides look into params and results with `sansmcp.check`."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Final

import pytest

from sansmcp import (
    ClientConnection,
    Config,
    FailureReason,
    InputRequired,
    LocalProtocolError,
    NotificationReceived,
    ProtocolViolation,
    Ready,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
)
from tests.support import tasks
from tests.support.modern import (
    FORM,
    LEGACY,
    discovered,
    input_required,
    modern,
    modern_client,
    modern_server,
    requested,
)
from tests.support.tasks import STAMP
from tests.support.wire import (
    CLIENT_INFO,
    SAMPLING,
    SERVER_CAPABILITIES,
    SERVER_INFO,
    asked,
    broken,
    call,
    initialize,
    note,
    only,
    ready_client,
    ready_server,
    receive,
    result,
    sent,
)

FULL: Final = Config(check="full")
BAD: Final[dict[str, Any]] = {"content": [{"type": "txt", "text": "hi"}]}
"""The result of a tool with a block of content that no revision has."""
GOOD: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "hi"}]}
ODD_NAME: Final[dict[str, Any]] = {"tools": [{"name": "a b", "inputSchema": {"type": "object"}}]}
"""A page of tools that breaks a SHOULD (TOOL-034)."""
BAD_FORM: Final[dict[str, Any]] = {
    "message": "Who?",
    "requestedSchema": {"type": "object", "properties": {"p": {"type": "object"}}},
}
BAD_QUESTION: Final[dict[str, Any]] = {"method": "elicitation/create", "params": BAD_FORM}
PROMPT: Final[dict[str, Any]] = {"name": "p", "arguments": {"n": 1}}


def full_client(**options: Any) -> ClientConnection:
    return ready_client(LEGACY, config=FULL, server=SERVER_CAPABILITIES, **options)


# --------------------------------------------------------------------------- what is handed over


def test_params_with_a_problem_are_not_sent() -> None:
    """PROMPT-007: the caller learns the rule at once, and the peer sees nothing."""
    for client in (full_client(), modern_client(config=FULL)):
        with pytest.raises(LocalProtocolError, match=r"\$\.arguments\.n is integer.*PROMPT-007"):
            client.send_request("prompts/get", PROMPT)
        assert sent(client) == []
        assert client.pending_requests == ()
        client.send_request("prompts/get", {"name": "p", "arguments": {"n": "1"}})
        assert sent(client)


def test_members_of_meta_are_judged_too() -> None:
    """META-003: `meta=` is a part of the params."""
    client = full_client()

    with pytest.raises(LocalProtocolError, match="META-003"):
        client.send_request("tools/list", {"_meta": {"a/b": 1}}, meta={"1a/b": 1})
    with pytest.raises(LocalProtocolError, match="META-003"):
        client.send_paginated("tools/list", meta={"1a/b": 1})
    assert sent(client) == []


def test_a_result_with_a_problem_is_not_sent() -> None:
    """OWN-076: the request stays open, so that the application can send another result."""
    server = modern_server(config=FULL)
    requests = (
        (server, requested(server, modern(1, "tools/call", {"name": "t"}))),
        (
            old := ready_server(LEGACY, config=FULL),
            asked(old, call(1, "tools/call", {"name": "t"})),
        ),
    )
    for connection, request in requests:
        with pytest.raises(LocalProtocolError, match=r"\$\.content\[0\]\.type.*OWN-076"):
            connection.send_result(request, BAD)
        assert sent(connection) == []
        assert connection.send_result(request, GOOD)


def test_what_only_breaks_a_should_is_sent_and_delivered() -> None:
    """TOOL-034: a SHOULD is no reason to refuse."""
    server = ready_server(LEGACY, config=FULL)
    assert server.send_result(asked(server, call(1, "tools/list")), ODD_NAME)

    client = full_client()
    request = client.send_request("tools/list")
    only(ResponseReceived, receive(client, result(sent(client)[0]["id"], ODD_NAME)))
    assert not request.open


def test_a_notification_with_a_problem_is_not_sent() -> None:
    """META-007: the verb raises."""
    client = full_client()
    with pytest.raises(LocalProtocolError, match="META-007"):
        client.send_notification("notifications/roots/list_changed", meta={"-": 1})
    assert sent(client) == []
    client.send_notification("notifications/roots/list_changed", meta={"a": 1})
    assert sent(client)


def test_an_answer_has_to_fit_its_form() -> None:
    """ELIC-017: the client holds the content against the form that the server has sent."""
    client = full_client()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    form = {"message": "?", "requestedSchema": schema}
    (event,) = receive(client, call(1, "elicitation/create", form))
    assert isinstance(event, RequestReceived)

    with pytest.raises(LocalProtocolError, match=r"\$\.content\.n.*ELIC-017"):
        client.send_result(event.request, {"action": "accept", "content": {"n": "1"}})
    assert client.send_result(event.request, {"action": "accept", "content": {"n": 1}})


# --------------------------------------------------------------------------------- what arrives


def test_a_request_with_a_problem_is_refused() -> None:
    """PROMPT-007: the peer gets -32602, and the application the violation only."""
    for server, message in (
        (ready_server(LEGACY, config=FULL), call(1, "prompts/get", PROMPT)),
        (modern_server(config=FULL), modern(1, "prompts/get", PROMPT)),
    ):
        events = receive(server, message)
        violations = [event for event in events if isinstance(event, ProtocolViolation)]
        assert broken(violations) == ["PROMPT-007"]
        assert not [event for event in events if isinstance(event, RequestReceived)]
        (answer,) = sent(server)
        assert answer["error"]["code"] == -32602
        assert "$.arguments.n" in answer["error"]["message"]


def test_a_result_with_a_problem_ends_the_request_with_the_value() -> None:
    """OWN-076: the application can look at what the peer has sent."""
    for client in (full_client(), modern_client(config=FULL)):
        request = client.send_request("tools/call", {"name": "t"})
        events = receive(client, result(sent(client)[0]["id"], {**BAD, "resultType": "complete"}))

        ending = only(RequestFailed, [e for e in events if isinstance(e, RequestFailed)])
        assert ending.request is request
        assert ending.reason is FailureReason.INVALID_ANSWER
        assert ending.result == {**BAD, "resultType": "complete"}
        assert "$.content[0].type" in ending.text
        assert broken(events) == ["OWN-076"]

        client.send_request("tools/call", {"name": "t"})
        good = {**GOOD, "resultType": "complete"}
        only(ResponseReceived, receive(client, result(sent(client)[0]["id"], good)))


def test_a_notification_with_a_problem_is_reported_and_dropped() -> None:
    """LOG-002 is reported in any case; a `_meta` with a bad key at this level only."""
    client = full_client()
    updated = "notifications/resources/updated"

    assert broken(receive(client, note(updated, {"uri": "no URI"}))) == ["OWN-076"]
    only(NotificationReceived, receive(client, note(updated, {"uri": "file:///a"})))


def test_a_notification_that_is_tolerated_is_judged_all_the_same() -> None:
    """META-007 beside CAP-002: the client has not declared roots. Both are reported."""
    server = ready_server(LEGACY, client={}, config=FULL)
    changed = note("notifications/roots/list_changed", {"_meta": {"-": 1}})
    events = receive(server, changed)
    assert broken(events) == ["CAP-002", "META-007"]
    only(NotificationReceived, [each for each in events if isinstance(each, NotificationReceived)])


def test_what_can_be_left_alone_is_reported_and_delivered() -> None:
    """META-018: unknown keys never cause rejection. An icon can be left out, and null is absent."""
    meta = {"_meta": {"_own": 1}}
    server = ready_server(LEGACY, config=FULL)
    events = receive(server, call(1, "tools/call", {"name": "t", **meta}))
    assert broken(events) == ["META-007"]
    only(RequestReceived, [each for each in events if isinstance(each, RequestReceived)])

    client = full_client()
    change = receive(client, note("notifications/tools/list_changed", meta))
    assert broken(change) == ["META-007"]
    only(NotificationReceived, [each for each in change if isinstance(each, NotificationReceived)])

    schema = {"inputSchema": {"type": "object"}}
    for part, rule in (
        ({"icons": [{"src": "javascript:x"}]}, "ICON-003"),
        ({"icons": [{"src": "https://a.example/b", "sizes": ["48"]}]}, "OWN-077"),
        ({"description": None}, "OWN-015"),
    ):
        client.send_request("tools/list")
        page = {"tools": [{"name": "t", **schema, **part}]}
        events = receive(client, result(sent(client)[0]["id"], page))
        assert broken(events) == [rule]
        only(ResponseReceived, [each for each in events if isinstance(each, ResponseReceived)])

    asking = modern_client(config=FULL, capabilities={"elicitation": {"form": {}}})
    asking.send_request("tools/call", {"name": "t"})
    question = {**FORM, "params": {**FORM["params"], **meta}}
    events = receive(asking, input_required(sent(asking)[0]["id"], {"who": question}))
    assert broken(events) == ["META-007"]
    only(InputRequired, [each for each in events if isinstance(each, InputRequired)])

    client.send_request("tools/list")
    both = {"tools": [{"name": "t", **schema, "description": None, "title": 5}]}
    assert broken(receive(client, result(sent(client)[0]["id"], both))) == ["OWN-014"]


def test_what_breaks_a_should_hides_nothing() -> None:
    """OWN-076: a peer could fill the report with problems that are no reason to refuse."""
    client = full_client()
    client.send_request("tools/list")
    bad = {"name": "t", "inputSchema": {"type": "string"}}
    page = {"tools": [*ODD_NAME["tools"] * 200, bad]}
    events = receive(client, result(sent(client)[0]["id"], page))
    only(RequestFailed, [each for each in events if isinstance(each, RequestFailed)])


def test_a_request_that_is_tolerated_is_judged_all_the_same() -> None:
    """PROMPT-007 beside LIFE-004: before `initialized`, requests are served and reported."""
    server = ServerConnection(info=SERVER_INFO, capabilities=SERVER_CAPABILITIES, config=FULL)
    receive(server, initialize(1, LEGACY))
    sent(server)
    events = receive(server, call(2, "prompts/get", PROMPT))
    assert sorted(broken(events)) == ["LIFE-004", "PROMPT-007"]
    assert sent(server)[0]["error"]["code"] == -32602


# ------------------------------------------------------------------------------------ questions


def test_a_question_with_a_problem_is_not_asked() -> None:
    """ELIC-013: in both eras, before anything is sent."""
    server = modern_server(config=FULL)
    request = requested(server, modern(1, "tools/call", {"name": "t"}))
    with pytest.raises(LocalProtocolError, match="ELIC-013"):
        server.require_input(request, {"who": BAD_QUESTION})
    assert sent(server) == []
    assert server.require_input(request, {"who": FORM})


def test_a_question_is_judged_by_the_revision_of_the_client() -> None:
    """SAMP-010: on a legacy connection a question becomes a request of that revision."""
    server = ready_server("2025-06-18", client={"sampling": {}}, config=FULL)
    request = asked(server, call(1, "tools/call", {"name": "t"}))
    said = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    params = {**SAMPLING, "messages": [said]}

    with pytest.raises(LocalProtocolError, match="SAMP-010"):
        server.require_input(request, {"q": {"method": "sampling/createMessage", "params": params}})
    question = {"method": "sampling/createMessage", "params": SAMPLING}
    assert server.require_input(request, {"q": question})


def test_a_question_with_a_problem_ends_the_request() -> None:
    """ELIC-013: no user can answer it."""
    client = modern_client(config=FULL)
    client.send_request("tools/call", {"name": "t"})
    id = sent(client)[0]["id"]

    events = receive(client, input_required(id, {"who": BAD_QUESTION}))
    assert broken(events) == ["ELIC-013"]
    ending = only(RequestFailed, events[1:])
    assert ending.reason is FailureReason.INVALID_ANSWER


def test_an_answer_to_a_question_with_a_problem_is_not_sent() -> None:
    """ELIC-017: content belongs to accept only."""
    client = modern_client(config=FULL)
    request = client.send_request("tools/call", {"name": "t"})
    asking = input_required(sent(client)[0]["id"], {"who": FORM})
    only(InputRequired, receive(client, asking))

    with pytest.raises(LocalProtocolError, match="ELIC-017"):
        client.provide_input(request, {"who": {"action": "decline", "content": {}}})
    assert sent(client) == []
    client.provide_input(request, {"who": {"action": "decline"}})
    assert sent(client)


# ---------------------------------------------------------------------------------------- tasks


@pytest.mark.parametrize("is_legacy", [False, True])
def test_a_task_is_not_completed_with_a_result_that_has_a_problem(is_legacy: bool) -> None:
    """OWN-076: its result is that of the tool."""
    kept = tasks.host(config=FULL)
    if is_legacy:
        tasks.legacy(kept)
    task = kept.create()
    with pytest.raises(LocalProtocolError, match="OWN-076"):
        kept.server.complete_task(task, BAD)
    assert task.open
    kept.do(kept.server.complete_task, task, GOOD)
    assert not task.open


def test_the_result_of_a_task_is_judged_like_that_of_its_request() -> None:
    """OWN-076: the request ends as an invalid answer, with the value."""
    noted = {**GOOD, "_meta": {"_own": 1}}
    for value, kind, rules in (
        (BAD, RequestFailed, ["OWN-076"]),
        (GOOD, ResponseReceived, []),
        (noted, ResponseReceived, ["META-007"]),
    ):
        client = ClientConnection(
            info=CLIENT_INFO,
            capabilities={},
            revisions=("2026-07-28",),
            tasks=tasks.settings(),
            config=FULL,
        )
        client.start(now=0.0)
        server: dict[str, Any] = {"tools": {}, "extensions": {tasks.EXTENSION: {}}}
        found = discovered(server)
        only(Ready, receive(client, result(sent(client)[0]["id"], found)))
        client.send_request("tools/call", {"name": "t"}, task=True)
        shown = {"taskId": "t1", "createdAt": STAMP, "lastUpdatedAt": STAMP, "ttlMs": None}
        made = {"resultType": "task", **shown, "status": "working", "pollIntervalMs": 1}
        receive(client, result(sent(client)[0]["id"], made))
        client.handle_timeout(1.0)
        done = {"resultType": "complete", **shown, "status": "completed", "result": value}
        events = receive(client, result(sent(client)[0]["id"], done))
        assert [type(event) for event in events if isinstance(event, kind)] == [kind]
        assert broken(events) == rules


# ------------------------------------------------------------------------------------ the price


def test_nothing_is_loaded_unless_it_is_asked_for() -> None:
    """The tables of all schemas take time and memory, which few programs want to spend."""
    program = (
        "import json, sys\nfrom sansmcp import ClientConnection, Config\n"
        "def loaded(check):\n"
        "    ClientConnection(info={'name': 'a', 'version': '1'}, config=Config(check=check))\n"
        "    return 'sansmcp.check' in sys.modules\n"
        "print(json.dumps([loaded('none'), loaded('shape'), loaded('full')]))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)

    assert json.loads(run.stdout) == [False, False, True]
