"""Handles events of a client endpoint that concern callers or the log, in any adapter."""

from __future__ import annotations

import ssl
from collections.abc import Callable

from sansmcp import Event
from sansmcp.http import (
    AuthorizationRequired,
    ClientExchange,
    ClientHTTPEvent,
    MessageRefused,
    MessageUndelivered,
    SessionLost,
    StreamUnavailable,
)

from .anomalies import LOGGER
from .errors import Refusal
from .requests import SendState


def handle_http_event(
    event: ClientHTTPEvent,
    sending: SendState,
    new_mailbox: Callable[[], object],
    failed_authorization: Exception | None,
) -> Event | None:
    """Handle an event that only clients over HTTP have.

    Args:
        event: Any event of the endpoint.
        sending: Learns whether a session is open.
        new_mailbox: Makes a mailbox.
        failed_authorization: The exception that `on_unauthorized` raised last.

    Returns:
        None, or an event that is to be handled as on any connection.
    """
    match event:
        case AuthorizationRequired():
            _tell(event, Refusal(event.status, event.challenges, cause=failed_authorization))
        case MessageRefused():
            _tell(event, Refusal(event.status, retry_after=event.retry_after))
            if event.request is None:
                LOGGER.warning("the server has refused a message: HTTP %d", event.status)
        case MessageUndelivered():
            LOGGER.info("a message was lost with its connection")
        case StreamUnavailable():
            LOGGER.info("%s", event.text)
        case SessionLost():
            sending.lose_session(needs_reopening=event.start is None)
            if event.start is not None:
                event.start.data = new_mailbox()  # without a waiting caller
        case _:
            sending.note(event)
            return event
    return None


def _tell(event: AuthorizationRequired | MessageRefused, refusal: Refusal) -> None:
    """Note the reason for the caller that waits for the ending of the request."""
    if event.request is not None:
        event.request.data.refusal = refusal


def note_hook_error(exchange: ClientExchange, error: BaseException) -> None:
    """Log an exception that a hook of the httpx2 client has raised, and tell the waiting caller.

    Args:
        exchange: The exchange that could not be made.
        error: The exception.
    """
    LOGGER.error("the httpx2 client has failed", exc_info=error)
    if exchange.request is not None:
        exchange.request.data.refusal = Refusal(hook_error=error)


def sentence_of(error: BaseException | None) -> str:
    """A sentence on a failure of a connection, without anything that the peer wrote."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the server's certificate is not valid: {error.verify_message}"
    return f"the connection has failed: {error}"
