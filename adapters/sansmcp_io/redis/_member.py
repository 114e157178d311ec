"""A worker in a cluster: what it carries to others and for them. No I/O is done here.

It is given events of the endpoint, entries of other workers, answers of Redis, and ticks; it calls
the endpoint, and gives commands for Redis. All of it happens in the thread of the loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

import attrs

from sansmcp import TasksWanted, TaskToStore, TaskWanted
from sansmcp.http import (
    EventToStore,
    RelayEnded,
    ReplayWanted,
    ServerExchange,
    SessionEnd,
    SessionEnded,
    SessionRequested,
    SessionWanted,
)

from .._common.anomalies import LOGGER
from .._common.cluster import ClusterEvent, ClusterHost
from ._backlog import Backlog
from ._carried import CARRIED_HEADERS, CarriedOut, Sent
from ._changes import Changes
from ._commands import Command, Engine, Keys, Word
from ._entries import Entry, Fields, Kind, decode, encode
from ._events import AWAY, RETRY_SECONDS, EventStreams
from ._link import Arrival, Link, Links
from ._principals import Principals
from ._reachability import Reachability
from ._service import BUSY, MOST_BODIES, Service
from ._sessions import SessionFinder
from ._tasks import SharedTasks

_MOST_ENTRIES: Final = 100_000
"""Entries in the stream of a worker; with more, the oldest are dropped."""

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
        principals: Turns principals into JSON values and back.
        headers: The names of headers of requests that are carried beside `CARRIED_HEADERS`.
        new_id: Makes the rest of the id of a session.
        lease: Seconds after which a worker that is silent counts as dead.
        max_events: Events kept for each session.
        max_bytes: Bytes of messages kept for each session.
        seconds: How long events are kept after the last one.
        max_tasks: Tasks kept for each owner.
        max_task_bytes: Bytes kept for each task.

    Attributes:
        worker: The id of this worker.
        headers: The names of headers that are carried.
        wires: The objects that carry the output of exchanges.
        links: The other workers.
        changes: Tells changes to other workers, and of theirs.
        tasks: The tasks of all workers.
    """

    def __init__(
        self,
        host: ClusterHost,
        engine: Engine,
        keys: Keys,
        worker: str,
        *,
        principals: Principals,
        headers: frozenset[bytes],
        new_id: Callable[[], str],
        lease: float,
        max_events: int,
        max_bytes: int,
        seconds: float,
        max_tasks: int,
        max_task_bytes: int,
    ) -> None:
        self.worker: Final = worker
        self.headers: Final = CARRIED_HEADERS | headers
        self.wires: Final = host.wires
        self.links: Final = Links(worker)
        self.changes: Final = Changes(host, engine, keys, worker)
        self._backlog: Final = Backlog(engine, keys.inbox(worker), self._take_all, lease / 2)
        self._host: Final = host
        self._engine: Final = engine
        self._keys: Final = keys
        self._principals: Final = principals
        self._lease: Final = lease
        self._numbers = 0  # of exchanges carried to others
        self._out: dict[ServerExchange, CarriedOut] = {}
        self._owing: dict[CarriedOut, None] = {}  # may have to tell what their clients took
        self._service: Final = Service(self, host, principals)
        self._redis: Final = Reachability(host.now, lease)
        self.tasks: Final = SharedTasks(
            host,
            engine,
            keys,
            worker,
            redis=self._redis,
            most=max_tasks,
            max_bytes=max_task_bytes,
        )
        self._has_left = False
        self._backlog.moved(host.now())
        self._events = EventStreams(
            host.endpoint,
            engine,
            keys,
            host.now,
            max_events=max_events,
            max_bytes=max_bytes,
            seconds=seconds,
        )
        self._sessions: Final = SessionFinder(
            host,
            engine,
            keys,
            worker,
            principals=principals,
            new_id=new_id,
            lease=lease,
            redis=self._redis,
            events=self._events,
            links=self.links,
            carry=self._carry,
            end_link=partial(self._end_link, text=_DEAD),
        )

    def now(self) -> float:
        """The time for calls into the endpoint."""
        return self._host.now()

    @property
    def is_busy(self) -> bool:
        """Whether requests are carried to others, apart from GET, whose responses are endless."""
        return any(exchange.method != "GET" for exchange in self._out)

    # ------------------------------------------------------------------------------- sending

    def send(self, link: Link, kind: Kind, rest: Sequence[Any] = (), body: bytes = b"") -> Sent:
        """Send an entry to another worker."""
        entry = link.next_entry(kind, rest, body)
        command = Command(self._words(link, entry), only_nothing=True, is_lasting=True)
        sent = Sent(entry, command)
        command.done = partial(self._not_sent, link, sent)
        self._engine.put(command)
        return sent

    def _words(self, link: Link, entry: Entry) -> tuple[Word, ...]:
        inbox = self._keys.inbox(link.peer)
        bound: tuple[Word, ...] = ("NOMKSTREAM", "MAXLEN", "~", _MOST_ENTRIES)
        return ("XADD", inbox, *bound, "*", *encode(entry))

    def withdraw(self, link: Link, sent: Sent) -> bool:
        """Take back an entry, and return whether it was certainly not sent.

        An empty entry is sent in its place: a number that is missing would stand for a loss.
        """
        empty = attrs.evolve(sent.entry, kind=Kind.SYNC, rest=(0,), body=b"")
        return self._engine.withdraw(sent.command, self._words(link, empty))

    def _not_sent(self, link: Link, sent: Sent, outcome: Any) -> None:
        """The other worker has no stream, or Redis has refused the entry."""
        entry = sent.entry
        if isinstance(outcome, Exception):
            LOGGER.error("Redis has refused an entry: %s", outcome)
        if entry.kind is Kind.REQUEST and sent.command.tries <= 1:  # it was not sent before, either
            carried = link.carried_out.get(entry.rest[0])
            if carried is not None:
                self._drop(carried)
                carried.withdraw()
                if outcome is None and self._redis.is_reliable:
                    carried.refuse(_NO_SESSION)
                else:
                    carried.fail(AWAY, RETRY_SECONDS)
        if outcome is None:
            if self._redis.is_reliable:
                self._end_link(link, _DEAD)
        else:
            self._end_link(link, _LOST)
        self._host.turn()

    # ---------------------------------------------------------------------- of the endpoint

    def handle(self, event: ClusterEvent) -> None:
        """Handle an event of the endpoint."""
        match event:
            case SessionRequested():
                self._sessions.open(event)
            case SessionWanted():
                self._sessions.find(event)
            case RelayEnded():
                carried = self._out.get(event.exchange)
                if carried is not None:
                    self._drop(carried)
                    carried.forget()
                    if not carried.withdraw():
                        self.send(carried.link, Kind.GONE, (carried.number,))
            case EventToStore():
                self._events.store(event)
            case ReplayWanted():
                if self._redis.is_away:
                    self._sessions.fail(event)
                else:
                    self._events.replay(event)
            case TaskWanted() | TasksWanted() | TaskToStore():
                self.tasks.handle(event)
            case SessionEnded():
                # A client may come for the rest of its streams after the end of this worker.
                keep = event.cause is SessionEnd.CLOSED and self._service.is_ending
                self._events.ended(event.session, keep=keep)

    def _carry(self, link: Link, wanted: SessionWanted) -> None:
        """Carry a request to the worker that has its session."""
        if not link.has_room and self._unsent() + wanted.exchange.held_bytes > MOST_BODIES:
            self._sessions.fail(wanted, BUSY)
            return
        try:
            principal = self._principals.dump(wanted.exchange.principal)
        except Exception as error:
            LOGGER.error("a request cannot be carried", exc_info=error)
            endpoint = self._host.endpoint
            endpoint.fail_lookup(wanted, "internal error", status=500, now=self.now())
            return
        request = self._host.endpoint.carry(wanted, now=self.now())
        if request is None:
            return  # its client is gone
        self._numbers += 1
        carried = CarriedOut(self, link, self._numbers, wanted.exchange)
        self._out[wanted.exchange] = carried
        carried.ask(wanted.session_id, request, principal)

    def _unsent(self) -> int:
        return sum(carried.waiting_bytes for carried in self._out.values())

    def _drop(self, carried: CarriedOut) -> None:
        """An exchange has ended: nothing more is done about it."""
        self._out.pop(carried.exchange, None)
        self._owing.pop(carried, None)

    def turned(self) -> None:
        """Output was taken: tell the workers whose responses wait for that."""
        for carried in tuple(self._owing):
            carried.grant()
            if not carried.owes_grant:
                del self._owing[carried]

    # ----------------------------------------------------------------------- of other workers

    def receive(self, entries: Sequence[Fields]) -> None:
        """Take entries that other workers have sent."""
        if self._has_left:
            return  # they were told which of theirs were read
        self._backlog.receive(entries, self.now())

    def _take_all(self, entries: Iterable[Fields]) -> None:
        found = [decode(fields) for fields in entries]
        gone = {
            (entry.sender, entry.rest[0])
            for entry in found
            if entry is not None and entry.kind is Kind.GONE
        }
        touched: dict[Link, None] = {}
        for entry in found:
            if entry is None or entry.sender == self.worker:
                LOGGER.warning("an entry in Redis is not one of this version")
                continue
            link = self.links.to(entry.sender)
            touched[link] = None
            link.alive_at = self.now()
            arrival = link.receive(entry)
            if arrival is Arrival.AGAIN:
                continue
            if arrival is Arrival.LATER:
                self._lost_before(link, entry)
                link.proceed(entry)
            if entry.kind is Kind.REQUEST and (entry.sender, entry.rest[0]) in gone:
                continue  # must not be served: its client got an error
            try:
                self._take(link, entry)
            except Exception as error:  # the others must not wait for it
                LOGGER.error("an entry of another worker cannot be handled", exc_info=error)
                self._end_exchange_of(link, entry)
        for link in touched:
            self._go_on(link)
            if link.owes_sync:
                self.send(link, Kind.SYNC, (0,))
        self._host.turn()

    def _end_exchange_of(self, link: Link, entry: Entry) -> None:
        """End the exchange of an entry that cannot be handled."""
        carried = link.carried_out.get(entry.rest[0]) if entry.rest else None
        if carried is not None and entry.kind in (Kind.RESPONSE, Kind.RESPONSE_BODY):
            self._drop(carried)
            carried.fail(_LOST)
            self.send(link, Kind.GONE, (carried.number,))

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
                self._left(link, entry)
            case Kind.SYNC:
                if rest[0]:
                    self.send(link, Kind.SYNC, (0,))

    def _take_response(self, carried: CarriedOut, entry: Entry) -> None:
        rest = entry.rest
        if entry.kind is Kind.FAILED:
            self._drop(carried)
            carried.fail(rest[1], rest[2] or None)
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

    def _left(self, link: Link, entry: Entry) -> None:
        """Another worker has ended in order: requests that it has not read were not served."""
        link.has_left = True
        read = entry.read if entry.read_base == link.base else 0
        for carried in tuple(link.carried_out.values()):
            if not 0 < carried.asked_all <= read:
                self._drop(carried)
                carried.withdraw()
                carried.refuse(_NO_SESSION)
        self._end_link(link, _DEAD)

    def _end_link(self, link: Link, text: str) -> None:
        """Another worker is gone: its part of all exchanges ends."""
        link.alive_at = -math.inf
        for carried_out in tuple(link.carried_out.values()):
            self._drop(carried_out)
            if not carried_out.withdraw():
                carried_out.fail(text)
                # Should it go on after a pause, it must not serve what has failed here.
                self.send(link, Kind.GONE, (carried_out.number,))
            elif text == _DEAD:
                carried_out.refuse(_NO_SESSION)
            else:
                carried_out.fail(AWAY, RETRY_SECONDS)
        for carried in tuple(link.carried_in.values()):
            self._service.lose(carried)
        link.stalled.clear()
        link.forget_sent()

    # ---------------------------------------------------------------------- time and failures

    def tick(self) -> None:
        """Part of a lease has passed: look for workers that are gone."""
        self._backlog.moved(self.now())
        self.tasks.tick()
        if self._redis.is_away:
            if self._redis.is_long_away:
                for link in self.links:
                    self._end_link(link, _TOO_LONG_AWAY)
            self._host.turn()
            return
        self.links.tick()
        for link in self.links:
            if link.is_idle:
                continue
            self.send(link, Kind.SYNC, (1,))  # so that both notice what was lost
            done = partial(self._looked, link)
            self._engine.put(Command(("EXISTS", self._keys.lease(link.peer)), done))

    def _looked(self, link: Link, outcome: Any) -> None:
        if isinstance(outcome, Exception):
            return
        if outcome:
            link.alive_at = self.now()
        elif self._redis.is_reliable:
            if not link.is_idle:
                LOGGER.warning("worker %s is gone: the exchanges with it end", link.peer)
            self._end_link(link, _DEAD)
            self._host.turn()

    def went_away(self) -> None:
        """Redis cannot be reached."""
        self._redis.went_away()

    def came_back(self, age: float) -> None:
        """Redis can be reached: again, or for the first time.

        Args:
            age: The seconds since its start, of which only those before the first time count.
        """
        is_again = self._redis.was_reached
        self._redis.came_back(age)
        if is_again:
            self._backlog.hold()  # the others may have ended what they had sent
        self._events.renew_all()
        self.tasks.came_back()
        for link in self.links:
            link.alive_at = -math.inf
            if not link.is_idle:
                self.send(link, Kind.SYNC, (1,))

    def drain(self) -> None:
        """This worker ends soon: serve no new requests of others."""
        self._service.is_ending = True
        self.tasks.drain()

    def leave(self) -> None:
        """Tell the others that this worker ends, and read no more of them."""
        self.drain()
        self._has_left = True
        self._engine.drop_lease()
        for link in self.links:
            if self.now() - link.alive_at < self._lease:
                self.send(link, Kind.BYE)
