"""Shapes: what the official schemas say about a part of a payload, as objects that judge values.

`_linking` makes them from the tables. A shape looks at a value once, and at each of its parts once,
so that the time is linear in the size of the payload. Its depth is bounded, since no definition of
the specification contains itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

import attrs

from .._wire.values import JSONObject, is_object
from ._formats import FORMATS
from ._problems import Full, Path, Report, shown

PartRule: TypeAlias = Callable[[JSONObject, Path, Report], None]
"""A rule that a schema cannot say, about an object whose shape is right."""

NULL_RULE: Final = "OWN-015"

_KINDS: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}
_EXACT: Final[Mapping[str, type]] = {
    "boolean": bool,
    "integer": int,
    "string": str,
    "array": list,
    "object": dict,
}
"""By kind: the type of which every value has that kind."""


def kind_of(value: object) -> str:
    """The kind of a JSON value: the name of its type in JSON Schema.

    `integer` for numbers without a fraction; the name of the class for a value of no JSON type.
    """
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    for kind, name in _KINDS.items():
        if isinstance(value, kind):
            return name
    return type(value).__name__


def is_of_kind(value: object, kind: str) -> bool:
    """Whether a value has a kind; integers are numbers, too."""
    found = kind_of(value)
    return found == kind or (kind == "number" and found == "integer")


@attrs.define(eq=False, repr=False)
class Shape(ABC):
    """What a schema says about a value.

    Attributes:
        plain: The type of which each value is good; None if there is no such type. It lets callers
            skip `judge` for most values.
    """

    plain: type | None = attrs.field(default=None, init=False)

    @abstractmethod
    def judge(self, value: Any, at: Path, report: Report) -> None:
        """Add the problems of a value to the report."""
        ...


@attrs.define(eq=False, repr=False)
class Simple(Shape):
    """A value of one kind, such as `string`, with bounds if it is a number."""

    rule: str
    kind: str
    least: int | None = None
    most: int | None = None

    def __attrs_post_init__(self) -> None:
        is_bounded = self.least is not None or self.most is not None
        self.plain = None if is_bounded else _EXACT.get(self.kind)

    def judge(self, value: Any, at: Path, report: Report) -> None:
        if not is_of_kind(value, self.kind):
            report.add_malformed(self.rule, at, f"is {kind_of(value)}, not {self.kind}")
        elif (self.least is not None and value < self.least) or (
            self.most is not None and value > self.most
        ):
            report.add_malformed(self.rule, at, f"is not {_range(self.least, self.most)}")


def _range(least: int | None, most: int | None) -> str:
    return f"{least} or more" if most is None else f"between {least} and {most}"


@attrs.define(eq=False, repr=False)
class Text(Shape):
    """A string in a format, such as Base64."""

    kind_rule: str
    format_rule: str
    format: str

    def judge(self, value: Any, at: Path, report: Report) -> None:
        if not isinstance(value, str):
            report.add_malformed(self.kind_rule, at, f"is {kind_of(value)}, not string")
            return
        name, is_good = FORMATS[self.format]
        if not is_good(value):
            report.add_malformed(self.format_rule, at, f"is not {name}")


@attrs.define(eq=False, repr=False)
class OneOf(Shape):
    """One of several strings."""

    rule: str
    values: frozenset[str]

    def judge(self, value: Any, at: Path, report: Report) -> None:
        if not isinstance(value, str) or value not in self.values:
            report.add_malformed(self.rule, at, f"is {_one_of(self.values, value)}")


def _one_of(values: Mapping[str, Any] | frozenset[str], value: object) -> str:
    found = shown(value) if isinstance(value, str) else kind_of(value)
    return f"{found}, not {' or '.join(sorted(values))}"


@attrs.define(eq=False, repr=False)
class Items(Shape):
    """A list, with a shape for its items and the greatest number of them."""

    kind_rule: str
    length_rule: str
    item: Shape
    most: int | None

    def judge(self, value: Any, at: Path, report: Report) -> None:
        if not issubclass(type(value), list):  # `isinstance` narrows to unknown types
            report.add_malformed(self.kind_rule, at, f"is {kind_of(value)}, not array")
            return
        values: list[Any] = value
        if self.most is not None and len(values) > self.most:
            text = f"has {len(values)} items, not {self.most} or less"
            report.add_malformed(self.length_rule, at, text)
        plain, judge = self.item.plain, self.item.judge
        for index, each in enumerate(values):
            if type(each) is not plain:
                judge(each, (at, index), report)


@attrs.define(eq=False, repr=False)
class Members(Shape):
    """An object, with shapes for its members (None: anything) and rules on the whole.

    Attributes:
        rest: The shape of members that `members` does not name.
        member_rules: The rules on absent members, where these differ from `rule`.
    """

    rule: str
    members: Mapping[str, Shape | None]
    required: tuple[str, ...]
    rest: Shape | None
    member_rules: Mapping[str, str]
    part_rules: tuple[PartRule, ...]

    def __attrs_post_init__(self) -> None:
        is_open = not (self.members or self.required or self.part_rules) and self.rest is None
        self.plain = dict if is_open else None

    def judge(self, value: Any, at: Path, report: Report) -> None:
        if not issubclass(type(value), dict):  # `isinstance` narrows to unknown types
            report.add_malformed(self.rule, at, f"is {kind_of(value)}, not object")
            return
        members: JSONObject = value
        before = report.malformed
        shapes, rest = self.members, self.rest
        for name, member in members.items():
            shape = shapes.get(name, rest)
            if shape is not None and type(member) is not shape.plain:
                if member is None and name not in self.required:
                    text = "is null: an optional member without a value is left out"
                    report.add_malformed(NULL_RULE, (at, name), text)
                else:
                    shape.judge(member, (at, name), report)
        for name in self.required:
            if name not in members:
                rule = self.member_rules.get(name, self.rule)
                report.add_malformed(rule, at, f"has no member {name}")
        if self.part_rules and report.malformed == before:
            for judge in self.part_rules:
                judge(members, at, report)


@attrs.define(eq=False, repr=False)
class Kinds(Shape):
    """A union of shapes for different JSON types."""

    rule: str
    shapes: Mapping[str, Shape]

    def judge(self, value: Any, at: Path, report: Report) -> None:
        kind = kind_of(value)
        if kind == "integer" and kind not in self.shapes:
            kind = "number"
        shape = self.shapes.get(kind)
        if shape is None:
            text = f"is {kind_of(value)}, not {' or '.join(self.shapes)}"
            report.add_malformed(self.rule, at, text)
        else:
            shape.judge(value, at, report)


@attrs.define(eq=False, repr=False)
class Tagged(Shape):
    """A union of objects that differ by the value of one member.

    Attributes:
        tag: The name of the member.
        shapes: The shapes by its value.
        default: The value that an absent member counts as; None: it must not be absent.
    """

    kind_rule: str
    tag_rule: str
    tag: str
    shapes: Mapping[str, Shape]
    default: str | None

    def judge(self, value: Any, at: Path, report: Report) -> None:
        if not issubclass(type(value), dict):  # `isinstance` narrows to unknown types
            report.add_malformed(self.kind_rule, at, f"is {kind_of(value)}, not object")
            return
        members: JSONObject = value
        tag: Any = members.get(self.tag, self.default)
        shape = self.shapes.get(tag) if isinstance(tag, str) else None
        if shape is not None:
            shape.judge(members, at, report)
        elif self.tag not in members:
            report.add_malformed(self.kind_rule, at, f"has no member {self.tag}")
        else:
            text = f"is {_one_of(self.shapes, tag)}"
            report.add_malformed(self.tag_rule, (at, self.tag), text)


@attrs.define(eq=False, repr=False)
class AnyOf(Shape):
    """A union of shapes that only a full look can tell apart.

    If none of them fits, the problems of the nearest one are reported: of the one that lacks the
    fewest members, then with the fewest problems in its shape, then with the fewest at all.
    """

    shapes: tuple[Shape, ...]

    def judge(self, value: Any, at: Path, report: Report) -> None:
        tried: list[tuple[int, Report]] = []
        for shape in self.shapes:
            found = Report()
            with suppress(Full):
                shape.judge(value, at, found)
            if not found.problems:
                return
            tried.append((_absent_members(shape, value), found))
        _, nearest = min(
            tried, key=lambda each: (each[0], each[1].malformed, len(each[1].problems))
        )
        report.take(nearest)


def _absent_members(shape: Shape, value: Any) -> int:
    """The number of members that a value lacks for a shape."""
    if isinstance(shape, Members) and is_object(value):
        return len([name for name in shape.required if name not in value])
    return 0
