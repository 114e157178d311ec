"""What makes results in a cache stale before their time is over."""

from typing import Any

import pytest

from sansmcp import Cache, ClientConnection, JSONObject, ListingEnded, MessageIgnored
from tests.support.caching import (
    FILE,
    STRICT,
    asked,
    caching_client,
    contents,
    fetch,
    hints,
    is_served,
    names_of,
    served,
    tools,
)
from tests.support.modern import SUBSCRIPTION, WHOLE_FILTER, changed, complete, subscribed
from tests.support.wire import broken, note, of, receive, sent

LISTS: list[tuple[str, str]] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
]
READ: JSONObject = {"uri": FILE}


def full_client(cache: Any = None) -> tuple[ClientConnection, int]:
    """A client with each kind of result in its cache, and the id of its subscription."""
    client = caching_client(cache)
    subscription = subscribed(client, WHOLE_FILTER)
    assert subscription.open
    for method, member in LISTS:
        fetch(client, {member: [], **hints()}, method)
    fetch(client, contents("a"), "resources/read", READ)
    fetch(client, contents("b"), "resources/read", {"uri": f"{FILE}/b"})
    return client, 2  # the first request after the probe


def fresh(client: ClientConnection) -> set[str]:
    """The names of what the cache still has."""
    found = {method for method, _ in LISTS if is_served(client, method)}
    uris = {uri for uri in (FILE, f"{FILE}/b") if is_served(client, "resources/read", {"uri": uri})}
    return found | uris


@pytest.mark.parametrize(
    ("what", "stale"),
    [
        ("tools/list_changed", {"tools/list"}),
        ("prompts/list_changed", {"prompts/list"}),
        ("resources/list_changed", {"resources/list", "resources/templates/list"}),
    ],
)
def test_a_notification_makes_what_it_names_stale(what: str, stale: set[str]) -> None:
    """CACHE-018: a change ends the time of a list at once, and of no other result."""
    client, tag = full_client()
    everything = {method for method, _ in LISTS} | {FILE, f"{FILE}/b"}
    receive(client, changed(tag, what))
    assert fresh(client) == everything - stale


def test_an_update_makes_a_resource_stale() -> None:
    """CACHE-018: the lists of resources have not changed."""
    client, tag = full_client()
    receive(client, changed(tag, "resources/updated", uri=FILE))
    assert not is_served(client, "resources/read", READ)
    assert is_served(client, "resources/read", {"uri": f"{FILE}/b"})
    assert is_served(client, "resources/list")


def test_an_update_of_a_part_makes_the_subscribed_resource_stale() -> None:
    """CACHE-018, RES-009: the server may name a part of what was subscribed to."""
    client, tag = full_client()
    receive(client, changed(tag, "resources/updated", uri=f"{FILE}/b"))
    assert not is_served(client, "resources/read", READ)
    assert not is_served(client, "resources/read", {"uri": f"{FILE}/b"})


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"_meta": {}},
        {"_meta": {SUBSCRIPTION: "nothing"}},
        {"_meta": {SUBSCRIPTION: [1]}},
        {"_meta": {SUBSCRIPTION: 3}},
    ],
)
def test_a_change_without_a_subscription_counts_all_the_same(params: JSONObject) -> None:
    """CACHE-018: a server that forgets the tag has told of a change."""
    client, _ = full_client()
    asked(client, "tools/call", {"name": "t"})
    receive(client, note("notifications/tools/list_changed", params))
    assert not is_served(client)


@pytest.mark.parametrize("uri", [5, None])
def test_an_update_without_a_uri_changes_nothing(uri: object) -> None:
    """A malformed notification must not make receiving raise."""
    cache = Cache()
    client = caching_client(cache, config=STRICT)
    subscribed(client, WHOLE_FILTER)
    fetch(client, contents("a"), "resources/read", READ)
    receive(client, changed(2, "resources/updated", uri=uri))
    assert is_served(client, "resources/read", READ)


def test_a_stale_result_that_has_changed_is_not_served_if_the_server_fails() -> None:
    """CACHE-018: the server has said that it is wrong, and not only old."""
    cache = Cache(stale_if_error=1_000.0)
    client, tag = full_client(cache)
    before = cache.entries
    receive(client, changed(tag))
    assert cache.entries == before - 1


def test_a_result_that_was_under_way_when_a_change_came_is_not_kept() -> None:
    """CACHE-018: the server may have made it before the change; nothing would tell of it again."""
    client, tag = full_client()
    receive(client, changed(tag))
    message = asked(client, "tools/list")
    receive(client, changed(tag))
    receive(client, complete(message["id"], tools("old")))
    assert not is_served(client)
    fetch(client, tools("new"))
    assert names_of(served(client)[0]) == ["new"]


def test_a_change_of_another_list_does_not_matter_to_a_result_under_way() -> None:
    """A busy server would keep everything out of the cache."""
    client, tag = full_client()
    receive(client, changed(tag))
    message = asked(client, "tools/list")
    receive(client, changed(tag, "prompts/list_changed"))
    receive(client, changed(tag, "resources/updated", uri=FILE))
    receive(client, complete(message["id"], tools("new")))
    assert is_served(client)


def test_a_change_makes_each_variant_of_a_list_stale() -> None:
    """CACHE-018: lists with other params have changed, too, after one of them has expired."""
    client, tag = full_client()
    for n in range(3):
        fetch(client, tools("a", ttlMs=1_000 if n == 1 else 60_000), params={"variant": n})
    assert not is_served(client, params={"variant": 1}, now=1.0)
    assert is_served(client, params={"variant": 2})
    receive(client, changed(tag))
    assert not any(is_served(client, params={"variant": n}) for n in range(3))
    assert is_served(client, "prompts/list")


def test_a_change_is_told_to_all_connections_to_the_server() -> None:
    """CACHE-018: a gateway has one subscription, and many clients."""
    cache = Cache()
    one, tag = full_client(cache.partition(server="s"))
    other = caching_client(cache.partition(server="s"))
    elsewhere = caching_client(cache.partition(server="t"))
    fetch(elsewhere, tools("a"))
    assert is_served(other)
    receive(one, changed(tag))
    assert not is_served(other)
    assert is_served(elsewhere)


def test_many_changes_are_remembered_within_the_bound() -> None:
    """A peer may name any number of resources: what is forgotten counts as changed."""
    cache = Cache(max_entries=2)
    client, tag = full_client(cache)
    message = asked(client, "prompts/list")
    for n in range(3):
        receive(client, changed(tag, "resources/updated", uri=f"{FILE}/{n}"))
    receive(client, complete(message["id"], {"prompts": [], **hints()}))
    assert not is_served(client, "prompts/list")
    fetch(client, {"prompts": [], **hints()}, "prompts/list")
    assert is_served(client, "prompts/list")


def test_the_application_can_clear_the_cache() -> None:
    """CACHE-014: an unexpected error may show that the results are out of date."""
    cache = Cache()
    client = caching_client(cache)
    fetch(client, tools("a"))
    message = asked(client, "prompts/list")
    cache.clear()
    assert (cache.entries, cache.bytes) == (0, 0)
    receive(client, complete(message["id"], {"prompts": [], **hints()}))
    assert not is_served(client, "prompts/list")
    assert not is_served(client)
    fetch(client, tools("b"))
    assert names_of(served(client)[0]) == ["b"]


def test_a_change_while_a_listing_runs_keeps_its_pages_out() -> None:
    """CACHE-018: some of its pages are older than the change."""
    client, tag = full_client()
    receive(client, changed(tag))
    client.send_paginated("tools/list")
    (first,) = sent(client)
    receive(client, changed(tag))
    events = receive(client, complete(first["id"], tools("a")))
    assert of(ListingEnded, events)[0].stale
    assert not is_served(client)


def test_other_notifications_change_nothing() -> None:
    """An acknowledgement and a log message are no changes."""
    client, tag = full_client()
    events = receive(client, note("notifications/message", {"level": "info", "data": 1}))
    assert broken(events) == []
    late = {"notifications": {}, "_meta": {SUBSCRIPTION: tag + 90}}
    receive(client, note("notifications/subscriptions/acknowledged", late))
    assert len(fresh(client)) == len(LISTS) + 2


def test_a_change_for_a_subscription_that_has_ended_is_ignored_and_counts() -> None:
    """CACHE-018: it may have crossed the end."""
    client, _ = full_client()
    events = receive(client, changed("gone"))
    assert of(MessageIgnored, events)
    assert not is_served(client)
