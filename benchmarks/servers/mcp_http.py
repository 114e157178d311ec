"""The same call on a server of another project: the official `mcp` package under uvicorn, both
eras.

`python -m benchmarks.servers.mcp_http --port 8002 --sessions`
"""

from __future__ import annotations

import argparse
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server

from .bare_asgi import serve


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Echo the text."""
    text = str((params.arguments or {})["text"])
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


def main() -> None:
    """Serve on the given port: JSON responses, and with `--sessions` legacy sessions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--sessions", action="store_true")
    options = parser.parse_args()
    server: Server[Any] = Server("echo", version="1.0", on_call_tool=call_tool)
    app = server.streamable_http_app(json_response=True, stateless_http=not options.sessions)
    serve(app, options.port, "h11", lifespan="on")


if __name__ == "__main__":
    main()
