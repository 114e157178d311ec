"""The page of rules, made when the pages are built, from the table in the library.

The directive `rules` writes one section per area, with an anchor per rule. The role `rule` links to
a rule, as in {rule}`CANC-004`.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import sansmcp
from docs._ext.sources import url_of
from docs._ext.where import TABLE as WHERE
from docs._ext.where import Entry, read_where, sentence

if TYPE_CHECKING:
    from sphinx.application import Sphinx

TABLE = Path(sansmcp.__file__).parent / "data" / "requirements.csv"
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")

AREAS = {
    "AUTH": "Authorization",
    "BATCH": "Batches",
    "CACHE": "Caching of results",
    "CANC": "Cancellation",
    "CAP": "Capabilities",
    "COMP": "Completion",
    "COMPAT": "Compatibility between eras",
    "DISC": "Discovery",
    "ELIC": "Elicitation",
    "ERR": "Errors",
    "EXT": "Extensions",
    "HDR": "HTTP headers",
    "HSSE": "HTTP with SSE, the transport of 2024-11-05",
    "HTTP": "Streamable HTTP",
    "ICON": "Icons",
    "ID": "Request ids",
    "JSCH": "JSON Schema",
    "JSON": "JSON-RPC messages",
    "LIFE": "Lifecycle",
    "LOG": "Logging",
    "META": "The `_meta` member",
    "MRTR": "Input required",
    "OWN": "Decisions and limits of sansmcp",
    "PAGE": "Pagination",
    "PING": "Ping",
    "PROG": "Progress",
    "PROMPT": "Prompts",
    "RES": "Resources",
    "ROOT": "Roots",
    "SAMP": "Sampling",
    "SEC": "Security",
    "SESS": "HTTP sessions",
    "SSE": "Server-sent events",
    "STATE": "Statelessness",
    "STDIO": "stdio",
    "SUBS": "Subscriptions",
    "TASK": "Tasks",
    "TASKX": "Tasks as an extension",
    "TIME": "Timeouts",
    "TOOL": "Tools",
    "TRANS": "Transports",
    "VER": "Revisions",
    "XTASK": "Tasks of 2026-07-28, in detail",
}


def read_rules() -> dict[str, list[dict[str, str]]]:
    """The rows of the table by area, in the order of the table."""
    areas: dict[str, list[dict[str, str]]] = {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            areas.setdefault(row["id"].rpartition("-")[0], []).append(row)
    return areas


def span(revisions: str) -> str:
    """Revisions as text: `2025-03-26 to 2025-11-25`, or a list where there are gaps."""
    names = revisions.split()
    if not names:
        return ""
    if names == list(REVISIONS):
        return "all revisions"
    if len(names) == 1:
        return names[0]
    first, last = REVISIONS.index(names[0]), REVISIONS.index(names[-1])
    if names == list(REVISIONS[first : last + 1]):
        return f"{names[0]} to {names[-1]}"
    return ", ".join(names)


def page_link(page: str) -> list[nodes.Node]:
    """The page that a rule comes from, with a link if it is a page of the specification."""
    revision, _, path = page.partition("/")
    if revision not in REVISIONS:
        return [nodes.Text(page)]
    return [nodes.reference("", page, refuri=url_of(revision, path))]


class Rules(SphinxDirective):
    """Shows all rules of the table."""

    def run(self) -> list[nodes.Node]:
        """Return one section per area."""
        self.env.note_dependency(str(TABLE))
        self.env.note_dependency(str(WHERE))
        self.where: dict[str, Entry] = read_where()
        areas = read_rules()
        own_first = sorted(areas, key=lambda area: (area != "OWN", area))
        return [self._section(area, areas[area]) for area in own_first]

    def _section(self, area: str, rows: list[dict[str, str]]) -> nodes.section:
        title, _ = self.parse_inline(f"{area}: {AREAS[area]}")
        section = nodes.section(ids=[f"rules-{area.lower()}"], names=[f"rules-{area.lower()}"])
        section += nodes.title("", "", *title)
        listing = nodes.definition_list(classes=["rules"])
        for row in rows:
            listing += self._rule(row)
        section += listing
        return section

    def _rule(self, row: dict[str, str]) -> nodes.definition_list_item:
        name = row["id"]
        domain = self.env.domains.standard_domain
        domain.note_object("rule", name, name, location=self.get_location())
        facts = [row["level"], row["role"], span(row["revisions"])]
        if row["level"] == "OWN":  # it comes from no page of the specification
            facts = [row["role"], span(row["revisions"])]
        term = nodes.term("", "", nodes.literal("", name), ids=[name])
        shown = nodes.inline("", " · ".join(filter(None, facts)), classes=["rule-facts"])
        if row["level"] != "OWN" and row["page"]:
            shown += [nodes.Text(" · "), *page_link(row["page"])]
        term += shown
        term += nodes.reference("", "¶", refid=name, classes=["headerlink"], internal=True)
        return nodes.definition_list_item(
            "",
            term,
            nodes.definition("", nodes.paragraph("", row["text"]), sentence(self.where[name])),
        )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and the role; Sphinx calls this."""
    app.add_object_type("rule", "rule")
    app.add_directive("rules", Rules)
    return {"version": "1", "parallel_read_safe": True}
