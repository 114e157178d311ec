"""A blocking client behind HTTP: what its endpoint reports beside the events of a connection."""

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
from ._http_wire import HTTPWire
from ._mailbox import Mailbox
from ._requests import RequestSender


class HTTPSession(HTTPWire, RequestSender):
    """An endpoint on a client of httpx2, on which callers ask."""

    def __init__(self, endpoint: ClientEndpoint, options: HTTPClientOptions[Any]) -> None:
        RequestSender.__init__(
            self,
            endpoint,
            options.for_session(Call),
        )
        HTTPWire.__init__(self, endpoint, options)
        self._on_unauthorized = options.on_unauthorized
        self._to_authorize: AuthorizationRequired | None = None
        self._is_authorizing = False
        self._failed_authorization: Exception | None = None

    @property
    def session(self) -> HTTPSession:
        """Itself: no other takes its place."""
        return self

    def live(self) -> HTTPSession:
        """The same."""
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

    def _next_job(self) -> Callable[[], None] | None:
        if self._to_authorize is not None and not self._is_authorizing and not self._is_ending:
            return self._authorize
        return super()._next_job()

    def _authorize(self) -> None:
        """Ask the application, once for all that is refused meanwhile."""
        refused, on_unauthorized = self._to_authorize, self._on_unauthorized
        assert refused is not None
        assert on_unauthorized is not None  # else nothing is kept
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
        self._to_authorize = None  # but after Ctrl-C it is asked again
        if headers is None:
            self.endpoint.give_up(now=time.monotonic())
        self.turn()

    # ------------------------------------------------------------------------------- asking

    def _check_open(self, method: str) -> None:
        if self._moving:
            self.look()  # what has come may have freed a connection
        super()._check_open(method)
