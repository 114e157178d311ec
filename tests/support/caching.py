"""Clients with a cache, and requests that it answers or does not answer."""

from typing import Any, Final

from sansmcp import (
    Cache,
    CacheHit,
    CachePartition,
    ClientConnection,
    Config,
    Event,
    JSONObject,
    ResponseReceived,
)
from tests.support.modern import complete, modern_client
from tests.support.wire import drain, of, only, receive, sent

FILE: Final = "file:///a"
FRESH: Final = 60_000
"""A `ttlMs`: one minute."""


def caching_client(
    cache: Cache | CachePartition | None = None, *, now: float | None = 0.0, **settings: Any
) -> ClientConnection:
    """A client of 2026-07-28 with a cache, whose clock stands at `now`."""
    client = modern_client(cache=Cache() if cache is None else cache, **settings)
    if now is not None:
        client.handle_timeout(now)
    return client


def hints(ttl: object = FRESH, scope: object = "public") -> JSONObject:
    """The caching hints of a result."""
    return {"ttlMs": ttl, "cacheScope": scope}


def tools(*names: str, cursor: str | None = None, **more: Any) -> JSONObject:
    """A page of tools, public and fresh for a minute where nothing else is said."""
    listed: list[JSONObject] = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    page: JSONObject = {"tools": listed, **hints(), **more}
    return page if cursor is None else {**page, "nextCursor": cursor}


def contents(text: str, **more: Any) -> JSONObject:
    """The result of `resources/read`, public and fresh for a minute where nothing else is said."""
    return {"contents": [{"uri": FILE, "text": text}], **hints(), **more}


def asked(
    client: ClientConnection,
    method: str,
    params: JSONObject | None = None,
    **options: Any,
) -> JSONObject:
    """Send a request that the cache does not answer; the message that the server gets."""
    client.send_request(method, params, **options)
    assert drain(client) == []
    (message,) = sent(client)
    assert message["method"] == method
    found: JSONObject = message
    return found


def fetch(
    client: ClientConnection,
    answer: JSONObject,
    method: str = "tools/list",
    params: JSONObject | None = None,
    **options: Any,
) -> list[Event]:
    """Send a request that the cache does not answer, and let the server answer it."""
    message = asked(client, method, params, **options)
    events = receive(client, complete(message["id"], answer))
    (event,) = of(ResponseReceived, events)
    assert event.cached is None
    return events


def served(
    client: ClientConnection,
    method: str = "tools/list",
    params: JSONObject | None = None,
    **options: Any,
) -> tuple[JSONObject, CacheHit]:
    """Send a request that the cache answers; the result, and what the event says of it."""
    call = client.send_request(method, params, **options)
    event = only(ResponseReceived, drain(client))
    assert sent(client) == []
    assert event.request is call
    assert not call.open
    assert event.cached is not None
    return event.result, event.cached


def is_served(
    client: ClientConnection,
    method: str = "tools/list",
    params: JSONObject | None = None,
    **options: Any,
) -> bool:
    """Whether the cache answers a request; else the server leaves it open."""
    client.send_request(method, params, **options)
    messages = sent(client)
    assert len(messages) + len(drain(client)) == 1
    return messages == []


def names_of(result: JSONObject) -> list[str]:
    """The names of the tools in a page."""
    return [tool["name"] for tool in result["tools"]]


STRICT: Final = Config(check="none")
"""Of a client that takes results as they come."""
