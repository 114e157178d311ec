"""The basic types of all other modules: JSON values, ids, sides, the mark `MISSING`, records."""

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
"""A request id in its form on the wire: a string or an integer (`1.0` is the integer 1)."""

IdKey: TypeAlias = int | str
"""A request id as the key of a table: `1` and `1.0` are the same key, `"1"` is another."""

GREATEST_OWN_HASH: Final = sys.hash_info.modulus - 1
LEAST_OWN_HASH: Final = -GREATEST_OWN_HASH
"""The least and the greatest integer whose hash is the integer itself (but -1 has that of -2)."""

RequestKey: TypeAlias = IdKey | tuple[object, IdKey]
"""The key of an open request: its id; with its route where many clients share one table."""

ProgressToken: TypeAlias = int | str
"""A progress token, which connects progress with its request: a string or an integer."""


class Side(enum.IntEnum):
    """The side of a conversation: client or server. Rules depend on the side of the sender."""

    CLIENT = 0
    SERVER = 1

    @property
    def other(self) -> Side:
        """The opposite side."""
        return Side(1 - self)


class Missing(enum.Enum):
    """The type of `MISSING`, which marks an absent member (`None` is JSON's null)."""

    MISSING = "missing"


MISSING: Final[Literal[Missing.MISSING]] = Missing.MISSING
"""The mark of an absent member."""


def _fields(record: object) -> tuple[attrs.Attribute[Any], ...]:
    kind: type[Any] = type(record)
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(kind)
    return fields


class Record:
    """The base class of attrs classes with equality by fields, which are quick to define.

    attrs compiles `__eq__`, `__hash__` and `__repr__` for each class, which takes more than half of
    the time to define a small class. It skips the methods that a class already has, so this base
    gives its subclasses methods that are written once.
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
    """The key of a request id or progress token; None if it is not valid.

    Strings and integers are ids; a float that is an integer is the same id as that integer;
    booleans, null, lists and objects are not ids (`True == 1` in Python, so the type decides).
    Keeps JSON-003, ID-005.

    Source: MCP 2026-07-28, schema, RequestId and ProgressToken.
    """
    if type(value) is int or type(value) is str:
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None


class _LargeInt(int):
    """An integer whose hash a peer cannot choose.

    The hash of `int` is the value modulo a prime. In a table of multiples of the prime all keys
    would collide, and the cost of each look-up would grow with the number of keys.
    """

    __slots__ = ()

    def __hash__(self) -> int:
        size = self.bit_length() // 8 + 1
        return hash(self.to_bytes(size, "little", signed=True))  # Python seeds it per process


def table_key(value: object) -> IdKey | None:
    """The key of an id or token in a table that a peer fills; None if `value` is not valid.

    Strings, and integers whose hash is the integer itself, stay unchanged.
    """
    key = id_key(value)
    if isinstance(key, int) and not LEAST_OWN_HASH <= key <= GREATEST_OWN_HASH:
        return _LargeInt(key)
    return key
