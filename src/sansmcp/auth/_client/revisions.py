"""What each revision of the specification says about authorization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from ..._wire.values import Record


@attrs.frozen(kw_only=True)
class RevisionRules(Record):
    """The differences between revisions, for a client.

    Attributes:
        resource_metadata: The authorization server is found by metadata of the resource, and
            requests name the resource.
        pkce_listed: Metadata must list S256; before, only a list without it is refused.
        union: Re-authorization asks for earlier scopes, too.
        offline_access: A refresh token is asked for by a scope.
    """

    resource_metadata: bool
    pkce_listed: bool
    union: bool
    offline_access: bool


def _rules(*, metadata: bool, pkce: bool = False, newest: bool = False) -> RevisionRules:
    return RevisionRules(
        resource_metadata=metadata, pkce_listed=pkce, union=newest, offline_access=newest
    )


NEWEST: Final = "2026-07-28"
REVISIONS: Final[Mapping[str, RevisionRules]] = {
    "2024-11-05": _rules(metadata=False),  # it defines no authorization: as the next one
    "2025-03-26": _rules(metadata=False),
    "2025-06-18": _rules(metadata=True),
    "2025-11-25": _rules(metadata=True, pkce=True),
    NEWEST: _rules(metadata=True, pkce=True, newest=True),
}
