"""The state on which both sides of a conversation agree, and the `Peer` as this side knows it."""

from __future__ import annotations

from typing import Any, Protocol

import attrs

from .._spec.methods import Dialect
from .._spec.registry import OPEN_GATES
from .._wire.values import JSONObject
from .state_tables import PHASES, Phase, PhaseTrigger


@attrs.define(eq=False, repr=False)
class Conversation:
    """The phase of the opening, the revision, and the capabilities of each side.

    Attributes:
        dialect: The tables of the agreed revision; before one is agreed, those of the newest that
            this side supports.
        phase: How far the opening has come.
        gates: The gates that each side has opened by its capabilities, indexed by side.
    """

    dialect: Dialect
    phase: Phase = Phase.NEW
    gates: list[frozenset[str]] = attrs.field(factory=lambda: [OPEN_GATES, OPEN_GATES])

    @property
    def agreed(self) -> bool:
        """Whether a revision is agreed."""
        return self.phase >= Phase.AGREED

    def move(self, trigger: PhaseTrigger) -> None:
        """Move to the next phase; a function `judge_*` has allowed the step."""
        self.phase = PHASES[self.phase, trigger]


class Sender(Protocol):
    """An object that says who has sent something."""

    @property
    def principal(self) -> Any:
        """The authenticated sender; None if unknown."""
        ...

    @property
    def principal_key(self) -> str | None:
        """A string that identifies the principal; None if the application gave none."""
        ...


def is_same_principal(one: Sender, other: Sender) -> bool:
    """Whether two principals are the same: by their keys where there is one, else by `==`.

    An object for one account may differ from request to request, by a token or its scopes.
    """
    if one.principal_key is None and other.principal_key is None:
        return bool(one.principal == other.principal)
    return one.principal_key == other.principal_key


class Peer:
    """The other side of a conversation, as far as this side knows it.

    Attributes:
        revision: The agreed revision; None before one is agreed.
        info: The `Implementation` object of the peer, or None. Do not change it.
        capabilities: The capabilities object of the peer. Do not change it.
        instructions: The server's instructions on how to use it, or None.
        supported_versions: The revisions in a server's response to `server/discover`, in its
            order; `()` without such a response.
        principal: The authenticated peer, as the transport has given it; None if unknown.
        principal_key: A string that identifies the principal, as the application has given it. A
            sealed state is bound to it.
        log_level: The least severe level of log messages that the peer wants; None if it has not
            said.
        session: The `sansmcp.http.Session` of the conversation; None on other transports.
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
        """A copy of this peer with the principal of one request."""
        peer = Peer()
        for name in Peer.__slots__:
            setattr(peer, name, getattr(self, name))
        peer.principal, peer.principal_key = principal, key
        return peer

    def __repr__(self) -> str:
        """Name and revision, but no possible secrets such as the principal or the session id."""
        name: Any = None if self.info is None else self.info.get("name")
        shown = name[:80] if isinstance(name, str) else None
        return f"<Peer {shown!r} revision={self.revision}>"
