"""How a client is authorized: the argument `auth=` of `connect_http`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, final

import attrs

from ._storage import MemoryTokenStorage, TokenStorage
from ._user_agents import LoopbackUserAgent, UserAgent

if TYPE_CHECKING:
    from sansmcp.auth import (
        AssertionSigner,
        AssertionWanted,
        AuthorizationConfig,
        ClientCredentials,
        ClientMetadata,
        ClientWanted,
        EnterpriseManaged,
        ProofSigner,
        RegisteredClient,
        StepTaken,
        WorkloadIdentity,
    )

    UserlessGrant: TypeAlias = ClientCredentials | EnterpriseManaged | WorkloadIdentity
    OnAssertion: TypeAlias = Callable[[AssertionWanted], str | Awaitable[str | None] | None]
    OnClient: TypeAlias = Callable[
        [ClientWanted], RegisteredClient | Awaitable[RegisteredClient | None] | None
    ]


def _urls(proxies: Sequence[str]) -> tuple[str, ...]:
    if isinstance(proxies, str):
        raise ValueError("proxies must be a list of URLs, not one URL")
    return tuple(proxies)


@final
@attrs.frozen(kw_only=True)
class OAuth:
    """How a client gets access tokens for a server, and where it keeps them.

    Without anything said, the user is asked in a browser, the client registers itself, and tokens
    are kept in memory. Functions may be async where the client runs on a loop.

    Attributes:
        client: The description of this client.
        user_agent: Shows the user the page of the authorization server.
        grant: A grant without a user, in place of the user agent.
        registered: Credentials that were registered beforehand, by the issuer of the authorization
            server that they are for.
        scopes: The scopes to ask a user for where the server names none; None: all that its
            metadata lists.
        storage: Where credentials are kept.
        proofs: Signs DPoP proofs, so that a stolen token is of no use.
        assertions: Signs the assertions of a client that authenticates with a key.
        on_assertion: Gives an assertion for a grant that was made without one; None ends the
            attempt.
        on_client: Gives the credentials of this client at an authorization server that does not
            register it, if `config` says `ask_for_client=True`.
        on_step: Called with each step of an attempt.
        config: Limits and policies.
        proxies: The URLs of the proxies that the httpx2 client given as `http=` uses, beside those
            that it takes from the environment. What it connects to otherwise is a server whose
            address is checked.
    """

    client: ClientMetadata | None = None
    user_agent: UserAgent = attrs.field(factory=LoopbackUserAgent)
    grant: UserlessGrant | None = None
    registered: Mapping[str, RegisteredClient] = attrs.field(
        factory=dict[str, "RegisteredClient"], repr=False
    )
    scopes: Sequence[str] | None = None
    storage: TokenStorage = attrs.field(factory=MemoryTokenStorage)
    proofs: ProofSigner | None = attrs.field(default=None, repr=False)
    assertions: AssertionSigner | None = attrs.field(default=None, repr=False)
    on_assertion: OnAssertion | None = attrs.field(default=None, repr=False)
    on_client: OnClient | None = attrs.field(default=None, repr=False)
    on_step: Callable[[StepTaken], object] | None = attrs.field(default=None, repr=False)
    config: AuthorizationConfig | None = None
    proxies: Sequence[str] = attrs.field(default=(), converter=_urls, repr=False)
