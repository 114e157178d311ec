"""`connect_http` on real sockets, with servers that behave and servers that do not."""

import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    ErrorCode,
    JSONObject,
    ResourceUpdated,
)
from sansmcp.http import AuthorizationRequired
from sansmcp_io.trio import (
    Call,
    Client,
    ConnectionLost,
    HTTPClientLimits,
    InvalidAnswer,
    McpError,
    OnUnauthorized,
    PeerError,
    RequestRefused,
    RequestTimeout,
    ServerCall,
    Unauthorized,
)
from tests.support.adapters import loops
from tests.support.adapters.loops import on_each_loop
from tests.support.http.certificates import certificate as certificate
from tests.support.http.on_loops import connect_http, serving
from tests.support.http.tools import URI, handle

INFO: JSONObject = {"name": "test-client", "version": "1.0"}
CAPABILITIES: JSONObject = {"elicitation": {"form": {}}, "roots": {}}
ERAS = pytest.mark.parametrize("revisions", [MODERN_REVISIONS, LEGACY_REVISIONS[-1:]])
QUICK = HTTPClientLimits(connect=2.0, head=2.0)


async def answer(call: Call) -> JSONObject:
    """A user who agrees to everything and has one root."""
    await loops.checkpoint()
    if call.method == "roots/list":
        return {"roots": [{"uri": "file:///a"}]}
    return {"action": "accept", "content": {}}


def connecting(port: int, **settings: Any) -> AbstractAsyncContextManager[Client]:
    settings = {"info": INFO, "capabilities": CAPABILITIES, "on_request": answer, **settings}
    return connect_http(f"http://127.0.0.1:{port}/mcp", **settings)


async def ask(client: Client, tool: str, **arguments: object) -> str:
    params: JSONObject = {"name": tool, "arguments": arguments}
    result: Any = await client.request("tools/call", params)
    said: str = result["content"][0]["text"]
    return said


# --------------------------------------------------------------------------------- our own server


@ERAS
@on_each_loop()
async def test_one_surface_for_both_eras(revisions: tuple[str, ...]) -> None:
    """Code that works on stdio must work over HTTP: responses, errors, progress, and questions of
    the server.
    """
    told: list[float] = []
    async with serving(handle) as server, connecting(server.port, revisions=revisions) as client:
        assert client.peer.revision == revisions[-1]
        assert await ask(client, "echo", text="a") == "a"
        assert await ask(client, "ask") == '{"q": {"action": "accept", "content": {}}}'
        with pytest.raises(PeerError) as caught:
            await ask(client, "fail")
        assert (caught.value.code, caught.value.data) == (-32001, {"why": "none"})
        params: JSONObject = {"name": "progress", "arguments": {}}
        await client.request(
            "tools/call", params, on_progress=lambda value, total, message: told.append(value)
        )
        assert [tool async for tool in client.items("tools/list")] == []
    assert told == [1, 2]


@on_each_loop()
async def test_what_belongs_to_no_request_comes_in_a_session() -> None:
    """Messages outside of requests must arrive on the GET stream as long as it is open."""
    heard: list[str] = []
    has_heard = loops.new_event()

    async def note(method: str, params: JSONObject) -> None:
        await loops.checkpoint()
        heard.append(method)
        has_heard.set()

    async with serving(handle) as server:
        legacy = LEGACY_REVISIONS[-1:]
        async with connecting(server.port, revisions=legacy, on_notification=note) as client:
            await client.request("resources/subscribe", {"uri": URI})
            assert len(server.sessions) == 1
            server.publish(ResourceUpdated(URI))
            await has_heard.wait()
            assert heard == ["notifications/resources/updated"]
        assert not server.sessions  # it said good-bye


@on_each_loop()
async def test_subscriptions_tell_of_changes() -> None:
    """In 2026-07-28 a subscription is a request that stays open, and its changes must reach the
    caller.
    """
    async with (
        serving(handle) as server,
        connecting(server.port) as client,
        client.listen({"resourceSubscriptions": [URI]}) as changes,
    ):
        server.publish(ResourceUpdated(URI))
        method, params = await anext(changes)
        assert (method, params["uri"]) == ("notifications/resources/updated", URI)


@ERAS
@on_each_loop()
async def test_a_cancelled_caller_cancels_its_request(revisions: tuple[str, ...]) -> None:
    """The handler of the server must end, in whichever form the era sends the cancellation."""
    ended = loops.new_event()

    async def hang(call: Any) -> JSONObject:
        try:
            await loops.sleep_forever()
        finally:
            ended.set()
        return {}

    async with serving(hang) as server, connecting(server.port, revisions=revisions) as client:
        async with loops.move_on_after(0.2):
            await ask(client, "any")
        await ended.wait()
        with pytest.raises(RequestTimeout):
            await client.request("tools/list", timeout=0.2)


@on_each_loop()
async def test_many_requests_share_their_connections() -> None:
    """Each request needs a connection, and those over the limit must wait for a free one."""
    answers: dict[int, str] = {}
    limits = HTTPClientLimits(requests=10)
    async with (
        serving(handle) as server,
        connecting(server.port, limits=limits) as client,
        loops.open_nursery() as nursery,
    ):

        async def one(number: int) -> None:
            answers[number] = await ask(client, "echo", text=number)

        for number in range(100):
            nursery.start_soon(one, number)
    assert answers == {number: str(number) for number in range(100)}


@on_each_loop()
async def test_large_messages_arrive_whole() -> None:
    """Messages larger than any buffer on the way must arrive complete in both directions."""
    text = "x" * 3_000_000
    async with serving(handle) as server, connecting(server.port) as client:
        assert await ask(client, "echo", text=text) == text


@on_each_loop()
async def test_handler_of_questions_that_ends_the_program_answers_first() -> None:
    """The server would wait for the answer of a client that has exited."""
    refused: list[int] = []
    has_heard = loops.new_event()

    async def ask_back(call: ServerCall) -> JSONObject:
        with pytest.raises(PeerError) as caught:
            await call.request("roots/list")
        refused.append(caught.value.code)
        has_heard.set()
        await loops.sleep_forever()  # the call is not answered: it ends with its client
        raise AssertionError

    async def leave(call: Call) -> JSONObject:
        raise SystemExit(3)

    async with serving(ask_back) as server:
        with pytest.raises(SystemExit):
            async with connecting(
                server.port, on_request=leave, capabilities=CAPABILITIES, revisions=LEGACY_REVISIONS
            ) as client:
                await client.request("tools/call", {"name": "x"})
        await has_heard.wait()  # it is told of the answer when it is its turn
    assert refused == [-32603]


@on_each_loop()
async def test_certificates_are_checked(certificate: str) -> None:
    """The client must refuse a server whose certificate is not trusted."""
    inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inside.load_cert_chain(certificate)
    outside = ssl.create_default_context(cafile=certificate)
    async with serving(handle, tls=inside) as server:
        url = f"https://localhost:{server.port}/mcp"
        async with connect_http(url, info=INFO, tls=outside) as client:
            assert await ask(client, "echo", text="a") == "a"
        with pytest.raises(ConnectionLost, match="certificate is not valid: self"):
            async with connect_http(url, info=INFO):
                pass


@on_each_loop()
async def test_server_that_is_not_trusted_is_told_so(certificate: str) -> None:
    """The alert tells the operator that a certificate is the cause, and not the network."""
    inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inside.load_cert_chain(certificate)
    reasons: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)

        def accept() -> None:
            with listener.accept()[0] as raw:
                raw.settimeout(60)
                with pytest.raises(ssl.SSLError) as caught:
                    inside.wrap_socket(raw, server_side=True).recv(1)
            reasons.append(caught.value.reason)

        async with loops.open_nursery() as nursery:
            nursery.start_soon(loops.in_thread, accept)
            with pytest.raises(ConnectionLost):
                async with connect_http(
                    f"https://localhost:{listener.getsockname()[1]}/mcp", info=INFO
                ):
                    pass
    assert reasons == ["TLSV1_ALERT_UNKNOWN_CA"]


# ------------------------------------------------------------------------------------ who it is


def knows(*tokens: str) -> Callable[[Mapping[str, str]], str]:
    def check(headers: Mapping[str, str]) -> str:
        token = headers.get("authorization", "")
        if token not in tokens:
            raise Unauthorized('Bearer realm="r", scope="a b"')
        return token

    return check


@on_each_loop()
async def test_a_client_that_is_not_known_can_show_something_else() -> None:
    """The client must be asked for credentials until the server accepts them, and then repeat the
    request.
    """
    tokens = iter(["wrong", "right"])
    seen: list[dict[str, str]] = []

    async def show(refused: AuthorizationRequired) -> list[tuple[str, str]]:
        await loops.checkpoint()
        seen.extend(challenge.parameters for challenge in refused.challenges)
        return [("Authorization", next(tokens))]

    async with (
        serving(handle, authenticate=knows("right")) as server,
        connecting(server.port, on_unauthorized=show) as client,
    ):
        assert await ask(client, "who") == f"right None {INFO}"
    assert seen == [{"realm": "r", "scope": "a b"}] * 2


@on_each_loop()
async def test_a_field_may_have_spaces_around_its_value() -> None:
    """HTTP ignores spaces around a header value, and a token read from a file often has them."""
    headers = [("Authorization", " right \t")]
    async with (
        serving(handle, authenticate=knows("right")) as server,
        connecting(server.port, headers=headers) as client,
    ):
        assert (await ask(client, "who")).startswith("right ")


def show_nothing(refused: AuthorizationRequired) -> None:
    """Supplies no token."""


def fail_to_show(refused: AuthorizationRequired) -> None:
    raise OSError("the keychain is locked")


@pytest.mark.parametrize("show", [None, show_nothing, fail_to_show])
@on_each_loop()
async def test_a_client_that_shows_nothing_is_refused(show: OnUnauthorized | None) -> None:
    """The exception must name the credentials that the server asks for."""
    async with serving(handle, authenticate=knows()) as server:
        with pytest.raises(RequestRefused) as caught:
            async with connecting(server.port, on_unauthorized=show):
                pass
    assert caught.value.status == 401
    assert caught.value.challenges[0].parameters == {"realm": "r", "scope": "a b"}


# -------------------------------------------------------------------------------- other servers


Reply = Callable[[loops.Stream, bytes], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n%b\r\n"


@asynccontextmanager
async def hostile(reply: Reply) -> AsyncGenerator[int, None]:
    """A server that reads a request and then misbehaves; returns its port."""

    async def serve(stream: loops.Stream) -> None:
        with suppress(*loops.BROKEN):  # it has had enough
            await reply(stream, await stream.receive_some())

    async with loops.listening(serve) as port:
        yield port


async def silence_after_head(stream: loops.Stream, request: bytes) -> None:
    await stream.send_all(HEAD % (b"application/json", b"content-length: 10\r\n"))
    await loops.sleep_forever()


async def half_a_chunk(stream: loops.Stream, request: bytes) -> None:
    await stream.send_all(
        HEAD % (b"application/json", b"transfer-encoding: chunked\r\n") + b"ff\r\n{"
    )
    await stream.aclose()


async def endless_event(stream: loops.Stream, request: bytes) -> None:
    await stream.send_all(HEAD % (b"text/event-stream", b"connection: close\r\n") + b"data: ")
    while True:
        await stream.send_all(b"x" * 65_536)


async def comments_only(stream: loops.Stream, request: bytes) -> None:
    await stream.send_all(HEAD % (b"text/event-stream", b"connection: close\r\n"))
    while True:
        await stream.send_all(b": still here\n\n")
        await loops.sleep(0.05)  # as a server does that keeps a stream alive


async def compressed(stream: loops.Stream, request: bytes) -> None:
    await stream.send_all(
        HEAD % (b"application/json", b"content-encoding: gzip\r\ncontent-length: 4\r\n")
        + b"\x1f\x8bxx"
    )


async def no_http(stream: loops.Stream, request: bytes) -> None:
    await stream.send_all(b"220 mail.example ESMTP\r\n")
    await stream.aclose()


async def nothing(stream: loops.Stream, request: bytes) -> None:
    await stream.aclose()


@pytest.mark.parametrize(
    "reply",
    [silence_after_head, half_a_chunk, endless_event, comments_only, compressed, no_http, nothing],
)
@on_each_loop()
async def test_a_bad_server_keeps_nobody_waiting(reply: Reply) -> None:
    """Whatever a server does, opening must end in time with an error."""
    async with hostile(reply) as port:
        with pytest.raises((ConnectionError, TimeoutError, InvalidAnswer)):
            async with connecting(port, start_timeout=2.0, probe_timeout=1.0, limits=QUICK):
                pass


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@on_each_loop()
async def test_a_token_does_not_go_to_another_origin(status: int) -> None:
    """A redirect to another server must not hand the token to it."""
    asked: list[bytes] = []

    async def other(stream: loops.Stream, request: bytes) -> None:
        asked.append(request)

    async with hostile(other) as elsewhere:

        async def redirect(stream: loops.Stream, request: bytes) -> None:
            assert b"secret-token" in request
            await stream.send_all(
                b"HTTP/1.1 %d x\r\nlocation: http://127.0.0.1:%d/mcp\r\ncontent-length: 0\r\n\r\n"
                % (status, elsewhere)
            )

        async with hostile(redirect) as port:
            headers = [("Authorization", "Bearer secret-token")]
            with pytest.raises((ConnectionError, TimeoutError, InvalidAnswer, PeerError)) as caught:
                async with connecting(port, headers=headers, start_timeout=2.0):
                    pass
    assert asked == []
    assert "secret-token" not in str(caught.value)


@on_each_loop()
async def test_nobody_listens() -> None:
    """A refused connection is the most usual fault, and its error must say so."""
    with pytest.raises(ConnectionLost, match="connection"):
        async with connecting(1, limits=QUICK):
            pass


# -------------------------------------------------------------------------------------- settings


@on_each_loop()
async def test_what_a_handler_raises_is_told_to_the_caller() -> None:
    """The caller gets an `McpError` unchanged, as on stdio."""

    def refuse(call: Call) -> JSONObject:
        raise McpError(ErrorCode.INVALID_PARAMS, "not now")

    async with serving(handle) as server, connecting(server.port, on_request=refuse) as client:
        with pytest.raises(McpError, match="not now"):
            await ask(client, "ask")
