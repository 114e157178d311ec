"""Sets of subscribed resource URIs, in which each URI also covers the parts of its resource."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

import attrs

from .._wire.values import Record


def _without_parts(uris: Iterable[str]) -> tuple[str, ...]:
    """The URIs in order, without those that begin with another URI of the set."""
    kept: list[str] = []
    for uri in sorted(uris):
        if not kept or not uri.startswith(kept[-1]):
            kept.append(uri)
    return tuple(kept)


@attrs.frozen
class Resources(Record):
    """The URIs that a subscription names; each also covers all URIs that begin with it.

    Only the server knows the parts of a resource, so every longer URI may be a part of it.

    Keeps RES-009.
    """

    _roots: tuple[str, ...] = attrs.field(default=(), converter=_without_parts)
    """The URIs in order; none begins with another. Only the last one up to a URI can cover it."""

    def covers(self, uri: str) -> bool:
        """Whether an update of this URI may be sent.

        The cost grows with the logarithm of the number of URIs.
        """
        place = bisect_right(self._roots, uri)
        return place > 0 and uri.startswith(self._roots[place - 1])


NO_RESOURCES: Final = Resources()
