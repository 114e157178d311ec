"""A server whose tools are tasks: `python -m tests.support.programs.task_server OPTIONS`.

OPTIONS is a JSON object of options of `serve_stdio`. `Works` is the handler of a server below WSGI,
too.
"""

import json
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

from sansmcp import ErrorCode, JSONObject
from sansmcp_io.blocking import (
    CallCancelled,
    CreateTask,
    McpError,
    RequestTimeout,
    RequireInput,
    serve_stdio,
)
from tests.support.modern import FORM, ROOTS

NOBODY: Final = "nobody"
caller: ContextVar[str] = ContextVar("caller", default=NOBODY)


def text(value: object) -> JSONObject:
    return {"content": [{"type": "text", "text": str(value)}]}


class Works:
    """The handler of a server, and what its works have seen.

    Attributes:
        go: Set by the tool `go`, for which `wait` waits.
        seen: What has happened; the tool `seen` returns it.
    """

    def __init__(self) -> None:
        self.go = threading.Event()
        self.seen: list[str] = []

    def __call__(self, call: Any) -> Any:
        name: str = call.params["name"]
        if name == "go":
            self.go.set()
            return text("gone")
        if name == "seen":
            return text(self.seen)
        if name == "rounds":
            return self.rounds(call)
        if name in ("plain", "late"):
            return self.plain(call) if name == "plain" else self.late(call)
        settings: JSONObject = call.params.get("arguments") or {}
        work: Callable[[Any], Any] = getattr(self, name)
        caller.set(name)
        return CreateTask(work, **settings)

    def wait(self, task: Any) -> JSONObject:
        """Wait for the tool `go`, and report each step."""
        self.seen.append("began")
        step = 0
        try:
            while not self.go.is_set():
                step += 1
                task.progress(step, total=10_000)
                task.sleep(0.01)
        except CallCancelled:
            self.seen.append(f"cancelled {task.is_cancelled} {task.update(message='no')}")
            raise
        return text("waited")

    def watch(self, task: Any) -> JSONObject:
        """Look again and again whether the result is wanted."""
        self.seen.append("began")
        while not task.is_cancelled:
            self.go.wait(0.005)
        self.seen.append("left")
        return text("left")

    def ask(self, task: Any) -> JSONObject:
        try:
            first = task.ask({"who": FORM})
            both = task.ask({"who": FORM, "where": ROOTS})
        except CallCancelled:
            self.seen.append("not answered")
            raise
        names = [one["who"]["content"]["name"] for one in (first, both)]
        return text(f"{names} {both['where']['roots']}")

    def ask_nothing(self, task: Any) -> JSONObject:
        answers: JSONObject = task.ask({})
        return answers

    def context(self, task: Any) -> JSONObject:
        return text(f"{caller.get()} {task.id} {task.is_cancelled}")

    def say(self, task: Any) -> JSONObject:
        raise McpError(-32001, "no room", {"seats": 0})

    def fail(self, task: Any) -> JSONObject:
        raise ValueError("secret")

    def give(self, task: Any) -> Any:
        return {"content": object()}

    async def forget(self, task: Any) -> JSONObject:
        return text("an async function does not run here")

    def exit(self, task: Any) -> JSONObject:
        raise SystemExit(5)

    def nap(self, task: Any) -> JSONObject:
        task.sleep(0.001)
        return text("rested")

    def rounds(self, call: Any) -> Any:
        """Ask before there is a task, or within it."""
        if call.state is None:
            return RequireInput(state="begun")
        if call.state == "begun":
            return RequireInput({"who": FORM}, state="asked")
        return CreateTask(lambda task: text(call.input_responses["who"]["content"]["name"]))

    def plain(self, call: Any) -> JSONObject:
        """Know nothing of tasks."""
        if call.is_cancelled:
            raise McpError(ErrorCode.INTERNAL_ERROR, "not yet")
        call.progress(1, message="half")
        call.sleep(0.001)
        answer = call.request("elicitation/create", FORM["params"], meta={"example.org/k": 1})
        return text(answer["content"]["name"])

    def late(self, call: Any) -> JSONObject:
        """Wait for an answer for a moment."""
        try:
            call.request("elicitation/create", FORM["params"], timeout=0.01)
        except RequestTimeout as error:
            return text(error)
        return text("in time")


def main(options: str) -> None:
    given: JSONObject = json.loads(options)
    served: dict[str, Any] = {"info": {"name": "tasks", "version": "1.0"}, "tasks": True, **given}
    works = Works()
    serve_stdio(works, capabilities={"tools": {}}, **served)
    print(works.seen, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
