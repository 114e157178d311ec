"""Prints each rule of tasks and of caching with the tests that cite it: `python -m tests.rules`."""

from tests.rules.test_cited_rules import AREAS, FOLDERS
from tests.support.cited_rules import print_citations

if __name__ == "__main__":
    print_citations(AREAS, FOLDERS)
