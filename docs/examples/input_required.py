"""A tool that asks twice before it books a room, and trusts only its own sealed state."""

import time

from sansmcp import (
    ALL_REVISIONS,
    LEGACY_REVISIONS,
    ClientConnection,
    Config,
    ErrorReceived,
    IncomingRequest,
    InputRequired,
    JSONObject,
    ProtocolViolation,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
)

INFO = {"name": "demo", "version": "1.0"}
KEY = b"sixteen bytes or more: secrets.token_bytes(32)"  # the same wherever a round may arrive

server = ServerConnection(
    info=INFO, capabilities={"tools": {}}, config=Config(state_keys=(KEY,), state_seconds=300)
)


# -- ask
def form(message: str, **properties: JSONObject) -> JSONObject:
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    params = {"message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def book(request: IncomingRequest) -> None:
    """One round: the request as the client has sent it, with the answers to the last questions."""
    state, answers = server.read_state(request, at=time.time()), request.input_responses
    if not request.open:  # the seal was bad, and the client knows
        return
    if any(answer["action"] != "accept" for answer in answers.values()):
        server.send_result(request, text("Nothing was booked."))
    elif state is not None:  # the second questions were answered
        server.send_result(request, text(f"A {request.params['arguments']['room']} in {state}."))
    elif "city" in answers:  # the first ones
        city = answers["city"]["content"]["city"]
        question = form(f"Book a room in {city}?")
        server.require_input(request, {"sure": question}, state=city, at=time.time())
    else:
        question = form("Which city?", city={"type": "string"})
        server.require_input(request, {"city": question})


def text(value: str) -> JSONObject:
    return {"content": [{"type": "text", "text": value}]}


# -- answer
def user(question: JSONObject) -> JSONObject:
    """The answer of the user to a form, in whichever era it was asked."""
    print("  ", question["params"]["message"])
    asked = question["params"]["requestedSchema"]["properties"]
    return {"action": "accept", "content": dict.fromkeys(asked, "Paris")}


def on_client(client: ClientConnection) -> None:
    for event in iter(client.next_event, None):
        match event:
            case InputRequired(request=call, questions=questions):  # 2026-07-28
                answers = {name: user(question) for name, question in questions.items()}
                client.provide_input(call, answers)
            case RequestReceived(request=request):  # the revisions before
                client.send_result(request, user({"params": request.params}))
            case ResponseReceived(result=result):
                print("  ", result["content"][0]["text"])
            case ErrorReceived(message=message, code=code):
                print("  ", message, code)
            case _:
                pass


# -- carry
def on_server() -> None:
    for event in iter(server.next_event, None):
        match event:
            case RequestReceived(request=request):
                book(request)
            case ProtocolViolation(text=reason):
                print("   the server has seen:", reason)
            case _:
                pass


def talk(client: ClientConnection, *, forge: bool = False) -> None:
    client.start()
    asked = False
    while True:
        while data := client.data_to_send():
            if forge and b"requestState" in data:
                data = data.replace(b'"room":"single"', b'"room":"suite"')
            server.receive_data(data)
            on_server()
            client.receive_data(server.data_to_send())
            on_client(client)
        if asked:
            return
        client.send_request("tools/call", {"name": "book", "arguments": {"room": "single"}})
        asked = True


# -- run
for revisions in (ALL_REVISIONS, LEGACY_REVISIONS):
    caller = ClientConnection(info=INFO, capabilities={"elicitation": {}}, revisions=revisions)
    print("a client that begins with", revisions[-1])
    talk(caller)

print("a client that changes its request on the way")
server = ServerConnection(info=INFO, capabilities={"tools": {}}, config=Config(state_keys=(KEY,)))
talk(ClientConnection(info=INFO, capabilities={"elicitation": {}}), forge=True)
