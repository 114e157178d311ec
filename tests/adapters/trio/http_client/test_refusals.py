"""The errors that callers on trio get where a server over HTTP refuses a request."""

from collections.abc import Awaitable, Callable

import pytest
import trio

from sansmcp import MODERN_REVISIONS, JSONObject
from sansmcp_io.trio import Client, RequestRefused, StartFailed
from tests.support.adapters.on_trio import on_trio
from tests.support.http.keep_alive_server import Request, call, client_of, keeping, response

CHALLENGE = "www-authenticate: Bearer scope=a"


async def refuse(stream: trio.SocketStream, request: Request) -> bytes | None:
    """Refuse each request with 401, except those that open the conversation."""
    opens = request.method in ("initialize", "server/discover") or "id" not in request.message
    return None if opens else response(401, b"", CHALLENGE)


async def list_tools(client: Client) -> None:
    async for _ in client.items("tools/list"):
        pass


async def listen(client: Client) -> None:
    async with client.listen({"toolsListChanged": True}) as changes:
        async for _ in changes:
            pass


async def ping(client: Client) -> None:
    await client.ping()


async def call_tool(client: Client) -> None:
    await call(client, "any")


@pytest.mark.parametrize("ask", [call_tool, list_tools, listen, ping])
@on_trio()
async def test_whatever_is_refused_says_what_the_server_wants(
    ask: Callable[[Client], Awaitable[None]],
) -> None:
    """A refused listing raised "invalid answer", and a refused subscription seemed to have
    ended."""
    settings: JSONObject = {"revisions": MODERN_REVISIONS} if ask is listen else {}
    async with keeping(refuse) as port, client_of(port, **settings) as client:
        with pytest.raises(RequestRefused) as caught:
            await ask(client)
    assert caught.value.status == 401
    assert caught.value.challenges[0].parameters == {"scope": "a"}


@on_trio()
async def test_a_status_that_was_seen_to_is_not_the_reason_any_more() -> None:
    """After a 401 was handled, a later failure must name its own cause."""

    async def answer(stream: trio.SocketStream, request: Request) -> bytes | None:
        if "authorization" not in request.fields:
            return response(401, b"", CHALLENGE)
        if request.method == "tools/call":
            return response(307, b"", "location: http://other.example/")
        return None

    def show(refused: object) -> list[tuple[str, str]]:
        return [("Authorization", "token")]

    async with keeping(answer) as port:
        async with client_of(port, on_unauthorized=show) as client:
            with pytest.raises(RequestRefused, match="another origin") as caught:
                await call(client, "any")
            assert (caught.value.status, caught.value.challenges) == (None, ())
        with pytest.raises(StartFailed, match="tasks"):
            async with client_of(port, on_unauthorized=show, requires=["tasks"]):
                pass


@on_trio()
async def test_a_server_may_be_busy_when_a_client_starts() -> None:
    """The error of the start must have the time of `Retry-After`."""

    async def answer(stream: trio.SocketStream, request: Request) -> bytes | None:
        return response(503, b"", "retry-after: 7")

    async with keeping(answer) as port:
        with pytest.raises(RequestRefused) as caught:
            async with client_of(port):
                pass
    assert (caught.value.status, caught.value.retry_after) == (503, 7.0)
