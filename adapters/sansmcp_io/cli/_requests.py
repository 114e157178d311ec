"""`sansmcp call`, `read`, `prompt` and `request`: one request, and its response."""

from __future__ import annotations

import difflib
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import attrs
import trio

from sansmcp import ErrorCode, JSONObject

from .._common.errors import ConnectionLost, InvalidAnswer, PeerError, RequestTimeout
from ._conversation import ServerConversation, Work
from ._errors import Advised, Status
from ._output import views
from ._output.output import Output
from ._output.printing import Block, Body, Label
from ._values import array_of, as_text, member, object_of

_LISTING_SECONDS: Final = 5.0
"""The longest wait for the listing from which hints are made."""
_MOST_NAMES: Final = 8
_BUSY: Final = (429, 503)
"""Statuses of a server that has more requests than it wants."""


@attrs.frozen
class _Offer:
    """A kind of item that a server offers by name, and hints for a wrong request.

    Attributes:
        arguments: Shows the arguments that an item takes.
        fits: Whether arguments fit an item, as far as the server has described it.
    """

    word: str
    method: str
    capability: str
    key: str
    arguments: Callable[[object], str]
    fits: Callable[[object, JSONObject], bool]


def _fits_tool(tool: object, given: JSONObject) -> bool:
    schema = object_of(member(tool, "inputSchema"))
    known = object_of(schema.get("properties"))
    if not all(name in given for name in array_of(schema.get("required"))):
        return False
    # An argument that is not listed is allowed unless the schema says otherwise, and yet it is
    # most likely misspelt.
    is_open = bool(schema.get("additionalProperties") or schema.get("patternProperties"))
    return all(
        views.accepts(known[name], value, schema) if name in known else is_open
        for name, value in given.items()
    )


def _fits_prompt(prompt: object, given: JSONObject) -> bool:
    listed = array_of(member(prompt, "arguments"))
    known = {as_text(member(one, "name")): member(one, "required") is True for one in listed}
    return given.keys() <= known.keys() and all(
        name in given for name, is_required in known.items() if is_required
    )


def _fits_resource(_resource: object, _given: JSONObject) -> bool:
    return True


_OFFERS: Final[Mapping[str, _Offer]] = {
    "tools/call": _Offer("tool", "tools/list", "tools", "name", views.tool_arguments, _fits_tool),
    "prompts/get": _Offer(
        "prompt", "prompts/list", "prompts", "name", views.prompt_arguments, _fits_prompt
    ),
    "resources/read": _Offer(
        "resource", "resources/list", "resources", "uri", lambda _: "", _fits_resource
    ),
}


def call(
    tool: str,
    arguments: JSONObject | None,
    task: bool | float | None = None,
    *,
    detach: bool = False,
) -> Work:
    """Call a tool. If it fails, its content says why.

    Args:
        tool: The name of the tool.
        arguments: Its arguments.
        task: The seconds for which a task is kept; True: the server decides; None: no task.
        detach: Show the id of the task, and not its result.
    """
    # Without an argument on the command line too: some servers take no absent `arguments`.
    params: JSONObject = {"name": tool, "arguments": arguments or {}}

    async def as_task(conversation: ServerConversation, task: bool | float) -> JSONObject | None:
        async with conversation.started_task("tools/call", params, task) as started:
            if not detach:
                return await conversation.result_of(started)
            if started.id is None:
                text = "the server has answered without a task: this is the result"
                conversation.output.line(Label.WARNING, text)
                return await started.result()
            document: JSONObject = {"taskId": started.id}
            conversation.output.result(document, iter((Body(started.id),)))
            return None

    async def work(conversation: ServerConversation) -> int:
        async with _advised(conversation, "tools/call", params, tool):
            if task is None:
                result = await conversation.request("tools/call", params)
            elif (found := await as_task(conversation, task)) is None:
                return Status.OK
            else:
                result = found
        if show_tool_result(conversation.output, result, f"the tool {tool}"):
            return Status.OK
        for hint in await _advice(conversation, "tools/call", tool, arguments or {}):
            conversation.output.line(Label.HINT, hint)
        return Status.TOOL_FAILED

    return work


def show_tool_result(output: Output, result: JSONObject, tool: str) -> bool:
    """Show the result of a tool, and return whether it has succeeded."""
    output.result(result, views.tool_result(result))
    if result.get("isError") is not True:
        return True
    output.line(Label.ERROR, f"{tool} says that it has failed (isError)")
    return False


def read(uri: str) -> Work:
    """Read a resource."""

    async def work(conversation: ServerConversation) -> int:
        params: JSONObject = {"uri": uri}
        async with _advised(conversation, "resources/read", params, uri):
            result = await conversation.request("resources/read", params)
        conversation.output.result(result, views.contents(result))
        return Status.OK

    return work


def prompt(name: str, arguments: JSONObject | None) -> Work:
    """Get a prompt."""
    params: JSONObject = {"name": name}
    if arguments is not None:
        params["arguments"] = arguments

    async def work(conversation: ServerConversation) -> int:
        async with _advised(conversation, "prompts/get", params, name):
            result = await conversation.request("prompts/get", params)
        conversation.output.result(result, views.prompt_result(result))
        return Status.OK

    return work


def request(method: str, params: JSONObject | None) -> Work:
    """Send any request, and show the result unchanged."""

    async def work(conversation: ServerConversation) -> int:
        result = await conversation.request(method, params)

        def blocks() -> Iterator[Block]:
            yield views.as_json(result)

        conversation.output.result(result, blocks())
        return Status.OK

    return work


@asynccontextmanager
async def _advised(
    conversation: ServerConversation, method: str, params: JSONObject, name: str
) -> AsyncGenerator[None, None]:
    """Add hints from what the server lists to an error with which it answers in the block."""
    try:
        yield
    except PeerError as error:
        given = object_of(params.get("arguments"))
        if error.status in _BUSY or error.retry_after is not None:
            raise  # more requests are what such a server does not want
        hints = tuple(await _advice(conversation, method, name, given, error.code))
        raise Advised(error, method, hints) from None


async def _advice(
    conversation: ServerConversation,
    method: str,
    name: str,
    given: JSONObject,
    code: int | None = None,
) -> list[str]:
    """Hints from the items that the server lists; none if it lists none.

    Arguments that fit the server's description are not the cause, unless the server says so with
    the `code` of its error: a tool may fail for any reason of its own.
    """
    offer = _OFFERS[method]
    known: dict[str, object] = {}
    with trio.move_on_after(_LISTING_SECONDS):
        try:
            async for item in conversation.items(offer.method):
                known[as_text(member(item, offer.key))] = item
        except (PeerError, InvalidAnswer, RequestTimeout, ConnectionLost):
            pass
    if name in known:
        if code == ErrorCode.METHOD_NOT_FOUND and method == "tools/call":
            return _task_hints(name, known[name])
        if code != ErrorCode.INVALID_PARAMS and offer.fits(known[name], given):
            return []
        arguments = offer.arguments(known[name])
        return [f"the {offer.word} {name} takes: {arguments}"] if arguments else []
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return [f"the server lists no {offer.word} {name}; did you mean {' or '.join(near)}?"]
    if not known:
        return []
    names = list(known)[:_MOST_NAMES]
    more = f" and {len(known) - len(names)} more" if len(known) > len(names) else ""
    return [f"the server lists no {offer.word} {name}; it has {', '.join(names)}{more}"]


def _task_hints(name: str, tool: object) -> list[str]:
    """Hints for a tool that is not called in the way that the server has listed (2025-11-25)."""
    support = member(member(tool, "execution"), "taskSupport")
    if support == "required":
        return [f"the tool {name} is called as a task only: --task"]
    return [] if support == "optional" else [f"the tool {name} takes no tasks: leave --task out"]
