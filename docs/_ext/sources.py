"""Links pages of the specification that are named after "Source: MCP <revision>,"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SPECIFICATION = "https://modelcontextprotocol.io/specification"
_PLACE = re.compile(
    r"(?P<revision>20\d\d-\d\d-\d\d)"
    r"|(?<![\w/])(?P<page>(?:architecture|basic|client|server)(?:/[a-z-]+)+|schema|changelog)(?![\w/])"
)


def url_of(revision: str, page: str) -> str:
    """The URL of a page in a revision. The URL of an index page is that of its folder."""
    path = re.sub(r"(^|/)index$", "", page)
    return f"{SPECIFICATION}/{revision}/{path}".rstrip("/")


def linked(text: str) -> list[nodes.Node]:
    """The text with a link for each page. A revision counts for all pages after it."""
    found: list[nodes.Node] = []
    revision, end = "", 0
    for place in _PLACE.finditer(text):
        if place["revision"]:
            revision = place["revision"]
        elif revision:
            found.append(nodes.Text(text[end : place.start()]))
            address = url_of(revision, place["page"])
            found.append(nodes.reference("", place["page"], refuri=address))
            end = place.end()
    return [*found, nodes.Text(text[end:])]


def link_sources(app: Sphinx, doctree: nodes.document) -> None:
    """Link the pages in all paragraphs that name a source."""
    for paragraph in list(doctree.findall(nodes.paragraph)):
        if "Source: MCP " not in paragraph.astext():
            continue
        is_behind = False  # whether the text follows "Source: MCP"
        for node in list(paragraph.findall(nodes.Text)):
            before, mark, source = node.partition("Source: MCP ")
            if is_behind:
                node.parent.replace(node, linked(str(node)))
            elif mark:
                is_behind = True
                node.parent.replace(node, [nodes.Text(before + mark), *linked(source)])


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the function to its event; Sphinx calls this."""
    app.connect("doctree-read", link_sources)
    return {"version": "1", "parallel_read_safe": True}
