"""Serves requests of other workers, for sessions of this worker."""

from __future__ import annotations

import json
import time
from typing import Any, Final

from sansmcp.http import CarriedRequest

from .._common.anomalies import LOGGER
from .._common.cluster import ClusterHost
from ._carried import CarriedIn, Carrier
from ._entries import Entry, Kind, byte_headers, is_list
from ._events import RETRY_SECONDS
from ._link import Link
from ._principals import Principals

MOST_BODIES: Final = 64 * 1024 * 1024
"""Bytes of bodies of carried requests that may wait in one worker, each way."""
BUSY: Final = "too many requests wait for other workers of this server: try again later"
_ENDING: Final = (
    "the process that serves this session is being stopped, and takes no more requests: try again "
    "later, or open another session by initialize"
)


class Service:
    """Takes requests of other workers, and has the endpoint serve them.

    Args:
        carrier: This worker.
        host: Runs the endpoint.
        principals: Turns JSON values into principals.

    Attributes:
        is_ending: Whether new requests are refused, since this worker is about to end.
    """

    def __init__(self, carrier: Carrier, host: ClusterHost, principals: Principals) -> None:
        self.is_ending = False
        self._carrier: Final = carrier
        self._host: Final = host
        self._principals: Final = principals
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
                carried.refuse(BUSY, RETRY_SECONDS)
                return
            carried.body += body
            self._bodies += len(body)
            if has_more:
                return
            self._bodies -= len(carried.body)
            body = bytes(carried.body)
        try:
            self._serve(carried, body)
        except Exception as error:  # such as one of `load_principal`
            LOGGER.error("a request of another worker cannot be served", exc_info=error)
            carried.refuse("internal error")

    def _serve(self, carried: CarriedIn, body: bytes) -> None:
        _session_id, method, target, headers, key, principal = carried.head
        if self.is_ending and method == "POST" and _has_request(body):
            # Responses and cancellations are let in: requests under way need them.
            carried.refuse(_ENDING, RETRY_SECONDS)
            return
        host = self._host
        found = byte_headers(headers)
        request = CarriedRequest(
            method=method,
            target=target,
            headers=tuple(found),
            body=body,
            principal=self._principals.load(principal),
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


def _has_request(body: bytes) -> bool:
    """Whether there is a request among the messages of a body."""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return False  # which the endpoint tells its sender
    messages = value if is_list(value) else [value]
    return any(isinstance(one, dict) and "method" in one and "id" in one for one in messages)
