"""Sets of resource URIs, of which each also stands for the parts of its resource."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

import attrs

from .._wire.values import Record


def _without_parts(uris: Iterable[str]) -> tuple[str, ...]:
    """The URIs in order, without those that continue another one of them."""
    kept: list[str] = []
    for uri in sorted(uris):
        if not kept or not uri.startswith(kept[-1]):
            kept.append(uri)
    return tuple(kept)


@attrs.frozen
class Resources(Record):
    """URIs that a subscription names. A URI that continues one of them is covered by it.

    Only the server knows what is part of a resource, so any continuation may be a part of it.

    Keeps RES-009.
    """

    _roots: tuple[str, ...] = attrs.field(default=(), converter=_without_parts)
    """In order, and none continues another: only the last root up to a URI can cover that."""

    def covers(self, uri: str) -> bool:
        """Whether an update of this URI may be sent.

        The cost grows with the logarithm of the number of URIs.
        """
        place = bisect_right(self._roots, uri)
        return place > 0 and uri.startswith(self._roots[place - 1])


NO_RESOURCES: Final = Resources()
