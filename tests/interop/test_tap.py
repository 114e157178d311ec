"""`sansmcp tap` between clients and servers of other projects."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.peers import ROOT, everything, everything_on
from tests.support.command_line import BIN, SECONDS, sansmcp
from tests.support.tapping import (
    Running,
    bytes_of,
    hear_error,
    linted,
    records,
    say,
    start,
    start_command,
    summary,
)

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}\n'
)


@pytest.mark.parametrize("calls", [500, pytest.param(5_000, marks=pytest.mark.proof)])
def test_many_messages_pass_unchanged(tmp_path: Path, calls: int) -> None:
    """The bytes on both sides of the tap must be equal, and no breach be reported."""
    server = shlex.join(map(str, everything().command))
    # Each `tee` writes down what passes its place: before the tap, and behind it.
    inner = f"tee {tmp_path}/in-behind | {server} | tee {tmp_path}/out-behind"
    tap = [
        str(BIN),
        "tap",
        "--trace",
        str(tmp_path / "trace"),
        "--jsonl",
        str(tmp_path / "capture"),
    ]
    outer = shlex.join([*tap, "--", "sh", "-c", inner])
    line = f"tee {tmp_path}/in-before | {outer} | tee {tmp_path}/out-before"
    done = subprocess.run(
        [sys.executable, ROOT / "tests/peers/mcp_many.py", str(calls), "sh", "-c", line],
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"right": calls}

    said = {name: (tmp_path / name).read_bytes() for name in ("in-before", "out-before")}
    assert said["in-before"] == (tmp_path / "in-behind").read_bytes()
    assert said["out-before"] == (tmp_path / "out-behind").read_bytes()
    capture = tmp_path / "capture"
    assert bytes_of(capture, "client") == said["in-before"]
    assert bytes_of(capture, "server") == said["out-before"]

    # Silence is worth something only of a tap that has seen everything, to the end.
    lines = said["in-before"].count(b"\n") + said["out-before"].count(b"\n")
    trace = (tmp_path / "trace").read_bytes()
    assert lines >= 2 * calls
    assert b"\ntap: %d messages in " % lines in trace
    assert b" lines are missing here" not in trace
    assert b"tap: " not in done.stderr, "nothing went wrong with the files"
    accused = summary(trace)
    assert accused == linted(capture)
    assert not accused


def started(process: Running) -> dict[str, object]:
    """Do the handshake; returns its response."""
    say(process, INITIALIZE)
    assert process.stdout is not None
    answer: dict[str, object] = json.loads(process.stdout.readline())
    return answer


def test_kill_of_the_server_is_seen_and_kept(tmp_path: Path) -> None:
    """Output before the end must be in the capture, and the client see how the server ended."""
    capture = tmp_path / "capture"
    with start(everything().command, "--quiet", "--jsonl", capture) as process:
        assert "result" in started(process)
        (server,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(server), signal.SIGKILL)
        assert process.wait(SECONDS) == -signal.SIGKILL

    assert bytes_of(capture, "client") == INITIALIZE
    assert json.loads(bytes_of(capture, "server").split(b"\n")[0])["id"] == 0
    assert any(record.get("signal") == 9 for record in records(capture))


def test_ctrl_c_ends_both_as_the_server_wants_it() -> None:
    """This server handles Ctrl-C; its exit status must be that of the tap."""
    command = everything().command
    with start_command(command) as direct:
        started(direct)
        direct.send_signal(signal.SIGINT)
        expected = direct.wait(SECONDS)
    with start(command) as process:
        started(process)
        process.send_signal(signal.SIGINT)
        hear_error(process, "tap: no rule was seen broken")
        assert process.wait(SECONDS) == expected


@pytest.mark.parametrize(
    ("transport", "path"), [("streamableHttp", "/mcp"), ("sse", "/sse")], ids=["http", "sse"]
)
def test_everything_passes(tmp_path: Path, transport: str, path: str) -> None:
    """Sessions, streams, and the address of the old transport must pass without a breach."""
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
