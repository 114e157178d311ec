"""A resource that changes, and a client that subscribes to it."""

from sansmcp import (
    LEGACY_REVISIONS,
    ClientConnection,
    NotificationReceived,
    RequestReceived,
    ResourceUpdated,
    ServerConnection,
    ToolsListChanged,
)

client = ClientConnection(info={"name": "by hand", "version": "1.0"}, revisions=LEGACY_REVISIONS)
server = ServerConnection(
    info={"name": "demo", "version": "1.0"},
    capabilities={"resources": {"subscribe": True}},
)


def turn() -> None:
    """Carry bytes to the server and back, once."""
    server.receive_data(client.data_to_send())
    while (event := server.next_event()) is not None:
        if isinstance(event, RequestReceived):
            server.send_result(event.request, {})
    client.receive_data(server.data_to_send())


client.start()
turn()

# -- before
changed = ResourceUpdated("file:///notes.txt")
assert server.publish(changed) is False  # nobody asked

# -- subscribe
client.send_request("resources/subscribe", {"uri": "file:///notes.txt"})
turn()
assert server.subscriptions == ("file:///notes.txt",)

# -- publish
assert server.publish(changed) is True
assert server.publish(ResourceUpdated("file:///other.txt")) is False
assert server.publish(ToolsListChanged()) is False  # `tools.listChanged` is not declared
turn()
heard = [
    event for event in iter(client.next_event, None) if isinstance(event, NotificationReceived)
]
assert [(event.method, event.params) for event in heard] == [
    ("notifications/resources/updated", {"uri": "file:///notes.txt"})
]

# -- unsubscribe
client.send_request("resources/unsubscribe", {"uri": "file:///notes.txt"})
turn()
assert server.publish(changed) is False
