"""Caches of clients over HTTP: the URL is the server, and the headers are the context."""

import pytest

from sansmcp import (
    Cache,
    CachePartition,
    ErrorReceived,
    JSONObject,
    RequestFailed,
    ResponseReceived,
)
from sansmcp.http import ClientEndpoint
from tests.support.caching import hints, names_of, tools
from tests.support.http.client_endpoint import (
    URL,
    events_of,
    exchanges_of,
    fields_of,
    message_of,
    only,
    opened,
    respond,
    take,
)
from tests.support.modern import MODERN, complete
from tests.support.wire import error

ALICE = {"Authorization": "Bearer alice"}
BOB = {"Authorization": "Bearer bob"}


def endpoint(
    cache: Cache | CachePartition, headers: dict[str, str] | None = None, url: str = URL
) -> ClientEndpoint:
    """A client of 2026-07-28 that is open, with these headers."""
    return opened(MODERN, cache=cache, headers=headers or {}, authorize=True, url=url)


def fetch(client: ClientEndpoint, answer: JSONObject, now: float | None = None) -> None:
    """List the tools; the server answers."""
    client.send_request("tools/list", now=now)
    exchange = take(client)
    respond(exchange, body=complete(message_of(exchange)["id"], answer))
    assert only(ResponseReceived, events_of(client)).cached is None


def served(client: ClientEndpoint, now: float | None = None) -> list[str]:
    """The names of the tools in the cache; none if the server is asked."""
    call = client.send_request("tools/list", now=now)
    exchanges = exchanges_of(client)
    events = events_of(client)
    if exchanges:
        client.cancel(call)
        events_of(client)
        return []
    event = only(ResponseReceived, events)
    assert event.cached is not None
    return names_of(event.result)


def test_a_response_from_the_cache_makes_no_exchange() -> None:
    """The event is there at once."""
    client = endpoint(Cache())
    fetch(client, tools("a"))
    assert served(client, now=59.0) == ["a"]
    assert served(client, now=60.0) == []


def test_endpoints_with_one_url_share_public_responses() -> None:
    """CACHE-016, CACHE-005: a gateway has many clients of one server, and several servers."""
    cache = Cache()
    fetch(endpoint(cache, ALICE), tools("a"))
    assert served(endpoint(cache, BOB)) == ["a"]
    assert served(endpoint(cache, BOB, url=f"{URL}/other")) == []


def test_endpoints_share_no_private_response() -> None:
    """CACHE-017: cookies and the like, which the endpoint does not see, may be others."""
    cache = Cache()
    one = endpoint(cache, ALICE)
    fetch(one, tools("a", cacheScope="private"))
    assert served(one) == ["a"]
    assert served(endpoint(cache, ALICE)) == []


def test_a_named_context_has_one_set_of_headers() -> None:
    """CACHE-017: the same user with another access token needs another cache."""
    cache = Cache()
    alice = cache.partition(context="alice")
    fetch(endpoint(alice, {**ALICE, "X-Tenant": "t"}), tools("a", cacheScope="private"))
    assert served(endpoint(alice, {"X-Tenant": "t", **ALICE})) == ["a"]
    assert served(endpoint(alice, ALICE)) == []
    assert served(endpoint(alice, {"Authorization": "Bearer alice2", "X-Tenant": "t"})) == []
    assert served(endpoint(cache.partition(context="bob"), {**ALICE, "X-Tenant": "t"})) == []


@pytest.mark.parametrize("other", [BOB, {}, {"AuthorizationB": "earer alice"}])
def test_other_headers_are_another_context(other: dict[str, str]) -> None:
    """CACHE-017: from the new token on, what belongs to the former one is not served."""
    client = endpoint(Cache(), ALICE)
    fetch(client, tools("a", cacheScope="private"))
    client.authorize(other)
    assert served(client) == []
    client.authorize(ALICE)
    assert served(client) == ["a"]


def test_public_responses_outlive_the_token() -> None:
    """CACHE-016: they do not depend on it."""
    client = endpoint(Cache(), ALICE)
    fetch(client, tools("a"))
    client.authorize(BOB)
    assert served(client) == ["a"]


@pytest.mark.parametrize("scope", ["private", "public"])
def test_a_response_to_a_request_with_former_headers_is_not_kept_if_private(scope: str) -> None:
    """CACHE-017: nobody can tell whose response it is."""
    client = endpoint(Cache(), ALICE)
    client.send_request("tools/list")
    exchange = take(client)
    client.authorize(BOB)
    respond(exchange, body=complete(message_of(exchange)["id"], tools("a", cacheScope=scope)))
    only(ResponseReceived, events_of(client))
    expected = ["a"] if scope == "public" else []
    assert served(client) == expected
    client.authorize(ALICE)
    assert served(client) == expected


def test_a_request_that_was_sent_again_with_other_credentials_is_not_kept() -> None:
    """CACHE-017: it was asked for by one user, and answered for another."""
    cache = Cache()
    client = endpoint(cache, ALICE)
    client.send_request("tools/list")
    respond(take(client), 401, more={"WWW-Authenticate": "Bearer"})
    client.authorize(BOB)
    exchange = take(client)
    assert fields_of(exchange)["authorization"] == "Bearer bob"
    client.authorize(ALICE)
    respond(exchange, body=complete(message_of(exchange)["id"], tools("b", cacheScope="private")))
    only(ResponseReceived, events_of(client))
    assert cache.entries == 0


def test_tools_from_the_cache_say_which_arguments_are_repeated_in_headers() -> None:
    """HDR-008: another endpoint has listed them, and the server refuses a call without."""
    cache = Cache()
    schema = {"type": "object", "properties": {"q": {"type": "string", "x-mcp-header": "Query"}}}
    listed = {"tools": [{"name": "t", "inputSchema": schema}], **hints()}
    fetch(endpoint(cache), listed)
    client = endpoint(cache)
    assert served(client) == ["t"]
    client.send_request("tools/call", {"name": "t", "arguments": {"q": "x"}})
    assert fields_of(take(client))["mcp-param-query"] == "x"
    fetched: JSONObject = {"resourceTemplates": [], **hints()}
    client.send_request("resources/templates/list")
    exchange = take(client)
    respond(exchange, body=complete(message_of(exchange)["id"], fetched))
    events_of(client)
    client.send_request("resources/templates/list")
    assert only(ResponseReceived, events_of(client)).result["resourceTemplates"] == []


@pytest.mark.parametrize(
    ("status", "has_body", "is_served"),
    [
        *((500, False, True), (503, False, True), (503, True, True), (500, True, True)),
        *((403, False, False), (404, True, False), (429, True, False), (400, False, False)),
    ],
)
def test_a_stale_response_is_served_if_the_server_is_down(
    status: int, has_body: bool, is_served: bool
) -> None:
    """CACHE-015: a server that fails is another thing than one that refuses."""
    client = endpoint(Cache(stale_if_error=30.0))
    fetch(client, tools("a"))
    client.send_request("tools/list", now=60.0)
    exchange = take(client)
    body = error(message_of(exchange)["id"], -32000) if has_body else b""
    respond(exchange, status, body=body)
    (event,) = [
        event
        for event in events_of(client)
        if isinstance(event, ResponseReceived | ErrorReceived | RequestFailed)
    ]
    assert isinstance(event, ResponseReceived) is is_served


def test_a_stale_response_is_not_served_to_one_whose_credentials_are_refused() -> None:
    """CACHE-017: the token may have been withdrawn."""
    client = opened(MODERN, cache=Cache(stale_if_error=30.0), headers=ALICE)
    fetch(client, tools("a", cacheScope="private"))
    client.send_request("tools/list", now=60.0)
    respond(take(client), 401, more={"WWW-Authenticate": "Bearer"})
    only(RequestFailed, events_of(client))


def test_a_stale_response_of_former_credentials_is_not_served() -> None:
    """CACHE-017: the request was begun by one user, and has failed for another."""
    client = endpoint(Cache(stale_if_error=30.0), ALICE)
    fetch(client, tools("a", cacheScope="private"))
    client.send_request("tools/list", now=60.0)
    exchange = take(client)
    client.authorize(BOB)
    respond(exchange, 503)
    only(RequestFailed, events_of(client))
