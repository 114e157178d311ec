"""The client's side of authorization, as one object without I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, final

from ..._spec.errors import LocalProtocolError
from ..._wire.setting_checks import check_function, check_kind, check_mapping, check_text, is_number
from .._common.addresses import AddressRules, Reach, RefusedURL, reach_of_host, read_url
from .._common.requests import HTTPRequest, HTTPResponse
from .clients import Clients, copy_of
from .core import Core, Entropy
from .demand import read_demand
from .events import Attempt, AuthorizationEvent, AuthorizationFailure, AuthorizationStep
from .flow import Flow
from .proofs import Proofs, is_asymmetric
from .revisions import NEWEST, REVISIONS
from .revocation import Revocation
from .settings import (
    AssertionSigner,
    AuthorizationCode,
    AuthorizationConfig,
    ClientCredentials,
    ClientMetadata,
    EnterpriseManaged,
    Grant,
    ProofSigner,
    RegisteredClient,
    WorkloadIdentity,
)
from .states import AuthorizationState
from .wallet import Wallet

if TYPE_CHECKING:
    from ...http import AuthorizationRequired

_GRANTS: Final = (AuthorizationCode, ClientCredentials, EnterpriseManaged, WorkloadIdentity)
_DEFAULT_CONFIG: Final = AuthorizationConfig()


@final
class AuthorizationClient:
    """Gets access tokens for one MCP server, without I/O.

    It takes challenges, responses, callbacks and the time; it gives HTTP requests to make, a URL to
    open, credentials to store, and one ending for each attempt. At most one attempt runs at a time:
    all requests that need a token wait for the same one.

    Times: `now` is the caller's clock, in seconds, never decreasing. `at` is Unix time.

    Source: MCP 2026-07-28, basic/authorization.
    """

    __slots__ = ("_clients", "_core", "_flow", "_proofs", "_revocation", "_wallet")

    def __init__(
        self,
        server_url: str,
        *,
        grant: Grant,
        entropy: Entropy,
        client: ClientMetadata | None = None,
        registered: Mapping[str, RegisteredClient] | None = None,
        proofs: ProofSigner | None = None,
        assertions: AssertionSigner | None = None,
        config: AuthorizationConfig = _DEFAULT_CONFIG,
    ) -> None:
        """Make a client for one MCP server.

        Args:
            server_url: The URL of the MCP server.
            grant: The way to get a token.
            entropy: Gives as many unguessable bytes as it is asked for: `secrets.token_bytes`.
            client: The description of this client.
            registered: Credentials that were registered beforehand, by the issuer of the
                authorization server that they are for.
            proofs: Signs DPoP proofs. Tokens are then bound to its key wherever the authorization
                server supports that.
            assertions: Signs the assertions of a client that authenticates with a key.
            config: Limits and policies.

        Raises:
            ValueError: A setting is wrong.
        """
        check_kind("grant", grant, object)
        if not isinstance(grant, _GRANTS):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            names = ", ".join(kind.__name__ for kind in _GRANTS)
            raise ValueError(f"grant must be one of {names}, not {type(grant).__name__}")
        check_function("entropy", entropy)
        check_kind("client", client, ClientMetadata, optional=True)
        check_kind("config", config, AuthorizationConfig)
        metadata = client or ClientMetadata()
        _check_redirect_uri(metadata, grant)
        registered = {} if registered is None else registered
        check_mapping("registered", registered)
        if proofs is not None and not is_asymmetric(proofs.algorithm):
            raise ValueError(
                f"proofs must sign with an asymmetric algorithm, not {proofs.algorithm!r}"
            )
        try:
            server = read_url(server_url)
        except RefusedURL as error:
            raise ValueError(f"server_url {error}") from None
        reach = reach_of_host(server.host)
        if server.scheme == "http" and reach is not Reach.LOOPBACK:
            raise ValueError(
                "server_url is plain http, which only loopback may be: "
                "tokens would go over the network unencrypted; use https"
            )
        rules = AddressRules(reach, allowed=config.allow_addresses)
        self._core: Final = Core(server, rules, config, proofs, assertions, entropy)
        self._clients: Final = Clients(self._core, metadata, copy_of(registered))
        self._wallet: Final = Wallet(self._core)
        self._proofs: Final = Proofs(self._core)
        self._revocation: Final = Revocation(self._core, self._clients)
        self._flow: Final = Flow(self._core, grant, self._clients, self._wallet, self._proofs)

    # ------------------------------------------------------------------------- from the application

    def restore(self, stored: Mapping[str, object]) -> bool:
        """Take credentials that were stored, by their issuer.

        Records of another MCP server, or without their issuer, are ignored.

        Returns:
            Whether there is a token now.
        """
        check_mapping("stored", stored)
        self._wallet.load(stored)
        return self._wallet.tokens is not None

    def authorize(
        self,
        challenge: AuthorizationRequired | None = None,
        *,
        revision: str | None = None,
        stored: Mapping[str, object] | None = None,
        now: float,
        at: float,
    ) -> Attempt:
        """Begin an attempt, or join the one that is running.

        Args:
            challenge: The refusal of the MCP server. None: a token is wanted in advance; if the
                one at hand is valid, the attempt ends at once, and an expired one is refreshed.
            revision: The revision of the conversation; None: the newest.
            stored: As in `restore`.
            now: The caller's clock.
            at: The Unix time, for the end of tokens and for proofs.

        Returns:
            The handle that the ending will carry.

        Raises:
            LocalProtocolError: The revision is unknown. Nothing was begun.
        """
        revision = NEWEST if revision is None else revision
        if revision not in REVISIONS:
            raise LocalProtocolError("AUTH-002", f"there is no revision {revision!r}")
        if not is_number(at):
            raise LocalProtocolError("AUTH-283", "at must be the Unix time, a number of seconds")
        core = self._core
        core.tell(now)
        core.tell_wall_clock(at)
        before = self._wallet.tokens
        if stored is not None:
            self.restore(stored)
        if core.attempt is not None:
            return core.attempt
        attempt = core.attempt = Attempt()
        demand = None if challenge is None else read_demand(challenge)
        request = None if challenge is None else challenge.request
        self._flow.begin(demand, request, revision, before)
        return attempt

    def receive_callback(self, url: str, *, now: float | None = None) -> bool:
        """Take the URL to which the authorization server has sent the user.

        Returns:
            Whether the URL belongs to the attempt. If not, it was ignored, and the attempt goes on:
            anybody can open the redirect URI.
        """
        check_text("url", url)
        self._core.tell(now)
        if not self._flow.is_waiting(AuthorizationState.USER_AGENT):
            return False
        return self._flow.user.receive_callback(url)

    def provide_client(self, client: RegisteredClient | None, *, now: float | None = None) -> bool:
        """Answer `ClientWanted`. None: there is no client id, and the attempt fails.

        Returns:
            False if no attempt waits for it (any longer).
        """
        check_kind("client", client, RegisteredClient, optional=True)
        self._core.tell(now)
        if not self._flow.is_waiting(AuthorizationState.CLIENT_WANTED):
            return False
        self._flow.provide_client(client)
        return True

    def provide_assertion(self, assertion: str | None, *, now: float | None = None) -> bool:
        """Answer `AssertionWanted`. None: there is no assertion, and the attempt fails.

        Returns:
            False if no attempt waits for it (any longer).
        """
        if not isinstance(assertion, str | None):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise ValueError("assertion must be a string or None")
        self._core.tell(now)
        if not self._flow.is_waiting(AuthorizationState.ASSERTION_WANTED):
            return False
        self._flow.provide_assertion(assertion)
        return True

    def cancel(self) -> bool:
        """End the attempt that is running; False without one."""
        if self._core.attempt is None:
            return False
        consequence = self._flow.doubt_client()
        text = f"the application has cancelled the attempt{consequence}"
        self._core.fail(AuthorizationFailure.CANCELLED, text)
        return True

    def log_out(
        self, *, stored: Mapping[str, object] | None = None, now: float, at: float
    ) -> Attempt:
        """Forget all credentials, and begin an attempt to revoke the tokens in use.

        An attempt that is running is cancelled. The records are to be deleted at once
        (`CredentialsToStore`); what follows is of no importance here: it ends in `LoggedOut`, or in
        `AuthorizationFailed` if the authorization server has not revoked the tokens. Then they are
        valid there until they end.

        Args:
            stored: As in `restore`.
            now: The caller's clock.
            at: The Unix time.

        Returns:
            The handle that the ending will carry.

        Source: RFC 7009.
        """
        self.cancel()
        core = self._core
        core.tell(now)
        core.tell_wall_clock(at)
        if stored is not None:
            self.restore(stored)
        credentials = self._wallet.current
        self._wallet.forget()
        attempt = core.attempt = Attempt()
        core.step = AuthorizationStep.REVOCATION
        self._revocation.start(credentials)
        return attempt

    def forget(self) -> None:
        """Cancel the attempt that is running, and forget all credentials that were stored."""
        self.cancel()
        self._wallet.forget()

    def headers(self, method: str, url: str, *, at: float) -> list[tuple[str, str]]:
        """Return the headers that authorize one request to the MCP server.

        Call it for each request, retries included: a proof is valid for one request only. Without a
        token, and for a URL of another origin, there are no headers. Keeps AUTH-007, AUTH-008,
        AUTH-009, AUTH-286, AUTH-396, AUTH-398, AUTH-399.

        Args:
            method: The HTTP method of the request.
            url: The URL of the request.
            at: The Unix time.
        """
        tokens = self._wallet.tokens
        try:
            is_ours = read_url(url).origin == self._core.server.origin
        except RefusedURL:
            is_ours = False
        if tokens is None or not is_ours:
            return []
        if not tokens.bound:
            return [("Authorization", tokens.header)]
        if self._core.proofs is None:
            return []
        return [
            ("Authorization", tokens.header),
            self._proofs.make(method, url, at=at, token=tokens.access_token),
        ]

    # --------------------------------------------------------------------------- from the transport

    def receive_response(
        self,
        request: HTTPRequest,
        status: int,
        headers: Iterable[tuple[str, str]],
        body: bytes,
        *,
        now: float | None = None,
    ) -> bool:
        """Take the response to an `HTTPRequest`.

        Returns:
            False if the request is not waited for (any longer): nothing has changed.
        """
        core = self._core
        core.tell(now)
        requester = core.take(request)
        if requester is None:
            return False
        if len(body) > request.max_body_bytes:
            text = f"the body has more than {request.max_body_bytes} bytes"
            requester.receive_failure(request, text)
        else:
            requester.receive(request, HTTPResponse(status, tuple(headers), bytes(body)))
        return True

    def receive_failure(self, request: HTTPRequest, text: str, *, now: float | None = None) -> bool:
        """Take the news that an `HTTPRequest` got no response that can be used.

        Args:
            request: The request.
            text: What happened, for people.
            now: The caller's clock.

        Returns:
            False if the request is not waited for (any longer): nothing has changed.
        """
        check_text("text", text)
        self._core.tell(now)
        requester = self._core.take(request)
        if requester is None:
            return False
        requester.receive_failure(request, text)
        return True

    def receive_server_head(
        self, status: int, headers: Iterable[tuple[str, str]], *, authorization: str | None
    ) -> None:
        """Learn from the head of a response of the MCP server itself.

        Call it for each of them, before `authorize` with its challenge. A nonce in the headers goes
        into the next proof. A status of 200 to 299 for a request with the token in use says that
        the server has accepted it, so that the limits on attempts in a row count anew. Any other
        one may come from something in front of the server, which has looked at no token.
        Keeps AUTH-405.

        Args:
            status: The status.
            headers: The headers of the response.
            authorization: The header Authorization of the request; None: it had none.
        """
        self._proofs.learn(self._core.server.text, headers)
        tokens = self._wallet.tokens
        if tokens is not None and 200 <= status < 300 and authorization == tokens.header:
            self._flow.accepted()

    def handle_timeout(self, now: float) -> None:
        """Let the time go on to `now`: waits whose deadline has come end."""
        self._core.tell(now)
        self._flow.expire()

    # -------------------------------------------------------------------------------- to the caller

    def next_event(self) -> AuthorizationEvent | None:
        """Return the next event; None: there is none now."""
        events = self._core.events
        return events.popleft() if events else None

    def next_timeout(self) -> float | None:
        """The time, on the caller's clock, at which `handle_timeout` is due; None without any."""
        return self._core.deadline

    # -------------------------------------------------------------------------------------- looking

    @property
    def attempt(self) -> Attempt | None:
        """The attempt that is running; None without one."""
        return self._core.attempt

    @property
    def authorized(self) -> bool:
        """Whether there is a token, which may have expired."""
        return self._wallet.tokens is not None

    @property
    def issuer(self) -> str | None:
        """The authorization server of the token; None without a token."""
        current = self._wallet.current
        return None if current is None else current.issuer

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes of the token; empty without a token."""
        tokens = self._wallet.tokens
        return () if tokens is None else tokens.scopes

    @property
    def expires_at(self) -> float | None:
        """The end of the token in Unix seconds; None: it is not known, or there is no token."""
        tokens = self._wallet.tokens
        return None if tokens is None else tokens.expires_at

    @property
    def renews_alone(self) -> bool:
        """Whether the next token can be had without the user, as far as is known."""
        tokens = self._wallet.tokens
        return self._flow.is_userless or (tokens is not None and tokens.refresh_token is not None)

    def needs_refresh(self, at: float) -> bool:
        """Whether the token has expired, or will within `AuthorizationConfig.refresh_margin`.

        Then call `authorize` without a challenge before the next request.
        """
        tokens = self._wallet.tokens
        return tokens is not None and tokens.is_due(at, self._core.config.refresh_margin)

    def __repr__(self) -> str:
        return f"<AuthorizationClient {self._core.server.text} attempt={self._core.attempt!r}>"


def _check_redirect_uri(metadata: ClientMetadata, grant: Grant) -> None:
    """Keeps AUTH-071, AUTH-263."""
    if (
        isinstance(grant, AuthorizationCode)
        and metadata.url is not None
        and metadata.redirect_uris
        and grant.redirect_uri not in metadata.redirect_uris
    ):
        raise ValueError(
            "the redirect_uri of the grant must be one of redirect_uris in the metadata document"
        )
