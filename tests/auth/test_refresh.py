"""Tokens that expire, are refreshed, and are shared by all requests that wait."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp.auth import (
    AuthorizationConfig,
    AuthorizationFailed,
    AuthorizationFailure,
    AuthorizationState,
    AuthorizationStep,
    Authorized,
    ClientMetadata,
    CredentialsToStore,
    RegisteredClient,
    RequestWanted,
    StepOutcome,
)
from tests.support.auth.script import (
    AT,
    ISSUER,
    MCP,
    PATH_METADATA,
    REGISTER,
    SERVER_METADATA,
    TOKEN,
    Answer,
    Run,
    World,
    answer_requests,
    challenge,
    drive,
    events_of,
    make_client,
    run,
    take_head,
    token_document,
    usual_world,
)

STEP = AuthorizationStep.REFRESH
EXPIRED = challenge(error="invalid_token")
FIRST = token_document(refresh_token="refresh-1", scope="a b", expires_in=60)
SECOND = token_document(access_token="second-token", expires_in=60)


def refreshing_world(*answers: Any) -> World:
    """The first token has a refresh token; these are the responses after it."""
    return usual_world().put(TOKEN, FIRST, *answers)


def token_of(client: Any) -> str:
    """The token that goes with a request."""
    (header,) = client.headers("POST", MCP, at=AT)
    return str(header[1])


def test_expired_token_is_refreshed_before_the_user_is_asked() -> None:
    """AUTH-287: the user sees nothing."""
    world, client = refreshing_world(SECOND), make_client()
    run(client, world).authorized()
    take_head(client)
    done = run(client, world, EXPIRED)

    done.authorized()
    assert len(world.opened) == 1
    assert token_of(client) == "Bearer second-token"
    assert done.concluded(STEP) == [StepOutcome.DONE]
    assert done.concluded(AuthorizationStep.TOKEN) == []


def test_refresh_request() -> None:
    """AUTH-216, AUTH-288, AUTH-289: with resource, without scope, by the client it was for."""
    world, client = refreshing_world(SECOND), make_client()
    run(client, world).authorized()
    run(client, world, EXPIRED).authorized()

    assert world.forms()[1] == {
        "grant_type": "refresh_token",
        "refresh_token": "refresh-1",
        "resource": MCP,
        "client_id": "dynamic-client",
    }


def test_metadata_is_read_again_after_a_401() -> None:
    """AUTH-224: the authorization server may have changed."""
    world, client = refreshing_world(SECOND), make_client()
    run(client, world).authorized()
    world.requests.clear()
    run(client, world, EXPIRED).authorized()

    assert world.urls() == [PATH_METADATA, SERVER_METADATA, TOKEN]


def test_refresh_in_advance_needs_no_metadata() -> None:
    """What is known is used, if the server has not refused anything."""
    world, client = refreshing_world(SECOND), make_client()
    run(client, world).authorized()
    world.requests.clear()
    done = run(client, world, in_advance=True, now=50.0, at=AT + 50)

    done.authorized()
    assert world.urls() == [TOKEN]
    assert done.attempt.issuer == ISSUER


@pytest.mark.parametrize(("age", "requests"), [(0, 0), (29, 0), (30, 1), (100, 1)])
def test_token_is_refreshed_shortly_before_its_end(age: float, requests: int) -> None:
    """A request that is under way when the token ends would be refused."""
    world, client = refreshing_world(SECOND), make_client()
    run(client, world).authorized()
    world.requests.clear()

    assert client.needs_refresh(AT + age) is bool(requests)
    run(client, world, in_advance=True, now=age, at=AT + age).authorized()
    assert len(world.requests) == requests


def test_rotated_refresh_token_replaces_the_old_one() -> None:
    """AUTH-290: the old one may be refused, or even end all tokens."""
    second = token_document(access_token="second", refresh_token="refresh-2")
    world, client = refreshing_world(second, SECOND, SECOND), make_client()
    runs: list[Run] = []
    for _ in range(3):
        runs.append(run(client, world, EXPIRED))
        take_head(client)

    assert [form["refresh_token"] for form in world.forms()[1:]] == ["refresh-1", "refresh-2"]
    assert runs[-1].stored[ISSUER]["tokens"]["refresh_token"] == "refresh-2"


@pytest.mark.parametrize("scope", [None, "a"])
def test_scopes_after_a_refresh(scope: str | None) -> None:
    """AUTH-282: those of before, unless the response says otherwise."""
    world, client = refreshing_world(token_document(scope=scope)), make_client()
    run(client, world).authorized()
    run(client, world, EXPIRED).authorized()

    assert client.scopes == (("a", "b") if scope is None else ("a",))


def test_refresh_token_is_not_expected() -> None:
    """AUTH-088: without one, the user is asked again."""
    world = usual_world().put(TOKEN, token_document(expires_in=60))
    client = make_client()
    run(client, world).authorized()
    run(client, world, EXPIRED).authorized()

    assert len(world.opened) == 2
    assert [form["grant_type"] for form in world.forms()] == ["authorization_code"] * 2


@pytest.mark.parametrize("refresh_token", ["", "a b", "a\nb", 17])
def test_refresh_tokens_that_are_none_are_dropped(refresh_token: object) -> None:
    """They could not be sent."""
    world = usual_world().put(TOKEN, token_document(refresh_token=refresh_token))
    done = run(make_client(), world)

    assert done.stored[ISSUER]["tokens"]["refresh_token"] is None


@pytest.mark.parametrize("error", ["invalid_grant", "invalid_client"])
def test_refused_refresh_token_is_dropped_and_the_user_asked(error: str) -> None:
    """AUTH-291: a new authorization follows, in the same attempt."""
    world = refreshing_world(Answer({"error": error}, 400), SECOND)
    client = make_client()
    run(client, world).authorized()
    done = run(client, world, EXPIRED)

    done.authorized()
    assert done.concluded(STEP) == [StepOutcome.SKIPPED]
    assert len(world.opened) == 2
    assert done.stored[ISSUER]["tokens"]["refresh_token"] is None
    assert [form["grant_type"] for form in world.forms()][1:] == [
        "refresh_token",
        "authorization_code",
    ]
    assert len(world.asked(REGISTER)) == (2 if error == "invalid_client" else 1)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"<html>Log in to this network</html>", 200),
        Answer(b"", 302, (("Location", "http://portal.example/"),)),
        Answer({"error": "invalid_grant"}, 302),
        Answer(b"<html>blocked</html>", 403),
        Answer({"error": "blocked"}, 403),
        Answer(b"", 404),
        Answer({"error": ""}, 400),
        Answer({"error": "invalid_grant"}, 408),
    ],
)
def test_answers_of_others_keep_the_refresh_token(answer: Answer) -> None:
    """AUTH-291: a captive portal or a firewall has refused nothing."""
    world, client = refreshing_world(answer, SECOND), make_client()
    run(client, world).authorized()
    failed = run(client, world, EXPIRED)
    assert isinstance(failed.ending, AuthorizationFailed)
    assert failed.stored == {}
    run(client, world, EXPIRED).authorized()

    assert [form.get("refresh_token") for form in world.forms()[1:]] == ["refresh-1"] * 2
    assert len(world.opened) == 1


@pytest.mark.parametrize("in_advance", [False, True])
def test_server_that_takes_no_refresh_leads_to_the_user(in_advance: bool) -> None:
    """The refresh token is replaced by the next login, and not before."""
    world = refreshing_world(Answer({"error": "invalid_scope"}, 400), SECOND)
    client = make_client()
    run(client, world).authorized()
    world.callback["error"] = "access_denied"
    failed = run(client, world, EXPIRED, in_advance=in_advance, now=100, at=AT + 100)

    assert isinstance(failed.ending, AuthorizationFailed)
    assert failed.stored == {}
    assert [form["grant_type"] for form in world.forms()][1:] == ["refresh_token"]
    assert len(world.opened) == 2


def stored_elsewhere(world: World, stored: dict[str, Any], at: float) -> dict[str, Any]:
    """The records after another process has refreshed the token."""
    other = make_client()
    return run(other, world, in_advance=True, stored=stored, now=at - AT, at=at).stored


def test_token_that_another_process_has_stored_is_used() -> None:
    """AUTH-290: the refresh token at hand is used up; to send it again would revoke both."""
    world = refreshing_world(token_document(access_token="other", refresh_token="refresh-2"))
    client = make_client()
    stored = run(client, world).stored
    stored = stored_elsewhere(world, stored, AT + 100)
    world.requests.clear()
    run(client, world, EXPIRED, stored=stored, now=101, at=AT + 101).authorized()

    assert token_of(client) == "Bearer other"
    assert world.requests == []
    run(client, world, EXPIRED, stored=stored, now=102, at=AT + 102).authorized()
    assert world.forms()[-1]["refresh_token"] == "refresh-2"


def test_older_record_does_not_replace_a_newer_one() -> None:
    """The application may not have stored it yet."""
    world = refreshing_world(SECOND)
    client = make_client()
    stored = run(client, world).stored
    run(client, world, EXPIRED, now=1, at=AT + 1).authorized()
    client.restore(stored)

    assert token_of(client) == "Bearer second-token"


def test_refusal_of_a_refresh_token_that_was_replaced_meanwhile() -> None:
    """AUTH-290, AUTH-291: the newer one was not refused."""
    world = refreshing_world(token_document(access_token="other", refresh_token="refresh-2"))
    client = make_client()
    stored = run(client, world).stored
    client.authorize(None, now=100, at=AT + 100)
    (wanted,) = [one for one in events_of(client) if isinstance(one, RequestWanted)]
    client.restore(stored_elsewhere(world, stored, AT + 100))
    client.receive_response(wanted.request, 400, [], b'{"error": "invalid_grant"}')

    assert any(isinstance(one, Authorized) for one in events_of(client))
    assert token_of(client) == "Bearer other"


def test_failures_before_a_token_do_not_count() -> None:
    """AUTH-304: the limit is for tokens that the MCP server does not accept."""
    world = usual_world().put(TOKEN, *[Answer(b"", 503)] * 5, token_document())
    client = make_client()
    for _ in range(5):
        assert isinstance(run(client, world).ending, AuthorizationFailed)
    run(client, world).authorized()


def test_refused_refresh_token_in_advance() -> None:
    """AUTH-291: the metadata is read again before the user is asked."""
    world = refreshing_world(Answer({"error": "invalid_grant"}, 400), SECOND)
    client = make_client()
    run(client, world).authorized()
    world.requests.clear()
    run(client, world, in_advance=True, at=AT + 100, now=100.0).authorized()

    assert world.urls() == [TOKEN, PATH_METADATA, SERVER_METADATA, TOKEN]


@pytest.mark.parametrize("answer", [Answer(b"", 503), None])
def test_refresh_that_gets_no_answer_keeps_the_refresh_token(answer: Answer | None) -> None:
    """AUTH-087: nobody has refused it, and the user need not be asked."""
    world, client = refreshing_world(answer, SECOND), make_client()
    run(client, world).authorized()
    run(client, world, EXPIRED).failed(STEP, AuthorizationFailure.UNREACHABLE, None)
    run(client, world, EXPIRED).authorized()

    assert [form.get("refresh_token") for form in world.forms()[1:]] == ["refresh-1"] * 2
    assert len(world.opened) == 1


def test_bad_response_to_a_refresh_ends_it() -> None:
    """AUTH-284: it is no token, and neither a refusal."""
    world, client = refreshing_world({"token_type": "bearer"}), make_client()
    run(client, world).authorized()
    run(client, world, EXPIRED).failed(STEP, AuthorizationFailure.INVALID_RESPONSE, "AUTH-284")


def test_refreshed_token_that_is_refused_at_once_leads_to_the_user() -> None:
    """AUTH-287, AUTH-304: to refresh again would go on for ever."""
    world, client = refreshing_world(SECOND, SECOND), make_client()
    run(client, world).authorized()
    take_head(client)
    run(client, world, EXPIRED).authorized()
    run(client, world, EXPIRED).authorized()

    assert len(world.opened) == 2


def test_refreshed_token_that_was_accepted_is_refreshed_again() -> None:
    """The user is not asked each hour."""
    world, client = refreshing_world(SECOND), make_client()
    run(client, world).authorized()
    for _ in range(10):
        take_head(client)
        run(client, world, EXPIRED).authorized()

    assert len(world.opened) == 1


def test_challenge_for_more_scopes_is_no_case_for_a_refresh() -> None:
    """AUTH-289: a refresh does not get scopes beyond the original grant."""
    world = refreshing_world(token_document(scope="a b c"))
    client = make_client()
    run(client, world).authorized()
    run(client, world, challenge(scope="c")).authorized()

    assert len(world.opened) == 2


def test_tokens_in_a_row_that_are_refused_end_it() -> None:
    """AUTH-304: three by default, and no request is made for the next one."""
    world, client = usual_world(), make_client()
    for _ in range(3):
        run(client, world).authorized()
    opened = len(world.opened)
    ((_, authorization),) = client.headers("POST", MCP, at=0.0)
    said = f"the audience of {authorization.removeprefix('Bearer ')} is another\x1b"
    failed = run(client, world, challenge(error="invalid_token", error_description=said)).failed(
        AuthorizationStep.TOKEN, AuthorizationFailure.TOO_MANY_ATTEMPTS, "AUTH-304"
    )
    assert failed.text.endswith("; it says: the audience of [hidden] is another?")
    assert len(world.opened) == opened
    take_head(client)
    run(client, world).authorized()


def test_tokens_from_refreshes_count_as_well() -> None:
    """AUTH-304: no token is requested over the limit, by a refresh neither."""
    world = refreshing_world(token_document(scope="a"))
    client = make_client(config=AuthorizationConfig(max_authorizations=1))
    run(client, world).authorized()
    asked = len(world.forms())
    run(client, world).failed(
        AuthorizationStep.TOKEN, AuthorizationFailure.TOO_MANY_ATTEMPTS, "AUTH-304"
    )
    assert len(world.forms()) == asked


@pytest.mark.parametrize("status", [100, 199, 300, 302, 400, 401, 403, 404, 429, 500, 502, 503])
def test_other_statuses_are_no_acceptance(status: int) -> None:
    """AUTH-304: a proxy or a limit before the server has looked at no token.

    Or the limit would never be reached.
    """
    world, client = usual_world(), make_client(config=AuthorizationConfig(max_authorizations=1))
    run(client, world).authorized()
    take_head(client, status)

    assert isinstance(run(client, world).ending, AuthorizationFailed)


@pytest.mark.parametrize("status", [200, 202, 204])
def test_success_with_the_token_is_its_acceptance(status: int) -> None:
    """AUTH-304: as the answer to a notification."""
    world, client = usual_world(), make_client(config=AuthorizationConfig(max_authorizations=1))
    run(client, world).authorized()
    take_head(client, status)
    run(client, world).authorized()


@pytest.mark.parametrize(
    "sent", [None, "Bearer old-token", "DPoP first-token", "Basic first-token", "first-token"]
)
def test_success_without_the_token_says_nothing_about_it(sent: str | None) -> None:
    """AUTH-304: what anybody gets, or what an earlier token has got."""
    world, client = usual_world(), make_client(config=AuthorizationConfig(max_authorizations=1))
    client.receive_server_head(200, [], authorization=sent)
    run(client, world).authorized()
    client.receive_server_head(200, [], authorization=sent)

    assert isinstance(run(client, world).ending, AuthorizationFailed)


def test_logins_within_a_time_are_bounded() -> None:
    """AUTH-304: a server that takes each token for one request would ask the user for ever."""
    config = AuthorizationConfig(max_logins=3, login_period=60.0)
    world, client = usual_world(), make_client(config=config)
    for now in (0.0, 10.0, 20.0):
        run(client, world, now=now).authorized()
        take_head(client)
    failed = run(client, world, now=59.0).failed(
        AuthorizationStep.CLIENT, AuthorizationFailure.TOO_MANY_ATTEMPTS, "AUTH-304"
    )
    assert "3 times within 60 seconds" in failed.text
    assert len(world.opened) == 3
    run(client, world, now=60.0).authorized()
    take_head(client)
    run(client, world, now=69.0).failed(
        AuthorizationStep.CLIENT, AuthorizationFailure.TOO_MANY_ATTEMPTS, "AUTH-304"
    )


def test_all_requests_share_one_attempt() -> None:
    """Each of ten calls would open a browser, and each refresh token is good for one request."""
    world, client = refreshing_world(SECOND), make_client()
    run(client, world).authorized()
    attempts = [client.authorize(EXPIRED, now=0, at=AT) for _ in range(10)]
    done = Run(attempts[0], drive(client, world))

    assert len(set(map(id, attempts))) == 1
    assert isinstance(done.ending, Authorized)
    assert len(world.forms()) == 2


def test_late_joiner_shares_the_attempt() -> None:
    """Also while the user is away."""
    world, client = usual_world(), make_client()
    first = client.authorize(challenge(), now=0, at=AT)
    answer_requests(client, world, events_of(client), 0)
    second = client.authorize(challenge(403, error="insufficient_scope", scope="x"), now=1, at=AT)

    assert first is second
    assert first.open
    drive(client, world)
    assert first.state is AuthorizationState.AUTHORIZED


def test_stored_tokens_are_used() -> None:
    """A program that starts again does not ask the user again."""
    world = refreshing_world(SECOND)
    stored = run(make_client(), world).stored
    world.requests.clear()
    client = make_client()
    done = run(client, world, stored=stored, in_advance=True)

    assert done.authorized().issuer == ISSUER
    assert world.requests == []
    assert token_of(client) == "Bearer first-token"


def test_stored_refresh_token_is_used_when_the_token_has_expired() -> None:
    """The client that got it is stored beside it."""
    world = refreshing_world(SECOND)
    stored = run(make_client(), world).stored
    client = make_client()
    run(client, world, stored=stored, in_advance=True, at=AT + 1000).authorized()

    assert world.forms()[1]["refresh_token"] == "refresh-1"
    assert world.forms()[1]["client_id"] == "dynamic-client"
    assert len(world.opened) == 1


@pytest.mark.parametrize(
    ("first", "second", "refreshes"),
    [
        ({"registered": {ISSUER: RegisteredClient(client_id="x")}}, None, True),
        ({"registered": {ISSUER: RegisteredClient(client_id="x")}}, {}, False),
        (
            {"registered": {ISSUER: RegisteredClient(client_id="x")}},
            {"registered": {ISSUER: RegisteredClient(client_id="y")}},
            False,
        ),
        (
            {"registered": {ISSUER: RegisteredClient(client_id="x")}},
            {"registered": {ISSUER: RegisteredClient(client_id="x", client_secret="s")}},
            False,
        ),
        ({"client": ClientMetadata(url="https://c.example.com/m")}, None, True),
        ({"client": ClientMetadata(url="https://c.example.com/m")}, {}, False),
    ],
)
def test_refresh_token_belongs_to_its_client(first: Any, second: Any, refreshes: bool) -> None:
    """AUTH-044: another client is not given what the first one got."""
    world = refreshing_world(SECOND)
    world.put(
        SERVER_METADATA, {**_document_of(world), "client_id_metadata_document_supported": True}
    )
    stored = run(make_client(**first), world).stored
    client = make_client(**(first if second is None else second))
    run(client, world, EXPIRED, stored=stored)

    assert ("refresh_token" in world.forms()[-1]) is refreshes


def _document_of(world: World) -> dict[str, Any]:
    answer = world.answers[SERVER_METADATA][0]
    assert answer is not None
    document: dict[str, Any] = answer.body
    return document


def test_forgotten_credentials_are_gone() -> None:
    """Logging out deletes what was stored, and ends what runs."""
    world, client = refreshing_world(SECOND), make_client()
    run(client, world).authorized()
    client.authorize(EXPIRED, now=0, at=AT)
    client.forget()
    events = events_of(client)

    assert not client.authorized
    assert client.headers("POST", MCP, at=AT) == []
    assert [one.reason for one in events if isinstance(one, AuthorizationFailed)] == [
        AuthorizationFailure.CANCELLED
    ]
    assert CredentialsToStore(issuer=ISSUER, record=None) in events
