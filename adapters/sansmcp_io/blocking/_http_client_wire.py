"""Sends the exchanges of one endpoint with worker threads, and keeps time."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from sansmcp import Subscription
from sansmcp.http import ClientEndpoint, ClientExchange, ClientHTTPEvent

from .._common.anomalies import LOGGER
from .._common.bounds import FLUSH_SECONDS
from .._common.http_client_settings import HTTPClientLimits
from .._common.shared_pool import POOL_IS_FULL, SharedPool, pool_of
from .._options.clients import HTTPClientOptions
from ..httpx import CONNECTION, new_client, tls_for
from ._http_client_worker import ExchangeJob, KeptConnections, Worker
from ._waiting import WaitingThreads

_MOST_IDLE: Final = 20


class HTTPClientWire(WaitingThreads):
    """Sends the exchanges of an endpoint with worker threads, and keeps time.

    A session inherits this beside `RequestSender`, whose `__init__` has to be called first.
    """

    def __init__(self, endpoint: ClientEndpoint, options: HTTPClientOptions[Any]) -> None:
        self.endpoint: Final = endpoint
        self._limits = options.limits or HTTPClientLimits()
        self._trace = options.trace
        self._authorization = options.new_authorization()
        self._pool = SharedPool() if options.http is None else pool_of(options.http)
        self._new_connections = _connections_for(options, self._pool)
        self._reports = deque[Callable[[], object]]()  # of workers, the oldest first
        self._bells = SimpleQueue[None]()  # wake the thread that reads
        self._has_begun = False  # an exchange has begun since the last `_select`
        self._workers: dict[Worker, None] = {}
        self._idle: list[Worker] = []
        self._running: dict[ClientExchange, ExchangeJob] = {}
        self._waiting_for_slot: dict[ClientExchange, None] = {}  # for a free connection
        self._slot_holders: set[ClientExchange] = set()  # at most `HTTPClientLimits.requests`

    # ---------------------------------------------------------------------------- waiting

    @property
    def _wire_deadline(self) -> float:
        return min((job.deadline for job in self._running.values()), default=math.inf)

    def _prepare_select(self) -> None:
        self._has_begun = False

    def _select(self, seconds: float) -> bool:
        # An interruption may lose a bell, but no report.
        if not self._reports:
            try:
                self._bells.get(timeout=seconds)
            except Empty:
                return False
        return bool(self._reports)

    @property
    def _needs_reader(self) -> bool:
        return self._has_begun

    def _wake_select(self) -> None:
        self._bells.put(None)

    def _leave_to_parent(self) -> None:
        super()._leave_to_parent()
        self._bells = SimpleQueue[None]()

    # ---------------------------------------------------------------------------- sending

    @abstractmethod
    def _waits_for_token(self) -> bool:
        """Whether messages wait until a token is refreshed, which a waiting thread does."""

    def _write_output(self) -> None:
        while self._send_and_abort():
            self._dispatch()

    def _send_and_abort(self) -> bool:
        """Abort and begin exchanges as the endpoint asks; return whether there were any."""
        endpoint = self.endpoint
        has_done = False
        for aborted in endpoint.aborts():
            self._abort(aborted)
            has_done = True
        while not self._waits_for_token() and (exchange := endpoint.next_exchange()) is not None:
            if exchange.awaited and not isinstance(exchange.request, Subscription):
                self._waiting_for_slot[exchange] = None
            else:  # cancellations and responses must not wait; long streams take no slot
                self._begin(exchange)
            has_done = True
        while self._waiting_for_slot and len(self._slot_holders) < self._limits.requests:
            waiting = next(iter(self._waiting_for_slot))
            del self._waiting_for_slot[waiting]
            self._slot_holders.add(waiting)
            self._begin(waiting)
            has_done = True
        return has_done

    def _begin(self, exchange: ClientExchange) -> None:
        """Give an exchange to a worker."""
        if exchange.over:  # the failure of another exchange has ended it
            self._slot_holders.discard(exchange)
            return
        if self._authorization is not None:
            self._authorization.sign(exchange)
        job = self._running[exchange] = ExchangeJob(exchange)
        self._has_begun = True
        if self._pool.is_crowded and job.is_standalone:
            return  # not sent: the pool had no room for such a stream before
        if not exchange.awaited:
            job.deadline = time.monotonic() + self._limits.head
        if self._idle:
            worker = self._idle.pop()  # the last used worker: most likely, its connection is open
        else:
            worker = Worker(self._new_connections, self._limits.connect, self)
            self._workers[worker] = None
        worker.send(job)

    # ---------------------------------------------------------------------- reports of workers

    def post(self, function: Callable[..., object], *args: object) -> None:
        """Have a report handled by an application thread. Workers call this."""
        self._reports.append(partial(function, *args))
        self._bells.put(None)

    def _handle_ready(self, ready: bool) -> None:
        while not self._bells.empty():
            self._bells.get()
        for _ in range(len(self._reports)):
            self._reports.popleft()()
        now = time.monotonic()
        for job in [job for job in self._running.values() if job.deadline <= now]:
            is_waiting = self._pool.is_waiting(job)
            self._lose(job, POOL_IS_FULL if is_waiting else "the server was silent for too long")

    def request_begun(self, job: ExchangeJob, text: bytes) -> None:
        """Trace a request that is about to be sent."""
        if self._trace is not None:
            self._traced(self._trace.sent, CONNECTION, text)

    def request_written(self, job: ExchangeJob) -> None:
        """Note that a request was written."""
        job.is_sent = True

    def head_received(self, job: ExchangeJob, status: int, headers: Any, text: bytes) -> None:
        """Hand the head of a response to its exchange."""
        job.is_sent = True
        job.deadline = time.monotonic() + self._limits.silence
        if self._trace is not None:
            self._traced(self._trace.received, CONNECTION, text)
        job.exchange.receive_head(status, headers, now=time.monotonic(), at=time.time())
        if self._authorization is not None:
            self._authorization.head_received(job.exchange)

    def data_received(self, job: ExchangeJob, data: bytes) -> None:
        """Hand a piece of a response body to its exchange, and let the worker go on."""
        job.deadline = time.monotonic() + self._limits.silence
        if self._trace is not None:
            self._traced(self._trace.received, CONNECTION, data)
        job.exchange.receive_data(data, now=time.monotonic())
        job.resume()

    def response_ended(self, job: ExchangeJob, head: Callable[[], object] | None) -> None:
        """End the exchange of a complete response. If the body is empty, its head comes first."""
        if head is not None:
            head()
        self._forget(job.exchange)
        job.exchange.receive_end(now=time.monotonic())

    def exchange_failed(self, job: ExchangeJob, text: str, *, kept: bool) -> None:
        """End an exchange whose response is missing or incomplete."""
        self._forget(job.exchange)
        job.exchange.receive_failure(text, now=time.monotonic(), kept=kept)

    def worker_is_idle(
        self, worker: Worker, job: ExchangeJob, last: Callable[[], object] | None
    ) -> None:
        """Keep a worker for the next exchange, and handle the last report of its job."""
        self._slot_holders.discard(job.exchange)  # only now: a cancelled call may keep its thread
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(worker)
        else:
            del self._workers[worker]
            worker.end()
        if last is not None:
            last()

    # ------------------------------------------------------------------------------- ending

    def _lose(self, job: ExchangeJob, text: str) -> None:
        job.abort()
        self._forget(job.exchange)
        job.exchange.receive_failure(text, now=time.monotonic())

    def _abort(self, exchange: ClientExchange) -> None:
        if (job := self._running.get(exchange)) is not None:
            job.abort()
        self._forget(exchange)

    def _forget(self, exchange: ClientExchange) -> None:
        self._running.pop(exchange, None)
        self._waiting_for_slot.pop(exchange, None)

    def flush(self, *, until_taken: bool = False) -> None:
        until = time.monotonic() + FLUSH_SECONDS
        while self._is_behind(until_taken) and not self._is_read and time.monotonic() < until:
            self._read(until)
        self._pass_on()

    def _is_behind(self, until_taken: bool) -> bool:
        """Whether a response or notification of this side was not written yet, or not accepted."""
        if self._is_released:
            return False
        return self.endpoint.unsent_bytes > 0 or any(
            (until_taken and not exchange.is_stream)
            or exchange not in self._running
            or not self._running[exchange].is_sent
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
        for worker in self._workers:
            if self.is_forked:
                worker.leave_to_parent()
            else:
                worker.end()
        if not self.is_forked:
            for job in self._running.values():
                job.abort()
            until = time.monotonic() + FLUSH_SECONDS
            for worker in self._workers:
                worker.join(until - time.monotonic())

    # ------------------------------------------------------------------------------- tracing

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

    def _stop_tracing(self) -> None:
        self._trace = None


def _connections_for(
    options: HTTPClientOptions[Any], pool: SharedPool
) -> Callable[[], KeptConnections]:
    """Return a function that makes the connections of a worker.

    All workers share the client of the application. Otherwise, each has a client of its own, so
    that its connection is known.
    """
    given: Any = options.http
    if given is not None:
        shared = KeptConnections(given, pool, is_own=False)
        return lambda: shared
    tls, proxy = tls_for(options.url, options.tls), options.proxy
    new_client(httpx2.Client, tls, proxy).close()  # raises `ValueError` for a wrong proxy
    host = None if proxy is None else urlsplit(proxy).hostname
    return lambda: KeptConnections(
        new_client(httpx2.Client, tls, proxy), pool, is_own=True, proxy=host
    )
