"""One connection on one trio stream: its events, the handlers that serve, and the callers that ask.

Calls into the core are synchronous and happen in trio's thread, so there is no lock.
"""

from __future__ import annotations

import inspect
import math
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias, assert_never

import trio

from sansmcp import (
    ClientConnection,
    ConnectionClosed,
    ConnectionFailed,
    ErrorCode,
    ErrorReceived,
    ErrorWithoutIdReceived,
    Event,
    IncomingRequest,
    InputRequired,
    JSONObject,
    JSONValue,
    LimitReached,
    ListenerAdded,
    ListenerRemoved,
    ListingEnded,
    LocalProtocolError,
    MessageIgnored,
    NotificationReceived,
    OutgoingRequest,
    PageReceived,
    PingEnded,
    ProgressReceived,
    ProtocolViolation,
    Ready,
    RequestAnswered,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    State,
    SubscriptionAcknowledged,
    SubscriptionEnded,
)

from ._anomalies import LOGGER, AnomalyLog
from ._call import (
    INTERNAL_ERROR,
    CallBase,
    RequireInput,
    answer,
    answer_failure,
    failure_of,
)
from ._errors import ConnectionLost, McpError, RequestTimeout
from ._outcomes import check_listing, result_of, seconds_of, start_error, with_stderr
from ._stderr import StderrTail
from ._trace import Trace
from ._trio_callbacks import NotificationHandler, Notifications, call_back, logged
from ._trio_changes import Changes
from ._trio_mailbox import Mailbox, ProgressHandler
from ._trio_room import UNSENT_BYTES
from ._trio_stream import ByteStream
from ._trio_wire import Wire
from ._typed_requests import typed_request

_ENDINGS: Final = (
    ConnectionClosed,
    ConnectionFailed,
    ErrorReceived,
    InputRequired,
    ListingEnded,
    PageReceived,
    PingEnded,
    RequestFailed,
    ResponseReceived,
    SubscriptionAcknowledged,
    SubscriptionEnded,
)
"""The events that somebody may wait for outside of the wire's own tasks."""
_MOST_ANSWERING: Final = 100
"""So many questions about one request are answered at once; the others wait."""


class Call(CallBase):
    """A request of the peer that a handler works on."""

    def __init__(self, session: Session, request: IncomingRequest) -> None:
        # Not by way of the base class: there is one for each message.
        self._connection = session.connection
        self._request = request
        self._clock = trio.current_time
        self._wake = session.wake
        self._session = session
        self.context: Any = session.context

    @typed_request
    async def request(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
        log_level: str | None = None,
        on_progress: ProgressHandler | None = None,
    ) -> JSONObject:
        """Ask the peer something on behalf of this call; as `Client.request`."""
        return await self._session.request(
            method, params, meta, timeout, max_timeout, log_level, on_progress, self._serving
        )

    @property
    def _serving(self) -> IncomingRequest | None:
        return self._request


class QuestionCall(Call):
    """What a server asks before it answers a request of ours: it is handled like a request."""

    def __init__(self, session: Session, about: OutgoingRequest, question: JSONObject) -> None:
        self._question = question
        self._about = about
        self._session = session
        self.context = session.context

    @property
    def method(self) -> str:
        """The method of the question."""
        method: str = self._question["method"]
        return method

    @property
    def params(self) -> JSONObject:
        """Its params, `{}` where there are none."""
        params: JSONObject = self._question.get("params") or {}
        return params

    @property
    def revision(self) -> str | None:
        """The revision of the conversation."""
        return self._session.connection.revision

    @property
    def capabilities(self) -> JSONObject:
        """The capabilities of the server."""
        return self._session.connection.peer.capabilities

    @property
    def principal(self) -> object:
        """Who the server is, as the transport found out; None where it did not."""
        return self._session.connection.peer.principal

    def progress(
        self, progress: float, *, total: float | None = None, message: str | None = None
    ) -> bool:
        """Nobody waits for it: a question is no request."""
        return False

    @property
    def _serving(self) -> IncomingRequest | None:
        return None

    def __repr__(self) -> str:
        return f"<QuestionCall {self.method} about {self._about!r}>"


Result: TypeAlias = JSONObject | RequireInput | Awaitable[JSONObject | RequireInput]


class Session(Wire):
    """What clients and servers share."""

    def __init__(
        self,
        connection: ClientConnection | ServerConnection,
        stream: ByteStream,
        *,
        handler: Callable[[Any], Result],
        call_type: Callable[[Any, IncomingRequest], Call],
        on_notification: NotificationHandler | None,
        context: Any,
        request_timeout: float,
        drain: float,
        trace: Trace | None,
    ) -> None:
        super().__init__(connection, stream, drain=drain, trace=trace)
        self.context: Final = context
        self.stderr: StderrTail | None = None
        self._handler = handler
        self._call_type = call_type
        self._notifications = None if on_notification is None else Notifications(on_notification)
        self._request_timeout = request_timeout
        self._anomalies = AnomalyLog()
        self._ready = trio.Event()
        self._on_ready: Callable[[], object] | None = None
        self._held_back: OrderedDict[IncomingRequest, None] = OrderedDict()
        self._answering: set[trio.CancelScope] = set()  # of those who answer questions

    # ----------------------------------------------------------------------- dispatching

    def _dispatch(self) -> None:
        next_event = self.connection.next_event
        while (event := next_event()) is not None:
            if self._trace is not None:
                self._trace.happened(event)
            if type(event) is RequestReceived:
                self._serve(event.request)
            else:
                self._handle_event(event)

    def _handle_event(self, event: Event) -> None:
        match event:
            case RequestReceived():
                self._serve(event.request)
            case RequestCancelled():
                self._held_back.pop(event.request, None)
                if isinstance(event.request.data, trio.CancelScope):
                    event.request.data.cancel()
            case NotificationReceived():
                if event.subscription is not None:
                    event.subscription.data.put(event)
                elif self._notifications is not None:
                    self._notifications.handle(event, self._tasks)
            case ResponseReceived() | ErrorReceived() | RequestFailed() | InputRequired():
                event.request.data.put(event)
            case ProgressReceived():
                self._progressed(event)
            case PageReceived() | ListingEnded():
                event.listing.data.put(event)
            case Ready():
                self._ready.set()
                on_ready, self._on_ready = self._on_ready, None  # a handshake may follow requests
                if on_ready is not None:
                    call_back(self._tasks, "the handler of readiness", on_ready)
                if event.start is not None:
                    event.start.data.put(event)
            case ConnectionFailed():
                event.start.data.put(event)
            case ConnectionClosed():
                self._closed.set()
                self._ready.set()  # whoever waits for it learns that it will not be
                self._writer.wake()
                for scope in self._answering:
                    scope.cancel()
            case PingEnded():
                event.ping.data.put(event)
            case SubscriptionAcknowledged() | SubscriptionEnded():
                event.subscription.data.put(event)
            case RequestAnswered() | ListenerAdded() | ListenerRemoved():
                pass
            case ProtocolViolation() | MessageIgnored() | LimitReached() | ErrorWithoutIdReceived():
                self._anomalies.note(event, trio.current_time())
            case _:
                assert_never(event)

    def _dispatch_endings(self) -> None:
        """Tell those who wait. No function of the application is called: it may have failed."""
        while (event := self.connection.next_event()) is not None:
            if isinstance(event, _ENDINGS):
                self._handle_event(event)

    def _serve(self, request: IncomingRequest) -> None:
        """Begin to serve a request, unless there is no room for its answer."""
        if self.connection.unsent_bytes > UNSENT_BYTES:
            self._write_now()
        if not request.open:
            return  # it was cancelled before it began
        if self._held_back or self.connection.unsent_bytes > UNSENT_BYTES:
            self._held_back[request] = None  # the writer is awake, and comes back to it
        else:
            self._begin(request)

    def _begin_held_back(self) -> bool:
        while self._held_back and self.connection.unsent_bytes <= UNSENT_BYTES:
            request, _ = self._held_back.popitem(last=False)
            if request.open:  # a handler may have closed the connection meanwhile
                self._begin(request)
        return bool(self._held_back)

    def _begin(self, request: IncomingRequest) -> None:
        """Run a plain function here and now; give an async one its own task and cancel scope."""
        connection = self.connection
        try:
            result = self._handler(self._call_type(self, request))
        except Exception as error:
            answer_failure(connection, request, error)
            return
        if type(result) is dict or not inspect.isawaitable(result):
            answer(connection, request, result)
        else:
            scope = request.data = trio.CancelScope()
            # With a name of ours, trio does not put one together.
            self._tasks.start_soon(self._serve_async, request, result, scope, name=request.method)

    async def _serve_async(
        self,
        request: IncomingRequest,
        awaitable: Awaitable[JSONObject | RequireInput],
        scope: trio.CancelScope,
    ) -> None:
        with scope:
            try:
                result = await awaitable
            except Exception as error:
                answer_failure(self.connection, request, error)
            else:
                if self._room.is_short:
                    await self._until_room()
                answer(self.connection, request, result)
            self.wake()

    def _progressed(self, event: ProgressReceived) -> None:
        on_progress: ProgressHandler | None = event.request.data.on_progress
        if on_progress is not None:
            with logged("the handler of progress"):
                on_progress(event.progress, event.total, event.message)

    # ---------------------------------------------------------------------------- asking

    async def start(self, timeout: float, probe_timeout: float, hint: str | None) -> None:
        """Open the conversation of a client, or raise why that cannot be done."""
        assert isinstance(self.connection, ClientConnection)
        mailbox = Mailbox[Ready | ConnectionFailed]()
        self.connection.start(
            timeout=_limit(timeout),
            probe_timeout=_limit(probe_timeout),
            hint=hint,
            data=mailbox,
            now=trio.current_time(),
        )
        self.wake()
        event = await mailbox.take()
        if isinstance(event, ConnectionFailed):
            raise start_error(event, self.stderr)

    async def request(
        self,
        method: str,
        params: JSONObject | None,
        meta: JSONObject | None,
        timeout: float | None,
        max_timeout: float | None,
        log_level: str | None,
        on_progress: ProgressHandler | None,
        serving: IncomingRequest | None,
    ) -> JSONObject:
        """Ask, wait, and cancel the request if the wait is cancelled."""
        self._check_open(method)
        timeout = self._request_timeout if timeout is None else timeout
        if self._room.is_short:
            waited = await self._room_to_ask(method, timeout, max_timeout)
            timeout -= waited
            max_timeout = None if max_timeout is None else max_timeout - waited
        mailbox = Mailbox[ResponseReceived | ErrorReceived | RequestFailed | InputRequired](
            on_progress
        )
        call = self.connection.send_request(
            method,
            params,
            meta=meta,
            progress=on_progress is not None,
            timeout=_limit(timeout),
            max_timeout=None if max_timeout is None else _limit(max_timeout),
            log_level=log_level,
            request=serving,
            data=mailbox,
            now=trio.current_time(),
        )
        deadline = math.inf if max_timeout is None else trio.current_time() + max_timeout
        self.wake()
        try:
            outcome = await mailbox.take()
            while isinstance(outcome, InputRequired):
                responses = await self._answers(outcome, deadline)
                call = self._go_on(outcome, responses, timeout, deadline, on_progress, mailbox)
                outcome = await mailbox.take()
        except BaseException:
            with suppress(LocalProtocolError):  # a request for a task is ended by tasks/cancel
                self.connection.cancel(call, now=trio.current_time())
            self.wake()
            raise
        return result_of(outcome, self.stderr)

    async def _room_to_ask(self, method: str, timeout: float, max_timeout: float | None) -> float:
        """Wait for room, and return the seconds that it took. They count like any silence."""
        seconds = timeout if max_timeout is None else min(timeout, max_timeout)
        if not seconds > 0:
            return 0.0  # the core says what is wrong with that
        start = trio.current_time()
        with trio.move_on_after(seconds) as scope:
            await self._until_room()
        waited = trio.current_time() - start
        if scope.cancelled_caught or waited >= seconds:
            raise RequestTimeout(f"{method} was not sent: the peer has not read for {seconds} s")
        self._check_open(method)
        return waited

    def _go_on(
        self,
        asked: InputRequired,
        responses: JSONObject,
        timeout: float,
        deadline: float,
        on_progress: ProgressHandler | None,
        mailbox: object,
    ) -> OutgoingRequest:
        """The next round of a request, with the answers to what was asked."""
        assert isinstance(self.connection, ClientConnection)
        now = trio.current_time()
        try:
            call = self.connection.provide_input(
                asked.request,
                responses,
                progress=on_progress is not None,
                timeout=_limit(timeout),
                max_timeout=_limit(deadline - now),
                data=mailbox,
                now=now,
            )
        except Exception as error:  # also what an encoder says of values that are no JSON
            text = "what the handler has answered to questions about %.80r cannot be sent"
            LOGGER.error(text, asked.request.method, exc_info=error)
            raise McpError(ErrorCode.INTERNAL_ERROR, INTERNAL_ERROR) from error
        self.wake()
        return call

    async def _answers(self, asked: InputRequired, deadline: float) -> JSONObject:
        """What the handler of the server's requests has to say to each question.

        Raises:
            ConnectionLost: The connection has ended, before or meanwhile.
            RequestTimeout: The deadline has come.
            McpError: The handler could not answer: the request cannot go on.
        """
        responses: JSONObject = {}
        failures: list[McpError] = []
        waiting = iter(asked.questions.items())

        async def answer_some() -> None:
            for name, question in waiting:
                await trio.lowlevel.checkpoint()
                try:
                    result = self._handler(QuestionCall(self, asked.request, question))
                    responses[name] = await result if inspect.isawaitable(result) else result
                except Exception as error:
                    failures.append(failure_of(question["method"], error))
                    scope.cancel()

        method = asked.request.method
        if self.connection.state is State.OPEN:
            with trio.CancelScope(deadline=deadline) as scope:
                self._answering.add(scope)
                try:
                    async with trio.open_nursery() as nursery:
                        for _ in range(min(_MOST_ANSWERING, len(asked.questions))):
                            nursery.start_soon(answer_some)
                finally:
                    self._answering.discard(scope)
        if self.connection.state is not State.OPEN:
            lost = ConnectionLost(f"{method} was not answered: the connection has ended")
            raise with_stderr(lost, self.stderr)
        if trio.current_time() >= deadline:
            raise RequestTimeout(f"{method} was not answered in the time allowed in all")
        if failures:
            raise failures[0]
        return responses

    @asynccontextmanager
    async def listen(
        self, notifications: JSONObject, meta: JSONObject | None, timeout: float | None
    ) -> AsyncGenerator[Changes, None]:
        """Subscribe, and iterate over what changes, for as long as the block lasts."""
        self._check_open("subscriptions/listen")
        assert isinstance(self.connection, ClientConnection)
        changes = Changes(self.stderr)
        subscription = self.connection.listen(
            notifications,
            meta=meta,
            timeout=_limit(self._request_timeout if timeout is None else timeout),
            data=changes,
            now=trio.current_time(),
        )
        self.wake()
        try:
            await changes.wait_acknowledged()
            yield changes
        finally:
            self.connection.cancel(subscription, now=trio.current_time())
            self.wake()

    async def items(
        self, method: str, params: JSONObject | None, timeout: float | None
    ) -> AsyncGenerator[JSONValue, None]:
        """Iterate over a listing; leaving the loop early cancels the rest of it."""
        self._check_open(method)
        mailbox = Mailbox[PageReceived | ListingEnded]()
        listing = self.connection.send_paginated(
            method,
            params,
            timeout=_limit(self._request_timeout if timeout is None else timeout),
            auto=False,  # or a slow consumer would have all of it in memory
            data=mailbox,
            now=trio.current_time(),
        )
        self.wake()
        try:
            while isinstance(event := await mailbox.take(), PageReceived):
                for item in event.items:
                    yield item
                if listing.open:
                    self.connection.next_page(listing, now=trio.current_time())
                    self.wake()
            check_listing(event, self.stderr)
        finally:
            self.connection.cancel(listing)  # without the time: this may run after trio has ended
            self.wake()

    async def ping(self, timeout: float | None) -> float:
        """Ping the peer, and return the seconds that the answer took."""
        self._check_open("ping")
        mailbox = Mailbox[PingEnded]()
        self.connection.ping(
            timeout=_limit(self._request_timeout if timeout is None else timeout),
            data=mailbox,
            now=trio.current_time(),
        )
        self.wake()
        return seconds_of(await mailbox.take(), self.stderr)

    async def wait_ready(self) -> None:
        """Wait for the end of the handshake."""
        await self._ready.wait()
        if self.connection.state is State.CLOSED:
            raise ConnectionLost("the connection ended before the handshake was done")

    def when_ready(self, function: Callable[[], object]) -> None:
        """Have this called at the end of the handshake; an async one runs beside all else."""
        self._on_ready = function

    def notify(self, method: str, params: JSONObject | None, meta: JSONObject | None) -> None:
        """Send a notification, some time soon."""
        self._check_open(method)
        self.connection.send_notification(method, params, meta=meta, now=trio.current_time())
        self.wake()

    def _check_open(self, method: str) -> None:
        if self.connection.state is not State.OPEN:
            lost = ConnectionLost(f"{method} was not sent: the connection has ended")
            raise with_stderr(lost, self.stderr)


def _limit(seconds: float) -> float | None:
    """The core's form of a timeout: `math.inf` means none."""
    return None if seconds == math.inf else seconds
