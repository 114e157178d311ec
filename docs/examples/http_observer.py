"""A proxy that feeds an HTTP observer with its traffic, and prints the findings."""

import json

from sansmcp import AnswerMatched, JSONObject, RequestUnanswered, Side, ViolationSeen
from sansmcp.http import ServerSentEvent, SSEDecoder
from sansmcp.observer import HTTPObserver

Headers = list[tuple[str, str]]


# -- exchange
class WatchedExchange:
    """One exchange of a proxy. Each method is called before the same data is passed on."""

    def __init__(self, observer: HTTPObserver, number: int) -> None:
        self.observer = observer
        self.number = number
        self.events: SSEDecoder | None = None
        self.body = b""

    def request(self, method: str, target: str, headers: Headers, body: bytes, now: float) -> None:
        self.observer.receive_request_head(self.number, method, target, headers, now=now)
        self.observer.receive_request_body(self.number, body, now=now)

    def response(self, status: int, headers: Headers, now: float) -> None:
        self.observer.receive_response_head(self.number, status, headers, now=now)
        content_type = {name.lower(): value for name, value in headers}.get("content-type", "")
        if content_type.startswith("text/event-stream"):
            self.events = SSEDecoder()

    def data(self, chunk: bytes, now: float) -> None:
        if self.events is None:
            self.body += chunk
            return
        for event in self.events.feed(chunk):
            if isinstance(event, ServerSentEvent):  # else it was longer than the limit
                self.observer.receive_response_event(
                    self.number, event.data, type=event.type, id=event.id, now=now
                )

    def end(self, now: float) -> None:
        self.observer.receive_response_body(self.number, self.body, now=now)
        self.observer.receive_end(self.number, now=now)

    def disconnect(self, side: Side, now: float) -> None:
        self.observer.receive_disconnect(self.number, side, now=now)


# -- findings
def show_findings(observer: HTTPObserver) -> None:
    while (event := observer.next_event()) is not None:
        match event:
            case AnswerMatched():
                print(f"{event.method} {event.id} was answered after {event.seconds:.1f} s")
            case RequestUnanswered():
                end = "cancelled" if event.cancelled else "not answered"
                print(f"{event.method} {event.id} was {end}")
            case ViolationSeen():
                print(f"  {event.side.name} {event.level} {event.rule}: {event.text}")
            case _:
                pass


# -- traffic
ACCEPT = ("Accept", "application/json, text/event-stream")
JSON = ("Content-Type", "application/json")
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "editor", "version": "1.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
    "progressToken": "p",
}
CALL = {"name": "search", "arguments": {}, "_meta": META}
PROGRESS = {"progressToken": "p", "progress": 1}
RESULT: JSONObject = {"resultType": "complete", "content": []}


def encoded(**message: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


observer = HTTPObserver("https://example.com/mcp")

# A client that names another tool in the header field than in the body.
called = WatchedExchange(observer, 1)
fields = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call")]
body = encoded(id=1, method="tools/call", params=CALL)
called.request("POST", "/mcp", [ACCEPT, JSON, *fields, ("Mcp-Name", "echo")], body, 1.0)
called.response(200, [("Content-Type", "text/event-stream")], 1.1)
for message in (
    encoded(method="notifications/progress", params=PROGRESS),
    encoded(method="notifications/progress", params=PROGRESS),
    encoded(id=1, result=RESULT),
):
    called.data(b"data: " + message + b"\n\n", 1.5)
called.end(1.5)

# A client that closes the connection before the response: by that it cancels.
left = WatchedExchange(observer, 2)
body = encoded(id=1, method="tools/call", params=CALL)
left.request("POST", "/mcp", [ACCEPT, JSON, *fields, ("Mcp-Name", "search")], body, 2.0)
left.disconnect(Side.CLIENT, 2.5)

observer.close(now=3.0)
show_findings(observer)
