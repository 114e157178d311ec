"""Every interleaving of one task: its work, its end, a question, a lost store, polls and timeouts.

Each exploration is complete: `explore` raises if it would have to give up. In each state the
promises are checked, and one of them is that each request has one ending.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    ClientConnection,
    Config,
    ServerConnection,
    Side,
    Tasks,
)
from sansmcp.testing import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    SERVER_CAPABILITIES,
    SERVER_INFO,
    Exploration,
    Pair,
    Script,
    answer,
    answer_lookup,
    cancel,
    complete_task,
    create_task,
    fail_lookup,
    lose_records,
    provide_task_input,
    request,
    require_task_input,
)
from tests.support.machines.exploration import explore

LEGACY, MODERN = LEGACY_REVISIONS[-1], MODERN_REVISIONS[-1]
FORMS = pytest.mark.parametrize("revision", [LEGACY, MODERN])
TOOL: dict[str, Any] = {"name": "slow"}
RESULT: dict[str, Any] = {"content": []}
ROOTS: dict[str, Any] = {"roots": []}
QUESTION: dict[str, Any] = {"roots": {"method": "roots/list"}}
START = 1_800_000_000.0


def same_bytes(count: int) -> bytes:
    """The id of the one task is the same in every state."""
    return bytes(count)


def pair_of(revision: str, **settings: Any) -> Pair:
    """A client and a server with tasks; the client polls every 4 seconds."""
    given: dict[str, Any] = {"entropy": same_bytes, "poll_seconds": 4.0, "max_failed_polls": 2}
    revisions = (revision,)
    return Pair(
        ClientConnection(
            info=CLIENT_INFO,
            capabilities={**CLIENT_CAPABILITIES, "roots": {"listChanged": True}},
            revisions=revisions,
            tasks=Tasks(**given),
            config=Config(max_late_answers=20),
        ),
        ServerConnection(
            info=SERVER_INFO,
            capabilities=SERVER_CAPABILITIES,
            revisions=revisions,
            tasks=Tasks(**given, poll_ms=4000, **settings),
        ),
    )


def asking(*more: Any, max_timeout: float = 6.0) -> Script:
    """The client asks for a task, and waits for a few polls at most."""
    return [request("call", "tools/call", TOOL, task=True, max_timeout=max_timeout), *more]


def made(**options: Any) -> Any:
    return create_task(0, at=START, **options)


def seen(found: Exploration, side: Side) -> set[str]:
    return {kind for owner, kind in found.events if owner is side}


def answering(revision: str) -> Script:
    """The client answers the question of the task."""
    if revision == MODERN:
        return [provide_task_input("call", {"roots": ROOTS})]
    return [answer(0, ROOTS)]


def stated(capsys: pytest.CaptureFixture[str], name: str, found: Exploration, least: int) -> None:
    """Print the numbers of a complete exploration; asserts at least this many states."""
    with capsys.disabled():
        print(f"\n{name}: {found}")
    assert found.states >= least


def run(
    revision: str,
    client: Sequence[Script],
    server: Sequence[Script],
    settings: dict[str, Any] | None = None,
    **how: Any,
) -> Exploration:
    return explore(pair_of(revision, **(settings or {})), client=client, server=server, **how)


@pytest.mark.proof
@FORMS
def test_one_task(revision: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Polls, the end of the task and the patience of the client may cross in any way."""
    found = run(revision, [asking()], [[made(), complete_task(RESULT)]], eof=False)

    stated(capsys, f"one task in {revision}", found, 50)
    assert seen(found, Side.CLIENT) >= {"ResponseReceived", "RequestFailed", "TaskUpdated"}


@FORMS
def test_one_task_without_a_clock(revision: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A cancellation of the client may cross the task, its result and the ends of the streams."""
    client: list[Script] = [asking(), [cancel("call")]]
    found = run(revision, client, [[made(), complete_task(RESULT)]], timeouts=False)

    stated(capsys, f"one cancelled task in {revision}", found, 100)
    assert seen(found, Side.CLIENT) >= {"RequestFailed", "TaskUpdated", "ConnectionClosed"}
    assert "TaskCancelled" in seen(found, Side.SERVER)


@FORMS
def test_a_result_in_place_of_a_task(revision: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The client has one handle and one ending, also where the server answers at once."""
    found = run(revision, [asking(), [cancel("call")]], [[answer(0, RESULT)]])

    stated(capsys, f"a result in place of a task in {revision}", found, 50)
    assert {"ResponseReceived", "RequestFailed"} <= seen(found, Side.CLIENT)


def test_one_question_in_2025_11_25(capsys: pytest.CaptureFixture[str]) -> None:
    """The question is a request of its own, and the streams may end around it."""
    server: list[Script] = [[made(), require_task_input(QUESTION), complete_task(RESULT)]]
    found = run(LEGACY, [asking(), answering(LEGACY)], server, timeouts=False)

    stated(capsys, "one question in 2025-11-25", found, 300)
    assert "TaskInputReceived" in seen(found, Side.SERVER)
    assert "ResponseReceived" in seen(found, Side.CLIENT)


def test_one_question_in_2026_07_28(capsys: pytest.CaptureFixture[str]) -> None:
    """A poll shows the question, and may cross the patience of the client."""
    server: list[Script] = [[made(), require_task_input(QUESTION)]]
    client: list[Script] = [asking(max_timeout=4.5), answering(MODERN)]
    found = run(MODERN, client, server, eof=False)

    stated(capsys, "one question in 2026-07-28", found, 100)
    assert "TaskInputReceived" in seen(found, Side.SERVER)


@FORMS
def test_one_failure_of_the_store(revision: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A task that cannot be stored is no task: the request has an error."""
    server: list[Script] = [[made()], [answer_lookup()], [fail_lookup()]]
    client: list[Script] = [asking()]
    if revision == LEGACY:
        client.append([request("list", "tasks/list", max_timeout=6)])
    found = run(revision, client, server, {"store": "ask"}, eof=False, timeouts=False)

    stated(capsys, f"one failure of the store in {revision}", found, 8)
    assert "ErrorReceived" in seen(found, Side.CLIENT)


@FORMS
def test_a_change_of_a_lost_record(revision: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A store that has begun anew since the task was made is asked for the record, and has none."""
    server: list[Script] = [
        [made(), complete_task(RESULT)],
        [answer_lookup()] * 3,
        [lose_records()],
    ]
    found = run(revision, [asking()], server, {"store": "ask"}, eof=False, timeouts=False)

    stated(capsys, f"a change of a lost record in {revision}", found, 20)
    assert "TaskWanted" in seen(found, Side.SERVER)


@pytest.mark.proof
@FORMS
def test_one_task_with_a_question(revision: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The question, its answer, the result and the deadlines may cross in any way."""
    server: list[Script] = [[made(), require_task_input(QUESTION), complete_task(RESULT)]]
    client: list[Script] = [asking(max_timeout=5.0), answering(revision)]
    if revision == MODERN:  # in 2025-11-25 there are 29,000 states without it
        client.append([cancel("call")])
    found = run(revision, client, server, eof=False)

    stated(capsys, f"one task with a question in {revision}", found, 500)
    assert "TaskInputReceived" in seen(found, Side.SERVER)


@pytest.mark.proof
@FORMS
def test_one_task_that_expires(revision: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The time to live may be over before the end, after it, and while the client polls."""
    server: list[Script] = [[made(ttl_ms=3000), complete_task(RESULT)]]
    found = run(revision, [asking(), [cancel("call")]], server, eof=False)

    stated(capsys, f"one task that expires in {revision}", found, 500)
    assert "TaskCancelled" in seen(found, Side.SERVER)


@pytest.mark.proof
@FORMS
def test_one_task_on_a_lost_store(revision: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A store that fails once, or begins anew without its records, ends each request once."""
    answers: Script = [answer_lookup()] * 4
    server: list[Script] = [
        [made(), complete_task(RESULT)],
        [*answers[:2], fail_lookup(), *answers[2:]],
        [lose_records()],
    ]
    found = run(revision, [asking()], server, {"store": "ask"}, eof=False)

    stated(capsys, f"one task on a lost store in {revision}", found, 500)
    assert seen(found, Side.CLIENT) >= {"RequestFailed", "TaskUpdated"}


@pytest.mark.proof
@FORMS
def test_a_store_that_begins_anew(revision: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A task whose record is lost must end its request, and not be polled for ever."""
    server: list[Script] = [[made()], [answer_lookup()] * 5, [lose_records()]]
    found = run(revision, [asking()], server, {"store": "ask"}, eof=False)

    stated(capsys, f"a store that begins anew in {revision}", found, 50)
    assert seen(found, Side.CLIENT) >= {"RequestFailed", "TaskUpdated"}
