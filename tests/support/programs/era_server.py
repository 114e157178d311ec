"""A server on stdio that speaks one era, or both.

Usage: python -m tests.support.programs.era_server SPEAKS

The same handler serves both eras. SPEAKS is a key of `ERAS`.
"""

import sys
from collections.abc import Mapping
from functools import partial
from typing import Final

import trio

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, JSONObject
from sansmcp_io.trio import RequireInput, ServerCall, serve_stdio

ERAS: Final[Mapping[str, tuple[str, ...]]] = {
    "modern": MODERN_REVISIONS,
    "legacy": LEGACY_REVISIONS,
    "dual-era": (*LEGACY_REVISIONS, *MODERN_REVISIONS),
}
"""By kind of client or server, the revisions that it speaks."""

TOOLS: Final = ("revision", "ask")


def text(value: str) -> JSONObject:
    return {"content": [{"type": "text", "text": value}]}


def handle(call: ServerCall) -> JSONObject | RequireInput:
    """Serve two tools: `revision` returns the revision, and `ask` the first root of the client."""
    if call.method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
    if call.params["name"] == "revision":
        return text(str(call.revision))
    if not call.input_responses:
        return RequireInput({"roots": {"method": "roots/list"}})
    roots: list[JSONObject] = call.input_responses["roots"]["roots"]
    return text(roots[0]["uri"])


if __name__ == "__main__":
    info = {"name": "eras", "version": "1.0"}
    capabilities: JSONObject = {"tools": {}}
    revisions = ERAS[sys.argv[1]]
    trio.run(
        partial(serve_stdio, handle, info=info, capabilities=capabilities, revisions=revisions)
    )
