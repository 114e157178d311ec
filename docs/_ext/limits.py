"""The page of limits and defaults, made at build time from the fields of `sansmcp.Config`.

The role `limit` links to one field, as in {limit}`max_pages`; so does `Config.max_pages` as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs
from docutils import nodes
from sphinx import addnodes
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

import sansmcp

if TYPE_CHECKING:
    from sphinx.application import Sphinx

RULE = re.compile(r"\b([A-Z]+-\d{3})\b")


def explanations() -> dict[str, str]:
    """The docstring of each field, as one line."""
    documented = ModuleAnalyzer.for_module(sansmcp.Config.__module__).find_attr_docs()
    return {
        name: " ".join(line.strip() for line in lines).strip()
        for (owner, name), lines in documented.items()
        if owner == "Config"
    }


def default_of(field: attrs.Attribute[Any]) -> nodes.Text | nodes.literal:
    """A default value for readers: bytes in MiB, thousands with commas, other values as code."""
    value: object = getattr(sansmcp.Config(), field.name)
    match value:
        case bool():
            return nodes.literal("", str(value))
        case int() if field.name.endswith("_bytes") and value % 2**20 == 0:
            return nodes.Text(f"{value // 2**20} MiB")
        case int():
            return nodes.Text(f"{value:,}")
        case None | str():
            return nodes.literal("", repr(value))
        case float():
            return nodes.Text(f"{value:g}")
        case frozenset() if not value:
            return nodes.Text("none of them")
        case tuple() if not value:
            return nodes.Text("none")
        case _:
            return nodes.literal("", type(value).__name__)


class Limits(SphinxDirective):
    """Shows all fields of `Config`."""

    def run(self) -> list[nodes.Node]:
        """Return a table with the field, the default and the meaning."""
        assert sansmcp.Config.__module__ == "sansmcp._connection.config"
        self.env.note_dependency(ModuleAnalyzer.for_module("sansmcp._connection.config").srcname)
        texts = explanations()
        group = nodes.tgroup("", cols=3)
        group += [nodes.colspec(colwidth=width) for width in (3, 2, 8)]
        head = ("setting", "default", "what it does")
        group += nodes.thead(
            "", nodes.row("", *(nodes.entry("", nodes.paragraph("", text)) for text in head))
        )
        fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(sansmcp.Config)
        group += nodes.tbody("", *(self._row(field, texts[field.name]) for field in fields))
        return [nodes.table("", group, classes=["limits"])]

    def _row(self, field: attrs.Attribute[Any], text: str) -> nodes.row:
        domain = self.env.domains.standard_domain
        domain.note_object("limit", field.name, field.name, location=self.get_location())
        name = nodes.paragraph("", "", nodes.literal("", field.name))
        meaning = nodes.paragraph("", "", *self._linked(text))
        return nodes.row(
            "",
            nodes.entry("", name, ids=[field.name]),
            nodes.entry("", nodes.paragraph("", "", default_of(field))),
            nodes.entry("", meaning),
        )

    def _linked(self, text: str) -> Iterator[nodes.Node]:
        """A text with links from its rule ids to the page of rules."""
        for index, part in enumerate(RULE.split(text)):
            if index % 2:
                link = addnodes.pending_xref(
                    "", refdomain="std", reftype="rule", reftarget=part, refdoc=self.env.docname
                )
                link += nodes.literal("", part)
                yield link
            elif part:
                inline, _ = self.parse_inline(part)
                yield from inline


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and the role; Sphinx calls this."""
    app.add_object_type("limit", "limit")
    app.add_directive("limits", Limits)
    return {"version": "1", "parallel_read_safe": True}
