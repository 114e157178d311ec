"""The handshake of the legacy revisions: what both sides have agreed on, as far as that is certain.

The handshake is followed in the order in which its messages are seen. That order is the most
favourable one for both sides: a message is too early only if the message that it had to wait for
was not seen before it.

Source: MCP 2025-11-25, basic/lifecycle.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from .._rules.conversation import Conversation
from .._rules.messages import judge_capabilities
from .._rules.sending import Breach, judge_notification
from .._rules.state_tables import Phase, PhaseTrigger
from .._spec.registry import LEGACY_REVISIONS
from .._wire.values import JSONObject, Side, is_object
from ._events import BlindCause, HandshakeSeen
from ._history import ObserverCore, SeenRequest, SideHistory
from ._log_levels import AgreedLogLevel
from ._subscriptions import SubscribedResources

_ERA: Final = "what was agreed on is not known here: nothing that depends on it is judged"
_UNREADABLE: Final = "responses to it, and uses of what it may have set, are not judged"
INITIALIZED: Final = "notifications/initialized"


@attrs.define(eq=False, repr=False)
class Handshake:
    """Follows `initialize`, its response and `notifications/initialized`.

    Attributes:
        is_certain: Whether phase and revision are known for certain.
        conversation: Phase, revision and gates. Another object replaces it in `lose_track`.
    """

    _core: ObserverCore
    _log_level: AgreedLogLevel
    _resources: SubscribedResources
    is_certain: bool
    conversation: Conversation = attrs.field(init=False)
    # The `initialize` that began the handshake.
    _opening: SeenRequest | None = attrs.field(default=None, init=False)
    _initialized_early: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        """Begin without an agreement."""
        self.conversation = Conversation(self._core.registry.dialects[LEGACY_REVISIONS[-1]])

    # --------------------------------------------------------------------------------- looking

    @property
    def has_not_begun(self) -> bool:
        """Whether no handshake has begun, or every one has failed."""
        return self.conversation.phase is Phase.NEW

    @property
    def is_agreed(self) -> bool:
        """Whether a revision is certainly agreed on."""
        return self.is_certain and self.conversation.agreed

    @property
    def has_batches(self) -> bool:
        """Whether the agreed revision certainly has batches."""
        return self.is_agreed and self.conversation.dialect.has_batches

    def is_known_to(self, side: SideHistory) -> bool:
        """Whether a side certainly knows what was agreed on, if anything was."""
        return (
            self.conversation.phase is not Phase.AGREED
            or side.side is Side.SERVER
            or (self._opening is not None and side.has_read(self._opening.response_place))
        )

    # -------------------------------------------------------------------------------- messages

    def take_request(self, _sender: SideHistory, request: SeenRequest, params: JSONObject) -> None:
        """An `initialize` begins the handshake, or interrupts one."""
        info: Any = params.get("clientInfo")
        capabilities: Any = params.get("capabilities")
        request.subject = (
            info if is_object(info) else None,
            capabilities if is_object(capabilities) else None,
        )
        if self.conversation.phase is Phase.NEW:
            self.conversation.move(PhaseTrigger.INITIALIZE)
            self._opening = request
        elif self.conversation.phase is Phase.NEGOTIATING:
            self.lose_track()

    def take_error(self, request: SeenRequest) -> None:
        """An `initialize` was answered with an error."""
        if request is self._opening:
            self._opening = None
            self.conversation.move(PhaseTrigger.INITIALIZE_ERROR)

    def take_result(self, request: SeenRequest, result: JSONObject) -> None:
        """An `initialize` was answered with a result."""
        revision: Any = result.get("protocolVersion")
        capabilities: Any = result.get("capabilities")
        if (
            request is not self._opening  # the result of a second handshake
            or not isinstance(revision, str)
            or not is_object(capabilities)
        ):
            self.lose_track()
            return
        info: Any = result.get("serverInfo")
        client_info, client_capabilities = request.subject
        core = self._core
        core.queue.append(
            HandshakeSeen(
                revision=revision,
                client_info=client_info,
                server_info=info if is_object(info) else None,
                client_capabilities=client_capabilities,
                server_capabilities=capabilities,
                number=core.number,
                time=core.now,
            )
        )
        is_known = revision in LEGACY_REVISIONS
        if not is_known or client_capabilities is None:
            core.unknown_revision = not is_known
            self.lose_track()
            core.add_blind_spot(BlindCause.ERA, None, _ERA)
            return
        core.unknown_revision = False
        conversation = self.conversation
        conversation.dialect = core.registry.dialects[revision]
        conversation.gates[Side.CLIENT] = core.registry.open_gates(client_capabilities)
        conversation.gates[Side.SERVER] = core.registry.open_gates(capabilities)
        conversation.move(PhaseTrigger.INITIALIZE_RESULT)
        for side, declared in ((Side.CLIENT, client_capabilities), (Side.SERVER, capabilities)):
            for breach in judge_capabilities(core.registry, revision, declared):
                core.add_violation(side, breach, request.method, request.id)
        if self._initialized_early:
            self._operate()

    def take_initialized(self, sender: SideHistory, breach: Breach | None) -> None:
        """The client sent `notifications/initialized`; `breach` is the breach in its form."""
        conversation = self.conversation
        phase = conversation.phase
        if breach is None and self.is_certain:
            breach = judge_notification(
                conversation, sender.side, INITIALIZED, None, {}, shape=False
            )
            if breach is not None:
                self._core.add_violation(sender.side, breach, INITIALIZED)
        if phase is Phase.AGREED:
            assert self._opening is not None  # its response has brought this phase
            sender.read_place = max(sender.read_place, self._opening.response_place)
            self._operate()
        elif phase is Phase.NEGOTIATING:
            self._initialized_early = True

    def _operate(self) -> None:
        """`notifications/initialized` came after the result: everything is known from here on."""
        assert self.conversation.phase is Phase.AGREED
        self.conversation.move(PhaseTrigger.INITIALIZED)
        self.is_certain = True

    # ------------------------------------------------------------------------------ what is lost

    def is_opened_by(self, request: SeenRequest) -> bool:
        """Whether this `initialize` began the present handshake."""
        return request is self._opening

    def forget(self, request: SeenRequest) -> None:
        """The response to a request will not be matched; for `initialize`, lose track."""
        if request is self._opening:
            self.lose_track()

    def lose_track(self) -> None:
        """What was agreed on is not known from here on, until a whole handshake is seen."""
        self.is_certain = False
        self._opening = None
        self._initialized_early = False
        self.conversation = Conversation(self._core.registry.dialects[LEGACY_REVISIONS[-1]])
        self._log_level.lose()
        self._resources.lose()

    def mark_unreadable(self, sender: SideHistory) -> None:
        """A side has sent something that may have been any message."""
        sender.is_complete = sender.is_readable = False
        if self.conversation.phase is not Phase.OPERATING:
            self.lose_track()
        self._core.add_blind_spot(BlindCause.UNREADABLE, sender.side, _UNREADABLE)

    def excuse(self, sender: SideHistory, key: Any) -> None:
        """Allow an error response to a bad message with this id, as if it were a request."""
        if not sender.excuse(key):
            self.mark_unreadable(sender)
