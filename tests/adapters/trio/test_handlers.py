"""Handlers on trio: how they run, and the responses that their callers get."""

import logging
import math

import pytest
import trio

from sansmcp import Config, JSONObject
from sansmcp_io.trio import (
    Call,
    Handler,
    InvalidAnswer,
    McpError,
    PeerError,
    RequestHandler,
    RequestTimeout,
    ServerCall,
)
from tests.support.adapters.trio_talk import (
    INFO,
    call_tool,
    instantly,
    talking,
    talking_by_hand,
    text,
)


@instantly()
async def test_async_handlers_work_side_by_side() -> None:
    """One slow tool must not keep all others waiting."""

    async def handler(call: ServerCall) -> JSONObject:
        await trio.sleep(call.params["arguments"]["seconds"])
        return text("done")

    done: list[int] = []

    async with talking(handler) as client, trio.open_nursery() as nursery:

        async def ask(seconds: int) -> None:
            assert await client.request(*call_tool(seconds=seconds)) == text("done")
            done.append(seconds)

        for seconds in (3, 1, 2):
            nursery.start_soon(ask, seconds)

    assert done == [1, 2, 3]


@instantly()
async def test_plain_function_is_a_handler_too() -> None:
    """A handler that does not wait must not need a task."""

    def handler(call: ServerCall) -> JSONObject:
        return text(call.params["name"])

    async with talking(handler) as client:
        assert await client.request(*call_tool("plain")) == text("plain")


@instantly()
async def test_call_shows_what_was_asked_and_by_whom() -> None:
    """A handler has no connection, so its call must have the request and the caller."""
    seen: list[object] = []

    def handler(call: ServerCall) -> JSONObject:
        assert "tools/call" in repr(call)
        seen.extend([call.method, call.params, call.revision, call.capabilities, call.principal])
        seen.append(call.context)
        return text("")

    async with talking(
        handler,
        serving={"context": "the application's"},
        revisions=["2025-06-18"],
    ) as client:
        await client.request("tools/call", {"name": "x"})
        assert client.peer.revision == "2025-06-18"
        assert client.peer.info == INFO

    assert seen == ["tools/call", {"name": "x"}, "2025-06-18", {}, None, "the application's"]


@instantly()
async def test_mcp_error_reaches_the_caller_as_it_was_raised() -> None:
    """Error codes of an application are part of its protocol."""

    async def handler(call: ServerCall) -> JSONObject:
        raise McpError(-32050, "out of paper", {"tray": 2})

    async with talking(handler) as client:
        with pytest.raises(PeerError, match=r"^out of paper \(-32050\)$") as caught:
            await client.request(*call_tool())

    assert (caught.value.code, caught.value.message) == (-32050, "out of paper")
    assert caught.value.data == {"tray": 2}
    assert str(McpError(1, "same form")) == "same form (1)"


def raises(call: ServerCall) -> JSONObject:
    raise ValueError("a secret of the server")


async def raises_later(call: ServerCall) -> JSONObject:
    await trio.lowlevel.checkpoint()
    raise ValueError("a secret of the server")


async def returns_no_object(call: ServerCall) -> JSONObject:
    return "a secret of the server"  # type: ignore[return-value]  # pyright: ignore[reportReturnType]  # the fault


def returns_no_content(call: ServerCall) -> JSONObject:
    return {"secret": "a secret of the server"}


def raises_unsendable(call: ServerCall) -> JSONObject:
    raise McpError(-32050, "a secret of the server", object())


@pytest.mark.parametrize(
    "handler", [raises, raises_later, returns_no_object, returns_no_content, raises_unsendable]
)
@instantly()
async def test_fault_in_a_handler_is_told_to_the_logger_only(
    handler: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    """Exception texts hold paths, queries and passwords, so the peer must get a fixed text."""
    async with talking(handler) as client:
        with pytest.raises(PeerError) as caught:
            await client.request(*call_tool())

    assert (caught.value.code, caught.value.message) == (-32603, "internal error")
    assert caught.value.data is None
    [record] = caplog.records
    assert (record.name, record.levelno) == ("sansmcp", logging.ERROR)
    assert record.exc_info is not None


@instantly()
async def test_progress_arrives_before_the_answer() -> None:
    """Progress that comes after the response is useless."""

    async def handler(call: ServerCall) -> JSONObject:
        assert call.progress(1, total=2, message="half")
        assert call.progress(2, total=2)
        return text("done")

    seen: list[object] = []
    async with talking(handler) as client:

        def on_progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))

        result = await client.request(*call_tool(), on_progress=on_progress)
        seen.append(result)

    assert seen == [(1, 2, "half"), (2, 2, None), text("done")]


@instantly()
async def test_progress_for_a_token_of_the_callers_own_needs_no_callback() -> None:
    """A gateway passes tokens on and handles their progress itself."""

    def handler(call: ServerCall) -> JSONObject:
        return text(str(call.progress(1)))

    async with talking(handler) as client:
        result = await client.request(*call_tool(), meta={"progressToken": "own"})
    assert result == text("True")


@instantly()
async def test_progress_that_nobody_asked_for_is_not_sent() -> None:
    """A handler may always report; without a token its progress must not be sent."""
    sent: list[bool] = []

    def handler(call: ServerCall) -> JSONObject:
        sent.append(call.progress(1))
        return text("")

    async with talking(handler) as client:
        await client.request(*call_tool())

    assert sent == [False]


@instantly()
async def test_fault_in_a_callback_is_logged_and_survived(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A callback that raises must not end the conversation; only `on_progress` ends its call."""

    def handler(call: ServerCall) -> JSONObject:
        call.log("error", "one")
        call.log("error", "two")
        call.progress(1)
        return text("done")

    def on_progress(progress: float, total: float | None, message: str | None) -> None:
        raise ZeroDivisionError

    async def later() -> None:
        await trio.lowlevel.checkpoint()
        raise ZeroDivisionError

    def on_notification(method: str, params: JSONObject) -> object:
        if params["data"] == "one":
            raise ZeroDivisionError
        return later()

    async with talking(handler, on_notification=on_notification) as client:
        with pytest.raises(ZeroDivisionError):
            await client.request(*call_tool(), on_progress=on_progress)
        assert await client.request(*call_tool()) == text("done")

    faults = [record.getMessage() for record in caplog.records if record.exc_info is not None]
    assert faults == ["on_notification failed"] * (2 + 2)


@instantly()
async def test_logs_below_the_wish_of_the_client_are_not_sent() -> None:
    """The client sets the level, and handlers must not have to look at it."""

    def handler(call: ServerCall) -> JSONObject:
        sent = [call.log(level, {"n": 1}, logger="disk") for level in ("info", "error")]
        return text(str(sent))

    seen: list[object] = []

    async def on_notification(method: str, params: JSONObject) -> None:
        seen.append((method, params))

    async with talking(handler, on_notification=on_notification) as client:
        await client.request("logging/setLevel", {"level": "warning"})
        assert await client.request(*call_tool()) == text("[False, True]")

    assert seen == [
        ("notifications/message", {"level": "error", "data": {"n": 1}, "logger": "disk"})
    ]


@instantly()
async def test_notifications_reach_the_server() -> None:
    """A notification of the client, such as changed roots, must reach the server's handler."""
    seen: list[str] = []

    def on_notification(method: str, params: JSONObject) -> None:
        seen.append(method)

    async with talking(
        lambda call: text(""), serving={"on_notification": on_notification}
    ) as client:
        client.notify("notifications/x-colour", {"colour": "red"})
        await client.request(*call_tool())

    assert seen == ["notifications/x-colour"]


@instantly()
async def test_flood_of_notifications_neither_piles_up_nor_stops_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Notifications that wait for a slow handler need a bound; the newest are kept."""
    running, most, heard = 0, 0, list[int]()

    async def on_notification(method: str, params: JSONObject) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await trio.sleep(10)
        running -= 1
        heard.append(params["n"])
        if params["n"] == 4998:
            raise ZeroDivisionError

    async with talking_by_hand(on_notification=on_notification) as (_, peer):
        for number in range(5000):
            await peer.write(
                {"jsonrpc": "2.0", "method": "notifications/x", "params": {"n": number}}
            )
        await trio.sleep(200)
    assert most == 100
    assert running == 0
    assert sorted(heard) == [*range(100), *range(4000, 5000)]
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]


def list_forever(call: ServerCall) -> JSONObject:
    return {"tools": [{"name": "x", "inputSchema": {"type": "object"}}], "nextCursor": "same"}


def list_and_fail(call: ServerCall) -> JSONObject:
    if "cursor" in call.params:
        raise McpError(-32602, "no such cursor")
    return list_forever(call)


async def list_and_hang(call: ServerCall) -> JSONObject:
    if "cursor" in call.params:
        await trio.sleep_forever()
    return list_forever(call)


@pytest.mark.parametrize(
    ("handler", "expected"),
    [(list_forever, InvalidAnswer), (list_and_fail, PeerError), (list_and_hang, RequestTimeout)],
)
@instantly()
async def test_half_a_listing_is_not_taken_for_a_whole(
    handler: Handler, expected: type[Exception]
) -> None:
    """If a listing ended early without an error, its missing tools would be looked for in the wrong
    place.
    """
    async with talking(handler) as client:
        tools = client.items("tools/list", timeout=5)
        assert await anext(tools)

        async def read_on() -> None:
            async for _ in tools:
                pass

        with pytest.raises(expected):
            await read_on()


@instantly()
async def test_page_is_not_fetched_before_the_one_before_was_used_up() -> None:
    """A consumer that is slow or leaves early must not load the whole list."""
    trail: list[str] = []

    async def handler(call: ServerCall) -> JSONObject:
        trail.append(call.params.get("cursor", "first"))
        if len(trail) > 1:
            try:
                await trio.sleep_forever()
            finally:
                trail.append("stopped")
        page = list_forever(call)
        return {**page, "tools": page["tools"] * 2}

    async with talking(handler) as client:
        tools = client.items("tools/list", timeout=math.inf)
        for _ in range(2):
            await anext(tools)
            await trio.sleep(100)
            assert trail == ["first"]
        with trio.move_on_after(1) as scope:
            await anext(tools)
        assert scope.cancelled_caught
        await trio.sleep(1)
        assert trail == ["first", "same", "stopped"]

        tools = client.items("tools/list")
        del trail[:]
        await anext(tools)
        await tools.aclose()
        await trio.sleep(1)
        assert trail == ["first"]


async def ask_roots(call: ServerCall) -> JSONObject:
    return text(str(await call.request("roots/list")))


@pytest.mark.parametrize("waits", [False, True])
@instantly()
async def test_client_serves_requests_of_the_server(waits: bool) -> None:
    """Requests for sampling, roots and elicitation must be served while the client's own call is
    open.
    """
    roots: JSONObject = {"roots": [{"uri": "file:///x"}]}

    async def later(call: Call) -> JSONObject:
        await trio.sleep(1)
        assert call.context == "the client's"
        return roots

    on_request: RequestHandler = later if waits else lambda call: roots
    async with talking(
        ask_roots, capabilities={"roots": {}}, on_request=on_request, context="the client's"
    ) as client:
        assert await client.request(*call_tool()) == text(str(roots))


@instantly()
async def test_client_without_a_handler_declares_no_capabilities() -> None:
    """A capability promises an answer, which a client without a handler cannot give."""

    def handler(call: ServerCall) -> JSONObject:
        return text(str(call.capabilities))

    async with talking(handler, capabilities={"roots": {}, "sampling": {}}) as client:
        assert await client.request(*call_tool()) == text("{}")


@instantly()
async def test_client_without_a_handler_answers_what_it_is_asked_all_the_same() -> None:
    """Every request needs a response, also where the configuration delivers unknown ones."""
    async with talking_by_hand(config=Config(unknown_methods="deliver")) as (_, peer):
        await peer.write({"jsonrpc": "2.0", "id": 1, "method": "x-colour"})
        answer = await peer.read()
    assert answer["error"]["code"] == -32601


@instantly()
async def test_question_of_a_cancelled_handler_is_withdrawn() -> None:
    """A user must not be asked on behalf of a cancelled call."""
    trail: list[str] = []

    async def on_request(call: Call) -> JSONObject:
        try:
            await trio.sleep_forever()
        finally:
            trail.append("withdrawn")
        return {}

    async with talking(ask_roots, capabilities={"roots": {}}, on_request=on_request) as client:
        with trio.move_on_after(5):
            await client.request(*call_tool())
        await trio.sleep(1)
        assert trail == ["withdrawn"]
