"""npm's server-filesystem, on the TypeScript SDK: a server that asks for roots."""

from pathlib import Path

import pytest

from sansmcp import JSONObject
from sansmcp_io.trio import Call, ConnectionLost
from tests.interop.peers import filesystem
from tests.interop.talk import talking_to
from tests.support.adapters.on_trio import on_trio


@on_trio()
async def test_files_are_written_and_read(tmp_path: Path) -> None:
    """This is the everyday use of the most popular server."""
    here = tmp_path.resolve()
    text = "one line\nand a line separator \u2028 in the second\n"
    async with talking_to(filesystem().with_arguments(here)) as talk:
        assert "write_file" in await talk.names("tools/list")
        await talk.text("write_file", path=str(here / "a.txt"), content=text)
        assert (here / "a.txt").read_text(encoding="utf-8") == text
        assert await talk.text("read_text_file", path=str(here / "a.txt")) == text
        assert "a.txt" in await talk.text("list_directory", path=str(here))

        outside = await talk.call("read_text_file", path="/etc/hostname")
        assert outside["isError"] is True
        assert "Access denied" in outside["content"][0]["text"]


@on_trio()
async def test_large_files_pass_both_ways(tmp_path: Path) -> None:
    """Both pipes are full for a while, in both directions."""
    here = tmp_path.resolve()
    text = "0123456789abcdef" * 2**16
    async with talking_to(filesystem().with_arguments(here)) as talk:
        await talk.text("write_file", path=str(here / "large.txt"), content=text)
        assert await talk.text("read_text_file", path=str(here / "large.txt")) == text


@on_trio()
async def test_it_works_in_the_roots_of_the_client(tmp_path: Path) -> None:
    """It asks for roots right after `initialized`, while our first requests are in flight."""
    first, second = (tmp_path.resolve() / name for name in ("first", "second"))
    first.mkdir()
    second.mkdir()
    asked: list[str] = []

    def on_request(call: Call) -> JSONObject:
        asked.append(call.method)
        return {"roots": [{"uri": second.as_uri()}]}

    async with talking_to(
        filesystem().with_arguments(first),
        capabilities={"roots": {"listChanged": True}},
        on_request=on_request,
    ) as talk:
        while str(second) not in await talk.text("list_allowed_directories"):
            pass  # its question and our call have crossed
        refused = await talk.call("list_directory", path=str(first))
        assert refused["isError"] is True
    assert asked == ["roots/list"]


@on_trio()
async def test_one_that_fails_at_its_start_is_a_connection_lost(tmp_path: Path) -> None:
    """The output of the server is all that tells a user the reason."""
    stderr: list[str] = []
    with pytest.raises(ConnectionLost):
        async with talking_to(filesystem().with_arguments(tmp_path / "missing"), stderr=stderr):
            pass
    assert any("missing" in line for line in stderr)
