"""Listings of a client in 2026-07-28, where the value of a cursor means nothing.

Rules: PAGE-003 to PAGE-007.
"""

import pytest

from sansmcp import (
    Config,
    Event,
    JSONObject,
    ListingEnd,
    ListingEnded,
    PageReceived,
    RequestFailed,
)
from tests.support.modern import (
    CACHE,
    SUBSCRIPTION,
    acknowledged,
    complete,
    input_required,
    modern_client,
)
from tests.support.wire import broken, error, note, of, receive, result, sent

TOOL: JSONObject = {"name": "t", "inputSchema": {"type": "object"}}


def page(id: int, cursor: object = None, count: int = 1) -> JSONObject:
    value: JSONObject = {"tools": [TOOL] * count, **CACHE}
    return complete(id, value if cursor is None else {**value, "nextCursor": cursor})


@pytest.mark.parametrize("auto", [True, False])
def test_cursors_are_passed_back_untouched(auto: bool) -> None:
    """c067: an empty cursor is valid, and so is one that has come before."""
    client = modern_client()
    listing = client.send_paginated("tools/list", {"x": 1}, auto=auto)
    cursors = ["", "b", "", "b", "é\u2028"]
    for step, cursor in enumerate(cursors):
        events = receive(client, page(step + 2, cursor))
        repeated = cursor in cursors[:step]
        assert broken(events) == (["OWN-028"] if repeated else [])
        assert len(of(PageReceived, events)) == 1
        if not auto:
            assert client.next_page(listing)
        message = sent(client)[-1]
        assert (message["id"], message["params"]["cursor"]) == (step + 3, cursor)
        assert message["params"]["x"] == 1
    page_received, ended = receive(client, page(7))
    assert isinstance(page_received, PageReceived)
    assert isinstance(ended, ListingEnded)
    assert ended.reason is ListingEnd.COMPLETE
    assert (listing.pages, listing.items) == (6, 6)


@pytest.mark.parametrize(
    ("config", "count", "reason"),
    [
        (Config(max_pages=4), 1, ListingEnd.PAGES),
        (Config(max_items=8), 2, ListingEnd.ITEMS),
        (Config(max_empty_pages=4), 0, ListingEnd.EMPTY_PAGES),
    ],
)
def test_limits_end_a_listing_that_turns_in_circles(
    config: Config, count: int, reason: ListingEnd
) -> None:
    """c064, c065: a server that repeats its cursors would get requests for ever."""
    client = modern_client(config=config)
    client.send_paginated("tools/list")
    events: list[Event] = []
    for id, cursor in enumerate("abab", start=2):
        assert len(sent(client)) == 1
        events += receive(client, page(id, cursor, count))
    assert sent(client) == []
    assert of(ListingEnded, events)[0].reason is reason
    assert broken(events) == ["OWN-028"] * 2


def test_null_is_the_end_of_a_listing() -> None:
    """c063: a null cursor must mean the same as a missing one."""
    client = modern_client()
    client.send_paginated("tools/list")
    answer = complete(2, {"tools": [], "nextCursor": None, **CACHE})
    events = receive(client, answer)
    assert broken(events) == ["OWN-015"]
    assert of(ListingEnded, events)[0].reason is ListingEnd.COMPLETE


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (input_required(2, None, "s"), ListingEnd.INVALID_ANSWER),
        (result(2, {"tools": [], "resultType": "task"}), ListingEnd.INVALID_ANSWER),
        (complete(2, {"tools": [], "nextCursor": 5}), ListingEnd.INVALID_ANSWER),
        (error(2, -32602, "Invalid cursor"), ListingEnd.ERROR),
    ],
)
def test_bad_page_is_the_end_of_a_listing(answer: JSONObject, reason: ListingEnd) -> None:
    """A page is a request of the library, which must report through the listing alone."""
    client = modern_client()
    client.send_paginated("tools/list")
    sent(client)
    events = receive(client, answer)
    assert of(ListingEnded, events)[0].reason is reason
    assert of(RequestFailed, events) == []
    assert sent(client) == []


def test_change_makes_a_listing_stale() -> None:
    """An application that shows the list must fetch it again."""
    client = modern_client()
    client.listen({"toolsListChanged": True})
    listing = client.send_paginated("tools/list")
    changed = note("notifications/tools/list_changed", {"_meta": {SUBSCRIPTION: 2}})
    receive(client, acknowledged(2, {"toolsListChanged": True}), changed)
    assert listing.stale
    assert of(ListingEnded, receive(client, page(3)))[0].stale
