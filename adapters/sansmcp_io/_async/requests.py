"""Requests, listings, subscriptions and pings, which callers send and wait for."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, cast

from sansmcp import (
    ConnectionFailed,
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
    State,
)

from .._common.bounds import limit_of
from .._common.call import (
    ClientSide,
    RequestingSide,
)
from .._common.endings import (
    check_listing,
    result_of,
    seconds_of,
    start_error,
)
from .._common.errors import ConnectionLost
from .._common.requests import RequestArguments, SendState
from .._options.checks import SessionOptions
from .call import Questions
from .client_tasks import ClientTask, LoopTask
from .loop import Loop, Mailbox
from .mailbox import Changes


class RequestSender(ABC):
    """Sends requests for callers, which then wait at mailboxes that the dispatcher fills.

    Args:
        side: The core object.
        options: The handlers for messages of the peer.
        loop: The primitives of the loop.
    """

    def __init__(self, side: RequestingSide, options: SessionOptions, loop: Loop) -> None:
        self.side: Final = side
        self.loop: Final = loop
        self.clock: Final = self.loop.now
        self.context: Final = options.context
        self.sending: Final = SendState(side)
        self._questions = Questions(self, options.handler)
        self._request_timeout = options.request_timeout
        self._room = OutputRoom(self.sending, self.loop)
        self._ready = self.loop.new_event()
        self._on_ready: Callable[[], object] | None = None

    @abstractmethod
    def wake(self) -> None:
        """Handle output, events and deadline soon, after a call into the core."""

    async def _until_room(self) -> None:
        """Wait until output may be added."""
        if self._room.is_short:
            await self._room.wait()

    async def start(self, timeout: float, probe_timeout: float, hint: str | None) -> None:
        """Open the conversation of a client, or raise why that cannot be done."""
        mailbox = self.loop.new_mailbox()
        self.sending.start(timeout, probe_timeout, hint, data=mailbox, now=self.clock())
        self.wake()
        event: Ready | ConnectionFailed = await mailbox.take()
        if isinstance(event, ConnectionFailed):
            raise start_error(event, self.sending.stderr)

    async def request(
        self, arguments: RequestArguments, serving: IncomingRequest | None
    ) -> JSONObject:
        """Send a request and wait for its response. If the wait is cancelled, so is the request."""
        mailbox = self.loop.new_mailbox(arguments.on_progress)
        return result_of(await self.answer(arguments, serving, mailbox), self.sending.stderr)

    async def answer(
        self, arguments: RequestArguments, serving: IncomingRequest | None, mailbox: Mailbox
    ) -> Any:
        """Send a request, answer the questions about it, and return what the mailbox gives then."""
        method, on_progress = arguments.method, arguments.on_progress
        timeout, max_timeout = arguments.times(self._request_timeout)
        self.sending.check_open(method)
        if self._room.is_short:
            waited = await self._room_to_ask(method, timeout, max_timeout)
            timeout -= waited
            max_timeout = None if max_timeout is None else max_timeout - waited
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
            outcome: Any = await mailbox.take()
            while isinstance(outcome, InputRequired):
                responses = await self._questions.answers(outcome, deadline)
                call = self.sending.send_answers(
                    outcome,
                    responses,
                    progress=on_progress is not None,
                    timeout=timeout,
                    deadline=deadline,
                    data=mailbox,
                    now=self.clock(),
                )
                self.wake()
                outcome = await mailbox.take()
        except BaseException:
            with suppress(LocalProtocolError):  # a request for a task is ended by tasks/cancel
                self.side.cancel(call, now=self.clock())
            self.wake()
            raise
        finally:
            mailbox.is_closed = True
        return outcome

    async def start_task(self, arguments: RequestArguments) -> ClientTask:
        """Send a request, and wait until the server has answered it with a task, or for good."""
        followed = LoopTask(self, arguments.method, arguments.on_progress)
        await self.answer(arguments, None, followed)
        followed.is_closed = False
        followed.check_start(self.sending.stderr)
        return ClientTask(self, followed)

    async def resume_task(
        self, task_id: str, method: str, timeout: float | None, max_timeout: float | None
    ) -> ClientTask:
        """Follow a task that another connection has started."""
        self.sending.check_open("tasks/get")
        timeout = self._request_timeout if timeout is None else timeout
        if self._room.is_short:
            waited = await self._room_to_ask("tasks/get", timeout, max_timeout)
            timeout -= waited
            max_timeout = None if max_timeout is None else max_timeout - waited
        followed = LoopTask(self, method, None)
        call = self.side.resume_task(
            task_id,
            method,
            timeout=limit_of(timeout),
            max_timeout=None if max_timeout is None else limit_of(max_timeout),
            data=followed,
            now=self.clock(),
        )
        self.wake()
        try:
            await followed.take()
        except BaseException:
            self.leave_task(call)  # which goes on for others
            raise
        followed.check_start(self.sending.stderr)
        return ClientTask(self, followed)

    def leave_task(self, call: OutgoingRequest) -> None:
        """Do not follow a task any more."""
        self.side.leave_task(call, now=self.clock())
        self.wake()

    async def _room_to_ask(self, method: str, timeout: float, max_timeout: float | None) -> float:
        """Wait until a request may be sent, and return the seconds that took: its timeout runs."""
        seconds = timeout if max_timeout is None else min(timeout, max_timeout)
        if not seconds > 0:
            return 0.0  # the core raises for such a time
        start = self.clock()
        if self.sending.needs_reopening:
            self.sending.reopen(self.loop.new_mailbox(), start)  # without a waiting caller
            self.wake()
        has_come = await self.loop.wait_until(start + seconds, self._until_room)
        waited = self.clock() - start
        if not has_come or waited >= seconds:
            raise self.sending.no_room_error(method, seconds)
        self.sending.check_open(method)
        self.sending.check_reopened(method)
        return waited

    @asynccontextmanager
    async def listen(
        self, notifications: JSONObject, meta: JSONObject | None, timeout: float | None
    ) -> AsyncGenerator[Changes, None]:
        """Subscribe for the time of a block, which iterates over the changes."""
        self.sending.check_open("subscriptions/listen")
        timeout = self._request_timeout if timeout is None else timeout
        if self._room.is_short:
            timeout -= await self._room_to_ask("subscriptions/listen", timeout, None)
        changes = Changes(self.loop, self.sending.stderr)
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
        """Iterate over a listing. Leaving the loop early cancels the listing."""
        self.sending.check_open(method)
        timeout = self._request_timeout if timeout is None else timeout
        if self._room.is_short:  # the timeout is not shortened: it holds for each page
            await self._room_to_ask(method, timeout, None)
        mailbox = self.loop.new_mailbox()
        listing = self.side.send_paginated(
            method,
            params,
            timeout=limit_of(timeout),
            auto=False,  # otherwise, a slow consumer would hold all pages in memory
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
            check_listing(event, self.sending.stderr)
        finally:
            self.side.cancel(listing)  # without the time: this may run after the loop has ended
            self.wake()

    async def ping(self, timeout: float | None) -> float:
        """Ping the peer, and return the seconds that the answer took."""
        self.sending.check_open("ping")
        timeout = self._request_timeout if timeout is None else timeout
        if self.sending.is_lost:  # no wait for room: a ping is small, and measures that delay, too
            timeout -= await self._room_to_ask("ping", timeout, None)
        mailbox = self.loop.new_mailbox()
        self.side.ping(
            timeout=limit_of(timeout),
            data=mailbox,
            now=self.clock(),
        )
        self.wake()
        ended: PingEnded = await mailbox.take()
        return seconds_of(ended, self.sending.stderr)

    async def wait_ready(self) -> None:
        """Wait for the end of the handshake."""
        await self._ready.wait()
        if self.side.state is State.CLOSED:
            raise ConnectionLost("the connection ended before the handshake was done")

    def when_ready(self, function: Callable[[], object]) -> None:
        """Call this at the end of the handshake; an async function runs in a task of its own."""
        self._on_ready = function

    def notify(self, method: str, params: JSONObject | None, meta: JSONObject | None) -> None:
        """Send a notification, some time soon."""
        self.sending.check_open(method)
        self.sending.check_session(method)
        self.side.send_notification(method, params, meta=meta, now=self.clock())
        self.wake()


class OutputRoom:
    """Lets tasks add output one after the other, in the order in which they came.

    All at once, they would exceed the limit by far as soon as a little output was written.
    """

    def __init__(self, sending: SendState, loop: Loop) -> None:
        self._sending: Final = sending
        self._loop: Final = loop
        self._turnstile = loop.new_lock()
        self._has_come = loop.new_event()

    @property
    def is_awaited(self) -> bool:
        """Whether a task waits."""
        return self._turnstile.locked()

    @property
    def is_short(self) -> bool:
        """Whether a task that comes now has to wait."""
        return not self._sending.has_room or self._turnstile.locked()

    async def wait(self) -> None:
        """Wait for room, or until there will be none. The caller must use it before it awaits."""
        await self._turnstile.acquire()
        try:
            while not (self._sending.has_room or self._sending.is_hopeless):
                self._has_come = self._loop.new_event()
                await self._has_come.wait()
        finally:
            self._turnstile.release()

    def look(self) -> None:
        """Wake the next task, if there is room now, or never will be."""
        if self._sending.has_room or self._sending.is_hopeless:
            self._has_come.set()
