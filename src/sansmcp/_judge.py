"""The rules that decide whether a message may be sent, by the side that sends it.

Nothing here changes anything. The same judgement becomes an exception for our caller and an event
for the peer's message; what a side may send never depends on which of the two we are.
"""

from __future__ import annotations

from typing import Any

import attrs

from ._conversation import Conversation
from ._errors import ErrorCode, LocalProtocolError
from ._lifecycle import Phase
from ._registry import KNOWN_METHODS, OBJECT, TASK, Members, Method
from ._values import MISSING, JSONObject, Side

_OPERATING = Phase.OPERATING


@attrs.frozen
class Breach:
    """A rule that a message breaks. `tolerated`: it is reported, and handled all the same."""

    rule: str
    text: str
    code: int = ErrorCode.INVALID_REQUEST
    tolerated: bool = False

    def error(self) -> LocalProtocolError:
        """The same breach as an exception for our own caller."""
        return LocalProtocolError(self.rule, self.text)


def judge_request(
    conversation: Conversation,
    sender: Side,
    method: str,
    spec: Method | None,
    params: JSONObject,
    shape: bool,
) -> Breach | None:
    """Whether `sender` may send this request now; `spec` is what the agreed revision says of it."""
    early: Breach | None = None
    if conversation.phase is not _OPERATING:
        early = judge_phase(conversation.phase, sender, method)
        if early is not None and not early.tolerated:
            return early
    elif method == "initialize":
        return Breach("LIFE-001", "initialize came a second time")
    if spec is None:
        return _unknown_request(conversation, sender, method) or early
    gates = conversation.gates[1 - sender]
    if spec.gate not in gates:
        return Breach(
            capability_rule(conversation),
            f"{method} needs the capability {spec.gate}, which the {sender.other.name.lower()} "
            "did not declare",
            ErrorCode.METHOD_NOT_FOUND,
        )
    for condition in spec.conditions:
        if condition.gate not in gates and condition.applies(params):
            return Breach(
                condition.rule,
                f"{method} with this {condition.member} needs the capability {condition.gate}, "
                f"which the {sender.other.name.lower()} did not declare",
                ErrorCode.INVALID_PARAMS,
            )
    if shape:
        members = spec.params
        if spec.modes:
            mode: Any = params.get("mode", "form")
            if not isinstance(mode, str) or mode not in spec.modes:
                return Breach("ELIC-005", f"{method} in an unknown mode", ErrorCode.INVALID_PARAMS)
            members = spec.modes[mode]
        if members and (fault := misshapen(members, params)) is not None:
            return Breach("OWN-014", f"params of {method}: {fault}", ErrorCode.INVALID_PARAMS)
    return early


def judge_phase(phase: Phase, sender: Side, method: str) -> Breach | None:
    """Whether a request comes too early; `phase` is one before `OPERATING`."""
    if method == "ping":
        return None
    if method == "initialize" and sender is Side.CLIENT:
        if phase is Phase.NEW:
            return None
        return Breach("LIFE-001", "initialize came a second time")
    if sender is Side.SERVER:
        return Breach("LIFE-006", f"the server sent {method} before notifications/initialized")
    if phase is Phase.AGREED:
        return too_early(method)
    return Breach("LIFE-005", f"not initialized: {method} came before the answer to initialize")


def too_early(method: str) -> Breach:
    """The client goes on before it has said `notifications/initialized`."""
    return Breach("LIFE-004", f"{method} came before notifications/initialized", tolerated=True)


def _unknown_request(conversation: Conversation, sender: Side, method: str) -> Breach | None:
    """A method of another revision or direction is a breach.

    One that no revision has is an extension, which only the receiver can judge.
    """
    if method in KNOWN_METHODS:
        return Breach(
            "OWN-020",
            f"{method} is no request that the {sender.name.lower()} may send in revision "
            f"{conversation.dialect.revision}",
            ErrorCode.METHOD_NOT_FOUND,
        )
    return None


def judge_notification(
    conversation: Conversation,
    sender: Side,
    method: str,
    spec: Method | None,
    params: JSONObject,
    shape: bool,
) -> Breach | None:
    """Whether `sender` may send this notification now."""
    early: Breach | None = None
    if method == "notifications/initialized" and sender is Side.CLIENT:
        if conversation.phase is Phase.AGREED:
            return None
        return Breach("LIFE-004", f"{method} came while {conversation.phase.name}")
    if conversation.phase is not _OPERATING and not (spec is not None and spec.early):
        if sender is Side.SERVER or conversation.phase is not Phase.AGREED:
            return Breach("LIFE-001", f"{method} came before the handshake was done")
        early = too_early(method)
    if spec is None:
        if method in KNOWN_METHODS:
            return Breach(
                "OWN-020",
                f"{method} is no notification that the {sender.name.lower()} may send in "
                f"revision {conversation.dialect.revision}",
            )
        return early
    if shape and (fault := misshapen(spec.params, params)) is not None:
        return Breach("OWN-014", f"params of {method}: {fault}", ErrorCode.INVALID_PARAMS)
    if not conversation.agreed:
        return early  # what either side declares is not known before
    for side, gate in ((sender, spec.sender_gate), (sender.other, spec.gate)):
        if gate not in conversation.gates[side]:
            return Breach(
                capability_rule(conversation),
                f"{method} needs the capability {gate}, which the {side.name.lower()} did not "
                "declare",
                tolerated=True,
            )
    return early


def judge_task(spec: Method, gates: frozenset[str]) -> Breach | None:
    """Whether a request may ask for a task, where the receiver has opened these gates."""
    if spec.task_gate in gates:
        return None
    return Breach(
        "TASK-002", f"{spec.name} as a task needs the capability {spec.task_gate} of the peer"
    )


def capability_rule(conversation: Conversation) -> str:
    """The rule on undeclared capabilities: a SHOULD until 2025-03-26, a MUST since."""
    return "CAP-001" if conversation.dialect.revision < "2025-06-18" else "CAP-002"


def misshapen(members: Members, value: JSONObject) -> str | None:
    """What is wrong with the required members of an object, or None."""
    for name, kinds in members:
        member: Any = value.get(name, MISSING)
        if kinds is None:
            if member is MISSING:
                return f"{name} is missing"
        elif type(member) not in kinds:
            if member is MISSING:
                return f"{name} is missing"
            # Our own caller may hand over subclasses; a bool is no number in JSON.
            if not isinstance(member, kinds) or isinstance(member, bool):
                return f"{name} has the wrong type"
    return None


_TASK_RESULT: Members = (("task", OBJECT),)


def misshapen_result(spec: Method, as_task: object, result: JSONObject) -> str | None:
    """What is wrong with a result of a method, or None.

    Where a task was accepted, a `CreateTaskResult` may stand in its place (MCP 2025-11-25,
    basic/utilities/tasks).
    """
    if as_task and "task" in result:
        return misshapen(_TASK_RESULT, result) or misshapen(TASK, result["task"])
    if spec.paginated is not None:
        cursor: Any = result.get("nextCursor")
        if cursor is not None and not isinstance(cursor, str):
            return "nextCursor has the wrong type"
    return misshapen(spec.result, result)
