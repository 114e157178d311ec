"""The content of results: blocks, structured content, and forms for peers of older revisions.

Begin with `_blocks` (bytes in, Base64 out) and `_results`. `_values` takes the JSON values of
models and dataclasses, `_adapting` replaces what an older revision does not know, and `_tools` is
for clients that show tools. `_models` chooses a model for sampling, and `_roots` compares URIs.
This room knows `_wire` and `_spec`, and `types` for type checkers.
"""

from __future__ import annotations

from ._adapting import Loss, adapt
from ._blocks import (
    annotate,
    audio,
    embedded_resource,
    image,
    resource_contents,
    resource_link,
    text,
    tool_result,
    tool_use,
)
from ._models import ModelScores, choose_model
from ._results import structured, tool_error
from ._roots import root_contains
from ._tools import ToolHints, display_name, tool_hints
from ._values import as_json

__all__ = [
    "Loss",
    "ModelScores",
    "ToolHints",
    "adapt",
    "annotate",
    "as_json",
    "audio",
    "choose_model",
    "display_name",
    "embedded_resource",
    "image",
    "resource_contents",
    "resource_link",
    "root_contains",
    "structured",
    "text",
    "tool_error",
    "tool_hints",
    "tool_result",
    "tool_use",
]
