"""A client behind HTTP, as far as no loop is involved: its events, and who is asked about 401."""

from __future__ import annotations

import inspect
import ssl
from abc import abstractmethod
from typing import Any, Final

from sansmcp import ConnectionClosed, ConnectionFailed, Ready
from sansmcp.http import (
    AuthorizationRequired,
    ClientEndpoint,
    ClientExchange,
    ClientHTTPEvent,
    ExchangePurpose,
    MessageRefused,
    MessageUndelivered,
    SessionLost,
    StreamUnavailable,
)

from .._common.anomalies import LOGGER
from .._common.endings import tell_opening_failed
from .._common.errors import Refusal
from .._common.http_client_settings import Headers, HTTPClientLimits
from .._options.clients import HTTPClientOptions
from .background import logged
from .call import Call
from .dispatch import EventDispatcher


class HTTPClientDispatcher(EventDispatcher):
    """Hands out the events of an endpoint, and has its exchanges begun and ended.

    The core is called in the loop's thread, and its calls do not wait: there is no lock.
    """

    def __init__(self, endpoint: ClientEndpoint, options: HTTPClientOptions[Any]) -> None:
        super().__init__(
            endpoint,
            options.for_session(Call),
        )
        self.endpoint: Final = endpoint
        self._on_unauthorized = options.on_unauthorized
        self._is_authorizing = False
        self._failed_authorization: Exception | None = None
        self._limits = options.limits or HTTPClientLimits()
        self._trace = options.trace
        self._closed = self.loop.new_event()

    @abstractmethod
    def _begin(self, exchange: ClientExchange) -> None:
        """Carry an exchange."""

    @abstractmethod
    def _abort(self, exchange: ClientExchange) -> None:
        """Carry it no further, if it is carried still."""

    def _turn(self) -> None:
        """Handle all events, and begin and end what the endpoint wants begun and ended."""
        endpoint = self.endpoint
        has_changed = True
        while has_changed:
            has_changed = False
            while (event := self._next_event()) is not None:
                self._handle(event)
                has_changed = True
            for aborted in endpoint.aborts():
                self._abort(aborted)
            while (exchange := endpoint.next_exchange()) is not None:
                self._begin(exchange)
        self._room.look()

    def _next_event(self) -> ClientHTTPEvent | None:
        event = self.endpoint.next_event()
        if event is not None and self._trace is not None:
            with logged("the trace"):
                self._trace.happened(event)
        return event

    def _handle(self, event: ClientHTTPEvent) -> None:
        match event:
            case AuthorizationRequired(kept=True):
                self._authorize(event)
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
                self._room.is_closed = True  # whoever asks waits until it is open again
                if event.start is None:
                    self._room.needs_reopening = True
                else:
                    event.start.data = self.loop.new_mailbox()  # nobody waits for it there
            case _:
                if isinstance(event, ConnectionFailed):
                    self._opening_failed = event
                elif self._opening_failed is not None:
                    tell_opening_failed(event, self._opening_failed)
                self._handle_event(event)
                if isinstance(event, Ready):
                    self._room.is_closed = False
                    self._opening_failed = None
                elif isinstance(event, ConnectionClosed):
                    self._closed.set()

    def _authorize(self, event: AuthorizationRequired) -> None:
        """Have the application asked, once for all that is refused meanwhile."""
        if not self._is_authorizing:
            self._is_authorizing = True
            self._failed_authorization = None
            self._tasks.start_soon(self._ask_for_authorization, event)

    async def _ask_for_authorization(self, event: AuthorizationRequired) -> None:
        assert self._on_unauthorized is not None  # else nothing is kept
        headers: Headers | None = None
        try:
            outcome: Any = self._on_unauthorized(event)
            headers = await outcome if inspect.isawaitable(outcome) else outcome
            if headers is not None:
                self.endpoint.authorize(headers, now=self.clock())
        except Exception as error:
            LOGGER.error("on_unauthorized failed", exc_info=error)
            headers, self._failed_authorization = None, error
        finally:  # it may have been cancelled, by itself too
            self._is_authorizing = False
            if headers is None:
                self.endpoint.give_up(now=self.clock())
            self.wake()


def _tell(event: AuthorizationRequired | MessageRefused, refusal: Refusal) -> None:
    """Have whoever waits for the ending know what it comes of."""
    if event.request is not None:
        event.request.data.refusal = refusal


def is_answer(exchange: ClientExchange) -> bool:
    """Whether an exchange carries what nobody waits for here: answers, and notifications."""
    return exchange.purpose is ExchangePurpose.POST and not exchange.awaited


def sentence_of(error: BaseException | None) -> str:
    """What went wrong, for events: without anything that the peer wrote."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the server's certificate is not valid: {error.verify_message}"
    return f"the connection has failed: {error}"
