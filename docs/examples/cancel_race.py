"""A cancellation and a response cross on the wire. Neither side is at fault, and nothing breaks."""

from sansmcp import (
    CancelCause,
    ClientConnection,
    FailureReason,
    MessageIgnored,
    Ready,
    RequestAnswered,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ServerConnection,
)

client = ClientConnection(info={"name": "by hand", "version": "1.0"})
server = ServerConnection(info={"name": "demo", "version": "1.0"}, capabilities={"tools": {}})

client.start()
server.receive_data(client.data_to_send())
client.receive_data(server.data_to_send())
assert isinstance(server.next_event(), Ready)
assert isinstance(server.next_event(), RequestAnswered)  # server/discover
assert isinstance(client.next_event(), Ready)

# -- the cancellation comes first
call = client.send_request("tools/call", {"name": "slow"})
server.receive_data(client.data_to_send())
received = server.next_event()
assert isinstance(received, RequestReceived)

assert client.cancel(call, reason="the user changed their mind") is True
ended = client.next_event()
assert isinstance(ended, RequestFailed)
assert ended.request is call
assert ended.reason is FailureReason.CANCELLED

server.receive_data(client.data_to_send())
cancelled = server.next_event()
assert isinstance(cancelled, RequestCancelled)
assert cancelled.request is received.request
assert cancelled.cause is CancelCause.PEER
assert cancelled.reason == "the user changed their mind"

# The handler did not notice in time, and need not: the response is dropped.
assert server.send_result(received.request, {"content": []}) is False
assert server.data_to_send() == b""

# -- they cross
call = client.send_request("tools/call", {"name": "slow"})
server.receive_data(client.data_to_send())
received = server.next_event()
assert isinstance(received, RequestReceived)

assert server.send_result(received.request, {"content": []}) is True
assert client.cancel(call) is True
to_client, to_server = server.data_to_send(), client.data_to_send()

server.receive_data(to_server)
ignored = server.next_event()
assert isinstance(ignored, MessageIgnored)  # a cancellation of what has been answered
assert ignored.rule == "CANC-013"

client.receive_data(to_client)
assert isinstance(client.next_event(), RequestFailed)  # the one ending, from `cancel`
late = client.next_event()
assert isinstance(late, MessageIgnored)  # an answer to what has been cancelled
assert late.rule == "CANC-011"

# -- the answer comes first
call = client.send_request("tools/call", {"name": "quick"})
server.receive_data(client.data_to_send())
received = server.next_event()
assert isinstance(received, RequestReceived)
server.send_result(received.request, {"content": []})
client.receive_data(server.data_to_send())

assert client.cancel(call) is False
assert client.data_to_send() == b""
