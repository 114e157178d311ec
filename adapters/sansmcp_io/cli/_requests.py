"""`sansmcp call`, `read`, `prompt` and `request`: one request, and its response."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import attrs
import trio

from sansmcp import ErrorCode, JSONObject

from .._common.errors import ConnectionLost, InvalidAnswer, PeerError, RequestTimeout
from ._conversation import ServerConversation, Work
from ._errors import Advised, Status
from ._output import views
from ._output.printing import Block, Label
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


def call(tool: str, arguments: JSONObject | None) -> Work:
    """Call a tool. If it fails, its content says why."""

    async def work(conversation: ServerConversation) -> int:
        # Without an argument on the command line too: some servers take no absent `arguments`.
        params = {"name": tool, "arguments": arguments or {}}
        result = await _ask(conversation, "tools/call", params, tool)
        conversation.output.result(result, views.tool_result(result))
        if result.get("isError") is not True:
            return Status.OK
        conversation.output.line(Label.ERROR, f"the tool {tool} says that it has failed (isError)")
        for hint in await _advice(conversation, "tools/call", tool, arguments or {}):
            conversation.output.line(Label.HINT, hint)
        return Status.TOOL_FAILED

    return work


def read(uri: str) -> Work:
    """Read a resource."""

    async def work(conversation: ServerConversation) -> int:
        result = await _ask(conversation, "resources/read", {"uri": uri}, uri)
        conversation.output.result(result, views.contents(result))
        return Status.OK

    return work


def prompt(name: str, arguments: JSONObject | None) -> Work:
    """Get a prompt."""
    params: JSONObject = {"name": name}
    if arguments is not None:
        params["arguments"] = arguments

    async def work(conversation: ServerConversation) -> int:
        result = await _ask(conversation, "prompts/get", params, name)
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


async def _ask(
    conversation: ServerConversation, method: str, params: JSONObject, name: str
) -> JSONObject:
    try:
        return await conversation.request(method, params)
    except PeerError as error:
        given = object_of(params.get("arguments"))
        if error.status in _BUSY or error.retry_after is not None:
            raise  # more requests are what such a server does not want
        is_refused = error.code == ErrorCode.INVALID_PARAMS
        hints = tuple(await _advice(conversation, method, name, given, is_refused=is_refused))
        raise Advised(error, method, hints) from None


async def _advice(
    conversation: ServerConversation,
    method: str,
    name: str,
    given: JSONObject,
    *,
    is_refused: bool = False,
) -> list[str]:
    """Hints from the items that the server lists; none if it lists none.

    Arguments that fit the server's description are not the cause, unless the server says so
    (`is_refused`): a tool may fail for any reason of its own.
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
        if not is_refused and offer.fits(known[name], given):
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
