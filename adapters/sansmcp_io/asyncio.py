"""sansmcp on asyncio."""
from ._asyncio_http import serve_http
