"""Subscriptions of revision 2026-07-28, on both sides."""

from sansmcp import (
    ClientConnection,
    Config,
    ListenerAdded,
    ListenerRemoved,
    NotificationReceived,
    RequestReceived,
    ResourceUpdated,
    ServerConnection,
    SubscriptionAcknowledged,
    SubscriptionEnded,
    ToolsListChanged,
)

client = ClientConnection(info={"name": "by hand", "version": "1.0"})
server = ServerConnection(
    info={"name": "demo", "version": "1.0"},
    capabilities={"tools": {"listChanged": True}, "resources": {"subscribe": True}},
    config=Config(manual={"subscriptions/listen"}),  # we say what is honoured
)


# -- server
def on_server() -> None:
    for event in iter(server.next_event, None):
        match event:
            case RequestReceived(request=request):
                wanted = request.params["notifications"]
                uris = wanted.get("resourceSubscriptions", [])
                public = [uri for uri in uris if "secret" not in uri]
                server.acknowledge(request, {**wanted, "resourceSubscriptions": public})
            case ListenerAdded(listener=listener):
                print("server: listening to", listener.honoured)
            case ListenerRemoved(cause=cause):
                print("server: gone,", cause.value)
            case _:
                pass


# -- client
def on_client() -> None:
    for event in iter(client.next_event, None):
        match event:
            case SubscriptionAcknowledged(notifications=honoured):
                print("client: taken as far as", honoured)
            case NotificationReceived(method=method, params=params, subscription=subscription):
                assert subscription is not None
                print(f"client: {subscription.data} heard {method} {params.get('uri', '')}")
            case SubscriptionEnded(subscription=subscription, reason=reason):
                print(f"client: {subscription.data} is over, {reason.value}")
            case _:
                pass


def pump() -> None:
    """Carry bytes both ways until both sides are quiet."""
    while True:
        to_server, to_client = client.data_to_send(), server.data_to_send()
        if not to_server and not to_client:
            return
        server.receive_data(to_server)
        on_server()
        client.receive_data(to_client)
        on_client()


client.start()
pump()

# -- listen
mine = client.listen(
    {
        "toolsListChanged": True,
        "resourceSubscriptions": ["file:///notes.txt", "file:///secret.txt"],
    },
    data="the first",
)
pump()

# -- publish
assert server.publish(ToolsListChanged()) is True
assert server.publish(ResourceUpdated("file:///notes.txt")) is True
assert server.publish(ResourceUpdated("file:///secret.txt")) is False  # nobody listens to it
pump()

# -- end
client.cancel(mine)
pump()
client.listen({"toolsListChanged": True}, data="the second")
pump()
[listener] = server.listeners
server.end_listener(listener)
pump()
assert server.publish(ToolsListChanged()) is False
