"""`sansmcp inspect`, `call` and other commands with `--url`: a server over HTTP."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import BIN, DEMO, SECONDS, Done, hear_signals, sansmcp
from tests.support.http.proxy import proxying
from tests.support.http.sockets import Lines, answering

UNAUTHORIZED = (
    b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n"
    b'WWW-Authenticate: Bearer resource_metadata="https://x/y", scope="files"\r\n\r\n'
)
TEAPOT = b"HTTP/1.1 418 I'm a teapot\r\nContent-Length: 0\r\n\r\n"
BUSY = b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"
DISCOVERED: Any = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}},
}


def ok(result: Any, id: int = 1) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


@pytest.fixture(scope="module")
def demo() -> Generator[str]:
    """The URL of the demo server."""
    command = [*DEMO, "--http", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stderr is not None
        found = re.search(r"http://\S+", process.stderr.readline())
        assert found is not None
        yield found[0]
        process.terminate()


def failure(done: Done) -> Any:
    return json.loads(done.stdout)["error"]


# ----------------------------------------------------------------------------------- it works


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_server_looks_the_same_on_either_transport(demo: str, revision: str) -> None:
    """The output must not depend on the transport."""
    over_http = sansmcp("inspect", "--json", "--revision", revision, "--url", demo)
    over_stdio = sansmcp("inspect", "--json", "--revision", revision, "--", *DEMO)

    assert over_http.returncode == 0
    instructions = {"instructions": None}  # only the one on stdio has any
    assert json.loads(over_http.stdout) == {**json.loads(over_stdio.stdout), **instructions}


@pytest.mark.parametrize(
    ("arguments", "out"),
    [
        (["call", "echo", '{"text": "héllo"}'], "héllo\n"),
        (["request", "ping", "--json", "--revision", "2025-06-18"], "{}\n"),
        (["call", "progress", '{"steps": 2}', "--progress"], "2 steps\n"),
    ],
)
def test_commands_take_a_url_for_a_command(demo: str, arguments: list[str], out: str) -> None:
    """`--url` may stand anywhere among the options."""
    done = sansmcp(arguments[0], "--url", demo, *arguments[1:])

    assert done.stdout == out
    assert done.returncode == 0
    assert ("progress: 2 of 2" in done.stderr) == ("--progress" in arguments)


def test_errors_of_the_server_come_with_advice(demo: str) -> None:
    """Errors over HTTP must have the same advice as on stdio."""
    done = sansmcp("call", "ehco", "--url", demo)

    assert done.returncode == 3
    assert f"the server at {demo} answered tools/call with an error: unknown tool" in done.stderr
    assert "did you mean echo?" in done.stderr


def test_ctrl_c_ends_the_request() -> None:
    """The server must not work on for a user who has left."""
    lines = Lines()
    with answering([ok(DISCOVERED), b""], lines) as port:
        process: subprocess.Popen[str] = subprocess.Popen(
            [BIN, "call", "slow", "--json", "--url", f"http://127.0.0.1:{port}/mcp"],
            stdout=subprocess.PIPE,
            encoding="utf-8",
            preexec_fn=hear_signals,
        )
        with process:
            lines.wait()
            lines.wait()
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert json.loads(out)["error"]["text"] == "interrupted by SIGINT: tools/call was given up"


# ---------------------------------------------------------------------------------- its fields


def test_fields_are_sent_with_every_request(tmp_path: Path) -> None:
    """Headers from a file must be sent too, since `ps` shows the command line to all users."""
    secrets = tmp_path / "secrets"
    secrets.write_text("Authorization: Bearer SECRET\n\nX-Two:2\n")
    lines = Lines()
    answers = [ok(DISCOVERED, 1), ok({"resultType": "complete", "content": []}, 2)]
    with answering(answers, lines) as port:
        done = sansmcp(
            *("call", "x", "--url", f"http://127.0.0.1:{port}/mcp"),
            *("--header", f"@{secrets}", "--header", "X-One:  1 "),
        )
    assert done.returncode == 0, done.stderr
    for head in lines.heads:
        assert "\r\nauthorization: bearer secret\r\n" in head.lower()
        assert "\r\nx-one: 1\r\n" in head.lower()
        assert "\r\nx-two: 2\r\n" in head.lower()
    assert len(lines.heads) == 2
    assert "SECRET" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--header", "SECRET"], "--header takes 'NAME: VALUE'"),
        (["--header", "A b: SECRET"], "--header takes 'NAME: VALUE'"),
        (["--header", "A: SECRET\xe9"], "--header A: the value is not of visible ASCII"),
        (["--header", "A: SECRET\nB: x"], "--header A: the value is not of visible ASCII"),
        (["--header", "Host: SECRET"], "the header Host is written by the library"),
        (["--header", "@/nonexistent/file"], "/nonexistent/file"),
        (["--env", "A=SECRET"], "--env is for a server with a command"),
    ],
)
def test_field_that_cannot_be_sent_is_refused(options: list[str], complaint: str) -> None:
    """An invalid header must be refused before anything is sent, without showing its value."""
    done = sansmcp("inspect", "--url", "http://127.0.0.1:1/mcp", *options)

    assert done.returncode == 2
    assert complaint in done.stderr
    assert "SECRET" not in done.stdout + done.stderr


def test_fields_of_a_process_are_refused() -> None:
    """A process has no headers, which would be ignored without notice."""
    done = sansmcp("inspect", "--header", "A: b", "--", *DEMO)

    assert done.returncode == 2
    assert "--header is for a server with a URL" in done.stderr


@pytest.mark.parametrize("url", ["ftp://x/", "x", "http://user:SECRET@x/", "http://x:y/", "http:"])
def test_url_that_is_none_is_refused(url: str) -> None:
    """A mistake in the command line must not look like a failure of the server."""
    done = sansmcp("inspect", "--url", url)

    assert done.returncode == 2
    assert "SECRET" not in done.stdout + done.stderr.replace(url, "")


def test_proxy_of_the_environment_is_not_gone_around() -> None:
    """A proxy that is set must be used, and the error must say that it was the proxy that
    refused."""
    env = {name: "" for name in os.environ if name.lower().endswith("_proxy")}
    with proxying(status=403) as proxy:
        env["HTTPS_PROXY"] = proxy.url
        done = sansmcp("inspect", "--url", "https://host.invalid/", **env)

    assert done.returncode == 3
    assert "the proxy has refused the connection with status 403" in done.stderr
    assert proxy.asked[0] == "CONNECT host.invalid:443"


# ----------------------------------------------------------------------------------- it fails


def test_server_that_wants_to_know_who_asks_is_told_of() -> None:
    """A 401 must show the challenge, and the hint must say what to do."""
    with answering([UNAUTHORIZED] * 9) as port:
        done = sansmcp("inspect", "--json", "--url", f"http://127.0.0.1:{port}/mcp?key=SECRET")
    error = failure(done)

    assert done.returncode == 3
    assert error["kind"] == "unauthorized"
    assert 'bearer resource_metadata="https://x/y" scope="files"' in error["details"][1]
    assert error["text"].startswith(f"the server at http://127.0.0.1:{port}/mcp?... does not let")
    assert "sansmcp auth login http" in error["hints"][0]
    assert "--header @FILE" in error["hints"][-1]
    assert "SECRET" not in done.stdout + done.stderr


def test_status_of_a_request_is_told() -> None:
    """A server that answers with an HTML page is often a wrong server."""
    with answering([ok(DISCOVERED), BUSY] + [BUSY] * 9) as port:
        done = sansmcp("call", "x", "--json", "--url", f"http://127.0.0.1:{port}/mcp")
    error = failure(done)

    assert error["kind"] == "http-status"
    assert "503" in error["details"][0]
    assert (error["status"], error["retry_after"]) == (503, 7)
    assert done.stderr.count("7 s") == 1


def refused(status: int, *, says: bool, waits: bool) -> bytes:
    """A response of this status with a JSON-RPC error in it, and with Retry-After."""
    error: Any = {"code": -32000, "message": "slow down"}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode() if says else b""
    wait = "Retry-After: 7\r\n" if waits else ""
    head = f"HTTP/1.1 {status} No\r\n{wait}Content-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize("revision", ["", "2026-07-28", "2025-11-25"])
@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize(
    ("status", "says"), [(429, True), (429, False), (503, True), (503, False), (500, True)]
)
def test_server_that_is_busy_at_the_start(
    status: int, says: bool, waits: bool, revision: str
) -> None:
    """The error must show the status and the time of Retry-After, and blame neither revision nor
    path."""
    options = ["--revision", revision] if revision else []
    with answering([refused(status, says=says, waits=waits)] * 9) as port:
        done = sansmcp("inspect", "--json", *options, "--url", f"http://127.0.0.1:{port}/mcp")
    error = failure(done)

    assert error["kind"] == ("refused" if says else "http-status")
    assert (error["status"], error["retry_after"]) == (status, 7 if waits else None)
    assert error["hints"] == []
    assert len(re.findall(rf"\b{status}\b", done.stderr)) == 1  # and not in the port
    assert done.stderr.count("again in 7 s") == waits


@pytest.mark.parametrize("says", [True, False])
@pytest.mark.parametrize(("status", "waits"), [(429, False), (503, False), (500, True)])
def test_busy_server_is_not_asked_for_advice(status: int, waits: bool, says: bool) -> None:
    """A server that refuses requests with 429 or 503 must not get another one."""
    lines = Lines()
    answers = [ok(DISCOVERED), refused(status, says=says, waits=waits), ok({"tools": []})]
    with answering(answers, lines) as port:
        done = sansmcp("call", "x", "--json", "--url", f"http://127.0.0.1:{port}/mcp")
    error = failure(done)

    assert len(lines.heads) == 2
    assert error["kind"] == ("peer-error" if says else "http-status")
    assert (error["status"], error["retry_after"]) == (status, 7 if waits else None)
    assert str(status) in done.stderr
    assert done.stderr.count("again in 7 s") == waits


def test_listing_that_is_refused_with_a_status_does_not_hide_the_rest() -> None:
    """A listing that is refused by a status must not hide the other listings."""
    busy = refused(503, says=False, waits=True)
    with answering([ok(DISCOVERED), busy]) as port:
        done = sansmcp("inspect", "--json", "--url", f"http://127.0.0.1:{port}/mcp")
    found = json.loads(done.stdout)

    assert done.returncode == 3
    assert found["server"]["name"] == "s"
    error = found["errors"]["tools/list"]
    assert (error["kind"], error["status"], error["retry_after"]) == ("http-status", 503, 7)


def test_listing_that_wants_a_credential_ends_the_command() -> None:
    """A 401 to a listing must end the command with the challenge of the server."""
    with answering([ok(DISCOVERED), *[UNAUTHORIZED] * 9]) as port:
        done = sansmcp("inspect", "--json", "--url", f"http://127.0.0.1:{port}/mcp")

    assert failure(done)["kind"] == "unauthorized"
    assert failure(done)["status"] == 401


def test_path_that_is_no_endpoint_is_told() -> None:
    """A wrong path is the commonest mistake in a URL."""
    with answering([TEAPOT] * 9) as port:
        done = sansmcp("inspect", "--json", "--url", f"http://127.0.0.1:{port}/")
    assert done.returncode == 3
    assert any("make sure that the path of the URL" in hint for hint in failure(done)["hints"])


def test_server_that_does_not_run_is_told() -> None:
    """A refused connection must be reported as a server that does not run."""
    with answering([]) as port:
        pass
    done = sansmcp("inspect", "--json", "--url", f"http://127.0.0.1:{port}/mcp")
    error = failure(done)

    assert error["kind"] == "lost"
    assert error["hints"] == ["make sure that it runs, and listens at this address"]
    assert "failed" in error["details"][0]


def test_server_that_says_nothing_is_given_up() -> None:
    """A server that accepts the connection and never responds must end in a timeout."""
    with answering([b""]) as port:
        done = sansmcp(
            *("inspect", "--json", "--url", f"http://127.0.0.1:{port}/mcp", "--timeout", "0.5")
        )
    assert failure(done)["kind"] == "timeout"
    assert not any("standard input" in hint for hint in failure(done)["hints"])


def test_answer_that_is_too_long_over_http(demo: str) -> None:
    """The same option must raise the limit as on stdio."""
    text = "x" * 5_000
    line = ["call", "echo", json.dumps({"text": text}), "--url", demo, "--max-message-bytes"]
    said = sansmcp(*line, "4000", "--json")
    assert said.returncode == 3
    assert failure(said)["rule"] == "OWN-001"
    (size,) = re.findall(r"hint: .*: pass --max-message-bytes (\d+)", said.stderr)
    done = sansmcp(*line, size)

    assert (done.returncode, done.stdout) == (0, f"{text}\n")
