"""Rate limits: a token bucket for each key, in bounded memory.

A pure room: the caller tells the time. It knows only `_wire`.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from math import inf, isfinite
from typing import Final, TypeAlias

import attrs

from ._wire.setting_checks import check_clock, check_text, check_whole, is_number

__all__ = ["RateLimit"]

_LONG_KEY: Final = 128
"""Characters of a key. A longer one is kept as its digest, so that it takes no more memory."""
_ROUNDING: Final = 1e-6
"""Tokens that may be missing, since waiting for exactly the time that was told may round down."""
_SEEN_AT_A_TIME: Final = 2
"""Buckets that each call looks at, whether they are full and can be forgotten."""

_Key: TypeAlias = str | bytes


@attrs.define
class _Bucket:
    """The tokens of a key, at the time when they were last counted."""

    tokens: float
    at: float


class RateLimit:
    """At most `rate` units of cost per second for each key, and `burst` units at once.

    Each key has a bucket with `burst` tokens at first. Taking removes tokens, and `rate` tokens per
    second come back. Over any time of t seconds a key takes at most `burst + rate * t`, also where
    an attacker makes up any number of keys:

    - A bucket is forgotten only when it is full again, so no debt is ever forgotten.
    - While `max_keys` keys have debts, all further keys share one bucket. A key that gets a bucket
      of its own later begins with the tokens of the shared one.

    Each call takes the same time, whatever the number of keys. A copy by `copy.deepcopy` is
    independent. Keeps TOOL-041, COMP-005, COMP-007, LOG-012, SAMP-027.

    Args:
        rate: Tokens per second.
        burst: The tokens of a full bucket.
        max_keys: The number of keys with a bucket of their own.

    Raises:
        ValueError: An argument is out of range.
    """

    __slots__ = ("_buckets", "_now", "_shared", "burst", "max_keys", "rate")

    def __init__(self, *, rate: float, burst: float, max_keys: int = 10_000) -> None:
        for name, value in (("rate", rate), ("burst", burst)):
            if not is_number(value) or not isfinite(value) or value <= 0:
                raise ValueError(f"{name} must be greater than zero, and finite, not {value!r}")
        check_whole("max_keys", max_keys)
        self.rate: Final = rate
        self.burst: Final = burst
        self.max_keys: Final = max_keys
        self._buckets: Final[OrderedDict[_Key, _Bucket]] = OrderedDict()
        self._shared: Final = _Bucket(burst, -inf)
        self._now = -inf

    def __len__(self) -> int:
        """The number of keys with a bucket of their own."""
        return len(self._buckets)

    def take(self, key: str, now: float, cost: float = 1) -> float | None:
        """Take tokens of a key, if it has enough of them.

        Args:
            key: For example the key of a principal, the id of a session, or an address.
            now: The caller's clock in seconds. A smaller value than before counts as that one.
            cost: The number of tokens, at most `burst`.

        Returns:
            None if they were taken; else nothing was taken, and this is the number of seconds after
            which there are enough, if nothing else takes them.

        Raises:
            ValueError: The key is no string, the time no number, or the cost not in range.
        """
        check_text("key", key)
        check_clock("now", now)
        if not is_number(cost) or not 0 < cost <= self.burst:
            raise ValueError(f"cost must be above zero and at most {self.burst}, not {cost!r}")
        self._now = now = max(self._now, now)
        kept = key if len(key) <= _LONG_KEY else _digest(key)
        self._forget_full_buckets(now, kept)
        bucket = self._buckets.get(kept)
        if bucket is None:
            self._fill(self._shared, now)
            bucket = self._shared
            if len(self._buckets) < self.max_keys and bucket.tokens >= cost - _ROUNDING:
                bucket = self._buckets[kept] = _Bucket(bucket.tokens, now)
        else:
            self._fill(bucket, now)
        missing = cost - bucket.tokens
        if missing > _ROUNDING:
            return missing / self.rate
        bucket.tokens -= cost
        return None

    def _fill(self, bucket: _Bucket, now: float) -> None:
        """Add the tokens that have come back since the last time."""
        if bucket.tokens < self.burst:
            bucket.tokens = min(self.burst, bucket.tokens + (now - bucket.at) * self.rate)
        bucket.at = now

    def _forget_full_buckets(self, now: float, used: _Key) -> None:
        """Look at the next buckets in turn, and forget those that are full.

        Each call looks at two and adds at most one, so that full ones do not stay for long. The
        bucket that is used now stays: without it the key would begin with the shared tokens.
        """
        for _ in range(min(_SEEN_AT_A_TIME, len(self._buckets))):
            key, bucket = next(iter(self._buckets.items()))
            self._fill(bucket, now)
            if bucket.tokens >= self.burst and key != used:
                del self._buckets[key]
            else:
                self._buckets.move_to_end(key)


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()
