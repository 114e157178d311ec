"""The grammar of the command line."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Final

from sansmcp import ALL_REVISIONS, LOG_LEVELS

from ._arguments import DEFAULT_MAX_MESSAGE_BYTES, count_of_bytes, port, seconds, task_time
from ._errors import UsageError

DEMO_SECONDS: Final = 20.0
TASK_ACTIONS: Final = ("list", "get", "result", "wait", "cancel")
_RULES_HELP: Final = "rule ids or their beginnings, such as CANC,OWN-014"

_BEGIN_JSON: Final = ("{", "[", "@", "-", '"')
_BEGIN_URL: Final = ("http://", "https://")
_JSON_HELP: Final = "a JSON object; @FILE reads it from a file, - from standard input"
_STATUS: Final = (
    "exit status: 0 it succeeded; 1 the tool says that it has failed; 2 the command line is wrong; "
    "3 the connection or the protocol failed; 130 interrupted (128 and the number of the signal)"
)
_TAP_STATUS: Final = (
    "exit status: that of the server, or its end by a signal; 2 the command line is wrong, or a "
    "file cannot be opened; 126 the server cannot be started; 127 there is no such program. "
    "With a URL: 0 a signal has ended it; 3 the port cannot be used"
)
_LINT_STATUS: Final = (
    "exit status: 0 nothing that was shown breaks a MUST or MUST NOT; 1 something does, or breaks "
    "OWN-014 or OWN-020, which say what the schema demands; 2 the command line is wrong; "
    "3 the file cannot be read, or something in it is no recorded conversation"
)


class Parser:
    """Reads a command line: options and arguments, and after `--` the command of a server."""

    def __init__(self) -> None:
        self._top = argparse.ArgumentParser(
            prog="sansmcp",
            description="Tools for the Model Context Protocol.",
            epilog=_STATUS,
            allow_abbrev=False,
        )
        self._top.add_argument(
            "--version", action="version", version=f"sansmcp {version('sansmcp')}"
        )
        self._commands = self._top.add_subparsers(dest="name", required=True, metavar="COMMAND")
        self._parsers: dict[str, argparse.ArgumentParser] = {}
        self._with_server: set[str] = set()
        self._add_client_commands()
        self._add_auth()
        self._add_tap()
        self._add_lint()
        self._add_explain()
        self._add_demo()

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """The options, with `name` for the command and `server` for the server's command.

        Raises:
            SystemExit: Help was asked for, or the command line is wrong.
        """
        name = arguments[0] if arguments else ""
        parser = self._parsers.get(name)
        if parser is None:
            return self._top.parse_args(arguments)  # which shows the help, or what is wrong
        given = list(arguments[1:])
        if name not in self._with_server:
            options = parser.parse_intermixed_args(given)
            if name == "auth":
                _read_action(parser, options)
        else:
            split = given.index("--") if "--" in given else None
            # Intermixed: the optional JSON may come after an option. A bare --task takes no word.
            words = ["--task=" if word == "--task" else word for word in given[:split]]
            options, unknown = parser.parse_known_intermixed_args(words)
            options.server = [] if split is None else given[split + 1 :]
            if split is None:
                _check_separator(parser, name, given, options, unknown)
            if unknown:
                parser.error(f"unrecognized arguments: {' '.join(unknown)}")
            if name == "tasks":
                _check_action(parser, options)
            if name == "call":
                _check_detached(parser, options)
            _check_server(parser, options, shlex.join([name, *given[:split]]))
        options.name = name
        return options

    def fail(self, name: str, error: UsageError) -> None:
        """Report a mistake in a command line that was parsed."""
        parser = self._parsers[name]
        parser.print_usage(sys.stderr)
        for line in (f"{parser.prog}: error: {error}", *error.lines):
            print(line, file=sys.stderr)

    # -------------------------------------------------------------------------- the commands

    def _add(
        self,
        name: str,
        help: str,
        *,
        arguments: str = "",
        description: str | None = None,
        status: str = _STATUS,
    ) -> argparse.ArgumentParser:
        usage = f"sansmcp {name} [options] {arguments}".rstrip()
        parser = self._commands.add_parser(
            name,
            help=help,
            usage=usage,
            description=description or f"{help[0].upper()}{help[1:]}.",
            epilog=status,
            allow_abbrev=False,
        )
        self._parsers[name] = parser
        return parser

    def _add_for_server(self, name: str, help: str, arguments: str) -> argparse.ArgumentParser:
        self._with_server.add(name)
        parser = self._add(
            name,
            help,
            arguments=f"{arguments} (--url URL | -- COMMAND...)".lstrip(),
            description=f"{help[0].upper()}{help[1:]}. The server is the one at URL, or is started "
            "with COMMAND, without a shell, and ended afterwards.",
        )
        parser.add_argument("--url", metavar="URL", help="the endpoint of a server on HTTP")
        parser.add_argument(
            "--header",
            action="append",
            default=[],
            metavar="'NAME: VALUE'",
            help="a field for every request to URL; @FILE reads one from each line of a file",
        )
        _add_auth_options(parser)
        parser.add_argument("--json", action="store_true", help="print one JSON document")
        parser.add_argument(
            "--timeout",
            type=seconds,
            metavar="SECONDS",
            help="silence after which a request is cancelled (default: 30 to start, then 60)",
        )
        parser.add_argument(
            "--max-message-bytes",
            type=count_of_bytes,
            metavar="N",
            help=f"the longest answer that is read (default: {DEFAULT_MAX_MESSAGE_BYTES})",
        )
        parser.add_argument(
            "--env",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a variable for the server; NAME alone hands on the value it has here",
        )
        parser.add_argument(
            "--revision",
            choices=ALL_REVISIONS,
            metavar="R",
            help=f"speak this revision only: {', '.join(ALL_REVISIONS)}",
        )
        parser.add_argument(
            "--log-level",
            choices=LOG_LEVELS,
            metavar="LEVEL",
            help="the least severe log messages to ask for (default: info; before 2026-07-28, "
            "what the server sends by itself)",
        )
        parser.add_argument(
            "--progress",
            action=argparse.BooleanOptionalAction,
            help="show progress (default: if standard error is a terminal)",
        )
        parser.add_argument(
            "--quiet",
            action="store_true",
            help="do not show what the server writes to standard error, logs and notifies",
        )
        return parser

    def _add_client_commands(self) -> None:
        self._add_for_server("inspect", "show what a server is and what it offers", "")
        parser = self._add_for_server("call", "call a tool", "TOOL [JSON]")
        parser.add_argument("target", metavar="TOOL", help="the name of the tool")
        parser.add_argument("params", metavar="JSON", nargs="?", help=f"arguments: {_JSON_HELP}")
        parser.add_argument(
            "--task",
            type=task_time,
            nargs="?",
            const=True,
            metavar="=SECONDS",
            help="let the server make a task of the call, and follow it to its result; SECONDS: "
            "how long to keep the task, for a server of 2025-11-25 (one of 2026-07-28 decides)",
        )
        parser.add_argument(
            "--detach",
            action="store_true",
            help="with --task and --url: print the id of the task, and do not wait for its result",
        )
        parser = self._add_for_server("read", "read a resource", "URI")
        parser.add_argument("target", metavar="URI", help="the URI of the resource")
        parser = self._add_for_server("prompt", "get a prompt", "NAME [JSON]")
        parser.add_argument("target", metavar="NAME", help="the name of the prompt")
        parser.add_argument("params", metavar="JSON", nargs="?", help=f"arguments: {_JSON_HELP}")
        parser = self._add_for_server(
            "tasks",
            "ask about tasks of a server",
            "(list | get ID | result ID | wait ID | cancel ID)",
        )
        parser.add_argument(
            "action",
            metavar="ACTION",
            choices=TASK_ACTIONS,
            help="list: the tasks that the server lists (2025-11-25 only); get: the state of a "
            "task; result: its result, which must be there; wait: its result, as soon as it is "
            "there; cancel: end it",
        )
        parser.add_argument("target", metavar="ID", nargs="?", help="the id of the task")
        parser = self._add_for_server("request", "send any request", "METHOD [JSON]")
        parser.add_argument("target", metavar="METHOD", help="such as tools/list")
        parser.add_argument("params", metavar="JSON", nargs="?", help=f"params: {_JSON_HELP}")

    def _add_auth(self) -> None:
        parser = self._add(
            "auth",
            "get a token for a server, and show each step",
            arguments="(URL | login URL | status [URL] | logout URL)",
            description="Goes through the authorization of the server at URL: shows each request, "
            "its response and what follows from it, and where it stops what the author of the "
            "server can change. It stores nothing. login does the same, and stores the "
            "credentials for --auth of the other commands; status shows what is stored, without "
            "secrets; logout forgets the credentials of a server, and revokes its tokens where the "
            "authorization server can do that.",
        )
        parser.add_argument("words", metavar="URL", nargs="+", help="the endpoint of the server")
        parser.add_argument("--json", action="store_true", help="print one JSON document")
        parser.add_argument(
            "--header",
            action="append",
            default=[],
            metavar="'NAME: VALUE'",
            help="a field for every request to URL; @FILE reads one from each line of a file",
        )
        parser.add_argument(
            "--client-metadata",
            metavar="URL",
            help="the URL of a metadata document of this client, which is its client id",
        )
        parser.add_argument(
            "--client-id", metavar="ID", help="the client id, where it was registered beforehand"
        )
        parser.add_argument(
            "--client-secret", metavar="@FILE", help="its secret, in a file; - is standard input"
        )
        parser.add_argument(
            "--issuer",
            metavar="URL",
            help="the authorization server of the client id (default: any that does not register "
            "clients by itself)",
        )
        parser.add_argument(
            "--scope",
            action="append",
            default=[],
            metavar="SCOPES",
            help="the scopes to ask for, if the server demands none",
        )
        parser.add_argument(
            "--redirect-port",
            type=port,
            metavar="N",
            help="the port of the redirect URI http://127.0.0.1:N/callback (default: any)",
        )
        parser.add_argument(
            "--local", action="store_true", help="let logout forget the credentials here only"
        )
        _add_token_options(parser)
        parser.add_argument(
            "--timeout",
            type=seconds,
            metavar="SECONDS",
            help="silence after which a request is given up (default: 30 to start, then 60)",
        )
        parser.add_argument(
            "--revision",
            choices=ALL_REVISIONS,
            metavar="R",
            help=f"speak this revision only: {', '.join(ALL_REVISIONS)}",
        )
        parser.set_defaults(env=[], server=[], quiet=True, log_level=None, max_message_bytes=None)

    def _add_tap(self) -> None:
        self._with_server.add("tap")
        parser = self._add(
            "tap",
            "watch a client and a server",
            arguments="(URL | -- COMMAND...)",
            description="Starts a server with COMMAND and passes on, unchanged, what it and the "
            "client on standard input and output say to each other. Or listens for clients of the "
            "server at URL. Shows the messages on standard error as they pass, and in the end who "
            "broke which rule.",
            status=_TAP_STATUS,
        )
        parser.add_argument(
            "url", metavar="URL", nargs="?", help="the endpoint of a server on HTTP"
        )
        parser.add_argument(
            "--port", type=port, metavar="N", help="listen here for clients; 0 (default): any port"
        )
        parser.add_argument(
            "--host", metavar="ADDRESS", help="listen at this address (default: 127.0.0.1)"
        )
        _add_auth_options(parser)
        parser.add_argument(
            "--trace", metavar="FILE", help="show all that in FILE, not on standard error"
        )
        parser.add_argument(
            "--quiet", action="store_true", help="show only who broke which rule, in the end"
        )
        parser.add_argument(
            "--jsonl", metavar="FILE", help="keep everything that passes in FILE, for sansmcp lint"
        )

    def _add_lint(self) -> None:
        parser = self._add(
            "lint",
            "say who broke which rule in a recorded conversation",
            arguments="FILE",
            status=_LINT_STATUS,
        )
        parser.add_argument(
            "file",
            metavar="FILE",
            help="what tap --jsonl has kept, or lines of messages that begin with client: or "
            "server:, or with > or <; - is standard input",
        )
        parser.add_argument("--json", action="store_true", help="print lines of JSON")
        for name, does in (("select", "show only these"), ("ignore", "do not show these")):
            parser.add_argument(
                f"--{name}",
                action="append",
                default=[],
                metavar="RULES",
                help=f"{does}: {_RULES_HELP}",
            )

    def _add_explain(self) -> None:
        parser = self._add("explain", "show what a rule says", arguments="RULE...")
        parser.add_argument("--json", action="store_true", help="print one JSON document")
        parser.add_argument("rules", nargs="+", metavar="RULE", help="an id such as CANC-004")

    def _add_demo(self) -> None:
        parser = self._add(
            "demo",
            "start a server process, talk to it, and show both sides",
            description="Starts a server process and shows both sides of a conversation: events "
            "(*), lines sent (>>) and received (<<). The exit status is 0 only if every step "
            "happened.",
        )
        parser.add_argument(
            "--revision",
            choices=[*ALL_REVISIONS, "all"],
            default=ALL_REVISIONS[-1],
            help="the revision to speak, or all of them in turn (default: %(default)s)",
        )
        parser.add_argument(
            "--timeout",
            type=float,
            default=DEMO_SECONDS,
            metavar="SECONDS",
            help="fail after this time (default: %(default)g)",
        )
        parser.add_argument(
            "--server",
            metavar="COMMAND",
            help="another server to talk to, which fails the steps that it does not take part in",
        )
        parser.add_argument(
            "--http",
            action="store_true",
            help="over HTTP, in both eras, instead of standard input and output",
        )
        parser = self._add("serve-demo", "the server of the demo, on standard input and output")
        parser.add_argument(
            "--http",
            type=int,
            metavar="PORT",
            help="serve at http://127.0.0.1:PORT/mcp instead; 0 is any port that is free",
        )
        parser.add_argument(
            "--trace", action="store_true", help="report wire lines and events on standard error"
        )
        parser.add_argument(
            "--banner", action="store_true", help="begin with a line that is no message"
        )


def _add_auth_options(parser: argparse.ArgumentParser) -> None:
    """Add the options with which a command uses stored credentials."""
    parser.add_argument(
        "--auth",
        action="store_const",
        const=True,
        help="show URL the token that sansmcp auth login has stored; without one, log in now",
    )
    _add_token_options(parser)


def _add_token_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tokens",
        metavar="FILE",
        help="the file with the credentials (default: sansmcp/tokens.json in the folder for "
        "settings of the user)",
    )
    parser.add_argument(
        "--allow-address",
        action="append",
        default=[],
        choices=("loopback", "link-local", "private"),
        metavar="KIND",
        help="let metadata name addresses of this kind, too: loopback, link-local or private "
        "(default: public ones, and those of the kind of URL)",
    )
    parser.add_argument(
        "--no-browser",
        action="store_false",
        dest="browser",
        help="show the URL for the login, and open no browser",
    )


_ACTIONS: Final = ("login", "status", "logout")


def _read_action(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Split the words of `auth` into what to do, and the server."""
    words: list[str] = options.words
    options.action = words.pop(0) if words[0] in _ACTIONS else "walk"
    options.url = words[0] if words else None
    if len(words) > 1:
        parser.error(f"unrecognized arguments: {' '.join(words[1:])}")
    if options.local and options.action != "logout":
        parser.error("--local is for logout")
    if options.url is None and options.action != "status":
        parser.error(f"the URL of the server is missing: sansmcp auth {options.action} URL")


def _check_separator(
    parser: argparse.ArgumentParser,
    name: str,
    given: Sequence[str],
    options: argparse.Namespace,
    unknown: Sequence[str],
) -> None:
    """Report a server's command without `--`, or a URL without `--url`."""
    words = list(unknown)
    also = ""
    if name == "tap":
        if options.url is None or "://" in options.url:
            return
        words.insert(0, options.url)
        also = "; the URL of a server on HTTP begins with http:// or https://"
    elif options.url is not None:
        return
    elif (params := getattr(options, "params", None)) and not params.startswith(_BEGIN_JSON):
        words.insert(0, params)
    elif name == "tasks" and options.action == "list" and options.target is not None:
        words.insert(0, options.target)
    if not words or words[0].startswith("-"):
        return  # there is no such option, or nothing that could be a server
    start = given.index(words[0])
    before = shlex.join(["sansmcp", name, *given[:start]])
    rest = shlex.join(given[start:])
    if words[0].startswith(_BEGIN_URL):
        parser.error(f"--url is missing before the URL of the server: {before} --url {rest}")
    parser.error(f"-- is missing before the command of the server: {before} -- {rest}{also}")


def _check_action(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check that a task is named where one is meant."""
    if options.action == "list":
        if options.target is not None:
            parser.error(f"list takes no id: {options.target!r}")
    elif options.target is None:
        parser.error(f"the id of the task is missing: sansmcp tasks {options.action} ID")


def _check_detached(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check that a task can outlive the command."""
    if not options.detach:
        return
    if options.task is None:
        parser.error("--detach needs --task")
    if options.server:
        parser.error(
            "--detach needs a server with --url: a server that is started with its command ends "
            "with sansmcp, and its tasks with it"
        )


def _check_server(parser: argparse.ArgumentParser, options: argparse.Namespace, given: str) -> None:
    """Check that exactly one server is given, with options that fit its kind."""
    if options.url is not None and options.server:
        parser.error("a server has a URL or a command, not both")
    if options.url is None and not options.server:
        parser.error(
            "the command of the server is missing: it comes after --, as in "
            f"sansmcp {given} -- python server.py; a server on HTTP has a URL instead"
        )
    of_command, of_url = ("env",), ("header", "port", "host", "auth", "tokens", "allow_address")
    wrong = of_url if options.url is None else of_command
    for name in wrong:
        if getattr(options, name, None) not in (None, []):
            other = "a URL" if options.url is None else "a command"
            parser.error(f"--{name.replace('_', '-')} is for a server with {other}")
