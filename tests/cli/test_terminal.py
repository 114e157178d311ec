"""`sansmcp` on a terminal: tables and a bar with rich, the same words without, and Ctrl-C."""

import re
import signal
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.support.command_line import (
    BIN,
    DEMO,
    MCP,
    SECONDS,
    WITHOUT_RICH,
    Terminal,
    document,
    hear_signals,
    sansmcp,
    scripted,
)

WITH_RICH = (str(BIN),)
PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress"}
BOTH = pytest.mark.parametrize("program", [WITH_RICH, WITHOUT_RICH], ids=["rich", "plain"])


@BOTH
def test_inspect_says_the_same_with_and_without_rich(program: Sequence[str]) -> None:
    """The output without rich must have the same information."""
    status, shown = Terminal(*program, "inspect", "--", *MCP).finish()

    assert status == 0
    words = set(re.split(r"[\s─]+", shown))
    assert {"mcp-peer", "2026-07-28", "(2)", "greet", "test://greetings/{name}"} <= words
    assert {f"filler_{number:02}" for number in range(20)} <= words
    assert ("─" in shown) == (program is WITH_RICH)


def test_dumb_terminal_gets_plain_text() -> None:
    """An editor's shell window shows escape sequences as text."""
    terminal = Terminal("env", "TERM=dumb", str(BIN), "explain", "CANC-004")
    status, _ = terminal.finish()

    assert status == 0
    assert "\x1b" not in terminal.written


@BOTH
def test_text_of_the_peer_is_neither_markup_nor_control(program: Sequence[str]) -> None:
    """rich would take brackets for styles, and colons for emoji."""
    name = "[red]a[/red] [link=x]b[/link] :smile: \x1b[31mc\nd\u202e\x9b\x07"
    tool = {"name": name, "description": f"x{name}"}
    server = scripted(
        initialize={"serverInfo": {"name": "[bold]n\x1b[0m", "version": "[/]"}},
        answers={"tools/list": {"tools": [tool]}},
        stderr=[f"log {name}".replace("\n", "\x0b")],
    )
    terminal = Terminal(*program, "inspect", "--", *server, columns=300)
    status, shown = terminal.finish()

    assert status == 0
    assert re.search(r"\[bold\]n\\x1b\[0m", shown)
    together = re.sub(r"\s+", "", shown)
    seen = r"[red]a[/red][link=x]b[/link]:smile:\x1b[31mc\nd\u202e\x9b\x07"
    assert f"{seen}x" in together
    assert "log" + seen.replace(r"\n", r"\x0b") in together
    assert not re.search("[\u202e\x9b\x07]", terminal.written)
    assert "\x1b[31mc" not in terminal.written


@pytest.mark.parametrize("columns", [20, 60, 110])
def test_nothing_is_cut_off_a_table(columns: int) -> None:
    """On a narrow terminal the cells become longer, because half a name would be a wrong name."""
    letters = [chr(code) for code in range(0x100, 0x180)]
    resource = {
        "uri": "test:" + "".join(letters[:40]),
        "name": "".join(letters[40:60]),
        "mimeType": "".join(letters[60:80]),
        "description": "日本" + "".join(letters[80:]),
    }
    server = scripted(
        initialize={"capabilities": {"resources": {}}},
        answers={"resources/list": {"resources": [resource]}},
    )
    status, shown = Terminal(*WITH_RICH, "inspect", "--", *server, columns=columns).finish()

    assert status == 0
    assert [letter for letter in letters if letter not in shown] == []


def test_progress_is_a_bar_that_goes_away() -> None:
    """The bar is useless once the response is there."""
    reports = [{"progress": n, "total": 4, "message": f"step\n[b]{n}"} for n in (1, 2)]
    server = scripted(
        before={"tools/call": [{**PROGRESS, "params": report} for report in reports]},
        silent=[],
        answers={"tools/call": {"content": [{"type": "text", "text": "the answer"}]}},
    )
    terminal = Terminal(*WITH_RICH, "call", "t", "--", *server)
    status, shown = terminal.finish()

    assert status == 0
    assert re.search(r"━+╺?━+ 1 of 4, step\\n\[b\]1", shown)
    assert re.search(r"━+╸?━+ 2 of 4, step\\n\[b\]2", shown)
    assert "\x1b[2K" in terminal.written  # the line is cleared
    assert shown.rstrip().endswith("the answer")


def test_progress_of_an_unknown_total_is_shown_too() -> None:
    """Most servers do not know the total, and may send any numbers."""
    reports = [
        {"progress": -1, "total": 0},
        {"progress": 1},
        {"progress": 1e300, "total": 1e-300},
        {"progress": int("9" * 400), "total": 3},
    ]
    server = scripted(
        before={"tools/call": [{**PROGRESS, "params": report} for report in reports]},
        answers={"tools/call": {"content": []}},
    )
    status, shown = Terminal(*WITH_RICH, "call", "t", "--", *server).finish()

    assert status == 0
    assert "-1 of 0" in shown
    assert "1e+300 of 1e-300" in shown
    assert "Traceback" not in shown
    assert "warning" not in shown


def test_progress_without_rich_is_lines() -> None:
    """A terminal must show progress without rich too."""
    call = [*WITHOUT_RICH, "call", "progress", '{"steps": 2}']
    status, shown = Terminal(*call, "--", *DEMO).finish()

    assert status == 0
    assert "progress: 1 of 2, step 1\n" in shown
    assert shown.endswith("2 steps\n")
    assert "progress" not in Terminal(*call, "--no-progress", "--", *DEMO).finish()[1]


# ----------------------------------------------------------------------------------- the end


@BOTH
def test_ctrl_c_cancels_the_call_and_shows_it(program: Sequence[str]) -> None:
    """The server must get the cancellation, so the terminal's signal must not reach it first."""
    server = scripted(
        log=True,
        silent=["tools/call"],
        before={"tools/call": [{**PROGRESS, "params": {"progress": 1}}]},
    )
    terminal = Terminal(*program, "call", "t", "--", *server)
    terminal.read_until("received tools/call")
    terminal.press(b"\x03")
    status, shown = terminal.finish()

    assert status == 130
    assert "received notifications/cancelled" in shown
    assert (
        "error: interrupted by SIGINT: tools/call was cancelled, and the server was told so"
        in shown
    )
    assert "Traceback" not in shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_call_and_the_server(number: signal.Signals) -> None:
    """After a supervisor's signal, no server may be left, and the exit status names the signal."""
    server = scripted(log=True, silent=["tools/call"])
    process = subprocess.Popen(
        [BIN, "call", "t", "--json", "--", *server],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_signals,
    )
    assert process.stderr is not None
    while "received tools/call" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=SECONDS)

    assert process.returncode == 128 + number
    assert "server| received notifications/cancelled\n" in stderr
    assert f"error: interrupted by {number.name}: tools/call was cancelled" in stderr
    assert '"kind": "interrupted"' in stdout


def test_interruption_before_the_server_has_answered() -> None:
    """`initialize` cannot be cancelled, but the user must not have to wait for it."""
    process = subprocess.Popen(
        [BIN, "inspect", "--", *scripted(log=True, silent=["initialize"])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while "received initialize" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=SECONDS)

    assert (process.returncode, stdout) == (130, "")
    assert "had answered initialize" in stderr
    assert "cancelled" not in stderr


def test_server_that_was_told_to_ignore_a_signal_is_not_ended_by_it() -> None:
    """`nohup sansmcp ...` must go on when the terminal closes."""
    code = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    raise_it = (
        "import os, signal, sys, time\n"
        "os.kill(os.getppid(), signal.SIGHUP); os.execv(sys.executable, [sys.executable, "
        "*sys.argv[1:]])"
    )
    server = [sys.executable, "-c", raise_it, *DEMO[1:]]
    done = subprocess.run(
        [sys.executable, "-c", code, BIN, "call", "echo", '{"text": "on"}', "--", *server],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )

    assert (done.returncode, done.stdout) == (0, "on\n"), done.stderr


def test_failure_leaves_one_document_and_the_same_words_on_both_streams() -> None:
    """A script may log standard error and read the document."""
    done = sansmcp("call", "nothing", "--json", "--", *DEMO)

    assert f"error: {document(done)['error']['text']}\n" in done.stderr
