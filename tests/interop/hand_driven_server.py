"""A server of this project without an event loop, with all features, for other clients.

It offers what the server of the demo does not: resources, templates, subscriptions, prompts,
completion, logging, questions in several rounds, and a call that waits to be cancelled.

Usage: python -m tests.interop.hand_driven_server REPORTS [SPEAKS]    (ends at end of input)

SPEAKS is a key of `tests.support.programs.era_server.ERAS`; without it both eras are served. What
our side has to report about the client goes to the file REPORTS, one rule a line; what an observer
beside it sees broken, to REPORTS.accused, one side and rule a line.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping

from sansmcp import (
    MODERN_REVISIONS,
    ErrorCode,
    ErrorWithoutIdReceived,
    Event,
    IncomingRequest,
    InvalidCursor,
    JSONObject,
    LimitReached,
    MessageIgnored,
    Observer,
    ProtocolViolation,
    RequestCancelled,
    RequestReceived,
    ResourceUpdated,
    ServerConnection,
    Side,
    State,
    ToolsListChanged,
    ViolationSeen,
    paginate,
)
from tests.support.programs.era_server import ERAS

RESOURCES = {f"test://notes/{number}": f"note {number}" for number in range(1, 4)}
NOT_FOUND = {True: ErrorCode.INVALID_PARAMS, False: -32002}
"""The code for a resource that is not there, by whether the revision is a modern one."""
GREETING = "test://greetings/"
NAMES = ("ada", "alan", "barbara")
FORM: JSONObject = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}
WHO: JSONObject = {
    "method": "elicitation/create",
    "params": {"message": "Who are you?", "requestedSchema": FORM},
}
ROOTS: JSONObject = {"method": "roots/list"}
SAMPLE: JSONObject = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Say something."}}],
        "maxTokens": 5,
    },
}

server = ServerConnection(
    info={"name": "sansmcp-hand-driven", "version": "1.0"},
    capabilities={
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {},
        "completions": {},
        "logging": {},
    },
    revisions=ERAS[sys.argv[2] if len(sys.argv) > 2 else "dual-era"],
)
observer = Observer()
cancelled = 0


class Refused(Exception):
    """Raised to answer with an error of this code and message."""


def text(value: str) -> JSONObject:
    return {"content": [{"type": "text", "text": value}]}


# Tools return None where they answer later.


def touch(request: IncomingRequest, arguments: JSONObject) -> JSONObject:
    return text("told" if server.publish(ResourceUpdated(arguments["uri"])) else "not subscribed")


def change(request: IncomingRequest, arguments: JSONObject) -> JSONObject:
    server.publish(ToolsListChanged())
    return text("changed")


def log(request: IncomingRequest, arguments: JSONObject) -> JSONObject:
    sent = server.send_log(arguments["level"], {"n": 1}, logger="hand", request=request)
    return text("sent" if sent else "suppressed")


def wait(request: IncomingRequest, arguments: JSONObject) -> None:
    """Never answer; progress shows that the call has begun."""
    server.send_progress(request, 1, message="waiting")


def cancellations(request: IncomingRequest, arguments: JSONObject) -> JSONObject:
    return text(str(cancelled))


def ask(request: IncomingRequest, arguments: JSONObject) -> JSONObject | None:
    """Two rounds of questions, and one more for the state alone."""
    given = request.input_responses
    match server.read_state(request):
        case None:
            server.require_input(request, {"who": WHO}, state="name")
        case "name":
            name = given["who"]["content"]["name"]
            server.require_input(request, {"s": SAMPLE, "r": ROOTS}, state=f"{name}:")
        case state if given:
            sample: str = given["s"]["content"]["text"]
            server.require_input(
                request, state=f"{state} {sample}, {given['r']['roots'][0]['uri']}"
            )
        case state:
            return text(str(state))
    return None


def revision(request: IncomingRequest, arguments: JSONObject) -> JSONObject:
    return text(str(request.revision))


def subscriptions(request: IncomingRequest, arguments: JSONObject) -> JSONObject:
    """The number of open modern subscriptions of the client."""
    return text(str(len(server.listeners)))


def hang_up(request: IncomingRequest, arguments: JSONObject) -> JSONObject:
    """End the modern subscriptions."""
    listeners = server.listeners
    for listener in listeners:
        server.end_listener(listener)
    return text(f"{len(listeners)} ended")


Tool = Callable[[IncomingRequest, JSONObject], JSONObject | None]
TOOLS: Mapping[str, tuple[Tool, JSONObject]] = {
    "ask": (ask, {}),
    "cancellations": (cancellations, {}),
    "change": (change, {}),
    "hang_up": (hang_up, {}),
    "log": (log, {"level": {"type": "string"}}),
    "revision": (revision, {}),
    "subscriptions": (subscriptions, {}),
    "touch": (touch, {"uri": {"type": "string"}}),
    "wait": (wait, {}),
}


def list_tools(params: JSONObject) -> JSONObject:
    return {
        "tools": [
            {"name": name, "inputSchema": {"type": "object", "properties": properties}}
            for name, (_, properties) in TOOLS.items()
        ]
    }


def list_resources(params: JSONObject) -> JSONObject:
    uris, following = paginate(sorted(RESOURCES), params.get("cursor"), key=str, size=2)
    page: JSONObject = {"resources": [{"uri": uri, "name": uri[-1]} for uri in uris]}
    return page if following is None else {**page, "nextCursor": following}


def list_templates(params: JSONObject) -> JSONObject:
    return {"resourceTemplates": [{"name": "greeting", "uriTemplate": GREETING + "{name}"}]}


def read(request: IncomingRequest) -> JSONObject:
    is_modern = request.revision in MODERN_REVISIONS
    uri: str = request.params["uri"]
    if uri not in RESOURCES and not uri.startswith(GREETING):
        raise Refused(NOT_FOUND[is_modern], f"no resource {uri}")
    found = RESOURCES.get(uri, f"Hello, {uri.removeprefix(GREETING)}!")
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": found}]}


def list_prompts(params: JSONObject) -> JSONObject:
    return {"prompts": [{"name": "greet", "arguments": [{"name": "name", "required": True}]}]}


def get_prompt(params: JSONObject) -> JSONObject:
    if params["name"] != "greet":
        raise Refused(ErrorCode.INVALID_PARAMS, f"no prompt {params['name']}")
    content = {"type": "text", "text": f"Please greet {params['arguments']['name']}."}
    return {"messages": [{"role": "user", "content": content}]}


def complete(params: JSONObject) -> JSONObject:
    values = [name for name in NAMES if name.startswith(params["argument"]["value"])]
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}


def nothing(params: JSONObject) -> JSONObject:
    return {}  # the core keeps the list of subscriptions


METHODS: Mapping[str, Callable[[JSONObject], JSONObject]] = {
    "completion/complete": complete,
    "prompts/get": get_prompt,
    "prompts/list": list_prompts,
    "resources/list": list_resources,
    "resources/subscribe": nothing,
    "resources/templates/list": list_templates,
    "resources/unsubscribe": nothing,
    "tools/list": list_tools,
}


def serve(request: IncomingRequest) -> None:
    try:
        if request.method == "tools/call":
            tool, _ = TOOLS[request.params["name"]]
            result = tool(request, request.params.get("arguments", {}))
        elif request.method == "resources/read":
            result = read(request)
        else:
            result = METHODS[request.method](request.params)
    except Refused as refused:
        server.send_error(request, *refused.args)
    except (InvalidCursor, KeyError) as error:
        server.send_error(request, ErrorCode.INVALID_PARAMS, f"not found: {error}")
    else:
        if result is not None:
            server.send_result(request, result)


def handle(event: Event) -> None:
    global cancelled
    match event:
        case RequestReceived():
            serve(event.request)
        case RequestCancelled():
            cancelled += 1
        case ProtocolViolation() | MessageIgnored() | LimitReached():
            report(event.rule)
        case ErrorWithoutIdReceived():
            report("ERR-001")
        case _:
            pass


def report(rule: str) -> None:
    with open(sys.argv[1], "a", encoding="utf-8") as reports:
        print(rule, file=reports)


def accuse() -> None:
    with open(f"{sys.argv[1]}.accused", "a", encoding="utf-8") as accused:
        while (event := observer.next_event()) is not None:
            if isinstance(event, ViolationSeen):
                print(event.side.name, event.rule, file=accused)


def main() -> None:
    open(sys.argv[1], "w").close()  # no file: never run; an empty one: nothing to report
    accuse()
    while server.state is not State.CLOSED:
        if chunk := os.read(0, 65536):
            observer.receive_data(Side.CLIENT, chunk)
            server.receive_data(chunk, now=time.monotonic())
        else:
            server.receive_eof()
        while (event := server.next_event()) is not None:
            handle(event)
        data = server.data_to_send()
        observer.receive_data(Side.SERVER, data)
        accuse()
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(1, rest) :]


if __name__ == "__main__":
    main()
