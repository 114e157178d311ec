"""The steps of the demo's client, with the events that both sides must have seen."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import trio

from sansmcp import MODERN_REVISIONS, ErrorCode, JSONObject

from ..trio import Call, Client, HalfCloseableByteStream
from ..trio._loop import unwrapped
from ..trio._process import Child
from .server import BANNER, COUNTER, TOOL_NAMES
from .transcript import Kind, Transcript

CAPABILITIES: Final[JSONObject] = {"sampling": {}, "roots": {}, "elicitation": {}}
SAMPLE: Final = "a fixed sample"
ROOT: Final = "file:///demo/root"
CITY: Final = "Paris"
BROKEN_LINE: Final = b'{"jsonrpc": "2.0", "id": "broken", \n'
FORMS_SINCE: Final = "2025-06-18"
"""The first revision in which a server can ask the user to fill in a form."""


class NotSeen(Exception):
    """Something that a step had to see did not happen."""


def check(seen: object, what: str) -> None:
    """Fail the step unless `seen` is true."""
    if not seen:
        raise NotSeen(what)


async def on_request(call: Call) -> JSONObject:
    """Answer the questions of the demo server, in the same way in both eras."""
    await trio.lowlevel.checkpoint()
    if call.method == "sampling/createMessage":
        content = {"type": "text", "text": SAMPLE}
        return {"role": "assistant", "content": content, "model": "none", "stopReason": "endTurn"}
    if call.method == "elicitation/create":
        return {"action": "accept", "content": {"city": CITY}}
    return {"roots": [{"uri": ROOT, "name": "root"}]}  # the only other one that was declared


class Steps:
    """The steps of one conversation. Each says what it has seen, or raises."""

    def __init__(
        self, client: Client, gate: Gate, child: Child, transcript: Transcript, revision: str
    ) -> None:
        self._client = client
        self._gate = gate
        self._child = child
        self._transcript = transcript
        self._revision = revision
        self._is_modern = revision in MODERN_REVISIONS

    async def open(self) -> str:
        """The client has opened the conversation: with a handshake, or by server/discover."""
        revision = self._client.peer.revision
        check(revision == self._revision, f"the agreed revision is {revision}")
        await self._event("client", "Ready", revision=self._revision)
        await self._event("server", "Ready", revision=self._revision)
        way = "server/discover" if self._is_modern else "initialize"
        await self._event("server", "RequestAnswered", request=way)
        return f"both sides are ready at {revision}, after {way}"

    async def list_tools(self) -> str:
        """List all pages."""
        tools: list[Any] = [tool async for tool in self._client.items("tools/list")]
        pages = len(self._transcript.find("client", Kind.EVENT, "PageReceived"))
        names = [tool["name"] for tool in tools]
        check(names == TOOL_NAMES, f"the server listed {names}")
        check(pages > 1, f"there were {pages} pages")
        await self._event("client", "ListingEnded", reason="COMPLETE")
        return f"{len(tools)} tools on {pages} pages"

    async def progress(self) -> str:
        """Progress comes before the response."""
        seen: list[float] = []

        def on_progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append(progress)

        text = await self._call("progress", {"steps": 3}, on_progress=on_progress)
        check(text == "3 steps", f"the answer was {text!r}")
        check(seen == [1, 2, 3], f"progress was {seen}")
        return "progress 1, 2, 3 of 3, then the answer"

    async def log(self) -> str:
        """The log level is requested once, or with each request."""
        if self._is_modern:
            unasked = await self._call("log", {})
            check(unasked == "told: nothing", f"without a level, the server {unasked}")
            text = await self._call("log", {}, log_level="error")
        else:
            await self._client.request("logging/setLevel", {"level": "error"})
            text = await self._call("log", {})
        check(text == "told: error, critical, alert, emergency", f"the server {text}")
        heard = self._transcript.find(
            "client", Kind.EVENT, "NotificationReceived", method="notifications/message"
        )
        check(len(heard) == 4, f"the client heard {len(heard)} messages")
        how = "with the request" if self._is_modern else "by logging/setLevel"
        return f"four of eight levels were sent: the client wished for them {how}"

    async def questions(self) -> str:
        """Let one handler of the server ask in both eras, and one function of the client answer."""
        text = await self._call("ask", {})
        check(SAMPLE in text and ROOT in text, f"the answer was {text!r}")
        asked = ["sampling/createMessage", "roots/list"]
        if self._revision >= FORMS_SINCE:
            check(CITY in text, f"the answer was {text!r}")
            asked.append("elicitation/create")
        if self._is_modern:
            await self._event("client", "InputRequired", request="tools/call")
            again = self._transcript.find("server", Kind.RECEIVED, '"inputResponses"')
            check(len(again) == 1, f"the request came again {len(again)} times with answers")
            way = "the request came again with the answers"
        else:
            for method in asked:
                await self._event("client", "RequestReceived", request=method)
            way = "each was a request of the server"
        return f"{', '.join(asked)}: {way}"

    async def subscription(self) -> str:
        """Publish changes before, during and after a subscription, and see one reported."""
        await self._touch(told=False)
        async with self._subscribed():
            await self._touch(told=True)
            await self._event(
                "client", "NotificationReceived", method="notifications/resources/updated"
            )
        if self._is_modern:
            await self._event("server", "ListenerRemoved", cause="PEER")
        await self._touch(told=False)
        way = "subscriptions/listen" if self._is_modern else "resources/subscribe"
        return f"a change was told from {way} to its end, and others were not"

    async def race(self) -> str:
        """Let a cancellation win the race against a response, and then a response."""
        async with self._cancelling("slow", {}) as scope:
            await self._transcript.wait_for("server", Kind.RECEIVED, '"slow"')
            self._transcript.note("the client cancels while the handler works")
            scope.cancel()
        await self._event("server", "RequestCancelled", cause="PEER")
        await self._transcript.wait_for("server", Kind.STDERR, "slow: cancelled")

        self._gate.hold()
        async with self._cancelling("echo", {"text": "crossing"}) as scope:
            await self._transcript.wait_for("server", Kind.SENT, "crossing")
            self._transcript.note("the answer is on its way, unread; the client cancels")
            scope.cancel()
        await self._event("server", "MessageIgnored", method="notifications/cancelled")
        failed = self._transcript.find("client", Kind.EVENT, "RequestFailed", reason="CANCELLED")
        check(len(failed) == 2, f"{len(failed)} requests ended as cancelled")
        return "a cancelled handler stopped; a cancellation crossed its answer, and did no harm"

    async def late_answer(self) -> str:
        """The response that the cancellation has crossed is read now."""
        self._transcript.note("now the client reads the answer")
        self._gate.release()
        await self._event("client", "MessageIgnored", method=None)
        await self._still_works()
        late = self._transcript.find("client", Kind.RECEIVED, "crossing")
        check(len(late) == 1, "the late answer was not read")
        return "the answer to the cancelled request came, and went unheard"

    async def malformed_line(self) -> str:
        """The server gets a broken line; the client got one before the opening."""
        self._transcript.note(f"the client's stream breaks: {BROKEN_LINE!r}")
        await self._gate.send_all(BROKEN_LINE)
        await self._event("server", "ProtocolViolation", code=ErrorCode.PARSE_ERROR)
        await self._still_works()
        noise = self._transcript.find("client", Kind.EVENT, "ProtocolViolation", excerpt=BANNER)
        check(noise, "the client did not report the server's banner")
        return "a broken line on either side was reported, and the conversation went on"

    async def shut_down(self) -> str:
        """The process has ended, and both sides know that the conversation has."""
        await trio.lowlevel.checkpoint()
        status, ended_by = self._child.process.returncode, self._child.end.ended_by
        check(ended_by == "end of input", f"the server had to be ended by {ended_by}")
        check(status == 0, f"the server's exit status is {status}")
        for side in ("client", "server"):
            closed = self._transcript.find(side, Kind.EVENT, "ConnectionClosed")
            check(len(closed) == 1, f"the {side} saw {len(closed)} ends")
        return "the server ended by itself at the end of its input, with status 0"

    # --------------------------------------------------------------------------- helpers

    async def _call(self, name: str, arguments: JSONObject, **options: Any) -> str:
        params: JSONObject = {"name": name, "arguments": arguments}
        result = await self._client.request("tools/call", params, **options)
        return "".join(block.get("text", "") for block in result["content"])

    async def _still_works(self) -> None:
        check(await self._call("echo", {"text": "still here"}) == "still here", "echo is broken")

    async def _touch(self, *, told: bool) -> None:
        text = await self._call("touch", {})
        check(text.endswith("was told") is told, f"the counter was touched: {text}")

    @asynccontextmanager
    async def _subscribed(self) -> AsyncGenerator[None, None]:
        """Subscribe to the counter for as long as the block lasts, in the way of the era."""
        if self._is_modern:
            async with self._client.listen({"resourceSubscriptions": [COUNTER]}):
                yield
        else:
            await self._client.request("resources/subscribe", {"uri": COUNTER})
            yield
            await self._client.request("resources/unsubscribe", {"uri": COUNTER})

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
        await self._transcript.wait_for(side, Kind.EVENT, name, **details)


class Gate:
    """A stream of the demo's client whose received data can be held back.

    So a race has a known winner. It begins open.
    """

    def __init__(self, inner: HalfCloseableByteStream) -> None:
        self._inner = inner
        self._open = trio.Event()
        self._open.set()

    def hold(self) -> None:
        """Hold back data that comes from now on."""
        self._open = trio.Event()

    def release(self) -> None:
        """Let the data through."""
        self._open.set()

    async def receive_some(self) -> bytes | bytearray:
        """Receive data, and wait until the gate is open."""
        data = await self._inner.receive_some()
        await self._open.wait()
        return data

    async def send_all(self, data: bytes) -> None:
        """Send at once: only the other direction has a gate."""
        await self._inner.send_all(data)

    async def send_eof(self) -> None:
        """As the inner stream."""
        await self._inner.send_eof()
