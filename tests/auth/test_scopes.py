"""The scopes that are asked for, at first and in step-ups."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp.auth import (
    AuthorizationCode,
    AuthorizationConfig,
    AuthorizationFailure,
    AuthorizationStep,
    ClientMetadata,
)
from tests.support.auth.script import (
    AT,
    PATH_METADATA,
    REDIRECT,
    TOKEN,
    World,
    challenge,
    make_client,
    resource_document,
    run,
    take_head,
    token_document,
    usual_world,
)

CHALLENGE = AuthorizationStep.CHALLENGE


def scopes_of(world: World) -> list[str | None]:
    """The scope of each authorization request; None: it had none."""
    return [query.get("scope") for query in world.queries()]


def world_with(scopes: list[str] | None, **members: Any) -> World:
    """A world whose MCP server supports these scopes; `members` are of the authorization server."""
    return usual_world(**members).put(PATH_METADATA, resource_document(scopes_supported=scopes))


def insufficient(scope: str) -> Any:
    """A 403 that demands scopes."""
    return challenge(403, error="insufficient_scope", scope=scope)


@pytest.mark.parametrize(
    ("challenged", "supported", "expected"),
    [
        ("a", ["b", "c"], "a"),
        ("b a", ["a"], "b a"),
        ("a a  b", None, "a b"),
        (None, ["b", "c"], "b c"),
        ("", ["b"], "b"),
        (None, None, None),
        (None, [], None),
        ('a"b ok', None, "ok"),
        ("A a", None, "A a"),
    ],
)
def test_first_scopes(challenged: str | None, supported: Any, expected: str | None) -> None:
    """AUTH-059, AUTH-060, AUTH-061, AUTH-310: of the challenge, else all supported, else none."""
    world = world_with(supported)
    run(make_client(), world, challenge(scope=challenged))

    assert scopes_of(world) == [expected]


def test_scopes_of_the_authorization_server_are_not_used() -> None:
    """AUTH-299: they are those of all its resources."""
    world = world_with(None, scopes_supported=["admin", "everything"])
    run(make_client(), world).authorized()

    assert scopes_of(world) == [None]


@pytest.mark.parametrize(("challenged", "expected"), [(None, "x"), ("a", "a")])
def test_scopes_of_the_application(challenged: str | None, expected: str) -> None:
    """AUTH-298: no more than the operations need; a challenge counts more."""
    grant = AuthorizationCode(redirect_uri=REDIRECT, scopes=["x"])
    world = world_with(["a", "x", "y"])
    run(make_client(grant=grant), world, challenge(scope=challenged)).authorized()

    assert scopes_of(world) == [expected]


@pytest.mark.parametrize(
    ("revision", "second"),
    [("2025-06-18", "write"), ("2025-11-25", "write"), ("2026-07-28", "read write")],
)
def test_step_up(revision: str, second: str) -> None:
    """AUTH-065, AUTH-066, AUTH-300, AUTH-301: the union is a rule of the newest revision."""
    world, client = world_with(["trap"]), make_client()
    run(client, world, challenge(scope="read"), revision=revision).authorized()
    take_head(client)
    run(client, world, insufficient("write"), revision=revision).authorized()

    assert scopes_of(world) == ["read", second]


def test_union_holds_what_was_asked_for_and_not_what_was_granted() -> None:
    """AUTH-066, AUTH-301: of the previous request."""
    world, client = world_with(["a", "b"]), make_client()
    world.put(TOKEN, token_document(scope="a"), token_document(scope="a b c"))
    run(client, world).authorized()
    run(client, world, insufficient("c")).authorized()

    assert scopes_of(world) == ["a b", "a b c"]


def test_union_after_a_restart() -> None:
    """AUTH-066: the scopes of a stored token are asked for again."""
    world = usual_world().put(TOKEN, token_document(scope="a offline_access"), token_document())
    stored = run(make_client(), world, challenge(scope="a")).stored
    client = make_client()
    client.restore(stored)
    run(client, world, insufficient("b")).authorized()

    assert scopes_of(world)[-1] == "a b"


def test_later_401_without_scopes_asks_for_the_same() -> None:
    """AUTH-061: the choice by metadata is for the first authorization."""
    world, client = world_with(["trap"]), make_client()
    run(client, world, challenge(scope="a")).authorized()
    run(client, world).authorized()

    assert scopes_of(world) == ["a", "a"]


@pytest.mark.parametrize(
    "refusal",
    [
        challenge(403),
        challenge(403, error="invalid_token", scope="x"),
        challenge(403, error="insufficient_scope"),
        challenge(403, error="insufficient_scope", scope=""),
        challenge(403, scheme="basic", error="insufficient_scope", scope="x"),
    ],
)
def test_other_403_are_no_case_for_a_step_up(refusal: Any) -> None:
    """AUTH-303: the user cannot change it."""
    world = usual_world()
    run(make_client(), world, refusal).failed(CHALLENGE, AuthorizationFailure.FORBIDDEN, "AUTH-303")

    assert world.requests == []


def test_step_ups_have_an_end() -> None:
    """AUTH-304, AUTH-305: three authorization requests in all, if every request is refused."""
    world, client = usual_world(), make_client()
    run(client, world, challenge()).authorized()
    for _ in range(2):
        run(client, world, insufficient("admin")).authorized()
    refusal = challenge(
        403, error="insufficient_scope", scope="admin", error_description="for owners only"
    )
    failed = run(client, world, refusal).failed(
        CHALLENGE, AuthorizationFailure.TOO_MANY_ATTEMPTS, "AUTH-304"
    )
    assert failed.text.endswith("; it says: for owners only")

    assert len(world.opened) == 3


def test_step_ups_are_counted_by_their_scopes() -> None:
    """AUTH-305: another operation has its own count, whatever succeeds in between."""
    world, client = usual_world(), make_client()
    for _ in range(2):
        run(client, world, insufficient("b a")).authorized()
        take_head(client)
    run(client, world, insufficient("c")).authorized()
    take_head(client)
    run(client, world, insufficient("a b")).failed(
        CHALLENGE, AuthorizationFailure.TOO_MANY_ATTEMPTS, "AUTH-304"
    )


def test_counts_of_step_ups_are_bounded() -> None:
    """A server that names other scopes each time fills no memory; the row has an end anyway."""
    client = make_client(config=AuthorizationConfig(max_step_ups=1, max_logins=1000))
    world = usual_world()
    for number in range(200):
        run(client, world, insufficient(f"s{number}")).authorized()
        take_head(client)
    run(client, world, insufficient("s199")).failed(
        CHALLENGE, AuthorizationFailure.TOO_MANY_ATTEMPTS, "AUTH-304"
    )
    run(client, world, insufficient("s0")).authorized()


def test_refused_scopes_that_are_remembered_are_bounded() -> None:
    """AUTH-308: a server that names other scopes each time, and grants none, fills no memory."""
    client, world = make_client(config=AuthorizationConfig(max_logins=1000)), usual_world()
    world.put(TOKEN, token_document(scope="a"))
    for number in range(100):
        run(client, world, insufficient(f"s{number}"))
        take_head(client)
    opened = len(world.opened)
    run(client, world, insufficient("s99")).failed(
        CHALLENGE, AuthorizationFailure.TOO_MANY_ATTEMPTS, "AUTH-304"
    )
    assert len(world.opened) == opened
    run(client, world, insufficient("s0"))  # forgotten, so that the user is asked again
    assert len(world.opened) == opened + 1


def test_step_ups_are_counted_anew_after_a_login() -> None:
    """AUTH-305: a client that lives for weeks does not run out of step-ups."""
    world, client = usual_world(), make_client()
    for _ in range(4):
        run(client, world, challenge()).authorized()
        take_head(client)
        run(client, world, insufficient("admin")).authorized()


def test_step_ups_can_be_switched_off() -> None:
    """AUTH-306: a client that acts for itself may abort at once."""
    world = usual_world()
    run(make_client(config=AuthorizationConfig(max_step_ups=0)), world, insufficient("x")).failed(
        CHALLENGE, AuthorizationFailure.TOO_MANY_ATTEMPTS, "AUTH-304"
    )

    assert world.requests == []


@pytest.mark.parametrize("refusal", [challenge(scope="a b"), insufficient("a b")])
def test_token_without_the_scopes_is_no_success(refusal: Any) -> None:
    """AUTH-308, AUTH-309: the same request would be refused again."""
    world = usual_world().put(TOKEN, token_document(scope="a"))
    client = make_client()
    done = run(client, world, refusal)
    failed = done.failed(
        AuthorizationStep.TOKEN, AuthorizationFailure.SCOPE_NOT_GRANTED, "AUTH-309"
    )

    assert "without b" in failed.text
    assert client.scopes == ("a",)  # it may serve for other requests
    opened = len(world.opened)
    run(client, world, insufficient("a b")).failed(
        CHALLENGE, AuthorizationFailure.TOO_MANY_ATTEMPTS, "AUTH-304"
    )
    assert len(world.opened) == opened


OFFLINE = {"scopes_supported": ["a", "offline_access"]}


@pytest.mark.parametrize(
    ("members", "revision", "expected"),
    [
        (OFFLINE, "2026-07-28", "a offline_access"),
        (OFFLINE, "2025-11-25", "a"),
        ({"scopes_supported": ["a", "b"]}, "2026-07-28", "a"),
        ({}, "2026-07-28", "a"),
    ],
)
def test_offline_access(members: dict[str, Any], revision: str, expected: str) -> None:
    """AUTH-292, AUTH-293, AUTH-294: only where the authorization server lists it."""
    world = world_with(["a"], **members)
    run(make_client(), world, revision=revision).authorized()

    assert scopes_of(world) == [expected]
    assert ("prompt" in world.queries()[0]) is ("offline" in expected)


@pytest.mark.parametrize(
    "settings",
    [
        {"config": AuthorizationConfig(offline_access=False)},
        {"client": ClientMetadata(refresh=False)},
    ],
)
def test_offline_access_is_not_asked_for_without_need(settings: Any) -> None:
    """AUTH-295: by whoever cannot store refresh tokens."""
    world = world_with(["a"], **OFFLINE)
    run(make_client(**settings), world).authorized()

    assert scopes_of(world) == ["a"]


def test_offline_access_stands_beside_other_scopes() -> None:
    """AUTH-294: it is no scope of the resource, and does not take their place."""
    world = world_with(None, **OFFLINE)
    run(make_client(), world).authorized()

    assert scopes_of(world) == [None]


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("named", ["by the challenge", "by the application", "by the metadata"])
def test_offline_access_before_2026_07_28(named: str, revision: str) -> None:
    """AUTH-060, AUTH-061, AUTH-299: it is a scope as any other one, and not added by itself."""
    both = ["a", "offline_access"]
    scopes = both if named == "by the application" else None
    world = world_with(both if named == "by the metadata" else ["a"])
    said = "a offline_access" if named == "by the challenge" else None
    refusal = challenge(scope=said, resource_metadata=PATH_METADATA)
    client = make_client(grant=AuthorizationCode(redirect_uri=REDIRECT, scopes=scopes))
    run(client, world, refusal, revision=revision).authorized()

    assert scopes_of(world) == ["a offline_access"]


def test_offline_access_is_not_asked_for_by_who_cannot_use_it() -> None:
    """AUTH-295: in the older revisions, too."""
    world = world_with(["a", "offline_access"])
    run(make_client(client=ClientMetadata(refresh=False)), world, revision="2025-11-25")

    assert scopes_of(world) == ["a"]


def test_offline_access_in_a_challenge_is_no_scope_that_a_token_lacks() -> None:
    """AUTH-090, AUTH-293: servers should not name it; the login, and each refresh, work though."""
    world = world_with(None)
    world.put(TOKEN, token_document(scope="a", refresh_token="r"), token_document(scope="a"))
    client, refusal = make_client(), challenge(scope="a offline_access")
    run(client, world, refusal).authorized()
    take_head(client)
    run(client, world, refusal).authorized()

    assert [form["grant_type"] for form in world.forms()] == ["authorization_code", "refresh_token"]


@pytest.mark.parametrize("listed", [True, False])
def test_offline_access_that_the_mcp_server_names(listed: bool) -> None:
    """AUTH-293: it should not, and the list of the authorization server counts."""
    world = world_with(["a", "offline_access"], **(OFFLINE if listed else {}))
    world.put(TOKEN, token_document(scope="a"))
    run(make_client(), world).authorized()

    assert scopes_of(world) == ["a offline_access" if listed else "a"]


def test_in_advance_without_anything() -> None:
    """An application may ask before the server does."""
    world = world_with(["a"])
    run(make_client(), world, in_advance=True, at=AT).authorized()

    assert scopes_of(world) == ["a"]
