"""The entries that workers send each other by Redis Streams, as plain data.

An entry has a head, which is a JSON array, and perhaps a body, which are bytes of a request or of a
response. The first members of the head are the same in all entries; the others depend on its kind.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

HEAD: Final = b"h"
"""The field of an entry of a Redis Stream that has the head."""
BODY: Final = b"b"
"""The field that has the body, if there is one."""
MARK: Final = b"m"
"""The field of an entry that a worker sends to itself, to learn that it has read all before it."""

WORKER: Final = re.compile(r"[-_A-Za-z0-9]{12}")
"""The id of a worker, with which the ids of its sessions begin."""

Fields: TypeAlias = Sequence[bytes]
"""The names and values of an entry of a Redis Stream, in turn."""


class Kind(enum.Enum):
    """The kind of an entry. The letters are sent."""

    REQUEST = "Q"
    """Serve a request: `[exchange, has_more, session id, method, target, headers, principal key,
    principal]`, with the first part of its body."""
    REQUEST_BODY = "D"
    """More of the body of a request: `[exchange, has_more]`."""
    RESPONSE = "R"
    """The head of a response: `[exchange, has_more, status, headers]`, with the first part of its
    body."""
    RESPONSE_BODY = "B"
    """More of the body of a response: `[exchange, has_more]`."""
    FAILED = "F"
    """The request cannot be served, or the rest of its response will not come:
    `[exchange, text, seconds]`. After so many seconds the request may be sent again; 0: it may have
    been served."""
    GONE = "G"
    """The client of an exchange is gone: `[exchange]`."""
    TAKEN = "W"
    """So many bytes of the body of a response were taken by its client: `[exchange, bytes]`."""
    SYNC = "P"
    """Nothing but the number of the entry, and of the last one received: `[wants answer]`."""
    LOST = "X"
    """Entries before this number were lost: `[base, number]`."""
    BYE = "Z"
    """The sender ends, and reads no more entries: `[]`."""


@attrs.frozen(kw_only=True)
class Entry:
    """One entry.

    Attributes:
        sender: The worker that has sent it.
        base: The time at which the sender has begun to count the entries to this receiver.
        number: The number of the entry; the first one has number 1.
        read_base: The base of the entries that the sender has received from the receiver; 0: none.
        read: The number of the last one of them.
        kind: What it tells.
        rest: What else is in the head.
        body: Bytes of a body.
    """

    sender: str
    base: int
    number: int
    read_base: int
    read: int
    kind: Kind
    rest: Sequence[Any]
    body: bytes = b""

    @property
    def size(self) -> int:
        """The bytes for which the sender needs room; 0 where there is nothing of a client."""
        return len(self.body) + _ROOM if self.kind in _OF_CLIENTS else 0


_ROOM: Final = 256
"""The bytes that an entry takes beside its body, at least."""
_OF_CLIENTS: Final = frozenset({Kind.REQUEST, Kind.REQUEST_BODY, Kind.RESPONSE, Kind.RESPONSE_BODY})


def encode(entry: Entry) -> Fields:
    """The fields of an entry."""
    head = [
        entry.sender,
        entry.base,
        entry.number,
        entry.read_base,
        entry.read,
        entry.kind.value,
        *entry.rest,
    ]
    encoded = json.dumps(head, separators=(",", ":")).encode()
    return (HEAD, encoded, BODY, entry.body) if entry.body else (HEAD, encoded)


def decode(fields: Fields) -> Entry | None:
    """The entry with these fields; None: it is none of ours, or of another form.

    Entries of a later version may have kinds that are not known here.
    """
    found = dict(zip(fields[::2], fields[1::2], strict=True))
    try:
        head: Any = json.loads(found[HEAD])
        if not is_list(head):
            return None
        sender, base, number, read_base, read, kind, *rest = head
        kind = Kind(kind)
        form = _FORMS[kind]
        if (
            len(rest) != len(form)
            or not all(is_valid(value) for is_valid, value in zip(form, rest, strict=True))
            or not (_is_text(sender) and WORKER.fullmatch(sender))
            or not all(_is_count(value) for value in (base, number, read_base, read))
        ):
            return None
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return Entry(
        sender=sender,
        base=base,
        number=number,
        read_base=read_base,
        read=read,
        kind=kind,
        rest=rest,
        body=found.get(BODY, b""),
    )


def is_list(value: object) -> bool:
    """Whether a JSON value is an array."""
    return type(value) is list


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_status(value: object) -> bool:
    return type(value) is int and 200 <= value <= 599


def _is_text(value: object) -> bool:
    return type(value) is str


def _is_latin(value: object) -> bool:
    """Whether a value is a text of characters of one byte each."""
    return type(value) is str and (value.isascii() or max(value) < "\u0100")


def _is_key(value: object) -> bool:
    return value is None or type(value) is str


def _is_any(_value: object) -> bool:
    return True


def _are_headers(value: Any) -> bool:
    """Whether a value is `[[name, value], ...]`, of characters of one byte each."""
    return is_list(value) and all(
        is_list(pair) and len(pair) == 2 and all(_is_latin(text) for text in pair) for pair in value
    )


_FORMS: Final[Mapping[Kind, Sequence[Callable[[Any], bool]]]] = {
    Kind.REQUEST: (
        *(_is_count, _is_count, _is_text, _is_text, _is_text),
        *(_are_headers, _is_key, _is_any),
    ),
    Kind.REQUEST_BODY: (_is_count, _is_count),
    Kind.RESPONSE: (_is_count, _is_count, _is_status, _are_headers),
    Kind.RESPONSE_BODY: (_is_count, _is_count),
    Kind.FAILED: (_is_count, _is_text, _is_count),
    Kind.GONE: (_is_count,),
    Kind.TAKEN: (_is_count, _is_count),
    Kind.SYNC: (_is_count,),
    Kind.LOST: (_is_count, _is_count),
    Kind.BYE: (),
}
"""The checks of what follows in the head of an entry of each kind."""


def text_headers(headers: Sequence[tuple[bytes, bytes]]) -> list[list[str]]:
    """Headers as JSON has them."""
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]


def byte_headers(headers: Sequence[Sequence[str]]) -> list[tuple[bytes, bytes]]:
    """Headers as an endpoint takes them."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
