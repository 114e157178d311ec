"""One handler behaves the same for clients of each era, on every adapter.

Each test is run in every revision with the methods that it needs, over connections driven by hand
and through the trio adapter; the results must be the same.
"""

import json
from typing import Any

import pytest
import trio

from sansmcp import JSONObject, LocalProtocolError
from sansmcp_io.trio import Call, PeerError, RequireInput, ServerCall
from tests.support.adapters.one_handler import (
    Asked,
    Driver,
    Handler,
    Outcome,
    Person,
    Questions,
    Setting,
    by_hand,
    on_trio,
)
from tests.support.adapters.trio_talk import instantly, talking

MODERN = "2026-07-28"
RECENT = ("2025-06-18", "2025-11-25", MODERN)
OLDER = ("2024-11-05", "2025-03-26", *RECENT)

drivers = pytest.mark.parametrize("driver", [by_hand, on_trio])
recent = pytest.mark.parametrize("revision", RECENT)
every = pytest.mark.parametrize("revision", OLDER)
with_urls = pytest.mark.parametrize("revision", RECENT[1:])

CAPABILITIES: JSONObject = {
    "elicitation": {"form": {}, "url": {}},
    "roots": {"listChanged": True},
    "sampling": {"context": {}, "tools": {}},
}
FORM: JSONObject = {
    "method": "elicitation/create",
    "params": {
        "message": "Which city?",
        "requestedSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
SAMPLE: JSONObject = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "a verse"}}],
        "maxTokens": 9,
    },
}
ROOTS: JSONObject = {"method": "roots/list"}
URL: JSONObject = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Your key?", "url": "https://example.com/key"},
}

ACCEPTED: JSONObject = {"action": "accept", "content": {"city": "Paris"}}
WRITTEN: JSONObject = {
    "role": "assistant",
    "model": "m",
    "content": {"type": "text", "text": "a rose is a rose"},
}
LISTED: JSONObject = {"roots": [{"uri": "file:///home"}]}


def person(method: str, params: JSONObject) -> JSONObject:
    """A user who has an answer to everything."""
    return {
        "elicitation/create": ACCEPTED,
        "sampling/createMessage": WRITTEN,
        "roots/list": LISTED,
    }[method]


def talk(
    driver: Driver,
    revision: str,
    handler: Handler,
    asked: Person = person,
    *,
    capabilities: JSONObject = CAPABILITIES,
    method: str = "tools/call",
    params: JSONObject | None = None,
    log_level: str | None = None,
) -> Outcome:
    wanted = {"name": "any"} if params is None else params
    return driver(revision, Setting(handler, asked, capabilities, method, wanted, log_level))


def text(value: object) -> JSONObject:
    return {"content": [{"type": "text", "text": json.dumps(value, sort_keys=True)}]}


def said(outcome: Outcome) -> Any:
    assert outcome.result is not None
    return json.loads(outcome.result["content"][0]["text"])


def asking(questions: dict[str, JSONObject]) -> Handler:
    """A handler that asks one question and returns the answer."""

    def handler(asked: Asked) -> JSONObject | Questions:
        return text(asked.responses) if asked.responses else Questions(questions)

    return handler


# --------------------------------------------------------------------------- kinds of questions


@drivers
@recent
@pytest.mark.parametrize(
    "answer", [ACCEPTED, {"action": "decline"}, {"action": "cancel"}], ids=lambda a: a["action"]
)
def test_elicitation(driver: Driver, revision: str, answer: JSONObject) -> None:
    """A user may decline, which must reach the handler as an answer like any other."""
    questions: list[JSONObject] = []

    def one(method: str, params: JSONObject) -> JSONObject:
        questions.append({"method": method, "params": params})
        return answer

    outcome = talk(driver, revision, asking({"city": FORM}), one)

    assert said(outcome) == {"city": answer}
    assert questions == [FORM]
    assert outcome.runs == 2


@drivers
@with_urls
def test_elicitation_by_url(driver: Driver, revision: str) -> None:
    """A secret is entered at the URL, so that only the consent passes through the client."""
    seen: list[JSONObject] = []

    def one(_method: str, params: JSONObject) -> JSONObject:
        seen.append(params)
        return {"action": "accept"}

    outcome = talk(driver, revision, asking({"key": URL}), one)

    assert said(outcome) == {"key": {"action": "accept"}}
    assert {name: seen[0][name] for name in URL["params"]} == URL["params"]


@drivers
@every
def test_sampling(driver: Driver, revision: str) -> None:
    """A client of the oldest revision must be asked for sampling too."""
    assert said(talk(driver, revision, asking({"verse": SAMPLE}))) == {"verse": WRITTEN}


@drivers
@every
def test_roots(driver: Driver, revision: str) -> None:
    """A question without params must work in each era."""
    assert said(talk(driver, revision, asking({"where": ROOTS}))) == {"where": LISTED}


@drivers
@recent
def test_all_at_once(driver: Driver, revision: str) -> None:
    """Each answer must be under the key of its question, also with two questions of one kind."""
    questions = {"a": FORM, "b": SAMPLE, "c": ROOTS, "d": ROOTS}

    outcome = talk(driver, revision, asking(questions))

    assert said(outcome) == {"a": ACCEPTED, "b": WRITTEN, "c": LISTED, "d": LISTED}
    assert outcome.runs == 2


@drivers
@every
@pytest.mark.parametrize(
    ("method", "params", "result"),
    [
        ("prompts/get", {"name": "trip"}, {"messages": []}),
        ("resources/read", {"uri": "file:///a"}, {"contents": []}),
    ],
)
def test_whatever_may_ask(
    driver: Driver, revision: str, method: str, params: JSONObject, result: JSONObject
) -> None:
    """Methods other than tools/call may ask too, and the original params must be there in the
    second round.
    """

    def handler(asked: Asked) -> JSONObject | Questions:
        assert {name: asked.params[name] for name in params} == params
        return result if asked.responses else Questions({"where": ROOTS})

    outcome = talk(driver, revision, handler, method=method, params=params)

    assert outcome.result == result


# --------------------------------------------------------------------------------------- rounds


def booking(asked: Asked) -> JSONObject | Questions:
    """A handler with three rounds, which keeps the earlier answers in its state."""
    known: JSONObject = json.loads(asked.state or "{}")
    known.update(asked.responses)
    if "city" not in known:
        return Questions({"city": FORM})
    if "verse" not in known:
        return Questions({"verse": SAMPLE, "where": ROOTS}, json.dumps(known))
    return text(known)


@drivers
@recent
def test_round_after_round(driver: Driver, revision: str) -> None:
    """Answers belong to one round; data for later rounds must be kept in the state."""
    outcome = talk(driver, revision, booking)

    assert said(outcome) == {"city": ACCEPTED, "verse": WRITTEN, "where": LISTED}
    assert outcome.runs == 3


@drivers
@every
def test_a_round_without_questions(driver: Driver, revision: str) -> None:
    """A server may ask only to be called again, also by a client that can answer no questions."""

    def handler(asked: Asked) -> JSONObject | Questions:
        if asked.state == "done":
            return text([asked.responses, asked.state])
        return Questions(state="done")

    assert said(talk(driver, revision, handler, capabilities={})) == [{}, "done"]


@drivers
@every
def test_progress_goes_on_over_the_rounds(driver: Driver, revision: str) -> None:
    """All rounds are one request for the caller, so progress must not start again."""

    def handler(asked: Asked) -> JSONObject | Questions:
        if asked.responses:
            assert asked.progress(2)
            return text("done")
        assert asked.progress(1)
        return Questions({"where": ROOTS})

    assert talk(driver, revision, handler).progress == [1, 2]


@drivers
@every
def test_logs_come_from_every_round(driver: Driver, revision: str) -> None:
    """The level may be set by request or for the connection, and the handler must not have to
    know."""

    def handler(asked: Asked) -> JSONObject | Questions:
        assert not asked.log("debug", "too much")
        assert asked.log("error", "second" if asked.responses else "first")
        return text("done") if asked.responses else Questions({"where": ROOTS})

    assert talk(driver, revision, handler, log_level="warning").logs == ["first", "second"]


# ------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("revision", RECENT)
@pytest.mark.parametrize(("question", "lacks"), [(FORM, "elicitation"), (SAMPLE, "sampling")])
def test_what_a_client_has_not_declared_is_not_asked(
    revision: str, question: JSONObject, lacks: str
) -> None:
    """Asking must raise without ending the request, so that the handler can go on without an
    answer.
    """

    def handler(asked: Asked) -> JSONObject | Questions:
        return Questions({"a": question})

    less = {name: value for name, value in CAPABILITIES.items() if name != lacks}
    with pytest.raises(LocalProtocolError, match="did not declare"):
        talk(by_hand, revision, handler, capabilities=less)
    code = -32021 if revision == MODERN else -32602
    assert talk(on_trio, revision, handler, capabilities=less).code == code


@pytest.mark.parametrize("revision", RECENT[1:])
@instantly()
async def test_the_caller_is_told_what_it_would_have_to_declare(revision: str) -> None:
    """The client can declare the capability and retry (CAP-007); -32603 would blame the server."""

    def handler(_call: ServerCall) -> RequireInput:
        return RequireInput({"a": ROOTS, "b": URL})

    options: Any = {"capabilities": {"elicitation": {}}}
    serving = {"revisions": (revision,)}
    async with talking(handler, serving=serving, revisions=(revision,), **options) as client:
        with pytest.raises(PeerError, match="did not declare") as raised:
            await client.request("tools/call", {"name": "any"})
    assert "roots" in raised.value.message
    if revision == MODERN:
        needed: JSONObject = {"roots": {}, "elicitation": {"url": {}}}
        assert raised.value.data == {"requiredCapabilities": needed}


@every
@instantly()
async def test_a_caller_that_gives_up_leaves_nothing_behind(revision: str) -> None:
    """A cancellation must stop the question and the handler, and the next call must work."""
    log: list[str] = []

    def handler(call: ServerCall) -> JSONObject | RequireInput:
        log.append(f"handles {call.params['name']}")
        return RequireInput({"where": ROOTS}) if call.params["name"] == "asks" else text("done")

    async def thinking(_call: Call) -> JSONObject:
        log.append("asked")
        try:
            await trio.sleep_forever()
        finally:
            log.append("left alone")
        raise AssertionError("it never ends by itself")

    serving = {"revisions": (revision,)}
    options: Any = {"on_request": thinking, "capabilities": CAPABILITIES}
    async with talking(handler, serving=serving, revisions=(revision,), **options) as client:
        with trio.move_on_after(5) as scope:
            await client.request("tools/call", {"name": "asks"})
        assert scope.cancelled_caught
        await client.request("tools/call", {"name": "answers"})
    assert log[:2] == ["handles asks", "asked"]
    # A client with a handshake learns from the server that nobody needs its answer any more.
    assert sorted(log[2:]) == ["handles answers", "left alone"]


@drivers
@every
def test_a_handler_that_asks_nobody(driver: Driver, revision: str) -> None:
    """A handler without questions must work as before."""
    outcome = talk(driver, revision, lambda asked: text([asked.responses, asked.state]))

    assert said(outcome) == [{}, None]
    assert outcome.runs == 1
