"""Threads that carry exchanges on a client of httpx2, whose methods wait.

A worker carries one exchange after the other. It touches nothing that threads of the application
share: what it finds is told to them, and waits until one of them reads it. No worker reads on
before the piece of a body that it has found last was taken, so that a server which sends without
end has to wait, as on a socket that is not read.
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
    """Nobody wants to know more of an exchange."""


class Job:
    """One exchange under way.

    Attributes:
        deadline: When it has taken too long; `math.inf`: never.
        is_sent: All of the request was written, as far as is known.
        is_crowded: It has no connection, since the pool of the client has none to give.
        is_refused: It is not to wait for one.
    """

    def __init__(self, exchange: ClientExchange) -> None:
        self.exchange: Final = exchange
        self.deadline = math.inf
        self.is_sent = False
        self.is_crowded = False
        self.is_refused = False
        self.is_aborted = False
        self._go: Final = SimpleQueue[None]()
        self._lock: Final = threading.Lock()
        self._stream: Any = None  # its connection, while that carries nothing else

    def go_on(self) -> None:
        """What was found last is taken: find more."""
        self._go.put(None)

    def abort(self) -> None:
        """Find no more, and close the connection."""
        with self._lock:
            self.is_aborted = True
            if self._stream is not None:
                _shut_down(self._stream)
        self._go.put(None)

    # ------------------------------------------------------------------- in the thread of a worker

    def wait(self) -> None:
        """Wait until it is to go on."""
        self._go.get()
        self.check()

    def check(self) -> None:
        """Go no further if it is aborted."""
        if self.is_aborted:
            raise _Aborted

    def runs_on(self, stream: object | None) -> None:
        """Whether a connection carries it, and nothing else."""
        with self._lock:
            self._stream = stream


def _shut_down(stream: Any) -> None:
    found: Any = stream.get_extra_info("socket")
    with suppress(OSError):  # one of TLS would end that first, while it is read
        socket.socket.shutdown(found, socket.SHUT_RDWR)


class ClientUse:
    """A client, and those of its connections that have carried an exchange and may be free.

    What sends a request on a connection that was kept is not told which one that is, before there
    is a response. If one is free, it can be no other.

    Args:
        client: The client.
        is_ours: It is used by one worker, and closed with that.
    """

    def __init__(self, client: httpx2.Client, *, is_ours: bool) -> None:
        self.client: Final = client
        self.is_ours: Final = is_ours
        self._free = set[Any]()
        self._lock: Final = threading.Lock()

    @property
    def has_free(self) -> bool:
        """Whether there is a connection that was kept."""
        return bool(self._free)

    def guess(self) -> object | None:
        """The connection that was kept and is in use now, if there is but one."""
        with self._lock:
            return self._free.pop() if len(self._free) == 1 else None

    def taken(self, stream: object) -> None:
        """This one is in use."""
        with self._lock:
            self._free.discard(stream)

    def freed(self, stream: object) -> None:
        """This one is about to be free."""
        with self._lock:
            self._free.add(stream)

    def opens(self) -> None:
        """A new one is opened: none that was kept was of use any more."""
        with self._lock:
            self._free.clear()

    def leave_to_parent(self) -> None:
        """This is a process made by `os.fork`: close the descriptor, and tell nobody."""
        if self.is_ours:
            for stream in self._free:
                stream.close()


class Told(Protocol):
    """Where workers tell what they find; each method is called in a thread of the application."""

    def post(self, function: Callable[..., object], *args: object) -> None:
        """Have a method called, some time soon."""
        ...

    def about_to_send(self, job: Job, text: bytes) -> None: ...
    def has_sent(self, job: Job) -> None: ...
    def has_head(self, job: Job, status: int, headers: Any, text: bytes) -> None: ...
    def has_data(self, job: Job, data: bytes) -> None: ...
    def has_end(self, job: Job, head: Callable[[], object] | None) -> None: ...
    def has_failed(self, job: Job, text: str, *, kept: bool) -> None: ...
    def has_no_room(self, job: Job) -> None: ...
    def gives_way(self, job: Job) -> None: ...
    def is_idle(self, worker: Worker, tell: Callable[[], object] | None) -> None: ...


class Worker:
    """A thread that carries one exchange after the other.

    Args:
        make: Makes what it uses; called in its thread.
        seconds: How long opening a connection may take.
        told: Whom it tells what it finds.
    """

    def __init__(self, make: Callable[[], ClientUse], seconds: float, told: Told) -> None:
        self._make = make
        self._seconds = None if seconds == math.inf else seconds
        self._told = told
        self._jobs = SimpleQueue[Job | None]()
        self._use: ClientUse | None = None
        self._thread = threading.Thread(target=self._run, name="sansmcp HTTP", daemon=True)
        self._thread.start()

    def carry(self, job: Job) -> None:
        """Carry an exchange."""
        self._jobs.put(job)

    def end(self) -> None:
        """End when nothing is carried any more."""
        self._jobs.put(None)

    def join(self, seconds: float) -> None:
        """Wait for the end, for so long at most."""
        self._thread.join(max(seconds, 0.0))

    def leave_to_parent(self) -> None:
        """This is a process made by `os.fork`, in which there is no such thread."""
        if self._use is not None:
            self._use.leave_to_parent()

    def _run(self) -> None:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # for the main thread
        use = self._use = self._make()
        while (job := self._jobs.get()) is not None:
            tell: Callable[[], object] | None = None
            with suppress(_Aborted):
                tell = self._carry(use, job)
            # At once, so that what comes next finds this connection.
            self._told.post(self._told.is_idle, self, tell)
        if use.is_ours:
            use.client.close()

    def _carry(self, use: ClientUse, job: Job) -> Callable[[], object] | None:
        """Send an exchange, and return what is to be told of its end."""
        told = self._told
        is_new = has_head = False
        stream: Any = None

        def trace(name: str, info: dict[str, Any]) -> None:
            nonlocal is_new, stream
            _, what, step = name.rsplit(".", 2)
            if what == "response_closed":
                if step == "started" and stream is not None:
                    use.freed(stream)
                    job.runs_on(None)
                return
            if step == "failed":
                return
            job.check()
            if what == "connect_tcp" and step == "started":
                is_new = True
                use.opens()
            elif what in ("connect_tcp", "start_tls") and step == "complete":
                stream = info["return_value"]
                job.runs_on(stream)
            elif what == "send_request_headers" and name.startswith("http2."):
                stream = None  # it carries others, too
                job.runs_on(None)
            elif what == "send_request_headers" and step == "started" and stream is None:
                stream = use.guess()
                job.runs_on(stream)
            elif what == "send_request_body" and step == "complete":
                told.post(told.has_sent, job)
            job.check()

        try:
            response = self._send(use, job, trace)
            try:
                has_head = True
                if response.http_version == "HTTP/2":
                    if is_beside(job.exchange):
                        return partial(told.gives_way, job)
                else:
                    stream = response.extensions.get("network_stream")
                    use.taken(stream)
                    job.runs_on(stream)
                text = response_text(response)
                status, headers = response.status_code, response.headers
                head = partial(told.has_head, job, status, headers.raw, text)
                # What is no stream is told with what follows it.
                is_told = "event-stream" in headers.get("content-type", "")
                if is_told:
                    told.post(head)
                is_first = True
                for data in response.iter_bytes():
                    if not is_first:
                        job.wait()
                    if not is_told:
                        told.post(head)
                    told.post(told.has_data, job, data)
                    is_first, is_told = False, True
            finally:
                response.close()
            return partial(told.has_end, job, None if is_told else head)
        except (
            Exception
        ) as error:  # also of hooks, of `auth=`, and of an application in this process
            if job.is_aborted:
                return None
            if not is_known(error):
                LOGGER.error("the httpx2 client has failed", exc_info=error)
            why = failure_text(error, has_head=has_head, connect=self._seconds)
            kept = not (is_new or has_head) and was_kept(error)
            return partial(told.has_failed, job, why, kept=kept)
        finally:
            job.runs_on(None)

    def _send(self, use: ClientUse, job: Job, trace: Callable[..., None]) -> httpx2.Response:
        """Send a request, as soon as the pool of the client has room for it."""
        exchange = job.exchange
        seconds = self._seconds
        if seconds is not None and use.is_ours and not use.has_free:
            # All addresses of a server have that time together, as one may be silent for ever.
            with suppress(OSError, UnicodeError):
                found = socket.getaddrinfo(exchange.origin.host, 0, type=socket.SOCK_STREAM)
                seconds /= max(len(found), 1)
        while True:
            request = build_request(use.client, exchange, connect=seconds, trace=trace)
            self._told.post(self._told.about_to_send, job, request_text(request))
            try:
                return use.client.send(request, stream=True, follow_redirects=False)
            except httpx2.PoolTimeout:
                self._told.post(self._told.has_no_room, job)
                job.wait()
                if job.is_refused:
                    raise
