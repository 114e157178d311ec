"""No message of either side makes an observer raise, and each is reported."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from sansmcp import (
    LEGACY_REVISIONS,
    JSONObject,
    MessageSeen,
    Observation,
    Observer,
    Side,
    TextSeen,
)
from sansmcp.testing import json_values, messages, nearly_messages, wire_bytes
from tests.support.machines.budget import examples
from tests.support.watching import C, S, Step, opening, taken
from tests.support.wire import call, note, result, wire

TASK: JSONObject = {"taskId": "t", "status": [], "createdAt": "", "lastUpdatedAt": "", "ttl": None}
LONG = call(1, "tools/call", {"name": "x", "task": {}, "_meta": {"progressToken": 1}})


def said(events: list[Observation]) -> int:
    """The number of reported lines, with a batch as one."""
    return len({event.number for event in events if isinstance(event, MessageSeen | TextSeen)})


@examples(60, 1500)
@given(st.lists(st.tuples(st.sampled_from(Side), wire_bytes()), max_size=5), st.booleans())
def test_no_bytes_make_it_fail(chunks: list[tuple[Side, bytes]], from_start: bool) -> None:
    """A proxy that raises would end the conversation."""
    observer = Observer(from_start=from_start)
    for side, data in chunks:
        observer.receive_data(side, data)
    for side in Side:
        observer.receive_eof(side)
    observer.close()

    assert said(taken(observer)) == observer.messages


@examples(80, 2000)
@given(
    revision=st.none() | st.sampled_from(LEGACY_REVISIONS),
    steps=st.lists(
        st.tuples(st.sampled_from(Side), messages() | nearly_messages() | json_values()),
        max_size=12,
    ),
)
@example(revision="2025-11-25", steps=[(C, LONG), (S, result(1, {"task": TASK}))])
@example(revision="2025-11-25", steps=[(S, note("notifications/tasks/status", TASK))])
@example(
    revision="2025-11-25",
    steps=[
        (C, LONG),
        (S, result(1, {"task": {**TASK, "status": "working"}})),
        (S, note("notifications/tasks/status", TASK)),
        (C, call(2, "tasks/list")),
        (S, result(2, {"tasks": [TASK, 5]})),
    ],
)
@example(revision="2025-11-25", steps=[(C, call(1, "logging/setLevel", {"level": []}))])
@example(revision="2025-11-25", steps=[(C, call(1, "resources/subscribe", {"uri": []}))])
@example(
    revision="2025-11-25",
    steps=[(C, call(1, "resources/unsubscribe", {"uri": {}})), (S, result(1, {}))],
)
@example(revision=None, steps=[(C, call(1, "initialize", [])), (S, result(1, {}))])
@example(revision=None, steps=[(C, call(1, "server/discover")), (S, result(1, 1))])
def test_no_message_makes_it_fail(revision: str | None, steps: list[tuple[Side, Any]]) -> None:
    """Members may have any type, ids any value, and responses may match no request."""
    observer = Observer()
    before: list[Step] = [] if revision is None else opening(revision)
    for side, message in [*before, *steps]:
        observer.receive_message(side, message)
    observer.close()

    assert said(taken(observer)) == observer.messages == len(before) + len(steps)


def test_any_buffer_will_do() -> None:
    """Readers reuse their buffers, so bytearrays and memoryviews must be accepted."""
    observer = Observer()
    line = bytearray(wire(call(1, "ping")))
    for data in (line, memoryview(bytes(line)), bytes(line)):
        observer.receive_data(C, data)

    assert said(taken(observer)) == 3
