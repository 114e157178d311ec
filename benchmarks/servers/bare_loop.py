"""The floor for `stdio`: read a line, parse it, build the answer, write it, flush. No protocol."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

_INITIALIZED: Final[dict[str, Any]] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "bare", "version": "1.0"},
}


def main() -> None:
    """Answer `initialize`, and echo the text of every other request, until the input ends."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while line := source.readline():
        message: dict[str, Any] = json.loads(line)
        if "id" not in message:
            continue
        result: dict[str, Any]
        if message["method"] == "initialize":
            result = _INITIALIZED
        else:
            text = message["params"]["arguments"]["text"]
            result = {"content": [{"type": "text", "text": text}]}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        sink.write(json.dumps(answer).encode() + b"\n")
        sink.flush()


if __name__ == "__main__":
    main()
