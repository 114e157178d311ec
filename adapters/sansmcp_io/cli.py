"""The command `sansmcp`."""

from __future__ import annotations

import argparse
import logging
import shlex
import sys
from collections.abc import Sequence

from sansmcp import LEGACY_REVISIONS

DEMO_SECONDS = 20.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        import trio
    except ModuleNotFoundError:
        print("this command needs trio: pip install 'sansmcp[trio]'", file=sys.stderr)
        return 2
    if options.command == "serve-demo":
        from ._demo_server import serve_demo

        async def serve() -> None:
            await serve_demo(trace=options.trace, banner=options.banner)

        trio.run(serve)
        return 0
    revisions = LEGACY_REVISIONS if options.revision == "all" else [options.revision]
    return max(_demo(revision, options.timeout, options.server) for revision in revisions)


def _demo(revision: str, seconds: float, server: str | None) -> int:
    import trio

    from ._demo import Demo

    # The transcript shows as events what would else be logged between its lines.
    logging.getLogger("sansmcp").addHandler(logging.NullHandler())
    own = [sys.executable, "-m", "sansmcp_io", "serve-demo", "--trace", "--banner"]
    demo = Demo(revision, own if server is None else shlex.split(server), seconds)
    trio.run(demo.run)
    print(demo.report())
    return 0 if demo.passed else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sansmcp", description="Tools for the Model Context Protocol."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="start a server process, talk to it, and show both sides",
        description="Starts a server process and shows both sides of a conversation: events (*), "
        "lines sent (>>) and received (<<). The exit status is 0 only if every step happened.",
    )
    demo.add_argument(
        "--revision",
        choices=[*LEGACY_REVISIONS, "all"],
        default=LEGACY_REVISIONS[-1],
        help="the revision to speak, or all of them in turn (default: %(default)s)",
    )
    demo.add_argument(
        "--timeout",
        type=float,
        default=DEMO_SECONDS,
        metavar="SECONDS",
        help="give up after this time (default: %(default)g)",
    )
    demo.add_argument(
        "--server",
        metavar="COMMAND",
        help="another server to talk to, which fails the steps that it does not take part in",
    )
    serve = commands.add_parser(
        "serve-demo", help="the server of the demo, on standard input and output"
    )
    serve.add_argument(
        "--trace", action="store_true", help="report wire lines and events on standard error"
    )
    serve.add_argument("--banner", action="store_true", help="begin with a line that is no message")
    return parser
