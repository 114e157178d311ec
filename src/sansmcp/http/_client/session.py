"""What a client does about the answers of a server: sessions, redirects, refusals, fallbacks.

Source: MCP 2025-11-25, basic/transports; MCP 2026-07-28, basic/transports/streamable-http and
basic/authorization; RFC 9110, sections 11 and 15.4.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ..._connection.events import CancelCause, CloseCause, LimitReached
from ..._connection.handles import Listing, OutgoingRequest, Purpose, Start
from ..._rules.sending import Breach
from ..._rules.state_tables import Phase, StateTrigger
from ..._spec.errors import ErrorCode
from ..._spec.modern_methods import MODERN_REVISION
from ..._wire.values import JSONObject, id_key, is_list, is_object
from .._headers import Headers
from .auth_challenges import read_challenges
from .connection import PostConnection
from .errors import is_modern_error
from .events import AuthorizationRequired, SessionLost
from .exchange import ClientExchange, ExchangePurpose
from .exchange_queue import Ground
from .headers import message_fields
from .post import Post
from .response_head import Head
from .retries import Farewell, Lane
from .streams import Listening, OldStream
from .tool_headers import BadAnnotation, Mirrored, read_annotations
from .urls import resolve

_VISIBLE: Final = re.compile(r"[\x21-\x7e]{1,4096}")
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_REPEATABLE: Final = frozenset({307, 308})
_PERMANENT: Final = 308
_MAX_REDIRECTS: Final = 5
_MAX_CHALLENGED: Final = 5
"""An application that always shows the same would go on for ever, as fast as the server can."""
_MARKED_CHARACTERS: Final = 16_384
"""More of one tool is not remembered: the table lasts as long as the client does."""
_NOT_RUN: Final = frozenset({307, 308, 401, 404})
"""Statuses of requests that a server has not run."""
_LASTING: Final = 10.0
"""Seconds after which a session that is lost has not been lost at once."""
_UNKNOWN_SESSION: Final = (
    "the server does not know the session any more (status %d): it has ended it or was restarted; "
    "or several workers share one address, and each keeps its sessions in its own memory"
)
_NO_SESSION: Final = re.compile(
    r"\bserver (?:is |was )?not initialized\b"
    r"|\b(?:no valid|no such|unknown|invalid|expired)(?: or \w+)? (?:mcp[- ])?session"
    r"(?:[-_ ]?id)?\b(?! +(?!provided\b|given\b|header\b)\w)"
    r"|\bsession(?:[-_ ]?id)?[^\w.;,]{0,8}(?:is |was |has |has been )?(?:not found|not valid|"
    r"not initialized|invalid|unknown|expired|terminated|does not exist|no longer exists)\b",
    re.IGNORECASE,
)
"""How servers say with status 400 that they do not know the session, which 404 is for."""
_OTHER_FAULTS: Final = frozenset(
    {ErrorCode.PARSE_ERROR, ErrorCode.METHOD_NOT_FOUND, ErrorCode.INVALID_PARAMS}
)
_SEARCHED_BYTES: Final = 4_096
_ASKED_FOR: Final = frozenset({Purpose.APPLICATION, Purpose.PING})
_OLD_REVISION: Final = "2024-11-05"
_VERSION_FIELD_SINCE: Final = "2025-06-18"
_ONLY_THEN_OLD: Final = frozenset({400, 404, 405})


def _may_move(call: OutgoingRequest) -> bool:
    """Whether another session can answer a request: a cursor belongs to the one that gave it."""
    subject = call._subject
    return call._purpose in _ASKED_FOR or (isinstance(subject, Listing) and subject._pages == 0)


def _size_of(mirrored: Mirrored) -> int:
    return sum(len(header) + sum(map(len, path)) for header, path in mirrored)


class Conduct(Ground):
    """Judges heads, and knows what the server has said of itself."""

    __slots__ = (
        "_authorize",
        "_connection_settings",
        "_get_stream",
        "_is_useful",
        "_last_revision",
        "_mirrored",
        "_moved",
        "_needs_reopening",
        "_opened_at",
        "_opening",
        "_probe_timeout",
        "_refused_probes",
    )

    _authorize: bool
    _refused_probes: int  # probes whose credentials were refused, so that `initialize` followed
    _get_stream: bool
    _needs_reopening: bool  # a session was lost, and none is being opened
    _last_revision: str | None  # of a session that was lost
    _is_useful: bool  # a request was served since a session was lost, or none was lost yet
    _opened_at: float | None
    _connection_settings: dict[str, Any]
    _moved: dict[Post, None]  # requests of a lost session that wait for the next one
    _mirrored: dict[str, Mirrored]  # parameters by the name of their tool
    _opening: tuple[bytes, float | None]  # `_meta` of the start, and its time
    _probe_timeout: float | None  # of that probe

    def _take(self) -> ClientExchange | None:
        """The next exchange to be given out, with its fields."""
        if not self._has_work():
            return None
        exchange, _ = self._waiting.popitem(last=False)
        self._connection.core.unsent -= len(exchange.body)
        exchange._given_out = True
        exchange._version = self._version
        exchange.headers = self._fields(exchange)
        self._live[exchange] = None
        return exchange

    # --------------------------------------------------------------------------------- fields

    def _fields(self, exchange: ClientExchange) -> Headers:
        """All fields of an exchange, in the order of who says them."""
        lane = exchange._lane
        fields = lane.fields(exchange)
        connection = self._connection
        if isinstance(lane, Post) and lane.is_modern:
            return (*fields, (b"mcp-protocol-version", MODERN_REVISION.encode()), *self._headers)
        revision = connection.core.peer.revision
        if revision is not None and revision >= _VERSION_FIELD_SINCE:
            fields += ((b"mcp-protocol-version", revision.encode()),)
        if self._session is not None:
            fields += ((b"mcp-session-id", self._session),)
        return (*fields, *self._headers)

    def _fields_of(self, method: str, params: JSONObject) -> Headers:
        """What the fields of a modern message say of it."""
        mirrored: Mirrored = ()
        if method == "tools/call":
            name: Any = params.get("name")
            mirrored = self._mirrored.get(name, ()) if isinstance(name, str) else ()
        return message_fields(method, params, mirrored)

    def _learn(self, result: object) -> None:
        """Tools were listed: which parameters go into fields; what breaks their rules goes out."""
        tools: Any = result.get("tools") if is_object(result) else None
        if not is_list(tools):
            return
        good = [tool for tool in tools if self._learn_tool(tool)]
        if len(good) != len(tools):
            tools[:] = good

    def _learn_tool(self, tool: Any) -> bool:
        name: Any = tool.get("name") if is_object(tool) else None
        if not isinstance(name, str):
            return True  # that is another fault
        known = self._mirrored
        known.pop(name, None)
        try:
            mirrored = read_annotations(tool.get("inputSchema"))
        except BadAnnotation as bad:
            text = f"the tool {name[:80]!r} is left out of the list: {bad}"
            self._report(Breach(bad.rule, text))
            return False
        if mirrored:
            if _size_of(mirrored) > _MARKED_CHARACTERS:
                text = f"the tool {name[:80]!r} has too many marked parameters to be remembered"
                self._events.append(LimitReached(rule="OWN-043", text=text))
                return True
            known[name] = mirrored
            if len(known) > self._config.max_tool_schemas:
                oldest = next(iter(known))
                del known[oldest]
                text = f"the marked parameters of the tool {oldest[:80]!r} were forgotten"
                self._events.append(LimitReached(rule="OWN-043", text=text))
        return True

    # ---------------------------------------------------------------------------------- heads

    def _judge_head(self, exchange: ClientExchange, head: Head) -> None:
        status, lane = head.status, exchange._lane
        if lane.over or exchange.purpose is ExchangePurpose.DELETE:
            return  # its answer came elsewhere, and was faster; or whatever it says, we are done
        if isinstance(lane, Post) and lane.former:
            self._judge_former(exchange, lane, head)
        elif status == 404 and self._names_session(exchange) and not self._has_no_stream(exchange):
            self._lose_session(lane, 404)
        elif (status == 401 or (status == 403 and head.challenges)) and not self._is_doubted(
            exchange
        ):
            self._unauthorized(exchange, head)
        elif status in _REDIRECTS:
            self._redirected(exchange, head)
        else:
            self._judge_form(exchange, head)

    def _judge_form(self, exchange: ClientExchange, head: Head) -> None:
        """Whether the body of a response can be read, which the lane then judges."""
        if (coding := head.fields.get("content-encoding", "").lower()) not in ("", "identity"):
            text = f"the body is encoded ({coding[:40]}), which was not asked for"
            self._report(Breach("OWN-042", text))
            exchange._lane.unreadable(head, text)
            exchange._abort()
        else:
            exchange._lane.head(exchange, head)

    def _judge_former(self, exchange: ClientExchange, post: Post, head: Head) -> None:
        """The response to a request that was under way when its session was lost.

        A status that refuses it before it was run has it sent in the next session, once. Everything
        else is the answer, from a server that has run it after all.
        """
        if head.status not in _NOT_RUN:
            self._judge_form(exchange, head)
            return
        exchange._abort()
        if post.moved:
            post.lost(_UNKNOWN_SESSION % head.status)
        elif self._connection.core.conversation.phase is Phase.OPERATING:
            self._move(post)
        else:
            post.former = False
            post.not_run = True
            self._moved[post] = None

    def _names_session(self, exchange: ClientExchange) -> bool:
        return self._session is not None and any(
            name == b"mcp-session-id" for name, _ in exchange.headers
        )

    def _has_no_stream(self, exchange: ClientExchange) -> bool:
        """Whether a GET in a session that is new, again, is what the server does not know.

        Servers that give no stream are to say 405. Some do not, and would lose session after
        session: the next POST will tell.
        """
        return exchange.purpose is ExchangePurpose.GET and not self._has_lasted()

    def _is_doubted(self, exchange: ClientExchange) -> bool:
        """Whether `initialize` follows a probe whose credentials were refused.

        Servers from before 2026-07-28 may refuse any request that is not `initialize` and names no
        session like this. If `initialize` is refused, too, authorization is asked for, and then it
        begins again with the probe.
        """
        lane = exchange._lane
        call = lane.call if isinstance(lane, Post) else None
        if (
            call is None
            or call._purpose is not Purpose.DISCOVER
            or not self._connection.falls_back(401, None)
            or exchange._version != self._version
            or len(self._headers) == 1  # only `accept-encoding`: the caller gave no credentials
        ):
            return False
        self._refused_probes += 1
        self._probe_timeout = call._timeout
        return True

    def _unauthorized(self, exchange: ClientExchange, head: Head) -> None:
        lane = exchange._lane
        if exchange._version != self._version:
            lane.send()  # it was under way with fields that have been replaced since
            return
        text = f"the server wants authorization (status {head.status})"
        # Each time that a start has come back to the probe, there is another lane.
        lane.challenged = max(lane.challenged + 1, self._refused_probes)
        kept = (
            self._authorize
            and lane.challenged <= _MAX_CHALLENGED
            and len(self._kept) < self._config.max_requests
        )
        challenges = read_challenges(head.challenges)
        event = AuthorizationRequired(
            status=head.status, challenges=challenges, request=lane.request, kept=kept
        )
        self._events.append(event)
        if kept:
            lane.exchange = None
            self._kept[lane] = event
            lane.kept()
        else:
            lane.give_up(head.status, text)

    def _redirected(self, exchange: ClientExchange, head: Head) -> None:
        lane = exchange._lane
        lane.redirects += 1
        said = f"status {head.status}"
        try:
            url = resolve(exchange._url, head.fields.get("location", ""))
        except ValueError as error:
            self._refuse_redirect(exchange, head, f"{said} leads nowhere: {error}")
            return
        if url.origin != exchange._url.origin:
            other = f"{url.origin.scheme}://{url.authority}"
            self._refuse_redirect(exchange, head, f"{said} leads to another origin, {other}")
        elif exchange.method != "GET" and head.status not in _REPEATABLE:
            self._refuse_redirect(exchange, head, f"{said} would turn {exchange.method} into GET")
        elif lane.redirects > _MAX_REDIRECTS:
            self._refuse_redirect(exchange, head, f"{lane.redirects} redirects in a row")
        else:
            lane.url = url
            if head.status == _PERMANENT and exchange._url is self._url:
                self._url = url
            lane.send()

    def _refuse_redirect(self, exchange: ClientExchange, head: Head, text: str) -> None:
        self._report(Breach("OWN-040", text))
        exchange._lane.give_up(head.status, text)

    # ------------------------------------------------------------------------------- sessions

    def _opened(self) -> None:
        """The handshake is done."""
        self._opened_at = self._connection.core.now
        self._refused_probes = 0
        if self._get_stream and self._post_url is None:
            self._listening = Listening(self._whole())
            self._listening.send()
        self._connection.ended_by = ""
        moved, self._moved = self._moved, {}
        for post in moved:
            self._move(post)

    @staticmethod
    def _move(post: Post) -> None:
        """Send a request of a lost session in this one."""
        post.former = post.not_run = False
        post.moved = True
        post.send()

    def _keep_session(self, head: Head) -> None:
        """The server has answered initialize, and may have named the session."""
        session = head.fields.get("mcp-session-id")
        self._session = None
        if session is None:
            return
        if _VISIBLE.fullmatch(session):
            self._session = session.encode()
        else:
            self._report(Breach("SESS-003", "the session id is not visible ASCII, or endless"))

    def _is_of_session(
        self, status: int, error: JSONObject | None, body: bytes, call: OutgoingRequest | None
    ) -> bool:
        """Whether status 400 says that the server does not know the session.

        Some servers send it in place of 404. Only the text of the body tells. An error that has
        the id of the request is the answer to the request, whatever its text is.
        """
        session = self._session
        if status != 400 or session is None:
            return False
        if error is None:
            text = body[:_SEARCHED_BYTES].decode("utf-8", "replace")
        else:
            said: Any = error["error"]
            if said["code"] in _OTHER_FAULTS:
                return False
            if call is not None and id_key(error.get("id")) == call._id:
                return False
            text = said["message"][:_SEARCHED_BYTES]
        return _NO_SESSION.search(text.replace(session.decode(), "")) is not None

    def _lose_session(self, lane: Lane, status: int) -> None:
        """The server does not know the session any more: open another one, once.

        Requests that the server has not run are sent in the new session: the one that it has
        refused with 404, those that wait for authorization, and those that were not sent yet.
        Another status than 404 does not say for sure that the refused request was not run: it is
        sent again only if it has the same effect twice. The same holds for a request that is under
        way without any response; if it has not the same effect twice, its response decides.
        """
        old = self._connection
        old.ended_by = _UNKNOWN_SESSION % status
        self._session = None
        undecided = self._undecided()
        posts = self._never_run(lane, undecided, is_certain=status == 404)
        if old.core.conversation.phase is not Phase.OPERATING or not (posts or self._has_lasted()):
            old.core.end(StateTrigger.CLOSE, CloseCause.SESSION_LOST, CancelCause.FAILED)
            return
        self._is_useful = False
        for post in posts:
            self._kept.pop(post, None)
            if post.exchange is not None:  # else it is over, or was kept
                post.exchange._abort()
            is_certain = status == 404 or post is not lane
            post.not_run = is_certain and post not in undecided and not post.repeated
        former = {post: None for post in undecided if not post.may_repeat}
        for post in former:
            post.former = True
        self._drop_all(but=former)
        self._replace(old).take_over(old, [*posts, *former])
        self._moved = dict.fromkeys(posts)
        self._events.append(SessionLost(start=self._open_again()))
        old.forsake()

    def _replace(self, old: PostConnection) -> PostConnection:
        """Have another connection go on, which knows what has ended the session of this one."""
        self._connection = connection = PostConnection(self._whole(), **self._connection_settings)
        connection.ended_by = old.ended_by
        if old.core.now is not None:
            connection.core.tell(old.core.now)
        self._last_revision = old.core.peer.revision or self._last_revision
        return connection

    def _open_again(self) -> Start:
        """Open a session as the first one was."""
        encoded, timeout = self._opening
        meta: Any = self._config.codec.decode(encoded) if encoded else None
        # The revision of before says that there is a handshake, and nothing to be found out.
        start = self._connection.machine.discovery.start(
            meta, timeout, None, self._last_revision, None, None
        )
        self._needs_reopening = False
        return start

    def _keep_for_reopening(self, old: PostConnection) -> bool:
        """Keep the conversation without a session, until `reopen` opens one.

        Returns:
            Whether that is possible: only if a session was open once. Otherwise nothing is changed.
        """
        if self._last_revision is None and old.core.peer.revision is None:
            return False
        self._session = None
        self._drop_all()
        self._replace(old).take_over(old, ())
        self._needs_reopening = True
        self._events.append(SessionLost(start=None))
        old.forsake()
        return True

    def _undecided(self) -> list[Post]:
        """The requests under way to which no response has come, so that they may have been run."""
        lanes = [exchange._lane for exchange in self._live if exchange._is_undecided]
        return [
            lane
            for lane in lanes
            if isinstance(lane, Post) and lane.call is not None and _may_move(lane.call)
        ]

    def _never_run(self, refused: Lane, undecided: list[Post], *, is_certain: bool) -> list[Post]:
        """The requests that go on in the next session, but for those moved before."""
        lanes: list[Lane] = [post for post in undecided if post.may_repeat]
        lanes += self._kept
        lanes += [exchange._lane for exchange in self._waiting]
        if is_certain or refused.may_repeat:
            lanes.insert(0, refused)
        return [
            lane
            for lane in lanes
            if isinstance(lane, Post)
            and lane.call is not None
            and _may_move(lane.call)
            and not lane.last_event_id  # else it has run, and its answer is elsewhere
            and not lane.moved
        ]

    def _has_lasted(self) -> bool:
        """Whether the session was of use, so that another one may be, too.

        One that nobody asks anything in is to live through any number of restarts of its server.
        """
        now, opened_at = self._connection.core.now, self._opened_at
        return self._is_useful or (
            now is not None and opened_at is not None and now >= opened_at + _LASTING
        )

    def _finish(self) -> None:
        """The connection is over: nothing is sent any more, but that the session is over, too."""
        self._drop_all()
        session, self._session = self._session, None
        if session is not None:
            Farewell(self._whole(), session).send()

    # ------------------------------------------------------------------------------- HTTP+SSE

    def _may_be_old(self, status: int, error: JSONObject | None) -> bool:
        """Whether a refusal of initialize may come from a server of HTTP+SSE."""
        connection = self._connection
        if self._post_url is not None or _OLD_REVISION not in connection.core.legacy_revisions:
            return False
        if is_modern_error(error):
            return False
        newest = connection.core.revisions[-1]
        if newest in ("2025-03-26", "2025-06-18"):
            return 400 <= status < 500  # which said so
        return status in _ONLY_THEN_OLD

    def _open_old(self, post: Post) -> None:
        OldStream(self._whole(), post).send()

    def _whole(self) -> Any:
        """`self`, typed as the concrete endpoint class."""
        return self
