"""A response over the client's limit raises one exception at once, on every adapter."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

import sansmcp_io.asyncio
import sansmcp_io.blocking
import sansmcp_io.trio
from sansmcp import Config, JSONObject
from tests.support.adapters import loops
from tests.support.adapters.loops import on_each_loop
from tests.support.http.on_loops import connect_http
from tests.support.http.scripted import Asked, scripted
from tests.support.processes import bad, call_bad

INFO: JSONObject = {"name": "test-client", "version": "1.0"}
CONFIG = Config(max_message_bytes=100_000)
LIMIT = r"the limit of Config\.max_message_bytes is 100000$"
STDIO = {
    "first": rf"^the response to tools/call has more than 100000 bytes; {LIMIT}",
    "last": rf"^the response to tools/call has 20[0-9]{{4}} bytes; {LIMIT}",
    "fraction": rf"^the response to tools/call has 20[0-9]{{4}} bytes; {LIMIT}",
}
CUT = (
    r"^the connection ended before tools/call was answered; the stream ended in a message of "
    rf"[0-9]{{6}} bytes without a newline; {LIMIT[:-1]}, and it may be the response"
)
HTTP = {
    "json": rf"^tools/call: the body has 20[0-9]{{4}} bytes; {LIMIT}",
    "stream": rf"^the response to tools/call has more than 100000 bytes; {LIMIT}",
}
SECONDS = 60.0
"""The time of a call: whoever waits so long has not learnt of it."""


def connect_stdio(place: str) -> AbstractAsyncContextManager[Any]:
    if loops.is_trio():
        return sansmcp_io.trio.connect_stdio(bad("verbose", place), info=INFO, config=CONFIG)
    return sansmcp_io.asyncio.connect_stdio(bad("verbose", place), info=INFO, config=CONFIG)


@on_each_loop()
async def test_on_stdio_where_the_answer_is_cut_off() -> None:
    """The error said that the connection had ended, and not which limit to raise."""
    async with connect_stdio("cut") as client:
        with pytest.raises(sansmcp_io.trio.ConnectionLost, match=CUT):
            await client.request(*call_bad("large"), timeout=SECONDS)


def test_on_stdio_where_the_answer_is_cut_off_without_a_loop() -> None:
    """The same, where there is no loop."""
    with (
        sansmcp_io.blocking.connect_stdio(
            bad("verbose", "cut"), info=INFO, config=CONFIG
        ) as client,
        pytest.raises(sansmcp_io.blocking.ConnectionLost, match=CUT),
    ):
        client.request(*call_bad("large"), timeout=SECONDS)


def answer(form: str) -> Callable[[Asked], None]:
    """Handle a call of `large` with a response over the limit."""

    def answer(asked: Asked) -> None:
        if asked.open_session() or "id" not in asked.message:
            return
        if asked.message["method"] == "server/discover":
            asked.reply(404)
            return
        large = asked.message["params"]["arguments"]["text"] == "large"
        text = "x" * 200_000 if large else "small"
        result: JSONObject = {"content": [{"type": "text", "text": text}]}
        if form == "json":
            asked.result(result)
            return
        message = {"jsonrpc": "2.0", "id": asked.message["id"], "result": result}
        # The stream goes on after it, and the event may never end.
        asked.stream(f"data: {json.dumps(message)}" + ("" if large else "\n\n"))
        if large:
            asked.rfile.read(1)  # until the client has closed the connection

    return answer


@pytest.mark.parametrize("place", STDIO)
@on_each_loop()
async def test_on_stdio(place: str) -> None:
    """The call hung for its 60 s, and ended as a timeout."""
    async with connect_stdio(place) as client:
        with pytest.raises(sansmcp_io.trio.InvalidAnswer, match=STDIO[place]):
            await client.request(*call_bad("large"), timeout=SECONDS)
        result = await client.request(*call_bad("small"), timeout=SECONDS)
        assert result["content"][0]["text"] == "small"


@pytest.mark.parametrize("place", STDIO)
def test_on_stdio_without_a_loop(place: str) -> None:
    """The same, where there is no loop."""
    with sansmcp_io.blocking.connect_stdio(
        bad("verbose", place), info=INFO, config=CONFIG
    ) as client:
        with pytest.raises(sansmcp_io.blocking.InvalidAnswer, match=STDIO[place]):
            client.request(*call_bad("large"), timeout=SECONDS)
        result: Any = client.request(*call_bad("small"), timeout=SECONDS)
        assert result["content"][0]["text"] == "small"


@pytest.mark.parametrize("form", HTTP)
@on_each_loop()
async def test_on_http(form: str) -> None:
    """On an event stream the error came only when the stream ended, and blamed its end."""
    with scripted(answer(form)) as url:
        async with connect_http(url, info=INFO, config=CONFIG) as client:
            with pytest.raises(sansmcp_io.trio.InvalidAnswer, match=HTTP[form]):
                await client.request(*call_bad("large"), timeout=SECONDS)
            result: Any = await client.request(*call_bad("small"), timeout=SECONDS)
            assert result["content"][0]["text"] == "small"


@pytest.mark.parametrize("form", HTTP)
def test_on_http_without_a_loop(form: str) -> None:
    """The same, where there is no loop."""
    with (
        scripted(answer(form)) as url,
        sansmcp_io.blocking.connect_http(url, info=INFO, config=CONFIG) as client,
    ):
        with pytest.raises(sansmcp_io.blocking.InvalidAnswer, match=HTTP[form]):
            client.request(*call_bad("large"), timeout=SECONDS)
        result: Any = client.request(*call_bad("small"), timeout=SECONDS)
        assert result["content"][0]["text"] == "small"
