"""No request makes an endpoint raise, and no output can be misread.

streams/test_one_answer.py tests that each request gets one response on one stream.
"""

import itertools
import json
import re
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import Config, JSONObject, RequestReceived, ResourceUpdated, ToolsListChanged
from sansmcp.http import (
    CredentialsReceived,
    HTTPEvent,
    OldPaths,
    ReplayWanted,
    SendBody,
    SendHead,
    ServerEndpoint,
    ServerExchange,
    ServerSentEvent,
    SessionRequested,
    SessionWanted,
    SSEDecoder,
    ToolSchemaWanted,
)
from sansmcp.testing import plain
from tests.support.http.inputs import (
    BODIES,
    HOSTILE,
    METHODS,
    NAMES,
    PRINCIPALS,
    TARGETS,
    VALUES,
)
from tests.support.http.server_endpoint import (
    GET,
    JSON,
    POST,
    answer,
    connect,
    drain,
    new_endpoint,
    post,
    request,
    sessions,
)
from tests.support.machines.budget import examples
from tests.support.modern import MODERN
from tests.support.wire import call, initialize


def schema(_name: str) -> JSONObject:
    return {"properties": {"x": {"x-mcp-header": "X"}}}


FIELD = re.compile(
    rb"|:|data:(?: .*)?|id: [!-~]+|retry: [0-9]+|event: (?:endpoint|message)", re.DOTALL
)
"""All lines that a stream of ours may have."""


def whole_endpoint(*, old: bool = True, **settings: Any) -> ServerEndpoint:
    """An endpoint with all features."""
    if old:
        settings["old_paths"] = OldPaths(stream="/sse", post="/messages")
    settings.setdefault("config", Config(max_requests=20, max_unsent_bytes=20_000))
    settings.setdefault("sessions", sessions(retry_ms=100))
    settings.setdefault("origins", ("https://app.example",))
    settings.setdefault("tool_schema", schema)
    return new_endpoint(stateless=True, **settings)


def asking_endpoint(**settings: Any) -> ServerEndpoint:
    """An endpoint with all features, which asks the application for everything."""
    kept = sessions(opening="ask", unknown="ask", event_log="ask")
    return whole_endpoint(sessions=kept, tool_schema="ask", credentials="ask", **settings)


def look_up(endpoint: ServerEndpoint, event: HTTPEvent) -> None:
    """Answer a question according to its kind."""
    if isinstance(event, CredentialsReceived):
        if event.headers.get("mcp-session-id") == "s2":
            event.exchange.refuse(403, HOSTILE[0])
        else:
            endpoint.admit(event, None)
    elif isinstance(event, ToolSchemaWanted):
        endpoint.provide_tool_schema(event, schema(event.name))
    elif isinstance(event, SessionRequested):
        endpoint.open_session(event)
    elif isinstance(event, SessionWanted):
        if event.exchange.method == "GET" and event.stream is not None:
            endpoint.replay_ended(event, [(event.after + 1, b"[]")])
        elif event.exchange.method == "POST" and endpoint.carry(event) is not None:
            event.exchange.relay_head(200, {"content-length": "4", "content-type": JSON})
            event.exchange.relay_body(b"null")
            event.exchange.relay_end()
        elif event.exchange.method != "POST":
            endpoint.fail_lookup(event, HOSTILE[0], status=503, retry_after=1)
    elif isinstance(event, ReplayWanted):
        endpoint.replay(event, None)


def served(endpoint: ServerEndpoint) -> list[HTTPEvent]:
    """Answer all requests, some with hostile texts; returns the reported events."""
    events = drain(endpoint)
    for event in events:
        look_up(endpoint, event)
        if isinstance(event, RequestReceived) and event.request.open:
            request = event.request
            endpoint.send_progress(request, 1, message=HOSTILE[0])
            if request.peer.session is not None and request.revision != "2024-11-05":
                endpoint.send_log("error", HOSTILE, logger=HOSTILE[1], request=request)
            if request.method == "resources/subscribe":
                endpoint.send_result(request, {})
            elif request.method == "tools/call":
                text = [{"type": "text", "text": text} for text in HOSTILE]
                endpoint.send_result(request, {"content": text})
            else:
                endpoint.send_error(request, -32000, HOSTILE[0], HOSTILE[1])
    endpoint.publish(ToolsListChanged())
    endpoint.publish(ResourceUpdated("x:y"))
    return events


@attrs.define(eq=False)
class Wire:
    """The output of an exchange: head, body, end, in this order."""

    head: SendHead | None = None
    body: bytes = b""
    ended: bool = False

    def take(self, exchange: ServerExchange) -> None:
        while (output := exchange.next_output()) is not None:
            assert not self.ended
            assert (self.head is None) == isinstance(output, SendHead)
            if isinstance(output, SendHead):
                self.head = output
            elif isinstance(output, SendBody):
                assert output.data
                self.body += output.data
            else:
                self.ended = True

    def check(self) -> None:
        """Assert that no header can end early, and that the body has the length of the head."""
        if self.head is None:
            return
        status, headers = self.head.status, dict(self.head.headers)
        assert 200 <= status < 300 or 400 <= status < 600, "nobody is sent elsewhere"
        assert len(headers) == len(self.head.headers)
        for name, value in headers.items():
            assert not set(name + value) & set(b"\r\n\0")
            assert name == name.lower()
        if headers.get(b"content-type") == b"text/event-stream":
            assert status == 200
            self.check_stream()
        else:
            assert self.ended
            assert len(self.body) == int(headers.get(b"content-length", b"0"))
            if self.body:
                assert headers[b"content-type"] == b"application/json"
                json.loads(self.body)

    def check_stream(self) -> None:
        """Assert that each event is complete: JSON, an endpoint, or empty."""
        assert not set(self.body) & set(b"\r\0")
        assert self.body.endswith(b"\n\n") or not self.body
        for line in self.body.split(b"\n"):
            assert FIELD.fullmatch(line), line
        for event in SSEDecoder().feed(self.body):
            assert isinstance(event, ServerSentEvent)
            if event.type == "endpoint":
                assert event.data.startswith(b"/messages?session_id=")
            elif event.data:
                json.loads(event.data)


@pytest.mark.unjudged("the body may name one thing and the head another")
@given(
    requests=st.lists(
        st.tuples(
            METHODS,
            TARGETS,
            st.lists(st.tuples(NAMES, VALUES), max_size=6),
            st.booleans(),
            BODIES,
            st.sampled_from(["stay", "go", "half"]),
            PRINCIPALS,
        ),
        max_size=8,
    ),
    kind=st.sampled_from(["stateless", "whole", "asking"]),
    origins=st.sampled_from([None, ("https://app.example",), ("*",)]),
)
@examples(80, 1500)
def test_nothing_that_a_client_sends_raises(requests: list[Any], kind: str, origins: Any) -> None:
    """Heads and bodies of any kind, in any order, with clients that go away at any time."""
    if kind == "stateless":
        endpoint = new_endpoint(stateless=True, origins=origins, config=Config(max_requests=5))
    else:
        endpoint = (whole_endpoint if kind == "whole" else asking_endpoint)(origins=origins)
    wires: dict[ServerExchange, Wire] = {}

    def look() -> None:
        for exchange in endpoint.ready():
            wires.setdefault(exchange, Wire()).take(exchange)

    for now, (method, target, fields, usual, body, behaviour, who) in enumerate(requests):
        headers = [*(POST.items() if usual else ()), *fields]
        exchange = endpoint.exchange(method, target, headers, principal=who, now=float(now))
        exchange.receive_data(body)
        if behaviour != "half":
            exchange.receive_end()
        if behaviour == "go":
            exchange.receive_disconnect()
        served(endpoint)
        look()
    endpoint.handle_timeout(1e6)
    endpoint.close()
    look()
    assert (endpoint.open_questions, endpoint.carried) == ((), ())
    for wire in wires.values():
        wire.check()
    assert endpoint.open_requests == ()
    assert endpoint.sessions == ()
    assert endpoint.next_timeout() is None


CLIENTS = {
    "modern": {**POST, "mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "t"},
    "session": {**POST, "mcp-session-id": "s1"},
    "stateless": {**POST, "mcp-protocol-version": "2025-03-26"},
    "old": {**POST},
}


@given(opener=PRINCIPALS, other=PRINCIPALS)
def test_a_session_is_that_of_its_principal(opener: Any, other: Any) -> None:
    """Principals must be compared as objects: two with the same text are different."""
    endpoint = new_endpoint()
    one = connect(endpoint, principal=opener)
    status = answer(one.post(call(7, "ping"), principal=other)).status
    assert status == (200 if opener == other else 404)


@pytest.mark.unjudged("the body may name one thing and the head another")
@given(
    who=st.sampled_from(sorted(CLIENTS)),
    asks=st.booleans(),
    body=BODIES,
    cuts=st.lists(st.integers(0, 400), max_size=8),
    kind=st.sampled_from([bytes, bytearray, memoryview]),
    limit=st.sampled_from([20, 100, 300, 10_000]),
)
@examples(80, 1500)
def test_chunking_changes_nothing(
    who: str, asks: bool, body: bytes, cuts: list[int], kind: Any, limit: int
) -> None:
    """However the network cuts a body, responses, events and state must be the same."""
    edges = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]

    def outcome(chunks: list[Any]) -> object:
        endpoint = whole_endpoint(
            tool_schema="ask" if asks else schema,
            credentials="ask" if asks else "given",
            sessions=None if who == "stateless" else sessions(),
            old=who == "old",
            config=Config(max_message_bytes=limit),
        )
        target = "/mcp"
        if who == "session":
            post(endpoint, initialize(0, "2025-03-26"))
            served(endpoint)
        elif who == "old":
            request(endpoint, "GET", GET, target="/sse")
            served(endpoint)
            target = "/messages?session_id=s1"
        exchange = endpoint.exchange("POST", target, CLIENTS[who].items())
        for chunk in chunks:
            exchange.receive_data(chunk)
        exchange.receive_end()
        events: list[Any] = []
        while found := served(endpoint):  # questions to the application come one after another
            events += found
        ready = endpoint.ready()
        outputs = [list(iter(one.next_output, None)) for one in ready]
        return plain(events), outputs, ready.index(exchange)

    parts = [kind(body[start:end]) for start, end in itertools.pairwise(edges)]
    assert outcome(parts) == outcome([body])


@given(
    sizes=st.lists(st.integers(0, 60), max_size=8),
    limit=st.integers(1, 100),
)
def test_the_limit_on_a_body_does_not_depend_on_its_chunks(sizes: list[int], limit: int) -> None:
    """The limit applies to the message, not to its chunks."""
    endpoint = new_endpoint(config=Config(max_message_bytes=limit))
    exchange = endpoint.exchange("POST", "/", POST.items())
    for size in sizes:
        exchange.receive_data(b" " * size)
    exchange.receive_end()

    assert (answer(exchange).status == 413) == (sum(sizes) > limit)


def test_an_idle_session_is_small() -> None:
    """Ten thousand idle sessions must fit into memory."""
    import tracemalloc

    endpoint = new_endpoint(capabilities={"tools": {}}, revisions=("2025-11-25",))
    connect(endpoint)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(50):
            connect(endpoint)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(endpoint.sessions) == 51
    assert (after - before) / 50 < 6 * 1024
