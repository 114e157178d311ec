"""Who may reach a server, as far as no loop is involved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from sansmcp import Config

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
