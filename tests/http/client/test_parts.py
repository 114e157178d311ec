"""Each part of a client endpoint can be made without the rest, and does its own work.

Each part is given what it needs: the shared core, and at most the parts below it. Nothing here
makes a `ClientEndpoint`.
"""

import json
from typing import Any

import pytest

from sansmcp import (
    ALL_REVISIONS,
    LEGACY_REVISIONS,
    Config,
    ConnectionClosed,
    ConnectionFailed,
    ErrorReceived,
    FailureReason,
    JSONObject,
    NotificationReceived,
    Phase,
    ProtocolViolation,
    Ready,
    RequestFailed,
    ResponseReceived,
    State,
)
from sansmcp._connection.connection import ByteStreamTransport
from sansmcp._connection.core import Core
from sansmcp._connection.machine import ClientMachine
from sansmcp._spec.errors import LocalProtocolError
from sansmcp._wire.values import Side
from sansmcp.http import (
    AuthorizationRequired,
    ClientExchange,
    MessageRefused,
    OverlongEvent,
    ServerSentEvent,
    SessionLost,
    StreamUnavailable,
)
from sansmcp.http._client.authorization import Authorization
from sansmcp.http._client.core import ClientEndpointCore
from sansmcp.http._client.exchange import (
    ClientExchangeCore,
    ExchangeOwner,
    ExchangePurpose,
    ExchangeQueue,
)
from sansmcp.http._client.headers import RequestHeaders
from sansmcp.http._client.old_transport import OldStream, may_be_old
from sansmcp.http._client.post import PostedMessage
from sansmcp.http._client.post_transport import PostTransport, ToolRefresh
from sansmcp.http._client.response_head import Head
from sansmcp.http._client.response_judge import ResponseJudge
from sansmcp.http._client.responses import ReceivedResponses, error_in
from sansmcp.http._client.retries import StreamRetries
from sansmcp.http._client.session import ClientSession, SessionDelete
from sansmcp.http._client.streams import StandaloneStream
from sansmcp.http._client.tool_headers import ToolHeaders
from sansmcp.http._client.urls import read_url

URL = "http://localhost/mcp"
NEWEST = LEGACY_REVISIONS[-1]
INFO: JSONObject = {"name": "client", "version": "1"}
JSON_HEAD = {"content-type": "application/json"}
SSE_HEAD = {"content-type": "text/event-stream"}


def new_core(**settings: Any) -> ClientEndpointCore:
    """The shared core, with a machine that sends its messages nowhere."""
    core = ClientEndpointCore(read_url(URL), Config(**settings), None)
    core.machine = new_machine(core)
    return core


def new_machine(core: ClientEndpointCore) -> ClientMachine:
    own = Core(
        Side.CLIENT,
        ByteStreamTransport(),
        info=INFO,
        capabilities=None,
        revisions=ALL_REVISIONS,
        config=core.config,
        wake=None,
        newline=b"",
        timers=core.timers,
    )
    own.events = core.events
    machine = ClientMachine(own, ())
    own.tell(0.0)
    return machine


def new_queue(headers: tuple[tuple[bytes, bytes], ...] = (), **settings: Any) -> ExchangeQueue:
    return ExchangeQueue(new_core(**settings), RequestHeaders(headers))


def events_of(core: ClientEndpointCore) -> list[Any]:
    events: list[Any] = []
    while (event := core.next_event()) is not None:
        events.append(event)
    return events


def taken(queue: ExchangeQueue) -> ClientExchange:
    """Take the one exchange that is due."""
    exchange = queue.take()
    assert exchange is not None
    return exchange


class Accepting:
    """A judge without rules: owners get every head, and refusals are kept as they came."""

    def __init__(self) -> None:
        self.refusals: list[tuple[int, bytes]] = []

    def judge_head(self, exchange: ClientExchangeCore, head: Head) -> None:
        if head.is_good:
            exchange.owner.head(exchange, head)
        else:
            exchange.read_refusal()

    def judge_refusal(self, exchange: ClientExchangeCore, head: Head, body: bytes) -> None:
        self.refusals.append((head.status, body))


class Collector(ExchangeOwner):
    """A stream that keeps what it gets.

    Attributes:
        got: Events, and how exchanges and the stream ended, in their order.
    """

    def __init__(self, queue: ExchangeQueue) -> None:
        super().__init__(queue)
        self.retries = StreamRetries(queue.core)
        self.got: list[object] = []

    def head(self, exchange: ClientExchangeCore, head: Head) -> None:
        if head.media_type == "text/event-stream":
            exchange.read_stream()
        else:
            exchange.read_whole()

    def whole(self, head: Head, body: bytes) -> None:
        self.got.append(body)

    def event(self, exchange: ClientExchangeCore, item: ServerSentEvent | OverlongEvent) -> None:
        assert isinstance(item, ServerSentEvent)
        self.got.append(item.data)

    def broken(self, exchange: ClientExchangeCore, text: str) -> None:
        self.got.append(text)

    def fail_with_status(self, status: int, text: str) -> None:
        self.got.append(status)

    def lost(self, text: str) -> None:
        self.got.append(text)


# ------------------------------------------------------------------------------- heads, headers


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:09 GMT"}, None),
        (
            {
                "retry-after": "Thu, 01 Jan 1970 00:00:09 GMT",
                "date": "Thu, 01 Jan 1970 00:00:04 GMT",
            },
            5.0,
        ),
    ],
)
def test_head_says_when_to_try_again(fields: dict[str, str], seconds: float | None) -> None:
    """A date in Retry-After needs a clock: that of this side, or the server's `Date`."""
    assert Head(503, fields).retry_after == seconds


def test_clock_of_this_side_goes_before_that_of_the_server() -> None:
    """The clock of a server may be wrong by hours."""
    fields = {"retry-after": "Thu, 01 Jan 1970 00:00:09 GMT", "date": "now"}
    assert Head(503, fields, at=3.0).retry_after == 6.0
    assert Head(503, fields, at=30.0).retry_after == 0.0


def test_request_headers_are_those_of_the_era() -> None:
    """Only legacy requests name a session, and only from 2025-06-18 on a revision."""
    headers = RequestHeaders(((b"x-own", b"1"),))
    own = ((b"x-own", b"1"), (b"accept-encoding", b"identity"))

    assert headers.legacy((), None, None) == own
    assert headers.legacy((), "2025-03-26", b"s") == ((b"mcp-session-id", b"s"), *own)
    assert headers.legacy((), "2025-06-18", None)[0] == (b"mcp-protocol-version", b"2025-06-18")
    assert headers.modern(()) == ((b"mcp-protocol-version", b"2026-07-28"), *own)


def test_replaced_headers_are_told_from_those_before() -> None:
    """A refusal of old credentials must not count against the new ones."""
    headers = RequestHeaders(())
    before = headers.version
    assert not headers.has_any

    headers.replace(((b"authorization", b"Bearer secret"),))

    assert headers.version != before
    assert headers.has_any


def test_excerpt_hides_credentials() -> None:
    """Servers repeat received headers in error pages."""
    headers = RequestHeaders(((b"authorization", b"Bearer secret"),))
    assert headers.excerpt(b"no: secret, of session-1!", b"session-1") == b"no: ***, of ***!"


def test_tool_headers_repeat_marked_arguments() -> None:
    """The marks in a listing decide which headers the calls of a tool have."""
    tools = ToolHeaders(new_core())
    schema = {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}}
    params: JSONObject = {"name": "weather", "arguments": {"city": "Ulm"}}
    plain = ((b"mcp-method", b"tools/call"), (b"mcp-name", b"weather"))
    assert tools.fields_of("tools/call", params) == plain

    tools.learn({"tools": [{"name": "weather", "inputSchema": schema}]})

    assert tools.fields_of("tools/call", params) == (*plain, (b"mcp-param-city", b"Ulm"))


def test_invalid_tool_is_taken_out_of_a_listing() -> None:
    """Calls of a tool with invalid marks would be refused."""
    core = new_core()
    page: Any = {"tools": [{"name": "bad", "inputSchema": {"x-mcp-header": ""}}, {"name": "good"}]}

    ToolHeaders(core).learn(page)

    assert page == {"tools": [{"name": "good"}]}
    (report,) = events_of(core)
    assert isinstance(report, ProtocolViolation)
    assert report.rule == "HDR-013"


def test_method_without_a_form_in_a_header_is_refused() -> None:
    """A line break would change the header, or begin another one."""
    with pytest.raises(LocalProtocolError, match="OWN-039"):
        ToolHeaders(new_core()).fields_of("a\r\nb", {})


# ---------------------------------------------------------------------------- what parts share


class Work:
    """Exchanges that a test can add or take away."""

    def __init__(self) -> None:
        self.some = False

    def is_there(self) -> bool:
        return self.some


def test_core_wakes_once_for_work_an_event_and_a_deadline() -> None:
    """A caller that sleeps must be woken for each kind of news, and only once."""
    woken: list[str] = []
    core = ClientEndpointCore(read_url(URL), Config(), lambda: woken.append("woken"))
    core.machine = new_machine(core)
    core.work = work = Work()
    core.settle()
    assert woken == []

    work.some = True
    core.settle()
    core.settle()
    assert len(woken) == 1

    core.events.append("an event")
    core.settle()
    core.settle()
    assert len(woken) == 2

    StreamRetries(core).later(Collector(ExchangeQueue(core, RequestHeaders(()))), "it ended")
    core.settle()
    core.settle()
    assert len(woken) == 3


def test_retries_wait_longer_each_time_and_then_end() -> None:
    """A server that is down must get few retries, and not for ever."""
    queue = new_queue(max_reconnects=4)
    owner, retries = Collector(queue), StreamRetries(queue.core)
    waits: list[float | None] = []
    for _ in range(3):
        retries.failed(owner, "it failed")
        waits.append(queue.core.timers.earliest())
        retries.stop()
    assert waits == [1.0, 2.0, 4.0]

    retries.failed(owner, "it failed")

    assert queue.core.timers.earliest() is None
    assert owner.got == ["it failed; 4 attempts to take up the stream have failed"]


def test_retries_send_when_the_time_has_come() -> None:
    """Retries must keep their own deadline and send the exchange of their owner."""
    queue = new_queue()
    retries = StreamRetries(queue.core)
    retries.retry_ms = 5000
    retries.after_end(Collector(queue), "it ended")
    queue.core.machine.handle_timeout(4.9)
    assert queue.take() is None

    queue.core.machine.handle_timeout(5.0)

    assert taken(queue).method == "GET"


# ----------------------------------------------------------------------------------- exchanges


def test_queue_gives_exchanges_out_in_order() -> None:
    """Each exchange must have the headers of its owner, then those of all."""
    queue = new_queue(((b"x-own", b"1"),))
    first, second = Collector(queue), Collector(queue)
    first.send()
    second.send()
    assert queue.is_there()

    given = [taken(queue), taken(queue)]

    assert queue.take() is None
    assert not queue.is_there()
    assert queue.under_way == tuple(given)
    assert given[0].headers == (
        (b"accept", b"text/event-stream"),
        (b"x-own", b"1"),
        (b"accept-encoding", b"identity"),
    )


def test_nothing_passes_the_barrier() -> None:
    """Servers refuse requests that come before `notifications/initialized`."""
    queue = new_queue()
    first, barrier = Collector(queue), Collector(queue)
    first.send()
    queue.barrier = barrier
    assert queue.take() is None
    barrier.send()
    assert barrier.exchange is not None
    taken(queue)
    assert queue.take() is None

    queue.passed(first)
    assert queue.take() is None
    queue.passed(barrier)

    assert first.exchange is not None
    taken(queue)
    assert first.exchange.is_given_out


def test_dropped_exchanges_are_aborted() -> None:
    """The caller must close the connections of dropped exchanges."""
    queue = new_queue()
    given, spared, unsent = Collector(queue), Collector(queue), Collector(queue)
    queue.standalone = Collector(queue)
    given.send()
    spared.send()
    exchange, _ = taken(queue), taken(queue)
    unsent.send()

    queue.drop_all(but={spared})

    assert queue.take_aborted() == [exchange]
    assert queue.take_aborted() == []
    assert [owner.over for owner in (given, unsent, spared)] == [True, True, False]
    assert queue.take() is None
    assert queue.standalone is None


def test_exchange_gives_its_owner_what_comes() -> None:
    """An exchange must turn bytes into events of a stream, whole bodies and refusals."""
    queue = new_queue()
    queue.judge = judge = Accepting()
    owner = Collector(queue)

    owner.send()
    stream = taken(queue)
    stream.receive_head(200, SSE_HEAD)
    assert stream.is_stream
    stream.receive_data(b"id: 7\ndata: on")
    stream.receive_data(b"e\n\n")
    stream.receive_end()
    assert owner.got == [b"one", "the stream ended"]
    assert owner.last_event_id == "7"

    owner.send()
    resumed = taken(queue)
    assert resumed.purpose is ExchangePurpose.RESUME
    assert (b"last-event-id", b"7") in resumed.headers
    resumed.receive_head(200, JSON_HEAD)
    resumed.receive_data(b"wh")
    resumed.receive_data(b"ole")
    resumed.receive_end()
    assert owner.got[2:] == [b"whole"]

    owner.send()
    refused = taken(queue)
    refused.receive_head(500, {})
    refused.receive_data(b"no")
    refused.receive_end()
    assert judge.refusals == [(500, b"no")]


def test_exchange_is_made_again_once_on_a_new_transport() -> None:
    """A server may have closed an idle connection before the request arrived."""
    queue = new_queue()
    owner = Collector(queue)
    owner.send()
    taken(queue).receive_failure("it was closed", kept=True)

    taken(queue).receive_failure("it was closed", kept=True)

    (text,) = owner.got
    assert isinstance(text, str)
    assert text.endswith("It was sent again once, and is not sent a third time.")


def test_standalone_stream_brings_messages() -> None:
    """Messages that belong to no request arrive on this stream."""
    queue = new_queue()
    queue.judge = Accepting()
    stream = StandaloneStream(queue, ReceivedResponses(opened_machine(queue)))
    stream.send()
    exchange = taken(queue)
    exchange.receive_head(200, SSE_HEAD)

    note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    exchange.receive_data(b"data: " + json.dumps(note).encode() + b"\n\n")

    (event,) = events_of(queue.core)
    assert isinstance(event, NotificationReceived)
    assert event.method == "notifications/tools/list_changed"


@pytest.mark.parametrize(("status", "is_told"), [(405, False), (200, True)])
def test_server_without_a_standalone_stream(status: int, is_told: bool) -> None:
    """405 to GET is no fault; a body of another media type is one."""
    queue = new_queue()
    stream = StandaloneStream(queue, ReceivedResponses(queue.core.machine))
    stream.send()
    assert stream.exchange is not None

    stream.head(stream.exchange, Head(status, JSON_HEAD))

    assert stream.over
    assert [type(event) for event in events_of(queue.core)] == [StreamUnavailable] * is_told


# ----------------------------------------------------------------------- messages and responses


def opened_machine(queue: ExchangeQueue) -> ClientMachine:
    """A machine with an open conversation with a server that has all capabilities."""
    machine = queue.core.machine
    machine.discovery.start(None, None, None, NEWEST, None, None)
    capabilities: JSONObject = {"tools": {"listChanged": True}}
    result: JSONObject = {
        "protocolVersion": NEWEST,
        "capabilities": capabilities,
        "serverInfo": INFO,
    }
    machine.receive_message(json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}))
    (ready,) = events_of(queue.core)
    assert isinstance(ready, Ready)
    return machine


def ask(machine: ClientMachine, method: str = "tools/call") -> Any:
    params: JSONObject = {"name": "echo"} if method == "tools/call" else {}
    return machine.outgoing.send(
        method, params, None, False, None, None, None, None, None, None, None
    )


def test_responses_answer_or_end_requests() -> None:
    """An HTTP response may be a result, a refusal, or neither."""
    queue = new_queue()
    machine = opened_machine(queue)
    responses = ReceivedResponses(machine)
    answered, refused, lost, mistaken = (ask(machine) for _ in range(4))

    event = ServerSentEvent(
        data=b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}' % answered.id, type="message"
    )
    responses.receive_event(event)
    responses.refuse(refused, 503, "it is closed")
    responses.fail(lost, FailureReason.LOST, "it broke off")
    responses.fail(lost, FailureReason.LOST, "it broke off again")
    responses.answer_with(mistaken, {"id": None, "error": {"code": 7, "message": "no"}})

    ended = events_of(queue.core)
    assert [type(event) for event in ended] == [
        ResponseReceived,
        RequestFailed,
        RequestFailed,
        ErrorReceived,
    ]
    assert [event.request for event in ended] == [answered, refused, lost, mistaken]
    assert [event.reason for event in ended[1:3]] == [FailureReason.REFUSED, FailureReason.LOST]


def test_responses_tell_what_is_wrong_with_a_body() -> None:
    """A body without a response must end its request with a reason."""
    queue = new_queue()
    responses = ReceivedResponses(opened_machine(queue))
    assert responses.receive_body(object(), b"{") != ""
    note = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    assert responses.receive_body(object(), note) == ""


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_error_in_a_refusal_may_follow_a_byte_order_mark(mark: bytes) -> None:
    """The error must be read, and the mark be reported."""
    core = new_core()
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": 7, "message": "no"}}

    assert error_in(mark + json.dumps(error).encode(), core.machine.core) == error

    assert [event.rule for event in events_of(core)] == ["OWN-017"] * bool(mark)


@pytest.mark.parametrize("body", [b"", b"no", b"[]", b'{"error":{}}', b'{"method":"m","id":1}'])
def test_refusal_without_an_error(body: bytes) -> None:
    """Most bodies of refusals are pages for browsers, and hold no JSON-RPC error."""
    assert error_in(body, new_core().machine.core) is None


def test_refused_probe_ends_the_start() -> None:
    """503 does not tell the era of a server, so no handshake can help."""
    queue = new_queue()
    machine = queue.core.machine
    start = machine.discovery.start(None, None, None, None, None, None)
    (probe,) = machine.outgoing.calls.values()

    ReceivedResponses(machine).refuse(probe, 503, "it is closed")

    failed, closed = events_of(queue.core)
    assert isinstance(failed, ConnectionFailed)
    assert isinstance(closed, ConnectionClosed)
    assert not start.open


def new_post(queue: ExchangeQueue, call: Any = None) -> PostedMessage:
    post = PostedMessage(queue, ReceivedResponses(queue.core.machine), call, (), is_modern=False)
    post.body = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    return post


def test_post_carries_its_message() -> None:
    """Each message must be one POST in the queue."""
    queue = new_queue()
    queue.judge = Accepting()
    post = new_post(queue)
    post.send()
    exchange = taken(queue)
    assert (exchange.method, exchange.body) == ("POST", post.body)
    assert post.may_repeat

    exchange.receive_head(202, {})
    exchange.receive_end()

    assert post.over
    assert events_of(queue.core) == []


def test_answer_of_a_post_is_resumed_where_it_broke_off() -> None:
    """The server keeps the rest of a stream, and a GET must fetch it."""
    queue = new_queue()
    queue.judge = Accepting()
    machine = opened_machine(queue)
    post = new_post(queue, call=ask(machine))
    post.send()
    exchange = taken(queue)
    exchange.receive_head(200, SSE_HEAD)
    exchange.receive_data(b"id: 3\ndata:\n\n")
    exchange.receive_failure("it broke off")

    machine.handle_timeout(1.0)

    resumed = taken(queue)
    assert resumed.purpose is ExchangePurpose.RESUME
    assert (b"last-event-id", b"3") in resumed.headers


class Keeper:
    """A session keeper that counts what it is told, and keeps no session."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def opened(self) -> None:
        self.told.append("opened")

    def was_refused(self) -> None:
        self.told.append("refused")

    def keeps(self, transport: PostTransport) -> bool:
        self.told.append("lost")
        return False

    def finish(self) -> None:
        self.told.append("finished")


def new_transport(
    queue: ExchangeQueue, keeper: Keeper, revisions: tuple[str, ...] = (NEWEST,)
) -> PostTransport:
    transport = PostTransport(
        queue,
        ToolHeaders(queue.core),
        keeper,
        info=INFO,
        capabilities=None,
        revisions=revisions,
        requires=(),
        config=queue.core.config,
    )
    queue.core.machine = transport.machine
    return transport


def test_connection_posts_its_messages() -> None:
    """Each message of the machine must be an exchange, and the keeper learn of start and end."""
    queue, keeper = new_queue(), Keeper()
    queue.judge = Accepting()
    transport = new_transport(queue, keeper)
    transport.machine.discovery.start(None, None, None, None, None, None)
    exchange = taken(queue)
    assert json.loads(exchange.body)["method"] == "initialize"
    exchange.receive_head(200, JSON_HEAD)
    result = {"protocolVersion": NEWEST, "capabilities": {}, "serverInfo": INFO}
    exchange.receive_data(json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())
    exchange.receive_end()
    assert keeper.told == ["opened"]
    assert json.loads(taken(queue).body)["method"] == "notifications/initialized"

    transport.machine.close()

    assert keeper.told == ["opened", "finished"]
    assert transport.core.state is State.CLOSED


def test_tool_refresh_lists_tools_and_calls_again() -> None:
    """A tool whose schema has changed needs other headers."""
    queue = new_queue()
    queue.judge = Accepting()
    transport = new_transport(queue, Keeper(), ALL_REVISIONS[-1:])
    machine, responses = transport.machine, transport.responses
    machine.discovery.start(None, None, None, None, None, None)
    discovered: dict[str, Any] = {
        "supportedVersions": list(ALL_REVISIONS[-1:]),
        "capabilities": {"tools": {}},
        "serverInfo": INFO,
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    }
    respond(taken(queue), discovered)
    tools = ToolHeaders(queue.core)
    transport.fields = tools.fields_of("tools/call", {"name": "echo"})
    call = ask(machine)
    taken(queue)
    refresh = ToolRefresh(responses, tools)
    refusal: JSONObject = {
        "jsonrpc": "2.0",
        "id": call.id,
        "error": {"code": -32020, "message": "it differs"},
    }
    assert refresh.begins(call, refusal)
    assert not refresh.begins(call, refusal)
    listing = taken(queue)
    assert json.loads(listing.body)["method"] == "tools/list"

    listed: dict[str, Any] = {"tools": [], "ttlMs": 0, "cacheScope": "private"}
    respond(listing, {**listed, "resultType": "complete"})

    ended = events_of(queue.core)[-1]
    assert isinstance(ended, ErrorReceived)  # no other headers, so the refusal counts
    assert ended.request is call


def respond(exchange: ClientExchange, result: dict[str, Any], **fields: str) -> None:
    """Answer the request of an exchange with a result."""
    exchange.receive_head(200, {**JSON_HEAD, **fields})
    id = json.loads(exchange.body)["id"]
    exchange.receive_data(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode())
    exchange.receive_end()


# ---------------------------------------------------------------------- sessions and refusals


def refuse(authorization: Authorization, queue: ExchangeQueue, owner: ExchangeOwner) -> None:
    owner.send()
    taken(queue)
    assert owner.exchange is not None
    authorization.refused(owner.exchange, Head(401, {"www-authenticate": "Bearer"}))


def test_authorization_holds_exchanges_until_there_are_credentials() -> None:
    """Held exchanges must be sent again with the new headers."""
    queue = new_queue()
    authorization = Authorization(queue.core, queue, holds=True)
    owner = Collector(queue)
    refuse(authorization, queue, owner)
    (asked,) = events_of(queue.core)
    assert isinstance(asked, AuthorizationRequired)
    assert asked.kept
    assert queue.take() is None

    assert authorization.supply(((b"authorization", b"Bearer new"),)) == 1

    assert (b"authorization", b"Bearer new") in taken(queue).headers
    assert owner.got == []


def test_authorization_that_nobody_supplies_refuses() -> None:
    """Without credentials, held exchanges must end as refused."""
    queue = new_queue()
    authorization = Authorization(queue.core, queue, holds=True)
    held, ended = Collector(queue), Collector(queue)
    refuse(authorization, queue, held)
    assert authorization.refuse_held() == 1
    assert held.got == [401]

    refuse(Authorization(queue.core, queue, holds=False), queue, ended)
    assert ended.got == [401]
    assert [event.kept for event in events_of(queue.core)] == [False, False]


def new_session(queue: ExchangeQueue, *, get_stream: bool = False) -> ClientSession:
    authorization = Authorization(queue.core, queue, holds=False)
    return ClientSession(
        queue.core,
        queue,
        ToolHeaders(queue.core),
        authorization,
        info=INFO,
        capabilities=None,
        revisions=(NEWEST,),
        requires=(),
        get_stream=get_stream,
    )


class Following(Accepting):
    """A judge that knows session ids and status 404, and no other rule."""

    def __init__(self, session: ClientSession) -> None:
        super().__init__()
        self.session = session

    def judge_head(self, exchange: ClientExchangeCore, head: Head) -> None:
        if head.status == 404:
            self.session.lose(exchange.owner, 404)
            return
        if isinstance(exchange.owner, PostedMessage):
            self.session.answered(exchange.owner, head)
        super().judge_head(exchange, head)


def open_session(queue: ExchangeQueue, session: ClientSession, session_id: str = "one") -> None:
    """Answer the waiting `initialize`, and take the notification that follows."""
    result: dict[str, Any] = {
        "protocolVersion": NEWEST,
        "capabilities": {"tools": {}},
        "serverInfo": INFO,
    }
    respond(taken(queue), result, **{"mcp-session-id": session_id})
    queue.barrier = None
    taken(queue).receive_head(202, {})


def test_session_is_opened_lost_and_opened_again() -> None:
    """A request that was refused for its session must go on in the next one."""
    queue = new_queue()
    session = new_session(queue)
    queue.judge = Following(session)
    session.start(None, None, None, None, None, 0.0)
    open_session(queue, session)
    assert queue.core.session_id == b"one"
    call = ask(queue.core.machine)
    exchange = taken(queue)
    assert (b"mcp-session-id", b"one") in exchange.headers
    (ready,) = events_of(queue.core)
    assert isinstance(ready, Ready)

    exchange.receive_head(404, {})
    assert queue.core.session_id is None
    (lost,) = events_of(queue.core)
    assert isinstance(lost, SessionLost)
    assert lost.start is not None
    open_session(queue, session, "two")

    again = taken(queue)
    assert again.body == exchange.body
    assert (b"mcp-session-id", b"two") in again.headers
    assert call.open


def test_session_that_ends_is_deleted() -> None:
    """The server must not keep a session whose client is gone."""
    queue = new_queue()
    session = new_session(queue)
    queue.judge = Following(session)
    session.start(None, None, None, None, None, 0.0)
    open_session(queue, session)

    session.transport.machine.close()

    exchange = taken(queue)
    assert exchange.method == "DELETE"
    assert (b"mcp-session-id", b"one") in exchange.headers
    assert queue.core.session_id is None


def test_delete_is_over_when_it_fails() -> None:
    """A failed DELETE must change nothing."""
    queue = new_queue()
    delete = SessionDelete(queue, b"one")
    delete.send()
    taken(queue).receive_failure("the server is gone")
    assert delete.over
    assert events_of(queue.core) == []


def refused_initialize(queue: ExchangeQueue) -> PostedMessage:
    """An `initialize` that the server has refused with a text."""
    machine = queue.core.machine
    machine.discovery.start(None, None, None, NEWEST, None, None)
    (call,) = machine.outgoing.calls.values()
    post = new_post(queue, call=call)
    post.refusal = "status 405"
    return post


def test_old_stream_names_where_to_post() -> None:
    """On HTTP+SSE messages must go to the URL in the first event of the stream."""
    queue = new_queue()
    queue.judge = Accepting()
    post = refused_initialize(queue)
    OldStream(queue, post).send()
    stream = taken(queue)
    stream.receive_head(200, SSE_HEAD)

    stream.receive_data(b"event: endpoint\ndata: /messages\n\n")

    assert taken(queue).url == "http://localhost/messages"


def test_stream_that_names_another_origin_is_no_old_one() -> None:
    """A stream with a foreign endpoint must be refused, and the error of `initialize` be
    reported."""
    queue = new_queue()
    queue.judge = Accepting()
    post = refused_initialize(queue)
    OldStream(queue, post).send()
    stream = taken(queue)
    stream.receive_head(200, SSE_HEAD)

    stream.receive_data(b"event: endpoint\ndata: http://elsewhere/\n\n")

    assert stream.aborted
    assert any(isinstance(event, ConnectionFailed) for event in events_of(queue.core))


@pytest.mark.parametrize(("status", "may_be"), [(405, True), (503, False)])
def test_status_of_old_servers(status: int, may_be: bool) -> None:
    """An overloaded server must not be taken for one with HTTP+SSE."""
    assert may_be_old(new_core(), status, None) is may_be


def new_judge(queue: ExchangeQueue) -> ResponseJudge:
    session = new_session(queue)
    authorization = Authorization(queue.core, queue, holds=False)
    return ResponseJudge(queue.core, queue, session, authorization)


@pytest.mark.parametrize(
    ("status", "location", "url", "got"),
    [
        (307, "/there", "http://localhost/there", []),
        (307, "http://elsewhere/", None, [307]),
        (302, "", "http://localhost/mcp", []),
    ],
)
def test_judge_follows_redirects_of_one_origin(
    status: int, location: str, url: str | None, got: list[object]
) -> None:
    """Credentials must not go to another origin."""
    queue = new_queue()
    queue.judge = new_judge(queue)
    owner = Collector(queue)
    owner.send()
    headers = {"location": location or "mcp"}

    taken(queue).receive_head(status, headers)

    exchange = queue.take()
    assert (None if exchange is None else exchange.url) == url
    assert owner.got == got


def test_judge_reports_refused_messages() -> None:
    """A notification has no ending, so its refusal must be an event."""
    queue = new_queue()
    queue.judge = new_judge(queue)
    post = new_post(queue)
    post.send()
    exchange = taken(queue)
    exchange.receive_head(503, {"retry-after": "7"})
    exchange.receive_data(b"closed")
    exchange.receive_end()

    (refused,) = events_of(queue.core)
    assert refused == MessageRefused(status=503, retry_after=7.0, excerpt=b"closed")
    assert post.over
    assert queue.core.machine.core.conversation.phase is Phase.NEW
