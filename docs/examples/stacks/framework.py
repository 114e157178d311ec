"""A small framework: decorators, and JSON schemas from annotations, on top of any adapter."""

import inspect
import json
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs
from jsonschema import Draft202012Validator

from sansmcp import ErrorCode, InvalidCursor, JSONObject, paginate
from sansmcp_io.trio import McpError, ServerCall, serve_stdio

Function = TypeVar("Function", bound=Callable[..., Any])
SCALARS: Mapping[Any, str] = {
    **{str: "string", int: "integer", float: "number", bool: "boolean"},
    **{type(None): "null", dict: "object", list: "array"},
}


# -- schemas
def schema_of(hint: Any) -> JSONObject:
    """The JSON schema of an annotation."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in SCALARS:
        return {"type": SCALARS[hint]}
    if origin is list:
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(one) for one in arguments]}
    raise TypeError(f"{hint!r} has no JSON schema here")


def parameters_of(function: Callable[..., Any]) -> JSONObject:
    """The JSON schema of the parameters of a function, except the call."""
    hints = get_type_hints(function)
    properties: JSONObject = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if hints[name] is ServerCall:
            continue
        properties[name] = schema_of(hints[name])
        if parameter.default is parameter.empty:
            required.append(name)
        else:
            properties[name]["default"] = parameter.default
    closed: JSONObject = {"type": "object", "additionalProperties": False}
    return {**closed, "properties": properties, "required": required}


# -- entries
@attrs.frozen
class Entry:
    """A tool, a resource or a prompt: its form in lists, and the function that makes its
    content."""

    shown: JSONObject
    function: Callable[..., Any]
    schema: JSONObject

    async def run(self, call: ServerCall, arguments: JSONObject) -> Any:
        validator: Any = Draft202012Validator(self.schema)
        for error in validator.iter_errors(arguments):
            raise McpError(ErrorCode.INVALID_PARAMS, f"{error.json_path}: {error.message}")
        hints = get_type_hints(self.function)
        of_call = {name: call for name, hint in hints.items() if hint is ServerCall}
        result = self.function(**arguments, **of_call)
        return await result if inspect.isawaitable(result) else result


def content_of(value: Any) -> JSONObject:
    """The result of a tool whose function has returned this value."""
    text = value if isinstance(value, str) else json.dumps(value)
    content: JSONObject = {"content": [{"type": "text", "text": text}]}
    return {**content, "structuredContent": value} if isinstance(value, dict) else content


# -- framework
class Framework:
    """`handle` is the handler for any adapter."""

    def __init__(self, name: str, version: str) -> None:
        self.info: JSONObject = {"name": name, "version": version}
        self.entries: dict[str, dict[str, Entry]] = {"tools": {}, "resources": {}, "prompts": {}}

    @property
    def capabilities(self) -> JSONObject:
        return {kind: {} for kind, entries in self.entries.items() if entries}

    def tool(self, function: Function) -> Function:
        """Make a function a tool, with the arguments that its annotations declare."""
        schema = parameters_of(function)
        return self._add("tools", function.__name__, {"inputSchema": schema}, function, schema)

    def prompt(self, function: Function) -> Function:
        """Make a function a prompt. Its parameters are strings, and so is what it returns."""
        schema = parameters_of(function)
        arguments: list[JSONObject] = [
            {"name": name, "required": name in schema["required"]} for name in schema["properties"]
        ]
        return self._add("prompts", function.__name__, {"arguments": arguments}, function, schema)

    def resource(self, uri: str) -> Callable[[Function], Function]:
        """Make a function without parameters a resource; it returns the text."""

        def decorate(function: Function) -> Function:
            return self._add("resources", uri, {"uri": uri}, function, parameters_of(function))

        return decorate

    def _add(
        self, kind: str, key: str, more: JSONObject, function: Function, schema: JSONObject
    ) -> Function:
        shown = {"name": function.__name__, "description": inspect.getdoc(function) or "", **more}
        self.entries[kind][key] = Entry(shown, function, schema)
        return function

    async def handle(self, call: ServerCall) -> JSONObject:
        kind, _, verb = call.method.partition("/")
        if verb == "templates/list":  # which whoever asks for resources may ask for, too
            return {"resourceTemplates": []}
        if verb == "list":
            return self._page(kind, call.params.get("cursor"))
        if verb not in ("call", "get", "read"):
            raise McpError(ErrorCode.METHOD_NOT_FOUND, f"{call.method} is not served here")
        key = call.params["uri" if kind == "resources" else "name"]
        if (entry := self.entries[kind].get(key)) is None:
            raise McpError(ErrorCode.INVALID_PARAMS, f"there is no {key!r}")
        value = await entry.run(call, call.params.get("arguments") or {})
        if kind == "resources":
            return {"contents": [{"uri": key, "mimeType": "text/plain", "text": value}]}
        if kind == "prompts":
            return {"messages": [{"role": "user", "content": {"type": "text", "text": value}}]}
        return content_of(value)

    def _page(self, kind: str, cursor: str | None) -> JSONObject:
        shown = [entry.shown for entry in self.entries[kind].values()]
        try:
            page, following = paginate(shown, cursor, key=lambda one: one["name"], size=100)
        except InvalidCursor as error:
            raise McpError(ErrorCode.INVALID_PARAMS, str(error)) from None
        return {kind: page, **({} if following is None else {"nextCursor": following})}

    async def run(self) -> None:
        """Serve on standard input and output."""
        await serve_stdio(self.handle, info=self.info, capabilities=self.capabilities)
