"""The sockets of a blocking client: which are watched, and which can be used again."""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Callable
from typing import Final

from .._common.tls import TLS
from ._http_link import Address, ClientLink

Ready = list[tuple[selectors.SelectorKey, int]]

_MOST_IDLE: Final = 20
_IDLE_SECONDS: Final = 60.0
"""After so long a server may close it at any moment, in the midst of the next request."""


class ClientPool:
    """Opens connections, watches all of them, and keeps those that can be used again.

    One thread at a time selects, without a lock. Nothing of what it watches is changed meanwhile:
    changes wait for `refresh`, and `rouse` brings that about.

    Args:
        make_tls: Makes what speaks TLS on a connection; None in the clear.
    """

    def __init__(self, make_tls: Callable[[], TLS | None]) -> None:
        self._make_tls = make_tls
        self._selector = selectors.DefaultSelector()
        self._waker, self._wakes = socket.socketpair()
        self._waker.setblocking(False)
        self._wakes.setblocking(False)
        self._selector.register(self._waker, selectors.EVENT_READ)
        self._watched: dict[ClientLink, int] = {}
        self._changed: dict[ClientLink, None] = {}
        self._idle: list[ClientLink] = []

    # ------------------------------------------------------------------------- connections

    def take(self) -> ClientLink | None:
        """A connection that was used before, and can be again; None: there is none."""
        while self._idle:
            link = self._idle.pop()  # the one used last: the others may be closed as time goes by
            if time.monotonic() <= link.used_at + _IDLE_SECONDS and not link.is_stale():
                return link
            self.drop(link)
        return None

    def open(self, addresses: list[Address]) -> ClientLink:
        """A new connection, which is not there yet.

        Raises:
            OSError: There will be none.
        """
        link = ClientLink(addresses, self._make_tls())
        self.note(link)
        return link

    def give_back(self, link: ClientLink) -> None:
        """Keep it, if it can carry anything more."""
        link.exchange = None
        if link.is_reusable and len(self._idle) < _MOST_IDLE:
            link.used_at = time.monotonic()
            self._idle.append(link)
        else:
            self.drop(link)

    def drop(self, link: ClientLink) -> None:
        """Close it, as soon as nobody selects."""
        link.exchange = None
        link.leave()
        if link in self._idle:
            self._idle.remove(link)
        self._changed[link] = None

    # ----------------------------------------------------------------------------- watching

    @property
    def has_changed(self) -> bool:
        """Whether `refresh` has something to do."""
        return bool(self._changed)

    def note(self, link: ClientLink) -> None:
        """It may want to be watched for something else from now on."""
        if self._watched.get(link) != link.wants:
            self._changed[link] = None

    def forget(self, link: ClientLink) -> None:
        """Watch its socket no more: it gets another one. Not while somebody selects."""
        if self._watched.pop(link, None) is not None:
            self._selector.unregister(link.socket)

    def refresh(self) -> None:
        """Watch what is to be watched from now on. Not while somebody selects."""
        for link in self._changed:
            if link.is_gone:
                self.forget(link)
                link.socket.close()
                continue
            wants = link.wants
            if link not in self._watched:
                self._selector.register(link.socket, wants, link)
            elif self._watched[link] != wants:
                self._selector.modify(link.socket, wants, link)
            self._watched[link] = wants
        self._changed.clear()

    def select(self, seconds: float) -> Ready:
        """Wait until something happens, or for so long."""
        return self._selector.select(seconds)

    def rouse(self) -> None:
        """Have `select` return."""
        with contextlib.suppress(BlockingIOError):  # it is awake already
            self._wakes.send(b"\0")

    def roused(self) -> None:
        """It has returned."""
        with contextlib.suppress(BlockingIOError):
            self._waker.recv(4096)

    def close(self, *, is_shared: bool) -> None:
        """Close all. Nobody may select any more.

        Args:
            is_shared: Another process has the same sockets, and goes on with them.
        """
        for link in {**self._watched, **self._changed}:
            if not is_shared:
                link.leave()
            link.socket.close()
        self._selector.close()
        self._waker.close()
        self._wakes.close()
