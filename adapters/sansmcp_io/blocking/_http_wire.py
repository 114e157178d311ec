"""The exchanges of one endpoint on sockets, and its clock, moved by the threads that wait."""

from __future__ import annotations

import math
import os
import socket
import ssl
import time
from collections.abc import Callable
from selectors import EVENT_WRITE
from typing import Final

from sansmcp import Subscription
from sansmcp.http import ClientEndpoint, ClientExchange, ClientHTTPEvent, Origin

from .._common.anomalies import LOGGER
from .._common.bounds import FLUSH_SECONDS
from .._common.http_client_settings import HTTPClientLimits
from .._common.tls import TLS
from .._common.trace import HTTPClientTrace
from ._http_link import Address, ClientLink, sentence
from ._http_pool import ClientPool, Ready
from ._waiting import Waiting

_ADDRESS_SECONDS: Final = 60.0
"""How long what the resolver of names has said is believed."""


class HTTPWire(Waiting):
    """Moves the exchanges of an endpoint, and tells it the time.

    To be mixed into a session, which has made itself ready before.
    """

    def __init__(
        self,
        endpoint: ClientEndpoint,
        *,
        tls: ssl.SSLContext | None,
        limits: HTTPClientLimits,
        trace: HTTPClientTrace | None,
    ) -> None:
        self.endpoint: Final = endpoint
        self._tls = tls
        self._limits = limits
        self._trace = trace
        self._origin: Origin | None = None
        self._pool = ClientPool(self._make_tls)
        self._moving: dict[ClientExchange, ClientLink] = {}
        self._queue: dict[ClientExchange, None] = {}  # until it is their turn
        self._turns: set[ClientExchange] = set()  # whose turn it is
        self._unresolved: dict[ClientExchange, None] = {}  # until it is known where the server is
        self._is_resolving = False
        self._addresses: list[Address] = []
        self._resolved_at = -math.inf

    # ---------------------------------------------------------------------------- waiting

    @property
    def _own_alarm(self) -> float:
        return min((link.alarm for link in self._moving.values()), default=math.inf)

    def _get_ready(self) -> None:
        self._pool.refresh()

    def _select(self, seconds: float) -> Ready:
        return self._pool.select(seconds)

    @property
    def _needs_reader(self) -> bool:
        return self._pool.has_changed or self._must_resolve

    def _rouse(self) -> None:
        self._pool.rouse()

    def _next_job(self) -> Callable[[], None] | None:
        return self._resolve if self._must_resolve else super()._next_job()

    # ---------------------------------------------------------------------------- beginning

    def _push(self) -> None:
        while self._begin_and_abort():
            self._dispatch()
        if not self._is_read:
            self._pool.refresh()

    def _begin_and_abort(self) -> bool:
        """Do what the endpoint wants done, and return whether that may have had consequences."""
        endpoint = self.endpoint
        has_done = False
        for aborted in endpoint.aborts():
            self._abort(aborted)
            has_done = True
        while (exchange := endpoint.next_exchange()) is not None:
            if exchange.awaited and not isinstance(exchange.request, Subscription):
                self._queue[exchange] = None
            else:  # what is said about others must not wait for them, nor they for what lasts
                self._begin(exchange)
            has_done = True
        while self._queue and len(self._turns) < self._limits.requests:
            waiting = next(iter(self._queue))
            del self._queue[waiting]
            self._turns.add(waiting)
            self._begin(waiting)
            has_done = True
        return has_done

    def _begin(self, exchange: ClientExchange) -> None:
        """Carry it on a connection, if it is known where to."""
        if exchange.over:  # the failure of another one has been its end
            self._forget(exchange)
            return
        self._origin = exchange.origin
        link = self._pool.take()
        if link is None:
            if self._addresses_are_old:
                self._unresolved[exchange] = None
                return
            try:
                link = self._pool.open(self._addresses)
            except OSError as error:
                self._resolved_at = -math.inf
                self._lose(exchange, sentence(error))
                return
            link.deadline = time.monotonic() + self._limits.connect
            link.exchange = exchange
        else:
            link.exchange = exchange
            self._opened(link)
        self._moving[exchange] = link
        data = link.http.send(exchange)
        if self._trace is not None:
            self._traced(self._trace.sent, link.name, data)
        link.send(data)
        self._pool.note(link)

    def _make_tls(self) -> TLS | None:
        origin = self._origin
        assert origin is not None  # a connection is opened for an exchange
        if origin.scheme == "http":
            return None
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return TLS(self._tls, origin.host)

    # ---------------------------------------------------------------------------- resolving

    @property
    def _addresses_are_old(self) -> bool:
        if self._is_ending and self._addresses:
            return False  # for the last farewell they are good enough
        return time.monotonic() > self._resolved_at + _ADDRESS_SECONDS

    @property
    def _must_resolve(self) -> bool:
        return bool(self._unresolved) and not self._is_resolving

    def _resolve(self) -> None:
        """Ask where the server is. Systems have no way to ask that without waiting."""
        assert self._origin is not None
        failure: Exception | None = None
        self._is_resolving = True
        try:
            self._addresses = self._without_lock(_addresses_of, self._origin)
            self._resolved_at = time.monotonic()
        except (OSError, UnicodeError) as error:
            failure = error
        finally:
            self._is_resolving = False
        exchanges, self._unresolved = self._unresolved, {}
        for exchange in exchanges:
            if failure is None:
                self._begin(exchange)
            else:
                self._lose(exchange, sentence(failure))
        self.turn()

    # ------------------------------------------------------------------------------- moving

    def _pull(self, ready: Ready) -> None:
        for key, mask in ready:
            link: ClientLink | None = key.data
            if link is None:
                self._pool.roused()
            elif not link.is_gone:  # since it was selected
                self._move(link, mask)
        now = time.monotonic()
        for link in [link for link in self._moving.values() if link.alarm <= now]:
            self._look_after(link, now)

    def _move(self, link: ClientLink, mask: int) -> None:
        exchange = link.exchange
        try:
            if not link.is_connected:
                self._connected(link)
            if link.is_connected:
                if mask & EVENT_WRITE:
                    link.write()
                else:
                    self._read_from(link)
        except OSError as error:
            self._pool.drop(link)
            if exchange is not None:
                self._forget(exchange)
                link.http.fail(sentence(error), now=time.monotonic())
            return
        if not link.is_gone:
            self._pool.note(link)

    def _connected(self, link: ClientLink) -> None:
        failure = link.connected()
        if failure:
            self._pool.forget(link)
            if not link.try_elsewhere():
                self._resolved_at = -math.inf  # it may have moved
                raise OSError(failure, os.strerror(failure))
        elif link.is_open:
            self._opened(link)

    def _opened(self, link: ClientLink) -> None:
        """It carries its exchange from now on."""
        assert link.exchange is not None  # it was opened for that
        waits = math.inf if link.exchange.awaited else self._limits.head
        link.deadline = time.monotonic() + waits

    def _read_from(self, link: ClientLink) -> None:
        was_open = link.is_open
        data = link.read()
        if not was_open and link.is_open:
            self._opened(link)
        if data is None:
            return
        exchange = link.exchange
        if exchange is None:
            self._pool.drop(link)  # the server has closed it, or talks when nobody has asked
            return
        if self._trace is not None:
            self._traced(self._trace.received, link.name, data)
        now = time.monotonic()
        link.http.receive(data, now=now, at=time.time())
        if link.http.done:
            self._forget(exchange)
            self._pool.give_back(link)
        elif link.http.has_head:
            link.deadline = now + self._limits.silence

    def _look_after(self, link: ClientLink, now: float) -> None:
        """Its time is over, or that of one of its addresses."""
        if now < link.deadline:
            self._pool.forget(link)
            try:
                link.try_elsewhere()
            except OSError as error:
                self._break(link, sentence(error))
            else:
                self._pool.note(link)
        elif link.is_open:
            self._break(link, "the server was silent for too long")
        else:
            self._resolved_at = -math.inf
            seconds = self._limits.connect
            self._break(link, f"the connection has failed: not open within {seconds:g} s")

    # ------------------------------------------------------------------------------- ending

    def _break(self, link: ClientLink, text: str) -> None:
        exchange = link.exchange
        self._pool.drop(link)
        if exchange is not None:
            self._lose(exchange, text)

    def _lose(self, exchange: ClientExchange, text: str) -> None:
        self._forget(exchange)
        exchange.receive_failure(text, now=time.monotonic())

    def _abort(self, exchange: ClientExchange) -> None:
        link = self._moving.get(exchange)
        if link is not None:
            self._pool.drop(link)
        self._forget(exchange)

    def _forget(self, exchange: ClientExchange) -> None:
        self._moving.pop(exchange, None)
        self._queue.pop(exchange, None)
        self._unresolved.pop(exchange, None)
        self._turns.discard(exchange)

    def flush(self, *, until_taken: bool = False) -> None:
        until = time.monotonic() + FLUSH_SECONDS
        while self._is_behind(until_taken) and not self._is_read and time.monotonic() < until:
            if self._must_resolve:
                self._resolve()
            else:
                self._read(until)
        self._pass_on()

    def _is_behind(self, until_taken: bool) -> bool:
        """Whether something that nobody waits for has not been written yet, or not been taken."""
        if self._is_released:
            return False
        return self.endpoint.unsent_bytes > 0 or any(
            (until_taken and not exchange.is_stream)
            or exchange not in self._moving
            or self._moving[exchange].is_behind
            for exchange in self.endpoint.exchanges
            if exchange.method == "POST" and not exchange.awaited
        )

    def _finish(self) -> None:
        try:
            self.side.close(now=time.monotonic())
            self.turn()
            self.wait(lambda: not self.endpoint.exchanges, time.monotonic() + FLUSH_SECONDS)
        finally:
            self.wait(lambda: not self._is_read)

    def _close(self) -> None:
        self._pool.close(is_shared=self.is_forked)

    # ------------------------------------------------------------------------------ watching

    def _next_event(self) -> ClientHTTPEvent | None:
        event = self.endpoint.next_event()
        if event is not None and self._trace is not None:
            self._traced(self._trace.happened, event)
        return event

    def _traced(self, function: Callable[..., None], *args: object) -> None:
        try:
            function(*args)
        except Exception as error:
            LOGGER.error("the trace failed", exc_info=error)

    def _drop_trace(self) -> None:
        self._trace = None


def _addresses_of(origin: Origin) -> list[Address]:
    found = socket.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    return [(family, address) for family, _, _, _, address in found]
