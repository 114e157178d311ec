"""The invariants of the design, each by a test that would fail without it.

1, 2, 9, 10 and 11 are here, the others in `test_invariants_of_*.py`: input (3 and 6), growth (4),
bounds (5), verbs (7), requests (8). `test_stateful.py` and `test_explorer.py` check 5 to 10 after
every step of conversations that no one wrote by hand.
"""

import ast
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    ClientConnection,
    LocalProtocolError,
    ServerConnection,
    Side,
)
from sansmcp.testing import drain
from tests.support.judges.connection import judging
from tests.support.judges.schema import SENDERS, Transcript
from tests.support.machines.conversation import conversation
from tests.support.wire import asked, call, note, ready_server, receive, sent

ROOT = Path(__file__).parent.parent.parent
ECHO: dict[str, Any] = {"name": "echo"}


def run(code: str, **environment: str) -> str:
    """The output of a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    return done.stdout


# ------------------------------------------------------------------------------------- 1. pure

LOADED = """
import json, sys, attrs
before = set(sys.modules)
import sansmcp
print(json.dumps(sorted(set(sys.modules) - before)))
"""
# C code and its wrappers without a way to the outside.
HARMLESS = {"_bisect", "_heapq", "array", "binascii", "bisect", "heapq", "math"}

WATCHED = """
import sys
from tests.support.machines.conversation import converse
touched = []
sys.addaudithook(lambda name, _: touched.append(name))
lines = list(converse("2025-11-25"))
sys.stdout.write(repr((len(lines), touched)))
"""


def test_1_importing_it_loads_nothing_that_attrs_and_json_do_not() -> None:
    """`test_boundaries.py` names forbidden modules; this test names all that are allowed."""
    loaded: list[str] = json.loads(run(LOADED))

    assert {name for name in loaded if name.split(".")[0] != "sansmcp"} <= HARMLESS


def test_1_a_conversation_touches_nothing_outside() -> None:
    """No file, socket, process or import: Python reports each of them to an audit hook.

    A clock or a random number needs a module that the import contracts forbid.
    """
    said: int
    touched: list[str]
    said, touched = ast.literal_eval(run(WATCHED))

    assert said > 100
    assert set(touched) <= {"array.__new__"}


# ---------------------------------------------------------------------------- 2. deterministic

SPOKEN = """
from tests.support.machines.conversation import converse
for revision in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
    print(*converse(revision), sep="\\n")
"""


def test_2_the_same_inputs_give_the_same_events_and_bytes_whatever_the_hash_seed() -> None:
    """Iterating over a set would show as another order."""
    spoken = [run(SPOKEN, PYTHONHASHSEED=seed) for seed in ("0", "1", "2", "31337")]

    assert len(spoken[0].splitlines()) > 200
    assert len(set(spoken)) == 1


# --------------------------------------------------------------------- 9. emits only what is valid


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
def test_9_all_of_a_conversation_is_valid(revision: str) -> None:
    """The official schema is independent of the rules in this code.

    Every other test is held to the same: see `everything_sent_is_valid` in `conftest.py`.
    """
    transcript = Transcript(revision)
    for side, message in conversation(revision).transcript:
        transcript.record("client" if side is Side.CLIENT else "server", json.loads(message))

    assert len(transcript.messages) > 50
    for sender in SENDERS:  # what answers the noise in it answers no request of the transcript
        assert [text for text in transcript.problems(sender) if "id 'b1'" not in text] == []


@pytest.mark.unjudged("it is the judge that is tested")
def test_9_the_judge_of_all_tests_sees_what_is_not_valid() -> None:
    """A judge that accepts everything would prove nothing."""
    with judging():
        server = ready_server("2025-11-25")
        request = asked(server, call(1, "tools/call", ECHO))
        server.send_result(request, {"content": [5]})
        with pytest.raises(AssertionError, match="/result/content/0"):
            server.data_to_send()


# ----------------------------------------------------------------- 10. losing a race is no error


def raced() -> tuple[ServerConnection, Any]:
    """A request that its peer has just cancelled."""
    server = ready_server("2025-11-25")
    request = asked(server, call(1, "tools/call", {**ECHO, "_meta": {"progressToken": 1}}))
    receive(server, note("notifications/cancelled", {"requestId": 1}))
    return server, request


def test_10_whatever_comes_too_late_is_dropped_and_says_so() -> None:
    """A handler cannot know of the cancellation, so a late message must neither raise nor be
    sent."""
    server, request = raced()

    assert server.send_progress(request, 1) is False
    assert server.send_log("info", "text", request=request) is False
    assert server.send_result(request, {"content": []}) is False
    assert server.send_result(request, {"content": []}) is False
    assert server.send_error(request, -32603, "no") is False
    assert sent(server) == []
    assert drain(server) == []


# -------------------------------------------------------------- 11. handles, not ids, name requests


def test_11_a_handle_never_comes_to_mean_another_request() -> None:
    """After the peer reuses an id, a slow handler of the first request must not answer the
    second."""
    server, old = raced()
    receive(server, call(1, "tools/call", {**ECHO, "_meta": {"progressToken": 1}}))
    (new,) = server.open_requests
    assert new is not old
    assert (new.id, new.progress_token) == (old.id, old.progress_token)

    assert server.send_result(old, {"content": []}) is False
    assert server.send_progress(old, 5) is False
    assert new.open
    assert sent(server) == []
    assert server.send_progress(new, 1)
    assert server.send_result(new, {"content": []})
    with pytest.raises(LocalProtocolError):
        server.send_result(new, {"content": []})


@pytest.mark.parametrize("face", [ClientConnection, ServerConnection])
def test_11_no_verb_takes_the_id_of_a_request(face: type) -> None:
    """The only `id` argument chooses the id of a new request."""
    taken = [
        name
        for name, verb in inspect.getmembers(face, inspect.isfunction)
        if name[0] != "_" and {"id", "request_id"} & set(inspect.signature(verb).parameters)
    ]

    assert taken == ["send_request"]
