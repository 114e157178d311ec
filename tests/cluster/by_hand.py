"""Requests and streams by hand, without a client that knows what to do about a failure."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2

from sansmcp import JSONObject


class Events:
    """The events of a stream, one by one."""

    def __init__(self, response: httpx2.Response) -> None:
        self._lines: AsyncIterator[str] = response.aiter_lines()

    async def next(self) -> dict[str, str]:
        """The fields of the next event that is no comment; empty at the end of the stream."""
        fields: dict[str, str] = {}
        async for line in self._lines:
            name, _, value = line.partition(": ")
            if line and not line.startswith(":"):
                fields[name] = value
            elif fields:
                break
        return fields

    async def next_message(self) -> dict[str, str]:
        """The fields of the next event with a message, which must come."""
        while not (fields := await self.next()).get("data"):
            assert fields, "the stream has ended"
        return fields


def call(number: int, name: str, **arguments: Any) -> JSONObject:
    params: JSONObject = {"name": name, "arguments": arguments, "_meta": {"progressToken": number}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
