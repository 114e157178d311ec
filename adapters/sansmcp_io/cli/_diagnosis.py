"""Explains exceptions: what has happened, to which server, and what to try."""

from __future__ import annotations

import csv
import errno
import math
import shlex
import shutil
import signal
from collections.abc import Sequence
from importlib.resources import files
from typing import Final

import attrs

from sansmcp import (
    ALL_REVISIONS,
    LEGACY_REVISIONS,
    ErrorCode,
    JSONObject,
    LocalProtocolError,
    Peer,
)

from .._common.errors import (
    AuthorizationError,
    ConnectionLost,
    InvalidAnswer,
    PeerError,
    RequestRefused,
    RequestTimeout,
    StartFailed,
)
from ._errors import Failure, Status, TaskProblem
from ._output.visible import shortened
from ._server_watch import TOO_LONG, Watch, is_too_long
from ._values import array_of, as_text, member

Reported = (
    AuthorizationError,
    PeerError,
    RequestRefused,
    InvalidAnswer,
    RequestTimeout,
    ConnectionLost,
    StartFailed,
    LocalProtocolError,
    OSError,
)
"""Exceptions of a conversation that are not programming errors."""

_TASKS: Final = "io.modelcontextprotocol/tasks"
"""The extension for tasks."""
_OF_THIS_PROCESS: Final = (
    "it was started with this command, and knows only tasks that it has stored"
)
_OF_A_SESSION: Final = (
    "in revision 2025-11-25 a server that does not know its users keeps tasks for a session, "
    "and each command has a session of its own"
)
_WAIT: Final = "wants to be asked again in"
"""As the library says it, so that it is not said twice."""
_PATH: Final = "make sure that the path of the URL is that of its endpoint, such as /mcp"
_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERRORS: Final = 500
_NOT_OF_THE_PATH: Final = frozenset({408, 425, _TOO_MANY_REQUESTS})
"""Statuses that a server gives at the right path, beside those of 500 and above."""
_ASKED_WRONGLY: Final = frozenset({"LIFE-001", "OWN-014", "OWN-024", "OWN-025", "PROG-001"})
"""Rules that a request breaks whatever the server is like."""


@attrs.frozen(kw_only=True)
class Context:
    """The known facts about a conversation that has failed.

    Attributes:
        url: The server's endpoint; None: it was started.
        command: The server's command.
        path: The PATH that was given for it; None: the one that there is.
        timeout: Seconds that the request had.
        watch: The trace of the conversation.
        method: The request that failed; None: the conversation was not open yet.
        peer: The name and version of the server, if they are known.
        ended_task: What has become of the task of the request; None: it has none.
    """

    url: str | None
    command: Sequence[str]
    path: str | None
    timeout: float
    watch: Watch
    method: str | None = None
    peer: Peer | None = None
    ended_task: str | None = None

    @property
    def server(self) -> str:
        """The server for use in a sentence."""
        if self.url is not None:
            return f"the server at {shortened(without_query(self.url), 120)}"
        return server_name(self.command)

    @property
    def evidence(self) -> tuple[str, ...]:
        """Other lines that the server has written to standard error."""
        return () if self.url is not None else self.watch.evidence()

    @property
    def question(self) -> str:
        """The method for use in a sentence."""
        return self.method or self.watch.opening

    @property
    def time(self) -> str:
        """The time that the request had, for use in a sentence."""
        return "no time limit" if self.timeout == math.inf else f"{self.timeout:g} s"


def without_query(url: str) -> str:
    """A URL without its query, which may contain a secret."""
    before, mark, _ = url.partition("?")
    return f"{before}?..." if mark else before


def server_name(command: Sequence[str]) -> str:
    """A server for use in a sentence."""
    return f"the server `{shortened(shlex.join(command), 120)}`"


def explain(error: BaseException, context: Context) -> Failure:
    """The failure for an exception of `Reported`."""
    match error:
        case TaskProblem():
            return _no_result(error, context)
        case AuthorizationError():
            return _not_authorized(error, context)
        case RequestTimeout():
            return _timed_out(context)
        case RequestRefused():
            return _refused(error, context)
        case ConnectionLost() if context.url is not None:
            return _unreachable(error, context)
        case ConnectionLost():
            return _lost(error, context)
        case PeerError():
            return _answered_with_error(error, context)
        case InvalidAnswer():
            return _invalid(error, context)
        case StartFailed():
            return _no_agreement(error, context)
        case LocalProtocolError():
            return _not_sent(error, context)
        case OSError():
            return not_started(error, context.command, context.path)
        case _:
            raise error


def _no_result(error: TaskProblem, context: Context) -> Failure:
    hints = error.hints
    if error.kind == "no-task":
        if context.url is None:
            hints = (*hints, _OF_THIS_PROCESS)
        elif context.peer is not None and context.peer.revision in LEGACY_REVISIONS:
            hints = (*hints, _OF_A_SESSION)
    return Failure(kind=error.kind, text=f"{context.server} {error}", hints=hints)


def interrupted(number: int, context: Context) -> Failure:
    """The failure of a command that was ended by a signal."""
    if context.peer is None:
        text = f"before {context.server} had answered {context.question}"
    elif context.ended_task is not None:
        text = f"the task of {context.question} {context.ended_task}"
    elif context.url is not None:
        text = f"{context.question} was given up"
    elif context.watch.said_cancelled:
        text = f"{context.question} was cancelled, and the server was told so"
    else:
        text = "while no request was open"
    name = signal.Signals(number).name
    return Failure(kind="interrupted", text=f"interrupted by {name}: {text}", status=128 + number)


# ---------------------------------------------------------------------------------------- HTTP


def _unreachable(error: ConnectionLost, context: Context) -> Failure:
    return Failure(
        kind="lost",
        text=f"the connection to {context.server} ended before it answered {context.question}",
        details=(str(error),),
        hints=("make sure that it runs, and listens at this address",)
        if not context.method
        else (),
    )


def _refused(error: RequestRefused, context: Context) -> Failure:
    """The server has answered with a status instead of a message."""
    if isinstance(error.__cause__, AuthorizationError):
        return _not_authorized(error.__cause__, context)
    wants = [
        " ".join([each.scheme, *(f'{name}="{value}"' for name, value in each.parameters.items())])
        for each in error.challenges
    ]
    details = [str(error), *(f"it wants to be shown: {shortened(one, 300)}" for one in wants)]
    if _WAIT not in details[0]:
        details += _wait(error)
    if error.status in (401, 403):
        return Failure(
            kind="unauthorized",
            text=f"{context.server} does not let you send {context.question} ({error.status})",
            details=tuple(details),
            hints=_login_hints(context),
            http_status=error.status,
            retry_after=error.retry_after,
        )
    return Failure(
        kind="http-status",
        text=f"{context.server} did not take {context.question}",
        details=tuple(details),
        hints=() if context.method or _is_busy(error) else (_PATH,),
        http_status=error.status,
        retry_after=error.retry_after,
    )


def _not_authorized(error: AuthorizationError, context: Context) -> Failure:
    # Imported here: most failures have nothing to do with authorization.
    from ._auth import failure_of

    return failure_of(error, context.server)


def _login_hints(context: Context) -> tuple[str, ...]:
    """What to type where a server wants a token."""
    url = without_query(context.url or "")
    return (
        f"sansmcp auth login {url} gets a token; --auth uses it",
        f"sansmcp auth {url} shows each step, and where it stops",
        "--header @FILE sends the fields of a file, such as Authorization: Bearer ...",
    )


def _is_busy(error: PeerError | RequestRefused) -> bool:
    """Whether the server is there and speaks HTTP, and cannot or will not answer now."""
    status = error.status
    return status is not None and (status in _NOT_OF_THE_PATH or status >= _SERVER_ERRORS)


def _wait(error: PeerError | RequestRefused) -> tuple[str, ...]:
    """The hint to wait as long as the server asks, if it does."""
    if error.retry_after is None:
        return ()
    return (f"it {_WAIT} {error.retry_after:.4g} s",)


# ------------------------------------------------------------------------------- the process


def not_started(error: OSError, command: Sequence[str], path: str | None = None) -> Failure:
    """The failure of a server that cannot be started; `path` is its PATH."""
    program = command[0]
    found = shutil.which(program, path=path)
    reason = error.strerror or str(error)
    if isinstance(error, FileNotFoundError) and found is None:
        reason = "there is no such program"
        hints = ["check its name; a program outside of PATH needs its path, here too: ./NAME"]
        words = program.split()
        if len(words) > 1 and shutil.which(words[0].strip("'\""), path=path):
            hints = [f"give the words of the command apart, without quotes: -- {program}"]
    elif isinstance(error, FileNotFoundError):
        reason = "the file is there, and the program that its first line names is not"
        hints = [f"correct the first line of {found}, or start the other program: -- python FILE"]
    elif isinstance(error, PermissionError):
        hints = ["make it executable (chmod +x), or start what runs it: -- python FILE"]
    elif error.errno == errno.ENOEXEC:
        hints = ["a script begins with a line such as #!/usr/bin/env python3"]
    else:
        hints = ["run the same command by itself"]
    return Failure(
        kind="not-started",
        text=f"{server_name(command)} was not started: {reason}",
        hints=tuple(hints),
    )


def _lost(error: ConnectionLost, context: Context) -> Failure:
    if context.method is None:
        text = f"{context.server} ended before it answered {context.question}"
        hints = [
            "run the same command by itself: it should start, and wait for input",
            "it got few of the variables that are set here: --env NAME hands one on",
        ]
        if context.question == "server/discover":
            hints.append(
                "if it ends because of server/discover, which older servers do not know: "
                f"--revision {LEGACY_REVISIONS[-1]} does without"
            )
    else:
        text = f"the connection to {context.server} ended before it answered {context.method}"
        hints = ["look for what ends it in what it wrote to standard error"]
    return Failure(
        kind="lost",
        text=text,
        details=(*_ending(error.exit_status), *context.evidence),
        hints=(*_of_noise(context), *hints),
    )


def _ending(status: int | None) -> tuple[str, ...]:
    """A text on the end of the process."""
    if status is None:
        return ()
    if status < 0:
        return (f"the process was ended by {signal_name(-status)}",)
    return (f"the process ended with exit status {status}",)


def signal_name(number: int) -> str:
    """The name of a signal, or its number if it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:  # Python names few of the real-time signals
        return f"signal {number}"


def _timed_out(context: Context) -> Failure:
    hints = [f"--timeout {context.timeout * 2:g} gives it twice the time"]
    if context.method is None:
        text = f"{context.server} did not answer {context.question} within {context.time}"
        if context.url is None and not context.watch.received_bytes:
            hints.append(
                "make sure that it speaks MCP on standard input and output: many servers "
                "need an option for that, such as --stdio, and some know HTTP only"
            )
    else:
        text = f"{context.server} did not answer {context.method}: no sign of it for {context.time}"
        if context.watch.said_cancelled:
            text += "; the request was cancelled"
    return Failure(
        kind="timeout",
        text=text,
        details=context.evidence,
        hints=(*_of_noise(context), *hints),
        rule=TOO_LONG if context.watch.was_too_long else None,
    )


def _of_noise(context: Context) -> tuple[str, ...]:
    if not context.watch.noise:
        return ()
    return (
        "make it write what is no message to standard error: standard output is for messages "
        "alone (sansmcp explain STDIO-002)",
    )


# ------------------------------------------------------------------------------ the protocol


def _answered_with_error(error: PeerError, context: Context) -> Failure:
    hints: list[str] = []
    code = f"({error.code}, status {error.status})" if _is_busy(error) else f"({error.code})"
    if context.method is None:
        text = f"{context.server} refused {context.question}: {error.message} {code}"
        supported = _supported(error.data)
        if supported:
            hints.append(f"it speaks other revisions: --revision {supported}")
        elif _is_busy(error) or error.retry_after:
            pass  # whatever it speaks, it does not say so now
        elif context.question == "server/discover":
            hints.append("leave --revision out: it may speak older revisions only")
        else:
            hints.append("ask for another revision with --revision, an older one at best")
        kind = "refused"
    else:
        text = f"{context.server} answered {context.method} with an error: "
        text += f"{error.message} {code}"
        if error.code == ErrorCode.METHOD_NOT_FOUND:
            hints.append("sansmcp inspect shows what the server offers")
        elif _wants_tasks(error):
            hints.append("it answers this request with a task only: --task")
        elif error.code == ErrorCode.MISSING_CLIENT_CAPABILITY:
            hints.append("it wants to ask the client something, and this command answers nothing")
        kind = "peer-error"
    data = () if error.data is None else (f"data: {shortened(as_text(error.data), 1000)}",)
    return Failure(
        kind=kind,
        text=text,
        details=(*_wait(error), *data),
        hints=tuple(hints),
        code=error.code,
        data=error.data,
        http_status=error.status,
        retry_after=error.retry_after,
    )


def _wants_tasks(error: PeerError) -> bool:
    """Whether the server demands that the client takes tasks."""
    needed = member(member(error.data, "requiredCapabilities"), "extensions")
    return error.code == ErrorCode.MISSING_CLIENT_CAPABILITY and member(needed, _TASKS) is not None


def _supported(data: object) -> str | None:
    """A revision of this side in the list that servers put into this error."""
    names = [name for name in array_of(member(data, "supported")) if name in ALL_REVISIONS]
    return max(names, default=None)


def _invalid(error: InvalidAnswer, context: Context) -> Failure:
    if is_too_long(str(error)):
        return Failure(
            kind="invalid-answer",
            text=f"{context.server} answered {context.question}, and the answer is too long: "
            f"{error}",
            rule=TOO_LONG,
        )
    return Failure(
        kind="invalid-answer",
        text=f"{context.server} answered {context.question}, and the answer is not valid: {error}",
        hints=()
        if context.method is None
        else (f"sansmcp request {context.method} shows answers as they come",),
    )


def _no_agreement(error: StartFailed, context: Context) -> Failure:
    hints = ["leave --revision out, or choose one that both speak"]
    if context.url is not None:
        hints.insert(0, _PATH)
    return Failure(
        kind="no-agreement",
        text=f"no agreement with {context.server}: {error}",
        hints=tuple(hints),
    )


def _not_sent(error: LocalProtocolError, context: Context) -> Failure:
    if error.rule in _ASKED_WRONGLY:
        return Failure(
            kind="usage",
            text=f"not sent: {error.text}",
            rule=error.rule,
            status=Status.USAGE,
            hints=(f"sansmcp explain {error.rule}",),
        )
    if error.rule == "OWN-020":
        elsewhere = revisions_with(context.question)
        return Failure(
            kind="not-offered",
            text=f"not sent to {context.server}: {error.text}",
            rule=error.rule,
            hints=tuple(f"--revision {name} has it" for name in elsewhere[-1:]),
        )
    if error.rule == "TASK-002":
        return Failure(
            kind="not-offered",
            text=f"not sent to {context.server}: {error.text}",
            rule=error.rule,
            hints=("leave --task out: this server makes no tasks",),
        )
    declared = () if context.peer is None else (declares(context.peer.capabilities),)
    return Failure(
        kind="not-offered",
        text=f"not sent to {context.server}: {error.text}",
        details=declared,
        rule=error.rule,
        hints=(f"sansmcp explain {error.rule}", "sansmcp inspect shows what the server offers"),
    )


def declares(capabilities: JSONObject) -> str:
    """The capabilities that a server declares, in one line."""
    return f"it declares: {', '.join(sorted(capabilities)) or 'nothing'}"


_OPENING = "initialize"
"""Sent by the command itself where there is a handshake: users cannot send it."""


def revisions_with(method: str) -> list[str]:
    """The revisions in which a client may send this request, oldest first."""
    if method == _OPENING:
        return []
    table = (files("sansmcp") / "data" / "methods.csv").read_text("utf-8").splitlines()
    return [
        row["revision"]
        for row in csv.DictReader(table)
        if (row["method"], row["kind"], row["direction"]) == (method, "request", "client->server")
    ]
