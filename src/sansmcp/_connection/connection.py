"""Bytes with newline framing on top of the machine: what stdio and any byte stream speak."""

from __future__ import annotations

from typing import Any

from .._rules.sending import Breach
from .._rules.state_tables import State
from .._spec.errors import ErrorCode
from .._wire.codec import refusal
from .._wire.framing import (
    NO_NEWLINE,
    SPACE,
    Line,
    LineReader,
    Overlong,
    OverlongEnd,
    OverlongLine,
    Trimmer,
    is_blank,
)
from .._wire.setting_checks import check_clock
from .handles import OutgoingRequest
from .machine import Machine


class Connection(Machine):
    """Cuts input into lines, and joins output. Clients and servers share all of it."""

    __slots__ = (
        "_cut_off",
        "_lines",
        "_trimmer",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, newline=b"\n", timers=None, **kwargs)
        self._lines = LineReader(self._config.max_message_bytes)
        self._trimmer = Trimmer()
        self._cut_off: str | None = None  # the message that the stream ended in, if over the limit

    def receive_data(
        self,
        data: bytes | bytearray | memoryview,
        *,
        at: float | None = None,
        now: float | None = None,
    ) -> None:
        """Take the next bytes of the peer's stream, cut anywhere.

        Args:
            data: Any number of bytes; nothing of it is kept but an unfinished line.
            at: The time in Unix seconds. Where it is told and `Config.state_keys` are set, a
                server checks the seal of a state before it delivers the request.
            now: The caller's clock in seconds.

        Never raises for what the peer did: bad lines become events, good ones around them are
        served.

        Source: MCP 2025-11-25, basic/transports, stdio.
        """
        if now is not None:
            self._tell(now)
        if self._state is State.CLOSED or self._state is State.DRAINING:
            return
        if at is not None and at.__class__ is not float:
            check_clock("at", at)
        self._at = at
        for line in self._lines.feed(data):
            if isinstance(line, Overlong) or self._trimmer.first or not line or line[-1] <= SPACE:
                self._receive_odd_line(line)
            else:
                self._receive(line)
            if self._overflowing:
                self._end_overflow()
        if self._restless:
            self._settle()

    def data_to_send(self) -> bytes:
        """Take all queued output as one buffer; `b""` means that there is none now.

        A lone message is not copied.
        """
        output = self._output
        if not output:
            return b""
        if len(output) == 1 and not self._held:
            message = output[0][0]
            self._output = []
            self._unsent = 0
            self._told_output = False
            self._handed_over = self._sent
            return message
        return b"".join([message for message, _ in self._take_output()])

    def buffers_to_send(self) -> list[bytes]:
        """Take all queued output as buffers for a vectored write; `[]` means that there is none."""
        return [message for message, _ in self._take_output()]

    def _receive_odd_line(self, line: Line | OverlongEnd) -> None:
        """The first line, one that is too long or empty, or one that ends in white space."""
        if isinstance(line, OverlongLine):
            self._note_all(self._trimmer.unmark(line.head)[1])
            self._receive_overlong(line.head)
            return
        if isinstance(line, OverlongEnd):
            self._overlong_ended(line)
            return
        text, notes = self._trimmer.trim(line)
        self._note_all(notes)
        if text is not None:
            self._receive(text)

    def _input_ended(self) -> None:
        """A whole message without a newline is served, a piece of one reported."""
        rest = self._lines.end()
        if rest is None or not self._listens:
            return
        if isinstance(rest, OverlongEnd):
            self._cut_off_overlong(rest)
            return
        line, notes = self._trimmer.unmark(rest)
        self._note_all(notes)
        if is_blank(line):
            return
        try:
            self._decoder.decode(line)
        except (ValueError, RecursionError) as raised:
            text = f"{NO_NEWLINE}, and the last line is no whole message: {refusal(raised)}"
            breach = Breach("OWN-018", text, ErrorCode.PARSE_ERROR)
            self._refuse_unreadable(breach, None, excerpt=self._excerpt(line))
        else:
            self._report(Breach("OWN-018", NO_NEWLINE, tolerated=True), excerpt=self._excerpt(line))
            self._receive_odd_line(line)

    def _cut_off_overlong(self, end: OverlongEnd) -> None:
        """The stream has ended in a message over the limit, which was reported (OWN-001)."""
        limit = self._config.max_message_bytes
        text = (
            f"the stream ended in a message of {end.size} bytes without a newline; "
            f"the limit of Config.max_message_bytes is {limit}"
        )
        self._report(Breach("OWN-018", text))
        if self._overlong_ended(end):
            self._cut_off = text

    def _loss_of(self, call: OutgoingRequest) -> str:
        text = super()._loss_of(call)
        if self._cut_off is None:
            return text
        return f"{text}; {self._cut_off}, and it may be the response"

    def _note_all(self, notes: list[str]) -> None:
        for note in notes:
            self._note(note)
