"""Puts an observer beside every connection in a test; it must never accuse this library."""

import attrs

from sansmcp import ClientConnection, Observer, ServerConnection, Side, ViolationSeen

Connection = ClientConnection | ServerConnection

# `send_notification` sends what it is given, wanted or not; `publish` looks who is subscribed.
_UP_TO_THE_APPLICATION = {"RES-008"}


@attrs.define(eq=False)
class Watch:
    """An observer of one connection and its peer, at the place of the connection.

    A test may hand over an answer before it has taken the request out of the connection. What the
    observer then sees cannot have happened in this order, so that it is left alone from there on.
    """

    side: Side
    observer: Observer | None = attrs.field(factory=Observer)
    only_messages: bool = False

    def peer_sent_message(self, connection: Connection, message: bytes) -> None:
        """What came without a line around it is watched as one."""
        self.peer_said(connection, message.replace(b"\n", b" ") + b"\n")
        self.only_messages = True

    def peer_said(self, connection: Connection, data: bytes) -> None:
        if self.only_messages and data.startswith(b"\xef"):
            self.observer = None  # a mark at the start of a stream, which has begun for it before
        if data:
            self.only_messages = False
        if self.observer is not None:
            self.observer.receive_data(self.side.other, data)
            accused = self._accused()
            if connection.unsent_bytes and any(event.side is not self.side for event in accused):
                self.observer = None

    def peer_ended(self) -> None:
        """The peer's last line may lack its newline."""
        if self.observer is not None:
            self.observer.receive_eof(self.side.other)

    def we_wrote(self, lines: list[bytes]) -> None:
        if self.observer is not None:
            for line in lines:
                self.observer.receive_data(self.side, line.rstrip(b"\n") + b"\n")
            accused = [event for event in self._accused() if self._is_ours(event)]
            assert not accused, (accused, lines)

    def _is_ours(self, event: ViolationSeen) -> bool:
        return event.side is self.side and event.rule not in _UP_TO_THE_APPLICATION

    def _accused(self) -> list[ViolationSeen]:
        assert self.observer is not None
        found: list[ViolationSeen] = []
        while (event := self.observer.next_event()) is not None:
            if isinstance(event, ViolationSeen):
                found.append(event)
        return found
