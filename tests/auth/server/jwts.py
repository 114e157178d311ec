"""Access tokens that are JWTs, keys, and a server that reads the keys of its issuer."""

import json
from typing import Any, Final

from joserfc import jws
from joserfc.jwk import ECKey, RSAKey

from sansmcp import JSONObject
from sansmcp.auth import (
    AccessCheck,
    AccessGranted,
    AccessRefused,
    HTTPRequest,
    RequestWanted,
    ResourceServer,
)
from sansmcp.auth.jose import JWTVerifier
from tests.auth.server.tools import AT, ISSUER, claims_of, ending_of, resource_of

METADATA: Final = "https://as.example/.well-known/oauth-authorization-server"
OPENID: Final = "https://as.example/.well-known/openid-configuration"
KEYS: Final = "https://as.example/keys"


def ec_key(kid: str | None = "k1", curve: str = "P-256") -> ECKey:
    return ECKey.generate_key(curve, None if kid is None else {"kid": kid})


KEY: Final = ec_key()
OTHER: Final = ec_key("k2")
RSA: Final = RSAKey.generate_key(2048, {"kid": "rsa"})


def public(*keys: Any, **more: Any) -> JSONObject:
    """A key set with the public keys."""
    return {"keys": [{**key.as_dict(private=False), **more} for key in keys]}


def token_of(key: Any = KEY, alg: str = "ES256", typ: str | None = "at+jwt", **more: Any) -> str:
    """A token that is signed by a key; None takes a claim or the type away."""
    header: dict[str, Any] = {"alg": alg}
    if typ is not None:
        header["typ"] = typ
    if key.kid is not None:
        header["kid"] = key.kid
    header |= more.pop("header", {})
    payload = json.dumps(claims_of(**more))  # `jwt.encode` would add a type
    return jws.serialize_compact(header, payload, key, algorithms=[alg])


def server_of(**settings: Any) -> ResourceServer:
    issuers = settings.pop("issuers", [ISSUER])
    resource = resource_of(authorization_servers=issuers)
    return ResourceServer(resource, JWTVerifier(issuers, **settings))


def known(**settings: Any) -> ResourceServer:
    """A server that was given the keys."""
    return server_of(key_sets={ISSUER: public(KEY, OTHER, RSA)}, **settings)


def begin(server: ResourceServer, token: str, at: float = AT) -> AccessCheck:
    return server.check("POST", "/mcp", {"authorization": f"Bearer {token}"}, at=at)


def outcome(server: ResourceServer, token: str, at: float = AT) -> AccessGranted | AccessRefused:
    check = begin(server, token, at)
    ending = ending_of(server)
    assert ending.check is check
    return ending


def wanted(server: ResourceServer, url: str) -> HTTPRequest:
    event = server.next_event()
    assert isinstance(event, RequestWanted)
    assert event.request.url == url
    assert event.request.method == "GET"
    return event.request


def answer(server: ResourceServer, request: HTTPRequest, body: Any, at: float = AT) -> None:
    server.receive_response(request, 200, (), json.dumps(body).encode(), at=at)


def metadata(**more: Any) -> JSONObject:
    return {"issuer": ISSUER, "jwks_uri": KEYS, **more}


def learned(at: float = AT, **settings: Any) -> ResourceServer:
    """A server that has read the key `KEY` at this time."""
    server = server_of(jwks_uris={ISSUER: KEYS}, **settings)
    begin(server, token_of(exp=at + 60), at)
    answer(server, wanted(server, KEYS), public(KEY), at)
    assert isinstance(ending_of(server), AccessGranted)
    return server
