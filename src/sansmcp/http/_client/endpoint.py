"""The endpoint of a client: one conversation with one server over any number of exchanges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

from ..._connection.config import Config, config_of
from ..._connection.events import TaskQuestion, TasksWanted, TaskToStore, TaskWanted
from ..._connection.handles import (
    IncomingRequest,
    Listing,
    OutgoingRequest,
    Ping,
    Start,
    Subscription,
    Task,
    params_of,
    part_of,
)
from ..._connection.tasks.board import TaskBoard
from ..._connection.tasks.follower import TaskFollower
from ..._connection.tasks.owner import TaskOwner
from ..._connection.tasks.records import TaskRecord
from ..._connection.tasks.settings import Tasks
from ..._rules.conversation import Peer
from ..._rules.sending import no_tasks
from ..._rules.state_tables import Phase, State
from ..._spec.errors import LocalProtocolError
from ..._spec.registry import ALL_REVISIONS
from ..._wire.setting_checks import check_flag, check_function, check_kind, names_in
from ..._wire.values import MISSING, JSONObject, JSONValue, Missing, is_object
from .authorization import Authorization
from .core import ClientEndpointCore
from .events import ClientHTTPEvent
from .exchange import ClientExchange, ExchangeQueue
from .headers import RequestHeaders, digest_of, read_headers
from .response_judge import ResponseJudge
from .session import ClientSession
from .tool_headers import ToolHeaders
from .urls import read_url

if TYPE_CHECKING:
    from ..._connection.caching.cache import Cache, CachePartition


@final
class ClientEndpoint:
    """A client over HTTP: it gives out HTTP requests to make, and takes their responses.

    It is the unit of locking: use it and its exchanges in one thread at a time. No call waits.

    Args:
        url: The URL of the MCP endpoint, of `http` or `https`.
        info: The client's `Implementation` object: `name` and `version` at least.
        capabilities: What the client can do for the server.
        requires: Capabilities that the server must declare; without one of them `start` fails.
        revisions: The revisions to speak. With 2024-11-05 among them, servers of HTTP+SSE are
            recognised, too.
        headers: Headers of every request, such as `Authorization`: a mapping, or pairs. They go to
            the origin of `url` and to no other.
        authorize: Hold exchanges that are answered with 401, or 403 and a challenge, until
            `authorize()` or `give_up()` is called. Without it they end as refused.
        get_stream: Open the standalone stream, for messages that belong to no request, in the
            revisions that have one.
        config: Limits and policies.
        cache: As for `ClientConnection`. Endpoints with the same `url` share public results. Other
            `headers` are another authorization context; credentials that something else adds to the
            requests, such as cookies, are not seen: use one endpoint for one user.
        tasks: How tasks are followed and, in 2025-11-25, kept; None: the library takes no part in
            tasks. The tasks that this side keeps outlive a session that is lost.
        wake: Called when an exchange, an abort, an event or an earlier deadline appears where
            none was.

    Raises:
        ValueError: The URL or a header is unusable, a revision or a capability unknown, or `info`
            incomplete.
        LocalProtocolError: `info` or `capabilities` have no JSON form.
    """

    __slots__ = (
        "__weakref__",
        "_authorization",
        "_board",
        "_core",
        "_identity",
        "_queue",
        "_session",
        "_tool_headers",
    )

    def __init__(
        self,
        url: str,
        *,
        info: JSONObject,
        capabilities: JSONObject | None = None,
        requires: Iterable[str] = (),
        revisions: Sequence[str] = ALL_REVISIONS,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        authorize: bool = False,
        get_stream: bool = True,
        tasks: Tasks | None = None,
        config: Config | None = None,
        cache: Cache | CachePartition | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        config = config_of(config)
        check_flag("authorize", authorize)
        check_flag("get_stream", get_stream)
        check_function("wake", wake, optional=True)
        check_kind("tasks", tasks, Tasks, optional=True)
        core = ClientEndpointCore(read_url(url), config, wake)
        board = None if tasks is None else TaskBoard(tasks, core)
        given = read_headers(headers)
        identity = None
        if cache is not None:
            from ..._connection.caching.cache import identity_of  # few programs have a cache

            identity = identity_of(cache, core.url.text)
            identity.authorized_by(digest_of(given))
        queue = ExchangeQueue(core, RequestHeaders(given))
        tool_headers = ToolHeaders(core)
        authorization = Authorization(core, queue, holds=authorize)
        session = ClientSession(
            core,
            queue,
            tool_headers,
            authorization,
            info=info,
            capabilities=capabilities,
            revisions=revisions,
            requires=names_in("requires", requires),
            get_stream=get_stream,
            cache=identity,
            tasks=board,
        )
        queue.judge = ResponseJudge(core, queue, session, authorization)
        self._board = board
        self._core = core
        self._identity = identity
        self._queue = queue
        self._tool_headers = tool_headers
        self._authorization = authorization
        self._session = session

    def __repr__(self) -> str:  # neither its headers nor the query of its URL
        return f"<ClientEndpoint {self._core.url.authority} {self.state.name}>"

    # ------------------------------------------------------------------------- to the caller

    def next_exchange(self) -> ClientExchange | None:
        """Take the next HTTP request to make; None means that there is none now."""
        return self._queue.take()

    def aborts(self) -> list[ClientExchange]:
        """Return the exchanges that were aborted since the last call: close their connections.

        Exchanges that were never given out are not among them.
        """
        return self._queue.take_aborted()

    def next_event(self) -> ClientHTTPEvent | None:
        """Take the oldest event; None means that there is none now."""
        event: ClientHTTPEvent | None = self._core.next_event()
        return event

    def next_timeout(self) -> float | None:
        """When to call `handle_timeout`, on the caller's clock; None means never."""
        return self._core.timers.earliest()

    def handle_timeout(self, now: float) -> None:
        """Handle all deadlines up to `now`. A call before a deadline does nothing."""
        self._core.machine.handle_timeout(now)
        self._core.settle()

    # ------------------------------------------------------------------------------- looking

    @property
    def url(self) -> str:
        """The URL of the server. A permanent redirect changes it."""
        return self._core.url.text

    @property
    def exchanges(self) -> tuple[ClientExchange, ...]:
        """The exchanges that were given out and are not over, oldest first."""
        return self._queue.under_way

    @property
    def state(self) -> State:
        """What still works."""
        return self._core.machine.core.state

    @property
    def phase(self) -> Phase:
        """How far the opening has come."""
        return self._core.machine.core.conversation.phase

    @property
    def revision(self) -> str | None:
        """The agreed revision; None before there is one."""
        return self._core.machine.core.peer.revision

    @property
    def peer(self) -> Peer:
        """What is known of the server."""
        return self._core.machine.core.peer

    @property
    def pending_requests(self) -> tuple[OutgoingRequest, ...]:
        """The application's own requests that have not ended yet, oldest first."""
        return self._core.machine.outgoing.pending

    @property
    def open_requests(self) -> tuple[IncomingRequest, ...]:
        """The requests of the server that still wait for a response, oldest first."""
        return self._core.machine.open_requests

    @property
    def unsent_bytes(self) -> int:
        """Bytes of messages that wait in exchanges not yet given out."""
        return self._core.machine.core.unsent

    @property
    def paused(self) -> bool:
        """Advice to stop reading until events were taken. Nothing is refused because of it."""
        return self._core.events.is_over(self._core.config)

    # --------------------------------------------------------------------------------- opening

    def start(
        self,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        probe_timeout: float | None = None,
        hint: str | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> Start:
        """Open the conversation: as `ClientConnection.start`.

        Ends in one `Ready` or `ConnectionFailed`. A server that knows handshakes only is recognised
        by its answer to the probe, and a server of HTTP+SSE by its answer to `initialize`; each is
        then tried as such. A session that is lost is opened again (`SessionLost`) with the same
        `meta` and the same `timeout`.

        Source: MCP 2026-07-28, basic/transports/streamable-http, Backward Compatibility.
        """
        start = self._session.start(meta, timeout, probe_timeout, hint, data, now)
        self._core.settle()
        return start

    def reopen(self, *, now: float | None = None) -> Start:
        """Open a session again after a `SessionLost` that names no start.

        It has the `meta` and the `timeout` of the first `start`, and ends in one `Ready`, or in
        `ConnectionFailed`, after which `SessionLost` comes once more.

        Args:
            now: The caller's clock in seconds.

        Raises:
            LocalProtocolError: There is a session, or one is being opened; or the conversation has
                ended.
        """
        if not self._session.needs_reopening:
            raise LocalProtocolError("LIFE-001", "no session is lost that could be opened again")
        if now is not None:
            self._core.tell(now)
        start = self._session.reopen()
        self._core.settle()
        return start

    # --------------------------------------------------------------- requests and notifications

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
        task: bool | int = False,
        data: Any = None,
        now: float | None = None,
        request: IncomingRequest | None = None,
    ) -> OutgoingRequest:
        """Send a request to the server: as `ClientConnection.send_request`.

        Args:
            request: Has no effect, because each request has an exchange of its own.

        Raises:
            LocalProtocolError: As there; and where the method, or an integer that a header repeats,
                has no form in a header.
        """
        transport = self._session.transport
        if transport.core.conversation.dialect.is_modern:
            known = params if is_object(params) else {}
            transport.fields = self._tool_headers.fields_of(str(method), known)
        try:
            call = transport.machine.outgoing.send(
                method,
                params,
                meta,
                progress,
                timeout,
                max_timeout,
                log_level,
                id,
                None,
                data,
                now,
                task,
            )
        finally:
            transport.fields = None
        self._core.settle()
        return call

    def send_notification(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> None:
        """Send a notification to the server: as `ClientConnection.send_notification`."""
        transport = self._session.transport
        if transport.core.conversation.dialect.is_modern:
            transport.fields = self._tool_headers.fields_of(str(method), {})
        try:
            transport.machine.notifications.send(method, params, meta, None, now)
        finally:
            transport.fields = None
        self._core.settle()

    def send_paginated(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
        auto: bool = True,
        data: Any = None,
        now: float | None = None,
    ) -> Listing:
        """Fetch all pages of a list: as `ClientConnection.send_paginated`."""
        listing = self._core.machine.listings.start(
            method, params, meta, timeout, max_timeout, auto, None, data, now
        )
        self._core.settle()
        return listing

    def next_page(self, listing: Listing, *, now: float | None = None) -> bool:
        """Request the next page of a listing: as `ClientConnection.next_page`."""
        done = self._core.machine.listings.next_page(listing, now)
        self._core.settle()
        return done

    def ping(
        self,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> Ping:
        """Send a ping to the server: as `ClientConnection.ping`."""
        ping = self._core.machine.pings.send(meta, timeout, data, now)
        self._core.settle()
        return ping

    def cancel(
        self,
        call: OutgoingRequest | Listing | Ping | Start | Subscription,
        *,
        reason: str | None = None,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Cancel what is in flight: as `ClientConnection.cancel`.

        Its exchange is aborted. In 2026-07-28 that tells the server; in legacy revisions
        `notifications/cancelled` is sent as well.

        Source: MCP 2026-07-28, basic/transports/streamable-http, Cancellation.
        """
        done = self._core.machine.cancel(call, reason, meta, now)
        self._core.settle()
        return done

    def listen(
        self,
        notifications: JSONObject,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> Subscription:
        """Subscribe to changes: as `ClientConnection.listen`, on a stream of its own."""
        subscription = self._core.machine.subscriptions.listen(
            notifications, meta, timeout, data, now
        )
        self._core.settle()
        return subscription

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
        """Follow a task of the server: as `ClientConnection.resume_task`.

        A request that has become a task is lost with its session; resume the task in the next one.
        """
        call = self._follower.resume(task_id, method, timeout, max_timeout, data, now)
        self._core.settle()
        return call

    def leave_task(self, call: OutgoingRequest, *, now: float | None = None) -> bool:
        """Let a task go on, and do not follow it: as `ClientConnection.leave_task`."""
        done = self._follower.leave(call, now)
        self._core.settle()
        return done

    def provide_task_input(
        self,
        call: OutgoingRequest,
        responses: Mapping[str, JSONObject],
        *,
        now: float | None = None,
    ) -> bool:
        """Answer questions of a task: as `ClientConnection.provide_task_input`."""
        done = self._follower.provide(call, responses, now)
        self._core.settle()
        return done

    @property
    def _follower(self) -> TaskFollower:
        """The part that follows tasks; raises without `tasks`."""
        follower = self._core.machine.outgoing.follower
        if follower is None:
            raise no_tasks()
        return follower

    def provide_input(
        self,
        call: OutgoingRequest,
        responses: Mapping[str, JSONObject],
        *,
        meta: JSONObject | None = None,
        log_level: str | None = None,
        progress: bool = False,
        timeout: float | None = None,
        max_timeout: float | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> OutgoingRequest:
        """Send a request again with the answers: as `ClientConnection.provide_input`.

        The headers that repeat arguments of a tool are written again from the latest `tools/list`.
        """
        transport = self._session.transport
        if (encoded := params_of(call)) is not None:
            params: Any = self._core.config.codec.decode(encoded)
            transport.fields = self._tool_headers.fields_of(call.method, params)
        try:
            renewed = transport.machine.input_required.provide(
                call, responses, meta, log_level, progress, timeout, max_timeout, data, now
            )
        finally:
            transport.fields = None
        self._core.settle()
        return renewed

    # ------------------------------------------------------------------------------ answering

    def send_result(
        self,
        request: IncomingRequest,
        result: JSONObject,
        *,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Answer a request of the server with a result: as `ClientConnection.send_result`."""
        done = self._core.machine.incoming.send_result(request, result, meta, now)
        self._core.settle()
        return done

    def send_error(
        self,
        request: IncomingRequest,
        code: int,
        message: str,
        data: JSONValue | Missing = MISSING,
        *,
        now: float | None = None,
    ) -> bool:
        """Answer a request of the server with an error: as `ClientConnection.send_error`."""
        done = self._core.machine.incoming.send_error(request, code, message, data, now)
        self._core.settle()
        return done

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
        """Tell how far a request of the server has come: as `ClientConnection.send_progress`."""
        done = self._core.machine.incoming.send_progress(
            request, progress, total, message, meta, now
        )
        self._core.settle()
        return done

    # -------------------------------------------------------------------- tasks of the server

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
        """Answer a request of the server with a task: as `ClientConnection.create_task`."""
        self._board_at(now)
        owner = self._core.machine.tasks
        assert owner is not None  # each session has the part if there is a board
        task = owner.create(request, ttl_ms, poll_ms, message, keep, meta, at, None)
        self._core.settle()
        return task

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
        """Change what is said about a task: as `ClientConnection.update_task`."""
        owner = self._owner_of(task, now)
        return self._settled(owner.report(task, message, ttl_ms, poll_ms, keep, at, None))

    def complete_task(
        self,
        task: Task,
        result: JSONObject,
        *,
        meta: JSONObject | None = None,
        at: float | None = None,
        now: float | None = None,
    ) -> bool:
        """End a task with its result: as `ClientConnection.complete_task`."""
        return self._settled(self._owner_of(task, now).complete(task, result, meta, at, None))

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
        """End a task with an error: as `ClientConnection.fail_task`."""
        return self._settled(self._owner_of(task, now).fail(task, code, message, data, at, None))

    def cancel_task(
        self,
        task: Task,
        *,
        message: str | None = None,
        at: float | None = None,
        now: float | None = None,
    ) -> bool:
        """Cancel a task from this side: as `ClientConnection.cancel_task`."""
        return self._settled(self._owner_of(task, now).cancel(task, message, at, None))

    def adopt_task(
        self, record: TaskRecord, *, at: float | None = None, now: float | None = None
    ) -> Task:
        """Take over a task whose process has ended: as `ClientConnection.adopt_task`."""
        self._board_at(now)
        owner = self._core.machine.tasks
        assert owner is not None  # each session has the part if there is a board
        task = owner.adopt(record, at, None)
        self._core.settle()
        return task

    def provide_task(
        self, wanted: TaskWanted, record: TaskRecord | None, *, now: float | None = None
    ) -> None:
        """Give the record of a task: as `ClientConnection.provide_task`."""
        self._board_at(now).provide(wanted, record)
        self._core.settle()

    def provide_tasks(
        self, wanted: TasksWanted, records: list[TaskRecord], *, now: float | None = None
    ) -> None:
        """Give a page of tasks: as `ClientConnection.provide_tasks`."""
        self._board_at(now).provide_page(wanted, records)
        self._core.settle()

    def task_stored(
        self, asked: TaskToStore, stored: bool = True, *, now: float | None = None
    ) -> None:
        """Say what became of a record: as `ClientConnection.task_stored`."""
        self._board_at(now).stored(asked, stored)
        self._core.settle()

    def fail_task_lookup(
        self,
        asked: TaskQuestion,
        text: str | None = None,
        *,
        no_room: bool = False,
        now: float | None = None,
    ) -> None:
        """Say that the store has failed, or is full: as `ClientConnection.fail_task_lookup`."""
        self._board_at(now).fail(asked, text, no_room=no_room)
        self._core.settle()

    def task_changed(self, record: TaskRecord, *, now: float | None = None) -> None:
        """Say that another process has changed a task: as `ClientConnection.task_changed`."""
        self._board_at(now).learn(record)
        self._core.settle()

    @property
    def open_tasks(self) -> tuple[Task, ...]:
        """The tasks that this side works on, oldest first."""
        return () if self._board is None else tuple(self._board.handles.values())

    @property
    def followed_tasks(self) -> tuple[str, ...]:
        """The ids of the tasks whose changes by other processes matter: see `ClientConnection`."""
        return () if self._board is None else self._board.followed

    def follows_task(self, task_id: str) -> bool:
        """Whether a task is among `followed_tasks`; this costs less."""
        return self._board is not None and self._board.follows(task_id)

    # -------------------------------------------------------------------------- authorization

    def authorize(
        self,
        headers: Mapping[str, str] | Iterable[tuple[str, str]],
        *,
        now: float | None = None,
    ) -> int:
        """Replace the caller's headers, and send again what was held for want of credentials.

        What was refused and is sent again is not reported any more: events that say so, and were
        not taken, are withdrawn.

        Args:
            headers: As for `ClientEndpoint`. They are sent to its origin only.
            now: The caller's clock in seconds.

        Returns:
            How many messages and streams were held (`AuthorizationRequired.kept`).

        Raises:
            ValueError: As for `ClientEndpoint`.
        """
        read = read_headers(headers)
        if now is not None:
            self._core.tell(now)
        if self._identity is not None:
            self._identity.authorized_by(digest_of(read))
        count = self._authorization.supply(read)
        self._core.settle()
        return count

    def give_up(self, *, now: float | None = None) -> int:
        """End what is held for want of credentials as refused: there are none to supply.

        Returns:
            How many messages and streams were held.
        """
        if now is not None:
            self._core.tell(now)
        count = self._authorization.refuse_held()
        self._core.settle()
        return count

    # --------------------------------------------------------------------------------- ending

    def close(self, *, now: float | None = None) -> None:
        """End the conversation. Every open request ends; `ConnectionClosed` comes last.

        Exchanges under way are aborted, but for those that cancel tasks. If there is a session, one
        more exchange tells the server that it is over; nothing depends on its response. A second
        call does nothing.
        """
        self._core.machine.close(now=now)
        self._core.settle()

    # ------------------------------------------------------------------------------- helpers

    def _settled(self, outcome: bool) -> bool:
        self._core.settle()
        return outcome

    def _board_at(self, now: float | None) -> TaskBoard:
        """The board of the tasks that this side keeps, at the time `now`."""
        if now is not None:
            self._core.tell(now)
        if self._board is None:
            raise no_tasks()
        return self._board

    def _owner_of(self, task: Task, now: float | None) -> TaskOwner:
        """The part that has made a task."""
        board, part = self._board_at(now), part_of(task)
        if part.board is not board:
            raise LocalProtocolError("OWN-022", f"{task!r} belongs to another endpoint")
        return part
