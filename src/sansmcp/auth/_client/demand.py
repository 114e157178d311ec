"""What a response of the MCP server demands.

Source: RFC 6750, section 3; RFC 9449, section 7; RFC 9728, section 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..._wire.values import Record
from .scopes import read_scopes

if TYPE_CHECKING:
    from ...http import AuthorizationRequired, Challenge

_SCHEMES: Final = ("bearer", "dpop")


@attrs.frozen(kw_only=True)
class Demand(Record):
    """The parameters of the challenges that a client acts on."""

    status: int
    resource_metadata: str | None = None
    scopes: tuple[str, ...] | None = None
    errors: frozenset[str] = frozenset()
    description: str | None = None


def read_demand(challenge: AuthorizationRequired) -> Demand:
    """The demand of a response: other schemes than those of OAuth are skipped.

    Keeps AUTH-221, AUTH-222.
    """
    ours = [one for one in challenge.challenges if one.scheme in _SCHEMES]
    return Demand(
        status=challenge.status,
        resource_metadata=_first(ours, "resource_metadata"),
        scopes=read_scopes(_first(ours, "scope")),
        errors=frozenset(one.parameters.get("error", "") for one in ours),
        description=_first(ours, "error_description"),
    )


def _first(challenges: list[Challenge], name: str) -> str | None:
    found = (one.parameters[name] for one in challenges if name in one.parameters)
    return next(found, None)
