"""Whether an object in a JSON text names a member twice.

Parsers take one of the two, and not all of them the same one: a gateway would read another
message than the server.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ..._wire.codec import kind_of

_NAME: Final = re.compile(rb'"(?:[^"\\]|\\.)*"(\s*:)?', re.DOTALL)


def has_duplicates(text: bytes | bytearray, value: object) -> bool:
    """Whether `text`, which is valid JSON and was decoded to `value`, has more names than it."""
    members = _members(value)
    if text.count(b":") == members:
        return False  # there is no colon but those behind names
    return sum(map(bool, _NAME.findall(text))) != members


def _members(value: Any) -> int:
    """How many members the objects in an object or array have."""
    members = 0
    if value.__class__ is dict:
        members = len(value)
        value = value.values()
    for inner in value:
        kind = kind_of(inner)
        if kind is not str and (kind is dict or kind is list):
            members += _members(inner)
    return members
