"""Legal conversations between two connections, in every order in which they can be observed.

For each message, the number of messages that its sender had received before is recorded. An order
of all messages is possible exactly if it keeps the order of each direction, and if no message comes
before those that its sender had received.
"""

import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import attrs
from hypothesis import strategies as st

from sansmcp import (
    LOG_LEVELS,
    JSONObject,
    LocalProtocolError,
    RequestReceived,
    ResourceUpdated,
    Side,
    ToolsListChanged,
)
from sansmcp.testing import Pair
from tests.support.machines.conversation import ASKED, RESULTS

TASK: Final = {
    "status": "working",
    "createdAt": "2026-01-02T03:04:05Z",
    "lastUpdatedAt": "2026-01-02T03:04:05Z",
    "ttl": None,
}
URIS: Final = ("a:", "b:")


@attrs.define(eq=False)
class Dialogue:
    """Two connections, and a record of every message of each side.

    Attributes:
        said: By side, each message, with the number of messages that its sender had received.
        tasks: By side, its tasks that are not over.
        n_tasks: The number of tasks that there were.
    """

    pair: Pair
    draw: Callable[[st.SearchStrategy[Any]], Any]
    theme: tuple[str, ...]
    asker: Side
    said: tuple[list[tuple[bytes, int]], list[tuple[bytes, int]]] = attrs.field(
        factory=lambda: ([], []), init=False
    )
    tasks: tuple[list[JSONObject], list[JSONObject]] = attrs.field(
        factory=lambda: ([], []), init=False
    )
    n_tasks: int = attrs.field(default=0, init=False)
    _received: list[int] = attrs.field(factory=lambda: [0, 0], init=False)
    _seen: int = attrs.field(default=0, init=False)
    _names: Any = attrs.field(factory=itertools.count, init=False)

    def note(self) -> None:
        """Record the messages that were sent since the last call."""
        for side in Side:
            self.pair.wire_to(side)
        for sender, message in self.pair.transcript[self._seen :]:
            self.said[sender].append((message, self._received[sender]))
        self._seen = len(self.pair.transcript)

    def act(self) -> None:
        """Take one step that the protocol allows."""
        side: Side = self.draw(st.sampled_from(Side))
        name: str = self.draw(st.sampled_from(("deliver",) * len(self.theme) + self.theme))
        if name in _ASKING:
            side = self.asker
        elif name in _ANSWERING:
            side = self.asker.other
        with suppress(LocalProtocolError):  # it is not allowed now, and nothing was sent
            getattr(self, name)(side)
        self.note()

    def deliver(self, side: Side) -> None:
        if self.pair.deliver_message_to(side):
            self._received[side] += 1

    def ask(self, side: Side) -> None:
        method, params = self.draw(st.sampled_from([a[1:] for a in ASKED if a[0] is side]))
        self.pair.side(side).send_request(method, params, progress=self.draw(st.booleans()))

    def ask_with_token(self, side: Side) -> None:
        method = "tools/call" if side is Side.CLIENT else "roots/list"
        self.pair.side(side).send_request(method, {"name": "echo"}, meta={"progressToken": "t"})

    def ask_for_task(self, side: Side) -> None:
        method = "tools/call" if side is Side.CLIENT else "sampling/createMessage"
        params: JSONObject = {"name": "echo", "messages": [], "maxTokens": 1, "task": {}}
        self.pair.side(side).send_request(method, params, progress=True)

    def task_status(self, side: Side) -> None:
        tasks = self.tasks[side] or [self.new_task(side)]
        task = self.draw(st.sampled_from(tasks))
        status = self.draw(st.sampled_from(["working", "completed"]))
        if status == "completed":
            self.tasks[side].remove(task)
        params = {**task, "status": status}
        self.pair.side(side).send_notification("notifications/tasks/status", params)

    def new_task(self, side: Side) -> JSONObject:
        """A task of this side, which is working; its id was never used."""
        self.n_tasks += 1
        task: JSONObject = {**TASK, "taskId": f"t{self.n_tasks}"}
        self.tasks[side].append(task)
        return task

    def subscribe(self, side: Side) -> None:
        verb, uri = self.draw(st.tuples(st.sampled_from(["", "un"]), st.sampled_from(URIS)))
        self.pair.client.send_request(f"resources/{verb}subscribe", {"uri": uri})

    def set_level(self, side: Side) -> None:
        level = self.draw(st.sampled_from(sorted(LOG_LEVELS)))
        self.pair.client.send_request("logging/setLevel", {"level": level})

    def ping(self, side: Side) -> None:
        self.pair.side(side).ping()

    def answer(self, side: Side) -> None:
        if waiting := self.pair.side(side).open_requests:
            request = self.draw(st.sampled_from(waiting))
            if self.draw(st.booleans()):
                self.pair.side(side).send_error(request, -32603, "no")
            else:
                asked = "task" in request.params
                result = {"task": self.new_task(side)} if asked else RESULTS[request.method]
                self.pair.side(side).send_result(request, result)

    def progress(self, side: Side) -> None:
        events = self.pair.events[side]
        given = [event.request for event in events if isinstance(event, RequestReceived)]
        if given:
            request = self.draw(st.sampled_from(given[-2:]))
            self.pair.side(side).send_progress(request, self.draw(st.integers(0, 9)))

    def withdraw(self, side: Side) -> None:
        """Cancel a request, and send another one with its progress token, which is free then."""
        self.cancel(side)
        self.ask_with_token(side)

    def cancel(self, side: Side) -> None:
        if waiting := self.pair.side(side).pending_requests:
            self.pair.side(side).cancel(self.draw(st.sampled_from(waiting)))

    def log(self, side: Side) -> None:
        self.pair.server.send_log(self.draw(st.sampled_from(sorted(LOG_LEVELS))), 1)

    def publish(self, side: Side) -> None:
        uri = self.draw(st.sampled_from(URIS))
        self.pair.server.publish(ResourceUpdated(uri))
        self.pair.server.publish(ToolsListChanged())

    def tell(self, side: Side) -> None:
        method = "x/told" if side is Side.SERVER else "notifications/roots/list_changed"
        self.pair.side(side).send_notification(method)

    def send_batch(self, side: Side) -> None:
        """Send a batch as another sender could do; the library sends no batches of requests."""
        if self.pair.side(side).revision != "2025-03-26":
            return
        asked = [
            {"jsonrpc": "2.0", "id": f"batch {next(self._names)}", "method": "ping"}
            for _ in range(self.draw(st.integers(1, 2)))
        ]
        self.note()
        line = json.dumps(asked).encode()
        self.pair.wire_to(side.other).put(line + b"\n")
        self.said[side].append((line, self._received[side]))

    def finish(self) -> None:
        """Deliver all messages that are in flight."""
        while any(self.pair.wire_to(side).data for side in Side):
            for side in Side:
                self.deliver(side)
                self.note()


THEMES: Final = (
    ("ask", "answer", "cancel", "ping", "tell", "send_batch", "log"),
    ("ask_with_token", "withdraw", "answer", "progress", "progress"),
    ("subscribe", "subscribe", "answer", "publish", "cancel"),
    ("set_level", "log", "log", "cancel"),
    ("ask_for_task", "answer", "task_status", "progress", "progress"),
)
"""The actions of a conversation. With all actions in one, the rare ones would be too rare."""
_ASKING: Final = ("ask_with_token", "ask_for_task", "withdraw")
_ANSWERING: Final = ("answer", "progress", "task_status")


@st.composite
def dialogues(draw: Callable[[st.SearchStrategy[Any]], Any], revision: str) -> Dialogue:
    """A conversation from its beginning, in which messages of both sides cross."""
    pair = Pair(revision=revision, connected=False)
    dialogue = Dialogue(pair, draw, draw(st.sampled_from(THEMES)), draw(st.sampled_from(Side)))
    early = draw(st.booleans())
    if early:
        dialogue.pair.client.ping()
        dialogue.pair.server.ping()
    dialogue.pair.client.start()
    dialogue.note()
    if not early:
        dialogue.finish()
    for _ in range(draw(st.integers(0, 30))):
        dialogue.act()
    dialogue.finish()
    return dialogue


@st.composite
def orders(
    draw: Callable[[st.SearchStrategy[Any]], Any], dialogue: Dialogue
) -> list[tuple[Side, bytes]]:
    """One of the orders in which the conversation can be observed."""
    said = dialogue.said
    seen = [0, 0]
    order: list[tuple[Side, bytes]] = []
    while sides := [side for side in Side if seen[side] < len(said[side])]:
        possible = [side for side in sides if said[side][seen[side]][1] <= seen[side.other]]
        side: Side = possible[0] if len(possible) == 1 else draw(st.sampled_from(possible))
        order.append((side, said[side][seen[side]][0]))
        seen[side] += 1
    return order
