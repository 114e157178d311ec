"""Server endpoints for tests, requests as a client writes them, and the responses.

These helpers use the public API only. They check that each response is valid HTTP, or a valid
event stream; the messages in it are judged by the official schema.
"""

import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

import attrs

from sansmcp import (
    LEGACY_REVISIONS,
    Config,
    IncomingRequest,
    JSONObject,
    ProtocolViolation,
    RequestReceived,
)
from sansmcp.http import (
    HTTPEvent,
    SendBody,
    SendEnd,
    SendHead,
    ServerEndpoint,
    ServerExchange,
    ServerSentEvent,
    Session,
    Sessions,
    SessionStarted,
    SSEDecoder,
)
from tests.support.modern import BOTH, MODERN, modern
from tests.support.wire import (
    CLIENT_CAPABILITIES,
    INITIALIZED,
    SERVER_CAPABILITIES,
    SERVER_INFO,
    call,
    initialize,
    note,
)

Headers: TypeAlias = Mapping[str, str]
E = TypeVar("E", bound=HTTPEvent)

LEGACY: Final = LEGACY_REVISIONS[-1]
STREAMABLE: Final = LEGACY_REVISIONS[1:]
"""The legacy revisions that have Streamable HTTP."""
JSON: Final = "application/json"
SSE: Final = "text/event-stream"
POST: Final[Headers] = {"content-type": JSON, "accept": f"{JSON}, {SSE}"}
"""The headers of every POST of a client."""
GET: Final[Headers] = {"accept": SSE}
CHANGED: Final = note("notifications/tools/list_changed")
NO_FIELDS: Final[Headers] = {}


def sessions(**settings: Any) -> Sessions:
    """Sessions with the ids s1, s2, ..."""
    numbers = itertools.count(1)
    return Sessions(new_id=lambda: f"s{next(numbers)}", **settings)


def new_endpoint(
    *,
    revisions: Iterable[str] = BOTH,
    capabilities: JSONObject = SERVER_CAPABILITIES,
    stateless: bool = False,
    **settings: Any,
) -> ServerEndpoint:
    """An endpoint of both eras with sessions, unless `settings` differ."""
    chosen = tuple(revisions)
    if not stateless and chosen[0] in LEGACY_REVISIONS:
        settings.setdefault("sessions", sessions())
    return ServerEndpoint(info=SERVER_INFO, capabilities=capabilities, revisions=chosen, **settings)


# ------------------------------------------------------------------------------------ requests


def body_of(message: object) -> bytes:
    """The bytes of a message. Bytes are passed on unchanged."""
    return message if isinstance(message, bytes) else json.dumps(message).encode()


def request(
    endpoint: ServerEndpoint,
    method: str,
    headers: Headers = NO_FIELDS,
    body: bytes = b"",
    *,
    target: str = "/mcp",
    now: float | None = None,
    **about: Any,
) -> ServerExchange:
    """Send a complete request."""
    # Headers as servers pass them; other tests use text, and names in any case.
    fields = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    exchange = endpoint.exchange(method, target, fields, now=now, **about)
    if body:
        exchange.receive_data(body)
    exchange.receive_end()
    return exchange


def post(
    endpoint: ServerEndpoint, message: object, more: Headers = NO_FIELDS, **about: Any
) -> ServerExchange:
    """POST a message with the headers that every client sends."""
    return request(endpoint, "POST", {**POST, **more}, body_of(message), **about)


def modern_headers(message: JSONObject) -> dict[str, str]:
    """The headers that repeat members of a modern message."""
    params = message.get("params", {})
    fields = {"mcp-protocol-version": MODERN, "mcp-method": message["method"]}
    member = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(
        message["method"]
    )
    if member is not None and member in params:
        fields["mcp-name"] = params[member]
    return fields


def post_modern(
    endpoint: ServerEndpoint, message: JSONObject, more: Headers = NO_FIELDS, **about: Any
) -> ServerExchange:
    """POST a message of 2026-07-28 with its headers."""
    return post(endpoint, message, {**modern_headers(message), **more}, **about)


def tool_call(id: object = 1, name: str = "t", **arguments: Any) -> JSONObject:
    """A legacy `tools/call`."""
    return call(id, "tools/call", {"name": name, "arguments": arguments})


def modern_tool_call(id: object = 1, name: str = "t", **arguments: Any) -> JSONObject:
    """A `tools/call` with its envelope."""
    return modern(id, "tools/call", {"name": name, "arguments": arguments})


# ----------------------------------------------------------------------------------- responses


@attrs.frozen
class Response:
    """The output of an exchange so far."""

    status: int
    headers: dict[str, str]
    body: bytes
    ended: bool

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type") == SSE

    @property
    def json(self) -> Any:
        """The message in the body, which must be the only one."""
        assert self.headers["content-type"] == JSON
        assert int(self.headers["content-length"]) == len(self.body)
        assert self.ended
        return json.loads(self.body)

    @property
    def events(self) -> list[ServerSentEvent]:
        """The events of the stream."""
        assert self.is_stream
        items = SSEDecoder().feed(self.body)
        events = [item for item in items if isinstance(item, ServerSentEvent)]
        assert len(events) == len(items)
        return events

    @property
    def messages(self) -> list[Any]:
        """The messages in the events of the stream; priming events have none."""
        return [json.loads(event.data) for event in self.events if event.data]

    @property
    def last(self) -> Any:
        """The message in the body, or the last message of the stream."""
        return self.messages[-1] if self.is_stream else self.json

    @property
    def ids(self) -> list[str]:
        """The ids of the events of the stream."""
        return [event.id for event in self.events]


def take(exchange: ServerExchange) -> Response | None:
    """All output of an exchange so far; None if it has no head yet."""
    head = exchange.next_output()
    if head is None:
        return None
    assert isinstance(head, SendHead)
    return _rest(exchange, head)


def more(exchange: ServerExchange, before: Response) -> Response:
    """The output of an exchange after an earlier one."""
    return _rest(exchange, SendHead(before.status, _encoded(before.headers)))


def _encoded(headers: dict[str, str]) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((name.encode(), value.encode()) for name, value in headers.items())


def _rest(exchange: ServerExchange, head: SendHead) -> Response:
    body, ended = b"", False
    while (output := exchange.next_output()) is not None:
        assert not ended
        if isinstance(output, SendBody):
            assert output.data
            body += output.data
        else:
            assert isinstance(output, SendEnd)
            ended = True
    headers = {name.decode(): value.decode() for name, value in head.headers}
    assert len(headers) == len(head.headers)
    for name, value in headers.items():
        assert name == name.lower()
        assert not set(name + value) & set("\r\n\0")
    return Response(head.status, headers, body, ended)


def answer(exchange: ServerExchange) -> Response:
    """The response of an exchange, which must have one."""
    response = take(exchange)
    assert response is not None
    return response


# ------------------------------------------------------------------------------------- events


def drain(endpoint: ServerEndpoint) -> list[HTTPEvent]:
    """All events that wait."""
    events: list[HTTPEvent] = []
    while (event := endpoint.next_event()) is not None:
        events.append(event)
    return events


def of(kind: type[E], events: Iterable[HTTPEvent]) -> list[E]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def asked(endpoint: ServerEndpoint) -> IncomingRequest:
    """The handle of the request that arrived, which must be the only one."""
    (event,) = of(RequestReceived, drain(endpoint))
    return event.request


def broken(endpoint: ServerEndpoint) -> list[str]:
    """The rules that were reported as broken."""
    return [event.rule for event in of(ProtocolViolation, drain(endpoint))]


@attrs.frozen
class Client:
    """A client with a session: the part of it that requests need."""

    endpoint: ServerEndpoint
    session: Session
    headers: dict[str, str]

    def post(self, message: object, more: Headers = NO_FIELDS, **about: Any) -> ServerExchange:
        return post(self.endpoint, message, {**self.headers, **more}, **about)

    def get(self, more: Headers = NO_FIELDS, **about: Any) -> ServerExchange:
        return request(self.endpoint, "GET", {**GET, **self.headers, **more}, **about)

    def delete(self, **about: Any) -> ServerExchange:
        return request(self.endpoint, "DELETE", self.headers, **about)

    def asked(
        self, message: object, more: Headers = NO_FIELDS
    ) -> tuple[ServerExchange, IncomingRequest]:
        """POST a request that the application is to answer, and return its handle."""
        exchange = self.post(message, more)
        return exchange, asked(self.endpoint)


def connect(
    endpoint: ServerEndpoint,
    revision: str = LEGACY,
    capabilities: JSONObject = CLIENT_CAPABILITIES,
    **about: Any,
) -> Client:
    """A client after the handshake."""
    response = answer(post(endpoint, initialize("hello", revision, capabilities), **about))
    assert response.status == 200
    assert response.last["result"]["protocolVersion"] == revision
    (started,) = of(SessionStarted, drain(endpoint))
    headers = {"mcp-session-id": response.headers["mcp-session-id"]}
    if revision >= "2025-06-18":
        headers["mcp-protocol-version"] = revision
    assert answer(post(endpoint, INITIALIZED, headers, **about)).status == 202
    drain(endpoint)
    return Client(endpoint, started.session, headers)


def client(revision: str = LEGACY, config: Config | None = None, **settings: Any) -> Client:
    """A client with a session, on a new endpoint."""
    return connect(new_endpoint(config=config, **settings), revision)


def without_log(revision: str = LEGACY) -> Client:
    """A client with a session without an event log."""
    return client(revision, sessions=sessions(event_log=None))


def progressing(id: int = 1) -> JSONObject:
    """A `tools/call` with a progress token."""
    return call(id, "tools/call", {"name": "t", "_meta": {"progressToken": id}})


def open_stream(one: Client, **fields: str) -> tuple[ServerExchange, Response]:
    """Open a GET stream, and return what it begins with."""
    exchange = one.get(fields)
    return exchange, answer(exchange)


def resumed(one: Client, last: str) -> tuple[ServerExchange, Response]:
    """Resume a stream after this event."""
    return open_stream(one, **{"last-event-id": last})


def refused(endpoint: ServerEndpoint, message: JSONObject, fields: Headers) -> tuple[int, int]:
    """The status and the error code for a message that is refused with these headers."""
    response = answer(post(endpoint, message, fields))
    assert not of(RequestReceived, drain(endpoint))
    assert response.json.get("id") == message.get("id")
    return response.status, response.json["error"]["code"]
