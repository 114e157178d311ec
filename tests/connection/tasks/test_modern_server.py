"""Tasks of 2026-07-28 on the server: the extension `io.modelcontextprotocol/tasks`."""

from typing import Any

import pytest

from sansmcp import (
    Config,
    Extension,
    ExtensionMethod,
    JSONObject,
    LimitReached,
    ListenerAdded,
    LocalProtocolError,
    RequestAnswered,
    RequestCancelled,
    RequestReceived,
    ServerConnection,
    Side,
    Task,
    TaskCancelled,
    TaskEnd,
    TaskInputReceived,
    TaskStatus,
)
from tests.support.modern import (
    EVERYTHING,
    FORM,
    ROOTS,
    SERVED_BY,
    SUBSCRIPTION,
    acknowledged,
    cancelled,
    envelope,
    modern,
    modern_server,
    requested,
)
from tests.support.tasks import (
    EXTENSION,
    NEEDED,
    NOTHING,
    STAMP,
    START,
    WITH_TASKS,
    Host,
    host,
    settings,
)
from tests.support.wire import (
    SERVER_INFO,
    broken,
    drain,
    initialize,
    of,
    only,
    receive,
    result,
    sent,
    wire,
)

DONE: JSONObject = {"resultType": "complete", "_meta": SERVED_BY}
"""The result of a request that needs no members."""


def shown(task: Task, status: str = "working", **more: Any) -> JSONObject:
    """The members of a task in a message."""
    return {
        "taskId": task.id,
        "status": status,
        "createdAt": STAMP,
        "lastUpdatedAt": STAMP,
        "ttlMs": 3_600_000,
        "pollIntervalMs": 1000,
        **more,
    }


def listening(kept: Host, *ids: str) -> None:
    """Subscribe to tasks, and forget the acknowledgement."""
    message = modern(1, "subscriptions/listen", {"notifications": {"taskIds": list(ids)}})
    message["params"]["_meta"] = envelope(WITH_TASKS)
    only(ListenerAdded, kept.receive(message))
    assert sent(kept.server)


# ----------------------------------------------------------------------------------- declaring


def test_a_server_with_tasks_declares_each_form_in_its_revision(kept: Host) -> None:
    """XTASK-001, XTASK-003, XTASK-018, XTASK-019: clients decide by what is declared."""
    capabilities = kept.ask("server/discover")["result"]["capabilities"]
    assert capabilities == {"tools": {}, "extensions": {EXTENSION: {}}}


def test_a_server_without_tools_declares_no_calls_as_tasks() -> None:
    """TASK-001: what it does not have cannot be called at all."""
    kept = host(capabilities={"prompts": {}})
    assert kept.ask("server/discover")["result"]["capabilities"]["extensions"] == {EXTENSION: {}}
    kept.receive(initialize(1, "2025-11-25"))
    assert "tasks" not in sent(kept.server)[0]["result"]["capabilities"]


def test_a_declared_extension_stays_as_it_is() -> None:
    """XTASK-003: other extensions of the server must not be lost."""
    other: JSONObject = {"com.example/x": {}}
    kept = host(capabilities={"tools": {}, "extensions": other})
    declared = kept.ask("server/discover")["result"]["capabilities"]["extensions"]
    assert declared == {**other, EXTENSION: {}}


def test_without_tasks_the_methods_are_unknown() -> None:
    """A server that takes no part must not declare or answer them."""
    server = modern_server(capabilities={"tools": {}})
    receive(server, modern(1, "tasks/update", {"taskId": "t", "inputResponses": {}}))
    receive(server, modern(2, "tasks/get", {"taskId": "t"}))
    assert [answer["error"]["code"] for answer in sent(server)] == [-32601, -32601]
    request = requested(server, modern(3, "tools/call", {"name": "t"}))
    with pytest.raises(LocalProtocolError, match="OWN-073"):
        server.create_task(request)
    assert server.open_tasks == ()


@pytest.mark.parametrize("method", ["tasks/get", "notifications/tasks"])
def test_the_names_of_the_extension_are_used_for_nothing_else(method: str) -> None:
    """XTASK-022: another extension cannot give them another meaning."""
    kind: Any = "notification" if method.startswith("notifications/") else "request"
    sender = Side.SERVER if kind == "notification" else Side.CLIENT
    other = ExtensionMethod(name=method, kind=kind, sender=sender, revisions=("2026-07-28",))
    config = Config(extensions=[Extension(methods=[other])])
    with pytest.raises(ValueError, match=f"{method} is a method of the extension"):
        host(config=config)


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_server_asks_for_no_tasks_of_its_client(kept: Host, method: str) -> None:
    """XTASK-025: in 2026-07-28 only servers have tasks."""
    params: JSONObject = {"taskId": "t", "inputResponses": {}}
    with pytest.raises(LocalProtocolError):
        kept.server.send_request(method, params, request=kept.called())
    assert sent(kept.server) == []


@pytest.mark.parametrize("declared", [EVERYTHING, {"tasks": {"cancel": {}}}, {"extensions": {}}])
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_methods_of_tasks_need_the_declaration_with_each_request(
    kept: Host, method: str, declared: JSONObject
) -> None:
    """XTASK-002, XTASK-012, XTASK-014, XTASK-017: not even the existence of a task is told."""
    task = kept.create()
    kept.capabilities = declared
    for id in (task.id, "gate-test"):
        error = kept.ask(method, {"taskId": id, "inputResponses": {}})["error"]
        assert (error["code"], error["data"]) == (-32021, NEEDED)
    assert task.status is TaskStatus.WORKING


def test_a_subscription_to_tasks_needs_the_declaration(kept: Host) -> None:
    """XTASK-012, XTASK-015: the error names what is missing."""
    kept.capabilities = EVERYTHING
    error = kept.ask("subscriptions/listen", {"notifications": {"taskIds": ["t"]}})["error"]
    assert (error["code"], error["data"]) == (-32021, NEEDED)


def test_a_request_without_the_declaration_never_becomes_a_task(kept: Host) -> None:
    """XTASK-004, XTASK-007, TASKX-001: what the client declared before does not count."""
    kept.create()
    kept.capabilities = EVERYTHING
    request = kept.called()
    with pytest.raises(LocalProtocolError, match="XTASK-007") as caught:
        kept.server.create_task(request, at=START)
    assert caught.value.needed == NEEDED["requiredCapabilities"]
    assert kept.server.send_result(request, NOTHING)


@pytest.mark.parametrize(
    ("method", "params"),
    [("resources/read", {"uri": "file:///a"}), ("prompts/get", {"name": "p"})],
)
def test_only_calls_of_tools_become_tasks(method: str, params: JSONObject) -> None:
    """XTASK-023: clients take a task as the answer to anything else for an invalid one."""
    kept = host(capabilities={"tools": {}, "resources": {}, "prompts": {}})
    request = only(
        RequestReceived, kept.receive(modern(1, method, params, envelope(WITH_TASKS)))[1:]
    )
    with pytest.raises(LocalProtocolError, match="XTASK-023"):
        kept.server.create_task(request.request, at=START)


def test_a_tool_that_is_a_task_only_refuses_clients_without_tasks(kept: Host) -> None:
    """XTASK-011, XTASK-012, XTASK-151, TASKX-004: it cannot be served in any other way."""
    kept = host(tools={"slow": "required"})
    assert kept.called().open
    kept.capabilities = EVERYTHING
    error = kept.ask("tools/call", {"name": "slow"})["error"]
    assert (error["code"], error["data"]) == (-32021, NEEDED)
    assert kept.called("other").open


def test_a_task_member_in_the_params_means_nothing(kept: Host) -> None:
    """XTASK-065, XTASK-066, TASKX-010: it is a member of the other form."""
    task = kept.create(kept.called(task={"ttl": 5}))
    assert task.record.ttl_ms == 3_600_000
    kept.capabilities = EVERYTHING
    assert kept.server.send_result(kept.called(task={}), NOTHING)


# ------------------------------------------------------------------------------------ creating


def test_a_task_is_the_answer_to_its_request(kept: Host) -> None:
    """XTASK-026, XTASK-029, XTASK-030, XTASK-033 to XTASK-042, TASKX-002: they lie flat."""
    request = kept.called()
    task = kept.server.create_task(request, meta={"a": 1}, at=START)
    assert task is not None
    assert not request.open
    with pytest.raises(LocalProtocolError, match="OWN-026"):
        kept.server.send_result(request, NOTHING)
    kept.events()
    members = {"resultType": "task", "_meta": {**SERVED_BY, "a": 1}}
    assert sent(kept.server) == [result(request.id, {**shown(task), **members})]
    assert kept.server.open_requests == ()
    assert kept.server.open_tasks == (task,)
    assert (task.status, task.open, task.peer) == (TaskStatus.WORKING, True, request.peer)
    assert repr(task) == "<Task of tools/call working open=True>"


def test_the_task_is_there_before_its_client_knows_of_it() -> None:
    """XTASK-057, XTASK-058, TASKX-005: a poll right after the answer must find it."""
    kept = host(store="ask")
    request = kept.called()
    task = kept.server.create_task(request, at=START)
    assert task is not None
    assert sent(kept.server) == []
    assert kept.server.open_requests == ()
    kept.events()
    assert kept.shelf.record(task.id) == task.record
    assert [answer["id"] for answer in sent(kept.server)] == [request.id]
    assert kept.get(task.id)["status"] == "working"


def test_ids_are_made_of_the_entropy_of_the_caller(kept: Host) -> None:
    """XTASK-144, TASK-042: nobody can guess them: 192 bits, each id another."""
    wanted: list[int] = []

    def entropy(count: int) -> bytes:
        wanted.append(count)
        return bytes([len(wanted)]) * count

    kept = host(entropy=entropy)
    ids = [kept.create().id for _ in range(2)]
    assert wanted == [24, 24]
    assert ids == ["01" * 24, "02" * 24]


@pytest.mark.parametrize("given", [b"short", "x" * 24, None])
def test_entropy_that_is_none_raises(given: object) -> None:
    """An id of fewer bits could be guessed."""

    def entropy(count: int) -> object:
        return given

    kept = host(entropy=entropy)
    request = kept.called()
    with pytest.raises(ValueError, match="24 bytes"):
        kept.server.create_task(request, at=START)
    assert request.open


def test_an_id_that_is_taken_makes_no_task() -> None:
    """TASK-015: entropy that repeats itself must not give one client the task of another."""
    for store in ("memory", "ask"):
        kept = host(store=store, entropy=bytes)
        first = kept.create()
        request = kept.called()
        second = kept.server.create_task(request, at=START)
        kept.events()
        (answer,) = sent(kept.server)
        assert answer["error"]["code"] == -32603
        assert second is None or not second.open
        assert first.open
        assert kept.server.open_tasks == (first,)


@pytest.mark.parametrize(
    ("members", "rule"),
    [
        ({"ttl_ms": 0}, "XTASK-040"),
        ({"ttl_ms": 1.5}, "XTASK-040"),
        ({"poll_ms": -1}, "XTASK-040"),
        ({"message": 7}, "OWN-014"),
        ({"message": "x" * 65_537}, "OWN-014"),
        ({"keep": {1, 2}}, "OWN-024"),
        ({"at": None}, "OWN-023"),
        ({"at": -1.0}, "OWN-023"),
        ({"at": 1e15}, "OWN-023"),
        ({"meta": 7}, "OWN-014"),
    ],
)
def test_a_task_that_cannot_be_made_leaves_its_request_open(
    members: dict[str, Any], rule: str
) -> None:
    """XTASK-040, invariant 7: a call that raises has changed nothing."""
    kept = host()
    request = kept.called()
    options: dict[str, Any] = {"at": START, **members}
    with pytest.raises(LocalProtocolError) as caught:
        kept.server.create_task(request, **options)
    assert caught.value.rule == rule
    assert request.open
    assert kept.server.send_result(request, NOTHING)


def test_the_time_to_live_and_the_interval_are_those_of_the_server(kept: Host) -> None:
    """XTASK-038, XTASK-039, XTASK-078, XTASK-083: both may change while the task goes on."""
    task = kept.create(ttl_ms=None, poll_ms=None, message="first", keep={"k": 1})
    assert kept.get(task.id) == {
        **{name: value for name, value in shown(task).items() if name != "pollIntervalMs"},
        "ttlMs": None,
        "statusMessage": "first",
        **DONE,
    }
    assert task.record.keep == b'{"k":1}'
    kept.do(kept.server.update_task, task, ttl_ms=5000, poll_ms=7, message=None)
    assert kept.get(task.id) == {**shown(task, ttlMs=5000, pollIntervalMs=7), **DONE}
    kept.do(kept.server.update_task, task, keep={"k": 2})
    assert task.record.keep == b'{"k":2}'
    mistakes: list[Any] = [{"ttl_ms": True}, {"poll_ms": 0}, {"message": 1}, {"keep": {1, 2}}]
    for wrong in mistakes:
        with pytest.raises(LocalProtocolError):
            kept.server.update_task(task, **wrong)
    kept.do(kept.server.update_task, task, keep=None)
    assert task.record.keep == b""


def test_a_request_that_was_cancelled_becomes_no_task(kept: Host) -> None:
    """XTASK-067: until the answer the client may cancel it as any request."""
    request = kept.called()
    only(RequestCancelled, kept.receive(cancelled(request.id)))
    assert kept.server.create_task(request, at=START) is None


def test_a_request_that_is_cancelled_while_its_task_is_stored_cancels_it() -> None:
    """The client gets no answer, so nobody would ever fetch the result."""
    kept = host(store="ask")
    request = kept.called()
    task = kept.server.create_task(request, at=START)
    assert task is not None
    events = drain(kept.server)
    kept.server.receive_data(
        b'{"jsonrpc":"2.0","method":"notifications/cancelled",'
        b'"params":{"requestId":%d}}\n' % int(request.id)
    )
    over = only(TaskCancelled, drain(kept.server))
    assert (over.task, over.cause) == (task, TaskEnd.PEER)
    (asked,) = events
    kept.shelf.answer(kept.server, asked)
    assert kept.events() == []
    assert sent(kept.server) == []
    stored = kept.shelf.record(task.id)
    assert stored is not None
    assert stored.status is TaskStatus.CANCELLED
    assert kept.server.open_tasks == ()


def test_the_handles_of_another_connection_raise(kept: Host) -> None:
    """OWN-022: a task must not be ended by a handler of another client."""
    other = host()
    task = other.create()
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        kept.server.complete_task(task, NOTHING)
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        kept.server.create_task(other.called(), at=START)


# -------------------------------------------------------------------------------- the endings


def test_a_result_is_fetched_with_the_task(kept: Host) -> None:
    """XTASK-044, XTASK-047, XTASK-054, XTASK-070, XTASK-073, XTASK-150, TASKX-006, TASKX-007."""
    task = kept.create()
    kept.do(kept.server.complete_task, task, {**NOTHING, "structuredContent": {}}, meta={"m": 1})
    inner = {
        **NOTHING,
        "structuredContent": {},
        "resultType": "complete",
        "_meta": {**SERVED_BY, "m": 1},
    }
    assert kept.get(task.id) == {**shown(task, "completed", result=inner), **DONE}
    assert not task.open
    assert kept.server.open_tasks == ()


def test_an_error_of_a_tool_is_a_result(kept: Host) -> None:
    """XTASK-052, XTASK-053, XTASK-153, TASKX-008: failed is for errors of JSON-RPC alone."""
    task = kept.create()
    kept.do(kept.server.complete_task, task, {**NOTHING, "isError": True})
    assert kept.get(task.id)["status"] == "completed"


def test_an_error_is_fetched_with_the_task(kept: Host) -> None:
    """XTASK-045, XTASK-046, XTASK-055, XTASK-056, TASKX-007: the poll itself succeeds."""
    task = kept.create()
    kept.do(kept.server.fail_task, task, -32002, "no such file", {"uri": "a"})
    error = {"code": -32602, "message": "no such file", "data": {"uri": "a"}}
    said = {"error": error, "statusMessage": "no such file"}
    assert kept.get(task.id) == {**shown(task, "failed", **said), **DONE}


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
        ("tasks/update", "working", "working"),
    ],
)
@pytest.mark.parametrize("is_asked", [False, True])
def test_each_step_leads_to_one_status(
    kept: Host, step: str, from_working: str, from_input_required: str, is_asked: bool
) -> None:
    """XTASK-049, XTASK-050, XTASK-071: a poll is no step, whatever else is in it."""
    task, server = kept.create(), kept.server
    if is_asked:
        kept.do(server.require_task_input, task, {"a": FORM})
    arguments: dict[str, tuple[Any, ...]] = {
        "require_task_input": ({"b": FORM},),
        "complete_task": (NOTHING,),
        "fail_task": (-32603, "x"),
    }
    if step.startswith("tasks/"):
        kept.ask(step, {"taskId": task.id, "inputResponses": {"a": {"action": "decline"}}})
    else:
        kept.do(getattr(server, step), task, *arguments.get(step, ()))
    expected = from_input_required if is_asked else from_working
    assert kept.get(task.id)["status"] == expected


def test_a_task_that_is_over_never_changes_again(kept: Host) -> None:
    """XTASK-051, XTASK-119: every verb and every request leaves it as it is."""
    task = kept.create()
    kept.do(kept.server.complete_task, task, NOTHING)
    before = kept.get(task.id)
    server = kept.server
    assert not server.complete_task(task, NOTHING)
    assert not server.fail_task(task, -32603, "x")
    assert not server.cancel_task(task)
    assert not server.update_task(task, message="x")
    assert not server.require_task_input(task, {"a": FORM})
    for method in ("tasks/cancel", "tasks/update"):
        params: JSONObject = {"taskId": task.id, "inputResponses": {"a": {}}}
        assert kept.ask(method, params)["result"] == DONE
    assert kept.get(task.id) == before


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ({}, "OWN-014"),
        ({"content": 1}, "OWN-014"),
        ([], "OWN-014"),
        ({"content": [], "resultType": "task"}, "JSON-023"),
    ],
)
def test_a_result_that_the_method_does_not_have_raises(value: Any, rule: str) -> None:
    """XTASK-027, XTASK-047: the task goes on."""
    kept = host()
    task = kept.create()
    with pytest.raises(LocalProtocolError, match=rule):
        kept.server.complete_task(task, value)
    assert kept.server.complete_task(task, {"content": [], "isError": None})


def test_a_client_cancels_a_task(kept: Host) -> None:
    """XTASK-098, XTASK-115, XTASK-116, XTASK-118, TASKX-006: the answer is bare, the work stops."""
    task = kept.create()
    message = modern(1, "tasks/cancel", {"taskId": task.id}, envelope(WITH_TASKS))
    events = kept.receive(message)
    assert only(TaskCancelled, events[1:] if len(events) > 1 else events).cause is TaskEnd.PEER
    assert of(RequestAnswered, events)
    assert sent(kept.server) == [result(1, DONE)]
    assert kept.get(task.id) == {**shown(task, "cancelled"), **DONE}
    assert not task.open
    assert kept.ask("tasks/cancel", {"taskId": task.id})["result"] == DONE


def test_a_server_cancels_a_task(kept: Host) -> None:
    """The verb needs no event: the application knows."""
    task = kept.create()
    assert kept.do(kept.server.cancel_task, task, message="shutting down") == []
    assert kept.get(task.id) == {**shown(task, "cancelled", statusMessage="shutting down"), **DONE}


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_task_that_is_not_there_is_refused(kept: Host, method: str) -> None:
    """XTASK-074, XTASK-076, XTASK-100: an invalid id is one that nobody has."""
    for id in ("tasks-conformance-nonexistent-12345", ""):
        error = kept.ask(method, {"taskId": id, "inputResponses": {}})["error"]
        assert error["code"] == -32602
        assert "not known" in error["message"]
    assert kept.code(method, {}) == -32602


@pytest.mark.parametrize("method", ["tasks/result", "tasks/list"])
def test_methods_of_the_older_form_do_not_exist(kept: Host, method: str) -> None:
    """XTASK-141, XTASK-142, XTASK-149, TASKX-010."""
    assert kept.code(method, {"taskId": "t"}) == -32601


def test_nothing_is_sent_for_the_progress_token_of_a_task(kept: Host) -> None:
    """XTASK-132: progress and logs end with the answer."""
    message = modern(7, "tools/call", {"name": "t"})
    message["params"]["_meta"] = {**envelope(WITH_TASKS, level="debug"), "progressToken": "p"}
    request = of(RequestReceived, kept.receive(message))[0].request
    kept.create(request)
    assert kept.server.send_progress(request, 1) is False
    assert sent(kept.server) == []


# ---------------------------------------------------------------------------------- questions


def test_a_client_answers_questions_one_by_one(kept: Host) -> None:
    """XTASK-072, XTASK-097, XTASK-098, XTASK-101 to XTASK-103, XTASK-106, XTASK-107, XTASK-113."""
    task = kept.create()
    asked = {"a": FORM, "b": ROOTS}
    kept.do(kept.server.require_task_input, task, asked)
    for _ in range(2):
        assert kept.get(task.id) == {**shown(task, "input_required", inputRequests=asked), **DONE}

    params: JSONObject = {
        "taskId": task.id,
        "inputResponses": {"a": {"action": "decline"}, "zz": {}},
    }
    events = kept.receive(modern(1, "tasks/update", params, envelope(WITH_TASKS)))
    answer = of(TaskInputReceived, events)[0]
    assert (answer.task, answer.responses) == (task, {"a": {"action": "decline"}})
    assert answer.missing == ("b",)
    assert sent(kept.server) == [result(1, DONE)]
    assert kept.get(task.id)["inputRequests"] == {"b": ROOTS}

    kept.do(kept.server.require_task_input, task, {"c": FORM})
    assert kept.get(task.id)["inputRequests"] == {"b": ROOTS, "c": FORM}
    params["inputResponses"] = {
        "a": {"action": "accept"},
        "b": {"roots": []},
        "c": {"action": "cancel"},
    }
    (last,) = of(
        TaskInputReceived, kept.receive(modern(2, "tasks/update", params, envelope(WITH_TASKS)))
    )
    assert (set(last.responses), last.missing) == ({"b", "c"}, ())
    assert sent(kept.server) == [result(2, DONE)]
    assert kept.get(task.id) == {**shown(task), **DONE}
    assert kept.ask("tasks/update", params)["result"] == DONE
    kept.do(kept.server.complete_task, task, NOTHING)


def test_the_key_of_a_question_is_used_once(kept: Host) -> None:
    """XTASK-104, XTASK-105, TASKX-009: a client does not show a key twice."""
    task = kept.create()
    assert kept.server.require_task_input(task, {"a": FORM})
    with pytest.raises(LocalProtocolError, match="XTASK-105"):
        kept.server.require_task_input(task, {"b": FORM, "a": FORM})
    kept.events()
    kept.ask("tasks/update", {"taskId": task.id, "inputResponses": {"a": {}}})
    with pytest.raises(LocalProtocolError, match="XTASK-105"):
        kept.server.require_task_input(task, {"a": FORM})
    assert task.record.keys == ("a",)


def test_only_what_the_client_declared_is_asked(kept: Host) -> None:
    """XTASK-106 to XTASK-108: the declaration of the request that became the task counts."""
    kept.capabilities = {"extensions": {EXTENSION: {}}}
    task = kept.create()
    kept.capabilities = WITH_TASKS
    mistakes: list[tuple[Any, str]] = [
        ({}, "XTASK-106"),
        ({"a": FORM}, "MRTR-008"),
        ({"a": {"method": "tools/list"}}, "MRTR-006"),
        ({1: FORM}, "MRTR-005"),
        ([FORM], "OWN-014"),
    ]
    for questions, rule in mistakes:
        with pytest.raises(LocalProtocolError, match=rule):
            kept.server.require_task_input(task, questions)
    assert kept.get(task.id)["status"] == "working"


@pytest.mark.parametrize("responses", [[], {"a": 1}, None])
def test_answers_are_objects(kept: Host, responses: Any) -> None:
    """XTASK-091, XTASK-093: anything else is no answer."""
    task = kept.create()
    kept.do(kept.server.require_task_input, task, {"a": FORM})
    assert kept.code("tasks/update", {"taskId": task.id, "inputResponses": responses}) == -32602
    assert kept.get(task.id)["status"] == "input_required"


def test_input_before_the_task_is_asked_on_the_request(kept: Host) -> None:
    """XTASK-060, XTASK-061, XTASK-062: neither phase carries members of the other."""
    first = kept.called()
    assert kept.server.require_input(first, {"name": FORM}, state="s")
    (asked,) = sent(kept.server)
    assert "taskId" not in asked["result"]
    second = kept.called(inputResponses={"name": {"action": "accept"}}, requestState="s")
    task = kept.server.create_task(second, at=START)
    assert task is not None
    (made,) = kept.told()
    assert made["result"]["resultType"] == "task"
    assert not {"requestState", "inputRequests", "result"} & made["result"].keys()
    kept.do(kept.server.require_task_input, task, {"name": FORM})  # another name space


# ------------------------------------------------------------------------------ notifications


def test_changes_of_a_task_are_sent_to_its_subscription(kept: Host) -> None:
    """XTASK-122 to XTASK-128, XTASK-131, XTASK-133: each is what a poll would return."""
    task, other = kept.create(), kept.create()
    message = modern(1, "subscriptions/listen", {"notifications": {"taskIds": [task.id, "no"]}})
    message["params"]["_meta"] = envelope(WITH_TASKS)
    events = kept.receive(message)
    assert only(ListenerAdded, events).listener.honoured == {"taskIds": [task.id]}
    assert sent(kept.server) == [acknowledged(1, {"taskIds": [task.id]})]

    steps: list[JSONObject] = []
    assert kept.server.update_task(task)
    assert kept.server.require_task_input(task, {"a": FORM})
    kept.do(kept.server.update_task, other, message="not subscribed")
    steps += sent(kept.server)
    kept.receive(
        modern(
            2,
            "tasks/update",
            {"taskId": task.id, "inputResponses": {"a": {}}},
            envelope(WITH_TASKS),
        )
    )
    steps += sent(kept.server)[1:]
    kept.do(kept.server.complete_task, task, NOTHING)
    steps += sent(kept.server)
    meta = {"_meta": {SUBSCRIPTION: 1}}
    inner = {**NOTHING, **DONE}
    assert [step["params"] for step in steps] == [
        {**shown(task), **meta},
        {**shown(task, "input_required", inputRequests={"a": FORM}), **meta},
        {**shown(task), **meta},
        {**shown(task, "completed", result=inner), **meta},
    ]
    assert {step["method"] for step in steps} == {"notifications/tasks"}


def test_a_subscription_that_has_ended_gets_nothing(kept: Host) -> None:
    """XTASK-125: its id may be used again for another one."""
    task = kept.create()
    listening(kept, task.id, task.id)
    kept.receive(cancelled(1))
    kept.do(kept.server.update_task, task, message="x")
    assert sent(kept.server) == []


def test_a_subscription_without_any_known_task_is_acknowledged(kept: Host) -> None:
    """XTASK-124: the member is left out."""
    message = modern(1, "subscriptions/listen", {"notifications": {"taskIds": ["no", "nor"]}})
    message["params"]["_meta"] = envelope(WITH_TASKS)
    kept.receive(message)
    assert sent(kept.server) == [acknowledged(1, {})]


def test_ids_of_tasks_are_a_list_of_strings(kept: Host) -> None:
    """XTASK-123: anything else cannot be acknowledged."""
    mistakes: list[Any] = ["t", [1], {}]
    for wrong in mistakes:
        assert kept.code("subscriptions/listen", {"notifications": {"taskIds": wrong}}) == -32602
    message = modern(1, "subscriptions/listen", {"notifications": {"taskIds": None}})
    assert broken(kept.receive(message)) == ["OWN-015"]


def test_a_client_that_is_gone_before_its_tasks_are_found_is_forgotten() -> None:
    """The lookups of a filter may take time."""
    kept = host(store="ask")
    task = kept.create()
    message = modern(1, "subscriptions/listen", {"notifications": {"taskIds": [task.id, "b"]}})
    message["params"]["_meta"] = envelope(WITH_TASKS)
    questions = receive(kept.server, message)
    receive(kept.server, cancelled(1))
    for question in questions:
        kept.shelf.answer(kept.server, question)
    assert sent(kept.server) == []
    kept.do(kept.server.update_task, task, message="x")
    assert sent(kept.server) == []


def test_changes_wait_for_a_client_that_reads_slowly() -> None:
    """OWN-010, OWN-011, XTASK-126: the newest of each task, within a bound."""
    kept = host(config=Config(soft_unsent_bytes=10, max_held_changes=1))
    task, other = kept.create(), kept.create()
    listening(kept, task.id, other.id)
    kept.server.receive_data(wire(modern(5, "server/discover")))
    for message in ("one", "two"):
        assert kept.server.update_task(task, message=message)
    assert kept.server.update_task(other, message="x")
    assert [event.rule for event in of(LimitReached, drain(kept.server))] == ["OWN-010"]
    assert [message.get("id") for message in sent(kept.server)] == [5]
    (told,) = sent(kept.server)
    assert told["params"]["statusMessage"] == "two"
    assert sent(kept.server) == []


def test_a_filter_that_the_application_accepts_may_leave_out_tasks() -> None:
    """`Config.manual` leaves the acknowledgement to it."""
    kept = host(config=Config(manual=["subscriptions/listen"]))
    one, other = kept.create(), kept.create()
    for granted, ids in ((None, [one.id, other.id]), ({"taskIds": [other.id]}, [other.id])):
        filter = {"notifications": {"taskIds": [one.id, other.id]}}
        (event,) = of(RequestReceived, kept.hold("subscriptions/listen", filter))
        listener = kept.server.acknowledge(event.request, granted)
        assert listener is not None
        assert listener.honoured == {"taskIds": ids}


# --------------------------------------------------------------------------------------- owners


def owned(principal: object, key: str | None, kept: Host) -> Host:
    """A connection of another client, over the same store of the application."""
    server = ServerConnection(
        info=SERVER_INFO,
        capabilities={"tools": {}},
        principal=principal,
        principal_key=key,
        tasks=settings(store="ask", entropy=kept.entropy),
    )
    return Host(server, kept.shelf, kept.entropy)


def test_the_task_of_another_principal_does_not_exist() -> None:
    """XTASK-146 to XTASK-148, TASK-041: it is answered like one that never was."""
    first = host(store="ask")
    anna, bert = owned("a", "anna", first), owned("b", "bert", first)
    for client, others in ((anna, (bert, first)), (bert, (anna, first)), (first, (anna, bert))):
        task = client.create()
        assert client.get(task.id)["taskId"] == task.id
        for other in others:
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                params: JSONObject = {"taskId": task.id, "inputResponses": {}}
                error = other.ask(method, params)["error"]
                assert error == other.ask(method, {**params, "taskId": "no"})["error"]
            filter = {"notifications": {"taskIds": [task.id]}}
            message = modern(1, "subscriptions/listen", filter, envelope(WITH_TASKS))
            other.receive(message)
            assert sent(other.server)[0]["params"]["notifications"] == {}
            other.receive(cancelled(1))
        assert client.get(task.id)["status"] == "working"


def test_a_principal_without_a_key_has_no_tasks() -> None:
    """XTASK-146, OWN-050: `str(principal)` may be the same for two users."""
    first = host(store="ask")
    anna = owned(object(), None, first)
    request = anna.called()
    with pytest.raises(LocalProtocolError, match="OWN-050"):
        anna.server.create_task(request, at=START)
    assert anna.code("tasks/get", {"taskId": first.create().id}) == -32602


def test_another_process_of_the_same_principal_has_the_task() -> None:
    """A task outlives the connection that has made it."""
    first = host(store="ask")
    task = owned("a", "anna", first).create()
    assert owned("A", "anna", first).get(task.id)["status"] == "working"
