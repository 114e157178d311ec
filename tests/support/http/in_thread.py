"""Runs HTTP servers in threads, for tests of clients without an event loop."""

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from queue import Queue
from typing import Any

import trio

from sansmcp_io.trio import Handler, HTTPServer
from tests.support.http.on_loops import serving

SECONDS = 30


class Served:
    """A server that runs in a thread of its own."""

    def __init__(self, server: HTTPServer, token: trio.lowlevel.TrioToken) -> None:
        self._server = server
        self._token = token
        self.port = server.port
        self.url = f"http://127.0.0.1:{server.port}/mcp"

    def tell(self, function: Callable[[HTTPServer], Any]) -> Any:
        """Call a function with the server, in the thread of the server."""
        return trio.from_thread.run_sync(function, self._server, trio_token=self._token)


@contextmanager
def served(handler: Handler, **settings: Any) -> Generator[Served, None, None]:
    """Run a trio server on a free port, in a thread, until the block is left."""
    ready: Queue[Served | BaseException] = Queue()
    over = trio.Event()

    async def main() -> None:
        async with serving(handler, **settings) as server:
            ready.put(Served(server, trio.lowlevel.current_trio_token()))
            await over.wait()

    def run() -> None:
        try:
            trio.run(main)
        except BaseException as error:
            ready.put(error)
            raise

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    started = ready.get(timeout=SECONDS)
    assert isinstance(started, Served), started
    try:
        yield started
    finally:
        started.tell(lambda _: over.set())
        thread.join(SECONDS)
    assert not thread.is_alive()


Reply = Callable[[socket.socket, bytes], object]


@contextmanager
def hostile(reply: Reply) -> Generator[int, None, None]:
    """Run a server that reads one request and then calls `reply`; give its port."""
    threads: list[threading.Thread] = []
    open_sockets: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):  # the client has closed the connection
            reply(connection, connection.recv(65_536))

    def accept() -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                connection, _ = listener.accept()
                open_sockets.append(connection)
                thread = threading.Thread(target=serve, args=(connection,), daemon=True)
                thread.start()
                threads.append(thread)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield port
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            for connection in open_sockets:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            for thread in [accepting, *threads]:
                thread.join(SECONDS)
