"""The public connection of a client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

from .._rules.sending import no_tasks
from .._spec.registry import ALL_REVISIONS
from .._wire.values import JSONObject, Side
from .config import Config
from .connection import ByteStreamTransport
from .core import Core
from .handles import OutgoingRequest, Start, Subscription
from .machine import ClientMachine
from .tasks.board import TaskBoard
from .tasks.settings import Tasks

if TYPE_CHECKING:
    from .caching.cache import Cache, CachePartition

if TYPE_CHECKING:  # the same class, with one overload of `send_request` per method
    from .typed_requests import ClientRequests as Connection
else:
    from .connection import Connection


@final
class ClientConnection(Connection):
    """A client on a byte stream: bytes, messages and the time go in; events and bytes come out.

    Args:
        info: The client's `Implementation` object: `name` and `version` at least.
        capabilities: The capabilities that the client declares (`roots`, `sampling`,
            `elicitation`).
        revisions: The revisions to speak; the client offers the newest.
        requires: Capabilities that the server must declare, as dotted paths (`"tools"`,
            `"resources.subscribe"`). If one is missing, `start` fails.
        tasks: How tasks of the server are followed, and in 2025-11-25 how those of this side are
            kept; None: the library takes no part in tasks.
        config: Limits and policies.
        cache: Keeps results for as long as the server allows, in 2026-07-28, and answers requests
            with them. It needs the clock of the caller: give `now` to the methods. None: no result
            is kept.
        wake: A function without parameters. It is called once when there was no output and now
            there is, when there was no event and now there is, or when `next_timeout` has become
            earlier. The call comes at the end of the method that caused it, never from within
            `wake` itself.

    Raises:
        ValueError: A revision or a required capability is unknown, or `info` is incomplete; or
            `cache` is no cache.
        LocalProtocolError: `info` or `capabilities` have no JSON form.
    """

    __slots__ = ("_client",)

    def __init__(
        self,
        *,
        info: JSONObject,
        capabilities: JSONObject | None = None,
        revisions: Sequence[str] = ALL_REVISIONS,
        requires: Iterable[str] = (),
        tasks: Tasks | None = None,
        config: Config | None = None,
        cache: Cache | CachePartition | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        identity = None
        if cache is not None:
            from .caching.cache import identity_of  # few programs have a cache

            identity = identity_of(cache)
        stream = ByteStreamTransport()
        core = Core(
            Side.CLIENT,
            stream,
            info=info,
            capabilities=capabilities,
            revisions=revisions,
            config=config,
            wake=wake,
            newline=b"\n",
            timers=None,
            tasks=tasks,
        )
        board = None if tasks is None else TaskBoard(tasks, core)
        machine = ClientMachine(core, requires, identity, board)
        self._assemble(machine, stream)
        self._client = machine

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
        """Open the conversation; it ends in one event, `Ready` or `ConnectionFailed`.

        If `revisions` has 2026-07-28 and older ones, the client first sends `server/discover`; to a
        server that does not know this method it then sends `initialize`. With 2026-07-28 alone
        there is no `initialize`; without 2026-07-28 there is no `server/discover`.

        Args:
            meta: The `params._meta` of `server/discover` and `initialize`.
            timeout: Seconds to wait for the ending. `initialize` cannot be cancelled: after this
                time the connection ends.
            probe_timeout: Seconds to wait for the response to `server/discover`. After this time
                the client sends `initialize`.
            hint: The revision that this server spoke last time (`Ready.revision`). With an older
                one the client sends `initialize` at once; with 2026-07-28 `probe_timeout` is
                ignored.
            data: Any object of the application; it becomes `Start.data`.
            now: The caller's clock in seconds. Needed with a timeout or with keep-alive, if no
                time was given before.

        Raises:
            LocalProtocolError: `start` was called before, the connection is closed, or a timeout
                has no clock.

        Source: MCP 2025-11-25, basic/lifecycle, Initialization; 2026-07-28,
        basic/transports/stdio, Backward Compatibility.
        """
        return self._client.discovery.start(meta, timeout, probe_timeout, hint, data, now)

    def listen(
        self,
        notifications: JSONObject,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> Subscription:
        """Subscribe to changes with `subscriptions/listen` (revision 2026-07-28 only).

        The events are `SubscriptionAcknowledged`, then `NotificationReceived` for each change, and
        at the end one `SubscriptionEnded`.

        Args:
            notifications: The `SubscriptionFilter`: `toolsListChanged`, `promptsListChanged`,
                `resourcesListChanged` (booleans), `resourceSubscriptions` (a list of URIs).
            meta: The request's `params._meta`.
            timeout: Seconds to wait for the acknowledgement of the server.
            data: Any object of the application; it becomes `Subscription.data`.
            now: The caller's clock in seconds. Needed with a timeout, if no time was given before.

        Raises:
            LocalProtocolError: The state, the revision, a limit or the filter forbids the request.

        Source: MCP 2026-07-28, basic/patterns/subscriptions.
        """
        return self._client.subscriptions.listen(notifications, meta, timeout, data, now)

    def provide_task_input(
        self,
        call: OutgoingRequest,
        responses: Mapping[str, JSONObject],
        *,
        now: float | None = None,
    ) -> bool:
        """Answer questions of the task that a request has become (2026-07-28).

        Args:
            call: The handle in `TaskInputRequired`.
            responses: By key, the result object for each question; any of those that wait.
            now: The caller's clock in seconds.

        Returns:
            Whether the answers were sent. False: the request has ended.

        Raises:
            LocalProtocolError: A key is not asked or was answered, an answer has the wrong shape,
                or the request is no task of this connection.
        """
        follower = self._outgoing.follower
        if follower is None:
            raise no_tasks()
        return follower.provide(call, responses, now)

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
        """Send a request again, with the answers to the questions of the server.

        The new request has the method and params of the original, the server's `requestState`
        unchanged, and a new id.

        Args:
            call: The handle in `InputRequired`.
            responses: For each key of `InputRequired.questions`, the result object.
            meta: Members of `params._meta` for this round; they replace those of the round before.
            log_level: As for `send_request`; None keeps the level of the round before.
            progress: As for `send_request`.
            timeout: As for `send_request`, for this round.
            max_timeout: As for `send_request`, for this round.
            data: Any object of the application; it becomes `OutgoingRequest.data`.
            now: The caller's clock in seconds.

        Returns:
            The handle of the new request, which gets its own ending.

        Raises:
            LocalProtocolError: The server has asked nothing about this request, it was sent again
                before, an answer is missing or has the wrong shape, or the connection is not open.

        Source: MCP 2026-07-28, basic/patterns/mrtr.
        """
        return self._client.input_required.provide(
            call, responses, meta, log_level, progress, timeout, max_timeout, data, now
        )
