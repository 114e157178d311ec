"""Prints each rule of authorization with the tests that cite it: `python -m tests.auth`."""

from tests.auth.test_cited_rules import FOLDERS
from tests.support.cited_rules import print_citations

if __name__ == "__main__":
    print_citations(["AUTH"], FOLDERS)
