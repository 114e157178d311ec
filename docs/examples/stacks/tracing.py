"""OpenTelemetry across MCP: the context of a trace travels in `_meta`, from client to server.

Source: MCP 2026-07-28, basic/index, `_meta`: `traceparent`, `tracestate` and `baggage`.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import trio
from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, Status, StatusCode
from shop import CAPABILITIES, INFO
from shop_calls import handle
from trio.testing import memory_stream_pair

from sansmcp import JSONObject
from sansmcp_io.trio import Client, McpError, PeerError, ServerCall, connect, serve

tracer = trace.get_tracer("sansmcp")


# -- client
async def request(client: Client, method: str, params: JSONObject) -> JSONObject:
    """Make a request in a span, whose context is sent to the server."""
    name = " ".join(filter(None, (method, params.get("name"))))
    with tracer.start_as_current_span(name, kind=SpanKind.CLIENT) as span:
        span.set_attribute("mcp.method.name", method)
        meta: JSONObject = {}
        propagate.inject(meta)
        try:
            return await client.request(method, params, meta=meta)
        except PeerError as error:
            span.set_attribute("rpc.response.status_code", str(error.code))
            span.set_status(Status(StatusCode.ERROR, error.message))
            raise


# -- server
def traced(
    handler: Callable[[ServerCall], Awaitable[JSONObject]],
) -> Callable[[ServerCall], Awaitable[JSONObject]]:
    """A handler that runs in a span below that of its client, on any adapter."""

    async def run(call: ServerCall) -> JSONObject:
        name = " ".join(filter(None, (call.method, call.params.get("name"))))
        context = propagate.extract(call.meta)
        with tracer.start_as_current_span(name, context=context, kind=SpanKind.SERVER) as span:
            span.set_attribute("mcp.method.name", call.method)
            span.set_attribute("mcp.protocol.version", call.revision or "")
            try:
                return await handler(call)
            except McpError as error:
                span.set_attribute("rpc.response.status_code", str(error.code))
                raise

    return run


# -- handler
class Printer(SpanExporter):
    """The exporter of spans; a real program sends them to a collector."""

    def export(self, spans: Any) -> SpanExportResult:
        for span in spans:
            self.show(span)
        return SpanExportResult.SUCCESS

    def show(self, span: ReadableSpan) -> None:
        about = "the first of its trace" if span.parent is None else "below another"
        failed = "" if span.status.is_ok or span.status.is_unset else ", failed"
        print(f"{span.kind.name} {span.name}: {about}{failed}")


async def main() -> None:
    ours, theirs = memory_stream_pair()
    server = partial(serve, theirs, traced(handle), info=INFO, capabilities=CAPABILITIES)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server)
        async with connect(ours, info={"name": "by hand", "version": "1.0"}) as client:
            await request(client, "tools/call", {"name": "stock", "arguments": {"article": "lamp"}})
            try:
                await request(client, "tools/call", {"name": "nothing"})
            except PeerError as error:
                print(error)


if __name__ == "__main__":
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Printer()))
    trace.set_tracer_provider(provider)
    trio.run(main)
