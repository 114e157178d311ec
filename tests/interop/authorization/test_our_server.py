"""Our clients with our servers."""

import base64
import hashlib
import re
import secrets
import time
from typing import Any, Final

import httpx2
import pytest

from sansmcp import JSONObject
from sansmcp.auth import ProofSigner
from sansmcp.auth.jose import new_proof_signer
from sansmcp_io import blocking
from sansmcp_io.trio import Client
from tests.interop.authorization.our_server import (
    WHO,
    WRITE,
    Handler,
    bound,
    serving_app,
    serving_here,
)
from tests.interop.authorization.provider import MISHAPS, PATIENT, Account, Provider
from tests.support.adapters.loops import STANDARD_LOOPS, on_each_loop
from tests.support.http.on_loops import connect_http

REQUEST: Final = b'{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}'
FIELDS: Final = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}
on_loops = on_each_loop(loops=STANDARD_LOOPS)


def proof_of(signer: ProofSigner, url: str, token: str, nonce: str) -> str:
    """A DPoP proof for a POST, by hand."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(token.encode()).digest())
    return signer.sign(
        {
            "jti": secrets.token_urlsafe(),
            "htm": "POST",
            "htu": url,
            "iat": int(time.time()),
            "ath": digest.decode().rstrip("="),
            "nonce": nonce,
        }
    )


class Sessions:
    """Collects the ids of the sessions in which a client sends requests."""

    def __init__(self) -> None:
        self.ids: set[bytes] = set()

    def sent(self, connection: str, data: bytes) -> None:
        self.ids |= {*re.findall(rb"(?i)\r\nmcp-session-id: *(\S+)", data)}

    def received(self, connection: str, data: bytes) -> None:
        """What comes is of no interest, and neither are events."""

    def happened(self, event: object) -> None:
        pass


async def call(client: Client, params: JSONObject = WHO) -> str:
    result: Any = await client.request("tools/call", params)
    text: str = result["content"][0]["text"]
    return text


@on_loops
async def test_tokens_are_renewed_before_they_end(provider: Provider) -> None:
    """No call is late by an authorization that could have been foreseen, and none is refused: the
    server accepts a token for some time after its end.
    """
    provider.control(lifetime=1)
    handler = Handler()
    async with serving_here(provider, handler, "jwt") as url:
        account = Account(provider, url)
        grants: list[str] = []
        async with connect_http(url, **PATIENT, auth=account.oauth()) as client:
            while grants.count("refresh_token") < 3:
                assert await call(client) == "ann"
                grants += provider.control()
    assert set(grants[1:]) == {"refresh_token"}
    assert len(account.visits) == 1
    assert len({token.expires_at for token in handler.principals}) > 1
    assert len(set(handler.principals)) == 1  # the same one, whatever the token


@pytest.mark.parametrize("how", ["h11", "httpx2"])
@on_loops
async def test_a_client_gets_over_all_that_happens_to_its_tokens(
    provider: Provider, how: str
) -> None:
    """The server learns of it by introspection; the callers see nothing but answers."""
    provider.control(format="opaque")
    async with serving_here(provider, Handler(), "opaque") as url, httpx2.AsyncClient() as http:
        account = Account(provider, url)
        settings: Any = {"http": http} if how == "httpx2" else {}
        async with connect_http(url, auth=account.oauth(), **PATIENT, **settings) as client:
            assert await call(client) == "ann"
            assert provider.control() == ["authorization_code"]
            for mishap, grant in MISHAPS:
                mishap(account)
                assert await call(client) == "ann"
                assert provider.control() == [grant]
    assert len(account.visits) == 3


def test_a_client_without_a_loop_does_so_in_a_session_with_an_application(
    provider: Provider,
) -> None:
    """A session outlives the tokens of its client, since it belongs to the user and the client."""
    provider.control(format="opaque", refresh="always")
    sessions = Sessions()
    with serving_app(provider, Handler(), "opaque") as url:
        account = Account(provider, url)
        with blocking.connect_http(
            url, auth=account.oauth(), revisions=["2025-11-25"], trace=sessions, **PATIENT
        ) as client:
            for mishap, grant in ((None, "authorization_code"), *MISHAPS):
                if mishap is not None:
                    mishap(account)
                result: Any = client.request("tools/call", WHO)
                assert result["content"][0]["text"] == "ann"
                assert provider.control() == [grant]
    assert len(account.visits) == 3
    assert len(sessions.ids) == 1


@on_loops
async def test_a_token_that_was_stolen_is_of_no_use(provider: Provider) -> None:
    """It is bound to a key that its thief does not have; the client itself gets on with it, also
    after it was renewed.
    """
    provider.control(lifetime=1)
    handler = Handler()
    async with serving_here(provider, handler, "jwt", dpop=bound()) as url:
        account = Account(provider, url)
        auth = account.oauth(proofs=new_proof_signer())
        grants: list[str] = []
        async with connect_http(url, **PATIENT, auth=auth) as client:
            while "refresh_token" not in grants:
                assert await call(client) == "ann"
                grants += provider.control()
        assert {token.scheme for token in handler.principals} == {"DPoP"}

        token: str = account.tokens["access_token"]
        own, thief = auth.proofs, new_proof_signer()
        assert own is not None
        async with httpx2.AsyncClient(headers=FIELDS) as http:

            async def refusal(scheme: str, proof: str | None = None) -> str:
                """The error with which the token is refused; empty if it is not."""
                fields = {"authorization": f"{scheme} {token}", "dpop": proof or ""}
                fields = {name: value for name, value in fields.items() if value}
                response = await http.post(url, content=REQUEST, headers=fields)
                nonces.append(response.headers.get("dpop-nonce", ""))
                if response.status_code != 401:
                    return ""
                error = re.search('error="(.*?)"', response.headers["www-authenticate"])
                return "no error" if error is None else error[1]

            nonces: list[str] = []
            assert await refusal("Bearer") == "no error"  # it serves another scheme
            assert await refusal("DPoP") == "invalid_dpop_proof"
            assert await refusal("DPoP", proof_of(thief, url, token, "x")) == "use_dpop_nonce"
            nonce = nonces[-1]
            assert await refusal("DPoP", proof_of(thief, url, token, nonce)) == "invalid_token"
            assert await refusal("DPoP", proof_of(own, url, "", nonce)) == "invalid_dpop_proof"
            good = proof_of(own, url, token, nonce)
            assert await refusal("DPoP", good) == ""  # so nothing else was wrong
            assert await refusal("DPoP", good) == "invalid_dpop_proof"  # seen before


@on_loops
async def test_a_token_for_another_server_is_refused(provider: Provider) -> None:
    """The authorization server has signed it, for the same user and client."""
    async with (
        serving_here(provider, Handler(), "jwt") as first,
        serving_here(provider, Handler(), "jwt") as second,
        httpx2.AsyncClient(headers=FIELDS) as http,
    ):
        account = Account(provider, first)
        async with connect_http(first, **PATIENT, auth=account.oauth()) as client:
            await call(client)
        fields = {"authorization": f"Bearer {account.tokens['access_token']}"}
        at_home = await http.post(first, content=REQUEST, headers=fields)
        elsewhere = await http.post(second, content=REQUEST, headers=fields)
    assert at_home.status_code != 401
    assert elsewhere.status_code == 401
    assert "not issued for this server" in elsewhere.headers["www-authenticate"]


@on_loops
async def test_a_handler_gets_the_scopes_that_it_demands(provider: Provider) -> None:
    """The user is asked for more, once, and the call goes on; then the token has both."""
    handler = Handler()
    async with serving_here(provider, handler, "jwt") as url:
        account = Account(provider, url)
        async with connect_http(url, **PATIENT, auth=account.oauth()) as client:
            assert await call(client) == "ann"
            assert await call(client, WRITE) == "ann"
            assert await call(client, WRITE) == "ann"
    assert [token.scopes & {"use", "write"} for token in handler.principals] == [
        {"use"},
        {"use", "write"},
        {"use", "write"},
    ]
    assert provider.control() == ["authorization_code"] * 2
