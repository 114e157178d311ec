"""Token requests: the authentication of the client, and what a response is taken for."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from sansmcp import JSONObject
from sansmcp.auth import (
    AuthorizationFailed,
    AuthorizationFailure,
    AuthorizationStep,
    RegisteredClient,
    StepOutcome,
)
from tests.support.auth.script import (
    AT,
    ISSUER,
    MCP,
    REDIRECT,
    TOKEN,
    Answer,
    make_client,
    run,
    token_document,
    usual_world,
)

STEP = AuthorizationStep.TOKEN
JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class Signer:
    """Signs nothing, but shows what would be signed."""

    def __init__(self, algorithm: str = "ES256") -> None:
        self.algorithm = algorithm
        self.signed: list[JSONObject] = []

    def sign(self, claims: JSONObject) -> str:
        """A text that names the claims."""
        self.signed.append(claims)
        return f"assertion-{len(self.signed)}"


def registered(**values: Any) -> dict[str, RegisteredClient]:
    """A client that was registered beforehand."""
    return {ISSUER: RegisteredClient(**values)}


def basic(world: Any) -> str | None:
    """The credentials of the only token request that has the scheme Basic."""
    (request,) = world.asked(TOKEN)
    found = [value for name, value in request.headers if name == "Authorization"]
    return base64.b64decode(found[0].removeprefix("Basic ")).decode() if found else None


def test_request_of_a_code() -> None:
    """AUTH-045, AUTH-216, AUTH-276: a POST with a form, and the same redirect URI and resource."""
    world = usual_world()
    run(make_client(), world).authorized()
    (request,), (form,) = world.asked(TOKEN), world.forms()

    assert request.method == "POST"
    assert ("Content-Type", "application/x-www-form-urlencoded") in request.headers
    assert form.pop("code_verifier")
    assert form == {
        "grant_type": "authorization_code",
        "code": "the-code",
        "redirect_uri": REDIRECT,
        "resource": MCP,
        "client_id": "dynamic-client",
    }


@pytest.mark.parametrize(
    ("listed", "given", "credentials", "fields"),
    [
        (["client_secret_basic"], {"client_secret": "s"}, "c:s", {}),
        (None, {"client_secret": "s"}, "c:s", {}),
        (
            ["client_secret_post"],
            {"client_secret": "s"},
            None,
            {"client_id": "c", "client_secret": "s"},
        ),
        (["client_secret_post", "client_secret_basic"], {"client_secret": "s"}, "c:s", {}),
        (
            ["client_secret_post", "client_secret_basic"],
            {"client_secret": "s", "auth_method": "client_secret_post"},
            None,
            {"client_id": "c", "client_secret": "s"},
        ),
        (["none"], {}, None, {"client_id": "c"}),
        (["client_secret_basic"], {}, None, {"client_id": "c"}),
        (["none"], {"client_secret": "s", "auth_method": "none"}, None, {"client_id": "c"}),
    ],
)
def test_authentication_of_the_client(
    listed: Any, given: dict[str, Any], credentials: str | None, fields: dict[str, str]
) -> None:
    """AUTH-277, AUTH-278, AUTH-280: one that the metadata lists; with none, no secret is sent."""
    world = usual_world(token_endpoint_auth_methods_supported=listed)
    run(make_client(registered=registered(client_id="c", **given)), world).authorized()
    (form,) = world.forms()

    assert basic(world) == credentials
    assert {name: form[name] for name in form if name.startswith("client_")} == fields


def test_basic_credentials_are_encoded_before_they_are_joined() -> None:
    """AUTH-279: a colon in the id would move the boundary."""
    world = usual_world(token_endpoint_auth_methods_supported=["client_secret_basic"])
    known = registered(client_id="a:b c", client_secret="p%/ö")
    run(make_client(registered=known), world).authorized()

    assert basic(world) == "a%3Ab+c:p%25%2F%C3%B6"


@pytest.mark.parametrize(
    ("listed", "given"),
    [
        (["none"], {"client_secret": "s"}),
        (["client_secret_post"], {"client_secret": "s", "auth_method": "client_secret_basic"}),
        (["private_key_jwt"], {"client_secret": "s"}),
    ],
)
def test_credentials_that_do_not_fit_the_server_end_it(listed: Any, given: Any) -> None:
    """AUTH-081, AUTH-277: it is an error of the configuration, and the text names it."""
    world = usual_world(token_endpoint_auth_methods_supported=listed)
    client = make_client(registered=registered(client_id="c", **given))
    run(client, world).failed(
        AuthorizationStep.CLIENT, AuthorizationFailure.UNSUPPORTED, "AUTH-277"
    )

    assert world.opened == []


def test_client_authenticates_with_a_key() -> None:
    """AUTH-264, AUTH-357, AUTH-358, AUTH-359: a new assertion for the issuer, each time."""
    signer = Signer()
    world = usual_world(token_endpoint_auth_methods_supported=["private_key_jwt"])
    client = make_client(registered=registered(client_id="c"), assertions=signer)
    run(client, world).authorized()
    run(client, world).authorized()
    first, second = signer.signed
    form = world.forms()[0]

    assert form["client_assertion_type"] == JWT_BEARER
    assert form["client_assertion"] == "assertion-1"
    assert basic_free(world)
    assert {**first, "jti": ""} == {
        "iss": "c",
        "sub": "c",
        "aud": ISSUER,
        "iat": int(AT),
        "exp": int(AT) + 60,
        "jti": "",
    }
    assert first["jti"] != second["jti"]


def basic_free(world: Any) -> bool:
    """Whether no token request has a header Authorization."""
    return not [
        name
        for request in world.asked(TOKEN)
        for name, _ in request.headers
        if name == "Authorization"
    ]


def test_key_serves_a_metadata_url_where_the_server_takes_keys() -> None:
    """AUTH-264: its keys are published in the document."""
    from sansmcp.auth import ClientMetadata

    url = "https://client.example.com/metadata.json"
    for methods, expected in (["private_key_jwt", "none"], True), (["none"], False):
        world = usual_world(
            client_id_metadata_document_supported=True,
            token_endpoint_auth_methods_supported=methods,
        )
        client = make_client(client=ClientMetadata(url=url), assertions=Signer())
        run(client, world).authorized()
        assert ("client_assertion" in world.forms()[0]) is expected


@pytest.mark.parametrize("algorithms", [["RS256"], []])
def test_key_with_an_algorithm_that_is_not_listed_ends_it(algorithms: list[str]) -> None:
    """AUTH-360: the server could not verify it."""
    world = usual_world(
        token_endpoint_auth_methods_supported=["private_key_jwt"],
        token_endpoint_auth_signing_alg_values_supported=algorithms,
    )
    client = make_client(registered=registered(client_id="c"), assertions=Signer())
    run(client, world).failed(
        AuthorizationStep.CLIENT, AuthorizationFailure.UNSUPPORTED, "AUTH-277"
    )


@pytest.mark.parametrize("kind", ["bearer", "BEARER", "Bearer"])
def test_token_type_has_no_case(kind: str) -> None:
    """AUTH-281: and the header has the usual one."""
    world = usual_world().put(TOKEN, token_document(token_type=kind))
    client = make_client()
    run(client, world).authorized()

    assert client.headers("POST", MCP, at=AT) == [("Authorization", "Bearer first-token")]


@pytest.mark.parametrize(
    ("members", "rule"),
    [
        ({"access_token": None}, "AUTH-284"),
        ({"access_token": ""}, "AUTH-284"),
        ({"access_token": 17}, "AUTH-284"),
        ({"access_token": "a b"}, "AUTH-284"),
        ({"access_token": "a\r\nX-Injected: 1"}, "AUTH-284"),
        ({"access_token": "ä"}, "AUTH-284"),
        ({"token_type": None}, "AUTH-281"),
        ({"token_type": "mac"}, "AUTH-281"),
        ({"token_type": "DPoP"}, "AUTH-281"),
        ({"token_type": 17}, "AUTH-281"),
    ],
)
def test_responses_that_are_no_tokens(members: dict[str, Any], rule: str) -> None:
    """AUTH-281, AUTH-284: neither used nor stored."""
    world = usual_world().put(TOKEN, token_document(**members))
    client = make_client()
    done = run(client, world)

    done.failed(STEP, AuthorizationFailure.INVALID_RESPONSE, rule)
    assert client.headers("POST", MCP, at=AT) == []
    assert done.stored[ISSUER]["tokens"] is None


def test_unknown_members_are_ignored() -> None:
    """AUTH-284: servers add their own."""
    world = usual_world().put(TOKEN, token_document(id_token="x", ext={"a": 1}))
    run(make_client(), world).authorized()


@pytest.mark.parametrize(
    ("expires", "seconds"),
    [
        (60, 60),
        (1.5, 1.5),
        ("3600", 3600),
        (0, 0),
        (None, None),
        (-1, None),
        ("x", None),
        (True, None),
        (1e300, None),
        ([], None),
    ],
)
def test_lifetime_of_a_token(expires: object, seconds: float | None) -> None:
    """AUTH-283: from the receipt of the response; unknown is not for ever, and not at once."""
    world = usual_world().put(TOKEN, token_document(expires_in=expires))
    client = make_client()
    done = run(client, world, now=50.0)

    end = None if seconds is None else AT + seconds
    assert done.authorized().expires_at == end
    assert client.expires_at == end
    assert client.needs_refresh(AT - 100) is False
    assert client.needs_refresh(AT + 4000) is (end is not None)


def test_lifetime_counts_from_the_receipt() -> None:
    """AUTH-283: the user may have taken minutes since the attempt began."""
    world = usual_world()
    client = make_client()
    client.authorize(now=100.0, at=AT)
    from tests.support.auth.script import drive

    drive(client, world, now=160.0)

    assert client.expires_at == AT + 60 + 3600


@pytest.mark.parametrize(
    ("scope", "granted"),
    [(None, ("a", "b")), ("a b c", ("a", "b", "c")), ("b a", ("b", "a")), (17, ("a", "b"))],
)
def test_scopes_of_a_token(scope: object, granted: tuple[str, ...]) -> None:
    """AUTH-282, AUTH-310: without a scope in the response, those that were asked for."""
    from tests.support.auth.script import challenge

    world = usual_world().put(TOKEN, token_document(scope=scope))
    client = make_client()

    assert run(client, world, challenge(scope="a b")).authorized().scopes == granted
    assert client.scopes == granted


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (Answer({"error": "invalid_grant"}, 400), "invalid_grant", "status 400, invalid_grant"),
        (
            Answer({"error": "invalid_grant", "error_description": "used\x00 twice"}, 400),
            "invalid_grant",
            "(used? twice)",
        ),
        (Answer({"error": "invalid_target"}, 400), "invalid_target", "invalid_target"),
        (Answer({"error": 17}, 400), None, "status 400"),
        (Answer(b"<html>", 404), None, "status 404"),
        (Answer(b"", 302, (("Location", "https://evil.example.com/token"),)), None, "302"),
        (Answer(b"[]", 200), None, "status 200"),
        (Answer({"error": "use_dpop_nonce"}, 400), "use_dpop_nonce", "use_dpop_nonce"),
    ],
)
def test_refused_token_requests(answer: Answer, error: str | None, words: str) -> None:
    """AUTH-420: the error code reaches the caller as it is; no redirect is followed."""
    world = usual_world().put(TOKEN, answer)
    done = run(make_client(), world)
    failed = done.failed(STEP, AuthorizationFailure.REFUSED, None)

    assert failed.error == error
    assert words in failed.text
    assert done.concluded(STEP) == [StepOutcome.FAILED]
    assert len(world.asked(TOKEN)) == 1


@pytest.mark.parametrize("answer", [Answer(b"", 500), Answer(b"", 429), None])
def test_token_endpoints_that_do_not_answer(answer: Answer | None) -> None:
    """Another attempt may succeed."""
    world = usual_world().put(TOKEN, answer)
    run(make_client(), world).failed(STEP, AuthorizationFailure.UNREACHABLE, None)


def test_scope_error_at_the_token_endpoint() -> None:
    """AUTH-307: like a scope that was not granted."""
    world = usual_world().put(TOKEN, Answer({"error": "invalid_scope"}, 400))
    from tests.support.auth.script import challenge

    refusal = challenge(403, error="insufficient_scope", scope="x")
    client = make_client()
    run(client, world, refusal).failed(STEP, AuthorizationFailure.REFUSED, None)
    world.requests.clear()
    done = run(client, world, refusal)

    assert isinstance(done.ending, AuthorizationFailed)
    assert done.ending.reason is AuthorizationFailure.TOO_MANY_ATTEMPTS
    assert world.requests == []
