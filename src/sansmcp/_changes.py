"""What a server can publish: that a list, or one resource, has changed."""

from __future__ import annotations

from typing import TypeAlias, final

import attrs

from ._values import JSONObject


@final
@attrs.frozen
class ToolsListChanged:
    """The list of tools has changed."""


@final
@attrs.frozen
class PromptsListChanged:
    """The list of prompts has changed."""


@final
@attrs.frozen
class ResourcesListChanged:
    """The list of resources, or of resource templates, has changed."""


@final
@attrs.frozen
class ResourceUpdated:
    """A resource has changed.

    Attributes:
        uri: The resource, as `resources/read` names it.
        subscribed: The resource that was subscribed to, where `uri` is a part of it; only the
            application can know (MCP 2025-11-25, schema, ResourceUpdatedNotification).
    """

    uri: str
    subscribed: str | None = None


Change: TypeAlias = ToolsListChanged | PromptsListChanged | ResourcesListChanged | ResourceUpdated


def change_method(change: Change) -> str:
    """The notification that tells of a change."""
    match change:
        case ToolsListChanged():
            return "notifications/tools/list_changed"
        case PromptsListChanged():
            return "notifications/prompts/list_changed"
        case ResourcesListChanged():
            return "notifications/resources/list_changed"
        case ResourceUpdated():
            return "notifications/resources/updated"


def change_params(change: Change) -> JSONObject | None:
    """The params of that notification."""
    return {"uri": change.uri} if isinstance(change, ResourceUpdated) else None
