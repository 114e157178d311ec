"""A client of this project with a server of another one; all of its reports are collected."""

import math
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import attrs
import trio

from sansmcp import (
    ALL_REVISIONS,
    LEGACY_REVISIONS,
    ErrorWithoutIdReceived,
    JSONObject,
    LimitReached,
    MessageIgnored,
    Observer,
    ProtocolViolation,
    Side,
    ViolationSeen,
)
from sansmcp_io.trio import Client, RequestHandler, connect_stdio
from tests.interop.peers import Peer
from tests.interop.reviewed import ACCUSED, REVIEWED, assert_reviewed

INFO = {"name": "sansmcp-test", "version": "1.0"}
Anomaly: TypeAlias = ProtocolViolation | MessageIgnored | LimitReached | ErrorWithoutIdReceived


class Reports:
    """Keeps the reports of our client about the peer."""

    def __init__(self) -> None:
        self.anomalies: list[Anomaly] = []
        self._reported = trio.Event()

    def happened(self, event: object) -> None:
        if isinstance(event, Anomaly):
            self.anomalies.append(event)
            self._reported.set()
            self._reported = trio.Event()

    def rules(self) -> set[str]:
        return {
            "ERR-001" if isinstance(anomaly, ErrorWithoutIdReceived) else anomaly.rule
            for anomaly in self.anomalies
        }

    async def reported(self, rule: str) -> None:
        """Wait for this report."""
        while rule not in self.rules():
            await self._reported.wait()


class Trace(Reports):
    """The same with an observer of both sides."""

    def __init__(self) -> None:
        super().__init__()
        self.observer = Observer()

    def sent(self, data: bytes) -> None:
        self.observer.receive_data(Side.CLIENT, data)

    def received(self, data: bytes | bytearray) -> None:
        self.observer.receive_data(Side.SERVER, data)

    def accused(self) -> list[tuple[Side, str]]:
        """The broken rules that the observer saw, with their sides."""
        found: list[tuple[Side, str]] = []
        while (event := self.observer.next_event()) is not None:
            if isinstance(event, ViolationSeen):
                found.append((event.side, event.rule))
        return found


@attrs.define
class Talk:
    """An open conversation, with the helpers of the tests."""

    client: Client
    trace: Reports
    notifications: "Notifications"

    async def request(self, method: str, /, **params: Any) -> JSONObject:
        return await self.client.request(method, params)

    async def call(self, name: str, /, **arguments: Any) -> JSONObject:
        return await self.request("tools/call", name=name, arguments=arguments)

    async def text(self, name: str, /, **arguments: Any) -> str:
        """Call a tool that succeeds, and return the text of its first content block."""
        result = await self.call(name, **arguments)
        assert not result.get("isError"), result
        text: str = result["content"][0]["text"]
        return text

    async def names(self, method: str) -> list[str]:
        """The names on all pages of a listing."""
        listing: list[Any] = [item async for item in self.client.items(method)]
        return [item["name"] for item in listing]


class Notifications:
    """The notifications of the server, for tests that look back or wait."""

    def __init__(self) -> None:
        self._told: list[tuple[str, JSONObject]] = []
        self._arrived = trio.Event()

    def __call__(self, method: str, params: JSONObject) -> None:
        self._told.append((method, params))
        self._arrived.set()
        self._arrived = trio.Event()

    def of(self, method: str) -> list[JSONObject]:
        return [params for told, params in self._told if told == method]

    async def wait(self, method: str, count: int = 1) -> list[JSONObject]:
        """All notifications of this method, as soon as there are this many."""
        while len(told := self.of(method)) < count:
            await self._arrived.wait()
        return told


@asynccontextmanager
async def talking_to(
    peer: Peer,
    *,
    revisions: Sequence[str] = ALL_REVISIONS,
    capabilities: JSONObject | None = None,
    on_request: RequestHandler | None = None,
    reports: Collection[str] = (),
    accuses: Collection[str] = (),
    stderr: list[str] | None = None,
    probe_timeout: float = math.inf,
    **options: Any,
) -> AsyncGenerator[Talk, None]:
    """Start the peer, talk, and hold what our client reported against what it had to report.

    Args:
        peer: The server to start.
        revisions: What our client offers.
        capabilities: What it declares.
        on_request: Serves what the server asks.
        reports: The rules that must come up in this conversation, all of them reviewed.
        accuses: The rules that an observer must see the server break, all of them reviewed.
        stderr: Takes the lines of its standard error.
        probe_timeout: When it is taken for silent: a busy machine may start it slowly.
        options: The rest of `connect_stdio`'s.
    """
    trace, notifications = Trace(), Notifications()
    async with connect_stdio(
        peer.command,
        info=INFO,
        revisions=revisions,
        capabilities=capabilities,
        on_request=on_request,
        on_notification=notifications,
        on_stderr=([] if stderr is None else stderr).append,
        trace=trace,
        probe_timeout=probe_timeout,
        **options,
    ) as client:
        yield Talk(client, trace, notifications)
    if peer.is_foreign:
        assert_reviewed(peer.name, reports, REVIEWED)
        assert_reviewed(peer.name, accuses, ACCUSED)
    assert trace.rules() == set(reports), trace.anomalies
    accused = set(trace.accused())
    assert accused == {(Side.SERVER, rule) for rule in accuses}, accused
    if client.peer.revision in LEGACY_REVISIONS:
        assert trace.observer.revision == client.peer.revision, "the observer has lost track"
