"""The choice of a client id, and dynamic registration."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sansmcp.auth import (
    AuthorizationClient,
    AuthorizationCode,
    AuthorizationConfig,
    AuthorizationFailed,
    AuthorizationFailure,
    AuthorizationStep,
    ClientMetadata,
    CredentialsToStore,
    RegisteredClient,
    UserAgentWanted,
)
from tests.support.auth.script import (
    AT,
    ISSUER,
    MCP,
    REDIRECT,
    REGISTER,
    TOKEN,
    Answer,
    World,
    answer_requests,
    challenge,
    events_of,
    make_client,
    run,
    token_document,
    usual_world,
)

STEP = AuthorizationStep.REGISTRATION
METADATA_URL = "https://client.example.com/oauth/metadata.json"
KNOWN = {ISSUER: RegisteredClient(client_id="known-client")}


def registration(world: Any) -> dict[str, Any]:
    """The body of the only registration."""
    (request,) = world.asked(REGISTER)
    assert request.method == "POST"
    assert ("Content-Type", "application/json") in request.headers
    body: dict[str, Any] = json.loads(request.body)
    return body


def test_registered_clients_come_first() -> None:
    """AUTH-067, AUTH-068, AUTH-078, AUTH-272: before a metadata URL and a registration."""
    world = usual_world(client_id_metadata_document_supported=True)
    client = make_client(registered=KNOWN, client=ClientMetadata(url=METADATA_URL))
    run(client, world).authorized()

    assert world.queries()[0]["client_id"] == "known-client"
    assert world.asked(REGISTER) == []


def test_registered_clients_of_other_servers_are_not_used() -> None:
    """AUTH-044, AUTH-078, AUTH-079: credentials are bound to their issuer, exactly."""
    registered = {
        issuer: RegisteredClient(client_id="secret", client_secret="hidden")
        for issuer in ("https://as.example.com/", "https://other.example.com", "*", "")
    }
    world = usual_world()
    run(make_client(registered=registered), world).authorized()

    assert world.queries()[0]["client_id"] == "dynamic-client"
    assert b"hidden" not in b"".join(request.body for request in world.requests)


def test_metadata_url_is_the_client_id_where_it_is_supported() -> None:
    """AUTH-067, AUTH-069, AUTH-070: exactly the URL, and no registration."""
    world = usual_world(client_id_metadata_document_supported=True)
    run(make_client(client=ClientMetadata(url=METADATA_URL)), world).authorized()

    assert world.queries()[0]["client_id"] == METADATA_URL
    assert world.forms()[0]["client_id"] == METADATA_URL
    assert world.asked(REGISTER) == []


@pytest.mark.parametrize("supported", [None, False, "true", 1])
def test_metadata_url_is_not_used_elsewhere(supported: object) -> None:
    """AUTH-069, AUTH-265: dynamic registration follows."""
    world = usual_world(client_id_metadata_document_supported=supported)
    run(make_client(client=ClientMetadata(url=METADATA_URL)), world).authorized()

    assert world.queries()[0]["client_id"] == "dynamic-client"


@pytest.mark.parametrize(
    "url",
    [
        "http://client.example.com/metadata",
        "https://client.example.com",
        "https://client.example.com/",
        "https://client.example.com/a#b",
        "https://me@client.example.com/a",
        "https://client.example.com/a/../b",
        "https://client.example.com/./b",
        "client.json",
    ],
)
def test_metadata_url_must_be_one(url: str) -> None:
    """AUTH-070, AUTH-072, AUTH-262: https, with a path, without dots, fragment and user."""
    with pytest.raises(ValueError, match=r"^url "):
        ClientMetadata(url=url)


def test_redirect_uri_is_one_of_the_metadata_document() -> None:
    """AUTH-071, AUTH-263: the authorization server compares it with the document."""
    given = ClientMetadata(url=METADATA_URL, redirect_uris=["https://a.example.com/cb"])
    with pytest.raises(ValueError, match="redirect_uri of the grant must be one of redirect_uris"):
        make_client(client=given)
    world = usual_world(client_id_metadata_document_supported=True)
    given = ClientMetadata(url=METADATA_URL, redirect_uris=["https://a.example.com/cb", REDIRECT])
    run(make_client(client=given), world).authorized()

    assert world.queries()[0]["redirect_uri"] == REDIRECT


def test_registration_says_what_the_client_is() -> None:
    """AUTH-020, AUTH-055, AUTH-075, AUTH-089, AUTH-256, AUTH-259: all that servers ask for."""
    given = ClientMetadata(
        name="Demo",
        uri="https://demo.example.com",
        logo_uri="https://demo.example.com/logo.png",
        software_id="demo",
        software_version="1.2",
    )
    world = usual_world()
    run(make_client(client=given), world).authorized()

    assert registration(world) == {
        "redirect_uris": [REDIRECT],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "client_name": "Demo",
        "application_type": "native",
        "client_uri": "https://demo.example.com",
        "logo_uri": "https://demo.example.com/logo.png",
        "software_id": "demo",
        "software_version": "1.2",
    }
    assert world.queries()[0]["redirect_uri"] == REDIRECT


@pytest.mark.parametrize(
    ("redirect_uri", "given", "kind"),
    [
        ("http://localhost:1/cb", None, "native"),
        ("http://127.0.0.1/cb", None, "native"),
        ("http://[::1]:1/cb", None, "native"),
        ("https://app.example.com/cb", None, "web"),
        ("https://app.example.com/cb", "native", "native"),
        ("http://localhost:1/cb", "web", "web"),
    ],
)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_application_type(redirect_uri: str, given: Any, kind: str, revision: str) -> None:
    """AUTH-075, AUTH-076, AUTH-259: native or web, by the redirect URI unless it is given."""
    client = make_client(
        grant=AuthorizationCode(redirect_uri=redirect_uri),
        client=ClientMetadata(application_type=given),
    )
    world = usual_world()
    run(client, world, revision=revision).authorized()

    assert registration(world)["application_type"] == kind


def test_client_that_wants_no_refresh_tokens_says_so() -> None:
    """AUTH-089: whoever cannot store them does not ask for them."""
    world = usual_world()
    run(make_client(client=ClientMetadata(refresh=False)), world).authorized()

    assert registration(world)["grant_types"] == ["authorization_code"]


@pytest.mark.parametrize(
    ("listed", "method"),
    [
        (["none"], "none"),
        (["client_secret_post", "client_secret_basic"], "client_secret_basic"),
        (["client_secret_post"], "client_secret_post"),
        (None, "client_secret_basic"),
    ],
)
def test_registration_asks_for_a_method_that_is_listed(listed: Any, method: str) -> None:
    """AUTH-277, AUTH-278: a missing list means client_secret_basic."""
    world = usual_world(token_endpoint_auth_methods_supported=listed)
    run(make_client(), world).authorized()

    assert registration(world)["token_endpoint_auth_method"] == method


def test_methods_that_cannot_be_used_end_it() -> None:
    """AUTH-277: nothing is registered that could not be used."""
    world = usual_world(token_endpoint_auth_methods_supported=["tls_client_auth"])
    run(make_client(), world).failed(
        AuthorizationStep.CLIENT, AuthorizationFailure.UNSUPPORTED, "AUTH-277"
    )

    assert world.asked(REGISTER) == []


@pytest.mark.parametrize(
    ("answered", "header", "fields"),
    [
        ({"client_secret": "s"}, True, {}),
        ({"client_secret": "s", "token_endpoint_auth_method": "client_secret_basic"}, True, {}),
        (
            {"client_secret": "s", "token_endpoint_auth_method": "client_secret_post"},
            False,
            {"client_id": "c", "client_secret": "s"},
        ),
        ({"client_secret": "s", "token_endpoint_auth_method": "none"}, False, {"client_id": "c"}),
        ({}, False, {"client_id": "c"}),
        ({"client_secret": 17}, False, {"client_id": "c"}),
    ],
)
def test_values_of_the_response_count(
    answered: dict[str, Any], header: bool, fields: dict[str, str]
) -> None:
    """AUTH-257, AUTH-280: the server may register something else than what was asked for."""
    world = usual_world(token_endpoint_auth_methods_supported=["none", "client_secret_basic"])
    world.put(REGISTER, {"client_id": "c", **answered})
    run(make_client(), world).authorized()

    (request,) = world.asked(TOKEN)
    assert ("Authorization", "Basic Yzpz") in request.headers if header else True
    assert any(name == "Authorization" for name, _ in request.headers) is header
    form = world.forms()[0]
    assert {name: form[name] for name in form if name.startswith("client_")} == fields


@pytest.mark.parametrize(
    "answered",
    [
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"token_endpoint_auth_method": "private_key_jwt", "client_secret": "s"},
        {"token_endpoint_auth_method": "client_secret_basic"},
        {"token_endpoint_auth_method": "client_secret_post", "client_secret": ""},
        {"client_id": "\ud800"},
        {"client_id": "c\n"},
        {"client_secret": "\udfff"},
    ],
)
def test_registrations_that_cannot_be_used_end_it(answered: dict[str, Any]) -> None:
    """AUTH-257: nothing that a server sends raises, or leaves an attempt without an end."""
    world = usual_world().put(REGISTER, Answer({"client_id": "c", **answered}, 201))
    client = make_client()
    failed = run(client, world).failed(STEP, AuthorizationFailure.REGISTRATION_REFUSED, "AUTH-077")

    assert "can use" in failed.text
    assert client.attempt is None


def test_stored_registration_that_cannot_be_used_is_not_used() -> None:
    """AUTH-258: an earlier version may have stored it."""
    world = usual_world()
    stored = run(make_client(), world).stored
    stored[ISSUER]["tokens"] = None
    stored[ISSUER]["client"]["auth_method"] = "private_key_jwt"
    run(make_client(), world, stored=stored).authorized()

    assert len(world.asked(REGISTER)) == 2


@pytest.mark.parametrize("error", ["access_denied", None])
def test_new_registration_leaves_a_login_that_works(error: str | None) -> None:
    """A user who cancels a step-up, or whose new client is refused, is logged in still."""
    world = usual_world()
    stored = run(make_client(), world).stored
    grant = AuthorizationCode(redirect_uri="http://127.0.0.1:9999/callback")
    client = make_client(grant=grant)
    world.put(REGISTER, {"client_id": "second-client"})
    world.put(TOKEN, Answer({"error": "invalid_client"}, 401), token_document(access_token="new"))
    world.callback["error"] = error
    more = challenge(403, error="insufficient_scope", scope="x")
    done = run(client, world, more, stored=stored)

    assert len(world.asked(REGISTER)) == 2
    assert done.stored == {}
    assert client.headers("POST", MCP, at=AT) == [("Authorization", "Bearer first-token")]
    world.callback["error"] = None
    world.put(TOKEN, token_document(access_token="new"))
    record = run(client, world, more).stored[ISSUER]
    assert record["client"]["client_id"] == "second-client"
    assert record["tokens"]["access_token"] == "new"


def test_secret_without_a_method_goes_where_the_metadata_says() -> None:
    """AUTH-277: one that the metadata lists."""
    world = usual_world(token_endpoint_auth_methods_supported=["client_secret_post"])
    world.put(REGISTER, {"client_id": "c", "client_secret": "s"})
    run(make_client(), world).authorized()

    assert world.forms()[0]["client_secret"] == "s"


@pytest.mark.parametrize(
    ("answer", "words", "error"),
    [
        (
            Answer({"error": "invalid_redirect_uri", "error_description": "no\nloopback"}, 400),
            "status 400, invalid_redirect_uri (no?loopback); try another redirect URI",
            "invalid_redirect_uri",
        ),
        (Answer({"error": "invalid_client_metadata"}, 400), "invalid_client_metadata", None),
        (Answer(b"<html>", 403), "status 403", None),
        (Answer(b"", 307, (("Location", "https://other.example.com/register"),)), "307", None),
        (Answer({"client_id": ""}, 201), "status 201", None),
        (Answer({"client_id": 17}, 201), "status 201", None),
        (Answer({}, 201), "status 201", None),
        (Answer(b"[]", 201), "status 201", None),
        (Answer(b"", 500), "status 500", None),
    ],
)
def test_rejected_registrations_are_errors_with_a_meaning(
    answer: Answer, words: str, error: str | None
) -> None:
    """AUTH-077, AUTH-260: the application can tell its author what to change."""
    world = usual_world().put(REGISTER, answer)
    failed = run(make_client(), world).failed(
        STEP, AuthorizationFailure.REGISTRATION_REFUSED, "AUTH-077"
    )

    assert words in failed.text
    assert failed.error == (error or failed.error)
    assert world.opened == []
    assert len(world.asked(REGISTER)) == 1  # and no redirect was followed


def test_registration_without_a_response() -> None:
    """What is stored is not touched."""
    world = usual_world().put(REGISTER, None)
    failed = run(make_client(), world).failed(STEP, AuthorizationFailure.UNREACHABLE, None)

    assert "connection refused" in failed.text


def test_without_any_way_to_get_a_client_id_it_ends() -> None:
    """AUTH-068, AUTH-081, AUTH-205, AUTH-256: the text says what the application can do."""
    world = usual_world(registration_endpoint=None)
    failed = run(make_client(), world).failed(
        AuthorizationStep.CLIENT, AuthorizationFailure.NO_CLIENT, "AUTH-068"
    )

    assert f"no client id for {ISSUER}" in failed.text
    assert failed.issuer == ISSUER
    assert world.opened == []


def test_application_can_be_asked_for_a_client_id() -> None:
    """AUTH-067, AUTH-205: the last way is to let the user enter one."""
    config = AuthorizationConfig(ask_for_client=True)
    world = usual_world(registration_endpoint=None)
    client = make_client(config=config)
    run(client, world, provide=KNOWN[ISSUER]).authorized()

    assert world.queries()[0]["client_id"] == "known-client"
    assert client.provide_client(None) is False


def test_application_without_a_client_id() -> None:
    """The question has one answer, and the attempt one ending."""
    world = usual_world(registration_endpoint=None)
    run(make_client(config=AuthorizationConfig(ask_for_client=True)), world).failed(
        AuthorizationStep.CLIENT, AuthorizationFailure.NO_CLIENT, "AUTH-068"
    )


def test_client_id_that_cannot_be_used_ends_it() -> None:
    """AUTH-081, AUTH-277: also when it was entered just now."""
    given = RegisteredClient(client_id="c", client_secret="s")
    world = usual_world(registration_endpoint=None)
    client = make_client(config=AuthorizationConfig(ask_for_client=True))
    run(client, world, provide=given).failed(
        AuthorizationStep.CLIENT, AuthorizationFailure.UNSUPPORTED, "AUTH-277"
    )


def test_registration_is_stored_and_used_again() -> None:
    """A client that registers each time fills the authorization server with clients."""
    world = usual_world()
    stored = run(make_client(), world).stored
    stored[ISSUER]["tokens"] = None
    run(make_client(), world, stored=stored).authorized()

    assert len(world.asked(REGISTER)) == 1
    assert [query["client_id"] for query in world.queries()] == ["dynamic-client"] * 2


def test_registration_is_stored_before_the_user_is_asked() -> None:
    """A user who does not come back leaves a registration, not one for each attempt."""
    world = usual_world()
    world.callback["error"] = "access_denied"
    world.callback["code"] = None
    done = run(make_client(), world)

    assert done.stored[ISSUER]["client"]["client_id"] == "dynamic-client"
    assert done.stored[ISSUER]["tokens"] is None


@pytest.mark.parametrize(
    ("expires", "registrations"), [(0, 1), (AT + 60, 1), (AT + 1, 2), (-5, 1), ("x", 1)]
)
def test_registration_ends_with_its_secret(expires: Any, registrations: int) -> None:
    """AUTH-258: 0 is never."""
    world = usual_world(token_endpoint_auth_methods_supported=["client_secret_basic"])
    document = {"client_id": "c", "client_secret": "s", "client_secret_expires_at": expires}
    world.put(REGISTER, document)
    stored = run(make_client(), world).stored
    stored[ISSUER]["tokens"] = None
    run(make_client(), world, stored=stored, at=AT + 30).authorized()

    assert len(world.asked(REGISTER)) == registrations


def test_registration_with_another_redirect_uri_is_not_used() -> None:
    """AUTH-055: a loopback redirect may have another port each time."""
    world = usual_world()
    stored = run(make_client(), world).stored
    stored[ISSUER]["tokens"] = None
    grant = AuthorizationCode(redirect_uri="http://127.0.0.1:9999/callback")
    run(make_client(grant=grant), world, stored=stored).authorized()

    assert len(world.asked(REGISTER)) == 2


@pytest.mark.parametrize("error", ["invalid_client", "unauthorized_client"])
def test_registration_that_the_server_has_forgotten_is_dropped(error: str) -> None:
    """The next attempt registers again, where it would fail for ever otherwise."""
    world = usual_world().put(TOKEN, Answer({"error": error}, 401), token_document())
    client = make_client()
    failed = run(client, world).failed(AuthorizationStep.TOKEN, AuthorizationFailure.REFUSED, None)
    assert failed.error == error
    run(client, world).authorized()

    assert len(world.asked(REGISTER)) == 2


def until_the_user_is_away(client: AuthorizationClient, world: World, refusal: Any = None) -> None:
    """Begin an attempt, and let the user read whatever page comes."""
    client.authorize(refusal or challenge(), now=0, at=AT)
    while events := events_of(client):
        asked = [one for one in events if not isinstance(one, UserAgentWanted)]
        world.opened += [one.url for one in events if isinstance(one, UserAgentWanted)]
        answer_requests(client, world, asked, 0)


def leave(client: AuthorizationClient, how: str) -> AuthorizationFailed:
    """End the wait for the user."""
    if how == "timeout":
        deadline = client.next_timeout()
        assert deadline is not None
        client.handle_timeout(deadline)
    else:
        client.cancel()
    failed = events_of(client)[-1]
    assert isinstance(failed, AuthorizationFailed)
    return failed


BOTH_ENDS = pytest.mark.parametrize("how", ["timeout", "cancel"])


@BOTH_ENDS
def test_registration_with_which_no_user_comes_back_is_forgotten(how: str) -> None:
    """RFC 6749, section 4.1.2.1: a server that does not know the client shows that to the user.

    It sends nobody back, and would not the next time.
    """
    client, world = make_client(), usual_world()
    world.put(REGISTER, Answer({"client_id": "one"}, 201), Answer({"client_id": "two"}, 201))
    until_the_user_is_away(client, world)
    assert "registration" not in leave(client, how).text  # it is new: nobody has forgotten it
    until_the_user_is_away(client, world)
    assert "the next login makes a new one" in leave(client, how).text
    run(client, world).authorized()

    assert [query["client_id"] for query in world.queries()] == ["one", "one", "two"]


@BOTH_ENDS
def test_registration_with_tokens_is_kept_for_their_refresh(how: str) -> None:
    """The user may have looked away only: what works goes on working, for the next process, too."""
    world = usual_world().put(
        TOKEN, token_document(refresh_token="r", scope="a"), token_document(scope="a b")
    )
    world.put(REGISTER, Answer({"client_id": "one"}, 201), Answer({"client_id": "two"}, 201))
    client = make_client()
    stored = run(client, world, challenge(scope="a")).stored
    client.authorize(challenge(403, error="insufficient_scope", scope="b"), now=0, at=AT)
    until_the_user_is_away(client, world)
    if how == "timeout":
        client.handle_timeout(600.0)
    else:
        client.cancel()
    stored |= {
        one.issuer: one.record for one in events_of(client) if isinstance(one, CredentialsToStore)
    }
    other = make_client()
    run(other, world, stored=stored, in_advance=True, at=AT + 4000).authorized()
    assert world.forms()[-1]["client_id"] == "one"
    run(other, world, challenge(403, error="insufficient_scope", scope="c"))

    assert [query["client_id"] for query in world.queries()] == ["one", "one", "two"]


def test_registration_that_another_process_has_replaced_is_kept() -> None:
    """It has stored its credentials while the user was away."""
    client, world = make_client(), usual_world()
    world.put(REGISTER, Answer({"client_id": "one"}, 201), Answer({"client_id": "two"}, 201))
    until_the_user_is_away(client, world)
    leave(client, "cancel")
    until_the_user_is_away(client, world)
    theirs = run(make_client(), world, at=AT + 1).stored
    client.authorize(challenge(), stored=theirs, now=0, at=AT + 2)
    leave(client, "timeout")
    run(client, world, at=AT + 3).authorized()

    assert [query["client_id"] for query in world.queries()] == ["one", "one", "two", "two"]


@pytest.mark.parametrize("registered", [KNOWN, None])
def test_other_clients_are_not_forgotten(registered: Any) -> None:
    """Nobody but the application can change them."""
    metadata = ClientMetadata(url=METADATA_URL)
    client = make_client(registered=registered, client=metadata)
    world = usual_world(client_id_metadata_document_supported=True)
    for _ in range(2):
        until_the_user_is_away(client, world)
        assert "registration" not in leave(client, "timeout").text
    assert len({query["client_id"] for query in world.queries()}) == 1


@pytest.mark.parametrize(
    "uri",
    [
        "http://app.example.com/cb",
        "myapp://callback",
        "com.example.app:/cb",
        "urn:ietf:wg:oauth",
        "https://app.example.com/cb#x",
        "http://10.0.0.1/cb",
        "cb",
        "http://127.1/cb",
    ],
)
def test_redirect_uris_are_localhost_or_https(uri: str) -> None:
    """AUTH-023, AUTH-253: private schemes are not used."""
    with pytest.raises(ValueError, match=r"^redirect_uri "):
        AuthorizationCode(redirect_uri=uri)


def test_no_registration_for_a_metadata_url_after_a_change_of_server() -> None:
    """AUTH-080, AUTH-275: such a client id is portable."""
    from tests.support.auth.script import PATH_METADATA, resource_document, server_document

    other = "https://other.example.com"
    world = usual_world(client_id_metadata_document_supported=True)
    client = make_client(client=ClientMetadata(url=METADATA_URL))
    run(client, world).authorized()
    world.put(PATH_METADATA, resource_document(authorization_servers=[other]))
    document = server_document(other, client_id_metadata_document_supported=True)
    world.put(f"{other}/.well-known/oauth-authorization-server", document)
    world.put(f"{other}/token", token_document())
    world.issuer = other
    run(client, world, challenge(error="invalid_token")).authorized()

    assert [query["client_id"] for query in world.queries()] == [METADATA_URL] * 2
    assert not [url for url in world.urls() if url.endswith("/register")]
