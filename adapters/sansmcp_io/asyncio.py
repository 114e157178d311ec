"""sansmcp on asyncio."""

