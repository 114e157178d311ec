"""Runs the authorization of a client, on any loop."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final, final

from sansmcp import JSONObject
from sansmcp.auth import (
    AssertionWanted,
    AuthorizationFailed,
    Authorized,
    ClientWanted,
    CredentialsToStore,
    HTTPRequest,
    LoggedOut,
    RequestWanted,
    StepTaken,
    UserAgentWanted,
)
from sansmcp.http import AuthorizationRequired

from .._common.anomalies import LOGGER
from .._common.errors import AuthorizationError
from .._common.one_shot import NoResponse
from ..oauth import NoCallback, StorageError
from ..oauth._authorization import ClientAuthorization, error_of, not_locked, storage_is_slow
from ..oauth._locks import StorageLock
from .loop import Loop
from .one_shot import OneShotSender
from .threads import in_thread


@final
class Authorizer:
    """Makes the requests of the machine, asks the user, and stores credentials.

    Functions of the application that are not async run in threads of their own: they may wait for a
    user, a file or a key store, and other servers must not wait with them.

    Args:
        loop: The loop that runs.
        sender: Makes requests.
        authorization: The machine and its settings.
    """

    def __init__(
        self, loop: Loop, sender: OneShotSender, authorization: ClientAuthorization
    ) -> None:
        self._loop: Final = loop
        self._sender: Final = sender
        self._authorization: Final = authorization
        self._machine: Final = authorization.machine
        self._unlock: Callable[[], Coroutine[Any, Any, object]] | None = None

    async def restore(self) -> None:
        """Take the credentials that are stored.

        Raises:
            AuthorizationError: The storage cannot be read.
        """
        self._machine.restore(await self._stored())

    async def run(
        self, challenge: AuthorizationRequired | None, revision: str | None
    ) -> list[tuple[str, str]]:
        """Get a token, and return the headers of all requests from now on.

        Args:
            challenge: The refusal of the MCP server; None: a token is wanted in advance.
            revision: The revision of the conversation; None: it is not known.

        Raises:
            AuthorizationError: There is no token.
        """
        try:
            await self._lock()
            stored = await self._stored()
            self._machine.authorize(
                challenge, revision=revision, stored=stored, now=self._loop.now(), at=time.time()
            )
            await self._until_ended()
        except BaseException:
            for event in self._authorization.discard():
                await self._store(event)
            raise
        finally:
            await self._leave_lock()
        return self._authorization.headers

    async def _lock(self) -> None:
        """Keep other clients from the tokens, if the storage can do that."""
        authorization = self._authorization
        seconds = authorization.lock_seconds
        try:
            manager = authorization.lock()
            if manager is None:
                return
            if hasattr(manager, "__aenter__"):
                is_there, _ = await self._within(seconds, manager.__aenter__)
                if is_there:
                    self._unlock = partial(manager.__aexit__, None, None, None)
            else:
                lock = StorageLock(manager)
                self._unlock = partial(in_thread, self._loop, lock.leave)
                is_there, _ = await self._within(seconds, lock.take, cancel=lock.leave)
        except Exception as error:
            not_locked(error)
        else:
            if not is_there:
                not_locked(None)

    async def _leave_lock(self) -> None:
        """Let other clients have the tokens, also if this is cancelled."""
        unlock, self._unlock = self._unlock, None
        if unlock is not None:
            try:
                await self._loop.finish(unlock)
            except Exception as error:
                LOGGER.error("the lock of the storage was not released", exc_info=error)

    async def _until_ended(self) -> None:
        machine, oauth = self._machine, self._authorization.oauth
        while True:
            event = machine.next_event()
            match event:
                case RequestWanted():
                    await self._send(event.request)
                case UserAgentWanted():
                    await self._ask_user(event)
                case ClientWanted():
                    client = await self._ask(oauth.on_client, event)
                    machine.provide_client(client, now=self._loop.now())
                case AssertionWanted():
                    assertion = await self._ask(oauth.on_assertion, event)
                    machine.provide_assertion(assertion, now=self._loop.now())
                case CredentialsToStore():
                    await self._store(event)
                case StepTaken():
                    self._authorization.step_taken(event)
                case Authorized() | LoggedOut():
                    return
                case AuthorizationFailed():
                    raise error_of(event)
                case None:
                    raise AssertionError("an attempt waits for nothing")

    async def _send(self, request: HTTPRequest) -> None:
        """Make a request. What a POST changes at a server has to be known here, too.

        The response may hold the only refresh token that is valid from now on. So a caller that is
        cancelled waits for it, at most for the timeout of the request.
        """
        if request.method == "POST":
            await self._loop.finish(partial(self._exchange, request))
        else:
            await self._exchange(request)

    async def _exchange(self, request: HTTPRequest) -> None:
        try:
            response = await self._sender.send(request)
        except NoResponse as error:
            self._machine.receive_failure(request, str(error), now=self._loop.now())
        else:
            self._authorization.response_received(request, response, self._loop.now())

    async def _ask_user(self, event: UserAgentWanted) -> None:
        """Show the user the URL until a callback comes that belongs to it, or time is up."""
        redirect = self._authorization.redirect
        assert redirect is not None
        await self._leave_lock()
        try:
            callback = await self._answer(redirect.visit, event.url, cancel=redirect.cancel)
        except NoCallback as error:
            raise AuthorizationError(str(error), issuer=event.issuer) from None
        if callback is not None and not self._machine.receive_callback(
            callback, now=self._loop.now()
        ):
            text = "the user agent returned a callback of another authorization"
            raise AuthorizationError(text, issuer=event.issuer)

    async def _ask(self, function: Callable[[Any], Any] | None, event: object) -> Any:
        await self._leave_lock()
        return None if function is None else await self._answer(function, event)

    async def _answer(
        self,
        function: Callable[[Any], Any],
        argument: object,
        cancel: Callable[[], object] | None = None,
    ) -> Any:
        """Return what a function says that the machine waits for; None when time is up."""
        machine, loop = self._machine, self._loop
        deadline = machine.next_timeout()
        assert deadline is not None  # it waits for the function
        seconds = max(deadline - loop.now(), 0.0)
        is_there, outcome = await self._within(seconds, function, argument, cancel=cancel)
        if not is_there:
            machine.handle_timeout(max(deadline, loop.now()))
        return outcome

    async def _stored(self) -> Mapping[str, JSONObject]:
        """The records of the storage. A key store may ask the user, who has time to answer."""
        authorization = self._authorization
        load, seconds = authorization.oauth.storage.load, authorization.config.user_timeout
        try:
            is_there, stored = await self._within(seconds, load, authorization.server)
        except StorageError as error:
            raise AuthorizationError(str(error)) from error
        if not is_there:
            raise AuthorizationError(storage_is_slow(seconds))
        checked: Mapping[str, JSONObject] = stored
        return checked

    async def _store(self, event: CredentialsToStore) -> None:
        """Store credentials, also if this is cancelled.

        Where that fails, they are of use to this client nevertheless.
        """
        await self._loop.finish(partial(self._try_to_store, event))

    async def _try_to_store(self, event: CredentialsToStore) -> None:
        authorization = self._authorization
        store, seconds = authorization.oauth.storage.store, authorization.config.request_timeout
        try:
            is_there, _ = await self._within(
                seconds, store, authorization.server, event.issuer, event.record
            )
        except StorageError as error:
            LOGGER.error("credentials are not stored: %s", error)
        except Exception as error:
            LOGGER.error("credentials are not stored", exc_info=error)
        else:
            if not is_there:
                LOGGER.error("credentials are not stored: %s", storage_is_slow(seconds))

    async def _within(
        self,
        seconds: float,
        function: Callable[..., Any],
        *args: object,
        cancel: Callable[[], object] | None = None,
    ) -> tuple[bool, Any]:
        """Call a function of the application, and return whether it has ended, and its outcome."""
        outcome: list[Any] = []

        async def call() -> None:
            outcome.append(await self._call(function, *args, cancel=cancel))

        await self._loop.wait_until(self._loop.now() + seconds, call)
        return (True, outcome.pop()) if outcome else (False, None)

    async def _call(
        self,
        function: Callable[..., Any],
        *args: object,
        cancel: Callable[[], object] | None = None,
    ) -> Any:
        """Call a function of the application: in a thread, unless it is async."""
        if inspect.iscoroutinefunction(function):
            return await function(*args)
        outcome = await in_thread(self._loop, function, *args, cancel=cancel)
        return await outcome if inspect.isawaitable(outcome) else outcome
