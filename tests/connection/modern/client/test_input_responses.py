"""The responses of a client to questions of a server, and when they are refused.

Rules: MRTR-017 to MRTR-020, MRTR-031.
"""

from typing import Any

import pytest

from sansmcp import (
    JSONObject,
    LocalProtocolError,
    RequestFailed,
)
from tests.support.modern import (
    FORM,
    ROOTS,
    SAMPLE,
    URL,
    complete,
    in_question,
    modern_client,
)
from tests.support.wire import drain, of, receive, sent

CALL: JSONObject = {"name": "t", "arguments": {"a": 1}}
ASK_ROOTS: JSONObject = {"r": ROOTS}
GIVE_ROOTS: JSONObject = {"r": {"roots": []}}
DONE: JSONObject = {"content": []}


# ------------------------------------------------------------------------------------- the answers


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (FORM, {"action": "decline"}),
        (FORM, {"action": "accept", "content": {"name": "x"}, "_meta": {"a": 1}}),
        (URL, {"action": "accept"}),
        (ROOTS, {"roots": [{"uri": "file:///a"}]}),
        (SAMPLE, {"role": "assistant", "model": "m", "content": []}),
    ],
)
def test_answer_is_the_bare_result(question: JSONObject, answer: JSONObject) -> None:
    """An input response is no message of its own (MRTR-020)."""
    client = modern_client()
    client.provide_input(in_question(client, {"a": question}), {"a": answer})
    assert sent(client)[0]["params"]["inputResponses"] == {"a": answer}


@pytest.mark.parametrize(
    ("question", "answer", "rule"),
    [
        (FORM, {"content": {}}, "MRTR-020"),
        (FORM, {"action": True}, "MRTR-020"),
        (ROOTS, {}, "MRTR-020"),
        (ROOTS, {"roots": {}}, "MRTR-020"),
        (SAMPLE, {"role": "assistant", "content": []}, "MRTR-020"),
        (ROOTS, [], "MRTR-020"),
        (ROOTS, None, "MRTR-019"),
        (ROOTS, {"roots": [], "resultType": "complete"}, "MRTR-020"),
        (ROOTS, {"jsonrpc": "2.0", "id": 1, "roots": []}, "MRTR-020"),
        (ROOTS, {"jsonrpc": "2.0", "id": 1, "result": {"roots": []}}, "MRTR-020"),
        (ROOTS, {"roots": [float("inf")]}, "OWN-024"),
    ],
)
def test_answer_that_does_not_fit_is_not_sent(question: JSONObject, answer: Any, rule: str) -> None:
    """The server could only ask the same question again."""
    client = modern_client()
    call = in_question(client, {"a": question}, "s")
    with pytest.raises(LocalProtocolError, match=rule):
        client.provide_input(call, {"a": answer}, progress=True)
    assert sent(client) == []
    assert client.pending_requests == ()


@pytest.mark.parametrize("responses", [[], ["r"], "r", 5, None])
def test_answers_are_a_mapping(responses: Any) -> None:
    """The mistake must raise the same kind of error as others."""
    client = modern_client()
    call = in_question(client, ASK_ROOTS)
    with pytest.raises(LocalProtocolError):
        client.provide_input(call, responses)
    client.provide_input(call, GIVE_ROOTS)
    assert len(sent(client)) == 1


def test_answers_are_neither_changed_nor_kept() -> None:
    """The responses belong to the caller."""
    client = modern_client()
    responses: JSONObject = {"r": {"roots": [{"uri": "file:///a"}]}}
    client.provide_input(in_question(client, ASK_ROOTS), responses)
    assert responses == {"r": {"roots": [{"uri": "file:///a"}]}}
    responses["r"]["roots"].clear()
    assert sent(client)[0]["params"]["inputResponses"] == {"r": {"roots": [{"uri": "file:///a"}]}}


# ---------------------------------------------------------------------------- when nothing is asked


def test_nothing_is_given_where_nothing_was_asked() -> None:
    """A request that is open, or has ended, has no questions."""
    client = modern_client()
    call = client.send_request("tools/call", CALL)
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        client.provide_input(call, GIVE_ROOTS)
    receive(client, complete(2, DONE))
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        client.provide_input(call, GIVE_ROOTS)


def test_answers_are_given_once() -> None:
    """A second retry would call the tool twice."""
    client = modern_client()
    call = in_question(client, ASK_ROOTS)
    again = client.provide_input(call, GIVE_ROOTS)
    sent(client)
    for handle in (call, again):
        with pytest.raises(LocalProtocolError, match="OWN-022"):
            client.provide_input(handle, GIVE_ROOTS)
    assert sent(client) == []


def test_answers_of_another_connection_are_refused() -> None:
    """The other server has asked nothing, and must not get the answers (OWN-022)."""
    call = in_question(modern_client(), ASK_ROOTS)
    stranger = modern_client()
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        stranger.provide_input(call, GIVE_ROOTS)
    assert sent(stranger) == []


@pytest.mark.parametrize("how", ["close", "receive_eof", "send_failed"])
def test_answers_cannot_be_given_any_more(how: str) -> None:
    """The connection has ended, and the request had its ending before."""
    client = modern_client()
    call = in_question(client, ASK_ROOTS)
    getattr(client, how)()
    with pytest.raises(LocalProtocolError, match="OWN-021"):
        client.provide_input(call, GIVE_ROOTS)
    assert of(RequestFailed, drain(client)) == []


def test_a_client_may_let_it_be() -> None:
    """No request is open meanwhile, so no timeout may run and nothing is to be cancelled
    (MRTR-031)."""
    client = modern_client()
    call = in_question(client, ASK_ROOTS, timeout=5, max_timeout=9, now=0)
    assert client.next_timeout() is None
    assert client.cancel(call) is False
    assert sent(client) == []
    client.close()
    assert of(RequestFailed, drain(client)) == []
