"""What a verified token must say so that its request is served."""

from typing import Any

import attrs
import pytest

from sansmcp.auth import AccessToken
from tests.auth.server.tools import (
    AT,
    ISSUER,
    METADATA,
    TOKEN,
    URL,
    challenge_of,
    claims_of,
    granted,
    refused,
)


def test_a_good_token_is_the_principal() -> None:
    """Handlers decide by what it says (AUTH-010, AUTH-050)."""
    token = granted(claims_of(scope="write read", extra=[1]))
    assert (token.issuer, token.subject, token.client_id) == (ISSUER, "user-1", "client-1")
    assert token.scopes == {"read", "write"}
    assert token.expires_at == AT + 60
    assert token.scheme == "Bearer"
    assert token.claims["extra"] == [1]
    assert token.resource.resource == URL
    assert "extra" not in repr(token)


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"iss": None}, "AUTH-010"),
        ({"iss": "https://as.example/"}, "AUTH-010"),
        ({"iss": "https://other.example"}, "AUTH-010"),
        ({"iss": [ISSUER]}, "AUTH-010"),
        ({"aud": None}, "AUTH-050"),
        ({"aud": "https://other.example/mcp"}, "AUTH-050"),
        ({"aud": "https://api.example"}, "AUTH-050"),
        ({"aud": "https://api.example/mcp/"}, "AUTH-050"),
        ({"aud": "https://api.example/MCP"}, "AUTH-050"),
        ({"aud": []}, "AUTH-050"),
        ({"aud": [7, None]}, "AUTH-050"),
        ({"aud": {"x": URL}}, "AUTH-050"),
        ({"exp": None}, "AUTH-330"),
        ({"exp": "soon"}, "AUTH-330"),
        ({"exp": True}, "AUTH-330"),
        ({"exp": float("nan")}, "AUTH-330"),
        ({"exp": 10**400}, "AUTH-330"),
        ({"exp": AT - 30}, "AUTH-011"),
        ({"exp": 0}, "AUTH-011"),
        ({"nbf": AT + 31}, "AUTH-330"),
        ({"nbf": "x"}, "AUTH-330"),
        ({"iat": AT + 31}, "AUTH-330"),
        ({"iat": []}, "AUTH-330"),
        ({"sub": 7}, "AUTH-010"),
        ({"client_id": {}}, "AUTH-010"),
        ({"scope": 7}, "AUTH-010"),
        ({"scope": ["read", 7]}, "AUTH-010"),
        ({"cnf": {"jkt": "key"}}, "AUTH-411"),
        ({"cnf": {"x5t#S256": "x"}}, "AUTH-411"),
        ({"cnf": "x"}, "AUTH-411"),
    ],
    ids=repr,
)
def test_another_token_is_refused(more: dict[str, Any], rule: str) -> None:
    """Each of these is a token that was not issued for this server, or is not valid now.

    AUTH-010, AUTH-011, AUTH-050, AUTH-051, AUTH-322, AUTH-328, AUTH-329, AUTH-330, AUTH-411.
    """
    event = refused(claims_of(**{"iss": ISSUER, **more}))
    assert (event.status, event.error, event.rule) == (401, "invalid_token", rule)
    challenge = challenge_of(event)
    assert challenge["error"] == "invalid_token"
    assert challenge["error_description"] == event.text
    assert challenge["resource_metadata"] == METADATA


@pytest.mark.parametrize(
    "audience",
    [
        URL,
        "HTTPS://API.Example/mcp",
        ["https://other.example", URL],
        "client-of-this-server",
    ],
)
def test_the_audience_is_this_server_however_its_host_is_written(audience: Any) -> None:
    """The case of a host means nothing; further names may be set (AUTH-049, AUTH-328)."""
    token = granted(claims_of(aud=audience), audiences=["client-of-this-server"])
    assert token.subject == "user-1"


@pytest.mark.parametrize(
    ("resource", "audience"),
    [
        ("https://api.example", "https://api.example/"),
        ("https://api.example/", "https://api.example"),
    ],
)
def test_a_slash_behind_the_host_means_nothing(resource: str, audience: str) -> None:
    """URL parsers add it (AUTH-048)."""
    assert granted(claims_of(aud=audience), resource=resource).subject == "user-1"


def test_one_of_several_issuers_is_trusted() -> None:
    """A resource may have more than one authorization server (AUTH-032)."""
    servers = [ISSUER, "https://two.example"]
    token = granted(claims_of(iss="https://two.example"), authorization_servers=servers)
    assert token.issuer == "https://two.example"


@pytest.mark.parametrize("more", [{"exp": AT - 29}, {"nbf": AT + 29}, {"iat": AT + 30}])
def test_clocks_may_differ_a_little(more: dict[str, Any]) -> None:
    """Two machines never have the same time (AUTH-330)."""
    assert granted(claims_of(**more)).subject == "user-1"


def test_the_leeway_is_a_setting() -> None:
    """Who has good clocks may allow none."""
    assert refused(claims_of(exp=AT), leeway=0).rule == "AUTH-011"


def test_a_token_expires_while_its_client_uses_it() -> None:
    """Each request is checked at its own time (AUTH-011, AUTH-332)."""
    assert granted(claims_of(), at=AT + 89).expires_at == AT + 60
    assert refused(claims_of(), at=AT + 90).status == 401


# ------------------------------------------------------------------------------------ scopes


def test_scopes_may_be_a_list_in_a_claim_of_another_name() -> None:
    """Some authorization servers write them so."""
    token = granted(claims_of(scp=["a", "b"], scope=None), scope_claim="scp")
    assert token.scopes == {"a", "b"}


@pytest.mark.parametrize("scope", ["read write", "write  read", " read write "])
def test_the_order_of_scopes_means_nothing(scope: str) -> None:
    """They are a set, in which case counts (AUTH-310)."""
    token = granted(claims_of(scope=scope))
    assert token.scopes == {"read", "write"}
    assert token.missing(["READ", "read"]) == {"READ"}


def test_a_token_without_scopes_has_none() -> None:
    """It may be enough for what needs none."""
    assert granted(claims_of(scope=None)).scopes == frozenset()


def test_a_missing_scope_is_403_with_all_that_are_needed() -> None:
    """The client asks for them in one step (AUTH-012, AUTH-062, AUTH-063, AUTH-324)."""
    event = refused(claims_of(scope="profile"), required_scopes=["read", "list"])
    assert (event.status, event.error) == (403, "insufficient_scope")
    challenge = challenge_of(event)
    assert challenge["error"] == "insufficient_scope"
    assert challenge["scope"] == "read list"
    assert challenge["resource_metadata"] == METADATA


def test_broad_scopes_imply_narrower_ones() -> None:
    """A client that has more than enough must not be sent for less (AUTH-064)."""
    implied = {"admin": ["files"], "files": ["files:read", "files:write"], "files:write": ["admin"]}
    settings: dict[str, Any] = {"implied_scopes": implied, "required_scopes": ["files:read"]}
    token = granted(claims_of(scope="admin"), **settings)
    assert token.scopes == {"admin"}
    assert token.covers(["files:write", "files"])
    assert token.missing(["files:write", "users"]) == {"users"}
    assert refused(claims_of(scope="files:red"), **settings).status == 403


# --------------------------------------------------------------------------------- principal


def test_a_refreshed_token_is_the_same_principal() -> None:
    """A session and a sealed state must outlive a token (AUTH-334)."""
    old = granted(claims_of())
    new = granted(claims_of(exp=AT + 600, scope="read write", jti="2"))
    assert old == new
    assert hash(old) == hash(new)
    assert old.key == new.key


@pytest.mark.parametrize(
    "more",
    [
        {"sub": "user-2"},
        {"client_id": "client-2"},
        {"client_id": None},
        {"sub": None},
        {"sub": None, "client_id": None},
        {"sub": "client-1", "client_id": "user-1"},
        {"iss": "https://two.example"},
    ],
    ids=repr,
)
def test_another_user_client_or_issuer_is_another_principal(more: dict[str, Any]) -> None:
    """A user must not get into the session of another one by his own token (AUTH-334)."""
    servers = [ISSUER, "https://two.example"]
    mine = granted(claims_of(), authorization_servers=servers)
    other = granted(claims_of(**{"iss": ISSUER, **more}), authorization_servers=servers)
    assert mine != other
    assert mine.key != other.key


def test_keys_of_odd_names_do_not_meet() -> None:
    """A subject with a separator in it must not stand for two (AUTH-334)."""
    names = [('a", "b', "c"), ("a", 'b", "c'), ("a", "b"), ("null", None), (None, "a")]
    keys = {granted(claims_of(sub=sub, client_id=client)).key for sub, client in names}
    assert len(keys) == len(names)


def test_another_name_of_the_client() -> None:
    """Authorization servers that know no client_id have azp."""
    assert granted(claims_of(client_id=None, azp="client-2")).client_id == "client-2"


def test_the_token_is_not_in_its_principal() -> None:
    """A handler that has no token cannot pass it on (AUTH-052)."""
    token = granted(claims_of(sub=None, client_id=None))
    assert TOKEN not in repr(token)
    for field in attrs.fields(AccessToken):
        assert TOKEN not in str(getattr(token, field.name))
