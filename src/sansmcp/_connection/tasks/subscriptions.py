"""Subscriptions to tasks (2026-07-28): which of them a client may follow, and their notifications.

Source: the extension `io.modelcontextprotocol/tasks` of 2026-07-28.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..._rules.request_meta import SUBSCRIPTION_ID
from ..._spec.tasks import declares_tasks
from ..._wire.values import JSONObject
from ..core import Core
from ..events import CancelCause, LimitReached
from ..handles import IncomingRequest, Listener
from .operations import TaskFilter
from .owner import TaskOwner
from .records import TaskRecord

if TYPE_CHECKING:
    from ..subscriptions.server import Listeners


class TaskSubscriptions:
    """Tells the subscriptions of clients to one server of the changes of their tasks.

    Attributes:
        held: Notifications that wait until the transport takes output: the newest of each task for
            each subscription.
    """

    __slots__ = ("_board", "_core", "_filters", "_listeners", "_owner", "held")

    def __init__(self, core: Core, owner: TaskOwner, listeners: Listeners) -> None:
        self._core = core
        self._owner = owner
        self._board = owner.board
        self._listeners = listeners
        self._filters: dict[Listener, TaskFilter] = {}  # of those that are not acknowledged
        self.held: dict[tuple[Listener, str], bytes] = {}

    def judge_filter(self, request: IncomingRequest, asked: JSONObject) -> bool:
        """Refuse a subscription to tasks of a client that does not declare the extension.

        Keeps XTASK-015.

        Returns:
            Whether the subscription goes on.
        """
        if "taskIds" not in asked or declares_tasks(request._peer.capabilities):
            return True
        self._owner.refuse_undeclared(request)
        return False

    def filter(self, listener: Listener, wanted: Iterable[str]) -> None:
        """Look up the tasks in the filter of a subscription, then acknowledge it."""
        wanted = tuple(wanted)
        filter = TaskFilter(self, listener, wanted)
        self._filters[listener] = filter
        for lookup in filter.lookups:
            self._board.look_up(lookup)

    def filtered(self, filter: TaskFilter, record: TaskRecord | None) -> None:
        """Take one task of a filter, and acknowledge the subscription after the last.

        What has changed since it was looked up follows the acknowledgement.

        Keeps XTASK-124, XTASK-125, XTASK-147.
        """
        listener = filter.listener
        request = listener._request
        filter.waiting -= 1
        if not request.open:
            return
        if record is not None and self._owner.is_owner(request, record):
            listener._tasks = (*listener._tasks, record.id)
            self._board.watch(record).listeners[listener] = self
            filter.records.append(record)
        if not filter.waiting:
            self._core.transport.before_timer()
            self._listeners.send_acknowledgement(listener)
            del self._filters[listener]
            filter.lookups = ()
            for seen in filter.records:
                known = self._board.watched(seen.id)
                if known is not None and known.version > seen.version:
                    self.notify(listener, known)
            self._board.finish_output(self._core)

    def forget_listener(self, listener: Listener) -> None:
        """Send a subscription that has ended no more notifications."""
        filter = self._filters.pop(listener, None)
        if filter is not None:
            for lookup in filter.lookups:
                self._board.withdraw(lookup)
            filter.lookups = ()
        for task_id in listener._tasks:
            self._board.unwatch(task_id, listener)
            self.held.pop((listener, task_id), None)

    def notify(self, listener: Listener, record: TaskRecord) -> None:
        """Tell a subscription that a task has changed.

        Keeps XTASK-125, XTASK-126, XTASK-127, XTASK-128.
        """
        if listener._held is not None:
            return  # the acknowledgement is still to come, and the newest record after it
        self._core.transport.before_timer()
        message = (
            b'{"jsonrpc":"2.0","method":"notifications/tasks","params":{%b%b,"_meta":{"%b":%b}}}%b'
        ) % (
            self._core.encode(record.to_object())[1:-1],
            record.payload,
            SUBSCRIPTION_ID.encode(),
            listener._id,
            self._core.newline,
        )
        key = (listener, record.id)
        if not self._core.transport.holds_changes():
            self._core.transport.notify_listener(listener, message)
        elif key in self.held or len(self.held) < self._core.config.max_held_changes:
            self.held[key] = message
        else:
            text = f"{len(self.held)} tasks have changed and wait for output, which is the limit"
            self._core.events.append(LimitReached(rule="OWN-010", text=text))
        self._board.finish_output(self._core)

    def release_held(self) -> None:
        """Send the notifications that were held back, as long as there is room."""
        while self.held and not self._core.transport.holds_changes():
            key = next(iter(self.held))
            self._core.transport.notify_listener(key[0], self.held.pop(key))

    def end(self, cause: CancelCause) -> None:
        """Forget what was held back: nothing is sent any more."""
        self.held.clear()
