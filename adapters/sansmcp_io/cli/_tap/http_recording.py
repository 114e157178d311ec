"""Judges, shows and records the HTTP exchanges that pass `tap URL`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from sansmcp import Side
from sansmcp.observer import HTTPObserver

from .._output.visible import shortened, visible
from . import http_captures
from .findings import Findings
from .http_texts import Pairs, Text, Texts, fields_of
from .recording import drain
from .trace import MARGIN, trace

_MOST_TARGET = 100


@attrs.define
class _Passing:
    """An open exchange, with the readers of its bodies if it is for the endpoint."""

    is_ours: bool
    request: Texts | None = None
    response: Texts | None = None


class HTTPRecorder:
    """Gives the parts of exchanges to the observer, the trace and the capture.

    Parts come in the order in which they pass, with times in seconds since the start. A replay of
    the capture has the same findings.

    Args:
        url: The endpoint.
        show: Takes lines of the trace; None: there is none.
        keep: Takes lines of the capture; None: there is none.
    """

    def __init__(
        self,
        url: str,
        show: Callable[[str], object] | None,
        keep: Callable[[bytes], object] | None,
    ) -> None:
        self._observer = HTTPObserver(url)
        self._findings = Findings()
        self._show = show
        self._keep = keep
        self._count = 0
        self._passing: dict[int, _Passing] = {}

    def began(self, method: str, target: str, headers: Pairs, time: float) -> int:
        """A request begins; returns the number of its exchange."""
        self._count += 1
        exchange = self._count
        if self._keep is not None:
            self._keep(http_captures.began(exchange, method, target, headers, time))
        passing = self._passing[exchange] = _Passing(self._observer.is_for_endpoint(target))
        if passing.is_ours:
            passing.request = Texts(fields_of(headers), is_request=True)
        self._observer.receive_request_head(exchange, method, target, headers, now=time)
        self._head(">", exchange, f"{method} {shortened(target, _MOST_TARGET)}", time)
        self._tell(time)
        return exchange

    def answered(self, exchange: int, status: int, headers: Pairs, time: float) -> None:
        """A response begins."""
        fields = fields_of(headers)
        if self._keep is not None:
            self._keep(http_captures.answered(exchange, status, headers, time))
        passing = self._passing[exchange]
        self._observer.receive_response_head(exchange, status, headers, now=time)
        self._head("<", exchange, f"{status} {fields.get('content-type', '')}".rstrip(), time)
        self._tell(time)
        if passing.is_ours:
            passing.response = texts = Texts(fields, is_request=False)
            if texts.unread and "content-encoding" in fields and self._show is not None:
                self._show(f"{MARGIN} ? its body is not read: {visible(texts.unread)}")

    def sent(self, exchange: int, side: Side, data: bytes, time: float) -> None:
        """A piece of a body."""
        texts = self._texts(exchange, side)
        if texts is not None:
            for text in texts.feed(data):
                self._see(exchange, side, text, time)

    def complete(self, exchange: int, side: Side, time: float) -> None:
        """A request or a response is complete."""
        texts = self._texts(exchange, side)
        if texts is not None:
            for text in texts.end():
                self._see(exchange, side, text, time)
        if side is Side.SERVER:
            self._ended(exchange, time, None)

    def broken_off(self, exchange: int, by: Side, time: float) -> None:
        """A side broke off an exchange."""
        self._ended(exchange, time, by)
        if self._show is not None:
            self._show(f"{time:9.3f} * the {by.name.lower()} broke off ({exchange})")

    def close(self, time: float) -> Iterator[str]:
        """End the recording; returns the lines of the summary."""
        self._observer.close(now=time)
        self._tell(time)
        exchanges = f"{self._count} {'exchange' if self._count == 1 else 'exchanges'}"
        yield f"{exchanges} in {time:.1f} s"
        yield from self._findings.lines()

    def _texts(self, exchange: int, side: Side) -> Texts | None:
        """The reader of a body; None: the body is not read."""
        passing = self._passing[exchange]
        return passing.request if side is Side.CLIENT else passing.response

    def _see(self, exchange: int, side: Side, text: Text, time: float) -> None:
        if self._keep is not None:
            self._keep(http_captures.sent(side, exchange, text, time))
        give(self._observer, exchange, side, text, time)
        self._tell(time)

    def _ended(self, exchange: int, time: float, by: Side | None) -> None:
        del self._passing[exchange]
        if self._keep is not None:
            self._keep(http_captures.ended(exchange, time, by))
        end(self._observer, exchange, by, time)
        self._tell(time)

    def _head(self, arrow: str, exchange: int, text: str, time: float) -> None:
        if self._show is not None:
            number = self._observer.messages
            self._show(f"{time:9.3f} {arrow} #{number} ({exchange}) {visible(text)}")

    def _tell(self, time: float) -> None:
        events = drain(self._observer)
        for event in events:
            self._findings.add(event)
        if self._show is not None:
            for line in trace(events, time):
                self._show(line)


def give(observer: HTTPObserver, exchange: int, side: Side, text: Text, time: float) -> None:
    """Give a text that a side has sent to an observer."""
    if side is Side.CLIENT:
        observer.receive_request_body(exchange, text.data, now=time)
    elif text.event is None:
        observer.receive_response_body(exchange, text.data, now=time)
    else:
        observer.receive_response_event(exchange, text.data, type=text.event, id=text.id, now=time)


def end(observer: HTTPObserver, exchange: int, by: Side | None, time: float) -> None:
    """End an exchange of an observer; `by` is the side that broke it off, None if complete."""
    if by is None:
        observer.receive_end(exchange, now=time)
    else:
        observer.receive_disconnect(exchange, by, now=time)
