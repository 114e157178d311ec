"""The same conversations over HTTP, with server processes that choose their ports."""

import os
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
from tests.interop.peers import ROOT, everything
from tests.interop.reviewed import REVIEWED, assert_reviewed
from tests.interop.talk import INFO, Notifications, Reports, Talk

_SESSION: Final = re.compile(rb"\r\nmcp-session-id: *([!-~]+)\r\n", re.IGNORECASE)
_SAY_PORT: Final = """
import http from "node:http";
const listen = http.Server.prototype.listen;
const write = process.stdout.write.bind(process.stdout);
console.log = console.error = () => {};
http.Server.prototype.listen = function (...args) {
  this.on("listening", () => write(`${this.address().port}\\n`));
  return listen.apply(this, args);
};
"""
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


@contextmanager
def everything_on(transport: str) -> Generator[int]:
    """npm's server-everything, which does not say by itself which port it was given."""
    node, script = everything().command
    hook = f"data:text/javascript,{_SAY_PORT}"
    command = [node, "--import", hook, script, transport]
    with running(command, {**os.environ, "PORT": "0"}) as port:
        yield port


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
        match = _SESSION.search(data)
        if match and data.startswith(b"HTTP/1.1 200"):  # some name one that they have refused, too
            session = match[1].decode()
            if session not in self.sessions:
                self.sessions.append(session)

    def happened(self, event: object) -> None:
        super().happened(event)
        if isinstance(event, _INCIDENTS):
            self.incidents.append(type(event).__name__)

    async def stream(self, count: int = 1) -> None:
        """Wait until this many GETs were answered: earlier messages may be lost on a server."""
        while self._streams < count:
            await self._opened.wait()

    def requests(self, verb: str) -> int:
        """The number of requests with this HTTP method."""
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
    crossing: Collection[str] = (),
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
        crossing: The rules that may come up too, for messages that cross one of our client.
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
    assert_reviewed(name, (*reports, *crossing), REVIEWED)
    assert trace.rules() - set(crossing) == set(reports), trace.anomalies
    assert set(trace.incidents) == set(incidents)


async def end_session(port: int, session: str) -> None:
    """DELETE a session, as any client can that knows its id."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    async with stream:
        await stream.send_all(
            b"DELETE /mcp HTTP/1.1\r\nhost: 127.0.0.1:%d\r\nmcp-session-id: %b\r\n\r\n"
            % (port, session.encode())
        )
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")
