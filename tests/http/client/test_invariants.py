"""No response makes a client raise; each request ends once, and nothing is left."""

import itertools
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sansmcp import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    Config,
    ConnectionFailed,
    ErrorReceived,
    JSONObject,
    ListingEnded,
    LocalProtocolError,
    PingEnded,
    Ready,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    State,
    SubscriptionEnded,
)
from sansmcp.http import ClientEndpoint, ClientExchange, Origin, SessionLost
from sansmcp.testing import plain
from tests.support.http.client_endpoint import (
    event,
    events_of,
    exchanges_of,
    fields_of,
    head,
    initialized,
    message_of,
    new_client,
    opened,
    respond,
    stream,
)
from tests.support.http.server_endpoint import JSON, LEGACY, SSE
from tests.support.machines.budget import examples
from tests.support.modern import BOTH, MODERN, acknowledged, complete, discovered, input_required
from tests.support.wire import call, error, note, result

STATUSES = st.sampled_from(
    [*[200] * 12, 202, 204, 100, 301, 307, 308, 400, 401, 403, 404, 405, 409, 429, 500, 503, 999]
)
FORMS = st.sampled_from([JSON, JSON, SSE, SSE, "text/html", "", "application/json; charset=x"])
FIELDS = st.lists(
    st.sampled_from(
        [
            ("Mcp-Session-Id", "s1"),
            ("Mcp-Session-Id", "a b"),
            ("Location", "/other"),
            ("Location", "http://evil/"),
            ("Retry-After", "3"),
            ("WWW-Authenticate", 'Bearer scope="x'),
            (b"content-encoding", b"gzip"),
            (b"\xff", b"\x00"),
        ]
    ),
    max_size=2,
)
ANSWERS: dict[str, Callable[[Any], Any]] = {
    "discovered": lambda id: result(id, discovered()),
    "initialized": lambda id: initialized(id, LEGACY),
    "older": lambda id: initialized(id, "2025-03-26"),
    "called": lambda id: complete(id, {"content": []}),
    "listed": lambda id: complete(
        id, {"tools": [{"name": "t", "inputSchema": {}}], "nextCursor": "c"}
    ),
    "unknown": lambda id: error(id, -32601),
    "mismatch": lambda id: error(id, -32020),
    "unsupported": lambda _: error(None, -32022, "no", {"supported": [LEGACY]}),
    "again": lambda id: input_required(id, None, "state"),
    "acknowledged": lambda id: acknowledged(id, {"toolsListChanged": True}),
    "batch": lambda id: [result(id, {})],
    "asks": lambda _: call(1, "roots/list"),
    "pings": lambda _: call("x", "ping"),
    "changed": lambda _: note("notifications/tools/list_changed"),
    "stray": lambda _: result(99, {}),
    "none": lambda _: 7,
}
MESSAGES = st.sampled_from(sorted(ANSWERS))
PIECES = st.sampled_from([b"id: a\n\n", b"id:\n\n", b"id:  b\n\n", b"retry: 0\n\n"])
BODY = st.one_of(MESSAGES, PIECES, st.binary(max_size=40))
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *["answer"] * 8,
                *["call", "list", "listen", "ping", "note", "cancel", "fail", "cut", "time"],
                *["respond", "authorize", "give up"],
            ]
        ),
        st.integers(0, 5),
        STATUSES,
        FORMS,
        FIELDS,
        st.lists(BODY, max_size=3),
        st.booleans(),
    ),
    max_size=30,
)


class Driver:
    """A client, and the endings of all its requests."""

    def __init__(self, client: ClientEndpoint) -> None:
        self.client = client
        self.live: list[ClientExchange] = []
        self.handles: list[Any] = [client.start(now=0.0)]
        self.endings: Counter[Any] = Counter()
        self.questions: list[Any] = []
        self.now = 0.0

    def look(self) -> None:
        for one in events_of(self.client):
            match one:
                case ResponseReceived() | ErrorReceived() | RequestFailed():
                    self.endings[one.request] += 1
                case ListingEnded():
                    self.endings[one.listing] += 1
                case SubscriptionEnded():
                    self.endings[one.subscription] += 1
                case PingEnded():
                    self.endings[one.ping] += 1
                case Ready() | ConnectionFailed():
                    self.endings[one.start] += 1
                case SessionLost():
                    start = one.start
                    if start is None and self.client.state is State.OPEN:
                        start = self.client.reopen()
                    self.handles += [] if start is None else [start]
                case RequestReceived():
                    self.questions.append(one.request)
                case _:
                    pass
        for exchange in exchanges_of(self.client):
            assert fields_of(exchange)["authorization"] == "t0ken"
            assert exchange.origin == Origin("http", "localhost", 80)
            self.live.append(exchange)
        for exchange in self.client.aborts():
            assert exchange.aborted
            assert exchange.over
        self.live = [exchange for exchange in self.live if not exchange.over]
        assert set(self.client.exchanges) == set(self.live)

    def chosen(self, number: int) -> ClientExchange | None:
        live: list[ClientExchange] = self.live
        return live[number % len(live)] if live else None

    def act(self, action: tuple[Any, ...]) -> None:
        what, number, status, form, fields, bodies, ends = action
        params: JSONObject = {"name": "t", "arguments": {}}
        exchange = self.chosen(number)
        client = self.client
        try:
            match what:
                case "call":
                    self.handles.append(client.send_request("tools/call", params, timeout=9.0))
                case "list":
                    self.handles.append(client.send_paginated("tools/list"))
                case "listen":
                    self.handles.append(client.listen({"toolsListChanged": True}))
                case "ping":
                    self.handles.append(client.ping())
                case "note":
                    client.send_notification("custom/note")
                case "cancel":
                    client.cancel(self.handles[number % len(self.handles)])
                case "respond" if self.questions:
                    client.send_result(self.questions.pop(), {"roots": []})
                case "authorize":
                    client.authorize([("authorization", "t0ken")])
                case "give up":
                    client.give_up()
                case _:
                    pass
        except LocalProtocolError:
            pass  # it was not the time for that
        if what == "time":
            self.now += float(number)
            client.handle_timeout(self.now)
        if exchange is None:
            return
        if what == "fail":
            exchange.receive_failure("reset", now=self.now)
        elif what == "cut":
            exchange.receive_end()
        elif what == "answer":
            pending = [one.id for one in client.pending_requests]
            id = message_of(exchange).get("id") if exchange.body else next(iter(pending), None)
            exchange.receive_head(status, [("content-type", form), *fields])
            for body in bodies:
                data = body if isinstance(body, bytes) else json.dumps(ANSWERS[body](id)).encode()
                is_stream = form == SSE and not isinstance(body, bytes)
                exchange.receive_data(b"data: %b\n\n" % data if is_stream else data)
            if ends:
                exchange.receive_end()


@given(
    actions=ACTIONS,
    revisions=st.sampled_from([BOTH, LEGACY_REVISIONS, LEGACY_REVISIONS[1:], MODERN_REVISIONS]),
    begins=st.sampled_from([None, *LEGACY_REVISIONS, MODERN]),
    authorize=st.booleans(),
    config=st.builds(
        Config,
        max_requests=st.just(5),
        max_message_bytes=st.just(2_000),
        max_pages=st.just(5),
        strict=st.booleans(),
        ping_interval=st.sampled_from([None, 3.0]),
        max_failed_pings=st.sampled_from([1, 3]),
    ),
)
@examples(150, 3000)
def test_nothing_that_a_server_answers_raises(
    actions: list[Any],
    revisions: tuple[str, ...],
    begins: str | None,
    authorize: bool,
    config: Config,
) -> None:
    """Heads and bodies of any kind, at any time, must not make a client raise."""
    driver = Driver(
        new_client(
            revisions=revisions,
            authorize=authorize,
            headers=[("Authorization", "t0ken")],
            config=config,
        )
    )
    if begins is not None:
        driver.look()
        exchange = driver.live[0]
        first = message_of(exchange)
        answer = initialized(first["id"], begins)
        if first["method"] == "server/discover":
            answer = result(first["id"], discovered())
        elif begins == LEGACY_REVISIONS[0] and begins in revisions:
            respond(exchange, 405)
            driver.look()
            exchange = driver.live[0]  # the stream of HTTP+SSE, where the server speaks that
        if exchange.body:
            respond(exchange, 200, answer, {"Mcp-Session-Id": "s0"})
        else:
            stream(exchange, b"event: endpoint\ndata: /messages\n\n")
            driver.look()
            exchange.receive_data(event(answer))
    for action in actions:
        driver.look()
        driver.act(action)
    driver.look()
    assert all(count == 1 for count in driver.endings.values())
    client = driver.client
    client.close()
    driver.look()
    assert {one: driver.endings[one] for one in driver.handles} == dict.fromkeys(driver.handles, 1)
    for one in driver.live:
        one.receive_failure("gone")
    driver.look()
    assert client.exchanges == ()
    assert client.next_timeout() is None
    assert client.pending_requests == ()
    assert client.open_requests == ()
    assert client.unsent_bytes == 0
    assert client.give_up() == 0


@given(
    cuts=st.lists(st.integers(0, 600), max_size=10),
    revision=st.sampled_from([LEGACY, MODERN]),
    form=st.sampled_from([JSON, SSE]),
    status=st.sampled_from([200, 400]),
)
def test_chunking_changes_nothing(cuts: list[int], revision: str, form: str, status: int) -> None:
    """The network may cut a body anywhere."""
    answer = {"content": [{"type": "text", "text": "\u5317\U0001f30d"}]}

    def outcome(edges: list[int]) -> object:
        client = opened(revision)
        asked = client.send_request("tools/call", {"name": "t"})
        (exchange,) = exchanges_of(client)
        body = event(note("notifications/tools/list_changed"), "1") + b": k\r\n\r\n"
        body += event(call(1, "roots/list")) + event(complete(asked.id, answer), "2")
        if form == JSON:
            body = json.dumps(complete(asked.id, answer)).encode()
        if status != 200:
            body = json.dumps(error(asked.id, -32602)).encode()
        head(exchange, status, form)
        ends = [0, *sorted(min(edge, len(body)) for edge in edges), len(body)]
        for start, end in itertools.pairwise(ends):
            exchange.receive_data(body[start:end])
        exchange.receive_end()
        events: list[Any] = list(events_of(client))
        return plain(events), [one.body for one in exchanges_of(client)]

    assert outcome(cuts) == outcome([])
