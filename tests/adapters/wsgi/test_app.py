"""`sansmcp_io.wsgi` driven by hand as a WSGI server would, with real threads."""

import io
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from sansmcp import Config, JSONObject, LocalProtocolError, ToolsListChanged
from sansmcp.http import ServerSentEvent, SSEDecoder
from sansmcp_io import McpError, RequestTimeout, Unauthorized
from sansmcp_io.wsgi import App, CallCancelled, Environ, RequireInput, Server, ServerCall
from tests.support.http.server_endpoint import (
    GET,
    LEGACY,
    NO_FIELDS,
    POST,
    modern_headers,
    modern_tool_call,
    progressing,
    sessions,
    tool_call,
)
from tests.support.modern import BOTH, modern
from tests.support.wire import (
    CLIENT_CAPABILITIES,
    INITIALIZED,
    SERVER_CAPABILITIES,
    SERVER_INFO,
    call,
    initialize,
    note,
)

TEXT: Final[JSONObject] = {"content": [{"type": "text", "text": "hi"}]}
STAMP: Final = "2025-11-25T00:00:00Z"
TASK: Final = {
    **{"taskId": "1", "status": "working", "ttl": 1000},
    **{"createdAt": STAMP, "lastUpdatedAt": STAMP},
}
TASKS: Final[JSONObject] = {
    "sampling": {},
    "tasks": {"requests": {"sampling": {"createMessage": {}}}},
}
SECONDS: Final = 20


def plain(call: ServerCall) -> JSONObject:
    return TEXT


def new_app(handler: Callable[[ServerCall], Any] = plain, **settings: Any) -> App:
    settings = {
        "info": SERVER_INFO,
        "capabilities": SERVER_CAPABILITIES,
        "revisions": BOTH,
        **settings,
    }
    return App(handler, **settings)


class Response:
    """The response of an application, read in one thread or while another thread writes it."""

    def __init__(self, app: App, environ: Environ, *, can_write: bool = True) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.writes = 0
        self.is_over = False
        self.failure: Exception | None = None  # what writing raises
        self._can_write = can_write
        self._app = app
        self._environ = environ
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        pieces = self._app(self._environ, self._start)
        self.body += b"".join(pieces)
        self.is_over = True

    def _start(self, status: str, headers: list[tuple[str, str]]) -> Callable[[bytes], None] | None:
        self.status = int(status[:3])
        self.headers = {name.lower(): value for name, value in headers}
        return self._write if self._can_write else None

    def _write(self, data: bytes) -> None:
        if self.failure is not None:
            raise self.failure
        self.writes += 1
        self.body += data

    def ended(self) -> "Response":
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "a thread waits for ever"
        return self

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def messages(self) -> list[Any]:
        items = SSEDecoder().feed(self.body)
        return [json.loads(i.data) for i in items if isinstance(i, ServerSentEvent) and i.data]


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition that another thread makes true."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.001)  # threads tell nobody


def is_working(app: App) -> bool:
    return bool(app.open_requests)


def request(
    app: App, method: str, fields: Mapping[str, str], body: bytes = b"", **environ: Any
) -> Response:
    can_write = environ.pop("can_write", True)
    variables = {
        "HTTP_" + name.upper().replace("-", "_"): value
        for name, value in {"host": "localhost", **fields}.items()
    }
    variables["CONTENT_TYPE"] = variables.pop("HTTP_CONTENT_TYPE", "")
    return Response(
        app,
        {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": "/mcp",
            "QUERY_STRING": "",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": io.BytesIO(body),
            **variables,
            **environ,
        },
        can_write=can_write,
    )


def post(
    app: App, message: object, more: Mapping[str, str] = NO_FIELDS, **environ: Any
) -> Response:
    return request(app, "POST", {**POST, **more}, json.dumps(message).encode(), **environ)


def post_modern(app: App, message: JSONObject, **environ: Any) -> Response:
    return post(app, message, modern_headers(message), **environ)


def modern_progressing() -> JSONObject:
    """A call with a progress token."""
    message = modern_tool_call()
    message["params"]["_meta"]["progressToken"] = 1
    return message


class Session:
    """A client that has done the handshake."""

    def __init__(self, app: App, capabilities: JSONObject = CLIENT_CAPABILITIES) -> None:
        self._app = app
        opening = post(app, initialize("hello", LEGACY, capabilities)).ended()
        self._fields = {
            "mcp-session-id": opening.headers["mcp-session-id"],
            "mcp-protocol-version": LEGACY,
        }
        assert self.post(INITIALIZED).ended().status == 202

    def post(self, message: object) -> Response:
        return post(self._app, message, self._fields)

    def answer(self, question: JSONObject, result: JSONObject) -> None:
        reply = {"jsonrpc": "2.0", "id": question["id"], "result": result}
        assert self.post(reply).ended().status == 202

    def has_open(self, id: int) -> bool:
        """Whether a request of this client is being handled."""
        return any(one.id == id for one in self._app.open_requests)

    def get(self) -> Response:
        return request(self._app, "GET", {**GET, **self._fields})


def with_sessions(handler: Callable[[ServerCall], Any] = plain, **settings: Any) -> App:
    return new_app(handler, sessions=True, streams=True, **settings)


# ------------------------------------------------------------------------------------- settings


def test_async_functions_are_refused_in_words(caplog: pytest.LogCaptureFixture) -> None:
    """An async function would never be awaited, so it must be refused when it is given or when it
    is called.
    """

    async def handle(call: ServerCall) -> JSONObject:
        raise AssertionError("this is not to be called")

    for settings in ({"authenticate": handle}, {"on_notification": handle}):
        with pytest.raises(TypeError, match=r"sansmcp_io\.asgi"):
            new_app(**settings)
    with pytest.raises(TypeError, match="is async"):
        new_app(handle)

    class Awaitable:
        def __await__(self) -> Any:
            raise AssertionError("this is not to be called")

    def coroutine(call: ServerCall) -> object:
        return handle(call)

    def awaitable(call: ServerCall) -> object:
        return Awaitable()

    for hidden in (coroutine, awaitable):
        response = post_modern(new_app(hidden), modern_tool_call()).ended()
        assert response.json["error"]["code"] == -32603
        assert "handler is async" in caplog.text
        caplog.clear()
        response = post_modern(new_app(authenticate=hidden), modern_tool_call()).ended()
        assert response.status == 500  # and nobody is let in as whom it returns
        assert "authenticate is async" in caplog.text
        caplog.clear()

    def hidden_note(method: str, params: JSONObject) -> object:
        return Awaitable()

    client = Session(new_app(sessions=True, on_notification=hidden_note))
    client.post(note("notifications/roots/list_changed")).ended()
    assert "on_notification is async" in caplog.text


def test_path_without_slash_is_a_mistake() -> None:
    """No request could ever match such a path."""
    with pytest.raises(ValueError, match="begins with /"):
        new_app(path="mcp")


def test_path_is_counted_from_where_it_is_mounted() -> None:
    """An application must answer at its path below any mount point, and nowhere else."""
    app = new_app(path="/tools")
    for script, path, is_found in (
        ("", "/tools", True),
        ("/a", "/tools", True),
        ("", "/a/tools", False),
        ("/tools", "", False),
    ):
        environ = {"SCRIPT_NAME": script, "PATH_INFO": path}
        response = post_modern(app, modern_tool_call(), **environ).ended()
        assert (response.status == 200) is is_found
    assert post_modern(new_app(), modern_tool_call(), QUERY_STRING="a=b").ended().status == 200


# --------------------------------------------------------------------------------------- bodies


def test_body_ends_where_its_server_says() -> None:
    """A body ends by its length, or with chunks at the end of the input."""
    message = modern_tool_call()
    body = json.dumps(message).encode()
    for about, status in (
        ({"CONTENT_LENGTH": str(len(body))}, 200),
        ({"CONTENT_LENGTH": "", "wsgi.input_terminated": True}, 200),
        ({"CONTENT_LENGTH": ""}, 400),
        ({"CONTENT_LENGTH": str(len(body) + 1)}, 400),
    ):
        environ: dict[str, Any] = {**about, "wsgi.input": io.BytesIO(body)}
        response = post_modern(new_app(), message, **environ).ended()
        assert response.status == status


def test_body_that_is_refused_is_not_read() -> None:
    """A body that the head or its length rules out must not be read."""
    app = new_app(config=Config(max_message_bytes=1024))
    assert request(app, "POST", {"host": "evil.example"}, b"{}").ended().status == 403
    assert request(app, "POST", POST, b"x" * 1_000_000).ended().status == 413


def test_schema_that_cannot_be_had_is_an_error_of_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A schema lookup that fails must be answered with an error."""

    def tool_schema(name: str) -> JSONObject:
        raise ValueError(name)

    response = post_modern(new_app(tool_schema=tool_schema), modern_tool_call()).ended()
    assert response.status == 500
    assert [record.getMessage() for record in caplog.records] == ["tool_schema failed"]


# ------------------------------------------------------------------------------------ who it is


def test_principal_is_found_in_the_environment(caplog: pytest.LogCaptureFixture) -> None:
    """Middleware stores the principal in the environ; an unknown caller must get the challenge."""
    seen: list[object] = []

    def handle(call: ServerCall) -> JSONObject:
        seen.append((call.principal, call.environ["REMOTE_USER"], call.context))
        return TEXT

    def authenticate(environ: Environ) -> object:
        if isinstance(environ["REMOTE_USER"], Exception):
            raise environ["REMOTE_USER"]
        return environ["REMOTE_USER"]

    app = new_app(handle, authenticate=authenticate, context="shared")
    assert post_modern(app, modern_tool_call(), REMOTE_USER="Ada").ended().status == 200
    assert seen == [("Ada", "Ada", "shared")]
    challenged = post_modern(app, modern_tool_call(), REMOTE_USER=Unauthorized("Bearer")).ended()
    assert (challenged.status, challenged.headers["www-authenticate"]) == (401, "Bearer")
    broken = post_modern(app, modern_tool_call(), REMOTE_USER=ValueError("secret")).ended()
    assert broken.status == 500
    assert broken.json["error"] == {"code": -32603, "message": "internal error"}
    assert "authenticate failed" in caplog.text


# ------------------------------------------------------------------------------------- answering


def test_handlers_run_beside_each_other() -> None:
    """The lock protects the core only: a slow handler must not hold up other calls."""
    both = threading.Barrier(2)

    def handle(call: ServerCall) -> JSONObject:
        both.wait(SECONDS)
        return TEXT

    app = new_app(handle)
    for response in [post_modern(app, modern_tool_call()) for _ in range(2)]:
        assert response.ended().json["result"]["content"] == TEXT["content"]


def test_what_handlers_raise_is_told_as_far_as_it_may_be(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A failing call must get a response, and end nothing else."""
    for failure, code in ((McpError(-32001, "no luck"), -32001), (ValueError("secret"), -32603)):

        def handle(call: ServerCall, failure: Exception = failure) -> JSONObject:
            raise failure

        response = post_modern(new_app(handle), modern_tool_call()).ended()
        assert response.json["error"]["code"] == code
        assert b"secret" not in response.body


def test_handler_that_ends_the_worker_answers_first(caplog: pytest.LogCaptureFixture) -> None:
    """Servers raise `SystemExit` in a slow worker, and the request must still get a response."""

    def handle(call: ServerCall) -> JSONObject:
        raise SystemExit(1)

    app = new_app(handle)
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/mcp",
        "HTTP_HOST": "localhost",
        "CONTENT_TYPE": "application/json",
        "HTTP_MCP_PROTOCOL_VERSION": LEGACY,
        "CONTENT_LENGTH": "200",
        "wsgi.input": io.BytesIO(json.dumps(tool_call()).encode().ljust(200)),
    }
    written: list[bytes] = []
    with pytest.raises(SystemExit):
        app(environ, lambda *_: written.append)
    assert app.open_requests == ()
    assert json.loads(b"".join(written))["error"]["code"] == -32603
    (line,) = caplog.messages
    assert "the handler of 'tools/call' raised SystemExit(1)" in line


def test_progress_is_written_while_the_handler_runs() -> None:
    """Progress must arrive while the handler still runs."""
    go = threading.Event()

    def handle(call: ServerCall) -> JSONObject:
        assert call.progress(1)
        assert call.log("warning", "hello")
        helper = threading.Thread(target=call.progress, args=(2,))  # which does not write
        helper.start()
        helper.join(SECONDS)
        go.wait(SECONDS)
        return TEXT

    app = with_sessions(handle)
    client = Session(app)
    response = client.post(progressing())
    until(lambda: len(response.messages) == 2)
    assert not response.is_over
    go.set()
    response.ended()
    assert len(response.messages) == 4


def test_server_that_cannot_write_has_all_of_a_stream_in_the_end() -> None:
    """Some WSGI servers have no `write`: the whole stream must then be returned at the end."""

    def handle(call: ServerCall) -> JSONObject:
        assert call.progress(1)
        return TEXT

    response = post_modern(new_app(handle), modern_progressing(), can_write=False).ended()
    assert response.writes == 0
    assert len(response.messages) == 2


def test_input_that_is_required_is_asked_for_in_both_eras() -> None:
    """One handler must serve both eras: it is called again when the answers have come."""

    def handle(call: ServerCall) -> JSONObject | RequireInput:
        if not call.input_responses:
            return RequireInput({"where": {"method": "roots/list"}}, state="s")
        return {**TEXT, "_meta": {"state": call.state}}

    app = with_sessions(handle)
    asked = post_modern(app, modern(1, "tools/call", {"name": "t", "arguments": {}})).ended()
    assert "inputRequests" in asked.json["result"]
    client = Session(app)
    response = client.post(tool_call())
    until(lambda: response.messages)
    client.answer(response.messages[0], {"roots": []})
    assert response.ended().messages[-1]["result"]["_meta"] == {"state": "s"}


def test_streams_that_last_are_for_servers_that_have_threads_for_them() -> None:
    """Without `streams`, GET and subscriptions must be refused, also in a session."""
    app = new_app(sessions=True)
    client = Session(app)
    refused = client.get().ended()
    assert (refused.status, refused.headers["allow"]) == (405, "POST, DELETE, OPTIONS")
    assert app.publish(ToolsListChanged()) is False
    listen = modern(1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    assert post_modern(app, listen).ended().json["error"]["code"] == -32601
    streaming = new_app(streams=True)
    response = post_modern(streaming, listen)
    until(lambda: response.messages)
    assert streaming.publish(ToolsListChanged())
    until(lambda: len(response.messages) == 2)
    streaming.close()
    response.ended()
    assert post_modern(streaming, modern_tool_call()).ended().status == 503


def test_what_ends_in_time_is_answered_when_all_is_closed() -> None:
    """A deployment must not cost the calls that are nearly finished, nor wait for the others for
    ever.
    """
    go = threading.Event()

    def handle(call: ServerCall) -> JSONObject:
        if call.params["name"] == "nearly done":
            go.wait(SECONDS)
        else:
            call.sleep(SECONDS)  # until it is cut short
        return TEXT

    for name, drain, status in (("nearly done", SECONDS, 200), ("slow", 0.01, 503)):
        app = new_app(handle)
        response = post_modern(app, modern_tool_call(name=name))
        until(partial(is_working, app))
        closing = threading.Thread(target=partial(app.close, drain=drain))
        closing.start()
        go.set()
        closing.join(SECONDS)
        assert response.ended().status == status
        assert post_modern(app, modern_tool_call()).ended().status == 503


def test_head_has_no_body() -> None:
    """A response to HEAD must have no body, whatever its status is."""
    response = request(new_app(), "HEAD", GET).ended()
    assert response.status >= 400
    assert response.body == b""


# -------------------------------------------------------------------------------- cancellation


def test_writing_to_a_client_that_is_gone_cancels_its_call() -> None:
    """A thread notices a disconnect only when it writes, so comments are written on the stream."""
    outcomes: list[str] = []

    def handle(call: ServerCall) -> JSONObject:
        call.progress(1)
        try:
            call.sleep(60)  # until it is cut short
        except CallCancelled:
            assert call.is_cancelled
            assert not call.progress(2)
            outcomes.append("cancelled")
            raise
        return TEXT

    app = new_app(handle, keep_alive=0.05)
    response = post_modern(app, modern_progressing())
    until(lambda: response.messages)
    response.failure = ValueError("each server has its own")
    response.ended()
    assert outcomes == ["cancelled"]
    assert app.open_requests == ()


def test_message_cancels_what_a_handler_asks_or_waits_for() -> None:
    """The cancellation comes in another request, and so in another thread."""
    cancelled: list[str] = []

    def handle(call: ServerCall) -> JSONObject:
        name = call.params["name"]
        try:
            if name == "ask":
                call.request("roots/list")
            call.sleep(60)  # until it is cut short
        except CallCancelled:
            cancelled.append(name)
            with pytest.raises(CallCancelled):
                call.request("roots/list")  # it is too late for any question
            raise
        return TEXT

    client = Session(with_sessions(handle))
    for id, name in enumerate(("ask", "sleep"), 1):
        response = client.post(tool_call(id, name))
        until(partial(client.has_open, id))
        client.post(note("notifications/cancelled", {"requestId": id})).ended()
        response.ended()
    assert cancelled == ["ask", "sleep"]


def test_sleep_ends_in_time() -> None:
    """`call.sleep` must end after its time, as `time.sleep` does."""

    def handle(call: ServerCall) -> JSONObject:
        call.sleep(0.001)  # what is tested
        return TEXT

    assert post_modern(new_app(handle), modern_tool_call()).ended().status == 200


# ------------------------------------------------------------------------------- asking, telling


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs the /proc of Linux")
def test_threads_that_wait_are_woken_by_their_own_news_alone() -> None:
    """With 1,000 open streams each message would wake 1,000 threads."""
    waiting: list[int] = []

    def handle(call: ServerCall) -> JSONObject:
        if call.params.get("name") == "wait":
            waiting.append(threading.get_native_id())
            call.sleep(60)  # until it is cut short
        return TEXT

    def switches() -> int:
        """The number of times that those threads have gone to sleep."""
        found = 0
        for thread in waiting:
            text = Path(f"/proc/self/task/{thread}/status").read_text()
            found += int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
        return found

    app = new_app(handle)
    responses = [post_modern(app, modern_tool_call(id, "wait")) for id in range(20)]
    until(lambda: len(waiting) == 20)
    before = switches()
    for id in range(100):
        assert post_modern(app, modern_tool_call(id)).ended().status == 200
    woken = switches() - before
    app.close(drain=0)
    for response in responses:
        response.ended()
    assert woken < 500, woken


def test_time_is_kept_for_all_by_one_that_waits() -> None:
    """The thread that keeps time may leave, and must learn of earlier deadlines."""
    told: list[str] = []
    begun = threading.Event()

    def handle(call: ServerCall) -> JSONObject:
        name = call.params["name"]
        if name == "first":
            begun.set()
            call.sleep(0.2)
        elif name == "last":
            begun.set()
            with pytest.raises(CallCancelled):
                call.sleep(60)  # until it is cut short
        else:
            with pytest.raises(RequestTimeout):
                call.request("roots/list", timeout=0.5 if name == "second" else 0.01)
        told.append(name)
        return TEXT

    app = with_sessions(handle)
    client = Session(app)
    begun_calls: list[Response] = []
    for names in (["first", "second"], ["last", "third"]):
        begun.clear()
        begun_calls.append(client.post(tool_call(names[0], names[0])))
        assert begun.wait(SECONDS)
        client.post(tool_call(names[1], names[1])).ended()
    app.close(drain=0)
    for response in begun_calls:
        response.ended()
    assert sorted(told) == ["first", "last", "second", "third"]


def test_server_asks_and_tells_the_client_of_a_session(caplog: pytest.LogCaptureFixture) -> None:
    """The answer comes in another thread, and progress before it must be handled first."""
    told: list[float] = []
    notes: list[str] = []

    def on_progress(done: float, total: float | None, message: str | None) -> None:
        told.append(done)

    def on_notification(method: str, params: JSONObject) -> None:
        notes.append(method)
        raise ValueError("harms nobody")

    servers: list[Server] = []

    def handle(call: ServerCall) -> JSONObject:
        servers.append(call.server)
        with pytest.raises(RequestTimeout):
            call.request("roots/list", timeout=0.001)
        return {**TEXT, "_meta": call.request("roots/list", on_progress=on_progress)}

    app = with_sessions(handle, on_notification=on_notification)
    client = Session(app)
    response = client.post(tool_call())
    until(lambda: len(response.messages) == 3)  # the first question is withdrawn
    question = response.messages[-1]
    params = {"progressToken": question["params"]["_meta"]["progressToken"], "progress": 1}
    client.post(note("notifications/progress", params)).ended()
    client.answer(question, {"roots": []})
    assert response.ended().messages[-1]["result"]["_meta"] == {"roots": []}
    assert told == [1]
    client.post(note("notifications/roots/list_changed")).ended()
    assert notes == ["notifications/roots/list_changed"]

    (server,) = servers
    assert server.peer.revision == LEGACY
    assert server.subscriptions == ()
    stream = client.get()
    until(lambda: stream.status)
    client.post(call(5, "logging/setLevel", {"level": "info"})).ended()
    assert server.publish(ToolsListChanged())
    assert server.log("info", "hello")
    server.notify("notifications/custom")
    until(lambda: len(stream.messages) == 3)
    outcome: list[float] = []
    pinging = threading.Thread(target=lambda: outcome.append(server.ping()), daemon=True)
    pinging.start()
    until(lambda: len(stream.messages) == 4)
    client.answer(stream.messages[-1], {})
    pinging.join(SECONDS)
    roots: list[object] = []
    asking = threading.Thread(
        target=lambda: roots.append(server.request("roots/list")), daemon=True
    )
    asking.start()
    until(lambda: len(stream.messages) == 5)
    client.answer(stream.messages[-1], {"roots": []})
    asking.join(SECONDS)
    assert outcome[0] >= 0
    assert roots == [{"roots": []}]
    (session,) = app.sessions
    assert app.end_session(session)
    stream.ended()


def test_progress_that_waits_for_its_caller_is_bounded_in_memory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A client may send progress faster than `on_progress` returns, so its memory needs a bound."""
    told: list[float] = []
    first, gate = threading.Event(), threading.Event()

    def on_progress(done: float, total: float | None, message: str | None) -> None:
        first.set()
        gate.wait(SECONDS * 20)  # all that follows may take long
        told.append(done)

    def handle(call: ServerCall) -> JSONObject:
        return {**TEXT, "_meta": call.request("roots/list", on_progress=on_progress)}

    client = Session(with_sessions(handle))
    response = client.post(tool_call())
    until(lambda: len(response.messages) == 1)
    (question,) = response.messages
    params = {"progressToken": question["params"]["_meta"]["progressToken"]}
    text = "\U0001f600" + "x" * 3_700_000  # takes 15 MB of memory
    for number in range(24):
        more = {"progress": number, "message": text}
        client.post(note("notifications/progress", {**params, **more})).ended()
        assert first.wait(SECONDS)
    gate.set()
    client.answer(question, {"roots": []})
    response.ended()
    assert told == [0, *range(24 - len(told) + 1, 24)]
    assert len(told) == 19
    assert caplog.text.count("reports of progress come faster than they are handled") == 1


def test_progress_of_a_task_whose_request_was_answered(caplog: pytest.LogCaptureFixture) -> None:
    """No caller is left: `on_progress` is called in the thread where it arrives, and its exception
    is logged.
    """
    told: list[float] = []

    def on_progress(done: float, total: float | None, message: str | None) -> None:
        told.append(done)
        if done == 2:
            raise ZeroDivisionError

    def handle(call: ServerCall) -> JSONObject:
        params: JSONObject = {"messages": [], "maxTokens": 1, "task": {}}
        return {
            **TEXT,
            "_meta": call.request("sampling/createMessage", params, on_progress=on_progress),
        }

    client = Session(with_sessions(handle), TASKS)
    response = client.post(tool_call())
    until(lambda: len(response.messages) == 1)
    (question,) = response.messages
    token = question["params"]["_meta"]["progressToken"]
    client.answer(question, {"task": TASK})
    response.ended()
    for number in (1, 2):
        params = {"progressToken": token, "progress": number}
        assert client.post(note("notifications/progress", params)).ended().status == 202
    assert told == [1, 2]
    assert caplog.messages == ["on_progress failed"]


def test_what_needs_a_session_says_so() -> None:
    """Without a session the client cannot be asked or notified, and the error has to say so."""
    rules: list[str] = []

    def handle(call: ServerCall) -> JSONObject:
        server = call.server
        assert server.subscriptions == ()
        assert not server.log("info", "hello")
        for ask in (server.ping, lambda: server.request("roots/list")):
            with pytest.raises(LocalProtocolError) as caught:
                ask()
            rules.append(caught.value.rule)
        return TEXT

    assert post_modern(new_app(handle), modern_tool_call()).ended().status == 200
    assert rules == ["STATE-006", "STATE-006"]


def test_sessions_expire_when_somebody_comes() -> None:
    """No thread keeps the time, so expired sessions must be found by the next request."""
    app = new_app(sessions=sessions(idle=0.001))
    opening = post(app, initialize("hello", LEGACY, CLIENT_CAPABILITIES)).ended()
    assert "mcp-session-id" in opening.headers

    def is_gone() -> bool:
        post(app, tool_call(), {"mcp-session-id": "unknown"}).ended()
        return not app.sessions

    until(is_gone)


def test_what_is_logged_under_the_lock_may_be_sent_to_a_client() -> None:
    """A `logging` handler that notifies clients must not wait for the lock that its own thread
    holds.
    """
    app = new_app()

    class Telling(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            app.publish(ToolsListChanged())

    logger, handler = logging.getLogger("sansmcp"), Telling()
    logger.addHandler(handler)
    try:
        assert request(app, "POST", {"host": "evil.example"}, b"{}").ended().status == 403
    finally:
        logger.removeHandler(handler)


def test_a_page_can_read_that_nothing_is_served_at_a_path() -> None:
    """The 404 of another path needs CORS headers, also for a preflight, or a page cannot read
    it."""
    page = "https://app.example"
    app = new_app(path="/mcp", origins=["https://other.example", page])
    found = post(app, tool_call(), {"origin": page}, PATH_INFO="/else").ended()
    assert (found.status, found.body) == (404, b"nothing is served at this path\n")
    assert found.headers["access-control-allow-origin"] == page
    fields = {"origin": page, "access-control-request-method": "POST"}
    asked = request(app, "OPTIONS", fields, PATH_INFO="/else").ended()
    assert (asked.status, asked.body) == (204, b"")
    assert asked.headers["access-control-allow-origin"] == page


def test_what_requests_hold_is_bounded() -> None:
    """The memory of slow calls and unfinished bodies is bounded: a further request is refused with
    503.
    """
    go = threading.Event()

    def slow(call: ServerCall) -> JSONObject:
        assert go.wait(SECONDS)
        return TEXT

    app = new_app(slow, config=Config(max_held_bytes=300_000))
    first = post_modern(app, modern_tool_call(1, text="x" * 200_000))
    until(lambda: is_working(app))
    refused = post_modern(app, modern_tool_call(2, text="x" * 90_000), CONTENT_LENGTH="300").ended()
    assert refused.status == 400  # what was read of it is given back
    refused = post_modern(app, modern_tool_call(2, text="x" * 200_000)).ended()
    assert (refused.status, refused.headers["retry-after"]) == (503, "5")
    go.set()
    assert first.ended().status == 200
    assert post_modern(app, modern_tool_call(3, text="x" * 200_000)).ended().status == 200


def test_a_question_outside_of_a_call_waits_until_its_client_listens() -> None:
    """The client may open its GET stream after the question was sent."""

    def handle(call: ServerCall) -> JSONObject:
        return {**TEXT, "_meta": call.server.request("roots/list", timeout=SECONDS)}

    app = with_sessions(handle)
    client = Session(app)
    response = client.post(tool_call())
    until(lambda: is_working(app))
    client.post(call(7, "ping")).ended()
    stream = client.get()
    until(lambda: stream.messages)
    client.answer(stream.messages[0], {"roots": []})
    assert response.ended().json["result"]["_meta"] == {"roots": []}
    app.close()
    stream.ended()
