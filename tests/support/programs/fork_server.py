"""Runs programs in processes that it forks, so that what they import is imported once.

A program takes some hundred milliseconds to start, of which almost all are imports. Everything else
is as in a process that a shell starts: its own standard streams, environment, folder, signals and
exit status, and the end of its interpreter.

The arguments are the descriptors of a socket that listens, and of a pipe that ends with the
parent. Each connection is a request: a length, with which three descriptors come for the standard
streams, and so many bytes of JSON. The process id and then the return code are written to it, each
in a line. Where the connection ends before that, the process is killed.
"""

import gc
import json
import os
import runpy
import selectors
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

IMPORTED: Final = (
    *("sansmcp_io.asyncio", "sansmcp_io.blocking", "sansmcp_io.trio", "sansmcp_io.httpx"),
    *("sansmcp_io.cli._auth", "sansmcp_io.cli._commands", "sansmcp_io.cli._credentials"),
    *("sansmcp_io.cli._explain", "sansmcp_io.cli._inspect", "sansmcp_io.cli._login"),
    *("sansmcp_io.cli._requests", "sansmcp_io.cli._tap.http_tap", "sansmcp_io.cli._tap.lint"),
    *("sansmcp_io.cli._tap.stdio_tap", "sansmcp_io._demo.server", "sansmcp_io.asyncio._http"),
)


class Program:
    """A process that runs, with the connection on which it was asked for."""

    def __init__(self, pid: int, asked_on: socket.socket) -> None:
        self.pid = pid
        self.asked_on = asked_on
        self.descriptor = os.pidfd_open(pid)

    def finish(self) -> None:
        """Tell of the end of the process."""
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        with suppress(OSError):  # nobody is there any more
            self.asked_on.sendall(f"{code}\n".encode())
        self.close()

    def close(self) -> None:
        """Close what this process has open for it."""
        self.asked_on.close()
        os.close(self.descriptor)


def read(asked_on: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Read a request and its descriptors."""
    head, streams, _, _ = socket.recv_fds(asked_on, 4, 3)
    length = int.from_bytes(head, "big")
    body = b""
    while len(body) < length:
        body += asked_on.recv(length - len(body))
    return json.loads(body), streams


def become(request: dict[str, Any], streams: list[int]) -> None:
    """Take over the standard streams, the environment and the folder of a program."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv = request["argv"]


def serve(listening: socket.socket, parent: int) -> str:
    """Fork for each request. Only the forked processes return, with the module to run."""
    ready = selectors.DefaultSelector()
    ready.register(listening, selectors.EVENT_READ, None)
    ready.register(parent, selectors.EVENT_READ, None)
    running: set[Program] = set()
    while True:
        for key, _ in ready.select():
            program: Program | None = key.data
            if key.fileobj is parent or key.fd == parent:
                sys.exit()
            if program is None:
                asked_on, _ = listening.accept()
                request, streams = read(asked_on)
                pid = os.fork()
                if pid == 0:
                    ready.close()
                    listening.close()
                    asked_on.close()
                    os.close(parent)
                    for other in running:
                        other.close()
                    become(request, streams)
                    return str(request["module"])
                for descriptor in streams:
                    os.close(descriptor)
                program = Program(pid, asked_on)
                running.add(program)
                ready.register(program.descriptor, selectors.EVENT_READ, program)
                ready.register(asked_on, selectors.EVENT_READ, program)
                with suppress(OSError):  # nobody is there any more, which is noticed next
                    asked_on.sendall(f"{pid}\n".encode())
            elif program not in running:
                pass  # both of its descriptors were ready at once
            elif key.fd == program.descriptor:
                running.remove(program)
                ready.unregister(program.descriptor)
                with suppress(KeyError):
                    ready.unregister(program.asked_on)
                program.finish()
            else:
                ready.unregister(program.asked_on)
                os.kill(program.pid, signal.SIGKILL)


if __name__ == "__main__":
    for name in IMPORTED:
        import_module(name)
    os.write(1, b"\n")  # it is ready
    gc.freeze()  # what is imported stays, and is shared by all processes
    arguments = [int(argument) for argument in sys.argv[1:]]
    module = serve(socket.socket(fileno=arguments[0]), arguments[1])
    runpy.run_module(module, run_name="__main__", alter_sys=False)
