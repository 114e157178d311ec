"""HTTP/1.1 for `sansmcp.http`, still without sockets: any loop can drive it. h11 reads."""

from ._common.errors import without_extra

try:
    import h11 as _  # noqa: F401  # before the modules that need it: the error names the extra
except ModuleNotFoundError as _error:
    raise without_extra("h11", _error) from None

from ._common.http_server import HTTPLimits
from ._http1.heads import RequestHead
from ._http1.server import ConnectionState, HTTPConnection

__all__ = ["ConnectionState", "HTTPConnection", "HTTPLimits", "RequestHead"]
