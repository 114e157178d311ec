"""The client's face of a connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, final

from ._config import Config
from ._handles import Start
from ._registry import ALL_REVISIONS
from ._values import JSONObject, Side

if TYPE_CHECKING:  # the same, with overloads of `send_request` over method names
    from ._typed_requests import ClientRequests as Connection
else:
    from ._connection import Connection


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

    __slots__ = ()

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
        super().__init__(
            Side.CLIENT,
            info=info,
            capabilities=capabilities,
            revisions=revisions,
            requires=requires,
            instructions=None,
            config=config,
            wake=wake,
        )

    def start(
        self,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> Start:
        """Open the conversation: queue `initialize`. Ends in one `Ready` or `ConnectionFailed`.

        Args:
            meta: The request's `params._meta`.
            timeout: Seconds to wait for the answer. `initialize` cannot be cancelled: when the
                time is over, the connection ends.
            data: Anything; it becomes `Start.data`.
            now: The caller's clock in seconds. Needed with a timeout or with keep-alive, if
                never told before.

        Raises:
            LocalProtocolError: Started before, closed, or there is no clock.

        Source: MCP 2025-11-25, basic/lifecycle, Initialization.
        """
        return self._start(meta, timeout, data, now)
