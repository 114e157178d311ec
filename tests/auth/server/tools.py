"""A protected resource, claims of tokens for it, and checks of single requests."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any, Final

from sansmcp import JSONObject
from sansmcp.auth import (
    AccessCheck,
    AccessGranted,
    AccessRefused,
    AccessToken,
    DPoP,
    Proof,
    ProtectedResource,
    ResourceServer,
    TokenReceived,
)
from sansmcp.http import Challenge

AT: Final = 1_700_000_000.0
URL: Final = "https://api.example/mcp"
ISSUER: Final = "https://as.example"
TOKEN: Final = "mF_9.B5f-4.1JqM"
METADATA: Final = "https://api.example/.well-known/oauth-protected-resource/mcp"
_PART: Final = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def resource_of(**settings: Any) -> ProtectedResource:
    """A resource with one authorization server."""
    settings.setdefault("authorization_servers", [ISSUER])
    return ProtectedResource(settings.pop("resource", URL), **settings)


def claims_of(**more: Any) -> JSONObject:
    """The claims of a token that is good for a minute; None takes a claim away."""
    claims = {
        "iss": ISSUER,
        "aud": URL,
        "sub": "user-1",
        "client_id": "client-1",
        "iat": AT - 10,
        "exp": AT + 60,
        "scope": "read",
    }
    return {name: value for name, value in {**claims, **more}.items() if value is not None}


def ending_of(server: ResourceServer) -> AccessGranted | AccessRefused:
    """The only event there is, which is an ending."""
    event = server.next_event()
    assert isinstance(event, AccessGranted | AccessRefused)
    assert server.next_event() is None
    assert not event.check.open
    return event


def begun(server: ResourceServer, **fields: str) -> AccessCheck:
    """A check that waits for the application to verify its token."""
    check = server.check("POST", "/mcp", fields or {"authorization": f"Bearer {TOKEN}"}, at=AT)
    event = server.next_event()
    assert isinstance(event, TokenReceived)
    assert event.check is check
    return check


def judged(claims: JSONObject, at: float = AT, **settings: Any) -> AccessGranted | AccessRefused:
    """The ending of a request whose token has these claims, as a verifier says."""
    server = ResourceServer(resource_of(**settings))
    assert server.verified(begun(server), claims, at=at)
    return ending_of(server)


def granted(claims: JSONObject, at: float = AT, **settings: Any) -> AccessToken:
    """The principal of such a request."""
    ending = judged(claims, at, **settings)
    assert isinstance(ending, AccessGranted), ending
    return ending.token


def refused(claims: JSONObject, at: float = AT, **settings: Any) -> AccessRefused:
    """The refusal of such a request."""
    ending = judged(claims, at, **settings)
    assert isinstance(ending, AccessRefused), ending
    return ending


def challenges_in(text: str) -> dict[str, Challenge]:
    """The challenges in a header, by scheme in lower case."""
    found: dict[str, Challenge] = {}
    for piece in re.split(r"(?:^|, )(?=[A-Za-z]+ )", text):
        if piece:
            scheme, _, parameters = piece.partition(" ")
            read = {
                name: re.sub(r"\\(.)", r"\1", value) for name, value in _PART.findall(parameters)
            }
            found[scheme.lower()] = Challenge(scheme.lower(), read)
    return found


def challenge_of(refusal: AccessRefused, scheme: str = "bearer") -> dict[str, str]:
    """The parameters of the challenge of a refusal, for one scheme."""
    return challenges_in(dict(refusal.headers)["www-authenticate"])[scheme].parameters


# ------------------------------------------------------------------------------------- proofs


class PlainProofs:
    """A reader of proofs as an application may have one: here a proof is JSON in hexadecimal."""

    def read(self, proof: str, algorithms: Sequence[str]) -> Proof:
        """Take a proof at its word."""
        read = json.loads(bytes.fromhex(proof))
        return Proof(header=read["header"], claims=read["claims"], thumbprint=read["thumbprint"])


def proof_of(
    jti: str | None = "j1",
    *,
    thumbprint: str = "key-1",
    header: JSONObject | None = None,
    **more: Any,
) -> str:
    """A proof for a POST with `TOKEN`; None takes a claim away."""
    ath = base64.urlsafe_b64encode(hashlib.sha256(TOKEN.encode()).digest()).decode().rstrip("=")
    claims = {"jti": jti, "htm": "POST", "htu": URL, "iat": AT, "ath": ath, **more}
    whole = {
        "header": {"typ": "dpop+jwt", "alg": "ES256", "jwk": {"kty": "EC"}, **(header or {})},
        "claims": {name: value for name, value in claims.items() if value is not None},
        "thumbprint": thumbprint,
    }
    return json.dumps(whole).encode().hex()


def bound_server(**settings: Any) -> ResourceServer:
    """A server that takes tokens which are bound to a key."""
    return ResourceServer(resource_of(dpop=DPoP(reader=PlainProofs(), **settings)))


def presented(
    server: ResourceServer,
    proof: str | None,
    *,
    method: str = "POST",
    target: str = "/mcp",
    scheme: str = "DPoP",
    at: float = AT,
    **claims: Any,
) -> AccessGranted | AccessRefused:
    """The ending of a request with a token that is bound to `key-1`, and this proof."""
    fields = {"authorization": f"{scheme} {TOKEN}"} | ({} if proof is None else {"dpop": proof})
    check = server.check(method, target, fields, at=at)
    event = server.next_event()
    if isinstance(event, TokenReceived):
        bound = claims_of(**{"cnf": {"jkt": "key-1"}, "exp": at + 60, "iat": at, **claims})
        assert server.verified(check, bound, at=at)
        event = server.next_event()
    assert isinstance(event, AccessGranted | AccessRefused)
    assert event.check is check
    assert server.open_checks == 0
    return event
