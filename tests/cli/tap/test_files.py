"""The trace and the capture of `sansmcp tap`; the conversation does not depend on either."""

import json
import os
import random
import resource
import select
import shlex
import stat
import subprocess
import threading
import time
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.command_line import SECONDS
from tests.support.tapping import (
    bytes_of,
    hear,
    hear_error,
    linted,
    python,
    records,
    run,
    say,
    start,
    summary,
    tapped,
)

MIB = 1024 * 1024
WRITES = (
    "import os, sys; data = memoryview(open(sys.argv[1], 'rb').read())\n"
    "while data: data = data[os.write(1, data[:50_000]):]"
)
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}\n'
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
AGREED = (
    b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n'
)


def replay(tmp_path: Path, server: bytes, *options: str | Path, client: bytes = b"") -> bytes:
    """The standard error of a tap whose server writes these lines; the passed bytes are checked
    too."""
    script = tmp_path / "script"
    script.write_bytes(server)
    capture = tmp_path / "capture.jsonl"
    done = run(python(WRITES, str(script)), "--jsonl", capture, *options, stdin=client)
    assert done.stdout == server
    assert bytes_of(capture, "server") == server
    return done.stderr


# -------------------------------------------------------------------------------- the trace


class Conversation:
    """A client and a server that are both this test, one line after the other."""

    SERVER = (
        "import os, sys\n"
        "for line in sys.stdin: os.write(1, line[2:].encode()) if line[0] == '=' else None"
    )

    def __init__(self, *options: str | Path) -> None:
        self.process = start(python(self.SERVER), *options)

    def client(self, line: bytes) -> None:
        say(self.process, line)

    def server(self, line: bytes) -> None:
        """Let the server write this line; the order to do so is a line of the client, too."""
        say(self.process, b"= " + line)
        assert hear(self.process, len(line)) == line

    def end(self) -> str:
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        text = self.process.stderr.read().decode()
        assert self.process.wait() == 0
        for file in (self.process.stdout, self.process.stderr):
            assert file is not None
            file.close()
        return text


def test_trace_shows_each_change_of_a_task() -> None:
    """The life of a task is spread over many messages: each change must have a line."""
    stamp = b"2027-01-15T08:00:00Z"
    task = b'"taskId":"t\\u001b","createdAt":"%b","lastUpdatedAt":"%b","ttl":null' % (stamp, stamp)
    status = (
        b'{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"status":"%b",%b}}\n'
    )
    talk = Conversation()
    talk.client(INITIALIZE)
    talk.server(
        AGREED.replace(b'"tools":{}', b'"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}')
    )
    talk.client(INITIALIZED)
    talk.client(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","task":{}}}\n')
    talk.server(b'{"jsonrpc":"2.0","id":1,"result":{"task":{"status":"working",%b}}}\n' % task)
    for each in (b"working", b"failed", b"completed"):
        talk.server(status % (each, task))
    text = talk.end()

    assert text.count(" - task ") == 2
    for expected in (
        '          - task "t\\u001b" of the server: working\n',
        '          - task "t\\u001b" of the server: failed\n',
        "          ! TASK-018 MUST NOT server: a task is completed after it was failed\n",
    ):
        assert expected in text


def test_trace_shows_each_message_and_what_is_wrong_with_it() -> None:
    """Each message must be one numbered line in order, followed by the rules that it breaks."""
    talk = Conversation()
    talk.client(INITIALIZE)
    talk.server(AGREED)
    talk.client(INITIALIZED)
    talk.client(b'{"jsonrpc":"2.0","id":"a\\u001b","method":"tools/call","params":{"name":"x"}}\n')
    talk.client(
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a\\u001b"}}\n'
    )
    talk.server(b'{"jsonrpc":"2.0","id":9,"error":{"code":-1,"message":"no"}}\n')
    talk.server(b"\x1b[2J now\n")
    talk.server(b"\n")
    talk.server(b"[]\n")
    text = talk.end()

    for expected in (
        ' > #1 initialize id 0 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo"',
        " < #3 result of initialize id 0 after ",
        ' s {"protocolVersion":"2025-11-25"',
        " > #4 notifications/initialized\n",
        ' > #5 tools/call id "a\\u001b" {"name":"x"}\n',
        '          - it cancels tools/call id "a\\u001b" of #5\n',
        ' < #8 error id 9 {"code":-1,"message":"no"}\n',
        "          ! JSON-004 MUST server: ",
        r" no message: \x1b[2J now",
        "          ! STDIO-002 MUST NOT server: ",
        " < #12 no message: (blank)\n",
        "          ! OWN-017 OWN server: ",
        " < #14 invalid []\n",
        " > end of input\n",
        " < end of output\n",
        " * the server has ended with exit status 0\n",
        "tap: 14 messages in ",
        "tap: without an answer:\n",
        'tap:   #5: tools/call id "a\\u001b" of the client, which it cancelled\n',
    ):
        assert expected in text
    assert "\x1b" not in text


def test_trace_goes_to_a_file_that_others_cannot_read(tmp_path: Path) -> None:
    """Editors hide standard error, so the trace may go to a file, which may hold confidential
    messages."""
    trace, capture = tmp_path / "trace", tmp_path / "capture"
    trace.write_text("an old one")
    done = run(["cat"], "--trace", trace, "--jsonl", capture, stdin=INITIALIZE + b"caf\xc3\xa9\n")

    assert done.stderr == b""
    assert " > #1 initialize id 0" in trace.read_text("utf-8")
    assert "no message: caf\u00e9\n" in trace.read_text("utf-8")
    assert "tap: rules broken:" in trace.read_text("utf-8")
    assert "an old one" not in trace.read_text("utf-8")
    assert stat.S_IMODE(capture.stat().st_mode) == 0o600


def test_quiet_tap_shows_the_summary_only() -> None:
    """The summary must have each rule once per side with its first place, and the slow
    responses."""
    done = run(["cat"], "--quiet", stdin=b"one\n" + b"two\n" * 2)

    lines = done.stderr.decode().splitlines()
    assert lines[0].startswith("tap: 6 messages in ")
    assert lines[1] == "tap: rules broken:"
    assert set(lines[2:4]) == {
        "tap:   STDIO-003 MUST NOT client #1 (3 times): "
        "the client wrote something that is no message: one",
        lines[3],
    }
    assert "STDIO-002 MUST NOT server #" in lines[3]
    assert "explain STDIO-003" in lines[4]
    assert len(lines) == 5


def test_summary_of_a_conversation_without_faults() -> None:
    """The summary says that there are no faults, in correct grammar."""
    text = run(["cat"], "--quiet", stdin=b"").stderr.decode()
    assert text.endswith("tap: no rule was seen broken\n")
    silent = run(python("input()"), "--quiet", stdin=INITIALIZE).stderr.decode()

    assert silent.startswith("tap: 1 message in ")
    assert "no rule was seen broken" in silent
    assert "#1: initialize id 0 of the client\n" in silent


def test_summary_names_slow_answers_and_what_was_not_judged() -> None:
    """The summary must name the three slowest responses over a second, and why rules were not
    judged."""
    talk = Conversation("--quiet")
    talk.client(b'{"jsonrpc":"2.0","id":1,"method":"server/discover"}\n')
    for number in range(2, 30):
        talk.client(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % number)
    talk.server(b"{}\n")  # all that was said before has been read
    select.select([], [], [], 1.1)  # time is what this is about
    for number in range(2, 7):
        talk.server(b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % number)
    text = talk.end()

    assert text.count("s: ping id ") == 3
    assert "tap: slowest answers:\n" in text
    assert "tap:   and 14 more\n" in text


# ------------------------------------------------------------------------------ the capture


def test_capture_has_a_header_and_a_line_for_everything(tmp_path: Path) -> None:
    """The capture must have the format that the documentation promises to its readers."""
    capture = tmp_path / "capture.jsonl"
    client = INITIALIZE + b"[1]\r\n" + b"t\xc3\xa9xt\n" + b"\xff\n" + b"end"
    run(["sh", "-c", "cat >&2; exit 3"], "--jsonl", capture, stdin=client)
    found = records(capture)

    assert found[0]["format"] == "sansmcp-capture"
    assert found[0]["version"] == 1
    assert found[0]["command"] == ["sh", "-c", "cat >&2; exit 3"]
    assert datetime.fromisoformat(found[0]["started"]).tzinfo is not None
    assert [record["time"] for record in found[1:]] == sorted(r["time"] for r in found[1:])
    sent = [
        {name: value for name, value in record.items() if name not in ("time", "side")}
        for record in found[1:]
        if record["side"] == "client"
    ]
    assert sent == [
        {"message": json.loads(INITIALIZE)},
        {"text": "[1]\r"},
        {"text": "t\u00e9xt"},
        {"base64": "/w=="},
        {"text": "end", "newline": False},
        {"eof": True},
    ]
    assert {"exit": 3}.items() <= found[-1].items() or {"exit": 3}.items() <= found[-2].items()


def test_message_is_kept_as_it_was_written(tmp_path: Path) -> None:
    """Decoding and encoding would change white space, numbers, escapes and members that occur
    twice."""
    capture = tmp_path / "capture.jsonl"
    line = b'{ "a": 1.0e0 , "a":"\\u00e9\\ud800", "b": -0 }\n'
    run(["cat"], "--jsonl", capture, stdin=line)

    assert b'"side":"client","message":%b}\n' % line[:-1] in capture.read_bytes()
    assert bytes_of(capture, "client") == bytes_of(capture, "server") == line


def test_line_without_an_end_is_kept_in_pieces(tmp_path: Path) -> None:
    """A server that prints a disk image must not fill the memory."""
    data = b"\xc3\xa9" * (9 * MIB) + b"\n" + AGREED
    text = replay(tmp_path, data, "--quiet")

    capture = tmp_path / "capture.jsonl"
    assert any(record.get("newline") is False for record in records(capture)[1:])
    assert summary(text) == linted(capture)


@pytest.mark.parametrize("seed", range(4))
def test_replay_comes_to_the_same_findings(tmp_path: Path, seed: int) -> None:
    """A capture that is sent to a helper must show the same findings as the tap."""
    rng = random.Random(seed)
    lines = [
        AGREED,
        b"\xef\xbb\xbf" + AGREED,
        AGREED[:-1] + b"\r\n",
        b"\n",
        b"INFO ready\n",
        b"\xff\xfe\n",
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}\n',
        b'{"jsonrpc":"1.0","id":3,"method":"ping"}\n',
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n',
        b'{"jsonrpc":"2.0","id":5,"result":{}}\n',
        b'[{"jsonrpc":"2.0","id":6,"method":"ping"}]\n',
        b'{"jsonrpc":"2.0","method":"x","params":{"x":1e999}}\n',
        b'{"jsonrpc":"2.0","method":"x","params":[' + b"[" * 300 + b"]" * 300 + b"]}\n",
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7}}\n',
        b"42\n",
        b'{"jsonrpc"',
    ]
    server = b"".join(rng.choices(lines, k=60)) + b'{"jsonrpc":"2.0","id":'
    client = b"".join(rng.choices([*lines[1:], INITIALIZE, INITIALIZED], k=60))
    text = replay(tmp_path, server, client=client)

    found = summary(text)
    assert len(found) > 5
    assert found == linted(tmp_path / "capture.jsonl")


# ------------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("--jsonl", b"tap: the capture in '/dev/full' is not complete: No space left on device\n"),
        ("--trace", b"tap: the trace cannot be written to '/dev/full': No space left on device\n"),
    ],
)
def test_full_disk_is_told_once_and_harms_nobody(option: str, complaint: bytes) -> None:
    """A capture that cannot be written must not break the conversation."""
    data = b"{}\n" * 5_000
    done = run(["cat"], option, "/dev/full", "--quiet", stdin=data)

    assert done.returncode == 0
    assert done.stdout == data
    assert done.stderr.count(complaint) == 1
    assert done.stderr.count(b"tap: 10000 messages in ") == 1, "the summary goes elsewhere"


def test_full_disk_in_the_middle_leaves_a_capture_that_can_be_read(tmp_path: Path) -> None:
    """The capture must be readable up to the failure, which is reported when it happens."""
    capture = tmp_path / "capture.jsonl"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    with start(["cat"], "--jsonl", capture, "--quiet", preexec_fn=limit) as process:
        while capture.stat().st_size < 10_000 if capture.exists() else True:
            say(process, AGREED)
            assert hear(process, len(AGREED)) == AGREED
        say(process, AGREED)
        hear_error(process, "the capture in .* is not complete: File too large")
        say(process, AGREED)
        assert hear(process, 2 * len(AGREED)) == AGREED * 2
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.parametrize("option", ["--jsonl", "--trace"])
def test_file_that_cannot_be_opened_starts_nothing(tmp_path: Path, option: str) -> None:
    """A mistake in the command line must be reported before a server runs."""
    beacon = tmp_path / "started"
    done = run(["touch", beacon], option, "no/such/folder")

    assert done.returncode == 2
    assert done.stdout == b""
    assert b"cannot be written to 'no/such/folder': No such file" in done.stderr
    assert not beacon.exists()


@pytest.mark.parametrize(
    ("options", "redirection", "complaint"),
    [
        (("--trace", "old", "--jsonl", "./old"), "", "capture cannot be written to './old'"),
        (("--trace", "new", "--jsonl", "new"), "", "capture cannot be written to 'new'"),
        (("--trace", "old"), ">>old", "trace cannot be written to 'old'"),
        (("--jsonl", "old"), ">>old", "capture cannot be written to 'old'"),
        (("--jsonl", "old"), "2>>old", "capture cannot be written to 'old'"),
        (("--trace", "/dev/stdout"), "| cat", "trace cannot be written to '/dev/stdout'"),
        (("--jsonl", "/dev/stdout"), "| cat", "capture cannot be written to '/dev/stdout'"),
        (("--jsonl", "/dev/stderr"), "", "capture cannot be written to '/dev/stderr'"),
    ],
)
def test_file_that_is_something_else_already_is_a_mistake(
    tmp_path: Path, options: tuple[str, ...], redirection: str, complaint: str
) -> None:
    """Two streams in one file would mix their lines, or end the conversation."""
    old = tmp_path / "old"
    old.write_text("what was there\n")
    line = shlex.join(map(str, tapped(["touch", "started"], *options)))
    done = subprocess.run(
        ["sh", "-c", f"{{ {line}; echo status $? >&3; }} 3>status {redirection}"],
        cwd=tmp_path,
        capture_output=True,
        timeout=SECONDS,
    )

    assert (tmp_path / "status").read_text() == "status 2\n"
    said = done.stderr.decode() + old.read_text()
    assert f"{complaint}: this is " in said
    assert done.stdout == b""
    assert old.read_text().startswith("what was there\n")
    assert not (tmp_path / "started").exists()


def test_device_may_be_many_things() -> None:
    """`/dev/null` keeps nothing, so several streams may go there."""
    done = run(["cat"], "--trace", "/dev/null", "--jsonl", "/dev/null", stdin=b"{}\n")

    assert done.returncode == 0
    assert done.stdout == b"{}\n"


def test_nobody_has_to_read_the_trace() -> None:
    """A client that does not read standard error must not block the conversation; a later reader
    must see how many lines are missing."""
    data = b'{"jsonrpc":"2.0","method":"x","params":{"x":"%b"}}\n' % (b"x" * 100)
    seen: list[bytes] = []

    def read(process_stderr: int) -> None:
        while more := os.read(process_stderr, 65536):
            seen.append(more)
            enough.set() if sum(map(len, seen)) > MIB else None

    enough = threading.Event()
    with start(["cat"]) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        for _ in range(100):
            say(process, data * 100)
            assert hear(process, len(data) * 100) == data * 100
        reader = threading.Thread(target=read, args=(process.stderr.fileno(),))
        reader.start()
        assert enough.wait(60)
        say(process, data)
        assert hear(process, len(data)) == data
        process.stdin.close()
        assert process.wait() == 0
        reader.join()

    assert b" lines are missing here: the reader was too slow\n" in b"".join(seen)
    assert b"tap: 20002 messages in " in b"".join(seen)


def test_slow_reader_of_the_trace_gets_the_summary(tmp_path: Path) -> None:
    """Most users need the summary, which comes when the most output is waiting."""
    data = b'{"jsonrpc":"2.0","method":"x","params":{"x":"%b"}}\n' % (b"x" * 100)
    seen = b""
    capture = tmp_path / "capture.jsonl"
    with start(["cat"], "--jsonl", capture) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        for _ in range(100):
            say(process, data * 100)
            assert hear(process, len(data) * 100) == data * 100
        while capture.read_bytes().count(b"\n") < 20_001:  # all was looked at
            time.sleep(0.05)  # a file that grows wakes nobody
        process.stdin.close()
        while more := os.read(process.stderr.fileno(), 20_000):
            seen += more
            time.sleep(0.05)  # a reader that is slow is what is tested
        assert process.wait() == 0

    assert b" lines are missing here: the reader was too slow\n" in seen
    assert b"tap: 20000 messages in " in seen
    assert seen.endswith(b"\ntap: no rule was seen broken\n")


def test_slow_reader_of_the_capture_gets_all(tmp_path: Path) -> None:
    """A slow reader of the capture, such as a compressor, must be waited for as long as it
    reads."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    seen: list[bytes] = []

    def read() -> None:
        with pipe.open("rb", buffering=0) as file:
            while more := file.read(15_000):
                seen.append(more)
                time.sleep(0.05)  # a reader that is slow is what is tested

    reader = threading.Thread(target=read)
    lines = AGREED * 3_000
    opened = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with start(["cat"], "--jsonl", pipe, "--quiet") as process:
        assert process.stdin is not None
        assert process.stderr is not None
        for _ in range(30):
            say(process, AGREED * 100)
            assert hear(process, len(AGREED) * 100) == AGREED * 100
        time.sleep(1)  # what was not looked at yet is little now
        reader.start()
        process.stdin.close()
        complaints = process.stderr.read()
        assert process.wait() == 0
    os.close(opened)
    reader.join()

    assert b"is not complete" not in complaints
    assert len(b"".join(seen)) > MIB, "more than what is written within a second"
    kept = tmp_path / "kept"
    kept.write_bytes(b"".join(seen))
    assert bytes_of(kept, "client") == bytes_of(kept, "server") == lines


def test_nobody_has_to_take_the_capture(tmp_path: Path) -> None:
    """The capture must end with a message if the program that reads it has stopped."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    data = (b"x" * (8 * MIB) + b"\n") * 3
    done = run(["cat"], "--jsonl", pipe, "--quiet", stdin=data)
    os.close(reading)

    assert done.stdout == data
    assert done.returncode == 0
    assert b"is not complete: it is not taken there\n" in done.stderr


def test_want_of_memory_ends_the_watching_only() -> None:
    """A message that is too large to be decoded must still be passed on."""
    data = b"[" + b"[],[],[],[]," * (MIB) + b"1]\n"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (400 * MIB, 400 * MIB))

    done = run(["cat"], "--quiet", stdin=data, preexec_fn=limit)

    assert done.stdout == data
    assert done.returncode == 0
    assert b"nothing more is seen, shown or kept from here on: MemoryError()" in done.stderr


def test_summary_that_fails_spoils_nothing_else(tmp_path: Path) -> None:
    """A failing summary must change neither the exit status nor the capture."""
    capture = tmp_path / "capture.jsonl"
    code = (
        "import sys; from sansmcp import Observer; from sansmcp_io.cli import main\n"
        "def close(*_, **__): raise MemoryError\n"
        "Observer.close = close; sys.exit(main(sys.argv[1:]))"
    )
    command = ["tap", "--quiet", "--jsonl", str(capture), "--", "sh", "-c", "cat; exit 7"]
    done = subprocess.run(
        python(code, *command), input=AGREED, capture_output=True, timeout=SECONDS
    )

    assert done.stderr == b"tap: there is no summary: MemoryError()\n"
    assert done.stdout == AGREED
    assert done.returncode == 7
    assert bytes_of(capture, "client") == bytes_of(capture, "server") == AGREED
