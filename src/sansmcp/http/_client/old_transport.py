"""The transport HTTP+SSE of 2024-11-05, which a client falls back to.

Source: MCP 2025-11-25, basic/transports, Backwards Compatibility; MCP 2024-11-05, basic/transports,
HTTP with SSE.
"""

from __future__ import annotations

from typing import Final

import attrs

from ..._rules.sending import Breach
from ..._wire.values import JSONObject
from .._sse import OverlongEvent, ServerSentEvent
from .core import ClientEndpointCore
from .exchange import ClientExchangeCore, ExchangeOwner
from .post import PostedMessage
from .response_head import Head
from .responses import is_modern_error
from .streams import SSE
from .urls import resolve

_OLD_REVISION: Final = "2024-11-05"
_ANY_CLIENT_ERROR: Final = ("2025-03-26", "2025-06-18")
"""Revisions that fall back after every 4xx; later ones do so after some statuses only."""
_STATUSES: Final = frozenset({400, 404, 405})


def may_be_old(core: ClientEndpointCore, status: int, error: JSONObject | None) -> bool:
    """Whether a refusal of `initialize` may come from a server of HTTP+SSE.

    Keeps COMPAT-007, COMPAT-008, COMPAT-009.
    """
    own = core.machine.core
    if core.old_post_url is not None or _OLD_REVISION not in own.legacy_revisions:
        return False
    if is_modern_error(error):
        return False
    if own.revisions[-1] in _ANY_CLIENT_ERROR:
        return 400 <= status < 500
    return status in _STATUSES


@attrs.define(eq=False, repr=False)
class OldStream(ExchangeOwner):
    """The one stream of HTTP+SSE: it names the URL to POST to, and brings all messages."""

    _post: PostedMessage  # initialize, which the server has refused at the URL of the stream

    def head(self, exchange: ClientExchangeCore, head: Head) -> None:
        if head.status == 200 and head.media_type == SSE:
            exchange.read_stream()
            return
        self._failed()
        if head.is_good:
            exchange.abort()

    def event(self, exchange: ClientExchangeCore, item: ServerSentEvent | OverlongEvent) -> None:
        if self.queue.core.old_post_url is not None:
            self._post.responses.receive_event(item)
        elif isinstance(item, ServerSentEvent) and item.type == "endpoint":
            self._read_endpoint(item.data)
        else:
            self._failed("the first event of the stream names no endpoint")

    def _read_endpoint(self, data: bytes) -> None:
        # Keeps HSSE-003.
        core = self.queue.core
        base = self.url or core.url
        try:
            url = resolve(base, data.decode("utf-8", "replace"))
        except ValueError as error:
            self._failed(f"the event endpoint holds no usable URI: {error}")
            return
        if url.origin != base.origin:
            origin = f"{url.origin.scheme}://{url.authority}"
            text = f"the event endpoint names another origin, {origin}"
            core.report(Breach("OWN-040", text))
            self._failed(text)
            return
        core.old_post_url = url
        self._post.url = None  # where it was sent to before
        self._post.send()

    def broken(self, exchange: ClientExchangeCore, text: str) -> None:
        if self.queue.core.old_post_url is None:
            self._failed(text)
        else:
            self.over = True
            self.queue.core.machine.receive_eof()

    def fail_with_status(self, status: int, text: str) -> None:
        self._failed(text)

    def _failed(self, text: str | None = None) -> None:
        """End the attempt with HTTP+SSE: the refusal of the POST before it counts."""
        self.queue.drop(self)
        self._post.refused_for_good(text)
