"""Pages of lists in a cache: each by itself, and all with one scope."""

from typing import Any

import pytest

from sansmcp import (
    Cache,
    CacheHit,
    ClientConnection,
    ErrorReceived,
    Event,
    JSONObject,
    ListingEnd,
    ListingEnded,
    PageReceived,
    ResponseReceived,
)
from tests.support.caching import (
    STRICT,
    asked,
    caching_client,
    fetch,
    is_served,
    names_of,
    served,
    tools,
)
from tests.support.modern import complete
from tests.support.wire import broken, drain, error, of, only, receive, sent

SECOND: JSONObject = {"cursor": "2"}


def pages_of(events: list[Event]) -> list[tuple[list[str], bool]]:
    """The names in each page, and whether it comes from the cache."""
    pages = of(PageReceived, events)
    return [(names_of(page.result), page.cached is not None) for page in pages]


def answered(client: ClientConnection, *pages: JSONObject) -> list[Event]:
    """Let the server answer the requests for these pages, one after the other."""
    events = drain(client)
    for page in pages:
        (message,) = sent(client)
        events += receive(client, complete(message["id"], page))
    assert sent(client) == []
    return events


def listed(client: ClientConnection, *pages: JSONObject, **options: Any) -> list[Event]:
    """List the tools; the server is asked for these pages."""
    client.send_paginated("tools/list", **options)
    return answered(client, *pages)


def ending(events: list[Event]) -> ListingEnd:
    (event,) = of(ListingEnded, events)
    return event.reason


# ------------------------------------------------------------------------------- single requests


def test_each_page_has_its_own_time() -> None:
    """CACHE-020, CACHE-021: a page that has expired is fetched with its cursor, and no other."""
    client = caching_client()
    fetch(client, tools("a", cursor="2"), now=0.0)
    fetch(client, tools("b", ttlMs=1_000), params=SECOND, now=10.0)
    assert names_of(served(client, params=SECOND, now=10.9)[0]) == ["b"]
    assert not is_served(client, params=SECOND, now=11.0)
    assert served(client, now=11.0)[0]["nextCursor"] == "2"


def test_pages_with_another_scope_are_refused() -> None:
    """CACHE-022: if the second page is private, the first one may be, too."""
    cache = Cache()
    client = caching_client(cache)
    fetch(client, tools("a", cursor="2"))
    events = fetch(client, tools("b", cacheScope="private"), params=SECOND)
    assert broken(events) == ["CACHE-022"]
    assert cache.entries == 0
    assert not is_served(client)
    assert not is_served(client, params=SECOND)


def test_a_first_page_may_have_another_scope() -> None:
    """With it a new list begins: the pages of the former one are gone."""
    client = caching_client()
    fetch(client, tools("a", cursor="2"), now=0.0)
    fetch(client, tools("b", ttlMs=600_000), params=SECOND, now=0.0)
    events = fetch(client, tools("c", cacheScope="private"), now=60.0)
    assert broken(events) == []
    assert not is_served(client, params=SECOND)
    assert is_served(client)


def test_an_invalid_cursor_makes_all_pages_stale() -> None:
    """CACHE-024: the pages that are kept belong to a list that is no longer there."""
    cache = Cache(stale_if_error=1_000.0)
    client = caching_client(cache)
    fetch(client, tools("a", cursor="2"))
    fetch(client, {**tools(), "prompts": []}, "prompts/list")
    message = asked(client, "tools/list", SECOND)
    only(ErrorReceived, receive(client, error(message["id"], -32602)))
    assert cache.entries == 1
    assert not is_served(client)
    assert is_served(client, "prompts/list")


def test_another_error_leaves_the_pages() -> None:
    """Only -32602 says that the cursor is invalid, and only of a request with a cursor."""
    client = caching_client()
    fetch(client, tools("a", cursor="2"))
    message = asked(client, "tools/list", SECOND)
    receive(client, error(message["id"], -32603))
    message = asked(client, "tools/list", {"filter": 1})
    receive(client, error(message["id"], -32602))
    assert is_served(client)


# -------------------------------------------------------------------------------------- listings


def test_a_listing_comes_from_the_cache_page_by_page() -> None:
    """`send_paginated` is how most clients list; the events say which pages the server has sent."""
    client = caching_client()
    listed(client, tools("a", cursor="2"), tools("b", cursor="3"), tools("c"), now=0.0)
    events = listed(client, now=5.0)
    assert pages_of(events) == [(["a"], True), (["b"], True), (["c"], True)]
    assert {page.cached for page in of(PageReceived, events)} == {CacheHit(age=5.0)}
    assert ending(events) is ListingEnd.COMPLETE
    assert served(client, params={"cursor": "3"})[0] == of(PageReceived, events)[2].result


def test_a_page_that_has_expired_is_fetched_with_its_cursor() -> None:
    """CACHE-020: the pages around it still come from the cache."""
    client = caching_client()
    listed(client, tools("a", cursor="2"), tools("b", cursor="3", ttlMs=1_000), tools("c"), now=0.0)
    client.send_paginated("tools/list", now=2.0)
    events = drain(client)
    (message,) = sent(client)
    assert message["params"]["cursor"] == "2"
    events += receive(client, complete(message["id"], tools("B", cursor="3")))
    assert pages_of(events) == [(["a"], True), (["B"], False), (["c"], True)]
    assert ending(events) is ListingEnd.COMPLETE


def test_pages_on_demand_come_from_the_cache_on_demand() -> None:
    """A slow consumer must not get all pages at once."""
    client = caching_client()
    listed(client, tools("a", cursor="2"), tools("b"))
    listing = client.send_paginated("tools/list", auto=False)
    assert pages_of(drain(client)) == [(["a"], True)]
    assert listing.open
    assert client.next_page(listing)
    events = drain(client)
    assert pages_of(events) == [(["b"], True)]
    assert ending(events) is ListingEnd.COMPLETE
    assert sent(client) == []


def test_a_listing_on_demand_that_came_from_the_cache_can_be_cancelled() -> None:
    """It waits for nothing of the server."""
    client = caching_client()
    listed(client, tools("a", cursor="2"), tools("b"))
    listing = client.send_paginated("tools/list", auto=False)
    drain(client)
    assert client.cancel(listing)
    assert ending(drain(client)) is ListingEnd.CANCELLED
    assert sent(client) == []


def test_a_long_list_comes_from_the_cache_at_once() -> None:
    """No stack grows with the number of pages."""
    client = caching_client(Cache(max_entries=5_000))
    pages = [tools(f"t{n}", cursor=str(n + 1)) for n in range(2_000)]
    listed(client, *pages, tools("last"))
    assert len(of(PageReceived, listed(client))) == 2_001


def test_the_limits_of_a_listing_hold_for_pages_of_the_cache() -> None:
    """A list without an end is in the cache, too."""
    client = caching_client()
    fetch(client, tools("a", cursor="2"))
    fetch(client, tools(cursor="2"), params=SECOND)
    events = listed(client)
    assert ending(events) is ListingEnd.EMPTY_PAGES
    assert set(broken(events)) == {"OWN-028"}


def test_a_listing_with_several_scopes_is_refused() -> None:
    """CACHE-022: nothing of it is kept, and the breach is reported once."""
    cache = Cache()
    client = caching_client(cache)
    private = {"cacheScope": "private"}
    events = listed(
        client, tools("a", cursor="2"), tools("b", cursor="3", **private), tools("c", **private)
    )
    assert pages_of(events) == [(["a"], False), (["b"], False), (["c"], False)]
    assert broken(events) == ["CACHE-022"]
    assert ending(events) is ListingEnd.COMPLETE
    assert cache.entries == 0


def test_a_page_that_is_not_kept_has_a_scope_as_well() -> None:
    """CACHE-022: a first page that is stale at once binds the others all the same."""
    cache = Cache()
    client = caching_client(cache)
    events = listed(client, tools("a", cursor="2", ttlMs=0, cacheScope="private"), tools("b"))
    assert broken(events) == ["CACHE-022"]
    assert cache.entries == 0


def test_pages_after_those_of_the_cache_have_the_same_scope() -> None:
    """CACHE-022: the pages of the cache count, too."""
    cache = Cache()
    client = caching_client(cache)
    fetch(client, tools("a", cursor="2"))
    events = listed(client, tools("b", cacheScope="private"))
    assert pages_of(events) == [(["a"], True), (["b"], False)]
    assert broken(events) == ["CACHE-022"]
    assert cache.entries == 0


def test_a_page_of_the_cache_has_a_scope_after_it_is_gone() -> None:
    """CACHE-022: meanwhile another result may take its place."""
    cache = Cache(max_entries=1)
    client = caching_client(cache)
    fetch(client, tools("a", cursor="2"))
    client.send_paginated("tools/list")
    (second,) = sent(client)
    assert pages_of(drain(client)) == [(["a"], True)]
    fetch(client, {**tools(), "prompts": []}, "prompts/list")
    events = receive(client, complete(second["id"], tools("b", cacheScope="private")))
    assert broken(events) == ["CACHE-022"]
    assert not is_served(client, params=SECOND)


def test_a_listing_whose_cursor_is_refused_makes_its_pages_stale() -> None:
    """CACHE-024: the next listing begins with the server."""
    client = caching_client()
    client.send_paginated("tools/list")
    (first,) = sent(client)
    receive(client, complete(first["id"], tools("a", cursor="2")))
    (second,) = sent(client)
    events = receive(client, error(second["id"], -32602))
    (event,) = of(ListingEnded, events)
    assert (event.reason, event.stale) == (ListingEnd.ERROR, True)
    assert pages_of(listed(client, tools("b"))) == [(["b"], False)]


def test_a_page_that_does_not_come_is_served_stale() -> None:
    """CACHE-015: a list stays usable while its server is down."""
    client = caching_client(Cache(stale_if_error=1_000.0))
    listed(client, tools("a", cursor="2"), tools("b"), now=0.0)
    client.send_paginated("tools/list", timeout=5, now=60.0)
    (first,) = sent(client)
    events = receive(client, error(first["id"], -32603))
    (second,) = sent(client)
    assert second["params"]["cursor"] == "2"
    client.handle_timeout(65.0)
    events += drain(client)
    assert pages_of(events) == [(["a"], True), (["b"], True)]
    assert all(page.cached and page.cached.failure for page in of(PageReceived, events))
    assert ending(events) is ListingEnd.COMPLETE


def test_a_listing_that_is_lost_is_served_stale_as_far_as_it_was_asked_for() -> None:
    """No further page can be requested when the connection has ended."""
    client = caching_client(Cache(stale_if_error=1_000.0))
    listed(client, tools("a", cursor="2"), tools("b"), now=0.0)
    client.send_paginated("tools/list", now=60.0)
    sent(client)
    client.receive_eof()
    events = drain(client)
    assert pages_of(events) == [(["a"], True)]
    assert ending(events) is ListingEnd.LOST


def test_lists_that_may_not_be_cached_are_listed_as_before() -> None:
    """A method of an extension has no hints."""
    client = caching_client()
    client.send_paginated("tools/list", {"requestState": "s"})
    answered(client, tools("a"))
    assert pages_of(listed(client, tools("b"))) == [(["b"], False)]


@pytest.mark.parametrize("items", [None, {}])
def test_a_page_without_items_is_invalid(items: object) -> None:
    """With `check="none"` the part that lists judges it."""
    client = caching_client(config=STRICT)
    page = {**tools(), "tools": items}
    assert ending(listed(client, page)) is ListingEnd.INVALID_ANSWER


def test_a_page_of_a_single_request_serves_a_listing() -> None:
    """Both have the same key."""
    client = caching_client()
    fetch(client, tools("a"))
    assert pages_of(listed(client)) == [(["a"], True)]
    assert not of(ResponseReceived, drain(client))
