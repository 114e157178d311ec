"""A server of your own that asks a database who sends a request, and for the schema of a tool."""

import asyncio
import json
from collections.abc import Mapping

from sansmcp import JSONObject, RequestReceived
from sansmcp.http import (
    CredentialsReceived,
    LookupEnded,
    ServerEndpoint,
    ServerExchange,
    ToolSchemaWanted,
)

SCHEMA: JSONObject = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}


async def user_of(headers: Mapping[str, str]) -> str | None:
    """Stands for a database: it does not answer for one of the tokens."""
    token = headers.get("authorization", "").removeprefix("Bearer ")
    await asyncio.sleep(60 if token == "slow" else 0.01)
    return token or None


async def schema_of(tool: str) -> JSONObject | None:
    await asyncio.sleep(0.01)
    return SCHEMA if tool == "count" else None


# -- endpoint
endpoint = ServerEndpoint(
    info={"name": "demo", "version": "1.0"},
    capabilities={"tools": {}},
    credentials="ask",
    tool_schema="ask",
)
lookups: dict[ServerExchange, asyncio.Task[None]] = {}


def dispatch() -> None:
    """Call this after each call of the endpoint."""
    while (event := endpoint.next_event()) is not None:
        if isinstance(event, CredentialsReceived | ToolSchemaWanted):
            lookups[event.exchange] = asyncio.create_task(look_up(event))
        elif isinstance(event, LookupEnded):  # the client is gone, or the request was refused
            if task := lookups.pop(event.exchange, None):
                task.cancel()
        elif isinstance(event, RequestReceived):
            text = f"hello, {event.request.principal}"
            endpoint.send_result(event.request, {"content": [{"type": "text", "text": text}]})


async def look_up(asked: CredentialsReceived | ToolSchemaWanted) -> None:
    """Answer one question, in a second at most."""
    try:
        async with asyncio.timeout(1.0):
            if isinstance(asked, ToolSchemaWanted):
                endpoint.provide_tool_schema(asked, await schema_of(asked.name))
            elif (user := await user_of(asked.headers)) is None:
                asked.exchange.refuse(401, "log in", {"WWW-Authenticate": "Bearer"})
            else:
                endpoint.admit(asked, user, principal_key=user)
    except TimeoutError:
        endpoint.fail_lookup(asked, status=503, retry_after=5)
    del lookups[asked.exchange]
    dispatch()


# -- run
META: JSONObject = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
CALL: JSONObject = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "count", "arguments": {"region": "eu"}, "_meta": META},
}


def post(token: str, region: str) -> ServerExchange:
    """A client's request, as any HTTP server would deliver it."""
    headers = {
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "count",
        "Mcp-Param-Region": region,
    }
    if token:
        headers["Authorization"] = f"Bearer {token}"
    exchange = endpoint.exchange("POST", "/mcp", headers)
    exchange.receive_data(json.dumps(CALL).encode())
    exchange.receive_end()
    dispatch()
    return exchange


async def main() -> None:
    sent = [("ann", "eu"), ("ann", "us"), ("", "eu"), ("slow", "eu")]
    exchanges = [post(token, region) for token, region in sent]
    while lookups:
        await asyncio.wait(lookups.values())
    for exchange in exchanges:
        response = exchange.response()
        assert response is not None
        status, _, body = response
        answer = json.loads(body)
        text = (
            answer["result"]["content"][0]["text"] if status == 200 else answer["error"]["message"]
        )
        print(status, text)


if __name__ == "__main__":
    asyncio.run(main())
