"""Servers without an event loop: `python -m tests.support.programs.blocking_server NAME`."""

import logging
import os
import subprocess
import sys
import threading
from typing import Any

from sansmcp import LEGACY_REVISIONS, JSONObject, ResourceUpdated
from sansmcp_io.blocking import (
    CallCancelled,
    LogHandler,
    Server,
    ServerCall,
    serve_stdio,
)

CAPABILITIES: JSONObject = {"tools": {}, "logging": {}, "resources": {"subscribe": True}}
both_are_here = threading.Barrier(2)
library_logs = threading.Event()


def text(value: str) -> JSONObject:
    return {"content": [{"type": "text", "text": value}]}


def handle(call: ServerCall) -> JSONObject:
    if call.method == "resources/subscribe":
        return {}
    arguments: JSONObject = call.params.get("arguments") or {}
    match call.params.get("name"):
        case "echo":
            return text(arguments["text"])
        case "print":
            print("printed")
            os.write(1, b"written to the descriptor\n")
            subprocess.run(["echo", "printed by a child"], check=True)
            subprocess.run(["cat"], check=True)  # must not get the server's input
            return text("quiet")
        case "meet":
            both_are_here.wait(30)
            return text("met")
        case "block":
            threading.Event().wait(60)
            raise AssertionError
        case "work":
            return work(call)
        case "ask when cancelled":
            return ask_when_cancelled(call)
        case "exit":
            raise SystemExit(5)
        case "log":
            logging.getLogger("application").warning("look out")
            call.server.publish(ResourceUpdated("file:///a"))
            return text(" ".join(call.server.subscriptions))
        case "log slowly":
            return log_slowly(call)
        case "end":
            (listener,) = call.server.listeners
            return text(str(call.server.end_listener(listener)))
        case name:
            raise ValueError(f"no tool {name}")


def work(call: ServerCall) -> JSONObject:
    """Work until the call is cancelled, which only `is_cancelled` shows."""
    number = 0
    while not call.is_cancelled:
        number += 1
        call.progress(number)
    assert not call.progress(number + 1)
    print("gave up", file=sys.stderr, flush=True)
    return text("nobody hears it")


def ask_when_cancelled(call: ServerCall) -> JSONObject:
    call.progress(1)
    while not call.is_cancelled:
        pass
    try:
        call.request("roots/list")
    except CallCancelled:
        print("asked nobody", file=sys.stderr, flush=True)
    try:
        call.sleep(60)
    except CallCancelled:
        print("slept not", file=sys.stderr, flush=True)
        raise
    raise AssertionError


class Slow(logging.Formatter):
    """Waits in `format` until the library logs something."""

    def format(self, record: logging.LogRecord) -> str:
        print("formatting", file=sys.stderr, flush=True)
        assert library_logs.wait(30)
        return super().format(record)


def note(record: logging.LogRecord) -> bool:
    library_logs.set()
    return True


def log_slowly(call: ServerCall) -> JSONObject:
    handler = LogHandler(call.server)
    handler.setFormatter(Slow())
    logging.getLogger().addHandler(handler)
    logging.getLogger("sansmcp").addFilter(note)
    logging.getLogger("application").warning("slow")
    return text("logged")


def on_ready(server: Server) -> None:
    server.wait_ready()
    logging.getLogger("application").addHandler(LogHandler(server))
    if server.peer.revision in LEGACY_REVISIONS:  # modern log messages belong to a request
        assert server.peer.info is not None
        server.log("info", server.peer.info["name"])


def main(name: str) -> None:
    options: Any = {"info": {"name": name, "version": "1.0"}, "capabilities": CAPABILITIES}
    if name == "threads":
        options["threads"] = 3
    serve_stdio(handle, on_ready=on_ready, **options)
    assert os.write(1, b"") == 0  # standard output was restored
    print("served", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
