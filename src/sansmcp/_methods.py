"""What a method is, as data: who sends it, what it needs, what it is gated by.

A gate is the dotted path of a capability without the side (`resources.subscribe`); the empty gate
is always open. The tables of the methods themselves are in `_legacy_methods` and
`_modern_methods`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import attrs

from ._values import MISSING, JSONObject, Side

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
    params_rule: str = "OWN-014"
    """The rule that params without these members break; `result_rule` is that of a result."""
    result_rule: str = "OWN-014"
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

    def __deepcopy__(self, memo: object) -> Method:
        return self


@attrs.frozen(kw_only=True)
class Dialect:
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
    return request(C, name, gate, paginated=items, result=((items, ARRAY),), **more)


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


def call(**more: Any) -> Method:
    """`tools/call`."""
    return request(
        C, "tools/call", "tools", params=(("name", STRING),), result=(("content", ARRAY),), **more
    )


def sampling(**more: Any) -> Method:
    """`sampling/createMessage`."""
    return request(
        S,
        "sampling/createMessage",
        "sampling",
        params=(("maxTokens", NUMBER), ("messages", ARRAY)),
        result=(("content", (dict, list)), ("model", STRING), ("role", STRING)),
        **more,
    )


def elicitation(**more: Any) -> Method:
    """`elicitation/create`."""
    return request(
        S, "elicitation/create", "elicitation", params=FORM, result=(("action", STRING),), **more
    )


def both(make: Any, name: str, **more: Any) -> tuple[Method, Method]:
    """The same for both sides."""
    return make(C, name, **more), make(S, name, **more)
