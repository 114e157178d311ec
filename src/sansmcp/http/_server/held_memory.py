"""How much memory requests hold: bodies that are not complete, and params of open requests.

A message limits nothing by its length alone: `[[],[],` takes more than twenty times its length when
it is decoded, and a handler may keep it for as long as it likes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from ..._wire.values import is_list, is_object

if TYPE_CHECKING:
    from ..._connection.handles import IncomingRequest
    from .exchange import ServerExchange

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


class Held:
    """The account of an endpoint: each request gives back its share when it ends.

    Attributes:
        bytes: What requests and incomplete bodies hold now, by estimate.
        limit: What these may hold.
        arriving: What the message holds that is being received.
        sessions: What sessions hold now: it is counted by itself, since a session may be idle for
            long, and must not keep the requests of others from being served.
        sessions_limit: What sessions may hold.
    """

    __slots__ = ("_bodies", "arriving", "bytes", "limit", "sessions", "sessions_limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0
        self.sessions = 0
        self.sessions_limit = limit // _SESSIONS_SHARE
        self.arriving = 0
        self._bodies: dict[ServerExchange, int] = {}

    # -------------------------------------------------------------------------------- bodies

    def body_has(self, exchange: ServerExchange, size: int) -> list[ServerExchange]:
        """A body that is not complete has so many bytes by now.

        Returns:
            The exchanges that must give up theirs: those with the most, until there is room. To
            refuse the newest instead would let a few clients that never go on shut out all others.
        """
        self.bytes += size - self._bodies.get(exchange, 0)
        self._bodies[exchange] = size
        largest: list[ServerExchange] = []
        while self.bytes > self.limit and self._bodies:
            largest.append(max(self._bodies, key=self._bodies.__getitem__))
            self.body_is_over(largest[-1])
        return largest

    def body_is_over(self, exchange: ServerExchange) -> None:
        """It is complete, or of no use any more."""
        self.bytes -= self._bodies.pop(exchange, 0)

    # ------------------------------------------------------------------------------ requests

    def weigh(self, body: bytes | bytearray, value: Any) -> bool:
        """Note what a message holds once it is decoded; whether there is room for it."""
        size = len(body)
        self.arriving = size * _SHORT_FACTOR if size <= _SHORT else _estimated(body)
        if self.bytes + self.arriving > self.limit:
            self.arriving = measured(value, self.limit)
        return self.bytes + self.arriving <= self.limit

    def share(self, requests: list[IncomingRequest]) -> None:
        """These requests came with the message, and are open: they hold it until they end."""
        for request in requests:
            request._held_bytes = share = max(self.arriving // len(requests), 1)
            self.bytes += share


def _estimated(body: bytes | bytearray) -> int:
    """Bytes that a JSON text takes when it is decoded, and seldom less: signs are counted.

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
    """Bytes that a JSON value takes; where it is more than the limit, some number above it."""
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
