"""A client that forges the state of a question gets an error, and the server goes on."""

from typing import Any

import pytest

from sansmcp import MODERN_REVISIONS, Config, JSONObject
from sansmcp_io.trio import McpError, PeerError, RequireInput, ServerCall
from tests.support.adapters.trio_talk import call_tool, instantly, text
from tests.support.adapters.trio_talk import talking as talking_on_stream
from tests.support.http.on_loops import serving, talking
from tests.support.http.server_endpoint import modern_tool_call
from tests.support.modern import EVERYTHING, ROOTS

CONFIG = Config(state_keys=(b"x" * 16,))


async def handle(call: ServerCall) -> JSONObject | RequireInput:
    """A handler that is never asked about its state."""
    state = call.state
    match call.params["name"]:
        case "asks":
            return RequireInput({"roots": ROOTS}, state="so far")
        case "refuses":
            raise McpError(-32001, "not this")
        case "breaks":
            raise RuntimeError("no")
        case _:
            return text(str(state))


@pytest.mark.parametrize("name", ["asks", "refuses", "breaks", "answers"])
@instantly()
async def test_a_forged_state_is_an_error_on_a_stream(name: str) -> None:
    """The handler's own response came after the error, and ended the server with an exception."""
    settings: Any = {"serving": {"config": CONFIG, "revisions": MODERN_REVISIONS}}
    async with talking_on_stream(
        handle, revisions=MODERN_REVISIONS, capabilities=EVERYTHING, **settings
    ) as client:
        params: JSONObject = {"name": name, "arguments": {}, "requestState": "forged"}
        with pytest.raises(PeerError, match="requestState") as caught:
            await client.request("tools/call", params)
        assert caught.value.code == -32602
        assert (await client.request(*call_tool()))["content"]


@pytest.mark.parametrize("name", ["asks", "refuses", "breaks", "answers"])
@instantly()
async def test_a_forged_state_is_an_error_over_http(name: str) -> None:
    """The error must have its HTTP status too."""
    async with serving(handle, config=CONFIG) as server, talking(server) as talk:
        message = modern_tool_call(1, name)
        message["params"]["requestState"] = "forged"
        answer = await talk.call(message)
        assert answer["error"]["code"] == -32602
        assert "result" in await talk.call(modern_tool_call(2, "answers"))
