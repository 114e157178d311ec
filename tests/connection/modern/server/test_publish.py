"""Published changes and the subscriptions of 2026-07-28, alone and beside a handshake."""

from typing import cast

import pytest

from sansmcp import (
    Change,
    Config,
    IncomingRequest,
    JSONObject,
    JSONValue,
    LimitReached,
    ListenerRemoved,
    LocalProtocolError,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerConnection,
    StandardCodec,
    ToolsListChanged,
)
from sansmcp.testing import plain
from tests.support.modern import BOTH, SUBSCRIPTION, listen, modern, modern_server, requested
from tests.support.wire import (
    INITIALIZED,
    call,
    drain,
    initialize,
    note,
    of,
    receive,
    sent,
)

LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
TOOLS = "notifications/tools/list_changed"
FILE, OTHER = "file:///a", "file:///b"
LISTS: list[tuple[Change, str, str]] = [
    (ToolsListChanged(), "tools", "toolsListChanged"),
    (PromptsListChanged(), "prompts", "promptsListChanged"),
    (ResourcesListChanged(), "resources", "resourcesListChanged"),
]


def listening(server: ServerConnection, id: object, **filter: object) -> IncomingRequest:
    receive(server, modern(id, LISTEN, {"notifications": filter}))
    (message,) = sent(server)
    assert message["method"] == ACKNOWLEDGED
    return server.listeners[-1].request


def waiting(server: ServerConnection, id: object = 1, **filter: object) -> IncomingRequest:
    return requested(server, modern(id, LISTEN, {"notifications": filter}))


def tagged(id: object, method: str, **params: object) -> JSONObject:
    return note(method, {**params, "_meta": {SUBSCRIPTION: id}})


def updated(id: object, uri: str) -> JSONObject:
    return tagged(id, "notifications/resources/updated", uri=uri)


def named(messages: list[JSONObject]) -> list[object]:
    """The subscriptions in the tags of these notifications."""
    return [message["params"]["_meta"][SUBSCRIPTION] for message in messages]


# ----------------------------------------------------------------------------------- to whom


@pytest.mark.parametrize(("change", "area", "member"), LISTS)
def test_a_changed_list_is_told_to_who_listens_to_it(
    change: Change, area: str, member: str
) -> None:
    """Each subscription must get the changes of its filter, with its own id."""
    server = modern_server()
    assert server.publish(change) is False
    others = {name: True for _, _, name in LISTS if name != member}
    listening(server, 1, **{member: True})
    listening(server, "1", **others, resourceSubscriptions=[FILE])
    listening(server, 2.0, **{member: True}, **others)
    assert server.publish(change, now=1.0)
    method = f"notifications/{area}/list_changed"
    messages = sent(server)
    assert messages == [tagged(1, method), tagged(2.0, method)]
    assert [type(id) for id in named(messages)] == [int, float]


def test_a_resource_is_told_to_who_listens_to_its_uri() -> None:
    """A change must match by exact URI, or by the parent that the application names."""
    server = modern_server()
    listening(server, 1, resourceSubscriptions=[FILE, OTHER])
    listening(server, 2, resourceSubscriptions=[OTHER])
    listening(server, 3, resourcesListChanged=True)
    assert server.publish(ResourceUpdated(FILE))
    assert server.publish(ResourceUpdated(OTHER))
    assert server.publish(ResourceUpdated(FILE + "/part")) is False
    assert server.publish(ResourceUpdated(FILE + "/part", subscribed=FILE))
    assert sent(server) == [
        updated(1, FILE),
        updated(1, OTHER),
        updated(2, OTHER),
        updated(1, FILE + "/part"),
    ]


def test_what_is_not_declared_is_told_to_nobody() -> None:
    """The acknowledgement has left out what the server did not declare."""
    server = modern_server(capabilities={"tools": {}})
    listening(server, 1, toolsListChanged=True)
    assert server.publish(ToolsListChanged()) is False
    assert sent(server) == []


def test_a_subscription_ends_and_the_others_go_on() -> None:
    """The tables by URI and by kind must forget this subscription only."""
    server = modern_server()
    for id in (1, 2):
        listening(server, id, toolsListChanged=True, resourceSubscriptions=[FILE])
    server.end_listener(server.listeners[0])
    sent(server)
    assert server.publish(ToolsListChanged())
    assert server.publish(ResourceUpdated(FILE))
    assert sent(server) == [tagged(2, TOOLS), updated(2, FILE)]
    receive(server, note("notifications/cancelled", {"requestId": 2}))
    assert server.publish(ToolsListChanged()) is False
    assert server.publish(ResourceUpdated(FILE)) is False


def test_meta_goes_along_and_the_tag_is_the_librarys() -> None:
    """A tag of the caller would send the change to another subscription."""
    server = modern_server()
    listening(server, 1, toolsListChanged=True, resourceSubscriptions=[FILE])
    assert server.publish(ToolsListChanged(), meta={"a": 1})
    assert server.publish(ResourceUpdated(FILE), meta={"a": 1})
    first, second = sent(server)
    assert first == note(TOOLS, {"_meta": {"a": 1, SUBSCRIPTION: 1}})
    assert second["params"] == {"uri": FILE, "_meta": {"a": 1, SUBSCRIPTION: 1}}
    for meta in ({SUBSCRIPTION: 2}, {"a": object()}):
        with pytest.raises(LocalProtocolError, match=r"OWN-02[45]"):
            server.publish(ToolsListChanged(), meta=meta)
    assert sent(server) == []


@pytest.mark.parametrize(
    "method",
    [
        TOOLS,
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    ],
)
def test_changes_are_sent_by_publish_only(method: str) -> None:
    """`send_notification` would send a change without a tag, and to clients without a
    subscription."""
    server = modern_server()
    request = listening(server, 1, toolsListChanged=True)
    for belongs_to in (None, request):
        with pytest.raises(LocalProtocolError, match="publish"):
            server.send_notification(method, {"uri": FILE}, request=belongs_to)
    assert sent(server) == []


# ------------------------------------------------------------------ before the acknowledgement


def test_changes_wait_for_the_acknowledgement() -> None:
    """The acknowledgement must be the first message, and each change follow once."""
    server = modern_server(config=Config(manual={LISTEN}))
    request = waiting(server, 1, toolsListChanged=True, resourceSubscriptions=[FILE, OTHER])
    for change in (ToolsListChanged(), ResourceUpdated(OTHER), ToolsListChanged()):
        assert server.publish(change)
    assert server.publish(PromptsListChanged()) is False
    assert sent(server) == []
    server.acknowledge(request)
    first, *changes = sent(server)
    assert first["method"] == ACKNOWLEDGED
    assert changes == [tagged(1, TOOLS), updated(1, OTHER)]
    assert server.publish(ResourceUpdated(FILE))
    assert sent(server) == [updated(1, FILE)]


def test_what_the_acknowledgement_leaves_out_does_not_follow_it() -> None:
    """A waiting change must be dropped if the acknowledgement does not grant it."""
    server = modern_server(config=Config(manual={LISTEN}))
    request = waiting(server, 1, toolsListChanged=True, resourceSubscriptions=[FILE, OTHER])
    for change in (ToolsListChanged(), ResourceUpdated(FILE), ResourceUpdated(OTHER)):
        assert server.publish(change)
    server.acknowledge(request, {"resourceSubscriptions": [OTHER]})
    first, *changes = sent(server)
    assert first["params"]["notifications"] == {"resourceSubscriptions": [OTHER]}
    assert changes == [updated(1, OTHER)]


def test_the_last_of_equal_changes_is_told() -> None:
    """Equal changes must be sent once, with the `_meta` of the last one."""
    server = modern_server(config=Config(manual={LISTEN}))
    request = waiting(server, 1, toolsListChanged=True)
    server.publish(ToolsListChanged(), meta={"n": 1})
    server.publish(ToolsListChanged(), meta={"n": 2})
    server.acknowledge(request)
    assert sent(server)[1:] == [note(TOOLS, {"_meta": {"n": 2, SUBSCRIPTION: 1}})]


def test_waiting_changes_are_bounded() -> None:
    """An application that never acknowledges must not fill the memory."""
    server = modern_server(config=Config(manual={LISTEN}, max_held_changes=2))
    uris = [f"file:///{n}" for n in range(3)]
    request = waiting(server, 1, resourceSubscriptions=uris)
    assert server.publish(ResourceUpdated(uris[0]))
    assert server.publish(ResourceUpdated(uris[1]))
    assert drain(server) == []
    assert server.publish(ResourceUpdated(uris[2])) is False
    assert [event.rule for event in of(LimitReached, drain(server))] == ["OWN-010"]
    assert server.publish(ResourceUpdated(uris[0]))  # it waits already
    server.acknowledge(request)
    assert sent(server)[1:] == [updated(1, uri) for uri in uris[:2]]


def test_one_waiting_subscription_holds_up_no_other() -> None:
    """The order holds within each subscription, and not between them."""
    server = modern_server(config=Config(manual={LISTEN}, max_held_changes=1))
    slow = waiting(server, 1, toolsListChanged=True, promptsListChanged=True)
    quick = waiting(server, 2, toolsListChanged=True, promptsListChanged=True)
    server.acknowledge(quick)
    sent(server)
    assert server.publish(ToolsListChanged())
    assert server.publish(PromptsListChanged())  # the other one is told, so that it is true
    assert named(sent(server)) == [2, 2]
    server.acknowledge(slow)
    assert named(sent(server)) == [1, 1]


# ------------------------------------------------------------------------- while nobody reads


def test_changes_are_coalesced_while_nobody_reads() -> None:
    """Each change must follow once when the output was taken."""
    server = modern_server(config=Config(soft_unsent_bytes=10))
    listening(server, 1, toolsListChanged=True, promptsListChanged=True)
    assert server.publish(ToolsListChanged())
    for _ in range(3):
        assert server.publish(ToolsListChanged())
        assert server.publish(PromptsListChanged())
    for _ in range(3):
        assert named(sent(server)) == [1]
    assert sent(server) == []


def test_held_changes_are_not_told_to_who_has_left() -> None:
    """A subscription that ended before the output was taken must get no change."""
    server = modern_server(config=Config(soft_unsent_bytes=10))
    listening(server, 1, toolsListChanged=True)
    server.publish(ToolsListChanged())
    server.publish(ToolsListChanged())
    receive(server, note("notifications/cancelled", {"requestId": 1}))
    assert len(sent(server)) == 1  # it was out before the cancellation came
    assert sent(server) == []


def test_held_changes_are_bounded() -> None:
    """The limit must be the same as for legacy clients."""
    server = modern_server(config=Config(soft_unsent_bytes=10, max_held_changes=1))
    listening(server, 1, toolsListChanged=True, promptsListChanged=True)
    assert server.publish(ToolsListChanged())
    assert server.publish(PromptsListChanged())
    assert server.publish(ToolsListChanged()) is False
    assert [event.rule for event in of(LimitReached, drain(server))] == ["OWN-010"]


def test_too_much_unread_output_ends_the_connection() -> None:
    """The hard limit must hold for changes, acknowledgements and endings alike."""
    server = modern_server(config=Config(max_unsent_bytes=300))
    for id in range(4):
        receive(server, modern(id, LISTEN, {"notifications": {"toolsListChanged": True}}))
        server.data_to_send()
    assert server.publish(ToolsListChanged()) is False
    assert server.listeners == ()


# ----------------------------------------------------------------------------------- both eras


def test_one_publish_serves_both_eras() -> None:
    """One call must send a legacy notification, and a tagged one to each subscription."""
    server = modern_server(revisions=BOTH)
    listening(server, 1, toolsListChanged=True, resourceSubscriptions=[FILE])
    assert server.publish(ToolsListChanged())
    assert sent(server) == [tagged(1, TOOLS)]  # nobody has shaken hands yet
    receive(server, initialize(2, "2025-06-18"), INITIALIZED)
    subscribe = requested(server, call(3, "resources/subscribe", {"uri": OTHER}))
    server.send_result(subscribe, {})
    sent(server)
    for change in (ToolsListChanged(), PromptsListChanged()):
        assert server.publish(change)
    assert server.publish(ResourceUpdated(FILE))
    assert server.publish(ResourceUpdated(OTHER))
    assert server.publish(ResourceUpdated("c")) is False
    assert sent(server) == [
        note(TOOLS),
        tagged(1, TOOLS),
        note("notifications/prompts/list_changed"),
        updated(1, FILE),
        note("notifications/resources/updated", {"uri": OTHER}),
    ]


def test_subscriptions_of_both_eras_share_their_limit() -> None:
    """The limit bounds the memory of the connection."""
    server = modern_server(revisions=BOTH, config=Config(max_subscriptions=3))
    receive(server, initialize("hello", "2025-06-18"), INITIALIZED)
    server.send_result(requested(server, call(1, "resources/subscribe", {"uri": OTHER})), {})
    sent(server)
    listening(server, 2, toolsListChanged=True)
    over = modern(3, LISTEN, {"notifications": {"resourceSubscriptions": [FILE]}})
    assert len(of(LimitReached, receive(server, over))) == 1
    (answer,) = sent(server)
    assert answer["error"]["code"] == -32603
    listening(server, 4, toolsListChanged=True)


def test_legacy_subscriptions_leave_room_for_listeners_as_listeners_do_for_them() -> None:
    """The subscription over the limit must be refused, of whichever era it is."""
    server = modern_server(revisions=BOTH, config=Config(max_subscriptions=2))
    receive(server, initialize("hello", "2025-06-18"), INITIALIZED)
    sent(server)
    listening(server, 1, resourceSubscriptions=[FILE])
    receive(server, call(2, "resources/subscribe", {"uri": OTHER}))
    (answer,) = sent(server)
    assert answer["error"]["code"] == -32603


def test_many_subscriptions_are_told_once_each_in_order() -> None:
    """The output must not depend on the hash seed."""
    server = modern_server()
    for id in range(200):
        listening(server, id, toolsListChanged=True)
    assert server.publish(ToolsListChanged())
    assert named(sent(server)) == list(range(200))


def test_held_changes_are_not_sent_while_a_connection_is_finished() -> None:
    """After the peer has ended its side, only responses are of use."""
    server = modern_server(config=Config(soft_unsent_bytes=1))
    receive(server, listen(1, {"toolsListChanged": True}), modern(2, "tools/list"))
    assert server.publish(ToolsListChanged())
    server.receive_eof(drain=5, now=0)
    (listener,) = of(ListenerRemoved, drain(server))
    assert repr(listener.listener) == "<Listener id=1 open=False>"
    assert "honoured={'toolsListChanged': True}" in plain([listener])[0]
    assert [message.get("method") for message in sent(server)] == [
        "notifications/subscriptions/acknowledged"
    ]
    assert sent(server) == []


# ------------------------------------------------------------------ while nobody reads for long


class Ascii:
    """A codec that cannot encode some strings."""

    decode = staticmethod(StandardCodec().decode)

    def encode(self, value: JSONValue) -> bytes:
        """Raise for text that is not ASCII."""
        text: bytes = StandardCodec().encode(value)
        text.decode("ascii")
        return text


@pytest.mark.parametrize("held_up", [False, True])
def test_a_change_without_json_form_is_refused_at_once(held_up: bool) -> None:
    """A failure while output is taken would lose that output."""
    server = modern_server(config=Config(soft_unsent_bytes=10, codec=Ascii()))
    listening(server, 1, resourceSubscriptions=[FILE], toolsListChanged=True)
    if held_up:
        server.publish(ToolsListChanged())
    with pytest.raises(LocalProtocolError, match="OWN-024"):
        server.publish(ResourceUpdated("\u00e9", subscribed=FILE))
    assert named(sent(server)) == ([1] if held_up else [])
    assert sent(server) == []


def test_meta_of_a_change_is_an_object() -> None:
    """A `_meta` of another type must raise, and change nothing."""
    server = modern_server()
    listening(server, 1, toolsListChanged=True)
    with pytest.raises(LocalProtocolError, match="OWN-014"):
        server.publish(ToolsListChanged(), meta=cast(JSONObject, 5))
    assert sent(server) == []


def test_what_was_held_back_comes_by_and_by() -> None:
    """Sent at once, the changes would cross the hard limit although the peer reads."""
    server = modern_server(config=Config(soft_unsent_bytes=400, max_unsent_bytes=1_000))
    uris = [f"file:///{n}" for n in range(30)]
    listening(server, 1, resourceSubscriptions=uris)
    listening(server, 2, resourceSubscriptions=uris)
    for uri in uris:
        assert server.publish(ResourceUpdated(uri))
    parts: list[list[JSONObject]] = []
    while part := sent(server):
        parts.append(part)
    assert len(parts) > 5
    assert [message for part in parts for message in part] == [
        updated(id, uri) for uri in uris for id in (1, 2)
    ]
    assert drain(server) == []
    assert server.publish(ResourceUpdated(uris[0]))
    assert named(sent(server)) == [1, 2]
