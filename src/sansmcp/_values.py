"""The small words every other module uses: JSON types, sides, the missing value."""

from __future__ import annotations

import enum
from typing import Any, Final, Literal, TypeAlias, TypeGuard

JSONObject: TypeAlias = dict[str, Any]
"""A JSON object."""

JSONValue: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool | None
"""Any JSON value."""

RequestId: TypeAlias = int | str | float
"""A request id as it stood on the wire: a string or an integer (`1.0` is the integer 1)."""

IdKey: TypeAlias = int | str
"""The form of an id under which tables file it: `1` and `1.0` are one key, `"1"` is another."""

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
