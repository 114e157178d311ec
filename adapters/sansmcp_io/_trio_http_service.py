"""A server behind HTTP: its endpoint, the handlers that serve, and the callers that ask.

Calls into the core are synchronous and happen in trio's thread, so there is no lock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import trio

from sansmcp import (
    ErrorReceived,
    ErrorWithoutIdReceived,
    IncomingRequest,
    JSONObject,
    LimitReached,
    MessageIgnored,
    NotificationReceived,
    PingEnded,
    ProgressReceived,
    ProtocolViolation,
    Ready,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
)
from sansmcp.http import HTTPEvent, ServerEndpoint, ServerExchange, Session, SessionEnded

from ._anomalies import LOGGER, AnomalyLog
from ._async_callbacks import Notifications, logged
from ._defaults import limit_of
from ._http_limits import HTTPLimits
from ._listening import Authenticate
from ._outcomes import result_of, seconds_of
from ._surface import FLUSH_SECONDS, NotificationHandler, ProgressHandler
from ._trace import HTTPTrace
from ._trio_http_ready import Companions
from ._trio_http_wire import HTTPWire
from ._trio_mailbox import Mailbox
from ._trio_serving import Result, Serving
from ._trio_sleeper import Sleeper
from ._trio_socket import NoWaitSocket, TLSSocket, client_of
from .h11 import HTTPConnection

_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 5\r\n"
    b"connection: close\r\n\r\n"
)


class HTTPService:
    """What all connections of a server share. It runs once."""

    def __init__(
        self,
        endpoint: ServerEndpoint,
        *,
        handler: Callable[[Any], Result],
        call_type: Callable[[Any, IncomingRequest], Any],
        on_notification: NotificationHandler | None,
        authenticate: Authenticate | None,
        paths: tuple[str, ...],
        context: Any,
        request_timeout: float,
        limits: HTTPLimits,
        trace: HTTPTrace | None,
    ) -> None:
        self.endpoint = endpoint
        self.limits = limits
        self.authenticate = authenticate
        self.trace = trace
        self.companions: Companions | None = None
        self.context: Final = context
        self.tasks: trio.Nursery
        self.wires: dict[ServerExchange, HTTPWire] = {}  # by the exchange that each has now
        self._held = 0  # bytes, on all connections
        self._is_overfull = False  # it was said that they are too many
        self._connections: set[HTTPWire] = set()
        # Each client has an output of its own: nobody's answer waits for room in another's.
        make_call = partial(call_type, self)
        self._serving = Serving(endpoint, handler, make_call, until_room=None, wake=self.turn)
        self._notifications = None if on_notification is None else Notifications(on_notification)
        self._paths = paths
        self._request_timeout = request_timeout
        self._anomalies = AnomalyLog()
        self._clock = Sleeper()
        self._alarm = math.inf  # when the clock wakes by itself
        self._is_turning = False
        self._is_full = False  # it was said that there are too many connections
        self._accepting = trio.CancelScope()
        self._has_changed = trio.Event()  # a connection has ended, or a turn has passed

    # ---------------------------------------------------------------------------- running

    async def run(self, listeners: list[trio.SocketListener], tls: Any) -> None:
        """Accept connections and serve them, until `shut_down` has come to its end."""
        async with trio.open_nursery() as self.tasks:
            self.tasks.start_soon(self._keep_time)
            with self._accepting:

                async def accept(stream: trio.SocketStream) -> None:
                    await self._accept(stream, tls)

                await trio.serve_listeners(accept, listeners, handler_nursery=self.tasks)
            for listener in listeners:
                await listener.aclose()

    async def _accept(self, stream: trio.SocketStream, tls: Any) -> None:
        """Serve one client."""
        client = "" if self.trace is None else client_of(stream)
        socket: NoWaitSocket | TLSSocket
        if tls is None:
            socket = NoWaitSocket(stream)
        else:
            socket = TLSSocket(trio.SSLStream(stream, tls, server_side=True, https_compatible=True))
        if len(self._connections) >= self.limits.connections:
            await self._turn_away(socket)
            return
        self._is_full = False
        connection = HTTPConnection(
            self.endpoint,
            paths=self._paths,
            authenticates=self.authenticate is not None,
            context=self.context,
            limits=self.limits,
            now=trio.current_time(),
        )
        wire = HTTPWire(self, socket, connection, client)
        self._connections.add(wire)
        try:
            await wire.run()
        finally:
            self._connections.discard(wire)
            self._has_changed.set()

    async def _turn_away(self, socket: NoWaitSocket | TLSSocket) -> None:
        if not self._is_full:
            self._is_full = True
            LOGGER.warning("there are %d connections: more get 503", self.limits.connections)
        with suppress(OSError):
            socket.send_now(_BUSY)
        await socket.aclose()

    def note_held(self, change: int) -> None:
        """A connection holds so much more, or less. Over the limit, who holds the most is let go.

        To refuse what comes then instead would let a few clients that do nothing shut out all.
        """
        self._held += change
        if not self._held:
            self._is_overfull = False
        while self._held > self.limits.held_bytes:
            if not self._is_overfull:
                self._is_overfull = True
                LOGGER.warning("%d bytes wait: connections that hold most get 503", self._held)
            max(self._connections, key=_held_by).give_up()

    async def shut_down(self, drain: float) -> None:
        """Accept no more, let what is under way end within `drain` seconds, then end it."""
        self._accepting.cancel()
        for wire in list(self._connections):
            wire.close()
        with trio.move_on_after(drain):
            while self.endpoint.open_requests:
                await self._wait_for_change()
        self.endpoint.close(now=trio.current_time())
        self.turn()
        with trio.move_on_after(FLUSH_SECONDS):
            while self._connections:
                await self._wait_for_change()
        self.tasks.cancel_scope.cancel()

    async def _wait_for_change(self) -> None:
        self._has_changed = trio.Event()
        await self._has_changed.wait()

    async def _keep_time(self) -> None:
        endpoint = self.endpoint
        while True:
            self._alarm = -math.inf  # nobody needs to wake a clock that is awake
            endpoint.handle_timeout(trio.current_time())
            self.turn()
            deadline = endpoint.next_timeout()
            self._alarm = math.inf if deadline is None else deadline
            with trio.move_on_at(self._alarm):
                await self._clock.sleep()

    # ---------------------------------------------------------------------------- turning

    def turn(self) -> None:
        """Handle all events, and write what can be written without waiting.

        To be called after any call into the endpoint. In a turn it does nothing: the turn that is
        under way sees to it.
        """
        if self._is_turning:
            return
        self._is_turning = True
        endpoint, wires, trace = self.endpoint, self.wires, self.trace
        next_event = endpoint.next_event
        try:
            while True:
                while (event := next_event()) is not None:
                    if trace is not None:
                        with logged("the trace"):
                            trace.happened(event)
                    if type(event) is RequestReceived:
                        self._serving.begin(event.request, self.tasks)
                    else:
                        self._handle_event(event)
                ready = endpoint.ready()
                if not ready:
                    break
                for exchange in ready:
                    wire = wires.get(exchange)
                    if wire is not None:
                        wire.flush()
        finally:
            self._is_turning = False
        self._has_changed.set()
        deadline = endpoint.next_timeout()
        if deadline is not None and deadline < self._alarm:
            self._alarm = deadline
            self._clock.wake()

    def _handle_event(self, event: HTTPEvent) -> None:
        match event:
            case RequestCancelled():
                self._serving.cancel(event.request)
            case NotificationReceived():
                if self._notifications is not None:
                    self._notifications.handle(event, self.tasks)
            case ResponseReceived() | ErrorReceived() | RequestFailed():
                event.request.data.put(event)
            case PingEnded():
                event.ping.data.put(event)
            case ProgressReceived():
                on_progress: ProgressHandler | None = event.request.data.on_progress
                if on_progress is not None:
                    with logged("the handler of progress"):
                        on_progress(event.progress, event.total, event.message)
            case Ready():
                if self.companions is not None and event.peer.session is not None:
                    self.companions.begin(event.peer.session, self.tasks)
            case SessionEnded():
                if self.companions is not None:
                    self.companions.end(event.session)
            case ProtocolViolation() | MessageIgnored() | LimitReached() | ErrorWithoutIdReceived():
                self._anomalies.note(event, trio.current_time())
            case _:
                pass  # sessions that begin, and what the core has answered by itself

    # ---------------------------------------------------------------------------- asking

    async def request(
        self,
        method: str,
        params: JSONObject | None,
        meta: JSONObject | None,
        timeout: float | None,
        max_timeout: float | None,
        on_progress: ProgressHandler | None,
        *,
        serving: IncomingRequest | None,
        session: Session | None,
    ) -> JSONObject:
        """Ask a client, wait, and cancel the request if the wait is cancelled."""
        timeout = self._request_timeout if timeout is None else timeout
        mailbox = Mailbox[ResponseReceived | ErrorReceived | RequestFailed](on_progress)
        call = self.endpoint.send_request(
            method,
            params,
            meta=meta,
            progress=on_progress is not None,
            timeout=limit_of(timeout),
            max_timeout=None if max_timeout is None else limit_of(max_timeout),
            request=serving,
            session=session,
            data=mailbox,
            now=trio.current_time(),
        )
        self.turn()
        try:
            outcome = await mailbox.take()
        except BaseException:
            self.endpoint.cancel(call, now=trio.current_time())
            self.turn()
            raise
        return result_of(outcome)

    async def ping(self, session: Session, timeout: float | None) -> float:
        """Ping the client of a session, and return the seconds that the answer took."""
        mailbox = Mailbox[PingEnded]()
        timeout = self._request_timeout if timeout is None else timeout
        self.endpoint.ping(
            session, timeout=limit_of(timeout), data=mailbox, now=trio.current_time()
        )
        self.turn()
        return seconds_of(await mailbox.take())


def _held_by(wire: HTTPWire) -> int:
    return wire.held
