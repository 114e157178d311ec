"""One HTTP request and its response: what comes in is judged here, step by step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, final

from ..._connection.events import LimitReached
from ..._connection.request_state import check_principal_key
from ..._rules.sending import Breach
from ..._spec.errors import ErrorCode, LocalProtocolError
from ..._wire.setting_checks import check_clock
from ..._wire.values import RequestId
from .._headers import NO_FIELDS, Fields, Headers, Text, pairs_of, text_of
from .events import MessageUndelivered
from .held_memory import SMALL_BODY
from .methods import receive_delete, receive_get, receive_options
from .negotiation import Accepted
from .output import Output, plain_response
from .post import receive_post

if TYPE_CHECKING:
    from .endpoint import ServerEndpoint
    from .reply import Reply
    from .streams import Stream

CLOSING: Final = Breach("OWN-021", "the server is closing", ErrorCode.INTERNAL_ERROR)
"""Why nothing is served any more. The request is not to blame for it."""
_NAME: Final = re.compile(rb"[-!#$%&'*+.^_`|~0-9a-z]+")
_CONTROLS: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_RETRY_AFTER: Final[Headers] = ((b"retry-after", b"5"),)
_OURS: Final = frozenset({b"content-length", b"content-type", b"transfer-encoding"})
"""Fields that say what the body is: they are written with it."""


@final
class ServerExchange(Output):
    """One HTTP request that an endpoint serves; made by `ServerEndpoint.exchange`.

    Bytes of the request's body go in; head, body and end of the response come out. The methods
    `receive_*` never raise for what the peer did.

    Attributes:
        principal: Who sent the request, as `exchange()` was told. It may be set until the body is
            complete (`receive_end`), and counts from then on.
        principal_key: A string that stands for the principal, in the same way.
        context: What else it was told.
        is_stream: Whether the response is an event stream.
    """

    __slots__ = (
        "_accepted",
        "_body",
        "_deadline",
        "_fields",
        "_is_complete",
        "_json_first",
        "_method",
        "_route",
        "_target",
        "context",
        "principal",
        "principal_key",
    )

    _accepted: Accepted  # which the head says
    _json_first: bool  # where nothing comes before the answer, it is one object
    _deadline: float | None  # for the next sign of life, where it is a stream

    def __init__(
        self,
        endpoint: ServerEndpoint,
        method: Text,
        target: Text,
        fields: Fields,
        principal: Any,
        principal_key: str | None,
        context: Any,
    ) -> None:
        self._endpoint = endpoint
        self._ledger = None
        self._status = 0
        self._taken = 0
        self._pieces = []
        self._behind = None
        self._over = False
        self._whole = None
        self.is_stream = False
        self.principal: Any = principal
        self.principal_key: str | None = principal_key
        self.context: Any = context
        self._method = text_of(method)
        self._target = target
        self._fields = fields
        self._body: bytes | bytearray | None = b""  # None: what comes is of no use any more
        self._is_complete = False
        self._route: Stream | Reply | None = None

    # -------------------------------------------------------------------- from the transport

    def receive_data(
        self, data: bytes | bytearray | memoryview, *, now: float | None = None
    ) -> None:
        """Take the next bytes of the request's body, cut anywhere.

        Args:
            data: Any number of bytes. Those of a request that was refused are not kept.
            now: The caller's clock in seconds.
        """
        endpoint = self._endpoint
        if now is not None:
            endpoint._tell(now)
        body, limit = self._body, endpoint._config.max_message_bytes
        if body is None:
            return
        size = len(body) + len(data)
        if size > limit:
            self._refuse(413, Breach("OWN-001", f"the body is longer than {limit} bytes"))
            endpoint._settle()
            return
        if size > SMALL_BODY:
            longest = endpoint._held.body_has(self, size)
            for exchange in longest:
                exchange._refuse_for_memory()
            if longest:
                endpoint._settle()
                if self._body is None:
                    return
        if not body:
            self._body = bytes(data)  # most bodies come in one piece
        elif isinstance(body, bytearray):
            body += data
        else:
            self._body = bytearray(body) + data

    def receive_end(self, *, at: float | None = None, now: float | None = None) -> None:
        """The body is complete. Call it for every request, also for one without a body.

        Args:
            at: The time in Unix seconds. Where it is told and `Config.state_keys` are set, the
                seal of a state is checked before the request is delivered.
            now: The caller's clock in seconds.

        Raises:
            LocalProtocolError: There are a principal and `Config.state_keys`, and no
                `principal_key`. The request was answered with 500.
        """
        endpoint = self._endpoint
        if at is not None:
            check_clock("at", at)
        if now is not None:
            endpoint._tell(now)
        body = self._body
        if body is None:
            return
        self._drop_body()
        self._is_complete = True
        if endpoint._closing:
            self._refuse(503, CLOSING)
        elif self._method == "POST":
            self._check_principal_key()
            endpoint._at = at
            receive_post(self, body)
        elif self._method == "GET":
            receive_get(self)
        elif self._method == "DELETE":
            receive_delete(self)
        else:
            receive_options(self)
        self._fields = NO_FIELDS  # the response may be open for long
        if endpoint._wake is not None:
            endpoint._settle()

    def _check_principal_key(self) -> None:
        endpoint = self._endpoint
        try:
            check_principal_key(self.principal, self.principal_key, endpoint._config)
        except LocalProtocolError:
            text = "the server is not set up to seal the state of this user"
            self._answer(500, endpoint._error_body(text, ErrorCode.INTERNAL_ERROR))
            endpoint._settle()
            raise

    def receive_disconnect(self, *, now: float | None = None) -> None:
        """The client is gone, before the response was over.

        In 2026-07-28 that cancels the request. Before, it does not: the client may come back for
        the rest of a stream, if there is an event log. Spare calls do nothing.
        """
        endpoint = self._endpoint
        if now is not None:
            endpoint._tell(now)
        self._drop_body()
        route = self._route
        if route is not None and route.over and not self.is_stream:
            if self._pieces:  # the answer was made, and never taken
                session = route._connection.core.peer.session
                endpoint._events.append(MessageUndelivered(session=session, is_answer=True))
            route = None
        self._close()
        if route is None:
            self._drop()
        else:
            route.drop()
        self._taken = 2
        endpoint._ready.pop(self, None)
        if route is not None:
            endpoint._disconnected(route)
        endpoint._settle()

    def refuse(
        self,
        status: int,
        text: str,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        *,
        now: float | None = None,
    ) -> bool:
        """Answer for the transport, which has found that this request must not be served.

        That is how a client is told to say who it is: 401 or 403, with `WWW-Authenticate`.

        Args:
            status: From 400 to 599. From 500 on the JSON-RPC error in the body is -32603, since
                the fault is ours; below it is -32600.
            text: One sentence for the client.
            headers: Fields beside those that every response has: a mapping, or pairs.
            now: The caller's clock in seconds.

        Returns:
            Whether it was done. False: the request is answered, or being served, already.

        Raises:
            ValueError: The status is none of an error, a field is about the body, or it holds what
                none may.
        """
        more = tuple(
            (name.lower().encode("ascii"), value.encode("latin-1"))
            for name, value in pairs_of(headers)
        )
        if not 400 <= status <= 599 or any(
            not _NAME.fullmatch(name) or name in _OURS or _CONTROLS.search(value)
            for name, value in more
        ):
            raise ValueError(f"no response can have status {status} and the fields {more!r}")
        endpoint = self._endpoint
        if now is not None:
            endpoint._tell(now)
        if self._over or self._is_complete:
            return False
        self._drop_body()
        code = ErrorCode.INVALID_REQUEST if status < 500 else ErrorCode.INTERNAL_ERROR
        self._answer(status, endpoint._error_body(text, code), more)
        endpoint._settle()
        return True

    def refusal(self, status: int, text: str) -> tuple[int, Headers, bytes]:
        """The response to send where this exchange cannot be carried on: as that of an endpoint.

        For a body that cannot be read, or takes too long. It changes nothing: tell the exchange by
        `receive_disconnect`.
        """
        return plain_response(status, text, self._common)

    # ------------------------------------------------------------------------------- looking

    @property
    def needs_principal(self) -> bool:
        """Whether it matters who sends this: to be found out before the body is complete.

        It does not where the head is refused, and not for preflights of CORS, with which no
        browser sends credentials (Fetch standard, CORS protocol and credentials).
        """
        return not self._over and self._method != "OPTIONS"

    @property
    def refused(self) -> bool:
        """Whether the response is there before the body came: there is no need to read it."""
        return self._over and not self._is_complete

    @property
    def ended(self) -> bool:
        """Whether the response is over: nothing is added to it, or nobody is there to read it."""
        return self._over

    @property
    def held_bytes(self) -> int:
        """Bytes that wait here: of a body that is not complete, and of output not yet taken."""
        return sum(map(len, self._pieces)) + len(self._body or b"")

    @property
    def has_output(self) -> bool:
        """Whether `next_output` has something now."""
        if self._taken == 0:
            return self._status != 0
        return bool(self._pieces) or self._behind is not None or (self._over and self._taken == 1)

    @property
    def method(self) -> str:
        """The method of the request."""
        return self._method

    @property
    def path(self) -> str:
        """The target of the request, without its query."""
        return text_of(self._target).partition("?")[0]

    @property
    def _query(self) -> str:
        return text_of(self._target).partition("?")[2]

    # -------------------------------------------------------------------------- for the routes

    @property
    def _takes_stream(self) -> bool:
        return (self.is_stream or self._accepted.stream) and not self._over

    def _start_stream(self) -> None:
        self._begin_stream()
        self._deadline = None
        self._endpoint._keep_alive(self)

    def _end(self, status: int = 200, id: RequestId | None = None) -> None:
        """No message follows. Where none came either, an empty stream says so, or a status."""
        if self._status == 0:
            if status >= 400:
                text = "the server has ended the conversation before the request was answered"
                body = self._endpoint._error_body(text, ErrorCode.INTERNAL_ERROR, id)
                self._answer(status, body)
            elif self._accepted.stream:
                self._start_stream()
            else:
                self._answer(204, b"")
        self._close()
        self._endpoint._ready[self] = None

    def _close(self) -> None:
        self._over = True
        self._route = None
        if self.is_stream:
            self._endpoint._timers.drop(self)

    # ---------------------------------------------------------------------------- refusing

    def _refuse(
        self,
        status: int,
        breach: Breach,
        id: RequestId | None = None,
        *,
        more: Headers = (),
        excerpt: bytes | None = None,
    ) -> None:
        """Answer with an error of our own, and report why."""
        self._drop_body()
        self._endpoint._report(breach, excerpt)
        body = self._endpoint._error_body(breach.text, breach.code, id, breach.data)
        self._answer(status, body, more)

    def _refuse_for_memory(
        self, id: RequestId | None = None, why: str | None = None, limit: int | None = None
    ) -> None:
        """All requests together hold too much, or what is named instead."""
        endpoint = self._endpoint
        held = endpoint._held
        why = why or f"requests hold {held.bytes} bytes"
        text = f"{why}, and the limit is {held.limit if limit is None else limit}"
        endpoint._events.append(LimitReached(rule="OWN-053", text=text))
        self._drop_body()
        text = "the server has too much to hold: try again later"
        body = endpoint._error_body(text, ErrorCode.INTERNAL_ERROR, id)
        self._answer(503, body, _RETRY_AFTER)

    def _drop_body(self) -> None:
        """Nothing more of it is taken."""
        body, self._body = self._body, None
        if body is not None and len(body) > SMALL_BODY:
            self._endpoint._held.body_is_over(self)
