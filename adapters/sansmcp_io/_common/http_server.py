"""The settings of a server over HTTP. They need no HTTP library."""

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
"""Takes the headers of a request, by names in lower case, and returns the principal, or raises
`Unauthorized`."""

PrincipalKey: TypeAlias = Callable[[Any], str]
"""Takes what `authenticate` returned, and returns a string that stands for that principal only."""


Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]
Response: TypeAlias = tuple[int, Headers, bytes]
"""Status, headers and body of a response that is complete."""


def check_principal_key(
    config: Config | None,
    authenticate: object,
    principal_key: PrincipalKey | None,
    *,
    has_tasks: bool = False,
) -> None:
    """Refuse settings that need a key that tells users apart, if there is none.

    Raises:
        ValueError: States are sealed or there are tasks, requests are authenticated, and there is
            no `principal_key`.
    """
    if authenticate is None or principal_key:
        return
    if has_tasks:
        raise ValueError(
            "a task belongs to the principal that authenticate returns: give principal_key=, which"
            " names each of them, such as principal_key=lambda user: user.id"
        )
    if config is not None and config.state_keys:
        raise ValueError(
            "Config.state_keys seals states for the principals that authenticate returns: give"
            " principal_key=, which names each of them, such as principal_key=lambda user: user.id"
        )


def key_of(principal: object, principal_key: PrincipalKey | None) -> str | None:
    """Return the key of a principal; None without a principal or without a function for the key.

    Raises:
        TypeError: `principal_key` returned something other than a string.
    """
    if principal is None or principal_key is None:
        return None
    key = principal_key(principal)
    if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise TypeError(f"principal_key returned {type(key).__name__}, and not a string")
    return key


def check_addresses(host: str | None, addresses: Iterable[str], hosts: Sequence[str]) -> None:
    """Refuse to listen for other machines unless `hosts` is given.

    A server that only this machine can reach is called by the loopback names. A server that other
    machines can reach is called by names that it cannot know by itself; without them, any web page
    could reach it under a name of its own (DNS rebinding).

    Raises:
        ValueError: One of the addresses is not a loopback one, and `hosts` is empty.
    """
    if hosts:
        return
    from ipaddress import ip_address  # which programs on stdio need not load

    for address in addresses:
        if not ip_address(address.partition("%")[0]).is_loopback:
            raise ValueError(
                f"{host or 'every address'} can be reached from other machines: give the names"
                " that it is called by in hosts=, such as hosts=['api.example']"
            )


@final
@attrs.frozen(kw_only=True)
class HTTPLimits:
    """Limits on the connections of a server. Times are in seconds; `math.inf` means no limit.

    The size of a body and the amount of unsent output are limited by `sansmcp.Config`.
    """

    connections: int = attrs.field(default=1000, validator=check_limit)
    """Connections at a time; a further one gets 503."""
    head_bytes: int = attrs.field(default=16_384, validator=check_limit)
    """Bytes of a request line with its headers, and of the line before a chunk; more gets 431."""
    head: float = attrs.field(default=10.0, validator=check_limit)
    """Seconds for a head from its first byte on, and for the first byte of a client; then 408."""
    body: float = attrs.field(default=60.0, validator=check_limit)
    """Seconds for a body, from the end of the head on; then 408."""
    idle: float = attrs.field(default=75.0, validator=check_limit)
    """Seconds between a response and the next request; then the connection is closed."""
    stall: float = attrs.field(default=30.0, validator=check_limit)
    """Seconds in which a client must read some unsent output; else its connection is closed."""
    linger: float = attrs.field(default=2.0, validator=check_limit)
    """Seconds to read the response for a client that is refused while it still sends."""
    held_bytes: int = attrs.field(default=256 * 1024 * 1024, validator=check_limit)
    """Bytes of incomplete bodies and unsent output, on all connections together. Above this, the
    connection that holds the most is closed, with 503 where that is possible."""
    drained_bytes: int = attrs.field(default=65_536, validator=check_limit)
    """Bytes of a body that are read though it is not needed; with a longer one, the connection is
    closed."""


def session_settings(sessions: bool | Sessions, revisions: Sequence[str]) -> Sessions | None:
    """Return the settings for sessions; None if there are no sessions.

    Args:
        sessions: True for the usual settings, False for no sessions, or settings.
        revisions: The revisions to speak; only legacy ones have sessions.

    Raises:
        ValueError: `sessions` is none of these.
    """
    # Imported here: programs on stdio do not need HTTP.
    from sansmcp.http import Sessions

    if isinstance(sessions, Sessions):
        return sessions
    if not isinstance(sessions, bool):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise ValueError(f"sessions must be True, False or Sessions, not {sessions!r:.80}")
    if sessions and any(revision in LEGACY_REVISIONS for revision in revisions):
        return Sessions(new_id=new_session_id)
    return None


def new_session_id() -> str:
    """Return a session id that cannot be guessed."""
    return secrets.token_urlsafe(24)
