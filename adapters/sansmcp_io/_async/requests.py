"""What callers ask of the peer, and wait for: requests, listings, subscriptions, pings."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, ClassVar, Final, cast

from sansmcp import (
    CloseCause,
    ConnectionFailed,
    ErrorCode,
    IncomingRequest,
    InputRequired,
    JSONObject,
    JSONValue,
    ListingEnded,
    LocalProtocolError,
    OutgoingRequest,
    PageReceived,
    PingEnded,
    Ready,
    ServerConnection,
    State,
)

from .._common.anomalies import LOGGER
from .._common.bounds import UNSENT_BYTES, limit_of
from .._common.call import (
    INTERNAL_ERROR,
    ClientSide,
    ProgressHandler,
    RequestingSide,
    check_progress_handler,
)
from .._common.endings import (
    Outcome,
    check_listing,
    ended_text,
    not_sent_error,
    result_of,
    seconds_of,
    start_error,
    with_stderr,
)
from .._common.errors import ConnectionLost, McpError, RequestTimeout
from .._common.requests import RequestArguments
from .._common.stderr import StderrTail
from .._options.checks import SessionOptions
from .call import Questions
from .loop import Loop
from .mailbox import Changes

if TYPE_CHECKING:
    from sansmcp.http import ClientEndpoint


_REOPENING: Final = "the session was lost, and is not open again yet"


class RequestSender:
    """Callers ask here. Whoever dispatches the events puts the endings in mailboxes.

    Args:
        side: The core, on whose side this is.
        options: What it does with what the peer sends.
    """

    _new_loop: ClassVar[type[Loop]]  # brought by the modules of a loop

    def __init__(self, side: RequestingSide, options: SessionOptions) -> None:
        self.side: Final = side
        self.loop: Final = self._new_loop()
        self.clock: Final = self.loop.now
        self.context: Final = options.context
        self.stderr: StderrTail | None = None
        self._questions = Questions(self, options.handler)
        self._request_timeout = options.request_timeout
        self._room = Room(side, self.loop)
        self._ready = self.loop.new_event()
        self._on_ready: Callable[[], object] | None = None
        self._ended_by: CloseCause | None = None
        self._opening_failed: ConnectionFailed | None = None  # of the session that is wanted

    def wake(self) -> None:
        """A verb was called: have its output, events and deadline seen to."""
        raise NotImplementedError  # the transport's

    async def _until_room(self) -> None:
        """Wait until output may be added."""
        if self._room.is_short:
            await self._room.wait()

    async def start(self, timeout: float, probe_timeout: float, hint: str | None) -> None:
        """Open the conversation of a client, or raise why that cannot be done."""
        mailbox = self.loop.new_mailbox()
        cast(ClientSide, self.side).start(
            timeout=limit_of(timeout),
            probe_timeout=limit_of(probe_timeout),
            hint=hint,
            data=mailbox,
            now=self.clock(),
        )
        self.wake()
        event: Ready | ConnectionFailed = await mailbox.take()
        if isinstance(event, ConnectionFailed):
            raise start_error(event, self.stderr)

    async def request(
        self, arguments: RequestArguments, serving: IncomingRequest | None
    ) -> JSONObject:
        """Ask, wait, and cancel the request if the wait is cancelled."""
        method, on_progress = arguments.method, arguments.on_progress
        timeout, max_timeout = arguments.timeout, arguments.max_timeout
        check_progress_handler(on_progress)
        self._check_open(method)
        timeout = self._request_timeout if timeout is None else timeout
        if self._room.is_short:
            waited = await self._room_to_ask(method, timeout, max_timeout)
            timeout -= waited
            max_timeout = None if max_timeout is None else max_timeout - waited
        mailbox = self.loop.new_mailbox(on_progress)
        call = arguments.send(
            self.side.send_request,
            timeout,
            max_timeout,
            log_level=arguments.log_level,
            request=serving,
            data=mailbox,
            now=self.clock(),
        )
        deadline = math.inf if max_timeout is None else self.clock() + max_timeout
        self.wake()
        try:
            outcome: Outcome | InputRequired = await mailbox.take()
            while isinstance(outcome, InputRequired):
                responses = await self._questions.answers(outcome, deadline)
                call = self._go_on(outcome, responses, timeout, deadline, on_progress, mailbox)
                outcome = await mailbox.take()
        except BaseException:
            with suppress(LocalProtocolError):  # a request for a task is ended by tasks/cancel
                self.side.cancel(call, now=self.clock())
            self.wake()
            raise
        finally:
            mailbox.is_closed = True
        return result_of(outcome, self.stderr)

    async def _room_to_ask(self, method: str, timeout: float, max_timeout: float | None) -> float:
        """Wait for room, and return the seconds that it took. They count like any silence."""
        seconds = timeout if max_timeout is None else min(timeout, max_timeout)
        if not seconds > 0:
            return 0.0  # the core says what is wrong with that
        start = self.clock()
        if self._room.needs_reopening:
            self._reopen()
        has_come = await self.loop.wait_until(start + seconds, self._until_room)
        waited = self.clock() - start
        if not has_come or waited >= seconds:
            why = _REOPENING if self._room.is_closed else f"the peer has not read for {seconds} s"
            raise RequestTimeout(f"{method} was not sent: {why}")
        self._check_open(method)
        if self._room.is_closed:
            raise not_sent_error(method, self._opening_failed)
        return waited

    def _reopen(self) -> None:
        """Open a session again, after one that was of no use: it is asked for."""
        self._room.needs_reopening = False
        endpoint = cast("ClientEndpoint", self.side)
        endpoint.reopen(now=self.clock()).data = self.loop.new_mailbox()  # nobody waits for it
        self.wake()

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
        now = self.clock()
        try:
            call = cast(ClientSide, self.side).provide_input(
                asked.request,
                responses,
                progress=on_progress is not None,
                timeout=limit_of(timeout),
                max_timeout=limit_of(deadline - now),
                data=mailbox,
                now=now,
            )
        except Exception as error:  # also what an encoder says of values that are no JSON
            text = "what the handler has answered to questions about %.80r cannot be sent"
            LOGGER.error(text, asked.request.method, exc_info=error)
            raise McpError(ErrorCode.INTERNAL_ERROR, INTERNAL_ERROR) from error
        self.wake()
        return call

    @asynccontextmanager
    async def listen(
        self, notifications: JSONObject, meta: JSONObject | None, timeout: float | None
    ) -> AsyncGenerator[Changes, None]:
        """Subscribe, and iterate over what changes, for as long as the block lasts."""
        self._check_open("subscriptions/listen")
        timeout = self._request_timeout if timeout is None else timeout
        if self._room.is_short:
            timeout -= await self._room_to_ask("subscriptions/listen", timeout, None)
        changes = Changes(self.loop, self.stderr)
        side = cast(ClientSide, self.side)
        subscription = side.listen(
            notifications,
            meta=meta,
            timeout=limit_of(timeout),
            data=changes,
            now=self.clock(),
        )
        self.wake()
        try:
            await changes.wait_acknowledged()
            yield changes
        finally:
            side.cancel(subscription, now=self.clock())
            self.wake()

    async def items(
        self, method: str, params: JSONObject | None, timeout: float | None
    ) -> AsyncGenerator[JSONValue, None]:
        """Iterate over a listing; leaving the loop early cancels the rest of it."""
        self._check_open(method)
        timeout = self._request_timeout if timeout is None else timeout
        if self._room.is_short:  # not taken off the time: that is one for every page
            await self._room_to_ask(method, timeout, None)
        mailbox = self.loop.new_mailbox()
        listing = self.side.send_paginated(
            method,
            params,
            timeout=limit_of(timeout),
            auto=False,  # or a slow consumer would have all of it in memory
            data=mailbox,
            now=self.clock(),
        )
        self.wake()
        try:
            event: PageReceived | ListingEnded
            while isinstance(event := await mailbox.take(), PageReceived):
                for item in event.items:
                    yield item
                if listing.open:
                    if self._room.is_short:
                        await self._room_to_ask(method, timeout, None)
                    self.side.next_page(listing, now=self.clock())
                    self.wake()
            check_listing(event, self.stderr)
        finally:
            self.side.cancel(listing)  # without the time: this may run after the loop has ended
            self.wake()

    async def ping(self, timeout: float | None) -> float:
        """Ping the peer, and return the seconds that the answer took."""
        self._check_open("ping")  # but not for room: it is small, and that is part of the answer
        timeout = self._request_timeout if timeout is None else timeout
        if self._room.is_closed:
            timeout -= await self._room_to_ask("ping", timeout, None)
        mailbox = self.loop.new_mailbox()
        self.side.ping(
            timeout=limit_of(timeout),
            data=mailbox,
            now=self.clock(),
        )
        self.wake()
        ended: PingEnded = await mailbox.take()
        return seconds_of(ended, self.stderr)

    async def wait_ready(self) -> None:
        """Wait for the end of the handshake."""
        await self._ready.wait()
        if self.side.state is State.CLOSED:
            raise ConnectionLost("the connection ended before the handshake was done")

    def when_ready(self, function: Callable[[], object]) -> None:
        """Have this called at the end of the handshake; an async one runs beside all else."""
        self._on_ready = function

    def notify(self, method: str, params: JSONObject | None, meta: JSONObject | None) -> None:
        """Send a notification, some time soon."""
        self._check_open(method)
        if self._room.is_closed:
            raise ConnectionLost(f"{method} was not sent: {_REOPENING}")
        self.side.send_notification(method, params, meta=meta, now=self.clock())
        self.wake()

    def _check_open(self, method: str) -> None:
        if self.side.state is not State.OPEN:
            lost = ConnectionLost(f"{method} was not sent: {ended_text(self._ended_by)}")
            raise with_stderr(lost, self.stderr)


class Room:
    """Lets tasks that have output in one after the other, in the order in which they came.

    All at once, they would fill the output far beyond its bound as soon as a little of it is gone.

    Attributes:
        is_closed: The session is lost: nothing can be sent, however much room there is.
        needs_reopening: No other session is being opened, so the next request opens one.
    """

    def __init__(self, connection: ClientSide | ServerConnection, loop: Loop) -> None:
        self.is_closed = False
        self.needs_reopening = False
        self._connection: Final = connection
        self._loop: Final = loop
        self._turnstile = loop.new_lock()
        self._has_come = loop.new_event()

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits."""
        return self._turnstile.locked()

    @property
    def is_short(self) -> bool:
        """Whether whoever comes now has to wait."""
        return self._is_full() or self._turnstile.locked()

    async def wait(self) -> None:
        """Wait for room, or until there will be none. To be used before anything else runs."""
        await self._turnstile.acquire()
        try:
            while self._is_full() and not self._is_over():
                self._has_come = self._loop.new_event()
                await self._has_come.wait()
        finally:
            self._turnstile.release()

    def look(self) -> None:
        """Let the next one in, if there is room now, or never will be."""
        if not self._is_full() or self._is_over():
            self._has_come.set()

    def _is_full(self) -> bool:
        return self.is_closed or self._connection.unsent_bytes > UNSENT_BYTES

    def _is_over(self) -> bool:
        return self.needs_reopening or self._connection.state is State.CLOSED
