"""The exchanges of one endpoint on workers, and its clock, moved by the threads that wait."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final

import httpx2

from sansmcp import Subscription
from sansmcp.http import ClientEndpoint, ClientExchange, ClientHTTPEvent

from .._common.anomalies import LOGGER
from .._common.bounds import FLUSH_SECONDS
from .._common.http_client_settings import HTTPClientLimits
from .._options.clients import HTTPClientOptions
from ..httpx import CONNECTION, POOL_IS_FULL, is_beside, lasts, new_client, tls_for
from ._http_worker import ClientUse, Job, Worker
from ._waiting import Waiting

_MOST_IDLE: Final = 20


class HTTPWire(Waiting):
    """Moves the exchanges of an endpoint, and tells it the time.

    To be mixed into a session, which has made itself ready before.
    """

    def __init__(self, endpoint: ClientEndpoint, options: HTTPClientOptions[Any]) -> None:
        self.endpoint: Final = endpoint
        self._limits = options.limits or HTTPClientLimits()
        self._trace = options.trace
        self._new_use = _use_of(options)
        self._found = deque[Callable[[], object]]()  # what workers have to tell
        self._bells = SimpleQueue[None]()  # wake the thread that reads
        self._has_begun = False  # an exchange that the thread which reads knows not of
        self._workers: dict[Worker, None] = {}
        self._idle: list[Worker] = []
        self._moving: dict[ClientExchange, Job] = {}
        self._queue: dict[ClientExchange, None] = {}  # until it is their turn
        self._turns: set[ClientExchange] = set()  # whose turn it is
        self._has_no_room = False  # in the pool of the client, for a stream beside calls

    # ---------------------------------------------------------------------------- waiting

    @property
    def _own_alarm(self) -> float:
        return min((job.deadline for job in self._moving.values()), default=math.inf)

    def _get_ready(self) -> None:
        self._has_begun = False

    def _select(self, seconds: float) -> bool:
        # An interruption may lose a bell, and nothing that was found.
        if not self._found:
            try:
                self._bells.get(timeout=seconds)
            except Empty:
                return False
        return bool(self._found)

    @property
    def _needs_reader(self) -> bool:
        return self._has_begun

    def _rouse(self) -> None:
        self._bells.put(None)

    def _leave_to_parent(self) -> None:
        super()._leave_to_parent()
        self._bells = SimpleQueue[None]()

    # ---------------------------------------------------------------------------- beginning

    def _push(self) -> None:
        while self._begin_and_abort():
            self._dispatch()

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
        """Have a worker carry it."""
        if exchange.over:  # the failure of another one has been its end
            self._forget(exchange)
            return
        job = self._moving[exchange] = Job(exchange)
        self._has_begun = True
        if self._has_no_room and is_beside(exchange):
            return  # it is not sent before something else has ended
        if not exchange.awaited:
            job.deadline = time.monotonic() + self._limits.head
        if self._idle:
            worker = self._idle.pop()  # the one used last: its connection is open, most likely
        else:
            worker = Worker(self._new_use, self._limits.connect, self)
            self._workers[worker] = None
        worker.carry(job)

    # ---------------------------------------------------------------- what workers have found

    def post(self, function: Callable[..., object], *args: object) -> None:
        """Have this called by a thread of the application. It is called by workers."""
        self._found.append(partial(function, *args))
        self._bells.put(None)

    def _pull(self, ready: bool) -> None:
        while not self._bells.empty():
            self._bells.get()
        for _ in range(len(self._found)):
            self._found.popleft()()
        now = time.monotonic()
        for job in [job for job in self._moving.values() if job.deadline <= now]:
            self._lose(job, "the server was silent for too long")

    def about_to_send(self, job: Job, text: bytes) -> None:
        """A request is about to be sent."""
        if self._trace is not None:
            self._traced(self._trace.sent, CONNECTION, text)

    def has_sent(self, job: Job) -> None:
        """A request was written."""
        job.is_sent, job.is_crowded = True, False

    def has_head(self, job: Job, status: int, headers: Any, text: bytes) -> None:
        """The head of a response has come."""
        job.is_sent, job.is_crowded = True, False
        job.deadline = time.monotonic() + self._limits.silence
        if self._trace is not None:
            self._traced(self._trace.received, CONNECTION, text)
        job.exchange.receive_head(status, headers, now=time.monotonic(), at=time.time())

    def has_data(self, job: Job, data: bytes) -> None:
        """A piece of a body has come."""
        job.deadline = time.monotonic() + self._limits.silence
        if self._trace is not None:
            self._traced(self._trace.received, CONNECTION, data)
        job.exchange.receive_data(data, now=time.monotonic())
        job.go_on()

    def has_end(self, job: Job, head: Callable[[], object] | None) -> None:
        """All of a response has come, and its head first of all, if there was no body."""
        if head is not None:
            head()
        self._forget(job.exchange)
        job.exchange.receive_end(now=time.monotonic())

    def has_failed(self, job: Job, text: str, *, kept: bool) -> None:
        """There is no response, or the rest of it will not come."""
        self._forget(job.exchange)
        job.exchange.receive_failure(text, now=time.monotonic(), kept=kept)

    def has_no_room(self, job: Job) -> None:
        """The pool of the client has no connection for an exchange: see what is in the way."""
        job.is_crowded = True
        sent = [other for other in self._moving.values() if not other.is_crowded]
        if not is_beside(job.exchange) and sent and all(lasts(other.exchange) for other in sent):
            if not self._has_no_room:
                self._has_no_room = True
                LOGGER.warning("%s", POOL_IS_FULL)
            streams = [other for other in sent if is_beside(other.exchange)]
            job.is_refused = not streams
            for stream in streams:
                self._lose(stream, POOL_IS_FULL)
        job.go_on()

    def gives_way(self, job: Job) -> None:
        """A stream beside calls has its connection together with them."""
        self._has_no_room = True
        text = "over HTTP/2 one thread reads for all: there is no stream beside calls"
        LOGGER.warning("%s", text)
        self._lose(job, text)

    def is_idle(self, worker: Worker, tell: Callable[[], object] | None) -> None:
        """A worker has done what it had to, of which this is to be told, and can do more."""
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(worker)
        else:
            del self._workers[worker]
            worker.end()
        if tell is not None:
            tell()

    # ------------------------------------------------------------------------------- ending

    def _lose(self, job: Job, text: str) -> None:
        job.abort()
        self._forget(job.exchange)
        job.exchange.receive_failure(text, now=time.monotonic())

    def _abort(self, exchange: ClientExchange) -> None:
        if (job := self._moving.get(exchange)) is not None:
            job.abort()
        self._forget(exchange)

    def _forget(self, exchange: ClientExchange) -> None:
        self._moving.pop(exchange, None)
        self._queue.pop(exchange, None)
        self._turns.discard(exchange)

    def flush(self, *, until_taken: bool = False) -> None:
        until = time.monotonic() + FLUSH_SECONDS
        while self._is_behind(until_taken) and not self._is_read and time.monotonic() < until:
            self._read(until)
        self._pass_on()

    def _is_behind(self, until_taken: bool) -> bool:
        """Whether something that nobody waits for has not been written yet, or not been taken."""
        if self._is_released:
            return False
        return self.endpoint.unsent_bytes > 0 or any(
            (until_taken and not exchange.is_stream)
            or exchange not in self._moving
            or not self._moving[exchange].is_sent
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
            for job in self._moving.values():
                job.abort()
            until = time.monotonic() + FLUSH_SECONDS
            for worker in self._workers:
                worker.join(until - time.monotonic())

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


def _use_of(options: HTTPClientOptions[Any]) -> Callable[[], ClientUse]:
    """What each worker uses: the client of the caller, or one of its own.

    With one of its own, no worker has to ask which connection it has.
    """
    given: Any = options.http
    if given is not None:
        shared = ClientUse(given, is_ours=False)
        return lambda: shared
    tls, proxy = tls_for(options.url, options.tls), options.proxy
    new_client(httpx2.Client, tls, proxy).close()  # raises what is wrong with the proxy
    return lambda: ClientUse(new_client(httpx2.Client, tls, proxy), is_ours=True)
