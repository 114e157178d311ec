"""The texts that are measured, and connections that have done their handshake."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from sansmcp import ClientConnection, Config, MsgspecCodec, ServerConnection, StandardCodec
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

_PARAMS_TEXT: Final = json.dumps(PARAMS).encode()
_RESULT_TEXT: Final = json.dumps(RESULT).encode()


def request_line(id: int) -> bytes:
    """A small call as a client sends it; only the id differs from line to line."""
    head = b'{"jsonrpc": "2.0", "id": %d, "method": "tools/call", "params": ' % id
    return head + _PARAMS_TEXT + b"}\n"


def answer_line(id: int) -> bytes:
    """The server's answer to it."""
    return b'{"jsonrpc": "2.0", "id": %d, "result": ' % id + _RESULT_TEXT + b"}\n"


@cache
def _handshake() -> tuple[bytes, bytes]:
    """What a server and what a client receive until both may use everything."""
    client = ClientConnection(info=_INFO)
    server = ServerConnection(info=_INFO, capabilities={"tools": {}})
    client.start()
    opening = client.data_to_send()
    server.receive_data(opening)
    reply = server.data_to_send()
    client.receive_data(reply)
    return opening + client.data_to_send(), reply


def open_server(config: Config) -> ServerConnection:
    """A server after the handshake, with nothing left to take."""
    server = ServerConnection(info=_INFO, capabilities={"tools": {}}, config=config)
    server.receive_data(_handshake()[0])
    _empty(server)
    return server


def open_client(config: Config) -> ClientConnection:
    """A client after the handshake, with nothing left to take; its clock stands at zero.

    Its requests have the ids 2, 3, 4 ...: the handshake used 1.
    """
    client = ClientConnection(info=_INFO, config=config)
    client.start(now=0.0)
    client.receive_data(_handshake()[1])
    _empty(client)
    return client


def _empty(connection: ClientConnection | ServerConnection) -> None:
    connection.data_to_send()
    while connection.next_event() is not None:
        pass
