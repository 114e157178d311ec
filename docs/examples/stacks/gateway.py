"""Several servers behind one: `python gateway.py FILE`, on standard input and output.

The file holds a JSON object: prefixes without dots, and the command of the server that gets each.
"""

import json
import secrets
import sys
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

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
MOST_KEPT = 100  # reports of a call that wait for its next round; of more, the newest


# -- job
class Job:
    """A call that an upstream server works on, through all its rounds of questions."""

    current: ContextVar["Job"] = ContextVar("job")

    def __init__(self, call: ServerCall) -> None:
        self.call = call  # that of the newest round
        self.is_between_rounds = False  # the newest round has ended, and the next is to come
        self.reports: deque[Callable[[ServerCall], bool]] = deque(maxlen=MOST_KEPT)
        self.scope = trio.CancelScope()
        self.news = trio.lowlevel.ParkingLot()  # for who waits for questions, or the outcome
        # Those without an answer, and where it goes.
        self.questions: dict[str, tuple[JSONObject, trio.MemorySendChannel[JSONObject]]] = {}
        self.outcome: JSONObject | McpError | None = None

    async def run(self, link: "Link", params: JSONObject) -> None:
        self.current.set(self)
        with self.scope:
            async with link.turn if self.call.revision in MODERN_REVISIONS else nullcontext():
                link.jobs = [*link.jobs, self]
                self.outcome = await link.request(self, params)
        link.jobs = [job for job in link.jobs if job is not self]
        self.news.unpark_all()

    def report(self, send: Callable[[ServerCall], bool]) -> bool:
        """Send progress or a log message for the call; between two rounds, keep it for the next."""
        if not self.is_between_rounds:
            return send(self.call)
        self.reports.append(send)
        return True

    def begin_round(self, call: ServerCall) -> None:
        self.call, self.is_between_rounds = call, False
        while self.reports:
            self.reports.popleft()(call)

    async def ask(self, question: mcp.Call) -> JSONObject:
        """Let the client answer with its next round."""
        key = secrets.token_hex(8)
        send, answer = trio.open_memory_channel[JSONObject](1)
        self.questions[key] = {"method": question.method, "params": question.params}, send
        self.news.unpark_all()
        with trio.fail_after(PATIENCE):
            return await answer.receive()


# -- link
class Link:
    """A process of an upstream server, which knows the capabilities of one kind of client."""

    def __init__(self, gateway: "Gateway", prefix: str, capabilities: JSONObject) -> None:
        self.gateway, self.prefix, self.capabilities = gateway, prefix, capabilities
        self.jobs: list[Job] = []
        self.used = trio.lowlevel.ParkingLot()  # for who waits until it is needed again
        self.turn: AbstractAsyncContextManager[None] = nullcontext()

    async def run(self, task_status: trio.TaskStatus["Link"] = trio.TASK_STATUS_IGNORED) -> None:
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
            while True:
                # The old revisions have no such thing, nor has a server that never changes.
                with suppress(Exception):
                    async with self.client.listen(LISTENED) as changes:
                        async for method, params in changes:
                            self.on_notification(method, params)
                await self.used.park()

    async def on_request(self, call: mcp.Call) -> JSONObject:
        """Only the newest revision names the call of a question; for others there is one call at
        a time."""
        if (server := self.gateway.old_client) is not None:
            return await server.request(call.method, call.params, timeout=PATIENCE)
        if (job := Job.current.get(None) or next(iter(self.jobs), None)) is not None:
            return await job.ask(call)
        raise McpError(ErrorCode.INTERNAL_ERROR, "the client has no call that this could be about")

    def on_notification(self, method: str, params: JSONObject) -> None:
        if method == "notifications/message":
            logger = ".".join(filter(None, (self.prefix, params.get("logger"))))

            def log(side: ServerCall | mcp.Server) -> bool:
                return side.log(params["level"], params["data"], logger=logger)

            if (old := self.gateway.old_client) is not None:
                log(old)
            else:  # to one call, since the client is the same; rather to one that can send it now
                open_first = sorted(self.jobs, key=lambda job: job.is_between_rounds)
                any(job.report(log) for job in open_first)
        elif method.endswith("/list_changed") and (server := self.gateway.server) is not None:
            server.publish(CHANGES[method.split("/")[1]])

    async def request(self, job: Job, params: JSONObject) -> JSONObject | McpError:
        """The upstream's response to a call with other params."""
        call, quiet = job.call, None if job.call.revision in MODERN_REVISIONS else "debug"
        self.used.unpark_all()

        def on_progress(progress: float, total: float | None, message: str | None) -> None:
            job.report(lambda call: call.progress(progress, total=total, message=message))

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
        self.server: mcp.Server | None = None  # with the client
        self.old_client: mcp.Server | None = None  # if it can be told and asked at any time

    def meet(self, server: mcp.Server) -> None:
        self.server = server
        self.old_client = server if server.peer.revision in LEGACY_REVISIONS else None

    async def link(self, prefix: str, client: JSONObject) -> Link:
        """The process that was told the capabilities of this client, as far as they are passed
        on."""
        # Of changed roots no server is told.
        able: JSONObject = {k: {} if k == "roots" else client[k] for k in PASSED_ON if k in client}
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
        if call.method.endswith("/list"):
            return await self.page(call)
        params = {name: value for name, value in call.params.items() if name not in OURS}
        place: JSONObject = params.get("ref", params)  # where the name stands, or the URI
        member = "uri" if "uri" in place else "name"
        prefix, _, own = str(place[member]).partition(".")
        if prefix not in self.commands:
            raise McpError(ErrorCode.INVALID_PARAMS, f"there is no {place[member]!r} here")
        link = await self.link(prefix, call.capabilities)
        place[member] = self.cut.get(place[member], own)
        result = await self.work(call, link, params)
        if not isinstance(result, RequireInput):
            blocks: list[JSONObject] = [*result.get("content", ()), *result.get("contents", ())]
            blocks += [message["content"] for message in result.get("messages", ())]
            self.rename(prefix, [one for b in blocks if "uri" in (one := b.get("resource", b))])
        return result

    async def page(self, call: ServerCall) -> JSONObject:
        """A page of one upstream. Our cursor holds the upstream and its own cursor."""
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
            self.rename(prefixes[at], items := result[member])
            following = f"{at}:{result['nextCursor']}" if "nextCursor" in result else following
        return {member: items} | ({"nextCursor": following} if following else {})

    async def work(self, call: ServerCall, link: Link, params: JSONObject) -> Outcome:
        """One round of a call: until the upstream answers, or asks."""
        job = Job(call) if (state := call.state) is None else self.parked.pop(state, None)
        if job is None:
            raise McpError(ErrorCode.INVALID_PARAMS, "nobody waits for this state")
        if state is None:
            self.nursery.start_soon(job.run, link, params)
        job.begin_round(call)
        for key in job.questions.keys() & call.input_responses.keys():
            job.questions.pop(key)[1].send_nowait(call.input_responses[key])
        try:
            while not job.questions and job.outcome is None:  # what is open is asked again
                await job.news.park()
        except trio.Cancelled:
            job.scope.cancel()
            raise
        if isinstance(job.outcome, McpError):
            raise job.outcome
        if job.outcome is not None:
            return job.outcome
        self.parked = {key: job for key, job in self.parked.items() if job.outcome is None}
        self.parked[state := secrets.token_urlsafe()] = job
        job.is_between_rounds = True
        return RequireInput({key: one for key, (one, _) in job.questions.items()}, state=state)


# -- run
async def main(path: str) -> None:
    async with trio.open_nursery() as nursery:
        gateway = Gateway(json.loads(Path(path).read_text("utf-8")), nursery)
        able: JSONObject = {}
        for prefix in gateway.commands:
            found = (await gateway.link(prefix, {})).client.peer.capabilities
            able |= {name: OFFERED[name] for name in found if name in OFFERED}
        await mcp.serve_stdio(gateway.handle, info=INFO, capabilities=able, on_ready=gateway.meet)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
