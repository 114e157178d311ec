"""`auth=` of `connect_http` without a loop."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from sansmcp import JSONObject
from sansmcp.auth import (
    AssertionWanted,
    AuthorizationConfig,
    AuthorizationFailure,
    ClientCredentials,
    ClientWanted,
    RegisteredClient,
    StepTaken,
    WorkloadIdentity,
)
from sansmcp.auth.jose import new_proof_signer
from sansmcp.http import AuthorizationRequired
from sansmcp_io.blocking import AuthorizationError, Client, RequestRefused, connect_http, log_out
from sansmcp_io.oauth import (
    FunctionUserAgent,
    LoopbackUserAgent,
    MemoryTokenStorage,
    NoCallback,
    OAuth,
)
from tests.support.http.authorized import ECHO, Realm, consent, realm

INFO: JSONObject = {"name": "test-client", "version": "1.0"}
HOW = pytest.mark.parametrize("how", ["own", "given"])


def no_credentials(event: AuthorizationRequired) -> None:
    """Supply none."""


@contextmanager
def connecting(served: Realm, how: str = "own", **settings: Any) -> Generator[Client, None, None]:
    settings.setdefault("auth", OAuth(user_agent=FunctionUserAgent(consent)))
    if how == "own":
        with connect_http(served.url, info=INFO, **settings) as client:
            yield client
    else:
        with (
            httpx2.Client(headers={"x-secret": "s"}) as http,
            connect_http(served.url, info=INFO, http=http, **settings) as client,
        ):
            yield client


def echo(client: Client) -> str:
    """Call the tool; the token that the server has got."""
    result: Any = client.request("tools/call", ECHO)
    text: str = result["content"][0]["text"]
    return text


@HOW
def test_a_client_gets_a_token_when_the_server_wants_one(how: str) -> None:
    """Within the start; another client finds it in the storage."""
    auth = OAuth(user_agent=FunctionUserAgent(consent), storage=MemoryTokenStorage())
    with realm() as served:
        for _ in range(2):
            with connecting(served, how, auth=auth) as client:
                assert echo(client) in served.tokens
        assert served.count("/token") == 1


def test_all_threads_that_wait_share_one_attempt() -> None:
    """One of them runs it for all."""
    with realm() as served, connecting(served) as client:
        served.tokens.clear()
        texts: list[str] = []
        threads = [threading.Thread(target=lambda: texts.append(echo(client))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(texts) == 4
        assert len(set(texts)) == 1
        assert served.count("/token") == 2


def test_a_token_is_refreshed_before_it_ends() -> None:
    """No call and no notification is refused for a token whose end was known."""
    with realm(seconds=0) as served:
        with connecting(served) as client:
            texts = {echo(client) for _ in range(2)}
            client.notify("notifications/of_mine")
        assert len(texts) == 2
        assert served.grants[0] == "authorization_code"
        assert set(served.grants[1:]) == {"refresh_token"}


@HOW
def test_each_request_has_a_proof_of_its_own(how: str) -> None:
    """The nonce of one response is in the proof of the next request."""
    with realm(bound=True) as served:
        auth = OAuth(user_agent=FunctionUserAgent(consent), proofs=new_proof_signer())
        with connecting(served, how, auth=auth) as client:
            assert echo(client) in served.tokens
        assert len({proof["jti"] for proof in served.proofs}) == len(served.proofs) >= 2
        assert served.proofs[-1]["nonce"].startswith("n")
        assert served.count("/token") == 1


def test_a_denial_is_the_cause_of_the_refusal() -> None:
    """Also after a refresh that was refused, which has asked the user before."""
    with realm(denies=True) as served:
        with pytest.raises(RequestRefused, match="access_denied") as caught, connecting(served):
            raise AssertionError("not opened")
        assert isinstance(caught.value.__cause__, AuthorizationError)
        assert served.count("/authorize") == 1
    with realm(seconds=0) as served, connecting(served) as client:
        served.refresh_tokens.clear()
        served.tokens.clear()
        served.denies = True
        with pytest.raises(RequestRefused, match="access_denied"):
            echo(client)
        assert served.count("/authorize") == 2


def test_a_user_agent_may_give_up() -> None:
    """Its reason is told."""

    def leave(url: str) -> str:
        raise NoCallback("the browser was closed")

    with realm() as served:
        auth = OAuth(user_agent=FunctionUserAgent(leave))
        refused = pytest.raises(RequestRefused, match="the browser was closed")
        with refused, connecting(served, auth=auth):
            raise AssertionError("not opened")


def test_async_functions_are_refused() -> None:
    """There is no loop to run them."""

    async def visit(url: str) -> str:
        return url

    with realm() as served:
        auth = OAuth(user_agent=FunctionUserAgent(visit))
        refused = pytest.raises(RequestRefused, match="TypeError")
        with refused, connecting(served, auth=auth):
            raise AssertionError("not opened")


def test_a_grant_without_a_user_asks_the_application() -> None:
    """For the client id and the assertion, when an authorization server wants them."""
    asked: list[object] = []

    def on_assertion(wanted: AssertionWanted) -> str:
        asked.append(wanted.token_endpoint)
        return "jwt"

    def on_client(wanted: ClientWanted) -> RegisteredClient:
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
            with connecting(served, auth=auth) as client:
                assert echo(client) in served.tokens
        assert {*asked} == {served.origin, f"{served.origin}/token"}


def test_a_grant_without_an_answer_ends() -> None:
    """There is no assertion, and nobody to ask."""
    with realm() as served:
        auth = OAuth(grant=WorkloadIdentity())
        with pytest.raises(RequestRefused) as caught, connecting(served, auth=auth):
            raise AssertionError("not opened")
        assert isinstance(caught.value.__cause__, AuthorizationError)


def test_a_user_has_a_time_to_answer() -> None:
    """A program must not wait for ever for a browser that was closed."""
    never = threading.Event()

    def wait(url: str) -> str:
        never.wait(60)
        return url

    with realm() as served:
        auth = OAuth(
            user_agent=FunctionUserAgent(wait), config=AuthorizationConfig(user_timeout=0.2)
        )
        with pytest.raises(RequestRefused) as caught, connecting(served, auth=auth):
            raise AssertionError("not opened")
        never.set()
        cause = caught.value.__cause__
        assert isinstance(cause, AuthorizationError)
        assert cause.reason is AuthorizationFailure.TIMED_OUT


def test_a_callback_of_another_authorization_is_none() -> None:
    """The user agent has mixed up two users."""
    with realm() as served:
        other = "http://127.0.0.1/callback?code=c&state=other"
        auth = OAuth(user_agent=FunctionUserAgent(lambda url: other))
        refused = pytest.raises(RequestRefused, match="another authorization")
        with refused, connecting(served, auth=auth):
            raise AssertionError("not opened")


def test_a_function_that_watches_the_steps_may_fail(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """That ends no attempt."""

    def fail(step: StepTaken) -> None:
        raise ValueError("of mine")

    with realm() as served:
        auth = OAuth(user_agent=FunctionUserAgent(consent), on_step=fail)
        with connecting(served, auth=auth) as client:
            assert echo(client) in served.tokens
    assert "on_step failed" in caplog.text


def test_headers_hold_no_other_credentials() -> None:
    """Which of the two should the server get?"""
    with realm() as served:
        refused = pytest.raises(ValueError, match="holds Authorization")
        with refused, connecting(served, headers={"authorization": "Bearer x"}):
            raise AssertionError("not opened")
        refused = pytest.raises(ValueError, match="exclude each other")
        with refused, connecting(served, on_unauthorized=no_credentials):
            raise AssertionError("not opened")


def test_logging_out_revokes_the_tokens() -> None:
    """Without a conversation, and without a port for the user."""
    storage = MemoryTokenStorage()
    with realm() as served:
        auth = OAuth(user_agent=FunctionUserAgent(consent), storage=storage)
        with connect_http(served.url, info=INFO, auth=auth) as client:
            client.request("tools/call", ECHO)
        assert served.tokens
        taken = OAuth(user_agent=LoopbackUserAgent(port=1), storage=storage)  # nobody may have it
        assert log_out(served.url, auth=taken) is True
        assert served.tokens == served.refresh_tokens == {}
        assert storage.load(served.url) == {}
        assert log_out(served.url, auth=taken) is False


def test_logging_out_forgets_what_is_not_revoked() -> None:
    """The caller learns why."""
    storage = MemoryTokenStorage()
    with realm() as served:
        auth = OAuth(user_agent=FunctionUserAgent(consent), storage=storage)
        with connect_http(served.url, info=INFO, auth=auth) as client:
            client.request("tools/call", ECHO)
        served.metadata["revocation_endpoint"] = None
        with pytest.raises(AuthorizationError, match="forgotten here, and not revoked"):
            log_out(served.url, auth=auth)
        assert storage.load(served.url) == {}
