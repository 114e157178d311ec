"""Streams, sessions and timers on a server with a thread for each connection."""

import secrets
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sansmcp import IncomingRequest, RequestReceived
from sansmcp.http import SendBody, SendHead, ServerEndpoint, Sessions

# -- endpoint
endpoint = ServerEndpoint(
    info={"name": "demo", "version": "1.0"},
    capabilities={"tools": {}},
    sessions=Sessions(new_id=lambda: secrets.token_urlsafe(24)),
)
changed = threading.Condition()  # the lock of the endpoint, and word that something has changed


def dispatch() -> None:
    """Call this with the lock held, after each call of the endpoint."""
    while (event := endpoint.next_event()) is not None:
        if isinstance(event, RequestReceived):
            threading.Thread(target=count, args=(event.request,)).start()
    changed.notify_all()


def count(request: IncomingRequest) -> None:
    """The only tool: it is slow, and reports its progress."""
    for step in range(1, 4):
        with changed:
            endpoint.send_progress(request, step, total=3, now=time.monotonic())
            dispatch()
        time.sleep(0.01)  # the work
    with changed:
        endpoint.send_result(request, {"content": [{"type": "text", "text": "counted"}]})
        dispatch()


# -- exchange
class Handler(BaseHTTPRequestHandler):
    def serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with changed:
            exchange = endpoint.exchange(
                self.command, self.path, self.headers.items(), now=time.monotonic()
            )
            exchange.receive_data(body)
            exchange.receive_end()
            dispatch()
        try:
            while True:
                with changed:
                    while (output := exchange.next_output()) is None:
                        changed.wait()
                if isinstance(output, SendHead):
                    self.send_response_only(output.status)
                    for name, value in output.headers:
                        self.send_header(name.decode(), value.decode())
                    self.end_headers()
                elif isinstance(output, SendBody):
                    self.wfile.write(output.data)
                else:
                    break
        except ConnectionError:
            with changed:
                exchange.receive_disconnect(now=time.monotonic())
                dispatch()

    do_GET = do_POST = do_DELETE = do_OPTIONS = serve  # http.server's names

    def log_message(self, format: str, *args: object) -> None: ...


# -- time
def keep_time(stop: threading.Event) -> None:
    """End idle sessions and keep streams alive, within a second after the time is due."""
    while not stop.wait(1.0):
        with changed:
            deadline = endpoint.next_timeout()
            if deadline is not None and deadline <= time.monotonic():
                endpoint.handle_timeout(time.monotonic())
                dispatch()


# -- run
CALL = b"""{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "count",
    "_meta": {"progressToken": "p", "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {}}}}"""
HEADERS = {
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "count",
}

if __name__ == "__main__":
    stop = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        threading.Thread(target=keep_time, args=(stop,), daemon=True).start()
        request = urllib.request.Request(
            f"http://127.0.0.1:{server.server_port}/mcp", CALL, HEADERS
        )
        with urllib.request.urlopen(request) as response:
            print(response.headers["Content-Type"])
            print(sum(line.startswith(b"data: ") for line in response), "messages")
        stop.set()
        server.shutdown()
