"""The places where each rule is kept: the table `docs/where.csv`, and what the pages show of it.

The directive `where-areas` makes a table with a row for each area of rules. `python -m
docs._ext.where` lists faults of the table: places that do not exist or do not name the rule, and
functions that name the rule but are not listed.
"""

from __future__ import annotations

import ast
import csv
import functools
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT: Final = Path(__file__).parents[2]
TABLE: Final = ROOT / "docs" / "where.csv"
PACKAGES: Final = {"sansmcp": ROOT / "src", "sansmcp_io": ROOT / "adapters"}
PAGE: Final = ROOT / "docs" / "where.md"
TRAILS: Final = ("On a byte stream", "Over HTTP", "Through an adapter")
"""The headings of the page that have a list of functions which a request passes."""
STEP: Final = re.compile(r"^[0-9]+\. `([^`]+)`", re.MULTILINE)
DOCSTRING: Final = re.compile(r' *""".*?"""', re.DOTALL)
"""The docstring of a constant, below its assignment."""
RULE_ID: Final = re.compile(r"\b(?!SHA-)[A-Z]{2,}-[0-9]{3}\b")

EVERYWHERE: Final = frozenset({"OWN-014", "OWN-020", "OWN-022", "OWN-025"})
"""Rules that many functions keep: their rows have only the functions that most others call."""

KINDS: Final = {
    "function": "Kept by",
    "construction": "Holds by construction, in",
    "helper": "A duty of the application, with a helper:",
    "application": "A duty of the application.",
    "host": "A duty of the host, which runs the model and talks to the user.",
    "authorization server": "A duty of the authorization server, which is not part of the library.",
    "not enforced": "Not enforced.",
}
"""The ways in which rules are kept, with the words for each on the page of rules."""
NAMED: Final = ("function", "helper")
"""The ways whose places are functions that name the rule."""


@attrs.frozen
class Entry:
    """One row of the table.

    Attributes:
        kept: A key of `KINDS`.
        places: Full names of functions, classes and constants, the most important first.
        note: With `construction`, the reason why the rule holds; else a remark, or nothing.
    """

    kept: str
    places: tuple[str, ...]
    note: str


def read_where() -> dict[str, Entry]:
    """The entries by the ids of their rules, in the order of the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {
            row["id"]: Entry(row["kept"], tuple(row["places"].split()), row["note"])
            for row in csv.DictReader(file, strict=True)
        }


def module_of(place: str) -> str:
    """The longest part of a full name that is a module."""
    parts = place.split(".")
    while len(parts) > 1 and file_of(parts) is None:
        parts.pop()
    return ".".join(parts)


def file_of(parts: Sequence[str]) -> Path | None:
    """The file of a module, by the parts of its name."""
    base = PACKAGES.get(parts[0])
    if base is None:
        return None
    path = base.joinpath(*parts)
    found = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in found if file.is_file()), None)


@functools.cache
def parsed(file: Path) -> tuple[str, ast.Module]:
    """The text of a file, and its syntax tree."""
    text = file.read_text("utf-8")
    return text, ast.parse(text)


def named(node: ast.AST) -> str | None:
    """The name that a statement defines, if it is a definition or an assignment."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            return None


def source_of(place: str) -> str | None:
    """The source of a place, with comments right above it and the constants that it uses.

    None if the place does not exist.
    """
    module = module_of(place)
    file = file_of(module.split("."))
    if file is None:
        return None
    text, tree = parsed(file)
    node: ast.AST = tree
    for name in filter(None, place[len(module) :].split(".")):
        body: list[ast.stmt] = getattr(node, "body", [])
        found = next((one for one in body if named(one) == name), None)
        if found is None:
            return None
        node = found
    parts = [text_of(text, node)]
    used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    parts += (
        text_of(text, one)
        for one in tree.body
        if isinstance(one, ast.Assign | ast.AnnAssign) and named(one) in used
    )
    return "\n".join(parts)


def text_of(text: str, node: ast.AST) -> str:
    """The lines of a statement, with the comment above it and the docstring of a constant."""
    if not isinstance(node, ast.stmt):
        return text
    lines = text.splitlines()
    first = node.lineno - 1
    while first and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    end = node.end_lineno or node.lineno
    if isinstance(node, ast.Assign | ast.AnnAssign):
        docstring = DOCSTRING.match("\n".join(lines[end:]))
        end += 0 if docstring is None else docstring[0].count("\n") + 1
    return "\n".join(lines[first:end])


@functools.cache
def index() -> dict[str, dict[str, bool]]:
    """For each rule, the innermost functions, classes and constants whose source names it.

    The value of each tells whether it is a function.
    """
    found: dict[str, dict[str, bool]] = {}
    for package, base in PACKAGES.items():
        for file in sorted((base / package).rglob("*.py")):
            text, tree = parsed(file)
            parts = file.relative_to(base).with_suffix("").parts
            prefix = ".".join(part for part in parts if part != "__init__")
            for rule in sorted(set(RULE_ID.findall(text))):
                found.setdefault(rule, {}).update(_within(tree, prefix, text, rule))
    return found


def _within(node: ast.AST, prefix: str, text: str, rule: str) -> Iterator[tuple[str, bool]]:
    for one in ast.iter_child_nodes(node):
        name = named(one)
        if name is None or not re.search(rf"\b{rule}\b", text_of(text, one)):
            continue
        is_function = isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
        inner = [] if is_function else list(_within(one, f"{prefix}.{name}", text, rule))
        yield from inner or [(f"{prefix}.{name}", is_function)]


def unlisted(rule: str, entry: Entry) -> list[str]:
    """The functions of `sansmcp` that name a rule, but are not in its row, nor their class."""
    if rule in EVERYWHERE or entry.kept not in NAMED:
        return []
    return [
        place
        for place, is_function in index().get(rule, {}).items()
        if is_function
        and place.startswith("sansmcp.")
        and not any(place == row or place.startswith(f"{row}.") for row in entry.places)
    ]


def trail_under(heading: str) -> list[str]:
    """The functions in a numbered list of `docs/where.md`, in order."""
    section = PAGE.read_text("utf-8").partition(f"### {heading}\n")[2].partition("\n#")[0]
    return STEP.findall(section)


def main() -> int:
    """List the places that do not exist or do not name their rule, and others that name it."""
    faults = 0
    for heading in TRAILS:
        for place in trail_under(heading):
            if source_of(place) is None:
                faults += 1
                print(f"docs/where.md, {heading}: {place} is not there")
    for rule, entry in read_where().items():
        for place in entry.places:
            source = source_of(place)
            if source is None or (entry.kept in NAMED and rule not in source):
                faults += 1
                why = "is not there" if source is None else "does not name it"
                print(f"{rule}: {place} {why}; named by: {' '.join(index().get(rule, ()))}")
        for place in unlisted(rule, entry):
            faults += 1
            print(f"{rule}: {place} names it, and is not in its row")
        if entry.kept == "construction" and not entry.note:
            faults += 1
            print(f"{rule}: the row does not say why it holds")
    return min(faults, 1)


# ----------------------------------------------------------------------------- writing nodes


def sentence(entry: Entry) -> nodes.paragraph:
    """The sentence on the page of rules that tells where a rule is kept."""
    paragraph = nodes.paragraph("", "", nodes.Text(KINDS[entry.kept]), classes=["rule-kept"])
    for index, place in enumerate(entry.places):
        paragraph += nodes.Text(", " if index else " ")
        paragraph += nodes.literal("", place)
    if entry.places:
        paragraph += nodes.Text(".")
    if entry.note:
        parts = re.split(r"`([^`]+)`", f" {entry.note}")
        for index, part in enumerate(parts):
            paragraph += nodes.literal("", part) if index % 2 else nodes.Text(part)
    return paragraph


def areas(entries: dict[str, Entry]) -> dict[str, tuple[Counter[str], Counter[str]]]:
    """For each area of rules, the number of rules that are kept in each way, and in each module."""
    found: dict[str, tuple[Counter[str], Counter[str]]] = {}
    for rule, entry in entries.items():
        kinds, modules = found.setdefault(rule.partition("-")[0], (Counter(), Counter()))
        kinds[entry.kept] += 1
        modules.update({module_of(place) for place in entry.places})
    return dict(sorted(found.items()))


class WhereAreas(SphinxDirective):
    """Shows all areas of rules, with the ways and the places in which they are kept."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        self.env.note_dependency(str(TABLE))
        head = ["area", *KINDS, "most of it in"]
        group = nodes.tgroup("", cols=len(head))
        group += [nodes.colspec(colwidth=width) for width in (2, 1, 1, 1, 1, 1, 1, 1, 6)]
        group += nodes.thead("", row(*(nodes.Text(text) for text in head)))
        body = nodes.tbody()
        total: Counter[str] = Counter()
        for area, (kinds, modules) in areas(read_where()).items():
            total += kinds
            uri = self.env.app.builder.get_relative_uri(self.env.docname, "rules")
            link = nodes.reference("", area, refuri=f"{uri}#rules-{area.lower()}", internal=True)
            often = [nodes.literal("", module) for module, _ in modules.most_common(3)]
            shown = nodes.inline()
            for index, literal in enumerate(often):
                shown += [nodes.Text(", " if index else ""), literal]
            body += row(link, *(nodes.Text(str(kinds[kind] or "")) for kind in KINDS), shown)
        sums = (nodes.Text(str(total[kind])) for kind in KINDS)
        body += row(nodes.Text("all"), *sums, nodes.Text(""))
        group += body
        return [nodes.table("", group)]


def row(*cells: nodes.Node) -> nodes.row:
    """A row of a table."""
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive; Sphinx calls this."""
    app.add_directive("where-areas", WhereAreas)
    return {"version": "1", "parallel_read_safe": True}


if __name__ == "__main__":
    sys.exit(main())
