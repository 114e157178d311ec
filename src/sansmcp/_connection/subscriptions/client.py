"""Subscriptions of revision 2026-07-28: the client's side.

Source: MCP 2026-07-28, basic/patterns/subscriptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..._rules.messages import null_member
from ..._rules.request_meta import SUBSCRIPTION_ID
from ..._rules.sending import Breach, judge_request, null_members, without_nulls
from ..._rules.subscription_filters import (
    FILTERS,
    RESOURCES,
    TASK_IDS,
    Resources,
    judge_filter,
    judge_honoured,
)
from ..._spec.errors import LocalProtocolError
from ..._spec.methods import FILTER
from ..._wire.values import JSONObject, id_key, is_object
from ..core import Core
from ..events import (
    ErrorReceived,
    FailureReason,
    MessageIgnored,
    NotificationReceived,
    RequestFailed,
    SubscriptionAcknowledged,
    SubscriptionEnd,
    SubscriptionEnded,
)
from ..handles import OutgoingRequest, Purpose, Subscription
from ..incoming import IncomingRequests
from ..modern_messages import ModernMessages
from ..notifications import LISTEN
from ..outgoing import Outcome, OutgoingRequests

if TYPE_CHECKING:
    from ..caching.cached_responses import CachedResponses
    from ..tasks.follower import TaskFollower

_FAILURES: Final = {
    FailureReason.CANCELLED: SubscriptionEnd.CANCELLED,
    FailureReason.TIMED_OUT: SubscriptionEnd.TIMED_OUT,
    FailureReason.LOST: SubscriptionEnd.LOST,
    FailureReason.REFUSED: SubscriptionEnd.REFUSED,
    FailureReason.INVALID_ANSWER: SubscriptionEnd.INVALID_ANSWER,
}
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"


def _is_tagged(params: JSONObject) -> bool:
    """Whether the params of a notification name a subscription."""
    meta: Any = params.get("_meta")
    return is_object(meta) and SUBSCRIPTION_ID in meta


class ClientSubscriptions:
    """Sends `subscriptions/listen`, and judges the notifications for each subscription.

    Attributes:
        cached: With a cache, the part that uses it; else None.
        follower: The part that follows tasks of the server; None: tasks are not turned on.
    """

    __slots__ = ("_core", "_incoming", "_messages", "_outgoing", "cached", "follower")

    def __init__(
        self,
        core: Core,
        messages: ModernMessages,
        outgoing: OutgoingRequests,
        incoming: IncomingRequests,
    ) -> None:
        self._core = core
        self._messages = messages
        self._outgoing = outgoing
        self._incoming = incoming
        self.cached: CachedResponses | None = None
        self.follower: TaskFollower | None = None

    def listen(
        self,
        notifications: JSONObject,
        meta: JSONObject | None,
        timeout: float | None,
        data: Any,
        now: float | None,
    ) -> Subscription:
        """Subscribe to changes (`subscriptions/listen`)."""
        self._core.check_open(LISTEN)
        conversation, side = self._core.conversation, self._core.side
        spec = conversation.dialect.requests[side].get(LISTEN)
        if is_object(notifications):
            notifications = without_nulls(FILTER, notifications)
        params: JSONObject = {"notifications": notifications}
        breach = judge_request(conversation, side, LISTEN, spec, params, True)
        breach = breach or judge_filter(notifications)
        if breach is not None:
            raise breach.error()
        if timeout is not None:
            self._outgoing.check_timeouts(timeout, None, now)
        self._outgoing.check_room()
        of_tasks = TASK_IDS in notifications
        body = self._messages.with_envelope(params, meta, tasks=of_tasks)
        asked: Any = self._core.codec.decode(self._core.encode(notifications))
        if now is not None:
            self._core.tell(now)
        subscription = Subscription(asked)
        subscription.data = data
        subscription._call = self._outgoing.send_own(
            LISTEN, body, Purpose.LISTEN, self, subscription, timeout
        )
        if self._core.needs_settle:
            self._core.settle()
        return subscription

    def receive_notification(self, method: str, params: JSONObject) -> bool:
        """Handle a notification if it belongs to a subscription; return whether it did.

        Keeps STDIO-009.
        """
        if self._core.conversation.dialect.is_modern and (
            method in FILTERS or method == _ACKNOWLEDGED
        ):
            if self.cached is not None:
                self.cached.changed(method, params, self._subscribed_uris(params))
            self._notified(method, params)
            return True
        if method == "notifications/message" and _is_tagged(params):
            breach = Breach("SUBS-017", "a log message names a subscription", tolerated=True)
            self._core.report(breach)
        return False

    def receive_cancelled(self, params: JSONObject) -> None:
        """Handle `notifications/cancelled`: a modern server may cancel a subscription only.

        Keeps CANC-020.
        """
        if not self._core.conversation.dialect.is_modern or self._core.modern is not None:
            self._incoming.receive_cancelled(params)
            return
        key = id_key(params.get("requestId"))
        call = None if key is None else self._outgoing.calls.get(key)
        if call is None:
            self._incoming.ignore_cancel("CANC-013", "a cancellation of nothing in flight", key)
        elif isinstance(subscription := call._subject, Subscription):
            subscription._ended_by_server = True
            self._outgoing.abandon(call, FailureReason.CANCELLED, "the server ended it", None)
        else:
            text = f"the server cancelled {call._method}"
            self._core.report(Breach("CANC-019", text), request=call)

    def ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        """Take the ending of `subscriptions/listen`."""
        subscription = call._subject
        assert isinstance(subscription, Subscription)
        code = message = data = status = retry_after = None
        text = ""
        if isinstance(outcome, RequestFailed):
            reason, text = _FAILURES[outcome.reason], outcome.text
            if subscription._ended_by_server:
                reason = SubscriptionEnd.ENDED
        elif isinstance(outcome, ErrorReceived):
            reason = SubscriptionEnd.ERROR
            code, message, data = outcome.code, outcome.message, outcome.data
            status, retry_after = outcome.status, outcome.retry_after
        else:
            reason = SubscriptionEnd.ENDED
            self._judge_end(subscription, call, outcome.result)
        if self.follower is not None and subscription._acknowledged is not None:
            ids: Any = subscription._acknowledged.get(TASK_IDS, ())
            self.follower.unsubscribed(ids)
        self._core.events.append(
            SubscriptionEnded(
                subscription=subscription,
                reason=reason,
                code=code,
                message=message,
                data=data,
                status=status,
                retry_after=retry_after,
                text=text,
            )
        )

    # ------------------------------------------------------------------------------------- helpers

    def _subscribed_uris(self, params: JSONObject) -> list[str]:
        """The resources of the subscription that a notification names."""
        meta: Any = params.get("_meta")
        key = id_key(meta.get(SUBSCRIPTION_ID)) if is_object(meta) else None
        call = None if key is None else self._outgoing.calls.get(key)
        subscription = None if call is None else call._subject
        asked = subscription._asked if isinstance(subscription, Subscription) else {}
        uris: list[str] = asked.get(RESOURCES, [])
        return uris

    def _notified(self, method: str, params: JSONObject) -> None:
        """Deliver a notification with the subscription that it names, or report its breach."""
        meta: Any = params.get("_meta")
        key = id_key(meta.get(SUBSCRIPTION_ID)) if is_object(meta) else None
        if key is None:
            text = f"{method} names no subscription"
            self._core.report(Breach("SUBS-009", text, tolerated=method != _ACKNOWLEDGED))
            if method != _ACKNOWLEDGED:
                self._core.events.append(
                    NotificationReceived(method=method, params=params, peer=self._core.peer)
                )
            return
        call = self._outgoing.calls.get(key)
        subscription = None if call is None else call._subject
        if call is None or not isinstance(subscription, Subscription):
            text = "a notification for no open subscription"
            self._core.events.append(
                MessageIgnored(rule="SUBS-010", text=text, method=method, id=key)
            )
        elif method == _ACKNOWLEDGED:
            self._acknowledged(subscription, call, params.get("notifications"))
        else:
            self._judge_wanted(subscription, call, method, params)
            self._core.events.append(
                NotificationReceived(
                    method=method, params=params, subscription=subscription, peer=self._core.peer
                )
            )

    def _acknowledged(
        self, subscription: Subscription, call: OutgoingRequest, honoured: Any
    ) -> None:
        """Judge the acknowledgement of a subscription, and report it."""
        kept = self._filter_of(honoured)
        if subscription._acknowledged is not None:
            kept = Breach("SUBS-004", "a subscription was acknowledged a second time")
        if isinstance(kept, Breach):
            self._core.report(kept, request=call)
            return
        if (excess := judge_honoured(subscription._asked, kept)) is not None:
            self._core.report(excess, request=call)
        self._core.timers.drop(call)  # silence is normal from here on
        subscription._acknowledged = kept
        uris: Any = kept.get(RESOURCES, ())
        subscription._granted = Resources(uris)
        if self.follower is not None:
            ids: Any = kept.get(TASK_IDS, ())
            self.follower.subscribed(ids)
        self._core.events.append(
            SubscriptionAcknowledged(subscription=subscription, notifications=honoured)
        )

    def _filter_of(self, honoured: object) -> JSONObject | Breach:
        """Return a copy of the acknowledged filter, or the breach if it is not valid.

        The filter itself goes into the event and then belongs to the application.
        """
        if not is_object(honoured):
            return Breach("OWN-014", "notifications is no object")
        for name in null_members(FILTER, honoured):
            del honoured[name]
            self._core.report(null_member(name))
        if (breach := judge_filter(honoured)) is not None:
            return breach
        try:
            copied: Any = self._core.codec.decode(self._core.encode(honoured))
        except (LocalProtocolError, ValueError, RecursionError):
            return Breach("OWN-002", "the filter in an acknowledgement is nested too deep")
        kept: JSONObject = copied
        return kept

    def _judge_wanted(
        self, subscription: Subscription, call: OutgoingRequest, method: str, params: JSONObject
    ) -> None:
        """Report a notification that the subscription does not ask for or is not granted."""
        name = FILTERS[method]
        granted = subscription._acknowledged
        rule, uri = "SUBS-002", params.get("uri")
        if granted is None:
            rule, text = "SUBS-005", f"{method} came before the acknowledgement"
        elif not subscription._asked.get(name):
            text = f"{method} was not asked for"
        elif not granted.get(name):
            text = f"{method} was asked for, and the acknowledgement does not grant it"
        elif name == RESOURCES and isinstance(uri, str) and not subscription._granted.covers(uri):
            rule, text = "SUBS-003", f"the acknowledgement does not grant {uri[:200]!r}"
        else:
            return
        self._core.report(Breach(rule, text, tolerated=True), request=call)

    def _judge_end(
        self, subscription: Subscription, call: OutgoingRequest, result: JSONObject
    ) -> None:
        """Report breaches in the result that ends a subscription."""
        meta: Any = result.get("_meta")
        if not is_object(meta) or id_key(meta.get(SUBSCRIPTION_ID)) != call._id:
            text = "the result of a subscription does not name it"
            self._core.report(Breach("SUBS-014", text, tolerated=True), request=call)
        if subscription._acknowledged is None:
            text = "a subscription ended before it was acknowledged"
            self._core.report(Breach("SUBS-004", text, tolerated=True), request=call)
