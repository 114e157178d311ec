"""One URI template: its expressions, expansion, and the values in a URI that it has made.

A template can be matched if each URI has at most one set of values. `_check` refuses the others
when the template is made, so that a match needs no search: each character is read once.

Source: RFC 6570, sections 2 and 3; MCP 2025-11-25, server/resources, Resource Templates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias
from urllib.parse import unquote

import attrs

from .._common.errors import without_extra

try:
    from uritemplate import URITemplate
except ModuleNotFoundError as _error:
    raise without_extra("templates", _error, package="uritemplate") from None

Values: TypeAlias = dict[str, str | list[str]]
"""The values of a match by the names of the variables; lists for variables like `{/path*}`."""

_UNRESERVED: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_RESERVED: Final = ":/?#[]@!$&'()*+,;="
_NAME: Final = re.compile(
    r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*+"
)
_LITERAL: Final = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*+")
# Possessive, so that nothing is read twice.
_PLAIN_TEXT: Final = re.compile(r"(?:[A-Za-z0-9\-._~]|%[0-9A-F]{2})*+")
_ANY_TEXT: Final = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-F]{2})*+")
_LOWER_TRIPLET: Final = re.compile(r"%(?![0-9A-F]{2})[0-9A-Fa-f]{2}")
_KEPT_TRIPLET: Final = re.compile(
    "%(?=" + "|".join(f"{ord(character):02X}" for character in f"{_UNRESERVED}{_RESERVED}%") + ")"
)
"""A `%` that stays in a value of `{+name}`: its character would be expanded in another way."""


@attrs.frozen
class _Operator:
    """How an expression is expanded, by the character that it begins with.

    Attributes:
        first: The text before the first value; `separator` is that between two.
        separator: Likewise.
        is_named: Whether each value has the name of its variable before it.
        is_open: Whether values may have reserved characters.
    """

    first: str
    separator: str
    is_named: bool = False
    is_open: bool = False

    @property
    def characters(self) -> str:
        """All characters that a value can have in a URI."""
        return f"{_UNRESERVED}%{_RESERVED}" if self.is_open else f"{_UNRESERVED}%"


_OPERATORS: Final[Mapping[str, _Operator]] = {
    "": _Operator("", ","),
    "+": _Operator("", ",", is_open=True),
    "#": _Operator("#", ",", is_open=True),
    ".": _Operator(".", "."),
    "/": _Operator("/", "/"),
    ";": _Operator(";", ";", is_named=True),
    "?": _Operator("?", "&", is_named=True),
    "&": _Operator("&", "&", is_named=True),
}


@attrs.frozen
class _Expression:
    """An expression such as `{/year,month}`.

    Attributes:
        text: The expression as it is written, with its braces.
        operator: How it is expanded.
        names: The names of its variables.
        is_list: Whether its one variable is a list (`{/path*}`).
    """

    text: str
    operator: _Operator
    names: tuple[str, ...]
    is_list: bool


class InvalidTemplate(ValueError):
    """A text is no URI template, or one that cannot be matched, for the reason in the text."""


class Template:
    """A URI template that can be matched.

    Matching is linear in the length of the URI. A value is never empty, except one with a name, as
    in `{?page}`; such a value may also be missing. Values are decoded: `%2F` in a URI is a slash in
    a value, so check a value before it becomes a part of a path. In `{+path}` and `{#part}`,
    characters are decoded only if they cannot be in a URI themselves.

    These cannot be matched, and raise: two expressions beside each other, or an expression and a
    literal that could be a part of its value (but for the last expression, which may have any
    literal after it); more than one variable in `{+a,b}`, `{#a,b}` and `{.a,b}`; a prefix such as
    `{a:3}`; lists other than `{a*}` and `{/a*}`; a name that is there twice.

    Args:
        text: The template, as in `uriTemplate`.

    Raises:
        InvalidTemplate: It is no template of RFC 6570, or cannot be matched.

    Source: RFC 6570.
    """

    __slots__ = ("_expanded", "_pieces", "_suffix", "text", "variables")

    def __init__(self, text: str) -> None:
        pieces = _parse(text)
        _check(text, pieces)
        self._suffix = ""
        if pieces and isinstance(last := pieces[-1], str):
            self._suffix = last
            del pieces[-1]
        self._pieces = tuple(pieces)
        self._expanded = URITemplate(text)
        self.text: Final = text
        self.variables: Final = tuple(name for one in _expressions(pieces) for name in one.names)

    def expand(self, values: Mapping[str, str | Sequence[str]]) -> str:
        """Return the URI for these values. Variables without a value are left out."""
        return self._expanded.expand(
            {name: one if isinstance(one, str) else list(one) for name, one in values.items()}
        )

    def match(self, uri: str) -> Values | None:
        """Return the values in a URI; None: the template does not make this URI.

        The digits of percent-encoding may be in either case.
        """
        uri = _in_upper_case(uri)
        try:
            values = self._read(uri)
        except UnicodeDecodeError:
            return None
        if values is None or _in_upper_case(self.expand(values)) != uri:
            return None
        return values

    def _read(self, uri: str) -> Values | None:
        """The values in a URI if each piece of the template is in its place; else None."""
        if not uri.endswith(self._suffix):
            return None
        values: Values = {}
        place = 0
        end = len(uri) - len(self._suffix)
        for piece in self._pieces:
            after: int | None
            if isinstance(piece, str):
                after = place + len(piece) if uri.startswith(piece, place, end) else None
            elif piece.operator.is_named:
                after = _read_named(piece, uri, place, end, values)
            else:
                after = _read_unnamed(piece, uri, place, end, values)
            if after is None:
                return None
            place = after
        return values if place == end else None

    def __repr__(self) -> str:
        return f"Template({self.text!r})"


# ----------------------------------------------------------------------------------- matching


def _read_unnamed(piece: _Expression, uri: str, place: int, end: int, values: Values) -> int | None:
    """Read the values of an expression like `{a,b}`; return the place after them, if all are."""
    operator = piece.operator
    if not uri.startswith(operator.first, place, end):
        return None
    place += len(operator.first)
    wanted = None if piece.is_list else len(piece.names)
    read: list[str] = []
    while True:
        after = _value_end(operator, uri, place, end)
        if after == place:
            return None
        read.append(_decoded(uri[place:after], operator))
        place = after
        if len(read) == wanted or not uri.startswith(operator.separator, place, end):
            break
        place += 1
    if piece.is_list:
        values[piece.names[0]] = read
    elif len(read) == wanted:
        values.update(zip(piece.names, read, strict=True))
    else:
        return None
    return place


def _read_named(piece: _Expression, uri: str, place: int, end: int, values: Values) -> int:
    """Read the values of an expression like `{?a,b}`; return the place after those it has."""
    operator = piece.operator
    before = operator.first
    for name in piece.names:
        start = place + len(before) + len(name)
        if not uri.startswith(before + name, place, end):
            continue
        if uri.startswith("=", start, end):
            start += 1
        elif operator.first != ";" or _value_end(operator, uri, start, end) != start:
            continue  # `;name` is an empty value, but `;names` is another name
        place = _value_end(operator, uri, start, end)
        values[name] = _decoded(uri[start:place], operator)
        before = operator.separator
    return place


def _value_end(operator: _Operator, uri: str, place: int, end: int) -> int:
    """The end of the value that begins at a place."""
    found = (_ANY_TEXT if operator.is_open else _PLAIN_TEXT).match(uri, place, end)
    return place if found is None else found.end()


def _decoded(text: str, operator: _Operator) -> str:
    """A value without percent-encoding."""
    if operator.is_open:
        text = _KEPT_TRIPLET.sub("%25", text)
    return unquote(text, errors="strict")


def _in_upper_case(uri: str) -> str:
    """A URI with the digits of percent-encoding in upper case."""
    return _LOWER_TRIPLET.sub(lambda triplet: triplet[0].upper(), uri)


# ------------------------------------------------------------------------- reading a template


def _parse(text: str) -> list[str | _Expression]:
    """The literals and expressions of a template, in their order."""
    pieces: list[str | _Expression] = []
    place = 0
    while place < len(text):
        start = text.find("{", place)
        start = len(text) if start < 0 else start
        if start > place:
            literal = text[place:start]
            if _LITERAL.fullmatch(literal) is None:
                raise InvalidTemplate(f"{text!r}: {literal!r} has characters that no URI has")
            pieces.append(_in_upper_case(literal))
        place = start
        if start < len(text):
            end = text.find("}", start)
            if end < 0:
                raise InvalidTemplate(f"{text!r}: an expression does not end")
            pieces.append(_parse_expression(text, text[start : end + 1]))
            place = end + 1
    return pieces


def _parse_expression(text: str, expression: str) -> _Expression:
    """The expression that is written as `{...}` in a template."""
    inner = expression[1:-1]
    operator = inner[:1] if inner[:1] in _OPERATORS else ""
    names = inner[len(operator) :].split(",")
    is_list = len(names) == 1 and names[0].endswith("*")
    if is_list:
        names[0] = names[0][:-1]
    for name in names:
        bare, has_prefix, _ = name.partition(":")
        if _NAME.fullmatch(bare if is_list else bare.removesuffix("*")) is None:
            raise InvalidTemplate(f"{text!r}: {expression} has a name that is none")
        if has_prefix:
            raise _unmatchable(text, expression, "a prefix does not tell the rest of its value")
        if name.endswith("*"):
            raise _unmatchable(text, expression, "a list is not alone in its expression")
    if is_list and operator not in ("", "/"):
        raise _unmatchable(text, expression, "lists are matched in {a*} and {/a*} only")
    if len(names) > 1 and operator in ("+", "#", "."):
        raise _unmatchable(text, expression, "a value may have the character between two values")
    return _Expression(expression, _OPERATORS[operator], tuple(names), is_list)


def _check(text: str, pieces: Sequence[str | _Expression]) -> None:
    """Raise if a URI could have two sets of values for a template."""
    seen: set[str] = set()
    for expression in _expressions(pieces):
        for name in expression.names:
            if name in seen:
                raise _unmatchable(text, expression.text, f"{name} is there twice")
            seen.add(name)
    following = ""  # the characters that can come next
    is_last = True
    for piece in reversed(pieces):
        if isinstance(piece, str):
            following = piece[0]
            continue
        operator = piece.operator
        taken = "" if is_last else operator.characters
        if operator.is_named:
            taken += operator.first
        if not is_last and (operator.is_named or piece.is_list):
            taken += operator.separator
        if not set(taken).isdisjoint(following):
            raise _unmatchable(
                text, piece.text, "what follows it could also be a part of the expression"
            )
        is_last = False
        first = operator.first or operator.characters
        following = first + following if operator.is_named else first


def _expressions(pieces: Sequence[str | _Expression]) -> list[_Expression]:
    return [piece for piece in pieces if not isinstance(piece, str)]


def _unmatchable(text: str, expression: str, why: str) -> InvalidTemplate:
    return InvalidTemplate(f"{text!r} cannot be matched: {expression}: {why}")
