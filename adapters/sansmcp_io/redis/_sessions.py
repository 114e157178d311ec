"""The sessions that the endpoint asks about: opened here, or found at other workers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from sansmcp.http import ReplayWanted, SessionRequested, SessionWanted

from .._common.anomalies import LOGGER
from .._common.cluster import ClusterHost
from ._commands import Command, Engine, Keys
from ._entries import WORKER
from ._events import AWAY, RETRY_SECONDS, EventStreams, Found
from ._link import Link, Links
from ._principals import Principals
from ._reachability import Reachability


class SessionFinder:
    """Opens sessions of this worker, and finds the workers that have the other sessions.

    The id of a session begins with the id of the worker that has it.

    Args:
        host: Runs the endpoint.
        engine: Sends commands to Redis.
        keys: The names of keys.
        worker: The id of this worker.
        principals: Turns principals into JSON values.
        new_id: Makes the rest of the id of a session.
        lease: Seconds after which a worker that is silent counts as dead.
        redis: Tells whether Redis can be reached.
        events: The events of sessions, also of those that are over.
        links: The other workers.
        carry: Called with the worker that has a session, and the question for the session.
        end_link: Called with a worker that is dead.
    """

    def __init__(
        self,
        host: ClusterHost,
        engine: Engine,
        keys: Keys,
        worker: str,
        *,
        principals: Principals,
        new_id: Callable[[], str],
        lease: float,
        redis: Reachability,
        events: EventStreams,
        links: Links,
        carry: Callable[[Link, SessionWanted], object],
        end_link: Callable[[Link], object],
    ) -> None:
        self._host: Final = host
        self._engine: Final = engine
        self._keys: Final = keys
        self._worker: Final = worker
        self._principals: Final = principals
        self._new_id: Final = new_id
        self._lease: Final = lease
        self._redis: Final = redis
        self._events: Final = events
        self._links: Final = links
        self._carry: Final = carry
        self._end_link: Final = end_link

    def open(self, event: SessionRequested) -> None:
        """Open a session, unless its principal cannot be carried to this worker later."""
        endpoint = self._host.endpoint
        try:
            self._principals.dump(event.exchange.principal)
        except Exception as error:
            LOGGER.error("a session cannot be opened", exc_info=error)
            endpoint.fail_lookup(event, "internal error", status=500, now=self._host.now())
        else:
            session_id = f"{self._worker}.{self._new_id()}"
            endpoint.open_session(event, session_id, now=self._host.now())

    def fail(self, question: SessionWanted | ReplayWanted, text: str = AWAY) -> None:
        """Answer a question with an error, after which the client may send its request again."""
        self._host.endpoint.fail_lookup(
            question, text, status=503, retry_after=RETRY_SECONDS, now=self._host.now()
        )

    def _refuse(self, wanted: SessionWanted) -> None:
        self._host.endpoint.refuse_session(wanted, now=self._host.now())

    def find(self, wanted: SessionWanted) -> None:
        """Find the worker that has a session."""
        owner = wanted.session_id.partition(".")[0]
        if not WORKER.fullmatch(owner) or owner == self._worker:
            self._refuse(wanted)
            return
        if self._redis.is_away:
            self.fail(wanted)
            return
        link = self._links.to(owner)
        if link.has_left:
            self._replay_or_refuse(wanted)
            return
        # A client that resumes a stream may be given the rest of it by any worker, so it is worth
        # the time to ask first.
        if wanted.stream is None and self._host.now() - link.alive_at < self._lease:
            self._carry(link, wanted)
            return
        link.waiting.append(wanted)
        if len(link.waiting) == 1:
            done = partial(self._found, link)
            self._engine.put(Command(("EXISTS", self._keys.lease(owner)), done))

    def _found(self, link: Link, outcome: Any) -> None:
        """Redis has said whether a worker is alive."""
        waiting = link.waiting[:]
        link.waiting.clear()
        if isinstance(outcome, Exception):
            for wanted in waiting:
                self.fail(wanted)
        elif outcome:
            link.alive_at = self._host.now()
            for wanted in waiting:
                self._carry(link, wanted)
        elif not self._redis.is_reliable:
            for wanted in waiting:
                self.fail(wanted)
        else:
            self._end_link(link)
            for wanted in waiting:
                self._replay_or_refuse(wanted)
            if link.is_idle and not link.waiting:  # ids of sessions that never were take no memory
                self._links.forget(link)
        self._host.turn()

    def _replay_or_refuse(self, wanted: SessionWanted) -> None:
        """The worker of a session is dead: the session is over, but for what was stored."""
        if wanted.stream is None:
            self._refuse(wanted)
            return
        exchange = wanted.exchange
        key = self._keys.events(wanted.session_id, exchange.principal_key)
        self._events.find(key, wanted.stream, wanted.after, partial(self._replay_ended, wanted))

    def _replay_ended(self, wanted: SessionWanted, found: Found) -> None:
        if isinstance(found, Exception):
            self.fail(wanted)
        elif found:
            self._host.endpoint.replay_ended(wanted, found, now=self._host.now())
        else:
            self._refuse(wanted)
        self._host.turn()
