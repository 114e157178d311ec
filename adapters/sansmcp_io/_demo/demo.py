"""The demo: a client drives a real server process through cases that are hard to get right.

Each step says what it has seen. A step that was not seen on both sides counts as failed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

import trio

from sansmcp import JSONObject

from .._options.clients import StdioClientOptions
from ..trio import connect
from ..trio._process import open_child
from .steps import CAPABILITIES, Gate, NotSeen, Steps, on_request
from .transcript import Transcript

INFO: Final[JSONObject] = {"name": "sansmcp-demo-client", "version": "1.0"}
OPENING: Final = "opening"
SHUTDOWN: Final = "clean shutdown"
_BETWEEN: Final[Sequence[tuple[str, Callable[[Steps], Awaitable[str]]]]] = (
    ("paginated listing", Steps.list_tools),
    ("call with progress", Steps.progress),
    ("log messages", Steps.log),
    ("questions answered", Steps.questions),
    ("subscription", Steps.subscription),
    ("cancellation races with the answer", Steps.race),
    ("late answer ignored", Steps.late_answer),
    ("malformed line survived", Steps.malformed_line),
)
STEPS: Final = (OPENING, *(name for name, _ in _BETWEEN), SHUTDOWN)


class Demo:
    """Runs one conversation, and keeps the outcome of each step."""

    def __init__(self, revision: str, command: Sequence[str], seconds: float) -> None:
        self.transcript: Final = Transcript()
        self.outcomes: Final[dict[str, tuple[bool, str]]] = {}
        self._revision = revision
        self._command = command
        self._seconds = seconds
        self._step_seconds = seconds / 4
        self._steps: Steps

    @property
    def passed(self) -> bool:
        """Whether every step has happened."""
        return all(self.outcomes.get(name, (False, ""))[0] for name in STEPS)

    async def run(self) -> None:
        """Run all steps within the time limit, and end the server process."""
        with trio.move_on_after(self._seconds) as scope:
            try:
                await self._converse()
            except Exception as error:
                # What the steps did not record themselves: the beginning or the end went wrong.
                self._failed(SHUTDOWN if OPENING in self.outcomes else OPENING, error)
            else:
                await self._take(SHUTDOWN, self._steps.shut_down)
        if scope.cancelled_caught:
            self.transcript.note(f"the time is over: {self._seconds:g} s")

    def report(self) -> str:
        """The transcript, and the outcome of each step."""
        lines = self.transcript.lines()
        lines += ["", f"-- summary of revision {self._revision}"]
        for name in STEPS:
            passed, text = self.outcomes.get(name, (False, "not reached"))
            lines.append(f"{'ok' if passed else 'FAILED':6} {name}: {text}")
        return "\n".join(lines)

    async def _converse(self) -> None:
        self.transcript.heading(OPENING)
        process = StdioClientOptions[Any](
            self._command, info=INFO, on_stderr=self.transcript.server_line
        )
        async with open_child(process) as child:
            gate = Gate(child.stream)
            async with connect(
                gate,
                info=INFO,
                capabilities=CAPABILITIES,
                revisions=[self._revision],
                requires=["tools"],
                on_request=on_request,
                start_timeout=self._seconds / 2,
                request_timeout=self._step_seconds,
                trace=self.transcript.client,
            ) as client:
                self._steps = Steps(client, gate, child, self.transcript, self._revision)
                await self._take(OPENING, self._steps.open)
                for name, step in _BETWEEN:
                    self.transcript.heading(name)
                    await self._take(name, partial(step, self._steps))
                self.transcript.heading(SHUTDOWN)

    async def _take(self, name: str, step: Callable[[], Awaitable[str]]) -> None:
        """Run a step and record its outcome. After a failure, the next step runs all the same."""
        try:
            with trio.fail_after(self._step_seconds):
                text = await step()
        except trio.TooSlowError:
            self._failed(name, NotSeen(f"not all of it within {self._step_seconds:g} s"))
        except Exception as error:
            self._failed(name, error)
        else:
            self.outcomes[name] = True, text

    def _failed(self, name: str, error: Exception) -> None:
        self.outcomes[name] = False, f"{type(error).__name__}: {error}"
