"""The queue of observations, and the message that they are about."""

from __future__ import annotations

from collections import deque
from typing import Final

from .._rules.messages import null_member
from .._rules.sending import Breach, null_members, without_nulls
from .._spec.methods import OptionalMembers
from .._spec.rule_levels import LEVELS
from .._wire.values import JSONObject, RequestId, Side
from ._events import (
    BlindCause,
    BlindSpot,
    MessageKind,
    MessageSeen,
    Observation,
    TaskSeen,
    ViolationSeen,
)

_ANY_REVISION: Final = ("JSON-", "ERR-", "STDIO-", "OWN-017", "OWN-018")
"""The rules of JSON-RPC and of lines, which hold in every revision."""


class Observations:
    """The observations that the caller has not taken yet, and the message being judged.

    Every part of an observer reports through this object, which adds number, index and time.

    Attributes:
        queue: The observations, the oldest first.
        now: The latest time that the caller gave, in seconds; None before the first.
        number: The number of the current line or message, from 1.
        index: The place of the current message in its batch, from 0; None outside of a batch.
        from_line: Whether the current message came as bytes on a line.
        in_refused_batch: Whether the receiver may refuse the whole batch of the current message.
        is_posted: Whether the client POSTs its messages, where a batch is of one kind.
        unknown_revision: Whether the handshake agreed on a revision that is not known here. Then
            only violations of rules that hold in every revision are reported.
    """

    __slots__ = (
        "_reported_spots",
        "from_line",
        "in_refused_batch",
        "index",
        "is_posted",
        "now",
        "number",
        "queue",
        "unknown_revision",
    )

    def __init__(self) -> None:
        self.queue: deque[Observation] = deque()
        self.now: float | None = None
        self.number: int = 0
        self.index: int | None = None
        self.from_line = False
        self.in_refused_batch = False
        self.is_posted = False
        self.unknown_revision = False
        self._reported_spots: set[tuple[Side | None, str]] = set()

    def add_message(
        self,
        side: Side,
        kind: MessageKind,
        method: str | None,
        id: RequestId | None,
        message: object,
    ) -> None:
        """Report the current message."""
        self.queue.append(
            MessageSeen(
                side=side,
                kind=kind,
                method=method,
                id=id,
                message=message,
                number=self.number,
                index=self.index,
                time=self.now,
            )
        )

    def add_task(self, owner: Side, task_id: str, method: str | None, status: str) -> None:
        """Report that a task has another status than before.

        Args:
            owner: The side whose task it is.
            task_id: The id of the task.
            method: The method of its request; None where that was not seen.
            status: The status.
        """
        self.queue.append(
            TaskSeen(
                side=owner,
                task_id=task_id,
                method=method,
                status=status,
                number=self.number,
                index=self.index,
                time=self.now,
            )
        )

    def add_violation(
        self,
        side: Side,
        breach: Breach,
        method: str | None = None,
        id: RequestId | None = None,
    ) -> None:
        """Report that a side broke a rule with the current message.

        Args:
            side: The side that broke it.
            breach: The rule, and how it was broken.
            method: The method of the message, or of the request that it is about.
            id: The id of the request that it is about.
        """
        if self.unknown_revision and not breach.rule.startswith(_ANY_REVISION):
            return
        rule = breach.rule_of_sender
        self.queue.append(
            ViolationSeen(
                side=side,
                rule=rule,
                level=LEVELS[rule],
                text=breach.text,
                method=method,
                id=id,
                number=self.number,
                index=self.index,
                time=self.now,
            )
        )

    def without_nulls(
        self,
        side: Side,
        optional: OptionalMembers,
        value: JSONObject,
        method: str,
        id: RequestId | None,
    ) -> JSONObject:
        """Return an object without optional members that are null, and report each of those."""
        for name in null_members(optional, value):
            self.add_violation(side, null_member(name), method, id)
        return without_nulls(optional, value)

    def add_blind_spot(self, cause: BlindCause, side: Side | None, text: str) -> None:
        """Report that less is judged from here on; each text once for each side."""
        if (side, text) not in self._reported_spots:
            self._reported_spots.add((side, text))
            self.queue.append(
                BlindSpot(cause=cause, side=side, text=text, number=self.number, time=self.now)
            )
