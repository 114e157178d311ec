"""Extensions: methods and result types that a framework adds to the protocol.

Source: MCP 2026-07-28, basic/index, Extensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import attrs

from .._wire.setting_checks import check_mapping, choice, flag, instance, kinds_in, names_in, text
from .._wire.values import Side
from .legacy_methods import LEGACY_STEPS
from .methods import (
    CURSOR,
    CURSOR_RULES,
    INPUT_RULES,
    INPUTS,
    META,
    NEXT_CURSOR,
    Members,
    Method,
    OptionalMembers,
)
from .modern_methods import MODERN_REVISION

_Kinds = type | tuple[type, ...] | None
_RESERVED: Final = ("complete", "input_required")
_REVISIONS: Final = (*LEGACY_STEPS, MODERN_REVISION)


def _members(given: Mapping[str, _Kinds]) -> Members:
    return tuple(
        (name, (kinds,) if isinstance(kinds, type) else kinds) for name, kinds in given.items()
    )


def _beside(required: Mapping[str, _Kinds], members: OptionalMembers) -> OptionalMembers:
    """The optional members of `members` that are not in `required`."""
    return tuple(member for member in members if member[0] not in required)


def _revisions(given: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if given is None else names_in("revisions", given)


def _gate(given: Iterable[str]) -> tuple[str, ...]:
    return names_in("gate", given)


def _sender_gate(given: Iterable[str]) -> tuple[str, ...]:
    return names_in("sender_gate", given)


def _result_types(given: Iterable[str]) -> tuple[str, ...]:
    return names_in("result_types", given)


def _kinds(
    _instance: object, attribute: attrs.Attribute[Mapping[str, _Kinds]], value: object
) -> None:
    """Raise `ValueError` unless a mapping gives JSON types for names of members."""
    check_mapping(attribute.name, value)
    given: Any = value
    for name, kinds in given.items():
        several: list[Any] = [kinds] if kinds.__class__ is not tuple else list(kinds)
        is_type = kinds is None or all(isinstance(one, type) for one in several)
        if not isinstance(name, str) or not is_type:
            raise ValueError(
                f"{attribute.name} must give a type, a tuple of types or None for each name, "
                f"not {kinds!r} for {name!r}"
            )


@attrs.frozen(kw_only=True, eq=False)
class ExtensionMethod:
    """A request or notification that the specification does not have.

    Attributes:
        name: The method name.
        kind: `"request"` or `"notification"`.
        sender: The side that sends it. A method that both sides send needs two objects.
        revisions: The revisions in which it exists; None: all. In 2026-07-28 servers send no
            requests.
        gate: The path of a capability that the receiver must declare, for example
            `("extensions", "com.example/search")`. Without it, sending raises, and a request of
            the peer is refused with -32601. Empty: no capability is needed.
        sender_gate: The path of a capability that the sender of a notification must declare.
        params: The members that the params must have, with the JSON type of each (`str`, `int`,
            `float`, `dict`, `list`, a tuple of several, or None for any).
        result: The members that the result of a request must have, in the same form.
        paginated: The member of the result with the items of a page, for `send_paginated`.
        cancellable: Whether the request may be cancelled.
        asks: Whether the request may be answered with questions, by `require_input`.
    """

    name: str = attrs.field(validator=text())
    kind: Literal["request", "notification"] = attrs.field(
        validator=choice("request", "notification")
    )
    sender: Side = attrs.field(validator=instance(Side))
    revisions: tuple[str, ...] | None = attrs.field(default=None, converter=_revisions)
    gate: tuple[str, ...] = attrs.field(default=(), converter=_gate)
    sender_gate: tuple[str, ...] = attrs.field(default=(), converter=_sender_gate)
    params: Mapping[str, _Kinds] = attrs.field(factory=dict[str, _Kinds], validator=_kinds)
    result: Mapping[str, _Kinds] = attrs.field(factory=dict[str, _Kinds], validator=_kinds)
    paginated: str | None = attrs.field(default=None, validator=text(optional=True))
    cancellable: bool = attrs.field(default=True, validator=flag)
    asks: bool = attrs.field(default=False, validator=flag)

    def __attrs_post_init__(self) -> None:
        unknown = [name for name in self.revisions or () if name not in _REVISIONS]
        if unknown:
            raise ValueError(f"{self.name}: unknown revisions: {', '.join(unknown)}")
        if self.revisions == (MODERN_REVISION,) and self._is_of_a_server:
            raise ValueError(f"{self.name}: no server sends requests in {MODERN_REVISION}")

    @property
    def _is_of_a_server(self) -> bool:
        return self.kind == "request" and self.sender is Side.SERVER

    def in_revision(self, revision: str) -> Method | None:
        """The definition of the method in a revision; None if it does not exist there."""
        if self.revisions is not None and revision not in self.revisions:
            return None
        is_modern, is_paginated = revision == MODERN_REVISION, self.paginated is not None
        if is_modern and self._is_of_a_server:
            return None
        return Method(
            name=self.name,
            kind=self.kind,
            sender=self.sender,
            gate=".".join(self.gate),
            sender_gate=".".join(self.sender_gate),
            paginated=self.paginated,
            params=_members(self.params),
            params_optional=_beside(
                self.params,
                (*(INPUTS if self.asks and is_modern else ()), *(CURSOR if is_paginated else META)),
            ),
            member_rules={**CURSOR_RULES, **INPUT_RULES},
            result=_members(self.result),
            result_optional=_beside(self.result, NEXT_CURSOR if is_paginated else META),
            cancellable=self.cancellable and self.kind == "request",
            early=is_modern,
            allows_questions=self.asks,
        )


def _tuple_of_methods(given: Iterable[ExtensionMethod]) -> tuple[ExtensionMethod, ...]:
    methods: tuple[ExtensionMethod, ...] = kinds_in(
        "methods", given, ExtensionMethod, "ExtensionMethod objects"
    )
    return methods


@attrs.frozen(kw_only=True, eq=False)
class Extension:
    """A group of methods and result types that `Config.extensions` adds to a connection.

    Attributes:
        methods: The methods, each in one direction.
        result_types: Values of `resultType` that the specification does not have. Results with
            them may be sent, and are delivered (MCP 2026-07-28, basic/index, EXT-004).
    """

    methods: tuple[ExtensionMethod, ...] = attrs.field(default=(), converter=_tuple_of_methods)
    result_types: tuple[str, ...] = attrs.field(default=(), converter=_result_types)

    def __attrs_post_init__(self) -> None:
        if taken := set(_RESERVED) & set(self.result_types):
            raise ValueError(f"resultType {min(taken)!r} is one of the specification")

    def __deepcopy__(self, memo: object) -> Extension:
        return self
