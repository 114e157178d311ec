"""What others do with the same call: the official `mcp` package under uvicorn, both eras.

`python -m benchmarks.servers.mcp_http --port 8002`
"""

from __future__ import annotations

import argparse
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecuritySettings


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Echo the text."""
    text = str((params.arguments or {})["text"])
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


def main() -> None:
    """Serve on the port that was given: JSON answers, no sessions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    port: int = parser.parse_args().port
    server: Server[Any] = Server("echo", version="1.0", on_call_tool=call_tool)
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # its Host too
    app = server.streamable_http_app(
        json_response=True, stateless_http=True, transport_security=unchecked
    )
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
