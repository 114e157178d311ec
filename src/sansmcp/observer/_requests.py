"""Requests and notifications that pass by: whether their sender may send them."""

from __future__ import annotations

from typing import Any, Final

import attrs

from .._rules.messages import (
    BAD_REQUEST_ID,
    NULL_PARAMS,
    UNKNOWN_LEVEL,
    UNKNOWN_WISH,
    is_level,
    judge_call,
    token_in,
    token_in_use,
)
from .._rules.sending import (
    Breach,
    judge_notification,
    judge_phase,
    judge_request,
    judge_task,
    mistyped,
    too_early,
    without_nulls,
)
from .._rules.state_tables import Phase, PhaseTrigger
from .._spec.methods import META, Method
from .._wire.values import (
    GREATEST_OWN_HASH,
    LEAST_OWN_HASH,
    MISSING,
    IdKey,
    JSONObject,
    Side,
    is_object,
    table_key,
)
from ._events import BlindCause, MessageKind
from ._history import Asked, Half, TokenUse
from ._modern_history import Listening
from ._progress import ProgressWatching

_OPERATING: Final = Phase.OPERATING
_FORGOTTEN: Final = "the oldest id was forgotten: unknown ids are not judged any more"
_TOKEN: Final = "the oldest progress token was forgotten: progress with it is not judged any more"
_USED_TOKEN: Final = (
    "a used token was forgotten: progress with unknown tokens is not judged any more"
)
_SUBSCRIPTION: Final = (
    "a subscription was not remembered: updates without a subscription are not judged any more"
)


class CallWatching(ProgressWatching):
    """Judges calls by what their sender certainly knows."""

    __slots__ = ()

    # -------------------------------------------------------------------------------- requests

    def _see_request(self, half: Half, message: JSONObject, method: str) -> None:
        raw: Any = message["id"]
        key: IdKey | None
        if type(raw) is str or (type(raw) is int and LEAST_OWN_HASH <= raw <= GREATEST_OWN_HASH):
            key = raw
        else:
            key = table_key(raw)
        self._seen(half, MessageKind.REQUEST, method, None if key is None else raw, message)
        if key is None:
            self._accuse(half, BAD_REQUEST_ID, method)
            self._unreadable(half)  # what would answer it, and how, is open
            return
        given: Any = message.get("params", MISSING)
        params: JSONObject = given if given.__class__ is dict else {}
        breach: Breach | None = None
        if (
            given.__class__ is not dict
            or message.get("jsonrpc") != "2.0"
            or "result" in message
            or "error" in message
        ):
            breach = judge_call(message)
            if given is None:
                self._accuse(half, NULL_PARAMS, method, raw)
        asked = Asked(raw, key, method, self._number, self._number, self._now)
        if self._index is not None:
            asked.index = self._index
            asked.batched = self._bytes
        meta: Any = params.get("_meta")
        conversation = self._conversation
        spec = conversation.dialect.requests[half.side].get(method)
        if (spec is None or meta is not None) and self._is_modern(half, method, meta):
            breach = self._see_modern(half, asked, params, breach)
            spec = None
        elif None in params.values():
            params = self._as_it_counts(half, asked, spec, params)
        if asked.modern:
            pass  # it was judged by what it says itself
        elif breach is None and self._judged:
            if conversation.phase is _OPERATING:
                breach = judge_request(conversation, half.side, method, spec, params, self._shape)
            else:
                breach = self._judge_early(half, asked, spec, params)
        if breach is not None:
            self._accuse(half, breach, method, raw)
        if key == half.used.expected:  # as nearly always
            half.used.expected += 1
        else:
            self._remember_id(half, asked)
        half.open[key] = asked
        if len(half.open) > self._config.max_requests:
            self._forget_oldest(half)
        if meta is not None:
            self._take_token(half, asked, meta)
        if spec is None:
            pass
        elif spec.special or spec.paginated is not None or "task" in params:
            self._take_request(half, asked, spec, params)
        elif self._judged and conversation.agreed:
            asked.spec = spec

    def _as_it_counts(
        self, half: Half, asked: Asked, spec: Method | None, params: JSONObject
    ) -> JSONObject:
        """The params of a legacy request without members that are null."""
        optional = META if spec is None else spec.params_optional
        if self._judged and (self._conversation.agreed or asked.method == "initialize"):
            return self._without_nulls(half, optional, params, asked.method, asked.id)
        return without_nulls(optional, params)

    def _judge_early(
        self, half: Half, asked: Asked, spec: Method | None, params: JSONObject
    ) -> Breach | None:
        """A legacy request before the handshake is done."""
        conversation, method = self._conversation, asked.method
        opens = method == "initialize" and half.side is Side.CLIENT
        if self._n_modern and conversation.phase is Phase.NEW and not opens:
            return self._judge_bare(half, asked)
        if not self._knows_agreement(half):
            return judge_phase(conversation.phase, half.side, method)
        return judge_request(conversation, half.side, method, spec, params, self._shape)

    def _remember_id(self, half: Half, asked: Asked) -> None:
        """Note the id, and see whether it was used before."""
        key = asked.key
        known = half.used.add(key)
        if half.used.forgotten:
            self._blind(BlindCause.FORGOTTEN, half, _FORGOTTEN)
        if known:
            former = half.open.pop(key, None) or half.done.pop(key, None)
            breach = self._judge_reuse(half, asked, former)
            if breach is not None:
                self._accuse(half, breach, asked.method, asked.id)
            if former is not None and former.waits:
                asked.n_asked += former.n_asked - former.n_answered
                asked.place = former.place  # an answer to either shows no more than this was read
                if former is self._opening:
                    self._lose_track()

    def _judge_reuse(self, half: Half, asked: Asked, former: Asked | None) -> Breach | None:
        """Whether a known id may be used again. `former` is the last request that had it."""
        if asked.modern:
            if (
                former is None
                or not former.waits
                or former.given_up
                or asked.alien
                or not self._halves[1 - half.side].readable  # there may have been an answer
                or (isinstance(former.subject, Listening) and former.subject.over)
            ):
                return None
            return Breach("ID-002", f"the id {asked.id!r} is that of a request without an answer")
        # Requests that spoke for themselves were no part of the session.
        is_of_session = half.modern_ids is None or not (
            half.modern_ids.forgotten or asked.key in half.modern_ids
        )
        if self._judged and is_of_session and (not self._is_new or asked.method == "initialize"):
            return Breach("ID-001", f"the id {asked.id!r} was used before")
        return None

    def _take_token(self, half: Half, asked: Asked, meta: object) -> None:
        token = token_in(meta)
        if token is None:
            return
        if isinstance(token, Breach):
            half.odd_tokens = True
            self._accuse(half, token, asked.method, asked.id)
            return
        use = TokenUse(asked)
        key: Any = table_key(token)
        former = half.tokens.pop(key, None)
        if former is not None and (former.asked.waits or former.shared):
            use.shared = True
            readable = self._halves[1 - half.side].readable  # else there may have been an answer
            if former.is_active and not former.shared and readable and asked.is_judged:
                self._accuse(half, token_in_use(token), asked.method, asked.id)
        asked.token = key
        half.tokens[key] = use
        if len(half.tokens) > self._config.max_requests:
            del half.tokens[next(iter(half.tokens))]
            self._blind(BlindCause.FORGOTTEN, half, _TOKEN)
        half.used_tokens.add(key)
        if half.used_tokens.forgotten:
            self._blind(BlindCause.FORGOTTEN, half, _USED_TOKEN)

    def _take_request(self, half: Half, asked: Asked, spec: Method, params: JSONObject) -> None:
        """What this request asks for may last beyond its answer."""
        if asked.method == "initialize":
            asked.spec = spec
            self._open(asked, params)
            return
        if not (self._judged and self._conversation.agreed):
            # Which revision's method it is will turn out. It may be served all the same.
            self._subscriptions.lost |= asked.method == "resources/subscribe"
            if asked.method == "logging/setLevel":
                self._level.lose()
            asked.may_be_task = "task" in params
            return
        asked.spec = spec
        if spec.task_gate is not None and "task" in params:
            breach = judge_task(spec, self._conversation.gates[1 - half.side])
            asked.as_task = True
            asked.subject = breach is None  # else it is to be served like any other
            if breach is not None and self._knows_agreement(half):
                self._accuse(half, breach, asked.method, asked.id)
        if not spec.special:
            return
        if asked.method == "logging/setLevel":
            asked.subject = params.get("level")
            self._level.asked()
            if not is_level(asked.subject):
                self._accuse(half, UNKNOWN_WISH, asked.method, asked.id)
        elif asked.method == "resources/subscribe":
            asked.subject = params.get("uri")
            if not self._subscriptions.asked(asked.subject):
                self._blind(BlindCause.FORGOTTEN, half, _SUBSCRIPTION)
        elif asked.method == "resources/unsubscribe":
            latest = self._subscriptions.ending(params.get("uri"))
            asked.subject = None if latest is None else (params["uri"], latest)

    def _open(self, asked: Asked, params: JSONObject) -> None:
        """An `initialize` begins the handshake, or breaks into one."""
        info: Any = params.get("clientInfo")
        capabilities: Any = params.get("capabilities")
        asked.subject = (
            info if is_object(info) else None,
            capabilities if is_object(capabilities) else None,
        )
        if self._conversation.phase is Phase.NEW:
            self._conversation.move(PhaseTrigger.INITIALIZE)
            self._opening = asked
        elif self._conversation.phase is Phase.NEGOTIATING:
            self._lose_track()

    # --------------------------------------------------------------------------- notifications

    def _see_notification(self, half: Half, message: JSONObject, method: str) -> None:
        self._seen(half, MessageKind.NOTIFICATION, method, None, message)
        given: Any = message.get("params", MISSING)
        params: JSONObject = given if given.__class__ is dict else {}
        breach: Breach | None = None
        if given.__class__ is not dict or message.get("jsonrpc") != "2.0":
            breach = judge_call(message)
            if breach is not None:
                self._accuse(half, breach, method)
            elif given is None:
                self._accuse(half, NULL_PARAMS, method)
        if params and breach is None:
            params = self._see_optional(half, method, params)
        if method == "notifications/initialized" and half.side is Side.CLIENT:
            self._initialized(half, judged=breach is None)
        elif breach is not None:
            pass  # whether it counts is up to whoever reads it
        elif method == "notifications/progress":
            self._see_progress(half, params)
        elif method == "notifications/cancelled":
            self._see_cancelled(half, params)
        else:
            self._judge_notification(half, method, params)

    def _see_optional(self, half: Half, method: str, params: JSONObject) -> JSONObject:
        """Judge the members that the params of a notification may have."""
        is_special = method in ("notifications/progress", "notifications/cancelled")
        if not is_special and None not in params.values():
            return params  # their types are judged with the rest
        spec = self._conversation.dialect.notifications[half.side].get(method)
        spec = spec or self._dialect.notifications[half.side].get(method)
        optional = META if spec is None else spec.params_optional
        if not self._judged or self._alien:
            return without_nulls(optional, params)
        params = self._without_nulls(half, optional, params, method, None)
        if is_special and self._shape and (odd := mistyped(optional, params)) is not None:
            text = f"params of {method}: {odd} has the wrong type"
            self._accuse(half, Breach("OWN-014", text), method)
        return params

    def _initialized(self, half: Half, judged: bool) -> None:
        conversation = self._conversation
        phase = conversation.phase
        if judged and self._judged:
            breach = judge_notification(
                conversation, half.side, "notifications/initialized", None, {}, shape=False
            )
            if breach is not None:
                self._accuse(half, breach, "notifications/initialized")
        if phase is Phase.AGREED:
            assert self._opening is not None  # its answer has brought this phase
            half.read = max(half.read, self._opening.answer_place)
            self._operate()
        elif phase is Phase.NEGOTIATING:
            self._initialized_early = True

    def _judge_notification(self, half: Half, method: str, params: JSONObject) -> None:
        self._tasks_seen(self._halves[1 - half.side], method, params)
        if (
            self._n_modern
            and half.side is Side.SERVER
            and self._see_for_subscription(half, method, params)
        ):
            return
        if method == "notifications/message" and not is_level(params.get("level")):
            self._accuse(half, UNKNOWN_LEVEL, method)
            return
        if not self._judged or self._alien:
            return
        conversation = self._conversation
        if conversation.phase is Phase.AGREED and half.side is Side.SERVER:
            # Once it has answered `initialize`, only requests have to wait (LIFE-006).
            conversation = attrs.evolve(conversation, phase=Phase.OPERATING)
        spec = conversation.dialect.notifications[half.side].get(method)
        if self._knows_agreement(half):
            breach = judge_notification(conversation, half.side, method, spec, params, self._shape)
        else:
            breach = None if spec is not None and spec.early else too_early(method)
        if breach is None and half.side is Side.SERVER and self._halves[Side.CLIENT].whole:
            breach = self._judge_wish(method, params)
        if self._n_modern or conversation.phase is Phase.NEW:
            breach = self._by_either_era(half, method, params, breach)
        if breach is not None:
            self._accuse(half, breach, method)

    def _judge_wish(self, method: str, params: JSONObject) -> Breach | None:
        """Whether the client wanted to be told this, as far as that is certain."""
        if method == "notifications/message" and self._level.forbids(params["level"]):
            return Breach("LOG-004", f"a log message of level {params['level']}, below the one set")
        if method == "notifications/resources/updated" and self._subscriptions.certainly_none:
            return Breach("RES-008", f"{method} without any subscription")
        return None
