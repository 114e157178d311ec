"""Scopes: how they are written, and which of them imply others.

Source: RFC 6749, section 3.3; MCP 2026-07-28, basic/authorization.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..._wire.setting_checks import check_mapping, names_in
from ..._wire.values import is_list_of_strings
from .._common.scopes import OFFLINE_ACCESS, SCOPE


def scopes_in(name: str, value: object) -> tuple[str, ...]:
    """The scopes of a setting, each once, in their order.

    The scope `offline_access` is between the client and the authorization server: no server
    demands it. Keeps AUTH-090.

    Raises:
        ValueError: They are no list or tuple of scopes.
    """
    scopes = tuple(dict.fromkeys(names_in(name, value)))
    for scope in scopes:
        if not SCOPE.fullmatch(scope):
            raise ValueError(
                f"{name} must hold scopes of visible ASCII without quotes and backslashes, "
                f"one in each string, not {scope!r}"
            )
    if OFFLINE_ACCESS in scopes:
        raise ValueError(
            f"{name} must not hold {OFFLINE_ACCESS} (AUTH-090): clients ask the authorization "
            "server for it, and no resource needs it"
        )
    return scopes


def implied_in(name: str, value: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
    """For each scope that implies others, all those that it implies, directly or by another one.

    Raises:
        ValueError: The value is no mapping from scopes to lists of scopes.
    """
    check_mapping(name, value)
    broad = scopes_in(name, tuple(value))
    direct = {scope: scopes_in(f"{name}[{scope!r}]", value[scope]) for scope in broad}
    return {scope: _reached_from(scope, direct) for scope in direct}


def _reached_from(scope: str, direct: Mapping[str, Iterable[str]]) -> frozenset[str]:
    reached: set[str] = set()
    waiting = [scope]
    while waiting:
        for narrower in direct.get(waiting.pop(), ()):
            if narrower not in reached:
                reached.add(narrower)
                waiting.append(narrower)
    return frozenset(reached)


def scopes_of_claim(value: object) -> frozenset[str] | None:
    """The scopes in a claim: a text with spaces between them, or a list; None for anything else.

    Their order means nothing, and upper and lower case differ. Keeps AUTH-310.
    """
    if value is None:
        return frozenset()
    if isinstance(value, str):
        return frozenset(value.split(" ")) - {""}
    return frozenset(value) if is_list_of_strings(value) else None
