"""Memory of the request ids that a peer has used, in bounded space."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

import attrs

from .._wire.values import MISSING, IdKey

_NAME_CHARACTERS: Final = 256
"""The most characters of a string that is remembered: the table is kept for long."""


@attrs.define(eq=False, repr=False)
class CancelledIds:
    """The ids of modern requests that were cancelled and so get no response.

    In 2026-07-28 an id may be used again after its response. The ids here had none, and so may not.
    Above `bound` the oldest id is forgotten and counted; its reuse is not noticed.

    Attributes:
        bound: The most ids that are remembered.
        forgotten: The number of ids that were forgotten.

    Source: MCP 2026-07-28, basic/index, Requests.
    """

    bound: int
    forgotten: int = 0
    # The keys are the `repr` of ids: a peer cannot choose their hash, and 5 differs from "5".
    _keys: dict[str, None] = attrs.field(factory=dict[str, None], init=False)

    def add(self, key: IdKey) -> None:
        """Remember the id of a request that was cancelled."""
        if isinstance(key, str) and len(key) > _NAME_CHARACTERS:
            self.forgotten += 1
            return
        self._keys[repr(key)] = None
        if len(self._keys) > self.bound:
            del self._keys[next(iter(self._keys))]
            self.forgotten += 1

    def discard(self, key: IdKey) -> bool:
        """Forget an id that is used again; return whether it was remembered."""
        return bool(self._keys) and self._keys.pop(repr(key), MISSING) is None


@attrs.define(eq=False, repr=False)
class UsedIds:
    """The ids that one side has used: integers as ranges, strings one by one.

    Nearly every peer counts upwards, so that one range holds a whole session. Above `bound` ranges
    or strings the oldest is forgotten and counted; its reuse is not noticed. An unnoticed reuse
    does little harm; a table without a bound does more.

    Keeps OWN-007.

    Attributes:
        bound: The most ranges, and the most strings, that are remembered.
        forgotten: The number of ranges and strings that were forgotten.
        expected: The last integer plus one, which is the id of nearly every next message. A caller
            that sees this id may increase `expected` instead of calling `add`.

    Source: MCP 2025-11-25, basic/index, Requests (an id is never reused within a session).
    """

    bound: int
    forgotten: int = 0
    expected: int = attrs.field(default=0, init=False)
    # The lists begin with an empty range, so that the last range always exists.
    _starts: list[int] = attrs.field(factory=lambda: [0], init=False)
    _ends: list[int] = attrs.field(factory=lambda: [-1], init=False)
    _names: dict[str, None] = attrs.field(factory=dict[str, None], init=False)

    def add(self, key: IdKey) -> bool:
        """Remember `key`; return whether it was known."""
        if isinstance(key, str):
            return self._add_name(key)
        self._ends[-1] = self.expected - 1
        known = self._add_number(key)
        self.expected = self._ends[-1] + 1
        return known

    def __contains__(self, key: IdKey) -> bool:
        """Whether `key` is remembered."""
        if isinstance(key, str):
            return key in self._names
        self._ends[-1] = self.expected - 1
        at = bisect_left(self._ends, key)
        return at < len(self._ends) and self._starts[at] <= key

    def _add_name(self, key: str) -> bool:
        names = self._names
        if len(key) > _NAME_CHARACTERS:
            self.forgotten += 1
            return False
        if key in names:
            return True
        names[key] = None
        if len(names) > self.bound:
            del names[next(iter(names))]
            self.forgotten += 1
        return False

    def _add_number(self, key: int) -> bool:
        starts, ends = self._starts, self._ends
        at = bisect_left(ends, key)  # the first range that ends at or after the key
        if at < len(ends) and starts[at] <= key:
            return True
        joins_left = at > 0 and ends[at - 1] == key - 1
        joins_right = at < len(ends) and starts[at] == key + 1
        if joins_left and joins_right:
            ends[at - 1] = ends.pop(at)
            del starts[at]
        elif joins_left:
            ends[at - 1] = key
        elif joins_right:
            starts[at] = key
        else:
            starts.insert(at, key)
            ends.insert(at, key)
            if len(ends) > self.bound:
                # Ids grow with time: the lowest range is the oldest, unless it is the new one.
                oldest = 1 if at == 0 else 0
                self.forgotten += starts[oldest] <= ends[oldest]
                del starts[oldest], ends[oldest]
        return False
