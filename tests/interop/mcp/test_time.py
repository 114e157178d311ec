"""PyPI's mcp-server-time, on version 1 of the `mcp` package."""

import json
from functools import partial

import trio

from sansmcp import LEGACY_REVISIONS
from tests.interop.peers import time
from tests.interop.talk import talking_to
from tests.support.adapters.on_trio import on_trio


@on_trio()
async def test_many_calls_are_under_way_at_once() -> None:
    """Each of them ends with its own answer, in whatever order they come."""
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
