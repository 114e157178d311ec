"""Tasks of 2025-11-25 on the side that has them: a server, or a client."""

from typing import Any

import pytest

from sansmcp import (
    ClientConnection,
    JSONObject,
    LocalProtocolError,
    OutgoingRequest,
    ProgressReceived,
    RequestAnswered,
    RequestCancelled,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    Task,
    TaskCancelled,
    TaskEnd,
    TaskInputReceived,
    TaskStatus,
)
from sansmcp.testing import Pair
from tests.support.modern import EVERYTHING, FORM, ROOTS, URL, cancelled
from tests.support.tasks import (
    NOTHING,
    RELATED,
    STAMP,
    START,
    Host,
    host,
    legacy,
    settings,
)
from tests.support.wire import (
    CLIENT_INFO,
    SERVER_INFO,
    call,
    error,
    initialize,
    note,
    of,
    only,
    result,
    sent,
)

STATUS = "notifications/tasks/status"


def shown(task: Task, status: str = "working", **more: Any) -> JSONObject:
    """The members of a task in a message."""
    return {
        "taskId": task.id,
        "status": status,
        "createdAt": STAMP,
        "lastUpdatedAt": STAMP,
        "ttl": 3_600_000,
        "pollInterval": 1000,
        **more,
    }


def related(task: Task) -> JSONObject:
    """The `_meta` of a message that belongs to a task."""
    return {RELATED: {"taskId": task.id}}


def ended(kept: Host, task: Task, result: JSONObject = NOTHING) -> None:
    """End a task, and forget what is said about it."""
    kept.do(kept.server.complete_task, task, result)
    sent(kept.server)


# ---------------------------------------------------------------------- declaring and creating


def test_a_server_declares_what_it_accepts_as_a_task(kept: Host) -> None:
    """TASK-001, XTASK-020: and nothing of the other form."""
    kept.receive(initialize(1, "2025-11-25"))
    declared = sent(kept.server)[0]["result"]["capabilities"]
    of_tools: JSONObject = {"tools": {"call": {}}}
    assert declared["tasks"] == {"list": {}, "cancel": {}, "requests": of_tools}
    assert not declared.get("extensions")


def test_what_the_application_declares_stays() -> None:
    """TASK-004: without tasks.list the method is refused."""
    kept = legacy(host(capabilities={"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}))
    assert kept.code("tasks/list") == -32601
    assert kept.code("tasks/cancel", {"taskId": "t"}) == -32601


@pytest.mark.parametrize(
    ("task", "ttl"),
    [
        ({}, 3_600_000),
        ({"ttl": 60_000}, 60_000),
        ({"ttl": 90_000_000}, 86_400_000),
        ({"ttl": 0}, 3_600_000),
        ({"ttl": "x"}, 3_600_000),
    ],
)
def test_a_request_is_answered_with_a_task(kept: Host, task: JSONObject, ttl: int) -> None:
    """TASK-013, TASK-015, TASK-016, TASK-019, TASK-020: its time to live is bounded."""
    request = legacy(kept).called(task=task)
    made = kept.server.create_task(request, at=START, meta={"m": 1})
    assert made is not None
    assert kept.told() == [result(request.id, {"task": shown(made, ttl=ttl), "_meta": {"m": 1}})]
    assert kept.get(made.id) == shown(made, ttl=ttl)


def test_any_time_to_live_is_granted_where_there_is_no_bound() -> None:
    """TASK-020."""
    kept = legacy(host(max_ttl_ms=None))
    assert kept.create(kept.called(task={"ttl": 10**12})).record.ttl_ms == 10**12
    longest = kept.create(kept.called(task={"ttl": 10**4000}))  # too large for a float
    assert longest.record.ttl_ms == 10**4000
    kept.server.handle_timeout(1e9)
    assert longest.open


def test_a_plain_request_becomes_no_task(kept: Host) -> None:
    """TASK-011, TASK-013: its sender does not expect one."""
    legacy(kept)
    request = kept.called(task=None)
    with pytest.raises(LocalProtocolError, match="TASK-013"):
        kept.server.create_task(request, at=START)
    assert kept.server.send_result(request, NOTHING)


@pytest.mark.parametrize("support", ["required", "optional"])
def test_a_call_that_is_accepted_as_a_task_has_no_plain_result(support: Any) -> None:
    """TASK-013: it is answered with a task, which the application may make too, or an error."""
    kept = legacy(host(tools={"slow": support}))
    request = kept.called()
    with pytest.raises(LocalProtocolError, match="TASK-013"):
        kept.server.send_result(request, NOTHING, now=1.0)
    assert request.open
    assert sent(kept.server) == []
    made = kept.server.create_task(request, at=START)
    assert made is not None
    assert kept.told() == [result(request.id, {"task": shown(made)})]
    other = kept.called()
    assert kept.server.send_error(other, -5, "m")
    assert sent(kept.server) == [error(other.id, -5, "m")]
    own = kept.called()
    assert kept.server.send_result(own, {"task": shown(made)})
    assert sent(kept.server) == [result(own.id, {"task": shown(made)})]


def test_a_question_that_is_accepted_as_a_task_has_no_plain_result() -> None:
    """TASK-013: a client has declared that it takes such requests as tasks."""
    of_client: JSONObject = {"requests": {"elicitation": {"create": {}}}}
    pair = Pair(
        ClientConnection(
            info=CLIENT_INFO,
            capabilities={**EVERYTHING, "tasks": of_client},
            revisions=("2025-11-25",),
            tasks=settings(),
        ),
        ServerConnection(info=SERVER_INFO, revisions=("2025-11-25",), tasks=settings()),
    )
    pair.server.send_request(FORM["method"], FORM["params"], task=True)
    request = pair.deliver_one(RequestReceived).request
    with pytest.raises(LocalProtocolError, match="TASK-013"):
        pair.client.send_result(request, {"action": "decline"})
    assert pair.client.create_task(request, at=START)


@pytest.mark.parametrize(
    ("support", "as_task", "plain"),
    [
        ("required", True, False),
        ("optional", True, True),
        ("forbidden", False, True),
        (None, False, True),
    ],
)
def test_the_support_of_a_tool_is_honoured(support: str | None, as_task: bool, plain: bool) -> None:
    """TASK-006 to TASK-010: a call of the other kind gets -32601."""
    kept = legacy(host(tools={} if support is None else {"t": support}))
    calls: list[tuple[JSONObject, bool]] = [
        ({"name": "t", "task": {}}, as_task),
        ({"name": "t"}, plain),
    ]
    for params, good in calls:
        events = kept.receive(call(len(params), "tools/call", params))
        assert bool(of(RequestReceived, events)) is good
        codes = [answer["error"]["code"] for answer in sent(kept.server)]
        assert codes == ([] if good else [-32601])


def test_a_tool_for_tasks_serves_clients_that_were_told_of_none() -> None:
    """TASK-010 holds where tasks of tools are declared: others could not call it at all."""
    kept = legacy(host(tools={"t": "required"}, capabilities={"tools": {}, "tasks": {}}))
    assert of(RequestReceived, kept.receive(call(1, "tools/call", {"name": "t"})))


# --------------------------------------------------------------------------------- the methods


def test_the_result_waits_for_the_end_of_the_task(kept: Host) -> None:
    """TASK-023 to TASK-025: it is what the request would have been answered with."""
    task = legacy(kept).create()
    events = kept.receive(call(1, "tasks/result", {"taskId": task.id}))
    assert (events, sent(kept.server), kept.server.open_requests) == ([], [], ())
    events = kept.do(kept.server.complete_task, task, NOTHING, meta={"m": 1})
    assert only(RequestAnswered, events).request.method == "tasks/result"
    inner = {**NOTHING, "_meta": {"m": 1, **related(task)}}
    told = sent(kept.server)
    assert result(1, inner) in told
    assert note(STATUS, shown(task, "completed")) in told
    assert kept.ask("tasks/result", {"taskId": task.id})["result"] == inner


def test_the_error_of_a_task_is_that_of_its_result(kept: Host) -> None:
    """TASK-023, TASK-040: the status has a message."""
    task = legacy(kept).create()
    kept.do(kept.server.fail_task, task, -32002, "no such file", [1])
    sent(kept.server)
    answer = kept.ask("tasks/result", {"taskId": task.id})
    assert answer["error"] == {"code": -32002, "message": "no such file", "data": [1]}
    assert kept.get(task.id) == shown(task, "failed", statusMessage="no such file")


def test_a_tool_error_is_a_failed_task_with_a_result(kept: Host) -> None:
    """TASK-040, XTASK-153: the result can be fetched all the same."""
    task = legacy(kept).create()
    ended(kept, task, {**NOTHING, "isError": True})
    said = kept.get(task.id)
    assert said["status"] == "failed"
    assert said["statusMessage"]
    inner = {**NOTHING, "isError": True, "_meta": related(task)}
    assert kept.ask("tasks/result", {"taskId": task.id})["result"] == inner


def test_a_wait_for_the_result_can_be_cancelled(kept: Host) -> None:
    """The task goes on, and the answer is not sent."""
    task = legacy(kept).create()
    kept.receive(call(1, "tasks/result", {"taskId": task.id}))
    kept.receive(call(2, "tasks/result", {"taskId": task.id}))
    assert of(RequestCancelled, kept.receive(cancelled(1))) == []
    kept.do(kept.server.complete_task, task, NOTHING)
    assert [message.get("id") for message in sent(kept.server) if "id" in message] == [2]


def test_a_cancelled_task_is_cancelled_before_the_answer(kept: Host) -> None:
    """TASK-036 to TASK-038: it stays cancelled, and a second cancel is refused."""
    task = legacy(kept).create()
    kept.receive(call(1, "tasks/result", {"taskId": task.id}))
    events = kept.receive(call(2, "tasks/cancel", {"taskId": task.id}))
    assert of(TaskCancelled, events)[0].cause is TaskEnd.PEER
    told = sent(kept.server)
    assert result(2, shown(task, "cancelled")) in told
    assert [answer["id"] for answer in told if "error" in answer] == [1]
    assert not kept.server.complete_task(task, NOTHING)
    assert kept.code("tasks/cancel", {"taskId": task.id}) == -32602
    assert kept.code("tasks/result", {"taskId": task.id}) == -32603
    assert kept.get(task.id)["status"] == "cancelled"


def test_the_task_of_a_message_is_its_parameter(kept: Host) -> None:
    """TASK-028, TASK-027: other metadata is ignored, and none is added."""
    legacy(kept)
    one, other = kept.create(), kept.create()
    params = {"taskId": one.id, "_meta": related(other)}
    for method in ("tasks/get", "tasks/cancel"):
        kept.receive(call(1, method, params))
        (answer,) = (message for message in sent(kept.server) if "id" in message)
        assert answer["result"]["taskId"] == one.id
        assert "_meta" not in answer["result"]


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
def test_a_task_that_is_not_there_is_refused(kept: Host, method: str) -> None:
    """TASK-039."""
    assert legacy(kept).code(method, {"taskId": "no"}) == -32602


def test_all_tasks_are_listed_page_by_page() -> None:
    """TASK-033 to TASK-035: with a cursor while there are more."""
    for store in ("memory", "ask"):
        kept = legacy(host(store=store, page_size=2))
        made = [kept.create(at=START + number).id for number in range(5)]
        seen: list[str] = []
        cursor: JSONObject = {}
        sizes: list[int] = []
        while True:
            page = kept.ask("tasks/list", cursor)["result"]
            seen += [task["taskId"] for task in page["tasks"]]
            sizes.append(len(page["tasks"]))
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert (seen, sizes) == (made, [2, 2, 1])


@pytest.mark.parametrize("cursor", ["", "x", "WyJrMSIsNV0="])
def test_a_cursor_of_another_list_is_refused(kept: Host, cursor: str) -> None:
    """TASK-039: also one whose key is a number."""
    assert legacy(kept).code("tasks/list", {"cursor": cursor}) == -32602


def test_an_empty_list_has_one_page(kept: Host) -> None:
    """TASK-035."""
    assert legacy(kept).ask("tasks/list")["result"] == {"tasks": []}


def test_forms_do_not_meet(kept: Host) -> None:
    """XTASK-021, XTASK-152: a task of one revision does not exist for requests of the other."""
    old = legacy(kept).create()
    kept.is_legacy = False
    new = kept.create()
    assert kept.code("tasks/get", {"taskId": old.id}) == -32602
    kept.is_legacy = True
    assert kept.code("tasks/get", {"taskId": new.id}) == -32602
    assert [task["taskId"] for task in kept.ask("tasks/list")["result"]["tasks"]] == [old.id]


@pytest.mark.parametrize(
    ("step", "from_working", "from_input_required"),
    [
        ("update_task", "working", "input_required"),
        ("require_task_input", "input_required", "input_required"),
        ("complete_task", "completed", "completed"),
        ("fail_task", "failed", "failed"),
        ("cancel_task", "cancelled", "cancelled"),
        ("tasks/cancel", "cancelled", "cancelled"),
        ("tasks/get", "working", "input_required"),
        ("answer", "working", "working"),
    ],
)
@pytest.mark.parametrize("is_asked", [False, True])
def test_each_step_leads_to_one_status(
    kept: Host, step: str, from_working: str, from_input_required: str, is_asked: bool
) -> None:
    """TASK-017, TASK-018: and from a status that is final there is none."""
    task, server = legacy(kept).create(), kept.server
    question = 7
    if is_asked:
        kept.do(server.require_task_input, task, {"a": FORM})
        (question,) = (message["id"] for message in sent(server) if "id" in message)
    arguments: dict[str, tuple[Any, ...]] = {
        "require_task_input": ({"b": FORM},),
        "complete_task": (NOTHING,),
        "fail_task": (-32603, "x"),
    }

    def do() -> None:
        if step == "answer":
            kept.receive(result(question, {"action": "decline"}))
        elif step.startswith("tasks/"):
            kept.receive(call(5, step, {"taskId": task.id}))
        else:
            getattr(server, step)(task, *arguments.get(step, ()))
            kept.events()
        sent(server)

    do()
    expected = from_input_required if is_asked else from_working
    assert kept.get(task.id)["status"] == expected
    server.cancel_task(task)
    kept.events()
    sent(server)
    final = kept.get(task.id)
    assert final["status"] == (expected if expected in ("completed", "failed") else "cancelled")
    do()
    assert kept.get(task.id) == final


# ------------------------------------------------------------------------- questions and progress


def test_questions_are_requests_that_name_the_task(kept: Host) -> None:
    """TASK-026, TASK-029: the task waits until the last of them is answered."""
    task = legacy(kept).create()
    kept.do(kept.server.require_task_input, task, {"a": FORM, "b": URL, "c": ROOTS})
    told = sent(kept.server)
    asked = [message for message in told if "id" in message]
    assert [message["method"] for message in asked] == [
        "elicitation/create",
        "elicitation/create",
        "roots/list",
    ]
    assert all(message["params"]["_meta"] == related(task) for message in asked)
    assert asked[1]["params"]["elicitationId"]
    assert note(STATUS, shown(task, "input_required")) in told
    assert kept.get(task.id)["status"] == "input_required"

    events = kept.receive(result(asked[0]["id"], {"action": "decline"}))
    first = only(TaskInputReceived, events)
    assert (first.responses, set(first.missing)) == ({"a": {"action": "decline"}}, {"b", "c"})
    kept.receive(result(asked[2]["id"], {"roots": []}))
    (last,) = of(TaskInputReceived, kept.receive(result(asked[1]["id"], {"action": "accept"})))
    assert (last.responses, last.missing) == ({"b": {"action": "accept"}}, ())
    sent(kept.server)
    assert kept.get(task.id)["status"] == "working"


def test_questions_are_withdrawn_with_their_task(kept: Host) -> None:
    """Nobody needs the answers any more."""
    task = legacy(kept).create()
    kept.do(kept.server.require_task_input, task, {"a": FORM})
    (asked,) = (message for message in sent(kept.server) if "id" in message)
    kept.receive(call(1, "tasks/cancel", {"taskId": task.id}))
    named = [
        message["params"]["requestId"]
        for message in sent(kept.server)
        if message.get("method") == "notifications/cancelled"
    ]
    assert named == [asked["id"]]


def test_a_question_that_is_not_answered_lets_the_task_fail(kept: Host) -> None:
    """The work cannot go on, and the client learns why."""
    task = legacy(kept).create()
    kept.do(kept.server.require_task_input, task, {"a": FORM, "b": FORM})
    first, second = (message for message in sent(kept.server) if "id" in message)
    (over,) = of(TaskCancelled, kept.receive(error(first["id"], -1)))
    assert (over.cause, over.task) == (TaskEnd.UNANSWERED, task)
    assert "elicitation/create" in over.text
    told = sent(kept.server)
    assert [
        message["params"]["requestId"]
        for message in told
        if message.get("method") == "notifications/cancelled"
    ] == [second["id"]]
    assert kept.code("tasks/result", {"taskId": task.id}) == -32603


def test_a_question_that_may_not_be_asked_raises(kept: Host) -> None:
    """Invariant 7: nothing is asked then."""
    task = legacy(kept, {"elicitation": {}}).create()
    for wrong, rule in (({"a": ROOTS}, "MRTR-008"), ({"a": URL}, "MRTR-008")):
        with pytest.raises(LocalProtocolError, match=rule):
            kept.server.require_task_input(task, wrong)
    small = legacy(host(), EVERYTHING)
    task = small.create()
    questions = {str(number): ROOTS for number in range(10_001)}
    with pytest.raises(LocalProtocolError, match="OWN-005"):
        small.server.require_task_input(task, questions)
    assert small.get(task.id)["status"] == "working"


def test_more_questions_may_follow(kept: Host) -> None:
    """TASK-029: the task waits for all of them."""
    task = legacy(kept).create()
    kept.do(kept.server.require_task_input, task, {"a": ROOTS})
    kept.do(kept.server.require_task_input, task, {"b": ROOTS})
    first, second = (message["id"] for message in sent(kept.server) if "id" in message)
    kept.receive(result(first, {"roots": []}))
    assert task.record.status.text == "input_required"
    kept.receive(result(second, {"roots": []}))
    assert task.record.status.text == "working"


def test_nothing_is_asked_before_the_handshake_is_done() -> None:
    """LIFE-006: a client may call a tool before, and cannot be asked."""
    kept = host()
    kept.receive(initialize(1, "2025-11-25", EVERYTHING))
    sent(kept.server)
    kept.is_legacy = True
    task = kept.create()
    with pytest.raises(LocalProtocolError, match="LIFE-006"):
        kept.server.require_task_input(task, {"a": ROOTS})


def test_progress_of_a_task_goes_on_until_its_end(kept: Host) -> None:
    """PROG-011, PROG-012: under the token of the request."""
    legacy(kept)
    request = kept.called(_meta={"progressToken": "p"})
    task = kept.create(request)
    assert kept.server.send_progress(request, 1)
    ended(kept, task)
    assert not kept.server.send_progress(request, 2)


def test_a_call_for_a_task_is_not_cancelled_by_a_notification(kept: Host) -> None:
    """CANC-005: tasks/cancel does that."""
    legacy(kept)
    request = kept.called()
    kept.receive(cancelled(request.id))
    assert kept.create(request).open


# ------------------------------------------------------------------------ a client that has tasks


def both(**changed: Any) -> Pair:
    """A server, and a client that answers sampling and elicitation with tasks."""
    requests: JSONObject = {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}}
    capabilities: JSONObject = {
        **EVERYTHING,
        "tasks": {"list": {}, "cancel": {}, "requests": requests},
    }
    client = ClientConnection(
        info=CLIENT_INFO,
        capabilities=capabilities,
        revisions=("2025-11-25",),
        tasks=settings(**changed),
    )
    server = ServerConnection(
        info=SERVER_INFO, capabilities={"tools": {}}, revisions=("2025-11-25",), tasks=settings()
    )
    return Pair(client, server)


def sampled(pair: Pair) -> tuple[OutgoingRequest, Task]:
    """A request of the server that the client has answered with a task."""
    params: JSONObject = {"messages": [], "maxTokens": 1, "task": {"ttl": 1000}}
    call = pair.server.send_request("sampling/createMessage", params, progress=True)
    request = pair.deliver_one(RequestReceived).request
    task = pair.client.create_task(request, at=START)
    assert task is not None
    assert pair.deliver_one(ResponseReceived).request is call
    assert pair.client.send_progress(request, 1)
    assert pair.deliver_one(ProgressReceived).request is call
    pair.clear_events()
    return call, task


def asked(pair: Pair, method: str, params: JSONObject) -> Any:
    """The result of a request of the server."""
    call = pair.server.send_request(method, params)
    pair.deliver()
    (event,) = (one for one in of(ResponseReceived, pair.server_events) if one.request is call)
    pair.clear_events()
    return event.result


def test_either_side_may_have_tasks() -> None:
    """TASK-001, TASK-023, TASK-035, TASK-041: of sampling and elicitation on a client."""
    pair = both()
    _, task = sampled(pair)
    assert asked(pair, "tasks/get", {"taskId": task.id})["status"] == "working"
    assert [one["taskId"] for one in asked(pair, "tasks/list", {})["tasks"]] == [task.id]
    answer = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}}
    with pytest.raises(LocalProtocolError, match="OWN-014"):
        pair.client.complete_task(task, NOTHING)
    assert pair.client.complete_task(task, answer)
    assert asked(pair, "tasks/result", {"taskId": task.id}) == {**answer, "_meta": related(task)}
    assert pair.client.open_tasks == ()


def test_a_server_cancels_the_task_of_a_client() -> None:
    """TASK-037, TASK-038."""
    pair = both()
    _, task = sampled(pair)
    pair.server.send_request("tasks/cancel", {"taskId": task.id})
    pair.deliver()
    assert of(TaskCancelled, pair.client_events)[0].task is task
    assert task.status is TaskStatus.CANCELLED
