"""A server whose resources come from templates, and a client that reads some of them."""

from typing import Any

import trio
from trio.testing import memory_stream_pair

from sansmcp import ErrorKind, InvalidCursor, JSONObject
from sansmcp_io.templates import Match, Templates
from sansmcp_io.trio import Client, McpError, PeerError, ServerCall, connect, serve

INFO: JSONObject = {"name": "notes", "version": "1.0"}

# -- templates
TEMPLATES = Templates(
    [
        {"uriTemplate": "note://{owner}/{id}{?words}", "name": "note", "mimeType": "text/plain"},
        {"uriTemplate": "tree:{/folders*}", "name": "folder", "mimeType": "inode/directory"},
    ]
)
NOTES = {("ada", "1"): "Buy milk and bread.", ("ada", "a/b"): "An id with a slash."}


# -- handle
def read(uri: str) -> str:
    match TEMPLATES.match(uri):
        case Match(template="tree:{/folders*}", values={"folders": folders}):
            return " > ".join(folders)
        case Match(values={"owner": str(owner), "id": str(id), **more}) if (owner, id) in NOTES:
            words = NOTES[owner, id].split()
            wanted = str(more.get("words", len(words)))
            if not wanted.isdecimal() or len(wanted) > 4:
                raise McpError(ErrorKind.INVALID_PARAMS, "words is a small number")
            return " ".join(words[: int(wanted)])
        case _:
            raise McpError(ErrorKind.RESOURCE_NOT_FOUND, "no such resource")


def handle(call: ServerCall) -> JSONObject:
    match call.method:
        case "resources/templates/list":
            try:
                return TEMPLATES.list(call.params.get("cursor"))
            except InvalidCursor as error:
                raise McpError(ErrorKind.INVALID_CURSOR, str(error)) from None
        case "resources/read":
            uri: str = call.params["uri"]
            return {"contents": [{"uri": uri, "text": read(uri)}]}
        case "resources/list":
            return {"resources": []}
        case _:
            raise McpError(-32601, f"no {call.method} here")


# -- run
async def show(client: Client, uri: str) -> None:
    try:
        result: Any = await client.request("resources/read", {"uri": uri})
        print(f"{uri}: {result['contents'][0]['text']}")
    except PeerError as error:
        print(f"{uri}: {error.message}")


async def main() -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: serve(theirs, handle, info=INFO, capabilities={"resources": {}}))
        async with connect(ours, info=INFO) as client:
            listed: Any = await client.request("resources/templates/list")
            for template in listed["resourceTemplates"]:
                print(f"{template['name']}: {template['uriTemplate']}")
            for uri in (
                "note://ada/1",
                "note://ada/a%2Fb",
                "note://ada/a/b",
                "note://ada/1?words=2",
                "note://ada/1?words=many",
                "note://bob/1",
                "tree:/home/ada",
            ):
                await show(client, uri)


if __name__ == "__main__":
    trio.run(main)
