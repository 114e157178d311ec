"""The marks that say how a definition or key differs between revisions, as data in `Annotated`.

A mark stands in the type of a key, of a type alias, or of a member of a union; on a class it is the
decorator. What has no mark is the same in every revision. A key, or a member of a union, whose type
does not exist in a revision does not exist there either, and needs no mark of its own.
"""

from typing import Any, TypeVar

import attrs

Definition = TypeVar("Definition")


class Mark:
    """What all marks share: to decorate a class with one adds it to the class's `__marks__`."""

    __slots__ = ()

    def __call__(self, definition: Definition) -> Definition:
        """Mark a class; `Annotated` marks everything else."""
        marks: tuple[Mark, ...] = getattr(definition, "__marks__", ())
        setattr(definition, "__marks__", (*marks, self))  # noqa: B010  # a TypedDict declares keys
        return definition


@attrs.frozen
class Since(Mark):
    """It exists from this revision on."""

    revision: str


@attrs.frozen
class Until(Mark):
    """It exists up to this revision, which still has it."""

    revision: str


@attrs.frozen
class In(Mark):
    """It exists in this one revision."""

    revision: str


@attrs.frozen
class RequiredIn(Mark):
    """A key that these revisions require, though it is not `Required` for type checkers.

    Either it is optional or absent in other revisions, or the library fills it in.
    """

    revisions: tuple[str, ...]

    def __init__(self, *revisions: str) -> None:
        object.__setattr__(self, "revisions", revisions)  # it is frozen


@attrs.frozen
class As(Mark):
    """The type by the schema, where type checkers see a wider one.

    It stands for objects to which senders may add members of their own, as `_meta` or a JSON
    Schema, and for types that have become wider. `until` is the last revision in which it holds;
    None: all.
    """

    type: Any
    until: str | None = None
