"""A server on asyncio that writes the functions that it called to standard error, as JSON."""

import asyncio
import json
import sys

from sansmcp import JSONObject
from sansmcp_io.asyncio import ServerCall, serve_stdio
from tests.support.called import calls_in


def handle(call: ServerCall) -> JSONObject:
    return {"content": []}


def serve() -> None:
    info: JSONObject = {"name": "traced", "version": "1"}
    asyncio.run(serve_stdio(handle, info=info, capabilities={"tools": {}}))


if __name__ == "__main__":
    print(json.dumps(calls_in(serve)), file=sys.stderr)
