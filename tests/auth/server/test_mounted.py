"""Tokens in front of an HTTP endpoint: the two pure objects, joined as an adapter joins them."""

from collections.abc import Mapping
from typing import Any, Final

import attrs
import pytest

from sansmcp import JSONObject, RequestReceived
from sansmcp.auth import AccessGranted, AccessRefused, AccessToken, ResourceServer, TokenReceived
from sansmcp.http import (
    CredentialsReceived,
    HTTPEvent,
    LookupEnded,
    ServerEndpoint,
    ServerExchange,
)
from tests.auth.server.tools import AT, TOKEN, challenges_in, claims_of, resource_of
from tests.support.http.server_endpoint import (
    GET,
    POST,
    answer,
    body_of,
    modern_headers,
    modern_tool_call,
    more,
    new_endpoint,
    of,
    post,
    post_modern,
    progressing,
    request,
    take,
    tool_call,
)
from tests.support.wire import initialize

NOBODY: Final[Mapping[str, str]] = {}
USER: Final = {"authorization": f"Bearer {TOKEN}"}
OTHER: Final = {"authorization": "Bearer other"}
SECOND: Final = {"authorization": "Bearer second"}
CLAIMS: Final[dict[str, JSONObject]] = {
    TOKEN: claims_of(),
    "second": claims_of(exp=AT + 600),  # of the same user, refreshed
    "other": claims_of(sub="user-2"),
    "narrow": claims_of(scope="none"),
    "expired": claims_of(exp=AT - 60),
}


@attrs.frozen
class Guarded:
    """An endpoint whose requests are checked, and what else it reports."""

    endpoint: ServerEndpoint = attrs.field(factory=lambda: new_endpoint(credentials="ask"))
    access: ResourceServer = attrs.field(
        factory=lambda: ResourceServer(resource_of(required_scopes=["read"]))
    )
    events: list[HTTPEvent] = attrs.field(factory=list[HTTPEvent])

    def turn(self, at: float = AT) -> None:
        """Check the requests that have come."""
        while (event := self.endpoint.next_event()) is not None:
            if isinstance(event, CredentialsReceived):
                self.check(event, at)
            elif not isinstance(event, LookupEnded):
                self.events.append(event)

    def check(self, question: CredentialsReceived, at: float) -> None:
        """Check one request."""
        exchange = question.exchange
        check = self.access.check(exchange.method, exchange.path, question.headers, at=at)
        event = self.access.next_event()
        if isinstance(event, TokenReceived):
            assert self.access.verified(check, CLAIMS[event.token], at=at)
            event = self.access.next_event()
        if isinstance(event, AccessGranted):
            assert self.endpoint.admit(question, event.token, event.token.key)
            return
        assert isinstance(event, AccessRefused)
        assert exchange.refuse(event.status, event.text, dict(event.headers))

    def asked(self) -> Any:
        """The handle of the one request that a handler gets."""
        (event,) = of(RequestReceived, self.events)
        self.events.clear()
        return event.request

    def session(self) -> dict[str, str]:
        """The headers of a session that the user has opened."""
        exchange = post(self.endpoint, initialize("hello", "2025-11-25"), USER)
        self.turn()
        response = answer(exchange)
        assert response.status == 200
        session = {
            "mcp-session-id": response.headers["mcp-session-id"],
            "mcp-protocol-version": "2025-11-25",
        }
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        exchange = post(self.endpoint, note, {**session, **USER})
        self.turn()
        assert answer(exchange).status == 202
        self.events.clear()
        return session


def is_challenged(exchange: ServerExchange, status: int = 401) -> bool:
    """Whether a request was refused, and told where tokens come from."""
    response = answer(exchange)
    challenge = challenges_in(response.headers.get("www-authenticate", ""))
    return (
        response.ended
        and response.status == status
        and "resource_metadata" in challenge["bearer"].parameters
    )


def test_a_request_with_a_token_is_served_as_its_user() -> None:
    """The handler sees who asks (AUTH-010)."""
    one = Guarded()
    exchange = post_modern(one.endpoint, modern_tool_call(), USER)
    one.turn()
    call = one.asked()
    assert isinstance(call.principal, AccessToken)
    assert call.principal.subject == "user-1"
    assert call.principal_key == call.principal.key
    assert one.endpoint.send_result(call, {"content": []})
    assert answer(exchange).status == 200


@pytest.mark.parametrize("headers", [NOBODY, {"authorization": "Bearer expired"}, OTHER])
def test_a_session_id_alone_opens_nothing(headers: Mapping[str, str]) -> None:
    """Whoever has read one in a log is no user; another user is none of this session (AUTH-333)."""
    one = Guarded()
    session = one.session()
    exchanges = [
        post(one.endpoint, tool_call(), {**session, **headers}),
        request(one.endpoint, "GET", {**GET, **session, **headers}),
        request(one.endpoint, "DELETE", {**session, **headers}),
    ]
    one.turn()
    for exchange in exchanges:
        if headers is OTHER:
            assert answer(exchange).status == 404
        else:
            assert is_challenged(exchange)
    assert not of(RequestReceived, one.events)

    exchange = post(one.endpoint, tool_call(), {**session, **SECOND})
    one.turn()
    assert one.endpoint.send_result(one.asked(), {"content": []})
    assert answer(exchange).status == 200, "a refreshed token of the user keeps the session"


def test_each_request_in_a_session_is_checked() -> None:
    """The token of the first one says nothing about the next (AUTH-332)."""
    one = Guarded()
    session = one.session()
    late = AT + 100
    for headers in (USER, {"authorization": "Bearer narrow"}, NOBODY):
        exchanges = [
            post(one.endpoint, tool_call(), {**session, **headers}),
            request(one.endpoint, "GET", {**GET, **session, **headers}),
            request(one.endpoint, "DELETE", {**session, **headers}),
            post_modern(one.endpoint, modern_tool_call(), headers),
        ]
        one.turn(late)
        assert all(is_challenged(exchange) for exchange in exchanges)
    assert not one.events


@pytest.mark.parametrize(
    ("headers", "status"), [(NOBODY, 401), ({"authorization": "Bearer narrow"}, 403)]
)
@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"jsonrpc": "2.0", "id": 1, "method": "no/such"}', b"\xff" * 1_000]
)
def test_a_request_is_refused_before_its_message_is_looked_at(
    headers: Mapping[str, str], status: int, body: bytes
) -> None:
    """Errors of messages would answer strangers (AUTH-335)."""
    one = Guarded()
    exchange = request(one.endpoint, "POST", {**POST, **headers}, body)
    one.turn()
    assert is_challenged(exchange, status)
    assert not one.events


def test_a_request_is_refused_before_its_body_has_come() -> None:
    """A stranger must not make the server wait, or hold what it sends (AUTH-335)."""
    one = Guarded()
    message = modern_tool_call()
    fields = {**POST, **modern_headers(message)}
    exchange = one.endpoint.exchange("POST", "/mcp", fields)
    exchange.receive_data(body_of(message)[:10])
    one.turn()
    assert is_challenged(exchange)
    assert one.endpoint.held_bytes == 0


def test_a_stream_can_be_ended_with_its_token() -> None:
    """What an expired token has opened is not closed by itself, but it can be found (AUTH-011)."""
    one = Guarded()
    session = one.session()
    stream = request(one.endpoint, "GET", {**GET, **session, **USER})
    call = post(one.endpoint, progressing(), {**session, **SECOND})
    one.turn()
    handle = one.asked()
    begun = answer(stream)
    ends = [exchange.principal.ends_at for exchange in (stream, call)]
    assert ends == [AT + 90, AT + 630], "the leeway of 30 seconds is included"

    stream.receive_disconnect()  # at that time, by whoever keeps the time
    assert more(stream, begun).body == b""
    assert one.endpoint.send_result(handle, {"content": []})
    assert answer(call).status == 200
    again = request(one.endpoint, "GET", {**GET, **session, **USER})
    one.turn(AT + 90)
    assert is_challenged(again)
    again = request(one.endpoint, "GET", {**GET, **session, **SECOND})
    one.turn(AT + 90)
    assert take(again) is not None


def test_a_token_without_an_expiry_has_no_end() -> None:
    """Its authorization server is asked at each request."""
    access = ResourceServer(resource_of())
    check = access.check("POST", "/mcp", USER, at=AT)
    assert isinstance(access.next_event(), TokenReceived)
    assert access.verified(check, claims_of(exp=None), needs_expiry=False, at=AT)
    event = access.next_event()
    assert isinstance(event, AccessGranted)
    assert event.token.ends_at is None
