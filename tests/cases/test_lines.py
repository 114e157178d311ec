"""Failure class 6, lines of a byte stream: cuts, line ends, and noise between messages."""

import json

import pytest

from sansmcp import (
    Codec,
    Config,
    ErrorReceived,
    Event,
    MsgspecCodec,
    ProtocolViolation,
    RequestAnswered,
    RequestReceived,
    ResponseReceived,
    StandardCodec,
)
from tests.support.http.client_endpoint import answer as response
from tests.support.http.client_endpoint import ask, events_of, opened, respond, stream
from tests.support.http.server_endpoint import answer, modern_headers, new_endpoint, post
from tests.support.http.server_endpoint import drain as drain_endpoint
from tests.support.modern import MODERN, envelope
from tests.support.wire import (
    asked,
    assert_usable,
    broken,
    call,
    drain,
    error,
    initialize,
    lines,
    new_server,
    of,
    only,
    ready_client,
    ready_server,
    receive,
    refusals,
    result,
    sent,
    wire,
    without_id,
)

PING = wire(call(1, "ping"))
BOM = b"\xef\xbb\xbf"


def test_lines_may_end_in_crlf_and_ours_end_in_lf(revision: str) -> None:
    """Case c090: a client on Windows was not understood."""
    server = ready_server(revision)
    events = receive(server, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n', call(2, "ping"))
    assert broken(events) == ["OWN-017"]
    assert len(of(RequestAnswered, events)) == 2
    output = server.data_to_send()
    assert b"\r" not in output
    assert lines(output) == [result(1, {}), result(2, {})]
    # Once is enough: a client on Windows ends every line so.
    again = receive(server, b'{"jsonrpc":"2.0","id":3,"method":"ping"}\r\n')
    assert [type(event) for event in again] == [RequestAnswered]


@pytest.mark.parametrize(
    "codec", [StandardCodec(), MsgspecCodec()], ids=lambda codec: type(codec).__name__
)
@pytest.mark.parametrize(
    "text",
    ["line1\nline2\r\n\u2028end", "\n", "\r", "\x85\u2029\x0b\x0c\x1c\x00", "\ud800\n", '"\\\n'],
    ids=repr,
)
def test_a_message_is_one_line(revision: str, codec: Codec, text: str) -> None:
    """Case c091: a line break inside a string cut the message in two."""
    server = ready_server(revision, config=Config(codec=codec))
    answered = asked(server, call(text, "tools/list"))
    assert server.send_result(answered, {"tools": [], text: [text]}, meta={text: text})
    refused = asked(server, call(2, "tools/list"))
    assert server.send_error(refused, -32000, text, {"data": text})
    assert server.send_log("info", text, logger=text)
    server.send_notification("notifications/x", {text: text})
    output = server.data_to_send()
    assert output.count(b"\n") == 4
    assert output.endswith(b"\n")
    assert b"\r" not in output
    assert lines(output)[0] == result(text, {"tools": [], text: [text], "_meta": {text: text}})


@pytest.mark.parametrize(
    "chunks",
    [
        [b"\xef", b"\xbb", b"\xbf" + PING[:-1] + b"\r", b"\n"],
        [BOM + PING[:-1] + b"\r\n"],
        [BOM, PING[:-1], b"\r", b"\n"],
        [bytes([byte]) for byte in BOM + PING[:-1] + b"\r\n"],
    ],
    ids=["as reported", "whole", "parts", "single bytes"],
)
def test_a_byte_order_mark_and_a_crlf_may_be_cut_anywhere(
    revision: str, chunks: list[bytes]
) -> None:
    """Case c093: the mark was looked for in one read only, and the CR was taken for a line."""
    server = new_server(revisions=[revision])
    events: list[Event] = []
    for chunk in chunks:
        events += receive(server, chunk)
    assert broken(events) == ["OWN-017", "OWN-017"]
    assert len(of(RequestAnswered, events)) == 1
    assert sent(server) == [result(1, {})]


def test_a_byte_order_mark_counts_before_the_first_message_only(revision: str) -> None:
    """Neighbour of case c093: a later mark is invalid JSON, but must not end the connection."""
    server = ready_server(revision)
    assert broken(receive(server, BOM + PING)) == ["ERR-001"]
    assert refusals(sent(server)) == without_id(revision, -32700)
    assert_usable(server)


@pytest.mark.parametrize("blank", [b"\n", b"\n\n   \n\r\n", b"\t\r\n", b" \t\n"], ids=repr)
def test_blank_lines_are_skipped(revision: str, blank: bytes) -> None:
    """Case c094: each blank line was answered with an error."""
    server = ready_server(revision)
    events = receive(server, blank + PING)
    assert broken(events) == ["OWN-017"]
    assert all(event.tolerated for event in of(ProtocolViolation, events))
    assert sent(server) == [result(1, {})]


def test_messages_come_out_as_soon_as_their_line_is_complete(revision: str) -> None:
    """Case c102: only the first line of a read was served, or a cut line was lost."""
    server = ready_server(revision)
    whole = b"".join(wire(call(id, "ping")) for id in (1, 2, 3))
    cut = whole.rindex(b":") - 10
    first = receive(server, whole[:cut])
    assert [event.request.id for event in of(RequestAnswered, first)] == [1, 2]
    assert sent(server) == [result(1, {}), result(2, {})]
    second = receive(server, whole[cut:])
    assert [event.request.id for event in of(RequestAnswered, second)] == [3]
    assert sent(server) == [result(3, {})]


NO_JSON = [
    b"this is not json",
    b"{",
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping"} {}',
    b"{'jsonrpc':'2.0'}",
    b'{"jsonrpc":"2.0","id":1,"method":"ping",}',
    b'{"jsonrpc":"2.0","id":1,"method":"pi\tng"}',
    b'{"jsonrpc":"2.0","id":01,"method":"ping"}',
    b"\xff\xfe{bad}",
    b"\xff\xfe",
    b'"\xed\xa0\x80"',
    b'{"jsonrpc":"2.0","id":"\xc3("}',
    '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16-le"),
    '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"),
    b"\x00",
]


@pytest.mark.parametrize("noise", NO_JSON, ids=repr)
def test_a_bad_line_before_the_handshake_does_not_end_the_connection(
    revision: str, noise: bytes
) -> None:
    """Case c095: one line that is no JSON, and the server was gone."""
    server = new_server(revisions=[revision])
    violation, answered = receive(server, noise + b"\n", initialize(1, revision))
    assert isinstance(violation, ProtocolViolation)
    assert (violation.rule, violation.code, violation.fatal) == ("ERR-001", -32700, False)
    assert isinstance(answered, RequestAnswered)
    *refused, answer = sent(server)
    assert refusals(refused) == without_id(revision, -32700)
    assert (answer["id"], answer["result"]["protocolVersion"]) == (1, revision)


@pytest.mark.parametrize("noise", NO_JSON, ids=repr)
def test_a_bad_line_does_not_spoil_its_neighbours(revision: str, noise: bytes) -> None:
    """Case c099: bytes that are no UTF-8 raised out of the reader."""
    server = ready_server(revision)
    before, violation, after = receive(server, call(1, "ping"), noise + b"\n", call(2, "ping"))
    assert isinstance(before, RequestAnswered)
    assert isinstance(violation, ProtocolViolation)
    assert isinstance(after, RequestAnswered)
    first, *refused, last = sent(server)
    assert (first, last) == (result(1, {}), result(2, {}))
    assert refusals(refused) == without_id(revision, -32700)


NO_MESSAGE = [
    b'{"level":"info","msg":"up"}',
    b"123",
    b'"text"',
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'["a"]',
    b'{"jsonrpc":"2.0"}',
]


@pytest.mark.parametrize("noise", NO_MESSAGE + NO_JSON, ids=repr)
def test_a_client_takes_what_is_no_message_for_noise(revision: str, noise: bytes) -> None:
    """Case c098: a log line in JSON ended the connection. Case c100: so did bytes that are no
    UTF-8. A client reports them, answers nothing, and goes on."""
    client = ready_client(revision)
    request = client.send_request("tools/list")
    sent(client)
    violation, answer = receive(client, noise + b"\n", result(request.id, {"tools": []}))
    assert isinstance(violation, ProtocolViolation)
    assert not violation.fatal
    assert violation.excerpt == noise[:120]
    assert isinstance(answer, ResponseReceived)
    assert answer.request is request
    assert_usable(client)


def test_only_the_start_of_a_long_line_of_noise_is_shown(revision: str) -> None:
    """Neighbour of case c100: an event must not hold megabytes of noise, and must show that its
    excerpt is cut."""
    client = ready_client(revision)
    violation = only(ProtocolViolation, receive(client, b"\xff" * 100_000 + b"\n"))
    assert violation.excerpt == b"\xff" * 120 + b" ... (cut: 100000 bytes in all)"
    assert_usable(client)


MARK = "\ufeff"
OPENING = initialize(1, "2025-11-25")


@pytest.mark.parametrize("as_text", [True, False], ids=["text", "bytes"])
def test_a_byte_order_mark_before_a_whole_message_is_dropped(as_text: bool) -> None:
    """Case c288: a transport of whole messages may have a sender that marks each of them."""
    server = new_server(revisions=["2025-11-25"])
    for message, answered in ((OPENING, 1), (call(2, "ping"), 2)):
        text = MARK + json.dumps(message)
        server.receive_message(text if as_text else text.encode())
        violation, *others = drain(server)
        assert isinstance(violation, ProtocolViolation)
        assert (violation.rule, violation.tolerated) == ("OWN-017", True)
        assert len(of(RequestAnswered, others)) == 1
        (answer,) = sent(server)
        assert answer["id"] == answered
        assert "result" in answer


def test_a_client_drops_a_byte_order_mark_before_a_whole_message() -> None:
    """Case c288, the other side: after the end of the connection the mark must not be reported."""
    client = ready_client("2025-11-25")
    request = client.send_request("tools/list")
    client.receive_message(MARK + json.dumps(result(request.id, {"tools": []})))
    events = drain(client)
    assert broken(events) == ["OWN-017"]
    assert len(of(ResponseReceived, events)) == 1
    client.close()
    drain(client)
    client.receive_message(MARK + json.dumps(call(1, "ping")))
    assert drain(client) == []


def test_a_second_byte_order_mark_is_no_json() -> None:
    """Neighbour of case c288: only one mark may be dropped."""
    server = ready_server("2025-11-25")
    server.receive_message(2 * MARK + json.dumps(call(1, "ping")))
    assert broken(drain(server)) == ["OWN-017", "ERR-001"]


def test_a_byte_order_mark_before_a_request_body_is_dropped() -> None:
    """Case c288, over HTTP: some clients write their bodies as they write files."""
    endpoint = new_endpoint()
    message = call(1, "tools/call", {"name": "t", "arguments": {}, "_meta": envelope()})
    fields = modern_headers(message)
    posted = post(endpoint, (MARK + json.dumps(message)).encode(), fields)
    assert not posted.refused
    violation, received = drain_endpoint(endpoint)
    assert isinstance(violation, ProtocolViolation)
    assert (violation.rule, violation.tolerated) == ("OWN-017", True)
    assert isinstance(received, RequestReceived)
    assert endpoint.send_result(received.request, {"content": []})
    assert answer(posted).status == 200


@pytest.mark.parametrize("form", ["body", "error", "stream"])
def test_a_byte_order_mark_before_a_response_body_is_dropped(form: str) -> None:
    """Case c288, over HTTP, the other side: in JSON, in an error, and in the data of an event."""
    client = opened(MODERN)
    request, exchange = ask(client)
    mark = MARK.encode()
    if form == "body":
        body = mark + json.dumps(response(client, request)).encode()
        respond(exchange, 200, body, form="application/json")
        kind: type[object] = ResponseReceived
    elif form == "error":
        refused = mark + json.dumps(error(request.id, -32602)).encode()
        respond(exchange, 400, refused, form="application/json")
        kind = ErrorReceived
    else:
        data = json.dumps(response(client, request)).encode()
        stream(exchange, b"data: " + mark + data + b"\n\n")
        kind = ResponseReceived
    violation, ending = events_of(client)
    assert isinstance(violation, ProtocolViolation)
    assert (violation.rule, violation.tolerated) == ("OWN-017", True)
    assert isinstance(ending, kind)
