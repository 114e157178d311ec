"""A blocking client behind HTTP: what its endpoint reports beside the events of a connection."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sansmcp import ConnectionFailed, Ready
from sansmcp.http import (
    AuthorizationRequired,
    ClientEndpoint,
    ClientHTTPEvent,
    MessageRefused,
    MessageUndelivered,
    SessionLost,
    StreamUnavailable,
)

from .._common.anomalies import LOGGER
from .._common.call import not_async
from .._common.endings import tell_opening_failed
from .._common.errors import Refusal
from .._common.http_client_settings import Headers, HTTPClientLimits
from .._options.clients import HTTPClientOptions
from ._call import Call
from ._http_wire import HTTPWire
from ._mailbox import Mailbox
from ._requests import RequestSender


class HTTPSession(HTTPWire, RequestSender):
    """An endpoint on sockets, on which callers ask."""

    def __init__(self, endpoint: ClientEndpoint, options: HTTPClientOptions[Any]) -> None:
        RequestSender.__init__(
            self,
            endpoint,
            options.for_session(Call),
        )
        limits = options.limits or HTTPClientLimits()
        HTTPWire.__init__(self, endpoint, tls=options.tls, limits=limits, trace=options.trace)
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
        match event:
            case AuthorizationRequired(kept=True):
                self._to_authorize = event
            case AuthorizationRequired():
                cause = self._failed_authorization
                _tell(event, Refusal(event.status, event.challenges, cause=cause))
            case MessageRefused():
                _tell(event, Refusal(event.status, retry_after=event.retry_after))
                if event.request is None:
                    LOGGER.warning("the server has refused a message: HTTP %d", event.status)
            case MessageUndelivered():
                LOGGER.info("a message was lost with its connection")
            case StreamUnavailable():
                LOGGER.info("%s", event.text)
            case SessionLost():
                self.is_reopening = True  # whoever asks waits until it is open again
                if event.start is None:
                    self.needs_reopening = True
                    self.ring_all()
                else:
                    event.start.data = Mailbox[Any]()  # nobody waits for it there
            case _:
                if isinstance(event, Ready):
                    self.is_reopening = False
                    self._opening_failed = None
                elif isinstance(event, ConnectionFailed):
                    self._opening_failed = event
                elif self._opening_failed is not None:
                    tell_opening_failed(event, self._opening_failed)
                super()._handle_event(event)

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


def _tell(event: AuthorizationRequired | MessageRefused, refusal: Refusal) -> None:
    """Have whoever waits for the ending know what it comes of."""
    if event.request is not None:
        event.request.data.refusal = refusal
