"""Progress and cancellations that pass by: which request they are about, and if they may be."""

from __future__ import annotations

from typing import Any

from ._judge import Breach
from ._observations import CancellationMatched
from ._values import JSONObject, ProgressToken, id_key
from ._watched import Asked, Half, TokenUse
from ._watching_answers import AnswerWatching
from ._wellformed import judge_cancellation, judge_progress, no_increase

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
        token = id_key(params["progressToken"])
        assert token is not None  # it was judged
        use = asker.tokens.get(token)
        if use is None:
            if asker.has_used(token) is False and not asker.odd_tokens and not self._modern:
                breach = Breach("PROG-006", f"the progress token {token!r} is no request's")
                self._accuse(half, breach, _PROGRESS)
            return
        if use.asked.place > half.read:
            half.read = use.asked.place
        # A request that was not seen may have had the same token.
        if asker.whole and self._judged and not use.shared and not use.asked.modern:
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
        if not asked.waits and use.task is None:
            return Breach("PROG-010", f"progress of {asked.method} after its answer")
        if last is not None and progress <= last:
            return no_increase(last, progress)
        return None

    # --------------------------------------------------------------------------- cancellation

    def _see_cancelled(self, half: Half, params: JSONObject) -> None:
        conversation = self._conversation
        judged = self._judged and not self._modern
        key = id_key(params.get("requestId"))
        if key is None:
            if judged and conversation.agreed and self._knows_agreement(half):
                breach = judge_cancellation(params, conversation.dialect)
                assert breach is not None  # there is no usable id
                self._accuse(half, breach, _CANCELLED)
            return
        asked = half.open.get(key) or half.done.get(key)
        if asked is None:
            if judged and half.has_asked(key) is False:
                breach = Breach("CANC-001", "a cancellation of no request of its sender")
                self._accuse(half, breach, _CANCELLED, key)
            return
        reason: Any = params.get("reason")
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
        if judged and (breach := self._judge_cancelled(half, asked)) is not None:
            self._accuse(half, breach, asked.method, asked.id)
        asked.cancelled = True
        if asked is not self._opening:
            self._finish(half, asked)

    @staticmethod
    def _judge_cancelled(half: Half, asked: Asked) -> Breach | None:
        if asked.method == "initialize":
            return Breach("CANC-004", "initialize cannot be cancelled")
        if asked.as_task and asked.subject:
            return Breach("CANC-005", f"{asked.method} asked for a task: tasks/cancel ends it")
        if not asked.waits and asked.n_asked == 1 and half.read >= asked.answer_place:
            return Breach("CANC-002", f"{asked.method} was answered, which its sender has read")
        return None
