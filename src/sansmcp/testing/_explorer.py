"""Every way in which two short scripts, the wire, the clock and the end of a stream can interleave.

The trick that makes it fast: what a side does next depends on nothing but its own state and its
next input. So each side is run once for each (state, input), by copying, acting and comparing
canonical forms, and the exploration itself only combines numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

import attrs

from sansmcp import (
    ClientConnection,
    ProtocolViolation,
    ServerConnection,
    Side,
    State,
)

from ._pair import Pair
from ._plain import canonical, plain
from ._script import Actor, Script

Flight: TypeAlias = tuple[bytes, ...] | None
"""Messages in flight towards a side; None once the end of the stream has come."""

_Action: TypeAlias = int | bytes | Literal["end", "deadline"]
"""What may happen to a side: a step of the script of that number, a message, or one of these."""

_Place: TypeAlias = tuple[tuple[int, int], tuple[Flight, Flight]]
"""A state of the whole: the numbers of both sides' states, and what is in flight to each."""

_SIDES: Final = (Side.CLIENT, Side.SERVER)

_Origin: TypeAlias = tuple[_Place, Side, _Action] | None


@attrs.frozen(eq=False)
class World:
    """One state of the whole, to look at. Nothing in it may be changed."""

    client: Actor
    server: Actor
    to_client: Flight
    to_server: Flight


@attrs.frozen
class Exploration:
    """What an exploration that found nothing wrong has seen.

    Attributes:
        states: States of the whole.
        transitions: Ways from one to the next.
        depth: Transitions on the shortest way to the farthest state.
        messages: Every message that was ever sent, by (side, message).
        events: The kinds of events that ever came, by (side, name).
    """

    states: int
    transitions: int
    depth: int
    messages: frozenset[tuple[Side, bytes]]
    events: frozenset[tuple[Side, str]]

    def __str__(self) -> str:
        return f"{self.states} states, {self.transitions} transitions, depth {self.depth}"


class InvariantBroken(AssertionError):
    """An exploration has seen what never happens between two sides that keep to the rules."""


class ExplorationFailed(AssertionError):
    """Something is wrong in some state.

    Attributes:
        trace: The shortest way there: who does what.
    """

    def __init__(self, trace: list[str], cause: BaseException) -> None:
        steps = "\n".join(f"  {number}. {step}" for number, step in enumerate(trace, 1))
        super().__init__(f"{type(cause).__name__}: {cause}\nafter\n{steps}")
        self.trace = trace


def explore(
    pair: Pair,
    *,
    client: Sequence[Script] = (),
    server: Sequence[Script] = (),
    eof: bool = True,
    timeouts: bool = True,
    check: Callable[[World], None] | None = None,
    loses: Callable[[Side, bytes], bool] | None = None,
    actor: Callable[[ClientConnection | ServerConnection, int], Actor] = Actor,
    max_states: int = 2_000_000,
) -> Exploration:
    """Try every interleaving of scripts, deliveries, deadlines and ends of the two streams.

    In every state each of these may come next: the next step of any script; the next message in
    flight to either side; the next deadline of either side, however little time has passed on
    the other; the end of the stream to either side, with all that was in flight lost. Both sides
    keep to the rules, so neither may report a violation.

    Args:
        pair: Where to begin. It is not changed.
        client: Scripts of the client, which run side by side.
        server: Scripts of the server.
        eof: Whether streams end.
        timeouts: Whether deadlines pass.
        check: Is called in every state, and raises if something is wrong.
        loses: Whether a message of a side never arrives: how a peer would be that leaves some of
            them unread.
        actor: Makes the actor of a side from its connection and the number of its scripts. Give a
            subclass of `Actor` to remember or to check more.
        max_states: The number of states above which `RuntimeError` is raised.

    Raises:
        ExplorationFailed: Something is wrong; the trace is as short as any.
        RuntimeError: There are too many states.
    """
    pair = copy.deepcopy(pair)
    flights = [tuple(pair.wire_to(side).messages) for side in Side]
    sides = (
        _Explored(actor(pair.client, len(client)), client, timeouts),
        _Explored(actor(pair.server, len(server)), server, timeouts),
    )
    first: _Place = ((0, 0), (flights[Side.CLIENT], flights[Side.SERVER]))
    origins: dict[_Place, _Origin] = {first: None}
    transitions = depth = 0

    def fail(place: _Place, error: Exception, *last: str) -> ExplorationFailed:
        trace = list(last)
        while (origin := origins[place]) is not None:
            place, side, action = origin
            trace.insert(0, sides[side].name(side, place[0][side], action))
        return ExplorationFailed(trace, error)

    level = [first]
    while level:
        reached: list[_Place] = []
        for place in level:
            try:
                if check is not None:
                    check(_world(sides, place))
            except Exception as error:
                raise fail(place, error) from error
            for side, action in _moves(sides, place, eof):
                transitions += 1
                try:
                    number, sent = sides[side].run(place[0][side], action)
                except Exception as error:
                    raise fail(
                        place, error, sides[side].name(side, place[0][side], action)
                    ) from error
                if loses is not None:
                    sent = tuple(message for message in sent if not loses(side, message))
                after = _after(place, side, action, number, sent)
                if after not in origins:
                    origins[after] = (place, side, action)
                    reached.append(after)
        if len(origins) > max_states:
            raise RuntimeError(f"more than {max_states} states")
        level = reached
        depth += bool(reached)
    return Exploration(
        states=len(origins),
        transitions=transitions,
        depth=depth,
        messages=frozenset((side, text) for side in Side for text in sides[side].messages),
        events=frozenset((side, kind) for side in Side for kind in sides[side].events),
    )


def _moves(
    sides: tuple[_Explored, _Explored], place: _Place, eof: bool
) -> Iterator[tuple[Side, _Action]]:
    """Everything that may come next."""
    for side in _SIDES:
        number, flight = place[0][side], place[1][side]
        for action in sides[side].actions[number]:
            yield side, action
        if flight:
            yield side, flight[0]
        if eof and flight is not None and not sides[side].is_closed(number):
            yield side, "end"


def _after(
    place: _Place, side: Side, action: _Action, number: int, sent: tuple[bytes, ...]
) -> _Place:
    """The state of the whole after something happened to a side."""
    numbers, flights = place
    mine, theirs = flights[side], flights[1 - side]
    if action == "end":
        mine = None
    elif mine is not None and isinstance(action, bytes):
        mine = mine[1:]
    if theirs is not None and sent:
        theirs += sent
    if side is Side.CLIENT:
        return (number, numbers[1]), (mine, theirs)
    return (numbers[0], number), (theirs, mine)


def _world(sides: tuple[_Explored, _Explored], place: _Place) -> World:
    (client, server), (to_client, to_server) = place
    return World(
        client=sides[0].actors[client],
        server=sides[1].actors[server],
        to_client=to_client,
        to_server=to_server,
    )


class _Explored:
    """One side: the states it was seen in, and what each input makes of each of them."""

    def __init__(
        self,
        actor: Actor,
        scripts: Sequence[Script],
        timeouts: bool,
    ) -> None:
        self.actors: list[Actor] = []
        self.actions: list[tuple[_Action, ...]] = []
        self.messages: set[bytes] = set()
        self.events: set[str] = set()
        self._scripts: Final = scripts
        self._timeouts: Final = timeouts
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[tuple[int, _Action], tuple[int, tuple[bytes, ...]]] = {}
        actor.take_events()
        self._number(actor)

    def run(self, number: int, action: _Action) -> tuple[int, tuple[bytes, ...]]:
        """The state that follows upon a state, and the messages that go out meanwhile."""
        known = self._known.get((number, action))
        if known is None:
            actor = copy.deepcopy(self.actors[number])
            self._act(actor, action)
            for event in actor.take_events():
                if isinstance(event, ProtocolViolation):
                    text = f"a peer that keeps to the rules is reported: {plain([event])}"
                    raise InvariantBroken(text)
                self.events.add(type(event).__name__)
            sent = tuple(actor.connection.messages_to_send())
            self.messages.update(sent)
            known = self._known[number, action] = (self._number(actor), sent)
        return known

    def is_closed(self, number: int) -> bool:
        """Whether the connection is closed in this state."""
        return self.actors[number].connection.state is State.CLOSED

    def _act(self, actor: Actor, action: _Action) -> None:
        connection = actor.connection
        if isinstance(action, int):
            step = self._scripts[action][actor.positions[action]]
            actor.positions[action] += 1
            step.act(actor)
        elif isinstance(action, bytes):
            connection.receive_message(action)
        elif action == "end":
            connection.receive_eof()
        else:
            deadline = connection.next_timeout()
            assert deadline is not None  # else this action is not offered
            connection.handle_timeout(deadline)

    def _number(self, actor: Actor) -> int:
        """The number of this state, a new one if it was never seen."""
        deadline = actor.connection.next_timeout()  # first: it tidies the table of deadlines
        form = canonical(actor)
        number = self._numbers.setdefault(form, len(self.actors))
        if number == len(self.actors):
            actions: list[_Action] = [
                at
                for at, (script, position) in enumerate(
                    zip(self._scripts, actor.positions, strict=True)
                )
                if position < len(script) and script[position].ready(actor)
            ]
            if self._timeouts and deadline is not None:
                actions.append("deadline")
            self.actors.append(actor)
            self.actions.append(tuple(actions))
        return number

    def name(self, side: Side, number: int, action: _Action) -> str:
        """What happens to this side in this state, in words."""
        who = side.name.lower()
        if isinstance(action, bytes):
            return f"{who} receives {action.decode()}"
        if action == "end":
            return f"the stream to the {who} ends"
        if action == "deadline":
            return f"a deadline of the {who} passes"
        return f"{who}: {self._scripts[action][self.actors[number].positions[action]].name}"
