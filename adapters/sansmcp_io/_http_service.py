"""A server behind HTTP, as far as no loop is involved: its events, and what all connections share.

Calls into the core are synchronous and happen in the loop's thread, so there is no lock.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Final, Protocol

from sansmcp import (
    ErrorReceived,
    ErrorWithoutIdReceived,
    IncomingRequest,
    JSONObject,
    LimitReached,
    LocalProtocolError,
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
from ._async_loop import Loop
from ._async_serving import Result, Serving
from ._defaults import limit_of
from ._http_calls import HTTPServerCall
from ._http_limits import HTTPLimits
from ._listening import Authenticate
from ._outcomes import result_of, seconds_of
from ._surface import NotificationHandler, ProgressHandler
from ._trace import HTTPTrace
from .h11 import HTTPConnection

BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 5\r\n"
    b"connection: close\r\n\r\n"
)
"""What a client is told that comes when there are too many."""


class Wire(Protocol):
    """A connection, as the server sees it."""

    held: int

    def flush(self) -> None:
        """Write what there is to be written."""
        ...

    def give_up(self) -> None:
        """Let go of what waits here."""
        ...

    def close(self) -> None:
        """End it as soon as no request is under way."""
        ...


class Companions(Protocol):
    """What goes along with each session."""

    def begin(self, session: Session, tasks: Any) -> None:
        """The client of a session is ready."""
        ...

    def end(self, session: Session) -> None:
        """The session is over."""
        ...


class HTTPServiceBase:
    """What all connections of a server share.

    Attributes:
        loop: The primitives of the loop.
        now: Its clock.
        tasks: Its tasks.
        wires: Connections by the exchange that each has now.
    """

    tasks: Any
    # What each loop has of its own.
    _new_loop: ClassVar[type[Loop]]
    _new_serving: ClassVar[type[Serving]]

    def __init__(
        self,
        endpoint: ServerEndpoint,
        *,
        handler: Callable[[Any], Result],
        on_notification: NotificationHandler | None,
        authenticate: Authenticate | None,
        paths: tuple[str, ...],
        context: Any,
        request_timeout: float,
        limits: HTTPLimits,
        trace: HTTPTrace | None,
    ) -> None:
        self.endpoint: Final = endpoint
        self.loop: Final[Loop] = self._new_loop()
        self.now: Final[Callable[[], float]] = self.loop.now
        self.limits: Final = limits
        self.authenticate: Final = authenticate
        self.trace: Final = trace
        self.companions: Companions | None = None
        self.context: Final = context
        self.wires: Final[dict[ServerExchange, Wire]] = {}
        self._connections: Final[set[Any]] = set()  # wires of this loop
        self._held = 0  # bytes, on all connections
        self._is_overfull = False  # it was said that they are too many
        self._is_full = False  # it was said that there are too many connections
        # Each client has an output of its own: nobody's answer waits for room in another's.
        make_call = partial(HTTPServerCall, self)
        self._serving = self._new_serving(
            endpoint, handler, make_call, until_room=None, wake=self.turn
        )
        self._notifications = None if on_notification is None else Notifications(on_notification)
        self._paths = paths
        self._request_timeout = request_timeout
        self._anomalies = AnomalyLog()
        self._is_turning = False

    @abstractmethod
    def _turned(self) -> None:
        """A turn has passed: the endpoint's deadline may be another."""

    # ---------------------------------------------------------------------------- connections

    def admits_more(self) -> bool:
        """Whether there is room for another connection. That there is none is said once."""
        if len(self._connections) < self.limits.connections:
            self._is_full = False
            return True
        if not self._is_full:
            self._is_full = True
            LOGGER.warning("there are %d connections: more get 503", self.limits.connections)
        return False

    def new_connection(self) -> HTTPConnection:
        """What reads and writes HTTP for a client that has come."""
        return HTTPConnection(
            self.endpoint,
            paths=self._paths,
            authenticates=self.authenticate is not None,
            context=self.context,
            limits=self.limits,
            now=self.now(),
        )

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
        self._turned()

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
                self._anomalies.note(event, self.now())
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
        mailbox = self.loop.new_mailbox(on_progress)
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
            now=self.now(),
        )
        self.turn()
        try:
            outcome = await mailbox.take()
        except BaseException:
            with suppress(LocalProtocolError):  # a request for a task is ended by tasks/cancel
                self.endpoint.cancel(call, now=self.now())
            self.turn()
            raise
        return result_of(outcome)

    async def ping(self, session: Session, timeout: float | None) -> float:
        """Ping the client of a session, and return the seconds that the answer took."""
        mailbox = self.loop.new_mailbox()
        timeout = self._request_timeout if timeout is None else timeout
        self.endpoint.ping(session, timeout=limit_of(timeout), data=mailbox, now=self.now())
        self.turn()
        return seconds_of(await mailbox.take())


def _held_by(wire: Wire) -> int:
    return wire.held
