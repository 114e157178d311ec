"""The standard codec where the interpreter has no compiled JSON encoder."""

from __future__ import annotations

import json.encoder
import sys

import pytest


def test_without_the_compiled_encoder_texts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other interpreters lack it; there the slow way must write the very same bytes."""
    from sansmcp import StandardCodec

    value = {"a": [1, 2.5, None, True, "é\ud800"], "b": {"c": ""}}
    compiled = StandardCodec().encode(value)
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    for name in [name for name in sys.modules if name.startswith("sansmcp")]:
        monkeypatch.delitem(sys.modules, name)
    from sansmcp import StandardCodec as Anew

    assert Anew is not StandardCodec
    assert Anew().encode(value) == compiled
