"""The official examples of 2026-07-28 are accepted, and produced where a connection can.

Whole messages are compared, as far as a connection lets its caller choose: the ids of
`server/discover` and `subscriptions/listen` are its own. A server that is to produce an example
does not name itself, unless the example does.
"""

from importlib import import_module
from typing import Final

import pytest

from sansmcp import (
    Change,
    ClientConnection,
    Config,
    ErrorReceived,
    JSONObject,
    ListenerAdded,
    NotificationReceived,
    ProgressReceived,
    PromptsListChanged,
    Ready,
    RequestAnswered,
    RequestCancelled,
    RequestReceived,
    ResourcesListChanged,
    ResourceUpdated,
    ResponseReceived,
    ServerConnection,
    SubscriptionAcknowledged,
    SubscriptionEnded,
    ToolsListChanged,
)
from tests.support.examples import (
    CLIENT_INFO,
    FILES,
    MAIN,
    METHODS,
    SERVER_INFO,
    a_client,
    a_server,
    ask,
    asked,
    of_kinds,
    seen,
    without_meta,
)
from tests.support.modern import (
    CACHE,
    CAPABILITIES,
    LEVEL,
    MODERN,
    SUBSCRIPTION,
    envelope,
    modern,
    requested,
)
from tests.support.wire import (
    broken,
    call,
    of,
    only,
    receive,
    result,
    sent,
)

CHANGES: Final[dict[str, Change]] = {
    "PromptListChanged": PromptsListChanged(),
    "ResourceListChanged": ResourcesListChanged(),
    "ResourceUpdated": ResourceUpdated(MAIN),
    "ToolListChanged": ToolsListChanged(),
}

# ------------------------------------------------------------------------------------- requests


@of_kinds(*METHODS, "Discover", "SubscriptionsListen", suffix="Request")
def test_requests(kind: str, value: JSONObject) -> None:
    """A server must accept each request, and a client write it in the same way."""
    method, params = value["method"], value["params"]
    events = receive(a_server(), value)
    assert broken(events) == []
    if kind == "Discover":
        assert of(RequestAnswered, events)[0].code is None
        client = ClientConnection(info=CLIENT_INFO, revisions=(MODERN,))
        client.start()
    elif kind == "SubscriptionsListen":
        assert of(ListenerAdded, events)[0].listener.honoured == params["notifications"]
        client = a_client()
        client.listen(params["notifications"])
    else:
        request = of(RequestReceived, events)[0].request
        assert (request.id, request.method, request.params) == (value["id"], method, params)
        client = a_client()
        client.send_request(method, without_meta(params), id=value["id"])
    (message,) = sent(client)
    own_id = kind in ("Discover", "SubscriptionsListen")
    assert message == (value | {"id": message["id"]} if own_id else value)


@of_kinds(*METHODS, suffix="RequestParams")
def test_params_of_requests(kind: str, value: JSONObject) -> None:
    """The client must add the envelope, and the caller's progress token be kept."""
    method = METHODS[kind]
    request = requested(a_server(), call(1, method, value))
    assert request.params == value
    token = value["_meta"].get("progressToken")
    assert request.progress_token == token
    client = a_client()
    meta = {} if token is None else {"progressToken": token}
    client.send_request(method, without_meta(value), meta=meta)
    if kind == "Paginated":
        client.send_paginated(method, without_meta(value))
    assert [message["params"] for message in sent(client)] == [value] * (1 + (kind == "Paginated"))


# -------------------------------------------------------------------------------------- results


@of_kinds(*METHODS, suffix="Result")
@pytest.mark.parametrize("names_its_kind", [True, False])
def test_results(kind: str, value: JSONObject, names_its_kind: bool) -> None:
    """A server must add the kind of a result and its caching hints where they are missing."""
    client = a_client()
    handle = ask(client, METHODS[kind])
    received = only(ResponseReceived, receive(client, result(handle.id, value)))
    assert (received.request, received.result) == (handle, value)
    server = a_server()
    request = asked(server, METHODS[kind])
    assert value["resultType"] == "complete"
    kept = {name: part for name, part in value.items() if names_its_kind or name != "resultType"}
    server.send_result(request, kept)
    assert sent(server) == [result(1, value)]


@of_kinds(*METHODS, suffix="ResultResponse")
def test_answers_with_results(kind: str, value: JSONObject) -> None:
    """One example lacks the caching hint that it must have (CACHE-001)."""
    method = METHODS[kind]
    client = a_client()
    handle = ask(client, method, id=value["id"])
    assert only(ResponseReceived, receive(client, value)).request is handle
    server = a_server()
    server.send_result(asked(server, method, value["id"]), value["result"])
    hints = CACHE if method.endswith(("list", "read")) else {}
    assert sent(server) == [result(value["id"], {**hints, **value["result"]})]


@of_kinds("DiscoverResult", "DiscoverResultResponse")
def test_discovery(kind: str, value: JSONObject) -> None:
    """A server must give its description in this form, and a client read it."""
    response = value if kind.endswith("Response") else result("discover-1", value)
    said = response["result"]
    client = ClientConnection(info=CLIENT_INFO, revisions=(MODERN,))
    client.start()
    ready = only(Ready, receive(client, {**response, "id": 1}))
    assert ready.peer.info == SERVER_INFO
    assert ready.peer.capabilities == said["capabilities"]
    assert ready.peer.instructions == said.get("instructions")
    server = ServerConnection(
        info=SERVER_INFO,
        capabilities=said["capabilities"],
        instructions=said.get("instructions"),
        revisions=said["supportedVersions"],
        config=Config(cache_ttl_ms=said["ttlMs"], cache_scope=said["cacheScope"]),
    )
    receive(server, modern("discover-1", "server/discover"))
    assert sent(server) == [response]


@of_kinds("SubscriptionsListenResult", "SubscriptionsListenResultResponse")
def test_end_of_a_subscription(kind: str, value: JSONObject) -> None:
    """The result must have the tag of the subscription, as its notifications have."""
    response = value if kind.endswith("Response") else result("listen-1", value)
    client = a_client()
    subscription = client.listen({})
    (message,) = sent(client)
    ended = {**response["result"], "_meta": {SUBSCRIPTION: message["id"]}}
    events = receive(client, result(message["id"], ended))
    assert of(SubscriptionEnded, events)[0].subscription is subscription
    server = a_server()
    server.end_listener(listened(server).listener)
    assert sent(server)[0] == response


# -------------------------------------------------------------------------------- notifications


def listened(server: ServerConnection) -> ListenerAdded:
    """The subscription of the examples, with all kinds of changes."""
    names = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
    wanted = {**dict.fromkeys(names, True), "resourceSubscriptions": [MAIN]}
    message = modern("listen-1", "subscriptions/listen", {"notifications": wanted})
    (added,) = of(ListenerAdded, receive(server, message))
    sent(server)
    return added


def as_message(method: str, value: JSONObject) -> JSONObject:
    """An example of a notification, or of its params."""
    if "method" not in value:
        return {"jsonrpc": "2.0", "method": method, "params": value}
    assert value["method"] == method
    return value


@of_kinds("CancelledNotification", "CancelledNotificationParams")
def test_cancellation(kind: str, value: JSONObject) -> None:
    """A cancellation must have the id of the request."""
    message = as_message("notifications/cancelled", value)
    params = message["params"]
    server = a_server()
    request = asked(server, "tools/call", params["requestId"])
    event = only(RequestCancelled, receive(server, message))
    assert (event.request, event.reason) == (request, params["reason"])
    client = a_client()
    client.cancel(ask(client, "tools/call", id=params["requestId"]), reason=params["reason"])
    assert sent(client) == [message]


@of_kinds("ProgressNotification", "ProgressNotificationParams")
def test_progress(kind: str, value: JSONObject) -> None:
    """Progress must have the token of the request."""
    message = as_message("notifications/progress", value)
    params = message["params"]
    token = {"progressToken": params["progressToken"]}
    client = a_client()
    ask(client, "tools/call", meta=token)
    event = only(ProgressReceived, receive(client, message))
    assert (event.progress, event.total, event.message) == (50, 100, params["message"])
    server = a_server()
    request = asked(server, "tools/call", **token)
    server.send_progress(request, 50, total=100, message=params["message"])
    assert sent(server) == [message]


@of_kinds("LoggingMessageNotification", "LoggingMessageNotificationParams")
def test_log_message(kind: str, value: JSONObject) -> None:
    """A log message must be sent only for a request with a level."""
    message = as_message("notifications/message", value)
    params = message["params"]
    event = only(NotificationReceived, receive(a_client(), message))
    assert (event.method, event.params) == (message["method"], params)
    server = a_server()
    request = asked(server, "tools/call", **{LEVEL: "debug"})
    server.send_log(params["level"], params["data"], logger=params["logger"], request=request)
    assert sent(server) == [message]


@of_kinds(*CHANGES, suffix="Notification")
def test_changes(kind: str, value: JSONObject) -> None:
    """Changes must have the tag of the subscription."""
    client = a_client()
    client.listen({})
    (message,) = sent(client)
    tag = {"_meta": {SUBSCRIPTION: message["id"]}}
    events = receive(client, {**value, "params": {**value["params"], **tag}})
    assert of(NotificationReceived, events)[0].method == value["method"]
    server = a_server()
    listened(server)
    server.publish(CHANGES[kind])
    assert sent(server) == [value]


@of_kinds("ResourceUpdatedNotificationParams")
def test_params_of_a_change(kind: str, value: JSONObject) -> None:
    """This example has no tag, so the change must be delivered, and the lack be reported
    (SUBS-009)."""
    events = receive(a_client(), as_message("notifications/resources/updated", value))
    assert broken(events) == ["SUBS-009"]
    assert of(NotificationReceived, events)[0].params == value
    server = a_server()
    listened(server)
    server.publish(ResourceUpdated(value["uri"]))
    assert without_meta(sent(server)[0]["params"]) == value


@of_kinds("SubscriptionsAcknowledgedNotification")
def test_acknowledgement(kind: str, value: JSONObject) -> None:
    """The acknowledgement must be the first message of a subscription."""
    honoured = value["params"]["notifications"]
    client = a_client()
    client.listen(honoured)
    (message,) = sent(client)
    params = {**value["params"], "_meta": {SUBSCRIPTION: message["id"]}}
    event = only(SubscriptionAcknowledged, receive(client, {**value, "params": params}))
    assert event.notifications == honoured
    server = a_server()
    receive(server, modern("listen-1", "subscriptions/listen", {"notifications": honoured}))
    assert sent(server) == [value]


# --------------------------------------------------------------------------------------- errors


@of_kinds(
    *("HeaderMismatch", "Internal", "InvalidParams", "MethodNotFound", "Parse"),
    *("MissingRequiredClientCapability", "UnsupportedProtocolVersion"),
    suffix="Error",
)
def test_errors(kind: str, value: JSONObject) -> None:
    """Some examples are whole messages, others the error in a message."""
    body: JSONObject = value.get("error", value)
    client = a_client()
    handle = ask(client, "tools/call")
    message = {"jsonrpc": "2.0", "id": handle.id, "error": body}
    event = only(ErrorReceived, receive(client, message))
    data = body.get("data")
    assert (event.code, event.message, event.data) == (body["code"], body["message"], data)
    server = a_server()
    more = {"data": data} if "data" in body else {}
    server.send_error(asked(server, "tools/call"), body["code"], body["message"], **more)
    assert sent(server) == [{"jsonrpc": "2.0", "id": 1, "error": body}]


@of_kinds("UnsupportedProtocolVersionError")
def test_unsupported_version(kind: str, value: JSONObject) -> None:
    """A server must send this error by itself."""
    data = value["error"]["data"]
    server = ServerConnection(info=SERVER_INFO, revisions=data["supported"])
    receive(server, modern(value["id"], "tools/list", meta=envelope(version=data["requested"])))
    (answer,) = sent(server)
    assert (answer["id"], answer["error"]["code"]) == (value["id"], value["error"]["code"])
    assert answer["error"]["data"] == data


@of_kinds("ParseError")
def test_parse_error(kind: str, value: JSONObject) -> None:
    """A server must send this error by itself."""
    server = a_server()
    receive(server, b"{no JSON\n")
    assert sent(server)[0]["error"]["code"] == value["code"]


# ---------------------------------------------------------------------------------- capabilities


@of_kinds("ClientCapabilities")
def test_capabilities_of_clients(kind: str, value: JSONObject) -> None:
    """Capabilities must be sent with every request as they were declared."""
    client = a_client(value)
    client.send_request("tools/list")
    (message,) = sent(client)
    assert message["params"]["_meta"][CAPABILITIES] == value
    assert requested(a_server(), message).peer_capabilities == value


@of_kinds("ServerCapabilities")
def test_capabilities_of_servers(kind: str, value: JSONObject) -> None:
    """`server/discover` must return the capabilities as they were declared."""
    server = ServerConnection(info=SERVER_INFO, capabilities=value, revisions=(MODERN,))
    receive(server, modern(1, "server/discover"))
    (answer,) = sent(server)
    assert answer["result"]["capabilities"] == value
    client = ClientConnection(info=CLIENT_INFO, revisions=(MODERN,))
    client.start()
    assert only(Ready, receive(client, answer)).peer.capabilities == value


def test_no_example_is_left_out() -> None:
    """A new example in the specification data must get a test here."""
    import_module("tests.connection.modern.test_examples_of_questions")  # its own count, too
    assert {path.parent.name for path in FILES} <= seen
