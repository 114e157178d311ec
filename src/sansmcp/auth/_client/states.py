"""The table of states of one attempt to be authorized.

Rule 1: only this table decides whether a step is legal.
Rule 2: a pair that is missing is an illegal step: the state does not change.
Rule 3: each attempt ends in `AUTHORIZED`, `FAILED` or `LOGGED_OUT`, which no step leaves.

The diagram in the documentation is drawn from this table.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final


class AuthorizationState(enum.IntEnum):
    """The state of an attempt: which answer it waits for."""

    STARTED = 0
    """The attempt has begun; nothing was asked yet."""
    RESOURCE_METADATA = 1
    """The metadata of the protected resource was asked for."""
    SERVER_METADATA = 2
    """The metadata of the authorization server was asked for."""
    CLIENT_WANTED = 3
    """The application was asked for a client id (`ClientWanted`)."""
    REGISTRATION = 4
    """The client is being registered at the authorization server."""
    USER_AGENT = 5
    """The user was sent to the authorization server; the callback is awaited."""
    ASSERTION_WANTED = 6
    """The application was asked for an assertion (`AssertionWanted`)."""
    EXCHANGE = 7
    """An identity assertion is being exchanged at the identity provider."""
    TOKEN = 8
    """An access token was requested with a grant."""
    REFRESH = 9
    """An access token was requested with a refresh token."""
    REVOCATION = 10
    """A token is being revoked, to log out."""
    AUTHORIZED = 11
    """The attempt has ended with a token."""
    FAILED = 12
    """The attempt has ended without a token."""
    LOGGED_OUT = 13
    """The attempt to log out has ended: there is no token any more."""


class AuthorizationTrigger(enum.IntEnum):
    """The causes of a step from one `AuthorizationState` to another."""

    READ_RESOURCE = 0
    READ_SERVER = 1
    ASK_CLIENT = 2
    REGISTER = 3
    OPEN_USER_AGENT = 4
    ASK_ASSERTION = 5
    EXCHANGE = 6
    REQUEST_TOKEN = 7
    REFRESH = 8
    REVOKE = 9
    SUCCEED = 10
    FAIL = 11
    LOG_OUT = 12


_State = AuthorizationState
_Trigger = AuthorizationTrigger
_FINAL: Final = frozenset({_State.AUTHORIZED, _State.FAILED, _State.LOGGED_OUT})
_AFTER_METADATA: Final[Mapping[_Trigger, _State]] = {
    _Trigger.REFRESH: _State.REFRESH,
    _Trigger.ASK_CLIENT: _State.CLIENT_WANTED,
    _Trigger.REGISTER: _State.REGISTRATION,
    _Trigger.OPEN_USER_AGENT: _State.USER_AGENT,
    _Trigger.ASK_ASSERTION: _State.ASSERTION_WANTED,
    _Trigger.EXCHANGE: _State.EXCHANGE,
    _Trigger.REQUEST_TOKEN: _State.TOKEN,
}

AUTHORIZATION: Final[
    Mapping[tuple[AuthorizationState, AuthorizationTrigger], AuthorizationState]
] = {
    (_State.STARTED, _Trigger.SUCCEED): _State.AUTHORIZED,  # a token is at hand
    (_State.STARTED, _Trigger.REFRESH): _State.REFRESH,  # the metadata is known
    (_State.STARTED, _Trigger.READ_RESOURCE): _State.RESOURCE_METADATA,
    (_State.STARTED, _Trigger.READ_SERVER): _State.SERVER_METADATA,  # 2025-03-26
    # Another candidate, or a redirect.
    (_State.RESOURCE_METADATA, _Trigger.READ_RESOURCE): _State.RESOURCE_METADATA,
    (_State.RESOURCE_METADATA, _Trigger.READ_SERVER): _State.SERVER_METADATA,
    (_State.SERVER_METADATA, _Trigger.READ_SERVER): _State.SERVER_METADATA,
    **{(_State.SERVER_METADATA, trigger): state for trigger, state in _AFTER_METADATA.items()},
    # A refresh token that was refused leads to what would have come without one.
    **{(_State.REFRESH, trigger): state for trigger, state in _AFTER_METADATA.items()},
    (_State.REFRESH, _Trigger.READ_RESOURCE): _State.RESOURCE_METADATA,
    (_State.REFRESH, _Trigger.READ_SERVER): _State.SERVER_METADATA,
    (_State.REFRESH, _Trigger.SUCCEED): _State.AUTHORIZED,
    (_State.CLIENT_WANTED, _Trigger.OPEN_USER_AGENT): _State.USER_AGENT,
    (_State.CLIENT_WANTED, _Trigger.ASK_ASSERTION): _State.ASSERTION_WANTED,
    (_State.CLIENT_WANTED, _Trigger.EXCHANGE): _State.EXCHANGE,
    (_State.CLIENT_WANTED, _Trigger.REQUEST_TOKEN): _State.TOKEN,
    (_State.REGISTRATION, _Trigger.OPEN_USER_AGENT): _State.USER_AGENT,
    (_State.USER_AGENT, _Trigger.REQUEST_TOKEN): _State.TOKEN,
    (_State.ASSERTION_WANTED, _Trigger.EXCHANGE): _State.EXCHANGE,
    (_State.ASSERTION_WANTED, _Trigger.REQUEST_TOKEN): _State.TOKEN,
    (_State.EXCHANGE, _Trigger.EXCHANGE): _State.EXCHANGE,  # SAML: first for a refresh token
    (_State.EXCHANGE, _Trigger.REQUEST_TOKEN): _State.TOKEN,
    # The same request with the nonce of the server.
    (_State.TOKEN, _Trigger.REQUEST_TOKEN): _State.TOKEN,
    (_State.TOKEN, _Trigger.SUCCEED): _State.AUTHORIZED,
    # Logging out.
    (_State.STARTED, _Trigger.LOG_OUT): _State.LOGGED_OUT,  # there is no token
    (_State.SERVER_METADATA, _Trigger.REVOKE): _State.REVOCATION,
    (_State.REVOCATION, _Trigger.REVOKE): _State.REVOCATION,  # first the refresh token
    (_State.REVOCATION, _Trigger.LOG_OUT): _State.LOGGED_OUT,
    **{(state, _Trigger.FAIL): _State.FAILED for state in _State if state not in _FINAL},
}
