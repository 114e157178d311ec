"""A server driven by hand: this program plays the client and writes its lines."""

import json

from sansmcp import (
    ConnectionClosed,
    JSONObject,
    ProtocolViolation,
    Ready,
    RequestAnswered,
    RequestReceived,
    ServerConnection,
    State,
)

# -- make
server = ServerConnection(
    info={"name": "demo", "version": "1.0"},
    capabilities={"tools": {}},
)


# -- drive
def deliver(data: bytes) -> None:
    """Give bytes to the server, handle its events, and print its output."""
    print("<-", data.decode().rstrip())
    server.receive_data(data)
    while (event := server.next_event()) is not None:
        print("  ", type(event).__name__)
        match event:
            case Ready(revision=revision, peer=peer):
                print(f"   {peer.info} speaks {revision}")
            case RequestReceived(request=request) if request.method == "tools/list":
                tool = {"name": "greet", "inputSchema": {"type": "object"}}
                server.send_result(request, {"tools": [tool]})
            case RequestReceived(request=request) if request.method == "tools/call":
                who = request.params.get("arguments", {}).get("who", "you")
                content = [{"type": "text", "text": f"Hello, {who}!"}]
                server.send_result(request, {"content": content})
            case RequestReceived(request=request):
                server.send_error(request, -32601, f"no {request.method} here")
            case RequestAnswered(request=request):
                print(f"   {request.method} was answered by the core")
            case ProtocolViolation(rule=rule, text=text):
                print(f"   {rule}: {text}")
            case ConnectionClosed(cause=cause):
                print(f"   {cause.value}")
            case _:
                pass  # a server that sends no requests of its own has nothing more to hear of
    print("".join(f"-> {line}\n" for line in server.data_to_send().decode().splitlines()))


def line(message: JSONObject) -> bytes:
    """The line that a client would send."""
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


# -- handshake
hello: JSONObject = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "by hand", "version": "1.0"},
}
deliver(line({"id": 1, "method": "initialize", "params": hello}))
deliver(line({"method": "notifications/initialized"}))

# -- requests
deliver(line({"id": 2, "method": "tools/list"}))
call = line({"id": 3, "method": "tools/call", "params": {"name": "greet"}})
deliver(call[:30])
deliver(call[30:])

# -- trouble
deliver(b"Listening on port 8080\n")
deliver(line({"id": 4, "method": "prompts/list"}))
deliver(line({"id": 5, "method": "ping"}))

# -- envelope
envelope: JSONObject = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "another", "version": "2.0"},
}
greet: JSONObject = {"name": "greet", "arguments": {"who": "all of you"}, "_meta": envelope}
deliver(line({"id": 6, "method": "tools/call", "params": greet}))

# -- end
server.receive_eof()
assert isinstance(server.next_event(), ConnectionClosed)
assert server.state is State.CLOSED
