"""The page for users of the `mcp` package is true of both of its versions."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.peers import ROOT, mcp_server, time

PAGE = (ROOT / "docs" / "howto" / "coming-from-mcp.md").read_text("utf-8")
ROWS = [re.split(r" *(?<!\\)\| *", line)[1:-1] for line in re.findall(r"^\|.*\|$", PAGE, re.M)]
NAMES = {
    1: (
        "mcp.server.fastmcp:FastMCP",
        "mcp.server.fastmcp:Context.report_progress",
        "mcp.server.fastmcp:Context.info",
        "mcp.server.lowlevel:Server.call_tool",
        "mcp.server.lowlevel:Server.run",
        "mcp.server.session:ServerSession.create_message",
        "mcp.server.stdio:stdio_server",
        "mcp.types:TextContent",
        "mcp.types:ErrorData",
        "mcp:McpError",
        "mcp:ClientSession.list_tools",
    ),
    2: (
        "mcp.server.mcpserver:MCPServer",
        "mcp.server.mcpserver:Context.report_progress",
        "mcp.server.mcpserver:Context.info",
        "mcp.server.lowlevel:Server.run",
        "mcp.server.session:ServerSession.create_message",
        "mcp.server.stdio:stdio_server",
        "mcp.types:TextContent",
        "mcp:MCPError",
        "mcp:Client.list_tools",
    ),
}


@pytest.mark.parametrize("how", ["cancel", "timeout"])
@pytest.mark.parametrize("version", [1, 2])
def test_page_says_what_the_package_does_with_a_call_that_is_given_up(
    version: int, how: str, tmp_path: Path
) -> None:
    """A user who changes over must know what the server receives, and the names to look for."""
    python = (time() if version == 1 else mcp_server()).command[0]
    heard = tmp_path / "methods"
    heard.touch()
    server = [
        sys.executable,
        str(ROOT / "tests/support/programs/bad_servers.py"),
        "recorder",
        str(heard),
    ]
    script = ROOT / "tests" / "peers" / "mcp_abandon.py"
    done = subprocess.run(
        [python, script, how, ",".join(NAMES[version]), heard, *server],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    is_told = "notifications/cancelled" in heard.read_text()

    column = version - 1
    assert ROWS[0][column] == f"`mcp` {'.'.join(done.stdout.split('.')[:2])}"
    (row,) = [row for row in ROWS if "cancel the request" in row[2]]
    assert is_told == (row[column] == "both cancel the request")


@pytest.mark.parametrize("version", NAMES)
def test_names_that_were_looked_up_stand_in_the_page(version: int) -> None:
    """A name that the page does not have needs no test."""
    column = " ".join(row[0] if version == 1 else f"{row[0]} {row[1]}" for row in ROWS)
    for name in NAMES[version]:
        assert re.search(rf"\b{re.split('[.:]', name)[-1]}\b", column), name
