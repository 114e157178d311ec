"""A blocking client that gets SIGINT, as from a user who presses Ctrl-C.

Usage: python -m tests.support.programs.interrupted_caller WHAT [http]
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Generator
from functools import partial
from typing import Any

from sansmcp import LEGACY_REVISIONS, Event, JSONObject
from sansmcp_io.blocking import (
    Call,
    Client,
    ConnectionLost,
    McpError,
    PeerError,
    connect_http,
    connect_stdio,
)
from tests.adapters.everywhere.shims import called, listening, server
from tests.support.adapters.blocking_talk import INFO, call_tool, text


def say(*words: object) -> None:
    print(*words, flush=True)


def begun(*_: object) -> None:
    say("waiting")


def waiting(client: Client) -> None:
    """A request is interrupted while it waits. The client can still be used afterwards."""
    try:
        client.request(*call_tool("hang"), on_progress=begun)
    except KeyboardInterrupt:
        while not (seen := text(client, "seen")):
            pass  # over HTTP, the cancellation may arrive after this request
        say("interrupted", seen)


def waiting_for_another_thread(client: Client) -> None:
    """A request is interrupted while it waits and another thread reads."""

    def read() -> None:
        with contextlib.suppress(ConnectionLost):
            client.request(*call_tool("hang"), on_progress=partial(called, has_begun.set))

    has_begun = threading.Event()
    threading.Thread(target=read).start()
    has_begun.wait()
    waiting(client)


def storm(client: Client) -> None:
    """Requests are interrupted again and again, at any point. No response is damaged."""
    interrupted = answered = 0
    is_armed = False

    def handler(number: int, frame: object) -> None:
        nonlocal is_armed
        if is_armed:
            is_armed = False
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handler)
    say("waiting")
    while not (interrupted >= 300 and answered >= 300):
        try:
            said = str(answered)
            is_armed = interrupted <= answered
            assert text(client, "echo", text=said * 1000) == said * 1000
            answered += 1
        except KeyboardInterrupt:
            interrupted += 1
        is_armed = False
    say("calm", text(client, "echo", text="calm"))


def own_handler(client: Client) -> None:
    """A signal handler that raises nothing is called, and the request goes on."""
    heard: list[int] = []
    say("waiting")

    def handler(number: int, frame: object) -> None:
        heard.append(number)
        say("heard")

    signal.signal(signal.SIGINT, handler)
    result = client.request(
        *call_tool("count"),
        on_progress=partial(called, partial(os.kill, os.getpid(), signal.SIGINT)),
    )
    say(result["content"][0]["text"], len(heard), signal.getsignal(signal.SIGINT) is handler)


def asked(client: Client) -> None:
    """The answer to a question is interrupted: the server gets an error, and the request ends."""
    try:
        text(client, "ask")
    except KeyboardInterrupt:
        say("interrupted", text(client, "echo", text="on"))


def on_request(call: Call) -> JSONObject:
    try:
        say("waiting")
        threading.Event().wait(60)
    except KeyboardInterrupt:
        say("at the question")
        raise
    raise McpError(-32000, "nobody interrupts")


class Announcing:
    """A trace that tells when the client has sent its message and waits."""

    def sent(self, data: bytes) -> None:
        say("waiting")

    def received(self, data: bytes | bytearray) -> None:
        pass

    def happened(self, event: Event) -> None:
        pass


def opening(client: Client) -> None:
    """Never called, since the server does not answer the opening."""


@contextlib.contextmanager
def connecting(what: str, transport: str) -> Generator[Client, None, None]:
    """A client of 2025-11-25 that answers questions."""
    options: Any = {
        "info": INFO,
        "revisions": [LEGACY_REVISIONS[-1]],
        "capabilities": {"roots": {}},
        "on_request": on_request,
    }
    if transport == "http":
        with listening(server("trio", "http")) as url, connect_http(url, **options) as client:
            yield client
    else:
        with connect_stdio(
            ["sleep", "60"] if what == "opening" else server("blocking"),
            trace=Announcing() if what == "opening" else None,
            terminate_after=0.1 if what == "opening" else 30,
            **options,
        ) as client:
            yield client


if __name__ == "__main__":
    what = sys.argv[1]
    try:
        with connecting(what, *sys.argv[2:] or ["stdio"]) as client:
            globals()[what](client)
            if what not in ("storm", "own_handler"):
                assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    except (KeyboardInterrupt, PeerError) as error:
        say(type(error).__name__)
    say("end")
