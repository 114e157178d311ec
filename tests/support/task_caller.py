"""A client of the tasks of a cluster, driven by hand."""

import asyncio
import itertools
from typing import Any

import httpx2

from sansmcp import JSONObject
from tests.support.modern import envelope, modern
from tests.support.tasks import WITH_TASKS
from tests.support.workers import Place


class Caller:
    """A client of 2026-07-28 whose requests go where the test says."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http
        self._numbers = itertools.count(1)

    async def ask(
        self, worker: Place, method: str, params: JSONObject, **headers_of_user: str
    ) -> Any:
        """The response to a request."""
        message = modern(next(self._numbers), method, params, envelope(WITH_TASKS))
        headers = {
            **headers_of_user,
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": method,
            "mcp-name": params["taskId" if "taskId" in params else "name"],
        }
        response = await self._http.post(worker.url, json=message, headers=headers)
        return response.json()

    async def begin(self, worker: Place, text: str, seconds: float, **more: Any) -> str:
        """Call a tool that becomes a task, and return the id."""
        arguments = {"text": text, "seconds": seconds, **more}
        answer = await self.ask(worker, "tools/call", {"name": "task", "arguments": arguments})
        task_id: str = answer["result"]["taskId"]
        return task_id

    async def get(self, worker: Place, task_id: str) -> Any:
        """The response to `tasks/get`."""
        return await self.ask(worker, "tasks/get", {"taskId": task_id})

    async def until(self, worker: Place, task_id: str, status: str) -> Any:
        """The task, once it has a status; errors of the store are waited out."""
        while True:
            answer = await self.get(worker, task_id)
            result: Any = answer.get("result", {})
            if result.get("status") == status:
                return result
            assert result.get("status", "working") == "working", answer
            assert answer.get("error", {}).get("code", -32603) == -32603, answer
            await asyncio.sleep(0.05)


def text_of(result: Any) -> str:
    """The text of the result of a task."""
    text: str = result["result"]["content"][0]["text"]
    return text
