"""`auth=` of `connect_http` on loops: over sockets, and over httpx2."""

import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from sansmcp import JSONObject
from sansmcp.auth import (
    AssertionWanted,
    AuthorizationConfig,
    AuthorizationFailure,
    AuthorizationStep,
    ClientCredentials,
    ClientWanted,
    RegisteredClient,
    StepTaken,
    WorkloadIdentity,
)
from sansmcp.auth.jose import new_proof_signer
from sansmcp.http import AuthorizationRequired
from sansmcp_io.oauth import FunctionUserAgent, MemoryTokenStorage, NoCallback, OAuth
from sansmcp_io.trio import AuthorizationError, Client, RequestRefused
from tests.support.adapters import loops
from tests.support.adapters.loops import STANDARD_LOOPS, on_each_loop
from tests.support.http.authorized import ECHO, Realm, consent, realm
from tests.support.http.on_loops import connect_http

INFO: JSONObject = {"name": "test-client", "version": "1.0"}
on_loops = on_each_loop(loops=STANDARD_LOOPS)
HOW = pytest.mark.parametrize("how", ["h11", "httpx2"])


def no_credentials(event: AuthorizationRequired) -> None:
    """Supply none."""


@asynccontextmanager
async def connecting(
    served: Realm, how: str = "h11", **settings: Any
) -> AsyncGenerator[Client, None]:
    settings.setdefault("auth", OAuth(user_agent=FunctionUserAgent(consent)))
    if how == "h11":
        async with connect_http(served.url, info=INFO, **settings) as client:
            yield client
    else:
        async with (
            httpx2.AsyncClient(headers={"x-secret": "s"}) as http,
            connect_http(served.url, info=INFO, http=http, **settings) as client,
        ):
            yield client


async def echo(client: Client) -> str:
    """Call the tool; the token that the server has got."""
    result: Any = await client.request("tools/call", ECHO)
    text: str = result["content"][0]["text"]
    return text


@HOW
@on_loops
async def test_a_client_gets_a_token_when_the_server_wants_one(how: str) -> None:
    """Discovery, registration, consent and the token request happen within the start."""
    steps: list[StepTaken] = []
    storage = MemoryTokenStorage()
    agent = FunctionUserAgent(consent)
    with realm() as served:
        auth = OAuth(user_agent=agent, storage=storage, on_step=steps.append)
        async with connecting(served, how, auth=auth) as client:
            first = await echo(client)
            assert first in served.tokens
            assert await echo(client) == first
        assert served.count("/register") == served.count("/token") == 1
        assert [step.step for step in steps][-1] is AuthorizationStep.TOKEN
        assert not any(first in repr(step) for step in steps)

        async with connecting(served, how, auth=auth) as client:  # a second time, at once
            assert await echo(client) == first
        assert served.count("/authorize") == 1
        assert served.asked.count("POST /mcp") == 6  # one refusal, three openings and calls


@HOW
@on_loops
async def test_all_calls_that_wait_share_one_attempt(how: str) -> None:
    """A user must not be asked once for each of them."""
    texts: list[str] = []
    with realm() as served:
        async with connecting(served, how) as client:
            served.tokens.clear()  # revoked
            async with loops.open_nursery() as nursery:

                async def call() -> None:
                    texts.append(await echo(client))

                for _ in range(5):
                    nursery.start_soon(call)
        assert len(texts) == 5
        assert len(set(texts)) == 1
        assert served.count("/token") == 2


@on_loops
async def test_a_caller_that_gives_up_leaves_the_attempt_to_the_others() -> None:
    """The first call has begun it, and is cancelled meanwhile."""
    with realm() as served:
        async with connecting(served) as client:
            served.tokens.clear()
            served.gate.clear()
            served.at_gate.clear()
            texts: list[str] = []
            is_over = loops.new_event()
            async with loops.open_nursery() as nursery:

                async def give_up() -> None:
                    async with loops.open_nursery() as inner:
                        inner.start_soon(echo, client)
                        await loops.in_thread(served.at_gate.wait)
                        inner.cancel()
                    is_over.set()

                async def go_on() -> None:
                    texts.append(await echo(client))

                nursery.start_soon(give_up)
                await is_over.wait()
                nursery.start_soon(go_on)
                served.gate.set()
            assert texts == [next(iter(served.tokens))]
            assert served.count("/token") == 2


@on_loops
async def test_a_token_is_refreshed_before_it_ends() -> None:
    """No call is refused for a token whose end was known, and the user is not asked."""
    with realm(seconds=0) as served:
        async with connecting(served) as client:
            texts = {await echo(client) for _ in range(3)}
        assert len(texts) == 3
        assert served.grants[0] == "authorization_code"
        assert set(served.grants[1:]) == {"refresh_token"}
        assert served.count("/authorize") == 1


@on_loops
async def test_a_refused_refresh_asks_the_user_again() -> None:
    """A refresh token may have been revoked."""
    with realm(seconds=0) as served:
        async with connecting(served) as client:
            await echo(client)
            served.refresh_tokens.clear()
            await echo(client)
        assert served.count("/authorize") == 2


@on_loops
async def test_a_call_that_needs_more_scopes_gets_them() -> None:
    """The token that was good for the start is not for the tool."""
    with realm(scope="write") as served:
        async with connecting(served) as client:
            token = await echo(client)
            assert set(served.tokens[token].split()) == {"read", "write"}


@HOW
@on_loops
async def test_each_request_has_a_proof_of_its_own(how: str) -> None:
    """A proof is for one method, one URL and one token, and has the nonce that came before."""
    with realm(bound=True) as served:
        auth = OAuth(user_agent=FunctionUserAgent(consent), proofs=new_proof_signer())
        async with connecting(served, how, auth=auth) as client:
            for _ in range(2):
                assert await echo(client) in served.tokens
        assert len({proof["jti"] for proof in served.proofs}) == len(served.proofs)
        assert {(proof["htm"], proof["htu"]) for proof in served.proofs} == {("POST", served.url)}
        assert all(proof["ath"] for proof in served.proofs)
        assert [proof.get("nonce") for proof in served.proofs] == [None, "n1", "n2", "n3"]
        assert served.count("/token") == 1


@on_loops
async def test_a_denial_is_the_cause_of_the_refusal() -> None:
    """The caller learns at which step it ended, and is not asked a second time."""
    with realm(denies=True) as served:
        with pytest.raises(RequestRefused) as caught:
            async with connecting(served):
                raise AssertionError("not opened")
        cause = caught.value.__cause__
        assert isinstance(cause, AuthorizationError)
        assert cause.step is AuthorizationStep.CALLBACK
        assert cause.reason is AuthorizationFailure.DENIED
        assert (cause.error, cause.issuer) == ("access_denied", served.origin)
        assert "access_denied" in str(caught.value)
        assert served.count("/authorize") == 1


@on_loops
async def test_a_denial_after_a_refused_refresh_is_told_at_once() -> None:
    """The user has been asked in advance, and is not asked again when the server says 401."""
    with realm(seconds=0) as served:
        async with connecting(served) as client:
            served.refresh_tokens.clear()
            served.tokens.clear()
            served.denies = True
            with pytest.raises(RequestRefused) as caught:
                await echo(client)
            assert isinstance(caught.value.__cause__, AuthorizationError)
            assert served.count("/authorize") == 2
            served.denies = False
            assert await echo(client) in served.tokens


@on_loops
async def test_one_server_is_not_stalled_by_the_user_of_another() -> None:
    """A user agent that blocks runs in a thread of its own."""
    asked, answer = threading.Event(), threading.Event()

    def slowly(url: str) -> str:
        asked.set()
        answer.wait(60)
        return consent(url)

    with realm() as slow, realm() as quick:
        opened: list[str] = []
        async with loops.open_nursery() as nursery:

            async def connect() -> None:
                auth = OAuth(user_agent=FunctionUserAgent(slowly))
                async with connecting(slow, auth=auth) as client:
                    opened.append(await echo(client))

            nursery.start_soon(connect)
            await loops.in_thread(asked.wait)
            async with connecting(quick) as client:
                assert await echo(client) in quick.tokens
            assert opened == []
            answer.set()
        assert len(opened) == 1


@on_loops
async def test_an_async_user_agent_and_storage_run_on_the_loop() -> None:
    """Neither needs a thread there."""
    kept: dict[str, Any] = {}

    class Storage:
        async def load(self, server: str) -> dict[str, JSONObject]:
            await loops.checkpoint()
            return dict(kept)

        async def store(self, server: str, issuer: str, record: JSONObject | None) -> None:
            await loops.checkpoint()
            kept[issuer] = record

    async def visit(url: str) -> str:
        return await loops.in_thread(lambda: consent(url))

    with realm() as served:
        auth = OAuth(user_agent=FunctionUserAgent(visit), storage=Storage())
        async with connecting(served, auth=auth) as client:
            await echo(client)
        assert set(kept) == {served.origin}


@on_loops
async def test_a_user_who_is_not_sent_back_is_told_of() -> None:
    """A user agent that gives up ends the attempt with its reason."""

    def leave(url: str) -> str:
        raise NoCallback("the browser was closed")

    with realm() as served:
        auth = OAuth(user_agent=FunctionUserAgent(leave))
        with pytest.raises(RequestRefused, match="the browser was closed"):
            async with connecting(served, auth=auth):
                raise AssertionError("not opened")


@on_loops
async def test_leaving_the_block_ends_an_attempt() -> None:
    """The user may never answer; the program ends nevertheless."""
    asked = threading.Event()

    def never(url: str) -> str:
        asked.set()
        threading.Event().wait(60)
        return url

    with realm() as served:
        auth = OAuth(user_agent=FunctionUserAgent(never))
        async with loops.open_nursery() as nursery:

            async def connect() -> None:
                async with connecting(served, auth=auth):
                    raise AssertionError("not opened")

            nursery.start_soon(connect)
            await loops.in_thread(asked.wait)
            nursery.cancel()


@on_loops
async def test_a_grant_without_a_user_asks_the_application() -> None:
    """For the client id and the assertion, when an authorization server wants them."""
    asked: list[object] = []

    async def on_assertion(wanted: AssertionWanted) -> str:
        asked.append(wanted.token_endpoint)
        return "jwt"

    async def on_client(wanted: ClientWanted) -> RegisteredClient:
        asked.append(wanted.issuer)
        return RegisteredClient(client_id="mine", client_secret="s")

    methods = {"token_endpoint_auth_methods_supported": ["client_secret_basic"]}
    with realm(metadata={"registration_endpoint": None, **methods}) as served:
        for grant in (WorkloadIdentity(), ClientCredentials()):
            auth = OAuth(
                grant=grant,
                on_assertion=on_assertion,
                on_client=on_client,
                config=AuthorizationConfig(ask_for_client=True),
            )
            async with connecting(served, auth=auth) as client:
                assert await echo(client) in served.tokens
        assert {*asked} == {served.origin, f"{served.origin}/token"}


@on_loops
async def test_a_grant_without_an_answer_ends() -> None:
    """There is no assertion, and nobody to ask."""
    with realm() as served:
        auth = OAuth(grant=WorkloadIdentity())
        with pytest.raises(RequestRefused) as caught:
            async with connecting(served, auth=auth):
                raise AssertionError("not opened")
        assert isinstance(caught.value.__cause__, AuthorizationError)


@on_loops
async def test_a_user_has_a_time_to_answer() -> None:
    """A program must not wait for ever for a browser that was closed."""
    never = threading.Event()

    def wait(url: str) -> str:
        never.wait(60)
        return url

    with realm() as served:
        auth = OAuth(
            user_agent=FunctionUserAgent(wait), config=AuthorizationConfig(user_timeout=0.2)
        )
        with pytest.raises(RequestRefused) as caught:
            async with connecting(served, auth=auth):
                raise AssertionError("not opened")
        never.set()
        cause = caught.value.__cause__
        assert isinstance(cause, AuthorizationError)
        assert cause.reason is AuthorizationFailure.TIMED_OUT


@on_loops
async def test_a_callback_of_another_authorization_is_none() -> None:
    """The user agent has mixed up two users."""
    with realm() as served:
        other = "http://127.0.0.1/callback?code=c&state=other"
        auth = OAuth(user_agent=FunctionUserAgent(lambda url: other))
        with pytest.raises(RequestRefused, match="another authorization"):
            async with connecting(served, auth=auth):
                raise AssertionError("not opened")


@on_loops
async def test_a_function_that_watches_the_steps_may_fail(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """That ends no attempt."""

    def fail(step: StepTaken) -> None:
        raise ValueError("of mine")

    with realm() as served:
        auth = OAuth(user_agent=FunctionUserAgent(consent), on_step=fail)
        async with connecting(served, auth=auth) as client:
            assert await echo(client) in served.tokens
    assert "on_step failed" in caplog.text


@on_loops
async def test_headers_hold_no_other_credentials() -> None:
    """Which of the two should the server get?"""
    with realm() as served:
        with pytest.raises(ValueError, match="holds Authorization"):
            async with connecting(served, headers={"authorization": "Bearer x"}):
                raise AssertionError("not opened")
        with pytest.raises(ValueError, match="exclude each other"):
            async with connecting(served, on_unauthorized=no_credentials):
                raise AssertionError("not opened")
