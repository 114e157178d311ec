"""Several workers that serve as one: sessions, events and changes are shared by Redis.

Begin with `Cluster`. `_member` has what a worker carries to others and for them, without I/O, and
`_engine` the threads that talk to Redis. Needs the extra `redis`.
"""

from ._cluster import Cluster
from ._errors import ClusterError

__all__ = ["Cluster", "ClusterError"]
