"""Servers with unusual openings, without the library: `python unusual_openings.py NAME`.

Each answers `tools/list` with an empty list at any time.
"""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any, Final

LEGACY: Final = "2025-11-25"
MODERN: Final = "2026-07-28"
AGREED: Final[dict[str, Any]] = {
    "protocolVersion": LEGACY,
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "odd", "version": "1.0"},
}
CACHED: Final[dict[str, Any]] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
DISCOVERED: Final[dict[str, Any]] = {
    "supportedVersions": [MODERN],
    "capabilities": {"tools": {}},
    **CACHED,
}
LISTED: Final[dict[str, Any]] = {"tools": []}
NO_METHOD: Final[dict[str, Any]] = {"code": -32601, "message": "no such method"}
NO_HANDSHAKE: Final[dict[str, Any]] = {
    "code": -32022,
    "message": "no handshake here",
    "data": {"supported": [MODERN], "requested": LEGACY},
}


def write(data: str) -> None:
    sys.stdout.write(data)
    sys.stdout.flush()


def answer(message: dict[str, Any], result: object = None, error: object = None) -> None:
    outcome = {"result": result} if error is None else {"error": error}
    write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}) + "\n")


def requests() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        if message["method"] == "tools/list":
            meta: dict[str, Any] = message.get("params", {}).get("_meta", {})
            is_modern = any(name.endswith("/protocolVersion") for name in meta)
            answer(message, {**LISTED, **(CACHED if is_modern else {})})
        elif "id" in message:
            yield message


def dying() -> None:
    """Ends at an unknown method, with a message on standard error."""
    for message in requests():
        if message["method"] != "initialize":
            print("unknown method, giving up", file=sys.stderr, flush=True)
            os._exit(3)
        answer(message, AGREED)


def silent() -> None:
    """Does not answer requests with unknown methods."""
    for message in requests():
        if message["method"] == "initialize":
            answer(message, AGREED)


def obliging() -> None:
    """Answers requests with unknown methods with an empty result."""
    for message in requests():
        answer(message, AGREED if message["method"] == "initialize" else {})


def late(discovers: str = "", *, shakes_hands: bool = True) -> None:
    """Answers a probe that is its first request only when the next request arrives.

    With `discovers`, probes get a result; without it, an error.
    """
    waiting: list[dict[str, Any]] = []
    for number, message in enumerate(requests()):
        waiting.append(message)
        if number == 0 and message["method"] == "server/discover":
            continue
        for request in waiting:
            if request["method"] == "server/discover":
                answer(request, DISCOVERED, None if discovers else NO_METHOD)
            else:
                answer(request, AGREED, None if shakes_hands else NO_HANDSHAKE)
        waiting.clear()


def slow() -> None:
    """Speaks the modern era only, and answers the probe after the client has cancelled it."""
    late("discovers", shakes_hands=False)


def noisy(discovers: str = "") -> None:
    """Prints lines that are no messages before it begins."""
    write("starting ...\n\n{}\n")
    for message in requests():
        if message["method"] == "initialize":
            answer(message, AGREED)
        elif message["method"] == "server/discover" and discovers:
            answer(message, DISCOVERED)
        else:
            answer(message, error=NO_METHOD)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
