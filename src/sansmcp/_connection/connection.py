"""One end of a conversation on a byte stream, such as stdio: bytes in, bytes and events out."""

from __future__ import annotations

from typing import Any

from .._rules.conversation import Peer
from .._rules.sending import (
    Breach,
    no_tasks,
)
from .._rules.state_tables import (
    Phase,
    State,
)
from .._spec.errors import ErrorCode
from .._wire.codec import refusal
from .._wire.framing import (
    NO_NEWLINE,
    SPACE,
    Line,
    LineReader,
    Overlong,
    OverlongEnd,
    OverlongLine,
    Trimmer,
    is_blank,
)
from .._wire.setting_checks import check_clock
from .._wire.values import (
    MISSING,
    JSONObject,
    JSONValue,
    Missing,
)
from .core import Core
from .events import (
    Event,
    TaskQuestion,
    TasksWanted,
    TaskToStore,
    TaskWanted,
)
from .handles import (
    IncomingRequest,
    Listing,
    OutgoingRequest,
    Ping,
    Start,
    Subscription,
    Task,
)
from .machine import Machine
from .tasks.board import TaskBoard
from .tasks.owner import TaskOwner
from .tasks.records import TaskRecord
from .transport import Transport


class ByteStreamTransport(Transport):
    """The transport of one byte stream for all messages; it may end inside of a message.

    Attributes:
        cut_off: A sentence on the message over the limit in which the stream has ended; else None.
    """

    __slots__ = ("cut_off",)

    core: Core  # which sets it

    def __init__(self) -> None:
        self.cut_off: str | None = None

    def loss_text(self, call: OutgoingRequest) -> str:
        """The reason why a request was lost; the message that was cut off may be its response."""
        text = super().loss_text(call)
        if self.cut_off is None:
            return text
        return f"{text}; {self.cut_off}, and it may be the response"


class Connection:
    """One end of a conversation on a byte stream: the verbs that clients and servers share."""

    __slots__ = (
        "__weakref__",
        "_core",
        "_incoming",
        "_lines",
        "_machine",
        "_notifications",
        "_outgoing",
        "_stream",
        "_trimmer",
    )

    def _assemble(self, machine: Machine, stream: ByteStreamTransport) -> None:
        self._machine = machine
        self._stream = stream
        self._core = machine.core
        # The parts that are called most often: direct attributes save a look-up in each call.
        self._outgoing = machine.outgoing
        self._incoming = machine.incoming
        self._notifications = machine.notifications
        self._lines = LineReader(self._core.config.max_message_bytes)
        self._trimmer = Trimmer()

    # -------------------------------------------------------------------------- from the transport

    def receive_data(
        self,
        data: bytes | bytearray | memoryview,
        *,
        at: float | None = None,
        now: float | None = None,
    ) -> None:
        """Take the next bytes of the peer's stream, in pieces of any size.

        Breaches by the peer never raise: a bad line becomes an event, and the lines around it are
        handled.

        Args:
            data: Any number of bytes. The connection copies an unfinished line and keeps nothing
                else.
            at: The time in Unix seconds. If it is given and `Config.state_keys` are set, a server
                checks the seal of a state before it delivers the request.
            now: The caller's clock in seconds.

        Source: MCP 2025-11-25, basic/transports, stdio.
        """
        if now is not None:
            self._core.tell(now)
        if self._core.state is State.CLOSED or self._core.state is State.DRAINING:
            return
        if at is not None and at.__class__ is not float:
            check_clock("at", at)
        self._core.at = at
        for line in self._lines.feed(data):
            if isinstance(line, Overlong) or self._trimmer.first or not line or line[-1] <= SPACE:
                self._receive_odd_line(line)
            else:
                self._machine.receive(line)
            if self._core.overflowing:
                self._core.end_overflow()
        if self._core.needs_settle:
            self._core.settle()

    def receive_message(
        self,
        message: bytes | bytearray | str,
        *,
        at: float | None = None,
        now: float | None = None,
    ) -> None:
        """Take one whole encoded message, for transports that have their own framing.

        Breaches by the peer never raise: a bad message becomes an event.

        Args:
            message: One JSON text without framing.
            at: The time in Unix seconds, as for `receive_data`.
            now: The caller's clock in seconds.
        """
        self._machine.receive_message(message, at=at, now=now)

    def receive_eof(
        self, *, drain: float = 0.0, at: float | None = None, now: float | None = None
    ) -> None:
        """Take the end of the peer's stream: no more input will come.

        The open requests of this side end as lost. The open requests of the peer are cancelled, at
        once or after `drain` seconds. `ConnectionClosed` comes last.

        Args:
            drain: Seconds in which requests of the peer that were received may still be answered.
            at: The time in Unix seconds, as for `receive_data`: the last line may have no newline.
            now: The caller's clock in seconds. Without a clock, `drain` has no effect.

        Raises:
            ValueError: `drain` is negative, or no number.
        """
        if now is not None:
            self._core.tell(now)
        self._core.at = at
        self._input_ended()
        self._machine.receive_eof(drain=drain, at=at, now=now)

    def send_failed(self, *, now: float | None = None) -> None:
        """Take a failure of writing to the peer, perhaps in the middle of a message.

        Output that waits is dropped, and the open requests of the peer are cancelled. Requests of
        this side that the transport has not taken end as lost. Those that it has taken may still
        be answered, until the stream ends or they time out.
        """
        self._machine.send_failed(now=now)

    def handle_timeout(self, now: float) -> None:
        """Handle all deadlines up to `now`, in seconds on the caller's clock.

        A call before a deadline does nothing. Deadlines have an effect only here: a response that
        is received before this call ends its request, even after its deadline.
        """
        self._machine.handle_timeout(now)

    # ------------------------------------------------------------------------ from the application

    def send_request(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        progress: bool = False,
        timeout: float | None = None,
        max_timeout: float | None = None,
        log_level: str | None = None,
        id: int | str | None = None,
        request: IncomingRequest | None = None,
        task: bool | int = False,
        data: Any = None,
        now: float | None = None,
    ) -> OutgoingRequest:
        """Queue a request and return the handle that its one ending will carry.

        Args:
            method: The method name. A method that no revision defines is sent unchanged.
            params: The params object; the connection keeps no reference to it.
            meta: Merged into `params._meta`. A `progressToken` in it (or in the params) is used.
            progress: Whether to ask for progress, with a token that the library chooses.
            timeout: Seconds of silence allowed; progress for this request restarts the time. On a
                client, time does not count while a request of the server waits for a response of
                the application, or for the end of its task: give `now` to the method that ends it.
            max_timeout: Seconds allowed in all, with or without progress.
            log_level: The least severe level of log messages about this request; None: no log
                messages. Before 2026-07-28 this is ignored: `logging/setLevel` decides for all
                requests.
            id: The id to use instead of the next number: a string that was not used before, or an
                integer above all those used before.
            request: The request of the peer for which this request is sent. Where the transport
                has several streams, this request goes out on the stream of `request`.
            task: Whether the peer may answer with a task (needs `tasks=Tasks(...)`); a number: the
                milliseconds for which it is kept, of which only peers of 2025-11-25 are told. The
                request has the same one ending, with the result of the task, which is polled
                meanwhile: see `TaskUpdated` and `TaskInputRequired`. For `timeout`, the answer to a
                poll counts as progress, and the time until the next poll does not count.
            data: Any object of the application; it becomes `OutgoingRequest.data`.
            now: The caller's clock in seconds. Needed with a timeout or with `task`, if no time
                was given before.

        Raises:
            LocalProtocolError: The state, the handshake, a capability, a limit, the shape of
                the params, the id or the token forbids the request. Nothing was queued.

        Source: MCP 2025-11-25, basic/index, Requests; basic/lifecycle, Timeouts.
        """
        return self._outgoing.send(
            method,
            params,
            meta,
            progress,
            timeout,
            max_timeout,
            log_level,
            id,
            request,
            data,
            now,
            task,
        )

    def send_paginated(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
        auto: bool = True,
        request: IncomingRequest | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> Listing:
        """Fetch all pages of a list: one `PageReceived` for each page, then one `ListingEnded`.

        Args:
            method: A method that the agreed revision paginates, such as `tools/list`.
            params: The params of each page, without the cursor. If it has a `cursor`, the listing
                begins there.
            meta: Merged into `params._meta` of each page.
            timeout: Seconds of silence allowed for each page.
            max_timeout: Seconds allowed for each page in all.
            auto: Whether to request each page as soon as the page before was received. False:
                each further page waits for `next_page`.
            request: As for `send_request`.
            data: Any object of the application; it becomes `Listing.data`.
            now: The caller's clock in seconds. Needed with a timeout, if no time was given before.

        Raises:
            LocalProtocolError: As for `send_request`; or the method is not paginated; or as many
                listings wait for `next_page` as `Config.max_requests` allows.

        Source: MCP 2025-11-25, server/utilities/pagination.
        """
        return self._machine.listings.start(
            method, params, meta, timeout, max_timeout, auto, request, data, now
        )

    def next_page(self, listing: Listing, *, now: float | None = None) -> bool:
        """Request the next page of a listing that was started with `auto=False`.

        Args:
            listing: The handle from `send_paginated`.
            now: The caller's clock in seconds. The timeout of the page counts from here.

        Returns:
            Whether the page was requested. False: nothing has changed, because a page is requested
            already, or the listing has ended.

        Raises:
            LocalProtocolError: Too many requests are open, or the handle belongs to another
                connection. Nothing was queued.

        Source: MCP 2025-11-25, server/utilities/pagination.
        """
        return self._machine.listings.next_page(listing, now)

    def ping(
        self,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> Ping:
        """Send a ping to the peer; it ends in one `PingEnded`.

        A ping is allowed before the handshake is done.

        Args:
            meta: The request's `params._meta`.
            timeout: Seconds to wait for the response.
            data: Any object of the application; it becomes `Ping.data`.
            now: The caller's clock in seconds. Needed with a timeout, if no time was given before.

        Raises:
            LocalProtocolError: The connection is not open, the revision has no ping, or a timeout
                has no clock.

        Source: MCP 2025-11-25, basic/utilities/ping.
        """
        return self._machine.pings.send(meta, timeout, data, now)

    def cancel(
        self,
        call: OutgoingRequest | Listing | Ping | Start | Subscription,
        *,
        reason: str | None = None,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Cancel an open request, listing, ping or subscription, and tell the peer.

        Args:
            call: The handle from `send_request`, `send_paginated`, `ping` or `listen`. Its ending
                event follows.
            reason: The reason, for the log of the peer.
            meta: The notification's `_meta`.
            now: The caller's clock in seconds.

        Returns:
            Whether it was open until now. False: it had ended before, and nothing has changed.

        Raises:
            LocalProtocolError: The handle cannot be cancelled (`start`; a request for a task, which
                `tasks/cancel` ends), or it belongs to another connection.

        Source: MCP 2025-11-25, basic/utilities/cancellation.
        """
        return self._machine.cancel(call, reason, meta, now)

    def send_result(
        self,
        request: IncomingRequest,
        result: JSONObject,
        *,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Answer a request with a result.

        Args:
            request: The handle from `RequestReceived`.
            result: The result object; the connection keeps no reference to it.
            meta: Merged into `result._meta`.
            now: The caller's clock in seconds.

        Returns:
            Whether the response was queued. False: the request was cancelled or the connection has
            ended, and nothing is sent; or the response alone is larger than
            `Config.max_unsent_bytes`, and the error -32603 was queued in its place.

        Raises:
            LocalProtocolError: The request was answered before or belongs to another connection,
                the result lacks a member that the method requires, or the request was accepted as a
                task (`Tasks.tools`). The request stays open.

        Source: MCP 2025-11-25, basic/index, Responses.
        """
        return self._incoming.send_result(request, result, meta, now)

    def send_error(
        self,
        request: IncomingRequest,
        code: int,
        message: str,
        data: JSONValue | Missing = MISSING,
        *,
        now: float | None = None,
    ) -> bool:
        """Answer a request with an error.

        Args:
            request: The handle from `RequestReceived`.
            code: A JSON-RPC error code. -32002 (resource not found, up to 2025-11-25) becomes
                -32602 where the request is one of 2026-07-28.
            message: One concise sentence.
            data: Any JSON value; without it the error has no `data`.
            now: The caller's clock in seconds.

        Returns:
            Whether the response was queued, as for `send_result`.

        Raises:
            LocalProtocolError: The request was answered before or belongs to another connection,
                or the error is not well formed. The request stays open.

        Source: MCP 2025-11-25, basic/index, Responses.
        """
        return self._incoming.send_error(request, code, message, data, now)

    def send_progress(
        self,
        request: IncomingRequest,
        progress: float,
        *,
        total: float | None = None,
        message: str | None = None,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Send progress of a request of the peer.

        Args:
            request: The handle from `RequestReceived`.
            progress: A number above that of the last call for this request.
            total: The value of `progress` at the end, in the same unit, if known.
            message: A text for people about the current step (not sent in 2024-11-05, which has no
                such member).
            meta: The notification's `_meta`.
            now: The caller's clock in seconds; `Config.progress_interval` needs it.

        Returns:
            Whether the notification was queued. False: the request has ended, the peer wants no
            progress, the last notification is too recent, or too much output waits.

        Raises:
            LocalProtocolError: A number is not finite, or `progress` does not increase (without
                `Config.coalesce_progress`).

        Source: MCP 2025-11-25, basic/utilities/progress.
        """
        return self._incoming.send_progress(request, progress, total, message, meta, now)

    def send_notification(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        request: IncomingRequest | None = None,
        now: float | None = None,
    ) -> None:
        """Queue a notification for which there is no other method.

        Args:
            method: The method name. A method that no revision defines is sent unchanged.
            params: The params object; the connection keeps no reference to it.
            meta: Merged into `params._meta`.
            request: The request of the peer that the notification belongs to. Where the transport
                has several streams, it goes out on the stream of `request`. A server needs it for a
                client of 2026-07-28, where each notification belongs to a request.
            now: The caller's clock in seconds.

        Raises:
            LocalProtocolError: The state, the handshake, a capability or the shape of the params
                forbids the notification; another method sends it (`send_progress`, `cancel`, ...);
                or a notification to a client of 2026-07-28 has no `request`. Nothing was queued.

        Source: MCP 2025-11-25, basic/index, Notifications.
        """
        self._notifications.send(method, params, meta, request, now)

    # -------------------------------------------------------------------- tasks, of the other side

    def resume_task(
        self,
        task_id: str,
        method: str = "tools/call",
        *,
        timeout: float | None = None,
        max_timeout: float | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> OutgoingRequest:
        """Follow a task of the peer whose request was sent by another connection.

        Args:
            task_id: What `OutgoingRequest.task_id` was.
            method: The method of that request.
            timeout: As for `send_request`.
            max_timeout: As for `send_request`.
            data: Any object of the application; it becomes `OutgoingRequest.data`.
            now: The caller's clock in seconds. Needed if no time was given before.

        Returns:
            A handle like that of the request, which gets its ending.

        Raises:
            LocalProtocolError: The peer has no tasks, the task is followed already, or the clock is
                unknown.
        """
        follower = self._outgoing.follower
        if follower is None:
            raise no_tasks()
        return follower.resume(task_id, method, timeout, max_timeout, data, now)

    def leave_task(self, call: OutgoingRequest, *, now: float | None = None) -> bool:
        """End a request that has become a task, and let the task go on at the peer.

        It is not polled any more. `resume_task` follows it again, also from another process.

        Args:
            call: The handle of the request, whose ending is `FailureReason.CANCELLED`.
            now: The caller's clock in seconds.

        Returns:
            Whether the request was open until now.

        Raises:
            LocalProtocolError: The request has become no task, or is one of another connection.
        """
        follower = self._outgoing.follower
        if follower is None:
            raise no_tasks()
        return follower.leave(call, now)

    # --------------------------------------------------------------------------- tasks of the peer

    def create_task(
        self,
        request: IncomingRequest,
        *,
        ttl_ms: int | Missing | None = MISSING,
        poll_ms: int | Missing | None = MISSING,
        message: str | None = None,
        keep: JSONValue = None,
        meta: JSONObject | None = None,
        at: float | None = None,
        now: float | None = None,
    ) -> Task | None:
        """Answer a request with a task: the result follows later, by `complete_task`.

        The handle `request` ends with this call. The task belongs to the principal of the request,
        and for others it does not exist.

        Args:
            request: In 2026-07-28 a `tools/call` whose client declares the extension; in
                2025-11-25 a request with the member `task`.
            ttl_ms: Milliseconds for which the task is kept; None: without end. If it is not given,
                what a client of 2025-11-25 asks for, up to `Tasks.max_ttl_ms`, or `Tasks.ttl_ms`.
            poll_ms: Milliseconds to wait between two polls; None: that is not said. If it is not
                given, `Tasks.poll_ms`.
            message: A text about the status, for people.
            keep: Any JSON value that is stored with the task (`TaskRecord.keep`), for a process
                that takes it over.
            meta: Merged into `result._meta`.
            at: The time in Unix seconds. Needed if it was not told before.
            now: The caller's clock in seconds. Without it no task expires by itself.

        Returns:
            The task; None: there are too many, and the request was refused with -32603, or it was
            cancelled.

        Raises:
            LocalProtocolError: The request may not be answered with a task, it was answered before,
                its principal has no `principal_key`, or the time is unknown. It stays open.
            ValueError: `Tasks.entropy` has not given random bytes.

        Source: MCP 2025-11-25, basic/utilities/tasks; the extension
        `io.modelcontextprotocol/tasks`.
        """
        return self._task_owner.create(request, ttl_ms, poll_ms, message, keep, meta, at, now)

    def update_task(
        self,
        task: Task,
        *,
        message: str | Missing | None = MISSING,
        ttl_ms: int | Missing | None = MISSING,
        poll_ms: int | Missing | None = MISSING,
        keep: JSONValue | Missing = MISSING,
        at: float | None = None,
        now: float | None = None,
    ) -> bool:
        """Change what is said about a task while the work goes on.

        Where the application has the store, updates that wait for it are stored as one, or with the
        end of the task. One that it could not store does not end the task: the next change of the
        task takes its values along.

        Args:
            task: The handle from `create_task`.
            message: A text about the status, for people; None takes it away.
            ttl_ms: As for `create_task`. It counts from the creation of the task.
            poll_ms: As for `create_task`.
            keep: As for `create_task`, in the place of what was kept before; None takes it away.
            at: The time in Unix seconds.
            now: The caller's clock in seconds.

        Returns:
            Whether the task is open. False: it has ended, and nothing has changed.

        Raises:
            LocalProtocolError: A value is not valid, or the task belongs to another connection.
        """
        return self._task_owner.report(task, message, ttl_ms, poll_ms, keep, at, now)

    def complete_task(
        self,
        task: Task,
        result: JSONObject,
        *,
        meta: JSONObject | None = None,
        at: float | None = None,
        now: float | None = None,
    ) -> bool:
        """End a task with the result of its request.

        Args:
            task: The handle from `create_task`.
            result: The result that the request would have had without a task.
            meta: Merged into its `_meta`.
            at: The time in Unix seconds.
            now: The caller's clock in seconds.

        Returns:
            Whether the task has this result now; where the application has the store, whether the
            task was open. False: it had ended before, or the result has no room.

        Raises:
            LocalProtocolError: The result lacks a member that the method requires.
        """
        return self._task_owner.complete(task, result, meta, at, now)

    def fail_task(
        self,
        task: Task,
        code: int,
        message: str,
        data: JSONValue | Missing = MISSING,
        *,
        at: float | None = None,
        now: float | None = None,
    ) -> bool:
        """End a task with the error of its request: as `complete_task` and `send_error`."""
        return self._task_owner.fail(task, code, message, data, at, now)

    def cancel_task(
        self,
        task: Task,
        *,
        message: str | None = None,
        at: float | None = None,
        now: float | None = None,
    ) -> bool:
        """Cancel a task from this side; return whether it was open until now.

        Args:
            task: The handle from `create_task`.
            message: A text about the status, for people.
            at: The time in Unix seconds.
            now: The caller's clock in seconds.
        """
        return self._task_owner.cancel(task, message, at, now)

    def adopt_task(
        self,
        record: TaskRecord,
        *,
        at: float | None = None,
        now: float | None = None,
    ) -> Task:
        """Take over a stored task whose process has ended, to work on it or to let it fail.

        Only the application can know that no other process works on it. The answers that have come
        before are in `TaskRecord.answers`. Over HTTP, questions to a client of 2025-11-25 wait
        until it calls `tasks/result`.

        Args:
            record: The record, as it is stored.
            at: The time in Unix seconds.
            now: The caller's clock in seconds.

        Raises:
            LocalProtocolError: The task is over, this process works on it already or on as many as
                it may, or `Tasks.store` is not `"ask"`.
        """
        return self._task_owner.adopt(record, at, now)

    def provide_task(
        self, wanted: TaskWanted, record: TaskRecord | None, *, now: float | None = None
    ) -> None:
        """Give the record of a task; None: there is none.

        Raises:
            LocalProtocolError: The question was answered before, or the record is of another task.
        """
        self._tell_board(now).provide(wanted, record)
        self._core.settle()

    def provide_tasks(
        self, wanted: TasksWanted, records: list[TaskRecord], *, now: float | None = None
    ) -> None:
        """Give a page of the tasks of one owner, in the order of `TaskRecord.place`.

        Raises:
            LocalProtocolError: The question was answered before, or a record has another owner.
        """
        self._tell_board(now).provide_page(wanted, records)
        self._core.settle()

    def task_stored(
        self, asked: TaskToStore, stored: bool = True, *, now: float | None = None
    ) -> None:
        """Say what became of a record.

        Args:
            asked: The event that has asked.
            stored: Whether it was stored. False: the store has another version than the one before,
                which the library now asks for.
            now: The caller's clock in seconds.

        Raises:
            LocalProtocolError: The question was answered before.
        """
        self._tell_board(now).stored(asked, stored)
        self._core.settle()

    def fail_task_lookup(
        self,
        asked: TaskQuestion,
        text: str | None = None,
        *,
        no_room: bool = False,
        now: float | None = None,
    ) -> None:
        """Say that the store has failed, or that it has no room for a record.

        A request of the peer gets the error -32603. A task whose change is not stored is lost,
        unless it is one of `update_task`; if the change has no room, the task fails
        (`TaskEnd.NO_ROOM`), as it does in memory.

        Args:
            asked: The event that has asked.
            text: One sentence for the peer. Without one the library has its own.
            no_room: The store works, and has no room for the record of `TaskToStore`: there are too
                many tasks, or it is too large. What is stored stays as it is.
            now: The caller's clock in seconds.

        Raises:
            LocalProtocolError: The question was answered before, or asks for no room.
        """
        self._tell_board(now).fail(asked, text, no_room=no_room)
        self._core.settle()

    def task_changed(self, record: TaskRecord, *, now: float | None = None) -> None:
        """Say that another process has stored this record: all who wait for the task are told."""
        self._tell_board(now).learn(record)
        self._core.settle()

    @property
    def open_tasks(self) -> tuple[Task, ...]:
        """The tasks that this side works on, oldest first."""
        tasks = self._machine.tasks
        return () if tasks is None else tuple(tasks.board.handles.values())

    @property
    def followed_tasks(self) -> tuple[str, ...]:
        """The ids of the tasks whose changes by other processes matter here.

        They are those that this side works on, and those for which the peer waits by `tasks/result`
        or a subscription. Where several processes share a store, see `task_changed`.
        """
        tasks = self._machine.tasks
        return () if tasks is None else tasks.board.followed

    def follows_task(self, task_id: str) -> bool:
        """Whether a task is among `followed_tasks`; this costs less."""
        tasks = self._machine.tasks
        return tasks is not None and tasks.board.follows(task_id)

    def close(self, *, now: float | None = None) -> None:
        """End the connection from this side; output that was queued before may still be written.

        Each open request of this side ends as lost, and each of the peer is cancelled;
        `ConnectionClosed` comes last. A server answers the open subscriptions of its client with a
        result, which is queued behind the output that waits: write the output before you close the
        transport. A result that does not fit into `Config.max_unsent_bytes` is not sent. A second
        call does nothing.

        Source: MCP 2026-07-28, basic/patterns/subscriptions.
        """
        self._machine.close(now=now)

    # ------------------------------------------------------------------------------- to the caller

    def next_event(self) -> Event | None:
        """Take the oldest event; None means that no event waits."""
        events = self._core.events
        if not events:
            return None
        event = events.take()
        if not events:
            self._core.known_events = False
        return event

    def messages_to_send(self) -> list[bytes]:
        """Take all queued messages in order, each a JSON text without framing."""
        cut = len(self._core.newline)
        return [message[: len(message) - cut] for message, _ in self._machine.take_output()]

    def data_to_send(self) -> bytes:
        """Take all queued output as one buffer; `b""` means that no output waits.

        A single message is not copied.
        """
        output = self._core.output
        if not output:
            return b""
        if len(output) == 1 and not self._machine.held and not self._machine.held_tasks:
            message = output[0][0]
            self._core.output = []
            self._core.unsent = 0
            self._core.known_output = False
            self._outgoing.handed_over = self._outgoing.sent
            return message
        return b"".join([message for message, _ in self._machine.take_output()])

    def buffers_to_send(self) -> list[bytes]:
        """Take all queued output as buffers for a vectored write; `[]` means that none waits."""
        return [message for message, _ in self._machine.take_output()]

    def next_timeout(self) -> float | None:
        """The time, on the caller's clock, to call `handle_timeout`; None: there is no deadline."""
        return self._core.timers.earliest()

    # ------------------------------------------------------------------------------------- looking

    @property
    def state(self) -> State:
        """The state: which directions of the connection still work."""
        return self._core.state

    @property
    def phase(self) -> Phase:
        """The phase: how far the opening of the conversation has come."""
        return self._core.conversation.phase

    @property
    def revision(self) -> str | None:
        """The agreed revision; None before it is agreed."""
        return self._core.peer.revision

    @property
    def peer(self) -> Peer:
        """The other side: its info, capabilities, revision and principal, as far as known."""
        return self._core.peer

    @property
    def pending_requests(self) -> tuple[OutgoingRequest, ...]:
        """The open requests that the application has sent, oldest first."""
        return self._outgoing.pending

    @property
    def open_requests(self) -> tuple[IncomingRequest, ...]:
        """The requests of the peer that the application has not answered yet, oldest first."""
        return self._machine.open_requests

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The URIs that the peer is subscribed to by `resources/subscribe`."""
        return ()

    @property
    def forgotten_answers(self) -> int:
        """The number of forgotten requests; a late response to them counts as unknown."""
        return self._outgoing.forgotten_answers

    @property
    def forgotten_ids(self) -> int:
        """The number of forgotten ranges of the peer's ids; a reuse of them is not noticed."""
        return self._incoming.forgotten_ids

    @property
    def unsent_bytes(self) -> int:
        """The size of the output that was not taken yet, in bytes."""
        return self._core.unsent

    @property
    def paused(self) -> bool:
        """Whether to stop reading until events were taken; input is accepted all the same."""
        return self._core.events.is_over(self._core.config)

    # ------------------------------------------------------------------------------------- helpers

    @property
    def _task_owner(self) -> TaskOwner:
        """The part that has the tasks; raises without `tasks`."""
        tasks = self._machine.tasks
        if tasks is None:
            raise no_tasks()
        return tasks

    def _tell_board(self, now: float | None) -> TaskBoard:
        """The board of the tasks, at the time `now`."""
        board = self._task_owner.board
        if now is not None:
            self._core.tell(now)
        return board

    def _receive_odd_line(self, line: Line | OverlongEnd) -> None:
        """Handle the first line, a blank or overlong line, or one that ends in white space."""
        if isinstance(line, OverlongLine):
            self._note_all(self._trimmer.strip_bom(line.head)[1])
            self._machine.receive_overlong(line.head)
            return
        if isinstance(line, OverlongEnd):
            self._machine.overlong_ended(line)
            return
        text, notes = self._trimmer.trim(line)
        self._note_all(notes)
        if text is not None:
            self._machine.receive(text)

    def _input_ended(self) -> None:
        """Handle the bytes after the last newline: a whole message, or a piece to report."""
        rest = self._lines.end()
        if rest is None or not self._machine.listens:
            return
        if isinstance(rest, OverlongEnd):
            self._cut_off_overlong(rest)
            return
        line, notes = self._trimmer.strip_bom(rest)
        self._note_all(notes)
        if is_blank(line):
            return
        try:
            self._core.decoder.decode(line)
        except (ValueError, RecursionError) as raised:
            text = f"{NO_NEWLINE}, and the last line is no whole message: {refusal(raised)}"
            breach = Breach("OWN-018", text, ErrorCode.PARSE_ERROR)
            self._incoming.refuse_unreadable(breach, None, excerpt=self._core.excerpt(line))
        else:
            self._core.report(
                Breach("OWN-018", NO_NEWLINE, tolerated=True), excerpt=self._core.excerpt(line)
            )
            self._receive_odd_line(line)

    def _cut_off_overlong(self, end: OverlongEnd) -> None:
        """Report a stream that has ended inside of a message over the limit (OWN-018)."""
        limit = self._core.config.max_message_bytes
        text = (
            f"the stream ended in a message of {end.size} bytes without a newline; "
            f"the limit of Config.max_message_bytes is {limit}"
        )
        self._core.report(Breach("OWN-018", text))
        if self._machine.overlong_ended(end):
            self._stream.cut_off = text

    def _note_all(self, notes: list[str]) -> None:
        for note in notes:
            self._machine.note(note)
