"""Blocking clients for tests, with a server that answers them."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from sansmcp import JSONObject
from sansmcp_io.blocking import Client, connect_stdio
from tests.adapters.everywhere.shims import server
from tests.support.processes import ROOT

INFO = {"name": "test", "version": "1.0"}
SECONDS = 30
"""A wait that takes longer than this number of seconds has failed."""


@contextmanager
def talking(adapter: str = "blocking", **options: Any) -> Generator[Client, None, None]:
    """A client that is connected to the server with which all adapters are tested."""
    with connect_stdio(server(adapter), info=INFO, cwd=ROOT, **options) as client:
        yield client


def call_tool(name: str, **arguments: object) -> tuple[str, JSONObject]:
    return "tools/call", {"name": name, "arguments": arguments}


def text(client: Client, name: str, **arguments: object) -> str:
    value: str = client.request(*call_tool(name, **arguments))["content"][0]["text"]
    return value


class InThread(threading.Thread):
    """Runs a function in a thread, and gives its result or raises its exception."""

    def __init__(self, function: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._function = function
        self._result: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._result = self._function()
        except BaseException as error:
            self._error = error

    def result(self) -> Any:
        self.join(SECONDS)
        assert not self.is_alive(), "it waits for ever"
        if self._error is not None:
            raise self._error
        return self._result
