"""The server's face of a connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, final

from .._spec.registry import ALL_REVISIONS
from .._wire.values import JSONObject, JSONValue, Side
from .changes import Change
from .config import Config, config_of
from .connection import ByteStream
from .core import Core
from .handles import IncomingRequest, Listener
from .machine import ServerMachine
from .request_state import check_principal_key

if TYPE_CHECKING:  # the same, with overloads of `send_request` over method names
    from .typed_requests import ServerRequests as Connection
else:
    from .connection import Connection


@final
class ServerConnection(Connection):
    """A server on a byte stream: bytes, messages and the time go in; events and bytes come out.

    Args:
        info: The server's `Implementation` object: `name` and `version` at least.
        capabilities: What the server offers (`tools`, `resources`, `prompts`, `logging`, ...).
            Methods of what is not declared are refused with -32601.
        instructions: How to use the server, for the model on the other side.
        revisions: The revisions to speak.
        principal: Who the client is, as the transport has found out; None where it has not.
        principal_key: A string that stands for the principal and for nobody else, such as an
            account's id: sealed states are bound to it.
        config: Limits and policies.
        wake: As for `ClientConnection`.

    Raises:
        ValueError: A revision is unknown, or `info` is incomplete.
        LocalProtocolError: `info`, `capabilities` or `instructions` have no JSON form, or there
            are a principal and `Config.state_keys`, and no `principal_key`.
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
        config: Config | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        config = config_of(config)
        check_principal_key(principal, principal_key, config)
        stream = ByteStream()
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
        )
        core.peer.principal, core.peer.principal_key = principal, principal_key
        machine = ServerMachine(core, instructions)
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
            data: What to log, any JSON value. It must hold no credentials.
            logger: The name of the logger.
            meta: The notification's `_meta`.
            request: The request that it belongs to.
            now: The caller's clock in seconds.

        Returns:
            Whether it was queued. False: below the client's level, nothing is agreed yet, the
            request is over, or too much output waits already.

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
        """Ask the client before a request of its can be answered.

        The handle is spent. When the client has the answers, the request comes again as
        `RequestReceived` with a new handle: see `IncomingRequest.input_responses` and
        `read_state`. A client of an older revision is asked with requests of the server, and its
        request stays open meanwhile.

        Args:
            request: A `tools/call`, `prompts/get` or `resources/read`.
            questions: By keys of your choice, objects with `method` (`elicitation/create`,
                `sampling/createMessage` or `roots/list`) and `params`.
            state: What comes back with the answers. It goes through the hands of the client.
            meta: Merged into `result._meta`; a client of an older revision gets no result, and
                so does not see it.
            timeout: Seconds that a client of an older revision has for each answer.
            at: The time in Unix seconds; needed where `Config.state_keys` seal the state.
            now: The caller's clock in seconds.

        Returns:
            Whether it was queued, as for `send_result`.

        Raises:
            LocalProtocolError: Neither questions nor a state were given, this method may not
                ask, the client has not declared the capability, a question has not the right
                shape, or the limit of rounds is reached. The request stays open.

        Source: MCP 2026-07-28, basic/patterns/mrtr.
        """
        return self._server.input_required.require(
            request, questions or {}, state, meta, timeout, at, now
        )

    def read_state(
        self, request: IncomingRequest, *, at: float | None = None, now: float | None = None
    ) -> str | None:
        """The state that `require_input` was given in the round before, or None.

        Where `Config.state_keys` are set, its seal is checked: a bad one gets the request
        answered with an error that does not say why, and is reported as `ProtocolViolation`, which
        does. Where the time was told with the input (`receive_data(..., at=...)`), that was done
        before the request was delivered.

        Args:
            request: The handle from `RequestReceived`.
            at: The time in Unix seconds; needed where `Config.state_keys` are set and the time was
                not told with the input.
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
        """Take a subscription that `Config.manual` has handed over.

        Args:
            request: The `subscriptions/listen` from `RequestReceived`.
            notifications: The part of the filter to serve; None: all that is declared.
            now: The caller's clock in seconds.

        Returns:
            The listener; None if the request is over.

        Raises:
            LocalProtocolError: It waits for no acknowledgement, or the filter is not valid.
        """
        return self._server.listeners.acknowledge(request, notifications, now)

    def end_listener(self, listener: Listener, *, now: float | None = None) -> bool:
        """End a subscription of the client: its request is answered with a result.

        Returns:
            Whether it was open until now.

        Source: MCP 2026-07-28, basic/patterns/subscriptions.
        """
        return self._server.listeners.end_listener(listener, now)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The client's open subscriptions of revision 2026-07-28, oldest first."""
        return self._server.listeners.open

    def publish(
        self, change: Change, *, meta: JSONObject | None = None, now: float | None = None
    ) -> bool:
        """Tell the client that a list or a resource has changed, if it is to be told.

        List changes go out where `listChanged` is declared; `ResourceUpdated` where the client is
        subscribed to exactly that URI; in 2026-07-28 both go to each matching subscription. While
        more output waits than `Config.soft_unsent_bytes`, changes are held back, each once, and
        follow when the output was taken.

        Args:
            change: What has changed.
            meta: The notification's `_meta`.
            now: The caller's clock in seconds.

        Returns:
            Whether the client is, or will be, told.

        Source: MCP 2025-11-25, server/resources, Subscriptions; schema,
        ResourceUpdatedNotification.
        """
        return self._server.publisher.publish(change, meta, now)

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The URIs that the client is subscribed to by `resources/subscribe`."""
        return tuple(self._server.resource_subscriptions.uris)
