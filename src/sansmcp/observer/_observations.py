"""The ground on which an observer stands: what is certain, and how an accusation is made.

**What is certain.** The two directions are seen in some order, at some place between the sides.
Only this is known, and nothing else may be used against anyone:

- A side knows what it has sent itself, and in which order: each direction arrives as it was sent.
- A side has not read what was not seen yet: what it reads passes by the observer first.
- A side has read what it answers, and all that came before that (`Half.read`). Whatever else was
  seen of the other direction it may have read, or not: both must be assumed.
- Of a conversation that began earlier, or of which a part could not be read, all that is consistent
  with the rest may have been said (`Half.whole`, `Half.readable`).

So the handshake is followed in the order in which it is seen, which is the order most favourable
to both sides: a message is too early only if what it had to wait for was not even seen. A second
use of an id, progress that does not increase, or progress after an answer is in one direction
alone, and certain. An answer to a request that was cancelled, a cancellation of one that was
answered, a notification that was sent before a subscription had ended: these cross, and are
accused only once the side has answered something that came later.

**Which era** a message belongs to is told message by message: `_stateless` says how.

**What is forgotten** at a limit of `Config` makes nobody guilty: a rule that needs it is not
judged any more, and a `BlindSpot` says so.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from .._connection.config import Config, config_of
from .._rules.conversation import Conversation
from .._rules.messages import null_member
from .._rules.request_meta import Envelope
from .._rules.sending import Breach, null_members, without_nulls
from .._rules.state_tables import Phase
from .._spec.methods import OptionalMembers
from .._spec.modern_methods import MODERN_REVISION
from .._spec.registry import LEGACY_REVISIONS
from .._spec.rule_levels import LEVELS
from .._wire.codec import BoundedDecoder
from .._wire.setting_checks import check_flag
from .._wire.values import IdKey, JSONObject, RequestId, Side
from ._events import BlindCause, BlindSpot, MessageKind, MessageSeen, Observation, ViolationSeen
from ._history import Asked, Half, LogLevel, Subscriptions
from ._modern_history import Listenings, LogWishes, Rounds, Terms

_ANY_REVISION: Final = ("JSON-", "ERR-", "STDIO-", "OWN-017", "OWN-018")
"""The rules that make a message a message, whatever the revision."""

_UNREADABLE: Final = "answers to what it may have asked, and uses of it, are not judged"
_FINISHED: Final = (
    "the oldest finished request was forgotten: what still comes for it is not judged any more"
)
_FORGOTTEN: Final = "the oldest request was forgotten, and its answer will not be matched"


class Watching:
    """State, and the ways to say something."""

    __slots__ = (
        "_alien",
        "_bytes",
        "_codec",
        "_config",
        "_conversation",
        "_decoder",
        "_dialect",
        "_envelope",
        "_events",
        "_extended",
        "_forbidden",
        "_foreign",
        "_halves",
        "_index",
        "_initialized_early",
        "_judged",
        "_level",
        "_listenings",
        "_log_wishes",
        "_modern",
        "_n_modern",
        "_now",
        "_number",
        "_opening",
        "_registry",
        "_rounds",
        "_serves_modern",
        "_shape",
        "_stateless",
        "_subscriptions",
        "_terms",
        "_told",
        "_unlimited",
    )

    def __init__(self, config: Config | None, from_start: bool) -> None:
        config = config_of(config)
        check_flag("from_start", from_start)
        self._config = config
        self._decoder = BoundedDecoder(
            config.codec, config.max_json_depth, config.max_integer_digits
        )
        self._codec = config.codec
        self._unlimited = self._decoder.unlimited
        self._shape = config.check == "shape"
        self._halves = (
            Half(Side.CLIENT, config, from_start),
            Half(Side.SERVER, config, from_start),
        )
        self._registry = registry = config.registry
        self._conversation = Conversation(registry.dialects[LEGACY_REVISIONS[-1]])
        self._judged = from_start  # whether the phase and the revision are certain
        self._foreign = False  # whether an unknown revision was agreed on
        self._opening: Asked | None = None  # the `initialize` that has moved the phase
        self._initialized_early = False
        self._n_modern: int = 0  # requests that spoke for themselves
        self._modern: int = 0  # those of 2026-07-28 that were not answered with an error
        self._alien: int = 0  # and those of revisions that are not known here
        self._serves_modern = False  # whether the server has shown that it speaks 2026-07-28
        self._extended = False  # whether a request has declared an extension
        self._dialect = registry.dialects[MODERN_REVISION]
        every = registry.every_gate
        self._stateless = Conversation(self._dialect, Phase.OPERATING, [every, every])
        self._envelope: Envelope | None = None  # the last one read, and what it came to
        self._terms: Terms | None = None
        self._log_wishes = LogWishes()
        self._listenings = Listenings(config.max_subscriptions)
        self._rounds = Rounds(config.max_late_answers)
        self._level = LogLevel()
        self._subscriptions = Subscriptions(config.max_subscriptions)
        self._events: deque[Observation] = deque()
        self._told: set[tuple[Side | None, str]] = set()
        self._now: float | None = None
        self._number: int = 0
        self._index: int | None = None
        self._bytes = False  # whether the present message came as a line
        self._forbidden = False  # and in a batch that nobody needs to read

    # ---------------------------------------------------------------------------------- saying

    def _seen(
        self,
        half: Half,
        kind: MessageKind,
        method: str | None,
        id: RequestId | None,
        message: object,
    ) -> None:
        self._events.append(
            MessageSeen(
                side=half.side,
                kind=kind,
                method=method,
                id=id,
                message=message,
                number=self._number,
                index=self._index,
                time=self._now,
            )
        )

    def _accuse(
        self,
        half: Half,
        breach: Breach,
        method: str | None = None,
        id: RequestId | None = None,
    ) -> None:
        if self._foreign and not breach.rule.startswith(_ANY_REVISION):
            return
        rule = breach.rule_of_sender
        self._events.append(
            ViolationSeen(
                side=half.side,
                rule=rule,
                level=LEVELS[rule],
                text=breach.text,
                method=method,
                id=id,
                number=self._number,
                index=self._index,
                time=self._now,
            )
        )

    def _without_nulls(
        self,
        half: Half,
        optional: OptionalMembers,
        value: JSONObject,
        method: str,
        id: RequestId | None,
    ) -> JSONObject:
        """An object as it counts: optional members that are null are absent, and reported."""
        for name in null_members(optional, value):
            self._accuse(half, null_member(name), method, id)
        return without_nulls(optional, value)

    def _blind(self, cause: BlindCause, half: Half | None, text: str) -> None:
        side = None if half is None else half.side
        if (side, text) not in self._told:
            self._told.add((side, text))
            self._events.append(
                BlindSpot(cause=cause, side=side, text=text, number=self._number, time=self._now)
            )

    # --------------------------------------------------------------------------------- knowing

    def _unreadable(self, half: Half) -> None:
        """The side has sent something that may have been any message."""
        half.whole = half.readable = False
        if self._conversation.phase is not Phase.OPERATING:
            self._lose_track()
        self._blind(BlindCause.UNREADABLE, half, _UNREADABLE)

    def _lose_track(self) -> None:
        """What was agreed on is not known any more. A whole handshake would tell."""
        self._judged = False
        self._opening = None
        self._initialized_early = False
        self._conversation = Conversation(self._registry.dialects[LEGACY_REVISIONS[-1]])
        self._level.lose()
        self._subscriptions.lost = True

    @property
    def _is_new(self) -> bool:
        """Whether no handshake has begun, or none has come to anything."""
        return self._conversation.phase is Phase.NEW

    def _knows_agreement(self, half: Half) -> bool:
        """Whether the side certainly knows what was agreed on, if anything was."""
        return (
            self._conversation.phase is not Phase.AGREED
            or half.side is Side.SERVER
            or (self._opening is not None and half.has_read(self._opening.answer_place))
        )

    def _excuse(self, half: Half, key: IdKey | None) -> None:
        """A bad message with this id may be answered with an error, as if it were a request."""
        if key is not None:
            half.excused[key] = None
            if len(half.excused) > self._config.max_late_answers:
                del half.excused[next(iter(half.excused))]
                self._unreadable(half)

    def _finish(self, half: Half, asked: Asked) -> None:
        """Take a request out of those that wait; only the latest of the others are remembered."""
        if half.open.pop(asked.key, None) is not None:
            half.done[asked.key] = asked
            if len(half.done) > self._config.max_late_answers:
                del half.done[next(iter(half.done))]
                if not asked.given_up:  # else the other side has ended, and answers nothing more
                    self._blind(BlindCause.FORGOTTEN, half, _FINISHED)

    def _forget_oldest(self, half: Half) -> None:
        """Too many requests wait."""
        oldest = half.open.pop(next(iter(half.open)))
        if oldest is self._opening:
            self._lose_track()
        self._blind(BlindCause.FORGOTTEN, half, _FORGOTTEN)
