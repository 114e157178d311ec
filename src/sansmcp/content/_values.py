"""JSON values of objects: models, attrs classes and dataclasses where a dict is expected."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import attrs

from .._wire.values import JSONValue

MAX_DEPTH: Final = 200
"""The default of `Config.max_json_depth`: a peer with default settings reads no deeper value."""

_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_CONTAINERS: Final = frozenset({dict, list, tuple})


def as_json(value: object, *, nulls: bool = True, max_depth: int = MAX_DEPTH) -> JSONValue:
    """The JSON value of an object, as a copy without the object.

    It takes JSON values with dicts, lists and tuples; other mappings; members of an `Enum`, by
    their values; objects with a method `model_dump`, as pydantic's; and instances of attrs classes
    and dataclasses, by the names of their fields. Each may be in another.

    Args:
        value: The value. It is not changed.
        nulls: Whether fields that are None become null. False leaves them out, as is right for
            the objects of the protocol; the items of a mapping are never left out.
        max_depth: How deep objects and lists may be nested.

    Raises:
        TypeError: A part of the value has no JSON value; the text names the place. Times, bytes
            and sets have none: it is for the caller to choose their form.
        ValueError: The value is nested deeper, or is part of itself.
    """
    return _Reader(nulls, max_depth).read(value)


class _Reader:
    """Reads the parts of one value, and knows the place of each."""

    __slots__ = ("_around", "_max_depth", "_nulls", "_path")

    def __init__(self, nulls: bool, max_depth: int) -> None:
        self._nulls: Final = nulls
        self._max_depth: Final = max_depth
        self._around: Final[set[int]] = set()  # the identities of what the part is in
        self._path: Final[list[str]] = ["value"]

    def read(self, value: object) -> JSONValue:
        """The JSON value of a part."""
        if type(value) in _SCALARS:
            return cast(JSONValue, value)
        if isinstance(value, enum.Enum):
            return self.read(value.value)
        if isinstance(value, str | int | float):
            return value
        if id(value) in self._around:
            raise ValueError(f"{self._place} is part of itself")
        if len(self._around) == self._max_depth:
            raise ValueError(f"{self._place} is nested deeper than {self._max_depth}")
        self._around.add(id(value))
        parts = _dumped(value, self._nulls)
        if isinstance(parts, list | tuple):
            found: JSONValue = self._list(cast("Iterable[object]", parts))
        elif isinstance(parts, Mapping):
            found = self._object(cast("Mapping[object, object]", parts).items())
        elif type(parts) in _SCALARS:
            found = cast(JSONValue, parts)
        else:
            name = type(value).__name__
            raise TypeError(f"{self._place} is of the type {name}, which has no JSON value")
        self._around.remove(id(value))
        return found

    def _list(self, items: Iterable[object]) -> list[JSONValue]:
        found: list[JSONValue] = []
        for index, item in enumerate(items):
            self._path.append(f"[{index}]")
            found.append(self.read(item))
            self._path.pop()
        return found

    def _object(self, members: Iterable[tuple[object, object]]) -> dict[str, JSONValue]:
        found: dict[str, JSONValue] = {}
        for key, item in members:
            if not isinstance(key, str):
                raise TypeError(f"{self._place} has the key {key!r:.40}, which is no string")
            self._path.append(f".{key}")
            found[key] = self.read(item)
            self._path.pop()
        return found

    @property
    def _place(self) -> str:
        return "".join(self._path)


def _dumped(value: object, nulls: bool) -> object:
    """The parts of an object: what its `model_dump` returns, or a dict of its fields.

    Other values are returned as they are.
    """
    if type(value) in _CONTAINERS or isinstance(value, type):
        return value
    dump: object = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", by_alias=True, exclude_none=not nulls)
    kind: Any = type(value)
    fields: Iterable[Any] = ()
    if attrs.has(kind):
        fields = attrs.fields(kind)
    elif dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
    else:
        return value
    pairs = ((field.name, getattr(value, field.name)) for field in fields)
    return {name: item for name, item in pairs if nulls or item is not None}
