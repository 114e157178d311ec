"""Tasks that were taken over from a process that has ended, on a stream with one peer."""

from functools import partial
from typing import Any

import attrs
import pytest

from sansmcp import JSONObject, ServerConnection, Task, TaskInputReceived, TaskRecord
from tests.connection.tasks.test_store import again
from tests.support.called import lines_in
from tests.support.modern import EVERYTHING, FORM, ROOTS
from tests.support.tasks import NOTHING, START, Host, host, legacy, settings
from tests.support.wire import INITIALIZED, SERVER_INFO, call, initialize, of, result, sent

STATUS = "notifications/tasks/status"


def adopted(kept: Host, **changed: Any) -> Task:
    """A task of Anna and 2025-11-25, which this server has taken over."""
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
    record = TaskRecord(**{**fields, **changed})
    kept.shelf.records[record.id] = record.to_bytes()
    return kept.server.adopt_task(record, at=START, now=0.0)


def server_of(name: str | None) -> Host:
    """A server whose peer has this principal, and which has received nothing yet."""
    server = ServerConnection(
        info=SERVER_INFO,
        capabilities={"tools": {}},
        principal=name,
        principal_key=name,
        tasks=settings(store="ask"),
    )
    return Host(server)


@pytest.mark.parametrize("name", ["bert", None])
def test_another_principal_learns_nothing_of_an_adopted_task(name: str | None) -> None:
    """TASK-041: neither its status, nor its questions, nor its end."""
    kept = legacy(server_of(name))
    task = adopted(kept)
    kept.do(kept.server.update_task, task, message="for Anna alone")
    kept.do(kept.server.require_task_input, task, {"a": FORM})
    assert kept.code("tasks/result", {"taskId": "t"}) == -32602
    kept.do(kept.server.complete_task, task, NOTHING)
    assert sent(kept.server) == []


def test_a_client_of_an_older_revision_learns_nothing_of_an_adopted_task() -> None:
    """TASK-031: it knows no tasks, even if it is the owner."""
    kept = server_of("anna")
    kept.receive(initialize("hello", "2025-06-18", EVERYTHING))
    kept.receive(INITIALIZED)
    sent(kept.server)
    task = adopted(kept)
    kept.do(kept.server.update_task, task, message="said")
    kept.do(kept.server.require_task_input, task, {"a": ROOTS})
    assert sent(kept.server) == []


@pytest.mark.parametrize(("client", "asks"), [(EVERYTHING, True), ({}, False)])
def test_an_adopted_task_waits_for_its_owner(client: JSONObject, asks: bool) -> None:
    """TASK-026, TASK-030, LIFE-001: nothing is sent before the owner is there and can answer."""
    kept = server_of("anna")
    task = adopted(kept)
    kept.do(kept.server.update_task, task, message="said")
    kept.do(kept.server.require_task_input, task, {"a": FORM})
    assert sent(kept.server) == []
    legacy(kept, client)
    kept.receive(call(1, "tasks/result", {"taskId": "t"}))
    questions = sent(kept.server)
    assert [one["method"] for one in questions] == ["elicitation/create"] * asks
    for question in questions:
        events = kept.receive(result(question["id"], {"action": "decline"}))
        assert of(TaskInputReceived, events)[0].responses == {"a": {"action": "decline"}}
    sent(kept.server)
    kept.do(kept.server.complete_task, task, NOTHING)
    status, answer = sorted(sent(kept.server), key=lambda one: "id" in one)
    assert (status["method"], status["params"]["status"]) == (STATUS, "completed")
    assert answer["id"] == 1


def test_the_owner_that_is_there_is_asked_at_once() -> None:
    """TASK-026: an adopted task is as good as its own."""
    kept = legacy(server_of("anna"))
    task = adopted(kept)
    kept.do(kept.server.require_task_input, task, {"a": ROOTS})
    assert {one["method"] for one in sent(kept.server)} == {"roots/list", STATUS}


def test_answers_that_were_there_before_are_not_reported_again() -> None:
    """XTASK-105: the record has them; the event has what is new."""
    kept = host(store="ask")
    task = kept.create()
    kept.do(kept.server.require_task_input, task, {"a": FORM, "b": FORM, "c": FORM})
    answer: JSONObject = {"action": "decline"}
    kept.ask("tasks/update", {"taskId": task.id, "inputResponses": {"a": answer}})
    other = again(kept)
    record = kept.shelf.record(task.id)
    assert record is not None
    other.server.adopt_task(record, at=START, now=0.0)
    params: JSONObject = {"taskId": task.id, "inputResponses": {"b": answer}}
    (given,) = of(TaskInputReceived, other.receive(other.request(1, "tasks/update", params)))
    assert (given.responses, given.missing) == ({"b": answer}, ("c",))


@pytest.mark.parametrize("answers", [b'{ "b": {}, "a": {} }', b'{"a":{},"b":{}}'])
def test_a_store_may_write_the_answers_in_another_form(answers: bytes) -> None:
    """XTASK-105: each answer is reported once."""
    kept = host(store="ask")
    task = kept.create()
    kept.do(kept.server.require_task_input, task, {"a": ROOTS, "b": ROOTS, "c": ROOTS})
    record = task.record
    for version, given in ((1, b'{"a":{}}'), (2, answers)):
        changed = attrs.evolve(record, version=record.version + version, answers=given)
        kept.server.task_changed(changed)
    seen = [event.responses for event in of(TaskInputReceived, kept.events())]
    assert seen == [{"a": {}}, {"b": {}}]


def test_the_cost_of_a_question_does_not_grow_with_those_before() -> None:
    """OWN-070: as many lines run in the hundredth round as in the tenth."""
    kept = host()
    task = kept.create()

    def ask_and_answer(key: str) -> None:
        kept.do(kept.server.require_task_input, task, {key: ROOTS})
        answers: JSONObject = {key: {"roots": []}}
        kept.ask("tasks/update", {"taskId": task.id, "inputResponses": answers})

    lines = [lines_in(partial(ask_and_answer, f"k{number:03d}")) for number in range(101)]
    assert lines[100] <= lines[10] + 5
