"""Finds and runs the command of a command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from ._arguments import check_text, read_object
from ._errors import OutputFailed, Status, UsageError
from ._output.output import Output, prepare_streams
from ._parser import Parser

if TYPE_CHECKING:
    from ..oauth import OAuth


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return the exit status.

    Raises:
        SystemExit: Help was asked for, or the command line is wrong.
    """
    prepare_streams()
    parser = Parser()
    options = parser.parse(arguments)
    try:
        return _run(options)
    except UsageError as error:
        parser.fail(options.name, error)
        return Status.USAGE
    except OutputFailed as error:
        return Output().undeliverable(error)
    except ModuleNotFoundError as error:
        if error.name not in ("trio", "h11", "httpx2"):
            raise
        extra = error.name.rstrip("2")
        print(f"this command needs {error.name}: pip install 'sansmcp[{extra}]'", file=sys.stderr)
        return Status.USAGE


def _run(options: argparse.Namespace) -> int:
    # What a command needs is imported when it is wanted: rules can be explained without trio.
    if options.name == "explain":
        from ._explain import explain

        explain(options.rules, Output(as_json=options.json))
        return Status.OK
    if options.name == "tap":
        return _tap(options)
    if options.name == "auth":
        return _auth(options)
    if options.name == "lint":
        from ._tap.lint import lint

        output = Output(as_json=options.json, as_lines=True)
        return lint(options.file, select=options.select, ignore=options.ignore, output=output)
    if options.name == "serve-demo":
        from ._demo import serve, serve_http

        if options.http is not None:
            return serve_http(options.http)
        return serve(trace=options.trace, banner=options.banner)
    if options.name == "demo":
        from ._demo import demonstrate, demonstrate_http

        if options.http:
            return demonstrate_http(options.timeout, options.server)
        return demonstrate(options.revision, options.timeout, options.server)
    return _talk(options)


def _auth(options: argparse.Namespace) -> int:
    from ..oauth import FileTokenStorage
    from ._arguments import check_url
    from ._auth import Walk, logout, status
    from ._credentials import oauth_of, token_file

    output = Output(as_json=options.json)
    url = None if options.url is None else check_url(options.url)
    if options.action == "status":
        return status(url, FileTokenStorage(token_file(options.tokens)), output)
    if options.action == "logout":
        assert url is not None
        return logout(url, oauth_of(options, output), output, is_local=options.local)
    from ._conversation import Settings
    from ._login import login

    assert url is not None
    walk = Walk(url.partition("?")[0], output)
    stores = options.action == "login"
    auth = oauth_of(options, output, stores=stores, on_step=walk.step_taken)
    settings = Settings.from_options(options, auth)
    return login(attrs.evolve(settings, trace=walk), walk, output)


def _tap(options: argparse.Namespace) -> int:
    files: Any = {"trace": options.trace, "quiet": options.quiet, "jsonl": options.jsonl}
    if options.url is None:
        from ._tap.stdio_tap import tap

        return tap(options.server, **files)
    from ._tap.http_tap import DEFAULT_HOST, tap_http

    return tap_http(
        options.url,
        port=options.port or 0,
        host=options.host or DEFAULT_HOST,
        auth=_given_auth(options, Output()),
        **files,
    )


def _given_auth(options: argparse.Namespace, output: Output) -> OAuth | None:
    """How the command is authorized; None without `--auth`."""
    if not options.auth:
        if options.tokens is not None or not options.browser or options.allow_address:
            raise UsageError("--tokens, --allow-address and --no-browser need --auth")
        return None
    from ._credentials import oauth_of

    return oauth_of(options, output)


def _talk(options: argparse.Namespace) -> int:
    from . import _requests
    from ._conversation import Settings, Work, converse
    from ._inspect import inspect
    from ._tasks import tasks

    output = Output(as_json=options.json, show_progress=options.progress)
    settings = Settings.from_options(options, _given_auth(options, output))
    params: dict[str, Any] | None = None
    if getattr(options, "params", None) is not None:
        params = read_object(options.params)
    target = check_text(getattr(options, "target", None) or "", "the first argument")
    work: Work
    match options.name:
        case "inspect":
            work = inspect
        case "call":
            work = _requests.call(target, params, options.task, detach=options.detach)
        case "tasks":
            work = tasks(options.action, target)
        case "read":
            work = _requests.read(target)
        case "prompt":
            work = _requests.prompt(target, params)
        case _:
            work = _requests.request(target, params)
    return converse(settings, output, work)
