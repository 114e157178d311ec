"""The entries that workers send each other by Redis Streams, as plain data.

An entry has a head, which is a JSON array, and perhaps a body, which are bytes of a request or of a
response. The first members of the head are the same in all entries; the others depend on its kind.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import attrs

HEAD: Final = b"h"
"""The field of an entry of a Redis Stream that has the head."""
BODY: Final = b"b"
"""The field that has the body, if there is one."""
MARK: Final = b"m"
"""The field of an entry that a worker sends to itself, to learn that it has read all before it."""

Fields: TypeAlias = Sequence[bytes]
"""The names and values of an entry of a Redis Stream, in turn."""


class Kind(enum.Enum):
    """The kind of an entry. The letters are sent."""

    REQUEST = "Q"
    """Serve a request: `[exchange, has_more, session id, method, target, headers, principal key]`,
    with the first part of its body."""
    REQUEST_BODY = "D"
    """More of the body of a request: `[exchange, has_more]`."""
    RESPONSE = "R"
    """The head of a response: `[exchange, has_more, status, headers]`, with the first part of its
    body."""
    RESPONSE_BODY = "B"
    """More of the body of a response: `[exchange, has_more]`."""
    FAILED = "F"
    """The request cannot be served, or the rest of its response will not come:
    `[exchange, text]`."""
    GONE = "G"
    """The client of an exchange is gone: `[exchange]`."""
    TAKEN = "W"
    """So many bytes of the body of a response were taken by its client: `[exchange, bytes]`."""
    SYNC = "P"
    """Nothing but the number of the entry, and of the last one received: `[wants answer]`."""
    LOST = "X"
    """Entries before this number were lost: `[base, number]`."""
    BYE = "Z"
    """The sender ends: `[]`."""


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
    """The entry with these fields; None: it is none of ours.

    Entries of a later version may have kinds that are not known here.
    """
    found = dict(zip(fields[::2], fields[1::2], strict=True))
    try:
        sender, base, number, read_base, read, kind, *rest = json.loads(found[HEAD])
        return Entry(
            sender=sender,
            base=base,
            number=number,
            read_base=read_base,
            read=read,
            kind=Kind(kind),
            rest=rest,
            body=found.get(BODY, b""),
        )
    except (KeyError, ValueError):
        return None


def text_headers(headers: Sequence[tuple[bytes, bytes]]) -> list[list[str]]:
    """Headers as JSON has them."""
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]


def byte_headers(headers: Sequence[Sequence[str]]) -> list[tuple[bytes, bytes]]:
    """Headers as an endpoint takes them."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
