"""The demo over HTTP: cases on sockets that are hard to get right, in both eras.

Each step says what it has seen. A step that was not seen counts as failed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, Final

import trio

from sansmcp import JSONObject

from .._options.clients import StdioClientOptions
from ..trio._process import open_child
from .http_client import SSE, Exchange, HTTPClient
from .steps import NotSeen
from .transcript import Kind, Transcript

_MODERN: Final = "2026-07-28"
_LEGACY: Final = "2025-11-25"
_META: Final[JSONObject] = {
    "io.modelcontextprotocol/protocolVersion": _MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "sansmcp-demo-client", "version": "1.0"},
    "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
}
_COUNTER: Final = "demo:counter"


def see(passed: object, what: str) -> None:
    """Fail the step unless this was seen."""
    if not passed:
        raise NotSeen(what)


class HTTPSteps:
    """The steps of the client over HTTP."""

    def __init__(self, client: HTTPClient, transcript: Transcript) -> None:
        self._client = client
        self._transcript = transcript
        self._session: dict[str, str] = {}

    def _modern(
        self, method: str, params: JSONObject, **meta: Any
    ) -> AbstractAsyncContextManager[Exchange]:
        message: JSONObject = {"jsonrpc": "2.0", "id": 1, "method": method}
        message["params"] = {**params, "_meta": {**_META, **meta}}
        fields = {"mcp-protocol-version": _MODERN, "mcp-method": method}
        if "name" in params:
            fields["mcp-name"] = params["name"]
        return self._client.post(message, fields)

    def _call(self, name: str, /, **arguments: Any) -> AbstractAsyncContextManager[Exchange]:
        return self._modern("tools/call", {"name": name, "arguments": arguments}, progressToken=1)

    def _legacy(
        self, id: int | None, method: str, params: JSONObject | None = None
    ) -> AbstractAsyncContextManager[Exchange]:
        message: JSONObject = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        return self._client.post(message if id is None else {**message, "id": id}, self._session)

    def _get(self, **more: str) -> AbstractAsyncContextManager[Exchange]:
        return self._client.send("GET", {"accept": SSE, **self._session, **more})

    # ----------------------------------------------------------------------- without sessions

    async def discover(self) -> str:
        """Discover the server: one POST, one JSON object as response."""
        async with self._modern("server/discover", {}) as exchange:
            answer = await exchange.message()
        see(_MODERN in answer["result"]["supportedVersions"], f"no {_MODERN}")
        return f"{exchange.status}, it speaks {', '.join(answer['result']['supportedVersions'])}"

    async def progress(self) -> str:
        """Progress turns the response into a stream."""
        async with self._call("progress", steps=3) as exchange:
            steps = [(await exchange.message())["params"]["progress"] for _ in range(3)]
            answer = await exchange.message()
        see(steps == [1, 2, 3], f"progress was {steps}")
        return f"{steps} on a stream, then {answer['result']['content'][0]['text']!r}"

    async def questions(self) -> str:
        """The server asks in its result, and the client calls again with the answers."""
        async with self._call("ask") as exchange:
            asked = (await exchange.message())["result"]
        see(asked["resultType"] == "input_required", "nothing was asked")
        params: JSONObject = {"name": "ask", "arguments": {}, "requestState": asked["requestState"]}
        params["inputResponses"] = {"roots": {"roots": [{"uri": "file:///demo"}]}}
        async with self._modern("tools/call", params) as exchange:
            text = (await exchange.message())["result"]["content"][0]["text"]
        see("file:///demo" in text, text)
        params["requestState"] += "x"
        async with self._modern("tools/call", params) as exchange:
            see(exchange.status == 400, f"a forged state got {exchange.status}")
        return f"{text!r}; a forged state gets 400"

    async def subscription(self) -> str:
        """Changes come on the stream of the subscription."""
        wanted: JSONObject = {"notifications": {"resourceSubscriptions": [_COUNTER]}}
        async with self._modern("subscriptions/listen", wanted) as stream:
            await stream.message()
            async with self._call("touch"):
                change = await stream.message()
        see(change["params"]["uri"] == _COUNTER, str(change))
        return f"{change['method']} came"

    async def leaving(self) -> str:
        """Closing the connection cancels the request."""
        with trio.move_on_after(0.2):
            async with self._call("slow", seconds=60):
                pass
        await self._transcript.wait_for("server", Kind.STDERR, "slow: cancelled")
        return "the handler was cancelled"

    # -------------------------------------------------------------------------- with sessions

    async def session(self) -> str:
        """A legacy client opens a session at the same endpoint."""
        params: JSONObject = {
            "protocolVersion": _LEGACY,
            "capabilities": {},
            "clientInfo": {"name": "sansmcp-demo-client", "version": "1.0"},
        }
        async with self._legacy(0, "initialize", params) as exchange:
            revision = (await exchange.message())["result"]["protocolVersion"]
            id = exchange.headers["mcp-session-id"]
        self._session = {"mcp-session-id": id, "mcp-protocol-version": revision}
        async with self._legacy(None, "notifications/initialized") as exchange:
            see(exchange.status == 202, f"status {exchange.status}")
        return f"{revision}, and a session id of {len(id)} characters"

    async def get_stream(self) -> str:
        """Messages that belong to no request come on the stream that the client GETs."""
        async with self._get() as stream:
            async with self._legacy(1, "resources/subscribe", {"uri": _COUNTER}):
                pass
            async with self._legacy(2, "tools/call", {"name": "touch", "arguments": {}}):
                pass
            change = await stream.message()
        see(change["params"]["uri"] == _COUNTER, str(change))
        return f"{change['method']} came"

    async def resumption(self) -> str:
        """Break a stream, and see the client resume the stream."""
        params: JSONObject = {"name": "progress", "arguments": {"steps": 3}}
        params["_meta"] = {"progressToken": "p"}
        async with self._legacy(3, "tools/call", params) as exchange:
            await exchange.message()
            id = exchange.last_event_id
        see(id, "events have no ids")
        async with self._get(**{"last-event-id": id}) as stream:
            answer = await stream.last()
        see(answer["id"] == 3, str(answer))
        return "the rest of it, and the answer, came by GET with Last-Event-ID"

    async def end_of_session(self) -> str:
        """DELETE ends a session, and its id is not valid any more."""
        async with self._client.send("DELETE", self._session) as exchange:
            see(exchange.status == 204, f"status {exchange.status}")
        async with self._legacy(4, "ping") as exchange:
            see(exchange.status == 404, f"status {exchange.status}")
        return "404 after DELETE"

    # ------------------------------------------------------------------------------- strangers

    async def strangers(self) -> str:
        """Requests that are not for this server are refused, and the server goes on."""
        fields = {"content-type": "application/json"}
        async with self._client.send("POST", {**fields, "host": "evil.example"}) as host:
            pass
        async with self._client.send("POST", {**fields, "origin": "https://evil.example"}) as page:
            pass
        async with self._client.send("POST", fields, b"{") as broken:
            pass
        async with self._client.send("PUT", fields) as method:
            pass
        statuses = [one.status for one in (host, page, broken, method)]
        see(statuses == [403, 403, 400, 405], f"statuses {statuses}")
        return "a foreign Host and Origin get 403, broken JSON 400, PUT 405"

    @asynccontextmanager
    async def shutdown(self) -> AsyncGenerator[None, None]:
        """Listen while the server ends: the stream gets a proper end, too."""
        async with self._modern("subscriptions/listen", {"notifications": {}}) as stream:
            yield
            answer = await stream.last()
        see(answer is not None and "result" in answer, "the stream had no end")


_STEPS: Final[Sequence[tuple[str, Callable[[HTTPSteps], Awaitable[str]]]]] = (
    ("discovery", HTTPSteps.discover),
    ("call with progress", HTTPSteps.progress),
    ("questions answered", HTTPSteps.questions),
    ("subscription", HTTPSteps.subscription),
    ("cancelled by leaving", HTTPSteps.leaving),
    ("session", HTTPSteps.session),
    ("stream of a session", HTTPSteps.get_stream),
    ("broken stream taken up", HTTPSteps.resumption),
    ("session deleted", HTTPSteps.end_of_session),
    ("strangers refused", HTTPSteps.strangers),
)
SHUTDOWN: Final = "clean shutdown"
STEPS: Final = (*(name for name, _ in _STEPS), SHUTDOWN)


class HTTPDemo:
    """Runs one server process over HTTP, and keeps the outcome of each step."""

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self.transcript: Final = Transcript()
        self.outcomes: Final[dict[str, tuple[bool, str]]] = {}
        self._command = command
        self._seconds = seconds

    @property
    def passed(self) -> bool:
        """Whether every step has happened."""
        return all(self.outcomes.get(name, (False, ""))[0] for name in STEPS)

    async def run(self) -> None:
        """Go through all steps in the time that is allowed."""
        with trio.move_on_after(self._seconds) as scope:
            process = StdioClientOptions[Any](
                self._command, info={}, on_stderr=self.transcript.server_line
            )
            async with open_child(process) as child:
                where = await self.transcript.wait_for("server", Kind.STDERR, "serving http")
                port = int(where.text.rpartition(":")[2].partition("/")[0])
                steps = HTTPSteps(HTTPClient(port, self.transcript), self.transcript)
                for name, step in _STEPS:
                    self.transcript.heading(name)
                    await self._take(name, partial(step, steps))
                self.transcript.heading(SHUTDOWN)

                async def shut_down() -> str:
                    async with steps.shutdown():
                        child.process.terminate()
                    status = await child.process.wait()
                    see(status == 0, f"exit status {status}")
                    return "the stream ended with a result, and the process with status 0"

                await self._take(SHUTDOWN, shut_down)
        if scope.cancelled_caught:
            self.transcript.note(f"the time is over: {self._seconds:g} s")

    async def _take(self, name: str, step: Callable[[], Awaitable[str]]) -> None:
        """Run a step and record its outcome. After a failure, the next step runs all the same."""
        try:
            with trio.fail_after(self._seconds / 4):
                self.outcomes[name] = True, await step()
        except Exception as error:
            self.outcomes[name] = False, f"{type(error).__name__}: {error}"

    def report(self) -> str:
        """The transcript, and the outcome of each step."""
        lines = [*self.transcript.lines(), "", "-- summary over HTTP"]
        for name in STEPS:
            passed, text = self.outcomes.get(name, (False, "not reached"))
            lines.append(f"{'ok' if passed else 'FAILED':6} {name}: {text}")
        return "\n".join(lines)
