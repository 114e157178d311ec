"""Runs one handler and one user on connections of any era.

The handler gets what it may know of a request, and returns a result or questions. The user gets one
question after the other. A driver carries the messages between them: there is one for two
connections in memory, and one for the trio adapter.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeAlias

import attrs
import trio
from trio.testing import MockClock

from sansmcp import (
    ClientConnection,
    ErrorReceived,
    Event,
    IncomingRequest,
    InputRequired,
    JSONObject,
    NotificationReceived,
    OutgoingRequest,
    ProgressReceived,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    Side,
)
from sansmcp.testing import CLIENT_INFO, SERVER_CAPABILITIES, SERVER_INFO, Pair
from sansmcp_io.trio import Call, Client, PeerError, RequireInput, ServerCall
from tests.support.adapters.trio_talk import talking


@attrs.frozen
class Questions:
    """What a handler returns when it has questions."""

    asked: Mapping[str, JSONObject] = attrs.field(factory=dict[str, JSONObject])
    state: str | None = None


@attrs.frozen
class Asked:
    """The part of a request that a handler sees, with any driver."""

    params: JSONObject
    responses: JSONObject
    state: str | None
    progress: Callable[[float], bool]
    log: Callable[[str, str], bool]


Handler: TypeAlias = Callable[[Asked], JSONObject | Questions]
Person: TypeAlias = Callable[[str, JSONObject], JSONObject]
"""Answers one question: takes its method and its params, and returns its result."""


@attrs.define
class Outcome:
    """What the caller received.

    Attributes:
        result: The result; None for an error.
        code: The code of the error; None for a result.
        progress: The values of the progress notifications.
        logs: The log messages for the request.
        runs: How often the handler was called.
    """

    result: JSONObject | None = None
    code: int | None = None
    progress: list[float] = attrs.field(factory=list[float])
    logs: list[str] = attrs.field(factory=list[str])
    runs: int = 0

    def note(self, method: str, params: JSONObject) -> None:
        """Record a notification."""
        if method == "notifications/message":
            self.logs.append(params["data"])


@attrs.frozen
class Setting:
    """The handler, the user and the request of a conversation."""

    handler: Handler
    person: Person
    capabilities: JSONObject
    method: str
    params: JSONObject
    log_level: str | None


Driver: TypeAlias = Callable[[str, Setting], Outcome]
"""Holds the conversation at a revision, and returns its outcome."""

_NEWER: Final = frozenset({"_meta", "cacheScope", "resultType", "ttlMs"})


def _bare(result: JSONObject) -> JSONObject:
    """A result without the members that only the modern era has."""
    return {name: value for name, value in result.items() if name not in _NEWER}


# ----------------------------------------------------------------------------------- by hand


@attrs.define
class _ByHand:
    pair: Pair
    setting: Setting
    outcome: Outcome = attrs.field(factory=Outcome)
    call: OutgoingRequest | None = None

    def run(self) -> Outcome:
        setting, client = self.setting, self.pair.client
        if setting.log_level is not None and client.revision != "2026-07-28":
            level: Any = {"level": setting.log_level}
            client.send_request("logging/setLevel", level)
            self.pair.deliver()
            self.pair.clear_events()
        self.call = client.send_request(
            setting.method, setting.params, progress=True, log_level=setting.log_level
        )
        self.pair.deliver()
        while any(self.pair.events):
            for side in Side:
                events, self.pair.events[side][:] = list(self.pair.events[side]), []
                for event in events:
                    self.act(side, event)
            self.pair.deliver()
        return self.outcome

    def act(self, side: Side, event: Event) -> None:
        client = self.pair.client
        match event:
            case RequestReceived() if side is Side.SERVER:
                self.serve(event.request)
            case RequestReceived():
                result = self.setting.person(event.request.method, event.request.params)
                assert client.send_result(event.request, result)
            case InputRequired():
                assert event.request is self.call
                responses = {
                    name: self.setting.person(asked["method"], asked.get("params", {}))
                    for name, asked in event.questions.items()
                }
                self.call = client.provide_input(event.request, responses, progress=True)
            case ProgressReceived():
                assert event.request is self.call
                self.outcome.progress.append(event.progress)
            case NotificationReceived():
                self.outcome.note(event.method, event.params)
            case ResponseReceived():
                assert event.request is self.call
                self.outcome.result = _bare(event.result)
            case ErrorReceived():
                self.outcome.code = event.code
            case RequestFailed():
                raise AssertionError(event)
            case _:
                pass

    def serve(self, request: IncomingRequest) -> None:
        server = self.pair.server
        self.outcome.runs += 1
        asked = Asked(
            request.params,
            request.input_responses,
            server.read_state(request),
            lambda value: server.send_progress(request, value),
            lambda level, text: server.send_log(level, text, request=request),
        )
        answer = self.setting.handler(asked)
        if isinstance(answer, Questions):
            assert server.require_input(request, answer.asked, state=answer.state)
        else:
            assert server.send_result(request, answer)


def by_hand(revision: str, setting: Setting) -> Outcome:
    """Hold the conversation over two connections and a wire in memory."""
    revisions = (revision,)
    pair = Pair(
        ClientConnection(info=CLIENT_INFO, capabilities=setting.capabilities, revisions=revisions),
        ServerConnection(info=SERVER_INFO, capabilities=SERVER_CAPABILITIES, revisions=revisions),
    )
    return _ByHand(pair, setting).run()


# ----------------------------------------------------------------------------------- on trio


def on_trio(revision: str, setting: Setting) -> Outcome:
    """Hold the conversation through the trio adapter."""
    outcome = Outcome()

    def handler(call: ServerCall) -> JSONObject | RequireInput:
        outcome.runs += 1
        asked = Asked(call.params, call.input_responses, call.state, call.progress, call.log)
        answer = setting.handler(asked)
        return RequireInput(answer.asked, answer.state) if isinstance(answer, Questions) else answer

    def on_request(call: Call) -> JSONObject:
        return setting.person(call.method, call.params)

    async def main() -> None:
        revisions = (revision,)
        serving = {"revisions": revisions, "capabilities": SERVER_CAPABILITIES}
        options: Any = {"on_request": on_request, "capabilities": setting.capabilities}
        talk: AbstractAsyncContextManager[Client] = talking(
            handler,
            serving=serving,
            revisions=revisions,
            on_notification=outcome.note,
            **options,
        )
        with trio.fail_after(1_000):
            async with talk as client:
                if setting.log_level is not None and revision != "2026-07-28":
                    level: Any = {"level": setting.log_level}
                    await client.request("logging/setLevel", level)
                try:
                    result = await client.request(
                        setting.method,
                        setting.params,
                        log_level=setting.log_level,
                        on_progress=lambda progress, _total, _text: outcome.progress.append(
                            progress
                        ),
                    )
                    outcome.result = _bare(result)
                except PeerError as error:
                    outcome.code = error.code

    trio.run(main, clock=MockClock(autojump_threshold=0))
    return outcome
