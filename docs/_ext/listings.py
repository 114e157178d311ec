"""Removes the blank lines after the last line of code of a listing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def trim(app: Sphinx, doctree: nodes.document) -> None:
    """Remove blank lines from the end of each listing."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip("\n")
        block.rawsource = text
        block.children[:] = [nodes.Text(text)]


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the function to its event; Sphinx calls this."""
    app.connect("doctree-read", trim)
    return {"version": "1", "parallel_read_safe": True}
