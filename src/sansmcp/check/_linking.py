"""Makes the shapes of a revision from the tables.

A definition in the tables is a kind of JSON value (`"string"`), a format of strings (`"byte"`), the
name of another definition (`"Tool"`), or a tuple whose first item says which shape it has:
`members`, `list`, `one of`, `kinds`, `tagged`, `any of`, or a kind of number with its bounds.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import attrs

from ._citations import MISSHAPEN, MISVALUED, VALUE, cited
from ._formats import FORMATS
from ._part_rules import rules_of
from ._shapes import AnyOf, Items, Kinds, Members, OneOf, Shape, Simple, Tagged, Text
from ._tables import DEFINITIONS, METHODS

ANYTHING: Final = "any"
_KINDS: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


@attrs.frozen
class PayloadShapes:
    """The shapes of the params and the result of a method.

    Attributes:
        params: The shape of the params.
        result: The shape of the result; None for a notification.
        questions: The shape of a result with questions to the client, if the method allows it.
    """

    params: Shape
    result: Shape | None
    questions: Shape | None


class RevisionShapes:
    """The shapes of one revision, each made when it is needed for the first time."""

    def __init__(self, revision: str) -> None:
        self._revision: Final = revision
        self._forms: Final[dict[str, Any]] = {}
        for name, changes in DEFINITIONS.items():
            if name <= revision:
                self._forms.update(changes)
        self._methods: Final = METHODS[revision]
        self._parts: Final[dict[str, Shape | None]] = {}
        self._payloads: Final[dict[str, PayloadShapes]] = {}

    def payload(self, method: str) -> PayloadShapes | None:
        """The shapes of a method; None if the revision does not have it."""
        found = self._payloads.get(method)
        if found is not None or method not in self._methods:
            return found
        params, result, may_ask = self._methods[method]
        found = PayloadShapes(
            self._shape(params, params, ""),
            None if result is None else self._shape(result, result, ""),
            self._shape("InputRequiredResult", "", "") if may_ask else None,
        )
        self._payloads[method] = found
        return found

    def part(self, name: str) -> Shape | None:
        """The shape of a definition; None if each value fits.

        Raises:
            KeyError: The revision has no definition with this name.
        """
        if name not in self._parts:
            form = self._forms[name]
            if form is None:
                raise KeyError(name)
            self._parts[name] = self._linked(form, name, "")
        return self._parts[name]

    def _linked(self, form: Any, place: str, around: str) -> Shape | None:
        """The shape for a form.

        Args:
            form: The form in the table.
            place: Where the form stands: the name of the definition, and the path in it.
            around: The rule of the place around it; `""` if there is none.
        """
        own = self._rule_at(place)
        rule = around if own is None else own
        kind_rule = rule or MISSHAPEN
        value_rule = cited(place + VALUE, self._revision) or rule or MISVALUED
        if form == ANYTHING:
            return None
        if isinstance(form, str):
            member = place.rpartition(".")[2]
            form = "mime" if member == "mimeType" else form
            if form == "object" and rules_of(place, self._revision):
                form = ("members", {}, (), ANYTHING)
            elif form in FORMATS:
                return Text(kind_rule, value_rule, form)
            elif form in _KINDS:
                return Simple(kind_rule, form)
            else:
                named = self._forms[form]
                is_plain = isinstance(named, str) or named[0] == "one of"
                return self._linked(named, form, rule) if is_plain else self.part(form)
        match form:
            case ("members", members, required, rest):
                shapes = {
                    name: self._linked(each, f"{place}.{name}", rule)
                    for name, each in members.items()
                }
                rules = {name: self._rule_at(f"{place}.{name}") for name in required}
                return Members(
                    kind_rule,
                    shapes,
                    required,
                    self._linked(rest, place + ".*", rule),
                    {name: each for name, each in rules.items() if each},
                    rules_of(place, self._revision),
                )
            case ("list", item, most):
                return Items(kind_rule, value_rule, self._shape(item, place + "[]", rule), most)
            case ("one of", *values):
                return OneOf(value_rule, frozenset(values))
            case ("kinds", forms):
                return Kinds(kind_rule, self._each(forms, place, rule))
            case ("tagged", tag, forms, default):
                shapes_by_tag = self._each(forms, place, rule)
                return Tagged(kind_rule, value_rule, tag, shapes_by_tag, default)
            case ("any of", *forms):
                return AnyOf(tuple(self._each(dict(enumerate(forms)), place, rule).values()))
            case _:
                kind, least, most = form
                return Simple(value_rule, kind, least, most)

    def _each(self, forms: dict[Any, Any], place: str, rule: str) -> dict[Any, Shape]:
        return {name: self._shape(form, place, rule) for name, form in forms.items()}

    def _shape(self, form: Any, place: str, rule: str) -> Shape:
        """As `_linked`, where the tables have no form of any value."""
        shape = self._linked(form, place, rule)
        assert shape is not None, place
        return shape

    def _rule_at(self, place: str) -> str | None:
        """The own rule of a place; `""`: the general rules, None: the rule of the place around."""
        own = cited(place, self._revision)
        if own is None and "." in place:
            own = cited("." + place.rpartition(".")[2], self._revision)
        return own


@cache
def shapes_of(revision: str) -> RevisionShapes:
    """The shapes of a revision.

    Raises:
        ValueError: No revision has this name.
    """
    if revision not in METHODS:
        raise ValueError(f"revision must be one of {', '.join(METHODS)}, not {revision!r}")
    return RevisionShapes(revision)
