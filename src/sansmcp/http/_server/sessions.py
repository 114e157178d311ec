"""Sessions of the legacy revisions: the settings, and the handle of one.

Source: MCP 2025-11-25, basic/transports, Session Management.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

import attrs

from ..._rules.conversation import Peer
from ..._wire.setting_checks import flag, function, seconds, whole
from ..._wire.values import Record
from .event_log import EventLog, MemoryEventLog
from .replay import History
from .streams import Standalone

if TYPE_CHECKING:
    from .connection import SessionConnection
    from .session_store import SessionTable
    from .streams import Stream

_POLLING_SINCE: Final = "2025-11-25"


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
    Without a clock none does. It is broken when the body of a request is complete, not by its
    head; and a request of ours that waits for its answer keeps no session."""
    max_streams: int = attrs.field(default=16, validator=whole())
    """GET streams at a time in a session; the oldest is closed for one over it (OWN-031)."""
    event_log: Callable[[], EventLog] | None = attrs.field(
        default=MemoryEventLog, validator=function(optional=True)
    )
    """Makes the event log of a session, whose oldest events give way (OWN-033): requests of ours
    among them that nobody has read end in `NO_STREAM`. None: streams cannot be taken up again,
    and what has no stream is lost, which is reported."""
    retry_ms: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole(0)))
    """Milliseconds that a client is told to wait before it takes up a stream again; None: it is
    left to the client, except by `close_stream`, which says a second."""
    allow_delete: bool = attrs.field(default=True, validator=flag)
    """Whether a client may end its session with DELETE; if not, that gets 405."""


@final
class Session:
    """A client's session, from its `initialize` on; or that of a client of 2024-11-05.

    Attributes:
        data: Anything; the slot is the caller's.
    """

    __slots__ = (
        "__weakref__",
        "_connection",
        "_count",
        "_deadline",
        "_end",
        "_field",
        "_held_bytes",
        "_is_old",
        "_open",
        "_past",
        "_principal",
        "_revision_field",
        "_settings",
        "_standalone",
        "_streams",
        "_table",
        "_tag",
        "data",
    )

    def __init__(
        self,
        id: str,
        principal: Any,
        connection: SessionConnection,
        table: SessionTable,
        *,
        is_old: bool = False,
    ) -> None:
        self._field = id.encode()  # as it comes
        self._principal = principal
        self._connection = connection
        self._table = table
        self._settings = table.settings
        self._held_bytes = 0  # of what the client has said of itself
        self._is_old = is_old  # of a client of 2024-11-05, which has one stream and no other
        self._open = True
        self._end: Any = None  # why it is being ended, where this side does it
        self._deadline: float | None = None
        self._streams: dict[int, Stream] = {}  # that have begun and are not over, by number
        self._count = 0  # of streams that have begun: each has a number of its own
        self._tag = f"{crc32(id.encode()):08x}"  # no event id is mistaken for another session's
        self._past: History | None = None
        self._revision_field = b""  # nothing is agreed yet
        self._standalone = Standalone(self)
        connection.session = self
        connection.core.peer.session = self
        connection.core.peer.principal = principal
        self.data: Any = None

    @property
    def id(self) -> str:
        """The session id. It is a secret: whoever knows it is in the session."""
        return self._field.decode()

    @property
    def principal(self) -> Any:
        """Who opened it, as the transport found out; nobody else is let in."""
        return self._principal

    @property
    def peer(self) -> Peer:
        """What is known of the client. `Peer.session` leads back here."""
        return self._connection.core.peer

    @property
    def revision(self) -> str | None:
        """The agreed revision; None before there is one."""
        return self._connection.core.peer.revision

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The URIs that the client is subscribed to."""
        return tuple(self._connection.machine.resource_subscriptions.uris)

    @property
    def open(self) -> bool:
        """Whether requests of the client are still served."""
        return self._open

    @property
    def _has_log(self) -> bool:
        return self._settings.event_log is not None and not self._is_old

    @property
    def _can_poll(self) -> bool:
        """Whether the client knows that a stream may end before it is over."""
        return (self.revision or "") >= _POLLING_SINCE

    @property
    def _history(self) -> History:
        """What the log has, made when it is needed first: most sessions never have an event."""
        if self._past is None:
            self._past = History(self)
        return self._past

    def __repr__(self) -> str:
        return f"<Session {self._tag} open={self._open}>"
