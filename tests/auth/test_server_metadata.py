"""The metadata of the authorization server: its candidates, its issuer, its endpoints."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp.auth import (
    AuthorizationConfig,
    AuthorizationFailed,
    AuthorizationFailure,
    AuthorizationStep,
    StepOutcome,
)
from tests.support.auth.script import (
    ISSUER,
    MCP,
    NOT_FOUND,
    OPENID_METADATA,
    ORIGIN,
    PATH_METADATA,
    REGISTER,
    SERVER_METADATA,
    TOKEN,
    Answer,
    World,
    challenge,
    make_client,
    resource_document,
    run,
    server_document,
    token_document,
    usual_world,
)

STEP = AuthorizationStep.SERVER_METADATA


def world_with_issuer(issuer: str) -> World:
    """A world whose MCP server names another issuer, and no metadata of which is there yet."""
    world = usual_world().put(PATH_METADATA, resource_document(authorization_servers=[issuer]))
    world.put(SERVER_METADATA, NOT_FOUND)
    world.issuer = issuer
    return world


@pytest.mark.parametrize(
    ("issuer", "candidates"),
    [
        (
            "https://as.example.com",
            [
                "https://as.example.com/.well-known/oauth-authorization-server",
                "https://as.example.com/.well-known/openid-configuration",
            ],
        ),
        (
            "https://as.example.com/",
            [
                "https://as.example.com/.well-known/oauth-authorization-server",
                "https://as.example.com/.well-known/openid-configuration",
            ],
        ),
        (
            "https://as.example.com/tenant1",
            [
                "https://as.example.com/.well-known/oauth-authorization-server/tenant1",
                "https://as.example.com/.well-known/openid-configuration/tenant1",
                "https://as.example.com/tenant1/.well-known/openid-configuration",
            ],
        ),
        (
            "https://as.example.com/a/b/",
            [
                "https://as.example.com/.well-known/oauth-authorization-server/a/b",
                "https://as.example.com/.well-known/openid-configuration/a/b",
                "https://as.example.com/a/b/.well-known/openid-configuration",
            ],
        ),
    ],
)
def test_candidates_and_their_order(issuer: str, candidates: list[str]) -> None:
    """AUTH-037, AUTH-038, AUTH-039, AUTH-040, AUTH-210, AUTH-211, AUTH-212.

    The document at the root is no candidate for an issuer with a path.
    """
    world = world_with_issuer(issuer)
    done = run(make_client(), world)

    done.failed(STEP, AuthorizationFailure.METADATA_NOT_FOUND, "AUTH-038")
    assert world.urls()[1:] == candidates
    for index, url in enumerate(candidates):
        found = world_with_issuer(issuer).put(url, server_document(issuer))
        found.put(f"{issuer}/register", {"client_id": "x"}).put(f"{issuer}/token", token_document())
        run(make_client(), found).authorized()
        assert found.urls()[1 : index + 2] == candidates[: index + 1]
        assert found.urls()[index + 2] == f"{issuer}/register"


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    "named",
    [
        "https://attacker.example.com",
        "https://as.example.com/",
        "https://AS.example.com",
        "https://as.example.com:443",
        "https://as.example.com/x/..",
        "",
        17,
        None,
    ],
)
def test_document_of_another_issuer_is_not_used(named: object, revision: str) -> None:
    """AUTH-041, AUTH-042, AUTH-225, AUTH-226, AUTH-227, AUTH-228: not one of its endpoints."""
    world = usual_world().put(SERVER_METADATA, {**server_document(), "issuer": named})
    run(make_client(), world, revision=revision).failed(
        STEP, AuthorizationFailure.ISSUER_MISMATCH, "AUTH-041"
    )

    assert world.urls() == [PATH_METADATA, SERVER_METADATA]
    assert world.opened == []


def test_issuer_is_compared_as_it_was_received() -> None:
    """AUTH-226: one with a slash is the same only as one with a slash."""
    issuer = "https://as.example.com/"
    world = world_with_issuer(issuer).put(
        SERVER_METADATA, {**server_document(ISSUER), "issuer": issuer}
    )
    world.put(REGISTER, {"client_id": "x"})

    assert run(make_client(), world).authorized().issuer == issuer


@pytest.mark.parametrize(
    ("named", "says", "is_told"),
    [
        (ISSUER, f"{ISSUER}/", True),
        (f"{ISSUER}/", ISSUER, True),
        (ISSUER, "https://other.example.com/", False),
        (ISSUER, f"{ISSUER}/x", False),
        (ISSUER, None, False),
    ],
)
def test_issuer_that_differs_by_a_slash(named: str, says: str | None, is_told: bool) -> None:
    """AUTH-225: a mismatch as any other one, but the commonest one, and hard to see."""
    world = usual_world(issuer=says)
    world.put(PATH_METADATA, resource_document(authorization_servers=[named]))
    failed = run(make_client(), world).failed(
        STEP, AuthorizationFailure.ISSUER_MISMATCH, "AUTH-041"
    )

    assert ("differs by the slash at its end alone" in failed.text) is is_told


def test_later_candidates_do_not_replace_a_document() -> None:
    """AUTH-229: a wrong issuer is an end, and no reason to look elsewhere."""
    world = usual_world().put(SERVER_METADATA, server_document("https://other.example.com"))
    world.put(OPENID_METADATA, server_document())
    run(make_client(), world).failed(STEP, AuthorizationFailure.ISSUER_MISMATCH, "AUTH-041")


@pytest.mark.parametrize(
    "answer", [*(Answer(b"", status) for status in (408, 429, 502, 503)), None]
)
def test_server_that_does_not_answer_is_not_one_without_metadata(answer: Answer | None) -> None:
    """The next candidate is asked, and the reason at the end is another one."""
    world = usual_world().put(SERVER_METADATA, answer)
    run(make_client(), world).failed(STEP, AuthorizationFailure.UNREACHABLE, "AUTH-038")

    assert world.urls()[1:] == [SERVER_METADATA, OPENID_METADATA]


def test_token_endpoint_is_needed() -> None:
    """There is nothing to do without it."""
    world = usual_world(token_endpoint=None)
    run(make_client(), world).failed(STEP, AuthorizationFailure.INVALID_METADATA, "AUTH-038")


def test_authorization_endpoint_is_needed_for_a_user() -> None:
    """The author of the authorization server is told what is missing."""
    world = usual_world(authorization_endpoint=None)
    done = run(make_client(), world)

    assert isinstance(done.ending, AuthorizationFailed)
    assert done.ending.reason is AuthorizationFailure.INVALID_METADATA
    assert "`authorization_endpoint` is missing" in done.ending.text


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("javascript:alert(1)", "AUTH-250"),
        ("data:text/html,x", "AUTH-250"),
        ("file:///etc/passwd", "AUTH-250"),
        ("vbscript:x", "AUTH-250"),
        ("http://as.example.com/x", "AUTH-338"),
        ("https://10.0.0.1/x", "AUTH-339"),
        ("https://169.254.169.254/latest", "AUTH-339"),
        ("https://[::1]/x", "AUTH-339"),
        ("https://localhost/x", "AUTH-339"),
        ("https://127.1/x", "AUTH-339"),
        ("https://2130706433/x", "AUTH-339"),
        ("https://user@as.example.com/x", "AUTH-252"),
        ("https://as.example.com/x#y", "AUTH-252"),
        ("https://as.example.com/\r\nx", "AUTH-252"),
        ("https://[::1/x", "AUTH-252"),
        ("https:///x", "AUTH-252"),
        ("https://as.example.com:99999/x", "AUTH-252"),
        ("https://as.example.com/" + "x" * 9000, "AUTH-252"),
        ("/authorize", "AUTH-250"),
        (17, "AUTH-252"),
    ],
)
@pytest.mark.parametrize(
    "name", ["authorization_endpoint", "token_endpoint", "registration_endpoint"]
)
def test_endpoints_that_may_not_be_used_end_it(name: str, url: object, rule: str) -> None:
    """AUTH-248, AUTH-249, AUTH-252, AUTH-337: none of them is opened or asked."""
    world = usual_world(**{name: url})
    run(make_client(), world).failed(STEP, AuthorizationFailure.REFUSED_URL, rule)

    assert world.urls() == [PATH_METADATA, SERVER_METADATA]
    assert world.opened == []


@pytest.mark.parametrize(
    "issuer",
    [
        "http://as.example.com",
        "https://as.example.com?x=1",
        "https://as.example.com#x",
        "https://192.168.1.1",
        "as.example.com",
        "https://as.example.com/" + "é",
    ],
)
def test_issuers_that_may_not_be_used_end_it(issuer: str) -> None:
    """AUTH-337, AUTH-252: an issuer is a URL that a server names."""
    world = world_with_issuer(issuer)
    done = run(make_client(), world)

    assert isinstance(done.ending, AuthorizationFailed)
    assert done.ending.reason is AuthorizationFailure.REFUSED_URL
    assert world.urls() == [PATH_METADATA]


def legacy_world(**answers: Any) -> World:
    """A server of 2025-03-26, with or without metadata."""
    world = World().put(TOKEN, NOT_FOUND)
    for name, answer in answers.items():
        world.put(f"{ORIGIN}/{name}", answer)
    world.issuer = ORIGIN
    return world


WELL_KNOWN = f"{ORIGIN}/.well-known/oauth-authorization-server"


def test_metadata_of_2025_03_26_is_at_the_origin() -> None:
    """AUTH-014, AUTH-016, AUTH-019, AUTH-202, AUTH-204: without metadata of a resource."""
    document = server_document(
        ORIGIN, token_endpoint=f"{ORIGIN}/oauth/token", code_challenge_methods_supported=None
    )
    world = legacy_world(register={"client_id": "x"}).put(WELL_KNOWN, document)
    world.put(f"{ORIGIN}/oauth/token", token_document())
    run(make_client(), world, revision="2025-03-26").authorized()

    assert world.urls() == [WELL_KNOWN, f"{ORIGIN}/register", f"{ORIGIN}/oauth/token"]
    assert ("MCP-Protocol-Version", "2025-03-26") in world.requests[0].headers
    (query,) = world.queries()
    assert "resource" not in query
    assert query["code_challenge_method"] == "S256"
    assert "resource" not in world.forms(f"{ORIGIN}/oauth/token")[0]


@pytest.mark.parametrize("issuer", [ORIGIN, f"{ORIGIN}/"])
def test_issuer_of_2025_03_26_is_the_origin(issuer: str) -> None:
    """AUTH-204: no document has named it, and servers of that time write it in both forms."""
    document = {**server_document(ORIGIN), "issuer": issuer}
    world = legacy_world(register={"client_id": "x"}, token=token_document())
    world.put(WELL_KNOWN, document)
    world.issuer = issuer

    assert run(make_client(), world, revision="2025-03-26").authorized().issuer == issuer


def test_another_issuer_in_2025_03_26_is_refused() -> None:
    """AUTH-204, AUTH-228: the token would be of a server that nobody has named."""
    world = legacy_world().put(WELL_KNOWN, server_document("https://as.example.com"))
    run(make_client(), world, revision="2025-03-26").failed(
        STEP, AuthorizationFailure.ISSUER_MISMATCH, "AUTH-041"
    )


def test_default_paths_of_2025_03_26() -> None:
    """AUTH-016, AUTH-017, AUTH-203: after the metadata document, with PKCE and registration."""
    world = legacy_world(register={"client_id": "x"}, token=token_document())
    world.callback["iss"] = None
    run(make_client(), world, revision="2025-03-26").authorized()

    assert world.urls() == [WELL_KNOWN, f"{ORIGIN}/register", f"{ORIGIN}/token"]
    assert world.opened[0].startswith(f"{ORIGIN}/authorize?")
    assert "code_challenge" in world.queries()[0]
    assert "code_verifier" in world.forms(f"{ORIGIN}/token")[0]


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_default_paths_are_not_used_after_a_failure(status: int) -> None:
    """AUTH-017: the document is tried first, and a server that is down has not said it has none."""
    world = legacy_world(register={"client_id": "x"}).put(WELL_KNOWN, Answer(b"", status))
    run(make_client(), world, revision="2025-03-26").failed(
        STEP, AuthorizationFailure.UNREACHABLE, "AUTH-038"
    )

    assert world.urls() == [WELL_KNOWN]


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_newer_revisions_fall_back_to_2025_03_26(revision: str) -> None:
    """AUTH-206: only without metadata of the resource, which is named all the same."""
    document = server_document(ORIGIN, code_challenge_methods_supported=None)
    world = legacy_world(register={"client_id": "x"}, token=token_document())
    world.put(WELL_KNOWN, document)
    done = run(make_client(), world, revision=revision)

    done.authorized()
    assert world.urls()[0] == PATH_METADATA
    assert world.urls()[2] == WELL_KNOWN
    assert world.queries()[0]["resource"] == MCP  # AUTH-217
    assert done.concluded(AuthorizationStep.RESOURCE_METADATA)[-1] is StepOutcome.SKIPPED


@pytest.mark.parametrize(
    ("url", "resource"),
    [
        ("https://MCP.Example.com/Mcp/", "https://mcp.example.com/Mcp"),
        ("https://mcp.example.com/", "https://mcp.example.com"),
        ("https://mcp.example.com", "https://mcp.example.com"),
        ("https://mcp.example.com:443/a?b=c", "https://mcp.example.com/a?b=c"),
        ("http://localhost:8080/mcp", "http://localhost:8080/mcp"),
    ],
)
def test_canonical_uri_without_metadata(url: str, resource: str) -> None:
    """AUTH-046, AUTH-048, AUTH-217, AUTH-218: absolute, without fragment, in lower case."""
    origin = resource.partition("/a")[0].removesuffix("/Mcp").removesuffix("/mcp")
    world = World().put(f"{origin}/register", {"client_id": "x"})
    world.put(f"{origin}/token", token_document())
    world.callback["iss"] = None
    run(make_client(url), world).authorized()

    assert world.queries()[0]["resource"] == resource
    assert world.forms(f"{origin}/token")[0]["resource"] == resource


def test_challenge_that_names_metadata_counts_in_2025_03_26() -> None:
    """The server is newer than the revision that was agreed, and says so."""
    world = usual_world()
    run(
        make_client(), world, challenge(resource_metadata=PATH_METADATA), revision="2025-03-26"
    ).authorized()

    assert world.queries()[0]["resource"] == MCP


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_within_the_origin_are_followed(status: int) -> None:
    """Some frameworks redirect to a URL with a slash."""
    to = Answer(b"", status, (("Location", "/.well-known/oauth-protected-resource/mcp/"),))
    world = usual_world().put(PATH_METADATA, to).put(PATH_METADATA + "/", resource_document())
    run(make_client(), world).authorized()

    assert world.urls()[:2] == [PATH_METADATA, PATH_METADATA + "/"]


@pytest.mark.parametrize(
    ("location", "rule"),
    [
        ("https://other.example.com/x", "AUTH-341"),
        ("http://mcp.example.com/x", "AUTH-341"),
        ("https://mcp.example.com:8443/x", "AUTH-341"),
        ("//169.254.169.254/latest/meta-data", "AUTH-341"),
        ("http://127.0.0.1:6379/", "AUTH-341"),
        ("file:///etc/passwd", "AUTH-250"),
        ("https://user:pw@mcp.example.com/x", "AUTH-252"),
        ("https://mcp.example.com/\x00", "AUTH-252"),
        ("http://[", "AUTH-252"),
        ("", "AUTH-252"),
        (None, "AUTH-252"),
    ],
)
def test_redirects_elsewhere_end_it(location: str | None, rule: str) -> None:
    """AUTH-341: an open redirector at a good server, or a redirect inwards, leads nowhere."""
    headers = () if location is None else (("Location", location),)
    world = usual_world().put(PATH_METADATA, Answer(b"", 302, headers))
    done = run(make_client(), world)

    done.failed(AuthorizationStep.RESOURCE_METADATA, AuthorizationFailure.REFUSED_URL, rule)
    assert world.urls() == [PATH_METADATA]


def test_redirects_that_do_not_end_end_it() -> None:
    """AUTH-341: each is judged, and there are at most three."""
    loop = Answer(b"", 302, (("location", SERVER_METADATA),))
    world = usual_world().put(SERVER_METADATA, loop)
    run(make_client(), world).failed(STEP, AuthorizationFailure.REFUSED_URL, "AUTH-341")

    assert world.urls().count(SERVER_METADATA) == 4


def test_redirects_can_be_switched_off() -> None:
    """AUTH-341: "or redirects are not followed"."""
    loop = Answer(b"", 302, (("location", SERVER_METADATA),))
    config = AuthorizationConfig(max_redirects=0)
    world = usual_world().put(SERVER_METADATA, loop)
    run(make_client(config=config), world).failed(
        STEP, AuthorizationFailure.REFUSED_URL, "AUTH-341"
    )

    assert world.urls().count(SERVER_METADATA) == 1


def test_two_location_headers_are_none() -> None:
    """Nobody may read the same response in two ways."""
    headers = (("Location", SERVER_METADATA), ("location", "https://evil.example.com"))
    world = usual_world().put(SERVER_METADATA, Answer(b"", 302, headers))
    run(make_client(), world).failed(STEP, AuthorizationFailure.REFUSED_URL, "AUTH-252")
