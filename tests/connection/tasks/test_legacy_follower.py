"""Tasks of 2025-11-25 on the side that has asked for them: a client, or a server."""

from typing import Any

import pytest

from sansmcp import (
    ClientConnection,
    Config,
    ErrorReceived,
    Event,
    FailureReason,
    JSONObject,
    LocalProtocolError,
    OutgoingRequest,
    PageReceived,
    ProgressReceived,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    Task,
    TaskUpdated,
)
from sansmcp.testing import Pair
from tests.support.modern import EVERYTHING, FORM
from tests.support.tasks import NOTHING, RELATED, STAMP, START, settings
from tests.support.wire import (
    CLIENT_INFO,
    SAMPLED,
    SAMPLING,
    SERVER_INFO,
    broken,
    drain,
    error,
    initialized_by,
    note,
    of,
    only,
    receive,
    result,
    sent,
    wire,
)

OF_CLIENT: JSONObject = {
    "list": {},
    "cancel": {},
    "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}},
}


def paired(**changed: Any) -> Pair:
    """A client and a server that both have tasks, and follow those of the other side."""
    client = ClientConnection(
        info=CLIENT_INFO,
        capabilities={**EVERYTHING, "tasks": OF_CLIENT},
        revisions=("2025-11-25",),
        tasks=settings(),
    )
    options: dict[str, Any] = {"tasks": settings(), "capabilities": {"tools": {}}, **changed}
    server = ServerConnection(info=SERVER_INFO, revisions=("2025-11-25",), **options)
    return Pair(client, server)


def started(pair: Pair, task: bool | int = True, **options: Any) -> tuple[OutgoingRequest, Task]:
    """A call of the client that the server has answered with a task."""
    call = pair.client.send_request("tools/call", {"name": "t"}, task=task, **options)
    request = pair.deliver_one(RequestReceived).request
    made = pair.server.create_task(request, at=START)
    assert made is not None
    updated = pair.deliver_one(TaskUpdated)
    assert (updated.request, call.task_id) == (call, made.id)
    pair.clear_events()
    return call, made


def later(pair: Pair, seconds: float = 1.2) -> list[Event]:
    """What the client learns in this time."""
    pair.advance(seconds)
    pair.deliver()
    events = list(pair.client_events)
    pair.clear_events()
    return events


def test_the_result_is_fetched_when_the_task_is_over() -> None:
    """TASK-013, TASK-021 to TASK-023: as if there had been no task."""
    pair = paired()
    call, task = started(pair, 60_000)
    assert task.record.ttl_ms == 60_000
    assert later(pair) == []
    pair.server.complete_task(task, NOTHING)
    ending = of(ResponseReceived, later(pair))
    assert [(event.request, event.result["content"]) for event in ending] == [(call, [])]
    assert ending[0].result["_meta"] == {RELATED: {"taskId": task.id}}
    assert pair.client.next_timeout() is None


def test_a_status_makes_the_next_poll_come_at_once() -> None:
    """TASK-031, TASK-032: what it says is not relied on."""
    pair = paired()
    call, task = started(pair)
    pair.server.complete_task(task, NOTHING)
    pair.deliver()
    assert of(ResponseReceived, pair.client_events)[0].request is call


def test_a_status_changes_nothing_while_a_poll_is_open() -> None:
    """TASK-032: and one of a task that is not followed is only delivered."""
    pair = paired()
    started(pair)
    pair.advance(1.2)
    (poll,) = sent(pair.client)  # which the server does not get
    assert poll["method"] == "tasks/get"
    status = {"createdAt": STAMP, "lastUpdatedAt": STAMP, "status": "working", "ttl": None}
    for task_id in (pair.server.open_tasks[0].id, "other"):
        pair.server.send_notification("notifications/tasks/status", {**status, "taskId": task_id})
    pair.deliver()
    assert not [message for _, message in pair.transcript if b"tasks/get" in message]


def test_a_server_may_answer_without_a_task() -> None:
    """TASK-013: the handle has its ending all the same."""
    pair = paired()
    call = pair.client.send_request("tools/call", {"name": "t"}, task=True)
    request = pair.deliver_one(RequestReceived).request
    assert request.params["task"] == {}
    pair.server.send_result(request, NOTHING)
    assert pair.deliver_one(ResponseReceived).request is call


def test_errors_and_cancellations_end_the_request() -> None:
    """TASK-023, TASK-038, TASK-040: the error is that of the request."""
    pair = paired()
    call, task = started(pair)
    pair.server.fail_task(task, -5, "m", 1)
    (failed,) = of(ErrorReceived, later(pair))
    assert (failed.request, failed.code, failed.message, failed.data) == (call, -5, "m", 1)
    call, task = started(pair)
    pair.server.cancel_task(task)
    (cancelled,) = of(RequestFailed, later(pair))
    assert (cancelled.request, cancelled.reason) == (call, FailureReason.TASK_CANCELLED)
    call, task = started(pair)
    pair.server.complete_task(task, {**NOTHING, "isError": True})
    assert of(ResponseReceived, later(pair))[0].result["isError"] is True


def test_questions_come_with_the_wait_for_the_result() -> None:
    """TASK-026, TASK-030: the client calls tasks/result, and answers requests as any other."""
    pair = paired()
    call, task = started(pair)
    pair.server.require_task_input(task, {"a": FORM})
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        pair.client.provide_task_input(call, {"a": {"action": "decline"}})
    events = later(pair)
    (asked,) = of(RequestReceived, events)
    assert asked.request.meta == {RELATED: {"taskId": task.id}}
    assert of(TaskUpdated, events)[0].task["status"] == "input_required"
    pair.client.send_result(asked.request, {"action": "decline"})
    pair.deliver()
    pair.server.complete_task(task, NOTHING)
    assert of(ResponseReceived, later(pair))[0].request is call


def test_progress_goes_on_until_the_end() -> None:
    """PROG-011: under the token of the request."""
    pair = paired()
    call = pair.client.send_request("tools/call", {"name": "t"}, task=True, progress=True)
    request = pair.deliver_one(RequestReceived).request
    task = pair.server.create_task(request, at=START)
    assert task is not None
    pair.deliver()
    assert pair.server.send_progress(request, 1)
    assert pair.deliver_one(ProgressReceived).request is call
    pair.server.complete_task(task, NOTHING)
    pair.deliver()
    assert not call.open


def test_progress_and_the_wait_for_the_result_leave_the_timeout_stopped() -> None:
    """TIME-002: the server answers `tasks/result` at the end of the task, however late."""
    pair = paired(tasks=settings(poll_ms=20_000))
    call = pair.client.send_request(
        "tools/call", {"name": "t"}, task=True, progress=True, timeout=5
    )
    request = pair.deliver_one(RequestReceived).request
    task = pair.server.create_task(request, at=START)
    assert task is not None
    pair.deliver()
    pair.server.send_progress(request, 1)
    pair.deliver()
    assert of(RequestFailed, later(pair, 15.0)) == []
    pair.server.require_task_input(task, {"a": FORM})
    (asked,) = of(RequestReceived, later(pair, 10.0))
    pair.client.send_result(asked.request, {"action": "decline"})
    for _ in range(25):
        assert of(RequestFailed, later(pair, 4.0)) == []
    pair.server.complete_task(task, NOTHING)
    assert of(ResponseReceived, later(pair))[0].request is call


def test_a_request_is_cancelled_before_and_after_it_is_a_task() -> None:
    """CANC-005, TASK-037: no notification, but tasks/cancel as soon as the id is known."""
    pair = paired()
    call, task = started(pair)
    assert pair.client.cancel(call)
    assert of(RequestFailed, later(pair))[0].reason is FailureReason.CANCELLED
    assert not task.open
    call = pair.client.send_request("tools/call", {"name": "t"}, task=True)
    request = pair.deliver_one(RequestReceived).request
    assert pair.client.cancel(call)
    pair.deliver()
    made = pair.server.create_task(request, at=START)
    assert made is not None
    pair.deliver()
    assert not made.open


def test_a_server_without_cancel_is_not_asked_to() -> None:
    """TASK-004: the request ends here, and the task goes on."""
    capabilities: JSONObject = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    pair = paired(capabilities=capabilities)
    call, task = started(pair)
    assert pair.client.cancel(call)
    pair.deliver()
    assert task.open


def test_a_task_is_resumed() -> None:
    """Another process has the id."""
    pair = paired()
    call, task = started(pair)
    other = pair.client.resume_task("unknown")
    assert of(RequestFailed, later(pair))[0].request is other
    assert call.open
    assert task.open


def test_a_wait_that_fails_is_begun_again() -> None:
    """OWN-072: an invalid answer to tasks/result ends nothing, and the task is polled again."""
    client = ClientConnection(info=CLIENT_INFO, revisions=("2025-11-25",), tasks=settings())
    client.start(now=0.0)
    capabilities: JSONObject = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    receive(client, result(sent(client)[0]["id"], initialized_by("2025-11-25", capabilities)))
    assert sent(client)
    call = client.send_request("tools/call", {"name": "t"}, task=True)
    over = {
        "taskId": "t1",
        "status": "completed",
        "createdAt": STAMP,
        "lastUpdatedAt": STAMP,
        "ttl": None,
    }
    receive(client, result(sent(client)[0]["id"], {"task": over}))
    (wait,) = sent(client)
    assert wait["method"] == "tasks/result"
    assert broken(receive(client, result(wait["id"], None))) == ["JSON-007"]
    client.handle_timeout(5.0)
    (poll,) = sent(client)
    receive(client, result(poll["id"], over))
    (wait,) = sent(client)
    assert only(ResponseReceived, receive(client, result(wait["id"], NOTHING))).request is call


def seen(status: str, **more: Any) -> JSONObject:
    """A task as a server tells of it."""
    stamps = {"createdAt": STAMP, "lastUpdatedAt": STAMP, "ttl": None}
    return {"taskId": "t1", "status": status, **stamps, **more}


def waiting(
    status: str, changed: JSONObject | None = None, **options: Any
) -> tuple[ClientConnection, OutgoingRequest, int]:
    """A client, a call that has become a task of this status, and the id of its tasks/result."""
    tasks = settings(**(changed or {}))
    client = ClientConnection(info=CLIENT_INFO, revisions=("2025-11-25",), tasks=tasks)
    client.start(now=0.0)
    capabilities: JSONObject = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    receive(client, result(list_id(client), initialized_by("2025-11-25", capabilities)))
    sent(client)
    call = client.send_request("tools/call", {"name": "t"}, task=True, **options)
    receive(client, result(list_id(client), {"task": seen(status)}))
    return client, call, asked(client, "tasks/result")


def asked(client: ClientConnection, method: str) -> int:
    """The id of the request about the task that is the only output."""
    (message,) = sent(client)
    assert (message["method"], message["params"]["taskId"]) == (method, "t1")
    id: int = message["id"]
    return id


def fire(client: ClientConnection) -> None:
    """Let the next deadline pass."""
    deadline = client.next_timeout()
    assert deadline is not None
    client.handle_timeout(deadline)


def test_a_result_that_never_comes_times_out() -> None:
    """TIME-002: the task is over, so an answer is due."""
    client, call, _ = waiting("completed", timeout=5.0)
    client.handle_timeout(5.1)
    (failed,) = of(RequestFailed, drain(client))
    assert (failed.request, failed.reason) == (call, FailureReason.TIMED_OUT)


def test_a_result_that_never_comes_is_given_up_without_a_timeout_too() -> None:
    """OWN-072: the polls between the waits do not begin the count anew."""
    client, call, _ = waiting("completed", {"max_failed_polls": 3, "max_poll_seconds": 8.0})
    for _ in range(2):
        fire(client)
        assert [message["method"] for message in sent(client)] == ["notifications/cancelled"]
        fire(client)
        receive(client, result(asked(client, "tasks/get"), seen("completed")))
        asked(client, "tasks/result")
    fire(client)
    (failed,) = of(RequestFailed, drain(client))
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)


def test_polls_beside_the_wait_find_the_end_of_the_task() -> None:
    """TASK-022: the peer may never answer tasks/result, whose time counts from the end."""
    client, call, wait = waiting("input_required", timeout=5.0)
    assert client.next_timeout() == pytest.approx(60.0, rel=0.01)
    fire(client)
    receive(client, result(asked(client, "tasks/get"), seen("working")))
    assert client.next_timeout() == pytest.approx(120.0, rel=0.01)
    fire(client)
    receive(client, result(asked(client, "tasks/get"), seen("input_required")))
    assert client.next_timeout() == pytest.approx(180.0, rel=0.01)
    fire(client)
    receive(client, result(asked(client, "tasks/get"), seen("completed")))
    assert client.next_timeout() == pytest.approx(185.0, rel=0.01)
    assert sent(client) == []
    ending = receive(client, result(wait, NOTHING))
    assert only(ResponseReceived, ending).request is call


def test_the_time_for_the_result_is_not_lengthened_by_news() -> None:
    """OWN-072: it counts from the poll that has found the end of the task."""
    client, call, _ = waiting("input_required", {"max_failed_polls": 1})
    fire(client)
    receive(client, result(asked(client, "tasks/get"), seen("completed")))
    due = client.next_timeout()
    assert due == pytest.approx(120.0, rel=0.01)
    client.handle_timeout(100.0)
    receive(client, note("notifications/tasks/status", seen("completed")))
    receive(client, result(asked(client, "tasks/get"), seen("completed")))
    assert client.next_timeout() == due
    drain(client)
    fire(client)
    assert only(RequestFailed, drain(client)).request is call


def test_the_same_task_for_two_requests_is_invalid() -> None:
    """TASK-015: only one of them can be followed."""
    client, first, _ = waiting("input_required")
    second = client.send_request("tools/call", {"name": "t"}, task=True)
    events = receive(client, result(list_id(client), {"task": seen("working")}))
    assert broken(events) == ["TASK-015"]
    (failed,) = of(RequestFailed, events)
    assert (failed.request, failed.reason) == (second, FailureReason.INVALID_ANSWER)
    assert first.open


@pytest.mark.parametrize("is_told", [False, True])
def test_an_error_may_say_that_the_task_is_cancelled(is_told: bool) -> None:
    """TASK-037: whether the status or a poll after the error says so."""
    client, call, wait = waiting("input_required")
    if is_told:
        receive(client, note("notifications/tasks/status", seen("cancelled")))
        receive(client, result(asked(client, "tasks/get"), seen("cancelled")))
    events = receive(client, error(wait, -32603, "it was cancelled"))
    if not is_told:
        assert events == []
        events = receive(client, result(asked(client, "tasks/get"), seen("cancelled")))
    (failed,) = of(RequestFailed, events)
    assert (failed.request, failed.reason) == (call, FailureReason.TASK_CANCELLED)


def test_an_error_may_say_that_the_task_is_gone() -> None:
    """TASK-020, TASK-039: it is no error of the request."""
    client, call, wait = waiting("input_required")
    assert receive(client, error(wait, -32602)) == []
    failed = only(RequestFailed, receive(client, error(asked(client, "tasks/get"), -32602)))
    assert (failed.request, failed.reason) == (call, FailureReason.TASK_LOST)


def test_an_error_of_a_task_that_goes_on_is_none_of_the_request() -> None:
    """TASK-024: the wait is begun again, after an interval."""
    client, call, wait = waiting("input_required")
    assert receive(client, error(wait, -32603, "busy")) == []
    poll = asked(client, "tasks/get")
    assert receive(client, result(poll, seen("input_required"))) == []
    assert (sent(client), call.open) == ([], True)
    fire(client)
    receive(client, result(asked(client, "tasks/get"), seen("input_required")))
    wait = asked(client, "tasks/result")
    assert only(ResponseReceived, receive(client, result(wait, NOTHING))).request is call


def test_an_error_of_a_completed_task_is_a_failure_of_the_wait() -> None:
    """OWN-072: too many of them lose the request."""
    client, call, wait = waiting("completed", {"max_failed_polls": 2})
    assert receive(client, error(wait, -32603, "busy")) == []
    assert receive(client, result(asked(client, "tasks/get"), seen("completed"))) == []
    fire(client)
    receive(client, result(asked(client, "tasks/get"), seen("completed")))
    assert receive(client, error(asked(client, "tasks/result"), -32603, "busy")) == []
    poll = asked(client, "tasks/get")
    failed = only(RequestFailed, receive(client, result(poll, seen("completed"))))
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)
    assert "busy (-32603)" in failed.text


def test_the_support_of_tools_is_learned_from_their_list() -> None:
    """TASK-005 to TASK-009: what the client knows it does not send."""
    pair = paired()
    tools: list[Any] = [
        {
            "name": "must",
            "inputSchema": {"type": "object"},
            "execution": {"taskSupport": "required"},
        },
        {
            "name": "may",
            "inputSchema": {"type": "object"},
            "execution": {"taskSupport": "optional"},
        },
        {"name": "never", "inputSchema": {"type": "object"}},
    ]
    pair.client.send_paginated("tools/list")
    pair.server.send_result(pair.deliver_one(RequestReceived).request, {"tools": tools})
    pair.deliver_one(PageReceived)
    for name, task, rule in (("must", False, "TASK-009"), ("never", True, "TASK-006")):
        with pytest.raises(LocalProtocolError, match=rule):
            pair.client.send_request("tools/call", {"name": name}, task=task)
    for name, as_task in (("must", True), ("may", True), ("may", False), ("never", False)):
        assert pair.client.send_request("tools/call", {"name": name}, task=as_task).open


def test_what_is_remembered_of_tools_is_bounded() -> None:
    """`Config.max_tool_schemas`: the oldest is forgotten; what is no tool is passed over."""
    client = ClientConnection(
        info=CLIENT_INFO,
        revisions=("2025-11-25",),
        tasks=settings(),
        config=Config(max_tool_schemas=1),
    )
    client.start(now=0.0)
    capabilities: JSONObject = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    receive(client, result(list_id(client), initialized_by("2025-11-25", capabilities)))
    sent(client)
    required: JSONObject = {"execution": {"taskSupport": "required"}}
    for tools in ([{"name": "a", **required}, {"name": "b", **required}], [5, {"name": 5}]):
        client.send_request("tools/list")
        client.receive_data(wire(result(list_id(client), {"tools": tools})))
    assert client.send_request("tools/call", {"name": "a"}).open
    with pytest.raises(LocalProtocolError, match="TASK-009"):
        client.send_request("tools/call", {"name": "b"})


def list_id(client: ClientConnection) -> Any:
    """The id of the request that the client has sent last."""
    return sent(client)[-1]["id"]


def test_what_the_peer_does_not_accept_as_a_task_is_not_sent() -> None:
    """TASK-002, TASK-003, TASK-005."""
    pair = paired(tasks=None)
    with pytest.raises(LocalProtocolError, match="TASK-002"):
        pair.client.send_request("tools/call", {"name": "t"}, task=True)
    with pytest.raises(LocalProtocolError, match="TASK-002"):
        pair.client.send_request("tools/list", task=True)
    with pytest.raises(LocalProtocolError, match="CAP-002"):
        pair.client.resume_task("t")


def test_a_server_follows_the_tasks_of_its_client() -> None:
    """TASK-001, TASK-023: sampling that takes long."""
    pair = paired()
    call = pair.server.send_request("sampling/createMessage", SAMPLING, task=True, timeout=5)
    request = pair.deliver_one(RequestReceived).request
    task = pair.client.create_task(request, at=START)
    assert task is not None
    pair.deliver()
    assert of(TaskUpdated, pair.server_events)[0].request is call
    assert pair.client.complete_task(task, SAMPLED)
    pair.deliver()
    assert of(ResponseReceived, pair.server_events)[0].request is call
