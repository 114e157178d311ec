"""The authorization request, and the callback."""

from __future__ import annotations

import base64
import copy
import hashlib
import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from sansmcp.auth import (
    AuthorizationFailed,
    AuthorizationFailure,
    AuthorizationState,
    AuthorizationStep,
    StepOutcome,
    StepTaken,
    UserAgentWanted,
)
from tests.support.auth.script import (
    AT,
    AUTHORIZE,
    ISSUER,
    MCP,
    REDIRECT,
    TOKEN,
    World,
    answer_requests,
    challenge,
    drive,
    events_of,
    make_client,
    run,
    usual_world,
)

REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
CALLBACK = AuthorizationStep.CALLBACK


def waiting_for_callback(world: World, **settings: Any) -> tuple[Any, str]:
    """A client whose user has been sent away, and the URL that was opened."""
    client = make_client(**settings)
    client.authorize(challenge(), now=0, at=AT)
    opened = ""
    while events := events_of(client):
        for event in events:
            if isinstance(event, UserAgentWanted):
                opened = event.url
            else:
                answer_requests(client, world, [event], 0)
    return client, opened


def test_parameters_of_the_request() -> None:
    """AUTH-022, AUTH-045, AUTH-047, AUTH-056, AUTH-074: with PKCE, state and resource."""
    world = usual_world()
    run(make_client(), world, challenge(scope="a b")).authorized()
    (url,), (query,) = world.opened, world.queries()

    assert url.startswith(f"{AUTHORIZE}?")
    assert query.keys() == {
        "response_type",
        "client_id",
        "redirect_uri",
        "state",
        "code_challenge",
        "code_challenge_method",
        "resource",
        "scope",
    }
    assert query["response_type"] == "code"
    assert query["redirect_uri"] == REDIRECT
    assert query["code_challenge_method"] == "S256"
    assert query["resource"] == MCP
    assert query["scope"] == "a b"


def test_verifier_fits_the_challenge() -> None:
    """AUTH-022, AUTH-235: 43 to 128 unreserved characters, hashed with SHA-256."""
    world = usual_world()
    run(make_client(), world).authorized()
    verifier = world.forms()[0]["code_verifier"]
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())

    assert re.fullmatch(r"[A-Za-z0-9._~-]{43,128}", verifier)
    assert world.queries()[0]["code_challenge"] == digest.decode().rstrip("=")


def test_each_request_has_its_own_secrets() -> None:
    """AUTH-235, AUTH-239: a state or verifier that is used again protects nothing."""
    world = usual_world()
    client = make_client()
    run(client, world).authorized()
    run(client, world).authorized()
    first, second = world.queries()

    assert first["state"] != second["state"]
    assert first["code_challenge"] != second["code_challenge"]
    assert len({*(form["code_verifier"] for form in world.forms()), first["state"]}) == 3


@pytest.mark.parametrize(
    ("endpoint", "start"),
    [
        (f"{AUTHORIZE}?tenant=1", f"{AUTHORIZE}?tenant=1&response_type=code&"),
        (f"{AUTHORIZE}?", f"{AUTHORIZE}?response_type=code&"),
    ],
)
def test_query_of_the_endpoint_is_kept(endpoint: str, start: str) -> None:
    """AUTH-238: some authorization servers keep a tenant there."""
    world = usual_world(authorization_endpoint=endpoint)
    run(make_client(), world).authorized()

    assert world.opened[0].startswith(start)


@pytest.mark.parametrize("name", ["client_id", "redirect_uri", "state", "code_challenge_method"])
def test_query_of_the_endpoint_does_not_hold_our_parameters(name: str) -> None:
    """AUTH-238, AUTH-240: which of two values the server would take is not known."""
    world = usual_world(authorization_endpoint=f"{AUTHORIZE}?{name}=x")
    done = run(make_client(), world)

    assert isinstance(done.ending, AuthorizationFailed)
    assert done.ending.reason is AuthorizationFailure.INVALID_METADATA
    assert world.opened == []


@pytest.mark.parametrize(
    ("revision", "listed", "rule"),
    [
        ("2026-07-28", None, "AUTH-073"),
        ("2025-11-25", None, "AUTH-073"),
        ("2025-11-25", "S256", "AUTH-073"),
        *[(revision, ["plain"], "AUTH-236") for revision in REVISIONS[1:]],
        *[(revision, [], "AUTH-236") for revision in REVISIONS[1:]],
    ],
)
def test_server_without_pkce_is_refused(revision: str, listed: Any, rule: str) -> None:
    """AUTH-022, AUTH-073, AUTH-074, AUTH-236: a downgrade is no way out."""
    world = usual_world(code_challenge_methods_supported=listed)
    run(make_client(), world, revision=revision).failed(
        AuthorizationStep.CLIENT, AuthorizationFailure.PKCE_UNSUPPORTED, rule
    )

    assert world.opened == []


def test_list_of_challenge_methods_may_be_missing_in_2025_06_18() -> None:
    """AUTH-237: the check begins with 2025-11-25; the challenge is sent all the same."""
    world = usual_world(code_challenge_methods_supported=None)
    run(make_client(), world, revision="2025-06-18").authorized()

    assert world.queries()[0]["code_challenge_method"] == "S256"


@pytest.mark.parametrize("revision", REVISIONS[1:])
@pytest.mark.parametrize(
    ("advertised", "given", "reason", "rule"),
    [
        (True, ISSUER, None, None),
        (None, ISSUER, None, None),
        (None, None, None, None),
        (False, None, None, None),
        (True, None, AuthorizationFailure.ISSUER_MISMATCH, "AUTH-084"),
        (True, "https://evil.example.com", AuthorizationFailure.ISSUER_MISMATCH, "AUTH-083"),
        (None, "https://evil.example.com", AuthorizationFailure.ISSUER_MISMATCH, "AUTH-083"),
        (True, ISSUER + "/", AuthorizationFailure.ISSUER_MISMATCH, "AUTH-083"),
        (True, "https://AS.example.com", AuthorizationFailure.ISSUER_MISMATCH, "AUTH-083"),
        (True, "HTTPS://as.example.com", AuthorizationFailure.ISSUER_MISMATCH, "AUTH-083"),
        (True, ISSUER + ":443", AuthorizationFailure.ISSUER_MISMATCH, "AUTH-083"),
        (True, "https://as.example%2ecom", AuthorizationFailure.ISSUER_MISMATCH, "AUTH-083"),
        (True, "", AuthorizationFailure.ISSUER_MISMATCH, "AUTH-083"),
    ],
)
def test_issuer_of_the_callback(
    advertised: bool | None, given: str | None, reason: Any, rule: Any, revision: str
) -> None:
    """AUTH-083, AUTH-084, AUTH-085, AUTH-244: no code goes anywhere after a wrong issuer."""
    world = usual_world(authorization_response_iss_parameter_supported=advertised)
    world.callback["iss"] = given
    done = run(make_client(), world, revision=revision)

    if reason is None:
        done.authorized()
        assert len(world.asked(TOKEN)) == 1
    else:
        done.failed(CALLBACK, reason, rule)
        assert world.asked(TOKEN) == []


def test_issuer_is_compared_after_decoding() -> None:
    """AUTH-085: `iss` comes form-encoded, and is compared as it is then."""
    world = usual_world()
    client, opened = waiting_for_callback(world)
    state = dict(parse_qsl(urlsplit(opened).query))["state"]

    assert client.receive_callback(
        f"{REDIRECT}?code=x&state={state}&iss=https%3A%2F%2Fas.example.com"
    )
    drive(client, world)
    assert client.authorized


def test_recorded_issuer_is_that_of_the_request() -> None:
    """AUTH-082, AUTH-243: what the metadata says later does not count."""
    world = usual_world()
    client, opened = waiting_for_callback(world)
    world.put(f"{ISSUER}/.well-known/oauth-authorization-server", {"issuer": "https://evil"})
    client.receive_callback(world.callback_url(opened))
    drive(client, world)

    assert client.issuer == ISSUER
    assert world.forms()[0]["redirect_uri"] == REDIRECT


@pytest.mark.parametrize("iss", ["https://evil.example.com", None])
def test_errors_of_another_issuer_are_neither_used_nor_shown(iss: str | None) -> None:
    """AUTH-086, AUTH-241: the texts may be those of an attacker."""
    world = usual_world()
    world.callback |= {
        "code": None,
        "iss": iss,
        "error": "access_denied",
        "error_description": "call 555",
        "error_uri": "https://evil.example.com/help",
    }
    done = run(make_client(), world)

    assert isinstance(done.ending, AuthorizationFailed)
    assert done.ending.reason is AuthorizationFailure.ISSUER_MISMATCH
    assert done.ending.error is None
    assert not [word for word in ("access_denied", "555", "help") if word in repr(done.events)]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("access_denied", AuthorizationFailure.DENIED),
        ("server_error", AuthorizationFailure.REFUSED),
        ("invalid_scope", AuthorizationFailure.REFUSED),
        ("", AuthorizationFailure.REFUSED),
    ],
)
def test_errors_of_the_right_issuer_end_it(error: str, reason: AuthorizationFailure) -> None:
    """AUTH-241: the error comes before a code that is there, too."""
    world = usual_world()
    world.callback["error"] = error
    world.callback["error_description"] = "the user\x1b[31m said no"
    failed = run(make_client(), world).failed(CALLBACK, reason, "AUTH-241")

    assert failed.error == error
    assert "the user?[31m said no" in failed.text
    assert world.asked(TOKEN) == []


@pytest.mark.parametrize("name", ["code", "iss", "error"])
@pytest.mark.parametrize("second", ["same", "other"])
def test_parameters_that_come_twice_end_it(name: str, second: str) -> None:
    """AUTH-240: which of the values counts is not known."""
    value = {"code": "the-code", "iss": ISSUER, "error": "access_denied"}[name]
    world = usual_world()
    world.callback[name] = [value, value if second == "same" else "x"]
    failed = run(make_client(), world).failed(
        CALLBACK, AuthorizationFailure.INVALID_CALLBACK, "AUTH-240"
    )

    assert name in failed.text
    assert world.asked(TOKEN) == []


@pytest.mark.parametrize(
    "query",
    [
        "?code=x&iss=https%3A%2F%2Fas.example.com",
        "?code=x&state=wrong&iss=https%3A%2F%2Fas.example.com",
        "?state=STATE&state=STATE&code=x",
        "?state=STATE&code=x&state=wrong",
        "?error=access_denied",
        "#state=STATE&code=x",
        "",
    ],
)
def test_callbacks_with_another_state_are_ignored(query: str) -> None:
    """AUTH-056, AUTH-240, AUTH-241: anybody can open that URL; the true one counts."""
    world = usual_world()
    client, opened = waiting_for_callback(world)
    state = dict(parse_qsl(urlsplit(opened).query))["state"]

    assert client.receive_callback(REDIRECT + query.replace("STATE", state)) is False
    (step,) = events_of(client)
    assert isinstance(step, StepTaken)
    assert (step.step, step.outcome, step.rule) == (CALLBACK, StepOutcome.SKIPPED, "AUTH-056")
    assert client.attempt is not None
    assert client.attempt.state is AuthorizationState.USER_AGENT
    assert client.receive_callback(world.callback_url(opened)) is True
    drive(client, world)
    assert client.authorized


def test_injected_codes_of_other_requests_are_ignored() -> None:
    """AUTH-239: the state belongs to one request, and is accepted once."""
    world = usual_world()
    client, opened = waiting_for_callback(world)
    callback = world.callback_url(opened)
    assert client.receive_callback(callback) is True
    assert client.receive_callback(callback) is False
    drive(client, world)
    assert client.receive_callback(callback) is False
    client.authorize(challenge(), now=0, at=AT)
    drive(client, world)

    assert client.receive_callback(callback) is False
    assert len(world.asked(TOKEN)) == 2


def test_callback_without_code_and_error_ends_it() -> None:
    """There is nothing to go on with."""
    world = usual_world()
    world.callback["code"] = None
    run(make_client(), world).failed(CALLBACK, AuthorizationFailure.INVALID_CALLBACK, "AUTH-241")


@pytest.mark.parametrize("code", ["a\nb", "caf\u00e9", "a\x00", "\x7f", "\ud83d\ude00"])
def test_codes_of_other_characters_are_none(code: str) -> None:
    """RFC 6749, appendix A.11: what is no VSCHAR is not passed on to the token endpoint."""
    world = usual_world()
    world.callback["code"] = code.encode("utf-16", "surrogatepass").decode("utf-16")
    run(make_client(), world).failed(CALLBACK, AuthorizationFailure.INVALID_CALLBACK, "AUTH-241")

    assert world.asked(TOKEN) == []


@pytest.mark.parametrize("iss", [f"{ISSUER}/", "https://as.example.org"])
def test_issuer_of_a_callback_that_differs_by_a_slash(iss: str) -> None:
    """AUTH-083: it is refused, and the reason is told."""
    world = usual_world()
    world.callback["iss"] = iss
    failed = run(make_client(), world).failed(
        CALLBACK, AuthorizationFailure.ISSUER_MISMATCH, "AUTH-083"
    )

    assert ("slash at its end alone" in failed.text) is iss.endswith("/")


def test_whole_callback_is_taken() -> None:
    """AUTH-242: the interface gets `iss` beside code and state, since it takes the whole URL."""
    world = usual_world()
    client, opened = waiting_for_callback(world)
    callback = world.callback_url(opened)

    assert dict(parse_qsl(urlsplit(callback).query)).keys() == {"code", "state", "iss"}
    assert client.receive_callback(callback)


def test_callback_must_be_text() -> None:
    """An untyped caller hears it at once."""
    client = make_client()
    with pytest.raises(ValueError, match="url must be a string"):
        client.receive_callback(b"x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # wrong on purpose

    assert client.receive_callback("http://[") is False


def test_callback_that_is_no_url_is_ignored() -> None:
    """AUTH-056: what is received never raises."""
    client, _ = waiting_for_callback(usual_world())

    assert client.receive_callback("http://[") is False
    assert client.receive_callback(REDIRECT + "?" + "state=x&" * 100_000) is False


def test_copy_goes_its_own_way() -> None:
    """All state is plain data: a copy can be tried, and thrown away."""
    world = usual_world()
    client, opened = waiting_for_callback(world)
    other = copy.deepcopy(client)
    callback = world.callback_url(opened)

    assert client.receive_callback(callback)
    drive(client, world)
    assert other.receive_callback(callback)
    drive(other, world)
    assert client.authorized
    assert other.authorized
