"""Documentation that executes: every Python fence runs, and every link and printed help is true."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from chimera.assembly.settings import load_settings
from chimera.cli.setup import load_plugins
from chimera.plugins import PluginManager
from scripts.update_cli_docs import PAGE, commands, updated
from tests.docs.fences import ROOT, Fence, fences, pages

RUNNER = Path(__file__).with_name("run_page.py")
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(?P<text>.+?) *$", re.MULTILINE)

# Fences marked `python no-run`, by page and first line, and why they cannot run. The list may only shrink.
NOT_RUN: dict[tuple[str, str], str] = {}


def fences_of(page: str, language: str) -> list[Fence]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [fence for fence in fences(text, page) if fence.language == language]


@pytest.mark.parametrize("page", pages())
def test_every_python_fence_runs(page: str, tmp_path: Path) -> None:
    code = [(fence.line, fence.code) for fence in fences_of(page, "python") if "no-run" not in fence.info]
    if not code:
        return
    listing = tmp_path / "fences.json"
    listing.write_text(json.dumps(code), encoding="utf-8")
    folder = tmp_path / "work"
    folder.mkdir()
    command = [sys.executable, "-W", "error", str(RUNNER), str(ROOT / page), str(listing)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_pages_hold_examples() -> None:
    """Guards the test above: a change of the fences' marks would leave it with nothing to run."""
    with_code = [page for page in pages() if fences_of(page, "python")]
    assert "README.md" in with_code
    assert len(with_code) >= 5


def test_only_listed_fences_are_not_run() -> None:
    marked = {
        (page, fence.code.splitlines()[0])
        for page in pages()
        for fence in fences_of(page, "python")
        if "no-run" in fence.info
    }
    assert marked == NOT_RUN.keys()


@pytest.mark.parametrize("page", pages())
def test_python_fences_are_marked_in_one_way(page: str) -> None:
    for language in ("py", "Python", "python3", "pycon"):
        assert not fences_of(page, language), "mark it `python`, so that it runs"
    for fence in fences_of(page, "python"):
        assert set(fence.info[1:]) <= {"no-run"}


@pytest.mark.parametrize("page", pages())
def test_configuration_fences_are_valid_configuration(page: str, tmp_path: Path) -> None:
    """A TOML fence is a configuration file that Chimera reads, with plugins that load, or part of a pyproject.toml."""
    for number, fence in enumerate(fences_of(page, "toml")):
        if "project" in tomllib.loads(fence.code):
            continue
        project = tmp_path / str(number)
        (project / ".chimera").mkdir(parents=True)
        (project / ".chimera" / "config.toml").write_text(fence.code, encoding="utf-8")
        settings = load_settings(project)
        load_plugins(PluginManager(), settings.plugins, settings)


@pytest.mark.parametrize("page", pages())
def test_json_fences_are_well_formed(page: str) -> None:
    for fence in fences_of(page, "json"):
        json.loads(fence.code)


@pytest.mark.parametrize("page", pages())
def test_links_lead_somewhere(page: str) -> None:
    for link in _LINK.finditer(without_code((ROOT / page).read_text(encoding="utf-8"))):
        target, _, anchor = link["target"].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), f"{page} links to {target}"
        assert not anchor or anchor in anchors(path), f"{page} links to {link['target']}"


def without_code(text: str) -> str:
    """Return a page without its fences and inline code."""
    for fence in fences(text):
        text = text.replace(fence.code, "", 1)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path: Path) -> set[str]:
    """Return the anchors that the headings of a page have when it is rendered."""
    headings = (match["text"] for match in _HEADING.finditer(path.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_printed_help_is_the_programs() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == updated(page), "run `make docs`"
    assert len(commands()) >= 5


def command_lines(page: str, program: str) -> list[list[str]]:
    """Return the words of every line in a shell fence of the page that runs `program`, without its prompt."""
    code = "\n".join(fence.code for name in ("console", "sh", "bash") for fence in fences_of(page, name))
    lines = re.findall(rf"^(?:\$ )?(?:\.venv/bin/)?({program}(?: .*)?)$", code.replace("\\\n", " "), re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


@pytest.mark.parametrize("page", pages())
def test_command_lines_name_commands_and_options_that_exist(page: str) -> None:
    known = commands()
    for line in command_lines(page, "chimera"):
        command = max((words for words in known if tuple(line[: len(words)]) == words), key=len)
        rest = line[len(command) :]
        options = {word.split("=")[0] for word in rest if word.startswith("-") and word != "-"}
        assert options <= known[command], f"{page}: {shlex.join(line)}"
        assert rest[:1] == [] or len(command) > 1 or rest[0].startswith("-"), f"{page}: {shlex.join(line)}"


@pytest.mark.parametrize("page", pages())
def test_make_lines_name_targets_that_exist(page: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for _, *words in command_lines(page, "make"):
        assert {word for word in words if "=" not in word} <= targets
