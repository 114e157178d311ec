"""The public connection of a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, final

from .._spec.registry import ALL_REVISIONS
from .._wire.values import JSONObject, JSONValue, Side
from .config import Config, config_of
from .connection import ByteStreamTransport
from .core import Core
from .handles import IncomingRequest, Listener, Task
from .input_required.request_state import check_principal_key
from .machine import ServerMachine
from .subscriptions.changes import Change
from .tasks.board import TaskBoard
from .tasks.settings import Tasks

if TYPE_CHECKING:  # the same class, with one overload of `send_request` per method
    from .typed_requests import ServerRequests as Connection
else:
    from .connection import Connection


@final
class ServerConnection(Connection):
    """A server on a byte stream: bytes, messages and the time go in; events and bytes come out.

    Args:
        info: The server's `Implementation` object: `name` and `version` at least.
        capabilities: The capabilities that the server declares (`tools`, `resources`, `prompts`,
            `logging`, ...). Methods of other capabilities are refused with -32601.
        instructions: A text for the client's model on how to use the server.
        revisions: The revisions to speak.
        principal: The authenticated client, as the transport knows it; None if unknown.
        principal_key: A string that identifies the principal, such as the id of an account. No two
            principals may have the same. Sealed states are bound to it.
        tasks: How tasks are kept; both forms are declared then. None: the library takes no part in
            tasks.
        config: Limits and policies.
        wake: As for `ClientConnection`.

    Raises:
        ValueError: A revision is unknown, or `info` is incomplete.
        LocalProtocolError: `info`, `capabilities` or `instructions` have no JSON form; or there is
            a `principal` without `principal_key` while `Config.state_keys` are set.
    """

    __slots__ = ("_server",)

    def __init__(
        self,
        *,
        info: JSONObject,
        capabilities: JSONObject | None = None,
        instructions: str | None = None,
        revisions: Sequence[str] = ALL_REVISIONS,
        principal: object = None,
        principal_key: str | None = None,
        tasks: Tasks | None = None,
        config: Config | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        config = config_of(config)
        check_principal_key(principal, principal_key, config)
        stream = ByteStreamTransport()
        core = Core(
            Side.SERVER,
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
        core.peer.principal, core.peer.principal_key = principal, principal_key
        machine = ServerMachine(core, instructions, board)
        self._assemble(machine, stream)
        self._server = machine

    def send_log(
        self,
        level: str,
        data: JSONValue,
        *,
        logger: str | None = None,
        meta: JSONObject | None = None,
        request: IncomingRequest | None = None,
        now: float | None = None,
    ) -> bool:
        """Send a log message to the client.

        Args:
            level: One of `LOG_LEVELS`.
            data: The value to log, any JSON value. It must hold no credentials.
            logger: The name of the logger.
            meta: The notification's `_meta`.
            request: The request that the message belongs to.
            now: The caller's clock in seconds.

        Returns:
            Whether the message was queued. False: its level is below that of the client, no
            revision is agreed yet, the request has ended, or too much output waits.

        Raises:
            LocalProtocolError: The level is unknown, or `logging` is not among the capabilities.

        Source: MCP 2025-11-25, server/utilities/logging.
        """
        return self._notifications.send_log(level, data, logger, meta, request, now)

    def require_input(
        self,
        request: IncomingRequest,
        questions: Mapping[str, JSONObject] | None = None,
        *,
        state: str | None = None,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        at: float | None = None,
        now: float | None = None,
    ) -> bool:
        """Ask the client questions before its request is answered.

        The handle `request` ends with this call. When the client has answered, `RequestReceived`
        brings the request again with a new handle: see `IncomingRequest.input_responses` and
        `read_state`. A client of an older revision gets the questions as requests of the server,
        and its own request stays open meanwhile.

        Args:
            request: A `tools/call`, `prompts/get` or `resources/read`.
            questions: The questions by keys of your choice: objects with `method`
                (`elicitation/create`, `sampling/createMessage` or `roots/list`) and `params`.
            state: A string that comes back with the answers. The client keeps it meanwhile.
            meta: Merged into `result._meta`. A client of an older revision gets no such result.
            timeout: Seconds that a client of an older revision has for each answer.
            at: The time in Unix seconds; needed if `Config.state_keys` seal the state.
            now: The caller's clock in seconds.

        Returns:
            Whether the questions were queued, as for `send_result`.

        Raises:
            LocalProtocolError: There are neither questions nor a state, the method cannot be
                answered with questions, the client has not declared a capability, a question is
                malformed, or the limit of rounds is reached. The request stays open.

        Source: MCP 2026-07-28, basic/patterns/mrtr.
        """
        return self._server.input_required.require(
            request, questions or {}, state, meta, timeout, at, now
        )

    def require_task_input(
        self,
        task: Task,
        questions: Mapping[str, JSONObject],
        *,
        at: float | None = None,
        now: float | None = None,
    ) -> bool:
        """Ask the client questions about its task; the answers come as `TaskInputReceived`.

        In 2026-07-28 the client finds the questions when it polls. In 2025-11-25 each is sent as a
        request of the server that names the task; if no stream reaches the client, it waits until
        the client calls `tasks/result`.

        Args:
            task: The handle from `create_task`.
            questions: The questions by keys of your choice, as for `require_input`. A key is used
                once in the life of a task.
            at: The time in Unix seconds.
            now: The caller's clock in seconds.

        Returns:
            Whether the task is open. False: it has ended, and nothing is asked.

        Raises:
            LocalProtocolError: There are no questions, a key was used before, the client has not
                declared a capability, or a question is malformed.
        """
        return self._task_owner.ask(task, questions, at, now)

    def read_state(
        self, request: IncomingRequest, *, at: float | None = None, now: float | None = None
    ) -> str | None:
        """The `state` of the last `require_input` about this request, or None.

        If `Config.state_keys` are set, the seal of the state is checked. After a bad seal the
        request is answered with an error without the cause, and `ProtocolViolation` reports the
        cause. If the time was given with the input (`receive_data(..., at=...)`), the check was
        done before the request was delivered.

        Args:
            request: The handle from `RequestReceived`.
            at: The time in Unix seconds; needed if `Config.state_keys` are set and the time was
                not given with the input.
            now: The caller's clock in seconds.

        Raises:
            LocalProtocolError: The time is missing.

        Source: MCP 2026-07-28, basic/patterns/mrtr, Security Considerations.
        """
        return self._server.input_required.read_state(request, at, now)

    def acknowledge(
        self,
        request: IncomingRequest,
        notifications: JSONObject | None = None,
        *,
        now: float | None = None,
    ) -> Listener | None:
        """Accept a `subscriptions/listen` that `Config.manual` leaves to the application.

        Args:
            request: The `subscriptions/listen` from `RequestReceived`.
            notifications: The part of the filter to serve; None: all of it for which the server
                has declared the capabilities.
            now: The caller's clock in seconds.

        Returns:
            The listener; None if the request has ended.

        Raises:
            LocalProtocolError: The request waits for no acknowledgement, or the filter is not
                valid.
        """
        return self._server.listeners.acknowledge(request, notifications, now)

    def end_listener(self, listener: Listener, *, now: float | None = None) -> bool:
        """End a subscription of the client: answer its request with a result.

        Returns:
            Whether the subscription was open until now.

        Source: MCP 2026-07-28, basic/patterns/subscriptions.
        """
        return self._server.listeners.end_listener(listener, now)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The open subscriptions of the client (revision 2026-07-28), oldest first."""
        return self._server.listeners.open

    def publish(
        self, change: Change, *, meta: JSONObject | None = None, now: float | None = None
    ) -> bool:
        """Send a change of a list or a resource to the client, if the client wants it.

        A change of a list is sent if `listChanged` is declared, and `ResourceUpdated` if the client
        is subscribed to exactly that URI. In 2026-07-28 each matching subscription gets the change.
        While more output waits than `Config.soft_unsent_bytes`, each different change is held back
        once; it is sent after the output was taken.

        Args:
            change: The change.
            meta: The notification's `_meta`.
            now: The caller's clock in seconds.

        Returns:
            Whether the notification was queued or held back.

        Source: MCP 2025-11-25, server/resources, Subscriptions; schema,
        ResourceUpdatedNotification.
        """
        return self._server.publisher.publish(change, meta, now)

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The URIs that the client is subscribed to by `resources/subscribe`."""
        return tuple(self._server.resource_subscriptions.uris)
