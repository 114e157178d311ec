"""Where the package of an extra is not installed, the error names the extra."""

import subprocess
import sys

import pytest

INFO = "info={'name': 'x', 'version': '1.0'}"
CONNECT = f"connect_http('http://127.0.0.1:1/mcp', {INFO})"
SERVE = f"serve_http(print, port=0, {INFO}, capabilities={{}})"
ENTER = "    async with m.{}: pass\n"
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
    "codec": ("msgspec", "import sansmcp\nsansmcp.MsgspecCodec()"),
    "strategies": ("hypothesis", "from sansmcp.testing import wire_bytes"),
}
EXTRAS = {"msgspec": "fast", "hypothesis": "testing", "httpx2": "httpx"}


def last_line(hidden: str, program: str) -> str:
    """What a program ends with in an environment that lacks a package."""
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
    """`No module named 'h11'` does not say that it is an extra, nor which."""
    package, program = PROGRAMS[case]
    said = last_line(package, program)

    assert said.startswith("ModuleNotFoundError: ")
    assert f" needs {package}: pip install 'sansmcp[{EXTRAS.get(package, package)}]'" in said


@pytest.mark.parametrize(
    ("package", "program"),
    [("outcome", "import sansmcp_io.trio"), ("attr", "import sansmcp_io.trio")],
)
def test_another_package_that_is_missing_is_named_itself(package: str, program: str) -> None:
    """To install the extra again would not help whoever lacks something else."""
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
