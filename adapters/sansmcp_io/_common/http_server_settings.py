"""What the application says of a server behind HTTP. No HTTP library is needed to say it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sansmcp import LEGACY_REVISIONS

if TYPE_CHECKING:
    from sansmcp.http import Sessions


from typing import final

import attrs

from .defaults import check_limit


@final
@attrs.frozen(kw_only=True)
class HTTPLimits:
    """Limits on connections; times are in seconds, and `math.inf` is no limit, for any of them.

    How large a body may be, and how much of the output may wait, is for `sansmcp.Config` to say.
    """

    connections: int = attrs.field(default=1000, validator=check_limit)
    """Connections at a time; one over it gets 503."""
    head_bytes: int = attrs.field(default=16_384, validator=check_limit)
    """Of a request line with its fields, and of the line before a chunk; over it: 431."""
    head: float = attrs.field(default=10.0, validator=check_limit)
    """For a head, from its first byte on, and for the first byte on a new connection: 408."""
    body: float = attrs.field(default=60.0, validator=check_limit)
    """For a body, from the end of the head on: 408."""
    idle: float = attrs.field(default=75.0, validator=check_limit)
    """Between a response and the next request; then the connection is closed."""
    stall: float = attrs.field(default=30.0, validator=check_limit)
    """In which a client must have read something of what waits to be sent, or it is given up."""
    linger: float = attrs.field(default=2.0, validator=check_limit)
    """In which a client whose request was cut short can read why, while it still sends."""
    held_bytes: int = attrs.field(default=256 * 1024 * 1024, validator=check_limit)
    """Of bodies that are not complete and of output that is not read, on all connections together.
    Over it, the connection that holds the most is given up, with 503 where that is possible."""
    drained_bytes: int = attrs.field(default=65_536, validator=check_limit)
    """A body of no use is read if it has no more than this; of a longer one, the connection is
    closed."""


def session_settings(sessions: bool | Sessions, revisions: Sequence[str]) -> Sessions | None:
    """The usual settings for True, where there is a revision that has sessions; None: no sessions.

    Args:
        sessions: What the application said.
        revisions: The revisions that are spoken.

    Raises:
        ValueError: What the application said is neither.
    """
    # Here, since programs on stdio need none of it.
    from sansmcp.http import Sessions

    if isinstance(sessions, Sessions):
        return sessions
    if not isinstance(sessions, bool):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise ValueError(f"sessions must be True, False or Sessions, not {sessions!r:.80}")
    if sessions and any(revision in LEGACY_REVISIONS for revision in revisions):
        return Sessions(new_id=new_session_id)
    return None


def new_session_id() -> str:
    """A session id that nobody can guess."""
    return secrets.token_urlsafe(24)
