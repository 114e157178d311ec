"""Worker threads that send exchanges with a client of httpx2, whose methods block.

A worker sends one exchange at a time. Application threads share no state with workers: a worker
posts what it has received to its listener, which is called later in an application thread. After
each piece of a body, a worker waits until that piece was taken. So a server that sends without end
has to wait, as with a socket that is not read.
"""

from __future__ import annotations

import math
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, Protocol

import httpx2

from sansmcp.http import ClientExchange

from .._common.anomalies import LOGGER
from ..httpx import (
    build_request,
    failure_text,
    is_beside,
    is_known,
    request_text,
    response_text,
    was_kept,
)


class _Aborted(BaseException):
    """The exchange was aborted: its worker sends and reads no more of it."""


class ExchangeJob:
    """One exchange, between the worker that sends it and the threads of the application.

    Attributes:
        deadline: The time at which the exchange has taken too long; `math.inf`: never.
        is_sent: Whether all of the request was written, as far as is known.
        is_crowded: Whether the exchange waits for a connection of the client's pool.
        is_refused: Whether the exchange has to fail when the pool has no connection for it.
        is_aborted: Whether the worker has to stop.
    """

    def __init__(self, exchange: ClientExchange) -> None:
        self.exchange: Final = exchange
        self.deadline = math.inf
        self.is_sent = False
        self.is_crowded = False
        self.is_refused = False
        self.is_aborted = False
        self._resumed: Final = SimpleQueue[None]()
        self._lock: Final = threading.Lock()
        self._stream: Any = None  # the connection, while no other exchange shares it

    def resume(self) -> None:
        """Let the worker go on, after its last report was handled."""
        self._resumed.put(None)

    def abort(self) -> None:
        """Stop the worker, and shut the connection of the exchange down."""
        with self._lock:
            self.is_aborted = True
            if self._stream is not None:
                _shut_down(self._stream)
        self._resumed.put(None)

    # ------------------------------------------------------------------- in the thread of a worker

    def wait(self) -> None:
        """Wait until `resume` or `abort` is called."""
        self._resumed.get()
        self.check()

    def check(self) -> None:
        """Raise `_Aborted` if the exchange was aborted."""
        if self.is_aborted:
            raise _Aborted

    def set_connection(self, stream: object | None) -> None:
        """Set the connection that `abort` shuts down. None: other exchanges share it."""
        with self._lock:
            self._stream = stream


def _shut_down(stream: Any) -> None:
    found: Any = stream.get_extra_info("socket")
    with suppress(OSError):  # `shutdown` of a TLS socket would end TLS first, while it is read
        socket.socket.shutdown(found, socket.SHUT_RDWR)


class KeptConnections:
    """A client of httpx2, and those of its connections that may be idle.

    httpx2 does not tell which idle connection a request is sent on before the response arrives. If
    only one connection is idle, it must be that one.

    Args:
        client: The client.
        is_own: Whether one worker alone uses the client, and closes it.
    """

    def __init__(self, client: httpx2.Client, *, is_own: bool) -> None:
        self.client: Final = client
        self.is_own: Final = is_own
        self._idle = set[Any]()
        self._lock: Final = threading.Lock()

    @property
    def has_idle(self) -> bool:
        """Whether a connection may be idle."""
        return bool(self._idle)

    def take_only(self) -> object | None:
        """Take the idle connection that httpx2 uses next; None if several or none are idle."""
        with self._lock:
            return self._idle.pop() if len(self._idle) == 1 else None

    def remove(self, stream: object) -> None:
        """Remove a connection that is in use."""
        with self._lock:
            self._idle.discard(stream)

    def add(self, stream: object) -> None:
        """Add a connection whose response is about to end."""
        with self._lock:
            self._idle.add(stream)

    def clear(self) -> None:
        """Remove all: httpx2 opens a new connection only when no idle connection is usable."""
        with self._lock:
            self._idle.clear()

    def leave_to_parent(self) -> None:
        """Close the descriptors in a process made by `os.fork`; the parent's stay open."""
        if self.is_own:
            for stream in self._idle:
                stream.close()


class WorkerListener(Protocol):
    """The reports of workers. A worker posts them; each runs in a thread of the application."""

    def post(self, function: Callable[..., object], *args: object) -> None:
        """Have a method of this listener called soon. Workers call this."""
        ...

    def request_begun(self, job: ExchangeJob, text: bytes) -> None:
        """Handle the beginning of a request, whose text is for traces."""
        ...

    def request_written(self, job: ExchangeJob) -> None:
        """Handle the end of writing a request."""
        ...

    def head_received(self, job: ExchangeJob, status: int, headers: Any, text: bytes) -> None:
        """Handle the head of a response, whose text is for traces."""
        ...

    def data_received(self, job: ExchangeJob, data: bytes) -> None:
        """Handle a piece of a response body, and let the worker go on."""
        ...

    def response_ended(self, job: ExchangeJob, head: Callable[[], object] | None) -> None:
        """Handle the end of a response.

        Args:
            job: The exchange.
            head: Reports the head, if that was not reported before since the body is empty.
        """
        ...

    def exchange_failed(self, job: ExchangeJob, text: str, *, kept: bool) -> None:
        """Handle the failure of an exchange.

        Args:
            job: The exchange.
            text: The reason, as a sentence.
            kept: Whether an idle connection was used, which the server may have closed before.
        """
        ...

    def pool_is_full(self, job: ExchangeJob) -> None:
        """Handle that the client's pool has no connection; the worker waits for `resume`."""
        ...

    def stream_refused(self, job: ExchangeJob) -> None:
        """Handle that a stream beside requests was closed, since its connection is HTTP/2."""
        ...

    def worker_is_idle(self, worker: Worker, last: Callable[[], object] | None) -> None:
        """Handle the end of a job.

        Args:
            worker: The worker, which can be given another job.
            last: The last report of the job.
        """
        ...


class _ConnectionTrace:
    """Follows the trace events of httpx2 for one request: which connection carries it.

    Attributes:
        is_new: Whether a connection was opened for the request.
    """

    def __init__(
        self, connections: KeptConnections, job: ExchangeJob, listener: WorkerListener
    ) -> None:
        self._connections = connections
        self._job = job
        self._listener = listener
        self._stream: Any = None
        self.is_new = False

    def __call__(self, name: str, info: dict[str, Any]) -> None:
        """Handle an event, such as `connection.connect_tcp.started`."""
        protocol, action, phase = name.rsplit(".", 2)
        if action == "response_closed":
            if phase == "started" and self._stream is not None:
                if not self._job.is_aborted:  # else it was shut down
                    self._connections.add(self._stream)
                self._job.set_connection(None)
        elif phase != "failed":
            self._job.check()
            self._handle(protocol, action, phase, info)
            self._job.check()

    def _handle(self, protocol: str, action: str, phase: str, info: dict[str, Any]) -> None:
        match action, phase:
            case "connect_tcp", "started":
                self.is_new = True
                self._connections.clear()
            case "connect_tcp" | "start_tls", "complete":
                self.set_stream(info["return_value"])
            case "send_request_headers", _ if protocol == "http2":
                self.set_stream(None)  # other requests share the connection
            case "send_request_headers", "started" if self._stream is None:
                self.set_stream(self._connections.take_only())
            case "send_request_body", "complete":
                self._listener.post(self._listener.request_written, self._job)
            case _:
                pass

    def response_on(self, stream: Any) -> None:
        """Handle the head of a response over HTTP/1.1, which tells the connection for certain."""
        self._connections.remove(stream)
        self.set_stream(stream)

    def set_stream(self, stream: Any) -> None:
        """Set the connection of the request; None: unknown, or shared."""
        self._stream = stream
        self._job.set_connection(stream)


class Worker:
    """A thread that sends one exchange after the other.

    Args:
        new_connections: Makes the client and its connections; called in the thread of the worker.
        seconds: The seconds that opening a connection may take.
        listener: Gets the reports.
    """

    def __init__(
        self,
        new_connections: Callable[[], KeptConnections],
        seconds: float,
        listener: WorkerListener,
    ) -> None:
        self._new_connections = new_connections
        self._seconds = None if seconds == math.inf else seconds
        self._listener = listener
        self._jobs = SimpleQueue[ExchangeJob | None]()
        self._connections: KeptConnections | None = None
        self._thread = threading.Thread(target=self._run, name="sansmcp HTTP", daemon=True)
        self._thread.start()

    def send(self, job: ExchangeJob) -> None:
        """Begin to send an exchange."""
        self._jobs.put(job)

    def end(self) -> None:
        """End the thread after its last job."""
        self._jobs.put(None)

    def join(self, seconds: float) -> None:
        """Wait until the thread has ended, or for `seconds`."""
        self._thread.join(max(seconds, 0.0))

    def leave_to_parent(self) -> None:
        """Close the descriptors in a process made by `os.fork`, which does not have this thread."""
        if self._connections is not None:
            self._connections.leave_to_parent()

    def _run(self) -> None:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # for the main thread
        connections = self._connections = self._new_connections()
        while (job := self._jobs.get()) is not None:
            last: Callable[[], object] | None = None
            with suppress(_Aborted):
                last = self._run_job(connections, job)
            # In one report, so that the next exchange is sent by this worker, on this connection.
            self._listener.post(self._listener.worker_is_idle, self, last)
        if connections.is_own:
            connections.client.close()

    def _run_job(
        self, connections: KeptConnections, job: ExchangeJob
    ) -> Callable[[], object] | None:
        """Send an exchange, and return the report of its end."""
        trace = _ConnectionTrace(connections, job, self._listener)
        has_head = False
        try:
            response = self._send(connections, job, trace)
            has_head = True
            try:
                if response.http_version != "HTTP/2":
                    trace.response_on(response.extensions.get("network_stream"))
                elif is_beside(job.exchange):
                    return partial(self._listener.stream_refused, job)
                head = self._read_response(job, response)
            finally:
                response.close()
            return partial(self._listener.response_ended, job, head)
        except _Aborted:
            raise
        # Hooks, `auth=` and an application in this process may raise anything, and a thread that
        # ended by it would leave the request without an ending.
        except BaseException as error:
            if job.is_aborted:
                return None
            if not is_known(error):
                LOGGER.error("the httpx2 client has failed", exc_info=error)
            text = failure_text(error, has_head=has_head, connect=self._seconds)
            kept = not (trace.is_new or has_head) and was_kept(error)
            return partial(self._listener.exchange_failed, job, text, kept=kept)
        finally:
            job.set_connection(None)

    def _read_response(
        self, job: ExchangeJob, response: httpx2.Response
    ) -> Callable[[], object] | None:
        """Read the body of a response. If the body is empty, return the report of the head."""
        listener = self._listener
        status, headers, text = response.status_code, response.headers, response_text(response)
        head: Callable[[], object] | None
        head = partial(listener.head_received, job, status, headers.raw, text)
        if "event-stream" in headers.get("content-type", ""):
            listener.post(head)  # any other head is reported together with the body
            head = None
        is_first = True
        for data in response.iter_bytes():
            if not is_first:
                job.wait()
            if head is not None:
                listener.post(head)
            listener.post(listener.data_received, job, data)
            is_first, head = False, None
        return head

    def _send(
        self, connections: KeptConnections, job: ExchangeJob, trace: Callable[..., None]
    ) -> httpx2.Response:
        """Send a request when the client's pool has room for it, and return the response."""
        exchange = job.exchange
        seconds = self._seconds
        if seconds is not None and connections.is_own and not connections.has_idle:
            # All addresses of a server share that time, since any of them may never answer.
            with suppress(OSError, UnicodeError):
                found = socket.getaddrinfo(exchange.origin.host, 0, type=socket.SOCK_STREAM)
                seconds /= max(len(found), 1)
        while True:
            request = build_request(connections.client, exchange, connect=seconds, trace=trace)
            self._listener.post(self._listener.request_begun, job, request_text(request))
            try:
                return connections.client.send(request, stream=True, follow_redirects=False)
            except httpx2.PoolTimeout:
                self._listener.post(self._listener.pool_is_full, job)
                job.wait()
                if job.is_refused:
                    raise
