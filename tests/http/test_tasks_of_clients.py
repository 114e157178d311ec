"""Tasks of clients over HTTP (2025-11-25): sampling that takes long, and who waits for it."""

import copy
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

from sansmcp import (
    ErrorReceived,
    FailureReason,
    IncomingRequest,
    LocalProtocolError,
    OutgoingRequest,
    ProgressReceived,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    Task,
    TaskCancelled,
    TaskEnd,
    TaskRecord,
    TasksWanted,
    TaskToStore,
    TaskUpdated,
    TaskWanted,
)
from sansmcp.http import (
    ClientEndpoint,
    MemoryEventLog,
    ServerEndpoint,
    Session,
    SessionLost,
    Sessions,
)
from sansmcp.testing import HTTPPair
from tests.support.http.client_endpoint import URL, new_client
from tests.support.modern import EVERYTHING, LEGACY
from tests.support.tasks import NOTHING, START, Shelf, settings
from tests.support.wire import CLIENT_INFO, SAMPLED, SAMPLING, SERVER_INFO

E = TypeVar("E")
OF_CLIENT: dict[str, Any] = {
    "list": {},
    "cancel": {},
    "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}},
}


def of(kind: type[E], events: Iterable[object]) -> list[E]:
    """The events of a kind, at either side."""
    return [event for event in events if isinstance(event, kind)]


def served(*, log: bool = True) -> ServerEndpoint:
    """A server with sessions that follows tasks of its clients."""
    numbers = iter(range(1, 1000))
    return ServerEndpoint(
        info=SERVER_INFO,
        capabilities={"tools": {}},
        revisions=(LEGACY,),
        sessions=Sessions(
            new_id=lambda: f"session-{next(numbers)}", event_log=MemoryEventLog if log else None
        ),
        tasks=settings(),
    )


def paired(*, get_stream: bool = True, log: bool = True, **changed: Any) -> HTTPPair:
    """A client that keeps tasks of its server, in an open session."""
    client = ClientEndpoint(
        URL,
        info=CLIENT_INFO,
        capabilities={**EVERYTHING, "tasks": OF_CLIENT},
        revisions=(LEGACY,),
        get_stream=get_stream,
        tasks=settings(**changed),
    )
    return HTTPPair(client, served(log=log))


def session_of(pair: HTTPPair) -> Session:
    """The one session of the server."""
    (session,) = pair.server.sessions
    return session


def asked(pair: HTTPPair, **about: Any) -> tuple[OutgoingRequest, IncomingRequest]:
    """A request of the server that asks for a task, at both sides."""
    about = about or {"session": session_of(pair)}
    call = pair.server.send_request("sampling/createMessage", SAMPLING, task=True, **about)
    request = pair.deliver_one(RequestReceived).request
    assert request.accepts_task
    return call, request


def started(pair: HTTPPair, **about: Any) -> tuple[OutgoingRequest, Task]:
    """A request of the server that has become a task of the client."""
    call, request = asked(pair, **about)
    task = pair.client.create_task(request, at=START, now=pair.now)
    assert task is not None
    assert pair.deliver_one(TaskUpdated).request is call
    assert call.task_id == task.id
    pair.clear_events()
    return call, task


def called(pair: HTTPPair) -> IncomingRequest:
    """A request of the client that its server works on."""
    pair.client.send_request("tools/call", {"name": "t"})
    return pair.deliver_one(RequestReceived).request


def later(pair: HTTPPair, seconds: float = 1.2) -> None:
    """Let time pass, and deliver what it causes."""
    pair.advance(seconds)
    pair.deliver()


def test_a_server_polls_a_task_of_its_client_and_gets_its_result() -> None:
    """TASK-001, TASK-013, TASK-023: each message about the task is an exchange of its own."""
    pair = paired()
    call, task = started(pair)
    assert pair.client.open_tasks == (task,)
    assert pair.client.followed_tasks == (task.id,)
    assert pair.client.follows_task(task.id)
    assert pair.client.update_task(task, message="half", keep={"step": 1})
    assert task.record.keep == b'{"step":1}'
    later(pair)
    assert of(TaskUpdated, pair.server_events)[0].task["statusMessage"] == "half"
    assert pair.client.complete_task(task, SAMPLED)
    later(pair)
    (ending,) = of(ResponseReceived, pair.server_events)
    assert (ending.request, ending.result["model"]) == (call, SAMPLED["model"])
    assert not pair.client.open_tasks
    assert not of(RequestReceived, pair.client_events)  # polls are answered by the library


def test_the_end_of_a_task_is_told_by_a_notification() -> None:
    """TASK-031: it has a POST of its own, and the server polls at once."""
    pair = paired()
    call, task = started(pair)
    assert pair.client.fail_task(task, -1, "no model", {"x": 1})
    pair.deliver()
    (ending,) = of(ErrorReceived, pair.server_events)
    assert (ending.request, ending.code, ending.data) == (call, -1, {"x": 1})


def test_a_status_that_a_kept_connection_loses_is_sent_again() -> None:
    """The server looks again, and a second look changes nothing."""
    pair = paired()
    call, task = started(pair)
    assert pair.client.complete_task(task, SAMPLED)
    pair.exchanges[-1].client.receive_failure("reset", kept=True)
    pair.deliver()
    assert of(ResponseReceived, pair.server_events)[0].request is call


def test_a_task_is_cancelled_by_either_side() -> None:
    """TASK-036 to TASK-038."""
    pair = paired()
    call, task = started(pair)
    other, second = started(pair)
    assert pair.server.cancel(call)
    pair.deliver()
    (over,) = of(TaskCancelled, pair.client_events)
    assert (over.task, over.cause) == (task, TaskEnd.PEER)
    assert not pair.client.complete_task(task, SAMPLED)
    assert pair.client.cancel_task(second, message="no")
    pair.deliver()
    ended = {one.request: one.reason for one in of(RequestFailed, pair.server_events)}
    assert ended == {call: FailureReason.CANCELLED, other: FailureReason.TASK_CANCELLED}


def test_progress_of_a_task_goes_to_the_server() -> None:
    """PROG-011: the token lasts until the end of the task."""
    pair = paired()
    session = session_of(pair)
    call = pair.server.send_request(
        "sampling/createMessage", SAMPLING, session=session, task=True, progress=True
    )
    request = pair.deliver_one(RequestReceived).request
    task = pair.client.create_task(request, at=START)
    assert task is not None
    assert pair.client.send_progress(request, 1)
    pair.deliver()
    assert of(ProgressReceived, pair.server_events)[0].request is call
    assert pair.client.complete_task(task, SAMPLED)
    assert not pair.client.send_progress(request, 2)


@pytest.mark.parametrize("log", [True, False])
def test_polls_go_the_way_of_the_request(log: bool) -> None:
    """TASK-045: the client has no GET stream, and hears the server on the stream of its call."""
    pair = paired(get_stream=False, log=log)
    request = called(pair)
    call, task = started(pair, request=request)
    later(pair)
    assert pair.client.update_task(task, message="half")
    later(pair)
    assert of(TaskUpdated, pair.server_events)[0].task["statusMessage"] == "half"
    assert pair.client.complete_task(task, SAMPLED)
    pair.deliver()
    assert of(ResponseReceived, pair.server_events)[0].request is call
    assert pair.server.send_result(request, NOTHING)


def test_polls_go_to_a_get_stream_after_the_end_of_their_own() -> None:
    """The call of the client is answered before its task is over."""
    pair = paired()
    request = called(pair)
    call, task = started(pair, request=request)
    assert pair.server.send_result(request, NOTHING)
    pair.deliver()
    assert pair.client.complete_task(task, SAMPLED)
    later(pair)
    assert of(ResponseReceived, pair.server_events)[-1].request is call


def test_a_task_that_no_stream_can_ask_for_is_lost() -> None:
    """OWN-072: neither a stream nor a log takes the polls."""
    pair = paired(get_stream=False, log=False)
    request = called(pair)
    call, _ = started(pair, request=request)
    assert pair.server.send_result(request, NOTHING)
    for _ in range(10):
        later(pair, 20.0)
    (failed,) = of(RequestFailed, pair.server_events)
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)
    assert "no stream" in failed.text


def test_a_stream_that_breaks_loses_no_result() -> None:
    """TASK-024: the answer to `tasks/result` is POSTed, and needs no stream of the server."""
    pair = paired()
    call, task = started(pair)
    assert pair.client.complete_task(task, SAMPLED)
    for exchange in pair.exchanges:
        if exchange.client.method == "GET":
            exchange.cut()
    later(pair, 5.0)
    later(pair, 5.0)
    assert of(ResponseReceived, pair.server_events)[0].request is call


def test_a_task_outlives_a_session_that_is_lost() -> None:
    """The server that was started again finds it by its id; what waited for it has ended."""
    pair = paired()
    _, task = started(pair)
    waiting = pair.server.send_request(
        "tasks/result", {"taskId": task.id}, session=session_of(pair)
    )
    pair.deliver()
    assert waiting.open
    pair.server = served()
    pair.client.send_request("tools/list")
    pair.deliver()
    assert of(SessionLost, pair.client_events)
    assert not of(RequestCancelled, pair.client_events)  # the application knows nothing of the wait
    assert pair.client.open_tasks == (task,)
    assert pair.client.update_task(task, message="again", now=pair.now)
    call = pair.server.resume_task(
        task.id, "sampling/createMessage", session=session_of(pair), now=pair.now
    )
    pair.deliver()
    assert of(TaskUpdated, pair.server_events)[0].task["statusMessage"] == "again"
    assert pair.client.complete_task(task, SAMPLED, at=START)
    later(pair)
    assert of(ResponseReceived, pair.server_events)[0].request is call


def test_a_resumed_task_is_cancelled_by_its_request() -> None:
    """The endpoint finds the session of a request that was never sent in it."""
    pair = paired()
    call, task = started(pair)
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        pair.server.resume_task(task.id, "sampling/createMessage", session=session_of(pair))
    assert pair.server.end_session(session_of(pair))
    assert not call.open
    pair.client.send_request("tools/list")
    pair.deliver()
    resumed = pair.server.resume_task(
        task.id, "sampling/createMessage", session=session_of(pair), data="x"
    )
    assert resumed.data == "x"
    pair.deliver()
    assert pair.server.cancel(resumed)
    pair.deliver()
    assert [one.cause for one in of(TaskCancelled, pair.client_events)] == [TaskEnd.PEER]


def test_tasks_end_with_the_conversation_and_with_their_time() -> None:
    """One timer for all of them, and one end."""
    pair = paired(ttl_ms=1000)
    started(pair)
    pair.advance(1.1)
    assert [one.cause for one in of(TaskCancelled, pair.client_events)] == [TaskEnd.EXPIRED]
    _, task = started(pair)
    pair.client.close()
    assert [one.cause for one in of(TaskCancelled, pair.client_events)] == [TaskEnd.CLOSED]
    assert not pair.client.complete_task(task, SAMPLED)


def test_a_request_of_a_lost_session_becomes_no_task() -> None:
    """The answer is late: nobody waits for it."""
    pair = paired()
    _, request = asked(pair)
    pair.server = served()
    pair.client.send_request("tools/list")
    pair.deliver()
    assert of(RequestCancelled, pair.client_events)[0].request is request
    assert pair.client.create_task(request, at=START) is None
    assert pair.client.open_tasks == ()


def test_the_time_of_a_head_is_that_of_tasks() -> None:
    """OWN-023: who tells the time with the responses need not tell it again."""
    pair = paired()
    _, request = asked(pair)
    with pytest.raises(LocalProtocolError, match="OWN-023"):
        pair.client.create_task(request)
    pair.client.send_request("tools/list")
    exchange = pair.exchanges[-1]
    exchange.deliver_request()
    exchange.client.receive_head(200, [("Content-Type", "application/json")], at=START)
    task = pair.client.create_task(request)
    assert task is not None
    assert task.record.created_at == START


def test_a_store_of_the_application_keeps_tasks_of_the_server() -> None:
    """TASK-033, TASK-035: each question is answered by its verb, in any session."""
    pair, shelf = paired(store="ask"), Shelf()

    def settle() -> None:
        pair.deliver()
        while events := list(pair.client_events):
            pair.client_events.clear()
            for event in events:
                if isinstance(event, TaskWanted | TasksWanted | TaskToStore):
                    shelf.answer(pair.client, event)
            pair.deliver()

    call, request = asked(pair)
    task = pair.client.create_task(request, at=START, now=0.0)
    assert task is not None
    pair.deliver()
    assert call.task_id is None
    settle()
    assert call.task_id == task.id
    listed = pair.server.send_request("tasks/list", session=session_of(pair))
    settle()
    answer = [one for one in of(ResponseReceived, pair.server_events) if one.request is listed]
    assert [one["taskId"] for one in answer[0].result["tasks"]] == [task.id]

    other = paired(store="ask")
    taken = other.client.adopt_task(TaskRecord.from_bytes(shelf.records[task.id]), at=START)
    assert other.client.complete_task(taken, SAMPLED)
    for event in of(TaskToStore, other.client_events):
        shelf.answer(other.client, event)
    pair.client.task_changed(taken.record)
    assert [one.cause for one in of(TaskCancelled, pair.client_events)] == [TaskEnd.ELSEWHERE]
    pair.deliver()
    settle()
    assert [one for one in of(ResponseReceived, pair.server_events) if one.request is call]
    shelf.fails = True
    lost = pair.server.send_request("tasks/get", {"taskId": task.id}, session=session_of(pair))
    settle()
    (failed,) = of(ErrorReceived, pair.server_events)
    assert (failed.request, failed.code) == (lost, -32603)


def test_verbs_need_tasks_and_tasks_of_this_endpoint() -> None:
    """OWN-022, OWN-073."""
    pair, other, without = paired(), paired(), new_client()
    _, request = asked(pair)
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        other.client.create_task(request, at=START)
    task = pair.client.create_task(request, at=START)
    assert task is not None
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        other.client.complete_task(task, SAMPLED)
    with pytest.raises(LocalProtocolError, match="OWN-073"):
        without.complete_task(task, SAMPLED)
    assert (without.open_tasks, without.followed_tasks) == ((), ())
    assert not without.follows_task(task.id)
    plain = HTTPPair()
    (session,) = plain.server.sessions
    with pytest.raises(LocalProtocolError, match="OWN-073"):
        plain.server.resume_task("t", "sampling/createMessage", session=session)
    with pytest.raises(LocalProtocolError, match="OWN-073"):
        plain.server.send_request("sampling/createMessage", SAMPLING, session=session, task=True)


def test_a_copy_goes_on_by_itself() -> None:
    """All state is plain data: the copy of a task belongs to the copy of its endpoint."""
    pair = paired()
    _, task = started(pair)
    other, copied = copy.deepcopy((pair, task))
    assert other.client.complete_task(copied, SAMPLED)
    later(other)
    assert of(ResponseReceived, other.server_events)
    assert task.open
    assert pair.client.open_tasks == (task,)
