"""A client, a server, and between them a wire that does what the test says.

Nothing here waits: time is a number, and a byte arrives when it is delivered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import attrs

from sansmcp import (
    LEGACY_REVISIONS,
    ClientConnection,
    Config,
    Event,
    JSONObject,
    Phase,
    ServerConnection,
    Side,
)

from ._plain import plain

CLIENT_INFO: Final[JSONObject] = {"name": "client", "version": "1"}
SERVER_INFO: Final[JSONObject] = {"name": "server", "version": "1"}

CLIENT_CAPABILITIES: Final[JSONObject] = {
    "elicitation": {"form": {}, "url": {}},
    "roots": {"listChanged": True},
    "sampling": {"context": {}, "tools": {}},
    "tasks": {
        "cancel": {},
        "list": {},
        "requests": {"elicitation": {"create": {}}, "sampling": {"createMessage": {}}},
    },
}
"""Everything that a client can declare."""

SERVER_CAPABILITIES: Final[JSONObject] = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "tasks": {"cancel": {}, "list": {}, "requests": {"tools": {"call": {}}}},
    "tools": {"listChanged": True},
}
"""Everything that a server can declare."""

EventT = TypeVar("EventT", bound=Event)


@attrs.define(eq=False)
class Wire:
    """One direction of the wire: what is in flight towards one side.

    Attributes:
        data: The bytes in flight, the next one first. Change them as you like.
        held: `Pair.deliver` passes this direction over; the other ways to deliver do not.
        ended: The end of the stream follows behind the bytes in flight.
        finished: That end has arrived; nothing does any more.
    """

    data: bytearray = attrs.field(factory=bytearray)
    held: bool = False
    ended: bool = False
    finished: bool = False

    def put(self, data: bytes) -> None:
        """Add bytes that neither connection sent, behind those in flight."""
        self.data += data

    def end(self) -> None:
        """End the stream behind the bytes in flight; what is sent later is lost."""
        self.ended = True

    def drop(self, n_bytes: int | None = None) -> bytes:
        """Lose the next bytes in flight, all of them by default, and return them."""
        n_bytes = len(self.data) if n_bytes is None else n_bytes
        dropped = bytes(self.data[:n_bytes])
        del self.data[:n_bytes]
        return dropped

    def drop_message(self) -> bytes:
        """Lose the next message in flight with its newline, and return it."""
        return self.drop(self.next_message_bytes())

    @property
    def messages(self) -> list[bytes]:
        """The messages in flight without their newlines; the last may be a piece of one."""
        return [line for line in bytes(self.data).split(b"\n") if line]

    def next_message_bytes(self) -> int:
        """How many bytes the next message has with its newline; all where there is no newline."""
        return self.data.find(b"\n") + 1 or len(self.data)


class Pair:
    """Two connections and a wire in memory, to drive by hand.

    Args:
        client: The client to use instead of one that declares everything.
        server: The server to use instead of one that declares everything.
        revision: The one revision that both of those speak: by default the newest in which either
            side may ask.
        client_revisions: What that client speaks instead, of one era or of both.
        server_revisions: What that server speaks instead.
        client_config: Limits and policies of that client.
        server_config: Limits and policies of that server.
        connected: Whether to open the conversation at once, and forget the events of it.
        now: The time in seconds, which both sides are told at once and with every delivery. None:
            no clock, until `advance` is called.

    Attributes:
        client: The client's connection. Call its verbs; its output is taken from it when
            anything is delivered, and its events when `events` is looked at.
        server: The server's connection, likewise.
        now: The time in seconds.
        transcript: Every message that either side has sent, in order, as (side, message).

    `copy.deepcopy` makes another pair in the same state.
    """

    def __init__(
        self,
        client: ClientConnection | None = None,
        server: ServerConnection | None = None,
        *,
        revision: str = LEGACY_REVISIONS[-1],
        client_revisions: Sequence[str] | None = None,
        server_revisions: Sequence[str] | None = None,
        client_config: Config | None = None,
        server_config: Config | None = None,
        connected: bool = True,
        now: float | None = 0.0,
    ) -> None:
        self.client: ClientConnection = client or ClientConnection(
            info=CLIENT_INFO,
            capabilities=CLIENT_CAPABILITIES,
            revisions=client_revisions or (revision,),
            config=client_config,
        )
        self.server: ServerConnection = server or ServerConnection(
            info=SERVER_INFO,
            capabilities=SERVER_CAPABILITIES,
            revisions=server_revisions or (revision,),
            config=server_config,
        )
        self.now = now
        self.transcript: list[tuple[Side, bytes]] = []
        self._wires = (Wire(), Wire())  # by the side that they lead to
        self._events: tuple[list[Event], list[Event]] = ([], [])
        if now is not None:
            self._tell(now)
        if connected:
            self.connect()
            self.clear_events()

    def connect(self) -> None:
        """Open the conversation; a client of both eras finds out what the server speaks.

        Raises:
            AssertionError: It did not come to an end, or to no good one.
        """
        self.client.start(now=self.now)
        self.deliver()
        # A server has no phase of a conversation in which each request speaks for itself.
        waits = self.server.phase is not Phase.OPERATING
        if self.client.phase is not Phase.OPERATING or (
            waits and self.client.revision in LEGACY_REVISIONS
        ):
            raise AssertionError(
                f"the opening failed: {plain(self.client_events)}, {plain(self.server_events)}"
            )

    def side(self, side: Side) -> ClientConnection | ServerConnection:
        """The connection of a side."""
        return self.client if side is Side.CLIENT else self.server

    # --------------------------------------------------------------------------------- time

    def advance(self, seconds: float) -> None:
        """Let time pass: both sides are told of every deadline on the way, and of the new time.

        Nothing is delivered meanwhile.
        """
        self.now = (self.now or 0.0) + seconds
        while (deadline := self.next_timeout()) is not None and deadline <= self.now:
            self._tell(deadline)
        self._tell(self.now)

    def next_timeout(self) -> float | None:
        """The earlier deadline of the two sides; None where neither has one."""
        deadlines = [self.client.next_timeout(), self.server.next_timeout()]
        return min((when for when in deadlines if when is not None), default=None)

    def _tell(self, now: float) -> None:
        self.client.handle_timeout(now)
        self.server.handle_timeout(now)

    # --------------------------------------------------------------------------------- wire

    @property
    def to_server(self) -> Wire:
        """What is in flight from the client to the server."""
        return self.wire_to(Side.SERVER)

    @property
    def to_client(self) -> Wire:
        """What is in flight from the server to the client."""
        return self.wire_to(Side.CLIENT)

    def wire_to(self, side: Side) -> Wire:
        """What is in flight to a side, all output of the other side included."""
        wire = self._wires[side]
        sender = side.other
        for message in self.side(sender).buffers_to_send():
            self.transcript.append((sender, message[:-1]))
            if not wire.ended:
                wire.data += message
        return wire

    def deliver(self, *, chunk_bytes: int | None = None) -> None:
        """Deliver everything in flight, and what is sent because of it, until both wires are quiet.

        Args:
            chunk_bytes: Into how large pieces to cut it.
        """
        moved = True
        while moved:
            moved = False
            for side in (Side.SERVER, Side.CLIENT):
                if not self._wires[side].held and self.deliver_to(side, chunk_bytes):
                    moved = True

    def deliver_to(self, side: Side, n_bytes: int | None = None) -> bool:
        """Deliver the next bytes in flight to a side as one chunk.

        Args:
            side: Who receives them.
            n_bytes: How many at most; all by default.

        Returns:
            Whether there was anything: bytes or, where none are left, the end of the stream.
        """
        wire = self.wire_to(side)
        if wire.data:
            self.side(side).receive_data(wire.drop(n_bytes), now=self.now)
        elif wire.ended and not wire.finished:
            wire.finished = True
            self.side(side).receive_eof(now=self.now)
        else:
            return False
        return True

    def deliver_message_to(self, side: Side) -> bool:
        """Deliver the next message in flight to a side, or the end of the stream.

        Returns:
            Whether there was anything.
        """
        return self.deliver_to(side, self.wire_to(side).next_message_bytes())

    def deliver_to_server(self, n_bytes: int | None = None) -> bool:
        """`deliver_to` the server."""
        return self.deliver_to(Side.SERVER, n_bytes)

    def deliver_to_client(self, n_bytes: int | None = None) -> bool:
        """`deliver_to` the client."""
        return self.deliver_to(Side.CLIENT, n_bytes)

    def deliver_message_to_server(self) -> bool:
        """`deliver_message_to` the server."""
        return self.deliver_message_to(Side.SERVER)

    def deliver_message_to_client(self) -> bool:
        """`deliver_message_to` the client."""
        return self.deliver_message_to(Side.CLIENT)

    # ------------------------------------------------------------------------------- events

    @property
    def events(self) -> tuple[list[Event], list[Event]]:
        """The events of each side since they were last cleared, by side; the lists are yours."""
        for side in Side:
            self._events[side].extend(drain(self.side(side)))
        return self._events

    @property
    def client_events(self) -> list[Event]:
        """The client's events since they were last cleared."""
        return self.events[Side.CLIENT]

    @property
    def server_events(self) -> list[Event]:
        """The server's events since they were last cleared."""
        return self.events[Side.SERVER]

    def clear_events(self) -> None:
        """Forget the events of both sides."""
        for events in self.events:
            events.clear()

    def deliver_one(self, kind: type[EventT], side: Side | None = None) -> EventT:
        """Deliver everything, and take the one event of this type out of `events`.

        Args:
            kind: The type of the event.
            side: Whose event it must be; either's by default.

        Raises:
            AssertionError: There is none of this type, or more than one.
        """
        self.deliver()
        found: list[tuple[EventT, list[Event]]] = [
            (event, events)
            for owner, events in zip(Side, self.events, strict=True)
            if side is None or side is owner
            for event in events
            if isinstance(event, kind)
        ]
        if len(found) != 1:
            client, server = (plain(events) for events in self.events)
            raise AssertionError(
                f"{len(found)} events of the type {kind.__name__} instead of one; "
                f"client: {client}, server: {server}"
            )
        [(event, events)] = found
        events[:] = [other for other in events if other is not event]
        return event


def drain(connection: ClientConnection | ServerConnection) -> list[Event]:
    """Take all events of a connection."""
    events: list[Event] = []
    while (event := connection.next_event()) is not None:
        events.append(event)
    return events
