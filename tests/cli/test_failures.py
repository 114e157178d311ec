"""Error messages of `sansmcp` when a conversation fails: the cause, the side, and a hint."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import (
    BIN,
    DEMO,
    MCP,
    SECONDS,
    Done,
    document,
    modern,
    sansmcp,
    scripted,
)

CALL = ("call", "t")


def failed(done: Done, kind: str, status: int = 3) -> str:
    """The standard error of a failed command; its document for programs is checked too."""
    assert done.returncode == status, (done.stdout, done.stderr)
    assert "error: " in done.stderr
    error = document(done)["error"]
    members = {"kind", "text", "details", "hints", "rule", "code", "data", "status", "retry_after"}
    assert set(error) == members
    assert error["kind"] == kind
    return done.stderr


def call(*server: str | Path, timeout: str = "30", limit: str = "100000000", **env: str) -> Done:
    options = ["--json", "--timeout", timeout, "--max-message-bytes", limit]
    return sansmcp(*CALL, *options, "--", *server, **env)


# ------------------------------------------------------------------------------- the streams


def without(descriptor: str, *arguments: str) -> Done:
    """The command with a standard stream closed by the shell."""
    command = f"exec {shlex.join([str(BIN), *arguments])} {descriptor}&-"
    return subprocess.run(
        ["sh", "-c", command], capture_output=True, encoding="utf-8", timeout=SECONDS
    )


ECHO = ("call", "echo", '{"text": "hi"}', "--", *DEMO)


def test_standard_output_that_is_closed_is_where_no_result_can_go() -> None:
    """The command must fail, but not with the exit status of a failed tool."""
    for arguments in (("explain", "CANC-004"), ECHO, ("demo",)):
        done = without(">", *arguments)
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr == "error: the result cannot be written: Bad file descriptor\n"


def test_standard_error_that_is_closed_is_not_missed() -> None:
    """The result must still be printed; only the messages are lost."""
    done = without("2>", *ECHO)
    assert (done.returncode, done.stdout) == (0, "hi\n")
    assert without("2>", "call").returncode == 2


def test_standard_input_that_is_closed_is_empty() -> None:
    """Only a command that reads standard input may notice that it is closed."""
    assert without("<", *ECHO).stdout == "hi\n"
    done = without("<", "call", "echo", "-", "--", *DEMO)
    assert done.returncode == 2
    assert "an empty text is no JSON" in done.stderr


@pytest.mark.parametrize("descriptor", ["<", ">"])
def test_server_without_standard_input_or_output_says_so(descriptor: str) -> None:
    """A server needs these streams, so it must tell the user how to start it."""
    done = without(descriptor, "serve-demo", "--banner")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: a server needs standard input and output: one is closed\n"


def test_demo_needs_no_standard_input() -> None:
    """The server of the demo has pipes of its own."""
    done = without("<", "demo", "--revision", "2026-07-28")
    assert done.returncode == 0, done.stdout
    assert done.stderr == ""


def test_server_whose_client_has_gone_before_the_banner_ends_quietly() -> None:
    """An early disconnect must end the server without an error, as a later one does."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [BIN, "serve-demo", "--banner"],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=SECONDS,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_failure_that_nobody_reads_is_no_traceback() -> None:
    """`sansmcp ... --json | head` must end like any command whose reader has gone."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [BIN, *CALL, "--json", "--", "false"],
            stdout=writing,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=SECONDS,
        )
    finally:
        os.close(writing)
    assert done.returncode == 141
    assert "error: the server `false` ended" in done.stderr
    assert "Traceback" not in done.stderr


# ------------------------------------------------------------------------------- the process


def test_server_that_a_nameless_signal_has_ended() -> None:
    """Real-time signals have numbers only, which the message must show."""
    code = f"import os; os.kill(os.getpid(), {signal.SIGRTMIN + 5})"
    text = failed(call(sys.executable, "-c", code), "lost")

    assert f"the process was ended by signal {signal.SIGRTMIN + 5}" in text


def test_program_that_does_not_exist() -> None:
    """A name that is wrong or not in PATH is the commonest mistake."""
    text = failed(call("no-such-server", "x"), "not-started")

    assert "error: the server `no-such-server x` was not started: there is no such" in text
    assert "hint: check its name" in text


def test_command_that_was_given_as_one_argument() -> None:
    """Other tools want the command quoted, so the hint must say how to give it here."""
    text = failed(call(shlex.join([sys.executable, "server.py"])), "not-started")

    assert f"hint: give the words of the command apart, without quotes: -- {sys.executable}" in text


def test_file_that_may_not_be_executed(tmp_path: Path) -> None:
    """A script that was just written or downloaded often lacks the permission."""
    script = tmp_path / "server.py"
    script.write_text("#!/usr/bin/env python3\n")
    text = failed(call(script), "not-started")

    assert "Permission denied" in text
    assert "chmod +x" in text


def test_script_without_an_interpreter(tmp_path: Path) -> None:
    """The system reports `no such file` for a file that exists."""
    script = tmp_path / "server"
    script.write_text("#!/no/such/python\n")
    script.chmod(0o755)
    text = failed(call(script), "not-started")

    assert "the program that its first line names is not" in text
    assert f"correct the first line of {script}" in text


def test_file_that_is_no_program(tmp_path: Path) -> None:
    """An executable file may have a format that the system cannot run."""
    script = tmp_path / "server"
    script.write_bytes(b"\x01\x02\x03")
    script.chmod(0o755)
    text = failed(call(script), "not-started")

    assert "Exec format error" in text
    assert "hint: a script begins with a line such as #!" in text


def test_server_that_ends_at_once_shows_its_last_words() -> None:
    """The last lines of standard error usually name the cause, such as a missing module."""
    server = scripted(stderr=["Traceback", "ModuleNotFoundError: x\x1b[2J"], exit=1)
    text = failed(call(*server), "lost")

    assert "server| ModuleNotFoundError: x\\x1b[2J\n" in text
    assert "ended before it answered server/discover" in text
    assert "the process ended with exit status 1\n" in text
    assert "what it wrote to standard error stands above" in text

    quiet = sansmcp(*CALL, "--quiet", "--", *server).stderr
    assert "server|" not in quiet
    assert "ModuleNotFoundError: x\\x1b[2J\n" in quiet


def test_server_that_ends_without_a_word() -> None:
    """The error must say that there was no output, or users would look for it."""
    text = failed(call("true"), "lost")

    assert "it wrote nothing to standard output" in text
    assert "it wrote nothing to standard error" in text
    assert "hint: run the same command by itself" in text
    assert "--env NAME hands one on" in text
    assert "--revision 2025-11-25 does without" in text

    done = sansmcp(*CALL, "--json", "--revision", "2025-11-25", "--", "true")
    text = failed(done, "lost")
    assert "ended before it answered initialize" in text
    assert "does without" not in text


def test_server_that_ends_in_the_middle_of_a_call() -> None:
    """The call is lost, which differs from an error response."""
    text = failed(call(*scripted(die_at="tools/call")), "lost")

    assert "ended before it answered tools/call" in text
    assert "the process ended with exit status 7\n" in text


def test_server_that_is_killed_shows_by_which_signal() -> None:
    """A system that is short of memory ends programs by SIGKILL."""
    text = failed(call("sh", "-c", "kill -9 $$"), "lost")

    assert "the process was ended by SIGKILL\n" in text


def test_noise_in_place_of_answers_is_quoted() -> None:
    """A program that prints other text instead of MCP must be recognised by it."""
    server = scripted(stdout=["Listening on port 80", "second"], silent=["initialize"])
    text = failed(call(*server, timeout="1"), "timeout")

    assert "2 lines that are no messages, first of all: Listening on port 80" in text
    assert "sansmcp explain STDIO-002" in text

    one = scripted(stdout=["Listening"], exit=0)
    assert "a line that is no message: Listening" in failed(call(*one), "lost")


def test_server_that_says_nothing_runs_into_the_time_limit() -> None:
    """Some programs wait for other input, or speak HTTP only."""
    text = failed(call("sleep", "600", timeout="0.5"), "timeout")

    assert "the server `sleep 600` did not answer initialize within 0.5 s" in text
    assert "it wrote nothing to standard output" in text
    assert "hint: --timeout 1 gives it twice the time" in text
    assert "--stdio" in text


def test_call_that_takes_too_long_is_cancelled() -> None:
    """The call must be cancelled on the server, and the user must be told so."""
    server = scripted(silent=["tools/call"], log=True)
    text = failed(call(*server, timeout="2"), "timeout")

    assert "did not answer tools/call: no sign of it for 2 s; the request was cancelled" in text
    assert "server| received notifications/cancelled" in text


def test_progress_keeps_a_call_alive() -> None:
    """A progress token must be sent without a terminal too, or `--timeout` would depend on the
    terminal."""
    done = sansmcp("call", "progress", '{"steps": 2}', "--", *DEMO)

    assert (done.returncode, done.stdout, done.stderr) == (0, "2 steps\n", "")
    requests = scripted(
        before={"tools/call": [{"method": "notifications/progress", "params": {"progress": 1}}]},
        answers={"tools/call": {"content": []}},
    )
    assert sansmcp(*CALL, "--", *requests).returncode == 0  # or it would have found no token


# ------------------------------------------------------------------------------- the protocol


def test_server_that_refuses_to_begin() -> None:
    """The error must show the revisions that the server supports, if it names them."""
    error = {
        "code": -32602,
        "message": "Unsupported protocol version",
        "data": {"supported": ["2024-11-05", "2025-03-26"], "requested": "2025-11-25"},
    }
    text = failed(call(*scripted(initialize={"error": error})), "refused")
    assert "refused initialize: Unsupported protocol version (-32602)" in text
    assert 'data: {"supported": ["2024-11-05", "2025-03-26"]' in text
    assert "hint: it speaks other revisions: --revision 2025-03-26" in text

    error = {"code": -32000, "message": "no"}
    text = failed(call(*scripted(initialize={"error": error})), "refused")
    assert "refused initialize: no (-32000)" in text


def test_server_that_speaks_another_era_only() -> None:
    """The text names what was refused, and what the user can do about it."""
    done = sansmcp(*CALL, "--json", "--revision", "2026-07-28", "--", *scripted())
    text = failed(done, "refused")
    assert "refused server/discover: no method server/discover (-32601)" in text
    assert "hint: leave --revision out" in text

    error = {
        "code": -32022,
        "message": "Unsupported protocol version",
        "data": {"supported": ["2030-01-01", "2026-07-28"], "requested": "2025-11-25"},
    }
    server = scripted(initialize={"error": error})
    done = sansmcp(*CALL, "--json", "--revision", "2025-11-25", "--", *server)
    assert "hint: it speaks other revisions: --revision 2026-07-28\n" in failed(done, "refused")


def test_server_that_has_questions() -> None:
    """The command answers no questions, so the error must say that this tool cannot be used with
    it."""
    error: dict[str, object] = {
        "code": -32021,
        "message": "needs sampling",
        "data": {"requiredCapabilities": {"sampling": {}}},
    }
    server = scripted(answers={**modern({"tools": {}}), "tools/call": {"error": error}})
    text = failed(
        sansmcp("request", "tools/call", '{"name": "t"}', "--json", "--", *server), "peer-error"
    )

    assert "needs sampling (-32021)" in text
    assert "this command answers nothing" in text


def test_server_that_is_slow_to_begin_is_not_taken_for_one_of_the_older_era() -> None:
    """A server that is started by a package manager takes some seconds."""
    code = (
        "import os, sys, time; time.sleep(4)\n"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    done = sansmcp("inspect", "--json", "--", sys.executable, "-c", code, *DEMO[1:])

    assert document(done)["revision"] == "2026-07-28"


def test_server_that_speaks_another_revision() -> None:
    """No agreement is neither side's fault."""
    server = scripted(initialize={"protocolVersion": "1999-01-01"})
    text = failed(call(*server), "no-agreement")

    assert "1999-01-01" in text
    assert "hint: leave --revision out" in text


@pytest.mark.parametrize("answer", [{"serverInfo": 7}, {"capabilities": None}])
def test_answer_to_initialize_that_is_not_valid(answer: dict[str, object]) -> None:
    """The text names the invalid member, and the opening fails."""
    text = failed(call(*scripted(initialize=answer)), "invalid-answer")

    assert next(iter(answer)) in text


def test_capability_that_the_server_does_not_declare() -> None:
    """The error must come before the request is sent, with the declared capabilities."""
    done = sansmcp("read", "a:b", "--json", "--", *scripted(log=True))
    text = failed(done, "not-offered")

    assert "resources/read needs the capability resources" in text
    assert "it declares: tools" in text
    assert "hint: sansmcp explain CAP-002" in text
    assert document(done)["error"]["rule"] == "CAP-002"
    assert "received resources/read" not in text


def test_method_of_another_revision() -> None:
    """A method that the agreed revision lacks must be refused with that reason."""
    done = sansmcp("request", "tasks/list", "--json", "--revision", "2024-11-05", "--", *DEMO)

    assert "2024-11-05" in failed(done, "not-offered")
    assert document(done)["error"]["rule"] == "OWN-020"
    assert document(done)["error"]["hints"] == ["--revision 2025-11-25 has it"]


def test_method_of_the_other_era() -> None:
    """The user learns why `ping` is impossible, and what to do instead."""
    done = sansmcp("request", "ping", "--json", "--", *DEMO)
    text = failed(done, "not-offered")
    assert "ping is no request that the client may send in revision 2026-07-28" in text
    assert "hint: --revision 2025-11-25 has it" in text

    line = ["request", "server/discover", "--json", "--revision", "2025-06-18"]
    text = failed(sansmcp(*line, "--", *DEMO), "not-offered")
    assert "hint: --revision 2026-07-28 has it" in text

    done = sansmcp("request", "initialize", "--json", "--", *DEMO)
    failed(done, "not-offered")
    assert document(done)["error"]["hints"] == []  # the command alone sends that, in any revision


def test_what_cannot_be_sent_to_any_server_is_a_usage_error() -> None:
    """The mistake is in the command line, so no server may be started."""
    done = sansmcp("request", "tools/call", '{"_meta": 1}', "--json", "--", *DEMO)
    assert "not sent: _meta must be an object" in failed(done, "usage", status=2)

    done = sansmcp("request", "initialize", "--json", "--revision", "2025-11-25", "--", *DEMO)
    assert document(done)["error"]["rule"] == "LIFE-001"
    assert done.returncode == 2


def test_tool_that_the_server_does_not_have() -> None:
    """The error must propose tools with similar names."""
    done = sansmcp("call", "ehco", "--json", "--", *MCP)
    text = failed(done, "peer-error")

    assert "with an error: unknown tool: ehco (-32602)" in text
    assert "hint: the server lists no tool ehco; did you mean echo" in text
    assert document(done)["error"]["code"] == -32602

    text = failed(sansmcp("call", "xyz", "--json", "--", *DEMO), "peer-error")
    assert "it has ask, echo, filler_00" in text
    assert "and 19 more" in text


def test_arguments_that_the_tool_does_not_take() -> None:
    """The error must list the arguments of the tool."""
    text = failed(sansmcp("call", "log", "{}", "--json", "--", *MCP), "peer-error")

    assert "missing arguments: level (-32602)" in text
    assert 'hint: the tool log takes: level: "debug" or "info" or ' in text
    assert '"emergency", message?: string' in text


SCHEMA = {
    "properties": {
        "unit": {"enum": ["C", "F", 1, True, None]},
        "kind": {"const": "now"},
        "tone": {"anyOf": [{"$ref": "#/$defs/Tone"}, {"type": "null"}]},
        "days": {"type": "array", "items": {"$ref": "#/$defs/Day"}},
        "many": {"enum": list(range(15))},
        "long": {"enum": ["x" * 100]},
        "self": {"$ref": "#/$defs/Self"},
        "count": {"type": ["integer", "null"]},
        "share": {"type": "number"},
        "sure": {"type": "boolean"},
        "lost": {"$ref": "https://example.com/schema"},
    },
    "required": ["unit"],
    "$defs": {
        "Tone": {"enum": ["warm", "dry"]},
        "Day": {"const": "Monday"},
        "Self": {"anyOf": [{"$ref": "#/$defs/Self"}]},
    },
}


def test_values_that_an_argument_may_have_are_shown() -> None:
    """Without the values of an enum, a user would have to guess them."""
    error = {"error": {"code": -32602, "message": "no"}}
    tools = {"tools": [{"name": "t", "inputSchema": SCHEMA}]}
    text = failed(call(*scripted(answers={"tools/call": error, "tools/list": tools})), "peer-error")

    (hint,) = [line for line in text.splitlines() if "hint" in line]
    assert 'takes: unit: "C" or "F" or 1 or true or null, kind?: "now", ' in hint
    assert 'tone?: "warm" or "dry" or null, days?: array of "Monday", many?: 0 or 1 or 2' in hint
    assert "11 or 3 more" in hint
    assert '"' + "x" * 30 in hint
    assert "x" * 100 not in hint
    assert "self?: any, count?: integer or null" in hint


@pytest.mark.parametrize(
    ("arguments", "fit"),
    [
        ({"unit": "C"}, True),
        ({"unit": True, "kind": "now", "tone": None, "days": [], "count": 1}, True),
        ({"unit": None, "tone": "dry", "count": 2.0, "share": 1, "sure": False, "lost": []}, True),
        ({"unit": 1, "share": 0.5, "count": None, "self": 1}, True),
        ({}, False),
        ({"unit": "K"}, False),
        ({"unit": 1.5}, False),
        ({"unit": "C", "kind": "then"}, False),
        ({"unit": "C", "tone": "loud"}, False),
        ({"unit": "C", "days": "Monday"}, False),
        ({"unit": "C", "count": 2.5}, False),
        ({"unit": "C", "count": True}, False),
        ({"unit": "C", "share": "half"}, False),
        ({"unit": "C", "sure": 1}, False),
        ({"unit": "C", "unti": "C"}, False),
    ],
)
def test_tool_that_fails_for_its_own_reasons_has_no_advice_on_arguments(
    arguments: dict[str, object], fit: bool
) -> None:
    """A user whose arguments are right must not be sent to look for a fault in them."""
    result = {"content": [{"type": "text", "text": "no such city"}], "isError": True}
    tools = {"tools": [{"name": "t", "inputSchema": SCHEMA}]}
    server = scripted(answers={"tools/call": result, "tools/list": tools})
    done = sansmcp("call", "t", json.dumps(arguments), "--", *server)

    assert (done.returncode, done.stdout) == (1, "no such city\n")
    assert ("hint: the tool t takes: " in done.stderr) is not fit


def test_error_of_the_server_has_advice_on_arguments_where_they_may_be_the_reason() -> None:
    """Advice must come with -32602, or if the arguments contradict the tool's schema."""
    schema = {**SCHEMA, "additionalProperties": True}
    tools = {"tools": [{"name": "t", "inputSchema": schema}]}
    for code, arguments, has_hint in (
        (-32603, '{"unit": "C", "more": 1}', False),
        (-32603, "{}", True),
        (-32602, '{"unit": "C"}', True),
    ):
        error = {"error": {"code": code, "message": "no"}}
        server = scripted(answers={"tools/call": error, "tools/list": tools})
        done = sansmcp("call", "t", arguments, "--", *server)
        assert ("takes: unit" in done.stderr) is has_hint, done.stderr


def test_advice_is_left_out_where_the_server_gives_none() -> None:
    """If the listing for the advice fails as well, the first error must still be shown."""
    error = {"error": {"code": -32602, "message": "no\x1b", "data": ["d\u202e"]}}
    listings: list[object] = [
        {"tools": []},
        {"tools": 7},
        {"error": {"code": 1, "message": ""}},
    ]
    for listing in listings:
        server = scripted(answers={"tools/call": error, "tools/list": listing})
        text = failed(call(*server), "peer-error")

        assert r"with an error: no\x1b (-32602)" in text
        assert r'data: ["d\u202e"]' in text
        assert "lists no tool" not in text


def test_resource_and_prompt_that_the_server_does_not_have() -> None:
    """The error must be as for tools, with the data of the error."""
    done = sansmcp("read", "test://notes/frist", "--json", "--", *MCP)
    text = failed(done, "peer-error")
    assert "Resource not found (-32602)" in text
    assert 'data: {"uri": "test://notes/frist"}' in text
    assert "did you mean test://notes/first" in text
    assert document(done)["error"]["data"] == {"uri": "test://notes/frist"}

    text = failed(sansmcp("prompt", "great", "--json", "--", *MCP), "peer-error")
    assert "did you mean greet?" in text
    assert "takes: name" in failed(sansmcp("prompt", "greet", "--json", "--", *MCP), "peer-error")


@pytest.mark.parametrize("result", [{}, {"content": "text"}])
def test_answer_that_is_not_valid(result: dict[str, object]) -> None:
    """An invalid result must be an error that shows how to look at it, and not a crash."""
    server = scripted(answers={"tools/call": result})
    text = failed(call(*server), "invalid-answer")

    assert "content" in text
    assert "hint: sansmcp request tools/call shows answers as they come" in text


def proposed(text: str) -> list[str]:
    """The value that the hint on the limit proposes."""
    (found,) = re.findall(r"hint: .*: pass --max-message-bytes (\d+)$", text, re.M)
    return [found]


def test_answer_that_is_too_long_can_be_read_with_an_option() -> None:
    """The limit is the client's own, so the hint must say how to raise it."""
    text = "x" * 5_000
    line = ["call", "echo", json.dumps({"text": text}), "--timeout=15", "--max-message-bytes"]
    said = sansmcp(*line, "4000", "--json", "--", *DEMO)
    assert document(said)["error"]["rule"] == "OWN-001"
    done = sansmcp(*line, *proposed(failed(said, "invalid-answer")), "--", *DEMO)

    assert "shows answers as they come" not in said.stderr  # `request` has the same limit
    assert (done.returncode, done.stdout) == (0, f"{text}\n")


def test_listing_that_is_too_long_can_be_read_with_an_option() -> None:
    """The other listings must be shown, and the hint must say how to raise the limit."""
    tool = {"name": "x" * 3_000, "inputSchema": {"type": "object"}}
    server = scripted(answers={"tools/list": {"tools": [tool]}})
    line = ["inspect", "--timeout=10", "--max-message-bytes"]
    said = sansmcp(*line, "2000", "--", *server)
    assert said.returncode == 3
    assert "revision:" in said.stdout
    assert sansmcp(*line, *proposed(said.stderr), "--", *server).returncode == 0

    error = document(sansmcp(*line, "2000", "--json", "--", *server))["errors"]["tools/list"]
    assert (error["kind"], error["rule"]) == ("invalid-answer", "OWN-001")


def test_answer_whose_length_is_not_known_has_a_guess() -> None:
    """The response is not read to its end, so the proposed limit may not suffice, and the hint
    says so."""
    code = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    id = json.loads(line).get('id')\n"
        "    if 'initialize\"' in line:\n"
        "        result = json.loads(sys.argv[1])\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'id': id, 'result': result}))\n"
        "    elif 'tools/call' in line:\n"
        '        print(\'{"jsonrpc": "2.0", "id": %d, "result": "\' % id, end=\'x\' * 4_500)\n'
        "    sys.stdout.flush()\n"
    )
    agreed: dict[str, object] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
    agreed["serverInfo"] = {"name": "s", "version": "1"}
    line = [*CALL, "--json", "--revision=2025-11-25", "--timeout=15", "--max-message-bytes=4000"]
    done = sansmcp(*line, "--", sys.executable, "-c", code, json.dumps(agreed))
    text = failed(done, "invalid-answer")

    assert re.search(r"hint: .* more than 4000 bytes, and was not read: try --max-message-", text)
    assert document(done)["error"]["rule"] == "OWN-001"


def test_hint_on_the_length_takes_no_other_hint_away() -> None:
    """The long message may be another one than the missing response."""
    long = {"method": "notifications/message", "params": {"level": "info", "data": "x" * 5_000}}
    server = scripted(silent=["tools/call"], before={"initialize": [long]})
    done = call(*server, timeout="2", limit="4000")
    text = failed(done, "timeout")
    assert "pass --max-message-bytes 5" in text
    assert "hint: --timeout 4 gives it twice the time" in text
    assert "warning: a message has more than 4000 bytes" in text
    assert "no message" not in text
    assert document(done)["error"]["rule"] == "OWN-001"

    error = {"error": {"code": -32602, "message": "no"}}
    tools: dict[str, object] = {"tools": [{"name": "tt", "inputSchema": {"type": "object"}}]}
    server = scripted(
        answers={"tools/call": error, "tools/list": tools}, before={"tools/call": [long]}
    )
    done = call(*server, limit="4000")
    text = failed(done, "peer-error")
    assert "pass --max-message-bytes 5" in text
    assert "did you mean tt?" in text
    assert document(done)["error"]["rule"] is None


def test_error_of_a_plain_request_names_method_and_code() -> None:
    """Without advice, the error must still have its method and code."""
    text = failed(sansmcp("request", "x/y", "--json", "--", *scripted()), "peer-error")

    assert "answered x/y with an error: no method x/y (-32601)" in text
    assert "hint: sansmcp inspect shows what the server offers" in text
