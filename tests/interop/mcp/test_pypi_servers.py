"""PyPI's mcp-server-git and mcp-server-time, on version 1 of the `mcp` package."""

import json
import subprocess
from functools import partial
from pathlib import Path

import trio

from sansmcp import LEGACY_REVISIONS
from tests.interop.peers import git, time
from tests.interop.talk import talking_to
from tests.support.adapters.on_trio import on_trio


def make_repository(path: Path) -> None:
    """A repository that ignores the git settings of the user who runs the tests."""
    for arguments in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "Test"],
        ["config", "user.email", "test@example.com"],
        ["config", "commit.gpgsign", "false"],
    ):
        subprocess.run(["git", "-C", path, *arguments], check=True)


@on_trio()
async def test_a_file_is_committed(tmp_path: Path) -> None:
    """Most servers are still built on the older version of the package."""
    here = str(tmp_path.resolve())
    make_repository(tmp_path)
    (tmp_path / "new.txt").write_text("new\n", encoding="utf-8")

    async with talking_to(git().with_arguments("--repository", here)) as talk:
        assert "git_commit" in await talk.names("tools/list")
        assert "new.txt" in await talk.text("git_status", repo_path=here)
        await talk.text("git_add", repo_path=here, files=["new.txt"])
        await talk.text("git_commit", repo_path=here, message="Add a file")
        assert "Add a file" in await talk.text("git_log", repo_path=here, max_count=1)

        outside = await talk.call("git_status", repo_path="/")
        assert outside["isError"] is True


@on_trio()
async def test_many_calls_are_under_way_at_once() -> None:
    """Each call must end with its own response, in whatever order they come."""
    converted: dict[int, str] = {}

    async def convert(hour: int) -> None:
        text = await talk.text(
            "convert_time",
            source_timezone="Asia/Tokyo",
            time=f"{hour:02}:00",
            target_timezone="Asia/Kolkata",
        )
        converted[hour] = json.loads(text)["target"]["datetime"][11:16]

    async with talking_to(
        time().with_arguments("--local-timezone", "Etc/UTC"), revisions=LEGACY_REVISIONS[:1]
    ) as talk:
        async with trio.open_nursery() as nursery:
            for hour in range(4, 24):
                nursery.start_soon(partial(convert, hour))
        now = json.loads(await talk.text("get_current_time", timezone="Etc/UTC"))
        assert now["timezone"] == "Etc/UTC"
        nowhere = await talk.call("get_current_time", timezone="Nowhere/Land")
        assert nowhere["isError"] is True
    assert converted == {hour: f"{hour - 4:02}:30" for hour in range(4, 24)}
