"""The authorization of one client: the pure machine, and what its application has given it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from sansmcp.auth import (
    AuthorizationClient,
    AuthorizationCode,
    AuthorizationConfig,
    AuthorizationFailed,
    CredentialsToStore,
    HTTPRequest,
    StepTaken,
)
from sansmcp.http import ClientExchange

from .._common.anomalies import LOGGER
from .._common.errors import AuthorizationError
from .._common.http_client_settings import Headers
from .._common.one_shot import OneShotResponse, texts_of
from ._settings import OAuth
from ._storage import StorageError
from ._user_agents import NoCallback, Redirect


@final
class ClientAuthorization:
    """The machine of one client, and the steps around it that need no waiting.

    Attributes:
        machine: The machine.
        oauth: The settings of the application.
        redirect: Sends the user to authorization servers; None for grants without a user.
        server: The URL of the MCP server.
        config: Limits and policies.

    Raises:
        ValueError: A setting is wrong.
        AuthorizationError: The port of the redirect URI cannot be used.
    """

    def __init__(self, server: str, headers: Headers, oauth: OAuth) -> None:
        self.oauth: Final = oauth
        self.server: Final = server
        self.config: Final = oauth.config or AuthorizationConfig()
        pairs: Any = headers  # a mapping may be an iterable of pairs, as far as its type tells
        self._given: Final[list[tuple[str, str]]] = list(
            pairs.items() if isinstance(headers, Mapping) else pairs
        )
        if any(name.lower() == "authorization" for name, _ in self._given):
            raise ValueError("headers holds Authorization, which auth gets from a token")
        self.redirect: Final[Redirect | None] = (
            oauth.user_agent.new_redirect() if oauth.grant is None else None
        )
        try:
            self.machine: Final = AuthorizationClient(
                server,
                grant=oauth.grant or self._code(),
                entropy=secrets.token_bytes,
                client=oauth.client,
                registered=oauth.registered,
                proofs=oauth.proofs,
                assertions=oauth.assertions,
                config=self.config,
            )
        except BaseException:
            self.close()
            raise
        self._failed_in_advance: Exception | None = None

    def _code(self) -> AuthorizationCode:
        assert self.redirect is not None
        try:
            uri = self.redirect.redirect_uri
        except NoCallback as error:
            raise AuthorizationError(str(error)) from None
        return AuthorizationCode(redirect_uri=uri, scopes=_tuple(self.oauth.scopes))

    def close(self) -> None:
        """Release what the user agent needs."""
        if self.redirect is not None:
            self.redirect.close()

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers of all requests from now on: those of the application, and the token."""
        made = self.machine.headers("POST", self.server, at=time.time())
        return self._given + [field for field in made if field[0] == "Authorization"]

    def sign(self, exchange: ClientExchange) -> None:
        """Add the headers that are made for one exchange, if there are any."""
        made = self.machine.headers(exchange.method, exchange.url, at=time.time())
        proof = [field for field in made if field[0] != "Authorization"]
        if proof:
            exchange.add_headers(proof)

    def head_received(self, exchange: ClientExchange) -> None:
        """Learn from the head of a response of the MCP server, once it has come."""
        status, nonce = exchange.status, exchange.dpop_nonce
        if status is not None:
            fields = [] if nonce is None else [("DPoP-Nonce", nonce)]
            sent = dict(exchange.headers).get(b"authorization")
            authorization = None if sent is None else sent.decode("latin-1")
            self.machine.receive_server_head(status, fields, authorization=authorization)

    @property
    def needs_refresh(self) -> bool:
        """Whether a new token is due that can be had without the user, and was not denied just now.

        Where the user is needed, the server is asked first: it may take the old token longer.
        """
        return (
            self._failed_in_advance is None
            and self.machine.needs_refresh(time.time())
            and self.machine.renews_alone
        )

    def check_advance(self) -> None:
        """Raise the error with which the token was not renewed in advance, once.

        The user may have been asked then, and is not asked twice for one request.

        Raises:
            Exception: The one that `fail_in_advance` was given.
        """
        error, self._failed_in_advance = self._failed_in_advance, None
        if error is not None:
            raise error

    def fail_in_advance(self, error: Exception) -> None:
        """Note why the token was not renewed in advance. The server may take the old one longer."""
        if not isinstance(error, AuthorizationError):
            LOGGER.error("the token was not renewed", exc_info=error)
        self._failed_in_advance = error

    def response_received(
        self, request: HTTPRequest, response: OneShotResponse, now: float
    ) -> None:
        """Hand a response to the machine."""
        headers = texts_of(response.headers)
        self.machine.receive_response(request, response.status, headers, response.body, now=now)

    @property
    def lock_seconds(self) -> float:
        """Seconds that another client may hold the tokens: for two requests that are slow."""
        return 2 * self.config.request_timeout

    def lock(self) -> Any:
        """The block in which this client alone uses the tokens; None: the storage has none."""
        locked: Any = getattr(self.oauth.storage, "locked", None)
        return None if locked is None else locked(self.server)

    def step_taken(self, step: StepTaken) -> None:
        """Tell the application of a step."""
        LOGGER.debug("authorization: %s: %s", step.step.value, step.conclusion)
        if self.oauth.on_step is not None:
            try:
                self.oauth.on_step(step)
            except Exception as error:
                LOGGER.error("on_step failed", exc_info=error)

    def discard(self) -> list[CredentialsToStore]:
        """End an attempt that its driver has given up, and drop its events.

        Returns:
            The credentials that are to be stored nevertheless: the authorization server may have
            replaced the refresh token that is stored.
        """
        self.machine.cancel()
        left: list[CredentialsToStore] = []
        while (event := self.machine.next_event()) is not None:
            if isinstance(event, CredentialsToStore):
                left.append(event)
        return left


def not_locked(error: Exception | None) -> None:
    """Note that a storage was not locked. A login that is lost is better than none."""
    if error is None or isinstance(error, StorageError):
        LOGGER.warning("tokens are used without a lock: %s", error or "another client holds it")
    else:
        LOGGER.error("tokens are used without a lock", exc_info=error)


def storage_is_slow(seconds: float) -> str:
    """The reason why a storage is not waited for any longer."""
    return f"the storage of tokens has not answered within {seconds:g} s"


def _tuple(scopes: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if scopes is None else tuple(scopes)


def error_of(failed: AuthorizationFailed) -> AuthorizationError:
    """The exception for the ending of an attempt."""
    return AuthorizationError(
        failed.text,
        failed.step,
        failed.reason,
        rule=failed.rule,
        error=failed.error,
        issuer=failed.issuer,
    )
