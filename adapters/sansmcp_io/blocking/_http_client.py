"""A blocking client over HTTP: the events that only HTTP has, and authorization."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sansmcp.http import (
    AuthorizationRequired,
    ClientEndpoint,
    ClientHTTPEvent,
)

from .._common.anomalies import LOGGER
from .._common.call import not_async
from .._common.http_client_events import handle_http_event
from .._common.http_client_settings import Headers
from .._options.clients import HTTPClientOptions
from ._call import Call
from ._http_wire import HTTPClientWire
from ._mailbox import Mailbox
from ._requests import RequestSender


class HTTPSession(HTTPClientWire, RequestSender):
    """The session of a blocking client whose exchanges are sent with httpx2."""

    def __init__(self, endpoint: ClientEndpoint, options: HTTPClientOptions[Any]) -> None:
        RequestSender.__init__(
            self,
            endpoint,
            options.for_session(Call),
        )
        HTTPClientWire.__init__(self, endpoint, options)
        self._on_unauthorized = options.on_unauthorized
        self._to_authorize: AuthorizationRequired | None = None
        self._is_authorizing = False
        self._failed_authorization: Exception | None = None

    @property
    def session(self) -> HTTPSession:
        """This session, which is never replaced."""
        return self

    def live(self) -> HTTPSession:
        """Return this session, which is never replaced."""
        return self

    # ------------------------------------------------------------------------------ events

    def _handle_event(self, event: ClientHTTPEvent) -> None:
        if isinstance(event, AuthorizationRequired) and event.kept:
            self._to_authorize = event
            return
        failed = self._failed_authorization
        rest = handle_http_event(event, self.sending, Mailbox[Any], failed)
        if rest is not None:
            super()._handle_event(rest)
        elif self.sending.needs_reopening:
            self.ring_all()

    # -------------------------------------------------------------------------- authorization

    def _next_callback(self) -> Callable[[], None] | None:
        if self._to_authorize is not None and not self._is_authorizing and not self._is_ending:
            return self._authorize
        return super()._next_callback()

    def _authorize(self) -> None:
        """Ask the application, once for all requests that are refused meanwhile."""
        refused, on_unauthorized = self._to_authorize, self._on_unauthorized
        assert refused is not None
        assert on_unauthorized is not None  # without it, the endpoint keeps no request
        headers: Headers | None = None
        self._is_authorizing = True
        self._failed_authorization = None
        try:
            outcome = self._without_lock(on_unauthorized, refused)
            headers = not_async(outcome, "on_unauthorized")
            if headers is not None:
                self.endpoint.authorize(headers, now=time.monotonic())
        except Exception as error:
            LOGGER.error("on_unauthorized failed", exc_info=error)
            headers, self._failed_authorization = None, error
        finally:
            self._is_authorizing = False
        self._to_authorize = None  # kept after Ctrl-C, so that the application is asked again
        if headers is None:
            self.endpoint.give_up(now=time.monotonic())
        self.turn()

    # ------------------------------------------------------------------------------- sending

    def _check_open(self, method: str) -> None:
        if self._running:
            self.look()  # a response that has arrived may free a connection
        super()._check_open(method)
