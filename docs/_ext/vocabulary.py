"""The page of types, made when the pages are built, from the source of `sansmcp.types`.

The directive `vocabulary` writes one section per module, and one entry per definition. It reads the
source, since the types in it still have their names, which the objects have lost. The role `mcp`
links to an entry, as in {mcp}`Tool`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import sansmcp.types

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = Path(sansmcp.types.__file__).parent
FIRST = ("_marks", "_json", "capabilities", "base", "content", "tools", "calling")
PARTS = "_parts"  # its definitions are shown as parts of others


@attrs.frozen
class Key:
    """A key of a TypedDict."""

    name: str
    type: str
    required: bool
    facts: list[str]
    text: str


@attrs.frozen
class Definition:
    """A class or an alias, with its keys, its bases and its docstring."""

    name: str
    text: str
    facts: list[str]
    type: str = ""
    bases: list[str] = attrs.field(factory=list[str])
    keys: list[Key] = attrs.field(factory=list[Key])


# ---------------------------------------------------------------------------- reading source


def fact_of(mark: ast.expr) -> str:
    """The meaning of a mark in words."""
    assert isinstance(mark, ast.Call)
    assert isinstance(mark.func, ast.Name)
    given = [ast.unparse(argument).strip("'") for argument in mark.args]
    match mark.func.id, given:
        case "Since", [first]:
            return f"since {first}"
        case "Until", [last]:
            return f"until {last}"
        case "In", [only]:
            return f"only {only}"
        case "RequiredIn", revisions:
            return f"required in {', '.join(revisions)}"
        case "As", [kind]:
            until = "".join(f" until {ast.literal_eval(word.value)}" for word in mark.keywords)
            return f"by the schema{until} {kind}"
        case other:
            raise ValueError(f"no words for {other}")


def read_type(node: ast.expr) -> tuple[str, bool, list[str]]:
    """The type inside its marks, whether it is `Required`, and the meanings of its marks."""
    required, facts = False, list[str]()
    while isinstance(node, ast.Subscript):
        match ast.unparse(node.value).removeprefix("typing."), node.slice:
            case "Required", inner:
                required, node = True, inner
            case "Annotated", ast.Tuple(elts=[inner, *marks]):
                facts += [fact_of(mark) for mark in marks]
                node = inner
            case _:
                break
    return ast.unparse(node).replace("'", '"'), required, facts


def text_below(body: list[ast.stmt], index: int) -> str:
    """The string below a statement, on one line."""
    match body[index + 1 : index + 2]:
        case [ast.Expr(value=ast.Constant(value=str(text)))]:
            return " ".join(text.split())
        case _:
            return ""


def read_class(node: ast.ClassDef) -> Definition:
    """The definition in a class statement."""
    total = not any(word.arg == "total" for word in node.keywords)
    keys = list[Key]()
    for index, statement in enumerate(node.body):
        if isinstance(statement, ast.AnnAssign):
            kind, required, facts = read_type(statement.annotation)
            name = ast.unparse(statement.target)
            keys.append(Key(name, kind, required or total, facts, text_below(node.body, index)))
    return Definition(
        node.name,
        " ".join((ast.get_docstring(node) or "").split()),
        [fact_of(mark) for mark in node.decorator_list if "attrs" not in ast.unparse(mark)],
        bases=[ast.unparse(base) for base in node.bases if ast.unparse(base) != "TypedDict"],
        keys=keys,
    )


def read_module(path: Path) -> tuple[str, list[Definition]]:
    """The title of a module, and its definitions."""
    tree = ast.parse(path.read_text("utf-8"))
    found: list[Definition] = []
    for index, node in enumerate(tree.body):
        match node:
            case ast.ClassDef():
                found.append(read_class(node))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                kind, _, facts = read_type(value)
                found.append(Definition(name, text_below(tree.body, index), facts, type=kind))
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Name(id="TypedDict"), args=[_, ast.Dict(names, values)]),
            ):
                keys = [
                    Key(ast.literal_eval(key), *read_type(value), "")
                    for key, value in zip(names, values, strict=True)
                    if key is not None
                ]
                found.append(Definition(name, text_below(tree.body, index), [], keys=keys))
            case ast.Expr(value=ast.Call(func=ast.Call() as mark, args=[ast.Name(id=name)])) if (
                found and found[-1].name == name
            ):
                found[-1].facts.append(fact_of(mark))
            case _:
                pass
    title = (ast.get_docstring(tree) or "").partition("\n")[0].rstrip(".")
    return title, found


def read_vocabulary() -> dict[str, tuple[str, list[Definition]]]:
    """All modules by name, in the order of the page, with their public definitions.

    A private definition is merged into those that are built from it.
    """
    names = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    modules = {name: read_module(FOLDER / f"{name}.py") for name in names}
    everything = {one.name: one for _, found in modules.values() for one in found}

    def whole(one: Definition) -> Definition:
        keys, bases = list(one.keys), list[str]()
        for base in one.bases:
            if base in sansmcp.types.__all__ or base not in everything:
                bases.append(base)
            else:
                part = whole(everything[base])
                keys, bases = [*part.keys, *keys], [*part.bases, *bases]
        return attrs.evolve(one, keys=keys, bases=bases)

    order = sorted(names, key=lambda name: (name not in FIRST, (*FIRST, name).index(name), name))
    return {
        name: (
            modules[name][0],
            [whole(one) for one in modules[name][1] if one.name in sansmcp.types.__all__],
        )
        for name in order
        if name != PARTS
    }


# ----------------------------------------------------------------------------- writing nodes


class Vocabulary(SphinxDirective):
    """Shows all definitions of `sansmcp.types`."""

    def run(self) -> list[nodes.Node]:
        """Return one section per module."""
        for path in FOLDER.glob("*.py"):
            self.env.note_dependency(str(path))
        return [
            self._section(name, title, found) for name, (title, found) in read_vocabulary().items()
        ]

    def _section(self, name: str, title: str, found: list[Definition]) -> nodes.section:
        anchor = f"types-{name.strip('_')}"
        section = nodes.section(ids=[anchor], names=[anchor])
        section += nodes.title("", "", *self._inline(title))
        listing = nodes.definition_list(classes=["rules"])
        for one in found:
            listing += self._entry(one)
        section += listing
        return section

    def _entry(self, one: Definition) -> nodes.definition_list_item:
        domain = self.env.domains.standard_domain
        domain.note_object("mcp", one.name, f"mcp-{one.name}", location=self.get_location())
        term = nodes.term("", "", nodes.literal("", one.name), ids=[f"mcp-{one.name}"])
        term += nodes.inline("", " · ".join(one.facts), classes=["rule-facts"])
        content = nodes.definition("", nodes.paragraph("", "", *self._inline(one.text)))
        if one.type:
            content += nodes.paragraph("", "", nodes.literal("", one.type))
        if one.bases:
            parts = ", ".join(f"`{base}`" for base in one.bases)
            content += nodes.paragraph("", "", *self._inline(f"All of {parts}, and:"))
        if one.keys:
            content += nodes.bullet_list("", *(self._key(key) for key in one.keys))
        return nodes.definition_list_item("", term, content)

    def _key(self, key: Key) -> nodes.list_item:
        name = nodes.literal("", key.name)
        line = nodes.paragraph("", "", nodes.strong("", "", name) if key.required else name)
        line += [nodes.Text(": "), nodes.literal("", key.type)]
        line += nodes.inline(
            "", "".join(f" · {fact}" for fact in key.facts), classes=["rule-facts"]
        )
        if key.text:
            line += [nodes.Text(" "), *self._inline(key.text)]
        return nodes.list_item("", line)

    def _inline(self, text: str) -> Iterator[nodes.Node]:
        found, _ = self.parse_inline(text)
        yield from found


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and the role; Sphinx calls this."""
    app.add_object_type("mcp", "mcp")
    app.add_directive("vocabulary", Vocabulary)
    return {"version": "1", "parallel_read_safe": True}
