"""The changes that a server can publish: a list has changed, or one resource has changed."""

from __future__ import annotations

from typing import Final, TypeAlias, final

import attrs

from ..._wire.values import JSONObject, Record


@final
@attrs.frozen
class ToolsListChanged(Record):
    """The list of tools has changed."""


@final
@attrs.frozen
class PromptsListChanged(Record):
    """The list of prompts has changed."""


@final
@attrs.frozen
class ResourcesListChanged(Record):
    """The list of resources, or of resource templates, has changed."""


@final
@attrs.frozen
class ResourceUpdated(Record):
    """A resource has changed.

    Attributes:
        uri: The URI of the resource, as in `resources/read`.
        subscribed: The URI of the subscription, if `uri` is a part of that resource. Only the
            application knows which resource has which parts (MCP 2025-11-25, schema,
            ResourceUpdatedNotification).
    """

    uri: str
    subscribed: str | None = None


Change: TypeAlias = ToolsListChanged | PromptsListChanged | ResourcesListChanged | ResourceUpdated


_METHODS: Final[dict[type[Change], str]] = {
    ToolsListChanged: "notifications/tools/list_changed",
    PromptsListChanged: "notifications/prompts/list_changed",
    ResourcesListChanged: "notifications/resources/list_changed",
    ResourceUpdated: "notifications/resources/updated",
}


_NAMES: Final = [kind.__name__ for kind in _METHODS]


def change_method(change: Change) -> str:
    """The method of the notification for a change."""
    try:
        return _METHODS[type(change)]
    except KeyError:
        raise TypeError(f"a change is one of {', '.join(_NAMES)}, not {change!r:.40}") from None


def change_params(change: Change) -> JSONObject | None:
    """The params of the notification for a change; None if it has none."""
    return {"uri": change.uri} if isinstance(change, ResourceUpdated) else None
