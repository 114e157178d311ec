"""Which exchanges have a connection of an httpx2 client's pool, in all sessions that share it.

httpx2 says that its pool is full, and not by what. If all connections belong to open streams, the
pool stays full until one of these ends. So this module counts them, and closes a stream that other
exchanges must not wait for.
"""

from __future__ import annotations

import enum
import math
import threading
from abc import ABC, abstractmethod
from typing import Any, Final
from weakref import WeakValueDictionary

from sansmcp import Subscription
from sansmcp.http import ClientExchange

from .anomalies import LOGGER

POOL_IS_FULL: Final = (
    "the connection pool of the httpx2 client has no room beside open streams: "
    "give it a larger max_connections"
)
POOL_SECONDS: Final = 0.5
"""Seconds without a connection after which the pool is looked into."""
AGAIN_SECONDS: Final = 1.0
"""Seconds after which an exchange asks again: the application may have freed a connection."""


class PooledExchange(ABC):
    """An exchange that uses a connection of a pool, or waits for one.

    Attributes:
        exchange: The exchange.
        is_message: Whether it carries a message that no request waits for, such as a response to
            the server. Messages go before all else, since a call may wait for one.
        is_displaced: Whether it was ended for the sake of others.
    """

    def __init__(self, exchange: ClientExchange) -> None:
        self.exchange: Final = exchange
        self.is_message: Final = not exchange.awaited and exchange.method != "GET"
        self.is_displaced = False

    @abstractmethod
    def proceed(self) -> None:
        """Send the exchange, which has waited, now."""

    @abstractmethod
    def displace(self) -> None:
        """Set `is_displaced`, and close the connection. It fails with `POOL_IS_FULL`."""

    @property
    def is_standalone(self) -> bool:
        """Whether it is the stream for messages without a request, which all else displaces."""
        exchange = self.exchange
        return exchange.method == "GET" and not exchange.awaited and exchange.is_resumable


class _Place(enum.Enum):
    """What an exchange that was sent has of the pool."""

    QUEUE = "it waits in the queue of httpx2"
    TURN = "another exchange has left its connection to it"
    CONNECTION = "it uses a connection"


class SharedPool:
    """The exchanges that use the connections of one client. Threads may share it.

    Attributes:
        is_crowded: Whether streams beside requests were closed, and are not opened any more.
    """

    def __init__(self) -> None:
        self.is_crowded = False
        self._lock: Final = threading.Lock()
        self._admitted: dict[PooledExchange, _Place] = {}
        self._waiting: dict[PooledExchange, None] = {}
        self._most: float = math.inf  # of exchanges at a time that are no messages

    def admit(self, one: PooledExchange) -> bool:
        """Whether an exchange may be sent now. If not, `proceed` is called when it may.

        Raises:
            PoolIsFull: It would have to wait for streams without a natural end.
        """
        with self._lock:
            if one not in self._admitted:
                if not self._may_be_sent(one):
                    self._wait(one)
                    return False
                self._waiting.pop(one, None)
                self._admitted[one] = _Place.QUEUE
            return True

    def connected(self, one: PooledExchange) -> None:
        """An exchange has a connection."""
        self._admitted[one] = _Place.CONNECTION

    def timed_out(self, one: PooledExchange) -> None:
        """The pool had no connection for an exchange; `proceed` is called when it may have one.

        Raises:
            PoolIsFull: It would have to wait for streams without a natural end.
        """
        with self._lock:
            del self._admitted[one]
            self._wait(one)

    def leave(self, one: PooledExchange) -> None:
        """An exchange is over; one that waits may be sent."""
        with self._lock:
            self._admitted.pop(one, None)
            self._waiting.pop(one, None)
            messages = [other for other in self._waiting if other.is_message]
            following = next(iter(messages or self._waiting), None)
            if following is not None and self._may_be_sent(following):
                del self._waiting[following]
                self._admitted[following] = _Place.TURN
                following.proceed()

    def is_waiting(self, one: PooledExchange) -> bool:
        """Whether an exchange waits for a connection."""
        return one in self._waiting

    # ------------------------------------------------------------------------- with the lock held

    def _may_be_sent(self, one: PooledExchange) -> bool:
        if one.is_message:
            return True
        if self.is_crowded and one.is_standalone:
            return False
        if any(other.is_message for other in self._waiting):
            return False
        return sum(not other.is_message for other in self._admitted) < self._most

    def _wait(self, one: PooledExchange) -> None:
        """Have an exchange wait, and close a stream that it must not wait for."""
        if self.is_crowded and one.is_standalone:
            return  # it waits for ever
        self._waiting[one] = None
        if one.is_standalone or self._has_room_soon():
            return
        users = [other for other, place in self._admitted.items() if place is _Place.CONNECTION]
        asked = {other.exchange.asker for other in self._waiting if other.is_message} - {None}
        is_stuck = bool(users) and all(
            _lasts(other.exchange) or other.exchange in asked for other in users
        )
        if not (one.is_message or is_stuck):
            return
        found = [other for other in users if other.is_standalone]
        if found:
            self.is_crowded = True
            LOGGER.warning("%s", POOL_IS_FULL)
        elif one.is_message:
            found = [other for other in users if other.exchange.is_resumable][:1]
            if is_stuck and not found:
                found = [other for other in users if other.exchange in asked][:1]
        if found:
            if one.is_message:  # keep a connection for the next one
                self._most = max(1, len(users) - 1)
            for other in found:
                other.displace()
        elif is_stuck and not asked:
            del self._waiting[one]
            raise PoolIsFull

    def _has_room_soon(self) -> bool:
        """Whether an exchange is about to leave its connection, or has left it to a message."""
        return any(
            other.is_displaced or (other.is_message and place is not _Place.QUEUE)
            for other, place in self._admitted.items()
        )


class PoolIsFull(Exception):
    """An exchange would wait for streams without a natural end."""


def _lasts(exchange: ClientExchange) -> bool:
    """Whether an exchange is a stream without a natural end."""
    is_standalone = exchange.method == "GET" and not exchange.awaited
    return is_standalone or isinstance(exchange.request, Subscription)


_POOLS: Final = WeakValueDictionary[Any, SharedPool]()
_POOLS_LOCK: Final = threading.Lock()


def pool_of(client: object) -> SharedPool:
    """The pool of an httpx2 client, the same for all sessions that use the client now."""
    with _POOLS_LOCK:
        pool = _POOLS.get(client)
        if pool is None:
            pool = _POOLS[client] = SharedPool()
        return pool
