"""The page of types is generated from the source, and leaves nothing out."""

from typing import get_type_hints, is_typeddict

import pytest

import sansmcp.types
from docs._ext.vocabulary import Definition, read_vocabulary

DEFINITIONS = {one.name: one for _, found in read_vocabulary().values() for one in found}


def test_every_public_name_is_on_the_page_once() -> None:
    """A name without an entry can be imported, but not looked up."""
    names = [one.name for _, found in read_vocabulary().values() for one in found]

    assert sorted(names) == sorted(sansmcp.types.__all__)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_definition_says_what_it_is(name: str) -> None:
    """A reader knows the name, and looks for its meaning."""
    assert DEFINITIONS[name].text


def test_every_module_has_a_title() -> None:
    """It heads a section of the page."""
    assert all(title for title, _ in read_vocabulary().values())


def keys_of(one: Definition) -> dict[str, bool]:
    """The keys of a definition and of its bases, and whether they are required."""
    found = {key.name: key.required for key in one.keys}
    for base in one.bases:
        found |= keys_of(DEFINITIONS[base])
    return found


@pytest.mark.parametrize(
    "name", [name for name in DEFINITIONS if is_typeddict(getattr(sansmcp.types, name))]
)
def test_every_key_is_on_the_page(name: str) -> None:
    """The page reads the source by other rules than Python."""
    definition = getattr(sansmcp.types, name)
    shown = keys_of(DEFINITIONS[definition.__name__])

    assert shown == {key: key in definition.__required_keys__ for key in get_type_hints(definition)}
