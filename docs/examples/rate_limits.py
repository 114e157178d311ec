"""A server that limits how often each client may call its tools."""

from typing import Any

import trio
from trio.testing import MockClock, memory_stream_pair

from sansmcp import ErrorCode, JSONObject
from sansmcp.limits import RateLimit
from sansmcp_io.trio import McpError, PeerError, ServerCall, connect, serve

INFO: JSONObject = {"name": "weather", "version": "1.0"}

# -- limit
CALLS = RateLimit(rate=2, burst=3)
"""Two calls a second for each client, and three at once."""


def check_rate(call: ServerCall) -> None:
    """Refuse a call of a client that has called too often."""
    wait = CALLS.take(str(call.principal), now=trio.current_time())
    if wait is not None:
        data: JSONObject = {"reason": "rate limit", "retryAfter": wait}
        raise McpError(ErrorCode.INTERNAL_ERROR, "too many calls", data)


def handle(call: ServerCall) -> JSONObject:
    if call.method == "tools/call":
        check_rate(call)
    return {"content": [{"type": "text", "text": "sun"}]}


# -- run
async def main() -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: serve(theirs, handle, info=INFO, capabilities={"tools": {}}))
        async with connect(ours, info=INFO) as client:
            for number in range(1, 6):
                try:
                    await client.request("tools/call", {"name": "forecast"})
                    print(number, "served")
                except PeerError as error:
                    data: Any = error.data
                    print(number, error.message, data)
                    await trio.sleep(data["retryAfter"])


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
