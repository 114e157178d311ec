"""A client that forks its process.

Usage: python -m tests.support.programs.forking_caller [stdio | http | restart | other]

It forks during a request, while another thread restarts its server, or in another thread.
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack
from functools import partial
from typing import Any

from sansmcp import LEGACY_REVISIONS, Event
from sansmcp_io.blocking import (
    Client,
    ConnectionLost,
    RequestTimeout,
    connect_http,
    connect_stdio,
)
from tests.adapters.everywhere.shims import listening, server
from tests.support.adapters.blocking_talk import INFO, call_tool, text
from tests.support.processes import bad, call_bad
from tests.support.programs.interrupted_caller import say

SECONDS = 20

OPTIONS: Any = {"info": INFO, "revisions": [LEGACY_REVISIONS[-1]]}


def talk(client: Client) -> None:
    """Fork in the middle of a request, and wait for the child before the request goes on."""
    forked: list[int] = []

    def on_progress(*_: object) -> None:
        if forked:
            return
        forked.append(os.fork())
        if forked != [0]:
            assert os.waitpid(forked[0], 0)[1] == 0
            return
        for ask in (client.request, client.notify):
            try:
                ask(*call_tool("echo"))
            except ConnectionLost as error:
                say(error)
        raise SystemExit

    result = client.request(*call_tool("count"), on_progress=on_progress)
    say(result["content"][0]["text"], text(client, "echo", text="on"))


@contextlib.contextmanager
def connecting(transport: str) -> Generator[Client, None, None]:
    if transport == "http":
        with (
            listening(server("trio", "http")) as url,
            ended_here(),
            connect_http(url, **OPTIONS) as client,
        ):
            yield client
    else:
        with ended_here(), connect_stdio(server("trio"), **OPTIONS) as client:
            yield client


@contextlib.contextmanager
def ended_here() -> Generator[None, None, None]:
    """End the child process at the end of the block."""
    try:
        yield
    except SystemExit:
        say("left")
        os._exit(0)


class Sending:
    """A trace that stops a thread when it sends data with this content."""

    def __init__(self, what: bytes) -> None:
        self.is_at_it, self.goes_on = threading.Event(), threading.Event()
        self._what = what

    def look_for(self, what: bytes) -> None:
        self._what = what

    def sent(self, data: bytes) -> None:
        if self._what in data:
            self.is_at_it.set()
            self.goes_on.wait(SECONDS)

    def received(self, data: bytes | bytearray) -> None: ...
    def happened(self, event: Event) -> None: ...


def end_of_fork(child: Callable[[], object]) -> None:
    """Fork, call `child` in the child process, and wait until that ends."""
    forked = os.fork()
    if forked:
        assert os.waitpid(forked, 0)[1] == 0
        return
    signal.alarm(SECONDS)
    try:
        child()
        os._exit(0)
    finally:
        os._exit(1)


def fork_while_another_thread_starts_the_server() -> None:
    """The other thread holds locks, and does not exist in the child process."""
    trace = Sending(b"again")
    with ExitStack() as stack:
        connected = connect_stdio(bad("fragile"), info=INFO, restarts=1, trace=trace)
        client = stack.enter_context(connected)
        with contextlib.suppress(ConnectionLost):
            client.request(*call_bad("die"))
        trace.look_for(b"initialize")
        thread = threading.Thread(target=partial(client.request, *call_bad("pid")))
        thread.start()
        assert trace.is_at_it.wait(SECONDS)

        def child() -> None:
            try:
                client.request(*call_bad("no"))
            except ConnectionLost as error:
                say(error)
            stack.close()
            say("left")

        end_of_fork(child)
        trace.goes_on.set()
        thread.join()
        say(len(client.request(*call_bad("pid"))["content"]))


def fork_in_another_thread() -> None:
    """In the child process, no verb is running, so Ctrl-C has its default handler."""
    trace = Sending(b'"hang"')

    def fork() -> None:
        assert trace.is_at_it.wait(SECONDS)
        end_of_fork(lambda: say(signal.getsignal(signal.SIGINT) is signal.default_int_handler))
        trace.goes_on.set()

    thread = threading.Thread(target=fork)
    with connect_stdio(server("trio"), **OPTIONS, trace=trace) as client:
        thread.start()
        with contextlib.suppress(RequestTimeout):
            client.request(*call_tool("hang"), timeout=0.1)
        thread.join()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["restart"]:
            fork_while_another_thread_starts_the_server()
        case ["other"]:
            fork_in_another_thread()
        case arguments:
            with connecting(*arguments or ["stdio"]) as caller:
                talk(caller)
    say("end")
