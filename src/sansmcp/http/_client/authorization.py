"""Exchanges that are held until the application supplies credentials.

Source: MCP 2026-07-28, basic/authorization; RFC 9110, section 11.
"""

from __future__ import annotations

from typing import Final

import attrs

from ..._connection.handles import OutgoingRequest, Purpose, purpose_of, timeout_of
from .._headers import Headers
from .auth_challenges import read_challenges
from .core import ClientEndpointCore
from .events import AuthorizationRequired
from .exchange import ClientExchangeCore, ExchangeOwner, ExchangeQueue
from .post import PostedMessage
from .response_head import Head

_MAX_CHALLENGED: Final = 5
"""Refusals in a row after which an exchange is not held.

An application that always supplies the same would go on for ever, as fast as the server can."""
_USE_NONCE: Final = "use_dpop_nonce"


@attrs.define(eq=False, repr=False)
class Authorization:
    """The exchanges that wait for credentials, and the probes that were refused without them."""

    _core: ClientEndpointCore
    _queue: ExchangeQueue
    _holds: bool = attrs.field(
        kw_only=True, alias="holds"
    )  # for the application to supply credentials
    _refused_probes: int = attrs.field(default=0, init=False)  # after which `initialize` followed
    _probe_timeout: float | None = attrs.field(default=None, init=False)  # of the last of them

    def session_opened(self) -> None:
        """Forget the probes before a start that was successful."""
        self._refused_probes = 0

    def is_doubted(self, exchange: ClientExchangeCore, head: Head) -> bool:
        """Whether `initialize` follows a probe whose credentials were refused.

        Older servers may refuse any request in this way that is not `initialize` and names no
        session. If `initialize` is refused, too, the application is asked for credentials, and then
        the start begins again with the probe. A server that wants a nonce in a proof knows what it
        has got, and leaves no doubt (RFC 9449, section 9).
        """
        owner, headers = exchange.owner, self._queue.headers
        if not isinstance(owner, PostedMessage):
            return False
        call = owner.call
        if (
            call is None
            or purpose_of(call) is not Purpose.DISCOVER
            or not owner.responses.falls_back(401, None)
            or exchange.version != headers.version
            or not headers.has_any  # the caller gave no credentials
            or any(
                challenge.parameters.get("error") == _USE_NONCE
                for challenge in read_challenges(head.challenges)
            )
        ):
            return False
        self._refused_probes += 1
        self._probe_timeout = timeout_of(call)
        return True

    def refused(self, exchange: ClientExchangeCore, head: Head) -> None:
        """Hold an exchange that the server refuses without other credentials, or end its owner."""
        owner, queue = exchange.owner, self._queue
        if exchange.version != queue.headers.version:
            owner.send()  # it was under way with headers that have been replaced since
            return
        # Each time that a start has come back to the probe, there is another owner.
        owner.challenged = max(owner.challenged + 1, self._refused_probes)
        holds = (
            self._holds
            and owner.challenged <= _MAX_CHALLENGED
            and len(queue.held) < self._core.config.max_requests
        )
        event = AuthorizationRequired(
            status=head.status,
            challenges=read_challenges(head.challenges),
            request=owner.request,
            kept=holds,
        )
        self._core.events.append(event)
        if holds:
            owner.exchange = None
            owner.held_since = self._core.now
            queue.held[owner] = event
            if isinstance(owner, PostedMessage) and owner.call is not None:
                owner.responses.machine.outgoing.suspend_timeout(owner.call)
        else:
            text = f"the server wants authorization (status {head.status})"
            owner.fail_with_status(head.status, text)

    def resume_timeout(self, post: PostedMessage, call: OutgoingRequest) -> None:
        """Start the timeout of a request anew that was held: the wait was not for the server."""
        now, since = self._core.now, post.held_since
        post.held_since = None
        waited = 0.0 if now is None or since is None else now - since
        post.responses.machine.outgoing.restart_timeout(call, waited)

    def supply(self, headers: Headers) -> int:
        """Send all exchanges with these headers, those that were held first.

        Returns:
            How many exchanges were held.
        """
        queue = self._queue
        queue.headers.replace(headers)
        held, queue.held = queue.held, {}
        self._withdraw()
        for owner in held:
            self._send_again(owner)
        return len(held)

    def _send_again(self, owner: ExchangeOwner) -> None:
        if isinstance(owner, PostedMessage) and (call := owner.call) is not None:
            self.resume_timeout(owner, call)
            if purpose_of(call) is Purpose.INITIALIZE and self._refused_probes:
                owner.responses.probe_again(call, self._probe_timeout)
                return
        owner.send()

    def _withdraw(self) -> None:
        """Report no refusal any more that is answered: an application would ask its user again."""
        self._core.events.withdraw(
            lambda event: isinstance(event, AuthorizationRequired) and event.kept
        )

    def refuse_held(self) -> int:
        """End all exchanges that are held as refused.

        Returns:
            How many exchanges were held.
        """
        held = self._queue.held
        count = len(held)
        self._withdraw()
        while held:  # the end of one may be the end of all
            owner = next(iter(held))
            event = attrs.evolve(held.pop(owner), kept=False)
            self._core.events.append(event)
            text = (
                f"the server wants authorization (status {event.status}), and no credentials were "
                "supplied"
            )
            owner.fail_with_status(event.status, text)
        return count
