"""The limits that end a listing whose pages never end."""

from typing import Any

import pytest

from sansmcp import ClientConnection, Config, Event, JSONObject, Listing, ListingEnd, ListingEnded
from tests.support.wire import ready_client, receive, result, sent

REVISION = "2025-11-25"
TOOL: JSONObject = {"name": "echo", "inputSchema": {"type": "object"}}


def page(items: int = 1, **members: Any) -> JSONObject:
    return {"tools": [TOOL] * items, **members}


def listing_of(
    config: Config | None = None, **arguments: Any
) -> tuple[ClientConnection, Listing, int]:
    """A client, its listing, and the id of the request for the first page."""
    client = ready_client(REVISION, config=config)
    listing = client.send_paginated("tools/list", **arguments)
    (message,) = sent(client)
    return client, listing, message["id"]


def answered(client: ClientConnection, id: int, value: JSONObject) -> tuple[list[Event], int]:
    """The events of a response, and the id of the request for the next page, or 0."""
    events = receive(client, result(id, value))
    messages = sent(client)
    return events, messages[0]["id"] if messages else 0


def ending(events: list[Event], listing: Listing) -> ListingEnded:
    ended = events[-1]
    assert isinstance(ended, ListingEnded)
    assert ended.listing is listing
    assert not listing.open
    return ended


@pytest.mark.parametrize(
    ("config", "pages", "reason"),
    [
        (Config(max_pages=3), 3, ListingEnd.PAGES),
        (Config(max_items=5), 3, ListingEnd.ITEMS),
        (Config(max_empty_pages=2), 2, ListingEnd.EMPTY_PAGES),
    ],
)
def test_limits_end_a_listing_that_never_ends(
    config: Config, pages: int, reason: ListingEnd
) -> None:
    """Cursors that never repeat would keep a client listing for ever."""
    client, listing, id = listing_of(config)
    items = 0 if reason is ListingEnd.EMPTY_PAGES else 2
    events: list[Event] = []
    for number in range(pages):
        assert id
        events, id = answered(client, id, page(items, nextCursor=f"c{number}"))

    assert id == 0
    assert ending(events, listing).reason is reason
    assert listing.pages == pages


def test_only_empty_pages_in_a_row_count() -> None:
    """A server that filters its list may send empty pages in between."""
    client, listing, id = listing_of(Config(max_empty_pages=2))
    for number, items in enumerate((0, 1, 0, 1, 0, 1)):
        _, id = answered(client, id, page(items, nextCursor=f"c{number}"))

    assert listing.open


def test_many_long_cursors_are_not_all_kept() -> None:
    """The memory for cycles is bounded; beyond it the limits must end the listing."""
    client, listing, id = listing_of(Config(max_pages=9))
    cursors = [letter * 400_000 for letter in "abcd"]
    events: list[Event] = []
    for cursor in (*cursors, "a" * 400_000, "d" * 400_000):
        events, id = answered(client, id, page(nextCursor=cursor))

    assert ending(events, listing).reason is ListingEnd.CYCLE
    assert listing.pages == 6


def test_a_page_lasts_no_longer_for_one_huge_cursor() -> None:
    """A cursor longer than that memory must still be sent back."""
    client, listing, id = listing_of()
    cursor = "x" * 2_000_000
    _, id = answered(client, id, page(nextCursor=cursor))
    events, _ = answered(client, id, page())

    assert ending(events, listing).reason is ListingEnd.COMPLETE
