"""A client that asks its user before anything happens, and keeps secrets out of what it shows."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import trio
from trio.testing import memory_stream_pair

from sansmcp import ErrorKind, JSONObject, content
from sansmcp_io.trio import Call, Client, McpError, PeerError, ServerCall, connect, serve

INFO: JSONObject = {"name": "example", "version": "1.0"}
Ask = Callable[[str], bool]
"""Shows a text to the user, and returns whether the user agrees."""

# -- redact
SECRET_NAMES = re.compile(r"(?i)passw|secret|token|api.?key|authorization|card")
SECRET_TEXTS = re.compile(r"\b(?:sk|ghp|xox[bp])[-_][A-Za-z0-9]{8,}|\b\d{13,19}\b")


def redact(value: Any, name: str = "") -> Any:
    """A JSON value without secrets, by the names of members and the form of texts."""
    if isinstance(value, dict):
        members: JSONObject = value
        return {key: redact(inner, key) for key, inner in members.items()}
    if isinstance(value, list):
        items: list[Any] = value
        return [redact(inner, name) for inner in items]
    if value is not None and SECRET_NAMES.search(name):
        return "***"
    return SECRET_TEXTS.sub("***", value) if isinstance(value, str) else value


# -- call
async def call_tool(client: Client, tool: JSONObject, arguments: JSONObject, ask: Ask) -> str:
    """Call a tool for the model if the user agrees."""
    hints = content.tool_hints(tool)
    if not (SERVER_IS_TRUSTED and hints.read_only):
        effect = "may delete or overwrite" if hints.destructive else "may change things"
        effect = "only reads, it says" if hints.read_only else effect
        name = content.display_name(tool)
        if not ask(f"{SERVER}: run {name}, which {effect}, with {arguments}?"):
            return "The user does not want this."  # for the model to read
    print("log:", tool["name"], redact(arguments))
    call: JSONObject = {"name": tool["name"], "arguments": arguments}
    result: Any = await client.request("tools/call", call, timeout=60)
    said: str = result["content"][0]["text"]
    return said


# -- answer
def answer(call: Call, ask: Ask) -> JSONObject:
    """Answer a question of the server if the user agrees."""
    params: Any = call.params
    match call.method:
        case "sampling/createMessage":
            texts = [message["content"]["text"] for message in params["messages"]]
            if not ask(f"{SERVER}: ask the model {texts}?"):
                raise McpError(ErrorKind.USER_REJECTED, "the user has rejected the request")
            text = model(texts, params["maxTokens"])
            if not ask(f"{SERVER}: send it the answer {text!r}?"):
                raise McpError(ErrorKind.USER_REJECTED, "the user has rejected the answer")
            return {"role": "assistant", "model": "example", "content": content.text(text)}
        case "elicitation/create" if params.get("mode") == "url":
            url: str = params["url"]
            host = urlsplit(url).hostname or "no host"
            warning = " BEWARE: the name may imitate another." if "xn--" in host else ""
            if not ask(f"{SERVER}: {params['message']} Open {url} on {host}?{warning}"):
                return {"action": "decline"}
            print("browser:", url)  # that of the user, where this program sees nothing
            return {"action": "accept"}
        case _:
            raise McpError(-32601, f"no {call.method} here")


# -- run
SERVER, SERVER_IS_TRUSTED = "my notes", False
"""The name that the user has given to the server, and whether the user trusts it."""


def model(texts: list[str], most_tokens: int) -> str:
    return " ".join(f"A summary of: {texts[-1]}".split()[:most_tokens])


async def handle(call: ServerCall) -> JSONObject:
    """The server: each of its tools asks the client first."""
    try:
        if call.params["name"] == "delete":
            return {"content": [content.text("deleted")]}
        if call.params["name"] == "summarize":
            message = {"role": "user", "content": content.text("Summarize my notes.")}
            prompt: JSONObject = {"messages": [message], "maxTokens": 9}
            written: Any = await call.request("sampling/createMessage", prompt)
            return {"content": [written["content"]]}
        visit: JSONObject = {
            "mode": "url",
            "elicitationId": "1",
            "message": "Connect your calendar.",
            "url": "https://xn--clendar-8wa.example/connect",
        }
        visited: Any = await call.request("elicitation/create", visit)
        return {"content": [content.text(f"the user chose {visited['action']}")]}
    except PeerError as error:
        if error.kind is ErrorKind.USER_REJECTED:
            return {**content.tool_error("the user said no")}
        raise


async def main() -> None:
    answers = iter([True, False, True, False, False])

    def ask(text: str) -> bool:
        agrees = next(answers)
        print(text, "yes" if agrees else "no")
        return agrees

    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: serve(theirs, handle, info=INFO, capabilities={"tools": {}}))
        async with connect(
            ours,
            info=INFO,
            capabilities={"sampling": {}, "elicitation": {"url": {}}},
            on_request=lambda call: answer(call, ask),
            revisions=["2025-11-25"],
        ) as client:
            tool: JSONObject = {"name": "delete", "title": "Delete a note"}
            login: JSONObject = {"id": 7, "password": "hunter2", "note": "key sk-abcdefgh12345"}
            print("->", await call_tool(client, tool, login, ask))
            print("->", await call_tool(client, tool, {"id": 8}, ask))
            for name in ("summarize", "connect"):
                result: Any = await client.request("tools/call", {"name": name})
                print("->", result["content"][0]["text"])


if __name__ == "__main__":
    trio.run(main)
