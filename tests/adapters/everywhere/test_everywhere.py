"""Behaviour that users may rely on with every adapter, on both sides of the conversation."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, Cache, JSONObject
from sansmcp_io import ConnectionLost, McpError, PeerError, RequestTimeout
from tests.adapters.everywhere.server import NAMES, RAISED, Waiting
from tests.adapters.everywhere.shims import INFO, SECONDS, Client, Shim
from tests.support.processes import ROOT, bad, call_bad, has_children

MODERN = MODERN_REVISIONS[-1]
LEGACY = LEGACY_REVISIONS[-1]
ROOTS: JSONObject = {"roots": [{"uri": "file:///home"}]}
CAPABILITIES: JSONObject = {"roots": {}}
process = pytest.mark.process
"""What concerns the process at the other end of a pipe."""
both_eras = pytest.mark.parametrize("revision", [LEGACY, MODERN])


TASK_WITH_PROGRESS = """
import json
from tests.support.programs.bad_servers import answer, requests, write

STAMP = "2025-11-25T00:00:00Z"
TASK = {"taskId": "1", "status": "working", "ttl": 1000, "createdAt": STAMP, "lastUpdatedAt": STAMP}
TASKS = {"requests": {"tools": {"call": {}}}}
for message in requests():
    match message["method"]:
        case "initialize":
            opening = json.loads(answer(message))
            opening["result"]["capabilities"]["tasks"] = TASKS
            write(json.dumps(opening).encode() + b"\\n")
        case "tools/call":
            token = message["params"]["_meta"]["progressToken"]
            write(answer(message, {"task": TASK}))
        case _:
            params = {"progressToken": token, "progress": 1}
            note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            write(json.dumps(note).encode() + b"\\n" + answer(message, {"tools": []}))
"""
"""A server whose task tells of progress when the next request comes."""


LARGE_CHANGES = r"""
import json, sys

TAG = "io.modelcontextprotocol/subscriptionId"

def write(**message):
    text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False)
    sys.stdout.buffer.write(text.encode() + b"\n")

for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" not in message:
        continue
    listing = {"tools": [], "ttlMs": 0, "cacheScope": "private"}
    result = {"resultType": "complete", **listing}
    match message["method"]:
        case "server/discover":
            result["supportedVersions"] = ["2026-07-28"]
            result["capabilities"] = {"tools": {}, "resources": {"subscribe": True}}
            write(id=message["id"], result=result)
        case "subscriptions/listen":
            meta = {TAG: message["id"]}
            params = {"_meta": meta, "notifications": message["params"]["notifications"]}
            write(method="notifications/subscriptions/acknowledged", params=params)
        case _:
            for number in [*range(24), 23]:
                uri = f"file:///a/{number}"
                params = {"_meta": meta, "uri": uri, "x": "\U0001f600" + "x" * 3_700_000}
                write(method="notifications/resources/updated", params=params)
            write(id=message["id"], result=result)
    sys.stdout.buffer.flush()
"""
"""A server that tells of 24 changes when the next request comes, each of which takes 15 MB."""


def call_tool(name: str, **arguments: object) -> tuple[str, JSONObject]:
    return "tools/call", {"name": name, "arguments": arguments}


async def text(client: Client, name: str, **arguments: object) -> str:
    result = await client.request(*call_tool(name, **arguments))
    value: str = result["content"][0]["text"]
    return value


async def until_seen(client: Client, number: int) -> None:
    """Wait until this number of handlers was cancelled; some loops run the cancellation later."""
    while await text(client, "seen") != " ".join(["cancelled"] * number):
        pass


async def list_roots(waiting: Waiting, call: Any) -> JSONObject:
    if call.method == "roots/list":
        return ROOTS
    raise McpError(-32601, "no such method")


@dataclass
class Roots:
    """The answer to a question as a class of the program."""

    roots: list[JSONObject]


async def answer_with_objects(waiting: Waiting, call: Any) -> Roots:
    return Roots(ROOTS["roots"])


# --------------------------------------------------------------------------------- conversations


@pytest.mark.parametrize("revision", [*LEGACY_REVISIONS, MODERN])
async def test_every_revision_is_spoken(shim: Shim, any_serving: list[str], revision: str) -> None:
    """Both sides must agree on a revision that they share, and serve in it."""
    async with shim.connect(any_serving, revisions=[revision]) as client:
        assert client.peer.revision == revision
        assert client.peer.info is not None
        assert client.peer.info["name"] == "everywhere"
        assert await text(client, "revision") == revision


@both_eras
async def test_calls_and_their_errors(shim: Shim, serving: list[str], revision: str) -> None:
    """A tool that fails has a result; only a call that could not be made at all is an error."""
    async with shim.connect(serving, revisions=[revision]) as client:
        assert await text(client, "echo", text="été ☃\u2028") == "été ☃\u2028"
        assert (await client.request(*call_tool("fail")))["isError"] is True
        for method, params, code in (
            (*call_tool("unknown"), -32602),
            ("custom/unknown", {}, -32601),
            (*call_tool("break"), -32603),
        ):
            with pytest.raises(PeerError) as caught:
                await client.request(method, params)
            assert caught.value.code == code
            assert "secret" not in caught.value.message
        assert await text(client, "echo", text="still here") == "still here"


@both_eras
async def test_handlers_may_return_objects(shim: Shim, serving: list[str], revision: str) -> None:
    """A program that has classes for results need not convert them, on either side."""
    options: Any = {"capabilities": CAPABILITIES, "on_request": answer_with_objects}
    async with shim.connect(serving, revisions=[revision], **options) as client:
        result = await client.request(*call_tool("object"))
        assert result["content"] == [{"type": "text", "text": "shown"}]
        assert "isError" not in result
        with pytest.raises(PeerError) as caught:
            await client.request(*call_tool("odd object"))
        assert (caught.value.code, caught.value.message) == (-32603, "internal error")
        question = "ask" if revision == LEGACY else "require"
        assert await text(client, question) == ROOTS["roots"][0]["uri"]


@both_eras
async def test_listings_are_read_to_their_end(
    shim: Shim, serving: list[str], revision: str
) -> None:
    """A listing in pages must be one list for its reader."""
    async with shim.connect(serving, revisions=[revision]) as client:
        assert [tool["name"] for tool in await client.items("tools/list")] == NAMES


@both_eras
async def test_progress_is_told_before_the_answer(
    shim: Shim, serving: list[str], revision: str
) -> None:
    """Progress is useless after the response."""
    told: list[tuple[float, float | None]] = []

    def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total))

    async with shim.connect(serving, revisions=[revision]) as client:
        await client.request(*call_tool("count"), on_progress=on_progress)
    assert told == [(1, 3), (2, 3), (3, 3)]


@both_eras
@pytest.mark.parametrize("error", [ZeroDivisionError("on_progress"), SystemExit(3)], ids=repr)
async def test_exception_of_on_progress_comes_out_of_its_call(
    shim: Shim, serving: list[str], revision: str, error: BaseException
) -> None:
    """The exception was only logged, and the caller went on waiting for the response."""

    def fail(progress: float, total: float | None, message: str | None) -> None:
        raise error

    async with shim.connect(serving, revisions=[revision]) as client:

        async def ask_in_vain() -> None:
            with pytest.raises(type(error)) as caught:
                await client.request(*call_tool("hang"), on_progress=fail)
            assert caught.value is error
            await until_seen(client, 1)  # the cancellation

        async def ask_beside() -> None:
            for number in range(10):
                assert await text(client, "echo", text=str(number)) == str(number)

        await shim.at_once(ask_in_vain, ask_beside)
        with pytest.raises(type(error)):  # even if the answer comes with the progress
            await client.request(*call_tool("count"), on_progress=fail)
        assert await text(client, "echo", text="on") == "on"


@process
async def test_exception_of_on_progress_after_the_end_of_its_call_is_logged(
    shim: Shim, caplog: pytest.LogCaptureFixture
) -> None:
    """A task reports progress after the request that created it was answered, when no caller is
    left to raise to.
    """
    told: list[float] = []

    def fail(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)
        raise ZeroDivisionError

    command = [sys.executable, "-c", TASK_WITH_PROGRESS]
    async with shim.connect(command, revisions=[LEGACY]) as client:
        await client.request("tools/call", {"name": "slow", "task": {}}, on_progress=fail)
        await client.request("tools/list")  # the progress comes before the answer to this
    assert told == [1]
    assert caplog.messages == ["on_progress failed"]


class AsyncObject:
    async def __call__(self, *progress: object) -> None:
        raise AssertionError("this is not to be called")


async def test_async_on_progress_is_refused(shim: Shim, serving: list[str]) -> None:
    """The coroutine of an async `on_progress` would never be awaited, and its caller would see no
    progress.
    """
    wrong = AsyncObject()

    def hidden(progress: float, total: float | None, message: str | None) -> object:
        return wrong(progress, total, message)

    async with shim.connect(serving) as client:
        for on_progress in (wrong, wrong.__call__, partial(wrong.__call__), hidden):
            with pytest.raises(TypeError, match=r"on_progress .* async"):
                await client.request(*call_tool("count"), on_progress=on_progress)
        assert await text(client, "echo", text="on") == "on"


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
async def test_exception_of_on_progress_of_a_server_comes_out_of_its_call(
    shim: Shim, any_serving: list[str], is_async: bool
) -> None:
    """Handlers that ask with `call.request` must get the exceptions of their `on_progress` like
    other callers.
    """
    ended: list[str] = []

    async def hesitate(waiting: Waiting, call: Any) -> JSONObject:
        call.progress(1)
        try:
            await waiting.until_cancelled(call)
        finally:
            ended.append(call.method)
        return ROOTS

    async with shim.connect(
        any_serving, revisions=[LEGACY], capabilities=CAPABILITIES, on_request=hesitate
    ) as client:
        name = await text(client, "fail on progress", is_async=is_async)
        assert await text(client, "echo", text="on") == "on"
    assert name == ("TypeError" if is_async else "ZeroDivisionError")
    assert ended == ([] if is_async else ["roots/list"])


async def test_exception_of_on_notification_harms_nothing(
    shim: Shim, serving: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """No caller waits for the callback, so its exception can only be logged."""

    def fail(method: str, params: JSONObject) -> None:
        raise ZeroDivisionError

    def run(method: str, params: JSONObject) -> Any:
        if shim.name == "blocking":
            return AsyncObject()()  # which looked like a plain function
        raise ZeroDivisionError

    for on_notification in (fail, run):
        caplog.clear()
        async with shim.connect(
            serving, revisions=[MODERN], on_notification=on_notification
        ) as client:
            await client.request(*call_tool("log"), log_level="info")
            assert await text(client, "echo", text="on") == "on"
        assert "on_notification failed" in caplog.messages


async def test_pings_are_answered(shim: Shim, serving: list[str]) -> None:
    """A ping must get a response, or the peer seems to be dead."""
    async with shim.connect(serving, revisions=[LEGACY]) as client:
        assert 0 <= await client.ping() < 30


@both_eras
async def test_log_messages_come_before_the_answer_that_they_belong_to(
    shim: Shim, serving: list[str], revision: str
) -> None:
    """Log messages of a call must arrive before its response."""
    told: list[JSONObject] = []

    def on_notification(method: str, params: JSONObject) -> None:
        told.append(params)

    async with shim.connect(
        serving, revisions=[revision], on_notification=on_notification
    ) as client:
        if revision == LEGACY:
            await client.request("logging/setLevel", {"level": "info"})
        level = None if revision == LEGACY else "info"
        await client.request(*call_tool("log"), log_level=level)
        assert [params["data"] for params in told] == ["hello"]


# ------------------------------------------------------------------------------------- questions


async def test_server_asks_within_a_call(shim: Shim, any_serving: list[str]) -> None:
    """A server and a client that wait for each other must not wait for ever."""
    async with shim.connect(
        any_serving, revisions=[LEGACY], capabilities=CAPABILITIES, on_request=list_roots
    ) as client:
        assert await text(client, "ask") == "file:///home"


async def test_modern_client_is_asked_by_require_input_alone(
    shim: Shim, any_serving: list[str]
) -> None:
    """The error of `call.request` must name `RequireInput`, which replaces it in 2026-07-28."""
    async with shim.connect(
        any_serving, revisions=[MODERN], capabilities=CAPABILITIES, on_request=list_roots
    ) as client:
        refusals = json.loads(await text(client, "ask in vain"))
    assert len(refusals) == 2
    assert set(refusals) == {
        "roots/list was not sent: in revision 2026-07-28 a server sends no requests; to ask the "
        "client, a handler returns RequireInput (the verb is require_input) [STATE-006]"
    }


async def test_client_asks_within_what_it_is_asked(shim: Shim, serving: list[str]) -> None:
    """A client may need a call to answer a question, so each side must serve while it waits."""
    clients: list[Client] = []

    async def ask_back(waiting: Waiting, call: Any) -> JSONObject:
        return {"roots": [{"uri": "file:///" + await text(clients[0], "echo", text="back")}]}

    async with shim.connect(
        serving, revisions=[LEGACY], capabilities=CAPABILITIES, on_request=ask_back
    ) as client:
        clients.append(client)
        assert await text(client, "ask") == "file:///back"


@both_eras
async def test_input_is_given_when_it_is_required(
    shim: Shim, serving: list[str], revision: str
) -> None:
    """One handler on either side must work for questions of both eras."""
    async with shim.connect(
        serving, revisions=[revision], capabilities=CAPABILITIES, on_request=list_roots
    ) as client:
        assert await text(client, "require") == "file:///home"


async def test_refusal_to_give_input_is_raised_where_the_call_was_made(
    shim: Shim, serving: list[str]
) -> None:
    """When the client's handler refuses to answer, its caller must get the error, and no further
    round is sent.
    """

    async def refuse(waiting: Waiting, call: Any) -> JSONObject:
        raise McpError(-32000, "none of your business")

    async with shim.connect(
        serving, revisions=[MODERN], capabilities=CAPABILITIES, on_request=refuse
    ) as client:
        with pytest.raises(McpError, match="none of your business"):
            await client.request(*call_tool("require"))
        assert await text(client, "echo", text="on") == "on"


# ---------------------------------------------------------------------------------- cancellation


@both_eras
async def test_caller_that_is_cancelled_cancels_the_handler(
    shim: Shim, any_serving: list[str], revision: str
) -> None:
    """Cancelled work must stop on the server, and the connection must stay usable."""
    async with shim.connect(any_serving, revisions=[revision]) as client:
        for number in range(1, 4):
            await client.call_and_cancel(*call_tool("hang"))
            await until_seen(client, number)


@both_eras
async def test_call_that_takes_too_long_is_cancelled(
    shim: Shim, serving: list[str], revision: str
) -> None:
    """A timeout must end the work on the server too."""
    async with shim.connect(serving, revisions=[revision]) as client:
        with pytest.raises(RequestTimeout):
            await client.request(*call_tool("hang"), timeout=0.2)
        await until_seen(client, 1)


async def test_server_that_gives_up_cancels_what_it_asked(shim: Shim, serving: list[str]) -> None:
    """When the server withdraws a question, the handler of the client must be cancelled."""
    ended: list[str] = []

    async def hesitate(waiting: Waiting, call: Any) -> JSONObject:
        try:
            await waiting.until_cancelled(call)
        finally:
            ended.append(call.method)
        return ROOTS

    async with shim.connect(
        serving, revisions=[LEGACY], capabilities=CAPABILITIES, on_request=hesitate
    ) as client:
        assert await text(client, "lose patience") == "lost patience"
        assert await text(client, "echo", text="on") == "on"
        assert ended == ["roots/list"]


@both_eras
async def test_a_user_may_take_longer_than_the_call_that_asks(
    shim: Shim, serving: list[str], revision: str
) -> None:
    """Case c284: the call timed out while its own question was being answered."""
    clients: list[Client] = []
    patience = 1.5

    async def take_your_time(waiting: Waiting, call: Any) -> JSONObject:
        end = time.monotonic() + patience + 0.5
        while time.monotonic() < end:  # with something to do
            await text(clients[0], "echo", text="on")
        return ROOTS

    async with shim.connect(
        serving, revisions=[revision], capabilities=CAPABILITIES, on_request=take_your_time
    ) as client:
        clients.append(client)
        answer = await client.request(*call_tool("require"), timeout=patience)
        assert answer["content"][0]["text"] == "file:///home"


# --------------------------------------------------------------------------------- subscriptions


async def test_changes_come_to_who_has_subscribed(shim: Shim, serving: list[str]) -> None:
    """Changes of the acknowledged kinds must arrive, and only as long as the block lasts."""
    async with shim.connect(serving, revisions=[MODERN]) as client:
        async with client.listen({"toolsListChanged": True, "promptsListChanged": True}) as changes:
            assert changes.notifications == {"toolsListChanged": True}
            assert await text(client, "change") == "True"
            change = await changes.next()
            assert change is not None
            assert change[0] == "notifications/tools/list_changed"
        while await text(client, "change") == "True":
            pass  # the end of the subscription is on its way


async def test_changes_are_told_between_calls(shim: Shim, serving: list[str]) -> None:
    """Before 2026-07-28, notifications of changes come without a subscription and between calls."""
    told: list[str] = []

    def on_notification(method: str, params: JSONObject) -> None:
        told.append(method)

    async with shim.connect(serving, revisions=[LEGACY], on_notification=on_notification) as client:
        assert await text(client, "change") == "True"
        await client.until_told(told)
    assert told == ["notifications/tools/list_changed"]


# ----------------------------------------------------------------------------------------- cache


async def test_results_come_from_the_cache_until_the_server_tells_of_a_change(
    shim: Shim, serving: list[str]
) -> None:
    """No message of the server wakes who waits for such a result."""
    cache = Cache(lock=threading.Lock())
    async with shim.connect(serving, revisions=[MODERN], cache=cache) as client:
        first = await client.request("tools/list")
        assert await client.request("tools/list") == first
        assert (cache.hits, cache.misses) == (1, 1)
        for _ in range(2):
            assert [tool["name"] for tool in await client.items("tools/list")] == NAMES
        assert (cache.hits, cache.misses) == (5, 3)
        async with client.listen({"toolsListChanged": True}) as changes:
            assert await text(client, "change") == "True"
            assert await changes.next() is not None
        assert cache.entries == 0
        assert await client.request("tools/list") == first
        assert (cache.hits, cache.misses) == (5, 4)


@both_eras
async def test_clients_share_a_cache(shim: Shim, serving: list[str], revision: str) -> None:
    """Public results are for all clients of a server, in the revision that has caching hints."""
    cache = Cache(lock=threading.Lock())
    for _ in range(2):
        part = cache.partition(server="everywhere")
        async with shim.connect(serving, revisions=[revision], cache=part) as client:
            assert await client.items("tools/list")
    assert (cache.hits, cache.misses) == ((3, 3) if revision == MODERN else (0, 0))


# ------------------------------------------------------------------------------ large, and many


@both_eras
async def test_ten_mebibytes_arrive_intact(shim: Shim, serving: list[str], revision: str) -> None:
    """A message of 10 MiB must pass in both directions through pipes and sockets that hold a
    hundredth of it.
    """
    large = "0123456789abcdef" * (10 * 1024 * 1024 // 16)
    async with shim.connect(serving, revisions=[revision]) as client:
        assert await text(client, "echo", text=large) == large


@both_eras
async def test_each_of_many_callers_has_its_own_answer(
    shim: Shim, serving: list[str], revision: str
) -> None:
    """Each response must reach the caller of its request, in whatever order responses come."""
    counts = dict.fromkeys(range(8), 0)

    async with shim.connect(serving, revisions=[revision]) as client:

        async def ask(caller: int) -> None:
            for number in range(50):
                said = f"{caller} {number}"
                assert await text(client, "echo", text=said) == said
                counts[caller] += 1

        await shim.at_once(*(lambda caller=caller: ask(caller) for caller in counts))
    assert set(counts.values()) == {50}


async def test_both_sides_write_more_than_pipes_hold(shim: Shim, any_serving: list[str]) -> None:
    """If each side waited for the other one to read first, both would wait for ever."""
    large = "x" * 1_000_000
    async with shim.connect(any_serving) as client:

        async def ask() -> None:
            for _ in range(3):
                assert await text(client, "echo", text=large) == large

        await shim.at_once(*[ask] * 6)


@process
async def test_changes_that_nobody_takes_are_bounded_in_memory(
    shim: Shim, caplog: pytest.LogCaptureFixture
) -> None:
    """A thousand changes may wait, and each may be as large as a message may be: their memory needs
    a bound.
    """
    command = [sys.executable, "-c", LARGE_CHANGES]
    filter: JSONObject = {"resourceSubscriptions": ["file:///a"]}
    async with (
        shim.connect(command, revisions=[MODERN]) as client,
        client.listen(filter) as changes,
    ):
        await client.request("tools/list")
        taken: list[str] = []
        while taken[-1:] != ["file:///a/23"]:
            change = await changes.next()
            assert change is not None
            taken.append(change[1]["uri"])
        await client.request("tools/list")  # what was taken counts no more
        for _ in range(18):
            change = await changes.next()
            assert change is not None
            taken.append(change[1]["uri"])
    uris = [f"file:///a/{number}" for number in range(6, 24)]
    assert taken == uris + uris
    assert caplog.text.count("changes come faster than they are handled: some are dropped") == 1


@process
async def test_server_that_does_not_read_costs_time_only(shim: Shim) -> None:
    """Calls to a server that does not read must end at their timeout, half written or not."""
    async with shim.connect(bad("unreading"), terminate_after=0.1) as client:

        async def ask() -> None:
            for _ in range(2):
                with pytest.raises(RequestTimeout):
                    await client.request(*call_bad("x" * 1_000_000), timeout=0.3)

        await shim.at_once(*[ask] * 4)
    assert not has_children()


# --------------------------------------------------------------------------------------- endings


@process
async def test_server_ends_by_itself_when_the_block_is_left(
    shim: Shim, serving: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The end of its input must be enough to end a server."""
    lines: list[str] = []
    async with shim.connect(serving, on_stderr=lines.append, terminate_after=30) as client:
        await client.request("tools/list")
    assert lines == ["served"]
    assert not has_children()
    assert caplog.records == []


@process
@pytest.mark.parametrize("is_gone", [False, True], ids=["ends", "is gone"])
async def test_server_whose_client_ends_does_what_is_left_to_do_and_ends(
    shim: Shim, serving: list[str], is_gone: bool
) -> None:
    """Requests that came before the end of the client must be finished, and then the server must
    exit.
    """
    command = subprocess.Popen(
        serving, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with command as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(said(0, "initialize", OPENING) + said(1, *call_tool("seen")))
        server.stdin.flush()
        assert [json.loads(server.stdout.readline())["id"] for _ in range(2)] == [0, 1]
        calls = [said(number, *call_tool("echo", text="x" * 1000)) for number in range(2, 52)]
        if is_gone:
            server.stdout.close()
            calls.append(said(52, *call_tool("hang")))
        server.stdin.write(b"".join(calls))
        server.stdin.close()
        output = b"" if is_gone else server.stdout.read()
        assert server.wait(SECONDS) == 0
        assert server.stderr is not None
        assert server.stderr.read() == b"served\n"
    if not is_gone:
        assert sorted(json.loads(line)["id"] for line in output.splitlines()) == [*range(2, 52)]


def said(id: int, method: str, params: JSONObject) -> bytes:
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


OPENING: JSONObject = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": INFO}


@both_eras
async def test_server_that_dies_within_a_call_loses_it(
    shim: Shim, serving: list[str], revision: str
) -> None:
    """All waiting calls must fail at once with the cause, and later calls too."""
    is_process = shim.transport == "stdio"
    options: dict[str, Any] = {"stderr": "capture"} if is_process else {}
    async with shim.connect(serving, revisions=[revision], **options) as client:
        lost: list[ConnectionLost] = []

        async def ask(name: str) -> None:
            with pytest.raises(ConnectionLost) as caught:
                await client.request(*call_tool(name))
            lost.append(caught.value)

        await shim.at_once(lambda: ask("hang"), lambda: ask("hang"), lambda: ask("die"))
        await ask("echo")
    assert len(lost) == 4
    known = ("last words\n", 7) if is_process else ("", None)
    assert {(error.stderr, error.exit_status) for error in lost} == {known}


FAILURES = ["GeneratorExit", "asyncio.CancelledError", "BaseException", "BaseExceptionGroup"]
EXITS = ["SystemExit", "KeyboardInterrupt", "group of SystemExit"]


async def test_handler_that_raises_no_exception_has_failed(shim: Shim, serving: list[str]) -> None:
    """A `BaseException` from a library in one handler must not end the other calls."""
    options: dict[str, Any] = {"stderr": "ignore"} if shim.transport == "stdio" else {}
    async with shim.connect(serving, **options) as client:
        for name in FAILURES:
            with pytest.raises(PeerError, match="internal error") as caught:
                await client.request(*call_tool("raise", what=name))
            assert caught.value.code == -32603
            assert await text(client, "echo", text=name) == name


@pytest.mark.parametrize("name", EXITS)
async def test_handler_that_ends_the_program_is_answered_for(
    shim: Shim, serving: list[str], name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without a response its caller would wait, or take the end of the server for a fault of the
    network.

    Whoever runs the server would see it end without a cause.
    """
    options: dict[str, Any] = {"stderr": "capture"} if shim.transport == "stdio" else {}
    async with shim.connect(serving, **options) as client:
        with pytest.raises(PeerError, match="internal error") as caught:
            await client.request(*call_tool("raise", what=name))
        assert caught.value.code == -32603
        lost: ConnectionLost | None = None
        refused: set[str] = set()
        while lost is None:
            try:
                await text(client, "echo", text="on")
            except ConnectionLost as error:
                lost = error
            except PeerError as error:
                refused.add(str(error))
    if shim.transport == "stdio":
        assert not refused
    assert refused <= {"the server is closing (-32603)"}  # over HTTP, while the server ends
    if shim.transport == "stdio" and name == "SystemExit":
        assert lost.exit_status == 5
    told = lost.stderr if shim.transport == "stdio" else capfd.readouterr().err
    raised = repr(RAISED[name]())
    assert told.count(f"the handler of 'tools/call' raised {raised}, which ends") == 1


async def test_subscription_ends_with_its_server(shim: Shim, serving: list[str]) -> None:
    """A loop over changes must not wait for ever after its server has ended."""
    async with (
        shim.connect(serving, revisions=[MODERN]) as client,
        client.listen({"toolsListChanged": True}) as changes,
    ):
        with pytest.raises(ConnectionLost):
            await client.request(*call_tool("die"))
        with pytest.raises(ConnectionLost):
            await changes.next()


@process
async def test_subscription_of_an_interrupted_server_has_ended(
    shim: Shim, serving: list[str]
) -> None:
    """Case c280: the client took Ctrl-C in the server's terminal for a crash."""
    async with (
        shim.connect(serving, revisions=[MODERN], stderr="ignore") as client,
        client.listen({"toolsListChanged": True}) as changes,
    ):
        os.kill(int(await text(client, "pid")), signal.SIGINT)
        assert await changes.next() is None


@process
async def test_interrupted_server_writes_the_result_of_a_subscription(
    shim: Shim, serving: list[str]
) -> None:
    """Case c280: the result was queued after the writer had stopped."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": INFO,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    listen: JSONObject = {"notifications": {"toolsListChanged": True}, "_meta": meta}
    with subprocess.Popen(
        serving, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(said(1, "subscriptions/listen", listen))
        server.stdin.flush()
        acknowledged = json.loads(server.stdout.readline())
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        server.send_signal(signal.SIGINT)
        answer, *rest = [json.loads(line) for line in server.stdout.read().splitlines()]
        server.wait(SECONDS)
    assert (answer["id"], answer["result"]["resultType"]) == (1, "complete")
    assert [message["method"] for message in rest] == ["notifications/cancelled"]


@process
async def test_interrupted_server_does_not_wait_for_a_client_that_does_not_read(
    shim: Shim, serving: list[str]
) -> None:
    """Neighbour of case c280: writing the remaining output is bounded in time."""
    with subprocess.Popen(
        serving, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(said(0, "initialize", OPENING))
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["id"] == 0
        server.stdin.write(said(1, *call_tool("echo", text="x" * 5_000_000)))
        server.stdin.flush()
        assert server.stdout.read(1)  # the rest of it is more than a pipe holds
        server.send_signal(signal.SIGINT)
        server.wait(SECONDS)


@process
@both_eras
async def test_server_that_does_not_open_is_ended(shim: Shim, revision: str) -> None:
    """The block is never entered, so the failed start itself must end the process."""
    with pytest.raises(RequestTimeout):
        async with shim.connect(
            ["sleep", "60"], revisions=[revision], start_timeout=0.2, terminate_after=0.1
        ):
            pytest.fail("it must not open")
    assert not has_children()


@process
async def test_server_that_has_died_is_started_again(shim: Shim, serving: list[str]) -> None:
    """The next request must restart the server, as often as the setting allows."""
    async with shim.connect(serving, restarts=1) as client:
        for _ in range(2):
            assert await text(client, "echo", text="alive") == "alive"
            with pytest.raises(ConnectionLost):
                await client.request(*call_tool("die"))
        with pytest.raises(ConnectionLost, match="after 1 restarts"):
            await client.request(*call_tool("echo", text="alive"))
    assert not has_children()


@pytest.mark.parametrize("revisions", [MODERN_REVISIONS, None], ids=["modern", "both"])
async def test_modern_client_is_not_notified_between_its_requests(
    shim: Shim, serving: list[str], revisions: list[str] | None
) -> None:
    """The error on stdio said that a handshake was missing, and over HTTP that a session was;
    2026-07-28 has neither.
    """
    settings: dict[str, Any] = {} if revisions is None else {"revisions": revisions}
    async with shim.connect(serving, **settings) as client:
        assert client.peer.revision == MODERN
        result = await client.request("tools/call", {"name": "notify", "arguments": {}})
    said = result["content"][0]["text"]
    assert said.startswith("notifications/custom was not sent: in revision 2026-07-28 a notif")
    assert "progress and log messages, and of changes by publish" in said
    assert said.endswith("[STATE-008]")
