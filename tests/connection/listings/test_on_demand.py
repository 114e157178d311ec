"""Listings on demand: a page is requested only when the application asks for it."""

from typing import Any

import pytest

from sansmcp import (
    ClientConnection,
    Config,
    Event,
    JSONObject,
    Listing,
    ListingEnd,
    ListingEnded,
    LocalProtocolError,
    PageReceived,
)
from sansmcp.testing import canonical, drain
from tests.support.wire import CLIENT_INFO, note, ready_client, receive, result, sent

REVISION = "2025-11-25"
TOOL: JSONObject = {"name": "echo", "inputSchema": {"type": "object"}}


def page(**members: Any) -> JSONObject:
    return {"tools": [TOOL], **members}


def waiting_listing(
    config: Config | None = None, **arguments: Any
) -> tuple[ClientConnection, Listing]:
    """A client, and a listing whose first page has come and that has more pages."""
    client = ready_client(REVISION, config=config)
    listing = client.send_paginated("tools/list", auto=False, **arguments)
    (message,) = sent(client)
    (event,) = receive(client, result(message["id"], page(nextCursor="b")))
    assert isinstance(event, PageReceived)
    return client, listing


def ending(events: list[Event]) -> ListingEnd:
    (ended,) = [event for event in events if isinstance(event, ListingEnded)]
    assert not ended.listing.open
    return ended.reason


def test_next_page_is_not_fetched_before_it_is_asked_for() -> None:
    """A slow consumer would have the whole list in memory."""
    client, listing = waiting_listing()
    assert sent(client) == []
    assert (listing.open, listing.pages) == (True, 1)
    assert client.next_page(listing) is True
    (message,) = sent(client)
    assert message["params"] == {"cursor": "b"}
    events = receive(client, result(message["id"], page()))

    assert ending(events) is ListingEnd.COMPLETE


def test_next_page_that_cannot_be_is_not_asked_for() -> None:
    """The caller must not have to know whether a page is open or was the last."""
    client = ready_client(REVISION)
    automatic = client.send_paginated("tools/list")
    listing = client.send_paginated("tools/list", auto=False)
    first, second = sent(client)
    for one in (automatic, listing):
        assert client.next_page(one) is False
    receive(client, result(first["id"], page()), result(second["id"], page()))
    for one in (automatic, listing):
        assert client.next_page(one) is False
    assert sent(client) == []


def test_time_of_a_page_counts_from_when_it_is_asked_for() -> None:
    """The time between two pages belongs to the consumer."""
    client, listing = waiting_listing(timeout=5, now=0)
    assert client.next_timeout() is None
    client.next_page(listing, now=100)
    assert client.next_timeout() == 105
    client.handle_timeout(105)

    assert ending(drain(client)) is ListingEnd.TIMED_OUT


@pytest.mark.parametrize("now", [None, 7])
def test_listing_that_waits_is_cancelled_without_a_word_to_the_peer(now: float | None) -> None:
    """No request is open that could be cancelled at the peer."""
    client, listing = waiting_listing(now=3)

    assert client.cancel(listing, now=now) is True
    assert ending(drain(client)) is ListingEnd.CANCELLED
    assert sent(client) == []
    assert client.cancel(listing) is False


@pytest.mark.parametrize(
    "end",
    [
        ClientConnection.close,
        ClientConnection.receive_eof,
        ClientConnection.send_failed,
    ],
)
def test_listing_that_waits_ends_with_the_connection(end: Any) -> None:
    """A listing must have its ending although no request of it is open."""
    client, listing = waiting_listing()
    end(client)

    assert ending(drain(client)) is ListingEnd.LOST
    assert client.next_page(listing) is False


def test_listing_that_waits_becomes_stale() -> None:
    """The list may change while the consumer is busy."""
    client, listing = waiting_listing()
    receive(client, note("notifications/tools/list_changed"))

    assert listing.stale


def test_every_verb_refuses_the_listing_of_another_connection() -> None:
    """The request would go to the wrong server."""
    _, listing = waiting_listing()
    other = ready_client(REVISION)
    before = canonical(other)
    for verb in (other.next_page, other.cancel):
        with pytest.raises(LocalProtocolError) as caught:
            verb(listing)
        assert caught.value.rule == "OWN-022"
    assert canonical(other) == before
    assert listing.open


def test_asking_for_more_than_may_be_in_flight_changes_nothing() -> None:
    """The listing must stay open, and continue when there is room."""
    client, listing = waiting_listing(Config(max_requests=2))
    pings = [client.ping(), client.ping()]
    before = canonical(client)
    with pytest.raises(LocalProtocolError) as caught:
        client.next_page(listing, now=9)
    assert caught.value.rule == "OWN-005"
    assert canonical(client) == before
    client.cancel(pings[0])

    assert client.next_page(listing) is True


def test_listings_that_wait_are_bounded() -> None:
    """Waiting listings have no request in flight, but each keeps its params and cursors."""
    client, _ = waiting_listing(Config(max_requests=2))
    client.send_paginated("tools/list", auto=False)
    (message,) = sent(client)
    receive(client, result(message["id"], page(nextCursor="b")))
    before = canonical(client)
    with pytest.raises(LocalProtocolError) as caught:
        client.send_paginated("tools/list", auto=False)
    assert caught.value.rule == "OWN-005"
    assert canonical(client) == before
    assert client.send_paginated("tools/list").open


@pytest.mark.parametrize("verb", ["next_page", "cancel"])
def test_verbs_for_a_listing_that_waits_ring_for_what_there_is_to_do(verb: str) -> None:
    """An adapter that sleeps would leave the request unsent, or the ending unread."""
    rings: list[str] = []
    client = ClientConnection(
        info=CLIENT_INFO, revisions=[REVISION], wake=lambda: rings.append("!")
    )
    client.start()
    (hello,) = sent(client)
    server: JSONObject = {"protocolVersion": REVISION, "serverInfo": {"name": "s", "version": "1"}}
    receive(client, result(hello["id"], {**server, "capabilities": {"tools": {}}}))
    listing = client.send_paginated("tools/list", auto=False)
    (message,) = (one for one in sent(client) if "id" in one)
    receive(client, result(message["id"], page(nextCursor="b")))
    rings.clear()
    getattr(client, verb)(listing)

    assert rings == ["!"]
