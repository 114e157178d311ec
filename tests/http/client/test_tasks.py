"""Requests over HTTP that become tasks: each poll is an exchange of its own."""

from typing import Any

import pytest

from sansmcp import (
    FailureReason,
    JSONObject,
    LocalProtocolError,
    OutgoingRequest,
    Ready,
    RequestFailed,
    ResponseReceived,
    TaskInputRequired,
    TaskUpdated,
)
from sansmcp.http import ClientEndpoint, ClientExchange
from tests.support.http.client_endpoint import (
    begun,
    event,
    events_of,
    exchanges_of,
    fields_of,
    message_of,
    new_client,
    only,
    respond,
    stream,
    take,
)
from tests.support.modern import EVERYTHING, FORM, LEGACY, MODERN, discovered
from tests.support.tasks import EXTENSION, NOTHING, STAMP, settings
from tests.support.wire import error, initialized_by, result

SERVER: JSONObject = {"tools": {}, "extensions": {EXTENSION: {}}}
OF_TASKS: JSONObject = {"cancel": {}, "requests": {"tools": {"call": {}}}}


def task(status: str = "working", **more: Any) -> JSONObject:
    """A task of 2026-07-28."""
    stamps = {"createdAt": STAMP, "lastUpdatedAt": STAMP, "ttlMs": None}
    return {"taskId": "t 1", "status": status, **stamps, **more}


def following(**more: Any) -> ClientEndpoint:
    """A client of 2026-07-28 that is open at the time 0."""
    client = begun(MODERN, 0.0, capabilities=EVERYTHING, get_stream=False, tasks=settings(**more))
    first = take(client)
    respond(first, body=result(message_of(first)["id"], discovered(SERVER)))
    only(Ready, events_of(client))
    return client


def started(client: ClientEndpoint, *, streamed: bool = False) -> OutgoingRequest:
    """A call that has become a task; its exchange is over."""
    call = client.send_request("tools/call", {"name": "t"}, task=True)
    exchange = take(client)
    made = result(message_of(exchange)["id"], {"resultType": "task", **task()})
    if streamed:
        stream(exchange, event(made), ends=True)
    else:
        respond(exchange, body=made)
    assert only(TaskUpdated, events_of(client)).request is call
    assert client.exchanges == ()
    return call


def poll(client: ClientEndpoint) -> ClientExchange:
    """The exchange of the next poll."""
    deadline = client.next_timeout()
    assert deadline is not None
    client.handle_timeout(deadline)
    exchange = take(client)
    fields = fields_of(exchange)
    assert fields["mcp-method"] == "tasks/get"
    assert fields["mcp-name"] == "t 1"
    return exchange


def answered(exchange: ClientExchange, value: JSONObject) -> None:
    """Answer a request about a task."""
    respond(exchange, body=result(message_of(exchange)["id"], {"resultType": "complete", **value}))


@pytest.mark.parametrize("streamed", [False, True])
def test_a_task_is_polled_by_exchanges_that_name_it(streamed: bool) -> None:
    """XTASK-134 to XTASK-136, TASKX-012: a proxy can route them by a header."""
    client = following()
    call = started(client, streamed=streamed)
    answered(poll(client), task())
    assert events_of(client) == []
    answered(poll(client), task("completed", result=NOTHING))
    ending = only(ResponseReceived, events_of(client)[1:])
    assert (ending.request, ending.result) == (call, NOTHING)
    assert (client.pending_requests, client.next_timeout()) == ((), None)


@pytest.mark.parametrize("is_sent", [False, True])
def test_a_cancellation_outlives_the_end_of_the_conversation(is_sent: bool) -> None:
    """XTASK-115: who leaves at once after `cancel` must not leave the task to the server."""
    client = following()
    call = started(client)
    waiting = client.send_request("tools/call", {"name": "t"}, task=True)
    other = take(client)
    assert client.cancel(call)
    cancel = take(client) if is_sent else None
    client.close()
    cancel = cancel or take(client)
    assert message_of(cancel)["method"] == "tasks/cancel"
    assert (other.over, cancel.over, client.exchanges) == (True, False, (cancel,))
    assert client.next_exchange() is None

    endings = [one for one in events_of(client) if isinstance(one, RequestFailed)]
    assert [one.request for one in endings] == [call, waiting]
    answered(cancel, {})
    assert (events_of(client), client.exchanges) == ([], ())


def test_questions_are_answered_and_a_task_is_cancelled() -> None:
    """XTASK-095, XTASK-115, XTASK-134."""
    client = following()
    call = started(client)
    answered(poll(client), task("input_required", inputRequests={"a": FORM}))
    assert only(TaskInputRequired, events_of(client)[1:]).request is call
    assert client.provide_task_input(call, {"a": {"action": "accept"}})
    update = take(client)
    assert fields_of(update)["mcp-name"] == "t 1"
    answered(update, {})
    assert client.cancel(call)
    cancel = take(client)
    assert fields_of(cancel)["mcp-method"] == "tasks/cancel"
    assert only(RequestFailed, events_of(client)).reason is FailureReason.CANCELLED
    answered(cancel, {})
    assert events_of(client) == []


def test_a_poll_that_the_network_loses_is_repeated() -> None:
    """OWN-072: also one that the server refuses for a time."""
    client = following(max_failed_polls=3)
    call = started(client)
    poll(client).receive_failure("the connection broke")
    respond(poll(client), 503)
    assert not [one for one in events_of(client) if isinstance(one, RequestFailed)]
    exchange = poll(client)
    respond(exchange, 400, error(message_of(exchange)["id"], -32602))
    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.reason) == (call, FailureReason.TASK_LOST)


def test_a_task_is_resumed_and_times_out() -> None:
    """XTASK-081: nothing was POSTed for its request here."""
    client = following()
    call = client.resume_task("t 1", max_timeout=5.0, now=1.0)
    answered(take(client), task())
    events_of(client)
    client.handle_timeout(6.5)
    failed = [one for one in events_of(client) if isinstance(one, RequestFailed)]
    assert [(one.request, one.reason) for one in failed] == [(call, FailureReason.TIMED_OUT)]
    assert not failed[0].not_run
    methods = [fields_of(exchange)["mcp-method"] for exchange in exchanges_of(client)]
    assert "tasks/cancel" in methods


def test_a_task_is_left_alone() -> None:
    """Nothing is sent for it, and its poll is aborted."""
    client = following()
    call = started(client)
    exchange = poll(client)
    assert client.leave_task(call)
    assert client.aborts() == [exchange]
    assert only(RequestFailed, events_of(client)).reason is FailureReason.CANCELLED
    assert (exchanges_of(client), client.next_timeout()) == ([], None)


def test_verbs_of_tasks_need_tasks() -> None:
    """OWN-073."""
    client = new_client()
    with pytest.raises(LocalProtocolError, match="OWN-073"):
        client.resume_task("t")


def test_a_session_follows_tasks_of_the_older_form() -> None:
    """TASK-021 to TASK-023: and loses them with the session."""
    client = begun(LEGACY, 0.0, get_stream=False, tasks=settings())
    first = take(client)
    value = initialized_by(LEGACY, {"tools": {}, "tasks": OF_TASKS})
    respond(first, body=result(message_of(first)["id"], value), more={"Mcp-Session-Id": "s"})
    respond(take(client), 202)
    only(Ready, events_of(client))
    made = {name: value for name, value in task().items() if name != "ttlMs"} | {"ttl": None}
    calls: list[OutgoingRequest] = []
    for _ in range(2):
        calls.append(client.send_request("tools/call", {"name": "t"}, task=True))
        exchange = take(client)
        made["taskId"] = f"t{len(calls)}"
        respond(exchange, body=result(message_of(exchange)["id"], {"task": made}))
    client.handle_timeout(2.0)
    first, second = exchanges_of(client)
    over = {**made, "taskId": "t1", "status": "completed"}
    respond(first, body=result(message_of(first)["id"], over))
    wait = take(client)
    assert message_of(wait)["method"] == "tasks/result"
    respond(wait, body=result(message_of(wait)["id"], NOTHING))
    events = events_of(client)
    assert [one.request for one in events if isinstance(one, ResponseReceived)] == [calls[0]]
    client.close()
    failed = [one for one in events_of(client) if isinstance(one, RequestFailed)]
    assert [(one.request, one.reason) for one in failed] == [(calls[1], FailureReason.LOST)]
    assert second is not first


def test_an_http_error_to_the_wait_is_none_of_the_request() -> None:
    """OWN-072: a gateway or a busy server says nothing about the task."""
    client = begun(LEGACY, 0.0, get_stream=False, tasks=settings())
    first = take(client)
    value = initialized_by(LEGACY, {"tools": {}, "tasks": OF_TASKS})
    respond(first, body=result(message_of(first)["id"], value))
    respond(take(client), 202)
    only(Ready, events_of(client))
    made = {name: value for name, value in task("completed").items() if name != "ttlMs"}
    made["ttl"] = None
    call = client.send_request("tools/call", {"name": "t"}, task=True)
    exchange = take(client)
    respond(exchange, body=result(message_of(exchange)["id"], {"task": made}))
    wait = take(client)
    respond(wait, 503, error(message_of(wait)["id"], -32603, "overloaded"))
    events_of(client)
    assert call.open
    deadline = client.next_timeout()
    assert deadline is not None
    client.handle_timeout(deadline)
    exchange = take(client)
    respond(exchange, body=result(message_of(exchange)["id"], made))
    wait = take(client)
    respond(wait, body=result(message_of(wait)["id"], NOTHING))
    assert only(ResponseReceived, events_of(client)).request is call
