"""`serve_http` on real sockets with lookup functions that take their time."""

import json
import logging
import math
from collections.abc import Callable
from typing import Any

import pytest

from sansmcp import JSONObject
from sansmcp.http import Sessions
from sansmcp_io.trio import ServerCall
from tests.support.adapters import loops
from tests.support.adapters.loops import on_each_loop
from tests.support.http.event_stores import AsyncStore, DictStore
from tests.support.http.h11_client import Received, head
from tests.support.http.on_loops import INFO, Talk, serve_http, serving, talking
from tests.support.http.on_loops import last as last_message
from tests.support.http.server_endpoint import (
    modern_headers,
    modern_tool_call,
    progressing,
)
from tests.support.http.tools import handle, opened, said, text

SCHEMA: JSONObject = {"properties": {"text": {"x-mcp-header": "Text"}}}
SHORT = 0.05
"""Seconds after which a lookup is late, where one never ends."""
MODERATE = 1.0
"""The same, where another client is served meanwhile, also by a busy machine."""


def messages_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


async def post_modern(talk: Talk, message: JSONObject, **more: str) -> Any:
    return await talk.post(message, {**modern_headers(message), **more})


# ---------------------------------------------------------------------------- tool schemas


@on_each_loop()
async def test_a_schema_may_be_looked_up_by_an_async_function() -> None:
    """Schemas may be in a database, so `tool_schema` may be an async function."""

    async def tool_schema(name: str) -> JSONObject | None:
        await loops.checkpoint()
        return SCHEMA if name == "echo" else None

    async with serving(handle, tool_schema=tool_schema) as server, talking(server) as talk:
        message = modern_tool_call(1, "echo", text="a")
        right = await post_modern(talk, message, **{"mcp-param-text": "a"})
        wrong = await post_modern(talk, message, **{"mcp-param-text": "b"})
        free = await post_modern(talk, modern_tool_call(2, "progress"))

    assert said(json.loads(right.body)) == "a"
    assert (wrong.status, free.status) == (400, 200)


@on_each_loop()
async def test_a_schema_that_cannot_be_had_is_an_error_of_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The client must get an error, and the log must name the cause once."""

    async def tool_schema(name: str) -> Any:
        await loops.checkpoint()
        if name == "fail":
            raise ValueError(name)
        return ["no schema"]

    async with serving(handle, tool_schema=tool_schema) as server, talking(server) as talk:
        failed = await post_modern(talk, modern_tool_call(1, "fail"))
        odd = await post_modern(talk, modern_tool_call(2, "echo"))

    assert (failed.status, odd.status) == (500, 500)
    assert json.loads(failed.body)["id"] == 1
    assert messages_of(caplog) == ["tool_schema failed"] * 2


@on_each_loop()
async def test_a_lookup_that_takes_too_long_delays_no_other_client(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Other clients must be served during a slow lookup, whose own client gets an error that allows
    a retry.
    """
    begun = loops.new_event()
    ended: list[str] = []

    async def tool_schema(name: str) -> JSONObject | None:
        if name == "slow":
            begun.set()
            try:
                await loops.sleep_forever()
            finally:
                ended.append(name)
        return None

    async with (
        serving(handle, tool_schema=tool_schema, lookup_timeout=MODERATE) as server,
        talking(server) as talk,
        talking(server) as other,
        loops.open_nursery() as nursery,
    ):
        responses: list[Any] = []

        async def call_slowly() -> None:
            responses.append(await post_modern(talk, modern_tool_call(1, "slow")))

        nursery.start_soon(call_slowly)
        await begun.wait()
        assert said(await other.call(modern_tool_call(2, "echo", text="b"))) == "b"
        assert responses == []

    (late,) = responses
    assert (late.status, late.headers["retry-after"]) == (503, "5")
    assert json.loads(late.body)["id"] == 1
    assert ended == ["slow"]
    assert messages_of(caplog) == ["tool_schema took more than 1 s"]


@on_each_loop()
async def test_a_lookup_for_a_client_that_is_gone_is_cancelled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The result of the lookup is no longer needed."""
    begun, ended = loops.new_event(), loops.new_event()

    async def tool_schema(name: str) -> JSONObject | None:
        begun.set()
        try:
            await loops.sleep_forever()
        finally:
            ended.set()
        return None

    async with serving(handle, tool_schema=tool_schema) as server:
        async with talking(server) as talk:
            message = modern_tool_call()
            body = json.dumps(message).encode()
            fields = {
                **modern_headers(message),
                "content-type": "application/json",
                "content-length": str(len(body)),
            }
            await talk.send(head("POST", "/mcp", fields) + body)
            await begun.wait()
        await ended.wait()

    assert messages_of(caplog) == []


# ----------------------------------------------------------------------------- credentials


@on_each_loop()
async def test_credentials_that_take_too_long_are_answered_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """If the user directory does not answer, the client must get an error in time."""

    async def authenticate(headers: Any) -> str:
        await loops.sleep_forever()
        return "nobody"

    async with (
        serving(handle, authenticate=authenticate, lookup_timeout=SHORT) as server,
        talking(server) as talk,
    ):
        response = await post_modern(talk, modern_tool_call())

    assert (response.status, response.headers["retry-after"]) == (503, "5")
    assert json.loads(response.body)["error"]["code"] == -32603
    assert messages_of(caplog) == ["authenticate took more than 0.05 s"]
    assert not any(record.exc_info for record in caplog.records), "it is no mistake in the code"


# ----------------------------------------------------------------------------- event stores


@pytest.mark.parametrize("new_store", [DictStore, AsyncStore])
@on_each_loop()
async def test_a_stream_is_resumed_from_a_store(
    new_store: Callable[[], DictStore | AsyncStore],
) -> None:
    """Stored events may be outside of this process, and come in portions."""
    store = new_store()
    kept = store.kept if isinstance(store, AsyncStore) else store
    go_on = loops.new_event()

    async def tell(call: ServerCall) -> JSONObject:
        for step in range(5):
            call.progress(step)
        await go_on.wait()
        call.progress(5)
        return text("done")

    async with serving(tell, event_log=store) as server:
        async with talking(server) as talk:
            fields = await opened(talk)
            message = progressing()
            body = json.dumps(message).encode()
            await talk.send(
                head(
                    "POST",
                    "/mcp",
                    {
                        **fields,
                        "accept": "application/json, text/event-stream",
                        "content-type": "application/json",
                        "content-length": str(len(body)),
                    },
                )
                + body
            )
            await talk.receive_head()
            first = await talk.event()
        async with talking(server) as again:
            last = {"accept": "text/event-stream", "last-event-id": first.id}
            await again.send(head("GET", "/mcp", {**fields, **last}))
            assert (await again.receive_head("GET")).status == 200
            go_on.set()
            messages = await again.messages()
        (session,) = kept.events
        assert session == fields["mcp-session-id"]
        async with talking(server) as talk:
            await talk.send(head("DELETE", "/mcp", fields))
            assert (await talk.receive("DELETE")).status == 204

    told = [message["params"]["progress"] for message in messages[:-1]]
    assert told == [0, 1, 2, 3, 4, 5]
    assert said(messages[-1]) == "done"
    assert kept.forgotten == [session]


async def tell(call: ServerCall) -> JSONObject:
    call.progress(1)
    return text("done")


async def stored(store: AsyncStore, n_events: int) -> None:
    """Wait until the store holds this number of events."""
    while sum(map(len, store.kept.events.values())) < n_events:
        await loops.checkpoint()


def first_id(response: Received) -> str:
    """The id of the first event of a stream."""
    line = response.body.partition(b"\n")[0]
    assert line.startswith(b"id: ")
    return line[4:].decode()


@on_each_loop()
async def test_a_store_that_fails_is_logged_once_and_answered_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Sessions must go on without a failing store, and resuming must work again after it
    recovers."""
    store = AsyncStore()
    async with serving(tell, event_log=store) as server, talking(server) as talk:
        fields = await opened(talk)
        last = {"last-event-id": first_id(await talk.post(progressing(), fields))}
        await stored(store, 3)
        store.kept.failure = OSError("the disk is full")
        for number in (2, 3):
            assert said_last(await talk.post(progressing(number), fields)) == "done"
        await talk.send(head("GET", "/mcp", {**fields, "accept": "text/event-stream", **last}))
        failed = await talk.receive("GET")
        store.kept.failure = None
        await talk.send(head("GET", "/mcp", {**fields, "accept": "text/event-stream", **last}))
        again = await talk.receive("GET")

    assert (failed.status, again.status) == (500, 200)
    assert said_last(again) == "done"
    messages = messages_of(caplog)
    assert messages.count("event_log.append failed") == 1
    assert messages.count("event_log.replay failed") == 1
    assert any("has failed: the disk is full" in message for message in messages)


def said_last(response: Received) -> str:
    return said(last_message(response))


@on_each_loop()
async def test_a_store_that_is_late_loses_events_and_answers_for_replays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """If the store is too slow, a client that resumes must be told to retry."""
    store = AsyncStore()
    async with (
        serving(tell, event_log=store, lookup_timeout=SHORT) as server,
        talking(server) as talk,
    ):
        fields = await opened(talk)
        first = first_id(await talk.post(progressing(), fields))
        await stored(store, 3)
        store.wait = loops.sleep_forever
        last = {"accept": "text/event-stream", "last-event-id": first}
        await talk.send(head("GET", "/mcp", {**fields, **last}))
        late = await talk.receive("GET")
        await talk.post(progressing(2), fields)
        while "event_log.append took more than 0.05 s" not in messages_of(caplog):
            await loops.sleep(0.01)  # for the time that an event may take
        store.wait = None

    assert (late.status, late.headers["retry-after"]) == (503, "5")
    messages = messages_of(caplog)
    assert "event_log.replay took more than 0.05 s" in messages
    assert messages.count("event_log.append took more than 0.05 s") == 1
    assert not any(record.exc_info for record in caplog.records), "it is no mistake in the code"


@on_each_loop()
async def test_a_store_that_gives_something_else_is_answered_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its request ends with 500, and both the session and the server go on."""
    store = AsyncStore()
    async with serving(tell, event_log=store) as server, talking(server) as talk:
        fields = await opened(talk)
        last = {"last-event-id": first_id(await talk.post(progressing(), fields))}
        await stored(store, 3)
        kept: Any = store.kept.events[fields["mcp-session-id"]]
        right = dict(kept)
        kept.update({key: message.decode() for key, message in right.items()})
        await talk.send(head("GET", "/mcp", {**fields, "accept": "text/event-stream", **last}))
        failed = await talk.receive("GET")
        kept.update(right)
        await talk.send(head("GET", "/mcp", {**fields, "accept": "text/event-stream", **last}))
        again = await talk.receive("GET")

    assert (failed.status, again.status) == (500, 200)
    assert said_last(again) == "done"
    assert messages_of(caplog).count("event_log.replay failed") == 1


@on_each_loop()
async def test_time_of_a_replay_runs_while_events_before_it_wait() -> None:
    """Each of these may take as long: its client would wait for many times that time."""

    class Slow(AsyncStore):
        appends = 0

        async def append(self, session: str, stream: int, event: int, message: bytes) -> int | None:
            self.appends += 1
            return await super().append(session, stream, event, message)

    async def tell_often(call: ServerCall) -> JSONObject:
        for step in range(n_events if store.wait else 1):
            call.progress(step)
        return text("done")

    n_events, store = 400, Slow()
    async with (
        serving(tell_often, event_log=store, lookup_timeout=SHORT) as server,
        talking(server) as talk,
    ):
        fields = await opened(talk)
        last = {"last-event-id": first_id(await talk.post(progressing(), fields))}
        await stored(store, 3)
        store.wait = loops.sleep_forever
        await talk.post(progressing(2), fields)
        await talk.send(head("GET", "/mcp", {**fields, "accept": "text/event-stream", **last}))
        late = await talk.receive("GET")
        appends, store.wait = store.appends, None

    assert (late.status, late.headers["retry-after"]) == (503, "5")
    assert appends < n_events


@on_each_loop()
async def test_a_store_with_a_bound_says_what_it_drops(caplog: pytest.LogCaptureFixture) -> None:
    """Events that a store drops must be reported, as with the log in memory."""
    store = AsyncStore(limit=2)

    async def tell(call: ServerCall) -> JSONObject:
        for step in range(9):
            call.progress(step)
            await loops.checkpoint()
        return text("done")

    async with serving(tell, event_log=store) as server, talking(server) as talk:
        fields = await opened(talk)
        await talk.post(progressing(), fields)

    assert any("its oldest events were dropped" in message for message in messages_of(caplog))


@on_each_loop()
async def test_events_do_not_wait_without_bound(caplog: pytest.LogCaptureFixture) -> None:
    """A store that hangs must not fill the memory."""
    caplog.set_level(logging.WARNING)
    store = AsyncStore()
    store.wait = loops.sleep_forever

    async def tell(call: ServerCall) -> JSONObject:
        for step in range(1_100):
            call.progress(step)
        return text("done")

    async with (
        serving(tell, event_log=store, lookup_timeout=math.inf) as server,
        talking(server) as talk,
    ):
        fields = await opened(talk)
        await talk.post(progressing(), fields)

    assert any("too many events" in message for message in messages_of(caplog))


# ----------------------------------------------------------------------------- settings


@on_each_loop()
async def test_settings_that_nobody_would_answer_are_refused() -> None:
    """Each request that needs the missing function would wait for ever."""
    for given, why in (
        ({"sessions": Sessions(new_id=str, opening="ask")}, "opening='ask'"),
        ({"sessions": Sessions(new_id=str, unknown="ask")}, "unknown='ask'"),
        ({"sessions": Sessions(new_id=str, event_log="ask")}, "event_log='ask'"),
        ({"sessions": False, "event_log": DictStore()}, "streams of sessions"),
        ({"event_log": object()}, "event_log needs a method append"),
        ({"lookup_timeout": 0}, "lookup_timeout must be greater than zero"),
    ):
        settings: Any = given
        with pytest.raises(ValueError, match=why):
            await serve_http(handle, info=INFO, port=0, **settings)
