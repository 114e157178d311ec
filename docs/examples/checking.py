"""Params, results and parts of them, judged by the rules of a revision."""

from typing import Any

from sansmcp import (
    Config,
    JSONObject,
    LocalProtocolError,
    RequestFailed,
    RequestReceived,
    ServerConnection,
)
from sansmcp.check import check_params, check_part, check_result
from sansmcp.testing import Pair

# -- functions
page: dict[str, Any] = {
    "tools": [
        {"name": "add", "inputSchema": {"type": "object"}},
        {"name": "roll dice", "inputSchema": {"type": "object"}},
        {"name": "now", "title": None},
    ]
}
for problem in check_result("tools/list", page, "2025-11-25"):
    print(problem)

prompt: JSONObject = {"name": "greet", "arguments": {"times": 7}}
for problem in check_params("prompts/get", prompt, "2026-07-28"):
    print(problem.rule, problem.level, problem.path)

link: JSONObject = {"type": "resource_link", "uri": "file:///a", "name": "a"}
for revision in ("2025-03-26", "2025-06-18"):
    result: JSONObject = {"content": [link]}
    print(revision, len(check_result("tools/call", result, revision)), "problem(s)")
print(check_part("ResourceLink", link, "2025-06-18"))
# -- connections
full = Config(check="full")
bad: JSONObject = {"content": [{"type": "txt", "text": "hello"}]}


def call(pair: Pair) -> ServerConnection:
    """A call of a tool, which the server answers with a block of an unknown type."""
    pair.client.send_request("tools/call", {"name": "greet"})
    request = pair.deliver_one(RequestReceived).request
    try:
        pair.server.send_result(request, bad)
    except LocalProtocolError as error:
        print("server:", error)
    return pair.server


call(Pair(server_config=full))  # the server does not send it

pair = Pair(client_config=full)  # the client does not take it
call(pair)
ending = pair.deliver_one(RequestFailed)
print("client:", ending.reason.name, ending.result == bad)
# -- end
