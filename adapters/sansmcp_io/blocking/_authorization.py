"""Runs the authorization of a client, without a loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, final

from sansmcp import JSONObject
from sansmcp.auth import (
    AssertionWanted,
    AuthorizationFailed,
    Authorized,
    ClientWanted,
    CredentialsToStore,
    LoggedOut,
    RequestWanted,
    StepTaken,
    UserAgentWanted,
)
from sansmcp.http import AuthorizationRequired

from .._common.anomalies import LOGGER
from .._common.call import not_async
from .._common.errors import AuthorizationError
from .._common.one_shot import NoResponse
from ..oauth import NoCallback, StorageError
from ..oauth._authorization import ClientAuthorization, error_of, not_locked, storage_is_slow
from ..oauth._locks import StorageLock
from ._one_shot import OneShotSender
from ._threads import within


@final
class Authorizer:
    """Makes the requests of the machine, asks the user, and stores credentials.

    One thread at a time runs it, and holds the lock of the session, under which other threads use
    the machine, too.

    Args:
        sender: Makes requests.
        authorization: The machine and its settings.
        wait: Calls a function that takes time, or belongs to the application, without the lock.
            With `holds_interrupts=True`, Ctrl-C waits until it has ended.
    """

    def __init__(
        self,
        sender: OneShotSender,
        authorization: ClientAuthorization,
        wait: Callable[..., Any],
    ) -> None:
        self._sender: Final = sender
        self._wait: Final = wait
        self._authorization: Final = authorization
        self._machine: Final = authorization.machine
        self._locked: StorageLock | None = None

    def restore(self) -> None:
        """Take the credentials that are stored.

        Raises:
            AuthorizationError: The storage cannot be read.
        """
        self._machine.restore(self._stored())

    def run(
        self, challenge: AuthorizationRequired | None, revision: str | None
    ) -> list[tuple[str, str]]:
        """Get a token, and return the headers of all requests from now on.

        Args:
            challenge: The refusal of the MCP server; None: a token is wanted in advance.
            revision: The revision of the conversation; None: it is not known.

        Raises:
            AuthorizationError: There is no token.
        """
        begin = partial(self._machine.authorize, challenge, revision=revision)
        self._run(begin)
        return self._authorization.headers

    def log_out(self) -> bool:
        """Forget the credentials, revoke the tokens, and return whether there were any.

        Raises:
            AuthorizationError: They are not revoked.
        """
        ending = self._run(self._machine.log_out)
        return isinstance(ending, LoggedOut) and ending.issuer is not None

    def _run(self, begin: Callable[..., object]) -> Authorized | LoggedOut:
        """Begin an attempt with what is stored, and go through it to its end."""
        try:
            self._lock()
            begin(stored=self._stored(), now=time.monotonic(), at=time.time())
            return self._until_ended()
        except BaseException:  # Ctrl-C among them: another thread may begin anew
            for event in self._authorization.discard():
                self._store(event)
            raise
        finally:
            self._leave_lock()

    def _lock(self) -> None:
        """Keep other clients from the tokens, if the storage can do that."""
        authorization = self._authorization
        try:
            manager = authorization.lock()
            if manager is None:
                return
            if not hasattr(manager, "__enter__"):
                raise TypeError("storage.locked is async: it must give a plain block here")
            lock = self._locked = StorageLock(manager)
            outcome: list[Any] = self._wait(
                within, authorization.lock_seconds, lock.take, lock.leave
            )
        except Exception as error:
            not_locked(error)
        else:
            if not outcome:
                not_locked(None)

    def _leave_lock(self) -> None:
        """Let other clients have the tokens; Ctrl-C waits for that."""
        lock, self._locked = self._locked, None
        if lock is not None:
            try:
                self._wait(lock.leave, holds_interrupts=True)
            except Exception as error:
                LOGGER.error("the lock of the storage was not released", exc_info=error)

    def _until_ended(self) -> Authorized | LoggedOut:
        machine, oauth = self._machine, self._authorization.oauth
        while True:
            event = machine.next_event()
            match event:
                case RequestWanted():
                    self._send(event)
                case UserAgentWanted():
                    self._ask_user(event)
                case ClientWanted():
                    client = self._ask(oauth.on_client, event, "on_client")
                    machine.provide_client(client, now=time.monotonic())
                case AssertionWanted():
                    assertion = self._ask(oauth.on_assertion, event, "on_assertion")
                    machine.provide_assertion(assertion, now=time.monotonic())
                case CredentialsToStore():
                    self._store(event)
                case StepTaken():
                    self._wait(self._authorization.step_taken, event)
                case Authorized() | LoggedOut():
                    return event
                case AuthorizationFailed():
                    raise error_of(event)
                case None:
                    raise AssertionError("an attempt waits for nothing")

    def _send(self, event: RequestWanted) -> None:
        """Make a request. What a POST changes at a server has to be known here, too.

        The response may hold the only refresh token that is valid from now on. So Ctrl-C waits for
        it, at most for the timeout of the request.
        """
        request = event.request
        is_safe = request.method != "POST"
        try:
            response = self._wait(self._sender.send, request, holds_interrupts=not is_safe)
        except NoResponse as error:
            self._machine.receive_failure(request, str(error), now=time.monotonic())
        else:
            self._authorization.response_received(request, response, time.monotonic())

    def _ask_user(self, event: UserAgentWanted) -> None:
        """Show the user the URL until a callback comes that belongs to it, or time is up."""
        redirect = self._authorization.redirect
        assert redirect is not None
        self._leave_lock()
        visit = partial(redirect.visit, event.url)
        try:
            callback = self._answer(visit, "visit", redirect.cancel)
        except NoCallback as error:
            raise AuthorizationError(str(error), issuer=event.issuer) from None
        if callback is not None and not self._machine.receive_callback(
            callback, now=time.monotonic()
        ):
            text = "the user agent returned a callback of another authorization"
            raise AuthorizationError(text, issuer=event.issuer)

    def _stored(self) -> Mapping[str, JSONObject]:
        """The records of the storage. A key store may ask the user, who has time to answer."""
        authorization = self._authorization
        load = partial(authorization.oauth.storage.load, authorization.server)
        seconds = authorization.config.user_timeout
        try:
            outcome: list[Any] = self._wait(within, seconds, load)
        except StorageError as error:
            raise AuthorizationError(str(error)) from error
        if not outcome:
            raise AuthorizationError(storage_is_slow(seconds))
        checked: Mapping[str, JSONObject] = not_async(outcome.pop(), "storage.load")
        return checked

    def _store(self, event: CredentialsToStore) -> None:
        """Store credentials; Ctrl-C waits for that.

        Where it fails, they are of use to this client nevertheless.
        """
        authorization = self._authorization
        store = authorization.oauth.storage.store
        seconds = authorization.config.request_timeout
        storing = partial(store, authorization.server, event.issuer, event.record)
        try:
            outcome: list[Any] = self._wait(within, seconds, storing, holds_interrupts=True)
            if outcome:
                not_async(outcome.pop(), "storage.store")
            else:
                LOGGER.error("credentials are not stored: %s", storage_is_slow(seconds))
        except StorageError as error:
            LOGGER.error("credentials are not stored: %s", error)
        except Exception as error:
            LOGGER.error("credentials are not stored", exc_info=error)

    def _ask(self, function: Callable[[Any], Any] | None, event: object, name: str) -> Any:
        self._leave_lock()
        return None if function is None else self._answer(partial(function, event), name)

    def _answer(
        self,
        function: Callable[[], object],
        name: str,
        cancel: Callable[[], object] | None = None,
    ) -> Any:
        """Return what a function says that the machine waits for; None when time is up."""
        deadline = self._machine.next_timeout()
        assert deadline is not None  # it waits for the function
        seconds = max(deadline - time.monotonic(), 0.0)
        outcome: list[Any] = self._wait(within, seconds, function, cancel)
        if not outcome:
            self._machine.handle_timeout(max(deadline, time.monotonic()))
            return None
        return not_async(outcome.pop(), name)
