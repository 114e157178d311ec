"""Attempts: times, limits, cancellation, and what callers get wrong."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from sansmcp import LocalProtocolError
from sansmcp.auth import (
    AuthorizationClient,
    AuthorizationCode,
    AuthorizationConfig,
    AuthorizationFailed,
    AuthorizationFailure,
    AuthorizationState,
    AuthorizationStep,
    Authorized,
    ClientMetadata,
    HTTPRequest,
    RegisteredClient,
    RequestWanted,
    UserAgentWanted,
    WorkloadIdentity,
)
from tests.support.auth.script import (
    AT,
    ISSUER,
    MCP,
    PATH_METADATA,
    REDIRECT,
    REGISTER,
    SERVER_METADATA,
    TOKEN,
    Answer,
    Entropy,
    answer_requests,
    challenge,
    drive,
    events_of,
    make_client,
    run,
    usual_world,
)

WRONG: Any = object()


def wanted(client: AuthorizationClient) -> HTTPRequest:
    """The only request that is wanted now."""
    (request,) = [one.request for one in events_of(client) if isinstance(one, RequestWanted)]
    return request


def test_requests_are_bounded() -> None:
    """AUTH-345: in size and in time; a driver needs to know."""
    config = AuthorizationConfig(max_document_bytes=500, request_timeout=7)
    client = make_client(config=config)
    client.authorize(challenge(), now=10.0, at=AT)
    request = wanted(client)

    assert (request.max_body_bytes, request.timeout) == (500, 7)
    assert client.next_timeout() == 17.0


@pytest.mark.parametrize("url", [PATH_METADATA, SERVER_METADATA, REGISTER, TOKEN])
def test_documents_that_are_too_long_are_no_documents(url: str) -> None:
    """AUTH-345: ten megabytes are not parsed, and the failure names the step."""
    world = usual_world().put(url, Answer(b'{"a": "' + b"x" * 10_000_000 + b'"}'))
    done = run(make_client(), world)

    assert isinstance(done.ending, AuthorizationFailed)
    assert done.ending.reason is AuthorizationFailure.UNREACHABLE
    expected = {
        PATH_METADATA: AuthorizationStep.RESOURCE_METADATA,
        SERVER_METADATA: AuthorizationStep.SERVER_METADATA,
        REGISTER: AuthorizationStep.REGISTRATION,
        TOKEN: AuthorizationStep.TOKEN,
    }
    assert done.ending.step is expected[url]
    assert any("more than 65536 bytes" in step.conclusion for step in done.steps)


def test_request_without_an_answer_times_out() -> None:
    """A server that says nothing holds the attempt for a bounded time."""
    client = make_client()
    attempt = client.authorize(challenge(), now=0.0, at=AT)
    now = 0.0
    while attempt.open:
        deadline = client.next_timeout()
        assert deadline is not None
        client.handle_timeout(deadline - 0.5)
        assert attempt.open
        client.handle_timeout(deadline)
        now = deadline
    (ending,) = [one for one in events_of(client) if isinstance(one, AuthorizationFailed)]

    assert ending.reason is AuthorizationFailure.UNREACHABLE
    assert now == 60.0
    assert client.next_timeout() is None


def test_user_who_does_not_come_back() -> None:
    """The time of the user is another one."""
    client = make_client()
    world = usual_world()
    attempt = client.authorize(challenge(), now=0.0, at=AT)
    opened = ""
    while events := events_of(client):
        for event in events:
            if isinstance(event, UserAgentWanted):
                opened = event.url
            else:
                answer_requests(client, world, [event], 0)
    assert client.next_timeout() == 600.0
    client.handle_timeout(599.0)
    assert attempt.open
    client.handle_timeout(600.0)
    (ending,) = events_of(client)

    assert isinstance(ending, AuthorizationFailed)
    assert ending.reason is AuthorizationFailure.TIMED_OUT
    assert ending.step is AuthorizationStep.AUTHORIZATION
    assert client.receive_callback(world.callback_url(opened)) is False


@pytest.mark.parametrize("ask", ["client", "assertion"])
def test_application_that_does_not_answer(ask: str) -> None:
    """Its questions have a deadline, too."""
    if ask == "client":
        config = AuthorizationConfig(ask_for_client=True, user_timeout=5)
        client, world = make_client(config=config), usual_world(registration_endpoint=None)
    else:
        config = AuthorizationConfig(user_timeout=5)
        client, world = make_client(config=config, grant=WorkloadIdentity()), usual_world()
    attempt = client.authorize(challenge(), now=0.0, at=AT)
    while events := events_of(client):
        answer_requests(client, world, events, 0)
    client.handle_timeout(5.0)
    (ending,) = events_of(client)

    assert isinstance(ending, AuthorizationFailed)
    assert ending.reason is AuthorizationFailure.TIMED_OUT
    assert not attempt.open
    assert client.provide_client(RegisteredClient(client_id="x")) is False
    assert client.provide_assertion("x") is False


def test_spare_calls_of_the_clock_do_nothing() -> None:
    """A driver may call it at any time."""
    client = make_client()
    client.handle_timeout(1.0)
    client.authorize(challenge(), now=2.0, at=AT)
    client.handle_timeout(1.0)
    client.handle_timeout(2.0)

    assert client.attempt is not None
    assert client.next_timeout() == 32.0


def test_cancellation_ends_the_attempt() -> None:
    """What was wanted is not wanted any more, and late responses change nothing."""
    client = make_client()
    attempt = client.authorize(challenge(), now=0.0, at=AT)
    request = wanted(client)
    assert client.cancel() is True
    (ending,) = events_of(client)

    assert isinstance(ending, AuthorizationFailed)
    assert ending.reason is AuthorizationFailure.CANCELLED
    assert ending.attempt is attempt
    assert client.cancel() is False
    assert client.receive_response(request, 200, [], b"{}") is False
    assert client.receive_failure(request, "late") is False
    assert events_of(client) == []
    assert client.next_timeout() is None


def test_requests_that_were_not_made_yet_are_withdrawn() -> None:
    """A cancelled attempt that still opened a browser would be a surprise."""
    client = make_client()
    client.authorize(challenge(), now=0.0, at=AT)
    client.cancel()

    assert [type(event) for event in events_of(client)] == [AuthorizationFailed]


def test_late_response_of_an_earlier_attempt_is_ignored() -> None:
    """Its request is not the one that is waited for."""
    client, world = make_client(), usual_world()
    client.authorize(challenge(), now=0.0, at=AT)
    late = wanted(client)
    client.cancel()
    client.authorize(challenge(), now=1.0, at=AT)

    assert client.receive_response(late, 200, [], b"{}") is False
    assert isinstance(drive(client, world)[-1], Authorized)


def test_response_counts_once() -> None:
    """A driver that reports it twice has not made two requests."""
    client = make_client()
    client.authorize(challenge(), now=0.0, at=AT)
    request = wanted(client)

    assert client.receive_response(request, 404, [], b"") is True
    assert client.receive_response(request, 404, [], b"") is False


def test_attempt_says_where_it_is() -> None:
    """A user interface shows it."""
    client, world = make_client(), usual_world()
    attempt = client.authorize(challenge(), now=0.0, at=AT)
    states = [attempt.state]
    while events := events_of(client):
        answer_requests(client, world, events, 0)
        states.append(attempt.state)

    assert states == [
        AuthorizationState.RESOURCE_METADATA,
        AuthorizationState.SERVER_METADATA,
        AuthorizationState.REGISTRATION,
        AuthorizationState.USER_AGENT,
        AuthorizationState.TOKEN,
        AuthorizationState.AUTHORIZED,
        AuthorizationState.AUTHORIZED,
    ]
    assert attempt.issuer == ISSUER
    assert repr(attempt) == "<Attempt AUTHORIZED>"
    assert client.attempt is None


def test_attempt_has_a_slot_for_the_caller() -> None:
    """As every handle."""
    attempt = make_client().authorize(challenge(), now=0.0, at=AT)
    attempt.data = "mine"

    assert attempt.data == "mine"
    assert attempt.issuer is None


@pytest.mark.parametrize("revision", ["2024-11-05", None])
def test_revisions(revision: str | None) -> None:
    """The oldest one has no authorization, and is treated as the next; without one, the newest."""
    client, world = make_client(), usual_world()
    run(client, world, revision=revision)

    assert (PATH_METADATA in world.urls()) is (revision is None)


def test_unknown_revision_raises() -> None:
    """AUTH-002: nothing was begun."""
    client = make_client()
    with pytest.raises(LocalProtocolError, match="no revision '2030-01-01'"):
        client.authorize(challenge(), revision="2030-01-01", now=0, at=AT)

    assert client.attempt is None


@pytest.mark.parametrize("at", ["x", None, True])
def test_wall_clock_must_be_a_number(at: Any) -> None:
    """AUTH-283: nothing was begun."""
    client = make_client()
    with pytest.raises(LocalProtocolError, match="Unix time"):
        client.authorize(challenge(), now=0, at=at)

    assert client.attempt is None


@pytest.mark.parametrize("data", [b"short", "text", None, b""])
def test_entropy_must_have_its_length(data: Any) -> None:
    """AUTH-235, AUTH-239: a state that can be guessed is none."""

    def entropy(_size: int) -> Any:
        return data

    client, world = make_client(entropy=entropy), usual_world()
    failed = run(client, world).failed(
        AuthorizationStep.REGISTRATION, AuthorizationFailure.UNSUPPORTED, None
    )
    assert "the entropy" in failed.text
    assert client.attempt is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"grant": WRONG}, "grant must be one of"),
        ({"entropy": 5}, "entropy must be a callable"),
        ({"client": WRONG}, "client must be a ClientMetadata"),
        ({"config": WRONG}, "config must be a AuthorizationConfig"),
        ({"registered": WRONG}, "registered must be a mapping"),
        ({"registered": {1: RegisteredClient(client_id="x")}}, "registered must map the issuer"),
        ({"registered": {ISSUER: "x"}}, "registered must map the issuer"),
    ],
)
def test_wrong_settings_raise(settings: dict[str, Any], words: str) -> None:
    """The error names the setting."""
    with pytest.raises(ValueError, match=words):
        make_client(**settings)


@pytest.mark.parametrize(
    "url", ["", "mcp.example.com", "ftp://x/", "https://u@x/", "https://x/#a", "https://x/ ", 5]
)
def test_url_of_the_server_must_be_one(url: Any) -> None:
    """AUTH-218, AUTH-252."""
    with pytest.raises(ValueError, match="server_url "):
        make_client(url)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (AuthorizationConfig, {"max_document_bytes": 0}),
        (AuthorizationConfig, {"max_redirects": -1}),
        (AuthorizationConfig, {"max_authorizations": 0}),
        (AuthorizationConfig, {"user_timeout": 0}),
        (AuthorizationConfig, {"legacy_fallback": "yes"}),
        (AuthorizationConfig, {"allow_addresses": True}),
        (AuthorizationConfig, {"allow_addresses": ["private"]}),
        (ClientMetadata, {"application_type": "desktop"}),
        (ClientMetadata, {"name": None}),
        (ClientMetadata, {"redirect_uris": "x"}),
        (RegisteredClient, {"client_id": None}),
        (RegisteredClient, {"client_id": "x", "auth_method": "tls"}),
        (AuthorizationCode, {"redirect_uri": None}),
        (AuthorizationCode, {"redirect_uri": REDIRECT, "scopes": "a b"}),
        (WorkloadIdentity, {"assertion": 5}),
    ],
)
def test_wrong_values_raise(kind: Any, values: dict[str, Any]) -> None:
    """As all settings of the library."""
    with pytest.raises(ValueError, match=next(reversed(values)).replace("redirect_uris", "values")):
        kind(**values)


def test_wrong_arguments_raise() -> None:
    """At once, and nothing has changed."""
    client = make_client()
    with pytest.raises(ValueError, match="client must be a RegisteredClient or None"):
        client.provide_client(WRONG)
    with pytest.raises(ValueError, match="assertion must be a string or None"):
        client.provide_assertion(WRONG)
    with pytest.raises(ValueError, match="text must be a string"):
        client.receive_failure(WRONG, WRONG)
    with pytest.raises(ValueError, match="now must be a number"):
        client.authorize(now=WRONG, at=AT)


def test_same_inputs_give_the_same_events() -> None:
    """Nothing but the caller's entropy and clock decides."""
    first = run(make_client(entropy=Entropy()), usual_world())
    second = run(make_client(entropy=Entropy()), usual_world())

    assert [repr(event) for event in first.events] == [repr(event) for event in second.events]
    assert first.stored == second.stored


def test_client_can_be_copied_at_every_step() -> None:
    """The copy goes on by itself, to the same end."""
    client, world = make_client(), usual_world()
    client.authorize(challenge(), now=0.0, at=AT)
    for _ in range(20):
        other = copy.deepcopy(client)
        drive(other, usual_world())
        assert other.authorized
        event = client.next_event()
        if event is None:
            break
        answer_requests(client, world, [event], 0)
    assert client.authorized


def test_headers_do_not_change_the_clock_of_an_attempt() -> None:
    """AUTH-283: other requests may be sent while the user is away, and `now` is not told then."""
    client, world = make_client(), usual_world()
    run(client, world).authorized()
    client.authorize(challenge(), now=0.0, at=AT)
    client.headers("POST", MCP, at=AT + 500)
    drive(client, world, now=500.0)

    assert client.expires_at == AT + 500 + 3600


def test_client_has_a_short_repr() -> None:
    """Without anything secret."""
    client = make_client()

    assert repr(client) == f"<AuthorizationClient {MCP} attempt=None>"
    assert client.issuer is None
    assert client.scopes == ()
    assert client.expires_at is None
    assert client.needs_refresh(AT) is False
