import json

from sansmcp import JSONObject, RequestReceived, ServerConnection

hello: JSONObject = {"protocolVersion": "2025-11-25", "capabilities": {}}
hello["clientInfo"] = {"name": "by hand", "version": "1.0"}
greet: JSONObject = {"name": "greet", "arguments": {"who": "world"}}
messages: list[JSONObject] = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": greet},
]
server = ServerConnection(info={"name": "demo", "version": "1.0"}, capabilities={"tools": {}})
for message in messages:
    server.receive_data(json.dumps(message).encode() + b"\n")  # from any stream, cut anywhere
    while (event := server.next_event()) is not None:
        if isinstance(event, RequestReceived):
            text = f"Hello, {event.request.params['arguments']['who']}!"
            server.send_result(event.request, {"content": [{"type": "text", "text": text}]})
    print(server.data_to_send().decode(), end="")  # to any stream
