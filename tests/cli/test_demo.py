"""`sansmcp demo` fails unless everything that it reports has happened."""

import json
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from sansmcp import ALL_REVISIONS, LEGACY_REVISIONS, JSONObject
from sansmcp_io.trio import Call, PeerError, connect_stdio
from tests.support.adapters.on_trio import on_trio

BIN = Path(sys.executable).parent
MODULE = [sys.executable, "-m", "sansmcp_io"]
STEPS = [
    "opening",
    "paginated listing",
    "call with progress",
    "log messages",
    "questions answered",
    "subscription",
    "cancellation races with the answer",
    "late answer ignored",
    "malformed line survived",
    "clean shutdown",
]


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60
    )


@cache
def run_demo(revision: str) -> subprocess.CompletedProcess[str]:
    return run(BIN / "sansmcp", "demo", "--revision", revision)


def outcomes(output: str) -> dict[str, str]:
    """Step and outcome of each line of the summary."""
    return {step: outcome for outcome, step in re.findall(r"^(ok|FAILED) +([^:]+):", output, re.M)}


@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_every_step_happens_at_every_revision(revision: str) -> None:
    """The demo is the first thing that the README shows, so it must work on a real process."""
    done = run_demo(revision)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert outcomes(done.stdout) == dict.fromkeys(STEPS, "ok")
    assert f'rotocolVersion":"{revision}"' in done.stdout


def test_newest_revision_is_what_is_shown_first() -> None:
    """The newest revision is what a client and a server of this library speak by default."""
    done = run(*MODULE, "demo", "--server", "true")

    assert re.findall(r"summary of revision (\S+)", done.stdout) == [ALL_REVISIONS[-1]]


@pytest.mark.parametrize("revision", [LEGACY_REVISIONS[-1], ALL_REVISIONS[-1]])
def test_transcript_shows_lines_and_events_of_both_sides_in_order(revision: str) -> None:
    """A reader must be able to follow one request from one side to the other and back."""
    output = run_demo(revision).stdout
    trail = [
        'client >> {"jsonrpc":"2.0","id":5,"method":"tools/call"',
        '        server << {"jsonrpc":"2.0","id":5,"method":"tools/call"',
        "        server *  RequestReceived request=tools/call#5",
        '        server >> {"jsonrpc":"2.0","id":5,"result"',
        'client << {"jsonrpc":"2.0","id":5,"result"',
        "client *  ResponseReceived request=tools/call#5",
    ]

    places = [output.find(f"\n{line}") for line in trail]
    assert -1 not in places
    assert places == sorted(places)


def test_all_revisions_can_be_shown_in_one_go() -> None:
    """One command must show the differences between revisions, and fail if one of them fails."""
    done = run(*MODULE, "demo", "--revision", "all", "--server", "true")

    assert done.returncode == 1
    assert re.findall(r"summary of revision (\S+)", done.stdout) == list(ALL_REVISIONS)


def test_step_that_was_not_seen_on_both_sides_has_failed() -> None:
    """Without the server's own report a step is not proved."""
    silent = shlex.join([*MODULE, "serve-demo"])
    done = run(*MODULE, "demo", "--timeout", "3", "--server", silent)

    assert done.returncode == 1
    assert outcomes(done.stdout)["opening"] == "FAILED"
    assert outcomes(done.stdout)["malformed line survived"] == "FAILED"


def test_server_that_lacks_the_noise_fails_that_step_only() -> None:
    """One step that did not happen must not fail the others."""
    tidy = shlex.join([*MODULE, "serve-demo", "--trace"])
    done = run(*MODULE, "demo", "--server", tidy)

    assert done.returncode == 1
    failed = [step for step, outcome in outcomes(done.stdout).items() if outcome == "FAILED"]
    assert failed == ["malformed line survived"], done.stdout


def test_server_that_does_not_end_properly_fails_the_last_step() -> None:
    """An exit status that is not zero is no clean shutdown."""
    own = shlex.join([*MODULE, "serve-demo", "--trace", "--banner"])
    done = run(*MODULE, "demo", "--server", f"sh -c {shlex.quote(own + '; exit 3')}")

    assert done.returncode == 1
    failed = [step for step, outcome in outcomes(done.stdout).items() if outcome == "FAILED"]
    assert failed == ["clean shutdown"], done.stdout


@pytest.mark.parametrize("server", ["/does/not/exist", "sleep 60"])
def test_program_that_is_no_server_fails_the_demo_in_time(server: str) -> None:
    """The demo must neither hang nor report success."""
    done = run(*MODULE, "demo", "--timeout", "1", "--server", server)

    assert done.returncode == 1
    assert outcomes(done.stdout) == dict.fromkeys(STEPS, "FAILED")


@on_trio()
async def test_demo_server_answers_mistakes() -> None:
    """Users try their own clients against the demo server, with faults in them."""
    async with connect_stdio(
        [*MODULE, "serve-demo"], info={"name": "test", "version": "1.0"}
    ) as client:

        async def call_tool(name: str, **arguments: object) -> tuple[bool, str]:
            result = await client.request("tools/call", {"name": name, "arguments": arguments})
            [block] = result["content"]
            assert "isError" in result
            assert block["type"] == "text"
            return result["isError"], block["text"]

        for method, params in (
            ("tools/list", {"cursor": "none of its own"}),
            ("tools/call", {"name": "unknown"}),
            ("resources/read", {"uri": "demo:other"}),
        ):
            with pytest.raises(PeerError) as caught:
                await client.request(method, params)
            assert caught.value.code == -32602
        failed, text = await call_tool("progress", steps="many")
        assert failed
        assert "many" in text
        assert await call_tool("ask") == (False, "this client answers nothing")
        assert await call_tool("slow", seconds=0) == (False, "slept")
        assert await call_tool("filler_00") == (False, "a filler does nothing")
        read = await client.request("resources/read", {"uri": "demo:counter"})
        assert read["contents"][0].get("text") == "0"


def test_demo_server_survives_a_forged_state() -> None:
    """A forged request state must end its request alone."""
    meta: JSONObject = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
    }
    lie: JSONObject = {"requestState": "forged", "inputResponses": {"roots": {"roots": []}}}
    calls: list[JSONObject] = [{"name": "ask", **lie}, {"name": "echo"}]
    lines: list[JSONObject] = [
        {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {**params, "_meta": meta}}
        for id, params in enumerate(calls)
    ]
    done = subprocess.run(
        [*MODULE, "serve-demo"],
        input="".join(f"{json.dumps(line)}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=60,
    )

    # Handlers run side by side: which of them is first is not said.
    answers = sorted(map(json.loads, done.stdout.splitlines()), key=lambda answer: answer["id"])
    assert done.returncode == 0, done.stderr
    assert [answer["id"] for answer in answers] == [0, 1]
    assert answers[0]["error"]["code"] == -32602
    assert answers[1]["result"]["isError"] is False


def decline(call: Call) -> JSONObject:
    """A client that answers with as little as the protocol allows."""
    if call.method == "elicitation/create":
        return {"action": "decline"}
    assert call.method == "sampling/createMessage"
    image = {"type": "image", "data": "", "mimeType": "image/png"}
    content = [image] if str(call.revision) >= "2025-11-25" else image
    return {"role": "assistant", "content": content, "model": "none"}


@pytest.mark.parametrize("revision", ALL_REVISIONS)
@on_trio()
async def test_demo_server_takes_what_it_is_answered(revision: str) -> None:
    """Clients may decline, and do not all give the same answers."""
    cases: list[tuple[JSONObject, str]] = [
        ({"elicitation": {}}, "asked for elicitation: elicitation: decline"),
        ({"elicitation": {"url": {}}}, "this client answers nothing"),
        ({"sampling": {}}, "asked for sampling: sampling: not a text"),
    ]
    for capabilities, told in cases:
        if "elicitation" in capabilities and revision < "2025-11-25":
            continue  # the modes are of 2025-11-25
        async with connect_stdio(
            [*MODULE, "serve-demo"],
            info={"name": "test", "version": "1.0"},
            capabilities=capabilities,
            revisions=[revision],
            on_request=decline,
        ) as client:
            result = await client.request("tools/call", {"name": "ask"})

        [block] = result["content"]
        assert block["type"] == "text"
        assert block["text"] == told


def test_unknown_command_is_refused() -> None:
    """A mistyped command must show the usage."""
    done = run(*MODULE, "dmeo")

    assert done.returncode == 2
    assert "usage: sansmcp" in done.stderr


def test_command_without_trio_says_what_to_install() -> None:
    """A bare install has no trio; the command must explain that instead of failing."""
    code = (
        "import sys; sys.modules['trio'] = None; "
        "from sansmcp_io.cli import main; sys.exit(main(['demo']))"
    )
    done = run(sys.executable, "-c", code)

    assert done.returncode == 2
    assert "sansmcp[trio]" in done.stderr


HTTP_STEPS = [
    "discovery",
    "call with progress",
    "questions answered",
    "subscription",
    "cancelled by leaving",
    "session",
    "stream of a session",
    "broken stream taken up",
    "session deleted",
    "strangers refused",
    "clean shutdown",
]


def test_every_step_happens_over_http() -> None:
    """Both eras must work at one endpoint of a real process, on real sockets."""
    done = run(BIN / "sansmcp", "demo", "--http")

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert outcomes(done.stdout) == dict.fromkeys(HTTP_STEPS, "ok")


def test_a_step_over_http_that_did_not_happen_fails() -> None:
    """A demo without the expected traffic must not report success."""
    quiet = shlex.join([sys.executable, "-c", "import time; time.sleep(60)"])
    done = run(BIN / "sansmcp", "demo", "--http", "--timeout", "1", "--server", quiet)

    assert done.returncode == 1
    assert outcomes(done.stdout) == dict.fromkeys(HTTP_STEPS, "FAILED")
    assert "the time is over" in done.stdout
