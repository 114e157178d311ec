"""An observer of a recorded conversation: the calls, their durations, and the breaches."""

from sansmcp import AnswerMatched, Observer, RequestUnanswered, Side, TextSeen, ViolationSeen

RECORDED = r"""
0.00 > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",\
"capabilities":{},"clientInfo":{"name":"editor","version":"1.0"}}}
0.01 < Loading the index ...
0.25 < {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":\
{"tools":{}},"serverInfo":{"name":"index","version":"0.3"}}}
0.25 > {"jsonrpc":"2.0","method":"notifications/initialized"}
0.30 > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","_meta":\
{"progressToken":1}}}
0.31 > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search"}}
0.40 < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}
0.50 > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
0.51 < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":2}}
0.52 < {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"cancelled"}}
0.60 < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
0.90 < {"jsonrpc":"2.0","id":9,"method":"roots/list"}
""".replace("\\\n", "")

# -- watch
observer = Observer()
for line in RECORDED.strip().splitlines():
    time, direction, text = line.split(" ", 2)
    side = Side.CLIENT if direction == ">" else Side.SERVER
    observer.receive_data(side, text.encode() + b"\n", now=float(time))
observer.close(now=1.0)

while (event := observer.next_event()) is not None:
    match event:
        case AnswerMatched():
            late = ", although it was cancelled" if event.cancelled else ""
            print(f"{event.method} {event.id} was answered after {event.seconds:.2f} s{late}")
        case RequestUnanswered():
            print(f"{event.method} {event.id} of the {event.side.name} was never answered")
        case TextSeen():
            print(f"the {event.side.name} wrote {event.data!r}")
        case ViolationSeen():
            print(f"  {event.number}: {event.side.name} {event.level} {event.rule}: {event.text}")
        case _:
            pass
# -- end
