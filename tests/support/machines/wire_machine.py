"""The base of `ConnectionMachine`: the pair, the wire, the time, the ends, and the checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sansmcp import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    Config,
    Event,
    IncomingRequest,
    InputRequired,
    JSONObject,
    Listener,
    ListenerAdded,
    LocalProtocolError,
    OutgoingRequest,
    Phase,
    RequestReceived,
    Side,
)
from sansmcp.testing import Handle, Pair, encoded, wire_lines
from tests.support.machines.bounds import check_bounds
from tests.support.machines.checker import Checker
from tests.support.machines.choices import CONFIGS, FOREIGN, STARTS
from tests.support.machines.promises import check_message, demand
from tests.support.tables import methods_from

SIDES: Final = tuple(Side)
# Every draw takes time, so a rule makes few of them: one draw gives a side and a choice.
ANY_SIDE: Final = st.sampled_from(SIDES)
_PORTIONS: Final = st.sampled_from(
    [(side, n_bytes) for n_bytes in (None, 0, 1, 7, 50) for side in SIDES]
)
"""The side to deliver to, and the number of bytes: None for all, 0 for one message."""
_ENDS: Final = st.sampled_from(
    [(side, how) for how in ("end", "eof", "drain", "close", "send_failed") for side in SIDES]
)


class WireMachine(RuleBasedStateMachine):
    """Opens, delivers, damages, lets time pass, ends, and checks after every step.

    Attributes:
        revision: The revision that both sides speak.
        speaks: Pairs of revisions of the client and the server, to choose from instead.
        configs: Settings to choose from, for each side.
        pair: The two connections and the wire.
        revisions: By side, the revisions that were chosen.
        checkers: By side, the checker. It records only verbs that are called through it.
        asked: By side, the last requests and other handles that it has sent, open or ended.
        received: By side, the last requests that it has received, open or ended.
        questions: The last requests that ended with questions, with or without another round.
        served: The last subscriptions that the server has served, open or ended.
    """

    revision: ClassVar[str] = "2025-11-25"
    speaks: ClassVar[tuple[tuple[Sequence[str], Sequence[str]], ...]] = ()
    configs: ClassVar[tuple[Config, ...]] = CONFIGS

    pair: Pair

    def __init__(self) -> None:
        super().__init__()
        self.revisions: tuple[Sequence[str], Sequence[str]] = ((self.revision,), (self.revision,))
        self.checkers: tuple[Checker, ...] = ()
        self.asked: tuple[list[Handle], list[Handle]] = ([], [])
        self.received: tuple[list[IncomingRequest], list[IncomingRequest]] = ([], [])
        self.questions: list[tuple[OutgoingRequest, dict[str, JSONObject]]] = []
        self.served: list[Listener] = []
        self._is_modern = False
        self._spoken: tuple[str, ...] = ()
        self._patience = 0
        self._prompt: tuple[Side, ...] = ()
        self._joining = False
        self._seen = 0
        self._used_ids: set[tuple[Side, int | str]] = set()

    # -------------------------------------------------------------------------------- to extend

    def make_pair(self, client_config: Config, server_config: Config) -> Pair:
        """Make the pair to drive, not connected."""
        client_revisions, server_revisions = self.revisions
        return Pair(
            client_revisions=client_revisions,
            server_revisions=server_revisions,
            client_config=client_config,
            server_config=server_config,
            connected=False,
        )

    def happened(self, side: Side, event: Event) -> None:
        """React to an event of a side.

        Args:
            side: The side that took the event.
            event: The event.
        """

    def sent(self, side: Side, message: bytes, value: Any) -> None:
        """React to a message that a side has sent.

        Args:
            side: The sender.
            message: The bytes of the message.
            value: The decoded message.
        """

    # ------------------------------------------------------------------------------------ begin

    @initialize(
        configs=st.integers(0, 8),
        speaking=st.integers(0, 11),
        connected=st.sampled_from((True, True, True, True, False)),
        patience=st.sampled_from((60, 40, 30, 15, 5)),
        prompt=st.sampled_from((SIDES, SIDES, SIDES, (), (Side.CLIENT,), (Side.SERVER,))),
        joining=st.booleans(),
    )
    def begin(
        self,
        configs: int,
        speaking: int,
        connected: bool,
        patience: int,
        prompt: tuple[Side, ...],
        joining: bool,
    ) -> None:
        """Make the pair.

        Args:
            configs: The settings of each side.
            speaking: The revisions of each side.
            connected: Whether the opening is done at once.
            patience: The number of steps before anything may end.
            prompt: The sides that get all messages before each step; others get them by steps only.
            joining: Whether these messages come in batches, in the revision that has batches.
        """
        if self.speaks:
            self.revisions = self.speaks[speaking % len(self.speaks)]
        self._is_modern = any(name in MODERN_REVISIONS for name in self.revisions[Side.CLIENT])
        self._spoken = _newest(*self.revisions)
        n_configs = len(self.configs)
        self.pair = self.make_pair(
            self.configs[configs % n_configs], self.configs[configs // n_configs % n_configs]
        )
        self.checkers = (Checker(self.pair.client), Checker(self.pair.server))
        self._patience = patience
        self._prompt = prompt
        self._joining = joining
        if connected:
            self.start({})
            self.pair.deliver()

    @rule(options=st.sampled_from(STARTS))
    @precondition(lambda self: self.pair.client.phase is Phase.NEW)
    def start(self, options: JSONObject) -> None:
        """Begin the opening."""
        self._ask(Side.CLIENT, lambda: self.pair.client.start(**options, now=self.pair.now))

    def _ask(self, side: Side, send: Any) -> None:
        handle = self.checkers[side].ask(send)
        if not isinstance(handle, LocalProtocolError):
            remember(self.asked[side], handle)

    # ------------------------------------------------------------------------------ on the wire

    @rule(portion=_PORTIONS)
    def deliver(self, portion: tuple[Side, int | None]) -> None:
        """Deliver bytes, or one message, to a side."""
        side, n_bytes = portion
        if n_bytes == 0:
            self.pair.deliver_message_to(side)
        else:
            self.pair.deliver_to(side, n_bytes)

    @rule()
    def deliver_all(self) -> None:
        """Deliver all messages that are in flight."""
        self.pair.deliver()

    @rule(side=ANY_SIDE, lost=st.booleans())
    def disturb(self, side: Side, lost: bool) -> None:
        """Lose a message to a side, or make one batch of all messages that are in flight to it."""
        if lost:
            self.pair.wire_to(side).drop_message()
        else:
            self._join(side)

    def _join(self, side: Side) -> None:
        """Make one batch of all messages in flight to a side. Existing batches stay as they are."""
        wire = self.pair.wire_to(side)
        if wire.data.endswith(b"\n"):
            lines = wire.messages
            singles = [line for line in lines if line.startswith(b"{")]
            wire.drop()
            for line in lines:
                if not line.startswith(b"{"):
                    wire.put(line + b"\n")
            if singles:
                wire.put(b"[" + b",".join(singles) + b"]\n")

    @rule(side=ANY_SIDE, data=st.data())
    def inject(self, side: Side, data: st.DataObject) -> None:
        """Put a line on the wire to a side that the other side has not sent."""
        if self._is_between_lines(side):
            line = data.draw(_lines(self._spoken, side.other))
            self.pair.wire_to(side).put(line.replace(b"\n", b"") + b"\n")

    @rule(message=st.sampled_from([encoded(message) for message in FOREIGN]))
    def join_in(self, message: bytes) -> None:
        """Send a message of another client on the stream to the server, of either era."""
        if self._is_between_lines(Side.SERVER):
            self.pair.to_server.put(message + b"\n")

    def _is_between_lines(self, side: Side) -> bool:
        wire = self.pair.wire_to(side)
        return not wire.data or wire.data.endswith(b"\n")

    # -------------------------------------------------------------------------- time, and ends

    @rule(seconds=st.sampled_from((0.5, 1.0, 4.0, 25.0)))
    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.pair.advance(seconds)

    def _may_end(self) -> bool:
        return self._patience <= 0

    @rule(end=_ENDS)
    @precondition(_may_end)
    def end(self, end: tuple[Side, str]) -> None:
        """End the stream to a side, the side itself, or its sending."""
        side, how = end
        connection = self.pair.side(side)
        if how == "end":
            self.pair.wire_to(side).end()
        elif how == "eof":
            connection.receive_eof(now=self.pair.now)
        elif how == "drain":
            connection.receive_eof(drain=5.0, now=self.pair.now)
        elif how == "close":
            connection.close()
        else:
            connection.send_failed()

    # ----------------------------------------------------------------------------------- checks

    @invariant()
    def promises_are_kept(self) -> None:
        """Compare both connections with their records, and check the messages that they sent."""
        self._patience -= 1
        for side in self._prompt:
            if self._joining and self._has_batches():
                self._join(side)
            self.pair.deliver_to(side)
        for side in Side:
            for event in self.checkers[side].take_events():
                self.happened(side, event)
                self._remember_handles(side, event)
            check_bounds(self.pair.side(side))
        transcript = self.pair.transcript
        for side, message in transcript[self._seen :]:
            value = check_message(message)
            if "method" in value and "id" in value:
                key = (side, value["id"])
                demand(key not in self._used_ids, f"the id of {value} was used before")
                self._used_ids.add(key)
            self.sent(side, message, value)
        self._seen = len(transcript)

    def _has_batches(self) -> bool:
        return self.pair.client.revision == "2025-03-26"

    def _remember_handles(self, side: Side, event: Event) -> None:
        if isinstance(event, RequestReceived):
            remember(self.received[side], event.request)
        elif isinstance(event, InputRequired):
            remember(self.questions, (event.request, event.questions))
        elif isinstance(event, ListenerAdded):
            remember(self.served, event.listener)

    def teardown(self) -> None:
        """Close both sides, and demand that everything has ended."""
        if not self.checkers:
            return  # the reason why it did not begin must not be hidden
        for side in Side:
            self.pair.wire_to(side)
            self.pair.side(side).close()
        self.promises_are_kept()
        demand(
            all(checker.closed for checker in self.checkers),
            "a closed connection had no last event",
        )


def remember(handles: list[Any], handle: object) -> None:
    """Add a handle to a list of handles that later steps may use."""
    handles.append(handle)
    del handles[:-8]


def _newest(*revisions: Sequence[str]) -> tuple[str, ...]:
    """The newest revision of each era."""
    known = {name for names in revisions for name in names}
    eras = (known.intersection(LEGACY_REVISIONS), known.intersection(MODERN_REVISIONS))
    return tuple(max(names) for names in eras if names)


def _lines(revisions: tuple[str, ...], sender: Side) -> st.SearchStrategy[bytes]:
    return st.one_of([wire_lines(revision, sender) for revision in revisions])


_ASKING: Final = frozenset({"prompts/get", "resources/read", "tools/call"})


def asking_methods(sender: Side) -> frozenset[str]:
    """The requests of a side that may be answered with questions."""
    return _ASKING if sender is Side.CLIENT else frozenset()


def methods_of(revisions: Sequence[str], sender: Side) -> tuple[str, ...]:
    """The requests that a side may send in one of these revisions. Frequent ones are repeated."""
    found = {name for revision in revisions for name in methods_from(sender, "request", revision)}
    asking = sorted(found & asking_methods(sender))
    return (*asking, *asking, *sorted(found))
