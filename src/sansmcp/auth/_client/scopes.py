"""The scopes to ask for, and how often.

Source: MCP 2026-07-28, basic/authorization, Scope Selection Strategy and Scope Challenge Handling;
RFC 6749, section 3.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from .._common.scopes import OFFLINE_ACCESS, SCOPE
from .core import Refused
from .events import AuthorizationFailure

_MAX_REMEMBERED: Final = 64


def read_scopes(text: str | None) -> tuple[str, ...] | None:
    """The scopes in a text that separates them by spaces; None without any. Keeps AUTH-310."""
    found = unique((text or "").split(" "))
    return found or None


def unique(scopes: Iterable[str]) -> tuple[str, ...]:
    """The valid ones of these scopes, each once."""
    return tuple(dict.fromkeys(one for one in scopes if SCOPE.fullmatch(one)))


@attrs.define(eq=False, repr=False)
class ScopeMemory:
    """The scopes that were asked for, and the step-ups that were tried.

    Attributes:
        requested: The scopes that the last authorization has chosen.
    """

    _max_step_ups: int
    requested: tuple[str, ...] = attrs.field(default=(), init=False)
    _step_ups: dict[frozenset[str], int] = attrs.field(
        factory=dict[frozenset[str], int], init=False
    )

    def choose(
        self,
        challenged: tuple[str, ...] | None,
        wanted: tuple[str, ...] | None,
        supported: tuple[str, ...] | None,
        *,
        union: bool,
    ) -> tuple[str, ...]:
        """The scopes that are named, which may be none.

        Keeps AUTH-059, AUTH-060, AUTH-061, AUTH-066, AUTH-298, AUTH-299, AUTH-300, AUTH-301.

        Args:
            challenged: The scopes that the challenge names.
            wanted: The scopes that the application wants.
            supported: The scopes that the metadata of the resource lists.
            union: Whether the revision keeps earlier scopes.
        """
        if challenged is None:
            scopes = self.requested or wanted or supported or ()
        elif union:
            scopes = (*self.requested, *challenged)
        else:
            scopes = challenged
        return unique(scopes)

    def count_step_up(self, challenged: tuple[str, ...]) -> None:
        """Count one more step-up for the same scopes.

        Keeps AUTH-065, AUTH-304, AUTH-305, AUTH-308.

        Raises:
            Refused: There were as many as are allowed.
        """
        key = frozenset(challenged)
        count = self._step_ups.get(key, 0)
        self._remember(key, count + 1)
        if count >= self._max_step_ups:
            raise Refused(
                AuthorizationFailure.TOO_MANY_ATTEMPTS,
                f"the server still demands {' '.join(challenged)} after {count} step-ups",
                "AUTH-304",
            )

    def deny(self, challenged: tuple[str, ...]) -> None:
        """Remember that a token was given without these scopes: no further step-up gets them."""
        self._remember(frozenset(challenged), self._max_step_ups)

    def forget_step_ups(self) -> None:
        """Count anew: a login that was no step-up has given a token."""
        self._step_ups.clear()

    def _remember(self, key: frozenset[str], count: int) -> None:
        self._step_ups.pop(key, None)
        if len(self._step_ups) >= _MAX_REMEMBERED:
            del self._step_ups[next(iter(self._step_ups))]
        self._step_ups[key] = count


def of_resource(scopes: tuple[str, ...]) -> tuple[str, ...]:
    """The scopes without the one for refresh tokens, which is none of the resource."""
    return tuple(one for one in scopes if one != OFFLINE_ACCESS)


def with_offline_access(scopes: tuple[str, ...], supported: tuple[str, ...]) -> tuple[str, ...]:
    """The scopes with the one for refresh tokens, exactly where the authorization server lists it.

    That is a rule of 2026-07-28. Before, it is a scope as any other one: asked for if a challenge,
    the application or the metadata of the resource names it, and not otherwise, since the choice of
    scopes was to be made from them alone (AUTH-061, AUTH-299). Keeps AUTH-292, AUTH-293, AUTH-294.
    """
    scopes = of_resource(scopes)
    return (*scopes, OFFLINE_ACCESS) if scopes and OFFLINE_ACCESS in supported else scopes
