"""The session of a client: how it is opened, lost, reopened, and ended.

If the session becomes unknown to the server, another one with another transport replaces it.
Requests that the server has certainly not run move into it.

Source: MCP 2025-11-25, basic/transports, Session Management.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..._connection.events import CancelCause, CloseCause
from ..._connection.handles import (
    Listing,
    OutgoingRequest,
    Purpose,
    Start,
    meta_of,
    purpose_of,
    subject_of,
)
from ..._connection.tasks.board import TaskBoard
from ..._rules.sending import Breach
from ..._rules.state_tables import Phase, StateTrigger
from ..._spec.errors import ErrorCode
from ..._wire.values import JSONObject, id_key
from .._headers import Headers
from .authorization import Authorization
from .core import ClientEndpointCore
from .events import SessionLost
from .exchange import ClientExchangeCore, ExchangeOwner, ExchangePurpose, ExchangeQueue
from .post import PostedMessage
from .post_transport import PostTransport
from .response_head import Head
from .streams import StandaloneStream
from .tool_headers import ToolHeaders

if TYPE_CHECKING:
    from ..._connection.caching.cache import CacheIdentity

_VISIBLE: Final = re.compile(r"[\x21-\x7e]{1,4096}")
_LASTING: Final = 10.0
"""Seconds after which a lost session counts as useful, even if no request was served in it."""
_UNKNOWN_SESSION: Final = (
    "the server does not know the session any more (status %d): it has ended it, or the process "
    "that kept it was restarted or has died; if this happens again and again, several workers may "
    "share one address, and each know only the sessions that it has opened"
)
_NO_SESSION: Final = re.compile(
    r"\bserver (?:is |was )?not initialized\b"
    r"|\b(?:no valid|no such|unknown|invalid|expired)(?: or \w+)? (?:mcp[- ])?session"
    r"(?:[-_ ]?id)?\b(?! +(?!provided\b|given\b|header\b)\w)"
    r"|\bsession(?:[-_ ]?id)?[^\w.;,]{0,8}(?:is |was |has |has been )?(?:not found|not valid|"
    r"not initialized|invalid|unknown|expired|terminated|does not exist|no longer exists)\b",
    re.IGNORECASE,
)
"""Texts with which servers say, with status 400 instead of 404, that the session is unknown."""
_OTHER_ERRORS: Final = frozenset(
    {ErrorCode.PARSE_ERROR, ErrorCode.METHOD_NOT_FOUND, ErrorCode.INVALID_PARAMS}
)
_SEARCHED_BYTES: Final = 4_096
_INITIALIZE: Final = Purpose.INITIALIZE  # looking a member up in its enum takes time
_MOVABLE: Final = frozenset({Purpose.APPLICATION, Purpose.PING})


def _may_move(call: OutgoingRequest) -> bool:
    """Whether another session can answer a request: a cursor is of use in its own session only.

    Keeps PAGE-006.
    """
    subject = subject_of(call)
    return purpose_of(call) in _MOVABLE or (isinstance(subject, Listing) and subject.pages == 0)


@attrs.define(eq=False, repr=False)
class SessionDelete(ExchangeOwner):
    """The DELETE that tells the server of the end of a session. Nothing depends on it.

    Keeps SESS-010.
    """

    _session_id: bytes

    def send(self) -> None:
        url = self.url or self.queue.core.url
        self.queue.add(ClientExchangeCore(self, self.queue, "DELETE", url, ExchangePurpose.DELETE))

    def fields(self, exchange: ClientExchangeCore) -> Headers:
        return ((b"mcp-session-id", self._session_id),)

    def broken(self, exchange: ClientExchangeCore, text: str) -> None:
        self.over = True


class ClientSession:
    """The session of an endpoint, and the transport that it takes place on.

    Attributes:
        transport: The transport of the current session. In the modern revision, which has no
            sessions, it stays the same.
        needs_reopening: A session was lost, and no other one is being opened.
    """

    __slots__ = (
        "_authorization",
        "_core",
        "_get_stream",
        "_is_useful",
        "_last_revision",
        "_meta",
        "_opened_at",
        "_queue",
        "_settings",
        "_tasks",
        "_timeout",
        "_tool_headers",
        "needs_reopening",
        "transport",
    )

    def __init__(
        self,
        core: ClientEndpointCore,
        queue: ExchangeQueue,
        tool_headers: ToolHeaders,
        authorization: Authorization,
        *,
        info: JSONObject,
        capabilities: JSONObject | None,
        revisions: Sequence[str],
        requires: Iterable[str],
        get_stream: bool,
        cache: CacheIdentity | None = None,
        tasks: TaskBoard | None = None,
    ) -> None:
        self._core = core
        self._queue = queue
        self._tool_headers = tool_headers
        self._authorization = authorization
        self._get_stream = get_stream
        self._tasks = tasks  # of the server on this side: they outlive a session that is lost
        self._settings: dict[str, Any] = {
            "revisions": revisions,
            "requires": requires,
            "config": core.config,
            "info": info,
            "capabilities": capabilities,
            "cache": cache,
            "tasks": tasks,
        }
        self.transport: PostTransport = self._connect()
        # These never change; the caller's objects may, or can be read once only.
        own = self.transport.core
        self._settings["revisions"] = own.revisions
        self._settings["info"] = own.codec.decode(own.info)
        self._settings["capabilities"] = own.capabilities
        self.needs_reopening: bool = False
        self._is_useful = True  # a request was served since a session was lost, or none was lost
        self._last_revision: str | None = None  # of a session that was lost
        self._opened_at: float | None = None
        self._meta = b""  # of the start
        self._timeout: float | None = None  # of the start

    def _connect(self) -> PostTransport:
        transport = PostTransport(self._queue, self._tool_headers, self, **self._settings)
        self._core.machine = transport.machine
        return transport

    # -------------------------------------------------------------------------------- opening

    def start(
        self,
        meta: JSONObject | None,
        timeout: float | None,
        probe_timeout: float | None,
        hint: str | None,
        data: Any,
        now: float | None,
    ) -> Start:
        """Open the conversation, and remember how, for the sessions that follow a lost one."""
        discovery = self._core.machine.discovery
        start = discovery.start(meta, timeout, probe_timeout, hint, data, now)
        self._meta, self._timeout = meta_of(start), timeout
        return start

    def reopen(self) -> Start:
        """Open a session as the first one was opened."""
        meta: Any = self._core.config.codec.decode(self._meta) if self._meta else None
        # The revision of the last session says that there is a handshake, and nothing to probe.
        start = self._core.machine.discovery.start(
            meta, self._timeout, None, self._last_revision, None, None
        )
        self.needs_reopening = False
        return start

    def answered(self, post: PostedMessage, head: Head) -> None:
        """Take the head of a good response to a request that was POSTed."""
        call = post.call
        if call is None or self._core.old_post_url is not None:
            return
        if purpose_of(call) is _INITIALIZE:
            self._take_id(head)
        elif not post.is_modern and not post.former:
            self._is_useful = True

    def _take_id(self, head: Head) -> None:
        """Take the session id from the response to `initialize`, if the server gives one."""
        session_id = head.fields.get("mcp-session-id")
        self._core.session_id = None
        if session_id is None:
            return
        if _VISIBLE.fullmatch(session_id):
            self._core.session_id = session_id.encode()
        else:
            text = "the session id is not visible ASCII, or endless"
            self._core.report(Breach("SESS-003", text))

    def was_refused(self) -> None:
        """Forget the session id of a response that refuses `initialize`."""
        self._core.session_id = None

    def opened(self) -> None:
        """Open the standalone stream, and send the requests that moved from a lost session."""
        queue = self._queue
        self._opened_at = self._core.now
        self._authorization.session_opened()
        if self._get_stream and self._core.old_post_url is None:
            queue.standalone = StandaloneStream(queue, self.transport.responses)
            queue.standalone.send()
        moved, queue.moved = queue.moved, {}
        for post in moved:
            assert isinstance(post, PostedMessage)  # nothing else moves
            self._move(post)

    @staticmethod
    def _move(post: PostedMessage) -> None:
        """Send a request of a lost session in this one."""
        post.former = post.not_run = False
        post.moved = True
        post.send()

    # ---------------------------------------------------------------------------------- losing

    def is_named_by(self, exchange: ClientExchangeCore) -> bool:
        """Whether an exchange was sent in a session, while there is one."""
        return self._core.session_id is not None and any(
            name == b"mcp-session-id" for name, _ in exchange.headers
        )

    def is_unknown(
        self, status: int, error: JSONObject | None, body: bytes, call: OutgoingRequest | None
    ) -> bool:
        """Whether a refusal with status 400 says that the server does not know the session.

        Some servers send 400 instead of 404, and only the text of the body shows it. An error with
        the id of the request is the response to the request, whatever its text is.
        """
        session_id = self._core.session_id
        if status != 400 or session_id is None:
            return False
        if error is None:
            text = body[:_SEARCHED_BYTES].decode("utf-8", "replace")
        else:
            said: Any = error["error"]
            if said["code"] in _OTHER_ERRORS:
                return False
            if call is not None and id_key(error.get("id")) == call.id:
                return False
            text = said["message"][:_SEARCHED_BYTES]
        return _NO_SESSION.search(text.replace(session_id.decode(), "")) is not None

    def has_lasted(self) -> bool:
        """Whether the session was useful, so that opening another one makes sense.

        An idle session may be reopened any number of times: only sessions that end before a request
        was served, and soon, count as failures.
        """
        now, opened_at = self._core.now, self._opened_at
        return self._is_useful or (
            now is not None and opened_at is not None and now >= opened_at + _LASTING
        )

    def lose(self, refused: ExchangeOwner, status: int) -> None:
        """Open another session, once, since this one is unknown to the server.

        Requests that the server has not run are sent in the new session: the one that it has
        refused with 404, those that wait for authorization, and those that were not sent yet.
        With another status than 404 the server may have run the refused request: it is sent again
        only if that changes nothing. The same holds for a request that is under way without any
        response; if sending it again may change something, its response decides.

        Keeps SESS-009.
        """
        old, queue = self.transport, self._queue
        old.ended_by = _UNKNOWN_SESSION % status
        self._core.session_id = None
        undecided = self._undecided()
        posts = self._never_run(refused, undecided, is_certain=status == 404)
        if old.core.conversation.phase is not Phase.OPERATING or not (posts or self.has_lasted()):
            old.core.end(StateTrigger.CLOSE, CloseCause.SESSION_LOST, CancelCause.FAILED)
            return
        self._is_useful = False
        for post in posts:
            queue.held.pop(post, None)
            if post.exchange is not None:  # else it is over, or was held
                post.exchange.abort()
            is_certain = status == 404 or post is not refused
            post.not_run = is_certain and post not in undecided and not post.repeated
        former = {post: None for post in undecided if not post.may_repeat}
        for post in former:
            post.former = True
        queue.drop_all(but=former)
        self._replace(old).take_over(old, [*posts, *former])
        for post in posts:
            if post.held_since is not None and post.call is not None:
                self._authorization.resume_timeout(post, post.call)
        queue.moved = dict.fromkeys(posts)
        self._core.events.append(SessionLost(start=self.reopen()))
        old.forsake()

    def _undecided(self) -> list[PostedMessage]:
        """Return the requests to which no response has come, so that they may have been run."""
        return [
            owner
            for owner in self._queue.undecided()
            if isinstance(owner, PostedMessage) and owner.call is not None and _may_move(owner.call)
        ]

    def _never_run(
        self, refused: ExchangeOwner, undecided: list[PostedMessage], *, is_certain: bool
    ) -> list[PostedMessage]:
        """Return the requests to send in the next session, except those that moved before."""
        owners: list[ExchangeOwner] = [post for post in undecided if post.may_repeat]
        owners += self._queue.held
        owners += self._queue.unsent()
        if is_certain or refused.may_repeat:
            owners.insert(0, refused)
        return [
            owner
            for owner in owners
            if isinstance(owner, PostedMessage)
            and owner.call is not None
            and _may_move(owner.call)
            and not owner.last_event_id  # else the server has run it, and the stream is resumed
            and not owner.moved
        ]

    def take_refusal(self, post: PostedMessage, status: int) -> None:
        """Take a refusal of a request that was sent in a lost session.

        The server has not run it: it is sent in the next session, unless it moved before.
        """
        if post.moved:
            post.lost(_UNKNOWN_SESSION % status)
        elif self.transport.core.conversation.phase is Phase.OPERATING:
            self._move(post)
        else:
            post.former = False
            post.not_run = True
            self._queue.moved[post] = None

    def _replace(self, old: PostTransport) -> PostTransport:
        """Go on with another transport, and tell it why the session of this one has ended."""
        self.transport = transport = self._connect()
        transport.ended_by = old.ended_by
        if old.core.now is not None:
            transport.core.tell(old.core.now)
        self._last_revision = old.core.peer.revision or self._last_revision
        return transport

    # --------------------------------------------------------------------------------- ending

    def keeps(self, transport: PostTransport) -> bool:
        """Keep the conversation without a session, until `reopen` opens one.

        Returns:
            Whether that is possible: only if a session was open once. Otherwise nothing is changed.
        """
        if self._last_revision is None and transport.core.peer.revision is None:
            return False
        self._core.session_id = None
        self._queue.drop_all()
        self._replace(transport).take_over(transport, ())
        self.needs_reopening = True
        self._core.events.append(SessionLost(start=None))
        transport.forsake()
        return True

    def finish(self) -> None:
        """Send nothing any more, except cancellations of tasks and the DELETE of the session."""
        if self._tasks is not None:
            self._tasks.close()
        self._queue.drop_all(but=self._queue.ends_of_tasks())
        session_id, self._core.session_id = self._core.session_id, None
        if session_id is not None:
            SessionDelete(self._queue, session_id).send()
