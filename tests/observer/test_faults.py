"""Each seeded fault is reported against the right side, and nothing else is.

A fault is written for the side `x` that makes it, with `y` as the other, and tried in either role
where the rule binds both.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import attrs
import pytest

from sansmcp import MISSING, JSONObject, Side
from sansmcp.testing import CLIENT_CAPABILITIES, SERVER_CAPABILITIES
from tests.support.tasks import RELATED, STAMP
from tests.support.watching import NEWEST, C, S, Step, accused, observe, opening
from tests.support.wire import call, error, note, result

Steps: TypeAlias = Callable[[Side, Side], list[Step]]

BOTH = (C, S)
TASKLESS: dict[Side, JSONObject] = {
    C: {"roots": {}, "sampling": {}, "elicitation": {"form": {}}},
    S: {"tools": {}, "resources": {}, "prompts": {}},
}


def ping(id: object, token: object = MISSING) -> JSONObject:
    if token is MISSING:
        return call(id, "ping")
    return call(id, "ping", {"_meta": {"progressToken": token}})


def cancel(id: object = MISSING) -> JSONObject:
    return note("notifications/cancelled", {} if id is MISSING else {"requestId": id})


def progress(token: object, value: object, **more: object) -> JSONObject:
    return note("notifications/progress", {"progressToken": token, "progress": value, **more})


def task_progress(token: object, value: object) -> JSONObject:
    """Progress of the task "t"."""
    return progress(token, value, _meta={RELATED: {"taskId": "t"}})


def long(side: Side, id: object, token: object = MISSING) -> JSONObject:
    """A request that a side may send for a task."""
    params: JSONObject = {"task": {}}
    if token is not MISSING:
        params["_meta"] = {"progressToken": token}
    if side is C:
        return call(id, "tools/call", {"name": "echo", **params})
    return call(id, "sampling/createMessage", {"messages": [], "maxTokens": 1, **params})


def task(id: object, status: str = "working") -> JSONObject:
    return result(id, {"task": {**status_of(status)}})


def status_of(status: str) -> JSONObject:
    times = {"createdAt": STAMP, "lastUpdatedAt": STAMP}
    return {"taskId": "t", "status": status, "ttl": None, **times}


def task_status(status: str) -> JSONObject:
    return note("notifications/tasks/status", status_of(status))


def level(id: object, name: object) -> JSONObject:
    return call(id, "logging/setLevel", {"level": name})


def log(name: object) -> JSONObject:
    return note("notifications/message", {"level": name, "data": 1})


def updated(uri: str) -> JSONObject:
    return note("notifications/resources/updated", {"uri": uri})


def subscribe(id: object, uri: object, verb: str = "subscribe") -> JSONObject:
    return call(id, f"resources/{verb}", {"uri": uri})


def elicit(id: object, **params: Any) -> JSONObject:
    return call(id, "elicitation/create", params)


@attrs.frozen
class Fault:
    """A fault after the handshake, and similar conversations in which no side is at fault."""

    rule: str
    steps: Steps
    innocents: tuple[Steps, ...]
    roles: tuple[Side, ...] = BOTH
    revision: str = NEWEST
    client: JSONObject = CLIENT_CAPABILITIES
    server: JSONObject = SERVER_CAPABILITIES


FAULTS: dict[str, Fault] = {
    # ------------------------------------------------------------------------------------- ids
    "an id used again": Fault(
        "ID-001",
        lambda x, y: [(x, ping(1)), (y, result(1, {})), (x, ping(1)), (y, result(1, {}))],
        (
            lambda x, y: [(x, ping(1)), (y, result(1, {})), (y, ping(1)), (x, result(1, {}))],
            lambda x, y: [(x, ping(1)), (x, ping("1")), (y, result("1", {})), (y, result(1, {}))],
        ),
    ),
    "an id used again in flight": Fault(
        "ID-001",
        lambda x, y: [(x, ping(1)), (x, ping(1)), (y, result(1, {})), (y, result(1, {}))],
        (lambda x, y: [(x, ping(1)), (y, ping(1)), (y, result(1, {})), (x, result(1, {}))],),
    ),
    "the id of a cancelled request used again": Fault(
        "ID-001",
        lambda x, y: [(x, ping(1)), (x, cancel(1)), (x, ping(1)), (y, result(1, {}))],
        (lambda x, y: [(x, ping(1)), (x, cancel(1)), (y, result(1, {})), (x, ping(2))],),
    ),
    "an id used again as a float": Fault(
        "ID-001",
        lambda x, y: [(x, ping(1)), (y, result(1, {})), (x, ping(1.0))],
        (lambda x, y: [(x, ping(1.0)), (y, result(1, {})), (x, ping(2))],),
    ),
    "an id of a name used again": Fault(
        "ID-001",
        lambda x, y: [(x, ping("a")), (y, result("a", {})), (x, ping(5)), (x, ping("a"))],
        (lambda x, y: [(x, ping("a")), (x, ping("A")), (x, ping(""))],),
    ),
    "a request with the id null": Fault(
        "JSON-002",
        lambda x, y: [(x, ping(None))],
        (lambda x, y: [(x, ping(0)), (y, result(0, {}))],),
    ),
    "a request with half an id": Fault(
        "JSON-002",
        lambda x, y: [(x, ping(1.5))],
        (lambda x, y: [(x, ping(-1)), (x, ping(2**70)), (y, result(2**70, {}))],),
    ),
    "a request with an id that is true": Fault(
        "JSON-002",
        lambda x, y: [(x, ping(True))],
        (lambda x, y: [(x, ping("true")), (y, result("true", {}))],),
    ),
    # ---------------------------------------------------------------------------------- answers
    "an answer to nobody": Fault(
        "JSON-004",
        lambda x, y: [(y, ping(1)), (x, result(2, {}))],
        (lambda x, y: [(y, ping(2)), (y, cancel(2)), (x, result(2, {}))],),
    ),
    "an error to nobody": Fault(
        "JSON-004",
        lambda x, y: [(x, error("x", -32600))],
        (lambda x, y: [(y, ping("x")), (x, error("x", -32603))],),
    ),
    "an answer before its request": Fault(
        "JSON-004",
        lambda x, y: [(x, result(1, {})), (y, ping(1))],
        (lambda x, y: [(y, ping(1)), (x, result(1, {}))],),
    ),
    "a second answer": Fault(
        "JSON-004",
        lambda x, y: [(y, ping(1)), (x, result(1, {})), (x, result(1, {}))],
        (lambda x, y: [(y, ping(1)), (y, ping(2)), (x, result(2, {})), (x, result(1, {}))],),
    ),
    "an answer and an error to a cancelled request": Fault(
        "JSON-004",
        lambda x, y: [(y, ping(1)), (y, cancel(1)), (x, error(1, 0)), (x, result(1, {}))],
        (lambda x, y: [(y, ping(1)), (y, cancel(1)), (x, error(1, 0))],),
    ),
    "an answer with a number as a string": Fault(
        "JSON-004",
        lambda x, y: [(y, ping(7)), (x, result("7", {}))],
        (lambda x, y: [(y, ping(7)), (x, result(7.0, {}))],),
    ),
    "an answer with a string as a number": Fault(
        "JSON-004",
        lambda x, y: [(y, ping("7")), (x, result(7, {}))],
        (lambda x, y: [(y, ping("007")), (x, result("007", {}))],),
    ),
    "an answer without a usable id": Fault(
        "JSON-002",
        lambda x, y: [(y, ping(1)), (x, result([1], {})), (x, result(1, {}))],
        (lambda x, y: [(y, ping(1)), (x, result(1, {}))],),
    ),
    "an answer without result and error": Fault(
        "JSON-005",
        lambda x, y: [(y, ping(1)), (x, {"jsonrpc": "2.0", "id": 1})],
        (lambda x, y: [(y, ping(1)), (x, result(1, {}))],),
    ),
    "an answer with result and error": Fault(
        "JSON-006",
        lambda x, y: [(y, ping(1)), (x, {**result(1, {}), **error(1, 0)})],
        (lambda x, y: [(y, ping(1)), (x, result(1, {"error": {}}))],),
    ),
    "a result that is no object": Fault(
        "JSON-007",
        lambda x, y: [(y, ping(1)), (x, result(1, []))],
        (lambda x, y: [(y, ping(1)), (x, result(1, {"anything": []}))],),
    ),
    "an error without a code": Fault(
        "JSON-008",
        lambda x, y: [(y, ping(1)), (x, {"jsonrpc": "2.0", "id": 1, "error": {"message": "no"}})],
        (lambda x, y: [(y, ping(1)), (x, error(1, -1, "no", None))],),
    ),
    "an error with the id null": Fault(
        "JSON-003",
        lambda x, y: [(x, error(None, -32700))],
        (lambda x, y: [(x, {"jsonrpc": "2.0", "error": {"code": -32700, "message": "?"}})],),
    ),
    "an error without an id where it needs one": Fault(
        "JSON-010",
        lambda x, y: [(x, {"jsonrpc": "2.0", "error": {"code": -32700, "message": "?"}})],
        (lambda x, y: [(y, ping(1)), (x, error(1, -32700))],),
        revision="2025-06-18",
    ),
    # -------------------------------------------------------------------------------- envelopes
    "a message without a version": Fault(
        "JSON-001",
        lambda x, y: [(x, {"id": 1, "method": "ping"}), (y, error(1, -32600))],
        (lambda x, y: [(x, {"jsonrpc": "2.0", "id": 1, "method": "ping", "extra": 1})],),
    ),
    "a notification of another version": Fault(
        "JSON-001",
        lambda x, y: [(x, {"jsonrpc": "1.0", "method": "notifications/x"})],
        (lambda x, y: [(x, note("notifications/x"))],),
    ),
    "an answer without a version": Fault(
        "JSON-001",
        lambda x, y: [(y, ping(1)), (x, {"id": 1, "result": {}})],
        (lambda x, y: [(y, ping(1)), (x, result(1, {}))],),
    ),
    "a message that is no object": Fault(
        "JSON-001",
        lambda x, y: [(x, 5), (x, "ping")],
        (lambda x, y: [(x, ping(5)), (y, result(5, {}))],),
    ),
    "a method that is no string": Fault(
        "ERR-001",
        lambda x, y: [(x, call(1, 5)), (y, error(1, -32600))],
        (lambda x, y: [(x, call(1, "x/unknown")), (y, error(1, -32601))],),
    ),
    "a message of no kind": Fault(
        "ERR-001",
        lambda x, y: [(x, {"jsonrpc": "2.0", "id": 9}), (y, error(9, -32600))],
        (lambda x, y: [(x, ping(9)), (y, error(9, -32600))],),
    ),
    "a message of no kind and of no id": Fault(
        "ERR-001",
        lambda x, y: [(x, {"jsonrpc": "2.0"})],
        (lambda x, y: [(x, note("x/y"))],),
    ),
    "a request that is an answer": Fault(
        "ERR-001",
        lambda x, y: [(x, {**ping(1), "result": {}}), (y, error(1, -32600))],
        (lambda x, y: [(x, ping(1)), (y, result(1, {}))],),
    ),
    "params that are a list": Fault(
        "JSON-017",
        lambda x, y: [(x, call(1, "ping", [])), (x, note("notifications/x", []))],
        (lambda x, y: [(x, call(1, "ping", {})), (x, note("notifications/x", {}))],),
    ),
    "params that are null": Fault(
        "OWN-015",
        lambda x, y: [(x, call(1, "ping", None)), (x, note("notifications/x", None))],
        (lambda x, y: [(x, call(1, "ping")), (x, note("notifications/x"))],),
    ),
    "params of a notification that are null": Fault(
        "OWN-015",
        lambda x, y: [(x, note("notifications/x", None))],
        (lambda x, y: [(x, note("notifications/x"))],),
    ),
    "a method of another direction": Fault(
        "OWN-020",
        lambda x, y: [(x, call(1, "roots/list" if x is C else "tools/list"))],
        (lambda x, y: [(x, call(1, "tools/list" if x is C else "roots/list"))],),
    ),
    "a notification as a request": Fault(
        "OWN-020",
        lambda x, y: [(x, call(1, "notifications/cancelled", {"requestId": 1}))],
        (lambda x, y: [(x, call(1, "x/unknown", {"requestId": 1}))],),
    ),
    "params without a member": Fault(
        "OWN-014",
        lambda x, y: [(x, call(1, "tools/call" if x is C else "sampling/createMessage", {}))],
        (lambda x, y: [(x, call(1, "x/unknown", {}))],),
    ),
    "a result without a member": Fault(
        "OWN-014",
        lambda x, y: [(y, call(1, "tools/list" if y is C else "roots/list")), (x, result(1, {}))],
        (
            lambda x, y: [
                (y, call(1, "tools/list" if y is C else "roots/list")),
                (x, result(1, {"tools": [], "roots": []})),
            ],
        ),
    ),
    "a cursor that is null": Fault(
        "OWN-015",
        lambda x, y: [(x, call(1, "tools/list", {"cursor": None}))],
        (lambda x, y: [(x, call(1, "tools/list", {"cursor": ""}))],),
        roles=(C,),
    ),
    "a next cursor that is null": Fault(
        "OWN-015",
        lambda x, y: [
            (y, call(1, "tools/list")),
            (x, result(1, {"tools": [], "nextCursor": None})),
        ],
        (lambda x, y: [(y, call(1, "tools/list")), (x, result(1, {"tools": []}))],),
        roles=(S,),
    ),
    # ----------------------------------------------------------------------------- cancellation
    "a cancellation of nothing": Fault(
        "CANC-001",
        lambda x, y: [(x, cancel(3))],
        (lambda x, y: [(x, ping(3)), (x, cancel(3)), (x, cancel(3))],),
    ),
    "a cancellation of the other side's request": Fault(
        "CANC-001",
        lambda x, y: [(y, ping(3)), (x, cancel(3))],
        (lambda x, y: [(y, ping(3)), (x, ping(3)), (x, cancel(3))],),
    ),
    "a cancellation before its request": Fault(
        "CANC-001",
        lambda x, y: [(x, cancel(3)), (x, ping(3))],
        (lambda x, y: [(x, ping(3)), (y, result(3, {})), (x, cancel(3))],),
    ),
    "a cancellation with another type of id": Fault(
        "CANC-001",
        lambda x, y: [(x, ping(3)), (x, cancel("3"))],
        (lambda x, y: [(x, ping(3)), (x, cancel(3.0))],),
    ),
    "a cancellation after the answer was read": Fault(
        "CANC-002",
        lambda x, y: [
            (x, ping(1)),
            (y, result(1, {})),
            (y, ping(7)),
            (x, result(7, {})),
            (x, cancel(1)),
        ],
        (
            lambda x, y: [(x, ping(1)), (y, result(1, {})), (x, cancel(1))],
            lambda x, y: [(x, ping(1)), (y, ping(7)), (y, result(1, {})), (x, cancel(1))],
            lambda x, y: [  # it has read the ping, and not the answer behind it
                (x, ping(1)),
                (y, ping(7)),
                (y, result(1, {})),
                (x, result(7, {})),
                (x, cancel(1)),
            ],
            lambda x, y: [
                (x, ping(1)),
                (y, result(1, {})),
                (y, ping(7)),
                (x, cancel(1)),
                (x, result(7, {})),
            ],
        ),
    ),
    "a cancellation after progress behind the answer was told of": Fault(
        "CANC-002",
        lambda x, y: [
            (x, ping(1)),
            (y, result(1, {})),
            (y, ping(7, "t")),
            (x, progress("t", 1)),
            (x, cancel(1)),
        ],
        (lambda x, y: [(x, ping(1)), (y, result(1, {})), (y, ping(7, "t")), (x, cancel(1))],),
    ),
    "a cancellation of a request for a task": Fault(
        "CANC-005",
        lambda x, y: [(x, long(x, 1)), (x, cancel(1))],
        (
            lambda x, y: [
                (x, long(x, 1)),
                (y, task(1)),
                (x, call(2, "tasks/cancel", {"taskId": "t"})),
            ],
        ),
    ),
    "a cancellation without an id": Fault(
        "CANC-006",
        lambda x, y: [(x, cancel())],
        (lambda x, y: [(x, ping(0)), (x, cancel(0))],),
    ),
    "a cancellation without an id in an older revision": Fault(
        "CANC-007",
        lambda x, y: [(x, cancel())],
        (lambda x, y: [(x, ping("")), (x, cancel(""))],),
        revision="2024-11-05",
    ),
    "a cancellation of what is no id": Fault(
        "JSON-002",
        lambda x, y: [(x, cancel({}))],
        (
            lambda x, y: [
                (x, ping(1)),
                (x, note("notifications/cancelled", {"requestId": 1, "x": {}})),
            ],
        ),
    ),
    # -------------------------------------------------------------------------------- progress
    "a token that is none": Fault(
        "PROG-001",
        lambda x, y: [(x, ping(1, True)), (y, progress(True, 1))],
        (
            lambda x, y: [
                (x, ping(1, 0)),
                (y, progress(0, 1)),
                (x, ping(2, "")),
                (y, progress("", 1)),
            ],
        ),
    ),
    "progress with a token that is none": Fault(
        "PROG-001",
        lambda x, y: [(y, ping(1, 1)), (x, progress([1], 1))],
        (lambda x, y: [(y, ping(1, 1)), (x, progress(1.0, 0.5))],),
    ),
    "a _meta that is no object": Fault(
        "OWN-014",
        lambda x, y: [(x, call(1, "ping", {"_meta": []}))],
        (lambda x, y: [(x, call(1, "ping", {"_meta": {}}))],),
    ),
    "a token in use": Fault(
        "PROG-002",
        lambda x, y: [(x, ping(1, "t")), (x, ping(2, "t")), (y, progress("t", 2))],
        (
            lambda x, y: [(x, ping(1, "t")), (y, result(1, {})), (x, ping(2, "t"))],
            lambda x, y: [(x, ping(1, "t")), (x, cancel(1)), (x, ping(2, "t"))],
            lambda x, y: [(x, ping(1, "t")), (y, ping(1, "t"))],
            lambda x, y: [(x, ping(1, 1)), (x, ping(2, "1"))],
        ),
    ),
    "progress that stands still": Fault(
        "PROG-003",
        lambda x, y: [(y, ping(1, 1)), (x, progress(1, 2)), (x, progress(1, 2))],
        (
            lambda x, y: [(y, ping(1, 1)), (x, progress(1, 2)), (x, progress(1, 2.5))],
            lambda x, y: [
                (y, ping(1, 1)),
                (y, ping(2, 2)),
                (x, progress(1, 2)),
                (x, progress(2, 1)),
            ],
        ),
    ),
    "progress that goes back": Fault(
        "PROG-003",
        lambda x, y: [(y, ping(1, 1)), (x, progress(1, 2)), (x, progress(1, -1))],
        (
            lambda x, y: [  # for the first, which it has not read the cancellation of; the second
                (y, ping(1, 1)),
                (y, cancel(1)),
                (y, ping(2, 1)),
                (x, progress(1, 9)),
                (x, progress(1, 1)),
                (x, result(2, {})),
                (x, progress(1, 10)),
            ],
            lambda x, y: [
                (y, ping(1, 1)),
                (x, progress(1, 9)),
                (x, result(1, {})),
                (y, ping(2, 1)),
                (x, progress(1, 1)),
            ],
        ),
    ),
    "progress that is no number": Fault(
        "OWN-014",
        lambda x, y: [(y, ping(1, 1)), (x, progress(1, "half"))],
        (lambda x, y: [(y, ping(1, 1)), (x, progress(1, 0))],),
    ),
    "progress of nothing": Fault(
        "PROG-006",
        lambda x, y: [(y, ping(1)), (x, progress(1, 1))],
        (lambda x, y: [(y, ping(1, 1)), (y, cancel(1)), (x, progress(1, 1))],),
    ),
    "progress before its request": Fault(
        "PROG-006",
        lambda x, y: [(x, progress(1, 1)), (y, ping(1, 1))],
        (lambda x, y: [(y, ping(1, 1)), (x, progress(1, 1))],),
    ),
    "progress with the token of its own request": Fault(
        "PROG-006",
        lambda x, y: [(x, ping(1, "mine")), (x, progress("mine", 1))],
        (lambda x, y: [(x, ping(1, "mine")), (y, progress("mine", 1))],),
    ),
    "progress after the answer": Fault(
        "PROG-010",
        lambda x, y: [(y, ping(1, 1)), (x, result(1, {})), (x, progress(1, 1))],
        (
            lambda x, y: [(y, ping(1, 1)), (x, progress(1, 1)), (x, result(1, {}))],
            lambda x, y: [
                (y, ping(1, 1)),
                (x, result(1, {})),
                (y, ping(2, 1)),
                (x, progress(1, 1)),
            ],
        ),
    ),
    "progress after the late answer to a cancelled request": Fault(
        "PROG-010",
        lambda x, y: [(y, ping(1, 1)), (y, cancel(1)), (x, error(1, 0)), (x, progress(1, 1))],
        (lambda x, y: [(y, ping(1, 1)), (y, cancel(1)), (x, progress(1, 1)), (x, error(1, 0))],),
    ),
    "progress of a task that is over": Fault(
        "PROG-012",
        lambda x, y: [
            (y, long(y, 1, "t")),
            (x, task(1)),
            (x, task_progress("t", 1)),
            (x, task_status("completed")),
            (x, task_progress("t", 2)),
        ],
        (
            lambda x, y: [
                (y, long(y, 1, "t")),
                (x, task(1)),
                (x, task_status("input_required")),
                (x, task_progress("t", 1)),
                (y, call(2, "tasks/get", {"taskId": "t"})),
                (x, result(2, status_of("working"))),
                (x, task_progress("t", 2)),
            ],
        ),
    ),
    # ----------------------------------------------------------------------------- capabilities
    "a request that nobody declared": Fault(
        "CAP-002",
        lambda x, y: [(x, call(1, "completion/complete" if x is C else "elicitation/create", {}))],
        (lambda x, y: [(x, call(1, "tools/list" if x is C else "roots/list"))],),
        client={"roots": {}},
        server={"tools": {}},
    ),
    "a request that nobody declared, in an older revision": Fault(
        "CAP-001",
        lambda x, y: [(x, call(1, "prompts/list" if x is C else "sampling/createMessage", {}))],
        (lambda x, y: [(x, call(1, "tools/list" if x is C else "roots/list"))],),
        client={"roots": {}},
        server={"tools": {}},
        revision="2025-03-26",
    ),
    "a change that its sender did not declare": Fault(
        "CAP-002",
        lambda x, y: [(x, note(f"notifications/{'roots' if x is C else 'tools'}/list_changed"))],
        (lambda x, y: [(x, note("notifications/x"))],),
        client={"roots": {}},
        server={"tools": {"listChanged": False}},
    ),
    "a log message that was not declared": Fault(
        "CAP-002",
        lambda x, y: [(x, log("error"))],
        (lambda x, y: [(x, note("notifications/tools/list_changed"))],),
        roles=(S,),
        server={"tools": {"listChanged": True}},
    ),
    "a subscription that was not declared": Fault(
        "CAP-002",
        lambda x, y: [(x, subscribe(1, "a:b"))],
        (lambda x, y: [(x, call(1, "resources/read", {"uri": "a:b"}))],),
        roles=(C,),
        server={"resources": {}},
    ),
    "a task that nobody declared": Fault(
        "TASK-002",
        lambda x, y: [(x, long(x, 1, "t")), (x, cancel(1)), (y, progress("t", 1))],
        (lambda x, y: [(x, call(1, "tools/list" if x is C else "roots/list", {"task": {}}))],),
        client=TASKLESS[C],
        server=TASKLESS[S],
    ),
    "an elicitation in a mode that was not declared": Fault(
        "ELIC-005",
        lambda x, y: [(x, elicit(1, mode="url", message="?", url="a:b", elicitationId="e"))],
        (lambda x, y: [(x, elicit(1, message="?", requestedSchema={}))],),
        roles=(S,),
        client={"elicitation": {}},
    ),
    "sampling with tools that were not declared": Fault(
        "SAMP-004",
        lambda x, y: [
            (x, call(1, "sampling/createMessage", {"messages": [], "maxTokens": 1, "tools": []}))
        ],
        (lambda x, y: [(x, call(1, "sampling/createMessage", {"messages": [], "maxTokens": 1}))],),
        roles=(S,),
        client={"sampling": {}},
    ),
    # ---------------------------------------------------------------------------------- batches
    "a batch": Fault(
        "BATCH-008",
        lambda x, y: [(x, [ping(1)]), (y, result(1, {}))],
        (lambda x, y: [(x, ping(1)), (y, result(1, {}))],),
        revision="2025-06-18",
    ),
    "a batch of answers, which nobody needs to take for any": Fault(
        "BATCH-008",
        lambda x, y: [
            *((y, ping(1)), (x, [result(1, {})]), (x, ping(2)), (y, result(2, {}))),
            *((y, cancel(1)), (x, result(1, {}))),
        ],
        (lambda x, y: [(y, ping(1)), (x, result(1, {}))],),
    ),
    "an empty batch": Fault(
        "BATCH-005",
        lambda x, y: [(x, [])],
        (lambda x, y: [(x, [note("notifications/x")])],),
        revision="2025-03-26",
    ),
    "an answer outside of its batch": Fault(
        "BATCH-005",
        lambda x, y: [(y, [ping(1), ping(2)]), (x, result(1, {})), (x, [result(2, {})])],
        (
            lambda x, y: [(y, [ping(1), ping(2)]), (x, [result(2, {}), result(1, {})])],
            lambda x, y: [(y, [ping(1), ping(2)]), (y, cancel(1)), (x, [result(2, {})])],
            lambda x, y: [  # which may have been too large a batch to be taken
                *((y, ping(1)), (x, [result(1, {}), ping(2)]), (x, ping(3))),
                *((y, result(3, {})), (y, cancel(1))),
            ],
        ),
        revision="2025-03-26",
    ),
    "a message in a batch that is no object": Fault(
        "JSON-001",
        lambda x, y: [(x, [ping(1), [ping(2)]]), (y, [result(1, {})])],
        (lambda x, y: [(x, [ping(1), ping(2)]), (y, [result(1, {}), result(2, {})])],),
        revision="2025-03-26",
    ),
    # ------------------------------------------------------------------------- logs and changes
    "a log message of an unknown level": Fault(
        "LOG-002",
        lambda x, y: [(x, log("loud"))],
        (lambda x, y: [(x, log("emergency"))],),
        roles=(S,),
    ),
    "a wish for an unknown level": Fault(
        "LOG-002",
        lambda x, y: [(x, level(1, "loud")), (y, error(1, -32602))],
        (lambda x, y: [(x, level(1, "debug")), (y, result(1, {}))],),
        roles=(C,),
    ),
    "a log message below the level": Fault(
        "LOG-004",
        lambda x, y: [(y, level(1, "error")), (x, result(1, {})), (x, log("warning"))],
        (
            lambda x, y: [(y, level(1, "error")), (x, log("debug")), (x, result(1, {}))],
            lambda x, y: [(y, level(1, "error")), (x, error(1, -32603)), (x, log("debug"))],
            lambda x, y: [(y, level(1, "error")), (x, result(1, {})), (x, log("error"))],
            lambda x, y: [  # the second wish may be granted, and its answer on the way
                (y, level(1, "error")),
                (x, result(1, {})),
                (y, level(2, "debug")),
                (x, log("debug")),
                (x, result(2, {})),
                (x, log("debug")),
            ],
            lambda x, y: [  # which of the two was served last cannot be told
                (y, level(1, "error")),
                (y, level(2, "debug")),
                (x, result(2, {})),
                (x, result(1, {})),
                (x, log("debug")),
            ],
        ),
        roles=(S,),
    ),
    "an update without any subscription": Fault(
        "RES-008",
        lambda x, y: [(x, updated("a:b"))],
        (
            lambda x, y: [(y, subscribe(1, "a:")), (x, updated("a:b"))],
            lambda x, y: [
                (y, subscribe(1, "a:")),
                (x, result(1, {})),
                (y, subscribe(2, "a:", "unsubscribe")),
                (x, updated("a:b")),
                (x, result(2, {})),
            ],
        ),
        roles=(S,),
    ),
    "an update after the last subscription": Fault(
        "RES-008",
        lambda x, y: [
            (y, subscribe(1, "a:")),
            (x, result(1, {})),
            (y, subscribe(2, "a:", "unsubscribe")),
            (x, result(2, {})),
            (x, updated("a:")),
        ],
        (
            lambda x, y: [
                (y, subscribe(1, "a:")),
                (y, subscribe(2, "a:", "unsubscribe")),  # it may be served first
                (x, result(2, {})),
                (x, result(1, {})),
                (x, updated("a:")),
            ],
            lambda x, y: [
                (y, subscribe(1, "a:")),
                (x, result(1, {})),
                (y, subscribe(2, "a:", "unsubscribe")),
                (y, subscribe(3, "a:")),
                (x, result(2, {})),
                (x, updated("a:")),
            ],
            lambda x, y: [
                (y, subscribe(1, "a:")),
                (y, subscribe(2, "a:")),
                (x, error(2, -32603)),
                (x, updated("a:")),
            ],
        ),
        roles=(S,),
    ),
    "an update after a subscription that was refused": Fault(
        "RES-008",
        lambda x, y: [(y, subscribe(1, "a:")), (x, error(1, -32602)), (x, updated("a:"))],
        (lambda x, y: [(y, subscribe(1, "a:")), (y, cancel(1)), (x, updated("a:"))],),
        roles=(S,),
    ),
    # -------------------------------------------------------------------------------- lifecycle
    "a second handshake": Fault(
        "LIFE-001",
        lambda x, y: [(x, opening()[0][1] | {"id": 1}), (y, error(1, -32600))],
        (lambda x, y: [(x, ping(1))],),
        roles=(C,),
    ),
    "initialized a second time": Fault(
        "LIFE-004",
        lambda x, y: [(x, note("notifications/initialized"))],
        (lambda x, y: [(x, note("notifications/x"))],),
        roles=(C,),
    ),
    # ------------------------------------------------------------------------------------ lines
    "text from the server": Fault(
        "STDIO-002",
        lambda x, y: [(x, b"Listening on port 8080\n")],
        (lambda x, y: [(x, note("notifications/x"))],),
        roles=(S,),
    ),
    "text from the client": Fault(
        "STDIO-003",
        lambda x, y: [(x, b'{"jsonrpc":"2.0"\n')],
        (lambda x, y: [(x, note("notifications/x"))],),
        roles=(C,),
    ),
    "CR LF": Fault(
        "OWN-017",
        lambda x, y: [(x, b'{"jsonrpc":"2.0","method":"x/y"}\r\n')],
        (lambda x, y: [(x, b' {"jsonrpc":"2.0","method":"x/y"} \n')],),
    ),
}
CASES = [(name, role) for name, fault in FAULTS.items() for role in fault.roles]


def run(fault: Fault, steps: Steps, guilty: Side) -> list[tuple[Side, str]]:
    before = opening(fault.revision, fault.client, fault.server)
    return accused(observe(*before, *steps(guilty, guilty.other)))


@pytest.mark.parametrize(("name", "guilty"), CASES)
def test_a_fault_is_laid_to_the_side_and_the_rule_that_it_breaks(name: str, guilty: Side) -> None:
    """Debugging with the observer depends on the right side and rule, in either role."""
    fault = FAULTS[name]

    assert set(run(fault, fault.steps, guilty)) == {(guilty, fault.rule)}


@pytest.mark.parametrize(("name", "guilty"), CASES)
def test_what_is_close_to_a_fault_is_not_taken_for_it(name: str, guilty: Side) -> None:
    """A race, or a similar member, must not be reported as the fault."""
    fault = FAULTS[name]

    for innocent in fault.innocents:
        assert run(fault, innocent, guilty) == []


def test_there_are_faults_enough() -> None:
    """A rule without a seeded fault may never be found broken."""
    assert len(FAULTS) >= 40
