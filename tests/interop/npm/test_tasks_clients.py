"""Clients on the TypeScript SDK that follow tasks of our server: version 1, and `ext-tasks`."""

import json
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS
from tests.interop.peers import ROOT, Peer, ext_tasks_client, sdk_tasks_client
from tests.interop.reviewed import assert_told


def seen_by(client: Peer, folder: Path, *arguments: str, accuses: Collection[str] = ()) -> Any:
    """What a client prints after it has used our server; asserts that it broke these rules only."""
    reports = folder / "reports"
    server = (sys.executable, "-m", "tests.interop.tasks_server", str(reports))
    done = subprocess.run(
        [*client.command, *arguments, *server],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert_told(client.name, reports, accuses=accuses)
    return json.loads(done.stdout)


def test_version_1_follows_tasks(tmp_path: Path) -> None:
    """Its polls, its answers to questions and its cancellation must meet with what it expects."""
    assert seen_by(sdk_tasks_client(), tmp_path, accuses={"TASK-026"}) == {
        "add": ["created", "completed", "3"],
        "plain": "no task",
        "ask": ["created", "completed", "['Ada', 'Alan']"],
        "cancelled": "cancelled",
        "wait": ["created", "cancelled", -32603],  # an error of its own
        "again": -32602,
        "unknown": -32602,
        "break": ["created", "failed", -32603],
        "fault": ["created", "failed", -32603],
        "listed": ["completed", "completed", "cancelled", "failed", "failed"],
        "failed": "at fault",
        "sample": "sampled with ttl 60000",
        "count": "1",
    }


def test_ext_tasks_follows_tasks_of_the_older_form(tmp_path: Path) -> None:
    """What it decides by the list of tools and by capabilities must fit what we declare."""
    accuses = {"TASK-016", "TASK-025", "TASK-026"}
    seen = seen_by(ext_tasks_client(), tmp_path, LEGACY_REVISIONS[-1], accuses=accuses)
    assert seen.pop("capabilities") == {
        "inventory": "server-list",
        "execution": True,
        "cancellation": True,
        "inputResponses": False,
        "requestedRetention": True,
    }
    assert seen == {
        "add": ["task", "completed", "3"],
        "ask": ["task", "completed", "['Ada', 'Alan']"],
        "delivery": "peer-request",
        "break": ["task", "failed", "it is broken"],
        "fault": ["task", "failed", "the tool has reported an error"],
        "plain": ["immediate", "completed", "0"],
        "resumed": True,
        "wait": ["task", "cancelled", ""],
        "over": "cancelled",
        "unknown": -32602,
        "listed": ["completed", "completed", "failed", "failed", "cancelled"],
        "sample": ["immediate", "completed", "sampled"],
        "count": "1",
    }


def test_ext_tasks_follows_tasks_of_the_extension(tmp_path: Path) -> None:
    """It checks each message against its schemas, and answers questions by `tasks/update`."""
    seen = seen_by(ext_tasks_client(), tmp_path, MODERN_REVISIONS[-1])
    assert seen.pop("capabilities") == {
        "inventory": "known-handles",
        "execution": True,
        "cancellation": True,
        "inputResponses": True,
        "requestedRetention": False,
    }
    assert seen == {
        "add": ["task", "completed", "3"],
        "ask": ["task", "completed", "['Ada', 'Alan']"],
        "delivery": "task-update",
        "first": ["task", "completed", "Ada"],
        "break": ["task", "failed", "it is broken"],
        "fault": ["task", "completed", "at fault"],
        "plain": ["immediate", "completed", "0"],
        "resumed": True,
        "wait": ["task", "cancelled", ""],
        "over": "cancelled",
        "unknown": -32602,
        "count": "1",
    }
