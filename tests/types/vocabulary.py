"""The types of a revision in one form, from `sansmcp.types` and from the official schema.

A shape is the set of alternatives that a type allows, with all names resolved. Shapes of both
sources are equal exactly if keys, requiredness, types and enums are. Descriptions, formats and
bounds of numbers are no part of it; neither is whether an object may have further members, which
is so everywhere, by JSON Schema as by `TypedDict`.
"""

import types
from collections.abc import Iterable, Iterator, Mapping
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import attrs

import sansmcp.types
from sansmcp.types import As, In, Mark, RequiredIn, Since, Until
from tests.support.judges.schema import REVISIONS, schema_of

Shape = frozenset["Atom"]


@attrs.frozen
class Plain:
    """A JSON type without parts, or `any`."""

    name: str


@attrs.frozen
class Constant:
    """One string or number."""

    value: str | int


@attrs.frozen
class Array:
    """A list of something."""

    items: Shape


@attrs.frozen
class Member:
    """A key of an object."""

    name: str
    required: bool
    shape: Shape


@attrs.frozen
class Object:
    """An object with members, and with a type for those that have other names, if it has one."""

    members: frozenset[Member]
    others: Shape | None = None


Atom = Plain | Constant | Array | Object

ANY: Final[Shape] = frozenset({Plain("any")})
PLAIN: Final[Mapping[object, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


def united(shapes: Iterable[Shape]) -> Shape:
    """The alternatives of several shapes; every integer is a number."""
    atoms = frozenset[Atom]().union(*shapes)
    return atoms - {Plain("integer")} if Plain("number") in atoms else atoms


def map_of(values: Shape) -> Shape:
    """An object with any keys; one whose values are anything, too, is just an object."""
    return frozenset({Object(frozenset(), None if values == ANY else values)})


# ------------------------------------------------------------------------------------- ours

# What no schema has: the parts of the overloads over method names.
FOR_OVERLOADS: Final = {
    "CallToolTaskParams",
    "CreateMessageTaskParams",
    "ElicitTaskFormParams",
    "ElicitTaskParams",
    "ElicitTaskURLParams",
    "ParamsDoNotFit",
    "UncheckedParams",
    "WrittenOutParams",
}


def exists(marks: Iterable[object], revision: str) -> bool:
    """Whether what has these marks exists in a revision."""
    for mark in marks:
        match mark:
            case Since(first) if revision < first:
                return False
            case Until(last) if revision > last:
                return False
            case In(only) if revision != only:
                return False
            case _:
                pass
    return True


def peeled(kind: Any) -> tuple[Any, tuple[object, ...]]:
    """A type without `Required`, `NotRequired` and `Annotated`, and its marks."""
    marks: tuple[object, ...] = ()
    while True:
        if get_origin(kind) is Annotated:
            kind, found = kind.__origin__, kind.__metadata__
            marks += found
        elif get_origin(kind) in (Required, NotRequired):
            (kind,) = get_args(kind)
        else:
            return kind, marks


def marks_of(definition: object) -> tuple[object, ...]:
    """The marks of a definition, be it a class or an alias."""
    return (*getattr(definition, "__marks__", ()), *peeled(definition)[1])


def definitions() -> dict[str, Any]:
    """What the package offers, but for the marks themselves and what only overloads need."""
    offered = {name: getattr(sansmcp.types, name) for name in sansmcp.types.__all__}
    return {
        name: value
        for name, value in offered.items()
        if not (isinstance(value, type) and issubclass(value, Mark)) and name not in FOR_OVERLOADS
    }


def typed_dicts() -> dict[str, Any]:
    """The TypedDicts among them, without aliases of other ones."""
    return {
        name: value
        for name, value in definitions().items()
        if is_typeddict(value) and value.__name__ == name
    }


@attrs.define
class Vocabulary:
    """`sansmcp.types` in one revision.

    Attributes:
        met: The TypedDicts that any shape asked for consists of.
    """

    revision: str
    met: set[str] = attrs.field(factory=set[str])

    def shape(self, kind: Any) -> Shape | None:
        """The shape of a type; None where the revision does not have it."""
        kind, marks = peeled(kind)
        if not exists(marks, self.revision):
            return None
        for mark in marks:
            if isinstance(mark, As) and (mark.until is None or self.revision <= mark.until):
                kind = mark.type
        if kind is Any:
            return ANY
        if kind in PLAIN:
            return frozenset({Plain(PLAIN[kind])})
        if is_typeddict(kind):
            return self._object(kind)
        parts: tuple[Any, ...] = get_args(kind)
        match get_origin(kind):
            case origin if origin is Union or origin is types.UnionType:
                shapes = [shape for part in parts if (shape := self.shape(part)) is not None]
                return united(shapes) or None
            case origin if origin is Literal:
                return frozenset(Constant(value) for value in parts)
            case origin if origin is list:
                items = self.shape(parts[0])
                return None if items is None else frozenset({Array(items)})
            case origin if origin is dict:
                assert parts[0] is str, kind
                values = self.shape(parts[1])
                return None if values is None else map_of(values)
            case _:
                raise TypeError(f"{kind!r} has no shape")

    def _object(self, definition: Any) -> Shape | None:
        if not exists(marks_of(definition), self.revision):
            return None
        self.met.add(definition.__name__)
        members = set[Member]()
        for name, kind in get_type_hints(definition, include_extras=True).items():
            shape = self.shape(kind)
            if shape is not None:
                required = name in definition.__required_keys__ or any(
                    isinstance(mark, RequiredIn) and self.revision in mark.revisions
                    for mark in peeled(kind)[1]
                )
                members.add(Member(name, required, shape))
        return frozenset({Object(frozenset(members))})


# ----------------------------------------------------------------------------------- theirs

# What the form leaves out on purpose. An unknown keyword is an error, so that none is overlooked.
REMARKS: Final = frozenset({"description", "format", "minimum", "maximum", "maxItems", "default"})


@attrs.define
class Official:
    """The official schema of one revision."""

    revision: str
    _known: dict[str, Shape] = attrs.field(factory=dict[str, Shape])

    @property
    def definitions(self) -> Mapping[str, Any]:
        return schema_of(self.revision).definitions

    def named(self, name: str) -> Shape:
        """The shape of a definition."""
        if name not in self._known:
            self._known[name] = self.shape(self.node(name))
        return self._known[name]

    def shape(self, node: Mapping[str, Any]) -> Shape:
        """The shape of a node of the schema."""
        match {key: value for key, value in node.items() if key not in REMARKS}:
            case {"$ref": str(ref), **rest} if not rest:
                name = ref.rpartition("/")[2]
                return ANY if name == "JSONValue" else self.named(name)  # which is recursive
            case {"const": value, **rest} if rest.keys() <= {"type"}:
                return frozenset({Constant(value)})
            case {"enum": values, **rest} if rest.keys() <= {"type"}:
                return frozenset(Constant(value) for value in values)
            case {"anyOf": parts, **rest} if not rest:
                return united(self.shape(part) for part in parts)
            case {"allOf": parts, **rest} if not rest:
                return frozenset({self._merged(parts)})
            case {"type": "array", "items": items, **rest} if not rest:
                return frozenset({Array(self.shape(items))})
            case {"type": "object", **rest}:
                return frozenset({self._object(rest)})
            case {"properties": _, **_rest} as whole:
                return frozenset({self._object(whole)})
            case {"type": names, **rest} if not rest:
                several: list[str] = [names] if isinstance(names, str) else names
                return united(frozenset({Plain(name)}) for name in several)
            case empty if not empty:
                return ANY
            case other:
                raise TypeError(f"{other!r} has no shape")

    def _object(self, node: dict[str, Any]) -> Object:
        unknown = node.keys() - {"properties", "required", "additionalProperties"}
        assert not unknown, unknown
        properties: dict[str, Any] = node.get("properties", {})
        required: list[str] = node.get("required", [])
        assert set(required) <= properties.keys()
        others = node.get("additionalProperties", {})
        rest = ANY if others is True else self.shape(others)
        members = frozenset(
            Member(name, name in required, self.shape(value)) for name, value in properties.items()
        )
        return Object(members, None if rest == ANY else rest)

    def _merged(self, parts: list[Any]) -> Object:
        """All of several objects; where two have a key, the later one is the narrower."""
        members: dict[str, Member] = {}
        for part in parts:
            (whole,) = self.shape(part)
            assert isinstance(whole, Object)
            for member in whole.members:
                before = members.get(member.name)
                required = member.required or (before is not None and before.required)
                members[member.name] = attrs.evolve(member, required=required)
        return Object(frozenset(members.values()))

    def node(self, name: str) -> Any:
        """A definition with `_meta` in its params, where only the schema's base type has it.

        The generator of the older schemas put params in the place of those inherited from
        `Request` and `Notification`, `_meta` with them. By META-018 it may be in any params.
        """
        node = self.definitions[name]
        params: Any = node.get("properties", {}).get("params", {})
        base = next((base for base in ("Request", "Notification") if name.endswith(base)), None)
        if base is None or "_meta" in params.get("properties", {"_meta": {}}):
            return node
        inherited = self.definitions[base]["properties"]["params"]
        if "properties" not in inherited:  # it stands in a definition of its own since 2025-11-25
            inherited = self.definitions[f"{base}Params"]
        meta = inherited["properties"]["_meta"]
        changed = {**params, "properties": {**params["properties"], "_meta": meta}}
        return {**node, "properties": {**node["properties"], "params": changed}}


# ------------------------------------------------------------------------------- comparing


def differences(ours: Shape | None, theirs: Shape, path: str) -> Iterator[str]:
    """Say where two shapes differ, as near to the spot as can be told."""
    if ours is None:
        yield f"{path}: is missing"
        return
    mine, other = ours - theirs, theirs - ours
    if not mine and not other:
        return
    match sorted(mine, key=repr), sorted(other, key=repr):
        case [Object() as one], [Object() as two] if one.others == two.others:
            left = {member.name: member for member in one.members}
            right = {member.name: member for member in two.members}
            for name in sorted(left.keys() | right.keys()):
                if name not in right:
                    yield f"{path}.{name}: the schema does not have it"
                elif name not in left:
                    yield f"{path}.{name}: is missing"
                else:
                    if left[name].required != right[name].required:
                        wanted = "required" if right[name].required else "optional"
                        yield f"{path}.{name}: is {wanted} by the schema"
                    yield from differences(left[name].shape, right[name].shape, f"{path}.{name}")
        case [Array(one)], [Array(two)]:
            yield from differences(one, two, f"{path}[]")
        case [Object(one, first)], [Object(two, second)] if first and second and one == two:
            yield from differences(first, second, f"{path}.*")
        case one, two:
            yield f"{path}: is {one}, and by the schema {two}"


VOCABULARIES: Final = {revision: Vocabulary(revision) for revision in REVISIONS}
OFFICIAL: Final = {revision: Official(revision) for revision in REVISIONS}
