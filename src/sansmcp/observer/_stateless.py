"""Requests that speak for themselves: what they declare, what answers them, what belongs to them.

Which era a message belongs to is told message by message. A request is one of 2026-07-28 if its
`_meta` says so, a notification or an answer if the request does that it names. What names none is
accused only where no era allows it. That a client speaks 2026-07-28 does not bind a server which
has not shown, by what it sends, that it speaks it, too: it may be an older one that reads no
`_meta` (`_serves_modern`).

Source: MCP 2026-07-28, basic/index; basic/versioning.
"""

from __future__ import annotations

from typing import Any, Final

from .._connection.used_ids import UsedIds
from .._rules.messages import (
    NO_RESULT_TYPE,
    judge_caching_hints,
    judge_capabilities,
    judge_reserved_code,
)
from .._rules.request_meta import OPTIONAL, PROTOCOL_VERSION, SERVER_INFO, read_envelope
from .._rules.sending import (
    FILTERS,
    Breach,
    judge_notification,
    judge_phase,
    judge_request,
    misshapen_result,
)
from .._rules.state_tables import Phase
from .._spec.methods import META, QUESTIONS
from .._spec.modern_methods import MODERN_REVISION
from .._spec.registry import LOG_LEVELS, MODERN_REVISIONS
from .._wire.values import MISSING, JSONObject, Side, is_object
from ._events import BlindCause, DiscoverySeen
from ._history import Asked, Half
from ._input_required import RoundWatching
from ._modern_history import Listening, Terms
from ._subscriptions import LOG

_DISCOVER: Final = "server/discover"
_LISTEN: Final = "subscriptions/listen"
_MISSING_CAPABILITY: Final = -32021
_UNSUPPORTED_VERSION: Final = -32022
_RESOURCE_NOT_FOUND: Final = -32002
_ERA: Final = (
    "requests of a revision that is not known here, and what belongs to them, are not judged"
)

# What a client breaks, by the rule that has the server refuse it.
_BROKEN_BY_CLIENT: Final = {"META-010": "META-009", "LOG-010": "LOG-002"}


class ModernWatching(RoundWatching):
    """Judges requests of 2026-07-28, and all that follows from them."""

    __slots__ = ()

    # -------------------------------------------------------------------------------- requests

    @staticmethod
    def _is_modern(half: Half, method: str, meta: object) -> bool:
        """Whether a request says for itself what a handshake says for a connection.

        `initialize` is a handshake, whatever else it says.
        """
        if half.side is not Side.CLIENT or method == "initialize":
            return False
        return method == _DISCOVER or (is_object(meta) and PROTOCOL_VERSION in meta)

    def _see_modern(
        self, half: Half, asked: Asked, params: JSONObject, breach: Breach | None
    ) -> Breach | None:
        """Take such a request; `breach` is what is wrong with its own envelope of JSON-RPC."""
        asked.modern = True
        self._n_modern += 1
        if half.modern_ids is None:
            half.modern_ids = UsedIds(self._config.max_used_ids)
        half.modern_ids.add(asked.key)
        meta: Any = params.get("_meta")
        terms = self._terms_of(meta if is_object(meta) else {})
        if terms is None:
            asked.alien = True
            self._alien += 1
            self._blind(BlindCause.ERA, None, _ERA)
            return breach
        self._modern += 1
        if isinstance(terms, Breach):
            asked.due = terms.rule
            return breach or Breach(_BROKEN_BY_CLIENT[terms.rule], terms.text)
        asked.terms = terms
        for odd in terms.faults:
            self._accuse(half, odd, asked.method, asked.id)
        self._extended = self._extended or terms.extends
        if terms.severity is not None:
            self._log_wishes.asked(terms.severity)
        method = asked.method
        asked.spec = spec = self._dialect.requests[Side.CLIENT].get(method)
        self._without_nulls(half, OPTIONAL, meta, method, asked.id)
        optional = META if spec is None else spec.params_optional
        params = self._without_nulls(half, optional, params, method, asked.id)
        if breach is None:
            breach = judge_request(self._stateless, Side.CLIENT, method, spec, params, self._shape)
            if breach is not None and breach.rule == "OWN-020" and terms.extends:
                breach = None  # the extension may define it
        if spec is None or spec.asks:
            fault = self._take_call(half, asked, params)
        elif method == _LISTEN:
            fault = self._listen(asked, params)
        else:
            fault = None
        return breach or fault

    def _terms_of(self, meta: JSONObject) -> Terms | Breach | None:
        """What a request declares, what is wrong with that, or None for an unknown revision."""
        envelope = self._envelope
        try:
            if envelope is not None and self._terms is not None and envelope.says(meta):
                return self._terms
            read = read_envelope(meta, MODERN_REVISIONS, self._shape)
        except RecursionError:
            return None
        if isinstance(read, Breach):
            return read if read.rule in _BROKEN_BY_CLIENT else None
        terms = Terms(
            gates=self._registry.open_gates(read.capabilities),
            severity=None if read.level is None else LOG_LEVELS[read.level],
            extends=bool(read.capabilities.get("extensions")),
            faults=tuple(judge_capabilities(self._registry, read.version, read.capabilities)),
        )
        self._envelope, self._terms = read, terms
        return terms

    def _judge_bare(self, half: Half, asked: Asked) -> Breach | None:
        """A request without an envelope, where the new era was spoken and no handshake begun."""
        if self._alien:
            return None
        if half.side is Side.SERVER and self._serves_modern:
            asked.due = "STATE-007"
            return Breach("STATE-006", f"the server sent the request {asked.method[:80]}")
        breach = judge_phase(Phase.NEW, half.side, asked.method)
        if breach is None or not self._modern:
            return breach
        if half.side is Side.SERVER:
            return Breach("STATE-006", f"the server sent the request {asked.method[:80]}")
        return Breach("META-009", f"{asked.method[:80]} lacks {PROTOCOL_VERSION} in _meta")

    # --------------------------------------------------------------------------------- answers

    def _see_result(self, half: Half, asked: Asked, result: JSONObject) -> Breach | None:
        """A request that speaks for itself is answered with a result."""
        if asked.alien:
            return None
        if None in result.values():
            optional = META if asked.spec is None else asked.spec.result_optional
            optional = (*optional, *QUESTIONS)
            result = self._without_nulls(half, optional, result, asked.method, asked.id)
        kind: Any = result.get("resultType", MISSING)
        if kind == "complete" or kind == "input_required":
            self._serves_modern = True
        if asked.method == _DISCOVER:
            self._discovered(half, result)
        terms = asked.terms
        self._answered(terms)
        if not self._serves_modern:
            return None
        if terms is None:
            return self._judge_due(asked)
        fault = None
        if isinstance(asked.subject, Listening):
            fault = self._end_listening(half, asked, asked.subject, result)
        if kind == "input_required":
            return self._questioned(half, asked, terms, result)
        if kind == "complete":
            return self._judge_complete(asked, result) or fault
        if kind is MISSING:
            return NO_RESULT_TYPE
        if isinstance(kind, str) and (terms.extends or kind in self._registry.result_types):
            return None  # the extension may define it
        return Breach("JSON-022", f"resultType {kind!r:.80} is not known")

    def _judge_complete(self, asked: Asked, result: JSONObject) -> Breach | None:
        spec = asked.spec
        if spec is None:
            return None
        if self._shape and (wrong := misshapen_result(spec, False, result)) is not None:
            return Breach("OWN-014", f"result of {asked.method}: {wrong}")
        return judge_caching_hints(result) if spec.cacheable else None

    def _judge_due(self, asked: Asked) -> Breach | None:
        """A request that was to be refused is answered with a result."""
        if self._conversation.phase is not Phase.NEW:
            return None  # it may be served as the request of a conversation with a handshake
        return Breach(str(asked.due), f"{asked.method} is served, and its _meta is not a good one")

    def _see_error(self, half: Half, asked: Asked, code: int, data: object) -> Breach | None:
        """A request that speaks for itself is answered with an error."""
        if asked.alien:
            self._alien -= 1
            return None
        self._modern -= 1
        self._answered(asked.terms)
        if isinstance(asked.subject, Listening):
            fault = self._end_listening(half, asked, asked.subject, None)
            if fault is not None:
                return fault
        if not self._serves_modern and not _is_modern_error(code, data):
            return None
        if code == _RESOURCE_NOT_FOUND:
            return Breach("ERR-008", f"this revision does not use the code {code}")
        return judge_reserved_code(code, data)

    def _answered(self, terms: Terms | None) -> None:
        if terms is not None and terms.severity is not None:
            self._log_wishes.answered(terms.severity)

    def _discovered(self, half: Half, result: JSONObject) -> None:
        versions: Any = result.get("supportedVersions")
        capabilities: Any = result.get("capabilities")
        if versions.__class__ is not list or not is_object(capabilities):
            return
        meta: Any = result.get("_meta")
        info: Any = meta.get(SERVER_INFO) if is_object(meta) else None
        revisions = tuple(version for version in versions if isinstance(version, str))
        if MODERN_REVISION in revisions:
            self._serves_modern = True
        self._events.append(
            DiscoverySeen(
                revisions=revisions,
                server_info=info if is_object(info) else None,
                server_capabilities=capabilities,
                number=self._number,
                time=self._now,
            )
        )
        if self._serves_modern:
            for breach in judge_capabilities(self._registry, MODERN_REVISION, capabilities):
                self._accuse(half, breach, _DISCOVER)

    # --------------------------------------------------------------------------- notifications

    def _by_either_era(
        self, half: Half, method: str, params: JSONObject, breach: Breach | None
    ) -> Breach | None:
        """What is wrong with a notification that names no request.

        `breach` is what a conversation with a handshake makes of it.
        """
        is_new = self._conversation.phase is Phase.NEW
        if method == LOG:
            if breach is not None and breach.rule == "OWN-014":
                return breach
            if self._log_wishes.permit(params["level"]) or not self._halves[Side.CLIENT].whole:
                return None
            if is_new and self._serves_modern:
                text = f"a log message of level {params['level']}, which no open request wants"
                return Breach("LOG-007", text)
            return breach
        if breach is None:
            return None
        other = self._by_new_era(half, method, params)
        return other if other is None or (is_new and self._n_modern) else breach

    def _by_new_era(self, half: Half, method: str, params: JSONObject) -> Breach | None:
        if half.side is Side.SERVER and method in FILTERS:
            return Breach("SUBS-009", f"{method} names no subscription")
        spec = self._dialect.notifications[half.side].get(method)
        breach = judge_notification(self._stateless, half.side, method, spec, params, self._shape)
        if breach is not None and breach.rule == "OWN-020" and self._extended:
            return None  # an extension may define it
        return breach


def _is_modern_error(code: int, data: object) -> bool:
    """Whether an error can only be meant as one of 2026-07-28."""
    if not is_object(data):
        return False
    if code == _MISSING_CAPABILITY:
        return "requiredCapabilities" in data
    return code == _UNSUPPORTED_VERSION and ("supported" in data or "requested" in data)
