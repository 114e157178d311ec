"""Tools for tests: pairs with a wire in memory, comparable forms, strategies, an explorer.

The strategies need hypothesis (the extra `testing`), which is imported when one of them is first
asked for; everything else works without.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._explorer import Exploration, ExplorationFailed, Flight, InvariantBroken, World, explore
from ._http_pair import HTTPExchange, HTTPPair
from ._pair import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    SERVER_CAPABILITIES,
    SERVER_INFO,
    Pair,
    Wire,
    drain,
)
from ._plain import canonical, plain
from ._script import (
    Actor,
    Handle,
    Script,
    Step,
    acknowledge,
    answer,
    answer_lookup,
    ask,
    cancel,
    close,
    complete_task,
    create_task,
    end_listener,
    fail_lookup,
    fail_sending,
    listen,
    lose_records,
    progress,
    provide_input,
    provide_task_input,
    publish,
    refuse,
    request,
    require_input,
    require_task_input,
)

if TYPE_CHECKING:
    from ._modern_strategies import envelopes
    from ._strategies import (
        answers,
        bad_request_ids,
        batches,
        encoded,
        json_objects,
        json_values,
        messages,
        nearly_messages,
        notifications,
        progress_tokens,
        request_ids,
        requests,
        wire_bytes,
        wire_lines,
    )

_NEEDS_HYPOTHESIS = {
    "answers": "_strategies",
    "bad_request_ids": "_strategies",
    "batches": "_strategies",
    "encoded": "_strategies",
    "envelopes": "_modern_strategies",
    "json_objects": "_strategies",
    "json_values": "_strategies",
    "messages": "_strategies",
    "nearly_messages": "_strategies",
    "notifications": "_strategies",
    "progress_tokens": "_strategies",
    "request_ids": "_strategies",
    "requests": "_strategies",
    "wire_bytes": "_strategies",
    "wire_lines": "_strategies",
}


def __getattr__(name: str) -> Any:
    if name not in _NEEDS_HYPOTHESIS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_NEEDS_HYPOTHESIS[name]}")
    except ModuleNotFoundError as error:
        text = f"{__name__}.{name} needs hypothesis: pip install 'sansmcp[testing]'"
        raise ModuleNotFoundError(text, name=error.name) from error
    return getattr(module, name)


__all__ = [
    "CLIENT_CAPABILITIES",
    "CLIENT_INFO",
    "SERVER_CAPABILITIES",
    "SERVER_INFO",
    "Actor",
    "Exploration",
    "ExplorationFailed",
    "Flight",
    "HTTPExchange",
    "HTTPPair",
    "Handle",
    "InvariantBroken",
    "Pair",
    "Script",
    "Step",
    "Wire",
    "World",
    "acknowledge",
    "answer",
    "answer_lookup",
    "answers",
    "ask",
    "bad_request_ids",
    "batches",
    "cancel",
    "canonical",
    "close",
    "complete_task",
    "create_task",
    "drain",
    "encoded",
    "end_listener",
    "envelopes",
    "explore",
    "fail_lookup",
    "fail_sending",
    "json_objects",
    "json_values",
    "listen",
    "lose_records",
    "messages",
    "nearly_messages",
    "notifications",
    "plain",
    "progress",
    "progress_tokens",
    "provide_input",
    "provide_task_input",
    "publish",
    "refuse",
    "request",
    "request_ids",
    "requests",
    "require_input",
    "require_task_input",
    "wire_bytes",
    "wire_lines",
]
