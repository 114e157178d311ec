"""Authorization of clients: how a client is authorized, where tokens are kept, what users see.

Give an `OAuth` to `connect_http(url, auth=...)` of any adapter. `sansmcp.auth` has the rest of what
it takes: descriptions of the client, grants, and limits. This room performs the I/O that needs no
loop; it knows `_common`. Begin with `_settings`, then `_authorization`, which joins the settings of
an application with the machine of `sansmcp.auth`.
"""

from ._file_storage import FileTokenStorage
from ._keyring_storage import KeyringTokenStorage
from ._settings import OAuth
from ._storage import LockingTokenStorage, MemoryTokenStorage, StorageError, TokenStorage
from ._user_agents import FunctionUserAgent, LoopbackUserAgent, NoCallback, Redirect, UserAgent

__all__ = [
    "FileTokenStorage",
    "FunctionUserAgent",
    "KeyringTokenStorage",
    "LockingTokenStorage",
    "LoopbackUserAgent",
    "MemoryTokenStorage",
    "NoCallback",
    "OAuth",
    "Redirect",
    "StorageError",
    "TokenStorage",
    "UserAgent",
]
