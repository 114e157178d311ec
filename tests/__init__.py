"""The tests, which start hundreds of processes: so compiled modules are kept, whoever runs them.

Where `PYTHONDONTWRITEBYTECODE` is set, each process would compile the whole library again, which
takes three times as long as the rest of its start.
"""

import os
import sys

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
