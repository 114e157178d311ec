"""Our clients with a server on the `mcp` package, which introspects each token."""

import sys
from collections.abc import Generator
from typing import Any, Final

import httpx2
import pytest

from sansmcp import JSONObject
from sansmcp.auth import AuthorizationStep, StepTaken
from sansmcp_io import blocking
from sansmcp_io.trio import Client
from tests.interop.authorization.provider import (
    MISHAPS,
    PATIENT,
    RESOURCE_SERVER,
    Account,
    Provider,
    expire,
)
from tests.interop.talk_http import running
from tests.support.adapters.loops import STANDARD_LOOPS, on_each_loop
from tests.support.http.on_loops import connect_http

ECHO: Final[JSONObject] = {"name": "echo", "arguments": {"text": "hello"}}
on_loops = on_each_loop(loops=STANDARD_LOOPS)


@pytest.fixture(scope="module")
def server(shared_provider: Provider) -> Generator[str]:
    """The URL of the server."""
    endpoint = shared_provider.introspection_endpoint
    command = (sys.executable, "-m", "tests.peers.mcp_http", "--introspect", endpoint)
    with running([*command, *RESOURCE_SERVER]) as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture
def account(provider: Provider, server: str) -> Account:
    """A client that has never been there. Only opaque tokens can be introspected and revoked."""
    provider.control(format="opaque")
    return Account(provider, server)


async def work(client: Client, account: Account) -> None:
    """Call a tool after each mishap."""
    result: Any = await client.request("tools/call", ECHO)
    assert result["content"][0]["text"] == "hello"
    assert account.provider.control() == ["authorization_code"]
    for mishap, grant in MISHAPS:
        mishap(account)
        result = await client.request("tools/call", ECHO)
        assert result["content"][0]["text"] == "hello"
        assert account.provider.control() == [grant]
    assert len(account.visits) == 3


@on_loops
async def test_a_client_gets_over_all_that_happens_to_its_tokens(account: Account) -> None:
    """Its caller sees nothing but answers; the user is asked only when nothing else helps."""
    steps: list[StepTaken] = []
    auth = account.oauth(on_step=steps.append)
    async with connect_http(account.server, **PATIENT, auth=auth) as client:
        await work(client, account)
    assert AuthorizationStep.REGISTRATION in {step.step for step in steps}


@on_loops
async def test_a_client_over_httpx2_does_the_same(account: Account) -> None:
    """Requests to the authorization server go the way of all others, too."""
    auth = account.oauth()
    async with (
        httpx2.AsyncClient() as http,
        connect_http(account.server, **PATIENT, http=http, auth=auth) as client,
    ):
        await work(client, account)


def test_a_client_without_a_loop_does_the_same(account: Account) -> None:
    """The thread that calls waits for the authorization."""
    with blocking.connect_http(account.server, **PATIENT, auth=account.oauth()) as client:
        for mishap, grant in ((None, "authorization_code"), *MISHAPS):
            if mishap is not None:
                mishap(account)
            result: Any = client.request("tools/call", ECHO)
            assert result["content"][0]["text"] == "hello"
            assert account.provider.control() == [grant]
    assert len(account.visits) == 3


@on_loops
async def test_another_client_goes_on_with_stored_credentials(account: Account) -> None:
    """A program that was started again asks nobody, even if its access token has expired."""
    async with connect_http(account.server, **PATIENT, auth=account.oauth()) as client:
        await client.request("tools/call", ECHO)
    expire(account)
    async with connect_http(account.server, **PATIENT, auth=account.oauth()) as client:
        await client.request("tools/call", ECHO)
    assert account.provider.control() == ["refresh_token"]
    assert len(account.visits) == 1
