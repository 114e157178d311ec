"""Tasks of 2026-07-28 on the client: one handle with one ending, whatever the server does."""

from typing import Any

import pytest

from sansmcp import (
    ClientConnection,
    ErrorReceived,
    Event,
    FailureReason,
    InputRequired,
    JSONObject,
    LocalProtocolError,
    MessageIgnored,
    OutgoingRequest,
    Ready,
    RequestFailed,
    ResponseReceived,
    TaskInputRequired,
    TaskUpdated,
)
from tests.support.modern import (
    CAPABILITIES,
    EVERYTHING,
    FORM,
    ROOTS,
    SUBSCRIPTION,
    acknowledged,
    discovered,
    input_required,
    modern_client,
)
from tests.support.tasks import EXTENSION, NOTHING, STAMP, settings
from tests.support.wire import (
    CLIENT_INFO,
    broken,
    drain,
    error,
    note,
    of,
    only,
    receive,
    result,
    sent,
)

SERVER: JSONObject = {"tools": {}, "extensions": {EXTENSION: {}}}
DONE: JSONObject = {**NOTHING, "resultType": "complete"}


def task(status: str = "working", id: str = "t1", **more: Any) -> JSONObject:
    """A task as a server tells of it."""
    return {
        "taskId": id,
        "status": status,
        "createdAt": STAMP,
        "lastUpdatedAt": STAMP,
        "ttlMs": 1000,
        "pollIntervalMs": 2000,
        **more,
    }


def following(
    declared: JSONObject = EVERYTHING, server: JSONObject = SERVER, **changed: Any
) -> ClientConnection:
    """A client that follows tasks and has found a server with them, at the time 0."""
    client = ClientConnection(
        info=CLIENT_INFO,
        capabilities=declared,
        revisions=("2026-07-28",),
        tasks=settings(**changed),
    )
    client.start(now=0.0)
    (probe,) = sent(client)
    only(Ready, receive(client, result(probe["id"], discovered(server))))
    return client


def called(client: ClientConnection, **options: Any) -> tuple[OutgoingRequest, int]:
    """A call that may become a task, and its id."""
    given: dict[str, Any] = {"task": True, **options}
    call = client.send_request("tools/call", {"name": "t"}, **given)
    (message,) = sent(client)
    return call, message["id"]


def became(client: ClientConnection, id: int, **members: Any) -> list[Event]:
    """The events of the answer of the server: it has made a task."""
    return receive(client, result(id, {"resultType": "task", **task(), **members}))


def started(client: ClientConnection, **options: Any) -> OutgoingRequest:
    """A call that has become the task t1."""
    call, id = called(client, **options)
    updated = only(TaskUpdated, became(client, id))
    assert (updated.request, updated.task["status"]) == (call, "working")
    assert sent(client) == []
    return call


def polled(client: ClientConnection, answer: JSONObject | None = None, **after: Any) -> list[Event]:
    """The events of the next poll, which is answered with this task."""
    deadline = client.next_timeout()
    assert deadline is not None
    client.handle_timeout(deadline)
    (poll,) = sent(client)
    assert (poll["method"], poll["params"]["taskId"]) == ("tasks/get", "t1")
    return receive(client, result(poll["id"], {"resultType": "complete", **(answer or task())}))


# ------------------------------------------------------------------------------------- one ending


def test_the_result_of_a_task_is_that_of_its_request() -> None:
    """XTASK-008, XTASK-028, XTASK-032, XTASK-048, XTASK-068, XTASK-077, XTASK-080."""
    client = following()
    call = started(client)
    assert (call.task_id, call.open, client.pending_requests) == ("t1", True, (call,))
    assert client.next_timeout() == pytest.approx(2.0, rel=0.1)
    assert polled(client) == []
    assert polled(client, task(pollIntervalMs=5000, statusMessage="half")) != []
    assert client.next_timeout() == pytest.approx(9.0, rel=0.1)  # XTASK-078
    ending = only(ResponseReceived, polled(client, task("completed", result=NOTHING))[1:])
    assert (ending.request, ending.result) == (call, NOTHING)
    assert (call.open, client.pending_requests, client.next_timeout()) == (False, (), None)


def test_a_server_may_answer_at_once() -> None:
    """XTASK-008: it alone decides."""
    client = following()
    call, id = called(client)
    assert only(ResponseReceived, receive(client, result(id, DONE))).request is call
    assert call.task_id is None


def test_the_declaration_is_in_requests_for_tasks_only() -> None:
    """XTASK-002, XTASK-003, XTASK-006, XTASK-066: no other wish is sent."""
    client = following()
    client.send_request("tools/call", {"name": "t"}, task=5000)
    client.send_request("tools/call", {"name": "t"})
    first, second = sent(client)
    assert first["params"]["_meta"][CAPABILITIES] == {**EVERYTHING, "extensions": {EXTENSION: {}}}
    assert second["params"]["_meta"][CAPABILITIES] == EVERYTHING
    assert "task" not in first["params"]


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
def test_requests_about_tasks_that_the_application_sends_declare_the_extension(method: str) -> None:
    """XTASK-002, XTASK-014: without the declaration a server refuses them with -32021."""
    client = following()
    client.send_request(method, {"taskId": "t1", "inputResponses": {}})
    (message,) = sent(client)
    assert message["params"]["_meta"][CAPABILITIES]["extensions"] == {EXTENSION: {}}


def test_a_declaration_for_all_requests_is_followed_for_all() -> None:
    """XTASK-008, TASKX-003: the server may make a task of any of these calls."""
    client = following({**EVERYTHING, "extensions": {EXTENSION: {}}})
    call = client.send_request("tools/call", {"name": "t"})
    (message,) = sent(client)
    assert only(TaskUpdated, became(client, message["id"])).request is call


@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
def test_a_task_that_was_not_asked_for_is_invalid(method: str) -> None:
    """XTASK-009, XTASK-010, TASKX-003."""
    client = following()
    client.send_request(method, {"name": "t"} if method == "tools/call" else {})
    (message,) = sent(client)
    events = became(client, message["id"])
    assert only(RequestFailed, events[-1:]).reason is FailureReason.INVALID_ANSWER
    assert broken(events) == ["JSON-022"]


@pytest.mark.parametrize(
    "members", [{"status": "odd"}, {"status": 5}, {"taskId": None}, {"createdAt": 5}]
)
def test_a_task_that_is_none_is_invalid(members: JSONObject) -> None:
    """XTASK-034, XTASK-043: unknown members are no fault."""
    client = following()
    _, id = called(client)
    events = became(client, id, **members)
    assert only(RequestFailed, events[-1:]).reason is FailureReason.INVALID_ANSWER
    _, id = called(client)
    only(TaskUpdated, became(client, id, unknown=1))


def test_the_same_task_for_two_requests_is_invalid() -> None:
    """TASK-015: only one of them can be followed."""
    client = following()
    started(client)
    _, id = called(client)
    assert only(RequestFailed, became(client, id)[-1:]).reason is FailureReason.INVALID_ANSWER


def test_a_second_answer_to_a_request_that_became_a_task_is_ignored() -> None:
    """JSON-004: it must not end the request."""
    client = following()
    call, id = called(client)
    became(client, id)
    assert only(MessageIgnored, receive(client, result(id, DONE))).id == id
    assert call.open


@pytest.mark.parametrize("status", ["completed", "failed", "input_required", "cancelled"])
def test_a_task_may_be_over_when_it_is_made(status: str) -> None:
    """XTASK-031, XTASK-032: its payload is fetched at once."""
    client = following()
    call, id = called(client)
    events = became(client, id, status=status)
    if status == "cancelled":
        ending = only(RequestFailed, events[1:])
        assert (ending.request, ending.reason) == (call, FailureReason.TASK_CANCELLED)
        return
    only(TaskUpdated, events)
    assert [message["method"] for message in sent(client)] == ["tasks/get"]


def test_another_task_than_the_one_that_was_asked_for_is_no_answer() -> None:
    """XTASK-070: its result may be of another caller."""
    client = following(max_failed_polls=2)
    call = started(client)
    foreign = task("completed", id="t2", result=NOTHING)
    assert broken(polled(client, foreign)) == ["XTASK-070"]
    assert call.open
    assert only(RequestFailed, polled(client, foreign)[1:]).reason is FailureReason.LOST


def test_news_and_the_ending_share_nothing() -> None:
    """Who changes the result that an event has must not change that of another event."""
    client = following()
    started(client)
    asked = polled(client, task("input_required", inputRequests={"a": FORM}))
    (news,), (questions,) = of(TaskUpdated, asked), of(TaskInputRequired, asked)
    news.task["inputRequests"]["a"]["params"].clear()
    assert questions.questions == {"a": FORM}
    over = polled(client, task("completed", result={"content": []}))
    (news,), (ending,) = of(TaskUpdated, over), of(ResponseReceived, over)
    news.task["result"]["content"].append(1)
    assert ending.result == NOTHING


def test_errors_and_cancellations_of_a_task_end_its_request() -> None:
    """XTASK-046, XTASK-153: isError of a result is the application's affair."""
    for answer, kind in (
        (task("failed", error={"code": -5, "message": "m", "data": 1}), ErrorReceived),
        (task("cancelled"), RequestFailed),
        (task("failed"), RequestFailed),
        (task("failed", error={"code": "x"}), RequestFailed),
        (task("completed"), RequestFailed),
        (task("completed", result={"content": 5}), RequestFailed),
        (task("completed", result={**NOTHING, "isError": True}), ResponseReceived),
    ):
        client = following()
        call = started(client)
        ending = polled(client, answer)[-1]
        assert isinstance(ending, kind)
        assert ending.request is call
        assert client.next_timeout() is None
        if isinstance(ending, ErrorReceived):
            assert (ending.code, ending.message, ending.data) == (-5, "m", 1)


def test_a_task_that_is_gone_ends_its_request() -> None:
    """XTASK-059, XTASK-088: the poll is not repeated."""
    client = following()
    call = started(client)
    client.handle_timeout(3.0)
    (poll,) = sent(client)
    ending = only(RequestFailed, receive(client, error(poll["id"], -32602)))
    assert (ending.request, ending.reason) == (call, FailureReason.TASK_LOST)


def test_polls_that_fail_are_repeated_less_and_less_often() -> None:
    """OWN-072: and given up in the end; an answer begins the count anew."""
    client = following(max_failed_polls=3)
    call = started(client)
    waits: list[float] = []
    now = 0.0

    def fail(answer: JSONObject | None) -> list[Event]:
        nonlocal now
        deadline = client.next_timeout()
        assert deadline is not None
        waits.append(round(deadline - now))
        client.handle_timeout(deadline)
        now = deadline
        (poll,) = sent(client)
        return receive(client, answer | {"id": poll["id"]} if answer else error(poll["id"], -32603))

    assert fail(None) == []
    assert broken(fail(result(0, {"resultType": "complete", **task("odd")}))) == ["OWN-014"]
    assert fail(result(0, {"resultType": "complete", **task()})) == []
    for _ in range(2):
        assert fail(None) == []
    ending = only(RequestFailed, fail(None))
    assert (ending.request, ending.reason) == (call, FailureReason.LOST)
    assert "3 polls" in ending.text
    assert waits == [2, 4, 8, 2, 4, 8]


def test_a_poll_without_an_answer_has_failed() -> None:
    """OWN-072: after the longest interval."""
    client = following(max_poll_seconds=10.0, max_failed_polls=1)
    started(client)
    client.handle_timeout(3.0)
    sent(client)
    client.handle_timeout(14.0)
    assert only(RequestFailed, drain(client)).reason is FailureReason.LOST


def half(count: int) -> bytes:
    """Entropy that lies in the middle."""
    return b"\x80" * count


def test_intervals_have_bounds_and_jitter() -> None:
    """XTASK-077: neither a busy loop nor a wait without end, and not all clients at once."""
    for asked, least, most in (
        (1, 0.05, 0.06),
        (10**9, 60, 66),
        (10**4000, 60, 66),  # too large for a float
        (2500.5, 2.5, 2.8),
        (-1, 1, 1.1),
        (None, 1, 1.1),
        ("x", 1, 1.1),
    ):
        client = following(entropy=half)
        _, id = called(client)
        members = task(pollIntervalMs=asked)
        members = {name: value for name, value in members.items() if value is not None}
        if asked == "x":
            members.pop("pollIntervalMs")
        receive(client, result(id, {"resultType": "task", **members}))
        deadline = client.next_timeout()
        assert deadline is not None
        assert least < deadline < most


def test_without_entropy_there_is_no_jitter() -> None:
    """The setting is of this side: the receipt of a message does not raise for it."""

    def broken_source(count: int) -> bytes:
        raise OSError(count)

    client = following(entropy=broken_source)
    started(client)
    assert client.next_timeout() == 2.0


def test_polls_may_fail_for_as_long_as_the_application_wants() -> None:
    """OWN-072: the interval grows to its bound, and not beyond what a float can hold."""
    client = following(max_failed_polls=1100)
    call = started(client)
    for _ in range(1099):
        deadline = client.next_timeout()
        assert deadline is not None
        client.handle_timeout(deadline)
        (poll,) = sent(client)
        assert receive(client, error(poll["id"], -32603)) == []
    assert call.open


# ------------------------------------------------------------------------------------- questions


def test_questions_of_a_task_are_asked_and_answered_once() -> None:
    """XTASK-063, XTASK-064, XTASK-092 to XTASK-096, XTASK-109, XTASK-110."""
    client = following()
    call = started(client)
    asked = task("input_required", inputRequests={"a": FORM, "b": ROOTS})
    events = polled(client, asked)
    question = only(TaskInputRequired, events[1:])
    assert (question.request, question.questions) == (call, {"a": FORM, "b": ROOTS})
    assert polled(client, asked) == []

    assert client.provide_task_input(call, {"a": {"action": "decline"}})
    (update,) = sent(client)
    assert update["method"] == "tasks/update"
    assert update["params"]["taskId"] == "t1"
    assert update["params"]["inputResponses"] == {"a": {"action": "decline"}}
    assert update["params"]["_meta"][CAPABILITIES]["extensions"] == {EXTENSION: {}}
    assert receive(client, result(update["id"], {"resultType": "complete"})) == []
    with pytest.raises(LocalProtocolError, match="MRTR-019"):
        client.provide_task_input(call, {"a": {"action": "decline"}})
    assert polled(client, asked) == []  # the server may be slow to see the answer
    more = task("input_required", inputRequests={"b": ROOTS, "c": FORM})
    assert only(TaskInputRequired, polled(client, more)).questions == {"c": FORM}
    assert client.provide_task_input(call, {"b": {"roots": []}, "c": {"action": "cancel"}})


def test_so_many_questions_of_a_task_are_remembered_and_no_more() -> None:
    """OWN-074: a server cannot fill the memory of its client with keys."""
    client = following(max_questions=3)
    call = started(client)
    polled(client, task("input_required", inputRequests={"a": FORM, "b": FORM}))
    polled(client, task("input_required", inputRequests={"b": FORM, "c": FORM}))
    assert call.open
    ending = only(
        RequestFailed, polled(client, task("input_required", inputRequests={"c": FORM, "d": FORM}))
    )
    assert (ending.request, ending.reason) == (call, FailureReason.TOO_MANY_ROUNDS)
    assert [message["method"] for message in sent(client)] == ["tasks/cancel"]


def test_answers_that_do_not_fit_raise() -> None:
    """XTASK-092, XTASK-093."""
    client = following()
    call = started(client)
    plain, _ = called(client)
    polled(client, task("input_required", inputRequests={"a": FORM}))
    mistakes: list[tuple[OutgoingRequest, Any, str]] = [
        (plain, {"a": {"action": "accept"}}, "OWN-022"),
        (call, {}, "MRTR-019"),
        (call, {"zz": {}}, "MRTR-019"),
        (call, {"a": 5}, "MRTR-020"),
        (call, {"a": {}}, "MRTR-020"),
        (call, {"a": {"action": "accept", "resultType": "complete"}}, "MRTR-020"),
    ]
    for handle, responses, rule in mistakes:
        with pytest.raises(LocalProtocolError, match=rule):
            client.provide_task_input(handle, responses)
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        following().provide_task_input(call, {"a": {"action": "accept"}})
    with pytest.raises(LocalProtocolError, match="OWN-073"):
        modern_client().provide_task_input(call, {"a": {"action": "accept"}})


def test_questions_that_may_not_be_asked_are_reported() -> None:
    """XTASK-107, XTASK-108: the others are asked all the same."""
    client = following({"elicitation": {}})
    started(client)
    asked = {"a": FORM, "b": ROOTS, "c": {"method": "tools/list"}, "d": {**FORM, "id": 1}, "e": 5}
    events = polled(client, task("input_required", inputRequests=asked))
    assert broken(events) == ["MRTR-008", "MRTR-006", "MRTR-007", "MRTR-007"]
    assert set(of(TaskInputRequired, events)[0].questions) == {"a", "d"}
    assert broken(polled(client, task("input_required", inputRequests=5))) == ["OWN-014"]
    assert polled(client, task("input_required", inputRequests={})) == []
    assert polled(client, task("input_required")) == []


def test_an_update_of_a_task_that_is_gone_ends_the_request() -> None:
    """XTASK-100: a poll says so; the error may also be about the answers."""
    client = following()
    call = started(client)
    asked = task("input_required", inputRequests={"a": FORM, "b": FORM})
    polled(client, asked)
    client.provide_task_input(call, {"a": {"action": "accept"}})
    (update,) = sent(client)
    assert receive(client, error(update["id"], -32603)) == []
    assert sent(client) == []
    client.provide_task_input(call, {"b": {"action": "accept"}})
    (update,) = sent(client)
    assert receive(client, error(update["id"], -32602)) == []
    (poll,) = sent(client)
    assert receive(client, result(poll["id"], {"resultType": "complete", **asked})) == []
    (update,) = sent(client)
    assert set(update["params"]["inputResponses"]) == {"a", "b"}
    assert receive(client, error(update["id"], -32602)) == []
    (poll,) = sent(client)
    ending = only(RequestFailed, receive(client, error(poll["id"], -32602)))
    assert (ending.request, ending.reason) == (call, FailureReason.TASK_LOST)
    assert client.provide_task_input(call, {"a": {"action": "accept"}}) is False


def test_answers_whose_update_has_failed_are_sent_again() -> None:
    """XTASK-092, XTASK-095, XTASK-110: only those for which the server still waits."""
    client = following()
    call = started(client)
    asked = {"a": FORM, "b": FORM}
    polled(client, task("input_required", inputRequests=asked))
    answers: JSONObject = {"a": {"action": "decline"}, "b": {"action": "cancel"}}
    expected = dict(answers)
    assert client.provide_task_input(call, answers)
    answers.clear()
    (update,) = sent(client)
    assert receive(client, error(update["id"], -32603)) == []
    assert polled(client, task("input_required", inputRequests={"b": FORM})) == []
    (update,) = sent(client)
    assert update["params"]["inputResponses"] == {"b": expected["b"]}
    assert receive(client, result(update["id"], {"resultType": "complete"})) == []
    assert polled(client, task("input_required", inputRequests={"b": FORM})) == []
    assert sent(client) == []


@pytest.mark.parametrize("code", [-32602, -32603])
def test_updates_are_not_repeated_without_end(code: int) -> None:
    """OWN-072: the task is cancelled, for nobody could go on with it."""
    client = following(max_failed_polls=3)
    call = started(client)
    asked = {"resultType": "complete", **task("input_required", inputRequests={"a": FORM})}
    polled(client, asked)
    assert client.provide_task_input(call, {"a": {"action": "decline"}})
    for _ in range(2):
        (update,) = sent(client)
        assert receive(client, error(update["id"], code)) == []
        deadline = client.next_timeout()
        assert deadline is not None
        if code == -32603:
            client.handle_timeout(deadline)
        (poll,) = sent(client)
        assert receive(client, result(poll["id"], asked)) == []
    (update,) = sent(client)
    ending = only(RequestFailed, receive(client, error(update["id"], code, "no room")))
    assert (ending.request, ending.reason) == (call, FailureReason.LOST)
    assert ending.text == f"3 updates of the task of tools/call have failed: no room ({code})"
    assert [message["method"] for message in sent(client)] == ["tasks/cancel"]


def test_an_update_that_arrives_begins_the_count_anew() -> None:
    """OWN-072: an update without an answer has failed, too."""
    client = following(max_failed_polls=2, max_poll_seconds=5.0)
    call = started(client)
    asked = task("input_required", inputRequests={"a": FORM, "b": FORM})
    polled(client, asked)
    assert client.provide_task_input(call, {"a": {"action": "decline"}})
    (update,) = sent(client)
    receive(client, error(update["id"], -32603))
    polled(client, asked)
    (update,) = sent(client)
    receive(client, result(update["id"], {"resultType": "complete"}))
    assert client.provide_task_input(call, {"b": {"action": "decline"}})
    (update,) = sent(client)
    receive(client, error(update["id"], -32603))
    assert call.open
    polled(client, asked)
    (update,) = sent(client)
    while call.open:
        deadline = client.next_timeout()
        assert deadline is not None
        client.handle_timeout(deadline)
        for message in sent(client):
            if message["method"] == "tasks/get":
                receive(client, result(message["id"], {"resultType": "complete", **asked}))
    ending = only(RequestFailed, drain(client))
    assert ending.text == "2 updates of the task of tools/call have failed"


def test_a_task_whose_questions_cannot_be_answered_is_cancelled() -> None:
    """XTASK-107, XTASK-108: as soon as it waits for nothing else."""
    client = following({"elicitation": {}})
    call = started(client)
    polled(client, task("input_required", inputRequests={"a": FORM, "b": ROOTS}))
    assert client.provide_task_input(call, {"a": {"action": "decline"}})
    (update,) = sent(client)
    receive(client, result(update["id"], {"resultType": "complete"}))
    ending = polled(client, task("input_required", inputRequests={"b": ROOTS}))
    failed = only(RequestFailed, ending)
    assert (failed.request, failed.reason) == (call, FailureReason.INVALID_ANSWER)
    assert [message["method"] for message in sent(client)] == ["tasks/cancel"]


def test_an_update_that_has_failed_is_repeated_though_a_subscription_tells_of_changes() -> None:
    """XTASK-096: nothing changes, so nothing would be told."""
    client = following()
    call = started(client)
    id = listening(client, "t1")
    polled(client)
    asked = task("input_required", inputRequests={"a": FORM})
    told(client, id, **asked)
    assert client.provide_task_input(call, {"a": {"action": "decline"}})
    assert client.next_timeout() == pytest.approx(62.0, rel=0.1)  # for the answer to the update
    (update,) = sent(client)
    receive(client, error(update["id"], -32603))
    assert polled(client, asked) == []
    assert [message["method"] for message in sent(client)] == ["tasks/update"]


def test_a_request_may_be_asked_before_it_becomes_a_task() -> None:
    """XTASK-060, XTASK-061, XTASK-063: the retry declares the extension, too."""
    client = following()
    call, id = called(client)
    only(InputRequired, receive(client, input_required(id, {"a": FORM}, "s")))
    renewed = client.provide_input(call, {"a": {"action": "accept"}})
    (message,) = sent(client)
    assert message["params"]["_meta"][CAPABILITIES]["extensions"] == {EXTENSION: {}}
    assert only(TaskUpdated, became(client, message["id"])).request is renewed
    asked = task("input_required", inputRequests={"a": FORM})
    assert of(TaskInputRequired, polled(client, asked))  # another name space


# ----------------------------------------------------------------------------------- cancelling


def test_a_task_is_cancelled_by_its_own_request() -> None:
    """XTASK-114, XTASK-115, XTASK-120, XTASK-121, TASKX-011: the request ends at once."""
    client = following()
    call = started(client)
    assert client.cancel(call, reason="enough")
    ending = only(RequestFailed, drain(client))
    assert (ending.request, ending.reason) == (call, FailureReason.CANCELLED)
    (message,) = sent(client)
    assert (message["method"], message["params"]["taskId"]) == ("tasks/cancel", "t1")
    assert receive(client, result(message["id"], {"resultType": "complete"})) == []
    assert not client.cancel(call)
    assert client.next_timeout() is None


def test_a_server_that_ignores_a_cancellation_is_not_waited_for() -> None:
    """A request without an answer must not take room for ever."""
    client = following(max_poll_seconds=10.0)
    call = started(client)
    polled(client, task("input_required", inputRequests={"a": FORM}))
    assert client.provide_task_input(call, {"a": {"action": "decline"}})
    assert client.cancel(call)
    assert [message["method"] for message in sent(client)] == ["tasks/update", "tasks/cancel"]
    client.handle_timeout(20.0)
    assert client.next_timeout() is None
    assert [type(event) for event in drain(client)] == [RequestFailed]


def test_a_request_is_cancelled_as_any_other_before_it_is_a_task() -> None:
    """XTASK-067: and a task that was made meanwhile is cancelled, too."""
    client = following()
    call, id = called(client)
    assert client.cancel(call)
    assert [message["method"] for message in sent(client)] == ["notifications/cancelled"]
    drain(client)
    assert of(MessageIgnored, became(client, id))
    assert [message["method"] for message in sent(client)] == ["tasks/cancel"]


def test_a_late_answer_that_is_no_task_cancels_nothing() -> None:
    """Only a task goes on without its request."""
    client = following()
    for answer in (
        DONE,
        {**DONE, "taskId": "another"},
        {**DONE, "task": {"taskId": "another"}},
        {"resultType": "task", "taskId": 5},
    ):
        call, id = called(client)
        client.cancel(call)
        sent(client)
        receive(client, result(id, answer))
        assert sent(client) == []
    call, id = called(client)
    client.cancel(call)
    sent(client)
    receive(client, error(id, -32603))
    assert sent(client) == []


def test_a_timeout_cancels_the_task() -> None:
    """TIME-002: each poll restarts the silence, and max_timeout does not."""
    client = following()
    call = started(client, timeout=5.0, max_timeout=8.0)
    for _ in range(3):
        polled(client)
    assert call.open
    client.handle_timeout(8.5)
    failures = [event.reason for event in of(RequestFailed, drain(client))]
    assert failures == [FailureReason.TIMED_OUT]
    assert "tasks/cancel" in [message["method"] for message in sent(client)]


def test_the_time_between_two_polls_is_no_silence() -> None:
    """TIME-002: a server with a long interval would time out; one that is silent still does."""
    client = following()
    call = started(client, timeout=1.0)
    assert polled(client) == []
    deadline = client.next_timeout()
    assert deadline is not None
    client.handle_timeout(deadline)
    assert [message["method"] for message in sent(client)] == ["tasks/get"]
    client.handle_timeout(deadline + 1.0)
    (failed,) = of(RequestFailed, drain(client))
    assert (failed.request, failed.reason) == (call, FailureReason.TIMED_OUT)


def test_a_task_is_left_to_itself() -> None:
    """Invariant 8: the request ends, and nothing is sent; another process may resume the task."""
    client = following()
    call = started(client)
    plain, _ = called(client)
    for handle in (plain, started(following())):
        with pytest.raises(LocalProtocolError, match="OWN-022"):
            client.leave_task(handle)
    with pytest.raises(LocalProtocolError, match="OWN-073"):
        modern_client().leave_task(call)
    assert client.leave_task(call, now=1.0)
    ending = only(RequestFailed, drain(client))
    assert (ending.request, ending.reason) == (call, FailureReason.CANCELLED)
    assert not client.leave_task(call)
    assert (sent(client), client.next_timeout()) == ([], None)
    assert client.resume_task("t1").open


def test_failed_polls_do_not_restart_the_timeout() -> None:
    """TIME-002: the silence begins with the first poll that has no valid answer."""
    client = following()
    call = started(client, timeout=5.0)
    deadline = client.next_timeout()
    assert deadline is not None
    client.handle_timeout(deadline)
    receive(client, error(sent(client)[0]["id"], -32603))
    client.handle_timeout(deadline + 4.9)
    assert call.open
    client.handle_timeout(deadline + 5.1)
    assert only(RequestFailed, drain(client)).reason is FailureReason.TIMED_OUT


def test_the_poll_of_a_task_that_is_left_is_withdrawn() -> None:
    """Its answer is of no interest any more."""
    client = following()
    call = client.resume_task("t1")
    assert [message["method"] for message in sent(client)] == ["tasks/get"]
    assert client.leave_task(call)
    assert [message["method"] for message in sent(client)] == ["notifications/cancelled"]


def test_the_end_of_the_connection_ends_the_request() -> None:
    """Invariant 8: it is lost here, and goes on where it is resumed."""
    client = following()
    call = started(client)
    client.handle_timeout(3.0)
    client.receive_eof()
    failures = of(RequestFailed, drain(client))
    assert [(event.request, event.reason) for event in failures] == [(call, FailureReason.LOST)]
    assert call.task_id == "t1"


def test_a_task_is_resumed_by_another_connection() -> None:
    """XTASK-081: the id is all that is needed."""
    client = following()
    call = client.resume_task("t1", timeout=30.0, data="d")
    (poll,) = sent(client)
    assert (poll["method"], call.task_id, call.data) == ("tasks/get", "t1", "d")
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        client.resume_task("t1")
    events = receive(
        client, result(poll["id"], {"resultType": "complete", **task("completed", result=NOTHING)})
    )
    assert only(ResponseReceived, events[1:]).request is call


def test_a_task_that_cannot_be_resumed_raises() -> None:
    """Invariant 7."""
    client = following()
    wrong: Any = 5
    for id, method, rule in ((wrong, "tools/call", "OWN-014"), ("t", "tasks/none", "TASK-002")):
        with pytest.raises(LocalProtocolError, match=rule):
            client.resume_task(id, method)
    with pytest.raises(LocalProtocolError, match="CAP-004"):
        following(server={"tools": {}}).resume_task("t")
    with pytest.raises(LocalProtocolError, match="OWN-073"):
        modern_client().resume_task("t")
    client.close()
    with pytest.raises(LocalProtocolError, match="OWN-021"):
        client.resume_task("t")


@pytest.mark.parametrize(
    ("method", "task", "rule"),
    [
        ("tools/list", True, "XTASK-023"),
        ("tools/call", 0, "TASK-020"),
        ("tools/call", "x", "TASK-020"),
    ],
)
def test_a_request_that_never_becomes_a_task_raises(method: str, task: Any, rule: str) -> None:
    """XTASK-023: nothing is sent."""
    client = following()
    with pytest.raises(LocalProtocolError, match=rule):
        client.send_request(method, {"name": "t"} if method == "tools/call" else {}, task=task)
    assert sent(client) == []


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
@pytest.mark.parametrize("params", [{}, {"taskId": 5}, {"taskId": None}])
def test_requests_about_a_task_name_it(method: str, params: JSONObject) -> None:
    """XTASK-069: also those that the application sends."""
    client = following({"extensions": {EXTENSION: {}}})
    with pytest.raises(LocalProtocolError):
        client.send_request(method, {"inputResponses": {}, **params})
    assert sent(client) == []
    client.send_request(method, {"inputResponses": {}, "taskId": "t1"})
    (message,) = sent(client)
    assert message["params"]["taskId"] == "t1"


def test_a_task_needs_a_clock_and_tasks() -> None:
    """OWN-023, OWN-073: without a clock nothing would ever be polled."""
    client = ClientConnection(info=CLIENT_INFO, revisions=("2026-07-28",), tasks=settings())
    client.start()
    receive(client, result(sent(client)[0]["id"], discovered(SERVER)))
    with pytest.raises(LocalProtocolError, match="OWN-023"):
        client.send_request("tools/call", {"name": "t"}, task=True)
    with pytest.raises(LocalProtocolError, match="OWN-023"):
        client.resume_task("t")
    assert client.send_request("tools/call", {"name": "t"}, task=True, now=1.0).open
    with pytest.raises(LocalProtocolError, match="OWN-073"):
        modern_client().send_request("tools/call", {"name": "t"}, task=True)


# -------------------------------------------------------------------------------- subscriptions


def listening(client: ClientConnection, *granted: str) -> int:
    """Subscribe to t1; the server grants these."""
    client.listen({"taskIds": ["t1"]})
    (message,) = sent(client)
    assert message["params"]["_meta"][CAPABILITIES]["extensions"] == {EXTENSION: {}}
    id: int = message["id"]
    receive(client, acknowledged(id, {"taskIds": list(granted)} if granted else {}))
    return id


def told(client: ClientConnection, id: int, **members: Any) -> list[Event]:
    """The events of a notification."""
    params = {**task(**members), "_meta": {SUBSCRIPTION: id}}
    return receive(client, note("notifications/tasks", params))


def test_a_subscription_takes_the_place_of_polls() -> None:
    """XTASK-095, XTASK-123, XTASK-129: after the next poll there are few."""
    client = following()
    call = started(client)
    id = listening(client, "t1")
    polled(client)
    assert client.next_timeout() == pytest.approx(62.0, rel=0.01)
    events = told(client, id, status="input_required", inputRequests={"a": FORM})
    assert of(TaskInputRequired, events)[0].request is call
    assert told(client, id, status="odd")
    events = told(client, id, status="completed", result=NOTHING)
    assert of(ResponseReceived, events)[0].request is call
    assert told(client, id, status="completed", result=NOTHING)  # after the end: only delivered


def test_a_poll_that_was_sent_before_the_subscription_is_repeated() -> None:
    """XTASK-130: a change after its answer, and before the subscription, is told by nobody."""
    client = following()
    started(client)
    client.handle_timeout(2.1)
    (early,) = sent(client)
    listening(client, "t1")
    receive(client, result(early["id"], {"resultType": "complete", **task()}))
    assert client.next_timeout() == pytest.approx(4.1, rel=0.01)
    polled(client)
    assert client.next_timeout() == pytest.approx(64.1, rel=0.01)


def test_a_poll_that_fails_is_repeated_though_a_subscription_tells_of_changes() -> None:
    """OWN-072: after the interval, and not seldom."""
    client = following()
    call = started(client)
    client.handle_timeout(2.1)
    (poll,) = sent(client)
    listening(client, "t1")
    assert receive(client, error(poll["id"], -32603)) == []
    assert client.next_timeout() == pytest.approx(6.1, rel=0.01)
    ending = polled(client, task("completed", result=NOTHING))[-1]
    assert only(ResponseReceived, [ending]).request is call


def test_news_that_are_not_valid_are_reported_and_make_a_poll() -> None:
    """XTASK-034: what they were to tell is not told again."""
    client = following()
    call = started(client)
    id = listening(client, "t1")
    polled(client)
    events = told(client, id, status="done")
    assert broken(events) == ["OWN-014"]
    (poll,) = sent(client)
    over = {"resultType": "complete", **task("completed", result=NOTHING)}
    assert of(ResponseReceived, receive(client, result(poll["id"], over)))[0].request is call


def test_the_end_of_the_time_of_a_task_is_found_though_no_news_tell_it() -> None:
    """XTASK-088, XTASK-129: a server may just forget the task."""
    client = following()
    call = started(client, timeout=30.0)
    listening(client, "t1")
    polled(client)
    client.handle_timeout(69.0)
    assert call.open
    (poll,) = sent(client)
    ending = only(RequestFailed, receive(client, error(poll["id"], -32602)))
    assert (ending.request, ending.reason) == (call, FailureReason.TASK_LOST)


def test_a_server_that_is_silent_times_out_during_a_subscription() -> None:
    """TIME-002: the timeout counts from the poll that has no answer."""
    client = following()
    call = started(client, timeout=5.0)
    listening(client, "t1")
    polled(client)
    client.handle_timeout(69.0)
    assert [message["method"] for message in sent(client)] == ["tasks/get"]
    client.handle_timeout(74.1)
    (failed,) = of(RequestFailed, drain(client))
    assert (failed.request, failed.reason) == (call, FailureReason.TIMED_OUT)


def test_nothing_is_sent_after_the_end_of_a_connection_with_a_subscription() -> None:
    """Invariant 8: also where the subscription is older than the request."""
    client = following()
    listening(client, "t1")
    call = client.resume_task("t1")
    (poll,) = sent(client)
    receive(client, result(poll["id"], {"resultType": "complete", **task()}))
    client.receive_eof()
    failures = of(RequestFailed, drain(client))
    assert [(event.request, event.reason) for event in failures] == [(call, FailureReason.LOST)]
    assert (sent(client), client.next_timeout()) == ([], None)


@pytest.mark.parametrize("granted", [("t1",), ()])
def test_tasks_are_polled_without_a_subscription(granted: tuple[str, ...]) -> None:
    """XTASK-130: ids that were not granted, and all after its end."""
    client = following()
    started(client)
    id = listening(client, *granted)
    if granted:
        polled(client)
        receive(client, result(id, {"resultType": "complete", "_meta": {SUBSCRIPTION: id}}))
        assert [message["method"] for message in sent(client)] == ["tasks/get"]
    else:
        assert polled(client) == []
        assert client.next_timeout() is not None


def test_the_end_of_a_subscription_to_a_task_that_is_not_followed_changes_nothing() -> None:
    """The application may watch a task of another process."""
    client = following()
    id = listening(client, "t1")
    receive(client, result(id, {"resultType": "complete", "_meta": {SUBSCRIPTION: id}}))
    assert sent(client) == []


# ------------------------------------------------------------------------------------- at the edge


def test_a_client_that_cannot_send_any_more_loses_its_tasks() -> None:
    """Invariant 8: they cannot be polled, those among them that are made only now."""
    client = following()
    call = started(client)
    other, id = called(client)
    client.send_failed()
    assert [event.request for event in of(RequestFailed, drain(client))] == [call]
    failed = only(RequestFailed, became(client, id, taskId="t2"))
    assert (failed.request, failed.reason) == (other, FailureReason.LOST)


def test_an_open_poll_ends_with_its_request() -> None:
    """Its answer is of no interest any more, and no surprise: the application asked nothing."""
    client = following()
    call = started(client)
    client.handle_timeout(3.0)
    (poll,) = sent(client)
    assert client.cancel(call)
    methods = [message["method"] for message in sent(client)]
    assert sorted(methods) == ["notifications/cancelled", "tasks/cancel"]
    drain(client)
    assert receive(client, result(poll["id"], {"resultType": "complete", **task()})) == []


def test_a_poll_that_is_answered_too_late_is_told() -> None:
    """CANC-011: its task goes on, and the peer is slow."""
    client = following()
    started(client)
    client.handle_timeout(3.0)
    (poll,) = sent(client)
    client.handle_timeout(3.0 + settings().max_poll_seconds)
    drain(client)
    late = receive(client, result(poll["id"], {"resultType": "complete", **task()}))
    assert only(MessageIgnored, late).rule == "CANC-011"


def test_wake_and_the_clock_work_with_the_verbs_of_tasks() -> None:
    """An adapter writes when it is woken."""
    woken: list[int] = []
    client = ClientConnection(
        info=CLIENT_INFO,
        capabilities=EVERYTHING,
        revisions=("2026-07-28",),
        tasks=settings(),
        wake=lambda: woken.append(1),
    )
    client.start(now=0.0)
    receive(client, result(sent(client)[0]["id"], discovered(SERVER)))
    woken.clear()
    call = client.resume_task("t1", now=1.0)
    assert woken
    (poll,) = sent(client)
    asked = {"resultType": "complete", **task("input_required", inputRequests={"a": FORM})}
    receive(client, result(poll["id"], asked))
    woken.clear()
    assert client.provide_task_input(call, {"a": {"action": "accept"}}, now=2.0)
    assert woken
    sent(client)
    drain(client)
    woken.clear()
    assert client.leave_task(call)
    assert woken
