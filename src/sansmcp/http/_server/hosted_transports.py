"""The transports of an endpoint: one for each session, and few for all requests without one."""

from __future__ import annotations

from typing import Any, Final

from ..._wire.values import JSONObject, is_object
from .._headers import Fields, Text
from .core import ASSUMED, VERSION_FIELD, ServerEndpointCore, Service
from .lookups import Lookups
from .routed_transport import RoutedTransport
from .session_store import SessionStore
from .session_transport import SessionTransport
from .shared_transport import SharedTransport

_ON_STREAMS: Final = {
    "tools": ("listChanged",),
    "prompts": ("listChanged",),
    "resources": ("listChanged", "subscribe"),
}
"""Capabilities that are kept by messages outside of any response to a request."""


def without_streams(capabilities: JSONObject) -> JSONObject:
    """The capabilities that can be kept where no stream outlasts a request (CAP-004)."""
    kept = dict(capabilities)
    for name, members in _ON_STREAMS.items():
        value: Any = kept.get(name)
        if is_object(value):
            kept[name] = {name: inner for name, inner in value.items() if name not in members}
    return kept


class HostedTransports:
    """Makes transports when they are needed first, and knows all of them.

    Args:
        core: What all parts of the endpoint share.
        service: What the endpoint serves.
        whole: The transport with all revisions, which has judged what the server says of itself.
        settings: What the other transports are made with: `instructions` and `config`.
        lookups: The exchanges that wait for the application.

    Attributes:
        modern: The transport of all clients of 2026-07-28; None where that is not served.
        openings: The transports whose one `initialize`, outside of any session, is not answered.
        store: The sessions; None: there are none.
        whole: The transport with all revisions.
    """

    __slots__ = ("_core", "_settings", "_stateless", "modern", "openings", "store", "whole")

    def __init__(
        self,
        core: ServerEndpointCore,
        service: Service,
        whole: SharedTransport,
        settings: dict[str, Any],
        lookups: Lookups,
    ) -> None:
        # What the server says of itself never changes; the caller's dicts are not kept.
        capabilities = whole.core.capabilities
        if service.sessions is None:
            # Nothing of a legacy client lasts: no stream, no subscription and no log level.
            capabilities = without_streams(capabilities)
            capabilities.pop("logging", None)
        settings = {
            **settings,
            "info": core.config.codec.decode(whole.core.info),
            "capabilities": capabilities,
            "revisions": service.legacy_revisions,
        }
        self._core = core
        self._settings = settings
        self._stateless: dict[Text, SharedTransport] = {}  # by the header that names the revision
        whole.is_modern = bool(service.modern_revisions)
        self.whole: SharedTransport = whole
        self.modern: SharedTransport | None = whole if service.modern_revisions else None
        self.openings: dict[SharedTransport, None] = {}
        self.store: SessionStore | None = None
        if service.sessions is not None:
            self.store = SessionStore(
                core, service, service.sessions, whole.core, settings, lookups
            )

    def known_stateless(self, fields: Fields) -> SharedTransport | None:
        """The transport of the legacy revision that the headers name, if there is one already."""
        return self._stateless.get(fields.raw.get(VERSION_FIELD, ASSUMED))

    def stateless(self, fields: Fields) -> SharedTransport:
        """The transport of the legacy revision that the headers name, which is one of ours.

        Keeps HDR-003, COMPAT-014: headers that name none mean 2025-03-26.
        """
        revision = fields.get(VERSION_FIELD) or ASSUMED.decode()
        field = revision.encode()
        transport = self._stateless.get(field)
        if transport is None:
            transport = SharedTransport(self._core, whole=self.whole, **self._settings)
            transport.assume(revision)
            self._stateless[field] = transport
        return transport

    def opening(self) -> SharedTransport:
        """A transport for one `initialize` outside of any session."""
        return SharedTransport(
            self._core, whole=self.whole, openings=self.openings, **self._settings
        )

    def shared(self) -> list[SharedTransport]:
        """All transports that clients share."""
        modern = [] if self.modern is None else [self.modern]
        return [*modern, *self._stateless.values(), *self.openings]

    def of_sessions(self) -> tuple[SessionTransport, ...]:
        """The transports of all sessions, oldest first."""
        return () if self.store is None else tuple(self.store.transports.values())

    def all(self) -> list[RoutedTransport]:
        """All transports."""
        return [*self.shared(), *self.of_sessions()]
