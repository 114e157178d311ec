"""Clients that follow tasks of the server without a loop, over stdio and HTTP."""

import gc
import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import attrs
import pytest

from sansmcp import FailureReason, JSONObject, LocalProtocolError, Tasks
from sansmcp_io.blocking import (
    Call,
    CallCancelled,
    Client,
    ClientTask,
    ConnectionLost,
    InvalidAnswer,
    McpError,
    PeerError,
    RequestTimeout,
    TaskCancelledError,
    TaskLost,
    connect_http,
    connect_stdio,
)
from tests.support.adapters.blocking_talk import InThread
from tests.support.adapters.task_talk import Endings
from tests.support.http.in_thread import served
from tests.support.modern import LEGACY, MODERN
from tests.support.processes import ROOT
from tests.support.programs.task_tools import SETTINGS, Tools, text

STDIO, HTTP = "stdio", "http"
each_transport = pytest.mark.parametrize("transport", [STDIO, HTTP])
each_revision = pytest.mark.parametrize("revision", [MODERN, LEGACY])
SERVER = [sys.executable, "-m", "tests.support.programs.task_tools"]


def answer(call: Call) -> JSONObject:
    """A user who has one root, and gives a name."""
    if call.method == "roots/list":
        return {"roots": [{"uri": "file:///a"}]}
    return {"action": "accept", "content": {"name": "Ann"}}


def somebody(head: object) -> str:
    """The principal of all clients."""
    return "somebody"


@attrs.frozen
class Talk:
    """A client, and its server.

    Attributes:
        client: The client.
        url: Where the server is reached, over HTTP.
    """

    client: Client
    url: str = ""

    def call(self, name: str, **more: Any) -> Any:
        params: JSONObject = {"name": name, "arguments": more.pop("arguments", {})}
        return self.client.request("tools/call", params, **more)

    def said(self, name: str, **more: Any) -> str:
        said: str = self.call(name, **more)["content"][0]["text"]
        return said

    def start(self, name: str, **more: Any) -> ClientTask:
        params: JSONObject = {"name": name, "arguments": more.pop("arguments", {})}
        task: ClientTask = self.client.start_task("tools/call", params, **more)
        return task

    def until_seen(self, *wanted: str) -> None:
        """Wait until the server has seen this."""
        while self.said("see") != str(list(wanted)):
            self.client.poll(0.01)


@contextmanager
def talking(transport: str, revision: str = MODERN, **options: Any) -> Generator[Talk, None, None]:
    settings: dict[str, Any] = {
        "info": {"name": "test", "version": "1.0"},
        "revisions": (revision,),
        "capabilities": {"elicitation": {"form": {}}, "roots": {}},
        "on_request": answer,
        **options,
    }
    if transport == STDIO:
        with connect_stdio(SERVER, cwd=ROOT, **settings) as client:
            yield Talk(client)
        return
    known: dict[str, Any] = {"authenticate": somebody, "principal_key": str}
    with (
        served(Tools(), **SETTINGS, **known) as server,
        connect_http(server.url, **settings) as client,
    ):
        yield Talk(client, server.url)


@each_revision
@each_transport
def test_a_request_for_a_task_returns_the_result(transport: str, revision: str) -> None:
    """A caller must not see whether the server has made a task of its request."""
    with talking(transport, revision) as talk:
        assert talk.said("nap", task=True) == "rested"
        assert talk.said("nap", task=5.5) == "rested"
        assert talk.said("ask", task=True) == "['Ann', 'Ann'] 1"
        with pytest.raises(PeerError, match="no room"):
            talk.call("say", task=True)
        with pytest.raises(RequestTimeout):
            talk.call("wait", task=True, max_timeout=0.3)
        talk.until_seen("began", "cancelled")
        if revision == MODERN:
            assert talk.said("first", task=True) == "rested"


@each_revision
@each_transport
def test_a_task_is_followed_by_its_handle(transport: str, revision: str) -> None:
    """What the server tells of it, until its result is there."""
    told: list[Any] = []

    def note(*progress: Any) -> None:
        told.append(progress)

    with talking(transport, revision) as talk:
        task = talk.start("wait", task=60, on_progress=note)
        assert (task.status, task.open, repr(task)) == (
            "working",
            True,
            "<ClientTask tools/call working>",
        )
        with pytest.raises(TimeoutError, match="is not over after"):
            task.result(timeout=0)
        with pytest.raises(TimeoutError, match="has not changed within"):
            for _ in task.updates(timeout=0.3):
                pass
        seen: list[tuple[str, str | None]] = []
        for update in task.updates():
            seen.append((update.status, update.message))
            if update.message == "half":
                talk.call("go")
        assert seen[-2:] == [("working", "half"), ("completed", None)]
        for timeout in (None, 5):
            assert task.result(timeout=timeout)["content"] == text("waited")["content"]
        assert not task.cancel()
        assert [update.status for update in task.updates()] == ["completed"]
    assert told == ([(1, 2, "half"), (2, 2, "done")] if revision == LEGACY else [])


def test_a_handle_has_the_result_of_a_server_that_makes_no_task() -> None:
    """The server decides (2026-07-28)."""
    with talking(STDIO) as talk:
        task = talk.start("echo")
        assert (task.id, task.status, task.message, task.open) == (None, "completed", None, False)
        assert task.result()["content"] == text("plain")["content"]
        assert list(task.updates()) == []
        assert not task.cancel()


@each_revision
def test_failures_have_one_exception_each(revision: str) -> None:
    """A caller has to know whether to begin again, and what to say."""
    with talking(HTTP, revision) as talk:
        failed = talk.start("say")
        with pytest.raises(PeerError, match="no room"):
            failed.result()
        cancelled = talk.start("wait")
        assert cancelled.id is not None
        talk.client.request("tasks/cancel", {"taskId": cancelled.id})
        with pytest.raises(TaskCancelledError, match="the server has cancelled the task"):
            cancelled.result()
        expired = talk.start("wait", arguments={"ttl_ms": 20})
        with pytest.raises(TaskLost, match="its time to live is over"):
            expired.result()
        with pytest.raises(TaskLost, match="the task is not known"):
            talk.client.resume_task("unknown")
        with pytest.raises(ValueError, match="task is True, or a number of seconds"):
            talk.call("nap", task=0.0)
    with pytest.raises(ConnectionLost):
        talk.start("wait")


@each_transport
def test_a_task_is_cancelled_by_its_handle(transport: str) -> None:
    """It ends here at once, for all threads that wait for it."""
    with talking(transport) as talk:
        task = talk.start("wait")
        talk.until_seen("began")
        waiting = [InThread(task.result) for _ in range(2)]
        assert task.cancel(reason="enough")
        for thread in waiting:
            with pytest.raises(TaskCancelledError, match="this side has cancelled the task"):
                thread.result()
        talk.until_seen("began", "cancelled")


def test_a_task_is_resumed_by_another_client() -> None:
    """The id is all that is needed, and the block of the client that has started it may end."""
    with talking(HTTP) as talk:
        settings: dict[str, Any] = {"info": {"name": "other", "version": "1"}}
        with connect_http(talk.url, revisions=(MODERN,), **settings) as other:
            task = other.start_task("tools/call", {"name": "wait", "arguments": {}})
            task_id = task.id
            assert task_id is not None
        with pytest.raises(ConnectionLost):
            task.result()
        resumed = talk.client.resume_task(task_id, timeout=30, max_timeout=60)
        with pytest.raises(LocalProtocolError, match="followed already"):
            talk.client.resume_task(task_id)
        talk.call("go")
        assert resumed.result()["content"] == text("waited")["content"]


def test_a_dropped_handle_leaves_nothing_behind() -> None:
    """Polls for nobody would go on as long as the task."""
    ended = Endings()
    with talking(HTTP, trace=ended) as talk:
        task = talk.start("wait")
        task_id = task.id
        assert task_id is not None
        assert ended.reasons == []
        del task
        gc.collect()
        assert ended.reasons == [FailureReason.CANCELLED]
        again = talk.client.resume_task(task_id)
        talk.call("go")
        assert again.result()["content"] == text("waited")["content"]
        assert talk.said("see") == "['began']"


# ---------------------------------------------------------------------------- questions


@each_revision
def test_any_thread_that_waits_answers_the_questions(revision: str) -> None:
    """No thread has to wait for the task itself."""
    asked = list[str]()

    def note(call: Call) -> JSONObject:
        asked.append(call.method)
        return answer(call)

    with talking(HTTP, revision, on_request=note) as talk:
        task = talk.start("ask")
        while len(asked) < 3:
            talk.client.poll(0.1)
        assert task.result()["content"] == text("['Ann', 'Ann'] 1")["content"]
    assert sorted(asked) == ["elicitation/create"] * 2 + ["roots/list"]


@pytest.mark.parametrize("answers", [McpError(-32001, "not here"), ValueError("x"), object()])
def test_a_question_without_an_answer_ends_the_task(answers: Any) -> None:
    """The server would wait for it until the end of the task."""

    def fail(call: Call) -> Any:
        if isinstance(answers, Exception):
            raise answers
        return answers

    with talking(HTTP, on_request=fail) as talk:
        said = "not here" if isinstance(answers, McpError) else "internal error"
        with pytest.raises(McpError, match=said):
            talk.call("ask", task=True)
        task = talk.start("ask")
        for _ in range(2):
            with pytest.raises(McpError, match=said):
                task.result()
        assert (task.status, task.open) == ("cancelled", False)
        talk.until_seen("not answered", "not answered")


def test_a_handler_learns_that_its_answer_is_not_wanted_any_more() -> None:
    """The task has ended meanwhile."""
    seen: list[Any] = []
    is_asked = threading.Event()

    def hang(call: Call) -> JSONObject:
        seen.append(call.is_cancelled)
        is_asked.set()
        try:
            call.sleep(60)
        except CallCancelled:
            seen.append(call.is_cancelled)
            raise
        return {}

    with talking(STDIO, on_request=hang) as talk:
        task = talk.start("ask")
        waiting = InThread(task.result)
        assert is_asked.wait(30)
        assert task.cancel()
        with pytest.raises(TaskCancelledError):
            waiting.result()
    assert seen == [False, True]


def test_the_end_of_the_program_within_an_answer_ends_the_task() -> None:
    """The thread that answers raises it, and all others learn that there is no answer."""

    def leave(call: Call) -> JSONObject:
        raise SystemExit(3)

    with talking(STDIO, on_request=leave) as talk:
        task = talk.start("ask")
        with pytest.raises(SystemExit):
            task.result()
        with pytest.raises(McpError, match="internal error"):
            task.result()


def test_more_questions_than_the_limit_end_the_task() -> None:
    """`Tasks.max_questions`."""
    tasks = Tasks(entropy=os.urandom, max_questions=2)
    with (
        talking(STDIO, tasks=tasks) as talk,
        pytest.raises(InvalidAnswer, match="has asked 2 questions"),
    ):
        talk.call("ask", task=True)


def test_an_exception_of_on_progress_ends_the_task() -> None:
    """As it ends a request; in 2026-07-28 there is no progress of tasks."""

    def fail(progress: float, total: float | None, message: str | None) -> None:
        if progress == 2:
            raise RuntimeError("no more")

    with talking(HTTP, LEGACY) as talk:
        task = talk.start("wait", on_progress=fail)
        talk.call("go")
        with pytest.raises(RuntimeError, match="no more"):
            task.result()
        assert task.status == "cancelled"
