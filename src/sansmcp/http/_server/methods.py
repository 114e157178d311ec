"""Which part serves a request: POST, GET, DELETE and OPTIONS.

GET opens a stream of a session or resumes one, DELETE ends a session, and OPTIONS says what is
allowed. POST has a module of its own.

Source: MCP 2025-11-25, basic/transports.
"""

from __future__ import annotations

from ..._connection.input_required.request_state import check_principal_key
from ..._spec.errors import ErrorCode, LocalProtocolError
from .core import ServerEndpointCore, Service
from .events import SessionEnd
from .exchange import ServerExchangeCore
from .head import CLOSING, RequestHeadJudge
from .post import PostReceiver
from .session_store import SessionStore
from .streams import UNKNOWN_EVENT


class Methods:
    """Serves requests whose bodies are complete, each by its method.

    Args:
        core: What all parts of the endpoint share.
        service: What the endpoint serves.
        store: The sessions; None: there are none, and no GET or DELETE is served.
        heads: The judge of heads, which has refused all other methods.
        post: The part that serves POST.
    """

    __slots__ = ("_core", "_heads", "_post", "_service", "_store")

    def __init__(
        self,
        core: ServerEndpointCore,
        service: Service,
        store: SessionStore | None,
        heads: RequestHeadJudge,
        post: PostReceiver,
    ) -> None:
        self._core = core
        self._service = service
        self._store = store
        self._heads = heads
        self._post = post

    def receive(self, exchange: ServerExchangeCore, body: bytes | bytearray) -> None:
        """Serve a request whose body is complete.

        Raises:
            LocalProtocolError: A state could not be sealed for the principal of a POST. The request
                was answered with 500.
        """
        if self._core.closing:
            exchange.refuse(503, CLOSING)
        elif exchange.method == "POST":
            if exchange.principal is not None or exchange.principal_key is not None:
                self._check_principal_key(exchange)
            self._post.receive(exchange, body)
        elif exchange.method == "GET":
            self._receive_get(exchange)
        elif exchange.method == "DELETE":
            self._receive_delete(exchange)
        else:
            exchange.answer(204, b"", self._heads.preflight(exchange))

    def _check_principal_key(self, exchange: ServerExchangeCore) -> None:
        core = self._core
        try:
            check_principal_key(exchange.principal, exchange.principal_key, core.config)
        except LocalProtocolError:
            text = "the server is not set up to seal the state of this user"
            exchange.answer(500, core.error_body(text, ErrorCode.INTERNAL_ERROR))
            core.settle()
            raise

    def _receive_get(self, exchange: ServerExchangeCore) -> None:
        """Open a stream, or resume one.

        Keeps HTTP-022.
        """
        store, old_paths = self._store, self._service.old_paths
        assert store is not None  # else there is no GET
        if old_paths is not None and exchange.path == old_paths.stream:
            if store.asks_opening:
                store.ask_to_open(exchange, None, None)
            else:
                store.open_old(exchange)
            return
        if not self._heads.judge_version(exchange, None):
            return
        transport = store.find(exchange, None)
        if transport is None:
            return
        last = exchange.fields.get(b"last-event-id")
        if not last:
            transport.streams.open(exchange)
        elif not transport.streams.resume(exchange, last):
            exchange.refuse(400, UNKNOWN_EVENT)
        transport.release_changes()
        transport.core.settle()

    def _receive_delete(self, exchange: ServerExchangeCore) -> None:
        """End the session that the client names."""
        store = self._store
        assert store is not None  # else there is no DELETE
        if not self._heads.judge_version(exchange, None):
            return
        transport = store.find(exchange, None)
        if transport is not None:
            transport.end_session(SessionEnd.DELETED)
            exchange.answer(204, b"")
