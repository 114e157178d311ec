"""The endpoint of a client: one conversation with one server over any number of exchanges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, final

from ..._connection.config import Config, config_of
from ..._connection.handles import IncomingRequest, OutgoingRequest
from ..._rules.conversation import Peer
from ..._rules.state_tables import Phase, State
from ..._spec.registry import ALL_REVISIONS
from ..._wire.setting_checks import check_flag, check_function, names_in
from ..._wire.values import JSONObject
from .connection import PostConnection
from .events import ClientHTTPEvent
from .exchange import ClientExchange
from .headers import read_headers
from .urls import read_url
from .verbs import Verbs


@final
class ClientEndpoint(Verbs):
    """A client behind HTTP: exchanges to be made come out, and what they bring goes in.

    It is the unit of locking: it and its exchanges are used by one thread at a time, and no call
    waits.

    Args:
        url: The URL of the MCP endpoint, of `http` or `https`.
        info: The client's `Implementation` object: `name` and `version` at least.
        capabilities: What the client can do for the server.
        requires: Capabilities that the server must declare; without one of them `start` fails.
        revisions: The revisions to speak. With 2024-11-05 among them, servers of HTTP+SSE are
            recognised, too.
        headers: Fields of every request, such as `Authorization`: a mapping, or pairs. They go to
            the origin of `url` and to no other.
        authorize: Keep what is answered with 401, or 403 and a challenge, until `authorize()` or
            `give_up()` is called. If not, it ends.
        get_stream: Open a stream for what belongs to no request, in the revisions that have one.
        config: Limits and policies.
        wake: Called when an exchange, an abort, an event or an earlier deadline appears where
            none was.

    Raises:
        ValueError: The URL or a field is unusable, a revision or a capability unknown, or `info`
            incomplete.
        LocalProtocolError: `info` or `capabilities` have no JSON form.
    """

    __slots__ = ()

    def __init__(
        self,
        url: str,
        *,
        info: JSONObject,
        capabilities: JSONObject | None = None,
        requires: Iterable[str] = (),
        revisions: Sequence[str] = ALL_REVISIONS,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        authorize: bool = False,
        get_stream: bool = True,
        config: Config | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        config = config_of(config)
        check_flag("authorize", authorize)
        check_flag("get_stream", get_stream)
        check_function("wake", wake, optional=True)
        super().__init__(read_url(url), read_headers(headers), config, wake)
        self._authorize = authorize
        self._get_stream = get_stream
        self._needs_reopening = False
        self._is_useful = True
        self._last_revision = None
        self._opened_at = None
        self._refused_probes = 0
        self._probe_timeout = None
        self._mirrored = {}
        self._moved = {}
        settings: dict[str, Any] = {
            "revisions": revisions,
            "requires": names_in("requires", requires),
            "config": config,
        }
        connection = PostConnection(self, info=info, capabilities=capabilities, **settings)
        # These never change; what the caller has given may, or can be read once only.
        settings["revisions"] = connection.core.revisions
        settings["info"] = config.codec.decode(connection.core.info)
        settings["capabilities"] = connection.core.capabilities
        self._connection_settings = settings
        self._connection = connection

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """All state is plain data, except the caller's `wake`, which copies do without."""
        names = [name for cls in type(self).__mro__ for name in cls.__dict__.get("__slots__", ())]
        state = {name: getattr(self, name) for name in names if name != "__weakref__"}
        state["_wake"] = None
        return None, state

    def __repr__(self) -> str:  # neither its fields nor the query of its URL
        return f"<ClientEndpoint {self._url.authority} {self.state.name}>"

    # ------------------------------------------------------------------------- to the caller

    def next_exchange(self) -> ClientExchange | None:
        """Take the next HTTP request to make; None means that there is none now."""
        exchange = self._take()
        if exchange is None and not self._aborted:
            self._told_work = False
        return exchange

    def aborts(self) -> list[ClientExchange]:
        """The exchanges that were aborted since the last call: close their connections.

        Those that were never given out are not among them.
        """
        aborted, self._aborted = self._aborted, []
        if not self._has_work():
            self._told_work = False
        return aborted

    def next_event(self) -> ClientHTTPEvent | None:
        """Take the oldest event; None means that there is none now."""
        events = self._events
        if not events:
            return None
        event: ClientHTTPEvent = events.take()
        if not events:
            self._told_events = False
        return event

    def next_timeout(self) -> float | None:
        """When to call `handle_timeout`, on the caller's clock; None means never."""
        return self._timers.earliest()

    def handle_timeout(self, now: float) -> None:
        """The time is `now`: fire what is due. Spare calls do nothing."""
        self._connection.machine.handle_timeout(now)
        self._settle()

    # ------------------------------------------------------------------------------- looking

    @property
    def url(self) -> str:
        """Where the server is, by now."""
        return self._url.text

    @property
    def exchanges(self) -> tuple[ClientExchange, ...]:
        """The exchanges that were given out and are not over, oldest first."""
        return tuple(self._live)

    @property
    def state(self) -> State:
        """What still works."""
        return self._connection.core.state

    @property
    def phase(self) -> Phase:
        """How far the opening has come."""
        return self._connection.core.conversation.phase

    @property
    def revision(self) -> str | None:
        """The agreed revision; None before there is one."""
        return self._connection.core.peer.revision

    @property
    def peer(self) -> Peer:
        """What is known of the server."""
        return self._connection.core.peer

    @property
    def pending_requests(self) -> tuple[OutgoingRequest, ...]:
        """The application's own requests that have not ended yet, oldest first."""
        return self._connection.machine.outgoing.pending

    @property
    def open_requests(self) -> tuple[IncomingRequest, ...]:
        """The requests of the server that still wait for an answer, oldest first."""
        return self._connection.machine.open_requests

    @property
    def unsent_bytes(self) -> int:
        """Bytes of messages that wait in exchanges not yet given out."""
        return self._connection.core.unsent

    @property
    def paused(self) -> bool:
        """Advice to stop reading until events were taken. Nothing is refused because of it."""
        return self._events.is_over(self._config)
