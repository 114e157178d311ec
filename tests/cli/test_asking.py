"""`sansmcp call`, `read`, `prompt`, `request`: one request to a server, and its response."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sansmcp import ALL_REVISIONS
from tests.support.command_line import (
    BIN,
    DEMO,
    MCP,
    SECONDS,
    document,
    modern,
    sansmcp,
    scripted,
)

PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress"}


def text_result(*texts: str, **more: object) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text} for text in texts], **more}


def calling(result: object, **script: Any) -> list[str]:
    """A server whose tools all return this result."""
    return scripted(**script, answers={"tools/call": result, **script.get("answers", {})})


# -------------------------------------------------------------------------------- the answers


def test_text_of_a_tool_is_all_that_standard_output_gets() -> None:
    """Scripts use the text of a tool as it is."""
    done = sansmcp("call", "echo", '{"text": "one\\ntwo"}', "--", *MCP)

    assert (done.returncode, done.stdout, done.stderr) == (0, "one\ntwo\n", "")


def test_json_is_the_result_as_it_came() -> None:
    """Programs need members that the text form does not show."""
    result = text_result("hi\u202e", _meta={"a/b": 1}, isError=False)
    done = sansmcp("call", "t", "--json", "--", *calling(result))

    assert done.returncode == 0
    assert document(done) == result
    assert done.stdout.isascii()


def test_tool_that_failed_has_an_exit_status_of_its_own() -> None:
    """A script must tell a failed tool from a server that did not answer."""
    done = sansmcp("call", "progress", '{"steps": "many"}', "--", *DEMO)

    assert done.returncode == 1
    assert "many" in done.stdout
    assert "error: the tool progress says that it has failed (isError)" in done.stderr
    assert "hint: the tool progress takes: steps?: integer" in done.stderr

    done = sansmcp("call", "progress", '{"steps": "many"}', "--json", "--", *DEMO)
    assert done.returncode == 1
    assert document(done)["isError"] is True


def test_content_that_is_no_text_is_named() -> None:
    """A terminal shows no images, so the output must say that there is one."""
    data = base64.b64encode(b"12345").decode()
    result = {
        "content": [
            {"type": "image", "mimeType": "image/png", "data": data},
            {"type": "audio", "mimeType": "audio/wav", "data": "?"},
            {"type": "resource_link", "uri": "a:b", "name": "link"},
            {"type": "resource", "resource": {"uri": "a:c", "text": "embedded"}},
            {"type": "resource", "resource": {"uri": "a:d", "blob": data}},
            {"type": "new kind", "value": 1},
            {"type": "text", "text": 3},
            "no object",
        ]
    }
    done = sansmcp("call", "t", "--", *calling(result))

    assert done.stdout.splitlines() == [
        "[image, image/png, 5 bytes; --json has it]",
        "[audio, audio/wav, not valid base64; --json has it]",
        "[link to a:b, link]",
        "[resource a:c]",
        "embedded",
        "[resource a:d]",
        "[binary, of no stated type, 5 bytes; --json has it]",
        '{"type": "new kind", "value": 1}',
        "3",
        "no object",
    ]


def test_structured_content_is_shown_unless_the_text_says_it() -> None:
    """Servers repeat structured content as text for older clients; it must be shown once."""
    value = {"a": [1]}
    said = text_result('{"a":[1]}', structuredContent=value)
    other = text_result("{", "one", structuredContent=value)

    assert sansmcp("call", "t", "--", *calling(said)).stdout == '{"a":[1]}\n'
    shown = sansmcp("call", "t", "--", *calling(other)).stdout
    assert shown.startswith("{\none\n\nstructured content\n{")
    assert json.loads(shown.partition("structured content")[2]) == value


def test_resource_is_read() -> None:
    """Text must be shown as it is, and binary content by its size."""
    done = sansmcp("read", "test://notes/first", "--", *MCP)
    assert (done.returncode, done.stdout) == (0, "first note\n")

    contents = [{"uri": "a:1", "text": "one"}, {"uri": "a:2", "blob": "AAAA", "mimeType": "x/y"}]
    server = scripted(
        initialize={"capabilities": {"resources": {}}},
        answers={"resources/read": {"contents": [*contents, {"uri": "a:3"}]}},
    )
    assert sansmcp("read", "a:1", "--", *server).stdout == (
        'a:1\none\n\na:2\n[binary, x/y, 3 bytes; --json has it]\n\na:3\n{"uri": "a:3"}\n'
    )


def test_prompt_is_shown_message_by_message() -> None:
    """Each message of a prompt must be shown with its role."""
    done = sansmcp("prompt", "greet", '{"name": "Ada"}', "--", *MCP)
    assert (done.returncode, done.stdout) == (0, "user\nPlease greet Ada.\n")

    messages = [{"role": "assistant", "content": {"type": "text", "text": "Hi"}}]
    server = scripted(
        initialize={"capabilities": {"prompts": {}}},
        answers={"prompts/get": {"description": "a test", "messages": messages}},
    )
    done = sansmcp("prompt", "p", "--", *server)
    assert done.stdout == "description:  a test\n\nassistant\nHi\n"


def test_any_request_can_be_sent_and_its_result_is_shown_as_it_came() -> None:
    """Users need it to look at one page, an extension, or an invalid result."""
    server = scripted(answers={"tools/list": {"tools": 7, "é": "\x1b"}, "x/y": {"ok": True}})

    done = sansmcp("request", "tools/list", "--", *server)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"tools": 7, "é": "\x1b"}
    assert "é" in done.stdout
    assert document(sansmcp("request", "x/y", "{}", "--json", "--", *server)) == {"ok": True}


def test_params_of_a_request_are_sent_as_they_are() -> None:
    """Invalid params must be sent, so that the server's error can be seen."""
    done = sansmcp("request", "tools/call", '{"nam": "echo"}', "--json", "--", *MCP)

    assert done.returncode == 3
    assert document(done)["error"]["code"] == -32602


def test_text_keeps_its_lines_and_no_other_control() -> None:
    """Control characters, and characters that cannot be seen, must not reach a terminal."""
    every = "".join(
        chr(code)
        for code in (*range(0x20), *range(0x7F, 0xA0), *range(0x200B, 0x2070), 0xFEFF, 0xE0041)
    )
    server = calling(text_result(f"{every}end\r\n\tcafé 日本 👍🏽"))
    shown = sansmcp("call", "t", "--", *server).stdout

    assert [c for c in shown if not c.isprintable() and c not in "\n\t"] == []
    assert shown.endswith("\\U000e0041end\n\tcafé 日本 👍🏽\n")
    for escape in (r"\x00", r"\x1b", r"\r", r"\x7f", r"\x9b", r"\u202e", r"\u2066", r"\ufeff"):
        assert escape in shown


def test_text_without_form_in_the_encoding_of_the_terminal_is_escaped() -> None:
    """An old terminal or a Windows console must not make the command crash."""
    server = calling(text_result("日本 \ud800"))
    done = sansmcp("call", "t", "--", *server, PYTHONIOENCODING="ascii", PYTHONUTF8="0")

    assert (done.returncode, done.stdout) == (0, "\\u65e5\\u672c \\ud800\n")


# ------------------------------------------------------------------------------- the question


@pytest.mark.parametrize("way", ["argument", "file", "standard input"])
def test_json_comes_from_the_argument_a_file_or_standard_input(way: str, tmp_path: Path) -> None:
    """Large or secret arguments do not belong on a command line."""
    text = '{"text": "é"}'
    path = tmp_path / "arguments.json"
    path.write_text(f"\ufeff{text}\n", "utf-8")
    given = {"argument": text, "file": f"@{path}", "standard input": "-"}[way]
    done = sansmcp("call", "echo", given, "--", *DEMO, stdin=text)

    assert (done.returncode, done.stdout) == (0, "é\n")


def test_options_may_stand_anywhere_before_the_server() -> None:
    """Users add options at the end of the previous command line."""
    line = ["call", "--quiet", "echo", "--timeout", "20", '{"text": "hi"}', "--no-progress"]

    assert sansmcp(*line, "--", *DEMO).stdout == "hi\n"


def test_second_separator_belongs_to_the_server() -> None:
    """A server's command may have a `--` of its own."""
    program = "import os, sys; os.execv(sys.argv[1], sys.argv[sys.argv.index('--') + 1:])"
    wrapped = [sys.executable, "-c", program, sys.executable, "--", *DEMO]

    assert sansmcp("call", "echo", '{"text": "hi"}', "--", *wrapped).stdout == "hi\n"


def test_variables_reach_the_server() -> None:
    """Most servers are configured by variables, given with a value or by name alone."""
    done = sansmcp(
        *("request", "x/env", "--json", "--env", "A=1=2", "--env", "B=", "--env", "SECRET", "--"),
        *scripted(),
        SECRET="s3",
    )

    env = document(done)["env"]
    assert (env["A"], env["B"], env["SECRET"]) == ("1=2", "", "s3")
    assert "PATH" in env


def test_variables_do_not_reach_the_server_by_themselves() -> None:
    """A server is a foreign program, and must not get tokens from the shell."""
    done = sansmcp("request", "x/env", "--json", "--", *scripted(), MY_TOKEN="s3")

    assert "MY_TOKEN" not in document(done)["env"]


# ----------------------------------------------------------------------------- on the way there


def test_standard_error_of_the_server_is_passed_on_and_can_be_silenced() -> None:
    """Servers explain failures on standard error, which a script may want to hide."""
    server = calling(text_result("ok"), stderr=["starting", "ready"])

    done = sansmcp("call", "t", "--", *server)
    assert (done.stdout, done.stderr) == ("ok\n", "server| starting\nserver| ready\n")
    assert sansmcp("call", "t", "--quiet", "--", *server).stderr == ""


def test_logs_and_notifications_are_shown_beside_the_result() -> None:
    """Log messages and notifications during a call must be shown on standard error."""
    log = {"level": "info", "logger": "l\x1b", "data": {"a": 1}}
    message = {"jsonrpc": "2.0", "method": "notifications/message", "params": log}
    plain_message = {**message, "params": {"level": "error", "data": "bad"}}
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    server = calling(
        text_result("ok"),
        initialize={"capabilities": {"tools": {"listChanged": True}, "logging": {}}},
        before={"tools/call": [message, plain_message, changed]},
    )

    done = sansmcp("call", "t", "--", *server)
    assert done.stdout == "ok\n"
    assert done.stderr.splitlines() == [
        'log: info l\\x1b: {"a": 1}',
        "log: error: bad",
        "notification: notifications/tools/list_changed",
    ]
    assert sansmcp("call", "t", "--quiet", "--", *server).stderr == ""


@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_level_of_log_messages_can_be_chosen(revision: str) -> None:
    """One option must set the level in each revision, by a request or by a member of `_meta`."""
    line = ["call", "log", "--revision", revision, "--log-level", "critical"]
    done = sansmcp(*line, "--", *DEMO)

    assert done.stdout == "told: critical, alert, emergency\n"
    assert done.stderr.splitlines() == [
        "log: critical demo: this is critical",
        "log: alert demo: this is alert",
        "log: emergency demo: this is emergency",
    ]


def test_log_messages_are_asked_for_unless_nobody_sees_them() -> None:
    """A server of 2026-07-28 sends logs only if a level is given, which users should not have to
    know."""
    assert sansmcp("call", "log", "--", *DEMO).stdout.startswith("told: info, notice")
    assert sansmcp("call", "log", "--quiet", "--", *DEMO).stdout == "told: nothing\n"
    quiet = ["call", "log", "--quiet", "--log-level", "alert"]
    assert sansmcp(*quiet, "--", *DEMO).stdout == "told: nothing\n"


def test_level_that_stands_in_params_is_left_as_it_is() -> None:
    """`request` must send its params unchanged."""
    params = {"name": "log", "_meta": {"io.modelcontextprotocol/logLevel": "emergency"}}
    done = sansmcp("request", "tools/call", json.dumps(params), "--json", "--", *DEMO)

    assert document(done)["content"][0]["text"] == "told: emergency"


@pytest.mark.parametrize("answers", [{}, modern({"tools": {}})], ids=["legacy", "modern"])
def test_server_without_logs_is_not_asked_for_any(answers: dict[str, object]) -> None:
    """Setting a level would break a rule in one era, and mean nothing in the other."""
    server = scripted(log=True, answers={**answers, "tools/call": text_result("ok")})
    done = sansmcp("call", "t", "--log-level", "debug", "--", *server)

    assert (done.returncode, done.stdout) == (0, "ok\n")
    assert "received tools/call" in done.stderr
    assert "received logging/setLevel" not in done.stderr


def test_progress_is_shown_if_asked_for() -> None:
    """A script's log must show progress with the option, although there is no terminal."""
    reports = [
        {"progress": 1, "total": 3, "message": "first\nstep"},
        {"progress": 2.5},
        {"progress": 3, "total": 3, "message": "last"},
    ]
    server = calling(
        text_result("ok"), before={"tools/call": [{**PROGRESS, "params": r} for r in reports]}
    )

    done = sansmcp("call", "t", "--progress", "--", *server)
    lines = done.stderr.splitlines()
    assert lines[0] == "progress: 1 of 3, first\\nstep"
    assert lines[-1] == "progress: 3 of 3, last"
    assert done.stdout == "ok\n"
    assert sansmcp("call", "t", "--", *server).stderr == ""


def test_progress_of_any_size_can_be_shown() -> None:
    """The peer may send numbers that no float holds, or with more digits than Python prints."""
    huge = "9" * 4000
    line = (
        '{"jsonrpc": "2.0", "method": "notifications/progress", "params": '
        '{"progressToken": 2, "progress": ' + huge + ', "total": 0}}'
    )
    done = sansmcp(
        *("call", "t", "--progress", "--revision", "2025-11-25", "--"),  # so the token is 2
        *calling(text_result("ok"), before={"tools/call": [line]}),
    )

    assert done.returncode == 0
    assert done.stderr.startswith("progress: 9999")
    assert len(done.stderr) < 200


def test_breaches_by_the_server_are_shown_with_their_rule() -> None:
    """A breach by the server must be shown even if the result is right."""
    server = calling(text_result("ok"), stdout=["I am \x1b[1mready", '{"jsonrpc": "2.0"}'])
    done = sansmcp("call", "t", "--", *server)

    assert (done.returncode, done.stdout) == (0, "ok\n")
    warnings = done.stderr.splitlines()
    assert len(warnings) == 2
    assert all(line.startswith("warning: a line of its standard output is no") for line in warnings)
    assert warnings[0].endswith(r": I am \x1b[1mready [ERR-001]")


def test_noise_without_end_is_not_shown_without_end() -> None:
    """Endless noise of a server must not hide the result."""
    server = calling(text_result("ok"), stdout=["noise"] * 500)
    done = sansmcp("call", "t", "--", *server)

    assert done.stdout == "ok\n"
    warnings = done.stderr.splitlines()
    assert len(warnings) == 21
    assert warnings[-1] == "warning: there is more, which is not shown"


# -------------------------------------------------------------------------- where it is written


def test_reader_that_has_read_enough_ends_the_command_quietly(tmp_path: Path) -> None:
    """`| head` is no error, and the server must still be ended."""
    path = tmp_path / "arguments.json"
    path.write_text(json.dumps({"text": "line\n" * 100_000}))
    process = subprocess.Popen(
        [BIN, "call", "echo", f"@{path}", "--", *DEMO],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()

    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(SECONDS) == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which Linux has")
@pytest.mark.parametrize(
    "command", [["call", "t", "--", *calling(text_result("ok"))], ["explain", "CANC-004"]]
)
def test_result_that_cannot_be_written_is_an_error(command: list[str]) -> None:
    """A full disk must not look like success."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [BIN, *command],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
        )

    assert done.returncode == 3
    assert done.stderr == "error: the result cannot be written: No space left on device\n"
