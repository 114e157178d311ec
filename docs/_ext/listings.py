"""Listings end with their last line of code, not with the blank lines behind it in the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def trim(app: Sphinx, doctree: nodes.document) -> None:
    """Take blank lines from the end of each listing."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip("\n")
        block.rawsource = text
        block.children[:] = [nodes.Text(text)]


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("doctree-read", trim)
    return {"version": "1", "parallel_read_safe": True}
