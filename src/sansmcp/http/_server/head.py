"""What the head of a request decides: whether it is served, in which form, at which revision.

Source: MCP 2025-11-25, basic/transports, Security Warning and Protocol Version Header; RFC 9110,
sections 8.3 and 12.5.1.
"""

from __future__ import annotations

from typing import Any, Final

from ..._rules.sending import Breach
from ..._spec.errors import ErrorCode
from .._headers import MAX_FIELDS, Fields, GivenHeaders, Headers, Text, text_of
from .core import ASSUMED, VERSION_FIELD, ServerEndpointCore, Service
from .exchange import Accepted, ServerExchangeCore, plain_response
from .origins import Origins

CLOSING: Final = Breach("OWN-021", "the server is closing", ErrorCode.INTERNAL_ERROR)
"""Why nothing is served any more. The request itself breaks no rule."""
_METHODS: Final = (b"GET", b"POST", b"DELETE", b"OPTIONS")
_METHODS_WITHOUT_DELETE: Final = (b"GET", b"POST", b"OPTIONS")
_METHODS_WITHOUT_GET: Final = (b"POST", b"DELETE", b"OPTIONS")
_POST_ONLY: Final = (b"POST", b"OPTIONS")
_OLD_STREAM_METHODS: Final = (b"GET", b"OPTIONS")
_KNOWN_HEADS: Final = 256
_KNOWN_HEAD_BYTES: Final = 1024


class RequestHeadJudge:
    """Judges heads, and remembers its judgements: clients send the same head again and again.

    Args:
        core: What all parts of the endpoint share.
        service: What the endpoint serves.
        origins: Which hosts and origins are served.
    """

    __slots__ = ("_core", "_known", "_length_digits", "_origins", "_service")

    def __init__(self, core: ServerEndpointCore, service: Service, origins: Origins) -> None:
        self._core = core
        self._service = service
        self._known: dict[tuple[Text | None, ...], tuple[Accepted, bool, Headers]] = {}
        self._length_digits = len(str(core.config.max_message_bytes))
        self._origins = origins

    def forget(self) -> None:
        """Forget all judgements: the endpoint closes, and serves no head any more."""
        self._known.clear()

    def judge(self, exchange: ServerExchangeCore) -> None:
        """Refuse a request that its head forbids; else note which forms the client takes."""
        fields, method = exchange.fields, exchange.method
        raw = fields.raw
        look = raw.get
        key = (
            method,
            look(b"host"),
            look(b"origin"),
            look(b"accept"),
            look(b"content-type"),
            look(b"content-encoding"),
        )
        known = self._known.get(key)
        if known is not None and not fields.repeated and not fields.too_many:
            exchange.accepted, exchange.json_first, exchange.common = known
        else:
            self._judge_new(exchange)
            if self._is_worth_remembering(exchange, key):
                if len(self._known) >= _KNOWN_HEADS:
                    self._known.clear()
                self._known[key] = exchange.accepted, exchange.json_first, exchange.common
        length = look(b"content-length")
        if length is not None and len(length) >= self._length_digits and not exchange.over:
            self._judge_length(exchange, fields.get(b"content-length") or "")

    def _is_worth_remembering(
        self, exchange: ServerExchangeCore, key: tuple[Text | None, ...]
    ) -> bool:
        """Whether a head is served, is not long, and is judged without its path."""
        return (
            exchange.method == "POST"
            and not exchange.over
            and self._service.old_paths is None
            and sum(len(part or "") for part in key) < _KNOWN_HEAD_BYTES
        )

    def _judge_length(self, exchange: ServerExchangeCore, length: str) -> None:
        limit, digits = self._core.config.max_message_bytes, length.lstrip("0")
        if length.isdecimal() and (len(digits) > 18 or int(digits or "0") > limit):
            exchange.refuse(413, Breach("OWN-001", f"the body is longer than {limit} bytes"))

    def _judge_new(self, exchange: ServerExchangeCore) -> None:
        fields = exchange.fields
        exchange.accepted = takes = _accepted(fields.get(b"accept"))
        exchange.json_first = takes.json and not (takes.stream and self._service.answers == "sse")
        exchange.common = self._origins.cors(fields)
        if fields.too_many:
            exchange.refuse(431, Breach("OWN-037", f"there are more than {MAX_FIELDS} headers"))
            return
        for name in (b"host", b"origin", b"content-type", b"content-length"):
            if name in fields.repeated:
                exchange.refuse(400, Breach("OWN-037", f"{text_of(name)} came more than once"))
                return
        if (why := self._origins.refusal(fields)) is not None:
            exchange.refuse(403, Breach("HTTP-001", why))
            return
        methods = self.methods_at(exchange)
        if exchange.method.encode("latin-1", "replace") not in methods:
            breach = Breach("OWN-037", f"{exchange.method[:20]!r} is not served here")
            allowed = (b"allow", b", ".join(methods))
            # Clients are free to ask for a stream, and to end a session: 405 only says that they
            # cannot.
            is_breach = exchange.method not in ("GET", "DELETE")
            exchange.refuse(405, breach, more=(allowed,), is_reported=is_breach)
        elif self._core.closing:
            exchange.refuse(503, CLOSING)
        elif exchange.method == "POST":
            self._judge_post(exchange)
        elif exchange.method == "GET" and not exchange.accepted.stream:
            text = "Accept does not take text/event-stream"
            exchange.refuse(406, Breach("HTTP-021", text))

    def _judge_post(self, exchange: ServerExchangeCore) -> None:
        """Refuse a POST whose head shows that its body is no message that can be read."""
        fields = exchange.fields
        kind = fields.get(b"content-type")
        if kind is None or not _is_json(kind):
            text = "the body must be application/json in UTF-8, and Content-Type say so"
            exchange.refuse(415, Breach("OWN-037", text))
        elif (fields.get(b"content-encoding") or "identity").lower() != "identity":
            exchange.refuse(415, Breach("OWN-037", "no Content-Encoding is taken"))
        elif not exchange.accepted.json and not exchange.accepted.stream:
            text = "Accept takes neither application/json nor text/event-stream"
            exchange.refuse(406, Breach("HTTP-009", text))

    def refusal(
        self, status: int, text: str, method: Text, headers: GivenHeaders | None
    ) -> tuple[int, Headers, bytes]:
        """The response for a request that the transport refuses before there is an exchange."""
        if headers is None:
            return plain_response(status, text, self._origins.cors_of_unread())
        fields = Fields(headers)
        common = self._origins.cors(fields)
        if text_of(method) == "OPTIONS" and self._origins.refusal(fields) is None:
            preflight = self._origins.preflight(fields, b", ".join(_METHODS))
            if preflight:
                return 204, preflight + common, b""
        return plain_response(status, text, common)

    def preflight(self, exchange: ServerExchangeCore) -> Headers:
        """The headers of the response to OPTIONS: which methods there are, and CORS."""
        methods = b", ".join(self.methods_at(exchange))
        return ((b"allow", methods), *self._origins.preflight(exchange.fields, methods))

    def methods_at(self, exchange: ServerExchangeCore) -> tuple[bytes, ...]:
        """The methods that the target of a request allows."""
        sessions, old_paths = self._service.sessions, self._service.old_paths
        if sessions is None:
            return _POST_ONLY
        if old_paths is not None:
            path = exchange.path
            if path == old_paths.stream:
                return _OLD_STREAM_METHODS
            if path == old_paths.post:
                return _POST_ONLY
        can_end = sessions.allow_delete
        if not self._service.streams:
            return _METHODS_WITHOUT_GET if can_end else _POST_ONLY
        return _METHODS if can_end else _METHODS_WITHOUT_DELETE

    # ------------------------------------------------------------------------------- revisions

    def judge_version(self, exchange: ServerExchangeCore, id: Any) -> bool:
        """Whether a request of a legacy client names a revision that is served, or none.

        If not, the exchange is refused; `id` is that of the request, or None.

        Keeps COMPAT-014.
        """
        fields, service = exchange.fields, self._service
        revision = fields.get(VERSION_FIELD)
        if VERSION_FIELD in fields.repeated:
            exchange.refuse(400, Breach("HDR-004", "MCP-Protocol-Version came more than once"), id)
        elif revision is None:
            assumed = ASSUMED.decode()
            if service.sessions is not None or assumed in service.legacy_revisions:
                return True
            text = (
                f"MCP-Protocol-Version is missing, and {assumed}, which that means, is not served"
            )
            exchange.refuse(400, Breach("HDR-003", text), id)
        elif revision in service.legacy_revisions:
            return True
        elif revision in service.modern_revisions:
            if exchange.method == "POST":
                # A batch, or an initialize that is no request.
                text = f"there are neither batches nor handshakes in revision {revision}"
                exchange.refuse(400, Breach("BATCH-008", text))
            else:
                text = f"there is no {exchange.method} in revision {revision}"
                more = ((b"allow", b"POST, OPTIONS"),)
                exchange.refuse(405, Breach("COMPAT-011", text), more=more)
        else:
            exchange.refuse(400, self.unsupported(revision), id)
        return False

    def unsupported(self, revision: str) -> Breach:
        """The error for a revision that is not served.

        A server of legacy revisions only has no code for it: with that of a modern server it would
        make clients of both eras believe that it is one.

        Keeps HTTP-024.
        """
        revisions = self._service.revisions
        text = f"revision {revision[:80]!r} is not served"
        if not self._service.modern_revisions:
            return Breach("HDR-004", f"{text}; this server speaks {', '.join(revisions)}")
        return Breach(
            "VER-008",
            text,
            ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
            data={"supported": list(reversed(revisions)), "requested": revision[:80]},
        )


# ---------------------------------------------------------------------------- forms of bodies


_EVERYTHING: Final = Accepted(json=True, stream=True)


def _parts(text: str) -> list[str]:
    return [part.strip(" \t") for part in text.split(";")]


def _quality(parameters: list[str]) -> bool:
    """Whether the weight of a range is above zero; a weight that cannot be read counts as 1."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip(" \t").lower() == "q":
            try:
                return float(value) > 0
            except ValueError:
                return True
    return True


def _accepted(accept: str | None) -> Accepted:
    """The forms that an `Accept` header takes; no header takes both. The closest range decides.

    Keeps HTTP-018.
    """
    if not accept:
        return _EVERYTHING
    ranges: dict[str, bool] = {}
    for part in accept.split(","):
        kind, *parameters = _parts(part)
        if kind:
            ranges[kind.lower()] = _quality(parameters)

    def takes(kind: str) -> bool:
        everything = ranges.get("*/*", False)
        return ranges.get(kind, ranges.get(kind.partition("/")[0] + "/*", everything))

    return Accepted(json=takes("application/json"), stream=takes("text/event-stream"))


def _is_json(content_type: str) -> bool:
    """Whether a body of this type is JSON in UTF-8. Parameters may follow, in any case."""
    kind, *parameters = _parts(content_type)
    if kind.lower() != "application/json":
        return False
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip(" \t").lower() == "charset":
            return value.strip(' \t"').lower() in ("utf-8", "utf8", "us-ascii")
    return True
