"""Tasks of 2025-11-25 pass through; their progress token outlives the first response."""

from typing import Any

import pytest

from sansmcp import (
    Config,
    IncomingRequest,
    JSONObject,
    LocalProtocolError,
    MessageIgnored,
    OutgoingRequest,
    ProgressReceived,
    ProtocolViolation,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
)
from sansmcp.testing import Pair
from tests.support.wire import asked, call, of, only, ready_client, ready_server, receive, sent

STAMP = "2025-11-25T00:00:00Z"
CALL: dict[str, Any] = {"name": "slow", "task": {"ttl": 1000}}


def task(status: str = "working", id: str = "t1") -> JSONObject:
    return {
        "taskId": id,
        "status": status,
        "ttl": 1000,
        "createdAt": STAMP,
        "lastUpdatedAt": STAMP,
    }


def working(pair: Pair, id: str = "t1") -> tuple[OutgoingRequest, IncomingRequest]:
    """A call that was accepted as a task, with a progress token."""
    ours = pair.client.send_request("tools/call", CALL, progress=True)
    theirs = pair.deliver_one(RequestReceived).request
    assert pair.server.send_progress(theirs, 1)
    assert pair.server.send_result(theirs, {"task": task(id=id)})
    assert pair.deliver_one(ResponseReceived).request is ours
    pair.clear_events()
    return ours, theirs


RELATED = {"io.modelcontextprotocol/related-task": {"taskId": "t1"}}


def reported_over(pair: Pair, how: str, status: str) -> None:
    """Let the server report this status of the task, in one of the possible ways."""
    if how == "notifications/tasks/status":
        pair.server.send_notification(how, task(status))
        pair.deliver()
        return
    pair.client.send_request(how, {} if how == "tasks/list" else {"taskId": "t1"})
    request = pair.deliver_one(RequestReceived).request
    if how == "tasks/list":
        pair.server.send_result(
            request, {"tasks": [task(id="t0"), task(status), task("failed", "t9")]}
        )
    elif how == "tasks/result":
        pair.server.send_result(request, {"content": []}, meta=RELATED)
    else:
        pair.server.send_result(request, task(status))
    pair.deliver()


WAYS = [
    ("notifications/tasks/status", "completed"),
    ("tasks/get", "failed"),
    ("tasks/cancel", "cancelled"),
    ("tasks/list", "completed"),
    ("tasks/result", "completed"),
]


@pytest.mark.parametrize(("how", "status"), WAYS)
def test_the_token_of_a_task_is_in_use_until_the_task_is_over(how: str, status: str) -> None:
    """PROG-011, PROG-012: progress must be delivered after the first response, until the task
    ends."""
    pair = Pair()
    ours, theirs = working(pair)
    if how != "tasks/result":  # it is answered when the task is over
        reported_over(pair, how, "working")
    pair.clear_events()
    assert pair.server.send_progress(theirs, 2)
    assert pair.deliver_one(ProgressReceived).request is ours
    with pytest.raises(LocalProtocolError) as caught:
        pair.client.send_request("tools/list", meta={"progressToken": ours.progress_token})
    assert caught.value.rule == "PROG-002"

    reported_over(pair, how, status)
    assert pair.server.send_progress(theirs, 3) is False
    pair.client.send_request("tools/list", meta={"progressToken": ours.progress_token})
    again = pair.deliver_one(RequestReceived).request
    assert again.progress_token == ours.progress_token


@pytest.mark.unjudged("the status that the server tells of is the fault that this is about")
def test_a_status_that_is_no_string_ends_nothing() -> None:
    """Receiving must not raise, and an invalid status is no end of the task."""
    pair = Pair()
    _, theirs = working(pair)
    pair.client.send_request("tasks/list")
    request = pair.deliver_one(RequestReceived).request
    assert pair.server.send_result(request, {"tasks": [{**task(), "status": []}]})
    pair.deliver_one(ResponseReceived)

    assert pair.server.send_progress(theirs, 2)
    assert pair.deliver_one(ProgressReceived).progress == 2


def test_an_answer_that_would_never_fit_makes_no_task() -> None:
    """An error is sent instead, so the client knows of no task, and the token must be free."""
    capabilities: JSONObject = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    config = Config(max_unsent_bytes=1_000)
    server = ready_server("2025-11-25", capabilities=capabilities, config=config)
    params = {**CALL, "_meta": {"progressToken": "p"}}
    request = asked(server, call(1, "tools/call", params))
    large = {**task(), "statusMessage": "x" * 1_000}
    assert not server.send_result(request, {"task": large})
    assert "error" in sent(server)[0]
    assert server.send_progress(request, 1) is False
    assert of(ProtocolViolation, receive(server, call(2, "tools/call", params))) == []


def test_progress_after_the_end_of_a_task_is_ignored() -> None:
    """The progress has crossed the end of the task."""
    pair = Pair()
    ours, theirs = working(pair)
    pair.server.send_progress(theirs, 2)
    held = pair.to_client.drop()
    reported_over(pair, "notifications/tasks/status", "completed")
    pair.clear_events()
    pair.to_client.put(held)
    pair.deliver()

    assert only(MessageIgnored, pair.client_events).id == ours.progress_token


@pytest.mark.parametrize(
    "answer",
    [
        {"task": task("completed")},
        {"content": []},
    ],
)
def test_a_call_that_became_no_lasting_task_frees_its_token(answer: JSONObject) -> None:
    """The task may end at once, or be declined."""
    pair = Pair()
    ours = pair.client.send_request("tools/call", CALL, progress=True)
    theirs = pair.deliver_one(RequestReceived).request
    pair.server.send_result(theirs, answer)
    pair.deliver()

    assert pair.server.send_progress(theirs, 1) is False
    pair.client.send_request("ping", meta={"progressToken": ours.progress_token})


@pytest.mark.unjudged("the application hands over a task without its members")
def test_a_task_without_a_name_frees_its_token() -> None:
    """The end of such a task could never be reported."""
    config = Config(check="none")
    pair = Pair(client_config=config, server_config=config)
    ours = pair.client.send_request("tools/call", CALL, progress=True)
    theirs = pair.deliver_one(RequestReceived).request
    pair.server.send_result(theirs, {"task": {"status": "working"}})
    pair.deliver()

    assert pair.server.send_progress(theirs, 1) is False
    pair.client.send_request("ping", meta={"progressToken": ours.progress_token})


def test_a_task_without_a_token_keeps_nothing() -> None:
    """Most tasks have no token, and must take no entry."""
    pair = Pair()
    pair.client.send_request("tools/call", CALL)
    theirs = pair.deliver_one(RequestReceived).request
    pair.server.send_result(theirs, {"task": task()})
    reported_over(pair, "notifications/tasks/status", "completed")

    assert pair.server.send_progress(theirs, 1) is False


def test_a_request_for_a_task_is_not_cancelled_by_the_notification() -> None:
    """CANC-005: each side must use `tasks/cancel`; a response still ends the request."""
    pair = Pair()
    ours = pair.client.send_request("tools/call", CALL)
    with pytest.raises(LocalProtocolError) as caught:
        pair.client.cancel(ours)
    assert caught.value.rule == "CANC-005"
    theirs = pair.deliver_one(RequestReceived).request
    pair.server.receive_data(
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}\n'
        % int(ours.id)
    )
    assert only(MessageIgnored, pair.server_events).rule == "CANC-005"
    assert theirs.open
    assert pair.server.send_result(theirs, {"task": task()})


def test_a_request_for_a_task_that_times_out_is_not_cancelled_either() -> None:
    """The request must end on this side, and the task may go on."""
    client = ready_client(
        "2025-11-25", server={"tasks": {"requests": {"tools": {"call": {}}}}, "tools": {}}
    )
    client.send_request("tools/call", CALL, timeout=1, now=0)
    sent(client)
    client.handle_timeout(1)

    assert isinstance(client.next_event(), RequestFailed)
    assert sent(client) == []


def test_a_task_is_asked_for_only_where_it_is_declared() -> None:
    """A `task` member that was not declared must raise in the sender, and be ignored by the
    receiver."""
    client = ready_client("2025-11-25", server={"tools": {}, "tasks": {}})
    with pytest.raises(LocalProtocolError) as caught:
        client.send_request("tools/call", CALL)
    assert caught.value.rule == "TASK-002"

    server = ready_server("2025-11-25")
    request = asked(server, call(1, "tools/call", CALL))
    with pytest.raises(LocalProtocolError, match="content is missing"):
        server.send_result(request, {"task": task()})
    assert server.send_result(request, {"content": []})


@pytest.mark.parametrize("result", [{"task": 5}, {"task": None}])
def test_a_created_task_is_an_object(result: JSONObject) -> None:
    """An invalid task in the result must be refused."""
    pair = Pair()
    pair.client.send_request("tools/call", CALL)
    theirs = pair.deliver_one(RequestReceived).request

    with pytest.raises(LocalProtocolError, match="task has the wrong type"):
        pair.server.send_result(theirs, result)


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_older_revisions_have_no_tasks(revision: str) -> None:
    """In these revisions `task` is a plain member, and the methods do not exist."""
    pair = Pair(revision=revision)
    ours = pair.client.send_request("tools/call", CALL)
    assert pair.client.cancel(ours)
    with pytest.raises(LocalProtocolError) as caught:
        pair.client.send_request("tasks/get", {"taskId": "t"})
    assert caught.value.rule == "OWN-020"


def test_no_more_tokens_of_tasks_are_kept_than_requests_may_be_in_flight() -> None:
    """Without a limit, a peer could fill the table."""
    pair = Pair(client_config=Config(max_requests=1), server_config=Config(max_requests=1))
    working(pair)
    ours = pair.client.send_request("tools/call", CALL, progress=True)
    theirs = pair.deliver_one(RequestReceived).request
    pair.server.send_result(theirs, {"task": task(id="t2")})
    pair.deliver()

    assert pair.server.send_progress(theirs, 1) is False
    pair.client.send_request("ping", meta={"progressToken": ours.progress_token})
    assert not of(ProtocolViolation, pair.client_events)
