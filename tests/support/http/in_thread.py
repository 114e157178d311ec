"""HTTP servers in threads, for clients without a loop."""

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
    """A server that runs in its own thread, and can be told things from here."""

    def __init__(self, server: HTTPServer, token: trio.lowlevel.TrioToken) -> None:
        self._server = server
        self._token = token
        self.port = server.port
        self.url = f"http://127.0.0.1:{server.port}/mcp"

    def tell(self, function: Callable[[HTTPServer], Any]) -> Any:
        """Have something done with the server, in its thread."""
        return trio.from_thread.run_sync(function, self._server, trio_token=self._token)


@contextmanager
def served(handler: Handler, **settings: Any) -> Generator[Served, None, None]:
    """A server of trio on a port that is free, in a thread, which is ended."""
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
    """A server that reads a request, and does what it likes; its port."""
    threads: list[threading.Thread] = []
    open_sockets: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):  # the client has had enough
            reply(connection, connection.recv(65_536))

    def accept() -> None:
        with suppress(OSError):  # it is closed
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
