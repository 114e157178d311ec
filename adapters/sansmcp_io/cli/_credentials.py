"""Where the command line keeps credentials, and how it is authorized with them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sansmcp.auth import (
    AuthorizationConfig,
    ClientMetadata,
    ClientWanted,
    Reach,
    RegisteredClient,
    StepTaken,
)

from ..oauth import FileTokenStorage, LoopbackUserAgent, MemoryTokenStorage, OAuth
from ..oauth._folders import settings_folder
from ._arguments import check_text, check_url, read_text
from ._errors import UsageError
from ._output.output import Output
from ._output.printing import Label

NAME = "sansmcp"


def token_file(given: str | None) -> Path:
    """The file with the credentials: the given one, or that of the user."""
    return settings_folder() / "tokens.json" if given is None else Path(given)


def oauth_of(
    options: argparse.Namespace,
    output: Output,
    *,
    stores: bool = True,
    on_step: Callable[[StepTaken], object] | None = None,
) -> OAuth:
    """How the command is authorized.

    Args:
        options: The command line.
        output: Shows the URL that the user has to open.
        stores: Whether credentials are read and stored. Otherwise, every step is taken.
        on_step: Called with each step.

    Raises:
        UsageError: An option cannot be used.
    """
    # Commands that only use the credentials have no options on how to get them.
    given: dict[str, Any] = vars(options)
    client_id, issuer = given.get("client_id"), given.get("issuer")
    registered: dict[str, RegisteredClient] = {}
    known: RegisteredClient | None = None
    if client_id is not None:
        if issuer is None and given.get("client_secret") is not None:
            raise UsageError(
                "--client-secret needs --issuer URL: without it, the MCP server would choose which "
                "authorization server gets the secret (AUTH-078)"
            )
        known = RegisteredClient(client_id=client_id, client_secret=_secret(given))
        if issuer is not None:
            registered[check_url(issuer)] = known
    elif issuer is not None or given.get("client_secret") is not None:
        raise UsageError("--issuer and --client-secret need --client-id")

    def on_client(wanted: ClientWanted) -> RegisteredClient | None:
        return known

    def show(url: str) -> None:
        output.line(Label.LOGIN, url)

    port = given.get("redirect_port") or 0
    scopes = [scope for text in given.get("scope") or () for scope in text.split()]
    try:
        return OAuth(
            client=ClientMetadata(name=NAME, url=given.get("client_metadata")),
            user_agent=LoopbackUserAgent(
                show=show, browser=bool(given.get("browser", True)), port=port
            ),
            registered=registered,
            scopes=scopes or None,
            storage=FileTokenStorage(token_file(options.tokens))
            if stores
            else MemoryTokenStorage(),
            on_client=on_client,
            on_step=on_step,
            config=AuthorizationConfig(
                ask_for_client=known is not None,
                allow_addresses=[Reach(kind) for kind in options.allow_address],
            ),
        )
    except ValueError as error:
        raise UsageError(str(error)) from None


def _secret(given: dict[str, Any]) -> str | None:
    source: str | None = given.get("client_secret")
    if source is None:
        return None
    if not source.startswith(("@", "-")):
        raise UsageError(
            "--client-secret takes @FILE, or - for standard input: all users of this machine can "
            "see the command line"
        )
    return check_text(read_text(source).strip(), "the client secret")
