"""Handles: what names a request in the API, instead of an id that could come to mean another.

A handle is compared by identity, cannot be changed by the caller except for its `data` slot, and
has no method that sends anything. The underscored slots belong to the machine.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from .._rules.conversation import Peer
from .._rules.granted_resources import NO_RESOURCES
from .._rules.sending import FILTERS
from .._rules.state_tables import RequestState
from .._spec.methods import Method
from .._wire.values import JSONObject, ProgressToken, RequestId, RequestKey

if TYPE_CHECKING:
    from .outgoing import RequestOwner

_OPEN: Final = RequestState.OPEN  # looking a member up in its enum costs more than all the slots


class Route(Protocol):
    """The way that an answer takes, in a transport that has several; messages name theirs.

    Attributes:
        principal: Who sent the request, as the transport found out; None where it did not.
        context: What the transport knows about the request besides.
    """

    principal: Any
    context: Any


class Batch:
    """The answers to one batch of 2025-03-26, collected until the last of its requests ended."""

    __slots__ = ("answers", "complete", "pending", "reserved", "size")

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.pending: int = 0
        self.complete: bool = False
        self.reserved: int = 0  # bytes for an error in place of each answer that is pending
        self.size: int = 0  # bytes of the answers, with a comma after each


@final
class IncomingRequest:
    """A request from the peer that this side was asked to handle.

    Attributes:
        data: Anything; the slot is the caller's.
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
        self._held_bytes = 0  # of the message that brought it, where they are counted
        self._bridge: Bridge | None = None
        self._digest = b""  # of the params as they came, where a state may be sealed for them
        self._opened: str | None = None  # the state, where its seal was found to be good
        self._rounds = 0
        self._token: ProgressToken | None = None
        self._progress: float | None = None
        self._progress_at: float | None = None
        self._subject: Any = None
        self._task: str | bool = False
        self.data: Any = None

    @property
    def id(self) -> RequestId:
        """The id as it stood on the wire, for logs and correlation only."""
        return self._id

    @property
    def method(self) -> str:
        """The method name."""
        return self._method

    @property
    def params(self) -> JSONObject:
        """The params object, `{}` where there was none. It belongs to the caller."""
        return self._params

    @property
    def meta(self) -> JSONObject:
        """The `_meta` member of the params, `{}` where there was none."""
        meta: JSONObject = self._params.get("_meta") or {}
        return meta

    @property
    def input_responses(self) -> JSONObject:
        """The client's answers to what `require_input` has asked, by key; `{}` at first."""
        if not self._is_modern and self._rounds == 0:
            return {}  # nothing was asked: what stands there is not ours
        responses: JSONObject = self._params.get("inputResponses") or {}
        return responses

    @property
    def peer(self) -> Peer:
        """Who asked: info, capabilities, revision, principal, log level."""
        return self._peer

    @property
    def revision(self) -> str | None:
        """The revision this request is served at; None before one is agreed."""
        return self._peer.revision

    @property
    def peer_info(self) -> JSONObject | None:
        """The `Implementation` object of the peer, or None."""
        return self._peer.info

    @property
    def peer_capabilities(self) -> JSONObject:
        """The capabilities object of the peer."""
        return self._peer.capabilities

    @property
    def principal(self) -> object:
        """Who the peer is, as the transport found out; None where it did not."""
        return self._peer.principal if self._route is None else self._route.principal

    @property
    def principal_key(self) -> str | None:
        """A string that stands for the principal, as the application gave it, or None."""
        return self._peer.principal_key

    @property
    def context(self) -> Any:
        """What the transport was told along with the request; None where it was told nothing."""
        return None if self._route is None else self._route.context

    @property
    def log_level(self) -> str | None:
        """The least severe level the peer wants logged, or None for no wish."""
        return self._peer.log_level

    @property
    def progress_token(self) -> ProgressToken | None:
        """The token for progress, or None where the peer wants none (or it cannot be used)."""
        return self._token

    @property
    def open(self) -> bool:
        """Whether an answer would still be sent."""
        return self._state is _OPEN

    def __repr__(self) -> str:
        return f"<IncomingRequest {self._method} id={self._id!r} {self._state.name}>"


class Bridge:
    """Questions of a server that are under way as requests, and the round that waits for them."""

    __slots__ = ("asked", "pending", "renewed", "responses")

    def __init__(self, asked: IncomingRequest, renewed: IncomingRequest) -> None:
        self.asked: IncomingRequest = asked
        self.renewed: IncomingRequest = renewed
        self.pending: dict[OutgoingRequest, str] = {}
        self.responses: JSONObject = {}


class Purpose(enum.IntEnum):
    """Why a request was sent. Only the application's own surface as its own."""

    APPLICATION = 0
    INITIALIZE = 1
    PING = 2
    KEEP_ALIVE = 3
    PAGE = 4
    DISCOVER = 5
    LISTEN = 6
    QUESTION = 7
    SCHEMAS = 8


@final
class OutgoingRequest:
    """A request that this side sent. It ends in exactly one event that carries this handle.

    Attributes:
        data: Anything; the slot is the caller's.
    """

    __slots__ = (
        "__weakref__",
        "_asked",
        "_body",
        "_deadline",
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
        self._body: bytes | None = None  # the params, where the server may ask before it answers
        self._rounds = 0
        # The methods asked for by key, the state, and the peer that asked.
        self._asked: tuple[dict[str, str], str | None, Peer] | None = None
        self._route: Route | None = None
        self._order = 0
        self._token: ProgressToken | None = None
        self._progress: float | None = None
        self._timeout: float | None = None
        # When silence is over, without the pauses since the last sign of life; and the seconds of
        # pauses before that.
        self._quiet_until = 0.0
        self._paused = 0.0
        self._deadline: float | None = None
        self._last_deadline: float | None = None
        self._task: str | bool = False
        self.data: Any = None

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
        """The token that went out with the request, or None."""
        return self._token

    @property
    def open(self) -> bool:
        """Whether the ending is still to come."""
        return self._state is _OPEN

    def __repr__(self) -> str:
        return f"<OutgoingRequest {self._method} id={self._id!r} {self._state.name}>"


@final
class Listing:
    """A listing that is fetched page by page; made by `send_paginated`.

    Attributes:
        data: Anything; the slot is the caller's.
    """

    __slots__ = (
        "__weakref__",
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
        self._params = params  # encoded without the cursor: the caller's dicts are not kept
        self._call: OutgoingRequest | None = None
        self._route: Route | None = None
        self._timeout: float | None = None
        self._max_timeout: float | None = None
        self._open = True
        self._stale = False
        self._has_cursor = False  # whether the last page was asked for with one
        self._pages = 0
        self._items = 0
        self._empty = 0
        self._cursors: dict[str, None] = {}
        self._cursor_bytes = 0
        self.data: Any = None

    @property
    def method(self) -> str:
        """The listing's method, `tools/list` for example."""
        return self._method

    @property
    def pages(self) -> int:
        """Pages received so far."""
        return self._pages

    @property
    def items(self) -> int:
        """Items received so far."""
        return self._items

    @property
    def stale(self) -> bool:
        """Whether what was listed is out of date.

        The peer said meanwhile that the list had changed, or refused a cursor with -32602.
        """
        return self._stale

    @property
    def open(self) -> bool:
        """Whether more pages, or the ending, are still to come."""
        return self._open

    def __repr__(self) -> str:
        return f"<Listing {self._method} pages={self._pages} items={self._items}>"


@final
class Ping:
    """A ping that the application asked for; it ends in one `PingEnded`.

    Attributes:
        data: Anything; the slot is the caller's.
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
    """The opening of a client; it ends in one `Ready` or `ConnectionFailed`.

    Attributes:
        data: Anything; the slot is the caller's.
    """

    __slots__ = ("__weakref__", "_call", "_meta", "_probe", "_probed_twice", "_until", "data")

    def __init__(self, meta: bytes, probe: bytes, until: float | None) -> None:
        self._meta = meta  # of initialize, as JSON
        self._probe = probe  # the params of server/discover
        self._until = until
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
    """A subscription of a client; made by `listen`, it ends in one `SubscriptionEnded`.

    Attributes:
        data: Anything; the slot is the caller's.
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
        self._granted = NO_RESOURCES  # the resources in the acknowledgement
        self._call: OutgoingRequest | None = None
        self._ended_by_server = False
        self.data: Any = None

    @property
    def asked(self) -> JSONObject:
        """The `SubscriptionFilter` that was asked for. Do not change it."""
        return self._asked

    @property
    def acknowledged(self) -> JSONObject | None:
        """What the server honours of it; None before it has said so. Do not change it."""
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
    """A subscription of the peer, which a server serves.

    Attributes:
        data: Anything; the slot is the caller's.
    """

    __slots__ = ("__weakref__", "_held", "_id", "_kinds", "_request", "_uris", "data")

    def __init__(
        self, request: IncomingRequest, id: bytes, kinds: tuple[str, ...], uris: tuple[str, ...]
    ) -> None:
        self._request = request
        self._id = id  # as JSON
        self._kinds = kinds  # members of a filter that are true
        self._uris = uris
        self._held: dict[Any, bytes] | None = {}  # changes that wait for the acknowledgement
        self.data: Any = None

    @property
    def request(self) -> IncomingRequest:
        """The `subscriptions/listen` request."""
        return self._request

    @property
    def honoured(self) -> JSONObject:
        """The `SubscriptionFilter` that is honoured."""
        honoured: JSONObject = dict.fromkeys(self._kinds, True)
        if self._uris:
            honoured["resourceSubscriptions"] = list(self._uris)
        return honoured

    @property
    def open(self) -> bool:
        """Whether changes are still sent."""
        return self._request.open

    def __repr__(self) -> str:
        return f"<Listener id={self._request.id!r} open={self.open}>"


# ------------------------------------------------------------- what transports read and note here

route_of: Final[Callable[[IncomingRequest | OutgoingRequest], Any]] = attrgetter("_route")
"""The route of a request, for transports that have several; None where it has none."""
call_of: Final[Callable[[Listing | Ping], OutgoingRequest | None]] = attrgetter("_call")
"""The request of a listing or a ping that is in flight; None where none is."""
is_modern: Final[Callable[[IncomingRequest], bool]] = attrgetter("_is_modern")
"""Whether a request speaks for itself, as since 2026-07-28."""
held_bytes_of: Final[Callable[[IncomingRequest], int]] = attrgetter("_held_bytes")
"""The memory that a transport has noted for a request with `note_held_bytes`, in bytes."""


def set_route(request: IncomingRequest | OutgoingRequest, route: Route | None) -> None:
    """Send the next messages about a request by this route."""
    request._route = route


def note_held_bytes(request: IncomingRequest, size: int) -> None:
    """Note how much memory a request holds until it ends, in bytes, by estimate."""
    request._held_bytes = size


def is_task(request: IncomingRequest) -> bool:
    """Whether a request was answered with a task, which goes on."""
    return type(request._task) is str
