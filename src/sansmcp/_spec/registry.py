"""The registry of revisions, methods and capabilities, with those of extensions.

`requirements.csv` and `methods.csv` in the folder `data` hold the same facts with their sources; a
test compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import attrs

from .._wire.values import JSONObject, is_object
from .legacy_methods import LEGACY_STEPS
from .methods import Dialect, Method
from .modern_methods import MODERN_DIALECT, MODERN_REVISION

if TYPE_CHECKING:
    from .extensions import Extension

LEGACY_REVISIONS: Final = tuple(LEGACY_STEPS)
"""The revisions that open with a handshake, oldest first."""

MODERN_REVISIONS: Final = (MODERN_REVISION,)
"""The revisions without a handshake, in which each request has an envelope, oldest first."""

ALL_REVISIONS: Final = (*LEGACY_REVISIONS, *MODERN_REVISIONS)
"""All revisions, which are the default of `revisions`, oldest first."""

LOG_LEVELS: Final[Mapping[str, int]] = {
    level: severity
    for severity, level in enumerate(
        ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
    )
}
"""Each log level with its severity, in rising order (MCP 2025-11-25, server/utilities/logging)."""


def _dialects() -> dict[str, Dialect]:
    """The methods and features of each revision, by its name."""
    requests: tuple[dict[str, Method], dict[str, Method]] = ({}, {})
    notifications: tuple[dict[str, Method], dict[str, Method]] = ({}, {})
    dialects: dict[str, Dialect] = {}
    for revision, step in LEGACY_STEPS.items():
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
    dialects[MODERN_REVISION] = MODERN_DIALECT
    return dialects


DIALECTS: Final[Mapping[str, Dialect]] = _dialects()

KNOWN_METHODS: Final = frozenset(
    name
    for dialect in DIALECTS.values()
    for table in (*dialect.requests, *dialect.notifications, dialect.inputs)
    for name in table
)
"""The method names of all revisions, in both directions."""


# -------------------------------------------------------------------------------- the gates


def _gates(dialects: Iterable[Dialect]) -> frozenset[str]:
    gates = {""}
    for dialect in dialects:
        for tables in (*dialect.requests, *dialect.notifications, dialect.inputs):
            for method in tables.values():
                gates |= {method.gate, method.sender_gate, method.task_gate or ""}
                gates |= {condition.gate for condition in method.conditions}
    return frozenset(gates)


def _paths(gates: Iterable[str]) -> frozenset[str]:
    """The gates and their prefixes, such as `tasks.requests` of `tasks.requests.tools`."""
    parts = [gate.split(".") for gate in gates]
    return frozenset(".".join(names[: end + 1]) for names in parts for end in range(len(names)))


OBJECTS: Final = frozenset({"experimental", "extensions", "sampling.context"})
"""Capabilities that no method needs, and whose values are objects."""

OPEN_GATES: Final = frozenset({""})
"""The gates that are open before any capability was declared."""


@lru_cache(maxsize=128)
def _shared(gates: frozenset[str]) -> frozenset[str]:
    """One object for equal gates: thousands of sessions have clients of a few kinds."""
    return gates


def _every_gate_of(registry: Registry) -> frozenset[str]:
    return frozenset({"", *registry.gates})


def _every_path_of(registry: Registry) -> frozenset[str]:
    return frozenset[str]().union(*registry.paths.values())


@attrs.frozen(eq=False, repr=False)
class Registry:
    """The methods and capabilities of the specification, and those of extensions, if any.

    `dialects` has the tables of each revision.
    """

    dialects: Mapping[str, Dialect]
    gates: Mapping[str, tuple[str, ...]]
    """The capabilities that methods need: for each gate, its path as a tuple of names."""
    paths: Mapping[str, frozenset[str]]
    """The capabilities of each revision, with the prefixes of their paths."""
    result_types: frozenset[str] = frozenset()
    """The values of `resultType` that extensions add."""
    every_gate: frozenset[str] = attrs.field(
        init=False, default=attrs.Factory(_every_gate_of, takes_self=True)
    )
    """All gates, for a side whose capabilities are unknown."""

    every_path: frozenset[str] = attrs.field(
        init=False, default=attrs.Factory(_every_path_of, takes_self=True)
    )
    """The capabilities of all revisions, with the prefixes of their paths."""

    def capabilities_in(
        self, revision: str, capabilities: JSONObject, path: str = ""
    ) -> JSONObject:
        """The capabilities without those that exist in other revisions only.

        Capabilities that no revision defines stay. A peer that learns of a capability of another
        revision might use it: so these are left out.
        """
        kept: JSONObject = {}
        here = self.paths[revision]
        for name, value in capabilities.items():
            inner = f"{path}.{name}" if path else name
            if inner in here or inner not in self.every_path:
                kept[name] = (
                    self.capabilities_in(revision, value, inner) if is_object(value) else value
                )
        return kept

    def without_nulls(self, capabilities: JSONObject, path: str = "") -> JSONObject:
        """The capabilities without defined ones that are null, which count as absent."""
        kept: JSONObject = {}
        for name, value in capabilities.items():
            inner = f"{path}.{name}" if path else name
            if inner not in self.every_path and inner not in OBJECTS:
                kept[name] = value
            elif value is not None:
                kept[name] = self.without_nulls(value, inner) if is_object(value) else value
        return kept

    def open_gates(self, capabilities: JSONObject) -> frozenset[str]:
        """The gates that a capabilities object opens.

        An object declares its capability even if it is empty. Other values but false and null do
        the same, because some languages encode an empty object as a list (OWN-047). `elicitation`
        without a mode means form mode (MCP 2025-11-25, client/elicitation).
        """
        found = {""}
        for gate, way in self.gates.items():
            value: Any = capabilities
            for name in way:
                value = value.get(name) if is_object(value) else None
            if value is not None and value is not False:
                found.add(gate)
        if "elicitation" in found and "elicitation.url" not in found:
            found.add("elicitation.form")
        return _shared(frozenset(found))

    def __deepcopy__(self, memo: object) -> Registry:
        return self


GATES: Final = _gates(DIALECTS.values())
"""The gates of all methods of all revisions."""

SPECIFIED: Final = Registry(
    DIALECTS,
    {gate: tuple(gate.split(".")) for gate in GATES if gate},
    {revision: _paths(_gates([dialect])) for revision, dialect in DIALECTS.items()},
)
"""The registry of the specification, without extensions."""

open_gates: Final = SPECIFIED.open_gates


def extended(extensions: Iterable[Extension]) -> Registry:
    """The registry of the specification and of these extensions.

    Raises:
        ValueError: A method of an extension is in the specification, or in two extensions.
    """
    registry = SPECIFIED
    for extension in extensions:
        registry = _with(registry, extension)
    return registry


def _with(registry: Registry, extension: Extension) -> Registry:
    """A copy of a registry with one more extension."""
    dialects = dict(registry.dialects)
    gates = dict(registry.gates)
    paths = dict(registry.paths)
    for revision, dialect in registry.dialects.items():
        requests = dict(dialect.requests[0]), dict(dialect.requests[1])
        notifications = dict(dialect.notifications[0]), dict(dialect.notifications[1])
        for added in extension.methods:
            method = added.in_revision(revision)
            if method is None:
                continue
            if any(
                added.name in table
                for table in (
                    *DIALECTS[revision].requests,
                    *DIALECTS[revision].notifications,
                    DIALECTS[revision].inputs,
                )
            ):
                raise ValueError(f"{added.name} is a method of revision {revision}")
            table = (requests if method.kind == "request" else notifications)[method.sender]
            if table.setdefault(method.name, method) is not method:
                raise ValueError(f"{method.name} is added twice")
            for way in (added.gate, added.sender_gate):
                if way:
                    gates[".".join(way)] = way
                    paths[revision] |= {".".join(way)}
        dialects[revision] = attrs.evolve(
            dialect,
            requests=requests,
            notifications=notifications,
            added=dialect.added | {added.name for added in extension.methods},
        )
    return Registry(
        dialects, gates, paths, registry.result_types | frozenset(extension.result_types)
    )
