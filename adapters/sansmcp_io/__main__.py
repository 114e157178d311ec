"""`python -m sansmcp_io` is the command `sansmcp`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
