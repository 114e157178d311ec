"""The rules on elicitation: requests, flat schemas with defaults, answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.check.parts import V3, V4, V5, of_params, of_part, of_result

METHOD = "elicitation/create"
OPTIONS = [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]
REVISIONS = pytest.mark.parametrize("revision", [V3, V4, V5])


def form(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"message": "Who?", "requestedSchema": schema}


def of_property(schema: Any, revision: str = V5) -> list[tuple[str, str]]:
    """The problems of a form with one property, with their paths from it on."""
    prefix = "$.requestedSchema.properties.p"
    problems = of_params(METHOD, form(p=schema), revision)
    return [(rule, path.removeprefix(prefix)) for rule, path in problems]


def test_a_request_has_a_message_and_a_form_or_a_url() -> None:
    """ELIC-006, ELIC-007, ELIC-008, ELIC-010, ELIC-011: the client has nothing else to show."""
    assert of_params(METHOD, {}, V3) == [("ELIC-006", "$"), ("ELIC-007", "$")]
    for revision in (V4, V5):
        assert of_params(METHOD, {}, revision) == [("ELIC-006", "$"), ("ELIC-008", "$")]
    assert of_params(METHOD, {"mode": "url", "message": "m"}, V4) == [("ELIC-010", "$")] * 2
    assert of_params(METHOD, {"mode": "url", "message": "m"}, V5) == [("ELIC-011", "$")]


def test_a_request_without_a_mode_is_a_form() -> None:
    """ELIC-009: older servers send no mode."""
    for revision in (V4, V5):
        assert of_params(METHOD, form(), revision) == []
        assert of_params(METHOD, {**form(), "mode": "form"}, revision) == []
        assert of_params(METHOD, {**form(), "mode": "other"}, revision) == [("OWN-076", "$.mode")]


def test_a_url_is_valid() -> None:
    """ELIC-012: a client shows it before consent."""
    params = {"mode": "url", "message": "m", "url": "somewhere", "elicitationId": "e"}

    for revision in (V4, V5):
        assert of_params(METHOD, params, revision) == [("ELIC-012", "$.url")]
        assert of_params(METHOD, {**params, "url": "https://a/b"}, revision) == []


@REVISIONS
@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "object", "properties": {}}, ".type"),
        ({"type": "null"}, ".type"),
        ({}, ""),
        ("string", ""),
        ({"type": "number", "minimum": "1"}, ".minimum"),
        ({"type": "string", "enum": [1]}, ".enum"),
    ],
)
def test_properties_of_a_form_are_primitive(revision: str, schema: Any, path: str) -> None:
    """ELIC-013: a client makes one input of each."""
    assert of_property(schema, revision) == [("ELIC-013", path)]


def test_lists_of_options_came_in_2025_11_25() -> None:
    """ELIC-013: a choice of several values, and titles of options."""
    several = {"type": "array", "items": {"type": "string", "enum": ["r", "g"]}}

    assert of_property(several, V3) == [("ELIC-013", ".type")]
    for revision in (V4, V5):
        assert of_property(several, revision) == []
        assert of_property({"type": "array", "items": {"anyOf": OPTIONS}}, revision) == []
        assert of_property({"type": "array", "items": {}}, revision) != []
        assert of_property({"type": "string", "oneOf": OPTIONS}, revision) == []
        assert of_property({"type": "string", "oneOf": ["r"]}, revision) == [("ELIC-013", ".oneOf")]


@REVISIONS
def test_formats_of_strings_are_four(revision: str) -> None:
    """ELIC-014: clients have inputs for these."""
    assert of_property({"type": "string", "format": "password"}, revision) == [
        ("ELIC-014", ".format")
    ]
    for name in ("email", "uri", "date", "date-time"):
        assert of_property({"type": "string", "format": name}, revision) == []


MISFITS: Any = [
    ({"type": "string"}, 7),
    ({"type": "string", "minLength": 2}, "a"),
    ({"type": "string", "maxLength": 2}, "abc"),
    ({"type": "string", "format": "email"}, "ann"),
    ({"type": "string", "format": "uri"}, "ann"),
    ({"type": "string", "format": "date"}, "2025-02-31T"),
    ({"type": "string", "format": "date-time"}, "2025-02-28"),
    ({"type": "string", "enum": list("abcdef")}, "x"),
    ({"type": "string", "oneOf": OPTIONS}, "Red"),
    ({"type": "integer"}, 1.5),
    ({"type": "integer", "minimum": 1}, 0),
    ({"type": "number", "maximum": 1}, 1.5),
    ({"type": "number"}, True),
    ({"type": "boolean"}, 0),
    ({"type": "array", "items": {"type": "string", "enum": ["r"]}}, ["g"]),
    ({"type": "array", "items": {"anyOf": OPTIONS}, "minItems": 1}, []),
    ({"type": "array", "items": {"anyOf": OPTIONS}, "maxItems": 1}, ["r", "g"]),
]
FITS: Any = [
    ({"type": "string", "format": "email"}, "ann@example.com"),
    ({"type": "string", "format": "date"}, "2025-02-28"),
    ({"type": "string", "format": "date-time"}, "2025-02-28T10:00:00.5+01:00"),
    ({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}, "a"),
    ({"type": "string", "oneOf": OPTIONS}, "r"),
    ({"type": "integer", "minimum": 1, "maximum": 2}, 2.0),
    ({"type": "number"}, 1),
    ({"type": "boolean"}, False),
    ({"type": "array", "items": {"anyOf": OPTIONS}, "minItems": 1}, ["g"]),
    ({"type": "array", "items": {"anyOf": OPTIONS, "oneOf": 1}}, ["g"]),  # has no list of options
]


@pytest.mark.parametrize(("schema", "value"), MISFITS)
def test_a_default_fits_its_schema(schema: dict[str, Any], value: Any) -> None:
    """ELIC-013, ELIC-015: a client fills the form with it, and could not send it back."""
    assert of_property({**schema, "default": value}) == [("ELIC-013", ".default")]


@pytest.mark.parametrize(("schema", "value"), FITS)
def test_every_primitive_type_may_have_a_default(schema: dict[str, Any], value: Any) -> None:
    """ELIC-015: also those with options and bounds."""
    assert of_property({**schema, "default": value}) == []


@REVISIONS
def test_an_answer_has_an_action(revision: str) -> None:
    """ELIC-017: it is accept, decline or cancel."""
    assert of_result(METHOD, {}, revision) == [("ELIC-017", "$")]
    assert of_result(METHOD, {"action": "maybe"}, revision) == [("ELIC-017", "$.action")]
    for action in ("accept", "decline", "cancel"):
        assert of_result(METHOD, {"action": action}, revision) == []


@REVISIONS
def test_only_an_answer_that_accepts_has_content(revision: str) -> None:
    """ELIC-017: the user did not agree to send it."""
    answer: Any = {"action": "decline", "content": {"a": "b"}}

    assert of_result(METHOD, answer, revision) == [("ELIC-017", "$.content")]
    assert of_result(METHOD, {**answer, "action": "accept"}, revision) == []


def test_content_of_an_answer_has_primitive_values() -> None:
    """ELIC-017: since 2025-11-25 also lists of strings."""
    answer: Any = {"action": "accept", "content": {"a": {}}}

    for revision in (V3, V4, V5):
        assert of_result(METHOD, answer, revision) == [("ELIC-017", "$.content.a")]
    answer["content"] = {"a": ["b"], "c": 1.5, "d": True}
    assert of_result(METHOD, answer, V3) == [("ELIC-017", "$.content.a")]
    assert of_result(METHOD, answer, V4) == of_result(METHOD, answer, V5) == []


@pytest.mark.parametrize(("schema", "value"), MISFITS)
def test_content_of_an_answer_fits_the_form(schema: dict[str, Any], value: Any) -> None:
    """ELIC-017, ELIC-018, ELIC-019, ELIC-020: a server relies on the form it has sent."""
    answer: Any = {"action": "accept", "content": {"p": value, "other": 1}}

    assert of_result(METHOD, answer, params=form(p=schema)) == [("ELIC-017", "$.content.p")]
    assert of_result(METHOD, answer) == []  # without the form


def test_content_of_an_answer_has_the_required_members() -> None:
    """ELIC-017: a form that is not filled in is not accepted."""
    params = form(("p",), p={"type": "string"})

    assert of_result(METHOD, {"action": "accept"}, params=params) == [("ELIC-017", "$.content")]
    assert of_result(METHOD, {"action": "decline"}, params=params) == []
    assert of_result(METHOD, {"action": "accept", "content": {"p": ""}}, params=params) == []


def test_an_answer_to_a_url_has_no_content() -> None:
    """ELIC-017: what happens at the URL is not the client's to know."""
    params = {"mode": "url", "message": "m", "url": "https://a/b"}
    answer: Any = {"action": "accept", "content": {}}

    assert of_result(METHOD, answer, params=params) == [("ELIC-017", "$.content")]
    assert of_result(METHOD, {"action": "accept"}, params=params) == []


def test_more_misfits_than_a_report_holds_are_cut() -> None:
    """A form with thousands of fields must not fill the memory."""
    names = [f"p{number}" for number in range(300)]
    params = form(tuple(names), **{name: {"type": "string"} for name in names})

    assert len(of_result(METHOD, {"action": "accept"}, params=params)) == 100


def test_questions_in_results_are_judged_like_requests() -> None:
    """ELIC-006: in 2026-07-28 the server asks inside of a result."""
    result: Any = {
        "resultType": "input_required",
        "inputRequests": {"who": {"method": METHOD, "params": {"requestedSchema": {}}}},
    }

    path = "$.inputRequests.who.params"
    assert set(of_result("tools/call", result)) == {
        ("ELIC-006", path),
        ("ELIC-008", f"{path}.requestedSchema"),
        ("ELIC-013", f"{path}.requestedSchema"),
    }
    assert of_part("InputRequest", {"method": "roots/list"}) == []


def test_many_options_and_many_choices_are_compared_in_linear_time() -> None:
    """ELIC-013: with a quadratic search this takes longer than a test may."""
    options = [str(number) for number in range(100_000)]
    items = {"type": "string", "enum": options}
    chosen = {"type": "array", "items": items, "default": [options[-1]] * 100_000}
    assert of_property(chosen) == []
    assert of_property({**chosen, "default": [*options, "?"]}) == [("ELIC-013", ".default")]
