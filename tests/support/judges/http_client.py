"""Judges every message that a client endpoint sends in a test, by the official schema.

A request is judged at the revision that its headers name, or that was agreed; `initialize` at the
revision that it offers. Of a response only the envelope is judged.
"""

import functools
import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from sansmcp.http import ClientEndpoint, ClientExchange
from tests.support.judges.schema import Transcript

_FIRST = "2024-11-05"


def _problems(endpoint: ClientEndpoint, exchange: ClientExchange) -> list[str]:
    message: Any = json.loads(exchange.body)
    fields = dict(exchange.headers)
    named = fields.get(b"mcp-protocol-version", b"").decode()
    transcript = Transcript(named or endpoint.revision or _FIRST)
    if message.__class__ is list:
        assert endpoint.revision == "2025-03-26", "there are no batches in this revision"
        asked = [one for one in message if "method" not in one]
        assert asked == message, "request batches are never sent"
        return []
    if message.get("method") == "initialize":
        transcript = Transcript(message["params"]["protocolVersion"])
    elif "method" not in message:
        request = {"jsonrpc": "2.0", "id": message["id"], "method": "x/unknown"}
        transcript.record("server", request)
    transcript.record("client", message)
    return transcript.problems("client")


@contextmanager
def judging_http_client() -> Generator[None, None, None]:
    """Judge all messages of all client endpoints."""
    next_exchange = ClientEndpoint.next_exchange

    @functools.wraps(next_exchange)
    def judged(self: ClientEndpoint) -> ClientExchange | None:
        exchange = next_exchange(self)
        if exchange is not None and exchange.body:
            problems = _problems(self, exchange)
            assert not problems, (problems, exchange.body)
        return exchange

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientEndpoint, "next_exchange", judged)
        yield
