"""A task over HTTP that one client begins, and another fetches."""

import asyncio

from sansmcp import JSONObject
from sansmcp_io.asyncio import (
    CreateTask,
    HTTPServer,
    RunningTask,
    ServerCall,
    TaskLost,
    connect_http,
    serve_http,
)

INFO: JSONObject = {"name": "example", "version": "1.0"}
evening = asyncio.Event()


# -- handle
async def bake(task: RunningTask) -> JSONObject:
    task.update(message="in the oven")
    await evening.wait()
    return {"content": [{"type": "text", "text": "bread"}]}


def handle(call: ServerCall) -> CreateTask:
    return CreateTask(bake, poll_ms=50)


# -- clients
async def begin(url: str) -> str:
    async with connect_http(url, info=INFO) as client:
        task = await client.start_task("tools/call", {"name": "bake"})
        assert task.id is not None  # None: the server has answered without a task
        return task.id  # keep it where it survives, and secret


async def fetch(url: str, task_id: str) -> None:
    async with connect_http(url, info=INFO) as client:
        try:
            task = await client.resume_task(task_id)
        except TaskLost as error:
            print(error)
            return
        try:
            print((await task.result(timeout=0.1))["content"])
        except TimeoutError:
            print("later:", task.status, "-", task.message)


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
                tasks=True,
                on_listening=listening.set_result,
            )
        )
        server = await listening
        url = f"http://127.0.0.1:{server.port}/mcp"
        task_id = await begin(url)
        await fetch(url, task_id)
        evening.set()
        await fetch(url, task_id)
        await fetch(url, "another id")
        server.close()


if __name__ == "__main__":
    asyncio.run(main())
