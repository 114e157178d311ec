"""Streams that a GET opens, and the standalone stream, for messages that belong to no request.

Source: MCP 2025-11-25, basic/transports, Listening for Messages from the Server.
"""

from __future__ import annotations

from typing import Final

import attrs

from .._sse import OverlongEvent, ServerSentEvent
from .events import StreamUnavailable
from .exchange import ClientExchangeCore, ExchangeOwner, ExchangePurpose
from .response_head import Head
from .responses import ReceivedResponses
from .retries import StreamRetries

JSON: Final = "application/json"
SSE: Final = "text/event-stream"
_TRY_AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})


def opens_stream(
    owner: ExchangeOwner,
    retries: StreamRetries,
    exchange: ClientExchangeCore,
    head: Head,
    text: str,
) -> bool:
    """Begin to read a stream that a GET has opened, or arrange for the next attempt.

    Args:
        owner: The message or stream that is resumed or opened.
        retries: When the stream is resumed.
        exchange: The GET.
        head: The head of the response.
        text: What happened, for the text of the failure after the last attempt.

    Returns:
        False: the response opens no stream, and there is no reason to try again.
    """
    if head.status == 200 and head.media_type == SSE:
        owner.redirects = owner.challenged = 0
        retries.opened()
        exchange.read_stream()
        return True
    if head.status in _TRY_AGAIN:
        retries.failed(owner, text, head.retry_after)
        return True
    return False


@attrs.define(eq=False, repr=False)
class StandaloneStream(ExchangeOwner):
    """The stream for messages that belong to no request, in a legacy revision."""

    _responses: ReceivedResponses
    _retries: StreamRetries = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.retries = self._retries = StreamRetries(self.queue.core)

    def head(self, exchange: ClientExchangeCore, head: Head) -> None:
        text = f"the server answered GET with status {head.status}"
        if opens_stream(self, self._retries, exchange, head, text):
            return
        if head.status == 405:
            self.over = True  # the server has no such stream, which is no breach
            return
        if exchange.purpose is ExchangePurpose.RESUME and not head.is_good:
            self._retries.last_event_id = ""  # the messages in between are gone, the next are not
            self.send()
            return
        if head.is_good:
            text += f" and the form {head.media_type[:80]!r}"
        self._unavailable(head.status, text)
        if head.is_good:
            exchange.abort()

    def resumes(self, exchange: ClientExchangeCore) -> bool:
        return not self.over

    def event(self, exchange: ClientExchangeCore, item: ServerSentEvent | OverlongEvent) -> None:
        self._responses.receive_event(item, is_standalone=True)

    def broken(self, exchange: ClientExchangeCore, text: str) -> None:
        head = exchange.head
        if head is None or not head.is_good:
            self._retries.failed(self, text)
        else:
            self._retries.after_end(self, text)

    def fail_with_status(self, status: int, text: str) -> None:
        self._unavailable(status, text)

    def lost(self, text: str) -> None:
        self._unavailable(None, text)

    def _unavailable(self, status: int | None, text: str) -> None:
        self.over = True
        self.queue.core.events.append(StreamUnavailable(status=status, text=text))
