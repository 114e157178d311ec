"""An endpoint on asyncio: its events come to the handlers, and to the callers that ask.

Calls into the core are synchronous and happen in the loop's thread, so there is no lock. Whatever
carries the exchanges is told by `flush` that there is something to be taken off one of them.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from sansmcp import (
    Change,
    ErrorCode,
    ErrorReceived,
    ErrorWithoutIdReceived,
    IncomingRequest,
    JSONObject,
    LimitReached,
    MessageIgnored,
    NotificationReceived,
    Peer,
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

from ._anomalies import AnomalyLog
from ._asgi_callbacks import Companions, Notifications, Tasks, logged
from ._call import INTERNAL_ERROR, RequireInput, answer, answer_failure
from ._defaults import limit_of
from ._outcomes import result_of, seconds_of
from ._surface import FLUSH_SECONDS, NotificationHandler, ProgressHandler

Result: TypeAlias = JSONObject | RequireInput | Awaitable[JSONObject | RequireInput]


class Carrying(Protocol):
    """What carries one exchange."""

    def flush(self) -> None:
        """There is output."""
        ...


class Waiter:
    """Where one caller waits for the one ending of what it has asked."""

    __slots__ = ("ending", "on_progress")

    def __init__(self, on_progress: ProgressHandler | None = None) -> None:
        self.on_progress = on_progress
        self.ending: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def put(self, event: Any) -> None:
        """It has ended."""
        if not self.ending.done():  # its caller was cancelled just now
            self.ending.set_result(event)


class Runner:
    """Runs an endpoint: handlers, callers and time. A loop is adopted when it is needed first."""

    def __init__(
        self,
        endpoint: ServerEndpoint,
        *,
        handler: Callable[[Any], Result],
        call_type: Callable[[Any, IncomingRequest], Any],
        on_notification: NotificationHandler | None,
        on_ready: Callable[[Any], object] | None,
        server_type: Callable[[Any, Peer], Any],
        context: Any,
        request_timeout: float,
    ) -> None:
        self.endpoint: Final = endpoint
        self.context: Final = context
        self.carried: Final[dict[ServerExchange, Carrying]] = {}
        self._handler: Final = handler
        self._call_type: Final = call_type
        self._request_timeout: Final = request_timeout
        self._anomalies = AnomalyLog()
        self._tasks = Tasks()
        self._notifications = (
            None if on_notification is None else Notifications(on_notification, self._tasks)
        )
        self._companions = (
            None
            if on_ready is None
            else Companions(on_ready, partial(server_type, self), self._tasks)
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._alarm = math.inf  # when it rings
        self._is_turning = False
        self._has_changed: asyncio.Future[None] | None = None  # where `shut_down` waits
        self.is_closed = False

    # ---------------------------------------------------------------------------- turning

    def adopt(self, loop: asyncio.AbstractEventLoop) -> None:
        """Go on in this loop. What ran in another one has ended with it.

        Raises:
            RuntimeError: The other one goes on, too.
        """
        if self._loop is loop:
            return
        if self._loop is not None and self._loop.is_running():
            raise RuntimeError("the application is used by an event loop that still runs")
        self._loop = loop
        self._timer = None
        self._alarm = math.inf

    def turn(self) -> None:
        """Handle all events, and tell whoever carries what has new output.

        To be called after any call into the endpoint. In a turn it does nothing: the turn that is
        under way sees to it.
        """
        if self._is_turning:
            return
        self._is_turning = True
        endpoint, carried = self.endpoint, self.carried
        next_event = endpoint.next_event
        try:
            while True:
                while (event := next_event()) is not None:
                    if type(event) is RequestReceived:
                        self._begin(event.request)
                    else:
                        self._handle_event(event)
                ready = endpoint.ready()
                if not ready:
                    break
                for exchange in ready:
                    carrying = carried.get(exchange)
                    if carrying is not None:
                        carrying.flush()
        finally:
            self._is_turning = False
        deadline = endpoint.next_timeout()
        if deadline is not None and deadline < self._alarm:
            self._set_alarm(deadline)
        if self._has_changed is not None:
            self._note_change()

    def _set_alarm(self, deadline: float) -> None:
        if self._loop is None:
            return  # the first request sees to it
        if self._timer is not None:
            self._timer.cancel()
        self._alarm = deadline
        # Not `call_at`: a loop may have a clock of its own.
        self._timer = self._loop.call_later(deadline - time.monotonic(), self._ring)

    def _ring(self) -> None:
        self._timer, self._alarm = None, math.inf
        self.endpoint.handle_timeout(time.monotonic())
        self.turn()

    def _handle_event(self, event: HTTPEvent) -> None:
        match event:
            case RequestCancelled():
                if event.request.data is not None:
                    event.request.data.cancel()
            case NotificationReceived():
                if self._notifications is not None:
                    self._notifications.handle(event)
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
                if self._companions is not None and event.peer.session is not None:
                    self._companions.begin(event.peer.session)
            case SessionEnded():
                if self._companions is not None:
                    self._companions.end(event.session)
            case ProtocolViolation() | MessageIgnored() | LimitReached() | ErrorWithoutIdReceived():
                self._anomalies.note(event, time.monotonic())
            case _:
                pass  # sessions that begin, and what the core has answered by itself

    # ---------------------------------------------------------------------------- serving

    def _begin(self, request: IncomingRequest) -> None:
        """Run a plain function here and now; give an async one a task of its own."""
        if not request.open:
            return  # it was cancelled before it began
        try:
            result = self._handler(self._call_type(self, request))
        except Exception as error:
            answer_failure(self.endpoint, request, error)
            return
        if type(result) is dict or not inspect.isawaitable(result):
            answer(self.endpoint, request, result)
            return
        # The task is that of the handler itself. With another function around it, it would never
        # have begun where it is cancelled at once.
        task = request.data = self._tasks.start(result)
        task.add_done_callback(partial(self._end, request))

    def _end(self, request: IncomingRequest, task: asyncio.Future[Any]) -> None:
        """An async handler has ended."""
        if task.cancelled():
            if request.open:  # it was not we who have cancelled it
                self.endpoint.send_error(request, ErrorCode.INTERNAL_ERROR, INTERNAL_ERROR)
        elif (failure := task.exception()) is None:
            answer(self.endpoint, request, task.result())
        elif isinstance(failure, Exception):
            answer_failure(self.endpoint, request, failure)
        elif request.open:  # it ends the loop
            self.endpoint.send_error(request, ErrorCode.INTERNAL_ERROR, INTERNAL_ERROR)
        self.turn()

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
        waiter = Waiter(on_progress)
        call = self.endpoint.send_request(
            method,
            params,
            meta=meta,
            progress=on_progress is not None,
            timeout=limit_of(timeout),
            max_timeout=None if max_timeout is None else limit_of(max_timeout),
            request=serving,
            session=session,
            data=waiter,
            now=time.monotonic(),
        )
        self.turn()
        try:
            outcome = await waiter.ending
        except BaseException:
            self.endpoint.cancel(call, now=time.monotonic())
            self.turn()
            raise
        return result_of(outcome)

    async def ping(self, session: Session, timeout: float | None) -> float:
        """Ping the client of a session, and return the seconds that the answer took."""
        waiter = Waiter()
        timeout = self._request_timeout if timeout is None else timeout
        self.endpoint.ping(session, timeout=limit_of(timeout), data=waiter, now=time.monotonic())
        self.turn()
        return seconds_of(await waiter.ending)

    # ---------------------------------------------------------------------------- telling

    def publish(self, change: Change, meta: JSONObject | None) -> bool:
        """Tell all clients that are to be told; whether there is one."""
        told = self.endpoint.publish(change, meta=meta, now=time.monotonic())
        self.turn()
        return told

    def end_session(self, session: Session) -> bool:
        """End a session; whether it was open until now."""
        ended = self.endpoint.end_session(session, now=time.monotonic())
        self.turn()
        return ended

    # ---------------------------------------------------------------------------- ending

    def close(self) -> None:
        """Serve nobody any more: requests get 503, and all that is under way ends."""
        self.is_closed = True
        self.endpoint.close(now=time.monotonic())
        self.turn()

    async def shut_down(self, drain: float) -> None:
        """Let what is under way end within `drain` seconds, then end it, and wait for that."""
        try:
            async with asyncio.timeout(drain):
                while self.endpoint.open_requests:
                    await self._wait_for_change()
        except TimeoutError:
            pass
        self.close()
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                while self.carried:
                    await self._wait_for_change()
        except TimeoutError:
            pass
        await self._tasks.cancel()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _wait_for_change(self) -> None:
        self._has_changed = asyncio.get_running_loop().create_future()
        try:
            await self._has_changed
        finally:
            self._has_changed = None

    def _note_change(self) -> None:
        if self._has_changed is not None and not self._has_changed.done():
            self._has_changed.set_result(None)
