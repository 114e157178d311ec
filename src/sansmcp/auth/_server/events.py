"""The events of a `ResourceServer`, and the handle of one request that it checks."""

from __future__ import annotations

from typing import Any, TypeAlias, final

import attrs

from ..._wire.values import Record
from .._common.requests import RequestWanted
from .access_token import AccessToken


@final
class AccessCheck:
    """One HTTP request that is checked: it ends in `AccessGranted` or `AccessRefused`.

    Attributes:
        data: Anything; the slot is the caller's.
    """

    __slots__ = ("__weakref__", "_open", "_state", "data")

    def __init__(self, state: Any) -> None:
        self._open = True
        self._state = state  # of the server that has begun the check
        self.data: Any = None

    @property
    def open(self) -> bool:
        """Whether the ending is still to come."""
        return self._open

    def __repr__(self) -> str:
        return f"<AccessCheck open={self._open}>"


@final
@attrs.frozen(kw_only=True)
class TokenReceived(Record):
    """A token is to be verified: answer with `verified`, `reject` or `fail` of the server.

    It comes where `ResourceServer` was made without a verifier.

    Attributes:
        check: The request that it came with.
        token: The token. It is a secret of the client.
    """

    check: AccessCheck
    token: str = attrs.field(repr=False)


@final
@attrs.frozen(kw_only=True)
class AccessGranted(Record):
    """A request may be served: give `token` and `token.key` to `ServerEndpoint.admit`.

    Attributes:
        check: The request.
        token: The principal.
    """

    check: AccessCheck
    token: AccessToken


@final
@attrs.frozen(kw_only=True)
class AccessRefused(Record):
    """A request must not be served: refuse it in this way, by `ServerExchange.refuse`.

    Attributes:
        check: The request.
        status: The status: 400, 401, 403 or 503.
        text: One sentence for the client.
        headers: Names and values: `www-authenticate` and others.
        error: The OAuth error code; None without credentials, and where nothing could be found out.
        rule: The id of the rule that the request breaks.
        cause: What else is known of the cause, for a log on the server; may be empty.
    """

    check: AccessCheck
    status: int
    text: str
    headers: tuple[tuple[str, str], ...]
    error: str | None
    rule: str
    cause: str = ""


AccessEvent: TypeAlias = RequestWanted | TokenReceived | AccessGranted | AccessRefused
