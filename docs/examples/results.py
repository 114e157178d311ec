"""What results may hold: content blocks, structured content, completions and cache hints.

`python results.py serve` is the server, `python results.py` a client that starts it.
"""

import asyncio
import base64
import sys

from sansmcp import Config, JSONObject, paginate
from sansmcp_io.asyncio import McpError, ServerCall, connect_stdio, serve_stdio

INFO: JSONObject = {"name": "weather", "version": "1.0"}
CITIES = ["Lagos", "Lima", "Lisbon", "Oslo"]
PIXEL = base64.b64encode(b"...the bytes of a picture...").decode()

# -- tools
FORECAST: JSONObject = {
    "name": "forecast",
    "inputSchema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
    "outputSchema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "degrees": {"type": "number"}},
        "required": ["city", "degrees"],
    },
}


def forecast(arguments: JSONObject) -> JSONObject:
    city = arguments.get("city")
    if not isinstance(city, str):
        return failed("forecast needs the argument city, a string")
    if city not in CITIES:
        return failed(f"there is no forecast for {city!r}, only for {', '.join(CITIES)}")
    value: JSONObject = {"city": city, "degrees": 21.5}
    blocks: list[JSONObject] = [
        {"type": "text", "text": f"21.5 degrees in {city}"},  # for clients that read no other
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        {"type": "resource_link", "uri": f"weather://{city}/week", "name": "the week"},
        {
            "type": "resource",
            "resource": {"uri": f"weather://{city}/now", "mimeType": "text/plain", "text": "sun"},
        },
    ]
    return {"content": blocks, "structuredContent": value}


def failed(text: str) -> JSONObject:
    """The result of a tool that has failed, which the model reads; it is no JSON-RPC error."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


# -- completion
def complete(params: JSONObject) -> JSONObject:
    """Offer values for an argument of a prompt or of a resource template."""
    begun = params["argument"]["value"].lower()
    found = [city for city in CITIES if city.lower().startswith(begun)]
    return {"completion": {"values": found[:100], "total": len(found), "hasMore": len(found) > 100}}


PROMPT: JSONObject = {"name": "travel", "arguments": [{"name": "city", "required": True}]}


def get_prompt(params: JSONObject) -> JSONObject:
    city = params.get("arguments", {}).get("city")
    if params["name"] != "travel" or not isinstance(city, str):
        raise McpError(-32602, "the prompt is travel, with the argument city")
    text = f"Plan a day in {city}. Ask for its forecast first."
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


# -- cache
STATIC: JSONObject = {"ttlMs": 3_600_000, "cacheScope": "public"}
"""For what is the same for everybody, and stays so for an hour."""


def list_resources(cursor: str | None) -> JSONObject:
    resources: list[JSONObject] = [
        {"uri": f"weather://{city}/now", "name": city} for city in CITIES
    ]
    page, following = paginate(resources, cursor, key=lambda one: one["uri"], size=100)
    more: JSONObject = {} if following is None else {"nextCursor": following}
    return {"resources": page, **more, **STATIC}


def read_resource(uri: str) -> JSONObject:
    if uri not in [f"weather://{city}/now" for city in CITIES]:
        raise McpError(-32602, "there is no such resource", {"uri": uri})
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": "sun"}]}


# -- handle
def handle(call: ServerCall) -> JSONObject:
    match call.method:
        case "tools/list":
            return {"tools": [FORECAST]}
        case "tools/call" if call.params["name"] == "forecast":
            return forecast(call.params.get("arguments", {}))
        case "tools/call":
            raise McpError(-32602, f"there is no tool {call.params['name']!r}")
        case "prompts/list":
            return {"prompts": [PROMPT]}
        case "prompts/get":
            return get_prompt(call.params)
        case "completion/complete":
            return complete(call.params)
        case "resources/list":
            return list_resources(call.params.get("cursor"))
        case "resources/read":
            return read_resource(call.params["uri"])
        case _:
            raise McpError(-32601, f"there is no method {call.method}")


async def serve() -> None:
    await serve_stdio(
        handle,
        info=INFO,
        capabilities={"tools": {}, "prompts": {}, "resources": {}, "completions": {}},
        config=Config(cache_ttl_ms=60_000),  # for results that say nothing themselves
    )


# -- ask
async def main() -> None:
    async with connect_stdio([sys.executable, __file__, "serve"], info=INFO) as client:
        for city in ("Lima", "Atlantis"):
            params: JSONObject = {"name": "forecast", "arguments": {"city": city}}
            result = await client.request("tools/call", params)
            print([block["type"] for block in result["content"]], result.get("isError", False))
            print(result.get("structuredContent"))

        reference: JSONObject = {"type": "ref/prompt", "name": "travel"}
        argument: JSONObject = {"name": "city", "value": "li"}
        params = {"ref": reference, "argument": argument}
        found = await client.request("completion/complete", params)
        print(found["completion"]["values"])

        resources = await client.request("resources/list", {})
        tools = await client.request("tools/list", {})
        for name, listed in (("resources", resources), ("tools", tools)):
            print(name, "may be kept for", listed.get("ttlMs"), "ms,", listed.get("cacheScope"))


# -- run
if __name__ == "__main__":
    asyncio.run(serve() if sys.argv[1:] == ["serve"] else main())
