"""Progress tokens, the notifications that use them, and the tasks that keep them in use.

Source: MCP 2025-11-25, basic/utilities/progress and basic/utilities/tasks; MCP 2026-07-28,
basic/patterns/progress.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from .._connection.used_ids import UsedIds
from .._rules.messages import judge_progress, no_increase, token_in, token_in_use
from .._rules.sending import Breach
from .._rules.tasks import judge_related
from .._spec.tasks import finished_tasks, new_task
from .._wire.values import JSONObject, ProgressToken, Side, table_key
from ._events import BlindCause
from ._handshake import Handshake
from ._history import ObserverCore, SeenRequest, SideHistory
from ._subscriptions import SeenSubscription

PROGRESS: Final = "notifications/progress"
_TOKEN: Final = "the oldest progress token was forgotten: its progress is not judged any more"
_USED_TOKEN: Final = (
    "a used token was forgotten: progress with unknown tokens is not judged any more"
)
_TASK: Final = "a task was not remembered: progress after its end is not judged any more"


@attrs.define(eq=False, repr=False)
class _TokenUse:
    """A progress token, and the last request that was sent with it.

    Attributes:
        request: That request.
        last: The last progress that was seen; None before the first.
        is_shared: Whether an earlier request with the same token had no response yet, so that
            progress may belong to either request.
        task: The id of the task that the request became; None where there is none.
        is_task_over: Whether the end of the task was seen.
    """

    request: SeenRequest
    last: float | None = None
    is_shared: bool = False
    task: str | None = None
    is_task_over: bool = False

    @property
    def is_active(self) -> bool:
        """Whether the request certainly counts as active for the side that sent it."""
        request = self.request
        return request.is_open and not request.is_cancelled and not request.is_reported


@attrs.define(eq=False, repr=False)
class _SideTokens:
    """The progress tokens of one side's requests.

    Attributes:
        latest: The latest tokens, with their requests.
        used: All tokens.
        by_task: The token of each task that is not over.
        has_odd: Whether one of the tokens was illegal, so that progress may echo it.
    """

    used: UsedIds
    latest: dict[ProgressToken, _TokenUse] = attrs.field(factory=dict[ProgressToken, _TokenUse])
    by_task: dict[str, _TokenUse] = attrs.field(factory=dict[str, _TokenUse])
    has_odd: bool = False

    def end_task(self, task_id: str) -> None:
        """A task is over, if it is remembered."""
        use = self.by_task.pop(task_id, None)
        if use is not None:
            use.is_task_over = True


@attrs.define(eq=False, repr=False)
class SeenProgress:
    """Judges progress tokens, and the progress that is sent with them."""

    _core: ObserverCore
    _handshake: Handshake
    _tokens: tuple[_SideTokens, _SideTokens] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Make the tables of both sides."""
        client, server = (_SideTokens(UsedIds(self._core.config.max_used_ids)) for _ in Side)
        self._tokens = (client, server)

    # ---------------------------------------------------------------------------------- tokens

    def take_request(self, sender: SideHistory, request: SeenRequest, meta: object) -> None:
        """Judge and remember the token in the `_meta` of a request, if there is one."""
        token = token_in(meta)
        if token is None:
            return
        tokens, core = self._tokens[sender.side], self._core
        if isinstance(token, Breach):
            tokens.has_odd = True
            core.add_violation(sender.side, token, request.method, request.id)
            return
        use = _TokenUse(request)
        key: Any = table_key(token)
        former = tokens.latest.pop(key, None)
        if former is not None and (former.request.is_open or former.is_shared):
            use.is_shared = True
            # If not readable, there may have been a response.
            is_readable = self._core.sides[1 - sender.side].is_readable
            if former.is_active and not former.is_shared and is_readable and request.is_judged:
                core.add_violation(sender.side, token_in_use(token), request.method, request.id)
        request.token = key
        tokens.latest[key] = use
        if len(tokens.latest) > self._core.config.max_requests:
            del tokens.latest[next(iter(tokens.latest))]
            core.add_blind_spot(BlindCause.FORGOTTEN, sender.side, _TOKEN)
        tokens.used.add(key)
        if tokens.used.forgotten:
            core.add_blind_spot(BlindCause.FORGOTTEN, sender.side, _USED_TOKEN)

    # ---------------------------------------------------------------------------- notifications

    def take_notification(self, sender: SideHistory, params: JSONObject) -> None:
        """Judge `notifications/progress`."""
        core = self._core
        requester = core.sides[1 - sender.side]
        tokens = self._tokens[requester.side]
        breach = judge_progress(params)
        if breach is not None:
            if breach.rule != "PROG-001" or not tokens.has_odd:
                core.add_violation(sender.side, breach, PROGRESS)
            return
        token = table_key(params["progressToken"])
        assert token is not None  # it was judged
        use = tokens.latest.get(token)
        if use is None:
            if (
                token not in tokens.used
                and not tokens.used.forgotten
                and requester.is_complete
                and not tokens.has_odd
                and not core.modern.n_unknown
            ):
                breach = self._judge_unknown(sender, token)
                core.add_violation(sender.side, breach, PROGRESS)
            return
        request = use.request
        if request.place > sender.read_place:
            sender.read_place = request.place
        is_certain = request.terms is not None if request.is_modern else self._handshake.is_certain
        # A request that was not seen may have had the same token.
        if requester.is_complete and is_certain and not use.is_shared:
            breach = _judge_use(use, params)
            if breach is not None:
                core.add_violation(sender.side, breach, request.method, request.id)

    def _judge_unknown(self, sender: SideHistory, token: ProgressToken) -> Breach:
        is_modern = self._core.modern.n_served and self._handshake.has_not_begun
        if sender.side is Side.CLIENT and is_modern:
            return Breach("PROG-014", "the client sends progress")
        return Breach("PROG-006", f"the progress token {token!r} is no request's")

    # ----------------------------------------------------------------------------------- tasks

    def take_task(self, requester: SideHistory, request: SeenRequest, result: JSONObject) -> None:
        """A request became a task: its token stays in use until the task is over (PROG-011)."""
        tokens = self._tokens[requester.side]
        task_id = new_task(result)
        use = None if request.token is None else tokens.latest.get(request.token)
        if use is None or use.request is not request or task_id is None:
            return
        tokens.end_task(task_id)
        use.task = task_id
        if len(tokens.by_task) < self._core.config.max_requests:
            tokens.by_task[task_id] = use
        else:
            self._core.add_blind_spot(BlindCause.FORGOTTEN, requester.side, _TASK)

    def end_tasks(self, requester: Side, method: str, content: JSONObject) -> None:
        """Take the state of tasks from a result or a notification of the other side."""
        tokens = self._tokens[requester]
        if tokens.by_task and method.startswith(("tasks/", "notifications/tasks/")):
            for task_id in finished_tasks(method, content):
                tokens.end_task(task_id)


def _judge_use(use: _TokenUse, params: JSONObject) -> Breach | None:
    """Judge progress of one request.

    Keeps XTASK-132.
    """
    request, last, progress = use.request, use.last, params["progress"]
    if last is None or progress > last:
        use.last = progress
    if use.is_task_over:
        return Breach("PROG-012", f"progress of {request.method}, whose task is over")
    if isinstance(request.subject, SeenSubscription):
        return Breach("SUBS-017", "progress of a subscription")
    if request.is_modern and request.as_task:
        return Breach("XTASK-132", f"progress of {request.method}, which became a task")
    may_be_task = request.may_be_task or (
        request.terms is not None and request.terms.has_extensions
    )
    if not (request.is_open or use.task is not None or may_be_task):
        return Breach("PROG-010", f"progress of {request.method} after its response")
    if last is not None and progress <= last:
        return no_increase(last, progress)
    if use.task is not None:
        return judge_related(use.task, params.get("_meta"), f"progress of {request.method}")
    return None
