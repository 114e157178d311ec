"""The observer: a passive judge of a conversation between two others."""

from __future__ import annotations

from typing import Any

from .._connection.config import Config
from .._rules.messages import BATCHED_INITIALIZE, NO_OBJECT, judge_batch, judge_neither
from .._rules.sending import Breach
from .._wire.codec import is_no_json, refusal
from .._wire.framing import (
    EXCERPT_BYTES,
    NO_NEWLINE,
    SPACE,
    Line,
    OverlongEnd,
    OverlongLine,
    is_blank,
)
from .._wire.values import JSONObject, JSONValue, Side, is_object, table_key
from ._events import BlindCause, MessageKind, Observation, RequestUnanswered, StreamEnded, TextSeen
from ._history import Asked, Half
from ._requests import CallWatching

_MIDDLE = "what may have been said before, and what depends on it, is not judged"
_NO_MESSAGE = {
    Side.CLIENT: Breach("STDIO-003", "the client wrote something that is no message"),
    Side.SERVER: Breach("STDIO-002", "the server wrote something that is no message"),
}


class Observer(CallWatching):
    """Watches both sides of a conversation, and says what happens and who breaks which rule.

    It sends nothing and answers nothing. It accuses a side only of what every ordering of the two
    directions would show: a message of one side may have been sent before that side had read what
    was seen earlier of the other. What it cannot know, it does not judge (`BlindSpot`).

    Feed it everything that passes one place between the two sides, in the order in which it
    passes, and before it is passed on: then no answer is seen before its request. Each direction
    must be one stream in which nothing overtakes anything, as on stdio.

    Args:
        config: Limits of what is remembered, and the codec. Used are `max_message_bytes`,
            `max_json_depth`, `max_integer_digits`, `max_requests` (requests that wait, each way),
            `max_late_answers` (finished ones, and rounds of questions), `max_used_ids`,
            `max_subscriptions` (resources that a legacy server is asked to watch, and resources
            in the filters of all open subscriptions of 2026-07-28 together), `codec` and `check`.
            At a limit the oldest is forgotten, and less is judged from then on.
        from_start: The observation begins with the first message of the conversation. If not,
            nobody is accused of what may be explained by messages that were not seen.

    Both eras may pass side by side. A request of 2026-07-28 is known by its `_meta` and judged by
    what it says itself; requests of revisions that are not known here are told of, and not judged.
    """

    __slots__ = ("_closed",)

    def __init__(self, *, config: Config | None = None, from_start: bool = True) -> None:
        super().__init__(config, from_start)
        self._closed = False

    # ----------------------------------------------------------------------------------- input

    def receive_data(
        self, side: Side, data: bytes | bytearray | memoryview, *, now: float | None = None
    ) -> None:
        """Take the next bytes that a side has sent, cut anywhere: messages on lines of their own.

        Args:
            side: Who sent them.
            data: Any number of bytes; nothing of it is kept but an unfinished line.
            now: The time in seconds, on one clock for both sides.

        Never raises for what the sides do.

        Source: MCP 2025-11-25, basic/transports, stdio.
        """
        half = self._begin(side, now)
        if half is None:
            return
        for line in half.lines.feed(data):
            if isinstance(line, OverlongEnd):
                continue
            self._count(half)
            self._bytes = True
            if (
                isinstance(line, OverlongLine)
                or half.is_new
                or not line
                or line[-1] <= SPACE
                or len(line) > self._unlimited
            ):
                self._see_odd_line(half, line)
                continue
            try:
                value = self._codec.decode(line)
            except (ValueError, RecursionError) as error:
                self._see_no_message(half, line, error)
            else:
                self._see(half, value)

    def receive_message(self, side: Side, message: JSONValue, *, now: float | None = None) -> None:
        """Take one decoded message, or batch, that a side has sent.

        Args:
            side: Who sent it.
            message: The decoded JSON value. It goes into an event, and nothing of it is changed.
            now: The time in seconds, on one clock for both sides.
        """
        half = self._begin(side, now)
        if half is not None:
            self._count(half)
            self._bytes = False
            self._see(half, message)

    def receive_eof(self, side: Side, *, now: float | None = None) -> None:
        """A side has ended its stream; what the other still waits for will not be answered."""
        half = self._begin(side, now)
        if half is None:
            return
        rest = half.lines.end()
        if isinstance(rest, bytearray) and not is_blank(rest):  # else it was told of
            self._count(half)
            self._bytes = half.fragment = half.ended = True  # it may be a piece of a message
            if self._see_odd_line(half, rest):
                self._accuse(half, Breach("OWN-018", NO_NEWLINE))
        half.ended = True
        self._events.append(StreamEnded(side=side, time=self._now))
        self._give_up(self._halves[1 - side])

    def close(self, *, now: float | None = None) -> None:
        """The observation ends: tell of all requests without an answer. A second call does nothing.

        Args:
            now: The time in seconds.
        """
        self._begin(Side.CLIENT, now)
        if not self._closed:
            self._closed = True
            for half in self._halves:
                self._give_up(half)

    # ---------------------------------------------------------------------------------- output

    def next_event(self) -> Observation | None:
        """Take the oldest event; None means that there is none now."""
        return self._events.popleft() if self._events else None

    @property
    def revision(self) -> str | None:
        """The revision that a handshake has agreed on; None where none was seen.

        In 2026-07-28 nothing is agreed on: each request names its own.
        """
        conversation = self._conversation
        return conversation.dialect.revision if conversation.agreed else None

    @property
    def messages(self) -> int:
        """How many lines and messages were seen: the number of the latest."""
        return self._number

    # ----------------------------------------------------------------------------------- lines

    def _begin(self, side: Side, now: float | None) -> Half | None:
        half = self._halves[side]
        if self._closed or half.ended:
            return None
        if now is not None and (self._now is None or now > self._now):
            self._now = now
        return half

    def _count(self, half: Half) -> None:
        """One line or message more."""
        self._index = None
        self._number = number = self._number + 1
        if number == 1 and not half.whole:
            self._blind(BlindCause.MIDDLE, None, _MIDDLE)

    def _see_odd_line(self, half: Half, line: Line) -> bool:
        """The first line, one that is long or empty, or one that ends in white space.

        Returns:
            Whether it is JSON, and could be looked at.
        """
        half.is_new = False
        if isinstance(line, OverlongLine):
            half.fragment = False
            notes = half.trimmer.unmark(line.head)[1]
            limit, start = self._config.max_message_bytes, line.head[:EXCERPT_BYTES]
            why = f"a message has more than {limit} bytes; here are the first {len(start)}"
            self._no_message(half, start, why)
            self._unreadable(half)
            self._accuse_odd(half, notes)
            return False
        text: bytes | bytearray | None = line
        notes = []
        if half.trimmer.first or not line or line[-1] <= SPACE:
            text, notes = half.trimmer.trim(line)
        readable = False
        if text is None:
            self._no_message(half, line, "a blank line")
        else:
            readable = self._see_text(half, text)
        self._accuse_odd(half, notes)
        half.fragment = False
        return readable

    def _accuse_odd(self, half: Half, notes: list[str]) -> None:
        for note in notes:
            self._accuse(half, Breach("OWN-017", note))

    def _see_text(self, half: Half, text: bytes | bytearray) -> bool:
        """Whether it is JSON, and could be looked at."""
        try:
            value = self._decoder.decode(text)
        except (ValueError, RecursionError) as error:
            self._see_no_message(half, text, error)
            return False
        self._see(half, value)
        return True

    def _see_no_message(
        self, half: Half, text: bytes | bytearray, error: ValueError | RecursionError
    ) -> None:
        why = str(refusal(error))
        if half.ended:
            why = f"{NO_NEWLINE}, and the last line is no whole message: {why}"
        self._no_message(half, text, why)
        certain = is_no_json(error)
        if certain and not half.fragment:
            self._accuse(half, _NO_MESSAGE[half.side])
        if not certain or text.lstrip()[:1] in (b"{", b"["):
            self._unreadable(half)  # another parser may make a message of it

    def _no_message(self, half: Half, data: bytes | bytearray, text: str) -> None:
        self._events.append(
            TextSeen(
                side=half.side, data=bytes(data), text=text, number=self._number, time=self._now
            )
        )

    # -------------------------------------------------------------------------------- messages

    def _see(self, half: Half, value: Any) -> None:
        if value.__class__ is dict:
            method: Any = value.get("method")
            if method.__class__ is not str:
                self._see_no_call(half, value)
            elif "id" in value:
                self._see_request(half, value, method)
            else:
                self._see_notification(half, value, method)
        elif value.__class__ is list and self._index is None:
            self._see_batch(half, value)
        else:
            self._seen(half, MessageKind.INVALID, None, None, value)
            self._accuse(half, NO_OBJECT)

    def _see_no_call(self, half: Half, message: JSONObject) -> None:
        """An answer, or an object that is no message."""
        key = table_key(message.get("id"))
        if "method" not in message and (
            "result" in message
            or "error" in message
            or (key is not None and key in self._halves[1 - half.side].open)
        ):
            self._see_answer(half, message, key)
            return
        self._seen(half, MessageKind.INVALID, None, None if key is None else message["id"], message)
        self._accuse(half, judge_neither(message))
        self._excuse(half, key)

    def _see_batch(self, half: Half, values: list[Any]) -> None:
        conversation = self._conversation
        breach: Breach | None = None
        if self._judged and conversation.agreed and self._knows_agreement(half):
            breach = judge_batch(conversation.dialect, values)
        elif self._judged and half.side is Side.SERVER and self._is_new and self._serves_modern:
            breach = judge_batch(self._dialect, values)
        if not values:
            self._seen(half, MessageKind.INVALID, None, None, values)
        n_modern = self._n_modern
        self._forbidden = breach is not None
        for index, value in enumerate(values):
            self._index = index
            self._see(half, value)
            if is_object(value) and value.get("method") == "initialize" and "id" in value:
                self._accuse(half, BATCHED_INITIALIZE, "initialize")
        self._index = None
        self._forbidden = False
        if breach is None and self._n_modern != n_modern:
            breach = judge_batch(self._dialect, values)
        if breach is not None:
            self._accuse(half, breach)

    # ------------------------------------------------------------------------------------- end

    def _give_up(self, half: Half) -> None:
        """No answers will come for what this side has asked."""
        waiting = [asked for asked in half.done.values() if asked.waits and not asked.given_up]
        waiting += half.open.values()
        for asked in sorted(waiting, key=_order):
            now, then = self._now, asked.time
            self._events.append(
                RequestUnanswered(
                    side=half.side,
                    method=asked.method,
                    id=asked.id,
                    request_number=asked.number,
                    seconds=None if now is None or then is None else now - then,
                    cancelled=asked.cancelled,
                )
            )
            asked.given_up = True
            self._finish(half, asked)


def _order(asked: Asked) -> tuple[int, int]:
    return asked.number, asked.index or 0
