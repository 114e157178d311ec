"""The request that a handler works on, on a loop with `async`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sansmcp import IncomingRequest, JSONObject

from .._common.call import CallBase
from .._common.requester import RequestArguments

if TYPE_CHECKING:
    from .._common.typed_requests import AsyncRequests as Requester
    from .requests import RequestSender
else:
    from .._common.requester import Requester


class Call(CallBase, Requester):
    """A request of the peer that a handler works on."""

    def __init__(self, session: RequestSender, request: IncomingRequest) -> None:
        # Not by way of the base class: there is one for each message.
        self._connection = session.side
        self._request = request
        self._clock = session.clock
        self._wake = session.wake
        self._session = session
        self.context: Any = session.context

    async def _send_request(self, arguments: RequestArguments) -> JSONObject:
        return await self._session.request(arguments, self._serving)

    @property
    def _serving(self) -> IncomingRequest | None:
        return self._request
