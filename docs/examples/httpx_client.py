"""A client over HTTP whose requests are made by an httpx2 client that the program already has."""

import asyncio
import subprocess
import sys
from typing import Any

import httpx2

from sansmcp import JSONObject
from sansmcp_io.asyncio import connect_http

INFO: JSONObject = {"name": "example", "version": "1.0"}
SERVER = [sys.executable, "-m", "sansmcp_io", "serve-demo", "--http", "0"]


# -- client
async def note(response: httpx2.Response) -> None:
    print(response.request.method, response.status_code, response.http_version)


async def talk(url: str) -> None:
    http = httpx2.AsyncClient(
        headers={"X-Team": "search"},
        event_hooks={"response": [note]},
        limits=httpx2.Limits(max_connections=20),
        # proxy="http://proxy.example:3128", verify=context, http2=True, auth=...
    )
    async with http, connect_http(url, info=INFO, http=http) as client:
        call: JSONObject = {"name": "echo", "arguments": {"text": "hello"}}
        result: Any = await client.request("tools/call", call)
        print(result["content"][0]["text"])


# -- end
def main() -> None:
    with subprocess.Popen(SERVER, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = process.stderr.readline().removeprefix("serving ").strip()
        try:
            asyncio.run(talk(url))
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
