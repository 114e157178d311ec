"""A server and a client over HTTP on asyncio, one of whose calls is cancelled."""

import asyncio

from sansmcp import JSONObject
from sansmcp_io.asyncio import Client, HTTPServer, ServerCall, connect_http, serve_http

INFO: JSONObject = {"name": "example", "version": "1.0"}


# -- handle
async def handle(call: ServerCall) -> JSONObject:
    if call.method == "tools/list":
        return {"tools": [{"name": "sleep", "inputSchema": {"type": "object"}}]}
    seconds: float = call.params["arguments"]["seconds"]
    try:
        await asyncio.sleep(seconds)  # what the tool is for
    except asyncio.CancelledError:
        print("nobody waits any more")
        raise
    return {"content": [{"type": "text", "text": f"slept {seconds} s"}]}


# -- run
async def main() -> None:
    listening: asyncio.Future[HTTPServer] = asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(
            serve_http(
                handle,
                port=0,  # any that is free
                info=INFO,
                capabilities={"tools": {}},
                on_listening=listening.set_result,
            )
        )
        server = await listening
        await ask(f"http://127.0.0.1:{server.port}/mcp")
        server.close()


# -- ask
async def ask(url: str) -> None:
    async with connect_http(url, info=INFO) as client:
        print(await sleep(client, 0.01))
        try:
            async with asyncio.timeout(0.2):
                await sleep(client, 60)
        except TimeoutError:
            print("given up")


# -- end
async def sleep(client: Client, seconds: float) -> str:
    params: JSONObject = {"name": "sleep", "arguments": {"seconds": seconds}}
    (content,) = (await client.request("tools/call", params))["content"]
    assert content["type"] == "text"
    return content["text"]


if __name__ == "__main__":
    asyncio.run(main())
