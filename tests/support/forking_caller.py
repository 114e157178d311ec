"""A program that forks while it calls: `python -m tests.support.forking_caller [http]`."""

import contextlib
import os
import sys
from collections.abc import Generator
from typing import Any

from sansmcp import LEGACY_REVISIONS
from sansmcp_io.blocking import Client, ConnectionLost, connect_http, connect_stdio
from tests.adapters.shims import listening, server
from tests.support.blocking_caller import say
from tests.support.blocking_talk import INFO, call_tool, text

OPTIONS: Any = {"info": INFO, "revisions": [LEGACY_REVISIONS[-1]]}


def talk(client: Client) -> None:
    """Fork in the midst of a call, and let the other process end before going on."""
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
    """The process that was forked goes no further than to the end of the block."""
    try:
        yield
    except SystemExit:
        say("left")
        os._exit(0)


if __name__ == "__main__":
    with connecting(*sys.argv[1:] or ["stdio"]) as caller:
        talk(caller)
    say("end")
