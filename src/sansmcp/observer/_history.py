"""What was seen of each side: its requests, and how much of its messages is known.

A *place* is the number of a line or message among all that were seen. Each side reads the messages
of the other side in order, so a side that has read one place has read all earlier ones.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from .._connection.config import Config
from .._connection.used_ids import UsedIds
from .._rules.conversation import Conversation
from .._rules.sending import Breach
from .._rules.state_tables import Phase
from .._spec.methods import Dialect, Method
from .._spec.modern_methods import MODERN_REVISION
from .._spec.registry import Registry
from .._spec.tasks import TASK_METHODS, with_tasks
from .._wire.values import IdKey, ProgressToken, Record, RequestId, Side
from ._events import BlindCause
from ._observations import Observations

_FINISHED: Final = (
    "the oldest finished request was forgotten: what still comes for it is not judged any more"
)
_OPEN: Final = "the oldest request was forgotten, and its response will not be matched"


@attrs.frozen
class RequestTerms(Record):
    """What a request of 2026-07-28 declares, as far as it binds the server.

    Attributes:
        gates: The gates that the client's capabilities open for questions.
        severity: The least severe level of wanted log messages; None: no log message is wanted.
        has_extensions: Whether it declares extensions, which may define methods and results.
        has_tasks: Whether it declares the extension for tasks.
        breaches: What is wrong with the declaration.
    """

    gates: frozenset[str]
    severity: int | None
    has_extensions: bool
    has_tasks: bool
    breaches: tuple[Breach, ...]


class SeenRequest:
    """A request that was seen, and its state.

    Two requests with the same id that may both be answered share one object.

    Attributes:
        id: The id as it was sent.
        key: The id as a key of tables.
        method: The method.
        number: The number of its message.
        index: The place in its batch; None outside of one.
        place: The place that the other side has certainly read once it answers.
        time: When it was seen, in seconds; None without times.
        spec: The method's definition, where the revision is known for certain.
        subject: The data that the response will need; its type depends on the method.
        token: The progress token as a key of tables; None where there is none.
        n_sent: How many requests with this id may be answered.
        n_answered: How many responses with this id were seen.
        response_place: The place of the last response; 0 where it came in a batch, which may be
            refused as a whole.
        as_task: Whether it asks for a task or, if it is modern, is answered with one.
        accepts_task: Whether the other side has declared that it may become a task (2025-11-25).
        support: What the server had said of the tool that it calls, with the version of the list.
        related: The id of the task that it belongs to (2025-11-25); None: none is known.
        may_be_task: Whether it may ask for a task: it was sent before a revision was agreed on.
        from_batch: Whether it came in a batch on a line.
        is_cancelled: Whether it was cancelled.
        is_reported: Whether it was reported as unanswered.
        is_modern: Whether it is a request of the era of 2026-07-28.
        has_unknown_revision: Whether the revision that it names is not known here.
        terms: What a modern request declares; None where that cannot be read.
        due_rule: The rule that the other side breaks if it answers with a result.
    """

    __slots__ = (
        "accepts_task",
        "as_task",
        "due_rule",
        "from_batch",
        "has_unknown_revision",
        "id",
        "index",
        "is_cancelled",
        "is_modern",
        "is_reported",
        "key",
        "may_be_task",
        "method",
        "n_answered",
        "n_sent",
        "number",
        "place",
        "related",
        "response_place",
        "spec",
        "subject",
        "support",
        "terms",
        "time",
        "token",
    )

    def __init__(
        self, id: RequestId, key: IdKey, method: str, number: int, time: float | None
    ) -> None:
        self.id = id
        self.key = key
        self.method = method
        self.number = number
        self.place = number
        self.time = time
        self.index: int | None = None
        self.spec: Method | None = None
        self.subject: Any = None
        self.token: ProgressToken | None = None
        self.n_sent = 1
        self.n_answered = 0
        self.response_place = 0
        self.as_task = False
        self.accepts_task = False
        self.support: tuple[str, int] | None = None
        self.related: str | None = None
        self.may_be_task = False
        self.from_batch = False
        self.is_cancelled = False
        self.is_reported = False
        self.is_modern = False
        self.has_unknown_revision = False
        self.terms: RequestTerms | None = None
        self.due_rule: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether a response may still come."""
        return self.n_answered < self.n_sent

    @property
    def is_judged(self) -> bool:
        """Whether the rules that hold for it are known."""
        return not self.is_modern or self.terms is not None


class SideHistory:
    """What one side has sent, as far as it was seen.

    Attributes:
        side: The side.
        is_complete: Whether all its messages since the start were seen and could be read.
        is_readable: Whether all its messages that were seen could be read.
        read_place: The place of the other side's messages up to which it has certainly read.
        used_ids: The ids of its requests.
        modern_ids: The ids of its requests of 2026-07-28; None before the first.
        open: Its requests that have no response.
        finished: The latest of its requests that were answered or cancelled.
        excused: Ids of its bad messages, each of which may be answered with an error.
    """

    __slots__ = (
        "_max_finished",
        "_max_ids",
        "_observations",
        "excused",
        "finished",
        "is_complete",
        "is_readable",
        "modern_ids",
        "open",
        "read_place",
        "side",
        "used_ids",
    )

    def __init__(
        self, side: Side, config: Config, observations: Observations, *, from_start: bool
    ) -> None:
        self._observations = observations
        self._max_ids = config.max_used_ids
        self._max_finished = config.max_late_answers
        self.side = side
        self.is_complete = from_start
        self.is_readable = True
        self.read_place = 0
        self.used_ids = UsedIds(config.max_used_ids)
        self.modern_ids: UsedIds | None = None
        self.open: dict[IdKey, SeenRequest] = {}
        self.finished: dict[IdKey, SeenRequest] = {}
        self.excused: dict[IdKey, None] = {}

    def find(self, key: IdKey) -> SeenRequest | None:
        """Its latest request with this id, as far as it is remembered."""
        return self.open.get(key) or self.finished.get(key)

    def has_read(self, place: int) -> bool:
        """Whether it has certainly read what the other side sent at this place."""
        return 0 < place <= self.read_place

    def has_sent(self, key: IdKey) -> bool | None:
        """Whether it has sent a request with this id; None where that cannot be known."""
        if key in self.used_ids or key in self.excused:
            return True
        return None if not self.is_complete or self.used_ids.forgotten else False

    def add_modern_id(self, key: IdKey) -> None:
        """Remember the id of a request of 2026-07-28."""
        if self.modern_ids is None:
            self.modern_ids = UsedIds(self._max_ids)
        self.modern_ids.add(key)

    def excuse(self, key: IdKey | None) -> bool:
        """Allow an error response to a bad message with this id, as if it were a request.

        Returns:
            Whether there was room; if not, the oldest id was forgotten.
        """
        if key is None:
            return True
        self.excused[key] = None
        if len(self.excused) <= self._max_finished:
            return True
        del self.excused[next(iter(self.excused))]
        return False

    def finish(self, request: SeenRequest) -> None:
        """Move a request from the open ones to the finished ones, of which the latest are kept."""
        if self.open.pop(request.key, None) is not None:
            finished = self.finished
            finished[request.key] = request
            if len(finished) > self._max_finished:
                del finished[next(iter(finished))]
                if not request.is_reported:  # else the other side has ended: no response will come
                    self._observations.add_blind_spot(BlindCause.FORGOTTEN, self.side, _FINISHED)

    def forget_oldest(self) -> SeenRequest:
        """Remove the oldest open request and return it."""
        oldest = self.open.pop(next(iter(self.open)))
        self._observations.add_blind_spot(BlindCause.FORGOTTEN, self.side, _OPEN)
        return oldest


class ModernHistory:
    """What was seen of 2026-07-28 in the whole conversation.

    Attributes:
        dialect: The methods of 2026-07-28.
        conversation: A conversation of 2026-07-28 in which every gate is open: requests declare
            their own capabilities.
        n_requests: How many requests of any modern revision were seen.
        n_served: How many requests of 2026-07-28 were not answered with an error.
        n_unknown: How many requests of unknown revisions were not answered with an error.
        is_served: Whether the server has shown that it supports 2026-07-28.
        has_extensions: Whether any request has declared an extension.
        task_methods: The requests of the extension for tasks; empty where the application has an
            extension with methods of these names.
    """

    __slots__ = (
        "conversation",
        "dialect",
        "has_extensions",
        "is_served",
        "n_requests",
        "n_served",
        "n_unknown",
        "task_methods",
    )

    def __init__(self, registry: Registry) -> None:
        try:
            registry = with_tasks(registry)
            self.task_methods: tuple[str, ...] = TASK_METHODS
        except ValueError:  # an extension of the application has such a method
            self.task_methods = ()
        self.dialect: Dialect = registry.dialects[MODERN_REVISION]
        gates = registry.every_gate
        self.conversation = Conversation(self.dialect, Phase.OPERATING, [gates, gates])
        self.n_requests = 0
        self.n_served = 0
        self.n_unknown = 0
        self.is_served = False
        self.has_extensions = False


class ObserverCore(Observations):
    """The objects that all parts of an observer share: observations, and the history of each side.

    Attributes:
        config: The limits.
        checks_shape: Whether members and their types are judged.
        registry: The methods and capabilities of the specification and of the extensions.
        client: What the client has sent; `server`, what the server has sent; `sides`: both.
        modern: What was seen of 2026-07-28.
    """

    __slots__ = ("checks_shape", "client", "config", "modern", "registry", "server", "sides")

    def __init__(self, config: Config, *, from_start: bool) -> None:
        super().__init__()
        self.config = config
        self.checks_shape = config.check != "none"
        self.registry: Registry = config.registry
        self.client = SideHistory(Side.CLIENT, config, self, from_start=from_start)
        self.server = SideHistory(Side.SERVER, config, self, from_start=from_start)
        self.sides = (self.client, self.server)
        self.modern = ModernHistory(self.registry)
