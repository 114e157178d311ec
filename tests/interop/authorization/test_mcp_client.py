"""The client of the official `mcp` package with our servers."""

from typing import Final

import anyio.to_thread
import httpx2
import mcp_types as types
import pytest
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from tests.interop.authorization.our_server import Handler, serving_here
from tests.interop.authorization.provider import Provider, consent
from tests.support.adapters.on_trio import on_trio

# The package's HTTP client leaves generators to the garbage collector, of which trio complains.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

MODES: Final = ("legacy", "auto")
REDIRECT: Final = "http://127.0.0.1/callback"


class Person(TokenStorage):
    """Keeps what the client gets, and consents to all that it wants.

    Attributes:
        tokens: The tokens that the client has.
        client: Its registration.
        visits: The URLs that it was sent to.
    """

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None
        self.visits: list[str] = []

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    async def visit(self, url: str) -> None:
        self.visits.append(url)

    async def callback(self) -> AuthorizationCodeResult:
        found = await anyio.to_thread.run_sync(consent, self.visits[-1])
        query = httpx2.URL(found).params
        return AuthorizationCodeResult(code=query["code"], state=query["state"], iss=query["iss"])

    def auth(self, url: str) -> OAuthClientProvider:
        """Authorizes requests of the package to a server."""
        metadata = OAuthClientMetadata(
            redirect_uris=[AnyUrl(REDIRECT)],
            token_endpoint_auth_method="none",
            grant_types=["authorization_code", "refresh_token"],
            application_type="native",
            client_name="the mcp package",
        )
        return OAuthClientProvider(url, metadata, self, self.visit, self.callback)


async def call(client: Client, tool: str = "who") -> str:
    result = await client.call_tool(tool)
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.parametrize("mode", MODES)
@on_trio()
async def test_its_tokens_are_refreshed_when_they_end(provider: Provider, mode: str) -> None:
    """It finds our metadata, gets a token for our server, and keeps its session with the next."""
    provider.control(lifetime=1)
    person, handler = Person(), Handler()
    grants: list[str] = []
    async with (
        serving_here(provider, handler, "jwt") as url,
        httpx2.AsyncClient(auth=person.auth(url)) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        while "refresh_token" not in grants:
            assert await call(client) == "ann"
            grants += provider.control()
    assert grants[0] == "authorization_code"
    assert len(person.visits) == 1
    assert len(set(handler.principals)) == 1


@pytest.mark.parametrize("mode", MODES)
@on_trio()
async def test_its_tokens_are_revoked(provider: Provider, mode: str) -> None:
    """The package takes 401 for a reason to ask the user again, whatever else it has."""
    provider.control(format="opaque")
    person = Person()
    async with (
        serving_here(provider, Handler(), "opaque") as url,
        httpx2.AsyncClient(auth=person.auth(url)) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        assert await call(client) == "ann"
        for kind in ("access_token", "refresh_token"):
            assert person.client is not None
            provider.revoke(person.client.client_id, getattr(person.tokens, kind))
            assert await call(client) == "ann"
    assert provider.control() == ["authorization_code"] * 3
    assert len(person.visits) == 3


@on_trio()
async def test_it_gets_the_scopes_that_a_handler_demands(provider: Provider) -> None:
    """It understands our challenge with 403."""
    person, handler = Person(), Handler()
    async with (
        serving_here(provider, handler, "jwt") as url,
        httpx2.AsyncClient(auth=person.auth(url)) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        assert await call(client) == "ann"
        assert await call(client, "write") == "ann"
    assert handler.principals[-1].covers(["use", "write"])
    assert len(person.visits) == 2
