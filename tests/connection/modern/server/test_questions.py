"""`require_input` in 2026-07-28 sends the questions as the result of the request."""

import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from sansmcp import (
    ClientConnection,
    Config,
    IncomingRequest,
    JSONObject,
    LocalProtocolError,
    OutgoingRequest,
    ServerConnection,
)
from tests.support.modern import (
    CAPABILITIES,
    FORM,
    MODERN,
    ROOTS,
    SAMPLE,
    SERVED_BY,
    VERSION,
    complete,
    envelope,
    input_required,
    modern,
    modern_client,
    modern_server,
    requested,
)
from tests.support.wire import broken, drain, note, receive, refusals, result, sent

URL: JSONObject = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Log in", "url": "https://example.com"},
}
TOOLS: JSONObject = {
    "method": "sampling/createMessage",
    "params": {"messages": [], "maxTokens": 1, "tools": []},
}
ASKING: list[tuple[str, JSONObject, JSONObject]] = [
    ("tools/call", {"name": "t"}, {"content": []}),
    ("prompts/get", {"name": "p"}, {"messages": []}),
    ("resources/read", {"uri": "file:///a"}, {"contents": []}),
]


def a_call(
    server: ServerConnection, capabilities: JSONObject | None = None, **params: object
) -> IncomingRequest:
    return requested(
        server, modern(1, "tools/call", {"name": "t", **params}, envelope(capabilities))
    )


def asking(id: object, **members: object) -> JSONObject:
    """The response of a server from `new_server` with questions."""
    return result(id, {"resultType": "input_required", **members, "_meta": SERVED_BY})


# ------------------------------------------------------------------------------------ a round


@pytest.mark.parametrize(("method", "params", "value"), ASKING)
def test_three_methods_may_be_answered_with_questions(
    method: str, params: JSONObject, value: JSONObject
) -> None:
    """The next round must be a new request with the same params and the answers."""
    server = modern_server()
    first = requested(server, modern(1, method, params))
    assert first.input_responses == {}
    assert server.read_state(first) is None
    questions = {"name": FORM, "": ROOTS, "s": SAMPLE}
    assert server.require_input(first, questions, state="round 1")
    assert not first.open
    assert server.open_requests == ()
    assert sent(server) == [asking(1, inputRequests=questions, requestState="round 1")]

    answers: JSONObject = {"name": {"action": "decline"}, "": {"roots": []}, "s": {}}
    retry = modern(2, method, {**params, "inputResponses": answers, "requestState": "round 1"})
    second = requested(server, retry)
    assert second is not first
    assert second.input_responses == answers
    assert server.read_state(second) == "round 1"
    assert server.send_result(second, value)
    (answer,) = sent(server)
    assert answer["result"]["resultType"] == "complete"
    with pytest.raises(LocalProtocolError, match="OWN-026"):
        server.require_input(first, questions)


def test_questions_may_go_without_state_and_state_without_questions() -> None:
    """A state alone makes the client retry, for example for work in several rounds."""
    server = modern_server()
    assert server.require_input(a_call(server), {"r": ROOTS})
    assert server.require_input(a_call(server), state="")
    assert sent(server) == [asking(1, inputRequests={"r": ROOTS}), asking(1, requestState="")]
    empty: dict[str, JSONObject] = {}
    for nothing in (None, empty):
        request = a_call(server)
        with pytest.raises(LocalProtocolError, match="MRTR-004"):
            server.require_input(request, nothing)
        assert request.open
        server.send_error(request, -32603, "no")


def test_a_server_may_ask_as_often_as_it_needs() -> None:
    """In this era the client limits the rounds, since the server keeps no count."""
    server = modern_server(config=Config(max_input_rounds=1))
    for _ in range(3):
        assert server.require_input(a_call(server), {"r": ROOTS})
    assert len(sent(server)) == 3


def test_questions_are_not_cached() -> None:
    """CACHE-004: a cached result with questions would let another client answer them."""
    server = modern_server(config=Config(cache_ttl_ms=5, cache_scope="public"))
    request = requested(server, modern(1, "resources/read", {"uri": "file:///a"}))
    assert server.require_input(request, {"r": ROOTS})
    assert sent(server) == [asking(1, inputRequests={"r": ROOTS})]


def test_nothing_of_the_questions_is_kept() -> None:
    """The questions belong to the caller, like all arguments."""
    server = modern_server()
    questions: dict[str, JSONObject] = {"a": {"method": "roots/list"}}
    assert server.require_input(a_call(server), questions)
    questions["a"]["method"] = "changed"
    assert sent(server) == [asking(1, inputRequests={"a": ROOTS})]


@pytest.mark.parametrize("send_info", [True, False])
def test_meta_goes_along(send_info: bool) -> None:
    """`meta=` must be sent, as with every verb."""
    server = modern_server(config=Config(send_info=send_info))
    assert server.require_input(a_call(server), {"r": ROOTS}, meta={"a": 1})
    (answer,) = sent(server)
    assert answer["result"]["_meta"] == {**(SERVED_BY if send_info else {}), "a": 1}
    request = a_call(server)
    with pytest.raises(LocalProtocolError, match="OWN-014"):
        server.require_input(request, {"r": ROOTS}, meta=[1])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # untyped callers
    with pytest.raises(LocalProtocolError, match="OWN-024"):
        server.require_input(request, {"r": ROOTS}, meta={"a": object()})
    assert request.open


@pytest.mark.parametrize("questions", [["a"], "a", 5])
def test_questions_are_a_mapping(questions: Any) -> None:
    """Untyped callers must get the library's own exception."""
    server = modern_server()
    request = a_call(server)
    with pytest.raises(LocalProtocolError, match="OWN-014"):
        server.require_input(request, questions)
    assert request.open


def test_the_answer_wakes_who_writes() -> None:
    """Without `wake`, output would stay until the next input."""
    woken: list[int] = []
    server = ServerConnection(
        info={"name": "s", "version": "1"},
        capabilities={"tools": {}},
        revisions=(MODERN,),
        wake=lambda: woken.append(1),
    )
    request = a_call(server)
    woken.clear()
    assert server.require_input(request, {"r": ROOTS}, now=1.0)
    assert woken == [1]
    assert len(sent(server)) == 1


def test_a_lost_race_is_no_fault() -> None:
    """The client may have cancelled, which must not raise."""
    server = modern_server()
    request = a_call(server)
    receive(server, note("notifications/cancelled", {"requestId": 1}))
    assert server.require_input(request, {"r": ROOTS}) is False
    assert server.require_input(request, {"bad": {}}) is False
    assert sent(server) == []


def test_a_handle_belongs_to_its_connection() -> None:
    """Ids are equal on every connection, so a foreign handle must raise."""
    one, two = modern_server(), modern_server()
    request, same_id = a_call(one), a_call(two)
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        two.require_input(request, {"r": ROOTS})
    assert request.open
    assert same_id.open


# ----------------------------------------------------------------------- what may not be asked


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/list", {}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}},
        ),
    ],
)
def test_other_methods_may_not_ask(method: str, params: JSONObject) -> None:
    """A client could not continue after questions about another method."""
    server = modern_server()
    request = requested(server, modern(1, method, params))
    with pytest.raises(LocalProtocolError, match="MRTR-003"):
        server.require_input(request, {"r": ROOTS})
    assert request.open


def test_methods_that_nobody_defines_may_not_ask() -> None:
    """The library does not know the results of extension methods."""
    server = modern_server(capabilities={}, config=Config(unknown_methods="deliver"))
    for method in ("x/unknown", "tools/call"):
        request = requested(server, modern(method, method, {"name": "t"}))
        with pytest.raises(LocalProtocolError, match="MRTR-003"):
            server.require_input(request, {"r": ROOTS})


BAD_QUESTIONS: list[tuple[Any, str]] = [
    ({"a": "roots/list"}, "MRTR-007"),
    ({"a": {}}, "MRTR-007"),
    ({"a": {"method": 5}}, "MRTR-007"),
    ({"a": {**ROOTS, "id": 1}}, "MRTR-007"),
    ({"a": {**ROOTS, "jsonrpc": "2.0"}}, "MRTR-007"),
    ({"a": {**ROOTS, "params": []}}, "MRTR-007"),
    ({"a": {**ROOTS, "params": {"_meta": {VERSION: MODERN}}}}, "MRTR-007"),
    ({"a": {**ROOTS, "params": {"_meta": {CAPABILITIES: {}}}}}, "MRTR-007"),
    ({"a": {"method": "tools/list"}}, "MRTR-006"),
    ({"a": {"method": "x/unknown"}}, "MRTR-006"),
    ({"a": {"method": "elicitation/create"}}, "OWN-014"),
    ({"a": {"method": "elicitation/create", "params": {"mode": "voice"}}}, "ELIC-005"),
    ({"a": {"method": "elicitation/create", "params": {"mode": []}}}, "ELIC-005"),
    ({"a": {"method": "elicitation/create", "params": {"mode": "url"}}}, "OWN-014"),
    ({"a": {"method": "sampling/createMessage", "params": {"messages": []}}}, "OWN-014"),
    ({5: ROOTS}, "MRTR-005"),
    ({"ok": ROOTS, "a": {}}, "MRTR-007"),
]


@pytest.mark.parametrize(("questions", "rule"), BAD_QUESTIONS)
def test_what_is_no_question_raises(questions: Any, rule: str) -> None:
    """The request must stay open, so that the handler can still answer it."""
    server = modern_server()
    request = a_call(server)
    with pytest.raises(LocalProtocolError, match=rule):
        server.require_input(request, questions, state="s")
    assert request.open
    assert sent(server) == []
    assert server.send_error(request, -32603, "no")


def test_shapes_are_not_checked_where_that_is_switched_off() -> None:
    """A gateway must be able to pass on questions unchecked."""
    server = modern_server(config=Config(check="none"))
    form = {"method": "elicitation/create", "params": {**FORM["params"], "more": 1}}
    assert server.require_input(a_call(server), {"f": form})
    assert sent(server) == [asking(1, inputRequests={"f": form})]


@pytest.mark.parametrize(
    ("question", "needed", "insufficient"),
    [
        (ROOTS, {"roots": {}}, {"sampling": {}, "elicitation": {}}),
        (SAMPLE, {"sampling": {}}, {"roots": {}}),
        (TOOLS, {"sampling": {"tools": {}}}, {"sampling": {}}),
        (FORM, {"elicitation": {}}, {"roots": {}}),
        (FORM, {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}),
        (URL, {"elicitation": {"url": {}}}, {"elicitation": {}}),
        (URL, {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
    ],
)
def test_only_what_the_request_declares_may_be_asked(
    question: JSONObject, needed: JSONObject, insufficient: JSONObject
) -> None:
    """Modes and tools need capabilities of this request; an earlier one declares nothing."""
    server = modern_server()
    assert server.require_input(a_call(server, needed), {"q": question})
    assert sent(server) == [asking(1, inputRequests={"q": question})]
    for capabilities in (insufficient, {}):
        request = a_call(server, capabilities)
        with pytest.raises(LocalProtocolError, match="MRTR-008"):
            server.require_input(request, {"q": question})
        assert request.open
        server.send_error(request, -32021, "no", {"requiredCapabilities": needed})
        assert refusals(sent(server)) == [(1, -32021)]


@pytest.mark.parametrize("state", [5, b"s", ["s"]])
def test_a_state_is_a_string(state: Any) -> None:
    """A client can send back only a string."""
    server = modern_server()
    request = a_call(server)
    with pytest.raises(LocalProtocolError, match="OWN-014"):
        server.require_input(request, state=state)
    assert request.open


def test_a_timeout_is_checked_in_both_eras() -> None:
    """One handler serves both eras, so an invalid timeout must raise in both."""
    server = modern_server()
    request = a_call(server)
    with pytest.raises(LocalProtocolError, match="OWN-023"):
        server.require_input(request, {"r": ROOTS}, timeout=0)
    assert request.open
    assert server.require_input(request, {"r": ROOTS}, timeout=5, now=1)
    assert server.next_timeout() is None


# --------------------------------------------------------------------------- what comes back


@pytest.mark.parametrize(
    "params",
    [
        {"inputResponses": []},
        {"inputResponses": {"a": 5}},
        {"inputResponses": {"a": {}, "b": None}},
        {"requestState": 5},
        {"requestState": {"a": 1}},
    ],
)
@pytest.mark.parametrize(("method", "base", "_value"), ASKING)
def test_malformed_answers_are_refused(
    method: str, base: JSONObject, _value: JSONObject, params: JSONObject
) -> None:
    """A handler must not get answers of another type."""
    server = modern_server()
    assert broken(receive(server, modern(1, method, {**base, **params}))) == ["MRTR-027"]
    assert refusals(sent(server)) == [(1, -32602)]


def test_unexpected_answers_reach_the_handler_which_ignores_them() -> None:
    """A stateless server does not know which questions were asked."""
    server = modern_server()
    request = a_call(server, inputResponses={"never asked": {}}, requestState="")
    assert request.input_responses == {"never asked": {}}
    assert server.read_state(request) == ""
    assert server.send_result(request, {"content": []})
    assert sent(server) == [complete(1, {"content": []})]


def test_other_methods_take_such_members_for_any_other() -> None:
    """The members have a meaning for three methods only."""
    server = modern_server()
    request = requested(server, modern(1, "tools/list", {"inputResponses": 5, "requestState": 5}))
    assert server.send_result(request, {"tools": []})


# ------------------------------------------------------------------------- what is missing


def test_what_the_client_would_have_to_declare_is_named_whole() -> None:
    """A client that declares half of the capability would be refused again."""
    server = modern_server()
    request = a_call(server, {"elicitation": {"form": {}}})
    questions = {"t": TOOLS, "f": FORM, "u": URL, "r": ROOTS}
    with pytest.raises(LocalProtocolError, match="sampling") as raised:
        server.require_input(request, questions)
    assert raised.value.rule == "MRTR-008"
    needed: JSONObject = {"sampling": {"tools": {}}, "elicitation": {"url": {}}, "roots": {}}
    assert raised.value.needed == needed
    assert pickle.loads(pickle.dumps(raised.value)).needed == needed
    with pytest.raises(LocalProtocolError) as raised:
        server.require_input(request, {**questions, "x": {"method": "ping"}})
    assert (raised.value.rule, raised.value.needed) == ("MRTR-006", None)


# ------------------------------------------------------------------- what the client remembers

LARGE = 100_000


def _cancelled(client: ClientConnection, call: OutgoingRequest) -> None:
    client.cancel(call)


def _answered(client: ClientConnection, call: OutgoingRequest) -> None:
    receive(client, result(call.id, {"content": []}))


def _provided(client: ClientConnection, call: OutgoingRequest) -> None:
    receive(client, input_required(call.id, {"r": ROOTS}))
    _answered(client, client.provide_input(call, {"r": {"roots": []}}))


@pytest.mark.unjudged("the judge writes down what was sent, which is what is measured")
@pytest.mark.parametrize("ending", [_cancelled, _answered, _provided])
def test_params_are_not_kept_when_a_request_is_over(
    ending: Callable[[ClientConnection, OutgoingRequest], None],
) -> None:
    """A thousand cancelled requests are remembered, and an application may keep its handles."""
    client = modern_client()
    tracemalloc.start()
    try:
        calls: list[OutgoingRequest] = []
        for _ in range(20):
            params = {"name": "t", "arguments": {"x": "y" * LARGE}}
            calls.append(client.send_request("tools/call", params))
            ending(client, calls[-1])
            client.data_to_send()
            drain(client)
            del params
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not any(call.open for call in calls)
    assert held < 5 * LARGE
