"""What a framework adds to the protocol: methods and kinds of results of its own.

Source: MCP 2026-07-28, basic/index, Extensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import attrs

from ._legacy_methods import LEGACY_STEPS
from ._methods import (
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
from ._modern_methods import MODERN_REVISION
from ._values import Side

_Kinds = type | tuple[type, ...] | None
_RESERVED: Final = ("complete", "input_required")
_REVISIONS: Final = (*LEGACY_STEPS, MODERN_REVISION)


def _members(given: Mapping[str, _Kinds]) -> Members:
    return tuple(
        (name, (kinds,) if isinstance(kinds, type) else kinds) for name, kinds in given.items()
    )


def _beside(required: Mapping[str, _Kinds], members: OptionalMembers) -> OptionalMembers:
    """The optional members that are not required ones."""
    return tuple(member for member in members if member[0] not in required)


def _names(given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise TypeError(f"several names are needed, not {given!r}")
    return tuple(given)


@attrs.frozen(kw_only=True, eq=False)
class ExtensionMethod:
    """A request or notification that the specification does not have.

    Attributes:
        name: The method name.
        kind: Which of the two it is.
        sender: The side that sends it. One that both sides send is two of these.
        revisions: Where it exists. In 2026-07-28 no server sends requests.
        gate: The path of a capability that the receiver declares to be sent this, for example
            `("extensions", "com.example/search")`. Sending it without raises, and a request that
            comes without is refused with -32601. Empty: nothing is needed.
        sender_gate: The same, to be declared by the sender; for notifications.
        params: Members that the params must have, with the JSON type of each (`str`, `int`,
            `float`, `dict`, `list`, a tuple of several, or None for any).
        result: The same for the result of a request.
        paginated: The member of the result with the items of a page, for `send_paginated`.
        cancellable: Whether a request may be cancelled.
        asks: Whether the request may be answered with questions, by `require_input`.
    """

    name: str
    kind: Literal["request", "notification"]
    sender: Side
    revisions: tuple[str, ...] | None = attrs.field(
        default=None, converter=attrs.converters.optional(_names)
    )
    gate: tuple[str, ...] = attrs.field(default=(), converter=_names)
    sender_gate: tuple[str, ...] = attrs.field(default=(), converter=_names)
    params: Mapping[str, _Kinds] = attrs.field(factory=dict[str, _Kinds])
    result: Mapping[str, _Kinds] = attrs.field(factory=dict[str, _Kinds])
    paginated: str | None = None
    cancellable: bool = True
    asks: bool = False

    def __attrs_post_init__(self) -> None:
        unknown = [name for name in self.revisions or () if name not in _REVISIONS]
        if unknown:
            raise ValueError(f"{self.name} is to exist in {', '.join(unknown)}, which are unknown")
        if self.revisions == (MODERN_REVISION,) and self._is_of_a_server:
            raise ValueError(f"{self.name}: no server sends requests in {MODERN_REVISION}")

    @property
    def _is_of_a_server(self) -> bool:
        return self.kind == "request" and self.sender is Side.SERVER

    def in_revision(self, revision: str) -> Method | None:
        """What the tables of a revision say of it."""
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
            asks=self.asks,
        )


def _tuple_of_methods(given: Iterable[ExtensionMethod]) -> tuple[ExtensionMethod, ...]:
    return tuple(given)


@attrs.frozen(kw_only=True, eq=False)
class Extension:
    """Methods and kinds of results that go together; a connection has them by `Config.extensions`.

    Attributes:
        methods: Each in one direction.
        result_types: Values of `resultType`, beside those of the specification, with which a
            result is delivered, and may be sent (MCP 2026-07-28, basic/index, EXT-004).
    """

    methods: tuple[ExtensionMethod, ...] = attrs.field(default=(), converter=_tuple_of_methods)
    result_types: tuple[str, ...] = attrs.field(default=(), converter=_names)

    def __attrs_post_init__(self) -> None:
        if taken := set(_RESERVED) & set(self.result_types):
            raise ValueError(f"resultType {min(taken)!r} is one of the specification")

    def __deepcopy__(self, memo: object) -> Extension:
        return self
