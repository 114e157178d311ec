"""A server that refuses requests by kind, and a client that reads the kinds in two revisions."""

import trio
from trio.testing import memory_stream_pair

from sansmcp import ErrorKind, InvalidCursor, JSONObject, paginate
from sansmcp_io.trio import Client, McpError, PeerError, ServerCall, connect, serve

INFO: JSONObject = {"name": "notes", "version": "1.0"}
CAPABILITIES: JSONObject = {"resources": {}, "tools": {}}
NOTES = {"note:1": "Buy milk.", "note:2": "Call Ada."}
TOOLS: list[JSONObject] = [{"name": "count", "inputSchema": {"type": "object"}}]


# -- refuse
def handle(call: ServerCall) -> JSONObject:
    match call.method:
        case "resources/read":
            uri = call.params["uri"]
            if uri not in NOTES:
                raise McpError(ErrorKind.RESOURCE_NOT_FOUND, f"there is no note {uri}")
            return {"contents": [{"uri": uri, "text": NOTES[uri]}]}
        case "tools/call" if call.params["name"] == "count":
            return {"content": [{"type": "text", "text": str(len(NOTES))}]}
        case "tools/call":
            raise McpError(ErrorKind.UNKNOWN_TOOL, "this server counts notes, and no more")
        case "tools/list":
            try:
                after = call.params.get("cursor")
                page, cursor = paginate(TOOLS, after, key=lambda tool: tool["name"], size=10)
            except InvalidCursor as error:
                raise McpError(ErrorKind.INVALID_CURSOR, str(error)) from None
            return {"tools": page} | ({} if cursor is None else {"nextCursor": cursor})
        case _:
            raise McpError(-32601, f"no {call.method} here")


# -- read
async def try_to(client: Client, method: str, params: JSONObject) -> None:
    try:
        await client.request(method, params)
    except PeerError as error:
        match error.kind:
            case ErrorKind.RESOURCE_NOT_FOUND | ErrorKind.UNKNOWN_TOOL:
                advice = "list what there is"
            case ErrorKind.INVALID_CURSOR:
                advice = "list again from the first page"
            case ErrorKind.OVERLOADED:
                advice = "try again later"
            case _:
                advice = "report it"
        name = "no kind" if error.kind is None else error.kind.name
        print(f"  {error.code} {name}, data {error.data}: {advice}")


# -- run
async def talk(revision: str) -> None:
    print(revision)
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: serve(theirs, handle, info=INFO, capabilities=CAPABILITIES))
        async with connect(ours, info=INFO, revisions=[revision]) as client:
            await try_to(client, "resources/read", {"uri": "note:9"})
            await try_to(client, "tools/call", {"name": "delete"})
            await try_to(client, "tools/list", {"cursor": "made up"})
            await try_to(client, "resources/templates/list", {})


async def main() -> None:
    for revision in ("2025-11-25", "2026-07-28"):
        await talk(revision)


if __name__ == "__main__":
    trio.run(main)
