"""Nothing secret is in a repr, an event or an error text."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp.auth import (
    AuthorizationEvent,
    ClientCredentials,
    CredentialsToStore,
    EnterpriseManaged,
    HTTPRequest,
    RegisteredClient,
    RequestWanted,
    UserAgentWanted,
    WorkloadIdentity,
)
from tests.auth.test_grants import ID_JAG, IDP
from tests.auth.test_token_endpoint import Signer
from tests.support.auth.script import (
    ISSUER,
    PATH_METADATA,
    REGISTER,
    SERVER_METADATA,
    TOKEN,
    Answer,
    challenge,
    make_client,
    resource_document,
    run,
    server_document,
    token_document,
    usual_world,
)

SECRETS = (
    "first-token",
    "secret-refresh",
    "hidden-secret",
    "the-code",
    "the-id-token",
    "the-id-jag",
    "the-workload",
    "assertion-1",
)
KNOWN = {ISSUER: RegisteredClient(client_id="c", client_secret="hidden-secret")}
IDENTITY = EnterpriseManaged(
    token_endpoint=IDP,
    client=RegisteredClient(client_id="c", client_secret="hidden-secret"),
    subject_token="the-id-token",
)
CASES: dict[str, dict[str, Any]] = {
    "user": {"registered": KNOWN},
    "dynamic": {},
    "client credentials": {"grant": ClientCredentials(), "registered": KNOWN},
    "key": {
        "grant": ClientCredentials(),
        "registered": {ISSUER: RegisteredClient(client_id="c")},
        "assertions": Signer(),
    },
    "enterprise": {"grant": IDENTITY, "registered": KNOWN},
    "workload": {"grant": WorkloadIdentity(assertion="the-workload")},
}
ANSWERS: dict[str, list[Answer]] = {
    "success": [Answer(token_document(refresh_token="secret-refresh"))] * 2,
    "refused": [
        Answer(token_document(refresh_token="secret-refresh")),
        Answer({"error": "invalid_grant"}, 400),
    ],
    "bad token": [Answer({"access_token": "first-token secret-refresh", "token_type": "x"})],
}


def shown(events: list[AuthorizationEvent], requests: list[HTTPRequest]) -> str:
    """All that a program could log."""
    texts = [repr(event) for event in events]
    texts += [str(event) for event in events]
    texts += [repr(request) for request in requests]
    texts += [request.url for request in requests]
    return "\n".join(texts)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("answers", ANSWERS)
def test_nothing_secret_is_shown(case: str, answers: str) -> None:
    """AUTH-026, AUTH-285, AUTH-380: reprs, URLs of requests and texts end up in logs."""
    world = usual_world(
        token_endpoint_auth_methods_supported=[
            "none",
            "client_secret_basic",
            "client_secret_post",
            "private_key_jwt",
        ]
    )
    world.put(IDP, ID_JAG).put(TOKEN, *ANSWERS[answers])
    world.put(REGISTER, {"client_id": "c", "client_secret": "hidden-secret"})
    client = make_client(**CASES[case])
    events = run(client, world).events
    events += run(client, world, challenge(error="invalid_token")).events
    text = shown(events, world.requests) + repr(client) + repr(CASES[case].get("grant"))

    secrets = [*SECRETS, *(form["code_verifier"] for form in world.forms() if "code" in form)]
    secrets += [query["state"] for query in world.queries()]
    assert [secret for secret in secrets if secret in text] == []
    assert any(isinstance(event, RequestWanted) for event in events)


@pytest.mark.parametrize("member", ["error", "error_description"])
def test_servers_that_repeat_secrets(member: str) -> None:
    """AUTH-285: a verbose server does not write them into the log of the client."""

    def echo(*secrets: str) -> Answer:
        document = {"error": "invalid_request", member: " ".join(("said", *secrets))}
        return Answer(document, 400)

    world = usual_world(token_endpoint_auth_methods_supported=["client_secret_post"])
    world.put(TOKEN, token_document(refresh_token="secret-refresh"))
    client = make_client(registered=KNOWN)
    events = run(client, world).events
    answer = echo("hidden-secret", "secret-refresh")
    world.put(TOKEN, answer, echo("the-code", "hidden-secret"))
    events += run(client, world, challenge(error="invalid_token")).events
    events += run(client, world, challenge(scope="more")).events
    world.put(TOKEN, token_document())
    world.callback = {"error": "x", "error_description": "x", member: "said the-code"}
    events += run(client, world, challenge(scope="more")).events
    answer = echo("hidden-secret")
    world.put(REGISTER, Answer({**answer.body, "client_secret": "hidden-secret"}, 400))
    world.put(SERVER_METADATA, server_document(token_endpoint_auth_methods_supported=["none"]))
    events += run(make_client(), world).events
    text = shown(events, world.requests)

    assert [secret for secret in SECRETS if secret in text] == []
    assert text.count("said [hidden]") >= 4


def test_names_of_servers_are_shown_without_control_characters() -> None:
    """What a terminal would act on is no part of a step."""
    world = usual_world()
    document = resource_document(authorization_servers=[ISSUER, "https://x.example\x1b[2J"])
    text = "".join(
        one.conclusion for one in run(make_client(), world.put(PATH_METADATA, document)).steps
    )

    assert "https://x.example?[2J" in text
    assert "\x1b" not in text


def test_what_holds_secrets_hides_them() -> None:
    """AUTH-285: the URL that is opened has the state, and the record has the tokens."""
    world = usual_world()
    events = run(make_client(), world).events
    opened = next(event for event in events if isinstance(event, UserAgentWanted))
    stored = [event for event in events if isinstance(event, CredentialsToStore)][-1]

    assert world.queries()[0]["state"] in opened.url
    assert repr(opened) == (
        "UserAgentWanted(redirect_uri='http://127.0.0.1:8765/callback', "
        "issuer='https://as.example.com')"
    )
    assert stored.record is not None
    assert repr(stored) == "CredentialsToStore(issuer='https://as.example.com')"


@pytest.mark.parametrize("grant", [IDENTITY, WorkloadIdentity(assertion="the-workload")])
def test_grants_hide_their_assertions(grant: Any) -> None:
    """AUTH-285, AUTH-422: settings are shown, too."""
    assert "the-" not in repr(grant)
    assert "hidden" not in repr(grant)
