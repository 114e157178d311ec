"""`sansmcp lint` reports the rules that a recorded conversation breaks."""

import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sansmcp import Config, JSONObject
from sansmcp_io.cli import main
from tests.support.command_line import BIN, SECONDS, sansmcp
from tests.support.modern import CAPABILITIES, VERSION, modern

HEADER = (
    '{"format":"sansmcp-capture","version":1,"started":"2026-01-02T03:04:05+00:00","command":[]}'
)
INITIALIZE = (
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    '"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
)
INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
AGREED = (
    '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25",'
    '"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'
)
OPENING = (f"> {INITIALIZE}", f"< {AGREED}", f"> {INITIALIZED}")
PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
NOISE = "< Listening on port 3000"
UNASKED = '< {"jsonrpc":"2.0","id":7,"result":{}}'
"""An answer to nobody: JSON-004, a MUST."""
TWICE = "> " + PING


class Linted:
    """The output and the exit status of a run."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status = status
        self.lines = out.splitlines()
        self.error = err

    @property
    def rules(self) -> list[str]:
        return [line.split(": ")[1].split(" ")[0] for line in self.lines if "note:" not in line]

    @property
    def documents(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


class Linter:
    """Runs the command on lines in a file `talk` of the current directory."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *lines: str | bytes, options: tuple[str, ...] = ()) -> Linted:
        data = b"".join((x if isinstance(x, bytes) else x.encode()) + b"\n" for x in lines)
        Path("talk").write_bytes(data)
        return self.run("talk", *options)

    def run(self, *arguments: str) -> Linted:
        try:
            status = main(["lint", *arguments])
        except SystemExit as error:
            status = int(error.code or 0)
        captured = self._capsys.readouterr()
        return Linted(status, captured.out, captured.err)


class Lines:
    """A file that is never in memory as a whole."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines

    def readline(self, _limit: int) -> bytes:
        return next(self._lines, b"")


@pytest.fixture
def lint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Linter:
    monkeypatch.chdir(tmp_path)
    return Linter(capsys)


def captured(*records: object) -> list[str]:
    """A capture with these records, as another program may write them."""
    return [HEADER, *(json.dumps(record) for record in records)]


def client(message: object, time: float = 0) -> dict[str, object]:
    return {"time": time, "side": "client", "message": message}


# ----------------------------------------------------------------------------- what it prints


def test_violation_is_shown_with_its_place(lint: Linter) -> None:
    """The form is that of other linters, so that editors find the place."""
    done = lint(*OPENING, NOISE, "", "# the client", TWICE, UNASKED)

    assert done.lines == [
        "talk:4: STDIO-002 MUST NOT server: the server wrote something that is no message: "
        "Listening on port 3000",
        "talk:8: JSON-004 MUST server: a response names no request",
        "talk:7: note: no answer to ping id 1 of the client was seen",
    ]
    assert done.status == 1


def test_conversation_without_faults_prints_nothing(lint: Linter) -> None:
    """The exit status must be 0, so that the command can be a test."""
    done = lint(*OPENING, f"client: {PING}", 'server:{"jsonrpc":"2.0","id":1,"result":{}}\r')

    assert (done.status, done.lines, done.error) == (0, [], "")


def test_tasks_are_judged_by_what_was_told_before(lint: Linter) -> None:
    """A capture of hours must show the poll that contradicts an earlier one."""
    agreed = AGREED.replace('"tools":{}', '"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}')
    stamp = "2027-01-15T08:00:00Z"
    task = f'"taskId":"t","createdAt":"{stamp}","lastUpdatedAt":"{stamp}","ttl":null'
    get = '"method":"tasks/get","params":{"taskId":"t"}'
    done = lint(
        f"> {INITIALIZE}",
        f"< {agreed}",
        f"> {INITIALIZED}",
        '> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","task":{}}}',
        f'< {{"jsonrpc":"2.0","id":1,"result":{{"task":{{"status":"working",{task}}}}}}}',
        f'> {{"jsonrpc":"2.0","id":2,{get}}}',
        f'< {{"jsonrpc":"2.0","id":2,"result":{{"status":"cancelled",{task}}}}}',
        f'> {{"jsonrpc":"2.0","id":3,{get}}}',
        f'< {{"jsonrpc":"2.0","id":3,"result":{{"status":"working",{task}}}}}',
    )

    assert done.lines == [
        "talk:9: TASK-018 MUST NOT server: a task is working after it was cancelled"
    ]
    assert done.status == 1


def test_json_has_a_line_for_each_finding(lint: Linter) -> None:
    """Programs need one object per finding, with all that is known of it."""
    batch = '{"jsonrpc":"2.0","id":"x","method":"ping"}'
    lines = (*OPENING, f"> [{batch}]", "< \x1b[2J\u202e", '> {"jsonrpc":"2.0","id":5,"method":"a"}')
    done = lint(*lines, options=("--json",))

    assert done.documents[0] == {
        "kind": "violation",
        "file": "talk",
        "line": 4,
        "rule": "BATCH-008",
        "level": "MUST NOT",
        "side": "client",
        "text": "batches exist only in revision 2025-03-26",
        "method": None,
        "id": None,
        "index": None,
        "time": None,
    }
    unanswered = [one for one in done.documents if one["kind"] == "unanswered"]
    assert [one["line"] for one in unanswered] == [4, 6]
    assert unanswered[0]["method"] == "ping"
    assert unanswered[0]["side"] == "client"
    assert done.status == 1


def test_text_of_others_is_made_visible(lint: Linter) -> None:
    """Control characters in a foreign capture must not act on the terminal."""
    done = lint(*OPENING, "< \x1b[2J\u202e")

    assert done.lines[0].endswith(r": \x1b[2J\u202e")


def test_what_is_not_judged_is_told(lint: Linter) -> None:
    """Without this note, silence would look like approval."""
    meta: JSONObject = {VERSION: "2030-01-01", CAPABILITIES: {}}
    probe = "> " + json.dumps(modern(1, "server/discover", {}, meta))
    done = lint(probe, options=("--json",))

    assert done.status == 0
    assert [one["kind"] for one in done.documents] == ["blind-spot", "unanswered"]
    assert done.documents[0]["cause"] == "ERA"
    assert "talk:1: note: less is judged from here on: " in lint(probe).lines[0]


def test_excerpt_accuses_nobody_of_what_came_before_it(lint: Linter) -> None:
    """A log may begin in the middle of a conversation; only one with the handshake is complete."""
    done = lint(UNASKED, TWICE, "> 42", options=("--json",))

    assert [one["kind"] for one in done.documents[:2]] == ["blind-spot", "violation"]
    assert done.documents[0]["cause"] == "MIDDLE"
    assert (done.documents[1]["line"], done.documents[1]["rule"]) == (3, "JSON-001")
    assert "MIDDLE" not in str(lint(UNASKED, *OPENING, options=("--json",)).documents)
    for odd in ("> [1]", "> {", "> [[" + "[" * 100_000, '> {"method": {}}'):
        assert lint(odd, options=("--json",)).documents[0]["cause"] == "MIDDLE"


def test_places_in_a_capture_are_its_lines(lint: Linter) -> None:
    """A breach that is found at the end must have the line of its message."""
    records = captured(
        client(json.loads(INITIALIZE)),
        {"time": 0.5, "side": "server", "text": '{"jsonrpc"', "newline": False},
        {"time": 1, "side": "client", "eof": True},
        {"time": 2, "side": "server", "exit": 1},
        {"time": 2, "side": "server", "signal": 9},
        {"time": 2, "side": "server", "eof": True},
    )
    done = lint(*records)

    assert done.lines[0] == (
        'talk:3: OWN-018 OWN server: the stream ended without a newline: {"jsonrpc"'
    ) or done.lines[0].startswith("talk:3: ")
    assert done.status == 0
    assert any(line.startswith("talk:2: note: no answer to initialize") for line in done.lines)


def test_memory_does_not_grow_with_the_capture(
    lint: Linter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tap may run for weeks, and its capture be judged afterwards."""
    held: list[int] = []

    def lines() -> Iterator[bytes]:
        yield HEADER.encode()
        for id in range(3_601):
            ping: JSONObject = {"jsonrpc": "2.0", "id": id, "method": "ping"}
            pong: JSONObject = {"jsonrpc": "2.0", "id": id, "result": {}}
            yield json.dumps({"time": 0, "side": "client", "message": ping}).encode()
            yield json.dumps({"time": 0, "side": "server", "message": pong}).encode()
            if id in (1_600, 3_600):
                held.append(tracemalloc.get_traced_memory()[0])

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Lines(lines())))
    tracemalloc.start()
    try:
        assert lint.run("-").status == 0
    finally:
        tracemalloc.stop()

    assert held[1] < held[0] + 100_000, held


@pytest.mark.parametrize("start", [b"", b"{", b"> ", HEADER.encode() + b"\n"])
def test_line_without_an_end_is_not_read_to_the_end_of_memory(lint: Linter, start: bytes) -> None:
    """A gigabyte without a newline took two gigabytes of memory."""
    with Path("talk").open("wb") as file:
        file.write(start)
        file.truncate(2**30)
    tracemalloc.start()
    try:
        done = lint.run("talk")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert done.status == 3
    place = 1 + start.count(b"\n")
    assert f"error: talk:{place}: it is longer than a record can be (" in done.error
    assert peak < 2**28, peak


def test_longest_line_that_a_tap_writes_is_read(lint: Linter) -> None:
    """JSON writes a control character as six bytes, which must not count towards the limit of
    the text."""
    most = Config().max_message_bytes
    done = lint(*captured({"time": 0, "side": "server", "text": "\x01" * (most - 1)}))

    assert done.rules == ["STDIO-002"]


@pytest.mark.parametrize("lines", [[*OPENING, NOISE], captured(client(json.loads(INITIALIZE)))])
def test_byte_order_mark_before_a_recording_means_nothing(lint: Linter, lines: list[str]) -> None:
    """Some editors write a byte order mark when a file is saved."""
    plain = lint(*lines)
    done = lint(b"\xef\xbb\xbf" + lines[0].encode(), *lines[1:])

    assert (done.status, done.lines, done.error) == (plain.status, plain.lines, plain.error)
    assert done.lines


def test_capture_that_another_tool_has_written_means_the_same(lint: Linter) -> None:
    """`jq` changes the order of members and the white space."""
    record = {"side": "client", "message": {"jsonrpc": "2.0", "id": None, "method": "a"}, "time": 1}
    bad = '{"jsonrpc":"2.0","id":null,"method":"a"}'
    odd = f'{{"time":0.000000,"side":"client","message":[],"message":{bad}}}'
    done = lint(*captured(record, {**record, "newline": True}), odd, options=("--json",))

    assert [(one["line"], one["rule"]) for one in done.documents if "rule" in one][:2] == [
        (2, "JSON-002"),
        (3, "JSON-002"),
    ]
    assert {one["line"] for one in done.documents if "rule" in one} == {2, 3, 4}


def test_every_form_of_content_is_read(lint: Linter) -> None:
    """A record may hold text, invalid bytes, or a line in two pieces."""
    done = lint(
        *captured(
            {"time": 0, "side": "client", "base64": "/w=="},
            {"time": 0, "side": "client", "text": INITIALIZE[:10], "newline": False},
            {"time": 0, "side": "client", "text": INITIALIZE[10:]},
            {"time": 0, "side": "server", "text": "b\u00e9\r"},
        ),
        options=("--json",),
    )

    assert [(one["line"], one["rule"]) for one in done.documents if "rule" in one] == [
        (2, "STDIO-003"),
        (5, "STDIO-002"),
        (5, "OWN-017"),
    ]


def test_standard_input_is_read(lint: Linter) -> None:
    """A capture may come from another program, and never end."""
    done = sansmcp("lint", "-", stdin="\n".join([*OPENING, NOISE]))

    assert done.stdout.startswith("-:4: STDIO-002 ")
    assert done.returncode == 1
    with subprocess.Popen(
        [BIN, "lint", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        records = [*captured(), '{"time":0.000000,"side":"server","text":"x"}']
        process.stdin.write("".join(f"{line}\n" for line in records).encode())
        assert process.stdout.readline().startswith(b"-:2: STDIO-002 ")
        process.stdin.close()
        assert process.wait(SECONDS) == 1


def test_marked_lines_are_judged_as_they_come() -> None:
    """`tail -f | sansmcp lint -`: only the client's first message has to be waited for."""
    with subprocess.Popen(
        [BIN, "lint", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(f"{line}\n" for line in [NOISE, *OPENING]).encode())
        assert process.stdout.readline().startswith(b"-:1: STDIO-002 ")
        process.stdin.write(f"{UNASKED}\n".encode())
        assert process.stdout.readline().startswith(b"-:5: JSON-004 ")
        process.stdin.close()
        assert process.wait(SECONDS) == 1


# ------------------------------------------------------------------------- what is asked for

BAD = (*OPENING, NOISE, UNASKED, "< ", TWICE)


@pytest.mark.parametrize(
    ("options", "rules", "status"),
    [
        ((), ["STDIO-002", "JSON-004", "OWN-017"], 1),
        (("--select", "JSON"), ["JSON-004"], 1),
        (("--select", "stdio-002,OWN"), ["STDIO-002", "OWN-017"], 1),
        (("--select", "STDIO", "--select", "JSON-004"), ["STDIO-002", "JSON-004"], 1),
        (("--ignore", "JSON-00, STDIO"), ["OWN-017"], 0),
        (("--select", "OWN", "--ignore", "OWN-017"), [], 0),
        (("--select", "OWN-017"), ["OWN-017"], 0),
    ],
)
def test_rules_are_selected_and_ignored(
    lint: Linter, options: tuple[str, ...], rules: list[str], status: int
) -> None:
    """A rule that is not selected must not count for the exit status."""
    done = lint(*BAD, options=options)

    assert done.rules == rules
    assert done.status == status


LIST = '> {"jsonrpc":"2.0","id":1,"method":"tools/list"}'


@pytest.mark.parametrize(
    ("lines", "rule", "status"),
    [
        ([*OPENING, LIST, '< {"jsonrpc":"2.0","id":1,"result":{}}'], "OWN-014", 1),
        ([*OPENING, '< {"jsonrpc":"2.0","method":"ping"}'], "OWN-020", 1),
        ([*OPENING, '> {"jsonrpc":"2.0","id":2,"method":"ping","params":null}'], "OWN-015", 0),
        ([OPENING[0], LIST, *OPENING[1:]], "LIFE-005", 0),
        ([*OPENING, '> {"jsonrpc":"2.0","id":2,"method":"prompts/list"}'], "CAP-002", 1),
    ],
)
def test_what_counts_as_a_must(lint: Linter, lines: list[str], rule: str, status: int) -> None:
    """A SHOULD or an oddity must not fail the command, but our own readings of the schema must."""
    done = lint(*lines)

    assert done.rules == [rule]
    assert done.status == status


@pytest.mark.parametrize(
    ("rules", "hint"),
    [
        ("CANC-999", "did you mean CANC-"),
        ("STDOI", "STATE, STDIO, SUBS"),
        ("CANC,,OWN", "an id is an area and a number"),
    ],
)
@pytest.mark.parametrize("option", ["--select", "--ignore"])
def test_rule_that_there_is_none_of_is_a_usage_error(
    lint: Linter, option: str, rules: str, hint: str
) -> None:
    """A mistyped rule would select nothing, and report success."""
    done = lint(*BAD, options=(option, rules))

    assert done.status == 2
    assert done.lines == []
    assert "error: there is no rule" in done.error
    assert hint in done.error


def test_command_line_that_is_wrong(lint: Linter) -> None:
    """The command line must name a file."""
    assert lint.run().status == 2


# --------------------------------------------------------------------- what cannot be read


@pytest.mark.parametrize(
    ("lines", "place", "complaint"),
    [
        ([""], 1, "there is nothing in it"),
        (["# nothing", "  "], 1, "there is nothing in it"),
        (["hello"], 1, "it begins with none of client:, server:, > and <"),
        (["# one", "{"], 2, "it is not JSON: "),
        (["{" * 100_000], 1, "it is not JSON: "),
        ([b'{"\xff'], 1, "it is not JSON: "),
        ([INITIALIZE], 1, 'the header of a capture has "format":"sansmcp-capture"'),
        (['{"format":"sansmcp-capture","version":3}'], 1, "version 3 of the format is not known"),
        (['{"format":"sansmcp-capture","version":true}'], 1, "version true of the format is not"),
        ([HEADER, "[]"], 2, "it is no object"),
        ([HEADER, '{"time":0.0'], 2, "it is not JSON: "),
        ([HEADER, '{"time":0.000000,"side":"client","message":{}'], 2, "it is not JSON: "),
        ([HEADER, '{"time":0.000000,"side":"client","message":{]}'], 2, "it is not JSON: "),
        (captured({"side": "client", "text": ""}), 2, "its time is no number of seconds"),
        (captured({"time": True, "side": "client", "text": ""}), 2, "its time is no number"),
        (captured({"time": -1, "side": "client", "text": ""}), 2, "its time is no number"),
        ([HEADER, '{"time":1e999,"side":"client","text":""}'], 2, "its time is no number"),
        (captured({"time": 0, "side": "proxy", "text": ""}), 2, "its side is neither client nor"),
        (captured({"time": 0, "side": ["client"]}), 2, "its side is neither client nor"),
        (captured({"time": 0, "side": "client", "base64": "?"}), 2, "its content is no such text"),
        (captured({"time": 0, "side": "client", "text": "\ud800"}), 2, "its content is no such"),
        (captured({"time": 0, "side": "client", "text": 1}), 2, "it has none of message, text"),
        (captured({"time": 0, "side": "client", "eof": False}), 2, "it has none of message"),
    ],
)
def test_line_that_is_no_record_is_told_with_its_place(
    lint: Linter, lines: list[str | bytes], place: int, complaint: str
) -> None:
    """A truncated or edited file must not pass for a conversation without faults."""
    done = lint(*lines)

    assert done.status == 3
    assert f"error: talk:{place}: {complaint}" in done.error
    assert done.lines == []
    document = lint(*lines, options=("--json",)).documents[-1]
    assert document["error"]["kind"] == "no-record"


@pytest.mark.parametrize(
    "before", [[*OPENING, NOISE], [HEADER, '{"time":1,"side":"server","text":"x"}']]
)
def test_findings_before_a_broken_line_are_shown(lint: Linter, before: list[str]) -> None:
    """The end of a capture is missing if the disk was full or the process was killed."""
    done = lint(*before, '{"time":0.1,"side":"cli')

    assert done.rules == ["STDIO-002"]
    assert done.status == 3
    assert f"error: talk:{len(before) + 1}: " in done.error


def test_findings_before_a_broken_line_need_no_client(lint: Linter) -> None:
    """Findings must be shown also if the client has sent no message."""
    done = lint("< 42", "hello")

    assert done.rules == ["JSON-001"]
    assert done.status == 3
    assert "error: talk:2: " in done.error


@pytest.mark.parametrize(
    ("path", "reason"),
    [("missing", "No such file or directory"), (".", "Is a directory"), ("a\0b", "null")],
)
def test_file_that_cannot_be_read(lint: Linter, path: str, reason: str) -> None:
    """The error must have the reason that the system gives."""
    done = lint.run(path)

    assert done.status == 3
    assert "cannot be read: " in done.error
    assert reason in done.error
    assert lint.run("--json", path).documents[0]["error"]["kind"] == "unreadable"


def test_reader_that_has_had_enough_is_no_failure(tmp_path: Path) -> None:
    """`sansmcp lint FILE | head` must end quietly."""
    talk = tmp_path / "talk"
    talk.write_text("\n".join([*OPENING, *[NOISE] * 10]))
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([BIN, "lint", talk], stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)

    assert done.returncode == 141
    assert done.stderr == b""
