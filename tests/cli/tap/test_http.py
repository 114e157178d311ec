"""`sansmcp tap URL` changes nothing for client and server except the address."""

import gzip
import re
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import h11
import pytest
import trio

from sansmcp_io.trio import Call, connect_http
from tests.support.command_line import BIN, SECONDS, hear_signals, sansmcp
from tests.support.http.certificates import certificate
from tests.support.http.on_loops import serving
from tests.support.tapping import records

__all__ = ["certificate"]  # a fixture

INFO = {"name": "test-client", "version": "1"}
Serve = Callable[[socket.socket], None]


def request(method: str = "POST", body: bytes = b"", *fields: str, target: str = "/mcp") -> bytes:
    """A request with unusual spelling and order of headers."""
    length = (f"CONTENT-length: {len(body)}",) if body else ()
    lines = (f"{method} {target} HTTP/1.1", "X-First:  1", "hOst: localhost", *fields, *length)
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body


def response(*pieces: bytes, status: str = "200 OK", fields: str = "") -> bytes:
    """A response in chunks, without the last one."""
    head = f"HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n{fields}\r\n".encode()
    return head + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


END = b"0\r\n\r\n"
JSON = "Content-Type: application/json\r\n"
EVENTS = "Content-Type: text/event-stream\r\n"


def hear(peer: socket.socket, count: int) -> bytes:
    """Read this number of bytes; fewer if the connection ends."""
    data = b""
    while len(data) < count and (more := peer.recv(count - len(data))):
        data += more
    return data


def hear_all(peer: socket.socket) -> bytes:
    return hear(peer, 1 << 30)


@contextmanager
def server(serve: Serve) -> Generator[int]:
    """A server that runs these lines for one connection after the other."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(SECONDS)

        def run() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    peer.settimeout(SECONDS)
                    serve(peer)

        threading.Thread(target=run, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


class Tap:
    """A tap that runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.url = process.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/mcp", self.url)
        assert found is not None, self.url
        self.port = int(found[1])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), SECONDS)

    def end(self) -> str:
        """End the tap; returns its standard error."""
        self.process.send_signal(signal.SIGINT)
        _, error = self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == 0, error
        return error


@contextmanager
def tap(port: int, *options: str | Path, scheme: str = "http", query: str = "") -> Generator[Tap]:
    """A tap in front of the server at this port."""
    url = f"{scheme}://localhost:{port}/mcp{query}"
    process = subprocess.Popen(
        [BIN, "tap", url, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        preexec_fn=hear_signals,
    )
    with process:
        try:
            yield Tap(process)
        finally:
            process.kill()


# ------------------------------------------------------------------------------------ the bytes


def test_bytes_pass_unchanged_but_for_the_host() -> None:
    """The fault that a user looks for may be in spelling, order, chunks or trailers."""
    body = bytes(range(256)) * 300
    asked = request("POST", body, "tRaiLer:x  ") + request("GET")
    answer = response(b"a", b"bc", fields="x:  Y\r\nX: z\r\n") + b"0;e=1\r\nT: 1\r\n\r\n"
    heard: list[bytes] = []

    def serve(peer: socket.socket) -> None:
        heard.append(hear(peer, len(asked) + 2 * len(f":{port}")))
        peer.sendall(b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n" + answer + answer)

    with server(serve) as port, tap(port) as tapped, tapped.connect() as client:
        client.sendall(asked)
        expected = b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n" + answer + answer
        assert hear_all(client) == expected
        assert heard == [asked.replace(b"hOst: localhost", b"Host: localhost:%d" % port)]


def test_nothing_waits_for_the_end_of_anything() -> None:
    """A peer that stops in a head, chunk or event must look the same through the tap."""
    pieces = [b"HTTP/1.1 200 O", b"K\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\nda", b"ta:\r\n"]
    go_on = threading.Semaphore(0)

    def serve(peer: socket.socket) -> None:
        hear(peer, 10)
        for piece in pieces:
            peer.sendall(piece)
            assert go_on.acquire(timeout=SECONDS)

    with server(serve) as port, tap(port) as tapped, tapped.connect() as client:
        client.sendall(request("GET"))
        for piece in pieces:
            assert hear(client, len(piece)) == piece
            go_on.release()


def test_body_of_a_request_is_passed_on_before_its_end() -> None:
    """A server may refuse a body before its end."""
    whole = request("POST", b"x" * 1_000_000)
    answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    def serve(peer: socket.socket) -> None:
        hear(peer, 400)
        peer.sendall(answer)
        peer.shutdown(socket.SHUT_WR)
        hear_all(peer)

    with server(serve) as port, tap(port) as tapped, tapped.connect() as client:
        client.sendall(whole[:500])
        assert hear(client, len(answer)) == answer


def test_what_is_no_http_passes_all_the_same() -> None:
    """Invalid HTTP must reach the client, which may report it in its own words."""

    def serve(peer: socket.socket) -> None:
        hear(peer, 10)
        peer.sendall(b"SSH-2.0-OpenSSH\r\n" * 3)

    with server(serve) as port, tap(port) as tapped, tapped.connect() as client:
        client.sendall(request("GET"))
        assert hear_all(client) == b"SSH-2.0-OpenSSH\r\n" * 3


# ------------------------------------------------------------------------------------------ ends


@pytest.mark.parametrize("is_half", [True, False])
def test_end_of_a_client_is_passed_on(is_half: bool) -> None:
    """In 2026-07-28 a disconnect cancels a request, and other requests still wait for their
    responses."""
    gone = threading.Event()

    def serve(peer: socket.socket) -> None:
        hear(peer, 10)
        peer.sendall(response(b"data: 1\n\n", fields=EVENTS))
        hear_all(peer)
        gone.set()
        if is_half:
            peer.sendall(b"4\r\nlast\r\n" + END)

    with server(serve) as port, tap(port) as tapped, tapped.connect() as client:
        client.sendall(request("GET"))
        assert hear(client, 20)
        if is_half:
            client.shutdown(socket.SHUT_WR)
            assert hear_all(client).endswith(b"last\r\n" + END)
        else:
            client.close()
        assert gone.wait(SECONDS)


def test_end_of_a_server_is_passed_on(tmp_path: Path) -> None:
    """A connection that ends in the middle of a chunk must end for the client in the same way."""
    piece = response(b"data: 1\n\n", fields=EVENTS) + b"ff\r\nda"
    capture = tmp_path / "capture"

    def serve(peer: socket.socket) -> None:
        hear(peer, 10)
        peer.sendall(piece)

    with server(serve) as port, tap(port, "--jsonl", capture) as tapped:
        with tapped.connect() as client:
            client.sendall(request("GET"))
            assert hear_all(client) == piece
        assert "the server broke off (1)" in tapped.end()
    assert records(capture)[-1]["end"] is False


def test_slow_client_slows_the_server() -> None:
    """A tap without back-pressure would fill its memory and hide that the client is slow."""
    total = 0
    stuck = threading.Event()

    def serve(peer: socket.socket) -> None:
        nonlocal total
        hear(peer, 10)
        peer.settimeout(1)
        try:
            while total < 200_000_000:
                total += peer.send(b"HTTP/1.1 200 OK\r\n\r\n" if not total else b"x" * 65536)
        except TimeoutError:
            stuck.set()

    with server(serve) as port, tap(port, "--quiet") as tapped, tapped.connect() as client:
        client.sendall(request("GET", target="/other"))
        assert stuck.wait(SECONDS)
        assert 0 < total < 50_000_000


# ------------------------------------------------------------------------------------------- TLS


@contextmanager
def behind_tls(serve: Serve, certificate: str) -> Generator[int]:
    """A server that runs these lines behind TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def secured(peer: socket.socket) -> None:
        with suppress(OSError), context.wrap_socket(peer, server_side=True) as inner:
            serve(inner)

    with server(secured) as port:
        yield port


def test_https_is_spoken_to_the_server(certificate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disconnect of the client must be passed on, although TLS cannot close one direction."""
    answer = response(b"data: 1\n\n" * 1000, fields=EVENTS)
    gone = threading.Event()

    def serve(peer: socket.socket) -> None:
        hear(peer, 10)
        peer.sendall(answer)
        hear_all(peer)
        gone.set()

    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    with behind_tls(serve, certificate) as port, tap(port, scheme="https") as tapped:
        with tapped.connect() as client:
            client.sendall(request("GET"))
            assert hear(client, len(answer)) == answer
        assert gone.wait(SECONDS)
        assert "the client broke off (1)" in tapped.end()


def test_client_that_says_nothing_more_ends_nothing_else(
    certificate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later exchanges on the connection were no longer seen by the tap."""
    full = threading.Event()

    def serve(peer: socket.socket) -> None:
        hear(peer, 10)
        peer.settimeout(0.5)
        with suppress(TimeoutError):
            peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100_000_000)
        full.set()

    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    with behind_tls(serve, certificate) as port, tap(port, scheme="https") as tapped:
        with tapped.connect() as client:
            client.sendall(request("GET"))
            assert full.wait(SECONDS)
            client.shutdown(socket.SHUT_WR)
            hear_all(client)
        with tapped.connect() as client:
            client.sendall(request("GET", target="/again"))
            assert hear(client, 10)
        said = tapped.end()
    assert "GET /again" in said
    assert "nothing more is seen" not in said


def test_server_whose_certificate_is_unknown_is_not_spoken_to(certificate: str) -> None:
    """The messages may be secret, so an untrusted server must be refused."""
    heard: list[bytes] = []
    with (
        behind_tls(lambda peer: heard.append(hear(peer, 1)), certificate) as port,
        tap(port, scheme="https") as tapped,
    ):
        assert answered(tapped, request("GET")).status_code == 502
        assert "CERTIFICATE_VERIFY_FAILED" in tapped.end()
    assert not any(heard)


# -------------------------------------------------------------------------------------- refusals


def answered(tapped: Tap, data: bytes) -> h11.Response:
    with tapped.connect() as client:
        client.sendall(data)
        parser = h11.Connection(h11.CLIENT)
        parser.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
        parser.send(h11.EndOfMessage())
        parser.receive_data(hear_all(client))
        event = parser.next_event()
        assert isinstance(event, h11.Response)
        return event


def test_server_that_is_not_there_is_told_of() -> None:
    """The client must get the response of a gateway, and the user must see the cause."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with tap(port) as tapped:
        assert answered(tapped, request("GET")).status_code == 502
        assert "the server cannot be reached" in tapped.end()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
        (b"GET /mcp HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", 400),
        (b"hello\r\n\r\n", 400),
    ],
)
def test_request_that_is_not_for_the_server_is_refused(data: bytes, status: int) -> None:
    """A web page may resolve its own name to this machine, and the server could no longer tell."""
    with server(lambda peer: None) as port, tap(port) as tapped:
        assert answered(tapped, data).status_code == status
        assert f"a request was answered with {status}" in tapped.end()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["ftp://x"], "is no URL of a server"),
        (["http://a:b@x/"], "with a name or password in it"),
        (["http://x:99999/"], "is no URL"),
        (["http://x/ y"], "characters that no URL has"),
        (["http://x/", "--", "true"], "a URL or a command, not both"),
        (["http://x/", "--port", "x"], "a port is a number below 65536"),
        (["--port", "1", "--", "true"], "--port is for a server with a URL"),
        ([], "the command of the server is missing"),
    ],
)
def test_wrong_command_line_starts_nothing(arguments: list[str], complaint: str) -> None:
    """The mistake must be reported before a client can connect."""
    done = sansmcp("tap", *arguments)
    assert done.returncode == 2
    assert complaint in done.stderr


def test_port_that_is_taken_is_told() -> None:
    """A second tap on one port must fail with a clear error."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        done = sansmcp("tap", "http://127.0.0.1:1/mcp", "--port", port)
    assert done.returncode == 3
    assert f"the port {port} of 127.0.0.1 cannot be used" in done.stderr


# ----------------------------------------------------------------------------- what it makes of it


def test_secrets_are_not_kept(tmp_path: Path) -> None:
    """A capture is made to be given to others."""
    capture = tmp_path / "capture"

    def serve(peer: socket.socket) -> None:
        hear(peer, 10)
        peer.sendall(response(b"{}", fields=f"{JSON}Set-Cookie: SECRET3\r\n") + END)

    with server(serve) as port, tap(port, "--jsonl", capture, query="?key=SECRET4") as tapped:
        with tapped.connect() as client:
            client.sendall(request("GET", b"", "Authorization: Bearer SECRET1", "Cookie: SECRET2"))
            hear(client, 40)
        error = tapped.end()
    assert "SECRET" not in capture.read_text() + error
    assert capture.stat().st_mode & 0o777 == 0o600


def test_body_that_is_packed_is_read(tmp_path: Path) -> None:
    """A compressed body must pass unchanged, and its content must be judged."""
    capture = tmp_path / "capture"
    packed = gzip.compress(b'{"jsonrpc":"2.0","id":1}')

    def serve(peer: socket.socket) -> None:
        hear(peer, 10)
        fields = f"{JSON}Content-Encoding: %s\r\n"
        peer.sendall(response(packed[:9], packed[9:], fields=fields % "gzip") + END)
        peer.sendall(response(packed, fields=fields % "br") + END)
        peer.sendall(response(b"xxx", fields=fields % "deflate") + END)
        hear_all(peer)

    body = b'{"jsonrpc":"2.0","id":1,"method":"initialize"}'
    with server(serve) as port, tap(port, "--jsonl", capture) as tapped:
        with tapped.connect() as client:
            client.sendall(request("POST", body) * 3)
            hear(client, 350)
        error = tapped.end()
    assert "JSON-005 MUST server" in error
    assert "? its body is not read: its content coding br is not known here" in error
    assert any(one.get("message") == {"jsonrpc": "2.0", "id": 1} for one in records(capture))


def test_byte_order_mark_before_a_body_is_told() -> None:
    """Neighbour of case c288: the body must pass unchanged, and the JSON behind the mark be
    judged."""
    mark = b"\xef\xbb\xbf"

    def serve(peer: socket.socket) -> None:
        hear(peer, 10)
        peer.sendall(response(mark + b'{"jsonrpc":"2.0","id":1}', fields=JSON) + END)
        hear_all(peer)

    body = mark + b'{"jsonrpc":"2.0","id":1,"method":"initialize"}'
    with server(serve) as port, tap(port) as tapped:
        with tapped.connect() as client:
            client.sendall(request("POST", body))
            assert mark in hear(client, 100)
        error = tapped.end()
    assert set(re.findall(r"OWN-017 \w+ (client|server)", error)) == {"client", "server"}
    assert "JSON-005 MUST server" in error
    assert "HTTP-011" not in error


def ignore(progress: float, total: float | None, text: str | None) -> None:
    """A handler of progress, whose token makes the response a stream."""


async def handle(call: Call) -> Any:
    match call.method, call.params.get("name"):
        case "tools/list", _:
            return {"tools": [{"name": "x", "inputSchema": {"type": "object"}}]}
        case "tools/call", "slow":
            await trio.sleep_forever()
        case _:
            pass
    call.progress(1)
    return {"content": [{"type": "text", "text": "héllo\n"}]}


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", "2026-07-28"])
def test_tap_and_lint_find_the_same(tmp_path: Path, revision: str) -> None:
    """A capture must have the findings that the tap had."""
    capture = tmp_path / "capture"
    error = trio.run(talk_through, capture, revision)
    rules = re.findall(r"^tap:   ([A-Z]+-\d+) ", error, re.M)
    assert rules == ["HTTP-021"]
    assert rules == re.findall(r": ([A-Z]+-\d+) ", sansmcp("lint", capture).stdout)
    assert "> #1 (1) " in error
    for name in ("tools/list", "tools/call"):
        assert f"result of {name}" in error


async def talk_through(capture: Path, revision: str) -> str:
    """Let client and server talk through a tap, and return its output."""
    async with serving(handle, capabilities={"tools": {}}) as found:
        with tap(found.port, "--jsonl", capture) as tapped:
            async with connect_http(tapped.url, info=INFO, revisions=[revision]) as client:
                assert [item async for item in client.items("tools/list")]
                result: Any = await client.request("tools/call", {"name": "x"}, on_progress=ignore)
                assert result["content"][0]["text"] == "héllo\n"
                with trio.move_on_after(0.2):
                    await client.request("tools/call", {"name": "slow"})
            wrong = request("GET", b"", "Connection: close")  # asks for no stream: HTTP-021
            await trio.to_thread.run_sync(answered, tapped, wrong)
            return await trio.to_thread.run_sync(tapped.end)
