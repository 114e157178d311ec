"""Tasks over HTTP: many clients share one board, and each has its own tasks."""

from typing import Any

import pytest

from sansmcp import (
    IncomingRequest,
    JSONObject,
    ListenerAdded,
    LocalProtocolError,
    Task,
    TaskCancelled,
    TaskEnd,
    TaskInputReceived,
    TaskRecord,
    TasksWanted,
    TaskToStore,
    TaskWanted,
)
from sansmcp.http import MessageUndelivered, ServerEndpoint
from tests.support.http.server_endpoint import (
    Client,
    answer,
    asked,
    connect,
    drain,
    more,
    new_endpoint,
    of,
    open_stream,
    post,
    post_modern,
    sessions,
    take,
)
from tests.support.modern import EVERYTHING, FORM, ROOTS, envelope, modern
from tests.support.tasks import NOTHING, START, WITH_TASKS, Shelf, settings
from tests.support.wire import call, result

TASKS: JSONObject = {"name": "t", "task": {}}


def served(**changed: Any) -> ServerEndpoint:
    """An endpoint of both eras with tasks."""
    return new_endpoint(capabilities={"tools": {}}, tasks=settings(**changed))


def ask(
    endpoint: ServerEndpoint,
    method: str,
    params: JSONObject | None = None,
    *,
    capabilities: JSONObject = WITH_TASKS,
    fields: dict[str, str] | None = None,
    **about: Any,
) -> Any:
    """The exchange of a request of 2026-07-28."""
    params = params or {}
    named = {"mcp-name": params["taskId"]} if "taskId" in params else {}
    message = modern(1, method, params, envelope(capabilities))
    return post_modern(endpoint, message, named if fields is None else fields, **about)


def made(endpoint: ServerEndpoint, **about: Any) -> Task:
    """A task of 2026-07-28, whose answer is taken."""
    exchange = ask(endpoint, "tools/call", {"name": "t"}, **about)
    task = endpoint.create_task(asked(endpoint), at=START, now=0.0)
    assert task is not None
    response = answer(exchange)
    assert (response.status, response.json["result"]["taskId"]) == (200, task.id)
    return task


def called(one: Client) -> tuple[Any, IncomingRequest]:
    """A `tools/call` in a session that may become a task."""
    return one.asked(call(1, "tools/call", TASKS))


def in_session(one: Client) -> Task:
    """A task of 2025-11-25, whose answer is taken."""
    exchange, request = called(one)
    task = one.endpoint.create_task(request, at=START, now=0.0)
    assert task is not None
    assert answer(exchange).last["result"]["task"]["taskId"] == task.id
    drain(one.endpoint)
    return task


# ------------------------------------------------------------------------------------ 2026-07-28


def test_a_task_is_polled_answered_and_cancelled_by_requests_of_their_own() -> None:
    """XTASK-004: nothing depends on an earlier request, and each answer is JSON."""
    endpoint = served()
    task = made(endpoint)
    assert endpoint.open_tasks == (task,)
    assert endpoint.followed_tasks == (task.id,)
    assert endpoint.follows_task(task.id)
    assert endpoint.update_task(task, message="x")
    assert endpoint.require_task_input(task, {"a": FORM})
    poll = answer(ask(endpoint, "tasks/get", {"taskId": task.id})).json["result"]
    assert (poll["status"], poll["statusMessage"]) == ("input_required", "x")
    params: JSONObject = {"taskId": task.id, "inputResponses": {"a": {"action": "decline"}}}
    assert answer(ask(endpoint, "tasks/update", params)).status == 200
    assert of(TaskInputReceived, drain(endpoint))
    assert endpoint.complete_task(task, NOTHING)
    assert answer(ask(endpoint, "tasks/get", {"taskId": task.id})).json["result"]["result"]
    other, third = made(endpoint), made(endpoint)
    assert answer(ask(endpoint, "tasks/cancel", {"taskId": other.id})).status == 200
    (over,) = of(TaskCancelled, drain(endpoint))
    assert (over.task, over.cause) == (other, TaskEnd.PEER)
    assert endpoint.fail_task(third, -32603, "x")
    assert endpoint.cancel_task(made(endpoint))


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_the_header_repeats_the_id_of_the_task(method: str) -> None:
    """XTASK-134, XTASK-137, TASKX-012: also where the task is there."""
    endpoint = served()
    task = made(endpoint)
    params: JSONObject = {"taskId": task.id, "inputResponses": {}}
    headers: list[dict[str, str]] = [{}, {"mcp-name": "other"}]
    for fields in headers:
        response = answer(ask(endpoint, method, params, fields=fields))
        assert (response.status, response.json["error"]["code"]) == (400, -32020)
    assert answer(ask(endpoint, method, params)).status == 200


def test_statuses_of_errors_of_tasks() -> None:
    """XTASK-016, XTASK-139, XTASK-143: undeclared, unknown, and methods of the other form."""
    endpoint = served()
    for method, params, declared, status, code in (
        ("tasks/get", {"taskId": "no"}, EVERYTHING, 400, -32021),
        ("tasks/get", {"taskId": "no"}, WITH_TASKS, 400, -32602),
        ("tasks/result", {}, WITH_TASKS, 404, -32601),
        ("tasks/list", {}, WITH_TASKS, 404, -32601),
        ("subscriptions/listen", {"notifications": {"taskIds": ["x"]}}, EVERYTHING, 400, -32021),
    ):
        response = answer(ask(endpoint, method, params, capabilities=declared))
        assert (response.status, response.json["error"]["code"]) == (status, code)


def test_a_subscription_to_tasks_is_a_stream() -> None:
    """XTASK-122, XTASK-128: the changes come from requests of other clients."""
    endpoint = served()
    task = made(endpoint)
    exchange = ask(endpoint, "subscriptions/listen", {"notifications": {"taskIds": [task.id]}})
    response = answer(exchange)
    assert response.last["params"]["notifications"] == {"taskIds": [task.id]}
    assert of(ListenerAdded, drain(endpoint))
    answer(ask(endpoint, "tasks/cancel", {"taskId": task.id}))
    (told,) = more(exchange, response).messages
    assert (told["method"], told["params"]["status"]) == ("notifications/tasks", "cancelled")


def test_principals_do_not_see_the_tasks_of_each_other() -> None:
    """XTASK-146 to XTASK-148: the id alone does not help."""
    endpoint = served()
    anna: dict[str, Any] = {"principal": object(), "principal_key": "anna"}
    task = made(endpoint, **anna)
    others: list[dict[str, Any]] = [
        {},
        {"principal": "b", "principal_key": "bert"},
        {"principal": "c"},
    ]
    for about in others:
        response = answer(ask(endpoint, "tasks/get", {"taskId": task.id}, **about))
        assert response.json["error"]["code"] == -32602
    again: dict[str, Any] = {"principal": object(), "principal_key": "anna"}
    assert answer(ask(endpoint, "tasks/get", {"taskId": task.id}, **again)).status == 200
    ask(endpoint, "tools/call", {"name": "t"}, principal="c")
    with pytest.raises(LocalProtocolError, match="OWN-050"):
        endpoint.create_task(asked(endpoint), at=START)


def test_expiry_and_the_end_of_the_endpoint() -> None:
    """One timer for all tasks, and one end."""
    endpoint = served(ttl_ms=1000)
    first = made(endpoint)
    endpoint.handle_timeout(1.1)
    assert [event.cause for event in of(TaskCancelled, drain(endpoint))] == [TaskEnd.EXPIRED]
    assert not first.open
    ask(endpoint, "tools/call", {"name": "t"})
    second = endpoint.create_task(asked(endpoint))
    assert second is not None
    endpoint.close()
    assert [event.cause for event in of(TaskCancelled, drain(endpoint))] == [TaskEnd.CLOSED]


def test_a_store_of_the_application_serves_all_clients() -> None:
    """Each question is answered by its verb, and a task is taken over."""
    endpoint, shelf = served(store="ask"), Shelf()

    def settle(endpoint: ServerEndpoint) -> None:
        while events := drain(endpoint):
            for event in events:
                if isinstance(event, TaskWanted | TasksWanted | TaskToStore):
                    shelf.answer(endpoint, event)

    exchange = ask(endpoint, "tools/call", {"name": "t"})
    task = endpoint.create_task(asked(endpoint), at=START, now=0.0)
    assert task is not None
    assert take(exchange) is None
    settle(endpoint)
    assert answer(exchange).json["result"]["taskId"] == task.id

    other = served(store="ask")
    taken = other.adopt_task(TaskRecord.from_bytes(shelf.records[task.id]), at=START, now=1.0)
    assert other.complete_task(taken, NOTHING, now=2.0)
    settle(other)
    endpoint.task_changed(taken.record, now=3.0)
    assert [event.cause for event in of(TaskCancelled, drain(endpoint))] == [TaskEnd.ELSEWHERE]

    one = connect(endpoint)
    exchange = one.post(call(2, "tasks/list"))
    settle(endpoint)
    assert answer(exchange).last["result"] == {"tasks": []}
    shelf.fails = True
    exchange = ask(endpoint, "tasks/get", {"taskId": task.id})
    settle(endpoint)
    assert answer(exchange).json["error"]["code"] == -32603


def test_a_task_of_a_session_that_has_ended_is_taken_over() -> None:
    """TASK-031: no stream leads to its client, so nothing is sent of its status."""
    endpoint = served(store="ask")
    fields: dict[str, Any] = {
        "id": "t",
        "owner": "2025-11-25 principal anna",
        "method": "tools/call",
        "is_modern": False,
        "created_at": START,
        "updated_at": START,
        "ttl_ms": None,
    }
    shelf = Shelf({"t": TaskRecord(**fields).to_bytes()})
    task = endpoint.adopt_task(TaskRecord(**fields), at=START, now=0.0)
    assert endpoint.fail_task(task, -32603, "the worker has died", now=0.0)
    for event in drain(endpoint):
        shelf.answer(endpoint, event)
    anna: dict[str, Any] = {"principal": "Anna", "principal_key": "anna"}
    one = connect(endpoint, **anna)
    exchange = one.post(call(2, "tasks/result", {"taskId": "t"}), **anna)
    for event in of(TaskWanted, drain(endpoint)):
        shelf.answer(endpoint, event)
    assert answer(exchange).last["error"]["message"] == "the worker has died"


def test_verbs_need_tasks_and_tasks_of_this_endpoint() -> None:
    """OWN-022, OWN-073."""
    endpoint, without = served(), new_endpoint(capabilities={"tools": {}})
    task = made(endpoint)
    assert without.open_tasks == ()
    assert (without.followed_tasks, without.follows_task("x")) == ((), False)
    with pytest.raises(LocalProtocolError, match="OWN-073"):
        without.complete_task(task, NOTHING)
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        served().complete_task(task, NOTHING)
    post_modern(without, modern(1, "tools/call", {"name": "t"}))
    with pytest.raises(LocalProtocolError, match="OWN-073"):
        without.create_task(asked(without), at=START)


# ------------------------------------------------------------------------------------ 2025-11-25


def test_a_session_waits_for_the_result_of_its_task() -> None:
    """TASK-024, TASK-046: polls are JSON."""
    one = connect(served())
    task = in_session(one)
    waiting = one.post(call(2, "tasks/result", {"taskId": task.id}))
    assert take(waiting) is None
    assert answer(one.post(call(3, "tasks/get", {"taskId": task.id}))).json["result"]
    assert one.endpoint.complete_task(task, NOTHING)
    assert answer(waiting).last["result"]["content"] == []
    response = answer(one.post(call(4, "tasks/cancel", {"taskId": task.id})))
    assert (response.status, response.json["error"]["code"]) == (200, -32602)


def test_questions_wait_for_a_stream() -> None:
    """TASK-026, TASK-030, TASK-045: a client without a GET stream gets them with `tasks/result`."""
    one = connect(served(), capabilities=EVERYTHING)
    task = in_session(one)
    assert one.endpoint.require_task_input(task, {"a": ROOTS})
    waiting = one.post(call(2, "tasks/result", {"taskId": task.id}))
    response = answer(waiting)
    question = response.last
    assert (question["method"], response.ended) == ("roots/list", False)
    answer(one.post(result(question["id"], {"roots": []})))
    assert of(TaskInputReceived, drain(one.endpoint))
    assert one.endpoint.complete_task(task, NOTHING)
    response = more(waiting, response)
    assert (response.last["result"]["content"], response.ended) == ([], True)


def test_questions_and_statuses_go_to_a_get_stream() -> None:
    """TASK-031, TASK-045."""
    one = connect(served(), capabilities=EVERYTHING)
    exchange, before = open_stream(one)
    task = in_session(one)
    assert one.endpoint.require_task_input(task, {"a": ROOTS})
    methods = [message["method"] for message in more(exchange, before).messages]
    assert sorted(methods) == ["notifications/tasks/status", "roots/list"]


def test_without_a_principal_a_task_belongs_to_its_session() -> None:
    """TASK-035, TASK-041: another session neither gets nor lists it."""
    endpoint = served()
    one, other = connect(endpoint), connect(endpoint)
    task = in_session(one)
    for client, codes in ((one, []), (other, [-32602])):
        response = answer(client.post(call(2, "tasks/get", {"taskId": task.id}))).json
        assert [response[member]["code"] for member in response if member == "error"] == codes
        listed = answer(client.post(call(3, "tasks/list"))).json["result"]["tasks"]
        assert [one["taskId"] for one in listed] == ([] if codes else [task.id])


def test_a_principal_has_its_tasks_in_every_session() -> None:
    """TASK-041: they are bound to the authorization context."""
    endpoint = served()
    anna: dict[str, Any] = {"principal": "a", "principal_key": "anna"}
    one = connect(endpoint, **anna)
    exchange = one.post(call(1, "tools/call", TASKS), **anna)
    task = endpoint.create_task(asked(endpoint), at=START)
    assert task is not None
    assert answer(exchange).status == 200
    other = connect(endpoint, **anna)
    listed = answer(other.post(call(3, "tasks/list"), **anna)).json["result"]["tasks"]
    assert [one["taskId"] for one in listed] == [task.id]


def test_a_client_without_a_session_lists_nothing() -> None:
    """TASK-043: nobody could tell whose tasks these are."""
    endpoint = new_endpoint(capabilities={"tools": {}}, tasks=settings(), stateless=True)
    fields = {"mcp-protocol-version": "2025-11-25"}
    exchange = post(endpoint, call(1, "tools/call", TASKS), fields)
    task = endpoint.create_task(asked(endpoint), at=START)
    assert task is not None
    assert answer(exchange).last["result"]["task"]["taskId"] == task.id
    response = answer(post(endpoint, call(2, "tasks/list"), fields))
    assert (response.status, response.last["error"]["code"]) == (200, -32601)
    assert answer(post(endpoint, call(3, "tasks/get", {"taskId": task.id}), fields)).last["result"]


def test_a_client_without_a_session_polls_its_task_to_the_end() -> None:
    """TASK-031: no stream could take a notification about its status."""
    endpoint = new_endpoint(capabilities={"tools": {}}, tasks=settings(), stateless=True)
    fields = {"mcp-protocol-version": "2025-11-25"}
    exchange = post(endpoint, call(1, "tools/call", TASKS), fields)
    task = endpoint.create_task(asked(endpoint), at=START)
    assert task is not None
    assert answer(exchange).last["result"]["task"]["taskId"] == task.id
    assert endpoint.update_task(task, message="half")
    waiting = post(endpoint, call(2, "tasks/result", {"taskId": task.id}), fields)
    assert endpoint.complete_task(task, NOTHING)
    assert answer(waiting).last["result"]["content"] == []


def test_a_task_of_a_session_is_taken_over() -> None:
    """Another process ends it, and has no stream to its client."""
    one = connect(served(store="ask"))
    exchange, request = called(one)
    shelf, endpoint = Shelf(), one.endpoint
    assert endpoint.create_task(request, at=START) is not None
    (to_store,) = of(TaskToStore, drain(endpoint))
    shelf.answer(endpoint, to_store)
    assert answer(exchange).last["result"]["task"]
    other = served(store="ask")
    task = other.adopt_task(to_store.record, at=START)
    assert other.complete_task(task, NOTHING)
    (to_store,) = of(TaskToStore, drain(other))
    shelf.answer(other, to_store)
    endpoint.task_changed(to_store.record)
    assert [event.cause for event in of(TaskCancelled, drain(endpoint))] == [TaskEnd.ELSEWHERE]


def test_a_result_that_nobody_reads_is_lost_and_the_task_stays() -> None:
    """OWN-032: the client that waited is gone, and can fetch the result later."""
    endpoint = new_endpoint(
        capabilities={"tools": {}}, tasks=settings(), sessions=sessions(event_log=None)
    )
    one = connect(endpoint)
    task = in_session(one)
    waiting = one.post(call(2, "tasks/result", {"taskId": task.id}))
    waiting.receive_disconnect()
    drain(endpoint)
    assert endpoint.complete_task(task, NOTHING)
    assert of(MessageUndelivered, drain(endpoint))
    again = answer(one.post(call(3, "tasks/result", {"taskId": task.id})))
    assert again.last["result"]["content"] == []


def test_the_end_of_a_session_leaves_its_tasks_to_their_time() -> None:
    """The principal may come back in another session."""
    one = connect(served())
    task = in_session(one)
    assert one.endpoint.end_session(one.session)
    assert task.open
    assert one.endpoint.complete_task(task, NOTHING)
