"""A Redis of one's own: a process on a free port of loopback, which keeps nothing."""

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
    """The process, which may be killed, paused and started again at the same port."""

    def __init__(self, *options: str) -> None:
        self.port = 0
        self._options: Sequence[str] = options
        self._process: subprocess.Popen[bytes]
        for _ in range(5):  # another program may take the port
            with socket.create_server(("127.0.0.1", 0)) as listener:
                self.port = listener.getsockname()[1]
            with suppress(RuntimeError):
                self.start()
                break

    @property
    def url(self) -> str:
        """Where it is."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it at its port, and wait until it answers."""
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
        """Kill it, with all that it has."""
        self._process.kill()
        self._process.communicate(timeout=SECONDS)

    def pause(self) -> None:
        """Let it do nothing."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        os.kill(self._process.pid, signal.SIGCONT)

    def client(self) -> Any:
        """A client of redis-py."""
        return redis.Redis(port=self.port, protocol=2)

    @property
    def keys(self) -> list[str]:
        """All keys that are there."""
        with self.client() as client:
            return sorted(key.decode() for key in client.keys("*"))


@contextmanager
def running_redis(*options: str) -> Generator[RedisServer, None, None]:
    """A Redis as long as the block runs."""
    server = RedisServer(*options)
    try:
        yield server
    finally:
        with suppress(ProcessLookupError):
            server.go_on()
        server.kill()
