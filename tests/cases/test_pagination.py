"""Failure class 4, pagination: every listing ends, and cursors are passed on untouched."""

from collections.abc import Sequence
from typing import Any

import pytest

from sansmcp import (
    MISSING,
    ClientConnection,
    Config,
    Event,
    InvalidCursor,
    Listing,
    ListingEnd,
    ListingEnded,
    MessageIgnored,
    PageReceived,
    ProtocolViolation,
    decode_cursor,
    paginate,
)
from tests.support.modern import CACHE, modern_client
from tests.support.wire import (
    asked,
    assert_usable,
    call,
    error,
    of,
    only,
    ready_client,
    ready_server,
    receive,
    refusals,
    result,
    sent,
)

TOOL = {"name": "t", "inputSchema": {"type": "object"}}

METHODS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


def answer_page(
    client: ClientConnection, member: str, items: Sequence[object], next_cursor: object = MISSING
) -> tuple[Any, list[Event]]:
    """Answer the open page request; returns its cursor, and the events."""
    (request,) = sent(client)
    page: dict[str, Any] = {member: list(items)}
    if next_cursor is not MISSING:
        page["nextCursor"] = next_cursor
    cursor = request.get("params", {}).get("cursor", MISSING)
    return cursor, receive(client, result(request["id"], page))


def ended(events: list[Event], listing: Listing) -> ListingEnd:
    """The reason of the listing's ending, which must be the last event."""
    event = events[-1]
    assert isinstance(event, ListingEnded)
    assert event.listing is listing
    return event.reason


@pytest.mark.parametrize("method", METHODS)
def test_a_null_cursor_ends_a_listing(revision: str, method: str) -> None:
    """Case c063: null was sent back as a cursor, and the listing never ended."""
    client = ready_client(revision)
    listing = client.send_paginated(method)
    cursor, events = answer_page(client, METHODS[method], [], None)
    assert cursor is MISSING
    violation, page, _ = events
    assert isinstance(page, PageReceived)
    assert isinstance(violation, ProtocolViolation)
    assert (violation.rule, violation.tolerated) == ("OWN-015", True)
    assert ended(events, listing) is ListingEnd.COMPLETE
    assert_usable(client)


@pytest.mark.parametrize("method", METHODS)
def test_an_absent_cursor_ends_a_listing(revision: str, method: str) -> None:
    """Neighbour of case c063: a missing cursor is the usual end."""
    client = ready_client(revision)
    listing = client.send_paginated(method)
    _, events = answer_page(client, METHODS[method], [TOOL])
    assert [type(event) for event in events] == [PageReceived, ListingEnded]
    assert ended(events, listing) is ListingEnd.COMPLETE
    assert_usable(client)


@pytest.mark.parametrize("cursor", [0, 7, True, [], {}], ids=repr)
def test_a_cursor_that_is_no_string_ends_a_listing_as_invalid(revision: str, cursor: Any) -> None:
    """Neighbour of case c063: a cursor of another type must not be sent back."""
    client = ready_client(revision)
    listing = client.send_paginated("tools/list")
    _, events = answer_page(client, "tools", [TOOL], cursor)
    assert ended(events, listing) is ListingEnd.INVALID_ANSWER
    assert not of(PageReceived, events)
    assert_usable(client)


@pytest.mark.parametrize("cursor", ["A", "", "0"], ids=repr)
def test_a_cursor_that_does_not_advance_ends_a_listing(revision: str, cursor: str) -> None:
    """Case c064: the server gave back the cursor it was asked with, for ever."""
    client = ready_client(revision)
    listing = client.send_paginated("tools/list")
    answer_page(client, "tools", [TOOL], cursor)
    used, events = answer_page(client, "tools", [TOOL], cursor)
    assert used == cursor
    assert [type(event) for event in events] == [PageReceived, ListingEnded]
    assert ended(events, listing) is ListingEnd.CYCLE
    assert listing.pages == 2
    assert_usable(client)


@pytest.mark.parametrize("length", [2, 3, 8])
def test_a_cycle_of_cursors_ends_a_listing(revision: str, length: int) -> None:
    """Case c065: A, B, A, B, ... was not noticed by looking at the last cursor alone."""
    client = ready_client(revision)
    listing = client.send_paginated("tools/list")
    names = [f"cursor {number}" for number in range(length)]
    for name in names:
        _, events = answer_page(client, "tools", [], name)
        assert not of(ListingEnded, events)
    _, events = answer_page(client, "tools", [], names[0])
    assert ended(events, listing) is ListingEnd.CYCLE
    assert_usable(client)


def test_a_cycle_that_enters_late_ends_a_listing(revision: str) -> None:
    """Neighbour of case c065: the first cursors need not be part of the cycle."""
    client = ready_client(revision)
    listing = client.send_paginated("tools/list")
    for name in ("in", "A", "B"):
        answer_page(client, "tools", [TOOL], name)
    _, events = answer_page(client, "tools", [TOOL], "A")
    assert ended(events, listing) is ListingEnd.CYCLE


@pytest.mark.parametrize(
    ("config", "items", "reason"),
    [
        (Config(max_pages=3), [TOOL], ListingEnd.PAGES),
        (Config(max_items=6), [TOOL, TOOL], ListingEnd.ITEMS),
        (Config(max_items=5), [TOOL, TOOL], ListingEnd.ITEMS),
        (Config(max_empty_pages=3), [], ListingEnd.EMPTY_PAGES),
    ],
)
def test_limits_end_a_listing_whose_cursors_never_repeat(
    revision: str, config: Config, items: list[object], reason: ListingEnd
) -> None:
    """Case c065: cursors that count upwards are no cycle, and yet have no end."""
    client = ready_client(revision, config=config)
    listing = client.send_paginated("tools/list")
    for page in (1, 2):
        _, events = answer_page(client, "tools", items, f"{page}")
        only(PageReceived, events)
    _, events = answer_page(client, "tools", items, "3")
    assert [type(event) for event in events] == [PageReceived, ListingEnded]
    assert ended(events, listing) is reason
    assert_usable(client)


@pytest.mark.parametrize("cursor", ["", "0", "null", " ", "é\n\u2028"], ids=repr)
@pytest.mark.parametrize("method", METHODS)
def test_a_cursor_given_by_hand_is_written_as_it_is(
    revision: str, method: str, cursor: str
) -> None:
    """Case c067: the empty cursor was dropped as falsy, and the first page came again."""
    client = ready_client(revision)
    client.send_request(method, {"cursor": cursor})
    client.send_paginated(method, {"cursor": cursor})
    assert [message["params"] for message in sent(client)] == [{"cursor": cursor}] * 2


def test_an_empty_cursor_of_the_server_is_passed_back(revision: str) -> None:
    """Case c067 for listings: "" is a valid cursor."""
    client = ready_client(revision)
    listing = client.send_paginated("tools/list")
    answer_page(client, "tools", [TOOL], "")
    cursor, events = answer_page(client, "tools", [TOOL])
    assert cursor == ""
    assert ended(events, listing) is ListingEnd.COMPLETE


@pytest.mark.parametrize("cursor", ["bogus", "", "W10=", "é"], ids=repr)
def test_a_cursor_that_was_never_issued_reaches_the_application(revision: str, cursor: str) -> None:
    """Case c068: the first page was served instead, and the client listed it twice."""
    server = ready_server(revision)
    request = asked(server, call(4, "tools/list", {"cursor": cursor}))
    assert request.params == {"cursor": cursor}
    assert not sent(server)
    with pytest.raises(InvalidCursor):
        decode_cursor(request.params["cursor"])
    with pytest.raises(InvalidCursor) as caught:
        paginate([1, 2, 3], request.params["cursor"], key=lambda item: item, size=2)
    assert server.send_error(request, -32602, f"Invalid cursor: {caught.value}")
    assert refusals(sent(server)) == [(4, -32602)]
    assert_usable(server)


@pytest.mark.parametrize("modern", [True, False], ids=["modern", "legacy"])
def test_a_cursor_that_is_refused_marks_what_was_listed_as_stale(modern: bool) -> None:
    """Case c271: a client kept the first page of a listing whose cursor was no longer good."""
    client = modern_client() if modern else ready_client("2025-11-25")
    listing = client.send_paginated("resources/list")
    (request,) = sent(client)
    page = {"resources": [{"uri": "file:///a", "name": "a"}], "nextCursor": "k"}
    whole = {**page, "resultType": "complete", **CACHE} if modern else page
    (first,) = of(PageReceived, receive(client, result(request["id"], whole)))
    assert [item["uri"] for item in first.items] == ["file:///a"]
    (request,) = sent(client)
    refused = receive(client, error(request["id"], -32602, "Invalid cursor"))
    ending = only(ListingEnded, refused)
    assert (ending.reason, ending.code, ending.stale) == (ListingEnd.ERROR, -32602, True)
    assert listing.stale
    assert sent(client) == []  # it is not started again by itself
    late = only(MessageIgnored, receive(client, result(request["id"], {"resources": []})))
    assert (late.rule, late.id) == ("JSON-004", request["id"])


def test_a_cursor_of_the_caller_that_is_refused_marks_the_listing_as_stale() -> None:
    """Neighbour of case c271: the pages before it were listed by an earlier listing."""
    client = ready_client("2025-11-25")
    client.send_paginated("tools/list", {"cursor": "kept"})
    (request,) = sent(client)
    assert only(ListingEnded, receive(client, error(request["id"], -32602))).stale


@pytest.mark.parametrize(("code", "pages"), [(-32602, 0), (-32603, 1)])
def test_another_error_says_nothing_of_the_pages_before(code: int, pages: int) -> None:
    """Neighbour of case c271: an error to the first page cannot be about a cursor."""
    client = ready_client("2025-11-25")
    client.send_paginated("tools/list")
    for _ in range(pages):
        answer_page(client, "tools", [TOOL], "next")
    (request,) = sent(client)
    assert not only(ListingEnded, receive(client, error(request["id"], code))).stale
