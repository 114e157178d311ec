"""The machines of an endpoint: one for each session, and few for all that needs none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..._connection.events import CancelCause
from ..._wire.values import JSONObject, is_object
from .._headers import Fields, Text
from .connection import SessionConnection
from .events import SessionEnd
from .ground import Ground
from .reply import Reply
from .session_store import SessionTable
from .sessions import Session, Sessions
from .shared_connections import SharedConnection
from .streams import Stream
from .versions import ASSUMED, VERSION_FIELD

if TYPE_CHECKING:
    from .endpoint import ServerEndpoint


_ON_STREAMS: Final = {
    "tools": ("listChanged",),
    "prompts": ("listChanged",),
    "resources": ("listChanged", "subscribe"),
}
"""Capabilities that are kept by messages outside of any response to a request."""


def _without_streams(capabilities: JSONObject) -> JSONObject:
    """The capabilities that can be kept where no stream outlasts a request (CAP-004)."""
    kept = dict(capabilities)
    for name, members in _ON_STREAMS.items():
        value: Any = kept.get(name)
        if is_object(value):
            kept[name] = {name: inner for name, inner in value.items() if name not in members}
    return kept


class Hosting(Ground):
    """Makes machines when they are needed first, and knows all of them."""

    __slots__ = (
        "_connection_settings",
        "_legacy_revisions",
        "_modern_connection",
        "_modern_revisions",
        "_openings",
        "_revisions",
        "_serves_streams",
        "_stateless",
        "_table",
        "_whole_connection",
    )

    def _host(
        self,
        revisions: Sequence[str],
        info: JSONObject,
        capabilities: JSONObject | None,
        instructions: str | None,
        sessions: Sessions | None,
        streams: bool,
    ) -> None:
        if not streams:
            capabilities = _without_streams(capabilities or {})
            if sessions is not None:  # nobody can come back for what a log would keep
                sessions = attrs.evolve(sessions, event_log=None)
        # Pings make no sense where a client is reached by streams that it may close: comments do.
        settings: dict[str, Any] = {
            "instructions": instructions,
            "config": attrs.evolve(self._config, ping_interval=None),
        }
        whole = SharedConnection(
            self._whole(), revisions=revisions, info=info, capabilities=capabilities, **settings
        )
        # What the server says of itself never changes; the caller's dicts are not kept.
        settings["info"] = self._config.codec.decode(whole.core.info)
        settings["capabilities"] = whole.core.capabilities
        if sessions is None:
            # Nothing of a legacy client lasts: no stream, no subscription and no log level.
            settings["capabilities"] = _without_streams(whole.core.capabilities)
            settings["capabilities"].pop("logging", None)
        self._serves_streams = streams
        self._connection_settings = settings
        self._revisions = whole.core.revisions
        self._legacy_revisions = whole.core.legacy_revisions
        self._modern_revisions = whole.core.modern_revisions
        self._whole_connection = whole
        self._modern_connection = whole if self._modern_revisions else None
        self._stateless: dict[Text, SharedConnection] = {}  # by the field that names the revision
        self._openings: dict[SharedConnection, None] = {}  # whose `initialize` is not answered yet
        if sessions is not None and not self._legacy_revisions:
            raise ValueError(f"revisions {', '.join(self._revisions)} have no sessions")
        self._table = None if sessions is None else SessionTable(self._whole(), sessions)

    def _whole(self) -> ServerEndpoint:
        """`self`, typed as the concrete endpoint class."""
        whole: Any = self
        endpoint: ServerEndpoint = whole
        return endpoint

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The open sessions, oldest first."""
        return () if self._table is None else tuple(self._table.sessions.values())

    def _session_connection(self) -> SessionConnection:
        return SessionConnection(
            self._whole(), revisions=self._legacy_revisions, **self._connection_settings
        )

    def _stateless_connection(self, fields: Fields) -> SharedConnection:
        """The connection of a revision, which was judged to be served."""
        revision = fields.get(VERSION_FIELD) or ASSUMED.decode()
        field = revision.encode()
        connection = self._stateless.get(field)
        if connection is None:
            connection = self._stateless[field] = SharedConnection(
                self._whole(), revisions=self._legacy_revisions, **self._connection_settings
            )
            connection.assume(revision)
        return connection

    def _opening_connection(self) -> SharedConnection:
        return SharedConnection(
            self._whole(), opens=True, revisions=self._legacy_revisions, **self._connection_settings
        )

    def _connections(self) -> list[SessionConnection | SharedConnection]:
        shared = [] if self._modern_connection is None else [self._modern_connection]
        return [
            *shared,
            *self._stateless.values(),
            *self._openings,
            *(session._connection for session in self.sessions),
        ]

    def _disconnected(self, route: Stream | Reply) -> None:
        """The client of an exchange is gone."""
        route.detach()
        if isinstance(route, Reply):
            connection = route._connection
            assert isinstance(connection, SharedConnection)
            if connection is self._modern_connection:
                connection.core.now = self._now
                connection.cancel_route(route, CancelCause.PEER)
        elif route.session._is_old:
            route.session._table.end(route.session, SessionEnd.DISCONNECTED)
        else:
            route.session._table.touch(route.session)
