"""The bounds of a cache, and the properties that hold whatever comes into it."""

import gc
import json
import tracemalloc
from contextlib import AbstractContextManager
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sansmcp import Cache, CacheHit, ClientConnection, JSONObject, ResponseReceived
from tests.support.caching import (
    asked,
    caching_client,
    contents,
    fetch,
    is_served,
    names_of,
    served,
    tools,
)
from tests.support.modern import changed, complete, subscribed
from tests.support.wire import drain, only, receive, sent

WHO: Final = ("alice", "bob")


def read(client: ClientConnection, name: str, text: str = "", **more: Any) -> None:
    """Fetch a resource that the cache does not have."""
    fetch(client, contents(text, **more), "resources/read", {"uri": f"file:///{name}"})


def has(client: ClientConnection, *names: str) -> list[bool]:
    """Whether each of these resources is in the cache."""
    return [is_served(client, "resources/read", {"uri": f"file:///{name}"}) for name in names]


def test_the_oldest_entry_goes_first() -> None:
    """The number of entries has a limit, and what is used stays."""
    cache = Cache(max_entries=2)
    client = caching_client(cache)
    read(client, "a")
    read(client, "b")
    assert has(client, "a") == [True]
    read(client, "c")
    assert cache.entries == 2
    assert has(client, "a", "b", "c") == [True, False, True]


def test_a_large_entry_takes_the_place_of_several() -> None:
    """The bytes have a limit, too, which counts the result and its key."""
    cache = Cache(max_bytes=30_000)
    client = caching_client(cache)
    for name in "abcd":
        read(client, name, "x" * 4_000)
    assert cache.entries == 4
    read(client, "e", "x" * 20_000)
    assert cache.entries == 2
    assert has(client, "d", "e") == [True, True]


def test_what_is_larger_than_the_cache_is_not_kept() -> None:
    """It would only throw out what is there. The former response is out of date, though."""
    cache = Cache(max_bytes=10_000)
    client = caching_client(cache)
    read(client, "a")
    read(client, "b", ttlMs=1_000)
    fetch(client, contents("x" * 9_000), "resources/read", {"uri": "file:///b"}, now=1.0)
    assert has(client, "a", "b") == [True, False]


@pytest.mark.parametrize("place", ["uri", "cursor", "params"])
def test_keys_count(place: str) -> None:
    """A client that asks for very long names must not fill the memory."""
    cache = Cache(max_bytes=100_000)
    client = caching_client(cache)
    long = "x" * 100_000
    if place == "uri":
        read(client, long)
    elif place == "cursor":
        fetch(client, tools("a"), params={"cursor": long})
    else:
        fetch(client, tools("a"), params={"more": long})
    assert cache.entries == 0


def test_entries_that_have_expired_are_removed_when_they_are_seen() -> None:
    """Nothing else would remove them before the cache is full."""
    cache = Cache()
    client = caching_client(cache)
    read(client, "a")
    assert cache.bytes > 0
    assert not is_served(client, "resources/read", {"uri": "file:///a"}, now=60.0)
    assert (cache.entries, cache.bytes) == (0, 0)


def test_hits_and_misses_are_counted() -> None:
    """Operators want to know what a cache is good for."""
    cache = Cache()
    client = caching_client(cache)
    read(client, "a")
    assert has(client, "a", "a", "b") == [True, True, False]
    assert (cache.hits, cache.misses) == (2, 2)
    assert repr(cache) == f"<Cache entries=1 bytes={cache.bytes}>"


class CountingLock(AbstractContextManager[None]):
    """Counts how often it is taken, and that it is never taken twice."""

    def __init__(self) -> None:
        self.taken = 0
        self.is_held = False

    def __enter__(self) -> None:
        assert not self.is_held
        self.is_held = True
        self.taken += 1

    def __exit__(self, *_: object) -> None:
        self.is_held = False


def test_the_lock_is_held_for_each_use() -> None:
    """Threads may share a cache; the core knows no threads."""
    lock = CountingLock()
    cache = Cache(lock=lock)
    client = caching_client(cache)
    counts = [lock.taken]
    fetch(client, tools("a"))
    counts.append(lock.taken)
    served(client)
    counts.append(lock.taken)
    cache.clear()
    counts.append(lock.taken)
    assert counts == sorted(set(counts))


def test_the_bytes_are_about_the_memory() -> None:
    """An estimate that is too low would make the limit useless."""
    cache = Cache(max_entries=2_000)
    client = caching_client(cache)
    tracemalloc.start()
    try:
        for n in range(1_000):
            read(client, f"{n}", "x" * 100)
        entries, estimated = cache.entries, cache.bytes
        gc.collect()
        full, _ = tracemalloc.get_traced_memory()
        cache.clear()
        gc.collect()
        empty, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert entries == 1_000
    assert 0.8 < estimated / (full - empty) < 1.25


# --------------------------------------------------------------------------------- properties


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Requests of two users and the answers to them, the passing of time, and changes."""
    step = st.one_of(
        st.tuples(
            st.just("ask"),
            st.fixed_dictionaries(
                {
                    "who": st.sampled_from(WHO),
                    "name": st.sampled_from("abcd"),
                    "cursor": st.sampled_from((None, "1", "2")),
                    "size": st.integers(0, 3_000),
                    "ttl": st.sampled_from((0, 1, 1_000, 10_000)),
                    "scope": st.sampled_from(("public", "private")),
                }
            ),
        ),
        st.tuples(st.just("wait"), st.floats(0, 5)),
        st.tuples(st.just("change"), st.sampled_from(WHO)),
    )
    return draw(st.lists(step, max_size=40))


class Run:
    """Two users of one server, which tells each request who has asked for it and when.

    Attributes:
        kept: What the server has answered, by its number: who asked, scope, key, until when.
    """

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self.cache = Cache(max_entries=max_entries, max_bytes=max_bytes)
        self.clients = {
            who: caching_client(self.cache.partition(server="s", context=who)) for who in WHO
        }
        for client in self.clients.values():
            subscribed(client)
        self.now = 0.0
        self.changes = 0
        self.kept: list[tuple[str, str, JSONObject, float, int]] = []

    def ask(self, who: str, name: str, cursor: str | None, size: int, ttl: int, scope: str) -> None:
        client = self.clients[who]
        params: JSONObject = {"name": name} if cursor is None else {"name": name, "cursor": cursor}
        client.send_request("tools/list", params, now=self.now)
        messages = sent(client)
        if messages:
            (message,) = messages
            page = tools(str(len(self.kept)), "x" * size, ttlMs=ttl, cacheScope=scope)
            self.kept.append((who, scope, params, self.now + ttl / 1000, self.changes))
            receive(client, complete(message["id"], page))
            return
        event = only(ResponseReceived, drain(client))
        assert event.cached is not None
        owner, was, key, until, changes = self.kept[int(names_of(event.result)[0])]
        assert was == "public" or owner == who  # CACHE-017
        assert key == params  # CACHE-005
        assert self.now < until  # CACHE-008
        assert changes == self.changes  # CACHE-018

    def change(self, who: str) -> None:
        self.changes += 1
        receive(self.clients[who], changed(2))


@given(st.integers(1, 5), st.integers(500, 8_000), steps())
@settings(deadline=None)
def test_whatever_comes_the_bounds_and_the_contexts_hold(
    max_entries: int, max_bytes: int, steps: list[tuple[str, Any]]
) -> None:
    """Never above a limit, and never a result for somebody else, another key or another time."""
    run = Run(max_entries, max_bytes)
    for kind, about in steps:
        if kind == "ask":
            run.ask(**about)
        elif kind == "wait":
            run.now += about
        else:
            run.change(about)
        assert run.cache.entries <= max_entries
        assert run.cache.bytes <= max_bytes
        assert (run.cache.entries == 0) == (run.cache.bytes == 0)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_a_result_comes_out_as_it_went_in(value: Any) -> None:
    """The cache keeps text, and must not change what it says."""
    client = caching_client()
    given_page = json.loads(json.dumps(tools("a", odd=value)))
    message = asked(client, "tools/list")
    event = only(ResponseReceived, receive(client, complete(message["id"], given_page)))
    result, hit = served(client)
    assert result == event.result
    assert hit == CacheHit(age=0.0)
