"""Several servers behind one: `python gateway.py FILE`, on standard input and output.

The file holds a JSON object: prefixes, and the command of the server whose names get it.
"""

import json
import secrets
import sys
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import trio

import sansmcp
from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, ErrorCode, JSONObject
from sansmcp_io import trio as mcp
from sansmcp_io.trio import McpError, RequireInput, ServerCall

Outcome: TypeAlias = JSONObject | RequireInput
INFO: JSONObject = {"name": "gateway", "version": "1.0"}
KINDS = ("tools", "prompts", "resources")
CHANGES = {kind: getattr(sansmcp, f"{kind.title()}ListChanged")() for kind in KINDS}
LISTENED: JSONObject = {f"{kind}ListChanged": True for kind in KINDS}
OFFERED = {"completions": {}, "logging": {}, **{kind: {"listChanged": True} for kind in KINDS}}
PASSED_ON = ("elicitation", "roots", "sampling")  # of what a client can do
OURS = ("_meta", "inputResponses", "requestState")  # params that are not for the upstream
RESERVED = ("io.modelcontextprotocol/", "progressToken")  # nor these, of `_meta`
NAME_LENGTH = 128
PATIENCE = 600.0  # seconds that a question may wait for its answer


# -- job
class Job:
    """A call that an upstream server works on, through all rounds in which it asks something."""

    current: ContextVar["Job"] = ContextVar("job")

    def __init__(self, call: ServerCall) -> None:
        self.call = call  # that of the newest round
        self.scope = trio.CancelScope()
        self.news = trio.Event()  # there are questions, or it is over
        self.questions: dict[str, JSONObject] = {}
        self.waiting: dict[str, trio.MemorySendChannel[JSONObject]] = {}
        self.outcome: JSONObject | McpError | None = None

    async def run(self, link: "Link", params: JSONObject) -> None:
        self.current.set(self)
        with self.scope:
            async with link.turn if self.call.revision in MODERN_REVISIONS else nullcontext():
                link.jobs = [*link.jobs, self]
                self.outcome = await link.request(self, params)
        link.jobs = [job for job in link.jobs if job is not self]
        self.news.set()

    async def ask(self, question: mcp.Call) -> JSONObject:
        """Have the client answer with its next round."""
        key = secrets.token_hex(8)
        self.waiting[key], answer = trio.open_memory_channel[JSONObject](1)
        self.questions[key] = {"method": question.method, "params": question.params}
        self.news.set()
        with trio.fail_after(PATIENCE):
            return await answer.receive()


# -- link
class Link:
    """A process of an upstream server, which was told what one kind of client can do."""

    def __init__(self, gateway: "Gateway", prefix: str, capabilities: JSONObject) -> None:
        self.gateway, self.prefix, self.capabilities = gateway, prefix, capabilities
        self.jobs: list[Job] = []
        self.turn: AbstractAsyncContextManager[None] = nullcontext()

    async def run(self, task_status: Any = trio.TASK_STATUS_IGNORED) -> None:
        async with mcp.connect_stdio(
            self.gateway.commands[self.prefix],
            restarts=10,  # of a server that ends, in all
            info=INFO,
            capabilities=self.capabilities,
            on_request=self.on_request,
            on_notification=self.on_notification,
            request_timeout=float("inf"),  # how long is for the client to say
        ) as self.client:
            is_old = self.client.peer.revision in LEGACY_REVISIONS
            if is_old and self.capabilities:
                self.turn = trio.Lock()  # it could ask, and would not say what it asks about
            if is_old and "logging" in self.client.peer.capabilities:
                await self.client.request("logging/setLevel", {"level": "debug"})
            task_status.started(self)
            # The old revisions have no such thing: there the changes are told to everybody.
            with suppress(mcp.ConnectionLost, sansmcp.LocalProtocolError):
                async with self.client.listen(LISTENED) as changes:
                    async for method, params in changes:
                        self.on_notification(method, params)
            await trio.sleep_forever()

    async def on_request(self, call: mcp.Call) -> JSONObject:
        """Only the new revision tells what it is about; of the others there is one at a time."""
        server, job = self.gateway.server, Job.current.get(None) or next(iter(self.jobs), None)
        if server is not None and server.peer.revision in LEGACY_REVISIONS:
            return await server.request(call.method, call.params, timeout=PATIENCE)
        if job is not None:
            return await job.ask(call)
        raise McpError(ErrorCode.INTERNAL_ERROR, "the client has no call that this could be about")

    def on_notification(self, method: str, params: JSONObject) -> None:
        kind = method.removeprefix("notifications/").removesuffix("/list_changed")
        if method == "notifications/message":
            level, data = params["level"], params["data"]
            any(job.call.log(level, data, logger=self.prefix) for job in self.jobs)
        elif kind in CHANGES and self.gateway.server is not None:
            self.gateway.server.publish(CHANGES[kind])

    async def request(self, job: Job, params: JSONObject) -> JSONObject | McpError:
        """What the upstream answers to a call, with other params."""
        call, quiet = job.call, None if job.call.revision in MODERN_REVISIONS else "debug"

        def on_progress(progress: float, total: float | None, message: str | None) -> None:
            job.call.progress(progress, total=total, message=message)

        try:
            return await self.client.request(
                call.method,
                params,
                meta={k: v for k, v in call.meta.items() if not k.startswith(RESERVED)},
                log_level=call.log_level or quiet,
                on_progress=on_progress if "progressToken" in call.meta else None,
            )
        except mcp.PeerError as error:
            return McpError(error.code, error.message, *[] if error.data is None else [error.data])
        except Exception as error:
            return McpError(ErrorCode.INTERNAL_ERROR, f"{self.prefix}: {error}")


# -- gateway
class Gateway:
    """Serves one client, with all upstreams behind it."""

    def __init__(self, commands: dict[str, list[str]], nursery: trio.Nursery) -> None:
        self.commands, self.nursery = commands, nursery
        self.links: dict[tuple[str, str], Link] = {}
        self.opening = trio.Lock()
        self.cut: dict[str, str] = {}  # names that were too long, by those that the lists have
        self.parked: dict[str, Job] = {}  # by the state that the client will come back with
        self.server: mcp.Server | None = None

    async def link(self, prefix: str, client: JSONObject) -> Link:
        """The process that was told what this client can do, as far as it is passed on."""
        able = {name: client[name] for name in PASSED_ON if name in client}
        key = prefix, json.dumps(able, sort_keys=True)
        async with self.opening:
            if key not in self.links:
                self.links[key] = await self.nursery.start(Link(self, prefix, able).run)
        return self.links[key]

    def rename(self, prefix: str, items: list[JSONObject]) -> None:
        """Names and URIs of an upstream as the client sees them."""
        for item in items:
            member = next(one for one in ("uriTemplate", "uri", "name") if one in item)
            given = f"{prefix}.{item[member]}"
            if member == "name" and len(given) > NAME_LENGTH:
                given = f"{given[: NAME_LENGTH - 9]}-{sha256(given.encode()).hexdigest()[:8]}"
                self.cut[given] = item["name"]
            item[member] = given

    async def handle(self, call: ServerCall) -> Outcome:
        self.server = call.server
        if call.method.endswith("/list"):
            return await self.page(call)
        params = {name: value for name, value in call.params.items() if name not in OURS}
        place: JSONObject = params.get("ref", params)  # where the name stands, or the URI
        member = "uri" if "uri" in place else "name"
        given = str(place[member])
        prefix, _, own = given.partition(".")
        if prefix not in self.commands:
            raise McpError(ErrorCode.INVALID_PARAMS, f"there is no {given!r} here")
        link = await self.link(prefix, call.capabilities)
        place[member] = self.cut.get(given, own)
        result = await self.work(call, link, params)
        if not isinstance(result, RequireInput):
            blocks: list[JSONObject] = [*result.get("content", ()), *result.get("contents", ())]
            blocks += [message["content"] for message in result.get("messages", ())]
            named = [block.get("resource", block) for block in blocks]
            self.rename(prefix, [one for one in named if "uri" in one])
        return result

    async def page(self, call: ServerCall) -> JSONObject:
        """A page of one upstream. Our cursor says of which one, and how that calls its page."""
        kind = call.method.partition("/")[0]
        member = "resourceTemplates" if "templates" in call.method else kind
        place, is_cursor, cursor = str(call.params.get("cursor", "0")).partition(":")
        prefixes = dict(enumerate(self.commands))
        if not place.isdecimal() or (at := int(place)) not in prefixes:
            raise McpError(ErrorCode.INVALID_PARAMS, "the cursor is none of this server's")
        link = await self.link(prefixes[at], call.capabilities)
        items: list[JSONObject] = []
        following = str(at + 1) if at + 1 in prefixes else None
        if kind in link.client.peer.capabilities:
            result = await link.request(Job(call), {"cursor": cursor} if is_cursor else {})
            if isinstance(result, McpError):
                raise result
            items = result[member]
            self.rename(prefixes[at], items)
            following = f"{at}:{result['nextCursor']}" if "nextCursor" in result else following
        return {member: items} | ({"nextCursor": following} if following else {})

    async def work(self, call: ServerCall, link: Link, params: JSONObject) -> Outcome:
        """One round of a call: until the upstream answers, or asks."""
        if (state := call.state) is None:
            job = Job(call)
            self.nursery.start_soon(job.run, link, params)
        elif state not in self.parked:
            raise McpError(ErrorCode.INVALID_PARAMS, "nobody waits for this state")
        else:
            job = self.parked.pop(state)
            job.call = call
            for key, response in call.input_responses.items():
                job.waiting.pop(key).send_nowait(response)
        try:
            await job.news.wait()
        except trio.Cancelled:
            job.scope.cancel()
            raise
        if isinstance(job.outcome, McpError):
            raise job.outcome
        if job.outcome is not None:
            return job.outcome
        self.parked = {key: job for key, job in self.parked.items() if job.outcome is None}
        self.parked[state := secrets.token_urlsafe()] = job
        job.news, questions, job.questions = trio.Event(), job.questions, {}
        return RequireInput(questions, state=state)


# -- run
async def main(path: str) -> None:
    async with trio.open_nursery() as nursery:
        gateway = Gateway(json.loads(Path(path).read_text("utf-8")), nursery)
        capabilities: JSONObject = {}
        for prefix in gateway.commands:
            found = (await gateway.link(prefix, {})).client.peer.capabilities
            capabilities |= {name: OFFERED[name] for name in found if name in OFFERED}
        await mcp.serve_stdio(gateway.handle, info=INFO, capabilities=capabilities)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
