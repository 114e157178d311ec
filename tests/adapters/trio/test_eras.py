"""Clients and servers of every era on trio: one handler serves them all."""

import itertools
import json
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import memory_stream_pair

from sansmcp import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    Config,
    JSONObject,
    PromptsListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from sansmcp_io.trio import (
    Call,
    Client,
    ConnectionLost,
    InvalidAnswer,
    McpError,
    PeerError,
    RequestTimeout,
    RequireInput,
    Server,
    ServerCall,
    connect,
    serve,
)
from tests.support.adapters.trio_talk import (
    CAPABILITIES,
    HANDSHAKE,
    INFO,
    Peer,
    by_hand,
    call_tool,
    instantly,
    talking,
    text,
)
from tests.support.modern import (
    EVERYTHING,
    FORM,
    ROOTS,
    SUBSCRIPTION,
    acknowledged,
    discovered,
    input_required,
    modern,
)

BOTH = (*LEGACY_REVISIONS, *MODERN_REVISIONS)
ERAS = {"legacy": LEGACY_REVISIONS, "modern": MODERN_REVISIONS, "both": BOTH}
QUESTIONS = {"name": FORM, "roots": ROOTS}


async def asking(call: ServerCall) -> JSONObject | RequireInput:
    """A handler that asks before it returns its result."""
    if not call.input_responses:
        return RequireInput(QUESTIONS, state="so far")
    return text(json.dumps([call.input_responses, call.state, call.revision]))


async def answering(call: Call) -> JSONObject:
    """A client that answers every question."""
    if call.method == "roots/list":
        return {"roots": [{"uri": "file:///a"}]}
    return {"action": "accept", "content": {"name": call.params["message"]}}


@pytest.mark.parametrize(("ours", "theirs"), list(itertools.product(ERAS, ERAS)))
@instantly()
async def test_one_handler_serves_clients_of_every_era(ours: str, theirs: str) -> None:
    """Client and server with a common revision must talk in the newest one, as the specification's
    matrix says.
    """
    common = [revision for revision in ERAS[ours] if revision in ERAS[theirs]]
    serving = {"revisions": ERAS[theirs]}
    options: Any = {"revisions": ERAS[ours], "on_request": answering, "capabilities": EVERYTHING}
    if not common:
        refused = pytest.RaisesGroup(PeerError, flatten_subgroups=True)
        with refused:
            async with talking(asking, serving=serving, **options):
                pytest.fail("it must not open")
        return
    async with talking(asking, serving=serving, **options) as client:
        assert client.peer.revision == common[-1]
        result: Any = await client.request(*call_tool())
        responses, state, revision = json.loads(result["content"][0]["text"])
    assert responses == {
        "name": {"action": "accept", "content": {"name": "Name?"}},
        "roots": {"roots": [{"uri": "file:///a"}]},
    }
    assert (state, revision) == ("so far", common[-1])


@pytest.mark.parametrize("revisions", [LEGACY_REVISIONS, MODERN_REVISIONS])
@instantly()
async def test_plain_functions_ask_and_answer_too(revisions: Sequence[str]) -> None:
    """Handlers that do not wait must not have to be async."""

    def handler(call: ServerCall) -> JSONObject | RequireInput:
        return text("done") if call.input_responses else RequireInput({"r": ROOTS})

    def on_request(call: Call) -> JSONObject:
        assert (call.params, call.principal, call.context) == ({}, None, "mine")
        assert call.capabilities == CAPABILITIES
        assert call.revision == revisions[-1]
        assert call.progress(1) is False
        assert "roots/list" in repr(call)
        return {"roots": []}

    options: Any = {"on_request": on_request, "capabilities": EVERYTHING, "context": "mine"}
    serving = {"revisions": revisions}
    async with talking(handler, serving=serving, revisions=revisions, **options) as client:
        result: Any = await client.request(*call_tool())
    assert result["content"] == text("done")["content"]


@instantly()
async def test_who_is_asked_may_ask_back() -> None:
    """The handler of a question may need a call to the server."""

    async def on_request(call: Call) -> JSONObject:
        await call.request("tools/list")
        return {"roots": []}

    async def handler(call: ServerCall) -> JSONObject | RequireInput:
        if call.method == "tools/list":
            return {"tools": []}
        return text("done") if call.input_responses else RequireInput({"r": ROOTS})

    serving = {"revisions": MODERN_REVISIONS}
    options: Any = {"on_request": on_request, "capabilities": EVERYTHING}
    async with talking(handler, serving=serving, revisions=BOTH, **options) as client:
        result: Any = await client.request(*call_tool())
    assert result["content"] == text("done")["content"]


@instantly()
async def test_caller_learns_that_a_question_was_not_answered() -> None:
    """Only the caller waits for the response, so it must get the error."""

    def on_request(call: Call) -> JSONObject:
        raise McpError(-1, "the user said no")

    options: Any = {"on_request": on_request, "capabilities": EVERYTHING}
    async with talking(asking, serving={"revisions": BOTH}, revisions=BOTH, **options) as client:
        with pytest.raises(McpError, match="said no"):
            await client.request(*call_tool())
        assert client.peer.revision in MODERN_REVISIONS  # and the connection goes on


@instantly()
async def test_rounds_without_end_are_an_invalid_answer() -> None:
    """A server that asks in every round must not keep the caller for ever."""

    def handler(call: ServerCall) -> RequireInput:
        return RequireInput(state="more")

    serving = {"revisions": BOTH}
    async with talking(handler, serving=serving, revisions=BOTH) as client:
        with pytest.raises(InvalidAnswer):
            await client.request(*call_tool())


@instantly()
async def test_question_that_may_not_be_asked_names_what_the_client_lacks() -> None:
    """The client has not declared the capability, and could do so and retry."""
    serving = {"revisions": BOTH}
    async with talking(asking, serving=serving, revisions=BOTH) as client:
        with pytest.raises(PeerError, match="needs elicitation") as caught:
            await client.request(*call_tool())
    assert caught.value.code == -32021
    needed: JSONObject = {"elicitation": {"form": {}}, "roots": {}}
    assert caught.value.data == {"requiredCapabilities": needed}


@instantly()
async def test_sealed_state_comes_back_as_it_was() -> None:
    """A sealed state must open with the same keys and the wall clock."""
    serving = {"revisions": BOTH, "config": Config(state_keys=(b"x" * 16,))}
    options: Any = {"on_request": answering, "capabilities": EVERYTHING}
    async with talking(asking, serving=serving, revisions=BOTH, **options) as client:
        result: Any = await client.request(*call_tool())
    assert json.loads(result["content"][0]["text"])[1] == "so far"


@asynccontextmanager
async def modern_by_hand(**options: Any) -> AsyncGenerator[tuple[Client, Peer], None]:
    """A client of the modern era, and the server's end of its stream."""
    near, peer = by_hand()

    async def be_discovered() -> None:
        await peer.answer(await peer.read(), discovered(FULL))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(be_discovered)
        async with connect(near, info=INFO, capabilities=EVERYTHING, **options) as client:
            yield client, peer


async def ask_for_ever(peer: Peer, *, take: float = 0.0) -> None:
    """Play a server that answers each round with the same question."""
    with trio.CancelScope():
        while True:
            request = await peer.read()
            await trio.sleep(take)
            await peer.write(input_required(request["id"], {"r": ROOTS}, "state"))


@pytest.mark.parametrize(("theirs", "ours"), [(0.0, 100.0), (0.0, 3.0), (3.0, 0.0)])
@instantly()
async def test_time_allowed_in_all_covers_every_round(theirs: float, ours: float) -> None:
    """`max_timeout` must limit all rounds together, and the time of the user."""

    async def on_request(call: Call) -> JSONObject:
        await trio.sleep(ours)
        return {"roots": []}

    async with (
        modern_by_hand(on_request=on_request) as (client, peer),
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(partial(ask_for_ever, peer, take=theirs))
        start = trio.current_time()
        with pytest.raises(RequestTimeout):
            await client.request(*call_tool(), max_timeout=10)
        assert trio.current_time() - start == pytest.approx(10)
        nursery.cancel_scope.cancel()


@instantly()
async def test_connection_that_ends_ends_the_answering_of_questions() -> None:
    """The caller must not wait for a user whose answer can no longer be sent."""
    trail: list[str] = []
    begun = trio.Event()

    async def on_request(call: Call) -> JSONObject:
        begun.set()
        try:
            await trio.sleep_forever()
        finally:
            trail.append("cancelled")
        return {}

    async with (
        modern_by_hand(on_request=on_request) as (client, peer),
        trio.open_nursery() as nursery,
    ):

        async def ask_and_go() -> None:
            request = await peer.read()
            await peer.write(input_required(request["id"], {"r": ROOTS}))
            await begun.wait()
            await peer.stream.aclose()

        nursery.start_soon(ask_and_go)
        with pytest.raises(ConnectionLost, match="tools/call was not answered"):
            await client.request(*call_tool(), timeout=500)
    assert trail == ["cancelled"]


@instantly()
async def test_questions_are_not_answered_all_at_once() -> None:
    """One message may hold many questions, and each may open a window or run a model."""
    running: list[None] = []
    most = 0

    async def on_request(call: Call) -> JSONObject:
        nonlocal most
        running.append(None)
        most = max(most, len(running))
        await trio.sleep(1)
        running.pop()
        return {"roots": []}

    async with (
        modern_by_hand(on_request=on_request) as (client, peer),
        trio.open_nursery() as nursery,
    ):

        async def ask_much() -> None:
            request = await peer.read()
            questions = {str(number): ROOTS for number in range(250)}
            await peer.write(input_required(request["id"], questions))
            request = await peer.read()
            assert request["params"]["inputResponses"].keys() == questions.keys()
            await peer.answer(request, {"resultType": "complete", **text("done")})

        nursery.start_soon(ask_much)
        result: Any = await client.request(*call_tool())
    assert result["content"] == text("done")["content"]
    assert most == 100


@pytest.mark.parametrize("answer", [None, ["no object"], {}, {"roots": [], "more": {1}}, OSError()])
@instantly()
async def test_bad_answer_to_a_question_is_the_handlers_fault(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Callers of `request` must get one exception for it, and the log must name the fault."""

    def on_request(call: Call) -> JSONObject:
        if isinstance(answer, Exception):
            raise answer
        bad: JSONObject = answer
        return bad

    def handler(call: ServerCall) -> JSONObject | RequireInput:
        return text("done") if call.input_responses else RequireInput({"r": ROOTS})

    serving = {"revisions": BOTH}
    options: Any = {"on_request": on_request, "capabilities": EVERYTHING}
    async with talking(handler, serving=serving, revisions=BOTH, **options) as client:
        with pytest.raises(McpError, match="internal error") as caught:
            await client.request(*call_tool())
    assert caught.value.code == -32603
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert record.exc_info[1] is caught.value.__cause__


class Unsayable(dict[str, Any]):
    """A result whose attributes raise an exception of their own."""

    def _fail(self, *args: object) -> Any:
        raise RuntimeError("no")

    __iter__ = __len__ = __contains__ = __getitem__ = get = keys = items = values = _fail


@pytest.mark.parametrize("where", ["result", "question", "data"])
@instantly()
async def test_what_cannot_be_encoded_ends_one_request_only(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever an encoder raises, the other requests of the client must go on."""
    caplog.set_level(logging.CRITICAL)

    def handler(call: ServerCall) -> JSONObject | RequireInput:
        if call.method == "tools/list":
            return {"tools": []}
        if where == "data":
            raise McpError(-1, "bad", Unsayable(a=1))
        if where == "question":
            return RequireInput({"r": Unsayable(ROOTS)})
        return Unsayable(text("bad"))

    async with talking(
        handler, serving={"revisions": BOTH}, revisions=BOTH, capabilities=EVERYTHING
    ) as client:
        with pytest.raises(PeerError, match="internal error"):
            await client.request(*call_tool())
        assert (await client.request("tools/list"))["tools"] == []


@instantly()
async def test_server_is_ready_once() -> None:
    """A client that sends modern requests before its handshake must not run `on_ready` twice."""
    servers: list[Server] = []
    near, far = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        serving = partial(serve, far, nothing, info=INFO, capabilities=FULL)
        nursery.start_soon(partial(serving, revisions=BOTH, on_ready=servers.append))
        peer = Peer(near)
        await peer.write(modern(7, "tools/list"))
        assert (await peer.read())["id"] == 7
        assert len(servers) == 1
        await peer.write(*HANDSHAKE)
        assert (await peer.read())["id"] == 1
        await near.send_eof()
    assert len(servers) == 1


# ----------------------------------------------------------------------------- subscriptions

FULL = {**CAPABILITIES, "tools": {"listChanged": True}, "resources": {"subscribe": True}}


def nothing(call: ServerCall) -> JSONObject:
    return text("")


@instantly()
async def test_changes_are_iterated_over() -> None:
    """Two changes of the same item before the next iteration must be reported once."""
    servers: list[Server] = []
    serving = {"revisions": BOTH, "capabilities": FULL, "on_ready": servers.append}
    async with talking(nothing, serving=serving, revisions=BOTH) as client:
        wish = {
            "toolsListChanged": True,
            "promptsListChanged": True,
            "resourceSubscriptions": ["a", "b"],
        }
        async with client.listen(wish) as changes:
            assert "promptsListChanged" not in changes.notifications
            (server,) = servers
            assert server.publish(ToolsListChanged())
            assert server.publish(ResourceUpdated("b"))
            assert server.publish(ResourceUpdated("b"))
            assert not server.publish(PromptsListChanged())
            await client.request("tools/call", {"name": "t"})  # all that came before is here
            told = [await anext(changes), await anext(changes)]
        assert [(method, params.get("uri")) for method, params in told] == [
            ("notifications/tools/list_changed", None),
            ("notifications/resources/updated", "b"),
        ]
        await client.request("tools/call", {"name": "t"})
        assert not server.publish(ToolsListChanged())


@instantly()
async def test_changes_end_with_the_connection() -> None:
    """A task that waits for changes must not wait for ever."""
    near, far = memory_stream_pair()
    serving = partial(serve, far, nothing, info=INFO, capabilities=FULL, revisions=BOTH)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serving)
        async with (
            connect(near, info=INFO, revisions=BOTH) as client,
            client.listen({"toolsListChanged": True}) as changes,
        ):
            await far.aclose()
            with pytest.raises(ConnectionLost, match="subscription has ended"):
                await anext(changes)


@instantly()
async def test_subscription_that_is_refused_raises() -> None:
    """A refused subscription must raise the server's error, also when the server ends it without
    one.
    """
    refusing = {"revisions": BOTH, "config": Config(max_subscriptions=1)}
    async with talking(
        nothing, serving={**refusing, "capabilities": FULL}, revisions=BOTH
    ) as client:
        with pytest.raises(PeerError, match="too many subscriptions"):
            async with client.listen({"resourceSubscriptions": ["a", "b"]}):
                pytest.fail("it was not taken")
    silent = {"revisions": BOTH, "config": Config(manual={"subscriptions/listen"})}

    def handler(call: ServerCall) -> JSONObject | RequireInput:
        raise McpError(-32601, "no")

    async with talking(handler, serving=silent, revisions=BOTH) as client:
        with pytest.raises(PeerError, match="no"):
            async with client.listen({}):
                pytest.fail("it was not taken")


@instantly()
async def test_subscription_that_nobody_acknowledges_times_out() -> None:
    """A subscription that is not acknowledged must time out as a request does."""

    async def handler(call: ServerCall) -> JSONObject:
        await trio.sleep_forever()
        return {}

    silent = {"revisions": BOTH, "config": Config(manual={"subscriptions/listen"})}
    async with talking(handler, serving=silent, revisions=BOTH) as client:
        with pytest.raises(RequestTimeout):
            async with client.listen({}, timeout=5):
                pytest.fail("it was not taken")


@instantly()
async def test_server_looks_at_subscriptions_and_ends_them() -> None:
    """When the server ends a subscription, the iteration over its changes must end without an
    error.
    """
    servers: list[Server] = []
    serving = {"revisions": BOTH, "capabilities": FULL, "on_ready": servers.append}
    async with (
        talking(nothing, serving=serving, revisions=BOTH) as client,
        client.listen({"toolsListChanged": True}, meta={"x/y": 1}) as changes,
    ):
        (server,) = servers
        (listener,) = server.listeners
        assert listener.honoured == {"toolsListChanged": True}
        assert server.end_listener(listener) is True
        assert server.end_listener(listener) is False
        assert server.listeners == ()
        assert [change async for change in changes] == []


class Failing:
    """A stream whose reading fails with an unexpected exception, right after some bytes."""

    def __init__(self, stream: trio.StapledStream[Any, Any]) -> None:
        self._stream = stream
        self.send_all = stream.send_all
        self.send_eof = stream.send_eof
        self.aclose = stream.aclose

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await self._stream.receive_some()
        if b"FAIL" in data:
            raise RuntimeError("the stream is at fault")
        return data


@instantly()
async def test_changes_end_when_the_stream_is_at_fault() -> None:
    """After an unexpected exception no more events come, so tasks that iterate must be woken."""
    near, peer = by_hand()
    caught: list[Exception] = []

    async with trio.open_nursery() as nursery:

        async def server() -> None:
            await peer.answer(await peer.read(), discovered(FULL))
            request = await peer.read()
            await peer.write(acknowledged(request["id"], {"toolsListChanged": True}))

        async def listen(client: Client, started: trio.Event) -> None:
            try:
                async with client.listen({"toolsListChanged": True}) as changes:
                    started.set()
                    await anext(changes)
            except ConnectionLost as error:
                caught.append(error)

        async def own() -> None:
            with pytest.RaisesGroup(RuntimeError, allow_unwrapped=True, flatten_subgroups=True):
                async with connect(Failing(near), info=INFO) as client:
                    started = trio.Event()
                    nursery.start_soon(listen, client, started)
                    await started.wait()
                    await peer.write(b"FAIL")
                    await trio.sleep_forever()

        nursery.start_soon(server)
        nursery.start_soon(own)
    assert len(caught) == 1


@instantly()
async def test_only_changes_that_are_acknowledged_are_kept() -> None:
    """A server that reports other changes, or ever more resources, must not fill the memory."""
    method = "notifications/resources/updated"

    def updated(id: object, uri: str) -> JSONObject:
        params = {"uri": uri, "_meta": {SUBSCRIPTION: id}}
        return {"jsonrpc": "2.0", "method": method, "params": params}

    def listed(id: object, what: str, uri: str) -> JSONObject:
        params = {"uri": uri, "_meta": {SUBSCRIPTION: id}}
        return {"jsonrpc": "2.0", "method": f"notifications/{what}/list_changed", "params": params}

    async with modern_by_hand() as (client, peer), trio.open_nursery() as nursery:

        async def server() -> None:
            request = await peer.read()
            id = request["id"]
            await peer.write(updated(id, "early"))
            kept = {"toolsListChanged": True, "resourceSubscriptions": ["a"]}
            await peer.write(acknowledged(id, kept))
            await peer.write(*(listed(id, "prompts", "") for _ in range(3)))
            await peer.write(*(updated(id, f"a/{number}") for number in range(1500)))
            await peer.write(*(listed(id, "tools", str(number)) for number in range(3)))
            await peer.answer(
                request, {"resultType": "complete", "_meta": {SUBSCRIPTION: request["id"]}}
            )

        nursery.start_soon(server)
        wish = {"toolsListChanged": True, "resourceSubscriptions": ["a"]}
        async with client.listen(wish) as changes:
            await trio.sleep(1)
            told = [(method, params["uri"]) async for method, params in changes]
    assert told[-2:] == [(method, "a/1499"), ("notifications/tools/list_changed", "2")]
    assert 1000 < len(told) < 1010
