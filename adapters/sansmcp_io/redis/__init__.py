"""Several workers that serve as one: sessions, events, changes and tasks are shared by Redis.

Begin with `Cluster`. `_member` has what a worker carries to others and for them, without I/O,
`_sessions` how it finds the worker that has a session, `_tasks` the tasks of all workers, and
`_engine` the threads that talk to Redis. Needs the extra `redis`.
"""

from ._cluster import Cluster
from ._errors import ClusterError

__all__ = ["Cluster", "ClusterError"]
