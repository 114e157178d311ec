"""How a client shows a tool: its name for people, and its hints with their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from .._wire.values import JSONObject, Record, is_object


def display_name(item: Mapping[str, Any]) -> str:
    """The name of a tool, resource, template, prompt or implementation for people.

    It is `title`, else `annotations.title` (of tools), else `name`. Keeps TOOL-032. The texts come
    from the peer: show them as text, and not as markup. A member of another type, or without a
    visible character, is passed over.

    Returns:
        The name; `""` if there is none.
    """
    for name in (item.get("title"), _annotations(item).get("title"), item.get("name")):
        if isinstance(name, str) and name.strip():
            return name
    return ""


@attrs.frozen(kw_only=True)
class ToolHints(Record):
    """The hints of a tool on its effects. Trust them as much as the server that sent them.

    `destructive` and `idempotent` say something only about a tool that is not `read_only`.

    Attributes:
        read_only: Whether the tool changes nothing.
        destructive: Whether the tool may delete or overwrite data.
        idempotent: Whether a second equal call has no further effect.
        open_world: Whether the tool reaches other systems, such as a web search.
    """

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True


_HINTS: Final = (
    ("readOnlyHint", "read_only"),
    ("destructiveHint", "destructive"),
    ("idempotentHint", "idempotent"),
    ("openWorldHint", "open_world"),
)


def tool_hints(tool: Mapping[str, Any]) -> ToolHints:
    """The hints in the annotations of a tool, with the defaults of the specification.

    Keeps TOOL-031: a hint that is absent, or no boolean, has its default, which is the cautious
    one.
    """
    hints = _annotations(tool)
    found = {name: hints.get(hint) for hint, name in _HINTS}
    return ToolHints(**{name: value for name, value in found.items() if isinstance(value, bool)})


def _annotations(item: Mapping[str, Any]) -> JSONObject:
    """The annotations of a tool; an empty object if the peer sends something else."""
    found: object = item.get("annotations")
    return found if is_object(found) else {}
