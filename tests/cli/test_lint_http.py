"""`sansmcp lint` on conversations that were recorded over HTTP, with their heads."""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sansmcp import JSONObject
from sansmcp_io.cli import main

HEADER = '{"format":"sansmcp-capture","version":2,"started":"2026-01-02","url":"http://h/mcp"}'
BOTH = ["accept", "application/json, text/event-stream"]
JSON = ["content-type", "application/json"]
EVENTS = ["content-type", "text/event-stream"]
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
SESSION = ["mcp-session-id", "abc"]
LATEST = ["mcp-protocol-version", "2025-11-25"]
RESULT: JSONObject = {"jsonrpc": "2.0", "id": 1, "result": {}}


class Capture:
    """Writes a capture, exchange by exchange."""

    def __init__(self) -> None:
        self.lines: list[str] = [HEADER]
        self._count = 0

    def record(self, side: str, exchange: int, **members: Any) -> None:
        record = {"time": len(self.lines) / 10, "side": side, "exchange": exchange, **members}
        self.lines.append(json.dumps(record))

    def begin(
        self,
        method: str,
        headers: Iterable[Any] = (),
        message: Any = None,
        target: str = "/mcp",
    ) -> int:
        self._count += 1
        head = {"method": method, "target": target, "headers": list(headers)}
        self.record("client", self._count, **head)
        if message is not None:
            self.record("client", self._count, message=message)
        return self._count

    def answer(self, exchange: int, status: int, headers: Iterable[Any] = ()) -> None:
        self.record("server", exchange, status=status, headers=list(headers))

    def end(self, exchange: int, *, by: str | None = None) -> None:
        self.record(by or "server", exchange, end=by is None)

    def post(
        self,
        message: Any,
        headers: Iterable[Any],
        status: int = 200,
        answer: Any = None,
        fields: Iterable[Any] = (JSON,),
    ) -> None:
        """A whole exchange: a POST and a response with a body."""
        exchange = self.begin("POST", headers, message)
        self.answer(exchange, status, fields)
        if answer is not None:
            self.record("server", exchange, message=answer)
        self.end(exchange)

    def open(self) -> None:
        """Open a session of 2025-11-25."""
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"},
        }
        result: JSONObject = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "resources": {"subscribe": True}, "logging": {}},
            "serverInfo": {"name": "s", "version": "1"},
        }
        self.post(
            {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
            [BOTH],
            answer={"jsonrpc": "2.0", "id": 0, "result": result},
            fields=[JSON, SESSION],
        )
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        self.post(initialized, [BOTH, SESSION, LATEST], 202, fields=[])


def call(method: str, id: int = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def modern(method: str, id: int = 1, **params: Any) -> dict[str, Any]:
    return call(method, id, _meta=META, **params)


def fields(method: str, *more: list[str], version: str = "2026-07-28") -> list[list[str]]:
    return [BOTH, ["mcp-protocol-version", version], ["mcp-method", method], *more]


class Lint:
    """Runs the command; each finding is its kind or rule, and its line."""

    def __init__(
        self, path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._path = path
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, capture: Capture) -> list[tuple[str, int]]:
        self._path.write_text("\n".join(capture.lines) + "\n")
        return self._run(str(self._path))

    def stream(self, lines: Iterator[bytes]) -> list[tuple[str, int]]:
        """Run the command on standard input with these captures, one after the other."""

        def readline(_limit: int) -> bytes:
            return next(lines, b"")

        buffer = SimpleNamespace(readline=readline)
        self._monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=buffer))
        return self._run("-")

    def _run(self, path: str) -> list[tuple[str, int]]:
        self.status = main(["lint", "--json", path])
        found = [json.loads(line) for line in self._capsys.readouterr().out.splitlines()]
        self.documents = [one for one in found if "kind" in one]
        self.error = next((one["error"]["text"] for one in found if "error" in one), "")
        return [(one.get("rule", one["kind"]), one["line"]) for one in self.documents]


@pytest.fixture
def lint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Lint:
    return Lint(tmp_path / "capture", capsys, monkeypatch)


@pytest.fixture
def capture() -> Capture:
    return Capture()


# ------------------------------------------------------------------------------ conversations


def test_session_is_one_conversation(lint: Lint, capture: Capture) -> None:
    """The revision that the first exchange agreed on must hold in all others of the session."""
    capture.open()
    capture.post(call("prompts/list"), [BOTH, SESSION, LATEST], answer=RESULT)
    assert ("CAP-002", 12) in lint(capture)


def test_sessions_know_nothing_of_each_other(lint: Lint, capture: Capture) -> None:
    """Two clients of one server both count their ids from 0."""
    capture.open()
    capture.post(call("ping"), [BOTH, SESSION, LATEST], answer=RESULT)
    capture.lines += [
        line.replace('"abc"', '"def"').replace('"exchange": ', '"exchange": 10')
        for line in capture.lines[1:]
    ]
    assert lint(capture) == []


def test_request_that_speaks_for_itself_is_a_conversation(lint: Lint, capture: Capture) -> None:
    """In 2026-07-28 several clients may use one id at the same time."""
    first = capture.begin("POST", fields("tools/list"), modern("tools/list"))
    second = capture.begin("POST", fields("tools/list"), modern("tools/list"))
    result: JSONObject = {
        "resultType": "complete",
        "tools": [],
        "ttlMs": 0,
        "cacheScope": "private",
    }
    for exchange in (second, first):
        capture.answer(exchange, 200, [JSON])
        capture.record("server", exchange, message={"jsonrpc": "2.0", "id": 1, "result": result})
        capture.end(exchange)
    assert lint(capture) == []


def test_client_that_leaves_has_cancelled(lint: Lint, capture: Capture) -> None:
    """In 2026-07-28 a disconnect is the cancellation, so the missing response is no breach."""
    exchange = capture.begin("POST", fields("tools/list"), modern("tools/list"))
    capture.end(exchange, by="client")
    assert lint(capture) == [("unanswered", 3)]
    assert "it was cancelled" in lint.documents[0]["text"]


def test_without_a_session_less_is_judged(lint: Lint, capture: Capture) -> None:
    """Without a session the agreed capabilities are unknown, which must be reported once."""
    for id in (1, 1):
        exchange = call("prompts/list", id)
        capture.post(exchange, [BOTH], answer={**RESULT, "result": {"prompts": []}})
    assert lint(capture) == [("blind-spot", 3)]
    assert lint.documents[0]["cause"] == "MIDDLE"
    assert "without a session id" in lint.documents[0]["text"]
    assert "cannot be linked" in lint.documents[0]["text"]


def test_session_from_before_and_messages_without_one_are_told_apart(
    lint: Lint, capture: Capture
) -> None:
    """They are not judged for different reasons, of which only one is the server's choice."""
    capture.post(call("ping"), [BOTH, SESSION, LATEST], answer=RESULT)
    capture.post(call("ping"), [BOTH], answer=RESULT)
    assert lint(capture) == [("blind-spot", 3), ("blind-spot", 8)]
    assert "before the first one" in lint.documents[0]["text"]
    assert "cannot be linked" in lint.documents[1]["text"]


def test_old_transport_is_one_conversation(lint: Lint, capture: Capture) -> None:
    """On HTTP+SSE all responses come on the stream, whichever POST they belong to."""
    stream = capture.begin("GET", [["accept", "text/event-stream"]])
    capture.answer(stream, 200, [EVENTS])
    capture.record("server", stream, event="endpoint", text="/messages?id=1")
    params = {
        "protocolVersion": "2024-11-05",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    for message in (
        call("initialize", 0, **params),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call("tools/list", 1),
    ):
        exchange = capture.begin("POST", (), message, target="/messages?id=1")
        capture.answer(exchange, 202)
        capture.end(exchange)
        if "id" in message:
            result: Any = {"tools": []}
            if message["id"] == 0:
                result = {
                    "protocolVersion": "2024-11-05",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "s", "version": "1"},
                }
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            capture.record("server", stream, event="message", message=answer)
    capture.record("server", stream, event="message", text="hello")
    capture.record("server", stream, event="message", message=RESULT)
    capture.end(stream, by="client")
    assert [rule for rule, _ in lint(capture)] == ["HSSE-004", "JSON-004"]


def test_byte_order_mark_before_a_body_is_reported(lint: Lint, capture: Capture) -> None:
    """Neighbour of case c288: the mark is no part of the JSON, on a stream as in each exchange."""
    capture.open()
    mark = "\ufeff"
    for _ in range(2):
        exchange = capture.begin("POST", [BOTH, SESSION, LATEST])
        capture.record("client", exchange, text=mark + json.dumps(call("tools/list", exchange)))
        capture.answer(exchange, 200, [JSON])
        answer: JSONObject = {"jsonrpc": "2.0", "id": exchange, "result": {"tools": []}}
        capture.record("server", exchange, text=mark + json.dumps(answer))
        capture.end(exchange)
    alone = capture.begin("POST", fields("tools/list"))
    capture.record("client", alone, text=mark + json.dumps(modern("tools/list")))
    capture.answer(alone, 400, [JSON])
    capture.record("server", alone, text="it is bad")
    capture.end(alone)
    found = lint(capture)
    assert [rule for rule, _ in found][:5] == ["OWN-017"] * 5
    assert [document["side"] for document in lint.documents][:4] == ["client", "server"] * 2


def test_other_paths_are_nobodys_business(lint: Lint, capture: Capture) -> None:
    """Other resources of the server, such as its metadata, are no conversation."""
    exchange = capture.begin("GET", target="/.well-known/oauth-protected-resource")
    capture.answer(exchange, 200, [JSON])
    capture.end(exchange)
    assert lint(capture) == []


# ------------------------------------------------------------------------------------ memory


def test_exchanges_that_have_not_ended_are_forgotten(lint: Lint) -> None:
    """A capture of weeks may have many open exchanges: the oldest are forgotten, with a note."""

    def lines() -> Iterator[bytes]:
        yield HEADER.encode()
        head = {"time": 0, "side": "client", "method": "GET", "target": "/mcp"}
        for exchange in range(10_020):
            fields = [["accept", "text/event-stream"]]
            yield json.dumps({**head, "exchange": exchange, "headers": fields}).encode()
        answer: JSONObject = {"time": 0, "side": "server", "status": 200, "headers": []}
        for exchange in (19, 20):
            yield json.dumps({**answer, "exchange": exchange}).encode()

    assert lint.stream(lines()) == [("blind-spot", 10_002), ("HTTP-022", 10_023)]
    assert lint.documents[0]["cause"] == "FORGOTTEN"
    assert "oldest exchange" in lint.documents[0]["text"]


def test_bodies_of_exchanges_that_have_not_ended_are_bounded_in_bytes(lint: Lint) -> None:
    """A few open exchanges with large bodies must not fill the memory."""
    text = "x" * 15_000_000

    def lines() -> Iterator[bytes]:
        yield HEADER.encode()
        for exchange in range(6):
            head = {"method": "POST", "target": "/mcp", "headers": [BOTH]}
            body = {"message": call("tools/call", name="x", arguments={"text": text})}
            for members in (head, body):
                record = {"time": 0, "side": "client", "exchange": exchange, **members}
                yield json.dumps(record).encode()

    assert ("blind-spot", 11) in lint.stream(lines())
    assert [one["cause"] for one in lint.documents if one["kind"] == "blind-spot"] == [
        "MIDDLE",
        "FORGOTTEN",
    ]


# ------------------------------------------------------------------ nobody is accused of crossings


def test_order_of_several_streams_is_not_judged(lint: Lint, capture: Capture) -> None:
    """Progress on one connection may have been sent before the response on another one."""
    capture.open()
    stream = capture.begin("GET", [["accept", "text/event-stream"], SESSION, LATEST])
    capture.answer(stream, 200, [EVENTS])
    request = call("tools/call", name="x", arguments={}, _meta={"progressToken": 1})
    capture.post(request, [BOTH, SESSION, LATEST], answer={**RESULT, "result": {"content": []}})
    progress = {"progressToken": 1, "progress": 1}
    notification = {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}
    capture.record("server", stream, event="message", message=notification)
    assert lint(capture) == []


def test_message_that_was_refused_may_be_sent_again(lint: Lint, capture: Capture) -> None:
    """A request may be repeated with its id after a 401."""
    capture.open()
    capture.post(call("ping"), [BOTH, SESSION, LATEST], 401, {"error": "invalid_token"})
    capture.post(call("ping"), [BOTH, SESSION, LATEST], answer=RESULT)
    assert lint(capture) == []


def test_stream_that_is_resumed_may_repeat(lint: Lint, capture: Capture) -> None:
    """A resumed stream repeats events that the client has not received."""
    capture.open()
    exchange = capture.begin("POST", [BOTH, SESSION, LATEST], call("ping"))
    capture.answer(exchange, 200, [EVENTS])
    capture.record("server", exchange, event="message", id="a", message=RESULT)
    capture.end(exchange, by="server")
    again = capture.begin(
        "GET", [["accept", "text/event-stream"], ["last-event-id", "0"], SESSION, LATEST]
    )
    capture.answer(again, 200, [EVENTS])
    capture.record("server", again, event="message", id="a", message=RESULT)
    capture.end(again)
    assert lint(capture) == []


def test_body_of_an_error_status_may_be_anything(lint: Lint, capture: Capture) -> None:
    """An error without an id also answers a message that could not be read."""
    capture.open()
    capture.post(call("ping"), [BOTH, SESSION, LATEST], 500, {"detail": "broken"})
    without_id = {"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}}
    capture.post(call("ping", 2), [BOTH, SESSION, LATEST], 400, without_id)
    capture.post(call("ping", 3), [BOTH, SESSION, LATEST], 400, {**without_id, "id": None})
    refused = capture.begin("POST", fields("tools/list"), modern("tools/list"))
    capture.answer(refused, 404, [["content-type", "text/html"]])
    capture.end(refused)
    assert lint(capture) == []


def test_session_that_was_deleted_is_over(lint: Lint, capture: Capture) -> None:
    """Requests that are open when the session is deleted are no breach of the server."""
    capture.open()
    exchange = capture.begin("POST", [BOTH, SESSION, LATEST], call("ping"))
    ending = capture.begin("DELETE", [SESSION, LATEST])
    capture.answer(ending, 204)
    capture.end(ending)
    capture.end(exchange, by="server")
    capture.post(call("ping"), READY, 404, fields=[])
    assert lint(capture) == [("unanswered", 12), ("blind-spot", 18)]
    assert lint.documents[1]["cause"] == "MIDDLE", "it is that of somebody else now"


# -------------------------------------------------------------------------------------- heads

MODERN = modern("tools/call", name="x", arguments={})
NAMED = fields("tools/call", ["mcp-name", "x"])
LISTED: JSONObject = {
    "jsonrpc": "2.0",
    "id": 1,
    "result": {"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"},
}
UNKNOWN = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}}
UNSUPPORTED: JSONObject = {
    "jsonrpc": "2.0",
    "id": 1,
    "error": {"code": -32022, "message": "no", "data": {"supported": [], "requested": "x"}},
}
NOTE = {"jsonrpc": "2.0", "method": "notifications/initialized"}
READY = [BOTH, SESSION, LATEST]


@pytest.mark.parametrize(
    ("message", "headers", "status", "answer", "found"),
    [
        pytest.param(MODERN, NAMED, 200, None, [], id="good"),
        pytest.param(MODERN, NAMED[1:], 200, None, ["HTTP-009"], id="accept"),
        pytest.param(
            MODERN, [["accept", "application/json"], *NAMED[1:]], 200, None, ["HTTP-009"], id="one"
        ),
        pytest.param(MODERN, [["accept", "*/*"], *NAMED[1:]], 200, None, [], id="any"),
        pytest.param(
            MODERN, [BOTH, *NAMED[2:]], 200, None, ["HDR-005"], id="no version in the head"
        ),
        pytest.param(
            MODERN,
            fields("tools/call", ["mcp-name", "x"], version="2025-11-25"),
            200,
            None,
            ["HDR-006"],
            id="another version",
        ),
        pytest.param(
            MODERN, [BOTH, LATEST], 200, None, ["HDR-006"], id="a head of an older revision"
        ),
        pytest.param(MODERN, [BOTH], 200, None, ["HDR-005"], id="a head of the oldest revision"),
        pytest.param(
            MODERN,
            [BOTH, LATEST, ["mcp-method", "tools/list"]],
            200,
            None,
            ["HDR-006", "HDR-008"],
            id="another version and another method",
        ),
        pytest.param(MODERN, [*NAMED[:2], NAMED[3]], 200, None, ["HDR-008"], id="no method"),
        pytest.param(
            MODERN, fields("tools/list", ["mcp-name", "x"]), 200, None, ["HDR-008"], id="other"
        ),
        pytest.param(MODERN, fields("tools/call"), 200, None, ["HDR-009"], id="no name"),
        pytest.param(
            MODERN, fields("tools/call", ["mcp-name", "y"]), 200, None, ["HDR-009"], id="other name"
        ),
        pytest.param(
            MODERN,
            fields("tools/call", ["mcp-name", "=?base64?eA==?="]),
            200,
            None,
            [],
            id="encoded name",
        ),
        pytest.param(
            modern("tools/list"), fields("tools/list"), 204, None, ["HTTP-018"], id="no content"
        ),
        pytest.param(call("ping"), [BOTH, SESSION], 200, RESULT, ["HDR-001"], id="no version"),
        pytest.param(
            call("ping"),
            [BOTH, SESSION, ["mcp-protocol-version", "2025-06-18"]],
            200,
            RESULT,
            ["HDR-002"],
            id="not the version agreed on",
        ),
        pytest.param(NOTE, READY, 200, None, ["HTTP-014"], id="202"),
        pytest.param("hello", READY, 400, None, ["HTTP-011"], id="no message"),
    ],
)
def test_heads_are_judged(
    lint: Lint,
    capture: Capture,
    message: Any,
    headers: list[list[str]],
    status: int,
    answer: Any,
    found: list[str],
) -> None:
    """A header that contradicts the body misleads a server or proxy that reads only one of them."""
    capture.open()
    exchange = capture.begin("POST", headers)
    member = {"text": message} if isinstance(message, str) else {"message": message}
    capture.record("client", exchange, **member)
    capture.answer(exchange, status, [] if status == 204 else [JSON])
    if answer is not None:
        capture.record("server", exchange, message=answer)
    capture.end(exchange)
    lint(capture)
    assert [one["rule"] for one in lint.documents if one["kind"] == "violation"] == found


def test_head_of_an_older_revision_is_one_fault_that_says_all(lint: Lint, capture: Capture) -> None:
    """One cause must be one finding, and must not hide another fault."""
    capture.post(MODERN, [BOTH, LATEST], answer=LISTED)
    lint(capture)
    text = lint.documents[0]["text"]
    assert lint.documents[0]["rule"] == "HDR-006"
    assert "Mcp-Method" in text
    assert "Mcp-Name" in text


@pytest.mark.parametrize(
    ("status", "answer", "found"),
    [
        (404, UNKNOWN, []),
        (200, UNKNOWN, ["HTTP-023"]),
        (400, UNSUPPORTED, []),
        (200, UNSUPPORTED, ["HTTP-024"]),
    ],
)
def test_status_goes_with_the_code(
    lint: Lint, capture: Capture, status: int, answer: Any, found: list[str]
) -> None:
    """Statuses are judged only for a server that speaks 2026-07-28."""
    capture.post(modern("x/y"), fields("x/y"), 200, UNKNOWN)
    capture.post(modern("tools/list"), fields("tools/list"), answer=LISTED)
    capture.post(modern("x/y"), fields("x/y"), status, answer)
    lint(capture)
    rules = [one["rule"] for one in lint.documents if one["kind"] == "violation"]
    assert [rule for rule in rules if rule.startswith("HTTP")] == found


def test_streams_of_get_are_judged(lint: Lint, capture: Capture) -> None:
    """Only a resumed stream may carry responses, and a GET must be answered with a stream."""
    capture.open()
    request = capture.begin("POST", READY, call("ping"))
    stream = capture.begin("GET", [SESSION, LATEST])
    capture.answer(stream, 200, [EVENTS])
    capture.record("server", stream, event="message", message=RESULT)
    page = capture.begin("GET", [["accept", "text/event-stream"], SESSION, LATEST])
    capture.answer(page, 200, [["content-type", "text/html"]])
    capture.end(page)
    capture.end(request)
    assert [rule for rule, _ in lint(capture)] == ["HTTP-021", "SSE-024", "HTTP-022"]


def test_session_id_is_visible_ascii(lint: Lint, capture: Capture) -> None:
    """Other characters do not survive in a header."""
    capture.open()
    capture.lines = [line.replace('"abc"', '"a c"') for line in capture.lines]
    assert ("SESS-003", 4) in lint(capture)


# ------------------------------------------------------------------------------------- records


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ({"time": 0, "side": "client", "method": "GET", "target": "/"}, "its exchange"),
        ({"time": 0, "side": "client", "exchange": 1, "status": 200, "headers": [1]}, "headers"),
        ({"time": 0, "side": "client", "exchange": 1}, "it has none of"),
        ({"time": 0, "side": "client", "exchange": True, "end": True}, "its exchange"),
        ({"time": 0, "side": "server", "exchange": 1, "status": True}, "it has none of"),
    ],
)
def test_line_that_is_no_record_is_told(
    lint: Lint, capture: Capture, record: object, complaint: str
) -> None:
    """Findings before an invalid record must be shown."""
    exchange = capture.begin("POST", NAMED[1:], MODERN)
    capture.end(exchange)
    capture.lines.append(json.dumps(record))
    rules = [rule for rule, _ in lint(capture) if rule in ("HTTP-009", "unanswered")]
    assert rules == ["HTTP-009", "unanswered"]
    assert lint.status == 3
    assert complaint in lint.error


def test_message_is_judged_as_it_was_sent(lint: Lint, capture: Capture) -> None:
    """A member that occurs twice is lost when a line is decoded and encoded again."""
    text = json.dumps(MODERN, separators=(",", ":"))[:-1] + ',"id":2}'
    capture.begin("POST", NAMED)
    capture.lines.append(f'{{"time":0.200000,"side":"client","exchange":1,"message":{text}}}')
    capture.answer(1, 200, [JSON])
    capture.record("server", 1, message={**LISTED, "id": 2})
    lint(capture)
    assert not [one for one in lint.documents if one.get("rule") == "JSON-004"]


def test_target_that_is_no_url_is_not_judged(lint: Lint, capture: Capture) -> None:
    """The target comes from the client, and may be any text."""
    capture.post(call("ping"), [BOTH], 404)
    capture.begin("GET", [], target="//[")
    stream = capture.begin("GET", [["accept", "text/event-stream"]])
    capture.answer(stream, 200, [EVENTS])
    capture.record("server", stream, event="endpoint", text="//[")

    assert [rule for rule, _ in lint(capture)] == ["blind-spot"]
