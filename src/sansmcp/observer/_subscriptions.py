"""Subscriptions of both eras: to resources (legacy), and by `subscriptions/listen` (modern).

A modern subscription is identified by the id of its request alone, with which the server tags
each notification for it.

Source: MCP 2025-11-25, server/resources, Subscriptions; MCP 2026-07-28,
basic/patterns/subscriptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from .._rules.request_meta import SUBSCRIPTION_ID
from .._rules.sending import Breach, judge_notification
from .._rules.subscription_filters import (
    FILTERS,
    RESOURCES,
    TASK_IDS,
    Resources,
    judge_filter,
    judge_honoured,
)
from .._spec.methods import FILTER
from .._wire.values import JSONObject, Side, is_list_of_strings, is_object, table_key
from ._events import BlindCause
from ._history import ObserverCore, SeenRequest, SideHistory
from ._log_levels import LOG
from ._modern_tasks import ModernTasks

_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_KINDS: Final = frozenset(FILTERS.values())
_TAGGED: Final = frozenset({_ACKNOWLEDGED, LOG, *FILTERS})
_NOT_REMEMBERED: Final = (
    "a subscription was not remembered: updates without a subscription are not judged any more"
)
_URIS_FORGOTTEN: Final = (
    "the resources of the oldest subscription were forgotten: which updates it may get is not"
    " judged any more"
)


# ----------------------------------------------------------------------------------------- legacy


@attrs.define(eq=False, repr=False)
class _SubscribedResource:
    """The `resources/subscribe` requests for one URI.

    Attributes:
        n_wanted: How many were not refused.
        n_open: How many have no response.
        latest: The number of the latest among all such requests for any URI.
    """

    n_wanted: int = 0
    n_open: int = 0
    latest: int = 0


@attrs.define(eq=False, repr=False)
class SubscribedResources:
    """Whether a legacy client has any subscription to a resource.

    It is not known which subscription a notification belongs to, since its URI may be that of a
    sub-resource (RES-009). A URI is removed only if no order of serving the requests could leave a
    subscription to it.
    """

    _core: ObserverCore
    _is_uncertain: bool = attrs.field(default=False, init=False)
    _by_uri: dict[str, _SubscribedResource] = attrs.field(
        factory=dict[str, _SubscribedResource], init=False
    )
    # Counted for all URIs together: a URI that was removed and added again has another number.
    _n_requests: int = attrs.field(default=0, init=False)

    @property
    def is_certainly_empty(self) -> bool:
        """Whether there certainly is no subscription."""
        return not self._is_uncertain and not self._by_uri

    def lose(self) -> None:
        """From here on there may be unknown subscriptions."""
        self._is_uncertain = True

    def take_subscribe(self, sender: SideHistory, request: SeenRequest, params: JSONObject) -> None:
        """A client sent `resources/subscribe`."""
        uri: object = params.get("uri")
        request.subject = uri
        if not isinstance(uri, str):
            self._is_uncertain = True
            return
        if len(self._by_uri) >= self._core.config.max_subscriptions and uri not in self._by_uri:
            self._is_uncertain = True
            self._core.add_blind_spot(BlindCause.FORGOTTEN, sender.side, _NOT_REMEMBERED)
            return
        known = self._by_uri.setdefault(uri, _SubscribedResource())
        known.n_wanted += 1
        known.n_open += 1
        self._n_requests += 1
        known.latest = self._n_requests

    def take_subscribe_result(self, request: SeenRequest, _result: JSONObject) -> None:
        """A `resources/subscribe` was answered with a result."""
        known = self._find(request.subject)
        if known is not None:
            known.n_open -= 1

    def take_subscribe_error(self, request: SeenRequest) -> None:
        """A `resources/subscribe` was answered with an error."""
        known = self._find(request.subject)
        if known is not None:
            known.n_open -= 1
            known.n_wanted -= 1
            if not known.n_wanted:
                del self._by_uri[request.subject]

    def take_unsubscribe(
        self, _sender: SideHistory, request: SeenRequest, params: JSONObject
    ) -> None:
        """A client sent `resources/unsubscribe`."""
        known = self._find(params.get("uri"))
        # While a subscribe is open, the two may be served in either order.
        if known is not None and not known.n_open:
            request.subject = (params["uri"], known.latest)

    def take_unsubscribe_result(self, request: SeenRequest, _result: JSONObject) -> None:
        """A `resources/unsubscribe` was answered with a result."""
        if request.subject is not None:
            uri, latest = request.subject
            known = self._find(uri)
            if known is not None and known.latest == latest:
                del self._by_uri[uri]

    def _find(self, uri: object) -> _SubscribedResource | None:
        return self._by_uri.get(uri) if isinstance(uri, str) else None


# ----------------------------------------------------------------------------------------- modern


@attrs.define(eq=False, repr=False)
class SeenSubscription:
    """The state of one `subscriptions/listen` request.

    Attributes:
        wanted: The kinds that the client asked for, and the URIs until they are granted; None
            where the filter was bad or was forgotten, and after the end.
        is_acknowledged: Whether an acknowledgement was seen.
        granted: The kinds in a good acknowledgement; None before it.
        resources: The URIs in a good acknowledgement, before it those that were asked for; None
            where `wanted` is None.
        tasks: The ids of tasks, likewise.
        is_over: Whether the server has ended it.
        cancel_place: The place of the client's cancellation; 0: it was not cancelled.
    """

    wanted: Mapping[str, object] | None = None
    is_acknowledged: bool = False
    granted: frozenset[str] | None = None
    resources: Resources | None = None
    tasks: frozenset[str] | None = None
    is_over: bool = False
    cancel_place: int = 0


def _kinds_in(filter: JSONObject) -> Mapping[str, object]:
    """What a good filter asks for, without references to the caller's objects."""
    kinds: dict[str, object] = {}
    for name in FILTERS.values():
        value: Any = filter.get(name)
        kinds[name] = frozenset[str](value) if is_list_of_strings(value) else bool(value)
    return kinds


@attrs.define(eq=False, repr=False)
class Subscriptions:
    """Judges what a server sends for subscriptions of 2026-07-28."""

    _core: ObserverCore
    _tasks: ModernTasks
    _n_uris: dict[SeenSubscription, int] = attrs.field(
        factory=dict[SeenSubscription, int], init=False
    )
    _n_uris_in_all: int = attrs.field(default=0, init=False)

    def take_request(self, request: SeenRequest, params: JSONObject) -> Breach | None:
        """Judge a `subscriptions/listen` that has no other breach, and remember its filter."""
        filter: Any = params.get("notifications")
        if is_object(filter):
            filter = self._core.without_nulls(
                Side.CLIENT, FILTER, filter, request.method, request.id
            )
        breach = judge_filter(filter) if is_object(filter) else None
        request.subject = subscription = SeenSubscription()
        if is_object(filter) and breach is None:
            subscription.wanted = _kinds_in(filter)
            self._keep_resources(subscription, filter)
        return breach

    def _keep_resources(self, subscription: SeenSubscription, filter: JSONObject) -> None:
        """Remember the URIs in a good filter of the client or of the server."""
        uris = frozenset[str](filter.get(RESOURCES) or ())
        tasks = frozenset[str](filter.get(TASK_IDS) or ())
        count = len(uris) + len(tasks)
        self._n_uris_in_all += count - self._n_uris.pop(subscription, 0)
        if count:
            self._n_uris[subscription] = count
        subscription.resources, subscription.tasks = Resources(uris), tasks
        while self._n_uris_in_all > self._core.config.max_subscriptions:
            self._forget_filter(next(iter(self._n_uris)))
            self._core.add_blind_spot(BlindCause.FORGOTTEN, Side.CLIENT, _URIS_FORGOTTEN)

    def _forget_filter(self, subscription: SeenSubscription) -> None:
        self._n_uris_in_all -= self._n_uris.pop(subscription, 0)
        subscription.wanted = subscription.resources = subscription.tasks = None

    # --------------------------------------------------------------------------- notifications

    def take_notification(self, method: str, params: JSONObject) -> bool:
        """Judge a notification of the server if it belongs to a subscription.

        Returns:
            Whether it names a subscription, or has to name one.
        """
        if method not in _TAGGED:
            return False
        meta: Any = params.get("_meta")
        if not is_object(meta) or SUBSCRIPTION_ID not in meta:
            if method != _ACKNOWLEDGED:
                return False
            breach: Breach | None = Breach("SUBS-009", f"{method} names no subscription")
        elif method == LOG:
            breach = Breach("SUBS-017", "a log message names a subscription")
        else:
            breach = self._judge_tagged(method, params, meta[SUBSCRIPTION_ID])
        if breach is not None and not self._core.modern.n_unknown:
            self._core.add_violation(Side.SERVER, breach, method)
        return True

    def _judge_tagged(self, method: str, params: JSONObject, tag: object) -> Breach | None:
        core = self._core
        server = core.server
        key = table_key(tag)
        request = None if key is None else core.client.find(key)
        if request is None:
            if key is not None and core.client.has_sent(key) is not False:
                return None  # it was forgotten
            return Breach("SUBS-009", f"{method} names the subscription {tag!r:.80}, which is none")
        if request.n_sent > 1 or not request.is_judged:
            return None  # it may be for either of the requests with this id
        subscription: object = request.subject
        if not isinstance(subscription, SeenSubscription):
            return Breach("SUBS-009", f"{method} names {request.method}, which is no subscription")
        server.read_place = max(server.read_place, request.place)
        core.modern.is_served = True
        if subscription.is_over:
            return Breach("SUBS-009", f"{method} for a subscription after its end")
        if server.has_read(subscription.cancel_place):
            return Breach("SUBS-012", f"{method} for a subscription that was cancelled")
        conversation = core.modern.conversation
        spec = conversation.dialect.notifications[Side.SERVER].get(method)  # None: an extension's
        breach = judge_notification(
            conversation, Side.SERVER, method, spec, params, core.checks_shape
        )
        if method == _ACKNOWLEDGED:
            return self._acknowledge(subscription, params.get("notifications"), breach)
        if not subscription.is_acknowledged and server.is_readable:
            return Breach("SUBS-005", f"{method} came before the acknowledgement")
        kind = FILTERS[method]
        if subscription.wanted is not None and not subscription.wanted[kind]:
            return Breach("SUBS-002", f"{method} was not asked for")
        if subscription.granted is not None and kind not in subscription.granted:
            return Breach("SUBS-002", f"{method} was not granted by the acknowledgement")
        if kind == RESOURCES:
            breach = breach or _judge_updated(subscription, params.get("uri"))
        elif kind == TASK_IDS and breach is None and spec is not None:
            breach = self._tasks.take_notification(subscription.tasks, params, _lack(subscription))
        return breach

    def _acknowledge(
        self, subscription: SeenSubscription, granted: Any, breach: Breach | None
    ) -> Breach | None:
        """Judge an acknowledgement, and take what a good one grants; `breach` is its own breach."""
        if subscription.is_acknowledged:
            return Breach("SUBS-004", "a subscription was acknowledged a second time")
        subscription.is_acknowledged = True
        if not is_object(granted):
            return breach
        breach = breach or self._judge_granted(subscription, granted)
        if breach is None:
            subscription.granted = frozenset(name for name in _KINDS if granted.get(name))
            if subscription.wanted is not None:  # else more may have been granted
                kinds = {name: bool(value) for name, value in subscription.wanted.items()}
                subscription.wanted = kinds
                self._keep_resources(subscription, granted)
        return breach

    def _judge_granted(self, subscription: SeenSubscription, granted: JSONObject) -> Breach | None:
        granted = self._core.without_nulls(Side.SERVER, FILTER, granted, _ACKNOWLEDGED, None)
        breach = judge_filter(granted)
        if breach is None and subscription.wanted is not None:
            breach = judge_honoured(subscription.wanted, granted)
        return breach

    # ------------------------------------------------------------------------------------- end

    def take_response(
        self, request: SeenRequest, subscription: SeenSubscription, result: JSONObject | None
    ) -> Breach | None:
        """Judge the response to a subscription: a result, or None for an error."""
        was_over = subscription.is_over
        self.end(subscription)
        if self._core.server.has_read(subscription.cancel_place):
            return Breach("SUBS-012", "a response to a subscription that was cancelled")
        if result is None:
            return None
        meta: Any = result.get("_meta")
        if not is_object(meta) or table_key(meta.get(SUBSCRIPTION_ID)) != request.key:
            return Breach("SUBS-014", "the result of a subscription does not name it")
        if not subscription.is_acknowledged and self._core.server.is_readable and not was_over:
            return Breach("SUBS-004", "a subscription ended before it was acknowledged")
        return None

    def end(self, subscription: SeenSubscription) -> None:
        """The server ended a subscription."""
        subscription.is_over = True
        self._forget_filter(subscription)

    def cancel(self, subscription: SeenSubscription, place: int) -> None:
        """The client cancelled a subscription at this place, which the server may not have read."""
        if not subscription.cancel_place:
            subscription.cancel_place = place
            self._forget_filter(subscription)


def _judge_updated(subscription: SeenSubscription, uri: object) -> Breach | None:
    resources = subscription.resources
    if resources is None or not isinstance(uri, str) or resources.covers(uri):
        return None
    return Breach("SUBS-003", f"an update of {uri[:200]!r}, which {_lack(subscription)}")


def _lack(subscription: SeenSubscription) -> str:
    return "was not asked for" if subscription.granted is None else "was not granted"
