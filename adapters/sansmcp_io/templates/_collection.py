"""The resource templates of a server: listed page by page, and matched in their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from sansmcp import JSONObject, paginate

from ._template import InvalidTemplate, Template, Values


@attrs.frozen
class Match:
    """The template that a URI belongs to.

    Attributes:
        template: Its `uriTemplate`.
        values: The values of its variables, by their names.
        definition: The definition that was given for it.
    """

    template: str
    values: Values
    definition: JSONObject = attrs.field(repr=False)


class Templates:
    """The resource templates of a server.

    Args:
        definitions: The items of `resources/templates/list`, objects with `uriTemplate` and `name`.
            They are not copied.
        page_size: The number of items in a page.

    Raises:
        InvalidTemplate: A `uriTemplate` is missing, is none, cannot be matched, or is there twice.
        ValueError: `page_size` is less than 1.

    Source: MCP 2025-11-25, server/resources, Resource Templates.
    """

    __slots__ = ("_by_text", "_page_size", "_sorted", "definitions")

    def __init__(self, definitions: Iterable[JSONObject], *, page_size: int = 100) -> None:
        self.definitions: Final = tuple(definitions)
        if page_size < 1:
            raise ValueError(f"a page has at least one item, not {page_size}")
        self._page_size = page_size
        self._by_text: dict[str, tuple[Template, JSONObject]] = {}
        for definition in self.definitions:
            text = definition.get("uriTemplate")
            if not isinstance(text, str):
                raise InvalidTemplate(f"a definition has no uriTemplate: {definition!r:.200}")
            if text in self._by_text:
                raise InvalidTemplate(f"{text!r} is there twice")
            self._by_text[text] = Template(text), definition
        self._sorted = sorted(self.definitions, key=_text_of)

    def list(self, cursor: object = None) -> JSONObject:
        """Return the result of `resources/templates/list`, sorted by `uriTemplate`.

        Args:
            cursor: The `cursor` of the params, if any.

        Raises:
            InvalidCursor: The cursor is not valid: answer with `ErrorKind.INVALID_CURSOR`.
        """
        page, following = paginate(self._sorted, cursor, key=_text_of, size=self._page_size)
        result: JSONObject = {"resourceTemplates": page}
        return result if following is None else {**result, "nextCursor": following}

    def match(self, uri: str) -> Match | None:
        """Return the first template that makes a URI, with its values; None: no template does."""
        for text, (template, definition) in self._by_text.items():
            if (values := template.match(uri)) is not None:
                return Match(text, values, definition)
        return None


def _text_of(definition: JSONObject) -> str:
    text: str = definition["uriTemplate"]
    return text
