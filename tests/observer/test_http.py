"""The HTTP observer, fed through its public methods with exchanges as a proxy sees them."""

import copy
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import (
    AnswerMatched,
    BlindCause,
    BlindSpot,
    Config,
    HandshakeSeen,
    MessageSeen,
    Observation,
    RequestUnanswered,
    TextSeen,
    ViolationSeen,
)
from sansmcp.observer import HTTPObserver
from sansmcp.testing import plain
from tests.support.modern import complete, envelope, modern
from tests.support.watching import NEWEST, C, S, accused, agreement
from tests.support.wire import INITIALIZED, call, error, initialize, note, result

BOTH = ("Accept", "application/json, text/event-stream")
JSON = ("Content-Type", "application/json")
EVENTS = ("Content-Type", "text/event-stream")
SESSION = ("Mcp-Session-Id", "abc")
VERSION = ("MCP-Protocol-Version", NEWEST)
LEGACY = (BOTH, SESSION, VERSION)


def modern_fields(method: str, name: str | None = None) -> list[tuple[str, str]]:
    fields = [BOTH, ("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)]
    return fields if name is None else [*fields, ("Mcp-Name", name)]


def taken(observer: HTTPObserver) -> list[Observation]:
    events: list[Observation] = []
    while (event := observer.next_event()) is not None:
        events.append(event)
    return events


def of(kind: type[Any], events: Iterable[Observation]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


class Proxy:
    """Feeds an observer with whole exchanges, each with a number of its own."""

    def __init__(self, **config: Any) -> None:
        self.observer = HTTPObserver("http://h/mcp", config=Config(**config))
        self._count = 0

    def begin(
        self, method: str, fields: Iterable[Any], message: Any = None, target: str = "/mcp"
    ) -> int:
        self._count += 1
        self.observer.receive_request_head(self._count, method, target, fields)
        if message is not None:
            body = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.observer.receive_request_body(self._count, body)
        return self._count

    def post(
        self,
        message: Any,
        fields: Iterable[Any],
        answer: Any = None,
        status: int = 200,
        response_fields: Iterable[Any] = (JSON,),
    ) -> None:
        exchange = self.begin("POST", fields, message)
        self.observer.receive_response_head(exchange, status, response_fields)
        if answer is not None:
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.observer.receive_response_body(exchange, body)
        self.observer.receive_end(exchange)

    def open(self) -> None:
        """Open a session of the newest legacy revision."""
        self.post(
            initialize(0, NEWEST), [BOTH], result(0, agreement()), response_fields=[JSON, SESSION]
        )
        self.post(INITIALIZED, LEGACY, status=202, response_fields=())

    def stream(self, *fields: Any) -> int:
        """A GET stream of the open session."""
        exchange = self.begin("GET", [("Accept", "text/event-stream"), SESSION, *fields])
        self.observer.receive_response_head(exchange, 200, [EVENTS])
        return exchange

    def taken(self) -> list[Observation]:
        return taken(self.observer)


@pytest.fixture
def proxy() -> Proxy:
    return Proxy()


# ------------------------------------------------------------------------------ conversations


def test_a_session_is_one_conversation(proxy: Proxy) -> None:
    """A request of one exchange may be answered, cancelled or repeated in another."""
    proxy.open()
    proxy.post(call(1, "ping"), LEGACY, result(1, {}))
    proxy.post(call(1, "ping"), LEGACY, result(1, {}))
    events = proxy.taken()

    assert [event.revision for event in of(HandshakeSeen, events)] == [NEWEST]
    assert accused(events) == [(C, "ID-001")]


def test_numbers_count_heads_and_messages_of_all_conversations(proxy: Proxy) -> None:
    """A report must name each place by one number."""
    proxy.open()
    proxy.taken()
    assert proxy.observer.messages == 7
    proxy.post(call(1, "ping"), LEGACY, result(1, {}))
    events = proxy.taken()

    assert [event.number for event in of(MessageSeen, events)] == [9, 11]
    assert [(e.request_number, e.number) for e in of(AnswerMatched, events)] == [(9, 11)]


def test_each_modern_exchange_is_a_conversation(proxy: Proxy) -> None:
    """Modern clients share ids."""
    for _ in range(2):
        proxy.post(
            modern(1, "tools/call", {"name": "t"}),
            modern_fields("tools/call", "t"),
            complete(1, {"content": []}),
        )
    assert accused(proxy.taken()) == []


def test_a_client_that_disconnects_has_cancelled(proxy: Proxy) -> None:
    """On modern HTTP a disconnect of the client cancels; one of the server cancels nothing."""
    for side in (C, S):
        exchange = proxy.begin("POST", modern_fields("tools/list"), modern(1, "tools/list"))
        proxy.observer.receive_disconnect(exchange, side)

    unanswered = of(RequestUnanswered, proxy.taken())
    assert [event.cancelled for event in unanswered] == [True, False]


def test_without_a_session_less_is_judged(proxy: Proxy) -> None:
    """Whether there was a handshake is unknown without a session."""
    proxy.post(call(1, "tools/list"), [BOTH], result(1, {"tools": []}))
    events = proxy.taken()

    assert accused(events) == []
    assert [event.cause for event in of(BlindSpot, events)] == [BlindCause.MIDDLE]


def test_old_transport_is_one_conversation(proxy: Proxy) -> None:
    """Requests are POSTed to the URL of the stream, and answered on the stream."""
    observer = proxy.observer
    stream = proxy.begin("GET", [("Accept", "text/event-stream")])
    observer.receive_response_head(stream, 200, [EVENTS])
    observer.receive_response_event(stream, b"/messages?session=1", type="endpoint")
    assert observer.is_for_endpoint("/messages?session=1")
    asking = proxy.begin("POST", [], initialize(0, "2024-11-05"), "/messages?session=1")
    observer.receive_response_head(asking, 202, [])
    observer.receive_end(asking)
    answer = json.dumps(result(0, agreement("2024-11-05"))).encode()
    observer.receive_response_event(stream, answer)
    observer.receive_response_event(stream, b"no message")
    observer.receive_end(stream)
    events = proxy.taken()

    assert of(HandshakeSeen, events)
    assert accused(events) == [(S, "HSSE-004")]
    assert not observer.is_for_endpoint("/messages?session=1")


def test_a_deleted_session_is_over(proxy: Proxy) -> None:
    """Open requests of a deleted session get no response; a server may refuse to delete."""
    proxy.open()
    proxy.begin("POST", LEGACY, call(1, "ping"))
    for status in (405, 204):
        exchange = proxy.begin("DELETE", LEGACY)
        proxy.taken()
        proxy.observer.receive_response_head(exchange, status, [])
        proxy.observer.receive_end(exchange)
        assert len(of(RequestUnanswered, proxy.taken())) == (status == 204)


def test_answer_on_a_stream_that_no_request_opened(proxy: Proxy) -> None:
    """A GET stream must carry no responses unless it resumes another stream."""
    proxy.open()
    stream = proxy.stream()
    proxy.begin("POST", LEGACY, call(1, "ping"))
    answer = json.dumps(result(1, {})).encode()
    proxy.observer.receive_response_event(stream, answer, id="1")
    assert accused(proxy.taken()) == [(S, "SSE-024")]

    resumed = proxy.stream(("Last-Event-ID", "0"))
    proxy.observer.receive_response_event(resumed, answer, id="1")
    assert proxy.taken() == []  # it was seen before


def test_messages_of_a_session_may_overtake_each_other(proxy: Proxy) -> None:
    """Exchanges have connections of their own, so late progress is no breach."""
    proxy.open()
    stream = proxy.stream()
    proxy.post(call(1, "ping", {"_meta": {"progressToken": 1}}), LEGACY, result(1, {}))
    progress = note("notifications/progress", {"progressToken": 1, "progress": 1})
    proxy.observer.receive_response_event(stream, json.dumps(progress).encode())

    assert accused(proxy.taken()) == []


def test_a_response_without_a_known_request_is_from_the_middle(proxy: Proxy) -> None:
    """The session may be older than the observation."""
    exchange = proxy.begin("DELETE", [])
    proxy.observer.receive_response_head(exchange, 400, [JSON])
    proxy.observer.receive_response_body(exchange, json.dumps(error(9, -32600)).encode())
    events = proxy.taken()

    assert len(of(MessageSeen, events)) == 1
    assert accused(events) == []


# ----------------------------------------------------------------------------------------- bodies


def test_a_refused_body_may_be_sent_again(proxy: Proxy) -> None:
    """A client that gets 401 repeats the request with a token."""
    proxy.open()
    proxy.post(call(1, "ping"), LEGACY, b"who are you?", 401, ())
    proxy.post(call(1, "ping"), [*LEGACY, ("Authorization", "x")], result(1, {}))
    proxy.post(call(2, "ping"), LEGACY, b"go away", 403, ())
    proxy.observer.close()

    events = proxy.taken()
    assert accused(events) == []
    assert of(RequestUnanswered, events) == []


def test_an_error_status_may_have_an_error_without_an_id(proxy: Proxy) -> None:
    """Such an error is about the whole HTTP request (HTTP-017)."""
    refusal = {"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}, "id": None}
    proxy.post(call(1, "ping"), [BOTH], refusal, 400)

    assert accused(proxy.taken()) == []


@pytest.mark.parametrize(
    ("body", "is_message"),
    [
        (b'{"jsonrpc":"2.0",\r\n "id":1,\n"method":"ping"}\n', True),
        (b'{"jsonrpc":"2.0",\n "id":1', False),
        (b"\n{]\r\n", False),
    ],
)
def test_a_body_may_have_line_ends(proxy: Proxy, body: bytes, is_message: bool) -> None:
    """Only on stdio a line break ends the message."""
    exchange = proxy.begin("POST", [BOTH], body)
    proxy.observer.receive_end(exchange)
    events = proxy.taken()

    assert bool(of(MessageSeen, events)) is is_message
    assert accused(events) == ([] if is_message else [(C, "HTTP-011")])
    assert len(of(TextSeen, events)) == (not is_message)


def test_a_byte_order_mark_is_reported_for_each_body(proxy: Proxy) -> None:
    """Each body is a whole text, and not a part of a stream."""
    body = b"\xef\xbb\xbf" + json.dumps(call(1, "ping")).encode()
    proxy.post(body, [BOTH], result(1, {}))
    proxy.post(body, [BOTH], result(1, {}))

    assert accused(proxy.taken()) == [(C, "OWN-017")] * 2


def test_empty_bodies_and_other_events_are_no_messages(proxy: Proxy) -> None:
    """Comments, keep-alive events and the bodies of HEAD must not be reported."""
    proxy.open()
    proxy.taken()
    stream = proxy.stream()
    proxy.observer.receive_request_body(stream, b"a GET has no body")
    proxy.observer.receive_response_event(stream, b"x", type="ping")
    proxy.observer.receive_response_event(stream, b"")
    posting = proxy.begin("POST", LEGACY, b"")
    proxy.observer.receive_response_body(posting, b"{}")  # there was no head
    proxy.observer.receive_response_event(posting, b"{}")

    assert proxy.taken() == []


def test_an_array_may_contain_a_request(proxy: Proxy) -> None:
    """202 must not answer an array with a request in it."""
    proxy.post([INITIALIZED, call(1, "ping")], [BOTH], status=202, response_fields=())
    proxy.post([INITIALIZED], [BOTH], status=202, response_fields=())
    proxy.post([], [BOTH], status=202, response_fields=())

    assert [rule for _, rule in accused(proxy.taken())].count("HTTP-018") == 1


# ------------------------------------------------------------------------------------------ heads


@pytest.mark.parametrize("encode", [False, True])
def test_headers_are_text_or_bytes_of_any_case(proxy: Proxy, encode: bool) -> None:
    """HTTP libraries differ in the form of headers; lines of one name are one list."""
    fields: list[Any] = [("ACCEPT", "application/json"), ("accept", "text/event-stream")]
    if encode:
        fields = [(name.encode(), value.encode()) for name, value in fields]
    proxy.post(call(1, "ping"), fields, result(1, {}))
    assert accused(proxy.taken()) == []
    proxy.post(call(1, "ping"), fields[:1], result(1, {}))
    (fault,) = of(ViolationSeen, proxy.taken())

    assert (fault.rule, fault.level, fault.method, fault.id) == ("HTTP-009", "MUST", "ping", 1)


def test_requests_of_a_session_name_its_revision(proxy: Proxy) -> None:
    """The header is required from 2025-06-18 on, but not before the response to `initialize`."""
    proxy.open()
    proxy.post(call(1, "ping"), [BOTH, SESSION], result(1, {}))
    proxy.post(
        call(2, "ping"), [BOTH, SESSION, ("MCP-Protocol-Version", "2025-06-18")], result(2, {})
    )
    assert [rule for _, rule in accused(proxy.taken())] == ["HDR-001", "HDR-002"]

    old = Proxy()
    old.post(
        initialize(0, "2025-03-26"),
        [BOTH],
        result(0, agreement("2025-03-26")),
        response_fields=[JSON, SESSION],
    )
    old.post(INITIALIZED, [BOTH, SESSION], status=202, response_fields=())
    assert accused(old.taken()) == []


def test_streams_of_get_are_event_streams(proxy: Proxy) -> None:
    """A GET must accept an event stream, and get one or a refusal."""
    proxy.open()
    exchange = proxy.begin("GET", [JSON, SESSION])
    proxy.observer.receive_response_head(exchange, 200, [JSON])
    refused = proxy.begin("GET", [("Accept", "text/*"), SESSION])
    proxy.observer.receive_response_head(refused, 405, [])

    assert [rule for _, rule in accused(proxy.taken())] == ["HTTP-021", "HTTP-022"]


def test_a_session_id_is_visible_ascii(proxy: Proxy) -> None:
    """A client must be able to put it into a header."""
    fields = [JSON, ("Mcp-Session-Id", "a b")]
    proxy.post(initialize(0, NEWEST), [BOTH], result(0, agreement()), response_fields=fields)

    assert [rule for _, rule in accused(proxy.taken())] == ["SESS-003"]


def test_a_modern_notification_has_no_name_to_repeat(proxy: Proxy) -> None:
    """Only requests need the name header; a notification is accepted with 202."""
    for status in (202, 200):
        cancelled = note("notifications/cancelled", {"requestId": 1})
        proxy.post(cancelled, modern_fields("x"), status=status, response_fields=())

    assert [rule for _, rule in accused(proxy.taken())].count("HTTP-015") == 1


def test_an_array_is_no_modern_message(proxy: Proxy) -> None:
    """An array has no method that a header could repeat."""
    proxy.post([1], modern_fields("x"), error(1, -32600), 400)

    assert not [rule for _, rule in accused(proxy.taken()) if rule.startswith("HDR")]


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        (modern_fields("tools/call", "t"), []),
        (modern_fields("tools/call", "=?base64?dA==?="), []),
        (modern_fields("tools/call", "u"), ["HDR-009"]),
        (modern_fields("tools/list", "t"), ["HDR-008"]),
        (modern_fields("tools/call"), ["HDR-009"]),
        (modern_fields("tools/call")[:2], ["HDR-008", "HDR-009"]),
        ([BOTH], ["HDR-005"]),
        ([BOTH, VERSION], ["HDR-006"]),
    ],
)
def test_modern_fields_repeat_the_body(proxy: Proxy, fields: Any, rules: list[str]) -> None:
    """A proxy that routes by headers must see the same request as the server."""
    message = modern(1, "tools/call", {"name": "t"})
    proxy.post(message, fields, complete(1, {"content": []}))

    assert [rule for _, rule in accused(proxy.taken())] == rules


@pytest.mark.parametrize(
    ("code", "status", "rules"),
    [
        (-32601, 404, []),
        (-32601, 200, ["HTTP-023"]),
        (-32022, 400, []),
        (-32022, 404, ["HTTP-024"]),
    ],
)
def test_status_of_a_modern_error(proxy: Proxy, code: int, status: int, rules: list[str]) -> None:
    """The status is judged only for a server that has shown to be modern."""
    data: Any = {"supported": ["2026-07-28"], "requested": "x"} if code == -32022 else None
    answer = error(1, code) if data is None else error(1, code, data=data)
    asking = (modern(1, "tools/list"), modern_fields("tools/list"))
    proxy.post(*asking, complete(1, {"tools": [], "ttlMs": 0, "cacheScope": "public"}))
    assert accused(proxy.taken()) == []
    proxy.post(*asking, answer, status)

    assert [rule for _, rule in accused(proxy.taken())] == rules


# ----------------------------------------------------------------------------------- whatever comes


def test_other_paths_are_not_judged(proxy: Proxy) -> None:
    """A proxy may serve more paths than the endpoint."""
    exchange = proxy.begin("POST", [], b"x", "/other")
    proxy.observer.receive_response_head(exchange, 200, [])
    proxy.observer.receive_response_body(exchange, b"x")
    proxy.observer.receive_end(exchange)

    assert proxy.taken() == []


def test_what_is_no_url_does_not_raise(proxy: Proxy) -> None:
    """URLs come from both sides, and may be any text."""
    proxy.observer.receive_request_head(1, "GET", "//[", [])
    assert not proxy.observer.is_for_endpoint("//[")
    stream = proxy.stream()
    proxy.observer.receive_response_event(stream, b"//[", type="endpoint")
    other = proxy.begin("GET", [("Accept", "text/event-stream")])
    proxy.observer.receive_response_head(other, 200, [EVENTS])
    proxy.observer.receive_response_event(other, b"//[", type="endpoint")
    proxy.observer.close()

    assert accused(proxy.taken()) == []


def test_an_exchange_may_be_named_by_anything_and_again(proxy: Proxy) -> None:
    """A name that comes again before its end must start a new exchange."""
    observer = HTTPObserver("/mcp")
    body = json.dumps(modern(1, "tools/list")).encode()
    for _ in range(2):
        observer.receive_request_head("name", "POST", "/mcp", modern_fields("tools/list"), now=1.0)
        observer.receive_request_body("name", body, now=2.0)
    observer.close(now=4.0)

    assert [event.seconds for event in of(RequestUnanswered, taken(observer))] == [0.0, 2.0]


def test_times_never_go_back() -> None:
    """A clock that is set back must not give negative durations."""
    observer = HTTPObserver("/mcp")
    observer.receive_request_head(1, "POST", "/mcp", [], now=5.0)
    observer.receive_request_body(1, b"x", now=3.0)

    assert {event.time for event in of(ViolationSeen, taken(observer))} == {5.0}


def test_nothing_is_taken_after_the_end(proxy: Proxy) -> None:
    """Closing the observer must complete its report."""
    exchange = proxy.begin("POST", [BOTH], call(1, "ping"))
    proxy.observer.close()
    proxy.observer.close()
    assert len(of(RequestUnanswered, proxy.taken())) == 1
    proxy.observer.receive_response_head(exchange, 200, [])
    proxy.observer.receive_end(exchange)
    proxy.post(b"x", [])

    assert proxy.taken() == []


def test_open_exchanges_and_their_bytes_are_bounded() -> None:
    """A proxy runs for weeks, and the latest exchange must always be judged."""
    proxy = Proxy(max_requests=2, max_message_bytes=100)
    for _ in range(3):
        proxy.begin("POST", [BOTH], call(1, "ping"))
    assert [event.cause for event in of(BlindSpot, proxy.taken())][-1] is BlindCause.FORGOTTEN
    for n in range(5):
        proxy.begin("GET", [BOTH, ("Mcp-Session-Id", f"s{n}")])
    large = proxy.begin("POST", [BOTH], b"x" * 1000)
    proxy.observer.receive_response_head(large, 200, [])

    rules = [rule for _, rule in accused(proxy.taken())]
    assert "HTTP-014" in rules


def test_an_http_observer_can_be_copied(proxy: Proxy) -> None:
    """All state is plain data."""
    proxy.open()
    proxy.stream()
    other = copy.deepcopy(proxy.observer)
    for one in (proxy.observer, other):
        one.receive_request_head("new", "POST", "/mcp", LEGACY)
        one.receive_request_body("new", json.dumps(call(1, "tools/list")).encode())

    assert plain(taken(other)) == plain(taken(proxy.observer))


def test_a_url_must_be_one() -> None:
    """An invalid URL is a mistake of the caller, and must raise."""
    with pytest.raises(ValueError, match="IPv6"):
        HTTPObserver("http://[")


EXCHANGES = st.integers(0, 2)
SIDES = st.sampled_from([C, S])
FIELDS = st.lists(
    st.sampled_from([BOTH, JSON, EVENTS, SESSION, VERSION, *modern_fields("ping", "\x00")])
)
DATA = st.one_of(
    st.binary(),
    st.sampled_from(
        [
            json.dumps(message).encode()
            for message in (
                initialize(0, NEWEST),
                result(0, agreement()),
                INITIALIZED,
                [call(1, "ping")],
                modern(1, "tools/call", {"name": "t"}),
                modern(1, "x", {}, envelope(version="2031-01-01")),
                error(1, -32601),
            )
        ]
    ),
)
STEPS = st.one_of(
    st.tuples(
        st.just("receive_request_head"),
        EXCHANGES,
        st.sampled_from(["GET", "POST", "DELETE", "x"]),
        st.sampled_from(["/mcp", "/a", "//[", ""]),
        FIELDS,
    ),
    st.tuples(st.just("receive_request_body"), EXCHANGES, DATA),
    st.tuples(
        st.just("receive_response_head"), EXCHANGES, st.sampled_from([200, 202, 404]), FIELDS
    ),
    st.tuples(st.just("receive_response_body"), EXCHANGES, DATA),
    st.tuples(st.just("receive_response_event"), EXCHANGES, DATA),
    st.tuples(st.just("receive_end"), EXCHANGES),
    st.tuples(st.just("receive_disconnect"), EXCHANGES, SIDES),
)


@given(steps=st.lists(STEPS, max_size=30))
def test_no_order_of_parts_raises(steps: list[tuple[Any, ...]]) -> None:
    """A proxy must not fail because of the traffic that it watches."""
    observer = HTTPObserver("http://h/mcp")
    for name, *arguments in steps:
        getattr(observer, name)(*arguments)
    observer.close()
    numbers = [getattr(event, "number", 1) for event in taken(observer)]

    assert all(1 <= number <= observer.messages for number in numbers)


# ------------------------------------------------------------------------------------- batches


def test_a_posted_batch_has_requests_or_responses() -> None:
    """BATCH-004 binds the client of Streamable HTTP; on stdio a batch may mix both.

    The server may refuse the batch as a whole, so the same response may come once more.
    """
    proxy, fields = Proxy(), [BOTH, SESSION]
    opened = result(0, agreement("2025-03-26"))
    proxy.post(initialize(0, "2025-03-26"), [BOTH], opened, response_fields=[JSON, SESSION])
    proxy.post(INITIALIZED, fields, status=202, response_fields=())
    stream = proxy.stream()
    proxy.observer.receive_response_event(stream, json.dumps(call(7, "roots/list")).encode())
    proxy.taken()

    proxy.post([result(7, {"roots": []}), call(1, "ping")], fields, status=400)
    [violation] = of(ViolationSeen, proxy.taken())
    assert (violation.side, violation.rule) == (C, "BATCH-004")

    proxy.post([result(7, {"roots": []})], fields, status=202)
    proxy.post([call(2, "ping"), note("extension/told")], fields, [result(2, {})])
    assert of(ViolationSeen, proxy.taken()) == []
