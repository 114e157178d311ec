"""The observer of a conversation on byte streams, and what it may conclude.

**What is certain.** The two directions are seen in some order, at some place between the sides.
Only this is known, and only this may be used against a side:

- A side knows what it has sent itself, and in which order: each direction arrives as it was sent.
- A side has not read what was not seen yet: what it reads passes by the observer first.
- A side has read what it answers, and all that came before that (`SideHistory.read_place`). It may
  or may not have read what else was seen of the other direction: both must be assumed.
- Where the conversation began earlier, or a part could not be read, everything that is consistent
  with the rest may have been sent (`SideHistory.is_complete`, `is_readable`).

So a second use of an id, progress that does not increase, and progress after a response are
certain: each shows in one direction alone. A response to a request that was cancelled, a
cancellation of one that was answered, and a notification that was sent before a subscription had
ended may cross: they are violations only once the side has answered something that came later.

**What is forgotten** at a limit of `Config` never counts against a side: rules that need it are
not judged from then on, and a `BlindSpot` reports that.

**The parts.** `Observer` splits and decodes the input and dispatches each message to
`SeenRequests`, `SeenResponses` or `SeenNotifications`. These ask the parts that own one subject
each: `Handshake`, `StatelessRequests`, `InputRounds`, `Subscriptions`, `SeenProgress`,
`Cancellations`, `SeenTasks`, `ModernTasks`. All of them share `ObserverCore`: they report through
it (`Observations`), and it has the history of each side (`SideHistory`, `ModernHistory`).
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from .._connection.config import Config, config_of
from .._rules.messages import (
    BATCHED_INITIALIZE,
    NO_OBJECT,
    judge_batch,
    judge_posted_batch,
    judge_unknown_object,
)
from .._rules.sending import Breach
from .._wire.codec import BoundedDecoder, is_no_json, refusal
from .._wire.framing import (
    EXCERPT_BYTES,
    NO_NEWLINE,
    SPACE,
    Line,
    LineReader,
    OverlongEnd,
    OverlongLine,
    Trimmer,
    is_blank,
)
from .._wire.setting_checks import check_flag
from .._wire.values import JSONObject, JSONValue, Side, is_object, table_key
from ._cancellations import Cancellations
from ._events import BlindCause, MessageKind, Observation, RequestUnanswered, StreamEnded, TextSeen
from ._handshake import Handshake
from ._history import ObserverCore, SeenRequest, SideHistory
from ._input_required import InputRounds
from ._log_levels import AgreedLogLevel
from ._modern_tasks import ModernTasks
from ._notifications import SeenNotifications
from ._progress import SeenProgress
from ._requests import SeenRequests
from ._responses import SeenResponses
from ._stateless import StatelessRequests
from ._subscriptions import SubscribedResources, Subscriptions
from ._task_table import TaskTable
from ._tasks import SeenTasks

_MIDDLE: Final = "messages from before the first one, and what depends on them, are not judged"
_NO_MESSAGE: Final = {
    Side.CLIENT: Breach("STDIO-003", "the client wrote something that is no message"),
    Side.SERVER: Breach("STDIO-002", "the server wrote something that is no message"),
}


@attrs.define(eq=False, repr=False)
class _SideInput:
    """The input of one direction.

    Attributes:
        history: The side that sends it.
        lines: Cuts it into lines.
        trimmer: Takes off byte order marks and white space.
        is_new: Whether no line has come yet.
        is_fragment: Whether the current line may be a piece of a message.
        has_ended: Whether the stream has ended.
    """

    history: SideHistory
    lines: LineReader
    is_fragment: bool
    trimmer: Trimmer = attrs.field(factory=Trimmer)
    is_new: bool = True
    has_ended: bool = False


class Observer:
    """Watches both sides of a conversation, and reports what happens and who breaks which rule.

    It sends nothing and answers nothing. It reports a violation only where every ordering of the
    two directions would show it: a message of one side may have been sent before that side had read
    what was seen earlier of the other. What it cannot know, it does not judge (`BlindSpot`).

    Feed it everything that passes one place between the two sides, in the order in which it
    passes, and before it is passed on: then no response is seen before its request. Each direction
    must be one stream in which nothing overtakes anything, as on stdio. For Streamable HTTP there
    is `sansmcp.observer.HTTPObserver`.

    Args:
        config: Limits of what is remembered, and the codec. The observer uses `max_message_bytes`,
            `max_json_depth`, `max_integer_digits`, `max_requests` (requests without a response,
            each way), `max_late_answers` (finished requests, and rounds of questions),
            `max_used_ids`, `max_subscriptions` (resources that a legacy server is asked to watch,
            and resources and tasks in the filters of all open subscriptions of 2026-07-28
            together), `max_tool_schemas` (tools that are called as tasks or not), `codec` and
            `check`. `max_requests` bounds tasks, too, and their questions. At a limit the oldest is
            forgotten, and less is judged from then on.
        from_start: Whether the observation begins with the first message of the conversation. If
            not, a violation is reported only if no earlier message could explain it.

    Messages of both eras may pass side by side. A request of 2026-07-28 is recognised by its
    `_meta` and judged by its own declarations. Requests of unknown revisions are reported, and not
    judged.
    """

    __slots__ = (
        "_closed",
        "_codec",
        "_core",
        "_decoder",
        "_handshake",
        "_inputs",
        "_max_message_bytes",
        "_modern_tasks",
        "_notifications",
        "_requests",
        "_responses",
        "_unlimited",
    )

    def __init__(self, *, config: Config | None = None, from_start: bool = True) -> None:
        config = config_of(config)
        check_flag("from_start", from_start)
        self._closed = False
        self._max_message_bytes = config.max_message_bytes
        self._codec = config.codec
        self._decoder = BoundedDecoder(
            config.codec, config.max_json_depth, config.max_integer_digits
        )
        self._unlimited = self._decoder.unlimited
        self._core = core = ObserverCore(config, from_start=from_start)
        self._inputs = (_input_of(core.client, config), _input_of(core.server, config))
        level = AgreedLogLevel(core)
        resources = SubscribedResources(core)
        self._handshake = handshake = Handshake(core, level, resources, from_start)
        tasks, modern_tasks = SeenTasks(core), ModernTasks(core)
        subscriptions = Subscriptions(core, modern_tasks)
        stateless = StatelessRequests(
            core, handshake, InputRounds(core), subscriptions, modern_tasks
        )
        progress = SeenProgress(core, handshake)
        cancellations = Cancellations(core, handshake, subscriptions)
        self._requests = SeenRequests(core, handshake, progress, stateless, level, resources, tasks)
        self._responses = SeenResponses(
            core, handshake, progress, stateless, level, resources, tasks
        )
        self._notifications = SeenNotifications(
            core,
            handshake,
            progress,
            cancellations,
            subscriptions,
            stateless,
            level,
            resources,
            tasks,
        )
        self._modern_tasks = modern_tasks

    # ----------------------------------------------------------------------------------- input

    def receive_data(
        self, side: Side, data: bytes | bytearray | memoryview, *, now: float | None = None
    ) -> None:
        """Take the next bytes that a side has sent: lines with one message each, cut anywhere.

        Args:
            side: The side that sent them.
            data: Any number of bytes; only an unfinished line is kept.
            now: The time in seconds, on one clock for both sides.

        Never raises for what the sides do.

        Source: MCP 2025-11-25, basic/transports, stdio.
        """
        source = self._begin(side, now)
        if source is None:
            return
        for line in source.lines.feed(data):
            if isinstance(line, OverlongEnd):
                continue
            self._count(source, from_line=True)
            if (
                isinstance(line, OverlongLine)
                or source.is_new
                or not line
                or line[-1] <= SPACE
                or len(line) > self._unlimited
            ):
                self._take_odd_line(source, line)
                continue
            try:
                value = self._codec.decode(line)
            except (ValueError, RecursionError) as error:
                self._take_no_message(source, line, error)
            else:
                self._take(source.history, value)

    def receive_message(self, side: Side, message: JSONValue, *, now: float | None = None) -> None:
        """Take one decoded message, or batch, that a side has sent.

        Args:
            side: The side that sent it.
            message: The decoded JSON value. It goes into an event and is not changed.
            now: The time in seconds, on one clock for both sides.
        """
        source = self._begin(side, now)
        if source is not None:
            self._count(source, from_line=False)
            self._take(source.history, message)

    def receive_eof(self, side: Side, *, now: float | None = None) -> None:
        """A side has ended its stream: open requests of the other side will not be answered.

        Args:
            side: The side that ended its stream.
            now: The time in seconds, on one clock for both sides.
        """
        source = self._begin(side, now)
        if source is None:
            return
        rest = source.lines.end()
        core = self._core
        if isinstance(rest, bytearray) and not is_blank(rest):  # else it was reported
            self._count(source, from_line=True)
            source.is_fragment = source.has_ended = True  # it may be a piece of a message
            if self._take_odd_line(source, rest):
                core.add_violation(side, Breach("OWN-018", NO_NEWLINE))
        source.has_ended = True
        core.queue.append(StreamEnded(side=side, time=core.now))
        self._report_unanswered(core.sides[1 - side])

    def close(self, *, now: float | None = None) -> None:
        """End the observation, and report all requests without a response.

        A second call does nothing.

        Args:
            now: The time in seconds, on one clock for both sides.
        """
        self._begin(Side.CLIENT, now)
        if not self._closed:
            self._closed = True
            for side in self._core.sides:
                self._report_unanswered(side)

    # ---------------------------------------------------------------------------------- output

    def next_event(self) -> Observation | None:
        """Take the oldest event; None: there is none now."""
        queue = self._core.queue
        return queue.popleft() if queue else None

    @property
    def revision(self) -> str | None:
        """The revision that a handshake has agreed on; None where none was seen.

        In 2026-07-28 there is no agreement: each request names its revision.
        """
        conversation = self._handshake.conversation
        return conversation.dialect.revision if conversation.agreed else None

    @property
    def messages(self) -> int:
        """How many lines and messages were seen: the number of the latest."""
        return self._core.number

    # ----------------------------------------------------------------------------------- lines

    def _begin(self, side: Side, now: float | None) -> _SideInput | None:
        """The input of a side, unless nothing more is taken from it."""
        source = self._inputs[side]
        if self._closed or source.has_ended:
            return None
        core = self._core
        if now is not None and (core.now is None or now > core.now):
            core.now = now
        return source

    def _count(self, source: _SideInput, *, from_line: bool) -> None:
        """Begin the next line or message."""
        core = self._core
        core.index = None
        core.from_line = from_line
        core.number += 1
        if core.number == 1 and not source.history.is_complete:
            core.add_blind_spot(BlindCause.MIDDLE, None, _MIDDLE)

    def _take_odd_line(self, source: _SideInput, line: Line) -> bool:
        """Take the first line, or one that is long or empty or ends in white space.

        Returns:
            Whether it is JSON.
        """
        source.is_new = False
        if isinstance(line, OverlongLine):
            source.is_fragment = False
            notes = source.trimmer.strip_bom(line.head)[1]
            limit, start = self._max_message_bytes, line.head[:EXCERPT_BYTES]
            why = f"a message has more than {limit} bytes; here are the first {len(start)}"
            self._report_text(source, start, why)
            self._handshake.mark_unreadable(source.history)
            self._report_oddities(source, notes)
            return False
        text: bytes | bytearray | None = line
        notes = []
        if source.trimmer.first or not line or line[-1] <= SPACE:
            text, notes = source.trimmer.trim(line)
        is_json = False
        if text is None:
            self._report_text(source, line, "a blank line")
        else:
            is_json = self._take_text(source, text)
        self._report_oddities(source, notes)
        source.is_fragment = False
        return is_json

    def _report_oddities(self, source: _SideInput, notes: list[str]) -> None:
        for note in notes:
            self._core.add_violation(source.history.side, Breach("OWN-017", note))

    def _take_text(self, source: _SideInput, text: bytes | bytearray) -> bool:
        """Decode a text and take its message; returns whether it is JSON."""
        try:
            value = self._decoder.decode(text)
        except (ValueError, RecursionError) as error:
            self._take_no_message(source, text, error)
            return False
        self._take(source.history, value)
        return True

    def _take_no_message(
        self, source: _SideInput, text: bytes | bytearray, error: ValueError | RecursionError
    ) -> None:
        why = str(refusal(error))
        if source.has_ended:
            why = f"{NO_NEWLINE}, and the last line is no whole message: {why}"
        self._report_text(source, text, why)
        side = source.history.side
        is_certain = is_no_json(error)
        if is_certain and not source.is_fragment:
            self._core.add_violation(side, _NO_MESSAGE[side])
        if not is_certain or text.lstrip()[:1] in (b"{", b"["):
            # Another parser may take it for a message.
            self._handshake.mark_unreadable(source.history)

    def _report_text(self, source: _SideInput, data: bytes | bytearray, text: str) -> None:
        core = self._core
        core.queue.append(
            TextSeen(
                side=source.history.side,
                data=bytes(data),
                text=text,
                number=core.number,
                time=core.now,
            )
        )

    # -------------------------------------------------------------------------------- messages

    def _take(self, sender: SideHistory, value: Any) -> None:
        """Dispatch a decoded message by its members."""
        if value.__class__ is dict:
            method: Any = value.get("method")
            if method.__class__ is not str:
                self._take_without_method(sender, value)
            elif "id" in value:
                self._requests.take(sender, value, method)
            else:
                self._notifications.take(sender, value, method)
        elif value.__class__ is list and self._core.index is None:
            self._take_batch(sender, value)
        else:
            self._core.add_message(sender.side, MessageKind.INVALID, None, None, value)
            self._core.add_violation(sender.side, NO_OBJECT)

    def _take_without_method(self, sender: SideHistory, message: JSONObject) -> None:
        """Take a response, or an object that is no message."""
        key = table_key(message.get("id"))
        if "method" not in message and (
            "result" in message
            or "error" in message
            or (key is not None and key in self._core.sides[1 - sender.side].open)
        ):
            self._responses.take(sender, message, key)
            return
        id = None if key is None else message["id"]
        self._core.add_message(sender.side, MessageKind.INVALID, None, id, message)
        self._core.add_violation(sender.side, judge_unknown_object(message))
        self._handshake.excuse(sender, key)

    def _take_batch(self, sender: SideHistory, values: list[Any]) -> None:
        """Judge a batch as a whole, and take each message of it.

        Keeps BATCH-004.
        """
        core, handshake, modern = self._core, self._handshake, self._core.modern
        breach: Breach | None = None
        if handshake.is_agreed and handshake.is_known_to(sender):
            breach = judge_batch(handshake.conversation.dialect, values)
            if breach is None and core.is_posted and sender.side is Side.CLIENT:
                breach = judge_posted_batch(values)
        elif (
            sender.side is Side.SERVER
            and handshake.is_certain
            and handshake.has_not_begun
            and modern.is_served
        ):
            breach = judge_batch(modern.dialect, values)
        if not values:
            core.add_message(sender.side, MessageKind.INVALID, None, None, values)
        n_modern = modern.n_requests
        core.in_refused_batch = breach is not None
        for index, value in enumerate(values):
            core.index = index
            self._take(sender, value)
            if is_object(value) and value.get("method") == "initialize" and "id" in value:
                core.add_violation(sender.side, BATCHED_INITIALIZE, "initialize")
        core.index = None
        core.in_refused_batch = False
        if breach is None and modern.n_requests != n_modern:
            breach = judge_batch(modern.dialect, values)
        if breach is not None:
            core.add_violation(sender.side, breach)

    # ------------------------------------------------------------------------------------- end

    def _report_unanswered(self, requester: SideHistory) -> None:
        """Report the requests of a side that will not be answered."""
        waiting = [
            request
            for request in requester.finished.values()
            if request.is_open and not request.is_reported
        ]
        waiting += requester.open.values()
        core = self._core
        for request in sorted(waiting, key=_order):
            now, then = core.now, request.time
            core.queue.append(
                RequestUnanswered(
                    side=requester.side,
                    method=request.method,
                    id=request.id,
                    request_number=request.number,
                    seconds=None if now is None or then is None else now - then,
                    cancelled=request.is_cancelled,
                )
            )
            request.is_reported = True
            requester.finish(request)


def _input_of(history: SideHistory, config: Config) -> _SideInput:
    # The first line may be the end of one, if something came before it.
    return _SideInput(history, LineReader(config.max_message_bytes), not history.is_complete)


def _order(request: SeenRequest) -> tuple[int, int]:
    return request.number, request.index or 0


def observer_of_posts(config: Config, tasks: TaskTable, *, from_start: bool = True) -> Observer:
    """An observer of a conversation over Streamable HTTP: the client POSTs its messages.

    Args:
        config: The limits.
        tasks: The tasks of 2026-07-28 that were seen in any exchange.
        from_start: Whether the conversation begins with the first message.
    """
    observer = Observer(config=config, from_start=from_start)
    observer._core.is_posted = True
    observer._modern_tasks.table = tasks
    return observer
