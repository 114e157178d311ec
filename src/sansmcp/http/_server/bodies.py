"""Bodies of requests: how much memory they hold, and whether one names a member twice.

Incomplete bodies and the params of open requests are counted. A limit on the length of messages
would not be enough: `[[],[],` takes more than twenty times its length when it is decoded, and a
handler may keep it for as long as it likes.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Final, Protocol, final

from ..._connection.handles import IncomingRequest, note_held_bytes
from ..._wire.codec import kind_of
from ..._wire.values import is_list, is_object

SMALL_BODY: Final = 65_536
"""Bytes of a body up to which it is not counted before it is complete: most come in one piece."""
SMALL_NOTIFICATION: Final = 1024
"""Bytes of a body without requests that is taken however much is held: it may let a request end."""
_SESSIONS_SHARE: Final = 4
"""Sessions may hold a quarter of the limit, beside what requests hold."""
_SHORT: Final = 1024
_SHORT_FACTOR: Final = 24
"""What a short message may take at most, and what its handle and its task take besides."""
_POINTER_BYTES: Final = 8
_NAME: Final = re.compile(rb'"(?:[^"\\]|\\.)*"(\s*:)?', re.DOTALL)


class BodyOwner(Protocol):
    """The exchange that a body belongs to."""

    def refuse_for_memory(self) -> None:
        """Refuse the request, since all requests together hold too much."""
        ...


class HeldMemory:
    """How much memory the requests of an endpoint hold.

    A request gives back its share when it ends: its transport takes the share off `bytes`.

    Attributes:
        bytes: What requests and incomplete bodies hold now, by estimate.
        limit: What these may hold.
        arriving: What the message holds that is being received.
        sessions: What sessions hold now. It is counted apart, since a session may be idle for long,
            and must not keep the requests of others from being served.
        sessions_limit: What sessions may hold.
    """

    __slots__ = ("_bodies", "arriving", "bytes", "limit", "sessions", "sessions_limit")

    def __init__(self, limit: int) -> None:
        self.limit: int = limit
        self.bytes: int = 0
        self.sessions: int = 0
        self.sessions_limit: int = limit // _SESSIONS_SHARE
        self.arriving: int = 0
        self._bodies: dict[BodyOwner, int] = {}

    # -------------------------------------------------------------------------------- bodies

    def body_has(self, owner: BodyOwner, size: int) -> bool:
        """A body that is not complete has so many bytes by now.

        If there is no room, the exchanges with the longest bodies are refused until there is. If
        the newest were refused instead, a few clients that never go on could shut out all others.

        Returns:
            Whether an exchange was refused.
        """
        self.bytes += size - self._bodies.get(owner, 0)
        self._bodies[owner] = size
        longest: list[BodyOwner] = []
        while self.bytes > self.limit and self._bodies:
            longest.append(max(self._bodies, key=self._bodies.__getitem__))
            self.body_is_over(longest[-1])
        for one in longest:
            one.refuse_for_memory()
        return bool(longest)

    def body_is_over(self, owner: BodyOwner) -> None:
        """A body is complete, or of no use any more."""
        self.bytes -= self._bodies.pop(owner, 0)

    # ------------------------------------------------------------------------------ requests

    def has_room_for(self, size: int) -> bool:
        """Whether so many bytes more can be held, as they always can where they are few."""
        return size <= 2 * SMALL_NOTIFICATION or self.bytes + size <= self.limit

    def weigh(self, body: bytes | bytearray, value: Any) -> bool:
        """Note how much a message holds once it is decoded; return whether there is room for it."""
        size = len(body)
        self.arriving = size * _SHORT_FACTOR if size <= _SHORT else _estimated(body)
        if self.bytes + self.arriving > self.limit:
            self.arriving = measured(value, self.limit)
        return self.bytes + self.arriving <= self.limit

    def share(self, requests: list[IncomingRequest]) -> None:
        """These open requests came with the message: each holds a share of it until it ends."""
        share = max(self.arriving // len(requests), 1)
        for request in requests:
            note_held_bytes(request, share)
            self.bytes += share


@final
class HeldOutput:
    """Counts output that waits in an exchange as held by its request.

    Args:
        held: What all requests hold.
    """

    __slots__ = ("_held",)

    def __init__(self, held: HeldMemory) -> None:
        self._held = held

    def waits(self, size: int) -> None:
        """So many bytes wait to be taken."""
        self._held.bytes += size

    def taken(self, size: int) -> None:
        """So many bytes were taken."""
        self._held.bytes -= size


def _estimated(body: bytes | bytearray) -> int:
    """Bytes that a JSON text takes at most when it is decoded, by the signs in it.

    Characters beyond Latin-1 make a string up to four times as large as its text.
    """
    wide = not body.isascii() or b"\\u" in body
    return (
        (4 if wide else 1) * len(body)
        + 104 * body.count(b"[")
        + 150 * body.count(b"{")
        + 50 * body.count(b":")
        + 50 * body.count(b",")
    )


def measured(value: Any, limit: int) -> int:
    """Bytes that a JSON value takes; where that is more than the limit, some number above it."""
    total = 0
    values: list[Any] = [value]
    while values and total <= limit:
        value = values.pop()
        total += sys.getsizeof(value) + _POINTER_BYTES
        if is_object(value):
            values.extend(value)
            values.extend(value.values())
        elif is_list(value):
            values.extend(value)
    return total


# --------------------------------------------------------------------------------- duplicate names


def has_duplicates(text: bytes | bytearray, value: object) -> bool:
    """Whether an object in a JSON text names a member twice.

    Some parsers take the first of the two members and some the last: a gateway might read another
    message than the server.

    Args:
        text: The text, which is valid JSON.
        value: The value that it was decoded to: where a name came twice it has fewer members.
    """
    members = _members(value)
    if text.count(b":") == members:
        return False  # every colon stands behind a name
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
