"""Revisions and methods as data: who may send what, what it needs, what it is gated by.

A gate is the dotted path of a capability without the side (`resources.subscribe`); the empty gate
is always open. `requirements.csv` and `methods.csv` in the folder `data` hold the same facts with
their sources; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import attrs

from ._values import MISSING, JSONObject, Side, is_object

LEGACY_REVISIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions that open with a handshake, oldest first."""

ALL_REVISIONS: Final = LEGACY_REVISIONS
"""Every revision that this library speaks, oldest first."""

LOG_LEVELS: Final[Mapping[str, int]] = {
    level: severity
    for severity, level in enumerate(
        ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
    )
}
"""Log levels with their severity, rising (MCP 2025-11-25, server/utilities/logging)."""

Kinds = tuple[type, ...] | None
"""The JSON types a member may have; None for any."""

STRING: Final[Kinds] = (str,)
NUMBER: Final[Kinds] = (int, float)
OBJECT: Final[Kinds] = (dict,)
ARRAY: Final[Kinds] = (list,)
ANYTHING: Final[Kinds] = None

Members = tuple[tuple[str, Kinds], ...]


@attrs.frozen
class Condition:
    """A capability that is needed only when a member of params has a value (None: any value)."""

    member: str
    value: str | None
    default: str | None
    gate: str
    rule: str

    def applies(self, params: JSONObject) -> bool:
        """Whether these params need the capability."""
        given = params.get(self.member, MISSING if self.default is None else self.default)
        return given is not MISSING if self.value is None else given == self.value


def _name_as_json(method: Method) -> bytes:
    return b'"%b"' % method.name.encode()


@attrs.frozen(kw_only=True)
class Method:
    """One method in one direction, as some revisions define it."""

    name: str
    kind: Literal["request", "notification"]
    sender: Side
    gate: str = ""
    sender_gate: str = ""
    paginated: str | None = None
    params: Members = ()
    result: Members = ()
    cancellable: bool = True
    early: bool = False
    modes: Mapping[str, Members] = attrs.field(factory=dict[str, Members])
    """The required params by the value of the member `mode`, which is `form` where absent."""
    conditions: tuple[Condition, ...] = ()
    task_gate: str | None = None
    """What the receiver declares if it accepts this request as a task."""
    special: bool = False
    """Whether the machine itself has to do with it: answers it, or acts on its answer."""
    wire: bytes = attrs.field(init=False, default=attrs.Factory(_name_as_json, takes_self=True))
    """The name as JSON."""

    def __deepcopy__(self, memo: object) -> Method:
        return self


@attrs.frozen(kw_only=True)
class Dialect:
    """What one revision defines. Tables are indexed by the side that sends."""

    revision: str
    requests: tuple[Mapping[str, Method], Mapping[str, Method]]
    notifications: tuple[Mapping[str, Method], Mapping[str, Method]]
    has_batches: bool
    has_idless_errors: bool

    def __deepcopy__(self, memo: object) -> Dialect:
        return self


# ------------------------------------------------------------------------------- the methods

_C, _S = Side.CLIENT, Side.SERVER
_URI: Final[Members] = (("uri", STRING),)
_TASK_ID: Final[Members] = (("taskId", STRING),)
TASK: Final[Members] = (
    ("createdAt", STRING),
    ("lastUpdatedAt", STRING),
    ("status", STRING),
    ("taskId", STRING),
    ("ttl", ANYTHING),
)
_FORM: Final[Members] = (("message", STRING), ("requestedSchema", OBJECT))
_URL: Final[Members] = (("elicitationId", STRING), ("message", STRING), ("url", STRING))
_TOOLS_CONDITIONS: Final = (
    Condition("tools", None, None, "sampling.tools", "SAMP-004"),
    Condition("toolChoice", None, None, "sampling.tools", "SAMP-004"),
)
_ELICITATION_CONDITIONS: Final = (
    Condition("mode", "form", "form", "elicitation.form", "ELIC-005"),
    Condition("mode", "url", None, "elicitation.url", "ELIC-005"),
)


def _request(sender: Side, name: str, gate: str = "", **more: Any) -> Method:
    return Method(name=name, kind="request", sender=sender, gate=gate, **more)


def _notification(sender: Side, name: str, sender_gate: str = "", **more: Any) -> Method:
    return Method(
        name=name,
        kind="notification",
        sender=sender,
        sender_gate=sender_gate,
        cancellable=False,
        **more,
    )


def _list(name: str, gate: str, items: str) -> Method:
    return _request(_C, name, gate, paginated=items, result=((items, ARRAY),))


def _completion(gate: str) -> Method:
    return _request(
        _C,
        "completion/complete",
        gate,
        params=(("argument", OBJECT), ("ref", OBJECT)),
        result=(("completion", OBJECT),),
    )


def _call(**more: Any) -> Method:
    return _request(
        _C, "tools/call", "tools", params=(("name", STRING),), result=(("content", ARRAY),), **more
    )


def _sampling(**more: Any) -> Method:
    return _request(
        _S,
        "sampling/createMessage",
        "sampling",
        params=(("maxTokens", NUMBER), ("messages", ARRAY)),
        result=(("content", (dict, list)), ("model", STRING), ("role", STRING)),
        **more,
    )


def _elicitation(**more: Any) -> Method:
    return _request(
        _S, "elicitation/create", "elicitation", params=_FORM, result=(("action", STRING),), **more
    )


def _both(make: Any, name: str, **more: Any) -> tuple[Method, Method]:
    return make(_C, name, **more), make(_S, name, **more)


_SINCE_2024_11_05: Final[tuple[Method, ...]] = (
    _request(
        _C,
        "initialize",
        params=(("capabilities", OBJECT), ("clientInfo", OBJECT), ("protocolVersion", STRING)),
        result=(("capabilities", OBJECT), ("protocolVersion", STRING), ("serverInfo", OBJECT)),
        cancellable=False,
        early=True,
        special=True,
    ),
    _notification(_C, "notifications/initialized", early=True),
    *_both(_request, "ping", early=True, special=True),
    _list("tools/list", "tools", "tools"),
    _call(),
    _list("resources/list", "resources", "resources"),
    _list("resources/templates/list", "resources", "resourceTemplates"),
    _request(_C, "resources/read", "resources", params=_URI, result=(("contents", ARRAY),)),
    _request(_C, "resources/subscribe", "resources.subscribe", params=_URI, special=True),
    _request(_C, "resources/unsubscribe", "resources.subscribe", params=_URI, special=True),
    _list("prompts/list", "prompts", "prompts"),
    _request(
        _C, "prompts/get", "prompts", params=(("name", STRING),), result=(("messages", ARRAY),)
    ),
    _completion(gate=""),  # this revision has no capability for it
    _request(_C, "logging/setLevel", "logging", params=(("level", STRING),), special=True),
    _sampling(),
    _request(_S, "roots/list", "roots", result=(("roots", ARRAY),)),
    _notification(_S, "notifications/tools/list_changed", "tools.listChanged"),
    _notification(_S, "notifications/resources/list_changed", "resources.listChanged"),
    _notification(_S, "notifications/resources/updated", "resources.subscribe", params=_URI),
    _notification(_S, "notifications/prompts/list_changed", "prompts.listChanged"),
    _notification(_C, "notifications/roots/list_changed", "roots.listChanged"),
    _notification(
        _S,
        "notifications/message",
        "logging",
        params=(("data", ANYTHING), ("level", STRING)),
        early=True,
    ),
    *_both(
        _notification,
        "notifications/progress",
        params=(("progress", NUMBER), ("progressToken", (str, int, float))),
    ),
    *_both(
        _notification,
        "notifications/cancelled",
        params=(("requestId", (str, int, float)),),
        early=True,
    ),
)

_SINCE_2025_03_26: Final[tuple[Method, ...]] = (_completion(gate="completions"),)

_SINCE_2025_06_18: Final[tuple[Method, ...]] = (_elicitation(),)


def _task_methods(sender: Side) -> tuple[Method, ...]:
    return (
        _request(sender, "tasks/get", "tasks", params=_TASK_ID, result=TASK, special=True),
        _request(sender, "tasks/result", "tasks", params=_TASK_ID, special=True),
        _request(
            sender,
            "tasks/list",
            "tasks.list",
            paginated="tasks",
            result=(("tasks", ARRAY),),
            special=True,
        ),
        _request(
            sender, "tasks/cancel", "tasks.cancel", params=_TASK_ID, result=TASK, special=True
        ),
        _notification(sender, "notifications/tasks/status", "tasks", params=TASK),
    )


_SINCE_2025_11_25: Final[tuple[Method, ...]] = (
    _call(task_gate="tasks.requests.tools.call"),
    _sampling(conditions=_TOOLS_CONDITIONS, task_gate="tasks.requests.sampling.createMessage"),
    _elicitation(
        modes={"form": _FORM, "url": _URL},
        conditions=_ELICITATION_CONDITIONS,
        task_gate="tasks.requests.elicitation.create",
    ),
    Method(
        name="notifications/elicitation/complete",
        kind="notification",
        sender=_S,
        gate="elicitation.url",
        params=(("elicitationId", STRING),),
        cancellable=False,
    ),
    *_task_methods(_C),
    *_task_methods(_S),
)


def _dialects() -> dict[str, Dialect]:
    steps = (_SINCE_2024_11_05, _SINCE_2025_03_26, _SINCE_2025_06_18, _SINCE_2025_11_25)
    requests: tuple[dict[str, Method], dict[str, Method]] = ({}, {})
    notifications: tuple[dict[str, Method], dict[str, Method]] = ({}, {})
    dialects: dict[str, Dialect] = {}
    for revision, step in zip(LEGACY_REVISIONS, steps, strict=True):
        for method in step:
            tables = requests if method.kind == "request" else notifications
            tables[method.sender][method.name] = method
        dialects[revision] = Dialect(
            revision=revision,
            requests=(dict(requests[0]), dict(requests[1])),
            notifications=(dict(notifications[0]), dict(notifications[1])),
            has_batches=revision == "2025-03-26",
            has_idless_errors=revision >= "2025-11-25",
        )
    return dialects


DIALECTS: Final[Mapping[str, Dialect]] = _dialects()


KNOWN_METHODS: Final = frozenset(
    name
    for dialect in DIALECTS.values()
    for table in (*dialect.requests, *dialect.notifications)
    for name in table
)
"""Every method name of any revision, in either direction."""


# -------------------------------------------------------------------------------- the gates


def _gates(dialects: Iterable[Dialect]) -> frozenset[str]:
    gates = {""}
    for dialect in dialects:
        for tables in (*dialect.requests, *dialect.notifications):
            for method in tables.values():
                gates |= {method.gate, method.sender_gate, method.task_gate or ""}
                gates |= {condition.gate for condition in method.conditions}
    return frozenset(gates)


def _paths(gates: Iterable[str]) -> frozenset[str]:
    """The gates and all that leads to them: `tasks.requests` leads to `tasks.requests.tools`."""
    parts = [gate.split(".") for gate in gates]
    return frozenset(".".join(names[: end + 1]) for names in parts for end in range(len(names)))


GATES: Final = _gates(DIALECTS.values())
"""Every gate that any method of any revision has."""

_KNOWN_PATHS: Final = _paths(GATES)
_PATHS: Final[Mapping[str, frozenset[str]]] = {
    revision: _paths(_gates([dialect])) for revision, dialect in DIALECTS.items()
}


def capabilities_in(revision: str, capabilities: JSONObject, path: str = "") -> JSONObject:
    """The capabilities without those that only other revisions have.

    What no revision knows is an extension and stays. A peer that is told of a feature of a later
    revision would be right to use it.
    """
    kept: JSONObject = {}
    for name, value in capabilities.items():
        inner = f"{path}.{name}" if path else name
        if inner not in _KNOWN_PATHS or inner in _PATHS[revision]:
            kept[name] = capabilities_in(revision, value, inner) if is_object(value) else value
    return kept


OPEN_GATES: Final = frozenset({""})
"""The gates that are open before anything was declared."""


def open_gates(capabilities: JSONObject) -> frozenset[str]:
    """The gates that a capabilities object opens.

    An object declares its capability even when it is empty; a boolean declares it when true.
    An empty `elicitation` object means form mode (MCP 2025-11-25, client/elicitation).
    """
    found = {""}
    for gate in GATES:
        value: Any = capabilities
        for name in gate.split("."):
            value = value.get(name) if is_object(value) else None
        if value is True or is_object(value):
            found.add(gate)
    if "elicitation" in found and "elicitation.url" not in found:
        found.add("elicitation.form")
    return frozenset(found)
