"""The methods of a server on trio outside of a handler."""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest
import trio

from sansmcp import MODERN_REVISIONS, JSONObject, ToolsListChanged
from sansmcp_io.trio import (
    Call,
    ConnectionLost,
    LogHandler,
    PeerError,
    RequestTimeout,
    RequireInput,
    Server,
    ServerCall,
)
from tests.support.adapters.on_trio import on_trio
from tests.support.adapters.trio_talk import call_tool, instantly, talking, talking_by_hand, text


def nothing(call: ServerCall) -> JSONObject:
    return text("")


Seen = list[tuple[str, JSONObject]]


def recording(seen: Seen) -> Callable[[str, JSONObject], None]:
    def on_notification(method: str, params: JSONObject) -> None:
        seen.append((method, params))

    return on_notification


@instantly()
async def test_server_publishes_when_nobody_calls() -> None:
    """Lists change when files and databases do, so changes must be sent without an open call."""
    seen: Seen = []
    told: list[bool] = []

    async def on_ready(server: Server) -> None:
        await trio.sleep(5)
        told.append(server.publish(ToolsListChanged()))
        server.notify("notifications/x-colour", {"colour": "red"})

    serving: JSONObject = {"on_ready": on_ready, "capabilities": {"tools": {"listChanged": True}}}
    async with talking(nothing, serving=serving, on_notification=recording(seen)):
        await trio.sleep(10)

    assert told == [True]
    assert [method for method, _ in seen] == [
        "notifications/tools/list_changed",
        "notifications/x-colour",
    ]


@instantly()
async def test_server_asks_and_pings_outside_of_calls() -> None:
    """Servers ask for roots at the start, before any call."""
    found: list[object] = []

    async def on_ready(server: Server) -> None:
        await server.wait_ready()
        assert server.peer.revision == "2025-11-25"
        found.append(await server.request("roots/list"))
        found.append(await server.ping() >= 0)
        found.append(server.subscriptions)

    def on_request(call: Call) -> JSONObject:
        return {"roots": []}

    async with talking(
        nothing, serving={"on_ready": on_ready}, capabilities={"roots": {}}, on_request=on_request
    ):
        await trio.sleep(1)
    assert found == [{"roots": []}, True, ()]


@instantly()
async def test_task_of_the_server_ends_with_the_connection() -> None:
    """A task that watches files for one client must end with that client."""
    trail: list[str] = []

    async def on_ready(server: Server) -> None:
        try:
            await trio.sleep_forever()
        finally:
            trail.append("ended")

    async with talking(nothing, serving={"on_ready": on_ready}) as client:
        await client.request(*call_tool())
        assert trail == []
    assert trail == ["ended"]


@instantly()
async def test_call_leads_to_its_server() -> None:
    """A background job that a call starts may have to publish long after the response."""
    servers: list[Server] = []
    seen: Seen = []

    def handler(call: ServerCall) -> JSONObject:
        servers.append(call.server)
        return text("")

    async with talking(handler, on_notification=recording(seen)) as client:
        await client.request(*call_tool())
        assert servers[0].log("warning", "later", logger="disk")
        await trio.sleep(1)
    assert seen == [
        ("notifications/message", {"level": "warning", "data": "later", "logger": "disk"})
    ]
    assert servers[0].log("warning", "too late") is False


@instantly()
async def test_ping_says_how_long_it_took_or_why_it_failed() -> None:
    """A ping without a response must not look like one with a response."""
    async with talking_by_hand() as (client, peer):
        async with trio.open_nursery() as nursery:

            async def ping() -> None:
                assert await client.ping() == 2

            nursery.start_soon(ping)
            request = await peer.read()
            await trio.sleep(2)
            await peer.answer(request, {})
        with pytest.raises(RequestTimeout):
            await client.ping(timeout=3)
        await peer.stream.aclose()
        await trio.sleep(1)
        with pytest.raises(ConnectionLost):
            await client.ping()


# ------------------------------------------------------------------------------------ logging


@contextmanager
def attached(logger: logging.Logger, handler: logging.Handler) -> Generator[None, None, None]:
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(1)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@on_trio()  # a thread takes real time
async def test_log_records_reach_the_client_from_any_thread() -> None:
    """Libraries log from any thread, and their records must reach the client."""
    seen: Seen = []
    logger = logging.getLogger("test.disk")

    async def on_ready(server: Server) -> None:
        with attached(logger, LogHandler(server, level=logging.INFO)):
            logger.debug("not wanted")
            logger.info("free: %d", 7)
            logger.log(25, "a notice")
            try:
                raise ZeroDivisionError
            except ZeroDivisionError:
                logger.exception("no traceback")
            await trio.to_thread.run_sync(logger.critical, "from a thread")
            await trio.sleep_forever()

    async with talking(nothing, serving={"on_ready": on_ready}, on_notification=recording(seen)):
        while len(seen) < 4:
            await trio.sleep(0.01)

    assert [(params["level"], params["data"]) for _, params in seen] == [
        ("info", "free: 7"),
        ("notice", "a notice"),
        ("error", "no traceback"),
        ("critical", "from a thread"),
    ]
    assert {params["logger"] for _, params in seen} == {"test.disk"}


@pytest.mark.parametrize("where", ["here", "thread"])
@on_trio()  # a thread takes real time
async def test_record_that_cannot_be_sent_is_handled_like_that_of_any_handler(where: str) -> None:
    """A mistake in the logging configuration must not end the program."""
    failed: list[str] = []

    class Handler(LogHandler):
        def handleError(self, record: logging.LogRecord) -> None:
            failed.append(record.getMessage())

    logger = logging.getLogger("test.undeclared")

    async def on_ready(server: Server) -> None:
        with attached(logger, Handler(server)):
            if where == "here":
                logger.warning("not declared")
            else:
                await trio.to_thread.run_sync(logger.warning, "not declared")
            await trio.sleep_forever()

    serving: JSONObject = {"on_ready": on_ready, "capabilities": {"tools": {}}}
    async with talking(nothing, serving=serving) as client:
        while not failed:
            await trio.sleep(0.01)
        assert await client.ping() >= 0
    assert failed == ["not declared"]


@instantly()
async def test_what_the_library_logs_is_not_sent() -> None:
    """A record about sending that is itself sent causes the next one, for ever."""
    seen: Seen = []
    root = logging.getLogger()

    def handler(call: ServerCall) -> JSONObject:
        raise ValueError("is logged")

    async def on_ready(server: Server) -> None:
        with attached(root, LogHandler(server)):
            await trio.sleep_forever()

    async with talking(
        handler, serving={"on_ready": on_ready}, on_notification=recording(seen)
    ) as client:
        with pytest.raises(PeerError, match="internal error"):
            await client.request(*call_tool())
        await trio.sleep(1)
    assert seen == []


@instantly()
async def test_records_after_the_end_are_dropped() -> None:
    """A logger outlives the connections that its records are sent to."""
    servers: list[Server] = []
    async with talking(nothing, serving={"on_ready": servers.append}) as client:
        await client.request(*call_tool())
        handler = LogHandler(servers[0])
    handler.emit(logging.makeLogRecord({"name": "x", "msg": "late", "levelno": logging.ERROR}))


@instantly()
async def test_handler_sees_what_stands_beside_the_params() -> None:
    """A handler needs `_meta` to continue a trace, or to pass on the log level."""
    seen: list[tuple[JSONObject, str | None]] = []

    def handle(call: ServerCall) -> JSONObject:
        seen.append(({**call.meta}, call.log_level))
        return text("")

    async with talking(handle) as client:
        await client.request("tools/call", {"name": "x"})
        await client.request("tools/call", {"name": "x"}, meta={"traceparent": "t"})
        await client.request("logging/setLevel", {"level": "error"})
        await client.request("tools/call", {"name": "x"})
    async with talking(handle, revisions=MODERN_REVISIONS) as client:
        await client.request("tools/call", {"name": "x"}, log_level="info")

    levels = [level for _, level in seen]
    assert levels == [None, None, "error", "info"]
    assert [meta for meta, _ in seen[:3]] == [{}, {"traceparent": "t"}, {}]


@instantly()
async def test_handler_of_a_question_sees_its_meta() -> None:
    """The call of a question must have its `_meta` on the client's side too."""
    seen: list[JSONObject] = []
    question: JSONObject = {"method": "roots/list", "params": {"_meta": {"traceparent": "t"}}}

    def handle(call: ServerCall) -> JSONObject | RequireInput:
        return text("") if call.input_responses else RequireInput({"roots": question})

    def on_request(call: Call) -> JSONObject:
        seen.append(call.meta)
        return {"roots": []}

    async with talking(
        handle, revisions=MODERN_REVISIONS, capabilities={"roots": {}}, on_request=on_request
    ) as client:
        await client.request("tools/call", {"name": "x"})

    assert seen == [{"traceparent": "t"}]


@instantly()
async def test_handler_that_raises_a_cancellation_of_its_own_has_failed() -> None:
    """trio would take the foreign `Cancelled` for its own and end all tasks of the server."""

    async def handler(call: ServerCall) -> JSONObject:
        kept: list[trio.Cancelled] = []
        if call.params["name"] == "echo":
            return text("on")
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.sleep(0)
            except trio.Cancelled as cancelled:
                kept.append(cancelled)
                raise
        raise kept[0]

    async with talking(handler) as client:
        with pytest.raises(PeerError, match="internal error"):
            await client.request(*call_tool("keep"))
        assert await client.request(*call_tool("echo")) == text("on")


@instantly()
async def test_handler_that_fails_while_it_is_cancelled_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A failing cleanup in one task of a cancelled handler must not end the server."""
    has_failed = trio.Event()

    async def fail_at_the_end() -> None:
        try:
            await trio.sleep_forever()
        finally:
            has_failed.set()
            raise ValueError("the file is gone")

    async def handler(call: ServerCall) -> JSONObject:
        if call.params["name"] == "echo":
            return text("on")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail_at_the_end)
            await trio.sleep_forever()
        raise AssertionError

    async with talking(handler) as client:
        with trio.move_on_after(1):
            await client.request(*call_tool("hang"))
        await has_failed.wait()
        assert await client.request(*call_tool("echo")) == text("on")
    assert [record.getMessage() for record in caplog.records] == [
        "the handler of 'tools/call' failed"
    ]
