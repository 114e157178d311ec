"""The metadata of the protected resource: where it is looked for, and when it is used."""

from __future__ import annotations

import pytest

from sansmcp.auth import AuthorizationConfig, AuthorizationFailure, AuthorizationStep, StepOutcome
from tests.support.auth.script import (
    ISSUER,
    MCP,
    ORIGIN,
    PATH_METADATA,
    ROOT_METADATA,
    SERVER_METADATA,
    TOKEN,
    Answer,
    challenge,
    make_client,
    resource_document,
    run,
    server_document,
    usual_world,
)

STEP = AuthorizationStep.RESOURCE_METADATA
NAMED = "https://mcp.example.com/custom/location.json"


def test_metadata_that_the_challenge_names_is_used() -> None:
    """AUTH-031, AUTH-035, AUTH-209: no well-known URL is asked then."""
    world = usual_world().put(NAMED, resource_document())
    done = run(make_client(), world, challenge(resource_metadata=NAMED))

    done.authorized()
    assert world.urls()[:2] == [NAMED, SERVER_METADATA]
    assert PATH_METADATA not in world.urls()
    assert ROOT_METADATA not in world.urls()


@pytest.mark.parametrize("status", [404, 500])
def test_metadata_that_the_challenge_names_and_is_not_there_ends_it(status: int) -> None:
    """AUTH-209: the server has said where it is, and the author must hear that it is not there."""
    world = usual_world().put(NAMED, Answer(b"", status))
    reasons = {404: AuthorizationFailure.METADATA_NOT_FOUND, 500: AuthorizationFailure.UNREACHABLE}
    failed = run(make_client(), world, challenge(resource_metadata=NAMED)).failed(
        STEP, reasons[status], "AUTH-035"
    )

    assert NAMED in failed.text
    assert world.urls() == [NAMED]


def test_path_comes_before_root() -> None:
    """AUTH-035, AUTH-208, AUTH-209, AUTH-223: the root is not asked if the path answers."""
    world = usual_world()
    run(make_client(), world).authorized()

    assert world.urls()[0] == PATH_METADATA
    assert ROOT_METADATA not in world.urls()


def test_root_comes_after_path() -> None:
    """AUTH-035, AUTH-210, AUTH-214, AUTH-215: the origin is accepted, verbatim."""
    world = usual_world().put(PATH_METADATA, Answer(b"", 404))
    world.put(ROOT_METADATA, resource_document(resource=ORIGIN))
    done = run(make_client(), world)

    done.authorized()
    assert world.urls()[:2] == [PATH_METADATA, ROOT_METADATA]
    assert world.queries()[0]["resource"] == ORIGIN
    assert world.forms()[0]["resource"] == ORIGIN
    assert done.concluded(STEP) == [StepOutcome.SKIPPED, StepOutcome.DONE]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://h.example", ["https://h.example/.well-known/oauth-protected-resource"]),
        ("https://h.example/", ["https://h.example/.well-known/oauth-protected-resource"]),
        (
            "https://H.example:443/a/b?c=d",
            [
                "https://h.example/.well-known/oauth-protected-resource/a/b?c=d",
                "https://h.example/.well-known/oauth-protected-resource",
            ],
        ),
        (
            "http://[::1]:8080/mcp",
            [
                "http://[::1]:8080/.well-known/oauth-protected-resource/mcp",
                "http://[::1]:8080/.well-known/oauth-protected-resource",
            ],
        ),
    ],
)
def test_well_known_urls(url: str, expected: list[str]) -> None:
    """AUTH-208: host, well-known path, and then the path of the server."""
    world = usual_world()
    run(make_client(url, config=AuthorizationConfig(legacy_fallback=False)), world)

    assert world.urls() == expected


@pytest.mark.parametrize("scheme", ["bearer", "dpop"])
def test_parameters_of_both_schemes_are_read(scheme: str) -> None:
    """AUTH-036, AUTH-222: a server that wants proofs sends no Bearer challenge."""
    world = usual_world().put(NAMED, resource_document())
    refusal = challenge(scheme=scheme, resource_metadata=NAMED, scope="a b")
    run(make_client(), world, refusal).authorized()

    assert world.urls()[0] == NAMED
    assert world.queries()[0]["scope"] == "a b"


def test_other_schemes_are_skipped() -> None:
    """AUTH-221: what they mean is not known."""
    world = usual_world()
    run(make_client(), world, challenge(scheme="negotiate", resource_metadata=NAMED)).authorized()

    assert world.urls()[0] == PATH_METADATA


@pytest.mark.parametrize(
    "resource",
    [
        "https://evil.example.com/mcp",
        "https://mcp.example.com/other",
        "https://mcp.example.com/mc",
        "https://mcp.example.com/mcp/deeper",
        "https://mcp.example.com:8443/mcp",
        "http://mcp.example.com/mcp",
        "https://mcp.example.com/mcp?other=1",
        "https://mcp.example.com/mcp#fragment",
        "mcp.example.com",
        "",
        17,
        None,
    ],
)
def test_metadata_of_another_resource_is_not_used(resource: object) -> None:
    """AUTH-213, AUTH-214: no authorization begins; a token would be for somebody else."""
    world = usual_world().put(PATH_METADATA, resource_document(resource=resource))
    run(make_client(), world).failed(STEP, AuthorizationFailure.RESOURCE_MISMATCH, "AUTH-213")

    assert world.urls() == [PATH_METADATA]
    assert world.opened == []


@pytest.mark.parametrize(
    "resource",
    [
        MCP,
        f"{MCP}/",
        "HTTPS://MCP.example.com/mcp",
        "https://mcp.example.com:443/mcp",
        f"{ORIGIN}/",
    ],
)
def test_resource_is_repeated_as_it_is(resource: str) -> None:
    """AUTH-049, AUTH-215, AUTH-216: a URL parser that adds or drops a slash would break it."""
    world = usual_world().put(PATH_METADATA, resource_document(resource=resource))
    world.put(TOKEN, {"access_token": "t", "token_type": "bearer", "refresh_token": "r"})
    client = make_client()
    run(client, world).authorized()
    run(client, world).authorized()

    assert world.queries()[0]["resource"] == resource
    assert [form["resource"] for form in world.forms()] == [resource, resource]
    assert world.forms()[1]["grant_type"] == "refresh_token"


@pytest.mark.parametrize("servers", [None, [], "https://as.example.com", [17]])
def test_metadata_without_an_authorization_server_ends_it(servers: object) -> None:
    """The author of the server is told which member is missing."""
    world = usual_world().put(PATH_METADATA, resource_document(authorization_servers=servers))
    run(make_client(), world).failed(STEP, AuthorizationFailure.INVALID_METADATA, "AUTH-032")


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b"\xff", b"[" * 40 + b"]" * 40, b'{"resource": NaN}']
)
def test_what_is_no_document_leads_to_the_next_candidate(body: bytes) -> None:
    """AUTH-210: servers of web applications answer any path with a page."""
    world = usual_world().put(PATH_METADATA, Answer(body)).put(ROOT_METADATA, resource_document())
    run(make_client(), world).authorized()


def test_later_candidates_do_not_complete_a_document() -> None:
    """AUTH-229: one document counts, as it is."""
    world = usual_world().put(PATH_METADATA, resource_document(authorization_servers=None))
    world.put(ROOT_METADATA, resource_document())
    run(make_client(), world).failed(STEP, AuthorizationFailure.INVALID_METADATA, "AUTH-032")

    assert world.urls() == [PATH_METADATA]


@pytest.mark.parametrize(
    "answer", [*(Answer(b"", status) for status in (408, 429, 500, 503)), None]
)
def test_no_fallback_if_a_server_did_not_answer(answer: Answer | None) -> None:
    """AUTH-206: only without metadata; a server that is down has not said that it has none."""
    world = usual_world().put(PATH_METADATA, answer)
    run(make_client(), world).failed(STEP, AuthorizationFailure.UNREACHABLE, "AUTH-035")

    assert world.urls() == [PATH_METADATA, ROOT_METADATA]


def test_without_the_fallback_missing_metadata_ends_it() -> None:
    """AUTH-207: some applications want no server of 2025-03-26."""
    config = AuthorizationConfig(legacy_fallback=False)
    world = usual_world().put(PATH_METADATA, Answer(b"", 404))
    run(make_client(config=config), world).failed(
        STEP, AuthorizationFailure.METADATA_NOT_FOUND, "AUTH-035"
    )


def test_server_with_known_credentials_is_chosen() -> None:
    """AUTH-219: of several authorization servers, one that knows the client."""
    from sansmcp.auth import RegisteredClient

    servers = ["https://other.example.com", ISSUER]
    world = usual_world().put(PATH_METADATA, resource_document(authorization_servers=servers))
    registered = {ISSUER: RegisteredClient(client_id="known")}

    assert run(make_client(registered=registered), world).authorized().issuer == ISSUER


def test_server_with_stored_credentials_is_chosen() -> None:
    """AUTH-219: the user is not asked at another one, where the client is unknown."""
    other = "https://other.example.com"
    client, world = make_client(), usual_world()
    run(client, world).authorized()
    world.put(PATH_METADATA, resource_document(authorization_servers=[other, ISSUER]))

    assert run(client, world).authorized().issuer == ISSUER


def test_first_server_is_chosen_without_anything_known() -> None:
    """AUTH-219: the order is that of the MCP server."""
    other = "https://other.example.com"
    world = usual_world().put(
        PATH_METADATA, resource_document(authorization_servers=[other, ISSUER])
    )
    world.put(f"{other}/.well-known/oauth-authorization-server", server_document(other)).put(
        f"{other}/register", {"client_id": "x"}
    ).put(f"{other}/token", {"access_token": "t", "token_type": "bearer"})
    world.issuer = other

    assert run(make_client(), world).authorized().issuer == other


def test_place_of_metadata_is_remembered() -> None:
    """A token that is refreshed without a challenge needs the document, which only it named."""
    world = usual_world().put(NAMED, resource_document())
    world.put(PATH_METADATA, Answer(b"", 404))
    world.put(
        TOKEN, {"access_token": "t", "token_type": "bearer", "refresh_token": "r", "expires_in": 10}
    )
    done = run(make_client(), world, challenge(resource_metadata=NAMED))
    world.requests.clear()
    later = run(make_client(), world, in_advance=True, stored=done.stored, at=1_800_000_100.0)

    later.authorized()
    assert world.urls()[0] == NAMED
    assert world.forms()[0]["grant_type"] == "refresh_token"
