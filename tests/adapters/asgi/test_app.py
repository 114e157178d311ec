"""`sansmcp_io.asgi` driven by hand, with ASGI messages in every order that servers send."""

import asyncio
import gc
import json
import logging
from functools import partial
from typing import Any

import pytest
import trio
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware

from sansmcp import (
    ALL_REVISIONS,
    Config,
    JSONObject,
    LocalProtocolError,
    ResourcesListChanged,
    ToolsListChanged,
)
from sansmcp.http import OldPaths, ServerSentEvent, SSEDecoder
from sansmcp_io import McpError, RequestTimeout, Unauthorized
from sansmcp_io.asgi import RequireInput, Scope, Server, ServerCall
from tests.support.http.asgi import Request, Session, new_app, on_asyncio, post, post_modern, until
from tests.support.http.server_endpoint import (
    GET,
    LEGACY,
    POST,
    modern_headers,
    modern_tool_call,
    progressing,
    sessions,
    tool_call,
)
from tests.support.modern import modern
from tests.support.wire import CLIENT_CAPABILITIES, call, initialize, note

TEXT: JSONObject = {"content": [{"type": "text", "text": "hi"}]}


def plain(call: ServerCall) -> JSONObject:
    return TEXT


class Slow:
    """A handler that waits until the test releases it."""

    def __init__(self) -> None:
        self.began = 0
        self.cancelled = 0
        self.go = asyncio.Event()

    def has_begun(self, times: int) -> bool:
        return self.began == times

    async def __call__(self, call: ServerCall) -> JSONObject:
        self.began += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return TEXT


# ------------------------------------------------------------------------------------- mounting


def test_application_needs_no_lifespan_and_no_loop_of_its_own() -> None:
    """A mounted application gets no lifespan, and test clients run each request in a new loop: the
    sessions of the application must outlive these loops.
    """
    app = new_app(plain, keep_alive=0.01)
    found: list[Session] = []

    async def begin() -> None:
        found.append(await Session.open(app))

    async def go_on() -> None:
        response = await found[0].post(tool_call()).ended()
        assert response.json["result"] == TEXT
        stream = await found[0].get().begun()
        await until(lambda: b": " in stream.body or b":\n" in stream.body)  # timers run here, too
        stream.disconnect()
        await stream.ended()

    for main in (begin, go_on, go_on):
        asyncio.run(asyncio.wait_for(main(), 20))
    assert len(app.sessions) == 1


def test_loop_that_was_closed_under_it_takes_along_what_ran_there_and_nothing_else() -> None:
    """Handlers that ran in a closed loop would keep their requests open for ever, and their
    cancellation would raise "the loop is closed".
    """
    slow = Slow()
    app = new_app(slow)

    async def begin() -> None:
        client = await Session.open(app)
        working = client.post(tool_call())
        await until(lambda: slow.began)
        working.disconnect()
        await working.ended()

    async def go_on() -> None:
        slow.go = asyncio.Event()
        slow.go.set()
        client = await Session.open(app)
        assert len(app.sessions) == 1
        assert (await client.post(tool_call()).ended()).json["result"] == TEXT

    loop = asyncio.new_event_loop()
    loop.run_until_complete(begin())
    loop.close()
    assert len(app.open_requests) == 1
    asyncio.run(go_on())
    assert not app.open_requests
    gc.collect()  # asyncio complains of the task that was left behind: here, and in no other test


@pytest.mark.parametrize("end", ["lifespan", "broken off"])
def test_application_in_another_loop_has_the_settings_that_it_was_made_with(end: str) -> None:
    """The second endpoint was made from settings that the caller had changed since, and from an
    iterator that was exhausted.
    """
    info: JSONObject = {"name": "one", "version": "1", "icons": [{"src": "https://a.example/i"}]}
    capabilities: JSONObject = {"tools": {}, "experimental": {"x": {"y": [1]}}}
    revisions = list(ALL_REVISIONS)
    slow = Slow()
    app = new_app(
        slow,
        info=info,
        capabilities=capabilities,
        revisions=revisions,
        hosts=(name for name in ["api.example"]),
        origins=(name for name in ["https://page.example"]),
    )
    fields = {"host": "api.example", "origin": "https://page.example"}
    opened: list[tuple[int, Any, str | None]] = []

    async def open_one() -> None:
        response = await post(app, initialize(1, LEGACY), fields).ended()
        allowed = response.headers.get("access-control-allow-origin")
        opened.append((response.status, response.json, allowed))

    async def with_lifespan() -> None:
        async with app.lifespan():
            await open_one()

    async def broken_off() -> None:
        await open_one()
        if len(opened) == 2:
            return
        client = await Session.open(app)
        working = client.post(tool_call())
        await until(lambda: slow.began)
        working.disconnect()
        await working.ended()

    for still_open in (1, 0):
        if end == "lifespan":
            asyncio.run(with_lifespan())
        else:
            loop = asyncio.new_event_loop()
            loop.run_until_complete(broken_off())
            loop.close()
            assert len(app.open_requests) == still_open
        info["name"] = info["icons"][0]["src"] = "changed"
        capabilities["experimental"]["x"]["y"].append(2)
        capabilities["tools"] = {"listChanged": True}
        revisions.clear()
    first, second = opened
    assert first == second
    status, message, allowed = first
    assert (status, allowed) == (200, "https://page.example")
    assert message["result"]["serverInfo"]["name"] == "one"
    slow.go = asyncio.Event()  # the other one holds the task that waits for it
    gc.collect()  # asyncio complains of the task that was left behind: here, and in no other test


@on_asyncio
async def test_application_is_for_one_loop_at_a_time() -> None:
    """Two threads in the core at the same time would corrupt its tables."""
    app = new_app(plain)
    await post(app, tool_call(), {"mcp-protocol-version": LEGACY}).ended()

    def elsewhere() -> None:
        with pytest.raises(RuntimeError, match="event loop that still runs"):
            asyncio.run(app(http_scope(), nothing, nothing))

    await asyncio.to_thread(elsewhere)


@on_asyncio
async def test_server_does_not_start_where_the_application_cannot_be_used() -> None:
    """Servers go on without a lifespan that raises; each request would then fail."""
    app = new_app(plain)
    await post(app, tool_call(), {"mcp-protocol-version": LEGACY}).ended()
    said: list[Any] = []

    async def start() -> None:
        inbox: asyncio.Queue[Any] = asyncio.Queue()
        inbox.put_nowait({"type": "lifespan.startup"})
        sent: asyncio.Queue[Any] = asyncio.Queue()
        await app({"type": "lifespan"}, inbox.get, sent.put)
        said.append(sent.get_nowait())

    await asyncio.to_thread(lambda: asyncio.run(start()))
    (message,) = said
    assert message["type"] == "lifespan.startup.failed"
    assert "event loop that still runs" in message["message"]


@on_asyncio
async def test_handler_that_goes_on_when_cancelled_does_not_hold_up_the_end() -> None:
    """A server that never ends has to be killed, together with the calls that would have
    finished."""
    cancelled = 0

    async def handle(call: ServerCall) -> JSONObject:
        nonlocal cancelled
        while cancelled < 2:
            try:
                await asyncio.sleep(3600)  # for ever, but for the cancellation
            except asyncio.CancelledError:
                cancelled += 1
        return TEXT

    app = new_app(handle, drain=0.001)
    async with app.lifespan():
        request = post_modern(app, modern_tool_call())
        await until(lambda: app.open_requests)
    assert cancelled == 2
    await request.ended()


def http_scope() -> dict[str, Any]:
    return {"type": "http", "method": "GET", "path": "/mcp", "headers": []}


async def nothing(*_: object) -> Any:
    raise AssertionError("this is not to be called")


def test_loop_of_trio_is_refused_in_words() -> None:
    """hypercorn has workers on trio; the error must name the adapter to use instead."""
    with pytest.raises(RuntimeError, match="serve_http"):
        trio.run(new_app(plain), http_scope(), nothing, nothing)


@pytest.mark.parametrize("answers", ["auto", "sse"])
@pytest.mark.parametrize("is_async", [False, True])
@on_asyncio
async def test_what_a_handler_raises_for_the_program_reaches_the_server(
    answers: str, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception that ends the program must not leave the client without a response."""

    def handle(call: ServerCall) -> Any:
        if is_async:
            return later()
        raise SystemExit(3)

    async def later() -> JSONObject:
        await asyncio.sleep(0)
        raise KeyboardInterrupt

    async def catching(*about: Any) -> None:
        try:
            await app(*about)
        except (SystemExit, KeyboardInterrupt) as error:
            raised.append(type(error))

    raised: list[type] = []
    app = new_app(handle, answers=answers)
    response = await post_modern(catching, modern_tool_call()).ended()
    assert raised == [KeyboardInterrupt if is_async else SystemExit]
    (line,) = caplog.messages
    assert line.startswith(f"the handler of 'tools/call' raised {raised[0].__name__}(")
    answer = response.messages[-1] if answers == "sse" else response.json
    assert answer["error"] == {"code": -32603, "message": "internal error"}
    assert response.is_complete


@pytest.mark.parametrize("is_async", [False, True])
@on_asyncio
async def test_handler_that_raises_no_exception_has_failed(is_async: bool) -> None:
    """A `BaseException` from a library in a handler must not end the server."""

    def handle(call: ServerCall) -> Any:
        if is_async:
            return later()
        raise failures.pop()

    async def later() -> JSONObject:
        raise failures.pop()

    kinds = (GeneratorExit, asyncio.CancelledError, BaseException)
    failures: list[BaseException] = [kind() for kind in kinds]
    failures.append(BaseExceptionGroup("one", [GeneratorExit()]))
    app = new_app(handle)
    while failures:
        response = await post_modern(app, modern_tool_call()).ended()
        assert response.json["error"]["code"] == -32603


@on_asyncio
async def test_paths_are_counted_from_where_it_is_mounted() -> None:
    """An application must answer at its path below any mount point, and nowhere else."""
    app = new_app(plain, path="/tools", old_paths=OldPaths(stream="/a/sse", post="/a/post"))
    for root, path, is_found in (
        ("", "/tools", True),
        ("/a", "/a/tools", True),
        ("/a", "/tools", True),  # some servers take the prefix off
        ("/a/", "/a/tools", True),
        ("/a/", "/a//tools", True),  # as uvicorn puts them together
        ("/a", "/a/post", True),
        ("/a", "/a", False),
        ("", "/tools/", False),
    ):
        response = await post(app, tool_call(), root_path=root, path=path).ended()
        assert (b"nothing is served" not in response.body) is is_found


@on_asyncio
async def test_clients_of_the_first_revision_are_served_at_paths_of_their_own() -> None:
    """The address in the `endpoint` event must carry the session in its query, or a POSTed message
    would belong to no session.
    """
    app = new_app(
        plain,
        revisions=ALL_REVISIONS,
        path="/mcp",
        old_paths=OldPaths(stream="/a/sse", post="/a/messages"),
    )
    stream = await Request(app, "GET", GET, b"", root_path="/a", path="/a/sse").begun()
    await until(lambda: b"\n\n" in stream.body)
    (event,) = SSEDecoder().feed(stream.body)
    assert isinstance(event, ServerSentEvent)
    path, _, query = event.data.partition(b"?")
    assert path == b"/a/messages"
    opening = initialize("hello", "2024-11-05", CLIENT_CAPABILITIES)
    sending = post(app, opening, root_path="/a", path="/a/messages", query_string=query)
    assert (await sending.ended()).status == 202
    await until(lambda: b"serverInfo" in stream.body)
    stream.disconnect()
    await stream.ended()


@on_asyncio
async def test_other_protocols_than_http_are_refused() -> None:
    """An application that raises for a WebSocket makes the server close it; ignoring it would leave
    it open.
    """
    with pytest.raises(ValueError, match="websocket"):
        await new_app(plain)({"type": "websocket"}, nothing, nothing)


def test_path_without_slash_is_a_mistake() -> None:
    """No request could ever match such a path."""
    with pytest.raises(ValueError, match="begins with /"):
        new_app(plain, path="mcp")


@on_asyncio
async def test_middleware_may_change_the_response() -> None:
    """Middleware that adds headers or compresses the body must not break the responses."""

    async def handle(call: ServerCall) -> JSONObject:
        call.progress(1)
        return {"content": [{"type": "text", "text": "x" * 10_000}]}

    asking = modern_tool_call()
    asking["params"]["_meta"]["progressToken"] = 1
    page = "https://page.example"
    app = CORSMiddleware(GZipMiddleware(new_app(handle, origins=[page])), [page])
    for message in (modern_tool_call(), asking):
        fields = {**modern_headers(message), "accept-encoding": "gzip", "origin": page}
        response = await post(app, message, fields).ended()
        assert response.status == 200
        assert response.headers["access-control-allow-origin"] == page
        assert ("content-encoding" in response.headers) is (message is not asking)


# ------------------------------------------------------------------------------------- lifespan


class Lifespan:
    """The server's half of the lifespan protocol."""

    def __init__(self, app: Any) -> None:
        self.inbox: asyncio.Queue[Any] = asyncio.Queue()
        self.sent: asyncio.Queue[Any] = asyncio.Queue()
        self.task = asyncio.create_task(app({"type": "lifespan"}, self.inbox.get, self.sent.put))

    async def say(self, what: str) -> None:
        self.inbox.put_nowait({"type": f"lifespan.{what}"})
        assert await self.sent.get() == {"type": f"lifespan.{what}.complete"}


@on_asyncio
async def test_end_of_the_server_ends_what_is_under_way_and_lets_it_begin_again() -> None:
    """At shutdown clients must be told and handlers cancelled, and the next lifespan must have a
    server that serves.
    """
    slow = Slow()
    app = new_app(slow, drain=0.01)
    for round in range(1, 3):
        life = Lifespan(app)
        await life.say("startup")
        client = await Session.open(app)
        stream = await client.get().begun()
        working = client.post(tool_call())
        await until(partial(slow.has_begun, round))
        await life.say("shutdown")
        await life.task
        assert stream.is_complete
        assert working.is_complete
        assert slow.cancelled == round
        assert (await post(app, tool_call(), {}).ended()).status == 503
        assert app.sessions == ()


@on_asyncio
async def test_what_ends_in_time_is_answered_at_the_end_of_the_server() -> None:
    """A deployment must not cost the calls that are nearly finished."""
    slow = Slow()
    app = new_app(slow, drain=10)
    async with app.lifespan():
        working = post_modern(app, modern_tool_call())
        await until(lambda: slow.began)
        asyncio.get_running_loop().call_soon(slow.go.set)
    assert (await working.ended()).json["result"]["content"] == TEXT["content"]


@on_asyncio
async def test_client_that_reads_nothing_does_not_keep_the_server() -> None:
    """A response that the client does not read must not delay the shutdown for ever."""
    app = new_app(Slow(), drain=0.001)
    async with app.lifespan():
        client = await Session.open(app)
        stream = await client.get().begun()
        stream.reads.clear()
        app.publish(ToolsListChanged())
    assert not stream.task.done()
    stream.reads.set()
    await stream.ended()


@on_asyncio
async def test_application_can_be_closed_without_lifespan() -> None:
    """Servers wait for open streams before they send `lifespan.shutdown`, so the application must
    be able to end streams earlier.
    """
    app = new_app(plain)
    stream = await (await Session.open(app)).get().begun()
    app.close()
    assert (await stream.ended()).is_complete


# ---------------------------------------------------------------------------------------- bodies


@on_asyncio
async def test_body_may_come_in_pieces() -> None:
    """Servers cut a body anywhere and end it with an empty piece."""
    app = new_app(plain)
    message = modern_tool_call()
    body = json.dumps(message).encode()
    whole = await post_modern(app, message).ended()
    cut = Request(app, "POST", {**POST, **modern_headers(message)}, None)
    for piece in (body[:10], b"", body[10:]):
        cut.receive_body(piece, more=True)
    cut.receive_body(b"")
    assert (await cut.ended()).json == whole.json


@on_asyncio
async def test_client_that_goes_before_its_request_is_complete_causes_nothing() -> None:
    """An incomplete request must not be delivered; a response is sent only because middleware may
    raise without one.
    """
    called: list[str] = []

    def handle(call: ServerCall) -> JSONObject:
        called.append(call.method)
        return TEXT

    request = Request(new_app(handle), "POST", POST, None)
    request.receive_body(b'{"jsonrpc"', more=True)
    request.disconnect()
    await request.ended()
    assert [message.get("status") for message in request.sent] == [499, None]
    assert called == []


@on_asyncio
async def test_body_that_is_refused_is_not_read() -> None:
    """A body that the head or its length rules out must not be read, or it would use bandwidth and
    memory.
    """
    app = new_app(plain, config=Config(max_message_bytes=1024))
    elsewhere = Request(app, "POST", {"host": "evil.example"}, None)
    assert (await elsewhere.ended()).status == 403
    long = Request(app, "POST", {"content-type": "application/json"}, None)
    long.receive_body(b"x" * 1025, more=True)
    assert (await long.ended()).status == 413


@on_asyncio
async def test_short_body_is_read_before_it_is_refused_in_http_2() -> None:
    """hypercorn ends the connection with all its streams where a body comes after the response, so
    a short body is read first; a long one is not.
    """
    app = new_app(plain)
    for piece, more in ((b"{}", False), (b"x" * 65_536, True)):
        request = Request(app, "POST", {"host": "evil.example"}, None, http_version="2")
        request.receive_body(b"", more=True)
        await asyncio.sleep(0)
        assert request.sent == []
        request.receive_body(piece, more=more)
        assert (await request.ended()).status == 403


@on_asyncio
async def test_schema_that_cannot_be_had_is_an_error_of_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A schema lookup that fails must be answered with an error, or the client would wait for
    ever."""

    def tool_schema(name: str) -> JSONObject:
        raise ValueError(name)

    app = new_app(plain, tool_schema=tool_schema)
    response = await post_modern(app, modern_tool_call()).ended()
    assert response.status == 500
    assert [record.getMessage() for record in caplog.records] == ["tool_schema failed"]


@on_asyncio
async def test_question_without_a_session_is_explained_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The client is not told of the server's mistake, so the log has to name it, once."""

    async def by_call(call: ServerCall) -> JSONObject:
        return dict(await call.request("roots/list"))

    async def by_server(call: ServerCall) -> JSONObject:
        return dict(await call.server.request("roots/list"))

    for ask in (by_call, by_server):
        for settings, reason in (
            (True, "a handler returns RequireInput"),
            (False, "a server without sessions"),
        ):
            app = new_app(ask, sessions=settings)
            if not settings:
                request = post(app, tool_call(), {"mcp-protocol-version": LEGACY})
            else:
                request = post_modern(app, modern_tool_call())
            assert (await request.ended()).json["error"]["code"] == -32603
            (record,) = caplog.records
            assert record.getMessage() == "the handler of 'tools/call' failed"
            assert record.exc_info is not None
            error = record.exc_info[1]
            assert isinstance(error, LocalProtocolError)
            assert reason in str(error)
            caplog.clear()


@on_asyncio
async def test_notification_without_a_session_says_what_can_be_sent() -> None:
    """The error text advised clients of 2026-07-28 to open a session, which that revision does not
    have.
    """

    def notify(call: ServerCall) -> JSONObject:
        with pytest.raises(LocalProtocolError) as caught:
            call.server.notify("notifications/custom")
        return {"content": [{"type": "text", "text": str(caught.value)}]}

    app = new_app(notify, sessions=False)
    modern_request = post_modern(app, modern_tool_call())
    legacy_request = post(app, tool_call(), {"mcp-protocol-version": LEGACY})
    for request, reason in (
        (modern_request, "in revision 2026-07-28 a notification of the server belongs"),
        (legacy_request, "needs a session: without one"),
    ):
        result = (await request.ended()).json["result"]
        assert reason in result["content"][0]["text"]


# ------------------------------------------------------------------------------------ who it is


@on_asyncio
async def test_principal_is_found_in_the_scope() -> None:
    """Middleware stores the principal in the scope; the application must find it there, and
    handlers need the scope too.
    """
    seen: list[object] = []

    def handle(call: ServerCall) -> JSONObject:
        seen.append((call.principal, call.scope["user"], call.context))
        return TEXT

    def now(scope: Scope) -> object:
        return scope["user"]

    async def later(scope: Scope) -> object:
        return scope["user"]

    for authenticate in (now, later):
        app = new_app(handle, authenticate=authenticate, context="shared")
        await post_modern(app, modern_tool_call(), user="Ada").ended()
    assert seen == [("Ada", "Ada", "shared")] * 2


@on_asyncio
async def test_who_may_not_come_in_is_told_so(caplog: pytest.LogCaptureFixture) -> None:
    """A refused client must get the challenge, and no details of what failed on the server."""

    def authenticate(scope: Any) -> object:
        raise scope["failure"]

    app = new_app(plain, authenticate=authenticate)
    challenged = await post_modern(
        app, modern_tool_call(), failure=Unauthorized("Bearer", text="who are you?")
    ).ended()
    assert challenged.status == 401
    assert challenged.headers["www-authenticate"] == "Bearer"
    broken = await post_modern(app, modern_tool_call(), failure=ValueError("secret")).ended()
    assert broken.status == 500
    assert broken.json["error"] == {"code": -32603, "message": "internal error"}
    assert "authenticate failed" in caplog.text


# ------------------------------------------------------------------------------------ answering


@on_asyncio
async def test_progress_goes_out_while_the_handler_runs() -> None:
    """Progress must arrive while the handler still runs."""
    go_on = asyncio.Event()

    async def handle(call: ServerCall) -> JSONObject:
        call.progress(1)
        await go_on.wait()
        return TEXT

    request = await (await Session.open(new_app(handle))).post(progressing()).begun()
    await until(lambda: request.messages)
    assert not request.is_complete
    go_on.set()
    await request.ended()
    assert [message.get("method") for message in request.messages] == [
        "notifications/progress",
        None,
    ]
    assert request.is_complete


@on_asyncio
async def test_stream_begins_before_there_is_anything_to_be_sent() -> None:
    """A server may hold back the head until the first piece of the body, so a client would wait
    longer for the head of a stream than for others. Source: ASGI, HTTP and WebSocket, Response
    Start.
    """
    app = new_app(plain, keep_alive=None, sessions=sessions(event_log=None))
    stream = (await Session.open(app)).get()
    await until(lambda: len(stream.sent) == 2)
    assert stream.sent[1] == {"type": "http.response.body", "body": b"", "more_body": True}
    stream.disconnect()
    await stream.ended()


@on_asyncio
async def test_client_that_does_not_read_holds_up_nobody_else() -> None:
    """Output for a client that does not read must stay in the core, where it is counted, and the
    handler must be told.
    """
    told: list[bool] = []

    async def handle(call: ServerCall) -> JSONObject:
        told.append(call.progress(len(told) + 1, message="x" * 100))
        await asyncio.sleep(0)
        if len(told) < 100:
            return await handle(call)
        return TEXT

    app = new_app(handle, config=Config(soft_unsent_bytes=1000))
    client = await Session.open(app)
    request = client.post(progressing())
    request.reads.clear()
    await until(lambda: len(told) == 100)
    assert True in told
    assert False in told
    told.append(True)
    assert (await post_modern(app, modern_tool_call()).ended()).status == 200
    request.reads.set()
    await request.ended()
    assert request.messages[-1]["result"] == TEXT


@on_asyncio
async def test_room_that_is_made_on_one_response_lets_another_go_on() -> None:
    """Responses of one session share a bound, so room on one of them must wake the others."""
    app = new_app(plain, config=Config(soft_unsent_bytes=200))
    client = await Session.open(app)
    stream = await client.get().begun()
    stream.reads.clear()
    for _ in range(3):
        app.publish(ToolsListChanged())
        app.publish(ResourcesListChanged())
    stream.reads.set()
    methods = {"notifications/tools/list_changed", "notifications/resources/list_changed"}
    await until(lambda: methods <= {message["method"] for message in stream.messages})
    stream.disconnect()
    await stream.ended()


@on_asyncio
async def test_handlers_of_all_kinds_answer_what_they_raise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A failing call must be reported to its client as far as that is safe, and end nothing
    else."""
    kinds = {"mcp": McpError(-32001, "no luck"), "other": ValueError("secret")}

    def plainly(call: ServerCall) -> JSONObject:
        raise kinds[call.params["name"]]

    async def later(call: ServerCall) -> JSONObject:
        await asyncio.sleep(0)
        return plainly(call)

    async def give_up(call: ServerCall) -> JSONObject:
        raise asyncio.CancelledError

    for handler in (plainly, later):
        app = new_app(handler)
        for name, code in (("mcp", -32001), ("other", -32603)):
            response = await post_modern(app, modern_tool_call(name=name)).ended()
            assert response.json["error"]["code"] == code
            assert b"secret" not in response.body
    response = await post_modern(new_app(give_up), modern_tool_call()).ended()
    assert response.json["error"]["code"] == -32603


@on_asyncio
async def test_input_that_is_required_is_asked_for_in_both_eras() -> None:
    """One handler must serve both eras: it is called again when the answers have come."""

    async def handle(call: ServerCall) -> JSONObject | RequireInput:
        if not call.input_responses:
            return RequireInput({"where": {"method": "roots/list"}})
        return TEXT

    app = new_app(handle)
    params: JSONObject = {"name": "t", "arguments": {}}
    asked = await post_modern(app, modern(1, "tools/call", params)).ended()
    assert "inputRequests" in asked.json["result"]
    client = await Session.open(app)
    request = await client.post(tool_call()).begun()
    await until(lambda: request.messages)
    (question,) = request.messages
    await client.post({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}).ended()
    await request.ended()
    assert request.messages[-1]["result"] == TEXT


# --------------------------------------------------------------------------------- cancellation


@on_asyncio
async def test_client_that_leaves_cancels_its_call_and_nothing_else() -> None:
    """In 2026-07-28 a disconnect cancels the call; in earlier revisions the client may resume for
    the response.
    """
    slow = Slow()
    app = new_app(slow)
    client = await Session.open(app)
    older = client.post(tool_call())
    newer = post_modern(app, modern_tool_call())
    await until(lambda: slow.began == 2)
    for request in (older, newer):
        request.disconnect()
        await request.ended()
    await until(lambda: slow.cancelled == 1)
    assert len(app.open_requests) == 1
    slow.go.set()
    await until(lambda: not app.open_requests)
    assert slow.cancelled == 1


@on_asyncio
async def test_server_that_gives_up_a_request_cancels_its_call() -> None:
    """Servers cancel requests at shutdown; the handler must not be left running."""
    slow = Slow()
    app = new_app(slow)
    request = post_modern(app, modern_tool_call())
    await until(lambda: slow.began)
    request.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request.task
    await until(lambda: slow.cancelled)
    assert app.open_requests == ()


@on_asyncio
async def test_send_that_fails_says_that_the_client_is_gone() -> None:
    """A server may report a disconnect by an exception of `send`, which is no fault of the
    application.
    """
    slow = Slow()
    app = new_app(slow)
    failing = post_modern(app, modern_tool_call())
    failing.failure = OSError("gone")
    slow.go.set()
    await failing.ended()
    assert app.open_requests == ()

    slow.go.clear()
    losing = post_modern(app, modern_tool_call())
    await until(lambda: slow.began == 2)
    losing.disconnect(OSError("gone"))
    await losing.ended()
    await until(lambda: slow.cancelled)


@on_asyncio
async def test_receive_that_fails_ends_the_request(caplog: pytest.LogCaptureFixture) -> None:
    """If an exception of `receive` were ignored, the disconnect of the client would never be
    seen."""
    slow = Slow()
    app = new_app(slow)
    request = post_modern(app, modern_tool_call())
    await until(lambda: slow.began)
    request.disconnect(RuntimeError("unexpected message"))
    await request.ended()
    await until(lambda: slow.cancelled)
    assert "receiving from a client failed" in caplog.text


@on_asyncio
async def test_message_cancels_the_handler_of_a_session() -> None:
    """`notifications/cancelled` must cancel its handler, also before the handler has begun to
    run."""
    slow = Slow()
    client = await Session.open(new_app(slow))
    request = client.post(tool_call(1))
    await until(lambda: slow.began)
    await client.post(note("notifications/cancelled", {"requestId": 1})).ended()
    await request.ended()
    await until(lambda: slow.cancelled == 1)


# -------------------------------------------------------------------------------- asking, telling


@on_asyncio
async def test_question_within_a_call_ends_with_it() -> None:
    """A question must be withdrawn when its call times out or its handler ends, or the client would
    go on asking its user.
    """
    outcomes: list[object] = []

    async def handle(call: ServerCall) -> JSONObject:
        try:
            await call.request("roots/list", timeout=call.params["arguments"]["timeout"])
        except (RequestTimeout, asyncio.CancelledError) as error:
            outcomes.append(type(error))
            raise
        return TEXT

    client = await Session.open(new_app(handle))
    late = await client.post(tool_call(1, timeout=0.01)).ended()
    assert [message.get("method") for message in late.messages] == [
        "roots/list",
        "notifications/cancelled",
        None,
    ]
    asking = await client.post(tool_call(2, timeout=60)).begun()
    await until(lambda: asking.messages)
    await client.post(note("notifications/cancelled", {"requestId": 2})).ended()
    await asking.ended()
    await until(lambda: len(outcomes) == 2)
    assert outcomes == [RequestTimeout, asyncio.CancelledError]


@on_asyncio
async def test_server_asks_and_tells_the_client_of_a_session() -> None:
    """Messages that belong to no call must go out on the GET stream of the session."""
    servers: list[Server] = []
    notes: list[str] = []
    progress: list[float] = []
    ended = asyncio.Event()

    async def on_ready(server: Server) -> None:
        servers.append(server)
        try:
            await asyncio.sleep(3600)  # for ever, but for the cancellation
        finally:
            ended.set()

    async def on_notification(method: str, params: JSONObject) -> None:
        notes.append(method)

    app = new_app(plain, on_ready=on_ready, on_notification=on_notification)
    client = await Session.open(app)
    stream = await client.get().begun()
    (server,) = servers
    assert server.peer.revision == LEGACY
    assert server.subscriptions == ()
    assert server.publish(ToolsListChanged())
    await client.post(call(1, "logging/setLevel", {"level": "info"})).ended()
    assert server.log("info", "hello")
    server.notify("notifications/custom")

    def on_progress(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)

    asking = asyncio.create_task(server.request("roots/list", on_progress=on_progress))
    pinging = asyncio.create_task(server.ping())
    answered: set[object] = set()
    while not (asking.done() and pinging.done()):
        for message in stream.messages:
            if "id" in message and message["id"] not in answered:
                answered.add(message["id"])
                if message["method"] == "roots/list":
                    token = message["params"]["_meta"]["progressToken"]
                    params: JSONObject = {"progressToken": token, "progress": 1}
                    await client.post(note("notifications/progress", params)).ended()
                result: JSONObject = {} if message["method"] == "ping" else {"roots": []}
                await client.post({"jsonrpc": "2.0", "id": message["id"], "result": result}).ended()
        await asyncio.sleep(0)
    assert asking.result() == {"roots": []}
    assert pinging.result() >= 0
    assert progress == [1]
    await client.post(note("notifications/roots/list_changed")).ended()
    await until(lambda: notes)
    (session,) = app.sessions
    assert app.end_session(session)
    await ended.wait()
    await stream.ended()
    assert notes == ["notifications/roots/list_changed"]


@on_asyncio
async def test_what_needs_a_session_says_so() -> None:
    """Without a session the client cannot be asked or notified, and the error has to say so."""
    failures: list[str] = []

    async def handle(call: ServerCall) -> JSONObject:
        server = call.server
        assert server.subscriptions == ()
        assert not server.log("info", "hello")
        assert not call.close_stream()
        for ask in (server.ping, partial(server.request, "roots/list")):
            with pytest.raises(LocalProtocolError) as caught:
                await ask()
            failures.append(caught.value.rule)
        return TEXT

    await post_modern(new_app(handle), modern_tool_call()).ended()
    assert failures == ["STATE-006", "STATE-006"]


@on_asyncio
async def test_sessions_expire_though_nobody_comes() -> None:
    """An idle session must expire without a further request and without a thread."""
    app = new_app(plain, sessions=sessions(idle=0.01))
    opening = await post(app, initialize("hello", LEGACY, CLIENT_CAPABILITIES)).ended()
    assert "mcp-session-id" in opening.headers
    await until(lambda: not app.sessions)


@on_asyncio
async def test_notifications_that_come_too_fast_are_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A client must not fill the memory with notifications that are not handled yet; the newest are
    kept.
    """
    go = asyncio.Event()
    handled = 0

    async def on_notification(method: str, params: JSONObject) -> None:
        nonlocal handled
        await go.wait()
        handled += 1
        raise ValueError("harms nobody")

    app = new_app(plain, on_notification=on_notification)
    client = await Session.open(app)
    for _ in range(1105):
        await client.post(note("notifications/roots/list_changed")).ended()
    go.set()
    with caplog.at_level(logging.CRITICAL):
        await until(lambda: handled == 1100)
    assert caplog.text.count("some are dropped") == 1


@on_asyncio
async def test_notifications_that_take_too_much_memory_are_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Many notifications within the limit for one message must not fill the memory together."""
    go = asyncio.Event()
    handled: list[int] = []

    async def on_notification(method: str, params: JSONObject) -> None:
        await go.wait()
        handled.append(params["n"])

    app = new_app(plain, on_notification=on_notification)
    client = await Session.open(app)
    for number in range(18):
        params = {"n": number, "x": "x" * 15_000_000}
        assert (await client.post(note("notifications/x", params)).ended()).status == 202
    go.set()
    await until(lambda: len(handled) == 17)
    await client.post(note("notifications/x", {"n": 99})).ended()
    await until(lambda: len(handled) == 18)
    assert handled == [*range(17), 99]
    assert caplog.text.count("some are dropped") == 1


@on_asyncio
async def test_a_page_can_read_that_nothing_is_served_at_a_path() -> None:
    """The 404 of another path needs CORS headers, also for a preflight, or a page cannot read
    it."""
    page = "https://app.example"
    app = new_app(plain, path="/mcp", origins=["https://other.example", page])
    found = await post(app, tool_call(), {"origin": page}, path="/else").ended()
    assert (found.status, found.body) == (404, b"nothing is served at this path\n")
    assert found.headers["access-control-allow-origin"] == page
    fields = {"origin": page, "access-control-request-method": "POST"}
    asked = await Request(app, "OPTIONS", fields, b"", path="/else").ended()
    assert (asked.status, asked.body) == (204, b"")
    assert asked.headers["access-control-allow-origin"] == page


@on_asyncio
async def test_what_requests_hold_is_bounded() -> None:
    """The memory of unfinished bodies and slow calls is bounded: a further request is refused with
    503.
    """
    slow = Slow()
    app = new_app(slow, config=Config(max_held_bytes=300_000))
    first = post_modern(app, modern_tool_call(1, text="x" * 200_000))
    await until(lambda: slow.has_begun(1))
    refused = await post_modern(app, modern_tool_call(2, text="x" * 200_000)).ended()
    assert (refused.status, refused.headers["retry-after"]) == (503, "5")
    half = Request(app, "POST", POST, None)
    half.receive_body(b" " * 200_000, more=True)
    half.receive_body(b" ")  # and no more than this is read of it
    assert (await half.ended()).status == 503
    slow.go.set()
    assert (await first.ended()).status == 200
    assert (await post_modern(app, modern_tool_call(3, text="x" * 200_000)).ended()).status == 200
