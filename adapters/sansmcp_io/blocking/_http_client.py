"""A blocking client over HTTP: the events that only HTTP has, and authorization."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sansmcp import State
from sansmcp.http import (
    AuthorizationRequired,
    ClientEndpoint,
    ClientHTTPEvent,
)

from .._common.anomalies import LOGGER
from .._common.call import not_async
from .._common.errors import AuthorizationError
from .._common.http_client_events import handle_http_event
from .._common.http_client_settings import Headers
from .._options.clients import HTTPClientOptions
from ._call import Call
from ._http_client_wire import HTTPClientWire
from ._mailbox import Mailbox
from ._requests import RequestSender

if TYPE_CHECKING:
    from ..oauth._authorization import ClientAuthorization
    from ._authorization import Authorizer


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
        self._authorizer: Authorizer | None = None
        if self._authorization is not None:
            self._authorizer = _new_authorizer(self._authorization, options, self._without_lock)
        self._to_authorize: AuthorizationRequired | None = None
        self._must_refresh = False
        self._is_renewed = False  # the token is new, however soon it ends
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
        if not (self._is_authorizing or self._is_ending):
            if self._must_refresh:
                return self._refresh
            if self._to_authorize is not None:
                return self._authorize
        return super()._next_callback()

    def restore_credentials(self) -> None:
        """Use the credentials that are stored, before the conversation is opened.

        Raises:
            AuthorizationError: The storage cannot be read.
        """
        if self._authorizer is not None and self._authorization is not None:
            with self:
                self._authorizer.restore()
                self.endpoint.authorize(self._authorization.headers, now=time.monotonic())

    def _waits_for_token(self) -> bool:
        authorization = self._authorization
        if authorization is None or self._is_ending or self.endpoint.state is State.CLOSED:
            return False
        if (
            not (self._is_authorizing or self._is_renewed)
            and self.endpoint.unsent_bytes
            and authorization.needs_refresh
        ):
            self._must_refresh = True
        return self._must_refresh

    def _refresh(self) -> None:
        """Get a new token before the old one ends. Without one, the server decides."""
        assert self._authorizer is not None
        assert self._authorization is not None
        self._is_authorizing = True
        try:
            headers = self._authorizer.run(None, self.endpoint.revision)
            self.endpoint.authorize(headers, now=time.monotonic())
            self._is_renewed = True
            self._to_authorize = None  # all that was refused meanwhile is sent again
        except Exception as error:
            self._authorization.fail_in_advance(error)
        finally:
            self._is_authorizing = False
        self._must_refresh = False  # kept after Ctrl-C
        self.turn()

    def _write_output(self) -> None:
        super()._write_output()
        self._is_renewed = False

    def flush(self, *, until_taken: bool = False) -> None:
        """Write the output of which no caller awaits a response, with a token that is valid."""
        if self._must_refresh and not self._is_authorizing:
            self._refresh()
        super().flush(until_taken=until_taken)

    def _authorize(self) -> None:
        """Ask the application, once for all requests that are refused meanwhile."""
        refused = self._to_authorize
        assert refused is not None
        headers: Headers | None = None
        self._is_authorizing = True
        self._failed_authorization = None
        try:
            headers = self._headers_for(refused)
            if headers is not None:
                self.endpoint.authorize(headers, now=time.monotonic())
                self._is_renewed = True
        except AuthorizationError as error:
            LOGGER.info("the client was not authorized: %s", error)
            headers, self._failed_authorization = None, error
        except Exception as error:
            LOGGER.error("on_unauthorized failed", exc_info=error)
            headers, self._failed_authorization = None, error
        finally:
            self._is_authorizing = False
        self._to_authorize = None  # kept after Ctrl-C, so that the application is asked again
        if headers is None:
            self.endpoint.give_up(now=time.monotonic())
        self.turn()

    def _headers_for(self, refused: AuthorizationRequired) -> Headers | None:
        if self._authorizer is not None and self._authorization is not None:
            self._authorization.check_advance()
            return self._authorizer.run(refused, self.endpoint.revision)
        assert self._on_unauthorized is not None  # without it, the endpoint keeps no request
        outcome: Headers | None = self._without_lock(self._on_unauthorized, refused)
        return not_async(outcome, "on_unauthorized")

    def _close(self) -> None:
        super()._close()
        if self._authorization is not None:
            self._authorization.close()

    # ------------------------------------------------------------------------------- sending

    def _check_open(self, method: str) -> None:
        if self._running:
            self.look()  # a response that has arrived may free a connection
        super()._check_open(method)


def _new_authorizer(
    authorization: ClientAuthorization,
    options: HTTPClientOptions[Any],
    wait: Callable[..., Any],
) -> Authorizer:
    # Imported here: programs without authorization do not need it.
    from ._authorization import Authorizer
    from ._one_shot import OneShotSender

    return Authorizer(OneShotSender(options), authorization, wait)
