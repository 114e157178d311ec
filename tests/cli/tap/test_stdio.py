"""`sansmcp tap` changes nothing for client and server: bytes, ends of streams, exit status."""

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.command_line import SECONDS
from tests.support.processes import is_running
from tests.support.tapping import (
    bytes_of,
    fill,
    hear,
    hear_error,
    python,
    records,
    run,
    say,
    start,
    start_command,
    tapped,
)

MIB = 1024 * 1024
MOST_ON_THE_WAY = 4 * MIB
ODD = b"\xef\xbb\xbf{}\r\n\r\n\xff\xfe\x00\n[1, 2 ]\n\xc3\xa9\r{\n\n no newline"


# ------------------------------------------------------------------------------------ the bytes


def test_bytes_pass_unchanged() -> None:
    """The fault that a user looks for may be in bytes that are no message."""
    data = ODD * 3 + random.Random(1).randbytes(300_000)
    done = run(["cat"], stdin=data)

    assert done.stdout == data
    assert done.returncode == 0


def test_large_messages_pass_unchanged(tmp_path: Path) -> None:
    """Messages of megabytes, far more than a pipe holds, must pass unchanged."""
    capture = tmp_path / "capture.jsonl"
    data = b'{"jsonrpc":"2.0","method":"x","params":{"x":"%b"}}\n' % (b"x" * MIB)
    done = run(["cat"], "--jsonl", capture, stdin=data * 5)

    assert done.stdout == data * 5
    assert bytes_of(capture, "client") == bytes_of(capture, "server") == data * 5
    assert len(done.stderr) < 10_000, "a trace shows the beginning"


def test_nothing_waits_for_the_end_of_a_line() -> None:
    """A server that prints half a line and then hangs must look so to its client."""
    with start(["cat"]) as process:
        for piece in (b"{", b'"a"', b": 1}\n"):
            say(process, piece)
            assert hear(process, len(piece)) == piece
        assert process.stdin is not None
        process.stdin.close()
        assert hear(process, 1) == b""


def test_end_of_input_and_of_output_are_passed_on() -> None:
    """A client may close its side first, or a server its own: each end is passed on by itself."""
    code = (
        "import os, sys; os.close(1); data = sys.stdin.buffer.read(); "
        "os.write(2, b'%d bytes' % len(data))"
    )
    with start(python(code)) as process:
        assert hear(process, 1) == b"", "the server lives, and its output has ended"
        say(process, b"hello\n")
        assert process.stdin is not None
        process.stdin.close()
        hear_error(process, "6 bytes")
        assert process.wait(SECONDS) == 0


def test_standard_error_is_not_touched(tmp_path: Path) -> None:
    """Standard error of a server, with colours and invalid text, must reach its client
    unchanged."""
    code = "import os; os.write(2, b'\\x1b[31m\\xff red\\n' * 3 + b'no newline')"
    done = run(python(code), "--trace", tmp_path / "trace")

    assert done.stderr == b"\x1b[31m\xff red\n" * 3 + b"no newline"


def test_what_a_server_inherits_is_handed_on() -> None:
    """A server must inherit variables, the directory, and descriptors opened by a shell."""
    reading, writing = os.pipe()
    os.write(writing, b"from a descriptor")
    os.close(writing)
    code = (
        "import os, sys; print(os.environ['A_TOKEN'], os.getcwd(), os.read(int(sys.argv[1]), 99))"
    )
    done = run(
        python(code, str(reading)),
        env={**os.environ, "A_TOKEN": "secret"},
        cwd="/",
        pass_fds=[reading],
    )
    os.close(reading)

    assert done.stdout == b"secret / b'from a descriptor'\n"


# ------------------------------------------------------------------------------ back-pressure


def test_server_is_not_read_faster_than_its_client_reads() -> None:
    """A tap without back-pressure would fill its memory and hide that the client is slow."""
    code = (
        "import os, select, sys; os.set_blocking(1, False); total = 0\n"
        "poller = select.poll(); poller.register(1, select.POLLOUT)\n"
        "while total < int(sys.argv[1]) and poller.poll(1000): total += os.write(1, b'x' * 65536)\n"
        "print('took', total, file=sys.stderr)"
    )
    with start(python(code, str(100 * MIB)), "--quiet") as process:
        total = int(hear_error(process, r"took \d+\n").split()[-1])
        assert 0 < total < MOST_ON_THE_WAY
        assert process.poll() is None, "what the server has written is not delivered yet"
        assert hear(process, 100 * MIB) == b"x" * total
        assert process.wait(SECONDS) == 0


ANSWERS_USR1_AND_READS_NOTHING = (
    "import os, signal; signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b'here\\n'))\n"
    "os.write(1, b'ready\\n')\n"
    "while True: signal.pause()"
)


def test_client_is_not_read_faster_than_its_server_reads() -> None:
    """The output of the server must pass while its input is blocked."""
    with start(python(ANSWERS_USR1_AND_READS_NOTHING), "--quiet") as process:
        assert hear(process, 6) == b"ready\n"
        assert process.stdin is not None
        assert 0 < fill(process.stdin.fileno(), 100 * MIB) < MOST_ON_THE_WAY
        process.send_signal(10)
        assert hear(process, 5) == b"here\n"
        process.terminate()
        assert process.wait(SECONDS) == -15


def test_descriptors_that_do_not_block_are_waited_for() -> None:
    """Clients on an event loop may share a pipe in non-blocking mode."""
    input_reading, input_writing = os.pipe()
    output_reading, output_writing = os.pipe()
    for descriptor in (input_reading, output_writing):
        os.set_blocking(descriptor, False)
    data = bytes(range(256)) * 4096
    with start(
        python("import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"),
        "--quiet",
        stdin=input_reading,
        stdout=output_writing,
    ) as process:
        os.close(input_reading)
        os.close(output_writing)
        with open(input_writing, "wb") as file:
            file.write(data)
        with open(output_reading, "rb") as file:
            assert file.read() == data
    assert process.returncode == 0


def test_numbers_of_descriptors_may_be_large() -> None:
    """A client with thousands of open files may pass them on; `select` fails for descriptors
    above 1023."""
    code = (
        "import os, resource, sys\n"
        "most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))\n"
        "for _ in range(1100): os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)\n"
        "os.set_blocking(1, False); os.execv(sys.argv[1], sys.argv[1:])"
    )
    writes = python(f"import sys; sys.stdout.write('x' * {MIB})")
    with start_command(python(code, *map(str, tapped(writes, "--quiet")))) as process:
        time.sleep(1)  # until the pipe is full
        assert hear(process, MIB + 1) == b"x" * MIB
        assert process.wait(SECONDS) == 0


# ------------------------------------------------------------------------------ ends of server


@pytest.mark.parametrize("status", [0, 7, 255])
def test_exit_status_is_that_of_the_server(status: int) -> None:
    """A client may decide by the exit status whether to restart a server."""
    assert run(["sh", "-c", f"exit {status}"]).returncode == status


@pytest.mark.parametrize("number", [9, 11, 15, 40])
def test_signal_that_has_ended_the_server_ends_the_tap(number: int) -> None:
    """The parent process sees the same signal, and no core file of the tap."""
    done = run(["sh", "-c", f"kill -{number} $$"])

    assert done.returncode == -number
    assert b"* the server was ended by " in done.stderr


def test_program_that_does_not_exist() -> None:
    """The exit status must be that of a shell, so that it is not taken for the server's own."""
    done = run(["no-such-server"])

    assert done.returncode == 127
    assert b"error: the server `no-such-server` was not started: there is no such" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("content", [b"", b"\x01\x02"])
def test_file_that_is_no_program(tmp_path: Path, content: bytes) -> None:
    """A file that is not executable or has an unknown format must be reported as a shell does."""
    script = tmp_path / "server"
    script.write_bytes(content)
    script.chmod(0o755 if content else 0o644)
    done = run([script])

    assert done.returncode == 126
    assert b"was not started" in done.stderr
    assert b"hint: " in done.stderr


def test_name_that_no_program_can_have() -> None:
    """The command may be an empty word, from a variable that was not set."""
    assert run([""]).returncode in (126, 127)


def test_crash_of_the_server_loses_nothing(tmp_path: Path) -> None:
    """Output before a crash must be delivered and captured, together with the exit status."""
    capture = tmp_path / "capture.jsonl"
    code = (
        "import os; os.write(1, b'{}\\n' * 2_000 + b'{\"half\"'); input(); os.kill(os.getpid(), 9)"
    )
    with start(python(code), "--jsonl", capture) as process:
        whole = b"{}\n" * 2_000 + b'{"half"'
        assert hear(process, len(whole)) == whole
        say(process, b"\n")
        assert hear(process, 1) == b""
        assert process.wait(SECONDS) == -9

    assert bytes_of(capture, "server") == whole
    assert bytes_of(capture, "client") == b"\n"
    ends = [record for record in records(capture) if record.get("side") == "server"][-3:]
    assert any(record.get("signal") == 9 for record in ends)
    assert any(record.get("eof") is True for record in ends)


def test_what_a_server_leaves_behind_does_not_keep_the_tap() -> None:
    """A background process holds the output open; without a tap the client would not wait for
    it."""
    done = run(["sh", "-c", "sleep 60 2>&1 & echo $!"], "--quiet")
    pid = int(done.stdout)
    try:
        assert done.returncode == 0
        assert is_running(pid)
    finally:
        os.kill(pid, 9)


# ------------------------------------------------------------------------------ ends of client


def test_server_of_a_client_that_has_gone_gets_a_broken_pipe() -> None:
    """The server must get a broken pipe as without a tap, even if its input stays open."""
    code = (
        "import os, signal, time; signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
        "while True: os.write(1, b'tick\\n'); time.sleep(0.01)"
    )
    with start(python(code)) as process:
        assert hear(process, 5) == b"tick\n"
        assert process.stdout is not None
        process.stdout.close()
        text = hear_error(process, "rules broken")
        assert process.wait(SECONDS) == -13
    assert "* the client reads no more" in text


def test_client_of_a_server_that_reads_no_more_gets_a_broken_pipe() -> None:
    """The client must get the error at its next write, as without a tap."""
    code = "import os, time; os.close(0); os.write(1, b'x'); time.sleep(60)"
    with start(python(code)) as process:
        assert hear(process, 1) == b"x"
        hear_error(process, "the server reads no more")
        with pytest.raises(BrokenPipeError):
            say(process, b"x" * MIB)
        process.terminate()
    assert process.returncode == -15


def test_killed_client_ends_server_and_tap(tmp_path: Path) -> None:
    """After `kill -9` of the client, server and tap must end, and the capture must be complete."""
    capture = tmp_path / "capture.jsonl"
    with start(["sleep", "60"], stdin=subprocess.PIPE) as client:
        server = subprocess.Popen(
            tapped(["cat"], "--jsonl", capture),
            stdin=subprocess.PIPE,
            stdout=client.stdin,
            stderr=subprocess.DEVNULL,
        )
        assert client.stdin is not None
        client.stdin.close()
        assert server.stdin is not None
        server.stdin.write(b"{}\n")
        server.stdin.flush()
        client.kill()
        client.wait(SECONDS)
        server.stdin.close()
        assert server.wait(SECONDS) in (0, -13)
    assert bytes_of(capture, "client") == b"{}\n"


@pytest.mark.parametrize(("descriptor", "output"), [("<", b"0\n"), (">", b""), ("2>", b"3\n")])
def test_streams_that_are_closed(descriptor: str, output: bytes) -> None:
    """A parent may close standard streams: output must not go to a file that took their number."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {descriptor}&-', "sh", *tapped(["wc", "-c"])],
        input=b"abc",
        capture_output=True,
        timeout=SECONDS,
    )

    assert done.stdout.strip() == output.strip()
    assert b"Traceback" not in done.stderr
