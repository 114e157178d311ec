"""Runs between a client and a server on stdio, passes all bytes on, and records the messages.

Put it before the command of a server: `python recorder.py FILE COMMAND ARGUMENT...`
"""

import json
import os
import subprocess
import sys
import threading
import time
from typing import IO

from sansmcp import AnswerMatched, MessageSeen, Observer, RequestUnanswered, Side, ViolationSeen

observer = Observer()
lock = threading.Lock()  # the two directions are read in threads of their own


# -- record
def record(file: IO[str]) -> None:
    """Write the new events, one JSON object a line."""
    while (event := observer.next_event()) is not None:
        match event:
            case MessageSeen():
                entry = {"message": event.message}
            case AnswerMatched():
                entry = {"answered": event.method, "seconds": event.seconds}
            case RequestUnanswered():
                entry = {"unanswered": event.method}
            case ViolationSeen():
                entry = {"broke": event.rule, "text": event.text}
            case _:
                continue
        file.write(json.dumps({"side": event.side.name, **entry}) + "\n")
    file.flush()


# -- pass on
def carry(side: Side, source: int, target: IO[bytes], file: IO[str]) -> None:
    while data := os.read(source, 65_536):
        with lock:  # before it is passed on: then no answer comes before its request
            observer.receive_data(side, data, now=time.monotonic())
            record(file)
        while data:
            data = data[target.write(data) :]
    with lock:
        observer.receive_eof(side, now=time.monotonic())
        record(file)
    target.close()


# -- run
def main(path: str, *command: str) -> int:
    pipe = subprocess.PIPE
    with (
        open(path, "w", encoding="utf-8") as file,
        open(1, "wb", buffering=0) as output,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        to_server = (Side.CLIENT, 0, server.stdin, file)
        threading.Thread(target=carry, args=to_server, daemon=True).start()
        carry(Side.SERVER, server.stdout.fileno(), output, file)
        return server.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
