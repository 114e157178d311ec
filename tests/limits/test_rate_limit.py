"""Each key takes no more than its limit, whatever other keys there are, in bounded memory."""

import copy
import math
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp.limits import RateLimit


def test_a_burst_is_served_and_then_the_rate() -> None:
    """TOOL-041: a client that calls in a loop gets the rate, and is told how long to wait."""
    limit = RateLimit(rate=2, burst=3)

    assert [limit.take("ann", 10) for _ in range(5)] == [None, None, None, 0.5, 0.5]
    assert limit.take("ann", 10.25) == 0.25
    assert limit.take("ann", 10.5) is None
    assert limit.take("ann", 10.5) == 0.5
    assert [limit.take("ann", 1000) for _ in range(4)] == [None, None, None, 0.5]


def test_keys_do_not_share_their_tokens() -> None:
    """One client must not take what another one has."""
    limit = RateLimit(rate=1, burst=1)

    assert limit.take("ann", 0) is None
    assert limit.take("ann", 0) == 1
    assert limit.take("bob", 0) is None


def test_large_requests_cost_more() -> None:
    """A request that works for long may count for several."""
    limit = RateLimit(rate=1, burst=5)

    assert limit.take("ann", 0, cost=4) is None
    assert limit.take("ann", 0, cost=2.5) == 1.5
    assert limit.take("ann", 0) is None


def test_a_clock_that_goes_back_gives_nothing() -> None:
    """A clock may be set back; tokens must not come back twice for the same time."""
    limit = RateLimit(rate=1, burst=1)

    assert limit.take("ann", 10) is None
    assert limit.take("ann", 5) == 1
    assert limit.take("ann", math.nan) == 1
    assert limit.take("ann", 11) is None


calls = st.lists(
    st.tuples(
        st.sampled_from("abcdef"),
        st.floats(0, 2, allow_subnormal=False),
        st.sampled_from([0.5, 1, 2]),
    ),
    max_size=60,
)


@given(calls, st.sampled_from([0.5, 1, 3]), st.sampled_from([2, 5]), st.integers(1, 4))
def test_no_key_takes_more_than_its_limit(
    steps: list[tuple[str, float, float]], rate: float, burst: float, max_keys: int
) -> None:
    """This must hold for each key in each span of time, also where keys are forgotten."""
    limit = RateLimit(rate=rate, burst=burst, max_keys=max_keys)
    taken: dict[str, list[tuple[float, float]]] = {}
    now = 0.0
    for key, pause, cost in steps:
        now += pause
        if limit.take(key, now, cost) is None:
            taken.setdefault(key, []).append((now, cost))
        assert len(limit) <= max_keys
    for served in taken.values():
        for first in range(len(served)):
            costs = 0.0
            for at, cost in served[first:]:
                costs += cost
                assert costs <= burst + rate * (at - served[first][0]) + 1e-5


@given(calls, st.sampled_from([0.5, 1, 3]), st.integers(1, 4))
def test_waiting_as_told_is_enough(
    steps: list[tuple[str, float, float]], rate: float, max_keys: int
) -> None:
    """A client that keeps to `retryAfter` must not be refused again, if nothing else calls."""
    limit = RateLimit(rate=rate, burst=2, max_keys=max_keys)
    now = 1_000.0
    for key, pause, cost in steps:
        now += pause
        wait = limit.take(key, now, cost)
        if wait is not None:
            assert copy.deepcopy(limit).take(key, now + wait, cost) is None


def test_a_hundred_thousand_keys_take_bounded_memory_and_the_shared_rate() -> None:
    """An attacker who makes up a key for each call gets one bucket more than there are keys."""
    limit = RateLimit(rate=1, burst=5, max_keys=1_000)
    assert all(limit.take("ann", 0) is None for _ in range(5))
    served = sum(limit.take(f"made up {number}", 0) is None for number in range(100_000))

    assert served == 999 + 5
    assert len(limit) == 1_000
    assert limit.take("ann", 0) == 1  # no made-up key has made it forget her debt
    assert limit.take("ann", 1) is None


def test_many_keys_over_time_stay_within_the_shared_rate() -> None:
    """The same for an attack that lasts: what it gets grows with the rate, not with its keys."""
    limit = RateLimit(rate=1, burst=2, max_keys=10)
    served = sum(limit.take(f"{number}", number / 100) is None for number in range(10_000))

    assert len(limit) <= 10
    assert served <= 11 * (2 + 100)


def test_full_buckets_are_forgotten_while_others_call() -> None:
    """Keys of clients that are gone must not fill the table."""
    limit = RateLimit(rate=1, burst=2, max_keys=100)
    for number in range(100):
        assert limit.take(f"{number}", 0) is None
    assert len(limit) == 100
    for number in range(100):
        limit.take("ann", 2 + number)

    assert len(limit) <= 1


def test_a_key_after_an_attack_begins_with_what_the_shared_bucket_has() -> None:
    """Otherwise each key could take its burst twice: from the shared bucket, then from its own."""
    limit = RateLimit(rate=1, burst=4, max_keys=1)
    assert limit.take("ann", 0) is None
    assert [limit.take("eve", 0) for _ in range(5)] == [None, None, None, None, 1]
    assert limit.take("eve", 1) is None  # the bucket of ann is full, and was forgotten
    assert limit.take("eve", 1) == 1


def test_a_key_that_comes_back_has_its_own_bucket() -> None:
    """A client that waited as it was told must not pay for the debts of made-up keys."""
    limit = RateLimit(rate=1, burst=2, max_keys=1)
    assert limit.take("ann", 0) is None
    assert [limit.take("eve", 0) for _ in range(2)] == [None, None]
    assert limit.take("ann", 0, cost=2) == 1
    assert limit.take("ann", 1, cost=2) is None


def test_long_keys_take_no_more_memory() -> None:
    """A key may come from the peer, such as an address in a header; a long one is kept short."""
    limit = RateLimit(rate=1, burst=1, max_keys=100)
    tracemalloc.start()
    try:
        for number in range(100):
            assert limit.take(f"{number}" + "x" * 100_000, 0) is None
            assert limit.take(f"{number}" + "x" * 100_000, 0) == 1
        assert len(limit) == 100
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()
    assert limit.take("\udc80" * 200, 1) is None


def test_copies_are_independent() -> None:
    """State that can be copied can be tried out."""
    limit = RateLimit(rate=1, burst=1)
    other = copy.deepcopy(limit)

    assert limit.take("ann", 0) is None
    assert other.take("ann", 0) is None
    assert (limit.rate, other.burst, other.max_keys) == (1, 1, 10_000)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("rate", value) for value in (0, -1, math.nan, math.inf, True, "1", None)),
        *(("burst", value) for value in (0, -1, math.nan, math.inf, True, "1", None)),
        *(("max_keys", value) for value in (0, -1, 1.5, True, None)),
    ],
)
def test_settings_are_checked(name: str, value: Any) -> None:
    """A limit without an effect would be noticed under attack only."""
    with pytest.raises(ValueError, match=name):
        RateLimit(**{"rate": 1, "burst": 1, name: value})


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((None, 0), "key"),
        ((1, 0), "key"),
        (("ann", None), "now"),
        (("ann", 0, 0), "cost"),
        (("ann", 0, 3), "cost must be above zero and at most 2"),
        (("ann", 0, math.nan), "cost"),
        (("ann", 0, True), "cost"),
    ],
)
def test_arguments_are_checked(arguments: Any, text: str) -> None:
    """A cost above the burst could never be served, however long the client waits."""
    limit = RateLimit(rate=1, burst=2)

    with pytest.raises(ValueError, match=text):
        limit.take(*arguments)
    assert len(limit) == 0
