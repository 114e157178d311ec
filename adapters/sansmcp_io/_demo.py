"""The demo: a client drives a real server process through what is hard to get right.

Every step states what it has seen. What was not seen on both sides counts as failed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import trio

from sansmcp import ErrorCode, JSONObject

from ._demo_server import BANNER, TOOL_NAMES
from ._demo_transcript import Kind, Transcript
from ._trio_process import Child, ProcessOptions, open_child
from ._trio_unwrap import unwrapped
from .trio import Call, Client, HalfCloseableByteStream, connect

INFO: Final[JSONObject] = {"name": "sansmcp-demo-client", "version": "1.0"}
SAMPLE: Final = "a fixed sample"
ROOT: Final = "file:///demo/root"
BROKEN_LINE: Final = b'{"jsonrpc": "2.0", "id": "broken", \n'

STEPS: Final = (
    "handshake",
    "paginated listing",
    "call with progress",
    "cancellation races with the answer",
    "late answer ignored",
    "malformed line survived",
    "server request answered",
    "clean shutdown",
)


class NotSeen(Exception):
    """Something that a step had to see did not happen."""


def check(seen: object, what: str) -> None:
    """Fail the step unless `seen` is true."""
    if not seen:
        raise NotSeen(what)


class Gate:
    """A stream whose received data can be held back, so that a race has a known winner."""

    def __init__(self, inner: HalfCloseableByteStream) -> None:
        self._inner = inner
        self._open = trio.Event()
        self._open.set()

    def hold(self) -> None:
        """Keep what comes from here on."""
        self._open = trio.Event()

    def release(self) -> None:
        """Let it through."""
        self._open.set()

    async def receive_some(self) -> bytes | bytearray:
        """Receive, and wait at the gate."""
        data = await self._inner.receive_some()
        await self._open.wait()
        return data

    async def send_all(self, data: bytes) -> None:
        """Send at once: only the other direction has a gate."""
        await self._inner.send_all(data)

    async def send_eof(self) -> None:
        """As the inner stream."""
        await self._inner.send_eof()


async def on_request(call: Call) -> JSONObject:
    """Answer what the demo server asks the client."""
    await trio.lowlevel.checkpoint()
    if call.method == "sampling/createMessage":
        content = {"type": "text", "text": SAMPLE}
        return {"role": "assistant", "content": content, "model": "none", "stopReason": "endTurn"}
    return {"roots": [{"uri": ROOT, "name": "root"}]}  # the only other one that was declared


class Demo:
    """One conversation, and what came of each step."""

    def __init__(self, revision: str, command: Sequence[str], seconds: float) -> None:
        self.transcript: Final = Transcript()
        self.outcomes: Final[dict[str, tuple[bool, str]]] = {}
        self._revision = revision
        self._command = command
        self._seconds = seconds
        self._step_seconds = seconds / 4
        self._client: Client
        self._gate: Gate
        self._child: Child

    @property
    def passed(self) -> bool:
        """Whether every step has happened."""
        return all(self.outcomes.get(name, (False, ""))[0] for name in STEPS)

    async def run(self) -> None:
        """Go through all steps in the time that is allowed, and what it takes to end a process."""
        with trio.move_on_after(self._seconds) as scope:
            try:
                await self._converse()
            except Exception as error:
                # What the steps did not record themselves: the beginning or the end went wrong.
                step = "clean shutdown" if "handshake" in self.outcomes else "handshake"
                self._failed(step, error)
            else:
                await self._take("clean shutdown", self._shut_down)
        if scope.cancelled_caught:
            self.transcript.note(f"the time is over: {self._seconds:g} s")

    def report(self) -> str:
        """The transcript, and what came of each step."""
        lines = self.transcript.lines()
        lines += ["", f"-- summary of revision {self._revision}"]
        for name in STEPS:
            passed, text = self.outcomes.get(name, (False, "not reached"))
            lines.append(f"{'ok' if passed else 'FAILED':6} {name}: {text}")
        return "\n".join(lines)

    async def _converse(self) -> None:
        self.transcript.heading("handshake")
        options = ProcessOptions(on_stderr=self.transcript.server_line)
        async with open_child(self._command, options) as self._child:
            self._gate = Gate(self._child.stream)
            async with connect(
                self._gate,
                info=INFO,
                capabilities={"sampling": {}, "roots": {}},
                revisions=[self._revision],
                requires=["tools"],
                on_request=on_request,
                start_timeout=self._seconds / 2,
                request_timeout=self._step_seconds,
                trace=self.transcript.client,
            ) as self._client:
                await self._take("handshake", self._shake_hands)
                for name, step in (
                    ("paginated listing", self._list),
                    ("call with progress", self._progress),
                    ("cancellation races with the answer", self._race),
                    ("late answer ignored", self._late_answer),
                    ("malformed line survived", self._malformed_line),
                    ("server request answered", self._server_request),
                ):
                    self.transcript.heading(name)
                    await self._take(name, step)
                self.transcript.heading("clean shutdown")

    async def _take(self, name: str, step: Callable[[], Awaitable[str]]) -> None:
        """Record what becomes of a step; one that fails does not keep the next from its turn."""
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

    # ------------------------------------------------------------------------- the steps

    async def _shake_hands(self) -> str:
        revision = self._client.peer.revision
        check(revision == self._revision, f"the agreed revision is {revision}")
        await self._event("client", "Ready", revision=self._revision)
        await self._event("server", "Ready", revision=self._revision)
        return f"both sides are ready at {revision}"

    async def _list(self) -> str:
        tools: list[Any] = [tool async for tool in self._client.items("tools/list")]
        pages = len(self.transcript.find("client", Kind.EVENT, "PageReceived"))
        names = [tool["name"] for tool in tools]
        check(names == TOOL_NAMES, f"the server listed {names}")
        check(pages > 1, f"there were {pages} pages")
        await self._event("client", "ListingEnded", reason="COMPLETE")
        return f"{len(tools)} tools on {pages} pages"

    async def _progress(self) -> str:
        seen: list[float] = []

        def on_progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append(progress)

        text = await self._call("progress", {"steps": 3}, on_progress=on_progress)
        check(text == "3 steps", f"the answer was {text!r}")
        check(seen == [1, 2, 3], f"progress was {seen}")
        return "progress 1, 2, 3 of 3, then the answer"

    async def _race(self) -> str:
        """Once the cancellation wins, and once the answer, which was written before it came."""
        async with self._cancelling("slow", {}) as scope:
            await self.transcript.wait_for("server", Kind.RECEIVED, '"slow"')
            self.transcript.note("the client cancels while the handler works")
            scope.cancel()
        await self._event("server", "RequestCancelled", cause="PEER")
        await self.transcript.wait_for("server", Kind.STDERR, "slow: cancelled")

        self._gate.hold()
        async with self._cancelling("echo", {"text": "crossing"}) as scope:
            await self.transcript.wait_for("server", Kind.SENT, "crossing")
            self.transcript.note("the answer is on its way, unread; the client cancels")
            scope.cancel()
        await self._event("server", "MessageIgnored", method="notifications/cancelled")
        failed = self.transcript.find("client", Kind.EVENT, "RequestFailed", reason="CANCELLED")
        check(len(failed) == 2, f"{len(failed)} requests ended as cancelled")
        return "a cancelled handler stopped; a cancellation crossed its answer, and harmed nobody"

    async def _late_answer(self) -> str:
        self.transcript.note("now the client reads the answer")
        self._gate.release()
        await self._event("client", "MessageIgnored", method=None)
        await self._still_works()
        late = self.transcript.find("client", Kind.RECEIVED, "crossing")
        check(len(late) == 1, "the late answer was not read")
        return "the answer to the cancelled request came, and went unheard"

    async def _malformed_line(self) -> str:
        """The server hears a broken line; the client has heard one before the handshake."""
        self.transcript.note(f"the client's stream breaks: {BROKEN_LINE!r}")
        await self._gate.send_all(BROKEN_LINE)
        await self._event("server", "ProtocolViolation", code=ErrorCode.PARSE_ERROR)
        await self._still_works()
        noise = self.transcript.find("client", Kind.EVENT, "ProtocolViolation", excerpt=BANNER)
        check(noise, "the client did not report the server's banner")
        return "a broken line on either side was reported, and the conversation went on"

    async def _server_request(self) -> str:
        text = await self._call("ask", {})
        check(SAMPLE in text and ROOT in text, f"the answer was {text!r}")
        for method in ("sampling/createMessage", "roots/list"):
            await self._event("client", "RequestReceived", request=method)
            await self._event("server", "ResponseReceived", request=method)
        return "the server asked for a sample and for roots, and used both"

    async def _shut_down(self) -> str:
        status, ended_by = self._child.process.returncode, self._child.ended_by
        check(ended_by == "end of input", f"the server had to be ended by {ended_by}")
        check(status == 0, f"the server's exit status is {status}")
        for side in ("client", "server"):
            closed = self.transcript.find(side, Kind.EVENT, "ConnectionClosed")
            check(len(closed) == 1, f"the {side} saw {len(closed)} ends")
        return "the server ended by itself at the end of its input, with status 0"

    # --------------------------------------------------------------------------- helpers

    async def _call(self, name: str, arguments: JSONObject, **options: Any) -> str:
        params: JSONObject = {"name": name, "arguments": arguments}
        result = await self._client.request("tools/call", params, **options)
        return "".join(block.get("text", "") for block in result["content"])

    async def _still_works(self) -> None:
        check(await self._call("echo", {"text": "still here"}) == "still here", "echo is broken")

    @asynccontextmanager
    async def _cancelling(
        self, name: str, arguments: JSONObject
    ) -> AsyncGenerator[trio.CancelScope, None]:
        """Call a tool in the background, in a scope that the block cancels."""
        scope = trio.CancelScope()

        async def call() -> None:
            with scope:
                await self._call(name, arguments)

        async with unwrapped(), trio.open_nursery() as nursery:
            nursery.start_soon(call)
            yield scope
        check(scope.cancelled_caught, f"{name} was answered in spite of its cancellation")

    async def _event(self, side: str, name: str, **details: object) -> None:
        await self.transcript.wait_for(side, Kind.EVENT, name, **details)
