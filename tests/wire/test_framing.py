"""Lines are found in bytes of any length, however the bytes are cut."""

from collections.abc import Iterable
from itertools import pairwise

import pytest

from sansmcp import (
    Config,
    ConnectionClosed,
    ConnectionFailed,
    Event,
    NotificationReceived,
    Observation,
    Observer,
    ProtocolViolation,
    RequestAnswered,
    ServerConnection,
    Side,
    State,
    ViolationSeen,
)
from sansmcp.testing import drain
from tests.support.wire import call, error, new_client, note, of, ready_server, sent, wire

LIMIT = 256
HELLO = wire(note("notifications/hello"))


def small_server() -> ServerConnection:
    """A ready server that accepts short lines only."""
    return ready_server("2025-11-25", config=Config(max_message_bytes=LIMIT))


def fed(server: ServerConnection, *chunks: bytes) -> list[Event]:
    for chunk in chunks:
        server.receive_data(chunk)
    return drain(server)


def rules(events: Iterable[Event]) -> list[str]:
    return [event.rule for event in of(ProtocolViolation, events)]


def greetings(events: Iterable[Event]) -> int:
    return len(of(NotificationReceived, events))


def line_of(n_bytes: int) -> bytes:
    """A notification of this many bytes without its newline."""
    empty = wire(note("notifications/hello", {"pad": ""}))[:-1]
    return empty.replace(b'""', b'"' + b"x" * (n_bytes - len(empty)) + b'"')


def test_several_lines_of_one_chunk_are_several_messages() -> None:
    """A read that returns three messages must not lose two."""
    assert greetings(fed(small_server(), HELLO * 3)) == 3


def test_a_line_in_many_chunks_is_one_message() -> None:
    """A pipe may deliver single bytes."""
    server = small_server()
    pieces = [bytes([byte]) for byte in HELLO]

    assert fed(server, *pieces[:-1]) == []
    assert greetings(fed(server, pieces[-1])) == 1


def test_a_chunk_may_end_one_line_and_begin_another() -> None:
    """The unfinished part alone must be kept for the next chunk."""
    server = small_server()

    assert greetings(fed(server, HELLO + HELLO[:5])) == 1
    assert greetings(fed(server, HELLO[5:] + HELLO)) == 2


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer_is_taken_and_none_is_kept(
    kind: type[bytes] | type[bytearray] | type[memoryview],
) -> None:
    """A reader that reuses its buffer must not change earlier input."""
    server = small_server()
    buffer = bytearray(HELLO[:7])
    server.receive_data(buffer if kind is bytearray else kind(buffer))
    buffer[:] = b"#######"
    server.receive_data(kind(HELLO[7:]))

    assert greetings(drain(server)) == 1


def test_an_empty_chunk_means_nothing() -> None:
    """`b""` must not end the stream, for which there is `receive_eof`."""
    server = small_server()

    assert fed(server, b"") == []
    assert server.state is State.OPEN


def test_a_line_of_exactly_the_limit_is_served() -> None:
    """The limit counts the message, not its newline."""
    assert greetings(fed(small_server(), line_of(LIMIT) + b"\n")) == 1


@pytest.mark.parametrize(
    "cut", [(), (1,), (LIMIT,), (LIMIT + 1,), (40, 200), tuple(range(1, LIMIT + 2))]
)
def test_a_line_over_the_limit_is_reported_once_and_its_neighbours_are_served(
    cut: tuple[int, ...],
) -> None:
    """The report must depend on the message, and not on how it was cut."""
    server = small_server()
    text = line_of(LIMIT + 1) + b"\n"
    edges = [0, *cut, len(text)]
    chunks = [text[start:end] for start, end in pairwise(edges)]
    events = fed(server, HELLO, *chunks, HELLO)

    assert rules(events) == ["OWN-001"]
    assert greetings(events) == 2
    (violation,) = of(ProtocolViolation, events)
    assert violation.excerpt == text[:120] + b" ... (cut: more than 256 bytes in all)"
    assert [answer["error"]["code"] for answer in sent(server)] == [-32600]


def test_a_line_over_the_limit_is_reported_before_its_end_comes() -> None:
    """Noise without a newline must not stay unreported for ever."""
    server = small_server()

    assert rules(fed(server, b"x" * (LIMIT + 1))) == ["OWN-001"]
    assert fed(server, b"x" * 1_000, b"x" * LIMIT) == []
    assert greetings(fed(server, b"x\n" + HELLO)) == 1


def test_two_lines_over_the_limit_are_two_reports() -> None:
    """Each lost message must be reported."""
    long = b"x" * (LIMIT + 1) + b"\n"

    assert rules(fed(small_server(), long + long)) == ["OWN-001"] * 2
    assert rules(fed(small_server(), long[:9], long[9:] + long)) == ["OWN-001"] * 2


def test_the_excerpt_of_a_short_limit_is_no_longer_than_that() -> None:
    """An excerpt shows the start of the line, however small the limit is, and says that it does."""
    server = ServerConnection(
        info={"name": "s", "version": "1"}, config=Config(max_message_bytes=10)
    )
    server.receive_data(b"0123")
    server.receive_data(b"456789abc")

    assert [event.excerpt for event in of(ProtocolViolation, drain(server))] == [
        b"0123456789 ... (cut: more than 10 bytes in all)"
    ]


def test_a_message_without_framing_has_the_same_limit() -> None:
    """Transports of whole messages must have the same limit."""
    server = small_server()
    server.receive_message(line_of(LIMIT))
    server.receive_message(line_of(LIMIT + 1))
    server.receive_message(line_of(LIMIT + 1).decode())
    server.receive_message(bytearray(line_of(LIMIT)))
    events = drain(server)

    assert greetings(events) == 2
    assert rules(events) == ["OWN-001"] * 2


def test_a_message_as_text_with_a_lone_surrogate_is_no_utf8() -> None:
    """Text that UTF-8 cannot carry must be refused like invalid bytes."""
    server = small_server()
    server.receive_message('{"jsonrpc":"2.0","method":"\ud800"}')

    assert rules(drain(server)) == ["ERR-001"]


def test_a_long_line_after_the_end_is_nobodys() -> None:
    """No event may follow `ConnectionClosed`."""
    server = small_server()
    server.close()
    drain(server)

    assert fed(server, b"x" * (LIMIT + 1) + b"\n" + HELLO + b"\r\n\n") == []


@pytest.mark.parametrize("rest", [b"\n", b"\r\n", b"{}\r\n", b"x" * 300 + b"\n", HELLO])
def test_what_follows_the_end_in_the_same_chunk_is_nobodys(rest: bytes) -> None:
    """After an error to `initialize`, further lines of the server must be ignored."""
    client = new_client(config=Config(max_message_bytes=LIMIT))
    client.start()
    client.data_to_send()
    client.receive_data(wire(error(1, -32603)) + rest)

    assert [type(event) for event in drain(client)] == [ConnectionFailed, ConnectionClosed]


def test_a_mark_at_the_start_and_odd_line_ends_are_reported_once() -> None:
    """Windows programs write them, and a report for each line would be noise."""
    server = ServerConnection(info={"name": "s", "version": "1"})
    one, two = wire(call(1, "ping"))[:-1], wire(call(2, "ping"))[:-1]
    events = fed(server, b"\xef\xbb\xbf" + one + b"\r\n", b"\r\n\n \n", two + b"\r\n")

    assert rules(events) == ["OWN-017"] * 3
    assert all(event.tolerated for event in of(ProtocolViolation, events))
    assert len(of(RequestAnswered, events)) == 2


def test_a_mark_alone_on_the_first_line_is_a_blank_line() -> None:
    """A byte order mark without text behind it is no message."""
    server = ServerConnection(info={"name": "s", "version": "1"})

    assert rules(fed(server, b"\xef\xbb\xbf\n")) == ["OWN-017"] * 2


MARK = b"\xef\xbb\xbf"
LONG_LINE = line_of(LIMIT + 1)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
@pytest.mark.parametrize("message", [HELLO[:-1], b"", b" ", HELLO[:9], LONG_LINE])
@pytest.mark.parametrize("whole", [True, False])
def test_a_mark_at_the_start_of_a_stream_is_reported_once(
    end: bytes, message: bytes, whole: bool
) -> None:
    """There must be one report, with a newline or the end of the stream behind it, however cut."""
    server = ServerConnection(
        info={"name": "s", "version": "1"}, config=Config(max_message_bytes=LIMIT)
    )
    observer = Observer(config=Config(max_message_bytes=LIMIT))
    text = MARK + message + end
    for piece in [text] if whole else [bytes([byte]) for byte in text]:
        server.receive_data(piece)
        observer.receive_data(Side.CLIENT, piece)
    server.receive_eof()
    observer.receive_eof(Side.CLIENT)
    marks = [event for event in drain(server) if is_of_a_mark(event)]
    assert [event.rule for event in of(ProtocolViolation, marks)] == ["OWN-017"]
    seen = [event for event in seen_by(observer) if is_of_a_mark(event)]
    assert [event.rule for event in seen if isinstance(event, ViolationSeen)] == ["OWN-017"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
@pytest.mark.parametrize("before", [HELLO, b"\n", MARK + b"\n", LONG_LINE + b"\n"])
def test_a_mark_before_a_later_line_makes_it_no_message(before: bytes, end: bytes) -> None:
    """Without a newline it was reported twice: for the newline and for the mark."""
    server = small_server()
    fed(server, before)
    server.receive_data(MARK + HELLO[:-1] + end)
    server.receive_eof()
    events = drain(server)
    assert greetings(events) == 0
    assert [rule for rule in rules(events) if rule != "OWN-017"] == [
        "OWN-018" if end == b"" else "ERR-001"
    ]
    assert not any(map(is_of_a_mark, events))


def test_a_mark_and_nothing_else_is_no_message() -> None:
    """An editor writes such a file when it is empty."""
    server = ServerConnection(info={"name": "s", "version": "1"})
    server.receive_data(MARK)
    server.receive_eof()
    assert rules(drain(server)) == ["OWN-017"]


def seen_by(observer: Observer) -> list[Observation]:
    return list(iter(observer.next_event, None))


def is_of_a_mark(event: object) -> bool:
    return "byte order mark" in str(getattr(event, "text", ""))


def test_blanks_at_the_end_of_the_stream_are_no_message() -> None:
    """A file that ends in spaces has no incomplete last line."""
    server = small_server()
    server.receive_data(HELLO + b" \t\r")
    server.receive_eof()

    assert rules(drain(server)) == []
