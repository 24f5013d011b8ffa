from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

from chimera.cli.demo import run_demo
from chimera.cli.demo.show import Demo
from chimera.cli.exits import FAILED, OK
from chimera.plugins import PluginExtensionRegistry, PluginManager
from tests.cli.child import chimera
from tests.cli.consoles import recorded

CREDENTIAL = re.compile(r"sk-[0-9a-f]{32}")


class Shown(NamedTuple):
    """One run of the demo, with what it left behind in the folder for temporary files and in the registry."""

    code: int
    text: str
    left: list[Path]
    chains: bool


def show(folder: Path, *, with_policy: bool) -> Shown:
    console, out = recorded(80)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        code = Demo(console, with_policy=with_policy).run()
    return Shown(code, out.getvalue(), list(folder.iterdir()), bool(PluginExtensionRegistry.get_all_interceptors()))


@pytest.fixture(scope="module")
def under_policy(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return show(tmp_path_factory.mktemp("policy"), with_policy=True)


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return show(tmp_path_factory.mktemp("control"), with_policy=False)


def test_it_shows_what_it_promises_in_order(under_policy: Shown) -> None:
    code, text, *_ = under_policy
    assert code == OK
    position = 0
    for words in (
        "model        scripted",
        "tests        Ran 3 tests: FAILED",
        "● edit_file tests/test_cart.py\n  ✗ Blocked by interceptor: plan-gate: ",
        "● todo ",
        "● edit_file shop/cart.py\n    Edited shop/cart.py",
        "● bash sh run_tests.sh\n",
        "    OK\n",
        "✓ the model was sent the reason",
        "● bash cat deploy/staging.env\n",
        "PAYMENT_KEY=[redacted]",
        "> The payment key for staging is sk-",
        "~ provider_request replaced by RedactorPlugin._request",
        "~ tool_call spawn_writer replaced by DelegateSpawnerPlugin._rewrite",
        "● delegate Write NOTES.md",
        "kept         The payment key for staging is sk-",
        "sent         The payment key for staging is [redacted].",
        "seam              decision",
        "tool_call         blocked   edit_file",
        "tool_result       replaced  bash",
        "provider_request  replaced  -",
        "on disk      Ran 3 tests: OK",
        "All 15 claims were checked",
    ):
        found = text.find(words, position)
        assert found >= 0, f"{words!r} is missing after {text[:position]!r}"
        position = found


def test_the_control_shows_what_happens_without_policy(control: Shown) -> None:
    code, text, *_ = control
    assert code == OK
    assert "● edit_file tests/test_cart.py\n    Edited tests/test_cart.py" in text
    assert "PAYMENT_KEY=sk-" in text
    assert "✓ the credential in your prompt was sent to the model" in text
    assert "Unknown tool: spawn_writer" in text
    assert "as they were Ran 3 tests: FAILED" in text
    assert "nothing: no plugin is loaded" in text


@pytest.mark.parametrize("name", ["under_policy", "control"])
def test_it_fits_on_80_columns_and_leaves_nothing_behind(name: str, request: pytest.FixtureRequest) -> None:
    shown: Shown = request.getfixturevalue(name)
    long = [line for line in shown.text.splitlines() if len(line.rstrip()) > 80]
    assert all(line[0].isalpha() and len(line) <= 110 for line in long), "only the model's text may go on"
    assert shown.left == []
    assert not shown.chains


def test_no_output_of_a_policy_run_holds_the_credential_but_for_the_prompt(under_policy: Shown) -> None:
    holding = [line for line in under_policy.text.splitlines() if CREDENTIAL.search(line)]
    assert [line.split()[0] for line in holding] == [">", "kept"]


@pytest.mark.parametrize(
    ("packs", "words"),
    [
        (("redactor", "delegate-spawner"), "✗ the early edit did not happen"),
        (("redactor", "plan-gate"), "✗ spawn_writer became delegate"),
        (("delegate-spawner", "plan-gate"), "✗ nothing that was sent to the model holds it"),
    ],
)
def test_a_claim_that_does_not_hold_fails_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packs: tuple[str, ...], words: str
) -> None:
    """Each pack is needed for what is claimed of it."""
    monkeypatch.setattr("chimera.cli.demo.show.PACKS", packs)
    code, text, *_ = show(tmp_path, with_policy=True)
    assert code == FAILED
    assert words in text
    assert re.search(r"\d+ of 15 claims do not hold\.", text)


def test_the_control_fails_when_a_policy_is_in_force(tmp_path: Path) -> None:
    manager = PluginManager()
    manager.load("redactor")
    try:
        code, text, *_ = show(tmp_path, with_policy=False)
    finally:
        manager.unload("redactor")
    assert code == FAILED
    assert "✗ the credential in your prompt was sent to the model" in text


def test_run_demo_returns_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_demo(with_policy=False) == OK
    assert "All 10 claims" in capsys.readouterr().out


@pytest.mark.parametrize("changes", [{"NO_COLOR": "1", "TERM": "dumb"}, {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}])
def test_it_runs_as_a_program_on_poor_terminals(tmp_path: Path, changes: dict[str, str]) -> None:
    (tmp_path / "tmp").mkdir()
    done = chimera("demo", cwd=tmp_path, TMPDIR=str(tmp_path / "tmp"), **changes)
    assert done.returncode == OK, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert not list((tmp_path / "tmp").iterdir())
