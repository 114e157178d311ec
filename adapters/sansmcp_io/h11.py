"""HTTP/1.1 for `sansmcp.http`, still without sockets: any loop can drive it. h11 reads."""

from ._common.http_limits import HTTPLimits
from ._http1.heads import RequestHead
from ._http1.server import ConnectionState, HTTPConnection

__all__ = ["ConnectionState", "HTTPConnection", "HTTPLimits", "RequestHead"]
