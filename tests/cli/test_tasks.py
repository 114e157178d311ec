"""`sansmcp call --task` and `sansmcp tasks`: results that come later."""

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
import trio

from sansmcp import ErrorCode, JSONObject, Tasks
from sansmcp_io.trio import CreateTask, McpError, RunningTask, ServerCall
from tests.support.command_line import (
    BIN,
    SECONDS,
    document,
    hear_signals,
    modern,
    sansmcp,
    scripted,
)
from tests.support.http.in_thread import Served, served
from tests.support.tasks import Entropy

MODERN, LEGACY = "2026-07-28", "2025-11-25"
SERVER = [sys.executable, "-m", "tests.support.programs.task_server"]
NAP = json.dumps({"poll_ms": 10})
UNKNOWN = "0" * 48
each_form = pytest.mark.parametrize("revision", [MODERN, LEGACY])


def stdio(**options: object) -> list[str]:
    """The command of a server with tasks on stdio."""
    return ["--", *SERVER, json.dumps(options)]


def text(value: str, **more: object) -> JSONObject:
    return {"content": [{"type": "text", "text": value}], **more}


class Works:
    """The handler of a server over HTTP.

    Attributes:
        go: Set when the tool `wait` is to end; made by the first call, in the loop of the server.
        ended: Set when a work was cancelled.
    """

    def __init__(self) -> None:
        self.go: trio.Event | None = None
        self.ended = threading.Event()

    def __call__(self, call: ServerCall) -> Any:
        if call.method == "tools/list":
            return {"tools": [tool("wait", "required"), tool("plain"), tool("other", "optional")]}
        name: str = call.params["name"]
        if name == "plain":
            return text("plain")
        if self.go is None:
            self.go = trio.Event()
        return CreateTask(getattr(self, name), poll_ms=10, message="waiting")

    async def wait(self, task: RunningTask) -> JSONObject:
        assert self.go is not None
        try:
            task.update(message="half way\x1b")
            await self.go.wait()
        except trio.Cancelled:
            self.ended.set()
            raise
        return text("waited")

    async def fail(self, task: RunningTask) -> JSONObject:
        return text("no disk", isError=True)

    async def refuse(self, task: RunningTask) -> JSONObject:
        raise McpError(-32001, "no room", {"seats": 0})


def tool(name: str, support: str | None = None) -> JSONObject:
    execution = {} if support is None else {"execution": {"taskSupport": support}}
    return {"name": name, "inputSchema": {"type": "object"}, **execution}


class Users:
    """Knows users by a header."""

    def __call__(self, headers: Mapping[str, str]) -> str:
        return headers.get("user", "nobody")


class Site:
    """A server with tasks over HTTP, in a thread."""

    def __init__(self, served: Served, works: Works) -> None:
        self.url = served.url
        self.works = works
        self._served = served

    def run(self, *arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
        return sansmcp(*arguments, "--url", self.url, **env)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [BIN, *arguments, "--url", self.url],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hear_signals,
        )

    def begun(self, name: str = "wait", *options: str) -> str:
        """The id of a new task."""
        done = self.run("call", name, "--task", "--detach", *options)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.strip()

    def finish(self) -> None:
        """Let the tool `wait` end."""

        def finish(_server: object) -> None:
            assert self.works.go is not None
            self.works.go.set()

        self._served.tell(finish)


@contextmanager
def site(**options: Any) -> Generator[Site, None, None]:
    works = Works()
    users: Any = {"authenticate": Users(), "principal_key": str}
    options = {"tasks": True, "capabilities": {"tools": {}}, **users, **options}
    with served(works, **options) as server:
        yield Site(server, works)


@pytest.fixture
def there() -> Generator[Site, None, None]:
    with site() as it:
        yield it


def failure(done: "subprocess.CompletedProcess[str]") -> Any:
    """The error of a command with `--json` that has failed."""
    assert done.returncode == 3, done
    return json.loads(done.stdout)["error"]


def read_until(process: "subprocess.Popen[str]", wanted: str) -> str:
    """The lines on standard error up to the one that has this text."""
    assert process.stderr is not None
    lines = ""
    while wanted not in lines:
        line = process.stderr.readline()
        assert line, f"it ended without {wanted!r}: {lines}"
        lines += line
    return lines


# ------------------------------------------------------------------------------------ call --task


@each_form
def test_result_of_a_task_is_shown_as_that_of_a_plain_call(revision: str) -> None:
    """A script must not have to know whether the server has made a task."""
    done = sansmcp("call", "nap", NAP, "--task", "--revision", revision, *stdio())
    assert (done.returncode, done.stdout) == (0, "rested\n")
    assert done.stderr.startswith("task: working\n")

    line = ["call", "--task=60", "nap", NAP, "--json", "--quiet", "--revision", revision]
    done = sansmcp(*line, *stdio())
    assert document(done)["content"] == text("rested")["content"]
    assert done.stderr == ""


@each_form
def test_status_is_shown_when_it_changes(there: Site, revision: str) -> None:
    """A user who waits for an hour must see that something happens."""
    process = there.start("call", "wait", "--task", "--revision", revision)
    with process:
        lines = read_until(process, "half way")
        there.finish()
        out, err = process.communicate(timeout=SECONDS)

    assert lines.splitlines()[-1] == "task: working, half way\\x1b"
    assert (process.returncode, out) == (0, "waited\n")
    assert "working" not in err


@each_form
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_signal_cancels_the_task(there: Site, revision: str, name: str) -> None:
    """The server must not work for an hour for a user who has left."""
    process = there.start("call", "wait", "--task", "--json", "--revision", revision)
    with process:
        read_until(process, "half way")
        process.send_signal(signal.Signals[name])
        out, _ = process.communicate(timeout=SECONDS)

    assert process.returncode == 128 + signal.Signals[name]
    said = "the task of tools/call was cancelled, and the server was told so"
    assert json.loads(out)["error"]["text"] == f"interrupted by {name}: {said}"
    assert there.works.ended.wait(SECONDS)


@each_form
def test_signal_cancels_the_task_on_stdio(revision: str) -> None:
    """The server there ends with the command, and must have been told before."""
    line = ["call", "wait", NAP, "--task", "--revision", revision, *stdio()]
    process = subprocess.Popen(
        [BIN, *line],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_signals,
    )
    with process:
        read_until(process, "of 10000")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)

    assert process.returncode == 130
    assert "error: interrupted by SIGINT: the task of tools/call was cancelled" in err
    assert "'cancelled True False'" in err  # what the server has seen, in the end


@each_form
def test_tool_of_a_task_may_fail(there: Site, revision: str) -> None:
    """The exit status must be that of a plain call."""
    done = there.run("call", "fail", "--task", "--revision", revision)
    assert (done.returncode, done.stdout) == (1, "no disk\n")
    assert "error: the tool fail says that it has failed (isError)" in done.stderr

    error = failure(there.run("call", "refuse", "--task", "--json", "--revision", revision))
    assert (error["kind"], error["code"], error["data"]) == ("peer-error", -32001, {"seats": 0})
    assert "answered tools/call with an error: no room (-32001)" in error["text"]


def test_server_may_answer_without_a_task(there: Site) -> None:
    """In 2026-07-28 the server decides, also for a command that wants an id."""
    done = there.run("call", "plain", "--task")
    assert (done.returncode, done.stdout, done.stderr) == (0, "plain\n", "")

    done = there.run("call", "plain", "--task", "--detach")
    assert (done.returncode, done.stdout) == (0, "plain\n")
    assert done.stderr == "warning: the server has answered without a task: this is the result\n"


def test_server_without_tasks_is_not_asked_for_one() -> None:
    """A server of 2025-11-25 that declares no tasks may misread the member `task`."""
    with site(tasks=False) as it:
        error = failure(it.run("call", "plain", "--task", "--json", "--revision", LEGACY))

    assert error["kind"] == "not-offered"
    assert "tools/call as a task needs the capability tasks.requests.tools.call" in error["text"]
    assert error["hints"][0] == "leave --task out: this server makes no tasks"


def test_hints_say_how_a_tool_is_called() -> None:
    """A tool may exist only as a task, or never as one."""
    support: Any = {"wait": "required", "plain": "forbidden"}
    with site(tasks=Tasks(entropy=Entropy(), tools=support)) as it:
        modern = it.run("call", "wait", "--revision", MODERN)
        legacy = it.run("call", "wait", "--revision", LEGACY)
        plain = it.run("call", "plain", "--task", "--revision", LEGACY)

    assert (modern.returncode, legacy.returncode, plain.returncode) == (3, 3, 3)
    assert "hint: it answers this request with a task only: --task" in modern.stderr
    assert "hint: the tool wait is called as a task only: --task" in legacy.stderr
    assert "hint: the tool plain takes no tasks: leave --task out" in plain.stderr


def test_other_errors_of_a_tool_have_no_hints_on_tasks() -> None:
    """A hint that does not help sends the user in the wrong direction."""
    error = {"code": ErrorCode.METHOD_NOT_FOUND, "message": "gone"}
    answers = {"tools/list": {"tools": [tool("other", "optional")]}, "tools/call": {"error": error}}
    done = sansmcp("call", "other", "--", *scripted(answers=answers))
    assert done.returncode == 3
    assert "--task" not in done.stderr


def test_task_that_the_server_cancels_has_no_result() -> None:
    """A script must tell a cancelled task from a lost connection."""
    state = {**STATE, "status": "cancelled"}
    server = scripted(
        answers={
            **modern({"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}),
            "tools/call": {**state, "resultType": "task"},
            "tasks/get": {**state, "resultType": "complete"},
        }
    )
    error = failure(sansmcp("call", "t", "--task", "--json", "--", *server))
    assert error["kind"] == "task-cancelled"
    assert error["text"].endswith("has no result: the task was cancelled")


STATE: JSONObject = {
    "taskId": "t1",
    "status": "working",
    "createdAt": "2026-01-01T00:00:00Z",
    "lastUpdatedAt": "2026-01-01T00:00:01Z",
    "ttlMs": 90_000,
    "pollIntervalMs": 10,
}


# ------------------------------------------------------------------------------------------ tasks


@each_form
def test_task_outlives_the_command_that_has_begun_it(there: Site, revision: str) -> None:
    """Begin in the evening, and fetch the result in the morning."""
    task_id = there.begun("wait", "--revision", revision)
    assert re.fullmatch("[0-9a-f]{48}", task_id)

    there.finish()
    done = there.run("tasks", "wait", task_id, "--revision", revision)
    assert (done.returncode, done.stdout) == (0, "waited\n")
    done = there.run("tasks", "result", task_id, "--json", "--revision", revision)
    assert (document(done)["content"], done.stderr) == (text("waited")["content"], "")


def test_id_of_a_task_is_a_document_too(there: Site) -> None:
    """Programs take the id from a member, so that it cannot be taken for a result."""
    done = there.run("call", "wait", "--task", "--detach", "--json")
    assert list(document(done)) == ["taskId"]


@each_form
def test_state_of_a_task_is_shown(there: Site, revision: str) -> None:
    """A look must not wait, and must not end anything."""
    task_id = there.begun("wait", "--revision", revision)
    done = there.run("tasks", "get", task_id, "--revision", revision)
    assert done.returncode == 0
    rows = dict(re.findall(r"^([a-z ]+): +(.*)$", done.stdout, re.M))
    assert rows["id"] == task_id
    assert (rows["status"], rows["message"]) == ("working", "half way\\x1b")
    assert (rows["kept for"], rows["poll every"]) == ("3600 s", "0.01 s")

    state = document(there.run("tasks", "get", task_id, "--json", "--revision", revision))
    assert (state["taskId"], state["status"]) == (task_id, "working")
    error = failure(there.run("tasks", "result", task_id, "--json", "--revision", revision))
    assert error["kind"] == "not-ready"
    assert error["text"].endswith("has no result of the task yet: its status is working")
    assert error["hints"] == ["tasks wait waits for it"]


@each_form
def test_task_is_cancelled_by_its_id(there: Site, revision: str) -> None:
    """The state afterwards is shown, since a server need not obey."""
    task_id = there.begun("wait", "--revision", revision)
    done = there.run("tasks", "cancel", task_id, "--revision", revision)
    assert done.returncode == 0
    assert re.search(r"^status: +cancelled$", done.stdout, re.M)
    assert there.works.ended.wait(SECONDS)

    error = failure(there.run("tasks", "wait", task_id, "--json", "--revision", revision))
    assert error["kind"] == "task-cancelled"


@each_form
@pytest.mark.parametrize("action", ["get", "result", "wait", "cancel"])
def test_task_that_is_not_there_is_named_so(there: Site, action: str, revision: str) -> None:
    """A script must tell a task that is over for good from a server that cannot be reached."""
    error = failure(there.run("tasks", action, UNKNOWN, "--json", "--revision", revision))
    assert error["kind"] == "no-task"
    assert f"the server at {there.url} has no such task" in error["text"]


def test_server_on_stdio_has_no_tasks_of_other_processes() -> None:
    """A hint says why an id from another command is not known."""
    done = sansmcp("tasks", "get", UNKNOWN, *stdio())
    assert done.returncode == 3
    assert "has no such task" in done.stderr
    assert (
        "hint: it was started with this command, and knows only tasks that it has stored"
        in done.stderr
    )


@each_form
def test_tool_that_has_failed_is_told_by_the_exit_status(there: Site, revision: str) -> None:
    """The exit status of `tasks wait` must be that of `call`."""
    task_id = there.begun("fail", "--revision", revision)
    done = there.run("tasks", "wait", task_id, "--revision", revision)
    assert (done.returncode, done.stdout) == (1, "no disk\n")
    assert "error: the tool says that it has failed (isError)" in done.stderr

    task_id = there.begun("refuse", "--revision", revision)
    error = failure(there.run("tasks", "wait", task_id, "--json", "--revision", revision))
    assert (error["kind"], error["code"]) == ("peer-error", -32001)


def test_wait_that_is_interrupted_leaves_the_task(there: Site) -> None:
    """Only the wait is over: the task belongs to the one who has begun it."""
    task_id = there.begun()
    process = there.start("tasks", "wait", task_id)
    with process:
        read_until(process, "half way")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert "interrupted by SIGINT: the task of tools/call goes on at the server" in err

    there.finish()
    assert there.run("tasks", "wait", task_id).stdout == "waited\n"


# ------------------------------------------------------------------------------------------- list


def test_tasks_of_a_user_are_listed() -> None:
    """A user of 2025-11-25 who has lost the id can find the task again; others do not see it."""
    line = ["tasks", "list", "--revision", LEGACY, "--header"]
    with site() as it:
        task_id = it.begun("wait", "--revision", LEGACY, "--header", "user: ann")
        done = it.run(*line, "user: ann")
        others = it.run(*line, "user: bob")
        both = document(it.run(*line, "user: ann", "--json"))
        hidden = failure(it.run("tasks", "get", task_id, "--header", "user: bob", "--json"))

    assert done.returncode == 0
    head, row = done.stdout.splitlines()
    assert head.split() == ["ID", "STATUS", "CREATED", "MESSAGE"]
    assert row.split()[:2] == [task_id, "working"]
    assert others.stdout == "  (no tasks)\n"
    assert [task["taskId"] for task in both["tasks"]] == [task_id]
    assert hidden["kind"] == "no-task"


def test_tasks_of_unknown_users_belong_to_their_session() -> None:
    """Before 2026-07-28 an id is known in its session only; each command has its own."""
    with site(authenticate=None, principal_key=None) as it:
        task_id = it.begun("wait", "--revision", LEGACY)
        error = failure(it.run("tasks", "get", task_id, "--json", "--revision", LEGACY))
        newer = it.begun("wait", "--revision", MODERN)
        done = it.run("tasks", "get", newer)

    assert error["kind"] == "no-task"
    assert error["hints"] == [
        "in revision 2025-11-25 a server that does not know its users keeps tasks for a session, "
        "and each command has a session of its own"
    ]
    assert done.returncode == 0


def test_list_says_that_the_newest_revision_has_none(there: Site) -> None:
    """Whoever looks for a list must learn that there is none, and where there is one."""
    error = failure(there.run("tasks", "list", "--json"))

    assert error["kind"] == "not-offered"
    assert "lists no tasks: revision 2026-07-28 has no tasks/list" in error["text"]
    assert error["hints"][0].startswith("--revision 2025-11-25 has it")


# ------------------------------------------------------------------------------- what servers say


def test_any_state_can_be_shown() -> None:
    """A server may send values that the command does not expect."""
    questions = {"a": {"method": "elicitation/create"}, "b": {"method": "roots/list"}}
    odd: list[Any] = [
        {**STATE, "ttlMs": None, "status": "input_required", "inputRequests": questions},
        {**STATE, "ttlMs": 10**400, "pollIntervalMs": 1},
        {**STATE, "ttlMs": "long", "pollIntervalMs": 0.5},
    ]
    shown: list[dict[str, str]] = []
    for state in odd:
        server = scripted(
            answers={
                **modern({"extensions": {"io.modelcontextprotocol/tasks": {}}}),
                "tasks/get": {"resultType": "complete", **state},
            }
        )
        done = sansmcp("tasks", "get", "t1", "--", *server)
        assert done.returncode == 0, done
        shown.append(dict(re.findall(r"^([a-z ]+): +(.*)$", done.stdout, re.M)))

    assert (shown[0]["asks for"], shown[0]["kept for"]) == (
        "elicitation/create, roots/list",
        "without end",
    )
    assert shown[1]["kept for"].startswith("1000")
    assert shown[1]["poll every"] == "0.001 s"
    assert (shown[2]["kept for"], shown[2]["poll every"]) == ("long", "0.0005 s")


# ------------------------------------------------------------------------------------------ usage


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["call", "t", "--detach", "--url", "http://x"], "--detach needs --task"),
        (["call", "t", "--task", "--detach", "--", "x"], "--detach needs a server with --url"),
        (["call", "t", "--task=0", "--", "x"], "seconds are a number greater than 0, not '0'"),
        (["call", "t", "--task=inf", "--", "x"], "a task is kept for a number of seconds"),
        (["tasks", "--", "x"], "required: ACTION"),
        (["tasks", "end", "--", "x"], "invalid choice: 'end'"),
        (["tasks", "get", "--", "x"], "the id of the task is missing: sansmcp tasks get ID"),
        (["tasks", "list", "t1", "--", "x"], "list takes no id: 't1'"),
        (["tasks", "list", "node", "s.js"], "-- is missing before the command of the server"),
        (["tasks", "get", "t1", "http://x"], "--url is missing before the URL of the server"),
    ],
)
def test_wrong_command_line_is_refused(arguments: list[str], said: str) -> None:
    """Nothing may be started or sent by mistake."""
    done = sansmcp(*arguments)

    assert done.returncode == 2
    assert said in done.stderr
