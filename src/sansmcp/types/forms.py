"""Fields of forms: the kinds of JSON Schema that a server may use in elicitation."""

from typing import Annotated, Literal, Required, TypeAlias, TypedDict

from ._marks import Since

StringFormat: TypeAlias = Literal["email", "uri", "date", "date-time"]
"""The format of a string."""


@Since("2025-06-18")
class StringSchema(TypedDict, total=False):
    """A field for text."""

    type: Required[Literal["string"]]
    title: str
    description: str
    minLength: int
    maxLength: int
    format: StringFormat
    default: Annotated[str, Since("2025-11-25")]


@Since("2025-06-18")
class NumberSchema(TypedDict, total=False):
    """A field for a number."""

    type: Required[Literal["number", "integer"]]
    title: str
    description: str
    minimum: float
    maximum: float
    default: Annotated[float, Since("2025-11-25")]


@Since("2025-06-18")
class BooleanSchema(TypedDict, total=False):
    """A field for yes or no."""

    type: Required[Literal["boolean"]]
    title: str
    description: str
    default: bool


@Since("2025-11-25")
class EnumOption(TypedDict):
    """One value of a choice, with its title."""

    const: str
    title: str
    """The text that the user sees."""


@Since("2025-11-25")
class UntitledSingleSelectEnumSchema(TypedDict, total=False):
    """A field for one of several values, without titles."""

    type: Required[Literal["string"]]
    title: str
    description: str
    enum: Required[list[str]]
    default: str


@Since("2025-11-25")
class TitledSingleSelectEnumSchema(TypedDict, total=False):
    """A field for one of several values, with titles."""

    type: Required[Literal["string"]]
    title: str
    description: str
    oneOf: Required[list[EnumOption]]
    default: str


SingleSelectEnumSchema: TypeAlias = UntitledSingleSelectEnumSchema | TitledSingleSelectEnumSchema
"""A field for one of several values."""


@Since("2025-11-25")
class UntitledItems(TypedDict):
    """The values of a choice, without titles."""

    type: Literal["string"]
    enum: list[str]


@Since("2025-11-25")
class UntitledMultiSelectEnumSchema(TypedDict, total=False):
    """A field for any number of several values, without titles."""

    type: Required[Literal["array"]]
    title: str
    description: str
    minItems: int
    maxItems: int
    items: Required[UntitledItems]
    default: list[str]


@Since("2025-11-25")
class TitledItems(TypedDict):
    """The values of a choice, with titles."""

    anyOf: list[EnumOption]


@Since("2025-11-25")
class TitledMultiSelectEnumSchema(TypedDict, total=False):
    """A field for any number of several values, with titles."""

    type: Required[Literal["array"]]
    title: str
    description: str
    minItems: int
    maxItems: int
    items: Required[TitledItems]
    default: list[str]


MultiSelectEnumSchema: TypeAlias = UntitledMultiSelectEnumSchema | TitledMultiSelectEnumSchema
"""A field for any number of several values."""


@Since("2025-06-18")
class LegacyTitledEnumSchema(TypedDict, total=False):
    """A field for one of several values in the form of 2025-06-18; do not use it in new code."""

    type: Required[Literal["string"]]
    title: str
    description: str
    enum: Required[list[str]]
    enumNames: list[str]
    """The titles that the user sees, in the order of `enum`."""
    default: Annotated[str, Since("2025-11-25")]


EnumSchema: TypeAlias = SingleSelectEnumSchema | MultiSelectEnumSchema | LegacyTitledEnumSchema
"""A field for a choice."""

PrimitiveSchemaDefinition: TypeAlias = StringSchema | NumberSchema | BooleanSchema | EnumSchema
"""A field of a form."""
