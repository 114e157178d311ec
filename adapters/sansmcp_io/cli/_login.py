"""`sansmcp auth URL` and `sansmcp auth login URL`: one conversation that is authorized."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sansmcp import JSONObject

from .._common.errors import AuthorizationError, RequestRefused
from ..oauth import TokenStorage
from ._auth import Walk, token_in, validity
from ._conversation import ServerConversation, Settings, converse
from ._errors import Status
from ._output.output import Output
from ._output.printing import Block, Heading, NamedValues, Note
from ._values import array_of, as_text

_NOT_WANTED = "the server lets anybody open a conversation and list its tools, without a token"


def login(settings: Settings, walk: Walk, output: Output) -> int:
    """Open a conversation, list tools, and show what came of it."""
    url, auth = settings.url, settings.auth
    assert url is not None
    assert auth is not None

    async def work(conversation: ServerConversation) -> int:
        if not walk.steps and "tools" in conversation.peer.capabilities:
            await conversation.request("tools/list", {})  # which may want a token first
        token = token_in(_records(auth.storage, url))
        output.result(walk.document(url, token=token), _blocks(walk, token))
        return Status.OK

    def stopped(error: Exception) -> JSONObject | None:
        """The document for an attempt that has ended at some step."""
        cause = error.__cause__ if isinstance(error, RequestRefused) else error
        return walk.document(url, cause) if isinstance(cause, AuthorizationError) else None

    return converse(settings, output, work, stopped)


def _records(storage: TokenStorage, url: str) -> Mapping[str, JSONObject]:
    records = storage.load(url)
    assert isinstance(records, Mapping)  # those of the command line are not async
    return records


def _blocks(walk: Walk, token: JSONObject | None) -> Iterator[Block]:
    if token is None:
        yield Note(_NOT_WANTED)
        return
    yield Heading("authorized")
    yield NamedValues(
        (
            ("issuer", as_text(token["issuer"])),
            ("scopes", " ".join(as_text(scope) for scope in array_of(token["scopes"]))),
            ("token", validity(token)),
        )
    )
