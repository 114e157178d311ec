"""Subscriptions of 2026-07-28 that pass by: what comes for them, in which order, and their end.

Each is told by the id of its request alone, with which the server tags what it sends for it.

Source: MCP 2026-07-28, basic/patterns/subscriptions.
"""

from __future__ import annotations

from typing import Any, Final

from .._rules.request_meta import SUBSCRIPTION_ID
from .._rules.sending import (
    FILTERS,
    RESOURCES,
    Breach,
    judge_filter,
    judge_honoured,
    judge_notification,
)
from .._spec.methods import FILTER
from .._wire.values import IdKey, JSONObject, Side, is_object, table_key
from ._events import BlindCause, CancellationMatched
from ._observations import Watching
from ._history import Asked, Half
from ._modern_history import Listening, wishes_in

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
LOG: Final = "notifications/message"
_URIS_FORGOTTEN: Final = (
    "the resources of the oldest subscription were forgotten: which updates it may get is not"
    " judged any more"
)
_KINDS: Final = frozenset(FILTERS.values())


class ListenWatching(Watching):
    """Judges what a server sends for subscriptions."""

    __slots__ = ()

    def _listen(self, asked: Asked, params: JSONObject) -> Breach | None:
        """A subscription is asked for, in a request without another fault."""
        wish: Any = params.get("notifications")
        if is_object(wish):
            client = self._halves[Side.CLIENT]
            wish = self._without_nulls(client, FILTER, wish, asked.method, asked.id)
        breach = judge_filter(wish) if is_object(wish) else None
        known = is_object(wish) and breach is None
        asked.subject = listening = Listening(None)
        if known:
            listening.asked = wishes_in(wish)
            self._keep_resources(listening, wish)
        return breach

    def _keep_resources(self, listening: Listening, filter: JSONObject) -> None:
        """Remember the URIs in a good filter of the client or of the server."""
        uris: Any = filter.get(RESOURCES) or ()
        if not self._listenings.keep(listening, frozenset(uris)):
            self._blind(BlindCause.FORGOTTEN, self._halves[Side.CLIENT], _URIS_FORGOTTEN)

    def _may_be(self, key: IdKey) -> Asked | None:
        """The client's latest request with this id, as far as it is remembered."""
        client = self._halves[Side.CLIENT]
        return client.open.get(key) or client.done.get(key)

    # --------------------------------------------------------------------------- notifications

    def _see_for_subscription(self, half: Half, method: str, params: JSONObject) -> bool:
        """Judge a notification of the server if it says that it belongs to a subscription.

        Returns:
            Whether it does.
        """
        if method != ACKNOWLEDGED and method != LOG and method not in FILTERS:
            return False
        meta: Any = params.get("_meta")
        if not is_object(meta) or SUBSCRIPTION_ID not in meta:
            if method != ACKNOWLEDGED:
                return False
            breach: Breach | None = Breach("SUBS-009", f"{method} names no subscription")
        elif method == LOG:
            breach = Breach("SUBS-017", "a log message names a subscription")
        else:
            breach = self._judge_tagged(half, method, params, meta[SUBSCRIPTION_ID])
        if breach is not None and not self._alien:
            self._accuse(half, breach, method)
        return True

    def _judge_tagged(
        self, half: Half, method: str, params: JSONObject, tag: object
    ) -> Breach | None:
        key = table_key(tag)
        asked = None if key is None else self._may_be(key)
        if asked is None:
            known = key is not None and self._halves[Side.CLIENT].has_asked(key) is not False
            if known:
                return None  # it was forgotten
            return Breach("SUBS-009", f"{method} names the subscription {tag!r:.80}, which is none")
        if asked.n_asked > 1 or not asked.is_judged:
            return None  # it may be for either of those that have the id
        listening: object = asked.subject
        if not isinstance(listening, Listening):
            return Breach("SUBS-009", f"{method} names {asked.method}, which is no subscription")
        half.read = max(half.read, asked.place)
        self._serves_modern = True
        if listening.over:
            return Breach("SUBS-009", f"{method} for a subscription after its end")
        if half.has_read(listening.cancelled_at):
            return Breach("SUBS-012", f"{method} for a subscription that was cancelled")
        spec = self._stateless.dialect.notifications[Side.SERVER][method]
        breach = judge_notification(self._stateless, Side.SERVER, method, spec, params, self._shape)
        if method == ACKNOWLEDGED:
            first, listening.acknowledged = not listening.acknowledged, True
            if not first:
                return Breach("SUBS-004", "a subscription was acknowledged a second time")
            honoured: Any = params.get("notifications")
            breach = breach or self._judge_honoured(half, listening, honoured)
            if breach is None and is_object(honoured):
                self._grant(listening, honoured)
            return breach
        if not listening.acknowledged and half.readable:
            return Breach("SUBS-005", f"{method} came before the acknowledgement")
        if listening.asked is not None and not listening.asked[FILTERS[method]]:
            return Breach("SUBS-002", f"{method} was not asked for")
        if listening.granted is not None and FILTERS[method] not in listening.granted:
            return Breach("SUBS-002", f"{method} was not granted by the acknowledgement")
        if FILTERS[method] == RESOURCES:
            breach = breach or self._judge_updated(listening, params.get("uri"))
        return breach

    def _grant(self, listening: Listening, honoured: JSONObject) -> None:
        """Take what a good acknowledgement grants."""
        listening.granted = frozenset(name for name in _KINDS if honoured.get(name))
        if listening.asked is not None:  # else it is not known that nothing more was granted
            listening.asked = {name: bool(wish) for name, wish in listening.asked.items()}
            self._keep_resources(listening, honoured)

    @staticmethod
    def _judge_updated(listening: Listening, uri: object) -> Breach | None:
        resources = listening.resources
        if resources is None or not isinstance(uri, str) or resources.covers(uri):
            return None
        lack = "was not asked for" if listening.granted is None else "was not granted"
        return Breach("SUBS-003", f"an update of {uri[:200]!r}, which {lack}")

    def _judge_honoured(self, half: Half, listening: Listening, honoured: object) -> Breach | None:
        if not is_object(honoured):
            return None  # shapes are not judged
        honoured = self._without_nulls(half, FILTER, honoured, ACKNOWLEDGED, None)
        breach = judge_filter(honoured)
        if breach is None and listening.asked is not None:
            breach = judge_honoured(listening.asked, honoured)
        return breach

    # ------------------------------------------------------------------------------------- end

    def _end_listening(
        self, half: Half, asked: Asked, listening: Listening, result: JSONObject | None
    ) -> Breach | None:
        """A subscription is answered with a result or, None, with an error."""
        was_over, listening.over = listening.over, True
        self._listenings.drop(listening)
        if half.has_read(listening.cancelled_at):
            return Breach("SUBS-012", "an answer to a subscription that was cancelled")
        if result is None:
            return None
        meta: Any = result.get("_meta")
        if not is_object(meta) or table_key(meta.get(SUBSCRIPTION_ID)) != asked.key:
            return Breach("SUBS-014", "the result of a subscription does not name it")
        if not listening.acknowledged and half.readable and not was_over:
            return Breach("SUBS-004", "a subscription ended before it was acknowledged")
        return None

    def _cancelled_by_server(self, half: Half, asked: Asked, reason: object) -> None:
        """The server cancels what a client has asked, which ends subscriptions alone."""
        if asked.n_asked > 1 or not asked.is_judged:
            return
        listening: object = asked.subject
        if not isinstance(listening, Listening):
            text = f"the server cancels {asked.method}, which is no subscription"
            self._accuse(half, Breach("CANC-019", text), asked.method, asked.id)
            return
        half.read = max(half.read, asked.place)
        self._match_cancellation(half, asked, reason)
        listening.over = asked.cancelled = True
        self._listenings.drop(listening)
        self._finish(self._halves[Side.CLIENT], asked)

    def _match_cancellation(self, half: Half, asked: Asked, reason: object) -> None:
        """Tell which request a cancellation of this side is about."""
        self._events.append(
            CancellationMatched(
                side=half.side,
                method=asked.method,
                id=asked.id,
                request_number=asked.number,
                number=self._number,
                index=self._index,
                time=self._now,
                reason=reason if isinstance(reason, str) else None,
                answered=not asked.waits,
            )
        )
