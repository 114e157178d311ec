"""The definition of a method as data: its sender, members, capabilities and rules.

A gate is the dotted path of a capability (`resources.subscribe`). A side opens a gate when it
declares the capability; the empty gate is always open. The tables of methods are in
`legacy_methods` and `modern_methods`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import attrs

from .._wire.values import JSONObject, Record, Side

_Types = tuple[type, ...]
Kinds = _Types | None
"""The types that a member may have; None for any JSON type."""

STRING: Final[_Types] = (str,)
NUMBER: Final[_Types] = (int, float)
OBJECT: Final[_Types] = (dict,)
ARRAY: Final[_Types] = (list,)
BOOLEAN: Final[_Types] = (bool,)
ANYTHING: Final[Kinds] = None

Members = tuple[tuple[str, Kinds], ...]
OptionalMembers = tuple[tuple[str, _Types], ...]
"""Optional members with their types; null counts as absent."""

META: Final[OptionalMembers] = (("_meta", OBJECT),)
"""The optional member of all params and results."""
CURSOR: Final[OptionalMembers] = (("cursor", STRING), *META)
NEXT_CURSOR: Final[OptionalMembers] = (("nextCursor", STRING), *META)
TASK_PARAM: Final[OptionalMembers] = (("task", OBJECT),)
INPUTS: Final[OptionalMembers] = (("inputResponses", OBJECT), ("requestState", STRING))
"""The members of a request that is sent again with answers."""
QUESTIONS: Final[OptionalMembers] = (("inputRequests", OBJECT), ("requestState", STRING))
"""The members of a result with questions."""
QUESTION: Final[OptionalMembers] = (("params", OBJECT),)
FILTER: Final[OptionalMembers] = (
    ("toolsListChanged", BOOLEAN),
    ("promptsListChanged", BOOLEAN),
    ("resourcesListChanged", BOOLEAN),
    ("resourceSubscriptions", ARRAY),
    ("taskIds", ARRAY),
)
"""The members of the filter of a subscription."""
WRITTEN: Final[OptionalMembers] = (
    ("resultType", STRING),
    ("ttlMs", NUMBER),
    ("cacheScope", STRING),
)
"""The members that the library adds to modern results that do not have them."""


@attrs.frozen
class Condition(Record):
    """A capability that a method needs only if a member of its params has a certain value.

    Attributes:
        member: The name of the member.
        value: The value that needs the capability; None: any value.
        default: The value that counts if the member is absent.
        gate: The path of the capability.
        rule: The rule that is broken without it.
    """

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
    """One method in one direction, as one or more revisions define it.

    `gate` is the capability that the receiver must declare, `sender_gate` that of the sender;
    `paginated` is the member of the result with the items of a page. A method that is `early` may
    be sent before the conversation is open.
    """

    name: str
    kind: Literal["request", "notification"]
    sender: Side
    gate: str = ""
    sender_gate: str = ""
    paginated: str | None = None
    params: Members = ()
    """The required members of params; `params_optional` are the optional ones."""
    params_optional: OptionalMembers = META
    result: Members = ()
    result_optional: OptionalMembers = META
    params_rule: str = "OWN-014"
    """The rule on malformed params; `result_rule` is the rule on malformed results."""
    result_rule: str = "OWN-014"
    member_rules: Mapping[str, str] = attrs.field(factory=dict[str, str])
    """The rules on single members of params, where these have their own."""
    cancellable: bool = True
    early: bool = False
    modes: Mapping[str, Members] = attrs.field(factory=dict[str, Members])
    """The required params for each value of the member `mode`, which is `form` if absent."""
    conditions: tuple[Condition, ...] = ()
    task_gate: str | None = None
    """The capability that the receiver declares if it accepts this request as a task."""
    allows_questions: bool = False
    """Whether the request may be answered with questions to the client (`input_required`)."""
    cacheable: bool = False
    """Whether the result has caching hints (`ttlMs`, `cacheScope`)."""
    has_part: bool = False
    """Whether a part of the connection answers the request, or acts on the response."""
    wire: bytes = attrs.field(init=False, default=attrs.Factory(_name_as_json, takes_self=True))
    """The name as JSON."""
    params_kinds: Mapping[str, _Types] = attrs.field(
        init=False, default=attrs.Factory(_kinds_of_params, takes_self=True)
    )
    """The types of all members of params, required and optional, for a fast check; `result_kinds`
    are those of a result."""
    result_kinds: Mapping[str, _Types] = attrs.field(
        init=False, default=attrs.Factory(_kinds_of_result, takes_self=True)
    )

    def __deepcopy__(self, memo: object) -> Method:
        return self


@attrs.frozen(kw_only=True)
class Dialect(Record):
    """The methods and features of one revision. Tables are indexed by the side of the sender."""

    revision: str
    requests: tuple[Mapping[str, Method], Mapping[str, Method]]
    notifications: tuple[Mapping[str, Method], Mapping[str, Method]]
    inputs: Mapping[str, Method] = attrs.field(factory=dict[str, Method])
    """The questions that a server may put into a result (2026-07-28)."""
    is_modern: bool = False
    """Whether each request carries revision and capabilities, so that there is no handshake."""
    has_batches: bool = False
    has_idless_errors: bool = True
    added: frozenset[str] = frozenset()
    """The names of all methods that extensions have added to any revision."""

    def __deepcopy__(self, memo: object) -> Dialect:
        return self


# ---------------------------------------------------------- members that several methods share

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
    """The definition of a request."""
    return Method(name=name, kind="request", sender=sender, gate=gate, **more)


def notification(sender: Side, name: str, sender_gate: str = "", **more: Any) -> Method:
    """The definition of a notification."""
    return Method(
        name=name,
        kind="notification",
        sender=sender,
        sender_gate=sender_gate,
        cancellable=False,
        **more,
    )


def listing_of(name: str, gate: str, items: str, **more: Any) -> Method:
    """The definition of a paginated request."""
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
    """The definition of `completion/complete`; the oldest revision has no capability for it."""
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
    """The definition of `tools/call`; later revisions add optional members."""
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
    """The definition of `prompts/get`; later revisions add optional members."""
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
    """The definition of `sampling/createMessage`; later revisions add optional members."""
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
    """The definition of `elicitation/create`, with optional members beside `_meta`."""
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
    """The definition of `notifications/progress`."""
    return notification(
        sender,
        name,
        params=(("progress", NUMBER), ("progressToken", (str, int, float))),
        params_optional=(("total", NUMBER), *params_also, *META),
        **more,
    )


def cancelled(sender: Side, name: str) -> Method:
    """The definition of `notifications/cancelled`."""
    return notification(
        sender,
        name,
        params=(("requestId", (str, int, float)),),
        params_optional=(("reason", STRING), *META),
        early=True,
    )


def log_message() -> Method:
    """The definition of `notifications/message`."""
    return notification(
        S,
        "notifications/message",
        "logging",
        params=(("data", ANYTHING), ("level", STRING)),
        params_optional=(("logger", STRING), *META),
        early=True,
    )


def both(make: Any, name: str, **more: Any) -> tuple[Method, Method]:
    """The definitions of a method that both sides send: for the client, then for the server."""
    return make(C, name, **more), make(S, name, **more)
