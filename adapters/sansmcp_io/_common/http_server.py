"""What applications say about a server behind HTTP. No HTTP library is needed to say it."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, final

import attrs

from sansmcp import LEGACY_REVISIONS, Config

from .bounds import check_limit

if TYPE_CHECKING:
    from sansmcp.http import Sessions

Authenticate: TypeAlias = Callable[[Mapping[str, str]], Any | Awaitable[Any]]
"""From the fields of a request, by names in lower case, to whoever sends it; or `Unauthorized`."""

PrincipalKey: TypeAlias = Callable[[Any], str]
"""From what `authenticate` returned to a string that stands for that principal and nobody else."""


def check_principal_key(
    config: Config | None, authenticate: object, principal_key: PrincipalKey | None
) -> None:
    """Refuse to seal states for users who cannot be told apart.

    Raises:
        ValueError: States are sealed and requests authenticated, and there is no `principal_key`.
    """
    if config is not None and config.state_keys and authenticate is not None and not principal_key:
        raise ValueError(
            "Config.state_keys seal states for the principals that authenticate returns: say by"
            " principal_key= which string stands for each, as in principal_key=lambda user: user.id"
        )


def key_of(principal: object, principal_key: PrincipalKey | None) -> str | None:
    """The string that stands for a principal; None where there is nobody, or none is needed.

    Raises:
        TypeError: What the application returned is no string.
    """
    if principal is None or principal_key is None:
        return None
    key = principal_key(principal)
    if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise TypeError(f"principal_key returned {type(key).__name__}, and not a string")
    return key


def check_addresses(host: str | None, addresses: Iterable[str], hosts: Sequence[str]) -> None:
    """Refuse to be open to others by accident.

    A server on this machine only is called by the names that this machine has for itself. One that
    others can reach is called by names that it cannot know; without them, any web page could
    reach it by a name of its own (DNS rebinding).

    Raises:
        ValueError: One of the addresses is not a loopback one, and `hosts` is empty.
    """
    if hosts:
        return
    from ipaddress import ip_address  # which programs on stdio need not load

    for address in addresses:
        if not ip_address(address.partition("%")[0]).is_loopback:
            raise ValueError(
                f"{host or 'every address'} can be reached from other machines: say in hosts= by"
                " which names, as in hosts=['api.example']"
            )


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
