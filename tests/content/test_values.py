"""Models, attrs classes and dataclasses are taken where JSON values are."""

import dataclasses
import enum
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple

import attrs
import pydantic
import pytest
from hypothesis import given

from sansmcp import JSONValue
from sansmcp.content import as_json
from sansmcp.testing import json_values


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Name(str):
    """A text with a meaning of its own."""

    __slots__ = ()


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class City:
    name: str
    mayor: str | None = None
    kind: ClassVar[str] = "place"


@attrs.frozen
class Forecast:
    city: City
    _meta: dict[str, int] | None = None


class Model(pydantic.BaseModel):
    mime_type: str | None = pydantic.Field(default=None, serialization_alias="mimeType")
    data: dict[str, Any]


class Numbers(pydantic.RootModel[list[int]]):
    pass


class One(pydantic.RootModel[int]):
    pass


@given(json_values())
def test_json_values_stay_as_they_are(value: JSONValue) -> None:
    """What is JSON already must not change on the way."""
    assert as_json(value) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (City("Lima"), {"name": "Lima", "mayor": None}),
        (Forecast(City("Lima")), {"city": {"name": "Lima", "mayor": None}, "_meta": None}),
        (Forecast(City("A"), {"b": 1}), {"city": {"name": "A", "mayor": None}, "_meta": {"b": 1}}),
        (Model(data={"a": None}), {"mimeType": None, "data": {"a": None}}),
        ({"model": Model(data={})}, {"model": {"mimeType": None, "data": {}}}),
        (Numbers([1, 2]), [1, 2]),
        (One(1), 1),
        (Point(1, 2), [1, 2]),
        (MappingProxyType({"a": (1, Colour.RED)}), {"a": [1, "red"]}),
        ([Level.LOW, Name("Lima")], [1, "Lima"]),
    ],
)  # fmt: skip
def test_objects_become_json(value: object, expected: JSONValue) -> None:
    """A handler may return the classes that its program has anyway."""
    assert as_json(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (City("Lima"), {"name": "Lima"}),
        (Forecast(City("Lima")), {"city": {"name": "Lima"}}),
        (Model(data={"a": None}), {"data": {"a": None}}),
        ({"a": None, "b": [None]}, {"a": None, "b": [None]}),
    ],
)
def test_absent_members_of_the_protocol_are_not_null(value: object, expected: JSONValue) -> None:
    """The schema has no null for `annotations`; a null in a dict was meant."""
    assert as_json(value, nulls=False) == expected


def test_nothing_of_the_value_is_kept() -> None:
    """A result that waits to be sent must not change with the objects of the program."""
    value: dict[str, Any] = {"items": [1]}
    copied: Any = as_json(value)
    value["items"].append(2)

    assert copied == {"items": [1]}
    assert type(as_json(Level.LOW)) is int


class Endless:
    def model_dump(self, **_options: object) -> object:
        return Endless()


CYCLE: Final[list[Any]] = []
CYCLE.append({"again": CYCLE})


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        ({"a": [b"x"]}, TypeError, r"value\.a\[0\] is of the type bytes"),
        ({"when": {1, 2}}, TypeError, r"value\.when is of the type set"),
        (object(), TypeError, "value is of the type object"),
        (City, TypeError, "value is of the type type"),
        (Model, TypeError, "value is of the type ModelMetaclass"),
        (Endless(), TypeError, "value is of the type Endless"),
        ({"a": {1: 2}}, TypeError, r"value\.a has the key 1, which is no string"),
        (CYCLE, ValueError, r"value\[0\]\.again is part of itself"),
    ],
)
def test_other_values_are_refused_by_their_place(
    value: object, error: type[Exception], text: str
) -> None:
    """The text of a failed handler must lead to the member that is wrong."""
    with pytest.raises(error, match=text):
        as_json(value)


def nested(depth: int) -> object:
    value: object = City("Lima")  # one level
    for _ in range(depth - 1):
        value = [value]
    return value


def test_depth_is_bounded() -> None:
    """A peer refuses deeper values, and Python has no stack for any depth."""
    assert as_json(nested(200))
    with pytest.raises(ValueError, match="nested deeper than 200"):
        as_json(nested(201))
    with pytest.raises(ValueError, match="nested deeper than 2"):
        as_json([[City("Lima")]], max_depth=2)


def test_equal_parts_are_no_cycle() -> None:
    """Two members may be the same object."""
    part = [1]

    assert as_json([part, part]) == [[1], [1]]
