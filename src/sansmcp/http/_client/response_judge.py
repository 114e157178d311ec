"""What the status of a response means: redirects, refusals, lost sessions, and fallbacks.

Source: MCP 2025-11-25, basic/transports; MCP 2026-07-28, basic/transports/streamable-http and
basic/authorization; RFC 9110, sections 11 and 15.4.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from ..._connection.events import ErrorReceived, FailureCause
from ..._connection.handles import OutgoingRequest, Purpose, purpose_of
from ..._rules.sending import Breach
from ..._wire.values import JSONObject, id_key
from .authorization import Authorization
from .core import ClientEndpointCore
from .events import MessageRefused
from .exchange import ClientExchangeCore, ExchangePurpose, ExchangeQueue
from .old_transport import OldStream, may_be_old
from .post import PostedMessage
from .response_head import Head
from .responses import error_in, is_modern_error, says_little
from .session import ClientSession
from .urls import resolve

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_REPEATABLE: Final = frozenset({307, 308})
"""Redirects that keep the method and the body."""
_PERMANENT: Final = 308
_MAX_REDIRECTS: Final = 5
_DELETE: Final = ExchangePurpose.DELETE  # looking a member up in its enum takes time
_RESUME: Final = ExchangePurpose.RESUME
_NOT_RUN: Final = frozenset({307, 308, 401, 404})
"""Statuses of requests that a server has not run."""


@attrs.define(eq=False, repr=False)
class ResponseJudge:
    """Decides what the status of a response means, and which part handles it."""

    _core: ClientEndpointCore
    _queue: ExchangeQueue
    _session: ClientSession
    _authorization: Authorization

    # ---------------------------------------------------------------------------------- heads

    def judge_head(self, exchange: ClientExchangeCore, head: Head) -> None:
        """Decide what the head of a response means, and how its body is read."""
        status, owner = head.status, exchange.owner
        if owner.over or exchange.purpose is _DELETE:
            return  # the response came on another exchange before, or is not needed any more
        if isinstance(owner, PostedMessage) and owner.former:
            self._judge_former(exchange, owner, head)
        elif status == 404 and self._loses_session(exchange):
            self._session.lose(owner, 404)
        elif (status == 401 or (status == 403 and head.challenges)) and not (
            self._authorization.is_doubted(exchange, head)
        ):
            self._authorization.refused(exchange, head)
        elif status in _REDIRECTS:
            self._redirect(exchange, head)
        else:
            self._judge_body(exchange, head)

    def _loses_session(self, exchange: ClientExchangeCore) -> bool:
        """Whether status 404 says that the server does not know the session.

        Servers without a standalone stream should answer GET with 405. Some send 404 instead, and
        would lose session after session. So in a new session, the next POST decides.
        """
        is_new = exchange.purpose is ExchangePurpose.GET and not self._session.has_lasted()
        return self._session.is_named_by(exchange) and not is_new

    def _judge_former(self, exchange: ClientExchangeCore, post: PostedMessage, head: Head) -> None:
        """Judge the response to a request that was under way when its session was lost.

        If the status says that the server has not run it, it is sent again in the next session,
        once. Every other response counts as its response: the server has run it.
        """
        if head.status not in _NOT_RUN:
            self._judge_body(exchange, head)
            return
        exchange.abort()
        self._session.take_refusal(post, head.status)

    def _judge_body(self, exchange: ClientExchangeCore, head: Head) -> None:
        """Decide whether and how the body of a response is read."""
        owner = exchange.owner
        coding = head.fields.get("content-encoding")
        if coding and (coding := coding.lower()) != "identity":
            text = f"the body is encoded ({coding[:40]}), which was not asked for"
            self._core.report(Breach("OWN-042", text))
            owner.unreadable(head, text)
            exchange.abort()
            return
        if isinstance(owner, PostedMessage) and exchange.purpose is not _RESUME:
            self._queue.passed(owner)
            if not head.is_good:
                exchange.read_refusal()
                return
            self._session.answered(owner, head)
        owner.head(exchange, head)

    # ------------------------------------------------------------------------------ redirects

    def _redirect(self, exchange: ClientExchangeCore, head: Head) -> None:
        """Follow a redirect to a URL of the same origin."""
        owner = exchange.owner
        owner.redirects += 1
        said = f"status {head.status}"
        try:
            url = resolve(exchange.url, head.fields.get("location", ""))
        except ValueError as error:
            self._refuse_redirect(exchange, head, f"{said} leads nowhere: {error}")
            return
        if url.origin != exchange.url.origin:
            other = f"{url.origin.scheme}://{url.authority}"
            self._refuse_redirect(exchange, head, f"{said} leads to another origin, {other}")
        elif exchange.method != "GET" and head.status not in _REPEATABLE:
            self._refuse_redirect(exchange, head, f"{said} would turn {exchange.method} into GET")
        elif owner.redirects > _MAX_REDIRECTS:
            self._refuse_redirect(exchange, head, f"{owner.redirects} redirects in a row")
        else:
            owner.url = url
            if head.status == _PERMANENT and exchange.url is self._core.url:
                self._core.url = url
            owner.send()

    def _refuse_redirect(self, exchange: ClientExchangeCore, head: Head, text: str) -> None:
        self._core.report(Breach("OWN-040", text))
        exchange.owner.fail_with_status(head.status, text)

    # ------------------------------------------------------------------------------- refusals

    def judge_refusal(self, exchange: ClientExchangeCore, head: Head, body: bytes) -> None:
        """Decide what a response with a status that refuses a message means, by its body."""
        post = exchange.owner
        assert isinstance(post, PostedMessage)  # streams do not read such a body
        if post.over:
            return  # the response came on another exchange before
        status, error = head.status, error_in(body, post.responses.machine.core)
        if (
            not post.is_modern
            and not post.former
            and self._session.is_unknown(status, error, body, post.call)
        ):
            text = "a session that is not known is answered with status 400 instead of 404"
            self._core.report(Breach("SESS-008", text, tolerated=True))
            self._session.lose(post, status)
            return
        post.status, post.wait = status, head.retry_after
        if post.call is None:
            self._report_refusal(post, status, error, body)
            post.over = True
        else:
            self._refuse_request(post, post.call, status, error, body)

    def _refuse_request(
        self,
        post: PostedMessage,
        call: OutgoingRequest,
        status: int,
        error: JSONObject | None,
        body: bytes,
    ) -> None:
        """Decide what the refusal of a request means for it, or for the start."""
        responses, wait = post.responses, post.wait
        id: Any = None if error is None else error.get("id")
        if id is not None and id_key(id) != call.id:
            # The exchange says which request is answered.
            text = f"a response has the id {id!r:.80} instead of {call.id!r}"
            self._core.report(Breach("OWN-019", text, tolerated=True))
        is_try = (
            responses.falls_back(status, wait)
            if purpose_of(call) is Purpose.DISCOVER
            else purpose_of(call) is Purpose.INITIALIZE and not says_little(status)
        )
        if not is_try and (wait is not None or error is None):
            self._report_refusal(post, status, error, body)
        text = f"the server answered {call.method} with status {status}"
        if wait is not None:
            text += f", and wants to be asked again in {wait:.4g} s"
        post.refusal = text if error is None else error
        if purpose_of(call) is Purpose.DISCOVER and wait and not is_modern_error(error):
            said = None if error is None else self._error_of(post, call, error)
            responses.fail_start(call, FailureCause.REFUSED, text, said)
        elif purpose_of(call) is Purpose.INITIALIZE and may_be_old(self._core, status, error):
            OldStream(self._queue, post).send()
        elif error is not None:
            responses.answer_with(call, error)
        else:
            responses.refuse(call, status, text)

    @staticmethod
    def _error_of(post: PostedMessage, call: OutgoingRequest, message: JSONObject) -> ErrorReceived:
        error: Any = message["error"]
        return ErrorReceived(
            request=call,
            code=error["code"],
            message=error["message"],
            data=error.get("data"),
            status=post.status,
            retry_after=post.wait,
        )

    def _report_refusal(
        self, post: PostedMessage, status: int, error: JSONObject | None, body: bytes
    ) -> None:
        said: Any = {} if error is None else error["error"]
        excerpt = b""
        if error is None:
            excerpt = self._queue.headers.excerpt(body, self._core.session_id)
        self._core.events.append(
            MessageRefused(
                status=status,
                request=post.request,
                code=said.get("code"),
                message=said.get("message"),
                data=said.get("data"),
                retry_after=post.wait,
                excerpt=excerpt,
            )
        )
