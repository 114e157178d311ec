"""Checks the tokens that come to a WSGI application, in the threads of its requests.

The HTTP requests that a verifier needs, such as one for the keys of an issuer, are made in threads
of their own: several clients may wait for one of them, each for its own time, and a client that was
admitted by kept keys waits for none. No lock is held meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from .._common.access import CHECK, AccessChecks, PendingAccess, VerifyToken
from .._common.call import not_async
from .._common.lookups import LookupTimeout
from ._one_shot import SocketOneShotSender

if TYPE_CHECKING:
    from sansmcp.auth import AccessToken, HTTPRequest, ResourceServer


class ThreadAccessChecker:
    """Finds out who sends each request, by the token that came with it.

    Args:
        server: Checks tokens. It is used with a lock.
        verify_token: Verifies tokens, where the server has no verifier.
        timeout: Seconds that a check may take; no function of the application is interrupted.
    """

    def __init__(
        self, server: ResourceServer, verify_token: VerifyToken | None, timeout: float
    ) -> None:
        self._checks: Final = AccessChecks(server)  # used with the lock of `_changed`
        self._verify_token: Final = verify_token
        self._timeout: Final = timeout
        self._sender: Final = SocketOneShotSender()
        self._changed: Final = threading.Condition()

    def check(self, method: str, target: str, headers: Iterable[tuple[str, str]]) -> AccessToken:
        """Return the principal of a request.

        Args:
            method: The method.
            target: Path and query, as the client sees them.
            headers: Names and values.

        Raises:
            AccessDenied: The request must not be served.
            LookupTimeout: That took too long.
        """
        until = time.monotonic() + self._timeout
        with self._changed:
            pending = self._checks.begin(method, target, headers)
            pending.wake = self._changed.notify_all
            self._start_requests()
        try:
            if pending.token is not None:
                self._verify(pending, pending.token)
            with self._changed:
                while not pending.has_ended:
                    left = min(until - time.monotonic(), threading.TIMEOUT_MAX)
                    if left <= 0:
                        raise LookupTimeout(CHECK, self._timeout)
                    self._changed.wait(left)
        finally:
            with self._changed:
                self._checks.forget(pending)
        return pending.outcome()

    def _verify(self, pending: PendingAccess, token: str) -> None:
        """Verify a token by the function of the application, without the lock."""
        verify_token = self._verify_token
        assert verify_token is not None  # or the server would not ask
        try:
            claims = not_async(verify_token(token), "verify_token")
        except Exception as error:
            with self._changed:
                self._checks.fail(pending, error)
        else:
            with self._changed:
                self._checks.provide(pending, claims)

    # ---------------------------------------------------------------------------- requests

    def _start_requests(self) -> None:
        """Make the requests that the verifier needs, each in a thread. Called with the lock held.

        The verifier bounds how many are under way: one for each issuer, or
        `IntrospectionVerifier.max_requests`. Each ends within its time.
        """
        while requests := self._checks.take_requests():
            for request in requests:
                thread = threading.Thread(
                    target=self._send, args=(request,), name="sansmcp verifier", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError as error:  # there are too many threads
                    self._checks.receive_failure(request, error)

    def _send(self, request: HTTPRequest) -> None:
        """Make a request of the verifier, in a thread of its own."""
        try:
            response = self._sender.send(request)
        except Exception as error:
            with self._changed:
                self._checks.receive_failure(request, error)
                self._start_requests()
        else:
            with self._changed:
                self._checks.receive_response(request, response)
                self._start_requests()
