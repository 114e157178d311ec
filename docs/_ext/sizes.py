"""The sizes of the adapters, measured when the pages are built.

The directive `adapter-sizes` makes a table of the adapters, each with the number of its own lines,
and of lines that it shares with other adapters. Blank lines, comments and docstrings do not count.
"""

from __future__ import annotations

import ast
import functools
import io
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PACKAGE = Path(__file__).parents[2] / "adapters" / "sansmcp_io"
ROOMS = {"h11": ("h11", "_http1")}
"""For an adapter whose code is in several folders or modules, their names."""

NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}


@attrs.frozen
class Size:
    """The size of an adapter: its modules and its lines of code, its own and shared ones."""

    name: str
    own: frozenset[str]
    shared: frozenset[str]
    own_lines: int
    shared_lines: int
    longest: int


def code_lines(source: str) -> int:
    """The number of lines of code in a source text."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                lines.difference_update(range(first.lineno, (first.end_lineno or 0) + 1))
    return len(lines)


def adapters() -> list[str]:
    """The public modules and packages, without the command line."""
    names = {path.stem for path in PACKAGE.glob("*.py")}
    names |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return sorted(name for name in names if not name.startswith("_") and name != "cli")


def source_of(module: str) -> str | None:
    """The source of a module, by its name in the package; None if there is no such module."""
    path = PACKAGE.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file.read_text("utf-8")
    return None


def needs(name: str) -> frozenset[str]:
    """The module, and all modules that it imports, directly or indirectly."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += imports(module)
    return frozenset(found)


@functools.cache
def imports(module: str) -> tuple[str, ...]:
    """The modules of the package that a module imports at run time, not those for type checkers."""
    return tuple(_imports(module))


def _imports(module: str) -> Iterator[str]:
    names = module.split(".")
    yield from (".".join(names[:length]) for length in range(1, len(names)))  # its packages
    package = names if (PACKAGE.joinpath(*names) / "__init__.py").is_file() else names[:-1]
    todo: list[ast.AST] = [ast.parse(source_of(module) or "")]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            todo += node.orelse
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + (node.module or "").split(".")
            start = ".".join(filter(None, base))
            found = [start, *(f"{start}.{alias.name}".lstrip(".") for alias in node.names)]
            yield from (name for name in found if name and source_of(name) is not None)
        else:
            todo += ast.iter_child_nodes(node)


def measure(names: Sequence[str]) -> list[Size]:
    """The size of each adapter: the lines in its own folder, and those that it shares."""
    parts = {name: needs(name) for name in names}
    lines = {
        module: code_lines(source_of(module) or "")
        for module in frozenset[str]().union(*parts.values())
    }

    def total(modules: Iterable[str]) -> int:
        return sum(lines[module] for module in modules)

    sizes: list[Size] = []
    for name, modules in parts.items():
        rooms = ROOMS.get(name, (name,))
        own = frozenset(module for module in modules if module.partition(".")[0] in rooms)
        shared = modules - own
        longest = max(lines[module] for module in own)
        sizes.append(Size(name, own, shared, total(own), total(shared), longest))
    return sizes


class AdapterSizes(SphinxDirective):
    """Shows the sizes of all adapters."""

    def run(self) -> list[nodes.Node]:
        """Return a table: adapter, own modules and lines, shared modules and lines."""
        for path in PACKAGE.rglob("*.py"):
            self.env.note_dependency(str(path))
        group = nodes.tgroup("", cols=5)
        group += [nodes.colspec(colwidth=width) for width in (3, 2, 2, 2, 2)]
        head = ("adapter", "modules of its own", "lines in them", "longest", "lines shared")
        group += nodes.thead("", self._row([nodes.Text(text) for text in head]))
        group += nodes.tbody("", *(self._size(size) for size in measure(adapters())))
        return [nodes.table("", group)]

    def _size(self, size: Size) -> nodes.row:
        numbers = (len(size.own), size.own_lines, size.longest, size.shared_lines)
        name = nodes.literal("", f"sansmcp_io.{size.name}")
        return self._row([name, *(nodes.Text(f"{number:,}") for number in numbers)])

    def _row(self, cells: Iterable[nodes.Node]) -> nodes.row:
        return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive; Sphinx calls this."""
    app.add_directive("adapter-sizes", AdapterSizes)
    return {"version": "1", "parallel_read_safe": True}
