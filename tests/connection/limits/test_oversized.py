"""A message that alone exceeds `max_unsent_bytes` is refused, and the connection goes on
(OWN-044)."""

from collections.abc import Callable
from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    ClientConnection,
    CloseCause,
    Config,
    ConnectionClosed,
    JSONObject,
    LimitReached,
    ListingEnd,
    ListingEnded,
    LocalProtocolError,
    RequestReceived,
    ResourceUpdated,
    ToolsListChanged,
)
from sansmcp.testing import canonical
from tests.support.http.server_endpoint import answer, connect, new_endpoint, post
from tests.support.http.server_endpoint import drain as drained
from tests.support.modern import (
    FORM,
    cancelled,
    input_required,
    modern_client,
    modern_server,
    requested,
)
from tests.support.modern import modern as modern_call
from tests.support.wire import (
    CLIENT_INFO,
    asked,
    assert_usable,
    call,
    drain,
    initialize,
    initialized_by,
    of,
    ready_client,
    ready_server,
    receive,
    result,
    sent,
)

REVISION = LEGACY_REVISIONS[-1]
LIMIT = 1_000
CONFIG = Config(max_unsent_bytes=LIMIT)
LONG = "x" * LIMIT


def reports(events: list[Any]) -> list[str]:
    """The texts of the reports of refused messages; asserts that there are no other events."""
    assert {event.rule for event in events if isinstance(event, LimitReached)} <= {"OWN-044"}
    return [event.text for event in events]


@pytest.mark.parametrize("member", ["result", "error"])
def test_an_answer_that_would_never_fit_becomes_an_error(member: str) -> None:
    """It ended the connection with "the peer does not read: 0 bytes wait"."""
    server = ready_server(REVISION, config=CONFIG)
    one, two = (asked(server, call(id, "tools/call", {"name": "t"})) for id in (1, "two"))
    if member == "result":
        assert not server.send_result(two, {"content": [{"type": "text", "text": LONG}]})
    else:
        assert not server.send_error(two, -32001, LONG)
    [text] = reports(drain(server))
    assert text.startswith("the response to tools/call has 10")
    assert text.endswith("limit of Config.max_unsent_bytes is 1000; an error was sent instead")
    [answer] = sent(server)
    assert (answer["id"], answer["error"]["code"]) == ("two", -32603)
    assert answer["error"]["data"]["reason"] in text
    assert not two.open
    assert server.send_result(one, {"content": []})
    assert len(sent(server)) == 1
    assert_usable(server)


def test_an_answer_of_just_the_limit_is_sent() -> None:
    """The limit counts the whole message, its newline included."""
    for spare in (0, -1):
        server = ready_server(REVISION, config=CONFIG)
        request = asked(server, call(1, "tools/call", {"name": "t"}))
        empty: Any = {"content": [], "x": ""}
        size = len('{"jsonrpc":"2.0","id":1,"result":{"content":[],"x":""}}\n')
        empty["x"] = "x" * (LIMIT - size - spare)
        assert server.send_result(request, empty) is (spare == 0)


def test_an_answer_in_the_modern_revision_becomes_an_error() -> None:
    """The rule is the same in every revision."""
    server = modern_server(config=CONFIG)
    request = requested(server, modern_call(1, "tools/call", {"name": "t", "arguments": {}}))
    assert not server.send_result(request, {"content": [{"type": "text", "text": LONG}]})
    assert len(reports(drain(server))) == 1
    [answer] = sent(server)
    assert answer["error"]["code"] == -32603


def test_answers_of_a_batch_fit_together_or_become_errors() -> None:
    """The responses of a batch are sent as one message."""
    server = ready_server("2025-03-26", config=Config(max_unsent_bytes=2_600))
    batch = [call(id, "tools/call", {"name": "t"}) for id in range(5)]
    requests = [event.request for event in of(RequestReceived, receive(server, batch))]
    fits = [server.send_result(one, {"content": [], "x": "y" * 800}) for one in requests]
    assert fits[0]
    assert False in fits
    texts = reports(drain(server))
    assert len(texts) == fits.count(False)
    assert "the limit of Config.max_unsent_bytes is 2600 for a batch" in texts[0]
    [answers] = sent(server)
    assert ["result" in answer for answer in answers] == fits


def test_many_small_answers_of_a_batch_are_sent_as_they_are() -> None:
    """Room was reserved for larger errors, so the results were refused without need."""
    config = Config(max_unsent_bytes=20_000, soft_unsent_bytes=10_000)
    server = ready_server("2025-03-26", config=config)
    batch = [call(id, "tools/call", {"name": "t"}) for id in range(100)]
    requests = [event.request for event in of(RequestReceived, receive(server, batch))]
    assert all(server.send_result(one, {"content": []}) for one in requests)
    assert reports(drain(server)) == []
    [answers] = sent(server)
    assert [answer["result"] for answer in answers] == [{"content": []}] * 100


def test_answers_of_a_batch_that_are_shorter_than_errors_are_sent_as_they_are() -> None:
    """Short results must be sent even if errors for all of them would not fit."""
    server = ready_server("2025-03-26", config=Config(max_unsent_bytes=700))
    batch = [call(id, "tools/call", {"name": "t"}) for id in range(10)]
    requests = [event.request for event in of(RequestReceived, receive(server, batch))]
    assert all(server.send_result(one, {"content": []}) for one in requests)
    [answers] = sent(server)
    assert len(answers) == 10


def test_every_request_of_a_batch_with_long_ids_is_answered() -> None:
    """The room for errors must include their ids."""
    server = ready_server("2025-03-26", config=Config(max_unsent_bytes=200_000))
    batch = [call(name * 20_000, "tools/call", {"name": "t"}) for name in "abcdefghi"]
    requests = [event.request for event in of(RequestReceived, receive(server, batch))]
    large: JSONObject = {"content": [], "x": "y" * 9_000}
    fits = [server.send_result(one, large) for one in requests]
    assert fits == [True] * 2 + [False] * 7
    [answers] = sent(server)
    assert ["result" in answer for answer in answers] == fits
    assert [answer["id"][0] for answer in answers] == list("abcdefghi")


def test_an_error_in_place_of_an_answer_is_short_where_there_is_little_room() -> None:
    """The reason must be left out of the error and be in the report."""
    server = ready_server("2025-03-26", config=CONFIG)
    first: list[Any] = [call("x" * 850, "tools/list")]
    second: Any = call("y" * 850, "tools/list")
    for message in (first, second):
        [request] = [event.request for event in of(RequestReceived, receive(server, message))]
        assert not server.send_result(request, {"tools": [], "x": LONG})
        assert "an error was sent instead" in of(LimitReached, drain(server))[0].text
        answered: Any = sent(server)[0]
        answer = answered[0] if message is first else answered
        assert answer["error"] == {"code": -32603, "message": "the response is too large"}


def test_a_cancelled_request_of_a_batch_leaves_its_room_to_the_others() -> None:
    """A cancelled request needs no room for an error."""
    server = ready_server("2025-03-26", config=CONFIG)
    batch = [call(id, "tools/call", {"name": "t"}) for id in (1, "x" * 700)]
    one, _ = (event.request for event in of(RequestReceived, receive(server, batch)))
    receive(server, cancelled("x" * 700))
    assert server.send_result(one, {"content": [], "x": "y" * 850})


def test_errors_for_what_cannot_be_read_count_in_a_batch() -> None:
    """Errors for invalid messages must leave less room for the responses after them."""
    server = ready_server("2025-03-26", config=CONFIG)
    batch: list[Any] = [{"id": "x" * 500, "method": 1}, call(1, "tools/call", {"name": "t"})]
    [request] = [event.request for event in of(RequestReceived, receive(server, batch))]
    assert not server.send_result(request, {"content": [], "x": "y" * 700})
    [answers] = sent(server)
    assert [answer["error"]["code"] for answer in answers] == [-32600, -32603]


def test_a_batch_whose_errors_do_not_fit_is_left_out() -> None:
    """The connection must go on, as there is room for other messages."""
    server = ready_server("2025-03-26", config=CONFIG)
    receive(server, [{"id": "x" * 500, "method": 1}, {"id": "y" * 500, "method": 2}])
    assert sent(server) == []
    assert_usable(server)


SENDS: dict[str, Callable[[ClientConnection], object]] = {
    "params": lambda client: client.send_request("x/y", {"text": LONG}),
    "id": lambda client: client.send_request("x/y", id=LONG),
    "notification": lambda client: client.send_notification("notifications/x", {"text": LONG}),
    "listing": lambda client: client.send_paginated("tools/list", {"x": LONG}),
    "reason": lambda client: client.cancel(client.pending_requests[0], reason=LONG),
}


@pytest.mark.parametrize("name", SENDS)
def test_what_the_caller_sends_raises_and_changes_nothing(name: str) -> None:
    """Such a message would never fit, however much the peer reads."""
    client = ready_client(REVISION, config=CONFIG)
    client.send_request("x/y")
    before = canonical(client)
    with pytest.raises(
        LocalProtocolError, match=r"limit of Config\.max_unsent_bytes is 1000"
    ) as it:
        SENDS[name](client)
    assert it.value.rule == "OWN-044"
    assert canonical(client) == before


def test_answers_to_questions_that_would_never_fit_raise() -> None:
    """The questions must stay open."""
    client = modern_client(config=CONFIG)
    request = client.send_request("tools/call", {"name": "t", "arguments": {}})
    receive(client, input_required(request.id, {"a": FORM}))
    content: JSONObject = {"action": "accept", "content": {"x": LONG}}
    with pytest.raises(LocalProtocolError, match="OWN-044"):
        client.provide_input(request, {"a": content})
    client.provide_input(request, {"a": {"action": "decline"}})


def test_progress_and_logs_that_would_never_fit_are_left_out() -> None:
    """They must be dropped as when there is no room, and reported."""
    server = ready_server(REVISION, config=CONFIG)
    params = {"name": "t", "_meta": {"progressToken": 1}}
    request = asked(server, call(1, "tools/call", params))
    assert not server.send_progress(request, 1, message=LONG)
    assert server.send_progress(request, 1)  # the value was not sent, and is not used up
    assert len(sent(server)) == 1
    assert not server.send_log("error", LONG, request=request)
    assert not server.publish(ToolsListChanged(), meta={"x": LONG})
    texts = reports(drain(server))
    assert texts[0].startswith("notifications/progress has 1")
    assert [text.startswith("a message has 1") for text in texts[1:]] == [True] * 2
    assert texts[0].endswith("limit of Config.max_unsent_bytes is 1000; it was not sent")
    assert sent(server) == []
    assert server.send_result(request, {"content": []})
    assert len(sent(server)) == 1
    assert_usable(server)


def test_a_cursor_that_would_never_fit_ends_its_listing() -> None:
    """A server may give a cursor that is larger than the output limit of this client."""
    client = ready_client(REVISION, config=CONFIG)
    listing = client.send_paginated("tools/list")
    [page] = sent(client)
    events = receive(client, result(page["id"], {"tools": [], "nextCursor": LONG}))
    [ended] = of(ListingEnded, events)
    assert (ended.listing, ended.reason) == (listing, ListingEnd.INVALID_ANSWER)
    assert of(LimitReached, events)[0].rule == "OWN-044"
    assert not client.pending_requests
    assert_usable(client)


def test_a_listing_that_cannot_go_on_may_end_with_its_connection() -> None:
    """A listing must have one ending, whatever comes in the same chunk."""
    client = ClientConnection(
        info=CLIENT_INFO, revisions=[REVISION], config=CONFIG, wake=lambda: None
    )
    client.start()
    [opening] = sent(client)
    receive(client, result(opening["id"], initialized_by(REVISION)))
    client.send_paginated("tools/list")
    *_, page = sent(client)
    pings = [call(name * 250, "ping") for name in "abcdef"]
    events = receive(client, result(page["id"], {"tools": [], "nextCursor": LONG}), *pings)
    assert of(ConnectionClosed, events)[0].cause is CloseCause.OVERFLOW
    assert len(of(ListingEnded, events)) == 1


def test_answers_of_a_batch_over_http_fit_together_or_become_errors() -> None:
    """The session must go on."""
    endpoint = new_endpoint(config=Config(max_unsent_bytes=2_600))
    one = connect(endpoint, "2025-03-26")
    exchange = one.post([call(id, "tools/call", {"name": "t"}) for id in range(3)])
    received = [event for event in drained(endpoint) if isinstance(event, RequestReceived)]
    fits = [
        endpoint.send_result(one.request, {"content": [], "x": "y" * 1_500}) for one in received
    ]
    assert fits == [True, False, False]
    response = answer(exchange)
    assert response.status == 200
    assert ["result" in one for one in response.last] == fits
    assert len(endpoint.sessions) == 1


def test_a_subscription_whose_answer_would_never_fit_does_not_count() -> None:
    """The client gets an error, so there must be no subscription."""
    server = ready_server(REVISION, config=CONFIG)
    request = asked(server, call(1, "resources/subscribe", {"uri": "file:///a"}))
    assert not server.send_result(request, {"_meta": {"x": LONG}})
    assert not server.publish(ResourceUpdated("file:///a"))


def test_a_subscription_in_a_batch_counts_only_if_its_answer_fits() -> None:
    """The responses before it may have used up the room."""
    server = ready_server("2025-03-26", config=CONFIG)
    batch = [call(1, "tools/list"), call(2, "resources/subscribe", {"uri": "file:///a"})]
    one, two = (event.request for event in of(RequestReceived, receive(server, batch)))
    assert server.send_result(one, {"tools": [], "_meta": {"x": "y" * 400}})
    assert not server.send_result(two, {"_meta": {"x": "y" * 500}})
    assert not server.publish(ResourceUpdated("file:///a"))


@pytest.mark.parametrize("instructions", ["y" * LIMIT])
def test_an_initialize_that_cannot_be_answered_opens_no_session(instructions: str) -> None:
    """If the server's own description is too large, no session may be opened."""
    endpoint = new_endpoint(config=CONFIG, instructions=instructions)
    response = answer(post(endpoint, initialize(0, REVISION)))
    assert response.last["error"]["code"] == -32603
    assert endpoint.sessions == ()
