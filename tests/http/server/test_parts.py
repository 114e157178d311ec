"""Each part of a server endpoint can be made without the rest, and does its own work.

Each part is given what it needs: the shared core, and at most the parts below it. Nothing here
makes a `ServerEndpoint`.
"""

import copy
import json
from collections.abc import Iterable
from typing import Any, Final

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    Config,
    IncomingRequest,
    JSONObject,
    LimitReached,
    OutgoingRequest,
    ProtocolViolation,
    RequestCancelled,
    RequestReceived,
)
from sansmcp._connection.core import Core
from sansmcp._rules.sending import Breach
from sansmcp.http import (
    MemoryEventLog,
    MessageUndelivered,
    OldPaths,
    SendBody,
    SendEnd,
    SendHead,
    ServerExchange,
    Session,
    SessionEnd,
    SessionEnded,
)
from sansmcp.http._headers import Fields
from sansmcp.http._server.bodies import HeldMemory, has_duplicates
from sansmcp.http._server.core import ServerEndpointCore, Service
from sansmcp.http._server.event_log import History
from sansmcp.http._server.exchange import Accepted, ServerExchangeCore
from sansmcp.http._server.head import RequestHeadJudge
from sansmcp.http._server.hosted_transports import HostedTransports
from sansmcp.http._server.lookups import Lookups
from sansmcp.http._server.methods import Methods
from sansmcp.http._server.modern_headers import judge_headers
from sansmcp.http._server.origins import Origins
from sansmcp.http._server.post import PostReceiver
from sansmcp.http._server.session_store import SessionStore
from sansmcp.http._server.session_transport import SessionTransport
from sansmcp.http._server.shared_transport import PostResponse, SharedTransport
from sansmcp.http._server.streams import SessionStreams, Stream
from tests.support.http.server_endpoint import modern_headers, sessions
from tests.support.modern import modern
from tests.support.wire import (
    INITIALIZED,
    SERVER_CAPABILITIES,
    SERVER_INFO,
    call,
    initialize,
    ready_client,
)

MODERN: Final = MODERN_REVISIONS[-1]
LEGACY: Final = LEGACY_REVISIONS[-1]
RESULT: Final[JSONObject] = {"content": []}
CALL: Final = call(1, "tools/call", {"name": "t", "arguments": {}})


def new_core(
    now: float | None = None, keep_alive: float | None = None, **config: Any
) -> ServerEndpointCore:
    """The shared core, at this time."""
    core = ServerEndpointCore(Config(**config), keep_alive=keep_alive)
    if now is not None:
        core.tell(now)
    return core


def events_of(core: ServerEndpointCore) -> list[Any]:
    """Take all events."""
    events: list[Any] = []
    while core.events:
        events.append(core.events.take())
    return events


def service_of(**settings: Any) -> Service:
    """The service of an endpoint of all revisions."""
    settings.setdefault("legacy_revisions", LEGACY_REVISIONS)
    settings.setdefault("modern_revisions", MODERN_REVISIONS)
    revisions = settings["legacy_revisions"] + settings["modern_revisions"]
    return Service(revisions=revisions, **settings)


def new_exchange(
    core: ServerEndpointCore,
    method: str = "POST",
    headers: Iterable[tuple[str, str]] = (),
    target: str = "/mcp",
    principal: Any = None,
    *,
    json_first: bool = True,
    stream: bool = True,
) -> ServerExchangeCore:
    """An exchange with a judged head: the client accepts one JSON object, and perhaps a stream."""
    exchange = ServerExchangeCore(core, method, target, Fields(list(headers)), principal)
    exchange.accepted = Accepted(json=True, stream=stream)
    exchange.json_first = json_first
    exchange.common = ()
    return exchange


def output_of(exchange: ServerExchangeCore) -> list[Any]:
    """Take the output of the exchange."""
    output: list[Any] = []
    while (piece := exchange.next_output()) is not None:
        output.append(piece)
    return output


def whole(exchange: ServerExchangeCore) -> tuple[int, Any]:
    """The status and the JSON of a whole response."""
    response = exchange.response()
    assert response is not None
    return response[0], json.loads(response[2]) if response[2] else None


class Ledger:
    """Counts the waiting output."""

    def __init__(self) -> None:
        self.unsent = 0

    def waits(self, size: int) -> None:
        self.unsent += size

    def taken(self, size: int) -> None:
        self.unsent -= size


# ---------------------------------------------------------------------------- what all parts share


def test_the_core_keeps_time_and_wakes_its_caller_once() -> None:
    """All connections share one clock, and each kind of news wakes the caller once."""
    calls: list[int] = []
    core = ServerEndpointCore(Config(), wake=lambda: calls.append(len(calls)))
    core.tell(2.0)
    core.tell(1.0)
    core.report(Breach("OWN-037", "text"))
    core.settle()
    core.settle()

    assert core.now == 2.0
    assert len(calls) == 1
    assert copy.deepcopy(core).wake is None


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"sessions": sessions(), "legacy_revisions": ()}, "have no sessions"),
        ({"old_paths": OldPaths(stream="/sse", post="/post")}, "need sessions"),
    ],
)
def test_a_service_is_not_set_up_against_itself(settings: dict[str, Any], match: str) -> None:
    """Contradictory settings must raise, so that each part can rely on them."""
    with pytest.raises(ValueError, match=match):
        service_of(**settings)


class Body:
    """The owner of a body, which records whether the body was refused."""

    def __init__(self) -> None:
        self.refused = False

    def refuse_for_memory(self) -> None:
        self.refused = True


def test_held_memory_lets_the_longest_body_go() -> None:
    """A client that never ends its body must not refuse all others."""
    held, small, large = HeldMemory(100), Body(), Body()

    assert not held.body_has(small, 30)
    assert held.body_has(large, 80)
    assert (small.refused, large.refused, held.bytes) == (False, True, 30)
    held.body_is_over(small)
    assert held.bytes == 0


def test_a_decoded_message_is_weighed() -> None:
    """Decoded brackets take many times the memory of their text."""
    body = b"[" + b"[]," * 999 + b"[]]"
    value = json.loads(body)

    assert not HeldMemory(10_000).weigh(body, value)
    assert HeldMemory(1_000_000).weigh(body, value)


def test_duplicate_names_are_found() -> None:
    """Two parsers may read two different messages."""
    text = b'{"a": 1, "a": ":"}'
    assert has_duplicates(text, json.loads(text))
    assert not has_duplicates(b'{"a": ":"}', {"a": ":"})


# ------------------------------------------------------------------------------------- exchanges


def test_an_exchange_gives_its_response_in_pieces() -> None:
    """Head, body and end must come in order, and waiting output be counted until it is taken."""
    core, ledger = new_core(), Ledger()
    exchange = new_exchange(core)
    exchange.ledger = ledger
    exchange.answer(200, b"{}")
    assert ledger.unsent == 2

    assert [type(piece) for piece in output_of(exchange)] == [SendHead, SendBody, SendEnd]
    assert ledger.unsent == 0
    assert not core.ready  # only what a transport holds is named to it


def test_a_silent_stream_has_comments() -> None:
    """A proxy would close a silent stream."""
    core = new_core(now=0.0, keep_alive=5.0)
    exchange = new_exchange(core)
    exchange.ledger = Ledger()
    exchange.start_stream()
    output_of(exchange)
    core.tell(5.0)
    core.timers.fire(5.0)

    assert output_of(exchange) == [SendBody(b":\n\n")]
    exchange.end()
    assert output_of(exchange) == [SendEnd()]
    assert core.timers.earliest() is None


class Receiver:
    """Takes whole bodies, and answers 202."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def receive(self, exchange: ServerExchangeCore, body: bytes | bytearray) -> None:
        self.bodies.append(bytes(body))
        exchange.answer(202, b"")


def test_the_handle_of_an_exchange_takes_the_body_and_gives_the_response() -> None:
    """The handle of a transport must work with any receiver of the body."""
    core, receiver = new_core(), Receiver()
    exchange = new_exchange(core)
    handle = ServerExchange(exchange, receiver)
    handle.principal, handle.principal_key, handle.context = "user", "key", "context"
    handle.receive_data(b"{")
    handle.receive_data(b"}")
    handle.receive_data(b"\n")
    handle.receive_end()

    assert receiver.bodies == [b"{}\n"]
    assert (exchange.principal, exchange.principal_key, exchange.context) == (
        "user",
        "key",
        "context",
    )
    assert (handle.principal, handle.principal_key, handle.context) == ("user", "key", "context")
    assert list(core.ready) == [handle]
    assert handle.response() == (202, ((b"content-length", b"0"),), b"")
    assert not core.ready


def test_the_handle_refuses_a_body_over_the_limit() -> None:
    """The handle must refuse the body itself, without a part that reads it."""
    core = new_core(max_message_bytes=1024)
    exchange = new_exchange(core)
    handle = ServerExchange(exchange, Receiver())
    handle.receive_data(b" " * 1025)

    assert handle.refused
    assert whole(exchange)[0] == 413
    assert [event.rule for event in events_of(core)] == ["OWN-001"]


# ----------------------------------------------------------------------------------------- heads


def new_judge(core: ServerEndpointCore, service: Service) -> RequestHeadJudge:
    return RequestHeadJudge(core, service, Origins((), None))


def judged(
    judge: RequestHeadJudge, core: ServerEndpointCore, method: str, **headers: str
) -> ServerExchangeCore:
    fields = [(name.replace("_", "-"), value) for name, value in headers.items()]
    exchange = ServerExchangeCore(core, method, "/mcp", Fields(fields))
    judge.judge(exchange)
    return exchange


def test_the_judge_of_heads_reads_which_forms_a_client_takes() -> None:
    """Accept must be read, also when the same head comes again."""
    core = new_core()
    judge = new_judge(core, service_of())
    for _ in range(2):
        exchange = judged(
            judge, core, "POST", content_type="application/json", accept="application/json"
        )
        assert exchange.accepted == Accepted(json=True, stream=False)
        assert exchange.json_first
        assert not exchange.over


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {}, 415),
        ("POST", {"content_type": "application/json", "host": "evil.example"}, 403),
        ("PUT", {}, 405),
        ("GET", {"accept": "application/json"}, 406),
    ],
)
def test_the_judge_of_heads_refuses(method: str, headers: dict[str, str], status: int) -> None:
    """A wrong head must be refused before its body."""
    core = new_core()
    exchange = judged(new_judge(core, service_of(sessions=sessions())), core, method, **headers)

    assert exchange.status == status


@pytest.mark.parametrize(
    ("revision", "is_served"), [("2025-03-26", True), (MODERN, False), ("1999-01-01", False)]
)
def test_the_judge_of_heads_knows_the_legacy_revisions(revision: str, is_served: bool) -> None:
    """The revision header of a legacy request must be one of them."""
    core = new_core()
    exchange = new_exchange(core, headers=[("mcp-protocol-version", revision)])

    assert new_judge(core, service_of()).judge_version(exchange, 1) is is_served
    assert exchange.over is not is_served


def test_modern_headers_repeat_the_body() -> None:
    """A gateway may have routed the request by its headers."""
    params: JSONObject = {"name": "t"}
    good = Fields([("mcp-method", "tools/call"), ("mcp-name", "t")])
    bad = Fields([("mcp-method", "tools/call"), ("mcp-name", "u")])

    assert judge_headers(good, "tools/call", params, True, None) is None
    breach = judge_headers(bad, "tools/call", params, True, None)
    assert breach is not None
    assert breach.rule == "HDR-032"


# ----------------------------------------------------------------------------- streams of a session


class Owner(Ledger):
    """The connection of a session, as its streams see it."""

    def __init__(self, core: Core) -> None:
        super().__init__()
        self.core: Core = core
        self.asking: OutgoingRequest | None = None
        self.lost: list[OutgoingRequest] = []
        self.said: list[str] = []
        self.has_left = False

    @property
    def session(self) -> Session:
        raise AssertionError("there is none")

    def lose(self, call: OutgoingRequest) -> None:
        self.lost.append(call)

    def report_log(self, what: str) -> None:
        self.said.append(what)

    def release_changes(self) -> None: ...

    def stream_left(self) -> None:
        self.has_left = True

    def report_undelivered(self, is_answer: bool) -> None:
        raise AssertionError("nothing is lost")


def new_streams(core: ServerEndpointCore, **settings: Any) -> SessionStreams:
    """The streams of a session of the newest legacy revision."""
    owner: Any = Owner(new_shared(core).core)
    owner.core.peer.revision = LEGACY
    return SessionStreams(owner, sessions(**settings), b"s1", None)


def new_shared(core: ServerEndpointCore, **settings: Any) -> SharedTransport:
    """A connection that many clients share."""
    settings.setdefault("revisions", (*LEGACY_REVISIONS, *MODERN_REVISIONS))
    settings.setdefault("tasks", None)
    return SharedTransport(
        core,
        info=SERVER_INFO,
        capabilities=SERVER_CAPABILITIES,
        instructions=None,
        config=core.config,
        **settings,
    )


def ids_in(output: list[Any]) -> list[bytes]:
    """The event ids in the output of an exchange."""
    data = b"".join(piece.data for piece in output if isinstance(piece, SendBody))
    return [line[4:] for line in data.split(b"\n") if line.startswith(b"id: ")]


def test_a_stream_is_resumed_by_another_exchange() -> None:
    """Messages that no client has read must follow, each once."""
    core = new_core()
    streams = new_streams(core)
    first = new_exchange(core, json_first=False)
    stream = Stream(streams, first)
    stream.start()
    stream.deliver(b'{"a":1}')
    seen = ids_in(output_of(first))[-1].decode()
    stream.disconnected()
    stream.closing = True
    assert stream.deliver(b'{"b":2}')

    second = new_exchange(core, "GET")
    assert streams.resume(second, seen)
    assert [
        b'{"b":2}' in piece.data for piece in output_of(second) if isinstance(piece, SendBody)
    ] == [True]
    assert second.over
    assert not streams.resume(new_exchange(core, "GET"), "00000000-1-1")


def test_messages_without_a_request_go_to_the_newest_get_stream() -> None:
    """Each message must go out on one connection."""
    core = new_core()
    streams = new_streams(core, event_log=None)
    assert not streams.deliver(b"{}")
    old, new = new_exchange(core, "GET"), new_exchange(core, "GET")
    streams.open(old)
    streams.open(new)
    assert streams.deliver(b"{}")

    assert [len(old.pieces), len(new.pieces)] == [0, 1]
    streams.end()
    assert (old.over, new.over) == (True, True)


def test_a_stream_is_paused() -> None:
    """The client must get a time to wait, and find the rest in the log."""
    core = new_core()
    stream = Stream(new_streams(core), exchange := new_exchange(core))

    assert stream.pause(50)
    assert exchange.over
    assert b"retry: 50" in b"".join(exchange.pieces)
    assert not stream.pause(50)


class Failing:
    """An event log that does not work."""

    def append(self, stream: int, event: int, message: bytes) -> int:
        raise OSError("disk full")

    def replay(self, stream: int, after: int) -> None:
        raise OSError("disk full")


class Logged:
    """A stream, as a log sees it."""

    def __init__(self) -> None:
        self.number, self.events, self.unseen = 1, 1, 1


def test_the_history_of_a_session_reports_what_its_log_does() -> None:
    """A full log ends the request that it drops; a failing log is reported once."""
    owner: Any = Owner(new_shared(new_core()).core)
    history = History(owner, lambda: MemoryEventLog(max_events=1))
    question = ready_client(LEGACY).send_request("tools/list")
    stream = Logged()
    assert history.keep(stream, b"1", question)
    stream.events = 2
    assert history.keep(stream, b"2", None)
    assert owner.lost == [question]
    assert history.after(1, 1) == [(2, b"2")]
    assert owner.said == ["is full: its oldest events were dropped"]

    owner.said.clear()
    failing = History(owner, Failing)
    assert not failing.keep(stream, b"1", None)
    assert failing.after(1, 0) is None
    assert failing.has_failed
    assert len(owner.said) == 1


# ------------------------------------------------------------------------------------ connections


def arrived(core: ServerEndpointCore) -> IncomingRequest:
    """Take the one request that has come."""
    (request,) = [event.request for event in events_of(core) if isinstance(event, RequestReceived)]
    return request


def test_a_shared_connection_answers_by_the_reply_of_the_request() -> None:
    """Two clients may use the same id, so a response must go to the exchange of its request."""
    core = new_core()
    shared = new_shared(core, revisions=MODERN_REVISIONS)
    message = modern(1, "tools/call", {"name": "t", "arguments": {}})
    replies: list[tuple[IncomingRequest, ServerExchangeCore]] = []
    for _ in range(2):
        exchange = new_exchange(core)
        shared.machine.intake.receive_request(
            message, "tools/call", PostResponse(exchange, shared, message["id"]), None
        )
        replies.append((arrived(core), exchange))
    for request, exchange in reversed(replies):
        shared.machine.incoming.send_result(request, RESULT, None, None)
        assert whole(exchange)[0] == 200
    assert shared.core.requests == {}


def test_a_client_that_leaves_cancels_its_modern_request() -> None:
    """A disconnect is the only way to cancel a modern request."""
    core = new_core()
    shared = new_shared(core, revisions=MODERN_REVISIONS)
    shared.is_modern = True
    message = modern(1, "tools/call", {"name": "t", "arguments": {}})
    reply = PostResponse(new_exchange(core), shared, message["id"])
    shared.machine.intake.receive_request(message, "tools/call", reply, None)
    request = arrived(core)
    reply.disconnected()

    assert [(type(event), event.request) for event in events_of(core)] == [
        (RequestCancelled, request)
    ]


def test_an_answer_that_no_client_took_is_reported() -> None:
    """The application would believe that it was delivered."""
    core = new_core()
    PostResponse(new_exchange(core), new_shared(core), 1).answer_lost()

    assert events_of(core) == [MessageUndelivered(session=None, is_answer=True)]


class Store:
    """The store of a session, as the session sees it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def started(self, transport: SessionTransport, request: IncomingRequest) -> None:
        self.calls.append("started")

    def forget(self, transport: SessionTransport) -> None:
        self.calls.append("forget")

    def over(self, transport: SessionTransport) -> None:
        self.calls.append("over")

    def ask_to_replay(
        self, exchange: ServerExchangeCore, session: Session, stream: int, after: int, upto: int
    ) -> bool:
        self.calls.append(f"replay {stream} {after} {upto}")
        return True

    def subscribed(self, uri: str, transport: SessionTransport) -> None:
        self.calls.append(f"subscribed {uri}")

    def unsubscribed(self, uri: str, transport: SessionTransport) -> None:
        self.calls.append(f"unsubscribed {uri}")


def new_session(core: ServerEndpointCore, store: Store, **settings: Any) -> SessionTransport:
    """The connection of a session that is not open yet."""
    return SessionTransport(
        core,
        store,
        new_shared(core).core,
        sessions(**settings),
        b"s1",
        "user",
        info=SERVER_INFO,
        capabilities=SERVER_CAPABILITIES,
        instructions=None,
        tasks=None,
        revisions=LEGACY_REVISIONS,
        config=core.config,
    )


def test_the_connection_of_a_session_tells_its_store() -> None:
    """The store must learn of its start, its subscriptions and its end."""
    core, store = new_core(), Store()
    session = new_session(core, store)
    for message in (
        initialize(1, LEGACY),
        INITIALIZED,
        call(2, "resources/subscribe", {"uri": "file:///a"}),
    ):
        exchange = new_exchange(core)
        session.sender = exchange
        session.machine.receive_object(message, Stream(session.streams, exchange), None, b"")
    (request,) = session.core.requests.values()
    session.machine.incoming.send_result(request, {}, None, None)
    session.end_session(SessionEnd.CLOSED)

    assert store.calls == [
        "started",
        "subscribed file:///a",
        "unsubscribed file:///a",
        "over",
    ]
    assert (session.session.id, session.session.principal) == ("s1", "user")
    assert session.session.revision == LEGACY


def test_a_silent_session_ends() -> None:
    """A client may forget its session without DELETE."""
    core, store = new_core(now=0.0), Store()
    session = new_session(core, store, idle=10.0)
    session.touch()
    core.tell(10.0)
    core.timers.fire(10.0)

    assert store.calls == ["over"]
    assert session.end_cause is SessionEnd.EXPIRED


def new_store(core: ServerEndpointCore, service: Service) -> SessionStore:
    settings: dict[str, Any] = {
        "info": SERVER_INFO,
        "capabilities": SERVER_CAPABILITIES,
        "instructions": None,
        "tasks": None,
        "revisions": LEGACY_REVISIONS,
        "config": core.config,
    }
    assert service.sessions is not None
    return SessionStore(
        core, service, service.sessions, new_shared(core).core, settings, Lookups(core)
    )


def test_the_store_opens_finds_and_forgets_sessions() -> None:
    """Another principal must find nothing, and a full store refuse the next client."""
    core = new_core()
    store = new_store(core, service_of(sessions=sessions(max_sessions=1)))
    opened = store.open(new_exchange(core, principal="user"), initialize(1, LEGACY), 1)
    assert opened is not None
    named = [("mcp-session-id", "s1")]
    assert store.find(new_exchange(core, headers=named, principal="user"), 1) is opened
    assert store.find(foreign := new_exchange(core, headers=named, principal="other"), 1) is None
    assert foreign.status == 404
    assert store.open(late := new_exchange(core), initialize(1, LEGACY), 1) is None
    assert late.status == 503
    store.over(opened)

    assert store.sessions == ()
    assert [type(event) for event in events_of(core)] == [
        ProtocolViolation,
        LimitReached,
        SessionEnded,
    ]


def new_hosted(core: ServerEndpointCore, service: Service) -> HostedTransports:
    settings: dict[str, Any] = {"instructions": None, "config": core.config, "tasks": None}
    return HostedTransports(core, service, new_shared(core), settings, Lookups(core))


def test_connections_are_hosted_for_each_way_to_be_served() -> None:
    """All modern clients share one connection, and legacy clients without sessions one per
    revision."""
    hosted = new_hosted(core := new_core(), service_of())
    fields = Fields([(b"mcp-protocol-version", LEGACY.encode())])
    assert hosted.known_stateless(fields) is None
    stateless = hosted.stateless(fields)

    assert hosted.stateless(fields) is hosted.known_stateless(fields) is stateless
    assert hosted.modern is hosted.whole
    assert hosted.all() == [hosted.whole, stateless]
    assert "listChanged" not in json.dumps(stateless.core.capabilities)
    assert not core.events


# ------------------------------------------------------------------------------------- methods


class Served:
    """POST and the other methods, over the connections of an endpoint."""

    def __init__(self, **settings: Any) -> None:
        self.core = new_core()
        self.service = service_of(**settings)
        self.hosted = new_hosted(self.core, self.service)
        self.heads = new_judge(self.core, self.service)
        self.post = PostReceiver(
            self.core, self.service, self.hosted, self.heads, Lookups(self.core)
        )
        self.methods = Methods(self.core, self.service, self.hosted.store, self.heads, self.post)

    def receive(
        self, method: str, body: object, headers: Iterable[tuple[str, str]] = ()
    ) -> ServerExchangeCore:
        exchange = new_exchange(self.core, method, headers)
        self.methods.receive(exchange, b"" if body is None else json.dumps(body).encode())
        return exchange


def test_post_finds_the_connection_of_a_message() -> None:
    """A modern request and a legacy one without a session must go to their own connections."""
    served = Served()
    message = modern(1, "tools/call", {"name": "t", "arguments": {}})
    now = served.core
    served.post.receive(
        new_exchange(now, headers=modern_headers(message).items()), json.dumps(message).encode()
    )
    old = new_exchange(now, headers=[("mcp-protocol-version", LEGACY)])
    served.post.receive(old, json.dumps(CALL).encode())

    requests = [event.request for event in events_of(now)]
    assert [request.revision for request in requests] == [MODERN, LEGACY]
    assert served.core.held.bytes > 0


@pytest.mark.parametrize(("body", "status"), [(b"{", 400), (b'{"a":1,"a":1}', 400), (b"7", 400)])
def test_post_refuses_what_is_no_message(body: bytes, status: int) -> None:
    """An invalid body must not reach a connection."""
    served = Served()
    exchange = new_exchange(served.core)
    served.post.receive(exchange, body)

    assert whole(exchange)[0] == status
    assert served.hosted.whole.core.requests == {}


def test_methods_open_and_end_a_session() -> None:
    """POST opens a session, GET its stream, DELETE ends it, and OPTIONS lists the methods."""
    served = Served(sessions=sessions())
    opening = served.receive("POST", initialize(1, LEGACY))
    assert whole(opening)[0] == 200
    named = [("mcp-session-id", "s1"), ("mcp-protocol-version", LEGACY)]
    stream = served.receive("GET", None, named)
    assert stream.is_stream
    assert served.receive("DELETE", None, named).status == 204
    assert stream.over
    options = served.receive("OPTIONS", None)

    assert (options.status, dict(options.headers)[b"allow"]) == (204, b"GET, POST, DELETE, OPTIONS")
    assert [type(event) for event in events_of(served.core)][-1] is SessionEnded


def test_methods_serve_nothing_when_the_endpoint_closes() -> None:
    """The status must not blame the request."""
    served = Served()
    served.core.closing = True

    assert whole(served.receive("POST", CALL))[1]["error"]["code"] == -32603


def test_post_reads_a_body_with_a_byte_order_mark() -> None:
    """Some clients write a byte order mark before the message."""
    served = Served()
    exchange = new_exchange(served.core, headers=[("mcp-protocol-version", LEGACY)])
    served.post.receive(exchange, b"\xef\xbb\xbf" + json.dumps(call(1, "ping")).encode())

    assert whole(exchange) == (200, {"jsonrpc": "2.0", "id": 1, "result": {}})
    assert [
        event.rule for event in events_of(served.core) if isinstance(event, ProtocolViolation)
    ] == ["OWN-017"]
