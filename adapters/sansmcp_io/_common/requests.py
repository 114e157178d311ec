"""The method `request` of clients, servers and calls, which is the same in all adapters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from sansmcp import JSONObject, OutgoingRequest

from .bounds import limit_of
from .call import ProgressHandler


@attrs.define
class RequestArguments:
    """The arguments of `Requester.request`."""

    method: str
    params: JSONObject | None
    meta: JSONObject | None
    timeout: float | None
    max_timeout: float | None
    log_level: str | None
    on_progress: ProgressHandler | None

    def send(
        self,
        send_request: Callable[..., OutgoingRequest],
        timeout: float,
        max_timeout: float | None,
        **more: Any,
    ) -> OutgoingRequest:
        """Send the request.

        Args:
            send_request: That of the core.
            timeout: In place of `timeout`, which may be None; `max_timeout` likewise.
            max_timeout: Seconds allowed in all.
            more: Arguments of `send_request` that not every side has.
        """
        return send_request(
            self.method,
            self.params,
            meta=self.meta,
            progress=self.on_progress is not None,
            timeout=limit_of(timeout),
            max_timeout=None if max_timeout is None else limit_of(max_timeout),
            **more,
        )


class Requester:
    """Sends requests to the peer. `typed_requests` has the types of each method, for checkers."""

    def request(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
        log_level: str | None = None,
        on_progress: ProgressHandler | None = None,
    ) -> Any:
        """Send a request to the peer, wait for the response, and return its result.

        On asyncio and trio this is awaited. The request is cancelled when the waiting caller is
        (by its loop, by Ctrl-C, or since the call that it belongs to is cancelled).

        Args:
            method: The method name.
            params: The params object.
            meta: Merged into `params._meta`.
            timeout: Seconds of silence allowed, with the time that the request waits for others
                to be sent; None: the default of the connection; `math.inf`: no limit.
            max_timeout: Seconds allowed in all, with or without progress, and with the time that
                `on_request` takes to answer what the server asks before it answers.
            log_level: The least severe level of log messages about this request, which then come
                to `on_notification`; None: none. Before 2026-07-28 `logging/setLevel` decides.
            on_progress: Asks for progress; a plain function, called with progress, total and
                message. If it raises, the request is cancelled, and this method raises that.

        Raises:
            PeerError: The peer answered with an error.
            McpError: The server asked something first, and `on_request` raised this. If it raised
                anything else, or its answer is not valid, that is logged, and this is -32603.
            RequestTimeout: The peer did not answer in time. The request was cancelled.
            RequestRefused: The server has refused the request, by a status of HTTP.
            ConnectionLost: The connection ended first.
            InvalidAnswer: The response is not valid.
            CallCancelled: Without a loop: the peer has cancelled the call that this belongs to.
            sansmcp.LocalProtocolError: The request would break the protocol. It was not sent.
            TypeError: `on_progress` is async.
        """
        return self._send_request(
            RequestArguments(method, params, meta, timeout, max_timeout, log_level, on_progress)
        )

    def _send_request(self, arguments: RequestArguments) -> Any:
        """Send the request: an awaitable of the result, or the result."""
        raise NotImplementedError
