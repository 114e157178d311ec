"""What servers say at moments, or in ways, in which nobody else says it."""

import pytest

from sansmcp import (
    FailureReason,
    RequestFailed,
)
from tests.support.http_client import (
    ask,
    opened,
    stream,
    take,
)
from tests.support.http_pair import events_of, exchanges_of, only

# ------------------------------------------------------------------- streams that are taken up


@pytest.mark.parametrize("id", ["", "a\x01b", "x" * 9000])
def test_a_stream_whose_place_was_taken_back_is_lost(id: str) -> None:
    """The request would be sent a second time, or the stream of another purpose be asked for."""
    client = opened(now=0.0)
    call, exchange = ask(client)
    stream(exchange, b"id: a\ndata:\n\n", ends=True)
    client.handle_timeout(1.0)
    stream(take(client), f"id: {id}\n\n".encode(), ends=True)
    client.handle_timeout(100.0)
    assert exchanges_of(client) == []
    failed = only(RequestFailed, events_of(client))
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)
