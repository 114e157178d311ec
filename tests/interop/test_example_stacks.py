"""The clients among the examples on other people's stacks, against servers of npm's."""

import subprocess

from tests.interop.peers import everything_on
from tests.support.stacks import program


def test_agent_of_twisted_talks_to_everything() -> None:
    """The client object needs nothing of a stack but its requests: those of Twisted do as well."""
    with everything_on("streamableHttp") as port:
        run = subprocess.run(
            program("twisted_client", f"http://127.0.0.1:{port}/mcp"),
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )
    revision, tools, echo = run.stdout.splitlines()

    assert revision == "revision 2025-11-25"
    assert "echo" in tools.split()
    assert echo == "Echo: Twisted"
    assert run.stderr == ""
    assert run.returncode == 0
