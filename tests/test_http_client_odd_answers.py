"""What servers say at moments, or in ways, in which nobody else says it."""

import pytest

from sansmcp import (
    CloseCause,
    Config,
    ConnectionClosed,
    FailureReason,
    RequestFailed,
    ResponseReceived,
)
from tests.support.http_client import (
    OK,
    ask,
    begun,
    event,
    head,
    initialized,
    message_of,
    opened,
    respond,
    stream,
    take,
)
from tests.support.http_pair import events_of, exchanges_of, only
from tests.support.wire import result

# ------------------------------------------------------------------- streams that are taken up


@pytest.mark.parametrize("id", ["", "a\x01b", "x" * 9000])
def test_a_stream_whose_place_was_taken_back_is_lost(id: str) -> None:
    """The request would be sent a second time, or the stream of another purpose be asked for."""
    client = opened(now=0.0)
    call, exchange = ask(client)
    stream(exchange, b"id: a\ndata:\n\n", ends=True)
    client.handle_timeout(1.0)
    stream(take(client), f"id: {id}\n\n".encode(), ends=True)
    client.handle_timeout(100.0)
    assert exchanges_of(client) == []
    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)


# ------------------------------------------------------------------------- answers that cross


def test_a_post_may_be_refused_after_its_answer_came() -> None:
    """On HTTP+SSE the two come by different ways, and the answer is what counts."""
    client = begun("2024-11-05", 0.0)
    respond(take(client), 405)
    listening = take(client)
    stream(listening, b"event: endpoint\ndata: /messages\n\n")
    initialize = take(client)
    respond(initialize, 202)
    id = message_of(initialize)["id"]
    listening.receive_data(event(initialized(id, "2024-11-05")))
    respond(take(client), 202)
    events_of(client)
    call, exchange = ask(client)
    head(exchange, 500, "text/plain")
    listening.receive_data(event(result(call.id, OK)))
    exchange.receive_data(b"oops")
    exchange.receive_end()
    (answered,) = events_of(client)
    assert isinstance(answered, ResponseReceived)
    assert client.exchanges == (listening,)


def test_the_end_of_one_that_waits_for_authorization_may_be_the_end_of_all() -> None:
    """It ended the others a second time, and raised."""
    config = Config(ping_interval=10.0, max_failed_pings=1)
    client = opened(now=0.0, authorize=True, config=config)
    client.handle_timeout(10.0)
    respond(take(client), 401)
    call, exchange = ask(client)
    respond(exchange, 401)
    events_of(client)
    assert client.give_up() == 2
    events = events_of(client)
    assert only(ConnectionClosed, events).cause is CloseCause.UNRESPONSIVE
    assert only(RequestFailed, events).request is call
    assert client.give_up() == 0


def test_an_answer_whose_id_is_refused_is_none() -> None:
    """Where ids are compared strictly, the call would wait for another one for ever."""
    client = opened(config=Config(strict=True))
    call, exchange = ask(client)
    respond(exchange, body=result(str(call.id), OK))
    failed = only(RequestFailed, events_of(client)[1:])
    assert (failed.request, failed.reason) == (call, FailureReason.INVALID_ANSWER)
