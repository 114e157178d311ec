"""Servers that have tasks, on a store in memory or on one of the test, and messages about tasks."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from sansmcp import (
    ALL_REVISIONS,
    Config,
    Event,
    IncomingRequest,
    JSONObject,
    RequestReceived,
    ServerConnection,
    Task,
    TaskQuestion,
    TaskRecord,
    Tasks,
    TasksWanted,
    TaskWanted,
)
from tests.support.modern import EVERYTHING, LEGACY, envelope, modern
from tests.support.wire import (
    INITIALIZED,
    SERVER_INFO,
    call,
    drain,
    initialize,
    of,
    sent,
    wire,
)

EXTENSION: Final = "io.modelcontextprotocol/tasks"
RELATED: Final = "io.modelcontextprotocol/related-task"
WITH_TASKS: Final[JSONObject] = {**EVERYTHING, "extensions": {EXTENSION: {}}}
"""Capabilities of a client that follows tasks and answers every question."""
NEEDED: Final[JSONObject] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
START: Final = 1_800_000_000.0
"""The time at which the tasks of the tests are made, in Unix seconds."""
STAMP: Final = "2027-01-15T08:00:00.000Z"
"""The same time as messages have it."""
NOTHING: Final[JSONObject] = {"content": []}
"""The result of a tool."""


class Entropy:
    """Bytes that are different each time, as random ones are."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def __call__(self, count: int) -> bytes:
        return next(self._numbers).to_bytes(count, "big")


def settings(**changed: Any) -> Tasks:
    """Settings of tasks, with bytes that are not random."""
    given: dict[str, Any] = {"entropy": Entropy(), **changed}
    return Tasks(**given)


@attrs.define
class Shelf:
    """A store of the application: what is asked of it is answered from a table.

    Attributes:
        records: The stored records by id, as bytes.
        fails: Whether it cannot be reached.
    """

    records: dict[str, bytes] = attrs.field(factory=dict[str, bytes])
    fails: bool = False

    def record(self, id: str) -> TaskRecord | None:
        """The stored record of a task."""
        data = self.records.get(id)
        return None if data is None else TaskRecord.from_bytes(data)

    def answer(self, server: Any, asked: Any) -> None:
        """Answer a question of this server, or of an endpoint."""
        if self.fails:
            server.fail_task_lookup(asked, "the shelf is gone")
        elif isinstance(asked, TaskWanted):
            server.provide_task(asked, self.record(asked.task_id))
        elif isinstance(asked, TasksWanted):
            records = [TaskRecord.from_bytes(data) for data in self.records.values()]
            own = [one for one in records if one.owner == asked.owner]
            after = [one for one in own if asked.after is None or one.place > asked.after]
            page = sorted(after, key=lambda one: one.place)[: asked.limit]
            server.provide_tasks(asked, page)
        else:
            record = asked.record
            old = self.record(record.id)
            fits = (0 if old is None else old.version) == record.version - 1
            if fits:
                self.records[record.id] = record.to_bytes()
            server.task_stored(asked, fits)


@attrs.define
class Host:
    """A server with tasks, and its store.

    Attributes:
        server: The server.
        shelf: The store of the test, which is empty where the server keeps the tasks in memory.
        entropy: Where the ids of its tasks come from.
        capabilities: What the client declares with each request of 2026-07-28.
        is_legacy: Whether the requests are those of 2025-11-25.
        last_id: The id of the last request whose questions were not answered.
    """

    server: ServerConnection
    shelf: Shelf = attrs.field(factory=Shelf)
    entropy: Entropy = attrs.field(factory=Entropy)
    capabilities: JSONObject = attrs.field(factory=lambda: WITH_TASKS)
    is_legacy: bool = False
    last_id: int = 0
    _ids: Any = attrs.field(factory=lambda: itertools.count(100), init=False)

    def events(self) -> list[Event]:
        """All events, after the questions to the store were answered."""
        seen: list[Event] = []
        while events := drain(self.server):
            for event in events:
                if isinstance(event, TaskQuestion):
                    self.shelf.answer(self.server, event)
                else:
                    seen.append(event)
        return seen

    def receive(self, message: JSONObject, **more: Any) -> list[Event]:
        """The events that a message of the client causes."""
        self.server.receive_data(wire(message), **more)
        return self.events()

    def request(self, id: int, method: str, params: JSONObject | None) -> JSONObject:
        """A request of the client."""
        if self.is_legacy:
            return call(id, method, params or {})
        return modern(id, method, params, envelope(self.capabilities))

    def ask(self, method: str, params: JSONObject | None = None, **more: Any) -> JSONObject:
        """The response to a request, when it is the only output."""
        id = next(self._ids)
        self.receive(self.request(id, method, params), **more)
        answer: JSONObject
        (answer,) = sent(self.server)
        assert answer["id"] == id
        return answer

    def hold(self, method: str, params: JSONObject | None = None) -> list[Event]:
        """The events of a request, with the questions to the store, which are not answered."""
        self.last_id = next(self._ids)
        self.server.receive_data(wire(self.request(self.last_id, method, params)))
        return drain(self.server)

    def get(self, task_id: str) -> JSONObject:
        """The result of `tasks/get`."""
        result: JSONObject = self.ask("tasks/get", {"taskId": task_id})["result"]
        return result

    def code(self, method: str, params: JSONObject | None = None) -> int:
        """The code of the error that answers a request."""
        code: int = self.ask(method, params)["error"]["code"]
        return code

    def called(self, name: str = "slow", **members: Any) -> IncomingRequest:
        """A `tools/call` that the application may answer with a task."""
        if self.is_legacy:
            members = {"task": {}, **members}
        message = self.request(next(self._ids), "tools/call", {"name": name, **members})
        (event,) = of(RequestReceived, self.receive(message))
        return event.request

    def create(self, request: IncomingRequest | None = None, **more: Any) -> Task:
        """A new task; its `CreateTaskResult` is not looked at."""
        request = self.called() if request is None else request
        options: dict[str, Any] = {"at": START, "now": 0.0, **more}
        task = self.server.create_task(request, **options)
        assert task is not None
        self.events()
        assert "result" in sent(self.server)[0]
        return task

    def do(self, verb: Callable[..., bool], *args: Any, **more: Any) -> list[Event]:
        """The events of a verb that has an effect."""
        assert verb(*args, **more)
        return self.events()

    def told(self) -> list[JSONObject]:
        """All output."""
        self.events()
        return sent(self.server)


def legacy(kept: Host, client: JSONObject | None = None) -> Host:
    """The same server after a handshake at 2025-11-25 with a client of these capabilities."""
    capabilities = EVERYTHING if client is None else client
    kept.receive(initialize("hello", LEGACY, capabilities))
    assert sent(kept.server)[0]["result"]["protocolVersion"] == LEGACY
    kept.receive(INITIALIZED)
    kept.is_legacy = True
    return kept


def host(
    *,
    capabilities: JSONObject | None = None,
    config: Config | None = None,
    revisions: Sequence[str] = ALL_REVISIONS,
    wake: Callable[[], None] | None = None,
    **changed: Any,
) -> Host:
    """A server of both eras with tasks that has received nothing yet."""
    entropy = Entropy()
    server = ServerConnection(
        info=SERVER_INFO,
        capabilities={"tools": {}} if capabilities is None else capabilities,
        tasks=settings(**{"entropy": entropy, **changed}),
        config=config,
        revisions=revisions,
        wake=wake,
    )
    return Host(server, entropy=entropy)
