"""HTTP/1.1 connections on h11, driven by hand with the bytes of one client."""

import itertools
import math
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import CancelCause, Config, RequestCancelled, RequestReceived
from sansmcp_io.h11 import ConnectionState, HTTPConnection, HTTPLimits
from tests.support.http.h11_client import Driven, driven, head, posted, posted_modern, responses
from tests.support.http.server_endpoint import (
    GET,
    LEGACY,
    POST,
    body_of,
    modern_headers,
    modern_tool_call,
)
from tests.support.machines.budget import examples
from tests.support.modern import modern
from tests.support.wire import initialize

OPEN, LINGERING, CLOSED = ConnectionState
RESULT = {"content": [{"type": "text", "text": "done"}]}
CALL = modern_tool_call()


def answer_all(one: Driven) -> list[Any]:
    """Answer all requests that have come, and return their handles."""
    requests = [event.request for event in one.events() if isinstance(event, RequestReceived)]
    for request in requests:
        one.endpoint.send_result(request, RESULT)
    one.flush()
    return requests


def chunked(*pieces: bytes, fields: dict[str, str] | None = None) -> bytes:
    """A POST whose body comes in chunks."""
    begin = head("POST", "/mcp", {**POST, "transfer-encoding": "chunked", **(fields or {})})
    return begin + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece)


# ------------------------------------------------------------------------------ one after another


def test_a_connection_serves_one_request_after_the_other() -> None:
    """A client that must open a connection for each request loses time."""
    one = driven()
    for _ in range(3):
        one.receive(posted_modern(CALL))
        assert len(answer_all(one)) == 1
        (response,) = one.take()
        assert response.status == 200
        assert b"done" in response.body
        assert response.headers["date"].endswith("GMT")
        assert not response.closes
        assert one.connection.idle
    assert one.state is OPEN


@pytest.mark.parametrize(("status", "method"), [(200, ""), (202, "notifications/x"), (403, "")])
def test_a_response_is_the_same_whether_the_connection_goes_on(status: int, method: str) -> None:
    """h11 does not write responses on kept connections, and the client must see no difference."""
    message = modern(1, method) if method else CALL
    if method:
        del message["id"]
    about = {} if status == 403 else {"origins": ["*"]}
    sent: list[bytes] = []
    for fields in ({}, {"connection": "close"}):
        one = driven(about=about)
        more = {"origin": "https://app.example", **fields}
        one.receive(posted(message, {**modern_headers(message), **more}))
        answer_all(one)
        sent.append(re.sub(rb"date: [^\r]*", b"date: now", one.sent))
    goes_on, ends = sent

    assert goes_on.startswith(b"HTTP/1.1 %d " % status)
    assert ends == goes_on.replace(b"date: now", b"date: now\r\nConnection: close")


@given(cuts=st.lists(st.integers(1, 900), max_size=8))
def test_chunking_changes_nothing(cuts: list[int]) -> None:
    """The network may cut anywhere, also between CR and LF."""
    wire = posted_modern(CALL) + b"\r\n" + chunked(body_of(CALL), fields=modern_headers(CALL))
    wire += b"0\r\n\r\n" + head("GET", "/other")
    first = len(posted_modern(CALL))
    one = driven()
    edges = sorted({0, first, *(min(cut, len(wire)) for cut in cuts), len(wire)})
    for start, end in itertools.pairwise(edges):
        one.receive(wire[start:end])
        answer_all(one)

    found = one.take("POST", "POST", "GET")
    assert [response.status for response in found[:1]] == [200]
    # Where two requests came in one piece, the second was pipelined.
    assert len(found) == 3 or one.state is not OPEN


def test_bodies_may_come_in_chunks() -> None:
    """Clients that stream a body do not know its length beforehand."""
    one = driven()
    body = body_of(CALL)
    one.receive(chunked(body[:1], body[1:7], body[7:], fields=modern_headers(CALL)) + b"0\r\n\r\n")
    answer_all(one)

    assert one.take()[0].status == 200
    assert one.connection.idle


def test_a_stream_goes_out_as_it_comes() -> None:
    """Progress that is held back until the response is useless."""
    one = driven()
    message = modern_tool_call()
    message["params"]["_meta"]["progressToken"] = 1
    one.receive(posted_modern(message))
    (event,) = [event for event in one.events() if isinstance(event, RequestReceived)]
    one.endpoint.send_progress(event.request, 1)
    one.flush()
    assert b"notifications/progress" in one.sent
    assert one.connection.exchange is not None

    one.endpoint.send_result(event.request, RESULT)
    one.flush()
    (response,) = one.take()
    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["transfer-encoding"] == "chunked"
    assert one.connection.idle


def test_clients_of_http_1_0_are_served() -> None:
    """HTTP/1.0 has neither chunks nor kept connections."""
    one = driven(about={"answers": "sse"})
    one.receive(posted_modern(CALL).replace(b"HTTP/1.1", b"HTTP/1.0", 1))
    answer_all(one)

    assert responses(one.sent, ["POST"]) == []  # without a length it lasts until the end
    assert b"done" in one.sent
    assert b"chunked" not in one.sent
    assert one.state is CLOSED


def test_a_client_may_end_the_connection() -> None:
    """After `Connection: close` the connection must be closed behind the response."""
    one = driven()
    one.receive(posted(initialize(1, LEGACY), {"connection": "close"}))

    (response,) = one.take()
    assert response.status == 200
    assert response.closes
    assert one.state is CLOSED


@pytest.mark.parametrize("blank", [b"\r\n", b"\r\n\r\n", b"\n"])
def test_blank_lines_between_requests_are_nothing(blank: bytes) -> None:
    """Old clients send a blank line after a body, which must not count as the start of a
    request."""
    one = driven()
    one.receive(blank + posted(initialize(1, LEGACY)) + blank)
    one.receive(blank)
    one.receive(posted(initialize(2, LEGACY)))

    assert [response.status for response in one.take("POST", "POST")] == [200, 200]
    assert one.state is OPEN


# ------------------------------------------------------------------------------------ pipelining


def test_what_is_pipelined_is_not_served() -> None:
    """The connection is closed after the first response, so the client knows to send the second
    request anew.
    """
    one = driven()
    one.receive(posted_modern(CALL) + posted_modern(modern_tool_call(2)))
    assert len(answer_all(one)) == 1

    found = one.take("POST", "POST")
    assert [response.status for response in found] == [200]
    assert found[0].closes
    assert one.state is LINGERING
    assert answer_all(one) == []


def test_what_is_pipelined_later_is_not_served() -> None:
    """A request that arrives during a stream must not be served on it, although the head has
    promised to keep the connection.
    """
    one = driven(about={"answers": "sse"})
    one.receive(posted_modern(CALL))
    one.receive(posted_modern(modern_tool_call(2)))
    assert len(answer_all(one)) == 1

    (response,) = one.take()
    assert response.status == 200
    assert one.state is not OPEN


def test_request_that_comes_with_the_rest_of_a_refused_one_is_served() -> None:
    """Clients such as httpx2 send head and body apart, so the next request may be read together
    with the rest of a refused body; the connection was closed then.
    """
    one = driven()
    fields = {**POST, "content-type": "text/plain", "content-length": "5"}
    one.receive(head("POST", "/mcp", fields))
    one.receive(b"12345" + posted_modern(CALL))
    answer_all(one)

    assert [response.status for response in one.take("POST", "POST")] == [415, 200]
    assert one.state is OPEN


# --------------------------------------------------------------------------------- 100 Continue


def test_a_client_that_asks_whether_to_go_on_is_told() -> None:
    """Without `100 Continue` curl waits a second before each larger body."""
    one = driven()
    body = body_of(CALL)
    fields = {**POST, **modern_headers(CALL), "content-length": str(len(body))}
    one.receive(head("POST", "/mcp", {**fields, "expect": "100-continue"}))
    assert one.sent.startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
    one.receive(body)
    answer_all(one)

    assert one.take()[0].status == 200
    assert one.connection.idle


def test_a_client_that_asks_in_vain_is_not_told_to_go_on() -> None:
    """A body that its head rules out must not be asked for with `100 Continue`."""
    one = driven()
    fields = {**POST, "content-type": "text/plain", "content-length": "5"}
    one.receive(head("POST", "/mcp", {**fields, "expect": "100-continue"}))

    (response,) = one.take()
    assert response.status == 415
    assert response.closes
    assert one.state is LINGERING


# ------------------------------------------------------------------------------------- refusals


def test_other_paths_are_not_served() -> None:
    """An endpoint has one path; requests for another path get 404."""
    one = driven(paths=("/mcp", "/sse"))
    one.receive(head("GET", "/"))
    one.receive(head("HEAD", "/x"))
    one.receive(head("POST", "/mcpx", {**POST, "content-length": "2"}) + b"{}")
    one.receive(head("GET", "/sse", {"accept": "text/plain"}))

    assert [r.status for r in one.take("GET", "HEAD", "POST", "GET")] == [404, 404, 404, 406]
    assert one.state is OPEN


@pytest.mark.parametrize(
    ("url", "host", "status"),
    [
        ("http://localhost/mcp", "localhost", 200),
        ("HTTPS://localhost:81/mcp?x", "evil.example", 200),
        ("http://evil.example/mcp", "localhost", 403),
        ("http://localhost", "localhost", 404),
        ("ftp://localhost/mcp", "localhost", 404),
        ("*", "localhost", 404),
    ],
)
def test_a_target_may_be_a_whole_url(url: str, host: str, status: int) -> None:
    """RFC 9112, 3.2.2: in the form that proxies get, the host of the target counts, and not the
    header `Host`.
    """
    one = driven()
    body = body_of(CALL)
    fields = {**POST, **modern_headers(CALL), "host": host, "content-length": str(len(body))}
    one.receive(head("POST", url, fields) + body)
    answer_all(one)

    assert [r.status for r in one.take("POST")] == [status]


def test_a_refusal_reads_a_short_body() -> None:
    """A client that gets 401 first must be able to repeat the request on the same connection."""
    one = driven()
    fields = {**POST, "content-type": "text/plain", "content-length": "6"}
    one.receive(head("POST", "/mcp", fields))
    assert one.take()[0].status == 415
    one.receive(b"abc")
    assert one.state is OPEN
    one.receive(b"def")
    one.receive(posted(initialize(1, LEGACY)))

    assert one.take()[0].status == 200


@pytest.mark.parametrize("fields", [{"content-length": "65537"}, {"transfer-encoding": "chunked"}])
def test_a_refusal_reads_no_long_body(fields: dict[str, str]) -> None:
    """Reading 100 MB only to discard them would keep the connection busy."""
    one = driven()
    one.receive(head("POST", "/mcp", {**POST, "content-type": "text/plain", **fields}))

    (response,) = one.take()
    assert response.status == 415
    assert response.closes
    assert one.state is LINGERING
    one.receive(b"x" * 100_000)
    one.wait(1.0)
    assert one.state is LINGERING
    one.wait(1.5)
    assert one.state is CLOSED


def test_too_long_a_body_is_refused_as_soon_as_that_is_known() -> None:
    """A body is refused by its length, or without one as soon as it reaches the limit."""
    config = Config(max_message_bytes=1000)
    said, unsaid = driven(about={"config": config}), driven(about={"config": config})
    said.receive(head("POST", "/mcp", {**POST, "content-length": "100000"}))
    unsaid.receive(chunked(b"[" * 1001))

    for one in (said, unsaid):
        (response,) = one.take()
        assert response.status == 413
        assert response.closes
        assert one.state is LINGERING


@pytest.mark.parametrize("is_slow", [True, False])
def test_what_follows_head_is_answered_with_a_body(is_slow: bool) -> None:
    """The refusal of an unreadable request must have a body, although the request before was
    HEAD."""
    one = driven()
    one.receive(head("HEAD"))
    one.take("HEAD")
    one.receive(b"GET /mcp" if is_slow else b"nonsense\r\n\r\n")
    if is_slow:
        one.wait(3600)

    (response,) = one.take()
    assert response.status == (408 if is_slow else 400)
    assert response.body
    assert one.state is LINGERING


def test_a_response_to_head_has_no_body() -> None:
    """A client would read the body as the next response."""
    one = driven()
    one.receive(head("HEAD"))

    (response,) = one.take("HEAD")
    assert response.status == 405
    assert response.body == b""
    assert int(response.headers["content-length"]) > 0
    assert one.state is OPEN
    assert one.sent == b""


@pytest.mark.parametrize(
    ("wire", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),  # TLS where there is none
        (b"GET /mcp\r\n\r\n", 400),
        (b"GET /mcp HTTP/1.1\r\n\r\n", 400),  # no Host
        (b"GET /mcp HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", 400),
        (b"GET /mcp HTTP/1.1\r\nhost: a\r\n b\r\n\r\n x\r\n", 400),
        (head(fields={"transfer-encoding": "chunked", "content-length": "3"}), 400),
        (head(fields={"transfer-encoding": "gzip"}), 501),
        (head(fields={"content-length": "-1"}), 400),
        (head(fields={**POST, "transfer-encoding": "chunked"}) + b"zz\r\n", 400),
        (head(fields={"a": "x" * 20_000}), 431),
        (b"GET /" + b"x" * 20_000, 431),
        (head(fields={**POST, "transfer-encoding": "chunked"}) + b"1;" + b"x" * 20_000, 431),
    ],
    ids=itertools.count(),
)
@pytest.mark.parametrize("size", [1, 1000, 100_000])
def test_what_is_no_http_is_refused(wire: bytes, status: int, size: int) -> None:
    """However the input is cut, invalid HTTP must be refused: a proxy in front may have read
    another request in it.
    """
    one = driven()
    for start in range(0, len(wire), size):
        one.receive(wire[start : start + size])

    (response,) = one.take("POST")
    if wire.startswith(b"GET /mcp HTTP/1.1\r\nhost: a\r\n b"):
        assert response.status in (400, 403)  # an obsolete form, which h11 joins
        return
    assert response.status == status
    assert response.closes
    assert one.state is LINGERING
    assert [event for event in one.events() if isinstance(event, RequestReceived)] == []


def test_connect_opens_no_tunnel() -> None:
    """CONNECT must be refused, because this server is no proxy."""
    one = driven()
    one.receive(b"CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n")

    assert one.take("GET")[0].status == 404


def test_an_upgrade_is_not_taken() -> None:
    """An `Upgrade` header must be ignored, and the client goes on with HTTP/1.1."""
    one = driven()
    one.receive(posted(initialize(1, LEGACY), {"connection": "Upgrade", "upgrade": "h2c"}))
    one.receive(posted(initialize(2, LEGACY)))

    assert [response.status for response in one.take("POST", "POST")] == [200, 200]


@given(wire=st.binary(max_size=300), cut=st.integers(1, 50))
def test_no_bytes_make_it_raise(wire: bytes, cut: int) -> None:
    """Whatever one client sends, the others must still be served."""
    one = driven()
    for start in range(0, len(wire), cut):
        one.receive(wire[start : start + cut])
    one.wait(1000.0)
    one.wait(1000.0)

    assert one.state is CLOSED


REQUESTS = [
    posted(initialize(1, LEGACY)),
    posted_modern(CALL),
    posted_modern(modern(2, "un/known")),
    posted(initialize(2, LEGACY), {"expect": "100-continue"}),
    chunked(body_of(CALL), fields=modern_headers(CALL)) + b"0\r\n\r\n",
    head("GET", fields=GET),
    head("OPTIONS"),
    head("DELETE", "/other"),
]
JUNK = st.sampled_from([b"", b"\r\n", b"\n", b"\0", b" ", b":", b"\xff", b"0", b"\r\n\r\n"])


@given(
    requests=st.lists(st.sampled_from(REQUESTS), min_size=1, max_size=3),
    at=st.integers(0, 700),
    gone=st.integers(0, 20),
    junk=JUNK | st.binary(max_size=8),
    cut=st.integers(1, 300),
)
@examples(60, 1000)
def test_what_is_nearly_a_request_gets_a_response_or_the_end(
    requests: list[bytes], at: int, gone: int, junk: bytes, cut: int
) -> None:
    """Input that is broken after a valid first line must get a response or the end of the
    connection, and never silence.
    """
    one = driven()
    whole = b"".join(requests)
    wire = whole[:at] + junk + whole[at + gone :]
    for start in range(0, len(wire), cut):
        one.receive(wire[start : start + cut])
        answer_all(one)
    one.endpoint.close()
    one.connection.close(now=one.now)
    one.wait(1000.0)
    one.wait(1000.0)

    assert one.state is CLOSED
    assert one.endpoint.open_requests == ()
    # What was written is HTTP: h11 raises if it is not.
    assert len(responses(one.sent, ["POST"] * 9)) <= len(requests) + 1


# ------------------------------------------------------------------------------------- the clock


def test_a_head_may_not_take_long() -> None:
    """Slow heads hold connections that other clients need."""
    one = driven(limits=HTTPLimits(head=10.0))
    one.wait(9.0)
    one.receive(b"POST /mcp HTTP/1.1\r\n")
    for _ in range(9):
        one.wait(1.0)
        one.receive(b"a: b\r\n")
    assert one.state is OPEN
    one.wait(1.5)

    (response,) = one.take()
    assert response.status == 408
    assert one.state is LINGERING
    one.wait(2.5)
    assert one.state is CLOSED
    assert one.connection.next_timeout() is None


def test_who_says_nothing_is_not_waited_for_long() -> None:
    """Both new and used connections must be closed when they are idle for too long."""
    one = driven(limits=HTTPLimits(head=10.0, idle=75.0))
    assert one.connection.next_timeout() == 10.0
    one.receive(posted(initialize(1, LEGACY)))
    assert one.connection.next_timeout() == 75.0
    one.wait(74.0)
    assert one.state is OPEN
    one.wait(1.0)
    assert one.state is CLOSED
    assert len(one.take("POST", "POST")) == 1

    other = driven()
    other.wait(10.0)
    assert other.state is CLOSED
    assert other.sent == b""


def test_a_body_may_not_take_long() -> None:
    """Slow bodies hold a connection and memory."""
    one = driven(limits=HTTPLimits(body=60.0))
    one.receive(head("POST", "/mcp", {**POST, "content-length": "100"}))
    for _ in range(59):
        one.wait(1.0)
        one.receive(b"x")
    assert one.state is OPEN
    one.wait(1.0)

    assert one.take()[0].status == 408
    assert one.state is LINGERING


def test_a_request_that_is_being_served_has_no_deadline() -> None:
    """The transport must not limit the time of a handler."""
    one = driven()
    one.receive(posted_modern(CALL))
    assert one.connection.next_timeout() is None
    one.wait(1e6)
    answer_all(one)

    assert one.take()[0].status == 200


def test_a_request_can_be_given_up() -> None:
    """Where all clients together hold too much memory, the server must be able to give up a
    request.
    """
    body, served = driven(), driven()
    body.receive(head("POST", "/mcp", {**POST, "content-length": "100000"}) + b"x" * 1000)
    served.receive(posted_modern(CALL))
    assert (body.connection.held_bytes, served.connection.held_bytes) == (1000, 0)
    for one in (body, served):
        one.connection.drop_request(now=0.0)
        one.flush()

        assert one.take()[0].status == 503
        assert one.state is LINGERING
        assert one.connection.held_bytes == 0
    assert [type(event) for event in served.events()] == [RequestReceived, RequestCancelled]


def test_limits_are_greater_than_zero() -> None:
    """Zero would close every connection at once."""
    with pytest.raises(ValueError, match="head must be greater than zero"):
        HTTPLimits(head=0)
    assert HTTPLimits(idle=math.inf).idle == math.inf


def test_there_need_be_no_deadline() -> None:
    """A deadline that is None must be off."""
    one = driven(limits=HTTPLimits(head=math.inf))

    assert one.connection.next_timeout() is None


# ----------------------------------------------------------------------------------- who sends it


def test_nothing_is_served_before_it_is_admitted() -> None:
    """No request may be delivered before its caller is authenticated, and the principal must come
    with it.
    """
    one = driven(authenticates=True)
    wire = posted_modern(CALL).replace(
        b"host:", b"authorization: Bearer x\r\nX-A: 1\r\nx-a: 2\r\nhost:"
    )
    one.receive(wire)
    waiting = one.connection.awaiting
    assert waiting is not None
    assert (waiting.method, waiting.target) == ("POST", "/mcp")
    assert waiting.headers["authorization"] == "Bearer x"
    assert waiting.headers["x-a"] == "1, 2"
    assert one.events() == []
    assert one.sent == b""

    one.connection.admit("ann", now=0.0)
    (request,) = answer_all(one)
    assert request.principal == "ann"
    assert one.take()[0].status == 200


def test_who_is_not_admitted_learns_how_to_be() -> None:
    """A refused client must get the challenge and be able to retry on the same connection."""
    one = driven(authenticates=True)
    one.receive(posted_modern(CALL))
    one.connection.refuse(401, "who are you?", "Bearer", now=0.0)
    one.flush()

    (response,) = one.take()
    assert response.status == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert [event for event in one.events() if isinstance(event, RequestReceived)] == []
    assert one.connection.idle


def test_a_client_that_asks_whether_to_go_on_is_known_first() -> None:
    """A client must be authenticated before `100 Continue` makes it send the body."""
    one = driven(authenticates=True)
    fields = {**POST, **modern_headers(CALL), "content-length": "10", "expect": "100-continue"}
    one.receive(head("POST", "/mcp", fields))
    assert one.sent == b""
    one.connection.admit("ann", now=0.0)
    one.flush()
    assert one.sent.startswith(b"HTTP/1.1 100 ")


def test_what_is_refused_anyway_asks_for_nobody() -> None:
    """A request of a foreign origin must be refused without authentication, and preflights carry no
    credentials.
    """
    one = driven(authenticates=True)
    one.receive(head("POST", "/mcp", {**POST, "host": "evil.example", "content-length": "0"}))
    one.receive(head("OPTIONS"))

    assert [response.status for response in one.take("POST", "OPTIONS")] == [403, 204]


def test_a_verdict_may_come_too_late() -> None:
    """The authentication may finish after the client has disconnected or the request was given
    up."""
    gone, slow = driven(authenticates=True), driven(authenticates=True)
    gone.receive(posted_modern(CALL))
    gone.connection.receive_eof(now=0.0)
    gone.connection.admit("ann", now=0.0)
    slow.receive(posted_modern(CALL))
    slow.wait(100.0)
    slow.connection.refuse(401, "no", now=100.0)
    slow.flush()

    assert gone.state is CLOSED
    assert gone.connection.awaiting is None
    assert slow.take()[0].status == 408
    assert slow.events() == []


@pytest.mark.parametrize("verdict", ["admit", "refuse"])
def test_a_body_may_be_wrong_behind_a_verdict(verdict: str) -> None:
    """A body that came behind the head must still be checked after the authentication."""
    one = driven(authenticates=True)
    one.receive(chunked(fields=modern_headers(CALL)) + b"zz\r\n")
    assert one.sent == b""
    if verdict == "admit":
        one.connection.admit("ann", now=0.0)
    else:
        one.connection.refuse(403, "no", now=0.0)
    one.flush()

    assert one.take()[0].status == 400
    assert one.state is LINGERING


# ---------------------------------------------------------------------------------------- endings


def test_a_client_that_goes_cancels_its_request() -> None:
    """In MCP 2026-07-28 a disconnect cancels the request, whose response could not be delivered."""
    one = driven()
    one.receive(posted_modern(CALL))
    one.events()
    one.connection.receive_eof(now=0.0)

    (event,) = one.events()
    assert isinstance(event, RequestCancelled)
    assert event.cause is CancelCause.PEER
    assert one.state is CLOSED
    one.flush()
    assert one.sent == b""


def test_an_idle_connection_can_be_closed_at_once() -> None:
    """A server that ends must not wait for idle connections."""
    one = driven()
    one.connection.close(now=0.0)

    assert one.state is CLOSED


def test_a_connection_is_closed_after_its_response() -> None:
    """A response under way must be finished before the connection is closed."""
    one = driven()
    one.receive(posted_modern(CALL))
    one.connection.close(now=0.0)
    assert one.state is OPEN
    answer_all(one)

    (response,) = one.take()
    assert response.status == 200
    assert response.closes
    assert one.state is CLOSED


def test_a_listener_ends_with_its_stream() -> None:
    """`close` of the endpoint must end streams properly, so that clients see a complete body."""
    one = driven()
    listen = modern(5, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    one.receive(posted_modern(listen))
    one.flush()
    one.connection.close(now=0.0)
    one.endpoint.close(now=0.0)
    one.flush()

    (response,) = one.take()
    assert b'"id":5' in response.body
    assert one.state is CLOSED


def test_one_context_goes_with_all_requests() -> None:
    """A handler must find the context of the server in each of its calls."""
    one = driven(context=["given"])
    one.receive(posted_modern(CALL))
    (request,) = answer_all(one)

    assert request.context == ["given"]


def test_paths_are_ascii() -> None:
    """Clients send other characters encoded, so such a path would never match."""
    with pytest.raises(UnicodeEncodeError):
        HTTPConnection(driven().endpoint, paths=("/müp",), now=0.0)


PAGE = "https://app.example"
PAGES = {"origins": [PAGE, "https://other.example"]}
SENDING = {**POST, "origin": PAGE, "transfer-encoding": "chunked"}


@pytest.mark.parametrize(
    ("wire", "status"),
    [
        (head("POST", "/else", {**POST, "origin": PAGE, "content-length": "0"}), 404),
        (head(fields={"origin": PAGE, "a": "x" * 20_000}), 431),
        (head(fields=SENDING) + b"zz\r\n", 400),
        (head(fields=SENDING) + b"5\r\n", 408),
        (head(fields={"Origin": PAGE})[:-2], 408),
        (head(fields={"origin": PAGE, "bad name": "x"}), 400),
        (head(fields={"bad name": "x", "origin": PAGE}), 400),
        (head(fields={"origin": PAGE, "content-length": "x"}), 400),
        (head(fields={"origin": PAGE, "transfer-encoding": "gzip"}), 501),
        (b"GET  /mcp HTTP/1.1\r\nOrigin: " + PAGE.encode() + b"\r\nHost: localhost\r\n\r\n", 400),
    ],
    ids=[
        *["path", "long head", "bad body", "slow body", "slow head", "bad field", "after it"],
        *["bad length", "unknown coding", "bad request line"],
    ],
)
@pytest.mark.parametrize("size", [10**6, 7])
def test_a_page_can_read_why_it_is_refused(wire: bytes, status: int, size: int) -> None:
    """Without CORS headers a page learns only that the request failed."""
    one = driven(about=PAGES)
    for start in range(0, len(wire), size):
        one.receive(wire[start : start + size])
    if status == 408:
        one.wait(100.0)

    (response,) = one.take("POST")
    assert response.status == status
    assert response.headers["access-control-allow-origin"] == PAGE
    assert response.headers["vary"] == "Origin"


def test_a_page_can_read_that_the_server_has_too_much_to_hold() -> None:
    """The 503 needs CORS headers, and `Retry-After` for the next attempt."""
    one = driven(about=PAGES)
    one.receive(head(fields=SENDING) + b"5\r\n")
    one.connection.drop_request(now=0.0)
    one.flush()

    (response,) = one.take("POST")
    assert response.status == 503
    assert response.headers["access-control-allow-origin"] == PAGE
    assert response.headers["retry-after"] == "5"


def test_a_page_may_send_to_another_path_and_learns_that_nothing_is_there() -> None:
    """If the preflight is refused, a browser shows its page no status at all."""
    one = driven(about=PAGES)
    fields = {"origin": PAGE, "access-control-request-method": "POST"}
    one.receive(head("OPTIONS", "/else", fields))
    (response,) = one.take("OPTIONS")
    assert (response.status, response.body) == (204, b"")
    assert response.headers["access-control-allow-origin"] == PAGE
    assert not response.closes
    one.receive(head("OPTIONS", "/else"))
    assert one.take("OPTIONS")[0].status == 404


def test_a_head_that_never_came_to_its_origin_is_that_of_any_page() -> None:
    """A refusal without a known origin may be read by any page, since it reveals nothing."""
    one = driven(about={"origins": ["*"]})
    one.receive(b"GET /" + b"x" * 20_000)

    (response,) = one.take("GET")
    assert (response.status, response.headers["access-control-allow-origin"]) == (431, "*")


# -------------------------------------------------------------------------- what must not go out

SECRET_HEADS = [
    b"GET /mcp HTTP/1.1\r\nhost: localhost\r\nAuthorization : Bearer secret\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\nhost: localhost\r\nAuthorization: Bearer \x00'secret\r\n\r\n",
    b'GET /mcp HTTP/1.1\r\nhost: localhost\r\n"secret": Bearer\r\n\r\n',
    b"GET /mcp HTTP/1.1\r\n Authorization: secret\r\n\r\n",
    b"GET /mcp?token=secret\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: secret\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: secret\r\n\r\n",
    head("POST", "/mcp", {**POST, "transfer-encoding": "chunked"}) + b"secret\r\n",
]


@pytest.mark.parametrize("data", SECRET_HEADS)
def test_what_cannot_be_read_is_not_repeated(data: bytes) -> None:
    """An unreadable head may hold a credential, which a proxy would log with the response."""
    one = driven()
    one.receive(data)
    (response,) = one.take()
    assert response.status in (400, 501)
    assert re.fullmatch(rb"[A-Za-z][A-Za-z:, -]+\n", response.body)
    assert b"secret" not in response.body


INJECTION = """
from sansmcp.http import ClientEndpoint, ServerEndpoint
from sansmcp_io._http1.client import HTTPClientConnection
from sansmcp_io.h11 import HTTPConnection
from tests.support.http.h11_client import posted_modern
from tests.support.http.server_endpoint import modern_tool_call, new_endpoint

EVIL = (b"x", VALUE)


class Injecting:
    "An exchange with one field more, which no exchange lets pass."

    def __init__(self, exchange):
        self._exchange = exchange

    def __getattr__(self, name):
        return getattr(self._exchange, name)

    @property
    def headers(self):
        return (*self._exchange.headers, EVIL)

    def response(self):
        status, headers, body = self._exchange.response()
        return status, (*headers, EVIL), body


class InjectingEndpoint(Injecting):
    def exchange(self, *args, **options):
        return Injecting(self._exchange.exchange(*args, **options))


def outcome(function, *args, **options):
    try:
        return function(*args, **options)
    except ValueError as error:
        return str(error)


endpoint = new_endpoint()
server = HTTPConnection(InjectingEndpoint(endpoint), now=0.0)
server.receive_data(posted_modern(modern_tool_call()), now=0.0)
endpoint.send_result(endpoint.next_event().request, {"content": []})
print(outcome(server.data_to_send, now=0.0))

client = ClientEndpoint("http://localhost/mcp", info={"name": "x", "version": "1"})
client.start(now=0.0)
print(outcome(HTTPClientConnection().send, Injecting(client.next_exchange())))
"""


@pytest.mark.parametrize("value", [b"a\r\nb: c", b"a\nb: c", b"a\rb: c", b"a\0b"])
def test_field_that_holds_a_line_end_is_not_sent_with_optimization_either(value: bytes) -> None:
    """`python -O` removes each `assert`, so the guard against response splitting must not be
    one."""
    code = f"VALUE = {value!r}\n{INJECTION}"
    command = [sys.executable, "-O", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.splitlines() == ["a header field contains CR, LF or NUL, and is not sent"] * 2
