"""Messages of 2026-07-28, and connections that speak it.

The helpers in `tests.support.wire` are for both eras.
"""

from collections.abc import Iterable
from typing import Any, Final

from sansmcp import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    Cache,
    CachePartition,
    ClientConnection,
    Config,
    IncomingRequest,
    InputRequired,
    JSONObject,
    OutgoingRequest,
    Ready,
    RequestReceived,
    ServerConnection,
    Subscription,
    SubscriptionAcknowledged,
)
from tests.support.wire import (
    CLIENT_INFO,
    SERVER_CAPABILITIES,
    SERVER_INFO,
    call,
    error,
    new_client,
    new_server,
    note,
    of,
    only,
    receive,
    result,
    sent,
)

MODERN: Final = "2026-07-28"
LEGACY: Final = LEGACY_REVISIONS[-1]
"""The newest revision with a handshake."""
BOTH: Final = (*LEGACY_REVISIONS, *MODERN_REVISIONS)
"""The revisions of a connection that speaks both eras."""

VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT: Final = "io.modelcontextprotocol/clientInfo"
SERVER: Final = "io.modelcontextprotocol/serverInfo"
LEVEL: Final = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"

EVERYTHING: Final[JSONObject] = {
    "roots": {},
    "sampling": {"tools": {}},
    "elicitation": {"form": {}, "url": {}},
}
"""Capabilities of a client to which a server may send every question."""

SERVED_BY: Final[JSONObject] = {SERVER: SERVER_INFO}
"""The `_meta` of every result that a server from `new_server` sends."""

CACHE: Final[JSONObject] = {"ttlMs": 0, "cacheScope": "private"}
"""The caching hints of a server whose application has set none."""

FORM: Final[JSONObject] = {
    "method": "elicitation/create",
    "params": {"message": "Name?", "requestedSchema": {"type": "object", "properties": {}}},
}
ROOTS: Final[JSONObject] = {"method": "roots/list"}
SAMPLE: Final[JSONObject] = {
    "method": "sampling/createMessage",
    "params": {"messages": [], "maxTokens": 1},
}

URL: Final[JSONObject] = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Key?", "url": "https://example.com"},
}

LISTEN: Final = "subscriptions/listen"
FILE: Final = "file:///a"
TOOLS: Final[JSONObject] = {"toolsListChanged": True}
WHOLE_FILTER: Final[JSONObject] = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": [FILE],
}
"""A filter that asks for everything that `SERVER_CAPABILITIES` offers."""


# ---------------------------------------------------------------------------------- messages


def envelope(capabilities: object = None, **changed: object) -> JSONObject:
    """The `_meta` of a request, with the capabilities `EVERYTHING` by default.

    `changed` has the members with other values: `version`, `info`, `level`, and any other under its
    full name. None leaves a member out.
    """
    meta: JSONObject = {
        VERSION: MODERN,
        CAPABILITIES: EVERYTHING if capabilities is None else capabilities,
        CLIENT: CLIENT_INFO,
    }
    names = {"version": VERSION, "info": CLIENT, "level": LEVEL}
    for name, value in changed.items():
        meta[names.get(name, name)] = value
    return {name: value for name, value in meta.items() if value is not None}


def modern(
    id: object, method: str, params: JSONObject | None = None, meta: JSONObject | None = None
) -> JSONObject:
    """A request with its envelope, which is `envelope()` by default."""
    return call(id, method, {**(params or {}), "_meta": envelope() if meta is None else meta})


def listen(id: object, filter: object) -> JSONObject:
    """The request for a subscription."""
    return modern(id, LISTEN, {"notifications": filter})


def acknowledged(id: object, honoured: JSONObject) -> JSONObject:
    """The first message of a subscription."""
    params = {"notifications": honoured, "_meta": {SUBSCRIPTION: id}}
    return note("notifications/subscriptions/acknowledged", params)


def changed(tag: object, what: str = "tools/list_changed", **params: object) -> JSONObject:
    """A notification of a change, for the subscription with this id."""
    return note(f"notifications/{what}", {**params, "_meta": {SUBSCRIPTION: tag}})


def cancelled(id: object, **more: object) -> JSONObject:
    """The cancellation of the request with this id."""
    return note("notifications/cancelled", {"requestId": id, **more})


def complete(id: object, value: JSONObject | None = None) -> JSONObject:
    """The response of a server from `new_server` with this result."""
    return result(id, {**(value or {}), "_meta": SERVED_BY, "resultType": "complete"})


def discovered(
    capabilities: JSONObject | None = None, versions: Iterable[str] = MODERN_REVISIONS, **more: Any
) -> JSONObject:
    """A `DiscoverResult`."""
    return {
        "supportedVersions": list(versions),
        "capabilities": SERVER_CAPABILITIES if capabilities is None else capabilities,
        "resultType": "complete",
        **CACHE,
        "_meta": SERVED_BY,
        **more,
    }


def handshake(revision: str = LEGACY) -> JSONObject:
    """An `InitializeResult`."""
    return {"protocolVersion": revision, "capabilities": {}, "serverInfo": SERVER_INFO}


def input_required(id: object, questions: object = None, state: object = None) -> JSONObject:
    """An input-required response; None leaves a member out."""
    members = {"inputRequests": questions, "requestState": state}
    given = {name: value for name, value in members.items() if value is not None}
    return result(id, {"resultType": "input_required", **given})


# ------------------------------------------------------------------------------- connections


def modern_server(
    *,
    capabilities: JSONObject = SERVER_CAPABILITIES,
    revisions: Iterable[str] = MODERN_REVISIONS,
    config: Config | None = None,
) -> ServerConnection:
    """A server that has received nothing yet, of the modern era only by default."""
    return new_server(capabilities=capabilities, revisions=revisions, config=config)


def modern_client(
    *,
    capabilities: JSONObject = EVERYTHING,
    server: JSONObject | None = None,
    revisions: Iterable[str] = MODERN_REVISIONS,
    config: Config | None = None,
    cache: Cache | CachePartition | None = None,
) -> ClientConnection:
    """A client that has found a modern server with these capabilities. Its probe had the id 1."""
    client = new_client(capabilities=capabilities, revisions=revisions, config=config, cache=cache)
    client.start()
    (probe,) = sent(client)
    assert probe["method"] == "server/discover"
    only(Ready, receive(client, result(probe["id"], discovered(server))))
    return client


def probing(revisions: Iterable[str] = BOTH, **options: Any) -> ClientConnection:
    """A client that has sent its probe, with the id 1, and has no response yet."""
    client = new_client(revisions=revisions)
    client.start(**options)
    (probe,) = sent(client)
    assert (probe["id"], probe["method"]) == (1, "server/discover")
    return client


def fallen_back(**options: Any) -> ClientConnection:
    """A client whose probe was refused, and which has sent `initialize` with the id 2."""
    client = probing(**options)
    assert receive(client, error(1, -32601)) == []
    (message,) = sent(client)
    assert (message["id"], message["method"]) == (2, "initialize")
    return client


def subscribed(
    client: ClientConnection, notifications: JSONObject = TOOLS, **options: Any
) -> Subscription:
    """A subscription that the server has acknowledged in full."""
    subscription = client.listen(notifications, **options)
    (message,) = sent(client)
    answer = receive(client, acknowledged(message["id"], notifications))
    assert only(SubscriptionAcknowledged, answer).subscription is subscription
    return subscription


def in_question(
    client: ClientConnection, questions: JSONObject, state: str | None = None, **options: Any
) -> OutgoingRequest:
    """A `tools/call` of this client, to which the server has sent these questions."""
    params = {"name": "t", "arguments": {"a": 1}}
    call = client.send_request("tools/call", params, **options)
    (message,) = sent(client)
    event = only(InputRequired, receive(client, input_required(message["id"], questions, state)))
    assert event.request is call
    return call


def requested(server: ServerConnection, message: JSONObject) -> IncomingRequest:
    """The handle of a request that the application is to answer. Earlier events are dropped."""
    (event,) = of(RequestReceived, receive(server, message))
    return event.request


def questioned(
    server: ServerConnection, request: IncomingRequest, *names: str, timeout: float | None = None
) -> list[int]:
    """Ask a client of a legacy revision for its roots, once under each of these names.

    With a timeout, the clock is at 10. Returns the ids of the requests that were sent.
    """
    now = None if timeout is None else 10.0
    assert server.require_input(request, dict.fromkeys(names, ROOTS), timeout=timeout, now=now)
    asked = sent(server)
    assert [message["method"] for message in asked] == ["roots/list"] * len(names)
    return [message["id"] for message in asked]
