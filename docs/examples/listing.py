"""Pagination on both sides: a listing that changes while it is being read."""

from typing import Any

from sansmcp import (
    ClientConnection,
    Event,
    InvalidCursor,
    JSONObject,
    ListingEnded,
    PageReceived,
    RequestReceived,
    ServerConnection,
    ToolsListChanged,
    paginate,
)

# -- server
tools: dict[str, JSONObject] = {
    name: {"name": name, "inputSchema": {"type": "object"}}
    for name in ("add", "bisect", "count", "divide", "echo")
}


def on_server(event: Event) -> None:
    if not isinstance(event, RequestReceived):
        return
    request = event.request
    rows = [tools[name] for name in sorted(tools)]
    try:
        page, following = paginate(
            rows, request.params.get("cursor"), key=lambda tool: tool["name"], size=2
        )
    except InvalidCursor as error:
        server.send_error(request, -32602, str(error))
        return
    result: JSONObject = {"tools": page}
    if following is not None:
        result["nextCursor"] = following
    server.send_result(request, result)


# -- client
def on_client(event: Event) -> None:
    match event:
        case PageReceived(listing=listing, items=items):
            page: list[Any] = items
            print(f"page {listing.pages}:", [tool["name"] for tool in page])
        case ListingEnded(listing=listing, reason=reason, stale=stale):
            print(f"{listing.items} items, {reason.value}{', but stale' if stale else ''}")
        case _:
            pass


# -- go
client = ClientConnection(info={"name": "by hand", "version": "1.0"})
server = ServerConnection(
    info={"name": "demo", "version": "1.0"}, capabilities={"tools": {"listChanged": True}}
)


def turn() -> bool:
    """Carry bytes to the server and back, once; False when there were none."""
    to_server = client.data_to_send()
    server.receive_data(to_server)
    while (event := server.next_event()) is not None:
        on_server(event)
    to_client = server.data_to_send()
    client.receive_data(to_client)
    while (event := client.next_event()) is not None:
        on_client(event)
    return bool(to_server or to_client)


client.start()
while turn():
    pass

client.listen({"toolsListChanged": True})
turn()
client.send_paginated("tools/list")
turn()  # the first page
del tools["add"]  # it was on that page; the next one begins behind "bisect" all the same
server.publish(ToolsListChanged())
while turn():
    pass
