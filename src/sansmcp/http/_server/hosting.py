"""The machines of an endpoint: one for each session, and few for all that needs none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..._connection.events import CancelCause
from ..._wire.values import JSONObject, is_object
from .._headers import Fields, Text
from .connection import SessionMachine
from .events import SessionEnd
from .ground import Ground
from .reply import Reply
from .session_store import SessionTable
from .sessions import Session, Sessions
from .shared_connections import OpeningMachine, SharedMachine
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
        "_legacy_revisions",
        "_machine_settings",
        "_modern_machine",
        "_modern_revisions",
        "_openings",
        "_revisions",
        "_serves_streams",
        "_stateless",
        "_table",
        "_whole_machine",
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
        whole = SharedMachine(
            self._whole(), revisions=revisions, info=info, capabilities=capabilities, **settings
        )
        # What the server says of itself never changes; the caller's dicts are not kept.
        settings["info"] = self._config.codec.decode(whole._info)
        settings["capabilities"] = whole._capabilities
        if sessions is None:
            # Nothing of a legacy client lasts: no stream, no subscription and no log level.
            settings["capabilities"] = _without_streams(whole._capabilities)
            settings["capabilities"].pop("logging", None)
        self._serves_streams = streams
        self._machine_settings = settings
        self._revisions = whole._revisions
        self._legacy_revisions = whole._legacy_revisions
        self._modern_revisions = whole._modern_revisions
        self._whole_machine = whole
        self._modern_machine = whole if self._modern_revisions else None
        self._stateless: dict[Text, SharedMachine] = {}  # by the field that names the revision
        self._openings: dict[OpeningMachine, None] = {}  # whose `initialize` is not answered yet
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

    def _session_machine(self) -> SessionMachine:
        return SessionMachine(
            self._whole(), revisions=self._legacy_revisions, **self._machine_settings
        )

    def _stateless_machine(self, fields: Fields) -> SharedMachine:
        """The machine of a revision, which was judged to be served."""
        revision = fields.get(VERSION_FIELD) or ASSUMED.decode()
        field = revision.encode()
        machine = self._stateless.get(field)
        if machine is None:
            machine = self._stateless[field] = SharedMachine(
                self._whole(), revisions=self._legacy_revisions, **self._machine_settings
            )
            machine.assume(revision)
        return machine

    def _opening_machine(self) -> OpeningMachine:
        return OpeningMachine(
            self._whole(), revisions=self._legacy_revisions, **self._machine_settings
        )

    def _machines(self) -> list[SessionMachine | SharedMachine]:
        shared = [] if self._modern_machine is None else [self._modern_machine]
        return [
            *shared,
            *self._stateless.values(),
            *self._openings,
            *(session._machine for session in self.sessions),
        ]

    def _disconnected(self, route: Stream | Reply) -> None:
        """The client of an exchange is gone."""
        route.detach()
        if isinstance(route, Reply):
            machine = route._machine
            assert isinstance(machine, SharedMachine)
            if machine is self._modern_machine:
                machine._now = self._now
                machine._cancel_route(route, CancelCause.PEER)
        elif route.session._is_old:
            route.session._table.end(route.session, SessionEnd.DISCONNECTED)
        else:
            route.session._table.touch(route.session)
