"""Runs `sansmcp tap` as a client does, and reads its captures."""

import base64
import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.command_line import BIN, SECONDS, hear_signals, sansmcp
from tests.support.forks import run_forked

Running = subprocess.Popen[bytes]
Finished = subprocess.CompletedProcess[bytes]


def python(code: str, *arguments: str) -> list[str]:
    """The command of a server that consists of a few lines of Python."""
    return [sys.executable, "-c", code, *arguments]


def tapped(server: Sequence[str | Path], *options: str | Path) -> list[str | Path]:
    """The command of a server behind a tap."""
    return [BIN, "tap", *options, "--", *server]


def run(
    server: Sequence[str | Path], *options: str | Path, stdin: bytes = b"", **more: Any
) -> Finished:
    """Run a server behind a tap with this input, until it ends."""
    if not more:
        return run_forked("sansmcp_io", tapped(server, *options)[1:], stdin=stdin, seconds=SECONDS)
    return subprocess.run(
        tapped(server, *options), input=stdin, capture_output=True, timeout=SECONDS, **more
    )


def start(server: Sequence[str | Path], *options: str | Path, **more: Any) -> Running:
    """Start a server behind a tap, with unbuffered pipes."""
    return start_command(tapped(server, *options), **more)


def start_command(command: Sequence[str | Path], **more: Any) -> Running:
    """Start a process with unbuffered pipes, which handles signals as a foreground process does."""
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    popen: Any = subprocess.Popen
    process: Running = popen(command, bufsize=0, **{"preexec_fn": hear_signals, **pipes, **more})
    return process


def say(process: Running, data: bytes) -> None:
    """Write all of these bytes to the standard input of a process."""
    assert process.stdin is not None
    rest = memoryview(data)
    while rest:
        rest = rest[process.stdin.write(rest) :]


def hear(process: Running, count: int) -> bytes:
    """Read this number of bytes from standard output; fewer if the process ends."""
    assert process.stdout is not None
    data = b""
    while len(data) < count and (more := os.read(process.stdout.fileno(), count - len(data))):
        data += more
    return data


def hear_error(process: Running, pattern: str) -> str:
    """Read standard error until it matches this pattern."""
    assert process.stderr is not None
    text = ""
    while re.search(pattern, text) is None:
        data = os.read(process.stderr.fileno(), 65536)
        assert data, f"it ended without {pattern!r}: {text}"
        text += data.decode("utf-8", "replace")
    return text


def fill(descriptor: int, most: int, seconds: float = 1.0) -> int:
    """Write until the pipe has taken nothing for `seconds`, and return how many bytes it took."""
    os.set_blocking(descriptor, False)
    poller = select.poll()
    poller.register(descriptor, select.POLLOUT)
    total = 0
    while total < most and poller.poll(seconds * 1000):
        total += os.write(descriptor, b"x" * 65536)
    return total


def records(path: Path) -> list[dict[str, Any]]:
    """The lines of a capture as JSON, with the first line, which is the header."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def bytes_of(path: Path, side: str) -> bytes:
    """The bytes that a side sent, joined from the records of a capture."""
    found = b""
    for line in path.read_bytes().split(b"\n")[1:-1]:
        record = json.loads(line)
        if record["side"] != side:
            continue
        newline = b"" if record.get("newline") is False else b"\n"
        if "message" in record:
            start = line.index(b'"message":') + len(b'"message":')
            found += line[start:-1] + newline
        elif "text" in record:
            found += record["text"].encode() + newline
        elif "base64" in record:
            found += base64.b64decode(record["base64"]) + newline
    return found


def summary(stderr: bytes) -> dict[tuple[str, str], int]:
    """How often each side broke each rule, from the summary that a tap writes at its end."""
    lines = re.findall(
        r"^tap:   ([A-Z]+-\d+) [A-Z ]+ (client|server) #\d+(?: \((\d+) times\))?: ",
        stderr.decode("utf-8", "replace"),
        re.M,
    )
    return {(side, rule): int(times or 1) for rule, side, times in lines}


def linted(path: Path) -> dict[tuple[str, str], int]:
    """How often each side broke each rule, as `sansmcp lint` finds in a capture."""
    done = sansmcp("lint", "--json", path)
    assert done.returncode in (0, 1), done.stderr
    found: dict[tuple[str, str], int] = {}
    for line in done.stdout.splitlines():
        event = json.loads(line)
        if event["kind"] == "violation":
            key = event["side"], event["rule"]
            found[key] = found.get(key, 0) + 1
    return found
