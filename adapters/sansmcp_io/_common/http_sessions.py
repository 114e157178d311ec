"""How an endpoint keeps sessions, from what an application says; no loop is involved."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sansmcp import LEGACY_REVISIONS

if TYPE_CHECKING:
    from sansmcp.http import Sessions


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
