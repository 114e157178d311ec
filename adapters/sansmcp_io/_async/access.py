"""Checks the tokens that come to a server over HTTP, on any loop."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from .._common.access import AccessChecks, Claims, PendingAccess, VerifyToken
from .loop import Event, Loop

if TYPE_CHECKING:
    from sansmcp.auth import AccessToken, HTTPRequest, ResourceServer

    from .one_shot import OneShotSender


class AccessHost(Protocol):
    """Runs the endpoint whose requests are checked.

    Attributes:
        loop: The primitives of the loop.
        tasks: Starts tasks.
    """

    loop: Loop
    tasks: Any


class AccessChecker:
    """Finds out who sends each request, by the token that came with it.

    Args:
        host: Runs the endpoint.
        server: Checks tokens.
        verify_token: Verifies tokens, where the server has no verifier.
        new_sender: Makes the object that makes HTTP requests for the verifier, on the loop.
    """

    def __init__(
        self,
        host: AccessHost,
        server: ResourceServer,
        verify_token: VerifyToken | None,
        new_sender: Callable[[], OneShotSender],
    ) -> None:
        self._host: Final = host
        self._checks: Final = AccessChecks(server)
        self._verify_token: Final = verify_token
        self._new_sender: Final = new_sender
        self._sender: tuple[Loop, OneShotSender] | None = None

    def check(
        self, method: str, target: str, headers: Mapping[str, str] | Iterable[tuple[bytes, bytes]]
    ) -> AccessToken | Awaitable[AccessToken]:
        """Return the principal of a request, or an awaitable for it where that takes time.

        Args:
            method: The method.
            target: Path and query, as the client sees them.
            headers: A mapping or pairs of names and values.

        Raises:
            AccessDenied: The request must not be served.
        """
        pending = self._checks.begin(method, target, headers)
        self._start_requests()
        if pending.token is not None:
            verify_token = self._verify_token
            assert verify_token is not None  # or the server would not ask
            try:
                claims = verify_token(pending.token)
            except Exception as error:
                self._checks.fail(pending, error)
            except BaseException:
                self._checks.forget(pending)
                raise
            else:
                if inspect.isawaitable(claims):
                    return self._verified(pending, claims)
                self._checks.provide(pending, claims)
        if pending.has_ended:
            return pending.outcome()
        ended = self._host.loop.new_event()
        pending.wake = ended.set
        return self._ended(pending, ended)

    async def _verified(
        self, pending: PendingAccess, awaitable: Awaitable[Claims | None]
    ) -> AccessToken:
        """Wait for the function of the application."""
        try:
            claims = await awaitable
        except Exception as error:
            self._checks.fail(pending, error)
        else:
            self._checks.provide(pending, claims)
        finally:  # it may be cancelled
            self._checks.forget(pending)
        return pending.outcome()

    async def _ended(self, pending: PendingAccess, ended: Event) -> AccessToken:
        """Wait for the verifier."""
        try:
            await ended.wait()
        finally:
            self._checks.forget(pending)
        return pending.outcome()

    # ---------------------------------------------------------------------------- requests

    def _start_requests(self) -> None:
        """Make the requests that the verifier needs, in tasks: several checks may wait for one."""
        for request in self._checks.take_requests():
            self._host.tasks.start_soon(self._send, request)

    async def _send(self, request: HTTPRequest) -> None:
        try:
            response = await self._sender_here().send(request)
        except Exception as error:
            self._checks.receive_failure(request, error)
        except BaseException:
            self._checks.abandon(request)
            raise
        else:
            self._checks.receive_response(request, response)
        self._start_requests()

    def _sender_here(self) -> OneShotSender:
        """The sender for the loop that runs: it keeps the settings of TLS."""
        loop = self._host.loop
        if self._sender is None or self._sender[0] is not loop:
            self._sender = loop, self._new_sender()
        return self._sender[1]
