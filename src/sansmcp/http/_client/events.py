"""The events of a client endpoint, besides those of every connection."""

from __future__ import annotations

from typing import TypeAlias, final

import attrs

from ..._connection.events import Event
from ..._connection.handles import Listing, OutgoingRequest, Ping, Start, Subscription
from ..._wire.values import JSONValue, Record
from .._server.events import MessageUndelivered
from .auth_challenges import Challenge

Asked: TypeAlias = OutgoingRequest | Listing | Ping | Start | Subscription
"""The handle of something that the application has asked for."""


@final
@attrs.frozen(kw_only=True)
class AuthorizationRequired(Record):
    """The server refuses an exchange without (other) credentials: 401, or 403 with a challenge.

    Attributes:
        status: 401 or 403.
        challenges: The ways to authenticate that the server names, in its order.
        request: The handle of the refused request, listing, ping, subscription or start; None for
            an exchange that the application has not asked for.
        kept: True: the exchange is held until `authorize()` or `give_up()`; after `give_up()` this
            event comes again with False. False: it ends now, because the endpoint was made without
            `authorize=True`, or because five sets of credentials in a row were refused.

    Source: MCP 2026-07-28, basic/authorization; RFC 9110, section 11.6.
    """

    status: int
    challenges: tuple[Challenge, ...]
    request: Asked | None = None
    kept: bool


@final
@attrs.frozen(kw_only=True)
class MessageRefused(Record):
    """The server has refused a message of this client with an HTTP status.

    If the message was a request, its ending follows as another event.

    Attributes:
        status: The status.
        request: As in `AuthorizationRequired`.
        code: The code of the JSON-RPC error in the body; None without such an error.
        message: The message of that error.
        data: The data of that error.
        retry_after: Seconds after which the server wants the retry; None: it did not say.
        excerpt: The start of a body without a JSON-RPC error. Not for logs that others read.

    Source: MCP 2025-11-25, basic/transports, Sending Messages to the Server.
    """

    status: int
    request: Asked | None = None
    code: int | None = None
    message: str | None = None
    data: JSONValue = None
    retry_after: float | None = None
    excerpt: bytes = b""


@final
@attrs.frozen(kw_only=True)
class StreamUnavailable(Record):
    """The server does not provide the standalone stream, for messages that belong to no request.

    Requests go on as before. A server that answers GET with 405 has no such stream; that is no
    breach, and no event.

    Attributes:
        status: The status of the last response; None where no response came.
        text: What happened.
    """

    status: int | None
    text: str


@final
@attrs.frozen(kw_only=True)
class SessionLost(Record):
    """The server has ended the session. Its open requests end, and a new session is being opened.

    If `start` is None, no session is being opened, because the new session was lost at once, too,
    or could not be opened. The application can open another one with `ClientEndpoint.reopen`.

    No request can be sent until a session is open. Messages that were under way are lost. Requests
    that the server has certainly not run do not end, but are sent in the new session: those that
    it has refused because of their session, and those that were not sent yet.

    Attributes:
        start: The handle of the opening; its `Ready` or `ConnectionFailed` follows. None: no
            session is being opened.

    Source: MCP 2025-11-25, basic/transports, Session Management.
    """

    start: Start | None


ClientHTTPEvent: TypeAlias = (
    Event
    | AuthorizationRequired
    | MessageRefused
    | MessageUndelivered
    | SessionLost
    | StreamUnavailable
)
