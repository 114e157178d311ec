"""An MCP endpoint: a server behind HTTP, made of parts.

`ServerEndpoint` has the public verbs. Heads go to `head`, bodies to `methods` and `post`, messages
to the transports in `hosted_transports`; `core` is what all of these share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, final

import attrs

from ..._connection.config import Config, config_of
from ..._connection.events import TaskQuestion, TasksWanted, TaskToStore, TaskWanted
from ..._connection.handles import (
    IncomingRequest,
    Listener,
    Listing,
    OutgoingRequest,
    Ping,
    Task,
    call_of,
    part_of,
    route_of,
    set_route,
)
from ..._connection.input_required.server import needs_session
from ..._connection.subscriptions.changes import Change
from ..._connection.tasks.board import TaskBoard
from ..._connection.tasks.owner import TaskOwner
from ..._connection.tasks.records import TaskRecord
from ..._connection.tasks.settings import Tasks
from ..._rules.conversation import Peer, is_same_principal
from ..._rules.sending import no_tasks, server_request_error, unrelated_notification_error
from ..._spec.errors import LocalProtocolError
from ..._spec.registry import ALL_REVISIONS, MODERN_REVISIONS
from ..._wire.setting_checks import (
    check_choice,
    check_flag,
    check_function,
    check_kind,
    check_object,
    check_seconds,
    check_whole,
)
from ..._wire.values import MISSING, JSONObject, JSONValue, Missing
from .._headers import Fields, GivenHeaders, Headers, Text
from .core import ServerEndpointCore, Service
from .events import (
    CredentialsReceived,
    EventToStore,
    HTTPEvent,
    Question,
    ReplayWanted,
    SessionEnd,
    SessionRequested,
    SessionWanted,
    ToolSchemaWanted,
)
from .exchange import ServerExchange, ServerExchangeCore, error_headers
from .head import RequestHeadJudge
from .hosted_transports import HostedTransports, without_streams
from .lookup_answers import LookupAnswers
from .lookups import Lookups
from .methods import Methods
from .modern_headers import ToolSchema
from .origins import Origins
from .post import PostReceiver
from .relay import CarriedRequest
from .routed_transport import RoutedTransport
from .session_transport import SessionTransport
from .sessions import ASK, OldPaths, Session, Sessions, state_of
from .shared_transport import SharedTransport
from .streams import Stream


@final
class ServerEndpoint:
    """A server behind HTTP: requests come in as exchanges, and events and responses come out.

    The endpoint is the unit of locking: use it and its exchanges in one thread at a time. No call
    waits.

    Args:
        info: The server's `Implementation` object: `name` and `version` at least.
        capabilities: What the server offers.
        instructions: How to use the server, for the model on the other side.
        revisions: The revisions to speak.
        hosts: Names in `Host` that are served, beside the loopback ones: `"api.example"` (any
            port), `"api.example:8443"`, or `"*"` for all. Against DNS rebinding.
        origins: Origins of web pages that may call, and no others, such as
            `"https://app.example"`, or `"*"` for all; they get the CORS headers. None: pages from
            loopback addresses only, without CORS.
        sessions: How sessions of the legacy revisions are kept; None: there are none, and each
            legacy request is served by itself. Then `listChanged`, `resources.subscribe` and
            `logging` are not declared to these clients: they need a stream or a log level that
            lasts.
        streams: Whether there are streams that outlast a request: those of GET and of
            `subscriptions/listen`. Without them GET gets 405 and `subscriptions/listen` -32601,
            `listChanged` and `resources.subscribe` are not declared to any client, and no event
            log is kept.
        answers: `auto` answers with one JSON object if no message comes before the answer, else
            with a stream. `sse` answers every client that takes a stream with one; it begins at
            once in the legacy revisions, and with the first message or `start_stream` in
            2026-07-28, where errors have statuses.
        keep_alive: Seconds of silence on a stream after which a comment goes out; None: never.
        tool_schema: Gives the `inputSchema` of a tool, to check its `Mcp-Param-*` headers; None:
            they are not checked. An exception that it raises comes out of the exchange's
            `receive_end`, after the request was answered with 500. `"ask"`: the application is
            asked by the event `ToolSchemaWanted`, and may take its time.
        credentials: `given`: a principal is given with a request, or set before its body is
            complete. `ask`: the application is asked who sends a request, by the event
            `CredentialsReceived`, and may take its time.
        old_paths: Where clients of 2024-11-05 are served; needs `sessions`.
        tasks: How tasks are kept; both forms are declared then. None: the library takes no part in
            tasks. A task belongs to its principal; without one, that of a session belongs to the
            session, and that of 2026-07-28 to whoever knows its id.
        config: Limits and policies. Each session has the limits of a connection.
        wake: Called when output, an event or an earlier deadline appears where none was.

    Raises:
        ValueError: A revision is unknown, `info` is incomplete, a name in `hosts` or `origins` is
            one that is never sent, or settings contradict each other.
        LocalProtocolError: `info`, `capabilities` or `instructions` have no JSON form.
    """

    __slots__ = (
        "__weakref__",
        "_answers",
        "_asks_credentials",
        "_board",
        "_core",
        "_heads",
        "_hosted",
        "_lookups",
        "_methods",
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
        tool_schema: ToolSchema | Literal["ask"] | None = None,
        credentials: Literal["given", "ask"] = "given",
        old_paths: OldPaths | None = None,
        tasks: Tasks | None = None,
        config: Config | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        check_choice("answers", answers, ("auto", "sse"))
        check_flag("streams", streams)
        check_kind("sessions", sessions, Sessions, optional=True)
        check_kind("old_paths", old_paths, OldPaths, optional=True)
        check_object("capabilities", capabilities, optional=True)
        check_choice("credentials", credentials, ("given", ASK))
        asks_tool_schema = tool_schema == ASK
        schema_of = None if tool_schema == ASK else tool_schema
        check_function("tool_schema", schema_of, optional=True)
        check_function("wake", wake, optional=True)
        if keep_alive is not None:
            check_seconds("keep_alive", keep_alive)
        core = ServerEndpointCore(config_of(config), keep_alive=keep_alive, wake=wake)
        served_from = Origins(hosts, origins)
        if not streams:
            capabilities = without_streams(capabilities or {})
            if sessions is not None:  # no client can come back for the events of a log
                sessions = attrs.evolve(sessions, event_log=None)
        check_kind("tasks", tasks, Tasks, optional=True)
        board = None if tasks is None else TaskBoard(tasks, core)
        settings: dict[str, Any] = {
            "instructions": instructions,
            "tasks": board,
            # Pings make no sense where a client is reached by streams that it may close; comments
            # do.
            "config": attrs.evolve(core.config, ping_interval=None),
        }
        whole = SharedTransport(
            core,
            streams=streams,
            info=info,
            capabilities=capabilities,
            revisions=revisions,
            **settings,
        )
        service = Service(
            revisions=whole.core.revisions,
            legacy_revisions=whole.core.legacy_revisions,
            modern_revisions=whole.core.modern_revisions,
            sessions=sessions,
            streams=streams,
            answers=answers,
            tool_schema=schema_of,
            old_paths=old_paths,
            asks_tool_schema=asks_tool_schema,
        )
        lookups = Lookups(core)
        hosted = HostedTransports(core, service, whole, settings, lookups)
        heads = RequestHeadJudge(core, service, served_from)
        post = PostReceiver(core, service, hosted, heads, lookups)
        self._core: Final = core
        self._board: Final = board
        self._heads: Final = heads
        self._hosted: Final = hosted
        self._lookups: Final = lookups
        self._methods: Final = Methods(core, service, hosted.store, heads, post)
        self._answers: Final = LookupAnswers(core, lookups, self._methods, post, hosted.store)
        self._asks_credentials: Final = credentials == ASK

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
            principal: Who sends it, as the transport has found out. A session is open only to the
                principal that has opened it, compared by `principal_key`; by `==` without keys,
                and also by `==` where a client of 2024-11-05 posts. A handler sees the principal
                of the request that it handles.
            principal_key: A string that stands for the principal and for no one else, such as an
                account's id. Needed with a principal where `Config.state_keys` are set: sealed
                states are bound to it. It may be set later, as `ServerExchange.principal`.
            context: Anything; it becomes `IncomingRequest.context`.
            now: The caller's clock in seconds.

        Returns:
            The exchange, which takes the body. A request that the head alone forbids is answered
            already: `refused`.

        Never raises for what the peer did.
        """
        core = self._core
        if now is not None:
            core.tell(now)
        fields = Fields(headers)
        exchange = ServerExchangeCore(
            core, method, target, fields, principal, principal_key, context
        )
        handle = ServerExchange(exchange, self._methods)
        self._heads.judge(exchange)
        if self._asks_credentials and principal is None and handle.needs_principal:
            self._answers.ask_for_credentials(exchange)
        if core.wake is not None:
            core.settle()
        return handle

    def receive_carried(
        self,
        request: CarriedRequest,
        *,
        context: Any = None,
        at: float | None = None,
        now: float | None = None,
    ) -> ServerExchange:
        """Serve a whole request that another process has received, and carried here by `carry`.

        It is served as any other, but that nobody is asked for its credentials again, nor for a
        session that it names and that is not open here: that gets 404.

        Args:
            request: The request.
            context: Anything; it becomes `IncomingRequest.context`.
            at: As for `ServerExchange.receive_end`.
            now: The caller's clock in seconds.

        Returns:
            The exchange. Its output goes back to the other process, which relays it.
        """
        core = self._core
        if now is not None:
            core.tell(now)
        exchange = ServerExchangeCore(
            core,
            request.method,
            request.target,
            Fields(list(request.headers)),
            request.principal,
            request.principal_key,
            context,
        )
        exchange.is_carried = True
        handle = ServerExchange(exchange, self._methods)
        self._heads.judge(exchange)
        handle.receive_data(request.body)
        handle.receive_end(at=at)
        core.settle()
        return handle

    def refusal(
        self,
        status: int,
        text: str,
        *,
        method: Text = "",
        headers: GivenHeaders | None = None,
    ) -> tuple[int, Headers, bytes]:
        """The response for a request that the transport refuses before there is an exchange.

        For another path, or a head that cannot be read. Pages of `origins` can read the response;
        a browser that asks before it sends a request (a preflight of CORS) is told to send it.

        Args:
            status: From 400 to 599.
            text: One sentence for people.
            method: The method, if it was read.
            headers: The headers, as `exchange` takes them; None: they were not read.

        Returns:
            Status, headers and body, as `ServerExchange.response` has them.
        """
        return self._heads.refusal(status, text, method, headers)

    def handle_timeout(self, now: float) -> None:
        """The time is `now`: fire the timers that are due, in all sessions and exchanges."""
        core = self._core
        core.tell(now)
        if core.now is not None:
            core.timers.fire(core.now)
        core.settle()

    # ------------------------------------------------------------------------- to the caller

    def ready(self) -> list[ServerExchange]:
        """The exchanges that have had new output since the last call; take the output off each.

        Input of one exchange can cause output of another, and so can taking its output: ask again
        until there are none. Missed events come out in portions: after each portion but the last,
        the exchange is named again.
        """
        core = self._core
        ready: list[Any] = list(core.ready)
        core.ready.clear()
        core.told_ready = False
        return ready

    def next_event(self) -> HTTPEvent | None:
        """Take the oldest event; None means that there is none now."""
        events = self._core.events
        if not events:
            return None
        event: HTTPEvent = events.take()
        if not events:
            self._core.told_events = False
        return event

    def next_timeout(self) -> float | None:
        """When to call `handle_timeout`, on the caller's clock; None means never."""
        return self._core.timers.earliest()

    # ------------------------------------------------------------------------------ answering

    def send_result(
        self,
        request: IncomingRequest,
        result: JSONObject,
        *,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Answer a request with a result: as `ServerConnection.send_result`.

        Returns:
            Whether the response goes out. False: the request was cancelled meanwhile, or its client
            is gone and cannot come back for it; the latter is reported, too.
        """
        done = self._enter(request, now).machine.incoming.send_result(request, result, meta, None)
        if self._core.wake is not None:
            self._core.settle()
        return done

    def send_error(
        self,
        request: IncomingRequest,
        code: int,
        message: str,
        data: JSONValue | Missing = MISSING,
        *,
        status: int | None = None,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        now: float | None = None,
    ) -> bool:
        """Answer a request with an error: as `ServerConnection.send_error`.

        In 2026-07-28 the status is 404 for -32601, 400 for -32700, -32600, -32602 and -32020 to
        -32022; else 200, as in the revisions before. Another status may be given, such as 403 with
        the challenge of a server that wants more scopes. It has no effect where the response has
        begun as a stream, or is that of a batch: there the client gets the error only.

        Args:
            request: The request.
            code: A JSON-RPC error code.
            message: One concise sentence.
            data: Any JSON value; left out if not given.
            status: From 400 to 599; None: as above.
            headers: Headers of a response with this status, beside those that every response has.
            now: The caller's clock in seconds.

        Returns:
            Whether the error goes out. False: the request was cancelled meanwhile.

        Raises:
            LocalProtocolError: The error has no JSON form, or the request is none of this endpoint.
            ValueError: The status is none of an error, or the headers are not valid.
        """
        more = () if status is None else error_headers(status, headers)
        transport = self._enter(request, now)
        done = transport.send_error(request, code, message, data, status, more)
        self._settle()
        return done

    def send_progress(
        self,
        request: IncomingRequest,
        progress: float,
        *,
        total: float | None = None,
        message: str | None = None,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Send progress of a request: as `ServerConnection.send_progress`.

        This turns the response into a stream; for a client that takes none, it sends nothing and
        returns False. Progress of a task, whose request is answered, goes to a GET stream of the
        session (PROG-011).
        """
        transport = self._enter(request, now)
        done = transport.send_progress(request, progress, total, message, meta)
        self._settle()
        return done

    def require_input(
        self,
        request: IncomingRequest,
        questions: Mapping[str, JSONObject] | None = None,
        *,
        state: str | None = None,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        at: float | None = None,
        now: float | None = None,
    ) -> bool:
        """Ask the client questions about its request: as `ServerConnection.require_input`."""
        transport = self._enter(request, now)
        done = transport.machine.input_required.require(
            request, questions or {}, state, meta, timeout, at, None
        )
        self._settle()
        return done

    def read_state(
        self, request: IncomingRequest, *, at: float | None = None, now: float | None = None
    ) -> str | None:
        """The state of the round before: as `ServerConnection.read_state`."""
        transport = self._enter(request, now)
        route = route_of(request)
        route.status = 400  # of the error, if there is one
        try:
            state = transport.machine.input_required.read_state(request, at, None)
        finally:
            route.status = 200
        self._settle()
        return state

    def start_stream(self, request: IncomingRequest, *, now: float | None = None) -> bool:
        """Answer a request with a stream, and begin it now.

        Without this a client gets no response before the first message. With it, the client knows
        that its request is served, and in a session it has an event id to resume from.

        Returns:
            Whether the response is a stream. False: it is over, the client takes no stream, or the
            request is `initialize`, before whose answer there is no session.
        """
        self._enter(request, now)
        route = route_of(request)
        exchange = None if route.over or not request.open else route.exchange
        if exchange is None or not route.takes():
            return False
        if not exchange.is_stream:
            route.start()
        self._settle()
        return True

    def close_stream(
        self,
        where: IncomingRequest | Session,
        *,
        retry_ms: int | None = None,
        now: float | None = None,
    ) -> bool:
        """End the connection of a stream, and let the client resume it later.

        A long request need not hold a connection. Messages wait in the event log meanwhile.

        Args:
            where: A request, for the stream of its response; or a session, for its GET streams.
            retry_ms: Milliseconds that the client waits before; None: `Sessions.retry_ms`, or a
                second.
            now: The caller's clock in seconds.

        Returns:
            Whether it was done. False: no client reads the stream, or its client cannot resume it
            (no event log, or a revision before 2025-11-25).

        Source: MCP 2025-11-25, basic/transports, Sending Messages to the Server.
        """
        if retry_ms is not None:
            check_whole("retry_ms", retry_ms, 0)
        if isinstance(where, Session):
            streams = list(self._at_session(where, now).streams.listening)
        else:
            self._enter(where, now)
            route = route_of(where)
            streams = [route] if isinstance(route, Stream) else []
        closed = [stream.pause(retry_ms) for stream in streams]
        self._settle()
        return any(closed)

    # ---------------------------------------------------------------------- asking and telling

    def send_request(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        request: IncomingRequest | None = None,
        session: Session | None = None,
        meta: JSONObject | None = None,
        progress: bool = False,
        timeout: float | None = None,
        max_timeout: float | None = None,
        id: int | str | None = None,
        task: bool | int = False,
        data: Any = None,
        now: float | None = None,
    ) -> OutgoingRequest:
        """Send a request to a client with a legacy session: as `ServerConnection.send_request`.

        One of `request` and `session` names the client. A message about a request goes out on the
        stream of its response; one about a session goes to the newest GET stream of the session,
        and waits in its event log if none is open. A request that no stream could carry ends at
        once in `RequestFailed(NO_STREAM)`. A request that becomes a task of the client is lost with
        its session. Polls of the task go the way of the request, or to a GET stream after it.

        Raises:
            LocalProtocolError: As there; and where there is no session.
        """
        transport = self._transport_for(request, session, now, method)
        if not isinstance(transport, SessionTransport):
            assert request is not None  # a session has a transport of its own
            raise _not_asked(request.peer, method)
        call = transport.machine.outgoing.send(
            method,
            params,
            meta,
            progress,
            timeout,
            max_timeout,
            None,
            id,
            request,
            data,
            None,
            task,
        )
        self._settle()
        return call

    def resume_task(
        self,
        task_id: str,
        method: str,
        *,
        session: Session,
        timeout: float | None = None,
        max_timeout: float | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> OutgoingRequest:
        """Follow a task of the client of a session: as `ServerConnection.resume_task`."""
        transport = self._at_session(session, now)
        follower = transport.machine.outgoing.follower
        if follower is None:
            raise no_tasks()
        call = follower.resume(task_id, method, timeout, max_timeout, data, None)
        set_route(call, transport.streams)  # by which `cancel` finds the session
        self._settle()
        return call

    def session_to_ask(self, peer: Peer, method: str) -> Session:
        """The session in which a client can be sent a request that belongs to none of its own.

        Args:
            peer: The client: `IncomingRequest.peer`.
            method: The method of the request, for the error message.

        Raises:
            LocalProtocolError: There is none. The message names what can be done instead.
        """
        session: Session | None = peer.session
        if session is None:
            raise _not_asked(peer, method)
        return session

    def session_to_notify(self, peer: Peer, method: str) -> Session:
        """The session in which a client can be sent a notification that belongs to no request.

        Args:
            peer: The client: `IncomingRequest.peer`.
            method: The method of the notification, for the error message.

        Raises:
            LocalProtocolError: There is none. The message names what can be done instead.
        """
        session: Session | None = peer.session
        if session is None:
            raise _not_notified(peer, method)
        return session

    def ping(
        self,
        session: Session,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        data: Any = None,
        now: float | None = None,
    ) -> Ping:
        """Ping the client of a session: as `ServerConnection.ping`."""
        transport = self._at_session(session, now)
        ping = transport.machine.pings.send(meta, timeout, data, None)
        self._settle()
        return ping

    def cancel(
        self,
        call: OutgoingRequest | Listing | Ping,
        *,
        reason: str | None = None,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Cancel a request of this side: as `ServerConnection.cancel`."""
        if not call.open:
            return False
        inner = call if isinstance(call, OutgoingRequest) else call_of(call)
        route = None if inner is None else route_of(inner)
        transport = self._own(None if route is None else route.transport, call, now)
        done = transport.machine.cancel(call, reason, meta, None)
        self._settle()
        return done

    def send_notification(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        request: IncomingRequest | None = None,
        session: Session | None = None,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> None:
        """Send a notification to a client: as `ServerConnection.send_notification`.

        One of `request` and `session` names the client.
        """
        transport = self._transport_for(request, session, now, method)
        transport.machine.notifications.send(method, params, meta, request, None)
        self._settle()

    def send_log(
        self,
        level: str,
        data: JSONValue,
        *,
        request: IncomingRequest | None = None,
        session: Session | None = None,
        logger: str | None = None,
        meta: JSONObject | None = None,
        now: float | None = None,
    ) -> bool:
        """Send a log message: as `ServerConnection.send_log`.

        One of `request` and `session` names the client.
        """
        transport = self._transport_for(request, session, now, "a log message")
        done = transport.send_log(level, data, logger, meta, request)
        self._settle()
        return done

    def publish(
        self, change: Change, *, meta: JSONObject | None = None, now: float | None = None
    ) -> bool:
        """Publish that a list or a resource has changed, to all clients that want to know.

        As `ServerConnection.publish`, in every session and to every subscription. In a session
        without an open stream the change waits, each change once.

        Returns:
            Whether any client is, or will be, told.
        """
        core, hosted = self._core, self._hosted
        if now is not None:
            core.tell(now)
        whole = hosted.whole  # which has the listeners, and judges the change in any case
        whole.core.now = core.now
        told = whole.machine.publisher.publish(change, meta, None)
        for transport in () if hosted.store is None else hosted.store.told_of(change):
            transport.core.now = core.now
            told = transport.machine.publisher.publish(change, meta, None) or told
        self._settle()
        return told

    # ------------------------------------------------------------------ answers to questions

    def admit(
        self,
        asked: CredentialsReceived,
        principal: Any,
        principal_key: str | None = None,
        *,
        now: float | None = None,
    ) -> bool:
        """Say who sends a request; it is served when its body is there, too.

        `ServerExchange.refuse` refuses it instead.

        Args:
            asked: The event that has asked.
            principal: As for `exchange`.
            principal_key: As for `exchange`.
            now: The caller's clock in seconds.

        Returns:
            Whether the request goes on. False: it was ended meanwhile.

        Raises:
            LocalProtocolError: The question was answered already, or there are
                `Config.state_keys`, and a principal without a `principal_key`: then the request
                was answered with 500.
        """
        return self._settled(self._answers_at(now).admit(asked, principal, principal_key))

    def provide_tool_schema(
        self, wanted: ToolSchemaWanted, schema: JSONObject | None, *, now: float | None = None
    ) -> bool:
        """Give the `inputSchema` of a tool, and serve the call that waits for it.

        Args:
            wanted: The event that has asked.
            schema: The schema; None: there is no such tool, or nothing is to be checked.
            now: The caller's clock in seconds.

        Returns:
            Whether the request goes on. False: it was ended meanwhile.

        Raises:
            LocalProtocolError: The question was answered already.
        """
        return self._settled(self._answers_at(now).provide_tool_schema(wanted, schema))

    def open_session(
        self,
        requested: SessionRequested,
        session_id: str | None = None,
        *,
        now: float | None = None,
    ) -> bool:
        """Open the session that a client has asked for.

        `SessionStarted` follows if it begins, and `SessionEnded` if its `initialize` is refused.
        `ServerExchange.refuse` refuses it instead.

        Args:
            requested: The event that has asked.
            session_id: The id of the session, which nobody can guess, of visible ASCII; None: one
                of `Sessions.new_id`.
            now: The caller's clock in seconds.

        Returns:
            Whether a session was made. False: the request was ended meanwhile, or there is no room.

        Raises:
            LocalProtocolError: The question was answered already, or no session can have this id.
        """
        return self._settled(self._answers_at(now).open_session(requested, session_id))

    def refuse_session(self, wanted: SessionWanted, *, now: float | None = None) -> bool:
        """Say that a session does not exist: the request gets 404, and its client opens another.

        Returns:
            Whether it was said. False: the request was ended meanwhile.

        Raises:
            LocalProtocolError: The question was answered already.
        """
        return self._settled(self._answers_at(now).refuse_session(wanted))

    def carry(self, wanted: SessionWanted, *, now: float | None = None) -> CarriedRequest | None:
        """Take a request away, to carry it to the process that has its session.

        The response comes back by `wanted.exchange`: `relay_head`, `relay_body`, `relay_end`, or
        `relay_failed`. If the client is gone before, `RelayEnded` says so.

        Returns:
            The whole request, for `receive_carried` of the other process; None: it was ended
            meanwhile.

        Raises:
            LocalProtocolError: The question was answered already.
        """
        request = self._answers_at(now).carry(wanted)
        self._settle()
        return request

    def replay_ended(
        self,
        wanted: SessionWanted,
        events: Sequence[tuple[int, bytes]],
        *,
        now: float | None = None,
    ) -> bool:
        """Send the stored rest of a stream whose session is over, as a response that ends with it.

        Args:
            wanted: The event that has asked, which names the stream.
            events: Number and message of each event after `wanted.after`, oldest first.
            now: The caller's clock in seconds.

        Returns:
            Whether it is sent. False: the request was ended meanwhile.

        Raises:
            LocalProtocolError: The question was answered already, or names no stream, or the events
                do not follow in order, or have more than `Config.max_unsent_bytes`.
        """
        return self._settled(self._answers_at(now).replay_ended(wanted, events))

    def replay(
        self,
        wanted: ReplayWanted,
        events: Sequence[tuple[int, bytes]] | None,
        *,
        more: bool = False,
        now: float | None = None,
    ) -> bool:
        """Give stored events to a client that resumes a stream. New ones follow behind them.

        Args:
            wanted: The event that has asked.
            events: Number and message of each event after `wanted.after`, oldest first; None:
                nothing is known of the stream, for which the client gets 400 if the stream is over.
            more: Whether there are others: `ReplayWanted` comes again when these were taken. If
                not, those that are missing are reported as lost (OWN-033).
            now: The caller's clock in seconds.

        Returns:
            Whether the question was open. False: the request was ended meanwhile.

        Raises:
            LocalProtocolError: The question was answered already, or the events do not follow in
                order, or there are none and `more` is True.
        """
        return self._settled(self._answers_at(now).replay(wanted, events, more))

    def fail_lookup(
        self,
        asked: Question,
        text: str = "the server could not look up what this request needs",
        *,
        status: int = 500,
        retry_after: int | None = None,
        now: float | None = None,
    ) -> bool:
        """Say that a question cannot be answered now: its request gets an error.

        A response that has begun, as a stream that goes on with another one, is ended instead: its
        client may resume it. `LookupEnded` follows.

        Args:
            asked: The event that has asked.
            text: One sentence for the client.
            status: From 500 to 599: 503 where the client had better try again.
            retry_after: Seconds after which it may do so; None: that is not said.
            now: The caller's clock in seconds.

        Returns:
            Whether the question was open. False: the request was ended meanwhile.

        Raises:
            LocalProtocolError: The question was answered already.
            ValueError: The status is none of a server's error.
        """
        return self._settled(self._answers_at(now).fail(asked, text, status, retry_after))

    def store_failed(self, event: EventToStore, text: str, *, now: float | None = None) -> bool:
        """Say that an event could not be stored. That is reported (OWN-033).

        A request of this side that no client has read ends in `NO_STREAM` with its event.

        Args:
            event: The event.
            text: What has failed, for the report.
            now: The caller's clock in seconds.

        Returns:
            Whether the session is still open.
        """
        return self._settled(self._answers_at(now).store_failed(event, text))

    def store_dropped(self, session: Session, count: int, *, now: float | None = None) -> bool:
        """Say that the oldest stored events of a session were dropped. That is reported (OWN-033).

        Requests of this side that no client has read end in `NO_STREAM` with their events.

        Args:
            session: The session.
            count: How many of its events were dropped since this was said last.
            now: The caller's clock in seconds.

        Returns:
            Whether the session is still open.
        """
        return self._settled(self._answers_at(now).store_dropped(session, count))

    # -------------------------------------------------------------------------- subscriptions

    def acknowledge(
        self,
        request: IncomingRequest,
        notifications: JSONObject | None = None,
        *,
        now: float | None = None,
    ) -> Listener | None:
        """Accept a subscription: as `ServerConnection.acknowledge`."""
        transport = self._enter(request, now)
        listener = transport.machine.listeners.acknowledge(request, notifications, None)
        self._settle()
        return listener

    def end_listener(self, listener: Listener, *, now: float | None = None) -> bool:
        """End a subscription: as `ServerConnection.end_listener`. Its stream ends, too."""
        transport = self._enter(listener.request, now)
        done = transport.machine.listeners.end_listener(listener, None)
        self._settle()
        return done

    # ---------------------------------------------------------------------------------- tasks

    def create_task(
        self,
        request: IncomingRequest,
        *,
        ttl_ms: int | Missing | None = MISSING,
        poll_ms: int | Missing | None = MISSING,
        message: str | None = None,
        keep: JSONValue = None,
        meta: JSONObject | None = None,
        at: float | None = None,
        now: float | None = None,
    ) -> Task | None:
        """Answer a request with a task: as `ServerConnection.create_task`."""
        owner = self._task_owner(self._enter(request, now))
        task = owner.create(request, ttl_ms, poll_ms, message, keep, meta, at, None)
        self._settle()
        return task

    def update_task(
        self,
        task: Task,
        *,
        message: str | Missing | None = MISSING,
        ttl_ms: int | Missing | None = MISSING,
        poll_ms: int | Missing | None = MISSING,
        keep: JSONValue | Missing = MISSING,
        at: float | None = None,
        now: float | None = None,
    ) -> bool:
        """Change what is said about a task: as `ServerConnection.update_task`."""
        owner = self._owner_of(task, now)
        return self._settled(owner.report(task, message, ttl_ms, poll_ms, keep, at, None))

    def require_task_input(
        self,
        task: Task,
        questions: Mapping[str, JSONObject],
        *,
        at: float | None = None,
        now: float | None = None,
    ) -> bool:
        """Ask the client questions about its task: as `ServerConnection.require_task_input`.

        A question about a task of 2025-11-25 goes to the session in which the task was made, and
        after it to the session of the same principal in which `tasks/result` is called.

        Raises:
            LocalProtocolError: As there; and for a task of 2025-11-25 where there are no sessions.
        """
        if task.open and not task.record.is_modern and self._hosted.store is None:
            raise LocalProtocolError("STATE-006", needs_session("require_task_input", task.peer))
        return self._settled(self._owner_of(task, now).ask(task, questions, at, None))

    def complete_task(
        self,
        task: Task,
        result: JSONObject,
        *,
        meta: JSONObject | None = None,
        at: float | None = None,
        now: float | None = None,
    ) -> bool:
        """End a task with its result: as `ServerConnection.complete_task`."""
        return self._settled(self._owner_of(task, now).complete(task, result, meta, at, None))

    def fail_task(
        self,
        task: Task,
        code: int,
        message: str,
        data: JSONValue | Missing = MISSING,
        *,
        at: float | None = None,
        now: float | None = None,
    ) -> bool:
        """End a task with an error: as `ServerConnection.fail_task`."""
        return self._settled(self._owner_of(task, now).fail(task, code, message, data, at, None))

    def cancel_task(
        self,
        task: Task,
        *,
        message: str | None = None,
        at: float | None = None,
        now: float | None = None,
    ) -> bool:
        """Cancel a task from this side: as `ServerConnection.cancel_task`."""
        return self._settled(self._owner_of(task, now).cancel(task, message, at, None))

    def adopt_task(
        self, record: TaskRecord, *, at: float | None = None, now: float | None = None
    ) -> Task:
        """Take over a task whose process has ended: as `ServerConnection.adopt_task`."""
        self._board_at(now)
        task = self._task_owner(self._hosted.whole).adopt(record, at, None)
        self._settle()
        return task

    def provide_task(
        self, wanted: TaskWanted, record: TaskRecord | None, *, now: float | None = None
    ) -> None:
        """Give the record of a task: as `ServerConnection.provide_task`."""
        self._board_at(now).provide(wanted, record)
        self._settle()

    def provide_tasks(
        self, wanted: TasksWanted, records: list[TaskRecord], *, now: float | None = None
    ) -> None:
        """Give a page of tasks: as `ServerConnection.provide_tasks`."""
        self._board_at(now).provide_page(wanted, records)
        self._settle()

    def task_stored(
        self, asked: TaskToStore, stored: bool = True, *, now: float | None = None
    ) -> None:
        """Say what became of a record: as `ServerConnection.task_stored`."""
        self._board_at(now).stored(asked, stored)
        self._settle()

    def fail_task_lookup(
        self,
        asked: TaskQuestion,
        text: str | None = None,
        *,
        no_room: bool = False,
        now: float | None = None,
    ) -> None:
        """Say that the store has failed, or is full: as `ServerConnection.fail_task_lookup`."""
        self._board_at(now).fail(asked, text, no_room=no_room)
        self._settle()

    def task_changed(self, record: TaskRecord, *, now: float | None = None) -> None:
        """Say that another process has changed a task: as `ServerConnection.task_changed`."""
        self._board_at(now).learn(record)
        self._settle()

    @property
    def open_tasks(self) -> tuple[Task, ...]:
        """The tasks that this process works on, oldest first."""
        return () if self._board is None else tuple(self._board.handles.values())

    @property
    def followed_tasks(self) -> tuple[str, ...]:
        """The ids of the tasks whose changes by other processes matter: see `ServerConnection`."""
        return () if self._board is None else self._board.followed

    def follows_task(self, task_id: str) -> bool:
        """Whether a task is among `followed_tasks`; this costs less."""
        return self._board is not None and self._board.follows(task_id)

    # --------------------------------------------------------------------------------- ending

    def end_session(self, session: Session, *, now: float | None = None) -> bool:
        """End a session: every open request in it has its ending, then `SessionEnded` follows.

        Returns:
            Whether the session was open until now.
        """
        transport = self._at_session(session, now)
        if not session.open:
            return False
        transport.end_session(SessionEnd.CLOSED)
        self._settle()
        return True

    def close(self, *, now: float | None = None) -> None:
        """End everything that is open; new requests get 503 from now on.

        Subscriptions are answered with their result, other requests cancelled, sessions and
        streams ended. Output queued before may still be sent. A second call does nothing.
        """
        core = self._core
        if now is not None:
            core.tell(now)
        core.closing = True
        self._heads.forget()
        self._lookups.close()
        if self._board is not None:
            self._board.close()
        for shared in self._hosted.shared():
            shared.core.now = core.now
            shared.end_all()
        for transport in self._hosted.of_sessions():
            transport.end_session(SessionEnd.CLOSED)
        self._settle()

    # ------------------------------------------------------------------------------- looking

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The open sessions, oldest first."""
        store = self._hosted.store
        return () if store is None else store.sessions

    def find_session(self, session_id: str) -> Session | None:
        """The session with this id, also before its `initialize` is answered; None: none is open.

        It costs the same however many sessions there are.
        """
        store = self._hosted.store
        return None if store is None else store.session_of(session_id)

    @property
    def open_requests(self) -> tuple[IncomingRequest, ...]:
        """The requests of all clients that still wait for a response from this side."""
        return tuple(
            request
            for transport in self._hosted.all()
            for request in transport.machine.open_requests
        )

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The open subscriptions of clients of 2026-07-28, oldest first."""
        transport = self._hosted.modern
        return () if transport is None else transport.machine.listeners.open

    def listeners_of(self, peer: Peer) -> tuple[Listener, ...]:
        """The open subscriptions of one client, as far as clients can be told apart, oldest first.

        Requests of 2026-07-28 belong to no session: they are those of the same principal, compared
        as for `exchange`. A client with a session has none.
        """
        if peer.session is not None:
            return ()
        return tuple(one for one in self.listeners if is_same_principal(one.request, peer))

    @property
    def open_questions(self) -> tuple[Question, ...]:
        """The questions that the application has not answered, oldest first."""
        return self._lookups.questions

    @property
    def carried(self) -> tuple[ServerExchange, ...]:
        """The exchanges whose responses come from another process, oldest first."""
        return self._lookups.carried

    @property
    def held_bytes(self) -> int:
        """Memory, by estimate, that requests hold: see `Config.max_held_bytes`.

        Sessions count with the facts that their clients gave about themselves, for which a quarter
        of that limit is set apart. Output that waits to be sent does not count, but that of relays
        and of `replay_ended`, whose size is decided elsewhere, does.
        """
        held = self._core.held
        return held.bytes + held.sessions

    @property
    def paused(self) -> bool:
        """Advice to stop reading until events were taken. Nothing is refused because of it."""
        return self._core.events.is_over(self._core.config)

    # -------------------------------------------------------------------------------- finding

    def _settle(self) -> None:
        self._core.settle()

    def _settled(self, outcome: bool) -> bool:
        self._core.settle()
        return outcome

    def _board_at(self, now: float | None) -> TaskBoard:
        """The board of the tasks, at the time `now`."""
        if now is not None:
            self._core.tell(now)
        if self._board is None:
            raise no_tasks()
        return self._board

    def _task_owner(self, transport: RoutedTransport) -> TaskOwner:
        """The part of a transport that has its tasks."""
        tasks = transport.machine.tasks
        if tasks is None:
            raise no_tasks()
        return tasks

    def _owner_of(self, task: Task, now: float | None) -> TaskOwner:
        """The part that has made a task."""
        board, part = self._board_at(now), part_of(task)
        if part.board is not board:
            raise LocalProtocolError("OWN-022", f"{task!r} belongs to another endpoint")
        return part

    def _answers_at(self, now: float | None) -> LookupAnswers:
        if now is not None:
            self._core.tell(now)
        return self._answers

    def _own(
        self, transport: RoutedTransport | None, what: object, now: float | None
    ) -> RoutedTransport:
        """The transport of a handle, at the time `now`; raise if the handle is none of ours."""
        core = self._core
        if transport is None or transport.endpoint is not core:
            raise LocalProtocolError("OWN-022", f"{what!r} belongs to another endpoint")
        if now is not None:
            core.tell(now)
        transport.core.now = core.now
        return transport

    def _enter(self, request: IncomingRequest, now: float | None) -> RoutedTransport:
        """The transport of a request."""
        route, core = route_of(request), self._core
        if route is None or (transport := route.transport).endpoint is not core:
            raise LocalProtocolError("OWN-022", f"{request!r} belongs to another endpoint")
        if now is not None:
            core.tell(now)
        transport.core.now = core.now
        found: RoutedTransport = transport
        return found

    def _at_session(self, session: Session, now: float | None) -> SessionTransport:
        """The transport of a session."""
        transport: SessionTransport = state_of(session)
        self._own(transport, session, now)
        return transport

    def _transport_for(
        self,
        request: IncomingRequest | None,
        session: Session | None,
        now: float | None,
        what: str,
    ) -> RoutedTransport:
        """The transport of a request or of a session, whichever is given."""
        if request is not None and session is None:
            return self._enter(request, now)
        if session is not None and request is None:
            return self._at_session(session, now)
        raise LocalProtocolError("OWN-038", f"{what} needs a request or a session, one of the two")


def _not_asked(peer: Peer, method: str) -> LocalProtocolError:
    """The error for a request to a client without a session."""
    if peer.revision in MODERN_REVISIONS:
        return server_request_error(method)
    return LocalProtocolError("STATE-006", needs_session(method, peer))


def _not_notified(peer: Peer, method: str) -> LocalProtocolError:
    """The error for a notification to a client without a session."""
    if peer.revision in MODERN_REVISIONS:
        return unrelated_notification_error(method)
    return LocalProtocolError(
        "OWN-038",
        f"{method} needs a session: without one, a client of revision {peer.revision} is told of "
        "its request by progress messages only",
    )
