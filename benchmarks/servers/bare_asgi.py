"""The floor for ASGI: uvicorn and json, without any checks.

`python -m benchmarks.servers.bare_asgi --port 8001 --http h11`
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any, Literal

import uvicorn


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Take the request, echo the text, send the response."""
    body = b""
    more = True
    while more:
        received = await receive()
        body += received["body"]
        more = received["more_body"]
    message: dict[str, Any] = json.loads(body)
    text = message["params"]["arguments"]["text"]
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
    data = json.dumps(answer).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": data})


def serve(
    application: Any,
    port: int,
    http: Literal["h11", "httptools"],
    lifespan: Literal["on", "off"] = "off",
) -> None:
    """Serve until interrupted."""
    uvicorn.run(
        application,
        port=port,
        http=http,
        loop="asyncio",
        lifespan=lifespan,
        log_level="warning",
        access_log=False,
    )


def parser(description: str | None) -> argparse.ArgumentParser:
    """The parser of the options that both servers of this kind have."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--port", type=int, required=True)
    made.add_argument("--http", choices=("h11", "httptools"), default="h11")
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve on the given port."""
    options = parser(__doc__).parse_args(arguments)
    serve(app, options.port, options.http)


if __name__ == "__main__":
    main()
