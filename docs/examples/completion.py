"""A server that completes arguments of a prompt and of a resource template, per user."""

from collections.abc import Iterable
from typing import Any

import trio
from trio.testing import memory_stream_pair

from sansmcp import ErrorKind, JSONObject
from sansmcp_io.trio import Client, McpError, PeerError, ServerCall, connect, serve

INFO: JSONObject = {"name": "projects", "version": "1.0"}
CAPABILITIES: JSONObject = {"completions": {}, "prompts": {}, "resources": {}}
FILES = {
    "atlas": ["index.md", "income.md", "plan.md"],
    "aurora": ["index.md"],
    "budget": ["2025.csv", "2026.csv"],
}
SECRET = {"budget"}
"""The projects that only some users may see."""


# -- values
def projects(user: object) -> list[str]:
    return [name for name in FILES if name not in SECRET or user == "boss"]


def values_for(call: ServerCall, chosen: JSONObject) -> Iterable[str]:
    """All values of the argument, for this user and with what was chosen before."""
    ref, argument = call.params["ref"], call.params["argument"]["name"]
    match ref, argument:
        case {"type": "ref/prompt", "name": "review"}, "project":
            return projects(call.principal)
        case {"type": "ref/resource", "uri": "file:///{project}/{name}"}, "project":
            return projects(call.principal)
        case {"type": "ref/resource", "uri": "file:///{project}/{name}"}, "name":
            project = chosen.get("project")
            return FILES[project] if project in projects(call.principal) else ()
        case _:
            raise McpError(ErrorKind.INVALID_PARAMS, "no such argument can be completed")


# -- answer
MOST_VALUES = 100


def complete(call: ServerCall) -> JSONObject:
    begun = call.params["argument"]["value"].casefold()
    context: JSONObject = call.params.get("context") or {}
    chosen: JSONObject = context.get("arguments") or {}
    values = values_for(call, chosen)
    found = [value for value in values if begun in value.casefold()]
    found.sort(key=lambda value: (not value.casefold().startswith(begun), value))
    shown = found[:MOST_VALUES]
    return {
        "completion": {
            "values": shown,
            "total": len(found),
            "hasMore": len(found) > len(shown),
        }
    }


def handle(call: ServerCall) -> JSONObject:
    if call.method == "completion/complete":
        return complete(call)
    raise McpError(ErrorKind.INVALID_PARAMS, f"{call.method} is not part of this example")


# -- ask
PROMPT: JSONObject = {"type": "ref/prompt", "name": "review"}
TEMPLATE: JSONObject = {"type": "ref/resource", "uri": "file:///{project}/{name}"}


async def suggest(
    client: Client, ref: JSONObject, name: str, value: str, **chosen: str
) -> list[str]:
    params: JSONObject = {"ref": ref, "argument": {"name": name, "value": value}}
    if chosen:
        params["context"] = {"arguments": chosen}
    result: Any = await client.request("completion/complete", params)
    values: list[str] = result["completion"]["values"]
    return values


# -- run
async def main() -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: serve(theirs, handle, info=INFO, capabilities=CAPABILITIES))
        async with connect(ours, info=INFO) as client:
            print(await suggest(client, PROMPT, "project", "a"))
            print(await suggest(client, PROMPT, "project", "bud"))
            print(await suggest(client, TEMPLATE, "name", "in", project="atlas"))
            print(await suggest(client, TEMPLATE, "name", "20", project="budget"))
            print(await suggest(client, PROMPT, "project", ""))
            try:
                await suggest(client, PROMPT, "reviewer", "a")
            except PeerError as error:
                print(error.kind, error.message)


if __name__ == "__main__":
    trio.run(main)
