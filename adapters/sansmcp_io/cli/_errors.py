"""Failures of commands, and their exit statuses."""

from __future__ import annotations

import enum
from typing import Final

import attrs

from sansmcp import JSONObject, JSONValue


class Status(enum.IntEnum):
    """The exit status of a command; after a signal, it is 128 plus the number of the signal."""

    OK = 0
    TOOL_FAILED = 1
    USAGE = 2
    PROTOCOL = 3
    BROKEN_PIPE = 141  # as a shell reports a program that SIGPIPE has ended


class UsageError(Exception):
    """The command line asks for something that cannot be done, whatever the server is."""

    def __init__(self, text: str, *lines: str) -> None:
        super().__init__(text)
        self.lines: Final = lines


class OutputFailed(Exception):
    """The result cannot be written, or is not read."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error: Final = error


@attrs.frozen(kw_only=True)
class Failure:
    """A failure: what has happened, and what to try.

    Attributes:
        kind: A word for programs; it stays what it is.
        text: One sentence.
        details: Lines that the server has sent or written.
        hints: Possible remedies.
        status: The exit status.
        rule: The id of the rule it is about, where there is one.
        code: The server's error code, where it sent one.
        data: The `data` of the server's error.
        http_status: The HTTP status of the server's response, where it is the reason or brought
            the error.
        retry_after: Seconds after which the request may be sent again, if the server said so.
    """

    kind: str
    text: str
    details: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    status: int = Status.PROTOCOL
    rule: str | None = None
    code: int | None = None
    data: JSONValue = None
    http_status: int | None = None
    retry_after: float | None = None

    def document(self) -> JSONObject:
        """The failure for programs."""
        return {
            "error": {
                "kind": self.kind,
                "text": self.text,
                "details": list(self.details),
                "hints": list(self.hints),
                "rule": self.rule,
                "code": self.code,
                "data": self.data,
                "status": self.http_status,
                "retry_after": self.retry_after,
            }
        }


class Advised(Exception):
    """Raised for a failed request with hints on remedies."""

    def __init__(self, error: Exception, method: str, hints: tuple[str, ...]) -> None:
        super().__init__(str(error))
        self.error: Final = error
        self.method: Final = method
        self.hints: Final = hints


class TaskProblem(Exception):
    """Raised for a task that has no result, or is not there.

    Args:
        text: What is said of the server, which is the subject of the sentence.
        hints: As in `Failure`.
        kind: As in `Failure`.
    """

    def __init__(self, text: str, *hints: str, kind: str) -> None:
        super().__init__(text)
        self.kind: Final = kind
        self.hints: Final = hints
