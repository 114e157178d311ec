"""An event log in a database, and a client that resumes a stream for the events it has missed."""

import itertools
import json
import sqlite3
from collections.abc import Sequence

from sansmcp import JSONObject, RequestReceived
from sansmcp.http import ServerEndpoint, ServerExchange, ServerSentEvent, Sessions, SSEDecoder

# -- log
database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE events (log, stream, event, message)")
logs = itertools.count()


class DatabaseLog:
    """The events of one session. The newest 500 are kept."""

    def __init__(self) -> None:
        self.number = next(logs)

    def append(self, stream: int, event: int, message: bytes) -> int:
        row = (self.number, stream, event, message)
        database.execute("INSERT INTO events VALUES (?, ?, ?, ?)", row)
        old = "SELECT rowid FROM events WHERE log = ? ORDER BY rowid DESC LIMIT -1 OFFSET 500"
        return database.execute(
            f"DELETE FROM events WHERE rowid IN ({old})", (self.number,)
        ).rowcount

    def replay(self, stream: int, after: int) -> Sequence[tuple[int, bytes]] | None:
        found = database.execute(
            "SELECT event, message FROM events WHERE log = ? AND stream = ? ORDER BY event",
            (self.number, stream),
        ).fetchall()
        return [(event, text) for event, text in found if event > after] if found else None


# -- endpoint
endpoint = ServerEndpoint(
    info={"name": "demo", "version": "1.0"},
    capabilities={"tools": {}},
    sessions=Sessions(new_id=lambda: "a-secret", event_log=DatabaseLog),  # use secrets in earnest
)


def send(method: str, message: JSONObject | None = None, **fields: str) -> ServerExchange:
    """A client's request, as any HTTP server would deliver it."""
    headers = [("Content-Type", "application/json")]
    headers += [(name.replace("_", "-"), value) for name, value in fields.items()]
    exchange = endpoint.exchange(method, "/mcp", headers)
    exchange.receive_data(b"" if message is None else json.dumps(message).encode())
    exchange.receive_end()
    return exchange


def read(exchange: ServerExchange) -> str:
    """Print the messages in the events of a stream, and return the id of the last event."""
    decoder = SSEDecoder()
    while (output := exchange.next_output()) is not None:
        for event in decoder.feed(getattr(output, "data", b"")):
            if isinstance(event, ServerSentEvent) and event.data:
                message = json.loads(event.data)
                print(message["params"]["progress"] if "params" in message else "the answer")
    return decoder.last_event_id


# -- run
about: JSONObject = {"name": "client", "version": "1.0"}
hello: JSONObject = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
send("POST", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).response()
params: JSONObject = {"name": "slow", "_meta": {"progressToken": 1}}
call: JSONObject = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
exchange = send("POST", call, Mcp_Session_Id="a-secret")
received = list(iter(endpoint.next_event, None))[-1]
assert isinstance(received, RequestReceived)
endpoint.send_progress(received.request, 1)
last = read(exchange)
exchange.receive_disconnect()  # the network fails; the call goes on
endpoint.send_progress(received.request, 2)
endpoint.send_result(received.request, {"content": []})
print("-- back again")
read(send("GET", Mcp_Session_Id="a-secret", Last_Event_ID=last, Accept="text/event-stream"))
