"""`serve_http` on real sockets: the calls that handlers can make, and their callers."""

import json
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest

from sansmcp import JSONObject, LocalProtocolError, ResourceUpdated
from sansmcp_io.trio import (
    HTTPLimits,
    LogHandler,
    ServerCall,
    Unauthorized,
)
from tests.support.adapters import loops
from tests.support.adapters.loops import on_each_loop
from tests.support.http.h11_client import head, posted, posted_modern
from tests.support.http.on_loops import last, serving, talking
from tests.support.http.server_endpoint import modern_headers, modern_tool_call
from tests.support.http.tools import URI, handle, legacy_call, opened, said, text
from tests.support.modern import modern

# ----------------------------------------------------------------------------------- the handler


@on_each_loop()
async def test_one_handler_serves_clients_of_both_eras() -> None:
    """An application must not need one handler per era."""
    async with serving(handle) as server, talking(server) as talk:
        fields = await opened(talk)
        old = last(await talk.post(legacy_call("echo", text="a"), fields))
        new = await talk.call(modern_tool_call(2, "echo", text="b"))

        assert (said(old), said(new)) == ("a", "b")
        assert [session.id for session in server.sessions] == [fields["mcp-session-id"]]


@on_each_loop()
async def test_plain_handlers_are_run_at_once() -> None:
    """Plain functions must run without a task, which costs less."""

    def plain(call: ServerCall) -> JSONObject:
        if call.params["name"] == "fail":
            raise ValueError("no")
        return text("plain")

    async with serving(plain) as server, talking(server) as talk:
        assert said(await talk.call(modern_tool_call(1, "x"))) == "plain"
        answer = await talk.call(modern_tool_call(2, "fail"))
        assert answer["error"] == {"code": -32603, "message": "internal error"}


@on_each_loop()
async def test_handlers_have_a_context_of_their_own() -> None:
    """A context variable that one call sets must not be visible to the next call on the
    connection."""
    caller: ContextVar[str] = ContextVar("caller", default="nobody")

    def note(call: ServerCall) -> JSONObject:
        before = caller.get()
        caller.set("somebody")
        return text(before)

    async with serving(note) as server, talking(server) as talk:
        for number in (1, 2):
            answer = await talk.call(modern_tool_call(number, "x"))
            assert said(answer) == "nobody"


@on_each_loop()
async def test_what_cannot_be_read_is_neither_answered_nor_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An unreadable header may hold a credential with a typing error."""
    caplog.set_level("DEBUG")
    async with serving(handle) as server, talking(server) as talk:
        await talk.send(b"GET /mcp HTTP/1.1\r\nhost: x\r\nAuthorization : Bearer secret\r\n\r\n")
        response = await talk.receive()
    assert (response.status, response.body) == (400, b"illegal header line\n")
    assert "secret" not in caplog.text


@on_each_loop()
async def test_errors_of_handlers_are_answers() -> None:
    """An `McpError` that a handler raises must reach the client."""
    async with serving(handle) as server, talking(server) as talk:
        failed = await talk.call(modern_tool_call(1, "fail"))
        broken = await talk.call(modern_tool_call(2, "break"))

        assert failed["error"] == {"code": -32001, "message": "no luck", "data": {"why": "none"}}
        assert "secret" not in str(broken)


@on_each_loop()
async def test_progress_and_logs_are_streamed() -> None:
    """Progress and logs must come before the response, on its own stream."""
    message = modern_tool_call(1, "progress")
    message["params"]["_meta"]["progressToken"] = 7
    async with serving(handle) as server, talking(server) as talk:
        await talk.send(posted_modern(message))
        await talk.receive_head()
        methods = [message.get("method") for message in await talk.messages()]
        fields = await opened(talk)
        logged = await talk.post(legacy_call("log"), fields)

        assert methods == ["notifications/progress"] * 2 + [None]
        assert b"notifications/message" in logged.body
        assert said(last(logged)) == "True"


@on_each_loop()
async def test_a_client_is_asked_in_the_way_it_knows() -> None:
    """`RequireInput` must be sent in the form of the client's era."""
    answer: JSONObject = {"action": "accept", "content": {}}
    async with serving(handle) as server, talking(server) as talk, talking(server) as other:
        message = modern_tool_call(1, "ask")
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = {
            "elicitation": {}
        }
        asked = (await talk.call(message))["result"]
        assert asked["resultType"] == "input_required"
        message["params"]["inputResponses"] = {"q": answer}
        assert json.loads(said(await talk.call(message))) == {"q": answer}

        fields = await opened(talk)
        await talk.send(posted(legacy_call("ask"), fields))
        await talk.receive_head()
        question = await talk.message()
        assert question["method"] == "elicitation/create"
        reply = {"jsonrpc": "2.0", "id": question["id"], "result": answer}
        assert (await other.post(reply, fields)).status == 202
        assert json.loads(said(await talk.message())) == {"q": answer}


@on_each_loop()
async def test_a_handler_can_ask_while_its_call_is_open() -> None:
    """The question must go out on the stream of the call, and its progress arrives in another
    request.
    """
    async with serving(handle) as server, talking(server) as talk, talking(server) as other:
        fields = await opened(talk)
        await talk.send(posted(legacy_call("roots"), fields))
        await talk.receive_head()
        question = await talk.message()
        params = {"progressToken": question["params"]["_meta"]["progressToken"], "progress": 1}
        notice = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        await other.post(notice, fields)
        result = {"roots": [{"uri": "file:///a"}]}
        await other.post({"jsonrpc": "2.0", "id": question["id"], "result": result}, fields)
        assert json.loads(said(await talk.message())) == [[{"uri": "file:///a"}], [1]]


@on_each_loop()
async def test_a_client_that_goes_cancels_its_call() -> None:
    """In 2026-07-28 a disconnect is the cancellation, and the handler must not work on."""
    cancelled = loops.new_event()
    begun = loops.new_event()

    async def wait(call: ServerCall) -> JSONObject:
        begun.set()
        try:
            await loops.sleep_forever()
        finally:
            cancelled.set()
        return {}

    async with serving(wait) as server:
        async with talking(server) as talk:
            await talk.send(posted_modern(modern_tool_call(1, "x")))
            await begun.wait()
        await cancelled.wait()


@on_each_loop()
async def test_a_legacy_client_may_go_and_come_back() -> None:
    """The call must go on after a disconnect, and its messages must be kept for the client that
    resumes.
    """
    async with serving(handle, answers="sse") as server:
        async with talking(server) as talk:
            fields = await opened(talk)
            await talk.send(posted(legacy_call("slow", seconds=0.05), fields))
            await talk.receive_head()
            first = await talk.event()
            assert first.data == b""  # there to be come back to
        async with talking(server) as talk:
            again = {**fields, "accept": "text/event-stream", "last-event-id": first.id}
            await talk.send(head("GET", "/mcp", again))
            assert (await talk.receive_head("GET")).status == 200
            assert said((await talk.messages())[-1]) == "slept"


@on_each_loop()
async def test_a_handler_lets_its_client_go() -> None:
    """A long call must be able to end its stream and continue without a connection (SEP-1699)."""

    async def leave(call: ServerCall) -> JSONObject:
        assert call.close_stream(retry_ms=10)
        return text("later")

    async with serving(leave) as server, talking(server) as talk:
        fields = await opened(talk)
        response = await talk.post(legacy_call("x"), fields)
        assert b"retry: 10" in response.body
        id = response.body.partition(b"id: ")[2].splitlines()[0].decode()
        again = {**fields, "accept": "text/event-stream", "last-event-id": id}
        await talk.send(head("GET", "/mcp", again))
        assert said(last(await talk.receive("GET"))) == "later"


@on_each_loop()
async def test_changes_reach_those_who_have_subscribed() -> None:
    """Changes must reach the subscribers of both eras, from whichever task they are published."""
    listen = modern(9, "subscriptions/listen", {"notifications": {"resourceSubscriptions": [URI]}})
    async with (
        serving(handle) as server,
        talking(server) as talk,
        talking(server) as old,
        talking(server) as new,
    ):
        fields = await opened(talk)
        subscribe = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe"}
        await talk.post({**subscribe, "params": {"uri": URI}}, fields)
        await old.send(head("GET", "/mcp", {**fields, "accept": "text/event-stream"}))
        await old.receive_head("GET")
        await new.send(posted_modern(listen))
        await new.receive_head()
        assert "acknowledged" in (await new.message())["method"]

        assert said(await talk.call(modern_tool_call(2, "publish"))) == "True"
        for stream in (new, old):
            assert (await stream.message())["method"] == "notifications/resources/updated"
        assert server.publish(ResourceUpdated(URI))
        assert (await new.message())["method"] == "notifications/resources/updated"


@on_each_loop()
async def test_a_server_can_speak_to_a_session() -> None:
    """Messages outside of calls must go to the GET stream of the session that the call belongs
    to."""
    ready = loops.new_event()
    servers: list[Any] = []

    async def keep(call: ServerCall) -> JSONObject:
        await call.server.wait_ready()
        servers.append(call.server)
        ready.set()
        return text(str(call.server.subscriptions))

    async with serving(keep) as server, talking(server) as talk, talking(server) as stream:
        fields = await opened(talk)
        await stream.send(head("GET", "/mcp", {**fields, "accept": "text/event-stream"}))
        await stream.receive_head("GET")
        assert said(last(await talk.post(legacy_call("x"), fields))) == "()"
        (session,) = servers

        assert session.log("error", "hello")
        assert (await stream.message())["params"]["data"] == "hello"
        session.notify("notifications/tools/list_changed")
        assert (await stream.message())["method"] == "notifications/tools/list_changed"
        results: list[Any] = []

        async def ask() -> None:
            results.append(await session.request("roots/list"))
            results.append(await session.ping())

        async with loops.open_nursery() as nursery:
            nursery.start_soon(ask)
            results_of_client: list[JSONObject] = [{"roots": []}, {}]
            for result in results_of_client:
                asked = await stream.message()
                await talk.post({"jsonrpc": "2.0", "id": asked["id"], "result": result}, fields)
        assert results[0] == {"roots": []}
        assert results[1] >= 0
        assert LogHandler(session).level == 0
        assert server.end_session(server.sessions[0])
        assert server.sessions == ()


@on_each_loop()
async def test_without_a_session_there_is_nobody_to_speak_to() -> None:
    """A client of 2026-07-28 has no stream outside of its own requests, so such messages must be
    refused.
    """
    seen: list[Any] = []

    async def speak(call: ServerCall) -> JSONObject:
        seen.append(call.server.subscriptions)
        seen.append(call.server.log("error", "hello"))
        seen.append(call.close_stream())
        attempts: list[Callable[[], Any]] = [
            partial(call.server.notify, "notifications/x"),
            partial(call.server.request, "roots/list"),
            call.server.ping,
            partial(call.request, "roots/list"),
        ]
        for attempt in attempts:
            try:
                await attempt()
            except LocalProtocolError as error:
                seen.append(error.rule)
        return {"content": []}

    async with serving(speak) as server, talking(server) as talk:
        await talk.call(modern_tool_call(1, "x"))

    assert seen[:3] == [(), False, False]
    assert len(seen) == 7


@on_each_loop()
async def test_notifications_come_to_their_handler() -> None:
    """A notification such as `roots/list_changed` must reach the handler of the server."""
    heard: list[str] = []

    def listen(method: str, params: JSONObject) -> None:
        heard.append(method)

    async with serving(handle, on_notification=listen) as server, talking(server) as talk:
        fields = await opened(talk)
        notice = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
        assert (await talk.post(notice, fields)).status == 202

    assert "notifications/roots/list_changed" in heard


# ------------------------------------------------------------------------------------- who calls


@on_each_loop()
async def test_it_may_take_long_to_find_out_who_calls() -> None:
    """Authentication may take longer than the time that is left for the head, which is complete by
    then.
    """

    async def check(headers: Mapping[str, str]) -> str:
        await loops.sleep(0.5)  # a token that is looked up elsewhere; the limit is below
        return "ann"

    limits = HTTPLimits(head=0.3)
    async with (
        serving(handle, authenticate=check, limits=limits) as server,
        talking(server) as talk,
    ):
        answer = await talk.call(modern_tool_call(1, "who"))
        assert said(answer).startswith("ann")


@pytest.mark.parametrize("is_async", [False, True])
@on_each_loop()
async def test_callers_are_authenticated(is_async: bool) -> None:
    """A handler must know its caller, and an unknown caller must get the challenge."""

    def check(headers: Mapping[str, str]) -> str:
        match headers.get("authorization"):
            case "Bearer ann" | "Bearer bob" as token:
                return token[7:]
            case "Bearer eve":
                raise Unauthorized('Bearer error="insufficient_scope"', status=403, text="not you")
            case "Bearer crash":
                raise RuntimeError("secret")
            case _:
                raise Unauthorized('Bearer realm="mcp"')

    async def check_slowly(headers: Mapping[str, str]) -> str:
        await loops.checkpoint()
        return check(headers)

    check_all = check_slowly if is_async else check
    async with (
        serving(handle, authenticate=check_all, context="here") as server,
        talking(server) as talk,
    ):
        message = modern_tool_call(1, "who")

        async def call_as(token: str | None) -> Any:
            fields = {} if token is None else {"authorization": f"Bearer {token}"}
            await talk.send(posted(message, {**modern_headers(message), **fields}))
            return await talk.receive()

        nobody, eve, crash, ann = [await call_as(name) for name in (None, "eve", "crash", "ann")]
        assert (nobody.status, eve.status, crash.status, ann.status) == (401, 403, 500, 200)
        assert nobody.headers["www-authenticate"] == 'Bearer realm="mcp"'
        assert "insufficient_scope" in eve.headers["www-authenticate"]
        internal_error = {"code": -32603, "message": "internal error"}
        assert json.loads(crash.body)["error"] == internal_error
        assert said(last(ann)).startswith("ann here")

        fields = await opened(talk, {"authorization": "Bearer ann"})
        as_bob = {**fields, "authorization": "Bearer bob"}
        assert (await talk.post(legacy_call("echo"), as_bob)).status == 404
        assert (await talk.post(legacy_call("echo"), fields)).status == 200
