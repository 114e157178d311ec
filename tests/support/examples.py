"""The official examples of 2026-07-28, and the client and the server that they are sent through.

The examples are in `tests/data/examples`.
"""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from sansmcp import (
    ClientConnection,
    Config,
    IncomingRequest,
    JSONObject,
    OutgoingRequest,
    Ready,
    ServerConnection,
)
from tests.support.data import example_files
from tests.support.modern import (
    MODERN,
    discovered,
    envelope,
    requested,
)
from tests.support.wire import (
    SERVER_CAPABILITIES,
    call,
    only,
    receive,
    result,
    sent,
)

FILES: Final = example_files()

CLIENT_INFO: Final = {"name": "ExampleClient", "version": "1.0.0"}
SERVER_INFO: Final = {"name": "ExampleServer", "version": "1.0.0"}
MAIN: Final = "file:///project/src/main.rs"

METHODS: Final = {
    "CallTool": "tools/call",
    "Complete": "completion/complete",
    "GetPrompt": "prompts/get",
    "ListPrompts": "prompts/list",
    "ListResourceTemplates": "resources/templates/list",
    "ListResources": "resources/list",
    "ListTools": "tools/list",
    "Paginated": "tools/list",
    "ReadResource": "resources/read",
}
NEEDED: Final[dict[str, JSONObject]] = {
    "tools/call": {"name": "t"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "p"},
        "argument": {"name": "a", "value": ""},
    },
    "prompts/get": {"name": "p"},
    "resources/read": {"uri": MAIN},
}
"""The params that a method requires, for examples of its result."""

PARTS: Final = {
    "AudioContent",
    "BlobResourceContents",
    "BooleanSchema",
    "EmbeddedResource",
    "ImageContent",
    "ModelPreferences",
    "NumberSchema",
    "Resource",
    "ResourceLink",
    "Root",
    "SamplingMessage",
    "StringSchema",
    "TextContent",
    "TextResourceContents",
    "TitledMultiSelectEnumSchema",
    "TitledSingleSelectEnumSchema",
    "Tool",
    "ToolResultContent",
    "ToolUseContent",
    "UntitledMultiSelectEnumSchema",
    "UntitledSingleSelectEnumSchema",
}
"""The kinds of examples that are only parts of a message, which no connection judges."""

seen: Final[set[str]] = set(PARTS)


def of_kinds(*kinds: str, suffix: str = "") -> pytest.MarkDecorator:
    """A mark that runs the test for each example of these kinds, as arguments `kind, value`."""
    folders = {kind + suffix: kind for kind in kinds}
    seen.update(folders)
    cases = [
        pytest.param(folders[path.parent.name], load(path), id=f"{path.parent.name}-{path.stem}")
        for path in FILES
        if path.parent.name in folders
    ]
    return pytest.mark.parametrize(("kind", "value"), cases)


def load(path: Path) -> Any:
    return json.loads(path.read_bytes())


# ------------------------------------------------------------------------------------ two sides


def a_client(capabilities: JSONObject | None = None) -> ClientConnection:
    client = ClientConnection(
        info=CLIENT_INFO, capabilities=capabilities or {}, revisions=(MODERN,)
    )
    client.start()
    (probe,) = sent(client)
    only(Ready, receive(client, result(probe["id"], discovered())))
    return client


def a_server() -> ServerConnection:
    return ServerConnection(
        info=SERVER_INFO,
        capabilities=SERVER_CAPABILITIES,
        revisions=(MODERN,),
        config=Config(send_info=False),
    )


def ask(client: ClientConnection, method: str, **options: Any) -> OutgoingRequest:
    handle = client.send_request(method, NEEDED.get(method), **options)
    sent(client)
    return handle


def asked(server: ServerConnection, method: str, id: object = 1, **meta: object) -> IncomingRequest:
    params = {**NEEDED.get(method, {}), "_meta": envelope() | meta}
    return requested(server, call(id, method, params))


def without_meta(params: JSONObject) -> JSONObject:
    return {name: value for name, value in params.items() if name != "_meta"}
