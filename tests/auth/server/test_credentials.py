"""The header of a request with its token, and what is no token."""

from typing import Any

import pytest

from sansmcp.auth import AccessRefused, ResourceServer, TokenReceived
from tests.auth.server.tools import (
    AT,
    METADATA,
    TOKEN,
    bound_server,
    challenge_of,
    ending_of,
    resource_of,
)


def tried(headers: Any, target: str = "/mcp") -> TokenReceived | AccessRefused:
    """What follows from the head of a request."""
    server = ResourceServer(resource_of())
    check = server.check("POST", target, headers, at=AT)
    event = server.next_event()
    assert isinstance(event, TokenReceived | AccessRefused)
    assert event.check is check
    return event


def refusal(headers: Any, target: str = "/mcp") -> AccessRefused:
    event = tried(headers, target)
    assert isinstance(event, AccessRefused)
    return event


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {TOKEN}"},
        {"Authorization": f"bearer {TOKEN}"},
        [("AUTHORIZATION", f"BEARER   {TOKEN} ")],
        [(b"authorization", f"Bearer {TOKEN}".encode()), (b"host", b"\xff")],
        {b"authorization": f"bEARER {TOKEN}".encode()},
    ],
)
def test_names_and_schemes_have_no_case(headers: Any) -> None:
    """Clients write them as they like (AUTH-326)."""
    event = tried(headers)
    assert isinstance(event, TokenReceived)
    assert event.token == TOKEN


@pytest.mark.parametrize("headers", [{}, {"authorization": "Basic dTpw"}, {"authorization": ""}])
def test_a_request_without_a_token_gets_401_and_no_error(headers: dict[str, str]) -> None:
    """It is told where tokens come from (AUTH-012, AUTH-013, AUTH-033, AUTH-034, AUTH-321)."""
    event = refusal(headers)
    assert (event.status, event.error) == (401, None)
    assert challenge_of(event) == {"resource_metadata": METADATA}


@pytest.mark.parametrize("query", ["access_token=" + TOKEN, "x=1&access_token=" + TOKEN])
def test_a_token_in_the_query_is_none(query: str) -> None:
    """It would stand in the logs of everyone on the way (AUTH-327)."""
    event = refusal({}, f"/mcp?{query}")
    assert (event.status, event.error) == (401, None)


@pytest.mark.parametrize(
    ("headers", "target"),
    [
        ({"authorization": "Bearer"}, "/mcp"),
        ({"authorization": "Bearer "}, "/mcp"),
        ({"authorization": "Bearer a b"}, "/mcp"),
        ({"authorization": "Bearer a, Bearer b"}, "/mcp"),
        ({"authorization": 'Bearer "a"'}, "/mcp"),
        ([("authorization", "Bearer a"), ("Authorization", "Bearer a")], "/mcp"),
        ({"authorization": "Bearer a"}, "/mcp?access_token=a"),
        ({"authorization": "Bearer a"}, "/mcp?x=1&%61ccess%5Ftoken=a"),
    ],
)
def test_credentials_that_cannot_be_read_are_a_bad_request(headers: Any, target: str) -> None:
    """Two readers must not take two tokens out of one request (AUTH-012, AUTH-323)."""
    event = refusal(headers, target)
    assert (event.status, event.error) == (400, "invalid_request")
    assert challenge_of(event)["error"] == "invalid_request"


def test_an_endless_token_is_not_looked_at() -> None:
    """No verifier must work on it (AUTH-322)."""
    event = refusal({"authorization": "Bearer " + "a" * 20_000})
    assert (event.status, event.error) == (401, "invalid_token")


def test_a_parameter_of_another_name_is_no_token() -> None:
    """Only this one name is that of a token."""
    assert isinstance(tried({"authorization": "Bearer a"}, "/mcp?no_access_token=a"), TokenReceived)


def test_a_scheme_that_is_not_served_is_no_credential() -> None:
    """Without DPoP in the settings, a proof could not be judged (AUTH-411)."""
    event = refusal({"authorization": f"DPoP {TOKEN}", "dpop": "x"})
    assert (event.status, event.error) == (401, None)


def test_two_proofs_are_none() -> None:
    """RFC 9449 allows one (AUTH-409, AUTH-410)."""
    server = bound_server()
    fields = [("authorization", f"DPoP {TOKEN}"), ("dpop", "a"), ("DPoP", "b")]
    server.check("POST", "/mcp", fields, at=AT)
    event = ending_of(server)
    assert isinstance(event, AccessRefused)
    assert (event.status, event.error) == (401, "invalid_dpop_proof")
    assert challenge_of(event, "dpop")["error"] == "invalid_dpop_proof"


def test_nothing_secret_is_shown() -> None:
    """Events and handles are logged (AUTH-285)."""
    event = tried({"authorization": f"Bearer {TOKEN}"})
    assert TOKEN not in repr(event)
    assert TOKEN not in repr(event.check)
