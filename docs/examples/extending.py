"""A framework's own methods: gated by a capability, checked, and known to both eras."""

from sansmcp import (
    ClientConnection,
    Config,
    Extension,
    ExtensionMethod,
    JSONObject,
    LocalProtocolError,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    Side,
)

# -- extension
NAME = "com.example/search"
SEARCH = Extension(
    methods=[
        ExtensionMethod(
            name="example/find",
            kind="request",
            sender=Side.CLIENT,
            gate=("extensions", NAME),  # what the server declares
            params={"text": str},
            result={"hits": list},
        ),
        ExtensionMethod(
            name="notifications/example/indexed",
            kind="notification",
            sender=Side.SERVER,
            sender_gate=("extensions", NAME),
            params={"documents": int},
        ),
    ],
    result_types=["com.example/partial"],  # beside `complete`: the client is to ask again
)
CONFIG = Config(extensions=[SEARCH])

# -- connections
client = ClientConnection(info={"name": "by hand", "version": "1.0"}, config=CONFIG)
server = ServerConnection(
    info={"name": "demo", "version": "1.0"},
    capabilities={"extensions": {NAME: {}}},
    config=CONFIG,
)


def turn() -> None:
    """Carry bytes to the server and back, once."""
    server.receive_data(client.data_to_send())
    while (event := server.next_event()) is not None:
        if isinstance(event, RequestReceived):
            print("asked for", event.request.params["text"])
            result: JSONObject = {"hits": [], "resultType": "com.example/partial"}
            server.send_result(event.request, result)
    client.receive_data(server.data_to_send())
    while (event := client.next_event()) is not None:
        if isinstance(event, ResponseReceived):
            print(event.result["resultType"], event.result["hits"])


client.start()
turn()

# -- use
client.send_request("example/find", {"text": "h11"})
turn()
try:
    client.send_request("example/find", {"words": "h11"})
except LocalProtocolError as error:
    print(error)
