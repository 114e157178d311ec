"""Formats the reports of an observer as lines for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from sansmcp import (
    AnswerMatched,
    BlindSpot,
    CancellationMatched,
    MessageKind,
    MessageSeen,
    Observation,
    Side,
    StreamEnded,
    TaskSeen,
    TextSeen,
    ViolationSeen,
)

from .._output.visible import shortened, visible
from .._values import member

_EXCERPT: Final = 100
_ARROWS: Final = {Side.CLIENT: ">", Side.SERVER: "<"}
_ENDS: Final = {Side.CLIENT: "end of input", Side.SERVER: "end of output"}
MARGIN: Final = " " * 9
_SHOWN: Final = {
    MessageKind.REQUEST: "params",
    MessageKind.NOTIFICATION: "params",
    MessageKind.RESULT: "result",
    MessageKind.ERROR: "error",
}


_encode: Final = json.JSONEncoder(ensure_ascii=False).encode


def name_of(side: Side) -> str:
    """`client` or `server`."""
    return side.name.lower()


def violation(event: ViolationSeen, place: str = "") -> str:
    """A line with the rule, its level, the side that broke it, the place and the reason."""
    return f"{event.rule} {event.level} {name_of(event.side)}{place}: {visible(event.text)}"


def quote(event: ViolationSeen, text: TextSeen | None) -> str:
    """The text that has broken the rule, if it is this text, since the reason does not show it."""
    if text is None or text.number != event.number or not text.data:
        return ""
    return f": {_text_of(text)}"


def _text_of(event: TextSeen) -> str:
    return visible(shortened(event.data.decode("utf-8", "replace"), _EXCERPT)) or "(blank)"


def trace(events: Sequence[Observation], time: float) -> Iterator[str]:
    """The lines for a report at this time, in seconds since the start."""
    answers = {(e.number, e.index): e for e in events if isinstance(e, AnswerMatched)}
    for event in events:
        match event:
            case MessageSeen():
                answer = answers.get((event.number, event.index))
                place = _place(event.number, event.index)
                yield f"{time:9.3f} {_ARROWS[event.side]} {place} {_message(event, answer)}"
            case TextSeen():
                arrow = _ARROWS[event.side]
                yield f"{time:9.3f} {arrow} #{event.number} no message: {_text_of(event)}"
            case CancellationMatched() if not event.answered:
                what = f"{event.method} {_id(event.id)} of #{event.request_number}"
                yield f"{MARGIN} - it cancels {visible(what)}"
            case TaskSeen():
                what = f"task {excerpt(event.task_id)} of the {name_of(event.side)}"
                yield f"{MARGIN} - {visible(what)}: {event.status}"
            case ViolationSeen():
                yield f"{MARGIN} ! {violation(event)}"
            case BlindSpot():
                yield f"{MARGIN} ? {visible(event.text)}"
            case StreamEnded():
                yield f"{time:9.3f} {_ARROWS[event.side]} {_ENDS[event.side]}"
            case _:
                pass


def _place(number: int, index: int | None) -> str:
    return f"#{number}" if index is None else f"#{number}[{index}]"


def _message(event: MessageSeen, answer: AnswerMatched | None) -> str:
    shown = event.message
    if event.kind in _SHOWN:
        shown = member(shown, _SHOWN[event.kind])
    content = "" if shown is None else excerpt(shown)
    words = [*_words(event), content]
    if answer is not None and answer.seconds is not None:
        words.insert(-1, f"after {answer.seconds:.3f} s")
    return visible(" ".join(word for word in words if word))


def _words(event: MessageSeen) -> tuple[str, ...]:
    name = event.method or ""
    match event.kind:
        case MessageKind.REQUEST:
            return name, _id(event.id)
        case MessageKind.NOTIFICATION:
            return (name,)
        case MessageKind.RESULT:
            return "result", f"of {name}" if name else "", _id(event.id)
        case MessageKind.ERROR:
            return "error", f"for {name}" if name else "", _id(event.id)
        case MessageKind.INVALID:
            return ("invalid",)


def _id(id: object) -> str:
    return "" if id is None else f"id {excerpt(id)}"


def excerpt(value: object) -> str:
    """The beginning of a value as JSON. The rest is not formatted, however large it is."""
    text = ""
    for piece in _pieces(value):
        text += piece
        if len(text) > _EXCERPT:
            break
    return shortened(text, _EXCERPT)


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        gap = "{"
        for name, item in value.items():  # pyright: ignore[reportUnknownVariableType]  # JSON
            yield gap
            yield from _pieces(name)
            yield ":"
            yield from _pieces(item)
            gap = ","
        yield "{}" if gap == "{" else "}"
    elif isinstance(value, list):
        gap = "["
        for item in value:  # pyright: ignore[reportUnknownVariableType]  # JSON
            yield gap
            yield from _pieces(item)
            gap = ","
        yield "[]" if gap == "[" else "]"
    elif isinstance(value, str):
        yield _encode(value[: _EXCERPT + 1])
    else:
        yield _encode(value)
