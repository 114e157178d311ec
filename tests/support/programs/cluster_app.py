"""A worker of a cluster as an ASGI application, for other servers to load: `cluster_app:app`."""

import os
from typing import Final

from sansmcp_io.asgi import App
from tests.support.programs.cluster_worker import handle, scoped, settings

app: Final = App(handle, path="/mcp", authenticate=scoped, **settings(os.environ["REDIS_URL"], []))
