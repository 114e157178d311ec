"""Answers that pass by: which request each belongs to, and what it changes for good."""

from __future__ import annotations

from typing import Any

from .._rules.messages import (
    BAD_ANSWER_ID,
    is_error,
    judge_answer,
    judge_capabilities,
    judge_error_without_id,
    retyped,
)
from .._rules.sending import Breach, misshapen_result
from .._rules.state_tables import Phase, PhaseTrigger
from .._spec.legacy_methods import TASK_OPTIONAL
from .._spec.registry import LEGACY_REVISIONS
from .._spec.tasks import finished_tasks, new_task
from .._wire.values import MISSING, IdKey, JSONObject, Side, id_key, is_object, table_key
from ._events import AnswerMatched, BlindCause, HandshakeSeen, MessageKind
from ._history import Asked, Half, TokenUse
from ._stateless import ModernWatching

_TASK = "a task was not remembered: progress after its end is not judged any more"
_ERA = "what was agreed on is not known here: nothing that depends on it is judged"


class AnswerWatching(ModernWatching):
    """Matches answers with requests, and follows the handshake by them."""

    __slots__ = ()

    def _see_answer(self, half: Half, message: JSONObject, key: IdKey | None) -> None:
        asker = self._halves[1 - half.side]
        raw: Any = message.get("id")
        asked: Asked | None = None
        if key is not None:
            asked = asker.open.get(key) or asker.done.get(key)
        if "error" in message:
            kind = MessageKind.ERROR
        else:
            kind = MessageKind.RESULT if "result" in message else MessageKind.INVALID
        method = None if asked is None else asked.method
        self._seen(half, kind, method, None if key is None else raw, message)
        if asked is None:
            asked = self._find_stray(half, asker, message, raw, key)
            if asked is None:
                return
        if asked.place > half.read:
            half.read = asked.place
        asked.n_answered += 1
        asked.answer_place = self._number if self._index is None else 0
        if self._forbidden:
            asked.n_asked += 1  # whoever has asked may not take it for an answer
        if asked.n_answered > asked.n_asked:
            if asker.whole and asked.key not in asker.excused:
                breach = Breach("JSON-004", f"{asked.method} was answered before")
                self._accuse(half, breach, asked.method, asked.id)
            return
        self._match(half, asker, asked, message)
        if asked.n_answered == asked.n_asked:
            self._finish(asker, asked)

    def _match(self, half: Half, asker: Half, asked: Asked, message: JSONObject) -> None:
        result: Any = message.get("result", MISSING)
        breach: Breach | None = None
        is_plain = result.__class__ is dict and "error" not in message
        code: int | None = None
        if not is_plain or message.get("jsonrpc") != "2.0":
            breach = judge_answer(message)
            if breach is None:
                code = message["error"]["code"]
        now, then = self._now, asked.time
        self._events.append(
            AnswerMatched(
                side=asker.side,
                method=asked.method,
                id=asked.id,
                request_number=asked.number,
                number=self._number,
                index=self._index,
                time=now,
                seconds=None if now is None or then is None else now - then,
                code=code,
                cancelled=asked.cancelled,
            )
        )
        spec = asked.spec
        if asked.n_asked > 1:  # it may belong to another request of that id
            if asked is self._opening:
                self._lose_track()
        elif asked.modern:
            self._match_modern(half, asked, message, breach, code)
            return
        elif is_plain:
            if spec is not None and None in result.values():
                result = self._without_nulls(
                    half, spec.result_optional, result, asked.method, asked.id
                )
            if asked.as_task and is_object(task := result.get("task")):
                task = self._without_nulls(half, TASK_OPTIONAL, task, asked.method, asked.id)
                result = {**result, "task": task}
            if (
                breach is None
                and self._shape
                and spec is not None
                and (wrong := misshapen_result(spec, asked.as_task, result)) is not None
            ):
                breach = Breach(spec.result_rule, f"result of {asked.method}: {wrong}")
            if spec is not None and (spec.special or asked.as_task):
                self._take_result(asker, asked, result)
        elif breach is None:
            self._take_error(asked)
        elif asked is self._opening:
            self._lose_track()
        if asked.due is not None and not asked.modern and self._conversation.phase is Phase.NEW:
            breach = Breach(asked.due, f"the client answers {asked.method}")
        if breach is not None:
            self._accuse(half, breach, asked.method, asked.id)
            self._excuse(half, asked.key)
        if asked.batched and self._bytes and self._index is None and self._has_batches():
            text = f"{asked.method} came in a batch, and its answer outside of one"
            self._accuse(half, Breach("BATCH-005", text), asked.method, asked.id)

    def _match_modern(
        self, half: Half, asked: Asked, message: JSONObject, breach: Breach | None, code: int | None
    ) -> None:
        if code is not None:
            breach = self._see_error(half, asked, code, message["error"].get("data"))
        elif breach is None:
            breach = self._see_result(half, asked, message["result"])
        if breach is not None:
            self._accuse(half, breach, asked.method, asked.id)

    def _has_batches(self) -> bool:
        """Whether a revision with batches is agreed on."""
        conversation = self._conversation
        return self._judged and conversation.agreed and conversation.dialect.has_batches

    def _find_stray(
        self, half: Half, asker: Half, message: JSONObject, raw: object, key: IdKey | None
    ) -> Asked | None:
        """The request that an answer means whose id is not remembered; or say what is wrong."""
        if key is None:
            if raw is None and is_error(message.get("error")):
                agreed = self._judged and self._conversation.agreed
                if half.side is Side.SERVER and self._n_modern:
                    agreed = False  # it may be about a message of the other era
                dialect = self._conversation.dialect if agreed else None
                breach = judge_error_without_id(message, dialect)
                if breach is not None:
                    self._accuse(half, breach)
            elif asker.whole:
                self._accuse(half, BAD_ANSWER_ID)
            return None
        if asker.has_asked(key) is not False:
            return None  # it is not known, or was forgotten
        other = table_key(retyped(key))
        asked = None if other is None else asker.open.get(other)
        if asked is None:
            self._accuse(half, Breach("JSON-004", "an answer names no request"), id=id_key(raw))
        else:
            text = f"an answer has the id {raw!r} instead of {other!r}"
            self._accuse(half, Breach("JSON-004", text), asked.method, asked.id)
        return asked

    # ---------------------------------------------------------------------- what an answer does

    def _take_result(self, asker: Half, asked: Asked, result: JSONObject) -> None:
        method = asked.method
        if method == "initialize":
            if asked is self._opening:
                self._agree(asked, result)
            else:
                self._lose_track()  # a second handshake, which has come to something
        elif method == "logging/setLevel":
            self._level.answered(asked.subject, accepted=True)
        elif method == "resources/subscribe":
            self._subscriptions.answered(asked.subject, accepted=True)
        elif method == "resources/unsubscribe":
            if asked.subject is not None:
                self._subscriptions.ended(*asked.subject)
        elif asked.as_task:
            self._keep_token(asker, asked, new_task(result))
        else:
            self._tasks_seen(asker, method, result)

    def _take_error(self, asked: Asked) -> None:
        method = asked.method
        if asked is self._opening:
            self._opening = None
            self._conversation.move(PhaseTrigger.INITIALIZE_ERROR)
        elif method == "logging/setLevel" and asked.spec is not None:
            self._level.answered(asked.subject, accepted=False)
        elif method == "resources/subscribe" and asked.spec is not None:
            self._subscriptions.answered(asked.subject, accepted=False)

    def _agree(self, asked: Asked, result: JSONObject) -> None:
        revision: Any = result.get("protocolVersion")
        capabilities: Any = result.get("capabilities")
        if not isinstance(revision, str) or not is_object(capabilities):
            self._lose_track()
            return
        info: Any = result.get("serverInfo")
        client_info, client_capabilities = asked.subject
        self._events.append(
            HandshakeSeen(
                revision=revision,
                client_info=client_info,
                server_info=info if is_object(info) else None,
                client_capabilities=client_capabilities,
                server_capabilities=capabilities,
                number=self._number,
                time=self._now,
            )
        )
        is_known = revision in LEGACY_REVISIONS
        if not is_known or client_capabilities is None:
            self._foreign = not is_known
            self._lose_track()
            self._blind(BlindCause.ERA, None, _ERA)
            return
        self._foreign = False
        conversation = self._conversation
        conversation.dialect = self._registry.dialects[revision]
        conversation.gates[Side.CLIENT] = self._registry.open_gates(client_capabilities)
        conversation.gates[Side.SERVER] = self._registry.open_gates(capabilities)
        conversation.move(PhaseTrigger.INITIALIZE_RESULT)
        for side, declared in ((Side.CLIENT, client_capabilities), (Side.SERVER, capabilities)):
            for breach in judge_capabilities(self._registry, revision, declared):
                self._accuse(self._halves[side], breach, asked.method, asked.id)
        if self._initialized_early:
            self._operate()

    def _operate(self) -> None:
        """`notifications/initialized` has followed the answer: all is known from here on."""
        assert self._conversation.phase is Phase.AGREED
        self._conversation.move(PhaseTrigger.INITIALIZED)
        self._judged = True

    # ----------------------------------------------------------------------------------- tasks

    def _keep_token(self, asker: Half, asked: Asked, task_id: str | None) -> None:
        """The token of a task stays in use until the task is over (PROG-011)."""
        use = None if asked.token is None else asker.tokens.get(asked.token)
        if use is None or use.asked is not asked or task_id is None:
            return
        self._end_task(asker, task_id)
        use.task = task_id
        if len(asker.tasks) < self._config.max_requests:
            asker.tasks[task_id] = use
        else:
            self._blind(BlindCause.FORGOTTEN, asker, _TASK)

    def _tasks_seen(self, asker: Half, method: str, content: JSONObject) -> None:
        """Tasks of one side's requests came by, in a result or a notification of the other."""
        if asker.tasks and method.startswith(("tasks/", "notifications/tasks/")):
            for task_id in finished_tasks(method, content):
                self._end_task(asker, task_id)

    @staticmethod
    def _end_task(asker: Half, task_id: str) -> None:
        use: TokenUse | None = asker.tasks.pop(task_id, None)
        if use is not None:
            use.task_over = True
