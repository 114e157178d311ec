"""An MCP endpoint: what all its exchanges have in common, and what goes on between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, final

import attrs

from ..._connection.config import Config, config_of
from ..._connection.handles import IncomingRequest, Listener
from ..._rules.conversation import Peer
from ..._spec.registry import ALL_REVISIONS
from ..._wire.setting_checks import (
    check_choice,
    check_flag,
    check_function,
    check_kind,
    check_object,
    check_seconds,
    check_text,
)
from ..._wire.values import JSONObject, Record
from .._headers import Fields, GivenHeaders, Headers, Text
from .events import HTTPEvent
from .exchange import ServerExchange
from .head import Heads
from .modern_headers import ToolSchema
from .origins import Origins
from .sessions import Sessions
from .verbs import Verbs

_PATH: Final = re.compile(r"/[^\x00-\x20\x7f-\U0010ffff?#]*")


def _path(_instance: object, attribute: attrs.Attribute[Any], value: str) -> None:
    check_text(attribute.name, value)
    if not _PATH.fullmatch(value):
        raise ValueError(f"{attribute.name} is a path like /sse, not {value!r}")


@final
@attrs.frozen(kw_only=True)
class OldPaths(Record):
    """The two endpoints of HTTP+SSE, for clients of 2024-11-05. Deprecated since 2025-03-26.

    Attributes:
        stream: The path of GET, which opens a stream.
        post: The path of POST, which the stream names to the client.

    Raises:
        ValueError: They are the same, or one does not begin with `/`, or has a query.
    """

    stream: str = attrs.field(validator=_path)
    post: str = attrs.field(validator=_path)

    def __attrs_post_init__(self) -> None:
        """Their methods differ, but what each of them answers to the other's does too."""
        if self.stream == self.post:
            raise ValueError(f"stream and post are two paths, not {self.stream!r} for both")


@final
class ServerEndpoint(Verbs):
    """A server behind HTTP: requests come in as exchanges, and events and responses come out.

    It is the unit of locking: it and its exchanges are used by one thread at a time, and no call
    waits.

    Args:
        info: The server's `Implementation` object: `name` and `version` at least.
        capabilities: What the server offers.
        instructions: How to use the server, for the model on the other side.
        revisions: The revisions to speak.
        hosts: Names in `Host` that are served, beside the loopback ones: `"api.example"` (any
            port), `"api.example:8443"`, or `"*"` for all. Against DNS rebinding.
        origins: Origins of web pages that may call, and no others, such as
            `"https://app.example"`, or `"*"` for all; they get the CORS fields. None: pages from
            loopback addresses only, without CORS.
        sessions: How sessions of the legacy revisions are kept; None: they are not, and each of
            their requests is served by itself. Then `listChanged`, `resources.subscribe` and
            `logging` are not declared to these clients: they need a stream or a log level that
            lasts.
        streams: Whether there are streams that outlast a request: those of GET and of
            `subscriptions/listen`. Without them GET gets 405 and `subscriptions/listen` -32601,
            `listChanged` and `resources.subscribe` are not declared to any client, and no event
            log is kept.
        answers: `auto` answers with one JSON object where nothing comes before it, else with a
            stream; `sse` always with a stream where the client takes one, which begins at once in
            the legacy revisions, and in 2026-07-28, where errors have statuses, with the first
            message or `start_stream`.
        keep_alive: Seconds of silence on a stream after which a comment goes out; None: never.
        tool_schema: Gives the `inputSchema` of a tool, to check its `Mcp-Param-*` fields; None:
            they are not checked. What it raises comes out of the exchange's `receive_end`, after
            the request was answered with 500.
        old_paths: Where clients of 2024-11-05 are served; needs `sessions`.
        config: Limits and policies. Each session has the limits of a connection.
        wake: Called when output, an event or an earlier deadline appears where none was.

    Raises:
        ValueError: A revision is unknown, `info` is incomplete, a name in `hosts` or `origins` is
            one that is never sent, or settings contradict each other.
        LocalProtocolError: `info`, `capabilities` or `instructions` have no JSON form.
    """

    __slots__ = (
        "_answers",
        "_heads",
        "_old_post_path",
        "_old_stream_path",
        "_tool_schema",
    )

    def __init__(
        self,
        *,
        info: JSONObject,
        capabilities: JSONObject | None = None,
        instructions: str | None = None,
        revisions: Sequence[str] = ALL_REVISIONS,
        hosts: Sequence[str] = (),
        origins: Sequence[str] | None = None,
        sessions: Sessions | None = None,
        streams: bool = True,
        answers: Literal["auto", "sse"] = "auto",
        keep_alive: float | None = 15.0,
        tool_schema: ToolSchema | None = None,
        old_paths: OldPaths | None = None,
        config: Config | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        check_choice("answers", answers, ("auto", "sse"))
        check_flag("streams", streams)
        check_kind("sessions", sessions, Sessions, optional=True)
        check_kind("old_paths", old_paths, OldPaths, optional=True)
        check_object("capabilities", capabilities, optional=True)
        check_function("tool_schema", tool_schema, optional=True)
        check_function("wake", wake, optional=True)
        if keep_alive is not None:
            check_seconds("keep_alive", keep_alive)
        super().__init__(config_of(config), keep_alive, wake)
        self._heads = Heads(self, Origins(hosts, origins))
        self._answers = answers
        self._tool_schema = tool_schema
        self._host(revisions, info, capabilities, instructions, sessions, streams)
        if old_paths is not None and (sessions is None or not streams):
            raise ValueError("old_paths need sessions, and streams")
        self._old_stream_path = None if old_paths is None else old_paths.stream
        self._old_post_path = None if old_paths is None else old_paths.post

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """All state is plain data, except the caller's `wake`, which copies do without."""
        names = [name for cls in type(self).__mro__ for name in cls.__dict__.get("__slots__", ())]
        state = {name: getattr(self, name) for name in names if name != "__weakref__"}
        state["_wake"] = None
        return None, state

    # -------------------------------------------------------------------- from the transport

    def exchange(
        self,
        method: Text,
        target: Text,
        headers: GivenHeaders,
        *,
        principal: Any = None,
        principal_key: str | None = None,
        context: Any = None,
        now: float | None = None,
    ) -> ServerExchange:
        """Take the head of one HTTP request.

        Args:
            method: The method.
            target: Path and query, as in the request line.
            headers: A mapping, or pairs, of names in any case and values, as text or bytes. For
                HTTP/2, `:authority` belongs here as `host`.
            principal: Who sends it, as the transport has found out. A session is open to the one
                that has opened it only, compared by `==`.
            principal_key: A string that stands for the principal and for nobody else, such as an
                account's id. Needed with a principal where `Config.state_keys` are set: sealed
                states are bound to it. It may be set later, as `ServerExchange.principal`.
            context: Anything; it becomes `IncomingRequest.context`.
            now: The caller's clock in seconds.

        Returns:
            The exchange, which takes the body. A request that the head alone forbids is answered
            already: `refused`.

        Never raises for what the peer did.
        """
        if now is not None:
            self._tell(now)
        fields = Fields(headers)
        exchange = ServerExchange(self, method, target, fields, principal, principal_key, context)
        self._heads.judge(exchange)
        if self._wake is not None:
            self._settle()
        return exchange

    def refusal(
        self,
        status: int,
        text: str,
        *,
        method: Text = "",
        headers: GivenHeaders | None = None,
    ) -> tuple[int, Headers, bytes]:
        """The response for a request that the transport refuses before there is an exchange.

        For another path, or a head that cannot be read. Pages of `origins` can read it; where a
        browser asks before it sends the request (a preflight of CORS), it is told to send it.

        Args:
            status: From 400 to 599.
            text: One sentence for people.
            method: The method, if it was read.
            headers: The fields, as `exchange` takes them; None: they were not read.

        Returns:
            Status, header fields and body, as `ServerExchange.response` has them.
        """
        return self._heads.refusal(status, text, method, headers)

    def handle_timeout(self, now: float) -> None:
        """The time is `now`: fire what is due, in all sessions and exchanges."""
        self._tell(now)
        if self._now is not None:
            self._timers.fire(self._now)
        self._settle()

    # ------------------------------------------------------------------------- to the caller

    def ready(self) -> list[ServerExchange]:
        """The exchanges that have had new output since the last call; take it off each.

        Input of one exchange can be output of another, and so can taking its output: ask again
        until there are none. What a client has missed comes out in portions: when one was taken,
        the exchange is named again as long as there is another.
        """
        ready: list[Any] = list(self._ready)
        self._ready.clear()
        self._told_ready = False
        return ready

    def next_event(self) -> HTTPEvent | None:
        """Take the oldest event; None means that there is none now."""
        events = self._events
        if not events:
            return None
        event: HTTPEvent = events.take()
        if not events:
            self._told_events = False
        return event

    def next_timeout(self) -> float | None:
        """When to call `handle_timeout`, on the caller's clock; None means never."""
        return self._timers.earliest()

    # ------------------------------------------------------------------------------- looking

    @property
    def open_requests(self) -> tuple[IncomingRequest, ...]:
        """The requests of all clients that still wait for an answer from this side."""
        return tuple(
            one for connection in self._connections() for one in connection.machine.open_requests
        )

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The open subscriptions of clients of 2026-07-28, oldest first."""
        connection = self._modern_connection
        if connection is None:
            return ()
        return connection.machine.listeners.open

    def listeners_of(self, peer: Peer) -> tuple[Listener, ...]:
        """The open subscriptions of one client, as far as clients can be told apart, oldest first.

        Requests of 2026-07-28 belong to no session: they are those of the same principal, compared
        by `==`. A client with a session has none.
        """
        if peer.session is not None:
            return ()
        principal = peer.principal
        return tuple(one for one in self.listeners if one.request.principal == principal)

    @property
    def held_bytes(self) -> int:
        """Memory, by estimate, that requests hold: see `Config.max_held_bytes`.

        Sessions count with what their clients said of themselves, for which a quarter of that limit
        is set apart. What waits to be sent does not count.
        """
        return self._held.bytes + self._held.sessions

    @property
    def paused(self) -> bool:
        """Advice to stop reading until events were taken. Nothing is refused because of it."""
        return self._events.is_over(self._config)
