"""Authorization: challenges, new credentials, redirects, and secrets that must not leak."""

import copy
from typing import Any

import attrs
import pytest

from sansmcp import (
    Config,
    ConnectionFailed,
    FailureCause,
    FailureReason,
    LocalProtocolError,
    ProtocolViolation,
    Ready,
    RequestFailed,
    ResponseReceived,
)
from sansmcp.http import (
    AuthorizationRequired,
    Challenge,
    ClientEndpoint,
    ClientExchange,
    ExchangePurpose,
    MessageRefused,
    Origin,
    StreamUnavailable,
)
from tests.support.http.client_endpoint import (
    answer,
    ask,
    begun,
    events_of,
    exchanges_of,
    fields_of,
    head,
    initialized,
    kinds,
    message_of,
    new_client,
    only,
    opened,
    respond,
    stream,
    take,
)
from tests.support.http.server_endpoint import LEGACY
from tests.support.modern import BOTH, MODERN, discovered
from tests.support.wire import result

TOKEN = "Bearer s3cret-t0ken"
CHALLENGE = {"WWW-Authenticate": 'Bearer resource_metadata="https://a/x", scope="a b"'}


def keeping(revision: str = MODERN, **settings: Any) -> ClientEndpoint:
    """A client that keeps the requests that were refused with 401."""
    settings.setdefault("headers", [("Authorization", TOKEN)])
    return opened(revision, authorize=True, **settings)


# ----------------------------------------------------------------------------------- challenges


@pytest.mark.parametrize(
    ("field", "challenges"),
    [
        ("Bearer", [Challenge("bearer", {})]),
        ("", []),
        ("???", []),
        ("Bearer realm=x", [Challenge("bearer", {"realm": "x"})]),
        (
            'BEARER Realm = "a, \\"b\\"" , error="insufficient_scope",Basic realm=""',
            [
                Challenge("bearer", {"realm": 'a, "b"', "error": "insufficient_scope"}),
                Challenge("basic", {"realm": ""}),
            ],
        ),
        (", ,Bearer ,Basic", [Challenge("bearer", {}), Challenge("basic", {})]),
        (
            "Negotiate ab==, Bearer",
            [Challenge("negotiate", {}, "ab=="), Challenge("bearer", {})],
        ),
        ("Negotiate ab", [Challenge("negotiate", {}, "ab")]),
        ('Bearer scope="open', [Challenge("bearer", {})]),
        ("Bearer a=1, a=2", [Challenge("bearer", {"a": "1"})]),
        ("A, " * 40, [Challenge("a", {})] * 32),
    ],
)
def test_challenges_are_read(field: str, challenges: list[Challenge]) -> None:
    """One header may hold several challenges, and text that cannot be read (AUTH-036, AUTH-220)."""
    client = opened(MODERN)
    _, exchange = ask(client)
    respond(exchange, 401, more={"WWW-Authenticate": field})
    required = only(AuthorizationRequired, events_of(client)[:1])
    assert list(required.challenges) == challenges


def test_challenges_may_stand_on_several_lines() -> None:
    """Challenges on several header lines must keep the server's order."""
    client = opened(MODERN)
    call, exchange = ask(client)
    lines = [(b"WWW-Authenticate", b"Bearer"), (b"www-authenticate", b"Basic")]
    exchange.receive_head(401, lines)
    required = only(AuthorizationRequired, events_of(client)[:1])
    assert [one.scheme for one in required.challenges] == ["bearer", "basic"]
    assert (required.status, required.request, required.kept) == (401, call, False)


@pytest.mark.parametrize("name", ["WWW-Authenticate", b"www-authenticate"])
def test_fields_of_a_response_may_be_a_mapping(name: Any) -> None:
    """A mapping was read as pairs, and names of two letters did not even raise."""
    client = opened(MODERN)
    _, exchange = ask(client)
    exchange.receive_head(401, {name: "Bearer"})
    required = only(AuthorizationRequired, events_of(client)[:1])
    assert [one.scheme for one in required.challenges] == ["bearer"]


@pytest.mark.parametrize("status", [401, 403])
def test_a_call_without_authorization_ends(status: int) -> None:
    """Without the setting to wait for credentials, a 401 must end the call."""
    client = opened(MODERN)
    call, exchange = ask(client)
    respond(exchange, status, b"no", CHALLENGE)
    required, failed = events_of(client)
    assert isinstance(required, AuthorizationRequired)
    assert required.challenges == (
        Challenge("bearer", {"resource_metadata": "https://a/x", "scope": "a b"}),
    )
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (call, FailureReason.REFUSED)
    assert client.exchanges == ()


def test_forbidden_without_a_challenge_is_a_refusal() -> None:
    """A 403 without a challenge cannot be cured by credentials."""
    client = keeping()
    _, exchange = ask(client)
    respond(exchange, 403, b"no")
    assert kinds(events_of(client)) == [MessageRefused, RequestFailed]


def test_a_notification_without_authorization_is_refused() -> None:
    """A notification ends only by this event."""
    client = opened(MODERN)
    client.send_notification("custom/note")
    respond(take(client), 401)
    assert events_of(client) == [
        AuthorizationRequired(status=401, challenges=(), kept=False),
        MessageRefused(status=401),
    ]


def test_a_stream_without_authorization_is_not_available() -> None:
    """A 401 to GET must not ask for credentials, which requests ask for themselves."""
    client = opened(LEGACY, get=True)
    respond(take(client), 401)
    assert kinds(events_of(client)) == [AuthorizationRequired, StreamUnavailable]


def test_a_start_without_authorization_fails() -> None:
    """The event of the failed start says why."""
    client = begun(revisions=BOTH)
    respond(take(client), 401, more=CHALLENGE)
    failed = only(ConnectionFailed, events_of(client)[1:2])
    assert failed.cause is FailureCause.REFUSED
    assert "401" in failed.text
    assert exchanges_of(client) == []


# ---------------------------------------------------------------------------- with new credentials


@pytest.mark.parametrize("status", [401, 403])
def test_a_call_waits_for_authorization(status: int) -> None:
    """The handle and the message of a call must stay the same while it waits (AUTH-036)."""
    client = keeping()
    call, exchange = ask(client)
    respond(exchange, status, b"no", CHALLENGE)
    assert only(AuthorizationRequired, events_of(client)).kept
    assert exchanges_of(client) == []
    assert client.authorize([("authorization", "Bearer new")]) == 1
    again = take(client)
    assert again.body == exchange.body
    assert fields_of(again)["authorization"] == "Bearer new"
    respond(again, body=answer(client, call))
    assert only(ResponseReceived, events_of(client)).request is call
    assert client.authorize([]) == 0
    _, exchange = ask(client)
    assert "authorization" not in fields_of(exchange)


def test_a_start_waits_for_authorization() -> None:
    """A start in either era must wait for credentials, and so must the notification after it."""
    client = begun(revisions=BOTH, authorize=True, get_stream=False)
    respond(take(client), 401)
    client.authorize([("authorization", "1")])
    respond(take(client), 404)
    respond(take(client), 401)
    client.authorize([("authorization", "2")])
    again = take(client)
    assert message_of(again)["method"] == "initialize"
    respond(again, body=initialized(2))
    respond(take(client), 401)
    client.send_request("tools/list")
    assert exchanges_of(client) == []
    client.authorize([("authorization", "3")])
    ready = take(client)
    assert message_of(ready)["method"] == "notifications/initialized"
    respond(ready, 202)
    assert len(exchanges_of(client)) == 1
    assert Ready in kinds(events_of(client))


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("name", ["Authorization", "X-API-Key", "Cookie", "X-Token"])
@pytest.mark.parametrize("authorize", [False, True])
def test_a_probe_refused_for_good_credentials_means_a_handshake(
    status: int, name: str, authorize: bool
) -> None:
    """Neighbour of case c281: some servers answer 401 to everything without a session, except
    `initialize`.

    A user would be asked for a token that is not needed.
    """
    client = begun(revisions=BOTH, authorize=authorize, headers=[(name, TOKEN)])
    probe = take(client)
    assert message_of(probe)["method"] == "server/discover"
    respond(probe, status, {"error": {"code": 401, "message": "MCP Failure"}}, CHALLENGE)
    again = take(client)
    assert message_of(again)["method"] == "initialize"
    respond(again, body=initialized(2))
    assert only(Ready, events_of(client)).revision == LEGACY


def test_where_the_handshake_wants_others_too_that_is_said() -> None:
    """Neighbour of case c281: 401 to probe and handshake means that the credentials are wrong."""
    client = begun(revisions=BOTH, headers=[("Authorization", TOKEN)])
    respond(take(client), 401)
    respond(take(client), 401, b"", CHALLENGE)
    required, failed, _ = events_of(client)
    assert isinstance(required, AuthorizationRequired)
    assert (required.status, required.kept, len(required.challenges)) == (401, False, 1)
    assert isinstance(failed, ConnectionFailed)
    assert failed.cause is FailureCause.REFUSED


def test_a_start_with_an_old_token_begins_again_with_a_new_one() -> None:
    """The era of a server must not be decided by a token that has expired."""
    client = new_client(authorize=True, headers=[("Authorization", TOKEN)])
    client.start(timeout=60.0, probe_timeout=5.0, now=0.0)
    respond(take(client), 401)
    respond(take(client), 401, b"", CHALLENGE)
    assert only(AuthorizationRequired, events_of(client)).kept
    client.authorize([("Authorization", "Bearer new")], now=20.0)
    probe = take(client)
    assert message_of(probe)["method"] == "server/discover"
    assert fields_of(probe)["authorization"] == "Bearer new"
    assert client.next_timeout() == 25.0
    respond(probe, body=result(message_of(probe)["id"], discovered()))
    assert only(Ready, events_of(client)).revision == MODERN


def test_a_probe_that_needs_a_nonce_is_not_taken_for_the_wrong_era() -> None:
    """With `initialize`, a server of both eras would be opened in the legacy one."""
    client = begun(revisions=BOTH, authorize=True, headers=[("Authorization", "DPoP token")])
    wanted = {"WWW-Authenticate": 'DPoP error="use_dpop_nonce"', "DPoP-Nonce": "n1"}
    probe = take(client)
    respond(probe, 401, more=wanted)
    assert probe.dpop_nonce == "n1"
    assert only(AuthorizationRequired, events_of(client)).kept
    client.authorize([("Authorization", "DPoP token")])
    assert message_of(take(client))["method"] == "server/discover"


def test_a_start_is_not_shown_more_than_five_in_vain_in_either_era() -> None:
    """Attempts must be counted over all requests of the start, each of which is refused once."""
    client = begun(revisions=BOTH, authorize=True, headers=[("Authorization", TOKEN)])
    for _ in range(5):
        respond(take(client), 401)
        respond(take(client), 401)
        assert only(AuthorizationRequired, events_of(client)).kept
        client.authorize([("Authorization", "Bearer new")])
    respond(take(client), 401)
    respond(take(client), 401)
    required, failed, _ = events_of(client)
    assert isinstance(required, AuthorizationRequired)
    assert not required.kept
    assert isinstance(failed, ConnectionFailed)
    assert exchanges_of(client) == []


def test_a_client_of_one_era_asks_for_authorization_at_once() -> None:
    """A modern client has no handshake that could explain a 401."""
    client = begun(MODERN, authorize=True, headers=[("Authorization", TOKEN)])
    respond(take(client), 401)
    assert only(AuthorizationRequired, events_of(client)).kept


def test_what_was_under_way_meanwhile_is_sent_again_by_itself() -> None:
    """Requests that were refused for old credentials must not ask for new ones again."""
    client = keeping()
    first, one = ask(client)
    second, other = ask(client)
    respond(one, 401)
    client.authorize([("authorization", "new")])
    take(client)
    events_of(client)
    respond(other, 401)
    assert events_of(client) == []
    again = take(client)
    assert again.request is second
    respond(again, 401)
    assert only(AuthorizationRequired, events_of(client)).request is second
    assert client.pending_requests == (first, second)


def test_the_stream_waits_for_authorization_too() -> None:
    """The GET stream must wait for credentials, also when it is resumed."""
    client = keeping(LEGACY, get=True)
    respond(take(client), 401)
    client.authorize([])
    again = take(client)
    assert again.method == "GET"
    stream(again, b"id: 1\ndata:\n\n", ends=True)
    client.handle_timeout(1.0)
    respond(take(client), 401)
    client.authorize([])
    assert take(client).purpose is ExchangePurpose.RESUME


def test_the_rest_of_an_answer_waits_for_authorization_too() -> None:
    """A token may expire while a broken stream waits to be resumed."""
    client = keeping(LEGACY)
    call, exchange = ask(client)
    stream(exchange, b"id: a\ndata:\n\n", ends=True)
    client.handle_timeout(1.0)
    respond(take(client), 401)
    client.authorize([])
    again = take(client)
    assert (again.purpose, again.request) == (ExchangePurpose.RESUME, call)
    respond(again, 401)
    client.give_up()
    assert only(RequestFailed, events_of(client)[-1:]).reason is FailureReason.REFUSED


def test_there_may_be_no_authorization() -> None:
    """If no credentials are supplied, each waiting request must get its own ending."""
    client = keeping(LEGACY, get=True)
    listening = take(client)
    call, exchange = ask(client)
    client.send_notification("notifications/roots/list_changed")
    posted = take(client)
    respond(listening, 401)
    respond(exchange, 403, more={"WWW-Authenticate": "Bearer scope=a"})
    respond(posted, 401)
    kept = events_of(client)
    assert client.give_up(now=3.0) == 3
    first, unavailable, second, failed, third, refused = events_of(client)
    for before, event in zip(kept, (first, second, third), strict=True):
        assert isinstance(before, AuthorizationRequired)
        assert (before.kept, attrs.evolve(before, kept=False)) == (True, event)
    assert isinstance(unavailable, StreamUnavailable)
    assert isinstance(failed, RequestFailed)
    assert (failed.request, failed.reason) == (call, FailureReason.REFUSED)
    assert refused == MessageRefused(status=401)
    assert client.give_up() == 0


@pytest.mark.parametrize("is_supplied", [True, False])
def test_a_refusal_that_is_answered_is_not_reported_any_more(is_supplied: bool) -> None:
    """The application has taken the first event only: it would ask its user a second time."""
    client = keeping()
    calls = [ask(client) for _ in range(3)]
    for _, exchange in calls:
        respond(exchange, 401)
    first = client.next_event()
    assert isinstance(first, AuthorizationRequired)
    if is_supplied:
        assert client.authorize([("Authorization", "Bearer new")]) == 3
        assert events_of(client) == []
        assert len(exchanges_of(client)) == 3
    else:
        assert client.give_up() == 3
        told = [one for one in events_of(client) if isinstance(one, AuthorizationRequired)]
        assert [one.kept for one in told] == [False] * 3
    respond(ask(client)[1], 401)
    assert only(AuthorizationRequired, events_of(client)).kept


def test_a_start_may_get_no_authorization() -> None:
    """If a start gets no credentials, all waiting requests must end with the conversation."""
    client = begun(revisions=BOTH, authorize=True)
    respond(take(client), 401)
    assert client.give_up() == 1
    assert isinstance(events_of(client)[1], ConnectionFailed)


def test_the_session_may_end_while_others_wait() -> None:
    """Giving up one request may end the session, and with it all other waiting requests."""
    client = begun(LEGACY, authorize=True, get_stream=False)
    respond(take(client), body=initialized(1), more={"mcp-session-id": "s"})
    respond(take(client), 202)
    calls = [ask(client) for _ in range(2)]
    for _, exchange in calls:
        respond(exchange, 401)
    client.close()
    assert client.give_up() == 0
    assert client.authorize([]) == 0
    endings = [one.request for one in events_of(client) if isinstance(one, RequestFailed)]
    assert endings == [call for call, _ in calls]


@pytest.mark.parametrize("how", ["cancel", "timeout"])
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_call_may_end_while_it_waits(how: str, revision: str) -> None:
    """The server has refused the call, so no cancellation must be sent."""
    client = keeping(revision, now=0.0)
    call, exchange = ask(client, max_timeout=5.0)
    respond(exchange, 401)
    events_of(client)
    if how == "cancel":
        client.cancel(call)
    else:
        client.handle_timeout(5.0)
    assert only(RequestFailed, events_of(client)).request is call
    assert exchanges_of(client) == []
    assert client.authorize([], now=6.0) == 0


def test_a_call_is_not_charged_for_the_time_that_a_user_takes() -> None:
    """A timeout is for silence of the server, which has answered; it begins anew."""
    client = keeping(MODERN, now=0.0)
    call, exchange = ask(client, timeout=5.0)
    respond(exchange, 401)
    events_of(client)
    client.handle_timeout(100.0)
    assert events_of(client) == []
    client.authorize([], now=101.0)
    assert client.next_timeout() == 106.0
    client.handle_timeout(106.0)
    assert only(RequestFailed, events_of(client)).request is call


@pytest.mark.parametrize(("hint", "until"), [(None, 415.0), (MODERN, 430.0), (LEGACY, 440.0)])
def test_a_start_is_not_charged_for_it_either(hint: str | None, until: float) -> None:
    """A user logs in when a program is started for the first time."""
    client = new_client(authorize=True)
    client.start(timeout=30.0, probe_timeout=5.0, hint=hint, now=0.0)
    respond(take(client), 401, now=1.0 if hint is None else 10.0)
    assert only(AuthorizationRequired, events_of(client)).kept
    assert client.next_timeout() is None
    client.handle_timeout(400.0)
    client.authorize([], now=410.0)
    assert message_of(take(client))["method"] in ("server/discover", "initialize")
    assert client.next_timeout() == until


def test_a_call_that_moves_into_another_session_is_not_charged_for_it() -> None:
    """The session was lost while the user was asked."""
    client = keeping(LEGACY, now=0.0)
    call, exchange = ask(client, timeout=5.0)
    _, other = ask(client)
    respond(exchange, 401)
    client.handle_timeout(50.0)
    respond(other, 404)
    opening = take(client)
    respond(opening, body=initialized(message_of(opening)["id"]), now=50.0)
    respond(take(client), 202)
    assert call in {one.request for one in exchanges_of(client)}
    client.handle_timeout(54.0)
    assert call.open
    client.handle_timeout(55.0)
    assert not call.open


def test_headers_of_one_exchange_are_checked_and_not_repeated() -> None:
    """A proof of possession is made for one request, with the nonce of the response before."""
    client = opened(MODERN, headers=[("Authorization", TOKEN)])
    _, exchange = ask(client)
    assert (exchange.status, exchange.dpop_nonce) == (None, None)
    before = exchange.headers
    with pytest.raises(ValueError, match="no form"):
        exchange.add_headers([("DPoP", "a\r\nb")])
    assert exchange.headers == before
    exchange.add_headers([("DPoP", "proof")])
    assert (*before, (b"dpop", b"proof")) == exchange.headers
    head(exchange, 200, "application/json", more={"DPoP-Nonce": "n1"})
    assert (exchange.status, exchange.dpop_nonce) == (200, "n1")
    assert ask(client)[1].headers == before


def test_not_more_is_kept_than_may_be_in_flight() -> None:
    """Requests over the limit must end instead of waiting for credentials."""
    client = keeping(config=Config(max_requests=1))
    _, exchange = ask(client)
    respond(exchange, 401)
    client.send_notification("custom/note")
    respond(take(client), 401)
    required = [one.kept for one in events_of(client) if isinstance(one, AuthorizationRequired)]
    assert required == [True, False]


def test_authorization_for_the_stream_of_http_sse() -> None:
    """A 401 to the stream of HTTP+SSE must ask for credentials."""
    client = begun(revisions=(("2024-11-05",)), authorize=True)
    respond(take(client), 405)
    respond(take(client), 401)
    client.authorize([])
    again = take(client)
    assert again.method == "GET"
    respond(again, 401)
    client.give_up()
    assert isinstance(events_of(client)[-2], ConnectionFailed)


# -------------------------------------------------------------------------------------- redirects


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_post_follows_where_it_is_sent(status: int, revision: str) -> None:
    """A redirect of the same origin must get the body, the headers and the credentials."""
    client = keeping(revision)
    call, exchange = ask(client)
    respond(exchange, status, b"moved", {"Location": "/mcp/?x=1"})
    again = take(client)
    assert (again.method, again.url) == ("POST", "http://localhost/mcp/?x=1")
    assert (again.body, again.headers) == (exchange.body, exchange.headers)
    respond(again, body=answer(client, call))
    assert only(ResponseReceived, events_of(client)).request is call
    _, exchange = ask(client)
    assert exchange.url == (
        "http://localhost/mcp/?x=1" if status == 308 else "http://localhost/mcp"
    )


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_get_follows_where_it_is_sent(status: int) -> None:
    """Each redirect status must keep the method GET."""
    client = opened(LEGACY, get=True)
    respond(take(client), status, more={"location": "http://LOCALHOST:80/stream"})
    again = take(client)
    assert (again.method, again.url) == ("GET", "http://localhost:80/stream")
    stream(again)
    assert events_of(client) == []


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_post_does_not_become_a_get(status: int) -> None:
    """A POST that becomes a GET loses its message (OWN-040)."""
    client = opened(MODERN)
    _, exchange = ask(client)
    respond(exchange, status, more={"location": "/other"})
    violation, failed = events_of(client)
    assert isinstance(violation, ProtocolViolation)
    assert violation.rule == "OWN-040"
    assert isinstance(failed, RequestFailed)
    assert failed.reason is FailureReason.REFUSED
    assert exchanges_of(client) == []


@pytest.mark.parametrize(
    "location",
    [
        "https://localhost/mcp",
        "http://localhost:8080/mcp",
        "http://other/mcp",
        "//other/mcp",
        "http://localhost@other/mcp",
        "ftp://localhost/mcp",
        "http://localhost:x/",
        "/a b",
        "/caf\xe9",
        "/" + "x" * 9000,
        "http://local^host/",
        "http://[::1/",
    ],
)
@pytest.mark.parametrize("what", ["call", "note", "stream", "start", "resume", "old"])
def test_no_redirect_leads_to_another_origin(location: str, what: str) -> None:
    """Neither message nor credentials may go to another origin (OWN-040)."""
    secret = [("Authorization", TOKEN)]
    if what == "start":
        client = begun(MODERN, headers=secret)
        exchange = take(client)
    elif what == "old":
        client = begun(revisions=("2024-11-05",), headers=secret)
        respond(take(client), 405)
        exchange = take(client)
    elif what == "stream":
        client = opened(LEGACY, headers=secret, get=True)
        exchange = take(client)
    else:
        client = opened(LEGACY, headers=secret)
        if what == "note":
            client.send_notification("notifications/roots/list_changed")
            exchange = take(client)
        else:
            _, exchange = ask(client)
            if what == "resume":
                stream(exchange, b"id: a\ndata:\n\n", ends=True)
                client.handle_timeout(1.0)
                exchange = take(client)
    assert fields_of(exchange)["authorization"] == TOKEN
    respond(exchange, 307, more={"location": location})
    assert exchanges_of(client) == []
    events = events_of(client)
    assert [one.rule for one in events if isinstance(one, ProtocolViolation)] == ["OWN-040"]
    assert len(events) >= 2


def test_a_redirect_says_where_to() -> None:
    """A redirect without a valid Location is a refusal."""
    client = opened(MODERN)
    _, exchange = ask(client)
    respond(exchange, 308)
    assert kinds(events_of(client)) == [ProtocolViolation, RequestFailed]
    assert exchanges_of(client) == []


def test_redirects_in_a_row_are_counted_and_a_success_ends_the_row() -> None:
    """A loop of redirects must end after five."""
    client = opened(LEGACY, get=True, now=0.0)
    for _ in range(3):
        for _ in range(5):
            respond(take(client), 307, more={"location": "/x"})
        stream(take(client), ends=True)
        client.handle_timeout(client.next_timeout() or 0.0)
    for _ in range(6):
        respond(take(client), 307, more={"location": "/x"})
    assert kinds(events_of(client)) == [ProtocolViolation, StreamUnavailable]


@pytest.mark.parametrize("status", [300, 304, 305])
def test_other_statuses_of_that_kind_are_refusals(status: int) -> None:
    """These redirects name no address to go to."""
    client = opened(MODERN)
    _, exchange = ask(client)
    respond(exchange, status, more={"location": "/x"})
    assert kinds(events_of(client)) == [MessageRefused, RequestFailed]


def test_the_end_of_a_session_goes_nowhere_else() -> None:
    """A DELETE that is redirected is not sent again."""
    client = opened(LEGACY)
    client.close()
    respond(take(client), 307, more={"location": "http://other/"})
    assert exchanges_of(client) == []


def test_where_a_redirect_was_for_one_it_is_not_for_all() -> None:
    """A permanent redirect of one URL must not move the endpoint."""
    client = opened(MODERN)
    _, exchange = ask(client)
    respond(exchange, 307, more={"location": "/a"})
    respond(take(client), 308, more={"location": "/b"})
    assert take(client).target == "/b"
    assert client.url == "http://localhost/mcp"


# ---------------------------------------------------------------------------------------- secrets


def test_what_the_server_repeats_of_a_secret_is_not_shown() -> None:
    """Events go into logs, so they must not show credentials that a server repeats."""
    secrets = [("Authorization", TOKEN), ("Cookie", "sid=c00kie")]
    client = opened(LEGACY, headers=secrets, session="s3ss10n")
    said = f"you said {TOKEN}; sid=c00kie; in s3ss10n; ".encode()
    call, exchange = ask(client)
    respond(exchange, 500, said * 9, form="text/plain")
    _, exchange = ask(client)
    respond(exchange, 200, b"s3cret-t0ken " * 20, form="application/json")
    for cut in range(1, len(TOKEN)):
        client.send_notification("notifications/roots/list_changed")
        padding = b"x" * (120 - cut)
        respond(take(client), 400, padding + TOKEN.encode(), form="text/plain")
        _, exchange = ask(client)
        stream(exchange, b"data: " + padding + TOKEN.encode() + b"\n\n")
    events = events_of(client)
    shown = repr(events) + repr(client) + repr(client.exchanges) + repr(call)
    assert "s3cr" not in shown
    assert "c00kie" not in shown
    assert "s3ss10n" not in shown
    assert "you said" in shown


def test_credentials_are_on_every_request() -> None:
    """Each request must have the credentials, also within a session (AUTH-008)."""
    client = new_client(headers=[("Authorization", TOKEN)], revisions=(LEGACY,))
    client.start(now=0.0)
    seen = [take(client)]
    respond(seen[0], body=initialized(1), more={"mcp-session-id": "s"})
    seen.append(take(client))
    respond(seen[1], 202)
    call, seen_get = client.send_request("tools/list"), exchanges_of(client)
    seen += seen_get
    stream(seen[-1], b"id: a\ndata:\n\n", ends=True)
    client.handle_timeout(1.0)
    seen += exchanges_of(client)
    client.cancel(call)
    seen += exchanges_of(client)
    client.close()
    seen += exchanges_of(client)
    assert {one.purpose for one in seen} == set(ExchangePurpose)
    assert {fields_of(one)["authorization"] for one in seen} == {TOKEN}
    assert {one.origin for one in seen} == {Origin("http", "localhost", 80)}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Y", "a\r\nInjected: 1"),
        ("X-Y", "a\0"),
        ("X-Y", "\u20ac"),
        ("X Y", "a"),
        ("", "a"),
        ("X:Y", "a"),
        ("Mcp-Session-Id", "mine"),
        ("MCP-Protocol-Version", LEGACY),
        ("Content-Type", "text/plain"),
        ("Host", "other"),
        ("Last-Event-ID", "1"),
    ],
)
def test_fields_that_would_break_the_head_are_refused(name: str, value: str) -> None:
    """Invalid headers must be refused, and so must those that the library writes itself."""
    with pytest.raises(ValueError, match="header") as raised:
        new_client(headers=[(name, value)])
    assert "Injected" not in str(raised.value)
    client = opened(MODERN)
    with pytest.raises(ValueError, match="header"):
        client.authorize([(name, value)])


def test_space_around_a_value_is_no_part_of_it() -> None:
    """A token from a file may have spaces or a line break, which HTTP libraries refuse."""
    client = new_client(headers=[("X-Y", "\ta b ")], revisions=(LEGACY,))
    client.start()
    assert fields_of(take(client))["x-y"] == "a b"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/mcp",
        "mcp.example",
        "ws://host/",
        "http://",
        "http://user@host/",
        "http://user:password@host/",
        "http://host:70000/",
        "http://host..example/",
        "http://./",
        "http://" + "a" * 64 + ".example/",
        "http://host:x/",
        "http://ho st/",
        "http://host/\r\nX: 1",
        "http://h\xf6st/",
        "http://host\\evil/",
    ],
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    """An invalid URL must be refused at once, without showing a secret in it."""
    with pytest.raises(ValueError) as raised:  # noqa: PT011  # each says something else
        new_client(url)
    assert "password" not in str(raised.value).replace("a password", "")


@pytest.mark.parametrize(
    ("url", "origin", "authority", "target"),
    [
        ("http://host", Origin("http", "host", 80), "host", "/"),
        ("HTTPS://Host:8443/A?b#c", Origin("https", "host", 8443), "host:8443", "/A?b"),
        ("http://[::1]:80/x", Origin("http", "::1", 80), "[::1]:80", "/x"),
        ("https://host:/x?", Origin("https", "host", 443), "host", "/x"),
    ],
)
def test_a_url_says_whom_to_ask_and_what_for(
    url: str, origin: Origin, authority: str, target: str
) -> None:
    """A URL must be split into the host and the target of a request."""
    client = begun(MODERN, url=url)
    exchange = take(client)
    assert (exchange.origin, exchange.authority, exchange.target) == (origin, authority, target)


# ------------------------------------------------------------------------------- wake and copies


def test_news_are_told_once() -> None:
    """`wake` must be called for an exchange, an abort, an event and an earlier deadline, and
    never within itself."""
    calls: list[str] = []
    client = new_client(revisions=(MODERN,), wake=lambda: calls.append("woken"))
    client.start(timeout=10.0, now=0.0)
    assert calls == ["woken"]
    probe = take(client)
    assert client.next_exchange() is None
    head(probe, 200, "application/json")
    assert calls == ["woken"]
    probe.receive_data(b"".join([b'{"jsonrpc":"2.0","id":1,"result":', b"7}"]))
    probe.receive_end()
    assert calls == ["woken"] * 2


def test_it_may_do_all_that_is_to_be_done() -> None:
    """A caller may take everything within `wake`."""
    taken: list[ClientExchange] = []
    aborted: list[ClientExchange] = []

    def pump() -> None:
        events_of(client)
        aborted.extend(client.aborts())
        taken.extend(exchanges_of(client))

    client = new_client(revisions=(LEGACY,), wake=pump)
    client.start(now=0.0)
    respond(taken[0], body=initialized(1))
    call = client.send_request("tools/list")
    assert len(taken) == 2  # the others wait for the answer to this one
    respond(taken[1], 202)
    assert [one.method for one in taken] == ["POST", "POST", "GET", "POST"]
    client.cancel(call)
    assert aborted == [taken[3]]
    assert taken[4].purpose is ExchangePurpose.CANCEL


def test_a_copy_goes_on_by_itself() -> None:
    """All state is plain data, so a copy must work; only `wake` is left out."""
    client = opened(MODERN, wake=lambda: None)
    call, exchange = ask(client)
    copied, copied_call, copied_exchange = copy.deepcopy((client, call, exchange))
    respond(copied_exchange, body=answer(copied, copied_call))
    assert only(ResponseReceived, events_of(copied)).request is copied_call
    assert events_of(client) == []
    assert client.exchanges == (exchange,)


def test_what_a_client_looks_like_before_it_starts() -> None:
    """Before the start, the properties are empty and verbs raise."""
    client = new_client()
    assert (client.revision, client.peer.info, client.phase.name) == (None, None, "NEW")
    with pytest.raises(LocalProtocolError):
        client.send_request("tools/list")
    with pytest.raises(LocalProtocolError):
        client.ping()
    with pytest.raises(LocalProtocolError):
        client.listen({})
    client.handle_timeout(1.0)
    assert client.next_event() is None
    assert client.next_exchange() is None
    client.start()
    respond(take(client), body=result(1, discovered()))
    assert isinstance(client.next_event(), Ready)
