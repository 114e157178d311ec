"""Requests of a client in 2026-07-28, and their endings.

Rules: META-009, META-012, META-017, JSON-021, JSON-022, MRTR-017 to MRTR-026, PAGE-007.
"""

from typing import Any

import pytest

from sansmcp import (
    ClientConnection,
    Config,
    ErrorReceived,
    Event,
    FailureReason,
    InputRequired,
    JSONObject,
    ListingEnd,
    ListingEnded,
    LocalProtocolError,
    OutgoingRequest,
    ProgressReceived,
    ProtocolViolation,
    RequestFailed,
    ResponseReceived,
)
from sansmcp.testing import drain
from tests.support.modern import (
    CAPABILITIES,
    CLIENT,
    EVERYTHING,
    FORM,
    LEVEL,
    MODERN,
    ROOTS,
    SAMPLE,
    VERSION,
    complete,
    modern_client,
)
from tests.support.wire import CLIENT_INFO, error, note, of, only, receive, result, sent

CALL: JSONObject = {"name": "t", "arguments": {"a": 1}}
SAID = {VERSION: MODERN, CAPABILITIES: EVERYTHING, CLIENT: CLIENT_INFO}
ACCEPTED: JSONObject = {"action": "accept", "content": {}}
SAMPLED: JSONObject = {
    "role": "assistant",
    "model": "m",
    "content": {"type": "text", "text": "hi"},
}


def asked(
    client: ClientConnection,
    questions: object = None,
    state: object = None,
    *,
    config: Any = None,
    **options: Any,
) -> tuple[OutgoingRequest, JSONObject]:
    """A call, and its result with questions."""
    call = client.send_request("tools/call", CALL, **options)
    (message,) = sent(client)
    answer: JSONObject = {"resultType": "input_required"}
    if questions is not None:
        answer["inputRequests"] = questions
    if state is not None:
        answer["requestState"] = state
    return call, result(message["id"], answer)


# --------------------------------------------------------------------------------- envelope


def test_each_request_says_who_asks() -> None:
    """A stateless server knows the client from the request alone."""
    client = modern_client()
    params = {"name": "t"}
    client.send_request("tools/call", params)
    client.send_request("tools/list")
    first, second = sent(client)
    assert first["params"] == {"name": "t", "_meta": SAID}
    assert second["params"] == {"_meta": SAID}
    assert params == {"name": "t"}


def test_what_the_caller_says_goes_along() -> None:
    """Trace context and other members of the caller must be sent."""
    client = modern_client()
    mine = {"name": "t", "_meta": {"traceparent": "00-1-2-01", "x": 1}}
    client.send_request("tools/call", mine, meta={"x": 2}, log_level="info", progress=True)
    (message,) = sent(client)
    assert message["params"]["_meta"] == {
        **SAID,
        "traceparent": "00-1-2-01",
        "x": 2,
        LEVEL: "info",
        "progressToken": message["id"],
    }
    assert mine == {"name": "t", "_meta": {"traceparent": "00-1-2-01", "x": 1}}


def test_info_can_be_left_out() -> None:
    """A client must be able to hide its name."""
    client = modern_client(config=Config(send_info=False))
    client.send_request("tools/list")
    (message,) = sent(client)
    assert message["params"]["_meta"] == {VERSION: MODERN, CAPABILITIES: EVERYTHING}


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"meta": {VERSION: "1"}}, "OWN-025"),
        ({"params": {"_meta": {CLIENT: {}}}}, "OWN-025"),
        ({"params": {"_meta": 5}}, "OWN-014"),
        ({"log_level": "loud"}, "LOG-010"),
        ({"log_level": ["info"]}, "LOG-010"),
        ({"meta": {"progressToken": True}}, "PROG-001"),
    ],
)
def test_what_the_caller_may_not_say(options: Any, rule: str) -> None:
    """Members that the library sets must not be given by the caller as well."""
    client = modern_client()
    with pytest.raises(LocalProtocolError, match=rule):
        client.send_request("tools/list", options.pop("params", None), **options)
    assert sent(client) == []


def test_token_of_the_callers_choice_is_used() -> None:
    """A caller may have to use a token that exists already."""
    client = modern_client()
    client.send_request("tools/call", CALL, meta={"progressToken": "mine"})
    (message,) = sent(client)
    assert message["params"]["_meta"] == {**SAID, "progressToken": "mine"}
    progress = note("notifications/progress", {"progressToken": "mine", "progress": 1})
    assert only(ProgressReceived, receive(client, progress)).progress == 1
    client.send_request("tools/call", CALL, id=9, meta={"progressToken": 10})
    client.send_request("tools/call", CALL, progress=True)
    assert sent(client)[1]["params"]["_meta"]["progressToken"] == "10+"


# ---------------------------------------------------------------------------------- results


@pytest.mark.parametrize("kind", [{}, {"resultType": "complete"}])
def test_complete_results(kind: JSONObject) -> None:
    """A server of an older revision sends no `resultType`, which means complete."""
    client = modern_client()
    call = client.send_request("tools/call", CALL)
    (message,) = sent(client)
    answer = result(message["id"], {"content": [], **kind})
    (event,) = of(ResponseReceived, receive(client, answer))
    assert event.request is call


@pytest.mark.parametrize("kind", ["task", "", None, 5, ["complete"]])
def test_unknown_kinds_of_results_are_no_success(kind: object) -> None:
    """A result of an unknown kind must not be delivered as a success."""
    client = modern_client()
    client.send_request("tools/call", CALL)
    (message,) = sent(client)
    events = receive(client, result(message["id"], {"content": [], "resultType": kind}))
    assert [event.rule for event in of(ProtocolViolation, events)] == ["JSON-022"]
    assert of(RequestFailed, events)[0].reason is FailureReason.INVALID_ANSWER


def test_errors_are_errors() -> None:
    """An error has no `resultType`."""
    client = modern_client()
    client.send_request("tools/call", CALL)
    (message,) = sent(client)
    assert only(ErrorReceived, receive(client, error(message["id"], -32021, "no"))).code == -32021


def test_a_cursor_that_repeats_is_used_until_the_limits() -> None:
    """In this revision the value of a cursor must not be judged."""
    client = modern_client(config=Config(max_pages=3))
    client.send_paginated("tools/list")
    events: list[Event] = []
    message: JSONObject = {}
    for _ in range(3):
        (message,) = sent(client)
        tool = {"name": "t", "inputSchema": {"type": "object"}}
        page = complete(message["id"], {"tools": [tool], "nextCursor": "again"})
        events += receive(client, page)
    assert message["params"] == {"_meta": SAID, "cursor": "again"}
    assert [event.rule for event in of(ProtocolViolation, events)] == ["OWN-028"] * 2
    assert of(ListingEnded, events)[0].reason is ListingEnd.PAGES


# -------------------------------------------------------------------------------- questions


def test_questions_are_answered_in_a_new_request() -> None:
    """A stateless server needs the whole request again."""
    client = modern_client()
    questions = {"a": FORM, "b": ROOTS, "c": SAMPLE}
    call, answer = asked(client, questions, "state é", meta={"traceparent": "x"}, progress=True)
    event = only(InputRequired, receive(client, answer))
    assert (event.request, event.questions, call.open) == (call, questions, False)
    responses: dict[str, JSONObject] = {"a": ACCEPTED, "b": {"roots": []}, "c": SAMPLED}
    again = client.provide_input(call, responses, progress=True, data="mine")
    (message,) = sent(client)
    assert message["id"] == again.id == 3
    assert again.data == "mine"
    assert message["method"] == "tools/call"
    assert message["params"] == {
        **CALL,
        "_meta": {**SAID, "traceparent": "x", "progressToken": 3},
        "inputResponses": responses,
        "requestState": "state é",
    }
    done = only(ResponseReceived, receive(client, complete(3, {"content": []})))
    assert done.request is again


def test_state_of_an_earlier_round_is_not_carried_on() -> None:
    """Each round must send the state of the last result, or none."""
    client = modern_client()
    call, answer = asked(client, {"b": ROOTS}, "first")
    receive(client, answer)
    again = client.provide_input(call, {"b": {"roots": []}}, timeout=5, max_timeout=9, now=1)
    sent(client)
    assert client.next_timeout() == 6
    questions = {"resultType": "input_required", "inputRequests": {"c": ROOTS}}
    assert only(InputRequired, receive(client, result(again.id, questions))).request is again
    client.provide_input(again, {"c": {"roots": []}})
    (message,) = sent(client)
    assert message["params"] == {**CALL, "_meta": SAID, "inputResponses": {"c": {"roots": []}}}


def test_state_alone_is_sent_back_at_once() -> None:
    """There is nothing to decide, so the same handle must go on without an event."""
    client = modern_client()
    call, answer = asked(client, None, "s", progress=True, timeout=5, now=0)
    assert receive(client, answer, now=3) == []
    (message,) = sent(client)
    assert (call.open, call.id, message["id"]) == (True, 3, 3)
    assert message["params"] == {
        **CALL,
        "_meta": {**SAID, "progressToken": 2},
        "requestState": "s",
    }
    assert client.next_timeout() == 8
    done = only(ResponseReceived, receive(client, complete(3, {"content": []})))
    assert done.request is call


def test_call_that_goes_on_by_itself_can_be_cancelled() -> None:
    """The cancellation must have the id of the newest round."""
    client = modern_client()
    call, answer = asked(client, {}, "s")
    receive(client, answer)
    sent(client)
    assert client.cancel(call)
    (message,) = sent(client)
    assert message["params"]["requestId"] == 3


def test_state_that_comes_too_late_is_lost() -> None:
    """After the end of the connection no retry can be sent."""
    client = modern_client()
    _, answer = asked(client, None, "s")
    client.send_failed()
    (failed,) = of(RequestFailed, receive(client, answer))
    assert failed.reason is FailureReason.LOST


@pytest.mark.parametrize(
    ("questions", "state", "rule"),
    [
        (None, None, "MRTR-004"),
        ({}, None, "MRTR-004"),
        (5, None, "OWN-014"),
        ({"a": FORM}, 5, "OWN-014"),
        ({"a": 5}, None, "MRTR-007"),
        ({"a": {"method": 5}}, None, "MRTR-007"),
        ({"a": {**ROOTS, "params": []}}, None, "MRTR-007"),
        ({"a": {**ROOTS, "params": {"_meta": {VERSION: "1"}}}}, None, "MRTR-007"),
        ({"a": {"method": "tools/list"}}, None, "MRTR-006"),
        ({"a": {**FORM, "params": {"message": "m"}}}, None, "OWN-014"),
        ({"a": {**FORM, "params": {"mode": "song"}}}, None, "ELIC-005"),
    ],
)
def test_questions_that_make_no_sense_are_an_invalid_answer(
    questions: object, state: object, rule: str
) -> None:
    """An application must not be asked invalid questions."""
    client = modern_client()
    _, answer = asked(client, questions, state)
    events = receive(client, answer)
    assert [event.rule for event in of(ProtocolViolation, events)] == [rule]
    assert of(RequestFailed, events)[0].reason is FailureReason.INVALID_ANSWER


@pytest.mark.parametrize("question", [ROOTS, SAMPLE, FORM])
def test_what_was_not_declared_is_not_asked(question: JSONObject) -> None:
    """The request itself has declared the capabilities of the client."""
    client = modern_client(capabilities={})
    _, answer = asked(client, {"a": question})
    events = receive(client, answer)
    assert [event.rule for event in of(ProtocolViolation, events)] == ["MRTR-008"]


def test_only_three_methods_ask() -> None:
    """The result of tools/list must not be questions."""
    client = modern_client()
    client.send_request("tools/list")
    (message,) = sent(client)
    answer = result(message["id"], {"resultType": "input_required", "requestState": "s"})
    events = receive(client, answer)
    assert [event.rule for event in of(ProtocolViolation, events)] == ["MRTR-003"]


def test_a_retry_by_hand_is_the_callers_own() -> None:
    """A caller that sends the state itself must not get an automatic retry."""
    client = modern_client()
    by_hand: JSONObject = {**CALL, "requestState": "mine"}
    client.send_request("tools/call", by_hand)
    (message,) = sent(client)
    answer = result(message["id"], {"resultType": "input_required", "requestState": "s"})
    events = receive(client, answer)
    assert [event.rule for event in of(ProtocolViolation, events)] == ["MRTR-026"]


@pytest.mark.parametrize(
    ("responses", "rule"),
    [
        ({}, "MRTR-019"),
        ({"a": ACCEPTED, "z": {}}, "MRTR-019"),
        ({"a": {}}, "MRTR-020"),
        ({"a": 5}, "MRTR-020"),
    ],
)
def test_answers_have_to_fit(responses: Any, rule: str) -> None:
    """Invalid answers must raise without a change, so that valid ones may follow."""
    client = modern_client()
    call, answer = asked(client, {"a": FORM})
    receive(client, answer)
    with pytest.raises(LocalProtocolError, match=rule):
        client.provide_input(call, responses)
    assert sent(client) == []
    client.provide_input(call, {"a": ACCEPTED})
    assert len(sent(client)) == 1
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        client.provide_input(call, {"a": ACCEPTED})


@pytest.mark.unjudged("what is not checked may be invalid")
def test_answers_are_not_checked_where_nothing_is() -> None:
    """`check="none"` is for programs that test their peers."""
    client = modern_client(config=Config(check="none"))
    call, answer = asked(client, {"a": {"method": "elicitation/create"}})
    receive(client, answer)
    client.provide_input(call, {"a": {}})
    assert sent(client)[0]["params"]["inputResponses"] == {"a": {}}


def test_the_number_of_rounds_is_bounded() -> None:
    """A server that asks in every round would keep the caller for ever."""
    client = modern_client(config=Config(max_input_rounds=1))
    call, answer = asked(client, {"b": ROOTS})
    receive(client, answer)
    client.provide_input(call, {"b": {"roots": []}})
    questions = {"resultType": "input_required", "inputRequests": {"b": ROOTS}}
    (failed,) = of(RequestFailed, receive(client, result(3, questions)))
    assert failed.reason is FailureReason.TOO_MANY_ROUNDS
    assert drain(client) == []
