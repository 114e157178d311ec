"""Where credentials are kept between programs."""

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import keyring
import keyring.backend
import keyring.errors
import pytest

from sansmcp import JSONObject
from sansmcp_io.blocking import AuthorizationError, connect_http
from sansmcp_io.oauth import (
    FileTokenStorage,
    FunctionUserAgent,
    KeyringTokenStorage,
    MemoryTokenStorage,
    OAuth,
    StorageError,
)
from tests.support.http.authorized import ECHO, consent, realm

ONE, TWO, ISSUER = "https://one.example/mcp", "https://two.example/mcp", "https://as.example"
RECORD: JSONObject = {"access_token": "secret", "expires_at": 1.5}


class Keys(keyring.backend.KeyringBackend):
    """A key store in memory, which may be locked."""

    priority: Any = 1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # keyring has no types there
        self.entries: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def get_password(self, service: str, username: str) -> str | None:
        self._check()
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._check()
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._check()
        del self.entries[service, username]

    def _check(self) -> None:
        if self.is_locked:
            raise keyring.errors.KeyringLocked("the store is locked")


@pytest.fixture
def keys() -> Generator[Keys, None, None]:
    """The key store of the system, for a time."""
    former, store = keyring.get_keyring(), Keys()
    keyring.set_keyring(store)
    yield store
    keyring.set_keyring(former)


@pytest.mark.parametrize("kind", ["memory", "file", "keyring"])
def test_records_are_kept_by_server_and_issuer(kind: str, tmp_path: Path, keys: Keys) -> None:
    """A token for one server is of no use to another one, and of no business."""
    storage: MemoryTokenStorage | FileTokenStorage | KeyringTokenStorage
    if kind == "memory":
        storage = MemoryTokenStorage()
    elif kind == "file":
        storage = FileTokenStorage(tmp_path / "new" / "tokens.json")
    else:
        storage = KeyringTokenStorage()
    assert storage.load(ONE) == {}
    assert storage.servers() == ()
    storage.store(ONE, ISSUER, RECORD)
    storage.store(TWO, ISSUER, {})
    storage.store(TWO, "https://other.example", RECORD)
    assert storage.load(ONE) == {ISSUER: RECORD}
    assert set(storage.load(TWO)) == {ISSUER, "https://other.example"}
    assert set(storage.servers()) == {ONE, TWO}
    storage.store(ONE, ISSUER, None)
    storage.store(ONE, ISSUER, None)
    assert storage.load(ONE) == {}
    assert storage.servers() == (TWO,)
    storage.load(TWO)[ISSUER]["changed"] = True
    assert storage.load(TWO)[ISSUER] == {}
    assert "secret" not in repr(storage)


def test_a_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    """AUTH-025: whatever the mask of the process is; one that others can read is refused."""
    path = tmp_path / "a" / "tokens.json"
    former = os.umask(0)
    try:
        FileTokenStorage(path).store(ONE, ISSUER, RECORD)
    finally:
        os.umask(former)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert sorted(one.name for one in path.parent.iterdir()) == ["tokens.json", "tokens.json.lock"]
    path.chmod(0o640)
    for use in (lambda: FileTokenStorage(path).load(ONE), lambda: FileTokenStorage(path).servers()):
        with pytest.raises(StorageError, match="chmod 600"):
            use()


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been put there, with tokens of somebody else, and its owner reads what comes."""
    storage = FileTokenStorage(tmp_path / "tokens.json")
    storage.store(ONE, ISSUER, RECORD)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    for use in (lambda: storage.load(ONE), lambda: storage.store(ONE, ISSUER, {})):
        with pytest.raises(StorageError, match="belongs to another user"):
            use()


@pytest.mark.parametrize("refusals", [3, 1000])
@pytest.mark.parametrize("what", ["replace", "open"])
def test_a_file_that_is_open_elsewhere_is_tried_again(
    what: str, refusals: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows refuses to replace a file while another process reads it, and the other way round."""
    storage, left = FileTokenStorage(tmp_path / "tokens.json"), refusals
    storage.store(ONE, ISSUER, {})
    holder: Any = os if what == "replace" else Path
    real: Any = getattr(holder, what)

    def refuse(*args: Any, **kwargs: Any) -> Any:
        nonlocal left
        left -= 1
        if left >= 0:
            raise PermissionError(13, "Permission denied")
        return real(*args, **kwargs)

    monkeypatch.setattr(holder, what, refuse)
    if refusals == 3:
        storage.store(ONE, ISSUER, RECORD)
    else:
        with pytest.raises(StorageError, match="Permission denied"):
            storage.store(ONE, ISSUER, RECORD)
    monkeypatch.undo()
    assert storage.load(ONE) == {ISSUER: RECORD if refusals == 3 else {}}
    assert not list(tmp_path.glob(".tokens*"))


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}', '{"a": {"b": 1}}', "\ud800"])
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, content: str) -> None:
    """A wrong path must not cost a file."""
    path = tmp_path / "tokens.json"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    path.chmod(0o600)
    for use in (
        lambda: FileTokenStorage(path).load(ONE),
        lambda: FileTokenStorage(path).store(ONE, ISSUER, RECORD),
    ):
        with pytest.raises(StorageError, match="no records"):
            use()
    assert path.read_bytes() == content.encode("utf-8", "surrogatepass")


def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    """And leaves nothing behind."""
    path = tmp_path / "folder"
    path.mkdir()
    with pytest.raises(StorageError, match="cannot be read"):
        FileTokenStorage(path).load(ONE)
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        FileTokenStorage(tmp_path / "file" / "tokens").store(ONE, ISSUER, RECORD)
    circular: Any = {}
    circular["a"] = circular
    good = tmp_path / "tokens.json"
    with pytest.raises(ValueError, match="Circular"):
        FileTokenStorage(good).store(ONE, ISSUER, circular)
    assert [one.name for one in tmp_path.iterdir() if "tokens" in one.name] == ["tokens.json.lock"]


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    """As many keep their settings."""
    target, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(target)
    FileTokenStorage(link).store(ONE, ISSUER, RECORD)
    assert link.is_symlink()
    assert json.loads(target.read_text()) == {ONE: {ISSUER: RECORD}}


def test_two_processes_that_write_lose_nothing(tmp_path: Path) -> None:
    """Each reads, changes and writes the whole file."""
    path = tmp_path / "tokens.json"
    program = (
        "import sys; from sansmcp_io.oauth import FileTokenStorage\n"
        "for number in range(20): FileTokenStorage(sys.argv[1])"
        ".store(f'https://{sys.argv[2]}.example/{number}', 'i', {})"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(path), name]) for name in ("a", "b")
    ]

    def store() -> None:
        for number in range(20):
            FileTokenStorage(path).store(f"c{number}", "i", {})

    mine = threading.Thread(target=store)
    mine.start()
    assert [process.wait(120) for process in running] == [0, 0]
    mine.join(120)
    assert len(FileTokenStorage(path).servers()) == 60


def test_a_key_store_with_small_entries_holds_large_tokens(keys: Keys) -> None:
    """Windows takes 2560 bytes of UTF-16 in one entry, and a JWT alone may have more."""
    storage = KeyringTokenStorage()
    sizes = [3000, 100, 9000, 4000, 8000, 1, 5000]
    for size in sizes:
        record: JSONObject = {"tokens": {"access_token": "\u00e9" * (size // 6)}}
        storage.store(ONE, ISSUER, record)
        storage.store(f"https://{size}.example/{'x' * 600}", ISSUER, record)
        assert all(len(text.encode("utf-16-le")) <= 2560 for text in keys.entries.values())
        assert storage.load(ONE) == {ISSUER: record}
    assert len(storage.servers()) == 8
    for server in storage.servers():
        storage.store(server, ISSUER, None)
    assert keys.entries == {}


def test_parts_of_a_key_store_that_are_missing_are_noticed(keys: Keys) -> None:
    """Somebody has deleted one. A new login puts it right."""
    storage = KeyringTokenStorage()
    storage.store(ONE, ISSUER, {"tokens": "x" * 5000})
    lost = [entry for entry in keys.entries if "#" in entry[1]]
    assert len(lost) == 4
    del keys.entries[lost[0]]
    with pytest.raises(StorageError, match="is no JSON"):
        storage.load(ONE)
    for entry in lost[1:]:
        del keys.entries[entry]
    with pytest.raises(StorageError, match="is no JSON"):
        storage.load(ONE)
    keys.delete_password("sansmcp", ONE)
    storage.store(ONE, ISSUER, RECORD)
    assert storage.load(ONE) == {ISSUER: RECORD}


def test_a_reader_of_a_key_store_finds_all_of_the_old_or_of_the_new_entry(
    keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may end between any two writes."""
    storage, records = KeyringTokenStorage(), [{ISSUER: {"t": text * 5000}} for text in "ab"]
    storage.store(ONE, ISSUER, records[0][ISSUER])
    real: Any = getattr(keys, "set_password")  # noqa: B009  # keyring has no types there

    def read_and_set(service: str, username: str, password: str) -> None:
        assert KeyringTokenStorage().load(ONE) in records
        real(service, username, password)
        assert KeyringTokenStorage().load(ONE) in records

    monkeypatch.setattr(keys, "set_password", read_and_set)
    storage.store(ONE, ISSUER, records[1][ISSUER])
    assert storage.load(ONE) == records[1]


def test_a_key_store_is_locked_for_one_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a file, since it has no locks itself."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    storage, is_taken = KeyringTokenStorage(), threading.Event()

    def take() -> None:
        with KeyringTokenStorage().locked(ONE):
            is_taken.set()

    with storage.locked(ONE):
        with storage.locked(TWO):
            threading.Thread(target=take, daemon=True).start()
        assert not is_taken.wait(0.2)
    assert is_taken.wait(60)
    assert list((tmp_path / "sansmcp").iterdir())


def test_a_key_store_that_refuses_says_so(keys: Keys) -> None:
    """It may be locked, or hold something else."""
    storage = KeyringTokenStorage()
    storage.store(ONE, ISSUER, RECORD)
    keys.is_locked = True
    with pytest.raises(StorageError, match="the store is locked"):
        storage.load(ONE)
    keys.is_locked = False
    keys.entries["sansmcp", ONE] = "no JSON"
    with pytest.raises(StorageError, match="no JSON"):
        storage.load(ONE)
    keys.entries["sansmcp", ONE] = "7"
    with pytest.raises(StorageError, match="no records"):
        storage.load(ONE)


def test_a_key_store_that_cannot_be_written_says_so(
    keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can be read nevertheless."""

    def refuse(*args: str) -> None:
        raise keyring.errors.PasswordSetError("read only")

    monkeypatch.setattr(keys, "set_password", refuse)
    with pytest.raises(StorageError, match="read only"):
        KeyringTokenStorage().store(ONE, ISSUER, RECORD)


def test_without_its_extra_the_key_store_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As other parts do."""
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ModuleNotFoundError, match=r"sansmcp\[keyring\]"):
        KeyringTokenStorage()


def test_a_storage_that_fails_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One that cannot be read ends the start; one that cannot be written costs the next login."""
    info: JSONObject = {"name": "test", "version": "1"}
    path = tmp_path / "tokens.json"
    auth = OAuth(user_agent=FunctionUserAgent(consent), storage=FileTokenStorage(path))
    with realm() as served:
        path.write_text("{}")
        path.chmod(0o644)
        refused = pytest.raises(AuthorizationError, match="chmod 600")
        with refused, connect_http(served.url, info=info, auth=auth):
            raise AssertionError("not opened")

        class ReadOnly:
            def load(self, server: str) -> dict[str, JSONObject]:
                return {}

            def store(self, server: str, issuer: str, record: JSONObject | None) -> None:
                raise StorageError("the disk is full")

        auth = OAuth(user_agent=FunctionUserAgent(consent), storage=ReadOnly())
        with connect_http(served.url, info=info, auth=auth) as client:
            client.request("tools/call", ECHO)
    assert "the disk is full" in caplog.text
