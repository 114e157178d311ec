"""A server of this project without an event loop whose tools are tasks, for other clients.

Usage: python -m tests.interop.tasks_server REPORTS    (ends at end of input)

Both eras are served, so a client has tasks in its form. What our side has to report about the
client goes to the file REPORTS, one rule a line; what an observer beside it sees broken, to
REPORTS.accused, one side and rule a line. A task goes on when the client has polled it, so that
each client sees it at work.
"""

import os
import select
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from sansmcp import (
    MODERN_REVISIONS,
    ErrorCode,
    ErrorReceived,
    ErrorWithoutIdReceived,
    Event,
    IncomingRequest,
    JSONObject,
    LimitReached,
    MessageIgnored,
    Observer,
    ProtocolViolation,
    RequestAnswered,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    Side,
    State,
    Task,
    TaskCancelled,
    TaskEnd,
    TaskInputReceived,
    Tasks,
    ViolationSeen,
)

FORM: Final[JSONObject] = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Who are you?",
        "requestedSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
    },
}
SAMPLING: Final[JSONObject] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Say something."}}],
    "maxTokens": 5,
}
SUPPORT: Final[Mapping[str, Any]] = {
    "add": "optional",
    "ask": "optional",
    "break": "optional",
    "fault": "optional",
    "first": "optional",
    "wait": "required",
}

server = ServerConnection(
    info={"name": "sansmcp-tasks", "version": "1.0"},
    capabilities={"tools": {}},
    tasks=Tasks(entropy=os.urandom, tools=SUPPORT, poll_ms=20),
)
observer = Observer()
steps: dict[str, Callable[[Task], object]] = {}
"""What follows the first poll of a task, by its id."""
cancelled = 0


def text(value: object) -> JSONObject:
    return {"content": [{"type": "text", "text": str(value)}]}


def add(task: Task) -> None:
    server.update_task(task, message="adding")
    server.complete_task(task, text(3))


def ask(task: Task) -> None:
    server.require_task_input(task, {"first": FORM, "last": FORM})


def break_down(task: Task) -> None:
    server.fail_task(task, ErrorCode.INTERNAL_ERROR, "it is broken", {"part": 1})


def fault(task: Task) -> None:
    server.complete_task(task, {**text("at fault"), "isError": True})


def wait(task: Task) -> None:
    """Leave the task as it is, until the client cancels it."""


WORK: Final = {"add": add, "ask": ask, "break": break_down, "fault": fault, "wait": wait}


def list_tools() -> JSONObject:
    """The tools; only clients of 2025-11-25 look at `execution`."""
    tools: list[JSONObject] = [
        {
            "name": name,
            "inputSchema": {"type": "object"},
            "execution": {"taskSupport": support},
        }
        for name, support in SUPPORT.items()
    ]
    plain: list[JSONObject] = [
        {"name": name, "inputSchema": {"type": "object"}} for name in ("cancelled", "sample")
    ]
    return {"tools": [*tools, *plain], "ttlMs": 0, "cacheScope": "public"}


def call(request: IncomingRequest) -> None:
    name: str = request.params["name"]
    if name == "cancelled":
        server.send_result(request, text(cancelled))
    elif name == "sample":
        asked = server.send_request(
            "sampling/createMessage", SAMPLING, task=60_000, request=request, now=time.monotonic()
        )
        asked.data = request
    elif name == "first" and "first" not in request.input_responses:
        server.require_input(request, {"first": FORM})
    elif not request.accepts_task:
        server.send_result(request, text("no task"))
    else:
        task = server.create_task(request)
        assert task is not None
        answers = request.input_responses
        if name == "first":
            who: str = answers["first"]["content"]["name"]
            steps[task.id] = lambda task: server.complete_task(task, text(who))
        else:
            steps[task.id] = WORK[name]


def serve(request: IncomingRequest) -> None:
    if request.method == "tools/list":
        is_modern = request.revision in MODERN_REVISIONS
        listed = list_tools()
        server.send_result(request, listed if is_modern else {"tools": listed["tools"]})
    else:
        call(request)


def handle(event: Event) -> None:
    global cancelled
    match event:
        case RequestReceived():
            serve(event.request)
        case RequestAnswered(request=request) if request.method == "tasks/get":
            id: str = request.params["taskId"]
            step = steps.pop(id, None)
            for task in server.open_tasks:
                if task.id == id and step is not None:
                    step(task)
        case TaskInputReceived(task=task, missing=()):
            answers = task.record.answers.decode()
            names = [part for part in ("Ada", "Alan") if part in answers]
            server.complete_task(task, text(names))
        case TaskCancelled(cause=TaskEnd.PEER):
            cancelled += 1
        case ResponseReceived(request=asked, result=result):
            server.send_result(asked.data, text(result["content"]["text"]))
        case ErrorReceived(request=asked, message=message):
            server.send_result(asked.data, text(message))
        case RequestFailed(request=asked, text=reason):
            server.send_result(asked.data, text(reason))
        case ProtocolViolation() | MessageIgnored() | LimitReached():
            report(event.rule)
        case ErrorWithoutIdReceived():
            report("ERR-001")
        case _:
            pass


def report(rule: str) -> None:
    with open(sys.argv[1], "a", encoding="utf-8") as reports:
        print(rule, file=reports)


def accuse() -> None:
    with open(f"{sys.argv[1]}.accused", "a", encoding="utf-8") as accused:
        while (event := observer.next_event()) is not None:
            if isinstance(event, ViolationSeen):
                print(event.side.name, event.rule, file=accused)


def receive() -> None:
    """Take input, or act at the next deadline."""
    deadline = server.next_timeout()
    seconds = None if deadline is None else max(0.0, deadline - time.monotonic())
    if not select.select([0], [], [], seconds)[0]:
        server.handle_timeout(time.monotonic())
    elif chunk := os.read(0, 65536):
        observer.receive_data(Side.CLIENT, chunk)
        server.receive_data(chunk, now=time.monotonic(), at=time.time())
    else:
        server.receive_eof()


def main() -> None:
    for name in (sys.argv[1], f"{sys.argv[1]}.accused"):
        open(name, "w").close()  # no file: never run; an empty one: nothing to report
    while server.state is not State.CLOSED:
        receive()
        while (event := server.next_event()) is not None:
            handle(event)
        data = server.data_to_send()
        observer.receive_data(Side.SERVER, data)
        accuse()
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(1, rest) :]


if __name__ == "__main__":
    main()
