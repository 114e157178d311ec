"""Starts a Redis server for a test, on a free port of the loopback address, that saves nothing."""

import os
import signal
import socket
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import redis

SECONDS: Final = 20


class RedisServer:
    """A Redis process that a test can kill, pause, and start again on the same port."""

    def __init__(self, *options: str) -> None:
        self.port = 0
        self._options: Sequence[str] = options
        self._process: subprocess.Popen[bytes]
        for _ in range(5):  # another program may take the port in the meantime
            with socket.create_server(("127.0.0.1", 0)) as listener:
                self.port = listener.getsockname()[1]
            with suppress(RuntimeError):
                self.start()
                break

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start the server on its port, and wait until it answers."""
        command = [
            *("redis-server", "--port", str(self.port), "--bind", "127.0.0.1"),
            *("--save", "", "--appendonly", "no", "--daemonize", "no", *self._options),
        ]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if b"Ready to accept connections" in line:
                return
        self._process.communicate()
        raise RuntimeError("redis-server has not started")

    def kill(self) -> None:
        """Kill the process; its data is lost."""
        self._process.kill()
        self._process.communicate(timeout=SECONDS)

    def pause(self) -> None:
        """Stop the process until `go_on`."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let a paused process run again."""
        os.kill(self._process.pid, signal.SIGCONT)

    def client(self) -> Any:
        """A new client of redis-py for this server."""
        return redis.Redis(port=self.port, protocol=2)

    @property
    def keys(self) -> list[str]:
        """All keys in the database."""
        with self.client() as client:
            return sorted(key.decode() for key in client.keys("*"))


@contextmanager
def running_redis(*options: str) -> Generator[RedisServer, None, None]:
    """Run a Redis server until the block is left."""
    server = RedisServer(*options)
    try:
        yield server
    finally:
        with suppress(ProcessLookupError):
            server.go_on()
        server.kill()
