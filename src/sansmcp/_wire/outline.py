"""The kind and the id of a message over the limit, read from its first and last bytes."""

from __future__ import annotations

import enum
import json
import re
from typing import Any, Final

from .values import RequestId, id_key

_NUMBER: Final = rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_SCALAR: Final = _NUMBER + rb'|true|false|null|"(?:[^"\\]|\\.)*"'
# `re` compiles and keeps them when they are first used: few programs meet a message over the limit.
_START: Final = rb"(?:\xef\xbb\xbf)?[ \t\r]*\{"
_MEMBER: Final = rb'\s*"([^"\\]*)"\s*:\s*(?:(%b)\s*,)?' % _SCALAR
"""One member of an object; without a value if it is an object or a list, or is cut off."""
_LAST_ID: Final = (
    rb'[,{]\s*"id"\s*:\s*(%b|"[^"\\]*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z' % _NUMBER
)
_ANSWERS: Final = frozenset({b"result", b"error"})
_CALLS: Final = frozenset({b"method", b"params"})


class OutlineKind(enum.Enum):
    """The kind of a message, as far as its first bytes show it."""

    ANSWER = "an answer"
    CALL = "a request or a notification"
    UNKNOWN = "no message, or one with another start"


def read_head(head: bytes) -> tuple[OutlineKind, RequestId | None]:
    """The kind and the id in the first bytes of a message; the id is None if it comes later.

    The bytes are read up to the first member that is an object or a list. Most peers write the id
    before it; the others write it last (`read_tail`).
    """
    kind, id = OutlineKind.UNKNOWN, None
    found = re.match(_START, head)
    while found is not None:
        found = re.compile(_MEMBER).match(head, found.end())
        if found is None:
            break
        name, value = found.groups()
        if name in _ANSWERS and kind is OutlineKind.UNKNOWN:
            kind = OutlineKind.ANSWER
        elif name in _CALLS:
            kind = OutlineKind.CALL
        elif name == b"id" and value is not None:
            id = _id_of(value)
        if value is None:
            break
    return kind, id


def read_tail(tail: bytes) -> RequestId | None:
    """The id in the last bytes of a message, if it is the last member or before `jsonrpc`.

    The last brace closes the message, so that the member before it belongs to the message itself
    and not to an object in it.
    """
    found = re.search(_LAST_ID, tail)
    return None if found is None else _id_of(found[1])


def _id_of(text: bytes) -> RequestId | None:
    """The id in its form on the wire, which an error response repeats; None if not valid."""
    try:
        value: Any = json.loads(text.decode())
    except ValueError:  # no UTF-8, or too many digits
        return None
    return None if id_key(value) is None else value
