"""Time is a number that the caller gives. Here a minute passes without any waiting."""

from sansmcp import (
    ClientConnection,
    FailureReason,
    ProgressReceived,
    RequestFailed,
    RequestReceived,
    ServerConnection,
)

client = ClientConnection(info={"name": "by hand", "version": "1.0"})
server = ServerConnection(info={"name": "demo", "version": "1.0"}, capabilities={"tools": {}})

client.start(timeout=30, now=0.0)
server.receive_data(client.data_to_send())
client.receive_data(server.data_to_send(), now=0.1)
server.receive_data(client.data_to_send())
assert client.next_timeout() is None  # `start` has ended, and its deadline is gone
client.next_event()

# -- ask
call = client.send_request(
    "tools/call",
    {"name": "slow"},
    progress=True,
    timeout=10,  # seconds of silence
    max_timeout=25,  # seconds in all
    now=100.0,
)
assert client.next_timeout() == 110.0

# -- progress
server.receive_data(client.data_to_send())
while (event := server.next_event()) is not None:
    if isinstance(event, RequestReceived):
        server.send_progress(event.request, 0.5, total=1)
client.receive_data(server.data_to_send(), now=108.0)
assert isinstance(client.next_event(), ProgressReceived)
assert client.next_timeout() == 118.0

# -- expiry
client.handle_timeout(now=117.0)  # too early, and harmless
assert client.next_event() is None

client.handle_timeout(now=118.0)
ended = client.next_event()
assert isinstance(ended, RequestFailed)
assert ended.request is call
assert ended.reason is FailureReason.TIMED_OUT
assert client.next_timeout() is None
print(ended.text)
print(client.data_to_send().decode(), end="")  # the server is told to stop
