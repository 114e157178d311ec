"""The part of the adapters that all event loops with `async` share.

`loop` lists the primitives that each loop provides, as one object. Begin with `client` and `server`
(the objects that applications hold), or with `dispatch` (the handling of each event).

A session, on asyncio or trio, is the last class of a short chain:

    RequestSender            `requests`: sends requests for callers, which wait in mailboxes
      EventDispatcher        `dispatch`: hands events to handlers and mailboxes
        StreamDispatcher     `stream_dispatcher`: holds requests back while output is unsent
          StreamSession      `asyncio._session`, `trio._session`: bytes and time of one connection
        HTTPClientDispatcher `http_client`: sends the exchanges of a client over HTTP
          HTTPSession        `asyncio._http_client`, `trio._http_client`: its turns and time

A server over HTTP has many sessions and one endpoint, and a chain of its own:

    EndpointRunner           `http_server_runner`: hands events to handlers and mailboxes
      HTTPServiceBase        `http_service`: the state that all connections share
        HTTPService          `trio._http_service`, `asyncio._http_service`
      AsyncioRunner          `asyncio._http_server_runner`: time and tasks on asyncio
        HTTPService          `asyncio._http_service`, which inherits from both
        ASGIRunner           `asgi._runner`

The other modules, by subject:

    what applications hold   `client`, `server`, `call` (what a handler is given)
    handlers and callers     `handlers`, `tasks` (what the work on a task is given), `turns` (how
                             many work at a time), `background` (callbacks), `mailbox` (where
                             callers wait), `client_tasks` (handles)
    a server process         `restart`
    a client over HTTP       `h11_sender`, `httpx_sender`, `tls_stream`
    its authorization        `authorization`, `one_shot` and `httpx_one_shot` (single requests),
                             `threads` (functions that block)
    a server over HTTP       `http_server_wire` (one connection), `http_lookups`, `task_lookups` (a
                             store of tasks), `access` (tokens)

A class calls down only by the abstract methods that it declares. A *turn* is one pass over the
events of a connection or endpoint, its output and its next deadline. A *slot* is the permission of
a request over HTTP to have a connection: `HTTPClientLimits.requests` are given at a time.

This room knows `_common`, `oauth`, `_options`, `_http1`, `h11` and `httpx`.
"""
