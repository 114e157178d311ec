"""Servers for tests that need a real process.

Usage: python -m tests.support.programs.trio_server NAME
"""

import itertools
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import trio

from sansmcp import JSONObject
from sansmcp_io.trio import Handler, ServerCall, serve_stdio


def text(value: str) -> JSONObject:
    return {"content": [{"type": "text", "text": value}]}


async def handle(call: ServerCall) -> JSONObject:
    """Run the tool."""
    arguments: JSONObject = call.params.get("arguments") or {}
    match call.params.get("name"):
        case "echo":
            return text(arguments["text"])
        case "environment":
            return text(f"{os.getcwd()} {os.environ.get(arguments['variable'])}")
        case "print":
            print("printed")
            if sys.__stdout__ is not None:
                sys.__stdout__.write("written to the original\n")
            os.write(1, b"written to the descriptor\n")
            subprocess.run(["echo", "printed by a child"], check=True)
            subprocess.run(["cat"], check=True)  # must not get the server's input
            return text("quiet")
        case "sleep":
            try:
                await trio.sleep(60)
            except trio.Cancelled:
                print("sleep: cancelled")
                raise
            return text("slept")
        case "fill":
            await trio.sleep(arguments.get("after", 0))
            return text("x" * arguments["size"])
        case "flood":
            for step in itertools.count():
                call.progress(step, message="x" * 200)
                await trio.lowlevel.checkpoint()
            raise AssertionError
        case "usage":
            tasks = trio.lowlevel.current_statistics().tasks_living
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            memory = pages * os.sysconf("SC_PAGE_SIZE")
            return text(f"{tasks} {len(os.listdir('/proc/self/fd'))} {memory}")
        case name:
            raise ValueError(f"no tool {name}")


def handle_plainly(call: ServerCall) -> JSONObject:
    """Return a text of this size, or the largest amount of memory that the process has used."""
    if call.params["name"] == "memory":
        status = Path("/proc/self/status").read_text()
        return text(str(int(status.partition("VmHWM:")[2].split()[0]) * 1024))
    return text("x" * call.params["arguments"]["size"])


def main(name: str) -> None:
    """Serve until the end of input, and misbehave as the name says."""
    if name == "haunted":  # leaves a process that holds the pipes
        ghost = subprocess.Popen(["sleep", "60"])
        print(f"ghost {ghost.pid}", file=sys.stderr, flush=True)
        ghost.returncode = 0  # it is left running on purpose
    if name == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    handler: Handler = handle_plainly if name == "plain" else handle
    trio.run(
        partial(
            serve_stdio, handler, info={"name": name, "version": "1.0"}, capabilities={"tools": {}}
        )
    )
    assert os.write(1, b"") == 0  # standard output was restored
    if sys.stderr is not None:
        print("served", file=sys.stderr, flush=True)
    if name in ("lingering", "stubborn"):
        time.sleep(60)


if __name__ == "__main__":
    main(sys.argv[1])
