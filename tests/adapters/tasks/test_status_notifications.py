"""What the scenario `tasks-status-notifications` of the conformance suite describes, and skips.

The server is the one that the suite is run against, over HTTP.
"""

import http.client
import json
from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from sansmcp import MODERN_REVISIONS, JSONObject
from tests.conformance.__main__ import free_port, running_server
from tests.support.modern import envelope, modern
from tests.support.tasks import WITH_TASKS

SURE: JSONObject = {"sure": {"action": "accept", "content": {"confirm": True}}}
UNSURE: JSONObject = {"sure": {"action": "decline"}}
LISTEN_ID = 50


@contextmanager
def posted(
    port: int, id: int, method: str, params: JSONObject
) -> Generator[http.client.HTTPResponse]:
    """The response to a request, of which only the head is read."""
    headers = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": MODERN_REVISIONS[-1],
        "mcp-method": method,
    }
    name: str | None = params.get("name", params.get("taskId"))
    if name is not None:
        headers["mcp-name"] = name
    message = modern(id, method, params, envelope(WITH_TASKS))
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request("POST", "/mcp", json.dumps(message), headers)
        with connection.getresponse() as response:
            assert response.status == 200, response.read()
            yield response


def result_of(port: int, method: str, **params: Any) -> JSONObject:
    with posted(port, 1, method, params) as response:
        result: JSONObject = json.loads(response.read())["result"]
        return result


def messages(stream: http.client.HTTPResponse) -> Generator[JSONObject]:
    """The messages of a stream of events, as they come."""
    while line := stream.readline():
        if line.startswith(b"data:") and line[5:].strip():
            yield json.loads(line[5:])


@contextmanager
def listening(port: int, *ids: str) -> Generator[Generator[JSONObject]]:
    """The notifications of a subscription to tasks, after its acknowledgement."""
    params: JSONObject = {"notifications": {"taskIds": [*ids]}}
    with posted(port, LISTEN_ID, "subscriptions/listen", params) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        seen = messages(stream)
        acknowledged = next(seen)
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == {"taskIds": [*ids]}
        yield seen


def until_over(seen: Generator[JSONObject]) -> list[JSONObject]:
    """The params of the notifications, to that of a final status."""
    found: list[JSONObject] = []
    for message in seen:
        assert message["method"] == "notifications/tasks"
        params = message["params"]
        assert params["_meta"]["io.modelcontextprotocol/subscriptionId"] == LISTEN_ID
        found.append(params)
        if params["status"] in ("completed", "failed", "cancelled"):
            return found
    raise AssertionError("the stream has ended before the task")


@pytest.mark.parametrize("adapter", ["trio", "asyncio", "asgi"])
def test_each_status_is_sent_on_the_stream_of_the_subscription(adapter: str) -> None:
    """XTASK-125: each carries the task and its status, and a final one its result or error."""
    port = free_port()
    with running_server(port, adapter):
        endings: dict[str, JSONObject] = {}
        for answers in (SURE, UNSURE, None):
            arguments = {"filename": "f"}
            made = result_of(port, "tools/call", name="confirm_delete", arguments=arguments)
            id: str = made["taskId"]
            while made["status"] == "working":
                made = result_of(port, "tasks/get", taskId=id)
            with listening(port, id) as seen:
                if answers is None:
                    result_of(port, "tasks/cancel", taskId=id)
                else:
                    result_of(port, "tasks/update", taskId=id, inputResponses=answers)
                told = until_over(seen)
            assert {params["taskId"] for params in told} == {id}
            before = [] if answers is None else ["working"]
            assert [params["status"] for params in told[:-1]] == before
            endings[told[-1]["status"]] = told[-1]
    assert endings["completed"]["result"]["content"][0]["text"] == "Deleted: True"
    assert endings["failed"]["error"]["code"] == -32603
    assert {"result", "error"}.isdisjoint(endings["cancelled"])
