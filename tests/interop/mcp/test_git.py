"""PyPI's mcp-server-git, on version 1 of the `mcp` package."""

import subprocess
from pathlib import Path

from tests.interop.peers import git
from tests.interop.talk import talking_to
from tests.support.adapters.on_trio import on_trio


def make_repository(path: Path) -> None:
    """A repository that takes nothing from the settings of whoever runs the tests."""
    for arguments in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "Test"],
        ["config", "user.email", "test@example.com"],
        ["config", "commit.gpgsign", "false"],
    ):
        subprocess.run(["git", "-C", path, *arguments], check=True)


@on_trio()
async def test_a_file_is_committed(tmp_path: Path) -> None:
    """The everyday use of a server on the older package, which most servers are still built on."""
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
