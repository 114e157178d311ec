"""Each seeded fault of the extension for tasks of 2026-07-28 is reported, and nothing else is.

Unless a fault says otherwise, the server has answered `server/discover` before it.
"""

from typing import Any

import attrs
import pytest

from sansmcp import (
    BlindSpot,
    Config,
    Extension,
    ExtensionMethod,
    JSONObject,
    Observer,
    Side,
    TaskSeen,
)
from sansmcp.observer import HTTPObserver
from tests.support.modern import (
    EVERYTHING,
    FORM,
    ROOTS,
    SAMPLE,
    SUBSCRIPTION,
    acknowledged,
    complete,
    discovered,
    envelope,
    modern,
)
from tests.support.tasks import EXTENSION, NEEDED, RELATED, STAMP, WITH_TASKS
from tests.support.watching import C, S, Step, accused, observe, opening, taken
from tests.support.wire import call, error, note, result, wire

TASKS: JSONObject = {"extensions": {EXTENSION: {}}}
DONE: JSONObject = {"content": []}
FAILED: JSONObject = {"code": -32603, "message": "no"}
ACCEPT: JSONObject = {"action": "accept"}
DISCOVERY: tuple[Step, ...] = (
    (C, modern("probe", "server/discover")),
    (S, result("probe", discovered({"tools": {}, **TASKS}))),
)


def state(status: str = "working", **changed: object) -> JSONObject:
    """A task without its payload."""
    times = {"createdAt": STAMP, "lastUpdatedAt": STAMP}
    return {"taskId": "t", "status": status, "ttlMs": None, **times, **changed}


def ask(
    id: object,
    method: str = "tools/call",
    capabilities: JSONObject | None = None,
    params: JSONObject | None = None,
    **meta: object,
) -> Step:
    """A request with the extension; a `tools/call` by default."""
    declared = WITH_TASKS if capabilities is None else capabilities
    given: JSONObject = {"name": "tool"} if method == "tools/call" else {}
    return C, modern(id, method, {**given, **(params or {})}, envelope(declared, **meta))


def made(id: object, **changed: Any) -> Step:
    """A `CreateTaskResult`."""
    return S, result(id, {"resultType": "task", **state(**changed)})


NEW: list[Step] = [ask(1), made(1)]
"""The task "t". Its request has the id 1."""


def about(id: object, what: str, capabilities: JSONObject | None = None, **params: object) -> Step:
    """A request about a task."""
    return ask(id, f"tasks/{what}", capabilities, {"taskId": "t", **params})


def got(id: object, status: str = "working", **more: object) -> Step:
    """The result of `tasks/get`."""
    return S, complete(id, state(status, **more))


def asked(id: object, **questions: object) -> list[Step]:
    """A poll that shows questions."""
    return [about(id, "get"), got(id, "input_required", inputRequests=questions)]


def update(id: object, **responses: object) -> Step:
    return about(id, "update", inputResponses=responses)


def fine(id: object, **more: object) -> Step:
    """The result of `tasks/update` or `tasks/cancel`."""
    return S, complete(id, more)


def refused(id: object, code: int, data: object = None) -> Step:
    return S, error(id, code, "no", data)


def listening(id: object, *wanted: str, granted: tuple[str, ...] | None = None) -> list[Step]:
    """A subscription to tasks."""
    filter: JSONObject = {"taskIds": list(wanted)}
    given: JSONObject = {"taskIds": list(wanted if granted is None else granted)}
    return [
        ask(id, "subscriptions/listen", params={"notifications": filter}),
        (S, acknowledged(id, given)),
    ]


def news(tag: object, status: str = "working", **changed: object) -> Step:
    params = {**state(status, **changed), "_meta": {SUBSCRIPTION: tag}}
    return S, note("notifications/tasks", params)


def over(tag: object) -> Step:
    return news(tag, "completed", result=DONE)


@attrs.frozen
class Fault:
    """A fault, and similar conversations in which no side is at fault."""

    guilty: Side
    rule: str
    steps: list[Step]
    innocents: list[list[Step]]
    before: tuple[Step, ...] = DISCOVERY


FAULTS: dict[str, Fault] = {
    # ---------------------------------------------------------------------------- declarations
    "a request about a task without the extension": Fault(
        C,
        "XTASK-002",
        [
            *(about(1, "get", EVERYTHING), about(2, "update", {}, inputResponses={})),
            about(3, "cancel", {}),
        ],
        [
            [about(1, "get"), about(2, "update", inputResponses={}), about(3, "cancel")],
            [about(1, "get", TASKS)],
        ],
    ),
    "a subscription to tasks without the extension": Fault(
        C,
        "XTASK-002",
        [ask(1, "subscriptions/listen", {}, {"notifications": {"taskIds": ["t"]}})],
        [
            [ask(1, "subscriptions/listen", {}, {"notifications": {"taskIds": []}})],
            [*NEW, *listening(2, "t", "u")],
        ],
    ),
    "a task of a call without the extension": Fault(
        S,
        "XTASK-007",
        [ask(1, "tools/call", EVERYTHING), made(1)],
        [NEW],
    ),
    "a request about a task without the extension is served": Fault(
        S,
        "XTASK-014",
        [got(1), fine(2), refused(3, -32602)],
        [
            [refused(1, -32021, NEEDED), refused(2, -32601), refused(3, -32603)],
        ],
        before=(
            *DISCOVERY,
            *(about(1, "get", {}), about(2, "update", {}, inputResponses={})),
            about(3, "cancel", {}),
        ),
    ),
    "a refusal that does not name the extension": Fault(
        S,
        "XTASK-012",
        [
            refused(1, -32021, {"requiredCapabilities": {}}),
            refused(2, -32021, {"requiredCapabilities": {"extensions": {EXTENSION: {"a": 1}}}}),
            refused(3, -32021, {"requiredCapabilities": {"extensions": []}}),
        ],
        [[refused(1, -32021, NEEDED)]],
        before=(*DISCOVERY, *(about(id, "get", {}) for id in (1, 2, 3))),
    ),
    "a task of a server that does not declare the extension": Fault(
        S,
        "XTASK-001",
        NEW,
        [[ask(1), (S, complete(1, DONE))]],
        before=(
            (C, modern("probe", "server/discover")),
            (S, result("probe", discovered({"tools": {}}))),
        ),
    ),
    "the old capability": Fault(
        S,
        "XTASK-018",
        [(S, result(1, discovered({"tasks": {"list": {}}})))],
        [[(S, result(1, discovered({"tasks": {}})))], [(S, result(1, discovered({"tasks": 1})))]],
        before=(*DISCOVERY, (C, modern(1, "server/discover"))),
    ),
    "the wish of the older form": Fault(
        C,
        "XTASK-006",
        [ask(1, params={"task": {}})],
        [[ask(1, params={"task": "mine"})], [ask(1, capabilities={}, params={"task": {}})]],
    ),
    # ----------------------------------------------------------------------------- new tasks
    "a task of another method": Fault(
        S,
        "XTASK-023",
        [ask(1, "prompts/get", params={"name": "p"}), made(1)],
        [[ask(1, "prompts/get", params={"name": "p"}), refused(1, -32602)]],
    ),
    "a task in a member": Fault(
        S, "XTASK-029", [ask(1), (S, result(1, {"resultType": "task", "task": state()}))], [NEW]
    ),
    "a new task with its payload": Fault(
        S,
        "XTASK-030",
        [ask(1), made(1, status="completed", result=DONE)],
        [[ask(1), made(1, status="completed")], [ask(1), made(1, status="input_required")]],
    ),
    "a task with an unknown status": Fault(
        S, "XTASK-034", [ask(1), made(1, status="begun")], [[ask(1), made(1, status="failed")]]
    ),
    "a task without an id": Fault(
        S, "OWN-014", [ask(1), (S, result(1, {"resultType": "task"}))], [NEW]
    ),
    "a task with a member that is null": Fault(
        S,
        "OWN-015",
        [ask(1), made(1, statusMessage=None)],
        [[ask(1), made(1, statusMessage="soon")]],
    ),
    "a task that began at no time": Fault(
        S, "XTASK-036", [ask(1), made(1, createdAt="now")], [[ask(1), made(1, createdAt=STAMP)]]
    ),
    "a task that was updated at no time": Fault(
        S,
        "XTASK-037",
        [ask(1), made(1, lastUpdatedAt="")],
        [[ask(1), made(1, lastUpdatedAt="2027-01-15T08:00Z")]],
    ),
    "a time to live that is none": Fault(
        S, "XTASK-038", [ask(1), made(1, ttlMs="1 h")], [[ask(1), made(1, ttlMs=5)]]
    ),
    "a poll interval that is none": Fault(
        S,
        "XTASK-039",
        [ask(1), made(1, pollIntervalMs=True)],
        [[ask(1), made(1, pollIntervalMs=9)]],
    ),
    "durations that are not above zero": Fault(
        S,
        "XTASK-040",
        [
            *(ask(1), made(1, ttlMs=0), ask(2), made(2, ttlMs=-5), ask(3), made(3, ttlMs=0.5)),
            *(ask(4), made(4, pollIntervalMs=0)),
        ],
        [[ask(1), made(1, ttlMs=5.0, pollIntervalMs=7)]],
    ),
    "a task with old members": Fault(
        S,
        "XTASK-041",
        [ask(1), made(1, ttl=5), ask(2), made(2, pollInterval=5)],
        [[ask(1), made(1, more=5)]],
    ),
    "a task with a state of its request": Fault(
        S, "XTASK-042", [ask(1), made(1, requestState="s")], [[ask(1), made(1, state="s")]]
    ),
    "a second task with the same id": Fault(
        S,
        "XTASK-033",
        [*NEW, ask(2), made(2)],
        [[*NEW, ask(2), made(2, taskId="u")], [ask(1), made(1, ttlMs=1), ask(2), made(2)]],
    ),
    # ------------------------------------------------------------------------------ responses
    "a state of the type of a new task": Fault(
        S, "XTASK-027", [*NEW, about(2, "get"), made(2)], [[*NEW, about(2, "get"), got(2)]]
    ),
    "a state of another task": Fault(
        S,
        "XTASK-070",
        [*NEW, about(2, "get"), got(2, taskId="u")],
        [[about(2, "get"), got(2)]],
    ),
    "a status without its payload": Fault(
        S,
        "XTASK-044",
        [
            *(about(1, "get"), got(1, "completed"), about(2, "get", taskId="u")),
            got(2, "failed", taskId="u"),
            *(about(3, "get", taskId="v"), got(3, "input_required", taskId="v")),
        ],
        [
            [about(1, "get"), got(1, "cancelled")],
            [about(1, "get"), got(1, "failed", error=FAILED)],
        ],
    ),
    "a payload of another status": Fault(
        S,
        "XTASK-045",
        [
            *(about(1, "get"), got(1, result=DONE), about(2, "get")),
            got(2, "failed", error=FAILED, result=DONE),
        ],
        [[about(1, "get"), got(1, "completed", result=DONE)]],
    ),
    "an error that is none": Fault(
        S,
        "XTASK-046",
        [about(1, "get"), got(1, "failed", error={"code": "1", "message": ""})],
        [[about(1, "get"), got(1, "failed", error=FAILED)]],
    ),
    "a result that is not one of the request": Fault(
        S,
        "XTASK-047",
        [*NEW, about(2, "get"), got(2, "completed", result={})],
        [
            [*NEW, about(2, "get"), got(2, "completed", result={**DONE, "isError": True})],
            [about(2, "get"), got(2, "completed", result={})],  # its request was not seen
        ],
    ),
    "a result that names its task": Fault(
        S,
        "XTASK-150",
        [about(1, "get"), got(1, "completed", result={"_meta": {RELATED: {"taskId": "t"}}})],
        [[about(1, "get"), got(1, "completed", result={"_meta": {}})]],
    ),
    "a result that is a task": Fault(
        S,
        "XTASK-027",
        [about(1, "get"), got(1, "completed", result={"resultType": "task"})],
        [[about(1, "get"), got(1, "completed", result={"resultType": "complete"})]],
    ),
    "an acknowledgement with a task": Fault(
        S,
        "XTASK-098",
        [about(1, "update", inputResponses={}), fine(1, **state()), about(2, "cancel"), got(2)],
        [[about(1, "update", inputResponses={}), fine(1), about(2, "cancel"), fine(2, more=1)]],
    ),
    "a result of a method that is gone": Fault(
        S,
        "XTASK-141",
        [(S, complete(1, DONE))],
        [[refused(1, -32601)]],
        before=(*DISCOVERY, about(1, "result")),
    ),
    "a list of tasks": Fault(
        S,
        "XTASK-142",
        [(S, complete(1, {"tasks": []}))],
        [[refused(1, -32601)]],
        before=(*DISCOVERY, about(1, "list")),
    ),
    "a new task that is not known": Fault(
        S,
        "XTASK-057",
        [*NEW, about(2, "get"), refused(2, -32602)],
        [
            [about(2, "get"), refused(2, -32602)],
            [*NEW, about(2, "get"), refused(2, -32603)],
            [ask(1), made(1, ttlMs=1), about(2, "get"), refused(2, -32602)],
        ],
    ),
    "a task that is deleted too early": Fault(
        S,
        "XTASK-084",
        [*NEW, about(2, "get"), got(2), about(3, "update", inputResponses={}), refused(3, -32602)],
        [[*NEW, about(2, "get"), got(2, ttlMs=9), about(3, "get"), refused(3, -32602)]],
    ),
    "a cancellation of a task that is over is refused": Fault(
        S,
        "XTASK-118",
        [
            *(*NEW, about(2, "get"), got(2, "completed", result=DONE), about(3, "cancel")),
            refused(3, -32602),
        ],
        [[*NEW, about(2, "get"), got(2, "completed", result=DONE), about(3, "cancel"), fine(3)]],
    ),
    # -------------------------------------------------------------------------------- changes
    "a task that goes on after its end": Fault(
        S,
        "XTASK-051",
        [*NEW, about(2, "get"), got(2, "completed", result=DONE), about(3, "get"), got(3)],
        [
            [
                *(*NEW, about(2, "get"), about(3, "get"), got(2, "completed", result=DONE)),
                got(3),  # it was read before the end
            ],
            [*NEW, *asked(2, a=FORM), about(3, "get"), got(3)],
        ],
    ),
    "a task with a second end": Fault(
        S,
        "XTASK-051",
        [*NEW, *listening(2, "t"), over(2), news(2, "failed", error=FAILED)],
        [
            [*NEW, *listening(2, "t"), over(2), over(2)],
            [*NEW, *listening(2, "t"), news(2), over(2)],
        ],
    ),
    # ------------------------------------------------------------------------------- questions
    "no questions": Fault(
        S,
        "XTASK-106",
        [*NEW, *asked(2), *asked(3, a={}), *asked(4, a=5)],
        [[*NEW, *asked(2, a=FORM)]],
    ),
    "a question that is none": Fault(
        S,
        "XTASK-107",
        [*NEW, *asked(2, a={"method": "ping"}), *asked(3, b={**FORM, "id": 1})],
        [[*NEW, *asked(2, a=FORM, b=ROOTS, c=SAMPLE)]],
    ),
    "a question that was not declared": Fault(
        S,
        "XTASK-108",
        [ask(1, capabilities=TASKS), made(1), about(2, "get", TASKS), asked(2, a=ROOTS)[1]],
        [
            [ask(1, capabilities=TASKS), made(1), *asked(2, a=ROOTS)],
            [ask(1), made(1), about(2, "get", TASKS), asked(2, a=ROOTS)[1]],
            [about(2, "get", TASKS), asked(2, a=ROOTS)[1]],  # its request was not seen
        ],
    ),
    "a question of the wrong shape": Fault(
        S,
        "OWN-014",
        [*NEW, *asked(2, a={"method": "elicitation/create", "params": {}})],
        [[*NEW, *asked(2, a=FORM)]],
    ),
    "a question with a null": Fault(
        S,
        "OWN-015",
        [*NEW, *asked(2, a={**ROOTS, "params": None})],
        [[*NEW, *asked(2, a={**ROOTS, "params": {}})]],
    ),
    "a key for two questions": Fault(
        S,
        "XTASK-104",
        [*NEW, *asked(2, a=FORM), *asked(3, a=ROOTS)],
        [
            [*NEW, *asked(2, a=FORM), *asked(3, a=FORM, b=ROOTS)],
            [*NEW, *asked(2, a=FORM), *(ask(5), made(5, taskId="u"), *asked(6, b=ROOTS))],
        ],
    ),
    "a key that is used again": Fault(
        S,
        "XTASK-105",
        [*NEW, *asked(2, a=FORM, b=ROOTS), *asked(3, b=ROOTS), *asked(4, a=FORM, b=ROOTS)],
        [
            [*NEW, *asked(2, a=FORM, b=ROOTS), *asked(3, b=ROOTS), *asked(4, b=ROOTS)],
            [  # the state with the key was read before
                *(*NEW, *asked(2, a=FORM, b=ROOTS), about(3, "get"), *asked(4, b=ROOTS)),
                asked(3, a=FORM, b=ROOTS)[1],
            ],
            [  # the state without it was read before it was asked
                *(*NEW, about(2, "get"), *asked(3, a=FORM), got(2), *asked(4, a=FORM)),
            ],
        ],
    ),
    "an answer to no question": Fault(
        C,
        "XTASK-092",
        [*NEW, update(2, a=ACCEPT), *asked(3, a=FORM), update(4, a=ACCEPT, b=ACCEPT)],
        [
            [*NEW, *asked(2, a=FORM), update(3, a=ACCEPT)],
            [update(2, a=ACCEPT)],  # a task of an earlier conversation
            [*NEW, about(2, "get"), got(2, "completed", result=DONE), update(3, a=ACCEPT)],
            [*NEW, (S, b"{\n")],
        ],
    ),
    "an answer that is none": Fault(
        C,
        "XTASK-093",
        [
            *(*NEW, *asked(2, a=FORM), update(3, a=5), update(4, a={"action": 5})),
            update(5, a={**ACCEPT, "resultType": "complete"}),
        ],
        [
            [*NEW, *asked(2, a=FORM), update(3, a={**ACCEPT, "content": None})],
            [about(2, "update", inputResponses={"a": {}})],
        ],
    ),
    # --------------------------------------------------------------------- other notifications
    "news of a task that was not asked for": Fault(
        S,
        "XTASK-125",
        [*listening(1, "t", "u", granted=("u",)), news(1)],
        [[*listening(1, "t", "u", granted=("u",)), news(1, taskId="u")]],
    ),
    "news of tasks in no subscription": Fault(
        S,
        "SUBS-009",
        [*listening(1, "t"), (S, note("notifications/tasks", state()))],
        [[*listening(1, "t"), news(1)]],
    ),
    "more tasks than were asked for": Fault(
        S, "SUBS-007", listening(1, "t", granted=("t", "u")), [listening(1, "t", granted=())]
    ),
    "news that are a result": Fault(
        S, "XTASK-127", [*listening(1, "t"), news(1, resultType="complete")], [listening(1, "t")]
    ),
    "news without the payload": Fault(
        S,
        "XTASK-044",
        [*listening(1, "t"), news(1, "failed")],
        [[*listening(1, "t"), news(1, "failed", error=FAILED)]],
    ),
    "news of no task": Fault(
        S,
        "OWN-014",
        [*listening(1, "t"), (S, note("notifications/tasks", {"_meta": {SUBSCRIPTION: 1}}))],
        [listening(1, "t")],
    ),
    "news with no time": Fault(
        S, "XTASK-036", [*listening(1, "t"), news(1, createdAt="")], [listening(1, "t")]
    ),
    "news of the older form": Fault(
        S, "XTASK-133", [(S, note("notifications/tasks/status", state()))], [[]]
    ),
    "progress of a task": Fault(
        S,
        "XTASK-132",
        [
            *(ask(1, progressToken=7), made(1)),
            (S, note("notifications/progress", {"progressToken": 7, "progress": 1})),
        ],
        [
            [
                ask(1, progressToken=7),
                (S, note("notifications/progress", {"progressToken": 7, "progress": 1})),
                made(1),
            ],
        ],
    ),
    "a cancellation of the request of a task": Fault(
        C,
        "XTASK-114",
        [*NEW, about(2, "get"), (C, note("notifications/cancelled", {"requestId": 1}))],
        [
            [*NEW, (C, note("notifications/cancelled", {"requestId": 1}))],  # they may cross
            [*NEW, about(2, "get"), about(3, "cancel")],
        ],
    ),
}


def found(fault: Fault, steps: list[Step]) -> list[tuple[Side, str]]:
    """The accused sides for these messages after those."""
    before = len(accused(observe(*fault.before)))
    return accused(observe(*fault.before, *steps))[before:]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_laid_to_the_side_and_the_rule_that_it_breaks(name: str) -> None:
    """Debugging with the observer depends on the right side and rule."""
    fault = FAULTS[name]

    assert set(found(fault, fault.steps)) == {(fault.guilty, fault.rule)}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_close_to_a_fault_is_not_taken_for_it(name: str) -> None:
    """A race, another extension or a similar member must not be reported as the fault."""
    fault = FAULTS[name]

    for innocent in fault.innocents:
        found_here = [one for one in found(fault, innocent) if one[1] != "STDIO-002"]
        assert found_here == [], innocent


@pytest.mark.parametrize("name", FAULTS)
def test_a_handshake_in_the_middle_adds_no_fault(name: str) -> None:
    """A server of both eras serves both at once."""
    fault = FAULTS[name]
    before = (*fault.before, *opening())
    known = len(accused(observe(*before)))

    for innocent in fault.innocents:
        rest = accused(observe(*before, *innocent))[known:]
        assert [one for one in rest if one[1] != "STDIO-002"] == [], innocent


@pytest.mark.parametrize(("seconds", "is_early"), [(2.0, True), (9.0, False)])
def test_the_time_to_live_counts_from_the_request(seconds: float, is_early: bool) -> None:
    """The task is not older than its request, so the clock of the observer shows it."""
    steps = [ask(1), made(1, ttlMs=5000), about(2, "get"), refused(2, -32602)]
    events = observe(*steps, times=[0.0, 1.0, 1.0, seconds])

    assert accused(events) == ([(S, "XTASK-057")] if is_early else [])


def test_an_answer_after_an_unreadable_line_may_answer_an_unseen_question() -> None:
    """What could not be read may have been any message of the server."""
    rules = accused(observe(*NEW, (S, b"{\n"), update(2, a=ACCEPT)))

    assert rules == [(S, "STDIO-002")]


def test_each_change_of_a_task_is_one_event() -> None:
    """A log of tasks needs the changes, and not a line for each poll."""
    steps = [
        *(*NEW, about(2, "get"), got(2), *asked(3, a=FORM), *asked(4, a=FORM)),
        *(about(5, "get"), about(6, "get"), got(6, "completed", result=DONE), got(5)),
    ]
    events = [event for event in observe(*steps) if isinstance(event, TaskSeen)]

    assert [event.status for event in events] == ["working", "input_required", "completed"]
    assert {(event.side, event.task_id, event.method) for event in events} == {
        (S, "t", "tools/call")
    }


def test_an_extension_of_the_application_may_have_these_methods() -> None:
    """Its own definition counts, and the rules of tasks do not."""
    method = ExtensionMethod(name="tasks/get", kind="request", sender=C, revisions=["2026-07-28"])
    own = Extension(methods=(method,), result_types=("task",))
    steps = [ask(1, "tasks/get", {}), got(1), ask(2, capabilities={}), made(2)]
    steps.append(ask(3, "subscriptions/listen", {}, {"notifications": {"taskIds": ["t"]}}))

    assert accused(observe(*DISCOVERY, *steps, config=Config(extensions=[own]))) == []


def test_questions_over_the_limit_are_not_judged() -> None:
    """A limit must not make anybody guilty."""
    many = {f"q{n}": FORM for n in range(9)}
    steps = [*NEW, *asked(2, **many), update(3, other=ACCEPT), *asked(4, q0=ROOTS)]
    events = observe(*steps, config=Config(max_requests=5))

    assert accused(events) == []
    texts = [event.text for event in events if isinstance(event, BlindSpot)]
    assert any(text.startswith("the questions of a task were forgotten") for text in texts)


def test_a_task_that_was_forgotten_breaks_nothing() -> None:
    """A limit must not make anybody guilty."""
    steps: list[Step] = [*NEW, *asked(2, a=FORM)]
    for n in range(10, 20):
        steps += [ask(n), made(n, taskId=f"t{n}")]
    steps += [update(30, b=ACCEPT), fine(30), *asked(31, a=ROOTS), about(40, "get", taskId="x")]
    steps += [got(40, taskId="x")]
    events = observe(*steps, config=Config(max_requests=5))

    assert accused(events) == []
    assert any(isinstance(e, BlindSpot) and "oldest task" in e.text for e in events)


def test_without_checks_of_shape_odd_messages_break_nothing_more() -> None:
    """`Config(check="none")` leaves the shapes to others."""
    steps: list[Step] = [
        *(*NEW, *asked(2, a=FORM), update(3, a=5)),
        *(ask(4, "tasks/get"), refused(4, -32602), about(5, "update"), fine(5)),
        *(ask(6, "tasks/get"), got(6), ask(7, "tasks/get", {})),
    ]

    rules = accused(observe(*steps, config=Config(check="none")))
    assert rules == [(C, "XTASK-002")]


def test_questions_that_are_too_deep_are_not_compared() -> None:
    """No message may make an observer raise."""
    deep: Any = {}
    for _ in range(100_000):
        deep = {"": deep}
    observer = Observer()
    question: JSONObject = {"method": "roots/list", "params": {"x": deep}}
    for side, message in [*NEW, *asked(2, a=question)]:
        observer.receive_message(side, message)

    assert accused(taken(observer)) == []


# ------------------------------------------------------------------------------------------ HTTP


def exchange(
    observer: HTTPObserver, number: int, request: Step, *responses: Step, ends: bool = True
) -> None:
    """One exchange; several responses are the events of a stream."""
    message = request[1]
    method, params = message["method"], message["params"]
    headers = [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ]
    if named := params.get("name") or params.get("taskId"):
        headers.append(("mcp-name", named))
    observer.receive_request_head(number, "POST", "/mcp", headers)
    observer.receive_request_body(number, wire(message))
    respond(observer, number, *responses, ends=ends)


def respond(observer: HTTPObserver, number: int, *responses: Step, ends: bool = True) -> None:
    if not responses:
        return
    is_error = "error" in responses[0][1]
    kind = "application/json" if ends and len(responses) == 1 else "text/event-stream"
    observer.receive_response_head(number, 400 if is_error else 200, [("content-type", kind)])
    for _, message in responses:
        if kind == "application/json":
            observer.receive_response_body(number, wire(message))
        else:
            observer.receive_response_event(number, wire(message))
    if ends:
        observer.receive_end(number)


def drained(observer: HTTPObserver) -> list[Any]:
    events: list[Any] = []
    while (event := observer.next_event()) is not None:
        events.append(event)
    return events


def test_polls_over_http_are_judged_together() -> None:
    """Each exchange is a conversation of its own, and the task is in all of them."""
    observer = HTTPObserver("/mcp")
    exchange(observer, 1, ask(1), made(1))
    exchange(observer, 2, about(1, "get"), got(1, "completed", result=DONE))
    exchange(observer, 3, about(1, "get"), got(1))
    events = drained(observer)

    assert accused(events) == [(S, "XTASK-051")]
    assert [event.status for event in events if isinstance(event, TaskSeen)] == [
        "working",
        "completed",
    ]


def test_what_may_overtake_over_http_breaks_nothing() -> None:
    """A poll that began before the end, news on another stream, and another client's task."""
    observer = HTTPObserver("/mcp")
    exchange(observer, 1, ask(1), made(1))
    exchange(observer, 2, *listening(1, "t"), ends=False)
    exchange(observer, 3, about(1, "get"))
    exchange(observer, 4, about(1, "get"), got(1, "completed", result=DONE))
    respond(observer, 3, got(1))
    observer.receive_response_event(2, wire(news(1)[1]))
    exchange(observer, 5, about(1, "get"), refused(1, -32602))
    exchange(observer, 6, update(1, other=ACCEPT), fine(1))

    assert accused(drained(observer)) == []


def test_news_on_one_stream_are_in_order() -> None:
    """Nothing overtakes on one stream, also over HTTP."""
    observer = HTTPObserver("/mcp")
    exchange(observer, 1, *listening(1, "t"), news(1), over(1), news(1), ends=False)

    assert accused(drained(observer)) == [(S, "XTASK-051")]


def test_the_status_of_a_refusal_over_http() -> None:
    """CAP-008, XTASK-016: a missing capability is status 400."""
    observer = HTTPObserver("/mcp")
    exchange(observer, 1, (C, modern(1, "server/discover")), (S, result(1, discovered())))
    exchange(observer, 2, about(1, "get", {}))
    observer.receive_response_head(2, 200, [("content-type", "application/json")])
    observer.receive_response_body(2, wire(refused(1, -32021, NEEDED)[1]))

    assert accused(drained(observer)) == [(C, "XTASK-002"), (S, "CAP-008")]


def test_sessions_over_http_have_tasks_of_their_own() -> None:
    """In 2025-11-25 messages of a session may overtake each other; each form has its own tasks."""
    observer = HTTPObserver("/mcp")
    session = [
        ("accept", "application/json, text/event-stream"),
        ("mcp-session-id", "s"),
        ("mcp-protocol-version", "2025-11-25"),
    ]

    def post(number: int, request: JSONObject, response: JSONObject) -> None:
        observer.receive_request_head(number, "POST", "/mcp", session)
        observer.receive_request_body(number, wire(request))
        observer.receive_response_head(number, 200, [("content-type", "application/json")])
        observer.receive_response_body(number, wire(response))
        observer.receive_end(number)

    legacy = {"status": "completed", "taskId": "t", "ttl": None}
    legacy |= {"createdAt": STAMP, "lastUpdatedAt": STAMP}
    post(1, call(1, "tasks/get", {"taskId": "t"}), result(1, legacy))
    exchange(observer, 2, about(1, "get"), got(1))
    observer.receive_request_head(3, "GET", "/mcp", session)
    observer.receive_response_head(3, 200, [("content-type", "text/event-stream")])
    late = note("notifications/tasks/status", {**legacy, "status": "working"})
    observer.receive_response_event(3, wire(late))
    assert accused(drained(observer)) == []

    post(4, call(2, "tasks/get", {"taskId": "t"}), result(2, {**legacy, "status": "working"}))
    assert accused(drained(observer)) == []  # the revision of the session is not known
