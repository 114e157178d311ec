"""A cache that two users of one server share, on both sides by hand."""

from sansmcp import (
    Cache,
    ClientConnection,
    Config,
    JSONObject,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    ToolsListChanged,
)

# -- server
TOOL: JSONObject = {"name": "count", "inputSchema": {"type": "object"}}
HINTS = Config(cache_ttl_ms=60_000, cache_scope="public")  # for results that say nothing themselves


def answer(server: ServerConnection, received: RequestReceived, user: str) -> None:
    request = received.request
    print(f"  server: {request.method} of {user}")
    if request.method == "tools/list":
        server.send_result(request, {"tools": [TOOL]})
    else:  # resources/read
        note: JSONObject = {"uri": request.params["uri"], "text": f"the note of {user}"}
        server.send_result(request, {"contents": [note], "cacheScope": "private"})


# -- client
cache = Cache(max_entries=500, max_bytes=8_000_000, stale_if_error=600)


def ask(user: "User", method: str, params: JSONObject | None = None, *, now: float) -> None:
    user.client.send_request(method, params, now=now)
    for event in user.talk():
        if isinstance(event, ResponseReceived):
            source = "the server"
            if event.cached is not None:
                source = f"the cache, {event.cached.age:g} s old"
            print(f"{user.name}: {method} from {source}")


# -- user
class User:
    """A client of the demo server, with a connection of its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.client = ClientConnection(
            info={"name": "gateway", "version": "1.0"},
            cache=cache.partition(server="demo", context=name),
        )
        self.server = ServerConnection(
            info={"name": "demo", "version": "1.0"},
            capabilities={"tools": {"listChanged": True}, "resources": {}},
            config=HINTS,
        )
        self.client.start(now=0.0)
        self.talk()

    def talk(self) -> list[object]:
        """Carry all messages, and return the events of the client."""
        events: list[object] = []
        while True:
            self.server.receive_data(self.client.data_to_send())
            while (received := self.server.next_event()) is not None:
                if isinstance(received, RequestReceived):
                    answer(self.server, received, self.name)
            data = self.server.data_to_send()
            self.client.receive_data(data)
            while (event := self.client.next_event()) is not None:
                events.append(event)
            if not data:
                return events


# -- go
alice, bob = User("alice"), User("bob")
note = {"uri": "note:///today"}

ask(alice, "tools/list", now=0.0)
ask(bob, "tools/list", now=20.0)  # it is public
ask(alice, "resources/read", note, now=20.0)
ask(bob, "resources/read", note, now=20.0)  # it is private
ask(alice, "resources/read", note, now=30.0)
ask(bob, "tools/list", now=60.0)  # its time is over

alice.client.listen({"toolsListChanged": True})
alice.talk()
alice.server.publish(ToolsListChanged())
alice.talk()
ask(bob, "tools/list", now=61.0)  # the server has told of a change

print(cache.hits, "hits,", cache.misses, "misses,", cache.entries, "entries")
