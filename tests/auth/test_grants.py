"""Grants without a user at the authorization server."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp.auth import (
    AssertionWanted,
    AuthorizationConfig,
    AuthorizationFailed,
    AuthorizationFailure,
    AuthorizationStep,
    ClientCredentials,
    ClientMetadata,
    EnterpriseManaged,
    Grant,
    RegisteredClient,
    WorkloadIdentity,
)
from tests.auth.test_token_endpoint import Signer, basic
from tests.support.auth.script import (
    AT,
    ISSUER,
    MCP,
    ORIGIN,
    PATH_METADATA,
    REGISTER,
    TOKEN,
    Answer,
    World,
    challenge,
    make_client,
    resource_document,
    run,
    token_document,
    usual_world,
)

IDP = "https://idp.example.com/token"
SECRET = {ISSUER: RegisteredClient(client_id="robot", client_secret="hidden")}
KEY = {ISSUER: RegisteredClient(client_id="robot")}
TYPE = "urn:ietf:params:oauth:token-type:"
GRANT_TYPE = "urn:ietf:params:oauth:grant-type:"
ID_JAG = {"access_token": "the-id-jag", "issued_token_type": f"{TYPE}id-jag", "token_type": "N_A"}


def world_of(method: str, **members: Any) -> World:
    """A world without PKCE, whose authorization server lists one way to authenticate."""
    return usual_world(
        code_challenge_methods_supported=None,
        token_endpoint_auth_methods_supported=[method],
        **members,
    )


def test_client_credentials_with_a_secret() -> None:
    """AUTH-353, AUTH-355, AUTH-361, AUTH-362, AUTH-363: no user agent, no PKCE, with resource."""
    world = world_of("client_secret_basic", authorization_endpoint=None)
    client = make_client(grant=ClientCredentials(), registered=SECRET)
    run(client, world, challenge(scope="a b")).authorized()

    assert basic(world) == "robot:hidden"
    assert world.forms() == [{"grant_type": "client_credentials", "scope": "a b", "resource": MCP}]
    assert world.opened == []


def test_client_credentials_in_the_body() -> None:
    """AUTH-361: as the metadata says."""
    world = world_of("client_secret_post")
    run(make_client(grant=ClientCredentials(), registered=SECRET), world).authorized()
    (form,) = world.forms()

    assert form["client_secret"] == "hidden"
    assert "scope" not in form


def test_client_credentials_with_a_key() -> None:
    """AUTH-355, AUTH-356, AUTH-357, AUTH-358, AUTH-359: the audience is the issuer."""
    signer = Signer()
    world = world_of("private_key_jwt")
    client = make_client(grant=ClientCredentials(), registered=KEY, assertions=signer)
    run(client, world).authorized()

    assert world.forms()[0]["client_assertion"] == "assertion-1"
    assert signer.signed[0]["aud"] == ISSUER
    assert signer.signed[0]["iss"] == signer.signed[0]["sub"] == "robot"
    assert signer.signed[0]["exp"] - signer.signed[0]["iat"] == 60


@pytest.mark.parametrize("registered", [{}, KEY])
def test_client_credentials_exist_beforehand(registered: Any) -> None:
    """AUTH-354, AUTH-355: no registration is tried, and no client without credentials."""
    world = world_of("client_secret_basic")
    run(make_client(grant=ClientCredentials(), registered=registered), world).failed(
        AuthorizationStep.CLIENT, AuthorizationFailure.NO_CLIENT, "AUTH-068"
    )

    assert world.asked(REGISTER) == []
    assert world.asked(TOKEN) == []


def test_client_credentials_can_be_asked_for() -> None:
    """AUTH-272: the application sees for which issuer, and decides."""
    world = world_of("client_secret_basic")
    config = AuthorizationConfig(ask_for_client=True)
    client = make_client(grant=ClientCredentials(), config=config)
    run(client, world, provide=SECRET[ISSUER]).authorized()

    assert basic(world) == "robot:hidden"


def test_client_credentials_are_renewed_without_a_refresh_token() -> None:
    """AUTH-364: none is expected, and one that comes is not used."""
    world = world_of("client_secret_basic").put(TOKEN, token_document(refresh_token="r"))
    client = make_client(grant=ClientCredentials(), registered=SECRET)
    done = run(client, world)
    run(client, world, in_advance=True, at=AT + 3590, now=3590.0).authorized()

    assert [form["grant_type"] for form in world.forms()] == ["client_credentials"] * 2
    assert done.stored[ISSUER]["tokens"]["refresh_token"] is None


def test_secret_is_not_stored() -> None:
    """AUTH-026: the application has it already."""
    world = world_of("client_secret_basic")
    client = make_client(grant=ClientCredentials(), registered=SECRET)

    assert "hidden" not in str(run(client, world).stored)


def enterprise(**values: Any) -> EnterpriseManaged:
    """The grant of an enterprise."""
    given: dict[str, Any] = {
        "token_endpoint": IDP,
        "client": RegisteredClient(client_id="at-idp"),
        "subject_token": "the-id-token",
    }
    return EnterpriseManaged(**{**given, **values})


def test_enterprise_managed() -> None:
    """AUTH-367, AUTH-368, AUTH-369, AUTH-374, AUTH-375, AUTH-376, AUTH-378, AUTH-384.

    Two requests, and no user at the authorization server.
    """
    world = world_of("client_secret_basic").put(IDP, ID_JAG)
    client = make_client(grant=enterprise(), registered=SECRET)
    run(client, world, challenge(scope="a")).authorized()

    assert world.forms(IDP) == [
        {
            "grant_type": f"{GRANT_TYPE}token-exchange",
            "requested_token_type": f"{TYPE}id-jag",
            "subject_token": "the-id-token",
            "subject_token_type": f"{TYPE}id_token",
            "audience": ISSUER,
            "resource": MCP,
            "scope": "a",
            "client_id": "at-idp",
        }
    ]
    assert world.forms() == [
        {
            "grant_type": f"{GRANT_TYPE}jwt-bearer",
            "assertion": "the-id-jag",
            "scope": "a",
            "resource": MCP,
        }
    ]
    assert basic(world) == "robot:hidden"
    assert world.opened == []
    assert client.headers("GET", MCP, at=AT) == [("Authorization", "Bearer first-token")]


def test_enterprise_in_2025_03_26_names_no_resource() -> None:
    """AUTH-369: "if sent"; that revision has no resource parameter."""
    from tests.support.auth.script import server_document

    world = World().put(IDP, ID_JAG).put(f"{ORIGIN}/token", token_document())
    world.put(
        f"{ORIGIN}/.well-known/oauth-authorization-server",
        server_document(ORIGIN, token_endpoint_auth_methods_supported=["client_secret_basic"]),
    )
    registered = {ORIGIN: SECRET[ISSUER]}
    client = make_client(grant=enterprise(), registered=registered)
    run(client, world, revision="2025-03-26").authorized()

    assert world.forms(IDP)[0].keys() == {
        "grant_type",
        "requested_token_type",
        "subject_token",
        "subject_token_type",
        "audience",
        "client_id",
    }


@pytest.mark.parametrize(
    ("method", "header"),
    [(None, True), ("client_secret_basic", True), ("client_secret_post", False)],
)
def test_client_authenticates_at_the_identity_provider(method: Any, header: bool) -> None:
    """AUTH-372, AUTH-376: with its credentials there, and not with those at the other server."""
    given = RegisteredClient(client_id="at-idp", client_secret="idp-secret", auth_method=method)
    world = world_of("client_secret_basic").put(IDP, ID_JAG)
    run(make_client(grant=enterprise(client=given), registered=SECRET), world).authorized()
    (request,) = world.asked(IDP)

    assert any(name == "Authorization" for name, _ in request.headers) is header
    assert (b"idp-secret" in request.body) is not header
    assert b"idp-secret" not in world.asked(TOKEN)[0].body


def test_metadata_url_at_the_enterprise_server() -> None:
    """AUTH-377: without registration there."""
    url = "https://c.example.com/m"
    world = world_of("none", client_id_metadata_document_supported=True).put(IDP, ID_JAG)
    run(make_client(grant=enterprise(), client=ClientMetadata(url=url)), world).authorized()

    assert world.forms()[0]["client_id"] == url


def test_saml_assertion_is_exchanged_for_a_refresh_token_first() -> None:
    """AUTH-370, AUTH-371: and that for the grant."""
    world = world_of("client_secret_basic").put(
        IDP,
        {
            "access_token": "idp-refresh",
            "issued_token_type": f"{TYPE}refresh_token",
            "token_type": "N_A",
        },
        ID_JAG,
    )
    grant = enterprise(subject_token="<saml>", subject_token_type=f"{TYPE}saml2")
    run(make_client(grant=grant, registered=SECRET), world).authorized()
    first, second = world.forms(IDP)

    assert (first["subject_token"], first["requested_token_type"]) == (
        "<saml>",
        f"{TYPE}refresh_token",
    )
    assert first["subject_token_type"] == f"{TYPE}saml2"
    assert (second["subject_token"], second["requested_token_type"]) == (
        "idp-refresh",
        f"{TYPE}id-jag",
    )
    assert second["subject_token_type"] == f"{TYPE}refresh_token"
    assert second["audience"] == ISSUER


@pytest.mark.parametrize(
    "members",
    [
        {"issued_token_type": None},
        {"issued_token_type": f"{TYPE}access_token"},
        {"access_token": None},
        {"access_token": ""},
        {"access_token": 17},
    ],
)
def test_exchange_that_gives_no_grant_ends_it(members: dict[str, Any]) -> None:
    """AUTH-373, AUTH-374: an access token of the identity provider goes nowhere."""
    world = world_of("client_secret_basic").put(IDP, {**ID_JAG, **members})
    run(make_client(grant=enterprise(), registered=SECRET), world).failed(
        AuthorizationStep.EXCHANGE, AuthorizationFailure.INVALID_RESPONSE, "AUTH-373"
    )

    assert world.asked(TOKEN) == []


@pytest.mark.parametrize(
    ("answer", "reason", "rule"),
    [
        (Answer({"error": "access_denied"}, 400), AuthorizationFailure.DENIED, "AUTH-367"),
        (Answer({"error": "invalid_target"}, 400), AuthorizationFailure.REFUSED, "AUTH-367"),
        (Answer(b"", 500), AuthorizationFailure.UNREACHABLE, None),
        (None, AuthorizationFailure.UNREACHABLE, None),
    ],
)
def test_exchange_that_fails(answer: Any, reason: AuthorizationFailure, rule: Any) -> None:
    """The step says that it was the identity provider."""
    world = world_of("client_secret_basic").put(IDP, answer)
    run(make_client(grant=enterprise(), registered=SECRET), world).failed(
        AuthorizationStep.EXCHANGE, reason, rule
    )


def test_exchange_is_repeated_for_each_token() -> None:
    """AUTH-383: a grant that has expired is not used again."""
    world = world_of("client_secret_basic").put(IDP, ID_JAG)
    client = make_client(grant=enterprise(), registered=SECRET)
    run(client, world).authorized()
    run(client, world).authorized()

    assert len(world.asked(IDP)) == 2


def test_enterprise_needs_a_client_at_the_authorization_server() -> None:
    """AUTH-376: dynamic registration is not used."""
    world = world_of("client_secret_basic").put(IDP, ID_JAG)
    run(make_client(grant=enterprise()), world).failed(
        AuthorizationStep.CLIENT, AuthorizationFailure.NO_CLIENT, "AUTH-068"
    )

    assert world.asked(IDP) == []
    assert world.asked(REGISTER) == []


@pytest.mark.parametrize("url", ["http://idp.example.com/token", "idp", "https://i.example.com/#a"])
def test_identity_provider_is_reached_by_tls(url: str) -> None:
    """AUTH-380: the assertion of the user goes there."""
    with pytest.raises(ValueError, match=r"^token_endpoint "):
        enterprise(token_endpoint=url)


def test_identity_provider_may_be_in_the_own_network() -> None:
    """The application has named it itself; the MCP server gets no further for that."""
    world = world_of("client_secret_basic").put("https://10.0.0.5/token", ID_JAG)
    grant = enterprise(token_endpoint="https://10.0.0.5/token")
    run(make_client(grant=grant, registered=SECRET), world).authorized()

    assert world.asked("https://10.0.0.5/token")[0].allows_address("10.0.0.5")
    assert not world.asked(TOKEN)[0].allows_address("10.0.0.5")


@pytest.mark.parametrize("kind", [f"{TYPE}access_token", "jwt"])
def test_types_of_identity_assertions(kind: str) -> None:
    """AUTH-370: an ID token, or SAML 2."""
    with pytest.raises(ValueError, match="subject_token_type"):
        enterprise(subject_token_type=kind)


def test_workload_identity() -> None:
    """AUTH-417, AUTH-418, AUTH-423: the JWT as it is, with resource, and no client id."""
    world = world_of("none", registration_endpoint=None)
    run(make_client(grant=WorkloadIdentity(assertion="a.b.c")), world).authorized()

    assert world.forms() == [
        {"grant_type": f"{GRANT_TYPE}jwt-bearer", "assertion": "a.b.c", "resource": MCP}
    ]
    assert "Authorization" not in dict(world.asked(TOKEN)[0].headers)


def test_workload_with_a_registered_client() -> None:
    """AUTH-418: it may be registered all the same."""
    world = world_of("none")
    grant = WorkloadIdentity(assertion="a.b.c", scopes=["x"])
    run(make_client(grant=grant, registered=KEY), world).authorized()

    assert world.forms()[0]["client_id"] == "robot"
    assert world.forms()[0]["scope"] == "x"


@pytest.mark.parametrize("error", ["invalid_grant", "invalid_scope", "unauthorized_client"])
def test_rejected_assertion_is_not_sent_again(error: str) -> None:
    """AUTH-419, AUTH-420: no other grant is tried, and the error reaches the caller."""
    world = world_of("none").put(TOKEN, Answer({"error": error}, 400))
    failed = run(make_client(grant=WorkloadIdentity(assertion="a.b.c")), world).failed(
        AuthorizationStep.TOKEN, AuthorizationFailure.REFUSED, None
    )

    assert failed.error == error
    assert len(world.asked(TOKEN)) == 1
    assert world.asked(REGISTER) == []


@pytest.mark.parametrize(
    ("grant", "registered"),
    [(WorkloadIdentity(), {}), (enterprise(subject_token=None), SECRET)],
)
def test_assertions_are_asked_for_each_time(grant: Grant, registered: Any) -> None:
    """AUTH-383, AUTH-421, AUTH-424: an expired one is not used, since a new one is at hand."""
    world = world_of("client_secret_basic" if registered else "none").put(IDP, ID_JAG)
    client = make_client(grant=grant, registered=registered)
    asked: list[AssertionWanted] = []
    for assertion in ("first", "second"):
        done = run(client, world, provide=assertion)
        done.authorized()
        asked += [event for event in done.events if isinstance(event, AssertionWanted)]
    assert asked == [AssertionWanted(issuer=ISSUER, token_endpoint=TOKEN, resource=MCP)] * 2
    sent = [form.get("assertion", form.get("subject_token")) for form in world.forms()]
    if registered:
        sent = [form["subject_token"] for form in world.forms(IDP)]

    assert sent == ["first", "second"]
    assert client.provide_assertion("late") is False


def test_application_without_an_assertion() -> None:
    """The attempt ends at that step."""
    world = world_of("none")
    run(make_client(grant=WorkloadIdentity()), world).failed(
        AuthorizationStep.ASSERTION, AuthorizationFailure.NO_ASSERTION, "AUTH-421"
    )


def test_grants_without_a_user_end_too() -> None:
    """AUTH-304: tokens that the MCP server refuses are not asked for without end."""
    world = world_of("none")
    client = make_client(grant=WorkloadIdentity(assertion="a.b.c"))
    for _ in range(3):
        run(client, world).authorized()
    done = run(client, world)

    assert isinstance(done.ending, AuthorizationFailed)
    assert done.ending.reason is AuthorizationFailure.TOO_MANY_ATTEMPTS


@pytest.mark.parametrize("grant", [WorkloadIdentity(assertion="x"), ClientCredentials()])
def test_resource_of_the_metadata_is_named(grant: Grant) -> None:
    """AUTH-215, AUTH-362, AUTH-384: verbatim, with every grant."""
    world = world_of("client_secret_basic")
    world.put(PATH_METADATA, resource_document(resource=ORIGIN))
    run(make_client(grant=grant, registered=SECRET), world).authorized()

    assert world.forms()[0]["resource"] == ORIGIN


class BrokenSigner(Signer):
    """A key that is not there any more."""

    def sign(self, claims: Any) -> str:
        """Fail, with a text that nobody is to read."""
        raise OSError("hidden-pin")


def test_failure_of_a_signer_ends_the_attempt() -> None:
    """A verb of the transport does not raise for it, and no attempt is left without an end."""
    client = make_client(grant=ClientCredentials(), registered=KEY, assertions=BrokenSigner())
    failed = run(client, world_of("private_key_jwt")).failed(
        AuthorizationStep.TOKEN, AuthorizationFailure.UNSUPPORTED, None
    )

    assert "OSError" in failed.text
    assert "hidden-pin" not in repr(failed)
    assert client.attempt is None


def test_key_that_the_identity_provider_wants_and_nobody_has() -> None:
    """AUTH-277: it is said, and no attempt is left without an end."""
    grant = EnterpriseManaged(
        token_endpoint=IDP,
        client=RegisteredClient(client_id="c", auth_method="private_key_jwt"),
        subject_token="id-token",
    )
    client = make_client(grant=grant, registered=SECRET)
    run(client, world_of("client_secret_basic")).failed(
        AuthorizationStep.EXCHANGE, AuthorizationFailure.UNSUPPORTED, "AUTH-277"
    )

    assert client.attempt is None


@pytest.mark.parametrize("token", ["\ud800", "a\nb", "\u00e9"])
def test_grants_of_other_characters_are_none(token: str) -> None:
    """AUTH-373: they could not be sent."""
    grant = EnterpriseManaged(
        token_endpoint=IDP, client=RegisteredClient(client_id="c"), subject_token="id-token"
    )
    world = world_of("client_secret_basic").put(IDP, {**ID_JAG, "access_token": token})
    run(make_client(grant=grant, registered=SECRET), world).failed(
        AuthorizationStep.EXCHANGE, AuthorizationFailure.INVALID_RESPONSE, "AUTH-373"
    )
