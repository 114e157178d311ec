"""Event streams are read and written as the HTML standard defines them."""

import itertools
import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sansmcp import LocalProtocolError
from sansmcp.http import (
    OverlongEvent,
    ServerSentEvent,
    SSEDecoder,
    encode_comment,
    encode_event,
)
from tests.support.machines.budget import examples


def decoded(*chunks: bytes, limit: int = 1000) -> list[ServerSentEvent | OverlongEvent]:
    decoder = SSEDecoder(limit)
    return [item for chunk in chunks for item in decoder.feed(chunk)]


def event(data: bytes, type: str = "message", id: str = "") -> ServerSentEvent:
    return ServerSentEvent(data=data, type=type, id=id)


# The kinds of the browser vendors' own tests for the format (web-platform-tests, folder
# eventsource), by the name of the test there; the streams are our own. Those for requests and
# responses are in server/streams/test_event_source.py.
KINDS: dict[str, tuple[bytes, list[ServerSentEvent]]] = {
    "format-bom": (
        b"\xef\xbb\xbfdata: first\n\ndata: second\n\n",
        [event(b"first"), event(b"second")],
    ),
    "format-bom-2": (  # the second mark is part of a name that nobody knows
        b"\xef\xbb\xbf\xef\xbb\xbfdata: lost\n\ndata: kept\n\n",
        [event(b"kept")],
    ),
    "format-bom (within the stream)": (
        b"data: a\n\n\xef\xbb\xbfdata: lost\n\ndata: \xef\xbb\xbfb\n\n",
        [event(b"a"), event(b"\xef\xbb\xbfb")],
    ),
    "format-comments": (
        b":\n:\0\r\ndata: a\n: data: no\r:" + b"-" * 900 + b"\ndata: b\n:id: 9\n\n:\n\n",
        [event(b"a\nb")],
    ),
    "format-data-before-final-empty-line": (
        b"data: whole\n\nid: 3\ndata: half\n",
        [event(b"whole")],
    ),
    "format-field-data": (
        b"data\n\ndata: \ndata\ndata:\n\ndata: x\n\n",
        [event(b""), event(b"\n\n"), event(b"x")],
    ),
    "format-field-event": (
        b"event: tick\ndata: a\n\ndata: b\n\nevent: no\nevent: yes\ndata: c\n\n",
        [event(b"a", "tick"), event(b"b"), event(b"c", "yes")],
    ),
    "format-field-event-empty": (
        b"event:\ndata: a\n\nevent: x\nevent\ndata: b\n\n",
        [event(b"a"), event(b"b")],
    ),
    "event-data": (
        b"data: one\nnodata: no\ndata: two\n\nnodata: no\n\nDATA: no\n\ndata:\n\n",
        [event(b"one\ntwo"), event(b"")],
    ),
    "format-field-id": (
        b"id: 1\ndata: a\n\ndata: b\n\nid: 2\ndata: c\n\n",
        [event(b"a", id="1"), event(b"b", id="1"), event(b"c", id="2")],
    ),
    "format-field-id-2": (
        "id: é→\ndata: a\n\ndata: b\n\ndata: c\n\n".encode(),
        [event(text, id="é→") for text in (b"a", b"b", b"c")],
    ),
    "format-field-id-3 (reset)": (
        b"id: 1\ndata: a\n\nid\ndata: b\n\ndata: c\n\n",
        [event(b"a", id="1"), event(b"b"), event(b"c")],
    ),
    **{
        f"format-field-id-null ({bad!r})": (
            b"id: 1\nid: " + bad + b"\ndata: a\n\ndata: b\n\n",
            [event(b"a", id="1"), event(b"b", id="1")],
        )
        for bad in (b"\0", b"\x002", b"2\0", b"2\x003")
    },
    "format-field-parsing": (
        b"data:\0x\ndata :no\n data: no\n\0data: no\rdata\0: no\ndat: no\ndata-: no\r\n"
        b"data:y:z\n\n",
        [event(b"\0x\ny:z")],
    ),
    "format-field-retry": (b"retry: 250\ndata: a\n\n", [event(b"a")]),
    "format-field-retry-bogus": (b"retry: 250\nretry: 1s\ndata: a\n\n", [event(b"a")]),
    "format-field-retry-empty": (b"retry:\ndata: a\nretry\n\n", [event(b"a")]),
    "format-field-unknown": (
        b"data: a\nevents: x\n: y\nplain words\n\tdata: no\nids:7\ndata: b\n\n",
        [event(b"a\nb")],
    ),
    "format-leading-space": (
        b"data:  two\ndata: one\ndata:none\ndata:\ttab\ndata: \n\n",
        [event(b" two\none\nnone\n\ttab\n")],
    ),
    "format-newlines": (
        b"data: a\r\n\r\ndata: b\r\rdata: c\n\ndata: d\rdata: e\r\n\n",
        [event(b"a"), event(b"b"), event(b"c"), event(b"d\ne")],
    ),
    "format-null-character": (b"data: \0\0\n\n\ndata: a\0\n\n", [event(b"\0\0"), event(b"a\0")]),
    "format-utf-8": ("data: 日本 ü\n\n".encode(), [event("日本 ü".encode())]),
    "an id alone is no event": (b"id: 7\n\n", []),
    "an event name alone is no event": (b"event: x\n\ndata:1\n\n", [event(b"1")]),
}


@pytest.mark.parametrize("name", KINDS)
def test_streams_mean_what_they_mean_to_a_browser(name: str) -> None:
    """Servers use all of the format, and a client that reads it otherwise loses messages."""
    stream, events = KINDS[name]

    assert decoded(stream) == events


@pytest.mark.parametrize("name", KINDS)
def test_streams_mean_the_same_byte_by_byte(name: str) -> None:
    """A network may cut within CR LF, a byte order mark or a character."""
    stream, events = KINDS[name]

    assert decoded(*(stream[at : at + 1] for at in range(len(stream)))) == events


@pytest.mark.parametrize(
    ("stream", "milliseconds"),
    [
        (b"retry:3000\n", 3000),
        (b"retry: 3000\n", 3000),
        (b"retry:3000x\n", None),
        (b"retry:-1\n", None),
        (b"retry:1.5\n", None),
        (b"retry:\n", None),
        (b"retry\n", None),
        ("retry:٣\n".encode(), None),
        (b"retry:" + b"9" * 30 + b"\n", None),
        (b"retry:5\nretry:x\n", 5),
    ],
)
def test_retry_is_digits_and_counts_at_once(stream: bytes, milliseconds: int | None) -> None:
    """A server sends `retry` before it closes, and no event may follow."""
    decoder = SSEDecoder()
    decoder.feed(stream)

    assert decoder.retry_ms == milliseconds


def test_last_event_id_moves_with_events_without_data() -> None:
    """A stream is resumed from such an event: the priming event of 2025-11-25 is one."""
    decoder = SSEDecoder()

    decoder.feed(b"id: 1\ndata: x\n\nid: 2\n")
    assert decoder.last_event_id == "1"
    decoder.feed(b"\n")
    assert decoder.last_event_id == "2"


def test_an_event_over_the_limit_is_thrown_away_and_the_next_one_read() -> None:
    """Otherwise a large event would fill the memory, or end the stream."""
    items = decoded(b"id: 4\ndata:" + b"x" * 11 + b"\ndata: y\n\ndata:ok\n\n", limit=10)

    assert items == [OverlongEvent(excerpt=b"xxxxxxxxxxx", id="4"), event(b"ok", id="4")]


def test_many_short_lines_are_limited_as_one_long_one_is() -> None:
    """The limit is on the event, and not on its lines."""
    assert decoded(b"data:123\ndata:456\ndata:78\n\n", limit=10) == [event(b"123\n456\n78")]
    (item,) = decoded(b"data:123\ndata:456\ndata:789\ndata:x\n\n", limit=10)
    assert item == OverlongEvent(excerpt=b"123\n456\n789")


@pytest.mark.parametrize("start", [b":", b"unknown: ", b"id: ", b"event: "])
def test_a_long_line_of_another_kind_is_skipped(start: bytes) -> None:
    """A line of an unknown kind takes no memory, however long, and is no event."""
    chunks = [start, *[b"x" * 100] * 20, b"\ndata: 1\n\n"]

    assert decoded(*chunks, limit=50) == [event(b"1")]


def test_a_line_without_end_takes_no_memory() -> None:
    """A broken server may send a line for hours, which must be reported when it crosses the
    limit."""
    decoder = SSEDecoder(1000)
    assert decoder.feed(b"data: " + b"x" * 1002) == []
    assert decoder.feed(b"x") == [OverlongEvent(excerpt=b"x" * 120)]
    for _ in range(200):
        assert decoder.feed(b"x" * 1000) == []

    assert decoder.feed(b"\ndata: x\n\ndata: y\n\n") == [event(b"y")]


def test_the_lines_before_count_towards_the_limit() -> None:
    """Otherwise an event of two lines could be twice as long as the limit."""
    decoder = SSEDecoder(100)
    assert decoder.feed(b"data: " + b"x" * 90 + b"\ndata: " + b"y" * 9) == []
    assert decoder.feed(b"y" * 9) == [OverlongEvent(excerpt=b"x" * 90 + b"\n" + b"y" * 12)]
    assert decoder.feed(b"\nid: 7\ndata: z\n\ndata: a\n\n") == [event(b"a", id="7")]


def test_an_id_after_much_data_counts() -> None:
    """The stream is resumed from the id of a long event too."""
    assert decoded(b"data: " + b"x" * 100 + b"\nid: 12345\n\n", limit=100) == [
        event(b"x" * 100, id="12345")
    ]


def test_a_mark_before_a_long_first_line_is_no_part_of_it() -> None:
    """A byte order mark must not change the data of the first event."""
    decoder = SSEDecoder(100)

    assert decoder.feed(b"\xef\xbb\xbfdata:" + b"x" * 200) == [OverlongEvent(excerpt=b"x" * 101)]


def test_the_cost_of_a_byte_does_not_grow() -> None:
    """An event in many chunks must not be copied for each of them."""

    def cost(chunks: int) -> float:
        decoder = SSEDecoder()
        decoder.feed(b"data: ")
        start = time.process_time()
        for _ in range(chunks):
            decoder.feed(b"x" * 100)
        assert decoder.feed(b"\n\n") == [event(b"x" * 100 * chunks)]
        return (time.process_time() - start) / chunks

    assert min(cost(40_000) for _ in range(3)) < 10 * min(cost(2_000) for _ in range(3))


PARTS = st.lists(
    st.sampled_from(
        [
            *(b"data", b"id", b"event", b"retry", b"x", b"7", b":", b": ", b" ", b"\0"),
            *(b"\r", b"\n", b"\r\n", b"\n\n", b"\xef\xbb\xbf", b"\xc3"),
        ]
    ),
    max_size=40,
)


def read_slowly(stream: bytes) -> tuple[list[ServerSentEvent], str, int | None]:
    """Read a stream exactly as the standard says, without limits or care for speed.

    Its one limit is that of the library: a `retry` of more than 15 digits is ignored.
    """
    lines = re.split(rb"\r\n|\n|\r", stream.removeprefix(b"\xef\xbb\xbf"))[:-1]
    events: list[ServerSentEvent] = []
    data, kind, id, last, retry_ms = b"", b"", b"", b"", None
    for line in lines:
        if line == b"":
            last = id
            if data != b"":
                name = kind.decode(errors="replace") or "message"
                events.append(event(data[:-1], name, id.decode(errors="replace")))
            data, kind = b"", b""
        elif not line.startswith(b":"):
            field, _, value = line.partition(b":")
            if value[:1] == b" ":
                value = value[1:]
            if field == b"event":
                kind = value
            elif field == b"data":
                data += value + b"\n"
            elif field == b"id" and b"\0" not in value:
                id = value
            elif field == b"retry" and re.fullmatch(rb"[0-9]{1,15}", value):
                retry_ms = int(value)
    return events, last.decode(errors="replace"), retry_ms


@given(parts=PARTS)
@examples(100, 2000)
@example(parts=[b"data", b"\n\n", b"\xef\xbb\xbf", b"data", b"\n\n"])
def test_any_stream_means_what_the_standard_says(parts: list[bytes]) -> None:
    """The fast reader with limits must read the same as the standard's algorithm."""
    decoder = SSEDecoder()
    events = decoder.feed(b"".join(parts))

    assert (events, decoder.last_event_id, decoder.retry_ms) == read_slowly(b"".join(parts))


@given(
    parts=PARTS,
    cuts=st.lists(st.integers(0, 60), max_size=6),
    limit=st.integers(1, 12),
)
def test_chunking_changes_nothing(parts: list[bytes], cuts: list[int], limit: int) -> None:
    """Events, limits and excerpts must not depend on how the network cuts the stream."""
    stream = b"".join(parts)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[start:end] for start, end in itertools.pairwise(edges)]

    assert decoded(*chunks, limit=limit) == decoded(stream, limit=limit)


# ------------------------------------------------------------------------------------ encoding

TEXT = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]))


@given(
    data=st.binary(),
    type=st.none() | TEXT.filter(lambda text: bool(text)),
    id=st.none() | TEXT,
    retry_ms=st.none() | st.integers(0, 10**9),
)
def test_what_is_encoded_is_decoded_again(
    data: bytes, type: str | None, id: str | None, retry_ms: int | None
) -> None:
    """Line breaks in the data must become those of the format, and nothing else change."""
    decoder = SSEDecoder()
    items = decoder.feed(encode_event(data, type=type, id=id, retry_ms=retry_ms))

    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert items == [event(lines, type or "message", id or "")]
    assert decoder.retry_ms == retry_ms


def test_an_event_without_data_carries_id_and_retry_only() -> None:
    """A server tells a client in this way when to reconnect."""
    assert encode_event(None, id="7", retry_ms=10) == b"id: 7\nretry: 10\n\n"


@pytest.mark.parametrize("bad", ["a\nb", "a\rb", "a\0b"])
@pytest.mark.parametrize("field", ["type", "id"])
def test_a_field_with_a_line_break_raises(field: str, bad: str) -> None:
    """A line break in a value would begin another field."""
    with pytest.raises(LocalProtocolError, match="OWN-036"):
        encode_event(b"x", **{field: bad})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # both are texts


def test_a_negative_retry_raises() -> None:
    """No client understands a negative delay."""
    with pytest.raises(LocalProtocolError, match="OWN-036"):
        encode_event(b"x", retry_ms=-1)


def test_comments_are_ignored_by_readers() -> None:
    """A line break within a comment must not end it, or the rest would be read as a field."""
    decoder = SSEDecoder()

    assert encode_comment() == b":\n\n"
    assert decoder.feed(encode_comment("a\nb\r\0data: x")) == []
    assert decoder.feed(b"data:1\n\n") == [event(b"1")]
