"""Runs our programs in forked processes, whose imports are done once for many tests.

See `tests/support/programs/fork_server.py`. A test of how a program starts, or of signals and other
processes, starts the program itself.
"""

import atexit
import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from tests.support import processes

PROGRAMS: Final = Path(__file__).parent / "programs"
MEASURING: Final = ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")
"""Variables by which a process measures its coverage from its start."""

Done = subprocess.CompletedProcess[bytes]


class ForkServer:
    """The process that forks.

    Attributes:
        path: The path of the socket for requests.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="forks-")
        self.path = f"{self._folder.name}/socket"
        parent, self._lifeline = os.pipe()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(self.path)
            listening.listen(64)
            command = [sys.executable, "-m", "tests.support.programs.fork_server"]
            self._process = subprocess.Popen(
                [*command, str(listening.fileno()), str(parent)],
                cwd=processes.ROOT,
                pass_fds=[listening.fileno(), parent],
                # As the streams of most programs are, which their objects remember.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        os.close(parent)
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it is ready: no test has to wait for its imports
        processes.begin_to_count()  # it is no child that the current test has left
        atexit.register(self._end)

    def _end(self) -> None:
        os.close(self._lifeline)
        self._process.communicate()
        self._folder.cleanup()


@functools.cache
def _server_for(is_measuring: bool) -> ForkServer:
    return ForkServer()


def fork_server() -> ForkServer:
    """The fork server of this process, which is started if there is none yet."""
    return _server_for(any(name in os.environ for name in MEASURING))


def forked_command(module: str, *arguments: str) -> list[str]:
    """The command of a small process that has a module run by the fork server."""
    launcher = [sys.executable, "-I", "-S", str(PROGRAMS / "forked.py")]
    return [*launcher, fork_server().path, module, *arguments]


class Forked:
    """A module that runs in a forked process, as with `python -m`.

    Args:
        module: The module.
        arguments: Its arguments.
        streams: The descriptors of its standard streams, which are closed here.
        env: Its environment; None: that of this process.
        cwd: Its folder; None: that of this process.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str | Path],
        streams: Sequence[int],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        request = {
            "module": module,
            "argv": [module, *map(str, arguments)],
            "cwd": str(cwd or Path.cwd()),
            "env": dict(os.environ if env is None else env),
        }
        body = json.dumps(request).encode()
        self._asked_on = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._asked_on.connect(fork_server().path)
            socket.send_fds(self._asked_on, [len(body).to_bytes(4, "big")], streams)
            self._asked_on.sendall(body)
        finally:
            for descriptor in streams:
                os.close(descriptor)

    def wait(self, seconds: float) -> int:
        """Return its return code, as `subprocess` has it."""
        self._asked_on.settimeout(seconds)
        with self._asked_on, self._asked_on.makefile("r") as said:
            _, code = said.readlines()
        return int(code)

    def kill(self) -> None:
        """Kill the process, if it still runs, and wait for its end."""
        with self._asked_on:
            self._asked_on.shutdown(socket.SHUT_WR)
            while self._asked_on.recv(100):
                pass


def run_forked(
    module: str,
    arguments: Sequence[str | Path],
    *,
    stdin: bytes,
    seconds: float,
    env: Mapping[str, str] | None = None,
) -> Done:
    """Run a module with pipes until it ends."""
    pipes = [os.pipe() for _ in range(3)]
    (their_in, our_in), (our_out, their_out), (our_err, their_err) = pipes
    running = Forked(module, arguments, [their_in, their_out, their_err], env=env)
    outputs: dict[int, bytes] = {}

    def write() -> None:
        with suppress(BrokenPipeError), os.fdopen(our_in, "wb") as file:
            file.write(stdin)

    def read(number: int, file: IO[bytes]) -> None:
        with file:
            outputs[number] = file.read()

    threads = [threading.Thread(target=write)]
    threads += [
        threading.Thread(target=read, args=(number, os.fdopen(descriptor, "rb")))
        for number, descriptor in ((1, our_out), (2, our_err))
    ]
    for thread in threads:
        thread.start()
    code = running.wait(seconds)
    for thread in threads:
        thread.join(seconds)
    return Done([module, *map(str, arguments)], code, outputs[1], outputs[2])
