"""The messages of a client in its session: notifications, responses, invalid ones, batches."""

from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    Config,
    FailureReason,
    JSONObject,
    MessageIgnored,
    NotificationReceived,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
)
from tests.support.http.server_endpoint import (
    LEGACY,
    STREAMABLE,
    answer,
    asked,
    broken,
    client,
    connect,
    drain,
    more,
    new_endpoint,
    of,
    open_stream,
    post,
    take,
    tool_call,
)
from tests.support.modern import MODERN
from tests.support.wire import call, initialize, note, result

REVISIONS = pytest.mark.parametrize("revision", STREAMABLE)


# ------------------------------------------------------------------------------------- messages


@REVISIONS
def test_notifications_and_answers_are_accepted_without_a_body(revision: str) -> None:
    """HTTP-014: the response must be 202 without a body."""
    one = client(revision)
    _, running = one.asked({**tool_call(1), "params": {"name": "t"}})
    question = one.endpoint.send_request("roots/list", request=running)
    for message in (note("notifications/roots/list_changed"), result(question.id, {"roots": []})):
        response = answer(one.post(message))
        assert (response.status, response.body, response.headers) == (
            202,
            b"",
            {"content-length": "0"},
        )

    told, answered = drain(one.endpoint)
    assert isinstance(told, NotificationReceived)
    assert told.peer is one.session.peer
    assert answered == ResponseReceived(request=question, result={"roots": []})


@REVISIONS
def test_late_and_unknown_answers_are_accepted(revision: str) -> None:
    """A response that has lost a race is no error of the client."""
    one = client(revision)

    assert answer(one.post(result(99, {}))).status == 202
    assert isinstance(drain(one.endpoint)[0], MessageIgnored)


@pytest.mark.parametrize(
    "message",
    [
        note("notifications/roots/list_changed", 7),
        {"method": "notifications/roots/list_changed"},
        note("notifications/tools/list_changed"),
        {"jsonrpc": "2.0", "result": {}},
    ],
)
@REVISIONS
def test_what_cannot_be_accepted_gets_400(message: JSONObject, revision: str) -> None:
    """HTTP-016: the error must have no id (HTTP-017)."""
    one = client(revision)
    response = answer(one.post(message))

    assert response.status == 400
    assert "id" not in response.json
    assert len(broken(one.endpoint)) == 1


def test_an_invalid_answer_ends_the_request_and_gets_400() -> None:
    """Both sides must learn that the response is invalid."""
    one = client()
    _, running = one.asked(tool_call(1))
    question = one.endpoint.send_request("roots/list", request=running)
    response = answer(one.post({"jsonrpc": "2.0", "id": question.id, "result": 7}))

    assert response.status == 400
    (failed,) = of(RequestFailed, drain(one.endpoint))
    assert failed.reason is FailureReason.INVALID_ANSWER


@pytest.mark.parametrize(
    ("method", "params", "code", "status"),
    [
        ("unknown/method", {}, -32601, 200),
        ("prompts/list", {}, -32601, 200),
        ("tools/call", {}, -32602, 400),
        (
            "initialize",
            {
                "protocolVersion": LEGACY,
                "capabilities": {},
                "clientInfo": {"name": "c", "version": "1"},
            },
            -32600,
            400,
        ),
        ("server/discover", {}, -32601, 200),
    ],
)
def test_refusals_have_a_status(method: str, params: JSONObject, code: int, status: int) -> None:
    """404 means the end of the session, so it must not answer an unknown method."""
    one = connect(new_endpoint(capabilities={"tools": {}}, revisions=LEGACY_REVISIONS))
    response = answer(one.post(call(9, method, params)))

    assert (response.status, response.json["id"]) == (status, 9)
    assert response.json["error"]["code"] == code


@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32000, -32002])
def test_errors_of_the_application_are_200(code: int) -> None:
    """An error of the application is a normal JSON-RPC response."""
    one = client()
    exchange, handle = one.asked(tool_call(5))
    one.endpoint.send_error(handle, code, "no")

    response = answer(exchange)
    assert (response.status, response.json["error"]["code"]) == (200, code)


def test_too_many_requests_get_503() -> None:
    """The limit on open requests holds for each session."""
    one = connect(new_endpoint(config=Config(max_requests=1)))
    one.post(tool_call(1))

    assert answer(one.post(tool_call(2))).status == 503
    assert answer(one.post(call(3, "ping"))).status == 200
    other = connect(one.endpoint)
    assert take(other.post(tool_call(1))) is None


@REVISIONS
def test_an_id_in_flight_is_refused(revision: str) -> None:
    """The error must have no id, or the client would take it for the response to the first
    request."""
    one = client(revision)
    exchange, handle = one.asked(tool_call(1))
    response = answer(one.post(tool_call(1)))
    assert (response.status, response.json["error"]["code"]) == (400, -32600)
    assert "id" not in response.json

    one.endpoint.send_result(handle, {"content": []})
    assert answer(exchange).json == result(1, {"content": []})


# -------------------------------------------------------------------------------------- batches

BATCHED = "2025-03-26"


def test_a_batch_is_answered_with_a_batch() -> None:
    """BATCH-007: the responses go out when the last request has ended."""
    one = client(BATCHED)
    exchange = one.post(
        [tool_call(1), note("notifications/roots/list_changed"), call(2, "ping"), tool_call(3)]
    )
    first, third = (event.request for event in of(RequestReceived, drain(one.endpoint)))
    assert take(exchange) is None
    one.endpoint.send_result(third, {"content": []})
    one.endpoint.send_error(first, -32000, "no")

    response = answer(exchange)
    assert response.status == 200
    assert [message["id"] for message in response.json] == [2, 3, 1]


def test_a_batch_without_requests_is_accepted() -> None:
    """BATCH-007: such a batch has no response."""
    one = client(BATCHED)
    changed = note("notifications/roots/list_changed")
    for batch in ([changed, changed], [result(9, {}), result(10, {})]):
        response = answer(one.post(batch))
        assert (response.status, response.body) == (202, b"")
    drain(one.endpoint)

    assert answer(one.post([changed, result(9, {})])).status == 400
    assert broken(one.endpoint) == ["BATCH-004"]


def test_a_batch_is_answered_at_once_where_the_core_can() -> None:
    """If the core answers all requests, the response must not wait."""
    one = client(BATCHED)

    assert answer(one.post([call(1, "ping"), call(2, "ping")])).json == [
        result(1, {}),
        result(2, {}),
    ]


def test_a_batch_with_progress_is_a_stream() -> None:
    """The stream brings progress first, and ends with the array of responses."""
    one = client(BATCHED)
    exchange = one.post([{**tool_call(1), "params": {"name": "t", "_meta": {"progressToken": 1}}}])
    handle = asked(one.endpoint)
    one.endpoint.send_progress(handle, 1)
    one.endpoint.send_result(handle, {"content": []})

    assert answer(exchange).messages[1] == [result(1, {"content": []})]


def test_what_is_cancelled_is_left_out_of_a_batch() -> None:
    """If all requests were cancelled, the stream must end without a response."""
    one = client(BATCHED)
    exchange = one.post([tool_call(1), tool_call(2)])
    second = of(RequestReceived, drain(one.endpoint))[1].request
    one.post(note("notifications/cancelled", {"requestId": 1}))
    one.endpoint.send_result(second, {"content": []})
    assert answer(exchange).json == [result(2, {"content": []})]

    exchange = one.post([tool_call(3)])
    one.post(note("notifications/cancelled", {"requestId": 3}))
    response = answer(exchange)
    assert (response.is_stream, response.body, response.ended) == (True, b"", True)


def test_a_batch_may_cancel_what_is_in_it() -> None:
    """A batch whose only request it cancels must have no response."""
    one = client(BATCHED)
    response = answer(one.post([tool_call(1), note("notifications/cancelled", {"requestId": 1})]))

    assert (response.status, response.body) == (202, b"")


@pytest.mark.parametrize(
    ("batch", "status"),
    [
        ([7], 400),
        ([tool_call(1), tool_call(1)], None),
        ([{"jsonrpc": "2.0", "id": 5}], 200),
        ([initialize(1, BATCHED)], 200),
        ([{"jsonrpc": "2.0", "id": True, "method": "x"}], 400),
    ],
)
def test_bad_messages_in_a_batch(batch: list[Any], status: int | None) -> None:
    """Each invalid message with a readable id must have its error in the response."""
    one = client(BATCHED)
    response = take(one.post(batch))

    assert (None if response is None else response.status) == status
    assert broken(one.endpoint)
    if status == 200:
        assert response is not None
        assert response.json[0]["error"]["code"] == -32600


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_other_revisions_have_no_batches(revision: str) -> None:
    """BATCH-008: a batch must be refused in other revisions."""
    one = client(revision)
    response = answer(one.post([call(1, "ping")]))

    assert (response.status, response.json["error"]["code"]) == (400, -32600)
    assert broken(one.endpoint) == ["BATCH-008"]


def test_an_initialize_that_is_no_request_is_told_so() -> None:
    """`initialize` as a notification, or at a modern revision, must open no session."""
    endpoint = new_endpoint()
    response = answer(post(endpoint, note("initialize"), {"mcp-protocol-version": MODERN}))

    assert response.status == 400
    assert "handshake" in response.json["error"]["message"]
    assert endpoint.sessions == ()


TASKS: JSONObject = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}


def task_call(id: int = 1) -> JSONObject:
    """A `tools/call` for a task, with a progress token."""
    meta = {"progressToken": id}
    return call(id, "tools/call", {"name": "t", "arguments": {}, "task": {}, "_meta": meta})


def task(name: str) -> JSONObject:
    """The result that names the task."""
    time = "2026-01-01T00:00:00Z"
    about = {"createdAt": time, "lastUpdatedAt": time, "ttl": None}
    return {"task": {"taskId": name, "status": "working", **about}}


def test_progress_of_a_task_goes_on_a_get_stream() -> None:
    """PROG-011: the stream of the request has ended with its response."""
    one = client(capabilities=TASKS)
    listening, before = open_stream(one)
    exchange = one.post(task_call(), context="here")
    handle = asked(one.endpoint)
    one.endpoint.send_result(handle, task("t1"))
    assert answer(exchange).json["id"] == 1
    assert one.endpoint.send_progress(handle, 1)

    (said,) = more(listening, before).messages
    related = {"io.modelcontextprotocol/related-task": {"taskId": "t1"}}
    assert said["params"] == {"progressToken": 1, "progress": 1, "_meta": related}
    assert handle.context == "here"


def test_without_sessions_no_task_is_kept() -> None:
    """Without sessions, tasks of two clients may have one name."""
    endpoint = new_endpoint(capabilities=TASKS, stateless=True)
    exchange = post(endpoint, task_call(), {"mcp-protocol-version": LEGACY})
    handle = asked(endpoint)
    endpoint.send_result(handle, task("t1"))

    assert answer(exchange).json["id"] == 1
    assert not endpoint.send_progress(handle, 1)
    assert drain(endpoint) == []
