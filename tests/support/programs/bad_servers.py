"""Servers that misbehave, without the library.

Usage: python tests/support/programs/bad_servers.py NAME
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any


def write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def answer(message: dict[str, Any], result: dict[str, Any] | None = None) -> bytes:
    if message["method"] == "initialize":
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "bad", "version": "1"},
        }
    elif result is None:
        result = {"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n"


def requests() -> Iterator[dict[str, Any]]:
    """The requests that are received. These servers know legacy revisions only."""
    for line in sys.stdin.buffer:
        message: dict[str, Any] = json.loads(line)
        if message["method"] == "server/discover":
            error = {"code": -32601, "message": "unknown method"}
            answer = {"jsonrpc": "2.0", "id": message["id"], "error": error}
            write(json.dumps(answer).encode() + b"\n")
        elif "id" in message:
            yield message


def sipping() -> None:
    """Goes on reading after the handshake, but so slowly that it never reads everything."""
    for _ in range(2):
        message: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
        if "id" in message:
            write(answer(message))
    while os.read(0, 4096):
        time.sleep(0.2)  # this makes it slow


def deaf() -> None:
    """Ignores SIGTERM and the end of its input."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for message in requests():
        write(answer(message))
    time.sleep(60)


def forking() -> None:
    """Starts a process that starts another one; both ignore SIGTERM. Ends with its input."""
    code = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "child = subprocess.Popen(['sleep', '60']) if len(sys.argv) > 1 else None; "
        "print('pid', child.pid if child else '', file=sys.stderr, flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, "again"])
    print("pid", child.pid, file=sys.stderr, flush=True)
    child.returncode = 0  # the child is left running on purpose
    for message in requests():
        write(answer(message))


def dying() -> None:
    """Ends in the middle of a response, with the reason on standard error."""
    for message in requests():
        line = answer(message)
        if message["method"] != "initialize":
            print("out of paper\x1b[0m", file=sys.stderr, flush=True)
            write(line[:20])
            os._exit(7)
        write(line)


def noisy() -> None:
    """Prints other text before, between and inside its lines."""
    write(b"starting ...\n\xff\xfe\n")
    for message in requests():
        line = answer(message)
        write(b"INFO [1] serving\n\n" + line + b"{}\n")
        if message["method"] != "initialize":
            # The line of a response that no request awaits is damaged; the next response is
            # complete.
            write(b'{"jsonrpc": "2.0", "id": 99, DEBUG tick "result": {}}\n')


def chatty() -> None:
    """Writes more to standard error than a pipe holds, before each response."""
    for message in requests():
        sys.stderr.write("chatter\n" * 32_768)
        sys.stderr.flush()
        write(answer(message))


def mute() -> None:
    """Closes its output, and goes on running after the end of its input."""
    for message in requests():
        if message["method"] != "initialize":
            os.close(1)
            time.sleep(60)
        write(answer(message))


def unreading() -> None:
    """Reads nothing after the handshake."""
    write(answer(next(requests())))
    time.sleep(60)


def fragile(broken: str = "") -> None:
    """Answers with its process id. Ends at the text `die`, or if the file `broken` exists."""
    if os.path.exists(broken):
        print("it is broken", file=sys.stderr)
        sys.exit(3)
    for message in requests():
        if message["method"] != "initialize" and message["params"]["arguments"]["text"] == "die":
            os._exit(1)
        write(answer(message, {"content": [{"type": "text", "text": str(os.getpid())}]}))


def orphaning() -> None:
    """Leaves a child process that holds its pipes, and is killed in the middle of a request."""
    for message in requests():
        if message["method"] != "initialize":
            leave_child_and_die()
        write(answer(message))


def leave_child_and_die() -> None:
    if os.fork() == 0:
        time.sleep(60)  # longer than any test takes
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)


def hasty() -> None:
    """Writes much output, the response last, and is killed before a client can read it all."""
    fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1_048_576)
    note = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"x": "x" * 150_000}}
    for message in requests():
        if message["method"] == "initialize":
            write(answer(message))
        else:
            write((json.dumps(note).encode() + b"\n") * 5 + answer(message))
            leave_child_and_die()


def telling() -> None:
    """Answers a call of the tool `tell` with a notification only, and other calls not at all."""
    for message in requests():
        if message["method"] == "initialize":
            write(answer(message))
        elif message["params"]["name"] == "tell":
            write(b'{"jsonrpc": "2.0", "method": "notifications/x"}\n')


def recorder(path: str) -> None:
    """Writes the methods that it receives to this file, and answers only `initialize`."""
    with open(path, "w", buffering=1) as file:
        for line in sys.stdin.buffer:
            message: dict[str, Any] = json.loads(line)
            print(message["method"], file=file)
            if message["method"] == "initialize":
                write(answer(message))


def verbose(place: str) -> None:
    """Answers a call with the text `large` by a very long text; `id` is the first or last member.

    As the last member, `id` may have a fraction, or its line may be cut off by the end of output.
    """
    for message in requests():
        line = answer(message)
        if message["method"] != "initialize":
            text = message["params"]["arguments"]["text"]
            text = "x" * 200_000 if text == "large" else text
            result = {"content": [{"type": "text", "text": text}]}
            number = float(message["id"]) if place == "fraction" else message["id"]
            id = {"jsonrpc": "2.0", "id": number}
            members = {**id, "result": result} if place == "first" else {"result": result, **id}
            line = json.dumps(members).encode() + b"\n"
            if place == "cut" and len(text) == 200_000:
                write(line[:-100])
                return
        write(line)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
