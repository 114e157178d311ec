"""The server's face of a connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, final

from ._changes import Change
from ._config import Config
from ._handles import IncomingRequest
from ._registry import ALL_REVISIONS
from ._values import JSONObject, JSONValue, Side

if TYPE_CHECKING:  # the same, with overloads of `send_request` over method names
    from ._typed_requests import ServerRequests as Connection
else:
    from ._connection import Connection


@final
class ServerConnection(Connection):
    """A server on a byte stream: bytes, messages and the time go in; events and bytes come out.

    Args:
        info: The server's `Implementation` object: `name` and `version` at least.
        capabilities: What the server offers (`tools`, `resources`, `prompts`, `logging`, ...).
            Methods of what is not declared are refused with -32601.
        instructions: How to use the server, for the model on the other side.
        revisions: The revisions to speak.
        config: Limits and policies.
        wake: As for `ClientConnection`.

    Raises:
        ValueError: A revision is unknown, or `info` is incomplete.
        LocalProtocolError: `info`, `capabilities` or `instructions` have no JSON form.
    """

    __slots__ = ()

    def __init__(
        self,
        *,
        info: JSONObject,
        capabilities: JSONObject | None = None,
        instructions: str | None = None,
        revisions: Sequence[str] = ALL_REVISIONS,
        config: Config | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(
            Side.SERVER,
            info=info,
            capabilities=capabilities,
            revisions=revisions,
            requires=(),
            instructions=instructions,
            config=config,
            wake=wake,
        )

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
        return self._send_log(level, data, logger, meta, request, now)

    def publish(
        self, change: Change, *, meta: JSONObject | None = None, now: float | None = None
    ) -> bool:
        """Tell the client that a list or a resource has changed, if it is to be told.

        List changes go out where `listChanged` is declared; `ResourceUpdated` where the client is
        subscribed to exactly that URI. While more output waits than `Config.soft_unsent_bytes`,
        changes are held back, each once, and follow when the output was taken.

        Args:
            change: What has changed.
            meta: The notification's `_meta`.
            now: The caller's clock in seconds.

        Returns:
            Whether the client is, or will be, told.

        Source: MCP 2025-11-25, server/resources, Subscriptions; schema,
        ResourceUpdatedNotification.
        """
        return self._publish(change, meta, now)
