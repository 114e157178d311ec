"""The request that a handler works on, on a loop with `async`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sansmcp import IncomingRequest, JSONObject

from .._common.call import CallBase
from .._common.callbacks import ProgressHandler
from .._common.typed_requests import typed_request

if TYPE_CHECKING:
    from .requests import Asking


class Call(CallBase):
    """A request of the peer that a handler works on."""

    def __init__(self, session: Asking, request: IncomingRequest) -> None:
        # Not by way of the base class: there is one for each message.
        self._connection = session.side
        self._request = request
        self._clock = session.clock
        self._wake = session.wake
        self._session = session
        self.context: Any = session.context

    @typed_request
    async def request(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
        log_level: str | None = None,
        on_progress: ProgressHandler | None = None,
    ) -> JSONObject:
        """Ask the peer something on behalf of this call; as `Client.request`."""
        return await self._session.request(
            method, params, meta, timeout, max_timeout, log_level, on_progress, self._serving
        )

    @property
    def _serving(self) -> IncomingRequest | None:
        return self._request
