"""Where the package of an extra is not installed, the error names the extra."""

import subprocess
import sys
from importlib import import_module

import pytest

INFO = "info={'name': 'x', 'version': '1.0'}"
CONNECT = f"connect_http('http://127.0.0.1:1/mcp', {INFO})"
SERVE = f"serve_http(print, port=0, {INFO}, capabilities={{}})"
ENTER = "    async with m.{}: pass\n"
PROTECTED = (
    "from sansmcp.auth import *\n"
    "v = IntrospectionVerifier('https://a.example', issuer='a', client_id='c', client_secret='s')\n"
    "r = ProtectedResource('https://b.example/mcp', authorization_servers=['https://a.example'])\n"
    f"App(print, {INFO}, access=ResourceServer(r, v))\n"
)
RUN: dict[str, str] = {
    "trio": "import trio, sansmcp_io.trio as m\nasync def main():\n{}trio.run(main)",
    "asyncio": "import asyncio, sansmcp_io.asyncio as m\nasync def main():\n{}asyncio.run(main())",
}
PROGRAMS: dict[str, tuple[str, str]] = {
    "trio": ("trio", "import sansmcp_io.trio"),
    "name of trio": ("trio", "from sansmcp_io.trio import connect_stdio"),
    "h11": ("h11", "import sansmcp_io.h11"),
    "blocking client": (
        "httpx2",
        f"import sansmcp_io.blocking as m\nwith m.{CONNECT}: pass",
    ),
    **{f"{loop} client": ("h11", run.format(ENTER.format(CONNECT))) for loop, run in RUN.items()},
    **{
        f"{loop} server": ("h11", run.format(f"    await m.{SERVE}\n")) for loop, run in RUN.items()
    },
    "verifier below ASGI": ("h11", f"from sansmcp_io.asgi import App\n{PROTECTED}"),
    "verifier below WSGI": ("h11", f"from sansmcp_io.wsgi import App\n{PROTECTED}"),
    "codec": ("msgspec", "import sansmcp\nsansmcp.MsgspecCodec()"),
    "strategies": ("hypothesis", "from sansmcp.testing import wire_bytes"),
    "keys": ("joserfc", "import sansmcp.auth.jose"),
}
EXTRAS = {
    "msgspec": "fast",
    "hypothesis": "testing",
    "httpx2": "httpx",
    "joserfc": "oauth-jwt",
}


def last_line(hidden: str, program: str) -> str:
    """The last line of a program in an environment that lacks a package."""
    finder = (
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] == {hidden!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", finder + program],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 1, done
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("case", PROGRAMS)
def test_error_says_what_to_install(case: str) -> None:
    """`No module named 'h11'` does not name the extra to install."""
    package, program = PROGRAMS[case]
    said = last_line(package, program)

    assert said.startswith("ModuleNotFoundError: ")
    assert f" needs {package}: pip install 'sansmcp[{EXTRAS.get(package, package)}]'" in said


@pytest.mark.parametrize(
    ("package", "program"),
    [
        ("outcome", "import sansmcp_io.trio"),
        ("attr", "import sansmcp_io.trio"),
        ("cryptography", "import sansmcp.auth.jose"),
    ],
)
def test_another_package_that_is_missing_is_named_itself(package: str, program: str) -> None:
    """Installing the extra would not help if another package is missing."""
    assert last_line(package, program) == f"ModuleNotFoundError: No module named {package!r}"


def test_codec_and_strategies_say_it_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, where coverage sees it."""
    import sansmcp.testing

    for name in ("hypothesis", "msgspec", "sansmcp.testing._strategies"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match=r"sansmcp\[fast\]"):
        sansmcp.MsgspecCodec()
    with pytest.raises(ModuleNotFoundError, match=r"wire_bytes needs hypothesis: .*\[testing\]"):
        sansmcp.testing.__getattr__("wire_bytes")


def test_keys_say_it_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coverage sees the error of `sansmcp.auth.jose`; another missing module is named itself."""
    signers = "sansmcp.auth._jose.signers"
    monkeypatch.delitem(sys.modules, "sansmcp.auth.jose", raising=False)
    monkeypatch.delitem(sys.modules, signers, raising=False)
    monkeypatch.setitem(sys.modules, "joserfc", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs joserfc: .*\[oauth-jwt\]"):
        import_module("sansmcp.auth.jose")
    monkeypatch.setitem(sys.modules, signers, None)
    with pytest.raises(ModuleNotFoundError, match=signers):
        import_module("sansmcp.auth.jose")
