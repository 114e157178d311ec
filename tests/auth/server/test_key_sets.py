"""The keys of issuers: how they are found, read again, and kept."""

import copy
import json

import pytest

from sansmcp.auth import AccessGranted, AccessRefused, RequestWanted
from tests.auth.server.jwts import (
    KEY,
    KEYS,
    METADATA,
    OPENID,
    OTHER,
    answer,
    begin,
    ec_key,
    learned,
    metadata,
    outcome,
    public,
    server_of,
    token_of,
    wanted,
)
from tests.auth.server.tools import AT, ISSUER, ending_of


def test_keys_are_found_by_the_metadata_of_the_issuer() -> None:
    """One setting, the issuer, is enough; the request waits meanwhile (AUTH-331)."""
    server = server_of()
    check = begin(server, token_of())
    request = wanted(server, METADATA)
    assert check.open
    answer(server, request, metadata())
    answer(server, wanted(server, KEYS), public(KEY))
    event = ending_of(server)
    assert isinstance(event, AccessGranted)
    assert isinstance(outcome(server, token_of(sub="user-2")), AccessGranted)


def test_metadata_of_openid_will_do() -> None:
    """Many authorization servers have that only."""
    server = server_of()
    begin(server, token_of())
    server.receive_response(wanted(server, METADATA), 404, (), b"", at=AT)
    answer(server, wanted(server, OPENID), metadata())
    answer(server, wanted(server, KEYS), public(KEY))
    assert isinstance(ending_of(server), AccessGranted)


def test_all_requests_wait_for_one_reading() -> None:
    """A server that has just begun must not flood the authorization server (AUTH-331)."""
    server = server_of(jwks_uris={ISSUER: KEYS})
    good, bad, unknown = token_of(), token_of(ec_key("k1")), token_of(OTHER)
    checks = [begin(server, token) for token in (good, bad, unknown)]
    request = wanted(server, KEYS)
    assert server.next_event() is None
    answer(server, request, public(KEY))
    endings = [server.next_event() for _ in checks]
    assert [type(event) for event in endings] == [AccessGranted, AccessRefused, AccessRefused]


def test_a_new_key_of_the_issuer_is_read() -> None:
    """Issuers change their keys without telling anyone (AUTH-331)."""
    server = learned()
    at = AT + 31
    begin(server, token_of(OTHER), at)
    answer(server, wanted(server, KEYS), public(KEY, OTHER), at)
    assert isinstance(ending_of(server), AccessGranted)
    assert isinstance(outcome(server, token_of(), at), AccessGranted)


def test_made_up_key_ids_cause_one_request_in_a_while() -> None:
    """Else anyone could have this server flood its authorization server (AUTH-331)."""
    server = learned()
    assert isinstance(outcome(server, token_of(ec_key("x1")), AT + 29), AccessRefused)
    begin(server, token_of(ec_key("x2")), AT + 31)
    answer(server, wanted(server, KEYS), public(KEY), AT + 31)
    assert isinstance(ending_of(server), AccessRefused)
    assert isinstance(outcome(server, token_of(ec_key("x3")), AT + 60), AccessRefused)


def test_a_key_that_the_issuer_has_withdrawn_is_not_used() -> None:
    """Keys are read again after some time, and the old ones forgotten (AUTH-331)."""
    server = learned(max_age=100.0, stale_while_reading=0.0)
    assert isinstance(outcome(server, token_of(exp=AT + 200), AT + 99), AccessGranted)
    begin(server, token_of(exp=AT + 200), AT + 100)
    answer(server, wanted(server, KEYS), public(OTHER), AT + 100)
    assert isinstance(ending_of(server), AccessRefused)


def test_old_keys_are_used_while_the_issuer_is_away() -> None:
    """An outage there must not be one here, for some time."""
    server = learned(max_age=100.0, max_stale=50.0, stale_while_reading=0.0)
    token = token_of(exp=AT + 900)
    begin(server, token, AT + 110)
    server.receive_failure(wanted(server, KEYS), "timed out", at=AT + 110)
    assert isinstance(ending_of(server), AccessGranted)
    assert isinstance(outcome(server, token, AT + 111), AccessGranted)  # without a request

    begin(server, token, AT + 150)
    server.receive_failure(wanted(server, KEYS), "timed out", at=AT + 150)
    event = ending_of(server)
    assert isinstance(event, AccessRefused)
    assert (event.status, event.cause) == (503, f"{KEYS}: timed out")
    again = outcome(server, token, AT + 151)
    assert isinstance(again, AccessRefused)
    assert again.status == 503


@pytest.mark.parametrize(
    ("bodies", "cause"),
    [
        ([(404, b""), (500, b"")], "status 500"),
        ([(302, b"{}"), (200, b"[]")], "status 200, and no JSON object"),
        ([(200, b'{"issuer": "https://evil.example"}')], None),
        ([(200, b'{"issuer": "https://as.example/"}')], None),
        ([(200, b'{"issuer": "https://as.example"}')], "is no URL"),
        (
            [(200, b'{"issuer": "https://as.example", "jwks_uri": "http://as.example/k"}')],
            "plain http",
        ),
        (
            [(200, b'{"issuer": "https://as.example", "jwks_uri": "https://127.0.0.1/k"}')],
            "loopback",
        ),
        (
            [(200, b'{"issuer": "https://as.example", "jwks_uri": "https://169.254.169.254/"}')],
            "link-local",
        ),
        ([(200, json.dumps(metadata()).encode()), (200, b"{}")], "without `keys`"),
        ([(200, json.dumps(metadata()).encode()), (503, b"")], "status 503"),
    ],
)
def test_documents_that_lead_nowhere_admit_nobody(
    bodies: list[tuple[int, bytes]], cause: str | None
) -> None:
    """Neither do they make a token invalid, which may be good (AUTH-010, AUTH-041)."""
    server = server_of()
    begin(server, token_of())
    for status, body in bodies:
        event = server.next_event()
        assert isinstance(event, RequestWanted)
        server.receive_response(event.request, status, (), body, at=AT)
    event = ending_of(server)
    assert isinstance(event, AccessRefused)
    assert (event.status, event.error) == (503, None)
    assert (cause or "names another issuer") in event.cause


def test_the_keys_of_an_issuer_on_this_machine_may_be_on_it() -> None:
    """For development; a name that means such an address needs the setting."""
    issuer = "http://127.0.0.1:9000"
    server = server_of(issuers=[issuer])
    begin(server, token_of(iss=issuer))
    request = wanted(server, f"{issuer}/.well-known/oauth-authorization-server")
    assert request.allows_address("127.0.0.1")
    answer(server, request, {"issuer": issuer, "jwks_uri": f"{issuer}/keys"})
    request = wanted(server, f"{issuer}/keys")
    assert request.allows_address("127.0.0.1")
    assert not request.allows_address("10.0.0.1")


def test_addresses_that_are_not_public_can_be_allowed() -> None:
    """An issuer in the network of a company (AUTH-339)."""
    for is_allowed in (False, True):
        server = server_of(allow_local_addresses=is_allowed)
        begin(server, token_of())
        answer(server, wanted(server, METADATA), metadata())
        request = wanted(server, KEYS)
        assert request.allows_address("93.184.216.34")
        assert request.allows_address("10.0.0.1") is is_allowed


def test_each_issuer_has_its_own_keys() -> None:
    """A key of one must not sign for the other (AUTH-331)."""
    two = "https://two.example"
    server = server_of(issuers=[ISSUER, two], key_sets={ISSUER: public(KEY)}, jwks_uris={two: KEYS})
    assert isinstance(outcome(server, token_of()), AccessGranted)
    begin(server, token_of(iss=two))
    answer(server, wanted(server, KEYS), public(OTHER))
    assert isinstance(ending_of(server), AccessRefused)
    assert isinstance(outcome(server, token_of(OTHER, iss=two)), AccessGranted)


def test_answers_that_nobody_waits_for_change_nothing() -> None:
    """A client may be gone, and a driver may err."""
    server = server_of(jwks_uris={ISSUER: KEYS})
    check = begin(server, token_of())
    request = wanted(server, KEYS)
    assert server.forget(check)
    answer(server, request, public(KEY))
    answer(server, request, public(OTHER))
    server.receive_failure(request, "late", at=AT)
    assert server.next_event() is None
    assert isinstance(outcome(server, token_of()), AccessGranted)


def test_a_clock_that_was_put_back_does_not_stop_the_reading() -> None:
    """Else no new key would be read until the old time comes again (AUTH-331)."""
    server = learned()
    token = token_of(OTHER, iat=AT - 5000, exp=AT)
    assert isinstance(outcome(server, token, AT - 4000), AccessRefused)
    begin(server, token, AT - 3970)
    answer(server, wanted(server, KEYS), public(KEY, OTHER), AT - 3970)
    assert isinstance(ending_of(server), AccessGranted)


def test_a_copy_goes_its_own_way() -> None:
    """The state is plain data."""
    server = server_of(jwks_uris={ISSUER: KEYS})
    begin(server, token_of())
    request = wanted(server, KEYS)
    copied, same = copy.deepcopy((server, request))
    answer(copied, same, public(KEY))
    assert isinstance(ending_of(copied), AccessGranted)
    assert server.next_event() is None
    again = copy.deepcopy(copied)  # with keys that were imported
    assert isinstance(outcome(again, token_of()), AccessGranted)


# ------------------------------------------------------------------------------------ time


def test_a_request_that_is_never_answered_has_failed_after_its_time() -> None:
    """Else a lost response would refuse all tokens of the issuer for ever (AUTH-331)."""
    server = server_of(jwks_uris={ISSUER: KEYS}, timeout=10.0)
    assert server.next_timeout() is None
    check = begin(server, token_of())
    lost = wanted(server, KEYS)
    assert server.next_timeout() == AT + 10
    server.handle_timeout(AT + 9)
    assert check.open
    server.handle_timeout(AT + 10)
    event = ending_of(server)
    assert isinstance(event, AccessRefused)
    assert (event.status, event.cause) == (503, f"{KEYS}: no response within 10 seconds")
    assert server.next_timeout() is None

    begin(server, token_of(), AT + 40)
    request = wanted(server, KEYS)
    answer(server, lost, public(OTHER), AT + 40)
    assert server.next_event() is None, "the answer came too late"
    answer(server, request, public(KEY), AT + 40)
    assert isinstance(ending_of(server), AccessGranted)


def test_the_next_request_lets_the_time_go_on() -> None:
    """A driver without a timer must not wait for ever, as long as requests come."""
    server = server_of(jwks_uris={ISSUER: KEYS}, timeout=10.0)
    first = begin(server, token_of())
    wanted(server, KEYS)
    second = begin(server, token_of(), AT + 11)
    events = [server.next_event(), server.next_event()]
    assert [event.check for event in events if isinstance(event, AccessRefused)] == [first, second]
    assert server.next_event() is None


def test_each_document_has_its_own_time() -> None:
    """Metadata without an answer is looked for at the next place."""
    server = server_of(timeout=10.0)
    begin(server, token_of())
    wanted(server, METADATA)
    server.handle_timeout(AT + 10)
    request = wanted(server, OPENID)
    assert server.next_timeout() == AT + 20
    answer(server, request, metadata(), AT + 15)
    wanted(server, KEYS)
    assert server.next_timeout() == AT + 25
    server.handle_timeout(AT + 25)
    event = ending_of(server)
    assert isinstance(event, AccessRefused)
    assert event.cause.startswith(KEYS)


def test_an_answer_counts_if_it_comes_before_its_time_is_told() -> None:
    """The clock may have jumped; the keys are there all the same."""
    server = server_of(jwks_uris={ISSUER: KEYS}, timeout=10.0)
    begin(server, token_of(exp=AT + 60))
    answer(server, wanted(server, KEYS), public(KEY), AT + 11)
    assert isinstance(ending_of(server), AccessGranted)


def test_an_issuer_that_does_not_answer_blocks_no_other() -> None:
    """Each has a request of its own, and answers come in any order (AUTH-331)."""
    two, more = "https://two.example", "https://two.example/keys"
    server = server_of(issuers=[ISSUER, two], jwks_uris={ISSUER: KEYS, two: more})
    slow, fast = begin(server, token_of()), begin(server, token_of(OTHER, iss=two))
    first, second = wanted(server, KEYS), wanted(server, more)
    answer(server, second, public(OTHER))
    event = ending_of(server)
    assert isinstance(event, AccessGranted)
    assert event.check is fast
    assert slow.open
    answer(server, second, public(KEY))
    assert server.next_event() is None
    assert server.next_timeout() == AT + 10
    answer(server, first, public(KEY))
    event = ending_of(server)
    assert isinstance(event, AccessGranted)
    assert event.check is slow


def test_a_deadline_is_kept_when_the_clock_is_put_back() -> None:
    """A request begun "in the future" must not last until then."""
    server = server_of(jwks_uris={ISSUER: KEYS}, timeout=10.0)
    check = begin(server, token_of())
    wanted(server, KEYS)
    server.handle_timeout(AT - 3600)
    assert server.next_timeout() == AT - 3590
    server.handle_timeout(AT - 3590)
    assert not check.open


@pytest.mark.parametrize("step", [0.1, 1 / 3, 0.7])
def test_a_timer_that_is_set_once_is_enough(step: float) -> None:
    """Sums of times are rounded; a timer must not fire again and again for the last bit."""
    for number in range(20):
        server = server_of(jwks_uris={ISSUER: KEYS}, timeout=5.3)
        begun = AT + number / 7
        check = begin(server, token_of(), begun)
        wanted(server, KEYS)
        for count in range(7):
            server.handle_timeout(begun + count * step)
        assert check.open
        due = server.next_timeout()
        assert due is not None
        server.handle_timeout(due)
        assert not check.open


# ------------------------------------------------------------------------------- old keys


def test_old_keys_serve_while_new_ones_are_read() -> None:
    """A slow authorization server must not make each request slow, once an hour."""
    server = learned(max_age=100.0)
    token = token_of(exp=AT + 900)
    first = begin(server, token, AT + 100)
    assert not first.open
    events = [server.next_event(), server.next_event()]
    assert {type(event) for event in events} == {AccessGranted, RequestWanted}
    assert isinstance(outcome(server, token, AT + 101), AccessGranted), "and no second request"
    (request,) = [event.request for event in events if isinstance(event, RequestWanted)]
    waiting = begin(server, token_of(OTHER, exp=AT + 900), AT + 101)
    assert waiting.open

    answer(server, request, public(OTHER), AT + 102)
    event = ending_of(server)
    assert isinstance(event, AccessGranted)
    assert event.check is waiting
    assert isinstance(outcome(server, token, AT + 103), AccessRefused), "it was withdrawn"


def test_keys_that_are_too_old_do_not_serve_while_new_ones_are_read() -> None:
    """After a quiet night, a withdrawn key must not admit the first request (AUTH-331)."""
    server = learned(max_age=100.0, stale_while_reading=50.0)
    check = begin(server, token_of(exp=AT + 900), AT + 150)
    request = wanted(server, KEYS)
    assert check.open
    answer(server, request, public(OTHER), AT + 151)
    assert isinstance(ending_of(server), AccessRefused)


def test_old_keys_serve_between_readings_that_fail() -> None:
    """While the issuer is away, requests must not wait for each attempt to reach it."""
    server = learned(max_age=100.0, max_stale=1000.0, stale_while_reading=50.0, min_interval=30.0)
    token = token_of(exp=AT + 9000)
    begin(server, token, AT + 200)
    server.receive_failure(wanted(server, KEYS), "timed out", at=AT + 210)
    assert isinstance(ending_of(server), AccessGranted)
    assert isinstance(outcome(server, token, AT + 239), AccessGranted)
    for at in (AT + 240, AT + 270):
        check = begin(server, token, at)
        assert not check.open
        assert isinstance(server.next_event(), AccessGranted)
        server.receive_failure(wanted(server, KEYS), "timed out", at=at)
    begin(server, token, AT + 1100)
    server.receive_failure(wanted(server, KEYS), "timed out", at=AT + 1100)
    event = ending_of(server)
    assert isinstance(event, AccessRefused)
    assert event.status == 503


def test_a_reading_that_has_failed_is_not_repeated_at_once() -> None:
    """Some seconds after its end, which may be late, there is another attempt (AUTH-331)."""
    server = server_of(jwks_uris={ISSUER: KEYS}, timeout=60.0, min_interval=30.0)
    begin(server, token_of())
    server.receive_failure(wanted(server, KEYS), "away", at=AT + 50)
    assert isinstance(ending_of(server), AccessRefused)
    event = outcome(server, token_of(), AT + 54)
    assert isinstance(event, AccessRefused)
    assert (event.status, event.cause) == (503, f"{KEYS}: away")
    assert dict(event.headers) == {"retry-after": "5"}
    begin(server, token_of(), AT + 55)  # with the client that was told so
    server.receive_failure(wanted(server, KEYS), "away", at=AT + 55)
    assert isinstance(ending_of(server), AccessRefused)
    assert isinstance(outcome(server, token_of(), AT + 59), AccessRefused)


def test_keys_that_are_too_old_are_not_used_between_readings() -> None:
    """Even where the settings do not let them be read again yet (AUTH-331)."""
    server = learned(max_age=10.0, max_stale=0.0, min_interval=1000.0)
    event = outcome(server, token_of(), AT + 10)
    assert isinstance(event, AccessRefused)
    assert (event.status, event.cause) == (503, "the keys of the issuer are too old to be used")


def test_a_wrong_signature_by_a_known_key_causes_no_reading() -> None:
    """Nothing new could come of it (AUTH-331)."""
    server = learned()
    forged = token_of(ec_key("k1"), exp=AT + 900)
    assert isinstance(outcome(server, forged, AT + 31), AccessRefused)


def test_a_token_without_the_id_of_its_key_causes_a_reading() -> None:
    """Issuers that name no keys change them, too; once in a while is enough (AUTH-331)."""
    old, new = ec_key(None), ec_key(None)
    server = server_of(jwks_uris={ISSUER: KEYS})
    begin(server, token_of(old))
    answer(server, wanted(server, KEYS), public(old))
    assert isinstance(ending_of(server), AccessGranted)
    assert isinstance(outcome(server, token_of(new), AT + 29), AccessRefused)
    begin(server, token_of(new), AT + 31)
    answer(server, wanted(server, KEYS), public(old, new), AT + 31)
    assert isinstance(ending_of(server), AccessGranted)
    assert isinstance(outcome(server, token_of(ec_key(None)), AT + 32), AccessRefused)


def test_a_token_that_names_no_key_is_tried_with_a_bounded_number_of_them() -> None:
    """A long key set would make each made-up token expensive (AUTH-331)."""
    keys = [ec_key(None) for _ in range(9)]
    server = server_of(key_sets={ISSUER: public(*keys)})
    assert isinstance(outcome(server, token_of(keys[7])), AccessGranted)
    assert isinstance(outcome(server, token_of(keys[8])), AccessRefused)


def test_an_endless_key_set_is_not_used() -> None:
    """Neither is a part of it, since the missing keys would refuse good tokens without a word."""
    for count, status in ((100, None), (101, 503)):
        server = server_of(jwks_uris={ISSUER: KEYS})
        begin(server, token_of())
        answer(server, wanted(server, KEYS), {"keys": public(KEY)["keys"] * count})
        event = ending_of(server)
        assert getattr(event, "status", None) == status
