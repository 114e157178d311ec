"""A server on version 2 of the `mcp` package over HTTP, in its various set-ups, in both eras."""

import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import Any, TypeAlias

import pytest
import trio

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, JSONObject
from sansmcp.http import AuthorizationRequired
from sansmcp_io.trio import Call, InvalidAnswer, McpError, PeerError, RequestRefused
from tests.interop.talk import Talk
from tests.interop.talk_http import HTTPReports, end_session, running, talking_over_http
from tests.support.adapters.on_trio import on_trio

Serve: TypeAlias = Callable[..., int]

SERVER = (sys.executable, "-m", "tests.peers.mcp_http")
FIRST = "test://notes/first"
LEGACY = LEGACY_REVISIONS[-1]
MODERN = MODERN_REVISIONS[-1]
ERAS = pytest.mark.parametrize("revision", [LEGACY, MODERN])
FORMS = pytest.mark.parametrize(
    "options",
    [(), ("--json",), ("--stateless",), ("--stateless", "--json"), ("--store",)],
    ids=lambda options: " ".join(options) or "streams",
)
CAPABILITIES: JSONObject = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}


@pytest.fixture(scope="module")
def serve() -> Generator[Serve]:
    """Ports of servers, each of which starts when the first test wants it."""
    ports: dict[tuple[str, ...], int] = {}
    with ExitStack() as stack:

        def port(*options: str) -> int:
            if options not in ports:
                ports[options] = stack.enter_context(running([*SERVER, *options]))
            return ports[options]

        yield port


def on_request(call: Call) -> JSONObject:
    match call.method:
        case "elicitation/create":
            assert call.params["requestedSchema"]["required"] == ["name"]
            return {"action": "accept", "content": {"name": "Ada"}}
        case "sampling/createMessage":
            content = {"type": "text", "text": "a sample"}
            return {"role": "assistant", "content": content, "model": "none"}
        case _:
            assert call.method == "roots/list"
            return {"roots": [{"uri": "file:///a/root"}]}


def traced(talk: Talk) -> HTTPReports:
    assert isinstance(talk.trace, HTTPReports)
    return talk.trace


# ------------------------------------------------------------------------------ whatever its form


@FORMS
@pytest.mark.parametrize("revision", [*LEGACY_REVISIONS, MODERN])
@on_trio()
async def test_requests_are_answered_in_every_form(
    serve: Serve, options: tuple[str, ...], revision: str
) -> None:
    """JSON or stream, session or none: an application must see no difference."""
    port = serve(*options)
    async with talking_over_http("mcp", port, revisions=[revision]) as talk:
        assert talk.client.peer.revision == revision
        names = await talk.names("tools/list")  # on several pages
        assert names[:2] == ["echo", "progress"]
        assert len(names) == len(set(names)) > 30
        assert await talk.text("echo", text="été ☃ \u2028") == "été ☃ \u2028"
        # Without a session, and without the field that came later, it cannot know the first one.
        first = revision == LEGACY_REVISIONS[0] and "--stateless" in options
        assert await talk.text("revision") == (LEGACY_REVISIONS[1] if first else revision)
        failed = await talk.call("fail")
        assert (failed["isError"], failed["content"][0]["text"]) == (True, "-32602: no luck")
        for method, params, code in (
            ("tools/call", {"name": "nothing"}, -32602),
            ("tools/list", {"cursor": "nowhere"}, -32602),
            ("x/unknown", {}, -32601),
            ("resources/read", {"uri": "test://no"}, -32602 if revision == MODERN else -32002),
        ):
            with pytest.raises(PeerError) as caught:
                await talk.client.request(method, params)
            assert caught.value.code == code
        large = "x" * 1_000_000
        assert await talk.text("echo", text=large) == large
    has_session = revision != MODERN and "--stateless" not in options
    assert len(traced(talk).sessions) == has_session
    assert traced(talk).requests("DELETE") == has_session


@FORMS
@ERAS
@on_trio()
async def test_many_requests_at_once_are_answered(
    serve: Serve, options: tuple[str, ...], revision: str
) -> None:
    """Each response must reach its own request."""
    answers: dict[int, str] = {}
    async with (
        talking_over_http("mcp", serve(*options), revisions=[revision]) as talk,
        trio.open_nursery() as nursery,
    ):

        async def ask(number: int) -> None:
            answers[number] = await talk.text("echo", text=f"{number}")

        for number in range(60):
            nursery.start_soon(ask, number)
    assert answers == {number: str(number) for number in range(60)}


@on_trio()
async def test_the_newest_revision_is_found(serve: Serve) -> None:
    """The server serves both eras, so the client must probe first."""
    async with talking_over_http("mcp", serve()) as talk:
        assert talk.client.peer.revision == MODERN
    assert traced(talk).sessions == []


# ------------------------------------------------------------------------- what is told on the way


@pytest.mark.parametrize("options", [(), ("--stateless",)], ids=["sessions", "stateless"])
@ERAS
@on_trio()
async def test_its_progress_and_logs_come_with_the_call(
    serve: Serve, options: tuple[str, ...], revision: str
) -> None:
    """Both must come on the stream of the call, before its response."""
    values: list[tuple[float, float | None]] = []
    async with talking_over_http("mcp", serve(*options), revisions=[revision]) as talk:
        params: JSONObject = {"name": "progress", "arguments": {"steps": 3}}
        await talk.client.request(
            "tools/call", params, on_progress=lambda value, total, _: values.append((value, total))
        )
        assert values == [(1, 3), (2, 3), (3, 3)]
        if revision == MODERN:
            params = {"name": "log", "arguments": {"level": "error", "message": "look"}}
            await talk.client.request("tools/call", params, log_level="warning")
            await talk.client.request("tools/call", params, log_level="alert")
            told = talk.notifications.of("notifications/message")
            assert told == [{"level": "error", "logger": "peer", "data": "look"}]


@on_trio()
async def test_what_belongs_to_no_request_comes_on_the_stream_of_the_session(serve: Serve) -> None:
    """The package sends changes and logs on the GET stream."""
    async with talking_over_http("mcp", serve(), revisions=[LEGACY]) as talk:
        await traced(talk).stream()
        await talk.request("resources/subscribe", uri=FIRST)
        assert await talk.text("touch", uri=FIRST) == "notified"
        told = await talk.notifications.wait("notifications/resources/updated")
        assert told == [{"uri": FIRST}]
        await talk.request("logging/setLevel", level="error")
        assert await talk.text("log", level="warning") == "suppressed"
        assert await talk.text("log", level="alert", message="look") == "sent"
        told = await talk.notifications.wait("notifications/message")
        assert told == [{"level": "alert", "logger": "peer", "data": "look"}]
        await talk.request("resources/unsubscribe", uri=FIRST)
        assert await talk.text("touch", uri=FIRST) == "not subscribed"


@on_trio()
async def test_its_changes_are_listened_to() -> None:
    """Two subscriptions, each on a stream of its own, must get their changes until they end."""
    with running(SERVER) as port:  # alone: one of the tools ends the subscriptions of everybody
        async with talking_over_http("mcp", port, revisions=[MODERN]) as talk:
            async with (
                talk.client.listen({"toolsListChanged": True}) as tools,
                talk.client.listen({"resourceSubscriptions": [FIRST]}) as resources,
            ):
                assert resources.notifications == {"resourceSubscriptions": [FIRST]}
                assert await talk.text("touch", uri=FIRST) == "published"
                assert await talk.text("change") == "published"
                method, params = await anext(resources)
                assert (method, params["uri"]) == ("notifications/resources/updated", FIRST)
                assert (await anext(tools))[0] == "notifications/tools/list_changed"
                assert await talk.text("hang_up") == "closed"
                assert [one async for one in resources] == []
                assert [one async for one in tools] == []
            assert await talk.text("echo", text="still here") == "still here"


# ---------------------------------------------------------------------------------------- questions


@pytest.mark.parametrize(
    ("revision", "options"),
    [
        (LEGACY, ()),
        (LEGACY, ("--json",)),
        (LEGACY, ("--store",)),
        (MODERN, ()),
        (MODERN, ("--json",)),
    ],
)
@on_trio()
async def test_its_questions_are_answered(
    serve: Serve, revision: str, options: tuple[str, ...]
) -> None:
    """In a session they come on the stream of the call, or on the GET stream with JSON
    responses; in 2026-07-28 they are a round of the call."""
    async with talking_over_http(
        "mcp",
        serve(*options),
        revisions=[revision],
        capabilities=CAPABILITIES,
        on_request=on_request,
    ) as talk:
        if revision == LEGACY:
            await traced(talk).stream()
        assert await talk.text("ask_elicit") == "accept: Ada"
        assert await talk.text("ask_sampling") == "a sample"
        assert await talk.text("ask_roots") == "file:///a/root"
        if revision == MODERN:
            assert await talk.text("pause") == "asked"  # a state, and no question


@on_trio()
async def test_it_cannot_ask_where_there_is_no_session(serve: Serve) -> None:
    """An answer could not reach the handler. The package raises before it sends the question,
    and the call must end all the same."""
    async with talking_over_http(
        "mcp",
        serve("--stateless"),
        revisions=[LEGACY],
        capabilities=CAPABILITIES,
        on_request=on_request,
    ) as talk:
        failed = await talk.call("ask_roots")
        assert failed["isError"] is True
        assert await talk.text("echo", text="still here") == "still here"


@ERAS
@on_trio()
async def test_a_question_that_is_refused_ends_the_call(serve: Serve, revision: str) -> None:
    """In a session the server gets the error; in 2026-07-28 only the caller does."""

    def refuse(call: Call) -> JSONObject:
        raise McpError(-1, "no user is here")

    async with talking_over_http(
        "mcp", serve(), revisions=[revision], capabilities=CAPABILITIES, on_request=refuse
    ) as talk:
        if revision == MODERN:
            with pytest.raises(McpError, match="no user is here"):
                await talk.call("ask_sampling")
        else:
            await traced(talk).stream()  # where it asks; what it asks before is lost
            failed = await talk.call("ask_sampling")
            assert failed["content"][0]["text"] == "-1: no user is here"


@on_trio()
async def test_nothing_is_asked_of_a_client_that_declared_nothing(serve: Serve) -> None:
    """The package asks without the capability; the question must be refused without reaching the
    application."""
    async with talking_over_http("mcp", serve(), revisions=[MODERN], reports={"MRTR-008"}) as talk:
        with pytest.raises(InvalidAnswer):
            await talk.call("ask_roots")
        assert await talk.text("echo", text="still here") == "still here"


# ----------------------------------------------------------------------------------------- endings


@pytest.mark.parametrize(
    ("revision", "options"),
    [
        (LEGACY, ()),
        (LEGACY, ("--json",)),
        (LEGACY, ("--store",)),
        (MODERN, ()),
        (MODERN, ("--json",)),
    ],
)
@on_trio()
async def test_a_cancelled_call_ends_on_its_side(
    serve: Serve, revision: str, options: tuple[str, ...]
) -> None:
    """The cancellation is a notification in a session, and a disconnect in 2026-07-28."""
    name = f"{revision} {options}"
    late = () if revision == MODERN or "--json" in options else ("CANC-011",)
    async with talking_over_http(
        "mcp", serve(*options), revisions=[revision], reports=late
    ) as talk:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: talk.call("hang", name=name))
            await talk.text("await_start", name=name)
            nursery.cancel_scope.cancel()
        if revision == MODERN and "--json" in options:
            # The package does not look for the end of a connection while it works on a JSON answer.
            assert await talk.text("echo", text="still here") == "still here"
        else:
            assert await talk.text("await_ending", name=name) == "it has ended"
        for rule in late:
            await talk.trace.reported(rule)


@on_trio()
async def test_a_session_that_was_ended_elsewhere_is_opened_anew(serve: Serve) -> None:
    """An unknown session gets 404, and the call must be sent in a new one."""
    port = serve()
    async with talking_over_http(
        "mcp", port, revisions=[LEGACY], incidents={"SessionLost"}
    ) as talk:
        assert await talk.text("echo", text="a") == "a"
        (session,) = traced(talk).sessions
        await end_session(port, session)
        assert await talk.text("echo", text="b") == "b"
        assert await talk.text("echo", text="c") == "c"
        await traced(talk).stream(2)
        await talk.request("resources/subscribe", uri=FIRST)
        await talk.text("touch", uri=FIRST)
        await talk.notifications.wait("notifications/resources/updated")  # on a new stream
    assert len(traced(talk).sessions) == 2
    assert traced(talk).requests("DELETE") == 1


# ------------------------------------------------------------------------------ streams that break


@on_trio()
async def test_an_answer_is_fetched_where_the_stream_was_left(serve: Serve) -> None:
    """The server closes the stream of a call and keeps its response, which the client must
    fetch."""
    async with talking_over_http("mcp", serve("--store"), revisions=[LEGACY]) as talk:
        await traced(talk).stream()
        assert await talk.text("leave") == "left"
    assert traced(talk).requests("GET") == 2
    assert b"\r\nlast-event-id: " in b"".join(traced(talk).sent_data).lower()


@on_trio()
async def test_an_answer_comes_after_the_client_is_back(serve: Serve) -> None:
    """Messages that were sent meanwhile must arrive once."""
    values: list[float] = []
    async with talking_over_http("mcp", serve("--store"), revisions=[LEGACY]) as talk:
        params: JSONObject = {"name": "leave_until_back", "arguments": {}}
        result: Any = await talk.client.request(
            "tools/call", params, on_progress=lambda value, total, _: values.append(value)
        )
        assert result["content"][0]["text"] == "back"
    assert values == [1, 2]


@on_trio()
async def test_the_stream_of_a_session_is_taken_up_again(serve: Serve) -> None:
    """Messages that were sent while the stream was broken must arrive after it is resumed."""
    async with talking_over_http("mcp", serve("--store"), revisions=[LEGACY]) as talk:
        await traced(talk).stream()
        await talk.request("resources/subscribe", uri=FIRST)
        # The package names no event when that stream begins, but with the first that it tells.
        assert await talk.text("touch", uri=FIRST) == "notified"
        await talk.notifications.wait("notifications/resources/updated")
        for count in (2, 3):
            assert await talk.text("leave_listener") == "left"
            await talk.notifications.wait("notifications/resources/updated", count)


# ------------------------------------------------------------------------------------- who it is


@ERAS
@on_trio()
async def test_a_token_is_shown_when_it_is_asked_for(serve: Serve, revision: str) -> None:
    """The challenge must lead to the metadata of the server."""
    seen: list[AuthorizationRequired] = []

    def show(refused: AuthorizationRequired) -> list[tuple[str, str]]:
        seen.append(refused)
        return [("Authorization", "Bearer the-token")]

    port = serve("--token", "the-token")
    async with talking_over_http(
        "mcp",
        port,
        revisions=[revision],
        on_unauthorized=show,
        incidents={"AuthorizationRequired"},
    ) as talk:
        assert await talk.text("echo", text="a") == "a"
    (refused,) = seen
    (challenge,) = refused.challenges
    assert (refused.status, challenge.scheme) == (401, "bearer")
    assert challenge.parameters["error"] == "invalid_token"
    assert "oauth-protected-resource" in challenge.parameters["resource_metadata"]

    with pytest.raises(RequestRefused) as caught:
        async with talking_over_http("mcp", port, revisions=[revision]):
            pass
    assert caught.value.status == 401
