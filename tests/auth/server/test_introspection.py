"""Tokens that their authorization server is asked about."""

import base64
import copy
import json
from typing import Any
from urllib.parse import parse_qs

import pytest

from sansmcp.auth import (
    AccessCheck,
    AccessGranted,
    AccessRefused,
    HTTPRequest,
    IntrospectionVerifier,
    RequestWanted,
    ResourceServer,
)
from tests.auth.server.tools import AT, ISSUER, TOKEN, URL, claims_of, ending_of, resource_of

ENDPOINT = "https://as.example/introspect"


def server_of(**settings: Any) -> ResourceServer:
    settings = {"issuer": ISSUER, "client_id": "rs:1", "client_secret": "s/ret", **settings}
    return ResourceServer(resource_of(), IntrospectionVerifier(ENDPOINT, **settings))


def begin(server: ResourceServer, token: str = TOKEN, at: float = AT) -> AccessCheck:
    return server.check("POST", "/mcp", {"authorization": f"Bearer {token}"}, at=at)


def wanted(server: ResourceServer) -> HTTPRequest:
    event = server.next_event()
    assert isinstance(event, RequestWanted)
    return event.request


def answer(server: ResourceServer, request: HTTPRequest, body: Any, at: float = AT) -> None:
    server.receive_response(request, 200, (), json.dumps(body).encode(), at=at)


def active(**more: Any) -> dict[str, Any]:
    return {"active": True, **claims_of(**more)}


def outcome(server: ResourceServer) -> AccessGranted | AccessRefused:
    begin(server)
    answer(server, wanted(server), active())
    return ending_of(server)


def test_a_token_is_asked_about_and_served() -> None:
    """The token goes to its own authorization server, and nowhere else (AUTH-010, AUTH-052)."""
    server = server_of()
    assert not server.asks
    check = begin(server)
    request = wanted(server)
    assert server.next_event() is None
    assert (request.method, request.url) == ("POST", ENDPOINT)
    assert parse_qs(request.body.decode()) == {
        "token": [TOKEN],
        "token_type_hint": ["access_token"],
    }
    fields = dict(request.headers)
    assert fields["Content-Type"] == "application/x-www-form-urlencoded"
    assert fields["Authorization"] == "Basic " + base64.b64encode(b"rs%3A1:s%2Fret").decode()
    assert TOKEN not in repr(request)

    answer(server, request, active())
    event = ending_of(server)
    assert isinstance(event, AccessGranted)
    assert event.check is check
    assert event.token.subject == "user-1"
    assert "active" not in event.token.claims


def test_the_secret_may_go_in_the_body() -> None:
    """Some authorization servers take it there only."""
    server = server_of(auth_method="client_secret_post")
    begin(server)
    request = wanted(server)
    assert "Authorization" not in dict(request.headers)
    form = parse_qs(request.body.decode())
    assert (form["client_id"], form["client_secret"]) == (["rs:1"], ["s/ret"])


def test_a_token_that_is_not_active_is_invalid() -> None:
    """It has expired, or was revoked, or never was one (AUTH-011, AUTH-322)."""
    server = server_of()
    begin(server)
    answer(server, wanted(server), {"active": False})
    event = ending_of(server)
    assert isinstance(event, AccessRefused)
    assert (event.status, event.error) == (401, "invalid_token")


@pytest.mark.parametrize(
    ("more", "is_granted"),
    [
        ({"iss": None, "exp": None}, True),
        ({"iss": "https://other.example"}, False),
        ({"aud": "https://other.example"}, False),
        ({"aud": None}, False),
        ({"exp": AT - 60}, False),
        ({"cnf": {"jkt": "x"}}, False),
    ],
)
def test_the_claims_are_judged_as_ever(more: dict[str, Any], is_granted: bool) -> None:
    """That a token is active does not mean that it is for this server (AUTH-050, AUTH-328)."""
    server = server_of()
    begin(server)
    answer(server, wanted(server), active(**more))
    assert isinstance(ending_of(server), AccessGranted) is is_granted


def test_the_audience_may_be_known_from_elsewhere() -> None:
    """Where an authorization server answers about the tokens of the asking server (AUTH-328)."""
    for named, is_granted in ((None, True), ("https://other.example", False)):
        server = server_of(audience=URL)
        begin(server)
        answer(server, wanted(server), active(aud=named))
        assert isinstance(ending_of(server), AccessGranted) is is_granted


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (200, b"[]"),
        (200, b"{}"),
        (200, b'{"active": "true"}'),
        (200, b'{"active": 1}'),
        (200, b'{"active": true'),
        (200, b"[" * 100_000),
        (201, b'{"active": true}'),
        (302, b'{"active": true}'),
        (401, b'{"error": "invalid_client"}'),
        (500, b""),
    ],
)
def test_an_answer_that_says_nothing_admits_nobody(status: int, body: bytes) -> None:
    """It is no proof of anything, and no fault of the client either (AUTH-010)."""
    server = server_of()
    begin(server)
    server.receive_response(wanted(server), status, (), body, at=AT)
    event = ending_of(server)
    assert isinstance(event, AccessRefused)
    assert (event.status, event.error) == (503, None)
    assert f"status {status}" in event.cause


def test_no_answer_admits_nobody() -> None:
    """Who cuts the server off from the authorization server must not get in (AUTH-010)."""
    server = server_of()
    begin(server)
    server.receive_failure(wanted(server), "connection refused", at=AT)
    event = ending_of(server)
    assert isinstance(event, AccessRefused)
    assert (event.status, event.cause) == (503, "connection refused")


def test_one_request_for_several_checks_of_one_token() -> None:
    """A client with many requests must not flood the authorization server."""
    server = server_of()
    checks = [begin(server), begin(server)]
    request = wanted(server)
    other = begin(server, "other")
    another = wanted(server)
    answer(server, request, active())
    events = [server.next_event(), server.next_event()]
    assert [event.check for event in events if isinstance(event, AccessGranted)] == checks
    answer(server, another, {"active": False})
    assert ending_of(server).check is other


def test_nothing_is_kept_if_nothing_else_is_said() -> None:
    """A token that was revoked is refused at its next request."""
    server = server_of()
    assert isinstance(outcome(server), AccessGranted)
    begin(server)
    answer(server, wanted(server), {"active": False})
    assert isinstance(ending_of(server), AccessRefused)


def test_an_answer_can_be_kept_for_some_time() -> None:
    """Fewer requests, for a revocation that takes effect later."""
    server = server_of(keep=5.0)
    assert isinstance(outcome(server), AccessGranted)
    begin(server, at=AT + 4)
    event = ending_of(server)
    assert isinstance(event, AccessGranted)
    begin(server, at=AT + 5)
    assert wanted(server).url == ENDPOINT


def test_an_answer_is_not_kept_beyond_the_expiry_of_its_token() -> None:
    """An expired token is one that is not active (AUTH-011)."""
    for expiry, is_asked in ((AT + 3, True), (None, False)):
        server = server_of(keep=10.0)
        begin(server)
        answer(server, wanted(server), active(exp=expiry))
        assert isinstance(ending_of(server), AccessGranted)
        begin(server, at=AT + 4)
        assert isinstance(server.next_event(), RequestWanted) is is_asked


def test_answers_that_are_kept_are_bounded() -> None:
    """Whoever gets many tokens must not fill the memory."""
    server = server_of(keep=60.0, max_tokens=2)
    for token in ("a", "b", "c"):
        begin(server, token)
        answer(server, wanted(server), active())
        assert isinstance(ending_of(server), AccessGranted)
    begin(server, "b")
    assert isinstance(ending_of(server), AccessGranted)
    begin(server, "a")
    assert wanted(server).url == ENDPOINT


def test_tokens_that_are_asked_about_are_bounded() -> None:
    """A flood of made-up tokens gets 503, and no memory."""
    server = server_of(max_requests=1)
    first = begin(server, "a")
    request = wanted(server)
    begin(server, "b")
    event = ending_of(server)
    assert isinstance(event, AccessRefused)
    assert (event.status, event.error, dict(event.headers)) == (503, None, {"retry-after": "5"})
    assert event.cause == f"1 tokens are being asked about at {ENDPOINT} (max_requests)"
    answer(server, request, active())
    assert ending_of(server).check is first
    begin(server, "b")
    wanted(server)


def test_a_hundred_tokens_are_asked_about_at_a_time() -> None:
    """The authorization server must not be flooded by whoever floods this one."""
    server = server_of()
    for number in range(100):
        begin(server, f"t{number}")
        wanted(server)
    begin(server, "t100")
    assert isinstance(ending_of(server), AccessRefused)
    assert begin(server, "t7").open, "it waits for the request that there is"
    assert server.next_event() is None


def test_a_client_that_is_gone_and_a_second_answer_change_nothing() -> None:
    """Each request has one answer, and each check one ending."""
    server = server_of()
    check = begin(server)
    request = wanted(server)
    assert server.forget(check)
    answer(server, request, active())
    answer(server, request, active())
    server.receive_failure(request, "late", at=AT)
    assert server.next_event() is None


def test_a_copy_goes_its_own_way() -> None:
    """The state is plain data."""
    server = server_of()
    begin(server)
    request = wanted(server)
    copied, same = copy.deepcopy((server, request))
    answer(copied, same, active())
    assert isinstance(ending_of(copied), AccessGranted)
    assert server.next_event() is None


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"endpoint": "http://as.example/x"}, "endpoint must be https"),
        ({"keep": -1}, "keep must not be negative"),
        ({"keep_inactive": float("nan")}, "keep_inactive must not be negative"),
        ({"max_requests": 0}, "max_requests must be greater"),
        ({"auth_method": "none"}, "auth_method must be"),
        ({"timeout": 0}, "timeout must be greater"),
        ({"max_tokens": 0}, "max_tokens must be greater"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], text: str) -> None:
    """A secret must not go over a line that others can read."""
    whole: dict[str, Any] = {
        "endpoint": ENDPOINT,
        "issuer": ISSUER,
        "client_id": "a",
        "client_secret": "b",
    }
    with pytest.raises(ValueError, match=text):
        IntrospectionVerifier(**{**whole, **settings})


def test_secrets_are_not_shown() -> None:
    """Settings and handles are logged (AUTH-026)."""
    verifier = IntrospectionVerifier(
        ENDPOINT, issuer=ISSUER, client_id="rs", client_secret="hidden"
    )
    assert "hidden" not in repr(verifier)
    verification = verifier.begin(TOKEN, at=AT)
    assert TOKEN not in repr(verification)
    assert not verification.done


# -------------------------------------------------------------------------- inactive tokens


def test_that_a_token_is_not_active_is_kept_for_a_short_time() -> None:
    """A client that repeats a revoked token must not cause a request each time (AUTH-011)."""
    server = server_of()
    begin(server)
    answer(server, wanted(server), {"active": False})
    assert isinstance(ending_of(server), AccessRefused)
    begin(server, at=AT + 4)
    event = ending_of(server)
    assert isinstance(event, AccessRefused)
    assert (event.status, event.error) == (401, "invalid_token")
    begin(server, at=AT + 5)
    answer(server, wanted(server), active(), AT + 5)
    assert isinstance(ending_of(server), AccessGranted)


def test_nothing_needs_to_be_kept() -> None:
    """A token may become active later, and some have to know at once."""
    server = server_of(keep_inactive=0)
    for _ in range(2):
        begin(server)
        answer(server, wanted(server), {"active": False})
        assert isinstance(ending_of(server), AccessRefused)


def test_made_up_tokens_displace_no_answer_about_an_active_one() -> None:
    """Else a flood of them would bring a request for each good token."""
    server = server_of(keep=60.0, keep_inactive=60.0, max_tokens=2)
    assert isinstance(outcome(server), AccessGranted)
    for token in ("a", "b", "c"):
        begin(server, token)
        answer(server, wanted(server), {"active": False})
        assert isinstance(ending_of(server), AccessRefused)
    begin(server)
    assert isinstance(ending_of(server), AccessGranted)
    begin(server, "c")
    assert isinstance(ending_of(server), AccessRefused)
    begin(server, "a")
    wanted(server)


def test_a_failure_is_not_kept() -> None:
    """It says nothing about the token."""
    server = server_of()
    begin(server)
    server.receive_failure(wanted(server), "connection refused", at=AT)
    assert isinstance(ending_of(server), AccessRefused)
    begin(server)
    wanted(server)


def test_what_a_handler_does_with_claims_changes_no_later_request() -> None:
    """A principal is the handler's own: another request must not get the scopes it has added."""
    server = server_of(keep=60.0)
    checks = [begin(server), begin(server)]
    answer(server, wanted(server), active(groups=["user"]))
    ends = [server.next_event() for _ in checks]
    for _ in range(2):
        begin(server)  # answered from what is kept
        ends.append(server.next_event())
    for ending in ends:
        assert isinstance(ending, AccessGranted)
        claims: Any = ending.token.claims
        assert (claims["scope"], claims["groups"]) == ("read", ["user"])
        claims["scope"] = "admin"
        claims["groups"].append("admin")
    begin(server)
    ending = server.next_event()
    assert isinstance(ending, AccessGranted)
    assert ending.token.scopes == {"read"}


# ------------------------------------------------------------------------------------ time


def test_a_request_that_is_never_answered_has_failed_after_its_time() -> None:
    """Else its token, and then all of them, would wait for ever (AUTH-010)."""
    server = server_of(timeout=10.0)
    assert server.next_timeout() is None
    checks = [begin(server), begin(server, at=AT + 1)]
    lost = wanted(server)
    other = begin(server, "other", at=AT + 4)
    another = wanted(server)
    assert server.next_timeout() == AT + 10
    server.handle_timeout(AT + 9)
    assert all(check.open for check in checks)
    server.handle_timeout(AT + 10)
    events = [server.next_event() for _ in checks]
    for event, check in zip(events, checks, strict=True):
        assert isinstance(event, AccessRefused)
        assert event.check is check
        assert (event.status, event.cause) == (503, f"{ENDPOINT}: no response within 10 seconds")
    assert server.next_timeout() == AT + 14

    begin(server, at=AT + 11)
    request = wanted(server)
    answer(server, lost, {"active": False}, AT + 11)
    assert server.next_event() is None, "the answer came too late"
    answer(server, request, active(), AT + 11)
    assert isinstance(ending_of(server), AccessGranted)
    answer(server, another, active(), AT + 11)
    assert ending_of(server).check is other
    assert server.next_timeout() is None


def test_the_next_request_lets_the_time_go_on() -> None:
    """A driver without a timer must not wait for ever, as long as requests come."""
    server = server_of(max_requests=1, timeout=10.0)
    first = begin(server, "a")
    wanted(server)
    server.check("GET", "/mcp", {}, at=AT + 10)  # of someone without a token
    event = server.next_event()
    assert isinstance(event, AccessRefused)
    assert (event.check, event.status) == (first, 503)
    begin(server, "b", AT + 10)
