"""One handler for clients of every revision: it asks before it answers."""

from functools import partial

import trio
from trio.testing import memory_stream_pair

from sansmcp import (
    ALL_REVISIONS,
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    JSONObject,
    ToolsListChanged,
)
from sansmcp_io.trio import Call, RequireInput, Server, ServerCall, connect, serve

INFO = {"name": "demo", "version": "1.0"}


# -- server
def handle(call: ServerCall) -> JSONObject | RequireInput:
    """Called again with the answers, which clients of each era send in their own way."""
    if "city" not in call.input_responses:
        schema = {"type": "object", "properties": {"city": {"type": "string"}}}
        question = {
            "method": "elicitation/create",
            "params": {"message": "Which city?", "requestedSchema": schema},
        }
        return RequireInput({"city": question})
    city = call.input_responses["city"]["content"]["city"]
    return {"content": [{"type": "text", "text": f"{city}, asked at revision {call.revision}"}]}


# -- client
def on_request(call: Call) -> JSONObject:
    """Questions of the server arrive here, whatever the revision."""
    return {"action": "accept", "content": {"city": "Paris"}}


async def talk(revisions: tuple[str, ...]) -> None:
    near, far = memory_stream_pair()
    servers: list[Server] = []
    serving = partial(
        serve,
        far,
        handle,
        info=INFO,
        capabilities={"tools": {"listChanged": True}},
        on_ready=servers.append,
    )
    connecting = connect(
        near,
        info=INFO,
        capabilities={"elicitation": {}},
        revisions=revisions,
        on_request=on_request,
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serving)
        async with connecting as client:
            result = await client.request("tools/call", {"name": "weather"})
            print(*(part["text"] for part in result["content"] if part["type"] == "text"))
            if client.peer.revision in MODERN_REVISIONS:
                # -- listen
                async with client.listen({"toolsListChanged": True}) as changes:
                    servers[0].publish(ToolsListChanged())
                    method, _ = await anext(changes)
                    print(method)


# -- run
for revisions in (LEGACY_REVISIONS, ALL_REVISIONS):
    trio.run(talk, revisions)
