"""The filter of a subscription: the changes that it names, and the resources that it covers.

Source: MCP 2026-07-28, basic/patterns/subscriptions; MCP 2025-11-25, server/resources,
Subscriptions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from .._spec.errors import ErrorCode
from .._wire.values import JSONObject, Record, is_list_of_strings
from .sending import Breach

RESOURCES: Final = "resourceSubscriptions"
"""The member with the URIs in the filter of a subscription."""

TASK_IDS: Final = "taskIds"
"""The member with the ids of tasks, of the extension for tasks."""

FILTERS: Final = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/resources/updated": RESOURCES,
    "notifications/tasks": TASK_IDS,
}
"""By notification: the member in the filter of a subscription that asks for it."""


def judge_filter(value: JSONObject) -> Breach | None:
    """Return the breach if a known member of a filter is not valid; else None."""
    for name in ("toolsListChanged", "promptsListChanged", "resourcesListChanged"):
        if not isinstance(value.get(name, False), bool):
            return Breach("OWN-014", f"{name} is no boolean", ErrorCode.INVALID_PARAMS)
    for name in (RESOURCES, TASK_IDS):
        if not is_list_of_strings(value.get(name, [])):
            text = f"{name} is no list of strings"
            return Breach("OWN-014", text, ErrorCode.INVALID_PARAMS)
    return None


def judge_honoured(asked: Mapping[str, Any], honoured: JSONObject) -> Breach | None:
    """Return the breach if an acknowledged filter has more than the requested one; else None."""
    for name in FILTERS.values():
        value: Any = honoured.get(name)
        wish: Any = asked.get(name)
        beyond = value and not wish
        if value.__class__ is list:
            beyond = not set(value).issubset(wish or ())
        if beyond:
            text = f"the acknowledgement grants more of {name} than was asked for"
            return Breach("SUBS-007", text, tolerated=True)
    return None


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
