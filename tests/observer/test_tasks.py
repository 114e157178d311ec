"""Each seeded fault of tasks of 2025-11-25 is reported, and similar conversations are not.

A fault is written for the side `x` that makes it, with `y` as the other, and tried in either role
where the rule binds both.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import attrs
import pytest

from sansmcp import BlindSpot, Config, JSONObject, Side, TaskSeen
from sansmcp.testing import CLIENT_CAPABILITIES, SERVER_CAPABILITIES
from tests.support.tasks import RELATED, STAMP
from tests.support.watching import C, S, Step, accused, observe, opening
from tests.support.wire import call, error, note, result

Steps: TypeAlias = Callable[[Side, Side], list[Step]]

BOTH = (C, S)
TASKLESS: dict[Side, JSONObject] = {
    C: {"roots": {}, "sampling": {}, "elicitation": {"form": {}}},
    S: {"tools": {}},
}
OF_T: JSONObject = {RELATED: {"taskId": "t"}}
SAMPLED: JSONObject = {"role": "assistant", "model": "m", "content": {"type": "text", "text": ""}}


def state(status: str = "working", **changed: object) -> JSONObject:
    """A task."""
    times = {"createdAt": STAMP, "lastUpdatedAt": STAMP}
    return {"taskId": "t", "status": status, "ttl": None, **times, **changed}


def long(side: Side, id: object, **params: object) -> Step:
    """A request of a side that is sent as a task."""
    return ask(side, id, task={}, **params)


def ask(side: Side, id: object, **params: object) -> Step:
    """A request of a side that may be sent as a task, and is sent without one."""
    if side is C:
        return C, call(id, "tools/call", {"name": "tool", **params})
    return S, call(id, "sampling/createMessage", {"messages": [], "maxTokens": 1, **params})


def outcome(side: Side, **more: object) -> JSONObject:
    """The result of that request, if this side has sent it."""
    return {**({"content": []} if side is C else SAMPLED), **more}


def made(owner: Side, id: object, **changed: Any) -> Step:
    return owner, result(id, {"task": state(**changed)})


def new(owner: Side) -> list[Step]:
    """The task "t" of a side. Its request has the id 1."""
    return [long(owner.other, 1), made(owner, 1)]


def about(side: Side, id: object, what: str, **params: object) -> Step:
    """A request about a task of the other side."""
    return side, call(id, f"tasks/{what}", {"taskId": "t", **params})


def told(owner: Side, id: object, status: str = "working", **changed: object) -> Step:
    """A response with the state of the task."""
    return owner, result(id, state(status, **changed))


def news(owner: Side, status: str, **changed: object) -> Step:
    return owner, note("notifications/tasks/status", state(status, **changed))


def payload(owner: Side, id: object, meta: object = None, **more: object) -> Step:
    """The response to `tasks/result`."""
    value = outcome(owner.other, **more)
    return owner, result(id, {**value, "_meta": OF_T if meta is None else meta})


def listed(id: object, **support: str | None) -> list[Step]:
    """A list of tools with what each says of tasks."""
    tools: list[JSONObject] = []
    for name, said in support.items():
        more: JSONObject = {} if said is None else {"execution": {"taskSupport": said}}
        tools.append({"name": name, "inputSchema": {"type": "object"}, **more})
    return [(C, call(id, "tools/list")), (S, result(id, {"tools": tools}))]


def shown(id: object) -> list[Step]:
    """The client shows that it has read everything up to here."""
    return [(S, call(id, "ping")), (C, result(id, {}))]


CHANGED: Step = (S, note("notifications/tools/list_changed"))


@attrs.frozen
class Fault:
    """A fault after the handshake, and similar conversations in which no side is at fault."""

    rule: str
    steps: Steps
    innocents: tuple[Steps, ...]
    roles: tuple[Side, ...] = BOTH
    client: JSONObject = CLIENT_CAPABILITIES
    server: JSONObject = SERVER_CAPABILITIES


FAULTS: dict[str, Fault] = {
    # ------------------------------------------------------------------------------ new tasks
    "a task that nobody has asked for": Fault(
        "OWN-014",
        lambda x, y: [ask(y, 1), made(x, 1)],
        (
            lambda x, y: new(x),
            lambda x, y: [ask(y, 1), (x, result(1, outcome(y, task={"more": 1})))],
            # It is not accepted as a task.
            lambda x, y: [long(y, 1), (x, result(1, outcome(y)))],
            lambda x, y: [long(y, 1), (x, error(1, -32601))],
        ),
    ),
    "a task of a begin that is none": Fault(
        "TASK-016",
        lambda x, y: [long(y, 1), made(x, 1, status="completed")],
        (lambda x, y: new(x),),
    ),
    "a task with an unknown status": Fault(
        "OWN-014",
        lambda x, y: [long(y, 1), made(x, 1, status="begun")],
        (lambda x, y: new(x),),
    ),
    "a task with a time that is none": Fault(
        "TASK-019",
        lambda x, y: [
            *(long(y, 1), made(x, 1, createdAt="now")),
            *(long(y, 2), made(x, 2, lastUpdatedAt="2027-01-15")),
        ],
        (lambda x, y: [long(y, 1), made(x, 1, createdAt="2027-01-15T08:00:00+01:00")],),
    ),
    "a task with a time to live that is none": Fault(
        "TASK-019",
        lambda x, y: [
            *(long(y, 1), made(x, 1, ttl="1 h")),
            *(long(y, 2), made(x, 2, ttl=0.5)),
            *(long(y, 3), made(x, 3, ttl=True)),
        ],
        (lambda x, y: [long(y, 1), made(x, 1, ttl=5.0, pollInterval=9)],),
    ),
    "a second task with the same id": Fault(
        "TASK-015",
        lambda x, y: [*new(x), long(y, 2), made(x, 2)],
        (
            lambda x, y: [*new(x), long(y, 2), made(x, 2, taskId="u")],
            lambda x, y: [*new(x), *new(y)],  # each side has its own
            # The first may be deleted.
            lambda x, y: [long(y, 1), made(x, 1, ttl=1), long(y, 2), made(x, 2)],
            # It may be one of an earlier conversation, which is deleted.
            lambda x, y: [about(y, 1, "get"), told(x, 1, "failed"), long(y, 2), made(x, 2)],
        ),
    ),
    # ------------------------------------------------------------------------------ responses
    "a state of another task": Fault(
        "TASK-028",
        lambda x, y: [
            *(about(y, 1, "get"), told(x, 1, taskId="u")),
            *(about(y, 2, "cancel"), told(x, 2, "cancelled", taskId="u")),
        ],
        (lambda x, y: [about(y, 1, "get", _meta={}), told(x, 1)],),
    ),
    "a state with a time that is none": Fault(
        "TASK-019",
        lambda x, y: [about(y, 1, "get"), told(x, 1, lastUpdatedAt="")],
        (lambda x, y: [about(y, 1, "get"), told(x, 1, lastUpdatedAt="20270115T0800Z")],),
    ),
    "a cancelled task that goes on": Fault(
        "TASK-037",
        lambda x, y: [*new(x), about(y, 2, "cancel"), told(x, 2)],
        (
            lambda x, y: [*new(x), about(y, 2, "cancel"), told(x, 2, "cancelled")],
            lambda x, y: [*new(x), about(y, 2, "cancel"), (x, error(2, -32602))],
        ),
    ),
    "a task that is over is cancelled": Fault(
        "TASK-036",
        lambda x, y: [*new(x), news(x, "failed"), about(y, 2, "cancel"), told(x, 2, "cancelled")],
        (
            lambda x, y: [*new(x), news(x, "failed"), about(y, 2, "cancel"), (x, error(2, -32602))],
            lambda x, y: [  # the cancellation came first
                *(*new(x), about(y, 2, "cancel"), news(x, "cancelled")),
                told(x, 2, "cancelled"),
            ],
        ),
    ),
    "a payload that names no task": Fault(
        "TASK-025",
        lambda x, y: [
            *(*new(x), about(y, 2, "result"), payload(x, 2, {})),
            *(about(y, 3, "result"), payload(x, 3, {RELATED: {"taskId": "u"}})),
            *(about(y, 4, "result"), payload(x, 4, {RELATED: {"taskId": 4}})),
        ],
        (
            lambda x, y: [*new(x), about(y, 2, "result"), payload(x, 2)],
            lambda x, y: [*new(x), about(y, 2, "result"), (x, error(2, -32603))],
        ),
    ),
    "a payload that is not that of the request": Fault(
        "TASK-023",
        lambda x, y: [*new(x), about(y, 2, "result"), (x, result(2, {"_meta": OF_T}))],
        (
            # The request was not seen.
            lambda x, y: [about(y, 2, "result"), (x, result(2, {"_meta": OF_T}))],
        ),
    ),
    "a task that goes on after its payload": Fault(
        "TASK-018",
        lambda x, y: [*new(x), about(y, 2, "result"), payload(x, 2), news(x, "working")],
        (
            lambda x, y: [*new(x), about(y, 2, "result"), payload(x, 2), news(x, "completed")],
            lambda x, y: [  # the state was read before
                *(*new(x), about(y, 2, "get"), about(y, 3, "result"), payload(x, 3), told(x, 2)),
            ],
            lambda x, y: [
                *(*new(x), about(y, 2, "result"), payload(x, 2)),
                *(about(y, 3, "result"), payload(x, 3), news(x, "completed")),
            ],
        ),
    ),
    "a completed task of a tool that has failed": Fault(
        "TASK-040",
        lambda x, y: [
            *(*new(x), about(y, 2, "result"), payload(x, 2, isError=True), news(x, "completed")),
        ],
        (
            lambda x, y: [
                *(*new(x), about(y, 2, "result"), payload(x, 2, isError=True), news(x, "failed")),
            ],
            lambda x, y: [
                *(*new(x), about(y, 2, "result"), payload(x, 2, isError=False)),
                news(x, "completed"),
            ],
        ),
        roles=(S,),
    ),
    "a tool that has failed in a completed task": Fault(
        "TASK-040",
        lambda x, y: [
            *(*new(x), news(x, "completed"), about(y, 2, "result"), payload(x, 2, isError=True)),
        ],
        (
            lambda x, y: [
                *(*new(x), news(x, "failed"), about(y, 2, "result"), payload(x, 2, isError=True)),
            ],
        ),
        roles=(S,),
    ),
    "a list with a task that has no id": Fault(
        "OWN-014",
        lambda x, y: [
            (y, call(1, "tasks/list")),
            (x, result(1, {"tasks": [{"status": "working"}, 5]})),
        ],
        (
            lambda x, y: [
                (y, call(1, "tasks/list")),
                (x, result(1, {"tasks": [state(), state(taskId="u", pollInterval=None)]})),
            ],
        ),
    ),
    # -------------------------------------------------------------------------------- changes
    "a task that goes on after its end": Fault(
        "TASK-018",
        lambda x, y: [*new(x), news(x, "completed"), news(x, "working")],
        (
            lambda x, y: [*new(x), news(x, "input_required"), news(x, "working")],
            lambda x, y: [*new(x), news(x, "completed"), news(x, "completed")],
            lambda x, y: [*new(x), news(x, "completed"), news(y, "working")],  # another's task
        ),
    ),
    "a task with a second end": Fault(
        "TASK-018",
        lambda x, y: [*new(x), news(x, "completed"), about(y, 2, "get"), told(x, 2, "failed")],
        (
            lambda x, y: [*new(x), news(x, "failed"), about(y, 2, "get"), told(x, 2, "failed")],
            # The state was read before the end.
            lambda x, y: [*new(x), about(y, 2, "get"), news(x, "completed"), told(x, 2)],
        ),
    ),
    "a task that goes on in a list": Fault(
        "TASK-018",
        lambda x, y: [
            *(about(y, 1, "get"), told(x, 1, "cancelled"), (y, call(2, "tasks/list"))),
            (x, result(2, {"tasks": [state()]})),
        ],
        (
            lambda x, y: [
                *(about(y, 1, "get"), (y, call(2, "tasks/list")), told(x, 1, "cancelled")),
                (x, result(2, {"tasks": [state()]})),
            ],
        ),
    ),
    "a question of a task that is over": Fault(
        "TASK-018",
        lambda x, y: [*new(x), news(x, "failed"), (x, call(9, "ping", {"_meta": OF_T}))],
        (
            lambda x, y: [*new(x), (x, call(9, "ping", {"_meta": OF_T}))],
            lambda x, y: [*new(x), news(x, "failed"), (y, call(9, "ping", {"_meta": OF_T}))],
        ),
    ),
    "news with a time that is none": Fault(
        "TASK-019",
        lambda x, y: [news(x, "working", createdAt="")],
        (lambda x, y: [news(x, "working")],),
    ),
    # --------------------------------------------------------------------- the name of the task
    "an answer that does not name the task of its question": Fault(
        "TASK-026",
        lambda x, y: [*new(y), (y, call(9, "ping", {"_meta": OF_T})), (x, result(9, {}))],
        (
            lambda x, y: [
                *new(y),
                (y, call(9, "ping", {"_meta": OF_T})),
                (x, result(9, {"_meta": OF_T})),
            ],
            lambda x, y: [*new(y), (y, call(9, "ping", {"_meta": OF_T})), (x, error(9, 1))],
            lambda x, y: [(y, call(9, "ping", {"_meta": {RELATED: 5}})), (x, result(9, {}))],
        ),
    ),
    "progress that does not name its task": Fault(
        "TASK-026",
        lambda x, y: [
            long(y, 1, _meta={"progressToken": 7}),
            made(x, 1),
            (x, note("notifications/progress", {"progressToken": 7, "progress": 1})),
        ],
        (
            lambda x, y: [
                long(y, 1, _meta={"progressToken": 7}),
                (x, note("notifications/progress", {"progressToken": 7, "progress": 1})),
                made(x, 1),
            ],
        ),
    ),
    "a request about a task that names it twice": Fault(
        "TASK-027",
        lambda x, y: [
            *(about(x, id, what, _meta=OF_T) for id, what in enumerate(("get", "result"))),
            (x, call(5, "tasks/list", {"_meta": OF_T})),
        ],
        (lambda x, y: [about(x, 1, "get", _meta={"more": 1})],),
    ),
    "a state that names its task twice": Fault(
        "TASK-027",
        lambda x, y: [about(y, 1, "get"), told(x, 1, _meta=OF_T), news(x, "working", _meta=OF_T)],
        (lambda x, y: [about(y, 1, "get"), told(x, 1, _meta={})],),
    ),
    # ------------------------------------------------------------------------------ capabilities
    "a task that was not declared": Fault(
        "TASK-011",
        lambda x, y: [made(x, 1)],
        (lambda x, y: [(x, result(1, outcome(y)))], lambda x, y: [(x, error(1, -32602))]),
        client=TASKLESS[C],
        server=TASKLESS[S],
    ),
    # ------------------------------------------------------------------------------------ tools
    "a tool that is no task is called as one": Fault(
        "TASK-006",
        lambda x, y: [
            *(*listed(1, tool="forbidden", other=None), *shown(2)),
            *(long(C, 3), long(C, 4, name="other")),
        ],
        (
            # The client may not have read the list.
            lambda x, y: [*listed(1, tool="forbidden"), long(C, 3)],
            lambda x, y: [*listed(1, tool="optional"), *shown(2), long(C, 3)],
            # It may have read the second.
            lambda x, y: [
                *listed(1, tool=None),
                *shown(2),
                *listed(3, tool="required"),
                long(C, 4),
            ],
            lambda x, y: [*listed(1, tool=None), *shown(2), CHANGED, long(C, 4)],
            lambda x, y: [*listed(1, tool=None), *shown(2), long(C, 4, name="unlisted")],
            lambda x, y: [*listed(1, tool="odd"), *shown(2), long(C, 4)],
            lambda x, y: [
                *(*listed(1, tool="optional"), *listed(2, tool="optional"), *shown(3)),
                long(C, 4),
            ],
        ),
        roles=(C,),
    ),
    "a tool that is only a task is called without one": Fault(
        "TASK-009",
        lambda x, y: [*listed(1, tool="required"), *shown(2), ask(C, 3)],
        (
            lambda x, y: [*listed(1, tool="optional"), *shown(2), ask(C, 3)],
            lambda x, y: [*listed(1, tool="required"), *shown(2), long(C, 3)],
        ),
        roles=(C,),
    ),
    "a tool that is read by the use of a task": Fault(
        "TASK-009",
        lambda x, y: [
            *(long(C, 1, name="other"), *listed(2, tool="required"), made(S, 1)),
            *(about(C, 3, "get"), ask(C, 4)),
        ],
        (
            lambda x, y: [
                *(long(C, 1, name="other"), made(S, 1), *listed(2, tool="required")),
                *(about(C, 3, "get"), ask(C, 4)),
            ],
        ),
        roles=(C,),
    ),
    "a tool that is no task becomes one": Fault(
        "TASK-007",
        lambda x, y: [*listed(1, tool=None), long(C, 2), made(S, 2)],
        (
            lambda x, y: [*listed(1, tool=None), long(C, 2), (S, error(2, -32601))],
            lambda x, y: [*listed(1, tool=None), long(C, 2), CHANGED, made(S, 2)],
            lambda x, y: [long(C, 2), *listed(1, tool=None), made(S, 2)],
        ),
        roles=(S,),
    ),
    "a tool that is only a task is served without one": Fault(
        "TASK-010",
        lambda x, y: [*listed(1, tool="required"), ask(C, 2), (S, result(2, outcome(C)))],
        (
            lambda x, y: [*listed(1, tool="required"), ask(C, 2), (S, error(2, -32601))],
            lambda x, y: [
                *(*listed(1, tool="required"), CHANGED, ask(C, 2), (S, result(2, outcome(C)))),
            ],
            lambda x, y: [
                *(*listed(1, tool="required"), *listed(2, tool="optional"), ask(C, 3)),
                (S, result(3, outcome(C))),
            ],
        ),
        roles=(S,),
    ),
}
CASES = [(name, role) for name, fault in FAULTS.items() for role in fault.roles]


def run(fault: Fault, steps: Steps, guilty: Side) -> list[tuple[Side, str]]:
    before = opening("2025-11-25", fault.client, fault.server)
    if fault.client is TASKLESS[C]:
        before.append(long(guilty.other, 1))
        assert accused(observe(*before)) == [(guilty.other, "TASK-002")]
        return accused(observe(*before, *steps(guilty, guilty.other)))[1:]
    return accused(observe(*before, *steps(guilty, guilty.other)))


@pytest.mark.parametrize(("name", "guilty"), CASES)
def test_a_fault_is_laid_to_the_side_and_the_rule_that_it_breaks(name: str, guilty: Side) -> None:
    """Debugging with the observer depends on the right side and rule, in either role."""
    fault = FAULTS[name]

    assert set(run(fault, fault.steps, guilty)) == {(guilty, fault.rule)}


@pytest.mark.parametrize(("name", "guilty"), CASES)
def test_what_is_close_to_a_fault_is_not_taken_for_it(name: str, guilty: Side) -> None:
    """A race, or a similar member, must not be reported as the fault."""
    fault = FAULTS[name]

    for innocent in fault.innocents:
        assert run(fault, innocent, guilty) == []


@pytest.mark.parametrize(("ttl", "seconds", "is_kept"), [(3000, 2.0, True), (3000, 4.0, False)])
def test_an_id_is_free_again_after_the_time_to_live(
    ttl: int, seconds: float, is_kept: bool
) -> None:
    """The first task is not older than its request, so the clock of the observer shows it."""
    steps = [*opening(), long(C, 1), made(S, 1, ttl=ttl), long(C, 2), made(S, 2, ttl=ttl)]
    times = [0.0, 0.0, 0.0, 1.0, 1.5, 2.0, 1.0 + seconds]

    rules = accused(observe(*steps, times=times))

    assert rules == ([(S, "TASK-015")] if is_kept else [])


def test_each_change_of_a_task_is_one_event() -> None:
    """A log of tasks needs the changes, and not a line for each poll."""
    steps = [
        *(*new(S), about(C, 2, "get"), told(S, 2), news(S, "input_required")),
        *(about(C, 3, "get"), told(S, 3, "input_required")),
        *(about(C, 4, "result"), news(S, "completed"), payload(S, 4)),
        *(about(C, 5, "get"), told(S, 5, "completed")),
    ]
    events = [e for e in observe(*opening(), *steps) if isinstance(e, TaskSeen)]

    assert [event.status for event in events] == ["working", "input_required", "completed"]
    assert {(event.side, event.task_id, event.method) for event in events} == {
        (S, "t", "tools/call")
    }
    assert [event.number for event in events] == [5, 8, 12]


def test_tasks_of_an_older_revision_are_nothing() -> None:
    """The key in `_meta` means nothing there, nor does `execution`."""
    steps: list[Step] = [
        *opening("2025-06-18"),
        *(*listed(1, tool="required"), *shown(2), ask(C, 3), (S, result(3, outcome(C)))),
        *((C, call(4, "ping", {"_meta": OF_T})), (S, result(4, {}))),
    ]

    assert accused(observe(*steps)) == []


def test_params_of_any_kind_are_looked_at() -> None:
    """What is no task id is judged by its shape, and breaks nothing here."""
    odd: JSONObject = {"name": "t", "execution": {"taskSupport": 5}}
    steps: list[Step] = [
        *opening(),
        *((C, call(1, "tasks/get", {"taskId": 5})), told(S, 1)),
        *((C, call(2, "tools/list")), (S, result(2, {"tools": [5, {"name": 5}, odd]}))),
        *((C, call(3, "tools/call", {"name": 5, "task": {}})), *shown(9)),
        *((S, call(4, "ping", {"_meta": []})), (C, result(4, {"_meta": []}))),
    ]

    assert {rule for _, rule in accused(observe(*steps))} == {"OWN-014"}


def test_a_use_of_a_forgotten_task_or_tool_breaks_nothing() -> None:
    """A limit must not make anybody guilty."""
    many = [step for n in range(1, 9) for step in (long(C, n), made(S, n, taskId=f"t{n}"))]
    tools = {f"tool{n}": "required" for n in range(9)}
    before: list[Step] = [*opening(), *many, *listed(20, **tools), *shown(21)]
    steps: list[Step] = [
        *(news(S, "completed", taskId="t1"), news(S, "working", taskId="t1")),
        ask(C, 30, name="tool0"),
    ]
    config = Config(max_requests=4, max_tool_schemas=4)
    events = observe(*before, *steps, config=config)

    texts = [event.text for event in events if isinstance(event, BlindSpot)]
    assert any(text.startswith("the oldest task was forgotten") for text in texts)
    assert any(text.startswith("the oldest tool was forgotten") for text in texts)
    assert accused(events) == [(S, "TASK-018")]  # t1 is known again from the first news on


def test_a_tool_that_changes_often_is_judged_by_what_the_client_may_know() -> None:
    """Only the latest changes are remembered; the others may still be what the client knows."""
    lists: list[Step] = []
    for n in range(1, 8):
        lists += listed(n, tool="required" if n % 2 else "optional")
    known = [*opening(), *lists, *shown(50)]

    assert accused(observe(*known, ask(C, 60))) == [(C, "TASK-009")]
    assert accused(observe(*known, *listed(51, tool="optional"), ask(C, 60))) == []
