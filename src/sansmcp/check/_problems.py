"""A problem that a check has found, the report that collects problems, and paths in a payload."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

import attrs

from .._spec.rule_levels import LEVELS, Level
from .._wire.values import Record

MAX_PROBLEMS: Final = 100
"""The most problems of one check, which ends with the last of them. At most half of them break a
SHOULD, so that they cannot hide those that break a MUST."""

Path: TypeAlias = tuple["Path", str | int] | None
"""The way to a value: the path of its parent, and its name or index; None for the root."""

_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_SHOWN_CHARACTERS: Final = 80
_MUST: Final = frozenset({"MUST", "MUST NOT", "OWN"})


@attrs.frozen
class Problem(Record):
    """A part of a payload that breaks a rule.

    Attributes:
        rule: The id of the rule.
        path: The place in the payload as a JSON path, such as `$.tools[3].inputSchema`.
        text: The problem in one sentence, without values of the payload that may be secret.
    """

    rule: str
    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text} [{self.rule}]"

    @property
    def level(self) -> Level:
        """The level of the rule; `OWN` for a rule of this library."""
        return LEVELS[self.rule]

    @property
    def is_binding(self) -> bool:
        """Whether the rule has to be kept: it is no SHOULD."""
        return self.level in _MUST


class Full(Exception):
    """The report has as many problems as it may have."""


class Report:
    """The problems of one check, in the order in which they were found.

    Attributes:
        problems: The problems.
        advice: The number of those that break a SHOULD.
        malformed: The number of those that concern the shape of the payload. Rules on the content
            of a part are judged if its shape is right, so that they can rely on it.
    """

    __slots__ = ("advice", "malformed", "problems")

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.advice = 0
        self.malformed = 0

    def add(self, rule: str, at: Path, text: str) -> None:
        """Add a problem.

        Raises:
            Full: It was the last one that the report may have.
        """
        self._file(Problem(rule, path_text(at), text))

    def _file(self, problem: Problem) -> None:
        if not problem.is_binding:
            if self.advice >= MAX_PROBLEMS // 2:
                return
            self.advice += 1
        self.problems.append(problem)
        if len(self.problems) >= MAX_PROBLEMS:
            raise Full

    def add_malformed(self, rule: str, at: Path, text: str) -> None:
        """Add a problem that concerns the shape; raises as `add` does."""
        self.malformed += 1
        self.add(rule, at, text)

    def take(self, other: Report) -> None:
        """Add the problems of another report; raises as `add` does."""
        self.malformed += other.malformed
        for problem in other.problems:
            self._file(problem)


def path_text(at: Path) -> str:
    """A path as text. Long names are cut."""
    steps: list[str] = []
    while at is not None:
        at, step = at
        if isinstance(step, int):
            steps.append(f"[{step}]")
        elif _NAME.fullmatch(step) and len(step) <= _SHOWN_CHARACTERS:
            steps.append(f".{step}")
        else:
            steps.append(f"[{shown(step)}]")
    return "$" + "".join(reversed(steps))


def shown(text: str) -> str:
    """A short text in double quotes, for a sentence; a longer one is cut."""
    cut = text[:_SHOWN_CHARACTERS].encode("unicode_escape").decode("ascii").replace('"', r"\"")
    return f'"{cut}..."' if len(text) > _SHOWN_CHARACTERS else f'"{cut}"'
