"""Tasks in both forms: what a poll costs, what an idle task keeps, and what plain calls pay.

In 2025-11-25 and in 2026-07-28 a server makes the tasks, and a client follows them. The cost of a
poll must not depend on the number of tasks, and a call that is no task must not cost more because
tasks are turned on.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final

import attrs

from sansmcp import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    ClientConnection,
    Config,
    JSONObject,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    Tasks,
    TaskUpdated,
)

from . import _traffic
from ._measure import Effort, Rounds, Row, clock, flatness, interleaved, median_and_spread, ratios
from .memory import kept_bytes

SIZES: Final = (10, 100, 1_000, 10_000)
MANY: Final = SIZES[-1]
START: Final = 1_800_000_000.0
"""The time at which the tasks are made, in Unix seconds."""
SECONDS: Final = 1.0
"""The interval of polls."""
_FLAT: Final = 1.2
_SAME: Final = 1.05
"""A connection with tasks, beside one without: what two runs of one thing differ by at most."""
_IDLE: Final = 2048
_CONFIG: Final = Config(max_requests=2 * MANY)
_INFO: Final[JSONObject] = {"name": "benchmark", "version": "1.0"}
_STATUS: Final[JSONObject] = {
    "status": "working",
    "createdAt": "2027-01-15T08:00:00.000Z",
    "lastUpdatedAt": "2027-01-15T08:00:00.000Z",
}


def tasks() -> Tasks:
    """Settings that keep many tasks."""
    return Tasks(
        entropy=os.urandom,
        max_tasks=2 * MANY,
        max_tasks_per_owner=2 * MANY,
        poll_ms=int(SECONDS * 1000),
    )


@attrs.frozen
class Form:
    """One of the two forms of tasks: how its messages look."""

    revision: str

    @property
    def is_modern(self) -> bool:
        """Whether it is the extension of 2026-07-28."""
        return self.revision in MODERN_REVISIONS

    def line(self, id: int, method: str, params: JSONObject, *, declares: bool = True) -> bytes:
        """A request of a client; `declares`: with the extension in its `_meta`."""
        if self.is_modern:
            extension: JSONObject = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
            meta: JSONObject = {
                "io.modelcontextprotocol/protocolVersion": self.revision,
                "io.modelcontextprotocol/clientCapabilities": extension if declares else {},
                "io.modelcontextprotocol/clientInfo": _INFO,
            }
            params = {**params, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        return json.dumps(message).encode() + b"\n"

    def call(self, id: int, *, is_task: bool) -> bytes:
        """A `tools/call`."""
        task: JSONObject = {"task": {}} if is_task and not self.is_modern else {}
        return self.line(id, "tools/call", {**_traffic.PARAMS, **task}, declares=is_task)

    def answer(self, id: int, result: JSONObject) -> bytes:
        """A response of a server."""
        return json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode() + b"\n"

    def shown(self, task_id: str) -> JSONObject:
        """A task that is worked on, as messages show it."""
        if self.is_modern:
            times: JSONObject = {"ttlMs": None, "pollIntervalMs": int(SECONDS * 1000)}
        else:
            times = {"ttl": None, "pollInterval": int(SECONDS * 1000)}
        return {"taskId": task_id, **_STATUS, **times}

    def created(self, task_id: str) -> JSONObject:
        """The result that says that there is a task."""
        if self.is_modern:
            return {"resultType": "task", **self.shown(task_id)}
        return {"task": self.shown(task_id)}

    def polled(self, task_id: str) -> JSONObject:
        """The result of `tasks/get`."""
        done: JSONObject = {"resultType": "complete"} if self.is_modern else {}
        return {**done, **self.shown(task_id)}


FORMS: Final = (Form(LEGACY_REVISIONS[-1]), Form(MODERN_REVISIONS[0]))


# ------------------------------------------------------------------------------------- connections


def open_server(form: Form, *, with_tasks: bool = True) -> ServerConnection:
    """A server that has been opened, with nothing left to take."""
    server = ServerConnection(
        info=_INFO,
        capabilities={"tools": {}},
        config=_CONFIG,
        tasks=tasks() if with_tasks else None,
    )
    opening = [line + b"\n" for line in _traffic.HANDSHAKE]
    if form.is_modern:
        opening = [form.line(0, "server/discover", {})]
    for line in opening:
        server.receive_data(line, now=0.0)
    _empty(server)
    return server


def open_client(form: Form, *, with_tasks: bool = True) -> ClientConnection:
    """A client that has opened its server; its next request has the id 2."""
    client = ClientConnection(
        info=_INFO,
        revisions=(form.revision,),
        config=_CONFIG,
        tasks=tasks() if with_tasks else None,
    )
    peer = ServerConnection(
        info=_INFO, capabilities={"tools": {}}, tasks=tasks() if with_tasks else None
    )
    client.start(now=0.0)
    peer.receive_data(client.data_to_send())
    client.receive_data(peer.data_to_send(), now=0.0)
    _empty(client)
    return client


def _empty(connection: ClientConnection | ServerConnection) -> None:
    connection.data_to_send()
    while connection.next_event() is not None:
        pass


def serving(form: Form, count: int) -> ServerConnection:
    """A server with this many tasks that are worked on, without events or output."""
    server = open_server(form)
    for id in range(10_000, 10_000 + count):
        server.receive_data(form.call(id, is_task=True))
        event = server.next_event()
        assert isinstance(event, RequestReceived)
        assert server.create_task(event.request, at=START, now=0.0) is not None
        del event
        _empty(server)
    assert len(server.open_tasks) == count
    return server


def following(form: Form, count: int) -> ClientConnection:
    """A client that follows this many tasks, without events or output.

    They were made one after the other within one interval, so that their polls are not due at once.
    """
    client = open_client(form)
    for number in range(count):
        now = number * SECONDS / count
        client.send_request(_traffic.METHOD, _traffic.PARAMS, task=True, now=now)
        client.data_to_send()
        id = f"{number:048x}"
        client.receive_data(form.answer(2 + number, form.created(id)), now=now)
        _empty(client)
    assert len(client.pending_requests) == count
    return client


# ------------------------------------------------------------------------------------------- polls


class ServedPolls:
    """Polls of all tasks of a server in turn, each a line of its own."""

    def __init__(self, form: Form, count: int) -> None:
        self.server = serving(form, count)
        self._lines = self._polls(form)

    def _polls(self, form: Form) -> Iterator[bytes]:
        ids = [task.id for task in self.server.open_tasks]
        number = 100_000
        while True:
            for id in ids:
                number += 1
                yield form.line(number, "tasks/get", {"taskId": id})

    def run(self, polls: int) -> float:
        """Nanoseconds a poll."""
        server = self.server
        lines = list(islice(self._lines, polls))
        start = clock()
        for line in lines:
            server.receive_data(line)
            while server.next_event() is not None:
                pass
            server.data_to_send()
        return (clock() - start) / polls


class FollowedPolls:
    """Polls that a client sends by itself when their time has come, and their answers."""

    def __init__(self, form: Form, count: int) -> None:
        self.client = following(form, count)
        self._form = form

    def run(self, polls: int) -> float:
        """Nanoseconds a poll."""
        client, form = self.client, self._form
        spent = done = 0
        while done < polls:
            start = clock()
            due = client.next_timeout()
            assert due is not None
            client.handle_timeout(due)
            sent = client.messages_to_send()
            spent += clock() - start
            answers: list[bytes] = []
            for message in sent:
                poll = json.loads(message)
                answers.append(form.answer(poll["id"], form.polled(poll["params"]["taskId"])))
            start = clock()
            for answer in answers:
                client.receive_data(answer)
                while (event := client.next_event()) is not None:
                    assert isinstance(event, TaskUpdated)
            spent += clock() - start
            done += len(answers)
        return spent / done


SIDES: Final[tuple[tuple[str, Callable[[Form, int], ServedPolls | FollowedPolls]], ...]] = (
    ("at server", ServedPolls),
    ("from client", FollowedPolls),
)


def growth(form: Form, effort: Effort, kept: Rounds) -> list[Row]:
    """The cost of a poll by the number of tasks, on both sides."""
    found: list[Row] = []
    sizes = SIZES[:: effort.pick(1, 3)]
    polls = effort.pick(2_000, 500)
    for direction, make in SIDES:
        cases = {f"{size:,}": partial(make(form, size).run, polls) for size in sizes}
        rounds = interleaved(cases, effort.pick(15, 3))
        parts = ", ".join(f"{statistics.median(ns) / 1000:.3g}" for ns in rounds.values())
        found.append(
            Row(
                name=f"growth of a poll with tasks in flight, {form.revision}",
                codec="json",
                direction=direction,
                value=flatness(list(rounds.values())),
                unit="x",
                bound=_FLAT,
                spread=f"highest over lowest; {' / '.join(rounds)} tasks: {parts} us",
            )
        )
        for size, values in rounds.items():
            kept[f"poll of {size} tasks {direction}, {form.revision}"] = [ns / 1e9 for ns in values]
    return found


# ------------------------------------------------------------------------------------------ memory


def _polled(
    make: Callable[[Form, int], ServedPolls | FollowedPolls], form: Form, count: int
) -> Any:
    """A connection with this many tasks, each of which was polled once."""
    polls = make(form, count)
    if count:
        polls.run(count)
    return polls


def idle(form: Form, effort: Effort) -> list[Row]:
    """The bytes that an idle task keeps on each side."""
    count = effort.pick(MANY, 1_000)
    found: list[Row] = []
    for direction, make in SIDES:
        of_count = partial(_polled, make, form)
        of_count(1)  # what all connections share is there before the first that counts
        kept = kept_bytes(partial(of_count, count)) - kept_bytes(partial(of_count, 0))
        found.append(
            Row(
                name=f"memory: idle task, {form.revision}",
                codec="json",
                direction=direction,
                value=kept / count,
                unit="B",
                bound=_IDLE,
                spread=f"mean of {count}, each of them polled; the same in every run",
            )
        )
    return found


# ------------------------------------------------------------------------------------- plain calls


def served_calls(form: Form, with_tasks: bool, calls: int) -> float:
    """Nanoseconds of a plain call at a server that has no task."""
    server = open_server(form, with_tasks=with_tasks)
    lines = [form.call(10_000 + number, is_task=False) for number in range(calls)]
    result = _traffic.RESULT
    start = clock()
    for line in lines:
        server.receive_data(line)
        while (event := server.next_event()) is not None:
            assert isinstance(event, RequestReceived)
            server.send_result(event.request, result)
        server.data_to_send()
    return (clock() - start) / calls


def sent_calls(form: Form, with_tasks: bool, calls: int) -> float:
    """Nanoseconds of a plain call of a client that follows no task."""
    client = open_client(form, with_tasks=with_tasks)
    done: JSONObject = {"resultType": "complete"} if form.is_modern else {}
    result = {**_traffic.RESULT, **done}
    answers = [form.answer(2 + number, result) for number in range(calls)]
    start = clock()
    for answer in answers:
        client.send_request(_traffic.METHOD, _traffic.PARAMS)
        client.data_to_send()
        client.receive_data(answer)
        event = client.next_event()
        assert isinstance(event, ResponseReceived)
        assert client.next_event() is None
    return (clock() - start) / calls


def plain(form: Form, effort: Effort, kept: Rounds) -> list[Row]:
    """Plain calls on a connection with tasks, beside one without."""
    found: list[Row] = []
    calls = effort.pick(300, 100)
    sides: tuple[tuple[str, Callable[[Form, bool, int], float]], ...] = (
        ("at server", served_calls),
        ("from client", sent_calls),
    )
    for direction, run in sides:
        cases = {
            "with tasks": partial(run, form, True, calls),
            "without": partial(run, form, False, calls),
        }
        rounds = interleaved(cases, effort.pick(201, 11))
        value, spread = median_and_spread(ratios(rounds["with tasks"], rounds["without"]))
        found.append(
            Row(
                name=f"plain call with tasks turned on, beside without, {form.revision}",
                codec="json",
                direction=direction,
                value=value,
                unit="x",
                bound=_SAME,
                spread=spread,
            )
        )
        for case, values in rounds.items():
            name = f"plain call {direction} {case}, {form.revision}"
            kept[name] = [ns / 1e9 for ns in values]
    return found


def rows(effort: Effort, kept: Rounds) -> list[Row]:
    """Growth of polls, memory and plain calls, in both forms and on both sides."""
    return [
        row
        for part in (
            *(growth(form, effort, kept) for form in FORMS),
            *(idle(form, effort) for form in FORMS),
            *(plain(form, effort, kept) for form in FORMS),
        )
        for row in part
    ]
