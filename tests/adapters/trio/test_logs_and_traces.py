"""Log records of adapters, and the content of a trace."""

import json
import logging

import pytest
import trio

from sansmcp import Config, Event
from sansmcp_io.trio import (
    ConnectionLost,
    RequestTimeout,
)
from tests.support.adapters.trio_talk import (
    call_tool,
    instantly,
    talking_by_hand,
)


@instantly()
async def test_anomalies_are_logged_at_a_limited_rate_and_without_payloads(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A noisy peer must neither fill the disk nor write its users' data into the logs."""
    async with talking_by_hand() as (_, peer):
        await peer.write(*[b"noise with a secret\n" * 3] * 100)
        await trio.sleep(61)
        await peer.write(b"noise with a secret", b'{"jsonrpc":"2.0","method":"\x1b[2J secret"}')
        await trio.sleep(1)

    messages = [record.getMessage() for record in caplog.records]
    assert 10 < len(messages) < 15
    assert any("more anomalies were not logged" in message for message in messages)
    assert [message for message in messages if "secret" in message] == []
    assert all(message.isprintable() for message in messages)


@instantly()
async def test_anomalies_are_logged_by_their_weight(caplog: pytest.LogCaptureFixture) -> None:
    """A lost race must be logged at a low level, and the end of a connection at a high one."""
    caplog.set_level(logging.DEBUG, "sansmcp")
    config = Config(max_late_answers=1, ping_interval=10, ping_timeout=1, max_failed_pings=1)
    async with talking_by_hand(config=config) as (client, peer):
        await peer.write(
            {"jsonrpc": "2.0", "id": 99, "result": {}},
            {"jsonrpc": "2.0", "error": {"code": -32700, "message": "secret"}},
            {"jsonrpc": "2.0", "method": "notifications/" + "long" * 1000, "params": []},
            b'{"jsonrpc":"2.0","method":"notifications/x","params":null}',
        )
        for _ in range(2):
            with pytest.raises(RequestTimeout):
                await client.request(*call_tool(), timeout=1)
        await trio.sleep(20)
        with pytest.raises(ConnectionLost):
            await client.request(*call_tool())

    levels = [record.levelno for record in caplog.records]
    assert levels == [
        logging.DEBUG,  # an answer to nothing
        logging.WARNING,  # an error without id
        logging.WARNING,  # params that are a list
        logging.INFO,  # params that are null
        logging.WARNING,  # a limit
        logging.ERROR,  # a peer that answers no pings
    ]
    assert max(len(record.getMessage()) for record in caplog.records) < 300
    assert "secret" not in caplog.text


@instantly()
async def test_trace_sees_what_goes_by() -> None:
    """A trace must have the lines and the events in their order, so that a fault can be found."""
    trail: list[str] = []

    class Recorder:
        def sent(self, data: bytes) -> None:
            trail.append(f"sent {json.loads(data)['method']}")

        def received(self, data: bytes | bytearray) -> None:
            trail.append("received")

        def happened(self, event: Event) -> None:
            trail.append(type(event).__name__)

    async with talking_by_hand(trace=Recorder()):
        pass

    assert trail == [
        "sent initialize",
        "received",
        "Ready",
        "sent notifications/initialized",
        "ConnectionClosed",
    ]
