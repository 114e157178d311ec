"""Messages over `max_message_bytes`: their first or last bytes tell which request they end."""

import json
from itertools import pairwise
from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    ClientConnection,
    Config,
    Event,
    FailureReason,
    JSONObject,
    ListingEnd,
    ListingEnded,
    OutgoingRequest,
    ProtocolViolation,
    RequestFailed,
    ResponseReceived,
)
from sansmcp.testing import plain
from tests.support.wire import (
    SAMPLING,
    assert_usable,
    broken,
    drain,
    of,
    only,
    ready_client,
    ready_server,
    receive,
    result,
    sent,
)

REVISION = LEGACY_REVISIONS[-1]
LIMIT = 1_000
CONFIG = Config(max_message_bytes=LIMIT)
# What looks like an id inside of a string, or of an object in the message, is none.
LARGE = {"content": [{"type": "text", "text": ',"id":2}' * 500}], "x": {"id": 2}}
THE_LIMIT = f"the limit of Config.max_message_bytes is {LIMIT}"
EARLY = f"the response to tools/call has more than {LIMIT} bytes; {THE_LIMIT}"
UNKNOWN = f"a message has more than {LIMIT} bytes; {THE_LIMIT}"
MAYBE = "; it may be the response to one of 2 open requests; that request then gets no response"


def calling(**settings: Any) -> tuple[ClientConnection, OutgoingRequest, OutgoingRequest]:
    """A client with two open requests."""
    client = ready_client(REVISION, config=Config(max_message_bytes=LIMIT, **settings))
    one, two = (client.send_request("tools/call", {"name": name}) for name in "ab")
    sent(client)
    return client, one, two


def line(separators: tuple[str, str] = (",", ":"), **members: object) -> bytes:
    """A message with its members in this order."""
    return json.dumps(members, separators=separators).encode() + b"\n"


def invalid(events: list[Event], call: OutgoingRequest) -> str:
    """The text of the one violation in these events, and the one ending."""
    violation, failed = events
    assert isinstance(violation, ProtocolViolation)
    assert isinstance(failed, RequestFailed)
    assert (violation.rule, violation.request, violation.excerpt) == ("OWN-001", call, None)
    assert (failed.request, failed.reason) == (call, FailureReason.INVALID_ANSWER)
    assert failed.text == violation.text
    return failed.text


@pytest.mark.parametrize("separators", [(",", ":"), (" , ", " : ")])
@pytest.mark.parametrize("member", ["result", "error"])
@pytest.mark.parametrize("id_first", [True, False])
def test_an_answer_over_the_limit_ends_its_call_when_it_crosses_the_limit(
    separators: tuple[str, str], member: str, id_first: bool
) -> None:
    """The call hung until its timeout, and no event gave the reason."""
    client, one, two = calling()
    value = LARGE if member == "result" else {"code": 1, "message": "no", "data": LARGE}
    head: JSONObject = {"id": two.id, "jsonrpc": "2.0"} if id_first else {}
    head = head or {"jsonrpc": "2.0", "id": two.id}
    text = line(separators, **head, **{member: value})
    client.receive_data(text[:LIMIT])
    assert drain(client) == []
    client.receive_data(text[LIMIT : LIMIT + 1])
    assert invalid(drain(client), two) == EARLY
    assert receive(client, text[LIMIT + 1 :]) == []
    assert only(ResponseReceived, receive(client, result(one.id, {"content": []}))).request is one
    assert_usable(client)


@pytest.mark.parametrize("separators", [(",", ":"), (" , ", " : ")])
@pytest.mark.parametrize("id_last", [True, False])
def test_an_id_behind_the_result_ends_the_call_at_the_end_of_the_line(
    separators: tuple[str, str], id_last: bool
) -> None:
    """Some servers write the id last. Until it is read, the report names the possibility."""
    client, one, two = calling()
    members: JSONObject = {"jsonrpc": "2.0", "id": two.id}
    if not id_last:
        members = {"id": two.id, "jsonrpc": "2.0"}
    text = line(separators, result=LARGE, **members)
    client.receive_data(text[:-1])
    early = only(ProtocolViolation, drain(client))
    assert (early.rule, early.request, early.text) == ("OWN-001", None, UNKNOWN + MAYBE)
    assert one.open
    assert two.open
    client.receive_data(b"\r\n")
    failed = only(RequestFailed, drain(client))
    assert (failed.request, failed.reason) == (two, FailureReason.INVALID_ANSWER)
    expected = f"the response to tools/call has {len(text)} bytes; the limit of "
    assert failed.text == expected + f"Config.max_message_bytes is {LIMIT}"
    assert_usable(client)


def test_where_one_request_is_open_the_report_names_that_one() -> None:
    """With one open request, the response can only be for that one."""
    client = ready_client(REVISION, config=CONFIG)
    client.send_request("tools/call", {"name": "a"})
    violation = only(ProtocolViolation, receive(client, b'{"x":{' + b"x" * 2 * LIMIT + b"\n"))
    assert violation.text == UNKNOWN + MAYBE.replace(
        "one of 2 open requests", "the one open request"
    )


@pytest.mark.parametrize("start", [b'{"x":{"id":1},', b"[", b"", b"{", b'{"id":1'])
def test_where_the_id_cannot_be_told_the_report_names_the_possibility(start: bytes) -> None:
    """The application learns why a response may be missing."""
    client, one, _ = calling()
    violation = only(ProtocolViolation, receive(client, start + b"x" * 2 * LIMIT + b',"id":1}\n'))
    assert violation.text == UNKNOWN + MAYBE
    assert (
        violation.excerpt == (start + b"x" * 120)[:120] + b" ... (cut: more than 1000 bytes in all)"
    )
    assert one.open
    assert_usable(client)


@pytest.mark.parametrize("form", ["%d.0", "%d.00", "%d0e-1", "%dE0"])
@pytest.mark.parametrize("place", ["first", "last", "behind a number"])
def test_an_id_with_a_fraction_of_zero_is_that_of_the_integer(form: str, place: str) -> None:
    """Some peers write 1 as 1.0, which is the same id in a message within the limit too."""
    client, _, two = calling()
    assert isinstance(two.id, int)
    id = (form % two.id).encode()
    result = b'"result":' + json.dumps(LARGE).encode()
    text = {
        "first": b'{"jsonrpc":"2.0","id":%b,%b}\n' % (id, result),
        "last": b'{%b,"jsonrpc":"2.0","id":%b}\n' % (result, id),
        "behind a number": b'{"x":-1.5e3,"jsonrpc":"2.0","id":%b,%b}\n' % (id, result),
    }[place]
    events = receive(client, text)
    assert [failed.request for failed in of(RequestFailed, events)] == [two]
    assert broken(events) == ["OWN-001"]


@pytest.mark.parametrize("id", ["2.5", "1e400"])
def test_a_number_that_is_no_integer_is_no_id(id: str) -> None:
    """Such a number names no request, in a message within the limit either."""
    client, one, two = calling()
    text = b'{"id":%b,"result":"%b"}\n' % (id.encode(), b"x" * 9_000)
    assert broken(receive(client, text)) == ["OWN-001"]
    assert one.open
    assert two.open


def test_an_error_names_an_id_with_a_fraction_of_zero_as_it_came() -> None:
    """The peer compares the id in the error with the one that it has written."""
    server = ready_server(REVISION, config=CONFIG)
    params = json.dumps(LARGE).encode()
    receive(server, b'{"jsonrpc":"2.0","id":7.0,"method":"x/y","params":%b}\n' % params)
    receive(server, b'{"method":"x/y","params":%b,"jsonrpc":"2.0","id":8.0}\n' % params)
    assert [repr(answer["id"]) for answer in sent(server)] == ["7.0", "8.0"]


def ended(client: ClientConnection, text: bytes) -> list[Event]:
    """The events of these last bytes and the end of the stream."""
    client.receive_data(text)
    client.receive_eof()
    return drain(client)


CUT = "the stream ended in a message of 5{} bytes without a newline; " + THE_LIMIT


@pytest.mark.parametrize("start", [b'{"jsonrpc":"2.0","result":"', b"[", b"x"])
def test_a_stream_that_ends_in_a_line_over_the_limit_says_so(start: bytes) -> None:
    """The failure named only the end of the connection, and not the setting to raise."""
    client, one, two = calling()
    text = start + b"x" * (5_000 - len(start))
    violations = of(ProtocolViolation, events := ended(client, text))
    assert [violation.rule for violation in violations] == ["OWN-001", "OWN-018"]
    assert [violation.text for violation in violations] == [UNKNOWN + MAYBE, CUT.format("000")]
    assert {
        failed.request: (failed.reason, failed.text) for failed in of(RequestFailed, events)
    } == {
        call: (
            FailureReason.LOST,
            "the connection ended before tools/call was answered; "
            f"{CUT.format('000')}, and it may be the response",
        )
        for call in (one, two)
    }


def test_a_line_over_the_limit_whose_id_is_told_is_the_response_to_no_other_request() -> None:
    """The id in the first or last bytes must count although the newline is missing."""
    size = len(line(jsonrpc="2.0", id=2, result=LARGE)) - 1
    for id_first in (True, False):
        client, one, two = calling()
        members: JSONObject = {"jsonrpc": "2.0", "id": two.id}
        members = {**members, "result": LARGE} if id_first else {"result": LARGE, **members}
        events = ended(client, line(**members)[:-1])
        assert broken(events) == ["OWN-001", "OWN-018"]
        assert of(ProtocolViolation, events)[1].text == CUT.format(str(size)[1:])
        first, second = of(RequestFailed, events)
        assert (first.request, first.reason) == (two, FailureReason.INVALID_ANSWER)
        assert (second.request, second.reason) == (one, FailureReason.LOST)
        assert second.text == "the connection ended before tools/call was answered"


def test_a_request_over_the_limit_that_is_cut_off_is_no_response() -> None:
    """It must end no call, and a server must refuse it with an error without an id that names
    the setting."""
    client, _, _ = calling()
    text = b'{"jsonrpc":"2.0","method":"x/y","params":"' + b"x" * 5_000
    lost = of(RequestFailed, ended(client, text))
    assert [failed.text for failed in lost] == [
        "the connection ended before tools/call was answered"
    ] * 2
    server = ready_server(REVISION, config=CONFIG)
    server.receive_data(text)
    server.receive_eof()
    assert broken(drain(server)) == ["OWN-001", "OWN-018"]
    [answer] = sent(server)
    assert "id" not in answer
    assert answer["error"]["message"].endswith(THE_LIMIT)


def test_a_client_that_waits_for_nothing_is_told_of_no_possibility() -> None:
    """Without an open request the hint on a missing response would be wrong."""
    client = ready_client(REVISION, config=CONFIG)
    assert only(ProtocolViolation, receive(client, b"x" * 2 * LIMIT + b"\n")).text == UNKNOWN


@pytest.mark.parametrize("id", ["99", '"\\ud800"', '"\udcff"', '"' + "9" * 30 + '"', "9" * 480])
def test_an_answer_over_the_limit_that_is_nobodys_ends_no_call(id: str) -> None:
    """A late response must not end another call."""
    client, one, two = calling()
    text = b'{"jsonrpc":"2.0","id":%b,"result":"%b"}\n' % (
        id.encode("utf-8", "surrogateescape"),
        b"x" * 2 * LIMIT,
    )
    assert broken(receive(client, text)) == ["OWN-001"]
    assert one.open
    assert two.open
    assert_usable(client)


def test_an_id_of_the_other_type_is_matched_as_in_any_answer() -> None:
    """The id must be matched with another type, unless the client is strict."""
    client, _, two = calling()
    text = line(jsonrpc="2.0", id=str(two.id), result=LARGE)
    assert invalid(receive(client, text), two) == EARLY
    client, _, two = calling(strict=True)
    text = line(jsonrpc="2.0", id=str(two.id), result=LARGE)
    assert broken(receive(client, text)) == ["OWN-001"]
    assert two.open


def test_a_request_over_the_limit_ends_no_call_of_the_same_id() -> None:
    """Both sides assign ids, so a request may have the id of a call."""
    client, one, two = calling()
    assert one.id == 2
    text = line(jsonrpc="2.0", id=2, method="sampling/createMessage", params=LARGE)
    assert only(ProtocolViolation, receive(client, text)).text == UNKNOWN
    text = line(method="sampling/createMessage", params=LARGE, jsonrpc="2.0", id=2)
    assert only(ProtocolViolation, receive(client, text)).text == UNKNOWN
    assert one.open
    assert two.open
    assert sent(client) == []  # a client never answers what it cannot read


@pytest.mark.parametrize("id_first", [True, False])
@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
def test_a_request_over_the_limit_is_refused_with_its_id(revision: str, id_first: bool) -> None:
    """An error without an id left the client waiting until its timeout."""
    server = ready_server(revision, config=CONFIG)
    members: JSONObject = {"method": "tools/call", "params": {"name": "x", "arguments": LARGE}}
    ids: JSONObject = {"jsonrpc": "2.0", "id": "seven"}
    text = line(**ids, **members) if id_first else line(**members, **ids)
    assert broken(receive(server, text[: LIMIT + 1])) == ["OWN-001"]
    assert receive(server, text[LIMIT + 1 :]) == []
    [answer] = sent(server)
    assert (answer["id"], answer["error"]["code"]) == ("seven", -32600)
    assert "the limit" in answer["error"]["message"]
    assert_usable(server)


def test_an_answer_over_the_limit_to_a_server_ends_its_request_and_gets_no_answer() -> None:
    """The request of the server must end, and no error may answer a response."""
    server = ready_server(REVISION, config=CONFIG)
    request = server.send_request("sampling/createMessage", SAMPLING)
    sent(server)
    text = line(jsonrpc="2.0", id=request.id, result=LARGE)
    assert "the response to sampling/createMessage" in invalid(receive(server, text), request)
    assert broken(receive(server, text)) == ["OWN-001"]
    assert broken(receive(server, line(result=LARGE, jsonrpc="2.0", id=request.id))) == ["OWN-001"]
    assert sent(server) == []


def test_a_listing_ends_with_a_page_over_the_limit() -> None:
    """Requests of the library itself must end in the same way."""
    client = ready_client(REVISION, config=CONFIG)
    listing = client.send_paginated("tools/list")
    [request] = sent(client)
    *_, ended = receive(client, line(jsonrpc="2.0", id=request["id"], result=LARGE))
    assert isinstance(ended, ListingEnded)
    assert (ended.listing, ended.reason) == (listing, ListingEnd.INVALID_ANSWER)


def test_the_size_of_a_message_without_framing_is_told() -> None:
    """Without framing, the size of a message is known."""
    client, _, two = calling()
    text = line(result=LARGE, jsonrpc="2.0", id=two.id)[:-1]
    client.receive_message(text)
    violation, failed = drain(client)
    assert broken([violation]) == ["OWN-001"]
    assert isinstance(failed, RequestFailed)
    assert f"has {len(text)} bytes" in failed.text


def test_a_mark_before_a_message_over_the_limit_without_framing_is_reported() -> None:
    """A byte order mark must be reported as before any message, and the id behind it be read."""
    client, _, two = calling()
    text = line(jsonrpc="2.0", id=two.id, result=LARGE)[:-1]
    client.receive_message(b"\xef\xbb\xbf" + text)
    events = drain(client)
    assert broken(events) == ["OWN-017", "OWN-001"]
    assert [failed.request for failed in of(RequestFailed, events)] == [two]


def test_a_line_over_the_limit_may_outlast_the_connection() -> None:
    """No event may follow the end of the connection."""
    client, _, two = calling()
    text = line(result=LARGE, jsonrpc="2.0", id=two.id)
    client.receive_data(text[: LIMIT + 1])
    drain(client)
    client.close()
    drain(client)
    assert receive(client, text[LIMIT + 1 :]) == []


@pytest.mark.parametrize("cuts", [(1,), (600, 1000, 1001), tuple(range(1, 4200, 7)), (4000, 4300)])
def test_chunking_changes_nothing(cuts: tuple[int, ...]) -> None:
    """The first and last bytes of a line must be read the same however the network cuts it."""

    def events(*cuts: int) -> Any:
        client, one, two = calling()
        text = line(result=LARGE, jsonrpc="2.0", id=one.id)
        text += line(jsonrpc="2.0", id=two.id, result=LARGE)
        for start, end in pairwise([0, *cuts, len(text)]):
            client.receive_data(text[start:end])
        return plain(drain(client))

    assert events(*cuts) == events()
    assert len(events()) == 4


@pytest.mark.parametrize("limit", [-1, -2, -9, -40, -600])
def test_the_end_of_a_line_may_come_in_any_pieces(limit: int) -> None:
    """A line may cross the limit within its last bytes, which have the id."""
    text = line(result=LARGE, jsonrpc="2.0", id=3)
    for cut in range(1, 60):
        client = ready_client(REVISION, config=Config(max_message_bytes=len(text) - 1 + limit))
        calls = [client.send_request("tools/call", {"name": name}) for name in "ab"]
        assert calls[1].id == 3
        client.receive_data(text[:-cut])
        client.receive_data(text[-cut:])
        assert [failed.request for failed in of(RequestFailed, drain(client))] == [calls[1]]


def test_a_cut_last_line_is_one_report() -> None:
    """It was reported twice: as a missing newline and as invalid JSON."""
    client, _, _ = calling()
    client.receive_data(b'{"jsonrpc":"2.0","id":' + b" " * 200)
    client.receive_eof()
    violation, *endings = drain(client)
    assert isinstance(violation, ProtocolViolation)
    assert violation.rule == "OWN-018"
    assert violation.text.startswith("the stream ended without a newline, and the last line is no ")
    assert violation.excerpt is not None
    assert violation.excerpt.endswith(b" ... (cut: 222 bytes in all)")
    assert broken(endings) == []
