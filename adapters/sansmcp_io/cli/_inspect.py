"""`sansmcp inspect`: shows a server and what it offers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from sansmcp import MODERN_REVISIONS, ErrorCode, JSONObject, JSONValue

from .._common.errors import (
    ConnectionLost,
    InvalidAnswer,
    PeerError,
    RequestRefused,
    RequestTimeout,
)
from ._conversation import ServerConversation
from ._errors import Status
from ._output import views
from ._output.printing import Block, Label, Note
from ._server_watch import TOO_LONG, is_too_long

_LISTINGS: Final[Mapping[str, tuple[str, str]]] = {
    # the member of the results, the capability, the method
    "tools": ("tools", "tools/list"),
    "resources": ("resources", "resources/list"),
    "resourceTemplates": ("resources", "resources/templates/list"),
    "prompts": ("prompts", "prompts/list"),
}

_UNAUTHORIZED: Final = (401, 403)


@attrs.define
class _Found:
    """One listing; None if the server has not declared it, so that it was not requested."""

    items: list[JSONValue] | None = None
    error: JSONObject | None = None
    optional: bool = False

    @property
    def failed(self) -> bool:
        return self.error is not None and not self.optional

    def why(self, name: str) -> str:
        """The reason why a listing is not complete, to be added to a text that says so."""
        assert self.error is not None
        text: str = self.error["text"]
        return text.removeprefix(f"{_LISTINGS[name][1]} is incomplete: ")


async def inspect(conversation: ServerConversation) -> int:
    """List everything that the server declares, show it, and return the exit status.

    If one listing fails, the others are shown all the same.
    """
    peer = conversation.peer
    found: dict[str, _Found] = {}
    for name, (capability, method) in _LISTINGS.items():
        value = peer.capabilities.get(capability)
        declared = value is True or isinstance(value, dict)
        found[name] = await _list(conversation, method) if declared else _Found()
    info = peer.info or {}
    era = era_of(peer.revision)
    document: JSONObject = {
        "revision": peer.revision,
        "era": era,
        "supportedVersions": list(peer.supported_versions) or None,
        "server": info,
        "capabilities": peer.capabilities,
        "instructions": peer.instructions,
        **{name: one.items for name, one in found.items()},
        "errors": {
            _LISTINGS[name][1]: one.error for name, one in found.items() if one.error is not None
        },
    }

    def blocks() -> Iterator[Block]:
        revision = f"{peer.revision} ({era} era)"
        yield from views.server(info, revision, peer.supported_versions, peer.instructions)
        yield from views.capabilities(peer.capabilities)
        for name, one in found.items():
            yield from _blocks(name, one)

    conversation.output.result(document, blocks())
    for name, one in found.items():
        if one.failed:
            text = f"{_LISTINGS[name][1]} did not succeed: {one.why(name)}"
            conversation.output.line(Label.ERROR, text)
    for hint in conversation.length_hints:
        conversation.output.line(Label.HINT, hint)
    return Status.PROTOCOL if any(one.failed for one in found.values()) else Status.OK


def _blocks(name: str, found: _Found) -> Iterator[Block]:
    if found.items is None:
        if name != "resourceTemplates":  # resources are what is declared, and stand above
            yield Note(f"{views.title_of(name)}: not declared, so not asked for")
        return
    yield from views.listing(name, found.items)
    if found.error is not None:
        why = found.why(name)
        yield Note(f"incomplete: {why}" if found.failed else why)


async def _list(conversation: ServerConversation, method: str) -> _Found:
    found = _Found(items := [])
    try:
        async for item in conversation.items(method):
            items.append(item)  # noqa: PERF401  # what came before a failure is kept
    except PeerError as error:
        found.error = _described("peer-error", error, code=error.code)
        # No capability tells whether there are templates, and servers without any refuse.
        found.optional = (
            method == "resources/templates/list" and error.code == ErrorCode.METHOD_NOT_FOUND
        )
    except RequestTimeout as error:
        found.error = _described("timeout", error)
    except ConnectionLost as error:
        found.error = _described("lost", error)
    except RequestRefused as error:
        if error.status in _UNAUTHORIZED:
            raise  # every other request needs a credential, too
        found.error = _described("http-status", error)
    except InvalidAnswer as error:
        found.error = _described("invalid-answer", error)
    return found


def _described(kind: str, error: Exception, *, code: int | None = None) -> JSONObject:
    return {
        "kind": kind,
        "text": str(error),
        "code": code,
        "rule": TOO_LONG if is_too_long(str(error)) else None,
        "status": getattr(error, "status", None),
        "retry_after": getattr(error, "retry_after", None),
    }


def era_of(revision: str | None) -> str:
    """The name of the era of a revision that was agreed."""
    return "modern" if revision in MODERN_REVISIONS else "legacy"
