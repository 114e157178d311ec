"""Invariants 3 and 6: no bytes, and no way to cut them, break anything or change the events."""

from itertools import pairwise
from typing import Any, TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sansmcp import (
    LEGACY_REVISIONS,
    ClientConnection,
    Config,
    Phase,
    RequestAnswered,
    ServerConnection,
    Side,
    State,
)
from sansmcp.testing import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    SERVER_CAPABILITIES,
    SERVER_INFO,
    drain,
    json_values,
    plain,
    wire_bytes,
    wire_lines,
)
from tests.support.wire import INITIALIZED, call, initialize, initialized_by, of, result, wire

Connection: TypeAlias = ClientConnection | ServerConnection

SMALL = Config(
    max_message_bytes=500,
    max_json_depth=8,
    max_integer_digits=30,
    max_requests=4,
    max_batch=3,
    max_used_ids=3,
    max_late_answers=2,
    max_events=5,
)
CONFIGS = [Config(), SMALL, Config(check="none", unknown_methods="deliver", strict=True)]
STARTS = [
    (Side.CLIENT, Phase.NEW),
    (Side.CLIENT, Phase.NEGOTIATING),
    (Side.CLIENT, Phase.OPERATING),
    (Side.SERVER, Phase.NEW),
    (Side.SERVER, Phase.AGREED),
    (Side.SERVER, Phase.OPERATING),
]


def connection(side: Side, phase: Phase, revision: str, config: Config) -> Connection:
    """A connection in this phase, with open requests in each direction where possible."""
    conn: Connection
    if side is Side.SERVER:
        conn = ServerConnection(info=SERVER_INFO, capabilities=SERVER_CAPABILITIES, config=config)
        if phase >= Phase.AGREED:
            conn.receive_message(wire(initialize("hello", revision, CLIENT_CAPABILITIES)), now=0)
        if phase >= Phase.OPERATING:
            conn.receive_message(wire(INITIALIZED))
            conn.send_request("roots/list", id=5, progress=True, timeout=3)
            conn.ping()
            conn.receive_message(wire(call(7, "tools/list")))
    else:
        conn = ClientConnection(
            info=CLIENT_INFO,
            capabilities=CLIENT_CAPABILITIES,
            revisions=LEGACY_REVISIONS,
            config=config,
        )
        if phase >= Phase.NEGOTIATING:
            conn.start(now=0)
        if phase >= Phase.OPERATING:
            conn.receive_message(wire(result(1, initialized_by(revision))))
            conn.send_request("tools/call", {"name": "x"}, id=5, progress=True, timeout=3)
            conn.cancel(conn.send_request("tools/list"))
            conn.send_paginated("tools/list")
            conn.receive_message(wire(call(7, "roots/list")))
    conn.data_to_send()
    drain(conn)
    return conn


@st.composite
def connections(draw: st.DrawFn) -> tuple[Side, Phase, str, Config]:
    side, phase = draw(st.sampled_from(STARTS))
    return side, phase, draw(st.sampled_from(LEGACY_REVISIONS)), draw(st.sampled_from(CONFIGS))


def told(conn: Connection) -> tuple[list[str], list[bytes], State]:
    """The events and the output of a connection."""
    return plain(drain(conn)), conn.messages_to_send(), conn.state


# ---------------------------------------------------------------- 3. chunking changes nothing


@given(start=connections(), data=wire_bytes(), cuts=st.lists(st.integers(0, 600), max_size=8))
@example(
    start=(Side.SERVER, Phase.NEW, "2025-11-25", SMALL),
    data=b"\xef\xbb\xbf" + b"x" * 501 + b"\r\n\n" + b"y" * 500 + b"\n{}\r\n",
    cuts=[1, 2, 3, 500, 504, 505, 506],
)
def test_3_chunking_changes_nothing(
    start: tuple[Side, Phase, str, Config], data: bytes, cuts: list[int]
) -> None:
    """However the network cuts, events, texts, output and limits must be the same."""
    whole, parts = connection(*start), connection(*start)
    whole.receive_data(data)
    whole.receive_eof()
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for begin, end in pairwise(edges):
        parts.receive_data(data[begin:end])
    parts.receive_eof()

    assert told(parts) == told(whole)


@given(start=connections(), data=wire_bytes())
def test_3_single_bytes_of_any_kind_of_buffer_change_nothing(
    start: tuple[Side, Phase, str, Config], data: bytes
) -> None:
    """`bytes`, `bytearray` and `memoryview` must all work, also with a reused buffer."""
    whole, parts = connection(*start), connection(*start)
    whole.receive_data(data)
    buffer = bytearray(1)
    for number, byte in enumerate(data):
        buffer[0] = byte
        kinds: list[Any] = [bytes(buffer), buffer, memoryview(buffer)]
        parts.receive_data(kinds[number % 3])
    buffer[0] = 0

    assert told(parts) == told(whole)


@given(start=connections(), lines=st.lists(wire_lines(), max_size=4))
def test_3_framing_changes_nothing_but_framing(
    start: tuple[Side, Phase, str, Config], lines: list[bytes]
) -> None:
    """A transport of whole messages must lead to the same events as a byte stream."""
    lines = [line for line in lines if line.strip(b" \t\r") == line != b"" and b"\n" not in line]
    stream, messages = connection(*start), connection(*start)
    stream.receive_data(b"\n")  # a first line, so that a mark on the next is no mark of the stream
    drain(stream)
    for line in lines:
        stream.receive_data(line + b"\n")
        messages.receive_message(line)

    assert told(stream) == told(messages)


# ------------------------------------------------------------------- 6. receiving never raises


@given(start=connections(), chunks=st.lists(st.binary(max_size=60) | wire_bytes(), max_size=4))
def test_6_no_bytes_make_it_raise(
    start: tuple[Side, Phase, str, Config], chunks: list[bytes]
) -> None:
    """No bytes may raise in any phase, side or revision; nor may the end of the stream."""
    conn = connection(*start)
    for chunk in chunks:
        conn.receive_data(chunk)
        conn.receive_message(chunk)
    conn.handle_timeout(100)
    conn.receive_eof(drain=5)
    conn.handle_timeout(200)
    told(conn)

    assert conn.state is State.CLOSED


_NAMES = st.sampled_from(("id", "method", "params", "result", "error", "jsonrpc", "x"))
_METHODS = st.sampled_from(
    (
        *("initialize", "ping", "tools/list", "tools/call", "resources/subscribe", "x/y"),
        *("resources/unsubscribe", "logging/setLevel", "tasks/get", "roots/list"),
        *("notifications/cancelled", "notifications/progress", "notifications/initialized"),
        *("notifications/message", "notifications/tasks/status", "notifications/x"),
        *("notifications/tools/list_changed", "sampling/createMessage", "elicitation/create"),
    )
)
_INNER = st.sampled_from(
    (
        *("name", "uri", "level", "cursor", "nextCursor", "_meta", "task", "taskId", "status"),
        *("progressToken", "progress", "total", "message", "requestId", "reason", "tools"),
        *("protocolVersion", "capabilities", "clientInfo", "serverInfo", "code", "data"),
    )
)
_VALUES = st.sampled_from(
    (0, 1, 2, 3, 5, 7, "5", 5.0, "", "2025-03-26", "info", "completed", "t")
) | json_values(max_depth=2)
_PARTS = _VALUES | st.dictionaries(
    _INNER, _VALUES | st.dictionaries(_INNER, _VALUES, max_size=2), max_size=4
)
_MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(("2.0", "2.0", "2.0", 2, None)),
        "id": _VALUES,
        "method": _METHODS | _VALUES,
        "params": _PARTS,
        "result": _PARTS,
        "error": _PARTS,
    },
) | st.dictionaries(_NAMES, _PARTS, max_size=5)


@given(
    start=connections(),
    messages=st.lists(_MESSAGES | st.lists(_MESSAGES, max_size=3) | _VALUES, max_size=5),
)
def test_6_no_json_makes_it_raise(
    start: tuple[Side, Phase, str, Config], messages: list[Any]
) -> None:
    """Members of every type in every place must not raise, nor the responses to such requests."""
    conn = connection(*start)
    for message in messages:
        conn.receive_data(wire(message), now=1)
        for request in conn.open_requests[:1]:
            conn.send_error(request, -32603, "no")
    told(conn)
    conn.handle_timeout(50)
    conn.close()

    assert conn.open_requests == ()
    assert conn.pending_requests == ()


@given(start=connections(), noise=wire_lines())
@pytest.mark.parametrize("around", [b"%b\n", b"%b\r\n"])
def test_6_good_messages_around_a_bad_one_are_delivered(
    around: bytes, start: tuple[Side, Phase, str, Config], noise: bytes
) -> None:
    """One bad line in a chunk must not take its neighbours with it."""
    conn = connection(*start)
    for request in conn.open_requests:  # there is room for one more
        conn.send_error(request, -32603, "no")
    before, after = wire(call("before", "ping")), wire(call("after", "ping"))
    conn.receive_data(before + around % noise.replace(b"\n", b"") + after)
    if conn.state is State.OPEN:  # a bad answer to `initialize` ends the connection
        answered = [event.request.id for event in of(RequestAnswered, drain(conn))]
        assert answered[0] == "before"
        assert answered[-1] == "after"
