"""Sessions of the legacy revisions: their settings, and the handle of one.

Source: MCP 2025-11-25, basic/transports, Session Management.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol, final

import attrs

from ..._connection.machine import ServerMachine
from ..._rules.conversation import Peer
from ..._wire.setting_checks import check_text, choice, flag, function, seconds, whole
from ..._wire.values import Record
from .event_log import EventLog, MemoryEventLog

ASK: Final = "ask"
"""The setting by which the application is asked, by an event, instead of a default."""
_PATH: Final = re.compile(r"/[^\x00-\x20\x7f-\U0010ffff?#]*")


def _event_log(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value != ASK:
        function(optional=True)(instance, attribute, value)


@final
@attrs.frozen(kw_only=True)
class Sessions(Record):
    """How an endpoint keeps sessions. Times are in seconds."""

    new_id: Callable[[], str] = attrs.field(validator=function())
    """Gives a session id that nobody can guess, another one at each call, of visible ASCII: 128
    bits from the operating system's generator or more. Whoever knows it is in the session."""
    max_sessions: int = attrs.field(default=10_000, validator=whole())
    """Sessions at a time; an `initialize` over it gets 503 (OWN-030)."""
    idle: float = attrs.field(default=3600.0, validator=seconds(endless=True))
    """Silence after which a session ends that has no GET stream and no request of its client open.
    Without a clock no session does. The silence is over when the body of a request is complete, not
    with its head; a request of the server that waits for its response keeps no session open."""
    max_streams: int = attrs.field(default=16, validator=whole())
    """GET streams at a time in a session; the oldest is closed for one over it (OWN-031)."""
    event_log: Callable[[], EventLog] | Literal["ask"] | None = attrs.field(
        default=MemoryEventLog, validator=_event_log
    )
    """Makes the event log of a session. It drops its oldest events first (OWN-033): requests of the
    server among them that no client has read end in `NO_STREAM`. `"ask"`: the application keeps the
    events, as `EventToStore` and `ReplayWanted` tell. None: streams cannot be resumed, and a
    message without a stream is lost, which is reported."""
    retry_ms: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole(0)))
    """Milliseconds that a client is told to wait before it resumes a stream; None: the client
    decides, except after `close_stream`, which says a second."""
    allow_delete: bool = attrs.field(default=True, validator=flag)
    """Whether a client may end its session with DELETE; if not, DELETE gets 405."""
    opening: Literal["grant", "ask"] = attrs.field(
        default="grant", validator=choice("grant", "ask")
    )
    """`"ask"`: before a session is opened, the application is asked (`SessionRequested`)."""
    unknown: Literal["refuse", "ask"] = attrs.field(
        default="refuse", validator=choice("refuse", "ask")
    )
    """A request that names a session which is not open here gets 404. `"ask"`: the application is
    asked (`SessionWanted`): another process may have the session."""


def _path(_instance: object, attribute: attrs.Attribute[Any], value: str) -> None:
    check_text(attribute.name, value)
    if not _PATH.fullmatch(value):
        raise ValueError(f"{attribute.name} is a path like /sse, not {value!r}")


@final
@attrs.frozen(kw_only=True)
class OldPaths(Record):
    """The two endpoints of HTTP+SSE, for clients of 2024-11-05. Deprecated since 2025-03-26.

    Attributes:
        stream: The path of GET, which opens a stream.
        post: The path of POST, which the stream names to the client.

    Raises:
        ValueError: They are the same, or one does not begin with `/`, or has a query.
    """

    stream: str = attrs.field(validator=_path)
    post: str = attrs.field(validator=_path)

    def __attrs_post_init__(self) -> None:
        """Refuse one path for both: each answers the methods of the other with an error."""
        if self.stream == self.post:
            raise ValueError(f"stream and post are two paths, not {self.stream!r} for both")


class SessionState(Protocol):
    """What the handle of a session reads: the end of the session's conversation.

    Attributes:
        field: The id of the session, as it stands in the header for it.
        machine: The parts of the transport of the session.
        principal: Who opened the session.
        principal_key: A string that stands for the principal.
        is_open: Whether requests of the client are still served.
    """

    field: bytes
    machine: ServerMachine
    principal: Any
    principal_key: str | None
    is_open: bool

    @property
    def tag(self) -> str:
        """A short name of the session that is no secret."""
        ...


@final
class Session:
    """A client's session, from its `initialize` on; or that of a client of 2024-11-05.

    Attributes:
        data: Anything; the slot is the caller's.
    """

    __slots__ = ("__weakref__", "_state", "data")

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self.data: Any = None

    @property
    def id(self) -> str:
        """The session id. It is a secret: whoever knows it is in the session."""
        return self._state.field.decode()

    @property
    def principal(self) -> Any:
        """Who opened the session, as the transport found out; no one else is let in."""
        return self._state.principal

    @property
    def principal_key(self) -> str | None:
        """A string that stands for the principal, as it was given; None without one."""
        return self._state.principal_key

    @property
    def peer(self) -> Peer:
        """What is known of the client. `Peer.session` leads back here."""
        return self._state.machine.core.peer

    @property
    def revision(self) -> str | None:
        """The agreed revision; None before there is one."""
        return self._state.machine.core.peer.revision

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The URIs that the client is subscribed to."""
        return tuple(self._state.machine.resource_subscriptions.uris)

    @property
    def open(self) -> bool:
        """Whether requests of the client are still served."""
        return self._state.is_open

    def __repr__(self) -> str:
        return f"<Session {self._state.tag} open={self.open}>"


def state_of(session: Session) -> Any:
    """The state behind the handle of a session: the transport that an endpoint has made for it."""
    return session._state
