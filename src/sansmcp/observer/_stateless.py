"""Modern requests, which declare revision and capabilities themselves, and what follows from them.

The era of each message follows from that message: a request is modern if its `_meta` says so, and
a notification or response is modern if the request that it names is. A message that names no
request is reported only if neither era allows it. A server is bound by the rules of 2026-07-28 only
once its own messages have shown that it supports that revision (`ModernHistory.is_served`): until
then it may be an older server that ignores `_meta`.

Source: MCP 2026-07-28, basic/index; basic/versioning.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from .._rules.messages import (
    NO_RESULT_TYPE,
    judge_caching_hints,
    judge_capabilities,
    judge_reserved_code,
)
from .._rules.request_meta import OPTIONAL, PROTOCOL_VERSION, SERVER_INFO, Envelope, read_envelope
from .._rules.sending import (
    Breach,
    judge_notification,
    judge_phase,
    judge_request,
    result_shape_breach,
)
from .._rules.state_tables import Phase
from .._rules.subscription_filters import FILTERS
from .._spec.methods import META, QUESTIONS
from .._spec.modern_methods import MODERN_REVISION
from .._spec.registry import LOG_LEVELS, MODERN_REVISIONS
from .._spec.tasks import declares_tasks
from .._wire.values import MISSING, JSONObject, Side, is_object
from ._events import BlindCause, DiscoverySeen
from ._handshake import Handshake
from ._history import ObserverCore, RequestTerms, SeenRequest, SideHistory
from ._input_required import InputRounds
from ._log_levels import LOG, WantedLogLevels
from ._modern_tasks import ModernTasks
from ._subscriptions import SeenSubscription, Subscriptions
from ._tasks import STATUS

_DISCOVER: Final = "server/discover"
_LISTEN: Final = "subscriptions/listen"
_MISSING_CAPABILITY: Final = -32021
_UNSUPPORTED_VERSION: Final = -32022
_RESOURCE_NOT_FOUND: Final = -32002
_ERA: Final = "requests of an unknown revision, and messages that belong to them, are not judged"

# By the rule for which the server refuses a request: the rule that the client has broken.
_BROKEN_BY_CLIENT: Final = {"META-010": "META-009", "LOG-010": "LOG-002"}


@attrs.define(eq=False, repr=False)
class StatelessRequests:
    """Judges requests of 2026-07-28, their responses, and messages that may belong to them."""

    _core: ObserverCore
    _handshake: Handshake
    _inputs: InputRounds
    _subscriptions: Subscriptions
    _tasks: ModernTasks
    _log_levels: WantedLogLevels = attrs.field(factory=WantedLogLevels, init=False)
    # The last envelope that was read, and its terms: most requests repeat them.
    _envelope: Envelope | None = attrs.field(default=None, init=False)
    _terms: RequestTerms | None = attrs.field(default=None, init=False)

    # -------------------------------------------------------------------------------- requests

    def take_request(
        self, request: SeenRequest, params: JSONObject, breach: Breach | None
    ) -> Breach | None:
        """Judge a modern request; `breach` is the one in its JSON-RPC members, if any.

        Returns:
            The rule that it breaks, if any.
        """
        core = self._core
        modern = core.modern
        request.is_modern = True
        modern.n_requests += 1
        core.client.add_modern_id(request.key)
        meta: Any = params.get("_meta")
        terms = self._terms_of(meta if is_object(meta) else {})
        if terms is None:
            request.has_unknown_revision = True
            modern.n_unknown += 1
            core.add_blind_spot(BlindCause.ERA, None, _ERA)
            return breach
        modern.n_served += 1
        if isinstance(terms, Breach):
            request.due_rule = terms.rule
            return breach or Breach(_BROKEN_BY_CLIENT[terms.rule], terms.text)
        request.terms = terms
        method = request.method
        for declared in terms.breaches:
            core.add_violation(Side.CLIENT, declared, method, request.id)
        modern.has_extensions = modern.has_extensions or terms.has_extensions
        if terms.severity is not None:
            self._log_levels.add(terms.severity)
        request.spec = spec = modern.dialect.requests[Side.CLIENT].get(method)
        core.without_nulls(Side.CLIENT, OPTIONAL, meta, method, request.id)
        optional = META if spec is None else spec.params_optional
        params = core.without_nulls(Side.CLIENT, optional, params, method, request.id)
        if breach is None:
            breach = judge_request(
                modern.conversation, Side.CLIENT, method, spec, params, core.checks_shape
            )
            if (
                breach is not None
                and breach.rule == "OWN-020"
                and terms.has_extensions
                and not method.startswith("tasks/")  # these belong to tasks (XTASK-022)
            ):
                breach = None  # the extension may define it
        if spec is None or spec.allows_questions:
            other = self._inputs.take_request(request, params)
        elif method == _LISTEN:
            other = self._subscriptions.take_request(request, params)
            if modern.task_methods:
                other = other or self._tasks.take_filter(terms, params.get("notifications"))
        else:
            other = None
        if method in modern.task_methods or (method == "tools/call" and modern.task_methods):
            breach = breach or self._tasks.take_request(request, terms, params)
        return breach or other

    def _terms_of(self, meta: JSONObject) -> RequestTerms | Breach | None:
        """The declarations of a request, or the breach in them; None for an unknown revision."""
        envelope = self._envelope
        try:
            if envelope is not None and self._terms is not None and envelope.matches(meta):
                return self._terms
            read = read_envelope(meta, MODERN_REVISIONS, self._core.checks_shape)
        except RecursionError:
            return None
        if isinstance(read, Breach):
            return read if read.rule in _BROKEN_BY_CLIENT else None
        terms = RequestTerms(
            gates=self._core.registry.open_gates(read.capabilities),
            severity=None if read.level is None else LOG_LEVELS[read.level],
            has_extensions=bool(read.capabilities.get("extensions")),
            has_tasks=declares_tasks(read.capabilities),
            breaches=tuple(
                judge_capabilities(self._core.registry, read.version, read.capabilities)
            ),
        )
        self._envelope, self._terms = read, terms
        return terms

    def judge_bare(self, sender: SideHistory, request: SeenRequest) -> Breach | None:
        """Judge a legacy request before any handshake, where modern requests were seen."""
        modern = self._core.modern
        if modern.n_unknown:
            return None
        text = f"the server sent the request {request.method[:80]}"
        if sender.side is Side.SERVER and modern.is_served:
            request.due_rule = "STATE-007"
            return Breach("STATE-006", text)
        breach = judge_phase(Phase.NEW, sender.side, request.method)
        if breach is None or not modern.n_served:
            return breach
        if sender.side is Side.SERVER:
            return Breach("STATE-006", text)
        return Breach("META-009", f"{request.method[:80]} lacks {PROTOCOL_VERSION} in _meta")

    # ------------------------------------------------------------------------------- responses

    def take_result(self, request: SeenRequest, result: JSONObject) -> Breach | None:
        """Judge the result of a modern request, and take what follows from it."""
        core = self._core
        if request.has_unknown_revision:
            return None
        modern = core.modern
        if None in result.values():
            optional = META if request.spec is None else request.spec.result_optional
            optional = (*optional, *QUESTIONS)
            result = core.without_nulls(Side.SERVER, optional, result, request.method, request.id)
        kind: Any = result.get("resultType", MISSING)
        is_task = kind == "task" and kind not in core.registry.result_types
        if kind == "complete" or kind == "input_required" or is_task:
            modern.is_served = True
        if request.method == _DISCOVER:
            self._take_discovery(result)
        terms = request.terms
        self._end_logs(terms)
        if not modern.is_served:
            return None
        if terms is None:
            return self._judge_served(request)
        breach = None
        if isinstance(request.subject, SeenSubscription):
            breach = self._subscriptions.take_response(request, request.subject, result)
        if kind == "input_required":
            return self._inputs.take_result(request, terms, result)
        if kind == "complete":
            breach = self._judge_complete(request, result) or breach
            return breach or self._tasks.take_result(request, terms, result)
        if is_task:
            return self._tasks.take_new(request, terms, result)
        if kind is MISSING:
            return NO_RESULT_TYPE
        if isinstance(kind, str) and (terms.has_extensions or kind in core.registry.result_types):
            return None  # the extension may define it
        return Breach("JSON-022", f"resultType {kind!r:.80} is not known")

    def _judge_complete(self, request: SeenRequest, result: JSONObject) -> Breach | None:
        spec = request.spec
        if spec is None:
            return None
        if (
            self._core.checks_shape
            and (wrong := result_shape_breach(spec, False, result)) is not None
        ):
            return Breach("OWN-014", f"result of {request.method}: {wrong}")
        return judge_caching_hints(result) if spec.cacheable else None

    def _judge_served(self, request: SeenRequest) -> Breach | None:
        """Judge the result of a request that should have been refused for its `_meta`."""
        if not self._handshake.has_not_begun:
            return None  # it may be served as the request of a conversation with a handshake
        text = f"{request.method} is served, and its _meta is not a good one"
        return Breach(str(request.due_rule), text)

    def take_error(self, request: SeenRequest, code: int, data: object) -> Breach | None:
        """Judge the error that answers a modern request."""
        modern = self._core.modern
        if request.has_unknown_revision:
            modern.n_unknown -= 1
            return None
        modern.n_served -= 1
        self._end_logs(request.terms)
        if isinstance(request.subject, SeenSubscription):
            breach = self._subscriptions.take_response(request, request.subject, None)
            if breach is not None:
                return breach
        if not modern.is_served and not _is_modern_error(code, data):
            return None
        if code == _RESOURCE_NOT_FOUND:
            return Breach("ERR-008", f"this revision does not use the code {code}")
        breach = judge_reserved_code(code, data)
        if breach is None and request.terms is not None and request.method in modern.task_methods:
            breach = self._tasks.take_error(request, request.terms, code, data)
        return breach

    def _end_logs(self, terms: RequestTerms | None) -> None:
        if terms is not None and terms.severity is not None:
            self._log_levels.remove(terms.severity)

    def _take_discovery(self, result: JSONObject) -> None:
        versions: Any = result.get("supportedVersions")
        capabilities: Any = result.get("capabilities")
        if versions.__class__ is not list or not is_object(capabilities):
            return
        meta: Any = result.get("_meta")
        info: Any = meta.get(SERVER_INFO) if is_object(meta) else None
        revisions = tuple(version for version in versions if isinstance(version, str))
        if MODERN_REVISION in revisions:
            self._core.modern.is_served = True
        core = self._core
        core.queue.append(
            DiscoverySeen(
                revisions=revisions,
                server_info=info if is_object(info) else None,
                server_capabilities=capabilities,
                number=core.number,
                time=core.now,
            )
        )
        if core.modern.is_served:
            for breach in judge_capabilities(core.registry, MODERN_REVISION, capabilities):
                core.add_violation(Side.SERVER, breach, _DISCOVER)
            old = self._tasks.take_discovery(capabilities)
            if old is not None:
                core.add_violation(Side.SERVER, old, _DISCOVER)

    # --------------------------------------------------------------------------- notifications

    def judge_notification(
        self, sender: SideHistory, method: str, params: JSONObject, breach: Breach | None
    ) -> Breach | None:
        """Judge a notification that names no request, where it may belong to either era.

        Args:
            sender: The side that sent it.
            method: Its method.
            params: Its params.
            breach: The rule that it breaks in a conversation with a handshake; None: none.

        Returns:
            The rule that it breaks in either era; None: one of them allows it.
        """
        is_new = self._handshake.has_not_begun
        if method == LOG:
            if breach is not None and breach.rule == "OWN-014":
                return breach
            if self._log_levels.permit(params["level"]) or not self._core.client.is_complete:
                return None
            if is_new and self._core.modern.is_served:
                text = f"a log message of level {params['level']}, which no open request wants"
                return Breach("LOG-007", text)
            return breach
        if breach is None:
            return None
        other = self._judge_modern_notification(sender, method, params)
        return other if other is None or (is_new and self._core.modern.n_requests) else breach

    def _judge_modern_notification(
        self, sender: SideHistory, method: str, params: JSONObject
    ) -> Breach | None:
        if sender.side is Side.SERVER and method in FILTERS:
            return Breach("SUBS-009", f"{method} names no subscription")
        modern = self._core.modern
        spec = modern.dialect.notifications[sender.side].get(method)
        breach = judge_notification(
            modern.conversation, sender.side, method, spec, params, self._core.checks_shape
        )
        if breach is not None and breach.rule == "OWN-020":
            if method == STATUS and modern.task_methods:
                return Breach("XTASK-133", f"{method} is one of 2025-11-25")
            if modern.has_extensions:
                return None  # an extension may define it
        return breach


def is_modern_request(sender: SideHistory, method: str, meta: object) -> bool:
    """Whether a request declares revision and capabilities itself, instead of by a handshake.

    `initialize` belongs to the handshake, whatever else it contains.
    """
    if sender.side is not Side.CLIENT or method == "initialize":
        return False
    return method == _DISCOVER or (is_object(meta) and PROTOCOL_VERSION in meta)


def _is_modern_error(code: int, data: object) -> bool:
    """Whether an error can only be one of 2026-07-28."""
    if not is_object(data):
        return False
    if code == _MISSING_CAPABILITY:
        return "requiredCapabilities" in data
    return code == _UNSUPPORTED_VERSION and ("supported" in data or "requested" in data)
