"""What a server says about itself to clients of OAuth: its metadata document and its challenges."""

import json
from typing import Any

import pytest

from sansmcp.auth import (
    AccessRefused,
    AccessToken,
    DPoP,
    ProtectedResource,
    ResourceServer,
    insufficient_scope,
)
from tests.auth.server.tools import (
    ISSUER,
    METADATA,
    URL,
    PlainProofs,
    begun,
    challenges_in,
    claims_of,
    ending_of,
    granted,
    resource_of,
)

ROOT = "/.well-known/oauth-protected-resource"
PATH = ROOT + "/mcp"


def test_the_document_names_the_resource_and_its_authorization_servers() -> None:
    """Without it no client finds out where to get a token (AUTH-030, AUTH-032, AUTH-318)."""
    document = resource_of(
        scopes_supported=["read", "write"], metadata={"resource_name": "Files"}
    ).document
    assert document == {
        "resource": URL,
        "authorization_servers": [ISSUER],
        "scopes_supported": ["read", "write"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Files",
    }


def test_members_without_values_are_left_out() -> None:
    """RFC 9728 forbids empty lists, which a client could take for "no scope exists" (AUTH-317)."""
    assert resource_of().document == {
        "resource": URL,
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
    }


def test_the_document_says_how_tokens_are_bound_to_keys() -> None:
    """A client must know beforehand that it needs a key."""
    bound = resource_of(dpop=DPoP(reader=PlainProofs(), required=True, algorithms=["ES256"]))
    assert bound.document["dpop_signing_alg_values_supported"] == ["ES256"]
    assert bound.document["dpop_bound_access_tokens_required"] is True


def test_the_document_belongs_to_its_reader() -> None:
    """Whoever changes it must not change what others get."""
    resource = resource_of()
    resource.document["authorization_servers"].append("https://evil.example")
    assert resource.document["authorization_servers"] == [ISSUER]


@pytest.mark.parametrize(
    ("resource", "url"),
    [
        (URL, METADATA),
        ("https://api.example", "https://api.example/.well-known/oauth-protected-resource"),
        ("https://api.example/", "https://api.example/.well-known/oauth-protected-resource"),
        (
            "https://api.example:8443/a/b/",
            "https://api.example:8443/.well-known/oauth-protected-resource/a/b/",
        ),
        (
            "http://127.0.0.1:8000/mcp",
            "http://127.0.0.1:8000/.well-known/oauth-protected-resource/mcp",
        ),
    ],
)
def test_the_path_of_the_resource_follows_the_well_known_path(resource: str, url: str) -> None:
    """Clients build this URL by themselves (AUTH-034, AUTH-208)."""
    assert resource_of(resource=resource).metadata_url == url


def respond(method: str, target: str, **settings: Any) -> tuple[int, dict[str, str], bytes]:
    response = resource_of(**settings).respond(method, target)
    assert response is not None
    status, headers, body = response
    return status, {name.decode(): value.decode() for name, value in headers}, body


def test_the_document_is_served_as_json_to_everyone() -> None:
    """A client has no token yet, and may be a page in a browser (AUTH-030, AUTH-317)."""
    status, headers, body = respond("GET", PATH + "?x=1", max_age=60)
    assert (status, json.loads(body)) == (200, resource_of().document)
    assert headers == {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "cache-control": "public, max-age=60",
        "access-control-allow-origin": "*",
    }


def test_a_head_has_no_body() -> None:
    """The length is that of the document, which does not follow."""
    status, headers, body = respond("HEAD", PATH)
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) > 0


def test_a_browser_may_ask_first() -> None:
    """Clients send MCP-Protocol-Version with this request, which needs a preflight."""
    status, headers, body = respond("OPTIONS", PATH)
    assert (status, body) == (204, b"")
    assert headers["access-control-allow-origin"] == "*"
    assert headers["access-control-allow-headers"] == "*"


def test_other_methods_are_refused() -> None:
    """The document cannot be changed by a request."""
    status, headers, _ = respond("POST", PATH)
    assert (status, headers["allow"]) == (405, "GET, HEAD, OPTIONS")


@pytest.mark.parametrize("target", ["/mcp", "/", PATH + "/x", ROOT])
def test_other_paths_are_left_to_others(target: str) -> None:
    """The document at the root would be that of another resource (AUTH-318)."""
    assert resource_of().respond("GET", target) is None


def test_an_escaped_path_is_the_same_path() -> None:
    """Some servers hand over paths decoded, others as they came."""
    resource = resource_of(resource="https://api.example/a%20b")
    for path in (ROOT + "/a%20b", ROOT + "/a b"):
        assert resource.respond("GET", path) is not None


# -------------------------------------------------------------------------------- challenges


def test_a_challenge_without_credentials_names_no_error() -> None:
    """A client would take an error for a fault of its own (AUTH-033, AUTH-034, AUTH-321)."""
    assert resource_of().challenge() == f'Bearer resource_metadata="{METADATA}"'


def test_a_challenge_names_the_scopes_that_are_needed() -> None:
    """The client asks for these, and for no more (AUTH-058, AUTH-063)."""
    resource = resource_of(required_scopes=["read"], scopes_supported=["read", "profile"])
    (challenge,) = challenges_in(
        resource.challenge("insufficient_scope", "more", scopes=["write", "read"])
    ).values()
    assert challenge.parameters == {
        "error": "insufficient_scope",
        "error_description": "more",
        "scope": "read write",
        "resource_metadata": METADATA,
    }


def test_values_are_quoted_strings() -> None:
    """A URL is no token of HTTP, and a quote must not end its value (AUTH-320)."""
    text = resource_of().challenge("invalid_token", 'a "b" \\c')
    assert f'error_description="a \'b\' /c", resource_metadata="{METADATA}"' in text


@pytest.mark.parametrize(
    ("text", "described"),
    [
        ("line\r\nSet-Cookie: a=b", "line Set-Cookie: a=b"),
        ('", error="x', "', error='x"),
        ("Zürich \x00\x7f\u2028\ud800", "Z?rich ?? ?"),
        ("a\\", "a/"),
        ("x" * 400, "x" * 300),
        (" \t", None),
        ("", None),
    ],
)
def test_a_description_has_no_other_characters_than_it_may(
    text: str, described: str | None
) -> None:
    """It may repeat what a client has sent, and must not become another header or parameter."""
    resource = resource_of()
    token = AccessToken(
        key="k",
        issuer=ISSUER,
        subject=None,
        client_id=None,
        scopes=frozenset(),
        expires_at=None,
        scheme="Bearer",
        claims={},
        resource=resource,
    )
    server = ResourceServer(resource)
    server.reject(begun(server), text)
    event = ending_of(server)
    assert isinstance(event, AccessRefused)
    for header in (
        resource.challenge("invalid_token", text),
        insufficient_scope(token, ["a"], text),
        insufficient_scope("someone", ["a"], text),
        dict(event.headers)["www-authenticate"],
    ):
        assert header.isascii()
        assert header.isprintable()
        assert challenges_in(header)["bearer"].parameters.get("error_description") == described


@pytest.mark.parametrize("error", ['a"b', "a\\b", "a\nb", "", "é"])
def test_an_error_code_has_no_other_characters_than_it_may(error: str) -> None:
    """It is chosen by a program, so a wrong one is a mistake of it."""
    with pytest.raises(ValueError, match="error must be visible ASCII"):
        resource_of().challenge(error)


def test_a_challenge_of_another_scheme_names_its_algorithms() -> None:
    """A client has to make a key of a type that the server verifies."""
    resource = resource_of(dpop=DPoP(reader=PlainProofs(), algorithms=["ES256", "EdDSA"]))
    found = challenges_in(resource.challenge())
    assert found["dpop"].parameters["algs"] == "ES256 EdDSA"
    assert found["dpop"].parameters["resource_metadata"] == METADATA
    assert "algs" not in found["bearer"].parameters


def test_bearer_is_not_offered_where_a_key_is_required() -> None:
    """A client would get a token that is then refused."""
    resource = resource_of(dpop=DPoP(reader=PlainProofs(), required=True))
    assert list(challenges_in(resource.challenge())) == ["dpop"]
    assert list(challenges_in(resource.challenge(scheme="Bearer"))) == ["dpop"]


# ---------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"resource": "api.example/mcp"}, "resource is no URL of https or http"),
        ({"resource": "https://api.example/mcp#x"}, "resource has a fragment"),
        ({"resource": "https://api.example/mcp?x"}, "resource must have no query"),
        ({"resource": "https://api.example/mcp?"}, "resource must have no query"),
        ({"resource": "http://api.example/mcp"}, "resource must be https, except on this machine"),
        ({"resource": 'https://api.example/"'}, "resource has no path that a URL may have"),
        ({"resource": 7}, "resource is no URL"),
        ({"authorization_servers": []}, r"must name one at least \(AUTH-032\)"),
        ({"authorization_servers": "https://as.example"}, "must be a list or a tuple of strings"),
        ({"authorization_servers": ["http://as.example"]}, "must be https"),
        ({"scopes_supported": ["a b"]}, "scopes_supported must hold scopes"),
        ({"scopes_supported": ["offline_access"]}, r"must not hold offline_access \(AUTH-090\)"),
        ({"required_scopes": ["offline_access"]}, r"must not hold offline_access \(AUTH-090\)"),
        ({"required_scopes": ['"']}, "required_scopes must hold scopes"),
        ({"implied_scopes": []}, "implied_scopes must be a mapping"),
        ({"implied_scopes": {"a": ["b c"]}}, r"implied_scopes\['a'\] must hold scopes"),
        ({"implied_scopes": {"a b": ["b"]}}, "implied_scopes must hold scopes"),
        ({"audiences": "x"}, "audiences must be a list"),
        ({"leeway": -1}, "leeway must not be negative"),
        ({"dpop": True}, "dpop must be a DPoP"),
        ({"metadata": {"resource": "x"}}, "resource of the metadata follow"),
        ({"metadata": []}, "metadata must be a dict"),
        ({"max_age": -1}, "max_age must not be negative"),
        ({"scope_claim": None}, "scope_claim must be a string"),
    ],
)
def test_settings_that_no_client_could_follow_are_refused(
    settings: dict[str, Any], text: str
) -> None:
    """A mistake here would show in the clients of others only (AUTH-032, AUTH-090)."""
    with pytest.raises(ValueError, match=text):
        resource_of(**settings)


def test_the_scope_for_refresh_tokens_is_in_no_challenge() -> None:
    """No resource needs it, and clients would ask for it at each step (AUTH-090)."""
    with pytest.raises(ValueError, match="AUTH-090"):
        resource_of().challenge("insufficient_scope", "more", scopes=["offline_access"])


def test_metadata_without_a_json_form_is_refused_at_once() -> None:
    """Else each request for the document would fail."""
    with pytest.raises(TypeError, match="not JSON serializable"):
        ProtectedResource(URL, authorization_servers=[ISSUER], metadata={"x": object()})


def test_the_challenge_for_a_missing_scope_knows_the_resource() -> None:
    """A handler names scopes only; where to get them is known (AUTH-062, AUTH-063, AUTH-324)."""
    token = granted(claims_of(), required_scopes=["read"])
    text = insufficient_scope(token, {"write"}, "more")
    assert challenges_in(text)["bearer"].parameters == {
        "error": "insufficient_scope",
        "error_description": "more",
        "scope": "read write",
        "resource_metadata": METADATA,
    }


def test_the_challenge_for_a_missing_scope_needs_no_resource() -> None:
    """A server may find its principals in another way (AUTH-324)."""
    text = insufficient_scope("user-1", ["write"], "more")
    assert challenges_in(text)["bearer"].parameters == {
        "error": "insufficient_scope",
        "error_description": "more",
        "scope": "write",
    }
