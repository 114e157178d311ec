"""What the first and the last bytes of a message tell, where the rest of it was not kept."""

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
"""Without the value where that is an object or a list, or is cut."""
_LAST_ID: Final = (
    rb'[,{]\s*"id"\s*:\s*(%b|"[^"\\]*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z' % _NUMBER
)
_ANSWERS: Final = frozenset({b"result", b"error"})
_CALLS: Final = frozenset({b"method", b"params"})


class Kind(enum.Enum):
    """What a message is, as far as its start tells."""

    ANSWER = "an answer"
    CALL = "a request or a notification"
    UNKNOWN = "no message, or one with another start"


def read_head(head: bytes) -> tuple[Kind, RequestId | None]:
    """What a message is, and its id (None: it comes later), by the first bytes of the message.

    They are read up to the first member that is an object or a list: most peers write the small
    members before it, and the others after it (`read_tail`).
    """
    kind, id = Kind.UNKNOWN, None
    found = re.match(_START, head)
    while found is not None:
        found = re.compile(_MEMBER).match(head, found.end())
        if found is None:
            break
        name, value = found.groups()
        if name in _ANSWERS and kind is Kind.UNKNOWN:
            kind = Kind.ANSWER
        elif name in _CALLS:
            kind = Kind.CALL
        elif name == b"id" and value is not None:
            id = _id_of(value)
        if value is None:
            break
    return kind, id


def read_tail(tail: bytes) -> RequestId | None:
    """The id that stands last in a JSON object, of which these are the last bytes; else None.

    The last brace closes the object, so that what stands before it is a member of the message
    itself and of nothing within it.
    """
    found = re.search(_LAST_ID, tail)
    return None if found is None else _id_of(found[1])


def _id_of(text: bytes) -> RequestId | None:
    """The id as it stands there: an error names it in the same form."""
    try:
        value: Any = json.loads(text.decode())
    except ValueError:  # no UTF-8, or too many digits
        return None
    return None if id_key(value) is None else value
