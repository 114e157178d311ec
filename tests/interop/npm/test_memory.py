"""npm's server-memory, on the TypeScript SDK: it notifies when a tool changes a resource."""

import json
import os
from pathlib import Path
from typing import Any

from tests.interop.peers import memory
from tests.interop.talk import talking_to
from tests.support.adapters.on_trio import on_trio

URI = "memory://knowledge-graph"


@on_trio()
async def test_a_subscriber_hears_of_what_was_remembered(tmp_path: Path) -> None:
    """A subscription to one URI must bring updates until it is ended."""
    ada: dict[str, Any] = {"name": "Ada", "entityType": "person", "observations": ["counts"]}
    alan: dict[str, Any] = {"name": "Alan", "entityType": "person", "observations": []}
    environment = {**os.environ, "MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}

    async with talking_to(memory(), env=environment, requires=["resources.subscribe"]) as talk:
        assert await talk.names("resources/list") == ["knowledge-graph"]
        await talk.request("resources/subscribe", uri=URI)
        await talk.text("create_entities", entities=[ada])
        assert await talk.notifications.wait("notifications/resources/updated") == [{"uri": URI}]

        read = await talk.request("resources/read", uri=URI)
        assert json.loads(read["contents"][0]["text"])["entities"] == [ada]
        found = await talk.call("search_nodes", query="counts")
        assert found["structuredContent"]["entities"] == [ada]

        await talk.request("resources/unsubscribe", uri=URI)
        await talk.text("create_entities", entities=[alan])
        graph = await talk.call("read_graph")
        assert graph["structuredContent"]["entities"] == [ada, alan]
        assert len(talk.notifications.of("notifications/resources/updated")) == 1
