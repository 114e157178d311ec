"""The record of one task: what a store keeps, and what messages say of it."""

from __future__ import annotations

import json
from typing import Any, Final, final

import attrs

from ..._rules.state_tables import TASK_STATUSES, TASKS, TaskStatus, TaskTrigger
from ..._wire.timestamps import LAST_SECOND, timestamp
from ..._wire.values import JSONObject, Record

_JSON: Final = ("questions", "answers", "result", "error", "capabilities", "keep")
"""The fields that are encoded JSON, or empty."""
_RESERVE: Final = 128
"""The bytes that the error and the message of a task without room need at most."""
_LONGEST_MS: Final = int(LAST_SECOND) * 1000
"""What a longer time to live counts as; an integer of the peer may be too large for a float."""


@final
@attrs.frozen(kw_only=True)
class TaskRecord(Record):
    """One task at one moment, as a store keeps it. It is plain data, and never changes.

    Attributes:
        id: The id, which nobody can guess. Whoever knows it and is the owner may use the task.
        version: The number of changes, from 1. A store writes a record only if the one that it has
            is of the version before; see `TaskToStore`.
        owner: The revision, and a key of the principal or of the session whose task it is.
        method: The method of the request that became the task.
        is_modern: Whether it is a task of 2026-07-28; else of 2025-11-25.
        status: The status.
        created_at: When the task was made, in Unix seconds.
        updated_at: When it was last changed, in Unix seconds.
        ttl_ms: Milliseconds from `created_at` for which it is kept; None: without end.
        poll_ms: Milliseconds to wait between two polls; None: that is not said.
        message: A text about the status, for people; or None.
        keys: The keys of all questions that were asked, which are not used again.
        questions: The JSON of the questions that wait for an answer, by key; or empty.
        answers: The JSON of the answers that have come, by key; or empty.
        result: The JSON of the result; or empty.
        error: The JSON of the error; or empty.
        capabilities: The JSON of the capabilities of the side that has asked for the task.
        keep: The JSON of what the application keeps with the task; or empty.
    """

    id: str = attrs.field(repr=False)
    version: int = 1
    owner: str = attrs.field(repr=False)
    method: str
    is_modern: bool
    status: TaskStatus = TaskStatus.WORKING
    created_at: float
    updated_at: float
    ttl_ms: int | None
    poll_ms: int | None = None
    message: str | None = None
    keys: tuple[str, ...] = ()
    questions: bytes = attrs.field(default=b"", repr=False)
    answers: bytes = attrs.field(default=b"", repr=False)
    result: bytes = attrs.field(default=b"", repr=False)
    error: bytes = attrs.field(default=b"", repr=False)
    capabilities: bytes = attrs.field(default=b"{}", repr=False)
    keep: bytes = attrs.field(default=b"", repr=False)

    @property
    def expires_at(self) -> float | None:
        """When the time to live is over, in Unix seconds; None: never.

        Keeps XTASK-082.
        """
        if self.ttl_ms is None:
            return None
        return self.created_at + min(self.ttl_ms, _LONGEST_MS) / 1000

    def is_expired(self, at: float | None) -> bool:
        """Whether the time to live is over at a time in Unix seconds; None: the time is unknown."""
        expires = self.expires_at
        return at is not None and expires is not None and at >= expires

    def after(
        self, trigger: TaskTrigger, at: float | None, fields: dict[str, Any]
    ) -> TaskRecord | None:
        """The record after something has happened; None: its status does not allow that.

        Args:
            trigger: What has happened.
            at: The time in Unix seconds; None: it is unknown.
            fields: The fields that get other values.
        """
        status = TASKS.get((self.status, trigger))
        if status is None:
            return None
        if status.is_final:
            fields = {**fields, "questions": b"", "answers": b""}
        updated = self.updated_at if at is None else max(at, self.updated_at)
        return attrs.evolve(
            self, version=self.version + 1, status=status, updated_at=updated, **fields
        )

    @property
    def place(self) -> str:
        """The place among the tasks of its owner: texts in rising order, by time of creation."""
        return f"{int(self.created_at * 1000):015d} {self.id}"

    @property
    def size(self) -> int:
        """The bytes for which it counts: what the peer and the application have put into it.

        A task that is not over counts for some more, so that it can always fail for lack of room.
        """
        texts = sum(map(len, self.keys)) + len(self.message or "")
        size = texts + sum(len(getattr(self, name)) for name in _JSON)
        return size if self.status.is_final else size + _RESERVE

    def to_bytes(self) -> bytes:
        """The record as one JSON text, for stores outside of this process."""
        fields: JSONObject = {
            field.name: getattr(self, field.name) for field in attrs.fields(TaskRecord)
        }
        fields["status"] = self.status.text
        for name in _JSON:
            fields[name] = fields[name].decode()
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> TaskRecord:
        """The record that `to_bytes` has written.

        Raises:
            ValueError: It has not written this.
        """
        try:
            fields: Any = json.loads(data)
            fields["status"] = TASK_STATUSES[fields["status"]]
            fields["keys"] = tuple(fields["keys"])
            for name in _JSON:
                fields[name] = fields[name].encode()
            return cls(**fields)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            raise ValueError("this is no record of a task") from None

    def to_object(self) -> JSONObject:
        """The members that each message about the task has.

        Keeps TASK-019, XTASK-033, XTASK-034, XTASK-035, XTASK-036, XTASK-037, XTASK-038,
        XTASK-039, XTASK-040, XTASK-041, XTASK-042.
        """
        task: JSONObject = {
            "taskId": self.id,
            "status": self.status.text,
            "createdAt": timestamp(self.created_at),
            "lastUpdatedAt": timestamp(self.updated_at),
            "ttlMs" if self.is_modern else "ttl": self.ttl_ms,
        }
        if self.message is not None:
            task["statusMessage"] = self.message
        if self.poll_ms is not None:
            task["pollIntervalMs" if self.is_modern else "pollInterval"] = self.poll_ms
        return task

    @property
    def payload(self) -> bytes:
        """The JSON member of a task of 2026-07-28 that belongs to its status, or nothing.

        Keeps XTASK-044, XTASK-045.
        """
        if self.status is TaskStatus.INPUT_REQUIRED:
            return b',"inputRequests":' + self.questions
        if self.status is TaskStatus.COMPLETED:
            return b',"result":' + self.result
        if self.status is TaskStatus.FAILED:
            return b',"error":' + self.error
        return b""
