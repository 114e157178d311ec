"""Before a session is opened, the application is asked by an event."""

from typing import Any

import pytest

from sansmcp import Config, LimitReached, LocalProtocolError
from sansmcp.http import OldPaths, SessionEnd, SessionEnded, SessionRequested, SessionStarted
from tests.support.http.lookups import is_empty, one
from tests.support.http.server_endpoint import (
    GET,
    LEGACY,
    answer,
    drain,
    new_endpoint,
    of,
    post,
    request,
    sessions,
)
from tests.support.wire import INITIALIZED, call, initialize


def endpoint_of(**settings: Any) -> Any:
    return new_endpoint(sessions=sessions(opening="ask", **settings))


def test_a_session_opens_when_the_application_says_so() -> None:
    """An application may have to register a session in a store before it opens."""
    endpoint = endpoint_of()
    exchange = post(endpoint, initialize(1, LEGACY))
    question = one(SessionRequested, endpoint)
    assert question.params is not None
    assert question.params["protocolVersion"] == LEGACY
    question.params.clear()  # it belongs to the application
    assert endpoint.sessions == ()
    assert endpoint.held_bytes > 0
    assert endpoint.open_session(question, "chosen")

    response = answer(exchange)
    assert response.headers["mcp-session-id"] == "chosen"
    assert response.json["result"]["protocolVersion"] == LEGACY
    assert one(SessionStarted, endpoint).session.id == "chosen"
    fields = {"mcp-session-id": "chosen", "mcp-protocol-version": LEGACY}
    assert answer(post(endpoint, INITIALIZED, fields)).status == 202
    assert endpoint.open_questions == ()


def test_a_granted_session_that_comes_to_nothing_is_told_of() -> None:
    """Whoever has noted its id can forget it; another session gets an id from `new_id`."""
    endpoint = endpoint_of()
    exchange = post(endpoint, b"\xef\xbb\xbf" + b'{"jsonrpc":"2.0","id":1,"method":"initialize"}')
    question = one(SessionRequested, endpoint)
    assert question.params == {}
    assert endpoint.open_session(question, "first")
    assert answer(exchange).status == 400
    ended = one(SessionEnded, endpoint)
    assert (ended.session.id, ended.cause) == ("first", SessionEnd.REFUSED)
    exchange = post(endpoint, initialize(1, LEGACY))
    assert endpoint.open_session(one(SessionRequested, endpoint))

    assert answer(exchange).headers["mcp-session-id"] == "s1"
    with pytest.raises(LocalProtocolError, match="answered already"):
        endpoint.open_session(question)


def test_a_session_may_be_refused() -> None:
    """The application must be able to refuse a session with a status and a text."""
    endpoint = endpoint_of()
    exchange = post(endpoint, initialize(1, LEGACY))
    question = one(SessionRequested, endpoint)
    assert exchange.refuse(429, "you have enough", {"retry-after": "60"})

    response = answer(exchange)
    assert (response.status, response.headers["retry-after"]) == (429, "60")
    assert (response.json["id"], response.json["error"]["message"]) == (1, "you have enough")
    assert not endpoint.open_session(question)
    assert endpoint.sessions == ()
    assert is_empty(endpoint)


def test_a_failed_lookup_opens_no_session() -> None:
    """The client must get an error that allows a retry."""
    endpoint = endpoint_of()
    exchange = post(endpoint, initialize(1, LEGACY))
    endpoint.fail_lookup(one(SessionRequested, endpoint), status=503, retry_after=1)

    response = answer(exchange)
    assert (response.status, response.headers["retry-after"]) == (503, "1")
    assert is_empty(endpoint)


@pytest.mark.parametrize("name", ["", "a b", "s\u00e9", "s1"])
def test_an_id_that_no_session_can_have_raises(name: str) -> None:
    """An invalid id must change nothing, so that another one can be given."""
    endpoint = endpoint_of()
    post(endpoint, initialize(1, LEGACY))
    endpoint.open_session(one(SessionRequested, endpoint))
    post(endpoint, initialize(1, LEGACY))
    question = one(SessionRequested, endpoint)
    with pytest.raises(LocalProtocolError, match="visible ASCII") as raised:
        endpoint.open_session(question, name)

    assert raised.value.rule == "SESS-003"
    with pytest.raises(ValueError, match="session_id"):
        endpoint.open_session(question, 7)
    assert endpoint.open_session(question, "s9")
    assert [session.id for session in endpoint.sessions] == ["s1", "s9"]


def test_the_limit_on_sessions_counts_when_one_is_opened() -> None:
    """Other sessions may have been opened while the application was asked."""
    endpoint = endpoint_of(max_sessions=1)
    exchanges = [post(endpoint, initialize(1, LEGACY)) for _ in range(2)]
    opened = [endpoint.open_session(one) for one in of(SessionRequested, drain(endpoint))]
    assert opened == [True, False]
    assert [answer(exchange).status for exchange in exchanges] == [200, 503]
    assert not of(SessionEnded, drain(endpoint))


def test_a_client_of_the_old_transport_is_asked_about_with_its_stream() -> None:
    """A session of HTTP+SSE begins with a GET."""
    paths = OldPaths(stream="/sse", post="/messages")
    endpoint = new_endpoint(sessions=sessions(opening="ask"), old_paths=paths)
    exchange = request(endpoint, "GET", GET, target="/sse")
    question = one(SessionRequested, endpoint)
    assert question.params is None
    assert endpoint.open_session(question, "a/b")

    (event,) = answer(exchange).events
    assert event.data == b"/messages?session_id=a%2Fb"
    initialized = post(endpoint, initialize(1, "2024-11-05"), target=event.data.decode())
    assert answer(initialized).status == 202


def test_only_the_first_message_of_a_session_is_asked_about() -> None:
    """Later messages name their session."""
    endpoint = endpoint_of()
    post(endpoint, initialize(1, LEGACY))
    endpoint.open_session(one(SessionRequested, endpoint))
    post(endpoint, call(2, "ping"), {"mcp-session-id": "s1"})

    assert not of(SessionRequested, drain(endpoint))


def test_an_endpoint_without_sessions_has_asked_for_none() -> None:
    """A question of another endpoint must be refused."""
    endpoint = endpoint_of()
    post(endpoint, initialize(1, LEGACY))
    question = one(SessionRequested, endpoint)
    with pytest.raises(LocalProtocolError, match="not asked by this endpoint"):
        new_endpoint(stateless=True).open_session(question, "s1")

    assert endpoint.open_session(question)


def test_an_initialize_for_which_there_is_no_room_is_refused() -> None:
    """A full table must refuse the client before the application is asked."""
    endpoint = new_endpoint(sessions=sessions(opening="ask"), config=Config(max_held_bytes=8_000))
    message = initialize(1, LEGACY)
    message["params"]["clientInfo"] = {"name": "client", "version": "1", "title": "x" * 5_000}
    exchange = post(endpoint, message)

    assert answer(exchange).status == 503
    assert [type(event) for event in drain(endpoint)] == [LimitReached]
    assert is_empty(endpoint)
