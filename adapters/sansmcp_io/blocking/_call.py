"""The request that a handler works on, on a connection that threads share."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from sansmcp import IncomingRequest, JSONObject

from .._common.call import CallBase
from .._common.requester import RequestArguments

if TYPE_CHECKING:
    from .._common.typed_requests import BlockingRequests as Requester
    from ._requests import RequestSender
else:
    from .._common.requester import Requester


class Call(CallBase, Requester):
    """A request of the peer that a handler works on."""

    def __init__(self, session: RequestSender, request: IncomingRequest) -> None:
        self._connection = session.side
        self._request = request
        self._clock = time.monotonic
        self._wake = session.turn
        self._session = session
        self.context: Any = session.context

    def _send_request(self, arguments: RequestArguments) -> JSONObject:
        return self._session.request(arguments, self._serving)

    @property
    def _lock(self) -> AbstractContextManager[object]:
        return self._session

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for the answer any more: a handler that takes long may look.

        It takes in what has come, if no other thread does so. Never blocks.
        """
        with self._session:
            self._session.look()
            return not self._request.open

    def sleep(self, seconds: float) -> None:
        """Wait, and serve and read meanwhile: what `time.sleep` does, for handlers.

        Raises:
            CallCancelled: The peer has cancelled the call, before or meanwhile.
        """
        self._session.sleep(self._request, seconds)

    def progress(
        self, progress: float, *, total: float | None = None, message: str | None = None
    ) -> bool:
        """Tell the peer how far this has come, and look whether it has cancelled the call.

        Never blocks.

        Returns:
            Whether it will be sent: not if the peer asked for no progress, or the call is over.

        Raises:
            LocalProtocolError: `progress` does not increase, or a number is not finite.
        """
        with self._session:
            self._session.look()
            return super().progress(progress, total=total, message=message)

    @property
    def _serving(self) -> IncomingRequest | None:
        return self._request
