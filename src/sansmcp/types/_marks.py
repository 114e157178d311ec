"""Marks for the differences of a definition or a key between revisions, as data in `Annotated`.

A mark is part of the type of a key, of a type alias, or of a member of a union; for a class it is a
decorator. A definition without marks is the same in all revisions. If the type of a key, or of a
member of a union, does not exist in a revision, the key or member does not exist there either and
needs no mark.
"""

from typing import Any, TypeVar

import attrs

Definition = TypeVar("Definition")


class Mark:
    """The base class of all marks; as a decorator, a mark adds itself to `__marks__` of a class."""

    __slots__ = ()

    def __call__(self, definition: Definition) -> Definition:
        """Mark a class; use `Annotated` for other definitions."""
        marks: tuple[Mark, ...] = getattr(definition, "__marks__", ())
        setattr(definition, "__marks__", (*marks, self))  # noqa: B010  # a TypedDict declares keys
        return definition


@attrs.frozen
class Since(Mark):
    """The definition exists in this revision and in later ones."""

    revision: str


@attrs.frozen
class Until(Mark):
    """The definition exists in this revision and in earlier ones."""

    revision: str


@attrs.frozen
class In(Mark):
    """The definition exists in this revision only."""

    revision: str


@attrs.frozen
class RequiredIn(Mark):
    """The key is required in these revisions, although it is not `Required` for type checkers.

    It is optional or absent in other revisions, or the library adds it.
    """

    revisions: tuple[str, ...]

    def __init__(self, *revisions: str) -> None:
        object.__setattr__(self, "revisions", revisions)  # it is frozen


@attrs.frozen
class As(Mark):
    """The type in the schema, where the type for checkers is wider.

    It is used for objects to which senders may add members, such as `_meta` or a JSON Schema, and
    for types that later revisions have made wider.

    Attributes:
        type: The type in the schema.
        until: The last revision with this type; None: all revisions have it.
    """

    type: Any
    until: str | None = None
