"""The same conversations over HTTP, with servers that are processes and chose their own ports."""

import re
import subprocess
from collections.abc import AsyncGenerator, Collection, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import trio

from sansmcp import ALL_REVISIONS, JSONObject
from sansmcp.http import (
    AuthorizationRequired,
    MessageRefused,
    MessageUndelivered,
    SessionLost,
    StreamUnavailable,
)
from sansmcp_io.trio import RequestHandler, connect_http
from tests.interop.peers import ROOT
from tests.interop.reviewed import REVIEWED, assert_reviewed
from tests.interop.talk import INFO, Notifications, Reports, Talk

_SESSION: Final = re.compile(rb"\r\nmcp-session-id: *([!-~]+)\r\n", re.IGNORECASE)
_INCIDENTS: Final = (
    AuthorizationRequired,
    MessageRefused,
    MessageUndelivered,
    SessionLost,
    StreamUnavailable,
)


@contextmanager
def running(
    command: Sequence[str | Path], environment: Mapping[str, str] | None = None
) -> Generator[int]:
    """A server whose first line on standard output is its port; it is killed in the end."""
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


class HTTPReports(Reports):
    """What our client has to say about the peer, and which bytes went to and fro.

    Attributes:
        incidents: The names of the events that tell of something that did not go through.
        sent_data: All that was sent.
        sessions: The ids of the sessions, in the order in which the server named them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.incidents: list[str] = []
        self.sent_data: list[bytes] = []
        self.sessions: list[str] = []
        self._asked: set[str] = set()  # connections on which a GET waits for its response
        self._streams = 0
        self._opened = trio.Event()

    def sent(self, connection: str, data: bytes) -> None:
        self.sent_data.append(data)
        if data.startswith(b"GET "):
            self._asked.add(connection)

    def received(self, connection: str, data: bytes) -> None:
        if connection in self._asked:
            self._asked.remove(connection)
            self._streams += 1
            self._opened.set()
            self._opened = trio.Event()
        for match in _SESSION.finditer(data):
            session = match[1].decode()
            if session not in self.sessions:
                self.sessions.append(session)

    def happened(self, event: object) -> None:
        super().happened(event)
        if isinstance(event, _INCIDENTS):
            self.incidents.append(type(event).__name__)

    async def stream(self, count: int = 1) -> None:
        """Wait until so many GETs were answered: before, a server may drop what belongs there."""
        while self._streams < count:
            await self._opened.wait()

    def requests(self, verb: str) -> int:
        """How many requests had this method."""
        return sum(data.startswith(verb.encode() + b" ") for data in self.sent_data)


@asynccontextmanager
async def talking_over_http(
    name: str,
    port: int,
    *,
    path: str = "/mcp",
    revisions: Sequence[str] = ALL_REVISIONS,
    capabilities: JSONObject | None = None,
    on_request: RequestHandler | None = None,
    reports: Collection[str] = (),
    incidents: Collection[str] = (),
    **options: Any,
) -> AsyncGenerator[Talk]:
    """Talk, and hold what our client reported against what it had to report.

    Args:
        name: What the list of reviewed anomalies calls the server.
        port: Where it is.
        path: The same.
        revisions: What our client offers.
        capabilities: What it declares.
        on_request: Serves what the server asks.
        reports: The rules that must come up in this conversation, all of them reviewed.
        incidents: The names of the events of HTTP that must come up.
        options: The rest of `connect_http`'s.
    """
    trace, notifications = HTTPReports(), Notifications()
    async with connect_http(
        f"http://127.0.0.1:{port}{path}",
        info=INFO,
        revisions=revisions,
        capabilities=capabilities,
        on_request=on_request,
        on_notification=notifications,
        trace=trace,
        **options,
    ) as client:
        yield Talk(client, trace, notifications)
    assert_reviewed(name, reports, REVIEWED)
    assert trace.rules() == set(reports), trace.anomalies
    assert set(trace.incidents) == set(incidents)
