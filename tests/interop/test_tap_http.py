"""`sansmcp tap URL` between our client and another's server, on both transports over HTTP."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.interop.talk_http import everything_on
from tests.support.command_line import BIN, SECONDS, sansmcp
from tests.support.tapping import linted, records


@pytest.mark.parametrize(
    ("transport", "path"), [("streamableHttp", "/mcp"), ("sse", "/sse")], ids=["http", "sse"]
)
def test_everything_passes(tmp_path: Path, transport: str, path: str) -> None:
    """Sessions, streams, and the address that the old transport names; and nobody is accused."""
    capture = tmp_path / "capture"
    arguments = '{"duration": 0.3, "steps": 3}'
    with everything_on(transport) as port:
        command: list[str | Path] = [
            BIN,
            "tap",
            f"http://127.0.0.1:{port}{path}",
            "--jsonl",
            capture,
        ]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, encoding="utf-8") as process:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            tool = "trigger-long-running-operation"
            done = sansmcp("call", tool, arguments, "--progress", "--url", url)
            process.send_signal(signal.SIGTERM)
            _, trace = process.communicate(timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    assert "completed" in done.stdout
    assert "progress: 3 of 3" in done.stderr

    assert "tap: no rule was seen broken" in trace
    assert re.search(r"< #\d+ result of tools/call id ", trace)
    assert trace.count("< #") > 5
    assert linted(capture) == {}
    methods = [one["message"].get("method") for one in records(capture) if "message" in one]
    assert methods.count("notifications/progress") == 3
