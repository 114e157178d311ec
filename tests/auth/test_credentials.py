"""Credentials: kept by their issuer, stored as records, and left behind when the server changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sansmcp.auth import AuthorizationStep
from tests.support.auth.script import (
    AT,
    ISSUER,
    MCP,
    PATH_METADATA,
    REGISTER,
    TOKEN,
    World,
    challenge,
    make_client,
    resource_document,
    run,
    server_document,
    take_head,
    token_document,
    usual_world,
)

OTHER = "https://other.example.com"


def moved(world: World) -> World:
    """The same MCP server, after it has changed to another authorization server."""
    world.put(PATH_METADATA, resource_document(authorization_servers=[OTHER]))
    world.put(f"{OTHER}/.well-known/oauth-authorization-server", server_document(OTHER))
    world.put(f"{OTHER}/register", {"client_id": "client-at-other"})
    world.put(f"{OTHER}/token", token_document(access_token="other-token"))
    world.issuer = OTHER
    return world


def test_record_is_json() -> None:
    """An application stores it wherever it likes, and gets the same tokens back."""
    world = usual_world().put(f"{ISSUER}/token", token_document(refresh_token="r", scope="a b"))
    done = run(make_client(), world)
    record = done.stored[ISSUER]
    client = make_client()

    assert json.loads(json.dumps(record)) == record
    assert client.restore({ISSUER: json.loads(json.dumps(record))})
    assert client.headers("POST", MCP, at=AT) == [("Authorization", "Bearer first-token")]
    assert client.scopes == ("a", "b")
    assert client.expires_at == AT + 3600
    assert client.issuer == ISSUER


def changed(record: Any, *path: str, value: Any = None) -> Any:
    """A copy of a record with another value."""
    if not path:
        return value
    return {**record, path[0]: changed(record[path[0]], *path[1:], value=value)}


@pytest.fixture(name="record")
def _record() -> Any:
    world = usual_world().put(TOKEN, token_document(refresh_token="r"))
    return run(make_client(), world).stored[ISSUER]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["issuer"], None),
        (["issuer"], OTHER),
        (["issuer"], ISSUER + "/"),
        (["server"], "https://other.example.com/mcp"),
        (["server"], None),
        (["version"], 2),
        (["version"], None),
        (["tokens"], None),
        (["tokens"], {}),
        (["tokens"], []),
        (["tokens", "access_token"], 17),
        (["tokens", "access_token"], None),
        (["tokens", "expires_at"], "x"),
        (["tokens", "obtained_at"], True),
        (["tokens", "refresh_token"], 17),
        (["tokens", "scopes"], "a"),
        (["tokens", "scopes"], [17]),
    ],
)
def test_records_that_do_not_fit_are_not_used(record: Any, path: list[str], value: Any) -> None:
    """AUTH-043, AUTH-274: without its issuer, nobody knows where a secret may be sent."""
    client = make_client()

    assert not client.restore({ISSUER: changed(record, *path, value=value)})
    assert client.headers("POST", MCP, at=AT) == []


@pytest.mark.parametrize("record", [None, [], "x", 17, {}])
def test_what_is_no_record_is_ignored(record: object) -> None:
    """A file may hold anything."""
    assert not make_client().restore({ISSUER: record})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["client"], None),
        (["client"], []),
        (["client", "kind"], "unknown"),
        (["client", "client_id"], 17),
        (["client", "client_secret"], 17),
        (["client", "auth_method"], "tls"),
        (["client", "secret_expires_at"], "x"),
        (["client", "redirect_uris"], None),
    ],
)
def test_clients_that_do_not_fit_are_registered_again(
    record: Any, path: list[str], value: Any
) -> None:
    """The token may still be good, but nobody can refresh it."""
    client, world = make_client(), usual_world()

    assert client.restore({ISSUER: changed(record, *path, value=value)})
    run(client, world, challenge(error="invalid_token")).authorized()
    assert len(world.asked(REGISTER)) == 1
    assert [form["grant_type"] for form in world.forms()] == ["authorization_code"]


@pytest.mark.parametrize("name", ["resource", "resource_metadata"])
def test_other_members_may_be_missing(record: Any, name: str) -> None:
    """They are only a first guess."""
    client = make_client()

    assert client.restore({ISSUER: changed(record, name, value=17)})
    run(client, usual_world(), challenge()).authorized()


def test_token_without_a_time_is_the_oldest(record: Any) -> None:
    """Of several tokens, the newest is used."""
    other = changed(changed(record, "issuer", value=OTHER), "tokens", "obtained_at")
    other = changed(other, "tokens", "access_token", value="old")
    client = make_client()
    client.restore({OTHER: other, ISSUER: record})

    assert client.issuer == ISSUER


def test_newer_credentials_are_not_replaced_by_stored_ones(record: Any) -> None:
    """A file may be older than what this process has got since."""
    client, world = make_client(), usual_world()
    world.put(f"{ISSUER}/token", token_document(access_token="newer"))
    run(client, world).authorized()
    client.restore({ISSUER: record})

    assert client.headers("POST", MCP, at=AT) == [("Authorization", "Bearer newer")]


def test_stored_must_be_a_mapping() -> None:
    """An untyped caller hears it at once."""
    with pytest.raises(ValueError, match="stored must be a mapping"):
        make_client().restore([])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # wrong on purpose


def test_change_of_the_authorization_server() -> None:
    """AUTH-044, AUTH-053, AUTH-079, AUTH-080, AUTH-224, AUTH-273: everything begins anew."""
    world = usual_world().put(f"{ISSUER}/token", token_document(refresh_token="secret-refresh"))
    client = make_client()
    run(client, world).authorized()
    take_head(client)
    before = len(world.requests)
    done = run(client, moved(world), challenge(error="invalid_token"))

    assert done.authorized().issuer == OTHER
    later = world.requests[before:]
    assert [request.url for request in later][-2:] == [f"{OTHER}/register", f"{OTHER}/token"]
    for secret in (b"dynamic-client", b"secret-refresh", b"first-token"):
        assert secret not in b"".join(request.body for request in later)
    assert world.queries()[-1]["client_id"] == "client-at-other"
    assert "AUTH-079" in [step.rule for step in done.steps]
    assert client.headers("POST", MCP, at=AT) == [("Authorization", "Bearer other-token")]


def test_records_of_both_servers_are_kept_apart() -> None:
    """AUTH-043, AUTH-078: the registration at the first one stays, its tokens do not."""
    world = usual_world()
    client = make_client()
    run(client, world).authorized()
    stored = run(client, moved(world), challenge()).stored

    assert stored[ISSUER]["client"]["client_id"] == "dynamic-client"
    assert stored[ISSUER]["tokens"] is None
    assert stored[OTHER]["client"]["client_id"] == "client-at-other"
    assert stored[OTHER]["tokens"]["access_token"] == "other-token"


def test_stored_token_of_a_former_server_is_not_sent_after_the_change() -> None:
    """AUTH-053, AUTH-273: not even if the change is seen only when the user cancels."""
    world = usual_world()
    stored = run(make_client(), world).stored
    client = make_client()
    moved(world)
    world.callback = {"error": "access_denied", "code": None}
    done = run(client, world, challenge(), stored=stored)

    assert done.concluded(AuthorizationStep.CALLBACK)
    assert client.headers("POST", MCP, at=AT) == []


def test_new_client_at_the_same_server_keeps_the_token() -> None:
    """A registration replaces a registration."""
    world = usual_world()
    client = make_client()
    run(client, world).authorized()

    assert len(world.asked(REGISTER)) == 1
    run(client, world, challenge(403, error="insufficient_scope", scope="x")).authorized()
    assert len(world.asked(REGISTER)) == 1
