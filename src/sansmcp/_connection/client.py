"""The client's face of a connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

from .._spec.registry import ALL_REVISIONS
from .._wire.values import JSONObject, Side
from .config import Config
from .connection import ByteStream
from .core import Core
from .handles import OutgoingRequest, Start, Subscription
from .machine import ClientMachine

if TYPE_CHECKING:  # the same, with overloads of `send_request` over method names
    from .typed_requests import ClientRequests as Connection
else:
    from .connection import Connection


@final
class ClientConnection(Connection):
    """A client on a byte stream: bytes, messages and the time go in; events and bytes come out.

    Args:
        info: The client's `Implementation` object: `name` and `version` at least.
        capabilities: What the client can do for the server (`roots`, `sampling`, `elicitation`).
        revisions: The revisions to speak; the newest is offered.
        requires: Capabilities that the server must declare, as dotted paths (`"tools"`,
            `"resources.subscribe"`); without one of them `start` fails.
        config: Limits and policies.
        wake: Called once when output, an event or an earlier deadline appears where none was;
            never within itself, and after the verb that caused it has done its work.

    Raises:
        ValueError: A revision or a required capability is unknown, or `info` is incomplete.
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
        config: Config | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        stream = ByteStream()
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
        )
        machine = ClientMachine(core, requires)
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
        """Open the conversation. Ends in one `Ready` or `ConnectionFailed`.

        With revisions of both eras the server is asked with `server/discover` first; one that
        does not know it gets `initialize`. With 2026-07-28 alone there is no second try, and
        without it no first one.

        Args:
            meta: The `params._meta` of the requests that this takes.
            timeout: Seconds to wait for the end. `initialize` cannot be cancelled: when the
                time is over, the connection ends.
            probe_timeout: Seconds after which a server that does not answer `server/discover`
                is taken for one that does not know it.
            hint: The revision of `Ready` when this server was last opened: of an era with a
                handshake, it is not probed; of the other, it has all the time to answer.
            data: Anything; it becomes `Start.data`.
            now: The caller's clock in seconds. Needed with a timeout or with keep-alive, if
                never told before.

        Raises:
            LocalProtocolError: Started before, closed, or there is no clock.

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
        """Subscribe to changes: `SubscriptionAcknowledged`, then `NotificationReceived` for each.

        Ends in one `SubscriptionEnded`. Only revision 2026-07-28 has it.

        Args:
            notifications: The `SubscriptionFilter`: `toolsListChanged`, `promptsListChanged`,
                `resourcesListChanged` (booleans), `resourceSubscriptions` (a list of URIs).
            meta: The request's `params._meta`.
            timeout: Seconds that the server has to acknowledge it.
            data: Anything; it becomes `Subscription.data`.
            now: The caller's clock in seconds. Needed with a timeout, if never told before.

        Raises:
            LocalProtocolError: The state, the revision, a limit or the filter forbids it.

        Source: MCP 2026-07-28, basic/patterns/subscriptions.
        """
        return self._client.subscriptions.listen(notifications, meta, timeout, data, now)

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
        """Send a request again with the answers to what the server has asked.

        Method and params are those of the original, the state that the server gave goes back
        untouched, and the id is a new one.

        Args:
            call: The handle out of `InputRequired`.
            responses: The result of each question, by the server's key.
            meta: Members of `params._meta` for this round, over those of the round before.
            log_level: As for `send_request`; None keeps that of the round before.
            progress: As for `send_request`.
            timeout: As for `send_request`, for this round.
            max_timeout: The same.
            data: Anything; it becomes `OutgoingRequest.data`.
            now: The caller's clock in seconds.

        Returns:
            The handle of the new round, with an ending of its own.

        Raises:
            LocalProtocolError: Nothing was asked about this call, it was gone on with before, an
                answer is missing or has the wrong shape, or the connection is not open.

        Source: MCP 2026-07-28, basic/patterns/mrtr.
        """
        return self._client.input_required.provide(
            call, responses, meta, log_level, progress, timeout, max_timeout, data, now
        )
