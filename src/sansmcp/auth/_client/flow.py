"""The order of the steps of an attempt: what follows from each result.

Source: MCP 2026-07-28, basic/authorization, Authorization Flow Steps; MCP 2025-03-26,
basic/authorization, Decision Flow Overview.
"""

from __future__ import annotations

from typing import Final

import attrs

from ..._wire.values import JSONObject
from .._common.requests import printable
from .clients import Clients
from .core import Core, Refused
from .credentials import Client, ClientKind, Credentials, Tokens
from .demand import Demand
from .events import (
    AssertionWanted,
    AuthorizationFailure,
    AuthorizationStep,
    ClientWanted,
    StepOutcome,
)
from .identity import IdentityExchange
from .proofs import BAD_PROOF, USE_NONCE, Proofs
from .registration import Registration
from .resource import ResourceDiscovery, ResourceMetadata, canonical_uri
from .revisions import NEWEST, REVISIONS, RevisionRules
from .scopes import ScopeMemory, of_resource, with_offline_access
from .server import ServerDiscovery, ServerMetadata
from .settings import (
    AuthorizationCode,
    ClientCredentials,
    EnterpriseManaged,
    Grant,
    RegisteredClient,
    WorkloadIdentity,
)
from .states import AuthorizationState, AuthorizationTrigger
from .token_endpoint import TokenEndpoint, TokenRequest, read_tokens
from .user_agent import PendingAuthorization, UserAuthorization, check_pkce
from .wallet import Wallet

_JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_UNKNOWN_CLIENT: Final = frozenset({"invalid_client", "unauthorized_client"})
_MAX_CHALLENGED: Final = 64
_REFRESH_REFUSED: Final = frozenset({"invalid_grant"}) | _UNKNOWN_CLIENT
# The server does not take this refresh, and says nothing about the refresh token.
_NO_REFRESH: Final = frozenset(
    {"invalid_request", "invalid_scope", "invalid_target", "unsupported_grant_type"}
)


@attrs.define(eq=False, repr=False)
class Flow:
    """Decides the next step. Each part reports its result here.

    Attributes:
        user: The authorization request that a user agent opens.
    """

    _core: Core
    _grant: Grant
    _clients: Clients
    _wallet: Wallet
    _proofs: Proofs
    user: UserAuthorization = attrs.field(init=False)
    _resources: ResourceDiscovery = attrs.field(init=False)
    _servers: ServerDiscovery = attrs.field(init=False)
    _registration: Registration = attrs.field(init=False)
    _tokens: TokenEndpoint = attrs.field(init=False)
    _identity: IdentityExchange = attrs.field(init=False)
    _scopes: ScopeMemory = attrs.field(init=False)
    # Of the attempt that is running, or of the last one.
    _revision: str = attrs.field(default=NEWEST, init=False)
    _demand: Demand | None = attrs.field(default=None, init=False)
    _resource: ResourceMetadata | None = attrs.field(default=None, init=False)
    _server: ServerMetadata | None = attrs.field(default=None, init=False)
    _bound: bool = attrs.field(default=False, init=False)  # tokens, to the key of the client
    _client: Client | None = attrs.field(default=None, init=False)
    _asked: tuple[str, ...] = attrs.field(default=(), init=False)  # scopes, with offline_access
    _discovered: bool = attrs.field(default=False, init=False)  # by this attempt
    _registered: bool = attrs.field(default=False, init=False)  # by this attempt
    _refreshes: bool = attrs.field(default=True, init=False)  # the attempt may refresh
    _sent: str = attrs.field(default="", init=False)  # the refresh token that was sent
    _said: str = attrs.field(default="", init=False)  # by the MCP server, about its refusal
    # Since the MCP server last accepted a token.
    _unaccepted: int = attrs.field(default=0, init=False)
    _without_nonce: list[object] = attrs.field(factory=list[object], init=False)
    _bad_proofs: list[object] = attrs.field(factory=list[object], init=False)

    def __attrs_post_init__(self) -> None:
        """Make the parts."""
        core, clients, proofs = self._core, self._clients, self._proofs
        self.user = UserAuthorization(core, self)
        self._resources = ResourceDiscovery(core, self)
        self._servers = ServerDiscovery(core, self)
        self._registration = Registration(core, clients, self)
        self._tokens = TokenEndpoint(core, clients, proofs, self)
        self._identity = IdentityExchange(core, self, clients, proofs)
        self._scopes = ScopeMemory(core.config.max_step_ups)

    # -------------------------------------------------------------------------------- the beginning

    def begin(
        self, demand: Demand | None, request: object, revision: str, before: Tokens | None
    ) -> None:
        """Begin an attempt.

        Args:
            demand: What the MCP server demands; None: the application wants a token in advance.
            request: The handle of the request that was refused.
            revision: The revision of the conversation.
            before: The tokens in use before the stored ones were read again.
        """
        self._demand, self._revision, self._discovered = demand, revision, False
        self._refreshes, self._registered = True, False
        self._said = self._reason_in(demand, before)
        self._core.step = AuthorizationStep.CHALLENGE
        if demand is None:
            self._begin_in_advance()
        elif USE_NONCE in demand.errors:
            self._add_nonce(request)
        elif BAD_PROOF in demand.errors and before is not None and before.bound:
            self._renew_proof(request)
        elif demand.status == 401 and before is not None and self._has_other(before.access_token):
            self._succeed_with_stored()
        elif demand.status == 403 and not self._may_step_up(demand):
            pass  # it has failed
        else:
            self._discover()

    def _reason_in(self, demand: Demand | None, before: Tokens | None) -> str:
        """What the server says of its refusal, to be added to a sentence; may be empty."""
        known = [tokens for tokens in (before, self._wallet.tokens) if tokens is not None]
        secrets = [secret for one in known for secret in (one.access_token, one.refresh_token)]
        text = "" if demand is None else printable(demand.description, secrets)
        return f"; it says: {text}" if text else ""

    def _has_other(self, access_token: str) -> bool:
        """Whether there is another token than this one, which is still valid."""
        tokens = self._wallet.tokens
        return (
            tokens is not None
            and tokens.access_token != access_token
            and not tokens.is_due(self._core.at, 0)
        )

    def _succeed_with_stored(self) -> None:
        """Use the token that another process has stored: it may have used our refresh token up."""
        self._core.note(StepOutcome.DONE, "stored token", "it is newer than the refused one")
        self._succeed()

    @property
    def is_userless(self) -> bool:
        """Whether the grant needs no user."""
        return not isinstance(self._grant, AuthorizationCode)

    def accepted(self) -> None:
        """The MCP server has accepted the token."""
        self._unaccepted = 0
        self._without_nonce.clear()
        self._bad_proofs.clear()

    def _begin_in_advance(self) -> None:
        tokens, server = self._wallet.tokens, self._server
        margin = self._core.config.refresh_margin
        if tokens is not None and not tokens.is_due(self._core.at, margin):
            self._core.note(StepOutcome.DONE, "stored token", "it is still valid")
            self._succeed()
        elif server is not None and (client := self._refreshing_client(server)) is not None:
            self.running_at(server)
            self._refresh(server, client)
        else:
            self._discover()

    def running_at(self, server: ServerMetadata) -> None:
        """Note the authorization server of the attempt."""
        self._core.running._issuer = server.issuer

    def _add_nonce(self, request: object) -> None:
        """Send the request again with the nonce that came with the challenge.

        The same token is sent: that is no reason for a new authorization. Keeps AUTH-404, AUTH-406.
        """
        core, tokens = self._core, self._wallet.tokens
        if tokens is None or not tokens.bound or not self._proofs.has_nonce(core.server.origin):
            text = "the server wants a nonce in a proof, and there is no proof, or no nonce"
            core.fail(AuthorizationFailure.UNSUPPORTED, text, "AUTH-404")
        elif any(one is request for one in self._without_nonce):
            text = "the server wants a nonce again for a request that was sent with one"
            core.fail(AuthorizationFailure.TOO_MANY_ATTEMPTS, text, "AUTH-406")
        else:
            self._without_nonce.append(request)
            del self._without_nonce[:-_MAX_CHALLENGED]
            core.note(
                StepOutcome.DONE,
                "proof of the request",
                "the server wants a nonce in the proof, and gives one",
                rule="AUTH-404",
            )
            self._succeed()

    def _renew_proof(self, request: object) -> None:
        """Send the request once more with a new proof: the token was not refused. Keeps AUTH-396.

        A new login would give a token that the same key, and the same clock, make no better proof
        for.
        """
        core = self._core
        if any(one is request for one in self._bad_proofs):
            text = (
                "the server refuses the DPoP proof of a request that was sent with a new one: "
                "check the clock of this machine, and that the key is the one that the token is "
                "bound to"
            )
            core.fail(AuthorizationFailure.FORBIDDEN, text, "AUTH-396")
            return
        self._bad_proofs.append(request)
        del self._bad_proofs[:-_MAX_CHALLENGED]
        text = "the server refuses the proof, and not the token: a new proof is sent"
        core.note(StepOutcome.DONE, "proof of the request", text, rule="AUTH-396")
        self._succeed()

    def _may_step_up(self, demand: Demand) -> bool:
        """Whether a 403 leads to a step-up; else the attempt has failed. Keeps AUTH-303."""
        core = self._core
        if "insufficient_scope" not in demand.errors or demand.scopes is None:
            text = "the server answers 403, and does not name scopes that would help"
            core.fail(AuthorizationFailure.FORBIDDEN, text, "AUTH-303")
            return False
        try:
            self._scopes.count_step_up(demand.scopes)
        except Refused as refused:
            core.fail(refused.reason, f"{refused}{self._said}", refused.rule)
            return False
        return True

    # ------------------------------------------------------------------------------------ discovery

    @property
    def _rules(self) -> RevisionRules:
        return REVISIONS[self._revision]

    def _discover(self) -> None:
        """Read all metadata again: the authorization server may have changed. Keeps AUTH-224."""
        self._resource = self._server = None
        self._discovered = True
        named = None if self._demand is None else self._demand.resource_metadata
        current = self._wallet.current
        if self._rules.resource_metadata or named is not None:
            self._resources.start(named, None if current is None else current.resource_metadata)
        else:
            self._servers.start_at_origin(self._revision)

    def resource_found(self, metadata: ResourceMetadata) -> None:
        """Choose an authorization server. Keeps AUTH-219."""
        core = self._core
        self._resource = metadata
        if metadata.bound_tokens and core.proofs is None:
            text = "the server takes tokens with DPoP proofs only, and there is no signer of proofs"
            core.fail(AuthorizationFailure.UNSUPPORTED, text, "AUTH-398")
            return
        servers = metadata.authorization_servers
        known = [one for one in servers if self._clients.knows(one)]
        stored = [one for one in servers if self._wallet.of(one) is not None]
        self._servers.start((known or stored or servers)[0])

    def resource_absent(self) -> None:
        """Go on as 2025-03-26 says. Keeps AUTH-206, AUTH-207."""
        self._core.note(
            StepOutcome.SKIPPED,
            "metadata of the protected resource",
            "there is none: the authorization server is looked for as 2025-03-26 says",
            rule="AUTH-206",
        )
        self._servers.start_at_origin(self._revision)

    def server_found(self, metadata: ServerMetadata) -> None:
        """Refresh the token, or ask for a new one. Keeps AUTH-080, AUTH-287, AUTH-304."""
        self.running_at(metadata)
        try:
            self._bound = self._is_bound(metadata)
        except Refused as refused:
            self._refuse(refused)
            return
        self._server = metadata
        if self._wallet.change_server(metadata.issuer):
            self._core.note(
                StepOutcome.DONE,
                "metadata of the authorization server",
                f"the authorization server has changed to {metadata.issuer}: nothing that another "
                "one has issued is used",
                rule="AUTH-079",
            )
        if self._unaccepted >= self._core.config.max_authorizations:
            self._core.step = AuthorizationStep.TOKEN
            text = f"the server has accepted none of {self._unaccepted} tokens in a row{self._said}"
            self._core.fail(AuthorizationFailure.TOO_MANY_ATTEMPTS, text, "AUTH-304")
            return
        client = self._refreshing_client(metadata)
        if client is not None:
            self._refresh(metadata, client)
        else:
            self._authorize()

    # -------------------------------------------------------------------------------------- refresh

    def _refreshing_client(self, server: ServerMetadata) -> Client | None:
        """The client that may refresh the token in use; None: a refresh does not help.

        Keeps AUTH-088: a token without a refresh token is replaced by a new authorization.
        """
        current, demand, tokens = self._wallet.current, self._demand, self._wallet.tokens
        if (
            not self._refreshes
            or current is None
            or tokens is None
            or tokens.refresh_token is None
            or current.issuer != server.issuer
        ):
            return None
        if demand is not None and (
            demand.status != 401
            or (tokens.refreshed and self._unaccepted)
            or not set(of_resource(demand.scopes or ())) <= set(tokens.scopes)
        ):
            return None
        return self._clients.same(current, server)

    def _refresh(self, server: ServerMetadata, client: Client) -> None:
        """Keeps AUTH-288, AUTH-289: the resource is named, and no scope is asked for."""
        tokens = self._wallet.tokens
        assert tokens is not None
        assert tokens.refresh_token is not None
        self._client, self._asked, self._sent = client, tokens.scopes, tokens.refresh_token
        form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh_token}
        self._request_token(server, client, form, AuthorizationTrigger.REFRESH)

    # -------------------------------------------------------------------------- a new authorization

    def _authorize(self) -> None:
        """Ask for a token with the grant of the application."""
        core, server = self._core, self._server
        assert server is not None
        self._choose_scopes(server)
        core.step = AuthorizationStep.CLIENT
        try:
            match self._grant:
                case AuthorizationCode(redirect_uri=redirect_uri):
                    self._authorize_by_user(server, redirect_uri)
                case ClientCredentials() | EnterpriseManaged():
                    self._authorize_with(
                        self._clients.registered(server) or self._clients.by_metadata_url(server)
                    )
                case _:
                    self._authorize_with(
                        self._clients.registered(server)
                        or Client(kind=ClientKind.ANONYMOUS, client_id="", auth_method="none")
                    )
        except Refused as refused:
            self._refuse(refused)

    def _choose_scopes(self, server: ServerMetadata) -> None:
        demand, resource, rules = self._demand, self._resource, self._rules
        tokens = self._wallet.tokens
        if not self._scopes.requested and tokens is not None:
            self._scopes.requested = tokens.scopes
        chosen = self._scopes.choose(
            None if demand is None else demand.scopes,
            self._grant.scopes,
            None if resource is None else resource.scopes,
            union=rules.union,
        )
        self._scopes.requested = chosen
        if not self._wants_refresh_tokens():
            self._asked = of_resource(chosen)
        elif rules.offline_access:
            self._asked = with_offline_access(chosen, server.scopes)
        else:
            self._asked = chosen
        text = " ".join(self._asked) or "none: neither challenge nor metadata names any"
        self._core.note(
            StepOutcome.DONE,
            "choice of scopes",
            text,
            step=AuthorizationStep.SCOPES,
            rule="AUTH-061",
        )

    def _wants_refresh_tokens(self) -> bool:
        """Keeps AUTH-295, AUTH-364."""
        return (
            isinstance(self._grant, AuthorizationCode)
            and self._clients.metadata.refresh
            and self._core.config.offline_access
        )

    def _authorize_by_user(self, server: ServerMetadata, redirect_uri: str) -> None:
        """Choose a client id, or get one. Keeps AUTH-067, AUTH-068, AUTH-265, AUTH-275."""
        clients = self._clients
        self.user.check_logins()
        check_pkce(server, must_list=self._rules.pkce_listed and not server.legacy)
        client = (
            clients.registered(server)
            or clients.by_metadata_url(server)
            or clients.kept(self._wallet.of(server.issuer), redirect_uri)
        )
        if client is not None:
            self._note_client(client)
            self._open_user_agent(server, client)
        elif server.registration_endpoint is not None:
            self._registration.start(server, server.registration_endpoint, redirect_uri)
        else:
            self._ask_client(server)

    def _note_client(self, client: Client) -> None:
        text = f"{client.kind.value}, authenticated by {client.auth_method}"
        self._core.note(
            StepOutcome.DONE,
            "choice of a client",
            text,
            step=AuthorizationStep.CLIENT,
            rule="AUTH-067",
        )

    def _ask_client(self, server: ServerMetadata) -> None:
        """Keeps AUTH-081, AUTH-205, AUTH-354."""
        core = self._core
        if core.config.ask_for_client:
            core.move(AuthorizationTrigger.ASK_CLIENT, AuthorizationStep.CLIENT)
            core.wait_for_user()
            core.events.append(ClientWanted(issuer=server.issuer))
            return
        raise Refused(
            AuthorizationFailure.NO_CLIENT,
            f"there is no client id for {server.issuer}: register one there, and give it as "
            "registered={issuer: RegisteredClient(...)}",
            "AUTH-068",
        )

    def provide_client(self, client: RegisteredClient | None) -> None:
        """Go on with a client id, or without."""
        core, server = self._core, self._server
        assert server is not None
        if client is None:
            text = f"the application has no client id for {server.issuer}"
            core.fail(AuthorizationFailure.NO_CLIENT, text, "AUTH-068")
            return
        self._clients.provide(server.issuer, client)
        try:
            registered = self._clients.registered(server)
            assert registered is not None
            if isinstance(self._grant, AuthorizationCode):
                self._note_client(registered)
                self._open_user_agent(server, registered)
            else:
                self._authorize_with(registered)
        except Refused as refused:
            self._refuse(refused)

    def client_registered(self, client: Client) -> None:
        """Keep a registration, and go on.

        Where there are tokens of an earlier client, both are kept until the new one has tokens: the
        user may not log in, and is logged in still.
        """
        server = self._server
        assert server is not None
        self._registered = True
        earlier = self._wallet.of(server.issuer)
        if earlier is None or earlier.tokens is None:
            self._wallet.keep_client(self._credentials(server), client)
        try:
            self._open_user_agent(server, client)
        except Refused as refused:
            self._refuse(refused)

    def _credentials(self, server: ServerMetadata) -> Credentials:
        resource = self._resource
        return Credentials(
            issuer=server.issuer,
            server=self._core.server.text,
            resource=self._resource_parameter(),
            resource_metadata=None if resource is None else resource.url,
            client=None,
            tokens=None,
        )

    def _open_user_agent(self, server: ServerMetadata, client: Client) -> None:
        assert isinstance(self._grant, AuthorizationCode)
        self._client = client
        resource = self._resource_parameter()
        self.user.start(server, client, self._grant.redirect_uri, self._asked, resource)

    def doubt_client(self) -> str:
        """Register anew next time if the user does not come back, and say so.

        An authorization server that has forgotten a client shows that to the user, and sends nobody
        back (RFC 6749, section 4.1.2.1).
        """
        client, server = self._client, self._server
        if (
            not self.is_waiting(AuthorizationState.USER_AGENT)
            or self._registered
            or client is None
            or client.kind is not ClientKind.DYNAMIC
        ):
            return ""
        assert server is not None
        self._wallet.doubt_client(server.issuer, client)
        return (
            "; the authorization server may have forgotten the registration of this client: the "
            "next login makes a new one"
        )

    def expire(self) -> None:
        """End the wait whose deadline has come, if there is one."""
        if self._core.is_due:
            self._core.expire(self.doubt_client())

    def _resource_parameter(self) -> str | None:
        """Keeps AUTH-045, AUTH-047, AUTH-215, AUTH-216, AUTH-217."""
        if self._resource is not None:
            return self._resource.resource
        return canonical_uri(self._core.server) if self._rules.resource_metadata else None

    def code_received(self, authorization: PendingAuthorization, code: str) -> None:
        """Exchange an authorization code for a token."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": authorization.redirect_uri,
            "code_verifier": authorization.verifier,
        }
        self._request_token(authorization.server, authorization.client, form)

    # ------------------------------------------------------------------------ grants without a user

    def _authorize_with(self, client: Client | None) -> None:
        """Ask for a token as a client that acts for itself or for an enterprise.

        Keeps AUTH-353, AUTH-355, AUTH-363, AUTH-377, AUTH-418.
        """
        server, grant = self._server, self._grant
        assert server is not None
        is_secret = client is not None and client.auth_method != "none"
        if client is None or (isinstance(grant, ClientCredentials) and not is_secret):
            self._ask_client(server)
            return
        self._client = client
        self._note_client(client)
        match grant:
            case EnterpriseManaged(subject_token=assertion):
                self._assert(server, assertion)
            case WorkloadIdentity(assertion=assertion):
                self._assert(server, assertion)
            case _:
                self._request_grant(server, client, {"grant_type": "client_credentials"})

    def _assert(self, server: ServerMetadata, assertion: str | None) -> None:
        """Keeps AUTH-421, AUTH-424."""
        if assertion is not None:
            self._use_assertion(server, assertion)
            return
        core = self._core
        core.move(AuthorizationTrigger.ASK_ASSERTION, AuthorizationStep.ASSERTION)
        core.wait_for_user()
        core.events.append(
            AssertionWanted(
                issuer=server.issuer,
                token_endpoint=server.token_endpoint,
                resource=self._resource_parameter() or canonical_uri(core.server),
            )
        )

    def provide_assertion(self, assertion: str | None) -> None:
        """Go on with an assertion, or without."""
        server = self._server
        assert server is not None
        if assertion is None:
            text = "the application has no assertion"
            self._core.fail(AuthorizationFailure.NO_ASSERTION, text, "AUTH-421")
            return
        self._use_assertion(server, assertion)

    def _use_assertion(self, server: ServerMetadata, assertion: str) -> None:
        """Keeps AUTH-368, AUTH-369, AUTH-375, AUTH-376, AUTH-417, AUTH-423."""
        if not isinstance(self._grant, EnterpriseManaged):
            self._request_jwt_grant(assertion)
            return
        target = {"audience": server.issuer}
        resource = self._resource_parameter()
        if resource is not None:
            target["resource"] = resource
        if self._asked:
            target["scope"] = " ".join(self._asked)
        self._identity.start(self._grant, assertion, target)

    def grant_received(self, grant: str) -> None:
        """Use the grant of the identity provider at the authorization server."""
        self._request_jwt_grant(grant)

    def _request_jwt_grant(self, assertion: str) -> None:
        server, client = self._server, self._client
        assert server is not None
        assert client is not None
        form = {"grant_type": _JWT_BEARER, "assertion": assertion}
        self._request_grant(server, client, form)

    def _request_grant(self, server: ServerMetadata, client: Client, form: dict[str, str]) -> None:
        """Keeps AUTH-362, AUTH-384."""
        if self._asked:
            form["scope"] = " ".join(self._asked)
        self._request_token(server, client, form)

    # ------------------------------------------------------------------------------------ the token

    def _request_token(
        self,
        server: ServerMetadata,
        client: Client,
        form: dict[str, str],
        trigger: AuthorizationTrigger = AuthorizationTrigger.REQUEST_TOKEN,
    ) -> None:
        resource = self._resource_parameter()
        if resource is not None:
            form["resource"] = resource
        is_refresh = trigger is AuthorizationTrigger.REFRESH
        self._tokens.start(
            TokenRequest(
                url=server.token_endpoint,
                form=form,
                client=client,
                audience=server.issuer,
                bound=self._bound,
                trigger=trigger,
                step=AuthorizationStep.REFRESH if is_refresh else AuthorizationStep.TOKEN,
                tried="refresh request" if is_refresh else f"token request ({form['grant_type']})",
            )
        )

    def _is_bound(self, server: ServerMetadata) -> bool:
        """Whether tokens are bound to the key of this client.

        Raises:
            Refused: They should be, and the key has an algorithm that the server does not list.
        """
        if self._core.proofs is None:
            return False
        if self._proofs.suits(server.proof_algorithms):
            return True
        if server.proof_algorithms is None and not (
            self._resource is not None and self._resource.bound_tokens
        ):
            return False
        raise Refused(
            AuthorizationFailure.UNSUPPORTED,
            "the signer of proofs has no algorithm that `dpop_signing_alg_values_supported` lists",
            "AUTH-401",
        )

    def token_answered(self, document: JSONObject) -> None:
        """Judge the tokens, store them, and end the attempt. Keeps AUTH-309."""
        core, server, demand = self._core, self._server, self._demand
        assert server is not None
        is_refresh = core.step is AuthorizationStep.REFRESH
        tried = "refresh request" if is_refresh else "token request"
        try:
            tokens = read_tokens(
                document,
                at=core.at,
                bound=self._bound,
                scopes=self._asked,
                earlier=self._wallet.tokens if is_refresh else None,
            )
        except Refused as refused:
            core.note(StepOutcome.FAILED, tried, str(refused), rule=refused.rule)
            core.fail(refused.reason, f"the response to the {tried}: {refused}", refused.rule)
            return
        if isinstance(self._grant, ClientCredentials | WorkloadIdentity):
            tokens = attrs.evolve(tokens, refresh_token=None)
        self._wallet.use(
            attrs.evolve(self._credentials(server), client=self._client, tokens=tokens)
        )
        self._unaccepted += 1
        if not is_refresh and (demand is None or demand.status != 403):
            self._scopes.forget_step_ups()
        challenged = () if demand is None else (demand.scopes or ())
        missing = [one for one in of_resource(challenged) if one not in tokens.scopes]
        if missing:
            self._scopes.deny(challenged)
            text = f"the token was given without {' '.join(missing)}, which the server demands"
            core.note(StepOutcome.FAILED, tried, text, rule="AUTH-309")
            core.fail(AuthorizationFailure.SCOPE_NOT_GRANTED, text, "AUTH-309")
            return
        core.note(
            StepOutcome.DONE,
            tried,
            "there is a token",
            rule="AUTH-284",
            url=server.token_endpoint,
            status=200,
        )
        self._succeed()

    def token_refused(self, error: str, text: str) -> None:
        """Go on without the refresh token, or end the attempt.

        Keeps AUTH-291, AUTH-307, AUTH-419, AUTH-420.
        """
        core, server, demand = self._core, self._server, self._demand
        assert server is not None
        client, tokens = self._client, self._wallet.tokens
        is_refresh = core.step is AuthorizationStep.REFRESH
        if is_refresh and tokens is not None and tokens.refresh_token != self._sent:
            self._succeed_with_stored()  # another process has stored it meanwhile
            return
        if client is not None and client.kind is ClientKind.DYNAMIC and error in _UNKNOWN_CLIENT:
            self._wallet.drop_client(server.issuer, client)
            text += "; the registration is forgotten, and the next attempt makes a new one"
        if not is_refresh:
            if error == "invalid_scope" and demand is not None and demand.scopes is not None:
                self._scopes.deny(demand.scopes)
            core.fail(AuthorizationFailure.REFUSED, text, error=error or None)
            return
        if error in _REFRESH_REFUSED:
            self._wallet.drop_refresh_token(self._sent)
        elif error not in _NO_REFRESH:  # of a captive portal, a firewall, a broken proxy
            text += ", which says nothing about the refresh token: it is kept"
            core.fail(AuthorizationFailure.INVALID_RESPONSE, text, "AUTH-291", error=error or None)
            return
        self._refreshes = False
        if self._discovered:
            self._authorize()
        else:
            self._discover()

    def _refuse(self, refused: Refused) -> None:
        core = self._core
        core.note(StepOutcome.FAILED, core.step.value, str(refused), rule=refused.rule)
        core.fail(refused.reason, str(refused), refused.rule)

    def _succeed(self) -> None:
        current = self._wallet.current
        assert current is not None
        assert current.tokens is not None
        self._core.running._issuer = current.issuer
        self._core.succeed(current.issuer, current.tokens.scopes, current.tokens.expires_at)

    def is_waiting(self, state: AuthorizationState) -> bool:
        """Whether an attempt is running and in this state."""
        attempt = self._core.attempt
        return attempt is not None and attempt.state is state
