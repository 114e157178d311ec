"""The texts that are measured, and connections that have done their handshake."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from sansmcp import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    ClientConnection,
    Config,
    MsgspecCodec,
    ServerConnection,
    StandardCodec,
)
from sansmcp import Codec as Codec

CODECS: Final[dict[str, Codec]] = {"json": StandardCodec(), "msgspec": MsgspecCodec()}

_INFO: Final = {"name": "benchmark", "version": "1.0"}
_SAYING: Final = "hello world, this is a small text of some length to be"

METHOD: Final = "tools/call"
PARAMS: Final[dict[str, Any]] = {"name": "echo", "arguments": {"text": _SAYING}}
RESULT: Final[dict[str, Any]] = {
    "content": [{"type": "text", "text": f"{_SAYING} echoed"}],
    "isError": False,
}
ID: Final = 12345
"""The id in `REQUEST` and `ANSWER`; it has as many digits as most ids of a round."""

REQUEST: Final[dict[str, Any]] = {
    "jsonrpc": "2.0",
    "id": ID,
    "method": METHOD,
    "params": PARAMS,
}
ANSWER: Final[dict[str, Any]] = {"jsonrpc": "2.0", "id": ID, "result": RESULT}
REQUEST_TEXT: Final = json.dumps(REQUEST).encode()
ANSWER_TEXT: Final = json.dumps(ANSWER).encode()

_META: Final[dict[str, Any]] = {
    "io.modelcontextprotocol/protocolVersion": MODERN_REVISIONS[0],
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": _INFO,
}
_MODERN_PARAMS: Final = {**PARAMS, "_meta": _META}
_MODERN_RESULT: Final = {
    **RESULT,
    "_meta": {"io.modelcontextprotocol/serverInfo": _INFO},
    "resultType": "complete",
}
MODERN_REQUEST: Final[dict[str, Any]] = {**REQUEST, "params": _MODERN_PARAMS}
MODERN_ANSWER: Final[dict[str, Any]] = {**ANSWER, "result": _MODERN_RESULT}
MODERN_REQUEST_TEXT: Final = json.dumps(MODERN_REQUEST).encode()
MODERN_ANSWER_TEXT: Final = json.dumps(MODERN_ANSWER).encode()

_PARAMS_TEXT: Final = json.dumps(PARAMS).encode()
_RESULT_TEXT: Final = json.dumps(RESULT).encode()
_MODERN_PARAMS_TEXT: Final = json.dumps(_MODERN_PARAMS).encode()
_MODERN_RESULT_TEXT: Final = json.dumps(_MODERN_RESULT).encode()

_INITIALIZE: Final[dict[str, Any]] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": LEGACY_REVISIONS[-1],
        "capabilities": {},
        "clientInfo": _INFO,
    },
}
HANDSHAKE: Final = (
    json.dumps(_INITIALIZE).encode(),
    b'{"jsonrpc": "2.0", "method": "notifications/initialized"}',
)
"""What a client of the newest legacy revision says first; only the first is answered."""


def request_line(id: int, *, modern: bool = False) -> bytes:
    """A small call as a client sends it; only the id differs from line to line."""
    head = b'{"jsonrpc": "2.0", "id": %d, "method": "tools/call", "params": ' % id
    return head + (_MODERN_PARAMS_TEXT if modern else _PARAMS_TEXT) + b"}\n"


def answer_line(id: int, *, modern: bool = False) -> bytes:
    """The server's answer to it."""
    head = b'{"jsonrpc": "2.0", "id": %d, "result": ' % id
    return head + (_MODERN_RESULT_TEXT if modern else _RESULT_TEXT) + b"}\n"


def _revisions(modern: bool) -> tuple[str, ...]:
    return MODERN_REVISIONS if modern else LEGACY_REVISIONS


@cache
def _opening(modern: bool) -> tuple[bytes, bytes]:
    """What a server and what a client receive until both may use everything."""
    client = ClientConnection(info=_INFO, revisions=_revisions(modern))
    server = ServerConnection(info=_INFO, capabilities={"tools": {}})
    client.start()
    opening = client.data_to_send()
    server.receive_data(opening)
    reply = server.data_to_send()
    client.receive_data(reply)
    return opening + client.data_to_send(), reply


def open_server(config: Config, *, modern: bool = False) -> ServerConnection:
    """A server that has been opened, with nothing left to take."""
    server = ServerConnection(
        info=_INFO,
        capabilities={"tools": {"listChanged": True}},
        config=config,
    )
    server.receive_data(_opening(modern)[0])
    _empty(server)
    return server


def open_client(config: Config, *, modern: bool = False) -> ClientConnection:
    """A client that has opened its server, with nothing left to take; its clock stands at zero.

    Its requests have the ids 2, 3, 4 ...: the opening used 1.
    """
    client = ClientConnection(info=_INFO, revisions=_revisions(modern), config=config)
    client.start(now=0.0)
    client.receive_data(_opening(modern)[1])
    _empty(client)
    return client


def listen_line(id: int) -> bytes:
    """A request for a subscription to changes of the tools."""
    params = {"notifications": {"toolsListChanged": True}, "_meta": _META}
    request = {"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params}
    return json.dumps(request).encode() + b"\n"


def _empty(connection: ClientConnection | ServerConnection) -> None:
    connection.data_to_send()
    while connection.next_event() is not None:
        pass
