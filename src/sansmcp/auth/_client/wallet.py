"""The credentials that a client has, by the issuer of their authorization server."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import attrs

from .core import Core
from .credentials import Client, Credentials, Tokens, read_record, write_record
from .events import CredentialsToStore


@attrs.define(eq=False, repr=False)
class Wallet:
    """Keeps credentials, and tells the application which to store. Keeps AUTH-043, AUTH-079.

    Attributes:
        current: The credentials whose token the MCP server gets; None without any.
    """

    _core: Core
    _kept: dict[str, Credentials] = attrs.field(factory=dict[str, Credentials], init=False)
    current: Credentials | None = attrs.field(default=None, init=False)
    # When the newest tokens of each issuer were obtained, also after they were dropped.
    _newest: dict[str, float] = attrs.field(factory=dict[str, float], init=False)

    def load(self, stored: Mapping[str, object]) -> None:
        """Take records that the application has stored; what is newer here stays.

        Another process may have refreshed the tokens, whose refresh token is then the valid one.
        """
        server, replaced = self._core.server.text, False
        for issuer, record in stored.items():
            read = read_record(issuer, record, server)
            if read is None:
                continue
            obtained, known = _obtained_at(read), self._newest.get(issuer, -inf)
            if obtained > known or issuer not in self._kept:
                self._kept[issuer] = read
                self._newest[issuer] = max(obtained, known)
                replaced = True
        if self.current is None or replaced:
            found = [one for one in self._kept.values() if one.tokens is not None]
            self.current = max(found, key=_obtained_at, default=None)

    def of(self, issuer: str) -> Credentials | None:
        """The credentials of one authorization server; None without any."""
        return self._kept.get(issuer)

    @property
    def tokens(self) -> Tokens | None:
        """The tokens in use; None without any."""
        return None if self.current is None else self.current.tokens

    def keep(self, credentials: Credentials) -> None:
        """Keep and store credentials, in place of earlier ones of the same issuer."""
        issuer = credentials.issuer
        self._kept[issuer] = credentials
        self._newest[issuer] = max(_obtained_at(credentials), self._newest.get(issuer, -inf))
        if self.current is not None and self.current.issuer == credentials.issuer:
            self.current = None if credentials.tokens is None else credentials
        record = write_record(credentials)
        self._core.events.append(CredentialsToStore(issuer=credentials.issuer, record=record))

    def use(self, credentials: Credentials) -> None:
        """Keep and store credentials, and use their token."""
        self.keep(credentials)
        self.current = credentials

    def change_server(self, issuer: str) -> bool:
        """Drop the tokens of another authorization server; True if there were any.

        Keeps AUTH-053, AUTH-273.
        """
        current = self.current
        if current is None or current.issuer == issuer:
            return False
        self.keep(attrs.evolve(current, tokens=None))
        self.current = None
        return True

    def drop_refresh_token(self, refused: str) -> None:
        """Forget a refresh token that was refused, if it is still in use. Keeps AUTH-291."""
        current, tokens = self.current, self.tokens
        if current is not None and tokens is not None and tokens.refresh_token == refused:
            without = attrs.evolve(tokens, refresh_token=None)
            self.keep(attrs.evolve(current, tokens=without))

    def drop_client(self, issuer: str, unknown: Client) -> None:
        """Forget a registration that the authorization server does not know any more."""
        kept = self._kept.get(issuer)
        if kept is not None and kept.client == unknown:
            self.keep(attrs.evolve(kept, client=None, tokens=None))

    def doubt_client(self, issuer: str, doubted: Client) -> None:
        """Use a registration for no further login.

        Where it has tokens, it is kept for them alone: without a redirect URI.
        """
        kept = self._kept.get(issuer)
        if kept is not None and kept.client == doubted:
            client = None if kept.tokens is None else attrs.evolve(doubted, redirect_uris=())
            self.keep(attrs.evolve(kept, client=client))

    def keep_client(self, credentials: Credentials, client: Client) -> None:
        """Keep a new registration."""
        self.keep(attrs.evolve(credentials, client=client))

    def forget(self) -> None:
        """Forget everything, and let the application delete its records."""
        for issuer in self._kept:
            self._core.events.append(CredentialsToStore(issuer=issuer, record=None))
        self._kept.clear()
        self._newest.clear()
        self.current = None


def _obtained_at(credentials: Credentials) -> float:
    return -inf if credentials.tokens is None else credentials.tokens.obtained_at
