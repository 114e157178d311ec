"""Logging out: tokens are forgotten here, and revoked at the authorization server."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp.auth import (
    AuthorizationClient,
    AuthorizationFailed,
    AuthorizationFailure,
    AuthorizationStep,
    ClientCredentials,
    ClientMetadata,
    CredentialsToStore,
    LoggedOut,
    RegisteredClient,
    RequestWanted,
    StepOutcome,
    WorkloadIdentity,
)
from tests.support.auth.script import (
    AT,
    ISSUER,
    MCP,
    PATH_METADATA,
    SERVER_METADATA,
    TOKEN,
    Answer,
    World,
    challenge,
    drive,
    events_of,
    make_client,
    resource_document,
    run,
    server_document,
    token_document,
    usual_world,
)

REVOKE = f"{ISSUER}/revoke"
BOTH = token_document(refresh_token="refresh-1")
UNSUPPORTED = Answer({"error": "unsupported_token_type"}, 400)


def revoking_world(*answers: Any, token: Any = BOTH, **members: Any) -> World:
    """An authorization server that revokes."""
    members.setdefault("revocation_endpoint", REVOKE)
    world = usual_world(**members).put(TOKEN, token)
    return world.put(REVOKE, *(answers or [Answer(b"")]))


def log_out(client: AuthorizationClient, world: World, **more: Any) -> list[Any]:
    """Log out; all events."""
    attempt = client.log_out(now=10.0, at=AT + 10, **more)
    events = drive(client, world, now=10.0)
    assert not attempt.open
    assert not client.authorized
    assert client.attempt is None
    return events


def test_both_tokens_are_revoked() -> None:
    """RFC 7009, section 2.1: the refresh token first, since it may take the other one along."""
    world, client = revoking_world(), make_client()
    run(client, world).authorized()
    world.requests.clear()
    events = log_out(client, world)

    assert world.urls() == [SERVER_METADATA, REVOKE, REVOKE]
    assert world.forms(REVOKE) == [
        {"token": "refresh-1", "token_type_hint": "refresh_token", "client_id": "dynamic-client"},
        {"token": "first-token", "token_type_hint": "access_token", "client_id": "dynamic-client"},
    ]
    assert events[0] == CredentialsToStore(issuer=ISSUER, record=None)
    assert isinstance(events[-1], LoggedOut)
    assert events[-1].issuer == events[-1].attempt.issuer == ISSUER
    steps = [one.tried for one in run_steps(events) if one.step is AuthorizationStep.REVOCATION]
    assert steps == ["revocation of the refresh token", "revocation of the access token"]


def run_steps(events: list[Any]) -> list[Any]:
    return [one for one in events if hasattr(one, "conclusion")]


def test_stored_tokens_are_revoked() -> None:
    """A program that starts only to log out."""
    world = revoking_world()
    stored = run(make_client(), world).stored
    events = log_out(make_client(), world, stored=stored)

    assert isinstance(events[-1], LoggedOut)
    assert len(world.asked(REVOKE)) == 2


def test_without_tokens_nothing_is_asked() -> None:
    """There is nothing to revoke; what else is stored is forgotten."""
    world, client = revoking_world(Answer({"error": "x"}, 400)), make_client()
    world.put(TOKEN, Answer({"error": "invalid_grant"}, 400))
    run(client, world)
    world.requests.clear()
    events = log_out(client, world)

    assert world.requests == []
    assert isinstance(events[-1], LoggedOut)
    assert events[-1].issuer is None
    assert events[0] == CredentialsToStore(issuer=ISSUER, record=None)


@pytest.mark.parametrize(
    ("members", "reason", "words"),
    [
        ({"revocation_endpoint": None}, AuthorizationFailure.UNSUPPORTED, "revocation_endpoint"),
        (
            {"revocation_endpoint": "http://10.0.0.1/r"},
            AuthorizationFailure.UNSUPPORTED,
            "revocation_endpoint",
        ),
        ({"issuer": "https://evil.example"}, AuthorizationFailure.ISSUER_MISMATCH, "issuer"),
    ],
)
def test_servers_that_cannot_revoke(
    members: dict[str, Any], reason: AuthorizationFailure, words: str
) -> None:
    """The user is told that the tokens live on there; a login works nevertheless."""
    world, client = revoking_world(), make_client()
    run(client, world).authorized()
    world.put(SERVER_METADATA, server_document(**{"revocation_endpoint": REVOKE, **members}))
    events = log_out(client, world)

    assert isinstance(events[-1], AuthorizationFailed)
    assert events[-1].reason is reason
    assert words in events[-1].text
    assert world.asked(REVOKE) == []


def test_a_revocation_endpoint_that_may_not_be_used_costs_no_login() -> None:
    """Nobody needs it then."""
    world = usual_world(revocation_endpoint="ftp://x")
    run(make_client(), world).authorized()


@pytest.mark.parametrize(
    ("answer", "reason", "words"),
    [
        (None, AuthorizationFailure.UNREACHABLE, "connection refused"),
        (Answer(b"", 503), AuthorizationFailure.REFUSED, "status 503"),
        (Answer(b"", 302, (("Location", "/x"),)), AuthorizationFailure.REFUSED, "status 302"),
        (UNSUPPORTED, AuthorizationFailure.REFUSED, "unsupported_token_type"),
        (
            Answer({"error": "invalid_client", "error_description": "no refresh-1"}, 401),
            AuthorizationFailure.REFUSED,
            r"invalid_client (no [hidden])",
        ),
    ],
)
def test_revocation_that_fails(
    answer: Answer | None, reason: AuthorizationFailure, words: str
) -> None:
    """The tokens are forgotten all the same, and the text repeats no secret."""
    world, client = revoking_world(answer), make_client()
    run(client, world).authorized()
    events = log_out(client, world)

    assert isinstance(events[-1], AuthorizationFailed)
    assert (events[-1].step, events[-1].reason) == (AuthorizationStep.REVOCATION, reason)
    assert "forgotten here, and not revoked" in events[-1].text
    assert words in events[-1].text
    assert events[0] == CredentialsToStore(issuer=ISSUER, record=None)
    assert not any("refresh-1" in repr(event) for event in events)


def test_servers_that_revoke_refresh_tokens_only() -> None:
    """RFC 7009, section 2.2.1: an access token that nobody looks up ends by itself."""
    world, client = revoking_world(Answer(b""), UNSUPPORTED), make_client()
    run(client, world).authorized()
    events = log_out(client, world)

    assert isinstance(events[-1], LoggedOut)
    assert run_steps(events)[-1].outcome is StepOutcome.SKIPPED


def test_the_second_token_may_fail() -> None:
    """It is told: the access token is valid still."""
    world, client = revoking_world(Answer(b""), Answer(b"", 400)), make_client()
    run(client, world).authorized()

    assert isinstance(log_out(client, world)[-1], AuthorizationFailed)


SECRET = RegisteredClient(client_id="me", client_secret="s3cret")
PUBLIC = RegisteredClient(client_id="me")


@pytest.mark.parametrize(
    ("first", "second", "works"),
    [
        ({"registered": {ISSUER: SECRET}}, {"registered": {ISSUER: SECRET}}, True),
        ({"registered": {ISSUER: SECRET}}, {}, False),
        ({"registered": {ISSUER: PUBLIC}}, {}, True),
        ({"client": ClientMetadata(url="https://c.example.com/m")}, {}, True),
        ({"grant": WorkloadIdentity(assertion="jwt")}, {}, True),
    ],
)
def test_the_client_that_got_the_tokens_revokes_them(
    first: dict[str, Any], second: dict[str, Any], works: bool
) -> None:
    """RFC 7009, section 2.1: it authenticates as at the token endpoint; a secret is not stored."""
    methods = ["none", "client_secret_basic"]
    world = revoking_world(
        token_endpoint_auth_methods_supported=methods, client_id_metadata_document_supported=True
    )
    stored = run(make_client(**first), world).stored
    ending = log_out(make_client(**second), world, stored=stored)[-1]

    assert isinstance(ending, LoggedOut) is works
    if isinstance(ending, AuthorizationFailed):
        assert ending.reason is AuthorizationFailure.NO_CLIENT


def test_clients_with_a_key_sign() -> None:
    """With the issuer as audience; a signer that fails ends it."""

    class Signer:
        algorithm = "ES256"
        works = True

        def sign(self, claims: Any) -> str:
            if not self.works:
                raise OSError("the key is in a drawer")
            assert claims["aud"] == ISSUER
            return "assertion"

    signer = Signer()
    world = revoking_world(token_endpoint_auth_methods_supported=["private_key_jwt"])
    client = make_client(grant=ClientCredentials(), registered={ISSUER: PUBLIC}, assertions=signer)
    run(client, world).authorized()
    assert isinstance(log_out(client, world)[-1], LoggedOut)
    (form,) = world.forms(REVOKE)
    assert form["client_assertion"] == "assertion"
    run(client, world).authorized()
    signer.works = False
    failed = log_out(client, world)[-1]

    assert isinstance(failed, AuthorizationFailed)
    assert failed.reason is AuthorizationFailure.UNSUPPORTED


def test_what_runs_is_cancelled() -> None:
    """And its late response changes nothing; a second log-out finds nothing."""
    world, client = revoking_world(), make_client()
    run(client, world).authorized()
    running = client.authorize(challenge(), now=0.0, at=AT)
    (late,) = [one.request for one in events_of(client) if isinstance(one, RequestWanted)]
    log_out(client, world)

    assert not running.open
    assert client.receive_response(late, 200, [], b"{}") is False
    assert client.headers("POST", MCP, at=AT) == []
    assert log_out(client, world)[-1].issuer is None


def test_logging_out_can_be_cancelled_and_takes_a_bounded_time() -> None:
    """The server may be down; what is stored here is gone."""
    world, client = revoking_world(), make_client()
    run(client, world).authorized()
    client.log_out(now=10.0, at=AT)
    assert client.next_timeout() == 40.0
    assert client.cancel() is True
    assert isinstance(events_of(client)[-1], AuthorizationFailed)
    assert not client.authorized
    run(client, world.put(PATH_METADATA, resource_document()), now=20.0).authorized()
