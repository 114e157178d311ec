"""Runs HTTP servers that send a list of responses, for clients that are processes."""

import socket
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

import attrs
import h11

SECONDS = 60


@attrs.define
class Lines:
    """The heads of the requests. `wait` returns when one has arrived."""

    heads: list[str] = attrs.field(factory=list[str])
    _came: threading.Semaphore = attrs.field(factory=lambda: threading.Semaphore(0))

    def add(self, head: str) -> None:
        self.heads.append(head)
        self._came.release()

    def wait(self) -> None:
        assert self._came.acquire(timeout=SECONDS)


@contextmanager
def answering(answers: Sequence[bytes], lines: Lines | None = None) -> Generator[int]:
    """Send one response after the other, whatever the requests are, and then nothing.

    Yields the port.
    """
    left = list(answers)
    ended = threading.Event()

    def serve(peer: socket.socket) -> None:
        peer.settimeout(SECONDS)
        with peer, suppress(OSError):
            while head := _request(peer):
                if lines is not None:
                    lines.add(head)
                if not left or not left[0]:
                    ended.wait(SECONDS)
                    return
                peer.sendall(left.pop(0))

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def listen() -> None:
            with suppress(OSError):
                while True:
                    peer, _ = listener.accept()
                    threading.Thread(target=serve, args=(peer,), daemon=True).start()

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            ended.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(SECONDS)


def _request(peer: socket.socket) -> str:
    """Read one request, and return its head; an empty text at the end of the connection."""
    parser = h11.Connection(h11.SERVER)
    data = b""
    while True:
        event = parser.next_event()
        if event is h11.NEED_DATA:
            more = peer.recv(65536)
            if not more:
                return ""
            data += more
            parser.receive_data(more)
        elif isinstance(event, h11.EndOfMessage):
            return data.partition(b"\r\n\r\n")[0].decode("latin-1") + "\r\n"
