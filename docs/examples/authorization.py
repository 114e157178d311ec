"""A client is authorized by servers that are a table: no socket, no browser, no clock."""

import json
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

# -- client
from sansmcp.auth import (
    AuthorizationClient,
    AuthorizationCode,
    AuthorizationFailed,
    Authorized,
    CredentialsToStore,
    RequestWanted,
    StepTaken,
    UserAgentWanted,
)
from sansmcp.http import AuthorizationRequired, Challenge

MCP, ISSUER = "https://mcp.example.com/mcp", "https://as.example.com"
DOCUMENTS: dict[str, dict[str, Any]] = {
    "https://mcp.example.com/.well-known/oauth-protected-resource/mcp": {
        "resource": MCP,
        "authorization_servers": [ISSUER],
        "scopes_supported": ["files:read"],
    },
    "https://as.example.com/.well-known/oauth-authorization-server": {
        "issuer": ISSUER,
        "authorization_endpoint": "https://as.example.com/authorize",
        "token_endpoint": "https://as.example.com/token",
        "registration_endpoint": "https://as.example.com/register",
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
    },
    "https://as.example.com/register": {"client_id": "client-1"},
    "https://as.example.com/token": {
        "access_token": "token-1",
        "token_type": "Bearer",
        "expires_in": 3600,
    },
}
numbers = count(1)


def entropy(size: int) -> bytes:
    return next(numbers).to_bytes(size, "big")  # in a program: secrets.token_bytes


def user_agent(url: str) -> str:
    """Open the URL, let the user agree, and return where the user was sent."""
    asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    answer = urlencode({"code": "code-1", "state": asked["state"], "iss": ISSUER})
    return f"{asked['redirect_uri']}?{answer}"


grant = AuthorizationCode(redirect_uri="http://127.0.0.1:8765/callback")
client = AuthorizationClient(MCP, grant=grant, entropy=entropy)
refused = AuthorizationRequired(status=401, challenges=(Challenge("bearer", {}),), kept=True)

now, at = 0.0, 1_800_000_000.0  # the caller's clock, and Unix time
client.authorize(refused, revision="2026-07-28", now=now, at=at)
while (event := client.next_event()) is not None:
    match event:
        case RequestWanted(request=request):
            body = json.dumps(DOCUMENTS[request.url]).encode()
            client.receive_response(request, 200, [], body, now=now)
        case UserAgentWanted(url=url):
            client.receive_callback(user_agent(url), now=now)
        case StepTaken(step=step, outcome=outcome, conclusion=conclusion, rule=rule):
            print(f"{step.value}: {outcome.value}, {conclusion} ({rule})")
        case CredentialsToStore(issuer=issuer):
            print(f"store the credentials of {issuer}")
        case Authorized(scopes=scopes):
            print("authorized for", *scopes)
        case AuthorizationFailed(step=step, text=text):
            print(f"failed at {step.value}: {text}")
        case _:
            raise AssertionError(event)
print(client.headers("POST", MCP, at=at))
# -- end
