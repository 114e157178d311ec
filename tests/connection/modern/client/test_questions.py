"""The questions that a client accepts about its request, and the state beside them.

`test_requests` has the usual course. Rules: MRTR-002 to MRTR-008, MRTR-022 to MRTR-026.
"""

from copy import deepcopy

import pytest

from sansmcp import (
    FailureReason,
    InputRequired,
    JSONObject,
    LocalProtocolError,
    RequestFailed,
    ResponseReceived,
)
from tests.support.modern import (
    FORM,
    LEVEL,
    ROOTS,
    SAMPLE,
    URL,
    complete,
    in_question,
    input_required,
    modern_client,
)
from tests.support.wire import broken, of, only, receive, result, sent

CALL: JSONObject = {"name": "t", "arguments": {"a": 1}}
ASK_ROOTS: JSONObject = {"r": ROOTS}
GIVE_ROOTS: JSONObject = {"r": {"roots": []}}
DONE: JSONObject = {"content": []}


def with_params(question: JSONObject, **params: object) -> JSONObject:
    return {**question, "params": {**question.get("params", {}), **params}}


# ------------------------------------------------------------------------------------- the events


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", CALL),
        ("prompts/get", {"name": "p", "arguments": {"a": "b"}}),
        ("resources/read", {"uri": "file:///a"}),
    ],
)
def test_three_methods_may_be_answered_with_questions(method: str, params: JSONObject) -> None:
    """The retry must have the whole original request (MRTR-002, MRTR-021)."""
    client = modern_client()
    call = client.send_request(method, params, meta={"x": 1}, log_level="info")
    (original,) = sent(client)
    receive(client, input_required(2, ASK_ROOTS))
    client.provide_input(call, GIVE_ROOTS)
    (retry,) = sent(client)
    assert retry == {
        **original,
        "id": 3,
        "params": {**original["params"], "inputResponses": GIVE_ROOTS},
    }
    assert retry["params"]["_meta"][LEVEL] == "info"


@pytest.mark.parametrize("method", ["tools/list", "completion/complete", "x/extension"])
def test_all_others_may_not(method: str) -> None:
    """Other methods must not have questions as their result (MRTR-003, c250)."""
    client = modern_client()
    params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
    call = client.send_request(method, params)
    violation, failed = receive(client, input_required(2, ASK_ROOTS, "s"))
    assert broken([violation]) == ["MRTR-003"]
    assert isinstance(failed, RequestFailed)
    assert failed.reason is FailureReason.INVALID_ANSWER
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        client.provide_input(call, GIVE_ROOTS)


@pytest.mark.parametrize(
    ("capabilities", "question", "allowed"),
    [
        ({"roots": {}}, ROOTS, True),
        ({"sampling": {}, "elicitation": {}}, ROOTS, False),
        ({"sampling": {}}, SAMPLE, True),
        ({"sampling": {}}, with_params(SAMPLE, tools=[]), False),
        ({"sampling": {}}, with_params(SAMPLE, toolChoice={"mode": "auto"}), False),
        ({"sampling": {"tools": {}}}, with_params(SAMPLE, tools=[]), True),
        ({"roots": {}}, SAMPLE, False),
        ({"elicitation": {}}, FORM, True),
        ({"elicitation": {}}, with_params(FORM, mode="form"), True),
        ({"elicitation": {}}, URL, False),
        ({"elicitation": {"url": {}}}, URL, True),
        ({"elicitation": {"url": {}}}, FORM, False),
        ({"elicitation": {"form": {}}}, URL, False),
        ({}, FORM, False),
    ],
)
def test_only_what_was_declared_reaches_the_application(
    capabilities: JSONObject, question: JSONObject, allowed: bool
) -> None:
    """An application that cannot open a browser must not be asked to (MRTR-008)."""
    client = modern_client(capabilities=capabilities)
    client.send_request("tools/call", CALL)
    events = receive(client, input_required(2, {"a": question}))
    assert broken(events) == ([] if allowed else ["MRTR-008"])
    assert len(of(InputRequired, events)) == allowed
    assert len(of(RequestFailed, events)) == (not allowed)


def test_one_bad_question_among_good_ones_spoils_the_answer() -> None:
    """The retry must answer all questions, so one invalid question makes the result invalid
    (MRTR-019)."""
    client = modern_client()
    client.send_request("tools/call", CALL)
    questions = {"a": ROOTS, "b": {"method": "roots/delete"}, "c": FORM}
    events = receive(client, input_required(2, questions, "s"))
    assert broken(events) == ["MRTR-006"]
    assert of(InputRequired, events) == []


@pytest.mark.parametrize("member", ["inputRequests", "requestState"])
def test_null_is_neither_a_question_nor_a_state(member: str) -> None:
    """null counts as absent, and without questions and state the result is invalid (c249)."""
    client = modern_client()
    client.send_request("tools/call", CALL)
    answer = input_required(2, ASK_ROOTS, "s")
    answer["result"][member] = None
    events = receive(client, answer)
    assert broken(events) == ["OWN-015"]
    assert of(RequestFailed, events) == []
    client.send_request("tools/call", CALL)
    last = sent(client)[-1]["id"]
    empty = {"resultType": "input_required", "inputRequests": None, "requestState": None}
    events = receive(client, result(last, empty))
    assert broken(events) == ["OWN-015", "OWN-015", "MRTR-004"]
    assert of(RequestFailed, events)[0].reason is FailureReason.INVALID_ANSWER


def test_questions_are_the_callers_own() -> None:
    """An application that removes questions from the event must not change which are open."""
    client = modern_client()
    call = client.send_request("tools/call", CALL)
    event = only(InputRequired, receive(client, input_required(2, {"a": ROOTS, "b": ROOTS})))
    event.questions.clear()
    with pytest.raises(LocalProtocolError, match="'a' is missing"):
        client.provide_input(call, {})


def test_unknown_members_of_the_answer_do_no_harm() -> None:
    """A later revision or an extension may have added them."""
    client = modern_client()
    client.send_request("tools/call", CALL)
    answer = input_required(2, {"r": {**ROOTS, "x": 1}})
    answer["result"] |= {"ttlMs": 5, "content": [], "_meta": {"y": 1}}
    only(InputRequired, receive(client, answer))


# -------------------------------------------------------------------------------------- the state

STATES = ["", "s", "ü\u2028\U0001f600", "\ud800", '"\\\n\x00', "x" * 100_000, "null", "0"]


@pytest.mark.parametrize("state", STATES)
def test_state_goes_back_as_it_came(state: str) -> None:
    """A sealed state is worthless if one character changes (MRTR-022)."""
    client = modern_client()
    call = in_question(client, ASK_ROOTS, state=state)
    client.provide_input(call, GIVE_ROOTS)
    assert sent(client)[0]["params"]["requestState"] == state


def test_requests_that_run_at_the_same_time_know_nothing_of_it() -> None:
    """c253: state and answers belong to one retry (MRTR-026)."""
    client = modern_client()
    other = client.send_request("tools/call", CALL)
    sent(client)
    call = in_question(client, ASK_ROOTS, state="S1")
    client.send_request("tools/call", CALL)
    client.provide_input(call, GIVE_ROOTS)
    client.send_request("tools/call", CALL)
    before, retry, after = sent(client)
    assert retry["params"]["requestState"] == "S1"
    for message in (before, after):
        assert message["params"].keys() == {*CALL, "_meta"}
    assert only(ResponseReceived, receive(client, complete(2, DONE))).request is other


def test_several_may_wait_for_answers_at_once() -> None:
    """Each request must have its own state, whatever the keys of its questions are."""
    client = modern_client()
    first, second = (
        in_question(client, ASK_ROOTS, state="one"),
        in_question(client, ASK_ROOTS, state="two"),
    )
    client.provide_input(second, GIVE_ROOTS)
    client.provide_input(first, GIVE_ROOTS)
    assert [message["params"]["requestState"] for message in sent(client)] == ["two", "one"]


def test_copy_of_a_connection_goes_on_by_itself() -> None:
    """All state is data, so a copy must go on like the original."""
    client = modern_client()
    call = in_question(client, ASK_ROOTS, state="s")
    twin, its_call = deepcopy((client, call))
    for connection, handle in ((client, call), (twin, its_call)):
        connection.provide_input(handle, GIVE_ROOTS)
        assert sent(connection)[0]["params"]["requestState"] == "s"
