"""A server on stdio whose tools have the longest names that are allowed. A call of `die` ends it.

Usage: python tests/support/programs/long_names.py
"""

import os

from sansmcp import JSONObject
from sansmcp_io.blocking import ServerCall, serve_stdio

NAMES = ["x" * 125 + tail for tail in ("abc", "abd")]


def handle(call: ServerCall) -> JSONObject:
    if call.method == "tools/list":
        return {
            "tools": [{"name": one, "inputSchema": {"type": "object"}} for one in [*NAMES, "die"]]
        }
    if call.params["name"] == "die":
        os._exit(1)
    return {"content": [{"type": "text", "text": call.params["name"]}]}


if __name__ == "__main__":
    serve_stdio(handle, info={"name": "long", "version": "1.0"}, capabilities={"tools": {}})
