"""`sansmcp demo` and `sansmcp serve-demo`."""

from __future__ import annotations

import logging
import shlex
import sys
from typing import TYPE_CHECKING

import trio

from sansmcp import ALL_REVISIONS

from .._demo.demo import Demo
from .._demo.server import serve_demo, serve_demo_http
from ._errors import OutputFailed, Status
from ._output.output import drop_output

if TYPE_CHECKING:
    from .._demo.http_demo import HTTPDemo


def serve(*, trace: bool, banner: bool) -> int:
    """Be the server of the demo."""
    if sys.__stdin__ is None or sys.__stdout__ is None:  # what stands for them has no descriptor
        print("error: a server needs standard input and output: one is closed", file=sys.stderr)
        return Status.USAGE

    async def run() -> None:
        await serve_demo(trace=trace, banner=banner)

    trio.run(run)
    return 0


def serve_http(port: int) -> int:
    """Be the server of the demo over HTTP."""
    trio.run(serve_demo_http, port)
    return 0


def demonstrate(revision: str, seconds: float, server: str | None) -> int:
    """Show the demo at one revision, or at all of them."""
    # The transcript shows as events what would else be logged between its lines.
    logging.getLogger("sansmcp").addHandler(logging.NullHandler())
    revisions = ALL_REVISIONS if revision == "all" else [revision]
    return max(_show(revision, seconds, server) for revision in revisions)


def _show(revision: str, seconds: float, server: str | None) -> int:
    own = [sys.executable, "-m", "sansmcp_io", "serve-demo", "--trace", "--banner"]
    return _run(Demo(revision, own if server is None else shlex.split(server), seconds))


def demonstrate_http(seconds: float, server: str | None) -> int:
    """Show the demo over HTTP, which needs h11."""
    from .._demo.http_demo import HTTPDemo

    logging.getLogger("sansmcp").addHandler(logging.NullHandler())
    own = [sys.executable, "-m", "sansmcp_io", "serve-demo", "--http", "0"]
    return _run(HTTPDemo(own if server is None else shlex.split(server), seconds))


def _run(demo: Demo | HTTPDemo) -> int:
    trio.run(demo.run)
    try:
        print(demo.report(), flush=True)
    except OSError as error:
        drop_output(sys.stdout)
        raise OutputFailed(error) from None
    return 0 if demo.passed else 1
