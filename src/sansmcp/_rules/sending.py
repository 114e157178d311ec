"""The rules on whether a side may send a message in a conversation.

The functions have no side effects and are the same for both directions. A connection turns their
verdict into an exception for its caller, or into an event about a message of the peer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from .._spec.errors import ErrorCode, LocalProtocolError
from .._spec.legacy_methods import TASK, TASK_OPTIONAL
from .._spec.methods import META, OBJECT, QUESTION, Dialect, Members, Method, OptionalMembers
from .._spec.modern_methods import META_PREFIX
from .._spec.registry import KNOWN_METHODS
from .._wire.values import (
    MISSING,
    JSONObject,
    JSONValue,
    Missing,
    Record,
    Side,
    is_object,
)
from .conversation import Conversation
from .state_tables import Phase

_OPERATING = Phase.OPERATING

_BROKEN_BY_SENDER: Final = {"MRTR-027": "MRTR-020", "PAGE-008": "OWN-014", "TOOL-026": "OWN-014"}


@attrs.frozen
class Breach(Record):
    """A rule that a message breaks.

    Attributes:
        rule: The id of the rule.
        text: The breach in one sentence.
        code: The code of the error response.
        tolerated: Whether the message is handled all the same, after a report.
        data: The data of the error response.
    """

    rule: str
    text: str
    code: int = ErrorCode.INVALID_REQUEST
    tolerated: bool = False
    data: JSONValue | Missing = MISSING

    def error(self) -> LocalProtocolError:
        """The breach as an exception for the caller who wants to send the message."""
        return LocalProtocolError(self.rule_of_sender, self.text)

    @property
    def rule_of_sender(self) -> str:
        """The rule that the sender breaks; `rule` may be the one on the receiver's response."""
        return _BROKEN_BY_SENDER.get(self.rule, self.rule)


def server_request_error(method: str) -> LocalProtocolError:
    """The error for a request of a server to a client of 2026-07-28.

    Keeps STDIO-008, SSE-005, MRTR-001.

    Source: MCP 2026-07-28, basic/patterns/index.
    """
    return LocalProtocolError(
        "STATE-006",
        f"{method} was not sent: in revision 2026-07-28 a server sends no requests; to ask the "
        "client, a handler returns RequireInput (the verb is require_input)",
    )


def unrelated_notification_error(method: str) -> LocalProtocolError:
    """The error for a notification to a client of 2026-07-28 that belongs to no request.

    Source: MCP 2026-07-28, basic/patterns/index.
    """
    return LocalProtocolError(
        "STATE-008",
        f"{method} was not sent: in revision 2026-07-28 a notification of the server belongs to a "
        "request or to a subscription; a client is told of its request by progress and log "
        "messages, and of changes by publish (for others, the verb is send_notification with "
        "request=)",
    )


def no_tasks() -> LocalProtocolError:
    """The error for a verb of tasks where tasks are not turned on."""
    return LocalProtocolError("OWN-073", "tasks are not turned on: pass tasks=Tasks(...)")


def judge_request(
    conversation: Conversation,
    sender: Side,
    method: str,
    spec: Method | None,
    params: JSONObject,
    shape: bool,
) -> Breach | None:
    """Return the breach if `sender` must not send this request now; else None.

    Keeps ERR-002, COMP-003, ROOT-005, ROOT-006, ELIC-021.

    Args:
        conversation: The state of the conversation.
        sender: The side that sends the request.
        method: The method name.
        spec: The definition of the method in the agreed revision; None: it has none.
        params: The params, `{}` if there are none.
        shape: Whether the members of the params are checked.
    """
    early: Breach | None = None
    if conversation.phase is not _OPERATING:
        early = judge_phase(conversation.phase, sender, method)
        if early is not None and not early.tolerated:
            return early
    elif method == "initialize" and spec is not None:
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
    if (
        shape
        and (spec.modes or not is_plain(spec.params, spec.params_kinds, params))
        and (breach := judge_params(spec, params)) is not None
    ):
        return breach
    return early


def judge_phase(phase: Phase, sender: Side, method: str) -> Breach | None:
    """Return the breach if a request is too early in a phase before `OPERATING`; else None."""
    if phase is Phase.PROBING:
        text = f"not open: {method} came before the response to server/discover"
        return Breach("LIFE-005", text)
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
    return Breach("LIFE-005", f"not initialized: {method} came before the response to initialize")


def too_early(method: str) -> Breach:
    """The breach for a message of a client before `notifications/initialized`."""
    return Breach("LIFE-004", f"{method} came before notifications/initialized", tolerated=True)


def _unknown_request(conversation: Conversation, sender: Side, method: str) -> Breach | None:
    """Return the breach if a method that the agreed revision lacks is one of MCP; else None.

    A method of another revision or of the other direction is a breach. A method that no revision
    defines belongs to an extension, and only the receiver can judge it.
    """
    if method in KNOWN_METHODS or method in conversation.dialect.added:
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
    """Return the breach if `sender` must not send this notification now; else None."""
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
        if method in KNOWN_METHODS or method in conversation.dialect.added:
            return Breach(
                "OWN-020",
                f"{method} is no notification that the {sender.name.lower()} may send in "
                f"revision {conversation.dialect.revision}",
            )
        return early
    if shape and (breach := judge_params(spec, params)) is not None:
        return breach
    if not conversation.agreed:
        return early  # capabilities are unknown before a revision is agreed
    for side, gate in ((sender, spec.sender_gate), (sender.other, spec.gate)):
        if gate not in conversation.gates[side]:
            return Breach(
                capability_rule(conversation),
                f"{method} needs the capability {gate}, which the {side.name.lower()} did not "
                "declare",
                tolerated=True,
            )
    return early


def _has_protocol_meta(params: JSONObject) -> bool:
    """Whether `_meta` has a key that the protocol defines."""
    meta: Any = params.get("_meta")
    return is_object(meta) and any(name.startswith(META_PREFIX) for name in meta)


def missing_gates(spec: Method, gates: frozenset[str], params: JSONObject) -> list[str]:
    """The gates that a question with these params needs, and that are not in `gates`."""
    needed = [spec.gate]
    needed += [condition.gate for condition in spec.conditions if condition.applies(params)]
    return [gate for gate in needed if gate not in gates]


def judge_question(
    dialect: Dialect, gates: frozenset[str], question: object, shape: bool
) -> Breach | None:
    """Return the breach if a question must not be sent to a client with these gates; else None.

    Keeps ROOT-006, SAMP-004, ELIC-005.
    """
    if not is_object(question) or not isinstance(method := question.get("method"), str):
        return Breach("MRTR-007", "a question is an object with a method")
    params: Any = question.get("params", {})
    if not is_object(params) or _has_protocol_meta(params):
        text = f"{method[:80]}: a question has params, and no protocol fields in their _meta"
        return Breach("MRTR-007", text)
    spec = dialect.inputs.get(method)
    if spec is None:
        return Breach("MRTR-006", f"{method[:80]} cannot be asked inside of a result")
    if missing := missing_gates(spec, gates, params):
        return Breach("MRTR-008", f"{method} needs {missing[0]}, which the client did not declare")
    if shape and (breach := judge_params(spec, without_nulls(spec.params_optional, params))):
        return breach
    if "id" in question or "jsonrpc" in question:
        text = f"{method}: a question has method and params, but no id and no jsonrpc"
        return Breach("MRTR-007", text, tolerated=True)
    return None


def judge_task(spec: Method, gates: frozenset[str]) -> Breach | None:
    """Return the breach if the receiver has not declared this request as a task; else None.

    Keeps TASK-003, TASK-005.
    """
    if spec.task_gate in gates:
        return None
    return Breach(
        "TASK-002", f"{spec.name} as a task needs the capability {spec.task_gate} of the peer"
    )


def capability_rule(conversation: Conversation) -> str:
    """The rule on undeclared capabilities: a SHOULD until 2025-03-26, a MUST in later revisions.

    Keeps PROMPT-015.
    """
    if conversation.dialect.is_modern:
        return "CAP-004"
    return "CAP-001" if conversation.dialect.revision < "2025-06-18" else "CAP-002"


def judge_params(spec: Method, params: JSONObject) -> Breach | None:
    """Return the breach if a member of params is missing or has the wrong JSON type; else None.

    `NULLS` if an optional member is null: the caller removes such members and judges again.

    Keeps OWN-014.
    """
    members = spec.params
    if spec.modes:
        mode: Any = params.get("mode")
        if mode is None:
            mode = "form"
        if not isinstance(mode, str) or mode not in spec.modes:
            text = f"{spec.name}: the mode is unknown"
            return Breach("ELIC-005", text, ErrorCode.INVALID_PARAMS)
        members = spec.modes[mode]
    wrong = shape_breach(members, spec.params_optional, params)
    if wrong is None:
        return None
    if wrong is NULL:
        return NULLS
    rule = spec.member_rules.get(wrong.partition(" ")[0], spec.params_rule)
    return Breach(rule, f"params of {spec.name}: {wrong}", ErrorCode.INVALID_PARAMS)


def mistyped_member(optional: OptionalMembers, value: JSONObject) -> str | None:
    """Return the name of the first optional member with the wrong type; None: none, or null."""
    for name, kinds in optional:
        member: Any = value.get(name)
        if member is not None and _has_wrong_type(member, kinds):
            return name
    return None


def null_members(optional: OptionalMembers, value: JSONObject) -> list[str]:
    """The names of optional members that are null, and so count as absent.

    Keeps OWN-015.
    """
    for name, _ in optional:
        if value.get(name, MISSING) is None:  # not ==, which objects of the caller may define
            break
    else:
        return []
    return [name for name, _ in optional if name in value and value[name] is None]


def without_nulls(optional: OptionalMembers, value: JSONObject) -> JSONObject:
    """An object without optional members that are null.

    Keeps OWN-015.
    """
    if nulls := null_members(optional, value):
        return {name: member for name, member in value.items() if name not in nulls}
    return value


def question_without_nulls(dialect: Dialect, question: JSONObject) -> tuple[JSONObject, list[str]]:
    """A question without optional members that are null, and the names of these."""
    nulls = null_members(QUESTION, question)
    question = without_nulls(QUESTION, question)
    method, params = question.get("method"), question.get("params")
    spec = dialect.inputs.get(method) if isinstance(method, str) else None
    if spec is not None and is_object(params):
        inner = null_members(spec.params_optional, params)
        if inner:
            nulls += inner
            question = {**question, "params": without_nulls(spec.params_optional, params)}
    return question, nulls


def _has_wrong_type(member: object, kinds: tuple[type, ...]) -> bool:
    """Whether a member has none of these types; subclasses match, but a bool is no number."""
    return not isinstance(member, kinds) or (isinstance(member, bool) and bool not in kinds)


NULL: Final = "an optional member is null"
"""The verdict of `shape_breach` for null members: the caller removes them and judges again."""
NULLS: Final = Breach("OWN-015", NULL, tolerated=True)


def is_plain(members: Members, kinds: Mapping[str, tuple[type, ...]], value: JSONObject) -> bool:
    """Whether an object has all required members, and only known members of exact types.

    This fast check passes for most messages; `shape_breach` judges the others.
    """
    for name, _ in members:
        if name not in value:
            return False
    try:
        for name in value:
            if type(value[name]) not in kinds[name]:
                return False
    except KeyError:  # a member that is not known
        return False
    return True


def shape_breach(members: Members, optional: OptionalMembers, value: JSONObject) -> str | None:
    """Return a text if a member is missing or mistyped, beginning with its name; else None."""
    for name, kinds in members:
        if name not in value:
            return f"{name} is missing"
        if (
            kinds is not None
            and type(value[name]) not in kinds
            and _has_wrong_type(value[name], kinds)
        ):
            return f"{name} has the wrong type"
    for name, kinds in optional:
        if name in value:
            member: Any = value[name]
            if type(member) not in kinds:
                if member is None:
                    return NULL
                if _has_wrong_type(member, kinds):
                    return f"{name} has the wrong type"
    return None


_TASK_RESULT: Members = (("task", OBJECT),)


def result_shape_breach(spec: Method, as_task: object, result: JSONObject) -> str | None:
    """Return a text if a member of a result is missing or mistyped; else None.

    The result of a request for a task may be a `CreateTaskResult` (MCP 2025-11-25,
    basic/utilities/tasks).

    Keeps TASK-013, OWN-014.
    """
    if as_task and "task" in result:
        wrong = shape_breach(_TASK_RESULT, META, result)
        return shape_breach(TASK, TASK_OPTIONAL, result["task"]) if wrong is None else wrong
    if is_plain(spec.result, spec.result_kinds, result):
        return None
    return shape_breach(spec.result, spec.result_optional, result)


def result_without_nulls(
    optional: OptionalMembers, as_task: object, result: JSONObject
) -> JSONObject:
    """A result without optional members that are null, also in its task."""
    result = without_nulls(optional, result)
    if as_task and is_object(task := result.get("task")):
        return {**result, "task": without_nulls(TASK_OPTIONAL, task)}
    return result
