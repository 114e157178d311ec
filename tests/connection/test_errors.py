"""What is raised at the caller."""

import copy
import pickle

from sansmcp import CodecError, ErrorCode, InvalidCursor, LocalProtocolError


def test_an_error_of_ours_names_its_rule_and_says_what_was_wrong() -> None:
    """The rule leads to a sentence and a page."""
    error = LocalProtocolError("CANC-004", "initialize cannot be cancelled")

    assert (error.rule, error.text) == ("CANC-004", "initialize cannot be cancelled")
    assert str(error) == "initialize cannot be cancelled [CANC-004]"


def test_an_error_of_ours_survives_copies_and_other_processes() -> None:
    """Exceptions with arguments of their own fail to unpickle, far from where they were raised."""
    error = LocalProtocolError("OWN-005", "too many")
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (type(twin), twin.rule, twin.text) == (LocalProtocolError, "OWN-005", "too many")
        assert str(twin) == str(error)


def test_what_a_value_is_wrong_for_is_a_value_error() -> None:
    """So that a caller may catch them with what it catches already."""
    assert issubclass(CodecError, ValueError)
    assert issubclass(InvalidCursor, ValueError)
    assert CodecError("no").rule == "ERR-001"
    assert ErrorCode.PARSE_ERROR == -32700
