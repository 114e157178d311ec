"""A server whose tools share a basket by a handle: opaque, of one user, and for some time."""

import asyncio
import secrets
import time
from collections.abc import Mapping
from typing import Any

import attrs
import httpx2

from sansmcp import ErrorKind, JSONObject, content
from sansmcp_io.asgi import App, McpError, Scope, ServerCall, Unauthorized
from sansmcp_io.asyncio import Client, connect_http

INFO: JSONObject = {"name": "shop", "version": "1.0"}
USERS = {"Bearer ada's token": "ada", "Bearer bob's token": "bob"}


# -- store
@attrs.define
class Basket:
    owner: str
    until: float
    items: list[str] = attrs.field(factory=list[str])


class Baskets:
    """The baskets of all users, by their handles."""

    def __init__(self, *, seconds: float = 3600, most: int = 10_000, most_of_one: int = 10) -> None:
        self._seconds, self._most, self._most_of_one = seconds, most, most_of_one
        self._baskets: dict[str, Basket] = {}

    def open(self, owner: str, now: float) -> str:
        """Make a basket, and return its handle."""
        self._baskets = {name: one for name, one in self._baskets.items() if one.until > now}
        of_owner = sum(one.owner == owner for one in self._baskets.values())
        if of_owner >= self._most_of_one or len(self._baskets) >= self._most:
            raise McpError(ErrorKind.OVERLOADED, "too many baskets are open")
        handle = f"basket_{secrets.token_urlsafe(24)}"
        self._baskets[handle] = Basket(owner, now + self._seconds)
        return handle

    def find(self, handle: object, owner: str, now: float) -> Basket | None:
        """The basket of a handle, for its owner and until it expires; else None."""
        found = self._baskets.get(handle) if isinstance(handle, str) else None
        if found is None or found.owner != owner or found.until <= now:
            return None
        return found


# -- handle
BASKETS = Baskets()
GONE = "there is no such basket: open one with open_basket, and pass its handle"


def handle(call: ServerCall) -> JSONObject:
    owner = str(call.principal)
    arguments: Mapping[str, Any] = call.params.get("arguments") or {}
    now = time.monotonic()
    match call.params["name"]:
        case "open_basket":
            return {**content.structured({"basket": BASKETS.open(owner, now)})}
        case "add":
            basket = BASKETS.find(arguments.get("basket"), owner, now)
            if basket is None:
                return {**content.tool_error(GONE)}
            basket.items.append(str(arguments.get("item"))[:100])
            return {**content.structured({"items": list(basket.items)})}
        case name:
            raise McpError(ErrorKind.UNKNOWN_TOOL, f"there is no tool {name!r}")


def authenticate(scope: Scope) -> str:
    user = USERS.get(dict(scope["headers"]).get(b"authorization", b"").decode())
    if user is None:
        raise Unauthorized("Bearer")
    return user


# -- run
app = App(
    handle,
    info=INFO,
    capabilities={"tools": {}},
    authenticate=authenticate,
    principal_key=lambda user: user,
)


async def use(client: Client, name: str, **arguments: str) -> Any:
    result: Any = await client.request("tools/call", {"name": name, "arguments": arguments})
    return result["content"][0]["text"] if result.get("isError") else result["structuredContent"]


async def main() -> None:
    async with app.lifespan(), httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http:
        baskets: list[str] = []
        for user in ("ada", "bob"):
            headers = {"Authorization": f"Bearer {user}'s token"}
            async with connect_http(
                "http://localhost/mcp", info=INFO, http=http, headers=headers
            ) as client:
                if not baskets:
                    baskets.append((await use(client, "open_basket"))["basket"])
                    print(len(baskets[0]), "characters that say nothing")
                for item in ("tea", "milk"):
                    print(user, await use(client, "add", basket=baskets[0], item=item))


if __name__ == "__main__":
    asyncio.run(main())
