"""`serve_http` on real sockets: how a server starts, drains and stops."""

import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from sansmcp import Config, JSONObject, ToolsListChanged
from sansmcp.http import OldPaths, Sessions
from sansmcp_io.trio import (
    HTTPLimits,
    HTTPServer,
    ServerCall,
)
from tests.support.adapters import loops
from tests.support.adapters.loops import on_each_loop
from tests.support.http.certificates import certificate
from tests.support.http.h11_client import head, posted, posted_modern
from tests.support.http.on_loops import INFO, last, serve_http, serving, talking
from tests.support.http.server_endpoint import LEGACY, POST, modern_tool_call, tool_call
from tests.support.http.tools import handle, legacy_call, opened, said
from tests.support.modern import modern
from tests.support.wire import initialize

__all__ = ["certificate"]  # a fixture


# --------------------------------------------------------------------------- beginning and ending


@pytest.mark.parametrize("host", ["0.0.0.0", "::", None])
@on_each_loop()
async def test_it_is_not_open_to_others_by_accident(host: str | None) -> None:
    """Without the names of its hosts, any page could reach the server by DNS rebinding."""
    serve = partial(serve_http, handle, host, 0, info=INFO)
    with pytest.raises(ValueError, match="can be reached from other machines"):
        await serve()
    if host != "0.0.0.0":
        return  # whether a machine has IPv6 is not our affair
    async with loops.open_nursery() as nursery:
        server: HTTPServer = await nursery.start(partial(serve, hosts=["api.example"]))
        assert server.addresses == (("0.0.0.0", server.port),)
        async with talking(server) as talk:
            response = await talk.post(tool_call(), {"host": "evil.example"})
            assert response.status == 403
            response = await talk.post(initialize(1, LEGACY), {"host": "api.example"})
            assert response.status == 200
        server.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"path": "mcp"}, "begins with /"), ({"revisions": ["1"]}, "1"), ({"answers": "x"}, "auto")],
)
@on_each_loop()
async def test_settings_are_looked_at(settings: dict[str, Any], message: str) -> None:
    """A setting that cannot work must raise at the start, and not with the first client."""
    chosen: dict[str, Any] = {"info": INFO, **settings}
    with pytest.raises(ValueError, match=message):
        await serve_http(handle, port=0, **chosen)


@on_each_loop()
async def test_a_port_can_be_taken() -> None:
    """A user who starts a second server must learn why it cannot start."""
    async with serving(handle) as server:
        with pytest.raises(OSError, match="ddress"):
            await serve_http(handle, port=server.port, info=INFO)


@on_each_loop()
async def test_sessions_can_be_done_without() -> None:
    """Several servers behind one name share no sessions."""
    async with serving(handle, sessions=False) as server, talking(server) as talk:
        response = await talk.post(initialize(1, LEGACY))
        assert "mcp-session-id" not in response.headers
        fields = {"mcp-protocol-version": LEGACY}
        assert said(last(await talk.post(legacy_call("echo", text="a"), fields))) == "a"
    ids = iter(["one"])
    settings = Sessions(new_id=lambda: next(ids))
    async with serving(handle, sessions=settings) as server, talking(server) as talk:
        assert (await opened(talk))["mcp-session-id"] == "one"
    async with serving(handle, revisions=["2026-07-28"]) as server, talking(server) as talk:
        assert said(await talk.call(modern_tool_call(1, "echo", text="a"))) == "a"


@on_each_loop()
async def test_clients_of_2024_11_05_have_paths_of_their_own() -> None:
    """Such clients open a stream first, whose `endpoint` event names the path to POST to."""
    paths = OldPaths(stream="/sse", post="/messages")
    async with (
        serving(handle, old_paths=paths, path="/new") as server,
        talking(server) as stream,
        talking(server) as talk,
    ):
        await stream.send(head("GET", "/sse", {"accept": "text/event-stream"}))
        await stream.receive_head("GET")
        target = (await stream.event()).data.decode()
        message = posted(initialize(1, "2024-11-05")).replace(b"/mcp", target.encode(), 1)
        await talk.send(message)
        assert (await talk.receive()).status == 202
        assert (await stream.message())["id"] == 1


@on_each_loop()
async def test_what_is_under_way_is_finished_first() -> None:
    """A restart of the server must not cost clients their responses."""
    async with serving(handle, drain=10) as server, talking(server) as talk:
        async with talking(server) as idle:
            await talk.send(posted_modern(modern_tool_call(1, "slow", seconds=0.1)))
            await _until_served(server)
            server.close()
            assert await idle.ended()
        response = await talk.receive()
        assert said(last(response)) == "slept"
        assert response.headers["connection"] == "close"
        assert await talk.ended()


async def _until_served(server: HTTPServer) -> None:
    while not server.open_requests:
        await loops.sleep(0.001)  # until the socket has brought it


@on_each_loop()
async def test_what_takes_too_long_is_ended_in_order() -> None:
    """Streams must end properly, so that clients know that no data was lost on the way."""
    listen = modern(9, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    async with serving(handle) as server, talking(server) as talk, talking(server) as slow:
        await talk.send(posted_modern(listen))
        await talk.receive_head()
        await slow.send(posted_modern(modern_tool_call(1, "slow", seconds=60)))
        await _until_served(server)
        server.publish(ToolsListChanged())
        server.close()
        messages = await talk.messages()
        assert messages[-1]["id"] == 9
        assert await talk.ended()
        assert (await slow.receive()).status == 503
        assert await slow.ended()


@on_each_loop()
async def test_being_cancelled_ends_it_in_order_too() -> None:
    """Most servers end by Ctrl-C."""
    listen = modern(9, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    async with loops.open_nursery() as nursery:
        serve = partial(serve_http, handle, port=0, info=INFO, drain=0.001)
        serve = partial(serve, capabilities={"tools": {"listChanged": True}})
        server: Any = await nursery.start(partial(serve, revisions=["2026-07-28"]))
        async with talking(server) as talk:
            await talk.send(posted_modern(listen))
            await talk.receive_head()
            nursery.cancel()
            with loops.shielded():
                messages = await talk.messages()
                assert messages[-1]["id"] == 9


# -------------------------------------------------------------------------------------------- TLS


@on_each_loop()
async def test_it_speaks_https(certificate: str) -> None:
    """Credentials must not be sent in plain text."""
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate)
    theirs = ssl.create_default_context(cafile=certificate)
    async with serving(handle, tls=ours) as server:
        async with talking(server, theirs) as talk:
            for size in (10, 500_000):
                answer = await talk.call(modern_tool_call(1, "echo", text="x" * size))
                assert said(answer) == "x" * size
            await talk.send(head("POST", "/mcp", {"content-length": "70000"}))
            assert (await talk.receive()).status == 415
            assert await talk.ended()
        async with talking(server) as plain:  # who does not speak it is no harm
            await plain.send(head("GET"))
            assert await plain.ended()
        async with talking(server, theirs) as talk:
            assert said(await talk.call(modern_tool_call(1, "echo", text="a"))) == "a"


@on_each_loop()
async def test_who_does_not_begin_with_tls_is_not_waited_for(certificate: str) -> None:
    """A client that stays silent before the TLS handshake must be disconnected in the time for the
    head.
    """
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate)
    async with (
        serving(handle, tls=ours, limits=HTTPLimits(head=0.1)) as server,
        talking(server) as talk,
    ):
        assert await talk.ended()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@on_each_loop()
async def test_client_without_a_certificate_is_told_so(
    certificate: str, version: ssl.TLSVersion
) -> None:
    """A connection that ends without an alert looks like a failure of the network."""
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate)
    ours.load_verify_locations(certificate)
    ours.verify_mode = ssl.CERT_REQUIRED
    theirs = ssl.create_default_context(cafile=certificate)
    theirs.minimum_version = theirs.maximum_version = version

    def refused() -> ssl.SSLError:
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as raw:
            try:
                with theirs.wrap_socket(raw, server_hostname="localhost") as secure:
                    secure.recv(1)
            except ssl.SSLError as error:
                return error
        pytest.fail("it was let in")

    async with serving(handle, tls=ours) as server:
        assert "ALERT" in (await loops.in_thread(refused)).reason
        theirs.load_cert_chain(certificate)
        async with talking(server, theirs) as talk:
            assert said(await talk.call(modern_tool_call(1, "echo", text="a"))) == "a"


# ------------------------------------------------------------------------------------------ times


@on_each_loop()
async def test_an_idle_connection_is_closed() -> None:
    """Clients keep connections for requests that never come."""
    limits = HTTPLimits(head=10, idle=0.1)
    async with serving(handle, limits=limits) as server, talking(server) as talk:
        assert "result" in await talk.call(modern_tool_call(1, "echo", text="a"))
        assert await talk.stream.receive_some() == b""


@on_each_loop()
async def test_a_body_is_not_waited_for_long() -> None:
    """A client with a slow body must get a response that says so, and its connection is closed."""
    limits = HTTPLimits(body=0.1, linger=0.1)
    async with serving(handle, limits=limits) as server, talking(server) as talk:
        await talk.send(head("POST", "/mcp", {**POST, "content-length": "100"}))
        response = await talk.receive()
        assert response.status == 408
        assert response.closes
        assert await talk.ended()


@on_each_loop()
async def test_a_stream_is_not_idle() -> None:
    """The idle timeout must not close a stream on which a client listens for hours."""
    listen = modern(9, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    limits = HTTPLimits(head=0.05, body=0.05, idle=0.05, stall=0.05)
    async with serving(handle, limits=limits, keep_alive=0.02) as server, talking(server) as talk:
        await talk.send(posted_modern(listen))
        await talk.receive_head()
        await talk.message()
        pieces = [await talk.receive_body() for _ in range(10)]  # each took 0.02 s
        server.publish(ToolsListChanged())
        assert (await talk.message())["method"] == "notifications/tools/list_changed"
    assert all(piece is not None and piece.startswith(b":") for piece in pieces)


@on_each_loop()
async def test_who_never_reads_does_not_hold_up_the_end() -> None:
    """One client that never reads must not keep the server from ending."""
    begun = loops.new_event()

    async def flood(call: ServerCall) -> JSONObject:
        step = 0
        while call.progress(step, message="x" * 10_000):
            step += 1
            await loops.checkpoint()
        begun.set()
        await loops.sleep_forever()
        return {}

    message = modern_tool_call(1, "x")
    message["params"]["_meta"]["progressToken"] = 1
    ended = loops.new_event()

    async def serve(started: Callable[[HTTPServer], object]) -> None:
        config = Config(soft_unsent_bytes=100_000)
        settings: Any = {"port": 0, "info": INFO, "capabilities": {"tools": {}}}
        await serve_http(flood, config=config, drain=0.001, started=started, **settings)
        ended.set()

    async with loops.open_nursery() as nursery:
        server: Any = await nursery.start(serve)
        async with talking(server) as talk:
            await talk.send(posted_modern(message))
            await begun.wait()
            server.close()
            await ended.wait()


@on_each_loop()
async def test_a_page_can_read_every_refusal() -> None:
    """The refusals of another path, a slow body and a connection over the limit all need CORS
    headers.
    """
    page = "https://app.example"
    limits = HTTPLimits(body=0.1, linger=0.1, connections=2)
    async with (
        serving(handle, limits=limits, origins=[page]) as server,
        talking(server) as talk,
        talking(server) as slow,
    ):
        await talk.send(head("POST", "/else", {"origin": page, "content-length": "0"}))
        elsewhere = await talk.receive()
        asks = {"origin": page, "access-control-request-method": "POST"}
        await talk.send(head("OPTIONS", "/else", asks))
        preflight = await talk.receive("OPTIONS")
        async with talking(server) as many:
            busy = await many.receive()
        await slow.send(head("POST", "/mcp", {**POST, "origin": page, "content-length": "9"}))
        late = await slow.receive()
    found = [elsewhere, preflight, busy, late]
    assert [response.status for response in found] == [404, 204, 503, 408]
    for response in found:
        assert response.headers["access-control-allow-origin"] == page
    assert busy.closes
    assert busy.headers["retry-after"] == "5"


@on_each_loop()
async def test_a_page_can_read_that_its_request_is_not_valid() -> None:
    """Also with several allowed origins, `Origin` must be read from a head that is otherwise
    invalid.
    """
    page = "https://app.example"
    fields = {"origin": page, "host": "localhost"}
    async with serving(handle, origins=["https://other.example", page]) as server:
        for more, status in (({"bad name": "x"}, 400), ({"transfer-encoding": "gzip"}, 501)):
            async with talking(server) as talk:
                await talk.send(head("POST", "/mcp", {**fields, **more}))
                response = await talk.receive()
            assert response.status == status
            assert response.headers["access-control-allow-origin"] == page
