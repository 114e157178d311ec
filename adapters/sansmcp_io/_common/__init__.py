"""The parts that all adapters share: errors, calls of handlers, limits, logs. No event loop.

Begin with `call` (what a handler is given) and `errors` (what adapters raise).

Modules by subject:
    requests: `requests` (arguments), `typed_requests` (overloads, generated), `endings` (results
        and exceptions), `client`, `client_tasks`, `changes` (of a subscription).
    handlers: `call`, `server`, `tasks` (work that goes on after its request was answered).
    bytes: `descriptors`, `tls`, `bounds` (limits), `stderr` (of a server process).
    logs: `anomalies`, `trace`, `errors`.
    HTTP: `http_client_settings`, `http_client_events`, `shared_pool`, `one_shot` (single
        requests); `http_server`, `lookups`, `task_stores`, `cluster`, `access` (the check of
        tokens).
"""
