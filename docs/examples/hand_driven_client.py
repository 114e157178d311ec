"""A client driven by hand, against a server in the same process; two variables are the network."""

from sansmcp import (
    LEGACY_REVISIONS,
    ClientConnection,
    ConnectionFailed,
    ErrorReceived,
    Event,
    ProgressReceived,
    Ready,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
)

# -- make
client = ClientConnection(
    info={"name": "by hand", "version": "1.0"},
    capabilities={"roots": {}},
    requires=["tools"],
    revisions=LEGACY_REVISIONS,  # in which the server may send requests of its own
)
server = ServerConnection(
    info={"name": "demo", "version": "1.0"},
    capabilities={"tools": {}},
)


# -- events
def on_client(event: Event) -> None:
    match event:
        case Ready(revision=revision, peer=peer):
            print(f"client: {peer.info} speaks {revision}")
        case ConnectionFailed(text=text):
            raise SystemExit(text)
        case ProgressReceived(request=call, progress=progress, total=total):
            print(f"client: {call.data} is at {progress} of {total}")
        case ResponseReceived(request=call, result=result):
            print(f"client: {call.data} gave {result}")
        case ErrorReceived(request=call, code=code, message=message):
            print(f"client: {call.data} was refused: {message} ({code})")
        case RequestFailed(request=call, reason=reason):
            print(f"client: {call.data} failed: {reason.value}")
        case RequestReceived(request=request):  # the server asks us
            client.send_result(request, {"roots": [{"uri": "file:///home/me/project"}]})
        case _:
            print(f"client: {event}")


def on_server(event: Event) -> None:
    match event:
        case RequestReceived(request=request) if request.params["name"] == "count roots":
            server.send_progress(request, 1, total=2)
            server.send_request("roots/list", data=request)
        case RequestReceived(request=request):
            server.send_error(request, -32602, f"unknown tool: {request.params['name']}")
        case ResponseReceived(request=call, result=result):
            text = f"{len(result['roots'])} root(s)"
            server.send_progress(call.data, 2, total=2)
            server.send_result(call.data, {"content": [{"type": "text", "text": text}]})
        case _:
            pass


# -- pump
def pump() -> None:
    """Carry bytes both ways until both sides are quiet."""
    while True:
        to_server, to_client = client.data_to_send(), server.data_to_send()
        if not to_server and not to_client:
            return
        server.receive_data(to_server)
        while (event := server.next_event()) is not None:
            on_server(event)
        client.receive_data(to_client)
        while (event := client.next_event()) is not None:
            on_client(event)


# -- start
client.start()
pump()

# -- ask
client.send_request("tools/call", {"name": "count roots"}, progress=True, data="the count")
client.send_request("tools/call", {"name": "no such tool"}, data="the mistake")
pump()

# -- end
lost = client.send_request("tools/call", {"name": "count roots"}, data="the last call")
client.close()
while (event := client.next_event()) is not None:
    on_client(event)
assert not lost.open
