"""Events and other records compare by their fields, and errors name the rule that was broken."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import attrs
import pytest

import sansmcp.http
import sansmcp.observer
from sansmcp import (
    CodecError,
    Config,
    ErrorCode,
    InvalidCursor,
    LocalProtocolError,
    ResourceUpdated,
    ToolsListChanged,
)
from sansmcp.http import SendBody, SendHead, ServerSentEvent


def takes_anything(kind: Any) -> bool:
    """Whether a class is a record, and not a class of settings, which are checked."""
    return (
        attrs.has(kind)
        and kind.__hash__ is not object.__hash__
        and not any(field.validator or field.converter for field in attrs.fields(kind))
    )


RECORDS: list[type[Any]] = [
    value
    for module in (sansmcp, sansmcp.http, sansmcp.observer)
    for name in module.__all__
    if takes_anything(value := getattr(module, name))
]


def made(kind: type[Any]) -> Any:
    """An instance whose fields all have different values."""
    return kind(**{field.alias: number for number, field in enumerate(attrs.fields(kind))})


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_records_are_equal_where_their_fields_are(kind: type[Any]) -> None:
    """Tests of applications compare events, and put them into sets and dicts."""
    one, other = made(kind), made(kind)

    assert len(RECORDS) > 40
    assert one == other
    assert hash(one) == hash(other)
    assert one != object()
    assert one.__eq__(object()) is NotImplemented
    assert copy.deepcopy(one) == one
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_one_other_field_makes_another_record(kind: type[Any]) -> None:
    """A comparison that leaves out a field would pass tests that should fail."""
    one = made(kind)
    for field in attrs.fields(kind):
        changed = attrs.evolve(one, **{field.alias: "changed"})
        assert (changed == one) is not field.eq
        assert (hash(changed) == hash(one)) is not field.eq


def test_records_of_two_classes_are_never_equal() -> None:
    """Two classes may have the same fields."""
    assert SendBody(b"x") != SendHead(b"x", ())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert len({ToolsListChanged(), ToolsListChanged(), ResourceUpdated("a:b")}) == 2


def test_repr_names_the_class_and_its_fields() -> None:
    """A failed test and a log show the repr."""
    assert repr(ResourceUpdated("a:b")) == "ResourceUpdated(uri='a:b', subscribed=None)"
    assert repr(ToolsListChanged()) == "ToolsListChanged()"


def test_repr_leaves_out_what_is_secret() -> None:
    """A log that shows the settings must not show the keys."""
    key = b"0123456789abcdef"

    assert "0123456789abcdef" not in repr(Config(state_keys=[key]))
    assert "state_keys" not in repr(Config())
    assert "max_batch=1000" in repr(Config())


def test_a_record_with_an_unhashable_field_has_no_hash() -> None:
    """A tuple with an unhashable item has no hash either."""
    event: Any = ServerSentEvent

    with pytest.raises(TypeError, match="unhashable"):
        hash(event(data=[]))


def test_an_error_of_ours_names_its_rule_and_says_what_was_wrong() -> None:
    """The id of the rule leads to its sentence and its page."""
    error = LocalProtocolError("CANC-004", "initialize cannot be cancelled")

    assert (error.rule, error.text) == ("CANC-004", "initialize cannot be cancelled")
    assert str(error) == "initialize cannot be cancelled [CANC-004]"


def test_an_error_of_ours_survives_copies_and_other_processes() -> None:
    """Exceptions with arguments of their own may fail to unpickle, far from where they were
    raised."""
    error = LocalProtocolError("OWN-005", "too many")
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (type(twin), twin.rule, twin.text) == (LocalProtocolError, "OWN-005", "too many")
        assert str(twin) == str(error)


def test_what_a_value_is_wrong_for_is_a_value_error() -> None:
    """Callers that catch `ValueError` must catch these errors too."""
    assert issubclass(CodecError, ValueError)
    assert issubclass(InvalidCursor, ValueError)
    assert CodecError("no").rule == "ERR-001"
    assert ErrorCode.PARSE_ERROR == -32700
