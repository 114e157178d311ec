"""Client endpoints for tests, and functions that feed them with responses."""

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from sansmcp import JSONObject, OutgoingRequest, Ready
from sansmcp.http import ClientEndpoint, ClientExchange, ClientHTTPEvent
from tests.support.http.server_endpoint import JSON, LEGACY, SSE
from tests.support.modern import BOTH, MODERN, complete, discovered
from tests.support.wire import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    SERVER_CAPABILITIES,
    SERVER_INFO,
    error,
    result,
)

Headers = Mapping[str, str]
NO_FIELDS: Final[Headers] = {}
SESSION: Final = "S-1"
OK: Final[JSONObject] = {"content": [{"type": "text", "text": "ok"}]}
ERAS: Final = (LEGACY, MODERN)
URL: Final = "http://localhost/mcp"
E = TypeVar("E", bound=ClientHTTPEvent)


def new_client(url: str = URL, **settings: Any) -> ClientEndpoint:
    """A client of both eras with all capabilities, unless `settings` differ."""
    settings.setdefault("capabilities", CLIENT_CAPABILITIES)
    settings.setdefault("revisions", BOTH)
    return ClientEndpoint(url, info=CLIENT_INFO, **settings)


def events_of(client: ClientEndpoint) -> list[ClientHTTPEvent]:
    """All events that wait in a client."""
    events: list[ClientHTTPEvent] = []
    while (event := client.next_event()) is not None:
        events.append(event)
    return events


def only(kind: type[E], events: Iterable[ClientHTTPEvent]) -> E:
    """The event of a kind, which must be the only event."""
    (event,) = [event for event in events if isinstance(event, kind)]
    return event


def exchanges_of(client: ClientEndpoint) -> list[ClientExchange]:
    """All exchanges that a client asks for now."""
    exchanges: list[ClientExchange] = []
    while (exchange := client.next_exchange()) is not None:
        exchanges.append(exchange)
    return exchanges


def fields_of(exchange: ClientExchange) -> dict[str, str]:
    """The headers of an exchange. Each must occur once, and be valid on the wire."""
    for part in (part for pair in exchange.headers for part in pair):
        assert not set(part) & {0, 10, 13}
        assert part == part.strip()
    fields = {name.decode(): value.decode("latin-1") for name, value in exchange.headers}
    assert len(fields) == len(exchange.headers)
    assert all(name == name.lower() for name in fields)
    return fields


def message_of(exchange: ClientExchange) -> Any:
    """The message in the body of an exchange."""
    return json.loads(exchange.body)


def take(client: ClientEndpoint) -> ClientExchange:
    """The exchange that a client asks for, which must be the only one."""
    (exchange,) = exchanges_of(client)
    return exchange


# ------------------------------------------------------------------------------------- answers


def head(
    exchange: ClientExchange,
    status: int,
    form: str | None = None,
    more: Headers = NO_FIELDS,
    **times: Any,
) -> None:
    """Feed the head of a response."""
    fields = dict(more) if form is None else {"Content-Type": form, **more}
    exchange.receive_head(status, list(fields.items()), **times)


def respond(
    exchange: ClientExchange,
    status: int = 200,
    body: object = b"",
    more: Headers = NO_FIELDS,
    form: str | None = None,
    **times: Any,
) -> None:
    """Feed a complete response. A body that is not bytes is sent as JSON."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
        form = JSON if form is None else form
    head(exchange, status, form, more, **times)
    if body:
        exchange.receive_data(body)
    exchange.receive_end()


def event(message: object, id: str | None = None) -> bytes:
    """The bytes of a server-sent event with this message."""
    text = b"" if id is None else f"id: {id}\n".encode()
    return text + b"data: " + json.dumps(message).encode() + b"\n\n"


def stream(exchange: ClientExchange, *pieces: bytes, ends: bool = False, **times: Any) -> None:
    """Feed a response that is a stream. It stays open unless `ends` is true."""
    head(exchange, 200, SSE, **times)
    for piece in pieces:
        exchange.receive_data(piece)
    if ends:
        exchange.receive_end()


def chunks(*texts: str) -> list[bytes]:
    """The pieces of a stream, from the file of cases."""
    return [base64.b64decode(text) for text in texts]


# ------------------------------------------------------------------------------------- opening


def initialized(id: object, revision: str = LEGACY) -> JSONObject:
    """The response to `initialize`."""
    return result(
        id,
        {
            "protocolVersion": revision,
            "capabilities": SERVER_CAPABILITIES,
            "serverInfo": SERVER_INFO,
        },
    )


def begun(revision: str = LEGACY, now: float | None = None, **settings: Any) -> ClientEndpoint:
    """A client that has sent its first message, and speaks the revisions up to this one."""
    settings.setdefault("revisions", (revision,))
    client = new_client(**settings)
    client.start(now=now)
    return client


def opened(
    revision: str = LEGACY,
    *,
    session: str | None = SESSION,
    now: float | None = 0.0,
    get: bool = False,
    **settings: Any,
) -> ClientEndpoint:
    """A client that is open at a revision. Its GET stream, if it has one, awaits a response."""
    client = begun(revision, now, get_stream=get, **settings)
    first = take(client)
    if revision == MODERN:
        respond(first, body=result(message_of(first)["id"], discovered()))
    else:
        fields = {} if session is None else {"Mcp-Session-Id": session}
        respond(first, body=initialized(message_of(first)["id"], revision), more=fields)
        respond(take(client), 202)
    only(Ready, events_of(client))
    return client


def ask(
    client: ClientEndpoint, method: str = "tools/call", params: JSONObject | None = None, **how: Any
) -> tuple[OutgoingRequest, ClientExchange]:
    """Send a request, and return it with its exchange, which has no response yet."""
    given: JSONObject = {"name": "t", "arguments": {}} if params is None else params
    call = client.send_request(method, given, **how)
    return call, take(client)


def answer(client: ClientEndpoint, call: OutgoingRequest, value: JSONObject = OK) -> JSONObject:
    """The message with the result of a request."""
    return complete(call.id, value) if client.revision == MODERN else result(call.id, value)


def refusal(call: OutgoingRequest, code: int, data: Any = None) -> JSONObject:
    """The message with the error of a request."""
    return error(call.id, code) if data is None else error(call.id, code, "no", data)


def kinds(events: Iterable[ClientHTTPEvent]) -> list[type[ClientHTTPEvent]]:
    """The types of the events, in order."""
    return [type(one) for one in events]
