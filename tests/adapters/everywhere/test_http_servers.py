"""The errors that callers get from HTTP servers, good and bad, with every client adapter."""

import json
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, JSONObject
from sansmcp_io import ConnectionLost, InvalidAnswer, PeerError, RequestRefused
from tests.adapters.everywhere.shims import SECONDS, SHIMS, Client, Shim
from tests.support.http.scripted import Asked, scripted
from tests.support.modern import discovered

ERAS = pytest.mark.parametrize("revision", [LEGACY_REVISIONS[-1], MODERN_REVISIONS[-1]])
Reply = Callable[[Asked], object]
BUSY: JSONObject = {"code": -32000, "message": "rate limited"}
ANY: JSONObject = {"name": "any", "arguments": {}}


@pytest.fixture(params=["trio over HTTP", "asyncio over HTTP", "blocking over HTTP"])
def shim(request: pytest.FixtureRequest) -> Shim:
    """Each client that speaks HTTP."""
    return SHIMS[request.param]


def connecting(shim: Shim, url: str, **options: Any) -> AbstractAsyncContextManager[Client]:
    """Open a client of this server."""
    return shim.connect([url], **options)


def opening(reply: Reply) -> Reply:
    """A server that can be opened in both eras, and answers further requests with `reply`."""

    def answer(asked: Asked) -> None:
        if asked.message.get("method") == "server/discover":
            asked.result(discovered())
        elif not asked.open_session("s"):
            reply(asked)

    return answer


def error(asked: Asked, code: int, message: str, status: int, **headers: str) -> None:
    """Answer a request with an error and a status."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    asked.error(code, message, status, fields)


def busy(asked: Asked) -> None:
    error(asked, -32000, "rate limited", 429, retry_after="7")


@ERAS
async def test_error_says_its_status_and_when_to_come_again(shim: Shim, revision: str) -> None:
    """Neighbour of case c287: a caller that has to retry later needs the time from
    `Retry-After`."""
    with scripted(opening(busy)) as url:
        async with connecting(shim, url, revisions=[revision]) as client:
            for ask in (client.request("tools/call", ANY), client.items("tools/list")):
                with pytest.raises(PeerError, match="rate limited") as caught:
                    await ask
                assert (caught.value.code, caught.value.status) == (-32000, 429)
                assert caught.value.retry_after == 7.0


@ERAS
async def test_error_that_opens_nothing_says_its_status_too(shim: Shim, revision: str) -> None:
    """An error that refuses the first request must have its status like any other."""
    with scripted(busy) as url:
        with pytest.raises(PeerError, match="rate limited") as caught:
            async with connecting(shim, url, revisions=[revision]):
                pass
        assert (caught.value.status, caught.value.retry_after) == (429, 7.0)


async def test_subscription_that_is_refused_says_its_status(shim: Shim) -> None:
    """A refused subscription must raise the error with its status, as a refused call does."""
    with scripted(opening(busy)) as url:
        async with connecting(shim, url, revisions=MODERN_REVISIONS) as client:
            with pytest.raises(PeerError, match="rate limited") as caught:
                async with client.listen({"toolsListChanged": True}):
                    pass
            assert (caught.value.status, caught.value.retry_after) == (429, 7.0)


async def test_error_in_a_good_response_has_its_status(shim: Shim) -> None:
    """Before 2026-07-28 most errors come with status 200, and the exception must say so."""
    reply = opening(lambda asked: error(asked, -32602, "no such tool", 200))
    with scripted(reply) as url:
        async with connecting(shim, url, revisions=LEGACY_REVISIONS) as client:
            with pytest.raises(PeerError) as caught:
                await client.request("tools/call", ANY)
            assert (caught.value.status, caught.value.retry_after) == (200, None)


@ERAS
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>maintenance</html>", "not JSON"),
        (b"", "it is empty"),
        (b"[]", "batch"),
        (b'{"ok": true}', "neither"),
        (b'{"jsonrpc": "2.0", "method": "notifications/x"}', "answers no request"),
    ],
)
async def test_body_that_is_no_answer_says_what_it_is(
    shim: Shim, revision: str, body: bytes, said: str
) -> None:
    """The page of a proxy that claims to be JSON was described in the log alone, and not in the
    exception.
    """
    fields = {"content-type": "application/json"}
    with scripted(opening(lambda asked: asked.reply(200, body, fields))) as url:
        async with connecting(shim, url, revisions=[revision]) as client:
            with pytest.raises(InvalidAnswer) as caught:
                await client.request("tools/call", ANY)
            assert caught.value.result is None
            assert "status 200" in str(caught.value)
            assert said in str(caught.value)
            with pytest.raises(InvalidAnswer, match="status 200"):
                await client.items("tools/list")


@ERAS
async def test_result_that_is_refused_can_be_looked_at(shim: Shim, revision: str) -> None:
    """Neighbour of case c274: the event had the refused result, but the exception did not."""
    refused: JSONObject = {"content": "no list", "resultType": "complete"}
    with scripted(opening(lambda asked: asked.result(refused))) as url:
        async with connecting(shim, url, revisions=[revision]) as client:
            with pytest.raises(InvalidAnswer) as caught:
                await client.request("tools/call", ANY)
            assert caught.value.result == refused


@ERAS
async def test_listing_that_is_refused_says_why(shim: Shim, revision: str) -> None:
    """The exception said only that a page was refused, and lost its status."""
    with scripted(opening(lambda asked: asked.reply(502))) as url:
        async with connecting(shim, url, revisions=[revision]) as client:
            with pytest.raises(RequestRefused, match="tools/list with status 502"):
                await client.items("tools/list")


@ERAS
async def test_listing_whose_connection_breaks_says_why(shim: Shim, revision: str) -> None:
    """A listing must fail with the same text as a request."""
    with scripted(opening(lambda asked: asked.hang_up())) as url:
        async with connecting(shim, url, revisions=[revision]) as client:
            with pytest.raises(ConnectionLost, match="without a response"):
                await client.items("tools/list")


async def test_call_that_is_refused_for_its_session_is_made_in_the_next(shim: Shim) -> None:
    """After a restart of the server the caller had to repeat a call that had never run."""
    sessions: list[str] = []
    refused: list[str] = []

    def answer(asked: Asked) -> None:
        method = asked.message.get("method")
        if method == "initialize":
            sessions.append(f"s{len(sessions)}")
        elif asked.headers.get("mcp-session-id") != sessions[-1]:
            refused.append(method or asked.command)
            asked.reply(404)
            return
        if not asked.open_session(sessions[-1]):
            asked.result({"content": [], "tools": []})

    with scripted(answer) as url:
        async with connecting(shim, url, revisions=LEGACY_REVISIONS, get_stream=False) as client:
            await client.request("tools/call", ANY)  # the server knows by now that it is open
            asks: list[Callable[[], Awaitable[object]]] = [
                partial(client.request, "tools/call", ANY),
                partial(client.items, "tools/list"),
                client.ping,
            ]
            for number, ask in enumerate(asks):
                assert len(sessions) == number + 1
                sessions[-1] = "forgotten"
                await ask()
    assert refused == ["tools/call", "tools/list", "ping"]


async def test_call_under_way_when_its_session_is_lost_is_made_in_the_next(shim: Shim) -> None:
    """When the GET stream was refused first, a call that the server had not run ended as lost."""
    sessions = iter("ab")
    is_under_way, is_lost = threading.Event(), threading.Event()
    called: list[str | None] = []

    def answer(asked: Asked) -> None:
        method, session = asked.message.get("method"), asked.headers.get("mcp-session-id")
        if method == "initialize":
            session = next(sessions)
            if session == "b":
                is_lost.set()
            asked.open_session(session)
        elif method == "tools/list":
            asked.result({"tools": []})
        elif method == "tools/call":
            called.append(session)
            if session == "b":
                asked.result({"content": []})
                return
            is_under_way.set()
            is_lost.wait(SECONDS)
            asked.reply(404)
        elif asked.command == "GET" and session == "a":
            is_under_way.wait(SECONDS)
            asked.reply(404)
        else:
            asked.open_session()

    with scripted(answer) as url:
        async with connecting(shim, url, revisions=LEGACY_REVISIONS) as client:
            assert await client.items("tools/list") == []
            assert await client.request("tools/call", ANY) == {"content": []}
    assert called == ["a", "b"]
    assert is_lost.is_set()


async def test_progress_of_call_in_lost_session_comes(shim: Shim) -> None:
    """Without the progress of the repeated call, a long call would time out."""
    is_under_way, is_lost = threading.Event(), threading.Event()

    def answer(asked: Asked) -> None:
        method, session = asked.message.get("method"), asked.headers.get("mcp-session-id")
        if method == "initialize":
            if is_under_way.is_set():
                is_lost.set()
            asked.open_session("b" if is_under_way.is_set() else "a")
        elif method == "tools/call":
            is_under_way.set()
            is_lost.wait(SECONDS)
            token = asked.message["params"]["_meta"]["progressToken"]
            progress: JSONObject = {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": token, "progress": 1.0},
            }
            result: JSONObject = {
                "jsonrpc": "2.0",
                "id": asked.message["id"],
                "result": {"content": []},
            }
            asked.stream(*(f"data: {json.dumps(message)}" for message in (progress, result)))
        elif asked.command == "GET" and session == "a":
            is_under_way.wait(SECONDS)
            asked.reply(404)
        elif not asked.open_session():
            asked.result({"tools": []})

    told: list[float] = []

    def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    with scripted(answer) as url:
        async with connecting(shim, url, revisions=LEGACY_REVISIONS) as client:
            assert await client.items("tools/list") == []
            await client.request("tools/call", ANY, on_progress=on_progress)
    assert told == [1.0]


async def test_call_that_is_refused_for_each_session_names_the_cause(shim: Shim) -> None:
    """A process that has died is the first cause to look for. If it happens again and again,
    workers that keep sessions in memory refuse the sessions of each other.
    """

    def answer(asked: Asked) -> None:
        if not asked.open_session("s"):
            asked.reply(404)

    with scripted(answer) as url:
        async with connecting(shim, url, revisions=LEGACY_REVISIONS, get_stream=False) as client:
            with pytest.raises(ConnectionLost, match=r"has died; if this .* several workers"):
                await client.request("tools/call", ANY)


# ------------------------------------------------------------------------------- authorization


def wanting(token: str) -> Reply:
    """A server of 2026-07-28 that serves requests with this `Authorization` header only."""

    def answer(asked: Asked) -> None:
        if asked.headers.get("authorization") != token:
            asked.reply(401, b"", {"www-authenticate": 'Bearer realm="r"'})
        elif asked.message.get("method") == "server/discover":
            asked.result(discovered())
        else:
            asked.result({"content": [], "resultType": "complete"})

    return answer


async def test_headers_may_be_a_mapping(shim: Shim) -> None:
    """Most HTTP libraries take headers as a mapping; here its names were taken for pairs."""

    def show(refused: object) -> dict[str, str]:
        return {"Authorization": "first"}

    with scripted(wanting("first")) as url:
        async with connecting(shim, url, headers={"Authorization": "first"}) as client:
            await client.request("tools/call", ANY)
        async with connecting(shim, url, on_unauthorized=show) as client:
            await client.request("tools/call", ANY)


async def test_what_on_unauthorized_raises_is_the_cause_where_somebody_waits(shim: Shim) -> None:
    """The exception of `on_unauthorized` was only logged, and the caller learned nothing of it."""

    def sign_in(refused: object) -> None:
        raise OSError("the keychain is locked")

    with scripted(wanting("any")) as url:
        with pytest.raises(RequestRefused, match="on_unauthorized raised OSError") as caught:
            async with connecting(shim, url, on_unauthorized=sign_in):
                pass
        assert isinstance(caught.value.__cause__, OSError)
        assert "keychain" in str(caught.value.__cause__)
        assert (caught.value.status, len(caught.value.challenges)) == (401, 1)


# ---------------------------------------------------------------- connections that were kept


def closing(times: int, seen: list[str]) -> Reply:
    """A server that closes a connection this number of times when a request comes on it."""

    def answer(asked: Asked) -> None:
        seen.append(asked.message["method"])
        if len(seen) <= times:
            asked.hang_up()
        else:
            asked.result({"content": [], "tools": []})

    return opening(answer)


async def test_request_that_crosses_the_end_of_its_connection_is_made_again(shim: Shim) -> None:
    """Servers close idle connections; a request that may be repeated must not be lost because of
    that.
    """
    seen: list[str] = []
    with scripted(closing(1, seen)) as url:
        async with connecting(shim, url, revisions=LEGACY_REVISIONS, get_stream=False) as client:
            assert await client.items("tools/list") == []
    assert seen == ["tools/list", "tools/list"]


async def test_request_that_is_made_again_is_not_made_a_third_time(shim: Shim) -> None:
    """A server that closes the connection on each attempt would get the request for ever."""
    seen: list[str] = []
    with scripted(closing(10, seen)) as url:
        async with connecting(shim, url, revisions=LEGACY_REVISIONS, get_stream=False) as client:
            with pytest.raises(ConnectionLost, match="without a response"):
                await client.items("tools/list")
    assert seen == ["tools/list", "tools/list"]


async def test_call_that_crosses_the_end_of_its_connection_is_lost(shim: Shim) -> None:
    """The server may have run the call, and only the caller knows whether it may run twice."""
    seen: list[str] = []
    with scripted(closing(10, seen)) as url:
        async with connecting(shim, url, revisions=LEGACY_REVISIONS, get_stream=False) as client:
            with pytest.raises(
                ConnectionLost, match="Whether the server ran this one is not known"
            ):
                await client.request("tools/call", ANY)
    assert seen == ["tools/call"]


async def test_conversation_comes_back_when_it_is_asked_again(shim: Shim) -> None:
    """A server that was down for a minute ended the conversation of its clients for good."""
    broken: list[int] = []
    sessions: list[str] = []

    def answer(asked: Asked) -> None:
        if broken:
            asked.reply(broken[0])
            return
        if asked.message.get("method") == "initialize":
            sessions.append(f"s{len(sessions)}")
        if asked.headers.get("mcp-session-id") in sessions[:-1]:
            asked.reply(404)
        elif not asked.open_session(sessions[-1]):
            asked.result({"content": [], "tools": []})

    asks: list[Callable[[Client], Awaitable[object]]] = [
        lambda client: client.request("tools/call", ANY),
        lambda client: client.items("tools/list"),
        lambda client: client.ping(),
    ]
    with scripted(answer) as url:
        async with connecting(shim, url, revisions=LEGACY_REVISIONS, get_stream=False) as client:
            for ask in asks:
                await client.request("tools/call", ANY)
                broken.append(404)
                for _ in range(3):
                    with pytest.raises(RequestRefused) as caught:
                        await ask(client)
                    assert caught.value.status == 404
                broken.clear()
                await ask(client)
    assert len(sessions) == 4


REFUSALS: list[tuple[int, bytes, dict[str, str]]] = [
    (401, b"", {"www-authenticate": 'Bearer realm="r"'}),
    (500, b"", {}),
    (429, b"", {"retry-after": "7"}),
    (429, json.dumps({"jsonrpc": "2.0", "id": None, "error": BUSY}).encode(), {"retry-after": "7"}),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=["401", "500", "429", "429 with an error"])
async def test_call_says_why_no_session_could_be_opened(
    shim: Shim, refusal: tuple[int, bytes, dict[str, str]]
) -> None:
    """The error said that the session was lost, and hid the server's response to `initialize`."""
    status, body, headers = refusal
    restarted: list[bool] = []

    def answer(asked: Asked) -> None:
        if asked.message.get("method") == "initialize" and restarted:
            asked.reply(status, body, {"content-type": "application/json", **headers})
        elif restarted:
            asked.reply(404)
        elif not asked.open_session("s"):
            asked.result({"content": [], "tools": []})

    asks: list[Callable[[Client], Awaitable[object]]] = [
        lambda client: client.request("tools/call", ANY),
        lambda client: client.items("tools/list"),
        lambda client: client.ping(),
    ]
    for ask in asks:
        restarted.clear()
        with scripted(answer) as url:
            async with connecting(
                shim, url, revisions=LEGACY_REVISIONS, get_stream=False
            ) as client:
                await client.request("tools/call", ANY)
                restarted.append(True)
                for _ in range(3):  # first what has lost the session, then what is not sent
                    with pytest.raises(RequestRefused, match=r"no new .*could be opened") as caught:
                        await ask(client)
                    assert caught.value.status == status
                    assert caught.value.retry_after == (7 if headers.get("retry-after") else None)
                    assert len(caught.value.challenges) == ("www-authenticate" in headers)
                    assert ("rate limited" if body else str(status)) in str(caught.value)
                restarted.clear()
                await ask(client)


@pytest.mark.parametrize("refusal", REFUSALS, ids=["401", "500", "429", "429 with an error"])
async def test_call_that_may_run_is_lost_where_no_session_could_be_opened(
    shim: Shim, refusal: tuple[int, bytes, dict[str, str]]
) -> None:
    """A caller that repeats a refused call would have run this one twice."""
    status, body, headers = refusal
    restarted, running, done = threading.Event(), threading.Event(), threading.Event()

    def answer(asked: Asked) -> None:
        if asked.message.get("params", {}).get("name") == "slow":
            running.set()
            done.wait(SECONDS)
            asked.hang_up()
        elif asked.message.get("method") == "initialize" and restarted.is_set():
            asked.reply(status, body, {"content-type": "application/json", **headers})
        elif restarted.is_set():
            running.wait(SECONDS)
            asked.reply(404)
        elif not asked.open_session("s"):
            asked.result({"content": []})

    with scripted(answer) as url:
        async with connecting(shim, url, revisions=LEGACY_REVISIONS, get_stream=False) as client:

            async def slow() -> None:
                with pytest.raises(ConnectionLost, match=r"no new .*could be opened") as caught:
                    await client.request("tools/call", {"name": "slow", "arguments": {}})
                cause: Any = caught.value.__cause__
                assert isinstance(cause, PeerError if body else RequestRefused)
                assert cause.status == status
                assert cause.retry_after == (7 if headers.get("retry-after") else None)

            async def refused() -> None:
                with pytest.raises(RequestRefused, match=r"no new .*could be opened") as caught:
                    await client.request("tools/call", ANY)
                assert caught.value.status == status

            await client.request("tools/call", ANY)
            restarted.set()
            try:
                await shim.at_once(slow, refused)
            finally:
                done.set()


async def test_call_says_that_nobody_listens_any_more(shim: Shim) -> None:
    """A call without an HTTP status must end as a lost connection, with the cause in its text."""
    restarted: list[bool] = []

    def answer(asked: Asked) -> None:
        if asked.message.get("method") == "initialize" and restarted:
            asked.hang_up()
        elif restarted:
            asked.reply(404)
        elif not asked.open_session("s"):
            asked.result({"content": []})

    with scripted(answer) as url:
        async with connecting(shim, url, revisions=LEGACY_REVISIONS, get_stream=False) as client:
            await client.request("tools/call", ANY)
            restarted.append(True)
            for _ in range(3):
                with pytest.raises(ConnectionLost, match=r"no new .*could be opened") as caught:
                    await client.request("tools/call", ANY)
                assert isinstance(caught.value.__cause__, ConnectionLost)
                assert str(caught.value.__cause__) in str(caught.value)
