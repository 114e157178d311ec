"""Forms of events and of states that can be compared: handles themselves compare by identity."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Hashable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import attrs

from sansmcp import (
    Config,
    Event,
    IncomingRequest,
    Listener,
    Listing,
    Observation,
    OutgoingRequest,
    Peer,
    Ping,
    Start,
    Subscription,
    Task,
)
from sansmcp._connection.events import EventQueue
from sansmcp._spec.methods import Dialect, Method
from sansmcp._wire.codec import BoundedDecoder

if TYPE_CHECKING:
    from sansmcp.http import ClientHTTPEvent, HTTPEvent

# ------------------------------------------------------------------------------------- events


def plain(events: Iterable[Event | ClientHTTPEvent | HTTPEvent | Observation]) -> list[str]:
    """Each event as a text that says all of it, and nothing of where it lies in memory.

    Two lists of events say the same exactly if their plain forms are equal, also between processes
    with other hash seeds: `1`, `1.0`, `True` and `"1"` differ, the order of members of an object
    does not count, and a handle is its kind, method, id and whether it is open at this moment.
    """
    return [_plain(event) for event in events]


def _plain(value: Any) -> str:
    kind: Any = value.__class__
    if kind is dict:
        members = sorted(f"{key!r}: {_plain(item)}" for key, item in value.items())
        return f"{{{', '.join(members)}}}"
    if kind is list:
        return f"[{', '.join(map(_plain, value))}]"
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, IncomingRequest):
        return (
            f"<IncomingRequest {value.method} id={value.id!r} {_open(value)}"
            f" token={value.progress_token!r} params={_plain(value.params)}>"
        )
    if isinstance(value, OutgoingRequest):
        return (
            f"<OutgoingRequest {value.method} id={value.id!r} {_open(value)}"
            f" token={value.progress_token!r}>"
        )
    if isinstance(value, Listing):
        return (
            f"<Listing {value.method} {_open(value)} pages={value.pages} items={value.items}"
            f" stale={value.stale}>"
        )
    if isinstance(value, Subscription):
        return (
            f"<Subscription {_open(value)} asked={_plain(value.asked)}"
            f" acknowledged={_plain(value.acknowledged)}>"
        )
    if isinstance(value, Listener):
        return f"<Listener {_open(value)} honoured={_plain(value.honoured)}>"
    if isinstance(value, Task):
        return f"<Task {_open(value)} record={_plain(value.record)}>"
    if isinstance(value, Ping | Start):
        return f"<{type(value).__name__} {_open(value)}>"
    if isinstance(value, Peer):
        members = [f"{name}={_plain(getattr(value, name))}" for name in Peer.__slots__]
        return f"<Peer {' '.join(members)}>"
    if attrs.has(kind):
        fields = [
            f"{field.name}={_plain(getattr(value, field.name))}" for field in attrs.fields(kind)
        ]
        return f"{kind.__name__}({', '.join(fields)})"
    return repr(value)


def _open(
    handle: IncomingRequest
    | OutgoingRequest
    | Listing
    | Ping
    | Start
    | Subscription
    | Listener
    | Task,
) -> str:
    return "open" if handle.open else "over"


# ------------------------------------------------------------------------------------- states

_ATOMS: Final = frozenset({int, str, bytes, type(None)})
_HANDLES: Final = (
    IncomingRequest,
    OutgoingRequest,
    Listing,
    Ping,
    Start,
    Subscription,
    Listener,
    Task,
)


def canonical(*objects: object) -> Hashable:
    """The whole state of connections, handles and plain containers, to compare and to hash.

    Two groups of objects have the same form exactly if nothing but their identities tells them
    apart: what one can be made to do, the other can. Objects are numbered in the order in which
    they are met, so it counts which places hold the same one. `wake` and the `data` of handles
    are the caller's and do not count. Forms are comparable within one process.
    """
    walk = _Walk()
    for item in objects:
        walk.visit(item)
    return tuple(walk.form)


class _Walk:
    """Writes objects down one after the other, in a way that could be read back.

    What an equal value of another type could be mistaken for has its type in front, and each
    container its length; no two states have the same form by accident.
    """

    __slots__ = ("_keep", "_numbers", "form")

    def __init__(self) -> None:
        self.form: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._keep: list[object] = []  # an object that died could lend its number to another

    def visit(self, value: Any) -> None:
        kind: Any = value.__class__
        form = self.form
        if kind in _ATOMS:
            form.append(value)
        elif kind is bool or kind is float or isinstance(value, enum.Enum):
            form += (kind, value)
        elif kind is tuple:
            form += (kind, len(value))
            for item in value:
                self.visit(item)
        elif kind is Method:
            form += (kind, value.name, value.kind, value.sender)
        elif kind is Dialect:
            form += (kind, value.revision)
        elif kind is frozenset or kind is Config or kind is BoundedDecoder:
            form += (kind, value if kind is not BoundedDecoder else None)
        else:
            number = self._numbers.setdefault(id(value), len(self._numbers))
            form += (kind, number)
            if number == len(self._keep):
                self._keep.append(value)
                self._visit_members(value, kind)

    def _visit_members(self, value: Any, kind: Any) -> None:
        form = self.form
        if kind is dict:
            form.append(len(value))
            for key, item in value.items():
                self.visit(key)
                self.visit(item)
        elif kind is list or kind is deque:
            form.append(len(value))
            for item in value:
                self.visit(item)
        elif kind is EventQueue:
            waiting: list[Any] = value.waiting
            form += (len(waiting), value.n_bytes if waiting else 0)
            for item in waiting:
                self.visit(item)
        elif kind is bytearray:
            form.append(bytes(value))
        elif kind is set:
            form.append(len(value))
            form.extend(sorted(map(repr, value)))
        else:
            for name, item in state_of(value).items():
                form.append(name)
                if type(item) in _ATOMS:
                    form.append(item)
                else:
                    self.visit(item)


def state_of(value: Any) -> dict[str, Any]:
    """The attributes of an object that are state: all but those that belong to the caller."""
    state = {name: getattr(value, name) for name in _slots(value.__class__)}
    state.update(getattr(value, "__dict__", {}))
    return state


@cache
def _slots(kind: Any) -> tuple[str, ...]:
    callers = {"__weakref__", "wake", *(("data",) if issubclass(kind, _HANDLES) else ())}
    return tuple(
        name
        for base in kind.__mro__
        for name in base.__dict__.get("__slots__", ())
        if name not in callers
    )
