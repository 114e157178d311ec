"""Handles: objects that stand for requests, listings, pings and subscriptions in the API.

An id may be used again; a handle always means the same request. A handle is compared by identity,
is read-only for the application but for its `data` slot, and has no method that sends. The parts
of the connection use the slots that begin with an underscore.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from .._rules.conversation import Peer
from .._rules.state_tables import RequestState
from .._rules.subscription_filters import FILTERS, NO_RESOURCES
from .._spec.methods import Method
from .._spec.tasks import declares_tasks
from .._wire.values import JSONObject, ProgressToken, RequestId, RequestKey

if TYPE_CHECKING:
    from .._rules.state_tables import TaskStatus
    from .caching.cached_responses import CachedPages
    from .events import ErrorReceived
    from .outgoing import RequestOwner
    from .tasks.operations import TaskChange
    from .tasks.owner import TaskOwner
    from .tasks.records import TaskRecord

_ANSWERED: Final = RequestState.ANSWERED
_OPEN: Final = RequestState.OPEN  # a global is faster than a look-up in the enum


class Route(Protocol):
    """The way of a response to the peer, in a transport that has several (HTTP).

    Attributes:
        principal: The authenticated sender of the request; None if unknown.
        context: The context of the request, as the adapter has given it.
    """

    principal: Any
    context: Any


class Batch:
    """The responses to one batch (2025-03-26), collected until its last request has ended.

    Attributes:
        responses: The encoded responses.
        pending: The number of requests of the batch that have not ended.
        complete: Whether all messages of the batch were read.
        reserved: Bytes reserved for an error response to each pending request.
        size: Bytes of `responses`, with a comma after each.
    """

    __slots__ = ("complete", "pending", "reserved", "responses", "size")

    def __init__(self) -> None:
        self.responses: list[bytes] = []
        self.pending: int = 0
        self.complete: bool = False
        self.reserved: int = 0
        self.size: int = 0


@final
class IncomingRequest:
    """A request that the peer has sent.

    Attributes:
        data: A slot for any object of the application.
    """

    __slots__ = (
        "__weakref__",
        "_batch",
        "_bridge",
        "_digest",
        "_held_bytes",
        "_id",
        "_is_modern",
        "_key",
        "_method",
        "_opened",
        "_params",
        "_peer",
        "_progress",
        "_progress_at",
        "_rounds",
        "_route",
        "_spec",
        "_state",
        "_subject",
        "_task",
        "_token",
        "data",
    )

    def __init__(
        self,
        id: RequestId,
        key: RequestKey,
        method: str,
        params: JSONObject,
        spec: Method | None,
        peer: Peer,
        route: Route | None,
        batch: Batch | None,
    ) -> None:
        self._id = id
        self._key = key
        self._method = method
        self._params = params
        self._spec = spec
        self._peer = peer
        self._route = route
        self._batch = batch
        self._state = _OPEN
        self._is_modern = False
        self._held_bytes = 0  # memory of the message, counted by HTTP endpoints
        self._bridge: BridgedQuestions | None = None  # which wait for answers of the client
        self._digest = b""  # of the received params, if a state may be sealed for them
        self._opened: str | None = None  # the state whose seal was verified
        self._rounds = 0  # how often the client was asked about this request
        self._token: ProgressToken | None = None
        self._progress: float | None = None  # the last that was sent, and when
        self._progress_at: float | None = None
        self._subject: Any = None  # an object of the part that answers the method
        self._task: str | bool = False  # a task was asked for; its id once it was accepted
        self.data: Any = None

    @property
    def id(self) -> RequestId:
        """The id on the wire, for logs and correlation only."""
        return self._id

    @property
    def method(self) -> str:
        """The method name."""
        return self._method

    @property
    def params(self) -> JSONObject:
        """The params object, `{}` if there was none. It belongs to the application."""
        return self._params

    @property
    def meta(self) -> JSONObject:
        """The `_meta` member of the params, `{}` if there was none."""
        meta: JSONObject = self._params.get("_meta") or {}
        return meta

    @property
    def input_responses(self) -> JSONObject:
        """The client's answers to the questions of `require_input`, by key; `{}` without any."""
        if not self._is_modern and self._rounds == 0:
            return {}  # no question was asked: a legacy member of this name is another thing
        responses: JSONObject = self._params.get("inputResponses") or {}
        return responses

    @property
    def peer(self) -> Peer:
        """The sender: its info, capabilities, revision, principal and log level."""
        return self._peer

    @property
    def revision(self) -> str | None:
        """The revision of this request; None before a revision is agreed."""
        return self._peer.revision

    @property
    def peer_info(self) -> JSONObject | None:
        """The `Implementation` object of the peer; None if unknown."""
        return self._peer.info

    @property
    def peer_capabilities(self) -> JSONObject:
        """The capabilities object of the peer."""
        return self._peer.capabilities

    @property
    def principal(self) -> object:
        """The authenticated peer, as the transport has given it; None if unknown."""
        return self._peer.principal if self._route is None else self._route.principal

    @property
    def principal_key(self) -> str | None:
        """A string that identifies the principal, as the application has given it; or None."""
        return self._peer.principal_key

    @property
    def context(self) -> Any:
        """The context that the adapter has given with the request; None without one."""
        return None if self._route is None else self._route.context

    @property
    def log_level(self) -> str | None:
        """The least severe level of log messages that the peer wants; None if it has not said."""
        return self._peer.log_level

    @property
    def progress_token(self) -> ProgressToken | None:
        """The progress token; None if the peer wants no progress or the token is invalid."""
        return self._token

    @property
    def open(self) -> bool:
        """Whether the request waits for a response: it was not answered and not cancelled."""
        return self._state is _OPEN

    @property
    def asks_for_task(self) -> bool:
        """Whether the peer wants a task instead of the result (2025-11-25, the member `task`).

        False where this side has not declared that it takes such requests.
        """
        return self._task is not False and not self._is_modern

    @property
    def accepts_task(self) -> bool:
        """Whether `create_task` may answer it, where tasks are turned on.

        In 2026-07-28 that is a `tools/call` whose client declares the extension
        `io.modelcontextprotocol/tasks`; in 2025-11-25 what `asks_for_task`.
        """
        if self._is_modern:
            return self._method == "tools/call" and declares_tasks(self._peer.capabilities)
        return self.asks_for_task

    def __repr__(self) -> str:
        return f"<IncomingRequest {self._method} id={self._id!r} {self._state.name}>"


class BridgedQuestions:
    """The questions of one round to a legacy client, which are sent as requests of the server.

    Attributes:
        asked: The handle that the application has called `require_input` with.
        renewed: The handle that the application gets when all questions are answered.
        pending: The open questions, with their keys.
        responses: The results so far, by key.
    """

    __slots__ = ("asked", "pending", "renewed", "responses")

    def __init__(self, asked: IncomingRequest, renewed: IncomingRequest) -> None:
        self.asked: IncomingRequest = asked
        self.renewed: IncomingRequest = renewed
        self.pending: dict[OutgoingRequest, str] = {}
        self.responses: JSONObject = {}


class Purpose(enum.IntEnum):
    """The reason why a request was sent: for the application, or for the library itself.

    Endings of APPLICATION requests become events; the library handles those of the others. FETCH is
    a request of the application whose result may be cached.
    """

    APPLICATION = 0
    INITIALIZE = 1
    PING = 2
    KEEP_ALIVE = 3
    PAGE = 4
    DISCOVER = 5
    LISTEN = 6
    QUESTION = 7
    SCHEMAS = 8
    FETCH = 9
    TASK = 10


@final
class OutgoingRequest:
    """A request that this side has sent. It ends in exactly one event with this handle.

    Attributes:
        data: A slot for any object of the application.
    """

    __slots__ = (
        "__weakref__",
        "_asked",
        "_body",
        "_deadline",
        "_following",
        "_id",
        "_is_modern",
        "_last_deadline",
        "_method",
        "_order",
        "_owner",
        "_paused",
        "_progress",
        "_purpose",
        "_quiet_until",
        "_rounds",
        "_route",
        "_spec",
        "_state",
        "_subject",
        "_task",
        "_timeout",
        "_token",
        "data",
    )

    def __init__(
        self,
        id: int | str,
        method: str,
        spec: Method | None,
        purpose: Purpose,
        owner: RequestOwner,
        subject: Any,
    ) -> None:
        self._id = id
        self._method = method
        self._spec = spec
        self._purpose = purpose
        self._owner = owner  # the part that takes the ending
        self._subject = subject  # the handle or object that it is sent for
        self._state = _OPEN
        self._is_modern = False
        self._body: bytes | None = None  # the params, if the server may answer with questions
        self._rounds = 0  # how often the server has answered with questions
        # The questions that wait for answers: methods by key, the state, and the peer.
        self._asked: tuple[dict[str, str], str | None, Peer] | None = None
        self._route: Route | None = None
        self._order = 0  # its number among all requests that were sent
        self._token: ProgressToken | None = None
        self._progress: float | None = None
        self._timeout: float | None = None
        # The end of the timeout if nothing pauses it, and the seconds of all pauses when it began.
        self._quiet_until = 0.0
        self._paused = 0.0
        self._deadline: float | None = None
        self._last_deadline: float | None = None
        self._task: str | bool = False  # a task was asked for; its id once it was accepted
        self._following: TaskFollowing | None = None  # the task that the answer may be
        self.data: Any = None

    @property
    def task_id(self) -> str | None:
        """The id of the task that the request has become; None: it has not.

        Keep it to follow the task from another process, by `resume_task`. It is a secret.
        """
        return None if self._following is None else self._following.task_id

    @property
    def id(self) -> int | str:
        """The id on the wire, for logs and correlation only."""
        return self._id

    @property
    def method(self) -> str:
        """The method name."""
        return self._method

    @property
    def progress_token(self) -> ProgressToken | None:
        """The progress token that was sent with the request, or None."""
        return self._token

    @property
    def open(self) -> bool:
        """Whether the request has not ended yet."""
        return self._state is _OPEN

    def __repr__(self) -> str:
        return f"<OutgoingRequest {self._method} id={self._id!r} {self._state.name}>"


class TaskFollowing:
    """What is known of a task of the peer that a request of this side has become.

    Attributes:
        asked: The methods of the questions that wait for an answer, by key (2026-07-28).
        call: The request.
        error: The error of `tasks/result`, until a poll says that the task has failed; or None.
        failed: The number of polls in a row that have failed.
        failed_updates: The number of updates in a row that have failed (2026-07-28).
        is_sure: Whether the newest poll was sent while a subscription told of changes.
        news: Status and message of which the application was told last; None: of none.
        poll: The open poll; or None.
        poll_ms: Milliseconds that the peer wants between two polls; None: it does not say.
        refused: The keys of the questions that this side cannot answer (2026-07-28).
        rests: Whether the timeout of the request is stopped: no answer is due.
        seen: The keys of all questions that have come.
        task_id: The id of the task; None: the request has not become one.
        unsent: Answers whose update has failed, by the key of the question (2026-07-28).
        updates: The JSON of the answers that each open `tasks/update` brings (2026-07-28).
        wait: The open `tasks/result`; or None (2025-11-25).
    """

    __slots__ = (
        "_deadline",
        "asked",
        "call",
        "error",
        "failed",
        "failed_updates",
        "is_sure",
        "news",
        "poll",
        "poll_ms",
        "refused",
        "rests",
        "seen",
        "task_id",
        "unsent",
        "updates",
        "wait",
    )

    def __init__(self, call: OutgoingRequest) -> None:
        self.call: OutgoingRequest = call
        self._deadline: float | None = None  # of the next poll
        self.task_id: str | None = None
        self.asked: dict[str, str] = {}
        self.seen: set[str] = set()
        self.updates: dict[OutgoingRequest, bytes] = {}
        self.unsent: dict[str, Any] = {}
        self.news: tuple[str, Any] | None = None
        self.error: ErrorReceived | None = None
        self.failed: int = 0
        self.failed_updates: int = 0
        self.refused: set[str] = set()
        self.poll_ms: float | None = None
        self.rests: bool = False
        self.is_sure: bool = False
        self.poll: OutgoingRequest | None = None
        self.wait: OutgoingRequest | None = None

    @property
    def status(self) -> str | None:
        """The status of which the application was told last; None: of none."""
        return None if self.news is None else self.news[0]


@final
class Listing:
    """A list of the peer that is fetched page by page; `send_paginated` returns it.

    Attributes:
        data: A slot for any object of the application.
    """

    __slots__ = (
        "__weakref__",
        "_cached",
        "_call",
        "_cursor_bytes",
        "_cursors",
        "_empty",
        "_has_cursor",
        "_items",
        "_max_timeout",
        "_method",
        "_open",
        "_pages",
        "_params",
        "_route",
        "_stale",
        "_timeout",
        "data",
    )

    def __init__(self, method: str, params: bytes) -> None:
        self._method = method
        self._params = params  # encoded, without the cursor
        self._call: OutgoingRequest | None = None
        self._route: Route | None = None
        self._timeout: float | None = None
        self._max_timeout: float | None = None
        self._open = True
        self._stale = False
        self._has_cursor = False  # whether a page was requested with a cursor
        self._pages = 0
        self._items = 0
        self._empty = 0
        self._cursors: dict[str, None] = {}
        self._cursor_bytes = 0
        self._cached: CachedPages | None = None  # with a cache
        self.data: Any = None

    @property
    def method(self) -> str:
        """The method, `tools/list` for example."""
        return self._method

    @property
    def pages(self) -> int:
        """The number of pages received so far."""
        return self._pages

    @property
    def items(self) -> int:
        """The number of items received so far."""
        return self._items

    @property
    def stale(self) -> bool:
        """Whether the received pages are out of date.

        The peer has announced a change of the list meanwhile, or has refused a cursor with -32602.
        """
        return self._stale

    @property
    def open(self) -> bool:
        """Whether the listing has not ended yet."""
        return self._open

    def __repr__(self) -> str:
        return f"<Listing {self._method} pages={self._pages} items={self._items}>"


@final
class Ping:
    """A ping that the application has sent; it ends in one `PingEnded`.

    Attributes:
        data: A slot for any object of the application.
    """

    __slots__ = ("__weakref__", "_call", "_sent_at", "data")

    def __init__(self, sent_at: float | None) -> None:
        self._sent_at = sent_at
        self._call: OutgoingRequest | None = None
        self.data: Any = None

    @property
    def open(self) -> bool:
        """Whether the ending is still to come."""
        return self._call is not None and self._call.open

    def __repr__(self) -> str:
        return f"<Ping open={self.open}>"


@final
class Start:
    """The opening of a client's conversation; it ends in one `Ready` or `ConnectionFailed`.

    Attributes:
        data: A slot for any object of the application.
    """

    __slots__ = ("__weakref__", "_call", "_meta", "_probe", "_probed_twice", "_until", "data")

    def __init__(self, meta: bytes, probe: bytes, until: float | None) -> None:
        self._meta = meta  # the JSON of the `_meta` of initialize
        self._probe = probe  # the JSON of the params of server/discover
        self._until = until  # the end of the timeout, on the caller's clock
        self._probed_twice = False  # whether the probe was sent a second time
        self._call: OutgoingRequest | None = None
        self.data: Any = None

    @property
    def open(self) -> bool:
        """Whether the ending is still to come."""
        return self._call is not None and self._call.open

    def __repr__(self) -> str:
        return f"<Start open={self.open}>"


@final
class Subscription:
    """A subscription of a client; `listen` returns it, and it ends in one `SubscriptionEnded`.

    Attributes:
        data: A slot for any object of the application.
    """

    __slots__ = (
        "__weakref__",
        "_acknowledged",
        "_asked",
        "_call",
        "_ended_by_server",
        "_granted",
        "data",
    )

    def __init__(self, asked: JSONObject) -> None:
        self._asked = asked
        self._acknowledged: JSONObject | None = None
        self._granted = NO_RESOURCES  # the resources that the acknowledgement names
        self._call: OutgoingRequest | None = None
        self._ended_by_server = False
        self.data: Any = None

    @property
    def asked(self) -> JSONObject:
        """The `SubscriptionFilter` of the request. Do not change it."""
        return self._asked

    @property
    def acknowledged(self) -> JSONObject | None:
        """The part of the filter that the server serves; None before the acknowledgement.

        Do not change it.
        """
        return self._acknowledged

    def grants(self, method: str) -> bool:
        """Whether the acknowledgement grants the changes that a notification tells of.

        Args:
            method: The method of the notification, such as `notifications/tools/list_changed`.
        """
        granted = self._acknowledged
        return granted is not None and bool(granted.get(FILTERS.get(method, "")))

    @property
    def open(self) -> bool:
        """Whether the ending is still to come."""
        return self._call is not None and self._call.open

    def __repr__(self) -> str:
        return f"<Subscription open={self.open} acknowledged={self._acknowledged is not None}>"


@final
class Listener:
    """A subscription of a client (2026-07-28), on the server.

    Attributes:
        data: A slot for any object of the application.
    """

    __slots__ = (
        "__weakref__",
        "_held",
        "_id",
        "_kinds",
        "_request",
        "_tasks",
        "_uris",
        "_wanted",
        "data",
    )

    def __init__(
        self,
        request: IncomingRequest,
        id: bytes,
        kinds: tuple[str, ...],
        uris: tuple[str, ...],
        wanted: tuple[str, ...],
    ) -> None:
        self._request = request
        self._id = id  # the JSON of the id
        self._kinds = kinds  # the members of the filter that are true
        self._uris = uris  # the resources in the filter
        self._wanted = wanted  # the ids of tasks in the filter
        self._tasks: tuple[str, ...] = ()  # those among them that the client may follow
        # Changes that wait for the acknowledgement; None after it.
        self._held: dict[Any, bytes] | None = {}
        self.data: Any = None

    @property
    def request(self) -> IncomingRequest:
        """The `subscriptions/listen` request."""
        return self._request

    @property
    def honoured(self) -> JSONObject:
        """The `SubscriptionFilter` that the server serves."""
        honoured: JSONObject = dict.fromkeys(self._kinds, True)
        if self._uris:
            honoured["resourceSubscriptions"] = list(self._uris)
        if self._tasks:
            honoured["taskIds"] = list(self._tasks)
        return honoured

    @property
    def open(self) -> bool:
        """Whether the subscription has not ended yet."""
        return self._request.open

    def __repr__(self) -> str:
        return f"<Listener id={self._request.id!r} open={self.open}>"


@final
class Task:
    """A task of the peer that this side works on; `create_task` returns it.

    Attributes:
        data: A slot for any object of the application.
    """

    __slots__ = (
        "__weakref__",
        "_given",
        "_keys",
        "_open",
        "_part",
        "_peer",
        "_pending",
        "_record",
        "_report",
        "_unsaved",
        "_unsent",
        "data",
    )

    def __init__(self, record: TaskRecord, part: TaskOwner, peer: Peer) -> None:
        self._record = record  # as it was last stored, as far as this process knows
        self._part = part
        self._peer = peer
        self._open = True
        # The keys of all questions, with those that are being stored; and of the answers that the
        # application has.
        self._keys: dict[str, None] = dict.fromkeys(record.keys)
        self._given: dict[str, None] = {}
        # In 2025-11-25, the questions that are asked by requests, with their keys; and those that
        # wait for a stream to the peer, by key.
        self._pending: dict[OutgoingRequest, str] | None = None
        self._unsent: dict[str, tuple[str, bytes]] | None = None
        # The update that waits for the store behind other operations, and takes in the next ones.
        self._report: TaskChange | None = None
        # Fields of updates that could not be stored, which the next change takes along.
        self._unsaved: dict[str, Any] | None = None
        self.data: Any = None

    @property
    def id(self) -> str:
        """The id of the task. It is a secret: whoever has it may use the task of nobody known."""
        return self._record.id

    @property
    def record(self) -> TaskRecord:
        """The task as it was last stored, as far as this process knows."""
        return self._record

    @property
    def status(self) -> TaskStatus:
        """The status, as it was last stored."""
        return self._record.status

    @property
    def peer(self) -> Peer:
        """The side that has asked for the task."""
        return self._peer

    @property
    def open(self) -> bool:
        """Whether the work may go on: it has no result, and was not cancelled."""
        return self._open

    def __repr__(self) -> str:
        return f"<Task of {self._record.method} {self._record.status.text} open={self._open}>"


OF_APPLICATION: Final = frozenset({Purpose.APPLICATION, Purpose.FETCH})
"""The purposes of requests that the application has sent by itself."""

# -------------------------------------------------------- access to private slots for transports

route_of: Final[Callable[[IncomingRequest | OutgoingRequest], Any]] = attrgetter("_route")
"""The route of a request, for transports that have several; None where it has none."""
purpose_of: Final[Callable[[OutgoingRequest], Purpose]] = attrgetter("_purpose")
"""The purpose of a request."""
subject_of: Final[Callable[[OutgoingRequest], Any]] = attrgetter("_subject")
"""The handle or the object for which a request was sent; None for a request of the application."""
timeout_of: Final[Callable[[OutgoingRequest], float | None]] = attrgetter("_timeout")
"""The seconds of silence that a request allows; None for any number."""
params_of: Final[Callable[[OutgoingRequest], bytes | None]] = attrgetter("_body")
"""The encoded params of a request that may be sent again with answers; None for others."""
meta_of: Final[Callable[[Start], bytes]] = attrgetter("_meta")
"""The encoded `_meta` of the requests of a start; empty where they have none."""
call_of: Final[Callable[[Listing | Ping | Start], OutgoingRequest | None]] = attrgetter("_call")
"""The open request of a listing, a ping or a start; None without one."""
is_modern: Final[Callable[[IncomingRequest | OutgoingRequest], bool]] = attrgetter("_is_modern")
"""Whether a request is modern (2026-07-28) and has an envelope."""
part_of: Final[Callable[[Task], TaskOwner]] = attrgetter("_part")
"""The part that has made the handle of a task."""
held_bytes_of: Final[Callable[[IncomingRequest], int]] = attrgetter("_held_bytes")
"""The memory that a transport has noted for a request with `note_held_bytes`, in bytes."""


def set_route(request: IncomingRequest | OutgoingRequest, route: Route | None) -> None:
    """Send the next messages about a request by this route."""
    request._route = route


def note_held_bytes(request: IncomingRequest, size: int) -> None:
    """Set the estimated memory, in bytes, that a request holds until it ends."""
    request._held_bytes = size


def was_answered(call: OutgoingRequest) -> bool:
    """Whether a request has ended with a response of the peer."""
    return call._state is _ANSWERED


def is_task(request: IncomingRequest) -> bool:
    """Whether a request was answered with a task that has not ended."""
    return type(request._task) is str
