"""The checks of requests: what is asked for, and one ending for each."""

import copy
from typing import Any

import pytest

from sansmcp import LocalProtocolError
from sansmcp.auth import (
    AccessGranted,
    AccessRefused,
    IntrospectionVerifier,
    RequestWanted,
    ResourceServer,
)
from tests.auth.server.tools import (
    AT,
    ISSUER,
    TOKEN,
    begun,
    challenge_of,
    claims_of,
    ending_of,
    resource_of,
)


def server_of(**settings: Any) -> ResourceServer:
    return ResourceServer(resource_of(), **settings)


def test_a_check_ends_once() -> None:
    """A second answer must not admit a request that was refused (AUTH-010)."""
    server = server_of()
    check = begun(server)
    assert (server.asks, server.open_checks, check.open) == (True, 1, True)
    assert server.resource.authorization_servers == (ISSUER,)
    assert server.reject(check, "the token was revoked")
    event = ending_of(server)
    assert isinstance(event, AccessRefused)
    assert (event.status, event.error) == (401, "invalid_token")
    assert challenge_of(event)["error_description"] == "the token was revoked"
    assert server.open_checks == 0

    assert not server.verified(check, claims_of(), at=AT)
    assert not server.reject(check)
    assert not server.fail(check, "x")
    assert not server.forget(check)
    assert server.next_event() is None


def test_a_token_that_cannot_be_verified_now_is_not_called_invalid() -> None:
    """The client would throw away a good token."""
    server = server_of()
    assert server.fail(begun(server), "the database is away")
    event = ending_of(server)
    assert isinstance(event, AccessRefused)
    assert (event.status, event.error, event.cause) == (503, None, "the database is away")
    assert dict(event.headers) == {"retry-after": "5"}
    assert "database" not in event.text


def test_a_client_that_is_gone_needs_no_answer() -> None:
    """Its check must not stay for ever."""
    server = server_of()
    check = begun(server)
    assert server.forget(check)
    assert (check.open, server.open_checks, server.next_event()) == (False, 0, None)
    assert not server.verified(check, claims_of(), at=AT)
    assert server.next_event() is None


def test_data_is_the_slot_of_the_caller() -> None:
    """An adapter finds its exchange there."""
    server = server_of()
    check = server.check("POST", "/mcp", {}, at=AT, data="exchange")
    assert check.data == "exchange"
    assert ending_of(server).check is check


def test_checks_are_bounded() -> None:
    """Whoever verifies slowly must not fill the memory."""
    server = server_of(max_checks=2)
    first, _ = begun(server), begun(server)
    server.check("POST", "/mcp", {"authorization": f"Bearer {TOKEN}"}, at=AT)
    event = ending_of(server)
    assert isinstance(event, AccessRefused)
    assert event.status == 503
    assert server.verified(first, claims_of(), at=AT)
    assert isinstance(ending_of(server), AccessGranted)
    begun(server)


def test_forgotten_checks_count_until_their_tokens_are_verified() -> None:
    """Whoever sends a token and hangs up, again and again, must not fill the memory either."""
    verifier = IntrospectionVerifier(
        "https://as.example/introspect", issuer=ISSUER, client_id="a", client_secret="b"
    )
    server = ResourceServer(resource_of(), verifier, max_checks=3)
    headers = {"authorization": f"Bearer {TOKEN}"}
    for _ in range(2):
        assert server.forget(server.check("POST", "/mcp", headers, at=AT))
    rejected = server.check("POST", "/mcp", headers, at=AT)
    assert server.reject(rejected)
    request = server.next_event()
    assert isinstance(request, RequestWanted)
    assert ending_of(server).check is rejected
    assert server.open_checks == 0

    server.check("POST", "/mcp", headers, at=AT)
    event = ending_of(server)
    assert isinstance(event, AccessRefused)
    assert event.status == 503
    server.receive_failure(request.request, "away", at=AT)
    assert server.next_event() is None
    for _ in range(3):
        assert server.check("POST", "/mcp", headers, at=AT).open


def test_a_time_that_is_none_admits_nobody() -> None:
    """No token has expired by a time that compares with nothing (AUTH-011)."""
    server = server_of()
    check = begun(server)
    request: Any = object()
    for at in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="at must be a finite number"):
            server.verified(check, claims_of(), at=at)
        with pytest.raises(ValueError, match="at must be a finite number"):
            server.check("POST", "/mcp", {}, at=at)
        with pytest.raises(ValueError, match="at must be a finite number"):
            server.handle_timeout(at)
        with pytest.raises(ValueError, match="at must be a finite number"):
            server.receive_response(request, 200, (), b"", at=at)
        with pytest.raises(ValueError, match="at must be a finite number"):
            server.receive_failure(request, "x", at=at)
    assert check.open
    assert server.next_event() is None


def test_without_a_verifier_nothing_waits_for_a_time() -> None:
    """The application bounds how long it verifies."""
    server = server_of()
    check = begun(server)
    server.handle_timeout(AT + 1e6)
    assert server.next_timeout() is None
    assert check.open


def test_a_check_of_another_server_is_refused() -> None:
    """A mix-up of two resources would admit a token of the other one (AUTH-050)."""
    one, other = server_of(), server_of()
    check = begun(one)
    with pytest.raises(LocalProtocolError, match="belongs to another server"):
        other.verified(check, claims_of(), at=AT)
    assert one.verified(check, claims_of(), at=AT)


def test_mistakes_of_the_caller_change_nothing() -> None:
    """A call that raises must leave the check as it was."""
    server = server_of()
    check = begun(server)
    untyped: Any = server
    with pytest.raises(ValueError, match="claims must be a mapping"):
        untyped.verified(check, [], at=AT)
    with pytest.raises(ValueError, match="at must be a number"):
        untyped.verified(check, {}, at="now")
    with pytest.raises(ValueError, match="at must be a number"):
        untyped.check("POST", "/mcp", {}, at=None)
    assert check.open
    assert server.open_checks == 1
    assert server.next_event() is None


def test_settings_are_checked() -> None:
    """A server without a description would let everyone in, or no one."""
    untyped: Any = ResourceServer
    with pytest.raises(ValueError, match="resource must be a ProtectedResource"):
        untyped("https://api.example")
    with pytest.raises(ValueError, match="max_checks must be greater than zero"):
        server_of(max_checks=0)


def test_a_copy_goes_its_own_way() -> None:
    """The state is plain data."""
    server = server_of()
    check = begun(server)
    copied, handle = copy.deepcopy((server, check))
    assert copied.verified(handle, claims_of(), at=AT)
    assert isinstance(ending_of(copied), AccessGranted)
    assert check.open
    assert server.next_event() is None


def test_what_comes_without_a_verifier_is_for_none() -> None:
    """There is no request of this server that it could answer."""
    server = server_of()
    request: Any = object()
    server.receive_response(request, 200, (), b"", at=AT)
    server.receive_failure(request, "x", at=AT)
    assert server.next_event() is None


def test_an_expiry_may_be_left_out_where_the_issuer_has_just_answered() -> None:
    """An answer to "is it active" needs no time (RFC 7662)."""
    server = server_of()
    assert server.verified(begun(server), claims_of(exp=None), needs_expiry=False, at=AT)
    event = ending_of(server)
    assert isinstance(event, AccessGranted)
    assert event.token.expires_at is None


class RaisingVerifier:
    """The part of a verifier that is used before it raises."""

    def begin(self, token: str, *, at: float) -> Any:
        raise ZeroDivisionError

    def handle_timeout(self, at: float) -> None:
        pass

    def next_request(self) -> None:
        return None

    def next_ended(self) -> None:
        return None


def test_a_verifier_that_raises_leaves_no_check() -> None:
    """One of an application may have a mistake; such checks must not add up to `max_checks`."""
    server = server_of(verifier=RaisingVerifier(), max_checks=1)
    request = {"authorization": f"Bearer {TOKEN}"}
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            server.check("POST", "/mcp", request, at=AT)
        assert (server.open_checks, server.next_event()) == (0, None)
