"""The events of sessions in a database: a client resumes a stream from there."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sansmcp import JSONObject
from sansmcp_io.asyncio import HTTPServer, ServerCall, connect_http, serve_http

INFO: JSONObject = {"name": "demo", "version": "1.0"}
T = TypeVar("T")


# -- store
class DatabaseStore:
    """Keeps the newest 500 events of each session. sqlite3 blocks, so it runs in a thread of its
    own."""

    def __init__(self, path: str) -> None:
        self.thread = ThreadPoolExecutor(max_workers=1)
        self.database = sqlite3.connect(path, check_same_thread=False)
        self.database.execute("CREATE TABLE IF NOT EXISTS events (session, stream, event, message)")

    async def append(self, session: str, stream: int, event: int, message: bytes) -> int:
        def insert() -> int:
            with self.database as db:
                row = (session, stream, event, message)
                db.execute("INSERT INTO events VALUES (?, ?, ?, ?)", row)
                newest = "SELECT rowid FROM events WHERE session = ? ORDER BY rowid DESC LIMIT 500"
                old = f"session = ? AND rowid NOT IN ({newest})"
                return db.execute(f"DELETE FROM events WHERE {old}", (session, session)).rowcount

        return await self.run(insert)

    async def replay(
        self, session: str, stream: int, after: int
    ) -> Sequence[tuple[int, bytes]] | None:
        def select() -> Sequence[tuple[int, bytes]] | None:
            of = "FROM events WHERE session = ? AND stream = ?"
            if not self.database.execute(f"SELECT 1 {of}", (session, stream)).fetchone():
                return None  # nothing is known of the stream
            next_ones = f"SELECT event, message {of} AND event > ? ORDER BY event LIMIT 100"
            return self.database.execute(next_ones, (session, stream, after)).fetchall()

        return await self.run(select)

    async def forget(self, session: str) -> None:
        def delete() -> None:
            with self.database as db:
                db.execute("DELETE FROM events WHERE session = ?", (session,))

        await self.run(delete)

    async def count(self) -> int:
        def count() -> int:
            (number,) = self.database.execute("SELECT count(*) FROM events").fetchone()
            return int(number)

        return await self.run(count)

    async def run(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.thread, function)


# -- server
async def handle(call: ServerCall) -> JSONObject:
    call.progress(1)
    call.close_stream(retry_ms=10)  # the client has to resume: as after a failure of the network
    call.progress(2)
    return {"content": [{"type": "text", "text": "done"}]}


async def serve(store: DatabaseStore, on_listening: Callable[[HTTPServer], object]) -> None:
    await serve_http(
        handle,
        port=0,
        info=INFO,
        capabilities={"tools": {}},
        event_log=store,
        lookup_timeout=5.0,
        on_listening=on_listening,
    )


# -- run
async def main() -> None:
    store = DatabaseStore(":memory:")
    listening: asyncio.Future[HTTPServer] = asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as group:
        group.create_task(serve(store, listening.set_result))
        server = await listening
        url = f"http://127.0.0.1:{server.port}/mcp"
        async with connect_http(url, info=INFO, revisions=("2025-11-25",)) as client:
            result = await client.request(
                "tools/call",
                {"name": "slow"},
                on_progress=lambda progress, total, message: print("progress", progress),
            )
            (content,) = result["content"]
            assert content["type"] == "text"
            print(content["text"])
        server.close()
    print("events when the session has ended:", await store.count())


if __name__ == "__main__":
    asyncio.run(main())
