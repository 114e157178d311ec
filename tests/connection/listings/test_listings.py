"""Listings: each requests page after page, and ends once."""

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
    ProtocolViolation,
    RequestReceived,
)
from sansmcp.testing import Pair, canonical, drain
from tests.support.wire import error, note, of, ready_client, receive, result, sent

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


def test_pages_come_until_there_is_no_cursor() -> None:
    """All pages must come in order, each requested with the params and the last cursor."""
    pair = Pair()
    listing = pair.client.send_paginated(
        "tools/list", {"filter": "x"}, meta={"a": 1}, data="mine", now=1
    )
    assert (listing.method, listing.data, listing.open) == ("tools/list", "mine", True)
    for cursor in (None, "", "b"):
        request = pair.deliver_one(RequestReceived).request
        expected = {"filter": "x", "_meta": {"a": 1}}
        assert request.params == (
            {**expected, "cursor": cursor} if cursor is not None else expected
        )
        following = {None: {"nextCursor": ""}, "": {"nextCursor": "b"}, "b": {}}[cursor]
        pair.server.send_result(request, page(2, **following))
        received = pair.deliver_one(PageReceived)
        assert received.listing is listing
        assert received.items == received.result["tools"] == [TOOL, TOOL]
        assert bool(of(ListingEnded, pair.client_events)) is not bool(following)

    assert pair.deliver_one(ListingEnded) == ListingEnded(
        listing=listing, reason=ListingEnd.COMPLETE, stale=False
    )
    assert (listing.pages, listing.items, listing.open) == (3, 6, False)
    assert pair.client.pending_requests == ()


def test_without_params_the_first_page_has_none() -> None:
    """Some servers refuse an empty object."""
    client = ready_client(REVISION)
    client.send_paginated("tools/list")
    (first,) = sent(client)
    receive(client, result(first["id"], page(nextCursor="b")))

    assert "params" not in first
    assert sent(client)[0]["params"] == {"cursor": "b"}


def test_a_cursor_to_begin_with_is_passed_on() -> None:
    """A caller may continue a listing, and a cycle to its cursor must be found."""
    client = ready_client(REVISION)
    listing = client.send_paginated("tools/list", {"cursor": "start"})
    (message,) = sent(client)
    assert message["params"] == {"cursor": "start"}

    events, following = answered(client, message["id"], page(nextCursor="start"))
    assert ending(events, listing).reason is ListingEnd.CYCLE
    assert following == 0


def test_a_null_cursor_to_begin_with_is_none() -> None:
    """A caller must be able to pass on `params.get("cursor")` as it is."""
    client = ready_client(REVISION)
    client.send_paginated("tools/list", {"cursor": None})

    assert "params" not in sent(client)[0]


@pytest.mark.parametrize(
    ("method", "params", "meta", "rule"),
    [
        ("tools/call", {"name": "x"}, None, "PAGE-009"),
        ("x/list", None, None, "PAGE-009"),
        ("roots/list", None, None, "OWN-020"),
        ("tools/list", {"cursor": 5}, None, "OWN-014"),
        ("tools/list", {"a": b"x"}, None, "OWN-024"),
        ("tools/list", None, {"a": b"x"}, "OWN-024"),
    ],
)
def test_what_cannot_be_listed_raises_and_sends_nothing(
    method: str, params: Any, meta: Any, rule: str
) -> None:
    """The rules are those of any request."""
    client = ready_client(REVISION)
    before = canonical(client)

    with pytest.raises(LocalProtocolError) as caught:
        client.send_paginated(method, params, meta=meta)
    assert caught.value.rule == rule
    assert canonical(client) == before


def test_a_null_cursor_ends_a_listing_and_is_reported() -> None:
    """Serializers write `null` for a missing cursor."""
    client, listing, id = listing_of()
    events, _ = answered(client, id, page(nextCursor=None))

    assert [event.rule for event in of(ProtocolViolation, events)] == ["OWN-015"]
    assert ending(events, listing).reason is ListingEnd.COMPLETE


@pytest.mark.parametrize("bad", [{}, {"tools": {}}, page(nextCursor=5)])
@pytest.mark.parametrize("check", ["shape", "none"])
def test_a_page_that_is_not_valid_ends_a_listing(bad: JSONObject, check: Any) -> None:
    """An invalid page must end the listing also without the check of shapes."""
    client, listing, id = listing_of(Config(check=check))
    events, following = answered(client, id, bad)

    assert ending(events, listing).reason is ListingEnd.INVALID_ANSWER
    assert following == 0


def test_an_error_ends_a_listing_and_is_shown() -> None:
    """The error must be in the ending, and not be an event of a request that the application did
    not send."""
    client, listing, id = listing_of()
    events = receive(client, error(id, -32602, "unknown cursor", [1]))
    ended = ending(events, listing)

    assert events == [ended]
    assert (ended.reason, ended.code, ended.message, ended.data) == (
        ListingEnd.ERROR,
        -32602,
        "unknown cursor",
        [1],
    )


def test_time_is_counted_for_each_page() -> None:
    """The timeout must start again for each page."""
    client, listing, id = listing_of(timeout=5, max_timeout=6, now=0)
    receive(client, result(id, page(nextCursor="b")), now=4)
    assert client.next_timeout() == 9
    sent(client)
    client.handle_timeout(9)

    assert ending(drain(client), listing).reason is ListingEnd.TIMED_OUT


def test_a_listing_ends_with_its_connection() -> None:
    """A listing whose next page could not be requested must end too."""
    client, listing, _ = listing_of()
    client.receive_eof()
    assert ending(drain(client)[:-1], listing).reason is ListingEnd.LOST

    client, listing, id = listing_of()
    client.send_failed()
    events, _ = answered(client, id, page(nextCursor="b"))
    assert isinstance(events[0], PageReceived)
    assert ending(events, listing).reason is ListingEnd.LOST


@pytest.mark.parametrize(
    ("method", "notification", "stale"),
    [
        ("tools/list", "tools", True),
        ("tools/list", "prompts", False),
        ("resources/list", "resources", True),
        ("resources/templates/list", "resources", True),
    ],
)
def test_a_list_that_changes_meanwhile_is_stale(
    method: str, notification: str, stale: bool
) -> None:
    """The pages may not fit together; the caller decides whether to list again."""
    client = ready_client(REVISION)
    listing = client.send_paginated(method)
    receive(client, note(f"notifications/{notification}/list_changed"))
    assert listing.stale is stale
    client.cancel(listing)

    assert ending(drain(client), listing).stale is stale
