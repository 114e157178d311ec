"""The official examples of questions inside a result, and of the responses to them."""

from typing import Final

from sansmcp import (
    InputRequired,
    JSONObject,
)
from tests.support.examples import (
    FILES,
    a_client,
    a_server,
    ask,
    asked,
    load,
    of_kinds,
)
from tests.support.modern import (
    EVERYTHING,
    input_required,
    requested,
)
from tests.support.wire import (
    only,
    receive,
    result,
    sent,
)

QUESTIONS: Final = {
    "CreateMessage": "sampling/createMessage",
    "CreateMessageRequest": "sampling/createMessage",
    "Elicit": "elicitation/create",
    "ElicitRequestForm": "elicitation/create",
    "ElicitRequestURL": "elicitation/create",
    "ListRoots": "roots/list",
}
ASKED: Final[dict[str, JSONObject]] = {
    "CreateMessage": {"messages": [], "maxTokens": 1},
    "Elicit": {"message": "m", "requestedSchema": {"type": "object", "properties": {}}},
    "ListRoots": {},
}


def exchange_questions(questions: JSONObject, state: str | None = None) -> None:
    """Let a server send these questions and a client receive them."""
    client = a_client(EVERYTHING)
    handle = ask(client, "tools/call")
    event = only(InputRequired, receive(client, input_required(handle.id, questions, state)))
    assert event.questions == questions
    server = a_server()
    server.require_input(asked(server, "tools/call"), questions, state=state)
    assert sent(server) == [input_required(1, questions, state)]


@of_kinds("CreateMessage", "Elicit", "ListRoots", suffix="Request")
def test_questions(kind: str, value: JSONObject) -> None:
    """One example has an id, which a question must not have (MRTR-007)."""
    assert value["method"] == QUESTIONS[kind]
    exchange_questions({"q": {name: part for name, part in value.items() if name != "id"}})


@of_kinds("CreateMessageRequest", "ElicitRequestForm", "ElicitRequestURL", suffix="Params")
def test_params_of_questions(kind: str, value: JSONObject) -> None:
    """Each elicitation mode must have its own params."""
    exchange_questions({"q": {"method": QUESTIONS[kind], "params": value}})


@of_kinds("InputRequests")
def test_several_questions(kind: str, value: JSONObject) -> None:
    """The server chooses the keys, which must be kept."""
    exchange_questions(value)


@of_kinds("InputRequired", suffix="Result")
def test_results_that_are_questions(kind: str, value: JSONObject) -> None:
    """One of these results has no questions, so the client must retry at once."""
    questions, state = value.get("inputRequests"), value["requestState"]
    if questions is not None:
        exchange_questions(questions, state)
        return
    client = a_client()
    handle = ask(client, "tools/call")
    assert receive(client, result(handle.id, value)) == []
    assert sent(client)[0]["params"]["requestState"] == state
    server = a_server()
    server.require_input(asked(server, "tools/call"), {}, state=state)
    assert sent(server) == [result(1, value)]


def exchange_answers(questions: JSONObject, answers: JSONObject) -> None:
    """Let a client send these answers and a server receive them."""
    client = a_client(EVERYTHING)
    handle = ask(client, "tools/call")
    receive(client, input_required(handle.id, questions))
    client.provide_input(handle, answers)
    (message,) = sent(client)
    assert message["params"]["inputResponses"] == answers
    assert requested(a_server(), message).input_responses == answers


@of_kinds("CreateMessage", "Elicit", "ListRoots", suffix="Result")
def test_answers(kind: str, value: JSONObject) -> None:
    """Input responses must be bare results, without an envelope."""
    exchange_answers({"q": {"method": QUESTIONS[kind], "params": ASKED[kind]}}, {"q": value})


@of_kinds("InputResponses")
def test_several_answers(kind: str, value: JSONObject) -> None:
    """These are the answers to the questions of the other example."""
    (path,) = (path for path in FILES if path.parent.name == "InputRequests")
    exchange_answers(load(path), value)
