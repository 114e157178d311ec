"""What an observer remembers of each side: what it has asked, and how much of it was seen."""

from __future__ import annotations

from typing import Any

import attrs

from .._connection.config import Config
from .._connection.used_ids import UsedIds
from .._spec.methods import Method
from .._spec.registry import LOG_LEVELS
from .._wire.framing import LineReader, Trimmer
from .._wire.values import IdKey, ProgressToken, RequestId, Side
from ._modern_history import Terms


class Asked:
    """A request that was seen, and what has become of it.

    Two requests of one id that may both be answered share one of these: `n_asked` counts them.
    A place is the number of a line among all that were seen: the other side reads those of one
    direction in order. `answer_place` is that of the last answer, 0 where it came in a batch, which
    may be refused as a whole.

    A request is `modern` where it speaks for itself. Then `terms` are what it declares, None where
    that is unreadable; or it is `alien`, of a revision that is not known here. `due` is the rule
    that whoever answers it breaks.
    """

    __slots__ = (
        "alien",
        "answer_place",
        "as_task",
        "batched",
        "cancelled",
        "due",
        "given_up",
        "id",
        "index",
        "key",
        "may_be_task",
        "method",
        "modern",
        "n_answered",
        "n_asked",
        "number",
        "place",
        "spec",
        "subject",
        "terms",
        "time",
        "token",
    )

    def __init__(
        self, id: RequestId, key: IdKey, method: str, place: int, number: int, time: float | None
    ) -> None:
        self.id = id
        self.key = key
        self.method = method
        self.place = place
        self.number = number
        self.time = time
        self.spec: Method | None = None
        self.subject: Any = None
        self.token: ProgressToken | None = None
        self.answer_place = 0
        self.n_asked = 1
        self.n_answered = 0
        self.as_task = False
        self.may_be_task = False  # it came before it was known whether there are tasks
        self.batched = False
        self.cancelled = False
        self.given_up = False
        self.modern = False
        self.alien = False
        self.terms: Terms | None = None
        self.due: str | None = None
        self.index: int | None = None

    @property
    def waits(self) -> bool:
        """Whether an answer may still come."""
        return self.n_answered < self.n_asked

    @property
    def is_judged(self) -> bool:
        """Whether it is known what holds for it."""
        return not self.modern or self.terms is not None


@attrs.define(eq=False)
class TokenUse:
    """A progress token, and the last request that was sent with it.

    Attributes:
        asked: That request.
        last: The last progress that was seen.
        shared: An earlier request with the token had no answer yet: progress may be for either.
        task: The task that the request became, whose progress goes on; None where there is none.
        task_over: The task was seen to be over.
    """

    asked: Asked
    last: float | None = None
    shared: bool = False
    task: str | None = None
    task_over: bool = False

    @property
    def is_active(self) -> bool:
        """Whether the request certainly counts as active for the side that sent it."""
        asked = self.asked
        return asked.waits and not asked.cancelled and not asked.given_up


class Half:
    """One side, as far as what it has sent tells.

    Attributes:
        side: Which one.
        whole: Whether everything that it has sent was seen and could be read.
        readable: Whether everything that was seen of it could be read.
        read: The place up to which it has certainly read what the other side has sent: it has
            answered that, or what came after it.
        used: The ids of its requests; `modern_ids` are those of requests that spoke for themselves.
        used_tokens: The progress tokens of its requests.
        open: Its requests that wait for an answer.
        done: The latest of those that were answered or cancelled.
        tokens: The latest progress tokens.
        tasks: The token of each task that is not over.
        excused: Ids of bad messages, each of which may be answered with an error.
        odd_tokens: Whether one of its tokens was no legal one, so that progress may echo it.
        ended: Whether its stream has ended.
        fragment: Whether the present line may be a piece of a message.
        is_new: Whether no line has come yet.
    """

    __slots__ = (
        "done",
        "ended",
        "excused",
        "fragment",
        "is_new",
        "lines",
        "modern_ids",
        "odd_tokens",
        "open",
        "read",
        "readable",
        "side",
        "tasks",
        "tokens",
        "trimmer",
        "used",
        "used_tokens",
        "whole",
    )

    def __init__(self, side: Side, config: Config, from_start: bool) -> None:
        self.side = side
        self.whole = from_start
        self.readable = True
        self.read = 0
        self.used = UsedIds(config.max_used_ids)
        self.modern_ids: UsedIds | None = None
        self.used_tokens = UsedIds(config.max_used_ids)
        self.open: dict[IdKey, Asked] = {}
        self.done: dict[IdKey, Asked] = {}
        self.tokens: dict[ProgressToken, TokenUse] = {}
        self.tasks: dict[str, TokenUse] = {}
        self.excused: dict[IdKey, None] = {}
        self.odd_tokens = False
        self.ended = False
        self.lines = LineReader(config.max_message_bytes)
        self.trimmer = Trimmer()
        self.fragment = not from_start  # the first line may be the end of one
        self.is_new = True

    def has_read(self, place: int) -> bool:
        """Whether it has certainly read what the other side has sent at this place."""
        return 0 < place <= self.read

    def has_asked(self, key: IdKey) -> bool | None:
        """Whether a request with this id was sent; None where that cannot be known."""
        if key in self.used or key in self.excused:
            return True
        return None if not self.whole or self.used.forgotten else False

    def has_used(self, token: ProgressToken) -> bool | None:
        """Whether a request with this token was sent; None where that cannot be known."""
        if token in self.used_tokens:
            return True
        return None if not self.whole or self.used_tokens.forgotten else False


@attrs.define(eq=False)
class LogLevel:
    """Below which level a server certainly has agreed not to log.

    Requests that are in flight together may be served in any order, so that the lowest of their
    levels counts once all are answered; while one waits, nothing is certain.
    """

    _pending: int = 0
    _lowest: int | None = None
    _agreed: int = 0

    def asked(self) -> None:
        """A request for a level was sent."""
        self._pending += 1

    def answered(self, level: object, accepted: bool) -> None:
        """It was answered with a result or, not accepted, with an error."""
        self._pending -= 1
        if accepted:
            severity = LOG_LEVELS.get(level, 0) if isinstance(level, str) else 0
            self._lowest = severity if self._lowest is None else min(severity, self._lowest)
        if not self._pending and self._lowest is not None:
            self._agreed, self._lowest = self._lowest, None

    def lose(self) -> None:
        """Nothing is certain any more."""
        self._pending += 1

    def forbids(self, level: str) -> bool:
        """Whether a message of this level is below what was agreed."""
        return not self._pending and LOG_LEVELS[level] < self._agreed


@attrs.define(eq=False)
class Subscription:
    """Requests for one URI: how many were not refused, how many wait, and the latest."""

    n_wanted: int = 0
    n_waiting: int = 0
    latest: int = 0


@attrs.define(eq=False)
class Subscriptions:
    """Whether a server may have any subscription at all.

    Which one a notification belongs to cannot be told: its URI may be that of a sub-resource
    (RES-009). A URI is taken out only where no order of serving the requests could leave it in.
    """

    bound: int
    lost: bool = False
    _uris: dict[str, Subscription] = attrs.field(factory=dict[str, Subscription], init=False)
    _n_asked: int = attrs.field(default=0, init=False)
    """Of all URIs together: one that was taken out and comes back is not taken for the old one."""

    def asked(self, uri: object) -> bool:
        """A subscription was asked for; returns whether there was room to remember it."""
        if not isinstance(uri, str):
            self.lost = True
            return True
        if len(self._uris) >= self.bound and uri not in self._uris:
            self.lost = True
            return False
        known = self._uris.setdefault(uri, Subscription())
        known.n_wanted += 1
        known.n_waiting += 1
        self._n_asked += 1
        known.latest = self._n_asked
        return True

    def answered(self, uri: object, accepted: bool) -> None:
        """It was answered."""
        known = self._uris.get(uri) if isinstance(uri, str) else None
        if known is None or not isinstance(uri, str):
            return
        known.n_waiting -= 1
        known.n_wanted -= not accepted
        if not known.n_wanted:
            del self._uris[uri]

    def ending(self, uri: object) -> int | None:
        """An end was asked for; returns what `ended` needs, None where it would prove nothing."""
        known = self._uris.get(uri) if isinstance(uri, str) else None
        return None if known is None or known.n_waiting else known.latest

    def ended(self, uri: str, latest: int) -> None:
        """That was answered with a result."""
        known = self._uris.get(uri)
        if known is not None and known.latest == latest:
            del self._uris[uri]

    @property
    def certainly_none(self) -> bool:
        """Whether there certainly is none."""
        return not self.lost and not self._uris
