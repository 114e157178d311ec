"""Serves requests of other workers, for sessions of this worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from sansmcp.http import CarriedRequest, Session

from .._common.anomalies import LOGGER
from .._common.cluster import ClusterHost
from ._carried import CarriedIn, Carrier
from ._entries import Entry, Kind, byte_headers
from ._link import Link

MOST_BODIES: Final = 64 * 1024 * 1024
"""Bytes of bodies of carried requests that may wait in one worker, each way."""
BUSY: Final = "too many requests wait for other workers of this server: try again later"


class _NoPrincipal:
    """Equal to no principal: a request of another one finds no session."""


class Service:
    """Takes requests of other workers, and has the endpoint serve them.

    Args:
        carrier: This worker.
        host: Runs the endpoint.
        key_of: From a session to the key of its principal.
    """

    def __init__(
        self, carrier: Carrier, host: ClusterHost, key_of: Callable[[Session], str | None]
    ) -> None:
        self._carrier: Final = carrier
        self._host: Final = host
        self._key_of: Final = key_of
        self._bodies = 0  # bytes of requests that are not complete

    def take(self, link: Link, entry: Entry) -> None:
        """Take an entry about a request of another worker."""
        number, *rest = entry.rest
        if entry.kind is Kind.REQUEST:
            has_more, *head = rest
            self._receive(CarriedIn(self._carrier, link, number, head), entry.body, has_more)
            return
        carried = link.carried_in.get(number)
        if carried is None:
            return
        if entry.kind is Kind.GONE:
            self.lose(carried)
        elif entry.kind is Kind.TAKEN:
            carried.take(rest[0])
        elif carried.exchange is None:
            self._receive(carried, entry.body, rest[0])

    def _receive(self, carried: CarriedIn, body: bytes, has_more: int) -> None:
        """Take a part of the body of a request, and serve it when it is complete."""
        if has_more or carried.body:
            if self._bodies + len(body) > MOST_BODIES:
                self._bodies -= len(carried.body)
                carried.refuse(BUSY)
                return
            carried.body += body
            self._bodies += len(body)
            if has_more:
                return
            self._bodies -= len(carried.body)
            body = bytes(carried.body)
        try:
            self._serve(carried, body)
        except Exception as error:  # such as one of `principal_key`; others must not wait for it
            LOGGER.error("a request of another worker cannot be served", exc_info=error)
            carried.refuse("internal error")

    def _serve(self, carried: CarriedIn, body: bytes) -> None:
        session_id, method, target, headers, key = carried.head
        host = self._host
        principal: Any = None
        session = host.endpoint.find_session(session_id)
        if session is not None:
            principal = session.principal
            if self._key_of(session) != key:
                principal, key = _NoPrincipal(), ""
        found = byte_headers(headers)
        request = CarriedRequest(
            method=method,
            target=target,
            headers=tuple(found),
            body=body,
            principal=principal,
            principal_key=key,
        )
        context = host.carried_context(method, target, found)
        carried.serve(
            host.endpoint.receive_carried(request, context=context, at=time.time(), now=host.now())
        )
        carried.flush()

    def lose(self, carried: CarriedIn) -> None:
        """The client of a request is gone, or cannot be reached."""
        if carried.exchange is None:
            self._bodies -= len(carried.body)
        carried.lose()
