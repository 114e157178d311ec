"""The authorization server that the tests of this room share, and a user who agrees to everything.

The server is `tests/peers/oidc_provider.mjs`, whose head says what it does.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, Literal
from urllib.parse import quote_plus, urljoin, urlsplit

import attrs
import httpx2

from sansmcp import JSONObject
from sansmcp_io.oauth import FunctionUserAgent, MemoryTokenStorage, OAuth
from tests.interop.peers import authorization_server
from tests.interop.talk_http import running

DEFAULTS: Final[JSONObject] = {
    "ahead": 0,
    "lifetime": 3600,
    "format": "jwt",
    "refresh": "asked",
}
RESOURCE_SERVER: Final = ("resource server", "50% of a secret + more")
"""The client id and the secret with which resource servers introspect tokens."""
PATIENT: Final[dict[str, Any]] = {
    "info": {"name": "test-client", "version": "1.0"},
    "start_timeout": 200,
    "probe_timeout": 100,
}
"""Options of clients: a server that is slow to start must not be taken for an old one."""
_MAX_HOPS: Final = 10


@attrs.frozen
class Provider:
    """The authorization server, as its administrator sees it.

    Attributes:
        issuer: Its issuer identifier.
    """

    issuer: str
    _http: httpx2.Client = attrs.field(repr=False)

    @property
    def introspection_endpoint(self) -> str:
        return f"{self.issuer}/token/introspection"

    def control(self, **settings: float | str) -> list[str]:
        """Change settings; return the grant types of the token responses since the last time."""
        response = self._http.post(f"{self.issuer}/control", json=settings)
        grants: list[str] = response.raise_for_status().json()["grants"]
        return grants

    def expire(self, token: str) -> None:
        """Let an access token expire: it is forgotten when its clock has gone on for a while.

        The clock is put back then, since the times in new tokens must be those of other clocks.
        """
        self.control(ahead=2 * DEFAULTS["lifetime"])
        auth = (quote_plus(RESOURCE_SERVER[0]), quote_plus(RESOURCE_SERVER[1]))
        response = self._http.post(self.introspection_endpoint, data={"token": token}, auth=auth)
        assert response.raise_for_status().json() == {"active": False}
        self.control(ahead=DEFAULTS["ahead"])

    def revoke(self, client_id: str, token: str) -> None:
        """Revoke a token in the name of its client."""
        form = {"token": token, "client_id": client_id}
        self._http.post(f"{self.issuer}/token/revocation", data=form).raise_for_status()


def consent(url: str) -> str:
    """Be the user: follow the redirects of the authorization server, until it sends us away."""
    origin = urlsplit(url)[:2]
    with httpx2.Client() as browser:
        for _ in range(_MAX_HOPS):
            response = browser.get(url)
            assert response.is_redirect, response.text
            url = urljoin(url, response.headers["location"])
            if urlsplit(url)[:2] != origin:
                return url
    raise AssertionError("the redirects do not end")


@contextmanager
def serving_tokens() -> Generator[Provider]:
    """Run the authorization server."""
    with running(authorization_server().command) as port, httpx2.Client() as http:
        yield Provider(f"http://127.0.0.1:{port}", http)


@attrs.frozen
class Account:
    """What a client of ours has at an authorization server, for one MCP server.

    Attributes:
        provider: The authorization server.
        server: The URL of the MCP server.
        storage: Where the client keeps its credentials.
        visits: The URLs that the user was sent to.
    """

    provider: Provider
    server: str
    storage: MemoryTokenStorage = attrs.field(factory=MemoryTokenStorage)
    visits: list[str] = attrs.field(factory=list[str])

    def oauth(self, **settings: Any) -> OAuth:
        """How the client is authorized."""
        agent = FunctionUserAgent(self._visit)
        return OAuth(user_agent=agent, storage=self.storage, **settings)

    def _visit(self, url: str) -> str:
        self.visits.append(url)
        return consent(url)

    @property
    def tokens(self) -> JSONObject:
        """The tokens that the client has stored."""
        tokens: JSONObject = self._record["tokens"]
        return tokens

    @property
    def _record(self) -> JSONObject:
        return self.storage.load(self.server)[self.provider.issuer]

    def revoke(self, kind: Literal["access_token", "refresh_token"]) -> None:
        """Revoke a token of the client."""
        self.provider.revoke(self._record["client"]["client_id"], self.tokens[kind])


def expire(account: Account) -> None:
    account.provider.expire(account.tokens["access_token"])


def revoke_access_token(account: Account) -> None:
    """This authorization server revokes the refresh token with it, as RFC 7009 allows."""
    account.revoke("access_token")


def revoke_refresh_token(account: Account) -> None:
    """Each authorization server revokes the access tokens with it (RFC 7009, section 2.1)."""
    account.revoke("refresh_token")


MISHAPS: Final = (
    (expire, "refresh_token"),
    (revoke_access_token, "authorization_code"),
    (revoke_refresh_token, "authorization_code"),
)
"""What may happen to a client that is at work, and the grant by which it gets over it."""
