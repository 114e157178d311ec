"""What the head of a request decides: who is served, how, and in which form.

Source: MCP 2025-11-25, basic/transports, Security Warning; RFC 9110.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..._rules.sending import Breach
from .._headers import MAX_FIELDS, Fields, GivenHeaders, Headers, Text, text_of
from .exchange import CLOSING
from .negotiation import Accepted, accepted
from .origins import Origins
from .output import plain_response
from .post import judge_post_head

if TYPE_CHECKING:
    from .endpoint import ServerEndpoint
    from .exchange import ServerExchange

_METHODS: Final = (b"GET", b"POST", b"DELETE", b"OPTIONS")
_METHODS_WITHOUT_DELETE: Final = (b"GET", b"POST", b"OPTIONS")
_METHODS_WITHOUT_GET: Final = (b"POST", b"DELETE", b"OPTIONS")
_POST_ONLY: Final = (b"POST", b"OPTIONS")
_OLD_STREAM_METHODS: Final = (b"GET", b"OPTIONS")
_KNOWN_HEADS: Final = 256
_KNOWN_HEAD_BYTES: Final = 1024


class Heads:
    """Judges heads, and remembers what it has found: clients send the same one again and again."""

    __slots__ = ("_endpoint", "_known", "_length_digits", "origins")

    def __init__(self, endpoint: ServerEndpoint, origins: Origins) -> None:
        self._endpoint = endpoint
        self._known: dict[tuple[Text | None, ...], tuple[Accepted, bool, Headers]] = {}
        self._length_digits = len(str(endpoint._config.max_message_bytes))
        self.origins = origins

    def forget(self) -> None:
        """The endpoint closes: what was served is served no more."""
        self._known.clear()

    def judge(self, exchange: ServerExchange) -> None:
        """Refuse what the head alone forbids, or learn from it what the client takes."""
        fields, method = exchange._fields, exchange._method
        raw = fields.raw
        # Clients send the same fields again and again: what is decided once is looked up.
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
            exchange._accepted, exchange._json_first, exchange._common = known
        else:
            self._judge_new(exchange)
            if self._is_worth_remembering(exchange, key):
                if len(self._known) >= _KNOWN_HEADS:
                    self._known.clear()
                self._known[key] = exchange._accepted, exchange._json_first, exchange._common
        length = look(b"content-length")
        if length is not None and len(length) >= self._length_digits and not exchange._over:
            self._judge_length(exchange, fields.get(b"content-length") or "")

    def _is_worth_remembering(self, exchange: ServerExchange, key: tuple[Text | None, ...]) -> bool:
        """Only what is served, at an endpoint where the path decides nothing; and nothing long."""
        return (
            exchange._method == "POST"
            and not exchange._over
            and self._endpoint._old_post_path is None
            and sum(len(part or "") for part in key) < _KNOWN_HEAD_BYTES
        )

    def _judge_length(self, exchange: ServerExchange, length: str) -> None:
        limit, digits = self._endpoint._config.max_message_bytes, length.lstrip("0")
        if length.isdecimal() and (len(digits) > 18 or int(digits or "0") > limit):
            exchange._refuse(413, Breach("OWN-001", f"the body is longer than {limit} bytes"))

    def _judge_new(self, exchange: ServerExchange) -> None:
        fields = exchange._fields
        exchange._accepted = takes = accepted(fields.get(b"accept"))
        exchange._json_first = takes.json and not (
            takes.stream and self._endpoint._answers == "sse"
        )
        exchange._common = self.origins.cors(fields)
        if fields.too_many:
            exchange._refuse(431, Breach("OWN-037", f"there are more than {MAX_FIELDS} fields"))
            return
        for name in (b"host", b"origin", b"content-type", b"content-length"):
            if name in fields.repeated:
                exchange._refuse(400, Breach("OWN-037", f"{text_of(name)} came more than once"))
                return
        if (why := self.origins.refusal(fields)) is not None:
            exchange._refuse(403, Breach("HTTP-001", why))
            return
        methods = self.methods_at(exchange)
        if exchange._method.encode("latin-1", "replace") not in methods:
            breach = Breach("OWN-037", f"{exchange._method[:20]!r} is not served here")
            exchange._refuse(405, breach, more=((b"allow", b", ".join(methods)),))
        elif self._endpoint._closing:
            exchange._refuse(503, CLOSING)
        elif exchange._method == "POST":
            judge_post_head(exchange)
        elif exchange._method == "GET" and not exchange._accepted.stream:
            text = "Accept does not take text/event-stream"
            exchange._refuse(406, Breach("HTTP-021", text))

    def refusal(
        self, status: int, text: str, method: Text, headers: GivenHeaders | None
    ) -> tuple[int, Headers, bytes]:
        """The response by which the transport refuses what is no request of this endpoint."""
        if headers is None:
            return plain_response(status, text, self.origins.cors_of_unread())
        fields = Fields(headers)
        common = self.origins.cors(fields)
        if text_of(method) == "OPTIONS" and self.origins.refusal(fields) is None:
            preflight = self.origins.preflight(fields, b", ".join(_METHODS))
            if preflight:
                return 204, preflight + common, b""
        return plain_response(status, text, common)

    def methods_at(self, exchange: ServerExchange) -> tuple[bytes, ...]:
        """What may be done with this target."""
        endpoint = self._endpoint
        table = endpoint._table
        if table is None:
            return _POST_ONLY
        if endpoint._old_post_path is not None:
            path = exchange.path
            if path == endpoint._old_stream_path:
                return _OLD_STREAM_METHODS
            if path == endpoint._old_post_path:
                return _POST_ONLY
        can_end = table.settings.allow_delete
        if not endpoint._serves_streams:
            return _METHODS_WITHOUT_GET if can_end else _POST_ONLY
        return _METHODS if can_end else _METHODS_WITHOUT_DELETE
