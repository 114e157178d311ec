"""The floor for HTTP: asyncio, h11 and json, without any checks.

`python -m benchmarks.servers.bare_http --port 8001`
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

import h11


class Bare(asyncio.Protocol):
    """One connection: parse the request, echo the text, write the response."""

    def connection_made(self, transport: Any) -> None:
        """A client is there."""
        self._transport = transport
        self._h11 = h11.Connection(h11.SERVER)
        self._body = b""

    def data_received(self, data: bytes) -> None:
        """Serve each request as soon as all of it is there."""
        connection = self._h11
        connection.receive_data(data)
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Data):
                self._body += event.data
            elif isinstance(event, h11.EndOfMessage):
                self._answer()
            elif event is h11.NEED_DATA or event is h11.PAUSED:
                return
            elif isinstance(event, h11.ConnectionClosed):
                self._transport.close()
                return

    def _answer(self) -> None:
        message: dict[str, Any] = json.loads(self._body)
        self._body = b""
        text = message["params"]["arguments"]["text"]
        result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        body = json.dumps(answer).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
        send = self._h11.send
        data = send(h11.Response(status_code=200, headers=headers)) or b""
        data += send(h11.Data(data=body)) or b""
        data += send(h11.EndOfMessage()) or b""
        self._transport.write(data)
        self._h11.start_next_cycle()


async def serve(port: int) -> None:
    """Serve until interrupted."""
    server = await asyncio.get_running_loop().create_server(Bare, "127.0.0.1", port)
    await server.serve_forever()


def main() -> None:
    """Serve on the given port."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
