"""Another transport: whole messages, as WebSocket frames or a queue carry them."""

from collections import deque
from collections.abc import Callable

from sansmcp import (
    ClientConnection,
    Event,
    Ready,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    State,
)


# -- channel
class Channel:
    """One end of a transport of whole messages."""

    def __init__(self) -> None:
        self.inbox: deque[bytes] = deque()
        self.other = self
        self.closed = False

    def send(self, message: bytes) -> None:
        """Hand one message to the other end."""
        self.other.inbox.append(message)

    def close(self) -> None:
        """End the messages from this end."""
        self.closed = True


# -- carry
def carry(
    connection: ClientConnection | ServerConnection,
    channel: Channel,
    handle: Callable[[Event], None],
) -> None:
    """The whole work of an adapter, once; call it whenever there may be events or output."""
    while channel.inbox:
        connection.receive_message(channel.inbox.popleft())
    if channel.other.closed:
        connection.receive_eof()
    while (event := connection.next_event()) is not None:
        handle(event)
    for message in connection.messages_to_send():
        channel.send(message)
    if connection.state is State.CLOSED:
        channel.close()


# -- use
client = ClientConnection(info={"name": "by hand", "version": "1.0"})
server = ServerConnection(info={"name": "demo", "version": "1.0"}, capabilities={"tools": {}})
ours, theirs = Channel(), Channel()
ours.other, theirs.other = theirs, ours


def on_server(event: Event) -> None:
    if isinstance(event, RequestReceived):
        server.send_result(event.request, {"content": [{"type": "text", "text": "done"}]})


def on_client(event: Event) -> None:
    match event:
        case Ready():
            client.send_request("tools/call", {"name": "work"})
        case ResponseReceived(result=result):
            print(result["content"])
            client.close()
        case _:
            pass


client.start()
while client.state is State.OPEN or server.state is State.OPEN:
    carry(client, ours, on_client)
    carry(server, theirs, on_server)
