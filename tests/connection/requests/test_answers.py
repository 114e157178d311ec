"""Each request of the peer gets one response: a result or an error of the right form."""

from typing import Any

import pytest

from sansmcp import ErrorReceived, LocalProtocolError, ProtocolViolation, RequestReceived
from sansmcp.testing import Pair, canonical
from tests.support.wire import asked, call, only, ready_server, receive, sent

REVISION = "2025-11-25"
ECHO: dict[str, Any] = {"name": "echo"}


def test_an_error_answers_a_request() -> None:
    """An error must be sent with or without data."""
    pair = Pair()
    for data in ({}, {"data": None}, {"data": [1]}):
        ours = pair.client.send_request("tools/call", ECHO)
        theirs = pair.deliver_one(RequestReceived).request
        assert pair.server.send_error(theirs, -32000, "broken", now=1, **data)
        ended = pair.deliver_one(ErrorReceived)
        assert (ended.request, ended.code, ended.message) == (ours, -32000, "broken")
        assert ended.data == data.get("data")


BAD_ANSWERS: list[tuple[str, tuple[Any, ...], str]] = [
    ("send_result", ({},), "OWN-014"),
    ("send_result", ({"content": "text"},), "OWN-014"),
    ("send_result", ([],), "OWN-014"),
    ("send_result", ({"content": [b"x"]},), "OWN-024"),
    ("send_error", ("x", "text"), "JSON-008"),
    ("send_error", (True, "text"), "JSON-008"),
    ("send_error", (1, None), "JSON-008"),
    ("send_error", (1, "text", {1, 2}), "OWN-024"),
]


@pytest.mark.parametrize(("verb", "arguments", "rule"), BAD_ANSWERS)
def test_a_bad_answer_raises_and_the_request_stays_open(
    verb: str, arguments: tuple[Any, ...], rule: str
) -> None:
    """A handler whose result was refused must still be able to send an error."""
    server = ready_server(REVISION)
    request = asked(server, call(1, "tools/call", ECHO))
    before = canonical(server)

    with pytest.raises(LocalProtocolError) as caught:
        getattr(server, verb)(request, *arguments)
    assert caught.value.rule == rule
    assert canonical(server) == before
    assert server.send_error(request, -32603, "internal error")


def test_answering_twice_raises() -> None:
    """The peer would take the second response for one to another request."""
    server = ready_server(REVISION)
    request = asked(server, call(1, "tools/call", ECHO))
    server.send_result(request, {"content": []})
    sent(server)

    with pytest.raises(LocalProtocolError, match="was answered before") as caught:
        server.send_result(request, {"content": []})
    assert caught.value.rule == "OWN-026"
    with pytest.raises(LocalProtocolError, match="was answered before"):
        server.send_error(request, 1, "no")
    assert sent(server) == []


def test_a_second_request_with_an_id_in_flight_is_dropped() -> None:
    """An error would answer the first request."""
    server = ready_server(REVISION)
    request = asked(server, call(1, "tools/call", ECHO))

    assert only(ProtocolViolation, receive(server, call(1.0, "ping"))).rule == "ID-001"
    assert sent(server) == []
    assert server.open_requests == (request,)
