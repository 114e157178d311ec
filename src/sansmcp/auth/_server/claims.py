"""Judges the claims of an access token whose origin was verified.

Source: RFC 9068, section 4; RFC 9449, section 6; MCP 2026-07-28, basic/authorization, Token
Handling.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._wire.values import is_list, is_object
from .access_token import AccessToken, key_of
from .challenges import Refusal, invalid_token
from .credentials import BEARER, DPOP
from .proofs import time_of
from .protected_resource import ProtectedResource
from .scopes import scopes_of_claim


def accept_claims(
    resource: ProtectedResource,
    claims: Mapping[str, Any],
    *,
    digest: str,
    scheme: str,
    thumbprint: str | None,
    needs_expiry: bool,
    at: float,
) -> AccessToken | Refusal:
    """Judge the claims of a token whose origin was verified.

    Keeps AUTH-010, AUTH-050, AUTH-051, AUTH-328, AUTH-329, AUTH-330, AUTH-411, AUTH-412.

    Args:
        resource: The server.
        claims: The claims: `iss`, `aud`, `exp`, ...
        digest: What stands for the token if it names neither user nor client.
        scheme: The scheme of the request.
        thumbprint: The thumbprint of the key of the proof; None without one.
        needs_expiry: Whether the token must say when it expires.
        at: The time in Unix seconds.
    """
    issuer = claims.get("iss")
    if not isinstance(issuer, str) or issuer not in resource.authorization_servers:
        text = "the token is of an issuer that this server does not trust"
        return invalid_token(text, "AUTH-010")
    if not _is_audience(resource, claims.get("aud")):
        return invalid_token("the token was not issued for this server", "AUTH-050")
    refusal = _judge_times(resource, claims, needs_expiry, at) or _judge_binding(
        claims.get("cnf"), scheme, thumbprint
    )
    if refusal is not None:
        return refusal
    subject, client_id = claims.get("sub"), claims.get("client_id", claims.get("azp"))
    scopes = scopes_of_claim(claims.get(resource.scope_claim))
    if scopes is None or not all(
        value is None or isinstance(value, str) for value in (subject, client_id)
    ):
        return invalid_token("a claim of the token has another form than it should", "AUTH-010")
    token = AccessToken(
        key=key_of(issuer, subject, client_id, digest),
        issuer=issuer,
        subject=subject,
        client_id=client_id,
        scopes=scopes,
        expires_at=time_of(claims.get("exp")),
        scheme=scheme,
        claims=claims,
        resource=resource,
    )
    if token.missing(resource.required_scopes):
        text = "the token lacks a scope that each request to this server needs"
        return Refusal(403, "insufficient_scope", text, "AUTH-062")
    return token


def _is_audience(resource: ProtectedResource, value: object) -> bool:
    """Whether one of the audiences of a token is this server. Keeps AUTH-049, AUTH-328."""
    names = value if is_list(value) else [value]
    own = canonical(resource.resource)
    return any(
        isinstance(name, str) and (name in resource.audiences or canonical(name) == own)
        for name in names
    )


def _judge_times(
    resource: ProtectedResource, claims: Mapping[str, Any], needs_expiry: bool, at: float
) -> Refusal | None:
    expires, begins, issued = (claims.get(name) for name in ("exp", "nbf", "iat"))
    times = [time_of(value) for value in (expires, begins, issued)]
    if any(
        time is None and given is not None
        for time, given in zip(times, (expires, begins, issued), strict=True)
    ):
        return invalid_token("a time of the token is no number of seconds", "AUTH-330")
    expiry, beginning, issuing = times
    if expiry is None and needs_expiry:
        return invalid_token("the token does not say when it expires", "AUTH-330")
    if expiry is not None and expiry <= at - resource.leeway:
        return invalid_token("the token has expired", "AUTH-011")
    if any(time is not None and time > at + resource.leeway for time in (beginning, issuing)):
        return invalid_token("the token is not valid yet", "AUTH-330")
    return None


def _judge_binding(confirmation: object, scheme: str, thumbprint: str | None) -> Refusal | None:
    """Judge the key that a token is bound to. Keeps AUTH-411."""
    if confirmation is None:
        if scheme == BEARER:
            return None
        return invalid_token("the token is bound to no key: its scheme is Bearer", "AUTH-411")
    bound = confirmation.get("jkt") if is_object(confirmation) else None
    if not isinstance(bound, str):
        return invalid_token("the token is bound in a way that this server lacks", "AUTH-411")
    if scheme != DPOP:
        return invalid_token("the token is bound to a key: its scheme is DPoP", "AUTH-411")
    if thumbprint != bound:
        return invalid_token("the proof has another key than the token is bound to", "AUTH-411")
    return None


def canonical(url: str) -> str:
    """A URL with scheme and host in lower case, and without a slash right behind the host.

    Anything that is no URL stays as it is. Keeps AUTH-049.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}://{host.lower()}{slash if path else ''}{path}"
