"""Connections after the handshake, and messages that a peer would send.

These helpers use bytes and the public API only, so that a test shows the bytes on the wire.
"""

import itertools
import json
from collections.abc import Iterable
from typing import Any, Final, TypeAlias, TypeVar

from sansmcp import (
    LEGACY_REVISIONS,
    MISSING,
    Cache,
    CachePartition,
    ClientConnection,
    Config,
    Event,
    IncomingRequest,
    JSONObject,
    ProtocolViolation,
    Ready,
    RequestReceived,
    ServerConnection,
)

Connection: TypeAlias = ClientConnection | ServerConnection
E = TypeVar("E", bound=Event)

CLIENT_INFO: Final[JSONObject] = {"name": "client", "version": "1"}
SERVER_INFO: Final[JSONObject] = {"name": "server", "version": "1"}

CLIENT_CAPABILITIES: Final[JSONObject] = {
    "roots": {"listChanged": True},
    "sampling": {},
    "elicitation": {},
}
SERVER_CAPABILITIES: Final[JSONObject] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}

SAMPLING: Final[JSONObject] = {"messages": [], "maxTokens": 1}
SAMPLED: Final[JSONObject] = {
    "role": "assistant",
    "model": "m",
    "content": {"type": "text", "text": "hi"},
}

_probes = itertools.count(1)


# ---------------------------------------------------------------------------------- messages


def call(id: object, method: object, params: object = MISSING) -> JSONObject:
    """A request. Each part may be invalid, for tests of bad requests."""
    message: JSONObject = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not MISSING:
        message["params"] = params
    return message


def note(method: str, params: object = MISSING) -> JSONObject:
    """A notification."""
    message: JSONObject = {"jsonrpc": "2.0", "method": method}
    if params is not MISSING:
        message["params"] = params
    return message


def result(id: object, value: object) -> JSONObject:
    """A success response."""
    return {"jsonrpc": "2.0", "id": id, "result": value}


def error(id: object, code: int, message: str = "no", data: object = MISSING) -> JSONObject:
    """An error response."""
    body: JSONObject = {"code": code, "message": message}
    if data is not MISSING:
        body["data"] = data
    return {"jsonrpc": "2.0", "id": id, "error": body}


def initialize(id: object, revision: object, capabilities: object = None) -> JSONObject:
    """The first message of a client."""
    params = {
        "protocolVersion": revision,
        "capabilities": CLIENT_CAPABILITIES if capabilities is None else capabilities,
        "clientInfo": CLIENT_INFO,
    }
    return call(id, "initialize", params)


INITIALIZED: Final[JSONObject] = note("notifications/initialized")


def wire(*messages: object) -> bytes:
    """The bytes of these messages, each on a line of its own. Bytes are passed on unchanged."""
    return b"".join(
        message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        for message in messages
    )


def lines(data: bytes) -> list[Any]:
    """The messages in some output, which must consist of complete lines."""
    if not data:
        return []
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data[:-1].split(b"\n")]


# --------------------------------------------------------------------------------- exchanges


def drain(connection: Connection) -> list[Event]:
    """All events that wait."""
    events: list[Event] = []
    while (event := connection.next_event()) is not None:
        events.append(event)
    return events


def receive(connection: Connection, *messages: object, now: float | None = None) -> list[Event]:
    """Pass messages of the peer to a connection at once, and return all events that they cause."""
    connection.receive_data(wire(*messages), now=now)
    return drain(connection)


def sent(connection: Connection) -> list[Any]:
    """All messages that wait to be sent."""
    return lines(connection.data_to_send())


def of(kind: type[E], events: Iterable[Event]) -> list[E]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def only(kind: type[E], events: list[Event]) -> E:
    """The event in a list of one event, which must be of this kind."""
    assert [type(event) for event in events] == [kind], events
    event = events[0]
    assert isinstance(event, kind)
    return event


def broken(events: Iterable[Event]) -> list[str]:
    """The rules that were reported as broken, in order."""
    return [event.rule for event in of(ProtocolViolation, events)]


def asked(server: Connection, message: JSONObject) -> IncomingRequest:
    """The handle of a request that the peer sends, and that the application is to answer."""
    return only(RequestReceived, receive(server, message)).request


def refusals(messages: Iterable[JSONObject]) -> list[tuple[Any, int]]:
    """The id and the code of each error. The id is MISSING where the error has none."""
    return [(message.get("id", MISSING), message["error"]["code"]) for message in messages]


def without_id(revision: str, *codes: int) -> list[tuple[Any, int]]:
    """The value of `refusals` for errors that cannot name a request.

    It is empty until 2025-06-18, whose schema has no errors without an id.
    """
    return [(MISSING, code) for code in codes] if revision == "2025-11-25" else []


def assert_usable(connection: Connection) -> None:
    """Demand that nothing waits to be sent, and that the connection still answers a request."""
    id = f"still there? {next(_probes)}"
    assert not drain(connection)
    assert not sent(connection)
    receive(connection, call(id, "ping"))
    assert sent(connection) == [result(id, {})]


# ------------------------------------------------------------------------------- connections


def new_client(
    *,
    capabilities: JSONObject = CLIENT_CAPABILITIES,
    revisions: Iterable[str] = LEGACY_REVISIONS,
    requires: Iterable[str] = (),
    config: Config | None = None,
    cache: Cache | CachePartition | None = None,
) -> ClientConnection:
    """A client that has sent nothing yet."""
    return ClientConnection(
        info=CLIENT_INFO,
        capabilities=capabilities,
        revisions=tuple(revisions),
        requires=requires,
        config=config,
        cache=cache,
    )


def new_server(
    *,
    capabilities: JSONObject = SERVER_CAPABILITIES,
    revisions: Iterable[str] = LEGACY_REVISIONS,
    config: Config | None = None,
) -> ServerConnection:
    """A server that has received nothing yet."""
    return ServerConnection(
        info=SERVER_INFO, capabilities=capabilities, revisions=tuple(revisions), config=config
    )


def initialized_by(revision: str, capabilities: JSONObject | None = None) -> JSONObject:
    """The result of `initialize` by which a server agrees to a revision."""
    return {
        "protocolVersion": revision,
        "capabilities": SERVER_CAPABILITIES if capabilities is None else capabilities,
        "serverInfo": SERVER_INFO,
    }


def ready_client(
    revision: str,
    *,
    server: JSONObject | None = None,
    capabilities: JSONObject = CLIENT_CAPABILITIES,
    config: Config | None = None,
) -> ClientConnection:
    """A client after the handshake at this revision with a server of these capabilities."""
    client = new_client(capabilities=capabilities, config=config)
    client.start()
    (first,) = sent(client)
    # Odd capabilities are reported before `Ready`.
    (_,) = of(Ready, receive(client, result(first["id"], initialized_by(revision, server))))
    assert sent(client) == [INITIALIZED]
    return client


def ready_server(
    revision: str,
    *,
    client: JSONObject | None = None,
    capabilities: JSONObject = SERVER_CAPABILITIES,
    config: Config | None = None,
) -> ServerConnection:
    """A server after the handshake at this revision with a client with these capabilities.

    The client has used the id "hello", so a test may use any number as an id.
    """
    server = new_server(capabilities=capabilities, config=config)
    receive(server, initialize("hello", revision, client))
    (answer,) = sent(server)
    assert answer["result"]["protocolVersion"] == revision
    only(Ready, receive(server, INITIALIZED))
    return server
