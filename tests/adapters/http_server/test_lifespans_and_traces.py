"""Tasks of a session on a server over HTTP, and the traces of both sides."""

import logging
import re
import ssl
from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    ConnectionClosed,
    JSONObject,
    LocalProtocolError,
    Ready,
    RequestReceived,
    ResponseReceived,
)
from sansmcp.http import ClientHTTPEvent, HTTPEvent, SessionEnded, SessionStarted
from sansmcp_io.trio import Server, ServerCall
from tests.support.adapters import loops
from tests.support.adapters.loops import on_each_loop
from tests.support.http.certificates import certificate
from tests.support.http.h11_client import head, posted
from tests.support.http.on_loops import connect_http, serving, talking
from tests.support.http.server_endpoint import LEGACY, modern_tool_call
from tests.support.http.tools import opened
from tests.support.wire import call, initialize, result

__all__ = ["certificate"]  # a fixture


def handle(call: ServerCall) -> JSONObject:
    return {"content": []}


# ----------------------------------------------------------------------------------------- on_ready


@on_each_loop()
async def test_each_session_has_its_companion_while_it_lasts() -> None:
    """A task that feeds a client must begin and end with the client's session."""
    ended: list[str] = []
    servers: list[Server] = []
    all_ended = loops.new_event()

    async def stay(server: Server) -> None:
        servers.append(server)
        server.log("error", f"hello, {len(servers)}")
        try:
            await loops.sleep_forever()
        finally:
            ended.append(server.peer.session.id)
            if len(ended) == 2:
                all_ended.set()

    async with serving(handle, on_ready=stay) as server:
        async with talking(server) as talk, talking(server) as stream:
            fields = [await opened(talk), await opened(talk)]
            await stream.send(head("GET", "/mcp", {**fields[1], "accept": "text/event-stream"}))
            await stream.receive_head("GET")
            assert (await stream.message())["params"]["data"] == "hello, 2"
            assert ended == []
            await talk.send(head("DELETE", "/mcp", fields[0]))
            assert (await talk.receive("DELETE")).status == 204
            while not ended:
                await loops.checkpoint()
            assert ended == [fields[0]["mcp-session-id"]]
            with pytest.raises(LocalProtocolError):
                servers[0].notify("notifications/tools/list_changed")
        server.close()
        await all_ended.wait()
    assert ended[1] == fields[1]["mcp-session-id"]


@on_each_loop()
async def test_a_question_waits_until_its_client_listens() -> None:
    """A client opens its GET stream after the session is ready, so an early question must wait for
    it.
    """
    answers: list[Any] = []
    waits = loops.new_event()

    async def ask(server: Server) -> None:
        waits.set()
        answers.append(await server.request("roots/list", timeout=60))

    async with (
        serving(handle, on_ready=ask) as server,
        talking(server) as talk,
        talking(server) as stream,
    ):
        fields = await opened(talk)
        await waits.wait()
        await talk.post(call(5, "ping"), fields)  # time has passed
        await stream.send(head("GET", "/mcp", {**fields, "accept": "text/event-stream"}))
        await stream.receive_head("GET")
        question = await stream.message()
        assert (await talk.post(result(question["id"], {"roots": []}), fields)).status == 202
        while not answers:
            await loops.checkpoint()
    assert answers == [{"roots": []}]


@on_each_loop()
async def test_a_companion_may_be_a_plain_function_and_may_fail(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An exception of `on_ready` must be logged, and the client must still be served."""
    seen: list[Any] = []

    def note(server: Server) -> None:
        seen.append(server.peer.revision)
        raise RuntimeError("not today")

    async def leave(server: Server) -> None:
        raise RuntimeError("nor tomorrow")

    for companion in (note, leave):
        async with serving(handle, on_ready=companion) as server, talking(server) as talk:
            fields = await opened(talk)
            await talk.send(head("DELETE", "/mcp", fields))
            assert (await talk.receive("DELETE")).status == 204
            assert "result" in await talk.call(modern_tool_call(1, "x"))

    assert seen == [LEGACY]
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2
    assert {record.getMessage() for record in caplog.records} == {"on_ready failed"}


@on_each_loop()
async def test_clients_without_a_session_have_no_companion() -> None:
    """Without a session, `on_ready` would have no stream to send on."""
    seen: list[Server] = []
    async with serving(handle, on_ready=seen.append) as server, talking(server) as talk:
        assert "result" in await talk.call(modern_tool_call(1, "x"))
        await talk.post(initialize(0, LEGACY))  # and says no more
    assert seen == []


# -------------------------------------------------------------------------------------------- trace


class Recorder:
    """A trace that keeps everything, of a server or a client."""

    def __init__(self) -> None:
        self.bytes: dict[tuple[str, str], bytes] = {}
        self.events: list[HTTPEvent | ClientHTTPEvent] = []

    def sent(self, client: str, data: bytes) -> None:
        self.bytes["sent", client] = self.bytes.get(("sent", client), b"") + data

    def received(self, client: str, data: bytes) -> None:
        self.bytes["received", client] = self.bytes.get(("received", client), b"") + data

    def happened(self, event: HTTPEvent | ClientHTTPEvent) -> None:
        self.events.append(event)


@on_each_loop()
async def test_a_trace_sees_each_connection_by_itself() -> None:
    """A reader of a trace has to tell the clients apart."""
    trace = Recorder()
    wires: dict[str, bytes] = {}
    async with serving(handle, trace=trace) as server:
        for number in range(2):
            async with talking(server) as talk:
                client = loops.address_of(talk.stream)
                wires[client] = posted(initialize(number, LEGACY))
                await talk.send(wires[client])
                assert (await talk.receive()).status == 200

    assert {client: trace.bytes["received", client] for client in wires} == wires
    for number, client in enumerate(wires):
        sent = trace.bytes["sent", client]
        assert sent.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b'"id":%d' % number in sent.replace(b" ", b"")
    kinds = [type(event) for event in trace.events]
    assert kinds.count(SessionStarted) == 2
    assert kinds[-2:] == [SessionEnded] * 2


@on_each_loop()
async def test_a_trace_sees_what_tls_hides(certificate: str) -> None:
    """A trace must show the decrypted bytes, since TLS records cannot be read."""
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate)
    theirs = ssl.create_default_context(cafile=certificate)
    trace = Recorder()
    async with serving(handle, tls=ours, trace=trace) as server, talking(server, theirs) as talk:
        assert "result" in await talk.call(modern_tool_call(1, "x"))

    (received,) = [data for (kind, _), data in trace.bytes.items() if kind == "received"]
    (sent,) = [data for (kind, _), data in trace.bytes.items() if kind == "sent"]
    assert received.startswith(b"POST /mcp HTTP/1.1\r\n")
    assert sent.startswith(b"HTTP/1.1 200 OK\r\n")
    assert [type(event) for event in trace.events] == [RequestReceived]


@on_each_loop()
async def test_a_trace_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """A trace is there to find faults, and must not cause one."""

    class Broken:
        def sent(self, client: str, data: bytes) -> None:
            raise OSError("the disk is full")

        def received(self, client: str, data: bytes) -> None:
            raise OSError("the disk is full")

        def happened(self, event: HTTPEvent) -> None:
            raise OSError("the disk is full")

    async with serving(handle, trace=Broken()) as server, talking(server) as talk:
        assert "result" in await talk.call(modern_tool_call(1, "x"))

    assert {record.getMessage() for record in caplog.records} == {"the trace failed"}


# ------------------------------------------------------------------------- trace of a client


async def talk_as_client(port: int, **settings: Any) -> None:
    """Open a session, call a tool, and end the session."""
    scheme = "https" if "tls" in settings else "http"
    async with connect_http(
        f"{scheme}://localhost:{port}/mcp",
        info={"name": "client", "version": "1"},
        revisions=LEGACY_REVISIONS,
        get_stream=False,
        **settings,
    ) as client:
        result = await client.request("tools/call", {"name": "x"})
        assert result == {"content": []}


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
@on_each_loop()
async def test_traces_of_both_sides_agree(certificate: str, secure: bool) -> None:
    """A message must have the same name in both traces, whatever proxy is between the two sides."""
    ours, theirs = Recorder(), Recorder()
    inside: dict[str, ssl.SSLContext] = {}
    outside: dict[str, ssl.SSLContext] = {}
    if secure:
        inside["tls"] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        inside["tls"].load_cert_chain(certificate)
        outside["tls"] = ssl.create_default_context(cafile=certificate)
    async with serving(handle, trace=theirs, **inside) as server:
        await talk_as_client(server.port, trace=ours, **outside)
    for (kind, connection), data in ours.bytes.items():
        other = "received" if kind == "sent" else "sent"
        # Nothing says which request comes first on a connection: 202 answers a notification.
        begins = {"sent": rb"(POST|DELETE) /mcp HTTP/1\.1", "received": rb"HTTP/1\.1 20[024] "}
        assert re.match(begins[kind], data)
        assert theirs.bytes[other, connection] == data
    everything = b"".join(data for (kind, _), data in ours.bytes.items() if kind == "sent")
    assert everything.count(b"POST") == 3
    assert everything.count(b"DELETE") == 1
    assert [type(event) for event in ours.events] == [Ready, ResponseReceived, ConnectionClosed]


@on_each_loop()
async def test_a_trace_of_a_client_that_fails_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A trace is there to find faults, and must not cause one."""

    class Broken:
        def sent(self, connection: str, data: bytes) -> None:
            raise OSError("the disk is full")

        def received(self, connection: str, data: bytes) -> None:
            raise OSError("the disk is full")

        def happened(self, event: ClientHTTPEvent) -> None:
            raise OSError("the disk is full")

    async with serving(handle) as server:
        await talk_as_client(server.port, trace=Broken())
    assert {record.getMessage() for record in caplog.records} == {"the trace failed"}
