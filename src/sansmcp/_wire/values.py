"""The small words every other module uses: JSON types, sides, the missing value, records."""

from __future__ import annotations

import enum
import sys
from typing import Any, Final, Literal, TypeAlias, TypeGuard

import attrs

JSONObject: TypeAlias = dict[str, Any]
"""A JSON object."""

JSONValue: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool | None
"""Any JSON value."""

RequestId: TypeAlias = int | str | float
"""A request id as it stood on the wire: a string or an integer (`1.0` is the integer 1)."""

IdKey: TypeAlias = int | str
"""The form of an id under which tables file it: `1` and `1.0` are one key, `"1"` is another."""

GREATEST_OWN_HASH: Final = sys.hash_info.modulus - 1
LEAST_OWN_HASH: Final = -GREATEST_OWN_HASH
"""Between the two an integer is its own hash, but for -1, which shares that of -2."""

RequestKey: TypeAlias = IdKey | tuple[object, IdKey]
"""What files a request in flight: its id, with its route where many clients share one table."""

ProgressToken: TypeAlias = int | str
"""What ties progress to a request: a string or an integer."""


class Side(enum.IntEnum):
    """The two sides of a conversation. Rules apply to a message by the side that sent it."""

    CLIENT = 0
    SERVER = 1

    @property
    def other(self) -> Side:
        """The side that this one talks to."""
        return Side(1 - self)


class Missing(enum.Enum):
    """The type of `MISSING`, the mark of a member that is not there (`None` is JSON's null)."""

    MISSING = "missing"


MISSING: Final[Literal[Missing.MISSING]] = Missing.MISSING
"""The mark of a member that is not there."""


def _fields(record: object) -> tuple[attrs.Attribute[Any], ...]:
    kind: type[Any] = type(record)
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(kind)
    return fields


class Record:
    """The base of attrs classes that are compared by their fields and have many siblings.

    attrs compiles `__eq__`, `__hash__` and `__repr__` for each class, which takes more than half of
    the time to define a small one. It leaves out what a class itself has: these, written once.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        for name in ("__eq__", "__hash__", "__repr__"):
            setattr(cls, name, getattr(Record, name))

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(
            getattr(self, field.name) == getattr(other, field.name)
            for field in _fields(self)
            if field.eq
        )

    def __hash__(self) -> int:
        values = (getattr(self, field.name) for field in _fields(self) if field.eq)
        return hash((type(self), *values))

    def __repr__(self) -> str:
        shown = (
            f"{field.name}={getattr(self, field.name)!r}" for field in _fields(self) if field.repr
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def is_object(value: object) -> TypeGuard[JSONObject]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a JSON value is a list."""
    return isinstance(value, list)


def is_list_of_strings(value: object) -> TypeGuard[list[str]]:
    """Whether a JSON value is a list of strings."""
    return is_list(value) and all(isinstance(item, str) for item in value)


def id_key(value: object) -> IdKey | None:
    """The table key of a request id or progress token, or None where it is no legal one.

    Strings and integers are ids; a float that is an integer is the same id as that integer;
    booleans, null, lists and objects are not ids (`True == 1` in Python, so the type decides).

    Source: MCP 2026-07-28, schema, RequestId and ProgressToken.
    """
    if type(value) is int or type(value) is str:
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None


class _LargeInt(int):
    """An integer whose hash cannot be chosen.

    That of `int` is the value modulo a prime: in a table of `k * prime` all keys would collide, and
    each step would cost as much as there are keys.
    """

    __slots__ = ()

    def __hash__(self) -> int:
        size = self.bit_length() // 8 + 1
        return hash(self.to_bytes(size, "little", signed=True))  # which has a secret of the process


def table_key(value: object) -> IdKey | None:
    """What files an id or token in a table that a peer fills; None where `value` is no legal one.

    Integers that are their own hash stay as they are, as do strings.
    """
    key = id_key(value)
    if isinstance(key, int) and not LEAST_OWN_HASH <= key <= GREATEST_OWN_HASH:
        return _LargeInt(key)
    return key
