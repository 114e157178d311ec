"""The access token that a request came with, as its verified claims say: the principal.

Source: RFC 9068, section 2.2; RFC 7662, section 2.2; RFC 9449, section 6.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, final

import attrs

from ..._wire.values import Record
from .challenges import challenge, description
from .credentials import BEARER
from .scopes import scopes_in

if TYPE_CHECKING:
    from .protected_resource import ProtectedResource


@final
@attrs.frozen(kw_only=True)
class AccessToken(Record):
    """Who sends a request, as an access token says that was verified: the principal.

    Two of them are equal if issuer, subject and client are: a session is kept when its client
    refreshes its token, and another user or client does not get into it. The token itself is not in
    it, so that no handler can pass it on. Keeps AUTH-334, AUTH-052.

    Attributes:
        key: A string that stands for issuer, subject and client, and for no others. Without subject
            and client it stands for the token. Sealed states are bound to it.
        issuer: The authorization server that has issued it.
        subject: The user; or the client, where it acts for itself. None: the token names none.
        client_id: The client; None: the token names none.
        scopes: The scopes that were granted, without those that they imply.
        expires_at: When it expires, in Unix seconds; None: that is not known.
        scheme: The scheme of the request: `Bearer` or `DPoP`.
        claims: All its claims.
        resource: The protected resource that has accepted it.
    """

    key: str
    issuer: str = attrs.field(eq=False)
    subject: str | None = attrs.field(eq=False)
    client_id: str | None = attrs.field(eq=False)
    scopes: frozenset[str] = attrs.field(eq=False)
    expires_at: float | None = attrs.field(eq=False)
    scheme: str = attrs.field(eq=False)
    claims: Mapping[str, Any] = attrs.field(eq=False, repr=False)
    resource: ProtectedResource = attrs.field(eq=False, repr=False)

    @property
    def ends_at(self) -> float | None:
        """When requests with this token begin to be refused, in Unix seconds; None: that is open.

        That is its expiry and the leeway for clocks that differ. What a request has opened, such as
        a stream, does not end by itself then: compare this time with that of your clock, and
        end the exchange, if it must not outlast its token.
        """
        expires_at = self.expires_at
        return None if expires_at is None else expires_at + self.resource.leeway

    def missing(self, scopes: Iterable[str]) -> frozenset[str]:
        """The scopes that this token lacks, those that its scopes imply considered.

        Keeps AUTH-064.
        """
        return frozenset(scopes) - self.resource.covered_by(self.scopes)

    def covers(self, scopes: Iterable[str]) -> bool:
        """Whether this token has all these scopes, or broader ones that imply them."""
        return not self.missing(scopes)


def key_of(issuer: str, subject: str | None, client_id: str | None, digest: str) -> str:
    """The key of an access token; its digest is used where it names neither user nor client."""
    if subject is None and client_id is None:
        return json.dumps([issuer, digest])
    return json.dumps([issuer, subject, client_id])


def insufficient_scope(principal: object, scopes: Iterable[str], text: str) -> str:
    """The value of `WWW-Authenticate` for a request whose principal lacks scopes.

    Keeps AUTH-062, AUTH-063, AUTH-324.

    Args:
        principal: The principal of the request: an `AccessToken`, whose resource knows more about
            the challenge; or any other object.
        scopes: All scopes that the operation needs.
        text: One sentence for the client, up to 300 characters. Those that are not allowed there
            are replaced.

    Raises:
        ValueError: These are no scopes.
    """
    error = "insufficient_scope"
    if isinstance(principal, AccessToken):
        resource = principal.resource
        return resource.challenge(error, text, scopes=scopes, scheme=principal.scheme)
    needed = " ".join(scopes_in("scopes", tuple(scopes)))
    described = ("error_description", description(text))
    return challenge(BEARER, [("error", error), described, ("scope", needed)])
