"""What both sides of one conversation have agreed on, and what is known of the other side."""

from __future__ import annotations

from typing import Any

import attrs

from .._spec.methods import Dialect
from .._spec.registry import OPEN_GATES
from .._wire.values import JSONObject
from .state_tables import PHASES, Phase, PhaseTrigger


@attrs.define(eq=False, repr=False)
class Conversation:
    """Phase of the handshake, the revision, and the gates that each side has opened.

    `gates` is indexed by side. Before a revision is agreed, `dialect` is the newest that our side
    supports.
    """

    dialect: Dialect
    phase: Phase = Phase.NEW
    gates: list[frozenset[str]] = attrs.field(factory=lambda: [OPEN_GATES, OPEN_GATES])

    @property
    def agreed(self) -> bool:
        """Whether a revision is agreed."""
        return self.phase >= Phase.AGREED

    def move(self, trigger: PhaseTrigger) -> None:
        """Take one step of the handshake; `judge_*` has been asked whether it is legal."""
        self.phase = PHASES[self.phase, trigger]


class Peer:
    """What is known of the other side, in the conversation that a request belongs to.

    Attributes:
        revision: The agreed revision, or None before there is one.
        info: The `Implementation` object the peer gave, or None. Do not change it.
        capabilities: The capabilities object the peer gave, whole. Do not change it.
        instructions: What a server said about how to use it, or None.
        supported_versions: The revisions that a server named in its answer to `server/discover`,
            in its order; `()` where it was not asked.
        principal: Who the peer is, as the transport found out; None where it did not.
        principal_key: A string that stands for the principal and for nobody else, as the
            application gave it; a sealed state is bound to it.
        log_level: The least severe level the peer wants logged, or None for no wish.
        session: The `sansmcp.http.Session` that the conversation is; None elsewhere.
    """

    __slots__ = (
        "capabilities",
        "info",
        "instructions",
        "log_level",
        "principal",
        "principal_key",
        "revision",
        "session",
        "supported_versions",
    )

    def __init__(self) -> None:
        self.revision: str | None = None
        self.info: JSONObject | None = None
        self.capabilities: JSONObject = {}
        self.instructions: str | None = None
        self.supported_versions: tuple[str, ...] = ()
        self.principal: object = None
        self.principal_key: str | None = None
        self.log_level: str | None = None
        self.session: Any = None

    def _as(self, principal: object, key: str | None) -> Peer:
        """A copy of the peer with the principal of one request."""
        peer = Peer()
        for name in Peer.__slots__:
            setattr(peer, name, getattr(self, name))
        peer.principal, peer.principal_key = principal, key
        return peer

    def __repr__(self) -> str:
        """Name and revision; nothing that may be a secret, as the principal or the session id."""
        name: Any = None if self.info is None else self.info.get("name")
        shown = name[:80] if isinstance(name, str) else None
        return f"<Peer {shown!r} revision={self.revision}>"
