"""Handlers that return `CreateTask`, in threads: below WSGI and in `serve_stdio` without a loop."""

import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Protocol

import attrs
import pytest

from sansmcp import ErrorCode, JSONObject, Tasks
from sansmcp_io.wsgi import App
from tests.adapters.wsgi.test_app import Session, new_app, post, until
from tests.support.adapters.task_talk import ACCEPTED, FINAL, headers_of
from tests.support.modern import EVERYTHING, FORM, LEGACY, envelope, modern
from tests.support.processes import ROOT
from tests.support.programs.task_server import Works
from tests.support.tasks import NEEDED, WITH_TASKS, Entropy
from tests.support.wire import INITIALIZED, call, initialize

ENDED = {"code": ErrorCode.INTERNAL_ERROR, "message": "the server has ended before the task"}
SECONDS = 30
WSGI, STDIO = "wsgi", "stdio"
each_transport = pytest.mark.parametrize("transport", [WSGI, STDIO])


class Carrier(Protocol):
    """How a request reaches the server."""

    def __call__(self, message: JSONObject) -> Any: ...


@attrs.define
class Talk:
    """A client that follows its tasks by hand.

    Attributes:
        post: Sends a request, and returns the response.
        app: The application, below WSGI.
        process: The server, on stdio.
        capabilities: What it declares with each request of 2026-07-28.
        is_legacy: Whether it speaks 2025-11-25.
        seen: The messages of a server on stdio that were no response.
    """

    post: Carrier
    app: App | None = None
    process: subprocess.Popen[bytes] | None = None
    capabilities: JSONObject = attrs.field(factory=lambda: WITH_TASKS)
    is_legacy: bool = False
    seen: list[Any] = attrs.field(factory=list[Any])
    _ids: Any = attrs.field(factory=lambda: itertools.count(100), init=False)

    def request(self, method: str, params: JSONObject) -> JSONObject:
        if self.is_legacy:
            return call(next(self._ids), method, params)
        return modern(next(self._ids), method, params, envelope(self.capabilities))

    def ask(self, method: str, params: JSONObject) -> Any:
        return self.post(self.request(method, params))

    def tool(self, name: str, **arguments: Any) -> Any:
        """The result of a tool that is no task, or of a client without tasks."""
        answer = self.ask("tools/call", {"name": name, "arguments": arguments})
        return answer.get("result", answer)

    def said(self, name: str) -> str:
        text: str = self.tool(name)["content"][0]["text"]
        return text

    def begun(self, name: str, **arguments: Any) -> str:
        """The id of a new task."""
        params: JSONObject = {"name": name, "arguments": arguments}
        if self.is_legacy:
            params["task"] = {}
        result = self.ask("tools/call", params)["result"]
        task_id: str = (result["task"] if self.is_legacy else result)["taskId"]
        return task_id

    def get(self, task_id: str) -> Any:
        return self.ask("tasks/get", {"taskId": task_id})["result"]

    def until(self, task_id: str, *statuses: str) -> Any:
        deadline = time.monotonic() + SECONDS
        while (task := self.get(task_id))["status"] not in statuses:
            assert task["status"] not in FINAL, task
            assert time.monotonic() < deadline
            time.sleep(0.002)  # a client that polls
        return task

    def over(self, task_id: str) -> Any:
        return self.until(task_id, *FINAL)

    def update(self, task_id: str, **answers: Any) -> None:
        self.ask("tasks/update", {"taskId": task_id, "inputResponses": answers})


class Pipes:
    """The pipes of a server process."""

    def __init__(self, process: subprocess.Popen[bytes], seen: list[Any]) -> None:
        self.process = process
        self.seen = seen

    def send(self, message: JSONObject) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def __call__(self, message: JSONObject) -> Any:
        self.send(message)
        while True:
            answer = self.receive()
            if answer.get("id") == message["id"] and "method" not in answer:
                return answer
            self.seen.append(answer)


@contextmanager
def talking(
    transport: str, *, client: JSONObject | None = None, **options: Any
) -> Generator[Talk, None, None]:
    capabilities = WITH_TASKS if client is None else client
    if transport == WSGI:
        app = new_app(Works(), **{"tasks": True, "capabilities": {"tools": {}}, **options})

        def carry(message: JSONObject) -> Any:
            return post(app, message, headers_of(message)).ended().json

        yield Talk(carry, app=app, capabilities=capabilities)
        app.close()
        return
    program = [sys.executable, "-m", "tests.support.programs.task_server", json.dumps(options)]
    with subprocess.Popen(
        program,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        seen: list[Any] = []
        guard = threading.Timer(60, process.kill)
        guard.start()
        try:
            pipes = Pipes(process, seen)
            yield Talk(pipes, process=process, capabilities=capabilities, seen=seen)
            process.communicate(timeout=SECONDS)
        finally:
            guard.cancel()
            process.kill()


def legacy(talk: Talk) -> Pipes:
    """Do the handshake on pipes."""
    pipes = talk.post
    assert isinstance(pipes, Pipes)
    pipes(initialize("hello", LEGACY, talk.capabilities))
    pipes.send(INITIALIZED)
    talk.is_legacy = True
    return pipes


# ------------------------------------------------------------------------------------ the work


@each_transport
def test_work_goes_on_while_other_requests_are_served(transport: str) -> None:
    """A worker of the server, or its only thread, must not be taken for an hour."""
    with talking(transport) as talk:
        task_id = talk.begun("wait", ttl_ms=60_000, poll_ms=5, message="warming up")
        task = talk.get(task_id)
        assert (task["ttlMs"], task["pollIntervalMs"]) == (60_000, 5)
        until(lambda: talk.get(task_id)["statusMessage"].endswith(" of 10000"))
        assert talk.said("go") == "gone"
        task = talk.over(task_id)
        assert task["result"]["content"][0]["text"] == "waited"


@each_transport
def test_work_has_the_context_of_its_handler(transport: str) -> None:
    """Middleware may have put the user there."""
    with talking(transport) as talk:
        task_id = talk.begun("context")
        result = talk.over(task_id)["result"]
        assert result["content"][0]["text"] == f"context {task_id} False"


@each_transport
def test_errors_of_the_work_are_those_of_handlers(transport: str) -> None:
    """The text of an unexpected exception may be a secret; that of `McpError` is for the client."""
    with talking(transport) as talk:
        error = talk.over(talk.begun("say"))["error"]
        assert error == {"code": -32001, "message": "no room", "data": {"seats": 0}}
        for name in ("fail", "give", "forget"):
            error = talk.over(talk.begun(name))["error"]
            assert error == {"code": -32603, "message": "internal error"}
        bad = talk.ask("tools/call", {"name": "wait", "arguments": {"ttl_ms": -1}})
        assert bad["error"] == {"code": -32603, "message": "internal error"}


@each_transport
@pytest.mark.parametrize("name", ["wait", "watch"])
def test_work_learns_of_its_cancellation_at_its_next_step(transport: str, name: str) -> None:
    """A thread cannot be cancelled: it looks, or waits by the library."""
    with talking(transport) as talk:
        task_id = talk.begun(name)
        until(lambda: "began" in talk.said("seen"))
        talk.ask("tasks/cancel", {"taskId": task_id})
        last = {"wait": "cancelled True False", "watch": "left"}[name]
        until(lambda: last in talk.said("seen"))
        assert talk.get(task_id)["status"] == "cancelled"


@each_transport
def test_work_ends_when_its_time_to_live_is_over(transport: str) -> None:
    """Nobody can fetch its result any more; below WSGI its own thread keeps the time."""
    with talking(transport) as talk:
        task_id = talk.begun("ask", ttl_ms=100)
        until(lambda: "not answered" in talk.said("seen"))
        answer = talk.ask("tasks/get", {"taskId": task_id})
        assert answer["error"]["code"] == ErrorCode.INVALID_PARAMS


def test_expiry_wakes_work_that_waits_below_wsgi_without_any_request() -> None:
    """No other thread may be there that keeps the time."""
    works = Works()
    app = new_app(works, tasks=True, capabilities={"tools": {}})
    talk = Talk(lambda message: post(app, message, headers_of(message)).ended().json)
    talk.begun("ask", ttl_ms=50)
    until(lambda: works.seen == ["not answered"])


@each_transport
def test_work_asks_in_between(transport: str) -> None:
    """The same key may be asked again, and several at once."""
    with talking(transport) as talk:
        task_id = talk.begun("ask")
        task = talk.until(task_id, "input_required")
        assert task["inputRequests"] == {"who": FORM}
        talk.update(task_id, who=ACCEPTED)
        task = talk.until(task_id, "input_required")
        talk.update(task_id, where={"roots": []})
        talk.update(task_id, **{"who-2": ACCEPTED})
        task = talk.over(task_id)
        assert task["result"]["content"][0]["text"] == "['Ann', 'Ann'] []"


@each_transport
def test_more_tasks_than_may_run_wait_for_their_turn(transport: str) -> None:
    """Threads are not made without end."""
    with talking(transport, running_tasks=1) as talk:
        first, second, third = [talk.begun("wait") for _ in range(3)]
        until(lambda: "began" in talk.said("seen"))
        talk.ask("tasks/cancel", {"taskId": second})
        assert talk.said("seen") == "['began']"
        talk.said("go")
        assert talk.over(third)["status"] == "completed"
        assert talk.over(first)["status"] == "completed"
        assert talk.said("seen") == "['began', 'began']"


# ------------------------------------------------------------------------- clients without tasks


@each_transport
def test_a_client_without_tasks_waits_for_the_response(transport: str) -> None:
    """The handler is the same for all clients."""
    with talking(transport, client=EVERYTHING) as talk:
        assert talk.said("context") == "context None False"
        assert talk.said("nap") == "rested"
        error = talk.tool("ask")["error"]
        assert (error["code"], error["data"]) == (ErrorCode.MISSING_CLIENT_CAPABILITY, NEEDED)
        assert talk.tool("ask_nothing")["error"]["code"] == ErrorCode.INTERNAL_ERROR


@each_transport
def test_create_task_needs_that_tasks_are_turned_on(transport: str) -> None:
    """The mistake must be seen at the first call, not only with clients that take tasks."""
    with talking(transport, tasks=False) as talk:
        assert talk.tool("nap")["error"]["code"] == ErrorCode.INTERNAL_ERROR


def test_too_many_tasks_are_refused() -> None:
    """The memory of finished tasks has a bound."""
    with talking(WSGI, tasks=Tasks(entropy=Entropy(), max_tasks=1)) as talk:
        talk.begun("wait")
        assert talk.tool("wait")["error"]["code"] == ErrorCode.INTERNAL_ERROR


def test_a_legacy_client_without_tasks_is_asked_within_its_request() -> None:
    """2025-11-25 has questions within a request."""
    with talking(STDIO, client=EVERYTHING) as talk:
        pipes = legacy(talk)
        message = talk.request("tools/call", {"name": "ask"})
        pipes.send(message)
        answers: list[JSONObject] = [ACCEPTED, ACCEPTED, {"roots": []}]
        for answer in answers:
            asked = pipes.receive()
            pipes.send({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
        text = pipes.receive()["result"]["content"][0]["text"]
        assert text == "['Ann', 'Ann'] []"


def test_questions_that_a_legacy_client_without_tasks_cannot_answer_fail_its_request() -> None:
    """The client is told why, as one whose task asks."""
    with talking(STDIO, client={}) as talk:
        error = legacy(talk)(talk.request("tools/call", {"name": "ask"}))["error"]
    assert error["code"] == ErrorCode.INVALID_PARAMS
    assert "did not declare" in error["message"]


# -------------------------------------------------------------------------------- 2025-11-25


@pytest.mark.parametrize("name", ["plain", "rounds"])
def test_handlers_that_know_nothing_of_tasks_serve_clients_that_want_them(name: str) -> None:
    """The library makes the task around the handler, and its questions are those of the task."""
    with talking(STDIO) as talk:
        pipes = legacy(talk)
        task_id = talk.begun(name)
        while not any(one.get("method") == "elicitation/create" for one in talk.seen):
            talk.seen.append(pipes.receive())
        (asked,) = [one for one in talk.seen if one.get("method") == "elicitation/create"]
        meta: JSONObject = asked["params"]["_meta"]
        assert meta.get("example.org/k") == (1 if name == "plain" else None)
        pipes.send({"jsonrpc": "2.0", "id": asked["id"], "result": ACCEPTED})
        answer = talk.ask("tasks/result", {"taskId": task_id})
        assert answer["result"]["content"][0]["text"] == "Ann"


def test_settings_count_where_the_task_was_made_before_the_handler_ran() -> None:
    """In threads each handler runs after the answer to its request."""
    with talking(STDIO) as talk:
        legacy(talk)
        task_id = talk.begun("ask", ttl_ms=60_000, poll_ms=5, message="warming up")
        task = talk.until(task_id, "input_required")
        assert (task["ttl"], task["pollInterval"]) == (60_000, 5)
        assert task["statusMessage"] == "warming up"


def test_a_handler_waits_for_an_answer_as_long_as_it_says() -> None:
    """It knows nothing of tasks: its `timeout` must not be lost."""
    with talking(STDIO) as talk:
        legacy(talk)
        answer = talk.ask("tasks/result", {"taskId": talk.begun("late")})
        said = answer["result"]["content"][0]["text"]
        assert said == "elicitation/create was not answered in time"


def test_a_session_below_wsgi_has_tasks_of_2025_11_25() -> None:
    """Its handler runs in a thread of its own, and not in that of the request."""
    app = new_app(Works(), tasks=True, capabilities={"tools": {}}, sessions=True)
    session = Session(app)
    created = session.post(call(1, "tools/call", {"name": "nap", "task": {}})).ended()
    task_id = created.json["result"]["task"]["taskId"]
    result = session.post(call(2, "tasks/result", {"taskId": task_id})).ended()
    assert result.json["result"]["content"][0]["text"] == "rested"


# ------------------------------------------------------------------------------- the end


def test_an_application_below_wsgi_waits_for_tasks_when_it_is_closed() -> None:
    """`drain` seconds are theirs, too; then they fail with the reason."""
    works = Works()
    app = new_app(works, tasks=True, capabilities={"tools": {}}, sessions=True)
    session = Session(app)
    params: JSONObject = {"name": "wait", "task": {}}
    done = session.post(call(1, "tools/call", params)).ended().json["result"]["task"]["taskId"]
    until(lambda: works.seen)
    threading.Timer(0.05, works.go.set).start()
    waiting = session.post(call(2, "tasks/result", {"taskId": done}))
    app.close(drain=SECONDS)
    assert waiting.ended().json["result"]["content"][0]["text"] == "waited"


def test_tasks_below_wsgi_that_are_not_done_in_time_fail_with_the_reason() -> None:
    """Whoever waits for the result is told."""
    works = Works()
    app = new_app(works, tasks=True, capabilities={"tools": {}}, sessions=True, running_tasks=1)
    session = Session(app)
    params: JSONObject = {"name": "wait", "task": {}}
    tasks = [
        session.post(call(id, "tools/call", params)).ended().json["result"]["task"] for id in (1, 2)
    ]
    until(lambda: works.seen)
    waiting = session.post(call(3, "tasks/result", {"taskId": tasks[1]["taskId"]}))
    time.sleep(0.05)  # nothing tells when that request waits
    app.close()
    assert waiting.ended().json["error"] == ENDED
    until(lambda: works.seen == ["began", "cancelled True False"])


def test_work_below_wsgi_that_ends_the_program_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No call of the server waits that could raise it."""
    with talking(WSGI) as talk:
        assert talk.over(talk.begun("exit"))["error"]["code"] == ErrorCode.INTERNAL_ERROR
    assert "raised SystemExit(5), which ends the program" in caplog.text


def test_work_may_end_a_server_on_stdio() -> None:
    """As a handler may."""
    with talking(STDIO) as talk:
        talk.begun("exit")
        assert talk.process is not None
        assert talk.process.wait(SECONDS) == 5


@pytest.mark.parametrize("drain", [30.0, 0.1])
def test_the_end_of_input_leaves_time_for_results_that_are_waited_for(drain: float) -> None:
    """`tasks/result` is a request that was read before the end: it has an answer in any case."""
    with talking(STDIO, drain=drain) as talk:
        pipes = legacy(talk)
        task_id = talk.begun("wait")
        message = talk.request("tasks/result", {"taskId": task_id})
        pipes.send(message)
        assert talk.process is not None
        if drain > 1:
            pipes.send(talk.request("tools/call", {"name": "go"}))
        said, _ = talk.process.communicate(timeout=SECONDS)
        answers = {one["id"]: one for one in map(json.loads, said.splitlines()) if "id" in one}
        if drain > 1:
            text = answers[message["id"]]["result"]["content"][0]["text"]
            assert text == "waited"
        else:
            assert answers[message["id"]]["error"] == ENDED


def test_the_end_of_input_cancels_tasks_for_which_nobody_waits() -> None:
    """Their threads have time to clean up."""
    with talking(STDIO) as talk:
        talk.begun("wait")
        until(lambda: "began" in talk.said("seen"))
        assert talk.process is not None
        _, said = talk.process.communicate(timeout=SECONDS)
        assert said.strip() == b"['began', 'cancelled True False']"
