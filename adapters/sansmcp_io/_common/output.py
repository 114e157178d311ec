"""What a connection has to write, as buffers."""

from __future__ import annotations

from typing import Final

from sansmcp import ClientConnection, ServerConnection

from .trace import Trace

_JOINED_BYTES: Final = 262_144
"""Output up to this is written as one buffer; of more, each message is, which copies nothing."""


def take_output(
    connection: ClientConnection | ServerConnection, trace: Trace | None
) -> list[bytes]:
    """Take all output of the core: little as one buffer, much without copying it."""
    if connection.unsent_bytes <= _JOINED_BYTES:
        buffers = [connection.data_to_send()]
    else:
        buffers = connection.buffers_to_send()
    if trace is not None:
        for data in buffers:
            trace.sent(data)
    return buffers
