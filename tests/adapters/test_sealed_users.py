"""Sealed states and subscriptions belong to one user, on each adapter with authentication."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Final

import attrs
import pytest

from sansmcp import Config, JSONObject
from sansmcp_io import asgi, wsgi
from sansmcp_io.trio import RequireInput
from tests.adapters.wsgi.test_app import post as post_below_wsgi
from tests.support.adapters import loops
from tests.support.adapters.loops import on_each_loop
from tests.support.http import asgi as below_asgi
from tests.support.http.h11_client import posted
from tests.support.http.on_loops import last, serve_http, serving, talking
from tests.support.http.server_endpoint import modern_headers, modern_tool_call
from tests.support.http.tools import legacy_call, opened, said, text
from tests.support.modern import FORM, listen, modern
from tests.support.processes import ROOT
from tests.support.wire import SERVER_CAPABILITIES, SERVER_INFO

CONFIG: Final = Config(state_keys=(b"k" * 16,))


@attrs.frozen
class User:
    """A user as `authenticate` returns it: all users have the same text."""

    id: str

    def __str__(self) -> str:
        return "a user"


def nobody(_request: object) -> None:
    """An `authenticate` that finds no user."""


def somebody(_request: object) -> str:
    """An `authenticate` that returns the same user each time."""
    return "me"


def key(user: User) -> str:
    return user.id


class Tool:
    """Asks a question, and returns the state that it was called with; each call is counted."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, call: Any) -> JSONObject | RequireInput:
        self.calls += 1
        assert call.server.peer.principal is call.principal
        if not call.input_responses:
            return RequireInput({"q": FORM}, state="so far")
        return text(f"{call.state} {call.principal.id}")


def asking(id: int) -> JSONObject:
    return modern_tool_call(id)


def retry(id: int, state: str) -> JSONObject:
    answer: JSONObject = {"q": {"action": "decline"}}
    params: JSONObject = {"name": "t", "arguments": {}, "inputResponses": answer}
    return modern(id, "tools/call", {**params, "requestState": state})


def check_refusal(tool: Tool, answer: Any, calls: int) -> None:
    assert answer["error"] == {"code": -32602, "message": "requestState is not valid"}
    assert tool.calls == calls  # no handler has seen it


@on_each_loop()
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_state_is_good_for_its_user_only(is_async: bool) -> None:
    """Case c278: two users with the same text could open each other's states."""
    tool = Tool()

    def find(fields: Any) -> User:
        return User(fields["authorization"])

    async def find_later(fields: Any) -> User:
        await loops.checkpoint()
        return find(fields)

    async with (
        serving(
            tool,
            config=CONFIG,
            authenticate=find_later if is_async else find,
            principal_key=key,
        ) as server,
        talking(server) as talk,
    ):

        async def ask(message: JSONObject, who: str) -> Any:
            await talk.send(posted(message, {**modern_headers(message), "authorization": who}))
            return last(await talk.receive())

        state = (await ask(asking(1), "u1"))["result"]["requestState"]
        check_refusal(tool, await ask(retry(2, state), "u2"), 1)
        check_refusal(tool, await ask(retry(3, state + "="), "u1"), 1)
        assert said(await ask(retry(4, state), "u1")) == "so far u1"


@below_asgi.on_asyncio
async def test_a_state_is_good_for_its_user_only_below_asgi() -> None:
    """Case c278: the same below an ASGI server of another project."""
    tool = Tool()

    def find(scope: Any) -> User:
        return User(scope["user"])

    app = below_asgi.new_app(tool, config=CONFIG, authenticate=find, principal_key=key)

    async def ask(message: JSONObject, who: str) -> Any:
        return (await below_asgi.post_modern(app, message, user=who).ended()).json

    state = (await ask(asking(1), "u1"))["result"]["requestState"]
    check_refusal(tool, await ask(retry(2, state), "u2"), 1)
    assert said(await ask(retry(3, state), "u1")) == "so far u1"


def wsgi_app(handler: Callable[..., Any], **settings: Any) -> wsgi.App:
    def find(environ: Any) -> User:
        return User(environ["REMOTE_USER"])

    options: dict[str, Any] = {"authenticate": find, "principal_key": key, **settings}
    return wsgi.App(handler, info=SERVER_INFO, capabilities=SERVER_CAPABILITIES, **options)


def test_a_state_is_good_for_its_user_only_below_wsgi() -> None:
    """Case c278: the same in the thread of a WSGI server."""
    tool = Tool()
    app = wsgi_app(tool, config=CONFIG)

    def ask(message: JSONObject, who: str) -> Any:
        return post_below_wsgi(app, message, modern_headers(message), REMOTE_USER=who).ended().json

    state = ask(asking(1), "u1")["result"]["requestState"]
    check_refusal(tool, ask(retry(2, state), "u2"), 1)
    assert said(ask(retry(3, state), "u1")) == "so far u1"


SERVING: Final = """
import sys
from sansmcp import Config, JSONObject
from sansmcp_io.{adapter} import serve_stdio

def handle(call):
    print("the handler runs", file=sys.stderr)
    return {{"content": []}}

options = {{"info": {{"name": "s", "version": "1"}}, "capabilities": {{"tools": {{}}}}}}
config = Config(state_keys=(b"k" * 16,))
{run}
"""
RUNS: Final = {
    "trio": "import trio; trio.run(lambda: serve_stdio(handle, config=config, **options))",
    "asyncio": "import asyncio; asyncio.run(serve_stdio(handle, config=config, **options))",
    "blocking": "serve_stdio(handle, config=config, **options)",
}


@pytest.mark.parametrize("end", ["\n", ""], ids=["a line", "the last bytes"])
@pytest.mark.parametrize("adapter", RUNS)
def test_a_forged_state_is_refused_before_the_handler_runs_on_stdio(adapter: str, end: str) -> None:
    """Case c278: a handler that does not look at its state must not run with a forged one."""
    program = SERVING.format(adapter=adapter, run=RUNS[adapter])
    run = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(retry(1, "forged")) + end,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
    )
    assert run.returncode == 0
    assert json.loads(run.stdout)["error"]["message"] == "requestState is not valid"
    assert "the handler runs" not in run.stderr


# ------------------------------------------------------------------------------------- settings


@on_each_loop()
async def test_users_without_keys_are_no_users_where_states_are_sealed() -> None:
    """OWN-050: the mistake must raise when the server starts, and not be reported to each of its
    clients.
    """
    settings: dict[str, Any] = {"authenticate": nobody}
    with pytest.raises(ValueError, match="principal_key="):
        await serve_http(Tool(), info=SERVER_INFO, config=CONFIG, **settings)


@pytest.mark.parametrize("app", [asgi.App, wsgi.App])
def test_applications_need_keys_of_users_too(app: Callable[..., object]) -> None:
    """OWN-050, neighbour: without users or without seals, `principal_key` is not needed."""
    with pytest.raises(ValueError, match="principal_key="):
        app(Tool(), info=SERVER_INFO, config=CONFIG, authenticate=nobody)
    app(Tool(), info=SERVER_INFO, config=CONFIG)
    app(Tool(), info=SERVER_INFO, authenticate=nobody)


def key_that_is(bad: object) -> Callable[[object], Any]:
    """A `principal_key` that returns this value, or raises it if it is an exception."""

    def find_key(user: object) -> Any:
        if isinstance(bad, Exception):
            raise bad
        return bad

    return find_key


BAD_KEYS: Final = (7, None, RuntimeError("secret"))


def failures(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.exc_info is not None]


@pytest.mark.parametrize("bad", BAD_KEYS)
@on_each_loop()
async def test_a_key_that_is_no_string_is_a_fault_of_the_server(
    bad: object, caplog: pytest.LogCaptureFixture
) -> None:
    """The client must get the fixed text of any fault, and the log must name this one."""

    settings: dict[str, Any] = {"authenticate": somebody, "principal_key": key_that_is(bad)}
    async with serving(Tool(), config=CONFIG, **settings) as server, talking(server) as talk:
        response = await talk.post(asking(1), modern_headers(asking(1)))
        assert response.status == 500
        internal_error = {"code": -32603, "message": "internal error"}
        assert json.loads(response.body)["error"] == internal_error
    assert failures(caplog) == ["principal_key failed"]


@pytest.mark.parametrize("bad", BAD_KEYS)
@below_asgi.on_asyncio
async def test_a_key_that_is_no_string_is_named_below_asgi(
    bad: object, caplog: pytest.LogCaptureFixture
) -> None:
    """The log blamed `authenticate`, which had found the user."""
    app = below_asgi.new_app(
        Tool(), config=CONFIG, authenticate=somebody, principal_key=key_that_is(bad)
    )
    assert (await below_asgi.post_modern(app, asking(1)).ended()).status == 500
    assert failures(caplog) == ["principal_key failed"]


@pytest.mark.parametrize("bad", BAD_KEYS)
def test_a_key_that_is_no_string_is_named_below_wsgi(
    bad: object, caplog: pytest.LogCaptureFixture
) -> None:
    """The same in the thread of a WSGI server."""
    app = wsgi_app(Tool(), config=CONFIG, principal_key=key_that_is(bad))
    message = asking(1)
    response = post_below_wsgi(app, message, modern_headers(message), REMOTE_USER="u1")
    assert response.ended().status == 500
    assert failures(caplog) == ["principal_key failed"]


@on_each_loop()
@pytest.mark.parametrize("is_async", [True, False])
async def test_an_authenticate_that_fails_is_named(
    is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Neighbour: the log must blame `authenticate`, and `principal_key` must not be called."""

    def find(fields: Any) -> User:
        raise RuntimeError("secret")

    async def find_later(fields: Any) -> User:
        await loops.checkpoint()
        return find(fields)

    settings: dict[str, Any] = {"authenticate": find_later if is_async else find}
    async with (
        serving(Tool(), config=CONFIG, principal_key=key, **settings) as server,
        talking(server) as talk,
    ):
        assert (await talk.post(asking(1), modern_headers(asking(1)))).status == 500
    assert failures(caplog) == ["authenticate failed"]


@below_asgi.on_asyncio
async def test_a_request_of_nobody_needs_no_key() -> None:
    """`authenticate` may admit anonymous callers, whose states are bound to no user."""

    def ask_only(call: Any) -> JSONObject | RequireInput:
        assert call.principal is None
        return (
            text(str(call.state)) if call.input_responses else RequireInput({"q": FORM}, state="s")
        )

    app = below_asgi.new_app(ask_only, config=CONFIG, authenticate=nobody, principal_key=key)
    first = (await below_asgi.post_modern(app, asking(1)).ended()).json
    again = retry(2, first["result"]["requestState"])
    assert said((await below_asgi.post_modern(app, again).ended()).json) == "s"


# ------------------------------------------------------------------------------- subscriptions


TOOLS: Final[JSONObject] = {"toolsListChanged": True}


def subscribers(call: Any) -> JSONObject:
    """A handler that counts the subscriptions of its caller, and ends them on demand."""
    listeners = call.server.listeners
    ended = []
    if call.params["name"] == "end":
        ended = [call.server.end_listener(one) for one in listeners]
        ended += [call.server.end_listener(one) for one in listeners]
    return text(json.dumps([len(listeners), ended]))


@on_each_loop()
async def test_a_handler_behind_http_sees_the_subscriptions_of_its_client() -> None:
    """Over HTTP they raised AttributeError, so the handler worked on stdio only."""

    def find(fields: Any) -> User:
        return User(fields["authorization"])

    async with (
        serving(subscribers, authenticate=find) as server,
        talking(server) as talk,
        talking(server) as one,
        talking(server) as other,
    ):

        async def ask(name: str, who: str) -> Any:
            message = modern_tool_call(1, name)
            await talk.send(posted(message, {**modern_headers(message), "authorization": who}))
            return json.loads(said(last(await talk.receive())))

        for stream, who in ((one, "u1"), (other, "u2")):
            message = listen(1, TOOLS)
            await stream.send(posted(message, {**modern_headers(message), "authorization": who}))
            await stream.receive_head()
            assert (await stream.message())["method"].endswith("/acknowledged")
        assert await ask("count", "u3") == [0, []]
        assert await ask("end", "u1") == [1, [True, False]]
        (answer,) = await one.messages()
        assert answer["result"]["resultType"] == "complete"
        assert await ask("count", "u1") == [0, []]
        assert await ask("count", "u2") == [1, []]


@on_each_loop()
async def test_a_client_with_a_session_has_no_subscription_of_2026() -> None:
    """Neighbour: anonymous subscriptions do not belong to the client of a session."""
    async with (
        serving(subscribers) as server,
        talking(server) as talk,
        talking(server) as stream,
    ):
        message = listen(1, TOOLS)
        await stream.send(posted(message, modern_headers(message)))
        await stream.receive_head()
        await stream.message()
        fields = await opened(talk)
        counted = last(await talk.post(legacy_call("count"), fields))
        assert json.loads(said(counted)) == [0, []]
        assert json.loads(said(await talk.call(modern_tool_call(2, "count")))) == [1, []]


@below_asgi.on_asyncio
async def test_a_handler_below_asgi_ends_subscriptions() -> None:
    """The same below an ASGI server of another project."""
    app = below_asgi.new_app(subscribers)
    stream = await below_asgi.post_modern(app, listen(1, TOOLS)).begun()
    await below_asgi.until(lambda: len(stream.sent) > 1)
    answer = (await below_asgi.post_modern(app, modern_tool_call(2, "end")).ended()).json
    assert json.loads(said(answer)) == [1, [True, False]]
    async with asyncio.timeout(below_asgi.SECONDS):
        await stream.ended()
    assert stream.messages[-1]["result"]["resultType"] == "complete"


def test_a_handler_below_wsgi_ends_subscriptions() -> None:
    """The same in the thread of a WSGI server."""
    app = wsgi_app(subscribers, streams=True)
    message = listen(1, TOOLS)
    stream = post_below_wsgi(app, message, modern_headers(message), REMOTE_USER="u1")
    ask = modern_tool_call(2, "count")
    counted: Any = [0, []]
    while counted != [1, []]:  # its thread may begin late
        answer = post_below_wsgi(app, ask, modern_headers(ask), REMOTE_USER="u1").ended().json
        counted = json.loads(said(answer))
    end = modern_tool_call(3, "end")
    answer = post_below_wsgi(app, end, modern_headers(end), REMOTE_USER="u1").ended().json
    assert json.loads(said(answer)) == [1, [True, False]]
    assert stream.ended().messages[-1]["result"]["resultType"] == "complete"
