"""Progress and cancellations that pass by: which request they are about, and if they may be."""

from __future__ import annotations

from typing import Any

from .._rules.messages import judge_cancellation, judge_progress, no_increase
from .._rules.sending import Breach
from .._spec.methods import Dialect
from .._wire.values import IdKey, JSONObject, ProgressToken, Side, id_key, table_key
from ._history import Asked, Half, TokenUse
from ._modern_history import Listening
from ._responses import AnswerWatching

_PROGRESS = "notifications/progress"
_CANCELLED = "notifications/cancelled"


class ProgressWatching(AnswerWatching):
    """Judges what is said about requests in flight."""

    __slots__ = ()

    # -------------------------------------------------------------------------------- progress

    def _see_progress(self, half: Half, params: JSONObject) -> None:
        asker = self._halves[1 - half.side]
        breach = judge_progress(params)
        if breach is not None:
            if breach.rule != "PROG-001" or not asker.odd_tokens:
                self._accuse(half, breach, _PROGRESS)
            return
        token = table_key(params["progressToken"])
        assert token is not None  # it was judged
        use = asker.tokens.get(token)
        if use is None:
            if asker.has_used(token) is False and not asker.odd_tokens and not self._alien:
                breach = Breach("PROG-006", f"the progress token {token!r} is no request's")
                if half.side is Side.CLIENT and self._modern and self._is_new:
                    breach = Breach("PROG-014", "the client sends progress")
                self._accuse(half, breach, _PROGRESS)
            return
        if use.asked.place > half.read:
            half.read = use.asked.place
        # A request that was not seen may have had the same token.
        certain = use.asked.terms is not None if use.asked.modern else self._judged
        if asker.whole and certain and not use.shared:
            breach = self._judge_use(use, token, params["progress"])
            if breach is not None:
                self._accuse(half, breach, use.asked.method, use.asked.id)

    @staticmethod
    def _judge_use(use: TokenUse, token: ProgressToken, progress: Any) -> Breach | None:
        asked, last = use.asked, use.last
        if last is None or progress > last:
            use.last = progress
        if use.task_over:
            return Breach("PROG-012", f"progress of {asked.method}, whose task is over")
        if isinstance(asked.subject, Listening):
            return Breach("SUBS-017", "progress of a subscription")
        is_extended = asked.terms is not None and asked.terms.extends  # it may have tasks
        if not (asked.waits or use.task is not None or is_extended or asked.may_be_task):
            return Breach("PROG-010", f"progress of {asked.method} after its answer")
        if last is not None and progress <= last:
            return no_increase(last, progress)
        return None

    # --------------------------------------------------------------------------- cancellation

    def _see_cancelled(self, half: Half, params: JSONObject) -> None:
        judged = self._judged and not self._alien
        reason: Any = params.get("reason")
        key = table_key(params.get("requestId"))
        if key is None:
            if judged and (dialect := self._dialect_of(half)) is not None:
                breach = judge_cancellation(params, dialect)
                assert breach is not None  # there is no usable id
                self._accuse(half, breach, _CANCELLED)
            return
        asked = half.open.get(key) or half.done.get(key)
        meant = self._may_be(key) if half.side is Side.SERVER and self._n_modern else None
        if meant is not None and (meant.modern or meant.n_asked > 1):
            if asked is None and half.has_asked(key) is False:
                self._cancelled_by_server(half, meant, reason)
                return
            judged = False  # it may mean either
        if asked is None:
            if judged and half.has_asked(key) is False and not self._has_forgotten(half, key):
                text = "a cancellation of no request of its sender"
                breach = Breach(self._rule_on_cancelling(half), text)
                self._accuse(half, breach, _CANCELLED, id_key(params["requestId"]))
            return
        self._match_cancellation(half, asked, reason)
        if asked.is_judged if asked.modern else judged:
            breach = self._judge_cancelled(half, asked)
            if breach is not None:
                self._accuse(half, breach, asked.method, asked.id)
        asked.cancelled = True
        if (
            isinstance(asked.subject, Listening)
            and not asked.subject.cancelled_at
            and self._index is None
        ):
            asked.subject.cancelled_at = self._number
            self._listenings.drop(asked.subject)
        if asked is not self._opening:
            self._finish(half, asked)

    @staticmethod
    def _judge_cancelled(half: Half, asked: Asked) -> Breach | None:
        if asked.method == "initialize":
            return Breach("CANC-004", "initialize cannot be cancelled")
        if asked.as_task and asked.subject:
            return Breach("CANC-005", f"{asked.method} asked for a task: tasks/cancel ends it")
        if not asked.waits and asked.n_asked == 1 and half.has_read(asked.answer_place):
            rule = "CANC-003" if asked.modern else "CANC-002"
            return Breach(rule, f"{asked.method} was answered, which its sender has read")
        return None

    def _rule_on_cancelling(self, half: Half) -> str:
        """The rule that a side breaks by cancelling nothing that it may cancel."""
        if self._is_new and half.side is Side.CLIENT and self._modern:
            return "CANC-003"
        if self._is_new and half.side is Side.SERVER and self._serves_modern:
            return "CANC-019"
        return "CANC-001"

    def _has_forgotten(self, half: Half, key: IdKey) -> bool:
        """Whether the server may mean a subscription that is not remembered."""
        if half.side is Side.CLIENT or not self._n_modern:
            return False
        return self._may_be(key) is None and self._halves[Side.CLIENT].has_asked(key) is not False

    def _dialect_of(self, half: Half) -> Dialect | None:
        """The revision by which a side certainly speaks where it names no request."""
        conversation = self._conversation
        if conversation.agreed and self._knows_agreement(half):
            return conversation.dialect
        speaks = self._modern if half.side is Side.CLIENT else self._serves_modern
        return self._dialect if speaks and self._is_new else None
