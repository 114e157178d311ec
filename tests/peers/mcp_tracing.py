"""The official package's client, which traces by itself, and the traced server of the examples.

Usage: python tests/peers/mcp_tracing.py DIRECTORY    (that of the example)

It prints one JSON object for each span: who made it, its name, its id and that above it, its trace.
"""

import json
import sys
from functools import partial

import trio
from mcp.client.client import Client
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from trio.testing import memory_stream_pair

from sansmcp_io.trio import serve
from tests.support.adapters.mcp_streams import over_stream


async def main(directory: str) -> None:
    sys.path.insert(0, directory)
    from shop import CAPABILITIES, INFO
    from shop_calls import handle
    from tracing import traced

    ours, theirs = memory_stream_pair()
    server = partial(serve, theirs, traced(handle), info=INFO, capabilities=CAPABILITIES)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server)
        async with Client(over_stream(ours)) as client:
            await client.call_tool("stock", {"article": "lamp"})
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    trio.run(main, sys.argv[1])
    for span in exporter.get_finished_spans():
        assert span.context is not None
        assert span.instrumentation_scope is not None
        said = {
            "by": span.instrumentation_scope.name,
            "name": span.name,
            "id": span.context.span_id,
            "above": None if span.parent is None else span.parent.span_id,
            "trace": span.context.trace_id,
        }
        print(json.dumps(said))
