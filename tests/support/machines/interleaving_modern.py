"""Legal conversations with stateless requests, alone or beside a handshake."""

import json
from collections.abc import Callable
from typing import Any, Final

import attrs
from hypothesis import strategies as st

from sansmcp import (
    LEGACY_REVISIONS,
    LOG_LEVELS,
    IncomingRequest,
    InputRequired,
    JSONObject,
    RequestReceived,
    ResourceUpdated,
    Side,
    Subscription,
    ToolsListChanged,
)
from sansmcp.testing import Pair
from tests.support.machines.conversation import RESULTS
from tests.support.machines.interleaving import URIS, Dialogue
from tests.support.modern import BOTH, FORM, MODERN, ROOTS, envelope

QUESTIONS: Final[JSONObject] = {"form": FORM, "roots": ROOTS}
ANSWERS: Final[JSONObject] = {"form": {"action": "decline"}, "roots": {"roots": []}}
FILTERS: Final[tuple[JSONObject, ...]] = (
    {"toolsListChanged": True},
    {"resourceSubscriptions": ["a:"]},
    {"toolsListChanged": True, "resourceSubscriptions": ["a:", "b:"]},
)
CALLS: Final[tuple[tuple[str, JSONObject], ...]] = (
    ("tools/call", {"name": "echo"}),
    ("resources/read", {"uri": "file:///a"}),
    ("tools/list", {}),
    ("x/unknown", {}),
)
_LEVELS: Final = (None, *sorted(LOG_LEVELS))


@attrs.define(eq=False)
class ModernDialogue(Dialogue):
    """A conversation with everything that 2026-07-28 allows.

    The messages `by_hand` come from a second client on the same stream, without a connection of
    this library. The server does not know that there are two clients, and answers both.
    """

    _listeners: list[Subscription] = attrs.field(factory=list[Subscription], init=False)
    _withdrawn: set[object] = attrs.field(factory=set[object], init=False)

    def call(self, side: Side) -> None:
        method, params = self.draw(st.sampled_from(CALLS))
        self.pair.client.send_request(
            method,
            params,
            progress=self.draw(st.booleans()),
            log_level=self.draw(st.sampled_from(_LEVELS)),
        )

    def call_with_token(self, side: Side) -> None:
        self.pair.client.send_request("tools/call", {"name": "t"}, meta={"progressToken": "t"})

    def open_request(self) -> IncomingRequest | None:
        waiting = self.pair.server.open_requests
        return self.draw(st.sampled_from(waiting)) if waiting else None

    def given_request(self) -> IncomingRequest | None:
        """One of the last requests, which may have ended."""
        events = self.pair.server_events
        given = [event.request for event in events if isinstance(event, RequestReceived)]
        return self.draw(st.sampled_from(given[-3:])) if given else None

    def act(self) -> None:
        """Take one step, and often deliver everything before the next one."""
        super().act()
        if self.draw(st.booleans()):
            self.finish()

    def answer_any(self, side: Side) -> None:
        if (request := self.open_request()) is not None:
            if self.draw(st.booleans()):
                self.pair.server.send_error(request, -32603, "no")
            else:
                self.pair.server.send_result(request, RESULTS.get(request.method, {}))

    def cancel_call(self, side: Side) -> None:
        if waiting := self.pair.client.pending_requests:
            self.pair.client.cancel(self.draw(st.sampled_from(waiting)))

    def require(self, side: Side) -> None:
        if (request := self.open_request()) is not None:
            names = self.draw(st.sets(st.sampled_from(sorted(QUESTIONS))))
            state = self.draw(st.sampled_from([None, "one", "two"]))
            asked = {name: QUESTIONS[name] for name in sorted(names)}
            self.pair.server.require_input(request, asked, state=state)

    def provide(self, side: Side) -> None:
        events = self.pair.client_events
        asked = [event for event in events if isinstance(event, InputRequired)]
        if asked:
            event = self.draw(st.sampled_from(asked))
            answers = {name: ANSWERS[name] for name in event.questions}
            self.pair.client.provide_input(event.request, answers)

    def report(self, side: Side) -> None:
        if (request := self.given_request()) is not None:
            self.pair.server.send_progress(request, self.draw(st.integers(0, 9)))

    def log(self, side: Side) -> None:
        level = self.draw(st.sampled_from(sorted(LOG_LEVELS)))
        self.pair.server.send_log(level, 1, request=self.given_request())

    def listen(self, side: Side) -> None:
        self._listeners.append(self.pair.client.listen(self.draw(st.sampled_from(FILTERS))))

    def unlisten(self, side: Side) -> None:
        if self._listeners:
            self.pair.client.cancel(self.draw(st.sampled_from(self._listeners)))

    def publish(self, side: Side) -> None:
        changes = [ToolsListChanged(), *map(ResourceUpdated, URIS)]
        self.pair.server.publish(self.draw(st.sampled_from(changes)))

    def end(self, side: Side) -> None:
        if listeners := self.pair.server.listeners:
            self.pair.server.end_listener(self.draw(st.sampled_from(listeners)))

    def tell(self, side: Side) -> None:
        self.pair.side(side).send_notification("x/told")

    # ----------------------------------------------------------------------------- by hand

    def put(self, message: JSONObject) -> None:
        """Send a message of the second client."""
        self.note()
        line = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.pair.wire_to(Side.SERVER).put(line + b"\n")
        self.said[Side.CLIENT].append((line, self._received[Side.CLIENT]))

    def heard(self) -> list[JSONObject]:
        """The messages that the clients have received."""
        return [
            json.loads(line) for line, _ in self.said[Side.SERVER][: self._received[Side.CLIENT]]
        ]

    def call_by_hand(self, side: Side) -> None:
        ids: list[object] = [f"hand {next(self._names)}"]
        for message in self.heard():
            id = message.get("id")
            if "method" not in message and str(id).startswith("hand") and not self._asks(id):
                ids.append(id)  # it was answered, so the id is free
        level = self.draw(st.sampled_from(_LEVELS))
        method, params = self.draw(st.sampled_from(CALLS))
        meta = envelope(level=level)
        id = self.draw(st.sampled_from(ids))
        self.put({"id": id, "method": method, "params": {**params, "_meta": meta}})

    def _asks(self, id: object) -> bool:
        """Whether a request with this id is open, as far as its client can know."""
        lines = [json.loads(line) for line, _ in self.said[Side.CLIENT]]
        asked = [line for line in lines if line.get("id") == id and "method" in line]
        answers = [m for m in self.heard() if m.get("id") == id and "method" not in m]
        return len(asked) > len(answers)

    def retry_by_hand(self, side: Side) -> None:
        rounds = [
            message
            for message in self.heard()
            if message.get("result", {}).get("resultType") == "input_required"
        ]
        sent = [json.loads(line) for line, _ in self.said[Side.CLIENT]]
        if rounds:
            result = self.draw(st.sampled_from(rounds))
            asked = [m for m in sent if m.get("id") == result["id"] and "method" in m]
            if len(asked) != 1:
                return  # the id does not show which request it was
            params = {"_meta": envelope()}
            given = result["result"]
            for name in ("name", "uri"):
                if name in asked[0]["params"]:
                    params[name] = asked[0]["params"][name]
            if "requestState" in given:
                params["requestState"] = given["requestState"]
            params["inputResponses"] = {
                name: ANSWERS[name] for name in given.get("inputRequests", {})
            }
            id = f"hand {next(self._names)}"
            self.put({"id": id, "method": asked[0]["method"], "params": params})

    def listen_by_hand(self, side: Side) -> None:
        params = {"notifications": self.draw(st.sampled_from(FILTERS)), "_meta": envelope()}
        id = f"hand {next(self._names)}"
        self.put({"id": id, "method": "subscriptions/listen", "params": params})

    def cancel_by_hand(self, side: Side) -> None:
        sent = [json.loads(line) for line, _ in self.said[Side.CLIENT]]
        ids = {line.get("id") for line in sent if str(line.get("id")).startswith("hand")}
        waiting = sorted(str(id) for id in ids if self._asks(id) and id not in self._withdrawn)
        if waiting:
            id = self.draw(st.sampled_from(waiting))
            self._withdrawn.add(id)
            self.put({"method": "notifications/cancelled", "params": {"requestId": id}})


@st.composite
def modern_dialogues(
    draw: Callable[[st.SearchStrategy[Any]], Any],
    theme: tuple[str, ...],
    server: tuple[str, ...] = (MODERN,),
) -> Dialogue:
    """A client of both eras with a server that speaks 2026-07-28."""
    pair = Pair(client_revisions=BOTH, server_revisions=server, connected=False)
    return _played(ModernDialogue(pair, draw, theme, Side.CLIENT))


@st.composite
def mixed_dialogues(
    draw: Callable[[st.SearchStrategy[Any]], Any], theme: tuple[str, ...]
) -> Dialogue:
    """Two clients on one stream to a server of both eras. One of them opens with a handshake."""
    revision = draw(st.sampled_from(LEGACY_REVISIONS))
    pair = Pair(client_revisions=(revision,), server_revisions=BOTH, connected=False)
    dialogue = ModernDialogue(pair, draw, theme, Side.CLIENT)
    for _ in range(draw(st.integers(0, 3))):
        dialogue.call_by_hand(Side.CLIENT)
        dialogue.deliver(Side.SERVER)
        dialogue.note()
    return _played(dialogue)


@st.composite
def fallen_back_dialogues(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Dialogue:
    """A client of both eras with a legacy server, which the client has probed first."""
    pair = Pair(client_revisions=BOTH, server_revisions=LEGACY_REVISIONS, connected=False)
    return _played(
        Dialogue(pair, draw, ("ask", "answer", "cancel", "ping", "tell", "log"), Side.CLIENT)
    )


def _played(dialogue: Dialogue) -> Dialogue:
    dialogue.pair.client.start()
    dialogue.note()
    if dialogue.draw(st.booleans()):
        dialogue.finish()
    for _ in range(20):
        dialogue.act()
    dialogue.finish()
    return dialogue


MODERN_THEMES: Final = (
    ("call", "answer_any", "cancel_call", "log", "tell"),
    ("call_with_token", "answer_any", "cancel_call", "report", "report"),
    ("call", "require", "require", "provide", "provide", "answer_any", "report"),
    ("listen", "publish", "publish", "end", "unlisten", "call", "answer_any"),
)
MIXED_THEMES: Final = (
    ("ask", "call_by_hand", "call_by_hand", "answer_any", "log", "cancel_by_hand", "tell"),
    ("call_by_hand", "require", "require", "retry_by_hand", "answer_any", "cancel_by_hand"),
    ("subscribe", "listen_by_hand", "publish", "publish", "end", "cancel_by_hand", "answer_any"),
)

ANY_ERA: Final = st.one_of(
    *map(modern_dialogues, MODERN_THEMES),
    modern_dialogues(MODERN_THEMES[2]),
    modern_dialogues(MODERN_THEMES[-1], server=BOTH),
    *map(mixed_dialogues, MIXED_THEMES),
    fallen_back_dialogues(),
)
"""A conversation of any kind. With all actions in one, the rare ones would be too rare."""
