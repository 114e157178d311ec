"""Adds an observer to every connection in a test. The observer must not accuse this library."""

import attrs

from sansmcp import ClientConnection, Observer, ServerConnection, Side, ViolationSeen

Connection = ClientConnection | ServerConnection

# `send_notification` sends what the application wants; `publish` tells subscribers only.
_UP_TO_THE_APPLICATION = frozenset({"RES-008"})
# Without `tasks=Tasks(...)`, messages about tasks pass through as the application has made them.
_ON_TASKS = "TASK-"


@attrs.define(eq=False)
class Watch:
    """An observer of one connection and its peer, which sees what the connection sees.

    A test may deliver a response before it has taken the request out of the connection. That order
    is impossible between two real peers, so the observer is dropped when this happens.
    """

    side: Side
    observer: Observer | None = attrs.field(factory=Observer)
    keeps_tasks: bool = True
    only_messages: bool = False

    def peer_sent_message(self, connection: Connection, message: bytes) -> None:
        """Pass a message that came without line framing to the observer, as a line."""
        self.peer_said(connection, message.replace(b"\n", b" ") + b"\n")
        self.only_messages = True

    def peer_said(self, connection: Connection, data: bytes) -> None:
        if self.only_messages and data.startswith(b"\xef"):
            self.observer = None  # a byte order mark inside the stream of the observer
        if data:
            self.only_messages = False
        if self.observer is not None:
            self.observer.receive_data(self.side.other, data)
            accused = self._accused()
            if connection.unsent_bytes and any(event.side is not self.side for event in accused):
                self.observer = None

    def peer_ended(self) -> None:
        """Tell the observer that the peer's stream has ended, perhaps without a last newline."""
        if self.observer is not None:
            self.observer.receive_eof(self.side.other)

    def we_wrote(self, lines: list[bytes]) -> None:
        if self.observer is not None:
            for line in lines:
                self.observer.receive_data(self.side, line.rstrip(b"\n") + b"\n")
            accused = [event for event in self._accused() if self._is_ours(event)]
            assert not accused, (accused, lines)

    def _is_ours(self, event: ViolationSeen) -> bool:
        if event.side is not self.side or event.rule in _UP_TO_THE_APPLICATION:
            return False
        return self.keeps_tasks or not event.rule.startswith(_ON_TASKS)

    def _accused(self) -> list[ViolationSeen]:
        assert self.observer is not None
        found: list[ViolationSeen] = []
        while (event := self.observer.next_event()) is not None:
            if isinstance(event, ViolationSeen):
                found.append(event)
        return found
