"""Streams that a client asks for by GET, for what belongs to no request of its own.

Source: MCP 2025-11-25, basic/transports, Listening for Messages from the Server and Backwards
Compatibility; MCP 2024-11-05, basic/transports, HTTP with SSE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._rules.sending import Breach
from .._sse import OverlongEvent, ServerSentEvent
from .events import StreamUnavailable
from .exchange import ClientExchange, ExchangePurpose
from .response_head import Head
from .retries import SSE, Lane
from .urls import resolve

if TYPE_CHECKING:
    from .endpoint import ClientEndpoint
    from .post import Post


class Listening(Lane):
    """The stream for messages that belong to no request, in a legacy revision."""

    __slots__ = ()

    def head(self, exchange: ClientExchange, head: Head) -> None:
        text = f"the server answered GET with status {head.status}"
        if self._opens_stream(exchange, head, text):
            return
        if head.status == 405:
            self.over = True  # there is none, and no fault in that
            return
        if exchange.purpose is ExchangePurpose.RESUME and not head.is_good:
            self.last_event_id = ""  # what came meanwhile is gone; what comes is not
            self.send()
            return
        if head.is_good:
            text += f" and the form {head.media_type[:80]!r}"
        self._unavailable(head.status, text)
        if head.is_good:
            exchange._abort()

    def event(self, exchange: ClientExchange, item: ServerSentEvent | OverlongEvent) -> None:
        self.endpoint._receive_event(item, standalone=True)

    def broken(self, exchange: ClientExchange, text: str) -> None:
        head = exchange._head
        if head is None or not head.is_good:
            self.attempts += 1
            self.later(text)
        else:
            self.ended(text)

    def give_up(self, status: int, text: str) -> None:
        self._unavailable(status, text)

    def lost(self, text: str) -> None:
        self._unavailable(None, text)

    def _unavailable(self, status: int | None, text: str) -> None:
        self.over = True
        self.endpoint._events.append(StreamUnavailable(status=status, text=text))


class OldStream(Lane):
    """The one stream of HTTP+SSE: it says where to POST, and brings all that the server sends."""

    __slots__ = ("_post",)

    def __init__(self, endpoint: ClientEndpoint, post: Post) -> None:
        super().__init__(endpoint)
        self._post = post  # initialize, which the server has refused at the URL of the stream

    def head(self, exchange: ClientExchange, head: Head) -> None:
        if head.status == 200 and head.media_type == SSE:
            exchange._read_stream("")
            return
        self._failed()
        if head.is_good:
            exchange._abort()

    def event(self, exchange: ClientExchange, item: ServerSentEvent | OverlongEvent) -> None:
        if self.endpoint._post_url is not None:
            self.endpoint._receive_event(item, standalone=False)
        elif isinstance(item, ServerSentEvent) and item.type == "endpoint":
            self._read_endpoint(item.data)
        else:
            self._failed("the first event of the stream names no endpoint")

    def _read_endpoint(self, data: bytes) -> None:
        base = self.url or self.endpoint._url
        try:
            url = resolve(base, data.decode("utf-8", "replace"))
        except ValueError as error:
            self._failed(f"the event endpoint holds no usable URI: {error}")
            return
        if url.origin != base.origin:
            origin = f"{url.origin.scheme}://{url.authority}"
            text = f"the event endpoint names another origin, {origin}"
            self.endpoint._report(Breach("OWN-040", text))
            self._failed(text)
            return
        self.endpoint._post_url = url
        self._post.url = None  # where it was sent to before
        self._post.send()

    def broken(self, exchange: ClientExchange, text: str) -> None:
        if self.endpoint._post_url is None:
            self._failed(text)
        else:
            self.over = True
            self.endpoint._connection.machine.receive_eof()

    def give_up(self, status: int, text: str) -> None:
        self._failed(text)

    def _failed(self, text: str | None = None) -> None:
        """It is no server of HTTP+SSE, or not a usable one: what POST was answered with counts."""
        self.drop()
        self._post.refused_for_good(text)
