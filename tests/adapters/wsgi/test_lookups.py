"""The WSGI application with lookup functions, in the threads of their requests."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from sansmcp import JSONObject
from sansmcp_io.wsgi import App, ServerCall
from tests.adapters.wsgi.test_app import (
    Response,
    new_app,
    post,
    post_modern,
    request,
)
from tests.support.http.event_stores import AsyncStore, DictStore
from tests.support.http.server_endpoint import LEGACY, modern_tool_call, progressing
from tests.support.http.tools import text
from tests.support.wire import INITIALIZED, initialize


def echo(call: ServerCall) -> JSONObject:
    call.progress(1)
    return text("done")


def opened(app: App) -> dict[str, str]:
    """Open a session; returns the headers that name it."""
    response = post(app, initialize(1, LEGACY)).ended()
    fields = {
        "mcp-session-id": response.headers["mcp-session-id"],
        "mcp-protocol-version": LEGACY,
    }
    assert post(app, INITIALIZED, fields).ended().status == 202
    return fields


def test_a_slow_lookup_delays_no_other_client() -> None:
    """A lookup must run in the thread of its request, and without the lock."""
    begun, go_on = threading.Event(), threading.Event()

    def tool_schema(name: str) -> JSONObject | None:
        if name == "slow":
            begun.set()
            go_on.wait()
        return None

    app = new_app(echo, tool_schema=tool_schema)
    slow = post_modern(app, modern_tool_call(1, "slow"))
    begun.wait()
    assert post_modern(app, modern_tool_call(2, "fast")).ended().status == 200
    assert not slow.is_over
    go_on.set()

    assert slow.ended().status == 200


def test_a_schema_decides_about_headers() -> None:
    """The schema of a tool must be used for `Mcp-Param-*` headers, as on a loop."""

    def tool_schema(name: str) -> JSONObject:
        return {"properties": {"x": {"x-mcp-header": "X"}}}

    app = new_app(echo, tool_schema=tool_schema)

    assert post_modern(app, modern_tool_call(x="a")).ended().status == 400


def test_streams_are_resumed_from_a_store() -> None:
    """Any thread of the server must be able to resume a stored stream."""
    store = DictStore()
    app = new_app(echo, sessions=True, streams=True, event_log=store)
    fields = opened(app)
    first = post(app, progressing(), fields).ended()
    last = first.body.partition(b"\n")[0].removeprefix(b"id: ").decode()
    again = resume(app, fields, last)
    (session,) = store.events
    app.end_session(*app.sessions)

    assert again.messages[-1]["result"] == text("done")
    assert session == fields["mcp-session-id"]
    assert (store.forgotten, store.events) == ([session], {})


def resume(app: App, fields: dict[str, str], last: str) -> Response:
    more = {"accept": "text/event-stream", "last-event-id": last}
    return request(app, "GET", {**fields, **more}).ended()


def test_a_store_that_fails_is_logged_once_and_answered_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Sessions must go on without a failing store."""
    store = DictStore(limit=1)
    app = new_app(echo, sessions=True, streams=True, event_log=store)
    fields = opened(app)
    first = post(app, progressing(), fields).ended()
    last = first.body.partition(b"\n")[0].removeprefix(b"id: ").decode()
    store.failure = OSError("the disk is full")
    assert post(app, progressing(2), fields).ended().status == 200

    assert resume(app, fields, last).status == 500
    messages = [record.getMessage() for record in caplog.records]
    assert messages.count("event_log.append failed") == 1
    assert messages.count("event_log.replay failed") == 1
    assert any("its oldest events were dropped" in message for message in messages)
    assert any("has failed: the disk is full" in message for message in messages)


def test_threads_of_one_session_store_one_after_the_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A client resumes by the order of events, so they must be stored in order, and those that wait
    need a bound.
    """
    inside, at_once = 0, 0
    begun, go_on = threading.Event(), threading.Event()

    class Slow(DictStore):
        def append(self, session: str, stream: int, event: int, message: bytes) -> int | None:
            nonlocal inside, at_once
            inside += 1
            at_once = max(at_once, inside)
            begun.set()
            go_on.wait()
            inside -= 1
            return super().append(session, stream, event, message)

    store = Slow(limit=10_000)

    def tell(call: ServerCall) -> JSONObject:
        for step in range(1_100 if call.params["name"] == "many" else 1):
            call.progress(step)
        return text("done")

    app = new_app(tell, sessions=True, event_log=store, streams=True)
    fields = opened(app)
    slow = post(app, progressing(), fields)
    begun.wait()
    many = progressing(2)
    many["params"]["name"] = "many"
    assert post(app, many, fields).ended().status == 200
    assert not slow.is_over
    go_on.set()
    assert slow.ended().status == 200

    assert at_once == 1
    (events,) = store.events.values()
    assert [event for stream, event in events if stream == 2] == [1, 2, 3]
    assert any("too many events" in record.getMessage() for record in caplog.records)


def test_time_of_a_replay_runs_while_events_before_it_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Another thread stores them: the client is told to try again, and can."""
    begun, go_on = threading.Event(), threading.Event()
    go_on.set()

    class Slow(DictStore):
        def append(self, session: str, stream: int, event: int, message: bytes) -> int | None:
            begun.set()
            go_on.wait()
            return super().append(session, stream, event, message)

    store = Slow()
    app = new_app(echo, sessions=True, event_log=store, streams=True, lookup_timeout=0.05)
    fields = opened(app)
    first = post(app, progressing(), fields).ended()
    last = first.body.partition(b"\n")[0].removeprefix(b"id: ").decode()
    begun.clear()
    go_on.clear()
    slow = post(app, progressing(2), fields)
    begun.wait()
    late = resume(app, fields, last)
    assert (late.status, late.headers["retry-after"]) == (503, "5")
    assert not slow.is_over
    go_on.set()
    assert slow.ended().status == 200

    assert resume(app, fields, last).messages[-1]["result"] == text("done")
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["event_log.replay took more than 0.05 s"]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"event_log": AsyncStore(), "sessions": True, "streams": True}, "append of .* is async"),
        ({"tool_schema": AsyncStore().forget}, "is async, and below WSGI"),
    ],
)
def test_async_functions_are_refused(settings: Any, why: str) -> None:
    """A WSGI application has no loop to run an async function."""
    make: Callable[..., App] = new_app
    with pytest.raises(TypeError, match=why):
        make(echo, **settings)


def test_a_store_without_streams_is_refused() -> None:
    """Without streams, no event would be stored and no client could resume."""
    with pytest.raises(ValueError, match="streams of sessions"):
        new_app(echo, sessions=True, event_log=DictStore())
