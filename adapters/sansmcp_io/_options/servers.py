"""The options of servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import attrs

from sansmcp import (
    ALL_REVISIONS,
    Config,
    IncomingRequest,
    JSONObject,
    ServerConnection,
    Tasks,
)

from .._common.access import VerifyToken, check_access, dump_token, load_token, token_key
from .._common.bounds import DEFAULT_DRAIN, DEFAULT_REQUEST_TIMEOUT
from .._common.call import NotificationHandler, is_async
from .._common.cluster import (
    CarriedPrincipals,
    Cluster,
    ClusterHost,
    ClusterMember,
    check_cluster,
    cluster_sessions,
)
from .._common.errors import check_extra
from .._common.http_server import (
    Authenticate,
    HTTPLimits,
    PrincipalKey,
    check_principal_key,
    new_session_id,
    session_settings,
)
from .._common.lookups import (
    DEFAULT_LOOKUP_TIMEOUT,
    AnyToolSchema,
    EventStore,
    LookupOptions,
    check_asks_nothing,
    check_event_log,
)
from .._common.task_stores import TaskStore, asking, check_own_store, check_task_store
from .._common.tasks import DEFAULT_RUNNING_TASKS, task_settings
from .._common.trace import HTTPTrace, Trace
from .checks import Checked, SessionOptions, check_limits, check_path

if TYPE_CHECKING:
    import ssl

    from sansmcp.auth import ResourceServer
    from sansmcp.http import OldPaths, ServerEndpoint, Sessions

HandlerT = TypeVar("HandlerT")
ReadyHandlerT = TypeVar("ReadyHandlerT")
AuthenticateT = TypeVar("AuthenticateT")


@attrs.frozen(kw_only=True)
class AnyServerOptions(Checked):
    """The options of any server.

    Args:
        info: The server's `Implementation` object: `name` and `version` at least.
        capabilities: What the server offers (`tools`, `resources`, `prompts`, `logging`, ...).
        instructions: How to use the server, for the model on the other side.
        revisions: The revisions to speak.
        on_notification: Called with method and params of each notification; async (on a loop) or
            plain.
        context: Becomes `ServerCall.context`.
        config: Limits and policies of the protocol.
        request_timeout: Default for `timeout` of each request to a client, in seconds;
            `math.inf`: no limit.
        tasks: Whether handlers may return `CreateTask`, and clients ask for tasks; or settings for
            that. Both forms of tasks are declared then. They are kept in memory, with the
            connection or in this process.
        running_tasks: The number of tasks that are worked on at a time; more wait. On a loop, a
            task that waits for answers of the client (`ask`, `request`) is not counted, and is
            counted again before its work goes on; `Tasks.max_tasks` limits all of them. In threads
            each task keeps its thread while it waits: this many unanswered questions stop all
            others.
    """

    info: JSONObject
    capabilities: JSONObject | None = None
    instructions: str | None = None
    revisions: Sequence[str] = ALL_REVISIONS
    on_notification: NotificationHandler | None = None
    context: Any = None
    config: Config | None = None
    request_timeout: float = DEFAULT_REQUEST_TIMEOUT
    tasks: bool | Tasks = False
    running_tasks: int = DEFAULT_RUNNING_TASKS

    def for_session(
        self, handler: Callable[[Any], Any], call_type: Callable[[Any, IncomingRequest], Any]
    ) -> SessionOptions:
        """The options that a session needs."""
        return SessionOptions(
            handler,
            call_type,
            self.on_notification,
            self.context,
            self.request_timeout,
            self.running_tasks if self.tasks else 0,
        )


@attrs.frozen(kw_only=True)
class ServerOptions(AnyServerOptions, Generic[ReadyHandlerT]):
    """The options of a server of one client.

    Args:
        on_ready: Called with the `Server` once, when the client is first ready; an async function
            (on a loop) runs for as long as the connection.
        drain: Seconds that handlers have to finish after the input has ended; then they are
            cancelled.
        trace: Gets the bytes and events of this side.
    """

    on_ready: ReadyHandlerT | None = None
    drain: float = DEFAULT_DRAIN
    trace: Trace | None = None

    def new_connection(self) -> ServerConnection:
        """Make the server's side of a connection."""
        return ServerConnection(
            info=self.info,
            capabilities=self.capabilities,
            instructions=self.instructions,
            revisions=self.revisions,
            tasks=task_settings(self.tasks),
            config=self.config,
        )


@attrs.frozen
class StdioServerOptions(ServerOptions[ReadyHandlerT], Generic[HandlerT, ReadyHandlerT]):
    """The options of a server on standard input and output.

    While this runs, what handlers and their child processes print goes to standard error, and
    they find standard input empty. Both are put back afterwards.

    Args:
        handler: Serves the client's requests.
    """

    handler: HandlerT


@attrs.frozen(kw_only=True)
class HTTPServerOptions(AnyServerOptions, Generic[AuthenticateT]):
    """The options of any server of many clients.

    Args:
        hosts: Names in the header `Host` that are served besides the loopback names, such as
            `"api.example"`.
        origins: Origins of web pages that may call: see `sansmcp.http.ServerEndpoint`.
        authenticate: Called with the headers of each request, by names in lower case; returns the
            principal, or raises `Unauthorized`. Plain or async. Sessions are open only to the
            principal that has opened them. Preflights are not authenticated.
        principal_key: Called with what `authenticate` returned; returns a string that stands for
            that principal only, such as an account's id. Principals are compared by it, and by
            `==` without it. Needed with `authenticate` where `config` has `state_keys` or there
            are tasks: sealed states and tasks belong to it. Plain.
        access: Checks the access tokens of clients (OAuth), in the place of `authenticate`. The
            principal is a `sansmcp.auth.AccessToken`; the metadata of the resource is served at its
            well-known path. Each server needs a `ResourceServer` of its own.
        verify_token: Called with an access token, where `access` has no verifier; returns its
            claims, or None if it is not valid. Plain or (on a loop) async.
        sessions: Whether legacy clients have sessions, in this process; or settings for them.
        answers: With `auto`, a response is JSON unless other messages come before it; with `sse`,
            it is always a stream.
        keep_alive: Seconds without output on a stream after which a comment is sent; None: never.
        tool_schema: Returns the `inputSchema` of a tool, to check `Mcp-Param-*` headers. Plain or
            (on a loop) async.
        event_log: Stores the events of sessions outside of this process, by methods that are plain
            or (on a loop) async; None: as `Sessions.event_log` says.
        lookup_timeout: Seconds that each call of `authenticate`, `tool_schema` and the methods of
            `event_log`, and each check of a token, may take, where they are async; then its request
            gets 503. `math.inf`: no limit.
    """

    hosts: Sequence[str] = ()
    origins: Sequence[str] | None = None
    authenticate: AuthenticateT | None = None
    principal_key: PrincipalKey | None = None
    access: ResourceServer | None = None
    verify_token: VerifyToken | None = None
    sessions: bool | Sessions = True
    answers: Literal["auto", "sse"] = "auto"
    keep_alive: float | None = 15.0
    tool_schema: AnyToolSchema | None = None
    event_log: EventStore | None = None
    lookup_timeout: float = DEFAULT_LOOKUP_TIMEOUT

    @property
    def lookups(self) -> LookupOptions:
        """The functions by which things are looked up."""
        return LookupOptions(
            tool_schema=self.tool_schema,
            event_log=self.event_log,
            timeout=self.lookup_timeout,
        )

    @property
    def key_of_principal(self) -> PrincipalKey | None:
        """From a principal to its key."""
        return self.principal_key if self.access is None else token_key

    @property
    def _asks_tool_schema(self) -> bool:
        """Whether the endpoint asks for schemas by events, and does not call the function."""
        return is_async(self.tool_schema)

    def _shared(self, sessions: Sessions | None) -> Sessions | None:
        """Change the settings for sessions where other workers serve them, too."""
        return sessions

    def _task_settings(self) -> Tasks | None:
        """The settings for tasks; None: there are none."""
        return task_settings(self.tasks)

    def new_endpoint(self, **more: Any) -> ServerEndpoint:
        """Make the server's endpoint.

        Args:
            more: Arguments that only some kinds of servers have.

        Raises:
            ValueError: Options contradict each other.
        """
        # Imported here: programs on stdio do not need HTTP.
        from sansmcp.http import ServerEndpoint

        check_principal_key(
            self.config, self.authenticate, self.principal_key, has_tasks=bool(self.tasks)
        )
        check_access(
            self.access,
            self.verify_token,
            authenticate=self.authenticate,
            principal_key=self.principal_key,
        )
        sessions = session_settings(self.sessions, self.revisions)
        check_asks_nothing(sessions)
        check_event_log(self.event_log)
        if self.event_log is not None:
            if sessions is None or not more.get("streams", True):
                raise ValueError("event_log is for streams of sessions, and there are none")
            sessions = attrs.evolve(sessions, event_log="ask")
        tool_schema: Any = "ask" if self._asks_tool_schema else self.tool_schema
        return ServerEndpoint(
            info=self.info,
            capabilities=self.capabilities,
            instructions=self.instructions,
            revisions=self.revisions,
            hosts=self.hosts,
            origins=self.origins,
            sessions=self._shared(sessions),
            answers=self.answers,
            keep_alive=self.keep_alive,
            tool_schema=tool_schema,
            tasks=self._task_settings(),
            config=self.config,
            **more,
        )


@attrs.frozen(kw_only=True)
class LoopHTTPServerOptions(
    HTTPServerOptions[AuthenticateT], Generic[AuthenticateT, ReadyHandlerT]
):
    """The options of a server of many clients on an event loop.

    Args:
        old_paths: The paths for clients of 2024-11-05, beside `path`.
        on_ready: Called with the `Server` of each session when its client is ready; an async
            function runs for as long as the session. Clients without one cause no call.
        drain: Seconds that open requests have to finish when the server ends.
        cluster: Other workers that serve the same sessions: see `sansmcp_io.redis`. With
            `authenticate` it needs `principal_key`; with `access` it needs nothing more. It keeps
            the tasks, too.
        task_store: Keeps tasks outside of this process, by methods that are plain or async; each
            call may take `lookup_timeout` seconds. None: the cluster keeps them, or this process.
    """

    old_paths: OldPaths | None = None
    on_ready: ReadyHandlerT | None = None
    drain: float = DEFAULT_DRAIN
    cluster: Cluster | None = None
    task_store: TaskStore | None = None

    @property
    def lookups(self) -> LookupOptions:
        """The functions by which things are looked up."""
        tasks = self._task_settings()
        return attrs.evolve(
            super().lookups,
            task_store=self.task_store,
            shares_tasks=bool(tasks) and self.cluster is not None and self.task_store is None,
            most_tasks=0 if tasks is None else tasks.max_tasks,
        )

    def _task_settings(self) -> Tasks | None:
        """The settings for tasks, which are kept outside of this process where others serve them.

        Raises:
            ValueError: The store of tasks lacks a method, or there are no tasks.
        """
        if isinstance(self.tasks, Tasks):
            check_own_store(self.tasks)
        tasks = super()._task_settings()
        check_task_store(self.task_store, tasks)
        is_outside = self.task_store is not None or self.cluster is not None
        return tasks if tasks is None or not is_outside else asking(tasks)

    def _shared(self, sessions: Sessions | None) -> Sessions | None:
        """Change the settings for sessions where other workers serve them, too."""
        if self.cluster is None:
            return sessions
        check_cluster(self.authenticate, self.principal_key, self.event_log)
        return cluster_sessions(sessions)

    def new_member(self, host: ClusterHost) -> ClusterMember | None:
        """Make the part in the cluster of the worker that runs an endpoint; None: there is none."""
        if self.cluster is None:
            return None
        sessions = session_settings(self.sessions, self.revisions)
        new_id = new_session_id if sessions is None else sessions.new_id
        principals = None
        if self.access is not None:
            principals = CarriedPrincipals(dump_token, partial(load_token, self.access.resource))
        return self.cluster.new_member(
            host, new_id=new_id, config=self.config, principals=principals
        )

    @property
    def paths_of_old(self) -> tuple[str, ...]:
        """The two URL paths of HTTP+SSE (2024-11-05); () if it is not served."""
        return () if self.old_paths is None else (self.old_paths.stream, self.old_paths.post)


@attrs.frozen
class ListeningServerOptions(
    LoopHTTPServerOptions[Authenticate, ReadyHandlerT], Generic[HandlerT, ReadyHandlerT]
):
    """The options of a server that listens to its clients itself.

    However it ends, open requests have `drain` seconds to finish. Then they are cancelled, and
    streams are ended in the way that tells clients so.

    Args:
        handler: Serves the clients' requests, as for `serve_stdio`.
        host: Where to listen: an address, a name, or None for all addresses. An address that
            other machines can reach needs `hosts`.
        port: The port; 0: any free one, see `HTTPServer.port`.
        path: The path of the endpoint; other paths get 404.
        tls: For HTTPS. Without it, credentials can be read on their way.
        limits: Limits on connections.
        trace: Gets the bytes and events of this side.

    Raises:
        ValueError: Other machines can reach `host`, and `hosts` is empty; or options contradict
            each other.
        OSError: Listening at this address has failed.
        ModuleNotFoundError: The extra `h11` is not installed.
    """

    handler: HandlerT
    host: str | None = "127.0.0.1"
    port: int = 8000
    path: str = attrs.field(default="/mcp", kw_only=True)
    tls: ssl.SSLContext | None = attrs.field(default=None, kw_only=True)
    limits: HTTPLimits | None = attrs.field(default=None, kw_only=True)
    trace: HTTPTrace | None = attrs.field(default=None, kw_only=True)

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths that the server serves."""
        return (self.path, *self.paths_of_old)

    def new_endpoint(self, **more: Any) -> ServerEndpoint:
        """Make the server's endpoint.

        Raises:
            ValueError: Options contradict each other.
            ModuleNotFoundError: The extra `h11` is not installed.
        """
        self.check()
        check_limits(self.limits, HTTPLimits)
        check_extra("h11")
        check_path(self.path)
        if not self.path.isascii():
            raise ValueError(f"the path of an endpoint is ASCII, unlike {self.path!r}")
        return super().new_endpoint(old_paths=self.old_paths, **more)
