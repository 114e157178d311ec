"""The tools, resources and prompts that the official conformance suite expects of a server.

The names and texts are the suite's: it looks for them.
"""

from typing import Any, Final

from sansmcp import JSONObject

PNG: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4"
    "z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
)
WAV: Final = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="


def text(value: str) -> JSONObject:
    return {"type": "text", "text": value}


IMAGE: Final[JSONObject] = {"type": "image", "data": PNG, "mimeType": "image/png"}


def embedded(uri: str, mime_type: str, value: str) -> JSONObject:
    resource: JSONObject = {"uri": uri, "mimeType": mime_type, "text": value}
    return {"type": "resource", "resource": resource}


FIXED: Final[dict[str, list[JSONObject]]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}],
    "test_embedded_resource": [
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        IMAGE,
        embedded(
            "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
        ),
    ],
    "json_schema_2020_12_tool": [text("The schema is what counts.")],
    "test_mirrored_parameter": [text("The field is what counts.")],
}
"""Tools that say the same always."""

ADDRESS: Final[JSONObject] = {
    "$anchor": "addressDef",
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
}
SCHEMAS: Final[dict[str, JSONObject]] = {
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": ADDRESS},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {
            "properties": {"contactMethod": {"const": "phone"}},
            "required": ["contactMethod"],
        },
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
    "test_mirrored_parameter": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    },
    "greet": {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    },
    "slow_compute": {
        "type": "object",
        "properties": {"seconds": {"type": "number"}, "label": {"type": "string"}},
        "required": ["seconds"],
    },
    "confirm_delete": {
        "type": "object",
        "properties": {"filename": {"type": "string"}},
        "required": ["filename"],
    },
    "test_sampling": {
        "type": "object",
        "properties": {"prompt": {"type": "string"}},
        "required": ["prompt"],
    },
    "test_elicitation": {
        "type": "object",
        "properties": {"message": {"type": "string"}},
        "required": ["message"],
    },
}
"""Of the tools that take arguments, or are to look as if they did."""


# -------------------------------------------------------------------------------- questions


def form(message: str, properties: dict[str, Any], required: list[str]) -> JSONObject:
    schema: JSONObject = {"type": "object", "properties": properties, "required": required}
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": schema},
    }


def name_form(message: str = "What is your name?") -> JSONObject:
    return form(message, {"name": {"type": "string"}}, ["name"])


def sampling(prompt: str, tokens: int = 100) -> JSONObject:
    messages = [{"role": "user", "content": text(prompt)}]
    return {
        "method": "sampling/createMessage",
        "params": {"messages": messages, "maxTokens": tokens},
    }


ROOTS: Final[JSONObject] = {"method": "roots/list", "params": {}}
SURE: Final = form("Are you sure?", {"confirm": {"type": "boolean"}}, ["confirm"])
CONFIRM: Final = form("Please confirm", {"ok": {"type": "boolean"}}, ["ok"])
CAPITAL: Final = sampling("What is the capital of France?")

DEFAULTS: Final = form(
    "Please check these defaults",
    {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": True},
    },
    [],
)


def _titled(noun: str) -> list[JSONObject]:
    numbers = zip(("First", "Second", "Third"), range(1, 4), strict=True)
    return [{"const": f"value{number}", "title": f"{word} {noun}"} for word, number in numbers]


_PLAIN: Final[list[Any]] = ["option1", "option2", "option3"]
ENUMS: Final = form(
    "Please choose",
    {
        "untitledSingle": {"type": "string", "enum": _PLAIN},
        "titledSingle": {"type": "string", "oneOf": _titled("Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _PLAIN}},
        "titledMulti": {"type": "array", "items": {"anyOf": _titled("Choice")}},
    },
    [],
)

# ------------------------------------------------------------------------- resources, prompts

RESOURCES: Final[dict[str, JSONObject]] = {
    "test://static-text": {
        "mimeType": "text/plain",
        "text": "This is the content of the static text resource.",
    },
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Nothing has changed."},
}

PROMPT_ARGUMENTS: Final[dict[str, list[str]]] = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    "test_input_required_result_prompt": [],
}
