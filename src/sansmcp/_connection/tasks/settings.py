"""How a side keeps the tasks of its peer, and follows its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, final

import attrs

from ..._wire.setting_checks import (
    check_choice,
    check_mapping,
    check_whole,
    choice,
    function,
    seconds,
    whole,
)
from ..._wire.values import Record

MIB: Final = 1024 * 1024
TaskSupport: TypeAlias = Literal["required", "optional", "forbidden"]
"""Whether a tool is called as a task: the values of `execution.taskSupport` in 2025-11-25."""
_SUPPORT: Final = ("required", "optional", "forbidden")
_NO_TOOLS: Final[Mapping[str, TaskSupport]] = MappingProxyType({})


def _support(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is None:
        return
    check_mapping(attribute.name, value)
    given: Any = value
    for tool, support in given.items():
        check_choice(f"{attribute.name}[{tool!r:.40}]", support, _SUPPORT)


def _copied(given: Mapping[str, TaskSupport] | None) -> Mapping[str, TaskSupport] | None:
    return given if not isinstance(given, Mapping) else {**given}


def _whole_or_none(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None:
        check_whole(attribute.name, value)


def _milliseconds(default: int) -> int | None:
    time: int | None = attrs.field(default=default, validator=_whole_or_none)
    return time


@final
@attrs.frozen(kw_only=True)
class Tasks(Record):
    """Turns tasks on, and says how they are kept. Times are in seconds or milliseconds, as named.

    On a server, and in 2025-11-25 on a client too, it lets `create_task` answer a request with a
    task. On a client, `send_request(..., task=True)` follows a task to its end.
    """

    entropy: Callable[[int], bytes] = attrs.field(validator=function())
    """Gives so many random bytes, which nobody can guess: `os.urandom`. They make the ids of tasks,
    of 192 bits each, and the jitter of polls."""
    store: Literal["memory", "ask"] = attrs.field(
        default="memory", validator=choice("memory", "ask")
    )
    """Where the tasks of this side are kept. `"ask"`: the application keeps them, as `TaskWanted`,
    `TasksWanted` and `TaskToStore` tell. All peers of byte streams that have no principal count as
    one owner there: do not let several users share such a store without principals."""
    max_tasks: int = attrs.field(default=10_000, validator=whole())
    """Tasks in memory at a time, with those that are over and wait for the end of their time; with
    `store="ask"`, the tasks that this process works on. A request that would make one more gets the
    error -32603 (OWN-070)."""
    max_tasks_per_owner: int = attrs.field(default=1000, validator=whole())
    """How many of them may belong to one principal, or to one session without a principal; all
    other peers without a principal count as one. `max_tasks` is the limit if it is less (OWN-070).
    """
    max_task_bytes: int = attrs.field(default=64 * MIB, validator=whole())
    """Bytes of questions, answers, results and status messages of all tasks in memory. A task fails
    if one of them has no room, and answers of the peer are refused (OWN-070)."""
    max_task_bytes_per_owner: int = attrs.field(default=16 * MIB, validator=whole())
    """How many of them may belong to one owner, who is counted as for `max_tasks_per_owner`.
    `max_task_bytes` is the limit if it is less (OWN-070)."""
    max_lookups: int = attrs.field(default=10_000, validator=whole())
    """With `store="ask"`, operations on tasks that wait for the store at a time. A request of the
    peer that would make one more gets the error -32603 (OWN-070)."""
    ttl_ms: int | None = _milliseconds(3_600_000)
    """Milliseconds from its creation for which a task is kept, where nothing else is said; None:
    without end."""
    max_ttl_ms: int | None = _milliseconds(86_400_000)
    """The most milliseconds that a client of 2025-11-25 may ask for, and to which `update_task` may
    lengthen the time of any task (OWN-075); None: any number."""
    poll_ms: int | None = _milliseconds(1000)
    """Milliseconds that the other side is told to wait between two polls; None: it is not told."""
    page_size: int = attrs.field(default=100, validator=whole())
    """Tasks on one page of `tasks/list`."""
    tools: Mapping[str, TaskSupport] | None = attrs.field(
        default=None, converter=_copied, validator=_support
    )
    """On a server, by tool: whether it is called as a task. In 2025-11-25 this is also what
    `execution.taskSupport` of the tool says; a tool that is missing here has none, and is never
    called as a task. A call that is accepted as a task is answered with `create_task` or an error:
    `send_result` raises. None: the library does not know, and the application judges each call."""
    poll_seconds: float = attrs.field(default=1.0, validator=seconds())
    """On the side that follows a task: seconds between two polls where the other side does not say.
    """
    max_poll_seconds: float = attrs.field(default=60.0, validator=seconds())
    """The most seconds between two polls, whatever the other side says: an interval grows while
    polls fail, and is this long while a subscription tells of the task."""
    max_questions: int = attrs.field(default=1000, validator=whole())
    """Questions of one task of 2026-07-28 that this side remembers. With one more its request ends
    as `FailureReason.TOO_MANY_ROUNDS`, and the task is cancelled (OWN-074)."""
    max_failed_polls: int = attrs.field(default=5, validator=whole())
    """Polls in a row that may fail without an answer; with the last of them the request is lost
    (OWN-072). It also bounds the updates with answers that may fail in a row, after which the task
    is cancelled."""

    def random_bytes(self, count: int) -> bytes:
        """So many random bytes of the application.

        Raises:
            ValueError: It gave something else.
        """
        given: Any = self.entropy(count)
        if not isinstance(given, bytes) or len(given) != count:
            raise ValueError(f"entropy must give {count} bytes, not {type(given).__name__}")
        return given

    def __deepcopy__(self, memo: object) -> Tasks:
        return self
