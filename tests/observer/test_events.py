"""The events of an observer: messages, matched pairs, endings, and their times."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from sansmcp import (
    MISSING,
    AnswerMatched,
    CancellationMatched,
    MessageKind,
    MessageSeen,
    Observation,
    Observer,
    RequestUnanswered,
    Side,
    StreamEnded,
    TextSeen,
    ViolationSeen,
)
from sansmcp._spec.rule_levels import LEVELS
from sansmcp.testing import plain
from tests.support.tables import PACKAGE, own_table
from tests.support.watching import C, S, accused, observe, opening, taken
from tests.support.wire import call, error, note, result, wire


def seen(events: list[Observation]) -> list[tuple[Any, ...]]:
    """Each message: sender, kind, method, id."""
    return [
        (event.side, event.kind.name, event.method, event.id)
        for event in events
        if isinstance(event, MessageSeen)
    ]


def of(kind: type[Any], events: list[Observation]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def test_every_message_is_told_of() -> None:
    """A trace without invalid or late messages could not be trusted."""
    events = observe(
        (C, call(1, "ping")),
        (S, note("notifications/x", {"a": 1})),
        (S, result(1.0, {})),
        (S, error(1, -1)),
        (C, {"jsonrpc": "2.0", "id": 9}),
        (C, call(None, "ping")),
        (C, 5),
        (S, []),
        (S, {"jsonrpc": "2.0", "id": [], "error": 1}),
    )

    assert seen(events) == [
        (C, "REQUEST", "ping", 1),
        (S, "NOTIFICATION", "notifications/x", None),
        (S, "RESULT", "ping", 1.0),
        (S, "ERROR", "ping", 1),
        (C, "INVALID", None, 9),
        (C, "REQUEST", "ping", None),
        (C, "INVALID", None, None),
        (S, "INVALID", None, None),
        (S, "ERROR", None, None),
    ]
    assert [event.number for event in of(MessageSeen, events)] == list(range(1, 10))
    assert of(MessageSeen, events)[1].message == note("notifications/x", {"a": 1})


def test_messages_of_a_batch_have_one_number_and_their_places() -> None:
    """A finding in a batch must name its line, and the message in it."""
    batch = [call(1, "ping"), note("notifications/x"), 5]
    events = observe(*opening("2025-03-26"), (C, batch), (S, [result(1, {})]))
    numbers = [(event.number, event.index) for event in of(MessageSeen, events)[3:]]

    assert numbers == [(4, 0), (4, 1), (4, 2), (5, 0)]
    assert [(event.number, event.index) for event in of(ViolationSeen, events)] == [(4, 2)]
    [matched] = of(AnswerMatched, events)[1:]
    assert (matched.request_number, matched.number, matched.index) == (4, 5, 0)


def test_an_answer_is_matched_with_its_request() -> None:
    """A watcher mostly needs the duration of each call."""
    steps = [
        (C, call(1, "tools/list")),
        (S, call(1, "ping")),
        (C, result(1, {})),
        (S, error(1, -5)),
    ]
    events = observe(*steps, times=[1.0, 2.0, 3.5, 8.0])

    assert of(AnswerMatched, events) == [
        AnswerMatched(
            side=S,
            method="ping",
            id=1,
            request_number=2,
            number=3,
            index=None,
            time=3.5,
            seconds=1.5,
            code=None,
            cancelled=False,
        ),
        AnswerMatched(
            side=C,
            method="tools/list",
            id=1,
            request_number=1,
            number=4,
            index=None,
            time=8.0,
            seconds=7.0,
            code=-5,
            cancelled=False,
        ),
    ]


def test_without_times_there_are_no_durations() -> None:
    """A duration of zero would be wrong."""
    [matched] = of(AnswerMatched, observe((C, call(1, "ping")), (S, result(1, {}))))

    assert (matched.time, matched.seconds) == (None, None)


def test_time_never_goes_back() -> None:
    """Two threads that read a clock may report in the wrong order."""
    events = observe((C, call(1, "ping")), (S, result(1, {})), times=[5.0, 4.0])

    assert of(AnswerMatched, events)[0].seconds == 0.0


def test_a_cancellation_is_matched_with_its_request() -> None:
    """A watcher must see which request was cancelled, and whether the response crossed it."""
    cancel = note("notifications/cancelled", {"requestId": 1, "reason": "enough"})
    odd = note("notifications/cancelled", {"requestId": 2, "reason": 5})
    events = observe(
        *((C, call(1, "a/b")), (C, call(2, "a/b"))),
        *((C, cancel), (S, result(2, {})), (C, odd), (S, result(1, {}))),
        times=range(6),
    )

    assert of(CancellationMatched, events) == [
        CancellationMatched(
            side=C,
            method="a/b",
            id=1,
            request_number=1,
            number=3,
            index=None,
            time=2,
            reason="enough",
            answered=False,
        ),
        CancellationMatched(
            side=C,
            method="a/b",
            id=2,
            request_number=2,
            number=5,
            index=None,
            time=4,
            reason=None,
            answered=True,
        ),
    ]
    assert [event.cancelled for event in of(AnswerMatched, events)] == [False, True]


def test_requests_without_an_answer_are_told_of_at_the_end() -> None:
    """Requests that hang are what a watcher looks for."""
    observer = Observer()
    cancel = note("notifications/cancelled", {"requestId": 2})
    for time, message in enumerate((call(1, "ping"), call(2, "ping"), cancel, call(3, "ping"))):
        observer.receive_message(C, message, now=float(time))
    observer.receive_message(S, call(1, "ping"))
    observer.receive_message(S, result(3, {}))
    taken(observer)
    observer.receive_eof(S, now=9.0)
    events = taken(observer)

    assert events[0] == StreamEnded(side=S, time=9.0)
    assert events[1:] == [
        RequestUnanswered(
            side=C, method="ping", id=1, request_number=1, seconds=9.0, cancelled=False
        ),
        RequestUnanswered(
            side=C, method="ping", id=2, request_number=2, seconds=8.0, cancelled=True
        ),
    ]
    observer.receive_message(C, call(4, "ping"))
    observer.close()
    assert [(event.side, event.id) for event in of(RequestUnanswered, taken(observer))] == [
        (C, 4),
        (S, 1),
    ]


def test_after_an_end_nothing_is_seen_any_more() -> None:
    """A stream must end once, whatever is fed in after it."""
    observer = Observer()
    for _ in range(2):
        observer.receive_eof(C)
    observer.receive_data(C, b"x\n")
    observer.receive_message(C, 5)
    observer.close()
    observer.close()
    observer.receive_data(S, b"x\n")
    observer.receive_message(S, 5)
    observer.receive_eof(S)

    assert taken(observer) == [StreamEnded(side=C, time=None)]
    assert observer.messages == 0


def test_a_lost_request_leaves_its_token_free() -> None:
    """A client that has read the end of the stream no longer waits for progress."""
    observer = Observer()
    request = call(1, "ping", {"_meta": {"progressToken": 1}})
    observer.receive_message(C, request)
    observer.receive_eof(S)
    observer.receive_message(C, {**request, "id": 2})

    assert accused(taken(observer)) == []


# -------------------------------------------------------------------------------------- lines


def test_text_is_told_of_whole() -> None:
    """Log output among the messages is the commonest fault, and its text tells its origin."""
    observer = Observer()
    observer.receive_data(S, b"starting \xff\n")

    assert taken(observer)[0] == TextSeen(
        side=S, data=b"starting \xff", text="not UTF-8", number=1, time=None
    )


def test_blank_lines_and_marks_are_noted_once() -> None:
    """They are harmless, so one report is enough."""
    observer = Observer()
    observer.receive_data(C, b"\xef\xbb\xbf" + wire(call(1, "ping")) + b"\n \n")
    for id in (2, 3):
        observer.receive_data(C, wire(call(id, "ping")).replace(b"\n", b"\r\n"))
    observer.receive_data(S, b"\n")
    events = taken(observer)

    assert accused(events) == [(C, "OWN-017")] * 3 + [(S, "OWN-017")]
    assert [event.text for event in of(TextSeen, events)] == ["a blank line"] * 3
    assert observer.messages == 6


@pytest.mark.parametrize(
    ("rest", "rules"),
    [
        (wire(call(1, "ping"))[:-1], ["OWN-018"]),
        (b'{"jsonrpc":"2.0","meth', []),
        (b" \r", []),
    ],
)
def test_a_stream_may_end_within_a_line(rest: bytes, rules: list[str]) -> None:
    """A process that was killed in the middle of a message broke no rule."""
    observer = Observer()
    observer.receive_data(S, rest)
    observer.receive_eof(S)

    events = taken(observer)
    assert [rule for _, rule in accused(events)] == rules
    for text in of(TextSeen, events):
        assert text.text.startswith("the stream ended without a newline, and the last line is no")


def test_a_line_that_is_too_long_is_shown_by_its_start() -> None:
    """The limit is the observer's own, so no side may be accused."""
    observer = Observer()
    observer.receive_data(C, b"x" * (16 * 1024 * 1024 + 1))
    [text] = of(TextSeen, taken(observer))

    assert text.data == b"x" * 120
    assert text.text == "a message has more than 16777216 bytes; here are the first 120"
    observer.receive_data(C, b"x\n")
    assert taken(observer) == []


def test_messages_and_lines_give_the_same_findings() -> None:
    """A transport of whole messages must be judged by the same rules as lines."""
    steps = [
        *opening(),
        (C, call(1, "ping")),
        (C, call(1, "ping", [])),
        (S, result(1, {})),
        (S, note("notifications/progress", {"progressToken": 1, "progress": 1})),
    ]
    lines, messages = Observer(), Observer()
    for side, message in steps:
        lines.receive_data(side, wire(message))
        messages.receive_message(side, message)

    assert plain(taken(messages)) == plain(taken(lines))


def test_an_answer_outside_of_its_batch_may_come_on_a_stream_of_its_own() -> None:
    """Over HTTP the responses to a batch may be sent one by one."""
    observer = Observer()
    for side, message in opening("2025-03-26"):
        observer.receive_message(side, message)
    observer.receive_message(C, [call(1, "ping")])
    observer.receive_message(S, result(1, {}))

    assert accused(taken(observer)) == []


# ------------------------------------------------------------------------------------- others


def test_levels_are_those_of_the_table_of_rules() -> None:
    """The exit status of `lint` depends on them."""
    table = {row["id"]: row["level"] for row in own_table("requirements.csv")}

    assert {rule: table[rule] for rule in LEVELS} == LEVELS


@pytest.mark.parametrize(
    "path",
    [path for room in ("_spec", "_rules", "observer") for path in (PACKAGE / room).glob("*.py")],
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_every_rule_that_can_be_found_broken_has_a_level(path: Path) -> None:
    """A rule without a level would raise instead of being reported."""
    source = path.read_text("utf-8")
    found = re.sub(r'LocalProtocolError\(\s*"[A-Z]+-\d{3}"', "", source)  # raised, never found
    named = set(re.findall(r'"([A-Z]+-\d{3})"', found))

    named -= {"MRTR-027", "PAGE-008", "TOOL-026"}  # how a server answers to what is wrong
    assert named <= set(LEVELS)


def test_a_violation_says_what_it_is_about() -> None:
    """A line of a report needs the place, the rule and the sentence."""
    events = observe((C, call(1, "ping")), (S, {"id": 1, "result": {}}), times=[1.0, 2.0])

    assert of(ViolationSeen, events) == [
        ViolationSeen(
            side=S,
            rule="JSON-001",
            level="MUST",
            text='jsonrpc is not "2.0"',
            method="ping",
            id=1,
            number=2,
            index=None,
            time=2.0,
        )
    ]


def test_an_observer_can_be_copied() -> None:
    """All state is plain data, so a debugger may go back to a copy."""
    observer = Observer()
    for side, message in opening():
        observer.receive_data(side, wire(message))
    other = copy.deepcopy(observer)
    for one in (observer, other):
        one.receive_data(C, wire(call(1, "tools/list")))

    assert plain(taken(other)) == plain(taken(observer))


def test_what_is_in_an_event_was_not_changed() -> None:
    """The decoded message must be shown as it was sent, nulls included."""
    message = call(1, "tools/list", {"cursor": None})
    events = observe(*opening(), (C, message))

    assert of(MessageSeen, events)[-1].message == message
    assert message["params"] == {"cursor": None}
    assert MISSING not in message.values()
    assert of(MessageSeen, events)[-1].kind is MessageKind.REQUEST
    assert of(MessageSeen, events)[-1].side is Side.CLIENT
