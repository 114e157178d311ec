"""A server on stdio whose tools are tasks: `python -m tests.support.programs.task_tools`.

`Tools` is the handler of servers on any loop.
"""

import asyncio
import os
from typing import Any

from sansmcp import JSONObject, Tasks
from sansmcp_io.asyncio import CreateTask, McpError, PeerError, RequireInput, serve_stdio
from tests.support.adapters import loops
from tests.support.modern import BOTH, FORM, ROOTS

SETTINGS: dict[str, Any] = {
    "info": {"name": "tasks", "version": "1.0"},
    "capabilities": {"tools": {}},
    "revisions": BOTH,
    "tasks": Tasks(entropy=os.urandom, poll_ms=10),
}


def text(value: object) -> JSONObject:
    return {"content": [{"type": "text", "text": str(value)}]}


class Tools:
    """The handler of a server, whose tools are named after its methods.

    Attributes:
        seen: What has happened; the tool `see` returns it.
    """

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._gate: loops.Event | None = None

    @property
    def gate(self) -> loops.Event:
        """Opened by the tool `go`; the tool `wait` waits for it."""
        if self._gate is None:
            self._gate = loops.new_event()
        return self._gate

    def __call__(self, call: Any) -> Any:
        name: str = call.params["name"]
        if name == "echo":
            return text("plain")
        if name == "go":
            self.gate.set()
            return text("gone")
        if name == "see":
            return text(self.seen)
        if name == "delegate":
            return self.delegate(call)
        if name == "first":
            if not call.input_responses:
                return RequireInput({"who": FORM})
            return CreateTask(self.nap)
        settings: JSONObject = call.params.get("arguments") or {}
        return CreateTask(getattr(self, name), **settings)

    async def nap(self, task: Any) -> JSONObject:
        return text("rested")

    async def wait(self, task: Any) -> JSONObject:
        """Report some progress, and wait for the tool `go`."""
        self.seen.append("began")
        task.progress(1, total=2, message="half")
        try:
            await self.gate.wait()
        except BaseException:
            self.seen.append("cancelled")
            raise
        task.progress(2, total=2, message="done")
        return text("waited")

    async def ask(self, task: Any) -> JSONObject:
        """Ask two questions, and then another one."""
        try:
            both = await task.ask({"who": FORM, "where": ROOTS})
            again = await task.ask({"who": FORM})
        except BaseException:
            self.seen.append("not answered")
            raise
        names = [one["who"]["content"]["name"] for one in (both, again)]
        return text(f"{names} {len(both['where']['roots'])}")

    async def delegate(self, call: Any) -> JSONObject:
        """Ask the client within the call, for a task of the client or not."""
        wanted: JSONObject = call.params["arguments"]
        try:
            result = await call.request(FORM["method"], FORM["params"], **wanted)
        except PeerError as error:
            return text(f"{error.code} {error.message}")
        return text(result["content"]["name"])

    async def say(self, task: Any) -> JSONObject:
        raise McpError(-32001, "no room", {"seats": 0})


if __name__ == "__main__":
    asyncio.run(serve_stdio(Tools(), **SETTINGS))
