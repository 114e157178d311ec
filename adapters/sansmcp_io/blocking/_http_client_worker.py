"""Worker threads that send exchanges with a client of httpx2, whose methods block.

A worker sends one exchange at a time. Application threads share no state with workers: a worker
posts what it has received to its wire, which is called later in an application thread. After
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
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

import httpx2

from sansmcp.http import ClientExchange

from .._common.http_client_events import note_hook_error
from .._common.shared_pool import AGAIN_SECONDS, POOL_IS_FULL, PooledExchange, SharedPool
from ..httpx import (
    ConnectionNotes,
    HTTP2Refused,
    build_request,
    failure_text,
    is_known,
    request_text,
    response_text,
    was_kept,
)

if TYPE_CHECKING:
    from ._http_client_wire import HTTPClientWire


_OPENING: Final = frozenset({"connect_tcp", "connect_unix_socket", "start_tls"})
"""The steps in which a connection opens."""


class _Aborted(BaseException):
    """The exchange was aborted or displaced: its worker sends and reads no more of it."""


class ExchangeJob(PooledExchange):
    """One exchange, between the worker that sends it and the threads of the application.

    Attributes:
        deadline: The time at which the exchange has taken too long; `math.inf`: never.
        is_sent: Whether all of the request was written, as far as is known.
        is_aborted: Whether the worker has to stop.
    """

    def __init__(self, exchange: ClientExchange) -> None:
        super().__init__(exchange)
        self.deadline = math.inf
        self.is_sent = False
        self.is_aborted = False
        self._resumed: Final = SimpleQueue[None]()
        self._lock: Final = threading.Lock()
        self._stream: Any = None  # the connection, while no other exchange shares it

    def resume(self) -> None:
        """Let the worker go on, after its last report was handled."""
        self._resumed.put(None)

    def proceed(self) -> None:
        self.resume()

    def abort(self) -> None:
        """Stop the worker, and shut the connection of the exchange down."""
        self.is_aborted = True
        self._stop()

    def displace(self) -> None:
        self.is_displaced = True
        self._stop()

    def _stop(self) -> None:
        with self._lock:
            if self._stream is not None:
                shut_down(self._stream)
        self._resumed.put(None)

    # ------------------------------------------------------------------- in the thread of a worker

    def wait(self, timeout: float | None = None) -> None:
        """Wait until `resume` or `abort` is called, or for so many seconds."""
        with suppress(Empty):
            self._resumed.get(timeout=timeout)
        self.check()

    def check(self) -> None:
        """Raise `_Aborted` if the exchange was aborted or displaced."""
        if self.is_aborted or self.is_displaced:
            raise _Aborted

    def set_connection(self, stream: object | None) -> None:
        """Set the connection that `abort` shuts down; None: it is unknown."""
        with self._lock:
            self._stream = stream


def shut_down(stream: Any) -> None:
    """Let a thread that reads from or writes to a connection of httpx2 end at once."""
    found: Any = stream.get_extra_info("socket")
    with suppress(OSError):  # `shutdown` of a TLS socket would end TLS first, while it is read
        socket.socket.shutdown(found, socket.SHUT_RDWR)


class KeptConnections:
    """A client of httpx2, and those of its connections that may be idle.

    httpx2 does not tell which idle connection a request is sent on before the response arrives. If
    one worker alone uses the client and only one connection is idle, it must be that one.

    Args:
        client: The client.
        pool: Its pool.
        is_own: Whether one worker alone uses the client, and closes it.
        proxy: The host of the proxy that the client connects to; None: it connects to the server.
    """

    def __init__(
        self, client: httpx2.Client, pool: SharedPool, *, is_own: bool, proxy: str | None = None
    ) -> None:
        self.client: Final = client
        self.pool: Final = pool
        self.is_own: Final = is_own
        self.proxy: Final = proxy
        self._idle = set[Any]()
        self._lock: Final = threading.Lock()

    @property
    def has_idle(self) -> bool:
        """Whether a connection may be idle."""
        return bool(self._idle)

    def take_only(self) -> object | None:
        """Take the idle connection that httpx2 uses next; None if it is not known."""
        with self._lock:
            is_known = self.is_own and len(self._idle) == 1
            return self._idle.pop() if is_known else None

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


class _ConnectionTrace(ConnectionNotes):
    """Follows the trace events of httpx2 for one request: which connection carries it."""

    def __init__(
        self, connections: KeptConnections, job: ExchangeJob, wire: HTTPClientWire
    ) -> None:
        super().__init__(job.exchange)
        self._connections = connections
        self._job = job
        self._wire = wire
        self._stream: Any = None

    def __call__(self, name: str, info: dict[str, Any]) -> None:
        """Handle an event, such as `connection.connect_tcp.started`."""
        self._connections.pool.connected(self._job)
        self.note(name, info)
        protocol, action, phase = name.rsplit(".", 2)
        if action == "response_closed":
            if phase == "started" and self._stream is not None:
                if not (self._job.is_aborted or self._job.is_displaced):  # else it was shut down
                    self._connections.add(self._stream)
                self._job.set_connection(None)
        elif phase != "failed":
            try:
                self._job.check()
                self._handle(protocol, action, phase, info)
                self._job.check()
            except _Aborted:
                # httpx2 closes a connection only from the time on at which it is open.
                opening = info.get("return_value") if phase == "complete" else self._stream
                if action in _OPENING and opening is not None:
                    opening.close()
                raise

    def _handle(self, protocol: str, action: str, phase: str, info: dict[str, Any]) -> None:
        match action, phase:
            case "connect_tcp" | "connect_unix_socket", "started":
                self._connections.clear()
            case _, "complete" if action in _OPENING:
                self.set_stream(info["return_value"])
            case "send_request_headers", "started" if protocol == "http2":
                raise HTTP2Refused
            case "send_request_headers", "started" if self._stream is None:
                self.set_stream(self._connections.take_only())
            case "send_request_body", "complete":
                self._wire.post(self._wire.request_written, self._job)
            case _:
                pass

    def response_on(self, stream: Any) -> None:
        """Handle the head of a response over HTTP/1.1, which tells the connection for certain."""
        self._connections.remove(stream)
        self.set_stream(stream)

    def set_stream(self, stream: Any) -> None:
        """Set the connection of the request; None: unknown."""
        self._stream = stream
        self._job.set_connection(stream)


class Worker:
    """A thread that sends one exchange after the other.

    Args:
        new_connections: Makes the client and its connections; called in the thread of the worker.
        seconds: The seconds that opening a connection may take.
        wire: Gets the reports, each later in a thread of the application.
    """

    def __init__(
        self,
        new_connections: Callable[[], KeptConnections],
        seconds: float,
        wire: HTTPClientWire,
    ) -> None:
        self._new_connections = new_connections
        self._seconds = None if seconds == math.inf else seconds
        self._wire = wire
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
            last = self._run_job(connections, job)
            # In one report, so that the next exchange is sent by this worker, on this connection.
            self._wire.post(self._wire.worker_is_idle, self, job, last)
        if connections.is_own:
            connections.client.close()

    def _run_job(
        self, connections: KeptConnections, job: ExchangeJob
    ) -> Callable[[], object] | None:
        """Send an exchange, and return the report of its end."""
        trace = _ConnectionTrace(connections, job, self._wire)
        has_head = False
        try:
            response = self._send(connections, job, trace)
            has_head = True
            try:
                trace.response_on(response.extensions.get("network_stream"))
                head = self._read_response(job, response)
            finally:
                response.close()
            return partial(self._wire.response_ended, job, head)
        # Hooks, `auth=` and an application in this process may raise anything, and a thread that
        # ended by it would leave the request without an ending.
        except BaseException as error:
            if job.is_aborted:
                return None
            if job.is_displaced:
                return partial(self._wire.exchange_failed, job, POOL_IS_FULL, kept=False)
            if not is_known(error):
                self._wire.post(note_hook_error, job.exchange, error)
            text = failure_text(error, has_head=has_head, connect=self._seconds, proxy=trace.proxy)
            kept = not (trace.is_new or has_head) and was_kept(error)
            return partial(self._wire.exchange_failed, job, text, kept=kept)
        finally:
            job.set_connection(None)
            connections.pool.leave(job)

    def _read_response(
        self, job: ExchangeJob, response: httpx2.Response
    ) -> Callable[[], object] | None:
        """Read the body of a response. If the body is empty, return the report of the head."""
        wire = self._wire
        status, headers, text = response.status_code, response.headers, response_text(response)
        head: Callable[[], object] | None
        head = partial(wire.head_received, job, status, headers.raw, text)
        if "event-stream" in headers.get("content-type", ""):
            wire.post(head)  # any other head is reported together with the body
            head = None
        is_first = True
        for data in response.iter_bytes():
            if not is_first:
                job.wait()
            if head is not None:
                wire.post(head)
            wire.post(wire.data_received, job, data)
            is_first, head = False, None
        return head

    def _send(
        self, connections: KeptConnections, job: ExchangeJob, trace: Callable[..., None]
    ) -> httpx2.Response:
        """Send a request when the client's pool has room for it, and return the response."""
        exchange, pool = job.exchange, connections.pool
        seconds = self._seconds
        if seconds is not None and connections.is_own and not connections.has_idle:
            # All addresses share that time, since any of them may never answer. A proxy looks the
            # name of the server up, so only its own name is looked up here.
            host = connections.proxy or exchange.origin.host
            with suppress(OSError, UnicodeError):
                found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
                seconds /= max(len(found), 1)
        while True:
            while not pool.admit(job):
                job.wait(AGAIN_SECONDS)
            request = build_request(connections.client, exchange, connect=seconds, trace=trace)
            self._wire.post(self._wire.request_begun, job, request_text(request))
            try:
                return connections.client.send(request, stream=True, follow_redirects=False)
            except httpx2.PoolTimeout:
                pool.timed_out(job)
                job.wait(AGAIN_SECONDS)
