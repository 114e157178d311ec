"""What a server asks about a request of ours, in the shape of a call; no loop is involved."""

from __future__ import annotations

from sansmcp import IncomingRequest, JSONObject, OutgoingRequest, ServerConnection

from .call import CallBase, ClientSide


class Question(CallBase):
    """To be mixed into the `Call` of a loop: it is handled like a request of the server.

    Whoever makes one sets `_question`, `_about` and `_asker`, besides what the loop needs.
    """

    _question: JSONObject
    _about: OutgoingRequest
    _asker: ClientSide | ServerConnection

    @property
    def method(self) -> str:
        """The method of the question."""
        method: str = self._question["method"]
        return method

    @property
    def params(self) -> JSONObject:
        """Its params, `{}` where there are none."""
        params: JSONObject = self._question.get("params") or {}
        return params

    @property
    def revision(self) -> str | None:
        """The revision of the conversation."""
        return self._asker.revision

    @property
    def capabilities(self) -> JSONObject:
        """The capabilities of the server."""
        return self._asker.peer.capabilities

    @property
    def principal(self) -> object:
        """Who the server is, as the transport found out; None where it did not."""
        return self._asker.peer.principal

    def progress(
        self, progress: float, *, total: float | None = None, message: str | None = None
    ) -> bool:
        """Nobody waits for it: a question is no request."""
        return False

    @property
    def _serving(self) -> IncomingRequest | None:
        return None

    def __repr__(self) -> str:
        return f"<QuestionCall {self.method} about {self._about!r}>"
