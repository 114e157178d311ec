"""Tasks in a database: one server works on a task, and after a restart another has its result."""

import asyncio
import sqlite3
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sansmcp import JSONObject, TaskRecord
from sansmcp_io.asyncio import (
    CreateTask,
    HTTPServer,
    RunningTask,
    ServerCall,
    connect_http,
    serve_http,
)

INFO: JSONObject = {"name": "example", "version": "1.0"}


# -- store
class SQLStore:
    """A `TaskStore` in a file of SQLite, which any number of processes may open."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS tasks (id TEXT PRIMARY KEY, version INTEGER, owner TEXT,"
            " place TEXT, expires REAL, data BLOB)"
        )

    def get(self, task_id: str) -> TaskRecord | None:
        rows = self._database.execute("SELECT data FROM tasks WHERE id = ?", [task_id])
        return next((TaskRecord.from_bytes(data) for (data,) in rows), None)

    def put(self, record: TaskRecord) -> bool:
        """Store a record unless another process was faster; return whether it is stored."""
        if record.version == 1:
            done = self._database.execute(
                "INSERT OR IGNORE INTO tasks"
                " VALUES (:id, :version, :owner, :place, :expires, :data)",
                _row(record),
            )
        else:
            done = self._database.execute(
                "UPDATE tasks SET version = :version, expires = :expires, data = :data"
                " WHERE id = :id AND version = :version - 1",
                _row(record),
            )
        return done.rowcount == 1

    def page(self, owner: str, after: str | None, limit: int) -> Sequence[TaskRecord]:
        rows = self._database.execute(
            "SELECT data FROM tasks WHERE owner = ? AND place > ? ORDER BY place LIMIT ?",
            [owner, after or "", limit],
        )
        return [TaskRecord.from_bytes(data) for (data,) in rows]

    def remove_old(self, now: float) -> None:
        """Remove what has expired; call it from time to time, with Unix seconds."""
        self._database.execute("DELETE FROM tasks WHERE expires < ?", [now])

    def close(self) -> None:
        self._database.close()


def _row(record: TaskRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "version": record.version,
        "owner": record.owner,
        "place": record.place,
        "expires": record.expires_at,
        "data": record.to_bytes(),
    }


# -- run
async def bake(task: RunningTask) -> JSONObject:
    return {"content": [{"type": "text", "text": "bread"}]}


def handle(call: ServerCall) -> CreateTask:
    return CreateTask(bake, poll_ms=50)


@asynccontextmanager
async def serving(path: Path) -> AsyncGenerator[str, None]:
    """A server, as after each start of its process; gives its URL."""
    store = SQLStore(path)
    listening: asyncio.Future[HTTPServer] = asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(
            serve_http(
                handle,
                port=0,  # any that is free
                info=INFO,
                capabilities={"tools": {}},
                tasks=True,
                task_store=store,
                on_listening=listening.set_result,
            )
        )
        server = await listening
        yield f"http://127.0.0.1:{server.port}/mcp"
        server.close()
    store.close()


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tasks.db")
        async with serving(path) as url, connect_http(url, info=INFO) as client:
            task = await client.start_task("tools/call", {"name": "bake"})
            await task.result()
            assert task.id is not None  # None: the server has answered without a task
        print("the server has ended")
        async with serving(path) as url, connect_http(url, info=INFO) as client:
            task = await client.resume_task(task.id)
            print((await task.result())["content"])


if __name__ == "__main__":
    asyncio.run(main())
