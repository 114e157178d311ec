"""Runs an HTTP proxy that resolves every host name to this machine."""

import base64
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

SECONDS = 60


class Proxy:
    """The first line of each connection to the proxy."""

    def __init__(self, port: int, credentials: str | None, status: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[str] = []
        self._status = status
        self._demanded = b""
        if credentials is not None:
            encoded = base64.b64encode(credentials.encode())
            self._demanded = b"proxy-authorization: basic " + encoded.lower()

    def serve(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            part = client.recv(65_536)
            if not part:
                return
            head += part
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        self.asked.append(f"{method} {target}")
        if self._status != 200 or self._demanded not in head.lower():
            status = self._status if self._status != 200 else 407
            line = b"HTTP/1.1 %d secret words of the proxy\r\n" % status
            client.sendall(line + b"content-length: 0\r\nconnection: close\r\n\r\n")
            return
        where = urlsplit(f"//{target}" if method == "CONNECT" else target)
        with socket.create_connection(("127.0.0.1", where.port or 80), SECONDS) as server:
            if method == "CONNECT":
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                server.sendall(head)  # our servers accept a complete URL as target
            back = threading.Thread(target=_pass, args=(server, client), daemon=True)
            back.start()
            _pass(client, server)
            back.join(SECONDS)


def _pass(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxying(credentials: str | None = None, status: int = 200) -> Generator[Proxy, None, None]:
    """Run a proxy until the block is left.

    Args:
        credentials: The credentials that it requires, as `user:password`.
        status: The status with which it answers every request; 200 lets it forward requests.
    """
    clients: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def serve(client: socket.socket) -> None:
        with client, suppress(OSError):
            proxy.serve(client)

    def accept() -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                client, _ = listener.accept()
                clients.append(client)
                threads.append(threading.Thread(target=serve, args=(client,), daemon=True))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = Proxy(listener.getsockname()[1], credentials, status)
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield proxy
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            for client in clients:
                with suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)
            for thread in [accepting, *threads]:
                thread.join(SECONDS)
