"""A URI is within a root if it names the root or something below it, however it is written."""

import posixpath
from typing import Any, Final
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sansmcp.content import root_contains

ROOT: Final = {"uri": "file:///home/ann", "name": "home"}


@pytest.mark.parametrize(
    ("root", "uri"),
    [
        ("file:///home/ann", "file:///home/ann"),
        ("file:///home/ann", "file:///home/ann/"),
        ("file:///home/ann/", "file:///home/ann"),
        ("file:///home/ann", "file:///home/ann/a/b"),
        ("file:///home/ann", "FILE:///home/ann/a"),
        ("file:///home/ann", "file://LocalHost/home/ann/a"),
        ("file:///home/ann", "file:/home/ann/a"),
        ("file:///home/ann", "file:///home/bob/../ann/a"),
        ("file:///home/ann", "file:///home/./ann//a"),
        ("file:///home/ann", "file:///%68ome/%61nn/a"),
        ("file:///home/%61nn", "file:///home/ann/a"),
        ("file:///home/ann", "file:///home/ann/a#part"),
        ("file:///home/ann", "file:///home/ann/..ann/..."),
        ("file:///home/ann", "file:///home/ann/%252e%252e/a"),
        ("file:///home/J%C3%BCrgen", "file:///home/Jürgen/a"),
        ("file:///", "file:///etc"),
        ("file:///c%3A/Users", "file:///C:/Users/ann"),
        ("https://Example.com", "https://example.com/a?b=c/d"),
        ("https://ann@example.com/a", "https://ann@EXAMPLE.com/a/b"),
    ],
)
def test_forms_of_the_same_place_are_within(root: str, uri: str) -> None:
    """ROOT-010: a server must not refuse a file for the way in which its URI is written."""
    assert root_contains([root], uri)
    assert root_contains([ROOT, {"uri": root}], uri)


@pytest.mark.parametrize(
    ("root", "uri"),
    [
        ("file:///home/ann", "file:///home"),
        ("file:///home/ann", "file:///home/anna"),
        ("file:///home/ann", "file:///home/Ann/a"),
        ("file:///home/ann", "file:///home/ann/../bob"),
        ("file:///home/ann", "file:///home/ann/%2e%2E/bob"),
        ("file:///home/ann", "file:///home/ann/a/.%2e/../../bob"),
        ("file:///home/ann", "file:///home/ann//../bob"),
        ("file:///home/ann", "file:///home/ann/..%2Fbob"),
        ("file:///home/ann", "file:///home/ann/..%5Cbob"),
        ("file:///home/ann", "file:///home/ann/..\\bob"),
        ("file:///home/ann", "file:///home/ann/%00"),
        ("file:///home/ann", "file:///home/ann/.\t./bob"),
        ("file:///home/ann", "file:///home/ann/.\n./bob"),
        ("file:///home/ann", "file:///home/ann/a b"),
        ("file:///home/ann", "file:///home/ann/%zz"),
        ("file:///home/ann", "file:///home/ann/%2"),
        ("file:///home/ann", "file:///home/ann/\udc80"),
        ("file:///home/ann", "file:///home/ann?/../../bob"),
        ("file:///home/ann", "file:///home/ann#%2f..%2f..%2fbob"),
        ("file:///home/ann", "file://other/home/ann/a"),
        ("file:///home/ann", "file://localhost@other/home/ann/a"),
        ("file:///home/ann", "https:///home/ann/a"),
        ("file:///home/ann", "/home/ann/a"),
        ("file:///home/ann", "file:home/ann/a"),
        ("file:///home/ann", ""),
        ("file://", "file:///etc"),
        ("file:", "file:///etc"),
        ("home", "file:///home"),
        ("memo:a", "memo:a"),
        ("https://example.com", "https://example.com@evil.example/"),
        ("https://example.com", "https://example.com.evil.example/"),
        ("https://kiosk.example", "https://\u212aiosk.example/"),
        ("https://ann@example.com", "https://ANN@example.com/"),
    ],
)
def test_other_places_are_not_within(root: str, uri: str) -> None:
    """ROOT-010: each of these would let a client, or a model, out of the roots."""
    assert not root_contains([root], uri)


@pytest.mark.parametrize("roots", [[], [{}], [{"uri": 1}], [{"name": "file:///"}]])
def test_roots_without_a_uri_contain_nothing(roots: list[dict[str, Any]]) -> None:
    """The list comes from the peer."""
    assert not root_contains(roots, "file:///a")


names = st.sampled_from(["a", "b", "..", ".", "", "...", "ü", "a b", "%"])
paths = st.lists(names, max_size=6).map("/".join)


@given(paths, paths, st.booleans(), st.booleans())
def test_the_file_system_agrees(root: str, path: str, root_slash: bool, encoded: bool) -> None:
    """The file that is opened in the end must be within the folder."""
    folder = posixpath.normpath(f"/{root}").lstrip("/")
    opened = posixpath.normpath(f"/{path}").lstrip("/")
    assume(folder)
    is_within = opened == folder or opened.startswith(f"{folder}/")
    written = "".join(f"%{byte:02x}" if byte != 47 else "/" for byte in path.encode())
    uri = f"file:///{written if encoded else quote(path)}"

    assert root_contains([f"file:///{quote(root)}{'/' * root_slash}"], uri) == is_within


@given(st.text(max_size=30), st.text(max_size=30))
def test_nothing_that_a_peer_sends_raises(root: str, uri: str) -> None:
    """Neither a root nor a URI has to be valid."""
    assert root_contains([f"file:///{root}"], f"file:///{uri}") in (True, False)
