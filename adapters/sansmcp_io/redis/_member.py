"""A worker in a cluster: what it carries to others and for them. No I/O is done here.

It is given events of the endpoint, entries of other workers, answers of Redis, and ticks; it calls
the endpoint, and gives commands for Redis. All of it happens in the thread of the loop.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from sansmcp.http import (
    EventToStore,
    RelayEnded,
    ReplayWanted,
    ServerExchange,
    Session,
    SessionEnd,
    SessionEnded,
    SessionRequested,
    SessionWanted,
)

from .._common.anomalies import LOGGER
from .._common.cluster import ClusterEvent, ClusterHost
from .._common.http_server import PrincipalKey, key_of
from ._backlog import Backlog
from ._carried import CarriedOut
from ._changes import Changes
from ._commands import Command, Engine, Keys
from ._entries import Entry, Fields, Kind, decode, encode
from ._events import AWAY, RETRY_SECONDS, EventStreams, Found
from ._link import Arrival, Link
from ._service import BUSY, MOST_BODIES, Service

WORKER: Final = re.compile(r"[-_A-Za-z0-9]{12}")
"""The id of a worker, with which the ids of its sessions begin."""
_MOST_ENTRIES: Final = 100_000
"""Entries in the stream of a worker; with more, the oldest are dropped."""
_IDLE_TICKS: Final = 100
"""Ticks without an exchange after which another worker is forgotten."""

_DEAD: Final = (
    "the process that served this session has ended before it answered: whether the request was "
    "served is not known"
)
_LOST: Final = (
    "Redis has lost messages between the workers of this server: whether the request was served is "
    "not known"
)
_TOO_LONG_AWAY: Final = (
    "the store that the workers of this server share has been away for long: whether the request "
    "was served is not known"
)
_NO_SESSION: Final = "there is no such session any more: open another by initialize"


class Member:
    """A worker in a cluster.

    Args:
        host: Runs the endpoint.
        engine: Sends commands to Redis, in their order.
        keys: The names of keys.
        worker: The id of this worker.
        principal_key: From a principal to its key.
        new_id: Makes the rest of the id of a session.
        lease: Seconds after which a worker that is silent counts as dead.
        max_events: Events kept for each session.
        max_bytes: Bytes of messages kept for each session.
        seconds: How long events are kept after the last one.

    Attributes:
        worker: The id of this worker.
        wires: The objects that carry the output of exchanges.
        links: The other workers, by id.
        changes: Tells changes to other workers, and of theirs.
    """

    def __init__(
        self,
        host: ClusterHost,
        engine: Engine,
        keys: Keys,
        worker: str,
        *,
        principal_key: PrincipalKey | None,
        new_id: Callable[[], str],
        lease: float,
        max_events: int,
        max_bytes: int,
        seconds: float,
    ) -> None:
        self.worker: Final = worker
        self.wires: Final = host.wires
        self.links: Final[dict[str, Link]] = {}
        self.changes: Final = Changes(host, engine, keys, worker)
        self._backlog: Final = Backlog(engine, keys.inbox(worker), self._take_all, lease / 2)
        self._host: Final = host
        self._engine: Final = engine
        self._keys: Final = keys
        self._principal_key: Final = principal_key
        self._new_id: Final = new_id
        self._lease: Final = lease
        self._numbers = 0  # of exchanges carried to others
        self._out: dict[ServerExchange, CarriedOut] = {}
        self._owing: dict[CarriedOut, None] = {}  # may have to tell what their clients took
        self._service: Final = Service(self, host, self._key_of_session)
        self._away_at: float | None = host.now()  # since when Redis cannot be reached
        self._back_at = -math.inf
        self._idle: dict[str, int] = {}  # ticks
        self._backlog.moved(host.now())
        self._events = EventStreams(
            host.endpoint,
            engine,
            keys,
            host.now,
            self._key_of_session,
            max_events=max_events,
            max_bytes=max_bytes,
            seconds=seconds,
        )

    def now(self) -> float:
        """The time for calls into the endpoint."""
        return self._host.now()

    @property
    def is_busy(self) -> bool:
        """Whether requests are carried to others, apart from GET, whose responses are endless."""
        return any(exchange.method != "GET" for exchange in self._out)

    # ------------------------------------------------------------------------------- sending

    def send(self, link: Link, kind: Kind, rest: Sequence[Any] = (), body: bytes = b"") -> int:
        """Send an entry to another worker, and return its number."""
        entry = link.next_entry(kind, rest, body)
        self._engine.put(
            Command(
                (
                    "XADD",
                    self._keys.inbox(link.peer),
                    "NOMKSTREAM",
                    "MAXLEN",
                    "~",
                    _MOST_ENTRIES,
                    "*",
                    *encode(entry),
                ),
                partial(self._not_sent, link, entry),
                only_nothing=True,
                is_lasting=True,
            )
        )
        return entry.number

    def _not_sent(self, link: Link, entry: Entry, outcome: Any) -> None:
        """The other worker has no stream, or Redis has refused the entry."""
        if isinstance(outcome, Exception):
            LOGGER.error("Redis has refused an entry: %s", outcome)
        if entry.kind is Kind.REQUEST:
            carried = link.carried_out.get(entry.rest[0])
            if carried is not None:
                self._drop(carried)
                if outcome is None and self._is_reliable():
                    carried.refuse(_NO_SESSION)  # it was not sent to anyone
                else:
                    carried.fail(AWAY)
        if outcome is None:
            if self._is_reliable():
                self._end_link(link, _DEAD)
        else:
            self._end_link(link, _LOST)
        self._host.turn()

    def _is_reliable(self) -> bool:
        """Whether a worker without a lease is dead.

        Where Redis has been away or is new, living workers first have to renew their leases.
        """
        return self._away_at is None and self.now() - self._back_at >= self._lease

    def _link(self, peer: str) -> Link:
        link = self.links.get(peer)
        if link is None:
            link = self.links[peer] = Link(self.worker, peer, time.monotonic_ns())
        return link

    # ---------------------------------------------------------------------- of the endpoint

    def handle(self, event: ClusterEvent) -> None:
        """Handle an event of the endpoint."""
        endpoint = self._host.endpoint
        match event:
            case SessionRequested():
                session_id = f"{self.worker}.{self._new_id()}"
                endpoint.open_session(event, session_id, now=self.now())
            case SessionWanted():
                self._find(event)
            case RelayEnded():
                carried = self._out.get(event.exchange)
                if carried is not None:
                    self._drop(carried)
                    carried.forget()
                    if carried.asked:
                        self.send(carried.link, Kind.GONE, (carried.number,))
            case EventToStore():
                self._events.store(event)
            case ReplayWanted():
                if self._away_at is None:
                    self._events.replay(event)
                else:
                    self._fail(event)
            case SessionEnded():
                self._events.ended(event.session, keep=event.cause is SessionEnd.CLOSED)

    def _fail(self, question: SessionWanted | ReplayWanted, text: str = AWAY) -> None:
        self._host.endpoint.fail_lookup(
            question, text, status=503, retry_after=RETRY_SECONDS, now=self.now()
        )

    def _refuse(self, wanted: SessionWanted) -> None:
        self._host.endpoint.refuse_session(wanted, now=self.now())

    def _find(self, wanted: SessionWanted) -> None:
        """Find the worker that has a session."""
        owner = wanted.session_id.partition(".")[0]
        if not WORKER.fullmatch(owner) or owner == self.worker:
            self._refuse(wanted)
            return
        if self._away_at is not None:
            self._fail(wanted)
            return
        link = self._link(owner)
        # A client that resumes a stream may be given the rest of it by any worker, so it is worth
        # the time to ask first.
        if wanted.stream is None and self.now() - link.alive_at < self._lease:
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
                self._fail(wanted)
        elif outcome:
            link.alive_at = self.now()
            for wanted in waiting:
                self._carry(link, wanted)
        elif not self._is_reliable():
            for wanted in waiting:
                self._fail(wanted)
        else:
            self._end_link(link, _DEAD)
            for wanted in waiting:
                self._replay_or_refuse(wanted)
            if link.is_idle and not link.waiting:  # ids of sessions that never were take no memory
                self.links.pop(link.peer, None)
                self._idle.pop(link.peer, None)
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
            self._fail(wanted)
        elif found:
            self._host.endpoint.replay_ended(wanted, found, now=self.now())
        else:
            self._refuse(wanted)
        self._host.turn()

    def _carry(self, link: Link, wanted: SessionWanted) -> None:
        """Carry a request to the worker that has its session."""
        if not link.has_room and self._unsent() + wanted.exchange.held_bytes > MOST_BODIES:
            self._fail(wanted, BUSY)
            return
        request = self._host.endpoint.carry(wanted, now=self.now())
        if request is None:
            return  # its client is gone
        self._numbers += 1
        carried = CarriedOut(self, link, self._numbers, wanted.exchange)
        self._out[wanted.exchange] = carried
        carried.ask(wanted.session_id, request)

    def _unsent(self) -> int:
        return sum(carried.waiting_bytes for carried in self._out.values())

    def _drop(self, carried: CarriedOut) -> None:
        """An exchange has ended: nothing more is done about it."""
        self._out.pop(carried.exchange, None)
        self._owing.pop(carried, None)

    def _key_of_session(self, session: Session) -> str | None:
        return key_of(session.principal, self._principal_key)

    def turned(self) -> None:
        """Output was taken: tell the workers whose responses wait for that."""
        for carried in tuple(self._owing):
            carried.grant()
            if not carried.owes_grant:
                del self._owing[carried]

    # ----------------------------------------------------------------------- of other workers

    def receive(self, entries: Sequence[Fields]) -> None:
        """Take entries that other workers have sent."""
        self._backlog.receive(entries, self.now())

    def _take_all(self, entries: Iterable[Fields]) -> None:
        found = [decode(fields) for fields in entries]
        given_up = {
            (entry.sender, entry.rest[0])
            for entry in found
            if entry is not None and entry.kind is Kind.GONE
        }
        touched: dict[Link, None] = {}
        for entry in found:
            if entry is None:
                LOGGER.warning("an entry in Redis is not one of this version")
                continue
            link = self._link(entry.sender)
            touched[link] = None
            link.alive_at = self.now()
            arrival = link.receive(entry)
            if arrival is Arrival.AGAIN:
                continue
            if arrival is Arrival.LATER:
                self._lost_before(link, entry)
                link.proceed(entry)
            if entry.kind is Kind.REQUEST and (entry.sender, entry.rest[0]) in given_up:
                continue  # must not be served: its client got an error
            self._take(link, entry)
        for link in touched:
            self._go_on(link)
            if link.owes_sync:
                self.send(link, Kind.SYNC, (0,))
        self._host.turn()

    def _go_on(self, link: Link) -> None:
        """Send the entries that wait for room."""
        while link.stalled and link.has_room:
            carried = next(iter(link.stalled))
            del link.stalled[carried]
            carried.go_on()

    def _take(self, link: Link, entry: Entry) -> None:
        rest = entry.rest
        match entry.kind:
            case Kind.REQUEST | Kind.REQUEST_BODY | Kind.GONE | Kind.TAKEN:
                self._service.take(link, entry)
            case Kind.RESPONSE | Kind.RESPONSE_BODY | Kind.FAILED:
                carried_out = link.carried_out.get(rest[0])
                if carried_out is not None:
                    self._take_response(carried_out, entry)
            case Kind.LOST:
                if rest[0] == link.base:
                    for one in tuple(link.carried_out.values()):
                        if 0 < one.asked < rest[1]:
                            self._drop(one)
                            one.fail(_LOST)
            case Kind.BYE:
                self._end_link(link, _DEAD)
                link.alive_at = -math.inf
            case Kind.SYNC:
                if rest[0]:
                    self.send(link, Kind.SYNC, (0,))

    def _take_response(self, carried: CarriedOut, entry: Entry) -> None:
        rest = entry.rest
        if entry.kind is Kind.FAILED:
            self._drop(carried)
            carried.fail(rest[1])
            return
        has_more = rest[1]
        if entry.kind is Kind.RESPONSE and not carried.respond(rest[2], rest[3]):
            return  # the client is gone, of which the endpoint has told, or will
        if not has_more:
            self._drop(carried)
        if carried.take(entry.body, has_more) and carried.owes_grant:
            self._owing[carried] = None

    def _lost_before(self, link: Link, entry: Entry) -> None:
        """Entries before this one were lost: end the exchanges that they may have been about."""
        LOGGER.warning("Redis has lost entries of another worker: its open exchanges end")
        self.send(link, Kind.LOST, (entry.base, entry.number))
        for carried in tuple(link.carried_in.values()):
            self._service.lose(carried)
        knows = entry.read if entry.read_base == link.base else 0
        for carried_out in tuple(link.carried_out.values()):
            if 0 < carried_out.asked <= knows:
                self._drop(carried_out)
                carried_out.fail(_LOST)
                self.send(link, Kind.GONE, (carried_out.number,))

    def _end_link(self, link: Link, text: str) -> None:
        """Another worker is gone: its part of all exchanges ends."""
        link.alive_at = -math.inf
        for carried_out in tuple(link.carried_out.values()):
            self._drop(carried_out)
            carried_out.fail(text)
            if carried_out.asked:
                # Should it go on after a pause, it must not serve what has failed here.
                self.send(link, Kind.GONE, (carried_out.number,))
        for carried in tuple(link.carried_in.values()):
            self._service.lose(carried)
        link.stalled.clear()
        link.forget_sent()

    # ---------------------------------------------------------------------- time and failures

    def tick(self) -> None:
        """Part of a lease has passed: look for workers that are gone."""
        self._backlog.moved(self.now())
        if self._away_at is not None:
            if self.now() - self._away_at >= self._lease:
                for link in self.links.values():
                    self._end_link(link, _TOO_LONG_AWAY)
            self._host.turn()
            return
        for peer, link in tuple(self.links.items()):
            if link.is_idle and not link.waiting:
                self._idle[peer] = self._idle.get(peer, 0) + 1
                if self._idle[peer] > _IDLE_TICKS:
                    del self._idle[peer], self.links[peer]
                continue
            self._idle.pop(peer, None)
            if link.is_idle:
                continue
            self.send(link, Kind.SYNC, (1,))  # so that both notice what was lost
            done = partial(self._looked, link)
            self._engine.put(Command(("EXISTS", self._keys.lease(peer)), done))

    def _looked(self, link: Link, outcome: Any) -> None:
        if isinstance(outcome, Exception):
            return
        if outcome:
            link.alive_at = self.now()
        elif self._is_reliable():
            if not link.is_idle:
                LOGGER.warning("worker %s is gone: the exchanges with it end", link.peer)
            self._end_link(link, _DEAD)
            self._host.turn()

    def went_away(self) -> None:
        """Redis cannot be reached."""
        if self._away_at is None:
            self._away_at = self.now()

    def came_back(self, was_joined: bool) -> None:
        """Redis can be reached: again, or for the first time."""
        if was_joined and self._away_at is not None:
            self._back_at = self.now()
        self._away_at = None
        self._events.renew_all()
        for link in self.links.values():
            link.alive_at = -math.inf
            if not link.is_idle:
                self.send(link, Kind.SYNC, (1,))

    def leave(self) -> None:
        """Tell the others that this worker ends."""
        for link in self.links.values():
            if self.now() - link.alive_at < self._lease:
                self.send(link, Kind.BYE)
