"""What a method is, as data: who sends it, what it needs, what it is gated by.

A gate is the dotted path of a capability without the side (`resources.subscribe`); the empty gate
is always open. The tables of the methods themselves are in `legacy_methods` and
`modern_methods`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import attrs

from .._wire.values import JSONObject, Record, Side

_Types = tuple[type, ...]
Kinds = _Types | None
"""The JSON types a member may have; None for any."""

STRING: Final[_Types] = (str,)
NUMBER: Final[_Types] = (int, float)
OBJECT: Final[_Types] = (dict,)
ARRAY: Final[_Types] = (list,)
BOOLEAN: Final[_Types] = (bool,)
ANYTHING: Final[Kinds] = None

Members = tuple[tuple[str, Kinds], ...]
OptionalMembers = tuple[tuple[str, _Types], ...]
"""Members that may be there; a null counts as absent."""

META: Final[OptionalMembers] = (("_meta", OBJECT),)
"""What any params and any result may have."""
CURSOR: Final[OptionalMembers] = (("cursor", STRING), *META)
NEXT_CURSOR: Final[OptionalMembers] = (("nextCursor", STRING), *META)
TASK_PARAM: Final[OptionalMembers] = (("task", OBJECT),)
INPUTS: Final[OptionalMembers] = (("inputResponses", OBJECT), ("requestState", STRING))
"""What a request has that is sent again with answers."""
QUESTIONS: Final[OptionalMembers] = (("inputRequests", OBJECT), ("requestState", STRING))
"""What a result has that asks."""
QUESTION: Final[OptionalMembers] = (("params", OBJECT),)
FILTER: Final[OptionalMembers] = (
    ("toolsListChanged", BOOLEAN),
    ("promptsListChanged", BOOLEAN),
    ("resourcesListChanged", BOOLEAN),
    ("resourceSubscriptions", ARRAY),
)
"""What a subscription asks for."""
WRITTEN: Final[OptionalMembers] = (
    ("resultType", STRING),
    ("ttlMs", NUMBER),
    ("cacheScope", STRING),
)
"""What the library writes into results of the modern revision, unless they have it."""


@attrs.frozen
class Condition(Record):
    """A capability that is needed only when a member of params has a value (None: any value)."""

    member: str
    value: str | None
    default: str | None
    gate: str
    rule: str

    def applies(self, params: JSONObject) -> bool:
        """Whether these params need the capability."""
        given = params.get(self.member)  # null counts as absent
        if given is None:
            given = self.default
        return given is not None if self.value is None else given == self.value


def _kinds_of_params(method: Method) -> dict[str, _Types]:
    return _kinds(method.params_optional, method.params)


def _kinds_of_result(method: Method) -> dict[str, _Types]:
    return _kinds(WRITTEN, method.result_optional, method.result)


def _kinds(*tables: Members) -> dict[str, _Types]:
    return {name: kinds for table in tables for name, kinds in table if kinds is not None}


def _name_as_json(method: Method) -> bytes:
    return b'"%b"' % method.name.encode()


@attrs.frozen(kw_only=True)
class Method(Record):
    """One method in one direction, as some revisions define it."""

    name: str
    kind: Literal["request", "notification"]
    sender: Side
    gate: str = ""
    sender_gate: str = ""
    paginated: str | None = None
    params: Members = ()
    """The members that params must have; `params_optional` are those that they may have."""
    params_optional: OptionalMembers = META
    result: Members = ()
    result_optional: OptionalMembers = META
    params_rule: str = "OWN-014"
    """The rule that params without these members break; `result_rule` is that of a result."""
    result_rule: str = "OWN-014"
    member_rules: Mapping[str, str] = attrs.field(factory=dict[str, str])
    """The rules that optional params of the wrong type break, where they have their own."""
    cancellable: bool = True
    early: bool = False
    modes: Mapping[str, Members] = attrs.field(factory=dict[str, Members])
    """The required params by the value of the member `mode`, which is `form` where absent."""
    conditions: tuple[Condition, ...] = ()
    task_gate: str | None = None
    """What the receiver declares if it accepts this request as a task."""
    asks: bool = False
    """Whether it may be answered with questions to the client (`input_required`)."""
    cacheable: bool = False
    """Whether its result says for how long, and by whom, it may be kept."""
    special: bool = False
    """Whether the machine itself has to do with it: answers it, or acts on its answer."""
    wire: bytes = attrs.field(init=False, default=attrs.Factory(_name_as_json, takes_self=True))
    """The name as JSON."""
    params_kinds: Mapping[str, _Types] = attrs.field(
        init=False, default=attrs.Factory(_kinds_of_params, takes_self=True)
    )
    """The types of all params that need no closer look; `result_kinds` are those of a result."""
    result_kinds: Mapping[str, _Types] = attrs.field(
        init=False, default=attrs.Factory(_kinds_of_result, takes_self=True)
    )

    def __deepcopy__(self, memo: object) -> Method:
        return self


@attrs.frozen(kw_only=True)
class Dialect(Record):
    """What one revision defines. Tables are indexed by the side that sends."""

    revision: str
    requests: tuple[Mapping[str, Method], Mapping[str, Method]]
    notifications: tuple[Mapping[str, Method], Mapping[str, Method]]
    inputs: Mapping[str, Method] = attrs.field(factory=dict[str, Method])
    """What a server asks inside of results, in a revision where it sends no requests."""
    is_modern: bool = False
    """Whether each request says for itself what a handshake says for a connection."""
    has_batches: bool = False
    has_idless_errors: bool = True
    added: frozenset[str] = frozenset()
    """The names of all methods, of any revision and direction, that extensions have added."""

    def __deepcopy__(self, memo: object) -> Dialect:
        return self


# ------------------------------------------------------------ what several revisions share

C: Final = Side.CLIENT
S: Final = Side.SERVER
URI: Final[Members] = (("uri", STRING),)
FORM: Final[Members] = (("message", STRING), ("requestedSchema", OBJECT))
CURSOR_RULES: Final = {"cursor": "PAGE-008"}
# Keeps MRTR-028.
INPUT_RULES: Final = {"inputResponses": "MRTR-027", "requestState": "MRTR-027"}
CONTEXT: Final[OptionalMembers] = (("context", OBJECT), *META)
TOOLS: Final[OptionalMembers] = (("tools", ARRAY), ("toolChoice", OBJECT))
# Keeps SAMP-005.
TOOLS_CONDITIONS: Final = (
    Condition("tools", None, None, "sampling.tools", "SAMP-004"),
    Condition("toolChoice", None, None, "sampling.tools", "SAMP-004"),
)
ELICITATION_CONDITIONS: Final = (
    Condition("mode", "form", "form", "elicitation.form", "ELIC-005"),
    Condition("mode", "url", None, "elicitation.url", "ELIC-005"),
)


def request(sender: Side, name: str, gate: str = "", **more: Any) -> Method:
    """A request."""
    return Method(name=name, kind="request", sender=sender, gate=gate, **more)


def notification(sender: Side, name: str, sender_gate: str = "", **more: Any) -> Method:
    """A notification."""
    return Method(
        name=name,
        kind="notification",
        sender=sender,
        sender_gate=sender_gate,
        cancellable=False,
        **more,
    )


def listing_of(name: str, gate: str, items: str, **more: Any) -> Method:
    """A request whose answer comes in pages."""
    return request(
        C,
        name,
        gate,
        paginated=items,
        params_optional=CURSOR,
        member_rules=CURSOR_RULES,
        result=((items, ARRAY),),
        result_optional=NEXT_CURSOR,
        **more,
    )


def completion(gate: str, **more: Any) -> Method:
    """`completion/complete`, which has no capability in the oldest revision."""
    return request(
        C,
        "completion/complete",
        gate,
        params=(("argument", OBJECT), ("ref", OBJECT)),
        result=(("completion", OBJECT),),
        **more,
    )


def call(
    params_also: OptionalMembers = (), result_also: OptionalMembers = (), **more: Any
) -> Method:
    """`tools/call`, with optional members beside those of the oldest revision."""
    return request(
        C,
        "tools/call",
        "tools",
        params=(("name", STRING),),
        params_optional=(("arguments", OBJECT), *META, *params_also),
        result=(("content", ARRAY),),
        result_optional=(("isError", BOOLEAN), *META, *result_also),
        **more,
    )


def prompt(params_also: OptionalMembers = (), **more: Any) -> Method:
    """`prompts/get`, with optional members beside those of the oldest revision."""
    return request(
        C,
        "prompts/get",
        "prompts",
        params=(("name", STRING),),
        params_optional=(("arguments", OBJECT), *META, *params_also),
        result=(("messages", ARRAY),),
        result_optional=(("description", STRING), *META),
        **more,
    )


def sampling(params_also: OptionalMembers = (), **more: Any) -> Method:
    """`sampling/createMessage`, with optional members beside those of the oldest revision."""
    return request(
        S,
        "sampling/createMessage",
        "sampling",
        params=(("maxTokens", NUMBER), ("messages", ARRAY)),
        params_optional=(
            ("includeContext", STRING),
            ("metadata", OBJECT),
            ("modelPreferences", OBJECT),
            ("stopSequences", ARRAY),
            ("systemPrompt", STRING),
            ("temperature", NUMBER),
            *params_also,
            *META,
        ),
        result=(("content", (dict, list)), ("model", STRING), ("role", STRING)),
        result_optional=(("stopReason", STRING), *META),
        **more,
    )


def elicitation(params_also: OptionalMembers = (), **more: Any) -> Method:
    """`elicitation/create`, with optional members beside `_meta`."""
    return request(
        S,
        "elicitation/create",
        "elicitation",
        params=FORM,
        params_optional=(*params_also, *META),
        result=(("action", STRING),),
        result_optional=(("content", OBJECT), *META),
        **more,
    )


def progress(sender: Side, name: str, params_also: OptionalMembers = (), **more: Any) -> Method:
    """`notifications/progress`."""
    return notification(
        sender,
        name,
        params=(("progress", NUMBER), ("progressToken", (str, int, float))),
        params_optional=(("total", NUMBER), *params_also, *META),
        **more,
    )


def cancelled(sender: Side, name: str) -> Method:
    """`notifications/cancelled`."""
    return notification(
        sender,
        name,
        params=(("requestId", (str, int, float)),),
        params_optional=(("reason", STRING), *META),
        early=True,
    )


def log_message() -> Method:
    """`notifications/message`."""
    return notification(
        S,
        "notifications/message",
        "logging",
        params=(("data", ANYTHING), ("level", STRING)),
        params_optional=(("logger", STRING), *META),
        early=True,
    )


def both(make: Any, name: str, **more: Any) -> tuple[Method, Method]:
    """The same for both sides."""
    return make(C, name, **more), make(S, name, **more)
