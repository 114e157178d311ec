"""When a token is renewed, and whether the user is needed for it."""

import json
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from sansmcp.auth import (
    AuthorizationClient,
    AuthorizationCode,
    Authorized,
    ClientCredentials,
    Grant,
    RegisteredClient,
    RequestWanted,
    UserAgentWanted,
)

MCP: Final = "https://mcp.example.com/mcp"
ISSUER: Final = "https://as.example.com"
REDIRECT: Final = "http://127.0.0.1:8765/callback"
METADATA: Final[dict[str, Any]] = {
    "resource": MCP,
    "authorization_servers": [ISSUER],
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "code_challenge_methods_supported": ["S256"],
    "response_types_supported": ["code"],
    "grant_types_supported": ["authorization_code", "client_credentials", "refresh_token"],
    "token_endpoint_auth_methods_supported": ["client_secret_basic"],
}
"""Both documents in one: what one of them does not know is ignored."""


def new_client(grant: Grant | None = None) -> AuthorizationClient:
    return AuthorizationClient(
        MCP,
        grant=grant or AuthorizationCode(redirect_uri=REDIRECT),
        entropy=lambda count: b"e" * count,
        registered={ISSUER: RegisteredClient(client_id="me", client_secret="s")},
    )


def authorize(client: AuthorizationClient, at: float, **token: Any) -> Authorized:
    """Let an attempt succeed, with these members in the response to the token request."""
    client.authorize(now=at, at=at)
    while True:
        event = client.next_event()
        if isinstance(event, Authorized):
            return event
        if isinstance(event, UserAgentWanted):
            state = parse_qs(urlsplit(event.url).query)["state"][0]
            client.receive_callback(f"{REDIRECT}?{urlencode({'code': 'c', 'state': state})}")
        if isinstance(event, RequestWanted):
            answer = METADATA
            if event.request.method == "POST":
                answer = {"access_token": "t", "token_type": "Bearer", **token}
            headers = [("Content-Type", "application/json")]
            client.receive_response(event.request, 200, headers, json.dumps(answer).encode())


@pytest.mark.parametrize(
    ("seconds", "due"), [(3600, 3570.0), (60, 30.0), (20, 10.0), (0, 0.0), (None, None)]
)
def test_a_token_is_due_before_its_end(seconds: int | None, due: float | None) -> None:
    """By the margin, but a token of a short life is used for half of it."""
    client = new_client()
    assert not client.needs_refresh(10.0)
    more = {} if seconds is None else {"expires_in": seconds}
    authorize(client, 1000.0, **more)
    if due is None:
        assert not client.needs_refresh(1e12)
    else:
        assert client.needs_refresh(1000.0 + due)
        assert due == 0.0 or not client.needs_refresh(999.9 + due)


def test_a_user_is_needed_without_a_refresh_token() -> None:
    """A driver asks the server first then, which may take the old token a little longer."""
    client = new_client()
    assert not client.renews_alone
    authorize(client, 1000.0)
    assert not client.renews_alone
    client = new_client()
    authorize(client, 1000.0, refresh_token="r")
    assert client.renews_alone


def test_a_client_that_acts_for_itself_needs_no_user() -> None:
    """Its credentials are all that it takes."""
    client = new_client(ClientCredentials())
    assert client.renews_alone
    authorize(client, 1000.0, expires_in=10)
    assert client.renews_alone
