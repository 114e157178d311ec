"""Requests, listings, subscriptions and pings, which callers send and wait for."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, cast

from sansmcp import (
    ConnectionFailed,
    ErrorReceived,
    IncomingRequest,
    InputRequired,
    JSONObject,
    JSONValue,
    Listing,
    ListingEnded,
    LocalProtocolError,
    OutgoingRequest,
    PageReceived,
    PingEnded,
    Ready,
    RequestCancelled,
    RequestFailed,
    ResponseReceived,
    State,
    TaskInputRequired,
)

from .._common.bounds import limit_of
from .._common.call import ClientSide, internal_error, not_async
from .._common.endings import (
    check_listing,
    ended_text,
    result_of,
    seconds_of,
    start_error,
    with_stderr,
)
from .._common.errors import CallCancelled, ConnectionLost, McpError, RequestTimeout
from .._common.requests import RequestArguments
from ._call import answers
from ._client_tasks import ClientTask, ThreadTask
from ._dispatch import EventDispatcher
from ._mailbox import Changes, Item, Mailbox
from ._waiting import FORKED

_Answer = ResponseReceived | ErrorReceived | RequestFailed | InputRequired | RequestCancelled


class RequestSender(EventDispatcher):
    """Sends requests for callers, and waits for their endings in mailboxes."""

    polls: int

    def start(self, timeout: float, probe_timeout: float, hint: str | None) -> None:
        """Open the conversation of a client, or raise why that cannot be done."""
        with self:
            mailbox = Mailbox[Ready | ConnectionFailed]()
            now = time.monotonic()
            self.sending.start(timeout, probe_timeout, hint, data=mailbox, now=now)
            self.turn()
            event = self._take(mailbox)
        if isinstance(event, ConnectionFailed):
            raise start_error(event, self.sending.stderr)

    def request(self, arguments: RequestArguments, serving: IncomingRequest | None) -> JSONObject:
        """Send a request and wait for its response. An interruption cancels the request."""
        outcome: Any = self._answer(arguments, serving, Mailbox[_Answer](arguments.on_progress))
        if isinstance(outcome, RequestFailed):
            with self:
                self.flush()  # the request may have been cancelled
        return result_of(outcome, self.sending.stderr)

    def _answer(
        self, arguments: RequestArguments, serving: IncomingRequest | None, mailbox: Any
    ) -> Any:
        """Send a request, answer the questions about it, and return what the mailbox gives then."""
        method, on_progress = arguments.method, arguments.on_progress
        timeout, max_timeout = arguments.times(self.request_timeout)
        with self:
            self._check_open(method)
            if serving is not None and not serving.open:
                raise CallCancelled(f"{method} was not sent: the call has ended")
            if not self.sending.has_room:
                waited = self._room_to_ask(method, timeout, max_timeout)
                timeout -= waited
                max_timeout = None if max_timeout is None else max_timeout - waited
            call = arguments.send(
                self.side.send_request,
                timeout,
                max_timeout,
                log_level=arguments.log_level,
                request=serving,
                data=mailbox,
                now=time.monotonic(),
            )
            deadline = math.inf if max_timeout is None else time.monotonic() + max_timeout
            if serving is not None:
                serving.data.append(mailbox)
            try:
                self.turn()
                outcome: Any = self._take(mailbox)
                while isinstance(outcome, InputRequired):
                    responses = answers(self, outcome, deadline)
                    call = self.sending.send_answers(
                        outcome,
                        responses,
                        progress=on_progress is not None,
                        timeout=timeout,
                        deadline=deadline,
                        data=mailbox,
                        now=time.monotonic(),
                    )
                    self.turn()
                    outcome = self._take(mailbox)
                if isinstance(outcome, RequestCancelled):
                    raise CallCancelled(f"{method} was cancelled together with its call")
            except BaseException:
                with suppress(LocalProtocolError):  # a request for a task ends by tasks/cancel
                    self.side.cancel(call, now=time.monotonic())
                self.turn()
                self.flush()
                raise
            finally:
                mailbox.is_closed = True
                if serving is not None:
                    serving.data.remove(mailbox)
        return outcome

    def start_task(self, arguments: RequestArguments) -> ClientTask:
        """Send a request, and wait until the server has answered it with a task, or for good."""
        followed = ThreadTask(self, arguments.method, arguments.on_progress)
        self._answer(arguments, None, followed)
        followed.check_start(self.sending.stderr)
        return ClientTask(self, followed)

    def resume_task(
        self, task_id: str, method: str, timeout: float | None, max_timeout: float | None
    ) -> ClientTask:
        """Follow a task that another connection has started."""
        timeout = self.request_timeout if timeout is None else timeout
        with self:
            self._check_open("tasks/get")
            if not self.sending.has_room:
                waited = self._room_to_ask("tasks/get", timeout, max_timeout)
                timeout -= waited
                max_timeout = None if max_timeout is None else max_timeout - waited
            followed = ThreadTask(self, method, None)
            mailbox: Any = followed  # it has the attributes of one
            call = self.side.resume_task(
                task_id,
                method,
                timeout=limit_of(timeout),
                max_timeout=None if max_timeout is None else limit_of(max_timeout),
                data=followed,
                now=time.monotonic(),
            )
            try:
                self.turn()
                self._take(mailbox)
            except BaseException:
                self.leave_task_soon(call)  # which goes on for others
                self.turn()
                raise
        followed.check_start(self.sending.stderr)
        return ClientTask(self, followed)

    def _answer_task(self, asked: TaskInputRequired) -> None:
        call = asked.request
        try:
            responses = answers(self, asked, math.inf) if call.open else {}
            if call.open:
                self.sending.send_task_answers(asked, responses, time.monotonic())
        except ConnectionLost:
            pass  # and the task with it
        except McpError as error:
            self._fail_task(call, error)
        except BaseException as error:
            self._fail_task(call, internal_error(error))
            raise

    def _fail_task(self, call: OutgoingRequest, error: McpError) -> None:
        """End a task whose question has no answer."""
        if call.open:
            call.data.fail(error)
            self.ring(call.data)

    def _take(self, mailbox: Mailbox[Item]) -> Item:
        """Wait for an item and return it, after all progress that was reported before it."""
        while True:
            self.wait(lambda: mailbox.has_mail, mailbox=mailbox)
            if not mailbox.progress:
                self.tell_all()  # before the ending, in the order of arrival
                return mailbox.take()
            assert mailbox.on_progress is not None  # or progress would not be put there
            on_progress, progress = mailbox.on_progress, mailbox.take_progress()
            not_async(self._without_lock(on_progress, *progress), "on_progress")

    def _room_to_ask(self, method: str, timeout: float, max_timeout: float | None) -> float:
        """Wait until a request may be sent, and return the seconds that took: its timeout runs."""
        seconds = timeout if max_timeout is None else min(timeout, max_timeout)
        if not seconds > 0:
            return 0.0  # the core raises for such a time
        start = time.monotonic()
        if self.sending.needs_reopening:
            self.sending.reopen(Mailbox[Any](), start)  # without a waiting caller
            self.turn()
        if not self.wait_for_room(start + seconds):
            raise self.sending.no_room_error(method, seconds)
        self._check_open(method)
        self.sending.check_reopened(method)
        return time.monotonic() - start

    @contextmanager
    def listen(
        self, notifications: JSONObject, meta: JSONObject | None, timeout: float | None
    ) -> Generator[Changes, None, None]:
        """Subscribe for the time of a block, which iterates over the changes."""
        method = "subscriptions/listen"
        changes = Changes(self, self.sending.stderr)
        with self:
            self._check_open(method)
            timeout = self.request_timeout if timeout is None else timeout
            if not self.sending.has_room:
                timeout -= self._room_to_ask(method, timeout, None)
            subscription = cast(ClientSide, self.side).listen(
                notifications,
                meta=meta,
                timeout=limit_of(timeout),
                data=changes,
                now=time.monotonic(),
            )
            try:
                self.turn()
                changes.wait_acknowledged()
            except BaseException:
                self.cancel_soon(subscription)
                self.turn()
                raise
        try:
            yield changes
        finally:
            self.cancel_soon(subscription)

    def items(
        self, method: str, params: JSONObject | None, timeout: float | None
    ) -> Generator[JSONValue, None, None]:
        """Iterate over a listing. Leaving the loop early cancels the listing."""
        listing: Listing | None = None
        mailbox = Mailbox[PageReceived | ListingEnded]()
        timeout = self.request_timeout if timeout is None else timeout
        try:
            while True:
                with self:
                    if listing is None or listing.open:
                        self._check_open(method)
                        if not self.sending.has_room:
                            # The timeout is not shortened: it holds for each page.
                            self._room_to_ask(method, timeout, None)
                    if listing is None:
                        listing = self.side.send_paginated(
                            method,
                            params,
                            timeout=limit_of(timeout),
                            auto=False,  # otherwise, a slow consumer would hold all pages in memory
                            data=mailbox,
                            now=time.monotonic(),
                        )
                    elif listing.open:
                        self.side.next_page(listing, now=time.monotonic())
                    try:
                        self.turn()
                        event = self._take(mailbox)
                    except BaseException:
                        self.side.cancel(listing, now=time.monotonic())
                        self.turn()
                        self.flush()
                        raise
                    if isinstance(event, ListingEnded):
                        self.flush()  # the request may have been cancelled
                if isinstance(event, ListingEnded):
                    break
                yield from event.items
            check_listing(event, self.sending.stderr)
        finally:
            if listing is not None:
                self.cancel_soon(listing)

    def ping(self, timeout: float | None) -> float:
        """Ping the peer, and return the seconds that the answer took."""
        with self:
            self._check_open("ping")
            timeout = self.request_timeout if timeout is None else timeout
            if self.sending.is_lost:  # no wait for room: a ping is small, and measures that delay
                timeout -= self._room_to_ask("ping", timeout, None)
            mailbox = Mailbox[PingEnded]()
            self.side.ping(
                timeout=limit_of(timeout),
                data=mailbox,
                now=time.monotonic(),
            )
            self.turn()
            ended = self._take(mailbox)
        return seconds_of(ended, self.sending.stderr)

    def poll(self, timeout: float) -> bool:
        """Handle the messages that have arrived, or that arrive within `timeout`."""
        with self:
            if self.side.state is not State.OPEN:
                lost = ConnectionLost(ended_text(self.sending.ended_by))
                raise with_stderr(lost, self.sending.stderr)
            before, until = self.news, time.monotonic() + timeout
            self.polls += 1
            try:
                self.look()
                self.work()
                self.wait(lambda: self.news != before or self.side.state is State.CLOSED, until)
                self.work()
            finally:
                self.polls -= 1
            self.flush()
            return self.news != before

    def wait_ready(self, timeout: float) -> None:
        """Wait for the end of the handshake."""
        with self:
            closed = State.CLOSED
            until = time.monotonic() + timeout
            if not self.wait(lambda: self.is_ready or self.side.state is closed, until):
                raise RequestTimeout(f"the client was not ready within {timeout} s")
            if self.side.state is closed:
                raise ConnectionLost("the connection ended before the handshake was done")

    def sleep(self, serving: IncomingRequest, seconds: float) -> None:
        """Wait for a time or until the call is cancelled, and read and serve meanwhile."""
        with self:
            mailbox = Mailbox[RequestCancelled]()
            serving.data.append(mailbox)
            try:
                self.wait(lambda: not serving.open, time.monotonic() + seconds, mailbox)
            finally:
                serving.data.remove(mailbox)
            if not serving.open:
                raise CallCancelled(f"{serving.method} has ended")

    def notify(self, method: str, params: JSONObject | None, meta: JSONObject | None) -> None:
        """Send a notification, some time soon."""
        with self:
            self._check_open(method)
            self.sending.check_session(method)
            self.side.send_notification(method, params, meta=meta, now=time.monotonic())
            self.turn()
            self.flush(until_taken=True)

    def _check_open(self, method: str) -> None:
        if self.is_forked:
            raise ConnectionLost(FORKED)
        self.sending.check_open(method)
