"""The schema judge of the tests rejects what is invalid, or it would prove nothing."""

import json
from typing import Any

import pytest

from tests.support.data import example_files
from tests.support.judges.schema import (
    ANSWERED_EMPTY,
    LEGACY_REVISIONS,
    REVISIONS,
    TASK_REQUESTS,
    Sender,
    Transcript,
    kind_of,
    schema_of,
)

every_revision = pytest.mark.parametrize("revision", REVISIONS)
every_legacy_revision = pytest.mark.parametrize("revision", LEGACY_REVISIONS)

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
INFO = {"name": "demo", "version": "1"}
TEXT: dict[str, Any] = {"content": [{"type": "text", "text": "hi"}]}
TOOL = {"name": "echo", "inputSchema": {"type": "object"}}
CALL = {"name": "echo", "arguments": {"n": 1.5}}
SAMPLE: dict[str, Any] = {"messages": [], "maxTokens": 9}
SAMPLED = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}}
TASK = {
    "taskId": "t1",
    "status": "working",
    "ttl": None,
    "createdAt": "2025-11-25T10:30:00Z",
    "lastUpdatedAt": "2025-11-25T10:30:00Z",
}


def request(method: str, params: Any = None, id: object = 1) -> dict[str, Any]:
    tail = {} if params is None else {"params": params}
    return {"jsonrpc": "2.0", "id": id, "method": method, **tail}


def notification(method: str, params: Any = None) -> dict[str, Any]:
    message = request(method, params)
    del message["id"]
    return message


def result(value: Any, id: object = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": value}


def error(code: Any, message: Any = "no", id: object = 1, **tail: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, **tail}}


def problems_of_answer(revision: str, asker: Sender, asked: Any, answer: Any) -> list[str]:
    """The problems in the response to a request, which has to be valid itself."""
    answerer: Sender = "server" if asker == "client" else "client"
    transcript = Transcript(revision)
    transcript.record(asker, asked)
    assert transcript.problems(asker) == []
    transcript.record(answerer, answer)
    assert transcript.problems(asker) == []
    return transcript.problems(answerer)


def problems_of(revision: str, sender: Sender, message: Any) -> list[str]:
    transcript = Transcript(revision)
    transcript.record(sender, message)
    return transcript.problems(sender)


def initialize(offered: str, agreed: str) -> tuple[dict[str, Any], dict[str, Any]]:
    asked = {"protocolVersion": offered, "capabilities": {}, "clientInfo": INFO}
    answered = {"protocolVersion": agreed, "capabilities": {}, "serverInfo": INFO}
    return request("initialize", asked, 0), result(answered, 0)


@every_revision
def test_every_request_has_a_result_definition(revision: str) -> None:
    """A misspelt or missing name would fail only in the test that first meets that method."""
    schema = schema_of(revision)
    for (_, kind, _), name in schema.calls.items():
        if kind == "request" and name not in ANSWERED_EMPTY:
            assert name.removesuffix("Request") + "Result" in schema.definitions
    if "CreateTaskResult" in schema.definitions:
        assert set(schema.calls.values()) >= TASK_REQUESTS
    assert schema.methods >= {"tools/call", "notifications/cancelled"}


@every_legacy_revision
def test_a_valid_conversation_has_no_problems(revision: str) -> None:
    """False alarms would make every property test useless."""
    said: list[tuple[Sender, Any]] = [
        ("client", initialize(revision, revision)[0]),
        ("server", initialize(revision, revision)[1]),
        ("client", notification("notifications/initialized")),
        ("client", request("ping")),
        ("server", request("ping")),  # the same id the other way
        ("client", result({})),
        ("server", result({})),
        ("client", request("tools/list", {}, "a")),
        ("client", request("tools/call", CALL | {"_meta": {"progressToken": 0}}, 2)),
        ("server", notification("notifications/progress", {"progressToken": 0, "progress": 0.5})),
        ("server", request("sampling/createMessage", SAMPLE, 2)),
        ("client", result(SAMPLED, 2)),
        ("server", request("roots/list", id=3)),
        ("client", result({"roots": [{"uri": "file:///r"}]}, 3)),
        ("server", result(TEXT, 2)),
        ("server", result({"tools": [TOOL]}, "a")),
        ("client", request("resources/subscribe", {"uri": "x:y"}, 4)),
        ("server", result({}, 4)),
        ("client", request("logging/setLevel", {"level": "error"}, 5)),
        ("server", result({}, 5)),
        ("client", request("acme/anything", {"x": [None]}, 6)),
        ("server", result({"y": 1.5}, 6)),
        ("client", request("prompts/get", {"name": "p"}, 7)),
        ("client", notification("notifications/cancelled", {"requestId": 7})),
        ("server", error(-32602, id=7)),
        ("server", notification("acme/event", {"z": 1})),
    ]
    transcript = Transcript(revision)
    for sender, message in said:
        transcript.record(sender, message)

    assert transcript.problems("client") == transcript.problems("server") == []
    assert transcript.messages == said


@every_legacy_revision
@pytest.mark.parametrize(
    ("sender", "message"),
    [
        ("client", {"id": 1, "method": "ping"}),
        ("client", request("ping") | {"jsonrpc": "1.0"}),
        ("client", request("ping", id=None)),
        ("client", request("ping", id=True)),
        ("client", request("ping", id=1.5)),
        ("client", request("ping", [])),
        ("client", request("acme/anything", id=[])),
        ("client", request("tools/call", {"arguments": {}})),
        ("client", request("tools/call", {"name": "echo", "arguments": []})),
        ("client", request("initialize", {"protocolVersion": "2025-11-25"})),
        ("client", notification("notifications/cancelled", {"requestId": None})),
        ("server", notification("notifications/progress", {"progressToken": 1})),
        ("server", notification("notifications/message", {"level": "loud", "data": 1})),
        ("server", notification("acme/event", 7)),
        ("server", {"jsonrpc": "2.0", "method": 7}),
        ("server", error("-32600")),
        ("server", error(-32600, None)),
        ("server", error(-32600, id=None)),
        ("server", {"jsonrpc": "2.0", "id": 1, "error": -32600}),
        ("client", {"jsonrpc": "2.0", "id": 1}),
        ("client", {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": ""}}),
        ("client", "ping"),
    ],
)
def test_invalid_messages_are_problems(revision: str, sender: Sender, message: Any) -> None:
    """Each is a mistake in its envelope, its params or its kind, which the judge must see."""
    assert problems_of(revision, sender, message)


@every_legacy_revision
@pytest.mark.parametrize(
    ("asker", "asked", "bad"),
    [
        ("client", request("ping"), []),
        ("client", request("ping"), None),
        ("client", request("acme/anything"), "text"),
        ("client", request("tools/call", CALL), {"content": "hi"}),
        ("client", request("tools/call", CALL), {"content": [{"type": "text"}]}),
        ("client", request("tools/list"), TEXT),
        (
            "client",
            request(
                "completion/complete",
                {
                    "ref": {"type": "ref/prompt", "name": "p"},
                    "argument": {"name": "a", "value": ""},
                },
            ),
            {"completion": {"values": [1]}},
        ),
        ("client", request("resources/unsubscribe", {"uri": "x:y"}), {"_meta": 1}),
        ("server", request("sampling/createMessage", SAMPLE), {"role": "assistant"}),
        ("server", request("roots/list"), {}),
    ],
)
def test_results_are_judged_by_the_request(
    revision: str, asker: Sender, asked: Any, bad: Any
) -> None:
    """An answer of another method's shape fits the generic envelope and must fail all the same."""
    assert problems_of_answer(revision, asker, asked, result(bad))


@every_legacy_revision
def test_ids_of_another_type_do_not_match(revision: str) -> None:
    """`True == 1` in Python and "1" looks like 1; an answer must keep the type of its id."""
    for asked, answered in ((1, "1"), ("1", 1), (1, True), (1, 2), (0, False), (1, [1])):
        assert problems_of_answer(
            revision, "client", request("ping", id=asked), result({}, answered)
        )
    assert problems_of_answer(revision, "client", request("ping", id=1), result({}, 1.0)) == []

    transcript = Transcript(revision)
    transcript.record("client", request("tools/list", id=1))
    transcript.record("client", request("ping", id="1"))
    transcript.record("client", result({}, "1"))  # The client answers its own question.
    transcript.record("server", result({}, True))
    transcript.record("server", result({}, "1"))
    transcript.record("server", result({"tools": []}, 1))
    assert len(transcript.problems("client")) == 1
    assert all("id True" in text or "/id" in text for text in transcript.problems("server"))


@every_legacy_revision
def test_a_request_is_answered_once(revision: str) -> None:
    """An error is an answer too; what follows either of them answers nothing."""
    for answer in (result({}), error(-32603)):
        transcript = Transcript(revision)
        transcript.record("client", request("ping"))
        transcript.record("server", answer)
        assert transcript.problems("server") == []
        transcript.record("server", result({}))
        assert "no open request" in transcript.problems("server")[0]


def test_an_id_used_twice_at_once_still_finds_the_right_request() -> None:
    """A peer that breaks the rules must not make our valid answers look wrong."""
    listing: dict[str, Any] = {"tools": []}
    for answers in ([TEXT, listing], [listing, TEXT]):
        transcript = Transcript()
        transcript.record("client", request("tools/call", CALL))
        transcript.record("client", request("tools/list"))
        for answer in answers:
            transcript.record("server", result(answer))
        assert transcript.problems("server") == []


@every_legacy_revision
def test_batches_exist_in_one_revision_only(revision: str) -> None:
    """Each member counts, and an answer in a batch answers a request in another."""
    batch = [request("tools/list", id=1), notification("notifications/initialized")]
    asked, bad_call = request("ping", id=2), request("tools/call", {}, 3)
    if revision != "2025-03-26":
        assert problems_of(revision, "client", batch)
        return
    answers = [result({}, 2), result({"tools": []}, 1)]
    assert problems_of_answer(revision, "client", [*batch, asked], answers) == []
    answers = [result({}, 2), result({}, 1)]
    assert len(problems_of_answer(revision, "client", [*batch, asked], answers)) == 1
    for broken in ([], [*batch, bad_call], [asked, error(-32600, id=9)], [batch], [7]):
        assert problems_of(revision, "client", broken)


@every_legacy_revision
def test_the_initialize_result_decides_the_revision(revision: str) -> None:
    """Messages are judged by what was agreed, and by the first guess only until then."""
    for guess in REVISIONS:
        transcript = Transcript(guess)
        asked, answered = initialize("2025-11-25", revision)
        transcript.record("client", asked)
        assert transcript.revision == guess
        transcript.record("server", answered)
        assert transcript.revision == revision
        transcript.record("client", [notification("notifications/initialized")])
        assert bool(transcript.problems("client")) is (revision != "2025-03-26")
        assert transcript.problems("server") == []

    # Icons came with 2025-11-25; to the others they are any member.
    asked, answered = initialize("2025-11-25", revision)
    answered["result"]["serverInfo"] = INFO | {"icons": 7}
    found = problems_of_answer("2025-06-18", "client", asked, answered)
    assert bool(found) is (revision == "2025-11-25")

    for agreed in ("2026-07-28", "1.0", None):
        asked, answered = initialize(revision, revision)
        answered["result"]["protocolVersion"] = agreed
        assert problems_of_answer(revision, "client", asked, answered)


@every_revision
def test_methods_belong_to_a_side_and_a_kind(revision: str) -> None:
    """A valid request from the wrong side is as wrong as a malformed one."""
    wrong: list[tuple[Sender, Any]] = [
        ("server", request("tools/call", CALL | {"_meta": META})),
        ("client", request("sampling/createMessage", SAMPLE)),
        ("client", notification("notifications/message", {"level": "error", "data": 1})),
        ("client", request("notifications/cancelled", {"requestId": 1})),
        ("client", notification("tools/list", {"_meta": META})),
    ]
    if revision == "2026-07-28":
        wrong.append(("server", request("sampling/createMessage", SAMPLE)))
    for sender, message in wrong:
        assert any(f"of a {sender}" in text for text in problems_of(revision, sender, message))


def test_task_results_follow_the_original_request() -> None:
    """2025-11-25: a task may or may not be made of a call, and `tasks/result` gives its result."""
    call = request("tools/call", CALL | {"task": {"ttl": 1}})
    made = result({"task": TASK})
    assert problems_of_answer("2025-11-25", "client", call, made) == []
    assert problems_of_answer("2025-11-25", "client", call, result(TEXT)) == []
    assert problems_of_answer("2025-11-25", "client", call, result({"task": {"taskId": "t1"}}))
    assert problems_of_answer("2025-11-25", "client", request("tools/call", CALL), made)
    assert problems_of_answer("2025-11-25", "client", request("tools/list", {"task": {}}), made)

    get, fetch = (request(f"tasks/{verb}", {"taskId": "t1"}, 2) for verb in ("get", "result"))
    assert problems_of_answer("2025-11-25", "client", get, result(TASK, 2)) == []
    assert problems_of_answer("2025-11-25", "client", get, made | {"id": 2})
    for answer, count in ((TEXT, 0), ({"content": 1}, 1)):
        transcript = Transcript()
        transcript.record("client", call)
        transcript.record("server", made)
        transcript.record("client", fetch)
        transcript.record("server", result(answer, 2))
        assert (transcript.problems("client"), len(transcript.problems("server"))) == ([], count)


def test_prescribed_error_data_is_judged() -> None:
    """Some codes promise members in `data`, on which the peer acts."""
    call = request("tools/call", CALL)
    cases: list[tuple[str, int, Any, Any]] = [
        ("2025-11-25", -32042, {"elicitations": []}, call),
        ("2026-07-28", -32022, {"requested": "x", "supported": []}, request("acme/anything")),
    ]
    for revision, code, data, asked in cases:
        assert problems_of_answer(revision, "client", asked, error(code, data=data)) == []
        assert problems_of_answer(revision, "client", asked, error(code, data={}))
        assert problems_of_answer(revision, "client", asked, error(code))
        assert problems_of_answer(revision, "client", asked, error(-32000)) == []

    # A request that names its revision itself gets an error of that revision.
    call = request("tools/call", CALL | {"_meta": META})
    assert problems_of_answer("2025-11-25", "client", call, error(-32022))
    assert problems_of_answer("2025-11-25", "client", call, error(-32042)) == []


@every_revision
def test_errors_without_id_exist_since_2025_11_25(revision: str) -> None:
    """Up to 2025-06-18 an error without a readable id has no valid form."""
    message = error(-32700)
    del message["id"]
    assert bool(problems_of(revision, "server", message)) is (revision < "2025-11-25")


def test_stateless_results_say_their_type() -> None:
    """InputRequiredResult admits nearly anything, so it must not stand in for a broken result."""
    call = request("tools/call", CALL | {"_meta": META})
    listing = request("tools/list", {"_meta": META})
    done, asks, task = ({"resultType": kind} for kind in ("complete", "input_required", "task"))
    listed = done | {"tools": [TOOL], "ttlMs": 0, "cacheScope": "public"}
    # The request names its revision itself, whatever was agreed for others.
    for revision in REVISIONS:
        for asked, answer, valid in (
            (call, TEXT | done, True),
            (call, TEXT, False),
            (call, done, False),
            (call, asks | {"requestState": "s"}, True),
            (call, asks | {"requestState": 1}, False),
            (call, asks | {"inputRequests": {"a": {"method": "roots/list"}}}, True),
            (call, asks | {"inputRequests": {"a": {"method": "tools/list"}}}, False),
            (call, task, True),
            (listing, listed, True),
            (listing, asks | {"requestState": "s"}, False),
            (listing, task, False),
        ):
            found = problems_of_answer(revision, "client", asked, result(answer))
            assert (found == []) is valid, (answer, found)
    assert problems_of("2026-07-28", "client", request("tools/call", CALL))


@every_revision
def test_cancellations_are_judged(revision: str) -> None:
    """2026-07-28 leaves the client this notification alone, and its schema has no union for one."""
    for params, valid in (
        ({"requestId": 1}, True),
        ({"requestId": 1.5}, False),
        ({"reason": 1}, False),
    ):
        found = problems_of(revision, "client", notification("notifications/cancelled", params))
        assert (found == []) is valid


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_elicited_numbers_may_be_fractions(revision: str) -> None:
    """schema.json says integer, where schema.ts says number."""
    judge = schema_of(revision).violations
    good: list[object] = [1.5, 1, "x", True]
    bad: list[object] = [None, {}, [1]]
    for value in (*good, *bad):
        found = judge({"action": "accept", "content": {"v": value}}, "ElicitResult")
        assert (found == []) is (value in good)


def test_generic_json_values_may_be_fractions_and_null() -> None:
    """schema.json of 2026-07-28 knows neither, so it refuses capabilities that schema.ts admits."""
    value = {"experimental": {"x": {"a": 1.5, "b": None, "c": [None, {"d": 0.1}]}}}
    assert schema_of("2026-07-28").violations(value, "ClientCapabilities") == []


def test_the_official_examples_are_valid() -> None:
    """The examples are official, so the judge must accept them."""
    files = example_files()
    schema = schema_of("2026-07-28")
    found = {
        f"{file.parent.name}/{file.name}": problems
        for file in files
        if (problems := schema.violations(json.loads(file.read_bytes()), file.parent.name))
    }
    assert found == {}


@every_revision
def test_formats_are_remarks(revision: str) -> None:
    """JSON Schema dialects differ in whether formats are rules, and revisions must not."""
    assert (
        schema_of(revision).violations({"uri": "no uri", "text": ""}, "TextResourceContents") == []
    )


def test_names_that_do_not_exist_are_refused() -> None:
    """A misspelt definition must not make a check pass."""
    with pytest.raises(Exception, match="NoSuchResult"):
        schema_of("2025-11-25").violations({}, "NoSuchResult")


def test_kinds_are_told_apart() -> None:
    """A message of two kinds is invalid, because receivers would read it differently."""
    messages: list[object] = [request("m"), notification("m"), result({}), error(1)]
    assert [kind_of(each) for each in messages] == ["request", "notification", "result", "error"]
    nothing: list[object] = [{}, {"method": "m", "result": {}}, [], "m", None]
    assert [kind_of(each) for each in nothing] == [None] * 5
