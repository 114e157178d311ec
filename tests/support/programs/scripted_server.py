"""A server that sends what its script says, valid or invalid, on the standard library alone.

Usage: python scripted_server.py SCRIPT, a JSON object with any of

    stdout      lines to begin with, sent unchanged
    stderr      lines to begin with on standard error
    exit        the status with which it ends after that
    log         write the method of each message received to standard error
    initialize  the response to it: members of the result, or {"error": ...}
    answers     for other methods: the result, {"error": ...}, or a list of these, one each time
    before      for other methods: lines (objects) to write before the response
    die_at      a method at which it ends without a response, with status 7
    silent      methods that are not answered
"""

import json
import os
import sys
from typing import Any

script: dict[str, Any] = json.loads(sys.argv[1])
answers: dict[str, Any] = {"x/env": {"env": dict(os.environ)}, **script.get("answers", {})}


def write(message: object) -> None:
    print(message if isinstance(message, str) else json.dumps(message), flush=True)


def answer_to(method: str) -> Any:
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "scripted", "version": "1.0"},
            **script.get("initialize", {}),
        }
    answer: Any = answers.get(method, {"error": {"code": -32601, "message": f"no method {method}"}})
    one_each: list[Any] = answer
    return one_each.pop(0) if isinstance(answer, list) else answer


for text in script.get("stderr", []):
    print(text, file=sys.stderr, flush=True)
for text in script.get("stdout", []):
    write(text)
if "exit" in script:
    sys.exit(script["exit"])

for line in sys.stdin:
    message: dict[str, Any] = json.loads(line)
    name = message.get("method", "an answer")
    if script.get("log"):
        print("received", name, file=sys.stderr, flush=True)
    if name == script.get("die_at"):
        sys.exit(7)
    if "id" not in message or name in script.get("silent", []):
        continue
    for more in script.get("before", {}).get(name, []):
        if not isinstance(more, str) and more.get("method") == "notifications/progress":
            more["params"]["progressToken"] = message["params"]["_meta"]["progressToken"]
        write(more)
    answer = answer_to(name)
    body = {"error": answer["error"]} if "error" in answer else {"result": answer}
    write({"jsonrpc": "2.0", "id": message["id"], **body})
