"""Tasks over HTTP that outlive what they were made in: sessions, streams and processes."""

from typing import Any

import pytest

from sansmcp import (
    JSONObject,
    ListenerRemoved,
    LocalProtocolError,
    Task,
    TaskCancelled,
    TaskEnd,
    TaskInputReceived,
    TaskRecord,
    TaskToStore,
    TaskWanted,
)
from sansmcp.http import ServerEndpoint
from tests.support.http.server_endpoint import (
    Client,
    answer,
    asked,
    connect,
    drain,
    more,
    new_endpoint,
    of,
    post,
    post_modern,
    take,
)
from tests.support.modern import EVERYTHING, FORM, ROOTS, envelope, modern
from tests.support.tasks import NOTHING, START, WITH_TASKS, Shelf, settings
from tests.support.wire import call, error, result

ANNA: dict[str, Any] = {"principal": "Anna", "principal_key": "anna"}
BERT: dict[str, Any] = {"principal": "Bert", "principal_key": "bert"}


def served(**changed: Any) -> ServerEndpoint:
    """An endpoint of both eras with tasks."""
    return new_endpoint(capabilities={"tools": {}}, tasks=settings(**changed))


def record(**changed: Any) -> TaskRecord:
    """The record of a task of Anna, of 2025-11-25."""
    fields: dict[str, Any] = {
        "id": "t",
        "owner": "2025-11-25 principal anna",
        "method": "tools/call",
        "is_modern": False,
        "created_at": START,
        "updated_at": START,
        "ttl_ms": None,
        "capabilities": b'{"roots":{},"elicitation":{"form":{}}}',
    }
    return TaskRecord(**{**fields, **changed})


def settle(endpoint: ServerEndpoint, shelf: Shelf) -> list[Any]:
    """The events, after the questions to the store were answered."""
    seen: list[Any] = []
    while events := drain(endpoint):
        for event in events:
            if isinstance(event, TaskWanted | TaskToStore):
                shelf.answer(endpoint, event)
            else:
                seen.append(event)
    return seen


def adopted(**changed: Any) -> tuple[ServerEndpoint, Shelf, Task]:
    """An endpoint that has taken over a task of Anna."""
    endpoint, shelf = served(store="ask"), Shelf({"t": record(**changed).to_bytes()})
    return endpoint, shelf, endpoint.adopt_task(record(**changed), at=START, now=0.0)


def in_session(one: Client, **about: Any) -> Task:
    """A task of 2025-11-25, whose answer is taken."""
    exchange = one.post(call(1, "tools/call", {"name": "t", "task": {}}), **about)
    task = one.endpoint.create_task(asked(one.endpoint), at=START, now=0.0)
    assert task is not None
    assert answer(exchange).last["result"]["task"]["taskId"] == task.id
    drain(one.endpoint)
    return task


def wait(one: Client, task: Task, id: int = 9, **about: Any) -> Any:
    """The exchange of a `tasks/result`."""
    return one.post(call(id, "tasks/result", {"taskId": task.id}), **about)


# ------------------------------------------------------------------------------------ 2025-11-25


def test_a_task_that_was_taken_over_asks_where_its_result_is_awaited() -> None:
    """TASK-026, TASK-030: its questions are requests of the session of its principal."""
    endpoint, shelf, task = adopted()
    assert endpoint.require_task_input(task, {"a": ROOTS})
    settle(endpoint, shelf)
    assert task.record.status.text == "input_required"
    one = connect(endpoint, capabilities=EVERYTHING, **ANNA)
    waiting = wait(one, task, **ANNA)
    settle(endpoint, shelf)
    response = answer(waiting)
    question = response.last
    assert (question["method"], response.ended) == ("roots/list", False)
    answer(one.post(result(question["id"], {"roots": []}), **ANNA))
    (given,) = of(TaskInputReceived, settle(endpoint, shelf))
    assert (given.task, given.responses) == (task, {"a": {"roots": []}})
    assert endpoint.require_task_input(task, {"b": FORM})  # the next one needs no waiting
    settle(endpoint, shelf)
    response = more(waiting, response)
    answer(one.post(result(response.last["id"], {"action": "decline"}), **ANNA))
    assert of(TaskInputReceived, settle(endpoint, shelf))
    assert endpoint.complete_task(task, NOTHING)
    settle(endpoint, shelf)
    assert more(waiting, response).last["result"]["content"] == []


def test_nobody_else_is_asked() -> None:
    """TASK-041: neither another principal nor a client that cannot answer gets the question."""
    endpoint, shelf, task = adopted()
    assert endpoint.require_task_input(task, {"a": ROOTS})
    settle(endpoint, shelf)
    other = connect(endpoint, capabilities=EVERYTHING, **BERT)
    refused = wait(other, task, **BERT)
    settle(endpoint, shelf)
    assert answer(refused).last["error"]["code"] == -32602
    poor = connect(endpoint, capabilities={}, **ANNA)
    waiting = wait(poor, task, **ANNA)
    settle(endpoint, shelf)
    assert take(waiting) is None
    rich = connect(endpoint, capabilities=EVERYTHING, **ANNA)
    asking = wait(rich, task, **ANNA)
    settle(endpoint, shelf)
    assert answer(asking).last["method"] == "roots/list"


def test_what_the_client_of_the_record_did_not_declare_is_not_asked() -> None:
    """CAP-002: nothing else is known of it before it comes back."""
    endpoint, _, task = adopted(capabilities=b"{}")
    with pytest.raises(LocalProtocolError, match="roots"):
        endpoint.require_task_input(task, {"a": ROOTS})
    assert endpoint.complete_task(task, NOTHING)


def test_a_task_whose_session_has_ended_asks_in_the_next_one() -> None:
    """TASK-041: the task belongs to the principal."""
    endpoint = served()
    one = connect(endpoint, capabilities=EVERYTHING, **ANNA)
    task = in_session(one, **ANNA)
    assert endpoint.require_task_input(task, {"a": ROOTS})
    assert endpoint.end_session(one.session)
    assert task.open
    other = connect(endpoint, capabilities=EVERYTHING, **ANNA)
    waiting = wait(other, task, **ANNA)
    question = answer(waiting).last
    assert question["method"] == "roots/list"
    answer(other.post(error(question["id"], -1, "no"), **ANNA))
    assert [one.cause for one in of(TaskCancelled, drain(endpoint))] == [TaskEnd.UNANSWERED]


def test_a_session_that_ends_with_an_open_question_lets_the_task_fail() -> None:
    """TASK-040: nobody can answer the request of the lost session any more."""
    endpoint = served()
    one = connect(endpoint, capabilities=EVERYTHING, **ANNA)
    open_stream_of(one)
    task = in_session(one, **ANNA)
    assert endpoint.require_task_input(task, {"a": ROOTS})
    assert endpoint.end_session(one.session)
    assert [one.cause for one in of(TaskCancelled, drain(endpoint))] == [TaskEnd.UNANSWERED]
    other = connect(endpoint, **ANNA)
    assert answer(wait(other, task, **ANNA)).last["error"]["code"] == -32603


def open_stream_of(one: Client) -> None:
    """Open the GET stream of Anna's session."""
    assert answer(one.get(**ANNA)).status == 200


def test_a_client_without_a_session_is_not_asked_about_its_task() -> None:
    """STATE-006: its answer could not be told from those of others."""
    endpoint = new_endpoint(capabilities={"tools": {}}, tasks=settings(), stateless=True)
    fields = {"mcp-protocol-version": "2025-11-25"}
    exchange = post(endpoint, call(1, "tools/call", {"name": "t", "task": {}}), fields)
    task = endpoint.create_task(asked(endpoint), at=START)
    assert task is not None
    assert answer(exchange).status == 200
    with pytest.raises(LocalProtocolError, match="STATE-006"):
        endpoint.require_task_input(task, {"a": ROOTS})
    assert endpoint.complete_task(task, NOTHING)
    assert not endpoint.require_task_input(task, {"a": ROOTS})


def test_a_wait_ends_with_its_session_and_the_task_goes_on() -> None:
    """TASK-024: a second wait, in another session, gets the result."""
    endpoint = served()
    one = connect(endpoint, **ANNA)
    task = in_session(one, **ANNA)
    waiting = wait(one, task, **ANNA)
    assert endpoint.end_session(one.session)
    assert answer(waiting).ended
    other = connect(endpoint, **ANNA)
    again = wait(other, task, **ANNA)
    assert endpoint.complete_task(task, NOTHING)
    assert answer(again).last["result"]["content"] == []
    assert endpoint.followed_tasks == ()


def test_a_wait_whose_stream_was_cut_is_resumed_from_the_log() -> None:
    """TASK-024, TASK-030: its question was on the stream, and its result is kept for it."""
    one = connect(served(), capabilities=EVERYTHING)
    task = in_session(one)
    assert one.endpoint.require_task_input(task, {"a": ROOTS})
    waiting = wait(one, task)
    response = answer(waiting)
    waiting.receive_disconnect()
    answer(one.post(result(response.last["id"], {"roots": []})))
    assert one.endpoint.complete_task(task, NOTHING)
    resumed = answer(one.get({"last-event-id": response.ids[-1]}))
    assert resumed.last["result"]["content"] == []


# ------------------------------------------------------------------------------------ 2026-07-28


def asked_for(endpoint: ServerEndpoint, method: str, params: JSONObject, **about: Any) -> Any:
    """The exchange of a request of 2026-07-28."""
    named = {"mcp-name": params["taskId"]} if isinstance(params.get("taskId"), str) else {}
    return post_modern(endpoint, modern(1, method, params, envelope(WITH_TASKS)), named, **about)


def made(endpoint: ServerEndpoint, **about: Any) -> Task:
    """A task of 2026-07-28, whose answer is taken."""
    exchange = asked_for(endpoint, "tools/call", {"name": "t"}, **about)
    task = endpoint.create_task(asked(endpoint), at=START, now=0.0)
    assert task is not None
    assert answer(exchange).status == 200
    return task


def test_the_task_of_another_is_as_unknown_as_none() -> None:
    """XTASK-074, XTASK-100, XTASK-148: status, code and text are the same."""
    endpoint = served()
    task = made(endpoint, **ANNA)
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        bodies: list[Any] = []
        for task_id in (task.id, "0" * 48):
            params: JSONObject = {"taskId": task_id, "inputResponses": {}}
            response = answer(asked_for(endpoint, method, params, **BERT))
            bodies.append((response.status, response.json["error"]))
        assert bodies[0] == bodies[1]
        assert bodies[0][1]["code"] == -32602
    assert task.open
    exchange = asked_for(
        endpoint, "subscriptions/listen", {"notifications": {"taskIds": [task.id]}}, **BERT
    )
    assert answer(exchange).last["params"]["notifications"] == {}
    assert endpoint.complete_task(task, NOTHING)
    assert take(exchange) is None


def test_the_forms_do_not_meet() -> None:
    """XTASK-152: a principal of both eras does not see a task of one form in the other."""
    endpoint = served()
    one = connect(endpoint, **ANNA)
    legacy, task = in_session(one, **ANNA), made(endpoint, **ANNA)
    response = answer(asked_for(endpoint, "tasks/get", {"taskId": legacy.id}, **ANNA))
    assert response.json["error"]["code"] == -32602
    response = answer(one.post(call(5, "tasks/get", {"taskId": task.id}), **ANNA))
    assert response.json["error"]["code"] == -32602
    listed = answer(one.post(call(6, "tasks/list"), **ANNA)).json["result"]["tasks"]
    assert [entry["taskId"] for entry in listed] == [legacy.id]


def test_a_listener_that_leaves_is_forgotten() -> None:
    """OWN-010: nothing is kept for a stream that nobody reads."""
    endpoint = served()
    task = made(endpoint)
    exchange = asked_for(
        endpoint, "subscriptions/listen", {"notifications": {"taskIds": [task.id]}}
    )
    answer(exchange)
    exchange.receive_disconnect()
    assert of(ListenerRemoved, drain(endpoint))
    assert endpoint.listeners == ()
    assert endpoint.complete_task(task, NOTHING)
    assert endpoint.followed_tasks == ()


def test_a_subscription_outlives_its_tasks() -> None:
    """XTASK-126: the extension names no end of it; the last notification has the whole task."""
    endpoint = served(ttl_ms=1000)
    task, other = made(endpoint), made(endpoint)
    exchange = asked_for(
        endpoint, "subscriptions/listen", {"notifications": {"taskIds": [task.id, other.id]}}
    )
    before = answer(exchange)
    assert endpoint.complete_task(task, NOTHING)
    response = more(exchange, before)
    assert response.messages[-1]["params"]["result"]["content"] == []
    endpoint.handle_timeout(1.1)
    assert not response.ended
    assert len(endpoint.listeners) == 1
    assert endpoint.followed_tasks == ()


@pytest.mark.parametrize("name", ["=?base64?!!?=", "=?base64?Zm9v?=", "no", "T"])
def test_a_header_that_says_something_else_is_refused(name: str) -> None:
    """XTASK-136, XTASK-137: before the task is looked up."""
    endpoint = served(store="ask")
    message = modern(1, "tasks/get", {"taskId": "t"}, envelope(WITH_TASKS))
    response = answer(post_modern(endpoint, message, {"mcp-name": name}))
    assert (response.status, response.json["error"]["code"]) == (400, -32020)
    assert not of(TaskWanted, drain(endpoint))


def test_an_id_that_no_header_can_hold_is_encoded() -> None:
    """XTASK-136: what it says is compared, not how."""
    endpoint = served()
    message = modern(1, "tasks/get", {"taskId": "ä\n"}, envelope(WITH_TASKS))
    response = answer(post_modern(endpoint, message, {"mcp-name": "=?base64?w6QK?="}))
    assert (response.status, response.json["error"]["code"]) == (400, -32602)
