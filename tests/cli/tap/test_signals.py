"""`sansmcp tap` passes each signal on once, and ends when the server ends."""

import os
import signal

import pytest

from tests.support.command_line import SECONDS, Terminal
from tests.support.tapping import hear, hear_error, python, run, start, tapped

COUNTS = (
    "import os, signal\n"
    "def heard(number, frame):\n"
    "    os.write(1, f'{signal.Signals(number).name}\\n'.encode())\n"
    "    if number == signal.SIGTERM: os._exit(3)\n"
    "for name in ('INT', 'HUP', 'QUIT', 'USR1', 'USR2', 'TERM'):\n"
    "    signal.signal(getattr(signal, f'SIG{name}'), heard)\n"
    "os.write(1, b'ready\\n')\n"
    "while True: signal.pause()"
)


def test_signals_are_passed_on_once_each() -> None:
    """A server that gets Ctrl-C twice may take the second one for impatience."""
    with start(python(COUNTS), "--quiet") as process:
        assert hear(process, 6) == b"ready\n"
        for name in ("SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"):
            process.send_signal(getattr(signal, name))
            assert hear(process, len(name) + 1) == f"{name}\n".encode()
        process.send_signal(signal.SIGTERM)
        assert hear(process, 99) == b"SIGTERM\n"
        assert process.wait(SECONDS) == 3


def test_signal_for_a_whole_group_is_heard_once() -> None:
    """Clients signal the whole process group, so the server must get the signal from the tap
    alone."""
    with start(python(COUNTS), "--quiet", start_new_session=True) as process:
        assert hear(process, 6) == b"ready\n"
        os.killpg(process.pid, signal.SIGINT)
        assert hear(process, 7) == b"SIGINT\n"
        os.killpg(process.pid, signal.SIGTERM)
        assert hear(process, 99) == b"SIGTERM\n"
        assert process.wait(SECONDS) == 3


def test_ctrl_c_in_a_terminal_is_heard_once() -> None:
    """A terminal sends Ctrl-C to all foreground processes."""
    terminal = Terminal(*tapped(python(COUNTS), "--quiet"))
    terminal.read_until("ready")
    terminal.press(b"\x03")
    terminal.read_until("SIGINT")
    terminal.process.send_signal(signal.SIGTERM)
    status, text = terminal.finish()

    assert status == 3
    assert text.count("SIGINT") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_server_that_a_signal_ends(number: signal.Signals) -> None:
    """The tap must print its summary, and then end by the signal that ended the server."""
    server = ["sh", "-c", "echo ready; exec sleep 60"]
    with start(server) as process:
        assert hear(process, 6) == b"ready\n"
        process.send_signal(number)
        text = hear_error(process, "STDIO-002 MUST NOT server #1")
        assert process.wait(SECONDS) == -number
    assert f"* the server was ended by {number.name}" in text


def test_everybody_in_the_group_of_the_server_is_told() -> None:
    """The command is often a wrapper that waits for the real server."""
    server = ["sh", "-c", 'sh -c "echo ready; exec sleep 60"; exit 5']
    with start(server, "--quiet") as process:
        assert hear(process, 6) == b"ready\n"
        process.terminate()
        assert process.wait(SECONDS) == -signal.SIGTERM


def test_signal_ends_a_tap_whose_client_does_not_read() -> None:
    """Unsent output must not keep the tap alive after a signal."""
    server = python("import os; os.write(2, b'ready\\n'); os.write(1, b'x' * 10_000_000)")
    with start(server, "--quiet") as process:
        hear_error(process, "ready")
        process.terminate()
        assert process.wait(SECONDS) == -signal.SIGTERM


def test_signal_that_is_ignored_stays_ignored() -> None:
    """`nohup` and background shells set signals to be ignored for the programs that they start."""
    code = "import signal; print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    done = run(
        python(code),
        "--quiet",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )

    assert done.stdout == b"True\n"


def test_broken_pipe_is_no_signal_that_the_server_ignores() -> None:
    """Python ignores SIGPIPE, but a server must start with the default action."""
    done = run(["grep", "SigIgn", "/proc/self/status"], "--quiet")
    ignored = int(done.stdout.split()[1], 16)

    assert not ignored >> (signal.SIGPIPE - 1) & 1
