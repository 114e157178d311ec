"""Judges messages by the official JSON schemas of the Model Context Protocol.

The schemas are in `tests/data/schema`.

`jsonschema-rs` validates, because property tests judge hundreds of thousands of messages: it needs
a few microseconds for a small `tools/call`, the pure Python `jsonschema` some hundreds.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, TypeAlias, cast

import attrs
import jsonschema_rs

from tests.support import data

Sender: TypeAlias = Literal["client", "server"]
Kind: TypeAlias = Literal["request", "notification", "result", "error"]
Validator: TypeAlias = jsonschema_rs.Draft7Validator | jsonschema_rs.Draft202012Validator

LEGACY_REVISIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
REVISIONS: Final = (*LEGACY_REVISIONS, "2026-07-28")

SENDERS: Final[tuple[Sender, ...]] = ("client", "server")
# A request XRequest has the result XResult, but for these requests the result has no definition.
ANSWERED_EMPTY: Final = frozenset(
    {"PingRequest", "SetLevelRequest", "SubscribeRequest", "UnsubscribeRequest"}
)
# The requests of 2025-11-25 that `params.task` can turn into a task. Their params have this member
# in the schema, behind references and unions; in other requests a `task` has no meaning.
TASK_REQUESTS: Final = frozenset({"CallToolRequest", "CreateMessageRequest", "ElicitRequest"})


def _at(value: Any, *path: str) -> Any:
    """Return the member of a member of a JSON value, or None where one of them is missing."""
    for step in path:
        value = cast("dict[str, Any]", value).get(step) if isinstance(value, dict) else None
    return value


def _patch(revision: str, definitions: Any) -> None:
    """Correct the errors that generating schema.json from schema.ts has caused."""
    if revision == "2025-06-18":
        # ElicitResult.content values: schema.ts has `string | number | boolean`.
        values = definitions["ElicitResult"]["properties"]["content"]["additionalProperties"]
        values["type"] = ["string", "number", "boolean"]
    if revision in ("2025-11-25", "2026-07-28"):
        # The same values; these revisions allow lists of strings, too.
        values = definitions["ElicitResult"]["properties"]["content"]["additionalProperties"]
        values["anyOf"][1]["type"] = ["string", "number", "boolean"]
    if revision == "2026-07-28":
        # JSONValue: schema.ts has `number` here, and also `null`, which schema.json lacks.
        definitions["JSONValue"]["anyOf"][2]["type"] = ["string", "number", "boolean", "null"]


@attrs.frozen(eq=False)
class Schema:
    """The definitions of one revision, with tables that tell which definition judges a message."""

    revision: str
    dialect: str
    keyword: str  # the name of the member with all definitions, which depends on the dialect
    definitions: Mapping[str, Any]
    calls: Mapping[tuple[Sender, Kind, str], str]  # (sender, kind, method) -> definition
    methods: frozenset[str]  # all methods that the schema names, of either side
    errors: Mapping[int, str]  # code -> definition, for errors with prescribed data
    result_envelope: str
    error_envelope: str

    @property
    def has_batches(self) -> bool:
        return "JSONRPCBatchRequest" in self.definitions

    def may_need_input(self, request: str) -> bool:
        """Whether the response to this request may be questions (2026-07-28)."""
        response = self.definitions.get(request.removesuffix("Request") + "ResultResponse")
        return {"$ref": f"#/{self.keyword}/InputRequiredResult"} in (
            _at(response, "properties", "result", "anyOf") or ()
        )

    def violations(self, value: object, *names: str, result: str | None = None) -> list[str]:
        """How `value` breaks the definitions `names`, and its `result` the definition `result`."""
        validator = _validator(self.revision, names, result)
        if validator.is_valid(cast("Any", value)):
            return []
        label = " ".join((*names, result or "")).strip()
        return [
            f"/{'/'.join(map(str, error.instance_path))}: {error.message:.300} ({label})"
            for error in validator.iter_errors(cast("Any", value))
        ]


@cache
def schema_of(revision: str) -> Schema:
    """Load, patch and index the official schema of a revision."""
    document = data.schema(revision)
    keyword = "$defs" if "$defs" in document else "definitions"
    definitions: dict[str, Any] = document[keyword]
    _patch(revision, definitions)

    method = {
        name: _at(body, "properties", "method", "const") for name, body in definitions.items()
    }
    calls: dict[tuple[Sender, Kind, str], str] = {}
    kinds: tuple[Kind, ...] = ("request", "notification")
    for sender in SENDERS:
        for kind in kinds:
            union = f"{sender.title()}{kind.title()}"
            members = _at(definitions, union, "anyOf") or ()
            # A union of one member is a copy of the member (2026-07-28, ClientNotification).
            # A union of none is absent: modern servers send no requests.
            for name in [member["$ref"].rpartition("/")[2] for member in members] or [union]:
                if name in definitions:
                    calls[sender, kind, method[name]] = name
    errors = {
        code: name
        for name, body in definitions.items()
        for part in _at(body, "properties", "error", "allOf") or ()
        if (code := _at(part, "properties", "code", "const")) is not None
    }
    new_names = "JSONRPCResultResponse" in definitions
    return Schema(
        revision=revision,
        dialect=document["$schema"],
        keyword=keyword,
        definitions=definitions,
        calls=calls,
        methods=frozenset(filter(None, method.values())),
        errors=errors,
        result_envelope="JSONRPCResultResponse" if new_names else "JSONRPCResponse",
        error_envelope="JSONRPCErrorResponse" if new_names else "JSONRPCError",
    )


@cache
def _validator(revision: str, names: tuple[str, ...], result: str | None) -> Validator:
    schema = schema_of(revision)
    root = f"#/{schema.keyword}/"
    parts: list[Any] = [{"$ref": root + name} for name in names]
    if result is not None:
        parts.append({"properties": {"result": {"$ref": root + result}}})
    whole = {"$schema": schema.dialect, "allOf": parts, schema.keyword: schema.definitions}
    # Formats (uri, byte) do not validate in 2020-12. In draft 7 that is optional, and would make
    # the older revisions stricter about values of applications.
    return cast("Validator", jsonschema_rs.validator_for(whole, validate_formats=False))


def is_stateless(params: object) -> bool:
    """Whether these params of a request name a revision, known or unknown."""
    return _at(params, "_meta", "io.modelcontextprotocol/protocolVersion") is not None


def kind_of(message: object) -> Kind | None:
    """The kind of a decoded message; None if it is no message, or has the members of two kinds."""
    if not isinstance(message, dict):
        return None
    members = cast("dict[str, Any]", message)
    match [mark for mark in ("method", "result", "error") if mark in members]:
        case ["method"]:
            return "request" if "id" in members else "notification"
        case ["result"]:
            return "result"
        case ["error"]:
            return "error"
        case _:
            return None


@attrs.frozen(eq=False)
class _Asked:
    """A request without a response so far."""

    schema: Schema
    definition: str | None  # None: a method that the schema does not know
    params: Any


class Transcript:
    """The messages of a client and a server, each judged when it is recorded.

    A request or a notification is judged by the definition of its method. A response is judged by
    that of its request, which has the same id of the same type: `1` and `"1"` differ. A method that
    the revision does not know is an extension, of which only the envelope is judged. It is a
    problem of the sender if the revision knows the method for the other side only, or for another
    kind of message. It is also a problem if a result answers no open request. So a transcript is
    for one client, has the messages of both sides, and has each request before its response.

    The revision is the given one until the server's InitializeResult names another. A request
    whose `_meta` names a revision is judged by the modern one, and so is its response, unless
    `speaks` has no modern revision: that member has no meaning for a server of legacy revisions.
    """

    def __init__(self, revision: str = "2025-11-25", speaks: Sequence[str] = REVISIONS) -> None:
        self.revision = revision
        self.speaks = speaks
        self.messages: list[tuple[Sender, object]] = []
        self._problems: dict[Sender, list[str]] = {"client": [], "server": []}
        self._open: dict[object, list[_Asked]] = {}
        self._tasks: dict[tuple[Sender, object], str] = {}  # (side, taskId) -> result type

    def record(self, sender: Sender, message: object) -> None:
        """Record one decoded message, or one batch as a list."""
        where = f"message {len(self.messages)}"
        self.messages.append((sender, message))
        if isinstance(message, list):
            found = self._judge_batch(sender, cast("list[object]", message))
        else:
            found = self._judge(sender, message)
        self._problems[sender] += [f"{where}: {text}" for text in found]

    def problems(self, sender: Sender) -> list[str]:
        """The problems in the messages of this side; none if all are valid."""
        return list(self._problems[sender])

    def _judge_batch(self, sender: Sender, batch: list[object]) -> list[str]:
        if not schema_of(self.revision).has_batches:
            return [f"{self.revision} has no batches"]
        if not batch:  # The schema allows it, JSON-RPC does not.
            return ["an empty batch"]
        kinds = {kind_of(message) for message in batch}
        mixed = bool(kinds & {"request", "notification"} and kinds & {"result", "error"})
        found = ["a batch of both calls and answers"] if mixed else []
        for message in batch:
            found += self._judge(sender, message)
        return found

    def _judge(self, sender: Sender, message: Any) -> list[str]:
        match kind := kind_of(message):
            case "request" | "notification":
                return self._judge_call(sender, kind, message)
            case "result":
                return self._judge_result(sender, message)
            case "error":
                return self._judge_error(sender, message)
            case None:
                return [f"neither one call nor one answer: {message!r:.100}"]

    def _judge_call(self, sender: Sender, kind: Kind, message: Any) -> list[str]:
        method, params = str(message["method"]), message.get("params")
        schema = self._schema_for(method, params)
        definition = schema.calls.get((sender, kind, method))
        if kind == "request":
            asked = _Asked(schema, definition, params)
            self._open.setdefault(_key(sender, message["id"]), []).append(asked)
        if definition is None and method in schema.methods:
            return [f"{method} is no {kind} of a {sender} in {schema.revision}"]
        # Until 2025-06-18 the definition of a method lacks `jsonrpc` and `id`, so judge the
        # envelope too.
        envelope = "JSONRPCRequest" if kind == "request" else "JSONRPCNotification"
        return schema.violations(message, envelope, *filter(None, [definition]))

    def _schema_for(self, method: str, params: Any) -> Schema:
        """The schema that judges this request or notification, which may name its revision."""
        named = _at(params, "protocolVersion")
        if method == "initialize":
            # A client has probed a modern server, and falls back.
            return schema_of(named if named in LEGACY_REVISIONS else self.revision)
        if REVISIONS[-1] in self.speaks and is_stateless(params):
            return schema_of(REVISIONS[-1])
        return schema_of(self.revision)

    def _judge_result(self, sender: Sender, message: Any) -> list[str]:
        waiting = self._open.get(_key(_other(sender), message.get("id")))
        if not waiting:
            schema = schema_of(self.revision)
            found = schema.violations(message, schema.result_envelope)
            return [f"answers no open request: id {message.get('id')!r:.100}", *found]
        # A peer may break the rules and use an id twice at once: take the request that fits best.
        judged = [(asked, self._compare(sender, asked, message)) for asked in waiting]
        asked, found = min(judged, key=lambda pair: len(pair[1]))
        waiting.remove(asked)
        self._learn(sender, asked, message["result"])
        return found

    def _compare(self, sender: Sender, asked: _Asked, message: Any) -> list[str]:
        schema, result = asked.schema, message["result"]
        if asked.definition == "InitializeRequest":
            agreed = _at(result, "protocolVersion")
            if agreed not in LEGACY_REVISIONS:
                return [f"InitializeResult for a revision without a handshake: {agreed!r:.100}"]
            schema = schema_of(agreed)
        return schema.violations(
            message, schema.result_envelope, result=self._type_of_result(sender, asked, result)
        )

    def _type_of_result(self, sender: Sender, asked: _Asked, result: Any) -> str:
        request, schema = asked.definition, asked.schema
        if request is None:
            return "Result"
        if request in ANSWERED_EMPTY:
            return "EmptyResult"
        # Not by a union of both: InputRequiredResult and Result allow so much that they would
        # accept most invalid results of the usual type.
        kind = _at(result, "resultType")
        if kind == "input_required" and schema.may_need_input(request):
            return "InputRequiredResult"
        if kind == "task" and request == "CallToolRequest" and schema.revision == REVISIONS[-1]:
            return "Result"  # The tasks extension has a schema of its own.
        if _makes_task(asked, result):
            return "CreateTaskResult"
        if request == "GetTaskPayloadRequest":  # It has the result of that request.
            task = _at(asked.params, "taskId")
            if isinstance(task, str):
                return self._tasks.get((sender, task), "GetTaskPayloadResult")
        return request.removesuffix("Request") + "Result"

    def _learn(self, sender: Sender, asked: _Asked, result: Any) -> None:
        agreed, task = _at(result, "protocolVersion"), _at(result, "task", "taskId")
        if asked.definition == "InitializeRequest" and agreed in LEGACY_REVISIONS:
            self.revision = agreed
        elif asked.definition and _makes_task(asked, result) and isinstance(task, str):
            self._tasks[sender, task] = asked.definition.removesuffix("Request") + "Result"

    def _judge_error(self, sender: Sender, message: Any) -> list[str]:
        schema = schema_of(self.revision)
        # An error needs no request: it may answer an invalid one.
        if waiting := self._open.get(_key(_other(sender), message.get("id"))):
            # Of two requests with one id, the later one is refused.
            schema = waiting.pop().schema
        code = _at(message["error"], "code")
        prescribed = schema.errors.get(code) if isinstance(code, int) else None
        return schema.violations(message, schema.error_envelope, *filter(None, [prescribed]))


def _other(sender: Sender) -> Sender:
    return "server" if sender == "client" else "client"


def _key(asker: Sender, request_id: object) -> object:
    """A key for a request: `1`, `"1"` and `true` differ, `1` and `1.0` do not."""
    if isinstance(request_id, bool) or not isinstance(request_id, (str, int, float)):
        return asker, "invalid", repr(request_id)  # In Python `True == 1`, and a list has no hash.
    return asker, request_id


def _makes_task(asked: _Asked, result: Any) -> bool:
    """Whether a request became a task; a receiver without tasks answers in the usual way."""
    return (
        "CreateTaskResult" in asked.schema.definitions
        and asked.definition in TASK_REQUESTS
        and _at(asked.params, "task") is not None
        and _at(result, "task") is not None
    )
