"""Who may reach a server, as far as no loop is involved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, TypeAlias

Authenticate: TypeAlias = Callable[[Mapping[str, str]], Any | Awaitable[Any]]
"""From the fields of a request, by names in lower case, to whoever sends it; or `Unauthorized`."""


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
    for address in addresses:
        if not ip_address(address.partition("%")[0]).is_loopback:
            raise ValueError(
                f"{host or 'every address'} can be reached from other machines: say in hosts= by"
                " which names, as in hosts=['api.example']"
            )
