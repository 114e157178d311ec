"""What an endpoint of a client has to say beside the events of a connection."""

from __future__ import annotations

from typing import TypeAlias, final

import attrs

from ..._connection.events import Event
from ..._connection.handles import Listing, OutgoingRequest, Ping, Start, Subscription
from ..._wire.values import JSONValue, Record
from .._server.events import MessageUndelivered
from .auth_challenges import Challenge

Asked: TypeAlias = OutgoingRequest | Listing | Ping | Start | Subscription
"""What an application has of what it has asked for."""


@final
@attrs.frozen(kw_only=True)
class AuthorizationRequired(Record):
    """The server wants to know who asks, or to be shown more than it was: 401, or 403.

    Attributes:
        status: 401 or 403.
        challenges: What the server names, in its order.
        request: What was refused: a request, a listing, a ping, a subscription or the start; None
            where the application has not asked for it.
        kept: It waits for `authorize()`, or `give_up()`, after which this comes again with False.
            False: it ends now, since nobody is to authorize it, or what was shown five times was
            never enough.

    Source: MCP 2026-07-28, basic/authorization; RFC 9110, section 11.6.
    """

    status: int
    challenges: tuple[Challenge, ...]
    request: Asked | None = None
    kept: bool


@final
@attrs.frozen(kw_only=True)
class MessageRefused(Record):
    """The server has refused a message of ours with an HTTP status.

    Where the application waits for an ending, that comes, too.

    Attributes:
        status: The status.
        request: As in `AuthorizationRequired`.
        code: Of the JSON-RPC error in the body; None where there was none.
        message: The same.
        data: The same.
        retry_after: Seconds after which the server wants to be asked again; None: it did not say.
        excerpt: The start of a body that was no error. Not for logs that others read.

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
    """There is no stream any more for what belongs to no request: the server does not give one.

    Requests go on as before. 405 says that a server has no such stream: that is no event.

    Attributes:
        status: Of the answer; None where none came.
        text: What happened.
    """

    status: int | None
    text: str


@final
@attrs.frozen(kw_only=True)
class SessionLost(Record):
    """The server has ended the session. What was open in it ends; a new one is being opened.

    It is not where `start` is None: a new session was lost at once, too, or could not be opened.
    `ClientEndpoint.reopen` opens another one, when it is wanted.

    Until that is open no request can be sent. Messages that were under way are lost. Requests that
    the server has not run, since it has refused them for the session or they were not sent yet, go
    on: they are sent once more, in the new session, and have no ending yet.

    Attributes:
        start: The opening of the new session; its `Ready` or `ConnectionFailed` follows. None:
            there is none.

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
