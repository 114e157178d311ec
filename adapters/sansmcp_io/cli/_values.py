"""Reads JSON that servers send: a member of a wrong type counts as missing."""

from __future__ import annotations

import json
from typing import Any

from sansmcp import JSONObject


def object_of(value: Any) -> JSONObject:
    """The value if it is an object, otherwise an empty object."""
    found: JSONObject = value
    return found if isinstance(value, dict) else {}


def array_of(value: Any) -> list[Any]:
    """The value if it is an array, otherwise an empty array."""
    found: list[Any] = value
    return found if isinstance(value, list) else []


def member(value: Any, name: str) -> Any:
    """A member of an object; None if the value is not an object or has no such member."""
    return object_of(value).get(name)


def as_text(value: object) -> str:
    """A string unchanged, an empty text for None, and JSON for other values."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
