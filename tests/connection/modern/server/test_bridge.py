"""`require_input` after a handshake sends the questions as requests of the server."""

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    Config,
    Event,
    IncomingRequest,
    JSONObject,
    LocalProtocolError,
    RequestReceived,
    ServerConnection,
)
from tests.support.modern import (
    BOTH,
    FORM,
    ROOTS,
    SAMPLE,
    modern,
    modern_server,
    questioned,
    requested,
)
from tests.support.wire import (
    INITIALIZED,
    SAMPLED,
    call,
    drain,
    initialize,
    note,
    of,
    only,
    ready_server,
    receive,
    result,
    sent,
)

every_legacy_revision = pytest.mark.parametrize("revision", LEGACY_REVISIONS)
NEWEST = LEGACY_REVISIONS[-1]
CALL: JSONObject = {"name": "t", "arguments": {"n": 1}}


def a_call(server: ServerConnection, id: object = 1, **params: object) -> IncomingRequest:
    return requested(server, call(id, "tools/call", {**CALL, **params}))


def test_a_url_is_not_given_to_clients_that_know_forms_only() -> None:
    """Such a client would show an empty form, and send its answer as that to the question
    (ELIC-007)."""
    capabilities: JSONObject = {"elicitation": {"form": {}, "url": {}}}
    server = ready_server("2025-06-18", client=capabilities)
    request = a_call(server)
    params = {**FORM["params"], "mode": "url", "url": "https://example.com", "elicitationId": "e"}
    with pytest.raises(LocalProtocolError, match="ELIC-005"):
        server.require_input(request, {"u": {"method": "elicitation/create", "params": params}})
    with pytest.raises(LocalProtocolError, match="ELIC-005"):
        server.send_request("elicitation/create", params)
    assert sent(server) == []
    assert server.require_input(request, {"f": FORM})


@every_legacy_revision
def test_questions_go_out_as_requests_and_come_back_as_a_new_round(revision: str) -> None:
    """One handler must serve clients of every revision that has the methods."""
    server = ready_server(revision)
    method, params = "prompts/get", {"name": "p", "_meta": {"progressToken": "t"}}
    first = requested(server, call(1, method, params))
    first.data = "mine"
    questions = {"r": ROOTS, "s": SAMPLE}
    answers: JSONObject = {"r": {"roots": []}, "s": SAMPLED}
    if revision >= "2025-06-18":
        questions["f"] = FORM
        answers["f"] = {"action": "decline"}
    assert server.require_input(first, questions, state="round 1")
    assert not first.open
    assert server.open_requests == ()
    assert server.pending_requests == ()
    asked = sent(server)
    assert [(message["method"], message.get("params")) for message in asked] == [
        (question["method"], question.get("params")) for question in questions.values()
    ]
    events: list[Event] = []
    for message, answer in list(zip(asked, answers.values(), strict=True))[::-1]:
        assert events == []
        events = receive(server, result(message["id"], answer))
    second = only(RequestReceived, events).request
    assert second is not first
    assert (second.id, second.method, second.data) == (1, method, "mine")
    assert second.input_responses == answers
    assert server.read_state(second) == "round 1"
    assert (second.revision, second.peer) == (revision, server.peer)
    rest = {name: second.params[name] for name in params}
    assert rest == params
    assert server.send_progress(first, 1) is False
    assert server.send_progress(second, 1)
    assert server.send_result(second, {"messages": []})
    assert [message.get("id") for message in sent(server)] == [None, 1]
    with pytest.raises(LocalProtocolError, match="OWN-026"):
        server.send_result(first, {"messages": []})


@every_legacy_revision
def test_a_state_alone_comes_back_at_once(revision: str) -> None:
    """The state needs no user, so the client retries at once."""
    server = ready_server(revision, config=Config(state_keys=(b"k" * 16,)))
    request = a_call(server)
    assert server.read_state(request) is None
    assert server.require_input(request, state="s", at=1.0)
    second = only(RequestReceived, drain(server)).request
    assert server.read_state(second) == "s"  # it was never out of our hands: no seal to open
    assert second.input_responses == {}
    assert server.require_input(second, {"r": ROOTS})
    (asked,) = sent(server)
    third = only(RequestReceived, receive(server, result(asked["id"], {"roots": []}))).request
    assert server.read_state(third) is None  # it belongs to one round
    assert server.require_input(third, state="t")
    fourth = only(RequestReceived, drain(server)).request
    assert (server.read_state(fourth), fourth.input_responses) == ("t", {})
    assert sent(server) == []


@pytest.mark.parametrize("responses", [{"a": {}}, 5])
def test_a_client_cannot_give_answers_that_nobody_asked_for(responses: object) -> None:
    """Before 2026-07-28 these members mean nothing, and a state in them was never sealed."""
    server = ready_server(NEWEST, config=Config(state_keys=(b"k" * 16,)))
    request = a_call(server, requestState="forged", inputResponses=responses)
    assert server.read_state(request) is None
    assert request.input_responses == {}
    (id,) = questioned(server, request, "a")
    second = only(RequestReceived, receive(server, result(id, {"roots": []}))).request
    assert server.read_state(second) is None
    assert second.input_responses == {"a": {"roots": []}}


def test_questions_to_visit_a_url_get_an_id() -> None:
    """2025-11-25 requires an elicitation id that modern questions lack; a given one must be
    kept."""
    server = ready_server(NEWEST, client={"elicitation": {"url": {}}})
    url = {"mode": "url", "message": "Log in", "url": "https://example.com"}
    given = {**url, "elicitationId": "mine"}
    methods = {"method": "elicitation/create"}
    request = a_call(server)
    questions = {
        "a": {**methods, "params": url},
        "b": {**methods, "params": url},
        "c": {**methods, "params": given},
    }
    with pytest.raises(LocalProtocolError):
        server.require_input(request, {**questions, "d": ROOTS})
    assert server.require_input(request, questions)
    asked = [message["params"] for message in sent(server)]
    ids = [params.pop("elicitationId") for params in asked]
    assert asked == [url] * 3
    assert ids[2] == "mine"
    assert len(set(ids)) == 3
    assert "elicitationId" not in url

    # A call that raised has left no trace.
    twin = ready_server(NEWEST, client={"elicitation": {"url": {}}})
    assert twin.require_input(a_call(twin), questions)
    assert [message["params"]["elicitationId"] for message in sent(twin)] == ids


def test_urls_of_requests_with_like_ids_are_told_apart() -> None:
    """1 and "1" are two requests, so their elicitations must have different ids."""
    server = ready_server(NEWEST, client={"elicitation": {"url": {}}})
    url = {"mode": "url", "message": "Log in", "url": "https://example.com"}
    question = {"a": {"method": "elicitation/create", "params": url}}
    for id in (1, "1"):
        assert server.require_input(a_call(server, id), question)
    one, two = (message["params"]["elicitationId"] for message in sent(server))
    assert one != two


def test_a_batch_waits_for_the_last_round() -> None:
    """The responses of a batch must go out together, and the questions before them."""
    server = ready_server("2025-03-26")
    events = receive(server, [call(1, "tools/call", CALL), call(2, "tools/call", CALL)])
    first, other = (event.request for event in of(RequestReceived, events))
    assert server.send_result(other, {"content": []})
    (id,) = questioned(server, first, "a")
    second = only(RequestReceived, receive(server, result(id, {"roots": []}))).request
    assert sent(server) == []
    assert server.send_result(second, {"content": []})
    (batch,) = sent(server)
    assert [answer["id"] for answer in batch] == [2, 1]


def test_a_batch_goes_on_without_a_cancelled_round() -> None:
    """A cancelled request must be left out of the responses, whether it has asked or not."""
    server = ready_server("2025-03-26")
    events = receive(server, [call(1, "tools/call", CALL), call(2, "tools/call", CALL)])
    first, other = (event.request for event in of(RequestReceived, events))
    assert server.send_result(other, {"content": []})
    (id,) = questioned(server, first, "a")
    receive(server, note("notifications/cancelled", {"requestId": 1}))
    withdrawn, batch = sent(server)
    assert withdrawn["params"]["requestId"] == id
    assert [answer["id"] for answer in batch] == [2]


def test_modern_requests_are_not_bridged_beside_a_handshake() -> None:
    """The era of the request must decide, and not that of the connection."""
    server = modern_server(revisions=BOTH)
    receive(server, initialize(1, NEWEST), INITIALIZED)
    new = requested(server, modern(2, "tools/call", CALL))
    old = a_call(server, 3)
    sent(server)
    assert server.require_input(new, {"r": ROOTS})
    assert server.require_input(old, {"r": ROOTS}, meta={"lost": 1})
    answer, asked = sent(server)
    assert (answer["id"], answer["result"]["resultType"]) == (2, "input_required")
    assert asked["method"] == "roots/list"
    assert "params" not in asked
