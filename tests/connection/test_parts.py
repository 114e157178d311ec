"""Each part of a connection can be made without the others, and does its own work.

Each part is given what it needs: the shared core, and at most a few parts below it. Nothing here
makes a connection.
"""

import json
from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    MISSING,
    Config,
    ErrorReceived,
    Event,
    FailureReason,
    JSONObject,
    ListenerAdded,
    ListingEnded,
    LocalProtocolError,
    MessageIgnored,
    NotificationReceived,
    OutgoingRequest,
    PageReceived,
    PingEnded,
    ProtocolViolation,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ToolsListChanged,
)
from sansmcp._connection.connection import ByteStreamTransport
from sansmcp._connection.core import Core, MethodPart
from sansmcp._connection.events import CancelCause
from sansmcp._connection.incoming import IncomingRequests
from sansmcp._connection.incoming_responses import IncomingResponses
from sansmcp._connection.intake import Intake
from sansmcp._connection.listings import Listings
from sansmcp._connection.modern_messages import ModernMessages
from sansmcp._connection.notifications import Notifications
from sansmcp._connection.outgoing import OutgoingRequests
from sansmcp._connection.pings import Pings
from sansmcp._connection.subscriptions.server import (
    ChangePublisher,
    Listeners,
    ResourceSubscriptions,
)
from sansmcp._rules.conversation import Conversation
from sansmcp._rules.state_tables import Phase
from sansmcp._spec.registry import DIALECTS
from sansmcp._wire.values import Side

NEWEST = LEGACY_REVISIONS[-1]


class NoParts:
    """The questions of the core to all parts, answered as if there were none."""

    def clock_started(self) -> None: ...

    def fail_unsent(self) -> None: ...

    def end_parts(self, cause: CancelCause) -> None: ...

    def part_for(self, method: str) -> MethodPart | None: ...


def core_of(side: Side, revision: str | None = NEWEST, **settings: Any) -> Core:
    """The shared core, in the middle of a conversation of this revision."""
    core = Core(
        side,
        ByteStreamTransport(),
        info={"name": "part", "version": "1"},
        capabilities={"tools": {"listChanged": True}} if side is Side.SERVER else {},
        revisions=LEGACY_REVISIONS if revision in LEGACY_REVISIONS else ("2026-07-28",),
        config=Config(**settings),
        wake=None,
        newline=b"\n",
        timers=None,
    )
    core.parts = NoParts()
    if revision in LEGACY_REVISIONS:
        gates = core.conversation.gates
        core.conversation = Conversation(DIALECTS[NEWEST], Phase.OPERATING, gates)
        core.conversation.gates[core.other] = core.registry.every_gate
        core.peer.revision = revision
    return core


def sent(core: Core) -> list[JSONObject]:
    """Take the messages that were queued."""
    output, core.output = core.output, []
    return [json.loads(message) for message, _ in output]


def told(core: Core) -> list[Event]:
    """Take the events."""
    return [core.events.take() for _ in range(len(core.events))]


def outgoing_of(core: Core) -> OutgoingRequests:
    return OutgoingRequests(core, ModernMessages(core))


def asked(
    outgoing: OutgoingRequests, method: str = "tools/call", **options: Any
) -> OutgoingRequest:
    given: dict[str, Any] = {
        "meta": None,
        "progress": False,
        "timeout": None,
        "max_timeout": None,
        "log_level": None,
        "id": None,
        "request": None,
        "data": None,
        "now": None,
        **options,
    }
    return outgoing.send(method, {"name": "t"} if method == "tools/call" else None, **given)


def incoming_of(core: Core) -> IncomingRequests:
    messages = ModernMessages(core)
    return IncomingRequests(core, messages, OutgoingRequests(core, messages))


def received(core: Core, incoming: IncomingRequests, **message: Any) -> Any:
    """The handle of a request that was received."""
    intake = Intake(core, OutgoingRequests(core, ModernMessages(core)), incoming)
    whole: JSONObject = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", **message}
    intake.receive_request(whole, whole["method"], None, None)
    [event] = told(core)
    assert isinstance(event, RequestReceived)
    return event.request


def test_outgoing_requests_have_one_ending_each() -> None:
    """Ids, timers and cancellations must work without the part that reads responses."""
    core = core_of(Side.CLIENT)
    outgoing = outgoing_of(core)
    first, second = asked(outgoing), asked(outgoing, timeout=5.0, now=0.0)
    assert [message["id"] for message in sent(core)] == [1, 2]

    outgoing.cancel(first, "enough", None, None)
    core.tell(6.0)
    core.timers.fire(6.0)

    assert [message["method"] for message in sent(core)] == ["notifications/cancelled"] * 2
    endings = told(core)
    assert [event.request for event in endings if isinstance(event, RequestFailed)] == [
        first,
        second,
    ]
    assert [event.reason for event in endings if isinstance(event, RequestFailed)] == [
        FailureReason.CANCELLED,
        FailureReason.TIMED_OUT,
    ]


def test_responses_find_the_request_that_they_belong_to() -> None:
    core = core_of(Side.CLIENT)
    outgoing = outgoing_of(core)
    responses = IncomingResponses(core, ModernMessages(core), outgoing)
    call = asked(outgoing)

    responses.receive_response({"jsonrpc": "2.0", "id": 7, "result": {}})
    responses.receive_response({"jsonrpc": "2.0", "id": 1, "result": {"content": []}})

    nothing, answered = told(core)
    assert isinstance(nothing, MessageIgnored)
    assert isinstance(answered, ResponseReceived)
    assert answered.request is call


def test_incoming_requests_are_answered_once() -> None:
    core = core_of(Side.SERVER)
    incoming = incoming_of(core)
    request = received(core, incoming)

    assert incoming.send_result(request, {"tools": []}, None, None)
    with pytest.raises(LocalProtocolError):
        incoming.send_error(request, -32603, "again", MISSING, None)

    assert sent(core) == [{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}]


def test_incoming_requests_end_with_the_connection() -> None:
    core = core_of(Side.SERVER)
    incoming = incoming_of(core)
    request = received(core, incoming)

    incoming.end(CancelCause.EOF)

    [event] = told(core)
    assert isinstance(event, RequestCancelled)
    assert (event.request, event.cause) == (request, CancelCause.EOF)
    assert not incoming.send_result(request, {"tools": []}, None, None)


def test_the_intake_refuses_what_breaks_a_rule() -> None:
    core = core_of(Side.SERVER)
    incoming = incoming_of(core)
    intake = Intake(core, outgoing_of(core), incoming)

    intake.receive_request({"jsonrpc": "2.0", "id": 1, "method": "x", "params": 5}, "x", None, None)

    [event] = told(core)
    assert isinstance(event, ProtocolViolation)
    assert [message["error"]["code"] for message in sent(core)] == [-32602]


def test_pings_are_sent_and_answered() -> None:
    core = core_of(Side.CLIENT)
    messages = ModernMessages(core)
    outgoing = OutgoingRequests(core, messages)
    incoming = IncomingRequests(core, messages, outgoing)
    pings = Pings(core, outgoing, incoming)
    ping = pings.send(None, None, None, 1.0)

    IncomingResponses(core, messages, outgoing).receive_response(
        {"jsonrpc": "2.0", "id": 1, "result": {}}
    )

    [event] = told(core)
    assert isinstance(event, PingEnded)
    assert event.ping is ping


def test_listings_fetch_page_after_page() -> None:
    core = core_of(Side.CLIENT)
    messages = ModernMessages(core)
    outgoing = OutgoingRequests(core, messages)
    listings = Listings(core, messages, outgoing, IncomingRequests(core, messages, outgoing))
    responses = IncomingResponses(core, messages, outgoing)
    listings.start("tools/list", None, None, None, None, True, None, None, None)

    responses.receive_response(
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [], "nextCursor": "c"}}
    )
    responses.receive_response({"jsonrpc": "2.0", "id": 2, "result": {"tools": []}})

    assert [type(event) for event in told(core)] == [PageReceived, PageReceived, ListingEnded]
    assert [message.get("params") for message in sent(core)] == [None, {"cursor": "c"}]


def notifications_of(core: Core) -> Notifications:
    messages = ModernMessages(core)
    outgoing = OutgoingRequests(core, messages)
    incoming = IncomingRequests(core, messages, outgoing)
    return Notifications(
        core,
        IncomingResponses(core, messages, outgoing),
        Listings(core, messages, outgoing, incoming),
        incoming,
        Intake(core, outgoing, incoming),
    )


def test_notifications_go_both_ways() -> None:
    core = core_of(Side.CLIENT)
    notifications = notifications_of(core)

    notifications.send("notifications/custom", None, None, None, None)
    changed = "notifications/tools/list_changed"
    notifications.receive_notification({"jsonrpc": "2.0", "method": changed}, changed)

    assert [message["method"] for message in sent(core)] == ["notifications/custom"]
    [event] = told(core)
    assert isinstance(event, NotificationReceived)
    assert event.method == changed


def publishing(core: Core) -> tuple[ChangePublisher, Listeners, IncomingRequests]:
    incoming = incoming_of(core)
    resources = ResourceSubscriptions(core, incoming)
    listeners = Listeners(core, ModernMessages(core), incoming, resources)
    return ChangePublisher(core, resources, listeners), listeners, incoming


def test_a_publisher_tells_clients_with_a_handshake() -> None:
    core = core_of(Side.SERVER)
    publisher, _, _ = publishing(core)

    assert publisher.publish(ToolsListChanged(), None, None)

    assert [message["method"] for message in sent(core)] == ["notifications/tools/list_changed"]


def test_listeners_are_told_what_they_listen_to() -> None:
    core = core_of(Side.SERVER, "2026-07-28")
    publisher, listeners, incoming = publishing(core)
    meta: JSONObject = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params: JSONObject = {"notifications": {"toolsListChanged": True}, "_meta": meta}
    request: JSONObject = {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "subscriptions/listen",
        "params": params,
    }
    intake = Intake(core, outgoing_of(core), incoming)

    class OnlyListeners(NoParts):
        def part_for(self, method: str) -> MethodPart | None:
            return listeners

    core.parts = OnlyListeners()
    intake.receive_request(request, "subscriptions/listen", None, None)
    assert any(isinstance(event, ListenerAdded) for event in told(core))

    assert publisher.publish(ToolsListChanged(), None, None)

    assert [message["method"] for message in sent(core)] == [
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
    ]


def test_modern_messages_say_who_sends_them() -> None:
    core = core_of(Side.CLIENT, "2026-07-28")

    body = json.loads(ModernMessages(core).with_envelope({"name": "t"}, None))

    assert body["name"] == "t"
    assert body["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"


def test_errors_of_the_peer_are_endings_too() -> None:
    core = core_of(Side.CLIENT)
    outgoing = outgoing_of(core)
    call = asked(outgoing)

    IncomingResponses(core, ModernMessages(core), outgoing).receive_response(
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "no"}}
    )

    [event] = told(core)
    assert isinstance(event, ErrorReceived)
    assert event.request is call
