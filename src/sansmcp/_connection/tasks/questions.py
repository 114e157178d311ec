"""Questions about a task to a client of 2025-11-25, which are sent as requests of the server.

A question goes out with the response to `tasks/result` if one is open, else on any stream that
reaches the client. Without one it waits for `tasks/result`.

Source: MCP 2025-11-25, basic/utilities/tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._rules.conversation import Conversation, Peer
from ..._rules.sending import judge_request, without_nulls
from ..._rules.state_tables import Phase, TaskTrigger
from ..._spec.errors import ErrorCode, LocalProtocolError
from ..._spec.methods import META
from ..._spec.modern_methods import MODERN_REVISION
from ..._spec.registry import LEGACY_REVISIONS
from ..._spec.tasks import RELATED_TASK
from ..._wire.values import JSONObject
from ..core import Core
from ..events import ErrorReceived, ResponseReceived, TaskEnd
from ..handles import OutgoingRequest, Purpose, Task
from ..incoming import IncomingRequests
from ..outgoing import Outcome, OutgoingRequests
from .board import TaskBoard
from .operations import TaskChange
from .records import TaskRecord


def owner_of(core: Core, peer: Peer, is_modern: bool) -> str | None:
    """The owner of the tasks of a peer; None: its principal has no key.

    Without a principal it is that of the session, if there is one. The two forms have different
    owners, so that no task is in a list of the other form.
    """
    key = peer.principal_key
    if key is not None:
        name = f"principal {key}"
    elif peer.principal is None:
        name = core.transport.anonymous_owner()
    else:
        return None
    return f"{MODERN_REVISION if is_modern else LEGACY_REVISIONS[-1]} {name}"


class TaskQuestions:
    """Sends the questions of tasks to a legacy client, and takes the answers."""

    __slots__ = ("_board", "_core", "_incoming", "_outgoing")

    def __init__(
        self,
        core: Core,
        outgoing: OutgoingRequests,
        incoming: IncomingRequests,
        board: TaskBoard,
    ) -> None:
        self._core = core
        self._outgoing = outgoing
        self._incoming = incoming
        self._board = board

    def encode(
        self, task: Task, questions: Mapping[str, JSONObject]
    ) -> dict[str, tuple[str, bytes]]:
        """Method and encoded params of each question, by key; raises if one may not be sent."""
        self._core.check_open(f"questions about the task of {task._record.method}")
        conversation, side = self._conversation_of(task), self._core.side
        meta: JSONObject = {RELATED_TASK: {"taskId": task.id}}
        bodies: dict[str, tuple[str, bytes]] = {}
        for key, question in questions.items():
            method, params = question["method"], question.get("params", {})
            if params.get("mode") == "url" and "elicitationId" not in params:
                params = {**params, "elicitationId": f"{task.id}-{len(task._keys) + len(bodies)}"}
            spec = conversation.dialect.requests[side].get(method)
            params = without_nulls(META if spec is None else spec.params_optional, params)
            breach = judge_request(
                conversation, side, method, spec, params, self._core.checks_shape
            )
            if breach is not None and not breach.tolerated:
                raise breach.error()
            bodies[key] = method, self._core.encode_object(params, meta)
        if len(self._outgoing.calls) + len(bodies) > self._core.config.max_requests:
            raise LocalProtocolError(
                "OWN-005", f"{len(self._outgoing.calls)} requests are in flight, near the limit"
            )
        return bodies

    def _conversation_of(self, task: Task) -> Conversation:
        """What was agreed on with the owner of a task; if it is elsewhere, what it has declared."""
        own, core = self._core.conversation, self._core
        if own.phase is Phase.OPERATING if core.is_shared else self._is_of_owner(task._record):
            return own
        declared = Conversation(core.registry.dialects[LEGACY_REVISIONS[-1]], Phase.OPERATING)
        declared.gates[core.side] = own.gates[core.side]
        declared.gates[core.other] = core.registry.open_gates(task._peer.capabilities)
        return declared

    def is_with_owner(self, record: TaskRecord) -> bool:
        """Whether this side speaks with the owner of a legacy task, at the revision of such tasks.

        Keeps TASK-041.
        """
        return self._core.conversation.phase is Phase.OPERATING and self._is_of_owner(record)

    def _is_of_owner(self, record: TaskRecord) -> bool:
        """Whether the peer is the owner of a legacy task; a task that was adopted may be another's.

        During the handshake the peer is known, but cannot be asked yet.
        """
        core = self._core
        is_able = core.peer.revision == LEGACY_REVISIONS[-1]
        return is_able and record.owner == owner_of(core, core.peer, False)

    def take(self, task: Task) -> bool:
        """Whether the questions of a task may go to this peer, and not to another that is gone."""
        return not self._core.is_shared and not task._pending and self._may_send(task)

    def _may_send(self, task: Task) -> bool:
        """Whether this peer accepts the questions that were not sent yet.

        A task that was adopted, or whose session has ended, belongs to a principal that has come
        back, perhaps as a client with other capabilities.
        """
        core = self._core
        conversation, side = core.conversation, core.side
        for method, body in (task._unsent or {}).values():
            spec = conversation.dialect.requests[side].get(method)
            params: Any = core.codec.decode(body)
            breach = judge_request(conversation, side, method, spec, params, core.checks_shape)
            if breach is not None and not breach.tolerated:
                return False
        return True

    def send(self, task: Task) -> None:
        """Send the questions of a task as requests, if the peer can be reached.

        Keeps TASK-026.
        """
        if not task._unsent:
            return
        core = self._core
        waiting = self._board.waiting_for(task.id, self)
        if waiting is None and not (
            core.transport.reaches_peer() and self.is_with_owner(task._record)
        ):
            return  # they follow with `tasks/result`, whose response brings them (TASK-030)
        if not core.is_shared and not self._may_send(task):
            return  # they were judged by what the owner had declared elsewhere
        core.transport.before_timer()
        unsent, task._unsent = task._unsent, None
        route = None if waiting is None else waiting._route
        if task._pending is None:
            task._pending = {}
        for key, (method, body) in unsent.items():
            call = self._outgoing.send_own(method, body, Purpose.QUESTION, self, task, route=route)
            task._pending[call] = key
        self._board.finish_output(core)

    def ended(self, call: OutgoingRequest, outcome: Outcome) -> None:
        """Take the ending of a question of a task (2025-11-25)."""
        task = call._subject
        assert isinstance(task, Task)
        key = (task._pending or {}).pop(call, None)
        if key is None:
            return  # `withdraw` has ended the question
        if isinstance(outcome, ResponseReceived):
            is_last = not task._pending and not task._unsent
            trigger = TaskTrigger.LAST_ANSWER if is_last else TaskTrigger.ANSWER
            answer = self._core.encode({key: outcome.result})
            self._board.run(TaskChange(self._board, task, trigger, {}, answer=answer))
            return
        said = outcome.message if isinstance(outcome, ErrorReceived) else outcome.text
        text = f"{call._method} was not answered: {said[:200]}"
        self._board.stop_work(task, TaskEnd.UNANSWERED, text)
        body = self._incoming.error_bytes(ErrorCode.INTERNAL_ERROR, text)
        fields = {"error": body, "message": text}
        self._board.run(TaskChange(self._board, task, TaskTrigger.FAIL, fields))

    def withdraw(self, task: Task) -> None:
        """Cancel the questions of a task that are not answered yet."""
        pending, task._pending, task._unsent = task._pending or {}, None, None
        for call in pending:
            self._outgoing.withdraw(call, "the question is not needed any more")
